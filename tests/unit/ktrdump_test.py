#!/usr/bin/python3
"""ktrdump_test.py - the output and exit status of ktrdump for sound, damaged and foreign input.

Prints TAP. The programs are build/host/ktrdump and build/host/unit/ktr_gen, or $KTRDUMP and $KTR_GEN.
"""
import base64
import fcntl
import functools
import json
import os
import pathlib
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios

import ktrace_records
import wire

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "qemu"))
from deadline import Child, Deadline  # noqa: E402

subprocess.Popen = Child  # its time-outs are deadlines
KTRDUMP = os.environ.get("KTRDUMP", str(ROOT / "build/host/ktrdump"))
KTR_GEN = os.environ.get("KTR_GEN", str(ROOT / "build/host/unit/ktr_gen"))
DEADLINE_S = 120


@functools.cache
def gen(*args):
    return subprocess.run([KTR_GEN, *args], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout


class Run:
    """One run of ktrdump: status, standard output and standard error."""

    def __init__(self, *args, data=None):
        done = subprocess.run([KTRDUMP, *args], input=data, stdin=None if data is not None else subprocess.DEVNULL,
                              capture_output=True, timeout=DEADLINE_S, check=False)
        self.status = done.returncode
        self.out = done.stdout.decode("utf-8")
        self.err = done.stderr.decode("utf-8", "replace")
        self.lines = self.out.splitlines()


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def equal(found, expected, what="value"):
    if found != expected:  # the text of it may be long
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def prints_freebsd_columns(_):
    r = Run("-csfH", data=gen("sample"))
    equal(r.status, 0, "status")
    equal(r.lines[0], "index  cpu timestamp        file and line                            "
                      "tid                trace")
    equal(r.lines[1], "------ --- ---------------- ---------------------------------------- "
                      "------------------ -----")
    expect(re.fullmatch(r" {5}1   0      0\.000002000 tests/unit/ktr_gen\.c:\d+ +7 sh {15}"
                        r"fork parent 7 child 8", r.lines[3]), r.lines[3])
    equal(len(r.lines), 12)


def number_on_the_cpu_has_a_column(_):
    for kind in (("sample",), ("mix", "3000"), ("loss",)):
        rows = [json.loads(line) for line in Run("--format", "jsonl", data=gen(*kind)).lines]
        right = [("-", None) if "gap" in row else (str(row["seq"]), row["cpu"]) for row in rows if "part" not in row]
        r = Run("-nc", data=gen(*kind))
        equal(r.lines[0][:19], "index  number   cpu")
        found = [(words[1], int(words[2]) if words[1] != "-" else None) for words in map(str.split, r.lines[2:])]
        equal(found, right, f"numbers and CPUs of {kind}")


def prints_index_and_text_alone_without_options(_):
    r = Run(data=gen("sample"))
    equal(r.lines[0], "index  trace")
    equal(r.lines[2], "     0 boot")
    equal(Run("-q", data=gen("sample")).lines[0], "     0 boot")


def merges_cpus_by_time(_):
    for kind in (("sample",), ("mix", "20000"), ("boots",)):
        r = Run("-qcs", data=gen(*kind))
        times = [float(line.split()[2]) for line in r.lines]
        equal(times, sorted(times), "times")
        equal(r.status, 0, "status")


def prints_strings_idents_and_bad_pointers(_):
    text = Run("-q", data=gen("sample")).out
    for want in ('KTRGRAPH group:"thread", id:"load tid 8", state:"running", attributes: prio:120',
                 'KTRGRAPH group:"load", id:"CPU 1 load", counter:2, attributes: none',
                 'open "/etc/motd" mode r    ab', "null (null)", "percent 100% of 18446744073709551615",
                 r'quote " and \ and tab\tand newline\n-1'):
        expect(want in text, f"{want!r} is not in the output")
    expect(re.search(r"wild \(bad 0x[0-9a-f]+\)", text), "a wild pointer's text")


def relative_times_and_ticks(_):
    r = Run("-qr", data=gen("sample"))
    equal([line.split()[1] for line in r.lines[:3]], ["0.000000000", "0.000001000", "0.000001000"])
    r = Run("-qt", data=gen("sample"))
    equal(r.lines[-1].split()[1], "1001000")


def ticks_come_newest_first_as_freebsds_do(_):
    """schedgraph.py reads index, CPU, ticks and text, newest first. Without -t, the same rows come oldest first."""
    for kind in (("sample",), ("mix", "20000"), ("guest", "300")):
        data = gen(*kind)
        r = Run("-ct", data=data)
        equal((r.status, r.err), (0, ""), "status and messages")
        equal(r.lines[:2], Run("-cs", data=data).lines[:2], "header")
        rows = [re.fullmatch(r"\s*(\d+)\s+(\d+)\s+(\d+)\s(.*)", line) for line in r.lines[2:]]
        expect(all(rows), f"a row of {kind} that is not index, CPU, ticks and text")
        ticks = [int(m[3]) for m in rows]
        equal(ticks, sorted(ticks, reverse=True), f"ticks of {kind}")
        equal([f"{m[1]:>6} {m[2]:>3} {m[4]}" for m in reversed(rows)], Run("-qc", data=data).lines, f"rows of {kind}")
    words = Run("-qct", data=gen("loss")).lines
    expect(any(re.match(r" {5}- +\d+ +\d+ --- \d+ events? ", line) for line in words), "no row for a loss")
    r = Run("-ctl", data=b"")
    equal((r.status, r.out, "expected -s with -l" in r.err), (2, "", True), "status, output and message of -ctl")


def filters_events(_):
    data = gen("sample")

    def count(*args):
        r = Run("-q", *args, data=data)
        equal((r.status, bool(r.err)), (0, False) if r.lines else (1, True), f"status and messages of {args}")
        return len(r.lines)

    equal(count(), 10)
    equal(count("--cpu", "0"), 6)
    equal(count("--cpu", "0-1"), 10)
    equal(count("--class", "SCHED"), 2)
    equal(count("--class", "sched,KTR_PROC"), 3)
    equal(count("--class", "VOP"), 1)
    equal(count("--thread", "8"), 2)
    equal(count("--thread", "sh"), 6)
    equal(count("--thread", "l*"), 2)
    equal(count("--grep", "fork"), 1)
    equal(count("--grep", "group:*prio"), 1)
    equal(count("--grep", "FORK"), 0)
    equal(count("--grep", "fork" + "*" * 496), 1)
    r = Run("--grep", "f" * 501, data=data)
    equal(r.status, 2, "status of a long text to look for")
    expect("at most 500 characters" in r.err, r.err)
    equal(count("--since", "0.000003"), 8)
    equal(count("--until", "3us"), 3)
    equal(count("--since", "3000ns", "--until", ".000004"), 2)
    # The index also counts events that were not printed.
    equal(Run("-q", "--grep", "fork", data=data).lines[0].split()[0], "1")


def empty_result_says_why(_):
    data = gen("sample")
    begin, end = (json.loads(line)["ns"] for line in (Run("--format", "jsonl", data=data).lines[n] for n in (0, -1)))
    for args in ((), ("--format", "jsonl"), ("--format", "chrome"), ("report", "events")):
        def run(*more, of=data):
            r = Run(*args, *more, data=of)  # pylint: disable=cell-var-from-loop
            equal(r.status, 1, f"status of {args} {more}")
            return r.err
        expect(run("--since", "5", "--until", "6").endswith("no events between --since and --until (the trace is "
               f"{begin // 10**9}.{begin % 10**9:09} s to {end // 10**9}.{end % 10**9:09} s, 10 events)\n"), run("--since", "5"))
        expect("no event is what was asked for (the trace is 0.0" in run("--cpu", "63"), run("--cpu", "63"))
        expect("no events: nothing was recorded (debug.ktr.mask was ALL)" in run(of=gen("empty")), run(of=gen("empty")))
        # One number for each mask that the stream tells, and what is said of a stream without events.
        names, ask = ((0, "GEN"), (13, "SYSC")), ("--class", "SYSC")
        for masks, more, said in (((0,), (), "debug.ktr.mask was NONE"),
                                  ((0, 0), ask, "debug.ktr.mask was NONE"),
                                  ((0, 0x2000, 0), (), "nothing was recorded (debug.ktr.mask was SYSC)"),
                                  ((0, 0x2001), ask, "nothing was recorded (debug.ktr.mask was GEN,SYSC)"),
                                  ((1, 0), ask, "debug.ktr.mask had no SYSC"),
                                  ((), (), "nothing was recorded (was debug.ktr.mask NONE?)")):
            err = run(*more, of=wire.stream(*map(wire.mask, masks), classes=names))
            expect(err.endswith(f": no events: {said}\n"), f"masks {masks} {more}: {err}")
        # Single trace points were on: the mask explains an empty result only if a class was asked for.
        events = (wire.mask(0), wire.site(1, "x", 0), wire.batch(0, 0, 10, 7, [(1, 5, ())]), wire.mark(100))
        expect("no event is what was asked for" in run("--grep", "y", of=wire.stream(*events)), "events in spite of the mask")


def jsonl_has_exactly_the_fields(_):
    r = Run("--format", "jsonl", data=gen("sample"))
    objects = [json.loads(line) for line in r.lines]
    for o in objects:
        equal(list(o), ["seq", "cpu", "ns", "tid", "thread", "class", "file", "line", "func", "fmt", "args", "names", "text"])
    for cpu in (0, 1):
        seqs = [o["seq"] for o in objects if o["cpu"] == cpu]
        equal(seqs, list(range(len(seqs))), "sequence numbers")
    equal([o["args"] for o in objects if o["func"] == "gen_events"][1], [7, 8])
    equal(objects[2]["args"], ["load tid 8", "running", 120])
    equal(objects[2]["names"], ["id", "state", "prio"])
    equal(objects[3]["args"][:5], [1, 16, 2**64 - 1, 3, -4])
    equal(objects[4]["args"], ["/etc/motd", ord("r"), "abc"])
    equal(objects[6]["args"], [None])
    equal(objects[4]["class"], "VFS,VOP")
    equal(objects[0]["thread"], "sh")
    equal(objects[8]["thread"], None)
    equal(objects[8]["text"], 'quote " and \\ and tab\tand newline\n-1')
    equal(objects[1]["ns"], 2000)


def data_are_texts_and_their_parts_are_no_events(_):
    args = ('/bin/cat -n "file" \t' * 250)[:5000]
    lengths = [0, 1, 39, 40, 41, 254, 255, 256, 1000, 4000, 5000]
    said = [args[:n] if n <= 4000 else args[:4000] + "(cut at 4000 of 5000)" for n in lengths]
    data = gen("data", "5000")
    objects = [json.loads(line) for line in Run("--format", "jsonl", data=data).lines]
    equal([o["args"][4] for o in objects if o.get("func") == "gen_data" and len(o["args"]) == 5], said, "arguments")
    equal(objects[-1]["args"], ["here"], "data with a zero byte")
    parts = [o for o in objects if "part" in o]
    equal(len(parts), sum((min(n, 4000) + 39) // 40 for n in [*lengths, 8]), "parts")
    equal(list(parts[0]), ["part", "cpu"], "what a part says")
    for cpu in (0, 1):
        seqs = [o.get("seq", o.get("part")) for o in objects if o["cpu"] == cpu]
        equal(seqs, list(range(len(seqs))), f"sequence numbers of events and parts, CPU {cpu}")
    events = len(objects) - len(parts)
    text = Run("-q", data=data).lines
    equal([line.split()[0] for line in text], [str(n) for n in range(events)], "index column")
    equal([line.split("args ", 1)[1] for line in text if "exec: " in line], [t.replace("\t", "\\t") for t in said], "texts")
    stats = Run("report", "events", data=data).lines
    expect(stats[0].endswith(f" events {events}, lost 0 in 0 gaps, parts {len(parts)}"), stats[0])
    expect("KTRDATA" not in "\n".join(text + stats), "parts among the events")
    equal(len(Run("--format", "jsonl", "--class", "PROC", data=data).lines), events, "events of class PROC")


def gaps_are_lines_of_their_own(_):
    data = gen("loss")
    r = Run("-qcs", data=data)
    equal(r.status, 0, "loss is no damage: status")
    gaps = [line for line in r.lines if "---" in line]
    equal(len(gaps), 1)
    lost = int(re.search(r"--- (\d+) events overwritten on cpu 0 between 0\.000001000 and", gaps[0]).group(1))
    equal(lost + len(r.lines) - 1, 5001, "events and lost events")
    objects = [json.loads(line) for line in Run("--format", "jsonl", data=data).lines]
    gap = [o for o in objects if "gap" in o]
    equal([list(o) for o in gap], [["gap", "cpu", "why", "from_ns", "to_ns"]])
    equal((gap[0]["gap"], gap[0]["why"]), (lost, "overwritten"))
    expect("1 event corrupt on cpu 0" in Run("-q", data=gen("corrupt")).out, "corrupt event")


def gaps_say_why_in_text_and_jsonl_alike(_):
    data = wire.stream(wire.loss(0, 0, 3, 100, 200), wire.loss(0, 3, 2, 200, 300, wire.CLEARED), wire.batch(0, 9, 900, 1, [(1, 0, [])]),
                       wire.frame(wire.TRUNCATED, wire.varints(1, 0, 10, 7)))
    why = ["overwritten", "cleared", "damaged", "left"]
    equal([json.loads(line).get("why") for line in Run("--format", "jsonl", data=data).lines if "gap" in line], why)
    equal([line.split()[4] for line in Run("-q", data=data).lines if "---" in line], why)


def times_of_any_size_are_printed(_):
    """Ticks from 0 to 2^64 - 1, with any boot time and rate: in order, and without undefined arithmetic
    (sanitize/asan)."""
    ticks = [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
    for hz in (0, 1, 1000, 10**9, 3 * 10**9, 2**64 - 1):
        for boot in ticks:
            data = wire.stream(*(wire.batch(0, n, t, 1, [(1, 0, [])]) for n, t in enumerate(ticks)), hz=hz, boot_ticks=boot)
            for args in (("-qcs",), ("report",), ("--format", "jsonl")):
                r = Run(*args, data=data)
                told = r.err.endswith("the clock's rate was not known yet: times are raw ticks\n")
                equal((r.status, told or r.err), (1, True) if hz == 0 else (0, ""), f"{args}, {hz} Hz, boot at {boot}")
            ns = [json.loads(line)["ns"] for line in r.lines]
            equal(ns, sorted(ns), f"times with {hz} Hz, boot at {boot}")


def report_counts_classes_sites_cpus_and_loss(_):
    r = Run("report", "events", data=gen("mix", "8000"))
    equal(r.status, 0, "status")
    expect(r.lines[0].endswith("events 8000, lost 0 in 0 gaps, parts 0"), r.lines[0])
    counts = dict(line.split() for line in r.lines if re.fullmatch(r"[A-Z]+ +\d+", line))
    equal(counts, {"LOCK": "1000", "SYSC": "2000", "SCHED": "5000"})
    per_cpu = [int(line.split()[1]) for line in r.lines if re.match(r" *[01] +\d+( +0){5}$", line)]
    equal(sum(per_cpu), 8000, "events of CPUs")
    r = Run("report", "events", "--class", "LOCK", data=gen("mix", "8000"))
    expect(r.lines[0].endswith("events 1000, lost 0 in 0 gaps, parts 0"), r.lines[0])
    lost = Run("report", "events", data=gen("loss")).lines[0]
    expect(re.fullmatch(r"trace .* events \d+, lost \d+ in 1 gap, parts 0", lost), lost)


def stream_is_small(_):
    data = gen("mix", "100000")
    expect(len(data) <= 10 * 100000, f"{len(data) / 100000} bytes an event, expected at most 10")
    equal(len(Run("-q", data=data).lines), 100000)


def reads_files_pipes_and_dash(tmp):
    path = tmp / "sample.ktr"
    path.write_bytes(gen("sample"))
    want = Run("-cs", data=path.read_bytes()).out
    equal(Run("-cs", "-i", str(path)).out, want)
    equal(Run("-cs", str(path)).out, want)
    equal(Run("-cs", "-i", "-", data=path.read_bytes()).out, want)
    out = tmp / "out.txt"
    equal(Run("-cs", "-o", str(out), str(path)).out, "")
    equal(out.read_text(), want)


def several_streams_in_a_file_decode(_):
    r = Run("-q", data=gen("boots"))
    equal((r.status, len(r.lines)), (0, 20))
    r = Run("-q", data=gen("sample") + gen("loss") + gen("sample"))
    equal(r.status, 0, "status")


def live_stream_ends_clean_after_a_pass(_):
    r = Run("-q", data=gen("live"))
    equal((r.status, len(r.lines), r.err), (0, 10, ""))


def stream_in_the_log_of_a_console_is_found(tmp):
    """db>'s `capture` prints it as base64. The log is read in pieces of 64 KiB, which may end anywhere."""
    for events in ("300", "3000"):
        data = gen("guest", events)
        text = base64.encodebytes(data)
        wanted = Run("--format", "jsonl", data=data)
        for before, after in ((0, 0), (70000, 0), (0, 70000), (65536 - 30, 200000)):
            noise = b"kestrel# echo something that is printed\r\n"
            log = (noise * (before // len(noise) + 1))[:before] + b"\r\n-----BEGIN KTR STREAM-----\r\n" + text.replace(b"\n", b"\r\n")
            log += b"-----END KTR STREAM-----\r\n" + noise * (after // len(noise))
            for found in (Run("--format", "jsonl", data=log), (tmp / "log").write_bytes(log) and Run("--format", "jsonl", str(tmp / "log"))):
                equal((found.status, found.err), (wanted.status, wanted.err), f"{events} events, {before} and {after} bytes: status, errors")
                equal(found.out, wanted.out, f"{events} events, {before} and {after} bytes: contents")


def truncated_input_has_status_1_and_prints_what_is_there(_):
    data = gen("mix", "2000")
    last = 0
    for cut in range(0, len(data), 97):
        r = Run("-q", data=data[:cut])
        equal(r.status, 1, f"status of {cut} bytes")
        expect(re.search(r"^ktrdump: standard input: offset \d+: ", r.err, re.M), r.err)
        events = sum("---" not in line for line in r.lines)
        expect(events >= last, f"{events} events of {cut} bytes, {last} of less")
        last = events
    r = Run("-q", data=gen("truncated"))
    equal(r.status, 1, "status of a stream that says it is cut off")
    expect("6 events left on cpu 0" in r.out, r.out)


def flipped_bits_have_status_1_and_are_named_by_offset(_):
    data = gen("mix", "2000")
    for at in range(1, len(data), 211):
        hurt = bytearray(data)
        hurt[at] ^= 0x10
        r = Run("-q", data=bytes(hurt))
        equal(r.status, 1, f"status with byte {at} changed")
        offsets = [(int(m[1]), int(m[2])) for m in
                   re.finditer(r"offset (\d+): (\d+) bytes skipped: ", r.err)]
        expect(any(a <= at <= a + n for a, n in offsets), f"byte {at} is in none of {offsets}: {r.err}")
        events = sum("---" not in line for line in r.lines)
        lost = sum(int(m[1]) for m in re.finditer(r"--- (\d+) events? damaged", r.out))
        equal(events + lost, 2000, f"events and lost ones with byte {at} changed")


def foreign_and_empty_input_have_status_1(_):
    for data in (b"", b"\0" * 1000, b"\x7fELF" * 5000, os.urandom(100000), b"hello\n"):
        r = Run("-q", data=data)
        equal((r.status, r.out), (1, ""), f"status and output of {data[:8]!r}")
        expect("no KTR stream" in r.err, r.err)


def format_stream_is_the_input_itself(tmp):
    path, copy = tmp / "sample.ktr", tmp / "copy.ktr"
    for data, status in ((gen("sample"), 0), (gen("sample")[:-20], 1)):
        path.write_bytes(data)
        r = Run("--format", "stream", "-o", str(copy), str(path))
        equal((r.status, r.out), (status, ""), "status and output")
        expect(copy.read_bytes() == data, "the stream is not the input's")


def usage_errors_have_status_2(tmp):
    path = tmp / "sample.ktr"
    path.write_bytes(gen("sample"))
    for args, want in ((["--class", "SCHD"], 'no class "SCHD"; did you mean SCHED?'),
                       (["--cpu", "99"], "CPUs are numbered 0 to 63"),
                       (["--since", "soon"], "expected a time"),
                       (["--since", "1.5.2"], "expected a time"),
                       (["--format", "xml"], "expected text, jsonl"),
                       (["--nonsense"], "try --help"),
                       (["-N", "kernel"], "expected -M"), (["-e", "kernel"], "expected -M"), (["-m", "/nonexistent"], "No such file"), (["-M", "core", "-i", "file"], "expected no other"),
                       (["-M", "/nonexistent"], "No such file"), (["-M", str(path)], "expected an ELF core"),
                       (["report", "--format", "stream"], "text or jsonl"),
                       (["report", "lcok"], 'no report "lcok"; expected cpu thread'),
                       (["report", "cpu,", "--rows", "x"], "expected 0 to 4096"),
                       (["report", "cpu", "--class", "SCHED"], "times, not events"),
                       (["report", "-l"], "-l has no end"), (["-c", "report", "cpu"], "before all options"),
                       ([str(path), "another"], "one input file")):
        r = Run(*([] if args[0] == "report" else ["-q"]), *args, *([] if str(path) in args or args[0] in ("-M", "-m") else [str(path)]))
        equal((r.status, r.out), (2, ""), f"status and output of {args}")
        expect(want in r.err, f"{args}: {r.err}")
    for missing in (tmp / "missing", tmp):
        r = Run(str(missing))
        equal((r.status, r.out), (2, ""), f"status and output of {missing}")
        expect(r.err.startswith(f"ktrdump: {missing}: "), r.err)
    r = Run("-o", str(tmp / "no" / "such"), str(path))
    equal(r.status, 2, "status of an output that cannot be opened")
    r = Run("--help")
    equal((r.status, r.err), (0, ""))
    expect(r.out.startswith("usage: ktrdump "), r.out)


def full_output_has_status_2(tmp):
    path = tmp / "mix.ktr"
    path.write_bytes(gen("mix", "5000"))
    r = Run("-o", "/dev/full", str(path))
    equal(r.status, 2, "status")
    expect("cannot write: No space left" in r.err, r.err)
    with open("/dev/full", "wb") as full:  # a job of its own, as in a shell at a terminal
        p = subprocess.run([KTRDUMP, str(path)], stdout=full, stderr=subprocess.PIPE, start_new_session=True, timeout=DEADLINE_S, check=False)
    equal((p.returncode, p.stderr), (2, b"ktrdump: cannot write: No space left on device\n"), "in a job of its own")


def follows_a_file_that_grows(tmp):
    path = tmp / "growing.ktr"
    data = gen("boots")
    half = len(data) // 2
    path.write_bytes(data[:half])
    with subprocess.Popen([KTRDUMP, "-ql", "-i", str(path)], stdout=subprocess.PIPE) as p:
        got = b""

        def wait_for(lines):
            nonlocal got
            deadline = Deadline(DEADLINE_S)
            while got.count(b"\n") < lines:
                expect(deadline.tick() > 0, f"{lines} lines did not come: {got!r}")
                if select.select([p.stdout], [], [], 1)[0]:
                    got += os.read(p.stdout.fileno(), 65536)
        wait_for(10)
        with open(path, "ab") as f:
            f.write(data[half:])
        wait_for(20)
        p.kill()
    equal(got.decode().splitlines(), Run("-q", data=data).lines)


def a_file_that_is_made_anew_is_followed_from_its_start(tmp):
    path = tmp / "anew.ktr"
    first, second = gen("mix", "500"), gen("sample")
    path.write_bytes(first)
    with subprocess.Popen([KTRDUMP, "-ql", "-i", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        for _ in Run("-q", data=first).lines:
            p.stdout.readline()
        path.write_bytes(b"")
        said = p.stderr.readline().decode()
        path.write_bytes(second)
        lines = [p.stdout.readline().decode().split(maxsplit=1)[1] for _ in Run("-q", data=second).lines]
        p.kill()
    expect("it was made anew" in said, said)
    equal(lines, [line.split(maxsplit=1)[1] + "\n" for line in Run("-q", data=second).lines], "the second run")


def output_never_replaces_an_input(tmp):
    path = tmp / "in.ktr"
    path.write_bytes(gen("sample"))
    before = path.read_bytes()
    with open(path, "rb") as source:
        done = subprocess.run([KTRDUMP, "-o", path], stdin=source, capture_output=True, timeout=DEADLINE_S, check=False)
    expect(done.returncode == 2 and b"it is an input: expected another file" in done.stderr, done)
    r = Run("report", "thread", "-N", str(path), "-o", str(path), data=gen("sample"))
    expect(r.status == 2 and "it is an input" in r.err, r.err)
    equal(path.read_bytes(), before, "the file")


def each_format_that_is_lines_goes_where_o_says(tmp):
    for form in ("text", "jsonl", "stream", "graph"):
        out = tmp / form
        r = Run("--format", form, "-o", str(out), data=gen("mix", "500"))
        equal((r.status, r.out), (0, ""), f"{form}: status and standard output")
        expect(out.stat().st_size > 0, f"{form}: nothing was written")


def a_file_of_ktrace_may_come_in_pieces(_):
    data = b"".join(ktrace_records.one_of_each())
    whole = Run("-q", data=data)
    with subprocess.Popen([KTRDUMP, "-q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        p.stdin.write(data[:20])
        p.stdin.flush()
        left, deadline = 1, Deadline(DEADLINE_S)
        while left > 0:  # until it has read them
            left = struct.unpack("i", fcntl.ioctl(p.stdin, termios.FIONREAD, bytes(4)))[0]
            expect(p.poll() is None and deadline.tick() > 0, "it has not read the first piece")
        out, _ = p.communicate(data[20:], timeout=DEADLINE_S)
    equal((p.returncode, out.decode()), (whole.status, whole.out), "in pieces and at once")


def numbers_of_threads_are_decimal(_):
    data = gen("mix", "2000")
    tid = max(json.loads(line).get("tid", 0) for line in Run("--format", "jsonl", data=data).lines)
    wanted = Run("-q", "--thread", str(tid), data=data).lines
    expect(wanted, f"thread {tid} has no event")
    for word in (f"0{tid}", hex(tid)):
        equal(Run("-q", "--thread", word, data=data).lines, wanted, f"--thread {word}")


def names_of_threads_keep_to_their_line(_):
    name = "a\n\x1b]0;x\x07\x9b2J\u015b"  # U+009B is a control of a terminal, and the byte 9b a part of U+015B
    shown = r"a\n\x1b]0;x\x07\xc2\x9b2J" + "\u015b"
    frames = [wire.site(1, "funcgraph entry: %p", 1), wire.thread(7, name), wire.thread(8, "b"),
              *(wire.batch(0, n, 1000 * n, tid, [(1, 0, (n,))]) for n, tid in ((1, 7), (2, 8), (3, 7)))]
    data = wire.stream(*frames)
    r = Run("-qH", data=data)
    expect(any(f" 7 {shown} " in line for line in r.lines) and "\x1b" not in r.out, r.out)
    r = Run("--format", "graph", data=data)
    expect(f" 0)  {shown}-7  =>  b-8\n" in r.out and f" 0)  b-8  =>  {shown}-7\n" in r.out, r.out)
    expect("\x1b" not in r.out, r.out)


TESTS = [prints_freebsd_columns, number_on_the_cpu_has_a_column, prints_index_and_text_alone_without_options, merges_cpus_by_time,
         prints_strings_idents_and_bad_pointers, relative_times_and_ticks, ticks_come_newest_first_as_freebsds_do, filters_events, empty_result_says_why,
         jsonl_has_exactly_the_fields, data_are_texts_and_their_parts_are_no_events, gaps_are_lines_of_their_own, gaps_say_why_in_text_and_jsonl_alike,
         times_of_any_size_are_printed, report_counts_classes_sites_cpus_and_loss,
         stream_is_small, reads_files_pipes_and_dash, several_streams_in_a_file_decode,
         live_stream_ends_clean_after_a_pass, stream_in_the_log_of_a_console_is_found, truncated_input_has_status_1_and_prints_what_is_there,
         flipped_bits_have_status_1_and_are_named_by_offset, foreign_and_empty_input_have_status_1,
         format_stream_is_the_input_itself, usage_errors_have_status_2, full_output_has_status_2, follows_a_file_that_grows,
         a_file_that_is_made_anew_is_followed_from_its_start, output_never_replaces_an_input, each_format_that_is_lines_goes_where_o_says,
         a_file_of_ktrace_may_come_in_pieces, numbers_of_threads_are_decimal, names_of_threads_keep_to_their_line]


def main():
    failed = 0
    print(f"1..{len(TESTS)}")
    for number, test in enumerate(TESTS, 1):
        try:
            with tempfile.TemporaryDirectory() as tmp:
                test(pathlib.Path(tmp))
            print(f"ok {number} - {test.__name__}")
        except (AssertionError, OSError, subprocess.SubprocessError, LookupError, ValueError) as e:
            failed += 1
            for line in str(e).splitlines():
                print(f"# {line}")
            print(f"not ok {number} - {test.__name__}")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
