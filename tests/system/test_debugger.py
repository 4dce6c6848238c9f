#!/usr/bin/python3
"""test_debugger.py - the kernel debugger, and what panics leave, over the guest's console."""
import io
import re

from console import BREAK, DB, MORE, db, ended, guest, prompt, recorded, shell, stopped_by_request
from harness import ARCH, BUILD, boot, check, check_eq, check_match, cpus, ktr_stats, ktrdump, main, portable_test, scratch_file, test
CLAIM_HITS = 20
FIRST_BYTES = {"x86_64": 9, "aarch64": 4}  # size of the first instruction of a record


@test("sysctl debug.kdb.enter stops the machine and continue goes on")
def enter_continue():
    with guest("--mask", "SCHED,PROC", smp=2) as c:
        c.sendline("sysctl debug.kdb.enter=1")
        c.expect(r"debug\.kdb\.enter on cpu \d")
        c.expect(DB)
        out = db(c, "bt")
        for name in ("kdb_request", "sys_sysctl", "entry_syscall"):
            check_match(rf"^#\d+ +0x[0-9a-f]{{16}} {name}\+0x[0-9a-f]+ \(.*\.(?:c|h|def):\d+\)$", out, "bt")
        out = db(c, "show pcpu")
        check_eq(len(re.findall(r"^cpu \d.*(?:stopped|in the debugger)$", out, re.M)), 2, "CPUs that stand")
        out = db(c, "ps")
        check_match(r"^ +1 .* init$", out, "ps")
        check_match(r"^ *\d+ .*ktrflush .*\[ktrflush\]$", out, "ps")
        check_match(r"switch_out", db(c, "bt 1"), "bt of a thread that sleeps")
        c.sendline("continue")
        prompt(c)
        c.sendline("poweroff 9")
        check_eq(ended(c), 9, "exit status")


@portable_test("no hook of a probe runs inside the debugger, and all do when it goes on")
def no_hooks():
    with guest("--mask", "SCHED", smp=2) as c:
        shell(c, "cd /sys/kernel/tracing; echo kdb_printf:traceoff:2 >> set_ftrace_filter; echo sys_kill:traceoff >> set_ftrace_filter")
        c.sendline("sysctl debug.kdb.enter=1")
        c.expect(DB)
        db(c, "ps")
        c.sendline("continue")
        prompt(c)
        out = shell(c, "cat tracing_on set_ftrace_filter").replace("\r", "")
        check_match(r"^1\n", out, "tracing_on")
        check_match(r"^kdb_printf:traceoff:count=2$", out, "the trigger of a function of the debugger")
        check_match(r"^0$", shell(c, "kill -0 $$; cat tracing_on").replace("\r", ""), "after it")
        c.sendline("poweroff")
        check_eq(ended(c), 0, "exit status")


@portable_test("show ktr prints the newest event first, in FreeBSD's form")
def show_ktr():
    with guest("--mask", "SCHED,PROC", smp=2) as c:
        c.sendline("sysctl debug.kdb.enter=1")
        c.expect(DB)
        out = db(c, "show ktr/a")
        rows = re.findall(r"^(\d+) \((\d+):cpu(\d+)\): \S", out, re.M)
        check(len(rows) > 20, f"{len(rows)} events, expected more than 20:\n{out}")
        check_match(r"^--- End of trace buffer ---$", out, "show ktr/a")
        times = [float(t) for t in re.findall(r"^\d+ \(\d+:cpu\d+\) (\d+\.\d{9}): ", db(c, "show ktr/Va"), re.M)]
        check(len(times) > 20 and times == sorted(times, reverse=True), f"times do not descend: {times[:20]}")
        out = db(c, "show ktr/v -c 0 -n 3")
        check_eq(len(re.findall(r"^\d+ \(\d+:cpu0\) \d+\.\d{9} kernel/\S+\.c\.\d+: ", out, re.M)), 3,
                 "events of show ktr/v -c 0 -n 3")
        out = db(c, "show ktr stats")
        for cpu, n in ktr_stats(out).items():
            check_eq(n["recorded"], n["delivered"] + n["resident"] + n["overwritten"], f"accounting of cpu {cpu}")
        c.sendline("show ktr")
        c.expect(MORE)
        c.send("q")
        c.expect(DB)
        c.sendline("poweroff")
        check_eq(ended(c), 0, "exit status")


@portable_test("wrong commands and addresses get an error line and the prompt again")
def wrong():
    cases = (("bogus", "no such command"), ("x", r"expected x"), ("x 0x10", "not readable"),
             ("x/q 0", "format"), ("x 0xffff900000000000 4", "not readable"), ("print zork", "no symbol"),
             ("print 1+", "expected a number"), ("bt 99999", "no thread"), ("bt zork", "bt: expected a thread; ps lists"), ("bt cpu 63", "no cpu"),
             ("show", "show what"), ("show zork", 'show: no "zork"; expected ktr, '), ("show pcpu 64", "expected a cpu"), ("show ktr/z", "modifier"),
             ("show ktr -n", "expected a number"), ("show ktr -c 63", "no cpu"), ("poweroff x", "expected 0 to 63"), ("poweroff 64", "expected 0 to 63"),
             ("sysctl no.such", "no variable"), ("sysctl debug.ktr.version=1", "read-only"),
             ("sysctl kern.quiet=7", "expected 0 to 1"))
    with guest(smp=2) as c:
        c.send(BREAK)
        c.expect("serial break on cpu")
        c.expect(DB)
        for line, expected in cases:
            check_match(expected, db(c, line), line)
        check_match("kernel_main\\+0x4", db(c, "print kernel_main+4"), "print")
        check_match("0x[0-9a-f]{16} 0x[0-9a-f]{16}", db(c, "x/2xg $sp"), "x")
        c.sendline("poweroff 5")
        check_eq(ended(c), 5, "exit status")


@portable_test("a sysctl set in the debugger takes effect when the machine goes on")
def deferred():
    with guest(smp=2) as c:
        c.send(BREAK)
        c.expect(DB)
        check_match("when the machine goes on", db(c, "sysctl debug.ktr.mask=INIT,PROC"), "sysctl")
        c.sendline("continue")
        c.expect("\n")
        shell(c, "while test $(sysctl -n debug.ktr.mask) = NONE; do true; done")  # c's deadline ends this
        check_match(r"^debug\.ktr\.mask: PROC,INIT\r", shell(c, "sysctl debug.ktr.mask"), "the mask")
        # What the thread does that sets them is not recorded.
        c.send(BREAK)
        c.expect(DB)
        for setting in ("mask=SUBSYS", "alq_file=/tmp/t", "alq_enable=1", "alq_enable=0", "mask=NONE"):
            check_match("when the machine goes on", db(c, f"sysctl debug.ktr.{setting}"), "sysctl")
        c.sendline("continue")
        c.expect("\n")
        shell(c, "while test $(sysctl -n debug.ktr.mask) != NONE; do true; done")
        check_match(r"^0\r", shell(c, "ktrdump -qi /tmp/t > /dev/null; echo $?"), "ktrdump's status for the stream")
        check_match(r"^0\r", shell(c, "ktrdump -qi /dev/ktr | grep -c 'ktr flush'"), "events of switching the flush")
        shell(c, "sysctl debug.ktr.mask=SUBSYS; sysctl debug.ktr.alq_enable=1; sysctl debug.ktr.alq_enable=0")
        check_match(r"^2\r", shell(c, "ktrdump -qi /dev/ktr | grep -c 'ktr flush'"), "events, when a program does it")
        c.sendline("poweroff")
        check_eq(ended(c), 0, "exit status")


@test("settings made at any instruction of the thread that applies them are all applied, once and in order")
def deferred_anywhere():
    with guest(smp=1) as c:
        c.logfile_read = io.StringIO()
        stopped_by_request(c)
        check_match("^breakpoint 1", db(c, "break kdb_make_settings"), "break")
        kept, refused, n, here, passes = [], 0, 0, "", 0
        while passes < 6:
            # First there is always one more. Then the thread finds none now and then, and one comes before it sleeps,
            # each time an instruction later, but for the call.
            inside = inside + 1 if here == "kdb_settings_thread" else 0
            if n < 250 or inside == 1 + min(passes, 4):
                out = db(c, f"sysctl debug.panic.action=no{n}")
                if "when the machine goes on" in out:
                    kept.append(n)
                else:
                    check_match("8 settings are queued already; continue first", out, "one setting more")
                    refused += 1
                passes += n >= 250
            c.sendline("next" if n else "continue")
            c.expect(r"(single step|next|breakpoint 1) on cpu 0, at (\w+)\+")
            here, n = c.match[2], n + 1
            c.expect(DB)
        check(len(kept) > 10 and refused > 10, f"{len(kept)} settings kept, {refused} refused")
        db(c, "delete all")
        c.sendline("continue")
        c.expect(rf"debugger: debug\.panic\.action=no{kept[-1]}: .*\n")
        done = re.findall(r"debugger: debug\.panic\.action=no(\d+): .*expected debug, dump or reboot", c.logfile_read.getvalue(), re.M)
        check_eq([int(n) for n in done], kept, "settings that were tried")
        c.sendline("poweroff")
        check_eq(ended(c), 0, "exit status")


@test("serial breaks stop four busy CPUs again and again")
def breaks():
    with guest("--mask", "SCHED") as c:
        shell(c, "load switch -n 100000000 -j 4 &")
        for n in range(5):
            c.send(BREAK)
            c.expect("serial break on cpu")
            c.expect(DB)
            out = db(c, "show pcpu")
            check_eq(out.count("stopped"), 3, "CPUs stopped")
            for cpu in range(4):
                check_match(r"^(#0 |cpu \d runs user code)", db(c, f"bt cpu {cpu}"), f"bt cpu {cpu}")
            c.sendline("continue")
            c.sendline(f"echo alive{n}")
            c.expect(f"\nalive{n}")
            prompt(c)
        c.send(BREAK)
        c.expect(DB)
        c.sendline("poweroff 6")
        check_eq(ended(c), 6, "exit status")


@test("a panic enters the debugger, is in the ring, and ends the stream")
def panic_interactive():
    trace = scratch_file(".ktr")
    with guest("--mask", "PROC", "--trace", str(trace), smp=2) as c:
        c.sendline("sysctl debug.kdb.panic=1")
        c.expect("panic: requested by debug.kdb.panic")
        c.expect(DB)
        check_match("not possible after a panic", db(c, "continue"), "continue")
        check_match("panic: requested", db(c, "show ktr/a -n 50"), "show ktr")
        c.sendline("poweroff")
        check_eq(ended(c), 101, "exit status")
    status, out, err = ktrdump("-i", trace)
    check_eq(status, 0, f"ktrdump's exit status ({err.strip()})")
    check_match("panic: requested by debug.kdb.panic", out, "the trace")


@test("a panic without an operator reports, ends the stream and exits with 101")
def panic_batch():
    r = boot("load fork -n 3\nsysctl debug.kdb.panic=1\n", smp=4, mask="PROC,SCHED", trace=True).expect(101)
    check_match(r"^panic: requested by debug\.kdb\.panic$", r.out, "console")
    check_match(r"^#\d+ +0x[0-9a-f]+ sys_sysctl\+", r.out, "backtrace")
    check_match(r"^last \d+ events:$", r.out, "events")
    check(any(e["text"].startswith("panic: requested") for e in r.events), "no panic event in the trace")
    check_eq(sum(e["text"].startswith("fork: ") for e in r.events) >= 3, True, "forks in the trace")


@test("db> reboot reboots the machine")
def reboot():
    with guest(smp=2, deadline=()) as c:  # with a deadline, qemu/boot would treat a reset as the end
        c.send(BREAK)
        c.expect(DB)
        c.sendline("reboot")
        c.expect_exact("Kestrel, ")
        prompt(c)
        c.sendline("poweroff 4")
        check_eq(ended(c), 4, "exit status")


@test("break stops at each call of a function, on any CPU, until delete")
def breakpoints():
    for smp in cpus(of=(1, 2)):
        with guest(smp=smp) as c:
            stopped_by_request(c)
            check_match(r"^breakpoint 1 at sys_getcwd\+0 \(", db(c, "break sys_getcwd"), "break")
            check_match(r"^breakpoint 2 at spin_unlock\+0 \(", db(c, "break spin_unlock"), "break")
            check_match(r"^1 +break +sys_getcwd.*\n2 +break +spin_unlock", db(c, "break"), "the list")
            c.sendline("continue")
            # A function that is called all the time with interrupts off and a lock held.
            for _ in range(20):
                c.expect(r"breakpoint 2 on cpu \d, at spin_unlock\+0")
                c.expect(DB)
                c.sendline("continue")
            c.expect(r"breakpoint 2 on cpu")
            c.expect(DB)
            db(c, "delete 2")
            c.sendline("continue")
            prompt(c)
            for _ in range(3):
                c.sendline("busybox pwd")
                c.expect(r"breakpoint 1 on cpu \d, at sys_getcwd\+0")
                c.expect(DB)
                check_match(r"^#0 .* sys_getcwd\+0 ", db(c, "bt"), "bt")
                c.sendline("continue")
                c.expect(r"\n/\r+\n")
                prompt(c)
            # The shell's own temporary breakpoint is at the same place as another one: others stop there.
            stopped_by_request(c)
            check_match(r"^breakpoint 3 at sys_chdir\+0 ", db(c, "break sys_chdir"), "break")
            c.sendline("continue")
            prompt(c)
            c.sendline("cd /")
            c.expect(r"breakpoint 3 on cpu \d, at sys_chdir\+0")
            c.expect(DB)
            c.sendline("until sys_chdir")
            prompt(c)
            c.sendline("sh -c 'cd /'")
            c.expect(r"breakpoint 3 on cpu \d, at sys_chdir\+0")
            c.expect(DB)
            c.sendline("continue")
            prompt(c)
            stopped_by_request(c)
            db(c, "delete all")
            check_match(r"^none$", db(c, "break"), "the list")
            c.sendline("continue")
            prompt(c)
            check_match(r"^/\r+$", shell(c, "busybox pwd"), "pwd with no breakpoint")
            c.sendline("poweroff 3")
            check_eq(ended(c), 3, "exit status")


@test("break inside a record, with every class on: the log goes on, and its accounts are exact")
def break_in_record():
    with guest(smp=2) as c:
        shell(c, "sysctl debug.ktr.mask=all")
        stopped_by_request(c)
        # The second is what a debug exception records itself.
        for n, record in enumerate(("ktr_record2", "ktr_record3"), 1):
            check_match(f"^breakpoint {n}", db(c, f"break {record}"), "break")
            c.sendline("continue")
            for _ in range(10):
                c.expect(rf"breakpoint {n} on cpu \d, at {record}\+0")
                c.expect(DB)
                c.sendline("continue")
            c.expect(f"breakpoint {n}")
            c.expect(DB)
            db(c, "delete all")
        c.sendline("continue")
        prompt(c)
        shell(c, "sysctl debug.ktr.mask=0")
        for cpu, n in ktr_stats(shell(c, "sysctl debug.ktr.stats").replace("\r", "")).items():
            check_eq(n["recorded"], n["delivered"] + n["resident"] + n["overwritten"], f"CPU {cpu}")
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


@test("break inside a record that interrupts restart: step and continue always complete it")
def break_in_restarted_record():
    with guest(smp=1) as c:
        shell(c, "load syscall -n 1000000000 > /dev/null &")
        shell(c, "sysctl debug.ktr.mask=SYSC,TRAP")
        stopped_by_request(c)
        last = db(c, "x/gx __stop_ktr_restart-24 3")
        inside = int(re.search(r": (0x\w+)", last)[1], 16) + FIRST_BYTES[ARCH]
        check_match("^breakpoint 1 at ktr_record6", db(c, f"break {inside:#x}"), "break")
        c.sendline("continue")
        before = None
        for hit in range(CLAIM_HITS):
            c.expect(r"breakpoint 1 on cpu 0, at ktr_record6\+0x")
            c.expect(DB)
            now = recorded(c)
            check(before is None or now > before, f"hit {hit}: {now} events recorded, {before} at the one before")
            before = now
            if hit % 2 == 1:
                c.sendline("step")
                c.expect(r"single step on cpu 0, at ktr_record6\+0x")
                c.expect(DB)
                # The debugger suppresses events, so the record went to the slow path, which continues with the machine.
                check_eq(recorded(c), before, "events recorded after the step")
            c.sendline("continue")
        c.expect(DB)
        db(c, "delete all")
        c.sendline("continue")
        shell(c, "sysctl debug.ktr.mask=0")
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


@test("watch: stops when a variable is written, with its old and new value")
def watchpoints():
    for smp in cpus(of=(1, 2)):
        with guest(smp=smp) as c:
            shell(c, "sysctl debug.ktr.verbose=0")
            stopped_by_request(c)
            check_match(r"^watchpoint 1 at ktr_verbose", db(c, "watch ktr_verbose 4"), "watch")
            c.sendline("continue")
            prompt(c)
            c.sendline("sysctl debug.ktr.verbose=1")
            c.expect(r"watchpoint 1: ktr_verbose.*: old 0 new 0x1 on cpu \d, at ")
            c.expect(DB)
            check_match("sys_sysctl", db(c, "bt"), "bt")
            db(c, "delete 1")
            c.sendline("continue")
            prompt(c)
            shell(c, "sysctl debug.ktr.verbose=0")
            c.sendline("poweroff 0")
            check_eq(ended(c), 0, "exit status")


@test("step: one instruction, or many, and the machine goes on afterwards")
def steps():
    for smp in cpus(of=(1, 2)):
        with guest(smp=smp) as c:
            stopped_by_request(c)
            places = [check_match(r"^, at (\S+) \(", c.before, "where it stands").group(1)]
            c.sendline("step")
            c.expect(r"single step on cpu \d, at (\S+) \(")
            check(c.match.group(1) != places[0], f"a step where it was entered on request, at {places[0]}, executes nothing")
            c.expect(DB)
            db(c, "break sys_getcwd")
            c.sendline("continue")
            prompt(c)
            c.sendline("busybox pwd")
            c.expect("breakpoint 1 on cpu")
            c.expect(DB)
            places = []
            for _ in range(5):
                c.sendline("step")
                c.expect(r"single step on cpu \d, at (\S+) \(")
                places.append(c.match.group(1))
                c.expect(DB)
            check_eq(len(set(places)), 5, f"places of five steps, {places}")
            check(all(p.startswith("sys_getcwd+0x") for p in places), f"places of five steps: {places}")
            # The steps go through calls, locks and interrupt masking, to each copy of user memory, and to where the kernel leaves the thread.
            for copies in range(20):
                c.sendline("step 10000")
                c.expect(r"single step on cpu \d, at (arch_copy_user\+0x|entry_user_return\+0|arch_context_switch\+0)")
                where = c.match.group(1)
                c.expect(DB)
                if not where.startswith("arch_copy_user"):
                    break
                for line in ("step", "step 2", "next"):
                    check_match("this instruction copies user memory", db(c, line), line)
                c.sendline("until")
                c.expect(r"until on cpu \d, at (?!arch_copy_user)\S+ ")
                c.expect(DB)
            check(0 < copies < 19, f"{copies} copies of user memory")
            check_match("about to leave this thread", db(c, "step"), "a step further")
            db(c, "delete all")
            c.sendline("continue")
            c.expect(r"\n/\r+\n")
            prompt(c)
            check_match("load fork: n=50", shell(c, "load fork -n 50 -j 4"), "the machine afterwards")
            c.sendline("poweroff 0")
            check_eq(ended(c), 0, "exit status")


@test("a fault in a single step is a panic with its own text")
def faulting_step():
    with guest(smp=2) as c:
        stopped_by_request(c)
        db(c, "break death_trap")
        c.sendline("continue")
        prompt(c)
        c.sendline("sysctl debug.kdb.trap=1")
        c.expect("breakpoint 1 on cpu")
        c.expect(DB)
        c.sendline("step 100")
        c.expect(r"panic: [\w ,()]*, address 0x10\r")
        c.expect(DB)
        check_match(r"death_trap\+", db(c, "bt"), "where")
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


@test("a program goes on step by step though the machine has stopped within a step, also after a breakpoint was deleted",
      arch=("aarch64", "the step is a flag of the thread on x86_64"))
def stop_in_a_step():
    program = ("fbt::vm_fault:entry /!found && curthread->stepped/ { found = 1; self->here = 1; breakpoint(); } "
               "fbt::entry_step:entry /self->here/ { printf(\"taken\\n\"); exit(0); } "
               "syscall:::entry /self->here/ { printf(\"lost\\n\"); exit(0); }")
    with guest("--file", f"/bin/linux_test={BUILD}/linux_test", smp=2) as c:
        stopped_by_request(c)
        db(c, "break sys_getcwd")
        db(c, "delete 1")
        c.sendline("continue")
        prompt(c)
        c.sendline(f"dtrace -wqn '{program}' -c 'busybox taskset 2 /bin/linux_test brief ptrace'")
        c.expect("dtrace: breakpoint action on cpu")
        c.expect(DB)
        c.sendline("continue")
        c.expect(r"\n(taken|lost)\r")
        check_eq(c.match.group(1), "taken", "the step")


@portable_test("break, watch, delete and step reject bad arguments with a reason")
def bad_points():
    with guest(smp=2) as c:
        stopped_by_request(c)
        for line, answer in (("break 0x10", "expected an address in the kernel's text"),
                             ("break ktr_verbose", "expected an address in the kernel's text"),
                             ("break nosuchname", "nosuchname"),
                             ("watch 0x10", "expected kernel memory"),
                             ("watch ktr_verbose+1 4", "expected a multiple of the size, 4"),
                             ("watch ktr_verbose 3", "expected a size of 1, 2, 4 or 8"),
                             ("delete", "expected a number that break lists"),
                             ("delete 77", "expected a number that break lists"),
                             ("step 0", "expected 1 to 10000 instructions"),
                             ("step x", "expected 1 to 10000 instructions")):
            check_match(re.escape(answer), db(c, line), line)
        out = "".join(db(c, f"break sys_getcwd+{4 * n}") for n in range(9))
        check_match("no free debug register: this machine has 4 for breakpoints", out, "too many")
        c.sendline("continue")
        prompt(c)
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


if __name__ == "__main__":
    main()
