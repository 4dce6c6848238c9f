/*
 * kestrel.h - Kestrel's own system calls, which have no Linux counterpart. They start at 1024.
 *
 * sysctl(op, name, buf, buflen, val, vallen)
 *   A sysctl is a named text value; the same names are loader tunables. Returns the length of the
 *   text (without NUL) or -errno. At most buflen bytes are stored; a text that is longer is cut,
 *   and the full length returned, so that a caller can come again with room. Text that is stored
 *   whole is followed by a NUL when there is room for it.
 *     SYSCTL_GET   value of `name` into buf
 *     SYSCTL_SET   sets `name` to val[0..vallen). When it fails, buf gets a sentence that says what
 *                  was expected, NUL-terminated, and the call returns the errno: ENOENT no such
 *                  name, EPERM read-only or no CAP_SYS_ADMIN, EINVAL wrong type or text, ERANGE out
 *                  of range, others as the variable says (ENOMEM, ENOENT, …).
 *     SYSCTL_NEXT  name that follows `name` in order ("" starts) into buf; ENOENT after the last
 *     SYSCTL_INFO  "TYPE FLAGS DESCRIPTION" into buf: TYPE int|u64|text, FLAGS of r w t (tunable)
 *
 * machine_shutdown(how, status)
 *   Ends the machine in good order: the trace stream gets its end record. EPERM: no CAP_SYS_BOOT.
 *     SHUTDOWN_POWEROFF  with exit status 0..63 (else EINVAL) where the machine can give one
 *     SHUTDOWN_REBOOT
 */
#pragma once

#define SYSCTL_GET  0
#define SYSCTL_SET  1
#define SYSCTL_NEXT 2
#define SYSCTL_INFO 3

/* The most that debug.ktr.entries takes, as in ktr/ring.h. */
#define KTR_ENTRIES_MAX (1u << 24)

#define SHUTDOWN_POWEROFF 0
#define SHUTDOWN_REBOOT   1
