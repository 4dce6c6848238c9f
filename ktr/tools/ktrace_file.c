/*
 * ktrace_file.c - the records of ktrace as events, with the formats that model/activity_meaning.c
 * knows.
 *
 * After a process has lost the CPU, a thread called "untraced" has it.
 */
#include "ktr/tools/ktrace_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/abi/ktrace.h"
#include "ktr/class.h"

#define CALLS     2048u /* numbers of system calls; the last stands for greater ones */
#define SITE_CALL 64u   /* the site of call 0; those of the types come first */
#define SITE_RUNS 32u   /* the site of KTR_CSW without a wmesg */
#define TEXT_MAX  256u
#define AT_ONCE   4096u /* records that are told before the merge passes them on */
#define STATE     "KTRGRAPH group:\"thread\", id:\"%s\", state:\"%s\", attributes: "
#define UNTRACED  UINT32_MAX /* thread number on CPU 0; that on CPU 1 is one less */

#define SYSCALL(number, name, ...) [number] = #name,
static const char *const calls_x86_64[CALLS] = {
#include "kernel/abi/x86_64/syscalls.def"
};
static const char *const calls_aarch64[CALLS] = {
#include "kernel/abi/aarch64/syscalls.def"
};
#undef SYSCALL

static const struct machine {
	uint16_t id; /* ELF's e_machine */
	const char *name;
	const char *const *calls;
} machines[] = {{62, "x86_64", calls_x86_64}, {183, "aarch64", calls_aarch64}};

static const struct kind {
	uint64_t classes;
	const char *fmt;
	const char *sizes; /* bytes of each number; "": a text */
} kinds[SITE_CALL] = {
    [KTR_SYSCALL] = {KTR_SYSC,
		     "syscall %s: arg0 %%#lx arg1 %%#lx arg2 %%#lx arg3 %%#lx "
		     "arg4 %%#lx arg5 %%#lx",
		     "44"},
    [KTR_SYSRET] = {KTR_SYSC, "sysret %s: ret %%ld", "448"},
    [KTR_NAMEI] = {KTR_VFS, "lookup: path %s", ""},
    [KTR_GENIO] = {KTR_VFS, "GIO: fd %d write %d bytes %lu", "448"},
    [KTR_PSIG] = {KTR_SIG, "signal: sig %d code %d action %#lx mask %#lx", "4488"},
    [KTR_CSW] = {KTR_SCHED, STATE "wmesg:\"%s\"", "4488"},
    [KTR_CSW + SITE_RUNS] = {KTR_SCHED, STATE "none", "44"},
    [KTR_USER] = {KTR_GEN, "utrace: %s", ""},
    [KTR_STRUCT] = {KTR_SYSC, "struct: %s", ""},
    [KTR_SYSCTL] = {KTR_SYSC, "sysctl: %s", ""},
    [KTR_PROCCTOR] = {KTR_PROC, "ktrace begin: parent %u facs %#x", "44"},
    [KTR_PROCDTOR] = {KTR_PROC, "ktrace end: exited %u status %#x", "44"},
    [KTR_FAULT] = {KTR_TRAP, "page fault: va %#lx access %u", "84"},
    [KTR_FAULTEND] = {KTR_TRAP, "page fault exit: va %#lx served %d", "84"},
};

struct record {
	uint64_t ns;
	const uint8_t *at;
};

static const struct ktr_decoder_ops *ops;
static void *ops_arg;
static const struct machine *machine;
static struct ktr_decode_header header;
static uint64_t seqs[KTR_DECODE_CPUS]; /* of each CPU's next event */

static const struct machine *
machine_of(uint16_t id)
{
	return id == machines[0].id ? &machines[0] : id == machines[1].id ? &machines[1] : NULL;
}

bool
ktrace_decided(const uint8_t *bytes, size_t n)
{
	return n >= sizeof(struct ktr_header) || (n > 0 && bytes[0] == 0);
}

bool
ktrace_is(const uint8_t *bytes, size_t n)
{
	struct ktr_header h;
	if (n < sizeof(h))
		return false;
	memcpy(&h, bytes, sizeof(h));
	return h.ktr_version == KTR_VERSION1 && h.ktr_spare == 0 && h.ktr_len <= KTR_LEN_MAX &&
	       memchr(h.ktr_comm, 0, KTR_COMM_SIZE) != NULL && machine_of(h.ktr_machine) != NULL;
}

/* The site of that number. If it is of a system call, the call's name goes into its format; else
 * call is NULL. Returns NULL if there is no memory. */
static const struct ktr_decode_site *
site_get(unsigned number, const struct kind *kind, const char *call)
{
	/* Sites of each machine, whose system calls have numbers of their own. */
	static struct ktr_decode_site
	    *sites[sizeof(machines) / sizeof(machines[0])][SITE_CALL + 2 * CALLS];
	struct ktr_decode_site **place = &sites[machine - machines][number], *s = *place;
	if (s != NULL)
		return s;
	s = calloc(1, sizeof(*s) + TEXT_MAX);
	if (s == NULL)
		return NULL;
	char *fmt = (char *)(s + 1);
	snprintf(fmt, TEXT_MAX, call != NULL ? kind->fmt : "%s", call != NULL ? call : kind->fmt);
	s->number = number;
	s->classes = kind->classes;
	s->file = s->func = "ktrace";
	s->fmt = fmt;
	for (const char *c = fmt; *c != '\0'; c++)
		s->nargs += *c == '%';
	s->strings = ktr_event_strings(fmt);
	ktr_event_plan(&s->plan, fmt);
	return *place = s;
}

static int
tell(struct ktr_decode_event *e, unsigned number, const struct kind *kind, const char *call)
{
	e->site = site_get(number, kind, call);
	if (e->site == NULL)
		return -ENOMEM;
	e->site_number = number;
	e->nargs = e->site->nargs;
	e->seq = seqs[e->cpu]++;
	ops->event(ops_arg, e);
	return 0;
}

/* The event's thread runs, or does not. */
static int
tell_state(struct ktr_decode_event *e, const char *state, const char *wmesg)
{
	char ident[TEXT_MAX];
	unsigned number = wmesg != NULL ? KTR_CSW : KTR_CSW + SITE_RUNS;
	snprintf(ident, sizeof(ident), "%s tid %u", e->thread, e->tid);
	e->args[0] = KTR_IDENT_TAG << 48 | e->tid;
	e->args[1] = e->args[2] = 1; /* any that is not 0 */
	e->strings[0] = ident;
	e->strings[1] = state;
	e->strings[2] = wmesg;
	return tell(e, number, &kinds[number], NULL);
}

static int
tell_switch(struct ktr_decode_event *e, bool out, const char *state, const char *wmesg)
{
	int error = out ? tell_state(e, state, wmesg) : 0;
	if (out) {
		e->tid = UNTRACED - e->cpu;
		e->thread = "untraced";
	}
	return error == 0 ? tell_state(e, "running", NULL) : error;
}

static void
tell_drops(const struct ktr_header *h, uint64_t ns)
{
	const unsigned cpu = h->ktr_cpu % KTR_DECODE_CPUS;
	const struct ktr_decode_gap gap = {
	    &header, cpu, KTR_GAP_OVERWRITTEN, seqs[cpu], h->ktr_dropped, ns, ns};
	seqs[cpu] += h->ktr_dropped;
	ops->gap(ops_arg, &gap);
}

static int
tell_record(const struct record *r)
{
	struct ktr_header h;
	memcpy(&h, r->at, sizeof(h));
	const uint8_t *data = r->at + sizeof(h);
	unsigned type = h.ktr_type & KTR_TYPE, number = type;
	const struct kind *kind = &kinds[type];
	const char *call = NULL, *wmesg;
	char text[TEXT_MAX];
	struct ktr_decode_event e = {
	    .header = &header,
	    .thread = (const char *)r->at + offsetof(struct ktr_header, ktr_comm),
	    .ticks = r->ns,
	    .cpu = h.ktr_cpu % KTR_DECODE_CPUS,
	    .tid = h.ktr_tid,
	};
	if ((h.ktr_type & KTR_DROP) != 0 && h.ktr_dropped > 0)
		tell_drops(&h, r->ns);
	for (unsigned i = 0; kind->sizes[i] != '\0'; data += kind->sizes[i++] - '0')
		memcpy(&e.args[i], data, (size_t)(kind->sizes[i] - '0'));
	switch (type) {
	case KTR_SYSCALL:
	case KTR_SYSRET:
		call = machine->calls[e.args[0] < CALLS ? e.args[0] : CALLS - 1];
		number = SITE_CALL + 2 * (unsigned)(e.args[0] < CALLS ? e.args[0] : CALLS - 1);
		number += type == KTR_SYSRET;
		call = call != NULL ? call : "unknown";
		e.args[0] = e.args[1] != 0 ? -e.args[1] : e.args[2];
		if (type == KTR_SYSCALL)
			memset(e.args, 0, sizeof(e.args));
		if (type == KTR_SYSCALL)
			memcpy(e.args, data, h.ktr_len - 8 < 48 ? h.ktr_len - 8 : 48);
		break;
	case KTR_CSW:
		wmesg = (const char *)data - KTR_WMESG_SIZE;
		if (wmesg[0] == '\0' || wmesg[KTR_WMESG_SIZE - 1] != '\0')
			return tell_switch(&e, e.args[0] != 0, "runq add", NULL);
		return tell_switch(&e, e.args[0] != 0, "sleep", wmesg);
	case KTR_PROCDTOR:
		return e.args[0] != 0 ? tell_switch(&e, true, "thread exit", NULL) : 0;
	case KTR_NAMEI:
	case KTR_USER:
	case KTR_STRUCT:
	case KTR_SYSCTL:
		snprintf(text, sizeof(text), "%.*s", (int)h.ktr_len, (const char *)data);
		e.args[0] = ktr_data_word((uint32_t)strlen(text), 0);
		e.strings[0] = text;
	}
	return tell(&e, number, kind, call);
}

static int
compare(const void *a, const void *b)
{
	const struct record *x = a, *y = b;
	return x->ns != y->ns ? (x->ns > y->ns) - (x->ns < y->ns)
			      : (x->at > y->at) - (x->at < y->at);
}

/* Is what follows the header as long as its type needs? False also for types that are unknown. */
static bool
good(const struct ktr_header *h, uint64_t offset)
{
	const char *sizes = kinds[h->ktr_type & KTR_TYPE % SITE_RUNS].sizes;
	size_t min = 0;
	if ((h->ktr_type & KTR_TYPE) >= SITE_RUNS || sizes == NULL)
		return false;
	for (; *sizes != '\0'; sizes++)
		min += (size_t)(*sizes - '0');
	if (h->ktr_len < min)
		ops->damage(ops_arg, offset, sizeof(*h) + h->ktr_len, "a record is too short");
	return h->ktr_len >= min;
}

/* Fills in the records, in the order of the file. Returns how many. */
static size_t
scan(struct record *records, const uint8_t *bytes, size_t n)
{
	struct ktr_header h;
	size_t count = 0, next;
	for (size_t at = 0; at < n; at = next) {
		if (!ktrace_is(bytes + at, n - at)) {
			ops->damage(ops_arg, at, n - at, "no record of ktrace");
			break;
		}
		memcpy(&h, bytes + at, sizeof(h));
		next = at + sizeof(h) + h.ktr_len;
		if (next > n)
			ops->damage(ops_arg, at, n - at, "the last record is cut");
		else if (h.ktr_machine != machine->id)
			ops->damage(ops_arg, at, next - at, "a record of another machine");
		else if (good(&h, at))
			records[count++] = (struct record){(uint64_t)h.ktr_sec * 1000000000u +
							       (uint64_t)h.ktr_nsec,
							   bytes + at};
		if (h.ktr_cpu % KTR_DECODE_CPUS >= header.ncpu)
			header.ncpu = h.ktr_cpu % KTR_DECODE_CPUS + 1;
	}
	return count;
}

int
ktrace_read(const struct ktr_decoder_ops *to, void *arg, const uint8_t *bytes, size_t n)
{
	struct record *records = malloc(n / sizeof(struct ktr_header) * sizeof(*records));
	uint16_t id;
	size_t count;
	int error = 0;
	if (records == NULL)
		return -ENOMEM;
	ops = to;
	ops_arg = arg;
	memcpy(&id, bytes + offsetof(struct ktr_header, ktr_machine), sizeof(id));
	machine = machine_of(id);
	header.arch = machine->name;
	header.build = "ktrace";
	header.hz = 1000000000;
	header.ncpu = 0; /* scan() counts them */
	for (unsigned i = 0; i < ktr_class_count; i++)
		header.classes[__builtin_ctzll(ktr_classes[i].bit)] = ktr_classes[i].name;
	count = scan(records, bytes, n);
	qsort(records, count, sizeof(*records), compare);
	memset(seqs, 0, sizeof(seqs));
	header.boot_ticks = count > 0 ? records[0].ns : 0;
	ops->header(arg, &header);
	for (size_t i = 0; error == 0 && i < count; i++) {
		if (i % AT_ONCE == 0 && ops->mark != NULL)
			ops->mark(arg, records[i].ns);
		error = tell_record(&records[i]);
	}
	free(records);
	return error;
}
