"""tracefs.py - what the tests of /sys/kernel/tracing share."""
import re

from harness import boot, check

# A command that is traced begins when a recorder of each CPU has waited for events: one that is told to end before has
# recorded nothing. trace-cmd's recorders wait in poll(); whose number was seen is kept, since events wake them.
READY = ("until for p in $(grep -l poll /proc/[0-9]*/wchan); do ls -l ${p%wchan}fd | grep -q trace_pipe_raw && mkdir -p /tmp/ready${p%/wchan}; done 2>/dev/null; "
         "test $(ls /tmp/ready/proc 2>/dev/null | wc -l) -ge $(nproc); do sleep 0.02; done; rm -r /tmp/ready; ")
CD = "cd /sys/kernel/tracing\n"
ENTRIES = "debug.ktr.entries=65536"
# A line of `trace`: name, thread, CPU, microseconds, text.
ROW = re.compile(r"^ *(\S.*)-(\d+) +\[(\d{3})\] X\.\.\.\.  *(\d+\.\d{6}): (.*?)\r?$", re.M)


def rows(text):
    return [(name, int(tid), int(cpu), round(float(time) * 1e6), what) for name, tid, cpu, time, what in ROW.findall(text)]


def ftrace(script, smp=1, **more):
    """The console's text, in parts that `echo =====` separates."""
    return boot(CD + script, smp=smp, sets=[ENTRIES], **more).expect().out.replace("\r", "").split("=====\n")


def errors_of(file, commands):
    """A script that writes the commands, a caret in each where Linux's error_log has it; and what is to be checked."""
    return "".join(f"echo > error_log\nprintf '%s' '{text.replace('^', '')}' >> {file} && echo accepted\ncat error_log\n" for text, _ in commands)


def check_errors(system, commands, out):
    for text, message in commands:
        at = text.index("^")
        check(f"] {system}: error: {message}\n  Command: {text.replace('^', '')}\n{' ' * (at + 11)}^\n" in out, f"{text}: {message}: {out}")
    check("accepted" not in out, f"a wrong command was accepted: {out}")
