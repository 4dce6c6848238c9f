#!/usr/bin/python3
"""test_trace_cmd.py - Debian's trace-cmd and perf-tools, unchanged, over our tracefs; and what trace-cmd writes, in the
host's trace-cmd."""
import functools
import itertools
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import ARCH, ARCHS, DEADLINE_S, Skipped, boot, check, check_eq, check_match, free_ports, host_listens, main, need_lwip, need_package, scratch_file, portable_test as test, wait_for
from tracefs import CD, READY


@functools.cache
def shared():
    """A folder of the host for traces and reports, of megabytes: each character on the console takes a microsecond."""
    folder = scratch_file("")
    folder.mkdir()
    return folder


def guest(script, **options):
    """What the script prints, split at lines =====, with trace-cmd in /bin, and shared() as /host."""
    run = boot(CD + script, options=["--program", "trace-cmd", "--share", shared()], **options)
    if run.status == 2 and "trace-cmd" in run.err:
        raise Skipped("no trace-cmd: run qemu/fetch-guest")
    return run.expect().out.replace("\r", "").split("=====\n")


_recorded = itertools.count()


def reported():
    """Commands that report /tmp/a.dat to the host, and print the number by which on_host() knows it."""
    number = next(_recorded)
    at = f"/host/{number}"
    return f"trace-cmd report -i /tmp/a.dat > {at}.txt\ncp /tmp/a.dat {at}.dat\necho {number}\necho =====\n"


def record(options, command="head -n 1 /etc/motd"):
    """Commands that record into /tmp/a.dat, and report it."""
    return f"trace-cmd record {options} -o /tmp/a.dat sh -c '{READY}exec {command}' > /tmp/out 2>&1 || cat /tmp/out\n" + reported()


def on_host(text):
    """The report of the guest, which is that of the host; and a way to ask the host for another one."""
    if shutil.which("trace-cmd") is None:
        raise Skipped("no trace-cmd: run qemu/install-tools test")
    path = shared() / f"{text.split()[-1]}.dat"
    report = path.with_suffix(".txt").read_text()

    def host(*args):
        p = subprocess.run(["trace-cmd", "report", *args, "-i", path], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        check_eq(p.returncode, 0, f"the host's trace-cmd: {p.stderr}")
        return p.stdout
    check_eq(host().splitlines(), report.splitlines(), "the report of the host and of the guest")
    return report, host


ROW = re.compile(r"^ *(\S.*)-(\d+) +\[(\d{3})\] +(\d+\.\d{6}): (\w+): +(.*)$", re.M)


def functions(smp):
    function, graph = guest(record("-p function -l 'ramfs_r*'") + record("-p function_graph -g sys_openat"), smp=smp)[:2]
    report, _ = on_host(function)
    check({m[5] for m in ROW.finditer(report)} == {"function"} and {m[6] for m in ROW.finditer(report)} <= {"ramfs_read", "ramfs_readlink"}, f"functions: {report}")
    check("head" in {m[1] for m in ROW.finditer(report)}, f"the command: {report}")
    report, host = on_host(graph)
    check_match(r"^ +head-\d+ .* funcgraph_entry: +\|  sys_openat\(\) \{\n.*funcgraph_entry: +\|    do_sys_open\(\) \{", report, "the graph")
    check_match(r"funcgraph_exit: +[+!#]? +\d+\.\d+ us +\|  \}$", report, "the end of a call")
    check_match(r"funcgraph_entry: +[+!#]? +\d+\.\d+ us +\|  +\w+\(\);$", report, "a function that calls none")
    for cpu in range(smp):
        check({int(m[3]) for m in ROW.finditer(host("--cpu", str(cpu)))} <= {cpu}, f"only CPU {cpu}")
    check_match(r"\d+\.\d{9}: funcgraph_entry", host("-t"), "nanoseconds")


for _smp in (4,) if ARCH == ARCHS[0] else (1,):
    test(f"trace-cmd records functions and their graph; the host's trace-cmd reads the file, with {_smp} CPUs")(lambda smp=_smp: functions(smp))


@test("trace-cmd records events of all kinds: those of events/, marks, stacks, raw marks, and trace points that are in no folder")
def events():
    out = guest(
        record("-e sched_process_exec -e syscalls:sys_enter_openat", "head -n 1 /etc/motd") +
        "trace-cmd start -e sched_process_exec\necho a mark > trace_marker\necho abcdef > trace_marker_raw\necho 'stacktrace:1' > events/sched/sched_process_exec/trigger\n"
        "ktr on 'fbt::sys_getpid:entry' >/dev/null\nsh -c true\nktr off >/dev/null\necho '!stacktrace' > events/sched/sched_process_exec/trigger\n"
        "trace-cmd stop\ntrace-cmd show > /tmp/shown\ntrace-cmd extract -o /tmp/a.dat >/dev/null 2>&1\n" + reported() + "cat /tmp/shown\n"
        "trace-cmd reset\necho =====\ncat tracing_on set_event current_tracer\nfor e in events/ftrace/*; do cat $e/id; grep -E '^(name|ID)' $e/format; done\necho events/ftrace/print/*\n", smp=2)
    report, _ = on_host(out[0])
    check({"sched_process_exec", "sys_enter_openat"} == {m[5] for m in ROW.finditer(report)}, f"events: {report}")
    check_match(r"^ +head-\d+ +\[\d{3}\] +\d+\.\d{6}: sys_enter_openat: +sys_openat\(dfd: f+9c, filename: ", report, "a system call")
    report, _ = on_host(out[1])
    for line in (r"sched_process_exec: +filename=", r"print: +tracing_mark_write: a mark$", r"raw_data: +# 64636261 65 66 0a", r"print: +sys_getpid: ",
                 r"kernel_stack: +<stack trace ?>\n(?:=> .*\n)+=> sys_execve \("):
        check_match(line, report, "what was extracted")
    check(len(re.findall(r"\d: [\w ]+: ", report)) > 3, f"events that are reported: {report}")
    check(len(re.findall(r"\] X", out[2])) > 3, f"events that are shown: {out[2]}")
    check_match(r"^1\nnop\n", out[3], "after reset")
    ids = re.findall(r"^(\d+)\nname: (\w+)\nID: (\d+)$", out[3], re.M)
    check({name for _, name, _ in ids} >= {"function", "funcgraph_entry", "funcgraph_exit", "print", "raw_data", "kernel_stack", "hwlat", "osnoise", "timerlat"} and all(a == b for a, _, b in ids),
          f"ids: {ids}")
    check_match(r"^events/ftrace/print/format events/ftrace/print/hist events/ftrace/print/id events/ftrace/print/trigger$", out[3], "the files of an event of tracers")


@test("trace-cmd records one thread, or a command with all its children, with stacks; its plugins know our switches and wakeups")
def threads():
    out = guest(
        "echo -n > /tmp/w; sh -c 'until test -e /tmp/go; do :; done; exec load fork -n 2' > /dev/null &\n" +
        f"trace-cmd record -e syscalls:sys_enter_clone -P $! -o /tmp/a.dat sh -c '{READY}: > /tmp/go; load fork -n 3; while kill -0 '$!' 2>/dev/null; do :; done' > /tmp/out 2>&1 || cat /tmp/out\n"
        "echo $!\ntrace-cmd report -i /tmp/a.dat\necho =====\n" +
        record("-e sched:sched_switch -e sched:sched_wakeup -e sched:sched_process_exit -c -F", "load fork -n 2") +
        record("-e sched:sched_process_exit -T", "load fork -n 1") + record("-p function -l sys_kill --func-stack", "sh -c \"kill -0 1\""), smp=2)
    pid, _, report = out[0].partition("\n")
    check_eq([(m[2], m[5]) for m in ROW.finditer(report)], [(pid, "sys_enter_clone")] * 2, f"calls of one thread: {report}")
    report, _ = on_host(out[1])
    loads = {m[2] for m in ROW.finditer(report) if m[5] == "sched_process_exit" and "comm=load" in m[6]}
    check_eq(len(loads), 3, f"load and its children: {report}")
    check_match(r"sched_switch: +load:\d+ \[\d+\] \S+ ==> [\w/]+:\d+ \[\d+\]", report, "a switch by trace-cmd's plugin")
    report, _ = on_host(out[2])
    check_match(r"sched_process_exit: +comm=load .*\n.*kernel_stack: +<stack trace ?>\n(?:=> .*\n)+=> sys_exit_group \(", report, "the stack of an event")
    report, _ = on_host(out[3])
    check_match(r"function: +sys_kill.*\n.*kernel_stack: +<stack trace ?>\n(?:=> .*\n)*=> entry_syscall \(", report, "the stack of a function")


@test("trace-cmd record --proc-map -F ends with its command, which it follows by ptrace()")
def proc_map():
    report, _ = on_host(guest(record("-e syscalls:sys_enter_clone --proc-map -F", "load fork -n 2"), smp=2)[0])
    check_match(r"^ +load-\d+ .* sys_enter_clone: ", report, "calls of the command")


@test("perf ftrace traces functions, and shows how long they last, as it is")
def perf():
    run = boot("cd /tmp\nperf ftrace trace -T do_nanosleep -- sleep 0.1 2>&1\nperf ftrace latency -T do_nanosleep -- sleep 0.1 2>&1\n",
               options=["--mem", "512M", "--program", "linux-perf"], smp=1)
    if run.status == 2 and "linux-perf" in run.err:
        raise Skipped("no package linux-perf: there is no network")
    out = run.expect().out
    check_match(r"^ +sleep-\d+ +\[\d{3}\] .* do_nanosleep <-hrtimer_nanosleep\r?$", out, "perf ftrace trace")
    check_match(r"^ +\d+ - \d+ +ms \| +1 \| #+ \|\r?$", out, "perf ftrace latency")


@test("trace-cmd profile: it ends, and tells of the command's threads")
def profile():
    """With a ring of 16 KiB, which a recorder's pipe takes as a whole: trace-cmd waits for recorders whose pipes it reads no more
    (doc/ftrace.md). One time in five that ring loses what the command did, since trace-cmd, which polls, leaves the recorder
    half of the CPU. Then it is run again."""
    for _ in range(8):
        told = guest(f"trace-cmd profile -p nop -b 16 -o /tmp/o sh -c '{READY}exec load fork -n 3' >/tmp/out 2>&1 || cat /tmp/out\ncat /tmp/o\n", smp=1)[0]
        load = "".join(re.findall(r"^task: load-\d+\n((?:.*\n)*?)\n(?=task:|\Z)", told + "\n", re.M))
        switch = re.search(r"^  Event: sched_switch:\S+ \(\d+\) Total: \d+ Avg: \d+ Max: \d+", load, re.M)
        stack = re.search(r"^          \+ switch_out \(0x[0-9a-f]+\)$", load, re.M)
        if switch and stack:
            break
    check(switch and stack, f"no switch of load with a stack in\n{told}")


@test("trace-cmd's other commands: list, stat, start, show, clear, snapshot, reset, stream, hist, options")
def commands():
    listed, state, snap, rest = guest(
        "trace-cmd list -e | grep sched_switch\ntrace-cmd list -F -e '^sched:sched_switch$'\ntrace-cmd list -f | grep -x ramfs_read\ntrace-cmd list -t\ntrace-cmd list -o | grep stack\necho =====\n"
        "trace-cmd start -p function_graph -g sys_openat -l 'sys_*' -l 'do_sys_*' -e sched_process_exec --max-graph-depth 2 -O sym-offset\ncat /etc/motd\ntrace-cmd stat\ncat options/sym-offset\ntrace-cmd stop\n"
        "cat tracing_on\necho 'sys_*' > stack_trace_filter\ntrace-cmd stack --start\ntrace-cmd stat | grep Stack\ntrace-cmd stack --stop\necho > stack_trace_filter\ntrace-cmd show | grep -c 'sys_openat() {'\ntrace-cmd restart\ncat tracing_on\ntrace-cmd clear\ntrace-cmd reset\ncat tracing_on current_tracer set_event set_graph_function error_log\necho =====\n"
        "trace-cmd start -e sched_process_exec\n/bin/ktr >/dev/null 2>&1\ntrace-cmd snapshot -s\ntrace-cmd snapshot | grep filename=/bin/ktr\ntrace-cmd snapshot -f\ntrace-cmd snapshot | grep freed\ntrace-cmd reset\necho =====\n"
        f"trace-cmd stream -e sched_process_exec sh -c '{READY}exec /bin/load fork -n 1' 2>&1 | grep -v '^CPU'\n"
        f"trace-cmd record -e sched_switch -o /tmp/a.dat sh -c '{READY}load mix -n 1' >/dev/null 2>&1\ntrace-cmd hist -i /tmp/a.dat\n", smp=2)
    check_match(r"^sched:sched_switch$", listed, "list -e")
    check_match(r"^\tfield:char prev_comm\[16\];\toffset:8;\tsize:16;\tsigned:0;$", listed, "list -F")
    check_match(r"^ramfs_read\ntimerlat osnoise hwlat blk wakeup_rt wakeup preemptirqsoff preemptoff irqsoff function_graph function nop\nnofunc_stack_trace\nnostacktrace$", listed, "list -f -t -o")
    for line in (r"^Tracer: function_graph$", r"^ +sched_process_exec$|sched:sched_process_exec", r"^ +sys_openat$", r"^Tracing is enabled$", r"^1\n0\nStack tracing is enabled\n[1-9]\d*\n1\n1\nnop\n#### all functions enabled ####$"):
        check_match(line, state, "stat, show, reset")
    check_match(r"filename=/bin/ktr .*\n.*Snapshot is freed", snap, "snapshots")
    check_match(r"sched_process_exec: +filename=/bin/load ", rest, "stream")
    check_match(r"^ +%\d+\.\d+ +\(\d+\) \S+ +sched_switch", rest, "hist")


def exec_of_ls(report):
    check_match(r"^ +\S+-(\d+) +\[\d{3}\] +\d+\.\d{6}: sched_process_exec: +filename=/bin/ls pid=\1 old_pid=\1$", report, "what was recorded")


@test("trace-cmd record -N sends a trace to trace-cmd listen on the host, which reports it")
def to_host():
    need_lwip()
    if shutil.which("trace-cmd") is None:
        raise Skipped("no trace-cmd: run qemu/install-tools test")
    port = free_ports(1)[0]
    with tempfile.TemporaryDirectory() as tmp:
        said = pathlib.Path(tmp) / "said"
        with said.open("w") as log, subprocess.Popen(["trace-cmd", "listen", "-p", str(port), "-d", tmp, "-o", "out"], stdout=log, stderr=log) as listener:
            try:
                wait_for(lambda: host_listens(port), "listening trace-cmd")
                run = boot(f"{CD}trace-cmd record -N 10.0.2.2:{port} -e sched:sched_process_exec -e sock sh -c '{READY}/bin/ls / > /dev/null; nc 127.0.0.1 9'\necho $?\n",
                           smp=2, options=["--net", "--program", "trace-cmd"])
                if run.status == 2 and "trace-cmd" in run.err:
                    raise Skipped("no trace-cmd: run qemu/fetch-guest")
                check_match(r"^0\r?$", run.expect().out, "status")
                wait_for(lambda: len(re.findall(r"^CPU\d data recorded", said.read_text(), re.M)) == 2, "data of both CPUs")
                wait_for(lambda: not list(pathlib.Path(tmp).glob("out*.cpu*")), "whole file")
            finally:
                listener.kill()
        files = list(pathlib.Path(tmp).glob("out*.dat"))
        check_eq(len(files), 1, "files")
        report = subprocess.run(["trace-cmd", "report", "-i", files[0]], capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout
    exec_of_ls(report)
    check_match(r": inet_sock_set_state: +family=AF_INET protocol=IPPROTO_TCP sport=\d+ dport=9 saddr=127.0.0.1 daddr=127.0.0.1 oldstate=TCP_SYN_SENT newstate=TCP_CLOSE$", report, "addresses")


@test("trace-cmd listen in the guest takes what trace-cmd record -N sends it, by UDP and by TCP")
def in_guest():
    need_lwip()
    said, *reports = guest(
        "mkdir /tmp/l\ntrace-cmd listen -p 8081 -d /tmp/l -o out > /tmp/said 2>&1 &\nuntil netstat -ltn 2> /dev/null | grep -q :8081; do sleep 0.02; done\n"
        f"for t in '' -t; do trace-cmd record $t -N 127.0.0.1:8081 -e sched:sched_process_exec sh -c '{READY}exec /bin/ls / > /dev/null'; echo status $?; done\n"
        "until test $(grep -c 'CPU. data recorded' /tmp/said) = 4 -a -z \"$(ls /tmp/l 2> /dev/null | grep cpu)\"; do sleep 0.02; done\nkill $!\n"
        "trace-cmd record -N 127.0.0.1:8082 -e sched true; echo status $?\ngrep Using /tmp/said\n"
        "for f in /tmp/l/*.dat; do echo =====; trace-cmd report -i $f; done\n", smp=2)
    check_match(r"^status 0\nstatus 0\ntrace-cmd: Connection refused\n.*127.0.0.1:8082\nstatus 111\nUsing TCP for live connection$", said, "what the commands say")
    check_eq(len(reports), 2, "files")
    for report in reports:
        exec_of_ls(report)


# Each traces for a second, in which a loop kills nothing, reads a file, and writes to a disk.
PERF_TOOLS = (
    ("funccount -d 1 'sys_k*'", r"^FUNC +COUNT\nsys_kill +[1-9]\d*\n\nEnding tracing"),
    ("functrace -d 1 'sys_kil?'", r"^ +sh-\d+ +\[\d{3}\] \S{5} +\d+\.\d{6}: sys_kill <-entry_syscall$"),
    ("funcgraph -d 1 -m 2 sys_kill", r"^ +\d\) .*\|  sys_kill\(\) \{\n(?: .*\|    \w+\(\);\n)+ +\d\) .*\|  \}$"),
    ("funcslower -d 1 sys_kill 1", r"^ +\d\) .*us +\|  \} /\* sys_kill \*/$"),
    ("kprobe -d 1 'p:mine sys_kill pid=+0($arg1):u64'", r"^ +sh-\d+ +\[\d{3}\] \S{5} +\d+\.\d{6}: mine: \(sys_kill\+0x0/0x\w+\) pid=1$"),
    ("kprobe -d 1 'r:sys_kill ret=$retval:s64' 'ret == 0'", r": sys_kill: \(\S+ <- sys_kill\) ret=0$"),
    ("tpoint -d 1 syscalls:sys_enter_kill 'pid == 1'", r"^ +sh-\d+ +\[\d{3}\] \S{5} +\d+\.\d{6}: sys_kill\(pid: 1, sig: 0\)$"),
    ("tpoint -v sched:sched_process_exec", r"^name: sched_process_exec\nID: \d+\nformat:$"),
    ("killsnoop -d 1", r"^COMM +PID +TPID +SIGNAL +RETURN\nsh +\d+ +1 +0 +0 *$"),
    ("iosnoop 1", r"^COMM +PID +TYPE +DEV +BLOCK +BYTES +LATms *\n(?:.*\n)*dd +\d+ +WS +254,0 +\d+ +4096 +\d+\.\d\d$"),
    ("iosnoop -Q -d 254,0 -i '*W*' 1", r"^dd +\d+ +WS +254,0 +\d+ +4096 +\d+\.\d\d$"),
    ("iolatency 1 1", r"^ +0 -> 1 +: \d+ +\|#* *\|$"),
    ("execsnoop -d 1", r"^ *PID +PPID ARGS\n(?:.*\n)* *\d+ +\d+ "),
    ("reset-ftrace", r"^current_tracer, after:\n +1\tnop$"),
)


@test("perf-tools' scripts count, trace, graph and probe, as they are")
def perf_tools():
    need_package("bash")
    with tempfile.TemporaryDirectory() as tmp:
        if subprocess.run(["apt-get", "download", "-qq", "perf-tools-unstable"], cwd=tmp, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise Skipped("no package perf-tools-unstable: there is no network, or no list of packages (apt-get update)")
        subprocess.run(["dpkg-deb", "-x", *pathlib.Path(tmp).glob("*.deb"), tmp], check=True)
        files = [word for p in pathlib.Path(tmp).glob("usr/sbin/*-perf") for word in ("--file", f"/bin/{p.name}={p}")]
        script = "sh -c 'while :; do kill -0 1; cat /etc/motd; dd if=/dev/zero of=/mnt/f bs=1k count=4 conv=fsync 2> /dev/null; sleep 0.1; done' > /dev/null &\n" + "".join(
            f"{line.replace(' ', '-perf ', 1) if ' ' in line else line + '-perf'} 2>&1\necho =====\n" for line, _ in PERF_TOOLS)
        out = boot(CD + script + "kill $!\n", options=["--program", "bash", "--disk", str(scratch_file(".img")), *files], smp=2).expect().out.replace("\r", "").split("=====\n")
    for (line, pattern), text in zip(PERF_TOOLS, out[:-1], strict=True):
        check_match(pattern, text, line)
        check("ERROR" not in text, f"{line}: {text}")


if __name__ == "__main__":
    main()
