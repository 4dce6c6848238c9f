"""machine.py - the guest under attack, and what must hold after each round."""
import pathlib
import re

import pexpect
import tracecheck as tc
from console import Patient, close
from harness import BOOT, FIRMWARE, HAS_A_LIMIT, KTRDUMP, ROOT, Deadline, Failed, check, check_eq, check_match, dynamic_program, ktr_stats  # noqa: F401

PROMPT = "kestrel# "
ANSWER_S = 300  # on a busy machine, removing 84,000 nested directories takes half a minute
USER = 1000
# What rounds may leave once the cache of stacks is full: page tables of the kernel, and heap pages that are used in
# part. A leak grows from round to round.
PAGES_KEPT = 200
STEP = 20  # pages; who has them is kept from round to round
# What is set in tracefs, but for numbers.
SET = ("cd /sys/kernel/tracing; (ls instances; for i in set_* stack_trace_filter [dksu]*_events current_tracer $(find events -name trigger -o -name filter); do "
       "grep -v '^#' $i /dev/null; done) | grep -v ':none$\\|:no pid$\\|:nop$'; cd /")


def changes(before, now):
    return ", ".join(f"{name} {now[name] - n:+d} kB" for name, n in before.items() if now[name] != n)


class Machine:
    """A guest with its console as a terminal."""

    def __init__(self, arch, tmp, rng):
        self.arch, self.trace, self.qmp = arch, pathlib.Path(tmp) / "attack.ktr", pathlib.Path(tmp) / "qmp"
        cpus, firmware = rng.choice((1, 2, 4, 8)), rng.choice(FIRMWARE)
        print(f"# {cpus} CPUs, started by the firmware {firmware}", flush=True)
        self.log = open(ROOT / "build" / arch / "attack.console", "w", encoding="utf-8")
        words = ["--arch", arch, "--firmware", firmware, "--smp", str(cpus), "--mem", "192M",
                 "--trace", str(self.trace), "--qmp", str(self.qmp),
                 "--file", f"/bin/user_test={ROOT}/build/{arch}/user_test", *dynamic_program("/bin/dynamic", "/bin/linker", arch)]
        self.console = Patient(str(BOOT), words, encoding="utf-8", codec_errors="replace", timeout=ANSWER_S,
                               logfile=self.log)
        self.console.delaybeforesend = None
        self.rounds, self.most, self.now, self.last, self.steps = 0, {}, {}, {}, []
        self.expect(PROMPT)
        by = "by GRUB" if firmware != "none" else "by PVH" if arch == "x86_64" else "by device tree"
        check_match(by, self.shell("dmesg | head -n 1"), "the loader")
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

    def hog(self, what):
        """The user takes all of one resource; root's programs must still run. A program of root's that needs memory when
        none is left has the user's largest process killed: where the hog takes pages, that may be the hog itself."""
        self.console.sendline(f"su {USER} user_test do hog {what} &")
        self.expect(f"full: {what}", *(["Killed"] if what not in HAS_A_LIMIT else []))
        self.shell("load fork -n 2")

    def account(self):
        """Who has how many kilobytes of memory."""
        out = self.shell("cat /proc/meminfo; sysctl vm.heap.used")
        rows = {name: int(n) for name, n in re.findall(r"^(\w+): +(\d+) kB$", out, re.M)}
        rows["the heap's objects"] = int(check_match(r"^vm.heap.used: (\d+)$", out, "vm.heap.used").group(1)) // 1024
        return rows

    def lost(self):
        """How many pages were free at some time, and are not now."""
        self.now = self.account()
        if not self.most or self.now["MemFree"] > self.most["MemFree"]:
            self.most = self.now
        return (self.most["MemFree"] - self.now["MemFree"]) // 4

    def is_set_back(self):
        """Nothing is set in tracefs."""
        found = self.shell(f"echo set-$((1 + 1)); {SET}").split("set-2\n", 1)[1]
        check(not found.strip(), f"still set in tracefs:\n{found}")

    def step(self, what):
        """Remembers who has the pages that a round has left, if they are many."""
        before, self.last = self.last or self.now, self.now
        if before["MemFree"] - self.now["MemFree"] >= 4 * STEP:
            self.steps.append(f"{what} left: {changes(before, self.now)}")

    def held(self):
        """The rows of kern.uidinfo, if the user holds anything, or root more than 4 processes or 15 open files."""
        rows = self.shell("sysctl -n kern.uidinfo")
        root = check_match(r"^0 (\d+) (\d+) ", rows, "kern.uidinfo").groups()
        return rows if re.search(rf"^{USER} ", rows, re.M) or int(root[0]) > 4 or int(root[1]) > 15 else ""

    def clean(self):
        """Ends the user's processes and what random calls have left: processes of user 0, System V IPC, and files in any folder."""
        self.shell(f"user_test do slay {USER}; user_test do slay 0; wait; user_test do leave; user_test do ipcrm; rm -rf /tmp/* /[abd] /dev/[abd]")

    def check(self, what):
        """Root's shell answers, its programs run, all resources are back, and the log's accounts are exact."""
        self.clean()
        check_match(r"^load mix: .* ok,", self.shell("load mix -n 1 -j 4"), f"{what}: load mix")
        held, deadline = self.held(), Deadline(ANSWER_S)
        while held and deadline.tick() > 0:  # a process that was killed ends after a while, and init waits for it then
            held = self.held()
        check(not held, f"{what}: still held:\n{held}")
        tc.accounting_holds(ktr_stats(self.shell("sysctl debug.ktr.stats")))
        # A kernel thread frees the stacks of dead threads after a while.
        lost, deadline = self.lost(), Deadline(ANSWER_S)
        while lost >= PAGES_KEPT and deadline.tick() > 0:
            lost = self.lost()
        self.step(what)
        if lost >= PAGES_KEPT:
            steps = "".join(f"{step}\n" for step in self.steps)
            raise Failed(f"{what}: {lost} pages are not back: {changes(self.most, self.now)}\n{steps}{self.shell(f'{SET}; ps; find /tmp')}")

    def finish(self):
        """Powers the machine off. Its stream must be whole."""
        self.shell("sysctl debug.ktr.mask=NONE > /dev/null")
        self.console.sendline("poweroff 7")
        self.console.expect(pexpect.EOF)
        self.console.close()
        check_eq(self.console.exitstatus, 7, "exit status")

    def close(self):
        close(self.console)
        self.log.close()
