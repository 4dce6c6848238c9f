#!/usr/bin/python3
"""test_fbt.py - every function's entry and returns can be traced: names, parameters, order, and code that is as before."""
import re
import subprocess

import tracecheck as tc
from harness import ARCH, BUILD, boot, check, check_eq, check_match, main, test

ENTRIES = "debug.ktr.entries=262144"
ENTRY = re.compile(r"^-> ([\w.]+)\(.*\)$")
RETURN = re.compile(r"^<- ([\w.]+)\+(0x[0-9a-f]+)(?: = .*)?$")
NM = {"x86_64": "nm", "aarch64": "aarch64-linux-gnu-nm"}
OBJDUMP = {"x86_64": "objdump", "aarch64": "aarch64-linux-gnu-objdump"}


def calls(run):
    """(event, "->" or "<-", function) of every event of a function."""
    found = []
    for e in run.events:
        if m := ENTRY.match(e["text"]):
            found.append((e, "->", m.group(1)))
        elif m := RETURN.match(e["text"]):
            found.append((e, "<-", m.group(1)))
    return found


def pairs_match(run, since):
    """On each thread a return is that of the innermost function that was entered. An interrupt's functions nest in what
    it interrupted. A thread that begins has an empty stack, and what was entered before is not known."""
    stacks, checked = {}, 0
    for e, what, name in calls(run):
        if e["ns"] < since:
            continue
        stack = stacks.setdefault(e["tid"], [])
        if what == "->":
            stack.append(name)
            continue
        if name not in stack:
            continue  # entered before
        # What does not return to its caller, as a thread that ends, leaves its entry on the stack.
        while (top := stack.pop()) != name:
            check(top in no_return(), f"{name} returns at {e['ns']} ns on thread {e['tid']}, but {top} was entered last")
        checked += 1
    return checked


_no_return = None


def no_return():
    """Functions without a return, as the image says: their names have an entry's probe only."""
    global _no_return
    if _no_return is None:
        out = boot("ktr probes fbt:::\n").expect().out
        rows = [line.split()[3:8] for line in out.splitlines()[1:]]
        entries = {r[2] for r in rows if r[3] == "entry"}
        _no_return = entries - {r[2] for r in rows if r[3] == "return"}
        check(len(entries) > 800, f"{len(entries)} functions, expected more")
    return _no_return


@test("what a function gets and gives is in its events, by name")
def values():
    run = boot("ktr on 'fbt:proc:sys_getppid:'\nktr on 'fbt:fs:file_open:'\nload syscall -n 10 -j 1\nktr off\n", trace=True,
               sets=[ENTRIES]).expect()
    tc.no_gaps(run)
    (ppid,) = {e["text"] for e, m in tc.named(run, r"<- sys_getppid\+0x[0-9a-f]+ = \d+$")}
    check_match(r"= \d+$", ppid, "the value")
    entries, returns = (len(tc.named(run, rf"{arrow} sys_getppid\b")) for arrow in ("->", "<-"))
    check(entries == returns >= 10, f"{entries} entries and {returns} returns of getppid(), expected 10 or more of each")
    for e, m in tc.named(run, r"-> (\w+)\("):
        check_eq((e["func"], e["file"].split("/")[0]), (m.group(1), "kernel"), "function and file of an event")


@test("the offset of a return is that of a return instruction")
def offsets():
    run = boot("ktr on 'fbt:::return'\nload mix -n 2 -j 1\nktr off\n", trace=True, sets=[ENTRIES]).expect()
    code = subprocess.run([OBJDUMP[ARCH], "-d", "--no-show-raw-insn", BUILD / "kestrel"], capture_output=True, text=True,
                          check=True).stdout
    starts, places = {}, {}
    for line in code.splitlines():
        if m := re.match(r"^([0-9a-f]{16}) <([\w.]+)>:$", line):
            starts.setdefault(m.group(2), []).append(int(m.group(1), 16))
        elif m := re.match(r"^([0-9a-f]{16}):\s+(\w+)", line.strip()):
            places[int(m.group(1), 16)] = m.group(2)
    seen = {(m.group(1), int(m.group(2), 16)) for _, m in
            ((e, RETURN.match(e["text"])) for e in run.events) if m}
    check(len(seen) > 100, f"{len(seen)} different returns, expected more than 100")
    for name, offset in sorted(seen):
        # aarch64: the no-op before the return.
        expected = "ret" if ARCH == "x86_64" else "nop"
        found = {places.get(start + offset) for start in starts[name]}
        check(expected in found, f"{name}+{offset:#x} is {found}, expected {expected}")


@test("load mix with every function on: nothing is lost without a word, each entry has its return, and time does not fall")
def everything(smp=4):
    run = boot("ktr on 'fbt:::'\nload mix -n 3 -j 2\nktr off\nsysctl debug.ktr.stats\n", smp=smp, sets=[ENTRIES], trace=True,
               mask="SCHED,PROC").expect()
    check_match(r"^load mix: n=3 jobs=2 ok, \d+ ms$", run.out, "load's summary")
    tc.timestamps_ascend(run)
    tc.accounting_holds({int(m.group(1)): dict(zip(("recorded", "delivered", "resident", "overwritten", "suppressed"),
                                                  map(int, m.group(2).split())))
                         for m in re.finditer(r"^ *(\d)((?: +\d+){5})$", run.out, re.M)})
    # Places are switched on at once, but not at one moment: the first call that counts is one of load.
    since = tc.named(run, r"exec: pid \d+ name load ")[0][0]["ns"]
    check(pairs_match(run, since) > 10000, "hardly any function returned")


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


@test("functions are on from the first instruction after the loader's parameters, on every CPU")
def early():
    run = boot("poweroff 0\n", smp=4, trace=True, sets=[ENTRIES, "debug.ktr.on=fbt:::"]).expect()
    tc.timestamps_ascend(run)
    check_eq({e["cpu"] for e, _, _ in calls(run)}, {0, 1, 2, 3}, "CPUs with functions")
    some = ("cpu_start_all", "smp_join", "timer_init_cpu")
    run = boot("poweroff 0\n", smp=4, trace=True,
               sets=[ENTRIES, "debug.ktr.on=" + ",".join(f"fbt::{name}:" for name in some)]).expect()
    tc.no_gaps(run)
    check_eq({name for _, _, name in calls(run)}, set(some), "functions that are on")
    check_eq({e["cpu"] for e, _, name in calls(run) if name == "smp_join"}, {1, 2, 3}, "CPUs that joined")


@test("ktr probes lists and counts by name; what no probe can be on says why; nonsense is refused with a sentence")
def listing():
    run = boot("ktr probes fbt:fs:file_open:\nktr probes -c\nktr probes -x\nktr probes 'fbt:nothing::'\nktr on 'fbt:nothing::'\n"
               "ktr on 'fbt:fs:file_open:entry'\nktr probes fbt:fs:file_open:\nktr on '*'\nktr probes -c\n").expect()
    check_match(r"^ *id +state +owners +provider +module +function +name +format$", run.out, "header")
    check_match(r'^ *\d+ +off +- +fbt +fs +file_open +entry +"-> file_open\(path %p, flags %d, mode %u, out %p\)"$', run.out,
                "an entry")
    check_match(r'^ *\d+ +off +- +fbt +fs +file_open +return +"<- file_open\+%#x = %d"$', run.out, "a return")
    check_match(r"^fbt +\d+ +0$", run.out, "counts")
    check_match(r"^ktr_record6 part of the log$", run.out, "a function of the log")
    check_match(r"^stop_inside called by the record path$", run.out, "a function that noprobe names")
    check_match(r"^arch_context_switch assembly$", run.out, "a function of assembly")
    check_match(r"^ktr: fbt:nothing::: no probe matches; expected PROVIDER:MODULE:FUNCTION:NAME", run.out, "no such probe")
    check_match(r'^ktr: nothing matches "fbt:nothing::": expected .*provider:module:function:name', run.out, "no such probe")
    check_match(r"^ *\d+ +on +command +fbt +fs +file_open +entry ", run.out, "what is on")
    check_match(r"^fbt +\d+ +1$", run.out, "a glob without a colon leaves functions alone")


@test("every function of the image has probes or is listed with a reason")
def complete():
    out = boot("ktr probes fbt:::\necho ----\nktr probes -x\n").expect().out
    probes, exceptions = out.split("----")
    known = {line.split()[5] for line in probes.splitlines()[1:] if line.strip()}
    known |= {line.split()[0] for line in exceptions.splitlines() if line.strip()}
    symbols = subprocess.run([NM[ARCH], BUILD / "kestrel"], capture_output=True, text=True, check=True).stdout
    rows = [(int(addr, 16), name) for addr, _, name in (line.split() for line in symbols.splitlines() if line[0] != " ")]
    at = {name: addr for addr, name in rows}
    functions = {name for addr, name in rows if at["__ktr_record_start"] <= addr < at["__fbt_stubs"]
                 and not name.startswith((".L", "__", "$")) and ".cold" not in name}
    check(len(functions) > 900, f"{len(functions)} functions, expected more than 900")
    check_eq(sorted(functions - known)[:10], [], "functions of the image that are not listed")


if __name__ == "__main__":
    main()
