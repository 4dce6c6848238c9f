#!/usr/bin/python3
"""test_ftrace_options.py - /sys/kernel/tracing: options and files with Linux's names that programs set or read."""
import re

from harness import check, check_eq, check_match, main, portable_test
from tracefs import ftrace, rows


@portable_test("func-no-repeats: a call that is the last one once more is counted, until there is another one")
def repeats():
    out = ftrace("echo sys_getppid sys_exit_group > set_ftrace_filter\necho 1 > options/func-no-repeats\n"
                 "echo function > current_tracer\nload syscall -n 100 > /dev/null\necho 0 > tracing_on\n"
                 "echo 0 > options/func-no-repeats\ncat trace\necho =====\necho > trace\necho 1 > tracing_on\n"
                 "load syscall -n 100 > /dev/null\ngrep -c getppid trace\n")
    check_match(r": sys_getppid <-entry_syscall\n"
                r".*: sys_getppid <-entry_syscall \(repeats: 100, last_ts: [ \d]{5}\.\d{6}\)\n"
                r".*: sys_exit_group <-entry_syscall$", out[0], "the calls")
    check_eq(out[1], "101\n", "without the option")


@portable_test("record-tgid: a line has the number of the process, also when it has ended; userstacktrace: where it "
               "was")
def threads():
    out = ftrace("echo 1 > options/record-tgid\necho 1 > options/userstacktrace\n"
                 "echo 1 > events/syscalls/sys_enter_getppid/enable\n"
                 "load syscall -n 1 > /dev/null\necho 0 > events/enable\ncat trace\necho 0 > options/irq-info\n"
                 "head -n 6 trace\n"
                 "echo =====\necho 1 > options/irq-info\necho 0 > options/record-tgid\n"
                 "echo 0 > options/userstacktrace\necho > trace\n"
                 "echo 1 > events/syscalls/sys_enter_getppid/enable\nload syscall -n 1 > /dev/null\n"
                 "echo 0 > events/enable\ncat trace\n")
    check_match(r"^#           TASK-PID       TGID    CPU#  \|\|\|\|\|  TIMESTAMP  FUNCTION\n"
                r"#              \| \|           \|       \|   \|\|\|\|\|     \|         \|\n", out[0], "the head")
    check_match(r"^ +load-(\d+) +\( +\1\) \[\d{3}\] X\.\.\.\. +\d+\.\d{6}: sys_getppid\(\)\n"
                r" +load-\1 +\( +\1\) \[\d{3}\] .*: <user stack trace>\n =>  <[0-9a-f]{16}>$", out[0], "the lines")
    check_match(r"^#           TASK-PID       TGID    CPU#     TIMESTAMP  FUNCTION\n", out[0], "without flags")
    check_eq([what for *_, what in rows(out[1])], ["sys_getppid()"] * 2, "without the options")


@portable_test("annotate: where entries were lost, a line says where another CPU's begin")
def annotate():
    out = ftrace("mkdir instances/i\ncd instances/i\necho 4 > buffer_size_kb\n"
                 "echo 1 > events/sched/sched_switch/enable\n"
                 "load pipe -n 100 -j 4 > /dev/null\nload pipe -n 100 -j 4 > /dev/null\necho 0 > events/enable\n"
                 "grep -c buffer.started trace\necho 0 > options/annotate\ngrep -c buffer.started trace\n"
                 "echo 1 > options/annotate\necho > trace\ngrep -c buffer.started trace\ntrue\n", smp=2)[0]
    check_eq(out, "1\n0\n0\n", "lines, as it is, without the option, and where nothing was lost")


@portable_test("overwrite: without it an instance keeps the first entries, and counts the others as dropped; not the "
               "main log")
def overwrite():
    text = "x" * 50  # with the number two parts of long data
    fill = f"n=0\nwhile test $n -lt 100; do echo number $n {text} > trace_marker; n=$((n+1)); done\n"
    show = "grep -c number trace\ngrep -o 'number .*' trace | head -n 1\ngrep dropped per_cpu/cpu0/stats\n"
    out = ftrace("echo nooverwrite > trace_options\ngrep overwrite trace_options\nmkdir instances/i\ncd instances/i\n"
                 f"echo 4 > buffer_size_kb\necho nooverwrite > trace_options\n{fill}{show}"
                 f"echo > trace\ngrep dropped per_cpu/cpu0/stats\necho overwrite > trace_options\n"
                 f"{fill}{show}", smp=1)[0]
    check_match(r"\Ash: .*Invalid argument\noverwrite\n(?:sh: .*Bad file descriptor\n)+(\d+)\nnumber 0 x{50}\n"
                r"dropped events: (\d+)\ndropped events: 0\n"
                r"\d+\nnumber [1-9]\d x+\ndropped events: 0\n\Z", out, "what is there")
    kept, dropped = map(int, re.findall(r"^(?:dropped events: )?(\d+)$", out, re.M)[:2])
    check(kept >= 20 and kept + dropped == 100, f"each mark is there or dropped: {out}")


@portable_test("graph-time: without it, the profiler leaves out the time of what a function calls")
def graph_time():
    out = ftrace("echo vfs_read ramfs_read > set_ftrace_filter\necho 1 > function_profile_enabled\n"
                 "load file -n 100 > /dev/null\n"
                 "echo 0 > function_profile_enabled\ncat trace_stat/function0\necho 0 > options/graph-time\n"
                 "cat trace_stat/function0\n")[0]
    whole, own = (float(t) for t in re.findall(r"^  vfs_read +\d+ +([\d.]+) us ", out, re.M))
    inner = [t for t in re.findall(r"^  ramfs_read +\d+ +([\d.]+) us ", out, re.M)]
    check_eq(inner[0], inner[1], "of what calls none")
    check(0 < own < whole, f"with and without what it calls: {whole} us, {own} us")
    squares = re.findall(r"^  vfs_read .* ([\d.]+) us *$", out, re.M)
    check(len(squares) == 2 and squares[0] != squares[1], f"the variances of both: {squares}")


@portable_test("funcgraph-overrun: after the end of a call, how many calls the thread's stack had no room for")
def overruns():
    out = ftrace("echo sys_kill > set_graph_function\necho 1 > options/funcgraph-overrun\n"
                 "echo function_graph > current_tracer\n"
                 "kill -0 1\necho nop > current_tracer\necho function_graph > current_tracer\nkill -0 1\ncat trace\n"
                 "echo =====\necho nop > current_tracer\necho sys_write > set_graph_function\necho > trace\n"
                 f"echo function_graph > current_tracer\necho '{'(' * 15}prev_pid == 1{')' * 15}' > events/sched/sched_switch/filter\n"
                 "echo 0 > tracing_on\ngrep -c '(Overruns: [1-9]' trace\n")
    out, deep = out
    check_eq(out.count(" (Overruns: 0)\n"), len(re.findall(r"\|  +\}$", out, re.M)), "lines after the ends")
    check_match(r"\|  \}\n \(Overruns: 0\)$", out, "the end of the first call")
    check(int(deep) > 0, f"lines after deeper calls, of which some have no room: {deep}")


@portable_test("buffer_percent: who reads or polls pages waits until a CPU's ring holds so much; 0 to 100")
def percent():
    out = ftrace("mkdir instances/i\ncd instances/i\ncat buffer_percent\necho 101 > buffer_percent\n"
                 "echo 50 > buffer_percent\n"
                 "cat buffer_percent\necho 4 > buffer_size_kb\necho one > trace_marker\n"
                 "(head -c 1 per_cpu/cpu0/trace_pipe_raw > /tmp/got; echo read) &\nuntil grep -q tracepipe /proc/[0-9]*/wchan 2> /dev/null; do :; done\necho before\n"
                 "n=0\nwhile test $n -lt 16; do echo number $n > trace_marker; n=$((n+1)); done\nwait\necho after\n"
                 "echo 0 > buffer_percent\necho one > trace_marker\n"
                 "head -c 1 per_cpu/cpu0/trace_pipe_raw > /tmp/got\necho at once\n", smp=1)[0]
    check_match(r"\A0\nsh: .*Invalid argument\n50\nbefore\nread\nafter\nat once\n\Z", out, "the order")


@portable_test("dyn_ftrace_total_info counts the functions, eval_map is empty, debug/kprobes/list has the kernel's "
               "probes")
def files():
    out = ftrace("cat eval_map dyn_ftrace_total_info\ngrep -v -c __ available_filter_functions\n"
                 "echo 'p:x sys_kill' > kprobe_events\necho 'r:y sys_getppid' >> kprobe_events\n"
                 "echo 1 > events/kprobes/y/enable\ncat /sys/kernel/debug/kprobes/list\n"
                 "grep 'T sys_kill$' /proc/kallsyms\n")[0]
    m = check_match(r"\A(\d+) pages:\d+ groups: 1\n(\d+)\n", out, "the number")
    check(abs(int(m[1]) - int(m[2])) < 200, f"functions: {out}")
    check_match(r"^[0-9a-f]{16}  r  sys_getppid\+0x0    $", out, "one that is on")
    at = check_match(r"^([0-9a-f]{16})  k  sys_kill\+0x0    \[DISABLED\]$", out, "one that is off")[1]
    check(f"{at} T sys_kill" in out, "its address")


@portable_test("who reads trace is not traced: with the function tracer on, it takes at most 3.5 times as long")
def reading():
    out = ftrace("echo function > current_tracer\nload mix -n 1 > /dev/null\necho 0 > tracing_on\n"
                 "time cat trace > /dev/null\necho 1 > tracing_on\ntime cat trace > /dev/null\n",
                 options=["--icount"])[0]
    off, on = (float(s) for s in re.findall(r"^real\s+0m ?([\d.]+)s$", out, re.M))
    check(0.05 < off < on < 3.5 * off, f"{off} s, and {on} s while functions are traced")


@portable_test("__syscall_nr is a field for filters and histograms of a system call's events")
def numbers():
    out = ftrace("cd events/syscalls/sys_enter_getppid\necho 'hist:keys=__syscall_nr' > trigger\n"
                 "echo '__syscall_nr == 99999' > filter\necho 1 > enable\nload syscall -n 5 > /dev/null\n"
                 "grep -c getppid ../../../trace\ngrep -v '^#' hist\necho '__syscall_nr < 99999' > filter\n"
                 "load syscall -n 5 > /dev/null\ngrep -c getppid ../../../trace\n")[0]
    check_match(r"\A0\n(?:.*\n)*\{ __syscall_nr: +(110|173) \} hitcount: +6\n(?:.*\n)*6\n\Z", out, "what was counted")


if __name__ == "__main__":
    main()
