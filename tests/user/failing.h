/* failing.h - calls of which each allocation in turn fails. */
#pragma once

/*
 * failing: runs every act again and again; in the nth run its nth allocation fails (the sysctl
 * debug.ktest.fail_alloc of kestrel-test). Prints TAP. An exit status.
 */
int failing_main(int argc, char **argv);
