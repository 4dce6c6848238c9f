/* report.h - the tables of /proc/net about AF_INET. Thread context, may sleep. */
#pragma once

struct sbuf;

enum inet_table {
	INET_TABLE_TCP,
	INET_TABLE_UDP,
	INET_TABLE_RAW,
	INET_TABLE_DEV,
	INET_TABLE_ROUTE
};

/* Prints a table as Linux does. The address is NULL in a kernel that was built without lwIP. */
__attribute__((weak)) void inet_print(enum inet_table table, struct sbuf *out);
