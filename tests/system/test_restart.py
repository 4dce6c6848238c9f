#!/usr/bin/python3
"""test_restart.py - a claim of an event's number is no atomic instruction: it begins again when an interrupt came."""
import re

from harness import ARCH, ROOT, boot, check, check_eq, check_match, main, test

# Places in the claim at which something of it is done: behind its first instruction, up to the store that ends it.
PLACES = {"x86_64": 9, "aarch64": 7}
TEST = "ktr_ring_claims_begin_again_wherever_an_interrupt_comes"


@test("an interrupt at each instruction of a claim: every event is there once, in the order of time")
def everywhere():
    run = boot(smp=1, sets=[f"kern.test={TEST}"],
               options=["--kernel", str(ROOT / "build" / ARCH / "kestrel-test"), "--icount"])
    check_eq(run.status, 0, "exit status")
    check_match(rf"(?m)^ok 1 - {TEST} ", run.out, "the kernel's own test")
    found = re.search(r"interrupted at (\d+) instructions of the claim; (\d+) rounds without an interrupt", run.out)
    check(found, f"no line about the claim in:\n{run.out[-2000:]}")
    check_eq(int(found.group(1)), PLACES[ARCH], "instructions of the claim that were interrupted")
    check_eq(int(found.group(2)), 0, "rounds of which the interrupt's own events are not there")


if __name__ == "__main__":
    main()
