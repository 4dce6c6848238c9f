/* wait.h - wait4 options and status words, Linux's encoding. */
#pragma once

#define WNOHANG    1
#define WUNTRACED  2
#define WCONTINUED 8

#define WEXITSTATUS(s) (((s) >> 8) & 0xff)
#define WTERMSIG(s)    ((s)&0x7f)
#define WIFEXITED(s)   (WTERMSIG(s) == 0)
#define WIFSTOPPED(s)  (((s)&0xff) == 0x7f)
#define WSTOPSIG(s)    WEXITSTATUS(s)
#define WIFSIGNALED(s) (WTERMSIG(s) != 0 && !WIFSTOPPED(s))
