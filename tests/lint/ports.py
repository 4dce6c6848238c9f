#!/usr/bin/python3
"""ports.py - how much the ports have in common, line by line: a report, not a judge.

usage: tests/lint/ports.py

What two ports write twice belongs into kernel/, over constants that the port gives. Lines of comment,
braces and includes do not count. With one port there is nothing to compare, and it says so.
"""
import itertools
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def lines(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    stripped = (line.strip() for line in text.splitlines())
    return [s for s in stripped if len(s) > 8 and not s.startswith(("#include", "//", "return 0;"))]


def main():
    ports = sorted(p for p in (ROOT / "arch").iterdir() if p.is_dir())
    print("1..1")
    if len(ports) < 2:
        print(f"ok 1 - identical lines between ports # SKIP one port: {', '.join(p.name for p in ports)}")
        return 0
    for a, b in itertools.combinations(ports, 2):
        for path in sorted(a.rglob("*.[chS]")):
            other = b / path.relative_to(a)
            if not other.exists():
                continue
            mine, theirs = lines(path), set(lines(other))
            same = sum(line in theirs for line in mine)
            if mine:
                print(f"# {path.relative_to(ROOT)}: {same} of {len(mine)} lines are in "
                      f"{os.path.relpath(other, ROOT)} too ({100 * same // len(mine)} %)")
    print("ok 1 - identical lines between ports (see the report above)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
