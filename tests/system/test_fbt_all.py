#!/usr/bin/python3
"""test_fbt_all.py - with every function's probes on: what the trace says holds together, nothing breaks, and afterwards the
code is as it was built."""
import collections
import re

import tracecheck as tc
from fbtcheck import calls_of, disassembly, pairs_match, symbols
from harness import ARCH, boot, check, check_eq, check_match, ktr_stats, main, test

ENTRIES = "debug.ktr.entries=262144"


def law(smp):
    """The masks and the functions are off when the stream ends, so that the accounting stays as it was then."""
    run = boot("ktr on 'fbt:::'\nload mix -n 3 -j 2\nktr off\nsysctl debug.ktr.alq_enable=0\nsysctl debug.ktr.stats\n",
               smp=smp, sets=[ENTRIES], trace=True, mask="SCHED,PROC").expect()
    check_match(r"^load mix: n=3 jobs=2 ok, \d+ ms$", run.out, "load's summary")
    tc.timestamps_ascend(run)
    stats = ktr_stats(run.out)
    tc.accounting_holds(stats)
    events, gaps = collections.Counter(e["cpu"] for e in run.events + run.parts), collections.Counter()
    for g in run.gaps:
        gaps[g["cpu"]] += g["gap"]
    for cpu, s in stats.items():
        check_eq((events[cpu], gaps[cpu]), (s["delivered"], s["lost"]), f"events and losses of cpu {cpu} in the stream")
    # Places are switched on and off at once, but not at one moment: the calls that count are between load and `ktr off`.
    since, until = (tc.named(run, rf"exec: pid \d+ name {name} ")[-1][0]["ns"] for name in ("load", "ktr"))
    check(pairs_match(run, since, until) > 10000, "hardly any function returned")


for _smp in (1, 4):
    test(f"load mix with every function on, {_smp} CPUs: what is lost is counted, each entry has its return on its thread in order, "
         "and time does not fall")(lambda smp=_smp: law(smp))


@test("all functions are switched on, or off, by at most three rounds of interrupts on 4 CPUs")
def rounds():
    run = boot("ktr on 'fbt:::'\nktr off 'fbt:::'\n", smp=4, sets=[ENTRIES], trace=True, mask="SMP,PROC").expect()
    changed = re.findall(r"^(\d+) trace points switched (on|off)$", run.out, re.M)
    check(len(changed) == 2 and int(changed[0][0]) > 1500 and changed[0][0] == changed[1][0], f"switched: {changed}")
    on, off = tc.processes(run, "ktr")
    for pid in (on, off):
        asked = [(int(m[1]), int(m[2])) for e, m in tc.named(run, r"ipi send: call cpu (\d+) generation (\d+)$") if e["tid"] == pid]
        rounds_of = {generation for _, generation in asked}
        check(2 <= len(rounds_of) <= 3, f"rounds of process {pid}: {sorted(rounds_of)}, expected 2 or 3")
        check_eq(len(asked), 3 * len(rounds_of), "interrupts that three CPUs got")


@test("the room for probes makes the code of functions at most five percent larger")
def room():
    (starts, places), at = disassembly(), symbols()
    size = at["__fbt_stubs"] - at["__ktr_record_start"]
    no_op = {"x86_64": ("nopl", "0x0(%rax,%rax,1)"), "aarch64": ("nop", "")}[ARCH]
    entries = sum(places.get(addr) == no_op for addrs in starts.values() for addr in addrs)
    inside = sorted(a for a in places if at["__ktr_record_start"] <= a < at["__fbt_stubs"])
    after = {"x86_64": ("int3", ""), "aarch64": ("ret", "")}[ARCH]
    returns = sum(places[b] == after and places[a] == {"x86_64": ("ret", ""), "aarch64": ("nop", "")}[ARCH]
                  for a, b in zip(inside, inside[1:]))
    check(entries > 800 and returns > 1000, f"{entries} entries and {returns} returns, expected more")
    added = entries * {"x86_64": 5, "aarch64": 4}[ARCH] + returns * 4
    check(added <= 0.05 * (size - added), f"{added} bytes of {size - added}: {100 * added / (size - added):.1f} %, expected at most 5 %")


@test("with every function on, switched on and off in turns on a busy machine, the code is afterwards as it was built")
def storm():
    script = ["sysctl -n debug.fbt.text", "load mix -n 60 -j 4 &"]
    for module in ("fs", "mm", "sched", "proc", "*", "sync", "lib", "dev") * 3:
        script += [f"ktr on 'fbt:{module}::' >/dev/null", f"ktr off 'fbt:{module}::' >/dev/null"]
    run = boot("\n".join([*script, "wait", "ktr off", "sysctl -n debug.fbt.text", "ktr probes -c", ""]), smp=4).expect()
    check_match(r"^load mix: n=60 jobs=4 ok, \d+ ms$", run.out, "load's summary")
    before, after = re.findall(r"^([0-9a-f]{8})$", run.out, re.M)
    check_eq(after, before, "checksum of the kernel's code")
    check_match(r"^fbt +\d+ +0$", run.out, "probes that are on")


@test("a panic with every function on is told like any other: its place, the way to it, and the last events")
def panics():
    run = boot("ktr on fbt:::\nload mix -n 2\nsysctl debug.kdb.panic=1\n", smp=4)
    check_eq(run.status, 101, "exit status")
    check_match(r"^panic: requested by debug.kdb.panic", run.out, "the panic")
    check_match(r"^#0 .* death_panic\+0x[0-9a-f]+ .*\n(?:#\d .*\n)*#\d .* sys_sysctl\+", run.out, "the backtrace")
    check_match(r"^\d+ \(\d+:cpu\d\) [\d.]+: -> \w+\(", run.out, "an entry among the last events")


if __name__ == "__main__":
    main()
