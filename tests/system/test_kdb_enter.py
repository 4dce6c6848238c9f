#!/usr/bin/python3
"""test_kdb_enter.py - the ways into the debugger without a command: keys, NMI, the watchdog; and what panics do."""
import re

from console import BREAK, DB, db, ended, guest, prompt, shell, stopped_by_request
from harness import Failed, boot, check, check_eq, check_match, cpus, main, portable_test, scratch_file, test
from qmp import Qmp

BARK = r"watchdog: no timer interrupt on cpu (\d), at "
# Time is counted in instructions, of 256 ns each. So a CPU that the host does not run for a second is not found to hang.
INSTRUCTIONS = ("--icount", "--", "-icount", "shift=8,sleep=off")


@test("the keys CR ~ ^B enter the debugger; parts of them do not")
def chord():
    with guest(smp=2) as c:
        for half in ("\r~x\x02", "\r\x02~\x02", "\r\r\x02"):
            c.send(half)
            c.sendline("\x15echo alive")
            check_eq(c.expect(["\nalive", DB]), 0, "what half a chord brings (0: the shell)")
        for _ in range(3):
            c.send("\r~\x02")
            c.expect(r"key chord on cpu \d, at ")
            c.expect(DB)
            c.sendline("continue")
            c.sendline("echo back")  # a key of the sequence that went on to the shell would appear before this
            c.expect("\nback")
        c.send("\r~")
        c.sendline("x echo")
        c.expect_exact("sh: ~x: not found")
        c.sendline("poweroff 4")
        check_eq(ended(c), 4, "exit status")


@portable_test("what is typed after continue is for the shell, also what was typed while the debugger printed")
def typed_ahead():
    for smp in cpus():
        with guest(smp=smp) as c:
            c.send("\r~\x02")
            c.expect(DB)
            c.send("show ktr -n 3\rcontinue\recho ahead$((40 + 2))\r")
            c.expect("\nahead42")
            c.sendline("poweroff 5")
            check_eq(ended(c), 5, "exit status")


def barks(c, cpu):
    """Waits until the watchdog stops a hung CPU, in the function where it hangs."""
    c.expect(BARK)
    check_eq(int(c.match.group(1)), cpu, "the CPU that the watchdog found")
    c.expect(DB)


@test("the watchdog stops a CPU that hangs with interrupts off, in the function that hangs; the boot CPU, too")
def watchdog():
    for smp in cpus(of=(2, 4)):
        with guest("--set", "debug.watchdog.seconds=1", *INSTRUCTIONS, smp=smp) as c:
            for cpu in (0, smp - 1):
                c.sendline(f"sysctl debug.kdb.hang={cpu}")
                barks(c, cpu)
                out = db(c, "bt")
                check_match(r"^#0 .* death_hang\+", out, "bt")
                check_match(r"^#\d .* thread_begin\+", out, "bt, down to the thread's first function")
                check_eq(db(c, "show pcpu").count(", stopped"), smp - 1, "other CPUs that stand")
                check_match("will be set", db(c, f"sysctl kernel.hostname=hangs{cpu}"), "a setting at the prompt of a CPU that hangs")
                c.sendline("continue")  # it still hangs, and is found again
                barks(c, cpu)
                check_match(f": hangs{cpu}", db(c, "sysctl kernel.hostname"), "what the thread has set on another CPU")
                db(c, "write/b kdb_hanging 0")
                c.sendline("continue")
                c.sendline(f"echo alive{cpu}")
                c.expect(f"\nalive{cpu}")
                prompt(c)
            c.sendline("poweroff 2")
            check_eq(ended(c), 2, "exit status")


@test("a CPU that hangs is found, also while another one waits for its answer with interrupts off")
def watchdog_call():
    for smp in cpus(of=(2, 4)):
        with guest("--set", "debug.watchdog.seconds=1", *INSTRUCTIONS, smp=smp) as c:
            c.sendline(f"sysctl debug.kdb.hang={smp - 1}; sysctl debug.ktr.entries=4096")
            barks(c, smp - 1)
            check_match(r"^#0 .* death_hang\+", db(c, "bt"), "bt")
            waits = [n for n in range(smp - 1) if " smp_stop_run+" in db(c, f"bt cpu {n}")]
            check_eq(len(waits), 1, "CPUs that wait for an answer")
            db(c, "write/b kdb_hanging 0")
            c.sendline("continue")
            prompt(c)
            c.sendline("poweroff 0")
            check_eq(ended(c), 0, "exit status")


@test("the backtrace of a hung interrupt handler includes the interrupted code")
def watchdog_interrupt():
    with guest("--set", "debug.watchdog.seconds=1", *INSTRUCTIONS, smp=2) as c:
        c.sendline("sysctl debug.kdb.hang_interrupt=1")
        barks(c, 1)
        out = db(c, "bt")
        check_match(r"^#0 .* death_hang\+(?:.*\n)+?#\d+ .* callout_run\+(?:.*\n)+?#\d+ .* timer_interrupt\+(?:.*\n)+?"
                    r"--- interrupted, sp 0x[0-9a-f]+ ---\n(?:#.*\n)*?#\d+ .* hang_interrupt\+.*\n#\d+ .* thread_begin\+", out, "bt")
        db(c, "write/b kdb_hanging 0")
        c.sendline("continue")
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


@portable_test("debug.watchdog.seconds=0 turns the watchdog off; a break still finds the CPU that hangs")
def watchdog_off():
    with guest("--set", "debug.watchdog.seconds=1", *INSTRUCTIONS, smp=4) as c:
        shell(c, "sysctl debug.watchdog.seconds=0")
        shell(c, "sysctl debug.kdb.hang=2")
        for n in range(4):
            check_match(r"^ok", shell(c, "sleep 1; echo ok"), "the shell")
        c.send(BREAK)
        c.expect("serial break on cpu")
        c.expect(DB)
        check_match(r"^#0 .* death_hang\+", db(c, "bt cpu 2"), "bt of the CPU that hangs")
        db(c, "write/b kdb_hanging 0")
        c.sendline("continue")
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


@test("a deadlock of two CPUs is found and shown, and a command that needs such a lock gets an error line")
def deadlock():
    for smp in cpus(of=(3, 4)):  # with two CPUs, none would be left to watch
        with guest("--set", "debug.watchdog.seconds=1", *INSTRUCTIONS, smp=smp) as c:
            c.sendline("sysctl debug.kdb.deadlock=1")
            c.expect(BARK)
            c.expect(DB)
            out = db(c, "show alllocks")
            owners = dict(re.findall(r"^cpu (\d) holds spin lock deadlock ([ab]) at \S+ deadlock_[ab]\+0$", out, re.M))
            check_eq(sorted(owners.values()), ["a", "b"], f"locks held, in\n{out}")
            check_match(r"holds mutex sysctl at \S+ sysctl_lock\+0", out, "show alllocks")
            for cpu, name in owners.items():
                check_match(rf"^spin lock deadlock {name} at .*: held by cpu {cpu}$",
                            db(c, f"show lock deadlock_{name}"), "show lock")
                out = db(c, f"bt cpu {cpu}")
                check_match(r"^#\d .* spin_contended\+(?:.*\n)+?#\d .* deadlock_(?:set|thread)\+", out, "bt")
                check_match(rf"^spin lock deadlock {name}: .*cpu {cpu}", db(c, f"call spin_lock deadlock_{name}").lower(),
                            "call spin_lock")
            check_match(r"mutex sysctl: .*, in the debugger at ", db(c, "call mutex_lock sysctl_lock"), "call mutex_lock")
            check_match(r"^ *\d+ .* init$", db(c, "ps"), "ps after all that")
            c.sendline("poweroff 7")
            check_eq(ended(c), 7, "exit status")


@portable_test("the locks of a command that failed are released")
def abandoned():
    with guest(smp=2) as c:
        stopped_by_request(c)
        # The command takes the lock and calls address 0.
        check_match("page fault, .*in the debugger at ", db(c, "call thread_each 0 0"), "a call that faults")
        check_match("spin lock threads at .*: free$", db(c, "show lock threads_lock"), "its lock")
        check_match(r"\Asysctl tid \d+ holds mutex sysctl at .*\n\Z", db(c, "show alllocks").partition("\n")[2], "locks")
        db(c, "call spin_lock threads_lock")
        check_match("held by cpu", db(c, "show lock threads_lock"), "a lock that a command leaves taken")
        db(c, "call spin_unlock threads_lock")
        c.sendline("continue")
        prompt(c)
        check_match("init", shell(c, "ps"), "ps in the shell")
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


@test("without an operator a hung CPU ends in a panic's report and status 101")
def watchdog_batch():
    for smp in cpus(of=(2, 4)):
        r = boot("sysctl debug.kdb.hang=1\nsleep 100\n", smp=smp, mask="PROC,SCHED",
                 sets=["debug.watchdog.seconds=1"], options=INSTRUCTIONS).expect(101)
        check_match(r"^panic: watchdog: no timer interrupt$", r.out, "console")
        check_match(r"^cpu 1, thread hang tid \d+$", r.out, "the thread")
        for cpu in set(range(smp)) - {1}:
            check_match(rf"^cpu {cpu}, thread .* tid \d+$", r.out, "the other CPUs")
        check_match(r"^last \d+ events:$", r.out, "events")


@portable_test("debug.panic.action: a loader parameter and a sysctl; debug, dump and reboot do what they say")
def panic_action():
    with guest("--set", "debug.panic.action=dump", "--mask", "SCHED", smp=4) as c:
        check_match(r"^debug\.panic\.action: dump", shell(c, "sysctl debug.panic.action"), "sysctl")
        check_match("expected debug, dump or reboot", shell(c, "sysctl debug.panic.action=halt"), "a wrong action")
        shell(c, "sysctl debug.panic.events=7")
        c.sendline("sysctl debug.kdb.panic=1")
        c.expect(r"last (\d+) events:")
        check(7 <= int(c.match.group(1)) <= 28, f"{c.match.group(1)} events, expected 7 of each CPU at most")
        check_eq(ended(c), 101, "exit status")
    with guest("--set", "debug.panic.action=reboot", smp=2, deadline=()) as c:
        c.sendline("sysctl debug.kdb.panic=1")
        c.expect("panic: requested")
        c.expect_exact("Kestrel, ")
        prompt(c)
        c.sendline("poweroff 5")
        check_eq(ended(c), 5, "exit status")
    with guest("--set", "debug.panic.action=dump", smp=2) as c:
        shell(c, "sysctl debug.panic.action=debug")
        c.sendline("sysctl debug.kdb.trap=1")
        c.expect("panic: page fault")
        c.expect(DB)
        check_match(r"^#0 .* death_trap\+", db(c, "bt"), "bt")
        c.sendline("poweroff")
        check_eq(ended(c), 101, "exit status")


@test("a panic's report has each CPU's backtrace and the last events in order of time")
def panic_dump():
    for smp in cpus():
        r = boot("load fork -n 50 -j 4\nsysctl debug.kdb.panic=1\n", smp=smp, mask="PROC,SCHED").expect(101)
        report = r.out[r.out.index("panic: requested"):].replace("\r", "")
        for cpu in range(smp):
            check_match(rf"^cpu {cpu}, thread ", report, "report")
        n = int(check_match(r"^last (\d+) events:$", report, "report")[1])
        rows = re.findall(r"^\d+ \(\d+:cpu(\d)\) (\d+\.\d{9}): ", report[report.index(f"last {n} events"):], re.M)
        check_eq(len(rows), n, "events printed")
        times = [float(t) for _, t in rows]
        check(times == sorted(times), "times do not ascend")
        counts = [sum(int(cpu) == i for cpu, _ in rows) for i in range(smp)]
        check(max(counts) == 100, f"events by CPU {counts}: expected 100 of one at least, and of none more")


@test("an NMI from QMP enters the debugger each time; inside the debugger it has no effect",
      arch=("x86_64", "QEMU's virt has no NMI"))
def qmp_nmi():
    for smp in cpus():
        path = scratch_file(".qmp")
        with guest("--qmp", str(path), "--mask", "SCHED", *INSTRUCTIONS, smp=smp) as c:
            qmp = Qmp(path)
            shell(c, f"load switch -n 100000000 -j {smp} &")
            for n in range(5):
                qmp.command("inject-nmi")
                c.expect(r"\nNMI on cpu 0, at ")
                c.expect(DB)
                for _ in range(3):
                    check_match("not readable", db(c, "x 0"), "a fault in an NMI")  # its IRET lets NMIs in
                    qmp.command("inject-nmi")
                check_match(r"^#0 |^---", db(c, "bt"), "bt")
                go_on = f"continue\r\x15sleep 0.1; echo alive{n}"  # after a pause, since a sooner NMI would be taken for an older one
                c.sendline(go_on)
                while c.expect([f"\nalive{n}", DB]) == 1:
                    c.sendline(go_on)  # one of the three may have waited until now, and have read what was typed ahead
            c.sendline("poweroff 6")
            check_eq(ended(c), 6, "exit status")


@test("QEMU's virt has no NMI, as the documents say", arch=("aarch64", "x86_64's machines have one"))
def no_nmi():
    path = scratch_file(".qmp")
    with guest("--qmp", str(path), smp=1):
        qmp = Qmp(path)
        try:
            qmp.command("inject-nmi")
        except Failed as e:
            check_match("not currently supported", str(e), "QEMU's answer")
        else:
            check(False, "virt has an NMI now: say so in README.md and in qemu/boot --help")


if __name__ == "__main__":
    main()
