# rules.mk - make view, make test-viewers.

.PHONY: view test-viewers

view: $H/ktrdump ## open TRACE= in VIEWER=browser (a page), picture, kernelshark, speedscope or perfetto; asks before it installs one (YES=1: does not ask)
	ktr/tools/view $(if $(YES),--yes) --viewer '$(or $(VIEWER),browser)' '$(TRACE)'

test-viewers: all ## open exports in KernelShark, speedscope and Chromium, which need a display or npm: do they show them?
	tests/viewers/run
