#!/usr/bin/python3
"""test_tools.py - ktrdump on the host and in the guest, and ktr: columns, filters, formats, damage, status."""
import json
import random
import re
import subprocess
import threading

import tracecheck as tc
from console import guest
from harness import ARCH, BOOT, DEADLINE_S, KTRDUMP, boot, check, check_eq, check_match, decode, free_ports, host_listens, json_lines, ktrdump, main, scratch_file, portable_test as test, wait_for

KEYS = ["seq", "cpu", "ns", "tid", "thread", "class", "file", "line", "func", "fmt", "args", "names", "text"]
_sample = None


def sample():
    """One trace for all tests here: 2 CPUs, several classes, nothing lost."""
    global _sample
    if _sample is None:
        _sample = boot("load fork -n 10\nload syscall -n 100\n", smp=2, mask="SCHED,PROC,SYSC", trace=True,
                       sets=["debug.ktr.entries=16384"]).expect()
        check_eq(_sample.gaps, [], "gaps")
    return _sample


def rows(*options):
    status, out, err = ktrdump("-q", *options, "-i", sample().trace)
    check_eq((status, bool(err)), (0, False) if out else (1, True), f"status and messages of ktrdump {' '.join(options)}: {err}")
    return out.splitlines()


@test("FreeBSD's options give FreeBSD's columns: header words, widths, dashes, rows")
def columns():
    events = sample().events
    status, out, _ = ktrdump("-csfH", "-i", sample().trace)
    check_eq(status, 0, "status")
    header, dashes, *lines = out.splitlines()
    check_eq(header.split()[:4] + header.split()[-1:], ["index", "cpu", "timestamp", "file", "trace"], "header words")
    check(set(dashes.replace(" ", "")) == {"-"}, f"second line: {dashes!r}")
    check_eq(len(lines), len(events), "rows")
    for n in (0, 1, len(lines) // 2, len(lines) - 1):
        e, line = events[n], lines[n]
        m = check_match(r"^ *(\d+) +(\d+) +(\d+\.\d{9}) +(\S+:\d+) +(\d+) (\S* *) *(.*)$", line, f"row {n}")
        check_eq((int(m.group(2)), m.group(4)), (e["cpu"], f"{e['file']}:{e['line']}"), f"cpu and place of row {n}")
        check_eq(round(float(m.group(3)) * 1e9), e["ns"], f"nanoseconds of row {n}")
        check(line.endswith(e["text"]), f"row {n} ends with {line[-80:]!r}, expected {e['text']!r}")


SCHEDGRAPH = (r'\s*(\d+)\s+(\d+)\s+(\d+)\s+KTRGRAPH group:"([^"]*)", id:"([^"]*)", (?:state:"([^"]*)"|point:"([^"]*)"|counter:(-?\d+)), '
              r"attributes: \S.*")


@test("-ct prints all events of the scheduler as lines that FreeBSD's schedgraph.py reads, the newest first")
def for_schedgraph():
    lines = rows("-ct", "--class", "SCHED")
    check_eq([line for line in lines if not re.fullmatch(SCHEDGRAPH, line)][:3], [], "lines that schedgraph.py cannot parse")
    events = [e for e in sample().events if "SCHED" in e["class"].split(",")]
    check_eq([line.split(None, 3)[3] for line in reversed(lines)], [e["text"] for e in events], "the events")
    check(len(lines) > 100, f"{len(lines)} events of the scheduler")


@test("-q leaves out the header; without options there are index and trace only")
def bare():
    lines = rows()
    check_eq(len(lines), len(sample().events), "rows")
    check_match(r"^ *\d+ +" + re.escape(sample().events[0]["text"]) + "$", lines[0], "first row")


@test("-r prints times since the row before, -t the raw clock, newest first")
def times():
    ns = [e["ns"] for e in sample().events]
    relative = [round(float(line.split()[1]) * 1e9) for line in rows("-r")]
    check_eq(relative[1:50], [b - a for a, b in zip(ns, ns[1:50])], "relative times")
    ticks = [int(line.split()[1]) for line in reversed(rows("-t"))]
    check(all(a <= b for a, b in zip(ticks, ticks[1:])), "ticks fall")
    check(ticks[-1] - ticks[0] >= ns[-1] - ns[0] or ticks[-1] > ticks[0], "ticks do not advance")


@test("-o writes to a file, a pipe is read like a file, and the file may stand without -i")
def input_output():
    path = scratch_file(".txt")
    status, out, _ = ktrdump("-cs", "-i", sample().trace, "-o", path)
    check_eq((status, out), (0, ""), "status and stdout with -o")
    expected = path.read_text()
    for args, data in ((["-cs"], sample().trace.read_bytes()), (["-cs", "-i", "-"], sample().trace.read_bytes()),
                       (["-cs", str(sample().trace)], None)):
        status, out, err = ktrdump(*args, stdin=data)
        check_eq((status, out == expected), (0, True), f"status, same output of {args[:3]} ({err})")


@test("jsonl objects have exactly the keys that are promised, and args are the format's")
def jsonl():
    for e in sample().events:
        check_eq(list(e), KEYS, "keys")
    forks = tc.named(sample(), r"fork: parent (\d+) child (\d+) name (\S+)")
    check(len(forks) >= 10, f"{len(forks)} forks")
    e, m = forks[0]
    check_eq(e["args"], [int(m.group(1)), int(m.group(2)), m.group(3)], "args of a fork")
    check_eq((e["class"], e["fmt"]), ("PROC", "fork: parent %u child %u name %s"), "class and format")
    calls = tc.named(sample(), r"syscall getppid:")
    check_eq(len(calls[0][0]["args"]), 6, "arguments of a system call")


@test("--class, --cpu, --thread, --grep, --since and --until select events")
def filters():
    events = sample().events

    def texts(*options):
        return [e["text"] for e in map(json.loads, rows("--format", "jsonl", *options)) if "seq" in e]

    tid = tc.processes(sample(), "load")[0]
    middle = events[len(events) // 2]["ns"]
    for options, keep in (
            (["--class", "PROC"], lambda e: e["class"] == "PROC"),
            (["--class", "proc,KTR_SYSC"], lambda e: e["class"] in ("PROC", "SYSC")),
            (["--cpu", "1"], lambda e: e["cpu"] == 1),
            (["--cpu", "0-1"], lambda e: True),
            (["--thread", str(tid)], lambda e: e["tid"] == tid),
            (["--thread", "lo*d"], lambda e: e["thread"] == "load"),
            (["--grep", "child"], lambda e: "child" in e["text"]),
            (["--until", f"{middle}ns"], lambda e: e["ns"] <= middle),
            (["--since", f"{middle}ns"], lambda e: e["ns"] >= middle),
            (["--class", "SYSC", "--cpu", "0", "--grep", "getppid"],
             lambda e: e["class"] == "SYSC" and e["cpu"] == 0 and "getppid" in e["text"])):
        check_eq(texts(*options), [e["text"] for e in events if keep(e)], f"events with {' '.join(options)}")


@test("report events counts events by class, site and CPU, and what was lost")
def stats():
    events = sample().events
    status, out, _ = ktrdump("report", "events", "-i", sample().trace)
    check_eq(status, 0, "status")
    check_match(rf"^trace .* events {len(events)}, lost 0 in 0 gaps, parts {len(sample().parts)}$", out, "first line")
    for name in ("PROC", "SYSC", "SCHED"):
        check_match(rf"^{name} +{sum(e['class'] == name for e in events)}$", out, f"count of {name}")
    for cpu in (0, 1):
        check_match(rf"^ *{cpu} +{sum(e['cpu'] == cpu for e in events)} +0 ", out, f"count of cpu {cpu}")


@test("a file cut anywhere: sound events are printed, the damage is reported with its offset, status 1")
def truncated():
    data = sample().trace.read_bytes()
    whole = [e["text"] for e in sample().events]
    rng = random.Random(2)
    # The last byte is a delimiter. The END frame is whole without it (ktr/WIRE.md).
    for size in [len(data) - 2] + [rng.randrange(200, len(data) - 2) for _ in range(15)]:
        status, out, err = ktrdump("--format", "jsonl", stdin=data[:size])
        check_eq(status, 1, f"status of a file cut at {size}")
        check_match(r"\b\d+\b", err, f"message for a file cut at {size}")
        texts = [o["text"] for o in json_lines(out) if "seq" in o]
        check(len(texts) <= len(whole), "more events than the whole file has")
        check(set(texts) <= set(whole), "events that the whole file does not have")


@test("flipped bits: the damaged frame is accounted for, all others are printed, status 1")
def flipped():
    data = sample().trace.read_bytes()
    whole = {(e["cpu"], e["seq"]): e["text"] for e in sample().events}
    rng = random.Random(3)
    for _ in range(25):
        damaged = bytearray(data)
        at = rng.randrange(len(data))
        damaged[at] ^= 1 << rng.randrange(8)
        status, out, err = ktrdump("--format", "jsonl", stdin=bytes(damaged))
        check_eq(status, 1, f"status with a bit flipped at {at}")
        check(err.strip() != "", f"no message with a bit flipped at {at}")
        objects = json_lines(out)
        events = [o for o in objects if "seq" in o]
        lost = sum(o.get("gap", 1) for o in objects if "seq" not in o)
        check_eq(len(events) + lost, len(whole) + len(sample().parts) + sum(g["gap"] for g in sample().gaps),
                 f"events printed and counted as lost, bit flipped at {at}")
        wrong = [e for e in events if e["fmt"] is not None and not re.search(r"\(bad|\(cut at", e["text"]) and
                 whole.get((e["cpu"], e["seq"])) != e["text"]]
        check_eq(wrong[:1], [], f"an event that is not in the whole file, bit flipped at {at}")


@test("a foreign, an empty and a missing file; two files joined; bad usage")
def foreign():
    status, out, err = ktrdump(stdin=random.Random(4).randbytes(100000))
    check_eq(status, 1, "status of random bytes")
    check(err.strip() != "", "no message for random bytes")
    check_eq(ktrdump("-i", KTRDUMP)[0], 1, "status of an ELF file")
    check_eq(ktrdump("-i", "/nonexistent")[0], 2, "status of a missing file")
    check_eq(ktrdump("--nonsense")[0], 2, "status of an unknown option")
    check_eq(ktrdump("--class", "SCHD", "-i", sample().trace)[0], 2, "status of an unknown class")
    data = sample().trace.read_bytes()
    status, out, err = ktrdump("--format", "jsonl", stdin=data + data)
    check_eq(status, 0, f"status of two files joined ({err})")
    check_eq(len(out.splitlines()), 2 * len(sample().decoded), "lines of two files joined")
    check_eq(ktrdump(stdin=b"")[0], 1, "status of an empty file")


@test("-l follows a file that grows, to the last event")
def follow():
    data = sample().trace.read_bytes()
    path = scratch_file(".ktr")
    path.write_bytes(b"")
    p = subprocess.Popen([str(KTRDUMP), "-l", "-q", "-i", str(path)], stdout=subprocess.PIPE, text=True)
    deadline = threading.Timer(DEADLINE_S, p.kill)
    deadline.start()
    try:
        for at in range(0, len(data), 1000):
            with open(path, "ab") as f:
                f.write(data[at:at + 1000])
        expected = [e["text"] for e in sample().events]
        for n, text in enumerate(expected):
            line = p.stdout.readline()
            check(line.rstrip("\n").endswith(text), f"row {n}: found {line!r}, expected {text!r} at its end")
    finally:
        deadline.cancel()
        p.kill()
        p.wait()


@test("--trace tcp: waits for ktrdump -i tcp:, which shows each event while the guest runs, and ends with it")
def wire():
    port, seen = free_ports(1)[0], []

    def watch():
        wait_for(lambda: host_listens(port), "qemu/boot that listens")
        seen.append(subprocess.Popen([KTRDUMP, "-q", "-i", f"tcp::{port}"], stdout=subprocess.PIPE, text=True))
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    with guest("--trace", f"tcp::{port}", "--mask", "PROC", smp=2) as c:
        thread.join(DEADLINE_S)
        dump, = seen
        try:
            for command in ("load fork -n 1", "load fork -n 2"):  # the guest waits for the next one
                c.sendline(command)
                check(any(f"args {command}" in line for line in dump.stdout), f"{command} was not shown before the end")
            c.sendline("poweroff")
            check(any("name poweroff" in line for line in dump.stdout), "poweroff was not shown")
            check_eq(dump.wait(DEADLINE_S), 0, "status of ktrdump")
        finally:
            dump.kill()
    for name, message in ((f"tcp::{port}", "Connection refused"), ("tcp:", "expected tcp:HOST:PORT"), ("tcp:127.0.0.1:x", "expected tcp:HOST:PORT"),
                          (f"tcp::{65536 + port}", "expected tcp:HOST:PORT"), ("tcp::0", "expected tcp:HOST:PORT"), (f"tcp:[127.0.0.1]:{port}", "Connection refused")):
        check_eq(ktrdump("-i", name), (2, "", f"ktrdump: {name}: {message}\n"), name)
    for option, message in (("tcp:x", "expected tcp:[HOST]:PORT"), ("tcp:192.0.2.1:7", "Cannot assign requested address")):
        p = subprocess.run([BOOT, "--script", "-", "--trace", option], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        check_eq((p.returncode, p.stderr), (2, f"boot: --trace {option}: {message}\n"), option)


@test("ktrdump in the guest prints the live rings as the host's prints the same bytes")
def guest_ktrdump():
    run = boot("""
sysctl debug.ktr.mask=PROC > /dev/null
load fork -n 5 > /dev/null
sysctl debug.ktr.mask=NONE > /dev/null
exec 2> /dev/null # on a slow machine ktrdump tells how far it is
ktrdump -q --class PROC
echo ===
ktrdump report events | head -n 1
ktrdump -csf | head -n 2
ktrdump --format jsonl | head -n 1
cat /dev/ktr > /tmp/stream
ktrdump -q -i /tmp/stream | wc -l
""", smp=2).expect()
    live, rest = run.out.split("===\n")
    forks = [line for line in live.splitlines() if "fork: parent" in line]
    check(len(forks) >= 5, f"{len(forks)} forks from the live rings, expected 5 and more")
    check_match(r"^trace .* events \d+, lost 0 in 0 gaps", rest, "report events")
    check_match(r"^index +cpu +timestamp +file", rest, "the header")
    check_match(r'^\{"seq":0,"cpu":\d,"ns":\d+,', rest, "jsonl")
    check_eq(int(rest.splitlines()[-1]), len(live.splitlines()), "rows from a copy of the stream")


@test("ktr: classes and single trace points go on and off, whoever switched them on, and it says how many")
def ktr():
    run = boot("""
ktr status | head -n 1
ktr on 'fork: *'
echo on $?
load fork -n 4 > /dev/null
ktr off 'fork: *'
ktrdump -q 2> /dev/null | wc -l
ktr clear
load fork -n 4 > /dev/null
ktrdump -q 2> /dev/null | wc -l
sysctl -n debug.ktr.mask=PROC
sysctl -qw debug.ktr.cpumask=all
ktr on 'fork: *'
ktr off 'fork: *'
ktr sites 'fork: *'
sysctl -n debug.ktr.mask=+LOCK,-PROC
ktr off LOCK
ktr on nosuchfunction_at_all
echo status $?
echo $(ktr sites 'kernel/proc/signal.c:*' | wc -l) $(ktr sites signal.c | wc -l)
ktr on SCHED
ktr on 'fork: *'
ktr off
sysctl -n debug.ktr.mask
ktrdump -q 2> /dev/null | wc -l
ktr clear; ktr clear; sleep 0.1
ktrdump -q 2> /dev/null | wc -l
ktr classes
""").expect()
    lines = run.out.splitlines()
    check_match(r"^mask +NONE$", lines[0], "ktr status")
    check_eq(lines[1:3], ["1 trace point switched on", "on 0"], "ktr on")
    check_eq(lines[3], "1 trace point switched off", "ktr off")
    # The script's sh also forks, for load and the tools: 4 and a few.
    check(4 <= int(lines[4]) <= 8, f"{lines[4]} events of one trace point, expected 4 forks of load and few of sh")
    check_eq(lines[5:9], ["0", "PROC", "0 trace points switched on; 1 was on", "1 trace point switched off"],
             "a site that a class had switched on")
    check_match(r"^ *id +state +owners +class +file:line +function +format$", lines[9], "a heading")
    check_match(r"^ *\d+ off +- +PROC +kernel/proc/\S+ +\w+ +\"fork: ", lines[10], "the site, under its heading")
    check_eq(lines[10].index("kernel/"), lines[9].index("file:line"), "columns")
    check_eq(lines[11], "LOCK", "the mask after +LOCK,-PROC")
    check_match(r"^\d+ trace points switched off$", lines[12], "ktr off of a class")
    check_eq(lines[14], "status 1", "status of a SPEC that matches nothing")
    by_line, by_file = map(int, lines[15].split())
    check(by_line >= 5, f"{by_line} trace points in signal.c, with a heading")
    check_eq(by_file, by_line, "ktr sites of a file's name, as ktr on takes it")
    on = int(check_match(r"^(\d+) trace points switched on$", lines[16], "ktr on of a class").group(1))
    check_eq(lines[17], "1 trace point switched on", "ktr on of a site")
    check_match(rf"^{on + 1} trace points switched off; \d+ were off$", lines[18], "ktr off")
    check_eq(lines[19], "NONE", "the mask after ktr off")
    check(int(lines[20]) > 0, "no events while they were on")
    check_eq(lines[21], "0", "events after ktr off and ktr clear")
    check_match(r"^class +value +state +sites +covers$", lines[22], "ktr classes: heading")
    check_eq(len(lines) - 23, 33, "classes")


@test("ktr on and ktr off of several words switch all of them, or none if one is refused")
def ktr_words():
    state = "sysctl -n debug.ktr.mask; ktr probes -c | awk '{ n += $3 } END { print n }'\n"
    steps = ["ktr on PROC nosuch", "ktr on PROC 'fork: *' profile:::tick-7s fbt:fs:ramfs_raed:", "ktr on '' PROC",
             "ktr on PROC fbt:fs:ramfs_read: profile:::tick-7s 'thread create: *'\nktr off PROC fbt:::nosuch",
             "ktr off PROC fbt:fs:ramfs_read: profile:::tick-7s"]
    out = boot("".join(f"{step}\n{state}" for step in steps)).out
    check_match(r'^ktr: no class "nosuch"; .*\nNONE\n0\nktr: .*; did you mean fbt:fs:ramfs_read:\?\nNONE\n0\n'
                r'ktr: found an empty word, .*\nNONE\n0\n(\d+) trace points switched on; 1 was on\nktr: nothing '
                r'matches "fbt:::nosuch".*\nPROC\n\1\n\1 trace points switched off\nNONE\n0$', out, "messages")


@test("an idle second of SCHED has no clock ticks: these are a class of their own")
def idle():
    runs = {mask: boot("sleep 1\n", mask=mask, trace=True, options=["--icount"]).expect() for mask in ("SCHED", "SCHED,TICK")}
    ticks = {mask: sum("statclock" in e["text"] for e in run.events if "text" in e) for mask, run in runs.items()}
    check_eq(ticks["SCHED"], 0, "clock ticks among SCHED's events")
    check(ticks["SCHED,TICK"] >= 50, f"{ticks['SCHED,TICK']} clock ticks of TICK in a second")


@test("there are at least 120 trace points, over at least 15 classes")
def sites():
    run = boot("sysctl -n debug.ktr.sites\n").expect()
    lines = [line.split() for line in run.out.splitlines()[1:]]
    check(len(lines) >= 120, f"{len(lines)} trace points")
    classes = {name for line in lines for name in line[3].split(",")}
    check(len(classes) >= 15, f"{len(classes)} classes: {classes}")
    named = [line[4] for line in lines]
    odd = [place for place in named if not re.fullmatch(r"(kernel|arch|ktr)/\S+\.(c|h|def):\d+", place)]
    check_eq(odd, [], "places that are no file:line")


@test("the stream goes to a RAM file as well as to the line, and decodes on the host")
def ram_file():
    run = boot("""
sysctl debug.ktr.alq_file=/tmp/log > /dev/null
sysctl debug.ktr.alq_enable=1 > /dev/null
sysctl debug.ktr.mask=PROC > /dev/null
load fork -n 5 > /dev/null
sysctl debug.ktr.mask=NONE > /dev/null
sysctl debug.ktr.alq_enable=0 > /dev/null
ktrdump -q --grep 'fork: parent' -i /tmp/log | wc -l
sysctl -n debug.ktr.alq_cnt
hexdump -C /tmp/log
""", smp=2).expect()
    lines = run.out.splitlines()
    check(int(lines[0]) >= 5, f"{lines[0]} forks in the file")
    check(int(lines[1]) > 0, "debug.ktr.alq_cnt is 0")
    data = b"".join(bytes.fromhex("".join(m.group(1).split())) for line in lines[2:]
                    if (m := re.match(r"[0-9a-f]{8}  ([0-9a-f ]{48,50})", line)))
    path = scratch_file(".ktr")
    path.write_bytes(data)
    forks = [e for e in decode(path) if "fork: parent" in e.get("text", "")]
    check_eq(len(forks), int(lines[0]), "forks that the host decodes from the same bytes")


@test("KTR_VERBOSE prints events on the console as they happen")
def verbose():
    run = boot("sysctl debug.ktr.mask=PROC > /dev/null\nsysctl debug.ktr.verbose=2 > /dev/null\nload fork -n 2\n"
               "sysctl debug.ktr.verbose=0 > /dev/null\n", smp=2).expect()
    check_match(r"cpu\d.*kernel/proc/fork\.c.*fork: parent \d+ child \d+", run.out, "an event on the console")


@test("KTR_VERBOSE with all classes on many CPUs prints whole lines, and the machine goes on")
def verbose_all():
    console = scratch_file(".txt")  # which takes everything at once: for a reader that is late, the kernel would drop characters
    boot("sysctl debug.ktr.verbose=2 debug.ktr.mask=ALL debug.ktr.mask=NONE debug.ktr.verbose=0 > /dev/null\necho done\n", smp=8 if ARCH == "x86_64" else 4, timeout=600,
         options=["--console", str(console)]).expect()
    *events, last = console.read_bytes().decode().rpartition("\033[0m\033[K\r")[2].replace("\r\n", "\n").splitlines()
    check_eq(last, "done", "what the shell wrote")
    odd = [line for line in events if not re.match(r"cpu[0-7] (kernel|arch|ktr)/\S+\.\d+\t\S", line)]
    check_eq(odd, [], "lines that are no event's")
    check(len(events) > 100, f"{len(events)} events on the console")


@test("in the guest an empty result says why: the mask, what was compiled, the time")
def guest_says_why():
    run = boot("""
ktrdump; echo status $?
sysctl debug.ktr.mask=PROC > /dev/null
ktrdump --class SYSC; echo status $?
ktrdump report --class ZZZ; echo status $?
load fork -n 2 > /dev/null
sysctl debug.ktr.mask=NONE > /dev/null
ktrdump --since 4000 | tail -n +3; ktrdump --since 4000 > /dev/null; echo status $?
ktrdump report syscall > /dev/null; echo status $?
""").expect()
    said = run.out + run.err
    for line in ("ktrdump: /dev/ktr: no events: debug.ktr.mask is NONE", "ktrdump: /dev/ktr: no events: debug.ktr.mask has no SYSC",
                 "no events between --since and --until (the trace is ", "report syscall: nothing to show: it needs events of class SYSC"):
        check(line in said, f"{line!r} is not in: {said}")
    check_eq(re.findall(r"\bstatus (\d)", run.out), ["1", "1", "2", "1", "1"], "statuses")


if __name__ == "__main__":
    main()
