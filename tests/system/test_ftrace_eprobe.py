#!/usr/bin/python3
"""test_ftrace_eprobe.py - probes at events in dynamic_events, as Linux has them."""
import re

from harness import check, check_eq, check_match, cpus, main, portable_test
from tracefs import check_errors, errors_of, ftrace, rows

# The event of each probe, its arguments, what the event prints, and what the probe does.
TARGETS = [
    ("sched.sched_switch", "prev=$prev_pid:u32 who=$next_comm prio=$next_prio:s32", r".*?prev_pid=(\d+) .* next_comm=(\S+) next_pid=\d+ next_prio=(\d+)",
     r'prev=(\d+) who="(\S+)" prio=(\d+)'),
    ("syscalls/sys_enter_write", "fd=$fd:u8 at=$buf n=$count:u64 c=$comm", r"sys_write\(fd: (\d+), buf: (\S+), count: \S+\)", r'fd=(\d+) at=0x(\S+) n=\d+ c="(?:load|head)"'),
    ("syscalls.sys_exit_write", "$ret:s64 $ret \\7", r"sys_write -> (0x\S+)", r"arg1=\d+ arg2=(0x\S+) arg3=0x7"),
    ("proc.exec", "path=$path long=+0($path):string rest=+1($path):string", r"path (\S(\S+))", r'path="(\S+)" long="\1" rest="(\S+)"'),
    ("kprobes.mine", "v=$vn off=$off:s64 first=+0($vn):x8", r"vn=(\S+) off=(\d+)", r"v=(\S+) off=(\d+) first=0x\w+"),
    ("synthetic.made", "id=$id:u64 $who:string", r"id=(\d+) who=(\S+)", r'id=(\d+) arg2="(\S+)"'),
]
SETUP = """echo 'p:mine ramfs_read vn=$arg1 off=+0($arg4):s64' > kprobe_events
echo 'made u64 id; char who[]' > synthetic_events
echo 'hist:keys=child_pid:v=child_pid' > events/sched/sched_process_fork/trigger
echo 'hist:keys=pid:id=$v,who=comm:onmatch(sched.sched_process_fork).made($id,$who)' > events/sched/sched_process_exit/trigger
"""
WORK = "load fork -n 3 > /dev/null; head -n 1 /etc/motd > /tmp/x\n"


@portable_test("an event probe has fields of its event, one of Linux's, a class's, a system call's, a kprobe's or a synthetic one, and memory that they lead to")
def fields():
    script = SETUP + "echo 0 > tracing_on\n" + "".join(
        f"echo 'e:probe{i} {event} {args}' >> dynamic_events || cat error_log\necho 1 > events/{event.replace('.', '/')}/enable\n"
        for i, (event, args, *_) in enumerate(TARGETS)) + "echo 1 > events/eprobes/enable\necho 1 > tracing_on\n" + WORK + "echo 0 > tracing_on\ncat trace\n"
    for smp in cpus():
        text, = ftrace(script, smp=smp)
        for i, (event, _, target, probe) in enumerate(TARGETS):
            place, seen = event.replace("/", "."), {"target": [], "probe": []}
            for name, tid, _, _, what in rows(text):
                said, where = probe, rf"probe{i}: \({place}\) "
                if not what.startswith(f"probe{i}: "):
                    said, where = target, "" if "sys_" in target else f"{place.split('.')[1]}: (?:.*\\) )?"
                if name in ("load", "head") and (m := re.match(where + said, what)):
                    seen["probe" if said is probe else "target"].append((tid, *m.groups()))
            check(len(seen["target"]) >= (1 if "write" in place or "exec" in place else 3), f"{event}: {seen}: {text}")
            check_eq(sorted(seen["probe"]), sorted(seen["target"]), f"what {event} and its probe have")


@portable_test("a filter of a definition is about the event, that of the event probe about its arguments; triggers, histograms, instances and D take it as any event")
def filters():
    out = ftrace(
        "echo 'e:big syscalls.sys_enter_write n=$count:u64 if count > 90' >> dynamic_events\necho 'e syscalls.sys_enter_write n=$count:u64 fd=$fd:u32' >> dynamic_events\n"
        "cat dynamic_events\necho =====\nls events/eprobes\ncat events/eprobes/big/format\necho =====\nmkdir instances/i\n"
        "echo 'n < 95' > events/eprobes/big/filter\necho 1 > instances/i/events/eprobes/big/enable\necho 1 > events/eprobes/big/enable\n"
        "echo 'hist:keys=fd:vals=n if comm == head' > events/eprobes/sys_enter_write/trigger\n"
        "dtrace -qn 'eprobe:::big /execname == \"head\"/ { printf(\"D %d\\n\", arg0); exit(0); }' > /tmp/d &\nwhile kill -0 $!; do head -n 1 /etc/motd > /tmp/x; done 2> /dev/null\n"
        "head -c 94 /etc/passwd /etc/motd > /tmp/x; head -c 100 /dev/zero > /tmp/x; head -c 80 /dev/zero > /tmp/x\nwait\ncat /tmp/d\n"
        "cat trace\necho =====\ncat instances/i/trace\necho =====\ncat events/eprobes/sys_enter_write/hist\necho =====\n"
        "echo '-:big' >> dynamic_events\necho 0 > events/eprobes/big/enable\necho '-:big' >> dynamic_events\nrmdir instances/i\necho '-:big' >> dynamic_events\n"
        "echo '-:sys_enter_write' >> dynamic_events\necho > events/eprobes/sys_enter_write/trigger\necho '-:sys_enter_write' >> dynamic_events\n"
        "cat dynamic_events\nls -d events/eprobes\nsysctl -n kern.dtrace.consumers\n", smp=2)
    check_eq(out[0], "e:eprobes/big syscalls.sys_enter_write n=$count:u64\ne:eprobes/sys_enter_write syscalls.sys_enter_write n=$count:u64 fd=$fd:u32\n", "dynamic_events")
    check_match(r'^big\nenable\nfilter\nsys_enter_write\nname: big\n(?:.*\n)*\tfield:u64 n;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: "n=%llu", REC->n$', re.sub(" {2,}", "\n", out[1]), "a format")
    ours, others = ([w.split(") ")[1] for name, *_, w in rows(text) if name == "head"] for text in out[2:4])
    check(ours and set(ours) <= {"n=92", "n=94"} and "n=92" in ours, f"the filter of the event probe: {out[2]}")
    check_eq("n=100" in others and "n=92" in others and "n=80" not in others, True, f"the definition's filter: {others}")
    check_match(r"^D 92$", out[2], "a program in D")
    check_match(r"^\{ fd: +1 \} hitcount: +\d+  n: +\d+$", out[4], "a histogram")
    check_eq(len(re.findall("Device or resource busy", out[5])), 3, f"what is used stays: {out[5]}")
    check_eq(out[5].splitlines()[-2:], ["ls: events/eprobes: No such file or directory", "0"], "what is left")


@portable_test("an event that has a probe is not removed before it; what removes event probes: names, places, arguments, > dynamic_events")
def removal():
    define = "e:g1/one kprobes/mine v=$vn:x32"
    ways = ["-:one", "-:g1/one", "-:g1/", "-:one kprobes/mine", "-:g1/one kprobes.mine v=$vn:x32", "!e:g1/one kprobes/mine v=$vn:x32"]
    out = ftrace(SETUP + "".join(f"echo '{define}' >> dynamic_events\necho '{way}' >> dynamic_events || echo stays\nls -d events/g1\ngrep e: dynamic_events\necho =====\n" for way in ways) +
                 f"echo '{define}' >> dynamic_events\necho 'e:two synthetic.made id=$id' >> dynamic_events\necho 'e:three eprobes.two v=$id' >> dynamic_events\n"
                 f"echo '{define}' >> dynamic_events\necho 'p:g1/one ramfs_read' >> dynamic_events\necho 'e:kprobes/mine kprobes.mine' >> dynamic_events\n"
                 "echo '-:other' >> dynamic_events\necho '-:two kprobes.mine' >> dynamic_events\necho > events/sched/sched_process_exit/trigger\n"
                 "(echo > kprobe_events); (echo > synthetic_events); echo '-:mine' >> kprobe_events; grep -c . dynamic_events\n"
                 "echo 1 > events/eprobes/two/enable; (echo > dynamic_events); echo 0 > events/eprobes/enable\ngrep -c . dynamic_events\necho > dynamic_events; grep -c . dynamic_events\n"
                 "echo > events/sched/sched_process_fork/trigger\n"
                 # that one kind is used keeps all kinds; its event probe alone does not
                 "echo 'p:q kernel_clone' > kprobe_events\necho 's:z u64 x' >> dynamic_events\necho 'e:y synthetic.z' >> dynamic_events\necho 1 > events/kprobes/q/enable\n"
                 "(echo > dynamic_events); echo 0 > events/kprobes/q/enable; grep -c . dynamic_events\necho > dynamic_events; grep -c . dynamic_events\necho =====\n"
                 # its events have stacks as all others; the sysctl does not remove it either
                 f"echo 'p:mine ramfs_read vn=$arg1' > kprobe_events\necho '{define}' >> dynamic_events\necho 1 > options/stacktrace\necho 1 > events/g1/enable\n"
                 "head -n 1 /etc/motd > /tmp/x\necho 0 > options/stacktrace\ngrep -q '<stack trace>' trace && echo stack\nsysctl debug.kprobe.del=mine 2> /dev/null || echo stays\n"
                 "echo 0 > events/g1/enable\necho '-:one' >> dynamic_events\nsysctl debug.kprobe.del=mine > /dev/null\n"
                 "head -n 1 /etc/motd > /tmp/x\ngrep -c . dynamic_events\nsysctl -n kern.dtrace.consumers\n")
    for way, text in zip(ways, out):
        check_eq(text, "ls: events/g1: No such file or directory\n", way)
    check_eq(re.sub(r"^.*?(write error|can't create \w+): ", "", out[-2], flags=re.M).splitlines(),
             ["No such device", "File exists", "File exists", "File exists", "No such file or directory", "No such file or directory",
              "Device or resource busy", "Device or resource busy", "Device or resource busy", "4", "Device or resource busy", "4", "0",
              "Device or resource busy", "3", "0"], out[-2])
    check_eq(out[-1].splitlines()[:4], ["stack", "stays", "0", "0"], f"its stacks, and after its event went: {out[-1]}")


ERRORS = [
    ("e ^a.", "This requires both group and event name to attach"), ("e ^.b", "This requires both group and event name to attach"),
    ("e ^sched", "This requires both group and event name to attach"), ("e ^a.b", "Attached event does not exist"),
    ("e ^sched.sched_sw*", "Attached event does not exist"), ("e ^ftrace.print", "Attached event does not exist"),
    ("e syscalls/sys_enter_openat ^foo", "Invalid fetch argument"), ("e:foo/bar syscalls/sys_enter_openat arg=^dfd", "Invalid fetch argument"),
    ("e:foo/bar syscalls/sys_enter_openat ^arg=$foo", "Attached event does not have this field"), ("e sched.sched_switch ^$retval", "Attached event does not have this field"),
    ("e sched.sched_switch a=^%sp", "Invalid $-valiable specified"), ("e:^/bar syscalls/sys_enter_openat", "Group name is not specified"),
    ("e:^ syscalls/sys_enter_openat", "Event name is not specified"), ("e:foo/^bar.1 syscalls/sys_enter_openat", "Event name must follow the same rules as C identifiers"),
    ("e sched.sched_switch a=$prev_pid ^a=$next_pid", "This argument name is already used"), ("e sched.sched_switch $prev_pid:^u8[2]", "String accepts only memory argument"),
    ("e sched.sched_switch +0(^$comm)", "$comm can not be dereferenced"), ("e sched.sched_switch $prev_pid:^u7", "Unknown type is specified"),
]


@portable_test("error_log says in Linux's words what is wrong with a definition, and where")
def errors():
    out, filters = ftrace(errors_of("dynamic_events", ERRORS) + "echo =====\necho > error_log\necho 'e sched.sched_switch if ' >> dynamic_events\necho 'e sched.sched_switch a=$prev_pid if prev_pid > 3 && pid == 1' >> dynamic_events\n"
                          "cat dynamic_events error_log\nsysctl -n kern.dtrace.consumers\n")
    check_errors("event_probe", ERRORS, out)
    check_match(r"\] event_probe: error: No filter rule after 'if'\n  Command: e sched.sched_switch if\n {35}\^$", filters, "no filter")
    check_match(r"\] event filter parse error: error: Field not found\n  Command: prev_pid > 3 && pid == 1\n {31}\^\n0$", filters, "a filter")


if __name__ == "__main__":
    main()
