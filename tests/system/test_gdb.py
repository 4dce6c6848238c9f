#!/usr/bin/python3
"""test_gdb.py - qemu/gdb/kestrel.py: through the gdb stub of a machine that runs, is stopped or hangs, and on a
memory dump."""
import contextlib
import re
import subprocess
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from console import close, db, db_events, gdb, guest, shell, stopped_by_request  # noqa: E402
from harness import (BUILD, DEADLINE_S, ROOT, check, check_eq, check_match, json_lines, ktrdump, main, portable_test,  # noqa: E402
                     scratch_file, test)
from qmp import Qmp  # noqa: E402
from tracecheck import by_number, same_events  # noqa: E402

KERNEL = BUILD / "kestrel"
CLASSES = "GEN,SCHED,PROC,SYSC"
TRAPS = 2  # that a backtrace may pass through


@contextlib.contextmanager
def machine(*options, mem="64M", smp=2, mask=CLASSES, tail=()):
    """A guest that runs until gdb connects, and the socket of its gdb stub."""
    socket, qmp = scratch_file(".gdb"), scratch_file(".qmp")
    with guest("--mem", mem, "--mask", mask, "--qmp", str(qmp), *options, "--", "-gdb",
               f"unix:{socket},server=on,wait=off", smp=smp) as c:
        yield c, socket, qmp


def saved(socket, *before):
    path = scratch_file(".ktr")
    out = gdb(*before, f"ktr save {path}", socket=socket)
    check_match(rf"^\d+ bytes in {path}$", out, "ktr save")
    status, out, err = ktrdump("--format", "jsonl", "-i", path)
    check_eq((status, err), (0, ""), "ktrdump of what was saved: status and messages")
    return json_lines(out)


def lists_threads(out):
    check_match(r"^ *TID PRIO CPU STATE +WAITS FOR +PID +PGRP +UID NAME$", out, "ps")
    check_match(r"^ +1 +\d+ +\d+ sleep +wait +1 +1 +0 init$", out, "ps: init, which waits")
    check_match(r"^ +\d+ +\d+ +0 \w+ .*\[idle/0\]$", out, "ps: a thread of the kernel")


@portable_test("at db>, ktr save writes the same events as show ktr prints")
def save():
    with machine("--set", "debug.ktr.entries=128") as (c, socket, _):
        shell(c, "load mix -n 2 -j 2 > /dev/null")
        stopped_by_request(c)
        events = saved(socket)
        same_events(events, db_events(c))


@portable_test("the same with rings outside the region that survives a reset")
def save_outside():
    with machine("--set", "debug.ktr.region=0", "--set", "debug.ktr.entries=256") as (c, socket, _):
        stopped_by_request(c)
        events = saved(socket)
        same_events(events, db_events(c))


@portable_test("ktr show, stats, sites, ps and bt all work on a busy machine, which goes on afterwards")
def live():
    with machine(smp=4) as (c, socket, _):
        shell(c, "load mix -n 1000000 -j 4 > /dev/null &")
        commands = ("ktr show 5", "ktr show 7 --format jsonl --class PROC", "ktr stats", "ktr sites fork*", "ktr sites kernel/mm/*",
                    "ps", "bt all")
        rows, out, stats, forks, mm, ps, traces = gdb(*(word for command in commands for word in ("echo ====\\n", command)),
                                                      socket=socket).split("====\n")[1:]
        rows = re.findall(r"^ *(?:\d+|-) +\d+ +\d+\.\d{9} \S.*$", rows, re.M)
        check_eq(len(rows), 5, f"events of ktr show 5: {rows}")
        events = json_lines("\n".join(line for line in out.splitlines() if line.startswith("{")))
        check(1 <= len(events) <= 7, f"{len(events)} rows of ktr show 7")
        check_eq({e["class"] for e in events if "seq" in e}, {"PROC"}, "classes of ktr show --class PROC")
        check_match(r"^ *\d+ .*kernel/.+\.c:\d+", stats, "ktr stats: sites")
        check_match(r"^ *\d+ on  kernel/proc/fork\.c:\d+ fork: parent %u", forks, "ktr sites: one that is on")
        check_match(r"^ *\d+ off kernel/mm/\S+:\d+ ", mm, "ktr sites: one that is off")
        lists_threads(ps)
        check_eq(re.findall(r"^cpu (\d)$", traces, re.M), list("0123"), f"CPUs in bt all:\n{traces}")
        gdb("bt 1", socket=socket)
        check_match(r"^alive\s*$", shell(c, "echo alive"), "the shell, after gdb has gone")


def addresses(backtrace):
    """Addresses of the frames. Inlined functions have none."""
    return re.findall(r"^#\d+ +(0x[0-9a-f]{16}) ", backtrace, re.M)


def of_threads(out):
    """{thread: addresses}, {CPU: addresses} of the output of bt."""
    threads, cpus = {}, {}
    for head, trace in re.findall(r"^(\S+ tid \d+: .*|cpu \d)\n((?:#.*\n)*)", out, re.M):
        m = re.search(r" tid (\d+): ", head)
        (threads if m else cpus)[m[1] if m else head[4:]] = addresses(trace)
    return threads, cpus


def agree(found, expected, what):
    """gdb's addresses must be those of db>, in order. gdb shows no address for a pc at the beginning of a line, as
    after a trap."""
    rest = iter(expected)
    check(all(a in rest for a in found) and len(found) >= len(expected) - TRAPS,
          f"backtrace of {what}: found {found}, and db> has {expected}")


@test("ps and the backtraces of all threads and CPUs are those of db>, over the stub and in a dump")
def threads():
    with machine() as (c, socket, qmp):
        shell(c, "sleep 1000 & load mix -n 1000000 -j 4 > /dev/null &")
        stopped_by_request(c)
        db(c, "lines 0")
        ps = db(c, "ps").partition("\n")[2]
        tids = re.findall(r"^ *(\d+) ", ps, re.M)
        known = {tid: addresses(db(c, f"bt {tid}")) for tid in tids}
        stopped = {str(cpu): addresses(db(c, f"bt cpu {cpu}")) for cpu in range(2)}
        check(sum(len(trace) > 2 for trace in known.values()) > 5, f"backtraces of db>: {known}")
        check(max(len(trace) for trace in stopped.values()) > 5, f"backtraces of CPUs at db>: {stopped}")
        control = Qmp(qmp)
        dump = control.dump(scratch_file(".core"))
        control.close()
        for how in ({"socket": socket}, {"before": f"ktr core {dump}"}):
            before = [how.pop("before")] if "before" in how else []
            if before:
                close(c)
            listed, out = gdb(*before, "ps", "echo ====\\n", "bt all", **how).split("====\n")
            check(ps.strip() in listed, f"ps, and as db> has it:\n{ps}\nfound:\n{listed}")
            found, cpus = of_threads(out)
            # A CPU that was stopped in the middle of a switch has two threads.
            check(len(tids) - 4 <= len(found) <= len(tids) - 2 and len(cpus) == 2, f"threads and CPUs of bt all:\n{out}")
            for tid, trace in found.items():
                # gdb also shows the frames of the program, if there is one.
                agree([a for a in trace if a.startswith("0xffff")], known[tid], f"thread {tid}:\n{out}")
            for cpu, trace in stopped.items():
                # db> begins where the CPU was stopped, gdb where the CPU is now.
                agree([a for a in cpus[cpu] if a in trace[1:]], trace[1:], f"cpu {cpu}:\n{out}")
            waiting, busy = next(iter(found)), next(tid for tid in tids if tid not in found)
            one, other = gdb(*before, f"bt tid {waiting}", "echo ====\\n", f"bt tid {busy}", **how).split("====\n")
            check_eq(of_threads(one)[0], {waiting: found[waiting]}, "bt tid")
            check_match(r"^cpu \d\n#0 ", other, "bt tid of one that runs")
        dump.unlink()


@test("in the middle of a switch, the thread that is switched out has no backtrace of its own yet, but its CPU's")
def switched():
    with machine(smp=1) as (c, socket, _):
        shell(c, "load mix -n 1000000 -j 4 > /dev/null &")
        out = gdb("break arch_context_switch", "continue", "python gdb.execute('bt tid %d' % gdb.parse_and_eval('runqs[0].prev->tid'))",
                  socket=socket)
        check_match(r"^cpu 0\n#0 .*arch_context_switch \(.*\n#1 .* switch_out \(", out, "bt tid")


@test("a machine that hangs with interrupts off: gdb says where, and its last events")
def hung():
    with machine("--set", "debug.watchdog.seconds=0", smp=1) as (c, socket, qmp):
        c.sendline("sysctl debug.kdb.hang=0")
        control = Qmp(qmp)
        control.waits_for_hang()
        control.close()
        out = gdb("bt all", "ps", "ktr show 200", socket=socket)
        # The CPU may be in arch_relax(), which is inlined: gdb then shows it as a frame of its own.
        check_match(r"^cpu 0\n(?:#0 .*\barch_relax \(.*\n)?#[01] .*\bdeath_hang \(", out, "bt all")
        check_match(r"^ +\d+ +\d+ +0 run .*\[hang\]$", out, "ps")
        check_match(r'id:"hang tid \d+", state:"running"', out, "the newest events")


@test("the kernel can be read while a program spins in user mode on the only CPU")
def user_mode():
    with machine("--set", "debug.ktr.entries=256", smp=1) as (c, socket, _):
        c.sendline("load malloc -n 1000000000")
        step = "gdb.execute('stepi', to_string=True)"
        out = gdb("thbreak entry_user_return", "continue", f"python while int(gdb.parse_and_eval('(long)$pc')) < 0: {step}",
                  'printf "at %#lx\\n", (long)$pc', "ktr show 5", "ps", socket=socket)
        check_match(r"^at 0x[0-9a-f]{1,12}$", out, "an address in user mode")
        check_eq(len(re.findall(r"^ *(?:\d+|-) +\d+ +\d+\.\d{9} \S.*$", out, re.M)), 5, f"events of ktr show 5 in:\n{out}")
        lists_threads(out)


@portable_test("ktr core opens a memory dump and shows the same as ktrdump -M; another kernel's is refused")
def core():
    with machine("--set", "debug.ktr.entries=512", smp=2) as (c, _, qmp):
        shell(c, "load mix -n 2 -j 2 > /dev/null")
        stopped_by_request(c)
        control = Qmp(qmp)
        dump = control.dump(scratch_file(".core"))
        control.close()
        close(c)
        path = scratch_file(".ktr")
        out = gdb(f"ktr core {dump}", "bt all", "ps", f"ktr save {path}", "print ncpus")
        check_match(r"^#\d .*\bkdb_\w+ \(", out, "bt all: the CPU at the prompt")
        check_eq(re.findall(r"^cpu (\d)$", out, re.M), ["0", "1"], f"CPUs in bt all:\n{out}")
        check_match(r"^\$1 = 2$", out, "print ncpus")
        lists_threads(out)
        found, expected = (by_number(json_lines(ktrdump("--format", "jsonl", *where)[1]))
                           for where in (("-i", path), ("-M", dump)))
        check(len(expected) > 100, f"{len(expected)} events in the dump, expected more than 100")
        check_eq(found, expected, "what ktr save writes, and what ktrdump -M finds")
        # As make debug CORE=FILE does.
        out = subprocess.run([ROOT / "qemu/gdb/debug", KERNEL, "--core", dump], env={"GDBFLAGS": "-batch -ex ps",
                             "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=DEADLINE_S).stdout
        lists_threads(out)
        out = gdb(f"ktr core {dump}", kernel=BUILD / "kestrel-test")
        check_match(r"it is a dump of kestrel ([0-9a-f]{40}), but .* is kestrel (?!\1)[0-9a-f]{40}", out, "another kernel")
        dump.unlink()


@portable_test("an error names what is missing: a machine, a dump, a file, the kernel's memory")
def errors():
    junk = scratch_file(".junk")
    junk.write_bytes(b"\x7fELF\x02\x01\x01" + b"\xff" * 5000)
    for command, expected in (("ktr show", "memory"), ("ktr core /nonexistent", "No such file"), ("ps x", "usage: ps"),
                              (f"ktr core {junk}", "expected an ELF core"), ("ktr core /dev/null", "/dev/null"),
                              ("ktr save", "usage: ktr save FILE"), ("ktr stats x", "usage: ktr stats"),
                              ("bt all", "no machine"), ("bt tid x", "expected a number"), ("bt", "No stack."),
                              (f"ktr core {KERNEL}", "expected an ELF core")):
        out = gdb(command)
        check(expected in out and "Traceback" not in out and "Python" not in out, f"{command}: expected {expected!r}, found {out!r}")


@portable_test("each command has a help text, and completes")
def helps():
    for command in ("show", "stats", "sites", "save", "core"):
        check_match(rf"^usage: ktr {command}", gdb(f"help ktr {command}"), f"help ktr {command}")
    check_match(r"^usage: ps$", gdb("help ps"), "help ps")
    check_match(r"^usage: bt all", gdb("help bt"), "help bt")
    check_eq(gdb("complete ktr s").split("\n")[:-1], ["ktr save", "ktr show", "ktr sites", "ktr stats"], "completions")
    check_match(r"^ktr show --class$", gdb("complete ktr show --c"), "completions of an option")
    check_match(r"^ktr show -- Print the newest events", gdb("help ktr"), "help ktr")


if __name__ == "__main__":
    main()
