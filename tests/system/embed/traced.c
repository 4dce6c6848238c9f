/*
 * traced.c - a process as a kernel that dtrace traces, over the port of ktr/README.md and dif.c:
 * its threads are CPUs. It takes the bytes of a socket, whose path is its last argument, one
 * connection after the other. With a number before it there is no timer, and the clock of all
 * threads but the first is ahead by so many seconds. While the probe app:::begin is on, two threads
 * make system calls, as their trace points say; then app:::done fires; so again while app:::again
 * is on.
 */
#include <dif.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define THREADS 2u
#define CALLS   1000u

struct request {
	int count;
	short kind;
	char path[10];
};

bool user_thread_begin(const char *name);
void user_thread_end(void);

SDT_PROVIDER_DEFINE(app);
SDT_PROBE_DEFINE1(app, , , begin, begin, "int");
SDT_PROBE_DEFINE2(app, , , sent, sent, "struct request *", "char *");
SDT_PROBE_DEFINE0(app, , , done, done);
SDT_PROBE_DEFINE0(app, , , again, again);

uint64_t user_ahead;  /* nanoseconds by which other threads' clock is ahead of the first one's */
static int line = -1; /* the connection */
static unsigned connections; /* atomic: so far */
static const struct request requests[] = {{3, 1, "/a"}, {5, 2, "/b"}};

void
dif_port_send(const void *bytes, size_t n)
{
	if (send(line, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		fprintf(stderr, "traced: an answer was not sent\n");
}

/* This process's memory may be read as far as the kernel says. */
bool
dif_port_load(void *dst, uint64_t addr, size_t n)
{
	int fd[2];
	bool good = pipe(fd) == 0 && write(fd[1], (const void *)(uintptr_t)addr, n) == (ssize_t)n &&
		    read(fd[0], dst, n) == (ssize_t)n;
	close(fd[0]);
	close(fd[1]);
	return good;
}

static void *
work(void *arg)
{
	unsigned self = (unsigned)(uintptr_t)arg;
	char name[16];
	snprintf(name, sizeof(name), "worker-%u", self);
	if (!user_thread_begin(name))
		exit(1);
	for (unsigned n = 0; n < CALLS; n++) {
		CTR2(KTR_SYSC, "call %s: fd %d", ktr_intern(n % 4 == 0 ? "write" : "read"), self);
		CTR2(KTR_SYSC, "syscall read: arg0 %u arg1 %u", self, n);
		CTR1(KTR_SYSC, "sysret read: ret %ld", n % 10 == 0 ? -1 : (long)n);
		if (n % 100 == 0)
			SDT_PROBE2(app, , , sent, &requests[self], requests[self].path);
	}
	user_thread_end();
	return NULL;
}

/* The interrupt of a timer, which comes each millisecond. */
static void
tick(void)
{
	if (user_ahead == 0)
		dif_tick((uintptr_t)tick, false);
	nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *
boss(void *arg)
{
	pthread_t threads[THREADS];
	(void)arg;
	if (!user_thread_begin("boss"))
		exit(1);
	for (unsigned done = 0;;) {
		while (!SDT_PROBE_ENABLED(app, , , begin) ||
		       __atomic_load_n(&connections, __ATOMIC_ACQUIRE) == done)
			tick();
		done = __atomic_load_n(&connections, __ATOMIC_ACQUIRE);
		ktr_port_lock(); /* whoever switches probes holds it until all are switched */
		ktr_port_unlock();
		do {
			SDT_PROBE1(app, , , begin, 7);
			for (unsigned i = 0; i < THREADS; i++)
				pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i);
			for (unsigned i = 0; i < THREADS; i++)
				pthread_join(threads[i], NULL);
			SDT_PROBE0(app, , , done);
		} while (SDT_PROBE_ENABLED(app, , , again));
	}
}

int
main(int argc, char **argv)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct ktr_info info = {.arch = "process",
				.build = "traced",
				.hz = 1000000000,
				.ncpu = THREADS};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	static uint8_t bytes[4096];
	pthread_t thread;

	if (argc != 2 && argc != 3)
		return 2;
	if (argc == 3)
		user_ahead = strtoul(argv[1], NULL, 10) * 1000000000u;
	info.boot_ticks = ktr_port_time();
	ktr_info_set(&info);
	ktr_resize(USER_ENTRIES);
	if (!user_thread_begin("main"))
		return 1;
	for (unsigned cpu = 1; cpu < KTR_PORT_MAXCPU - 1; cpu++)
		ktr_cpu_init(cpu); /* threads that come later have a ring already */
	pthread_create(&thread, NULL, boss, NULL);
	strncpy(at.sun_path, argv[argc - 1], sizeof(at.sun_path) - 1);
	if (bind(listener, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 8) < 0)
		return 1;
	while ((line = accept(listener, NULL, NULL)) >= 0) {
		dif_session_end(); /* that of a dtrace that was killed */
		__atomic_fetch_add(&connections, 1, __ATOMIC_RELEASE);
		for (ssize_t n; (n = read(line, bytes, sizeof(bytes))) > 0;)
			dif_serve(bytes, (size_t)n);
		close(line);
	}
	return 1;
}
