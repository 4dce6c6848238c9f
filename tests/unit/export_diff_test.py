#!/usr/bin/python3
"""export_diff_test.py - `ktrdump diff` says of two runs what the reports of each say. Prints TAP."""
import json
import re
import subprocess

import export_help as x
import export_report_test
import ktrace_records
import ktrdump_core_test
import wire
from export_help import equal, expect

# What names a row of a diff; a report's rows also have a thread's id, and the line of a place.
LABELS = ("thread", "order", "cpu", "state", "why", "call", "known_as", "name", "lock", "kind", "function", "fmt", "class", "local", "remote")
NOT_COMPARED = ("longest_ns", "when_ns", "latest_ns", "tid", "place", "histogram", "known_ns", "all_ns", "report", "table", "row")
DEFAULT = ("thread", "syscall", "lock", "fault", "function")
EVERY = "cpu,thread,syscall,lock,fault,irq,wakeup,net,profile,function,events"


def diff(*args, status=(0,)):
    found, out, err = x.ktrdump("diff", *args, "--format", "jsonl")
    expect(found in status, f"{args}: status {found}, expected {status}: {err}")
    return [json.loads(line) for line in out.splitlines()]


def text(*args, status=0):
    found, out, err = x.ktrdump("diff", *args)
    equal(found, status, f"{args}: status; {err}")
    return out, err


def figures(rows):
    """{(report, table): {labels: {figure: number}}} of a report's rows; those of the same names are added up."""
    found = {}
    for row in rows[1:]:
        if row["table"] == "worst":
            continue
        table = found.setdefault((row["report"], row["table"]), {})
        labels = row.get("row") or tuple((name, "(not known)" if name == "function" and str(row[name]).startswith("0x") else row[name]) for name in LABELS if name in row)
        numbers = {k: v for k, v in row.items() if k not in (*LABELS, *NOT_COMPARED)}
        if "total_ns" in numbers:
            numbers.pop("mean_ns", None)
        several = labels in table
        before = table.setdefault(labels, {})
        for name, value in numbers.items():
            # Percentiles of several rows do not follow from those of each.
            before[name] = None if several and name in ("p50_ns", "p99_ns", "mean_ns") else value + (before.get(name) or 0)
    return found


def compare(a, b, names=EVERY):
    """Each row of the diff of two traces has the numbers of their reports."""
    status = x.ktrdump("report", names, "-i", a)[0] | x.ktrdump("report", names, "-i", b)[0]
    said = diff(names, a, b, status=(0, status))
    expected = [figures(export_report_test.report(path, names)) for path in (a, b)]
    found = {}
    for row in said[2:]:
        labels = row.get("row") or tuple((name, row[name]) for name in LABELS if name in row and name != "order")
        if "tid" in row:
            equal(row["order"], 0, f"{row}: how many threads of this name came before")
        found.setdefault((row["report"], row["table"]), {})[labels] = row
    equal(found.keys(), expected[0].keys() | expected[1].keys(), "tables")
    for table, rows in found.items():
        sides = [side.get(table, {}) for side in expected]
        equal(rows.keys(), sides[0].keys() | sides[1].keys(), f"{table}: rows")
        for labels, row in rows.items():
            both = [side.get(labels) for side in sides]
            if row.get("row") is None:
                state = "new" if both[0] is None else "gone" if both[1] is None else "none" if both[0] == both[1] else "changed"
                if None not in [n for side in both if side for n in side.values()]:
                    equal(row["change"], state, f"{table} {labels}: change, {both}")
            for name in (both[0] or both[1]):
                pair = [side[name] if side else 0 for side in both]
                equal([n for n, right in zip(row[name], pair) if right is not None], [n for n in pair if n is not None], f"{table} {labels}: {name}")
    return said


def check_same(path, _):
    """A trace and itself: no row has changed, in any report."""
    status = x.ktrdump("report", EVERY, "-i", path)[0]
    rows = diff(EVERY, path, path, status=(0, status))
    changed = [row for row in rows[2:] if (row["change"], row["percent"]) != ("none", 0) or any(v[0] != v[1] for v in row.values() if isinstance(v, list))]
    equal(changed, [], "rows that differ")
    equal({k: v for k, v in rows[0].items() if k != "run"}, {k: v for k, v in rows[1].items() if k != "run"}, "what both say of the trace")


def a_trace_and_itself_are_equal_exactly(tmp):
    x.every_stream(check_same, tmp)
    out, _ = text(x.gen(tmp, "guest 200"), x.gen(tmp, "guest 200"), "--fail-above", "0")
    expect("syscall: system calls, and the functions of C that make them: 0 of " in out, out)
    tables = [line.split() for line in out.splitlines() if line.startswith("total ")]
    expect(tables and all(set(line[2::2]) <= {"0", "0.00"} for line in tables), f"changes of the totals: {tables}")


def every_row_is_that_of_two_reports(tmp):
    paths = []
    for seed in range(8):
        paths.append(tmp / f"{seed}.ktr")
        paths[-1].write_bytes(export_report_test.random_run(seed))
    for a, b in zip(paths, paths[1:]):
        rows = compare(a, b)
        expect("changed" in {row["change"] for row in rows[2:]}, f"{a} {b}: no row has changed")
    compare(x.gen(tmp, "calls 60"), x.gen(tmp, "entries 60"), "function,events")
    # The first run tells who takes locks, the second does not: then it is not known how long its waits are.
    waits = [wire.site(0, "mutex contended: lock %s addr %p", 2), wire.site(1, "mutex acquire: lock %s addr %p caller %p", 3), wire.string(0x1000, "page")]
    events = [(0, 10, (0x1000, 0x300)), (1, 200, (0x1000, 0x300, 0x8000)), (0, 10, (0x1000, 0x300))]
    for n, path in enumerate(paths[:2]):
        path.write_bytes(wire.stream(*waits, wire.batch(0, 0, 1000, 1, [e for e in events if n == 0 or e[0] == 0])))
    compare(paths[0], paths[1], "lock")


def a_trace_point_that_moved_is_the_same(tmp):
    for line in (1, 9):
        (tmp / str(line)).write_bytes(wire.stream(wire.site(0, "point %u", 1, line=line), wire.batch(0, 0, 1000, 1, [(0, 10, (1,))] * line)))
    rows = [row for row in diff("events", tmp / "1", tmp / "9")[2:] if row["table"] == "sites"]
    equal([(row.get("fmt"), row["change"], row["count"]) for row in rows], [("point %u", "changed", [1, 9]), (None, "changed", [1, 9])], "rows of the trace point, and of all")


def others_are_compared_too(tmp):
    """--grep chooses rows by name; those without room for a name are not chosen."""
    path = x.gen(tmp, "forks 9000")
    expect("others" in {row.get("row") for row in diff("cpu", path, path)[2:]}, "no rows are without room")
    equal({row.get("row") for row in diff("cpu", path, path, "--grep", "0")[2:]} & {"others"}, set(), "with --grep")


CALLS = [wire.site(0, "syscall read: arg0 %#lx", 1), wire.site(1, "sysret read: ret %ld", 1),
         wire.site(2, "syscall write: arg0 %#lx", 1), wire.site(3, "sysret write: ret %ld", 1)]


def calls(path, threads, lost=False, mask=None):
    """A trace of system calls of threads: (tid, name, [(0 for read or 2 for write, ns)]) each."""
    frames, clock, seq = list(CALLS), 1000, 0
    frames += [wire.mask(mask)] if mask is not None else []
    for tid, name, made in threads:
        frames.append(wire.thread(tid, name))
        events = [event for what, ns in made for event in ((what, 10, (3,)), (what + 1, ns, (0,)))]
        frames.append(wire.batch(0, seq, clock, tid, events))
        clock += sum(event[1] for event in events)
        seq += len(events)
    frames += [wire.loss(0, seq, 5, clock, clock + 100)] if lost else []
    path.write_bytes(wire.stream(*frames))
    return path


def threads_are_matched_by_name_and_order(tmp):
    """Of three threads `load`, whose ids differ, the second has changed."""
    a = calls(tmp / "a", [(7, "load", [(0, 100)]), (8, "load", [(0, 200)]), (9, "load", [(0, 300)]), (3, "sh", [(2, 50)])])
    b = calls(tmp / "b", [(3, "sh", [(2, 50)]), (20, "load", [(0, 100)]), (12, "load", [(0, 250)]), (31, "load", [(0, 300)])])
    rows = [row for row in diff("syscall", a, b) if row.get("table") == "callers" and "row" not in row]
    equal([(r["thread"], r["order"], r["tid"], r["change"], r["total_ns"]) for r in rows],
          [("load", 1, [8, 12], "changed", [200, 250]), ("sh", 0, [3, 3], "none", [50, 50]), ("load", 0, [7, 20], "none", [100, 100]),
           ("load", 2, [9, 31], "none", [300, 300])], "rows")
    out, _ = text("syscall", a, b)
    expect("\n8/12 load  read      1       0       0       0  0.000200  +0.000050  +25.00\n" in out, out)


def names_are_those_of_threads(tmp):
    """--grep knows no ids; a thread is the same in all tables of a run."""
    a = calls(tmp / "a", [(7, "load", [(0, 100)]), (8, "load", [(2, 200)]), (12, "sh", [(0, 50)])])
    b = calls(tmp / "b", [(12, "load", [(0, 100)]), (9, "load", [(2, 200)]), (7, "sh", [(0, 50)])])
    expect('no row has "12" in it' in text("syscall", a, b, "--grep", "12", status=1)[1], "a thread's id is no name")
    # The first thread `load` makes a call, the second one has a lock for which another waits.
    both = tmp / "both"
    both.write_bytes(wire.stream(*CALLS, wire.site(4, "mutex contended: lock %s addr %p", 2), wire.site(5, "mutex acquire: lock %s addr %p caller %p", 3),
                                 wire.string(0x1000, "page"), wire.thread(7, "load"), wire.thread(8, "load"),
                                 wire.batch(0, 0, 1000, 7, [(0, 10, (3,)), (1, 100, (0,))]), wire.batch(0, 2, 2000, 8, [(5, 10, (0x1000, 0x300, 0x8000))]),
                                 wire.batch(0, 3, 3000, 9, [(4, 10, (0x1000, 0x300)), (5, 200, (0x1000, 0x300, 0x8000))])))
    rows = [row for row in diff("syscall,lock", both, both)[2:] if row.get("thread") == "load"]
    equal({(row["report"], row["order"], row["tid"][0]) for row in rows}, {("syscall", 0, 7), ("lock", 1, 8)}, "threads in two reports")


def places_without_names_are_told(tmp):
    """Addresses differ from build to build."""
    waits = [wire.site(0, "mutex contended: lock %s addr %p", 2), wire.site(1, "mutex acquire: lock %s addr %p caller %p", 3), wire.string(0x1000, "page")]
    for path, caller in (("a", 0x8000), ("b", 0x9000)):
        (tmp / path).write_bytes(wire.stream(*waits, wire.batch(0, 0, 1000, 1, [(1, 10, (0x1000, 0x300, caller))]),
                                              wire.batch(0, 1, 2000, 2, [(0, 10, (0x1000, 0x300)), (1, 200, (0x1000, 0x300, caller))])))
    status, out, err = x.ktrdump("diff", "lock", tmp / "a", tmp / "b", "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    equal([(row["change"], row["function"]) for row in rows if "function" in row], [("none", "(not known)")], "rows of places")
    for run, path in (("A", "a"), ("B", "b")):
        expect(f"diff: {run} {tmp}/{path}: no symbols of its kernel: its functions are (not known); expected -N KERNEL, once for each kernel" in err, err)
    equal(status, 0, "status")
    path = calls(tmp / "c", [(1, "t", [(0, 200)])])
    equal(text("syscall", path, path)[1], "", "messages when no place is shown")


def what_changed_most_is_first(tmp):
    """By time and proportion; what is new, or gone, is said."""
    a = calls(tmp / "a", [(1, "big", [(0, 100000)]), (2, "little", [(0, 100)]), (3, "middle", [(0, 1000)]), (4, "old", [(0, 5000)])])
    b = calls(tmp / "b", [(1, "big", [(0, 100300)]), (2, "little", [(0, 150)]), (3, "middle", [(0, 1300)]), (5, "young", [(0, 10)])])
    rows = [row for row in diff("syscall", a, b) if row.get("table") == "callers" and "row" not in row]
    equal([(r["thread"], r["change"], r["percent"]) for r in rows],
          [("old", "gone", -100), ("middle", "changed", 30), ("little", "changed", 50), ("young", "new", None), ("big", "changed", 0.3)], "rows")
    out, _ = text("syscall", a, b, "--rows", "2")
    lines = out[out.index("by thread"):].splitlines()
    equal([line.split()[-1] for line in lines[1:]], ["%", "gone", "+30.00", "+50.00", "-4.10"], f"two rows, the others and the total in {out}")
    expect(re.search(r"5 of 5 rows changed \(known A [\d.]+ %, B [\d.]+ %\)$", lines[0]), lines[0])
    rows = diff("syscall", a, b, "--grep", "m*dle")
    equal([(r.get("thread") or r["row"], r["total_ns"]) for r in rows[2:]], [("middle", [1000, 1300]), ("total", [1000, 1300])], "rows of --grep")
    expect(lines[-1].startswith("total "), out)
    rows = text("syscall", calls(tmp / "c", [(1, "c", [(0, 9)]), (2, "d", [(0, 9)])]), b, "--rows", "1")[0]
    expect(all("(others)" in part and "\ntotal" in part for part in rows.split("syscall: ")[2:]), f"a row, the others and the total in {rows}")
    _, err = text("syscall", a, b, "--grep", "nobody", status=1)
    expect('no row has "nobody" in it' in err, err)


def all_of_a_name_counts_for_grep(tmp):
    path = tmp / "long"
    path.write_bytes(wire.stream(wire.site(0, "point " + "x" * 80 + " end %u", 1), wire.batch(0, 0, 1000, 1, [(0, 10, (1,))])))
    rows = diff("events", path, path, "--grep", "end")
    equal([row["count"] for row in rows if "fmt" in row], [[1, 1]], "rows whose name ends so")


def calls_have_the_names_of_their_machines(tmp):
    """Of two files of ktrace: call 63 of x86_64 is uname, and of aarch64 read. What one is about is not left for the other."""
    for machine, cpu in (("x86_64", 2), ("aarch64", 0)):
        (tmp / machine).write_bytes(ktrace_records.call(63, machine=machine, cpu=cpu) + ktrace_records.ret(63, 0, machine=machine, time=(1000, 500), cpu=cpu))
    rows = diff("syscall", tmp / "x86_64", tmp / "aarch64")
    equal({(row["call"], row["change"]) for row in rows if row.get("table") == "calls" and "call" in row}, {("uname", "gone"), ("read", "new")}, "calls")
    equal([row["cpus"] for row in rows[:2]], [3, 1], "CPUs")


def fail_above_has_a_status(tmp):
    a = calls(tmp / "a", [(1, "t", [(0, 2000)] * 40)])
    b = calls(tmp / "b", [(1, "t", [(0, 2000)] * 42)])
    for limit, status in (("5", 0), ("5%", 0), ("5.00%", 0), ("4.99%", 3), ("4.9", 3), ("0", 3), ("100%", 0)):
        _, err = text("syscall", a, b, "--fail-above", limit, status=status)
        expect(("1 row changed by more than" in err) == (status == 3), f"{limit}: {err}")
    text("syscall", b, a, "--fail-above", "4.76", status=3)  # 2 of 42 are 4.762 %
    text("syscall", b, a, "--fail-above", "4.77")
    text("syscall", a, b)
    _, err = text("syscall", b, calls(tmp / "c", [(1, "t", [(2, 2000)])]), "--fail-above", "100", status=3)
    expect("syscall calls: 2 rows changed by more than 100.00 %" in err, err)  # the new one, and the one that is gone


def percentiles_change_by_what_is_certain(tmp):
    """They are known to an eighth: what may lie between two of them is no change in percent."""
    a = calls(tmp / "a", [(1, "t", [(0, 1023)] * 9 + [(0, 5000)])])
    b = calls(tmp / "b", [(1, "t", [(0, 1024)] * 9 + [(0, 4991)])])
    row = diff("syscall", a, b, "--fail-above", "0.1%")[2]
    equal((row["p50_ns"], row["total_ns"], row["change"], row["percent"]), ([1023, 1151], [14207, 14207], "changed", 0.1), "the row")
    b = calls(tmp / "c", [(1, "t", [(0, 2047)] * 9 + [(0, 5000)])])
    percent = diff("syscall", a, b)[2]["percent"]
    expect(75 < percent <= 90, f"of twice the time: {percent}")


def losses_are_told(tmp):
    a, whole = calls(tmp / "a", [(1, "t", [(0, 200)] * 5)], lost=True), calls(tmp / "b", [(1, "t", [(0, 200)] * 5)])
    for pair, marks in (((a, whole), ("~5", "~0")), ((whole, a), ("5", "~0")), ((whole, whole), ("5", "0"))):
        out, _ = text("syscall", *pair)
        line = next(line for line in out.splitlines() if line.startswith("total"))
        equal(tuple(line.split()[1:3]), marks, "count of A, and its change")
        equal("~: events were lost" in out, a in pair, "what the mark means is said")
        equal(diff("syscall", *pair)[-1]["whole"], a not in pair, "whole")
    _, err = text("syscall", a, whole, "--fail-above", "5%", status=1)
    expect("--fail-above cannot tell: events were lost" in err, err)
    text("syscall", a, whole, "--fail-above", "5%", "--until", "2us")  # before the loss
    text(calls(tmp / "c", [(1, "t", [(0, 200)] * 9)]), a, "--fail-above", "5%", status=3)


def masks_that_differ_are_told(tmp):
    paths = [calls(tmp / str(mask), [(1, "t", [(0, 200)])], mask=mask) for mask in (0x2000000, 0x2000001)]
    equal(text(paths[0], paths[0])[1], "", "messages of equal masks")
    err = text(*paths)[1]
    expect("debug.ktr.mask was " in err and " in A, and GEN," in err, err)


def inputs_are_files_pipes_and_dumps(tmp):
    core, stream = tmp / "core", tmp / "stream"
    with open(stream, "wb") as out:
        subprocess.run([ktrdump_core_test.CORE_GEN, "x86_64", "told", "some kernel 2.0", core], stdout=out, check=True, timeout=x.DEADLINE_S)
    for args in ((stream, "-M", core), ("-M", core, "-M", core), ("-i", stream, "-i", stream),
                 ("-N", ktrdump_core_test.CORE_GEN, "-M", core, stream), ("-N", "/no", "-N", ktrdump_core_test.CORE_GEN, "-i", stream, "-M", core)):
        rows = diff("events", *args)
        equal({row["change"] for row in rows[2:] if row["table"] == "sites"}, {"none"}, f"changes of {args}")
        equal([row["file"] for row in rows[:2]], [str(a) for a in args if a in (core, stream)], f"files of {args}")
    with open(stream, "rb") as pipe:
        piped = subprocess.run([x.KTRDUMP, "diff", "events", "-", stream], stdin=pipe, stdout=subprocess.PIPE, timeout=x.DEADLINE_S, check=True).stdout
    expect(b"A -: trace " in piped and b"0 of 2 rows changed" in piped, piped)
    for args, kept in (((stream, tmp / "plain"), stream), ((tmp / "plain", stream), stream), ((stream, tmp / "no"), tmp / "kept")):
        for path in (tmp / "plain", tmp / "kept"):
            path.write_bytes(stream.read_bytes())
        before = kept.read_bytes()
        _, err = text("events", *args, "-o", kept, status=2)
        equal(kept.read_bytes(), before, f"what -o names, with {args}")
        expect((f"-o {kept}: it is an input: expected another file" in err) == (kept == stream), err)
    status, _, err = x.ktrdump("-i", stream, "-o", stream)
    expect(status == 2 and "it is an input" in err and stream.stat().st_size > 0, err)
    text("events", stream, stream, "-o", tmp / "out")
    equal((tmp / "out").read_text(), text("events", stream, stream)[0], "with -o")
    (tmp / "plain").write_bytes(stream.read_bytes())
    found = subprocess.run([x.KTRDUMP, "diff", "plain", "plain"], cwd=tmp, capture_output=True, text=True, timeout=x.DEADLINE_S, check=False)
    expect(found.returncode == 0 and "A plain: " in found.stdout, found)  # names without a point


def many_rows_take_bounded_memory(tmp):
    a, b = x.gen(tmp, "forks 9000"), x.gen(tmp, "forks 9300")
    rows = [row for row in diff("cpu,thread", a, b) if row["report"] == "cpu" and row["table"] == "runs"]
    sums = [sum(row["ran_ns"][run] for row in rows if row.get("row") != "total") for run in (0, 1)]
    equal(next(row for row in rows if row.get("row") == "total")["ran_ns"], sums, "time that ran, in rows and in all")
    for run, path in enumerate((a, b)):
        total = [row for row in export_report_test.report(path, "cpu") if row.get("table") == "runs" and row.get("row") == "total"]
        equal(total[0]["ran_ns"], sums[run], "and in the report")


def bad_input_says_what_was_expected(tmp):
    a = calls(tmp / "a", [(1, "t", [(0, 200)])])
    for args, want in (((), "found 0 inputs, expected two"), ((a,), "found 1 input, expected two"), ((a, a, a), "found 3 inputs, expected two"),
                       (("syscall", a), "found 1 input, expected two"), (("sycall", a, a), 'no report "sycall"; expected cpu thread'),
                       ((a, a, "--fail-above"), "requires an argument"), ((a, a, "--fail-above", "%"), "--fail-above: expected percent such as 5%"),
                       ((a, a, "--fail-above", "-1"), "expected percent"), ((a, a, "--fail-above", "5 %"), "expected percent"),
                       ((a, a, "--fail-above", "5.%"), "expected percent"), ((a, a, "--fail-above", "1.234"), "expected percent"),
                       ((a, a, "--fail-above", "99999999999999999999"), "expected percent"), (("--fail-above", a, a), "expected percent"),
                       ((a, a, "-l"), "-l has no end"), ((a, a, "--format", "svg"), "text or jsonl"), ((a, a, "--class", "SYSC"), "times, not events"),
                       (("-", "-"), "both inputs are standard input"), ((a, a, "-N", "x", "-N", "x", "-N", "x"), "one -N for both inputs, or two")):
        status, out, err = x.ktrdump("diff", *args)
        equal((status, out), (2, ""), f"status and output of {args}")
        expect(want in err, f"{args}: {err}")
    status, _, err = x.ktrdump("report", "-i", a, "--fail-above", "5")
    expect(status == 2 and "--fail-above is of a diff" in err, err)
    for pair in ((a, tmp / "no"), (tmp / "no", a)):
        status, out, err = x.ktrdump("diff", *pair)
        equal((status, out), (2, ""), "status and output of a missing file")
        expect(err.startswith(f"ktrdump: {tmp}/no: "), err)
    status, _, err = x.ktrdump("diff", "lock,syscall", a, a)
    expect(status == 1 and "report lock: nothing to show: it needs events of class LOCK" in err and "syscall" not in err, err)
    equal(x.ktrdump("diff", a, a, "-o", "/dev/full")[0], 2, "status of a full device")
    damaged = tmp / "damaged"
    damaged.write_bytes(a.read_bytes()[:-9])
    for pair in ((a, damaged), (damaged, a)):
        status, out, _ = x.ktrdump("diff", *pair, "--fail-above", "5")
        expect(status in (1, 3) and "~: events were lost" in out, f"status of a cut-off trace: {status}; {out}")
        equal({row["whole"] for row in diff(*pair, status=(1,))[2:]}, {False}, "whole")
    empty = x.gen(tmp, "empty")
    status, out, err = x.ktrdump("diff", empty, a)
    expect(status == 1 and f"{empty}: no events" in err and " new\n" in out, f"{status} {out} {err}")


if __name__ == "__main__":
    x.main([a_trace_and_itself_are_equal_exactly, every_row_is_that_of_two_reports, a_trace_point_that_moved_is_the_same, others_are_compared_too,
            threads_are_matched_by_name_and_order, names_are_those_of_threads, places_without_names_are_told,
            what_changed_most_is_first, all_of_a_name_counts_for_grep, calls_have_the_names_of_their_machines, fail_above_has_a_status, percentiles_change_by_what_is_certain, losses_are_told,
            masks_that_differ_are_told, inputs_are_files_pipes_and_dumps, many_rows_take_bounded_memory, bad_input_says_what_was_expected])
