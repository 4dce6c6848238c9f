/*
 * device.h - /dev/dtrace on the host: dtrace(1) and the program engine in one process. The linker
 * sends dtrace's open() and ioctl() here (--wrap).
 *
 * Of the kernel there are the texts of its probes, and what recorded.c says: probes and their
 * firings. Without that the probes are BEGIN, END and ERROR. Or the programs run in another kernel,
 * with which remote.c speaks. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/abi/dif.h"
#include "ktr/hook.h"

/* Makes /dev/dtrace appear, with a machine of 1 to DIF_CPUS CPUs. May be called again, with more
 * CPUs. */
void device_plug(unsigned cpus);
/* Adds a probe, before the image is loaded, and returns its id. One without a provider only uses
 * up the id. */
uint32_t device_add(const struct dif_probe *p);
/* The probe of an id. */
const struct dif_probe *device_probe(uint32_t id);
/* Are there clauses at the probe? After the image was loaded. */
bool device_wants(uint32_t probe);
/* Does -x cpu=N name it, or nothing? */
bool device_traces(unsigned cpu);
/* Runs the clauses at a probe. False: the tracing has ended. dif_host says who fires. */
bool device_fire(uint32_t probe, unsigned cpu, const struct ktr_firing *f);
/* Is half of a CPU's room for records or aggregations used? It is time to read them. */
bool device_is_full(unsigned cpu);

/*
 * Set by recorded.c: makes the probe of a rate that a clause names; if it cannot, says why. NULL if
 * there are no rates.
 */
extern bool (*device_make_rate)(const char *name, char *err, size_t errlen);

/*
 * Set by remote.c: passes requests of kernel/abi/dif.h to another kernel, as to load, go and stop.
 * Which probes and clauses there are is known here. NULL if programs run here.
 */
extern int (*device_remote)(unsigned long request, void *arg);
/* Serves a request as ioctl() does; -errno. */
int device_request(unsigned long request, void *arg);
/* The image that was loaded, as this machine has it. */
struct dif;
const struct dif *device_image(void);
