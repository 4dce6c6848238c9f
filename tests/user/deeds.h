/* deeds.h - `user_test do WHAT`: what a program may try against the rest of the machine. */
#pragma once

/* Does it and prints what came of it. Returns an exit status: 0, 1 after an error, 2 for bad usage.
 */
int deed_main(int argc, char **argv);
