#!/usr/bin/python3
"""test_workloads.py - each workload of `load`, on 1 and 4 CPUs: what it did is what the decoded trace says."""
import re

import tracecheck as tc
from harness import boot, check, check_eq, check_match, ktr_stats, ktrdump, main, test

SMP = (1, 4)
ENTRIES = "debug.ktr.entries=65536"


def trace(script, smp, mask):
    """A guest that loses nothing; the checks that every trace must keep."""
    run = boot(script, smp=smp, mask=mask, trace=True, sets=[ENTRIES]).expect()
    tc.no_gaps(run)
    tc.timestamps_ascend(run)
    tc.merged_by_time(run)
    check(run.events, "the trace is empty")
    return run


def on_each_smp(name):
    """Registers one test for each number of CPUs."""
    def register(fn):
        for smp in SMP:
            test(f"{name} (smp {smp})")(lambda smp=smp: fn(smp))
        return fn
    return register


def load_said_ok(run, name):
    check_match(rf"^load {name}: n=\d+ jobs=\d+ ok, \d+ ms$", run.out, "load's summary")


@on_each_smp("load fork -n 20 shows exactly 20 forks, 20 exits and 20 waits")
def fork(smp):
    run = trace("load fork -n 20 -j 1", smp, "PROC,SCHED")
    load_said_ok(run, "fork")
    (pid,) = tc.processes(run, "load")
    children = [int(m.group(1)) for _, m in tc.named(run, rf"fork: parent {pid} child (\d+) ")]
    check_eq(len(children), 20, "forks of load")
    check_eq(len(set(children)), 20, "different children")
    exits = [int(m.group(1)) for _, m in tc.named(run, r"exit: pid (\d+) status 0 ") if int(m.group(1)) in children]
    check_eq(sorted(exits), sorted(children), "children that exit with status 0")
    waits = [int(m.group(1)) for _, m in tc.named(run, rf"wait: pid (\d+) status 0 by {pid}$")]
    check_eq(sorted(waits), sorted(children), "children that load waits for")
    for child in children:
        times = [next(e["ns"] for e, _ in tc.named(run, pattern))
                 for pattern in (rf"fork: parent {pid} child {child} ", rf"exit: pid {child} ", rf"wait: pid {child} ")]
        check_eq(times, sorted(times), f"times of fork, exit and wait of process {child}")
    check(tc.runs_after_runq_add(run) >= 20, "fewer than 20 switches")


@on_each_smp("load switch: two threads alternate, and each was queued before it ran")
def switch(smp):
    run = trace("load switch -n 100 -j 1", smp, "SCHED,PROC")
    load_said_ok(run, "switch")
    (pid,) = tc.processes(run, "load")
    (child,) = [int(m.group(1)) for _, m in tc.named(run, rf"fork: parent {pid} child (\d+) ")]
    tc.runs_after_runq_add(run)
    tc.one_thread_runs_at_a_time(run)
    for tid in (pid, child):
        slept = sum(ident.endswith(f" tid {tid}") and what == "sleep" for _, ident, what in tc.graph_states(run))
        ran = sum(ident.endswith(f" tid {tid}") and what == "running" for _, ident, what in tc.graph_states(run))
        check(slept >= 90, f"thread {tid} slept {slept} times, expected about 100")
        check(ran >= slept, f"thread {tid} slept {slept} times but ran {ran} times")
    pipe_sleeps = [e for e, ident, what in tc.graph_states(run) if what == "sleep" and 'wmesg:"pipe' in e["text"]]
    check(len(pipe_sleeps) >= 180, f"{len(pipe_sleeps)} sleeps with a pipe's wait message, expected about 200")


@on_each_smp("load syscall: every system call returns on its thread")
def syscall(smp):
    run = trace("load syscall -n 500 -j 2", smp, "SYSC,PROC")
    load_said_ok(run, "syscall")
    pairs = tc.syscalls_pair(run)
    check(pairs >= 500, f"{pairs} pairs, expected 500 and more")
    # Each of the two jobs asks once more, for what to expect.
    calls = tc.named(run, r"syscall getppid: arg0 ")
    check_eq(len(calls), 502, "calls of getppid")
    check_eq(len(tc.named(run, r"sysret getppid: ret \d+$")), 502, "returns of getppid")
    first = calls[0][0]
    check_eq(len(first["args"]), 6, "arguments of a system call")


@on_each_smp("load pipe: what is written is what is read, block by block")
def pipe(smp):
    run = trace("load pipe -n 50 -j 1", smp, "SYSC,PROC")
    load_said_ok(run, "pipe")
    tc.syscalls_pair(run)
    (pid,) = tc.processes(run, "load")
    (child,) = [int(m.group(1)) for _, m in tc.named(run, rf"fork: parent {pid} child (\d+) ")]
    wrote = sum(int(m.group(1)) for e, m in tc.named(run, r"sysret write: ret (\d+)$") if e["tid"] == child)
    check_eq(wrote, 50 * 4096, "bytes that the child wrote")
    reads, fd = 0, None
    for e, m in tc.named(run, r"sysret read: ret (\d+)$"):
        reads += int(m.group(1)) if e["tid"] == pid else 0
    check_eq(reads, 50 * 4096, f"bytes that load read (descriptor {fd})")


@on_each_smp("load fault: one page fault with a zero-filled page for each page touched")
def fault(smp):
    run = trace("load fault -n 128 -j 1", smp, "TRAP,VM,PROC")
    load_said_ok(run, "fault")
    (pid,) = tc.processes(run, "load")
    maps = [(int(m.group(1), 16), int(m.group(2), 16)) for e, m in
            tc.named(run, r"map: start (0x[0-9a-f]+) size (0x[0-9a-f]+) prot") if e["tid"] == pid]
    areas = [(start, size) for start, size in maps if size == 64 * 4096]
    check_eq(len(areas), 2, f"areas of 64 pages in {maps}")
    faults = [int(m.group(1), 16) for e, m in tc.named(run, r"page fault: va (0x[0-9a-f]+) ") if e["tid"] == pid]
    served = len([1 for e, _ in tc.named(run, r"page fault exit: va \S+ served 1") if e["tid"] == pid])
    check_eq(served, len(faults), "page faults served")
    # Both areas may stand at the same address, one after the other was unmapped.
    pages = [va >> 12 for va in faults if any(s <= va < s + n for s, n in areas)]
    check_eq(len(pages), 128, "page faults inside the areas")
    filled = [e for e, m in tc.named(run, r"zero fill: va (0x[0-9a-f]+) ")
              if e["tid"] == pid and any(s <= int(m.group(1), 16) < s + n for s, n in areas)]
    check_eq(len(filled), 128, "pages filled with zeroes")


@on_each_smp("load malloc: everything that the kernel allocates for it, it frees")
def malloc(smp):
    run = trace("load malloc -n 500 -j 1", smp, "MALLOC,PROC")
    load_said_ok(run, "malloc")
    live, allocs = {}, 0
    for e, m in tc.named(run, r"(malloc|free): (?:size (\d+) )?addr (0x[0-9a-f]+)"):
        what, size, addr = m.groups()
        if what == "malloc":
            check(addr not in live, f"{addr} given out twice: {live.get(addr)}, then {e['text']} at {e['ns']} ns")
            live[addr] = e["text"]
            allocs += 1
        else:
            live.pop(addr, None)
    check(allocs > 20, f"{allocs} allocations, expected more")


@on_each_smp("load lock: contended threads block and are woken up; each runs after it was queued")
def lock(smp):
    run = trace("load lock -n 100 -j 4", smp, "SCHED,PROC,LOCK")
    load_said_ok(run, "lock")
    tc.runs_after_runq_add(run)
    acquired = len(tc.named(run, r".*(acquire|acquired|lock)"))
    check(acquired > 100, f"{acquired} lock events, expected more than 100")


@on_each_smp("load mix: all classes at once keep every promise of the trace")
def mix(smp):
    run = boot("load mix -n 10 -j 2", smp=smp, mask="SCHED,PROC,SYSC,VM,TRAP,SIG,VFS", trace=True,
               sets=[ENTRIES]).expect()
    load_said_ok(run, "mix")
    tc.timestamps_ascend(run)
    tc.merged_by_time(run)
    tc.no_gaps(run)
    tc.syscalls_pair(run)
    tc.runs_after_runq_add(run)
    tc.one_thread_runs_at_a_time(run)


@on_each_smp("the accounting equation holds on every CPU to the last event")
def accounting(smp):
    run = boot("load fork -n 10\nload syscall -n 200\nsysctl debug.ktr.stats", smp=smp, mask="SCHED,PROC,SYSC",
               trace=True, sets=[ENTRIES]).expect()
    stats = ktr_stats(run.out)
    check_eq(sorted(stats), list(range(smp)), "CPUs in debug.ktr.stats")
    tc.accounting_holds(stats)
    tc.timestamps_ascend(run)
    for cpu, s in stats.items():
        seen = [e for e in run.events if e["cpu"] == cpu]
        check(len(seen) + sum(g["gap"] for g in run.gaps if g["cpu"] == cpu) >= s["recorded"],
              f"cpu {cpu}: {len(seen)} events in the file, fewer than the {s['recorded']} recorded before the end")
        check_eq(seen[0]["seq"], 0, f"first sequence number of cpu {cpu}")
    last = run.events[-1]
    check(any("poweroff: status 0" in e["text"] or "exit" in e["text"] or "KTRGRAPH" in e["text"]
              for e in run.events[-50:]), f"the trace ends with {last['text']!r}, expected the last steps of the guest")
    status, out, err = ktrdump("--stats", "-i", run.trace)
    check_eq(status, 0, f"ktrdump --stats ({err})")
    check_match(rf"^events {len(run.events)}\b", out, "ktrdump --stats")


@on_each_smp("a ring that is too small loses events, and says how many, when and on which CPU")
def small_ring(smp):
    run = boot("load syscall -n 3000 -j 2\nsysctl debug.ktr.stats", smp=smp, mask="SYSC,SCHED", trace=True,
               sets=["debug.ktr.entries=64"]).expect()
    tc.timestamps_ascend(run)
    stats = ktr_stats(run.out)
    tc.accounting_holds(stats)
    overwritten = sum(s["overwritten"] for s in stats.values())
    check(overwritten > 0, f"nothing was overwritten in rings of 64 entries: {stats}")
    lost = sum(g["gap"] for g in run.gaps)
    check(lost >= overwritten, f"gaps tell of {lost} lost events, expected the {overwritten} overwritten at least")
    for cpu in stats:
        events = sum(e["cpu"] == cpu for e in run.events)
        gaps = sum(g["gap"] for g in run.gaps if g["cpu"] == cpu)
        top = max([e["seq"] for e in run.events if e["cpu"] == cpu], default=-1)
        check_eq(events + gaps, top + 1, f"events and lost events of cpu {cpu}, against the last sequence number")


@on_each_smp("the mask changes while all CPUs record, and events come only while it is on")
def switching(smp):
    script = """
load mix -n 20 -j 2 > /tmp/out &
for i in 1 2 3 4 5 6 7 8 9 10; do
    sysctl debug.ktr.mask=SYSC,SCHED > /dev/null
    sysctl debug.ktr.mask=NONE > /dev/null
done
wait
cat /tmp/out
sysctl -n debug.ktr.stats > /tmp/before
load syscall -n 100 > /dev/null
sysctl -n debug.ktr.stats > /tmp/after
cat /tmp/before /tmp/after
"""
    run = boot(script, smp=smp, trace=True, sets=[ENTRIES]).expect()
    load_said_ok(run, "mix")
    tc.timestamps_ascend(run)
    tables = re.split(r"^cpu recorded.*$", run.out, flags=re.M)[-2:]
    recorded = [[int(line.split()[1]) for line in t.strip().splitlines()] for t in tables]
    check_eq(len(recorded[0]), smp, "CPUs in the table")
    check_eq(recorded[1], recorded[0], "events recorded while the mask is empty")
    check(sum(recorded[0]) > 0, "no event while the mask was on")


if __name__ == "__main__":
    main()
