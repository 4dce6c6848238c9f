/* unistd.h - system calls. Unless said otherwise they return 0 or a count, or -1 with errno. */
#pragma once

#include <sys/types.h>

#include "kernel/abi/fcntl.h" /* SEEK_… */

#define STDIN_FILENO  0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2

#define F_OK 0
#define X_OK 1
#define W_OK 2
#define R_OK 4

extern char **environ;

ssize_t read(int fd, void *buf, size_t len);
ssize_t write(int fd, const void *buf, size_t len);
/* Writes all of it, in as many calls as it takes: 0, or -1 with errno. */
int write_all(int fd, const void *buf, size_t len);
off_t lseek(int fd, off_t off, int whence);
int close(int fd);
int dup(int fd);
int dup2(int from, int to);
int pipe(int fds[2]);
int pipe2(int fds[2], int flags);
int isatty(int fd);

int chdir(const char *path);
/* NULL with errno; ERANGE when size is too small. */
char *getcwd(char *buf, size_t size);
int unlink(const char *path);
int unlinkat(int dir, const char *path, int flags);
int rmdir(const char *path);
int rename(const char *from, const char *to);
/* Whether `path` exists, and for X_OK whether any execute bit is set. Other bits are not judged. */
int access(const char *path, int how);

pid_t fork(void);
int execve(const char *path, char *const argv[], char *const envp[]);
int execv(const char *path, char *const argv[]);
/* Looks `file` up in $PATH unless it has a '/'. */
int execvp(const char *file, char *const argv[]);
void _exit(int status) __attribute__((noreturn));

pid_t getpid(void);
pid_t getppid(void);
pid_t getpgid(pid_t pid);
pid_t getpgrp(void);
int setpgid(pid_t pid, pid_t pgid);
uid_t getuid(void);
uid_t geteuid(void);
int setuid(uid_t uid);
unsigned int sleep(unsigned int seconds);
int usleep(unsigned int microseconds);
