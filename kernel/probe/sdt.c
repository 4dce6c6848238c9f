/*
 * sdt.c - the providers of the kernel's own probes (ktr/sdt.h). Each probe is defined in the file
 * that has its tracepoints. doc/probes.md lists them.
 */
#include "ktr/sdt.h"

SDT_PROVIDER_DEFINE(proc);
SDT_PROVIDER_DEFINE(sched);
SDT_PROVIDER_DEFINE(lockstat);
SDT_PROVIDER_DEFINE(vminfo);
SDT_PROVIDER_DEFINE(vfs);
SDT_PROVIDER_DEFINE(callout_execute);
SDT_PROVIDER_DEFINE(sdt);
SDT_PROVIDER_DEFINE(sysinfo);

/* Systems of Linux's events; `sched` is one of them, too. */
SDT_PROVIDER_DEFINE(raw_syscalls);
SDT_PROVIDER_DEFINE(irq);
SDT_PROVIDER_DEFINE(timer);
SDT_PROVIDER_DEFINE(exceptions);
SDT_PROVIDER_DEFINE(kmem);
SDT_PROVIDER_DEFINE(signal);
SDT_PROVIDER_DEFINE(lock);
