"""screen.py - what a terminal shows: text with the control sequences that busybox's programs send (ECMA-48, xterm's)."""
import re

import pexpect

from harness import Deadline

SEQUENCE = re.compile(r"\x1b(?:\[([?\d;]*)([@-~])|[()].|[^\[()])|[^\x1b]", re.S)


class Screen:
    """A terminal of rows by columns. Colours are not kept."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.rest = ""  # the beginning of a sequence
        self.clear()
        self.main = self.lines  # beside the alternate screen

    def clear(self):
        self.lines = [" " * self.columns for _ in range(self.rows)]
        self.row = self.column = 0

    def resize(self, rows):
        self.lines = self.lines[:rows] + [" " * self.columns] * (rows - self.rows)
        self.rows, self.row = rows, min(self.row, rows - 1)

    def text(self):
        """The lines and the place of the cursor."""
        return "\n".join(line.rstrip() for line in self.lines).rstrip() + f"\n<{self.row},{self.column}>"

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            if found is None:
                self.rest = text[at:]
                return
            at = found.end()
            if found[2]:
                self.control(found[1], found[2])
            elif len(found[0]) == 1:
                self.character(found[0])

    def line_feed(self):
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.lines = [*self.lines[1:], " " * self.columns]

    def character(self, c):
        if c == "\n":
            self.line_feed()
        elif c == "\r":
            self.column = 0
        elif c == "\b":
            self.column = max(0, min(self.column, self.columns - 1) - 1)
        elif c == "\t":
            self.column = min(self.columns - 1, self.column // 8 * 8 + 8)
        elif c >= " ":
            if self.column == self.columns:  # it wraps when something follows
                self.column = 0
                self.line_feed()
            self.put(self.column, self.column + 1, c)
            self.column += 1

    def put(self, begin, end, c=" "):
        line = self.lines[self.row]
        self.lines[self.row] = line[:begin] + c * (end - begin) + line[end:]

    def control(self, words, what):
        numbers = [int(n or 0) for n in words.lstrip("?").split(";")]
        n = max(1, numbers[0])
        if what == "H":
            self.row, self.column = min(n, self.rows) - 1, min(max(1, (numbers + [1])[1]), self.columns) - 1
        elif what in "AB":
            self.row = max(0, min(self.rows - 1, self.row + (n if what == "B" else -n)))
        elif what in "CD":
            self.column = max(0, min(self.columns - 1, self.column + (n if what == "C" else -n)))
        elif what == "K":
            self.put(0 if numbers[0] else self.column, self.column + 1 if numbers[0] == 1 else self.columns)
        elif what == "J":
            self.put(self.column if numbers[0] == 0 else 0, self.columns)
            for row in range(self.row + 1 if numbers[0] == 0 else 0, self.rows):
                self.lines[row] = " " * self.columns
        elif what == "h" and words == "?1049":
            self.main = self.lines, self.row, self.column
            self.clear()
        elif what == "l" and words == "?1049":
            self.lines, self.row, self.column = self.main


class Side:
    """A terminal's program and its screen."""

    def __init__(self, child, rows, columns):
        self.child, self.screen = child, Screen(rows, columns)

    def read(self):
        try:
            self.screen.feed(self.child.read_nonblocking(65536, timeout=0.02))
        except pexpect.TIMEOUT:
            pass


def type_alike(sides, keys, pattern, deadline_s):
    """Types on both sides. Returns None when both show the pattern, and the same; else what they show at the deadline."""
    deadline = Deadline(deadline_s)
    for side in sides:
        side.child.send(keys)
    while deadline.tick() > 0:
        for side in sides:
            side.read()
        shown = [side.screen.text() for side in sides]
        if shown[0] == shown[1] and re.search(pattern, shown[0], re.M):
            return None
    return shown
