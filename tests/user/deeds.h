/* deeds.h - `user_test do WHAT`: attempts against the rest of the machine. */
#pragma once

/* Does it and prints the result. Returns an exit status: 0, 1 after an error, 2 for bad usage. */
int deed_main(int argc, char **argv);
