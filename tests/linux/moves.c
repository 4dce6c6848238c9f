/* moves.c - bytes that go from file to file; locks, descriptors and names of files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/linux/linux_test.h"

#define NAME_A "/tmp/linux_moves_a"
#define NAME_B "/tmp/linux_moves_b"
#define SIZE   100000

static char text[SIZE], found[SIZE];

/* Files A and B, of which A holds the text. */
static int a, b;

static bool
begin(void)
{
	for (unsigned i = 0; i < SIZE; i++)
		text[i] = (char)(i * 7 + i / 256);
	memset(found, 0, SIZE);
	a = open(NAME_A, O_RDWR | O_CREAT | O_TRUNC, 0600);
	b = open(NAME_B, O_RDWR | O_CREAT | O_TRUNC, 0600);
	return a >= 0 && b >= 0 && write(a, text, SIZE) == SIZE && lseek(a, 0, SEEK_SET) == 0;
}

static bool
end(bool good)
{
	close(a);
	close(b);
	return unlink(NAME_A) == 0 && unlink(NAME_B) == 0 && good;
}

static bool
holds(int fd, off_t off, const char *what, size_t n)
{
	return pread(fd, found, SIZE, off) == (ssize_t)n && memcmp(found, what, n) == 0;
}

static bool
sends_files(void)
{
	int ends[2], appends;
	off_t off = 5000, bad = -1;
	bool good = begin() && pipe(ends) == 0;

	good = good && sendfile(b, a, NULL, 70000) == 70000 && lseek(a, 0, SEEK_CUR) == 70000 &&
	       lseek(b, 0, SEEK_CUR) == 70000 && holds(b, 0, text, 70000);
	good = good && sendfile(b, a, NULL, SIZE) == SIZE - 70000 && holds(b, 0, text, SIZE) &&
	       sendfile(b, a, NULL, 1) == 0;
	good = good && sendfile(ends[1], a, &off, 3) == 3 && off == 5003 &&
	       lseek(a, 0, SEEK_CUR) == SIZE && read(ends[0], found, 9) == 3 &&
	       memcmp(found, text + 5000, 3) == 0;
	appends = open(NAME_B, O_WRONLY | O_APPEND);
	good = good && FAILS(sendfile(b, 63, NULL, 1), EBADF) &&
	       FAILS(sendfile(63, a, NULL, 1), EBADF) &&
	       FAILS(sendfile(b, appends, NULL, 1), EBADF) &&
	       FAILS(sendfile(b, ends[0], NULL, 1), EINVAL) &&
	       FAILS(sendfile(appends, a, NULL, 1), EINVAL) &&
	       FAILS(sendfile(b, a, &bad, 1), EINVAL) &&
	       FAILS(syscall(SYS_sendfile, b, a, NOWHERE, 1), EFAULT);
	close(appends);
	close(ends[0]);
	close(ends[1]);
	return end(good);
}

static bool
copies_ranges(void)
{
	off_t from = 1, to = 50000;
	int appends;
	bool good = begin();

	good = good && copy_file_range(a, NULL, b, NULL, 4097, 0) == 4097 &&
	       holds(b, 0, text, 4097) && copy_file_range(a, &from, a, &to, 4096, 0) == 4096 &&
	       from == 4097 && to == 54096 && pread(a, found, 4096, 50000) == 4096 &&
	       memcmp(found, text + 1, 4096) == 0;
	appends = open(NAME_B, O_WRONLY | O_APPEND);
	from = 10;
	to = 100;
	good = good && FAILS(copy_file_range(a, &from, a, &to, 91, 0), EINVAL) &&
	       FAILS(copy_file_range(a, NULL, b, NULL, 1, 1), EINVAL) &&
	       FAILS(copy_file_range(a, NULL, appends, NULL, 1, 0), EBADF) &&
	       FAILS(copy_file_range(appends, NULL, b, NULL, 1, 0), EBADF) &&
	       FAILS(copy_file_range(63, NULL, b, NULL, 1, 0), EBADF);
	close(appends);
	appends = open("/tmp", O_RDONLY);
	good = good && FAILS(copy_file_range(appends, NULL, b, NULL, 1, 0), EISDIR);
	close(appends);
	return end(good);
}

static int way[2];

/* Writes the whole text into a pipe. */
static void *
fill(void *arg)
{
	for (size_t n = 0; n < SIZE;) {
		ssize_t w = write(way[1], text + n, SIZE - n < 777 ? SIZE - n : 777);

		if (w <= 0)
			return arg;
		n += (size_t)w;
	}
	close(way[1]);
	return NULL;
}

/* Pipes to files and files to pipes, whole pages. */
static bool
splices_files(void)
{
	loff_t off = 4096;
	size_t done = 0;
	ssize_t n = 0;
	pthread_t t;
	void *r;
	bool good = begin() && pipe(way) == 0;

	good = good && splice(a, &off, way[1], NULL, 8192, 0) == 8192 && off == 12288 &&
	       splice(way[0], NULL, b, NULL, 4096, 0) == 4096 && holds(b, 0, text + 4096, 4096) &&
	       lseek(b, 0, SEEK_CUR) == 4096;
	off = 0;
	good = good && splice(way[0], NULL, b, &off, SIZE, 0) == 4096 && off == 4096 &&
	       holds(b, 0, text + 8192, 4096) && lseek(b, 0, SEEK_SET) == 0;
	good = good && FAILS(splice(way[0], NULL, b, NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	/* As much as the pipe takes, and no more. */
	good = good && splice(a, NULL, way[1], NULL, SIZE, 0) == 65536 &&
	       lseek(a, 0, SEEK_CUR) == 65536 &&
	       FAILS(splice(a, NULL, way[1], NULL, SIZE, SPLICE_F_NONBLOCK), EAGAIN) &&
	       splice(way[0], NULL, b, NULL, SIZE, 0) == 65536 && holds(b, 0, text, 65536) &&
	       lseek(b, 0, SEEK_SET) == 0;
	/* While another thread writes; to the end. */
	good = good && ftruncate(b, 0) == 0 && pthread_create(&t, NULL, fill, found) == 0;
	while (good && (n = splice(way[0], NULL, b, NULL, 4096, 0)) > 0)
		done += (size_t)n;
	good = good && n == 0 && done == SIZE && pthread_join(t, &r) == 0 && r == NULL &&
	       holds(b, 0, text, SIZE);
	good = good && FAILS(splice(a, NULL, b, NULL, 1, 0), EINVAL) &&
	       FAILS(splice(way[0], NULL, b, NULL, 1, 16), EINVAL) &&
	       FAILS(splice(way[0], &off, b, NULL, 1, 0), ESPIPE) &&
	       FAILS(splice(63, NULL, b, NULL, 1, 0), EBADF) &&
	       FAILS(splice(b, NULL, way[0], NULL, 1, 0), EBADF) &&
	       FAILS(syscall(SYS_splice, way[0], NULL, b, NOWHERE, 1, 0), EFAULT) &&
	       splice(way[0], NULL, b, NULL, 0, 0) == 0;
	close(way[0]);
	return end(good);
}

static bool
splices_pipes(void)
{
	struct iovec v[2] = {{text, 100}, {text + 100, 50}}, to = {found, 200},
		     nowhere_v = {NOWHERE, 9};
	struct sigaction act = {.sa_handler = SIG_IGN};
	int in[2], out[2], last[2];
	bool good = begin() && pipe(in) == 0 && pipe(out) == 0 && pipe(last) == 0;
	char *full = calloc(1, 65536);

	good = good && vmsplice(in[1], v, 2, 0) == 150 && tee(in[0], out[1], 1000, 0) == 150 &&
	       read(out[0], found, SIZE) == 150 && memcmp(found, text, 150) == 0;
	good = good && splice(in[0], NULL, out[1], NULL, 120, 0) == 120 &&
	       vmsplice(out[0], &to, 1, 0) == 120 && read(in[0], found + 120, 100) == 30 &&
	       memcmp(found, text, 150) == 0;
	/* Without waiting; with a signal. */
	good = good && FAILS(splice(in[0], NULL, out[1], NULL, 1, SPLICE_F_NONBLOCK), EAGAIN) &&
	       FAILS(tee(in[0], out[1], 1, SPLICE_F_NONBLOCK), EAGAIN) &&
	       FAILS(vmsplice(in[0], &to, 1, SPLICE_F_NONBLOCK), EAGAIN);
	on_alarm(0);
	send_alarms(true);
	good = good && FAILS(splice(in[0], NULL, out[1], NULL, 1, 0), EINTR) &&
	       FAILS(tee(in[0], out[1], 1, 0), EINTR) &&
	       FAILS(splice(in[0], NULL, b, NULL, 1, 0), EINTR);
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	good = good && write(in[1], full, 65536) == 65536 && vmsplice(last[1], v, 1, 0) == 100 &&
	       FAILS(splice(last[0], NULL, in[1], NULL, 9, SPLICE_F_NONBLOCK), EAGAIN) &&
	       FAILS(vmsplice(in[1], v, 1, SPLICE_F_NONBLOCK), EAGAIN);
	good = good && FAILS(tee(in[0], in[1], 1, 0), EINVAL) &&
	       FAILS(tee(a, in[1], 1, 0), EINVAL) && FAILS(tee(in[0], out[1], 1, 16), EINVAL) &&
	       FAILS(tee(63, out[1], 1, 0), EBADF) &&
	       FAILS(splice(in[0], NULL, in[1], NULL, 1, 0), EINVAL) &&
	       FAILS(vmsplice(a, v, 1, 0), EBADF) && FAILS(vmsplice(in[1], v, 1, 16), EINVAL) &&
	       FAILS(vmsplice(out[1], &nowhere_v, 1, 0), EFAULT) &&
	       FAILS(vmsplice(out[1], NOWHERE, 1, 0), EFAULT);
	sigaction(SIGPIPE, &act, NULL);
	close(out[0]);
	good = good && FAILS(splice(last[0], NULL, out[1], NULL, 9, 0), EPIPE) &&
	       read(last[0], found, SIZE) == 100;
	signal(SIGPIPE, SIG_DFL);
	close(in[1]);
	while (read(in[0], full, 65536) > 0)
		;
	good =
	    good && splice(in[0], NULL, last[1], NULL, 9, 0) == 0 && tee(in[0], last[1], 9, 0) == 0;
	close(in[0]);
	close(out[1]);
	close(last[0]);
	close(last[1]);
	free(full);
	return end(good);
}

/* Two threads move bytes between two pipes in opposite directions. */
static int ring[2][2];

static void *
turn_round(void *arg)
{
	int(*from)[2] = &ring[(unsigned long)arg], (*to)[2] = &ring[1 - (unsigned long)arg];

	for (int i = 0; i < 2000; i++)
		if (splice((*from)[0], NULL, (*to)[1], NULL, 1000, SPLICE_F_NONBLOCK) <= 0 &&
		    errno != EAGAIN)
			return from;
	return NULL;
}

static bool
threads_splice(void)
{
	pthread_t t[4];
	size_t left = 0;
	ssize_t n;
	void *r;
	bool good = pipe2(ring[0], 0) == 0 && pipe2(ring[1], 0) == 0;

	for (int i = 0; i < 2; i++)
		good = good && write(ring[i][1], text, 30000) == 30000;
	for (long i = 0; i < 4; i++)
		good = good && pthread_create(&t[i], NULL, turn_round, (void *)(i % 2)) == 0;
	for (int i = 0; good && i < 4; i++)
		good &= pthread_join(t[i], &r) == 0 && r == NULL;
	for (int i = 0; i < 2; i++) {
		fcntl(ring[i][0], F_SETFL, O_NONBLOCK);
		while ((n = read(ring[i][0], found, SIZE)) > 0)
			left += (size_t)n;
		close(ring[i][0]);
		close(ring[i][1]);
	}
	return good && left == 60000;
}

static bool
moves_pieces_at(void)
{
	struct iovec w[2] = {{text, 10}, {text + 10, 20}}, r[2] = {{found, 5}, {found + 5, 25}};
	int ends[2];
	bool good = begin() && pipe(ends) == 0;
	int synced = open(NAME_A, O_RDONLY | O_SYNC);

	good = good && pwritev(b, w, 2, 4090) == 30 && lseek(b, 0, SEEK_CUR) == 0 &&
	       preadv(b, r, 2, 4090) == 30 && memcmp(found, text, 30) == 0 &&
	       pwritev2(b, w, 1, -1, RWF_SYNC) == 10 && lseek(b, 0, SEEK_CUR) == 10 &&
	       preadv2(a, r, 1, -1, RWF_HIPRI) == 5 && lseek(a, 0, SEEK_CUR) == 5 &&
	       preadv2(b, r, 1, 4120, 0) == 0;
	good = good && FAILS(preadv(b, r, 1, -5), EINVAL) && FAILS(pwritev(63, w, 1, 0), EBADF) &&
	       FAILS(preadv(ends[0], r, 1, 0), ESPIPE) &&
	       FAILS(preadv2(b, r, 1, 0, 0x4000), EOPNOTSUPP) &&
	       FAILS(syscall(SYS_preadv, b, r, 1025, 0, 0), EINVAL) &&
	       FAILS(preadv(b, NOWHERE, 1, 0), EFAULT) &&
	       FAILS(preadv2(ends[0], r, 1, -1, RWF_NOWAIT), EAGAIN);
	good = good && synced >= 0 && fcntl(synced, F_SETFL, O_NONBLOCK) == 0 &&
	       (fcntl(synced, F_GETFL) & (O_SYNC | O_NONBLOCK)) == (O_SYNC | O_NONBLOCK);
	close(synced);
	close(ends[0]);
	close(ends[1]);
	return end(good);
}

/* The sector that holds the file's first bytes cannot be written. */
int
moves_dsync(const char *path)
{
	int fd = open(path, O_WRONLY), other = open(path, O_RDONLY), late;
	const struct iovec w = {text, 10};
	bool good = fd >= 0 && pwritev2(fd, &w, 1, 0, 0) == 10 &&
		    FAILS(pwritev2(fd, &w, 1, 0, RWF_DSYNC), EIO);

	/* Each file that was open then hears of it once. */
	late = open(path, O_RDONLY);
	good = good && fsync(fd) == 0 && FAILS(fsync(other), EIO) && fsync(other) == 0 &&
	       fsync(late) == 0;
	puts(good ? "ok" : "not ok");
	return good ? 0 : 1;
}

static bool
allocates(void)
{
	struct stat st;
	int ends[2], readable = open(NAME_A, O_RDONLY | O_CREAT, 0600);
	bool good = begin() && pipe(ends) == 0 && readable >= 0;

	good = good && fallocate(b, 0, 5000, 10000) == 0 && fstat(b, &st) == 0 &&
	       st.st_size == 15000 && pread(b, found, SIZE, 0) == 15000 && found[0] == 0 &&
	       found[14999] == 0 && fallocate(a, 0, 0, 10) == 0 && holds(a, 0, text, SIZE);
	good = good && FAILS(fallocate(readable, 0, 0, 1), EBADF) &&
	       FAILS(fallocate(b, 0, -1, 1), EINVAL) && FAILS(fallocate(b, 0, 0, 0), EINVAL) &&
	       FAILS(fallocate(b, 0x40, 0, 1), EOPNOTSUPP) &&
	       FAILS(fallocate(ends[1], 0, 0, 1), ESPIPE) && FAILS(fallocate(63, 0, 0, 1), EBADF) &&
	       FAILS(fallocate(b, 0, 0, 1l << 60), EFBIG);
	close(readable);
	close(ends[0]);
	close(ends[1]);
	return end(good);
}

static void *
unlock_later(void *fd)
{
	struct timespec ts = {0, 20 * MS};

	nanosleep(&ts, NULL);
	flock(*(int *)fd, LOCK_UN);
	return NULL;
}

static bool
locks_files(void)
{
	int c, d, same;
	pthread_t t;
	bool good = begin();

	c = open(NAME_A, O_RDONLY);
	d = open(NAME_A, O_RDONLY);
	same = dup(c);
	good = good && flock(a, LOCK_SH) == 0 && flock(c, LOCK_SH) == 0 &&
	       FAILS(flock(d, LOCK_EX | LOCK_NB), EWOULDBLOCK) &&
	       flock(d, LOCK_SH | LOCK_NB) == 0 && flock(d, LOCK_UN) == 0 &&
	       flock(d, LOCK_UN) == 0 && flock(same, LOCK_SH) == 0;
	/* The last descriptor of the file takes the lock with it. */
	close(same);
	good = good && flock(a, LOCK_UN) == 0 && FAILS(flock(a, LOCK_EX | LOCK_NB), EWOULDBLOCK) &&
	       close(c) == 0 && flock(a, LOCK_EX | LOCK_NB) == 0 &&
	       flock(b, LOCK_EX | LOCK_NB) == 0;
	on_alarm(0);
	send_alarms(true);
	good = good && FAILS(flock(d, LOCK_SH), EINTR);
	on_alarm(SA_RESTART);
	good = good && pthread_create(&t, NULL, unlock_later, &a) == 0 && flock(d, LOCK_EX) == 0 &&
	       pthread_join(t, NULL) == 0 && FAILS(flock(a, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	send_alarms(false);
	signal(SIGALRM, SIG_DFL);
	good = good && flock(d, LOCK_SH) == 0 && flock(a, LOCK_SH | LOCK_NB) == 0;
	good = good && FAILS(flock(a, 0), EINVAL) && FAILS(flock(a, 16), EINVAL) &&
	       FAILS(flock(63, LOCK_SH), EBADF);
	close(d);
	return end(good);
}

static bool
makes_unnamed_files(void)
{
	char name[260];
	int fd = memfd_create("some name", MFD_CLOEXEC);
	char *p;
	bool good = fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC && ftruncate(fd, 8192) == 0;

	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	good = good && p != MAP_FAILED && pwrite(fd, "kestrel", 7, 4096) == 7 &&
	       memcmp(p + 4096, "kestrel", 8) == 0;
	munmap(p, 8192);
	close(fd);
	memset(name, 'x', sizeof(name));
	name[249] = '\0';
	fd = memfd_create(name, MFD_ALLOW_SEALING);
	good = good && fd >= 0 && close(fd) == 0;
	name[249] = 'x';
	name[250] = '\0';
	return good && FAILS(memfd_create(name, 0), EINVAL) &&
	       FAILS(memfd_create("x", 0x100), EINVAL) && FAILS(memfd_create(NOWHERE, 0), EFAULT);
}

static int
closes_ranges(void *arg)
{
	int fds[4];

	for (int i = 0; i < 4; i++)
		fds[i] = dup(1);
	if (close_range((unsigned)fds[1], (unsigned)fds[2], 0) != 0 ||
	    fcntl(fds[0], F_GETFD) != 0 || !FAILS(fcntl(fds[1], F_GETFD), EBADF) ||
	    !FAILS(fcntl(fds[2], F_GETFD), EBADF))
		return 1;
	if (close_range((unsigned)fds[0], ~0u, CLOSE_RANGE_CLOEXEC) != 0 ||
	    fcntl(fds[0], F_GETFD) != FD_CLOEXEC || fcntl(fds[3], F_GETFD) != FD_CLOEXEC ||
	    dup(1) != fds[1] || fcntl(fds[1], F_GETFD) != 0)
		return 2;
	if (close_range(3, ~0u, CLOSE_RANGE_UNSHARE) != 0 ||
	    !FAILS(fcntl(fds[3], F_GETFD), EBADF) || fcntl(1, F_GETFD) != 0)
		return 3;
	return FAILS(close_range(5, 4, 0), EINVAL) && FAILS(close_range(3, 4, 8), EINVAL) ? 0 : 4;
}

int
moves_exchange(const char *a, const char *b)
{
	int r = renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);

	puts(r == 0 ? "exchanged" : strerrorname_np(errno));
	return 0;
}

int
moves_linked(const char *fd, const char *path)
{
	char from[64];

	snprintf(from, sizeof(from), "/proc/self/fd/%s", fd);
	puts(linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0
		 ? "linked"
		 : strerrorname_np(errno));
	return 0;
}

static bool
exchanges_names(void)
{
	struct stat st, other;
	bool good = begin() && fstat(a, &st) == 0 && mkdir("/tmp/linux_dir", 0755) == 0 &&
		    mkdir("/tmp/linux_dir/in", 0755) == 0;

	good = good &&
	       renameat2(AT_FDCWD, NAME_A, AT_FDCWD, "/tmp/linux_dir/in", RENAME_EXCHANGE) == 0 &&
	       stat("/tmp/linux_dir/in", &other) == 0 && other.st_ino == st.st_ino &&
	       other.st_nlink == 1 && stat(NAME_A, &other) == 0 && S_ISDIR(other.st_mode) &&
	       stat("/tmp", &st) == 0 && stat(NAME_A "/..", &other) == 0 &&
	       other.st_ino == st.st_ino &&
	       renameat2(AT_FDCWD, "/tmp/linux_dir/in", AT_FDCWD, NAME_A, RENAME_EXCHANGE) == 0;
	good =
	    good &&
	    FAILS(renameat2(AT_FDCWD, NAME_A, AT_FDCWD, "/tmp/none", RENAME_EXCHANGE), ENOENT) &&
	    FAILS(renameat2(AT_FDCWD, "/tmp/linux_dir", AT_FDCWD, "/tmp/linux_dir/in",
			    RENAME_EXCHANGE),
		  EINVAL) &&
	    FAILS(renameat2(AT_FDCWD, "/tmp/linux_dir/in", AT_FDCWD, "/tmp/linux_dir",
			    RENAME_EXCHANGE),
		  EINVAL) &&
	    FAILS(renameat2(AT_FDCWD, NAME_A, AT_FDCWD, NAME_B, RENAME_EXCHANGE | RENAME_NOREPLACE),
		  EINVAL) &&
	    FAILS(renameat2(AT_FDCWD, NAME_A, AT_FDCWD, NAME_B, 8), EINVAL) &&
	    FAILS(renameat2(AT_FDCWD, NAME_A, AT_FDCWD, NAME_B, RENAME_NOREPLACE), EEXIST) &&
	    renameat2(AT_FDCWD, NAME_A, AT_FDCWD, NAME_A, RENAME_EXCHANGE) == 0;
	return end(rmdir("/tmp/linux_dir/in") == 0 && rmdir("/tmp/linux_dir") == 0 && good);
}

/* Is what the descriptor has told to be removed? */
static bool
is_told_removed(int fd)
{
	char link[32], to[256];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	return strstr(to, "(deleted)") != NULL;
}

static int
exchanges_alone(void *arg)
{
	char path[64];
	int fd = open(NAME_A, O_RDWR | O_CREAT, 0600);

	if (renameat2(AT_FDCWD, NAME_A, AT_FDCWD, NAME_A, RENAME_EXCHANGE) != 0 ||
	    unlink(NAME_A) != 0 || !is_told_removed(fd))
		return 1;
	if (mkdir(NAME_A, 0755) != 0 || chdir(NAME_A) != 0 ||
	    renameat2(AT_FDCWD, NAME_A, AT_FDCWD, NAME_A, RENAME_EXCHANGE) != 0 ||
	    rmdir(NAME_A) != 0)
		return 2;
	return FAILS(mkdir("x", 0755), ENOENT) &&
		       FAILS(syscall(SYS_getcwd, path, sizeof(path)), ENOENT)
		   ? 0
		   : 3;
}

/* Reads the next name of a directory, of up to 12 bytes. False: there are no more. */
static bool
next_name(int dir, char name[13])
{
	char buf[32]; /* no two fit */
	bool more = syscall(SYS_getdents64, dir, buf, sizeof(buf)) > 0;

	if (more)
		memcpy(name, buf + 19, 13); /* d_name */
	return more;
}

#define LISTED "/tmp/linux_listed"

/* Who gives each name that he finds another one comes to an end. */
static bool
renames_what_it_lists(void)
{
	char name[13], from[64], to[64];
	int dir = mkdir(LISTED, 0755) == 0 ? open(LISTED, O_RDONLY | O_DIRECTORY) : -1;
	unsigned n = 0;
	bool good = dir >= 0 && close(creat(LISTED "/name", 0600)) == 0;

	while (good && n < 100 && next_name(dir, name)) {
		snprintf(from, sizeof(from), LISTED "/%s", name);
		snprintf(to, sizeof(to), LISTED "/other%u", n);
		good = name[0] == '.' || (n++ < 99 && rename(from, to) == 0);
	}
	for (unsigned i = 0; i < n; i++) {
		snprintf(to, sizeof(to), LISTED "/other%u", i);
		unlink(to);
	}
	unlink(LISTED "/name");
	return close(dir) == 0 && rmdir(LISTED) == 0 && good;
}

/* A name that a rename gives to another file is still listed, once. */
static bool
lists_what_is_replaced(void)
{
	static const char *const names[] = {LISTED "/a", LISTED "/b", LISTED "/c"};
	char name[13];
	int dir = mkdir(LISTED, 0755) == 0 ? open(LISTED, O_RDONLY | O_DIRECTORY) : -1;
	unsigned seen[3] = {0};
	bool good = dir >= 0;

	for (unsigned i = 0; i < 3; i++)
		good = good && close(creat(names[i], 0600)) == 0;
	for (unsigned n = 0; good && n < 100 && next_name(dir, name); n++) {
		if (name[0] >= 'a' && name[0] <= 'c')
			seen[name[0] - 'a']++;
		good = n < 99 && close(creat(LISTED "/new", 0600)) == 0 &&
		       rename(LISTED "/new", names[n % 3]) == 0;
	}
	for (unsigned i = 0; i < 3; i++)
		good = unlink(names[i]) == 0 && good && seen[i] == 1;
	return close(dir) == 0 && rmdir(LISTED) == 0 && good;
}

void
test_moves(void)
{
	result(sends_files(), "sendfile copies a file to a file or a pipe");
	result(copies_ranges(), "copy_file_range copies parts of files");
	result(splices_files(), "splice moves bytes between pipes and files");
	result(splices_pipes(), "splice, tee and vmsplice move bytes between pipes and memory");
	result(threads_splice(), "threads splice pipes in opposite directions");
	result(moves_pieces_at(), "preadv and pwritev move pieces at offsets");
	result(allocates(), "fallocate makes a file grow");
	result(locks_files(), "flock locks files, and waits");
	result(makes_unnamed_files(), "memfd_create makes files without names");
	result(in_child(closes_ranges, NULL) == 0, "close_range closes many, or at exec");
	result(exchanges_names(), "renameat2 exchanges names");
	result(renames_what_it_lists(), "who renames what he lists comes to an end");
	result(lists_what_is_replaced(), "a name that is replaced is listed once");
	result(in_child(exchanges_alone, NULL) == 0, "a name that is exchanged with itself stays");
}
