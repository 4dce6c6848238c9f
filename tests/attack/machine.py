"""machine.py - the guest under attack, and what must hold after each round."""
import pathlib
import re
import time

import pexpect
import tracecheck as tc
from console import Patient
from harness import BOOT, HAS_A_LIMIT, KTRDUMP, ROOT, Failed, check, check_eq, check_match, dynamic_program, ktr_stats  # noqa: F401

PROMPT = "kestrel# "
ANSWER_S = 300  # on a busy machine, removing 84,000 nested directories takes half a minute
USER = 1000
# What rounds may leave once the cache of stacks is full: page tables of the kernel, and heap pages that are used in
# part. A leak grows from round to round.
PAGES_KEPT = 200


class Machine:
    """A guest with its console as a terminal."""

    def __init__(self, arch, tmp, cpus):
        self.arch, self.trace = arch, pathlib.Path(tmp) / "attack.ktr"
        self.log = open(ROOT / "build" / arch / "attack.console", "w", encoding="utf-8")
        words = ["--arch", arch, "--firmware", "none", "--smp", str(cpus), "--mem", "192M", "--trace", str(self.trace),
                 "--file", f"/bin/user_test={ROOT}/build/{arch}/user_test", *dynamic_program("/bin/dynamic", "/bin/linker", arch)]
        self.console = Patient(str(BOOT), words, encoding="utf-8", codec_errors="replace", timeout=ANSWER_S,
                               logfile=self.log)
        self.console.delaybeforesend = None
        self.rounds, self.most = 0, 0
        self.expect(PROMPT)
        self.shell("sysctl debug.ktr.mask=PROC,SYSC,SIG > /dev/null")
        self.shell("find /sys > /dev/null")  # names of tracefs are made when somebody looks for them, and stay

    def expect(self, *texts):
        """The console's output up to one of the texts. A panic, the end of the machine and a timeout are failures."""
        found = self.console.expect_exact(["panic:", pexpect.EOF, pexpect.TIMEOUT, *texts])
        if found == 0:
            self.console.expect_exact(["db> ", pexpect.EOF, pexpect.TIMEOUT])
        if found < 3:
            what = ("a panic", "the end of the machine", f"nothing for {ANSWER_S} s")[found]
            raise Failed(f"waiting for {' or '.join(texts)}: {what}; the console's end:\n{str(self.console.before)[-4000:]}")
        return self.console.before.replace("\r", "")

    def shell(self, line):
        """What a command prints. The end is marked by a word, since earlier input may contain a prompt."""
        self.rounds += 1
        self.console.sendline(f"{line}; echo end-$(({self.rounds} + 1000000))")
        out = self.expect(f"end-{self.rounds + 1000000}")
        self.expect(PROMPT)
        return out

    def number(self, name):
        return int(check_match(r"^(\d+)$", self.shell(f"sysctl -n {name}"), name).group(1))

    def hog(self, what):
        """The user takes all of one resource; root's programs must still run. A program of root's that needs memory when
        none is left has the user's largest process killed: where the hog takes pages, that may be the hog itself."""
        self.console.sendline(f"su {USER} user_test do hog {what} &")
        self.expect(f"full: {what}", *(["Killed"] if what not in HAS_A_LIMIT else []))
        self.shell("load fork -n 2")

    def lost(self):
        """How many pages were free at some time, and are not now."""
        free = self.number("vm.pages.free")
        self.most = max(self.most, free)
        return self.most - free

    def held(self):
        """The rows of kern.uidinfo, if the user holds anything, or root more than 4 processes or 15 open files."""
        rows = self.shell("sysctl -n kern.uidinfo")
        root = check_match(r"^0 (\d+) (\d+) ", rows, "kern.uidinfo").groups()
        return rows if re.search(rf"^{USER} ", rows, re.M) or int(root[0]) > 4 or int(root[1]) > 15 else ""

    def clean(self):
        """Ends the user's processes and what user 0's random calls have left: processes, and files in any folder."""
        self.shell(f"user_test do slay {USER}; user_test do slay 0; wait; user_test do leave; rm -rf /tmp/* /[abd] /dev/[abd]")

    def check(self, what):
        """Root's shell answers, its programs run, all resources are back, and the log's accounts are exact."""
        self.clean()
        check_match(r"^load mix: .* ok,", self.shell("load mix -n 1 -j 4"), f"{what}: load mix")
        held, deadline = self.held(), time.monotonic() + ANSWER_S
        while held and time.monotonic() < deadline:  # a process that was killed ends after a while, and init waits for it then
            held = self.held()
        check(not held, f"{what}: still held:\n{held}")
        tc.accounting_holds(ktr_stats(self.shell("sysctl debug.ktr.stats")))
        # A kernel thread frees the stacks of dead threads after a while.
        lost, deadline = self.lost(), time.monotonic() + ANSWER_S
        while lost >= PAGES_KEPT and time.monotonic() < deadline:
            lost = self.lost()
        check(lost < PAGES_KEPT, f"{what}: {lost} pages are not back")

    def finish(self):
        """Powers the machine off. Its stream must be whole."""
        self.shell("sysctl debug.ktr.mask=NONE > /dev/null")
        self.console.sendline("poweroff 7")
        self.console.expect(pexpect.EOF)
        self.console.close()
        check_eq(self.console.exitstatus, 7, "exit status")

    def close(self):
        self.console.close(force=True)
        self.log.close()
