#!/usr/bin/python3
"""ports.py - the share of lines that two ports have in common, as % of the smaller one: under 10, or it fails.

usage: tests/lint/ports.py

What two ports write twice belongs into kernel/, over constants that the port gives. A port is the lines of its .c,
.h and .S files below arch/ARCH without blank lines, comments and #include. Those of the smaller port count as common
that have over 20 characters, blanks at both ends taken off, and stand anywhere in the other port too. Two further
shares are printed that nothing depends on: of lines of over 20 characters alone, and the same without those that only
repeat the contract, for a definition has to say what arch/*.h declares.
"""
import itertools
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT_PERCENT = 10
SHORT = 20  # characters: a line must be longer than this to mean anything


def without_comments(text):
    """Comments become blanks, their line ends stay; // is a comment too, # in .S files is not."""
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
