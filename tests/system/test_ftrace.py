#!/usr/bin/python3
"""test_ftrace.py - /sys/kernel/tracing: its files do what Linux's do, and show what the log has."""
import re
import struct

from harness import ARCH, boot, check, check_eq, check_match, cpus, main, portable_test, scratch_file, test, times
from tracefs import CD, ENTRIES, rows

CALL = re.compile(r"^ +(\d+)\) ([$@*#!+ ]) *([\d.]+ us)? +\|  ( *)(\S.*?)\r?$", re.M)


def ftrace(script, smp=4, **more):
    """The console's text, in parts that `echo =====` separates."""
    return boot(CD + script, smp=smp, sets=more.pop("sets", [ENTRIES]), **more).expect().out.replace("\r", "").split("=====\n")


@test("function: every call of the functions in set_ftrace_filter, with its caller, in the order of time; nop and > trace clear")
def function():
    for smp in cpus():
        found, header, empty, cleared, profile, itself = ftrace(
            "echo ramfs_read 'ramfs_[wt]*' '!ramfs_truncate' > set_ftrace_filter\necho function > current_tracer\n"
            "load file -n 20 -j 3\necho nosuchtracer > current_tracer\ncat trace\necho =====\n"
            "echo 0 > options/irq-info\nhead -n 6 trace\necho =====\necho > trace\ncat trace\necho =====\n"
            "load file -n 1 >/dev/null\necho nop > current_tracer\ncat trace\necho =====\n"
            "echo 1 > function_profile_enabled\nload file -n 20 -j 3\nsysctl -n debug.fbt.profile\necho 0 > function_profile_enabled\ncat trace_stat/function*\necho =====\n"
            "echo > set_ftrace_filter\necho 1 > function_profile_enabled\necho 0 > function_profile_enabled\n"
            "grep -h -e ' sys_openat ' -e ' memcpy ' trace_stat/function*\n", smp=smp)
        got = rows(found)
        check_eq({what for *_, what in got if not re.fullmatch(r"(ramfs_\w+) <-(\w+)", what)}, set(), "lines of another form")
        by = {name: sum(what.startswith(name + " ") for *_, what in got) for name in ("ramfs_read", "ramfs_write", "ramfs_truncate")}
        check_eq(by["ramfs_truncate"], 0, "calls of a function that was taken off the list")
        check({what for *_, what in got} >= {"ramfs_read <-file_move_bytes", "ramfs_write <-file_move_bytes"}, f"callers: {got[:5]}")
        times = [time for *_, time, _ in got]
        check_eq(times, sorted(times), "times")
        check({cpu for _, _, cpu, *_ in got} <= set(range(smp)), "CPUs that there are not")
        n = int(check_match(r"^# entries-in-buffer/entries-written: (\d+)/\1   #P:%d$" % smp, found, "the count")[1])
        check_eq(len(got), n, "lines, and entries that the head counts")
        check_match(r"^sh: .*Invalid argument$", found, "a tracer that there is not")
        check_match(r"^#           TASK-PID     CPU#     TIMESTAMP  FUNCTION$", header, "the head without irq-info")
        check_eq((rows(empty), rows(cleared)), ([], []), "lines after > trace, and after nop")
        hits = sum(map(int, re.findall(r"^  ramfs_write +(\d+) ", profile, re.M)))
        check_eq(profile.split("\n  Function")[0].splitlines()[1:], ["FUNCTION CPU HITS TIMED NS SELF-NS SQUARE-HIGH SQUARE-LOW"], "what no session counts")
        check_eq(hits, sum(w.startswith("ramfs_write ") and name.startswith("load") for name, *_, w in got), "ramfs_write, profiled and traced")
        check_match("sys_openat|memcpy", itself, "what is called while the profiler is on")
        copies = [int(n) for n in re.findall(r"^  memcpy +(\d+) ", itself, re.M)]
        check(sum(copies) < 1000, f"calls of memcpy, with which the profiler's own switching writes probes: {copies}")


# Functions of these names do here what they do in Linux.
LINUX_NAMES = ("__kmalloc alloc_pages close_fd do_execveat_common do_exit do_filp_open do_group_exit do_mkdirat "
               "do_nanosleep do_sys_open do_sys_openat2 do_unlinkat do_wp_page filp_close getname handle_mm_fault "
               "hrtimer_cancel hrtimer_nanosleep hrtimer_start_range_ns kernel_clone kfree "
               "schedule scheduler_tick submit_bio try_to_wake_up ttwu_do_wakeup vfs_open vfs_read vfs_symlink vfs_unlink "
               "vfs_write wake_up_new_task wake_up_process").split()


@test("functions that do what one of Linux does have its name, and are called; linux_proc_banner is the text of /proc/version")
def names():
    traced, banner, version, woke = ftrace(
        f"echo {' '.join(LINUX_NAMES)} > set_ftrace_filter\necho function > current_tracer\n"
        "/bin/cat /etc/motd > /tmp/copy\n/bin/ln -s a /tmp/link\n/bin/rm /tmp/link\n/bin/mkdir /tmp/new\necho a > /mnt/f\n/bin/sync\n/bin/sleep 0.1\n(exit 3)\necho 0 > tracing_on\ncat trace\necho =====\n"
        "echo nop > current_tracer\necho 1 > tracing_on\necho 'p:banner kernel_clone text=@linux_proc_banner:string' > kprobe_events\n"
        "echo 1 > events/kprobes/banner/enable\n(exit 3)\ngrep -o 'text=.*' trace\necho =====\ncat /proc/version\n"
        "echo =====\necho 0 > events/enable\necho 'r:woke try_to_wake_up n=$retval:s32' >> kprobe_events\n"
        "echo 1 > events/kprobes/woke/enable\n"
        "/bin/sleep 0.1\necho 0 > events/enable\ngrep -o ' n=.*' trace | sort -u\n", smp=2,
        options=["--disk", str(scratch_file(".img"))])
    check_eq(sorted({what.split(" ")[0] for *_, what in rows(traced)}), LINUX_NAMES, "functions that were called")
    check_eq({what for *_, what in rows(traced) if what.startswith("try_to_wake_up ")},
             {"try_to_wake_up <-wake_up_process"}, "who wakes threads that slept")
    check_eq(woke.split(), ["n=1"], "what try_to_wake_up() returned")
    form = re.escape(check_match(r'^text="(.*)$', banner, "the banner")[1]).replace("%s", r"\S+")
    check_match(rf"^{form.rpartition(' ')[0]} ", version, "/proc/version")


PREFIX = "__x64_" if ARCH == "x86_64" else "__arm64_"


@portable_test("a system call's function has Linux's name beside its own, and is shown by the one that was asked for, wherever functions are named")
def other_names():
    listed, traced, graph, probed, own = ftrace(
        "echo '*sys_read' > set_ftrace_filter\ncat set_ftrace_filter\necho > set_ftrace_filter\ngrep 'sys_read$' available_filter_functions\ngrep 'sys_read$' /proc/kallsyms\necho =====\n"
        f"echo '{PREFIX}sys_rea[d]' > set_ftrace_filter\necho '{PREFIX}sys_kill:traceoff' >> set_ftrace_filter\ncat set_ftrace_filter\necho '!{PREFIX}sys_kill:traceoff' >> set_ftrace_filter\n"
        "echo function > current_tracer\nhead -n 1 /etc/motd >/dev/null\ncat trace\necho =====\n"
        f"echo > set_ftrace_filter\necho {PREFIX}sys_openat > set_graph_function\necho function_graph > current_tracer\ncat /etc/motd > /dev/null\ncat trace set_graph_function\n"
        "echo nop > current_tracer\necho > set_graph_function\necho =====\n"
        f"echo 'p:named {PREFIX}sys_close' > kprobe_events\necho 1 > events/kprobes/named/enable\ncat /etc/motd > /dev/null\ncat trace kprobe_events\n"
        "echo 0 > events/kprobes/enable\necho =====\n"
        "echo sys_read > set_ftrace_filter\necho function > current_tracer\nhead -n 1 /etc/motd > /dev/null\ncat trace\n", smp=1)
    check_match(rf"\A(?:sys_read\n{PREFIX}sys_read\n){{2}}(\w{{16}}) T sys_read\n\1 a {PREFIX}sys_read\n\Z", listed, "the lists")
    check_match(rf"\A{PREFIX}sys_read\n{PREFIX}sys_kill:traceoff:unlimited\n", traced, "set_ftrace_filter")
    check_eq({what for *_, what in rows(traced)}, {f"{PREFIX}sys_read <-entry_syscall"}, "the function tracer")
    check_match(rf"\|  {PREFIX}sys_openat\(\) {{$", graph, "the graph")
    check_match(rf"^{PREFIX}sys_openat$", graph, "set_graph_function")
    check_match(rf" named: \({PREFIX}sys_close\+0x0/0x\w+\)$", probed, "the probe's event")
    check_match(rf"^p:kprobes/named {PREFIX}sys_close$", probed, "the probe")
    check_eq({what for *_, what in rows(own)}, {"sys_read <-entry_syscall"}, "its own name")


@portable_test("trace is whole while the tracer of all functions is on: who reads it overwrites little")
def whole():
    out = ftrace("echo function > current_tracer\nload mix -n 100 > /dev/null\ncat trace > /tmp/copy\necho 0 > tracing_on\nwc -l < /tmp/copy\ncat trace | wc -l\n", smp=1, options=["--icount"])[0]
    live, still = map(int, re.findall(r"^ *(\d+)$", out, re.M))
    check(live > 0.7 * still > 40000, f"{live} lines, {still} when tracing is off")


@portable_test("function_graph: calls that were open when tracing stopped, or when the functions or threads changed, are forgotten")
def nap():
    out = ftrace("echo function_graph > current_tracer\necho 0 > tracing_on\necho > trace\necho 1 > tracing_on\necho 0 > tracing_on\ncat trace\necho =====\n"
                 # The shell is within sys_write when that leaves the list.
                 "echo nop > current_tracer\necho 1 > tracing_on\necho sys_write > set_ftrace_filter\necho function_graph > current_tracer\necho sys_openat >> set_ftrace_filter\n"
                 "echo '!sys_write' >> set_ftrace_filter\necho > trace\n: > /tmp/x\ncat trace\necho =====\n"
                 "echo nop > current_tracer\necho sys_write > set_ftrace_filter\necho function_graph > current_tracer\necho $$ > set_ftrace_notrace_pid\n: > set_ftrace_notrace_pid\n"
                 "echo > trace\necho x > /tmp/x\ncat trace\n", smp=1)
    check_eq(CALL.search(out[0])[4], "", f"the indent of the first call in {out[0]}")
    check_eq({m[3] for m in CALL.findall(out[1])}, {""}, f"indents when a function left the list in which the thread was: {out[1]}")
    check_eq({m[3] for m in CALL.findall(out[2])}, {""}, f"indents when the thread left and came back: {out[2]}")


@portable_test("function_graph: without sleep-time, the time in which the thread had no CPU does not count")
def sleep_time():
    out = ftrace("echo do_nanosleep > set_ftrace_filter\necho function_graph > current_tracer\nsleep 0.05\necho 0 > options/sleep-time\nsleep 0.05\ncat trace\n",
                 smp=1, options=["--icount"])[0]
    slept, on_cpu = [float(m[2][:-3]) for m in CALL.findall(out) if m[4] == "do_nanosleep();"]
    check(slept >= 50000 > 1000 > on_cpu > 0, f"{slept} us, {on_cpu} us")


@portable_test("tracefs_create_dir is called when the directory of an event or of an instance comes to be, with its name; who defines an event need not look into events/")
def directories():
    out = ftrace("echo 'p:made tracefs_create_dir name=+0($arg1):string' > kprobe_events\necho 1 > events/kprobes/made/enable\n"
                 "echo 'p:one kernel_clone' >> kprobe_events\necho 'p:group/two kernel_clone' >> kprobe_events\necho 's:three u64 x' >> dynamic_events\n"
                 "echo 'e:four sched.sched_switch' >> dynamic_events\nmkdir instances/five\nls events/kprobes events/group events/synthetic events/eprobes instances > /dev/null\n"
                 "grep -o 'name=\"[otgf][a-z]*\"$' trace\n", smp=1)[0]
    check_eq(re.findall(r'name="(\w+)"', out), ["one", "group", "two", "three", "four", "five"], "directories")


@test("function_graph: calls nest and end; set_graph_function, set_graph_notrace, max_graph_depth, tracing_thresh and the options choose")
def graph():
    tree, columns, deep, without, slow = ftrace(
        "echo sys_openat > set_graph_function\necho function_graph > current_tracer\ncat /etc/motd >/dev/null\ncat trace\necho =====\n"
        "for o in abstime proc tail; do echo 1 > options/funcgraph-$o; done\nhead -n 5 trace\n"
        "for o in abstime proc tail; do echo 0 > options/funcgraph-$o; done\necho =====\n"
        "echo 2 > max_graph_depth\necho > trace\ncat /etc/motd >/dev/null\ncat trace\necho 0 > max_graph_depth\necho =====\n"
        "echo file_open_at > set_graph_notrace\necho > trace\ncat /etc/motd >/dev/null\ncat trace\necho > set_graph_notrace\necho =====\n"
        "echo > set_graph_function\necho 1000 > tracing_thresh\necho > trace\nsleep 0.01\ncat trace\n")
    stack, leaves = [], 0
    for _, mark, duration, indent, what in CALL.findall(tree):
        if what.endswith("() {"):
            check_eq(len(indent), 2 * len(stack), f"the indent of {what}")
            stack.append(what[:-4])
        elif what.endswith("();"):
            check(duration, f"{what}: no duration")
            leaves += 1
        else:
            check_eq((what, bool(duration), len(indent)), ("}", True, 2 * len(stack) - 2), f"the end of {stack}")
            stack.pop()
            if not stack:
                check_eq(mark, {False: " "}.get(float(duration[:-3]) > 10, mark), "the mark")
    check_eq((stack, leaves > 20), ([], True), "calls that do not end; leaves")
    check_match(r"^#     TIME        CPU  TASK/PID         DURATION                  FUNCTION CALLS$", columns, "the head")
    check_match(r"^ +\d+\.\d{6} \|   \d\)  +(sh|cat)-\d+ +\|   ( |\d)", columns, "time, CPU and thread")
    check({len(i) for *_, i, _ in CALL.findall(deep)} == {0, 2}, f"depths: {deep}")
    check("do_sys_openat2()" in without and "vnode_lookup" not in without, f"file_open_at is hidden with what it calls: {without}")
    durations = [float(d[:-3]) for _, _, d, _, what in CALL.findall(slow)]
    check(durations and min(durations) >= 1000 and re.search(r"} /\* \w+ \*/", slow), f"only calls of 1 ms, with names: {slow}")


@portable_test("set_ftrace_pid: only these threads")
def pids():
    out = ftrace("cat set_ftrace_pid\necho $$ > set_ftrace_pid\necho $$ $$ >> set_ftrace_pid\ncat set_ftrace_pid\necho 'sys_*' > set_ftrace_filter\necho function > current_tracer\n"
                 "cat /etc/motd >/dev/null\necho > /tmp/x\ncat trace\n")[0]
    pid = int(check_match(r"^no pid\n(\d+)\n(?!\d+\n)", out, "the list before, and after: a thread is in it once")[1])
    found = {tid for _, tid, *_ in rows(out)}
    check_eq(found, {pid}, "threads")


@portable_test("events: enable, set_event and their X; what `trace` prints of an event is what ktrdump prints")
def events():
    states, trace, dump = ftrace(
        "echo 1 > events/syscalls/sys_enter_openat/enable\necho vfs:lookup 'proc:e*' >> set_event\ncat set_event\n"
        "cat events/enable events/syscalls/enable events/vfs/enable events/vfs/lookup/enable events/PMAP/enable\n"
        "echo 'vfs:nosuch' >> set_event\necho =====\ncat /etc/motd >/dev/null\necho > set_event\ncat set_event events/enable\n"
        "cat trace\necho =====\nktrdump -cs\n"
        "cat trace > /tmp/all\nfor skip in 1 3 999999; do dd if=trace bs=97 skip=$skip count=9 2>/dev/null | md5sum; "
        "dd if=/tmp/all bs=97 skip=$skip count=9 2>/dev/null | md5sum; done\n", smp=1)
    check_match(r"^syscalls:sys_enter_openat$", states, "set_event")
    check_match(r"^X\nX\nX\n1\n0\nsh: .*Invalid argument$", states, "the states")
    got = [what for *_, what in rows(trace)]
    sums = re.findall(r"^([0-9a-f]{32}) ", dump, re.M)
    check_eq((len(sums), sums[::2]), (6, sums[1::2]), "what is read after a seek, before any other read")
    names = {what.split(":")[0] for what in got}
    check(names >= {"sys_openat(dfd", "lookup", "exec", "exit"}, f"events: {names}")
    check_match(r"^0$", trace, "the state after > set_event")
    dumped = [line.split(None, 3)[3] for line in dump.splitlines() if re.match(r" +\d+ +\d+ +\d+\.\d{9} ", line)]
    for what, line in zip(got, dumped[-len(got):]):
        text = what.split(": ", 1)[1]
        if what.startswith("sys_openat("):
            line = "syscall openat: arg0 0x%s arg1 0x%s arg2 0x%s arg3 0x%s arg4" % tuple(check_match(
                r"^sys_openat\(dfd: (\w+), filename: (\w+), flags: (\w+), mode: (\w+)\)$", what, "a system call").groups()) + line.split("arg4")[1]
            text = line = line.replace("0x0 ", "0 ")
        check(line.endswith(": " + text) or line == text, f"texts of trace, and of ktrdump: {what} {line}")


@portable_test("Linux's own events: their fields, and that they come in the order of what happens")
def linux_events():
    exact, busy, formats = ftrace(
        "for e in sched/sched_process_fork sched/sched_process_exec sched/sched_process_exit syscalls/sys_exit_clone raw_syscalls/sys_enter raw_syscalls/sys_exit "
        "signal/signal_generate signal/signal_deliver; do echo 1 > events/$e/enable; done\n"
        "sh -c 'load fork -n 2; kill -9 $$'\necho > set_event\ncat trace\necho =====\necho > trace\n"
        "for e in sched/sched_switch sched/sched_waking sched/sched_wakeup timer irq kmem exceptions lock; do echo 1 > events/$e/enable; done\n"
        "load lock -n 200 -j 8 >/dev/null\nload mix -n 1 >/dev/null\nsleep 0.01\necho > set_event\ncat trace\necho =====\n"
        "cat events/sched/sched_switch/format events/irq/irq_handler_entry/format\n")
    got = [(tid, *(what.split(": ", 1) if " -> " not in what else what.split(" -> "))) for _, tid, _, _, what in rows(exact)]
    forks = [m for _, name, text in got if name == "sched_process_fork" and (m := re.match(r"parent_comm=load parent_pid=(\d+) child_comm=load child_pid=(\d+)$", text))]
    check_eq(len(forks), 2, "forks of load")
    children = [int(m[2]) for m in forks]
    check_eq([tid for tid, name, text in got if name == "sched_process_exit" and tid in children], children, "their exits")
    clones = [int(text, 16) for tid, name, text in got if name == "sys_clone" and tid == int(forks[0][1])]
    check_eq(clones, children, "what clone returned")
    execs = [m for tid, name, text in got if name == "sched_process_exec" and (m := re.match(r"filename=(\S+) pid=(\d+) old_pid=\2$", text))]
    check("/bin/load" in [m[1] for m in execs], f"execs: {[m[0] for m in execs]}")
    open_calls = {}
    for tid, name, text in got:
        number = re.match(r"NR (\d+) (?:= -?\d+|\([0-9a-f]+(?:, [0-9a-f]+){5}\))$", text)
        if name == "sys_enter":
            open_calls[tid] = number[1]
        elif name == "sys_exit" and tid in open_calls:
            check_eq(number[1], open_calls.pop(tid), f"the call that returns in thread {tid}")
    check([t for _, name, t in got if name == "signal_generate" and t.startswith("sig=9 ")] and
          [t for _, name, t in got if name == "signal_deliver" and t.startswith("sig=9 ")], "signal 9")
    names = {}
    running = {}
    last = {}
    for _, tid, cpu, _, what in rows(busy):
        name, text = what.split(": ", 1)
        names.setdefault(name, []).append(text)
        if name == "sched_switch":
            m = check_match(r"^prev_comm=(.+) prev_pid=(\d+) prev_prio=\d+ prev_state=[RSDX] ==> next_comm=(.+) next_pid=(\d+) next_prio=\d+$", text, "a switch")
            check_eq(int(m[2]), running.get(cpu, int(m[2])), "the thread that ran before")
            check(m[2] != "0" or m[1] == f"swapper/{cpu}", text)
            running[cpu] = int(m[4])
            last[m[2]] = last[m[4]] = cpu
        elif name == "sched_waking":
            m = check_match(r"^comm=.+ pid=(\d+) prio=\d+ target_cpu=(\d+)$", text, "a waking")
            check_eq(int(m[2]), int(last.get(m[1], m[2])), f"the CPU where thread {m[1]} has run, to which sched_waking says that it goes")
    for name in ("sched_switch", "sched_waking", "sched_wakeup", "timer_start", "timer_expire_entry", "timer_expire_exit", "irq_handler_entry", "irq_handler_exit",
                 "kmalloc", "kfree", "mm_page_alloc", "mm_page_free", "page_fault_user", "contention_begin", "contention_end"):
        check(name in names, f"no {name}: {sorted(names)}")
    check_match(r"^call_site=0x[0-9a-f]+ ptr=0x[0-9a-f]+ bytes_req=\d+ bytes_alloc=\d+$", "\n".join(names["kmalloc"]), "kmalloc")
    check_eq({t for t in names["irq_handler_exit"] if not re.match(r"irq=\d+ ret=handled$", t)}, set(), "irq_handler_exit")
    fields = re.findall(r"field:(?:__data_loc char\[\]|\S+) (\w+)(?:\[16\])?;", formats)
    check_eq([name for name in fields if not name.startswith("common")],
             "prev_comm prev_pid prev_prio prev_state next_comm next_pid next_prio irq name".split(), "fields")


@test("kprobe_events: probes are made, listed, printed as Linux does, counted and removed; error_log shows where a definition is wrong")
def kprobes():
    out, after = ftrace(
        "echo 'p:mine ramfs_read vn=$arg1 off=+0($arg4):u64' >> kprobe_events\necho 'r:ret ramfs_read ret=$retval:s64' >> kprobe_events\n"
        "cat kprobe_events\nls events/kprobes\ngrep 'field:[us]64' events/kprobes/*/format\necho 1 > events/kprobes/enable\n"
        "head -n 1 /etc/motd >/dev/null\necho 0 > events/kprobes/enable\ncat trace kprobe_profile\necho 'p:bad nosuch' >> kprobe_events\n"
        "echo 'r:bad sys_read+8' >> kprobe_events\necho 'e:bad no.such' >> dynamic_events\ncat error_log\n"
        "echo =====\necho '-:mine' >> kprobe_events\nls events/kprobes\necho > kprobe_events\nls events/kprobes\n"
        "cat kprobe_events\ncat trace\n"
        "echo 'p:again ramfs_read off=+0($arg4):u64' > kprobe_events\necho 'off == 99999' > events/kprobes/again/filter\n"
        "echo 1 > events/kprobes/again/enable\necho > kprobe_events\necho 0 > events/kprobes/enable\n(cd events/kprobes/again\n"
        "echo > /sys/kernel/tracing/kprobe_events\nls /sys/kernel/tracing/events/kprobes\nls)\n"
        "echo 'p:other ramfs_read off=+0($arg4):u64' > kprobe_events\n"
        "cat events/kprobes/other/filter events/kprobes/other/enable\necho 1 > events/kprobes/other/enable\nhead -n 1 /etc/motd >/dev/null\ncat trace\n"
        "echo stacktrace > events/kprobes/other/trigger\nktr probe del other\necho '!stacktrace' > events/kprobes/other/trigger\necho 0 > events/kprobes/enable\n"
        "echo 'ktr probe del other; echo > /sys/kernel/tracing/kprobe_events' > /tmp/del\ndtrace -qn 'kprobe:::other { }' -c 'sh /tmp/del'\n"
        "cat kprobe_events\nktr probe del other\ncat kprobe_events\nsysctl -n kern.dtrace.consumers\n", smp=1)
    check_match(r"^p:kprobes/mine ramfs_read vn=\$arg1 off=\+0\(\$arg4\):u64\nr:kprobes/ret ramfs_read ret=\$retval:s64$", out, "the list")
    check_match(r"^enable  filter  mine    ret$", out, "the directory")
    check_match(r"field:u64 __probe_ip;\s+offset:8;(?:.*\n)+.*field:u64 off;\s+offset:24;", out, "the fields")
    got = [what for name, *_, what in rows(out) if name == "head"]
    reads = [(re.match(r"mine: \(ramfs_read\+0x0/0x[0-9a-f]+\) vn=0x[0-9a-f]+ off=(\d+)$", a),
              re.match(r"ret: \(\w+\+0x[0-9a-f]+/0x[0-9a-f]+ <- ramfs_read\) ret=(\d+)$", b)) for a, b in zip(got[::2], got[1::2])]
    check(reads and all(a and b for a, b in reads), f"entry and return in turns: {got}")
    check_eq([(int(a[1]), int(b[1])) for a, b in reads[-1:]], [(0, 92)], "offset and result of the read of /etc/motd")
    hits = len(rows(out)) // 2
    check_match(rf"^  mine +{hits} +0$", out, "kprobe_profile")
    check_match(r"^\[ +\d+\.\d{6}\] trace_kprobe: error: Invalid probed address or symbol\n  Command: p:bad nosuch\n {17}\^$", out, "error_log")
    check_match(r"^\[ +\d+\.\d{6}\] trace_kprobe: error: Retprobe address must be an function entry\n  Command: r:bad sys_read\+8\n {17}\^$", out, "error_log")
    check_match(r"^sh: .*No such file or directory\nsh: .*Invalid argument\nsh: .*No such device\n\[", out, "the errors")
    check_match(r"^enable  filter  ret\nenable  filter\n# tracer", after, "the directory after the removals")
    check(" ret: " not in after, f"events of a probe that was removed: {after}")
    check_match(r"^\S+: .*Device or resource busy$", after, "the removal of a probe whose event is enabled")
    check_match(r"^none\n0$", after, "the filter and state of a probe that is made after the removal of one with a filter")
    check_match(r" other: \(ramfs_read\S* off=0\n(?: .*\n)*ktr: the probe is on for ftrace events\nktr: the probe is on for dtrace\n/tmp/del: .*Device or resource busy\n\n?p:kprobes/other .*\n0\n$", after,
                "its event; it stays while a trigger, and a program in D, are at it; nothing is left when `ktr probe del` has removed it")


@portable_test("filter: of an event that is enabled, only the firings for which it is true; a wrong one is refused in Linux's words, with its place")
def filters():
    expressions = {  # what sh writes of 11, 12, 13, 14 bytes, and cat of 14
        "result == 11": ([11], []), "result > 11 && result <= 13": ([12, 13], []), "!(result != 11) || result == 14": ([11, 14], [14]),
        "result & 4": ([12, 13, 14], [14]), "comm == cat": ([], [14]), "comm != 'cat'": ([11, 12, 13, 14], []), "comm ~ 's*'": ([11, 12, 13, 14], []),
        "comm ~ '[a-c]*t'": ([], [14]), "common_pid == 99999": ([], []), "cpu == 0 && (result < 13)": ([11, 12], []),
        "result == 0xe": ([14], [14]), "ino >= 0 && result == -9": ([], []), "result==11||result==12&&comm==cat": ([11], [])}
    script = "cd events\nvop=$(echo VOP/vfs_write_*)\nopen=$(echo VFS/file_open_at_*)\necho =====\n"
    for text in expressions:
        script += (f"echo \"{text}\" > $vop/filter\ncat $vop/filter\necho 1 > $vop/enable\necho > ../trace\n"
                   "for n in 1 12 123 1234; do echo 012345678$n > /tmp/x; done\ncat /tmp/x > /tmp/y\ncat ../trace\necho 0 > $vop/enable\necho =====\n")
    script += ("echo 0 > $vop/filter\ncat $vop/filter\necho 'path ~ \"*motd\"' > $open/filter\necho 1 > $open/enable\ncat /etc/motd /tmp/x >/dev/null\n"
               "cat ../trace\necho 0 > $open/enable\necho =====\n")
    wrong = [("nosuch == 1", 7, "Field not found"), ("result = 1", 7, "Invalid operator"), ("result == x", 10, "Illegal integer value"),
             ("(result == 1", 0, "Too many '('"), ("result == 1)", 11, "Too few '('"), ("comm == 'a", 8, "Missing matching quote"),
             ("comm > a", 5, "Illegal operation for field type"), ("result ~ 1", 7, "Illegal operation for field type"),
             ("result == 1 &&", 14, "Meaningless filter expression"), ("result == '1'", 10, "Expecting numeric field"),
             ("comm == 1", 8, "Expecting numeric field"), ("comm != -1", 8, "Expecting numeric field")]
    for text, *_ in wrong:
        script += f"echo > ../error_log\necho \"{text}\" > $vop/filter\ncat ../error_log\n"
    script += "cat $vop/filter\necho =====\necho 'result == 1' > VOP/filter\ncat $vop/filter\necho nosuch==1 > VOP/filter\ntrue\n"
    _, *found, paths, errors, system = ftrace(script, smp=1)
    for (text, expected), part in zip(expressions.items(), found):
        check(part.startswith(text + "\n"), f"{text}: the file has {part.splitlines()[0]}")
        got = {"sh": [], "cat": []}
        for name, *_, what in rows(part):
            n = int(check_match(r" result (-?\d+)$", what, "the result")[1])
            if 11 <= n <= 14:
                got[name].append(n)
        check_eq((got["sh"], got["cat"]), expected, f"the writes by {text}")
    check_match(r"^none$", paths, "a filter that was taken away")
    check_eq(re.findall(r"open: path (\S+)", paths), ["motd"], "paths")
    for text, at, message in wrong:
        check_match(rf"error: {re.escape(message)}\n  Command: {re.escape(text)}\n {{{at + 11}}}\^$", errors, text)
    check_match(r"^none$", errors, "the filter after errors")
    check_match(r"^result == 1\nsh: .*Invalid argument$", system, "the filter of a system")


@portable_test("triggers: each does its action so often as it says and where its filter is true, shows what is left of it, and goes; wrong ones are refused")
def triggers():
    shown, traced, functions, errors = ftrace(
        "t=events/sched/sched_process_fork/trigger\ncat $t\necho 'stacktrace:2 if comm == load' > $t\necho 'enable_event:vfs:lookup:1 if comm == load' >> $t\n"
        "cat $t events/vfs/lookup/enable\nload fork -n 3\ncat $t events/vfs/lookup/enable\nfor i in 1 2; do echo 'disable_event:vfs:lookup if comm == load' >> $t || echo '!enable_event:vfs:lookup' >> $t; done 2>&1\nload fork -n 1\n"
        "cat events/vfs/lookup/enable\necho 'name ~ \"mo*\"' > events/vfs/lookup/filter\necho 1 > events/vfs/lookup/enable\ncat /etc/motd /etc/passwd >/dev/null 2>&1\n"
        "cat events/vfs/lookup/enable\nfor x in 'stacktrace' 'enable_event:vfs:lookup' 'disable_event:vfs:lookup'; do echo \"!$x\" >> $t; done\n"
        "cat $t events/vfs/lookup/enable\necho 0 > events/vfs/lookup/enable\necho =====\ncat trace\necho =====\necho > trace\n"
        "echo 'sys_*kill:stacktrace:2' >> set_ftrace_filter\necho sys_kill:stacktrace >> set_ftrace_filter\ncat set_ftrace_filter\n"
        "for n in 1 2 3; do kill -0 $$; done\necho '!sys_t*:stacktrace' >> set_ftrace_filter\n"
        "cat set_ftrace_filter trace\necho '!sys_kill:stacktrace:count=0' >> set_ftrace_filter\ncat set_ftrace_filter\n"
        "echo 'traceoff if child_pid > 0' > $t\nload fork -n 1 >/dev/null\ncat tracing_on\necho '!traceoff' >> $t\necho 1 > tracing_on\n"
        "echo 'sys_kill:traceoff' >> set_ftrace_filter\nkill -0 $$\ncat tracing_on\necho '!sys_kill:traceoff' >> set_ftrace_filter\necho 1 > tracing_on\n"
        # Where the kernel holds a lock.
        "l=$(ls -d events/LOCK/mutex_unlock* | head -n 1)/trigger\necho traceoff > $l\ncat tracing_on\necho '!traceoff' > $l\necho 1 > tracing_on\n"
        "cat set_ftrace_filter\necho =====\n"
        "for x in nosuch traceoff:x enable_event:vfs enable_event:vfs:nosuch 'traceoff if nosuch == 1' enable_hist:vfs:nosuch; do echo \"$x\" >> $t; done\n"
        "echo 'traceoff:7 if child_pid == 0' >> $t\nfor x in traceoff:7 traceon; do echo $x >> $t; done\ncat $t error_log\necho '!traceoff' >> $t\necho 'nosuchfunction:traceoff' >> set_ftrace_filter\n"
        "echo 'sys_brk:nosuch' >> set_ftrace_filter\necho '!sys_brk:traceoff' >> set_ftrace_filter\nsysctl -n kern.dtrace.consumers\n", smp=1)
    available = "# Available triggers:\n# traceon traceoff snapshot stacktrace enable_event disable_event enable_hist disable_hist hist\n"
    check_eq(re.sub(r"load fork: .*\n", "", shown), available +
             "stacktrace:count=2 if comm == load\nenable_event:vfs:lookup:count=1 if comm == load\n0*\nstacktrace:count=0 if comm == load\nenable_event:vfs:lookup:count=0 if comm == load\n1*\n"
             "sh: write error: File exists\n0*\n1*\n" + available + "1\n", "the files")
    stacks = re.findall(r"<stack trace>\n((?: => \w+\n)+)", traced)
    check_eq(len(stacks), 2, "stacks")
    check(all("=> sys_clone\n" in s and "=> entry_syscall\n" in s for s in stacks), f"{stacks}")
    lookups = [what for *_, what in rows(traced) if what.startswith("lookup: ")]
    names = {what.split()[4] for what in lookups}
    check("motd" in names and "passwd" not in names and len(names) > 1, f"{lookups}")
    head = r"#### all functions enabled ####\n"
    check_match(rf"^sh: .*File exists\n{head}(sys_\w*kill:stacktrace:count=2\n){{3}}{head}sys_kill:stacktrace:count=0\n# tracer", functions, "the list")
    check_eq(len(re.findall(r"<stack trace>\n => sys_kill\n => entry_syscall\n", functions)), 2, "stacks of the function")
    check_match(r"^#### all functions enabled ####\n0\n0\n0\n#### all functions enabled ####$", functions, "tracing_on after traceoff")
    check_eq(len(re.findall("^sh: .*Invalid argument$", errors, re.M)), 9, "commands that are refused")
    check_match(r"^(?:sh: .*File exists\n){2}traceoff:count=7 if child_pid == 0\n\[.*\] event filter parse error: error: Field not found\n  Command: traceoff if nosuch == 1\n {30}\^$", errors, "what is left")
    check_match(r"^0\n$", errors, "programs that are left")


@portable_test("hist: keys, values, order, modifiers and commands; what it counts is what the trace has; rows from all CPUs are added up")
def hists():
    for smp in cpus():
        out = ftrace(
            "t=events/raw_syscalls/sys_enter/trigger\nh=events/raw_syscalls/sys_enter/hist\ncat $h\necho 'hist:key=common_pid.execname,id.syscall if comm == load' > $t\n"
            "echo 'comm == load' > events/raw_syscalls/sys_enter/filter\necho 1 > events/raw_syscalls/sys_enter/enable\nload file -n 20 -j 3\n"
            "echo 0 > events/raw_syscalls/sys_enter/enable\ncat $t $h\necho =====\ncat trace\necho =====\n"
            "echo 0 > events/raw_syscalls/sys_enter/filter\n"
            "echo 'hist:keys=arg2.buckets=100:vals=arg2,arg0.hex:sort=arg2.descending:size=200 if id == '$(test $(sysctl -n hw.machine) = aarch64 && echo 64 || echo 1) > $t\n"
            "load file -n 5\ncat $h\necho '!hist:keys=arg2.buckets=100:vals=arg2,arg0.hex:sort=arg2.descending:size=200 if id == 1' > $t\ncat $t\necho =====\n"
            "echo 'hist:keys=bytes_req.log2:vals=hitcount.percent,bytes_alloc.graph:pause' > events/kmem/kmalloc/trigger\nload fork -n 1 >/dev/null\ncat events/kmem/kmalloc/hist\n"
            "echo 'hist:keys=bytes_req.log2:vals=hitcount.percent,bytes_alloc.graph:continue' >> events/kmem/kmalloc/trigger\nload fork -n 2 >/dev/null\n"
            "echo 'hist:keys=bytes_req.log2:vals=hitcount.percent,bytes_alloc.graph:pause' >> events/kmem/kmalloc/trigger\ncat events/kmem/kmalloc/hist\n"
            "echo 'hist:keys=bytes_req.log2:vals=hitcount.percent,bytes_alloc.graph:clear' >> events/kmem/kmalloc/trigger\ncat events/kmem/kmalloc/hist events/kmem/kmalloc/trigger\n"
            "echo > events/kmem/kmalloc/trigger\necho =====\necho 'hist:keys=stacktrace if bytes_req >= 64' > events/kmem/kmalloc/trigger\n"
            "echo 'hist:keys=call_site.sym,comm:sort=comm,hitcount.descending' >> events/kmem/kmalloc/trigger\nload fork -n 2 >/dev/null\ncat events/kmem/kmalloc/hist\necho > events/kmem/kmalloc/trigger\n"
            "cat events/kmem/kmalloc/trigger\nsysctl -n kern.dtrace.consumers\n", smp=smp)
        shown, traced, buckets, commands, stacks = out
        spec = "hist:keys=common_pid.execname,id.syscall:vals=hitcount:sort=hitcount:size=2048 if comm == load [active]"
        check(f"{spec}\n# event histogram\n#\n# trigger info: {spec}\n#\n\n{{ " in shown, f"the heads: {shown[:400]}")
        counted = {(int(pid), int(nr)): int(n) for pid, nr, n in
                   re.findall(r"^{ common_pid: \S+ +\[ *(\d+)\], id: sys_\w+ *\[ *(\d+)\] } hitcount: {1,10}(\d+)$", shown, re.M)}
        expected = {}
        for name, tid, *_, what in rows(traced):
            key = tid, int(check_match(r"^sys_enter: NR (\d+) \(", what, "a call")[1])
            expected[key] = expected.get(key, 0) + 1
        check_eq(counted, expected, "calls by thread and number")
        order = [int(n) for n in re.findall(r"hitcount: +(\d+)$", shown, re.M)]
        check_eq(order, sorted(order), "the order")
        check_match(rf"^Totals:\n    Hits: {sum(order)}\n    Entries: {len(order)}\n    Dropped: 0$", shown, "the totals")
        found = [(int(low), int(high), int(n), int(v)) for low, high, n, v in
                 re.findall(r"^{ arg2: ~ (\d+)-(\d+) } hitcount: +(\d+)  arg2: +(\d+)  arg0: +[0-9a-f]+$", buckets, re.M)]
        check(found and all(low % 100 == 0 and high == low + 99 and n * low <= v <= n * high for low, high, n, v in found), f"buckets: {buckets}")
        check_eq([v for *_, v in found], sorted((v for *_, v in found), reverse=True), "by their values")
        check(":size=256 if id" in buckets, "the size")
        empty = "\n\n\nTotals:\n    Hits: 0\n    Entries: 0\n    Dropped: 0\n"
        paused, full, cleared = commands.split("# event histogram\n")[1:]
        check(paused.endswith("[paused]\n#" + empty) and "[paused]\n#" + empty in cleared, f"paused, and cleared: {commands}")
        parts = re.findall(r"^{ bytes_req: ~ 2\^(\d+) +} hitcount \(%\): +(\d+\.\d\d)  bytes_alloc: (#*) *$", full, re.M)
        check(parts and 99.5 < sum(float(p) for _, p, _ in parts) < 100.01 and max(len(g) for *_, g in parts) == 20, f"{full}")
        check_match(r"^{ stacktrace:\n(?: {9}\w+\+0x[0-9a-f]+\n)*? {9}k[mz]alloc\+0x[0-9a-f]+\n(?: {9}\w+\+0x[0-9a-f]+\n)+} hitcount: +\d+$", stacks, "a stack")
        comms = re.findall(r"^{ call_site: \[[0-9a-f]+\] \w+ +, comm: (\w+) +} hitcount: +(\d+)$", stacks, re.M)
        check({c for c, _ in comms} >= {"sh", "load"} and comms == sorted(comms, key=lambda x: (x[0], -int(x[1]))), f"symbols and names: {comms}")
        check_match(r"^# Available triggers:\n#.*\n0$", stacks, "the end")


@portable_test("hist: several of one name share their rows; enable_hist and disable_hist switch; what is wrong is refused in Linux's words, with its place")
def hist_errors():
    wrong = [("hist:vals=arg0", 0, "No keys specified"), ("hist:keys=nosuch", 10, "Couldn't find field"), ("hist:keys=id.nosuch", 13, "Invalid field modifier"),
             ("hist:keys=id,,ret", 13, "Couldn't find field"), ("hist:keys=\\$x", 10, "Using variable references in keys not supported"),
             ("hist:keys=id:vals=nosuch", 18, "Couldn't find field"), ("hist:keys=id:vals=comm", 18, "Strings as values not supported"),
             ("hist:keys=id:sort=ret", 18, "Sort field must be a key or a val"), ("hist:keys=id:sort=id.up", 21, "Invalid sort modifier"),
             ("hist:keys=id:sort=", 13, "Empty assignment"), ("hist:keys=id:size=x", 18, "Invalid size"), ("hist:keys=id:x=", 13, "Empty assignment"),
             ("hist:keys=id:x=nosuch", 15, "Couldn't find field"), ("hist:keys=id:x=-(ret", 15, "No closing paren found"), ("hist:keys=id:x=\\$y", 16, "Couldn't find variable"),
             ("hist:keys=id:x=ret+2+3+4+5", 15, "Too many subexpressions (3 max)"), ("hist:keys=id:x=12abc", 15, "Expecting numeric literal"),
             ("hist:keys=id:onmatch(nosuch.e).trace(a)", 28, "Invalid subsystem or event name"), ("hist:keys=id:onmatch(e).trace(a)", 21, "Missing subsystem"),
             ("hist:keys=id:onmax(id).trace(a)", 19, "For onmax(x) or onchange(x), x must be a variable"), ("hist:keys=id:nonsense", 13, "Invalid expression"),
             ("hist:keys=id if nosuch == 1", 23, "Field not found"), ("hist:keys=id.buckets=0", 21, "Expecting numeric literal"),
             ("hist:keys=id.execname", 13, "Invalid field modifier"), ("hist:keys=id,ret,comm,common_pid", 22, "Too many keys")]
    named, switched, errors = ftrace(
        "e=events/signal/signal_generate\nd=events/signal/signal_deliver\necho 'hist:keys=sig:name=both' > $e/trigger\necho 'hist:keys=sig:name=both' > $d/trigger\n"
        "sh -c 'kill -9 $$'\ncat $e/hist\necho '!hist:keys=sig:name=both' >> $e/trigger\ncat $e/hist $d/hist\necho 'hist:keys=sig,code:name=both' >> $e/trigger\n"
        "echo '!hist:keys=sig:name=both' >> $d/trigger\necho =====\n"
        "t=events/sched/sched_process_fork/trigger\nu=events/sched/sched_wakeup_new/trigger\necho 'enable_hist:signal:signal_generate:1' > $t\necho 'hist:keys=sig:pause' > $e/trigger\n"
        "(sh -c 'kill -9 $$')\nfor x in $t $u; do echo 'disable_hist:signal:signal_generate' >> $x; done\n(sh -c 'kill -9 $$')\ncat $e/hist $t $u\necho '!hist:keys=sig' >> $e/trigger\ncat $e/trigger\n"
        "echo '!enable_hist:signal:signal_generate' >> $t\necho '!disable_hist:signal:signal_generate' >> $u\necho > $e/trigger\necho =====\n" +
        "".join(f"echo > error_log\necho \"{text}\" > events/raw_syscalls/sys_exit/trigger\ncat error_log\n" for text, *_ in wrong) +
        "cat events/raw_syscalls/sys_exit/trigger\necho 'hist:keys=id' > events/raw_syscalls/sys_exit/trigger\n"
        "echo 'hist:keys=id' >> events/raw_syscalls/sys_exit/trigger\necho 'hist:keys=ret:continue' >> events/raw_syscalls/sys_exit/trigger\n"
        "echo '!hist:keys=ret' >> events/raw_syscalls/sys_exit/trigger\ncat events/raw_syscalls/sys_exit/trigger\n", smp=1)
    check_match(r"^{ sig: {10}9 } hitcount: {10}2$", named.split("# event")[1], "two events in one row")
    check_eq(len(re.findall(r"^{ sig: {10}9 } hitcount: {10}2$", named, re.M)), 2, "the row stays when one goes")
    check_match(r"^sh: .*Invalid argument$", named, "the same name with other keys")
    check_match(r"^{ sig: +17 } hitcount: +\d+$", switched, "what was counted while it was on")
    check_match(r"^enable_hist:signal:signal_generate:count=0\ndisable_hist:signal:signal_generate:unlimited\n# Available", switched, "the triggers; the histogram has gone before")
    for text, at, message in wrong:
        text = text.replace("\\", "")
        check_match(rf"hist:raw_syscalls:sys_exit: error: {re.escape(message)}\n  Command: {re.escape(text)}\n {{{at + 11}}}\^$", errors, text)
    check_match(r"^# Available.*\n# .*\nsh: .*File exists\nsh: .*No such file or directory\nhist:keys=id:vals=hitcount:sort=hitcount:size=2048 \[active\]$", errors, "what is left")


@portable_test("synthetic_events: the latency of system calls, by variables of two events; types, strings, onmax, onchange; what is in use stays")
def synthetic():
    latency, more, errors = ftrace(
        "echo 'syscall_latency u64 lat_us; long id' >> synthetic_events\necho 'hist:keys=common_pid:ts0=common_timestamp.usecs' >> events/raw_syscalls/sys_enter/trigger\n"
        "echo 'hist:keys=common_pid:lat_us=common_timestamp.usecs-$ts0:onmatch(raw_syscalls.sys_enter).trace(syscall_latency,$lat_us,id)' >> events/raw_syscalls/sys_exit/trigger\n"
        "echo 'hist:keys=lat_us,id.syscall:sort=lat_us' >> events/synthetic/syscall_latency/trigger\nfor e in sys_enter sys_exit; do echo 1 > events/raw_syscalls/$e/enable; done\n"
        "echo 1 > events/synthetic/syscall_latency/enable\nload file -n 20 -j 3 >/dev/null\nsleep 0.01\necho > set_event\ncat events/synthetic/syscall_latency/hist\ncat trace\n"
        "echo '!syscall_latency' >> synthetic_events\necho '!hist:keys=common_pid:ts0=common_timestamp.usecs' >> events/raw_syscalls/sys_enter/trigger\n"
        "echo '!hist:keys=lat_us,id.syscall:sort=lat_us' >> events/synthetic/syscall_latency/trigger\n"
        "echo '!hist:keys=common_pid:lat_us=common_timestamp.usecs-$ts0:onmatch(raw_syscalls.sys_enter).trace(syscall_latency,$lat_us,id)' >> events/raw_syscalls/sys_exit/trigger\n"
        "echo '!hist:keys=common_pid:ts0=common_timestamp.usecs' >> events/raw_syscalls/sys_enter/trigger\necho '!syscall_latency' >> synthetic_events\n"
        "cat synthetic_events events/raw_syscalls/*/trigger\nls events/synthetic\nsysctl -n kern.dtrace.consumers\necho =====\necho > trace\n"
        "echo 'woken char comm[16]; s32 prio; unsigned long sum' > synthetic_events\ncat synthetic_events dynamic_events\ngrep field events/synthetic/woken/format | tail -n 3\n"
        "echo 1 > events/synthetic/woken/enable\necho 'hist:keys=pid:p=pid*2+1:onchange($p).woken(comm,prio,$p)' > events/sched/sched_process_exit/trigger\n"
        "echo 'hist:keys=common_pid:n=id:onmax($n).trace(woken,comm,id,$n) if comm == load' > events/raw_syscalls/sys_enter/trigger\nload fork -n 2 >/dev/null\n"
        "echo > events/raw_syscalls/sys_enter/trigger\necho > events/sched/sched_process_exit/trigger\necho > set_event\ncat trace\necho 's:other u8 a' >> dynamic_events\ncat synthetic_events\n"
        "echo '-:synthetic/other' >> dynamic_events\necho > synthetic_events\ncat dynamic_events\necho =====\n" +
        "".join(f"echo '{text}' >> synthetic_events\n" for text in ("x", "1x u64 a", "x u64", "x nosuch a", "x u64 a; u64 a", "x unsigned a", "x u64 a b", "x char a[x]",
                                                               "x u8 a; u8 b; u8 c; u8 d; u8 e; u8 f; u8 g")) +
        "cat synthetic_events error_log\necho '!nosuch' >> synthetic_events\ntrue\n", smp=1, options=["--icount"])
    got = rows(latency)
    begun, taken = {}, []
    for _, tid, _, time, what in got:
        name, text = what.split(": ", 1)
        if name == "sys_enter":
            begun[tid] = time, int(re.match(r"NR (\d+) ", text)[1])
        elif name == "syscall_latency":
            m = check_match(r"^lat_us=(\d+) id=(\d+)$", text, "an event")
            if tid in begun:
                start, number = begun.pop(tid)
                check_eq(int(m[2]), number, "the call's number")
                check(abs(int(m[1]) - (time - start)) <= 3, f"latency {m[1]} of a call that took {time - start}")
                taken.append((int(m[1]), number))
    table = re.findall(r"^{ lat_us: +(\d+), id: (?:sys_\w+|unknown_syscall) +\[ *(\d+)\] } hitcount: +(\d+)$", latency, re.M)
    check(len(taken) > 50, f"only {len(taken)} calls")
    lats = [int(l) for l, *_ in table]
    check_eq(lats, sorted(lats), "the order")
    counts = {(int(l), int(i)): int(n) for l, i, n in table}
    check(all(counts.get(key, 0) >= taken.count(key) for key in set(taken)), "each event is in the table")
    check_eq(len(re.findall("^\\S+: .*Device or resource busy$", latency, re.M)), 2, "what is in use stays")
    check_match(r"^# Available triggers:\n#.*\n# Available triggers:\n#.*\nenable  filter\n0$", latency, "all is gone")
    check_match(r"^woken\tchar\[16\] comm; s32 prio; unsigned long sum\ns:synthetic/woken char\[16\] comm; s32 prio; unsigned long sum$", more, "the definitions")
    check_match(r"char comm\[16\];.*\n.*s64 prio;.*\n.*u64 sum;", more, "the fields")
    exits = re.findall(r"woken: comm=(\w+) prio=(\d+) sum=(\d+)$", more, re.M)
    check(exits and any(c == "load" and int(s) % 2 == 1 for c, _, s in exits), f"{exits}")
    by = {}
    for _, tid, *_, what in rows(more):
        m = re.match(r"woken: comm=load prio=(\d+) sum=\1$", what)
        if m:
            by.setdefault(tid, []).append(int(m[1]))
    check(by and all(v == sorted(set(v)) for v in by.values()), f"onmax: ever more: {by}")
    check_match(r"^woken\t.*\nother\tu8 a$", more, "made by dynamic_events")
    for text in ("Command must be of the form: <name> field[;field] ...", "Illegal name", "Incomplete type", "Invalid type", "Invalid field", "Duplicate field name", "Invalid array specification", "Too many fields"):
        check(f"synthetic_events: error: {text}\n" in errors, f"no {text}: {errors}")
    check_match(r"^sh: .*No such file or directory$", errors, "the removal of none")


def decode(page, formats):
    """(nanoseconds, event, thread, {field: value}) of each record of a page (events/header_page, events/header_event)."""
    ns, commit = struct.unpack_from("<QQ", page)
    at, end = 16, 16 + (commit & 0xfffffff)
    while at < end:
        head, = struct.unpack_from("<I", page, at)
        at += 4
        if head & 31 == 30:
            ns += (head >> 5) + (struct.unpack_from("<I", page, at)[0] << 27)
            at += 4
            continue
        size = (head & 31) * 4
        if size == 0:
            size = struct.unpack_from("<I", page, at)[0] - 4
            at += 4
        ns += head >> 5
        data, at = page[at:at + size], at + size
        kind, tid = struct.unpack_from("<H2xI", data)
        name, fields = formats[kind]
        values = {}
        for field, offset, n, signed in fields:
            values[field] = int.from_bytes(data[offset:offset + n], "little", signed=signed)
            if n == 16:
                values[field] = data[offset:offset + n].split(b"\0")[0].decode()
            if n == 4:
                values[field] = data[values[field] & 0xffff:][:values[field] >> 16].rstrip(b"\0").decode()
        yield ns, name, tid, values
    check_eq(at, end, "the end of the records")


@test("trace_pipe_raw: pages of records, in the layouts of header_page and `format`, have what trace shows; each is read once")
def raw():
    names = "sched/sched_process_fork sched/sched_switch raw_syscalls/sys_enter raw_syscalls/sys_exit kprobes/mine kprobes/back signal/signal_generate syscalls/sys_enter_openat vfs/lookup"
    formats, shown, pages, again = ftrace(
        "echo 'p:mine ramfs_read vn=$arg1 who=$comm' > kprobe_events\necho 'r:back ramfs_read ret=$retval:s64' >> kprobe_events\n"
        f"cat events/header_page events/header_event /proc/kallsyms\nfor e in {names}; do cat events/$e/format; done\n"
        f"for e in {names}; do echo 1 > events/$e/enable; done\nhead -n 1 /etc/motd >/dev/null\nload fork -n 1 >/dev/null\nload mix -n 1 >/dev/null\nsleep 0.01\necho > set_event\n"
        "echo =====\ncat trace\necho =====\nhead -c 65536 per_cpu/cpu0/trace_pipe_raw > /tmp/raw &\nreader=$!\nuntil grep -q tracepipe /proc/*/wchan; do sleep 0.01; done\n"
        "kill $reader\nhexdump -Cv /tmp/raw\necho =====\ncat trace\n", smp=1, sets=["debug.ktr.entries=65536"])
    check_match(r"^\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n(?:.*\n)*\tfield: char data;\toffset:16;\tsize:4080;", formats, "header_page")
    known = {}
    for name, number, body in re.findall(r"^name: (\w+)\nID: (\d+)\nformat:\n((?:.*\n)*?)print fmt", formats, re.M):
        known[int(number)] = name, [(f, int(o), int(s), s2 == "1") for f, o, s, s2 in re.findall(
            r"field:.*?(\w+)(?:\[16\])?;\toffset:(\d+);\tsize:(\d+);\tsigned:(\d);", body) if not f.startswith("common_")]
    data = bytearray()
    for row in re.findall(r"^[0-9a-f]{8}  ((?:[0-9a-f]{2}  ?)+)", pages, re.M):
        data += bytes.fromhex(row)
    check(len(data) > 2 * 4096 and len(data) % 4096 == 0, f"{len(data)} bytes")
    got = [r for at in range(0, len(data), 4096) for r in decode(data[at:at + 4096], known)]
    expected = rows(shown)
    symbols = {name: int(at, 16) for at, name in re.findall(r"^([0-9a-f]{16}) \w (\w+)$", formats, re.M)}
    check(len(got) > 100 and len(got) <= len(expected), f"{len(got)} records of {len(expected)} lines")
    for (ns, name, tid, values), (comm, line_tid, _, us, what) in zip(got, expected):
        kind, text = what.split(": ", 1) if not what.startswith("sys_") or what.startswith(("sys_enter:", "sys_exit:")) else (name, what)
        check_eq((ns // 1000, name, tid if comm != "<idle>" else 0), (us, kind, line_tid), what)
        call = check_match(r"^NR (\d+) (?:= (-?\d+)|\((\w+), (\w+), (\w+), (\w+), (\w+), (\w+)\))$", text, what).groups() if name in ("sys_enter", "sys_exit") else ()
        for field, value in values.items():
            if call:
                check_eq(value, int(call[0]) if field == "id" else int(call[1]) if field == "ret" else int(call[2 + int(field[3:])], 16), f"{field} in {what}")
                continue
            if field.startswith("__probe_"):
                place = re.match(r"\((?:(\w+)\+(\w+)/\w+)?(?: <- (\w+))?", text)
                check_eq(value, symbols[place[3]] if field == "__probe_func" else symbols[place[1]] + int(place[2], 16), f"{field} in {what}")
                continue
            if field == "__syscall_nr":
                continue
            if field == "prev_state":
                value = {0: "R", 1: "S", 2: "D", 16: "X"}[value]
            shown_as = re.search(rf"\b{field}[=: ]+([^\s,)]+)", text)[1].strip('"')
            same = shown_as == value if isinstance(value, str) else int(shown_as, 16 if name.startswith("sys_enter") else 0) == value & ((1 << 64) - 1) or shown_as == str(value)
            check(same, f"{field} {value} in {what}")
    check("lookup" in {name for _, name, *_ in got} and {"sched_switch", "mine", "back", "sys_exit"} <= {name for _, name, *_ in got}, "kinds of events")


@portable_test("hwlat: finds time that a CPU does not have, above tracing_thresh, on the CPUs that take turns; its files refuse nonsense")
def hwlat():
    found, none, modes = ftrace(
        "cat hwlat_detector/mode hwlat_detector/window hwlat_detector/width\necho 2000 > hwlat_detector/width\necho 20000 > hwlat_detector/window\n"
        "echo 1 > tracing_thresh\necho hwlat > current_tracer\ncat current_tracer\nuntil grep '#4 ' trace >/dev/null; do sleep 0.05; done\necho nop > current_tracer\n"
        "echo > /dev/null\necho per-cpu > hwlat_detector/mode\necho hwlat > current_tracer\nuntil grep '#4 ' trace >/dev/null; do sleep 0.05; done\ncat trace\necho =====\n"
        "echo nop > current_tracer\necho 50000000 > tracing_thresh\necho round-robin > hwlat_detector/mode\necho hwlat > current_tracer\nsleep 0.1\ncat trace\n"
        "echo nop > current_tracer\nps | grep hwlat\necho 0 > tracing_thresh\necho =====\n"
        "echo 40000 > hwlat_detector/width\necho 2000 > hwlat_detector/window\necho never > hwlat_detector/mode\necho 0 > hwlat_detector/width\ncat hwlat_detector/*\n", smp=2)
    check_match(r"^none \[round-robin\] per-cpu\n1000000\n500000\nhwlat$", found, "the files")
    got = [(cpu, re.match(r"#(\d+) +inner/outer\(us\): +(\d+)/(\d+) +ts:\d{10}\.\d{9} count:[1-9]\d*$", what)) for _, _, cpu, _, what in rows(found)]
    check(got and all(m for _, m in got), f"events: {found}")
    check(all(max(int(m[2]), int(m[3])) >= 1 for _, m in got), "above the threshold")
    check_eq({cpu for cpu, _ in got}, {0, 1}, "CPUs")
    check_eq(sorted(int(m[1]) for _, m in got), list(range(1, len(got) + 1)), "numbers")
    check("#P:2" in none and not rows(none), f"none is so long, and no thread is left: {none}")
    check_match(r"^(sh: .*Invalid argument\n){4}none \[round-robin\] per-cpu\n(?:2000\n20000|20000\n2000)$", modes, "what is refused")


@portable_test("hwlat: with the mode none one CPU looks, and a width that the watchdog would not bear is no hang")
def hwlat_alone():
    (out,) = ftrace("echo none > hwlat_detector/mode\necho 2000 > hwlat_detector/width\necho 20000 > hwlat_detector/window\necho 1 > tracing_thresh\necho hwlat > current_tracer\n"
                 "until grep '#4 ' trace >/dev/null; do sleep 0.05; done\ncat trace\necho nop > current_tracer\nsysctl debug.watchdog.seconds=1\necho 2500000 > hwlat_detector/window\n"
                 "echo 2000000 > hwlat_detector/width\necho round-robin > hwlat_detector/mode\necho hwlat > current_tracer\nuntil grep '#2 ' trace >/dev/null; do sleep 0.05; done\ncat trace\n"
                 "echo nop > current_tracer\necho 60000000 > hwlat_detector/window\necho 59000000 > hwlat_detector/width\n"
                 "busybox taskset 2 sh -c 'echo hwlat > current_tracer; echo nop > current_tracer'\necho ended\n", smp=2)
    first, second = out.split("debug.watchdog.seconds")
    check_eq({cpu for _, _, cpu, *_ in rows(first)}, {0}, "CPUs of the mode none")
    check_match(r"\nended\n\Z", second, "the end")
    check(len(rows(second)) >= 2, f"long samples: {second}")


@portable_test("trace_pipe waits and consumes; trace_marker writes; tracing_on, tracing_cpumask, sizes and per_cpu do what they say")
def files():
    pipe, rest = ftrace(
        "echo one > trace_marker\nhead -n 1 trace_pipe &\nreader=$!\nwait $reader\n"
        "head -n 1 trace_pipe &\nreader=$!\nuntil grep -q tracepipe /proc/*/wchan; do true; done\necho two > trace_marker\nwait $reader\n"
        "cat trace\necho =====\necho 0 > tracing_on\necho three > trace_marker\ncat tracing_on\necho 1 > tracing_on\ncat tracing_cpumask\n"
        "echo 2 > tracing_cpumask\necho 1 > events/scheduler/on_cpu/enable\nuntil grep on_cpu per_cpu/cpu1/trace >/dev/null; do load pipe -n 20 -j 8 >/dev/null; done\n"
        "cat per_cpu/cpu0/trace\n"
        "head -n 20 per_cpu/cpu1/trace\necho 128 > buffer_size_kb\ncat buffer_size_kb buffer_total_size_kb\nsysctl -n debug.ktr.entries\n"
        "cat per_cpu/cpu1/stats\n")
    got = [what for *_, what in rows(pipe)]
    check_eq(got, ["tracing_mark_write: one", "tracing_mark_write: two"], "what the readers got, and what was left")
    check_match(r"^sh: .*Bad file descriptor\n0\nf$", rest, "tracing_on")
    check_eq({cpu for _, _, cpu, *_ in rows(rest)}, {1}, "CPUs in per_cpu/cpu0 and cpu1")
    check_match(r"^128\n512\n2048$", rest, "sizes")
    check_match(r"^entries: [1-9]\d*\noverrun: \d+\ncommit overrun: 0\nbytes: [1-9]\d*\noldest event ts: +\d+\.\d{6}\nnow ts: ", rest, "stats")


@portable_test("what is wrong is refused with Linux's error, and changes nothing but words before it; only root looks")
def refuses():
    wrong = [("current_tracer", "wakeup_nosuch", "nop"), ("set_ftrace_filter", "ramfs_read nosuch sys_read", "ramfs_read"),
             ("set_ftrace_notrace", "nosuch", "#### no functions disabled ####"), ("set_graph_function", "[z", "#### all functions enabled ####"),
             ("tracing_cpumask", "0", "f"), ("tracing_cpumask", "g", "f"), ("buffer_size_kb", "0", "4096"), ("buffer_size_kb", "x", "4096"),
             ("set_ftrace_pid", "-1", "no pid"), ("max_graph_depth", "x", "0"),
             ("tracing_thresh", "1e3", "0"), ("trace_clock", "counter", "[local] global perf mono mono_raw boot"), ("options/irq-info", "2", "1"), ("trace_options", "nonsense", None),
             ("events/enable", "2", "0"), ("function_profile_enabled", "on", "0"), ("set_event", "nosuch:*", None),
             ("saved_cmdlines_size", "32769", "1024")]
    out = ftrace("".join(f"echo '{text}' > {file}\n{f'cat {file}' if left else 'true'}\n" for file, text, left in wrong) +
                 "echo x > available_tracers\nmkdir x\nrm trace\nsu 7 cat trace\nsu 7 ls\ncat trace_marker\ntrue\n")[0]
    expected = "".join(f"^sh: write error: Invalid argument\n{f'{re.escape(left)}' + chr(10) if left else ''}" .replace("^", "", 1)
                       for _, _, left in wrong)
    check_match(expected, out, "errors, and what is left")
    for line in (r"available_tracers: Permission denied|available_tracers: Invalid argument", r"'x': Operation not permitted", r"'trace': Operation not permitted",
                 r"'trace': Permission denied"):
        check_match(line, out, line)


@test("all files at once: readers and writers of everything at random, with all tracers on a busy machine; afterwards nothing is on")
def stress():
    worker = (f"i=0\nwhile test $i -lt {times(3, 9)}; do i=$((i+1))\ncase $(( (i * 7 + $1) % 17 )) in\n"
              "0) echo function > current_tracer ;;\n1) echo function_graph > current_tracer ;;\n2) echo 'v*' > set_ftrace_filter ;;\n"
              "3) echo > set_ftrace_filter ;;\n4) cat trace > /dev/null ;;\n5) echo 1 > function_profile_enabled ;;\n"
              "6) echo 0 > function_profile_enabled; cat trace_stat/* > /dev/null ;;\n7) echo \"p:k$1 ramfs_read a=\\$arg1\" >> kprobe_events\n"
              "echo 1 > events/kprobes/k$1/enable; ls events/kprobes ;;\n8) echo \"-:k$1\" >> kprobe_events; cat kprobe_events ;;\n"
              "9) echo nop > current_tracer; echo > trace ;;\n"
              "10) echo \"s$1 u64 lat; long id\" >> synthetic_events; echo 'hist:keys=common_pid:t'$1'=common_timestamp' >> events/raw_syscalls/sys_enter/trigger\n"
              "echo 'hist:keys=common_pid:l'$1'=common_timestamp-$t'$1':onmatch(raw_syscalls.sys_enter).s'$1'($l'$1',id)' >> events/raw_syscalls/sys_exit/trigger ;;\n"
              "11) echo 'hist:keys=id.syscall:sort=lat' >> events/synthetic/s$1/trigger; echo 'hist:keys=id:vals=lat' >> events/synthetic/s$1/trigger; cat events/synthetic/*/hist ;;\n"
              "12) echo 'hist:keys=stacktrace:name=all' >> events/kmem/kmalloc/trigger; echo 'hist:keys=stacktrace:name=all' >> events/kmem/kfree/trigger; cat events/kmem/kmalloc/hist ;;\n"
              "13) echo 'enable_event:sched:sched_switch:3' >> events/sched/sched_waking/trigger; echo 'stacktrace:1' >> events/sched/sched_wakeup/trigger\n"
              "echo 'enable_hist:kmem:kfree' >> events/sched/sched_switch/trigger; echo 'sys_read:stacktrace:5' >> set_ftrace_filter; cat events/sched/*/trigger ;;\n"
              "14) echo > events/kmem/kmalloc/trigger; echo > events/synthetic/s$1/trigger; for t in enable_event:sched:sched_switch stacktrace; do echo \"!$t\" >> events/sched/sched_waking/trigger; done\n"
              "echo \"!s$1\" >> synthetic_events; echo '!sys_read:stacktrace' >> set_ftrace_filter ;;\n"
              "15) echo 'next_pid > 5 && next_comm != x' > events/sched/sched_switch/filter; echo 1 > events/sched/sched_switch/enable; cat events/kmem/*/hist ;;\n"
              "16) echo 0 > events/sched/enable; echo 0 > events/sched/filter; echo > events/raw_syscalls/sys_exit/trigger; echo > events/raw_syscalls/sys_enter/trigger ;;\nesac\ndone\n")
    out = ftrace(f"cat > /tmp/w <<'END'\n{worker}END\nsysctl -n debug.fbt.text > /tmp/before\n"
                 "for n in 0 1 2 3 4 5 6 7; do sh /tmp/w $n >/dev/null 2>&1 & done\nload mix -n 2 >/dev/null\nwait\n"
                 "echo nop > current_tracer\necho 0 > function_profile_enabled\necho 0 > events/enable\necho > kprobe_events\n"
                 "for x in waking/enable_event:sched:sched_switch wakeup/stacktrace switch/enable_hist:kmem:kfree; do echo \"!${x#*/}\" >> events/sched/sched_${x%%/*}/trigger; done\n"
                 "for e in raw_syscalls/sys_exit raw_syscalls/sys_enter kmem/kmalloc kmem/kfree $(cd events; echo synthetic/s*); do echo > events/$e/trigger; done 2>/dev/null\n"
                 "echo '!sys_read:stacktrace' >> set_ftrace_filter\necho > set_ftrace_filter\necho 0 > events/sched/filter\necho > synthetic_events\nsysctl -n debug.fbt.text > /tmp/after\n"
                 "cmp() { test \"$(cat $1)\" = \"$(cat $2)\" && echo same; }\ncmp /tmp/before /tmp/after\nktr probes -c | grep fbt\n"
                 "cat kprobe_events events/enable synthetic_events\nsysctl -n kern.dtrace.consumers\n", sets=["debug.ktr.entries=4096"])[0]
    check_match(r"^same\nfbt +\d+ +0\n0\n0$", out, "the code, functions and probes that are on")


if __name__ == "__main__":
    main()
