#!/usr/bin/python3
"""test_stress.py - every class on, every workload, four CPUs, for a while: the log's accounts are exact.

environment: KESTREL_STRESS_SECONDS, how long each test keeps the guest busy (default: 1, and 4 in `make
soak`). `make stress SECONDS=60`.
"""
import json
import os
import re
import subprocess
import time

import tracecheck as tc
from harness import BOOT, BUILD, DEADLINE_S, KTRDUMP, SLACK_S, ARCH, boot, check, check_eq, check_match, ktr_stats, main, portable_test, test, times

SECONDS_GIVEN = os.environ.get("KESTREL_STRESS_SECONDS")
try:
    SECONDS = float(SECONDS_GIVEN or times(1, 4))
except ValueError:
    SECONDS = 0.0
CPUS = 4
SCRIPT = """
sysctl debug.ktr.mask=ALL > /dev/null
(sleep {seconds}; touch /tmp/over) &
n=0
over=
while [ -z "$over" ]; do
    test -e /tmp/over && over=1
    load mix -n 20 -j {jobs} > /tmp/out || {{ cat /tmp/out; exit 9; }}
    n=$((n + 1))
done
wait
sysctl debug.ktr.mask=NONE > /dev/null
echo rounds $n
sysctl debug.ktr.stats
"""
# Texts that contain the id of the thread that recorded the event.
OWN = [re.compile(p) for p in (r"fork: parent (\d+) child", r"exit: pid (\d+) ")]


class Seen:
    """The part of a stream about one CPU."""

    def __init__(self):
        self.events = self.parts = self.lost = 0
        self.ns, self.next_seq = 0, 0


def stream(path):
    """Events and gaps of a trace, one by one, since long traces do not fit into memory."""
    p = subprocess.Popen([str(KTRDUMP), "--format", "jsonl", "-i", str(path)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        for line in p.stdout:
            yield json.loads(line)
        check_eq((p.wait(DEADLINE_S), p.stderr.read()), (0, ""), "ktrdump's status and messages")
    finally:
        p.kill()
        p.wait()


def event_is_whole(e):
    """Checks that one recorder wrote the whole entry."""
    text = e["text"]
    check("(bad" not in text, f"a parameter that is no string of the kernel's: {e}")
    check(e["fmt"] is not None and e["func"] is not None, f"an event of no known site: {e}")
    # A thread that ended before the flush reached its events has no name.
    check(e["thread"] is None or re.fullmatch(r"[\w/. :\[\]-]+", e["thread"]), f"an odd thread's name: {e}")
    for pattern in OWN:
        if m := pattern.match(text):
            check_eq(int(m.group(1)), e["tid"], f"thread of the event {text}")


def read(path):
    """{cpu: Seen} of a stream. Its events must be whole and in order, by time and by number."""
    cpus = {}
    for e in stream(path):
        cpu = cpus.setdefault(e["cpu"], Seen())
        if "gap" in e:
            check(cpu.ns <= e["from_ns"] <= e["to_ns"], f"a gap that begins before {cpu.ns} ns: {e}")
            cpu.lost += e["gap"]
            cpu.next_seq += e["gap"]
            continue
        if "part" in e:
            check_eq(e["part"], cpu.next_seq, f"sequence number of a part on cpu {e['cpu']}")
            cpu.parts, cpu.next_seq = cpu.parts + 1, e["part"] + 1
            continue
        check_eq(e["seq"], cpu.next_seq, f"sequence number on cpu {e['cpu']} at {e['ns']} ns")
        check(e["ns"] >= cpu.ns, f"time falls on cpu {e['cpu']} from {cpu.ns}: {e}")
        event_is_whole(e)
        cpu.events += 1
        cpu.ns, cpu.next_seq = e["ns"], e["seq"] + 1
    return cpus


@portable_test("load mix with every class on, on four CPUs: every event is delivered whole or counted as lost")
def mix():
    check(SECONDS > 0, f"KESTREL_STRESS_SECONDS: found {SECONDS_GIVEN!r}, expected a number above 0")
    run = boot(SCRIPT.format(seconds=SECONDS, jobs=CPUS), smp=CPUS, trace=True, timeout=DEADLINE_S + 4 * SECONDS).expect()
    rounds = int(check_match(r"^rounds (\d+)$", run.out, "rounds of load mix").group(1))
    check(rounds > 0, "not one round of load mix")
    stats, cpus = ktr_stats(run.out), read(run.trace)
    check_eq(sorted(stats), list(range(CPUS)), "CPUs in debug.ktr.stats")
    tc.accounting_holds(stats)
    total = 0
    for n, s in stats.items():
        cpu = cpus.get(n, Seen())
        check_eq(cpu.events + cpu.parts + cpu.lost, s["recorded"], f"events and lost events in the stream of cpu {n} ({s})")
        # The line may get frames whose events were overwritten after the frames had been made.
        check(cpu.lost <= s["overwritten"], f"{cpu.lost} lost events in the stream of cpu {n} ({s})")
        check(cpu.events > 0, f"no event of cpu {n} was delivered ({s})")
        total += s["recorded"]
    print(f"# {rounds} rounds, {total} events recorded, {sum(c.events for c in cpus.values())} delivered")


@test("8 threads compute, wait for each other and get signals, on four CPUs: results are exact")
def threads():
    check(SECONDS > 0, f"KESTREL_STRESS_SECONDS: found {SECONDS_GIVEN!r}, expected a number above 0")
    run = boot(f"linux_test compute {SECONDS}\n", smp=CPUS, options=["--file", f"/bin/linux_test={BUILD}/linux_test"],
               timeout=DEADLINE_S + 4 * SECONDS).expect()
    print("# " + check_match(r"^workers: rounds \d+, signals \d+, alarms \d+, exact$", run.out, "the threads' summary").group())


def readers():
    check(SECONDS > 0, f"KESTREL_STRESS_SECONDS: found {SECONDS_GIVEN!r}, expected a number above 0")
    end, turns = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        p = subprocess.run([str(BOOT), "--arch", ARCH, "--firmware", "none", "--smp", str(CPUS), "--timeout", str(DEADLINE_S),
                            "--kernel", str(BUILD / "kestrel-test"), "--set", "kern.test=ktr_ring_gives_readers*"],
                           capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=DEADLINE_S + SLACK_S)
        check_eq(p.returncode, 0, f"exit status of turn {turns}; the console:\n{p.stdout}")
        check_match(r"^ok 1 - ktr_ring_gives_readers", p.stdout.replace("\r", ""), "the test's line")
        turns += 1
    print(f"# {turns} turns")


if SECONDS_GIVEN:  # otherwise one turn, by ARCH/kernel/smpN, is enough
    test("readers of rings that four CPUs overwrite get entries whole or not at all, again and again")(readers)

if __name__ == "__main__":
    main()
