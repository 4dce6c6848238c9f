/*
 * control_fuzz.c - control messages of sendmsg(): each lies inside of what the program gave, they
 * do not overlap, and what is found for AF_UNIX is what they say.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/net/control.h"
#include "tests/fuzz/fuzz.h"

#define EINVAL_ 22

/* What a walk over all messages finds; the same rules as the kernel's, said in another way. */
struct expected {
	int error;
	unsigned nfds;
	int32_t fds[4096];
	struct ucred cred;
	bool has_cred;
};

static void
expect(struct expected *e, int level, int type, const char *data, size_t len)
{
	if (level != SOL_SOCKET || e->error != 0)
		return;
	if (type == SCM_RIGHTS) {
		memcpy(e->fds + e->nfds, data, len / 4 * 4);
		e->nfds += (unsigned)(len / 4);
		if (e->nfds > SCM_MAX_FD)
			e->error = -EINVAL_;
	} else if (type == SCM_CREDENTIALS && len == 12) {
		memcpy(&e->cred, data, 12);
		e->has_cred = true;
	} else {
		e->error = -EINVAL_;
	}
}

static void
check_walk(const uint8_t *data, size_t size, struct expected *e)
{
	struct control c = {.at = (const char *)data, .left = size};
	const char *end = (const char *)data, *last = end + size;
	int r;

	while ((r = control_next(&c)) == 1) {
		FUZZ_CHECK(c.data - end == 16, "%td bytes before the data", c.data - end);
		FUZZ_CHECK(c.len <= (size_t)(last - c.data), "%zu bytes of data", c.len);
		FUZZ_CHECK(c.at + c.left == last && c.at >= c.data + c.len, "it does not go on");
		FUZZ_CHECK((c.at - (const char *)data) % 8 == 0 || c.left == 0, "not aligned");
		expect(e, c.level, c.type, c.data, c.len);
		end = c.at;
	}
	FUZZ_CHECK(r == 0 ? c.left < 16 : r == -EINVAL_, "the end is %d, %zu left", r, c.left);
	if (e->error == 0)
		e->error = r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct expected e;
	struct unix_control found;
	char *copy;
	int error;

	if (size > sizeof(e.fds))
		return 0;
	copy = malloc(size > 0 ? size : 1); /* an error to read more */
	FUZZ_CHECK(copy != NULL, "no memory");
	memcpy(copy, data, size);
	memset(&e, 0, sizeof(e));
	check_walk((const uint8_t *)copy, size, &e);
	error = unix_control_parse(copy, size, &found);
	FUZZ_CHECK(error == e.error, "found %d, expected %d", error, e.error);
	if (error == 0) {
		FUZZ_CHECK(found.nfds == e.nfds && found.nfds <= SCM_MAX_FD, "%u files",
			   found.nfds);
		FUZZ_CHECK(memcmp(found.fds, e.fds, found.nfds * 4) == 0, "other files");
		FUZZ_CHECK(found.has_cred == e.has_cred, "credentials: %d", found.has_cred);
		FUZZ_CHECK(!e.has_cred || memcmp(&found.cred, &e.cred, 12) == 0, "other ones");
	}
	free(copy);
	return 0;
}
