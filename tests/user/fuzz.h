/* fuzz.h - `user_test fuzz calls|programs|elves SEED ROUNDS`: random deeds that a seed repeats. */
#pragma once

/* Prints `fuzz KIND: N rounds, M ended by a signal`. Returns an exit status. */
int fuzz_main(int argc, char **argv);
