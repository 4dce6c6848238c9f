/* prctl.h - what prctl() does, with Linux's numbers (include/uapi/linux/prctl.h). */
#pragma once

#define PR_SET_PDEATHSIG       1 /* a signal when the parent ends; 0: none */
#define PR_GET_PDEATHSIG       2
#define PR_GET_DUMPABLE        3 /* 1: its user may trace it; 0: may not */
#define PR_SET_DUMPABLE        4
#define PR_GET_KEEPCAPS        7 /* 1: permitted rights stay when no user id is 0 any more */
#define PR_SET_KEEPCAPS        8
#define PR_SET_NAME            15 /* the process gets a name, of which 15 characters are kept */
#define PR_GET_NAME            16 /* into 16 bytes */
#define PR_CAPBSET_READ        23 /* 1: the right is in the bounding set */
#define PR_CAPBSET_DROP        24
#define PR_GET_SECUREBITS      27 /* only SECBIT_KEEP_CAPS is ever set: what PR_GET_KEEPCAPS says */
#define PR_SET_SECUREBITS      28 /* EPERM with any other bit, also those that Linux takes */
#define PR_SET_TIMERSLACK      29 /* ns; stored and reported; it has no effect: callouts are exact */
#define PR_GET_TIMERSLACK      30
#define PR_SET_CHILD_SUBREAPER 36 /* the process is the parent of descendants that lose theirs */
#define PR_GET_CHILD_SUBREAPER 37
#define PR_SET_NO_NEW_PRIVS    38 /* exec gives no rights, from now on */
#define PR_GET_NO_NEW_PRIVS    39

#define TIMERSLACK_NS    50000 /* at first */
#define SECBIT_KEEP_CAPS 16
