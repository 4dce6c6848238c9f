#!/usr/bin/python3
"""test_shell.py - the shell and the tools: at a terminal, as a person uses them, and in scripts."""
import contextlib
import os
import re
import select

import pexpect

from console import Patient, close
from harness import ARCH, BOOT, BUILD, DEADLINE_S, FIRMWARE, ROOT, boot, check, check_eq, check_match, cpus, main, portable_test, test

PROMPT = "kestrel# "
CTRL_C, CTRL_D, CTRL_A, CTRL_K, CTRL_U = "\x03", "\x04", "\x01\x01", "\x0b", "\x15"  # ^A is QEMU's own key, so it is doubled
UP, LEFT, TAB = "\x1b[A", "\x1b[D", "\t"


ROWS, COLUMNS = 25, 90


@contextlib.contextmanager
def terminal(*options, smp=2):
    """A guest whose console is this test's terminal, at the first prompt."""
    c = Patient(str(BOOT), ["--arch", ARCH, "--smp", str(smp), "--timeout", "600", *options], encoding="utf-8",
                codec_errors="replace", timeout=60, dimensions=(ROWS, COLUMNS))
    c.str_last_chars = 0  # on failure, show all output since the last match
    try:
        c.expect_exact(PROMPT)
        yield c
    finally:
        close(c)


def ask(c, line, pattern):
    """Types a line, waits for the pattern and then for the prompt. Returns the match."""
    c.send(line + "\r")
    c.expect(r"\n")  # end of the echoed line
    c.expect(pattern)
    m = c.match
    c.expect_exact(PROMPT)
    return m


def leave(c, status):
    c.send(f"poweroff {status}\r")
    c.expect(pexpect.EOF)
    c.wait()
    check_eq(c.exitstatus, status, "exit status of qemu/boot")


@test("the tour: set a mask, run a workload, look at the events, power off")
def tour():
    with terminal("--firmware", FIRMWARE[0], smp=4) as c:
        ask(c, "sysctl debug.ktr.mask=SCHED,SYSC,PROC", r"debug\.ktr\.mask: NONE -> ")
        ask(c, "load fork -n 20", r"load fork: n=20 jobs=1 ok, \d+ ms")
        ask(c, "ktrdump -cs | head", r"index +cpu +timestamp +trace")
        leave(c, 0)


@portable_test("^C ends the program in the foreground, and the shell lives on")
def interrupt():
    with terminal("--firmware", "none") as c:
        # Output shows that the program is in the foreground already, so the ^C is not too early.
        c.send("sh -c 'echo started $((40 + 2)); exec sleep 1000'\r")
        c.expect_exact("started 42")
        c.send(CTRL_C)
        c.expect_exact(PROMPT)
        ask(c, "echo status $?", r"status 130\r")
        c.send("while true; do echo turn; done\r")
        c.expect(r"turn\r+\nturn\r+\n")
        c.send(CTRL_C)
        c.expect_exact(PROMPT)
        c.send("sh -c 'echo started $((40 + 2)) >&2; cat' | cat | wc\r")
        c.expect_exact("started 42")
        c.send(CTRL_C)
        c.expect_exact(PROMPT)
        c.send("echo thrown away" + CTRL_C)
        c.expect_exact(PROMPT)
        ask(c, "ps", r"init\r")
        leave(c, 5)


@portable_test("^C in ktr graph and ktr profile ends the program, and what was collected is printed")
def interrupt_session():
    with terminal("--firmware", "none") as c:
        for how, row in (("profile", r"\r\n  sys_write +[1-9]"), ("graph", r" sys_write\(\)? ?[{;]")):
            c.send(f"ktr {how} 'sys_*' -- sh -c 'echo started $((40 + 2)); sleep 1000'\r")
            c.expect_exact("started 42")
            c.send(CTRL_C)
            c.expect(row)
            c.expect_exact(PROMPT)
            ask(c, "echo status $?", r"status 130\r")
        leave(c, 5)


@portable_test("the guest's terminal has the size of the host's")
def size():
    with terminal("--firmware", "none") as c:
        c.send("stty size\r")
        c.expect_exact(f"{ROWS} {COLUMNS}\r")
        leave(c, 5)


@portable_test("resize asks the terminal for its size, and says so if that does not answer; a table that is too wide says how wide it is")
def resized():
    with terminal("--firmware", "none", smp=1) as c:
        c.setwinsize(30, 60)
        c.send("resize\r")
        c.expect_exact("\x1b[999;999H\x1b[6n")
        c.send("\x1b[30;60R")
        ask(c, "stty size", r"30 60\r")
        ask(c, "load syscall -n 1; ktr profile 'sys_*' true", r"ktr: lines of \d\d+ characters, terminal of 60: \| less -S does not wrap them\r")
        ask(c, "man nosuch; echo $?", r"man: nosuch: no such program; [^\r]*\r+\n1\r")
        ask(c, "ktr classes", r"ktr: lines of \d\d+ characters, terminal of 60: ")
        ask(c, "ktr on PROC; ktrdump report events", r"ktrdump: lines of \d\d+ characters, terminal of 60: ")
        ask(c, "ktrdump report events | tail -1; echo $((6 * 7))", r"(?<!less -S does not wrap them\r\n)42\r")
        c.send("resize\r")
        c.expect_exact("\x1b[6n")
        c.expect_exact("resize: the terminal does not say how large it is")
        c.expect_exact(PROMPT)
        ask(c, "stty size", r"30 60\r")
        leave(c, 5)


@portable_test("help names our programs, and says more of each, with its page; man, too; the examples work")
def helps():
    ours = sorted({p.name for folder in (BUILD / "root/bin", ROOT / "userland/root/bin") for p in folder.iterdir()} - {"init"})
    out = boot("help\necho ----\n" + "".join(f"help {name} > /tmp/out || echo failed\ngrep -c 'usage: {name}' /tmp/out\n" for name in ours) +
               "echo ----\nhelp sed | grep -c Usage\nhelp nosuch\nhelp s.d\nman ktr | head -1\necho ----\n"
               "sed -n 's/^\t//p' /etc/help > /tmp/examples\n"
               "while read -r line; do eval \"$line\" < /dev/null > /dev/null || echo \"failed: $line\"; echo tried; done < /tmp/examples\n").expect(0).out
    names, more, others, tried = out.split("----\n")
    check_eq(sorted(re.findall(r"^(\w+) +\S.*", names, re.M)[:len(ours)]), ours, "programs that help names")
    check_eq(more, "1\n" * len(ours), "usages")
    check_match(r"^1\nhelp: nosuch: no such program; .*\nhelp: s\.d: no such program; .*\nktr  +switches ", others, "help of others")
    for page in set(re.findall(r"doc/[\w.]+", (ROOT / "userland/root/etc/help").read_text())):
        check((ROOT / page).is_file(), f"{page}: named by help, and not there")
    check("failed" not in tried and tried.count("tried") > 15, tried)


@portable_test("ktr and sysctl say which command or name was meant, or what a command takes")
def meant():
    out = boot("ktr on lockstat\nktr on SCHED fbt::sys_read\nktr sites --help\nktr foo\nktr on\nktr probe zz\n"
               "sysctl debug.ktr.mas\nsysctl -d zzz.zzz\nsu 1000 sysctl debug.ktr.mas\n").out
    for pattern in (r'^ktr: nothing matches "lockstat"; did you mean lockstat:::\?\nktr: .*; did you mean fbt::sys_read:\?\n'
                    r'usage: ktr sites \[GLOB\] .*\n +function or format\nktr: foo:',
                    r"^ktr: foo: no such command; expected status, .*\nusage: ktr on SPEC\.\.\. .*\n"
                    r" +as for probes; if one is refused, none\nusage: ktr probe add ",
                    r"^sysctl: debug\.ktr\.mas: no such sysctl; did you mean debug\.ktr\.mask\?\n"
                    r"sysctl: zzz\.zzz: no such sysctl; sysctl -a lists all\nsysctl: debug\.ktr\.mas: no such sysctl; sysctl -a lists all$"):
        check_match(pattern, out, "messages")


@portable_test("ktr graph and ktr profile say so if no function was called; a wrong option or depth is refused before the command runs")
def nothing_called():
    out = boot("ktr graph ramfs_write true; echo $?\nktr profile ramfs_write true; echo $?\nktr graph ramfs_read nosuch; echo $?\n"
               "ktr graph -d x ramfs_read echo ran; echo $?\nktr graph -z ramfs_read echo ran 2>&1 | head -1\n").out
    check_match(r"ktrdump: /dev/ktr: no call of ramfs_write was recorded \(the trace is .*\)\n1\nktr: no function was called\n1\n"
                r"ktr: nosuch: No such file or directory\n(# .*\n)*ktrdump: /dev/ktr: no call of ramfs_read was recorded .*\n127\n"
                r'ktr: DEPTH: found "x", expected a number\n2\nktr graph: unrecognized option: z', out, "messages")
    check("ran\n" not in out, out)


@portable_test("^D ends a program's input at the terminal")
def end_of_file():
    with terminal("--firmware", "none") as c:
        # Output shows that the terminal is no longer the shell's, to which ^D is an ordinary character.
        c.send("sh -c 'echo started $((40 + 2)); exec wc -l'\r")
        c.expect_exact("started 42")
        c.send("one\rtwo\r" + CTRL_D)
        c.expect(r"\n2\r")
        c.expect_exact(PROMPT)
        leave(c, 0)


@portable_test("line editing: erase, arrows, start and end of the line, kill, history")
def editing():
    with terminal("--firmware", "none") as c:
        ask(c, "echo helxx\x7f\x7flo", r"hello\r")
        ask(c, "echo ac" + LEFT + "b", r"abc\r")
        ask(c, "cho front" + CTRL_A + "e", r"front\r")
        ask(c, "garbage" + CTRL_U + "echo clean", r"clean\r")
        ask(c, "echo kept and more" + LEFT * 9 + CTRL_K, r"kept\r")
        ask(c, "echo first", r"first\r")
        ask(c, "echo second", r"second\r")
        ask(c, UP + UP, r"first\r")
        leave(c, 0)


@portable_test("tab completes commands and files")
def completion():
    with terminal("--firmware", "none") as c:
        ask(c, "upti" + TAB, r"up \d+ min")
        ask(c, "ls /boot/load" + TAB, r"/boot/loader\.conf")
        leave(c, 0)


@portable_test("ls -l shows when a file was changed, by the machine's clock; a file that is written gets a new date")
def dates():
    """QEMU's clock, which counts instructions, is set to days in a leap year, before one, and after one."""
    for date in ("2024-02-29T12:34:00", "2023-12-31T10:11:00", "2080-03-01T00:00:00", "2037-08-09T23:05:00"):
        run = boot("echo x > /tmp/f\nls -l --full-time /tmp/f\n", options=["--icount", "--", "-rtc", f"base={date},clock=vm"]).expect()
        found = check_match(r"^-rw-r--r-- +1 root +root +2 (\S+ \S+):\d\d \S+ /tmp/f$", run.out, "ls -l").group(1)
        check_eq(found, date[:16].replace("T", " "), "the date of a file that was just written")
    boot("until ls -l --full-time /tmp/f | grep -q '2024-03-01 00:00'; do sleep 0.1; echo y > /tmp/f; done\n",
         options=["--icount", "--", "-rtc", "base=2024-02-29T23:59:57,clock=vm"]).expect()


@portable_test("a shell that dies is started again")
def crash():
    with terminal("--firmware", "none") as c:
        ask(c, "kill -SEGV $$ && echo no", r"the shell ended with status 139")
        ask(c, "echo again", r"again\r")
        leave(c, 3)


# Lines of a script, with what each prints; all run in one guest.
SCRIPT = r"""
a=5; echo $((a * 3 + 2)) ${a}x "$a b" '$a'              => 17 5x 5 b $a
echo one two three | wc -w                              => 3
echo hello > /tmp/f; cat < /tmp/f                       => hello
echo more >> /tmp/f; wc -l < /tmp/f                     => 2
false || echo or; true && echo and                      => or;and
if test -f /tmp/f; then echo yes; else echo no; fi      => yes
for i in 1 2 3; do echo -n $i; done; echo               => 123
i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done; echo $i => 3
(exit 7); echo $?                                       => 7
! false; echo $?                                        => 0
{ echo a; echo b; } | tail -n 1                         => b
sleep 0.1 & wait; echo waited                           => waited
echo $(echo sub $(echo sub))                            => sub sub
ls /boot/*.conf                                         => /boot/loader.conf
nosuchcommand 2> /tmp/e; echo $?                        => 127
cat /nosuch 2> /dev/null; echo $?                       => 1
mkdir -p /tmp/d/e; cp /tmp/f /tmp/d/e/g; ls /tmp/d/e    => g
mv /tmp/d/e/g /tmp/d/h; rm -r /tmp/d/e; ls /tmp/d       => h
rm -r /tmp/d; ls /tmp/d 2> /dev/null; echo $?           => 1
printf 2> /dev/null || echo abc | grep -c b             => 1
echo b a | grep -v a; echo $?                           => 1
head -n 1 /tmp/f; tail -n 1 /tmp/f                      => hello;more
echo -n AB | hexdump -C | head -n 1                     => 00000000  41 42                                             |AB|
sleep 100 & kill $!; wait $! 2> /dev/null; echo $?      => 143
su 7 cat /dev/ktr 2> /dev/null; echo $?                 => 1
x=$(seq 5 | wc -l); echo $((x))                         => 5
case abc in x*) echo x;; a*) echo a;; esac              => a
true; echo $?                                           => 0
echo x | cat | cat | cat | cat                          => x
"""


@portable_test("scripts: variables, arithmetic, pipes, redirections, loops, and every file tool")
def scripts():
    lines = [line.rpartition("=>") for line in SCRIPT.strip().splitlines()]
    script = "".join(f"echo '=== {n}'\n{command.strip()}\n" for n, (command, _, _) in enumerate(lines))
    for smp in cpus():
        out = boot(script, smp=smp).expect().out
        parts = out.split("=== ")[1:]
        check_eq(len(parts), len(lines), f"lines that ran (smp {smp})")
        for (command, _, expected), part in zip(lines, parts):
            found = ";".join(part.strip().splitlines()[1:])
            check_eq(found, expected.strip(), f"output of `{command.strip()}`")


@portable_test("a syntax error names file and line, what was found, and ends with status 2")
def syntax():
    run = boot("echo fine\nif true; then\necho x\ndone\n").expect(2)
    check_match(r"^/boot/script\.sh: line 4: syntax error: unexpected \"done\"", run.out, "the message")


@portable_test("every tool of Kestrel's own has --help, and refuses unknown options with status 2")
def usage():
    tools = "sysctl ktrdump ktr ktrace kdump dtrace load su poweroff".split()
    script = "".join(f"{t} --help > /tmp/out 2>&1; s=$?; echo {t} help $s $(grep -c . /tmp/out)\n"
                     f"{t} --nonsense > /tmp/out 2>&1; echo {t} bad $?\n" for t in tools)
    out = boot(script).expect().out
    for tool in tools:
        m = check_match(rf"^{tool} help 0 (\d+)$", out, f"{tool} --help")
        check(int(m.group(1)) > 0, f"{tool} --help printed nothing")
        check_match(rf"^{tool} bad 2$", out, f"{tool} --nonsense")


@test("programs that fault die by a signal; the kernel stays up")
def faults():
    run = boot("""
sh -c 'kill -SEGV $$'; echo segv $?
sh -c 'kill -TERM $$'; echo term $?
sh -c 'kill -KILL $$'; echo kill $?
cat /bin > /dev/null 2>&1; echo directory $?
load fork -n 3
""", smp=2).expect()
    for name, status in (("segv", 139), ("term", 143), ("kill", 137), ("directory", 1)):
        check_match(rf"^{name} {status}$", run.out, f"status after {name}")
    check_match(r"^load fork: n=3 jobs=1 ok", run.out, "load after it")


@portable_test("ps, dmesg, uptime, nproc and sysctl -a describe the running machine")
def status_tools():
    run = boot("ps\nuptime\nnproc\ndmesg\nsysctl -a\nsysctl -d debug.ktr.mask\nsysctl debug.ktr\n", smp=3).expect()
    check_match(r"^ +1 root +init /boot/script.sh$", run.out, "init in ps")
    check_match(r"^ \d\d:\d\d:\d\d up 0 min, .*load average:", run.out, "uptime")
    check_match(r"^3$", run.out, "nproc")
    check_match(r"^\[ *0\.\d+\] Kestrel, ", run.out, "dmesg")
    check_match(r"^hw\.ncpu: 3$", run.out, "sysctl -a")
    check_match(r"^debug\.ktr\.mask: .+ALL.+$", run.out, "sysctl -d")
    for name in ("version compile mask cpumask entries clear verbose alq_enable alq_file alq_depth alq_max alq_cnt "
                 "alq_failed stats").split():
        check_match(rf"^debug\.ktr\.{name}:", run.out, f"debug.ktr.{name}")


def pour(c, data):
    """Types data as fast as the terminal accepts it, and reads the output meanwhile."""
    os.set_blocking(c.child_fd, False)
    while data:
        readable, writable, _ = select.select([c.child_fd], [c.child_fd], [], DEADLINE_S)
        check(readable or writable, f"the console takes nothing more, {len(data)} characters before the end")
        if writable:
            data = data[os.write(c.child_fd, data[:512]):]
        if readable:
            c.read_nonblocking(65536)
    os.set_blocking(c.child_fd, True)


@portable_test("a procfs that comes and goes, or is refused, takes no memory for good")
def procfs_mounts():
    step = "for i in $(seq 100); do mount -t proc x /tmp/m; mount -t proc x /dev; umount /tmp/m; done 2> /dev/null; sysctl -n vm.heap.used\n"
    heap = [int(n) for n in re.findall(r"^(\d+)\r?$", boot("mkdir /tmp/m\n" + 2 * step).expect().out, re.M)]
    check(len(heap) == 2 and heap[1] - heap[0] < 100 * 32, f"bytes of the heap: {heap}")


@portable_test("a burst on the console longer than one interrupt can serve does not block it")
def burst():
    with terminal("--firmware", "none") as c:
        for n in range(2):
            pour(c, b"a" * 30000)
            for _ in range(100):  # the end of the burst may be dropped, and this line with it
                c.send(f"{CTRL_U}echo alive{n}\r")
                if c.expect([f"\nalive{n}", pexpect.TIMEOUT], timeout=3) == 0:
                    break
            else:
                check(False, f"no answer after burst {n}")
        leave(c, 5)


if __name__ == "__main__":
    main()
