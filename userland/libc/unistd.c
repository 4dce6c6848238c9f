/* unistd.c - what stands on the system calls: execvp, sleep, time. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int
execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

int
execvp(const char *file, char *const argv[])
{
	const char *path = getenv("PATH");
	int error = ENOENT;

	if (strchr(file, '/') != NULL)
		return execv(file, argv);
	for (path = path != NULL ? path : "/bin"; *path != '\0';) {
		size_t len = strcspn(path, ":");
		char full[PATH_MAX];

		snprintf(full, sizeof(full), "%.*s/%s", (int)len, len > 0 ? path : ".", file);
		execv(full, argv);
		if (errno != ENOENT && errno != ENOTDIR)
			error = errno; /* found, but not to be run: that is the better news */
		path += len + (path[len] == ':');
	}
	errno = error;
	return -1;
}

unsigned int
sleep(unsigned int seconds)
{
	struct timespec ts = {.tv_sec = seconds}, rest = {0};

	return nanosleep(&ts, &rest) < 0 ? (unsigned int)rest.tv_sec : 0;
}

int
usleep(unsigned int microseconds)
{
	struct timespec ts = {.tv_sec = microseconds / 1000000,
			      .tv_nsec = (int64_t)(microseconds % 1000000) * 1000};

	return nanosleep(&ts, NULL);
}

time_t
time(time_t *t)
{
	struct timespec ts = {0};

	clock_gettime(CLOCK_REALTIME, &ts);
	if (t != NULL)
		*t = ts.tv_sec;
	return ts.tv_sec;
}
