/* wait.h - wait4 options and status words, Linux's encoding. */
#pragma once

#define WNOHANG    1
#define WUNTRACED  2
#define WCONTINUED 8
/* options of waitid() alone, but for the last three, which change nothing here: */
#define WSTOPPED  2
#define WEXITED   4
#define WNOWAIT   0x01000000 /* what is told may be told again */
#define WNOTHREAD 0x20000000
#define WALL      0x40000000
#define WCLONE    ((int)0x80000000)

/* which children waitid() waits for */
#define P_ALL   0
#define P_PID   1
#define P_PIDFD 3
#define P_PGID  2

#define WAIT_CONTINUED 0xffff

#define WEXITSTATUS(s) (((s) >> 8) & 0xff)
#define WTERMSIG(s)    ((s)&0x7f)
#define WIFEXITED(s)   (WTERMSIG(s) == 0)
#define WIFSTOPPED(s)  (((s)&0xff) == 0x7f)
#define WSTOPSIG(s)    WEXITSTATUS(s)
#define WIFSIGNALED(s) (WTERMSIG(s) != 0 && !WIFSTOPPED(s))
