/*
 * stream.c - reads the records of a file, checks and prints them. No length in the file is trusted.
 * After a header that cannot be one, nothing says where the next begins: there reading ends.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/kdump/kdump.h"
#include "userland/bin/kdump/points.h"

struct kdump_options kdump_options = {.max_data = UINT64_MAX, .points = KTR_POINTS_ALL, .pid = -1};

/* A record's type: how kdump calls it, and the least length of what follows the header. */
struct kind {
	const char *name;
	size_t min;
};

static const struct kind kinds[] = {
    [KTR_SYSCALL] = {"CALL", sizeof(struct ktr_syscall)},
    [KTR_SYSRET] = {"RET", sizeof(struct ktr_sysret)},
    [KTR_NAMEI] = {"NAMI", 0},
    [KTR_GENIO] = {"GIO", sizeof(struct ktr_genio)},
    [KTR_PSIG] = {"PSIG", sizeof(struct ktr_psig)},
    [KTR_CSW] = {"CSW", sizeof(struct ktr_csw)},
    [KTR_USER] = {"USER", 0},
    [KTR_STRUCT] = {"STRU", 1},
    [KTR_SYSCTL] = {"SCTL", 0},
    [KTR_PROCCTOR] = {"CTOR", sizeof(struct ktr_proc_ctor)},
    [KTR_PROCDTOR] = {"DTOR", sizeof(struct ktr_proc_dtor)},
    [KTR_FAULT] = {"PFLT", sizeof(struct ktr_fault)},
    [KTR_FAULTEND] = {"PRET", sizeof(struct ktr_faultend)},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *
kdump_type(unsigned type)
{
	return type < KINDS ? kinds[type].name : NULL;
}

const struct kdump_machine *
kdump_machine(uint16_t id)
{
	return id == kdump_x86_64.id    ? &kdump_x86_64
	       : id == kdump_aarch64.id ? &kdump_aarch64
					: NULL;
}

const struct kdump_call *
kdump_call(const struct kdump_machine *m, uint32_t code)
{
	for (size_t i = 0; m != NULL && i < m->ncalls; i++)
		if (m->calls[i].code == code)
			return &m->calls[i];
	return NULL;
}

const uint8_t *
kdump_struct(const struct ktr_header *h, const uint8_t *data, size_t *size)
{
	const uint8_t *end = memchr(data, 0, h->ktr_len);

	if (end == NULL)
		return NULL;
	*size = h->ktr_len - (size_t)(end + 1 - data);
	return end + 1;
}

/* What is wrong with what follows a header, or NULL. */
static const char *
check_data(const struct ktr_header *h, const uint8_t *data)
{
	static char why[96];
	unsigned type = h->ktr_type & KTR_TYPE;
	size_t min = type < KINDS ? kinds[type].min : 0, size;
	const struct ktr_syscall *call = (const void *)data;

	if (kdump_machine(h->ktr_machine) == NULL)
		snprintf(why, sizeof(why), "machine %u, expected %u or %u", h->ktr_machine,
			 kdump_x86_64.id, kdump_aarch64.id);
	else if (h->ktr_len < min)
		snprintf(why, sizeof(why), "%u bytes, expected %zu or more", h->ktr_len, min);
	else if (type == KTR_SYSCALL && call->ktr_narg != (h->ktr_len - sizeof(*call)) / 8)
		snprintf(why, sizeof(why), "%u arguments in %u bytes", call->ktr_narg, h->ktr_len);
	else if (type == KTR_STRUCT && kdump_struct(h, data, &size) == NULL)
		snprintf(why, sizeof(why), "a struct's name without an end");
	else
		return NULL;
	return why;
}

/* What later records are compared with. */
struct dump {
	uint64_t offset; /* of the record in the file */
	bool started;    /* a record has been printed */
	int64_t first_sec, first_nsec, last_sec, last_nsec;
};

static void
print_time(int64_t sec, int64_t nsec, int64_t from_sec, int64_t from_nsec)
{
	bool back = sec < from_sec || (sec == from_sec && nsec < from_nsec);
	/* A damaged file may have any numbers: unsigned ones wrap, and do no harm. */
	uint64_t s = (uint64_t)sec - (uint64_t)from_sec;
	int64_t ns = back ? from_nsec - nsec : nsec - from_nsec;

	if (back)
		s = -s;
	if (ns < 0) {
		s--;
		ns += 1000000000;
	}
	printf("%s%lu.%09ld ", back ? "-" : "", s, ns);
}

/* The first columns. type NULL: unknown. */
static void
print_columns(struct dump *d, const struct ktr_header *h, const char *type)
{
	char number[8];

	if (!d->started) {
		d->first_sec = d->last_sec = h->ktr_sec;
		d->first_nsec = d->last_nsec = h->ktr_nsec;
		d->started = true;
	}
	printf("%6u ", h->ktr_pid);
	if (kdump_options.tid)
		printf("%6u ", h->ktr_tid);
	kdump_print_bytes((const uint8_t *)h->ktr_comm, strnlen(h->ktr_comm, KTR_COMM_SIZE));
	for (size_t n = strnlen(h->ktr_comm, KTR_COMM_SIZE); n < 8; n++)
		putchar(' ');
	putchar(' ');
	if (kdump_options.absolute)
		print_time(h->ktr_sec, h->ktr_nsec, 0, 0);
	if (kdump_options.elapsed)
		print_time(h->ktr_sec, h->ktr_nsec, d->first_sec, d->first_nsec);
	if (kdump_options.relative)
		print_time(h->ktr_sec, h->ktr_nsec, d->last_sec, d->last_nsec);
	d->last_sec = h->ktr_sec;
	d->last_nsec = h->ktr_nsec;
	snprintf(number, sizeof(number), "%u", h->ktr_type & KTR_TYPE);
	printf("%-4s  ", type != NULL ? type : number);
	if (kdump_options.abi)
		printf("L64  "); /* all programs are Linux's, of 64 bits */
}

static bool
wanted(const struct ktr_header *h)
{
	unsigned type = h->ktr_type & KTR_TYPE;

	if (kdump_options.pid >= 0 && h->ktr_pid != kdump_options.pid &&
	    h->ktr_tid != kdump_options.pid)
		return false;
	/* FreeBSD's kdump learns from these records whose system calls the others have. */
	if (kdump_options.freebsd != NULL && (type == KTR_PROCCTOR || type == KTR_PROCDTOR))
		return true;
	return type >= KINDS || kinds[type].name == NULL ||
	       (kdump_options.points & 1u << type) != 0;
}

static void
print_record(struct dump *d, const struct ktr_header *h, const uint8_t *data)
{
	unsigned type = h->ktr_type & KTR_TYPE;

	if (kdump_options.freebsd != NULL) {
		kdump_freebsd(h, data);
		return;
	}
	if (kdump_options.jsonl) {
		kdump_json(h, data);
		return;
	}
	if (h->ktr_type & KTR_DROP) {
		print_columns(d, h, "DROP");
		printf("%u event%s dropped\n", h->ktr_dropped, h->ktr_dropped == 1 ? "" : "s");
	}
	/* As in FreeBSD, these are for programs. */
	if (type == KTR_PROCCTOR || type == KTR_PROCDTOR)
		return;
	print_columns(d, h, kdump_type(type));
	kdump_text(h, data);
}

/* Reads n bytes, or what is there. */
static size_t
fill(int64_t (*read)(void *arg, void *buf, size_t len), void *arg, void *buf, size_t n)
{
	size_t have = 0;

	while (have < n) {
		int64_t got = read(arg, (char *)buf + have, n - have);

		if (got <= 0)
			break;
		have += (size_t)got;
	}
	return have;
}

/* Says what is wrong with a header; NULL: nothing that would end the reading. */
static const char *
check_header(const struct ktr_header *h)
{
	static char why[96];

	if (h->ktr_version != KTR_VERSION1)
		snprintf(why, sizeof(why), "version %u, expected %u", h->ktr_version, KTR_VERSION1);
	else if (h->ktr_len > KTR_LEN_MAX)
		snprintf(why, sizeof(why), "a record of %u bytes, expected at most %u", h->ktr_len,
			 KTR_LEN_MAX);
	else if (h->ktr_nsec < 0 || h->ktr_nsec >= 1000000000)
		snprintf(why, sizeof(why), "%ld ns, expected less than a second", h->ktr_nsec);
	else
		return NULL;
	return why;
}

int
kdump_stream(int64_t (*read)(void *arg, void *buf, size_t len), void *arg)
{
	struct dump d = {0};
	/* aligned for the structs of all types; a byte more, so that it is never empty */
	uint64_t *data = malloc(KTR_LEN_MAX + 8);
	int status = 0;
	struct ktr_header h;
	size_t n;

	if (data == NULL)
		errx(1, "no memory for a record");
	while ((n = fill(read, arg, &h, sizeof(h))) == sizeof(h)) {
		const char *why = check_header(&h);

		if (why != NULL) {
			warnx("offset %lu: no record: %s", d.offset, why);
			status = 1;
			n = 0;
			break;
		}
		n = fill(read, arg, data, h.ktr_len);
		if (n < h.ktr_len) {
			n += sizeof(h);
			break;
		}
		why = check_data(&h, (const uint8_t *)data);
		if (why != NULL) {
			warnx("offset %lu: a damaged record of type %u: %s", d.offset,
			      h.ktr_type & KTR_TYPE, why);
			status = 1;
		} else {
			kdump_lives(&h);
			if (wanted(&h))
				print_record(&d, &h, (const uint8_t *)data);
		}
		d.offset += sizeof(h) + h.ktr_len;
	}
	if (n > 0) {
		warnx("offset %lu: the last record is cut: %zu bytes", d.offset, n);
		status = 1;
	}
	free(data);
	return kdump_misses() ? 1 : status;
}
