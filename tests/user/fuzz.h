/*
 * fuzz.h - `user_test fuzz calls|threads|programs|elves|files|images SEED ROUNDS`: random acts. The
 * seed repeats them, but for `threads`, which act at the same time.
 */
#pragma once

/* Prints `fuzz KIND: N rounds, M ended by a signal`. Returns an exit status. */
int fuzz_main(int argc, char **argv);
