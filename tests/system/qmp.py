"""qmp.py - QEMU's control socket (qemu/boot --qmp)."""
import contextlib
import json
import re
import select
import socket
import subprocess
import time

from harness import BUILD, DEADLINE_S, Deadline, check, check_match, wait_for


class Qmp:
    """A connection to a machine. command() waits for the answer."""

    def __init__(self, path):
        self.socket, self.rest = socket.socket(socket.AF_UNIX), b""
        self.socket.connect(str(path))
        self.greeting = self.message()
        self.command("qmp_capabilities")

    def message(self):
        """The next one that QEMU sends."""
        while b"\n" not in self.rest:
            wait_for(lambda: select.select([self.socket], [], [], 1)[0], "message by QMP")
            piece = self.socket.recv(65536)
            check(piece, "QMP: the machine has ended")
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def command(self, name, **arguments):
        self.events = []  # that came before the answer
        self.socket.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        answer = self.message()
        while "event" in answer:
            self.events.append(answer["event"])
            answer = self.message()
        check("return" in answer, f"QMP {name}: {answer}")
        return answer["return"]

    def reset(self):
        """Resets the machine. When this returns, it is done, also if the machine is stopped."""
        self.command("system_reset")
        while "RESET" not in self.events:
            self.events.append(self.message().get("event"))

    @contextlib.contextmanager
    def still(self):
        """The machine is stopped while the host works: its CPUs would only wait, and take the host's for it."""
        ran = self.command("query-status")["running"]
        self.command("stop")
        yield
        if ran:
            self.command("cont")

    def dump(self, path):
        """Writes all memory as an ELF core. The machine is stopped meanwhile."""
        self.command("dump-guest-memory", paging=False, protocol=f"file:{path}")
        return path

    def waits_for_hang(self):
        """Waits until the first CPU is in death_hang() (debug.kdb.hang) with interrupts off: until then, an interrupt
        could still take it elsewhere."""
        symbols = subprocess.run(["nm", "-S", BUILD / "kestrel"], capture_output=True, text=True, check=True).stdout
        start, size = (int(x, 16) for x in check_match(r"^(\w+) (\w+) t death_hang$", symbols, "nm").groups())
        pc, off, deadline = 0, False, Deadline(DEADLINE_S)
        while not (start <= pc < start + size and off):
            time.sleep(0.02)  # each look stops the CPU
            check(deadline.tick() > 0, f"the CPU is at {pc:#x}, interrupts off: {off}; expected it in death_hang() at {start:#x}")
            registers = self.command("human-monitor-command", **{"command-line": "info registers"})
            pc = int(re.search(r"\b(?:RIP|PC)=([0-9a-f]{16})", registers)[1], 16)
            flags = re.search(r"\bRFL=([0-9a-f]{8})", registers)
            off = not int(flags[1], 16) & 0x200 if flags else bool(int(re.search(r"\bPSTATE=([0-9a-f]{8})", registers)[1], 16) & 0x80)

    def close(self):
        self.socket.close()
