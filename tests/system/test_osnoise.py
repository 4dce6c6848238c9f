#!/usr/bin/python3
"""test_osnoise.py - the tracers osnoise and timerlat: who disturbs a CPU, how late a timer and its thread are; rtla on them."""
import re

from harness import boot, check, check_eq, check_match, main, need_package, portable_test as test
from tracefs import ftrace, rows

ROW = r"(\d+) +(\d+) +(\d+)\.(\d{5}) +(\d+) +(\d+) +0 +(\d+) +0 +(\d+)"


def samples(text):
    """{CPU: [(runtime, noise, share in thousandths of a percent, max, hw, irq, thread)]} of a trace by osnoise."""
    found = {}
    for name, _, cpu, _, what in rows(text):
        m = re.fullmatch(ROW, what)
        check(m is not None and name == f"osnoise/{cpu}", f"{name} on CPU {cpu}: {what}")
        runtime, noise, percent, rest, *others = (int(n) for n in m.groups())
        found.setdefault(cpu, []).append((runtime, noise, percent * 100000 + rest, *others))
    return found


@test("osnoise: with counted instructions nothing but interrupts and threads takes time: alone, beside a busy program, on the CPUs that are wanted")
def noise():
    begin = "echo 100000 > osnoise/runtime_us; echo 200000 > osnoise/period_us\n"
    alone, beside = ftrace(begin + "echo osnoise > current_tracer\nsleep 0.7\necho 0 > tracing_on; cat trace; echo nop > current_tracer; ps | grep -c '[o]snoise/'; echo 1 > tracing_on\n"
                           "echo =====\necho osnoise > current_tracer\nload syscall -n 100000000 > /dev/null & sleep 0.7; echo 0 > tracing_on; kill $!; cat trace\n",
                           options=["--icount"])
    check_eq(alone.split("\n")[-2], "0", "threads that are left")
    check_eq([set(samples(part)) for part in (alone, beside)], [{0}, {0}], "CPUs")
    for part, busy in ((alone, False), (beside, True)):
        got = samples(part)[0]
        check(len(got) >= 3, f"periods: {part}")
        for runtime, noise_us, share, longest, hw, irq, thread in got[1:-1]:  # in the first the shell still runs
            check(100000 <= runtime < 200000 and longest <= noise_us <= runtime, f"times: {got}")
            check_eq(share, (runtime - noise_us) * 10000000 // runtime, "% of the CPU")
            check_eq(hw, 0, "noise of the host")
            check(irq > 0 and (thread > 0) == busy, f"interrupts and threads: {got}")
            check(noise_us > runtime // 4 if busy else noise_us == 0, f"a busy program has its share, and nobody else: {got}")


@test("osnoise: sample_threshold, stop_tracing_us, cpus, instances; its files refuse nonsense")
def files():
    shown, refused, stopped, two = ftrace(
        "cat osnoise/cpus osnoise/period_us osnoise/runtime_us osnoise/timerlat_period_us osnoise/print_stack osnoise/stop_tracing_us osnoise/stop_tracing_total_us\necho =====\n"
        "for c in 2 0- -1 a 0,,1 64 0,1-0; do echo \"$c\" > osnoise/cpus; done\nfor f in period_us:0 period_us:999999 runtime_us:0 runtime_us:1000001 timerlat_period_us:99 "
        "stop_tracing_us:x period_us:60000001 timerlat_period_us:1000001; do echo ${f#*:} > osnoise/${f%:*}; done\necho 0,1 > osnoise/cpus; cat osnoise/cpus; echo 1 > osnoise/cpus; cat osnoise/cpus\necho =====\n"
        "echo 1 > events/osnoise/enable; echo 1 > tracing_thresh; echo 1 > osnoise/stop_tracing_us; echo osnoise > current_tracer\nuntil grep 0 tracing_on; do sleep 0.01; done\n"
        "grep -c sample_threshold trace; echo 0-1 > osnoise/cpus; echo nop > current_tracer; echo 0 > events/osnoise/enable; echo 1 > tracing_on; echo 0 > osnoise/stop_tracing_us\necho =====\n"
        "echo 20000 > osnoise/runtime_us; echo 30000 > osnoise/period_us; mkdir instances/a; echo osnoise > instances/a/current_tracer; echo osnoise > current_tracer\n"
        "echo timerlat > current_tracer; cat current_tracer; echo 0-1 > osnoise/cpus\nuntil grep -q osnoise/1 trace && grep -q osnoise/1 instances/a/trace; do sleep 0.01; done\n"
        "rmdir instances/a; echo > trace\nuntil grep -q osnoise/1 trace; do sleep 0.01; done\necho nop > current_tracer; echo timerlat > current_tracer; cat current_tracer; echo nop > current_tracer\n"
        "echo 1 > osnoise/stop_tracing_us; echo timerlat > current_tracer\nuntil grep 0 tracing_on; do sleep 0.01; done\necho nop > current_tracer; echo 1 > tracing_on; echo 0 > osnoise/stop_tracing_us\n"
        "mkdir instances/b; echo timerlat > instances/b/current_tracer\nuntil grep -q timerlat/1 instances/b/trace; do sleep 0.01; done\nrmdir instances/b\n"
        "ps | grep -c -E '[o]snoise/|[t]imerlat/'\ntrue\n",
        smp=2)
    check_eq(shown, "0-1\n1000000\n1000000\n1000\n0\n0\n0\n", "the files")
    check_match(r"^(sh: .*Invalid argument\n){15}0-1\n1\n$", refused, "what is refused, and what is not")
    check_match(r"^0\n[1-9]\d*\nsh: .*Device or resource busy\n", stopped, "the end, and its event; CPUs cannot be chosen meanwhile")
    check_match(r"^sh: .*Device or resource busy\nosnoise\nsh: .*Device or resource busy\n", two, "one of the two tracers; CPUs")
    check_match(r"^timerlat\n0\n0\n$", two, "the other, which a timer stops, and the threads")


@test("timerlat: a timer's interrupt and its thread are late by nothing else than what runs before them; print_stack shows where")
def late():
    quiet, stack = ftrace(
        "echo timerlat > current_tracer\nsleep 0.1\necho 0 > tracing_on; cat trace; echo nop > current_tracer; echo 1 > tracing_on\necho =====\n"
        "echo 1 > osnoise/print_stack; echo 1 > osnoise/stop_tracing_total_us; load syscall -n 100000000 > /dev/null & echo timerlat > current_tracer\n"
        "until grep -q 0 tracing_on; do sleep 0.01; done\nkill $!; cat trace; ps | grep -c '[t]imerlat/'; echo nop > current_tracer; ps | grep -c '[t]imerlat/'\ntrue\n",
        options=["--icount"])
    got = [re.fullmatch(r"#(\d+) +context +(irq|thread) timer_latency +(\d+) ns", what) for *_, what in rows(quiet)]
    check(len(got) > 100 and all(got), f"rows: {quiet[:2000]}")
    seen = [(int(m[1]), m[2], int(m[3])) for m in got]
    first = seen[0][0]
    check_eq([(n - first, who) for n, who, _ in seen], [(n // 2, ("irq", "thread")[n % 2]) for n in range(len(seen))], "numbers and contexts")
    check(all(a[2] < b[2] < 100000 for a, b in zip(seen[::2], seen[1::2])), f"the thread is later than the interrupt: {seen[:20]}")
    check_match(r"timerlat/0-\d+ .*: #\d+ +context +thread timer_latency +\d+ ns\n +timerlat/0-\d+ .*: <stack trace>\n(?: => .*\n)+", stack, "the stack")
    check_match(r"<stack trace>\n => timerlat_fire\n(?: => .*\n)* => entry_interrupt\n(?: => .*\n)*", stack, "… of the interrupt")
    check_match(r"^1\n0\n$", stack, "the thread, and its end")


@test("Debian's rtla runs: osnoise and timerlat, top and hist, with CPUs, a stop, and its trace")
def rtla():
    need_package("rtla")
    out = boot("cd /tmp\nrtla osnoise top -q -d 1s -r 20000 -p 100000 -c 0-1; echo status $?\nrtla osnoise hist -d 1s -r 20000 -p 100000 -b 10000 -E 20 -c 1; echo status $?\n"
               "rtla timerlat top -q -d 1s; echo status $?\nrtla timerlat hist -d 1s -b 10000 -E 20 -c 0,1; echo status $?\nrtla timerlat top -q -d 60s -a 1; echo status $?\n"
               "head -n 40 timerlat_trace.txt; ls /sys/kernel/tracing/instances | wc -l; cat /sys/kernel/tracing/osnoise/cpus\n",
               smp=2, mem="512M", options=["--program", "rtla"]).expect().out.replace("\r", "")
    check_eq(re.findall(r"^status (\d+)$", out, re.M), ["0"] * 5, out)
    top, hist, timer, timer_hist, auto = out.split("status 0\n")[:5]
    for cpu in range(2):
        check_match(rf"^ +{cpu} #[1-9]\d* +\d+ +\d+ +\d+\.\d+ +\d+ +\d+( +\d+){{5}} *$", top, "a CPU's noise")
        check_match(rf"^ +{cpu} #[1-9]\d* +\|( +\d+){{4}} +\|( +\d+){{4}} *$", timer, "a CPU's timer")
    check_match(r"^Index +CPU-001 *\n", hist, "the histogram")
    check_match(r"^count:( +[1-9]\d*){4} *$", timer_hist, "the timers' histogram")
    check_match(r"hit stop tracing\n +Saving trace to timerlat_trace.txt\n", auto, "-a")
    check_match(r"^ => entry_interrupt$", out, "its stack")
    check_match(r"^0\n0-1\n$", out, "what is left")


if __name__ == "__main__":
    main()
