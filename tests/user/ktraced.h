/* ktraced.h - `user_test ktrace WHAT`: programs that ktrace watches, and that log what they do. */
#pragma once

/* Returns an exit status: 0, 1 after an error, 2 for bad usage. */
int ktraced_main(int argc, char **argv);
