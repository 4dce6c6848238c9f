#!/usr/bin/python3
"""names.py - checks that each function of the kernel has a name of its own, since functions are probes, and one that says
whose it is: of two words or more, but for the names that the field knows; that kernel/probe/noprobe names functions, and that what a header says is called once has one call; TAP.

usage: tests/lint/names.py [ROOT]

Looks at what is linked into one kernel: kernel/, ktr/ and the port, but not the port of kernel/dtrace/dif/ to others.
Two ports may share a name. A definition is a name
and a parenthesis at the beginning of a line; those that macros make are not seen.
"""
import collections
import os
import re
import subprocess
import sys

DEFINITION = re.compile(r"^([a-z]\w*)\(|^static .*PRINTF_LIKE\(.*?\)\s+(\w+)\(", re.M)

# A comment that says "Once, at boot." or the like, and the function that it is about.
ONCE = re.compile(r"/\*(?:[^*]|\*(?!/))*\bOnce[,.](?:[^*]|\*(?!/))*\*/\n(?:[a-z]\w* )+\*?(\w+)\(")

# Of C and BSD, Linux, FreeBSD and NetBSD, and instructions.
WORDS = set("""memcmp memcpy memmove memset strchr strcmp strlcpy strlen strncmp strnlen strrchr strstr atoi
capable fsnotify getname kfree kmalloc kzalloc panic printk schedule vprintk
curlwp curproc curthread wakeup
cpuid rdmsr wrmsr""".split())


def sources(root):
    """The files of kernels: those of all, then those of one port, by its name."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "kernel/*.[ch]",
                             "arch/*.[ch]"], check=True, capture_output=True, text=True).stdout.split()
    groups = {"": []}
    for f in listed:
        if not re.match("kernel/(host|dtrace/host|dtrace/dif)/", f) and os.path.exists(os.path.join(root, f)):
            groups.setdefault(f.split("/")[1] if f.startswith("arch/") and f.count("/") > 1 else "", []).append(f)
    with open(os.path.join(root, "ktr/sources.mk"), encoding="utf-8") as f:
        for name in ("KERNEL", "FORMAT"):
            f.seek(0)
            row = re.search(rf"^KTR_{name}_SRCS := \\\n((?:\t.*\n)+)", f.read(), re.M)[1]
            groups[""] += row.replace("\\", "").split()
    return groups


def main(argv):
    root = argv[1] if len(argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    where, bad, texts = collections.defaultdict(list), [], []
    groups = sources(root)
    for port in sorted(groups):
        for path in groups[port]:
            with open(os.path.join(root, path), encoding="utf-8") as f:
                text = f.read()
            texts.append(text)
            for m in DEFINITION.finditer(text):
                place = f"{path}:{text.count(chr(10), 0, m.start()) + 1}"
                where[m[1] or m[2]].append((port, place))
    for name, places in sorted(where.items()):
        for port in groups:
            mine = [place for of, place in places if of in ("", port)]
            if len(mine) > 1:
                bad.append(f"{name}: found {', '.join(mine)}, expected one function of that name")
                break
    short = [f"{name}: found {places[0][1]}, expected a name that says whose it is, as subsystem_verb_object"
             for name, places in sorted(where.items()) if "_" not in name and name not in WORDS]
    with open(os.path.join(root, "kernel/probe/noprobe"), encoding="utf-8") as f:
        named = [line.split()[0] for line in f if line.strip() and not line.startswith("#")]
    gone = [f"kernel/probe/noprobe: {name}: found no function of that name" for name in named if name not in where]
    once = sorted({m[1] for text in texts for m in ONCE.finditer(text)})
    calls = {name: sum(len(re.findall(rf"(?<!^)(?<![*\w] )\b{name}\(", text, re.M)) for text in texts) for name in once}
    often = [f"{name}: found {n} calls, expected one, as its header says" for name, n in calls.items() if n != 1]
    print("1..4")
    for n, lines, what in ((1, bad, "each function has a name of its own"), (2, gone, "functions without probes exist"),
                           (3, short, "names say whose the functions are"),
                           (4, often, "what is called once has one call")):
        for line in lines:
            print(f"# {line}")
        print(f"{'not ok' if lines else 'ok'} {n} - {what}")
    return bool(bad or gone or short or often)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
