#!/usr/bin/python3
"""test_terminal.py - busybox's shell with its jobs, vi and less at the console: after each key they show what they show
in a terminal of the host."""
import contextlib

from console import Patient, close, guest, prompt
from harness import DEADLINE_S, Failed, cpus, host_busybox, main, portable_test, scratch_file, test
from screen import Side, type_alike

ROWS, COLUMNS = 24, 80
# busybox takes the ESC of an escape sequence for the key Escape if the next byte comes more than 50 ms later. Where time passes
# by instructions, and by the host's clock while all CPUs wait, the host cannot come between them: QEMU gets them together.
TOGETHER = ("--icount", "--", "-icount", "shift=0,sleep=on")
ENV = {"TERM": "vt100", "PATH": "/bin", "HOME": "/", "PS1": "$ "}
ENTER, ESCAPE, UP, DOWN, RIGHT, PAGE_DOWN = "\r", "\x1b", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[6~"
GO = "sh -c 'echo go; exec sleep 1000'"  # is in the foreground when it says go
IS_STOPPED = "until grep -q ^State:.T /proc/$!/status; do :; done"


@contextlib.contextmanager
def both(smp, *options):
    """The guest's shell and the host's, with an empty screen."""
    folder = scratch_file("")
    folder.mkdir()
    host = Patient(str(host_busybox()), ["sh"], cwd=folder, env=ENV, encoding="utf-8", timeout=DEADLINE_S, dimensions=(ROWS, COLUMNS))
    host.delaybeforesend = None
    try:
        with guest(*options, smp=smp) as c:
            words = " ".join(f"{name}='{value}'" for name, value in ENV.items())
            c.sendline(f"mkdir /tmp/here; cd /tmp/here; exec env -i {words} /bin/busybox sh")
            c.expect_exact("\r\n$ ")
            sides = [Side(child, ROWS, COLUMNS) for child in (c, host)]
            alike(sides, [("clear" + ENTER, r"\A\$\n<0,2>$")])
            yield sides
    finally:
        close(host)


def alike(sides, steps):
    """Types the keys of each step, and waits for its pattern: (keys, pattern), and the rows of the screen if not 24."""
    for number, (keys, pattern, *rows) in enumerate(steps):
        for side in sides:
            side.screen.resize(*rows or [ROWS])
        shown = type_alike(sides, keys, pattern, DEADLINE_S)
        if shown is not None:
            raise Failed(f"step {number}, {keys!r}: expected /{pattern}/ and the same; the guest shows\n{shown[0]}\nthe host\n{shown[1]}")


JOBS = [
    (GO + ENTER, r"^go$"),
    ("\x1a", r"\[1\]\+  Stopped +sh -c.*\n\$$"),
    ("jobs; bg; jobs" + ENTER, r"^\[1\]\+  Running +sh -c.*\n\$$"),
    ("kill %1; wait %1; s=$?; clear; echo $s" + ENTER, r"\A143\n.*Terminated +sh -c.*\n\$$"),
    ("clear" + ENTER, r"\A\$\n<0,2>$"),
    ("sh -c 'echo go; exec cat'" + ENTER, r"^go$"),
    ("one" + ENTER, r"^one\none$"),
    ("\x1a", r"Stopped +sh -c.*\n\$$"),
    ("fg" + ENTER, r"^sh -c.*$"),
    ("two" + ENTER, r"^two\ntwo$"),
    ("\x03", r"^two\n\^?C?\n?\$$"),
    ("echo $?" + ENTER, r"^130\n\$$"),
    ("cat & " + IS_STOPPED + ENTER, r"Stopped \(tty input\) +cat\n\$$"),
    ("fg" + ENTER, r"^\$ fg\ncat$"),
    ("three" + ENTER, r"^three\nthree$"),
    ("\x04", r"^three\n\$$"),
    ("clear; stty tostop; (echo late) & " + IS_STOPPED + ENTER, r"Stopped \(tty output\) +\(echo late\)\n\$$"),
    ("fg" + ENTER, r"^late\n\$$"),
    ("stty -tostop; (echo free) & wait" + ENTER, r"^free\n(.*Done.*\n)?\$$"),
    ("sleep 0.1 & wait $!; echo waited $?" + ENTER, r"^waited 0\n(.*Done.*\n)?\$$"),
    ("clear; sh" + ENTER, r"built-in commands\.\n\n\$$"),
    ("kill -STOP $$" + ENTER, r"Stopped.* sh\n\$$"),
    ("jobs; fg" + ENTER, r"^sh\n\$"),
    (GO + ENTER, r"^go$"),
    ("\x1a", r"Stopped +sh -c.*\n\$$"),
    ("exit" + ENTER, r"^You have stopped jobs.\n\$$"),
    ("exit" + ENTER, r"^\$ exit\n\$$"),
    ("jobs; echo outer" + ENTER, r"^outer\n\$$"),
    ("cut off\x03echo line" + ENTER, r"^line\n\$$"),
    ("clear; sh -c 'echo go; exec sleep 1000' | cat" + ENTER, r"\Ago\n<"),
    ("\x1a", r"Stopped +sh -c.*\n\$$"),
    ("kill -9 %1; until jobs >j; ! grep -q Stopped j; do :; done; clear; echo ended" + ENTER, r"\Aended\n\$$"),
    ("clear; sh -c 'trap \"echo changed\" WINCH; stty rows 30 cols 70; stty size; stty rows 30 cols 70; stty rows 24 cols 80'" + ENTER,
     r"^changed\n30 70\nchanged\n\$$"),
]

EDIT = [
    ("seq 100 >f; clear; echo before" + ENTER, r"\Abefore\n\$$"),
    ("vi f" + ENTER, r"^- f 1/100 1%$"),
    ("/37" + ENTER, r"^- f 37/100 37%$"),
    ("dd", r"^Delete 1 lines"),
    (DOWN + DOWN + RIGHT, r"^- f \[Modified\] 39/99 39%$"),
    ("ihere ", r"^4here 0$"),  # UP goes to the column that was shown last
    (UP, r"^I f \[Modified\] 38/99 38%$"),
    ("and there", r"and there"),
    (ESCAPE, r"^- f \[Modified\] 38/99 38%$"),
    ("yyP", r"^Put 1 lines"),
    ("u", r"^Undo \[\d\]"),
    (":%s/9/nine/g" + ENTER, r"^(nine){2}$|^nine8$"),
    ("Gothe last line" + ESCAPE, r"^- f \[Modified\] 100/100 100%$"),
    ("1G", r"^- f \[Modified\] 1/100 1%$"),
    (PAGE_DOWN, r"^- f \[Modified\] \d\d/100 \d\d%$"),
    (":w" + ENTER, r"^'f' 100L, \d+C\n"),
    (":!stty rows 30" + ENTER + ENTER, r"^- f 23/100 23%\n<", 30),
    (DOWN, r"^- f 24/100 24%\n<", 30),
    (":q" + ENTER, r"\Abefore\n\$ vi f\n\$$"),
    ("md5sum f; wc f; stty rows 24" + ENTER, r"^ +100 .*f\n\$$"),
    ("vi f" + ENTER, r"^- f 1/100 1%$"),
    ("x:q" + ENTER, r"No write since last change"),
    (":q!" + ENTER, r"\Abefore\n(.*\n)+\$$"),
    ("md5sum f" + ENTER, r"f\n\$$"),
]

PAGE = [
    ("seq 500 >f; clear" + ENTER, r"\A\$\n<0,2>$"),
    ("less -M f" + ENTER, r"f lines 1-23/500"),
    (" ", r"lines 24-46/500"),
    (UP, r"lines 23-45/500"),
    ("/", r"^/\n<"),  # less reads the rest in another mode of the terminal
    ("321" + ENTER, r"^321$"),
    ("G", r"lines \d+-500/500"),
    ("g", r"lines 1-23/500"),
    ("q", r"^\$$"),
    ("clear; seq 3 | less -E" + ENTER, r"^3$"),
]


@test("jobs: ^Z, bg, fg, kill, ^C, readers and writers of the background, nested shells and changes of size do what they do on the host")
def jobs():
    for smp in cpus():
        with both(smp) as sides:
            alike(sides, JOBS)


@portable_test("vi edits, searches, takes arrow keys, saves and gives up, shows another size, and leaves the screen as it was")
def edit():
    for smp in cpus():
        with both(smp, *TOGETHER) as sides:
            alike(sides, EDIT)


@portable_test("less pages, searches and goes back; top lists processes, then threads, and ends")
def page():
    for smp in cpus():
        with both(smp, *TOGETHER) as sides:
            alike(sides, PAGE)
            c = sides[0].child
            c.sendline("clear; top -d 600")
            c.expect(r"PID +PPID USER +STAT +VSZ %VSZ %CPU COMMAND\S*\r+\n(.*\n)* .* init\r")
            c.send("H")
            c.expect(r"PID +PPID USER +STAT +VSZ %VSZ %CPU COMMAND\S*\r+\n")
            c.send("q")
            prompt(c, "$ ")


if __name__ == "__main__":
    main()
