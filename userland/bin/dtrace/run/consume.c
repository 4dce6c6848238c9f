/*
 * consume.c - traces: loads an image into the kernel, reads what comes out, and prints it in the
 * order of time.
 */
#include "userland/bin/dtrace/read/read.h"
#include "userland/bin/dtrace/run/run.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/options.h"

#define DEVICE  "/dev/dtrace"
#define POLL_NS 50000000u /* how often it looks whether the tracing has ended; sooner at first */

static int device = -1;

/* What was read of each CPU and is not printed yet. */
static struct queue {
	uint8_t *data;
	size_t size, at;
} queues[MAX_CPUS];
static uint64_t early; /* records that were printed before their time */

static bool
open_device(void)
{
	if (device < 0)
		device = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0 && (errno == EPERM || errno == EACCES))
		errx(1, "failed to initialize dtrace: DTrace requires additional privileges");
	return device >= 0;
}

bool
consume_describe(struct dif_probe *p)
{
	return open_device() && ioctl(device, DIF_IOC_PROBE, p) >= 0;
}

bool
consume_program(struct dif_program *p)
{
	return ioctl(device, DIF_IOC_PROGRAM, p) >= 0;
}

bool
consume_pid(struct dif_pid *p)
{
	return open_device() && ioctl(device, DIF_IOC_PID, p) >= 0;
}

uint32_t
consume_probe_of(uint32_t epid)
{
	struct dif_epid e = {.epid = epid};

	return ioctl(device, DIF_IOC_EPID, &e) >= 0 ? e.probe : 0;
}

/* ---- loading ---- */

/* The image of the tracing that began with the boot. */
static void *
claim(void)
{
	struct dif_read r = {0};
	void *image;
	int size;

	if (ioctl(device, DIF_IOC_ANON) < 0) {
		if (errno == ENOENT)
			errx(1, "no anonymous tracing to claim: none began with the boot");
		err(1, "failed to claim the anonymous tracing");
	}
	size = ioctl(device, DIF_IOC_IMAGE, &r);
	image = size > 0 ? malloc((size_t)size) : NULL;
	if (image == NULL)
		err(1, "failed to claim the anonymous tracing");
	r.buf = (uintptr_t)image;
	r.size = (uint64_t)size;
	if (ioctl(device, DIF_IOC_IMAGE, &r) < 0)
		err(1, "failed to claim the anonymous tracing");
	return image;
}

/* ---- losses ---- */

static void
say_drops(const char *tag, const char *what, uint64_t now, uint64_t then, const char *why)
{
	if (now > then)
		warnx("%s%s%s%lu %s%s%s", dt_options.droptags ? "[DTRACEDROP_" : "",
		      dt_options.droptags ? tag : "", dt_options.droptags ? "] " : "",
		      (unsigned long)(now - then), what, now - then > 1 ? "s" : "", why);
}

/* Says the drops of a buffer or a table, which each CPU has. */
static void
say_cpu_drops(uint32_t cpus)
{
	static struct dif_drops said[MAX_CPUS];

	for (uint32_t cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++) {
		struct dif_drops now = {.cpu = cpu};
		const char *why = dt_format(" on CPU %u", cpu);

		if (ioctl(device, DIF_IOC_DROPS, &now) < 0)
			err(1, "drops");
		say_drops("PRINCIPAL", "drop", now.buf_drops, said[cpu].buf_drops, why);
		say_drops("AGGREGATION", "aggregation drop", now.agg_drops, said[cpu].agg_drops,
			  why);
		said[cpu] = now;
	}
}

static void
say_losses(const struct dif_status *s)
{
	static struct dif_status said;
	static uint64_t said_early;

	if (s->buf_drops > said.buf_drops || s->agg_drops > said.agg_drops)
		say_cpu_drops(s->cpus);
	say_drops("DYNAMIC", "dynamic variable drop", s->dynvar_drops, said.dynvar_drops, "");
	say_drops("SPEC", "speculative drop", s->spec_drops, said.spec_drops, "");
	say_drops("SPECBUSY", "failed speculation", s->spec_busy, said.spec_busy,
		  " (available buffer(s) still busy)");
	say_drops("SPECUNAVAIL", "failed speculation", s->spec_none - s->spec_busy,
		  said.spec_none - said.spec_busy, " (no speculative buffer available)");
	say_drops("DBLERROR", "error", s->error_faults, said.error_faults,
		  " in ERROR probe enabling");
	say_drops("EARLY", "record", early, said_early,
		  " printed out of order: later than the clock of the kernel");
	said_early = early;
	said = *s;
}

/* ---- reading ---- */

/* Reads what a request gives of a CPU into buf of `size` bytes. Returns how many. */
static size_t
read_cpu(unsigned long request, uint32_t cpu, void *buf, size_t size)
{
	struct dif_read r = {.buf = (uintptr_t)buf, .size = size, .cpu = cpu};
	int n = ioctl(device, request, &r);

	if (n < 0 && !(errno == EINVAL && dt_options.bufpolicy == DIF_RING))
		err(1, "failed to read CPU %u", cpu);
	return n > 0 ? (size_t)n : 0;
}

static const struct dif_record *
peek(struct queue *q)
{
	const struct dif_record *r;

	while (q->size - q->at >= sizeof(*r)) {
		r = (const void *)(q->data + q->at);
		if (r->words < sizeof(*r) / 8 || 8u * r->words > q->size - q->at)
			break;
		if (r->layout != DIF_VOID)
			return r;
		q->at += 8u * r->words;
	}
	return NULL;
}

/* Adds what a CPU has recorded since the last time. */
static void
fill_queue(struct queue *q, uint32_t cpu, size_t bufsize)
{
	size_t kept = q->size - q->at;
	uint8_t *data = malloc(kept + bufsize + 8);

	if (data == NULL)
		err(1, "memory");
	if (kept > 0)
		memcpy(data, q->data + q->at, kept);
	free(q->data);
	q->data = data;
	q->size = kept + read_cpu(DIF_IOC_RECORDS, cpu, data + kept, bufsize);
	q->at = 0;
}

/*
 * Prints, in the order of time, what all CPUs have recorded before `until`. CPUs are read one after
 * the other, so a CPU may have younger records that were not read yet. Returns how many it printed.
 */
static uint64_t
print_queues(uint32_t cpus, uint64_t until)
{
	for (uint64_t n = 0;; n++) {
		const struct dif_record *first = NULL;
		uint32_t of = 0;

		for (uint32_t cpu = 0; cpu < cpus; cpu++) {
			const struct dif_record *r = peek(&queues[cpu]);

			if (r != NULL && (first == NULL || r->time < first->time)) {
				first = r;
				of = cpu;
			}
		}
		if (first == NULL || first->time > until)
			return n;
		queues[of].at += 8u * first->words;
		output_record(of, first, peek(&queues[of]));
	}
}

/* The latest time of the records that must be printed before the buffers are left. 0: none has. */
static uint64_t
latest_beyond(struct queue q, size_t bufsize)
{
	const struct dif_record *r;
	uint64_t latest = 0;

	for (; q.size - q.at > bufsize && (r = peek(&q)) != NULL; q.at += 8u * r->words)
		latest = r->time > latest ? r->time : latest;
	return latest;
}

/*
 * Records wait here that are later than the time which the kernel told: at most a buffer of each
 * CPU. If more wait, the clock of a CPU is wrong, and there might be no end of them. Then the
 * oldest of all CPUs are printed, so that those of the right clocks stay in order.
 */
static void
print_early(uint32_t cpus, size_t bufsize)
{
	uint64_t until = 0;

	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		uint64_t latest = latest_beyond(queues[cpu], bufsize);

		until = latest > until ? latest : until;
	}
	if (until > 0)
		early += print_queues(cpus, until);
}

/* Reads records and aggregations, as wanted, and prints them. s: the status just before. */
static void
work(const struct dif_status *s, bool records, bool aggs)
{
	bool ended = s->state == DIF_STOPPED || s->state == DIF_KILLED;
	uint32_t cpus = s->cpus < MAX_CPUS ? s->cpus : MAX_CPUS;
	size_t bufsize = view.image->options.bufsize, aggsize = view.image->options.aggsize;
	void *table = malloc(aggsize + 8);

	if (table == NULL)
		err(1, "memory");
	for (uint32_t cpu = 0; cpu < cpus && records && bufsize > 0; cpu++)
		fill_queue(&queues[cpu], cpu, bufsize);
	/* Records from before the aggregations were read find them as they were, or later. */
	for (uint32_t cpu = 0; cpu < cpus && aggs && view.agg_count > 0 && aggsize > 0; cpu++)
		agg_add(cpu, table, read_cpu(DIF_IOC_AGGS, cpu, table, aggsize));
	print_queues(cpus, ended ? UINT64_MAX : s->time);
	print_early(cpus, bufsize);
	output_flush();
	free(table);
}

/* Waits that long for ^C and its like. True: one came. */
static bool
wait_signal(const sigset_t *signals, uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	return sigtimedwait(signals, NULL, &ts) > 0;
}

static struct dif_status
status(void)
{
	struct dif_status s;

	if (ioctl(device, DIF_IOC_STATUS, &s) < 0)
		err(1, "status");
	return s;
}

void
consume_live(void)
{
	status();
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A rate of up to a second is as fast as it can be; a slower one was asked for, and is kept. */
static bool
is_due(uint64_t next, uint64_t rate)
{
	return rate <= 1000000000 || now_ns() >= next;
}

/*
 * Reads and prints until the tracing ends; true if the user has ended it. Buffers are read at the
 * rates that are set, and sooner if one is half full.
 */
static bool
trace(const sigset_t *signals)
{
	uint64_t last = now_ns(), last_status = last, next_aggs = last, poll = POLL_NS / 64;
	bool ring = view.image->options.policy != DIF_SWITCH;

	for (;;) {
		/* setopt() may have changed them. */
		uint64_t next =
		    last + (dt_options.switchrate < dt_options.aggrate ? dt_options.switchrate
								       : dt_options.aggrate);
		uint64_t next_status = last_status + dt_options.statusrate;
		uint64_t now = now_ns(), until = next < next_status ? next : next_status;
		uint64_t sleep = until > now ? until - now : 1000;
		struct dif_status s;

		if (wait_signal(signals, sleep < poll ? sleep : poll))
			return true;
		poll = poll < POLL_NS ? 2 * poll : POLL_NS;
		s = status();
		if ((s.state != DIF_ACTIVE && is_due(next_status, dt_options.statusrate)) ||
		    target_all_ended())
			return false;
		bool half = !ring && s.fullest > view.image->options.bufsize / 2;

		if (now_ns() >= next || half) {
			bool aggs = is_due(next_aggs, dt_options.aggrate);

			work(&s, !ring, aggs);
			next_aggs = aggs ? now_ns() + dt_options.aggrate : next_aggs;
			last = half ? last : now_ns();
			poll = half ? POLL_NS / 8 : poll;
		}
		if (now_ns() >= next_status) {
			say_losses(&s);
			last_status = now_ns();
		}
	}
}

/* ---- a recorded trace (-r) ---- */

static const char *recorded; /* the file; NULL: the kernel is traced */
static bool damaged;         /* the trace is not whole, as a message says */
static sigset_t ends_replay;
static bool interrupted;

void
consume_recorded(const char *path)
{
	if (recorded_open == NULL)
		errx(2, "-r: the host's dtrace reads recorded traces, this one traces");
	recorded = path;
	if (!recorded_open(path))
		exit(1); /* it has said why */
}

/* Takes and prints what there is. False: the tracing ends. */
static bool
drain(void)
{
	struct dif_status s = status();

	work(&s, view.image->options.policy == DIF_SWITCH, true);
	say_losses(&s);
	interrupted = wait_signal(&ends_replay, 0);
	return !interrupted && s.state == DIF_ACTIVE;
}

/* Fires what was recorded. True: the user has ended it. */
static bool
replay(const sigset_t *signals)
{
	int status;

	ends_replay = *signals;
	status = recorded_run(drain);
	if (status > 1)
		errx(1, "failed to read %s", recorded);
	damaged = status == 1;
	return interrupted;
}

int
consume(void *image, struct source *sources, const char *output, bool leave)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	struct dif_status s;
	sigset_t signals;
	const char *typed = option_text();
	uint64_t no_matches;

	if (!open_device())
		err(1, "failed to initialize dtrace: " DEVICE "%s",
		    recorded_open != NULL ? " (the host's dtrace needs -r FILE or -T LINE)" : "");
	print_out = stdout;
	if (output != NULL && (print_out = fopen(output, "w")) == NULL)
		err(1, "failed to open %s", output);
	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(&signals, ends[i]);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	no_matches = image == NULL;
	if (no_matches)
		image = claim();
	if (!view_open(image))
		errx(1, "the image is not this program's");
	if (no_matches) {
		option_set_text(view.options);
		option_set_text(typed);
	}
	if (recorded == NULL && (dt_options.since != NULL || dt_options.until != NULL))
		errx(2, "-x since, until: they choose of a recorded trace: expected -r");
	if (recorded != NULL)
		recorded_limit();
	if (!no_matches)
		load_image(device, image, sources);
	if (!no_matches && ioctl(device, DIF_IOC_GO) < 0)
		err(1, "could not enable tracing");
	if (dt_destructive && !dt_options.quiet)
		warnx("allowing destructive actions");
	target_go();
	if (recorded != NULL ? replay(&signals) : (!no_matches || !leave) && trace(&signals))
		fprintf(print_out, "\n"); /* after the ^C */
	ioctl(device, DIF_IOC_STOP);
	s = status();
	work(&s, true, true);
	say_losses(&s);
	fprintf(print_out, "\n");
	agg_print_rest();
	output_flush();
	if (output_failed)
		return 1;
	if (s.state == DIF_KILLED)
		warnx("processing aborted: abort due to systemic unresponsiveness");
	return s.state == DIF_KILLED || (damaged && s.exit_status == 0) ? 1 : s.exit_status;
}
