/*
 * dtrace.c - /dev/dtrace from a program: what its requests answer, what programs see of a user's
 * process and do to it, and what becomes of a consumer that dies, or gives no sign of life.
 */
#include "tests/user/dtrace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel/abi/dif.h"
#include "kernel/abi/probe.h"

#define BUFSIZE 65536u
#define RET                         \
	{                           \
		DIF_RET, 0, 0, 0, 0 \
	}
#define SECONDS 60
#define PID     4321 /* in a program: the pid that begin() puts there */
#define IF_PID                                                               \
	{DIF_BUILTIN, 1, 0, 0, DIF_B_PID}, {DIF_OR | DIF_IMM, 2, 0, 0, PID}, \
	    {DIF_JEQ, 0, 1, 2, 1},                                           \
	{                                                                    \
		DIF_RET, 0, 0, 0, 1                                          \
	}

static void (*check)(const char *what, long found, long expected);

static struct image {
	struct dif_header h;
	struct dif_clause clauses[4];
	struct dif_insn code[64];
	uint32_t layouts[2];
	struct dif_agg aggs[1];
	char strings[256];
} image;
static uint64_t buffer[BUFSIZE / 8];

#define SECTION(member, n)                                   \
	(struct dif_section)                                 \
	{                                                    \
		(uint32_t) offsetof(struct image, member), n \
	}

/* An image without clauses. */
static void
make(void)
{
	image = (struct image){
	    .h = {.magic = DIF_MAGIC,
		  .version = DIF_VERSION,
		  .size = sizeof(image),
		  .flags = DIF_DESTRUCTIVE,
		  .options = {.bufsize = BUFSIZE, .aggsize = BUFSIZE, .dynvarsize = 4096},
		  .clauses = SECTION(clauses, 0),
		  .code = SECTION(code, 0),
		  .actions = SECTION(code, 0),
		  .layouts = SECTION(layouts, 2),
		  .vars = SECTION(aggs, 0),
		  .aggs = SECTION(aggs, 1),
		  .strings = SECTION(strings, 1),
		  .consumer = SECTION(strings, 0)},
	    .layouts = {64, 8},
	    .aggs = {{.func = DIF_COUNT}}};
}

/* A clause at these probes; where it compares with PID, with that pid. */
static void
put(const char *probes, pid_t pid, const struct dif_insn *code, uint32_t n)
{
	struct dif_header *h = &image.h;

	image.clauses[h->clauses.count++] =
	    (struct dif_clause){h->strings.count, h->code.count, n, 0};
	memcpy(image.strings + h->strings.count, probes, strlen(probes) + 1);
	h->strings.count += (uint32_t)strlen(probes) + 1;
	for (uint32_t i = 0; i < n; i++) {
		image.code[h->code.count] = code[i];
		if (code[i].imm == PID)
			image.code[h->code.count].imm = pid;
		h->code.count++;
	}
}
#define CODE(...)                 \
	(const struct dif_insn[]) \
	{                         \
		__VA_ARGS__       \
	}
#define PUT(probes, pid, ...) \
	put(probes, pid, CODE(__VA_ARGS__), sizeof(CODE(__VA_ARGS__)) / sizeof(struct dif_insn))

static void
quiet(const char *what, long found, long expected)
{
	if (found != expected)
		printf("not ok - %s: found %ld, expected %ld\n", what, found, expected);
}

static int
request(int fd, unsigned what, void *arg)
{
	return ioctl(fd, what, arg) < 0 ? -errno : 0;
}

static int
load(int fd, struct dif_load *l, uint32_t *matches)
{
	*l = (struct dif_load){.image = (uintptr_t)&image,
			       .size = sizeof(image),
			       .matches = (uintptr_t)matches};
	return request(fd, DIF_IOC_LOAD, l);
}

/* A consumer of what has been made, with its probes on. */
static int
begin(void)
{
	int fd = open("/dev/dtrace", O_RDWR);
	struct dif_load l;

	if (load(fd, &l, NULL) != 0 || request(fd, DIF_IOC_GO, NULL) != 0)
		printf("# %s: clause %u instruction %u\n", l.error, l.clause, l.insn);
	return fd;
}

static struct dif_status
status(int fd)
{
	struct dif_status s = {0};

	check("dtrace: status", request(fd, DIF_IOC_STATUS, &s), 0);
	check("dtrace: each firing is counted once", (long)s.fired,
	      (long)(s.predicate_false + s.completed + s.faulted + s.dropped));
	return s;
}

/* Bytes that were taken; -errno. */
static int
take(int fd, unsigned what, uint32_t cpu)
{
	struct dif_read r = {(uintptr_t)buffer, sizeof(buffer), cpu, 0};
	int n = ioctl(fd, what, &r);

	return n < 0 ? -errno : n;
}

/* All records of that layout, of all CPUs; the last one's data into *data. */
static long
records(int fd, unsigned layout, void *data, size_t size)
{
	long n = 0;

	for (uint32_t cpu = 0; cpu < status(fd).cpus; cpu++) {
		int bytes = take(fd, DIF_IOC_RECORDS, cpu);

		for (int at = 0; at < bytes;) {
			const struct dif_record *r = (void *)((char *)buffer + at);

			if (r->layout == layout) {
				memcpy(data, r + 1, size);
				n++;
			}
			at += 8 * r->words;
		}
	}
	return n;
}

static int
probe(int fd, unsigned what, const char *spec)
{
	struct probe_request r = {.spec = ""};

	strcpy(r.spec, spec);
	return request(fd, what, &r);
}

/* What has failed has not begun anything. */
static void
sessions(void)
{
	int one = open("/dev/probe", O_RDWR), other = open("/dev/probe", O_RDWR);

	check("probe: none is counted", probe(one, PROBE_COUNT, "fbt::nothing_such:"), -ENOENT);
	check("probe: who has nothing on is free to record", probe(one, PROBE_ON, "nothing_such"),
	      -ENOENT);
	check("probe: and to follow", request(one, PROBE_FOLLOW, (void *)(uintptr_t)getpid()), 0);
	check("probe: no process", request(other, PROBE_FOLLOW, (void *)99999), -ESRCH);
	check("probe: nobody else counts", probe(other, PROBE_COUNT, "fbt::sys_getppid:"), 0);
	check("probe: now somebody does", probe(one, PROBE_COUNT, "fbt::sys_getppid:"), -EBUSY);
	check("probe: who counts goes on", probe(other, PROBE_COUNT, "fbt::nothing_such:"),
	      -ENOENT);
	close(other);
	check("probe: nobody any more", probe(one, PROBE_COUNT, "fbt::sys_getppid:"), 0);
	close(one);
}

static void
requests(void)
{
	int fd = open("/dev/dtrace", O_RDWR);
	uint32_t matches[4] = {9, 9, 9, 9};
	struct dif_load l;
	struct dif_probe p = {.id = 1};
	union {
		struct dif_load load;
		char all[4096];
	} *page =
	    mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();
	int wait_status;

	if (child == 0)
		_exit(setuid(1000) == 0 && open("/dev/dtrace", O_RDWR) < 0 ? errno : 0);
	waitpid(child, &wait_status, 0);
	check("dtrace: only user 0 opens it", WEXITSTATUS(wait_status), EPERM);
	check("dtrace: go without an image", request(fd, DIF_IOC_GO, NULL), -EINVAL);
	check("dtrace: records without an image", take(fd, DIF_IOC_RECORDS, 0), -EINVAL);
	check("dtrace: no such request", request(fd, 0x44ff, NULL), -ENOTTY);
	check("dtrace: a bad pointer", request(fd, DIF_IOC_LOAD, (void *)8), -EFAULT);
	make();
	PUT("syscall::getppid:", 0, RET);
	page->load = (struct dif_load){.image = (uintptr_t)&image, .size = sizeof(image)};
	mprotect(page, sizeof(*page), PROT_READ);
	check("dtrace: no place for the answer", request(fd, DIF_IOC_LOAD, &page->load), -EFAULT);
	munmap(page, sizeof(*page));
	check("dtrace: then nothing is loaded", request(fd, DIF_IOC_GO, NULL), -EINVAL);
	make();
	PUT("syscall::getppid:entry", 0, {DIF_LD1, 1, 7, 0, 0}, RET);
	check("dtrace: a program that is refused", load(fd, &l, NULL), -EINVAL);
	check("dtrace: and why", strcmp(l.error, "register may have no value"), 0);
	check("dtrace: and where", l.clause * 100 + l.insn, 0);
	make();
	PUT("syscall::getppid:", 0, RET);
	PUT("no:such:probe:", 0, RET);
	check("dtrace: load", load(fd, &l, matches), 0);
	check("dtrace: probes of a clause", matches[0] * 10 + matches[1], 20);
	check("dtrace: clauses at probes", l.matched, 2);
	check("dtrace: load again", load(fd, &l, NULL), -EBUSY);
	check("dtrace: a CPU that is not there", take(fd, DIF_IOC_AGGS, 64), -EINVAL);
	check("dtrace: go", request(fd, DIF_IOC_GO, NULL), 0);
	check("dtrace: go again", request(fd, DIF_IOC_GO, NULL), -EINVAL);
	check("dtrace: the first probe", request(fd, DIF_IOC_PROBE, &p), 0);
	check("dtrace: is BEGIN", strcmp(p.name, "BEGIN"), 0);
	p.id = UINT32_MAX;
	check("dtrace: no more probes", request(fd, DIF_IOC_PROBE, &p), -ENOENT);
	close(fd);
}

/* What a clause counts and records of this process. */
static void
see_this_process(void)
{
	struct {
		uint64_t errno_, result;
		char path[32], name[16];
	} seen;
	struct dif_read nowhere = {8, sizeof(buffer), 0, 0};
	uint64_t sum = 0, begun = 0;
	unsigned refused = 0;
	int fd;

	make();
	PUT("syscall::getppid:entry", getpid(), IF_PID, {DIF_AGG, 0, 0, 0, 0}, RET);
	PUT("syscall::openat:entry", getpid(), IF_PID, {DIF_ARG, 3, 0, 0, 1}, {DIF_OR, 4, 0, 0, 0},
	    {DIF_CALL, 3, 3, 0, DIF_SUB_COPYINSTR}, {DIF_BUILTIN, 5, 0, 0, DIF_B_EXECNAME},
	    {DIF_REC, 0, 0, 0, 0}, {DIF_REC_STR, 0, 3, 0, DIF_PLACE(16, 32)},
	    {DIF_REC_STR, 0, 5, 0, DIF_PLACE(48, 16)}, RET);
	PUT("syscall::openat:return", getpid(), IF_PID, {DIF_BUILTIN, 3, 0, 0, DIF_B_ERRNO},
	    {DIF_ARG, 4, 0, 0, 1}, {DIF_REC, 0, 0, 0, 0}, {DIF_REC8, 0, 3, 0, 0},
	    {DIF_REC8, 0, 4, 0, 8}, RET);
	PUT("dtrace:::BEGIN", 0, {DIF_OR | DIF_IMM, 1, 0, 0, 77}, {DIF_REC, 0, 0, 0, 1},
	    {DIF_REC8, 0, 1, 0, 0}, RET);
	fd = begin();
	check("dtrace: BEGIN has a record", records(fd, 1, &begun, 8), 1);
	check("dtrace: BEGIN's record", (long)begun, 77);
	for (unsigned i = 0; i < 100; i++)
		getppid();
	openat(AT_FDCWD, "/no/such/file", O_RDONLY);
	check("dtrace: stop", request(fd, DIF_IOC_STOP, NULL), 0);
	getppid();
	for (uint32_t cpu = 0; cpu < status(fd).cpus; cpu++) {
		nowhere.cpu = cpu;
		refused += request(fd, DIF_IOC_RECORDS, &nowhere) == -EFAULT;
		refused += request(fd, DIF_IOC_AGGS, &nowhere) == -EFAULT;
		if (take(fd, DIF_IOC_AGGS, cpu) == 24)
			sum += buffer[2];
	}
	check("dtrace: to memory that is not there nothing is given", refused > 1, 1);
	check("dtrace: calls that were counted", (long)sum, 100);
	check("dtrace: nothing was lost", (long)status(fd).dropped, 0);
	check("dtrace: records", records(fd, 0, &seen, sizeof(seen)), 2);
	check("dtrace: errno", (long)seen.errno_, ENOENT);
	check("dtrace: -1", (long)seen.result, -1);
	close(fd);
}

/* A child calls getppid(); the actions of a program at its return stop or end it. */
static int
child_with(struct dif_insn action, pid_t *child)
{
	int go[2], fd;
	char byte = 0;

	pipe(go);
	*child = fork();
	if (*child == 0) {
		read(go[0], &byte, 1);
		getppid();
		_exit(3);
	}
	make();
	PUT("syscall::getppid:return", *child, IF_PID, {DIF_OR | DIF_IMM, 1, 0, 0, SIGTERM}, action,
	    RET);
	fd = begin();
	write(go[1], &byte, 1);
	close(go[0]);
	close(go[1]);
	return fd;
}

static void
act(void)
{
	struct dif_insn stop = {DIF_STOP, 0, 0, 0, 0}, raise = {DIF_RAISE, 0, 1, 0, 0};
	pid_t child;
	int fd = child_with(stop, &child), s = 0;

	waitpid(child, &s, WUNTRACED);
	check("dtrace: stop() stops the process", WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP, 1);
	close(fd);
	kill(child, SIGCONT);
	waitpid(child, &s, 0);
	check("dtrace: which goes on", WIFEXITED(s) && WEXITSTATUS(s) == 3, 1);
	fd = child_with(raise, &child);
	waitpid(child, &s, 0);
	check("dtrace: raise() ends it", WIFSIGNALED(s) && WTERMSIG(s) == SIGTERM, 1);
	close(fd);
}

/* A consumer that is killed leaves nothing; one that does not show up loses its probes. */
static void
lose(void)
{
	struct timespec moment = {0, 700000000}, now, end; /* in which it does not run */
	pid_t child = fork();
	int fd, s;

	make();
	PUT("syscall::getppid:entry", 0, RET);
	if (child == 0) {
		begin();
		raise(SIGKILL);
	}
	waitpid(child, &s, 0);
	check("dtrace: the consumer is killed", WIFSIGNALED(s), 1);
	image.h.options.policy = DIF_RING; /* whose records are read when the probes are off */
	image.h.options.deadman_ns = 1000000;
	fd = begin();
	check("dtrace: its probes are on", take(fd, DIF_IOC_RECORDS, 0), -EINVAL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	do {
		nanosleep(&moment, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (take(fd, DIF_IOC_RECORDS, 0) < 0 && now.tv_sec < end.tv_sec + SECONDS);
	check("dtrace: a consumer without a sign of life is killed", status(fd).state, DIF_KILLED);
	check("dtrace: its probes are off", status(fd).sites, 0);
	close(fd);
}

/* How many probes there are in this process. */
static unsigned
own_probes(int fd)
{
	struct dif_probe p = {.id = 0};
	char provider[16];
	unsigned n = 0;

	snprintf(provider, sizeof(provider), "pid%d", getpid());
	for (; request(fd, DIF_IOC_PROBE, &p) == 0; p.id++)
		n += strcmp(p.provider, provider) == 0;
	return n;
}

/* Makes one, of a consumer without an image. */
static void
probe_self(int fd)
{
	extern const char __executable_start[];
	struct dif_pid p = {.pid = (uint32_t)getpid(),
			    .kind = DIF_PID_ENTRY,
			    .path = "/bin/user_test",
			    .module = "user_test",
			    .function = "make",
			    .name = "entry"};

	p.offset = p.start = (uintptr_t)make - (uintptr_t)__executable_start;
	check("dtrace: a probe in this process", request(fd, DIF_IOC_PID, &p), 0);
	check("dtrace: it is listed", own_probes(fd), 1);
}

int
dtrace_claim(void)
{
	int fd = open("/dev/dtrace", O_RDWR);
	struct dif_status s;
	uint64_t calls = 0;

	check = quiet;
	probe_self(fd);
	if (request(fd, DIF_IOC_ANON, NULL) != 0) {
		printf("nothing to claim: %s\n", strerror(errno));
		return 1;
	}
	check("dtrace: its own consumer's probe", own_probes(fd), 0);
	printf("again: %d\n", request(fd, DIF_IOC_ANON, NULL));
	request(fd, DIF_IOC_STOP, NULL);
	s = status(fd);
	for (uint32_t cpu = 0; cpu < s.cpus; cpu++) {
		int bytes = take(fd, DIF_IOC_RECORDS, cpu);

		for (int at = 0; at < bytes;) {
			const struct dif_record *r = (void *)((char *)buffer + at);

			printf("started: %s\n", (const char *)(r + 1));
			at += 8 * r->words;
		}
		if (take(fd, DIF_IOC_AGGS, cpu) == 24)
			calls += buffer[2];
	}
	printf("calls: %s\n", calls > 20 ? "many" : "few");
	return 0;
}

#define INITIALIZED 4 /* registers */

/* Of a program that is random, but not so random that the verifier refuses it at once. */
static struct dif_insn
random_insn(uint64_t (*below)(uint64_t n), int32_t left)
{
	static const int32_t numbers[] = {0,         1, 8, -1, DIF_PLACE(0, 8), DIF_PLACE(8, 8),
					  0x7fffffff};
	static const uint8_t ops[] = {
	    DIF_ADD,  DIF_MUL,  DIF_SDIV,    DIF_UREM, DIF_OR,        DIF_SAR,        DIF_SLT,
	    DIF_HIGH, DIF_EXT,  DIF_SCMP,    DIF_JA,   DIF_JEQ,       DIF_JULE,       DIF_LD1,
	    DIF_LD8,  DIF_LDS2, DIF_ST4,     DIF_ST8,  DIF_STRING,    DIF_ARG,        DIF_BUILTIN,
	    DIF_UREG, DIF_CALL, DIF_ARGSTR,  DIF_KEY,  DIF_KEY_STR,   DIF_AGG,        DIF_KEY_STACK,
	    DIF_REC,  DIF_REC8, DIF_REC_STR, DIF_EXIT, DIF_REC_STACK, DIF_REC_USTACK, DIF_LOG};
	struct dif_insn i = {below(16) ? ops[below(sizeof(ops))] : (uint8_t)below(256),
			     1 + (uint8_t)below(INITIALIZED), 1 + (uint8_t)below(INITIALIZED),
			     (uint8_t)below(1 + INITIALIZED), (int32_t)below(DIF_B_COUNT)};

	if (i.op >= DIF_JA && i.op <= DIF_JULE)
		i.imm = (int32_t)below((uint64_t)left);
	else if (below(2))
		i.imm = numbers[below(sizeof(numbers) / sizeof(*numbers))];
	else if (below(2) && i.op < DIF_HIGH)
		i.op |= DIF_IMM;
	return i;
}

static void
random_image(uint64_t (*below)(uint64_t n))
{
	static const char *const probes[] = {"BEGIN",
					     "syscall::getppid:entry",
					     "syscall:::return",
					     "profile:::tick-1ms",
					     "fbt:fs::",
					     "no:such::",
					     "::",
					     ""};
	struct dif_insn code[16];
	const uint32_t most = sizeof(code) / sizeof(*code);

	make();
	image.h.aggs.count = below(2) ? 1 : 0;
	for (uint64_t clauses = below(4); clauses > 0; clauses--) {
		uint32_t n = 1 + (uint32_t)below(below(2) ? 8 : most);

		for (uint32_t i = 0; i < n; i++)
			code[i] = i < INITIALIZED ? (struct dif_insn){DIF_OR | DIF_IMM,
								      (uint8_t)(i + 1), 0, 0, 9}
						  : random_insn(below, (int32_t)(n - i));
		if (below(8) != 0)
			code[n - 1] = (struct dif_insn)RET;
		put(probes[below(sizeof(probes) / sizeof(*probes))], 0, code, n);
	}
	for (uint64_t n = below(3) ? 0 : 1 + below(8); n > 0; n--)
		((char *)&image)[below(sizeof(image))] ^= (char)(1 << below(8));
	image.h.flags &= ~DIF_DESTRUCTIVE; /* it may panic the machine */
}

void
dtrace_round(uint64_t (*below)(uint64_t n))
{
	int fd = open("/dev/dtrace", O_RDWR);
	struct dif_load l;

	random_image(below);
	l = (struct dif_load){.image = (uintptr_t)&image - (below(16) ? 0 : 1 + below(4096)),
			      .size =
				  below(16) ? sizeof(image) : (uint32_t)below(2 * sizeof(image))};
	if (request(fd, DIF_IOC_LOAD, &l) == 0)
		request(fd, DIF_IOC_GO, NULL);
	for (uint64_t n = below(40); n > 0; n--) {
		getppid();
		if (below(4) == 0)
			take(fd, DIF_IOC_RECORDS + (unsigned)below(2), (uint32_t)below(9));
		if (below(16) == 0) /* any request, with what it does not expect */
			ioctl(fd, DIF_IOC_LOAD + below(16), below(2) ? (void *)buffer : NULL);
	}
	if (below(2))
		close(fd);
}

void
dtrace_try(void (*is)(const char *what, long found, long expected))
{
	check = is;
	requests();
	sessions();
	see_this_process();
	act();
	lose();
}
