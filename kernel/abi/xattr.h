/* xattr.h - extended attributes of files, Linux's limits and flags. */
#pragma once

#define XATTR_CREATE   1
#define XATTR_REPLACE  2
#define XATTR_NAME_MAX 255
#define XATTR_SIZE_MAX 65536
#define XATTR_LIST_MAX 65536
