/* prctl.h - what prctl() does, with Linux's numbers (include/uapi/linux/prctl.h). */
#pragma once

#define PR_SET_NAME 15 /* the process gets a name, of which 15 characters are kept */
#define PR_GET_NAME 16 /* into 16 bytes */
