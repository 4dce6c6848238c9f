#!/usr/bin/python3
"""test_ftrace_logs.py - /sys/kernel/tracing: snapshots, dumps on the console, instances."""
import re

from harness import BUILD, boot, check, check_eq, check_match, cpus, main, portable_test as test, times
from tracefs import CD, ENTRIES, rows



def ftrace(script, smp=4, **more):
    """The console's text, in parts that `echo =====` separates."""
    return boot(CD + script, smp=smp, sets=[ENTRIES], **more).expect().out.replace("\r", "").split("=====\n")


COMMANDS = 6  # of each of the 64


def forks(text):
    """The children that the lines of a trace name."""
    return [int(m) for m in re.findall(r" sched_process_fork: .* child_pid=(\d+)$", text, re.M)]


FORK = "echo 1 > events/sched/sched_process_fork/enable\n"


@test("snapshot: a copy of what trace shows, after which trace begins anew; one CPU's; freed, cleared, wrong commands")
def snapshots():
    for smp in cpus():
        freed, first, second, alone, gone = ftrace(
            "cat snapshot per_cpu/cpu0/snapshot\necho =====\n" + FORK + "load fork -n 20 -j 4 >/dev/null\necho 0 > tracing_on\ncat trace\necho 1 > snapshot\n"
            "echo ----\ncat snapshot\necho ----\ncat trace\necho =====\necho 1 > tracing_on\nload fork -n 5 >/dev/null\ncat snapshot\necho ----\n"
            "echo 0 > tracing_on\ncat trace\necho 1 > snapshot\necho ----\ncat snapshot\necho =====\n"
            "echo 2 > per_cpu/cpu0/snapshot\ncat snapshot\necho 0 > per_cpu/cpu0/snapshot\necho x > snapshot\necho =====\n"
            "echo 2 > snapshot\nhead -n 2 snapshot\necho 128 > buffer_size_kb\nhead -n 2 snapshot\necho 0 > snapshot\nhead -n 2 snapshot\n"
            "echo 1 > snapshot\nexec 3< snapshot\necho 1 > snapshot\necho 256 > buffer_size_kb\ncat buffer_size_kb\necho 0 > snapshot\nexec 3<&-\n"
            "exec 3<> snapshot\necho 1 >&3\nhead -n 2 snapshot\nhead -n 1 <&3 >/dev/null\necho 1 > snapshot\necho 1 >&3\nexec 3<&-\necho 0 > snapshot\nhead -n 2 snapshot\n", smp=smp)
        check_eq(freed.count("# * Snapshot is freed *\n#\n# Snapshot commands:\n"), 2, "before there is one")
        before, copy, after = first.split("----\n")
        check(len(forks(before)) >= 24 and forks(after) == [], f"{len(forks(before))} forks, and after it {forks(after)}")
        check_eq(rows(copy), rows(before), "the copy")
        check_eq(copy, re.sub(r"written: \d+", "written: " + str(len(rows(before))), before), "its form")
        still, new, taken = second.split("----\n")
        check_eq(rows(still), rows(copy), "the copy stays")
        check(len(forks(new)) >= 5 and not set(forks(new)) & set(forks(copy)), "trace shows what came after")
        check_eq(rows(taken), rows(new), "the next copy")
        check_eq([r for r in rows(alone) if r[2] == 0], [], "what is left of a CPU's")
        check_eq(rows(alone), [r for r in rows(taken) if r[2] != 0], "the other CPUs'")
        check_eq(len(re.findall(r"^sh: .*Invalid argument$", alone, re.M)), 2, "wrong commands")
        busy = "", check_match("^(sh: .*busy)\n128\n", gone, "another size while it is read")[1]
        check_eq(re.findall(r"is (\w+) \*|^(sh: .*busy)$", gone, re.M), [("allocated", ""), ("allocated", ""), ("freed", ""), busy, busy, busy, ("allocated", ""), busy, ("freed", "")], "states")


@test("snapshot as a trigger, with a count and a filter, and at a function; while somebody reads it, it stays")
def triggers():
    event, function, held = ftrace(
        FORK + "t=events/sched/sched_process_exit/trigger\necho 'snapshot:1 if comm == load' > $t\ncat $t\nload fork -n 3 >/dev/null\n"
        "cat snapshot $t\necho ----\ncat trace\necho '!snapshot' >> $t\necho =====\n"
        "echo sys_kill:snapshot:2 >> set_ftrace_filter\ncat set_ftrace_filter\nkill -0 $$\ncat snapshot set_ftrace_filter\necho =====\n"
        "exec 3< snapshot\nload fork -n 1 >/dev/null\nkill -0 $$\ncat set_ftrace_filter snapshot\nexec 3<&-\necho ----\necho '!sys_kill:snapshot' >> set_ftrace_filter\n"
        "sysctl -n kern.dtrace.consumers\n", smp=1)
    check_match(r"^snapshot:count=1 if comm == load$", event, "the trigger")
    snapshot, trace = event.split("----\n")
    check_match(r"^snapshot:count=0 if comm == load$", snapshot, "the trigger, used up")
    loads = [line for line in snapshot.splitlines() if " parent_comm=load " in line]
    check_eq(len(loads), 1, "forks of load before its first child ended")
    check_eq(sum(" parent_comm=load " in line for line in trace.splitlines()), 2, "and after")
    check_match(r"^sys_kill:snapshot:count=2$", function, "at a function")
    check(forks(function), "its snapshot")
    check_eq(rows(held.split("----\n")[0]), rows(function), "the one that is read")
    check_match(r"^sys_kill:snapshot:count=0\n", held, "how often")
    check_match(r"----\n0\n$", held, "what is left")


@test("FUNCTION:dump and FUNCTION:cpudump: the trace comes out on the console, and tracing is off; that of each instance that asks for it; the thread that prints ends")
def dumps():
    for smp in cpus():
        out = ftrace(
            FORK + "echo sys_kill:dump:1 >> set_ftrace_filter\nload fork -n 5 -j 3 >/dev/null\nkill -0 $$\nuntil test $(dmesg | grep -c -e '^[^a-z]*----') = 2; do sleep 0.01; done\n"
            "cat tracing_on set_ftrace_filter trace\necho =====\ndmesg\necho =====\necho '!sys_kill:dump' >> set_ftrace_filter\necho 'sys_kill:cpudump:1' >> set_ftrace_filter\n"
            "echo > trace\necho 1 > tracing_on\necho > set_event\nload fork -n 1 >/dev/null\nkill -0 $$\nuntil dmesg | grep 'buffer empty' >/dev/null; do sleep 0.01; done\n"
            "mkdir instances/a\necho 'sys_kill:cpudump' >> instances/a/set_ftrace_filter\necho '!sys_kill:cpudump' >> set_ftrace_filter\necho 'sys_kill:cpudump' >> set_ftrace_filter\n"
            "kill -0 $$\nuntil test $(dmesg | grep -c 'buffer empty') = 3; do sleep 0.01; done\necho '!sys_kill:cpudump' >> instances/a/set_ftrace_filter\nrmdir instances/a\n"
            "echo '!sys_kill:cpudump' >> set_ftrace_filter\nwhile ps | grep -v grep | grep ftracedump >/dev/null; do sleep 0.01; done\ncat set_ftrace_filter\n", smp=smp)
        trace, console, rest = out
        check_match(r"^0\n#### all functions enabled ####\nsys_kill:dump:count=0$", trace, "the state after it")
        printed = check_match(r"Dumping ftrace buffer:\n.*-{33}\n((?:.*\n)*?).*-{33}\n", console, "the dump")[1]
        check_eq(rows(re.sub(r"^\[ *[\d.]+\] ", "", printed, flags=re.M)), rows(trace), "its lines")
        check(len(forks(trace)) > 5, "forks")
        check_match(r"^#### all functions enabled ####\n$", rest, "the end")


@test("a thread's name cannot forge a line of the messages by FUNCTION:dump")
def forged():
    out = ftrace("f=$(printf '/tmp/a\\n[9.9] oops')\n"
                 "printf '#!/bin/sh\\n(true); kill -0 $$\\n' > \"$f\"; chmod 755 \"$f\"\n" + FORK +
                 "echo sys_kill:dump:1 >> set_ftrace_filter\n\"$f\"\n"
                 "until test $(dmesg | grep -c -e '^[^a-z]*----') = 2; do sleep 0.01; done\ndmesg\n", smp=1)[0]
    name = re.escape("a?[9.9] oops")
    check_match(rf"^\[ *[\d.]+\] +{name}-\d+ .* sched_process_fork: parent_comm={name} ", out, "an event of it")
    check("\n[9.9]" not in out, f"a line that a name has forged:\n{out}")


@test("instances: a log of its own, with events, filters, triggers, histograms, tracers, options, sizes and a snapshot; rmdir frees all of it")
def instances():
    for smp in cpus():
        names, own, other, tracer, rest = ftrace(
            "mkdir instances/a\nmkdir instances/b\nmkdir instances/a\nls instances\nls instances/a\ncat instances/a/available_tracers\nrmdir instances/nosuch\n"
            "mkdir instances/a/x\nrmdir instances/a/events\ntrue\necho =====\n"
            "cd instances/a\n" + FORK + "echo 'child_comm == load' > ../b/events/sched/sched_process_fork/filter\necho 1 > ../b/events/sched/sched_process_fork/enable\n"
            "cat events/sched/sched_process_fork/enable ../../events/sched/sched_process_fork/enable set_event ../b/set_event\n"
            "load fork -n 20 -j 3 >/dev/null\necho 0 > tracing_on\necho 0 > ../b/tracing_on\necho ----\ncat trace\necho ----\ncat ../b/trace\necho ----\ncat ../../trace\necho =====\n"
            "echo mark > trace_marker\necho mark > ../../trace_marker\ncat ../../trace\ncat ../../tracing_on\necho 1 > snapshot\ncat snapshot\necho ----\nhead -n 2 ../b/snapshot\n"
            "echo 0 > options/irq-info\ncat options/irq-info ../b/options/irq-info ../../options/irq-info\n"
            "echo 128 > buffer_size_kb\ncat buffer_size_kb ../../buffer_size_kb\necho 1 > options/irq-info\necho =====\n"
            "echo 1 > tracing_on\necho 0 > events/enable\necho 'ramfs_*' > set_ftrace_filter\necho function > current_tracer\ncat /etc/motd > /dev/null\ncat current_tracer ../../current_tracer\n"
            "cat trace ../../set_ftrace_filter\necho hwlat > current_tracer\necho function > ../../current_tracer\n(echo $$; kill -0 $$)\necho nop > ../../current_tracer\n"
            "echo function_graph > ../b/current_tracer\necho function_graph > current_tracer\ncat current_tracer\necho nop > ../b/current_tracer\n"
            "echo function_graph > current_tracer\ncat /etc/motd >/dev/null\nhead -n 8 trace\necho nop > current_tracer\necho =====\n"
            "t=events/sched/sched_process_fork/trigger\necho 'traceoff if child_comm == load' > $t\necho 'hist:keys=child_comm:n=parent_pid:onmax($n).nosuch(n)' >> $t\necho 'hist:keys=comm' >> $t\ncat $t ../b/$t ../../$t\nfor d in . ../b ../..; do grep -c error: $d/error_log; done\n"
            "load fork -n 1 >/dev/null\ncat tracing_on ../../tracing_on events/sched/sched_process_fork/hist\n"
            "mkdir ../c\n(cd ../c; ls > /dev/null; rmdir ../c; cat trace; cat snapshot)\nexec 3< trace\ncd ../..\nrmdir instances/a\nexec 3<&-\nexec 3> instances/a/trace_marker\nrmdir instances/a\nexec 3> instances/a/trace_marker_raw\nrmdir instances/a\nexec 3>&-\nrmdir instances/a\nrmdir instances/b\nls instances\nsysctl -n kern.dtrace.consumers\nktr probes -c | grep -v ' 0$'\n", smp=smp)
        check_match(r"^mkdir: .*'instances/a': File exists\na  b\n", names, "the directory")
        for name in ("set_ftrace_filter", "buffer_size_kb", "per_cpu", "events", "snapshot", "tracing_on"):
            check(re.search(rf"\b{name}\b", names), f"no {name}")
        check("kprobe_events" not in names and "instances\n" not in names, "what only the top has")
        check_match(r"^timerlat osnoise function_graph function nop\nrmdir: 'instances/nosuch': No such file or directory\nmkdir: .*'instances/a/x': Operation not permitted\n.*instances/a/events.*\n$", names, "errors")
        head, a, b, top = own.split("----\n")
        check_eq(head, "1\n0\nsched:sched_process_fork\nsched:sched_process_fork\n", "what is enabled where")
        check(len(forks(a)) >= 23 and forks(top) == [], f"{len(forks(a))} forks")
        check_eq(forks(b), forks("\n".join(line for line in a.splitlines() if "child_comm=load " in line)), "what the other's filter lets through")
        times = [r[3] for r in rows(a)]
        check_eq(times, sorted(times), "times")
        check_match(r"^sh: .*Bad file descriptor$", other, "a mark while it is off")
        check_match(r"tracing_mark_write: mark\n1\n", other, "the top's")
        check_eq(rows(other.split("1\n# tracer", 1)[1].split("----\n")[0]), rows(a), "the snapshot")
        check_match(r"Snapshot is freed \*\n0\n1\n1\n128\n4096\n$", other, "the other's snapshot; options and sizes")
        check_match(r"^function\nnop\n", tracer, "tracers")
        got = [what for *_, what in rows(tracer.split("#### all")[0])]
        check(got and all(w.startswith("ramfs_") for w in got), f"functions: {got[:3]}")
        check_match(r"^#### all functions enabled ####\nsh: .*Invalid argument\n", tracer, "hwlat is the top's")
        check_match(r"^sh: .*Device or resource busy\nfunction\n", tracer, "one graph at a time")
        check_match(r"^ +\d\) .*ramfs_read\(\);$", tracer, "the graph")
        check_match(r"^sh: .*Invalid argument\ntraceoff:unlimited if child_comm == load\nhist:keys=comm:vals=hitcount:sort=hitcount:size=2048 \[active\]\n# Available.*\n#.*\n# Available.*\n#.*\n1\n0\n0\n0\n1\n", rest, "triggers, errors")
        check_match(r"^{ comm: load +} hitcount: +1$", rest, "a histogram")
        check_match(r"^cat: .*trace.*: No such device\ncat: .*snapshot.*: No such device\n", rest, "who is in a folder that is gone")
        check_match(r"^(?:rmdir: 'instances/a': Device or resource busy\n){3}0\nprovider +probes on\n(?:ktr .*\n)?$", rest, "what is left")


@test("hist: onmax and onchange keep the fields of save() for each key, and take a snapshot(), of which it says whose it is")
def hist_actions():
    saved, taken, errors = ftrace(
        "t=events/raw_syscalls/sys_exit/trigger\nh=events/raw_syscalls/sys_exit/hist\n"
        "echo 'hist:keys=id:r=ret:onmax($r).save(comm,common_pid,ret) if comm == load && ret >= 0 && ret < 9999' > $t\ncat $t\n"
        "echo 'comm == load && ret >= 0 && ret < 9999' > events/raw_syscalls/sys_exit/filter\necho 1 > events/raw_syscalls/sys_exit/enable\nload file -n 20 -j 3 >/dev/null\n"
        "echo 0 > events/raw_syscalls/sys_exit/enable\ncat $h trace\necho > $t\necho =====\necho > trace\n"
        "echo 'hist:keys=pid:p=pid:onchange($p).snapshot() if comm == load' > events/sched/sched_process_exit/trigger\n"
        "echo 'hist:keys=common_pid:c=child_pid:onmax($c).snapshot() if comm == load' > events/sched/sched_process_fork/trigger\n" + FORK +
        "load fork -n 3 -j 3 >/dev/null\necho > set_event\ncat events/sched/sched_process_fork/hist\necho ----\ncat events/sched/sched_process_exit/hist\n"
        "echo > events/sched/sched_process_fork/trigger\necho > events/sched/sched_process_exit/trigger\necho =====\necho 'hist:keys=next_pid' > events/sched/sched_switch/trigger\n" +
        "".join(f"echo '{text}' > $t\n" for text in ("hist:keys=id:onmatch(sched.sched_switch).save(id)", "hist:keys=id:r=ret:onmax($r).save(nosuch)",
                                                     "hist:keys=id:r=ret:onmax($r).save()", "hist:keys=id:r=ret:onmax($r).snapshot(id)",
                                                     "hist:keys=id:r=ret:onmax($r).save(id):onchange($r).save(id)")) +
        "echo > events/sched/sched_switch/trigger\ncat error_log $t\nsysctl -n kern.dtrace.consumers\n", smp=1)
    check_match(r"^hist:keys=id:vals=hitcount:r=ret:sort=hitcount:size=2048:onmax\(\$r\)\.save\(comm,common_pid,ret\) if comm == load && ret >= 0 && ret < 9999 \[active\]$", saved, "the trigger")
    most = {}
    for _, tid, _, _, what in rows(saved):
        number, ret = map(int, check_match(r"^sys_exit: NR (\d+) = (\d+)$", what, "a call").groups())
        if number not in most or ret > most[number][0]:
            most[number] = ret, tid
    kept = {int(i): (int(n), name, int(pid), int(ret)) for i, n, name, pid, ret in
            re.findall(r"^{ id: +(\d+) } hitcount: +\d+\n\tmax: +(\d+)  comm: (\w+) +  common_pid: +(\d+)  ret: +(\d+)$", saved, re.M)}
    check(kept and set(kept) == set(most), f"calls {sorted(kept)}, and in the trace {sorted(most)}")
    for number, (n, name, pid, ret) in kept.items():
        check_eq((n, name, pid, ret), (most[number][0], "load", most[number][1], most[number][0]), f"call {number}")
    fork, leave = taken.split("----\n")
    pid, most = check_match(r"^{ common_pid: +(\d+) } hitcount: +3\n\tmax: +(\d+)$", fork, "the fork of the greatest number").groups()
    check_match(rf"^Snapshot taken \(see tracing/snapshot\)\.  Details:\n\ttriggering value {{ onmax\(\$c\) }}: +{most}\ttriggered by event with key: {{ common_pid: +{pid} }}$",
                fork, "whose snapshot it is")
    check_match(r"^\tchanged: +\d+\n(?:.*\n)*Snapshot taken.*\n\ttriggering value { onchange\(\$p\) }: +(\d+)\ttriggered by event with key: { pid: +\1 }$", leave, "onchange")
    check_eq(len(re.findall("^sh: .*Invalid argument$", errors, re.M)), 5, "what is refused")
    for message in ("Handler doesn't support action", "Couldn't find field", "No params found for save()", "Too many action params", "Can't have more than one save() action per hist"):
        check(f": error: {message}\n" in errors, f"no {message}: {errors}")
    check_match(r"^0\n$", errors, "what is left")


LATENCY = re.compile(r"^ *(\S+)-(\d+) +(\d+)X\.\.\.\. +(\d+)us([$@*#!+ ]): (.*)$", re.M)


@test("irqsoff: the longest time with interrupts off, where it began and ended, and its functions; tracing_thresh; the maximum is set back")
def irqsoff():
    for smp in cpus():
        plain, functions, thresh, after = ftrace(
            "cat tracing_max_latency\necho 0 > options/function-trace\necho irqsoff > current_tracer\nhead -n 6 trace\nload mix -n 2 >/dev/null\ncat trace tracing_max_latency\n"
            "echo 1 > snapshot\ncat snapshot\necho x > tracing_max_latency\necho 99999999 > tracing_max_latency\necho > trace\nload fork -n 3 >/dev/null\ncat trace | wc -l\necho =====\n"
            "echo 1 > options/function-trace\necho 'spin_*' 'sleepq_*' 'sched_*' > set_ftrace_filter\necho 0 > tracing_max_latency\nload mix -n 2 >/dev/null\necho 0 > tracing_on\ncat trace\necho =====\n"
            "echo 0 > options/function-trace\necho 1 > tracing_thresh\necho 99999999 > tracing_max_latency\necho 1 > tracing_on\nload fork -n 3 >/dev/null\ncat tracing_max_latency\necho =====\n"
            "echo 0 > tracing_thresh\necho > set_ftrace_filter\necho nop > current_tracer\nhead -n 2 snapshot\nktr probes -c | grep -v ' 0$'\n", smp=smp, options=["--icount"])  # the host takes no CPU away in a short interrupt
        check_match(r"^0\n# tracer: irqsoff\n#\n# irqsoff latency trace v1\.1\.5 on Kestrel$", plain, "the head")
        traces = plain.split("# tracer: irqsoff\n")
        trace = traces[2]
        us, cpu, n = map(int, check_match(r"^# latency: (\d+) us, #\d+/\d+, CPU#(\d+) \| \(M:preempt VP:0, KP:0, SP:0 HP:0 #P:(\d)\)$", trace, "the latency").groups())
        check_eq(n, smp, "CPUs")
        check_match(r"^#    \| task: \S+-\d+ \(uid:0 nice:0 policy:0 rt_prio:0\)$", trace, "the task")
        begin = check_match(r"^#  => started at: (\w+)$", trace, "where it began")[1]
        end = check_match(r"^#  => ended at:   (\w+)$", trace, "where it ended")[1]
        lines = LATENCY.findall(trace)
        check_eq({int(line[2]) for line in lines}, {cpu}, "CPUs of the lines")
        check(lines[0][5].startswith(begin + " <-") and lines[-2][5].startswith(end + " <-") and lines[-1][5] == "<stack trace>", f"{begin} to {end}: {lines}")
        check(int(lines[0][3]) <= 1 and abs(int(lines[-2][3]) - us) <= max(5, us // 2), f"{us} us: {lines}")
        # The maximum that is read later may be a newer one.
        check(int(check_match(r"^(\d+)\nsh: .*busy\n.*snapshot.*busy\nsh: .*Invalid argument\n", plain, "the maximum; no snapshot; a wrong one")[1]) >= us, "the maximum")
        got = LATENCY.findall(functions)
        check(any(re.match(r"(spin|sleepq|sched)_\w+ <-\w+$", what) for *_, what in got[1:]), f"functions: {functions}")
        check(0 < int(thresh) < 99999999, f"with a threshold each one counts: {thresh}")
        check_match(r"^#\n# \* Snapshot is freed \*\nprovider +probes on\n(?:ktr .*\n)?$", after, "what is left")


@test("wakeup: how long a thread of a better priority waits for its CPU")
def wakeup():
    trace = ftrace("echo 0 > options/function-trace\necho wakeup > current_tracer\nload mix -n 3 >/dev/null\nsleep 0.05\necho 0 > tracing_on\ncat trace\necho nop > current_tracer\n", smp=2, options=["--icount"])[0]  # the host takes no CPU away between two readings of the clock
    us = int(check_match(r"^# wakeup latency trace v1\.1\.5 on Kestrel\n# -+\n# latency: (\d+) us, ", trace, "the latency")[1])
    tid = check_match(r"^#    \| task: \S+-(\d+) ", trace, "the task")[1]
    lines = LATENCY.findall(trace)
    woken = [re.match(r" *(\d+): *(\d+):R   \+ \[\d{3}\] +(\d+): *(\d+):R (\S+)$", line[5]) for line in lines]
    runs = [re.match(r" *(\d+): *(\d+):R ==> \[\d{3}\] +(\d+): *(\d+):R (\S+)$", line[5]) for line in lines]
    first, last = next(m for m in woken if m), next(m for m in reversed(runs) if m)
    check_eq((first[3], last[3]), (tid, tid), "who waits")
    check(int(first[1]) == 0 or int(first[4]) < int(first[2]), f"the priorities: {first[0]}")
    check(int(lines[0][3]) <= 1 and abs(int([line[3] for line, m in zip(lines, runs) if m][-1]) - us) <= max(5, us // 2), f"{us} us: {lines}")


@test("wakeup_rt: the same of programs' real-time threads alone, with their policy and priority")
def wakeup_rt():
    file = ["--file", f"/bin/linux_test={BUILD}/linux_test"]
    before, trace, filled = ftrace("echo 0 > options/function-trace\necho wakeup_rt > current_tracer\nload mix -n 3 >/dev/null\nsleep 0.05\ncat tracing_max_latency trace\necho =====\n"
                                   "linux_test rt-naps\ncat trace\necho =====\necho 1 > options/function-trace\necho 0 > tracing_max_latency\nlinux_test rt-naps\necho 0 > tracing_on\ncat trace\necho nop > current_tracer\n", smp=1, options=[*file, "--icount"])
    check_match(r"^0\n# tracer: wakeup_rt\n#\n# wakeup_rt latency trace v1\.1\.5 on Kestrel\n# -+\n# latency: 0 us, #0/0, ", before, "without real-time threads")
    check_eq(LATENCY.findall(before), [], "entries without real-time threads")
    us = int(check_match(r"^# latency: (\d+) us, ", trace, "the latency")[1])
    tid = check_match(r"^#    \| task: linux_test-(\d+) \(uid:0 nice:0 policy:2 rt_prio:42\)$", trace, "the task")[1]
    lines = LATENCY.findall(trace)
    first, last = lines[0], next(line for line in reversed(lines) if " ==> [" in line[5])
    check_match(rf"^ *0:120:R   \+ \[000\] +{tid}: 57:R linux_test$", first[5], "who is woken")
    check_match(rf"^ *0:120:R ==> \[000\] +{tid}: 57:R linux_test$", last[5], "who runs")
    check(int(first[3]) <= 1 and abs(int(last[3]) - us) <= max(100, us // 2), f"{us} us: {lines}")
    check(any(" <-" in line[5] for line in LATENCY.findall(filled)), f"functions: {filled}")


@test("stack_trace: the deepest stack, frame by frame; stack_max_size is set back, and stack_trace_filter chooses")
def stacks():
    off, on, chosen = ftrace(
        "cat stack_trace stack_max_size\necho =====\nsysctl kernel.stack_tracer_enabled=1 >/dev/null\nload mix -n 2 >/dev/null\nls /tmp >/dev/null\n"
        "sysctl kernel.stack_tracer_enabled=0 >/dev/null\ncat stack_max_size stack_trace\necho =====\n"
        "echo sys_kill > stack_trace_filter\ncat stack_trace_filter\necho 0 > stack_max_size\nsysctl kernel.stack_tracer_enabled=1 >/dev/null\nkill -0 $$\n"
        "sysctl -n kernel.stack_tracer_enabled\nsysctl kernel.stack_tracer_enabled=0 >/dev/null\ncat stack_trace\necho nosuch > stack_trace_filter\n"
        "sysctl kernel.stack_tracer_enabled=2\nktr probes -c | grep -v ' 0$'\n", smp=2)
    check_match(r"^        Depth    Size   Location    \(0 entries\)\n        -----    ----   --------\n#\n#  Stack tracer disabled\n(?:#.*\n)+0\n$", off, "before")
    size = int(check_match(r"^(\d+)\n        Depth    Size   Location    \((\d+) entries\)$", on, "the size")[1])
    frames = [(int(i), int(depth), int(own), where) for i, depth, own, where in re.findall(r"^ *(\d+)\) +(\d+) +(\d+)   (\w+\+0x[0-9a-f]+/0x[0-9a-f]+|0x[0-9a-f]+)$", on, re.M)]
    check_eq([f[0] for f in frames], list(range(len(frames))), "their numbers")
    check(len(frames) > 5 and frames[0][1] == size and 256 < size < 16384, f"{size}: {frames}")
    check(all(a[1] - a[2] == b[1] for a, b in zip(frames, frames[1:])) and frames[-1][1] == frames[-1][2], f"depths are sums of sizes: {frames}")
    check_match(r"^sys_kill\n1\n.*\n.*\n  0\) +\d+ +\d+   sys_kill\+0x0/0x[0-9a-f]+\n  1\) .* entry_syscall\+", chosen, "of one function")
    check_match(r"^sh: .*Invalid argument\nsysctl: .*\n(?:.*\n)*provider +probes on\n(?:ktr .*\n)?$", chosen, "what is refused, and left")


@test("set_event_pid, set_ftrace_pid and their opposites: only the events and functions of these threads, with and without a filter, in every log")
def pids():
    only, without, functions = ftrace(
        "mkdir instances/a\ncat set_event_pid set_event_notrace_pid set_ftrace_notrace_pid\n"
        "for d in . instances/a; do\necho 1 > $d/events/syscalls/sys_enter_openat/enable\necho 'error >= 0' > $d/events/vfs/lookup/filter\n"
        "echo 1 > $d/events/vfs/lookup/enable\necho $$ 99999 > $d/set_event_pid\ndone\ncat set_event_pid\nsh -c 'cat /etc/motd' >/dev/null\n: < /etc/motd\n"
        "cat set_event trace\necho ----\ncat instances/a/trace\necho x >> set_event_pid\necho =====\n"
        "for d in . instances/a; do\necho > $d/set_event_pid\necho $$ > $d/set_event_notrace_pid\necho > $d/trace\ndone\nsh -c 'cat /etc/motd' >/dev/null\n: < /etc/motd\n"
        "echo > set_event\necho > instances/a/set_event\ncat trace\necho ----\ncat instances/a/trace\nrmdir instances/a\necho =====\n"
        "echo > trace\necho $$ > set_ftrace_notrace_pid\necho sys_openat > set_ftrace_filter\necho function > current_tracer\n: < /etc/motd\ncat /etc/motd >/dev/null\ncat trace set_ftrace_notrace_pid\n"
        "echo > set_ftrace_notrace_pid\n: < /etc/motd\ncat trace\n")
    pid = int(check_match(r"^no pid\n(\d+)\n99999$", only, "the lists")[1])
    check_match(r"^syscalls:sys_enter_openat\nvfs:lookup$|^vfs:lookup\nsyscalls:sys_enter_openat$", only, "what is enabled stays so")
    for log in only.split("----\n"):
        got = rows(log)
        check_eq({r[1] for r in got}, {pid}, "threads")
        check_eq({r[4].split(":")[0] for r in got}, {"sys_openat(dfd", "lookup"}, "events")
    check_match(r"^sh: .*Invalid argument$", only, "no number")
    for log in without.split("----\n"):
        got = rows(log)
        check(pid not in {r[1] for r in got} and {r[4].split(":")[0] for r in got} == {"sys_openat(dfd", "lookup"}, f"the others: {got[:5]}")
    shown, after = functions.split(f"\n{pid}\n")
    check(rows(shown) and pid not in {r[1] for r in rows(shown)}, "functions of others")
    check(pid in {r[1] for r in rows(after)}, "and of this one again")


@test("set_event_pid: a thread gets the CPU, or is woken, by others; the last switch of event-fork's child; none between two of set_event_notrace_pid")
def switches_of_threads():
    """The idle thread gives the CPU to a child that sleeps, which gives it to the shell when it has ended."""
    wanted, unwanted = ftrace(
        "echo 1 > options/event-fork\necho $$ > set_event_pid\n"
        "for e in switch waking wakeup wakeup_new; do echo 1 > events/sched/sched_$e/enable; done\nsleep 0.001\n"
        "echo 0 > events/enable\ncat trace\necho $$\necho =====\n"
        "echo > trace\necho > set_event_pid\necho $$ > set_event_notrace_pid\n"
        "echo 1 > events/sched/sched_switch/enable\nsleep 0.001\necho 0 > events/enable\ncat trace\n"
        "echo > set_event_notrace_pid\necho $(seq 1001 2024) > set_event_pid\necho 2025 >> set_event_pid || true\n",
        smp=1, options=["--icount"])  # the child sleeps, even if the host does not run the machine for a while
    shell = int(check_match(r"^(\d+)\n$", wanted, "the shell")[1])
    child = int(check_match(r"sched_wakeup_new: comm=\S+ pid=(\d+)", wanted, "the child")[1])
    found = re.findall(r"sched_switch: .*prev_pid=(\d+) .*prev_state=(\S).* next_pid=(\d+)", wanted)
    pairs = [(int(a), int(b)) for a, _, b in found]
    check((0, child) in pairs and (child, 0) in pairs, f"from the idle thread, and to it: {pairs}")
    check_eq([pair for pair in pairs if not {shell, child} & set(pair)], [], "switches between others")
    check([state for pid, state, _ in found if int(pid) == child][-1] in "XZ", f"the child's last switch: {found}")
    for event in "waking", "wakeup":
        check_match(rf"<idle>-0 .*sched_{event}: comm=sleep pid={child} ", wanted, "by the timer")
    check_eq(re.findall(r"prev_comm=(?:sh|sleep) .*next_comm=(?:sh|sleep) .*", unwanted), [], "between two of the list")
    check_match(r"prev_comm=sleep .*next_comm=swapper/0", unwanted, "to a thread that is not in the list")
    check_match(r"^sh: write error: No space left on device$", unwanted, "the 1025th")


@test("filters, threads and the option stacktrace of an enabled event change while it fires: it is recorded once each time; it is counted once, while others with variables come and go")
def changes_of_filters():
    kill = "$d/events/syscalls/sys_enter_kill"
    (out,) = ftrace(
        f"mkdir instances/a\necho 16384 > instances/a/buffer_size_kb\nfor d in . instances/a; do echo 1 > {kill}/enable; done\n"
        "echo 'hist:keys=common_pid:v=1 if sig == 0' > events/syscalls/sys_enter_kill/trigger\nother=events/sched/sched_process_exec/trigger\n"
        "(i=0; while [ $i -lt 8000 ]; do kill -0 $$; i=$((i+1)); done; touch /tmp/end) &\nworker=$!\n"
        f"while [ ! -e /tmp/end ]; do\nfor d in . instances/a; do\necho $worker > $d/set_event_pid\necho 'sig == 0' > {kill}/filter\necho 1 > $d/options/stacktrace\n"
        f"echo 'sig >= 0' > {kill}/filter\necho > $d/set_event_pid\necho 0 > {kill}/filter\necho 0 > $d/options/stacktrace\ndone\necho 'hist:keys=pid:w=1' > $other\necho > $other\ndone\n"
        "wait\nfor d in . instances/a; do grep -c 'sys_kill(' $d/trace; grep -h '^overrun' $d/per_cpu/cpu*/stats; done\n"
        "grep Hits events/syscalls/sys_enter_kill/hist\n", smp=2)
    check_match(r"^(8000\noverrun: 0\noverrun: 0\n){2} +Hits: 8000$", out, "each once, in both logs, and in the histogram")


@test("the names of Linux's tracefs are there, with its permissions; trace_marker_raw, markers, saved_tgids")
def names():
    listed, marks = ftrace(
        "ls -l\nls -l per_cpu/cpu0 events/sched/sched_switch instances\necho =====\necho abcdefghij > trace_marker_raw\necho ab > trace_marker_raw\necho 0 > options/markers\n"
        "echo x > trace_marker\necho abcdefghij > trace_marker_raw\necho 1 > options/markers\ncat trace\ncat timestamp_mode printk_formats\necho $$ && grep \"^$$ \" saved_tgids\n"
        "echo 0 > saved_cmdlines_size\necho 99 > saved_cmdlines_size\ncat saved_cmdlines_size\n")
    modes = {name: mode for mode, name in re.findall(r"^([-d][-rwx]{9}) .* (\S+)$", listed, re.M)}
    kinds = {"-r--r-----": "README enabled_functions available_events available_filter_functions available_tracers buffer_total_size_kb kprobe_profile printk_formats saved_cmdlines "
                           "dyn_ftrace_total_info eval_map saved_tgids stack_trace timestamp_mode trace_pipe uprobe_profile stats trace_pipe_raw format id hist",
             "-rw-r-----": "buffer_percent buffer_size_kb current_tracer dynamic_events error_log function_profile_enabled kprobe_events max_graph_depth saved_cmdlines_size "
                           "set_event set_event_notrace_pid set_event_pid set_ftrace_filter set_ftrace_notrace set_ftrace_notrace_pid set_ftrace_pid "
                           "set_graph_function set_graph_notrace snapshot stack_max_size stack_trace_filter synthetic_events trace trace_clock trace_options "
                           "tracing_cpumask tracing_max_latency tracing_on tracing_thresh uprobe_events enable filter trigger",
             "--w--w----": "trace_marker trace_marker_raw", "drwxr-x---": "events hwlat_detector osnoise instances options per_cpu trace_stat"}
    for mode, files in kinds.items():
        check_eq({name: modes.get(name) for name in files.split()}, {name: mode for name in files.split()}, "modes")
    check_eq(set(modes) - set(" ".join(kinds.values()).split()), set(), "other names")
    check_eq([r[4] for r in rows(marks)], ["# 64636261 buf: 65 66 67 68 69 6a 0a"], "marks")
    check_match(r"^(sh: .*Invalid argument\n){3}# tracer", marks, "too short, and while markers is off")
    check_match(r"^\[delta\] absolute\n(\d+)\n\1 \1\nsh: .*Invalid argument\n99\n$", marks, "the others")


@test("options: sym-offset, sym-addr, latency-format, stacktrace and func_stack_trace print what ftrace.rst says; event-fork and function-fork follow children")
def options():
    plain, offsets, both, latency, stacks, of_functions, follows = ftrace(
        "echo sys_kill > set_ftrace_filter\necho function > current_tracer\nkill -0 $$\ngrep sys_kill trace\necho =====\n"
        "echo 1 > options/sym-offset\ngrep sys_kill trace\necho =====\necho sym-addr > trace_options\ngrep sys_kill trace\necho =====\n"
        "echo 0 > options/sym-offset\necho nosym-addr > trace_options\necho latency-format > trace_options\ncat trace\necho 0 > options/latency-format\necho =====\n"
        "echo nop > current_tracer\necho 1 > options/stacktrace\necho 1 > events/syscalls/sys_enter_kill/enable\necho 1 > events/syscalls/sys_exit_kill/enable\n"
        "echo 'ret == 0' > events/syscalls/sys_exit_kill/filter\nkill -0 $$\necho 0 > options/stacktrace\nkill -0 $$\necho 1 > options/sym-offset\ncat trace\n"
        "echo 0 > options/sym-offset\necho 0 > events/syscalls/sys_exit_kill/filter\necho > set_event\necho =====\n"
        "echo 1 > options/func_stack_trace\necho function > current_tracer\nkill -0 $$\necho 0 > options/func_stack_trace\nkill -0 $$\ncat trace\necho nop > current_tracer\necho =====\n"
        "echo 1 > options/event-fork\necho 1 > options/function-fork\necho $$ > set_event_pid\necho $$ > set_ftrace_pid\necho function > current_tracer\n"
        "echo 1 > events/syscalls/sys_enter_kill/enable\n/bin/sh -c '/bin/sh -c \"kill -0 $$; cat /sys/kernel/tracing/set_event_pid; :\"; :'\n"
        "cat trace\necho 0 > options/event-fork\necho 0 > options/function-fork\necho -----\ncat set_event_pid set_ftrace_pid\necho > set_event_pid\necho > set_ftrace_pid\necho $$\n", smp=2)
    check_match(r": sys_kill <-\w+$", plain, "without options")
    check_match(r": sys_kill\+0x0/0x[1-9a-f][0-9a-f]* <-\w+\+0x[0-9a-f]+/0x[0-9a-f]+$", offsets, "sym-offset")
    check_match(r": sys_kill\+0x0/0x\w+ <(?:f{8}[0-9a-f]{8})> <-\w+\+0x\w+/0x\w+ <(?:f{8}[0-9a-f]{8})>$", both, "sym-addr")
    check_match(r"^# function latency trace v1.1.5 on Kestrel\n(?:#.*\n)+ +sh-\d+ +\d+X\.\.\.\. +\d+us.: sys_kill <-\w+$", latency, "latency-format")
    check_eq(re.findall(r"(sys_kill\(|sys_kill ->|<stack trace>)", stacks), ["sys_kill(", "<stack trace>", "sys_kill ->", "<stack trace>", "sys_kill(", "sys_kill ->"], "stacks of events")
    check_match(r"<stack trace>\n => entry_syscall\+0x[1-9a-f]\w*/0x\w+\n", stacks, "offsets in a stack")
    check_eq(re.findall(r"(sys_kill <-|<stack trace>\n => sys_kill\n => entry_syscall\n)", of_functions), ["sys_kill <-", "<stack trace>\n => sys_kill\n => entry_syscall\n", "sys_kill <-"],
             "stacks of functions")
    shown, _, left = follows.partition("-----\n")
    check(len(re.findall(r"^\d+$", shown, re.M)) >= 3, f"the children: {follows}")
    check_eq(sorted(re.findall(r"\d: (sys_kill.)", shown)), ["sys_kill ", "sys_kill("], "of a grandchild")
    check_match(r"^(\d+)\n\1\n\1\n$", left, "those that have ended are gone")


@test("a list of threads that have all ended is not an empty one: no thread is traced")
def list_of_nobody():
    out = ftrace("echo sys_kill > set_ftrace_filter\necho 1 > options/function-fork\n"
                 "sh -c 'echo $$ > set_ftrace_pid; kill -0 $$; echo function > current_tracer; kill -0 $$'\nload fork -n 20 >/dev/null\n"
                 "cat set_ftrace_pid\nkill -0 $$\ngrep -c 'sys_kill <-' trace\n", smp=1)[0]
    check_match(r"\A1\n\Z", out, "the list, and calls")


@test("a snapshot that a trigger asks for does not take a latency tracer's trace away, and the log says so")
def no_snapshot():
    first, second, said = ftrace(
        "echo 0 > options/function-trace\necho irqsoff > current_tracer\nload mix -n 1 >/dev/null\necho snapshot > events/sched/sched_process_fork/trigger\necho 9999999999 > tracing_max_latency\n"
        "cat trace\necho =====\nload fork -n 1 >/dev/null\ncat trace\necho =====\necho 0 > tracing_on\ncat trace_pipe > /tmp/log\ngrep -A 1 LATENCY /tmp/log | head -n 2\n", smp=1)
    check_match(r"^# irqsoff latency trace", first, "the trace")
    check_eq(second, first, "the trace after a fork")
    check_match(r": \*{3} LATENCY TRACER ACTIVE \*{3}\n\*{3} Can not use snapshot \(sorry\) \*{3}$", said, "what the log says")


@test("a hist says of a snapshot() that it was taken only if it was: not if a tracer or reader keeps it")
def hist_without_snapshot():
    fork = "events/sched/sched_process_fork"
    for begin, end in (("echo irqsoff > current_tracer", "echo nop > current_tracer"),
                       ("exec 3< snapshot\nread x <&3", "exec 3<&-")):
        out = ftrace(f"echo 1 > snapshot\n{begin}\n"
                     f"echo 'hist:keys=common_pid:c=child_pid:onmax($c).snapshot() if comm == load' > {fork}/trigger\n"
                     f"load fork -n 1 >/dev/null\ngrep -c 'Snapshot taken' {fork}/hist\n{end}\n"
                     f"load fork -n 1 >/dev/null\ngrep -c 'Snapshot taken' {fork}/hist\n"
                     f"echo > {fork}/trigger\n", smp=1)[0]
        check_match(r"\A0\n1\n\Z", out, begin)


@test("a snapshot's memory stays as long as triggers or histograms take snapshots, whatever latency tracer comes and goes")
def snapshot_users():
    exec_ = "events/sched/sched_process_exec/trigger"
    for trigger in ("snapshot:2", "hist:keys=common_pid:p=pid:onchange($p).snapshot()"):
        out = ftrace(FORK + f"echo '{trigger}' > {exec_}\necho irqsoff > current_tracer\necho nop > current_tracer\nload fork -n 1 >/dev/null\nhead -n 1 snapshot\ncat {exec_}\n"
                     f"echo 0 > snapshot\nhead -n 1 snapshot\necho '!{trigger}' >> {exec_}\necho 0 > snapshot\nhead -n 2 snapshot\n", smp=1)[0]
        check_match(r"\A# tracer: nop\n.*(?::count=\d|\[active\])\nsh: .*busy\n# tracer: nop\n#\n# \* Snapshot is freed \*\n", out, "the snapshot")


@test("a tracer that is refused changes nothing: the trace, the current tracer, and what a latency tracer has kept")
def refused_tracers():
    function, latency, noise = ftrace(
        "echo sys_kill > set_ftrace_filter\necho function > current_tracer\nkill -0 $$\necho 1 > function_profile_enabled\necho function_graph > current_tracer\ncat current_tracer\n"
        "kill -0 $$\ngrep -c 'sys_kill <-' trace\necho =====\necho 0 > options/function-trace\necho irqsoff > current_tracer\nload mix -n 1 >/dev/null\n"
        "echo function_graph > current_tracer\ncat current_tracer tracing_max_latency\ngrep -c '=> started at' trace\necho 0 > function_profile_enabled\necho preemptoff > current_tracer\n"
        "load mix -n 1 >/dev/null\ngrep -c '=> started at' trace\necho function_graph > current_tracer\ncat current_tracer\nhead -n 2 snapshot | tail -n 1\necho =====\n"
        "mkdir instances/i\necho osnoise > instances/i/current_tracer\necho osnoise > current_tracer\necho timerlat > current_tracer\ncat current_tracer\necho nop > instances/i/current_tracer\n"
        "echo timerlat > current_tracer\ncat current_tracer\necho nop > current_tracer\n", smp=1)
    check_match(r"\Ash: .*busy\nfunction\n2\n\Z", function, "the function tracer")
    check_match(r"\Ash: .*busy\nirqsoff\n[1-9]\d*\n1\n1\nfunction_graph\n# \* Snapshot is freed \*\n\Z", latency, "irqsoff")
    check_match(r"\Ash: .*busy\nosnoise\ntimerlat\n\Z", noise, "osnoise")


@test("while FUNCTION:dump prints, others use ftrace's files; and their instance stays")
def dump_lets_in():
    out = ftrace("mkdir instances/i\necho 1 > instances/i/events/raw_syscalls/enable\nload syscall -n 1500 >/dev/null\necho sys_kill:dump:1 >> instances/i/set_ftrace_filter\nsysctl kern.quiet=0 >/dev/null\nkill -0 $$\n"
                 "until dmesg | grep 'Dumping' >/dev/null; do true; done\necho $(cat instances/i/tracing_on) is off\nrmdir instances/i\n"
                 "until dmesg | tail -n 1 | grep -e '----' >/dev/null; do sleep 0.1; done\necho the end\nrmdir instances/i\n", smp=2)[0]
    check_match(r"0 is off\n(?:.*\n)*?.*rmdir: .*busy\n(?:.*\n)*.*-{33}\n(?:.*\n)*the end\n", out, "what was done meanwhile, and afterwards")


@test("event-fork follows many children that live at once; a list that is full says how many it has no room for")
def many_children():
    out = ftrace("mkfifo /tmp/go\nexec 4<> /tmp/go\necho $$ > set_event_pid\necho 1 > options/event-fork\necho 1 > events/syscalls/sys_enter_kill/enable\n"
                 "n=0\nwhile test $n -lt 80; do (read x <&4; kill -0 $$) &\nn=$((n+1))\ndone\nwhile test $n -gt 0; do echo >&4\nn=$((n-1))\ndone\nwait\ngrep -c 'sys_kill(' trace\n"
                 "echo > set_event_pid\nlist=$$\nn=1\nwhile test $n -lt 1024; do list=\"$list $((100000 + n))\"\nn=$((n+1))\ndone\necho $list > set_event_pid\ngrep '#' set_event_pid\n"
                 "echo 99 >> set_event_pid\n(:)\n(:)\ngrep '#' set_event_pid | wc -l\ngrep -c 1 set_event_pid\necho > set_event_pid\ncat set_event_pid\n", smp=1)[0]
    check_match(r"^80\n# no room for 1 more\nsh: .*No space left on device\n *1\n102[34]\n\Z", out, "who is followed, and who is not")


@test("set_event_notrace_pid with event-fork: of the children nothing is recorded, not even the signal that tells that they have ended, or an interrupt after it")
def notrace_children():
    out, lists = ftrace(
        "echo 1 > options/event-fork\necho $$ > set_event_notrace_pid\nfor s in signal syscalls exceptions irq timer; do echo 1 > events/$s/enable; done\n"
        "load fork -n 300 -j 2 >/dev/null\n/bin/sh -c 'kill -0 $$; cat /etc/motd >/dev/null'\necho 0 > events/enable\ncat trace\necho 0 > options/event-fork\necho =====\n"
        "cat set_event_notrace_pid\necho $$\necho > set_event_notrace_pid\n", smp=4)
    check_eq({name for name, *_ in rows(out)} & {"sh", "load", "cat"}, set(), f"threads: {out}")
    check_match(r"^(\d+)\n\1\n$", lists, "those that have ended are gone")


@test("an event with its stack is printed in 50,000 instructions at most, and a page of trace_pipe_raw is made in 600,000; of calls in 200,000")
def stacks_are_fast():
    """Their functions are not looked for among all symbols, and what is known of events is not found out for each one."""
    pages = times(100, 200)
    out = ftrace(f"echo 1 > options/stacktrace\necho 1 > events/kmem/kmalloc/enable\nload fork -n {times(400, 700)} >/dev/null\necho 0 > events/enable\necho 0 > options/stacktrace\n"
                 "grep -c '^ => ' trace\ngrep -c 'stack trace' trace\ngrep -c '^ => 0x0' trace\ncut -d' ' -f1 /proc/uptime\ncat trace > /dev/null\ncut -d' ' -f1 /proc/uptime\n"
                 f"dd if=per_cpu/cpu0/trace_pipe_raw of=/dev/null bs=4096 count={pages} 2>/dev/null\ncut -d' ' -f1 /proc/uptime\n"
                 "echo > trace\necho 1 > events/syscalls/enable\nfind / > /dev/null\nload mix -n 1 > /dev/null\necho 0 > events/enable\ncut -d' ' -f1 /proc/uptime\n"
                 f"dd if=per_cpu/cpu0/trace_pipe_raw of=/dev/null bs=4096 count={2 * pages} 2>/dev/null\ncut -d' ' -f1 /proc/uptime\n", smp=1, options=["--icount"])[0]
    frames, stacks, invented, before, printed, read, called, read_calls = map(float, check_match(3 * r"(\d+)\n" + 5 * r"(\S+)\n" + "$", out, "frames, stacks, places that are none, times").groups())
    check(stacks > times(2500, 5000) and frames > 5 * stacks, f"{frames} frames of {stacks} stacks")
    check_eq(invented, 0, "places that are none: what a deep stack, or one that was overwritten in part, ends with")
    # An instruction is a nanosecond; uptime counts hundredths of a second.
    check((printed - before) * 1e9 < 50e3 * stacks, f"{printed - before} s for {stacks} stacks")
    check((read - printed) * 1e9 < 600e3 * pages, f"{read - printed} s for {pages} pages")
    check((read_calls - called) * 1e9 < 200e3 * 2 * pages, f"{read_calls - called} s for {2 * pages} pages of calls")


@test("64 readers and writers of all files, chosen at random: no hang, and when all is switched off nothing is left")
def crowd():
    import random
    import tempfile
    seed = 1  # another one: other commands
    chance = random.Random(seed)
    dirs = [".", "instances/a", "instances/b"]
    events = ["sched/sched_switch", "raw_syscalls/sys_enter", "kmem/kmalloc", "vfs/lookup", "signal/signal_generate"]
    common = ("available_tracers buffer_size_kb buffer_total_size_kb current_tracer error_log set_event set_event_pid set_event_notrace_pid set_ftrace_filter "
              "set_ftrace_notrace set_ftrace_pid snapshot trace trace_clock trace_marker trace_marker_raw trace_options tracing_cpumask tracing_on timestamp_mode "
              "per_cpu/cpu0/trace per_cpu/cpu1/snapshot per_cpu/cpu0/stats per_cpu/cpu0/buffer_size_kb events/enable events/sched/enable events/vfs/filter "
              "options/irq-info options/function-trace").split() + [f"events/{e}/{f}" for e in events for f in ("enable", "filter", "format", "hist", "id", "trigger")]
    top = ("README available_events available_filter_functions dynamic_events function_profile_enabled kprobe_events kprobe_profile max_graph_depth saved_cmdlines "
           "saved_tgids set_graph_function set_graph_notrace stack_trace stack_max_size stack_trace_filter synthetic_events tracing_max_latency tracing_thresh "
           "trace_stat/function0 hwlat_detector/width osnoise/runtime_us osnoise/cpus").split()
    words = ["0", "1", "2", "", "function", "nop", "osnoise", "timerlat", "irqsoff", "wakeup", "wakeup_rt", "128", "sys_read", "v*", "common_pid > 3", "hist:keys=common_pid", "stacktrace:3", "snapshot:2",
             "hist:keys=comm:p=common_pid:onmax($p).save(comm)", "traceon", "enable_event:vfs:lookup:3", "enable_hist:kmem:kmalloc", "p:one ramfs_read", "-:one", "x u64 y", "!x", "vfs:lookup",
             "function_graph", "sys_kill:dump", "!sys_kill:dump"]
    script = "until test -e /tmp/start; do sleep 0.05; done\ncase $1 in\n"
    for worker in range(64):
        script += f"{worker})\n"
        for _ in range(COMMANDS):
            where = chance.choice(dirs)
            name = f"{where}/{chance.choice(common)}" if chance.random() < 0.75 else chance.choice(top)
            script += chance.choice([f"cat {name}", f"cat {name}", f"echo '{chance.choice(words)}' > {name}", f"echo '{chance.choice(words)}' >> {name}",
                                     f"mkdir {chance.choice(dirs[1:])}", f"rmdir {chance.choice(dirs[1:])}", "kill -0 $$"]) + "\n"
        script += ";;\n"
    script += "esac\n: > /tmp/done$1\n"
    check_ends = "".join(
        f"test -d {d} && (cd {d}\necho nop > current_tracer\necho > set_event_pid\necho > set_event_notrace_pid\necho > set_ftrace_filter\n"
        "for t in dump stacktrace snapshot; do echo \"!sys_kill:$t\" >> set_ftrace_filter; done\necho 0 > events/enable\n"
        f"for e in {' '.join(events)}; do\necho 0 > events/$e/filter\nfor t in stacktrace snapshot traceon enable_event:vfs:lookup enable_hist:kmem:kmalloc; do echo \"!$t\" >> events/$e/trigger; done\ndone\n"
        f"for e in {' '.join(events)}; do echo > events/$e/trigger; done\necho 0 > snapshot)\n" for d in dirs)
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(script)
        f.flush()
        out = ftrace("sysctl -n debug.fbt.text > /tmp/before\nn=0\nwhile test $n -lt 64; do sh /bin/crowd $n >/dev/null 2>&1 &\nn=$((n+1))\ndone\n: > /tmp/start\nwait\n"
                     "ls /tmp/done* | wc -l\n(" + check_ends + "echo 0 > function_profile_enabled\necho > kprobe_events\necho > synthetic_events\n"
                     "for i in a b; do rmdir instances/$i; done) >/dev/null 2>&1\nwhile ps | grep -v grep | grep ftracedump >/dev/null; do sleep 0.01; done\necho =====\n"
                     "ls instances\ncat kprobe_events events/enable synthetic_events\nsysctl -n kern.dtrace.consumers\nktr probes -c | grep fbt\n"
                     "sysctl -n debug.fbt.text > /tmp/after\ntest \"$(cat /tmp/before)\" = \"$(cat /tmp/after)\" && echo same\n",
                     options=["--file", f"/bin/crowd={f.name}"])
    check_match(r"^64\n", out[0], "those that have come to the end")
    check_match(r"^0\n0\nfbt +\d+ +0\nsame\n$", out[-1], "what is left")


@test("trace of a full ring of a million entries: the first line is there before the others are made, and reading takes no memory")
def million():
    out = boot(CD + "ktr on 'fbt:::entry' >/dev/null\nload syscall -n 150000 >/dev/null\nktr off >/dev/null\nsysctl -n vm.pages.free\nexec 3< trace\nhead -n 3 <&3\n"
               "sysctl -n vm.pages.free\nhead -n 30000 <&3 | wc -l\nsysctl -n vm.pages.free\n", mem="512M", sets=["debug.ktr.entries=1048576"]).expect().out.replace("\r", "")
    before, count, opened, lines, after = map(int, check_match(
        r"^(\d+)\n# tracer: nop\n#\n# entries-in-buffer/entries-written: (\d+)/\d+ +#P:1\n(\d+)\n(\d+)\n(\d+)\n$", out, "the ring, and free pages").groups())
    check_eq((count, lines), (1048574, 30000), "entries; lines")
    # A byte an entry would be 256 pages. What the two heads leave for a moment (a process that is not reaped yet) is a few.
    check(before - opened < 128 and before - after < 128, f"free pages: {before}, {opened}, {after}")


if __name__ == "__main__":
    main()
