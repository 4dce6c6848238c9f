#!/usr/bin/python3
"""export_tracedat_test.py - a trace.dat export, as trace-cmd reports it, has the contents of jsonl.

Prints TAP. The programs are build/host/ktrdump and build/host/unit/ktr_gen, or $KTRDUMP and $KTR_GEN.
"""
import pathlib
import re

import export_help as x
from export_help import equal, expect

ROW = re.compile(r" *(.*)-(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): (\S+): *(.*)", re.S)
DROPPED = re.compile(r"CPU:(\d+) \[(\d+) EVENTS DROPPED\]")
LTTNG_FIELDS = {"parent_tid": "parent_pid", "child_tid": "child_pid", "prev_tid": "prev_pid", "next_tid": "next_pid",
                "tid": "pid"}
# `trace-cmd convert` also looks for the clock of this machine's own tracer, which only root can read.
OF_THIS_MACHINE = ("libtracecmd: Operation not permitted", "  Could not find clock, set to 'local'")


def tracefs():
    return " tracefs " in pathlib.Path("/proc/self/mounts").read_text()


MOUNTED = tracefs()
TARGETS = ("sched_waking", "sched_wakeup", "sched_wakeup_new")


def report(path, *args):
    """(events, {cpu: dropped}), as reported by trace-cmd. A row without an event's beginning continues the row
    before."""
    status, out, err = x.trace_cmd("report", "-t", *args, "-i", path)
    equal((status, err), (0, ""), f"trace-cmd report {args}: status and standard error")
    rows, events, lost = [], [], {}
    for line in out.split("\n")[1:-1]:
        if ROW.match(line) or DROPPED.fullmatch(line):
            rows.append(line)
        else:
            expect(rows and "UNKNOWN" not in line, f"a line that is neither event nor loss: {line!r}")
            rows[-1] += "\n" + line
    for row in rows:
        dropped = DROPPED.fullmatch(row)
        if dropped:
            lost[int(dropped[1])] = lost.get(int(dropped[1]), 0) + int(dropped[2])
            continue
        comm, tid, cpu, s, ns, name, text = ROW.fullmatch(row).groups()
        events.append({"cpu": int(cpu), "ns": int(s) * 10**9 + int(ns), "tid": int(tid), "thread": comm, "name": name,
                       "text": text})
    return events, lost


def split(events):
    """Splits events into our own, Linux's, and those that only report a loss."""
    def is_own(e):
        return re.search(r"_\d+$", e["name"]) is not None
    return ([e for e in events if is_own(e)], [e for e in events if not is_own(e) and e["name"] != "events_lost"],
            [e for e in events if e["name"] == "events_lost"])


def fields(text, names):
    """{name: text} of a row of report -R."""
    if not names:
        return {}
    m = re.match(" ".join(f"{re.escape(name)}=(.*)" for name in names) + "$", text, re.S)
    expect(m, f"{text!r}: expected the fields {names}")
    return dict(zip(names, m.groups()))


def same_value(found, expected, what):
    if found.startswith("ARRAY["):  # unprintable text
        found = bytes.fromhex(found[6:-1].replace(", ", "")).rstrip(b"\0").decode("utf-8", "surrogateescape")
    if isinstance(expected, int):
        if found not in ("(null)", f"(bad {expected:#x})"):
            equal(int(found, 0) & 2**64 - 1, expected & 2**64 - 1, what)
    elif expected is None:
        equal(found, "(null)", what)
    elif not found.startswith("(bad ") and not (expected.startswith("0x") and found.startswith("0x")):
        expect(x.same_text(found.rstrip(), expected.rstrip()), f"{what}: found {found!r}, expected {expected!r}")
    else:
        equal(int(found.strip("(bad )"), 16), int(expected, 16), what)


def text_of(row):
    """What trace-cmd prints for an event: control characters of the format are escaped, and a %c is a number."""
    text = row["text"]
    if "%c" in row["fmt"]:
        text = text.replace("mode r", f"mode {ord('r')}")
    return text.rstrip()


def plain(text):
    """Text without what readers print in different ways: control characters, raw or escaped, and bytes that are not
    UTF-8."""
    text = re.sub(r"\\[nt]|\\x[0-9a-f]{2}|[\x00-\x1f\x7f]", "", text)
    return "".join(c for c in text if c.isascii()) if re.search("[\ufffd\udc80-\udcff]", text) else text


def last_names(rows):
    """The name of each thread by the last event that names it, its own or another thread's."""
    model = x.Model()
    for row in rows:
        model.of(row)
    return model.names


def same_own(found, raw, row, names, what):
    for key in ("cpu", "ns"):
        equal(found[key], row[key], f"{what}: {key}")
    equal(found["tid"], x.linux_tid(row["tid"], row["thread"]), f"{what}: pid")
    name = "<idle>" if found["tid"] == 0 else names.get(row["tid"]) or "<...>"
    equal(plain(found["thread"].replace("?", "")), plain(name.replace("?", "")), f"{what}: comm")
    name = re.sub(r"\W", "_", f"{row['func']}_{row['line']}")
    expect(re.fullmatch(name + r"(_\d+)?", found["name"]), f"{what}: {found['name']}")
    if "\ufffd" not in row["text"] and "\udcff" not in row["text"]:
        equal(plain(found["text"]).rstrip(), plain(text_of(row)).rstrip(), f"{what}: text")
    values = fields(raw["text"], row["names"])
    for name, expected in zip(row["names"], row["args"]):
        same_value(values[name], expected, f"{what}: {name}")


def is_call(e):
    return (e["name"] if isinstance(e, dict) else e[2]).startswith(("funcgraph_", "function"))


def linux_name(name):
    return f"sys_{name}" if name.startswith(("enter_", "exit_")) else name


def same_linux(found, raw, expected):
    equal(len(found), len(expected), "Linux's events")
    by_place = (sorted(events, key=lambda e: (e["ns"], e["cpu"])) for events in (found, raw))
    for f, r, (cpu, ns, name, values) in zip(*by_place, sorted(expected, key=lambda e: (e[1], e[0]))):
        what = f"{name} at {ns} on cpu {cpu}"
        equal((f["cpu"], f["ns"], f["name"].replace("_kestrel_", "_")), (cpu, ns, linux_name(name)), what)
        for field, value in values.items():
            field = LTTNG_FIELDS.get(field, field)
            m = re.search(rf"(?:^| ){field}=(.*?)(?= [a-z_0-9]+=|$)", r["text"], re.S)
            same_value(m[1], value, f"{what}: {field}")
        if name == "sched_switch" and (values["prev_tid"] > 0 or f["tid"] != values["next_tid"]):  # 0 also stands for an unknown thread
            equal(f["tid"], values["prev_tid"], f"{what}: whose it is")
        if name.startswith("exit_"):
            equal(f["text"].rstrip(), f"ret: {values['ret']}", f"{what}: text")
        if name == "irq_handler_exit":
            equal(f["text"].rstrip(), f"irq={values['irq']} ret={values['ret']}", f"{what}: text")
        # Plugins of trace-cmd print these, not our formats.
        if name == "sched_switch":
            expect(" ==> " in f["text"] and f":{values['next_tid']} [{values['next_prio']}]" in f["text"], f"{what}: {f['text']}")
        if name in ("sched_wakeup", "sched_wakeup_new"):
            expect(f":{values['tid']} [{values['prio']}] CPU:" in f["text"], f"{what}: {f['text']}")


def valid(path):
    status, out, err = x.trace_cmd("dump", "--validate", "-i", path)
    equal((status, err), (0, ""), "trace-cmd dump --validate: status and standard error")
    expect("is a valid trace-cmd file" in out, out)


def check(path, tmp):
    """A stream of any kind: its trace.dat has the contents of its jsonl."""
    out, rows = tmp / "trace.dat", x.jsonl(path)
    x.export("tracedat", path, out)
    events, dropped = report(out)
    raw_report = report(out, "-R")
    raw, _ = raw_report
    own, linux, lost = split(events)
    raw_own, raw_linux, _ = split(raw)
    told, names = x.functions_told(rows), last_names(rows)
    right = [e for e in x.named_events(rows) if (e["cpu"], e["seq"]) not in told]
    equal(dropped, x.lost_of(rows), "dropped events by CPU")
    equal(len(own), len(right), "events")
    for found, raw, r in zip(*(sorted(events, key=lambda e: (e["ns"], e["cpu"])) for events in (own, raw_own, right))):
        same_own(found, raw, r, names, f"event {r['text']!r}")
    expected = x.linux_events(rows, functions=True)
    same_linux(*([e for e in found if not is_call(e)] for found in (linux, raw_linux)), [e for e in expected if not is_call(e)])
    calls = [e for e in raw_linux if is_call(e)]  # the report shows a function that calls none in one row
    same_linux(calls, calls, [e for e in expected if is_call(e)])
    last = {row["cpu"]: row.get("fmt") is None for row in rows}
    equal(sorted(e["cpu"] for e in lost), sorted(cpu for cpu, gap in last.items() if gap), "CPUs that end with a loss")
    valid(out)
    # Version 7 has the same contents. Raw rows are compared: others depend on where pages end, since trace-cmd does not
    # always look into the next page for the exit of a function.
    status, _, err = x.trace_cmd("convert", "-i", out, "-o", tmp / "v7.dat", "--file-version", "7")
    noise = [line for line in err.splitlines() if not re.match(r"CPU\d+ data recorded| +\d+ bytes in size", line) and line not in OF_THIS_MACHINE]
    equal((status, noise), (0, []), "trace-cmd convert: status and standard error")
    valid(tmp / "v7.dat")
    equal(report(tmp / "v7.dat", "-R"), raw_report, "as version 7")


def every_stream_is_what_jsonl_says(tmp):
    x.every_stream(check, tmp)


def profile_and_filter_know_the_events(tmp):
    x.export("tracedat", x.gen(tmp, "guest 200"), tmp / "out")
    status, text, err = x.trace_cmd("report", "--profile", "-i", tmp / "out")
    equal((status, err), (0, ""), "trace-cmd report --profile")
    for want in ("task: sh-7", "Event: sched_switch", "Event: sched_wakeup", "Event: sys_enter_openat", "Event: irq_handler_entry"):
        expect(want.lower() in text.lower(), f"--profile: no {want}:\n{text[:2000]}")
    status, text, err = x.trace_cmd("report", "-l", "-F", "sched_switch: next_pid == 7", "-i", tmp / "out")
    equal((status, err), (0, ""), "trace-cmd report -l -F")
    rows = text.splitlines()[1:]
    expect(rows and all("==> sh:7 [20]" in row for row in rows), "rows of a filter over Linux's fields")


def functions_are_a_graph(tmp):
    """trace-cmd draws the calls of functions as ktrdump's own graph has them."""
    path = x.gen(tmp, "calls 40")
    x.export("tracedat", path, tmp / "out")
    events = [e for e in report(tmp / "out")[0] if e["name"].startswith("funcgraph_")]
    drawn = [(e["cpu"], *re.fullmatch(r"(?:[^\d]? *([\d.]+) us)? *\|( *\S.*)", e["text"]).groups()) for e in events]
    graph = re.findall(r"^ +(\d+\)) (?:.?  *([\d.]+) us)? +\|( +[\w}].*)", x.ktrdump("--format", "graph", path)[1], re.M)
    right = [(int(cpu[:-1]), took or None, what) for cpu, took, what in graph if not what.strip().startswith("} /*")]
    equal(drawn, right, "the graph")
    expect(any(what.strip() == "vnode_ref();" for _, _, what in drawn), "no function that calls none")


def entries_alone_are_of_the_function_tracer(tmp):
    """However many they are: a thread's calls that do not return are forgotten."""
    path = x.gen(tmp, "entries 3000")
    x.export("tracedat", path, tmp / "out")
    rows = [row for row in x.jsonl(path) if row.get("fmt", "").startswith("-> ")]
    expect(len(rows) == 4000, f"{len(rows)} entries, expected 4000")
    equal([(e["ns"], e["tid"], e["name"], e["text"].strip()) for e in report(tmp / "out")[0] if is_call(e)],
          [(row["ns"], row["tid"], "function", row["func"]) for row in rows], "what the function tracer tells")
    for e, row in zip((e for e in report(tmp / "out", "-N")[0] if is_call(e)), rows):
        args = ", ".join(hex(v) for v in (*row["args"], *[0] * 6)[:6])
        equal(e["text"].strip(), f"{row['func']} <-- 0x0 ({args})", "by the format alone")


def pipe_gets_the_same_file(tmp):
    path = x.gen(tmp, "guest 200")
    x.export("tracedat", path, tmp / "out")
    x.export("tracedat", path, "/dev/null")
    with open(tmp / "piped", "wb") as f:
        f.write(x.run_bytes(x.KTRDUMP, "--format", "tracedat", "-i", path))
    equal((tmp / "piped").read_bytes(), (tmp / "out").read_bytes(), "what goes through a pipe")


def filtered_stream_has_what_passed(tmp):
    path = x.gen(tmp, "guest 200")
    x.export("tracedat", path, tmp / "cpu0", "--cpu", "0")
    rows = x.jsonl(path)
    own, linux, _ = split(report(tmp / "cpu0")[0])
    equal(len(own), len([r for r in rows if r["cpu"] == 0]), "events of CPU 0")
    equal(len(linux), len([e for e in x.linux_events(rows) if e[0] == 0]), "Linux's events of CPU 0")


def export_is_whole_or_not_there(tmp):
    sample, boots, out = x.gen(tmp, "sample"), x.gen(tmp, "boots"), tmp / "out"
    out.mkdir()
    for name, path, want in (("/dev/full", sample, "No space left"), (out / "no" / "such", sample, "No such file"),
                             (out, sample, "expected a file's name"), (out / "boots", boots, "more than one boot")):
        status, _, err = x.ktrdump("--format", "tracedat", "-o", name, "-i", path)
        equal(status, 2, f"status of {name}")
        expect(want in err, f"{name}: {err}")
    equal(list(out.iterdir()), [], "files that are left")


def nothing_stays_mounted(_):
    """Run last, since trace-cmd mounts tracefs if root runs it."""
    equal(tracefs(), MOUNTED, "is tracefs mounted, as it was before")


if __name__ == "__main__":
    x.main([every_stream_is_what_jsonl_says, functions_are_a_graph, entries_alone_are_of_the_function_tracer,
            profile_and_filter_know_the_events, pipe_gets_the_same_file, filtered_stream_has_what_passed,
            export_is_whole_or_not_there, nothing_stays_mounted])
