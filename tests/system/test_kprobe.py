#!/usr/bin/python3
"""test_kprobe.py - probes at any instruction: their language, what they record, where they are refused, and that they do no harm."""
import collections
import random
import re
import subprocess
import sys

import tracecheck as tc
from harness import ARCH, BUILD, boot, check, check_eq, check_match, main, portable_test, test, times

sys.path.insert(0, str(BUILD.parent.parent / "tests" / "unit"))
import insn_test as insns  # noqa: E402

X86 = ARCH == "x86_64"
ARG = ["%di", "%si", "%dx", "%cx"] if X86 else ["%x0", "%x1", "%x2", "%x3"]
DEVICE = "0xffff8000fee00000" if X86 else "0xffffff0009000000"  # the local APIC, the serial line
BATCH = 200


def code():
    """{function: [(offset, text)]} of all functions whose names no other has."""
    nm = subprocess.run([insns.TOOLS[ARCH] + "nm", BUILD / "kestrel"], capture_output=True, text=True, check=True).stdout
    names = {}
    for line in nm.splitlines():
        at, kind, name = line.split(None, 2)
        if kind in "tT":
            names.setdefault(int(at, 16), name)
    once = {name for name, n in collections.Counter(names.values()).items() if n == 1}
    return {names[at]: [(a - at, t) for a, _, t in body] for at, body in insns.functions(ARCH, BUILD / "kestrel")
            if names.get(at) in once and insns.contiguous(body)}


def counts(out, name):
    """(state, hits, misses, faults) of a probe as `ktr probe list` last said."""
    rows = re.findall(rf"^{name} +(on|off) +(\d+) +(\d+) +(\d+) ", out, re.M)
    check(rows, f"no probe {name} is listed:\n{out}")
    return rows[-1][0], *(int(n) for n in rows[-1][1:])


@test("each kind of argument is fetched, with each type, as the program caused it")
def language():
    probes = [
        f"p:kprobes/open file_open_at name={ARG[1]}:x64 $arg2 text=+0($arg2):string $comm s=$stack n=\\-1:s64",
        f"p:types file_open_at a=+0({ARG[1]}):u8 b=+0({ARG[1]}):char c=+1({ARG[1]}):s16 d=+0({ARG[1]}):x32 e=+0({ARG[1]}):b4@4/8 f=+0({ARG[1]}):u64",
        "p:memory file_open_at v=@ncpus:u32 w=@ncpus+0:u32 i=\\7 caller=" + ("$stack0:symbol" if X86 else "%x30:symbol"),
        "r5:done sys_getppid rv=$retval:s32 $comm",
        f"p:fault file_open_at a=+0({DEVICE[:0]}@{DEVICE}) b=@0xffff7ff000000000 t=@0xffff7ff000000000:string s=@0xffff7ff000000000:string[4]",
    ]
    script = [f"ktr probe add '{p}'" for p in probes] + ["ktr probes kprobe:::", "ktr on 'kprobe:::'", "cat /etc/motd",
                                                         "load syscall -n 3 -j 1", "ktr off", "ktr probe list", ""]
    run = boot("\n".join(script), smp=2, trace=True).expect()
    tc.no_gaps(run)
    text = {name: [e["text"].split(": ", 1)[1] for e in run.events if e["text"].startswith(f"kprobe:::{name}:")]
            for name in ("open", "types", "memory", "done", "fault")}
    (opened,) = [t for t in text["open"] if "/etc/motd" in t]
    m = check_match(r"^name (0x\w+) arg2 (0x\w+) text /etc/motd arg4 cat s (0xf\w+) n -1$", opened, "arguments") or re.match(
        r"^name (0x\w+) arg2 (0x\w+) text /etc/motd arg4 cat s (0xf\w+) n -1$", opened)
    check_eq(m.group(1), m.group(2), "a register, and the argument in it")
    value = int.from_bytes(b"/etc/mot", "little")
    check(f"a 47 b / c {int.from_bytes(b'et', 'little')} d {value & 0xffffffff:#x} e 2 f {value}" in text["types"],
          f"types are {text['types']}")
    check(all(re.match(r"v 2 w 2 i 0x7 caller do_sys_openat2\+0x[0-9a-f]+$", t) for t in text["memory"]) and text["memory"],
          f"memory is {text['memory']}")
    check("rv 1 arg2 load" in set(text["done"]) or all(re.match(r"rv \d+ arg2 load$", t) for t in text["done"]), f"returns are {text['done']}")
    check_eq(set(text["fault"]), {"a 0 b 0 t (fault) s {(fault),(fault),(fault),(fault)}"}, "memory that is none, or a device's")
    n = len(text["fault"])
    check_eq(counts(run.out, "fault"), ("off", n, 0, 4 * n), "counts of the probe whose memory is none")
    check_eq(counts(run.out, "open")[1], len(text["open"]), "hits are events")
    for e in run.events:
        if e["text"].startswith("kprobe:::open"):
            check_match(r"^kernel/fs/", e["file"], "the file of the instruction")


@portable_test("what cannot be is refused: a mark shows the place, and nothing is left of it")
def refused():
    nm = subprocess.run(["nm", BUILD / "kestrel"], capture_output=True, text=True, check=True).stdout
    inside = int(re.search(r"^(\w+) T sys_read$", nm, re.M)[1], 16) + 4
    bad = {
        "q:x sys_read": (1, "expected p:NAME or r:NAME"),
        "p:x": (4, "expected a place"),
        "p:x-y sys_read": (3, "the name of the probe is no C identifier"),
        "p:/x sys_read": (3, "expected the name of the group"),
        "p5:x sys_read": (2, "a number of calls: only a probe r has it"),
        "r5a:x sys_read": (2, "expected a number of calls"),
        "r5000:x sys_read": (2, "the number of calls is more than 4096"),
        "p:x nosuch:sys_read": (5, 'no function of a module "nosuch"'),
        "p:x sys_raed": (5, 'no function "sys_raed"'),
        "p:x sys_read+0x99999999": (5, "no function is at that address"),
        "p:x sys_read+0xffffffffffffffe0": (5, "no function is at that address"),
        "p:x sys_read+1": (5, "is inside an instruction"),
        "p:x 0x1000": (5, "no function is at that address"),
        "p:x sys_read fd=%zz": (17, "no register %zz"),
        "p:x sys_read fd=": (17, "expected what the argument is"),
        "p:x sys_read fd": (14, "expected ="),
        "p:x sys_read a=+8(%sp": (22, "expected )"),
        "p:x sys_read a=+8%sp": (16, "expected ( after"),
        "p:x sys_read a=+8(+8(%sp)": (25, "expected )"),
        "p:x sys_read a=\\\"text": (22, 'expected " at the end'),
        "p:x sys_read a=$stack0:string": (24, "a string is in memory"),
        "p:x sys_read a=+0(%sp):u8[4": (28, "expected ] after"),
        "p:x sys_read a=+0(%sp):u8[4]x": (29, "expected a space after the array"),
        "p:x sys_read a=+0(%sp):u8[65]": (27, "at most 64 elements"),
        "p:x sys_read a=%sp a=%sp": (20, "another argument is called a"),
        "p:x sys_read =%sp": (14, "expected an argument's name"),
        f"p:x sys_read a=+{'0' * 60}(%sp)": (16, "more than 63 characters"),
        "p:x sys_read a=%sp:u7": (20, 'no type "u7"'),
        "p:x sys_read a=%sp:string": (20, "a string is in memory"),
        "p:x sys_read a=%sp:b9@0/8": (20, "bits that are not inside"),
        "p:x sys_read a=$retval": (16, "only a probe r: has it"),
        "r:x sys_read a=$arg1": (16, "only a probe at the start of a function"),
        "r:x sys_read+8": (5, "a return has no offset"),
        f"r:x {inside:#x}": (5, "a return has no offset"),
        "p:x sys_read a=$arg99": (16, "expected $arg1 to"),
        "p:x sys_read a=$stack2049": (16, "expected at most $stack2048"),
        "p:x sys_read a=$stack99999999999999999999": (16, "expected $argN, $retval"),
        "p:x sys_read a=@nothing_there": (16, "no symbol"),
        f"p:x sys_read a={'+1(' * 14}%sp{')' * 14}": (16, "more than 13 offsets"),
        "p:x sys_read" + " %sp" * 33: (142, "more than 32 arguments"),
        "p:x ktr_record6": (5, "part of the log"),
        "p:x entry_probe": (5, "handles the breakpoint of a kprobe"),
        "p:x smp_ipi": (5, "waits while breakpoints are written"),
        "p:x arch_copy_user": (5, "assembly"),
        "p:x ktr_port_suppressed": (5, "called by the record path"),
    }
    script = [f"ktr probe add '{p}'" for p in bad]
    # Instructions that change how interrupts are taken, and exclusives' loops, wherever they are.
    places = [(name, at) for name, body in code().items() for at, text in body if insns.expected(ARCH, text) == "refuse"
              and not re.match("int3", text)]
    check(places, "no instruction is refused")
    script += [f"ktr probe add 'p:y {name}+{at}'" for name, at in places[:100]]
    script += ["ktr probe add 'p:twice sys_read $stack2048'", "ktr probe add 'p:twice sys_read $stack2048'", "ktr probe del x", "ktr probe list", "ktr probe nothing", "true", ""]
    run = boot("\n".join(script)).expect()
    for text, (at, why) in bad.items():
        want = f"ktr: character {at}: "
        block = [b for b in re.split(r"(?=^ktr: )", run.out, flags=re.M) if f"\n{text}\n" in b]
        check(block, f"{text}: no message; the console says\n{run.out[:3000]}")
        check(block[0].startswith(want) and why in block[0], f"{text}: found {block[0]!r}, expected {want}…{why}…")
        check(f"\n{text}\n{'^':>{at}}\n" in block[0], f"{text}: the mark is elsewhere: {block[0]!r}")
    check_match(r'^ktr: there is a probe "twice" already$', run.out, "a name that is taken")
    check_match(r'^ktr: no probe "x"$', run.out, "a name that is none")
    check_match(r"^usage: ktr probe add", run.err + run.out, "a word that is none")
    check_eq(re.findall(r"^(\w+) +(?:on|off) +\d+ +\d+ +\d+ ", run.out, re.M), ["twice"], "probes that were made")


@test("probes and FBT at the same entries and returns: both see every call, in any order of switching")
def shared():
    add = ["ktr probe add 'p:in sys_getppid'", "ktr probe add 'r:out sys_getppid $retval'", "ktr probe add 'p:in2 sys_getppid'"]
    call = ["load syscall -n 20 -j 1"]
    script = add + ["sysctl -n debug.fbt.text", "ktr on kprobe:::", *call, "ktr on fbt::sys_getppid:", *call, "ktr off kprobe:::", *call,
                    "ktr on kprobe:::", *call, "ktr off fbt::sys_getppid:", *call, "ktr off", *call, "ktr probe list",
                    "sysctl -n debug.fbt.text", ""]
    run = boot("\n".join(script), smp=2, trace=True).expect()
    tc.no_gaps(run)
    counted = {what: len([e for e in run.events if e["text"].startswith(what)]) for what in
               ("kprobe:::in:", "kprobe:::in2", "kprobe:::in", "kprobe:::out:", "-> sys_getppid(", "<- sys_getppid+")}
    calls = counted["-> sys_getppid("] // 3
    check(calls >= 20, f"{calls} calls, expected 20 or more")
    for what, times in (("kprobe:::in2", 4), ("kprobe:::out:", 4), ("-> sys_getppid(", 3), ("<- sys_getppid+", 3)):
        check_eq(counted[what], times * calls, what)
    check_eq(counts(run.out, "in")[1], 4 * calls, "hits at the entry")
    before, after = re.findall(r"^([0-9a-f]{8})$", run.out, re.M)
    check_eq(after, before, "checksum of the kernel's code")


@test("a probe at an instruction of each form there is, on four busy CPUs, does no harm; afterwards the code is as before")
def every_form():
    forms, functions = {}, list(code().items())
    random.Random(7).shuffle(functions)
    for name, body in functions:
        for at, text in body:
            form = re.sub(r"0x[0-9a-f]+|[0-9a-f]{6,}|<.*>|//.*|#.*", "N", text)
            form = re.sub(r"%r?[a-ds189][a-z0-9]*|\b[xw]\d+", "R", form)
            if insns.expected(ARCH, text) != "refuse":
                forms.setdefault(form, (name, at))
    places, script = list(forms.values()), ["sysctl -n debug.fbt.text"]
    check(len(places) > 300, f"{len(places)} forms of instructions")
    for first in range(0, len(places), BATCH):
        some = places[first:first + BATCH]
        script += [f"ktr probe add 'p:k{n} {name}+{at} $stack0 %sp' 2> /dev/null" for n, (name, at) in enumerate(some)]
        script += ["ktr on kprobe:::", f"load mix -n {times(1, 2)} -j 4", "ktr off", "ktr probe list"]
        script += [f"ktr probe del k{n} 2> /dev/null" for n in range(len(some))]
    run = boot("\n".join([*script, "sysctl -n debug.fbt.text", ""]), smp=4).expect()
    rounds = -(-len(places) // BATCH)
    check_eq(len(re.findall(r"^load mix: n=\d jobs=4 ok, \d+ ms$", run.out, re.M)), rounds, "loads that succeeded")
    hits = [int(n) for n in re.findall(r"^k\d+ +off +(\d+) ", run.out, re.M)]
    check(len(hits) > len(places) // 4 and sum(n > 0 for n in hits) > 25, f"{len(hits)} probes, {sum(n > 0 for n in hits)} were hit")
    before, after = re.findall(r"^([0-9a-f]{8})$", run.out, re.M)
    check_eq(after, before, "checksum of the kernel's code")


CD = "cd /sys/kernel/tracing\n"
ROW = re.compile(r"^ *(\S+)-\d+ +\[\d{3}\] X\.\.\.\. +[\d.]+: (.*?)\r?$", re.M)


def ftrace(script, smp=2):
    return boot(CD + script, smp=smp).expect().out.replace("\r", "").split("=====\n")


@portable_test("several places are one event: each fires it, and is counted; one joins or leaves while the event is on; what does not fit is refused")
def several():
    made, ran, one, late, wrong, gone = ftrace(
        "echo 'p:both sys_getppid a=$comm' > kprobe_events\necho 'p:both ramfs_read a=$comm' >> kprobe_events\n"
        "echo 'r:ends sys_getppid $retval' >> kprobe_events\necho 'r:ends ramfs_read $retval' >> kprobe_events\n"
        "echo 'p:full sys_getppid \\1 \\2 \\3 \\4 \\5 \\6' >> kprobe_events\necho 'p:full ramfs_read \\1 \\2 \\3 \\4 \\5 \\6' >> kprobe_events\n"
        "cat kprobe_events\nls events/kprobes\necho =====\necho 1 > events/kprobes/enable\nload syscall -n 5 -j 1\nhead -n 1 /etc/motd >/dev/null\n"
        "echo 0 > events/kprobes/full/enable\necho 0 > tracing_on\ncat trace kprobe_profile\necho 1 > tracing_on\necho =====\n"
        "echo '-:full' >> kprobe_events\necho '-:ends sys_getppid' >> kprobe_events\necho '-:kprobes/both ramfs_read a=$comm' >> kprobe_events\necho > trace\n"
        "load syscall -n 5 -j 1\nhead -n 1 /etc/motd >/dev/null\ncat trace kprobe_events\necho '-:both' >> kprobe_events\necho =====\n"
        "echo 'p:both ramfs_read a=$comm' >> kprobe_events\necho > trace\nload syscall -n 5 -j 1\nhead -n 1 /etc/motd >/dev/null\ncat trace\necho =====\n"
        + "".join(f"echo > error_log\necho '{line}' >> kprobe_events\ncat error_log\n" for line in (
            "p:both ramfs_read a=$comm", "r:both sys_read a=$comm", "p:both sys_read b=$comm", "p:both sys_read a=%sp", "p:both sys_read", "p:vfs/lookup sys_read")) +
        "echo =====\necho 0 > events/kprobes/enable\necho '!p:kprobes/both ramfs_read' >> dynamic_events\ncat kprobe_events\necho '-:nosuch' >> kprobe_events\n"
        "echo '-:both sys_read' >> kprobe_events\necho > kprobe_events\ncat kprobe_events\nls events/kprobes\n")
    fit = "arg1=\\1 arg2=\\2 arg3=\\3 arg4=\\4 arg5=\\5 arg6=\\6"
    check_eq(made, "".join(f"{what} {f}{args}\n" for what, args in (("p:kprobes/both", " a=$comm"), ("r:kprobes/ends", " arg1=$retval"), ("p:kprobes/full", f" {fit}"))
                           for f in ("sys_getppid", "ramfs_read")) + "both    enable  ends    filter  full\n", "what is made")
    rows = [what for _, what in ROW.findall(ran)]
    profile = dict(zip(("p1", "p2", "r1", "r2", "f1", "f2"), map(int, re.findall(r"^  \w+ +(\d+) +0$", ran, re.M))))
    kinds = {"p1": r"both: \(sys_getppid\+0x0/0x\w+\) a=\"\w+\"", "p2": r"both: \(ramfs_read\+0x0/0x\w+\) a=\"[\w/]+\"",
             "r1": r"ends: \(\w+\+0x\w+/0x\w+ <- sys_getppid\) arg1=0x\w+", "r2": r"ends: \(\w+\+0x\w+/0x\w+ <- ramfs_read\) arg1=0x\w+"}
    for kind, pattern in kinds.items():
        n = sum(re.fullmatch(pattern, w) is not None for w in rows)
        check(0 < n <= profile[kind], f"{pattern}: {n} events, {profile[kind]} hits")
    check_eq(set(w for w in rows if w.startswith("full")), {"full: (?) arg1=0x1 arg2=0x2 arg3=0x3 arg4=0x4 arg5=0x5 arg6=0x6"}, "six arguments leave no room for the place")
    rows = [what for _, what in ROW.findall(one)]
    check_eq({re.sub(r"\+0x\w+/0x\w+|a=.*|arg1=.*|\(\w+ <-|\w+\+.* <-", "", w).split(" ")[0] + re.search(r"(\w+)(?:\+0x0\S*)?\)", w)[1] for w in rows},
             {"both:sys_getppid", "ends:ramfs_read"}, "after the removal of a place of each")
    check_eq(re.findall(r"^[pr]:.*$", one, re.M), ["p:kprobes/both sys_getppid a=$comm", "r:kprobes/ends ramfs_read arg1=$retval"], "what stays")
    check_match(r"^sh: .*Device or resource busy$", one, "the removal of an event that is on")
    names = [re.match(r"both: \((\w+)", what)[1] for _, what in ROW.findall(late) if what.startswith("both")]
    check("ramfs_read" in names and names.count("sys_getppid") >= 5, f"a place that joins while the event is on: {names}")
    differ = "Argument type or name is different from existing probe"
    said = re.findall(r"trace_kprobe: error: (.*)\n  Command: (.*)\n( *)\^$", wrong, re.M)
    check_eq([(why, command, len(mark) - 11) for why, command, mark in said],
             [("There is already the exact same probe event", "p:both ramfs_read a=$comm", 0), ("Probe type is different from existing probe", "r:both sys_read a=$comm", 0),
              (differ, "p:both sys_read b=$comm", 16), (differ, "p:both sys_read a=%sp", 16), (differ, "p:both sys_read", 16),
              ("Given group/event name is already used by another event", "p:vfs/lookup sys_read", 0)], "error_log")
    check_eq(wrong.count("File exists"), 6, wrong)
    check_match(r"^p:kprobes/both sys_getppid a=\$comm\nr:kprobes/ends .*\nsh: .*No such file.*\nsh: .*No such file.*\nenable  filter\n$", gone, "removals")


@test("places of events join and leave while the events are on and four CPUs run through them; the code and the memory are afterwards as before")
def several_storm():
    functions = ["sys_getppid", "ramfs_read", "file_read_uio", "sys_read", "mutex_unlock"]
    turn = "".join(f"echo 'p:many {f} a=$stack0' >> kprobe_events\necho 'r:ends {f} $retval' >> kprobe_events\n" for f in functions)
    turn += "".join(f"echo '-:many {f}' >> kprobe_events\necho '-:ends {f}' >> kprobe_events\n" for f in functions)
    body = "load mix -n 4 -j 4 &\n" + 4 * turn + "wait\n"
    run = boot(CD + "sysctl -n debug.fbt.text\necho 'p:many sys_write a=$stack0' > kprobe_events\necho 'r:ends sys_write $retval' >> kprobe_events\n"
               "echo 1 > events/kprobes/enable\n" + times(1, 4) * body + f"turn() {{\n{turn}}}\n" +
               # Quiet turns: a leak of one object takes a page or more in each ten; the first ten fill what the heap keeps. In the
               # suite the events are off in them: each change of the code takes a guest on four CPUs 20 ms.
               f"echo {times(0, 1)} > events/kprobes/enable\n" +
               2 * ("for i in 1 2 3 4 5 6 7 8 9 10; do turn; done\nsysctl -n vm.pages.free\n") + "for i in 1 2 3 4 5 6 7 8 9 10; do turn; turn; done\n"
               "sysctl -n vm.pages.free\ncat kprobe_profile\necho 0 > events/kprobes/enable\n"
               "echo > kprobe_events\nsysctl -n debug.fbt.text\n", smp=4).expect()
    check_eq(len(re.findall(r"^load mix: n=4 jobs=4 ok, ", run.out, re.M)), times(1, 4), "loads that succeeded")
    check_eq(re.findall(r"^sh: .*", run.out, re.M), [], "errors")
    before, after = re.findall(r"^([0-9a-f]{8})\r?$", run.out, re.M)
    check_eq(after, before, "checksum of the kernel's code")
    pages = [int(n) for n in re.findall(r"^(\d{4,7})\r?$", run.out, re.M) if n not in (before, after)]
    check(len(pages) == 3 and pages[2] >= pages[1] - 2, f"pages that are free after 10, 20 and 40 quiet turns: {pages}")
    check_eq([name for name, n in re.findall(r"^  (\w+) +(\d+) +\d+\r?$", run.out, re.M) if int(n) > 0], ["many", "ends"], "probes that stay, with hits")


@portable_test("groups, texts, arrays, and what a program's memory has: made, listed, printed as Linux does; a group's folder goes with its last event")
def language_of_linux():
    made, printed, gone = ftrace(
        "echo 'p:mine/open file_open_at path=+0($arg2):string comm=$comm say=\\\"hello\" no=+0(\\1):string' > kprobe_events\n"
        "echo 'r20:mine/ sys_getppid $retval' >> kprobe_events\necho 'p:other.bytes file_open_at b=+0($arg2):u8[4] +0($arg2):x8[2] c=+0($arg2):char "
        "cs=+1($arg2):char[3] t=+0($arg2):x16[1] s=@ncpus:symbol' >> kprobe_events\necho 'p file_open_at+0 user=+u0($arg2):string same=+0($arg2):ustring' >> dynamic_events\n"
        "echo 'p sys_openat path=+0(+8($arg1)):ustring' >> kprobe_events\n"
        "cat kprobe_events\nls events/mine events/other events/mine/open\nls -d events/mine*/*/\ngrep '^print' events/mine/*/format events/other/bytes/format\necho =====\n"
        "echo 1 > events/mine/enable\necho 'comm ~ \"he*\"' > events/other/bytes/filter\necho 1 > events/other/bytes/enable\n"
        "echo 1 > events/kprobes/enable\nhead -n 1 /etc/motd >/dev/null\necho 0 > events/enable\ncat trace set_event\necho =====\n"
        "echo '-:mine/' >> kprobe_events\nls -d events/mine\necho '!p:other/bytes' >> dynamic_events\nls -d events/mine events/other\ncat kprobe_events\n"
        "echo 'p:sched/mine sys_read' >> kprobe_events\nls -d events/sched/m*\necho > kprobe_events\nls -d events/sched/m*\nls -d events/sched/sched_process_exit\n"
        "echo 'p:mine/again sys_read' > kprobe_events\nls events/mine\n", smp=1)
    check_match(r"^p:mine/open file_open_at path=\+0\(\$arg2\):string comm=\$comm say=\\\"hello\" no=\+0\(\\1\):string\nr20:mine/r_sys_getppid_0 sys_getppid arg1=\$retval\n"
                r"p:other/bytes file_open_at b=\S+ arg2=\+0\(\$arg2\):x8\[2\] c=.*\np:kprobes/p_file_open_at_0 file_open_at user=.*\n"
                r"p:kprobes/p_sys_openat_0 sys_openat path=\+0\(\+8\(\$arg1\)\):ustring$", made, "the list")
    check_match(r"^events/mine:\nenable +filter +open +r_sys_getppid_0\n\nevents/mine/open:\nenable +filter +format +hist +id +trigger\n\nevents/other:\nbytes +enable +filter\n"
                r"events/mine/open/\s+events/mine/r_sys_getppid_0/$", made, "the folders")
    check_match(r'^\S+/mine/open/format:print fmt: "\(%llx\) path=\\"%s\\" comm=\\"%s\\" say=\\"%s\\" no=\\"%s\\"", REC->__probe_ip, __get_str\(path\), REC->comm, ', made, "a format")
    check_match(r'^\S+/r_sys_getppid_0/format:print fmt: "\(%llx <- %llx\) arg1=%#llx", REC->__probe_func, REC->__probe_ret_ip, REC->arg1\n\S+/bytes/format:print fmt: "\(%llx\) b=%-s arg2=%-s c=\'%lld\' ', made, "others")
    rows = [what for name, what in ROW.findall(printed) if name == "head"]
    place = r" \(\w+\+0x0/0x\w+\) "
    for want in ("open:" + place + r'path="/etc/motd" comm="head" say="hello" no=\(fault\)', "bytes:" + place + r"b=\{47,101,116,99\} arg2=\{0x2f,0x65\} c='/' "
                 r"cs=\{'e','t','c'\} t=\{0x652f\} s=\S+", "p_file_open_at_0:" + place + r"user=\(fault\) same=\(fault\)", "p_sys_openat_0:" + place + 'path="/etc/motd"'):
        check(any(re.fullmatch(want, w) for w in rows), f"{want}: not among {rows}")
    check(printed.endswith("\n") and "mine:open" not in printed, "set_event is empty")
    check_match(r"^ls: events/mine: No such.*\nls: events/mine: No such.*\nls: events/other: No such.*\np:kprobes/p_file.*\np:kprobes/p_sys.*\nevents/sched/mine\n"
                r"ls: events/sched/m\*: No such.*\nevents/sched/sched_process_exit\nagain +enable +filter\n$", gone, "removals")


MANY = (r"path=+0($arg2):string a=\1 b=\2:u8 c=\3 d=$comm e=\5:s16 f=+0($arg2):string g=+0($arg2):x8[2] h=+0(\1):string i=+0($arg2):char j=$arg2:u64 k=\11 l=\12:x16")


@portable_test("more arguments than an entry has room for: from the sixth on they are one text, in events of kprobes at places and returns, and at events")
def many_arguments():
    long = " ".join(f"+{n:055}(%sp)" for n in range(20))
    out, listed = ftrace(f"echo 'p:many file_open_at {MANY}' > kprobe_events\necho 'p:several file_open_at {MANY}' >> kprobe_events\necho 'p:several ramfs_read {MANY}' >> kprobe_events\n"
                  f"echo 'r:back file_open_at {' '.join(chr(92) + str(n) for n in range(32))}' >> kprobe_events\n"
                  "echo 'e:ev sched.sched_process_exec $filename \\2 \\3 \\4 \\5 \\6:u8 $filename $comm' >> dynamic_events\ncat error_log events/kprobes/many/format events/kprobes/back/format\n"
                  "echo 'common_args ~ \"*f=?/etc/motd? g*\"' > events/kprobes/many/filter\nfor e in kprobes eprobes; do echo 1 > events/$e/enable; done\n"
                  "load fork -n 1 >/dev/null\nhead -n 1 /etc/motd >/dev/null\necho 0 > events/enable\ncat trace\n"
                  f"echo =====\necho 'p:long file_open_at {long}' >> kprobe_events\ngrep /long kprobe_events | sed s/^p/-/ >> kprobe_events\ngrep -c /long kprobe_events\ntrue\n", smp=1)
    check_eq(listed, "0\n", "a probe with a long definition that is removed as it is listed")
    for want in ("\tfield:__data_loc char[] common_args;\toffset:", 'print fmt: "(%llx) path=\\"%s\\" a=%#llx b=%llu c=%#llx d=\\"%s\\" %-s", REC->__probe_ip, ', "__get_str(common_args)\n"):
        check(want in out, f"{want}: not in {out}")
    rows = ROW.findall(out)
    value = r'path="/etc/motd" a=0x1 b=2 c=0x3 d="head" e=5 f="/etc/motd" g=\{0x2f,0x65\} h=\(fault\) i=\'/\' j=\d+ k=0xb l=0xc'
    kinds = {"many": rf"many: \(file_open_at\+0x0/0x\w+\) {value}", "several": rf"several: \(\?\) {value}",
             "back": r"back: \( <- file_open_at\) arg1=0x0 " + " ".join(f"arg{n + 1}={n:#x}" for n in range(1, 21)) + " .*",
             "ev": r'ev: \(sched.sched_process_exec\) arg1="/bin/load" arg2=0x2 arg3=0x3 arg4=0x4 arg5=0x5 arg6=6 arg7="/bin/load" arg8="load"'}
    for name, pattern in kinds.items():
        check(any(re.fullmatch(pattern, what) for _, what in rows), f"{pattern}: not among {[w for _, w in rows if w.startswith(name)]}")
    check(all('d="head"' in what for _, what in rows if what.startswith("many: ")), "a filter of the text")


if __name__ == "__main__":
    main()
