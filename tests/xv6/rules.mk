# rules.mk - make test-xv6.

XV6 ?= https://github.com/mit-pdos/xv6-riscv

.PHONY: test-xv6

test-xv6: dif-amalgamation build/host/ktrdump build/host/dtrace ## the log and D in xv6-riscv, as ktr/README.md says: needs the network, or XV6=REPOSITORY
	tests/xv6/run $(XV6)
