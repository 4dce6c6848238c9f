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
