/*
 * 9p_fuzz.c - a host that answers requests of 9P with whatever it likes. Promises: nothing outside
 * of the reply is read; a reply that is taken is one to the request; names and texts end where they
 * must, and names that are good stay in their directory; an error is an errno; no message is longer
 * than its room, and what was put into one is what comes out.
 */
#include <string.h>

#include "kernel/abi/errno.h"
#include "kernel/fs/9p/9p.h"
#include "tests/fuzz/fuzz.h"

static const uint8_t types[] = {P9_TSTATFS, P9_TLOPEN,   P9_TREADLINK, P9_TGETATTR, P9_TREADDIR,
				P9_TWALK,   P9_TVERSION, P9_TATTACH,   P9_TREAD,    P9_TWRITE};

static void
check_names(struct p9_fcall *rc)
{
	struct p9_dirent d;
	uint32_t before = rc->offset;

	while (rc->offset < rc->size && p9dirent_read(rc, &d)) {
		FUZZ_CHECK(rc->offset > before && rc->offset <= rc->size, "offset %u", rc->offset);
		FUZZ_CHECK(memchr(d.name, '\0', sizeof(d.name)) != NULL, "%s", "no end");
		if (p9_good_name(d.name))
			FUZZ_CHECK(d.name[0] != '\0' && strchr(d.name, '/') == NULL &&
				       strcmp(d.name, ".") != 0 && strcmp(d.name, "..") != 0,
				   "name %s", d.name);
		before = rc->offset;
	}
}

/* Takes the rest of a reply, as the client does. */
static void
take_reply(struct p9_fcall *rc, uint8_t type)
{
	struct p9_stat_dotl st;
	struct p9_rstatfs fs;
	struct p9_qid qid;
	const uint8_t *data;
	char text[64];
	uint16_t w;
	uint32_t n;

	switch (type) {
	case P9_TSTATFS:
		p9pdu_readf(rc, "ddqqqqqqd", &fs.type, &fs.bsize, &fs.blocks, &fs.bfree, &fs.bavail,
			    &fs.files, &fs.ffree, &fs.fsid, &fs.namelen);
		break;
	case P9_TGETATTR:
		p9pdu_readf(rc, "A", &st);
		break;
	case P9_TREADLINK:
		if (p9pdu_readf(rc, "s", text, sizeof(text)))
			FUZZ_CHECK(strlen(text) < sizeof(text), "%zu bytes", strlen(text));
		break;
	case P9_TVERSION:
		p9pdu_readf(rc, "ds", &n, text, sizeof(text));
		break;
	case P9_TWALK:
		p9pdu_readf(rc, "wQ", &w, &qid);
		break;
	case P9_TREAD:
	case P9_TREADDIR:
		if (!p9pdu_readf(rc, "dr", &n, &data))
			break;
		FUZZ_CHECK(data == rc->sdata + rc->offset && n <= rc->size - rc->offset, "%u bytes",
			   n);
		rc->size = rc->offset + n;
		check_names(rc);
		break;
	default:
		p9pdu_readf(rc, "Qd", &qid, &n);
		break;
	}
	FUZZ_CHECK(rc->offset <= rc->size && rc->size <= rc->capacity, "%u of %u", rc->offset,
		   rc->size);
}

static void
check_replies(struct fuzz_input *in)
{
	uint8_t type = types[fuzz_byte(in) % sizeof(types)];
	uint16_t tag = fuzz_byte(in);
	uint32_t length = (uint32_t)fuzz_number(in);
	/* by itself, so that the sanitizer knows its end */
	struct p9_fcall rc = {.sdata = malloc(in->left + 1), .capacity = (uint32_t)in->left};
	int error;

	memcpy(rc.sdata, in->p, in->left);
	if (fuzz_byte(in) % 4 != 0) { /* mostly a header that is right */
		length = rc.capacity;
		p9pdu_prepare(&rc, fuzz_byte(in) % 8 == 0 ? P9_RLERROR : type + 1, tag);
		rc.size = rc.capacity;
		if (rc.capacity >= P9_HDRSZ)
			p9pdu_finalize(&rc);
	}
	error = p9_check_reply(&rc, length, type, tag);
	FUZZ_CHECK(error == 0 || (error < 0 && error >= -133), "error %d", error);
	FUZZ_CHECK(rc.size <= length && rc.size <= rc.capacity && rc.offset <= rc.size,
		   "%u of %u bytes", rc.offset, rc.size);
	if (error == 0) {
		FUZZ_CHECK(rc.sdata[4] == type + 1 && rc.sdata[5] == (uint8_t)tag, "type %u",
			   rc.sdata[4]);
		take_reply(&rc, type);
	}
	free(rc.sdata);
}

/* What is written is what is read, if it fits. */
static void
check_requests(struct fuzz_input *in)
{
	struct p9_fcall pdu = {.capacity = fuzz_byte(in)};
	uint64_t q = fuzz_number(in), q2 = 0;
	uint32_t d = (uint32_t)fuzz_number(in), d2 = 0;
	char text[200] = "", text2[200] = "";
	uint8_t b2 = 0;
	size_t n = fuzz_byte(in) % sizeof(text);
	bool fits;

	for (size_t i = 0; i < n; i++)
		text[i] = (char)(fuzz_byte(in) | 1);
	pdu.sdata = malloc(pdu.capacity + 1);
	p9pdu_prepare(&pdu, P9_TWALK, 1);
	fits = p9pdu_writef(&pdu, "qsdb", q, text, d, 7u);
	FUZZ_CHECK(pdu.size <= pdu.capacity, "%u of %u bytes", pdu.size, pdu.capacity);
	FUZZ_CHECK(!fits || pdu.size == P9_HDRSZ + 15 + n, "%u bytes", pdu.size);
	if (fits) {
		pdu.offset = P9_HDRSZ;
		FUZZ_CHECK(p9pdu_readf(&pdu, "qsdb", &q2, text2, sizeof(text2), &d2, &b2), "%zu",
			   n);
		FUZZ_CHECK(q == q2 && d == d2 && b2 == 7 && strcmp(text, text2) == 0, "%s", text2);
	}
	free(pdu.sdata);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};

	check_requests(&in);
	in = (struct fuzz_input){data, size};
	check_replies(&in);
	return 0;
}
