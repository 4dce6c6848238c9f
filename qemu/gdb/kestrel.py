"""kestrel.py - gdb commands for a Kestrel that runs, hangs or is dead, over QEMU's gdb stub or on a memory dump:
ktr show, ktr stats, ktr sites, ktr save, ktr core, ps, bt all. `make debug` loads it; else: source qemu/gdb/kestrel.py.

What is where in memory comes from the kernel's debugging information. The log is decoded by ktrdump and by nothing
else: the memory that the log's root tells of becomes a small ELF core, which ktrdump -M reads.
"""
import contextlib
import fnmatch
import mmap
import os
import pathlib
import re
import struct
import subprocess
import tempfile

import gdb

KTRDUMP = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "host" / "ktrdump"
LOG_MAX = 256 << 20  # more than that is a damaged root
LIST_MAX = 65536
SHOW_DEFAULT = 50
ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
ELF_SEGMENT = struct.Struct("<IIQQQQQQ")
ET_CORE, PT_LOAD = 4, 1
_scratch = None


def scratch(name):
    """A file of ours, in a folder that goes away with gdb."""
    global _scratch
    if _scratch is None:
        _scratch = tempfile.TemporaryDirectory(prefix="kestrel-gdb-")
    return pathlib.Path(_scratch.name) / name


# ---- memory ----------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def kernel_memory():
    """The kernel's memory can be read: QEMU's Arm CPU in user mode would refuse it, so that one is in EL1h meanwhile."""
    cpsr = None
    try:
        gdb.selected_frame()
        value = int(gdb.parse_and_eval("(unsigned long)$cpsr")) & 0xffffffff
        if value & 0x1f == 0:
            gdb.execute(f"set $cpsr = {value | 5}")
            cpsr = value
    except gdb.error:
        pass  # not an Arm CPU, or one whose registers stay as they are
    try:
        yield
    except gdb.MemoryError as e:
        raise gdb.GdbError(f"{e}; the kernel's memory is not there: has it booted? `ktr core FILE` opens a dump")
    finally:
        if cpsr is not None:
            gdb.execute(f"set $cpsr = {cpsr}")


def read(va, size):
    return bytes(gdb.selected_inferior().read_memory(va, size))


def text(value, otherwise="-"):
    """A C string of the guest's that may be NULL or nonsense."""
    try:
        return value.string(errors="replace", length=-1) if int(value) != 0 else otherwise
    except gdb.error:
        return f"(bad {int(value):#x})"


def kernel_file():
    name = gdb.current_progspace().filename
    if name is None:
        raise gdb.GdbError("no kernel is loaded: file build/ARCH/kestrel")
    return name


# ---- the log ---------------------------------------------------------------------------------------------------------

def image_root():
    pointer = gdb.parse_and_eval("ktr_image")
    if int(pointer) == 0:
        raise gdb.GdbError("ktr_image is 0: expected the address of the log's root; has the kernel booted?")
    root = pointer.dereference()
    magic = bytes(int(root["magic"][i]) & 0xff for i in range(8))
    if magic != b"KTRIMAGE":
        raise gdb.GdbError(f"the log's root at {int(pointer):#x} begins with {magic!r}: expected KTRIMAGE; is this the "
                           "kernel that runs, and has it booted?")
    return root


def log_ranges(root):
    """(address, size) of all that the log consists of."""
    yield int(root.address), int(root["size"])
    yield int(root["sites"]), int(root["site_count"]) * int(root["site_size"])
    yield int(root["names"]), int(root["names_size"])
    first, last = root["texts"].type.range()
    for n in range(first, last + 1):
        yield int(root["texts"][n]["start"]), int(root["texts"][n]["size"])
    for n in range(min(int(root["ring_count"]), root["rings"].type.range()[1] + 1)):
        ring = root["rings"][n]
        if int(ring["entries"]) != 0:
            yield int(ring["slots"]), int(ring["entries"]) * int(root["entry_size"])
            yield int(ring["head"]), 8


def write_core(path, ranges):
    """An ELF core with that memory, at the kernel's own addresses."""
    ranges = [(va, size) for va, size in ranges if va != 0 and size != 0]
    if sum(size for _, size in ranges) > LOG_MAX:
        raise gdb.GdbError(f"the log's root tells of more than {LOG_MAX >> 20} MiB: it is damaged")
    at = ELF_HEADER.size + len(ranges) * ELF_SEGMENT.size
    with open(path, "wb") as f:
        f.write(ELF_HEADER.pack(b"\x7fELF\x02\x01\x01", ET_CORE, 0, 1, 0, ELF_HEADER.size, 0, 0, ELF_HEADER.size,
                                ELF_SEGMENT.size, len(ranges), 0, 0, 0))
        for va, size in ranges:
            f.write(ELF_SEGMENT.pack(PT_LOAD, 0, at, va, va, size, size, 0))
            at += size
        for va, size in ranges:
            f.write(read(va, size))


def ktrdump(*options):
    """What ktrdump prints of the log."""
    core = scratch("log.core")
    with kernel_memory():
        write_core(core, log_ranges(image_root()))
    try:
        p = subprocess.run([KTRDUMP, *options, "-N", kernel_file(), "-M", core], capture_output=True)
    except OSError as e:
        raise gdb.GdbError(f"{KTRDUMP}: {e.strerror}; run make")
    finally:
        os.unlink(core)
    if p.returncode == 2:
        raise gdb.GdbError(p.stderr.decode(errors="replace").strip())
    gdb.write(p.stderr.decode(errors="replace"))
    return p.stdout.decode(errors="replace")


class Ktr(gdb.Command):
    """The event log: of the machine that gdb is connected to, or of a memory dump (ktr core)."""

    def __init__(self):
        super().__init__("ktr", gdb.COMMAND_DATA, prefix=True)


class KtrShow(gdb.Command):
    """Print the newest events, oldest first, all CPUs in the order of time.
usage: ktr show [N] [OPTION]...
N: how many (default: 50; 0: all). Options are ktrdump's; without any: -ct.
  ktr show 20 -ctf --class SCHED --cpu 1
  ktr show 0 --grep 'fork: *'"""

    OPTIONS = ("-c", "-t", "-f", "-H", "-r", "-q", "--class", "--cpu", "--thread", "--grep", "--since", "--until",
               "--format", "--ticks")

    def __init__(self):
        super().__init__("ktr show", gdb.COMMAND_DATA)

    def invoke(self, argument, _):
        words = gdb.string_to_argv(argument)
        count = int(words.pop(0)) if words and words[0].isdigit() else SHOW_DEFAULT
        lines = ktrdump(*(words or ["-ct"])).splitlines()
        # The two lines of the columns' names stay above.
        head = 2 if len(lines) > 1 and re.fullmatch(r"[- ]+", lines[1]) else 0
        skip = max(len(lines) - count, head) if count else head
        gdb.write("".join(line + "\n" for line in lines[:head] + lines[skip:]))

    def complete(self, line, word):
        # To gdb a word begins behind the dashes.
        last = line.split(" ")[-1]
        return [option[len(last) - len(word):] for option in self.OPTIONS if option.startswith(last)]


class KtrStats(gdb.Command):
    """Print how many events there are by class, site and CPU, and what was lost.
usage: ktr stats"""

    def __init__(self):
        super().__init__("ktr stats", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument, _):
        if argument:
            raise gdb.GdbError("usage: ktr stats")
        gdb.write(ktrdump("--stats"))


class KtrSave(gdb.Command):
    """Write the log into a file, as a stream that ktrdump reads.
usage: ktr save FILE"""

    def __init__(self):
        super().__init__("ktr save", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, _):
        words = gdb.string_to_argv(argument)
        if len(words) != 1:
            raise gdb.GdbError("usage: ktr save FILE")
        path = os.path.expanduser(words[0])
        ktrdump("--format", "stream", "-o", path)
        gdb.write(f"{os.path.getsize(path)} bytes in {path}\n")


class KtrSites(gdb.Command):
    """List trace points: number, on or off, file and line, format.
usage: ktr sites [GLOB]
GLOB: only those whose format, function or file it matches.
  ktr sites fork*"""

    def __init__(self):
        super().__init__("ktr sites", gdb.COMMAND_DATA)

    def invoke(self, argument, _):
        with kernel_memory():
            for n, site in self.sites():
                names = [text(site[k]) for k in ("fmt", "func", "file")]
                if argument and not any(fnmatch.fnmatchcase(name, argument) for name in names):
                    continue
                gdb.write(f"{n:4} {'on ' if int(site['on']) else 'off'} {names[2]}:{int(site['line'])} {names[0]}\n")

    @staticmethod
    def sites():
        root = image_root()
        first = gdb.Value(int(root["sites"])).cast(gdb.lookup_type("struct ktr_site").pointer())
        for n in range(min(int(root["site_count"]), LIST_MAX)):
            yield n, first[n]

    def complete(self, _, word):
        with kernel_memory():
            return sorted({name for _, site in self.sites() for name in (text(site["func"]), text(site["file"]))
                           if name.startswith(word)})


# ---- dumps -----------------------------------------------------------------------------------------------------------

class Dump:
    """A memory dump of QEMU's dump-guest-memory. It has physical addresses, and gdb wants the kernel's: so gdb gets a copy
with segments for the kernel's pages, as its page tables have them."""

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
        """(offset in the file, bytes from there on) of a physical address; None: not in the dump."""
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
        """The log's root, which tells where the page tables are."""
        kind = gdb.lookup_type("struct ktr_image_root")
        at = self.data.find(b"KTRIMAGE")
        while at >= 0 and at + kind.sizeof <= len(self.data):
            root = gdb.Value(self.data[at:at + kind.sizeof], kind)
            if int(root["version"]) == 1 and int(root["self"]) >> 47 and int(root["tables"]):
                return root
            at = self.data.find(b"KTRIMAGE", at + 8)
        raise gdb.GdbError(f"{self.path}: no event log is in the dumped memory, whose root tells of page tables")

    def pages(self, table, level, va, x86):
        """(virtual, physical, size) of what the kernel maps."""
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
        """As pages(), but joined, and cut to what the dump has: (virtual, physical, offset in the file, size)."""
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
            raise gdb.GdbError(f"{self.path}: it is of {found}, but {kernel_file()} is {expected}")
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
            # No sections: the dump has none that tell anything.
            self.header[6], self.header[10], self.header[11:] = 0, len(notes) + len(runs), [0, 0, 0]
            f.seek(0)
            f.write(ELF_HEADER.pack(*self.header))


class KtrCore(gdb.Command):
    """Open a memory dump of QEMU's dump-guest-memory, for all commands: bt, print, ktr show, ps.
usage: ktr core FILE
gdb's core-file knows it by physical addresses only."""

    def __init__(self):
        super().__init__("ktr core", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, _):
        words = gdb.string_to_argv(argument)
        if len(words) != 1:
            raise gdb.GdbError("usage: ktr core FILE")
        kernel_file()
        path = scratch("kernel.core")
        try:
            Dump(os.path.expanduser(words[0])).convert(path)
        except (OSError, ValueError, subprocess.CalledProcessError) as e:
            raise gdb.GdbError(f"{words[0]}: {e}")
        gdb.execute(f"core-file {path}")


# ---- threads ---------------------------------------------------------------------------------------------------------

def listed(head, kind, member):
    """Elements of a kernel's list (kernel/lib/list.h)."""
    pointer = gdb.lookup_type(kind).pointer()
    offset = next(f.bitpos // 8 for f in pointer.target().fields() if f.name == member)
    end, at = int(head.address), head["next"]
    for _ in range(LIST_MAX):
        if int(at) == end:
            return
        yield gdb.Value(int(at) - offset).cast(pointer).dereference()
        at = at["next"]
    gdb.write(f"the list of {kind} at {end:#x} has no end\n")


class Ps(gdb.Command):
    """List threads: state, what they wait for, process group and user, name.
usage: ps"""

    def __init__(self):
        super().__init__("ps", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE)

    def invoke(self, argument, _):
        if argument:
            raise gdb.GdbError("usage: ps")
        with kernel_memory():
            gdb.write(f"{'TID':>6} {'PRIO':>4} {'CPU':>3} {'STATE':8} {'WAITS FOR':12} {'PGRP':>6} {'UID':>5} NAME\n")
            for t in listed(gdb.parse_and_eval("'kernel/sched/thread.c'::threads"), "struct thread", "all"):
                self.line(t)

    @staticmethod
    def line(t):
        state = str(t["state"]).removeprefix("THREAD_").lower()
        why = "-"
        if state == "sleeping":
            state = "blocked" if int(t["lockname"]) else "sleeping"
            why = text(t["lockname"] if int(t["lockname"]) else t["wmesg"])
        group, uid, name = "-", "-", f"[{text(t['name'])}]"
        if int(t["proc"]):
            p = t["proc"].dereference()
            group, uid, name = int(p["pgid"]), int(p["uid"]), text(t["name"])
        gdb.write(f"{int(t['tid']):6} {int(t['prio']):4} {int(t['cpu']):3} {state:8} {why:12} {group:>6} {uid:>5} {name}\n")


class Bt(gdb.Command):
    """Print a backtrace, as backtrace does; `bt all`: of every CPU.
usage: bt all | bt [ARGUMENT of backtrace]..."""

    def __init__(self):
        super().__init__("bt", gdb.COMMAND_STACK)

    def invoke(self, argument, _):
        if argument.strip() != "all":
            gdb.execute(f"backtrace {argument}")
            return
        before = gdb.selected_thread()
        if before is None:
            raise gdb.GdbError("no machine, and no dump: target remote, or ktr core FILE")
        for cpu, thread in enumerate(sorted(gdb.selected_inferior().threads(), key=lambda t: t.num)):
            thread.switch()
            gdb.write(f"cpu {cpu}\n")
            try:
                gdb.execute("backtrace")
            except gdb.error as e:  # one that does not run yet, or has no stack, costs the others nothing
                gdb.write(f"{e}\n")
        before.switch()

    def complete(self, _, word):
        return ["all"] if "all".startswith(word) else gdb.COMPLETE_EXPRESSION


for command in (Ktr, KtrShow, KtrStats, KtrSites, KtrSave, KtrCore, Ps, Bt):
    command()
