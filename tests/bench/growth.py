"""growth.py - how the cost of an event grows with CPUs, rings, sites and traces: the factor for ten times the size,
where 1 is flat.

Sources: tests/bench/growth.c, and tests/kernel/bench_record.c with 1 to 8 CPUs.
"""
import collections
import math
import os
import statistics
import subprocess

from host import PROGRAMS, command
from instructions import in_kernel
from rows import HOST, ROOT, BenchError, Row

KTRDUMP = ROOT / "build" / "host" / "ktrdump"
GENERATOR = ROOT / "build" / "host" / "unit" / "ktr_gen"
SITES = (100, 1000, 10000)
TRACES = (10_000, 100_000, 1_000_000, 10_000_000)
CPUS = (1, 2, 4, 8)
SCALE = 1000  # as in growth.c


def per_decade(points):
    """The cost factor for ten times the size, from the first and last point of {size: cost}."""
    (a, first), *_, (b, last) = sorted(points.items())
    return (last / first) ** (1 / math.log10(b / a))


def short(n):
    return f"{n // 1000000} M" if n >= 1000000 else f"{n // 1000} K" if n >= 1000 else str(n)


def row(name, what, points, unit, where=HOST):
    listed = ", ".join(f"{short(n)}: {cost:.4g}" for n, cost in sorted(points.items()))
    return Row(name, where, per_decade(points), "times/decade", f"{what} ({unit}): {listed}")


def medians(out):
    """{what: {size: median}} of growth's output."""
    values = collections.defaultdict(list)
    for line in out.splitlines():
        _, size, what, ticks = line.split()
        values[what, int(size)].append(int(ticks) / SCALE)
    found = collections.defaultdict(dict)
    for (what, size), ticks in values.items():
        found[what][size] = statistics.median(ticks)
    return found


def record_rows():
    if not (PROGRAMS / f"growth{SITES[0]}").exists():
        return []
    rings = medians(command(PROGRAMS / f"growth{SITES[0]}", "rings"))
    sites = collections.defaultdict(dict)
    for n in SITES:
        for what, points in medians(command(PROGRAMS / f"growth{n}", "sites")).items():
            sites[what].update(points)
    return [row("growth_ring", "recording an event of two parameters, by entries of the ring", rings["record"], "ticks"),
            row("growth_ring_floor", "the same of a clock read and 64 bytes stored", rings["floor"], "ticks"),
            row("growth_sites", "recording, all sites in turn, by sites of the program", sites["record"], "ticks"),
            row("growth_sites_encode", "encoding the same, four events a site", sites["encode"], "ticks/event"),
            row("growth_sites_switch", "clearing and setting the mask", sites["switch"], "ticks/site")]


def cpu_time(command, stdin=None, stdout=subprocess.DEVNULL):
    """CPU seconds of a command."""
    p = subprocess.Popen(command, stdin=stdin, stdout=stdout)
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        raise BenchError(f"{' '.join(map(str, command))}: status {p.returncode}, expected 0")
    return usage.ru_utime + usage.ru_stime


def trace_rows(folder):
    dump, text = {}, {}
    for n in TRACES:
        path = folder / f"{n}.ktr"
        # Small ones several times, so that starting the program does not dominate.
        turns = max(1, 1_000_000 // n)
        with open(path, "wb") as out:
            dump[n] = cpu_time([GENERATOR, "mix", str(n)], stdout=out) / n * 1e9
        seconds = statistics.median(cpu_time([KTRDUMP, "-cs", "-i", path]) for _ in range(min(turns, 25)))
        text[n] = seconds / n * 1e9
        path.unlink()
    return [row("growth_dump", "ktr_gen: recording, encoding and writing, by events", dump, "ns/event"),
            row("growth_decode", "ktrdump -cs to /dev/null, by events", text, "ns/event")]


def cpu_rows(archs):
    return [row("growth_cpus", "instructions of CTR6 on one of the machine's CPUs, by CPUs",
                {n: in_kernel(arch, "bench_site_on", n, ["ctr6"])["ctr6"] for n in CPUS}, "icount", arch) for arch in archs]


def measure(archs, folder):
    return cpu_rows(archs) + record_rows() + trace_rows(folder)
