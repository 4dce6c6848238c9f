"""console.py - the guest's console as a terminal, at the prompt of the shell or the debugger; and gdb."""
import contextlib
import re
import subprocess

import pexpect

from harness import ARCH, BOOT, BUILD, DEADLINE_S, ROOT, Deadline, ktr_stats

LOOK_S = 5  # how often to look whether a deadline has passed
PROMPT = "kestrel# "
# A prompt at the start of a line, at the end of the output so far; text may contain the same words. Output arrives in
# pieces: a pattern that may continue needs what follows it, too.
DB = r"(?<![^\r\n])db> $"
MORE = r"(?<![^\r\n])--More--$"
# show ktr/v: sequence number, thread, CPU, time, file and line, text.
DB_EVENT = re.compile(r"^(\d+) \((\d+):cpu(\d+)\) (\d+)\.(\d{9}) (\S+)\.(\d+): (.*)$", re.M)
BREAK = "\x01b"  # QEMU's keys for sending a BREAK


class Patient(pexpect.spawn):
    """A terminal whose timeouts are deadlines of qemu/deadline.py: a guest that the host lets wait is not late."""

    def expect_list(self, pattern_list, timeout=-1, searchwindowsize=-1, async_=False, **kw):
        return self.wait_for(super().expect_list, pattern_list, timeout, searchwindowsize)

    def expect_exact(self, pattern_list, timeout=-1, searchwindowsize=-1, async_=False, **kw):
        return self.wait_for(super().expect_exact, pattern_list, timeout, searchwindowsize)

    def wait_for(self, expect, patterns, timeout, window):
        seconds = self.timeout if timeout == -1 else timeout
        if seconds is None or seconds <= LOOK_S:
            return expect(patterns, seconds, window)
        deadline = Deadline(seconds)
        while True:
            try:
                found = expect(patterns, min(LOOK_S, max(deadline.left_s, 0)), window)
            except pexpect.TIMEOUT:
                if deadline.tick() <= 0:
                    raise
            else:
                if self.match is not pexpect.TIMEOUT or deadline.tick() <= 0:
                    return found


def close(c):
    """Ends a program in a terminal. pexpect gives it a tenth of a second to die of SIGKILL, which a loaded host may not have."""
    with contextlib.suppress(pexpect.ExceptionPexpect):
        c.close(force=True)
    c.wait()


@contextlib.contextmanager
def guest(*options, smp=4, deadline=("--timeout", str(4 * DEADLINE_S))):
    """Boots a guest and waits for the shell's prompt."""
    c = Patient(str(BOOT), ["--arch", ARCH, "--firmware", "none", "--smp", str(smp), *deadline, *options],
                      encoding="utf-8", codec_errors="replace", timeout=DEADLINE_S)
    c.str_last_chars = 0  # on failure, show all output since the last match
    c.delaybeforesend = None  # pexpect's delay of 50 ms is not needed here
    try:
        prompt(c)
        yield c
    finally:
        close(c)


def prompt(c, text=PROMPT):
    """Waits for the shell's next prompt. After a \\r the shell only draws a long line again, prompt included."""
    c.expect(rf"(?<!\r){re.escape(text)}")


def shell(c, line):
    """What a command prints, with the echo of the command."""
    c.sendline(line)
    prompt(c)
    return c.before


def db(c, line):
    """What a debugger command prints, all pages of it."""
    c.sendline(line)
    out = ""
    while True:
        found = c.expect([DB, MORE])
        out += c.before
        if found == 0:
            return out.replace("\r", "")
        c.send(" ")


def db_events(c):
    """{(cpu, seq): (tid, ns, file, line, text)} of all events that the debugger shows."""
    return {(int(cpu), int(seq)): (int(tid), int(s) * 10**9 + int(ns), file, int(line), text.strip())
            for seq, tid, cpu, s, ns, file, line, text in DB_EVENT.findall(db(c, "show ktr/va"))}


def wait_for_flush(c, events=1):
    """Waits until the flush thread has written so many events to the line. It works in its own time."""
    shell(c, f"until test $(sysctl -n debug.ktr.alq_cnt) -ge {events}; do :; done")


def recorded(c):
    """How many events CPU 0 has recorded, as the debugger says."""
    return ktr_stats(db(c, "sysctl debug.ktr.stats"))[0]["recorded"]


def ended(c):
    c.expect(pexpect.EOF)
    c.close()
    return c.exitstatus


def gdb(*commands, kernel=BUILD / "kestrel", socket=None):
    """What gdb prints, connected to a machine or alone."""
    command = ["gdb-multiarch", "-nx", "-q", "-batch", "-ex", "set pagination off", "-ex", f"set remotetimeout {DEADLINE_S}", "-x",
               ROOT / "qemu" / "gdb" / "kestrel.py"]
    for word in ([f"target remote {socket}"] if socket else []) + list(commands):
        command += ["-ex", word]
    return subprocess.run([*command, kernel], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=DEADLINE_S).stdout


def stopped_by_request(c):
    c.sendline("sysctl debug.kdb.enter=1")
    c.expect(r"debug\.kdb\.enter on cpu \d")
    c.expect(DB)
