#!/usr/bin/python3
"""mksyms.py - writes the symbol, line and frame tables of a kernel image (format: kernel/lib/ksyms.h).

usage: mksyms.py CROSS IMAGE OUTPUT PREFIX  makes the tables; sys_NAME is PREFIXsys_NAME, too
       mksyms.py --check CROSS ONE OTHER    fails when a symbol moved between two links
"""
import os
import re
import struct
import subprocess
import sys


def symbols(cross, image):
    """(address, name) of functions and objects, by address. Of several names the first wins, but any name wins over
    a section's (__…)."""
    out = subprocess.run([cross + "nm", "-n", image], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        addr, kind, name = line.split(None, 2)
        if kind in "tTdDbBrR" and int(addr, 16) >= 1 << 63 and not name.startswith((".L", "__ksyms")):
            known = found.setdefault(int(addr, 16), name)
            if known.startswith("__") and not name.startswith("__"):
                found[int(addr, 16)] = name
    return sorted(found.items())


def lines(cross, image):
    """(address, file, line) rows, by address; line 0 ends a sequence."""
    out = subprocess.run([cross + "readelf", "--debug-dump=decodedline", "-W", image], check=True,
                         capture_output=True, text=True, errors="replace").stdout
    rows = {}
    path = None
    for line in out.splitlines():
        m = re.match(r"^(?:CU: )?(\S+\.[chS]):?$", line)
        if m:
            path = m.group(1)
            continue
        m = re.match(r"^(\S+)\s+(\d+|-)\s+(0x[0-9a-f]+)", line)
        if m and path is not None:
            addr = int(m.group(3), 16)
            if m.group(2) == "-":
                rows.setdefault(addr, (path, 0))
            else:
                rows[addr] = (path, int(m.group(2)))
    flat = []
    for addr, (path, number) in sorted(rows.items()):
        path = os.path.normpath(path[2:] if path.startswith("./") else path)
        if not flat or flat[-1][1:] != (path, number):
            flat.append((addr, path, number))
    return flat


CFA_FROM_FP, SAVED_FROM_BASE, CFA_WORDS = 0x8000, 0x4000, 0x3fff  # as kernel/lib/ksyms.h


def saved(rule):
    """Where a register is saved: words below the CFA; 0: not saved, None: the table cannot express it."""
    m = re.fullmatch(r"c-(\d+)", rule)
    if m is None:
        return 0 if rule in ("u", "s") else None
    return int(m.group(1)) // 8


def frame_rule(names, words):
    """(cfa, ra, fp) of a row of readelf's table; (0, 0, 0) if our table cannot express it."""
    row = dict(zip(names, words))
    m = re.fullmatch(r"(\w+)\+(\d+)", row["CFA"])
    places = [saved(row.get("ra", "u")), saved(row.get("rbp", row.get("x29", "u")))]
    # A trap frame also saves the stack pointer; arch_unwind_trap() handles those.
    if row.get("rsp", row.get("sp", "u")) != "u":
        return 0, 0, 0
    if m is None or m.group(1) not in ("rsp", "sp", "rbp", "x29") or None in places:
        return 0, 0, 0
    # The table stores the offset in words plus one, since 0 means unknown.
    cfa, flags = int(m.group(2)) // 8 + 1, CFA_FROM_FP if m.group(1) in ("rbp", "x29") else 0
    if max(places) > 255:  # the registers are saved at the other end of the frame
        places, flags = [cfa - n if n else 0 for n in places], flags | SAVED_FROM_BASE
    if cfa > CFA_WORDS or not all(0 <= n <= 255 for n in places):
        return 0, 0, 0
    return cfa | flags, *places


def frames(cross, image):
    """(address, cfa, ra, fp) rows of the call frame information, by address."""
    out = subprocess.run([cross + "readelf", "--debug-dump=frames-interp", "-W", image], check=True,
                         capture_output=True, text=True, errors="replace").stdout
    initial, rows, names, cie = {}, {}, [], None
    for line in out.splitlines():
        m = re.match(r"^([0-9a-f]{8}) [0-9a-f]+ [0-9a-f]+ (CIE|FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))", line)
        if m and m.group(2) == "CIE":
            cie = m.group(1)
        elif m:
            cie = None
            start, end = int(m.group(4), 16), int(m.group(5), 16)
            rows[start] = initial.get(m.group(3), (0, 0, 0))
            rows.setdefault(end, (0, 0, 0))
        elif line.split()[:1] == ["LOC"]:
            names = line.split()
        elif re.match(r"^[0-9a-f]{16} ", line):
            rule = frame_rule(names, line.split())
            if cie is not None:
                initial[cie] = rule
            else:
                rows[int(line.split()[0], 16)] = rule
    flat = []
    for addr, rule in sorted(rows.items()):
        if not flat or flat[-1][1:] != rule:
            flat.append((addr, *rule))
    return flat


def by_name(names):
    """A hash table (FNV-1a, linear probing), at most half full: numbers of names + 1; 0 is free."""
    size = 1 << (2 * len(names) - 1).bit_length()
    table = [0] * size
    for number, text in enumerate(names):
        slot = 2166136261
        for byte in text.encode():
            slot = (slot ^ byte) * 16777619 & 0xFFFFFFFF
        while table[slot % size]:
            slot += 1
        table[slot % size] = number + 1
    return struct.pack(f"<{size}I", *table)


# Functions with a name of FreeBSD's or of our own, and what Linux calls the one that does the same.
LINUX = {"callout_set": "hrtimer_start_range_ns", "callout_stop": "hrtimer_cancel", "kmalloc": "__kmalloc",
         "page_alloc": "alloc_pages", "vm_fault": "handle_mm_fault"}


def make(cross, image, output, prefix):
    syms = symbols(cross, image)
    base = syms[0][0]
    rows = [r for r in lines(cross, image) if r[0] >= base]
    rules = [r for r in frames(cross, image) if r[0] >= base]
    others = {(a, LINUX.get(n, prefix + n)) for a, n in syms if n in LINUX or re.fullmatch(r"sys_\w+", n)}
    syms = sorted(others | set(syms), key=lambda s: (s[0], s not in others))
    names, offsets = bytearray(), {}

    def name(text):
        if text not in offsets:
            offsets[text] = len(names)
            names.extend(text.encode() + b"\0")
        return offsets[text]

    files = sorted({r[1] for r in rows})
    number = {f: i for i, f in enumerate(files)}
    data = b"".join(struct.pack("<II", a - base, name(n)) for a, n in syms)
    data += b"".join(struct.pack("<IHH", a - base, number[f], min(l, 65535)) for a, f, l in rows)
    data += b"".join(struct.pack("<IHBB", a - base, cfa, ra, fp) for a, cfa, ra, fp in rules)
    data += b"".join(struct.pack("<I", name(f)) for f in files)
    if len(syms) > 16384:
        sys.exit(f"mksyms: {len(syms)} symbols are more than kernel/lib/ksyms.c takes")
    head = struct.pack("<IIIIIIQQ", 0x324D534B, len(syms), len(rows), len(rules), len(files), 0, base, len(names))
    names.extend(bytes(-len(names) % 4))  # not counted: who wants only names ends before
    with open(output, "wb") as f:
        f.write(head + data + names + by_name([n for _, n in syms]))


def main(argv):
    if argv[1:2] == ["--check"] and len(argv) == 5:
        one, other = symbols(argv[2], argv[3]), symbols(argv[2], argv[4])
        moved = {s for s in set(one) ^ set(other) if s[1] != "__kernel_end"}
        if moved:
            sys.exit(f"mksyms: symbols moved between the links: {sorted(moved)[:5]}")
    elif len(argv) == 5:
        make(*argv[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
