#!/usr/bin/python3
"""layers.py - checks the includes of every C source against the tables of layers and of the kernel's floors; TAP.

usage: tests/lint/layers.py [ROOT]

Checks: who may include whom (LAYERS); no file of the kernel includes one of a higher floor (FLOORS), and
doc/structure.md lists the same floors; quoted includes are rooted at the repository and exist; headers begin with
`#pragma once`; `NAME_private.h` is included from its own folder only; headers do not include each other in a circle; no
`#if` on an architecture outside the ports; a file begins with a comment.
"""
import itertools
import os
import re
import subprocess
import sys

FREESTANDING = {"stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "limits.h"}

# Longest prefix first: (folder, quoted includes allowed, angle includes allowed; None: any).
# A pattern ends in "/" (a folder), or is one file.
LAYERS = [
    ("ktr/tools/ktrace_file.c", ["ktr/", "kernel/abi/"], None),  # reads what a kernel's ktrace has written
    ("ktr/tools/linux.c", ["ktr/", "kernel/abi/"], None),  # Linux's system calls, and their numbers
    ("ktr/tools/", ["ktr/"], None),
    ("ktr/port/host/", ["ktr/"], None),
    ("ktr/examples/", [], FREESTANDING | {"dif.h", "ktr.h", "ktr_port.h", "ktr_port_default.h"}),
    ("ktr/", ["ktr/"], FREESTANDING | {"ktr_port.h"}),
    ("arch/*.h", ["arch/*.h", "kernel/abi/"], FREESTANDING | {"md/*"}),
    # arch/README.md lists the kernel headers that a port may use besides entry.h.
    ("arch/*/", ["arch/", "kernel/entry.h", "kernel/mm/boot_info.h", "kernel/lib/", "kernel/abi/",
                 "kernel/sync/pcpu.h", "kernel/sched/thread.h", "ktr/"], FREESTANDING | {"md/*"}),
    ("kernel/abi/", ["kernel/abi/"], FREESTANDING | {"abi_md.h", "syscalls.def"}),
    ("kernel/host/", ["kernel/host/", "kernel/lib/ksyms.h", "userland/lib/array.h"], None),  # programs of the build
    # dtrace(1) and the engine on the host, over what a test or a trace (ktr/tools/) says
    ("kernel/dtrace/host/", ["kernel/dtrace/", "kernel/abi/", "kernel/lib/ksyms.h", "kernel/probe/rate.h", "ktr/",
                             "userland/bin/dtrace/", "userland/lib/array.h"], None),
    # The engine in any kernel that has the log: it knows nothing else of Kestrel.
    ("kernel/dtrace/dif/", ["kernel/dtrace/engine.h", "kernel/dtrace/port.h", "kernel/dtrace/probe.h",
                            "kernel/dtrace/dif/", "kernel/abi/", "kernel/lib/string.h", "ktr/"],
     FREESTANDING | {"ktr_port.h"}),
    # lwIP, which qemu/fetch-guest gets; lwip/ has what it includes of its kernel.
    ("kernel/net/inet/", ["kernel/", "ktr/"], FREESTANDING | {"lwip/*"}),
    ("kernel/net/lwip/", ["kernel/lib/", "kernel/mm/"], FREESTANDING | {"lwip/*"}),
    ("kernel/", ["kernel/", "arch/*.h", "ktr/"], FREESTANDING | {"ktr_port.h", "abi_md.h", "syscalls.def"}),
    ("userland/", ["userland/", "kernel/abi/", "ktr/fmt.h", "ktr/glob.h", "ktr/word.h"], None),
    ("tests/", None, None),
]
# The kernel's floors, from the bottom up. A file includes files of its own folder and of lower floors. It calls
# higher floors through hooks, or through functions that they register (kernel/lib/hook.h). entry.h is the contract
# between the ports and all floors, syscall.h that between system calls and the floors that have them. The log (ktr/)
# is outside the floors: every floor records.
FLOORS = [
    ["kernel/abi/", "kernel/entry.h"],
    ["kernel/syscall.h"],
    ["kernel/lib/"],     # strings, lists, messages, time, panic; how a sysctl is declared
    ["kernel/sync/"],    # what CPUs do among each other: per-CPU data, spin locks, calls, stopping the machine
    ["kernel/mm/"],
    ["kernel/sched/"],   # threads, and all that makes them wait: sleep queues, mutexes, callouts
    ["kernel/block/"],   # requests to disks
    ["kernel/vm/"],      # address spaces of programs
    ["kernel/sysctl/"],  # the registry: a handler may sleep
    ["kernel/proc/task.h"],  # what files ask of the current process
    ["kernel/proc/", "kernel/fs/", "kernel/dev/"],
    ["kernel/net/", "kernel/ipc/"],  # sockets, which are files; System V IPC
    ["kernel/trace/", "kernel/probe/", "kernel/ktrace/"],
    ["kernel/procfs/"],  # the files of /proc
    ["kernel/dtrace/"],  # programs that run when probes fire
    ["kernel/ftrace/"],  # the files of tracefs
    ["kernel/debug/"],
    ["kernel/"],         # main.c: the boot in order; entry.c: traps and interrupts, shared out
]
# Includes within one floor: (who, whom).
NEIGHBOURS = [
    ("kernel/proc/", "kernel/fs/file.h"),  # a process has open files and a working directory
    ("kernel/proc/", "kernel/fs/vfs.h"),
    ("kernel/proc/", "kernel/fs/memfd.h"),
    ("kernel/proc/", "kernel/fs/uio.h"),
    ("kernel/proc/", "kernel/fs/cache/pagecache.h"),  # memory that is out is looked for in files
    ("kernel/proc/", "kernel/fs/wait/poll.h"),  # timers and signals are files to wait for
    ("kernel/dev/", "kernel/fs/"),         # devices are files
    ("kernel/dev/", "kernel/proc/proc.h"),
    ("kernel/trace/", "kernel/probe/kprobe.h"),  # what is patched when probes are switched
]
PAGE = "doc/structure.md"
NOT_KTR_TOOLS = ("ktr/tools/", "ktr/port/host/")
ARCH_WORDS = re.compile(r"__x86_64__|__amd64__|__i386__|__aarch64__|__arm__|__arm64__|__riscv|ARCH_X86|ARCH_AARCH")
ARCH_FOLDERS = re.compile(r"^(arch/[^/]+/|kernel/abi/[^/]+/|ktr/port/|tests/)")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def sources(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.c", "*.h", "*.S"],
                         check=True, capture_output=True, text=True).stdout
    return sorted(f for f in out.split("\n") if f and os.path.exists(os.path.join(root, f)))


def match(pattern, path):
    if pattern.endswith("*.h"):
        return os.path.dirname(path) + "/" == pattern[:-3] and path.endswith(".h")
    if pattern in ("md/*", "lwip/*"):
        return path.startswith(pattern[:-1])
    if pattern == "arch/*/":
        return path.startswith("arch/") and path.count("/") > 1
    return path.startswith(pattern) if pattern.endswith("/") else path == pattern


def check_layer(path, line, kind, target):
    """None, or what was found and expected."""
    layer = next((l for l in LAYERS if match(l[0], path)), None)
    if layer is None:
        return f"{path}:{line}: in no layer of the table"
    folder, quoted, angle = layer
    allowed = quoted if kind == '"' else angle
    ok = allowed is None or any(match(p, target) for p in allowed)
    if ok and kind == '"' and target.startswith(NOT_KTR_TOOLS):
        ok = path.startswith(("tests/", "kernel/dtrace/host/") + NOT_KTR_TOOLS)
    if ok:
        return None
    return f"{path}:{line}: found {kind}{target}, expected one of {', '.join(sorted(allowed))} ({folder})"


def floor_of(path):
    """(number, pattern) of the floor of a kernel file."""
    return next((n, p) for n, patterns in enumerate(FLOORS) for p in patterns if match(p, path))


def check_floor(path, line, target):
    """None, or what was found and expected, for one kernel file that includes another."""
    (here, mine), (there, theirs) = floor_of(path), floor_of(target)
    if there < here or mine == theirs:
        return None
    if there == here and any(match(who, path) and match(whom, target) for who, whom in NEIGHBOURS):
        return None
    return (f"{path}:{line}: found {target}, of {theirs}, expected a floor below {mine}"
            f"{' or what NEIGHBOURS lists' if there == here else ''}")


def circles(graph):
    """Circles of includes among headers, each once."""
    found, state, stack = [], {}, []

    def visit(node):
        state[node] = "open"
        stack.append(node)
        for to in graph.get(node, ()):
            if state.get(to) == "open":
                found.append(" -> ".join(stack[stack.index(to):] + [to]))
            elif to not in state:
                visit(to)
        stack.pop()
        state[node] = "done"

    for node in sorted(graph):
        if node not in state:
            visit(node)
    return found


def wrong_floors(root):
    """Floors that doc/structure.md does not list as FLOORS has them."""
    with open(os.path.join(root, PAGE), encoding="utf-8") as f:
        items = re.findall(r"^\d+\. ((?:`[^`\n]+`(?:, )?)+):", f.read(), re.M)
    said = [sorted(re.findall(r"`([^`]+)`", item)) for item in items]
    top = [f for f in os.listdir(os.path.join(root, "kernel")) if f.endswith(".c")]
    floors = [sorted([p.removeprefix("kernel/").rstrip("/") for p in patterns] if patterns != ["kernel/"] else top)
              for patterns in FLOORS]
    return [f"{PAGE}: floor {n}: found {' '.join(a) or 'none'}, expected {' '.join(b) or 'none'}"
            for n, (a, b) in enumerate(itertools.zip_longest(said, floors, fillvalue=[]), 1) if a != b]


def examine(root):
    bad = {"layers": [], "floors": [], "includes are rooted and exist": [], "private headers": [], "pragma once": [],
           "no include circles": [], "no architecture #if outside the ports": [], "files open with a comment": []}
    bad["the page has the same floors"] = wrong_floors(root)
    graph = {}
    for path in sources(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        if not text.startswith(("/*", "//")):
            bad["files open with a comment"].append(f"{path}:1: found {text.splitlines()[:1]}")
        if path.endswith(".h"):
            code = re.sub(r"/\*.*?\*/", "", text, flags=re.S).strip()
            if not code.startswith("#pragma once"):
                bad["pragma once"].append(f"{path}: found {code.splitlines()[:1]}, expected #pragma once")
        for number, line in enumerate(text.splitlines(), 1):
            m = INCLUDE.match(line)
            if m:
                error = check_layer(path, number, *m.groups())
                if error:
                    bad["layers"].append(error)
                if m.group(1) == '"' and path.startswith("kernel/") and m.group(2).startswith("kernel/"):
                    error = check_floor(path, number, m.group(2))
                    if error:
                        bad["floors"].append(error)
                if (m.group(2).endswith("_private.h") and not path.startswith("tests/")
                        and os.path.dirname(path) != os.path.dirname(m.group(2))):
                    bad["private headers"].append(f"{path}:{number}: found {m.group(2)}, which is of its folder alone")
                if m.group(1) == '"':
                    if not os.path.exists(os.path.join(root, m.group(2))):
                        bad["includes are rooted and exist"].append(
                            f'{path}:{number}: no file {m.group(2)}, expected a path from the root')
                    elif path.endswith(".h"):
                        graph.setdefault(path, []).append(m.group(2))
            elif re.match(r"^\s*#\s*(if|elif|ifdef|ifndef)\b", line) and ARCH_WORDS.search(line):
                if not ARCH_FOLDERS.match(path):
                    bad["no architecture #if outside the ports"].append(f"{path}:{number}: {line.strip()}")
    bad["no include circles"] = circles(graph)
    return bad


def main(argv):
    root = argv[1] if len(argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    bad = examine(root)
    print(f"1..{len(bad)}")
    for n, (name, errors) in enumerate(bad.items(), 1):
        for error in errors:
            print(f"# {error}")
        print(f"{'not ok' if errors else 'ok'} {n} - {name}")
    return any(bad.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv))
