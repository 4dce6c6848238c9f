/*
 * utsname.h - struct utsname, Linux's layout. The system is "Kestrel"; its release is that of the
 * Linux whose system calls it has, because programs compare it.
 */
#pragma once

#define UTSNAME_SIZE 65

struct utsname {
	char sysname[UTSNAME_SIZE];
	char nodename[UTSNAME_SIZE];
	char release[UTSNAME_SIZE];
	char version[UTSNAME_SIZE];
	char machine[UTSNAME_SIZE];
	char domainname[UTSNAME_SIZE];
};
