# rules.mk - make test-freertos.

FREERTOS ?= https://github.com/FreeRTOS/FreeRTOS-Kernel

.PHONY: test-freertos

test-freertos: ktr-amalgamation build/host/ktrdump ## the log in FreeRTOS's POSIX port, as ktr/README.md says: needs the network, or FREERTOS=REPOSITORY
	tests/freertos/run $(FREERTOS)
