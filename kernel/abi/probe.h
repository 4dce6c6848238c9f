/*
 * probe.h - requests of /dev/probe (ioctl). Who opens the device has a session: probes that it
 * switches on are on until it switches them off, or the last descriptor of the open file is closed,
 * however its process ends. Whoever opens it needs CAP_SYS_ADMIN, whatever its mode.
 */
#pragma once

#include <stdint.h>

/**
 * arg is a process id. From now on, probes of this session fire only for that process and for those
 * that it makes from now on. ESRCH: no such process. EBUSY: another session follows it, or this is
 * not the session's first request. EAGAIN: 2^32 sessions have followed one since the boot.
 */
#define PROBE_FOLLOW 0x6b01

/**
 * As PROBE_FOLLOW, but from the process's next exec on: what it does before, perhaps to wait for
 * this session, is not of interest.
 */
#define PROBE_FOLLOW_EXEC 0x6b05

/*
 * arg is a struct probe_request. These return how many probes `spec` matches; or ENOENT, if it
 * matches none, EINVAL, or EAGAIN (too many sessions), and then `err` has a sentence.
 */

/** Switches on; the log records. Classes, globs and names as of the sysctl debug.ktr.on. */
#define PROBE_ON 0x6b02
/**
 * Switches on by names of probes. Nothing is recorded: calls of functions are counted and timed,
 * and read from the sysctl debug.fbt.profile. EBUSY: another session counts, or this one records.
 * ENOMEM.
 */
#define PROBE_COUNT 0x6b03
/** Switches off for this session. */
#define PROBE_OFF 0x6b04

struct probe_request {
	char spec[256]; /* in */
	char err[256];  /* out, when the request fails */
};
