/* bench.h - `user_test bench WHAT`: measurements that only a program in the guest can make. */
#pragma once

/* Prints rows `bench NAME VALUE UNIT`. Returns an exit status: 0, 1 after an error, 2 for bad
 * usage. */
int bench_main(int argc, char **argv);
