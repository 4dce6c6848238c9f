#!/usr/bin/python3
"""test_deaths.py - however the kernel dies, it tells of it: message, place, last events, a closed trace."""
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from harness import boot, check, check_match, main, test  # noqa: E402


def dies(sysctl, message, place):
    """Boots, dies on request with tracing on; the report and the trace are whole."""
    for smp in (1, 4):
        r = boot(f"load fork -n 3\nsysctl debug.kdb.{sysctl}=1\n", smp=smp, mask="PROC,SCHED", trace=True).expect(101)
        check_match(rf"^panic: .*{message}", r.out, f"{smp} CPUs, console")
        check_match(rf"^#\d+ +0x[0-9a-f]+ {place}\+", r.out, f"{smp} CPUs, backtrace")
        check_match(r"^last \d+ events:$", r.out, f"{smp} CPUs, events")
        check(any(e["text"].startswith("panic: ") for e in r.events), f"{smp} CPUs: no panic event in the trace")


@test("a bad pointer in the kernel: a page fault with its address, exit status 101")
def bad_pointer():
    dies("trap", "page fault, address 0x10$", "trap_set")


@test("a kernel stack that runs over: a panic on another stack, exit status 101")
def stack_overflow():
    dies("stack_overflow", "(double fault|kernel stack overflow), address 0x[0-9a-f]+$", r"recurse[.\w]*")


if __name__ == "__main__":
    main()
