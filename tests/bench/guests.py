"""guests.py - the bytes of a trace on its serial line, and the rate of the flush thread: guests with four CPUs, in
real time.
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


def measure(arch):
    line = Guest(arch, 100, trace=True)
    file = Guest(arch, 400, before=TO_FILE)
    mix = f"`load mix` with {MIX} on, {CPUS} CPUs, {{:,}} events, none lost"
    return [Row("bytes_per_event", arch, line.run.trace.stat().st_size / line.events, "bytes",
                mix.format(line.events) + ": the stream on the serial line, metadata included"),
            Row("flush", arch, file.events / file.seconds, "events/s",
                mix.format(file.events) + f", into a file in the guest, from the first to the last written; ktrflush takes "
                f"{file.flush_seconds / file.seconds:.0%} of a CPU; QEMU without -icount, as fast as this host lets it")]
