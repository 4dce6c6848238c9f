"""kestrel.py - gdb commands for a Kestrel that runs, hangs or has died, through QEMU's gdb stub or on a memory
dump: ktr show, ktr stats, ktr sites, ktr save, ktr core, ps, bt all, bt tid; those of a recorded run are in
kestrel_replay.py.
`make debug` loads it; otherwise: source qemu/gdb/kestrel.py.

The kernel's debugging information says where things are in memory. Only ktrdump decodes the log: the memory that
the log's root describes is written into a small ELF core, which ktrdump -M reads.
"""
import contextlib
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import gdb
import gdb.unwinder

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True  # no file beside the script
import kestrel_replay  # noqa: E402, F401  pylint: disable=unused-import
from kestrel_core import Dump, kernel_file, write_core  # noqa: E402

KTRDUMP = HERE.parent.parent / "build" / "host" / "ktrdump"
LIST_MAX = 65536
SHOW_DEFAULT = 50
_scratch = None


def scratch(name):
    """A path in a temporary folder, which is removed when gdb ends."""
    global _scratch
    if _scratch is None:
        _scratch = tempfile.TemporaryDirectory(prefix="kestrel-gdb-")
    return pathlib.Path(_scratch.name) / name


# ---- memory ----------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def kernel_memory():
    """Makes the kernel's memory readable inside the with block. QEMU's Arm CPU in user mode would refuse, so it is
    switched to EL1h meanwhile."""
    cpsr = None
    try:
        gdb.selected_frame()
        value = int(gdb.parse_and_eval("(unsigned long)$cpsr")) & 0xffffffff
        if value & 0x1f == 0:
            gdb.execute(f"set $cpsr = {value | 5}")
            cpsr = value
    except gdb.error:
        pass  # not an Arm CPU, or its registers cannot be written
    try:
        yield
    except gdb.MemoryError as e:
        raise gdb.GdbError(f"{e}; the kernel's memory is not readable: has it booted? `ktr core FILE` opens a dump")
    finally:
        if cpsr is not None:
            gdb.execute(f"set $cpsr = {cpsr}")


def read(va, size):
    return bytes(gdb.selected_inferior().read_memory(va, size))


def text(value, otherwise="-"):
    """A C string of the guest: an array, or a pointer that may be NULL or invalid."""
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_ARRAY:
        return value.string(errors="replace")
    try:
        return value.string(errors="replace", length=-1) if int(value) != 0 else otherwise
    except gdb.error:
        return f"(bad {int(value):#x})"


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
    """(address, size) of every part of the log."""
    yield int(root.address), int(root["size"])
    yield int(root["sites"]), int(root["site_count"]) * int(root["site_size"])
    yield int(root["names"]), int(root["names_size"])
    first, last = root["texts"].type.range()
    for n in range(first, last + 1):
        yield int(root["texts"][n]["start"]), int(root["texts"][n]["size"])
    for n in range(min(int(root["ring_count"]), root["rings"].type.range()[1] + 1)):
        at = int(root["rings"][n])
        if at != 0:
            ring = gdb.Value(at).cast(gdb.lookup_type("struct ktr_ring").pointer()).dereference()
            yield at, int(root["ring_size"]) + int(ring["entries"]) * int(root["entry_size"])


def ktrdump(*options):
    """The output of ktrdump for the log."""
    core = scratch("log.core")
    with kernel_memory():
        write_core(core, log_ranges(image_root()), read)
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
    """The event log of the machine that gdb is connected to, or of a memory dump (ktr core)."""

    def __init__(self):
        super().__init__("ktr", gdb.COMMAND_DATA, prefix=True)


class KtrShow(gdb.Command):
    """Print the newest events, all CPUs in the order of time: oldest first, with -t newest first.
usage: ktr show [N] [OPTION]...
N: how many (default: 50; 0: all). Options are ktrdump's; without any: -cs.
  ktr show 20 -csf --class SCHED --cpu 1
  ktr show 0 --grep 'fork: *'"""

    OPTIONS = ("-c", "-s", "-t", "-f", "-H", "-r", "-q", "--class", "--cpu", "--thread", "--grep", "--since", "--until",
               "--format")

    def __init__(self):
        super().__init__("ktr show", gdb.COMMAND_DATA)

    def invoke(self, argument, _):
        words = gdb.string_to_argv(argument)
        count = int(words.pop(0)) if words and words[0].isdigit() else SHOW_DEFAULT
        lines = ktrdump(*(words or ["-cs"])).splitlines()
        # Keep the two heading lines.
        head = 2 if len(lines) > 1 and re.fullmatch(r"[- ]+", lines[1]) else 0
        if count and any(re.fullmatch("-[a-zA-Z]*t[a-zA-Z]*", word) for word in words):
            lines = lines[:head + count]
        elif count:
            lines = lines[:head] + lines[max(len(lines) - count, head):]
        gdb.write("".join(line + "\n" for line in lines))

    def complete(self, line, word):
        # For gdb, a word begins after the dashes.
        last = line.split(" ")[-1]
        return [option[len(last) - len(word):] for option in self.OPTIONS if option.startswith(last)]


class KtrStats(gdb.Command):
    """Print the number of events by class, site and CPU, and of lost events.
usage: ktr stats"""

    def __init__(self):
        super().__init__("ktr stats", gdb.COMMAND_DATA, gdb.COMPLETE_NONE)

    def invoke(self, argument, _):
        if argument:
            raise gdb.GdbError("usage: ktr stats")
        gdb.write(ktrdump("report", "events", "--rows", "0"))


class KtrSave(gdb.Command):
    """Write the log to a file, as a stream that ktrdump reads.
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
            for n, site, names in self.sites():
                if argument and not any(fnmatch.fnmatchcase(name, argument) for name in names):
                    continue
                gdb.write(f"{n:4} {'on ' if int(site['on']) else 'off'} {names[2]}:{int(site['line'])} {names[0]}\n")

    @staticmethod
    def sites():
        """(number, struct ktr_site, [format, function, file]). All is read in few pieces, since each takes a message to QEMU
        and an answer."""
        root, kind = image_root(), gdb.lookup_type("struct ktr_site")
        count = min(int(root["site_count"]), LIST_MAX)
        table = read(int(root["sites"]), count * kind.sizeof)
        ranges = [(int(root["texts"][n]["start"]), int(root["texts"][n]["size"])) for n in range(root["texts"].type.range()[1] + 1)]
        texts = [(start, read(start, size)) for start, size in ranges if size != 0]

        def string(va):
            for start, data in texts:
                if start <= va < start + len(data):
                    return data[va - start:data.index(b"\0", va - start)].decode(errors="replace")
            return f"(bad {va:#x})" if va != 0 else "-"

        free = int(gdb.parse_and_eval("KTR_SITE_FREE"))
        for n in range(count):
            site = gdb.Value(table[n * kind.sizeof:(n + 1) * kind.sizeof], kind)
            if int(site["kind"]) != free:
                yield n, site, [string(int(site[k])) for k in ("fmt", "func", "file")]

    def complete(self, _, word):
        with kernel_memory():
            return sorted({name for _, _, names in self.sites() for name in names[1:] if name.startswith(word)})


# ---- dumps -----------------------------------------------------------------------------------------------------------

class KtrCore(gdb.Command):
    """Open a memory dump of QEMU's dump-guest-memory, for all commands: bt, print, ktr show, ps.
usage: ktr core FILE
(gdb's core-file sees only physical addresses in it.)"""

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
    """The elements of a kernel list (kernel/lib/list.h)."""
    pointer = gdb.lookup_type(kind).pointer()
    offset = next(f.bitpos // 8 for f in pointer.target().fields() if f.name == member)
    end, at = int(head.address), head["next"]
    for _ in range(LIST_MAX):
        if int(at) == end:
            return
        yield gdb.Value(int(at) - offset).cast(pointer).dereference()
        at = at["next"]
    gdb.write(f"the list of {kind} at {end:#x} has no end\n")


def threads():
    lists = gdb.parse_and_eval("'kernel/sched/thread.c'::threads")
    for i in range(lists.type.range()[1] + 1):
        if int(lists[i]["next"]):
            yield from listed(lists[i], "struct thread", "all")


def on_cpus():
    """{address of a thread: its CPU}, for the threads that run, or are being switched out: their contexts are old."""
    found = {}
    for cpu in range(int(gdb.parse_and_eval("ncpus"))):
        block = gdb.parse_and_eval("pcpus")[cpu]
        if int(block):
            found[int(gdb.parse_and_eval("runqs")[cpu]["prev"])] = cpu
            found[int(block["md"]["curthread"])] = cpu
    return found


def state_of(t):
    """(state, what the thread waits for), in the words of ps at db>."""
    state = str(t["state"])
    if state == "THREAD_SLEEPING":
        return ("blocked", text(t["lockname"])) if int(t["lockname"]) else ("sleep", text(t["wmesg"]))
    return {"THREAD_RUNNABLE": "ready", "THREAD_RUNNING": "run", "THREAD_MOVING": "moving", "THREAD_DEAD": "dead"}.get(state, "?"), "-"


class Ps(gdb.Command):
    """List threads: state, what they wait for, process, group and user, name.
usage: ps"""

    def __init__(self):
        super().__init__("ps", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE)

    def invoke(self, argument, _):
        if argument:
            raise gdb.GdbError("usage: ps")
        with kernel_memory():
            gdb.write(f"{'TID':>6} {'PRIO':>4} {'CPU':>3} {'STATE':8} {'WAITS FOR':12} {'PID':>6} {'PGRP':>6} {'UID':>5} NAME\n")
            for t in threads():
                self.line(t)

    @staticmethod
    def line(t):
        state, why = state_of(t)
        pid, group, uid, name = "-", "-", "-", f"[{text(t['name'])}]"
        if int(t["proc"]):
            p = t["proc"].dereference()
            pid, group, uid, name = int(p["pid"]), int(p["pgid"]), int(p["uid"]), text(t["name"])
        gdb.write(f"{int(t['tid']):6} {int(t['prio']):4} {int(t['cpu']):3} {state:8} {why:12} {pid:>6} {group:>6} {uid:>5} {name}\n")


# ---- backtraces ------------------------------------------------------------------------------------------------------

def registers_of(t):
    """The registers with which a switched-out thread will continue."""
    ctx = t["ctx"]
    fields = {f.name: f.type for f in ctx.type.fields()}
    if "x19_x29" not in fields:
        # The other registers are on its stack, as trap.S describes to debuggers.
        return {"rsp": int(ctx["sp"]), "rip": int(gdb.parse_and_eval("(unsigned long)&x86_context_resumed"))}
    saved = {f"x{19 + n}": int(ctx["x19_x29"][n]) for n in range(fields["x19_x29"].range()[1] + 1)}
    return {**saved, "sp": int(ctx["sp"]), "pc": int(ctx["pc"])}


class FrameId:
    """A frame id for gdb.unwinder."""

    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


class Asleep(gdb.unwinder.Unwinder):
    """Makes a switched-out thread appear as the caller of the selected CPU's innermost frame."""

    def __init__(self):
        super().__init__("kestrel-asleep")
        self.registers = None

    def __call__(self, pending):
        registers, self.registers = self.registers, None
        if registers is None:  # only the innermost frame gets the thread's registers
            return None
        info = pending.create_unwind_info(FrameId(*self.position(registers)))
        for name, value in registers.items():
            kind = pending.read_register(name).type
            info.add_saved_register(name, gdb.Value(value & (1 << 64) - 1).cast(kind))
        return info

    @staticmethod
    def position(registers):
        """(stack pointer, program counter)"""
        return [next(registers[name] for name in names if name in registers) for names in (("sp", "rsp"), ("pc", "rip"))]

    @contextlib.contextmanager
    def shown(self, registers):
        """In the with block, gdb unwinds into the thread. Yields the address at which its frames begin."""
        gdb.invalidate_cached_frames()
        self.registers = registers
        try:
            yield self.position(registers)[1]
        finally:
            self.registers = None
            gdb.invalidate_cached_frames()


_asleep = Asleep()
gdb.unwinder.register_unwinder(None, _asleep, replace=True)


def backtrace(start=None):
    """Prints the frames of the selected CPU up to a program's entry; with start, those from that address on."""
    hidden, frame = 0, gdb.newest_frame()
    if start is not None:
        while frame is not None and (frame.pc() != start or frame.name() == "arch_context_switch"):
            if frame.pc() == start:
                start = frame.older().pc()
            hidden, frame = hidden + 1, frame.older()
        if frame is None:
            raise gdb.error("its stack cannot be read")
    count = hidden
    with contextlib.suppress(gdb.error):  # the rest of a damaged stack is skipped
        while frame is not None:
            count += 1
            frame = frame.older() if frame.pc() >> 63 else None
    lines = gdb.execute(f"backtrace {count}", to_string=True)
    lines = re.sub(r"^#(\d+)", lambda m: f"#{int(m[1]) - hidden:<{len(m[1])}}", lines, flags=re.M)
    gdb.write(lines[re.search(r"^#0", lines, re.M).start():])


class Bt(gdb.Command):
    """Print a backtrace, as backtrace does; `bt all`: of every CPU, then of every other thread; `bt tid N`: of one.
usage: bt all | bt tid N | bt [ARGUMENT of backtrace]..."""

    def __init__(self):
        super().__init__("bt", gdb.COMMAND_STACK)

    def invoke(self, argument, _):
        words = gdb.string_to_argv(argument)
        if words[:1] not in (["all"], ["tid"]):
            try:
                gdb.execute(f"backtrace {argument}")
            except gdb.error as e:
                raise gdb.GdbError(str(e))
            return
        if words[0] == "tid" and (len(words) != 2 or not words[1].isdigit()):
            raise gdb.GdbError("bt tid: expected a number that ps lists")
        before = gdb.selected_thread()
        if before is None:
            raise gdb.GdbError("no machine, and no dump: target remote, or ktr core FILE")
        cpus = sorted(gdb.selected_inferior().threads(), key=lambda t: t.num)
        try:
            if words[0] == "all":
                self.all(cpus)
            else:
                self.one(cpus, int(words[1]))
        finally:
            before.switch()

    def all(self, cpus):
        for cpu in range(len(cpus)):
            self.cpu(cpus, cpu)
        cpus[0].switch()
        with kernel_memory():
            running = on_cpus()
            for t in threads():
                if int(t.address) not in running:
                    self.thread(t)

    def one(self, cpus, tid):
        with kernel_memory():
            t = next((t for t in threads() if int(t["tid"]) == tid), None)
            if t is None:
                raise gdb.GdbError(f"bt tid: no thread {tid}; ps lists them")
            cpu = on_cpus().get(int(t.address))
            if cpu is None:
                self.thread(t)
        if cpu is not None:
            self.cpu(cpus, cpu)

    @staticmethod
    def cpu(cpus, n):
        cpus[n].switch()
        gdb.write(f"cpu {n}\n")
        try:
            backtrace()
        except gdb.error as e:  # a thread that has not run yet, or has no stack, does not affect the others
            gdb.write(f"{e}\n")

    @staticmethod
    def thread(t):
        state, why = state_of(t)
        gdb.write(f"{text(t['name'])} tid {int(t['tid'])}: {state}{' ' + why if why != '-' else ''}\n")
        try:
            with _asleep.shown(registers_of(t)) as pc:
                backtrace(pc)
        except gdb.error as e:
            gdb.write(f"{e}\n")

    def complete(self, line, word):
        return [w for w in ("all", "tid") if w.startswith(word)] if line == word else gdb.COMPLETE_NONE


def one_location(point):
    """On aarch64 the compiler's description of a function begins after the no-op at its entry. There gdb finds a second
    place for a breakpoint at the function: the no-op itself, with the line of the function before."""
    places = getattr(point, "locations", [])
    for place in places:
        if any(other.function and other.address == place.address + 4 for other in places):
            place.enabled = False


gdb.events.breakpoint_created.connect(one_location)

for command in (Ktr, KtrShow, KtrStats, KtrSites, KtrSave, KtrCore, Ps, Bt):
    command()
