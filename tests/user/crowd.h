/*
 * crowd.h - `user_test crowd [rt] KIND:N...`: how long user 0's fork, exec and wait take while N
 * processes of user 1000 do what the kind says: spin, nap, fork (and wait), bomb (fork for ever),
 * trace (make records for ktrace), traced (the same, but user 0 has set the tracing), or alarm
 * (ignore many timers, asleep). With rt, a real-time process of user 0 spins on each CPU, too.
 */
#pragma once

/* Prints `crowd KIND:N worst US us mean US us` for each. An exit status. */
int crowd_main(int argc, char **argv);
