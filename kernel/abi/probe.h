/*
 * probe.h - requests of /dev/probe (ioctl). Who opens the device has a session: probes that it
 * switches on are on until it switches them off, or the last descriptor of the open file is closed,
 * however its process ends. Only user 0 may open it.
 *
 * PROBE_FOLLOW  arg is a process id. From now on, probes of this session fire only for that process
 *               and for those that it makes from now on. The first request: EBUSY after others.
 *               ESRCH: no such process. EBUSY also: another session follows it. EAGAIN: too many
 * sessions with PROBE_FOLLOW or PROBE_COUNT. PROBE_ON      arg is a struct probe_request. Switches
 * on; the log records. Classes, globs and names as of the sysctl debug.ktr.on. PROBE_COUNT   The
 * same, for names of probes. Nothing is recorded: calls of functions are counted and timed, and
 * read from the sysctl debug.fbt.profile. EBUSY: another session counts, or this one records.
 * ENOMEM. PROBE_OFF     Switches off for this session.
 *
 * The last three return how many probes `spec` matches; or ENOENT, if it matches none, or EINVAL,
 * and `err` has a sentence.
 */
#pragma once

#include <stdint.h>

#define PROBE_FOLLOW 0x6b01
#define PROBE_ON     0x6b02
#define PROBE_COUNT  0x6b03
#define PROBE_OFF    0x6b04

struct probe_request {
	char spec[256]; /* in */
	char err[256];  /* out, when the request fails */
};
