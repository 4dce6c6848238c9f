# sources.mk - which files make the event log, the tools and the hosted port.
KTR_KERNEL_SRCS := $(wildcard ktr/*.c)
KTR_TOOL_SRCS := $(wildcard ktr/tools/*.c) ktr/fmt.c
KTR_HOST_SRCS := $(wildcard ktr/*.c)
