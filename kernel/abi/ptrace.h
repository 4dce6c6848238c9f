/* ptrace.h - requests, options and events of ptrace(), Linux's. */
#pragma once

#include <stdint.h>

#define PTRACE_TRACEME          0
#define PTRACE_PEEKTEXT         1
#define PTRACE_PEEKDATA         2
#define PTRACE_PEEKUSER         3
#define PTRACE_POKETEXT         4
#define PTRACE_POKEDATA         5
#define PTRACE_POKEUSER         6
#define PTRACE_CONT             7
#define PTRACE_KILL             8
#define PTRACE_SINGLESTEP       9
#define PTRACE_GETREGS          12
#define PTRACE_SETREGS          13
#define PTRACE_GETFPREGS        14
#define PTRACE_SETFPREGS        15
#define PTRACE_ATTACH           16
#define PTRACE_DETACH           17
#define PTRACE_SYSCALL          24
#define PTRACE_SETOPTIONS       0x4200
#define PTRACE_GETEVENTMSG      0x4201
#define PTRACE_GETSIGINFO       0x4202
#define PTRACE_SETSIGINFO       0x4203
#define PTRACE_GETREGSET        0x4204
#define PTRACE_SETREGSET        0x4205
#define PTRACE_SEIZE            0x4206
#define PTRACE_INTERRUPT        0x4207
#define PTRACE_LISTEN           0x4208
#define PTRACE_GETSIGMASK       0x420a
#define PTRACE_SETSIGMASK       0x420b
#define PTRACE_GET_SYSCALL_INFO 0x420e

/* Option n is bit n; the events 1 to 6 have the same numbers. */
#define PTRACE_O_TRACESYSGOOD  0x1
#define PTRACE_O_EXITKILL      0x100000
#define PTRACE_O_MASK          0x10007f
#define PTRACE_EVENT_FORK      1
#define PTRACE_EVENT_VFORK     2
#define PTRACE_EVENT_CLONE     3
#define PTRACE_EVENT_EXEC      4
#define PTRACE_EVENT_VFORKDONE 5
#define PTRACE_EVENT_EXIT      6
#define PTRACE_EVENT_STOP      128

#define NT_PRSTATUS        1
#define NT_PRFPREG         2
#define NT_ARM_TLS         0x401
#define NT_ARM_SYSTEM_CALL 0x404

#define PTRACE_SYSCALL_INFO_NONE  0
#define PTRACE_SYSCALL_INFO_ENTRY 1
#define PTRACE_SYSCALL_INFO_EXIT  2

struct ptrace_syscall_info {
	uint8_t op, pad[3];
	uint32_t arch;
	uint64_t instruction_pointer, stack_pointer;
	union {
		struct {
			uint64_t nr, args[6];
		} entry;
		struct {
			int64_t rval;
			uint8_t is_error;
		} exit;
	};
};
