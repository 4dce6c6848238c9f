#!/usr/bin/python3
"""export_folded_test.py - the sums of ktrdump --format folded equal those of an independent model over jsonl's
rows. Prints TAP."""
import re

import export_help as x
import span_model
from export_help import equal, expect

STATES = ("running", "spinning", "runnable", "sleeping", "blocked")


def frame(text):
    return re.sub("[\x00-\x1f\x7f\ufffd]", "?", text).replace(";", ":")


def folded(path):
    sums = {}
    with open(path, encoding="utf-8", newline="\n") as f:
        for line in f.read().split("\n")[:-1]:
            m = re.fullmatch(r"([^;]+(?:;[^;]+)+) ([1-9]\d*)", line)
            expect(m, f"a line that is no stack and count: {line!r}")
            expect(m[1] not in sums, f"a stack twice: {m[1]!r}")
            expect(not re.search(r"\s\d+(\.\d*)?$", m[1]), f"a count that is not the last, to flamegraph.pl: {line!r}")
            sums[m[1]] = int(m[2])
    expect(sums, "an empty file, which flamegraph.pl refuses")
    equal(list(sums), sorted(sums, key=lambda s: s.encode()), "stacks in order")
    return sums


def expected(spans, wanted=lambda tid, name: True, cpus=None):
    sums = {}
    for tid, state, why, call, name, cpu, functions, begin, end in spans.threads:
        runs, idle = state in ("running", "spinning"), spans.all[tid].is_idle()
        if state not in STATES or (idle and not runs) or not wanted(tid, name):
            continue
        if cpus is not None and not (runs and cpu in cpus):
            continue
        stack = (name or f"tid {tid}", state, call, *functions, why)
        key = f"idle;cpu{cpu}" if idle else ";".join(frame(part) for part in stack if part)
        head, _, last = key.rpartition(" ")
        if re.match(r"\d+(\.|$)", last) and head:
            key = f"{head}_{last}"
        sums[key] = sums.get(key, 0) + end - begin
    return sums or {"trace;unknown": 1}


def check(path, tmp):
    """A stream of any kind: the sums are right, and no CPU runs for longer than the trace."""
    out = tmp / "folded"
    x.export("folded", path, out)
    rows = x.jsonl(path)
    spans, sums = span_model.Spans(rows, functions=True), folded(out)
    equal(sums, expected(spans), "nanoseconds by stack")
    length = spans.last - (spans.first or 0)
    per_cpu = {}
    for span in spans.threads:
        if span[1] in ("running", "spinning"):
            per_cpu[span[5]] = per_cpu.get(span[5], 0) + span[-1] - span[-2]
    for cpu, ns in per_cpu.items():
        expect(ns <= length, f"cpu {cpu} ran {ns} ns of {length}")
    listed = sum(ns for stack, ns in sums.items() if re.match(r"idle;cpu|[^;]*;(running|spinning)(;|$)", stack))
    equal(listed, sum(per_cpu.values()), "time on CPUs")


def every_stream_adds_up(tmp):
    x.every_stream(check, tmp)


def what_a_guest_does_has_its_stacks(tmp):
    path = x.gen(tmp, "guest 200")
    x.export("folded", path, tmp / "out")
    sums = folded(tmp / "out")
    for stack in ("idle;cpu0", "idle;cpu1", "sh;sleeping;read;ttyin", "sh;running;openat", "load;blocked;proc"):
        expect(stack in sums, f"no {stack!r} in {sorted(sums)}")


def what_functions_do_has_its_stacks(tmp):
    path = x.gen(tmp, "calls 20")
    x.export("folded", path, tmp / "out")
    sums = folded(tmp / "out")
    for stack in ("sh;running;syscall_entry", "sh;running;openat;syscall_entry;vfs_open;vfs_open;vfs_open;vnode_ref",
                  "load;sleeping;openat;syscall_entry;vfs_open;sleepq_wait;ttyin", "cat;running;vnode_ref"):
        expect(stack in sums, f"no {stack!r} in {sorted(sums)}")


def filters_cut(tmp):
    path = x.gen(tmp, "guest 200")
    rows = x.jsonl(path)
    first, last = rows[0]["ns"], rows[-1]["ns"]
    since, until = first + (last - first) // 3 + 1, last - (last - first) // 3 - 1
    x.export("folded", path, tmp / "times", "--since", f"{since}ns", "--until", f"{until}ns")
    equal(folded(tmp / "times"), expected(span_model.Spans(rows, since, until, functions=True)), "--since, --until")
    spans = span_model.Spans(rows, functions=True)
    x.export("folded", path, tmp / "thread", "--thread", "7")
    equal(folded(tmp / "thread"), expected(spans, wanted=lambda tid, _: tid == 7), "--thread 7")
    x.export("folded", path, tmp / "name", "--thread", "idle/*")
    equal(folded(tmp / "name"), expected(spans, wanted=lambda _, name: name.startswith("idle/")), "--thread idle/*")
    x.export("folded", path, tmp / "cpu", "--cpu", "1")
    equal(folded(tmp / "cpu"), expected(spans, cpus=(1,)), "--cpu 1")


def a_pipe_gets_the_same(tmp):
    path = x.gen(tmp, "mix 8000")
    x.export("folded", path, tmp / "out")
    equal(x.ktrdump("--format", "folded", "-i", path), (0, (tmp / "out").read_text(), ""), "on standard output")


def output_that_fails_is_reported(tmp):
    x.bad_outputs_are_reported("folded", tmp)


if __name__ == "__main__":
    x.main([every_stream_adds_up, what_a_guest_does_has_its_stacks, what_functions_do_has_its_stacks, filters_cut, a_pipe_gets_the_same,
            output_that_fails_is_reported])
