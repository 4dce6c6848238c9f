#!/usr/bin/python3
"""test_core.py - ktrdump -M: a memory dump of a guest that runs, is stopped, hangs or has died holds the same
events as the guest itself reports. And no dump, however damaged, breaks ktrdump."""
import contextlib
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from console import DB, close, db_events, ended, guest, shell, stopped_by_request, wait_for_flush  # noqa: E402
from harness import (BUILD, DEADLINE_S, KTRDUMP, ROOT, Deadline, Failed, check, check_eq, check_match, cpus, json_lines, ktrdump, main,  # noqa: E402
                     portable_test, scratch_file, test, times)
from qmp import Qmp  # noqa: E402
from tracecheck import by_number, same_events  # noqa: E402

DTRACE = ROOT / "build/host/dtrace"
KERNEL = BUILD / "kestrel"
CLASSES = "GEN,SCHED,PROC,SYSC,LOCK"
BUSY = "load mix -n 200 -j 4 > /dev/null &"
ASAN_KTRDUMP = ROOT / "build" / "host-asan" / "ktrdump"
DAMAGES = times(40, 150)


@contextlib.contextmanager
def machine(*options, mem="64M", smp=2, **how):
    """A guest that records, and QEMU's control socket of it."""
    path = scratch_file(".qmp")
    with guest("--mem", mem, "--qmp", str(path), "--mask", CLASSES, *options, smp=smp, **how) as c:
        qmp = Qmp(path)
        yield c, qmp
        qmp.close()


@contextlib.contextmanager
def core_of(qmp):
    path = qmp.dump(scratch_file(".core"))
    yield path
    os.unlink(path)  # it is as large as the guest's memory


def core_events(core, kernel=KERNEL):
    """The dump's events."""
    status, out, err = ktrdump("--format", "jsonl", "-N", kernel, "-M", core)
    check_eq((status, err), (0, ""), "ktrdump -M: status and messages")
    return json_lines(out)


def same_as_db(c, qmp, core):
    """Event by event what the stopped machine itself prints, no more and no less."""
    events = db_events(c)
    with qmp.still():
        same_events(core_events(core), events)


def same_as_line(core, trace, at_least=100):
    """Equal to the stream on the line wherever both have an event."""
    found = by_number(core_events(core))
    status, out, err = ktrdump("--format", "jsonl", "-i", trace)
    check(status in (0, 1), f"ktrdump: status {status}: {err}")  # 1: the line was cut
    line = by_number(json_lines(out))
    both = found.keys() & line.keys()
    check(len(both) >= at_least, f"{len(both)} events are in both, expected {at_least} or more")
    for key in sorted(both):
        check_eq(found[key], line[key], f"event {key} in the dump, and on the line")
    return found


@test("the dump of a busy machine with 4 CPUs has the same events as its trace line")
def live():
    trace = scratch_file(".ktr")
    with machine("--trace", str(trace), "--set", "debug.ktr.entries=1024", smp=4) as (c, qmp):
        shell(c, BUSY)
        with core_of(qmp) as core:
            c.sendline("poweroff")
            check_eq(ended(c), 0, "exit status")
            found = same_as_line(core, trace)
            check_eq({cpu for cpu, _ in found}, {0, 1, 2, 3}, "CPUs with events")
            counted = subprocess.run([DTRACE, "-q", "-r", core, "-n", "ktr:::fork { @ = count(); }"], capture_output=True, text=True, check=False)
            forks = sum(e.get("text", "").startswith("fork: ") for e in found.values())
            check_eq((counted.stdout.split(), counted.stderr), ([str(forks)], ""), "forks that dtrace -r counts in the dump")


@portable_test("the dump of a machine stopped at db> has exactly the events of show ktr, on 1 CPU or 2")
def stopped():
    for smp in cpus(of=(1, 2)):
        with machine("--set", f"debug.ktr.entries={512 // smp}", smp=smp) as (c, qmp):
            shell(c, "load mix -n 2 -j 2 > /dev/null")
            stopped_by_request(c)
            with core_of(qmp) as core:
                same_as_db(c, qmp, core)


@test("the dump of a machine that panicked has the panic's event, at db> and just before a reset")
def panicked():
    with machine("--set", "debug.ktr.entries=128") as (c, qmp):
        c.sendline("sysctl debug.kdb.trap=1")
        c.expect(DB)
        with core_of(qmp) as core:
            same_as_db(c, qmp, core)
            close(c)
            check(any(e.get("text", "").startswith("panic: ") for e in core_events(core)), "no event of the panic")
    trace = scratch_file(".ktr")
    with machine("--trace", str(trace), "--set", "debug.panic.action=reboot", "--", "-no-shutdown") as (c, qmp):
        c.sendline("sysctl debug.kdb.trap=1")
        deadline = Deadline(DEADLINE_S)
        while qmp.command("query-status")["running"]:
            check(deadline.tick() > 0, "the machine does not come to a stop after a panic")
        with core_of(qmp) as core:
            found = same_as_line(core, trace)
            check(any(e["text"].startswith("panic: ") for e in found.values()), "no event of the panic")


@test("a machine that hangs with interrupts off")
def hung():
    trace = scratch_file(".ktr")
    with machine("--trace", str(trace), "--set", "debug.watchdog.seconds=0", smp=1) as (c, qmp):
        shell(c, "load mix -n 2 -j 2 > /dev/null")
        wait_for_flush(c, 200)
        c.sendline("sysctl debug.kdb.hang=0")
        qmp.waits_for_hang()
        with core_of(qmp) as core, core_of(qmp) as later:
            qmp.command("stop")  # else it computes while its dumps are read
            check_eq(core_events(core), core_events(later), "events of a machine that hangs, and a moment later")
            same_as_line(core, trace)


@test("rings outside the region that survives a reset are found through the kernel's page tables")
def outside_the_region():
    for setting in ("debug.ktr.region=0", "debug.ktr.entries=65536"):
        with machine("--set", setting, mem="128M", smp=2) as (c, qmp):
            # Few events: show ktr has to print all of them.
            shell(c, "sysctl debug.ktr.mask=NONE debug.ktr.clear=1 > /dev/null; sysctl debug.ktr.mask=PROC,SYSC")
            shell(c, "load fork -n 5 > /dev/null")
            stopped_by_request(c)
            with core_of(qmp) as core:
                same_as_db(c, qmp, core)


@portable_test("the dump of another kernel is refused, and the message has both build ids")
def other_kernel():
    def build_id(kernel):
        return check_match(r"Build ID: ([0-9a-f]{40})", subprocess.run(["readelf", "-n", kernel], capture_output=True,
                                                                      text=True, check=True).stdout, "readelf").group(1)
    other = BUILD / "kestrel-test"
    with machine(smp=1) as (c, qmp), core_of(qmp) as core:
        status, out, err = ktrdump("-N", other, "-M", core)
        check_eq((status, out), (2, ""), "status and output")
        for kernel in (KERNEL, other):
            check(build_id(kernel) in err, f"build id of {kernel} is not in: {err}")
        status, out, err = ktrdump("-N", core, "-M", core)
        check_eq((status, out), (2, ""), "status and output with a dump for a kernel")
        check("expected the ELF file of a kernel" in err, err)


@portable_test("a file that is not an ELF core is refused with its kind: kdump-compressed dumps, an ELF program, an empty file")
def other_kinds():
    flat, raw, empty = (scratch_file(".kdump") for _ in range(3))
    with machine(mem="32M", smp=1) as (c, qmp):
        qmp.command("dump-guest-memory", paging=False, protocol=f"file:{flat}", format="kdump-zlib")
    raw.write_bytes(b"KDUMP   " + bytes(8192))
    empty.write_bytes(b"")
    for path, what in ((flat, "a kdump-compressed dump, flattened"), (raw, "a kdump-compressed dump"), (empty, "nothing to read"),
                       (KERNEL, "an ELF file of another kind"), (BUILD / "initrd.cpio", "no ELF file")):
        status, out, err = ktrdump("-N", KERNEL, "-M", path)
        check_eq((status, out), (2, ""), f"{what}: status and output")
        check_match(rf"^ktrdump: {re.escape(str(path))}: found {what}, expected an ELF core; .*dump-guest-memory", err,
                    what)


def program():
    """ktrdump, under AddressSanitizer where that is built."""
    fresh = ASAN_KTRDUMP.exists() and ASAN_KTRDUMP.stat().st_mtime >= KTRDUMP.stat().st_mtime
    return ASAN_KTRDUMP if fresh else KTRDUMP


def survives(core, what):
    """Events, or an error that says what was found. Returns how many events."""
    p = subprocess.run([program(), "--format", "jsonl", "-N", KERNEL, "-M", core], capture_output=True,
                       timeout=DEADLINE_S)
    err = p.stderr.decode(errors="replace")
    check(p.returncode in (0, 1, 2), f"{what}: status {p.returncode}: {err}")
    check(p.returncode == 0 or err.startswith("ktrdump: "), f"{what}: status {p.returncode} without a reason: {err!r}")
    return sum(1 for e in json_lines(p.stdout.decode()) if "seq" in e)


def log_in(core):
    """(offset, length) of the region in the dump's file."""
    data = core.read_bytes()
    # The kernel's text has the word too: a region says where it is, at a whole MiB.
    for m in re.finditer(b"KTRSTAYS", data):
        size, phys = (int.from_bytes(data[m.start() + i:m.start() + i + 8], "little") for i in (16, 24))
        if phys > 0 and phys % (1 << 20) == 0 and m.start() + size <= len(data):
            return m.start(), size
    raise Failed("no region in the dump's file")


@portable_test("a dump that is cut or damaged anywhere gives sound events or an error, never a crash")
def damage():
    seed = int(os.environ.get("KTR_TEST_SEED", "1"))
    print(f"# KTR_TEST_SEED={seed} {program()}")
    rng = random.Random(seed)
    with machine("--set", "debug.ktr.entries=256", mem="64M", smp=2) as (c, qmp), core_of(qmp) as core:
        close(c)
        core.chmod(0o600)
        whole = survives(core, "the whole dump")
        check(whole > 100, f"{whole} events, expected more than 100")
        at, size = log_in(core)
        total, cut = core.stat().st_size, scratch_file(".cut")
        status, _, err = ktrdump("-M", core)
        check_eq((status, err), (0, ""), "without -N: status and messages")
        for length in (0, 1, 63, 64, 100, 1000, at, at + 8, at + 500, at + 5000, at + size // 64, at + size // 8, total - 1,
                       total - 100):
            subprocess.run(["cp", core, cut], check=True)
            os.truncate(cut, length)
            survives(cut, f"cut to {length} of {total} bytes")
        status, _, err = ktrdump("-M", cut)
        check_eq(status, 1, "status of a dump that is cut")
        check("the file ends before the memory in it does" in err, err)
        for n in range(DAMAGES):
            # The ELF headers and notes; the region's header and root; the rings and texts; anything.
            start, end = ((0, 4096), (at, at + 8192), (at, at + size // 4), (0, total))[n % 4]
            with open(core, "r+b") as f:
                places = {rng.randrange(start, end) for _ in range(rng.choice((1, 3, 100)))}
                before = {}
                for place in places:
                    f.seek(place)
                    before[place] = f.read(1)
                    f.seek(place)
                    f.write(rng.randbytes(1))
                f.flush()
                survives(core, f"damage {n}: {sorted(places)}")
                for place, byte in before.items():
                    f.seek(place)
                    f.write(byte)
        check_eq(survives(core, "the dump, mended"), whole, "events, after all damage was undone")


if __name__ == "__main__":
    main()
