"""tracefs.py - what the tests of /sys/kernel/tracing share."""
import re

CD = "cd /sys/kernel/tracing\n"
ENTRIES = "debug.ktr.entries=65536"
# A line of `trace`: name, thread, CPU, microseconds, text.
ROW = re.compile(r"^ *(\S.*)-(\d+) +\[(\d{3})\] X\.\.\.\.  *(\d+\.\d{6}): (.*?)\r?$", re.M)


def rows(text):
    return [(name, int(tid), int(cpu), round(float(time) * 1e6), what) for name, tid, cpu, time, what in ROW.findall(text)]
