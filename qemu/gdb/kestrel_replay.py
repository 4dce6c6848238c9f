"""kestrel_replay.py - gdb in a recorded run (qemu/boot --record): kestrel replay FOLDER, then kestrel at N,
next-event and previous-event, which go to where an event is recorded, forwards or backwards.

A replay can stop after any number of instructions. How many events there are then is in the head of CPU 0's ring. It
only grows, so the last instruction before event N is found by bisection. What is known of a run, in pairs of
instructions and events, stays in its folder, as do the machines that were saved on the way: from the nearest of these
QEMU goes on when it goes back.

QEMU's monitor moves the machine. Then gdb is not connected, since it would take a stop that it has not asked for as the
answer to its next question.
"""
import bisect
import fnmatch
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

import gdb

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "qemu"))
from record import path_value  # noqa: E402
STEP = 10_000_000  # instructions, until it is known where an event may be
STEPS = 16  # after so many, they are twice as long
NEAR = 1024  # instructions to a neighbour, at first
SAVE_NEAR = 1_000_000  # a machine is saved so near, before many steps back
IN_USER_MODE = 20_000  # instructions to try next, where the kernel's memory is not readable
WAYS = 16  # into so many parts the instructions are divided among which an event is
FASTER = 8
ENTRY_BYTES = 64  # of an event, by which a head grows
NEAR_MACHINES = 8


class Ended(gdb.GdbError):
    """The recorded run ends before that instruction."""

    def __init__(self):
        super().__init__("the recorded run ends before that instruction")


class Monitor:
    """QEMU's monitor on a socket. If a command is interrupted, or QEMU ends, the socket is closed: no later command would
    get its own answer."""

    PROMPT = b"(qemu) "

    def __init__(self, path, alive):
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            while self.socket.connect_ex(path) != 0:
                if not alive():
                    raise ConnectionError
                time.sleep(0.01)
            self.answer()
        except BaseException:
            self.close()
            raise

    def close(self):
        self.socket.close()
        self.socket = None

    def answer(self):
        data = b""
        while not data.endswith(self.PROMPT):
            part = self.socket.recv(65536)
            if not part:
                raise ConnectionError
            data += part
        return data[:-len(self.PROMPT)].decode(errors="replace").replace("\r", "")

    def command(self, line):
        """What it answers, without the line itself that it echoes."""
        try:
            self.socket.sendall(line.encode() + b"\n")
            return self.answer().partition("\n")[2].strip()
        except BaseException:
            self.close()
            raise


class Run:
    """A recorded run that gdb is in."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.sockets = tempfile.TemporaryDirectory(prefix="kestrel-replay-")
        self.gdb, self.starts = None, 0
        self.physical, self.child, self.monitor = {}, None, None
        self.known, self.saved, self.near, self.end = [(0, 0)], [0], [], None
        self.load()
        self.rows = self.trace()
        self.texts = {n: row["text"] for n, row in self.rows.items()}
        # Of the head of CPU 0's ring: pcpus[0]->md.ktr_ring->head.
        self.pcpu, self.ring, self.head = (int(gdb.parse_and_eval(what)) for what in (
            "(unsigned long)&pcpus[0]", "(unsigned long)&((struct pcpu *)0)->md.ktr_ring", "(unsigned long)&((struct ktr_ring *)0)->head"))
        self.start()

    # ---- the machine ----

    def start(self):
        self.stop()
        self.starts += 1  # the machine before may remove its sockets a moment later
        self.gdb, monitor = (f"{self.sockets.name}/{name}{self.starts}" for name in ("gdb", "monitor"))
        self.child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", ROOT / "qemu" / "boot", "--replay", self.folder, "--gdb", self.gdb, "--timeout", "1000000", "--", "-chardev",
             f"socket,id=monitor,path={path_value(monitor)},server=on,wait=off", "-mon", "chardev=monitor,mode=readline"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, text=True)
        try:
            self.monitor = Monitor(monitor, lambda: self.child.poll() is None)
        except ConnectionError:
            raise gdb.GdbError(self.wait()[1]) from None
        self.seek(1)  # QEMU 7.2 crashes if a machine that has not run yet becomes a saved one

    def stop(self):
        if self.child is not None:
            self.child.terminate()
            self.wait()

    def wait(self):
        """Waits until qemu/boot has ended: (its status, what it says)."""
        child, self.child = self.child, None
        said = child.communicate()[1].strip().removeprefix("boot: ")
        return child.returncode, said or f"qemu/boot has ended with status {child.returncode}"

    def command(self, line):
        """What the monitor answers. If the machine is gone: Ended, if the recorded run ended so, too."""
        try:
            return self.monitor.command(line)
        except ConnectionError:
            status, said = self.wait()
            if status == self.status:
                raise Ended from None
            raise gdb.GdbError(f"QEMU has failed: {said}") from None

    def ready(self):
        """Starts the machine again, if a command to it was interrupted or has ended it."""
        if self.child is None or self.monitor.socket is None:
            self.start()

    def seek(self, instruction):
        """Runs the machine to an instruction, from the nearest saved machine if that is before it."""
        if self.loads(instruction) is not None and self.asks_disk():
            self.start()  # in place of this machine QEMU 7.2 loads none: it waits for the disk, and the disk for this machine to go on
        said = self.command(f"replay_seek {instruction}")
        if said:
            raise gdb.GdbError(f"QEMU: {said}")
        while "running" in self.command("info status"):
            time.sleep(0.001)
        now = self.now()
        if now != instruction:
            raise gdb.GdbError(f"QEMU stands at instruction {now}, expected {instruction}")

    def loads(self, instruction):
        """The saved machine from which seek() starts. None: it starts from where this one stands."""
        saved = max(at for at in self.saved if at <= instruction)
        return None if saved <= self.now() <= instruction else saved

    def now(self):
        """The number of instructions that the machine has executed."""
        return int(re.search(r"instruction count = (\d+)", self.command("info replay"))[1])

    def asks_disk(self):
        """Has a disk a request of the machine that it has not done yet?"""
        disks = re.findall(r"^(\S+) +\[virtio-blk\]", self.command("info virtio"), re.M)
        return any(not re.search(r"inuse: +0$", self.command(f"info virtio-queue-status {disk} 0"), re.M) for disk in disks)

    def save(self, instruction):
        """Saves the machine that is at an instruction. Not one that asks a disk: QEMU 7.2 does not save requests of a recorded
        run, so the saved machine would wait for the answer for ever."""
        if instruction not in self.saved and not self.asks_disk() and not self.command(f"savevm i{instruction}"):
            bisect.insort(self.saved, instruction)

    def save_near(self, instruction):
        """The same, in place of the oldest of those that were saved so."""
        self.save(instruction)
        if instruction in self.saved and instruction not in self.near:
            self.near.append(instruction)
            if len(self.near) > NEAR_MACHINES and not self.command(f"delvm i{self.near[0]}"):
                self.saved.remove(self.near.pop(0))

    def word(self, address):
        """A word of the kernel's memory. None: it is not readable now."""
        said = re.search(r": 0x([0-9a-f]{16})", self.command(f"x /1gx {address:#x}"))
        if said:
            if address not in self.physical:
                at = re.search(r"gpa: (0x[0-9a-f]+|\d+)", self.command(f"gva2gpa {address:#x}"))
                self.physical[address] = int(at[1], 0) if at else None
        elif self.physical.get(address) is not None:  # an Arm CPU in user mode
            said = re.search(r": 0x([0-9a-f]{16})", self.command(f"xp /1gx {self.physical[address]:#x}"))
        return int(said[1], 16) if said else None

    def events(self):
        """The number of events that CPU 0 has recorded. None: it cannot be read in this user mode."""
        pcpu = self.word(self.pcpu)
        ring = self.word(pcpu + self.ring) if pcpu else pcpu
        head = self.word(ring + self.head) if ring else ring
        if head is None and " EL0" in self.command("info registers"):
            return None
        return (head or 0) // ENTRY_BYTES

    # ---- what is known of the run ----

    def load(self):
        """What is known, from the folder."""
        try:
            self.status = json.loads((self.folder / "run.json").read_text())["status"]
        except (OSError, ValueError, KeyError, TypeError):
            self.status = None  # qemu/boot says what is wrong
        try:
            said = json.loads((self.folder / "events.json").read_text())
            known, saved, near, end = sorted((int(i), int(n)) for i, n in said["known"]), sorted(map(int, said["saved"])), list(map(int, said["near"])), said["end"]
            if known[0] == (0, 0) and set(near) <= set(saved) and isinstance(end, (int, type(None))):
                self.known, self.saved, self.near, self.end = known, saved, near, end
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            pass  # nothing is known yet

    def keep(self):
        (self.folder / "events.json").write_text(json.dumps({"known": self.known, "saved": self.saved, "near": self.near, "end": self.end}))

    def trace(self):
        """{number: event} of the recorded events; {} without a trace."""
        if not (self.folder / "trace").exists():
            return {}
        ktrdump = ROOT / "build" / "host" / "ktrdump"
        if not ktrdump.exists():
            raise gdb.GdbError(f"{ktrdump}: not built; run make")
        out = subprocess.run([ktrdump, "--format", "jsonl", "-i", self.folder / "trace"], stdout=subprocess.PIPE, check=False).stdout
        return {row["seq"]: row for row in map(json.loads, out.splitlines()) if row.get("text") is not None and "seq" in row}

    def known_at(self, instruction):
        at = bisect.bisect_left(self.known, (instruction, 0))
        return self.known[at][1] if at < len(self.known) and self.known[at][0] == instruction else None

    def count(self, instruction):
        """The number of events at an instruction, where the machine is then."""
        self.seek(instruction)
        count, there = self.events(), instruction
        if count is None:  # the places of the kernel's words become known in the kernel; then they are read from here, too
            try:
                while self.events() is None:
                    there += IN_USER_MODE
                    self.seek(there)
            except Ended:
                self.start()
            self.seek(instruction)
            count = self.events()
        if count is None:
            raise gdb.GdbError(f"the kernel's memory cannot be read at instruction {instruction}")
        return count

    def probe(self, instruction):
        """The number of events at an instruction; what is known already needs no machine."""
        count = self.known_at(instruction)
        if count is None:
            count = self.count(instruction)
            bisect.insort(self.known, (instruction, count))
        return count

    def between(self, n):
        """The last known instruction before event n is recorded, and the first after it or None."""
        after = next((i for i, pair in enumerate(self.known) if pair[1] > n), len(self.known))
        return self.known[after - 1][0], self.known[after][0] if after < len(self.known) else None

    def forward(self, n):
        """Goes on until event n has been recorded."""
        while True:
            low, high = self.between(n)
            if high is not None:
                return
            there = low + (STEP << (low // (STEP * STEPS)).bit_length())
            if self.end is None or there < self.end:
                if self.reaches(there):
                    self.save(there)
            elif self.end - low > 1:
                # Each try after the end costs a start: so there are many before it.
                step = -(-(self.end - low) // WAYS)
                for there in range(low + step, self.end, step):
                    if not self.reaches(there) or self.probe(there) > n:
                        break
            else:
                self.at_end(n)

    def reaches(self, instruction):
        """Does the run get there?"""
        try:
            self.probe(instruction)
        except Ended:
            self.end = instruction
            self.start()
            return False
        return True

    def at_end(self, n):
        """All of the run is known, and it has no event n."""
        if self.texts and n <= max(self.texts):
            end, self.end = self.end, None
            raise gdb.GdbError(f"the replay has ended before instruction {end}, without event {n} of the trace: it is not the recorded run")
        raise gdb.GdbError(f"event {n} is not recorded: the run has events 0 to {self.known[-1][1] - 1}")

    def narrow(self, n, from_high):
        """Makes the bounds of an event narrow that is near to one of them: the upper one, or the lower one."""
        distance = NEAR
        while True:
            low, high = self.between(n)
            there = high - distance if from_high else low + distance
            if there <= low or (high is not None and there >= high):
                return
            if not self.reaches(there) or (self.probe(there) > n) != from_high:
                return
            distance *= FASTER if from_high else 2

    def find(self, n):
        """The last instruction before event n is recorded."""
        self.forward(n)
        while True:
            low, high = self.between(n)
            if high - low <= 1:
                return low
            self.seek(low)  # to go back takes as long as ten million instructions: once, and then on in steps
            if high - low < SAVE_NEAR and not any(low - SAVE_NEAR <= at <= low for at in self.saved):
                self.save_near(low)
            step = -(-(high - low) // WAYS)
            for there in range(low + step, high, step):
                if self.probe(there) > n:
                    break

    # ---- gdb ----

    def leave(self):
        """gdb leaves the machine; where that is."""
        if gdb.selected_inferior().pid:
            gdb.execute("disconnect", to_string=True)
        self.ready()
        try:
            return self.now()
        except gdb.GdbError:  # the run has come to its end, or QEMU has failed
            self.start()
            return self.now()

    def enter(self):
        self.ready()
        gdb.execute(f"target remote {self.gdb}", to_string=True)

    def go(self, n, near=None):
        """near: high or low, the bound that event n is near to."""
        try:
            if near is not None:
                self.narrow(n, near == "high")
            at = self.find(n)
            self.seek(at)
        finally:
            self.keep()
            self.enter()
        text = self.texts.get(n)
        gdb.write(f"event {n} at instruction {at}{': ' + text if text else ''}\n")
        frame = gdb.newest_frame()
        while frame.older() and "ktr_record" in (frame.name() or ""):
            frame = frame.older()
        frame.select()
        self.check_site(n)
        gdb.execute("frame")

    def check_site(self, n):
        """Is what the kernel records here what the trace has?"""
        frame = gdb.newest_frame()
        try:
            while frame and not any(symbol.name == "site" for symbol in frame.block()):
                frame = frame.older()
        except RuntimeError:  # a frame without debugging information
            frame = None
        if n not in self.rows or not frame:
            return
        site = frame.read_var("site").dereference()
        found, expected = (int(site["line"]), site["fmt"].string()), (self.rows[n]["line"], self.rows[n]["fmt"])
        if found != expected:
            raise gdb.GdbError(f"event {n} is {found[1]!r} of line {found[0]} here, and {expected[1]!r} of line {expected[0]} in the trace: it is not the recorded run")

    def at(self, n):
        # Later ones may have come too late for the trace: the machine hung, or died.
        if self.texts and n not in self.texts and n <= max(self.texts):
            raise gdb.GdbError(f"event {n} is not in the trace, which has {min(self.texts)} to {max(self.texts)} without the parts of long data")
        self.leave()
        self.go(n)

    def neighbour(self, glob, forward):
        """The next event that a glob matches, or the one before."""
        if glob and not self.texts:
            raise gdb.GdbError("the run was recorded without --trace: what its events say is not known")
        here = self.leave()
        try:
            count = self.count(here)
            stands = self.known_at(here) == count and self.known_at(here + 1) == count + 1
        except gdb.GdbError:
            self.enter()
            raise
        n = self.nearest(count + 1 if forward and stands else count if forward else count - 1, glob, forward)
        if n is None:
            self.enter()
            raise gdb.GdbError(f"no {'later' if forward else 'earlier'} event{' that matches ' + glob if glob else ''}")
        self.go(n, None if glob else "low" if forward else "high")

    def nearest(self, n, glob, forward):
        """The nearest event from n on that a glob matches. Numbers without a text are of parts of an event's data."""
        if not self.texts:
            return n if n >= 0 else None
        numbers = sorted(self.texts, reverse=not forward)
        return next((k for k in numbers if (k >= n if forward else k <= n) and (not glob or self.matches(k, glob))), None)

    def matches(self, n, glob):
        return fnmatch.fnmatchcase(self.texts[n], glob) or fnmatch.fnmatchcase(self.texts[n].split(" ")[0].rstrip(":"), glob)


RUN = None


def run():
    if RUN is None:
        raise gdb.GdbError("no recorded run: kestrel replay FOLDER")
    return RUN


class Kestrel(gdb.Command):
    """A recorded run of Kestrel (qemu/boot --record): go to where an event is recorded."""

    def __init__(self):
        super().__init__("kestrel", gdb.COMMAND_RUNNING, prefix=True)


class Replay(gdb.Command):
    """Start a recorded run again, and connect to it.
usage: kestrel replay FOLDER"""

    def __init__(self):
        super().__init__("kestrel replay", gdb.COMMAND_RUNNING, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, _):
        global RUN
        words = gdb.string_to_argv(argument)
        if len(words) != 1:
            raise gdb.GdbError("usage: kestrel replay FOLDER")
        if RUN is not None:
            if gdb.selected_inferior().pid:
                gdb.execute("disconnect", to_string=True)
            RUN.stop()
        RUN = None
        RUN = Run(os.path.expanduser(words[0]))
        RUN.enter()


class At(gdb.Command):
    """Go to where an event is recorded, forwards or backwards.
usage: kestrel at N
N: its number, as ktrdump -n prints it"""

    def __init__(self):
        super().__init__("kestrel at", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument, _):
        if not argument.isdecimal():
            raise gdb.GdbError("kestrel at: expected the number of an event, as ktrdump -n prints it")
        run().at(int(argument))


class NextEvent(gdb.Command):
    """Go to the next event, or to the next one that a glob matches.
usage: kestrel next-event [GLOB]
GLOB: of the event's text, or of its first word
  kestrel next-event 'syscall openat:*'"""

    def __init__(self):
        super().__init__("kestrel next-event", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument, _):
        run().neighbour(" ".join(gdb.string_to_argv(argument)), True)


class PreviousEvent(gdb.Command):
    """Go back to the event before, or to the last one that a glob matches.
usage: kestrel previous-event [GLOB]
GLOB: of the event's text, or of its first word
  kestrel previous-event fork"""

    def __init__(self):
        super().__init__("kestrel previous-event", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument, _):
        run().neighbour(" ".join(gdb.string_to_argv(argument)), False)


for command in (Kestrel, Replay, At, NextEvent, PreviousEvent):
    command()
