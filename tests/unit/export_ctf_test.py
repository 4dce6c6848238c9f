#!/usr/bin/python3
"""export_ctf_test.py - a CTF export, as babeltrace2 and the LTTng analyses read it, says what jsonl says.

Prints TAP. The programs are build/host/ktrdump and build/host/unit/ktr_gen, or $KTRDUMP and $KTR_GEN.
"""
import itertools
import json
import os

import bt2

import export_help as x
from export_help import equal, expect

ANALYSES = ("lttng-cputop-mi", "lttng-schedtop-mi", "lttng-irqstats-mi", "lttng-syscallstats-mi", "lttng-iousagetop-mi")
ANALYSED = ("sample", "guest-200", "loss", "damaged", "calls-60")  # all states of threads, calls and interrupts, with and without gaps


def value_of(v):
    if isinstance(v, bt2._StringFieldConst):
        return str(v) if len(v) > 0 else ""  # babeltrace2 2.0.4 has a former event's text in an empty one
    if isinstance(v, bt2._ArrayFieldConst):
        return bytes(int(c) for c in v).split(b"\0")[0].decode("utf-8", "surrogateescape")
    return int(v)


def read(path):
    """(own events, LTTng's events, {cpu: discarded}) of a trace, read by babeltrace2's library."""
    own, lttng, lost = [], [], {}
    if not list(path.glob("kernel/channel0_*")):
        return own, lttng, lost
    for m in bt2.TraceCollectionMessageIterator(str(path)):
        if isinstance(m, bt2._DiscardedEventsMessageConst):
            cpu = int(m.stream.name.rsplit("_", 1)[1])
            lost[cpu] = lost.get(cpu, 0) + m.count
        if isinstance(m, bt2._EventMessageConst):
            e = m.event
            event = {"cpu": int(e.packet.context_field["cpu_id"]), "ns": m.default_clock_snapshot.ns_from_origin,
                     "tid": int(e.common_context_field["tid"]), "thread": value_of(e.common_context_field["procname"]),
                     "name": e.cls.name, "uri": e.cls.emf_uri,
                     "fields": {name: value_of(v) for name, v in e.payload_field.items()}}
            (own if e.cls.name.startswith("ktr:") else lttng).append(event)
    return own, lttng, lost


def same_own(found, row, what):
    for key in ("cpu", "ns"):
        equal(found[key], row[key], f"{what}: {key}")
    equal(found["tid"], x.linux_tid(row["tid"], row["thread"]), f"{what}: tid")
    expect(x.same_text(found["thread"], x.comm(row)), f"{what}: thread {found['thread']!r}, expected {x.comm(row)!r}")
    equal(found["uri"], f"file:{row['file']}?line={row['line']}&func={row['func']}", f"{what}: uri")
    equal(list(found["fields"]), row["names"], f"{what}: names")
    for name, expected in zip(row["names"], row["args"]):
        value = found["fields"][name]
        if isinstance(expected, str) and expected.startswith("0x") and isinstance(value, int):
            expected = int(expected, 16)
        if isinstance(value, str) and not isinstance(expected, str):
            expected = "(null)" if expected in (0, None) else f"(bad {expected:#x})"
        expect(x.same_text(value, expected) if isinstance(value, str) else value == expected,
               f"{what}: {name}: found {value!r}, expected {expected!r}")


def lttng_name(name):
    return f"syscall_{name.replace('enter_', 'entry_', 1)}" if name.startswith(("enter_", "exit_")) else name


def same_lttng(found, expected):
    equal(len(found), len(expected), "LTTng's events")
    by_place = sorted(found, key=lambda e: (e["ns"], e["cpu"]))
    for f, (cpu, ns, name, fields) in zip(by_place, sorted(expected, key=lambda e: (e[1], e[0]))):
        what = f"{name} at {ns} on cpu {cpu}"
        equal((f["cpu"], f["ns"], f["name"].replace("_kestrel_", "_")), (cpu, ns, lttng_name(name)), what)
        equal(f["uri"], None, f"{what}: uri")
        for field, value in fields.items():
            got = f["fields"][field]
            expect(x.same_text(got, value) if isinstance(value, str) else got == value,
                   f"{what}: {field}: found {got!r}, expected {value!r}")
        if name == "sched_switch" and (fields["prev_tid"] > 0 or f["tid"] != fields["next_tid"]):  # 0 also stands for an unknown thread
            equal(f["tid"], fields["prev_tid"], f"{what}: whose it is")


def quiet(err, what):
    """Standard error may only contain notices of discarded events."""
    noise = [line for line in err.splitlines() if line and "Tracer discarded" not in line]
    equal(noise, [], f"{what}: standard error")


def analysis(name, path):
    """{class: rows} of a table of an LTTng analysis. Tops show all rows, not only ten."""
    status, out, err = x.run("/usr/bin/" + name, *(["--limit", "100000"] if "top" in name else []), path)
    quiet(err, name)
    result = json.loads(out.splitlines()[-1])
    equal((status, result.get("error-message")), (0, None), f"{name}: status and error")
    tables = {}
    for table in result["results"]:
        key = table["class"] if isinstance(table["class"], str) else table["class"]["inherit"]
        tables.setdefault(key, []).append(table)
    return tables


def shares(rows):
    """{tid: running time / time of the trace}, computed from the switches, without idle threads."""
    events = x.events_of(rows)
    begin, end, on, total = events[0]["ns"], events[-1]["ns"], {}, {}
    for cpu, ns, name, fields in x.linux_events(rows):
        if name != "sched_switch":
            continue
        tid, since = on.get(cpu, (fields["prev_tid"], begin))
        total[tid] = total.get(tid, 0) + ns - since
        on[cpu] = (fields["next_tid"], ns)
    for tid, since in on.values():
        total[tid] = total.get(tid, 0) + end - since
    return {tid: ns / (end - begin) for tid, ns in total.items() if tid > 0}


def calls(rows):
    """{system call: number} of the calls that both began and ended in a thread that was switched to."""
    on, begun, count = {}, {}, {}
    for cpu, _, name, fields in x.linux_events(rows):
        if name == "sched_switch":
            on[cpu] = fields["next_tid"] or None
        elif name == "sched_process_fork":
            begun.pop(fields["child_tid"], None)
        elif on.get(cpu) is not None and name.startswith("enter_"):
            begun[on[cpu]] = name[6:]
        elif on.get(cpu) is not None and name.startswith("exit_") and on[cpu] in begun:
            call = begun.pop(on[cpu])
            count[call] = count.get(call, 0) + 1
    return count


def interrupts(rows):
    """{number: [durations]} of interrupts that both began and ended."""
    on, found = {}, {}
    for cpu, ns, name, fields in x.linux_events(rows):
        if name == "irq_handler_entry":
            on[cpu] = (fields["irq"], ns)
        elif name == "irq_handler_exit":
            irq, since = on.pop(cpu, (None, 0))
            if irq == fields["irq"]:
                found.setdefault(irq, []).append(ns - since)
    return found


def analyses_say(path, rows):
    top = analysis(ANALYSES[0], path)
    sched = analysis(ANALYSES[1], path)
    irqs = analysis(ANALYSES[2], path)
    syscalls = analysis(ANALYSES[3], path)
    analysis(ANALYSES[4], path)
    found = {row[0]["nr"]: [row[1]["value"], row[2]["value"], row[4]["value"]]
             for table in irqs.get("hard-stats", []) for row in table["data"] if row[1]["value"] > 0}
    equal(found, {irq: [len(d), min(d), max(d)] for irq, d in interrupts(rows).items()}, "irqstats: count, min, max")
    found = {}
    for row in itertools.chain(*(table["data"] for table in syscalls.get("per-tid", []))):
        name = row[0]["name"].replace("kestrel_", "")
        found[name] = found.get(name, 0) + row[1]["value"]
    equal(found, calls(rows), "syscallstats: counts")
    if not x.consistent(rows):
        return  # cputop counts a thread as running until the next event about it, perhaps on two CPUs at once
    found = {row[0]["tid"]: row[3]["value"] for table in top.get("per-process", []) for row in table["data"]
             if row[0]["tid"] > 0}
    expected = shares(rows) if rows else {}
    equal(sorted(found), sorted(expected), "cputop: threads")
    for tid, share in expected.items():
        expect(abs(found[tid] - share) < 1e-9, f"cputop: tid {tid}: {found[tid]}, expected {share}")
    for row in itertools.chain(*(table["data"] for table in sched.get("top", []))):
        equal(row[2]["value"], row[1]["value"] - row[0]["value"], "schedtop: latency")


def check(path, tmp):
    """A stream of any kind: its CTF export has the contents of its jsonl."""
    out, rows = tmp / "ctf", x.jsonl(path)
    x.export("ctf", path, out)
    own, lttng, lost = read(out)
    right = x.named_events(rows)
    equal(lost, x.lost_of(rows), "missing events by CPU")
    equal(len(own), len(right), "events")
    for i, (f, r) in enumerate(zip(sorted(own, key=lambda e: (e["ns"], e["cpu"])),
                                   sorted(right, key=lambda e: (e["ns"], e["cpu"])))):
        same_own(f, r, f"event {i} {r['text']!r}")
    same_lttng(lttng, x.linux_events(rows))
    status, text, err = x.run("babeltrace2", out)
    equal(status, 0, "babeltrace2")
    quiet(err, "babeltrace2")
    if path.stem in ANALYSED:
        analyses_say(out, rows)
    return text


def every_stream_is_what_jsonl_says(tmp):
    x.every_stream(check, tmp)


def filtered_stream_has_what_passed(tmp):
    path = x.gen(tmp, "guest 200")
    x.export("ctf", path, tmp / "cpu0", "--cpu", "0")
    own, lttng, _ = read(tmp / "cpu0")
    rows = x.jsonl(path)
    equal(len(own), len([r for r in rows if r["cpu"] == 0]), "events of CPU 0")
    same_lttng(lttng, [e for e in x.linux_events(rows) if e[0] == 0])


def gap_of_hours_keeps_its_time(tmp):
    """An event more than 2^27 ns after the last one needs no special header."""
    path = x.gen(tmp, "guest 200")
    rows = x.jsonl(path)
    x.export("ctf", path, tmp / "out")
    text = x.run("babeltrace2", "--clock-seconds", tmp / "out")[1].splitlines()
    last = rows[-1]["ns"]
    expect(text[-1].startswith(f"[{last // 10**9}.{last % 10**9:09d}]"), text[-1])


def analyses_fail_on_any_trace_without_events(tmp):
    """babeltrace 1, which they use, cannot seek to the last event of a trace that has none. The same happens with
    LTTng's traces."""
    x.export("ctf", x.gen(tmp, "empty"), tmp / "empty")
    equal(x.run("babeltrace2", tmp / "empty"), (0, "", ""), "babeltrace2 of an empty trace")
    status, out, err = x.run("/usr/bin/lttng-cputop-mi", tmp / "empty")
    equal((status, err), (1, ""), "lttng-cputop of an empty trace")
    expect("multiple iterators" in out, out)


def export_is_whole_or_not_there(tmp):
    sample, boots = x.gen(tmp, "sample"), x.gen(tmp, "boots")
    out, here = tmp / "out", tmp / "out/there"
    here.mkdir(parents=True)
    for args, want in ((["-o", here, "-i", sample], "expected a new name, for a directory"),
                       (["-o", out / "no" / "such", "-i", sample], "No such file or directory"),
                       (["-o", "/dev/full", "-i", sample], "expected a new name"),
                       (["-o", out / "boots", "-i", boots], "more than one boot"),
                       (["-i", sample], "expected -o"),
                       (["-l", "-o", out / "x", "-i", sample], "no end")):
        status, _, err = x.ktrdump("--format", "ctf", *args)
        equal(status, 2, f"status of {args}")
        expect(want in err, f"{args}: {err}")
    equal(sorted(p.name for p in out.iterdir()), ["there"], "what was left over")
    noise = tmp / "noise.ktr"
    noise.write_bytes(os.urandom(1000))
    equal(x.ktrdump("--format", "ctf", "-o", tmp / "noise", "-i", noise)[0], 1, "status of noise")
    equal(read(tmp / "noise"), ([], [], {}), "events of noise")


if __name__ == "__main__":
    x.main([every_stream_is_what_jsonl_says, filtered_stream_has_what_passed, gap_of_hours_keeps_its_time,
            analyses_fail_on_any_trace_without_events, export_is_whole_or_not_there])
