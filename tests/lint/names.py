#!/usr/bin/python3
"""names.py - checks that each function of the kernel has a name of its own, since functions are probes; TAP.

usage: tests/lint/names.py [ROOT]

Looks at what is linked into one kernel: kernel/, ktr/ and the port. Two ports may share a name. A definition is a name
and a parenthesis at the beginning of a line; those that macros make are not seen.
"""
import collections
import os
import re
import subprocess
import sys

DEFINITION = re.compile(r"^([a-z]\w*)\(|^static .*PRINTF_LIKE\(.*?\)\s+(\w+)\(", re.M)


def sources(root):
    """The files of kernels: those of all, then those of one port, by its name."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "kernel/*.[ch]",
                             "arch/*.[ch]"], check=True, capture_output=True, text=True).stdout.split()
    groups = {"": []}
    for f in listed:
        if "/host/" not in f and os.path.exists(os.path.join(root, f)):
            groups.setdefault(f.split("/")[1] if f.startswith("arch/") and f.count("/") > 1 else "", []).append(f)
    with open(os.path.join(root, "ktr/sources.mk"), encoding="utf-8") as f:
        for name in ("KERNEL", "FORMAT"):
            f.seek(0)
            row = re.search(rf"^KTR_{name}_SRCS := \\\n((?:\t.*\n)+)", f.read(), re.M)[1]
            groups[""] += row.replace("\\", "").split()
    return groups


def main(argv):
    root = argv[1] if len(argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    where, bad = collections.defaultdict(list), []
    groups = sources(root)
    for port in sorted(groups):
        for path in groups[port]:
            with open(os.path.join(root, path), encoding="utf-8") as f:
                text = f.read()
            for m in DEFINITION.finditer(text):
                place = f"{path}:{text.count(chr(10), 0, m.start()) + 1}"
                where[m[1] or m[2]].append((port, place))
    for name, places in sorted(where.items()):
        for port in groups:
            mine = [place for of, place in places if of in ("", port)]
            if len(mine) > 1:
                bad.append(f"{name}: found {', '.join(mine)}, expected one function of that name")
                break
    print("1..1")
    for line in bad:
        print(f"# {line}")
    print(f"{'not ok' if bad else 'ok'} 1 - each function has a name of its own")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
