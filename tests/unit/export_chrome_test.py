#!/usr/bin/python3
"""export_chrome_test.py - ktrdump's trace event JSON keeps what Perfetto, catapult and speedscope need, and says what jsonl says.

Prints TAP.
"""
import json
import re

import export_help as x
import wire
from export_help import equal, expect
from export_timeline_help import (each_stream, event_name, exported, ident_tid,
                                  same_thread, two_boots_are_refused, value_text)

EXACT_MAX = 2**53
PHASES = {"M": {"name", "args"}, "B": {"name", "cat"}, "E": {"name", "cat"}, "X": {"name", "cat", "dur", "args"},
          "i": {"name", "cat", "s", "args"}, "C": {"name", "cat", "args"}, "s": {"name", "cat", "id"},
          "f": {"name", "cat", "id", "bp"}}


def once(pairs):
    """An object. All its members must have different names."""
    equal(len({k for k, _ in pairs}), len(pairs), f"different members in {pairs}")
    return dict(pairs)


def integer(text):
    expect(abs(int(text)) <= EXACT_MAX, f"{text} is no exact double")
    return int(text)


def nanoseconds(text):
    expect(re.fullmatch(r"\d+\.\d{3}", text), f"time {text}")
    return int(text.replace(".", ""))


def read(data):
    """The entries, with times in nanoseconds."""
    entries = json.loads(data.decode("utf-8"), object_pairs_hook=once, parse_int=integer, parse_float=nanoseconds)
    expect(isinstance(entries, list) and entries, "no array of entries")
    for e in entries:
        expect(e.get("ph") in PHASES, f"phase of {e}")
        equal(set(e), {"ph", "pid", "tid", "ts"} | PHASES[e["ph"]], f"members of {e}")
        expect(0 < e["pid"] < 2**32 and 0 < e["tid"] < 2**32, f"pid and tid of {e}")
        expect(isinstance(e["name"], str) and e["name"], f"name of {e}")
    return entries


class Trace:
    """The contents of a trace. Checks every rule of the format."""

    def __init__(self, entries):
        self.instants, self.durations, self.lost, self.names = [], [], [], {}
        processes, self.processes, open_slices, arrows, ns, self.arrows = {}, {}, {}, {}, 0, 0
        for e in entries:
            track = (e["pid"], e["tid"])
            if e["ph"] == "M":
                self.meta(e)
                continue
            equal(processes.setdefault(e["tid"], e["pid"]), e["pid"], f"process of tid {e['tid']}")
            if e["ph"] != "X":  # a loss starts where the loss before it ended
                expect(e["ts"] >= ns, f"{e} comes before {ns}")
                ns = e["ts"]
            expect(track in self.names, f"the track of {e} has no name")
            stack = open_slices.setdefault(track, [])
            if e["ph"] == "B":
                stack.append((e["name"], e["cat"], e["ts"]))
            elif e["ph"] == "E":
                expect(stack, f"{e} ends nothing")
                name, cat, begun = stack.pop()
                equal((e["name"], e["cat"]), (name, cat), "what ends, and what began")
                self.durations.append((track, cat, name, begun, e["ts"], len(stack)))
            elif e["ph"] == "X":
                equal(stack, [], f"what a loss interrupts on {track}")
                self.lost.append((e["tid"], e["args"]["events"], e["ts"], e["ts"] + e["dur"]))
            elif e["ph"] == "s":
                expect(stack and e["id"] not in arrows, f"an arrow from nothing: {e}")
                arrows[e["id"]] = True
                self.arrows += 1
            elif e["ph"] == "f":
                expect(stack and arrows.get(e["id"]), f"an arrow to nothing, or not from one: {e}")
                equal(e["bp"], "e", "where an arrow ends")
                arrows[e["id"]] = False
            else:
                e["thread"] = self.names[track]
                self.instants.append(e)
        equal([t for t, s in open_slices.items() if s], [], "tracks with what has no end")
        equal([i for i, open_ in arrows.items() if open_], [], "arrows without an end")

    def meta(self, e):
        kind, _, what = e["name"].partition("_")
        expect(kind in ("process", "thread") and what in ("name", "sort_index"), f"metadata {e}")
        if what == "sort_index":
            expect(isinstance(e["args"]["sort_index"], int), f"metadata {e}")
        elif kind == "thread":
            self.names[(e["pid"], e["tid"])] = e["args"]["name"]
        else:
            self.processes[e["args"]["name"]] = e["pid"]

    def losses_nest(self):
        """On a CPU's track, a loss overlaps no other loss, thread or interrupt; and all lost time is shown as lost."""
        slices = [(tid, a, b) for tid, _, a, b in self.lost]
        slices += [(track[1], a, b) for track, cat, _, a, b, _ in self.durations if cat in ("cpu", "interrupt")]
        for tid in {s[0] for s in slices}:
            open_until = []
            for _, a, b in sorted((s for s in slices if s[0] == tid), key=lambda s: (s[1], -s[2])):
                while open_until and open_until[-1] <= a:
                    open_until.pop()
                expect(not open_until or b <= open_until[-1], f"tid {tid}: {a} to {b} crosses what ends at {open_until[-1:]}")
                open_until.append(b)

    def no_ties(self):
        """Slices of threads that touch have different names, since some readers would nest them otherwise."""
        ends = {}
        for track, cat, name, begun, ended, depth in sorted(self.durations, key=lambda d: (d[3], d[4])):
            if cat in ("state", "syscall") and ended > begun:
                expect((track, name, begun, depth) not in ends, f"{name!r} begins at {begun} where one ends")
                ends[(track, name, ended, depth)] = True


def functions_of(rows):
    """{thread: [(function, begin, end)]}. What has no end of its own ends with what it began in, with its thread, or with the
    trace."""
    open_slices, found, dead = {}, {}, set()

    def end(tid, name, ns):
        """Ends the innermost slice of that name, and what began in it."""
        slices = open_slices[tid]
        while name in [n for n, _ in slices]:
            ended, begun = slices.pop()
            found.setdefault(tid, []).append((ended, begun, ns))
            if ended == name:
                break
    for row in rows:
        fmt, tid = row["fmt"] or "", row["tid"] or 0xfffe0002
        slices = open_slices.setdefault(tid, [])
        if fmt.startswith('KTRGRAPH group:"thread", id:"%s", state:"%s",') and ident_tid(row["args"][0]) is not None:
            about = ident_tid(row["args"][0])
            dead.discard(about)
            if row["args"][1] == "thread exit":
                dead.add(about)
                found.setdefault(about, []).extend((name, begun, row["ns"]) for name, begun in open_slices.pop(about, []))
        if tid in dead:
            continue
        if fmt.startswith(("syscall ", "sysret ")):
            end(tid, "", row["ns"])
        if fmt.startswith(("syscall ", "-> ")):
            slices.append((row["func"] if fmt[0] == "-" else "", row["ns"]))
        elif fmt.startswith("<- "):
            end(tid, row["func"], row["ns"])
    for tid, slices in open_slices.items():
        found.setdefault(tid, []).extend((name, begun, rows[-1]["ns"]) for name, begun in slices)
    functions = {tid: sorted(c for c in calls if c[0] != "") for tid, calls in found.items()}
    return {tid: calls for tid, calls in functions.items() if calls}


def tracks_follow(trace, rows):
    """System calls and the threads on CPUs, computed from jsonl's rows alone. For streams without losses."""
    calls, runs, functions = {}, {}, {}
    for track, cat, name, begun, ended, _ in trace.durations:
        if cat == "syscall":
            calls.setdefault(track[1], []).append((name, begun))
        if cat == "function":
            functions.setdefault(track[1], []).append((name, begun, ended))
        if cat == "cpu":
            runs.setdefault(track[1] - 0xffff0000, []).append((int(name.rsplit(" ", 1)[1]), begun, ended))
    right = {}
    for row in rows:
        m = re.match(r"syscall ([^:%]*):", row["fmt"] or "")
        if m:
            right.setdefault(row["tid"], []).append((m[1], row["ns"]))
    equal({t: sorted(c, key=lambda c: c[1]) for t, c in calls.items()}, right, "system calls by thread")
    equal({t: sorted(f) for t, f in functions.items()}, functions_of(rows), "functions by thread")
    now, right = {}, {}
    idle = {row["tid"] for row in rows if re.match(r"idle/\d", row["thread"] or "")} | {0}
    for row in rows:
        word = dict(zip(row["names"], row["args"]))
        tid, cpu = row["tid"], row["cpu"]
        if (row["fmt"] or "").startswith('KTRGRAPH group:"thread", id:"%s", state:"%s",') and word["state"] == "running":
            tid = ident_tid(word["id"]) if ident_tid(word["id"]) is not None else tid
        if now.get(cpu, (None,))[0] != tid:
            for other in [c for c in now if c != cpu and now[c][0] == tid]:  # no event said that it left
                if tid not in idle:
                    right.setdefault(other, []).append((*now[other], row["ns"]))
                del now[other]
            if now.get(cpu, (0,))[0] not in idle:
                right.setdefault(cpu, []).append((*now[cpu], row["ns"]))
            now[cpu] = (tid, row["ns"])
    last = max((row["ns"] for row in rows), default=0)
    for cpu, (tid, ns) in now.items():
        if tid not in idle:
            right.setdefault(cpu, []).append((tid, ns, last))
    equal(runs, right, "what CPUs ran")


def compare(e, row):
    equal(e["ts"], row["ns"], "time")
    word = dict(zip(row["names"], row["args"]))
    if e["ph"] == "C":
        expect(row["fmt"].startswith('KTRGRAPH group:"load", id:"%s", counter:%d,'), "a counter of another event")
        equal((e["name"], e["args"], e["tid"]), (word["id"], {"value": word["counter"]}, 0xffff0000 + row["cpu"]), "counter")
        return
    name = event_name(row)
    expect(e["name"] == name if name is not None else re.fullmatch(r"site \d+", e["name"]),
           f"name {e['name']!r}, expected {name!r}")
    equal(e["cat"], row["class"] or "", "category")
    equal(e["tid"], row["tid"] or 0xfffe0002, "thread")
    if "name" not in word:  # the event may name it itself
        expect(same_thread(e["thread"], row["thread"] or None), f"thread {e['thread']!r}, expected {row['thread']!r}")
    equal((e["args"].pop("on cpu"), list(e["args"])), (row["cpu"], row["names"]), "CPU, names of arguments")
    for (name, found), said in zip(e["args"].items(), row["args"]):
        right = said
        if isinstance(said, int) and abs(said) > EXACT_MAX:
            right = str(said)
        expect(found in (right, value_text(said)), f"{name}: found {found!r}, expected {right!r}")


def check(path, tmp, *args):
    """A stream of any kind: the export keeps the rules and has the contents of its jsonl. Returns the trace."""
    out = tmp / "out.json"
    said = exported("chrome", path, out, *args)
    trace = Trace(read(out.read_bytes()))
    events = [row for row in said if "seq" in row]
    gaps = [row for row in said if "gap" in row]
    equal(len(trace.instants), len(events), "events")
    for e, row in zip(trace.instants, events):
        try:
            compare(e, row)
        except AssertionError as error:
            raise AssertionError(f"{error}\n# of {row}\n# in {e}") from error
    equal(sorted((tid - 0xffff0000, n) for tid, n, _, _ in trace.lost), sorted((g["cpu"], g["gap"]) for g in gaps),
          "what was lost")
    trace.losses_nest()
    if not gaps:
        trace.no_ties()  # a call whose end is lost ends where the next one begins
    if not gaps and not args:
        tracks_follow(trace, events)
    return trace


def guest_has_all_tracks(tmp):
    path = x.gen(tmp, "guest 300")
    trace = check(path, tmp)
    equal({cat for _, cat, *_ in trace.durations}, {"state", "syscall", "cpu", "interrupt"}, "kinds of slices")
    equal(set(trace.processes), {"CPUs", "threads"}, "processes")
    states = {name.split(":")[0] for _, cat, name, *_ in trace.durations if cat == "state"}
    expect({"running", "runnable", "sleeping", "blocked"} <= states, f"states: {states}")
    expect(any(depth == 1 for _, cat, _, _, _, depth in trace.durations if cat == "state"), "no state in a system call")
    expect(trace.arrows > 100, f"{trace.arrows} arrows")


def overlapping_losses_of_a_cpu_do_not_cross(tmp):
    """Losses that overlap in every way, and an event before the end of the loss before it."""
    path = tmp / "losses.ktr"
    path.write_bytes(wire.stream(
        wire.batch(0, 0, 100, 7, [(1, 0, [])]), wire.loss(0, 1, 1, 1000, 5000), wire.loss(0, 2, 1, 2000, 3000),
        wire.loss(0, 3, 1, 2500, 6000), wire.loss(0, 4, 1, 2200, 2300), wire.batch(1, 0, 5500, 8, [(1, 0, [])]),
        wire.batch(0, 5, 5800, 7, [(1, 0, []), (1, 10, [])]), wire.loss(0, 7, 1, 5900, 5900), wire.loss(0, 8, 1, 9000, 9500)))
    lost = check(path, tmp).lost
    equal([events for _, events, _, _ in lost], [1] * 6, "losses")
    equal([(a, b) for _, _, a, b in lost], [(1000, 1999), (2000, 2499), (2500, 2500), (2500, 5799), (5900, 5900), (9000, 9499)],
          "what was lost")


def cut_off_pipe_is_readable(tmp):
    path = x.gen(tmp, "mix 2000")
    whole = x.ktrdump("--format", "chrome", path)[1]
    for at in range(len(whole) // 2, len(whole) // 2 + 5000, 997):
        text = whole[:whole.rindex("},\n", 0, at) + 1] + "]"
        expect(len(json.loads(text)) > 100, "entries of what is cut off")


def filter_passes_on_what_it_lets_through(tmp):
    path = x.gen(tmp, "guest 100")
    for args in (("--cpu", "1"), ("--class", "SYSC"), ("--since", "2ms"), ("--thread", "sh")):
        expect(check(path, tmp, *args).instants, f"nothing for {args}")


if __name__ == "__main__":
    x.main([each_stream(check), guest_has_all_tracks, overlapping_losses_of_a_cpu_do_not_cross, cut_off_pipe_is_readable,
                  filter_passes_on_what_it_lets_through, two_boots_are_refused("chrome")])
