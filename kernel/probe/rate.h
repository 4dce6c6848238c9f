/*
 * rate.h - the N of profile-N and tick-N: a rate in Hz, or an interval with one of the units ns,
 * us, ms, s, m, h, d (kernel/abi/time_units.def). Pure function; any context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds between two firings, 200 us to 1000 d. 0: the text is no rate, and err says why. */
uint64_t rate_period(const char *text, char *err, size_t errlen);
