"""tracefs.py - what the tests of /sys/kernel/tracing share."""
import re

from harness import boot, check

# A command that is traced begins when a recorder of each CPU has begun: one that is told to end before has recorded
# nothing. A recorder of trace-cmd has begun when it waits in poll(), or has written. It may never wait: what asks here is
# traced, too, and may make events faster than a slow machine writes them. Whose number was seen is kept, since events
# wake them.
READY = ("until for p in $(grep -lx trace-cmd /proc/[0-9]*/comm); do "
         "p=${p%/comm}; ls -l $p/fd > /tmp/fds; grep -q trace_pipe_raw /tmp/fds && "
         "{ grep -q poll $p/wchan || test -s \"$(grep -o \"/[^ ]*[.]cpu[0-9]*\\$\" /tmp/fds)\"; } && "
         "mkdir -p /tmp/ready$p; done 2>/dev/null; "
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
