#!/usr/bin/python3
"""export_fxt_test.py - ktrdump's Fuchsia trace format follows the specification, and has the contents of jsonl.

The reader below is written from fuchsia.dev, "Fuchsia trace format", and accepts only what the specification
allows. Prints TAP.
"""
import collections
import re
import struct

import export_help as x
from export_help import equal, expect
from export_timeline_help import (each_stream, event_name, exported, ident_tid,
                                  same_thread, same_value, two_boots_are_refused)

MAGIC = 0x0016547846040010
IDLE = -2**31
INSTANT, COUNTER, BEGIN, END, SWITCH, WAKEUP = "instant", "counter", "begin", "end", "switch", "wakeup"
EVENTS = {0: INSTANT, 1: COUNTER, 2: BEGIN, 3: END}
Record = collections.namedtuple("Record", "kind ns tid thread category name args cpu other state")


class Reader:
    """Reads an archive into records."""

    def __init__(self, data):
        equal(len(data) % 8, 0, "bytes after the last word")
        self.words = struct.unpack(f"<{len(data) // 8}Q", data)
        self.data, self.at, self.end = data, 0, 0
        self.strings, self.threads, self.names, self.open = {0: ""}, {}, {}, {}
        self.records, self.inline_threads, self.inline_strings = [], 0, 0
        equal(self.words[0], MAGIC, "magic number")
        provider = ticks = None
        while self.at < len(self.words):
            head = self.words[self.at]
            kind, size = head & 15, head >> 4 & 0xfff
            expect(0 < size <= len(self.words) - self.at, f"word {self.at}: a record of {size} words")
            self.end, start = self.at + size, self.at
            self.at += 1
            if start > 0:
                expect(kind != 0 or head >> 16 & 15 != 4, "a second magic number")
                if kind == 0:
                    equal((provider, head >> 16 & 15, head >> 60), (None, 1, 0), "provider info")
                    provider = self.stream(head >> 52 & 0xff)
                elif kind == 1:
                    expect(provider is not None and ticks is None and head >> 16 == 0, "initialization")
                    ticks = self.word()
                    equal(ticks, 10**9, "ticks per second")
                else:
                    expect(ticks is not None, "a record before initialization")
                    self.record(kind, head)
            equal(self.at, self.end, f"the end of the record of type {kind} at word {start}")
        expect(ticks is not None, "no initialization")
        equal({t: n for t, n in self.open.items() if n}, {}, "durations that have no end")

    def word(self):
        expect(self.at < self.end, f"word {self.at}: it is after the record")
        self.at += 1
        return self.words[self.at - 1]

    def stream(self, length):
        words = (length + 7) // 8
        expect(self.at + words <= self.end, f"word {self.at}: a text after the record")
        raw = self.data[8 * self.at:8 * (self.at + words)]
        self.at += words
        equal(raw[length:].strip(b"\0"), b"", "padding")
        return raw[:length].decode("utf-8")

    def text(self, ref):
        if ref & 0x8000:
            self.inline_strings += 1
            return self.stream(ref & 0x7fff)
        expect(ref in self.strings, f"string {ref} is not registered")
        return self.strings[ref]

    def thread(self, ref):
        if ref == 0:
            self.inline_threads += 1
            return self.word(), self.word()
        expect(ref in self.threads, f"thread {ref} is not registered")
        return self.threads[ref]

    def arguments(self, count):
        args = []
        for _ in range(count):
            start, head = self.at, self.word()
            kind, size, ref, rest = head & 15, head >> 4 & 0xfff, head >> 16 & 0xffff, head >> 32
            name = self.text(ref)
            expect(name, "an argument without a name")
            if kind == 1:
                value = rest - (rest >> 31 << 32)
            elif kind == 2:
                value = rest
            elif kind == 6:
                expect(rest >> 16 == 0, "reserved bits of a string argument")
                value = self.text(rest)
            else:
                expect(kind in (3, 4, 8), f"argument {name!r} of type {kind}")
                equal(rest, 0, "reserved bits of an argument")
                value = self.word()
                if kind == 3:
                    value -= value >> 63 << 64
                expect(kind == 8 or not (-2**31 <= value < 2**31 if kind == 3 else value < 2**32),
                       f"{name!r}: {value} has room in 32 bits")
            equal(self.at - start, size, f"words of the argument {name!r}")
            args.append((name, value))
        equal(len({n for n, _ in args}), len(args), "names of arguments that differ")
        return args

    def add(self, kind, ns, tid, category, name, args, cpu=None, other=None, state=None):
        expect(ns < 2**63, f"time {ns}")
        before = [r.ns for r in self.records[-1:]]
        expect(before <= [ns], f"time {ns} is earlier than {before}")
        self.records.append(Record(kind, ns, tid, self.names.get(tid, ""), category, name, args, cpu, other, state))

    def record(self, kind, head):
        if kind == 2:
            index, length = head >> 16 & 0xffff, head >> 32 & 0xffff
            expect(0 < index < 0x8000 and 0 < length < 0x8000 and head >> 48 == 0, "a string record")
            self.strings[index] = self.stream(length)
        elif kind == 3:
            expect(head >> 16 & 0xff and head >> 24 == 0, "a thread record")
            self.threads[head >> 16 & 0xff] = (self.word(), self.word())
        elif kind == 4:
            self.event(head)
        elif kind == 7:
            self.object(head)
        elif kind == 8:
            self.scheduling(head)
        else:
            raise AssertionError(f"a record of type {kind}")

    def event(self, head):
        what = EVENTS.get(head >> 16 & 15)
        expect(what, f"an event of type {head >> 16 & 15}")
        ns = self.word()
        pid, tid = self.thread(head >> 24 & 0xff)
        equal(pid, tid, "process of the thread")
        category, name = self.text(head >> 32 & 0xffff), self.text(head >> 48)
        args = self.arguments(head >> 20 & 15)
        if what == BEGIN:
            self.open.setdefault(tid, []).append((category, name))
        if what == END:
            expect(self.open.get(tid), f"thread {tid}: an end of what has not begun")
            equal(self.open[tid].pop()[0], category, "category of what ends")
        expect(name or what == END, "an event without a name")
        self.add(what, ns, tid, category, name, args, cpu=self.word() if what == COUNTER else None)

    def object(self, head):
        kind, ref, count = head >> 16 & 0xff, head >> 24 & 0xffff, head >> 40 & 15
        expect(kind in (1, 2) and head >> 44 == 0, "a kernel object record")
        koid, name = self.word(), self.text(ref)
        equal(self.arguments(count), [("process", koid)] * (kind == 2), "arguments of a kernel object")
        if kind == 2:
            self.names[koid] = name

    def scheduling(self, head):
        kind, count, cpu = head >> 60, head >> 16 & 15, head >> 20 & 0xffff
        ns = self.word()
        if kind == 1:
            state = head >> 36 & 15
            expect(state in (0, 3, 5) and head >> 40 & 0xfffff == 0, f"a context switch with state {state}")
            out, into = self.word(), self.word()
            expect({out, into} <= {0, *self.names}, f"a switch from {out} to {into}: a thread whose process is not known")
            self.add(SWITCH, ns, into, None, None, self.arguments(count), cpu, out, state)
        else:
            expect(kind == 2 and head >> 36 & 0xffffff == 0, f"a scheduling record of type {kind}")
            tid = self.word()
            expect(tid in self.names, f"a wakeup of {tid}, a thread whose process is not known")
            self.add(WAKEUP, ns, tid, None, None, self.arguments(count), cpu)


def split(args, *names):
    """(the other arguments, {name: value} of these arguments)."""
    return [a for a in args if a[0] not in names], {n: v for n, v in args if n in names}


def kind_of(row):
    """The record expected for a row of jsonl."""
    fmt, names = row["fmt"] or "", row["names"]
    word = {n: a for n, a in zip(names, row["args"])}
    if re.match(r"syscall [^:%]*:", fmt):
        return BEGIN
    if re.match(r"sysret [^:%]*:", fmt):
        return END
    if fmt.startswith(("interrupt enter: ", "-> ")):
        return BEGIN
    if fmt.startswith(("interrupt exit: ", "<- ")):
        return END
    if fmt.startswith('KTRGRAPH group:"load", id:"%s", counter:%d,') and isinstance(word["id"], str):
        return COUNTER
    if fmt.startswith('KTRGRAPH group:"thread", id:"%s", state:"%s",') and word["state"] == "running" and \
            ident_tid(word["id"]) is not None:
        return SWITCH
    if fmt.startswith('KTRGRAPH group:"thread", id:"%s", point:"%s",') and word["point"] == "wokeup" and \
            ident_tid(word.get("linkedto")) is not None and ident_tid(word["id"]) is not None:
        return WAKEUP
    return INSTANT


def is_event(record):
    """Is the record an event's own, and not derived from another event?"""
    if record.kind == SWITCH:
        return any(n not in ("incoming_weight", "outgoing_weight") for n, _ in record.args)
    if record.kind == END:
        return bool(record.args)
    return record.category != "lost"


def compare(record, row):
    kind, word = kind_of(row), dict(zip(row["names"], row["args"]))
    # An end without a beginning is an instant, as is a switch to, or wakeup of, a thread that runs already.
    expect(record.kind == kind or (record.kind == INSTANT and kind in (END, SWITCH, WAKEUP)),
           f"a record of kind {record.kind}, expected {kind}")
    equal(record.ns, row["ns"], "time")
    args, extra = split(record.args, "on cpu", "exit on cpu", "incoming_weight", "outgoing_weight", "waker")
    if kind == COUNTER:
        equal((record.name, args, record.cpu), (word["id"], [("value", word["counter"])], row["cpu"]), "counter")
        return
    equal([n for n, _ in args], row["names"], "names of arguments")
    for (name, found), said in zip(args, row["args"]):
        expect(same_value(found, said), f"{name}: found {found!r}, expected {said!r}")
    if record.kind in (SWITCH, WAKEUP):
        equal((record.cpu, record.tid), (row["cpu"], ident_tid(word["id" if kind == SWITCH else "linkedto"])),
              "CPU, thread")
        return
    equal(list(extra.items()), [("exit on cpu" if record.kind == END else "on cpu", row["cpu"])], "CPU")
    equal(record.tid, row["tid"], "thread")
    if "name" not in word:  # the event may name it itself
        expect(same_thread(record.thread, row["thread"]), f"thread {record.thread!r}, expected {row['thread']!r}")
    if record.kind == INSTANT:
        name = event_name(row)
        expect(record.name == name if name is not None else re.fullmatch(r"site \d+", record.name),
               f"name {record.name!r}, expected {name!r}")
        equal(record.category, row["class"] or "", "category")
    elif record.kind == BEGIN:
        name = row["fmt"].split(" ")[1].rstrip(":") if record.category == "syscall" else \
            row["func"] if record.category == "function" else \
            word.get("name") if isinstance(word.get("name"), str) else "interrupt"
        equal(record.name, name or event_name(row), "name")


def switches_make_sense(records):
    """On each CPU, each switch leaves the thread to which the last switch went. No thread runs on two CPUs."""
    runs = {}
    for r in records:
        if r.kind == WAKEUP:
            expect(r.tid not in runs.values(), f"{r.ns} ns: thread {r.tid} is woken while it runs: {runs}")
        if r.kind != SWITCH:
            continue
        equal(r.other, runs.get(r.cpu, 0), f"cpu {r.cpu}, {r.ns} ns: the thread that is left")
        weights = dict(r.args)
        if r.other == 0:
            equal(weights.get("outgoing_weight"), IDLE, "weight of no thread")
        if r.tid == 0:
            equal(weights.get("incoming_weight"), IDLE, "weight of no thread")
        others = [tid for cpu, tid in runs.items() if cpu != r.cpu and weights.get("incoming_weight") != IDLE]
        expect(r.tid not in others, f"cpu {r.cpu}, {r.ns} ns: thread {r.tid} runs elsewhere: {runs}")
        runs[r.cpu] = r.tid


def check(path, tmp, *args):
    """A stream of any kind: the export keeps the rules and has the contents of its jsonl. Returns the reader."""
    out = tmp / "out.fxt"
    said = exported("fxt", path, out, *args)
    reader = Reader(out.read_bytes())
    events = [row for row in said if "seq" in row]
    records = [r for r in reader.records if is_event(r)]
    equal(len(records), len(events), "events")
    for record, row in zip(records, events):
        try:
            compare(record, row)
        except AssertionError as e:
            raise AssertionError(f"{e}\n# of {row}\n# in {record}") from e
    if not args:
        switches_make_sense(reader.records)
    lost = [dict(r.args) for r in reader.records if r.category == "lost"]
    equal(sorted((d["on cpu"], d["events"], d["until"]) for d in lost),
          sorted((g["cpu"], g["gap"], max(0, g["to_ns"])) for g in said if "gap" in g), "what was lost")
    return reader


def guest_has_every_kind_of_record(tmp):
    reader = check(x.gen(tmp, "guest 300"), tmp)
    equal({r.kind for r in reader.records}, {INSTANT, BEGIN, END, SWITCH, WAKEUP}, "kinds of records")
    equal({r.category for r in reader.records if r.kind == BEGIN}, {"syscall", "interrupt"}, "durations")
    equal({r.state for r in reader.records if r.kind == SWITCH}, {0, 3, 5}, "states")
    calls = check(x.gen(tmp, "calls 40"), tmp).records
    equal({r.category for r in calls if r.kind == BEGIN}, {"syscall", "interrupt", "function"}, "durations, with functions")
    equal([r.name for r in calls if r.kind == INSTANT and r.category == "GEN"], ["fork_return"], "returns from what did not begin")
    counters = {r.name for r in check(x.gen(tmp, "ticks 10"), tmp).records if r.kind == COUNTER}
    equal(counters, {"CPU 0 load", "CPU 1 load"}, "counters")


def more_threads_than_the_table_has(tmp):
    reader = check(x.gen(tmp, "threads 400"), tmp)
    equal(len(reader.threads), 255, "threads that are registered")
    equal(reader.inline_threads, 400 - 255, "events whose record has the thread itself")


def filter_passes_on_what_it_lets_through(tmp):
    path = x.gen(tmp, "guest 100")
    for args in (("--cpu", "1"), ("--class", "SYSC"), ("--since", "1ms"), ("--thread", "sh")):
        expect(check(path, tmp, *args).records, f"nothing for {args}")


if __name__ == "__main__":
    x.main([each_stream(check), guest_has_every_kind_of_record, more_threads_than_the_table_has,
                  filter_passes_on_what_it_lets_through, two_boots_are_refused("fxt")])
