#!/usr/bin/python3
"""test_ftrace.py - /sys/kernel/tracing: its files do what Linux's do, and show what the log has."""
import re

from harness import boot, check, check_eq, check_match, main, test

CD = "cd /sys/kernel/tracing\n"
ENTRIES = "debug.ktr.entries=65536"
# A line of `trace`: name, thread, CPU, microseconds, text.
ROW = re.compile(r"^ *(\S.*)-(\d+) +\[(\d{3})\] X\.\.\.\.  *(\d+\.\d{6}): (.*?)\r?$", re.M)
CALL = re.compile(r"^ +(\d+)\) ([$@*#!+ ]) *([\d.]+ us)? +\|  ( *)(\S.*?)\r?$", re.M)


def ftrace(script, smp=4, **more):
    """The console's text, in parts that `echo =====` separates."""
    return boot(CD + script, smp=smp, sets=more.pop("sets", [ENTRIES]), **more).expect().out.replace("\r", "").split("=====\n")


def rows(text):
    return [(name, int(tid), int(cpu), round(float(time) * 1e6), what) for name, tid, cpu, time, what in ROW.findall(text)]


@test("function: every call of the functions in set_ftrace_filter, with its caller, in the order of time; nop and > trace clear")
def function():
    for smp in (1, 4):
        found, header, empty, cleared, profile = ftrace(
            "echo ramfs_read 'ramfs_[wt]*' '!ramfs_truncate' > set_ftrace_filter\necho function > current_tracer\n"
            "load file -n 20 -j 3\necho nosuchtracer > current_tracer\ncat trace\necho =====\n"
            "echo 0 > options/irq-info\nhead -n 6 trace\necho =====\necho > trace\ncat trace\necho =====\n"
            "load file -n 1 >/dev/null\necho nop > current_tracer\ncat trace\necho =====\n"
            "echo 1 > function_profile_enabled\nload file -n 20 -j 3\necho 0 > function_profile_enabled\ncat trace_stat/function*\n",
            smp=smp)
        got = rows(found)
        check_eq({what for *_, what in got if not re.fullmatch(r"(ramfs_\w+) <-(\w+)", what)}, set(), "lines of another form")
        by = {name: sum(what.startswith(name + " ") for *_, what in got) for name in ("ramfs_read", "ramfs_write", "ramfs_truncate")}
        check_eq(by["ramfs_truncate"], 0, "calls of a function that was taken off the list")
        check({what for *_, what in got} >= {"ramfs_read <-move_bytes", "ramfs_write <-move_bytes"}, f"callers: {got[:5]}")
        times = [time for *_, time, _ in got]
        check_eq(times, sorted(times), "times")
        check({cpu for _, _, cpu, *_ in got} <= set(range(smp)), "CPUs that there are not")
        n = int(check_match(r"^# entries-in-buffer/entries-written: (\d+)/\1   #P:%d$" % smp, found, "the count")[1])
        check_eq(len(got), n, "lines, and entries that the head counts")
        check_match(r"^sh: .*Invalid argument$", found, "a tracer that there is not")
        check_match(r"^#           TASK-PID     CPU#     TIMESTAMP  FUNCTION$", header, "the head without irq-info")
        check_eq((rows(empty), rows(cleared)), ([], []), "lines after > trace, and after nop")
        hits = sum(map(int, re.findall(r"^  ramfs_write +(\d+) ", profile, re.M)))
        check_eq(hits, sum(w.startswith("ramfs_write ") and name.startswith("load") for name, *_, w in got), "ramfs_write, profiled and traced")


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
    check("open_at()" in without and "vnode_lookup" not in without, f"file_open_at is hidden with what it calls: {without}")
    durations = [float(d[:-3]) for _, _, d, _, what in CALL.findall(slow)]
    check(durations and min(durations) >= 1000 and re.search(r"} /\* \w+ \*/", slow), f"only calls of 1 ms, with names: {slow}")


@test("set_ftrace_pid: only these threads")
def pids():
    out = ftrace("cat set_ftrace_pid\necho $$ > set_ftrace_pid\ncat set_ftrace_pid\necho 'sys_*' > set_ftrace_filter\necho function > current_tracer\n"
                 "cat /etc/motd >/dev/null\necho > /tmp/x\ncat trace\n")[0]
    pid = int(check_match(r"^no pid\n(\d+)$", out, "the list before and after")[1])
    found = {tid for _, tid, *_ in rows(out)}
    check_eq(found, {pid}, "threads")


@test("events: enable, set_event and their X; what `trace` prints of an event is what ktrdump prints")
def events():
    states, trace, dump = ftrace(
        "echo 1 > events/syscalls/sys_enter_openat/enable\necho vfs:lookup 'proc:e*' >> set_event\ncat set_event\n"
        "cat events/enable events/syscalls/enable events/vfs/enable events/vfs/lookup/enable events/PMAP/enable\n"
        "echo 'vfs:nosuch' >> set_event\necho =====\ncat /etc/motd >/dev/null\necho > set_event\ncat set_event events/enable\n"
        "cat trace\necho =====\nktrdump -ct\n", smp=1)
    check_match(r"^syscalls:sys_enter_openat$", states, "set_event")
    check_match(r"^X\nX\nX\n1\n0\nsh: .*Invalid argument$", states, "the states")
    got = [what for *_, what in rows(trace)]
    names = {what.split(":")[0] for what in got}
    check(names >= {"sys_enter_openat", "lookup", "exec", "exit"}, f"events: {names}")
    check_match(r"^0$", trace, "the state after > set_event")
    dumped = [line.split(None, 3)[3] for line in dump.splitlines() if re.match(r" +\d+ +\d+ +\d+\.\d{9} ", line)]
    for what, line in zip(got, dumped[-len(got):]):
        name, text = what.split(": ", 1)
        if name == "sys_enter_openat":
            line = "syscall openat: arg0 0x%s arg1 0x%s arg2 0x%s arg3 0x%s arg4" % tuple(check_match(
                r"^sys_openat\(dfd: (\w+), filename: (\w+), flags: (\w+), mode: (\w+)\)$", text, "a system call").groups()) + line.split("arg4")[1]
            text = line = line.replace("0x0 ", "0 ")
        check(line.endswith(": " + text) or line == text, f"texts of trace, and of ktrdump: {what} {line}")


@test("Linux's own events: their fields, and that they come in the order of what happens")
def linux_events():
    exact, busy, formats = ftrace(
        "for e in sched/sched_process_fork sched/sched_process_exec sched/sched_process_exit syscalls/sys_exit_clone raw_syscalls/sys_enter raw_syscalls/sys_exit "
        "signal/signal_generate signal/signal_deliver; do echo 1 > events/$e/enable; done\n"
        "sh -c 'load fork -n 2; kill -9 $$'\necho > set_event\ncat trace\necho =====\necho > trace\n"
        "for e in sched/sched_switch sched/sched_waking sched/sched_wakeup timer irq kmem exceptions lock; do echo 1 > events/$e/enable; done\n"
        "load lock -n 200 -j 8 >/dev/null\nload mix -n 1 >/dev/null\nsleep 0.01\necho > set_event\ncat trace\necho =====\n"
        "cat events/sched/sched_switch/format events/irq/irq_handler_entry/format\n")
    got = [(tid, *what.split(": ", 1)) for _, tid, _, _, what in rows(exact)]
    forks = [m for _, name, text in got if name == "sched_process_fork" and (m := re.match(r"comm=load pid=(\d+) child_comm=load child_pid=(\d+)$", text))]
    check_eq(len(forks), 2, "forks of load")
    children = [int(m[2]) for m in forks]
    check_eq([tid for tid, name, text in got if name == "sched_process_exit" and tid in children], children, "their exits")
    clones = [int(text.split("ret=0x")[1], 16) for tid, name, text in got if name == "sys_exit_clone" and tid == int(forks[0][1])]
    check_eq(clones, children, "what clone returned")
    execs = [m for tid, name, text in got if name == "sched_process_exec" and (m := re.match(r"filename=(\S+) pid=(\d+) old_pid=\2$", text))]
    check("/bin/load" in [m[1] for m in execs], f"execs: {[m[0] for m in execs]}")
    open_calls = {}
    for tid, name, text in got:
        number = re.match(r"id=(\d+)", text)
        if name == "sys_enter":
            check(len(re.findall(r"arg\d=[0-9a-f]+\b", text)) == 6, text)
            open_calls[tid] = number[1]
        elif name == "sys_exit" and tid in open_calls:
            check_eq(number[1], open_calls.pop(tid), f"the call that returns in thread {tid}")
    check([t for _, name, t in got if name == "signal_generate" and t.startswith("sig=9 ")] and
          [t for _, name, t in got if name == "signal_deliver" and t.startswith("sig=9 ")], "signal 9")
    names = {}
    running = {}
    for _, tid, cpu, _, what in rows(busy):
        name, text = what.split(": ", 1)
        names.setdefault(name, []).append(text)
        if name == "sched_switch":
            m = check_match(r"^prev_comm=(.+) prev_pid=(\d+) prev_prio=\d+ prev_state=(?:0|1|2|128) ==> next_comm=(.+) next_pid=(\d+) next_prio=\d+$", text, "a switch")
            check_eq(int(m[2]), running.get(cpu, int(m[2])), "the thread that ran before")
            check(m[2] != "0" or m[1] == f"swapper/{cpu}", text)
            running[cpu] = int(m[4])
    for name in ("sched_switch", "sched_waking", "sched_wakeup", "timer_start", "timer_expire_entry", "timer_expire_exit", "irq_handler_entry", "irq_handler_exit",
                 "kmalloc", "kfree", "mm_page_alloc", "mm_page_free", "page_fault_user", "contention_begin", "contention_end"):
        check(name in names, f"no {name}: {sorted(names)}")
    check_match(r"^call_site=0x[0-9a-f]+ ptr=0x[0-9a-f]+ bytes_req=\d+ bytes_alloc=\d+$", "\n".join(names["kmalloc"]), "kmalloc")
    check_eq({t for t in names["irq_handler_exit"] if not re.match(r"irq=\d+ ret=handled$", t)}, set(), "irq_handler_exit")
    fields = re.findall(r"field:\S+ (\w+);|field:__data_loc char\[\] (\w+);", formats)
    check_eq([a or b for a, b in fields if not (a or b).startswith("common")],
             "prev_comm prev_pid prev_prio prev_state next_comm next_pid next_prio irq name".split(), "fields")


@test("kprobe_events: probes are made, listed, printed as Linux does, counted and removed; error_log shows where a definition is wrong")
def kprobes():
    out, after = ftrace(
        "echo 'p:mine ramfs_read vn=$arg1 off=+0($arg4):u64' >> kprobe_events\necho 'r:ret ramfs_read ret=$retval:s64' >> kprobe_events\n"
        "cat kprobe_events\nls events/kprobes\ngrep 'field:[us]64' events/kprobes/*/format\necho 1 > events/kprobes/enable\n"
        "cat /etc/motd >/dev/null\necho 0 > events/kprobes/enable\ncat trace kprobe_profile\necho 'p:bad nosuch' >> kprobe_events\n"
        "cat error_log\necho =====\necho '-:mine' >> kprobe_events\nls events/kprobes\necho > kprobe_events\nls events/kprobes\n"
        "cat kprobe_events\ncat trace\n"
        "echo 'p:again ramfs_read off=+0($arg4):u64' > kprobe_events\necho 'off == 99999' > events/kprobes/again/filter\n"
        "echo 1 > events/kprobes/again/enable\necho > kprobe_events\necho 0 > events/kprobes/enable\n(cd events/kprobes/again\n"
        "echo > /sys/kernel/tracing/kprobe_events\nls /sys/kernel/tracing/events/kprobes\nls)\n"
        "echo 'p:other ramfs_read off=+0($arg4):u64' > kprobe_events\n"
        "cat events/kprobes/other/filter events/kprobes/other/enable\necho 1 > events/kprobes/other/enable\ncat /etc/motd >/dev/null\ncat trace\n", smp=1)
    check_match(r"^p:kprobes/mine ramfs_read vn=\$arg1 off=\+0\(\$arg4\):u64\nr:kprobes/ret ramfs_read ret=\$retval:s64$", out, "the list")
    check_match(r"^enable  filter  mine    ret$", out, "the directory")
    check_match(r"field:u64 off;\s+offset:16;", out, "a field")
    got = [what for name, *_, what in rows(out) if name == "cat"]
    reads = [(re.match(r"mine: \(ramfs_read\+0x0/0x[0-9a-f]+\) vn=0x[0-9a-f]+ off=(\d+)$", a),
              re.match(r"ret: \(<- ramfs_read\) ret=(\d+)$", b)) for a, b in zip(got[::2], got[1::2])]
    check(reads and all(a and b for a, b in reads), f"entry and return in turns: {got}")
    check_eq([(int(a[1]), int(b[1])) for a, b in reads[-2:]], [(0, 92), (92, 0)], "offset and result of the reads of /etc/motd")
    hits = len(rows(out)) // 2
    check_match(rf"^  mine +{hits} +0$", out, "kprobe_profile")
    check_match(r"^\[ +\d+\.\d{6}\] trace_kprobe: error: no function \"nosuch\"\n  Command: p:bad nosuch\n {17}\^$", out, "error_log")
    check_match(r"^enable  filter  ret\nenable  filter\n# tracer", after, "the directory after the removals")
    check_match(r" ret: \(\?\) ret=92$", after, "an event of a probe that was removed")
    check_match(r"^sh: .*Device or resource busy$", after, "the removal of a probe whose event is enabled")
    check_match(r"^none\n0$", after, "the filter and state of a probe that is made after the removal of one with a filter")
    check_match(r" other: \(ramfs_read\S* off=92$", after, "its event")


@test("filter: of an event that is enabled, only the firings for which it is true; a wrong one is refused in Linux's words, with its place")
def filters():
    expressions = {  # what sh writes of 11, 12, 13, 14 bytes, and cat of 14
        "result == 11": ([11], []), "result > 11 && result <= 13": ([12, 13], []), "!(result != 11) || result == 14": ([11, 14], [14]),
        "result & 4": ([12, 13, 14], [14]), "comm == cat": ([], [14]), "comm != 'cat'": ([11, 12, 13, 14], []), "comm ~ 's*'": ([11, 12, 13, 14], []),
        "comm ~ '[a-c]*t'": ([], [14]), "common_pid == 99999": ([], []), "cpu == 0 && (result < 13)": ([11, 12], []),
        "result == 0xe": ([14], [14]), "ino >= 0 && result == -9": ([], []), "result==11||result==12&&comm==cat": ([11], [])}
    script = "cd events\nvop=$(echo VOP/write_file_*)\nopen=$(echo VFS/file_open_at_*)\necho =====\n"
    for text in expressions:
        script += (f"echo \"{text}\" > $vop/filter\ncat $vop/filter\necho 1 > $vop/enable\necho > ../trace\n"
                   "for n in 1 12 123 1234; do echo 012345678$n > /tmp/x; done\ncat /tmp/x > /tmp/y\ncat ../trace\necho 0 > $vop/enable\necho =====\n")
    script += ("echo 0 > $vop/filter\ncat $vop/filter\necho 'path ~ \"*motd\"' > $open/filter\necho 1 > $open/enable\ncat /etc/motd /tmp/x >/dev/null\n"
               "cat ../trace\necho 0 > $open/enable\necho =====\n")
    wrong = [("nosuch == 1", 0, "Field not found"), ("result = 1", 7, "Invalid operator"), ("result == x", 10, "Illegal integer value"),
             ("(result == 1", 0, "Too many '('"), ("result == 1)", 11, "Too few '('"), ("comm == 'a", 8, "Missing matching quote"),
             ("comm > a", 5, "Illegal operation for field type"), ("result ~ 1", 7, "Illegal operation for field type"),
             ("result == 1 &&", 14, "Meaningless filter expression"), ("result == '1'", 10, "Expecting numeric field")]
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


@test("trace_pipe waits and consumes; trace_marker writes; tracing_on, tracing_cpumask, sizes and per_cpu do what they say")
def files():
    pipe, rest = ftrace(
        "echo one > trace_marker\nhead -n 1 trace_pipe &\nreader=$!\nwait $reader\n"
        "head -n 1 trace_pipe &\nreader=$!\nuntil ps | grep tracepipe >/dev/null; do true; done\necho two > trace_marker\nwait $reader\n"
        "cat trace\necho =====\necho 0 > tracing_on\necho three > trace_marker\ncat tracing_on\necho 1 > tracing_on\ncat tracing_cpumask\n"
        "echo 2 > tracing_cpumask\necho 1 > events/sched/on_cpu/enable\nuntil grep on_cpu per_cpu/cpu1/trace >/dev/null; do load pipe -n 20 -j 8 >/dev/null; done\n"
        "cat per_cpu/cpu0/trace\n"
        "head -n 20 per_cpu/cpu1/trace\necho 128 > buffer_size_kb\ncat buffer_size_kb buffer_total_size_kb\nsysctl -n debug.ktr.entries\n"
        "cat per_cpu/cpu1/stats\n")
    got = [what for *_, what in rows(pipe)]
    check_eq(got, ["tracing_mark_write: one", "tracing_mark_write: two"], "what the readers got, and what was left")
    check_match(r"^sh: .*Bad file descriptor\n0\nf$", rest, "tracing_on")
    check_eq({cpu for _, _, cpu, *_ in rows(rest)}, {1}, "CPUs in per_cpu/cpu0 and cpu1")
    check_match(r"^128\n512\n2048$", rest, "sizes")
    check_match(r"^entries: [1-9]\d*\noverrun: \d+\ncommit overrun: 0\nbytes: [1-9]\d*\noldest event ts: +\d+\.\d{6}\nnow ts: ", rest, "stats")


@test("what is wrong is refused with Linux's error, and changes nothing; other users than root cannot look in")
def refuses():
    wrong = [("current_tracer", "wakeup_nosuch", "nop"), ("set_ftrace_filter", "ramfs_read nosuch", "#### all functions enabled ####"),
             ("set_ftrace_notrace", "nosuch", "#### no functions disabled ####"), ("set_graph_function", "[z", "#### all functions enabled ####"),
             ("tracing_cpumask", "0", "f"), ("tracing_cpumask", "g", "f"), ("buffer_size_kb", "0", "4096"), ("buffer_size_kb", "x", "4096"),
             ("buffer_size_kb", "99999999999", "4096"), ("set_ftrace_pid", "-1", "no pid"), ("max_graph_depth", "x", "0"),
             ("tracing_thresh", "1e3", "0"), ("trace_clock", "local", "[mono]"), ("options/irq-info", "2", "1"), ("trace_options", "nonsense", None),
             ("events/enable", "2", "0"), ("function_profile_enabled", "on", "0"), ("set_event", "nosuch:*", None)]
    out = ftrace("".join(f"echo '{text}' > {file}\n{f'cat {file}' if left else 'true'}\n" for file, text, left in wrong) +
                 "echo x > available_tracers\nmkdir x\nrm trace\nsu 7 cat trace\nsu 7 ls\ncat trace_marker\ntrue\n")[0]
    expected = "".join(f"^sh: .*: echo: write: Invalid argument\n{f'{re.escape(left)}' + chr(10) if left else ''}" .replace("^", "", 1)
                       for _, _, left in wrong)
    check_match(expected, out, "errors, and what is left")
    for line in (r"available_tracers: Permission denied|available_tracers: Invalid argument", r"x: Operation not permitted", r"trace: Operation not permitted",
                 r"trace: Permission denied"):
        check_match(line, out, line)


@test("all files at once: readers and writers of everything at random, with all tracers on a busy machine; afterwards nothing is on")
def stress():
    worker = ("i=0\nwhile test $i -lt 12; do i=$((i+1))\ncase $(( (i * 7 + $1) % 10 )) in\n"
              "0) echo function > current_tracer ;;\n1) echo function_graph > current_tracer ;;\n2) echo 'v*' > set_ftrace_filter ;;\n"
              "3) echo > set_ftrace_filter ;;\n4) cat trace > /dev/null ;;\n5) echo 1 > function_profile_enabled ;;\n"
              "6) echo 0 > function_profile_enabled; cat trace_stat/* > /dev/null ;;\n7) echo \"p:k$1 ramfs_read a=\\$arg1\" >> kprobe_events\n"
              "echo 1 > events/kprobes/k$1/enable; ls events/kprobes ;;\n8) echo \"-:k$1\" >> kprobe_events; cat kprobe_events ;;\n"
              "9) echo nop > current_tracer; echo > trace ;;\nesac\ndone\n")
    out = ftrace(f"cat > /tmp/w <<'END'\n{worker}END\nsysctl -n debug.fbt.text > /tmp/before\n"
                 "for n in 0 1 2 3 4 5 6 7; do sh /tmp/w $n >/dev/null 2>&1 & done\nload mix -n 2 >/dev/null\nwait\n"
                 "echo nop > current_tracer\necho 0 > function_profile_enabled\necho 0 > events/enable\necho > kprobe_events\nsysctl -n debug.fbt.text > /tmp/after\n"
                 "cmp() { test \"$(cat $1)\" = \"$(cat $2)\" && echo same; }\ncmp /tmp/before /tmp/after\nktr probes -c | grep fbt\n"
                 "cat kprobe_events events/enable\n", sets=["debug.ktr.entries=4096"])[0]
    check_match(r"^same\nfbt +\d+ +0\n0$", out, "the code, functions and probes that are on")


if __name__ == "__main__":
    main()
