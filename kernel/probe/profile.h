/*
 * profile.h - probes that fire at a rate, as DTrace's: profile-N on each CPU, tick-N on one. N is
 * a rate in Hz, or an interval with one of the units ns, us, ms, s, m, h, d (or nsec ... day).
 *
 * Such a probe is made when it is first named, as in `ktr on 'profile:::profile-997'`. One that is
 * off is freed when its room is needed. Arguments: the pc of the interrupted code if that is the
 * kernel's, else 0; and if it is a program's, else 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes the probes that spec names, with commas between them, as far as they are of this provider
 * and not there yet. A request may name its probes in several calls, of which the first one has
 * `first`: none of its probes is freed to make room for another. 0; or -errno and a sentence in
 * err. Control lock, held from the first call on.
 */
int profile_make_named(const char *spec, bool first, char *err, size_t errlen);
