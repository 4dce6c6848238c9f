#!/usr/bin/python3
"""test_uprobe.py - probes of programs: what they record, and that the programs do what they do without them."""
import re
import subprocess
import sys

from harness import ARCH, BUILD, boot, check, check_eq, check_match, cpus, dynamic_program, main, portable_test, test, times

sys.path.insert(0, str(BUILD.parent.parent / "tests" / "unit"))
import insn_test as insns  # noqa: E402

X86 = ARCH == "x86_64"
PROGRAM = BUILD / "linux_test"
FILE = ["--file", f"/bin/linux_test={PROGRAM}"]
CD = "cd /sys/kernel/tracing\n"
BASE = 0x400000
SITES = 480


def symbols(program=PROGRAM):
    """{function: (address, size)}."""
    nm = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    return {name: (int(at, 16), int(size, 16)) for at, size, name in re.findall(r"^(\w+) (\w+) [tTW] (\w+)$", nm, re.M)}


def listing(name):
    """What objdump says of a function."""
    at, size = symbols()[name]
    return subprocess.run([insns.TOOLS[ARCH] + "objdump", "-d", "-w", "--no-show-raw-insn", f"--start-address={at}", f"--stop-address={at + size}",
                           PROGRAM], capture_output=True, text=True, check=True).stdout


def disassembly(*names):
    """{function: [offset in the file]} of the instructions of functions."""
    found = {}
    for name in names:
        out = listing(name)
        found[name] = [int(m, 16) - BASE for m in re.findall(r"^ +([0-9a-f]+):\t(?!.*\.(?:inst|word))", out, re.M)]
        check(found[name], f"no function {name}")
    return found


def counts(text):
    """{probe: hits} of uprobe_profile."""
    return {name: int(n) for name, n in re.findall(r"^  /bin/linux_test (\S+) +(\d+)\r?$", text, re.M)}


FUNCTIONS = ["probed_leaf", "probed_alone", "probed_tail", "probed_sum", "probed_recurse", "probed_jump", "probed_fault", "probed_handler"]


def everywhere(smp):
    """Probes at every instruction and at every return of the functions, during the whole run."""
    code = disassembly(*FUNCTIONS)
    lines = [f"p:{name}_{i} /bin/linux_test:{at:#x}" for name, body in code.items() for i, at in enumerate(body)]
    lines += [f"r:{name}_r /bin/linux_test:{body[0]:#x} $retval" for name, body in code.items()]
    check(len(lines) < SITES, f"{len(lines)} probes")
    check_match(r"\t(jmp|b)\s+\w+ <probed_leaf>\s*$", listing("probed_tail"), "a jump to another function as the last instruction")
    check_match(r"\t(call|bl)\s+\w+ <probed_recurse>$", listing("probed_recurse"), "a call of itself")
    script = CD + "".join(f"echo '{line}' >> uprobe_events\n" for line in lines)
    script += "echo 1 > events/uprobes/enable\nlinux_test probed 30\necho 0 > events/uprobes/enable\ncat uprobe_profile error_log\necho > uprobe_events\n"
    run = boot(script, smp=smp, options=FILE).expect()
    m = check_match(r"^probed: good leaf (\d+) handler (\d+) alone (\d+) tail (\d+) sum (\d+)\r?$", run.out, "the program")
    hits = counts(run.out)
    refused = set(re.findall(r"^  Command: p:(\w+) ", run.out, re.M))
    check(len(refused) <= (0 if X86 else 60), f"refused: {refused}")
    for name, n in zip(("leaf", "handler", "alone", "tail", "sum"), m.groups()):
        check_eq(hits.get(f"probed_{name}_0"), int(n), f"calls of probed_{name}")
        check_eq(hits.get(f"probed_{name}_r"), int(n), f"returns of probed_{name}")


for _smp in cpus("every instruction of functions is probed"):
    test(f"every instruction of functions is probed, and their returns, with {_smp} CPUs: they do what they do; each call counts once")(
        lambda smp=_smp: everywhere(smp))


@test("a debugger and probes leave each other alone: each instruction is probed, and stepped; breakpoints stand beside the probes")
def debugged():
    code = disassembly("ptraced_steps", "ptraced_target", "ptraced_calls", "ptraced_sum")
    lines = [f"p:{name}_{i} /bin/linux_test:{at:#x}" for name, body in code.items() for i, at in enumerate(body)]
    script = CD + "".join(f"echo '{line}' >> uprobe_events\n" for line in lines)
    script += "echo 1 > events/uprobes/enable\nlinux_test ptrace\necho 0 > events/uprobes/enable\ncat uprobe_profile error_log\necho > uprobe_events\nlinux_test ptrace\n"
    out = boot(script, smp=4, options=FILE).expect().out
    numbers = re.findall(r"^ok (\d+) - ", out, re.M)
    check(len(numbers) >= 22 and numbers == 2 * numbers[:len(numbers) // 2], f"tests that pass, the same in both runs: {out}")
    hits, refused = counts(out), set(re.findall(r"^  Command: p:(\w+) ", out, re.M))
    check(not refused, f"refused: {refused}")
    check_eq([hits.get(f"{name}_0") for name in ("ptraced_steps", "ptraced_target", "ptraced_calls")], [1, 1, 1], "calls")


ROW = re.compile(r"^ *(\S+)-\d+ +\[\d{3}\] X\.\.\.\. +[\d.]+: (.*?)\r?$", re.M)


def ftrace(script, smp=2):
    return boot(CD + script, smp=smp, options=FILE).expect().out.replace("\r", "").split("=====\n")


@test("uprobe_events: what is fetched, listed, printed, counted, filtered and added up; dynamic_events; removal; D sees the same, with stacks")
def language():
    (at, *_), (leaf, *_), (far, *_) = disassembly("probed_sum", "probed_leaf", "ptraced_sum").values()
    byte, kernel = PROGRAM.read_bytes()[far], symbols(BUILD / "kestrel")["sys_read"][0]
    made, ran, filtered, hist, gone, d = ftrace(
        f"echo 'p:sum /bin/linux_test:{at:#x} n=$arg1:u64 text=+0($arg2):string same=+0($arg2):ustring c=+1($arg2):char who=$comm elf=@+1:char'"
        f" > uprobe_events\necho 'r:back /bin/linux_test:{at:#x} ret=$retval:x64 sp=$stack' >> uprobe_events\n"
        f"echo 'p /bin/linux_test:{leaf} from=$stack0 far=@+{far:#x}:x8 none=+0(\\1):string bad=+0(\\2) kernel=@{kernel:#x}' >> dynamic_events\necho 'p:kernel sys_read' >> kprobe_events\n"
        "cat uprobe_events\necho ==\ncat dynamic_events\necho ==\ncat kprobe_events\nls events/uprobes\ngrep field:.*n\\; events/uprobes/sum/format\n"
        "echo > kprobe_events\ncat uprobe_events | wc -l\necho =====\n"
        "echo 1 > events/uprobes/enable\nlinux_test probed 1 | cat\ncat trace uprobe_profile\necho '-:sum' >> uprobe_events\necho 0 > events/uprobes/enable\n"
        "echo =====\necho > trace\necho 'n == 41' > events/uprobes/sum/filter\necho 1 > events/uprobes/sum/enable\nlinux_test probed 1 | wc -l\n"
        "grep -c sum: trace\necho 'n == 40 && who ~ \"linux*\"' > events/uprobes/sum/filter\n"
        "linux_test probed 1 >/dev/null\ncat trace\necho 0 > events/uprobes/sum/enable\necho 0 > events/uprobes/sum/filter\necho =====\n"
        "echo 'hist:keys=n:sort=n' > events/uprobes/sum/trigger\nlinux_test probed 1\ncat events/uprobes/sum/hist\n"
        "echo '!hist:keys=n:sort=n' > events/uprobes/sum/trigger\necho =====\n"
        "echo '-:uprobes/back' >> dynamic_events\nls events/uprobes\necho '-:nosuch' >> uprobe_events\necho =====\n"
        "dtrace -qn 'uprobe:linux_test::sum { @[ustack(2)] = count(); @n[arg0] = count(); }' -c 'linux_test probed 1'\n"
        "cat trace | wc -l\necho > uprobe_events\nls events/uprobes\nsu 1000 cat uprobe_events\ntrue\n")
    lists = (f"p:uprobes/sum /bin/linux_test:0x{at:016x} n=$arg1:u64 text=+0($arg2):string same=+0($arg2):ustring c=+1($arg2):char who=$comm elf=@+1:char\n"
             f"r:uprobes/back /bin/linux_test:0x{at:016x} ret=$retval:x64 sp=$stack\n"
             f"p:uprobes/p_linux_{leaf:#x} /bin/linux_test:0x{leaf:016x} from=$stack0 far=@+{far:#x}:x8 none=+0(\\1):string bad=+0(\\2) kernel=@{kernel:#x}\n")
    check_eq(made.split("==\n")[:2], [lists, "p:kprobes/kernel sys_read\n" + lists], "uprobe_events and dynamic_events")
    check_match(r"^p:kprobes/kernel sys_read\nback +filter +sum *\nenable +p_linux_\w+ *\n\tfield:u64 n;.*\n3$", made, "the directory, the format, and a clear of the others")
    rows = [what for name, what in ROW.findall(ran) if name == "linux_test"]
    ip = at + BASE
    sums = [re.match(rf"sum: \((?:0x{ip:x}|\?)\) n=(\d+) text=\"abc\" same=\"abc\" c='b' who=\"linux_test\" elf='E'$", w) for w in rows if w.startswith("sum:")]
    check(sums and all(sums), f"entries: {[w for w in rows if w.startswith('sum:')][:3]}")
    backs = [w for w in rows if w.startswith("back:")]
    check(all(re.match(rf"back: \(0x\w+ <- 0x{ip:x}\) ret=0x\w+ sp=0x7\w+$", w) for w in backs), f"returns: {backs[:3]}")
    leafs = [w for w in rows if w.startswith("p_linux_")]
    check(leafs and all(re.match(rf"p_linux_{leaf:#x}: \(0x{leaf + BASE:x}\) from=0x\w+ far=0x{byte:x} none=\(fault\) bad=0x0 kernel=0x0$", w) for w in leafs), f"{leafs[:3]}")
    called = check_match(r"^probed: good leaf (\d+) .* sum (\d+)$", ran, "the program")
    hits = counts(ran)
    check_eq((hits["sum"], hits["back"]), (int(called[2]),) * 2, "hits, and calls")
    check_match(r"^sh: .*Device or resource busy$", ran, "the removal of a probe that is enabled")
    got = [what for _, what in ROW.findall(filtered)]
    check(got and all(" n=40 " in w for w in got) and re.match("1\\n0\\n", filtered), f"with filters:\n{filtered}")
    table = {int(n): int(c) for n, c in re.findall(r"^\{ n: +(\d+) \} hitcount: +(\d+)", hist, re.M)}
    total = int(check_match(r"^probed: good .* sum (\d+)$", hist, "the program")[1])
    check_eq((sum(table.values()), 40 in table), (total, True), f"hist: {table}")
    check_match(r"^enable +filter +p_linux_\w+ +sum\n(?:.*No such file or directory)$", gone, "removals")
    total = int(check_match(r"^probed: good .* sum (\d+)$", d, "the program")[1])
    frames = re.findall(r"^ +linux_test`probed_sum\n(?: +(?:linux_test`|0x).*\n)* +(\d+)$", d, re.M)
    check_eq(sum(map(int, frames)), total, f"stacks that begin with the function:\n{d}")
    check_eq(sum(int(n) for n in re.findall(r"^ +(?:6|40) +(\d+)$", d, re.M)), total, "arg0")
    check_match(r"^enable +filter\n.*(?:Permission denied|not permitted)$", d, "the end: no event, and another user")


@portable_test("uprobe_events: what is wrong is refused in Linux's words with a mark at the place, and nothing is made")
def refused():
    code = disassembly("probed_leaf")["probed_leaf"]
    other = {"x86_64": "syscall", "aarch64": "svc"}[ARCH]
    dump = subprocess.run([insns.TOOLS[ARCH] + "objdump", "-d", "-w", PROGRAM], capture_output=True, text=True, check=True).stdout
    call = int(re.search(rf"^ +([0-9a-f]+):\t.*\t{other}\b", dump, re.M)[1], 16) - BASE
    good = f"/bin/linux_test:{code[0]:#x}"
    DIFFERENT = "Argument type or name is different from existing probe"
    bad = {
        "p:x /bin/nosuch:0x1000": (4, "Failed to find the given file"), "p:x /bin/ls/x:0x1000": (4, "Failed to find the given file"),
        "p:x /bin:0x1000": (4, "Not a regular file"),
        "p:x /dev/null:0x10": (4, "Not a regular file"), "p:x /bin/linux_test:zz": (20, "Invalid uprobe offset"),
        "p:x /bin/linux_test:0xffffffff": (20, "Invalid uprobe offset"), "p:x /bin/linux_test": (19, "Invalid uprobe offset"),
        f"p:x /bin/linux_test:{call:#x}": (4, "Failed to register probe event"),
        f"p:x {good} %zz": (5 + len(good), "Invalid register name"), f"p:x {good} a=$retval": (7 + len(good), "$retval is not available on probe"),
        f"p:x {good} a=@main": (7 + len(good), "Symbol is not available with uprobe"), f"p:x {good} a=%sp:u7": (11 + len(good), "Unknown type is specified"),
        f"p:x {good} a=%sp:string": (11 + len(good), "String accepts only memory argument"),
        f"p:x {good} a=+8(%sp": (13 + len(good), "Dereference brace is not closed"), f"p:x {good} a=+8%sp": (7 + len(good), "Dereference needs a brace"),
        f"p:x {good} a=+z(%sp)": (7 + len(good), "Invalid dereference offset"), f"p:x {good} a=%sp:b9@0/8": (11 + len(good), "Invalid bitfield"),
        f"p:x {good} a=$stacks": (7 + len(good), "Invalid $-valiable specified"),
        f"p:x {good} a=$stack99999999999999999999": (7 + len(good), "Invalid $-valiable specified"), f"p:x {good} a=$arg99": (7 + len(good), "Invalid argument number"),
        f"p:x {good} a=": (7 + len(good), "No argument expression"), f"p: {good}": (2, "Event name is not specified"),
        f"p:/x {good}": (2, "Group name is not specified"), f"p:{'x' * 64} {good}": (2, "Event name is too long"),
        f"p:{'x' * 64}/x {good}": (2, "Group name is too long"), f"p:g/ax.b {good}": (4, "Event name must follow the same rules as C identifiers"),
        f"p:x {good}(zz)": (5 + len(good), "Invalid reference counter offset"), f"p:x {good}(8": (6 + len(good), "Reference counter brace is not closed"),
        f"p:x {good}(8)%return": (7 + len(good), "Reference counter has wrong suffix"), f"p:x {good}%ret": (4 + len(good), "Invalid probed address suffix"),
        f"p:x {good} a=@+zz": (7 + len(good), "Invalid file offset value"), f"p:x {good} a=%sp a=%sp": (11 + len(good), "This argument name is already used"),
        f"r:twice {good}": (0, "Probe type is different from existing probe"), f"p:twice {good} %sp": (9 + len(good), DIFFERENT), f"p:five {good}": (8 + len(good), DIFFERENT),
        f"p:five {good} b=\\5": (8 + len(good), DIFFERENT), f"p:five {good} a=\\5:u8": (8 + len(good), DIFFERENT),
        f"p:x-y {good}": (2, "Event name must follow the same rules as C identifiers"),
        f"p:x {good} {' '.join(['%sp'] * 33)}": (5 + len(good) + 4 * 32, "Too many arguments are specified"),
        f"p:x {good} {'a' * 40}=%sp": (5 + len(good), "Argument name is too long"),
        f"p:x {good} a={'+1(' * 14}%sp{')' * 14}": (7 + len(good), "Dereference is too much nested"),
        f"p:twice {good}": (0, "There is already the exact same probe event"), f"p:vfs/lookup {good}": (0, "Given group/event name is already used by another event"),
    }
    script = f"echo 'p:twice {good}' > uprobe_events\necho 'p:five {good} a=\\5' >> uprobe_events\necho 'p:deep {good} a=$stack5000' >> uprobe_events\n" + "".join(f"echo > error_log\necho '{p}' >> uprobe_events\ncat error_log\n" for p in bad)
    out, rest = ftrace(script + "echo =====\ncat uprobe_events\nls events/uprobes\n", smp=1)
    blocks = re.findall(r"^\[.*\] trace_uprobe: error: (.*)\n  Command: (.*)\n( *)\^$", out, re.M)
    check_eq({c: (len(mark) - 11, why) for why, c, mark in blocks}, bad, "error_log")
    kinds = ("Invalid argument|File exists", "No such file or directory", "Not a directory")
    counted = [len(re.findall(rf"^sh: .*(?:{kind})$", out, re.M)) for kind in kinds]
    check_eq(counted, [len(bad) - 2, 1, 1], f"errors:\n{out}")
    check_match(r"^p:uprobes/twice .*\np:uprobes/five .*\np:uprobes/deep .*\ndeep +enable +filter +five +twice\n$", rest, "what is made")


@portable_test("two places of a program, or two functions that return, are one event: filter, hist, counts and removal are of both, or of one place")
def several():
    (at, *_), (leaf, *_) = disassembly("probed_sum", "probed_leaf").values()
    places = [f"/bin/linux_test:0x{n:016x}" for n in (at, leaf)]
    made, both, filtered, hist, one, gone = ftrace(
        "".join(f"echo 'p:both {p} n=$arg1:u64' >> uprobe_events\necho 'r:own/ends {p} $retval:u8' >> uprobe_events\n" for p in places) +
        "cat uprobe_events\nls events/uprobes events/own\necho =====\n"
        "echo 1 > events/uprobes/both/enable\necho 1 > events/own/enable\nlinux_test probed 1\ncat trace uprobe_profile\n"
        "echo '-:both' >> uprobe_events\necho =====\necho 0 > events/own/enable\necho > trace\necho 'n == 40' > events/uprobes/both/filter\nlinux_test probed 1\ncat trace\n"
        "echo 0 > events/uprobes/both/filter\necho =====\necho 'hist:keys=common_pid' > events/uprobes/both/trigger\nlinux_test probed 1\n"
        "cat events/uprobes/both/hist\necho '!hist:keys=common_pid' > events/uprobes/both/trigger\necho =====\n"
        f"echo > trace\necho '-:both {places[1]}' >> uprobe_events\nlinux_test probed 1\ncat trace uprobe_events\necho =====\n"
        "echo 0 > events/uprobes/both/enable\necho '-:both' >> uprobe_events\necho '!r:own/' >> dynamic_events\ncat uprobe_events\nls events/uprobes\nls -d events/own\ntrue\n")
    check_eq(made, "".join(f"p:uprobes/both {p} n=$arg1:u64\nr:own/ends {p} arg1=$retval:u8\n" for p in places) +
             "events/own:\nenable  ends    filter\n\nevents/uprobes:\nboth    enable  filter\n", "what is made")
    program = r"^probed: good leaf (\d+) .* sum (\d+)$"
    called, rows = check_match(program, both, "the program"), [what for _, what in ROW.findall(both)]
    leafs, sums = int(called[1]), int(called[2])
    profile = re.findall(r"^  /bin/linux_test (\w+) +(\d+)$", both, re.M)
    check_eq(profile, [("both", str(sums)), ("ends", str(sums)), ("both", str(leafs)), ("ends", str(leafs))], "uprobe_profile")
    for place, n in ((at, sums), (leaf, leafs)):
        check_eq(sum(w.startswith(f"both: (0x{place + BASE:x}) n=") for w in rows), n, f"entries at {place:#x}")
        check_eq(sum(re.match(rf"ends: \(0x\w+ <- 0x{place + BASE:x}\) arg1=\d+$", w) is not None for w in rows), n, f"returns at {place:#x}")
    check_match(r"^sh: .*Device or resource busy$", both, "the removal of an event that is enabled")
    got = {what for _, what in ROW.findall(filtered)}
    check(got and all(w.endswith(" n=40") for w in got), f"with a filter: {got}")
    called = check_match(program, hist, "the program")
    check_eq(sum(int(n) for n in re.findall(r"hitcount: +(\d+)$", hist, re.M)), int(called[1]) + int(called[2]), "hist")
    called, rows = check_match(program, one, "the program"), [what for _, what in ROW.findall(one)]
    check_eq((len(rows), {w.split(") ")[0] for w in rows}), (int(called[2]), {f"both: (0x{at + BASE:x}"}), "one place, the event enabled all the time")
    check_eq(re.findall(r"^p:.*$", one, re.M), [f"p:uprobes/both {places[0]} n=$arg1:u64"], "what stays")
    check_match(r"^enable +filter\nls: events/own: No such file or directory\n$", gone, "the end")


@portable_test("D's provider pid: entries, returns and instructions of one process only, by -c and by -p; what cannot be is refused; nothing stays")
def pid_provider():
    code = disassembly("probed_leaf")["probed_leaf"]
    inside, third = next(n for n in range(1, 99) if code[0] + n not in code), code[2] - code[0]
    refusals = {"pid99999::main:entry": "D_PROC_GRAB.*No such process", "pid$target::nosuch:entry": "D_PROC_FUNC.*no function of /bin/linux_test matches",
                "pid$target:libc:main:entry": "D_PDESC_ZERO.*neither /bin/linux_test nor a library of it is called libc",
                "pid$target:libc:-:800": "D_PROC_LIB.*neither /bin/linux_test nor a library of it is called libc",
                "pid$target::main:fffff": r"D_PROC_OFF.*main has \d+ bytes",
                f"pid$target::probed_leaf:{inside:x}": r"D_PROC_CREATEFAIL.*(no instruction begins there|no instruction is at that offset)",
                "pid$target:a.out:-:zz": "D_PROC_NAME", "pid$target:a.out:-:ffffffff": "D_PROC_NAME",
                "pid$target:::": "D_PROC_CREATEFAIL.*all 2560 numbers"}
    counted, listed, wrong, by_p, rest = boot(
        "linux_test probed 300 > /tmp/other &\n"
        "dtrace -qn 'pid$target::probed_leaf:entry { @[\"leaf\"] = count(); } pid$target:linux_test:probed_sum:entry { @[\"sum\"] = count(); self->n = arg0; "
        "@[arg0 == 40 ? \"abc\" : \"other\"] = count(); } "
        f"pid$target:a.out:probed_leaf:{third:x} {{ @[\"third\"] = count(); }} pid$target::probed_le*:entry {{ @[\"once\"] = count(); }} pid$target::probed_sum:return /self->n == 40 && arg1 != 0/ {{ @[\"back\"] = count(); }} "
        "pid$target::probed_ten:entry { @t[arg5, arg6, arg7, arg8, arg9] = count(); } "
        "pid$target::probed_recurse:return { @[\"rec\"] = count(); } pid$target::probed_shared:entry { @[\"shared\"] = count(); } "
        "pid$target::probed_tail:entry, pid$target::probed_alone:entry { @s[ustack(2)] = count(); }' -c 'linux_test probed 1'\nwait\ncat /tmp/other\necho =====\n"
        "dtrace -ln 'pid$target::probed_l*:' -c 'linux_test'\necho =====\n"
        + "".join(f"dtrace -n '{p}' -c 'linux_test probed 1' 2>&1\n" for p in refusals) +
        "echo =====\ncp /bin/linux_test '/tmp/a program'\n'/tmp/a program' probed > /dev/null & p=$!\nuntil grep -q 'a program' /proc/$p/cmdline; do :; done\n"
        "dtrace -qn 'pid$target::probed_leaf:entry { @ = count(); } pid$target::probed_leaf:entry /++n > 200/ { exit(0); }' -p $p\n"
        "echo \"dtrace -n 'pid$p::probed_leaf:entry { exit(0); }'\" > /tmp/second\ndtrace -qn \"pid$p::probed_leaf:entry /0/ { }\" -c 'sh /tmp/second' 2>&1\n"
        "kill -9 $p; wait $p\necho =====\nsysctl -n debug.kprobe.list\ncat /sys/kernel/tracing/uprobe_events\nls /sys/kernel/tracing/events | grep pid\n"
        "ktr probes -c | grep pid\nls /sys/kernel/tracing/events/uprobes\n", smp=2, options=FILE).expect().out.replace("\r", "").split("=====\n")
    m = check_match(r"^probed: good leaf (\d+) handler \d+ alone 4 tail \d+ sum (\d+)$", counted.split("\n\n")[0], "the program")
    check_match(r"^probed: good leaf \d{4}", counted, "another process of the same program")
    found = dict(re.findall(r"^  (leaf|once|sum|abc|third|back|rec|shared) +(\d+)$", counted, re.M))
    # Its child is another process: one leaf in a child by vfork, and a sum with its seven leafs in one by fork.
    leaf, sums = int(m[1]) - 8, int(m[2]) - 1
    check_eq((found.pop("rec") != "0", found), (True, {"leaf": str(leaf), "once": str(leaf), "shared": "2", "third": str(leaf), **{n: str(sums) for n in ("sum", "abc", "back")}}), counted)
    check_match(r"^ *\d+ +pid\d+ +linux_test +probed_leaf entry\n *\d+ +pid\d+ +linux_test +probed_leaf return\n", listed, "the list")
    check_match(r"^ +6 +7 +8 +9 +10 +1$", counted, "arguments on the stack")
    check_match(r"^ +linux_test`probed_alone\n +linux_test`(?:maps|probed_run)\+0x", counted, "the caller of a function that has no frame yet")
    check_match(r"^ +linux_test`probed_tail\n +linux_test`probed_sum\+0x", counted, "the same")
    for probe, why in refusals.items():
        name = re.escape(probe).replace("\\$target", "(?:\\$target|\\d+)")
        check_match(rf"^dtrace: invalid probe specifier {name}: .*{why}", wrong, probe)
    check(int(by_p.split()[0]) > 100, f"calls of a process that runs, whose path has a blank: {by_p}")
    check_match(r"matched 1 probe$", by_p, "who traces the function of a process that another one traces, too")
    check_eq(rest, "name state hits misses faults definition\nenable  filter\n", "what is left")


@portable_test("D's provider pid in libraries: by short names, by -c and by -p, in one that is mapped later; of two names the better one; names of addresses there")
def pid_libraries():
    calls, names, later, wrong, both, many, named = boot(
        "dtrace -qn 'pid$target:libc:write:entry { @[probemod, probefunc] = count(); } syscall::write:entry /pid == $target/ { @[\"syscall\", probefunc] = count(); } "
        "pid$target::__write:entry { @[\"again\", probefunc] = count(); }' -c 'lt probed 1'\necho =====\n"
        "lt probed > /dev/null & p=$!\nuntil grep -q libc /proc/$p/maps; do :; done\n"
        "dtrace -qn 'pid$target:l*:rand:entry { @[probemod, ufunc(uregs[R_PC]), umod(uregs[R_PC])] = count(); exit(0); }' -p $p\necho =====\n"
        "grep -c libgcc_s /proc/$p/maps\ndtrace -ln 'pid$target:libgcc_s:_Unwind_Backtrac?:entry' -p $p\nkill $p\n"
        "dtrace -ln 'pid$target:libgcc_s.so:_Unwind_Backtrace:' -c 'lt x'\necho =====\n"
        "dtrace -n 'pid$target:libnosuch:malloc:entry' -c 'lt x' 2>&1\ndtrace -n 'pid$target:libc:nosuch:entry' -c 'lt x' 2>&1\necho =====\n"
        "dtrace -qn 'pid$target:a.out:__write:entry, pid$target:a.out:write:entry { @[probefunc] = count(); } syscall::write:entry /pid == $target/ { @[\"syscall\"] = count(); }' "
        "-c 'linux_test probed 1'\necho =====\ncd /bin; dtrace -ln 'pid$target:a.out:[a-k]*:' -c ./linux_test | grep -c 'entry$'\n"
        "dtrace -qn 'pid$target:a.out:[a-k]*:, pid$target:a.out:probed_*: { @[probefunc] = count(); } END { trunc(@, 40); }' -c 'linux_test probed 1' | grep -o 'probed_ten *[0-9]*$'\necho =====\n"
        "list() { dtrace -ln \"$1\" -c \"$2\" 2>&1 | grep -v PROVIDER; }\n"
        "list 'pid$target:libc:free:entry, pid$target:libc:raise:entry, pid$target:libc:lseek*:entry' 'lt x'\n"
        "cp /lib/libm.so.6 /tmp/libc-m.so; export LD_PRELOAD=/tmp/libc-m.so\n"
        "list 'pid$target:libc:cbrt:entry' 'lt x'\nlist 'pid$target:libc:frexp:entry' 'lt x'\n"
        "dtrace -n 'pid$target::nosuch:entry' -c 'lt x' 2>&1\nunset LD_PRELOAD\n"
        "ln -s /bin/linux_test /tmp/called; list 'pid$target:called:probed_leaf:entry' '/tmp/called x'\n"
        "cd /bin; PATH=.:/bin; list 'pid$target::probed_leaf:entry' 'linux_test x'\n", smp=2, options=dynamic_program("/bin/lt") + FILE).expect().out.replace("\r", "").split("=====\n")
    writes = check_match(r"^  syscall +write +(\d+)$", calls, "system calls")[1]
    check_eq(re.findall(r"^  (libc\S+|again) +(\w+) +(\d+)$", calls, re.M), [("again", "write", writes), ("libc.so.6", "write", writes)], "calls in a library")
    check_match(r"^  libc.so.6 +libc.so.6`rand +libc.so.6 +\d+$", names, "a function of a library, and its name")
    check_match(r"^0\n.*\n *\d+ +pid\d+ +libgcc_s.so.1 +_Unwind_Backtrace entry\n.*\n *\d+ +pid\d+ +libgcc_s.so.1 +_Unwind_Backtrace (entry|return)\n", later, "a library that is not mapped yet")
    check_match(r"D_PDESC_ZERO.*neither /bin/lt nor a library of it is called libnosuch\n.*D_PROC_FUNC.*no function of /lib/libc.so.6 matches", wrong, "what is not there")
    writes = check_match(r"^  syscall +(\d+)$", both, "system calls")[1]
    check_eq(re.findall(r"^  write +(\d+)$", both, re.M), [str(2 * int(writes))], "two names of one function, which is called by the better one, and each of which runs the clause")
    wanted = [("libc.so.6", name) for name in ("free", "raise", "lseek", "frexp")] + [("libc-m.so", name) for name in ("cbrt", "frexp")]
    check_eq(sorted(re.findall(r"^ *\d+ +pid\d+ +(\S+) +(\w+) entry$", named, re.M)),
             sorted(wanted + [("called", "probed_leaf"), ("linux_test", "probed_leaf")]), f"names:\n{named}")
    check_match(r"D_PROC_FUNC.*no function of /bin/lt or its libraries matches", named, "several files were looked at")
    check(600 < int(many.split()[0]) < 1280 and re.search(r"\nprobed_ten +2\n", many) is not None, f"entries and returns of hundreds of functions: {many}")


LIBC = ["malloc", "free", "write", "read", "__clone", "__clone3", "_Fork", "__libc_sigaction", "___pthread_mutex_lock", "___pthread_mutex_unlock", "memcpy",
        "__restore_rt", "__memset_avx2_unaligned_erms", "__strlen_avx2", "__memmove_avx_unaligned_erms", "__memcpy_generic", "__strlen_asimd",
        "__memset_generic", "start_thread", "__futex_abstimed_wait_common"]


@portable_test("the C library's busiest functions have probes at their first instructions and at their returns: what linux_test checks of calls, signals, files, pipes and threads holds")
def libc():
    names = [name for name in LIBC if name in symbols()]
    check(len(names) > 10, f"functions: {names}")
    lines = []
    for n, (name, body) in enumerate(disassembly(*names).items()):
        few = body[:times(3, 10)]
        lines += [f"p:f{n}_{i} /bin/linux_test:{at:#x}" for i, at in enumerate(few)]
        lines += [f"r:f{n}_r /bin/linux_test:{body[0]:#x}"] if name not in ("__restore_rt", "__clone", "__clone3", "start_thread") else []
    run = boot(CD + "".join(f"echo '{line}' >> uprobe_events 2>/dev/null\n" for line in lines) + "echo 1 > events/uprobes/enable\nlinux_test brief calls signals files pipes threads\n"
               "echo 0 > events/uprobes/enable\ncat uprobe_profile\necho > uprobe_events\n", smp=times(2, 4), options=FILE).expect()
    check_eq(re.findall(r"^not ok .*", run.out, re.M), [], "linux_test")
    check_match(r"^1\.\.\d\d+\r?$", run.out, "linux_test's end")
    hits = counts(run.out)
    check(len(hits) > times(40, 90) and sum(n > 0 for n in hits.values()) > times(30, 60), f"{len(hits)} probes, of which {sum(n > 0 for n in hits.values())} fired")


@portable_test("probes come and go while threads run through them, are killed in them, and programs begin; every page comes back")
def storm():
    code = disassembly("probed_leaf", "probed_sum", "probed_recurse", "probed_handler")
    lines = [f"p:{name}_{i} /bin/linux_test:{at:#x}" for name, body in code.items() for i, at in enumerate(body)]
    lines += [f"r:{name}_r /bin/linux_test:{body[0]:#x} $retval" for name, body in code.items()]
    join, leave = (f"/bin/linux_test:0x{code['probed_sum'][0]:016x}", f"/bin/linux_test:0x{code['probed_recurse'][0]:016x}")
    lines.append(f"r:joined /bin/linux_test:{code['probed_leaf'][0]:#x} $retval")
    turn = ("echo 1 > events/uprobes/joined/enable\n" + "".join(f"echo 'r:joined {at} $retval' >> uprobe_events\n" for at in (join, leave)) +
            "".join(f"echo '-:joined {at}' >> uprobe_events\n" for at in (join, leave)) +
            "echo 1 > events/uprobes/enable\necho 0 > events/uprobes/enable\n"
            "echo 1 > events/uprobes/probed_leaf_r/enable\necho 1 > events/uprobes/probed_leaf_3/enable\necho 0 > events/uprobes/enable\n")
    script = CD + "".join(f"echo '{line}' >> uprobe_events\n" for line in lines)
    body = "linux_test probed 100 &\nlinux_test probed 100 &\nlinux_test probed > /dev/null & k=$!\n" + 4 * turn
    body += "kill -9 $k\n" + 3 * turn + "wait\n"
    # Quiet turns with a program that ends: a leak of one object for each probe takes pages in each; the first ones fill what the heap keeps.
    quiet = turn + "linux_test probed 1 > /dev/null\n"
    # The pages of who has just ended come back a moment later: the largest of many readings counts.
    free = 10 * "sysctl -n vm.pages.free\n"
    script += times(2, 3) * body + 4 * quiet + free + 6 * quiet + free + "echo > uprobe_events\ncat uprobe_events\n"
    run = boot(script, smp=4, options=FILE).expect()
    check_eq(re.findall(r"^sh: (?!.*Terminated|.*Killed).*", run.out, re.M), [], "errors")
    results = re.findall(r"^probed: (\w+) ", run.out, re.M)
    check_eq(results, ["good"] * len(results), "the programs")
    check_eq(len(results), times(4, 6), "programs that ended")
    readings = [int(n) for n in re.findall(r"^(\d+)\r?$", run.out, re.M)]
    before, after = max(readings[:10]), max(readings[10:])
    check(after >= before - 3, f"pages that are free: {before}, then {after}")


if __name__ == "__main__":
    main()
