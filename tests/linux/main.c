/*
 * main.c - linux_test: a static program of Linux, built with the ordinary compiler over glibc. It
 * checks what the kernel promises such programs; TAP: `linux_test [brief] [PART]...`, all parts if
 * none is named; brief: what repeats repeats less. With another word, it is what a test executes.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

static unsigned count;
static const char *self;
static bool brief;

void
result(bool good, const char *promise)
{
	printf("%s %u - %s\n", good ? "ok" : "not ok", ++count, promise);
	fflush(stdout);
}

long
now_ns(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) == 0 ? t.tv_sec * 1000 * MS + t.tv_nsec : -1;
}

static int
await(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 126;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
in_child(int (*fn)(void *), void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn(arg));
	return await(pid);
}

char
state_of(pid_t pid, pid_t tid)
{
	char path[64], text[128] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid != 0 ? tid : pid);
	fd = open(path, O_RDONLY);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 && strrchr(text, ')') != NULL ? strrchr(text, ')')[2] : '\0';
}

bool
await_state(pid_t pid, pid_t tid, char state)
{
	char now;

	while ((now = state_of(pid, tid)) != state && now != '\0' && now != 'Z')
		sched_yield();
	return now == state;
}

bool
await_sleep(pid_t pid, pid_t tid)
{
	return await_state(pid, tid, 'S');
}

unsigned
how_often(unsigned n)
{
	return brief ? (n + 19) / 20 : n;
}

bool
is_kestrel(void)
{
	struct utsname u;

	return uname(&u) == 0 && strstr(u.release, "kestrel") != NULL;
}

const char *
linux_test_path(void)
{
	return self;
}

int
execute_self(const char *word)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(self, self, word, NULL);
		_exit(127);
	}
	return await(pid);
}

/* In the order of a whole run. */
static const struct {
	const char *word;
	void (*test)(void);
} parts[] = {{"fpu", test_fpu},         {"calls", test_calls},
	     {"signals", test_signals}, {"queue", test_queue},
	     {"caps", test_caps},       {"vdso", test_vdso},
	     {"memory", test_memory},   {"edges", test_edges},
	     {"misc", test_misc},       {"files", test_files},
	     {"links", test_links},     {"names", test_names},
	     {"bytes", test_bytes},     {"inet", test_inet},
	     {"streams", test_streams}, {"datagrams", test_datagrams},
	     {"events", test_events},   {"inotify", test_inotify},
	     {"mounts", test_mounts},   {"xattrs", test_xattrs},
	     {"pidfds", test_pidfds},   {"waits", test_waits},
	     {"moves", test_moves},     {"locks", test_locks},
	     {"ptys", test_ptys},       {"devs", test_devs},
	     {"ptrace", test_ptrace},   {"pipes", test_pipes},
	     {"sockets", test_sockets}, {"texts", test_texts},
	     {"nodes", test_nodes},     {"ids", test_ids},
	     {"timers", test_timers},   {"proc", test_proc},
	     {"admin", test_admin},     {"sched", test_sched},
	     {"rt", test_rt},           {"threads", test_threads},
	     {"fasync", test_fasync},   {"looks", test_looks},
	     {"answers", test_answers}, {"ttys", test_ttys},
	     {"ways", test_ways},       {"usage", test_usage},
	     {"seals", test_seals},     {"stops", test_stops},
	     {"sysv", test_sysv},       {"clones", test_clones},
	     {"floods", test_floods},   {"forged", test_forged},
	     {"stacks", test_stacks},   {"cputime", test_cputime}};

/* Does a part, after which no child of it is left: another part's wait() would find that. */
static void
run_part(size_t i)
{
	int status = 0;
	pid_t child;

	parts[i].test();
	child = waitpid(-1, &status, WNOHANG | __WALL);
	if (child >= 0) {
		printf("# %s: child %d is left, status %#x\n", parts[i].word, child, status);
		result(false, "a part leaves no child");
	}
}

/* Runs the parts that are named, or all but those that are not for the host. */
static int
run_parts(char **words)
{
	size_t n = sizeof(parts) / sizeof(parts[0]);

	for (size_t i = 0; words[0] == NULL && i < n; i++)
		if (parts[i].test != test_floods && parts[i].test != test_forged)
			run_part(i);
	for (; *words != NULL; words++) {
		size_t i = 0;

		while (i < n && strcmp(*words, parts[i].word) != 0)
			i++;
		if (i == n) {
			fprintf(stderr, "linux_test: %s: no part of the test\n", *words);
			return 2;
		}
		run_part(i);
	}
	printf("1..%u\n", count);
	return 0;
}

int
main(int argc, char *argv[])
{
	self = (const char *)getauxval(AT_EXECFN);
	if (getenv(EDGES_NAMELESS) != NULL)
		return edges_nameless(argc, argv);
	if (argc == 2 && strcmp(argv[1], "fpu-executed") == 0)
		return fpu_as_executed();
	if (argc == 2 && strcmp(argv[1], "auxv") == 0)
		return auxv_as_executed();
	if (argc == 2 && strcmp(argv[1], "answers-executed") == 0)
		return answers_as_executed();
	if (argc > 2 && strcmp(argv[1], "arguments") == 0)
		return arguments_as_executed(argc, argv);
	if (argc == 2 && strcmp(argv[1], "signals-executed") == 0)
		return signals_as_executed();
	if (argc == 2 && strcmp(argv[1], "stacks-executed") == 0)
		return stacks_as_executed();
	if (argc == 2 && strcmp(argv[1], "usage-executed") == 0)
		return usage_as_executed();
	if (argc == 2 && strcmp(argv[1], "usage-room") == 0)
		return room_as_executed();
	if (argc == 2 && strcmp(argv[1], "timers-executed") == 0)
		return timers_as_executed();
	if (argc == 2 && strcmp(argv[1], "mounts-executed") == 0)
		return mounts_as_executed();
	if (argc == 2 && strcmp(argv[1], "pidfds-executed") == 0)
		return pidfds_as_executed();
	if (argc == 2 && strcmp(argv[1], "inotify-executed") == 0)
		return inotify_as_executed();
	if (argc == 2 && strcmp(argv[1], "sysv-renumbered") == 0)
		return sysv_renumbered();
	if (argc == 2 && strcmp(argv[1], "killed-among") == 0)
		return killed_among_threads();
	if (argc == 2 && strcmp(argv[1], "wait") == 0)
		return waits_as_executed();
	if (argc == 2 && strcmp(argv[1], "workers") == 0)
		return workers_traced();
	if (argc == 3 && strcmp(argv[1], "probed") == 0)
		return probed_run(argv[2]);
	if (argc == 2 && strcmp(argv[1], "probed") == 0)
		return probed_for_ever();
	if (argc == 2 && strcmp(argv[1], "streams-looked-at") == 0)
		return streams_looked_at();
	if (argc == 2 && strcmp(argv[1], "streams-peeked-at") == 0)
		return streams_peeked_at();
	if (argc == 3 && strcmp(argv[1], "datagrams-told") == 0)
		return datagrams_told(argv[2]);
	if (argc == 3 && strcmp(argv[1], "datagrams-heard") == 0)
		return datagrams_heard(argv[2]);
	if (argc == 2 && strcmp(argv[1], "unmap") == 0)
		return workers_unmap();
	if (argc == 3 && strcmp(argv[1], "maps") == 0)
		return maps_are(argv[2]);
	if (argc == 3 && strcmp(argv[1], "maps-of-host") == 0)
		return maps_of_host(argv[2]);
	if (argc == 3 && strcmp(argv[1], "holes") == 0)
		return maps_holes(atol(argv[2]));
	if (argc == 4 && strcmp(argv[1], "fill") == 0)
		return maps_fill(argv[2], (size_t)atol(argv[3]), false);
	if (argc == 4 && strcmp(argv[1], "fill-code") == 0)
		return maps_fill(argv[2], (size_t)atol(argv[3]), true);
	if (argc == 4 && strcmp(argv[1], "synced") == 0)
		return synced_write(argv[2], (unsigned)atoi(argv[3]));
	if (argc == 4 && strcmp(argv[1], "scribble") == 0)
		return synced_scribble(argv[2], (unsigned)atoi(argv[3]));
	if (argc == 3 && strcmp(argv[1], "read-ahead") == 0)
		return misc_read_ahead(argv[2]);
	if (argc == 3 && strcmp(argv[1], "dsync") == 0)
		return moves_dsync(argv[2]);
	if (argc == 4 && strcmp(argv[1], "exchange") == 0)
		return moves_exchange(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "linked") == 0)
		return moves_linked(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "unlinked") == 0)
		return maps_unlinked(argv[2]);
	if (argc == 4 && strcmp(argv[1], "resting") == 0)
		return maps_resting(argv[2], atoi(argv[3]));
	if (argc == 3 && strcmp(argv[1], "compute") == 0)
		return workers_compute(atof(argv[2]));
	if (argc == 2 && strcmp(argv[1], "rt-naps") == 0)
		return rt_naps();
	if (argc == 2 && strcmp(argv[1], "rt-executed") == 0)
		return rt_as_executed();
	if (argc == 2 && strcmp(argv[1], "clones-executed") == 0)
		return clones_as_executed();
	if (argc == 3 && strcmp(argv[1], "far") == 0)
		return threads_far((unsigned)atoi(argv[2]), false);
	if (argc == 3 && strcmp(argv[1], "far-shared") == 0)
		return threads_far((unsigned)atoi(argv[2]), true);
	if (argc == 3 && strcmp(argv[1], "awaited") == 0)
		return queue_awaited((unsigned)atoi(argv[2]));
	if (argc == 2 && strcmp(argv[1], "ptys-reserved") == 0)
		return ptys_reserved();
	if (argc == 3 && strcmp(argv[1], "forgotten") == 0)
		return queue_forgotten((unsigned)atoi(argv[2]));
	if (argc == 2 && strcmp(argv[1], "sleepers") == 0)
		return cputime_sleepers();
	if (argc == 3 && strcmp(argv[1], "beside") == 0)
		return usage_beside((unsigned)atoi(argv[2]));
	if (argc == 2 && strcmp(argv[1], "caps-executed") == 0)
		return caps_as_executed();
	if (argc == 2 && strcmp(argv[1], "caps-tracer") == 0)
		return caps_as_tracer();
	if (argc == 2 && strcmp(argv[1], "nothing") == 0)
		return 0;
	if (argc == 2 && strcmp(argv[1], "edges-wait") == 0)
		return pause(); /* until it is killed */
	if (argc == 3 && strcmp(argv[1], "alone") == 0)
		return threads_as_executed(argv[2]);
	if (argc == 3 && strcmp(argv[1], "execute") == 0)
		return threads_execute(atoi(argv[2]));
	if (argc == 3 && strcmp(argv[1], "epoll-among") == 0)
		return epoll_among((unsigned)atoi(argv[2]));
	if (argc == 3 && strcmp(argv[1], "sockets-among") == 0)
		return sockets_among((unsigned)atoi(argv[2]));
	if (argc == 3 && strcmp(argv[1], "orphans") == 0)
		return stops_orphans((unsigned)atoi(argv[2]));
	if (argc == 3 && strcmp(argv[1], "found") == 0)
		return stops_found((unsigned)atoi(argv[2]));
	if (argc == 3 && strcmp(argv[1], "answers") == 0)
		return stops_answers((unsigned)atoi(argv[2]));
	if (argc == 2 && strcmp(argv[1], "at-once") == 0)
		return stops_at_once();
	if (argc == 2 && strcmp(argv[1], "shortage") == 0)
		return stops_shortage();
	if (argc == 2 && strcmp(argv[1], "stay") == 0)
		return texts_stay();
	if (argc == 2 && strcmp(argv[1], "saved") == 0)
		return ids_as_executed();
	if (argc > 2 && strcmp(argv[1], "words") == 0) {
		for (int i = 2; i < argc; i++)
			printf("%s%c", argv[i], i < argc - 1 ? ' ' : '\n');
		return 0;
	}
	brief = argc > 1 && strcmp(argv[1], "brief") == 0;
	return run_parts(argv + 1 + brief);
}
