"""fbtcheck.py - events of functions, for tests: calls and returns, and whether they belong together."""
import re
import subprocess

from harness import ARCH, BUILD, boot, check

ENTRY = re.compile(r"^-> ([\w.]+)\(.*\)$")
RETURN = re.compile(r"^<- ([\w.]+)\+(0x[0-9a-f]+)(?: = .*| jumps to ([\w.]+))?$")
NM = {"x86_64": "nm", "aarch64": "aarch64-linux-gnu-nm"}
OBJDUMP = {"x86_64": "objdump", "aarch64": "aarch64-linux-gnu-objdump"}


def calls_of(e):
    """("->" or "<-", function) of an event of a function; None of any other."""
    for what, regex in (("->", ENTRY), ("<-", RETURN)):
        if m := regex.match(e["text"]):
            return what, m.group(1)
    return None


def calls(run):
    """(event, "->" or "<-", function) of every event of a function."""
    return [(e, *call) for e in run.events if (call := calls_of(e))]


def pairs_match(run, since, until):
    """On each thread a return is that of the innermost function that was entered. An interrupt's functions nest in what
    it interrupted. A thread that begins has an empty stack, and what was entered before is not known, nor where events of any
    CPU are lost. Of the flush thread only the switches are recorded, and the interrupts: half of its calls."""
    stacks, checked, gaps = {}, 0, sorted((g["from_ns"], g["to_ns"]) for g in run.gaps)
    for e, what, name in calls(run):
        while gaps and gaps[0][0] <= e["ns"]:
            stacks, since = {}, max(since, gaps.pop(0)[1])
        if e["ns"] <= since or e["ns"] >= until or e["thread"] == "ktrflush":
            continue
        stack = stacks.setdefault(e["tid"], [])
        if what == "->":
            stack.append(name)
            continue
        if name not in stack:  # entered before
            check(set(stack) <= no_return(), f"{name} returns at {e['ns']} ns on thread {e['tid']}, but {stack} were entered after it")
            stack.clear()
            continue
        # What does not return to its caller, as a thread that ends, leaves its entry on the stack.
        while (top := stack.pop()) != name:
            check(top in no_return(), f"{name} returns at {e['ns']} ns on thread {e['tid']}, but {top} was entered last")
        checked += 1
    return checked


_no_return = None


def no_return():
    """Functions without a return, as the image says: their names have an entry's probe only."""
    global _no_return
    if _no_return is None:
        out = boot("ktr probes fbt:::\n").expect().out
        rows = [line.split()[3:8] for line in out.splitlines()[1:]]
        entries = {r[2] for r in rows if r[3] == "entry"}
        _no_return = entries - {r[2] for r in rows if r[3] == "return"}
        check(len(entries) > 800, f"{len(entries)} functions, expected more")
    return _no_return


def symbols():
    """{name: address} of the kernel."""
    rows = subprocess.run([NM[ARCH], BUILD / "kestrel"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: int(addr, 16) for addr, _, name in (row.split() for row in rows if row[0] != " ")}


def disassembly():
    """({function: its addresses}, {address: (mnemonic, operands)}) of the kernel, as objdump sees it."""
    code = subprocess.run([OBJDUMP[ARCH], "-d", "--no-show-raw-insn", BUILD / "kestrel"], capture_output=True, text=True,
                          check=True).stdout
    starts, places = {}, {}
    for line in code.splitlines():
        if m := re.match(r"^([0-9a-f]{16}) <([\w.]+)>:$", line):
            starts.setdefault(m.group(2), []).append(int(m.group(1), 16))
        elif m := re.match(r"^([0-9a-f]{16}):\s+(\w\S*)\s*(.*)$", line.strip()):
            places[int(m.group(1), 16)] = m.group(2), m.group(3)
    return starts, places
