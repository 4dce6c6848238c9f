/*
 * utsname.h - struct utsname, Linux's layout. Programs compare the names: so the system is "Linux",
 * and its release begins with that of the Linux whose system calls it has, and ends in "-kestrel".
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
