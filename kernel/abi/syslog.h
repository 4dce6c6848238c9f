/* syslog.h - actions of syslog(), which the C library calls klogctl(). Linux's. */
#pragma once

#define SYSLOG_CLOSE         0
#define SYSLOG_OPEN          1
#define SYSLOG_READ          2 /* each message once; waits for it */
#define SYSLOG_READ_ALL      3
#define SYSLOG_READ_CLEAR    4
#define SYSLOG_CLEAR         5
#define SYSLOG_CONSOLE_OFF   6
#define SYSLOG_CONSOLE_ON    7
#define SYSLOG_CONSOLE_LEVEL 8 /* what is below goes to the console */
#define SYSLOG_SIZE_UNREAD   9
#define SYSLOG_SIZE_BUFFER   10

#define SYSLOG_INFO 6 /* the level of printk(); that of pr_warn() is lower */
