#!/usr/bin/python3
"""test_routes.py - however the kernel dies or hangs, each way to its last events shows the same events.

The ways are: db> (its `capture`, over the console), a memory dump (ktrdump -M), the boot after a reset
(/dev/ktr.prev), and the trace line, which has what was flushed before. Each test prints a row of the table in
doc/crashes.md.
"""
import contextlib
import os
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import pexpect

from console import DB, db, ended, guest, prompt, shell, wait_for_flush  # noqa: E402
from harness import (BUILD, check, check_eq, check_match, cpus, main, portable_test,  # noqa: E402
                     scratch_file, test)
from qmp import Qmp  # noqa: E402
from tracecheck import by_number, overwritten, read_boot, read_lines, streams  # noqa: E402

CLASSES = "GEN,TRAP,SCHED,PROC,SYSC,LOCK"
LAST = 100


class Death:
    """A guest that records, and then dies."""

    def __init__(self, c, qmp, trace):
        self.c, self.qmp, self.trace, self.gaps = c, qmp, trace, {}
        self.log = scratch_file(".log")

    def at_db(self):
        """The events in the rings, by the debugger."""
        with open(self.log, "w", encoding="utf-8") as f:
            self.c.logfile_read = f
            db(self.c, "capture")
            self.c.logfile_read = None
        with self.qmp.still():
            return self.read("db>", "-i", self.log)

    def dumped(self):
        core = scratch_file(".core")
        with self.qmp.still():
            self.qmp.dump(core)
            found = self.read("dump", "-N", BUILD / "kestrel", "-M", core)
        os.unlink(core)
        return found

    def read(self, route, *args):
        """The events, and in self.gaps what was overwritten before them."""
        lines = read_lines(*args)
        self.gaps[route] = overwritten(lines)
        return by_number(lines)

    def after_reset(self, reset=True):
        """The events found by the next boot, and those that were on the line before."""
        if reset:
            self.qmp.reset()
        prompt(self.c)
        shell(self.c, "cat /dev/ktr.prev > /dev/vport0p1")
        parts = streams(self.trace)
        return self.read("reset", "-i", parts[-1]), read_boot(parts[:-1])


@contextlib.contextmanager
def dying(smp):
    socket, trace = scratch_file(".qmp"), scratch_file(".ktr")
    with guest("--mem", "64M", "--qmp", str(socket), "--reboot", "--trace", str(trace), "--set", "debug.ktr.alq_enable=0",
               "--set", "debug.ktr.entries=1024", "--file", f"/bin/user_test={BUILD / 'user_test'}", smp=smp) as c:
        qmp = Qmp(socket)
        shell(c, "sysctl debug.ktr.alq_enable=1 > /dev/null")
        shell(c, f"sysctl debug.ktr.mask={CLASSES} > /dev/null")
        shell(c, "load mix -n 2 -j 2 > /dev/null")
        wait_for_flush(c)
        yield Death(c, qmp, trace)
        qmp.close()


def newest(found):
    """Keys of the last events; entries with parts of data have no time."""
    return sorted((k for k, e in found.items() if "ns" in e), key=lambda k: (found[k]["ns"], k))[-LAST:]


def agree(name, smp, routes, line):
    """The last events by the first route must equal those by the others, field by field; on the line, as far as it
    came."""
    (first, right), *others = routes.items()
    last = newest(right)
    check_eq(len(last), LAST, f"{name}, {smp} CPUs: events by {first}")
    for route, found in others:
        for key in last:
            check(key in found, f"{name}, {smp} CPUs: event {key} is known by {first}, not by {route}")
            check_eq(found[key], right[key], f"{name}, {smp} CPUs: event {key} by {route}, and by {first}")
    oldest = {}
    for cpu, seq in sorted((key for key, e in right.items() if "ns" in e), reverse=True):
        oldest[cpu] = seq
    for key in right.keys() & line.keys():
        # Of the oldest event in a ring, parts of the data may have been overwritten since the line had them.
        if "(cut at " not in right[key].get("text", "") or oldest[key[0]] != key[1]:
            check_eq(line[key], right[key], f"{name}, {smp} CPUs: event {key} on the line, and by {first}")
    shown = {route: sum(key in found for key in last) for route, found in routes.items()}
    row = " | ".join(str(shown.get(route, "–")) for route in ("db>", "dump", "reset"))
    print(f"# | {name} | {smp} | {row} | {len(line):,} before |")


def same_gaps(death, *routes):
    """Each route says how many events of which CPU are overwritten, and from when to when."""
    check(death.gaps[routes[0]], f"no events are overwritten by {routes[0]}")
    for route in routes:
        check_eq(death.gaps[route], death.gaps[routes[0]], f"overwritten by {route}, and by {routes[0]}")


def dies_into_db(name, command, smps=None):
    for smp in smps or cpus():
        with dying(smp) as death:
            death.c.sendline(command)
            death.c.expect(DB)
            routes = {"dump": death.dumped(), "db>": death.at_db()}
            routes["reset"], line = death.after_reset()
            agree(name, smp, routes, line)
            same_gaps(death, *routes)


@portable_test("panic")
def panic():
    dies_into_db("panic", "sysctl debug.kdb.panic=1")


@portable_test("panic with debug.panic.action=dump: the line has everything, the panic last of its CPU; then status 101")
def panic_dump():
    for smp in cpus(of=(1, 2)):
        with dying(smp) as death:
            shell(death.c, "sysctl debug.panic.action=dump > /dev/null")
            death.c.sendline("sysctl debug.kdb.panic=1")
            check_eq(ended(death.c), 101, "exit status")
            parts = streams(death.trace)
            line = read_boot(parts, status=(0,))
            panics = [k for k in line if line[k]["text"].startswith("panic: ")]
            check_eq(len(panics), 1, "events of the panic")
            cpu, seq = panics[0]
            # The other CPUs may run on for a moment.
            check_eq(max(s for c, s in line if c == cpu), seq, f"the last event of CPU {cpu}, which panicked")
            check(len(line) >= LAST, f"{len(line)} events, expected {LAST} or more")
            print(f"# | panic, debug.panic.action=dump | {smp} | – | – | – | {LAST} |")


@portable_test("power cut, by QMP's quit, of a machine whose file is flushed: the line has what was before")
def power_cut():
    for smp in cpus():
        with dying(smp) as death:
            shell(death.c, "sysctl debug.ktr.mask=NONE > /dev/null")
            shell(death.c, "sysctl debug.ktr.alq_enable=0 > /dev/null")  # returns when everything is written
            shell(death.c, "cat /dev/ktr > /dev/vport0p1")
            dumped = death.dumped()
            death.qmp.command("quit")
            death.c.expect(pexpect.EOF)
            *parts, device = streams(death.trace)
            check_eq(death.read("/dev/ktr", "-i", device).keys(), dumped.keys(), "events by /dev/ktr, and in the dump")
            same_gaps(death, "dump", "/dev/ktr")
            line = read_boot(parts, status=(0,))
            last = newest(dumped)
            for key in last:
                check(key in line, f"event {key} is not on the line")
                check_eq(line[key], dumped[key], f"event {key} on the line, and in the dump")
            print(f"# | power cut after a flush | {smp} | – | {len(last)} | – | {len(last)} |")


@test("null dereference in the kernel")
def null_dereference():
    dies_into_db("null dereference in the kernel", "sysctl debug.kdb.trap=1", smps=cpus(of=(1, 2)))


@test("stack overflow into the guard page (a double fault on x86_64)")
def stack_overflow():
    dies_into_db("stack overflow into the guard page", "sysctl debug.kdb.stack_overflow=1", smps=cpus(of=(1, 2)))


@portable_test("deadlock of two spin locks with interrupts off, found by the watchdog")
def deadlock():
    dies_into_db("deadlock of two spin locks", "sysctl debug.watchdog.seconds=1 debug.kdb.deadlock=1", smps=(3,))


@test("hang in an interrupt handler, found by the watchdog")
def hang_in_interrupt():
    dies_into_db("hang in an interrupt handler", "sysctl debug.watchdog.seconds=1 debug.kdb.hang_interrupt=1",
                 smps=(2,))


@portable_test("hangs that nobody notices, with interrupts off and in a handler: dump and reset")
def hang_unnoticed():
    for knob, name in (("hang", "hang with interrupts off"), ("hang_interrupt", "hang in an interrupt handler")):
        with dying(1) as death:
            shell(death.c, "sysctl debug.watchdog.seconds=0 > /dev/null")
            death.c.sendline(f"sysctl debug.kdb.{knob}=0")
            death.qmp.waits_for_hang()
            routes = {"dump": death.dumped()}
            routes["reset"], line = death.after_reset()
            agree(f"{name}, no watchdog", 1, routes, line)


@portable_test("reset without notice, in the middle of work")
def reset():
    for smp in cpus():
        with dying(smp) as death:
            death.c.sendline("echo begin; while :; do load mix -n 100 -j 4 > /dev/null; done")
            death.c.expect(r"\nbegin\r+\n")  # the line is read: the next boot's shell finds nothing of it
            death.qmp.command("stop")
            dumped = death.dumped()
            death.qmp.reset()
            death.qmp.command("cont")
            found, line = death.after_reset(reset=False)
            agree("reset without notice", smp, {"dump": dumped, "reset": found}, line)


@test("triple fault: a page fault without gates for it and for the double fault resets the machine",
      arch=("x86_64", "aarch64 has no such thing: a vector that faults is entered for ever"))
def triple_fault():
    for smp in cpus(of=(1, 2)):
        with dying(smp) as death:
            death.c.sendline("sysctl debug.kdb.enter=1; load mix -n 2")  # the first page fault after it is the end
            death.c.expect(DB)
            routes = {"dump": death.dumped(), "db>": death.at_db()}
            for vector in (8, 14):  # gates of 16 bytes each
                out = db(death.c, f"write/g idt+{16 * vector:#x} 0")
                check_match(r"<idt\+0x\w+>: 0x\w+ = 0$", out, "write")
            death.c.sendline("continue")
            routes["reset"], line = death.after_reset(reset=False)
            agree("triple fault", smp, routes, line)


@portable_test("a program that crashes while it is traced: the machine goes on, and so does its log")
def user_crash():
    for smp in cpus(of=(1, 2)):
        with dying(smp) as death:
            shell(death.c, "user_test do crash")
            death.c.sendline("sysctl debug.kdb.enter=1")
            death.c.expect(DB)
            routes = {"dump": death.dumped(), "db>": death.at_db()}
            routes["reset"], line = death.after_reset()
            agree("crash of a program", smp, routes, line)


if __name__ == "__main__":
    main()
