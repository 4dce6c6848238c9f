/* hogs.h - `user_test do hog WHAT`: takes all of one thing that the kernel gives, and keeps it. */
#pragma once

/* Prints `full: WHAT N errno E` when no more comes, and waits to be killed; 2 for bad usage. */
int hog_main(const char *what);
