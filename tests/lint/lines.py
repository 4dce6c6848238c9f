#!/usr/bin/python3
"""lines.py - checks that no file of the sources has more than 600 lines, and no folder more than its budget; TAP.

usage: tests/lint/lines.py [--table] [ROOT]

Counts C, headers, assembly, Python, D, JavaScript and .def. The table below has a limit for each folder, with all
folders in it that the table does not name. Who needs more raises it in a commit of its own, which says why. --table
prints the table anew, from what is there. The files of tests/ may be longer than 600 lines. doc/decisions.md says how
many lines there are, which is checked to the thousand.
"""
import os
import re
import subprocess
import sys

FILE_LINES = 600
SUFFIXES = (".c", ".h", ".S", ".py", ".d", ".def", ".js")
BUDGETS = {
    "": 993,
    "arch": 750,
    "arch/aarch64": 3383,
    "arch/aarch64/md": 650,
    "arch/x86_64": 3772,
    "arch/x86_64/md": 625,
    "kernel": 684,
    "kernel/abi": 2997,
    "kernel/block": 1200,
    "kernel/debug": 4350,
    "kernel/dev": 3259,
    "kernel/dev/virtio": 2112,
    "kernel/dtrace": 6469,
    "kernel/dtrace/dif": 1440,
    "kernel/dtrace/host": 2375,
    "kernel/fs": 13365,
    "kernel/fs/9p": 2263,
    "kernel/fs/cache": 1621,
    "kernel/fs/ext2": 2690,
    "kernel/fs/pipe": 1049,
    "kernel/fs/wait": 1549,
    "kernel/ftrace": 2659,
    "kernel/ftrace/buffer": 2420,
    "kernel/ftrace/event": 4083,
    "kernel/ftrace/hist": 2885,
    "kernel/ftrace/tracer": 2938,
    "kernel/host": 1400,
    "kernel/ipc": 1838,
    "kernel/ktrace": 1994,
    "kernel/lib": 3044,
    "kernel/mm": 2298,
    "kernel/net": 4060,
    "kernel/net/inet": 4222,
    "kernel/probe": 4274,
    "kernel/proc": 11926,
    "kernel/procfs": 2085,
    "kernel/sched": 3662,
    "kernel/sync": 834,
    "kernel/sysctl": 1125,
    "kernel/trace": 2288,
    "kernel/vm": 2631,
    "ktr": 11400,
    "ktr/examples/riscv64-virt": 450,
    "ktr/port/host": 500,
    "ktr/tools": 4735,
    "ktr/tools/export": 7600,
    "ktr/tools/export/html": 1500,
    "ktr/tools/model": 1550,
    "ktr/tools/report": 3600,
    "qemu/gdb": 1115,
    "tests": 89827,
    "userland/bin": 750,
    "userland/bin/dtrace": 3176,
    "userland/bin/dtrace/check": 3450,
    "userland/bin/dtrace/gen": 1622,
    "userland/bin/dtrace/read": 2627,
    "userland/bin/dtrace/run": 3706,
    "userland/bin/kdump": 2050,
    "userland/bin/ktr": 825,
    "userland/bin/load": 875,
    "userland/lib": 500,
}
STEP = 50
COLUMNS = 120
WIDE = 2366  # lines of tests that have more columns; lower it when there are fewer
PAGE = "doc/decisions.md"
SAYS = {"the kernel and its tools": r"The kernel and its tools have ([\d,]+) lines", "the tests": r"The tests have ([\d,]+) lines"}


def count(root):
    """(lines of each file, lines of each folder of the table, wide lines of the tests)."""
    out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True,
                         text=True).stdout.split("\n")
    files, wide = {}, 0
    for f in out:
        if f.endswith(SUFFIXES) and os.path.exists(os.path.join(root, f)):
            with open(os.path.join(root, f), "rb") as data:
                lines = data.read().split(b"\n")
            files[f] = len(lines) - 1
            if f.startswith("tests/"):
                wide += sum(len(line.expandtabs(8)) > COLUMNS for line in lines)
    folders = dict.fromkeys(BUDGETS, 0)
    for f, n in files.items():
        folder = os.path.dirname(f)
        while folder and folder not in folders:
            folder = os.path.dirname(folder)
        folders[folder] = folders.get(folder, 0) + n
    return files, folders, wide


def wrong_numbers(root, folders):
    """Numbers of the page that are wrong by more than a thousand."""
    with open(os.path.join(root, PAGE), encoding="utf-8") as f:
        text = f.read()
    counts = dict(zip(SAYS, (sum(n for f, n in folders.items() if f != "tests"), folders["tests"])))
    for who, pattern in SAYS.items():
        m = re.search(pattern, text)
        if m is None or abs(int(m.group(1).replace(",", "")) - counts[who]) > 1000:
            yield f"{PAGE}: found {m and m.group(0)!r}, expected {round(counts[who], -3):,} for {who}"


def print_table(root):
    """The table, with a folder's name where it has more than 300 lines of its own."""
    files, sizes = count(root)[0], {"tests": FILE_LINES}
    for f, n in files.items():
        if not f.startswith("tests/"):
            sizes[os.path.dirname(f)] = sizes.get(os.path.dirname(f), 0) + n
    BUDGETS.clear()
    BUDGETS.update((f, 0) for f, n in sizes.items() if n > 300)
    for folder, n in sorted(count(root)[1].items()):
        print(f'    "{folder}": {n + STEP + -n % STEP},')


def main(argv):
    args = [a for a in argv[1:] if a != "--table"]
    root = args[0] if args else os.path.join(os.path.dirname(__file__), "..", "..")
    if "--table" in argv:
        return print_table(root)
    files, folders, wide = count(root)
    bad = [f"{f}: found {n} lines, expected at most {FILE_LINES}" for f, n in sorted(files.items())
           if n > FILE_LINES and not f.startswith("tests/")]
    bad += [f"{f or '.'}/: found {n} lines, expected at most {BUDGETS.get(f, 0)} (tests/lint/lines.py)"
            for f, n in sorted(folders.items()) if n > BUDGETS.get(f, 0)]
    if wide > WIDE:
        bad.append(f"tests/: found {wide} lines of more than {COLUMNS} columns, expected at most {WIDE}")
    bad += wrong_numbers(root, folders)
    print("1..1")
    for line in bad:
        print(f"# {line}")
    print(f"{'not ok' if bad else 'ok'} 1 - files and folders stay within their budgets")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
