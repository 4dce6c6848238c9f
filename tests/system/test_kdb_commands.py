#!/usr/bin/python3
"""test_kdb_commands.py - the commands of db>, one by one. None of them may change a ring, or leave the prompt
without a way back."""
import random
import re

from console import DB, MORE, db, ended, guest, prompt, shell, stopped_by_request
from harness import boot, check, check_eq, check_match, cpus, ktrdump, main, portable_test, scratch_file, test, times, wait_for

EVENT = re.compile(r"^(\d+) \((\d+):cpu(\d+)\)(?: ([+-]?\d+\.\d{9}))?(?: (\S+\.\d+))?(?: \[mark\])?: (.*)$", re.M)


def stopped(c, *lines):
    """Enters the debugger by a command, and turns the pager off."""
    stopped_by_request(c)
    db(c, "lines 0")
    return [db(c, line) for line in lines]


def leave(c, status=0):
    c.sendline(f"poweroff {status}")
    check_eq(ended(c), status, "exit status")


@portable_test("help lists and explains every command; lines sets the pager, and 0 turns it off")
def help_and_pager():
    with guest(smp=1) as c:
        shell(c, "stty rows 12 cols 40")
        stopped_by_request(c)
        c.sendline("help")
        c.expect(MORE)
        # The echo of the command, then the terminal's lines: a line of the text is cut into those of 40 columns.
        shown = c.before.replace("\r", "").split("\n", 1)[1].rstrip("\n").split("\n")
        check_eq(sum(max(1, -(-len(line) // 40)) for line in shown), 11, "lines of the terminal before --More--")
        check(len(shown) < 11, f"no line is longer than the terminal:\n{shown}")
        c.send("q")
        c.expect(DB)
        check_match(r"^12\r?$", db(c, "lines"), "the terminal's lines")
        c.sendline("continue")
        prompt(c)
        shell(c, "stty rows 24 cols 80")
        stopped_by_request(c)
        db(c, "lines 5")
        c.sendline("help")
        c.expect(MORE)
        check_eq(c.before.count("\n"), 5, "lines before --More--, the command's own among them")
        c.send("\r")
        c.expect(MORE)
        for key, lines in ((" ", 4), ("f", 4), ("d", 2), ("e", 1), ("j", 1), ("\r", 1)):
            c.send(key)
            c.expect(MORE)
            check_eq(c.before.count("\n"), lines, f"lines after {key!r}")
        c.send("z")
        c.expect_exact("--More-- space: a page, d: half of it, return: a line, q: the end")
        c.send(" ")
        c.expect(MORE)
        for key in ("\x03", "q", "Q", "x", "X"):
            c.send(key)
            c.expect(DB)
            c.sendline("help")
            c.expect(MORE)
        c.send("q")
        c.expect(DB)
        db(c, "lines 0")
        out = db(c, "help")
        names = re.findall(r"^(\w+)", out, re.M)[1:]
        for name in ("break", "bt", "call", "capture", "continue", "delete", "help", "ktr", "lines", "mark", "next", "poweroff",
                     "print", "ps", "reboot", "search", "show", "step", "sysctl", "until", "watch", "write", "x"):
            check(name in names, f"help does not list {name}:\n{out}")
            check_match(rf"^{name}", db(c, f"help {name}"), f"help {name}")
        check_match("no such command", db(c, "help zork"), "help zork")
        check_match("expected 3 to 1000", db(c, "lines 1"), "lines 1")
        leave(c)


@portable_test("the text of an event keeps to its line, at db> and with debug.ktr.verbose, whatever name a program has given")
def kept_to_lines():
    with guest(smp=1) as c:
        out = shell(c, r"""sysctl -q debug.ktr.mask=VFS debug.ktr.verbose=1; touch "$(printf '/tmp/x\n#0 fake\033[2J')" """)
        shell(c, "sysctl -q debug.ktr.verbose=0")
        for text in (out, *stopped(c, "search /fake/")):
            check("x?#0 fake?[2J" in text and "\x1b[2J" not in text and "\n#0 fake" not in text, repr(text))
        leave(c)


@portable_test("sysctl lists the names below a prefix, with or without its dot, as in the shell")
def prefixes():
    def lines(out):
        return [re.sub(r"\(.*\d+ lines\)", "(lines)", line) for line in out.replace("\r", "").splitlines()[1:]]

    with guest(smp=2) as c:
        typed = {"\n".join(lines(shell(c, name))) for name in ("sysctl debug.ktr", "sysctl debug.ktr.")}
        check_eq(len(typed), 1, f"lists by prefixes with and without a dot: {typed}")
        listed = lines(shell(c, "sysctl debug.ktr"))
        check(len(listed) > 15, f"{listed}")
        check_match(r"^debug\.ktr\.mask: NONE$", "\n".join(listed), "the mask")
        for out in stopped(c, "sysctl debug.ktr", "sysctl debug.ktr."):
            check_eq(lines(out), listed, "the debugger's list")
        check_match(r'no variable "debug.kt"', db(c, "sysctl debug.kt"), "a name that ends in the middle of a word")
        check_match(r"^debug\.ktr\.stats:\ncpu recorded", db(c, "sysctl debug.ktr.stats"), "a value of several lines")
        db(c, "lines 0")
        leave(c)


@portable_test("a flush that the debugger switches off is ended by its own thread, when the machine runs again")
def flush_off():
    with guest("--set", "debug.ktr.alq_file=/tmp/t", "--set", "debug.ktr.alq_enable=1", "--mask", "SYSC", smp=2) as c:
        shell(c, "load syscall -n 300")
        stopped(c, "sysctl debug.ktr.alq_enable=0")
        c.sendline("continue")
        prompt(c)
        wait_for(lambda: re.search(r": 0\b", shell(c, "sysctl debug.ktr.alq_enable")), "the flush's end")
        shell(c, "sysctl debug.ktr.alq_enable=1 && sysctl debug.ktr.alq_enable=0")
        calls = int(re.search(r"^(\d+)\r*$", shell(c, "ktrdump -i /tmp/t | grep -c 'syscall getppid'"), re.M)[1])
        check(calls >= 300, f"{calls} calls in the file, expected 300 or more")


@portable_test("show ktr: filters by CPU, class, thread, text and time, counts, and relative times")
def filters():
    with guest("--mask", "SCHED,PROC,SYSC", smp=2) as c:
        shell(c, "load fork -n 20 -j 4")
        every, = (EVENT.findall(out) for out in stopped(c, "show ktr/a"))
        check(len(every) > 200, f"{len(every)} events, expected more than 200")

        def rows(line):
            out = db(c, line)
            check_match(r"^--- End of trace buffer ---$", out, line)
            return EVENT.findall(out)

        def shows(line, expected):
            found = rows(line)
            differ = next((p for p in zip(found, expected) if p[0] != p[1]), "the number")
            check(found == expected, f"{line}: found {len(found)}, expected {len(expected)}; what differs: {differ}")

        shows("show ktr -c 1", [e for e in every if e[2] == "1"])
        shows("show ktr /fork: parent/", [e for e in every if "fork: parent" in e[5]])
        shows("show ktr -m SYSC -n 30", [e for e in every if e[5].startswith(("syscall ", "sysret "))][:30])
        tid = next(e[1] for e in every if "fork: parent" in e[5])
        shows(f"show ktr -t {tid} -c 0 /sys*:/",
              [e for e in every if e[1] == tid and e[2] == "0" and re.search("sys.*:", e[5])])
        check(len(rows("show ktr -t idle*")) > 0, "no event of idle*")
        times = [float(e[3]) for e in rows("show ktr/r -n 50")]
        check(times[0] == 0 and times == sorted(times, reverse=True), f"relative times {times}")
        check(all(e[4].startswith(("kernel/", "ktr/")) for e in rows("show ktr/v -n 20")), "no file and line")
        ns = [round(-1e9 * t) for t in times]
        middle = ns[len(ns) // 2] // 1000  # microseconds before the newest event
        check_eq(len(rows(f"show ktr -u {middle}")), sum(t < 1000 * middle for t in ns), f"events of {middle} us")
        shows("show ktr -f", every[::-1])
        check_match("^no event is what was asked for$", db(c, "show ktr /no such text/"), "nothing to show")
        leave(c)


@portable_test("show ktr and a panic's report say that there are no events, and what the mask is")
def no_events():
    with guest(smp=2) as c:
        out, = stopped(c, "show ktr")
        check_match(r"^no events: debug\.ktr\.mask is NONE$", out, "show ktr")
        leave(c)
    r = boot("sysctl debug.kdb.panic=1\n").expect(101)
    check_match(r"^no events: debug\.ktr\.mask is NONE$", r.out, "the report")


@portable_test("search goes back and forth, mark stays, and times count from it")
def search():
    with guest("--mask", "PROC", smp=2) as c:
        shell(c, "load fork -n 20 -j 2")
        every, = (EVENT.findall(out) for out in stopped(c, "show ktr/a"))
        forks = [e for e in every if e[5].startswith("fork: parent")]

        def one(line):
            return EVENT.findall(db(c, line))[0]

        def same(found, expected, what):
            check_eq((found[0], found[2], found[5]), (expected[0], expected[2], expected[5]), what)

        # search begins at the newest event, where show ktr began.
        for n in range(5):
            same(one("search /fork: parent/" if n == 0 else "search"), forks[n], f"search {n}")
        same(one("search -f"), forks[3], "search -f")
        check_match(rf"^mark at {forks[3][2]}:{forks[3][0]}$", db(c, "mark"), "mark")
        out = db(c, "show ktr/r -p -n 3")
        check_match(r"^\d+ \(\d+:cpu\d\) \+0\.000000000 \[mark\]: fork: parent", out, "show ktr/r -p")
        at = every.index(forks[3])
        check_eq([e[5] for e in EVENT.findall(out)], [e[5] for e in every[at:at + 3]], "events from the mark on")
        later = float(one("show ktr/r -n 1")[3])
        check(later > 0, f"the newest event is {later} s from the mark")
        check_match("has no event", db(c, "mark 0:99999999"), "a mark that is none")
        check_match("expected CPU:SEQ", db(c, "mark x"), "a mark that is none")
        check_match("no older event", db(c, "search /no such text at all/"), "search")
        leave(c)


@test("a backtrace is right at every instruction of a function, its first and last too")
def every_instruction():
    with guest(smp=1) as c:
        stopped(c, "break sys_getcwd")
        c.sendline("continue")
        prompt(c)
        c.sendline("busybox pwd")
        c.expect("breakpoint 1 on cpu")
        c.expect(DB)
        callers, depths, places = None, set(), set()
        for n in range(150):
            out = db(c, "bt")
            frames = re.findall(r"^#\d+ +0x[0-9a-f]+ (\w+)\+", out, re.M)
            if "sys_getcwd" not in frames:
                break
            tail = frames[frames.index("sys_getcwd") + 1:]
            callers = callers or tail
            check_eq(tail, callers, f"callers of sys_getcwd after {n} steps, in\n{out}")
            check_match(r"^--- from user mode, pc 0x[0-9a-f]+ sp 0x[0-9a-f]+ ---$", out, "bt's end")
            depths.add(len(frames) - len(tail))
            places.add(frames[0])
            c.sendline("s")
            c.expect("single step on cpu")
            c.expect(DB)
        check_eq(callers[0], "entry_syscall", "the caller")
        check(n > 50 and len(depths) > 1 and len(places) > 1, f"{n} steps, depths {depths}, functions {places}")
        leave(c)


@test("next steps over calls, until leaves a function or reaches an address, in this thread only")
def next_until():
    for smp in cpus(of=(1, 2)):
        with guest(smp=smp) as c:
            shell(c, "load switch -n 100000000 -j 4 &")
            stopped(c, "break sys_getcwd")
            c.sendline("continue")
            c.sendline("busybox pwd")
            c.expect("breakpoint 1 on cpu")
            c.expect(DB)
            db(c, "delete all")
            over = 0
            for n in range(60):
                c.sendline("next")
                kind = c.expect([r"single step on cpu \d, at (\S+)\+", r"next on cpu \d, at (\S+)\+"])
                check_eq(c.match.group(1), "sys_getcwd", f"function after {n} nexts")
                c.expect(DB)
                over += kind
                if over == 2:
                    break
            check_eq(over, 2, "calls gone over")
            out = db(c, "bt")
            here = int(re.search(r"^#0 +(0x\w+)", out, re.M)[1], 16)
            c.sendline("until")
            c.expect(r"until on cpu \d, at entry_syscall\+")
            c.expect(DB)
            check(int(re.search(r"^#0 +(0x\w+)", db(c, "bt"), re.M)[1], 16) != here, "it is where it was")
            check_match("expected an address in the kernel's text", db(c, "until 0x10"), "until 0x10")
            c.sendline("until entry_user_return")
            c.expect(r"until on cpu \d, at entry_user_return\+0")
            c.expect(DB)
            check_match("about to leave", db(c, "next"), "next")
            c.sendline("continue")
            c.expect(r"\n/\r+\n")
            c.sendline("poweroff 0")
            check_eq(ended(c), 0, "exit status")


@test("print, write, x and call: values, memory, symbols for numbers, and comments")
def values():
    with guest(smp=1) as c:
        stopped(c)
        check_eq(db(c, "# a comment").splitlines()[1:], [], "what a comment prints")
        for line, answer in (("p (1+2)*4", r"^0xc 12 "), ("p 1+2  # more", r"^0x3 3 "), ("print kernel_main+4", r"kernel_main\+0x4 \(kernel/main\.c:\d+\)"),
                             ("write/w ktr_verbose 2", r"<ktr_verbose\+0>: 0 = 0x2$"), ("x/w ktr_verbose 1", "0x00000002"),
                             ("p ktr_verbose", r"^0x[0-9a-f]+ -\d+ ktr_verbose\+0 = 0x2 2$"), ("p ktr_verbose+1", r"ktr_verbose\+0x1$"),
                             ("p vfs_lock", r"vfs_lock\+0$"), ("p kernel_main", r"kernel/main\.c:\d+\)$"),
                             ("w/w ktr_verbose 0", "0x2 = 0"), ("write/b ktr_verbose 256", "expected a number of 1 bytes"),
                             ("write 0x10 1", "not writable"), ("write kernel_main 1", "not writable"),
                             ("write/q 0 0", "size"), ("write", "expected a number"), ("write ktr_verbose", "expected write"),
                             ("call clock_hz", r"^0x[0-9a-f]+ [1-9]\d+$"), ("call 0x1000", "expected a function"),
                             ("call clock_hz 1 2 3 4 5 6 7", "at most 6"), ("call strlen arch_name", "^0x[67] [67]$"),
                             ("call strlen 0x10", "page fault, .*in the debugger"),
                             ("call panic arch_name", "in the debugger"), ("call sched_yield", "nobody else runs"),
                             ("call kdb_request 0", "breakpoint, in the debugger"),
                             ("x/s arch_name", '"'), ("x/sx arch_name 1", r"arch_name\S*: +0x[0-9a-f]{16}\s"), ("p $zork", "no register"), ("p *0x10", "not readable"),
                             ("show thread init", "^thread 1 at "), ("bt init", "^#0 "), ("bt ktr", "no symbol|unknown|expected"),
                             ("help show ktr", r"\Ahelp show ktr\r?\nshow ktr\[(?:(?!show lock)[^$])*\Z"),
                             ("show thread 99999", "no thread"), ("show proc 2", "is a kernel thread"), ("show map 99999", "no thread"),
                             ("show page 0xffff900000000000", "not mapped"), ("show page kernel_main", "read-only, executable"),
                             ("show lock 0x10", "not readable"), ("show lock arch_name", "neither"),
                             ("show lock proc_lock", "spin lock proc .*free"), ("show lock sysctl_lock", "mutex sysctl .*held by sysctl"),
                             ("show lock vfs", r"\Ashow lock vfs\r?\nmutex vfs at 0x[0-9a-f]+ vfs_lock\+0: free, waiters 0\s*\Z"),
                             ("show lock sysctl", r"\A.*\r?\nmutex sysctl at \S+ sysctl_lock\+0: held by sysctl tid \d+, waiters 0\s*\Z"),
                             ("show lock nosuch", "no symbol \"nosuch\""), ("show lock", "expected an address"),
                             ("show thread", r"holds mutex sysctl"), ("show proc", "^process"), ("show map", "rw-"),
                             ("show map kernel", "r-x .*text"), ("show sleepq", "init tid 1"), ("show runq", "^cpu 0: runs sysctl"),
                             ("show callout", "^CPU"), ("show page", r"pages, \d+ free\s+\d+ other\s+[1-9]\d* slab\s[^$]*[1-9]\d* program\s"), ("show zork", "expected ktr")):
            check_match(answer, db(c, line), line)
        c.sendline("continue")
        prompt(c)
        check_match("load fork: n=50", shell(c, "load fork -n 50"), "the machine afterwards")
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


@portable_test("any random line gets an answer and the prompt, and changes no ring")
def nonsense():
    rng = random.Random(5)
    words = ["x", "x/s", "x/4gx", "print", "bt", "bt cpu", "show", "show ktr", "show ktr/vr", "show lock", "show page", "show map",
             "show thread", "search", "mark", "break", "delete", "watch", "write/b", "help", "sysctl", "ps", "lines",
             "0", "-1", "0xffff800000000000", "0xffffffffffffffff", "$sp", "$fp", "*$sp", "(((", "/", "//", "/a*/", "-c", "-n", "-t",
             "-m", "5", "kern.proc", "debug.", "zork", "\"", "\x7f", "\x10", "\x15", "=", "%s%n", "%", "~", "proc_lock", "kernel_main"]
    with guest("--mask", "SCHED,PROC", "--set", "debug.ktr.entries=128", smp=2) as c:
        shell(c, "load fork -n 20")
        before = stopped(c, "show ktr/va", "show ktr stats")
        for n in range(times(100, 300)):
            line = " ".join(rng.choice(words) for _ in range(rng.randint(1, 4)))
            if line.startswith("lines"):
                line = "lines 0"
            db(c, line)
            if re.match("break|watch", line):
                db(c, "delete all")
        check_eq(db(c, "show ktr stats"), before[1], "accounting after lines of nonsense")
        db(c, "mark off")
        check(db(c, "show ktr/va") == before[0], "the rings are not what they were")
        c.sendline("continue")
        prompt(c)
        check_match("load fork: n=50", shell(c, "load fork -n 50 -j 2"), "the machine afterwards")
        c.sendline("poweroff 0")
        check_eq(ended(c), 0, "exit status")


@portable_test("a breakpoint in the interrupt that has a setting made does not stop the machine for ever")
def breakpoint_in_the_way():
    with guest(smp=1) as c:
        stopped(c, "break kdb_settings_wake", "sysctl debug.panic.action=dump")
        for action in ("reboot", None):  # another setting is another interrupt
            c.sendline("continue")
            c.expect(DB)
            check_match("^#0 .* kdb_settings_wake", db(c, "bt"), "where it stops")
            if action:
                db(c, f"sysctl debug.panic.action={action}")
        c.sendline("continue")
        prompt(c)
        shell(c, "until sysctl debug.panic.action | grep reboot; do true; done")
        leave(c)


@portable_test("ktr on and ktr off take the names of probes, and take effect when the machine goes on")
def probes():
    with guest(smp=2) as c:
        out = stopped(c, "ktr on fbt:fs:ramfs_read: proc:::exit", "ktr off nothing_such", "ktr", "ktr on")
        check_match("debug.ktr.on: will be set when the machine goes on", out[0], "ktr on")
        for wrong in out[2:]:
            check_match(r"ktr: expected on SPEC\.\.\., or off \[SPEC\.\.\.\]", wrong, "ktr without what it needs")
        c.sendline("continue")
        prompt(c)
        shell(c, "until ktr probes fbt:fs:ramfs_read:entry | grep ' on ' >/dev/null; do true; done")
        check_match(r" on +command", shell(c, "ktr probes proc:::exit"), "the other probe")
        stopped(c, "ktr off")
        c.sendline("continue")
        prompt(c)
        shell(c, "while ktr probes -c | grep -v ' 0$' | grep '^[a-z]*  *[0-9]' >/dev/null; do true; done")


@portable_test("^C ends a long command, whether it prints or only searches")
def interrupt():
    with guest("--mask", "all", "--set", "debug.ktr.entries=65536", smp=2) as c:
        shell(c, "load fork -n 100 -j 2")
        shell(c, "sysctl debug.ktr.mask=0")
        stopped(c)
        for line in ("show ktr/v", "show ktr /no such text/", "x/60000bx $sp&~0xfff", "capture"):
            c.send(line + "\r\x03")  # sends ^C at once, before the listing can end
            c.expect_exact(line)
            c.expect_exact("^C")
            c.expect(DB)
            check_match(r"0x7 7", db(c, "print 7"), f"the prompt after {line}")
        leave(c)


@portable_test("capture prints the rings so that ktrdump finds them in the console's log, the same events as show ktr")
def capture():
    for smp in cpus(of=(1, 2)):
        log, trace = scratch_file(".log"), scratch_file(".ktr")
        with guest("--mask", "SCHED,PROC", smp=smp) as c:
            with open(log, "w", encoding="utf-8") as f:
                c.logfile_read = f
                shell(c, "load fork -n 5 -j 2")
                every, _ = stopped(c, "show ktr/Va", "capture")
                leave(c)
        events = EVENT.findall(every)
        status, out, err = ktrdump("--format", "jsonl", "-i", log)
        check_eq(status, 0, f"ktrdump's status ({err.strip()})")
        found = re.findall(r'"seq":(\d+),"cpu":(\d+),"ns":(\d+),"tid":(\d+),.*"text":"((?:[^"\\]|\\.)*)"', out)
        check_eq({(cpu, seq): tid for seq, cpu, _, tid, _ in found}, {(e[2], e[0]): e[1] for e in events},
                 "events in ktrdump's and show ktr's list")
        texts = {(cpu, seq): text.replace('\\"', '"') for seq, cpu, _, _, text in found}
        check_eq(texts, {(e[2], e[0]): e[5] for e in events}, "their texts")
        # A log without a capture, and one that is cut, are reported.
        trace.write_text("kestrel# echo\n" * 1000)
        status, out, err = ktrdump("-i", trace)
        check_eq(status, 1, "status of a log without a stream")
        check_match("no KTR stream", err, "message")
        text = log.read_text()
        trace.write_text(text[:text.index("-----END")][:-200])
        check_eq(ktrdump("-q", "-i", trace)[0], 1, "status of a stream that is cut")


@portable_test("a terminal that does not read for a while loses nothing of a listing")
def late_terminal():
    with guest("--mask", "SCHED,PROC,SYSC", smp=1) as c:
        shell(c, "load fork -n 20 -j 2")
        whole, = (EVENT.findall(out) for out in stopped(c, "show ktr/Va"))
        check(len(whole) > 300, f"{len(whole)} events, expected more than 300")
        c.sendline("show ktr/Va")
        for _ in range(50):
            ktrdump("--help")  # nobody reads meanwhile, and the buffers between the guest and this test are full
        c.expect(DB)
        check_eq(EVENT.findall(c.before.replace("\r", "")), whole, "events of a listing that is read late")
        leave(c)


if __name__ == "__main__":
    main()
