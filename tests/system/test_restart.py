#!/usr/bin/python3
"""test_restart.py - a record is a restartable sequence: after an exception it begins again."""
import contextlib
import re
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from console import Patient, DB, close, db, guest, recorded, shell, stopped_by_request  # noqa: E402
from harness import ARCH, BUILD, DEADLINE_S, ROOT, boot, check, check_eq, check_match, main, scratch_file, test  # noqa: E402
from qmp import Qmp  # noqa: E402

# Places in a sequence at which something is done: after its first instruction, up to the store that ends it.
PLACES = {"x86_64": 19, "aarch64": 15}  # in a record of six parameters
TURN_PLACES = 3  # in the sequence that sets the ring's next turn, on x86_64
RECORD, SLOW = ("ktr_ring_records_begin_again_wherever_an_interrupt_comes",
                "ktr_ring_slow_path_is_whole_wherever_an_interrupt_comes")

FIRST_BYTES = 9  # size of x86_64's first instruction of a record


def interrupted_everywhere(name, places):
    run = boot(smp=1, sets=[f"kern.test={name}"],
               options=["--kernel", str(ROOT / "build" / ARCH / "kestrel-test"), "--icount"])
    check_eq(run.status, 0, "exit status")
    check_match(rf"(?m)^ok 1 - {name} ", run.out, "the kernel's own test")
    found = re.search(r"interrupted at (\d+) instructions of .*; (\d+) rounds without an interrupt", run.out)
    check(found, f"no line about the interrupts in:\n{run.out}")
    check_eq(int(found.group(1)), places, "instructions of the sequences that were interrupted")
    check_eq(int(found.group(2)), 0, "rounds of which the interrupt's own events are not there")


@test("an interrupt at each instruction of a record: every event is there once, in the order of time")
def everywhere():
    interrupted_everywhere(RECORD, PLACES[ARCH])


@test("an interrupt at each instruction around the slow path: every event is there once, in the order of time")
def everywhere_slow():
    interrupted_everywhere(SLOW, 0)  # interrupts are off in them


class Gdb:
    """A gdb at a machine's stub, which gets one command at a time."""

    def __init__(self, socket):
        self.gdb = Patient("gdb-multiarch", ["-nx", "-q", str(BUILD / "kestrel")], encoding="utf-8", timeout=DEADLINE_S)
        self.gdb.delaybeforesend = None
        self.stopped()
        for line in ("set pagination off", "set confirm off", "set style enabled off", f"set remotetimeout {DEADLINE_S}", f"target remote {socket}"):
            self.run(line)

    def stopped(self):
        self.gdb.expect(r"\(gdb\) $")
        return self.gdb.before

    def send(self, line):
        self.gdb.sendline(line)

    def interrupt(self):
        self.gdb.send("\x03")
        self.stopped()

    def run(self, line):
        self.send(line)
        return self.stopped()

    def number(self, what):
        return int(re.search(r"= (0x[0-9a-f]+)", self.run(f"print/x {what}"))[1], 16)


@contextlib.contextmanager
def machine():
    """A guest of one CPU that makes system calls without end and records them and NMIs; with gdb and QMP."""
    socket, control = scratch_file(".gdb"), scratch_file(".qmp")
    with guest("--mem", "64M", "--qmp", str(control), "--", "-gdb", f"unix:{socket},server=on,wait=off", smp=1) as c:
        shell(c, "load syscall -n 1000000000 > /dev/null &")
        shell(c, "sysctl debug.ktr.mask=SYSC")
        shell(c, "sysctl debug.ktr.on='nmi: count*'")
        qmp, gdb = Qmp(control), Gdb(socket)
        yield c, gdb, qmp
        close(gdb.gdb)
        qmp.close()


def sequence_of_record6(gdb):
    """(from, end)"""
    return tuple(gdb.number(f"__stop_ktr_restart[-1].{member}") for member in ("from", "end"))


def thread_events(c):
    """[(number, thread, first word of the text)] of the newest events, the newest first."""
    return [(int(number), int(thread), word)
            for number, thread, word in re.findall(r"^(\d+) \((\d+):cpu0\): (\w+)", db(c, "show ktr -n 1000"), re.M)]


def inject_nmi(gdb, qmp):
    """An NMI as another CPU would send it. One from the operator would stop the machine."""
    gdb.run("set var pcpus[0]->nmi_sent = 1")
    qmp.command("inject-nmi")


if ARCH == "x86_64":  # QEMU can inject an NMI on this machine only

    @test("an NMI at each instruction of a record: its event and the record get different numbers")
    def nmi_everywhere():
        with machine() as (_, gdb, qmp):
            begin, end = sequence_of_record6(gdb)
            for n in range(1, PLACES[ARCH] + 1):
                gdb.run(f"tbreak *{begin:#x}")
                gdb.run("continue")
                head = gdb.number("pcpus[0]->md.ktr_ring->head")
                gdb.run(f"stepi {n}")
                check(begin < gdb.number("$pc") < end, f"{n} instructions on, at {gdb.number('$pc'):#x}: not in the sequence")
                inject_nmi(gdb, qmp)
                gdb.run(f"tbreak *{end:#x}")
                gdb.run("continue")
                check_eq(gdb.number("pcpus[0]->md.ktr_ring->head") - head, 2 * 64, f"events at an NMI after {n} instructions")

    @test("an NMI at each instruction of a turn's update, whose event ends the turn: the next turn is right")
    def nmi_ends_turn():
        with machine() as (c, gdb, qmp):
            gdb.send("continue")
            shell(c, "sysctl debug.ktr.entries=4")
            gdb.interrupt()
            record, _ = sequence_of_record6(gdb)
            turn, end = (gdb.number(f"__start_ktr_restart[0].{member}") for member in ("from", "end"))
            for n in range(TURN_PLACES + 1):
                gdb.run(f"tbreak *{record:#x}")
                gdb.run("continue")
                # The third event of a turn of four takes the slow path. The NMI's event is the fourth.
                ahead = (2 - gdb.number("pcpus[0]->md.ktr_ring->head") // 64) % 4
                gdb.run(f"set var pcpus[0]->md.ktr_ring->head += {ahead * 64}")
                gdb.run("set var pcpus[0]->md.ktr_ring->limit = 0")
                gdb.run(f"tbreak *{turn:#x}")
                gdb.run("continue")
                gdb.run(f"stepi {n}" if n else "print")
                inject_nmi(gdb, qmp)
                for _ in ("the NMI's", "the one that it struck, which finds another head", "its second try"):
                    gdb.run(f"tbreak *{end:#x}")
                    gdb.run("continue")
                head = gdb.number("pcpus[0]->md.ktr_ring->head")
                check_eq(head // 64 % 4, 0, "events of the turn after the NMI's")
                check_eq(gdb.number("pcpus[0]->md.ktr_ring->limit") - head, 4 * 64, f"the turn after an NMI at {n} instructions")
                check_eq(gdb.number("pcpus[0]->md.ktr_ring->bias") + head, gdb.number("(long)(pcpus[0]->md.ktr_ring + 1)"),
                         f"where the next event goes after an NMI at {n} instructions")

    @test("an NMI in a debug exception inside a record: its event and the record get different numbers")
    def nmi_in_debug():
        with machine() as (c, gdb, qmp):
            begin, _ = sequence_of_record6(gdb)
            gdb.send("continue")
            stopped_by_request(c)
            db(c, f"break {begin + FIRST_BYTES:#x}")
            gdb.interrupt()
            gdb.run("tbreak x86_debug_exception")
            gdb.send("continue")
            c.sendline("continue")
            gdb.stopped()
            head = gdb.number("pcpus[0]->md.ktr_ring->head")
            inject_nmi(gdb, qmp)
            gdb.send("continue")
            c.expect(r"breakpoint 1 on cpu 0, at ktr_record6\+0x")
            c.expect(DB)
            check_eq(recorded(c) - head // 64, 1, "events at an NMI in the debug exception")
            c.sendline("step")
            c.expect(r"single step on cpu 0, at ktr_record6\+0x")
            c.expect(DB)
            # In the debugger the record goes to the slow path, which continues with the machine.
            check_eq(recorded(c) - head // 64, 1, "events after the step over the sequence")
            # Until the struck thread has recorded: other threads may run first, and stop at the breakpoint, too.
            (nmi, thread, _), *older = thread_events(c)
            before = next(event for event in older if event[1] == thread)
            while not (after := [event for event in thread_events(c) if event[1] == thread and event[0] > nmi]):
                c.sendline("continue")
                c.expect(r"breakpoint 1 on cpu 0, at ktr_record6\+0x")
                c.expect(DB)
            # A thread's calls and returns take turns, so that none is missing.
            check_eq({before[2], after[-1][2]}, {"syscall", "sysret"}, "the struck thread's events before and after the NMI")


if __name__ == "__main__":
    main()
