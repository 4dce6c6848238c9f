#!/usr/bin/python3
"""test_workloads.py - each workload of `load`, on 1 CPU or 4: the decoded trace shows what it did."""
import re

import tracecheck as tc
from harness import boot, check, check_eq, check_match, cpus, ktr_stats, ktrdump, main, portable_test as test

ENTRIES = "debug.ktr.entries=65536"


def trace(script, smp, mask, options=()):
    """Traces a script, without losses, and applies the checks for every trace. The boot is not recorded, since its
    ring is small."""
    run = boot(f"sysctl debug.ktr.mask={mask}\n{script}", smp=smp, trace=True, sets=[ENTRIES], options=options).expect()
    tc.no_gaps(run)
    tc.timestamps_ascend(run)
    tc.merged_by_time(run)
    check(run.events, "the trace is empty")
    return run


def on_each_smp(name):
    """Registers one test for each number of CPUs."""
    def register(fn):
        for smp in cpus(name):
            test(f"{name} (smp {smp})")(lambda smp=smp: fn(smp))
        return fn
    return register


def load_said_ok(run, name):
    check_match(rf"^load {name}: n=\d+ jobs=\d+ ok, \d+ ms$", run.out, "load's summary")


@test("another user's files in /tmp stop no workload; one that gets no pipe says so")
def hindered():
    run = boot("su 1000 sh -c 'for i in $(seq 300); do : > /tmp/load.$i; : > /tmp/load.lock.$i; done'\n"
               "load file -n 2\nload lock -n 2\n(ulimit -n 4; load lock -n 2) 2>&1; echo status $?\n").expect()
    for name in ("file", "lock"):
        load_said_ok(run, name)
    check_match(r"^load: lock: pipe: No file descriptors available\n(.*\n)?status 1$", run.out.replace("\r", ""), "no pipe")


@on_each_smp("load fork -n 20 shows exactly 20 forks, 20 exits and 20 waits")
def fork(smp):
    run = trace("load fork -n 20 -j 1", smp, "PROC,SCHED")
    load_said_ok(run, "fork")
    (pid,) = tc.processes(run, "load")
    children = [int(m.group(1)) for _, m in tc.named(run, rf"fork: parent {pid} child (\d+) ")]
    check_eq(len(children), 20, "forks of load")
    check_eq(len(set(children)), 20, "different children")
    exits = [int(m.group(1)) for _, m in tc.named(run, r"exit: pid (\d+) ") if int(m.group(1)) in children]
    check_eq(sorted(exits), sorted(children), "children that exit")
    check_eq(len(tc.named(run, r"exit: pid \d+ ")), 23, "exits in all: the children, load, sysctl, the script's sh")
    waits = [int(m.group(1)) for _, m in tc.named(run, rf"wait: pid (\d+) status \S+ by {pid}$")]
    check_eq(sorted(waits), sorted(children), "children that load waits for")
    for child in children:
        times = [next(e["ns"] for e, _ in tc.named(run, pattern))
                 for pattern in (rf"fork: parent {pid} child {child} ", rf"exit: pid {child} ", rf"wait: pid {child} ")]
        check_eq(times, sorted(times), f"times of fork, exit and wait of process {child}")
    check(tc.runs_after_runq_add(run) >= 20, "fewer than 20 switches")


@on_each_smp("load switch: two threads alternate, and each was queued before it ran")
def switch(smp):
    # A thread does not sleep where the number came before it asked: how often depends on the machine, unless QEMU counts time
    # in instructions.
    for options, least in (((), 0), (("--icount",), 90)):
        run = trace("load switch -n 100 -j 1", smp, "SCHED,PROC", options)
        load_said_ok(run, "switch")
        (pid,) = tc.processes(run, "load")
        (child,) = [int(m.group(1)) for _, m in tc.named(run, rf"fork: parent {pid} child (\d+) ")]
        tc.runs_after_runq_add(run)
        tc.one_thread_runs_at_a_time(run)
        for tid in (pid, child):
            slept = sum(ident.endswith(f" tid {tid}") and what == "sleep" for _, ident, what in tc.graph_states(run))
            ran = sum(ident.endswith(f" tid {tid}") and what == "running" for _, ident, what in tc.graph_states(run))
            check(slept >= least, f"thread {tid} slept {slept} times, expected about 100")
            check(ran >= slept, f"thread {tid} slept {slept} times but ran {ran} times")
        pipe_sleeps = [e for e, ident, what in tc.graph_states(run) if what == "sleep" and 'wmesg:"pipe' in e["text"]]
        check(len(pipe_sleeps) >= 2 * least, f"{len(pipe_sleeps)} sleeps with a pipe's wait message, expected about 200")


@on_each_smp("load syscall: every system call returns on its thread")
def syscall(smp):
    run = trace("load syscall -n 500 -j 2", smp, "SYSC,PROC")
    load_said_ok(run, "syscall")
    pairs = tc.syscalls_pair(run)
    check(pairs >= 500, f"{pairs} pairs, expected 500 and more")
    # Each of the two jobs makes one more call, for the expected value.
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
    got = sum(int(m.group(1)) for e, m in tc.named(run, r"sysret read: ret (\d+)$") if e["tid"] == pid)
    check_eq(got, 50 * 4096, "bytes that load read")


@on_each_smp("load fault: one page fault with a zero-filled page for each page touched")
def fault(smp):
    run = trace("load fault -n 128 -j 1", smp, "TRAP,VM,PROC")
    load_said_ok(run, "fault")
    (pid,) = tc.processes(run, "load")
    inside = {"page fault": 0, "zero fill": 0}
    areas, area, faults, served = 0, None, 0, 0
    for e in (e for e in run.events if e["tid"] == pid):
        what, _, rest = e["text"].partition(": ")
        numbers = [int(n, 16) for n in re.findall(r"0x[0-9a-f]+", rest)]
        if what == "map" and numbers[1] == 64 * 4096:
            area = range(numbers[0], numbers[0] + numbers[1])
            areas += 1
        elif what == "unmap" and area is not None and numbers[0] == area.start:
            area = None
        elif what in inside and area is not None and numbers[0] in area:
            inside[what] += 1
        faults += what == "page fault"
        served += what == "page fault exit" and rest.endswith("served 1")
    check_eq(areas, 2, "areas of 64 pages")
    check_eq(inside, {"page fault": 128, "zero fill": 128}, "faults inside the areas")
    check_eq(served, faults, "page faults served")


@on_each_smp("load file: each file is made, written, read and removed")
def file(smp):
    run = trace("load file -n 20 -j 2", smp, "SYSC,PROC")
    load_said_ok(run, "file")
    check_eq(len(tc.named(run, r"sysret unlink\w*: ret 0$")), 40, "files that were removed")
    for call, bytes_each in (("write", 40 * 4 * 4096), ("read", 40 * 4 * 4096)):
        moved = sum(4096 for _ in tc.named(run, rf"sysret {call}: ret 4096$"))
        check_eq(moved, bytes_each, f"bytes by {call}")


@on_each_smp("load malloc: everything that the kernel allocates for it, it frees")
def malloc(smp):
    run = trace("load malloc -n 500 -j 1", smp, "MALLOC,PROC")
    load_said_ok(run, "malloc")
    live, allocs = {}, 0
    for e in tc.with_whole_mask(run):
        m = re.match(r"(malloc|free): (?:size \d+ )?addr (0x[0-9a-f]+)", e["text"])
        if m is None:
            continue
        what, addr = m.groups()
        if what == "malloc":
            check(addr not in live, f"{addr} given out twice: {live.get(addr)}, then {e['text']} at {e['ns']} ns")
            live[addr] = e["text"]
            allocs += 1
        else:
            live.pop(addr, None)
    check(allocs > 20, f"{allocs} allocations, expected more")


@test("the processes of a workload with several jobs have its name")
def worker_names():
    run = boot("load fork -n 3 -j 2\nload pipe -n 3 -j 3\nload mix -n 1\n", smp=2, mask="PROC,SCHED", trace=True).expect()
    names = {}
    for e in run.events:
        names.setdefault(e["thread"], set()).add(e["tid"])
    check_eq({name: len(names.get(name, ())) >= n for name, n in (("load:fork", 2), ("load:pipe", 3), ("load", 3))},
             {"load:fork": True, "load:pipe": True, "load": True}, f"threads by name: {names}")


@on_each_smp("load lock: at no time do two threads hold a mutex, or two CPUs a spin lock")
def lock(smp):
    run = trace("load lock -n 100 -j 4", smp, "LOCK,PROC")
    load_said_ok(run, "lock")
    holder, turns = {}, {"spin": 0, "mutex": 0}
    for e in tc.with_whole_mask(run):
        m = re.match(r"(spin|mutex) (acquire|release): lock (.+) addr (0x[0-9a-f]+)", e["text"])
        # A run queue's lock passes from thread to thread in a switch, also to ktrflush, whose events are suppressed.
        if m is None or m[3] == "runq":
            continue
        kind, what, name, addr = m.groups()
        mine = e["cpu"] if kind == "spin" else e["tid"]
        if what == "acquire":
            check(addr not in holder, f"{kind} lock {name} {addr} acquired by {mine} at {e['ns']} ns, but held by "
                                      f"{holder.get(addr)}")
            holder[addr] = mine
            turns[kind] += 1
        elif addr in holder:  # otherwise acquired before the mask was complete
            check_eq(mine, holder.pop(addr), f"who releases {kind} lock {name} {addr} at {e['ns']} ns")
    check(turns["spin"] > 400 and turns["mutex"] > 400, f"{turns}, expected more than 400 of each")


@on_each_smp("load lock: a thread that blocks is woken up, and runs after it was queued")
def contention(smp):
    run = trace("load lock -n 100 -j 4", smp, "SCHED,PROC")
    load_said_ok(run, "lock")
    tc.runs_after_runq_add(run)
    tc.one_thread_runs_at_a_time(run)


@on_each_smp("load mix: a trace with many classes keeps every promise")
def mix(smp):
    run = trace("load mix -n 10 -j 2", smp, "SCHED,PROC,SYSC,VM,TRAP,SIG,VFS")
    load_said_ok(run, "mix")
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
        parts = sum(e["cpu"] == cpu for e in run.parts)
        check(len(seen) + parts + sum(g["gap"] for g in run.gaps if g["cpu"] == cpu) >= s["recorded"],
              f"cpu {cpu}: {len(seen)} events in the file, fewer than the {s['recorded']} recorded before the end")
        check_eq([e["seq"] for e in seen[:1]], [0] * bool(seen), f"first sequence number of cpu {cpu}")
    calls = [e["text"] for e in run.events if e["class"] == "SYSC"]
    check(calls[-1].startswith("syscall machine_shutdown: arg0 "), f"last system call in the trace: found {calls[-1]!r}, "
                                                           f"expected the shutdown")
    status, out, err = ktrdump("report", "events", "-i", run.trace)
    check_eq(status, 0, f"ktrdump report events ({err})")
    check_match(rf"^trace .* events {len(run.events)}\b", out, "ktrdump report events")


@on_each_smp("a ring that is too small loses events, and says how many, when and on which CPU")
def small_ring(smp):
    run = boot("load syscall -n 3000 -j 2\nsysctl debug.ktr.stats", smp=smp, mask="SYSC,SCHED", trace=True,
               sets=["debug.ktr.entries=64"]).expect()
    tc.timestamps_ascend(run)
    stats = ktr_stats(run.out)
    tc.accounting_holds(stats)
    overwritten = sum(s["overwritten"] for s in stats.values())
    check(overwritten > 0, f"nothing was overwritten in rings of 64 entries: {stats}")
    check(run.gaps, "no gap, though events were overwritten")  # fewer may be missing: some stood in frames already
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


@test("what is lost is said when it happens: by load, ktr status, the console and qemu/boot, with rings that hold it")
def losses():
    script = "sysctl kern.quiet=0 > /dev/null\nload syscall -n 3000\nktr status\n"
    # The flush thread says it when it runs next.
    said = "until dmesg | grep 'events are lost' > /dev/null; do sleep 0.1; done; dmesg | grep -c 'events are lost'\n"

    def run(entries, after="", **more):
        return boot(script + after, smp=1, mask="SYSC", sets=[f"debug.ktr.entries={entries}"], **more).expect()

    small = run(256, said, trace=True)
    for where in ("load: lost", "lost      "):
        lost, of, entries = map(int, check_match(
            rf"^{where} (\d+) of (\d+) events so far; debug\.ktr\.entries=(\d+) holds them$", small.out, where).groups())
        check(0 < lost < of and of >= 6000, f"{where}: {lost} of {of}")
        check_eq(entries, 8192, where)
    check_match(r"^ktr: events are lost, since /dev/vport0p1 .*debug\.ktr\.entries=512$", small.out, "the console")
    check_match(r"^1$", small.out, "how often the console said it")
    lost, of = (int(n.replace(",", "")) for n in check_match(
        r"^boot: ([\d,]+) of ([\d,]+) events lost: --set debug\.ktr\.entries=8192$", small.err, "qemu/boot").groups())
    check_eq((lost, of), (sum(g["gap"] for g in small.gaps), len(small.events) + lost), "qemu/boot's numbers, by the trace")
    without = run(256)
    check_match(r"^load: lost \d+ of \d+ events; debug\.ktr\.entries=8192 holds them$", without.out, "without a file")
    check_eq("boot:" in without.err, False, "qemu/boot without a trace")
    large = run(8192, trace=True)
    check_eq([word for word in ("lost so far", "load: lost", "events are") if word in large.out], [], "with rings that hold all")
    check_eq((large.gaps, large.err), ([], ""), "gaps, and what qemu/boot says")


@test("the default rings hold what `load mix` makes, as memory allows")
def default_rings():
    script = "sysctl -n debug.ktr.entries\nload mix -n 20 -j 4\nload mix\nsysctl -n debug.ktr.stats\n"
    for mem, entries in (("48M", 8192), ("256M", 32768), ("1G", 65536)):
        for trace in (True, False) if mem == "256M" else (True,):
            run = boot(script, smp=4, mem=mem, trace=trace, mask="SCHED,INTR,SYSC,PROC").expect()
            check_eq(int(run.out.splitlines()[0]), entries, f"debug.ktr.entries with {mem}")
            if mem != "48M":
                check_eq([c["lost"] for c in ktr_stats(run.out).values()], [0] * 4, f"events lost with {mem}, trace {trace}")
                check("lost" not in run.out.replace("suppressed lost", ""), f"a loss is said with {mem}:\n{run.out}")


@test("debug.ktr.entries as a loader parameter keeps the boot's events, or says how many did not fit")
def entries_early():
    for entries in (2048, 65536):
        run = boot("ktr off > /dev/null\nktrdump -cs --class INIT | tail -n +3 | head -1\nsysctl -n debug.ktr.stats\n",
                   smp=2, mask="INIT,SMP,PMAP,MALLOC", sets=[f"debug.ktr.entries={entries}"]).expect()
        check_match(r"^ +0 +0 +\d\.\d+ tunable: ", run.out, f"the first event of the boot, with {entries}")
        check_eq(sum(c["overwritten"] for c in ktr_stats(run.out).values()), 0, f"events overwritten with {entries}")
    run = boot("dmesg\n", smp=2, mask="ALL", sets=["debug.ktr.entries=64"]).expect()
    lost = int(check_match(r"\] ktr: (\d+) older events did not fit into rings of 64$", run.out, "the message").group(1))
    check(lost > 50, f"{lost} events did not fit")


if __name__ == "__main__":
    main()
