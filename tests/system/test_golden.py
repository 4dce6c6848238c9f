#!/usr/bin/python3
"""test_golden.py - with counted instructions and one CPU nothing is left to chance: the same script gives the same trace."""
from harness import boot, check, check_eq, ktr_stats, main, portable_test

SCRIPT = """
sysctl debug.ktr.mask=ALL
load mix -n 4 -j 2
ls /bin | wc
sysctl debug.ktr.mask=NONE
sysctl debug.ktr.stats
"""


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


@portable_test("--icount: the same script gives the same console and the same trace, byte for byte, twice")
def golden():
    runs = [boot(SCRIPT, smp=1, sets=["debug.ktr.entries=65536"], trace=True, options=["--icount"]).expect()
            for _ in range(2)]
    one, other = (run.trace.read_bytes() for run in runs)
    check_eq(runs[1].out, runs[0].out, "console of the second run")
    check(one == other, f"traces of {len(one)} and {len(other)} bytes differ from byte {first_difference(one, other)} on; "
                        "expected the same bytes")
    stats = ktr_stats(runs[0].out)[0]
    check_eq(stats["overwritten"], 0, f"events that the trace lacks ({stats})")
    check(stats["delivered"] + stats["resident"] > 5000, f"too few events to say anything: {stats}")
    check_eq(len(runs[0].events) + len(runs[0].parts), stats["recorded"], "events in the trace, with the parts of long data")


if __name__ == "__main__":
    main()
