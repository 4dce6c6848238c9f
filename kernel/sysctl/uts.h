/* uts.h - what uname() tells. */
#pragma once

#include "kernel/abi/utsname.h"

/* A copy. Thread context. */
struct utsname uts_get(void);
/* Names the machine, or its domain. 0; -EINVAL: longer than 64 characters. Thread context. */
int uts_set_hostname(const char *name);
int uts_set_domainname(const char *name);
