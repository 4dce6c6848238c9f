#!/usr/bin/python3
"""mksyms.py - writes the symbol and line tables of a kernel image (format: kernel/debug/ksyms.h).

usage: mksyms.py CROSS IMAGE OUTPUT       makes the tables
       mksyms.py --check CROSS ONE OTHER  fails when a symbol moved between two links
"""
import os
import re
import struct
import subprocess
import sys


def symbols(cross, image):
    """(address, name) of functions and objects, by address; the first name of an address wins."""
    out = subprocess.run([cross + "nm", "-n", image], check=True, capture_output=True, text=True).stdout
    found = {}
    for line in out.splitlines():
        addr, kind, name = line.split(None, 2)
        if kind in "tTdDbBrR" and int(addr, 16) >= 1 << 63 and not name.startswith((".L", "__ksyms")):
            found.setdefault(int(addr, 16), name)
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


def make(cross, image, output):
    syms = symbols(cross, image)
    base = syms[0][0]
    rows = [r for r in lines(cross, image) if r[0] >= base]
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
    data += b"".join(struct.pack("<I", name(f)) for f in files)
    head = struct.pack("<IIIIQQ", 0x4D59534B, len(syms), len(rows), len(files), base, len(names))
    with open(output, "wb") as f:
        f.write(head + data + names)


def main(argv):
    if len(argv) == 5 and argv[1] == "--check":
        one, other = symbols(argv[2], argv[3]), symbols(argv[2], argv[4])
        moved = {s for s in set(one) ^ set(other) if s[1] != "__kernel_end"}
        if moved:
            sys.exit(f"mksyms: symbols moved between the links: {sorted(moved)[:5]}")
    elif len(argv) == 4:
        make(*argv[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
