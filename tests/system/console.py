"""console.py - a guest's console as a terminal: the shell's prompt, and the debugger's."""
import contextlib

import pexpect

from harness import ARCH, BOOT

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


def stopped_by_request(c):
    c.sendline("sysctl debug.kdb.enter=1")
    c.expect(r"debug\.kdb\.enter on cpu \d")
    c.expect(DB)
