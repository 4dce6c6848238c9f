/*
 * fuzz.h - `user_test fuzz calls|threads|programs|elves SEED ROUNDS`: random acts, repeatable by
 * the seed.
 */
#pragma once

/* Prints `fuzz KIND: N rounds, M ended by a signal`. Returns an exit status. */
int fuzz_main(int argc, char **argv);
