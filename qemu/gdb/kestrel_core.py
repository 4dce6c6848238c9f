"""kestrel_core.py - memory dumps for kestrel.py: writes one for ktrdump from what gdb reads, and makes QEMU's
readable for gdb.
"""
import mmap
import os
import struct
import subprocess

import gdb

LOG_MAX = 256 << 20  # a log that claims more is damaged
ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
ELF_SEGMENT = struct.Struct("<IIQQQQQQ")
ET_CORE, PT_LOAD = 4, 1


def kernel_file():
    name = gdb.current_progspace().filename
    if name is None:
        raise gdb.GdbError("no kernel is loaded: file build/ARCH/kestrel")
    return name


def write_core(path, ranges, read):
    """Writes an ELF core with the memory at these (address, size), at the kernel's virtual addresses."""
    ranges = [(va, size) for va, size in ranges if va != 0 and size != 0]
    if sum(size for _, size in ranges) > LOG_MAX:
        raise gdb.GdbError(f"the log's root claims more than {LOG_MAX >> 20} MiB: it is damaged")
    at = ELF_HEADER.size + len(ranges) * ELF_SEGMENT.size
    with open(path, "wb") as f:
        f.write(ELF_HEADER.pack(b"\x7fELF\x02\x01\x01", ET_CORE, 0, 1, 0, ELF_HEADER.size, 0, 0, ELF_HEADER.size,
                                ELF_SEGMENT.size, len(ranges), 0, 0, 0))
        for va, size in ranges:
            f.write(ELF_SEGMENT.pack(PT_LOAD, 0, at, va, va, size, size, 0))
            at += size
        for va, size in ranges:
            f.write(read(va, size))


class Dump:
    """A memory dump of QEMU's dump-guest-memory. It has physical addresses, but gdb needs the kernel's. So gdb gets
    a copy with segments for the pages in the kernel's page tables."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self.header = list(ELF_HEADER.unpack_from(self.data))
            if not self.data[:6] == b"\x7fELF\x02\x01" or self.header[1] != ET_CORE:
                raise ValueError
            offset, size, count = self.header[5], self.header[9], self.header[10]
            self.segments = [ELF_SEGMENT.unpack_from(self.data, offset + i * size) for i in range(count)]
        except (struct.error, ValueError):
            raise gdb.GdbError(f"{path}: expected an ELF core, as QEMU's dump-guest-memory makes it without a format")

    def find(self, phys):
        """(offset in the file, bytes from there on) of a physical address. None: not in the dump."""
        for kind, _, at, _, start, size, _, _ in self.segments:
            if kind == PT_LOAD and start <= phys < start + size:
                return at + phys - start, start + size - phys
        return None

    def table(self, phys):
        place = self.find(phys)
        if place is None or place[0] + 4096 > len(self.data):
            return ()
        return struct.unpack_from("<512Q", self.data, place[0])

    def root(self):
        """The log's root, which holds the address of the page tables."""
        kind = gdb.lookup_type("struct ktr_image_root")
        at = self.data.find(b"KTRIMAGE")
        while at >= 0 and at + kind.sizeof <= len(self.data):
            root = gdb.Value(self.data[at:at + kind.sizeof], kind)
            if int(root["size"]) == kind.sizeof and int(root["self"]) >> 47 and int(root["tables"]):
                return root
            at = self.data.find(b"KTRIMAGE", at + 8)
        raise gdb.GdbError(f"{self.path}: the dumped memory has no event log with the address of page tables")

    def pages(self, table, level, va, x86):
        """(virtual, physical, size) of each mapping of the kernel."""
        for index, entry in enumerate(self.table(table)):
            shift = 12 + 9 * level
            if not entry & 1 or (level == 3 and x86 and index < 256):
                continue
            target, here = entry & 0x0000fffffffff000, va | index << shift
            leaf = level == 0 or (level < 3 and (entry >> 7 & 1 if x86 else not entry >> 1 & 1))
            if leaf:
                yield here, target & ~((1 << shift) - 1), 1 << shift
            else:
                yield from self.pages(target, level - 1, here, x86)

    def mapped(self, root):
        """Like pages(), but adjacent ones joined, and limited to the dump: (virtual, physical, offset in the file,
        size)."""
        runs = []
        x86 = bytes(int(root["arch"][i]) & 0xff for i in range(6)) == b"x86_64"
        for va, phys, size in self.pages(int(root["tables"]), 3, 0xffff << 48, x86):
            place = self.find(phys)
            if place is None:
                continue
            at, room = place
            size = min(size, room)
            if runs and runs[-1][0] + runs[-1][3] == va and runs[-1][2] + runs[-1][3] == at:
                runs[-1][3] += size
            else:
                runs.append([va, phys, at, size])
        return runs

    def convert(self, path):
        root = self.root()
        found = bytes(int(root["build"][i]) & 0xff for i in range(root["build"].type.sizeof)).split(b"\0")[0].decode()
        expected = f"kestrel {gdb.objfiles()[0].build_id}"
        if found != expected:
            raise gdb.GdbError(f"{self.path}: it is a dump of {found}, but {kernel_file()} is {expected}")
        runs = self.mapped(root)
        notes = [s for s in self.segments if s[0] != PT_LOAD]
        subprocess.run(["cp", "--reflink=auto", "--sparse=always", self.path, path], check=True)
        os.chmod(path, 0o600)
        with open(path, "r+b") as f:
            self.header[5] = f.seek(0, os.SEEK_END)
            for note in notes:
                f.write(ELF_SEGMENT.pack(*note))
            for va, phys, at, size in runs:
                f.write(ELF_SEGMENT.pack(PT_LOAD, 7, at, va, phys, size, size, 0))
            # No sections: those of the dump are of no use here.
            self.header[6], self.header[10], self.header[11:] = 0, len(notes) + len(runs), [0, 0, 0]
            f.seek(0)
            f.write(ELF_HEADER.pack(*self.header))
