/*
 * core.h - the lock of the network, under which all of lwIP runs, and its errors.
 *
 * Unless said otherwise, all functions: thread context, may sleep. Who holds the lock may take the
 * mutex of a socket (struct socket), and else none but those of the heap and of poll_notify(). No
 * program's memory is copied under it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cond;

/* Takes the lock; the first time, starts lwIP with the interface `lo`. */
void inet_lock(void);
/* Delivers what is queued on the loopback, and releases the lock. */
void inet_unlock(void);
/* Delivers what is queued on the loopback, and waits on c, whose mutex is the lock. Results are
 * those of cond_wait() with SLEEP_INTR. wmesg is read-only data. */
int inet_wait(struct cond *c, const char *wmesg, uint64_t deadline_ns);
/* From now on the network's thread calls poll() after each inet_wake(), with the lock held; again
 * while it returns true. Lock held. */
void inet_set_card(bool (*poll)(void));
/* Any context but NMI. */
void inet_wake(void);
/* Makes the timers run for the next seconds, because the card sends (ARP may have to ask again)
 * or has received. Lock held. */
void inet_used(void);
/* 0, or the -errno of an error of lwIP. Any context. */
int inet_errno(int8_t err);
