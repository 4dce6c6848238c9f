# rules.mk - make mutants.

.PHONY: mutants

mutants: ## break ktr/ on purpose, change by change: do the unit tests notice?
	tests/mutants/run
