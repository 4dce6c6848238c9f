#!/usr/bin/python3
"""export_test.py - what other tools read of ktrdump's exports is what ktrdump's own jsonl says, event by event.

Prints TAP. The programs are build/host/ktrdump and build/host/unit/ktr_gen, or $KTRDUMP and $KTR_GEN.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import bt2

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KTRDUMP = os.environ.get("KTRDUMP", str(ROOT / "build/host/ktrdump"))
KTR_GEN = os.environ.get("KTR_GEN", str(ROOT / "build/host/unit/ktr_gen"))
DEADLINE_S = 60
# Two parameters may have one name, ours may be cut: then values are compared in order.
STREAMS = (("sample",), ("mix", "20000"), ("loss",), ("torn",), ("truncated",), ("live",))


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def equal(found, expected, what="value"):
    expect(found == expected, f"{what}: found {found!r}, expected {expected!r}")


def ktrdump(*args, data=None):
    p = subprocess.run([KTRDUMP, *map(str, args)], input=data, capture_output=True, timeout=DEADLINE_S, check=False)
    return p.returncode, p.stdout.decode(), p.stderr.decode("utf-8", "replace")


def gen(*args):
    return subprocess.run([KTR_GEN, *args], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout


def jsonl(data):
    """(events, {cpu: how many are missing})."""
    rows = [json.loads(line) for line in ktrdump("--format", "jsonl", "-", data=data)[1].splitlines()]
    lost = {}
    for row in rows:
        if "gap" in row:
            lost[row["cpu"]] = lost.get(row["cpu"], 0) + row["gap"]
    return [row for row in rows if "gap" not in row], lost


def ctf(path):
    """The same of a CTF directory, as babeltrace2 reads it."""
    events, lost = [], {}
    for m in bt2.TraceCollectionMessageIterator(str(path)):
        if isinstance(m, bt2._DiscardedEventsMessageConst):
            cpu = int(m.stream.name.rsplit("_", 1)[1])
            lost[cpu] = lost.get(cpu, 0) + m.count
        if isinstance(m, bt2._EventMessageConst):
            e = m.event
            events.append({"cpu": int(e.packet.context_field["cpu_id"]),
                           "ns": m.default_clock_snapshot.ns_from_origin,
                           "tid": int(e.common_context_field["tid"]),
                           "thread": str(e.common_context_field["procname"]),
                           "names": list(e.payload_field),
                           "args": [v if isinstance(v, bt2._StringFieldConst) else int(v)
                                    for v in e.payload_field.values()]})
    for e in events:
        e["args"] = [str(v) if not isinstance(v, int) else v for v in e["args"]]
    return events, lost


def same(data, path):
    right, lost = jsonl(data)
    found, missing = ctf(path)
    equal(len(found), len(right), "events")
    equal(missing, lost, "missing events by CPU")
    for i, (f, r) in enumerate(zip(found, right)):
        for key in ("cpu", "ns", "tid", "names"):
            equal(f[key], r[key], f"event {i}: {key}")
        equal(f["thread"], (r["thread"] or "")[:15], f"event {i}: thread")
        for name, a, b in zip(r["names"], f["args"], r["args"]):
            if isinstance(b, str) and b.startswith("0x") and isinstance(a, int):
                b = int(b, 16)
            if isinstance(a, str) and not isinstance(b, str):
                b = "(null)" if b in (0, None) else f"(bad {b:#x})"
            equal(a, b, f"event {i} {r['text']!r}: {name}")


def ctf_says_what_jsonl_says(tmp):
    for kind in STREAMS:
        data, out = gen(*kind), tmp / "-".join(kind)
        status, _, err = ktrdump("--format", "ctf", "-o", out, "-", data=data)
        equal(status, ktrdump("--format", "jsonl", "-", data=data)[0], f"{kind}: status, as for jsonl; {err}")
        same(data, out)
        p = subprocess.run(["babeltrace2", out], capture_output=True, timeout=DEADLINE_S, check=False)
        equal(p.returncode, 0, f"{kind}: babeltrace2")
        noise = [line for line in p.stderr.decode().splitlines() if "discarded" not in line and line]
        equal(noise, [], f"{kind}: babeltrace2's standard error")


ROW = re.compile(r"^ *(.*)-(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): (\S+): *(.*)$")
DROPPED = re.compile(r"^CPU:(\d+) \[(\d+) EVENTS DROPPED\]$")


def tracedat(path):
    """The events of a trace.dat, as trace-cmd reports them, and {cpu: how many it says were dropped}."""
    p = subprocess.run(["trace-cmd", "report", "-t", "-i", path], capture_output=True, timeout=DEADLINE_S, check=False)
    equal((p.returncode, p.stderr), (0, b""), "trace-cmd report: status and standard error")
    events, lost = [], {}
    for line in p.stdout.decode().splitlines()[1:]:
        row, dropped = ROW.match(line), DROPPED.match(line)
        expect(row or dropped, f"a line that is neither event nor loss: {line!r}")
        if dropped:
            cpu = int(dropped[1])
            lost[cpu] = lost.get(cpu, 0) + int(dropped[2])
        else:
            comm, tid, cpu, s, ns, _, text = row.groups()
            events.append((int(cpu), int(s) * 10**9 + int(ns), int(tid), comm, text.rstrip()))
    return events, lost


def tracedat_says_what_jsonl_says(tmp):
    for kind in STREAMS:
        data, out = gen(*kind), tmp / "-".join(kind)
        status, _, err = ktrdump("--format", "tracedat", "-o", out, "-", data=data)
        equal(status, ktrdump("--format", "jsonl", "-", data=data)[0], f"{kind}: status, as for jsonl; {err}")
        right, lost = jsonl(data)
        found, dropped = tracedat(out)
        equal(len(found), len(right), f"{kind}: events")
        for f, r in zip(found, right):
            # Threads have one name there, the last.
            equal(f[:3], (r["cpu"], r["ns"], r["tid"]), f"{kind}: event")
            # Control characters are as in ktrdump's text; libtraceevent knows no %c: it is a number there.
            text = r["text"].strip().replace("\t", "\\t").replace("\n", "\\n")
            if "%c" in r["fmt"]:
                text = text.replace("mode r", f"mode {ord('r')}")
            equal(f[4], text, f"{kind}: text")
        # What is lost behind the last event of a CPU has no page to stand in.
        for cpu, n in dropped.items():
            expect(n <= lost.get(cpu, 0), f"{kind}: cpu {cpu}: {n} dropped, expected {lost.get(cpu, 0)} at most")
        if kind[0] in ("loss", "torn"):
            equal(dropped, lost, f"{kind}: dropped events by CPU")
        p = subprocess.run(["trace-cmd", "dump", "--validate", "-i", out], capture_output=True, timeout=DEADLINE_S,
                           check=False)
        equal((p.returncode, p.stderr), (0, b""), f"{kind}: trace-cmd dump --validate")
        expect(b"is a valid trace-cmd file" in p.stdout, f"{kind}: {p.stdout!r}")


def ctf_of_a_filtered_stream_has_what_passed(tmp):
    data = gen("mix", "5000")
    status, _, err = ktrdump("--format", "ctf", "--cpu", "0", "-o", tmp / "cpu0", "-", data=data)
    equal(status, 0, err)
    right = [e for e in jsonl(data)[0] if e["cpu"] == 0]
    found = ctf(tmp / "cpu0")[0]
    equal(len(found), len(right), "events")
    expect(all(e["cpu"] == 0 for e in found), "an event of another CPU")


def an_export_is_whole_or_not_there(tmp):
    data = gen("sample")
    out = tmp / "there"
    out.mkdir()
    status, _, err = ktrdump("--format", "ctf", "-o", out, "-", data=data)
    equal(status, 2, "status of a name that is taken")
    expect("expected the name of a directory to be made" in err, err)
    status, _, err = ktrdump("--format", "ctf", "-o", tmp / "no" / "such", "-", data=data)
    equal(status, 2, "status of a directory that cannot be made")
    expect("No such file or directory" in err, err)
    status, _, err = ktrdump("--format", "ctf", "-o", tmp / "boots", "-", data=gen("boots"))
    equal(status, 2, "status of two boots")
    expect("more than one boot" in err, err)
    for args, want in ((["--format", "ctf"], "expected -o"), (["--format", "ctf", "-l", "-o", "x"], "no end"),
                       (["--format", "ctf", "--stats", "-o", "x"], "text only")):
        status, _, err = ktrdump(*args, "-", data=data)
        equal(status, 2, f"status of {args}")
        expect(want in err, f"{args}: {err}")
    equal(sorted(p.name for p in tmp.iterdir()), ["there"], "what was left behind")
    # Nothing but noise is damage, and an empty trace; both are readable.
    status, _, err = ktrdump("--format", "ctf", "-o", tmp / "noise", "-", data=os.urandom(1000))
    equal(status, 1, "status of noise")
    equal(ctf(tmp / "noise"), ([], {}), "events of noise")


def main():
    tests = [ctf_says_what_jsonl_says, tracedat_says_what_jsonl_says, ctf_of_a_filtered_stream_has_what_passed, an_export_is_whole_or_not_there]
    print(f"TAP version 13\n1..{len(tests)}")
    failed = 0
    for n, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as tmp:
            try:
                test(pathlib.Path(tmp))
                print(f"ok {n} - {test.__name__}")
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                print(f"not ok {n} - {test.__name__}\n# {type(e).__name__}: {e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
