#!/usr/bin/python3
"""test_sdt.py - the kernel's own probes: each fires where it says, with the arguments that fit what happened."""
import base64
import re

import tracecheck as tc
from disks import make
from harness import BUILD, boot, check, check_eq, check_match, ktr_stats, main, portable_test, test

ENTRIES = "debug.ktr.entries=262144"
STABLE = "proc:::,sched:::,lockstat:::,vminfo:::,sysinfo:::,vfs:::,callout_execute:::"
BUT_LOCKS = STABLE.replace("lockstat:::", "lockstat:::adaptive-block,lockstat:::spin-spin")
PROBE = re.compile(r"(\w+):\w*:\w*:([\w-]+)(?:: (.*))?$")
USER_TEST = ["--file", f"/bin/user_test={BUILD}/user_test"]


def arguments(text):
    """{name: value}. A name may have blanks: it stands last, or before `error`."""
    return dict(re.findall(r"(\w+) (\S+|(?<=name ).*?)(?= \w+ \S|$)", text or ""))


def fired(run):
    """(event, "provider:::name", {argument: text}) of every event of a probe."""
    found = []
    for e in run.events:
        if m := PROBE.match(e["text"]):
            found.append((e, f"{m[1]}:::{m[2]}", arguments(m[3])))
    return found


def by_thread(pairs):
    """{tid: values in their order}: between two events, another thread may run."""
    found = {}
    for tid, value in pairs:
        found.setdefault(int(tid), []).append(value)
    return found


def same(run, probe, key, point, group=1):
    """An argument of a probe is what the trace point at its place says, for each thread in the same order."""
    said = by_thread((e["tid"], m[group]) for e, m in tc.named(run, point))
    check_eq(by_thread((e["tid"], args[key]) for e, args in of(run, probe)), said, f"{key} of {probe}")
    check(said, f"{probe} never fired")


def of(run, probe):
    return [(e, args) for e, name, args in fired(run) if name == probe]


def listed(out):
    """{"provider:::name": row} of what `ktr probes` printed."""
    rows = [m for m in re.finditer(r"^ *\d+ +\w+ +\S+ +(\w+) +(\w+) +(\S+) +(\S+) +(\".*)$", out, re.M)]
    return {f"{m[1]}:::{m[4]}": m for m in rows}


@portable_test("proc: create, start, exec, exit, signals and faults have the arguments of what a script does")
def processes():
    run = boot("/bin/ls /etc/motd\n/bin/ls /nothing\nnosuch\n/etc/motd\nsh -c 'kill -9 $$'\nuser_test > /dev/null\nktr off\ndmesg\n",
               trace=True, sets=[ENTRIES, "debug.ktr.on=proc:::"], mask="PROC,SIG", options=USER_TEST).expect()
    tc.no_gaps(run)
    paths = [args["path"] for _, args in of(run, "proc:::exec")]
    done = [args["path"] for _, args in of(run, "proc:::exec-success")]
    check("/bin/ls" in done and "/etc/motd" in paths and "/etc/motd" not in done, f"files executed: {done} of {paths}")
    failed = {int(args["error"]) for _, args in of(run, "proc:::exec-failure")}
    check(failed & {8, 13}, f"errors of exec: {failed}, expected ENOEXEC or EACCES of /etc/motd")
    # A process is created by its parent, starts, and ends: what the trace points say, the probes say.
    forks = [int(m[2]) for _, m in tc.named(run, r"fork: parent (\d+) child (\d+)")]
    made = of(run, "proc:::create")
    check_eq(len(made), len(forks), "proc:::create")
    check(all(args["proc"] != args["parent"] for _, args in made), f"a process that is its parent: {made}")
    check(any(int(args["flags"], 16) & 0x1200000 == 0x1200000 for _, args in made), f"no flags of a fork by sh, CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID: {made}")
    starts = [e["tid"] for e, _ in of(run, "proc:::start")]
    check_eq(sorted(starts), [1, *sorted(forks)], "threads of proc:::start")
    same(run, "proc:::exit", "status", r"exit: pid \d+ status (0x\w+|0) name")
    ends = [int(args["status"], 16) for _, args in of(run, "proc:::exit")]
    for e, args in of(run, "proc:::exit"):
        check_eq(int(args["reason"]), 1 if int(args["status"], 16) & 0x7f == 0 else 2, f"reason of status {args['status']}")
    check(9 in ends, "no process was killed")
    same(run, "proc:::lwp-create", "tid", r"thread create: tid (\d+) ")
    created = [int(args["tid"]) for _, args in of(run, "proc:::lwp-create")]
    # A thread is between the two for a while: tracing may end then.
    leave, left = ([e["tid"] for e, _ in found] for found in (of(run, "proc:::lwp-exit"), tc.named(run, r"thread exit: ")))
    check_eq(len(leave), len(set(leave)), "proc:::lwp-exit, a thread once")
    check(len(left) > 0 and set(left) <= set(leave), f"threads that ended without proc:::lwp-exit: {set(left) - set(leave)}")
    started = {e["tid"] for e, _ in of(run, "proc:::lwp-start")}
    check(set(starts) <= started, f"processes whose threads never began: {set(starts) - started}")
    check(started <= {1, *created}, f"threads that began, but were not created: {started - set(created)}")
    for probe, point in (("signal-send", "post"), ("signal-discard", "ignored")):
        same(run, f"proc:::{probe}", "pid", rf"signal {point}: pid (\d+) sig (\d+)$", 1)
        same(run, f"proc:::{probe}", "sig", rf"signal {point}: pid (\d+) sig (\d+)$", 2)
    same(run, "proc:::signal-handle", "sig", r"signal (?:handle|deliver): pid \d+ sig (\d+) ")
    # The kernel says which program died of what, and where; of ten at most.
    deaths = re.findall(r"\S+\[(\d+)\]: .* at (0x\w+|0), address (0x\w+|0): signal (\d+)$", run.out, re.M)
    check(len(deaths) > 5, f"faults in the messages: {deaths}")
    found = by_thread((e["tid"], (int(args["pc"], 16), int(args["va"], 16), args["sig"])) for e, args in of(run, "proc:::fault"))
    told = by_thread((pid, (int(pc, 16), int(va, 16), sig)) for pid, pc, va, sig in deaths)
    check_eq({tid: found.get(tid) for tid in told}, told, "proc:::fault")


@portable_test("vfs and vminfo: names, results and addresses are those of the trace points at the same places")
def files():
    run = boot("echo text > /tmp/new\ncat /tmp/new\nrm /tmp/new\nls /nothing\nmkdir /tmp\nload fault -n 20 -j 1\n"
               "ktr off\n", trace=True, sets=[ENTRIES, "debug.ktr.on=vfs:::,vminfo:::"], mask="VFS,VOP,VM,TRAP").expect()
    tc.no_gaps(run)
    lookups = [(args["name"], int(args["error"])) for _, args in of(run, "vfs:::lookup")]
    said = {(m[1] or m[2], int(m[3] or 0)) for _, m in tc.named(run, r"lookup (?:hit: name (.*) ino|miss: name (.*) error (\d+)$)")}
    check(said <= set(lookups), f"lookups without their probe: {sorted(said - set(lookups))[:5]}")
    check(("nothing", 2) in lookups, f"no lookup that fails: {lookups}")
    creates = [(args["name"], args["error"]) for _, args in of(run, "vfs:::create")]
    check(("new", "0") in creates, f"vfs:::create: {creates}")
    check(any(name == "tmp" and error == "17" for name, error in creates), f"vfs:::create that fails: {creates}")
    removes = [(args["name"], args["error"]) for _, args in of(run, "vfs:::remove")]
    check(("new", "0") in removes, f"vfs:::remove: {removes}")
    for call in ("read", "write"):
        same(run, f"vfs:::{call}", "result", rf"vop {call}: .* result (-?\d+)$")
    for probe, point in (("zfod", "zero fill"), ("cow_fault", "cow copy")):
        same(run, f"vminfo:::{probe}", "va", rf"{point}: va (0x\w+) ")
    served = by_thread((e["tid"], m[1]) for e, m in tc.named(run, r"page fault exit: va (0x\w+) served 1$"))
    check_eq(by_thread((e["tid"], args["va"]) for e, args in of(run, "vminfo:::as_fault")), served, "va of vminfo:::as_fault")
    check(served, "as_fault never fired")


# Probe: the regular expression of the trace point that shares its place. Groups have the names of arguments.
SHARED = {
    "sched:::on-cpu": r'.*state:"running"',
    "sched:::wakeup": r'.*point:"wokeup".* tid (?P<tid>\d+)"$',
    "sched:::enqueue": r"runq insert: cpu (?P<cpu>\d+) tid (?P<tid>\d+) ",
    "sched:::dequeue": r"runq remove: cpu (?P<cpu>\d+) tid (?P<tid>\d+) ",
    "sched:::load-change": r'.*counter:(?P<load>\d+), ',
    "sched:::sleep": r'.*state:"(sleep|blocked)"',
    "sched:::tick": r'.*point:"statclock"',
    "lockstat:::spin-acquire": r"spin acquire: lock (?P<name>.*) addr (?P<spinlock>0x\w+) ",
    "lockstat:::spin-release": r"spin release: lock (?P<name>.*) addr (?P<spinlock>0x\w+)$",
    "lockstat:::adaptive-acquire": r"mutex acquire: lock (?P<name>.*) addr (?P<mutex>0x\w+) ",
    "lockstat:::adaptive-release": r"mutex release: lock (?P<name>.*) addr (?P<mutex>0x\w+)$",
    "callout_execute:::callout-start": r'.*group:"callout".* func:(?P<func>0x\w+),',
    "callout_execute:::callout-end": r'.*group:"callout".*state:"idle"',
}


def shares(run):
    """Each event of a probe in SHARED follows that of its trace point on the same CPU, with the same values."""
    count, before = dict.fromkeys(SHARED, 0), {}
    regexes = {probe: re.compile(regex) for probe, regex in SHARED.items()}
    for e in run.decoded:
        if "gap" in e:
            before = {key: m for key, m in before.items() if key[0] != e["cpu"]}
        if "text" not in e:
            continue
        m = PROBE.match(e["text"])
        if m is None:
            before |= {(e["cpu"], probe): found for probe, regex in regexes.items() if (found := regex.match(e["text"]))}
            continue
        probe = f"{m[1]}:::{m[2]}"
        point = before.pop((e["cpu"], probe), None)
        if point is None:
            continue  # the trace point is off, or lost, or an interrupt came between the two
        args = arguments(m[3])
        for key, value in point.groupdict().items():
            check_eq(args[key], value, f"{key} of {e['text']!r}, after {point[0]!r}")
        count[probe] += 1
    return count


def waits_are_possible(run):
    """No thread has waited for a lock for longer than it has been there."""
    first = {}
    for e in run.events:
        first.setdefault(e["tid"], e["ns"])
    for probe in ("lockstat:::adaptive-block", "lockstat:::spin-spin"):
        for e, args in of(run, probe):
            check(0 <= int(args["ns"]) <= e["ns"] - first[e["tid"]], f"{e['text']!r}: thread {e['tid']} is {e['ns'] - first[e['tid']]} ns old")


@portable_test("sched, lockstat and callout_execute: a probe has what the trace point at its place has, with 1 CPU")
def shared_one():
    shared(1)


@portable_test("sched, lockstat and callout_execute: a probe has what the trace point at its place has, with 4 CPUs")
def shared_four():
    shared(4)


def shared(smp):
    run = boot("ktr on 'sched:::,lockstat:::,callout_execute:::'\nload switch -n 20 -j 2\nload lock -n 20\nsleep 0.1\nktr off\n"
               "sysctl debug.ktr.stats\n", smp=smp, trace=True, sets=[ENTRIES], mask="SCHED,RUNQ,LOCK,TICK").expect()
    tc.accounting_holds(ktr_stats(run.out))
    count = shares(run)
    check_eq([probe for probe, n in count.items() if n == 0], [], "probes without an event after that of their trace point")
    if not run.gaps:  # or the beginning of a thread may be lost
        waits_are_possible(run)
    # The thread that takes the CPU is the one that off-cpu has named on that CPU before.
    named, checked = {}, 0
    for e in run.decoded:
        if "gap" in e:
            named.pop(e["cpu"], None)
        elif m := re.match(r"sched:::off-cpu: .* tid (\d+)$", e.get("text", "")):
            named[e["cpu"]] = int(m[1])
        elif re.match(r"sched:::on-cpu$", e.get("text", "")) and e["cpu"] in named:
            check_eq(e["tid"], named.pop(e["cpu"]), f"the thread of on-cpu on cpu {e['cpu']} at {e['ns']} ns")
            checked += 1
    check(checked > 20, f"{checked} threads took a CPU, expected more")


@portable_test("every probe of the stable providers fires, and what waits for a lock says how long")
def every():
    # Which CPU waits for which is chance, and so is how long a thread keeps its CPU: work ever more until all have fired.
    known, seen = None, set()
    for n in (2**k for k in range(8)):
        run = boot(f"cp /bin/load /mnt/load\nsync; umount /mnt; mount -t ext2 /dev/vda /mnt\nktr probes '{STABLE}'\nktr on '{BUT_LOCKS}'\n/mnt/load lock -n 1 -j 1\nload mix -n {n} -j 4\nload lock -n {50 * n} -j 4\nrm /tmp/nothing\nrenice -n 3 -p $$\n"
                   f"/etc/motd\nuser_test > /dev/null\nktr on '{STABLE}'\ntrue\nktr off\n", smp=4, trace=True, sets=[ENTRIES],
                   options=[*USER_TEST, "--disk", str(make("16M"))]).expect()
        known = set(listed(run.out))
        seen |= {probe for _, probe, _ in fired(run)}
        if seen == known:
            break
    check_eq(sorted(known - seen), [], "probes that never fired")
    check_eq(sorted(seen - known), [], "probes that are not listed")
    check(len(known) == 57, f"{len(known)} probes, expected 57")


@test("a probe and a trace point at one place are switched for themselves; afterwards the code is as it was built")
def independent():
    run = boot("sysctl -n debug.fbt.text\nktr on RUNQ\nktr on sched:::enqueue\nktr off RUNQ\nktr clear\nktr probes sched:::enqueue\n"
               "sysctl debug.ktr.alq_enable=1\nload switch -n 5\nsysctl debug.ktr.alq_enable=0\nktr off sched:::enqueue\nktr clear\nktr on RUNQ\n"
               "sysctl debug.ktr.alq_enable=1\nload switch -n 5\nsysctl debug.ktr.alq_enable=0\nktr off\nsysctl -n debug.fbt.text\n"
               "ktr off sched:::enqueue\n", smp=2, trace=True, sets=["debug.ktr.alq_enable=0", ENTRIES]).expect()
    texts = re.findall(r"^([0-9a-f]{8})$", run.out, re.M)
    check(len(texts) == 2 and texts[0] == texts[1], f"checksums of the kernel's code: {texts}")
    check_match(r'^ *\d+ +on +command +sched +sched +- +enqueue +"sched:::enqueue: thread %p .*" \(struct thread \*, struct proc \*, '
                r'struct pcpu \*, int, tid_t, unsigned\)$', run.out, "the row of the probe")
    check_match(r"^1 trace point switched on$", run.out, "the probe is switched on")
    check_match(r"^0 trace points switched off; 1 was off$", run.out, "what is off already")
    first, second = tc.streams(run.trace)
    names = [{re.split(r"[ :]", e["fmt"])[0] for e in tc.json_lines(tc.ktrdump("--format", "jsonl", "-i", path)[1]) if e.get("fmt")}
             for path in (first, second)]
    check_eq(names, [{"sched"}, {"runq"}], "what was recorded")


# Of tests/kernel/sdt_macros.c: the name of a probe and how many arguments it has.
MACROS = {"plain": 0, "old": 5, "enabled": 7} | {f"{kind}{n}": n for kind in "px" for n in range(8)}
FIRE = "sysctl debug.ktest.sdt=1 > /dev/null\n"
EVERY_MACRO = f"""cd /sys/kernel/tracing
ktr on macros:::
{FIRE}ktr off macros:::
echo =====
mkdir instances/i
for at in . instances/i; do
    echo 1 > $at/events/macros/enable
    {FIRE}echo 0 > $at/events/macros/enable
    cat $at/trace
    dd if=$at/per_cpu/cpu0/trace_pipe_raw bs=4096 count=1 2> /dev/null | base64
    echo =====
done
for e in p7 x7 enabled; do grep -c arg6 events/macros/$e/format; echo 'hist:keys=arg6.hex' > events/macros/$e/trigger
    echo 'arg6 == 0x7777777777777777 && arg5 != 0' > events/macros/$e/filter; echo 1 > events/macros/$e/enable; done
echo > trace
{FIRE}cat trace events/macros/*7/hist events/macros/enabled/hist
echo =====
dtrace -qn 'macros::: {{ printf("%s %x %x %x %x %x %x %x\\n", probename, arg0, arg1, arg2, arg3, arg4, arg5, arg6); }}' -c 'sysctl debug.ktest.sdt=1'
dtrace -qn 'macros:::*7,macros:::enabled {{ printf("%s %x\\n", probename, args[6]); }}' -c 'sysctl debug.ktest.sdt=1'
"""


@portable_test("a probe of each macro of SDT(9) fires into the log, into tracefs' text, binary data, filters and histograms, and into D")
def macros():
    run = boot(EVERY_MACRO, trace=True, sets=[ENTRIES], options=["--kernel", str(BUILD / "kestrel-test")]).expect()
    values = [f"{0x1111111111111111 * (n + 1):#x}" for n in range(7)]
    expected = {name: " ".join(f"arg{i} {value}" for i, value in enumerate(values[:n])) for name, n in MACROS.items()}
    logged = {m[1]: m[2] or "" for e in run.events if (m := re.match(r"macros:::(\w+)(?:: (.*))?$", e["text"]))}
    check_eq(logged, expected, "in the log")
    _, top, instance, seven, d = run.out.split("=====\n")
    for where, text in ("tracefs", top), ("an instance", instance):
        found = {m[1]: m[2].strip() for m in re.finditer(r" (\w+):((?: arg\d 0x\w+)*) *$", text.replace("macros_", ""), re.M)}
        check_eq(found, expected, f"in {where}")
        data = base64.b64decode(re.search(r"(?:^[A-Za-z0-9+/=]{20,}\n)+", text, re.M)[0])
        least = sum(n == 7 for n in MACROS.values())
        check(data.count(0x7777777777777777.to_bytes(8, "little")) >= least, f"binary data of {where} have arg6 fewer than {least} times")
    check_eq(re.findall(r"^\d$", seven, re.M), ["2"] * 3, "lines of formats with arg6: field and text")
    check_eq(len(re.findall(r" (?:p7|x7|enabled): .* arg6 0x7777777777777777$", seven, re.M)), 3, f"events that a filter lets through: {seven}")
    check_eq(len(re.findall(r"arg6: +7777777777777777 +} hitcount: +1$", seven, re.M)), 3, f"histograms: {seven}")
    args = {m[1]: m[2].split() for m in re.finditer(r"^(\w+)((?: [0-9a-f]+){7})$", d, re.M)}
    check_eq(args, {name: [value[2:] for value in values[:n]] + ["0"] * (7 - n) for name, n in MACROS.items()}, "in D")
    check_eq(len(re.findall(r"^\w+ 7777777777777777$", d, re.M)), 3, f"typed arguments in D: {d}")


if __name__ == "__main__":
    main()
