#!/usr/bin/python3
"""test_fbt_storm.py - nothing breaks while every probe is switched on and off on a busy machine: from all CPUs at once, under
NMIs, under the debuggers' breakpoints and steps, in a panic, in a memory dump and across a reset.

environment: KESTREL_STRESS_SECONDS, how long all CPUs switch probes (default: 1, and 4 in `make soak`). `make stress SECONDS=60`.
"""
import contextlib
import os
import re

import tracecheck as tc
from console import BREAK, DB, db, db_events, ended, gdb, guest, prompt, shell, stopped_by_request
from fbtcheck import disassembly, symbols
from harness import ARCH, BUILD, DEADLINE_S, boot, check, check_eq, check_match, ktr_stats, ktrdump, main, portable_test, scratch_file, test, times
from qmp import Qmp

SECONDS = float(os.environ.get("KESTREL_STRESS_SECONDS") or times(1, 4))
ALL = "fbt:::,ktr:::,syscall:::,proc:::,sched:::,lockstat:::,vminfo:::,sysinfo:::,sdt:::,vfs:::,callout_execute:::,profile:::profile-997,profile:::tick-1ms"
MODULES = ("fs", "mm", "sched", "proc", "sync", "lib", "dev", "trace")
# $n switches the probes of two modules, and now and then all, until /tmp/over is there.
SWITCH = """
cat > /tmp/switch <<'end'
while ! test -e /tmp/over; do
    ktr on "fbt:$1::" > /dev/null; ktr on "fbt:$2::" > /dev/null
    ktr off "fbt:$1::" > /dev/null; ktr off "fbt:$2::" > /dev/null
    ktr on "$3" > /dev/null; ktr off "$3" > /dev/null
done
end
"""


def checksum(text):
    """The one checksum of the kernel's code that was printed."""
    return check_match(r"(?<![0-9a-f])([0-9a-f]{8})(?![0-9a-f])", text, "a checksum")[1]


@test("all CPUs switch functions and all other probes on and off at once, on a busy machine: the code is afterwards as it was built")
def switching():
    starts = "".join(f"sh /tmp/switch {MODULES[2 * n]} {MODULES[2 * n + 1]} '{ALL}' &\n" for n in range(4))
    run = boot(f"{SWITCH}sysctl -n debug.fbt.text\n(sleep {SECONDS}; touch /tmp/over) &\n{starts}"
               "while ! test -e /tmp/over; do load mix -n 5 -j 4; done\nwait\nktr off > /dev/null\nsysctl -n debug.fbt.text\nktr probes -c\n",
               smp=4, timeout=DEADLINE_S + 4 * SECONDS).expect()
    check_match(r"^load mix: n=5 jobs=4 ok, \d+ ms$", run.out, "load's summary")
    texts = re.findall(r"^([0-9a-f]{8})$", run.out, re.M)
    check(len(texts) == 2 and texts[0] == texts[1], f"checksums of the kernel's code, before and after: {texts}")
    counts = re.findall(r"^(\w+) +\d+ +(\d+)$", run.out, re.M)
    check(len(counts) > 5 and all(on == "0" for _, on in counts), f"probes that are on: {counts}")


@contextlib.contextmanager
def busy(*options):
    """A guest that switches all probes on and off while it works. At the end it stops doing so, and its code is as built."""
    with guest("--mem", "128M", *options) as c:
        before = checksum(shell(c, "sysctl -n debug.fbt.text"))
        *lines, end = SWITCH.strip().splitlines()
        for line in lines:
            c.sendline(line)
        shell(c, end)
        shell(c, f"sh /tmp/switch fs mm '{ALL}' &")
        shell(c, "while ! test -e /tmp/over; do load mix -n 5 -j 4 > /dev/null; done &")
        yield c
        c.sendline("touch /tmp/over; wait; ktr off > /dev/null; echo all over")
        c.expect(r"(?<!echo )all over")
        prompt(c)
        check_eq(checksum(shell(c, "sysctl -n debug.fbt.text")), before, "checksum of the kernel's code")
        stopped_by_request(c)
        check_eq(checksum(db(c, "sysctl debug.fbt.text")), before, "the same at db>")
        c.sendline("continue")
        c.sendline("poweroff 3")
        check_eq(ended(c), 3, "exit status")


def stops(c, n, stop):
    """Stops the machine by a function, n times, and lets it go on until it says that it is alive."""
    for i in range(n):
        stop()
        c.expect(DB)
        check_match(r"^#0 |^---", db(c, "bt"), "bt")
        # After a pause, since a sooner NMI would be taken for an older one. One of a burst may stop the machine once more.
        go_on = f"continue\r\x15sleep 0.1; echo alive{i}"
        c.sendline(go_on)
        while c.expect([f"\nalive{i}", DB]) == 1:
            c.sendline(go_on)


@test("while all probes are switched on and off, the operator stops the machine again and again: it goes on each time")
def operator():
    with busy() as c:
        stops(c, times(3, 8), lambda: c.send(BREAK))


@test("while all probes are switched on and off, NMIs come in bursts: the debugger is entered and left each time",
      arch=("x86_64", "QEMU can inject an NMI on this machine only"))
def nmis():
    control = scratch_file(".qmp")
    with busy("--qmp", str(control)) as c:
        qmp = Qmp(control)
        stops(c, times(3, 8), lambda: [qmp.command("inject-nmi") for _ in range(20)])
        qmp.close()


@test("the debugger stops at a probed function, and steps through the probe to the function's second instruction")
def steps():
    with guest(smp=1) as c:
        at, places = symbols()["sys_getppid"], sorted(disassembly()[1])
        body = places[places.index(at) + 1]
        shell(c, "ktr clear; ktr on fbt::sys_getppid:")
        before = ktr_stats(shell(c, "sysctl debug.ktr.stats").replace("\r", ""))[0]["suppressed"]
        stopped_by_request(c)
        check_match(r"^breakpoint 1 at sys_getppid", db(c, "break sys_getppid"), "break")
        c.sendline("continue\r\x15load syscall -n 1 -j 1")
        c.expect(r"breakpoint 1 on cpu 0, at sys_getppid")
        c.expect(DB)
        db(c, "delete all")
        way = []
        for _ in range(8):
            c.sendline("step")
            c.expect(r"single step on cpu 0, at (\w+)\+")
            way.append(c.match[1])
            c.expect(DB)
        stub = {"x86_64": 1, "aarch64": 2}[ARCH]  # instructions
        check_eq(way, ["__fbt_stubs"] * stub + ["fbt_entry"] * (8 - stub), "where the steps led")
        db(c, f"break {body:#x}")
        c.sendline("continue")
        c.expect(r"breakpoint \d on cpu 0, at sys_getppid\+")
        c.expect(DB)
        db(c, "delete all")
        c.sendline("continue")
        c.expect(r"load syscall: n=1 jobs=1 ok")
        prompt(c)
        shell(c, "ktr off")
        out = shell(c, "ktrdump -q --thread load").replace("\r", "")
        entries, returns = (len(re.findall(rf"^ *\d+ {arrow} sys_getppid", out, re.M)) for arrow in ("->", "<-"))
        # What happens while the machine is stopped is not recorded, also if it is stepped; but it is counted.
        passed = ktr_stats(shell(c, "sysctl debug.ktr.stats").replace("\r", ""))[0]["suppressed"] - before
        check(returns > 0 and entries + passed == returns, f"{entries} entries and {returns} returns of sys_getppid, {passed} suppressed")


@test("gdb stops at a probed function, and steps through the probe to the function's second instruction")
def gdb_steps():
    socket = scratch_file(".gdb")
    with guest("--", "-gdb", f"unix:{socket},server=on,wait=off", smp=1) as c:
        at, places = symbols()["sys_getppid"], sorted(disassembly()[1])
        body = places[places.index(at) + 1]
        shell(c, "ktr on fbt::sys_getppid:")
        shell(c, "while true; do load syscall -n 10 -j 1 > /dev/null; done &")
        out = gdb(f"hbreak *{at:#x}", "continue", "delete", *["stepi", "print/x $pc"] * 140, "detach", socket=socket)
        way = [int(pc, 16) for pc in re.findall(r"^\$\d+ = (0x[0-9a-f]+)$", out, re.M)]
        check(body in way, f"not at sys_getppid's second instruction, {body:#x}: {[hex(pc) for pc in way]}")
        check(symbols()["fbt_entry"] in way, "not once at fbt_entry")
        shell(c, "echo alive")


@portable_test("a memory dump of a machine that panicked with all probes on has the events that db> shows")
def dump():
    control = scratch_file(".qmp")
    with guest("--mem", "64M", "--set", "debug.ktr.entries=256", "--qmp", str(control)) as c:
        qmp = Qmp(control)
        shell(c, f"ktr on '{ALL}'")
        shell(c, "load mix -n 3 > /dev/null")
        c.sendline("sysctl debug.kdb.trap=1")
        c.expect(DB)
        core = qmp.dump(scratch_file(".core"))
        status, out, err = ktrdump("--format", "jsonl", "-N", BUILD / "kestrel", "-M", core)
        os.unlink(core)
        check_eq((status, err), (0, ""), "ktrdump -M: status and messages")
        decoded = tc.json_lines(out)
        shown = db_events(c)
        tc.same_events(decoded, shown)
        check(any(text.startswith("-> ") for *_, text in shown.values()), "no entry of a function")
        qmp.close()


# Runs in the boot that ends and in the next one. They differ by whether there is a log of the boot before.
REBOOT = f"""
if test $(sysctl -n debug.ktr.prev.events) = 0; then
ktr on '{ALL}' > /dev/null
sysctl debug.ktr.alq_enable=1 > /dev/null
load mix -n 1 -j 2 > /dev/null
reboot
sleep 60
fi
cat /dev/ktr.prev > /dev/vport0p1
poweroff 7
"""


@portable_test("after a reset with all probes on, the ring of the boot before has the events that were on the line")
def reset():
    trace = scratch_file(".ktr")
    boot(REBOOT, smp=4, options=["--reboot", "--trace", str(trace), "--set", "debug.ktr.alq_enable=0"]).expect(7)
    parts = tc.streams(trace)
    line, prev = tc.read_boot(parts[:-1]), tc.read_events("-i", parts[-1])
    both = line.keys() & prev.keys()
    check(len(both) > 100, f"{len(both)} events are in both, expected more than 100")
    for key in both:
        check_eq(prev[key], line[key], f"event {key}")
    check(len(prev) > 1000, f"{len(prev)} events in the ring of the boot before, expected more than 1000")
    check(any(e["text"].startswith("-> ") for e in prev.values()), "no entry of a function")


@portable_test("when memory runs out meanwhile, functions are switched on all together or not at all")
def memory():
    script = "".join(f"su 1000 user_test do hog memory > /dev/null &\nktr on 'fbt:::' > /dev/null\nktr probes -c | grep fbt\n"
                     "ktr off 'fbt:::' > /dev/null\nktr probes -c | grep fbt\nuser_test do slay 1000\n" for _ in range(times(3, 8)))
    run = boot(f"{script}sysctl debug.ktr.alq_enable=0\nktr off > /dev/null\nktr probes -c\ndmesg\n", smp=2, mem="64M",
               options=["--file", f"/bin/user_test={BUILD}/user_test"]).expect()
    counts = [(int(there), int(on)) for there, on in re.findall(r"^fbt +(\d+) +(\d+)$", run.out, re.M)]
    check(len(counts) > 1 and {on for _, on in counts} <= {0, counts[0][0]}, f"functions' probes, and how many are on: {counts}")
    check(any(on for _, on in counts), "never on")
    check_eq(counts[-1][1], 0, "probes of functions that are on at the end")
    check_match(r"out of memory: user_test\[\d+\].* is killed", run.out, "memory that ran out")


if __name__ == "__main__":
    main()
