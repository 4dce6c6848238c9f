#!/usr/bin/python3
"""test_fbt.py - every function's entry and returns can be traced: names, parameters, order, and code that is as before."""
import bisect
import re

import tracecheck as tc
from fbtcheck import ENTRY, RETURN, calls, calls_of, disassembly, symbols
from harness import (ARCH, BUILD, ROOT, boot, check, check_eq, check_match, json_lines, ktrdump, main, portable_test,
                     test)

ENTRIES = "debug.ktr.entries=262144"


@test("what a function gets and gives is in its events, by name")
def values():
    run = boot("ktr on 'fbt:proc:sys_getppid:'\nktr on 'fbt:fs:file_open:'\nload syscall -n 10 -j 1\nktr off\n", trace=True,
               sets=[ENTRIES]).expect()
    tc.no_gaps(run)
    (ppid,) = {e["text"] for e, m in tc.named(run, r"<- sys_getppid\+0x[0-9a-f]+ = \d+$")}
    check_match(r"= \d+$", ppid, "the value")
    entries, returns = (len(tc.named(run, rf"{arrow} sys_getppid\b")) for arrow in ("->", "<-"))
    check(entries == returns >= 10, f"{entries} entries and {returns} returns of getppid(), expected 10 or more of each")
    for e, m in tc.named(run, r"-> (\w+)\("):
        check_eq((e["func"], e["file"].split("/")[0]), (m.group(1), "kernel"), "function and file of an event")


@test("a jump to another function is a return that says where it goes, before the entry of that function")
def tail_calls():
    run = boot("sysctl -n debug.fbt.text\nktr on 'fbt::demo_*:,fbt::sbuf_puts:'\nsysctl debug.fbt.demo\nktr off\nsysctl -n debug.fbt.text\n"
               "ktr probes 'fbt:::return'\n", trace=True, sets=[ENTRIES]).expect()
    check_match(r"^debug.fbt.demo: 3 is odd$", run.out, "the value of the functions that jump")
    before, after = re.findall(r"^([0-9a-f]{8})$", run.out, re.M)
    check_eq(after, before, "checksum of the kernel's code")
    starts, places = disassembly()
    texts = [e["text"] for e in run.events if e["thread"] == "sysctl" and calls_of(e)]
    texts = texts[next(n for n, text in enumerate(texts) if text.startswith("-> demo_get(")):]
    steps = []
    for text in texts[:11]:
        if m := RETURN.match(text):
            at = starts[m[1]][0] + int(m[2], 16)
            jump = places[at] if ARCH == "x86_64" else places[at + 4]  # after the no-op
            steps.append(("<-", m[1], m[3]))
            check_eq(jump, ("jmp" if ARCH == "x86_64" else "b", f"{starts[m[3]][0]:x} <{m[3]}>") if m[3] else ("ret", ""), f"the code at {text}")
        else:
            steps.append(ENTRY.match(text).expand(r"\1"))
    check_eq(steps, ["demo_get", "demo_even", ("<-", "demo_even", "demo_odd"), "demo_odd", ("<-", "demo_odd", "demo_even"),
                     "demo_even", ("<-", "demo_even", "demo_odd"), "demo_odd", ("<-", "demo_odd", None),
                     ("<-", "demo_get", "sbuf_puts"), "sbuf_puts"], "what was called, and where it returned")
    # Each call ends at the jump, so that all are counted.
    rows = dict(re.findall(r"^ +(demo_\w+) +(\d+) ", boot("ktr profile 'demo_*' -- sysctl -n debug.fbt.demo\n").expect().out, re.M))
    check_eq(rows, {"demo_get": "1", "demo_even": "2", "demo_odd": "2"}, "calls that ktr profile counts")
    # Every jump from a function with probes to the beginning of another one is among the returns.
    probed = set(re.findall(r'"<- ([\w.]+)\+', run.out))
    at = sorted((addr, name) for name, addrs in starts.items() for addr in addrs)
    found = set()
    for addr, (mnemonic, operands) in places.items():
        m = re.match(r"[0-9a-f]+ <([\w.]+)>$", operands)
        start, name = at[bisect.bisect(at, (addr, "~")) - 1]
        # A function without probes may have the name of one that has: at its start is no no-op.
        has_probes = name in probed and any(places[start + n][0].startswith("nop") for n in (0, 4) if start + n in places)
        if m and mnemonic in ("jmp", "b") and has_probes and m[1] != name and ".cold" not in m[1]:
            found.add((name, m[1]))
    check_eq(found, set(re.findall(r'"<- ([\w.]+)\+%#x jumps to ([\w.]+)"', run.out)), "jumps to other functions")


@test("the offset of a return is that of a return instruction")
def offsets():
    run = boot("ktr on 'fbt:::return'\nload mix -n 2 -j 1\nktr off\n", trace=True, sets=[ENTRIES]).expect()
    starts, places = disassembly()
    seen = {(m.group(1), int(m.group(2), 16)) for _, m in
            ((e, RETURN.match(e["text"])) for e in run.events) if m}
    check(len(seen) > 100, f"{len(seen)} different returns, expected more than 100")
    for name, offset in sorted(seen):
        # aarch64: the no-op before the return.
        expected = "ret" if ARCH == "x86_64" else "nop"
        found = {places.get(start + offset, [None])[0] for start in starts[name]}
        check(expected in found, f"{name}+{offset:#x} is {found}, expected {expected}")


@test("functions are on from the first instruction after the loader's parameters, on every CPU")
def early():
    run = boot("poweroff 0\n", smp=4, trace=True, sets=[ENTRIES, "debug.ktr.on=fbt:::"]).expect()
    tc.timestamps_ascend(run)
    check_eq({e["cpu"] for e, _, _ in calls(run)}, {0, 1, 2, 3}, "CPUs with functions")
    some = ("cpu_start_all", "smp_join", "timer_init_cpu")
    run = boot("poweroff 0\n", smp=4, trace=True,
               sets=[ENTRIES, "debug.ktr.on=" + ",".join(f"fbt::{name}:" for name in some)]).expect()
    tc.no_gaps(run)
    check_eq({name for _, _, name in calls(run)}, set(some), "functions that are on")
    check_eq({e["cpu"] for e, _, name in calls(run) if name == "smp_join"}, {1, 2, 3}, "CPUs that joined")


@portable_test("ktr probes lists and counts by name; what no probe can be on says why; nonsense is refused with a sentence")
def listing():
    run = boot("ktr probes fbt:fs:file_open:\nktr probes -c\nktr probes -x\nktr probes 'fbt:nothing::'\nktr on 'fbt:nothing::'\n"
               "ktr on 'fbt:fs:file_open:entry'\nktr probes fbt:fs:file_open:\nktr on '*'\nktr probes -c\nktr probes fbt:::\n").expect()
    check_match(r"^ *id +state +owners +provider +module +function +name +format$", run.out, "header")
    check_match(r'^ *\d+ +off +- +fbt +fs +file_open +entry +"-> file_open\(path %p, flags %d, mode %u, out %p\)" '
                r'\(char \*, int, uint32_t, struct file \*\*\)$', run.out, "an entry")
    check_match(r'^ *\d+ +off +- +fbt +fs +file_open +return +"<- file_open\+%#x = %d" \(int, int\)$', run.out, "a return")
    rows = re.findall(r'^ *\d+ +\w+ +\S+ +fbt +\S+ +(\S+) +(entry|return) +"(.*)"(?: \((.*)\))?$', run.out, re.M)
    # BTF has no function that the compiler has made of another one.
    bare = {f for f, _, fmt, types in rows if len(re.findall("[(,] ?\\w+ %", fmt)) > (types.count(",") + 1 if types else 0)}
    bare = {f for f in bare if "." not in f}
    check(len(rows) > 1500 and not bare, f"{len(bare)} functions without types: {sorted(bare)}")
    check_match(r"^fbt +\d+ +0$", run.out, "counts")
    check_match(r"^ktr_record6 part of the log$", run.out, "a function of the log")
    check_match(r"^stop_inside called by the record path$", run.out, "a function that noprobe names")
    check_match(r"^arch_context_switch assembly$", run.out, "a function of assembly")
    check_match(r"^ktr: fbt:nothing::: no probe matches; expected PROVIDER:MODULE:FUNCTION:NAME", run.out, "no such probe")
    check_match(r'^ktr: nothing matches "fbt:nothing::": expected .*provider:module:function:name', run.out, "no such probe")
    check_match(r"^ *\d+ +on +command +fbt +fs +file_open +entry ", run.out, "what is on")
    check_match(r"^fbt +\d+ +1$", run.out, "a glob without a colon leaves functions alone")


@portable_test("syscall::CALL:entry and :return are the trace points of that call alone; each call has both")
def syscalls():
    run = boot("ktr probes -c\nktr probes syscall:::\nktr on syscall::getdents64:,syscall::exit_group:entry\nls / > /dev/null\nktr off\n",
               trace=True).expect()
    rows = [line.split()[3:7] for line in run.out.splitlines() if re.match(r" *\d+ +off +- +syscall ", line)]
    names = {row[2] for row in rows}
    check_eq(sorted((call, name) for _, _, call, name in rows), sorted((call, name) for call in names for name in ("entry", "return")),
             "probes of system calls")
    check({"read", "openat", "clone", "exit_group"} <= names, f"system calls: {names}")
    check_match(rf"^syscall +{2 * len(names)} +0$", run.out, "counts")
    found = {e["fmt"].split(":")[0] for e in run.events}
    check_eq(found, {"syscall getdents64", "sysret getdents64", "syscall exit_group"}, "what was recorded")


@test("each system call's entry has its six arguments, and its return what the program got")
def every_syscall():
    run = boot("ktr probes syscall:::\nktr on syscall:::\nsu 1000 user_test do calls\nktr off\n", trace=True, sets=[ENTRIES],
               options=["--file", f"/bin/user_test={BUILD}/user_test"]).expect()
    tc.no_gaps(run)
    names = set(re.findall(rf"^ *\d+ +off +- +syscall +{ARCH} +(\w+) +entry ", run.out, re.M))
    said = {name: (int(nr), int(ret)) for name, nr, ret in re.findall(r"^(\w+) (\d+) (-?\d+)$", run.out, re.M)}
    ends = {"exit", "exit_group"}
    names -= {"pause", "rt_sigreturn", "rt_sigsuspend", "vfork"}  # they wait for ever, or return with another stack
    check_eq(names - said.keys(), ends & names, "system calls that do not return")
    entries, returns = {}, {}
    for e in run.events:
        m = re.match(r"(syscall|sysret) (\w+): (.*)$", e["text"])
        values = [int(v, 0) for v in re.findall(r"(?:arg\d|ret) (-?\w+)", m[3])]
        if m[1] == "syscall" and values[0] >> 40 == 0x6b7472:
            entries[m[2]] = e["tid"], values
        elif m[1] == "sysret" and m[2] in entries and e["tid"] == entries[m[2]][0]:
            returns.setdefault(m[2], values[0])
    check_eq(names - entries.keys(), set(), "system calls without their entry")
    for name, (_, values) in entries.items():
        check_eq([v & 0x7f for v in values], list(range(6)), f"arguments of {name}")
        check(name in ends or values[0] >> 8 & 0xffff == said[name][0], f"the number in the arguments of {name}: {values[0]:#x}")
    check_eq(returns, {name: ret for name, (_, ret) in said.items()}, "what calls returned")


@test("every function of the image has probes or is listed with a reason")
def complete():
    out = boot("ktr probes fbt:::\necho ----\nktr probes -x\n").expect().out
    probes, exceptions = out.split("----")
    known = {line.split()[5] for line in probes.splitlines()[1:] if line.strip()}
    known |= {line.split()[0] for line in exceptions.splitlines() if line.strip()}
    at = symbols()
    functions = {name for name, addr in at.items() if at["__ktr_record_start"] <= addr < at["__fbt_stubs"]
                 and not name.startswith((".L", "__", "$")) and ".cold" not in name}
    check(len(functions) > 900, f"{len(functions)} functions, expected more than 900")
    check_eq(sorted(functions - known)[:10], [], "functions of the image that are not listed")


# They serve other exceptions, too, and what may be probed: after a probe that fires meanwhile is refused.
SERVE_MORE = {"x86_trap", "aarch64_trap", "entry_probe"}
OF_ALL = {"strcmp", "record_stack"}  # also called by hooks; the latter calls what prints


@test("what handles a kprobe's breakpoint, and what hooks call, calls nothing that has probes")
def noprobe_is_whole():
    with open(ROOT / "kernel/probe/noprobe", encoding="utf-8") as f:
        reasons = dict(line.split(None, 1) for line in f if line.strip() and not line.startswith("#"))
    listed = {name for name, why in reasons.items()
              if why.strip() in ("handles the breakpoint of a kprobe", "called by hooks")} - SERVE_MORE
    probed = set(re.findall(r'"-> ([\w.]+)\(', (BUILD / "kestrel.fbt.S").read_text()))
    starts, places = disassembly()
    at = sorted((addr, name) for name, addrs in starts.items() for addr in addrs)
    seen, found = set(), set()
    for addr, (mnemonic, operands) in places.items():
        name = at[bisect.bisect(at, (addr, "~")) - 1][1].split(".")[0]
        m = re.search(r"\b[0-9a-f]+ <([\w.]+)>$", operands)
        if name in listed and m and re.match("call|j|b|cb|tb", mnemonic):
            seen.add(name)
            if m[1] in probed and m[1].split(".")[0] not in {name, *OF_ALL}:
                found.add(f"{name} calls {m[1]}")
    check(len(seen) > 5 and len(probed) > 1500, f"found calls of {len(seen)} functions, {len(probed)} with probes")
    check_eq(sorted(found), [], "calls of what has probes")


GRAPH = re.compile(r"^ +(\d+)\) (?:([ +!#*@$]) ?([\d.]+) us +| {14})\|  ( *)(?:([\w.]+)\(\)(;| \{)|(\})(?: /\* ([\w.]+) \*/)?|/\* .*)$")


def graph_lines(text):
    """(mark, microseconds or None, depth, function or None, is a leaf, is a closing brace) of each line."""
    found = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip() or re.match(r"^ -+$| +\d+\)  \S+-\d+  =>  ", line):
            continue
        m = GRAPH.match(line)
        check(m, f"no line of a graph: {line!r}")
        found.append((m.group(2), m.group(3) and float(m.group(3)), len(m.group(4)) // 2, m.group(5) or m.group(8),
                      m.group(6) == ";", m.group(7) is not None))
    return found


@portable_test("graph: what the lines say is what the events say: calls, depth and duration, on the host and in the guest")
def graph():
    # A stream has the names that threads had when it was written. So it is written afterwards, as the guest reads the rings.
    run = boot("ktr on 'fbt:fs::,fbt:sync::'\ncat /etc/motd >/dev/null\nktr off\necho =====\n"
               "ktrdump --format graph --thread cat\nsysctl debug.ktr.alq_enable=1 >/dev/null\n", trace=True,
               sets=[ENTRIES, "debug.ktr.alq_enable=0"]).expect()
    tc.no_gaps(run)
    status, host, err = ktrdump("--format", "graph", "--thread", "cat", "-i", run.trace)
    check_eq((status, err), (0, ""), "status and stderr")
    guest = run.out.split("=====\n")[1]
    check_eq(guest.replace("\r", "").strip().splitlines()[:50], host.strip().splitlines()[:50], "the guest's graph")
    # The same, computed from jsonl: entries and returns of the thread, in their order.
    expected, stack = [], []
    events = [(e["ns"], *call) for e in run.events if e["thread"] == "cat" and (call := calls_of(e))]
    for n, (ns, what, name) in enumerate(events):
        if what == "->":
            leaf = n + 1 < len(events) and events[n + 1][1:] == ("<-", name)
            stack.append((name, ns, leaf))
            if not leaf:
                expected.append((None, len(stack) - 1, name, False, False))
        elif stack:
            top, start, leaf = stack.pop()
            check_eq(top, name, f"what returns at {ns} ns")
            expected.append((ns - start, len(stack), name if leaf else None, leaf, not leaf))
    found = graph_lines(host)
    check_eq(len(found), len(expected), "lines")
    for (mark, us, depth, name, leaf, close), (ns, *rest) in zip(found, expected):
        check_eq([depth, name, leaf, close], rest, f"line after {us} us")
        check((us is None) == (ns is None), f"duration {us} us of {rest}, expected {ns} ns")
        if ns is not None:
            check(abs(us * 1000 - ns) < max(1, ns / 1e6), f"{us} us, expected {ns} ns")
            marks = [limit for limit in (1e4, 1e5, 1e6, 1e7, 1e8, 1e9) if ns > limit]
            check_eq(mark, " +!#*@$"[len(marks)], f"mark of {ns} ns")


@portable_test("ktr graph shows what a function calls, for one command; ktr profile counts; the status is the command's")
def command():
    run = boot("ktr graph ramfs_read -- cat /etc/motd\nktr profile ramfs_read cat /etc/motd\nktr graph ramfs_read false\n"
               "echo status $?\nktr graph nothing_such true\nktr graph ramfs_read\nktr probes -c\n"
               "echo ----\nktr profile '*' -- true\necho ----\nktr profile fbt:fs:: -- cat /etc/motd\necho ----\n"
               "ktr graph fbt:fs:vfs_read: -d 1 -- head -c 1 /etc/motd\necho ----\nktr graph vfs_read: -d 1 -- head -c 1 /etc/motd\n",
               sets=[ENTRIES]).expect()
    run.out, whole, module, shallow, short = run.out.split("----\n")
    counted = set(re.findall(r"^  (\w+) +\d+ +[\d.]+ ", whole, re.M))
    check("entry_syscall" in counted and not counted & {"pipe_read", "sys_execve"}, f"what the program did, not ktr: {counted}")
    counted = set(re.findall(r"^  (\w+) +\d+ +[\d.]+ ", module, re.M))
    check("vfs_open" in counted and "entry_syscall" not in counted, f"functions of fs: {counted}")
    for text in (shallow, short):
        check_eq(set(re.findall(r"\| +(\w+)\(\)(?:;| {)", text)), {"vfs_read"}, f"a graph that is one call deep: {text}")
    graph_text = run.out[run.out.index("# CPU"):run.out.index("\n  Function ")]
    lines = graph_lines(re.sub(r"(?m)^Welcome.*$", "", graph_text))
    roots = {name for _, _, depth, name, _, close in lines if depth == 0 and not close}
    check_eq(roots, {"ramfs_read"}, "functions at depth 0")
    check("uio_put" in {name for _, _, depth, name, _, _ in lines if depth == 1}, f"no uio_put in:\n{graph_text}")
    check_match(r"^  ramfs_read +\d+ +", run.out, "the profile's row")
    check_match(r"^status 1$", run.out, "status of a command that fails")
    check_match(r'^ktr: nothing matches "fbt::nothing_such:"', run.out, "no such function")
    check_match(r"^usage: ktr graph ", run.out, "no command")
    check_match(r"^fbt +\d+ +0$", run.out, "probes that are on")


@portable_test("report function: count, total and self time of each function are what the events say")
def profile():
    run = boot("ktr on 'fbt:fs::'\nload mix -n 3 -j 1\nktr off\n", trace=True, sets=[ENTRIES]).expect()
    tc.no_gaps(run)
    expected, stacks = {}, {}
    for e in run.events:
        call, stack = calls_of(e), stacks.setdefault(e["tid"], [])
        if call is None:
            if re.match(r"thread exit: ", e["text"]):
                stacks.pop(e["tid"])
            continue
        what, name = call
        if what == "->":
            stack.append([name, e["ns"], 0])
            continue
        while stack and stack[-1][0] != name:
            stack.pop()
        if not stack:
            continue
        _, start, inner = stack.pop()
        took = e["ns"] - start
        if stack:
            stack[-1][2] += took
        count, total, self_ns, longest = expected.get(name, (0, 0, 0, 0))
        expected[name] = (count + 1, total + took, self_ns + took - inner, max(longest, took))
    status, out, err = ktrdump("report", "function", "--rows", "0", "--format", "jsonl", "-i", run.trace)
    check_eq((status, err), (0, ""), "status and stderr")
    rows = [row for row in json_lines(out) if row.get("table") == "functions" and "function" in row]
    found = {r["function"]: (r["count"], r["total_ns"], r["self_ns"], r["longest_ns"]) for r in rows if r["function"]}
    check(len(found) > 30, f"{len(found)} functions, expected more than 30")
    check_eq({n: found.get(n) for n in expected}, expected, "rows")


if __name__ == "__main__":
    main()
