/*
 * hogs.h - `user_test do hog WHAT`: takes all that the kernel gives of one resource, and keeps it.
 */
#pragma once

/*
 * Prints `full: WHAT N errno E` when it gets no more, and waits to be killed. Returns 2 for bad
 * usage.
 */
int hog_main(const char *what);
int hog_leave_depth(void);
