#!/usr/bin/python3
"""test_ftrace_hist.py - histograms of several events, their expressions, and synthetic events, as Linux has them."""
import re

from harness import check, check_eq, check_match, cpus, main, portable_test
from tracefs import check_errors, errors_of, ftrace, rows


@portable_test("onmatch: fields and variables of the other event, with its name or without, also if they are 0; the hidden histograms go with the one that needs them")
def other_fields():
    wake = "hist:keys=pid:ts0=common_timestamp.usecs:who=common_pid if comm == load"
    switch = ("hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).waking($lat,sched.sched_switch.next_pid,sched.sched_waking.prio,"
              "next_comm,sched.sched_waking.$who,target_cpu) if next_comm == load")
    for smp in cpus():
        trace, during, after = ftrace(
            "echo 'waking u64 lat; pid_t pid; int prio; char comm[16]; pid_t by; int cpu' > synthetic_events\n"
            f"echo '{wake}' > events/sched/sched_waking/trigger\necho '{switch}' > events/sched/sched_switch/trigger\n"
            "for e in sched/sched_waking sched/sched_switch synthetic/waking; do echo 1 > events/$e/enable; done\n"
            "load fork -n 8 >/dev/null\necho 0 > events/enable\ncat trace\necho =====\n"
            f"cat events/sched/sched_waking/hist\necho '!{wake}' >> events/sched/sched_waking/trigger\n"
            "echo stacktrace >> events/sched/sched_waking/trigger\necho '!stacktrace' > events/sched/sched_waking/trigger\necho =====\n"
            f"echo '!{switch}' >> events/sched/sched_switch/trigger\ncat events/sched/sched_waking/trigger\necho '!{wake}' >> events/sched/sched_waking/trigger\n"
            "cat events/sched/*/trigger | grep -v '^#'\necho > synthetic_events\nsysctl -n kern.dtrace.consumers\n", smp=smp, options=["--icount"] if smp == 1 else [])
        woken, found = {}, 0
        for _, tid, cpu, time, what in rows(trace):
            name, text = what.split(": ", 1)
            if name == "sched_waking" and (m := re.match(r"comm=load pid=(\d+) prio=(\d+) target_cpu=(\d+)$", text)):
                woken[int(m[1])] = time, int(m[2]), tid, int(m[3])
            elif name == "waking":
                m = check_match(r"^lat=(\d+) pid=(\d+) prio=(\d+) comm=load by=(\d+) cpu=(\d+)$", text, "an event")
                lat, pid, prio, by, target = map(int, m.groups())
                if pid not in woken:
                    continue
                start, *rest = woken.pop(pid)
                check_eq((prio, by, target), tuple(rest), f"what the event of {pid} has of its waking")
                check(smp > 1 or abs(lat - (time - start)) <= 100, f"latency {lat} of {time - start}")
                found += 1
        check(found >= 3, f"{found} wakings: {trace}")
        for field in ("prio", "target_cpu"):
            check_match(rf"^# trigger info: hist:keys=pid:vals=hitcount:synthetic_{field}={field}:sort=hitcount:size=2048 if comm == load \[active\]$", during, "a hidden histogram")
        check_eq(len(re.findall("^.*: Device or resource busy|write error: Device or resource busy$", during, re.M)), 1,
                 f"what is used stays, and keeps nothing else: {during}")
        check_eq(after.splitlines()[:2], ["hist:keys=pid:vals=hitcount:ts0=common_timestamp.usecs:who=common_pid:sort=hitcount:size=2048:clock=local if comm == load [active]", "0"], "what is left")


@portable_test("variables with texts: their values come with the event that another one makes, and are its keys")
def texts():
    for smp in cpus():
        out = ftrace(
            "echo 'ended u64 lat; char filename[]; char by[16]' > synthetic_events\n"
            "echo 'hist:key=pid:filenamevar=filename:ts0=common_timestamp.usecs' > events/sched/sched_process_exec/trigger\n"
            "echo 'hist:key=pid:lat=common_timestamp.usecs-$ts0:own=comm:onmatch(sched.sched_process_exec).ended($lat,$filenamevar,$own) if comm == load' > events/sched/sched_process_exit/trigger\n"
            "echo 'hist:keys=filename,by:vals=lat:sort=filename' > events/synthetic/ended/trigger\ncp /bin/load /tmp/load\nchmod 755 /tmp/load\n"
            "for i in 1 2 3; do /bin/load lock -n 1 -j 3 >/dev/null; done\n/tmp/load fork -n 1 >/dev/null\ncat events/synthetic/ended/hist\n"
            "echo > events/synthetic/ended/trigger\necho > events/sched/sched_process_exit/trigger\necho > events/sched/sched_process_exec/trigger\n"
            "echo > synthetic_events\nsysctl -n kern.dtrace.consumers\n", smp=smp)[0]
        got = re.findall(r"^{ filename: (\S+) +, by: (\w+) +} hitcount: +(\d+)  lat: +(\d+)$", out, re.M)
        check_eq([row[:3] for row in got], [("/bin/load", "load", "3"), ("/tmp/load", "load", "1")], f"the table: {out}")
        check(all(int(lat) > 0 for *_, lat in got), f"latencies: {got}")
        check_match(r"^0\n$", out, "what is left")


@portable_test("an event that a histogram makes, and a histogram of that one, leave the maker's texts as they are")
def within():
    out = ftrace("echo 's1 char a[]' >> synthetic_events\necho 's2 char b[]' >> synthetic_events\necho 'hist:keys=a:y=common_timestamp' > events/synthetic/s1/trigger\n"
                 "echo 'hist:keys=common_pid:n=buf,x=common_timestamp:onchange($x).trace(s1,comm):onchange($x).trace(s2,$n)' > events/ftrace/print/trigger\n"
                 "echo 1 > events/synthetic/enable\nfor n in one two three; do echo $n > trace_marker; done\necho 0 > events/enable\ncat trace\n", smp=1)[0]
    check_eq([what for *_, what in rows(out) if what.startswith("s")], [what for n in ("one", "two", "three") for what in ("s1: a=sh", f"s2: b={n}")], "the events")


@portable_test("histograms with variables, of which one more does not fit into their program: ENOSPC, and the others stay")
def many_linked():
    out = ftrace("t=events/sched/sched_process_exit/trigger\nn=1\nwhile echo \"hist:keys=common_pid:v$n=1\" >> $t; do n=$((n+1))\ndone\necho $n\ngrep -c active $t\ngrep -o 'error: .*' error_log\n"
                 "/bin/cat /dev/null\ngrep -c '^{' events/sched/sched_process_exit/hist\necho > $t\n", smp=1)[0]
    n, active, counted = map(int, check_match(r"\Ash: .*No space left on device\n(\d+)\n(\d+)\nerror: Too many histograms with variables\n(\d+)\n\Z", out, "the last one").groups())
    check(active == n - 1 >= 30 and counted >= active, f"{n}, {active}, {counted}")


@portable_test("expressions: * and / before + and -, from left to right; constants become one; what is divided by 0 is -1; three operators at most, in Linux's words")
def expressions():
    constants = {"123": 123, "16-8-4-2": 2, "64/8/4/2": 1, "16-8+4+2": 14, "4*3/2*2": 12, "4+3*2-2": 8, "4+6/2-2": 5, "0x10*2": 32, "-(3)": 2 ** 64 - 3, "2-5": 2 ** 64 - 3}
    wrong = [("hist:keys=pid:x=32+^10*3/20-4", "Too many subexpressions (3 max)"), ("hist:keys=pid:x=^1+2+3+4+5", "Too many subexpressions (3 max)"),
             ("hist:keys=pid:x=-(^1)+2", "Unary minus not supported in sub-expressions"), ("hist:keys=pid:x=3/^0", "Division by zero"),
             ("hist:keys=pid:z=0,x=pid/^$z", "Division by zero"), ("hist:keys=pid:x=pid+^comm", "String type can not be an operand in expression"),
             ("hist:keys=pid:x=-(^comm)", "String type can not be an operand in expression"), ("^hist:keys=pid:x=common_timestamp.usecs-5", "Timestamp units in expression don't match"),
             ("hist:keys=pid:x=pid+^12abc", "Expecting numeric literal"), ("hist:keys=pid:x=pid.^nosuch+1", "Invalid field modifier"), ("hist:keys=pid:x=^pid+", "Invalid expression"),
             ("hist:keys=pid:vals=^comm+1", "String type can not be an operand in expression"), ("hist:keys=pid:t=comm:vals=^$t", "Strings as values not supported"),
             ("hist:keys=pid:x=$^both", "Variable name not unique, need to use fully qualified name (subsys.event.var) for variable"),
             ("hist:keys=pid:x=$^nosuch", "Couldn't find variable"), ("hist:keys=pid:p=pid:onmatch(sched.sched_process_fork).calc(^pid.hex,$p,$p,$p,$p,$p)", "Invalid action param"),
             ("hist:keys=pid:p=pid:onmatch(sched.sched_process_fork).calc($^q,$p,$p,$p,$p,$p)", "Couldn't find param"),
             ("hist:keys=pid:p=pid:onmatch(sched.sched_process_fork).calc(sched.nosuch.^pid,$p,$p,$p,$p,$p)", "Event file not found"),
             ("hist:keys=comm:p=pid:onmatch(sched.sched_process_fork).calc(^child_pid,$p,$p,$p,$p,$p)", "Matching event histogram not found"),
             ("hist:keys=pid:p=pid:onmatch(sched.sched_process_fork).calc(^comm,$p,$p,$p,$p,$p)", "Param type doesn't match synthetic event field type"),
             ("hist:keys=pid:a=$x1,b=$x2,c=$x3,d=1,^e=$x4,f=1,g=1,h=1,i=1", "Too many variables defined"),
             ("hist:keys=pid:p=pid:onmax(^$q).save(pid)", "Couldn't find onmax or onchange variable")]
    t = "events/sched/sched_process_exit/trigger"
    folded, run, refused = ftrace(
        "".join(f"echo 'hist:keys=pid:x={text}' > {t}\ngrep -o 'x=[0-9]*' {t}\necho > {t}\n" for text in constants) + "echo =====\n"
        "echo 'calc u64 a; u64 b; s64 c; u64 d; s64 e; u64 f' > synthetic_events\necho 1 > events/synthetic/calc/enable\necho 1 > events/sched/sched_process_exit/enable\n"
        "echo 'hist:keys=pid:vals=pid-prio,$a:a=prio+pid*3-7,b=pid/prio*10,c=-(pid):z=pid-pid,seven=3+4:d=1000/$seven,e=pid/$z,f=pid.log2+common_pid.hex:"
        f"onchange($a).calc($a,$b,$c,$d,$e,$f) if comm == load' > {t}\nload fork -n 5 >/dev/null\necho 0 > events/enable\ncat events/sched/sched_process_exit/hist trace\n"
        f"echo > {t}\necho =====\nfor e in exec fork; do echo 'hist:keys=pid:both=pid' | sed s/fork/exec/ > events/sched/sched_process_$e/trigger; done 2>/dev/null\n"
        "echo 'hist:keys=pid:x1=1,x2=2,x3=3,x4=4' >> events/sched/sched_process_exec/trigger\n"
        "echo 'hist:keys=parent_pid:both=child_pid' > events/sched/sched_process_fork/trigger\n" + errors_of(t, wrong) +
        f"grep -v '^#' {t}\necho > events/sched/sched_process_fork/trigger\necho > events/sched/sched_process_exec/trigger\necho 'hist:keys=pid:z=0' > {t}\n"
        f"echo 'hist:keys=pid:x=8/$z' >> {t}\necho > {t}\necho 0 > events/synthetic/calc/enable\necho > synthetic_events\nsysctl -n kern.dtrace.consumers\n")
    check_eq(folded.split(), [f"x={value}" for value in constants.values()], "constants")
    prio = {int(m[1]): int(m[2]) for *_, what in rows(run) if (m := re.match(r"sched_process_exit: comm=load pid=(\d+) prio=(\d+)", what))}
    found = {}
    for _, tid, *_, what in rows(run):
        m = re.match(r"calc: a=(\d+) b=(\d+) c=(-?\d+) d=(\d+) e=(-?\d+) f=(\d+)$", what)
        if m:
            p, q = tid, prio[tid]
            found[tid] = tuple(map(int, m.groups()))
            check_eq(found[tid], (q + p * 3 - 7, p // q * 10, -p, 1000 // 7, -1, (p - 1).bit_length() + p), f"of process {tid} with priority {q}")
    check(len(found) == 6 and set(found) == set(prio), f"{sorted(found)} of {sorted(prio)}")
    table = {int(p): (int(x), int(a)) for p, x, a in re.findall(r"^{ pid: +(\d+) } hitcount: +1  pid-prio: +(\d+)  \$a: +(\d+)$", run, re.M)}
    check_eq(table, {p: ((p - prio[p]) % 2 ** 64, found[p][0]) for p in found}, "values")
    check_errors("hist:sched:sched_process_exit", wrong, refused)
    check_match(r"^sh: .*Numerical argument out of domain\n0\n$|^sh: .*\n0\n$", refused, "the rest")


@portable_test("events/ftrace/print: text in trace_marker has triggers and histograms, in the instance where it is written; it is no event to be enabled")
def marks():
    t = "events/ftrace/print/trigger"
    counted, latency, stacks, rest = ftrace(
        f"mkdir instances/a\necho 'hist:keys=buf' > {t}\necho 'hist:keys=common_pid' > instances/a/{t}\nfor i in 1 2 3; do echo one > trace_marker; echo two > instances/a/trace_marker; done\n"
        "echo -n other > trace_marker\necho 0 > tracing_on\necho one > trace_marker 2>/dev/null\necho 1 > tracing_on\ncat events/ftrace/print/hist instances/a/events/ftrace/print/hist\n"
        f"echo > {t}\necho > instances/a/{t}\necho =====\n"
        f"echo 'latency u64 lat; char first[16]' > synthetic_events\necho 'hist:keys=common_pid:ts0=common_timestamp.usecs:first=comm if buf == \"start\"' > {t}\n"
        f"echo 'hist:keys=common_pid:lat=common_timestamp.usecs-$ts0:onmatch(ftrace.print).latency($lat,$first) if buf ~ \"end*\"' >> {t}\n"
        "echo 1 > events/synthetic/latency/enable\nfor i in start end1 end2 start end3; do echo $i > trace_marker; done\ncat trace events/ftrace/print/hist\necho 0 > events/enable\n"
        f"echo '!hist:keys=common_pid:lat=common_timestamp.usecs-$ts0:onmatch(ftrace.print).latency($lat,$first) if buf ~ \"end*\"' >> {t}\necho > {t}\necho > synthetic_events\necho =====\n"
        f"echo 'stacktrace:1 if buf == here' > {t}\necho > trace\necho there > trace_marker\necho here > trace_marker\necho here > trace_marker\ncat trace {t}\necho '!stacktrace' > {t}\necho =====\n"
        f"grep -c ftrace:print available_events\necho ftrace:print > set_event\necho 'enable_event:ftrace:print' > events/sched/sched_switch/trigger\nls events/ftrace/print\ncat {t}\n"
        "rmdir instances/a\nsysctl -n kern.dtrace.consumers\n", smp=4)
    tables = [re.findall(r"^{ (\w+): (.*?) +} hitcount: +(\d+)$", part, re.M) for part in counted.split("# event histogram")[1:]]
    check_eq(tables[0], [("buf", "other", "1"), ("buf", "one", "3")], "texts of the top instance")
    check_eq([(name, n) for name, _, n in tables[1]], [("common_pid", "3")], "those of the other one")
    got = [what for *_, what in rows(latency)]
    check_eq([re.sub(r"\d+", "N", what) for what in got if what.startswith("latency")], ["latency: lat=N first=sh"] * 2, f"from a start to the first end after it: {got}")
    check_eq(re.findall(r"hitcount: +(\d+)$", latency, re.M), ["2", "2"], "starts, and ends after one")
    lines = [what for *_, what in rows(stacks)]
    check_eq([what.split(": ")[-1] for what in lines], ["there", "here", "<stack trace>", "here"], f"one stack: {stacks}")
    check_match(r"^ => tracing_mark_write\n", stacks, "the stack")
    check_match(r"^stacktrace:count=0 if buf == here$", stacks, "the count")
    check_match(r"^0\n(?:sh: .*Invalid argument\n){2}format +hist +id +trigger\n# Available.*\n#.*\n0\n$", rest, "the files")


@portable_test("a hidden histogram that another one names keeps the one it was made for; each onmatch has the variables of its own event; pause forgets none; a full table keeps its rows")
def keeps():
    b = "hist:keys=next_pid:onmatch(sched.sched_waking).trace(syn,prio)"
    t, last = "events/ftrace/print/trigger", "hist:keys=common_cpu:l=common_pid:onmax($l).save(comm)"
    hidden, matches, paused, full, heir = ftrace(
        "cd events/sched\necho 'syn u64 a' > ../../synthetic_events\necho 'hist:keys=pid' > sched_waking/trigger\n"
        f"echo '{b}' > sched_switch/trigger\necho 'hist:keys=pid:x=$synthetic_prio' > sched_process_exit/trigger\necho '!{b}' >> sched_switch/trigger\n"
        f"echo '!hist:keys=pid:x=$synthetic_prio' >> sched_process_exit/trigger\necho '!{b}' >> sched_switch/trigger\ngrep -c next_pid sched_switch/trigger\necho > sched_waking/trigger\necho =====\n"
        "echo 'hist:keys=pid:v=7' > sched_process_exec/trigger\necho 'hist:keys=child_pid:v=9' > sched_process_fork/trigger\n"
        "echo 'hist:keys=pid:onmatch(sched.sched_process_exec).syn($v):onmatch(sched.sched_process_fork).syn($v) if comm == cat' > sched_process_exit/trigger\n"
        "grep -c -e onmatch sched_process_exit/trigger\necho 1 > ../synthetic/syn/enable\n/bin/cat /dev/null\ngrep -o 'syn: a=.*' ../../trace\n"
        "for e in exit exec fork; do echo > sched_process_$e/trigger; done\necho 'hist:keys=pid:onmatch(sched.sched_process_*).syn(pid)' > sched_switch/trigger\n"
        "echo 'enable_event:sched:sched_*' > sched_switch/trigger\ncd ../..\necho =====\n"
        f"echo '{last}' > {t}\necho one > trace_marker\necho '{last}:pause' >> {t}\necho two > trace_marker\ncat events/ftrace/print/hist\necho '{last}:cont' >> {t}\necho three > trace_marker\n"
        f"cat events/ftrace/print/hist\necho > {t}\necho =====\n"
        f"echo 'hist:keys=buf:size=128' > {t}\nn=100\nwhile test $n -lt 228; do echo k$n > trace_marker; n=$((n+1)); done\ntail -n 3 events/ftrace/print/hist\n"
        "echo a > trace_marker\necho k227 > trace_marker\ngrep -e 'a ' -e k227 events/ftrace/print/hist\ntail -n 3 events/ftrace/print/hist\necho > events/ftrace/print/trigger\necho =====\n"
        "cd events/sched\necho 'hist:keys=pid:name=n:size=2048' > sched_process_exit/trigger\necho 'hist:keys=pid:name=n:size=128' > sched_process_free/trigger\n"
        "load fork -n 150 -j 2 > /dev/null\ncat sched_process_exit/hist > /dev/null\necho '!hist:keys=pid:name=n' >> sched_process_exit/trigger\n"
        "tail -n 3 sched_process_free/hist\nload fork -n 150 -j 2 > /dev/null\ntail -n 3 sched_process_free/hist\n")
    check_match(r"^sh: .*busy\n0\n\Z", hidden, "what is used stays")
    check_match(r"^1\nsyn: a=7\nsyn: a=9\nsh: .*Invalid argument\nsh: .*Invalid argument\n\Z", matches, "each event's variable; names that are globs")
    check_eq([int(n) for n in re.findall(r"hitcount: +(\d+)", paused)], [1, 2], "hits, paused and after it")
    check_eq([comm for _, comm in re.findall(r"max: +([1-9]\d*)  comm: (\w+)", paused)], ["sh", "sh"], f"what is saved: {paused}")
    check_match(r"^    Hits: 128\n    Entries: 128\n    Dropped: 0\n{ buf: k227 +} hitcount: +2\n    Hits: 130\n    Entries: 128\n    Dropped: 1\n", full, "a full table")
    before, after = (int(n) for n in re.findall(r"Entries: (\d+)", heir))
    check(before > 128, f"{before} entries of a larger table of the same name")
    check_eq(after, before, "a table with more than fit gets no more")


@portable_test("a histogram that joins others does not have what they have dropped")
def joins():
    old, new = ftrace(
        "cd events/sched\necho 'hist:keys=common_timestamp:ts0=common_pid:size=128' > sched_switch/trigger\n"
        "echo 'hist:keys=common_timestamp:x=$ts0' > sched_waking/trigger\nload fork -n 100 > /dev/null\n"
        "echo 'hist:keys=common_timestamp:y=$ts0 if pid == 0' > sched_process_exit/trigger\ntail -n 1 sched_switch/hist\necho =====\ntail -n 3 sched_process_exit/hist\n", smp=1)
    check_match(r"^    Dropped: [1-9]\d*\n\Z", old, "those of a full table")
    check_eq(old and new, "    Hits: 0\n    Entries: 0\n    Dropped: 0\n", "those of the new one")


@portable_test("an event that finds a full table is dropped once, however many values it has")
def drops():
    t, events = "events/ftrace/print", 900
    totals = ftrace(
        f"echo 'hist:keys=buf:vals=common_pid,common_cpu,common_pid:size=128' > {t}/trigger\nn=0\n"
        f"while test $n -lt {events}; do echo $n > trace_marker; n=$((n+1)); done\ntail -n 3 {t}/hist\n", smp=1)[0]
    hits, entries, dropped = (int(n) for n in re.findall(r"^    \w+: (\d+)$", totals, re.M))
    check(128 == entries <= hits < events - 100, f"a full table: {totals}")
    check(0 <= dropped - (events - entries) <= 1, f"each of {events} is an entry or is dropped: {totals}")


@portable_test("one that is refused leaves the variables of the others; modifiers of common_timestamp, signed keys, percentages of large numbers, long names, tables of one name")
def tables():
    t, long = "events/ftrace/print/trigger", "l" * 60
    first, last = (f"hist:keys=common_pid:{v} if buf == {buf}" for v, buf in (("ts0=common_timestamp.usecs", "start"), ("lat=common_timestamp.usecs-$ts0", "end")))
    seven, whole = ",".join(["common_pid"] * 7), "0x10000000000000+common_pid+common_pid+common_pid"
    refused, counted, named = ftrace(
        f"for h in '{first}' '{last}'; do echo \"$h\" >> {t}; done\nfor n in 1 2 3 4 5 6; do\ntest $n = 6 && echo start > trace_marker\necho \"hist:keys=common_pid:vals={seven}:z$n=1\" >> {t}\ndone\n"
        f"echo end > trace_marker\ngrep -A 3 'lat=' events/ftrace/print/hist\ngrep -c 'z[1-6]=1' {t}\necho '!{last}' >> {t}\necho > {t}\necho =====\n"
        "cd events/raw_syscalls/sys_exit\nfor h in keys=ret:sort=ret keys=common_timestamp.log2 keys=common_timestamp.buckets=1000000000 'keys=common_pid:vals=ret.percent,ret.graph if ret == -2' "
        f"keys=comm:vals={whole}; do\necho \"hist:$h\" | sed '/ if /!s/$/ if comm == cat/' >> trigger\ndone\n/bin/cat /nosuch\ngrep -A 3 '^{{' hist\necho > trigger\ncd ../../..\necho =====\n"
        f"echo 'hist:keys=common_pid:name=n' > {t}\necho 'hist:keys=common_cpu:name=n' >> {t}\necho 'hist:keys=common_pid:vals=common_cpu:name=n' >> {t}\necho > {t}\n"
        f"echo '{long} u64 x' > synthetic_events\necho 'p:{long} kernel_clone' > kprobe_events\necho 'hist:keys=common_pid:onmatch(kprobes.{long}).{long}(common_pid)' > {t}\ngrep -c {long} {t}\n"
        f"echo > {t}\necho > synthetic_events\nsysctl -n kern.dtrace.consumers\n", smp=1)
    check_match(r"^sh: .*No space left on device\n# trigger info: .*\n#\n\n{ common_pid: +\d+ } hitcount: +1$", refused, "a variable after another one was refused")
    check_match(r"^5\n\Z", refused, "those that were added")
    check_match(r"^{ ret: (?:1844674407\d{10} } hitcount: .*\n{ ret: +)+[0-9]{1,3} } hitcount", counted, "signed keys in their order")
    check_match(r"^{ common_timestamp: ~ 2\^[23]\d } hitcount", counted, "log2 of a time")
    check_match(r"^{ common_timestamp: ~ (?:0|\d+0{9})-\d*9{9} } hitcount", counted, "a time in buckets")
    check_match(r"^{ common_pid: +\d+ } hitcount: +\d+  ret \(%\): 100\.00  ret: #{20}$", counted, "the whole of a large number")
    check_match(rf"^{{ comm: cat +}} hitcount: +\d+  {re.escape(whole)}: +\d+$", counted, "a long expression")
    check_match(r"\A(?:sh: .*Invalid argument\n){2}1\n0\n\Z", named, "other columns in a table of that name; long names")


@portable_test("synthetic_events: several fields before a semicolon, as before Linux 5.11; what is wrong, in Linux's words, with its place; sort= likewise")
def syntax():
    good = {"a u64 var1": "u64 var1", "b u64 var1; u64 var2;": "u64 var1; u64 var2", "c u64 var1 ; u64 var2 ;": "u64 var1; u64 var2", "d u64 var1 ;u64 var2": "u64 var1; u64 var2",
            "e  u64 lat pid_t pid char comm[16]": "u64 lat; pid_t pid; char[16] comm", "f unsigned long x unsigned char y; char z[]": "unsigned long x; unsigned char y; char[] z"}
    wrong = [("myevent ^chr arg", "Invalid type"), ("myevent ^unsigned arg", "Incomplete type"), ("myevent char ^str]; int v", "Illegal name"), ("^mye-vent char str[]", "Illegal name"),
             ("myevent char ^st-r[]", "Illegal name"), ("myevent char str;^[]", "Invalid field"), ("myevent char str; ^int", "Invalid field"), ("myevent u64 a ^pid_t", "Invalid field"),
             ("myevent char ^str[; int v", "Invalid array specification"), ("myevent char ^str[kdjdk]", "Invalid array specification"), ("myevent char ^str[257]", "Invalid array specification"),
             ("myevent u64 a; u32 ^a", "Duplicate field name"), ("^myevent u8 a u8 b u8 c; u8 d u8 e u8 f u8 g", "Too many fields"), ("^a u64 v", "Event already exists"), ("^probed u64 v", "Event already exists"),
             ] + [(text, "Command must be of the form: <name> field[;field] ...") for text in
                  ("^mye;vent char str[]", "^myevent ; char str[]", "^myevent; char str[]", "^myevent ;char str[]", "^; char str[]", "^;myevent char str[]", "^myevent")]
    dynamic = [("^s:junk/myevent char str[", "Command must be of the form: s or -:[synthetic/]<name> field[;field] ..."), ("s:synthetic/new u64 ^b-c", "Illegal name")]
    keys = "hist:keys=common_pid:vals=bytes_req"
    sorts = [(keys + ":sort=common_pid,^junk", "Sort field must be a key or a val"), (keys + ":^sort=", "Empty assignment"), (keys + ":^sort=common_pid,", "Empty sort field"),
             (keys + ":sort=common_pid.^junk", "Invalid sort modifier"), (keys + ",bytes_alloc:^sort=common_pid,bytes_req,bytes_alloc", "Too many sort fields (Max = 2)")]
    made, refused, other, orders = ftrace(
        "echo 'p:synthetic/probed kernel_clone' > kprobe_events\n" + "".join(f"echo '{text}' >> synthetic_events\n" for text in good) + "cat synthetic_events\necho =====\n" + errors_of("synthetic_events", wrong) + "echo =====\n" +
        errors_of("dynamic_events", dynamic) + "echo '!e u64 lat pid_t pid' >> synthetic_events\necho 's:synthetic/g s32 x' >> dynamic_events\ntail -n 2 synthetic_events\necho =====\n" +
        errors_of("events/kmem/kmalloc/trigger", sorts))
    check_eq(made.splitlines(), [f"{text[0]}\t{fields}" for text, fields in good.items()], "events")
    check_errors("synthetic_events", wrong, refused)
    check_errors("synthetic_events", dynamic, other)
    check_match(r"^f\t.*\ng\ts32 x\n$", other, "one removed, one made")
    check_errors("hist:kmem:kmalloc", sorts, orders)


if __name__ == "__main__":
    main()
