/*
 * ktest.h - running the in-kernel tests (tests/kernel/), which only the test kernel contains.
 */
#pragma once

/*
 * Runs the tests whose names match the glob, prints TAP and powers off with status 0, or 1 when one
 * failed. A kernel without tests says so and powers off with status 1. Thread context.
 */
_Noreturn void ktest_run(const char *glob);
