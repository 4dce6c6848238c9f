#!/usr/bin/python3
"""test_profile.py - profile-N fires on every CPU and tick-N on one, at the rate of its name, and says what it interrupted."""
import re

import tracecheck as tc
from harness import boot, check, check_eq, check_match, main, test

RING = "debug.ktr.entries=65536"
ARGS = re.compile(r"^profile:::([\w-]+): pc (0|0xf\w+) user (0|0x\w+)$")


def fired(run, probe):
    """(event, pc, user pc) of each event of a probe."""
    found = [(e, ARGS.match(e["text"])) for e in run.events if e["text"].startswith(f"profile:::{probe}:")]
    check(all(m for _, m in found), f"{probe} has an event with other arguments: {found[:3]}")
    return [(e, int(m.group(2), 16 if len(m.group(2)) > 1 else 10), int(m.group(3), 16 if len(m.group(3)) > 1 else 10))
            for e, m in found]


@test("a rate is kept without drift, an event tells either a kernel's or a program's pc, and what is off does not fire")
def rate():
    run = boot("ktr on 'profile:::profile-997,profile:::tick-5ms,profile:::profile-2500usec'\nload mix -n 300 -j 2\nload mix -n 2\n"
               "ktr off\nload mix -n 20\n", trace=True, sets=[RING], options=["--icount"]).expect()
    tc.no_gaps(run)
    ends = [e["ns"] for e, _ in tc.named(run, r"exit: pid \d+ ")]
    for probe, period in (("profile-997", 1e9 // 997), ("tick-5ms", 5e6), ("profile-2500usec", 2.5e6)):
        found = fired(run, probe)
        times = [e["ns"] for e, _, _ in found]
        check(len(times) > 20, f"{probe} fired {len(times)} times, expected more")
        # Interrupts may be off for a while: but the times stay on their grid.
        late = [(t - times[0]) % period for t in times]
        late = [min(n, period - n) for n in late]
        check(sorted(late)[len(late) // 2] < 50_000, f"{probe} drifts: {late[:10]} ... {late[-10:]} ns from a multiple of {period}")
        check(abs((times[-1] - times[0]) / period - (len(times) - 1)) < 2, f"{probe} fired {len(times)} times in {times[-1] - times[0]} ns")
        for e, pc, user in found:
            check((pc == 0) != (user == 0), f"{e['text']}: expected one pc")
        check(ends == [] or times[-1] < ends[-1] + period, "it fires after it was switched off")
    check(any(user for _, _, user in fired(run, "profile-997")), "no program was interrupted")
    check(any(pc for _, pc, _ in fired(run, "profile-997")), "the kernel was never interrupted")


@test("profile-N fires on every CPU and tick-N on one, from the boot on")
def cpus():
    run = boot("load mix -n 40 -j 4\n", smp=4, trace=True,
               sets=[RING, "debug.ktr.on=profile:::profile-500,profile:::tick-2ms"]).expect()
    check_eq({e["cpu"] for e, _, _ in fired(run, "profile-500")}, {0, 1, 2, 3}, "CPUs of profile-500")
    check_eq({e["cpu"] for e, _, _ in fired(run, "tick-2ms")}, {0}, "CPUs of tick-2ms")


@test("a rate that cannot be is refused with a reason; probes that are off make room for others")
def names():
    bad = {"tick-199us": "expected 1 to 5000 Hz", "tick-1001d": "200us to 1000d", "profile-0": "expected 1 to 5000 Hz",
           "profile-5001": "expected 1 to 5000 Hz", "profile-": "expected a rate in Hz", "tick-5x": "expected a rate in Hz",
           "tick-99999999999999999999s": "expected a rate in Hz", "profile-5001hz": "expected 1 to 5000 Hz"}
    good = ["profile-5000", "profile-1hz", "tick-200us", "tick-1000d", "tick-3min", "tick-2h", "tick-1hour", "tick-250000ns"]
    script = [f"ktr on 'profile:::{name}'" for name in bad] + [f"ktr on 'profile:::{name}' && ktr off" for name in good]
    script += ["i=1; while [ $i -le 100 ]; do ktr on profile:::profile-$i >/dev/null && ktr off >/dev/null; i=$((i + 1)); done",
               "ktr probes -c profile:::", "i=1", "while [ $i -le 32 ]; do ktr on profile:::tick-${i}s >/dev/null; i=$((i + 1)); done",
               "ktr on profile:::tick-33s", "ktr probes -c profile:::", "ktr on 'profile:::tick-[1-3]s'", ""]
    run = boot("\n".join(script)).expect()
    for name, why in bad.items():
        text = name.split("-", 1)[1]
        check_match(rf'^ktr: "{text}": .*{re.escape(why)}', run.out, name)
    check_eq(run.out.count("1 trace point switched on\n"), len(good), "rates that were taken")
    check_eq(re.findall(r"^profile +(\d+ +\d+)$", run.out, re.M), ["32  0", "32 32"], "probes of profile")
    check_match(r"^ktr: 32 probes of profile are on", run.out, "one too many")
    check_match(r"^0 trace points switched on; 3 were on$", run.out, "a glob names those that are there")


if __name__ == "__main__":
    main()
