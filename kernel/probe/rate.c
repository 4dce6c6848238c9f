/*
 * rate.c - rates and intervals in names of probes (rate.h). Pure: the kernel's and the host's.
 */
#include "kernel/probe/rate.h"

#include "kernel/lib/string.h"
#include "ktr/fmt.h"
#include "ktr/word.h"

#define MIN_NS 200000ul /* as DTrace: more would leave a CPU no time for anything else */
#define MAX_NS (1000ul * 86400 * 1000000000)

uint64_t
rate_period(const char *text, char *err, size_t errlen)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
#define X(name, ns) {name, ns},
#include "kernel/abi/time_units.def"
#undef X
	};
	enum { COUNT = sizeof(units) / sizeof(units[0]) };
	size_t digits = 0;
	uint64_t n = 0, ns;
	unsigned i = 0;

	while (text[digits] >= '0' && text[digits] <= '9')
		digits++;
	while (i < COUNT && strcmp(units[i].name, text + digits) != 0)
		i++;
	if (digits == 0 || i == COUNT || ktr_number(text, digits, 10, &n) != KTR_NUMBER_OK) {
		fmt_snprintf(
		    err, errlen,
		    "\"%.40s\": expected a rate in Hz, or an interval with one of the units ns, us, ms, s, m, h, d",
		    text);
		return 0;
	}
	if (units[i].ns == 0)
		ns = n == 0 ? 0 : 1000000000 / n;
	else
		ns = n <= MAX_NS / units[i].ns ? n * units[i].ns : UINT64_MAX;
	if (ns >= MIN_NS && ns <= MAX_NS)
		return ns;
	fmt_snprintf(err, errlen,
		     "\"%.40s\": expected 1 to 5000 Hz, or an interval of 200us to 1000d", text);
	return 0;
}
