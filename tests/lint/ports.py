#!/usr/bin/python3
"""ports.py - the percentage of lines that two ports have in common, which must be below 10.

usage: tests/lint/ports.py

Code that two ports share belongs into kernel/, with constants from the port. A port is the lines of the .c, .h
and .S files in arch/ARCH, without blank lines, comments and #include. A line of the smaller port is common if it
has over 20 characters without surrounding blanks, and the other port has it, too. The result is a percentage of
all lines of the smaller port. Two more numbers are printed for information: the percentage among lines of over
20 characters only, and the same without lines that repeat the contract, since a definition must repeat what
arch/*.h declares.
"""
import itertools
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT_PERCENT = 10
SHORT = 20  # characters; shorter lines are ignored


def without_comments(text):
    """Removes comments, but keeps the ends of their lines. // is a comment, too; # in .S files is not."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def lines(port):
    """[(file, number, line)] of a port."""
    found = []
    for path in sorted(p for p in port.rglob("*.[chS]") if p.is_file()):
        for number, line in enumerate(without_comments(path.read_text(encoding="utf-8")).split("\n"), 1):
            line = line.strip()
            if line and not re.match(r"#\s*include\b", line):
                found.append((path, number, line))
    return found


def compare(smaller, other):
    """Prints the report; returns the share in %."""
    mine, theirs = lines(smaller), {line for _, _, line in lines(other)}
    contract = "\n".join(without_comments(p.read_text(encoding="utf-8")) for p in (ROOT / "arch").glob("*.h"))
    long = [entry for entry in mine if len(entry[2]) > SHORT]
    same = [entry for entry in long if entry[2] in theirs]
    own = [entry for entry in same if entry[2] not in contract]
    for path, number, line in own:
        print(f"# {os.path.relpath(path, ROOT)}:{number}: {line}")
    percent = 100 * len(same) / max(len(mine), 1)
    print(f"# {len(same)} of the {len(mine)} lines of {smaller.name} are over {SHORT} characters long and in {other.name} "
          f"too: {percent:.1f} %, expected under {LIMIT_PERCENT} %")
    print(f"# of its {len(long)} lines over {SHORT} characters: {100 * len(same) / max(len(long), 1):.1f} %; without what "
          f"arch/*.h declares, {len(own)} (those above): {100 * len(own) / max(len(long), 1):.1f} %")
    return percent


def main():
    ports = [p for p in (ROOT / "arch").iterdir() if p.is_dir() and (p / "arch.mk").exists()]
    print("1..1")
    if len(ports) < 2:
        print(f"ok 1 - identical lines between ports # SKIP one port: {', '.join(p.name for p in ports)}")
        return 0
    ports.sort(key=lambda p: (len(lines(p)), p.name))
    good = all([compare(a, b) < LIMIT_PERCENT for a, b in itertools.combinations(ports, 2)])
    print(f"{'ok' if good else 'not ok'} 1 - identical lines between ports")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
