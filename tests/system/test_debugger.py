#!/usr/bin/python3
"""The kernel debugger and what panics leave behind, over the guest's console."""
import contextlib
import re

import pexpect

from harness import ARCH, BOOT, boot, check, check_eq, check_match, ktrdump, main, scratch_file, test

PROMPT = "kestrel# "
DB = r"db> $"
BREAK = "\x01b"  # QEMU's terminal: send a break


@contextlib.contextmanager
def guest(*options, smp=4, deadline=("--timeout", "150")):
    """A guest with its console as a terminal, at the shell's prompt."""
    c = pexpect.spawn(str(BOOT), ["--arch", ARCH, "--firmware", "none", "--smp", str(smp), *deadline, *options],
                      encoding="utf-8", codec_errors="replace", timeout=60)
    try:
        c.expect_exact(PROMPT)
        yield c
    finally:
        c.close(force=True)


def shell(c, line):
    c.sendline(line)
    c.expect_exact(PROMPT)
    return c.before


def db(c, line):
    """What a debugger command prints, all pages of it."""
    c.sendline(line)
    out = ""
    while True:
        found = c.expect([DB, "--More--"])
        out += c.before
        if found == 0:
            return out.replace("\r", "")
        c.send(" ")


def ended(c):
    c.expect(pexpect.EOF)
    c.close()
    return c.exitstatus


@test("sysctl debug.kdb.enter stops the machine and continue goes on")
def enter_continue():
    with guest("--mask", "SCHED,PROC") as c:
        c.sendline("sysctl debug.kdb.enter=1")
        c.expect(r"debug\.kdb\.enter on cpu \d")
        c.expect(DB)
        out = db(c, "bt")
        for name in ("kdb_request", "sys_sysctl", "entry_syscall"):
            check_match(rf"^#\d+ +0x[0-9a-f]{{16}} {name}\+0x[0-9a-f]+ \(.*\.[ch]:\d+\)$", out, "bt")
        out = db(c, "show pcpu")
        check_eq(len(re.findall(r"^cpu \d.*(?:stopped|in the debugger)$", out, re.M)), 4, "CPUs that stand")
        out = db(c, "ps")
        check_match(r"^ +1 .* init$", out, "ps")
        check_match(r"^ *\d+ .*ktrflush .*\[ktrflush\]$", out, "ps")
        check_match(r"switch_out", db(c, "bt 1"), "bt of a thread that sleeps")
        c.sendline("continue")
        c.expect_exact(PROMPT)
        c.sendline("poweroff 9")
        check_eq(ended(c), 9, "exit status")


@test("show ktr prints the newest event first, in FreeBSD's form")
def show_ktr():
    with guest("--mask", "SCHED,PROC") as c:
        c.sendline("sysctl debug.kdb.enter=1")
        c.expect(DB)
        out = db(c, "show ktr/a")
        rows = re.findall(r"^(\d+) \((\d+):cpu(\d+)\): \S", out, re.M)
        check(len(rows) > 20, f"{len(rows)} events, expected more than 20:\n{out[-800:]}")
        check_match(r"^--- End of trace buffer ---$", out, "show ktr/a")
        times = [float(t) for t in re.findall(r"^\d+ \(\d+:cpu\d+\) (\d+\.\d{9}): ", db(c, "show ktr/Va"), re.M)]
        check(len(times) > 20 and times == sorted(times, reverse=True), f"times do not descend: {times[:20]}")
        out = db(c, "show ktr/v -c 0 -n 3")
        check_eq(len(re.findall(r"^\d+ \(\d+:cpu0\) \d+\.\d{9} kernel/\S+\.c\.\d+: ", out, re.M)), 3,
                 "events of show ktr/v -c 0 -n 3")
        out = db(c, "show ktr stats")
        for line in re.findall(r"^ +\d+ .*$", out, re.M):
            cpu, recorded, delivered, resident, overwritten, torn, _ = map(int, line.split())
            check_eq(recorded, delivered + resident + overwritten + torn, f"accounting of cpu {cpu}")
        c.sendline("show ktr")
        c.expect_exact("--More--")
        c.send("q")
        c.expect(DB)
        c.sendline("poweroff")
        check_eq(ended(c), 0, "exit status")


@test("wrong commands and addresses get an error line and the prompt again")
def wrong():
    cases = (("bogus", "no such command"), ("x", r"expected x"), ("x 0x10", "not readable"),
             ("x/q 0", "format"), ("x 0xffff900000000000 4", "not readable"), ("print zork", "no symbol"),
             ("print 1+", "expected a number"), ("bt 99999", "no thread"), ("bt cpu 63", "no cpu"),
             ("show", "show what"), ("show pcpu 64", "expected a cpu"), ("show ktr/z", "modifier"),
             ("show ktr -n", "expected a number"), ("show ktr -c 63", "no cpu"), ("poweroff x", "expected 0 to 127"),
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


@test("a sysctl set in the debugger is in force when the machine goes on")
def deferred():
    with guest(smp=2) as c:
        c.send(BREAK)
        c.expect(DB)
        check_match("when the machine goes on", db(c, "sysctl debug.ktr.mask=INIT,PROC"), "sysctl")
        c.sendline("continue")
        c.expect("\n")
        for _ in range(20):
            c.sendline("sysctl debug.ktr.mask")
            if c.expect([r"debug\.ktr\.mask: PROC,INIT", r"debug\.ktr\.mask: NONE"]) == 0:
                break
        else:
            check(False, "debug.ktr.mask is still NONE after 20 looks")
        c.expect_exact(PROMPT)
        c.sendline("poweroff")
        check_eq(ended(c), 0, "exit status")


@test("serial breaks stop four busy CPUs again and again")
def breaks():
    with guest("--mask", "SCHED") as c:
        shell(c, "load switch -n 1000000 -j 4 &")
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
            c.expect_exact(PROMPT)
        c.send(BREAK)
        c.expect(DB)
        c.sendline("poweroff 6")
        check_eq(ended(c), 6, "exit status")


@test("a panic asks the operator, shows itself in the ring, and ends the stream")
def panic_interactive():
    trace = scratch_file(".ktr")
    with guest("--mask", "PROC", "--trace", str(trace), smp=2) as c:
        c.sendline("sysctl debug.kdb.panic=1")
        c.expect("panic: asked for by debug.kdb.panic")
        c.expect(DB)
        check_match("no way on after a panic", db(c, "continue"), "continue")
        check_match("panic: asked for", db(c, "show ktr/a -n 50"), "show ktr")
        c.sendline("poweroff")
        check_eq(ended(c), 101, "exit status")
    status, out, err = ktrdump("-i", trace)
    check_eq(status, 0, f"ktrdump's exit status ({err.strip()})")
    check_match("panic: asked for by debug.kdb.panic", out, "the trace")


@test("a panic without an operator reports, ends the stream and exits with 101")
def panic_batch():
    r = boot("load fork -n 3\nsysctl debug.kdb.panic=1\n", smp=4, mask="PROC,SCHED", trace=True).expect(101)
    check_match(r"^panic: asked for by debug\.kdb\.panic$", r.out, "console")
    check_match(r"^#\d+ +0x[0-9a-f]+ sys_sysctl\+", r.out, "backtrace")
    check_match(r"^last 32 events:$", r.out, "events")
    check(any(e["text"].startswith("panic: asked for") for e in r.events), "no panic event in the trace")
    check_eq(sum(e["text"].startswith("fork: ") for e in r.events) >= 3, True, "forks in the trace")


@test("db> reboot starts the machine anew")
def reboot():
    with guest(smp=2, deadline=()) as c:  # with a deadline, qemu/boot takes a reset for the end
        c.send(BREAK)
        c.expect(DB)
        c.sendline("reboot")
        c.expect_exact("Kestrel, ")
        c.expect_exact(PROMPT)
        c.sendline("poweroff 4")
        check_eq(ended(c), 4, "exit status")


if __name__ == "__main__":
    main()
