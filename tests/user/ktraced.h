/* ktraced.h - `user_test ktrace WHAT`: programs that ktrace watches, and that log what they do. */
#pragma once

/* Returns an exit status: 0, 1 after an error, 2 for bad usage. */
int ktraced_main(int argc, char **argv);
/* The process is traced to a file that all of a crowd have: a descriptor of it, or -1. */
int ktraced_join_crowd(void);
/* Makes marks for ever, and keeps that file short. */
_Noreturn void ktraced_crowd(int fd);
