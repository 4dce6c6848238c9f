/*
 * sysctl_value_fuzz.c - numbers set from text: in range they are what C's parser makes of them.
 * Otherwise the variable is unchanged and an error says why.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/sysctl/value.h"
#include "tests/fuzz/fuzz.h"

#define ROOM    48 /* for a trimmed value; some values do not fit */
#define EINVAL_ 22
#define ERANGE_ 34

/*
 * Parses the text in another way. 128 bits hold every decimal number that fits into ROOM, so
 * nothing overflows. False: not a number.
 */
static bool
reference(const char *text, bool *negative, unsigned __int128 *v)
{
	const unsigned __int128 huge = (unsigned __int128)1 << 100;
	bool hex;

	*negative = text[0] == '-';
	text += text[0] == '-' || text[0] == '+';
	hex = text[0] == '0' && (text[1] | 32) == 'x';
	text += hex ? 2 : 0;
	*v = 0;
	if (text[0] == '\0' || text[strspn(text, hex ? "0123456789abcdefABCDEF" : "0123456789")])
		return false;
	for (; *text != '\0'; text++) {
		const char *digits = "0123456789abcdef";
		char c = *text >= 'A' && *text <= 'F' ? (char)(*text | 32) : *text;
		*v = *v * (hex ? 16 : 10) + (unsigned)(strchr(digits, c) - digits);
		*v = *v > huge ? huge : *v;
	}
	return true;
}

static void
check_int(const char *text, int64_t min, int64_t max, char *err, size_t errlen)
{
	int var = 0x5aa55aa5;
	struct sysctl s = {.type = SYSCTL_TYPE_INT, .var = &var, .min = min, .max = max};
	unsigned __int128 v;
	bool negative, number = reference(text, &negative, &v);
	bool fits = number && v <= INT64_MAX && (negative ? -(int64_t)v : (int64_t)v) >= min &&
		    (negative ? -(int64_t)v : (int64_t)v) <= max;
	int r = sysctl_value_set(&s, text, err, errlen);

	FUZZ_CHECK(r == (fits     ? 0
			 : number ? -ERANGE_
				  : -EINVAL_),
		   "\"%s\" in %jd to %jd: %d", text, (intmax_t)min, (intmax_t)max, r);
	FUZZ_CHECK(var == (fits ? negative ? (int)-(int64_t)v : (int)v : 0x5aa55aa5), "\"%s\": %d",
		   text, var);
	FUZZ_CHECK(fits || (strlen(err) < errlen && (errlen < 2 || err[0] != '\0')), "no reason");
}

static void
check_u64(const char *text, char *err, size_t errlen)
{
	uint64_t var = 0x5aa55aa5;
	struct sysctl s = {.type = SYSCTL_TYPE_U64, .var = &var};
	unsigned __int128 v;
	bool negative, number = reference(text, &negative, &v) && !negative;
	bool fits = number && v <= UINT64_MAX;
	int r = sysctl_value_set(&s, text, err, errlen);

	FUZZ_CHECK(r == (fits ? 0 : number ? -ERANGE_ : -EINVAL_), "\"%s\": %d", text, r);
	FUZZ_CHECK(var == (fits ? (uint64_t)v : 0x5aa55aa5), "\"%s\": %ju", text, (uintmax_t)var);
	FUZZ_CHECK(fits || (strlen(err) < errlen && (errlen < 2 || err[0] != '\0')), "no reason");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	size_t errlen = fuzz_byte(&in) % 100 + 1;
	int min = (int)fuzz_number(&in), max = (int)fuzz_number(&in);
	char *text = strndup((const char *)in.p, in.left), *err = malloc(errlen);
	char trimmed[ROOM];
	const char *at;

	FUZZ_CHECK(text != NULL && err != NULL, "no memory");
	memset(err, 0, errlen);
	if (sysctl_value_trim(trimmed, sizeof(trimmed), text)) {
		at = strstr(text, trimmed);
		FUZZ_CHECK(at != NULL && strspn(text, " \t\n") >= (size_t)(at - text), "\"%s\"",
			   trimmed);
		at += strlen(trimmed);
		FUZZ_CHECK(at[strspn(at, " \t\n")] == '\0', "\"%s\" of \"%s\"", trimmed, text);
		check_int(trimmed, min < max ? min : max, min < max ? max : min, err, errlen);
		check_u64(trimmed, err, errlen);
	} else {
		FUZZ_CHECK(strlen(text) >= sizeof(trimmed), "\"%s\" does not fit", text);
	}
	free(text);
	free(err);
	return 0;
}
