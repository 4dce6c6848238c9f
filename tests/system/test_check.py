#!/usr/bin/python3
"""test_check.py - what `make check` runs in a guest: each part of the system does the first thing that it is for. All of it
in one boot, about a second; the other files say what each part promises."""
import functools

import tracecheck as tc
from harness import boot, check, check_eq, check_match, main, test

# Steps, in order, each with what it has to print.
STEPS = {
    "programs run, and pipes connect them": ("seq 5 | tail -n 1", r"^5$"),
    "files are written, listed and removed": ("echo text > /tmp/f; cat /tmp/f; rm /tmp/f; ls /tmp | wc -l", r"^text\n *\d+$"),
    "/proc and sysctl tell of the machine": ("grep -c ^processor /proc/cpuinfo; sysctl -n hw.ncpu", r"^2\n2$"),
    "ktr switches a trace point on, and ktrdump prints its events": (
        "ktr on 'fork: *'; load fork -n 2 > /dev/null; ktr off 'fork: *'; ktrdump -q --grep 'fork: parent'", r"fork: parent \d+ child \d+"),
    "a function has an entry and a return": (
        "ktr on fbt::sys_getppid:; load syscall -n 1 > /dev/null; ktr off fbt::sys_getppid:; ktrdump -q --grep sys_getppid", r"-> sys_getppid.*\n.*<- sys_getppid"),
    "a kprobe fetches an argument": (
        "ktr probe add 'p:first sys_write fd=$arg1'; ktr on kprobe:::first; echo > /dev/null; ktr off kprobe:::first; ktr probe list; ktr probe del first", r"^first +off +[1-9]"),
    "ktrace records a program's calls": ("ktrace -f /tmp/k true; kdump -f /tmp/k | tail -n 1", r"true +CALL +exit_group"),
    "dtrace counts": ("dtrace -qn 'syscall::getppid:entry { @[execname] = count(); }' -c 'load syscall -n 3 -j 1'", r"^ +load +[1-9]\d*$"),
    "tracefs prints an event of Linux's": (
        "cd /sys/kernel/tracing; echo 1 > events/sched/sched_process_exec/enable; load syscall -n 1 > /dev/null; echo > set_event; grep filename= trace; cd /",
        r"sched_process_exec: filename="),
    "the function tracer prints calls": (
        "cd /sys/kernel/tracing; echo sys_getpid > set_ftrace_filter; echo function > current_tracer; sh -c true; echo nop > current_tracer; "
        "load syscall -n 1 > /dev/null; ktr probes -c | grep ^fbt; cd /", r"^fbt +\d+ +0$"),
    "a signal kills": ("sh -c 'kill -9 $$'; echo status $?", r"^status 137$"),
}


@functools.cache
def parts():
    script = "".join(f"echo =====\n{{ {command}; }} 2>&1\n" for command, _ in STEPS.values())
    run = boot(script, smp=2, trace=True, mask="PROC").expect(0)
    return run, [part.replace("\r", "") for part in run.out.split("=====\n")[1:]]


def step(number, pattern):
    check_match(pattern, parts()[1][number], "what was printed")


for _number, (_name, (_, _pattern)) in enumerate(STEPS.items()):
    test(_name)(lambda number=_number, pattern=_pattern: step(number, pattern))


@test("the trace of it on the line is whole, and in the order of time")
def traced():
    run, said = parts()
    check_eq(len(said), len(STEPS), "steps that ran")
    tc.no_gaps(run)
    tc.timestamps_ascend(run)
    check(len(tc.named(run, r"exec: pid \d+ ")) > len(STEPS), "hardly a program was executed")


if __name__ == "__main__":
    main()
