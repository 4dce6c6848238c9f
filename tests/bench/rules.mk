# rules.mk - make bench.

.PHONY: bench

bench: $(ARCHS:%=guests-of-%) ## measure: instructions, bytes, rates; one table, and build/bench.json
	tests/bench/run
