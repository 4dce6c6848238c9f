#!/usr/bin/python3
"""test_recorded.py - `dtrace -r`: D over a recorded trace gives what D gives while it happens, and no more than the trace knows."""
import base64
import re
import subprocess

from harness import ARCH, ROOT, boot, check, check_eq, check_match, cpus, main, portable_test, scratch_file, test

DTRACE = ROOT / "build/host/dtrace"


def dtrace(trace, *arguments, status=0):
    """What the host's dtrace prints about a trace; what it says."""
    done = subprocess.run([DTRACE, "-q", "-r", trace, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          env={"PATH": "/usr/bin:/bin", "KESTREL_ARCH": ARCH}, check=False)
    check_eq(done.returncode, status, f"status of dtrace -r {arguments}; it says {done.stderr}")
    return done.stdout, done.stderr


# Aggregations over the events of one command: they are in the trace, and in the run, alike.
MINE = 'execname == "ls" && pid == $target'
PROGRAMS = [
    f"syscall:::entry /{MINE}/ {{ @[probefunc, tid - pid, cpu < 4] = count(); }}",
    f"syscall:::return /{MINE} && errno != 0/ {{ @[probefunc, errno, (int)arg0] = count(); }}",
    f"syscall::write*:return /{MINE}/ {{ @[(int)arg1] = sum(arg0); }}",
    f"syscall:::entry /{MINE}/ {{ self->in = probefunc; }} syscall:::return /self->in == probefunc/ {{ @[probefunc] = count(); self->in = 0; }}",
    f"vfs:::lookup /{MINE}/ {{ @[args[2], stringof(args[1]), probemod] = count(); }}",
    f"fbt::vfs_*:entry /{MINE}/ {{ @[probemod, probefunc] = count(); }} fbt::vfs_*:return /{MINE} && (long)arg1 < 0/ {{ @e[probefunc] = count(); }}",
    f"proc:::exit /{MINE}/ {{ @[args[0]] = count(); }}",
    f"ktr:::exec /{MINE}/ {{ @[arg3, stringof(arg1), stringof(arg4), probeprov, probename] = count(); }}",
]


def rows(text):
    return sorted(" ".join(line.split()) for line in text.replace("\r", "").splitlines() if line.strip())


def same(smp):
    script = "ktr on SYSC,PROC; ktr on 'vfs:::,proc:::,sched:::off-cpu,fbt::vfs_*:' > /dev/null\n"
    for program in PROGRAMS:
        script += f"echo begins\ndtrace -q -n '{program}' -o /tmp/out -c 'ls /bin/sh /nosuch' > /dev/null 2>&1; cat /tmp/out\necho ends\n"
    run = boot(script, smp=smp, trace=True, sets=["debug.ktr.entries=65536"]).expect()
    check_eq(run.gaps, [], "losses")
    live = re.findall(r"^begins\n(.*?)^ends$", run.out.replace("\r", ""), re.M | re.S)
    pids = [m[1] for e in run.events for m in [re.match(r"exec: pid (\d+) name ls ", e["text"])] if m]
    check_eq((len(live), len(pids)), (len(PROGRAMS), len(PROGRAMS)), f"programs that ran, and commands: {run.out}")
    for program, pid, shown in zip(PROGRAMS, pids, live):
        check(len(rows(shown)) > 0, f"{program}: nothing was found live")
        check_eq(rows(dtrace(run.trace, "-n", program.replace("$target", pid))[0]), rows(shown), f"after the fact, and live: {program}")


for _smp in cpus("a recorded trace"):
    test(f"a program over a recorded trace finds what it finds while the trace is recorded, {_smp} CPUs")(lambda smp=_smp: same(smp))


@portable_test("time is the trace's: tick-N, timestamp, BEGIN and END, and the order of what CPUs print")
def time():
    run = boot("load fork -n 1 -j 4\nsleep 0.2\n", smp=4, trace=True, mask="SCHED,PROC,SYSC").expect()
    first, last = run.events[0]["ns"], run.events[-1]["ns"]
    out, _ = dtrace(run.trace, "-n", r"""BEGIN { printf("begin %d\n", timestamp); } END { printf("end %d\n", timestamp); }
        tick-10ms { @ = count(); } tick-100ms { printf("tick %d\n", timestamp); }""")
    check_match(rf"^begin {first}$", out, "BEGIN")
    check_match(rf"^end {last}$", out, "END")
    check_match(rf"^ +{(last - first) // 10 ** 7}$", out, "firings of tick-10ms")
    check_eq([int(n) for n in re.findall(r"^tick (\d+)$", out, re.M)], list(range(first + 10 ** 8, last + 1, 10 ** 8)), "times of tick-100ms")
    # More than the buffers hold: they are read on the way.
    out, err = dtrace(run.trace, "-x", "bufsize=4k", "-n", r'syscall:::entry { printf("%d %d %s\n", timestamp, tid, probefunc); }')
    calls = [f"{e['ns']} {e['tid']} {e['text'].split()[1][:-1]}" for e in run.events if e["text"].startswith("syscall ")]
    check_eq((out.splitlines()[:-1], "drop" in err), (calls, False), "system calls in the order of time")
    out, _ = dtrace(run.trace, "-n", r'ktr:::exec { printf("%d %s %s\n", arg0, stringof(arg1), stringof(arg4)); }')
    found = [" ".join(re.match(r"exec: pid (\d+) name (\S+) .* args (.*)", e["text"]).groups()) for e in run.events if e["text"].startswith("exec: ")]
    check_eq(out.splitlines()[:-1], found, "texts")
    cpus_of = [e["cpu"] for e in run.events if e["text"].startswith(("syscall ", "sysret "))]
    busiest = max(set(cpus_of), key=cpus_of.count)
    out, _ = dtrace(run.trace, "-x", f"cpu={busiest}", "-n", 'syscall::: { @[cpu] = count(); @rand["rand", rand() == rand()] = count(); } tick-10ms { @n["tick"] = count(); }')
    check_match(rf"^ +{busiest} +{cpus_of.count(busiest)}$", out, "calls and returns of one CPU")
    check_match(rf"^  rand +0 +{cpus_of.count(busiest)}$", out, "rand() twice")
    check_match(r"^ +tick +[1-9]", out, "ticks, which are of no CPU")
    since, until = (run.events[len(run.events) * share // 4]["ns"] for share in (1, 3))
    out, _ = dtrace(run.trace, "-x", f"since={since}ns", "-x", f"until={until}ns", "-n", r"""BEGIN, END { printf("%d ", timestamp); }
        syscall:::entry { @n = count(); } tick-10ms { @t = count(); } ktr:::exec { @e[execname] = count(); } END { printa("%@d ", @n); printa("%@d ", @t); }""")
    inside = [e for e in run.events if since <= e["ns"] <= until]
    check_eq(out.split()[:4], [str(n) for n in (since, until, sum(e["text"].startswith("syscall ") for e in inside), (until - since) // 10 ** 7)], "a stretch of the trace")
    for given, why in (("since=soon", 'found "soon", expected a time such as 1.5'), ("until=1ns", "no time of the trace is between: it is from"), ("since=9999999", "no time of the trace")):
        check(why in dtrace(run.trace, "-x", given, "-n", "BEGIN", status=1)[1], f"-x {given}")
    for name, stdin in (("-", open(run.trace, "rb")), *((name, subprocess.Popen(["cat", run.trace], stdout=subprocess.PIPE).stdout) for name in ("-", "/dev/stdin"))):
        done = subprocess.run([DTRACE, "-q", "-r", name, "-n", "syscall:::entry { @ = count(); }"], stdin=stdin, capture_output=True, timeout=120, env={"PATH": "/usr/bin:/bin", "KESTREL_ARCH": ARCH}, check=True)
        check_eq(done.stdout.split(), [str(len(calls)).encode()], "standard input")
    out, _ = dtrace(run.trace, "-n", "syscall::exit*:entry { exit(7); } syscall:::entry { @ = count(); }", status=7)
    check(0 < int(out) < len(calls), f"calls until the first exit: {out}")


@portable_test("events that were lost are told, and nothing is measured across them")
def lost():
    run = boot("ktr on fbt::spin_*:,fbt::sys_*: > /dev/null\nload mix -n 6 -j 2\n", smp=1, trace=True, mask="SYSC", sets=["debug.ktr.entries=256"]).expect()
    gaps = [g["gap"] for g in run.gaps]
    check(len(gaps) > 2, f"{len(gaps)} losses")
    out, _ = dtrace(run.trace, "-n", r"""ktr:::lost { @n = count(); @lost = sum(args[1]); until[args[0]] = args[3]; }
        fbt:::entry { self->at[probefunc] = timestamp; }
        fbt:::return /self->at[probefunc]/ { @good = count(); self->at[probefunc] = 0; }
        END { printa("%@d %@d %@d\n", @n, @lost, @good); }""")
    n, events, good = map(int, out.split()[:3])
    check_eq((n, events), (len(gaps), sum(gaps)), "losses, and events that are lost")
    check(good > 100, f"{good} calls that are whole")
    out, _ = dtrace(run.trace, "-n", r"""ktr:::lost { until[args[0]] = args[3]; }
        fbt:::entry { self->at[probefunc] = timestamp; }
        fbt:::return /self->at[probefunc] && self->at[probefunc] < until[cpu]/ { @ = count(); }""")
    check_eq(out.split(), [], "calls that began before a loss and ended after it")
    out, _ = dtrace(run.trace, "-n", "uint64_t last, n; BEGIN { last = timestamp; } syscall::: { n += timestamp < last; last = timestamp; } ktr:::lost, tick-1ms { n += timestamp < last || errno != 0; last = timestamp; } "
                    "END { trace(n); }")
    check_eq(out.split(), ["0"], "probes that fire before the one before, or with an errno of another")


@portable_test("a file of ktrace is a trace, too")
def ktrace():
    out = boot("ktrace -f /tmp/k ls /bin/sh /nosuch > /dev/null 2>&1; echo begins; base64 /tmp/k; echo ends\nkdump -f /tmp/k | grep -c CALL\n").expect().out.replace("\r", "")
    text, calls = re.search(r"^begins\n(.*)^ends\n(\d+)\n", out, re.M | re.S).groups()
    path = scratch_file("")
    path.write_bytes(base64.b64decode(text))
    found, _ = dtrace(path, "-n", 'syscall:::entry { @ = count(); } syscall::*stat*:return /errno == ENOENT/ { @e[execname] = count(); } END { printa("%@d ", @); printa("%s %@d\\n", @e); }')
    check_eq(found.split(), [calls, "ls", "1"], "system calls, and those that found no file")


REFUSED = [
    ("syscall:::entry { trace(curthread); }", r"\[D_RECORDED\] in action list: curthread is not in a recorded trace"),
    ("syscall:::entry /uid == 0/ { }", r"\[D_RECORDED\] in predicate: uid is not in a recorded trace"),
    ("syscall:::entry { @[stack()] = count(); }", r"\[D_RECORDED\] in action list: stack is not in a recorded trace"),
    ("syscall::open*:entry { trace(copyinstr(arg1)); }", r"\[D_RECORDED\] .*copyinstr is not in a recorded trace"),
    ("syscall::execve:entry { trace(args[0]); }", r"\[D_RECORDED\] .*args\[0\] is char \*, and what it points to is not in a recorded trace: arg0 is the address"),
    ("BEGIN { trace(`ticks); }", r"\[D_SYM_NOTYPES\]"),
    ("profile-97 { @ = count(); }", r'"profile-97": a trace has no CPUs to sample, expected tick-N'),
    ("syscall:::entry /pid == $target/ { }", r"\[D_RECORDED\] .*\$target is not in a recorded trace: expected the number of a process"),
    ("pid1:::entry { }", r"\[D_RECORDED\] .*pid1:::entry: what a program calls is not in a recorded trace"),
    ("tick-3parsecs { }", r'"3parsecs": expected a rate in Hz, or an interval with one of the units'),
    ("syscall::nosuch:entry { }", r"\[D_PDESC_ZERO\]"),
]


@portable_test("what a trace does not know is an error that says so, and so is a file that is no trace")
def refused():
    run = boot("ls\n", trace=True, mask="SYSC").expect()
    for program, why in REFUSED:
        check_match(why, dtrace(run.trace, "-n", program, status=1)[1], program)
    check_match(r"-r: found -a, -A, -c or -p too", dtrace(run.trace, "-c", "ls", "-n", "BEGIN", status=2)[1], "-c")
    alone = subprocess.run([DTRACE, "-n", "BEGIN"], capture_output=True, text=True, timeout=120, check=False)
    check_match(r"/dev/dtrace \(the host's dtrace needs -r FILE or -T LINE\): No such file",
                alone.stderr, "neither -r nor -T")
    check_match(r"/nosuch: No such file or directory", dtrace("/nosuch", "-l", status=1)[1], "no file")
    empty = scratch_file("")
    for text in (b"", b"no trace\n", b"\0" * 5000):
        empty.write_bytes(text)
        check_match(r"found no event, expected a trace", dtrace(empty, "-n", "BEGIN", status=1)[1], f"{text[:10]}")
    cut = scratch_file("")
    cut.write_bytes(run.trace.read_bytes()[:-100])
    whole, damaged = (int(dtrace(f, "-n", "syscall:::entry { @ = count(); }", status=s)[0]) for f, s in ((run.trace, 0), (cut, 1)))
    check(0 < damaged <= whole, f"calls in a trace that is cut off: {damaged} of {whole}")
    before = cut.read_bytes()
    check_match(r"it is an input: expected another file", dtrace(cut, "-n", "BEGIN { exit(0); }", "-o", cut, status=2)[1], "-o names the trace")
    check_eq(cut.read_bytes(), before, "the trace")
    link = scratch_file("") / "dtrace"
    link.parent.mkdir()
    link.symlink_to(DTRACE)
    done = subprocess.run([link, "-q", "-r", run.trace, "-n", "syscall:::entry /curpsinfo->pr_pid == pid/ { @ = count(); exit(0); }"], capture_output=True, text=True,
                          timeout=120, env={"PATH": "/usr/bin:/bin", "KESTREL_ARCH": ARCH}, check=False)
    check("failed to resolve curpsinfo" not in done.stderr, f"by a link, it does not find its library: {done.stderr}")
    out = boot("dtrace -r /dev/ktr -l; echo $?; dtrace -x since=1ms -n BEGIN\n").expect(2).out
    check_match(r"^dtrace: -r: the host's dtrace reads recorded traces, this one traces\r?\n2", out, "in the guest")
    check_match(r"^dtrace: -x since, until: they choose of a recorded trace: expected -r", out, "a stretch, in the guest")


if __name__ == "__main__":
    main()
