#!/usr/bin/python3
"""test_reset.py - the log survives a reset: the next boot finds what the boot before recorded, event by event.
Another kernel can read it, and no damage to it stops the boot."""
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from console import gdb, guest, prompt, shell  # noqa: E402
from harness import (BUILD, DEADLINE_S, GRUB_ONLY, MACHINE, Deadline, boot, check, check_eq, check_match, cpus, ktrdump, main,  # noqa: E402
                     portable_test, scratch_file, test, times)
from qmp import Qmp  # noqa: E402
from tracecheck import read_boot, read_events, streams  # noqa: E402

MIB = 1 << 20
CLASSES = "GEN,SCHED,PROC,SYSC,LOCK"
# Runs in the boot that dies and in the next one. They differ by whether there is a log of the boot before.
SCRIPT = """
if test $(sysctl -n debug.ktr.prev.events) = 0; then
sysctl debug.panic.action=reboot > /dev/null
sysctl debug.ktr.mask={classes} > /dev/null
sysctl debug.ktr.alq_enable=1 > /dev/null
load mix -n 2 -j 2 > /dev/null
{death}
sleep 60
fi
sysctl debug.ktr.prev
cat /dev/ktr.prev > /dev/vport0p1
poweroff 7
"""


def compare(trace, at_least=100):
    """Compares the line's stream of the boot that died with what the next boot found, where both have an event."""
    parts = streams(trace)
    line, prev = read_boot(parts[:-1]), read_events("-i", parts[-1])
    check(len(prev) >= at_least, f"{len(prev)} events were found, expected {at_least} or more")
    both = line.keys() & prev.keys()
    for key in sorted(both):
        check_eq(prev[key], line[key], f"event {key}")
    # No event is missing between the end of the line's stream and the reset.
    for cpu in {cpu for cpu, _ in line}:
        last = max(seq for c, seq in line if c == cpu)
        if any(c == cpu for c, _ in prev):
            check((cpu, last) in prev or last < min(seq for c, seq in prev if c == cpu),
                  f"cpu {cpu}: event {last} was on the line, but not in the ring")
    return line, prev, both


def dies(death, smp=2, firmware="none", **how):
    trace = scratch_file(".ktr")
    # Without --trace, so the second boot writes no stream of its own.
    r = boot(SCRIPT.format(classes=CLASSES, death=death), smp=smp, firmware=firmware,
             options=["--reboot", "--trace", str(trace), "--set", "debug.ktr.alq_enable=0"], **how).expect(7)
    count = int(check_match(r"^debug\.ktr\.prev\.events: (\d+)$", r.out, "sysctl debug.ktr.prev").group(1))
    check_match(r"^debug\.ktr\.prev\.build: kestrel [0-9a-f]{40}$", r.out, "sysctl debug.ktr.prev")
    line, prev, both = compare(trace)
    events = sum("ns" in e for e in prev.values())
    check(events < len(prev), "no event has long data")
    check_eq(events, count, "events in the stream, and as debug.ktr.prev.events says")
    return line, prev, both


@test("reboot: every event of the boot before is found, on 1 CPU or 4")
def reboot():
    for smp in cpus():
        _, prev, both = dies("reboot", smp=smp)
        check(len(both) >= 100, f"{len(both)} events are both on the line and in the ring")
        check(any(re.search(r"exec: .* args load mix -n 2 -j 2$", e["text"]) for e in prev.values()),
              "load's arguments are not in the ring")


@portable_test("an empty log says that the mask was NONE: the boot before's in the guest, and a stream on the host")
def says_mask():
    trace = scratch_file(".ktr")
    r = boot("""
if test -e /dev/ktr.prev; then
ktrdump -i /dev/ktr.prev; echo status $?
poweroff 7
fi
reboot
sleep 60
""", options=["--reboot", "--trace", str(trace)]).expect(7)
    said = "no events: debug.ktr.mask was NONE\n"
    check_match(f"ktrdump: /dev/ktr.prev: {said}(.*\n)*status 1$", r.out.replace("\r", ""), "the guest")
    for number, part in enumerate(streams(trace)):
        status, _, err = ktrdump("-i", part)
        check_eq((number, status, err), (number, 1, f"ktrdump: {part}: {said}"), "the host")


@test("reboot, by GRUB under BIOS and UEFI", arch=GRUB_ONLY)
def reboot_by_grub():
    for firmware in ("bios", "uefi"):
        dies("reboot", smp=4 if firmware == "uefi" else 1, firmware=firmware)


@portable_test("panic with debug.panic.action=reboot: the panic's event is among the last")
def panic():
    for smp in cpus():
        _, prev, _ = dies("sysctl debug.kdb.trap=1", smp=smp)
        check(any(e["text"].startswith("panic: ") for e in prev.values()), "no event of the panic")


@portable_test("the watchdog ends a hang with interrupts off, and the events before it are found")
def hang():
    _, prev, _ = dies("sysctl debug.watchdog.seconds=1 > /dev/null\nsysctl debug.kdb.hang=1")
    check(any(e["text"].startswith("watchdog: cpu ") for e in prev.values()), "no event of the watchdog")


@portable_test("a reset before the clock's rate is known: the log says so, and its times are ticks")
def early():
    socket = scratch_file(".gdb")
    with guest("--reboot", "--mem", "64M", "--mask", "INIT", "--", "-gdb", f"unix:{socket},server=on,wait=off",
               smp=1) as c:
        out = gdb("hbreak heap_init", "monitor system_reset", "continue", "print hz", "delete",
                  "monitor system_reset", "detach", socket=socket)
        check_match(r"^\$1 = 0$", out, "gdb: the clock's rate in heap_init()")
        prompt(c)
        check(int(shell(c, "sysctl -n debug.ktr.prev.events").split()[-1]) > 0, "no events of the early death")
        out = shell(c, "ktrdump -cs -i /dev/ktr.prev")
        check_match(r"the clock's rate was not known yet: times are raw ticks", out, "ktrdump")
        ticks = [int(s) * 10**9 + int(ns) for s, ns in re.findall(r"(\d+)\.(\d{9}) ", out)]
        check(ticks, f"no events in: {out}")
        # Ticks since the boot. Converted as if the clock had 1 Hz, they would exceed 2^63 and wrap.
        check(all(0 <= t < 10**14 for t in ticks), f"times {ticks}, expected ticks since the boot")


@test("what was typed before a reset, and not read, is not for the shell of the boot after it",
      arch=("aarch64", "QEMU empties other UARTs itself when it resets the machine"))
def typed_before():
    socket = scratch_file(".qmp")
    with guest("--reboot", "--mem", "64M", "--qmp", str(socket), smp=1) as c:
        qmp = Qmp(socket)
        qmp.command("stop")
        c.send("echo left$((1))\r")  # as many as the UART's FIFO holds
        flags, deadline = "", Deadline(DEADLINE_S)
        while not flags or not int(flags.split()[-1], 16) & 1 << 6:  # the PL011's FR: RXFF, the FIFO is full
            check(deadline.tick() > 0, f"the UART's flags are {flags}, expected bit 6")
            flags = qmp.command("human-monitor-command", **{"command-line": "xp /1wx 0x09000018"})
        qmp.reset()
        qmp.command("cont")
        prompt(c)
        out = shell(c, "echo right")
        check("left" not in out and re.search(r"^right\r*$", out, re.M), f"the first command prints:\n{out}")
        qmp.close()


class Ram:
    """A machine's memory in a file, which outlives QEMU as memory outlives a reset, and can be changed at will."""

    SIZE = 128 * MIB

    def __init__(self):
        self.path = scratch_file(".ram")
        with open(self.path, "wb") as f:
            f.truncate(self.SIZE)

    def options(self):
        return ["--mem", "128M", "--machine", f"{MACHINE.machine},memory-backend=ram", "--", "-object",
                f"memory-backend-file,id=ram,size=128M,share=on,mem-path={self.path}"]

    def boot(self, script, **how):
        options = how.pop("options", []) + self.options()
        return boot(script, smp=2, options=options, **how)

    def regions(self):
        """(offset, size) of each region. A region's header is at a whole MiB."""
        found = []
        with open(self.path, "rb") as f:
            for at in range(0, self.SIZE, MIB):
                f.seek(at)
                head = f.read(24)
                if head[:8] == b"KTRSTAYS":
                    found.append((at, int.from_bytes(head[16:24], "little")))
        return found

    def copy(self):
        other = Ram()
        subprocess.run(["cp", "--sparse=always", self.path, other.path], check=True)
        return other

    def damage(self, rng, places, longest, spare):
        """Writes random bytes to random places in the used parts of the regions, but not in the first `spare`
        bytes."""
        with open(self.path, "r+b") as f:
            for at, size in self.regions():
                for _ in range(places):
                    n = rng.randint(1, longest)
                    f.seek(at + rng.randrange(spare, min(size, 2 * MIB) - n))
                    f.write(rng.randbytes(n))


RECORD = f"sysctl debug.ktr.mask={CLASSES} > /dev/null\nload mix -n 2 -j 2 > /dev/null\n"
LOOK = """
sysctl debug.ktr.prev
test -e /dev/ktr.prev || poweroff 0
ktrdump report events -i /dev/ktr.prev > /tmp/stats || test $? = 1 || exit 9
ktrdump -i /dev/ktr.prev > /dev/null || test $? = 1 || exit 9
load mix -n 1 > /dev/null || exit 9
"""


def found_events(r):
    return int(check_match(r"^debug\.ktr\.prev\.events: (\d+)$", r.out, "sysctl debug.ktr.prev").group(1))


@portable_test("a kernel of another build reads it: sites and texts come with it")
def other_build():
    ram = Ram()
    ram.boot(RECORD + "reboot\n").expect(125)
    trace = scratch_file(".ktr")
    r = ram.boot("sysctl debug.ktr.prev\ncat /dev/ktr.prev > /dev/vport0p1\n",
                 options=["--kernel", str(BUILD / "kestrel-test"), "--trace", str(trace), "--set",
                          "debug.ktr.alq_enable=0"]).expect(0)
    check(found_events(r) > 1000, f"{found_events(r)} events, expected more than 1,000")
    found = read_events("-i", trace)
    check_eq(sum("ns" in e for e in found.values()), found_events(r), "events in the stream")
    check(all(e["file"] and "(bad" not in e["text"] for e in found.values() if "file" in e), "an event without its texts")


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


HEADER = 512  # bytes, or a few less: magic, checksum of what follows it, version, size, place and boot


@portable_test("what a program wrote into its own memory is never taken for the log of the boot before")
def forged():
    ram = Ram()
    ram.boot(RECORD + "reboot\n").expect(125)
    (at, size), = ram.regions()
    check(found_events(ram.copy().boot(LOOK).expect(0)) > 1000, "the region is not found where it is")
    with open(ram.path, "r+b") as f:
        f.seek(at)
        region = bytearray(f.read(size))
        f.seek(at)
        f.write(bytes(size))
        length = next(n for n in range(64, HEADER, 8)
                      if crc32c(region[12:n]) == int.from_bytes(region[8:12], "little"))
        base = int.from_bytes(region[24:32], "little") - at  # where the machine's memory begins
        region[32:40] = (1 << 60).to_bytes(8, "little")
        # At every MiB of the upper half, as a program that got those pages would leave it. But not at the kernel's
        # two places, whose first pages it never gives to programs.
        for other in range(Ram.SIZE // 2, Ram.SIZE - size, MIB):
            if other - at not in (0, 8 * MIB, 16 * MIB):
                region[24:32] = (base + other).to_bytes(8, "little")
                region[8:12] = crc32c(region[12:length]).to_bytes(4, "little")
                f.seek(other)
                f.write(region[:MIB])
    check_eq(ram.boot("sysctl -n debug.ktr.prev.events\n").expect(0).out.split(), ["0"], "events that were believed")


def ring_check(entries, cpu, base, start):
    """KTR_RING_CHECK() of ktr/entry.h."""
    return (0x4b545231 ^ entries * 0x9e3779b1 ^ (cpu + 1) * 0x85ebca6b ^ base * 0x9e3779b97f4a7c15 % 2**64 >> 32 ^
            start * 0xc2b2ae3d27d4eb4f % 2**64 >> 32) % 2**32


def rings(region):
    """{cpu: offset} of the headers of rings in a region."""
    found = {}
    for at in range(0, len(region) - 64, 64):
        base, entries, cpu, check, _, start = struct.unpack_from("<QIIIIQ", region, at + 24)
        if cpu < 2 and entries >= 4 and check == ring_check(entries, cpu, base, start):
            found[cpu] = at
    return found


@portable_test("a damaged header of a ring is reported, by the boot and by each reader of the log; its number of slots is found again")
def damaged_ring():
    ram = Ram()
    ram.boot(RECORD + "reboot\n").expect(125)
    (at, size), = ram.regions()
    data = ram.path.read_bytes()[at:at + size]
    heads = rings(data)
    check_eq(sorted(heads), [0, 1], "CPUs with a ring in the region")
    whole = found_events(ram.copy().boot(LOOK).expect(0))
    for offset, kept in ((0, False), (32, True)):  # head; entries
        copy = ram.copy()
        with open(copy.path, "r+b") as f:
            f.seek(at + heads[1] + offset)
            f.write(bytes([data[heads[1] + offset] ^ 1]))
        r = copy.boot("ktrdump -q -i /dev/ktr.prev > /tmp/out 2> /tmp/said || echo status $?\ncat /tmp/said\nsysctl debug.ktr.prev\n").expect(0)
        lost = "" if kept else "its events are lost: "
        check_match(rf"^ktr: the boot before's ring of cpu 1 was damaged: {lost}its header says cpu 1, ", r.out, "the boot's message")
        check_match(rf"^ktrdump: /dev/ktr.prev: offset \d+: the ring of cpu 1 was damaged: {lost}its header ", r.out, "ktrdump")
        check_match(r"^status 1$", r.out, "ktrdump's status")
        check_eq(found_events(r) == whole, kept, f"are all {whole} events there; {found_events(r)} are")


@portable_test("one damaged header costs nothing; two are reported, and the boot goes on")
def damaged_header():
    ram = Ram()
    ram.boot(RECORD + "reboot\n").expect(125)
    (at, _), = ram.regions()
    whole = found_events(ram.copy().boot(LOOK).expect(0))
    for bit, copies in ((333, 1), (3, 2), (3, 1), (333, 2), (1000, 2))[:times(2, 5)]:
        copy = ram.copy()
        with open(copy.path, "r+b") as f:
            for start in (at, at + 2048)[:copies]:
                f.seek(start + bit // 8)
                byte = f.read(1)[0] ^ 1 << bit % 8
                f.seek(start + bit // 8)
                f.write(bytes([byte]))
        r = copy.boot(LOOK).expect(0)
        lost = "ktr: the log of the boot before is lost: its header is damaged" in r.out
        check_eq((lost, found_events(r)), (copies == 2, 0 if copies == 2 else whole), f"bit {bit} of {copies}: is it lost, and how many events")


@portable_test("clear frees the memory, and the old log is gone")
def clear():
    r = boot("""
if test $(sysctl -n debug.ktr.prev.events) = 0; then
""" + RECORD + """
reboot
fi
cat < /dev/ktr.prev > /dev/null || exit 8
sysctl vm.pages.free
sysctl debug.ktr.prev.clear=1
sysctl vm.pages.free
sysctl debug.ktr.prev
cat /dev/ktr.prev || true
""", options=["--reboot"], smp=2).expect(0)
    check_match(r"^debug\.ktr\.prev\.events: 0$", r.out, "after clear")
    check_match(r"^cat: can't open '/dev/ktr.prev': No such device or address$", r.out, "reading what was cleared")
    before, after = map(int, re.findall(r"vm\.pages\.free: (\d+)$", r.out, re.M))
    # 8 MiB are 2048 pages. Pages of a process that has just ended may come back later.
    check(after > before + 1500, f"free pages: {before}, after clear {after}, expected 8 MiB more or so")


@portable_test("with any number of damaged bytes the boot goes on, with the sound events")
def damage():
    seed = int(os.environ.get("KTR_TEST_SEED", "1"))
    print(f"# KTR_TEST_SEED={seed}")
    rng = random.Random(seed)
    ram = Ram()
    ram.boot(RECORD + "reboot\n").expect(125)
    whole = found_events(ram.copy().boot(LOOK).expect(0))
    check(whole > 1000, f"{whole} events, expected more than 1,000")
    counts = []
    header = 512
    for places, longest, spare in ((1, 1, header), (100, 1, 0), (1000, 1, header), (5000, 8, header), (30, 65536, 0),
                                   (30, 65536, header), (2000, 2000, header), (2000, 2000, 0))[:times(5, 8)]:
        copy = ram.copy()
        copy.damage(rng, places, longest, spare)
        counts.append(found_events(copy.boot(LOOK).expect(0)))
        check(counts[-1] <= whole, f"{counts[-1]} events of {whole} after damage")
        os.unlink(copy.path)
    print(f"# of {whole} events there were left: {counts}")
    check(counts[0] >= whole - 1, f"one byte cost {whole - counts[0]} events")
    # A byte may cost all events of a CPU: with another seed those of CPU 0 on aarch64, which ran a third to two thirds of all.
    check(counts[2] > whole // 8, f"1,000 bytes cost {whole - counts[2]} of {whole} events")


if __name__ == "__main__":
    main()
