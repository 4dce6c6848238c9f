"""qmp.py - QEMU's control socket, as --qmp of qemu/boot makes it."""
import json
import re
import socket

from harness import DEADLINE_S, check


class Qmp:
    """A connection to a machine; command() waits for the answer."""

    def __init__(self, path, deadline=DEADLINE_S):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(deadline)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rw")
        self.greeting = json.loads(self.lines.readline())
        self.command("qmp_capabilities")

    def command(self, name, **arguments):
        self.lines.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self.lines.flush()
        answer = json.loads(self.lines.readline())
        while "event" in answer:
            answer = json.loads(self.lines.readline())
        check("return" in answer, f"QMP {name}: {answer}")
        return answer["return"]

    def dump(self, path):
        """All memory as an ELF core; the machine stands still meanwhile."""
        self.command("dump-guest-memory", paging=False, protocol=f"file:{path}")
        return path

    def pc(self):
        """Where the first CPU is."""
        registers = self.command("human-monitor-command", **{"command-line": "info registers"})
        return int(re.search(r"\b(?:RIP|PC)=([0-9a-f]{16})", registers).group(1), 16)

    def close(self):
        self.lines.close()
        self.socket.close()
