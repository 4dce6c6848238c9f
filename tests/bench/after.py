"""after.py - what questions after the fact cost: D over a recorded trace, steps in a replayed run, the page in Chromium.

A step's cost is the instructions that QEMU executes for it, which are the same on every host. Chromium's is the CPU time
of all its processes: what a browser alone on a CPU would take.
"""
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

from growth import GENERATOR, KTRDUMP, cpu_time
from rows import HOST, ROOT, BenchError, Row

sys.path[:0] = [str(ROOT / "tests" / "viewers")]

DTRACE = ROOT / "build" / "host" / "dtrace"
COUNT = ("-q", "-n", "fbt:::entry { @[probefunc] = count(); }")
CALLS = 3_750_000  # of which each third calls another function
FEW = 750_000  # for babeltrace2
ROUNDS = 5
PEER = "babeltrace2"
EVENTS = 1_000_000  # of a page
FRAMES = 100
DEADLINE_S = 600

# More than 100 million instructions, on both architectures.
SCRIPT = "load fork -n 400\nload syscall -n 5000\nload mix -n 100\n"
STEPS = 8
TOUR = f"""python
import kestrel_replay
run, executed = kestrel_replay.RUN, [0, 0]
seek = run.seek
def counted(instruction):
    now = run.now()
    saved = max((at for at in run.saved if at <= instruction), default=0)
    executed[0] += instruction - (now if saved <= now <= instruction else saved)
    executed[1] += now > instruction or saved > now
    seek(instruction)
run.seek = counted
def go(name, command):
    executed[:] = [0, 0]
    gdb.execute(command, to_string=True)
    print("bench", name, *executed, flush=True)
numbers = sorted(run.texts)
go("first", f"kestrel at {{numbers[len(numbers) * 9 // 10]}}")
print("bench", "at", run.now(), 0)
for _ in range({STEPS}):
    go("back", "kestrel previous-event")
for _ in range({STEPS}):
    go("forward", "kestrel next-event")
end
"""


def dtrace_rows(folder):
    """A count by function."""
    traces = {n: folder / f"{n}.ktr" for n in (CALLS, FEW)}
    for n, path in traces.items():
        with open(path, "wb") as out:
            cpu_time([GENERATOR, "entries", str(n)], stdout=out)
    events = CALLS * 4 // 3
    seconds = min(cpu_time([DTRACE, "-r", traces[CALLS], *COUNT]) for _ in range(ROUNDS))
    rows = [Row("dtrace_recorded", HOST, events / seconds / 1e6, "M events/s",
                f"`dtrace -r`, `{COUNT[-1]}`, of CPU time; {events:,} events; the least of {ROUNDS} rounds")]
    if shutil.which(PEER) is None:
        return [*rows, Row(f"dtrace_recorded_to_{PEER}", HOST, None, "times", f"not measured: {PEER} is not installed")]
    ctf = folder / "after.ctf"
    cpu_time([KTRDUMP, "--format", "ctf", "-o", ctf, "-i", traces[FEW]])
    ratios = [cpu_time([PEER, ctf]) / cpu_time([DTRACE, "-r", traces[FEW], *COUNT]) for _ in range(ROUNDS)]
    return [*rows, Row(f"dtrace_recorded_to_{PEER}", HOST, statistics.median(ratios), "times",
                       f"CPU time of {PEER}, which prints {FEW * 4 // 3:,} of these events")]


def replay_rows(arch, folder):
    """Steps to neighbours of an event late in a recorded run."""
    gdb = shutil.which("gdb-multiarch") or shutil.which("gdb")
    if gdb is None:
        return [Row("replay_step_back", arch, None, "instructions", "not measured: gdb is not installed")]
    recording, script, tour = folder / f"{arch}.rr", folder / "replay.sh", folder / "replay.gdb"
    script.write_text(SCRIPT)
    tour.write_text(TOUR)
    subprocess.run([ROOT / "qemu/boot", "--arch", arch, "--record", recording, "--mask", "SCHED,SYSC,PROC", "--script", script, "--trace", folder / "replay.ktr"],
                   stdout=subprocess.DEVNULL, timeout=DEADLINE_S, check=True)
    done = subprocess.run([gdb, "-q", "-nx", "-batch", "-x", ROOT / "qemu/gdb/kestrel.py", "-ex", f"kestrel replay {recording}", "-x", tour, recording / "kernel"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    found = {}
    for name, n, loads in re.findall(r"^bench (\w+) (\d+) (\d+)$", done.stdout, re.M):
        found.setdefault(name, []).append((int(n), int(loads)))
    if [len(found.get(name, ())) for name in ("first", "at", "back", "forward")] != [1, 1, STEPS, STEPS]:
        raise BenchError(f"{gdb}: found {found}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    at = found["at"][0][0]

    def row(name, what, key):
        most, loads = max(found[key])
        return Row(name, arch, most, "instructions", f"executed by QEMU {what}, which is at instruction {at:,}; {loads} saved machines are loaded")
    return [row("replay_first", "until gdb stands at the first event that is asked for", "first"),
            row("replay_step_back", f"for `kestrel previous-event`, the most of {STEPS}, from an event", "back"),
            row("replay_step", f"for `kestrel next-event`, the most of {STEPS}, from an event", "forward")]


def family_cpu(pid):
    """CPU seconds of a process and of those that descend from it."""
    parents, seconds = {}, {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(stat.parent.name)] = int(words[1])
        seconds[int(stat.parent.name)] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    family, more = {pid}, {pid}
    while more:
        more = {child for child, parent in parents.items() if parent in more}
        family |= more
    return sum(seconds.get(member, 0) for member in family)


def frames(page, start):
    """CPU seconds of a frame, while the page moves on by a hundredth of what it shows."""
    page.ask(f"(() => {{ const t = page.timeline; {start} }})()")
    page.frame()
    before = family_cpu(page.browser)
    page.ask(f"""new Promise((good) => {{
      let left = {FRAMES};
      const step = () => {{
        const t = page.timeline, ns = (t.to - t.from) / 100;
        t.view(t.from + ns, t.to + ns);
        page.draw_now();
        left-- > 0 ? requestAnimationFrame(step) : good(1);
      }};
      step();
    }})""")
    return (family_cpu(page.browser) - before) / FRAMES


def page_rows(folder):
    """A page of a million events."""
    trace, path, empty = folder / "page.ktr", folder / "page.html", folder / "empty.html"
    with open(trace, "wb") as out:
        cpu_time([GENERATOR, "mix", str(EVENTS)], stdout=out)
    cpu_time([KTRDUMP, "--format", "html", "-o", path, "-i", trace])
    rows = [Row("page_bytes", HOST, path.stat().st_size / EVENTS, "bytes", f"an event in the page of {EVENTS:,} events, its script included")]
    try:
        from page import Page
    except ImportError:
        return [*rows, Row("page_open", HOST, None, "s", "not measured: python3-selenium is not installed")]
    if shutil.which("chromedriver") is None:
        return [*rows, Row("page_open", HOST, None, "s", "not measured: chromium-driver is not installed")]
    with open(empty, "wb") as out, open(folder / "few.ktr", "w+b") as few:
        cpu_time([GENERATOR, "mix", "8"], stdout=few)
        cpu_time([KTRDUMP, "--format", "html", "-i", few.name], stdout=out)
    with Page(f"file://{empty}") as page:
        opened = []
        for _ in range(ROUNDS):
            before = family_cpu(page.browser)
            page.go(f"file://{path}")
            page.frame()
            opened.append(family_cpu(page.browser) - before)
        whole, part = (frames(page, f"t.view(t.first, t.first + (t.last - t.first) * {share})") for share in (1, 0.01))
    return [*rows,
            Row("page_open", HOST, min(opened), "s", f"CPU time of Chromium until a page of {EVENTS:,} events is shown; the least of {ROUNDS} rounds"),
            Row("page_frame", HOST, 1000 * whole, "ms", f"CPU time of Chromium for a frame of the whole trace that moves, of {FRAMES}; 30 frames a second have 33 ms each"),
            Row("page_frame_part", HOST, 1000 * part, "ms", "the same, of a hundredth of the trace")]


def measure(archs, folder):
    return dtrace_rows(folder) + [row for arch in archs for row in replay_rows(arch, folder)] + page_rows(folder)
