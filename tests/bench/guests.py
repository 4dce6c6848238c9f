"""guests.py - the bytes of a trace on its line, and the rate of the flush thread: guests with four CPUs, in real time; and what
an event costs the guest on each line: a guest with one CPU that counts instructions.
"""
import re

from instructions import MIX, boot
from rows import BenchError, Row

CPUS = 4
EVENTS_MIN = 100_000
# Runs until the rings are empty, and prints the flush thread's CPU time.
SCRIPT = """
{before}
cat /proc/uptime
sysctl debug.ktr.mask={mix} > /dev/null
load mix -n {n} -j 4 > /dev/null
sysctl debug.ktr.mask=NONE > /dev/null
left=1
while [ $left != 0 ]; do
    left=0
    sysctl -n debug.ktr.stats > /tmp/stats
    while read cpu recorded delivered resident rest; do
        [ "$cpu" = cpu ] || [ "$resident" = 0 ] || left=1
    done < /tmp/stats
done
cat /proc/uptime
cat /tmp/stats
sysctl -n kern.proc
"""
TO_FILE = """
sysctl debug.ktr.alq_file=/tmp/bench.ktr > /dev/null
sysctl debug.ktr.alq_enable=1 > /dev/null
"""
LINES = ("virtio", "serial")
# All events wait in the ring, until the flush is switched on and off.
LINE_SCRIPT = f"""
sysctl debug.ktr.mask={MIX} > /dev/null
load mix -n 30 -j 2 > /dev/null
sysctl debug.ktr.mask=NONE > /dev/null
dtrace -qn 'fbt::flush_end:entry, fbt::flush_work:entry {{ self->t = vtimestamp; }} fbt::flush_end:return, fbt::flush_work:return /self->t/ {{ @ = sum(vtimestamp - self->t); self->t = 0; }} END {{ printa("took %@d\\n", @); }}' -c 'sysctl -q debug.ktr.alq_enable=1 debug.ktr.alq_enable=0'
sysctl debug.ktr.alq_cnt debug.ktr.alq_failed
"""
TOOK = re.compile(r"^took (\d+)\s+debug\.ktr\.alq_cnt: (\d+)\s+debug\.ktr\.alq_failed: 0$", re.M)
STATS = re.compile(r"^\d+ (\d+) \d+ 0 (\d+) \d+ \d+$", re.M)  # the flush suppresses its own events
UPTIME = re.compile(r"^(\d+\.\d\d) \d+\.\d\d$", re.M)
FLUSH_TIME_MS = re.compile(r" (\d+) \S+ ktrflush$", re.M)


class Guest:
    """A mix that four CPUs record, and that is flushed completely."""

    def __init__(self, arch, n, before="", **options):
        self.run = r = boot(SCRIPT.format(before=before, mix=MIX, n=n), arch=arch, smp=CPUS, mem="1G",
                            sets=["debug.ktr.entries=262144"], **options)
        stats, times, flush = STATS.findall(r.out), UPTIME.findall(r.out), FLUSH_TIME_MS.findall(r.out)
        if (r.status, len(stats), len(times), len(flush)) != (0, CPUS, 2, 1):
            raise BenchError(f"status {r.status}, expected 0, counts of {CPUS} CPUs and ktrflush; {r.err}\n{r.out[-2000:]}")
        self.events = sum(int(recorded) for recorded, _ in stats)
        lost = sum(int(overwritten) for _, overwritten in stats)
        if lost > 0 or self.events < EVENTS_MIN:
            raise BenchError(f"{self.events} events, {lost} lost; expected {EVENTS_MIN} or more, none lost")
        begin, end = map(float, times)
        self.seconds, self.flush_seconds = end - begin, int(flush[0]) / 1000


def line_row(arch, line):
    """What the flush takes for an event, encoding included."""
    run = boot(LINE_SCRIPT, arch=arch, smp=1, trace=True, sets=["debug.ktr.alq_enable=0"], options=["--icount", "--trace-line", line])
    found = TOOK.search(run.out)
    if run.status != 0 or not found:
        raise BenchError(f"status {run.status}, expected 0 and a time and a count without losses; {run.err}\n{run.out[-2000:]}")
    took, events = map(int, found.groups())
    return Row(f"line_{line}", arch, took / events, "instructions", f"icount; `load mix -n 30 -j 2` with {MIX} on, {events:,} events, encoding included: "
               f"the flush with --trace-line {line}")


def measure(arch):
    line = Guest(arch, 100, trace=True)
    file = Guest(arch, 400, before=TO_FILE)
    mix = f"`load mix` with {MIX} on, {CPUS} CPUs, {{:,}} events, none lost"
    return [*(line_row(arch, name) for name in LINES),
            Row("bytes_per_event", arch, line.run.trace.stat().st_size / line.events, "bytes",
                mix.format(line.events) + ": the stream on the line, metadata included"),
            Row("flush", arch, file.events / file.seconds, "events/s",
                mix.format(file.events) + f", into a file in the guest, from the first to the last written; ktrflush takes "
                f"{file.flush_seconds / file.seconds:.0%} of a CPU; QEMU without -icount, as fast as this host lets it")]
