#!/usr/bin/python3
"""test_trace_cmd.py - Debian's trace-cmd, unchanged, over our tracefs; and what it writes, in the host's trace-cmd."""
import base64
import re
import shutil
import subprocess

from harness import DEADLINE_S, Skipped, boot, check, check_eq, check_match, main, scratch_file, test
from tracefs import CD

# A command that is traced begins when a recorder of each CPU waits: trace-cmd records nothing where it comes too late.
READY = "until test $(/bin/ps | grep -c tracepipe) -ge $(nproc); do true; done; "


def guest(script, **options):
    """What the script prints, split at lines =====, with trace-cmd in /bin."""
    run = boot(CD + script, options=["--program", "trace-cmd"], **options)
    if run.status == 2 and "trace-cmd" in run.err:
        raise Skipped("no trace-cmd: run qemu/fetch-guest")
    return run.expect().out.replace("\r", "").split("=====\n")


def record(options, command="head -n 1 /etc/motd"):
    """Commands that record into /tmp/a.dat, print a report of it, and the file itself."""
    return (f"trace-cmd record {options} -o /tmp/a.dat sh -c '{READY}exec {command}' > /tmp/out 2>&1 || cat /tmp/out\n"
            "trace-cmd report -i /tmp/a.dat\necho -----\nbase64 /tmp/a.dat\necho =====\n")


def on_host(text):
    """The report of the guest, which is that of the host; and a way to ask the host for another one."""
    if shutil.which("trace-cmd") is None:
        raise Skipped("no trace-cmd: run qemu/install-tools test")
    report, _, data = text.partition("-----\n")
    path = scratch_file(".dat")
    path.write_bytes(base64.b64decode(data))

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
    check_match(r"^ +head-\d+ .* funcgraph_entry: +\|  sys_openat\(\) \{\n.*funcgraph_entry: +\|    open_at\(\) \{", report, "the graph")
    check_match(r"funcgraph_exit: +[+!#]? +\d+\.\d+ us +\|  \}$", report, "the end of a call")
    check_match(r"funcgraph_entry: +[+!#]? +\d+\.\d+ us +\|  +\w+\(\);$", report, "a function that calls none")
    for cpu in range(smp):
        check({int(m[3]) for m in ROW.finditer(host("--cpu", str(cpu)))} <= {cpu}, f"only CPU {cpu}")
    check_match(r"\d+\.\d{9}: funcgraph_entry", host("-t"), "nanoseconds")


@test("trace-cmd records functions and their graph; the host's trace-cmd reads the file, with 1 CPU")
def functions_1():
    functions(1)


@test("trace-cmd records functions and their graph; the host's trace-cmd reads the file, with 4 CPUs")
def functions_4():
    functions(4)


@test("trace-cmd records events of all kinds: those of events/, marks, stacks, raw marks, and trace points that are in no folder")
def events():
    out = guest(
        record("-e sched_process_exec -e syscalls:sys_enter_openat", "head -n 1 /etc/motd") +
        "trace-cmd start -e sched_process_exec\necho a mark > trace_marker\necho abcdef > trace_marker_raw\necho 'stacktrace:1' > events/sched/sched_process_exec/trigger\n"
        "ktr on 'fbt::sys_getpid:entry' >/dev/null\nsh -c true\nktr off >/dev/null\necho '!stacktrace' > events/sched/sched_process_exec/trigger\n"
        "trace-cmd stop\ntrace-cmd show > /tmp/shown\ntrace-cmd extract -o /tmp/a.dat >/dev/null 2>&1\ntrace-cmd report -i /tmp/a.dat\necho -----\nbase64 /tmp/a.dat\necho =====\ncat /tmp/shown\n"
        "trace-cmd reset\necho =====\ncat tracing_on set_event current_tracer\nfor e in events/ftrace/*; do cat $e/id; grep -E '^(name|ID)' $e/format; done\necho events/ftrace/print/*\n", smp=2)
    report, _ = on_host(out[0])
    check({"sched_process_exec", "sys_enter_openat"} == {m[5] for m in ROW.finditer(report)}, f"events: {report}")
    check_match(r"^ +head-\d+ +\[\d{3}\] +\d+\.\d{6}: sys_enter_openat: +sys_openat\(dfd: ffffff9c, filename: ", report, "a system call")
    report, _ = on_host(out[1])
    for line in (r"sched_process_exec: +filename=", r"print: +tracing_mark_write: a mark$", r"raw_data: +# 64636261 65 66 0a", r"print: +sys_getpid: ",
                 r"kernel_stack: +<stack trace ?>\n(?:=> .*\n)+=> sys_execve \("):
        check_match(line, report, "what was extracted")
    check_eq(len(re.findall(r"\d: [\w ]+: ", report)) > 3, len(re.findall(r"\] X", out[2])) > 3, "shown and reported")
    check_match(r"^1\nnop\n", out[3], "after reset")
    ids = re.findall(r"^(\d+)\nname: (\w+)\nID: (\d+)$", out[3], re.M)
    check({name for _, name, _ in ids} >= {"function", "funcgraph_entry", "funcgraph_exit", "print", "raw_data", "kernel_stack", "hwlat"} and all(a == b for a, _, b in ids),
          f"ids: {ids}")
    check_match(r"^events/ftrace/print/format events/ftrace/print/id$", out[3], "the files of an event of tracers")


if __name__ == "__main__":
    main()
