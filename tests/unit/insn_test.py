#!/usr/bin/python3
"""insn_test.py - what the kernel knows of instructions (arch/*/insn.c), for all code of the kernel with its tests, and
of a program, is what objdump says. A run of everything looks at one port's kernel, and at another's program (part.py)."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from part import LEFT_OUT, seed, shuffled  # noqa: E402

TOOLS = {"x86_64": "", "aarch64": "aarch64-linux-gnu-"}
FORMS = 500  # copies that are looked at
INSN = re.compile(r"^ *([0-9a-f]+):\t((?:[0-9a-f]+ )+) *\t?(.*)$")
# What must be emulated, and what may not be probed. Anything else runs from a copy.
EMULATED = {"x86_64": r"(bnd |addr32 |repz |notrack )?(j[a-z]+|call[q]?|ret[q]?)\b(?!.*[gf]s:)",
            "aarch64": r"(b|bl|b\.\w+|cbn?z|tbn?z|br|blr|ret|adrp?)\b|ldr(sw)?\t[wx]\w+, [0-9a-f]{4,} "}
REFUSED = {"x86_64": r"pushf|popf|cli|sti|hlt|iret|sysret|syscall|swapgs|int3|int\b|ud[012]|into|lret|lcall|ljmp|mov +\S+,%[cdefgs]s$|"
                     r"loop|jr?e?cxz|[ls][gi]dt|invlpg|stac|clac|xsetbv|xgetbv|lmsw|smsw|rdtscp|monitor|mwait|vm(call|launch|resume|x|ptr|clear|load|save|run|func|read|write)|bnd|x(begin|abort|test|end)\b",
           "aarch64": r"(svc|hvc|smc|brk|hlt|udf|eret|drps|wf[ie]|dcps\d|clrex|(ld|st)a?l?xp?[rp]?[bh]?)\b|\.inst|.*\bdaif|msr\t(spsel|pan|uao|dit|ssbs)"}


def functions(arch, image):
    """[(address, [(address, bytes, text)])] of the code of an image."""
    symbols = subprocess.run([TOOLS[arch] + "nm", image], capture_output=True, text=True, check=True).stdout
    end = re.findall(r"^([0-9a-f]+) \w __fbt_tails$", symbols, re.M)  # stubs from there on have data between them
    out = subprocess.run([TOOLS[arch] + "objdump", "-d", "-w", "-j", ".text", *(f"--stop-address=0x{e}" for e in end), image],
                         capture_output=True, text=True, check=True).stdout
    found = []
    for at, tab, rest in (line.partition(":\t") for line in out.splitlines()):  # half a million: INSN takes longer
        if tab:
            code, text = bytes.fromhex(rest.partition("\t")[0]), rest.partition("\t")[2].strip()
            found[-1][1].append((int(at, 16), code[::-1] if arch == "aarch64" else code, text))
        elif at.endswith(">:"):
            found.append((int(at.split()[0], 16), []))
    return [f for f in found if f[1]]


def contiguous(insns):
    """objdump leaves out long runs of zeroes."""
    return all(a[0] + len(a[1]) == b[0] for a, b in zip(insns, insns[1:]))


def said(arch, code):
    """{address: (length, what, rest)} as the port says."""
    lines = "".join(f"{at:x} {b''.join(i[1] for i in insns).hex()}\n" for at, insns in code)
    out = subprocess.run([ROOT / "build/host/unit" / f"insn_{arch}"], input=lines, capture_output=True, text=True, check=True).stdout
    return {int(f[0], 16): (int(f[1]), f[2], f[3] if len(f) > 3 else "") for f in (line.split(" ", 3) for line in out.splitlines())}


def expected(arch, text):
    if re.match(REFUSED[arch], text):
        return "refuse"
    return "emulate" if re.match(EMULATED[arch], text) else "copy"


def disagreements(arch, code, found):
    found, wrong, count, exclusive = dict(found), [], 0, 0
    for _, insns in code:
        for at, b, text in insns:
            length, what, rest = found.pop(at, (0, "not an instruction", ""))
            count += 1
            if "exclusive" in rest:
                exclusive += 1
            elif (length, what) != (len(b), expected(arch, text)):
                wrong.append(f"{at:x} {b.hex()} {text}: {length} bytes, {what} {rest}; expected {len(b)}, {expected(arch, text)}")
    wrong += [f"{at:x}: no instruction begins here" for at in found]
    return count, exclusive, wrong


def disassembled(arch, slots):
    """What objdump says of each slot, as if it were at the address for slots."""
    machine = ["-m", "i386:x86-64"] if arch == "x86_64" else ["-m", "aarch64"]
    with tempfile.TemporaryDirectory() as tmp:
        paths = [pathlib.Path(tmp) / str(n) for n in range(len(slots))]
        for path, slot in zip(paths, slots):
            path.write_bytes(slot)
        out = subprocess.run([TOOLS[arch] + "objdump", "-D", "-w", "-b", "binary", *machine, "--adjust-vma=0xffffffff80000000", *paths],
                             capture_output=True, text=True, check=True).stdout
    parts = out.split("file format binary")[1:]
    assert len(parts) == len(slots), f"objdump: {len(parts)} parts of {len(slots)} files"
    return parts


def copies(arch, code, found):
    """Slots disassembled: the same operation on the same operands, then a jump to the next instruction."""
    texts = {at: (len(b), t) for _, insns in code for at, b, t in insns}
    slots = [(at, bytes.fromhex(rest)) for at, (_, what, rest) in found.items() if what == "copy"]
    wrong = []
    # One of each form is enough: the first bytes tell it.
    slots = list({(len(s), s[:3] if arch == "x86_64" else s[2:4]): (at, s) for at, s in slots}.values())
    slots = slots[::len(slots) // FORMS + 1]
    for (at, _), out in zip(slots, disassembled(arch, [slot for _, slot in slots])):
        lines = [m.group(3).strip() for line in out.splitlines() if (m := INSN.match(line))]
        length, text = texts[at]
        plain = [re.sub(r" *(#|//) .*| <.*|0x[0-9a-f]+(?=\(%rip\))|\s+", " ", t).strip() for t in (lines[0], text)]
        target = [re.search(r"# 0x([0-9a-f]+)|# ([0-9a-f]+)", t) for t in (lines[0], text)]
        if all(target) and int(target[0].group(1) or target[0].group(2), 16) != int(target[1].group(1) or target[1].group(2), 16):
            wrong.append(f"{at:x} {text}: the copy is {lines[0]}")
        if plain[0].replace(" ", "") != plain[1].replace(" ", "") or len(lines) != 3:
            wrong.append(f"{at:x} {text}: the copy is {lines}")
        jump = re.match(r"(?:jmp[q]?|b)\s+(?:0x)?([0-9a-f]+)", lines[-1])
        if jump is None or int(jump.group(1), 16) != at + length:
            wrong.append(f"{at:x} {text}: the slot ends with {lines[-1]}, expected a jump to {at + length:x}")
        if not re.match(r"sti|msr\s+daifclr, #0x2", lines[1]):
            wrong.append(f"{at:x} {text}: the slot goes on with {lines[1]}, expected that interrupts are turned on")
    return len(slots), wrong


def main():
    number = failed = 0
    print("TAP version 13")
    for turn, arch in enumerate(shuffled(TOOLS, "instructions")):
        for n, kernel in enumerate(("kestrel-test", "linux_test")):  # and a program
            image = ROOT / "build" / arch / kernel
            if not image.exists():
                continue
            if seed() and n != turn:
                number += 1
                print(f"ok {number} - {arch}/{kernel} # SKIP {LEFT_OUT}")
                continue
            code = [f for f in functions(arch, image) if contiguous(f[1])]
            found = said(arch, code)
            count, exclusive, wrong = disagreements(arch, code, found)
            checks = [(f"{arch}/{kernel}: every instruction begins, ends and is run as objdump says", count > 50000 and not wrong, wrong[:20],
                       f"{count} instructions, {exclusive} in exclusive sequences")]
            if kernel == "kestrel-test":
                n, wrong = copies(arch, code, found)
                checks.append((f"{arch}/{kernel}: a slot does what the instruction does", n > 100 and not wrong, wrong[:20], f"{n} forms"))
            for name, good, diagnostics, note in checks:
                number, failed = number + 1, failed + (not good)
                print("\n".join(f"# {line}" for line in [note, *diagnostics]))
                print(f"{'ok' if good else 'not ok'} {number} - {name}")
    print(f"1..{number}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
