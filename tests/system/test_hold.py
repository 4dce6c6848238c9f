#!/usr/bin/python3
"""test_hold.py - the machine holds against its own users: what one of them does ends with that user."""
import re
import time

from console import PROMPT, guest, shell
from harness import BUILD, boot, check, check_eq, check_match, main, test

DEEDS = ("--file", f"/bin/user_test={BUILD}/user_test")


def alive(c):
    """Root's shell answers."""
    c.sendline("echo alive $((6 * 7))")
    c.expect(r"[\r\n]alive 42\r")
    c.expect_exact(PROMPT)


@test("a program that makes the console non-blocking neither ends the shell nor keeps it from reading")
def nonblock():
    with guest(*DEEDS, smp=1) as c:
        for _ in range(3):
            shell(c, "su 1000 user_test do nonblock")
            alive(c)
        c.sendline("sh")
        c.expect_exact(PROMPT)
        shell(c, "su 1000 user_test do nonblock")
        alive(c)
        c.sendline("exit 3")
        c.expect_exact(PROMPT)
        check("init:" not in c.before, f"init spoke:\n{c.before}")


@test("a shell that dies at once is started again with growing pauses, though its status is 0")
def shell_dies():
    with guest(smp=1) as c:
        c.sendline("rm /bin/sh; cp /bin/true /bin/sh; exit")
        start = time.monotonic()
        for _ in range(6):
            c.expect_exact("init: the shell ended with status 0; starting it again")
        seconds = time.monotonic() - start
        # After the first four short lives 100, 200, 400 and 800 ms; the first shell may have lived long. A guest's time is
        # never ahead of the host's.
        check(seconds > 1.4, f"six shells within {seconds:.2f} s, expected pauses")
        check("panic" not in c.before, c.before)


@test("in the background user 1000 neither takes the console nor changes it nor reads what root types")
def steal():
    with guest(*DEEDS, smp=1) as c:
        c.sendline("su 1000 user_test do steal &")
        c.expect_exact("steal: foreground -1 settings -1 read -5")  # EPERM, EPERM, EIO
        alive(c)
        shell(c, "su 1000 user_test do read &")
        c.sendline("while ! ps | grep 'stop.*user_test' > /dev/null; do :; done; echo it stopped")
        c.expect_exact("\r\nit stopped")
        alive(c)


@test("the foreground reads: root's programs, and another user's shell with its programs")
def foreground():
    with guest(*DEEDS, smp=1) as c:
        for _ in range(2):
            c.sendline("user_test do read")
            c.sendline("typed")
            c.expect_exact("read: typed")
            c.expect(r"kestrel[#$] ")
            c.sendline("su 1000")
            c.expect_exact("kestrel$ ")
        c.sendline("exit")
        c.expect_exact("kestrel$ ")
        c.sendline("exit")
        c.expect_exact(PROMPT)
        alive(c)


@test("a process joins no group of another user")
def join():
    with guest(*DEEDS, smp=1) as c:
        out = shell(c, "ps | grep ' sh$'")
        pgid = check_match(r"^\s*(\d+)\s", out.replace(PROMPT, ""), "the shell's process id").group(1)
        check_match(r"^join: -1\r*$", shell(c, f"su 1000 user_test do join {pgid}"), "joining root's shell")


MODES = {"console": "crw-------", "ktr": "cr--------", "null": "crw-rw-rw-", "ttyS1": "c-w-------", "zero": "crw-rw-rw-"}


@test("each device has the mode and owner that it should")
def devices():
    out = boot("ls -l /dev\n").expect().out
    found = {m[3]: (m[1], m[2]) for m in re.finditer(r"^(c[rwx-]{9}) +(?:\d+ +)?(\d+) .* (\S+)$", out, re.M)}
    check_eq(found, {name: (mode, "0") for name, mode in MODES.items()}, "modes and owners of /dev")


if __name__ == "__main__":
    main()
