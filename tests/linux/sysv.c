/* sysv.c - System V IPC: semaphores, messages, shared memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define PAGE 4096ul
#define KEY  0x6b737472

/* A child that runs fn(arg), while the parent goes on. */
static pid_t
child(int (*fn)(int), int arg)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn(arg));
	return pid;
}

static int
ended(pid_t pid)
{
	int status = -1;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

/* How many of this kind /proc/sysvipc tells with that number. */
static int
listed(const char *kind, int id)
{
	char path[64], line[512];
	int n = 0, key, is;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sysvipc/%s", kind);
	f = fopen(path, "r");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		n += sscanf(line, "%d %d", &key, &is) == 2 && is == id;
	if (f != NULL)
		fclose(f);
	return n;
}

/* ---- shared memory ---- */

static unsigned long
attached(int id)
{
	struct shmid_ds ds;

	return shmctl(id, IPC_STAT, &ds) == 0 ? ds.shm_nattch : 99;
}

static int
writes_there(int id)
{
	char *p = shmat(id, NULL, 0);

	if (p == (void *)-1 || strcmp(p, "parent") != 0 || attached(id) != 3)
		return 1;
	strcpy(p + 2 * PAGE, "child");
	return 0;
}

static int
waits_for_one(int id)
{
	int *p = shmat(id, NULL, 0);

	while (__atomic_load_n(p, __ATOMIC_SEQ_CST) != 1)
		syscall(SYS_futex, p, FUTEX_WAIT, 0, NULL, NULL, 0);
	return 0;
}

/* Two processes, each with a place of its own for the segment. */
static bool
futexes_are_shared(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	int *p = id >= 0 ? shmat(id, NULL, 0) : (void *)-1;
	pid_t pid;

	if (p == (void *)-1)
		return false;
	pid = child(waits_for_one, id);
	while (syscall(SYS_futex, p, FUTEX_WAKE, 1, NULL, NULL, 0) == 0)
		sched_yield();
	__atomic_store_n(p, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, p, FUTEX_WAKE, 1, NULL, NULL, 0);
	return ended(pid) == 0 && shmdt(p) == 0 && shmctl(id, IPC_RMID, NULL) == 0;
}

static bool
segments_are_shared(void)
{
	int id = shmget(KEY, 2 * PAGE + 100, IPC_CREAT | IPC_EXCL | 0600);
	char *p = id >= 0 ? shmat(id, NULL, 0) : (void *)-1;
	struct shmid_ds ds;
	bool good = p != (void *)-1 && p[0] == 0 && p[3 * PAGE - 1] == 0;

	if (!good)
		return false;
	strcpy(p, "parent");
	good = ended(child(writes_there, id)) == 0 && strcmp(p + 2 * PAGE, "child") == 0;
	good = good && shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 1 &&
	       ds.shm_segsz == 2 * PAGE + 100 && ds.shm_cpid == getpid() &&
	       ds.shm_lpid != getpid() && ds.shm_perm.mode == 0600 && ds.shm_atime != 0 &&
	       ds.shm_dtime != 0;
	good = good && shmget(KEY, 0, 0) == id && FAILS(shmget(KEY, 4 * PAGE, 0), EINVAL) &&
	       FAILS(shmget(KEY, 0, IPC_CREAT | IPC_EXCL), EEXIST) && listed("shm", id) == 1;
	/* removed: no name, but memory, until the last one leaves */
	good = good && shmctl(id, IPC_RMID, NULL) == 0 && FAILS(shmget(KEY, 0, 0), ENOENT) &&
	       strcmp(p, "parent") == 0 && shmctl(id, IPC_STAT, &ds) == 0 &&
	       (ds.shm_perm.mode & SHM_DEST) && ds.shm_perm.__key == IPC_PRIVATE;
	good = good && shmdt(p) == 0 && FAILS(shmctl(id, IPC_STAT, &ds), EINVAL) &&
	       FAILS(shmdt(p), EINVAL) && listed("shm", id) == 0;
	return good;
}

static bool
segments_have_places(void)
{
	int id = shmget(IPC_PRIVATE, 3 * PAGE, 0600);
	char *room = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *p, *q;
	bool good = id >= 0 && room != MAP_FAILED;

	/* where something is, only with SHM_REMAP; an odd address only with SHM_RND */
	good = good && shmat(id, room, 0) == (void *)-1 && errno == EINVAL;
	good = good && shmat(id, room + 1, SHM_REMAP) == (void *)-1 && errno == EINVAL;
	good = good && shmat(id, NULL, SHM_REMAP) == (void *)-1 && errno == EINVAL;
	p = good ? shmat(id, room + PAGE + 5, SHM_RND | SHM_REMAP) : NULL;
	good = good && p == room + PAGE;
	q = good ? shmat(id, NULL, SHM_RDONLY) : NULL;
	good = good && q != (void *)-1 && attached(id) == 2;
	if (!good)
		return false;
	p[7] = 'x';
	good = q[7] == 'x' && FAILS(mprotect(q, PAGE, PROT_READ | PROT_WRITE), EACCES);
	/* an area in pieces counts often, and goes at once */
	good = good && munmap(p + PAGE, PAGE) == 0 && attached(id) == 3 && shmdt(p) == 0 &&
	       attached(id) == 1;
	good = good && mincore(p + 2 * PAGE, PAGE, (unsigned char[1]){0}) == -1;
	good = good && shmdt(q) == 0 && attached(id) == 0 && shmctl(id, IPC_RMID, NULL) == 0;
	return munmap(room, 8 * PAGE) == 0 && good;
}

static bool
segments_have_rules(void)
{
	struct shminfo limits;
	struct shm_info used;
	int id = shmget(IPC_PRIVATE, 1, 0400), last;
	struct shmid_ds ds;
	char *p = shmat(id, NULL, SHM_RDONLY);

	/* who has come has not left, nor who could not come */
	if (p == (void *)-1 || shmat(id, p, 0) != (void *)-1 || shmctl(id, IPC_STAT, &ds) != 0 ||
	    ds.shm_dtime != 0 || shmdt(p) != 0 || shmctl(id, IPC_STAT, &ds) != 0 ||
	    ds.shm_dtime == 0)
		return false;
	last = shmctl(0, SHM_INFO, (struct shmid_ds *)&used);
	return id >= 0 && last >= 0 && used.used_ids >= 1 && used.shm_tot >= 1 &&
	       shmctl(0, IPC_INFO, (struct shmid_ds *)&limits) == last && limits.shmmin == 1 &&
	       (!is_kestrel() || FAILS(shmget(IPC_PRIVATE, 1, SHM_HUGETLB | 0600), ENOENT)) &&
	       FAILS(shmget(IPC_PRIVATE, 0, 0600), EINVAL) && FAILS(shmctl(id, 77, NULL), EINVAL) &&
	       FAILS(shmctl(-1, IPC_STAT, NULL), EINVAL) &&
	       FAILS(shmctl(id, IPC_STAT, (void *)1), EFAULT) && shmctl(id, SHM_LOCK, NULL) == 0 &&
	       shmctl(id, SHM_UNLOCK, NULL) == 0 && shmctl(id, IPC_RMID, NULL) == 0 &&
	       shmat(id, NULL, 0) == (void *)-1 && errno == EINVAL;
}

/* ---- semaphores ---- */

static int
operate(int id, unsigned short number, short by, short flags)
{
	return semop(id, &(struct sembuf){number, by, flags}, 1);
}

static int
takes_two(int id)
{
	struct sembuf both[] = {{0, -1, 0}, {1, -2, 0}};

	return semop(id, both, 2) == 0 ? 0 : errno;
}

static int
waits_for_zero(int id)
{
	return operate(id, 1, 0, 0) == 0 ? 0 : errno;
}

static int
undoes(int id)
{
	return operate(id, 0, 5, SEM_UNDO) == 0 && operate(id, 1, -1, SEM_UNDO) == 0 ? 0 : 1;
}

/* Waits until that child waits for the semaphore. False: it has ended. */
static bool
await_waiter(pid_t pid, int id, int number, int how)
{
	siginfo_t si = {0};

	while (semctl(id, number, how) == 0 && si.si_pid == 0)
		if (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) != 0)
			return false;
	return semctl(id, number, how) == 1;
}

static bool
semaphores_wait(void)
{
	int id = semget(KEY, 2, IPC_CREAT | IPC_EXCL | 0600);
	unsigned short values[2] = {1, 1};
	struct semid_ds ds;
	pid_t pid;
	bool good = id >= 0 && semctl(id, 0, GETVAL) == 0 && semctl(id, 0, SETALL, values) == 0;

	/* both or none: the second one is not there yet */
	pid = good ? child(takes_two, id) : -1;
	good = good && await_waiter(pid, id, 1, GETNCNT) && semctl(id, 0, GETVAL) == 1 &&
	       operate(id, 1, 1, 0) == 0 && ended(pid) == 0 && semctl(id, 0, GETALL, values) == 0 &&
	       values[0] == 0 && values[1] == 0 && semctl(id, 1, GETPID) == pid;
	/* until zero */
	good = good && semctl(id, 1, SETVAL, 1) == 0;
	pid = good ? child(waits_for_zero, id) : -1;
	good = good && await_waiter(pid, id, 1, GETZCNT) && operate(id, 1, -1, 0) == 0 &&
	       ended(pid) == 0;
	/* what a process leaves is undone */
	good = good && semctl(id, 1, SETVAL, 3) == 0 && ended(child(undoes, id)) == 0 &&
	       semctl(id, 0, GETVAL) == 0 && semctl(id, 1, GETVAL) == 3;
	good = good && semctl(id, 0, IPC_STAT, &ds) == 0 && ds.sem_nsems == 2 &&
	       ds.sem_otime != 0 && ds.sem_perm.mode == 0600 && listed("sem", id) == 1;
	/* who waits learns that the set has gone */
	pid = good ? child(takes_two, id) : -1;
	good = good && await_waiter(pid, id, 0, GETNCNT) && semctl(id, 0, IPC_RMID) == 0 &&
	       ended(pid) == EIDRM && listed("sem", id) == 0;
	return good;
}

static void
handled(int sig)
{
}

static int
interrupted_by(int id)
{
	struct sigaction act = {.sa_handler = handled, .sa_flags = SA_RESTART};

	return sigaction(SIGUSR1, &act, NULL) == 0 && operate(id, 0, -1, 0) == -1 ? errno : 0;
}

static bool
semaphores_have_rules(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf op = {0, -1, 0}, far = {1, 0, 0};
	struct timespec soon = {0, 1000000};
	struct seminfo info;
	pid_t pid;
	bool good = id >= 0 && FAILS(semtimedop(id, &op, 1, &soon), EAGAIN) &&
		    FAILS(operate(id, 0, -1, IPC_NOWAIT), EAGAIN) &&
		    FAILS(semop(id, &far, 1), EFBIG) && FAILS(semop(id, &op, 0), EINVAL) &&
		    FAILS(semop(id, (void *)1, 1), EFAULT) &&
		    FAILS(semctl(id, 0, SETVAL, 40000), ERANGE) &&
		    FAILS(semctl(id, 1, GETVAL), EINVAL) && semctl(id, 0, SETVAL, 32767) == 0 &&
		    FAILS(operate(id, 0, 1, 0), ERANGE) && semctl(id, 0, SETVAL, 0) == 0;

	good = good && FAILS(semget(IPC_PRIVATE, 0, 0600), EINVAL) &&
	       FAILS(semget(IPC_PRIVATE, -1, 0600), EINVAL) && semctl(0, 0, SEM_INFO, &info) >= 0 &&
	       info.semusz >= 1 && info.semvmx == 32767;
	/* of the count, semtimedop() takes 32 bits too */
	op.sem_op = 0;
	good = good && syscall(SYS_semtimedop, id, &op, 1 | 1ul << 32, NULL) == 0;
	/* SA_RESTART does not begin it again */
	pid = good ? child(interrupted_by, id) : -1;
	good = good && await_waiter(pid, id, 0, GETNCNT) && kill(pid, SIGUSR1) == 0 &&
	       ended(pid) == EINTR;
	return semctl(id, 0, IPC_RMID) == 0 && good;
}

/* A process that has to undo `by` of semaphore 0, and nothing of operations that fail. */
static pid_t
has_to_undo(int id, short by, bool executes)
{
	struct sembuf both[] = {{0, 1, SEM_UNDO}, {1, -1, SEM_UNDO | IPC_NOWAIT}};
	int begun[2];
	pid_t pid = pipe(begun) == 0 ? fork() : -1;
	char c;

	if (pid == 0) {
		if (operate(id, 0, by, SEM_UNDO) != 0 || !FAILS(semop(id, both, 2), EAGAIN))
			_exit(1);
		close(begun[0]);
		fcntl(begun[1], F_SETFD, FD_CLOEXEC);
		if (executes)
			execl(linux_test_path(), "linux_test", "edges-wait", NULL);
		close(begun[1]);
		pause();
	}
	close(begun[1]);
	if (pid > 0 && read(begun[0], &c, 1) != 0)
		return -1;
	close(begun[0]);
	return pid;
}

/* The value when a process has gone that had to undo `by`, if it was set to `from` before it began,
 * and `then` has happened meanwhile. */
static int
undone(int id, int from, short by, bool executes, short then)
{
	pid_t pid = semctl(id, 0, SETVAL, from) == 0 ? has_to_undo(id, by, executes) : -1;
	bool good = pid > 0 && semctl(id, 0, GETVAL) == from + by;

	good = good && (then == 0 || operate(id, 0, then, IPC_NOWAIT) == 0);
	return pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid && good
		   ? semctl(id, 0, GETVAL)
		   : -1;
}

static bool
semaphores_are_undone(void)
{
	int id = semget(IPC_PRIVATE, 2, 0600);
	unsigned short values[] = {7, 0};
	pid_t pid;
	bool good = id >= 0 && undone(id, 3, 5, false, 0) == 3 && undone(id, 3, 5, true, 0) == 3 &&
		    undone(id, 0, 5, false, -3) == 0 && undone(id, 10, -5, false, 32762) == 32767;

	/* what is set is not undone */
	for (int all = 0; all < 2 && good; all++) {
		pid = has_to_undo(id, 5, false);
		good = pid > 0 &&
		       (all ? semctl(id, 0, SETALL, values) : semctl(id, 0, SETVAL, 7)) == 0;
		good = pid > 0 && kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid && good &&
		       semctl(id, 0, GETVAL) == 7;
	}
	values[0] = 40000;
	good = good && FAILS(semctl(id, 0, SETALL, values), ERANGE) &&
	       semctl(id, 0, GETALL, values) == 0 && values[0] == 7 && values[1] == 0;
	return semctl(id, 0, IPC_RMID) == 0 && good && FAILS(semctl(id, 0, GETALL, values), EINVAL);
}

/* ---- messages ---- */

struct note {
	long type;
	char text[64];
};

static int
send_note(int id, long type, const char *text, int flags)
{
	struct note n = {.type = type};

	strcpy(n.text, text);
	return msgsnd(id, &n, strlen(text), flags);
}

/* Is this what comes? */
static bool
comes(int id, long type, int flags, const char *text)
{
	struct note n = {0};

	return msgrcv(id, &n, sizeof(n.text), type, flags | IPC_NOWAIT) == (ssize_t)strlen(text) &&
	       memcmp(n.text, text, strlen(text)) == 0;
}

static bool
messages_have_types(void)
{
	int id = msgget(KEY, IPC_CREAT | IPC_EXCL | 0600);
	struct note n;
	struct msqid_ds ds;
	bool good = id >= 0 && send_note(id, 3, "three", 0) == 0 &&
		    send_note(id, 2, "two", 0) == 0 && send_note(id, 5, "five", 0) == 0 &&
		    send_note(id, 2, "again", 0) == 0;

	good = good && msgctl(id, IPC_STAT, &ds) == 0 && ds.msg_qnum == 4 &&
	       ds.__msg_cbytes == 17 && ds.msg_lspid == getpid() && ds.msg_stime != 0 &&
	       listed("msg", id) == 1;
	good = good && comes(id, -4, 0, "two") && comes(id, 3, MSG_EXCEPT, "five") &&
	       FAILS(msgrcv(id, &n, 64, 9, IPC_NOWAIT), ENOMSG) &&
	       FAILS(msgrcv(id, &n, 2, 0, 0), E2BIG) && msgrcv(id, &n, 2, 0, MSG_NOERROR) == 2 &&
	       n.type == 3 && comes(id, 2, 0, "again");
	good = good && FAILS(send_note(id, 0, "", 0), EINVAL) &&
	       FAILS(msgsnd(id, &n, -1, 0), EINVAL) && FAILS(msgsnd(id, (void *)1, 1, 0), EFAULT) &&
	       send_note(id, 1, "", 0) == 0 && comes(id, 0, 0, "");
	return msgctl(id, IPC_RMID, NULL) == 0 && good && FAILS(msgget(KEY, 0), ENOENT);
}

static int
receives(int id)
{
	struct note n;

	return msgrcv(id, &n, sizeof(n.text), 7, 0) == 4 && memcmp(n.text, "soon", 4) == 0 ? 0
											   : errno;
}

static int
sends(int id)
{
	return send_note(id, 8, "more", 0) == 0 ? 0 : errno;
}

static bool
messages_wait(void)
{
	int id = msgget(IPC_PRIVATE, 0600);
	struct msqid_ds ds;
	pid_t pid = id >= 0 ? child(receives, id) : -1;
	bool good = pid > 0 && await_sleep(pid, 0) && send_note(id, 8, "other", 0) == 0 &&
		    send_note(id, 7, "soon", 0) == 0 && ended(pid) == 0;

	/* a full queue */
	good = good && msgctl(id, IPC_STAT, &ds) == 0;
	ds.msg_qbytes = 6;
	good = good && msgctl(id, IPC_SET, &ds) == 0 &&
	       FAILS(send_note(id, 8, "more", IPC_NOWAIT), EAGAIN);
	pid = good ? child(sends, id) : -1;
	good = good && await_sleep(pid, 0) && comes(id, 8, 0, "other") && ended(pid) == 0 &&
	       comes(id, 8, 0, "more");
	/* one that goes */
	pid = good ? child(receives, id) : -1;
	good =
	    good && await_sleep(pid, 0) && msgctl(id, IPC_RMID, NULL) == 0 && ended(pid) == EIDRM;
	return good;
}

static int
receives_but_is_interrupted(int id)
{
	struct sigaction act = {.sa_handler = handled, .sa_flags = SA_RESTART};

	return sigaction(SIGUSR1, &act, NULL) == 0 ? receives(id) : 0;
}

static bool
messages_wait_beside_signals(void)
{
	int id = msgget(IPC_PRIVATE, 0600);
	pid_t pid = child(receives, id);
	/* a stop does not end it */
	bool good = pid > 0 && await_sleep(pid, 0) && kill(pid, SIGSTOP) == 0 &&
		    await_state(pid, 0, 'T') && kill(pid, SIGCONT) == 0 &&
		    send_note(id, 7, "soon", 0) == 0 && ended(pid) == 0;

	pid = good ? child(receives_but_is_interrupted, id) : -1;
	good = good && await_sleep(pid, 0) && kill(pid, SIGUSR1) == 0 && ended(pid) == EINTR;
	return msgctl(id, IPC_RMID, NULL) == 0 && good;
}

static bool
messages_are_copied(void)
{
	int id = msgget(IPC_PRIVATE, 0600), n;
	struct note note;
	bool good = id >= 0 && send_note(id, 3, "three", 0) == 0 && send_note(id, 2, "two", 0) == 0;

	n = msgrcv(id, &note, sizeof(note.text), 1, MSG_COPY | IPC_NOWAIT);
	if (n != -1 || errno != ENOSYS || is_kestrel()) /* Linux may be without */
		good = good && n == 3 && note.type == 2 && memcmp(note.text, "two", 3) == 0 &&
		       FAILS(msgrcv(id, &note, 64, 2, MSG_COPY | IPC_NOWAIT), ENOMSG) &&
		       FAILS(msgrcv(id, &note, 64, 0, MSG_COPY), EINVAL);
	good = good && comes(id, 0, 0, "three") && comes(id, 0, 0, "two");
	return msgctl(id, IPC_RMID, NULL) == 0 && good;
}

/* ---- what all have ---- */

/* What STAT and STAT_ANY tell of indexes. */
static bool
indexes_tell(void)
{
	int shm = shmget(IPC_PRIVATE, PAGE, 0600), sem = semget(IPC_PRIVATE, 3, 0600);
	int msg = msgget(IPC_PRIVATE, 0600), found = 0;
	struct shmid_ds hs;
	struct semid_ds es;
	struct msqid_ds ms;
	struct msginfo info;
	bool good = shm >= 0 && sem >= 0 && msg >= 0 && send_note(msg, 1, "four", 0) == 0 &&
		    msgctl(0, MSG_INFO, (struct msqid_ds *)&info) >= 0 && info.msgpool >= 1 &&
		    info.msgmap >= 1 && info.msgtql >= 4;

	for (int any = 0; any < 2; any++) {
		for (int i = shmctl(0, SHM_INFO, &hs); i >= 0; i--)
			found += shmctl(i, any ? SHM_STAT_ANY : SHM_STAT, &hs) == shm &&
				 hs.shm_segsz == PAGE;
		for (int i = semctl(0, 0, SEM_INFO, &es); i >= 0; i--)
			found += semctl(i, 0, any ? SEM_STAT_ANY : SEM_STAT, &es) == sem &&
				 es.sem_nsems == 3;
		for (int i = msgctl(0, MSG_INFO, &ms); i >= 0; i--)
			found += msgctl(i, any ? MSG_STAT_ANY : MSG_STAT, &ms) == msg &&
				 ms.msg_qnum == 1;
	}
	/* rights that are set */
	good = good && shmctl(shm, IPC_STAT, &hs) == 0 && semctl(sem, 0, IPC_STAT, &es) == 0;
	hs.shm_perm.mode = 0644;
	es.sem_perm.mode = 0;
	good = good && shmctl(shm, IPC_SET, &hs) == 0 && semctl(sem, 0, IPC_SET, &es) == 0 &&
	       shmctl(shm, IPC_STAT, &hs) == 0 && hs.shm_perm.mode == 0644;
	good = good && (getuid() == 0 ? semctl(sem, 0, GETVAL) == 0
				      : FAILS(semctl(sem, 0, GETVAL), EACCES));
	hs.shm_perm.uid = (uid_t)-1;
	good = good && FAILS(shmctl(shm, IPC_SET, &hs), EINVAL);
	return shmctl(shm, IPC_RMID, NULL) == 0 && semctl(sem, 0, IPC_RMID) == 0 &&
	       msgctl(msg, IPC_RMID, NULL) == 0 && good && found == 6;
}

/* Writes a limit. False: it is not allowed. */
static bool
set_limit(const char *name, const char *value)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	fd = open(path, O_WRONLY);
	n = write(fd, value, strlen(value));
	close(fd);
	return n == (ssize_t)strlen(value);
}

static bool
limits_are(const char *wanted)
{
	char text[64] = "";
	int fd = open("/proc/sys/kernel/sem", O_RDONLY);
	bool good = read(fd, text, sizeof(text) - 1) > 0;

	close(fd);
	text[strcspn(text, "\n")] = '\0';
	return good && strcmp(text, wanted) == 0;
}

/* Here only: these are the limits of a whole machine. */
static bool
limits_can_be_set(void)
{
	const char *usual = "32000\t1024000000\t500\t4096";
	struct sembuf ops[2] = {{0, 0, 0}, {0, 0, 0}};
	struct msginfo info;
	char number[16];
	int id;
	bool good;

	if (!is_kestrel() || getuid() != 0)
		return true;
	good = limits_are(usual) && set_limit("sem", "3 1000 1") &&
	       limits_are("3\t1000\t1\t4096") && !set_limit("sem", "3 1000 1 5 6") &&
	       !set_limit("sem", "x") && FAILS(semget(IPC_PRIVATE, 4, 0600), EINVAL);
	id = semget(IPC_PRIVATE, 1, 0600);
	good = good && id >= 0 && FAILS(semop(id, ops, 2), E2BIG) && set_limit("sem", usual) &&
	       limits_are(usual);
	/* a number that comes again */
	snprintf(number, sizeof(number), "%d", id);
	good = semctl(id, 0, IPC_RMID) == 0 && set_limit("sem_next_id", number) &&
	       semget(IPC_PRIVATE, 1, 0600) == id && semctl(id, 0, IPC_RMID) == 0 && good;
	good = set_limit("shmmni", "0") && FAILS(shmget(IPC_PRIVATE, 1, 0600), ENOSPC) &&
	       set_limit("shmmni", "4096") && good;
	good = set_limit("msgmni", "0") && FAILS(msgget(IPC_PRIVATE, 0600), ENOSPC) &&
	       set_limit("msgmni", "4096") && good;
	for (unsigned i = 0; i < 3; i++) {
		static const char *const beyond[] = {"99999999", "-1", "99999999999999999999"};

		good = !set_limit("msgmni", beyond[i]) && errno == EINVAL && good;
	}
	id = msgget(IPC_PRIVATE, 0600);
	good = set_limit("msgmax", "3") && FAILS(send_note(id, 1, "four", 0), EINVAL) &&
	       set_limit("msgmax", "8192") && msgctl(id, IPC_RMID, NULL) == 0 && good;
	return set_limit("msgmnb", "2147483647") &&
	       msgctl(0, IPC_INFO, (struct msqid_ds *)&info) >= 0 && info.msgpool == INT_MAX &&
	       set_limit("msgmnb", "16384") && good;
}

/* ---- rights ---- */

static int
may_not(int shm)
{
	int sem = semget(KEY, 0, 0), msg = msgget(KEY, 0);

	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 1;
	return shmat(shm, NULL, 0) == (void *)-1 && errno == EACCES &&
		       shmat(shm, NULL, SHM_RDONLY) != (void *)-1 &&
		       FAILS(shmget(KEY, 0, 0222), EACCES) && shmget(KEY, 0, 0444) == shm &&
		       FAILS(shmctl(shm, IPC_RMID, NULL), EPERM) && semctl(sem, 0, GETVAL) == 0 &&
		       FAILS(operate(sem, 0, 1, 0), EACCES) &&
		       FAILS(semctl(sem, 0, SETVAL, 1), EACCES) &&
		       FAILS(semctl(sem, 9, SETVAL, 1), EINVAL) &&
		       FAILS(semctl(sem, 0, IPC_RMID), EPERM) &&
		       FAILS(send_note(msg, 1, "x", 0), EACCES) &&
		       FAILS(msgrcv(msg, &(struct note){0}, 4, 0, IPC_NOWAIT), ENOMSG) &&
		       FAILS(msgctl(msg, IPC_RMID, NULL), EPERM)
		   ? 0
		   : 2;
}

static bool
rights_hold(void)
{
	int shm = shmget(KEY, PAGE, IPC_CREAT | 0644), sem = semget(KEY, 1, IPC_CREAT | 0644);
	int msg = msgget(KEY, IPC_CREAT | 0644);
	bool good =
	    shm >= 0 && sem >= 0 && msg >= 0 && (getuid() != 0 || ended(child(may_not, shm)) == 0);

	return shmctl(shm, IPC_RMID, NULL) == 0 && semctl(sem, 0, IPC_RMID) == 0 &&
	       msgctl(msg, IPC_RMID, NULL) == 0 && good;
}

#define SEMS 32000

static bool
run_on(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

static volatile int *begun;

static int
sets_all(int id)
{
	static unsigned short values[SEMS];

	for (unsigned i = 0; i < SEMS; i++)
		values[i] = 1;
	if (!run_on(1))
		return 1;
	*begun = 1;
	return semctl(id, 0, SETALL, values) == 0 ? 0 : errno;
}

/*
 * For Kestrel with 2 CPUs, where D makes copies to the kernel last: a set goes while SETALL copies
 * its values, and a smaller one gets the number. It tries until that has happened.
 */
int
sysv_renumbered(void)
{
	begun = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned tries = 0; begun != MAP_FAILED && run_on(0) && tries < 200; tries++) {
		int id = semget(IPC_PRIVATE, SEMS, 0600), result, value;
		char number[16];
		pid_t pid;

		*begun = 0;
		pid = id >= 0 ? child(sets_all, id) : -1;
		while (pid > 0 && *begun == 0)
			sched_yield();
		for (unsigned i = 0; i < tries * 100; i++)
			sched_yield();
		snprintf(number, sizeof(number), "%d", id);
		if (semctl(id, 0, IPC_RMID) != 0 || !set_limit("sem_next_id", number) ||
		    semget(IPC_PRIVATE, 1, 0600) != id)
			return 2;
		result = ended(pid);
		value = semctl(id, 0, GETVAL);
		if (semctl(id, 0, IPC_RMID) != 0 || value != 0)
			return 1;
		if (result == EIDRM)
			return puts("the set went, no value was written") < 0;
	}
	return 3;
}

/* Each of many keys leads to its own queue, and to none when that has gone. */
static bool
keys_lead_to_their_own(void)
{
	enum { KEYS = 300, STEP = 0x10000 };
	int ids[KEYS];
	bool good = true;

	for (int i = 0; i < KEYS; i++)
		ids[i] = msgget(KEY + i * STEP, IPC_CREAT | IPC_EXCL | 0600);
	for (int i = 0; i < KEYS; i++)
		good &= ids[i] >= 0 && msgget(KEY + i * STEP, 0) == ids[i];
	for (int i = 0; i < KEYS; i += 2)
		good &= msgctl(ids[i], IPC_RMID, NULL) == 0;
	for (int i = 0; i < KEYS; i++) {
		int id = msgget(KEY + i * STEP, 0);

		good &= i % 2 == 0 ? id == -1 && errno == ENOENT : id == ids[i];
	}
	for (int i = 1; i < KEYS; i += 2)
		good &= msgctl(ids[i], IPC_RMID, NULL) == 0;
	return good;
}

struct wanted {
	int id;
	long type;
};

static int
await_type(void *arg)
{
	struct wanted *w = arg;
	struct note n;

	return msgrcv(w->id, &n, sizeof(n.text), w->type, 0) == 2 ? (int)n.type : 99;
}

/* Those who wait for messages that come after others get theirs, whatever else comes meanwhile. */
static bool
many_await_their_types(void)
{
	static const long types[] = {7, 9, -6, 8};
	int id = msgget(IPC_PRIVATE, 0600), status;
	struct note n = {.type = 20, .text = "x"};
	bool good = true;
	pid_t pids[4];

	for (int i = 0; i < 30; i++)
		good &= msgsnd(id, &n, 2, 0) == 0;
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(await_type(&(struct wanted){id, types[i]}));
		good &= await_sleep(pids[i], 0);
	}
	for (long type = 10; type >= 6; type--) {
		n.type = type;
		good &= msgsnd(id, &n, 2, 0) == 0 && msgrcv(id, &n, 2, 20, 0) == 2;
	}
	for (int i = 0; i < 4; i++)
		good &= waitpid(pids[i], &status, 0) == pids[i] &&
			status == (types[i] < 0 ? 6 : (int)types[i]) << 8;
	good &= msgrcv(id, &n, 2, -19, IPC_NOWAIT) == 2 && n.type == 10;
	for (int i = 0; i < 25; i++)
		good &= msgrcv(id, &n, 2, 0, IPC_NOWAIT) == 2 && n.type == 20;
	return msgctl(id, IPC_RMID, NULL) == 0 && good;
}

void
test_sysv(void)
{
	result(segments_are_shared(),
	       "shmget: memory that processes share, until the last one leaves");
	result(futexes_are_shared(), "a futex in a segment wakes another process");
	result(segments_have_places(),
	       "shmat and shmdt: places, pieces, and memory that is only read");
	result(segments_have_rules(), "shmctl: limits, and what is wrong");
	result(semaphores_wait(),
	       "semop: all or nothing, waiting, what is undone, and sets that go");
	result(semaphores_have_rules(), "semop and semctl: limits, what is wrong, and signals");
	result(semaphores_are_undone(), "SEM_UNDO: over exec, as far as values allow, until set");
	result(messages_have_types(), "msgrcv: by type, and with too little room");
	result(keys_lead_to_their_own(), "many keys");
	result(many_await_their_types(), "msgrcv: many wait, each for a type");
	result(messages_wait(), "msgsnd and msgrcv wait, and learn that a queue has gone");
	result(messages_wait_beside_signals(), "msgrcv: handlers end its wait, stops do not");
	result(messages_are_copied(), "MSG_COPY leaves the message");
	result(indexes_tell(), "STAT, STAT_ANY and INFO of all kinds, and IPC_SET");
	result(limits_can_be_set(), "/proc/sys/kernel: limits of System V IPC");
	result(rights_hold(), "System V IPC: others may do what the mode says");
}
