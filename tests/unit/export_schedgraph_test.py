#!/usr/bin/python3
"""export_schedgraph_test.py - ktrdump's schedgraph export follows every rule of FreeBSD's schedgraph.py, and has
the contents of jsonl.

The reader below fails where schedgraph.py complains, drops a line, or stops. Prints TAP.
"""
import os
import pathlib
import re
import subprocess

import export_help as x
import span_model
from export_help import equal, expect
from export_timeline_help import each_stream, exported, two_boots_are_refused

QUOTED = r'"([^"]*)"'
LINE = re.compile(rf"\s*(\d+)\s+(\d+)\s+(\d+)\s+KTRGRAPH group:{QUOTED}, id:{QUOTED}, ([^:]+):(?:{QUOTED}|([^,]+)), "
                  r"attributes: (.*)")
ATTRIBUTE = re.compile(rf'(?:"[^"]*"|[^:]+)\s*:\s*(?:(?:{QUOTED}|([^,]+)), (.*)|{QUOTED}|(.*))')
CONVERSION = re.compile(r'(?:^|, )([^:,"]+):("?)%([#0-9.l]*j?)([a-zA-Z])')
DROPPED_NS = 2048


class Row:
    def __init__(self, index, cpu, ns, group, name, kind, value, attributes):
        self.index, self.cpu, self.ns = int(index), int(cpu), int(ns)
        self.group, self.id, self.kind, self.value, self.attributes = group, name, kind, value, attributes

    def key(self):
        return self.cpu, self.ns, self.group, self.id, self.kind, self.value, self.attributes


def attributes(text):
    """[(name, value)], split as schedgraph.py does."""
    found = []
    while text is not None:
        m = ATTRIBUTE.match(text.strip())
        if m is None:
            break
        name = text.strip()[:m.end()].split(":", 1)[0]
        quoted, plain, text, last_quoted, last = m.groups()
        found.append((name, next((v for v in (quoted, plain, last_quoted, last) if v is not None), None)))
    return found


def read(text):
    """The rows, oldest first."""
    rows, before = [], None
    for line in text.splitlines():
        m = LINE.fullmatch(line)
        expect(m, f"a line that schedgraph.py cannot parse: {line!r}")
        index, cpu, ns, group, name, kind, quoted, plain, rest = m.groups()
        rows.append(Row(index, cpu, ns, group, name, kind, plain if quoted is None else quoted, attributes(rest)))
        expect(before is None or int(ns) <= before, f"newer than the line before: {line!r}")
        before = int(ns)
    return rows[::-1]


def keeps_the_rules(rows):
    """Checks for what would make schedgraph.py stop, or show something else."""
    expect(rows and rows[-1].ns > rows[0].ns, "no time between the first and the last line")
    span = rows[-1].ns - rows[0].ns
    equal([r.index for r in rows], sorted({r.index for r in rows}), "indexes")
    kinds, states, most, ids, ticks = {}, {}, {}, {r.id for r in rows}, {}
    for r in rows:
        expect(r.kind in ("state", "point", "counter"), f"unknown type {r.kind!r}")
        equal(kinds.setdefault(r.group + r.id, r.kind == "counter"), r.kind == "counter", f"is {r.id!r} a counter")
        if r.kind == "state":
            states[r.group + r.id] = states.get(r.group + r.id, 0) + 1
        if r.kind == "counter":
            most[r.group] = max(most.get(r.group, 0), int(r.value))
        for name, value in r.attributes:
            if name == "linkedto":
                expect(value in ids, f"linked to {value!r}, which is not there")
            if name == "stathz":
                ticks.setdefault(r.cpu, []).append(int(value))
    expect(max(states.values(), default=0) >= 2, "no source has two states")
    equal([g for g, n in most.items() if n <= 0], [], "groups of counters that are never above 0")
    if ticks:
        expect(0 in ticks, "stathz is there, but not on CPU 0")
        clock = span // len(ticks[0]) * ticks[0][0]
        expect(abs(clock - 10**9) <= 10**7, f"the clock found is {clock} Hz, times are nanoseconds")
    return bool(ticks)


def drawn_in_time(rows):
    """Draws a source as schedgraph.py does: a state advances it by its length; all before the first state is moved
    to it."""
    sources = {}
    for r in rows:
        if r.kind == "state" or r.kind == "point":
            sources.setdefault(r.group + r.id, []).append(r)
    for rows_of in sources.values():
        states = [r for r in rows_of if r.kind == "state"]
        at = rows_of[0].ns
        for state, following in zip(states, states[1:]):
            equal(at, state.ns, f"time at which {state.id!r} {state.value!r} is drawn")
            at += following.ns - state.ns


def without_beginnings(rows):
    """Without states that only precede a point at the beginning of a source."""
    following, found = {}, []
    for r in reversed(rows):
        before = following.get(r.group + r.id)
        if not (r.kind == "state" and (r.value, r.attributes) == ("idle", []) and before is not None and
                (before.kind, before.ns) == ("point", r.ns)):
            found.append(r)
        following[r.group + r.id] = r
    return found[::-1]


IDLE = re.compile(r"idle/\d+ tid \d+")


def idle_ends(rows):
    """[(CPU, ns, id)] of the states that say that an idle thread stops."""
    return [(r.cpu, r.ns, r.id) for r in rows if IDLE.fullmatch(r.id) and (r.value, r.attributes) == ("idle", [])]


def idle_ends_are_right(found, said):
    """These must be where jsonl shows that another thread runs, and may be where only another thread's event shows
    it."""
    sure, perhaps, runs, last = [], set(), {}, {}
    for e in said:
        cpu, thread = e["cpu"], e.get("thread") or ""
        if last.get(cpu, "").startswith("idle/") and "seq" in e and thread != last[cpu]:
            perhaps.add((cpu, e["ns"]))
        last[cpu] = thread
        if "gap" in e:
            runs.pop(cpu, None)
        elif (r := expected(e)) and (r[2], r[5]) == ("thread", "running"):
            before = runs.get(cpu)
            if before is None:
                perhaps.add((cpu, e["ns"]))
            elif IDLE.fullmatch(before) and before != r[3]:
                sure.append((cpu, e["ns"], before))
            runs[cpu] = r[3]
    equal([s for s in sure if s not in found], [], "ends that are missing of what idle threads ran")
    equal([f for f in found if f not in sure and f[:2] not in perhaps], [], "ends of what idle threads ran that jsonl does not know")
    equal(found, sorted(found, key=lambda f: f[1]), "order of the ends")


def unknown_is_right(found, said):
    """From a loss on, each thread in a known state has the state unknown, unless it runs on another CPU."""
    spans = span_model.Spans(said)
    begins = {begin for _, _, begin, _ in spans.lost}
    known, ends = {}, set()
    for tid, state, _, _, name, _, begin, end in sorted(spans.threads, key=lambda s: s[-2]):
        if state == "unknown" and begin in begins and known.get(tid) == begin:
            ends.add((begin, f"{name} tid {tid}"))
        known[tid] = end if state not in ("unknown", "dead") and name else None
    told = {(plain(r)[1], plain(r)[3]) for r in found}
    equal(sorted(e for e in ends if e not in told and '"' not in e[1] and "," not in e[1]), [], "unknown states that are missing")
    equal([plain(r) for r in found if r.ns not in begins], [], "unknown states without a loss")


def losses(rows):
    """[(CPU, events, until)] from the states of each CPU's source: lost, perhaps several times, then idle."""
    found, until = [], {}
    for r in (r for r in rows if r.group == "lost"):
        equal((r.id, r.kind), (f"CPU {r.cpu} lost", "state"), "source of what was lost")
        if r.value == "lost":
            said = dict(r.attributes)
            found.append((r.cpu, int(said["events"]), int(said["until"])))
            until[r.cpu] = max(until.get(r.cpu, 0), int(said["until"]))
        else:
            equal((r.value, r.attributes), ("idle", []), "what ends what was lost")
            equal(until.pop(r.cpu, None), r.ns, "time at which what was lost ends")
    equal(until, {}, "ends that are missing of what was lost")
    return sorted(found)


def number(flags, conversion, value):
    if conversion in "di":
        return str(value)
    value &= 2**64 - 1
    if conversion in "xXp":
        digits = f"{value:{conversion if conversion != 'p' else 'x'}}"
        return ("0x" if "#" in flags and value != 0 or conversion == "p" else "") + digits
    return str(value)


def expected(event):
    """The expected row for a row of jsonl, or None."""
    fmt = event["fmt"] or ""
    m = re.match(r'KTRGRAPH group:"([^"%]*)", id:"%s", (state|point|counter):("%s"|%d), attributes: ', fmt)
    if m is None:
        return None
    values = list(event["args"])
    name = values.pop(0)
    value = values.pop(0) if "%" in m[3] else None
    pairs = [(word, (value if q else number(flags, c, value)))
             for (word, q, flags, c), value in zip(CONVERSION.findall(fmt[m.end():]), values)]
    text = lambda v: str(v).replace('"', "'").replace(",", ";")
    return (event["cpu"], event["ns"], m[1], text(name), m[2], text(value), [(n, text(v)) for n, v in pairs])


def plain(row):
    """Replaces what stands for bytes that are not text, as jsonl does."""
    def text(v):
        return re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)) if int(m[1], 16) < 0x80 else "\ufffd", v)
    cpu, ns, group, name, kind, value, attrs = row.key()
    return cpu, ns, text(group), text(name), kind, text(value), [(n, text(v)) for n, v in attrs]


def check(path, tmp, *args):
    """A stream of any kind: the export keeps the rules and has the contents of its jsonl. Returns the rows."""
    out = tmp / "out.schedgraph"
    said = exported("schedgraph", path, out, *args)
    rows = read(out.read_bytes().decode("utf-8"))
    with_stathz = keeps_the_rules(rows)
    ids = {r.id for r in rows}
    drawn_in_time(rows)
    equal(losses(rows), sorted((g["cpu"], g["gap"], max(0, g["to_ns"])) for g in said if "gap" in g), "what was lost")
    trace = [r for r in rows if r.group == "trace"]
    expect(len(trace) in (0, 2), f"{len(trace)} lines about the trace, expected none or two")
    right = [r for r in map(expected, (e for e in said if "seq" in e)) if r]
    most = {}
    for r in right:
        if r[4] == "counter":
            most[r[2]] = max(most.get(r[2], 0), int(r[5]))
    right = [r for r in right if r[4] != "counter" or most[r[2]] > 0]
    clean_ids = {plain(r)[3] for r in rows} | ids
    right = [r[:6] + ([(n, v) for n, v in r[6] if (n != "stathz" or with_stathz) and
                       (n != "linkedto" or v in clean_ids)],) for r in right]
    ends = idle_ends(without_beginnings(rows))
    if not args:
        idle_ends_are_right(ends, said)
    unknown = [r for r in rows if (r.kind, r.value, r.attributes) == ("state", "unknown", [])]
    if not args:
        unknown_is_right(unknown, said)
    found = [plain(r) for r in without_beginnings(rows) if r.group not in ("lost", "trace") and r not in unknown and
             (r.cpu, r.ns, r.id) not in ends]
    equal(len(found), len(right), "lines")
    for f, r in zip(found, right):
        equal(f, r, "line")
    return rows


def empty_trace_can_be_drawn(tmp):
    path = x.gen(tmp, "empty")
    equal([(r.group, r.kind, r.value) for r in check(path, tmp)], [("trace", "state", "idle"), ("trace", "state", "end")],
          "lines of an empty trace")


def busy_trace_needs_no_help(tmp):
    rows = check(x.gen(tmp, "guest 300"), tmp)
    equal([r for r in rows if r.group == "trace"], [], "lines about the trace")
    equal({r.kind for r in rows}, {"state", "point"}, "kinds")
    expect(any(n == "linkedto" for r in rows for n, _ in r.attributes), "no link")


def clock_is_given_only_if_it_is_right(tmp):
    rows = check(x.gen(tmp, "ticks 1000"), tmp)
    equal({v for r in rows for n, v in r.attributes if n == "stathz"}, {"100"}, "stathz")
    equal({r.id for r in rows if r.kind == "counter"}, {"CPU 0 load", "CPU 1 load"}, "counters")
    # A few ticks are not enough for a clock, and those of CPU 1 are ignored.
    for args in (("--until", "35ms"), ("--cpu", "1")):
        rows = check(x.gen(tmp, "ticks 1000"), tmp, *args)
        expect(not any(n == "stathz" for r in rows for n, _ in r.attributes), f"stathz with {args}")


def points_alone_have_no_states(tmp):
    """Threads come and go: each begins once. The woken threads have no lines here, so nothing links to them."""
    rows = check(x.gen(tmp, "guest 300"), tmp, "--grep", "wokeup")
    points = [r for r in rows if r.group != "trace"]
    equal({r.kind for r in points}, {"point"}, "kinds")
    equal([a for r in points for a in r.attributes if a[0] == "linkedto"], [], "links")
    equal(rows[-1].index, len(points) + len({r.id for r in points}) + 1, "index of the last line")


def filter_keeps_the_rules(tmp):
    path = x.gen(tmp, "mix 5000")
    rows = check(path, tmp, "--cpu", "1")
    expect(rows and all(r.cpu == 1 for r in rows), "a line of another CPU")


def many_blocks_come_out_in_order(tmp):
    path = x.gen(tmp, "mix 40000")
    equal(len([r for r in without_beginnings(check(path, tmp)) if r.group == "thread"]), 25000, "lines")


def temporary_file_has_nothing_but_what_was_written(tmp):
    """The allocator fills memory with a byte: it must not reach the disk."""
    data, fill = x.gen(tmp, "mix 40000").read_bytes(), b"\xa5"
    env = dict(os.environ, MALLOC_PERTURB_=str(fill[0] ^ 0xff))
    with subprocess.Popen([x.KTRDUMP, "--format", "schedgraph", "-o", tmp / "out", "-i", "-"], stdin=subprocess.PIPE, env=env) as p:
        p.stdin.write(data)
        p.stdin.flush()
        deadline, written = x.Deadline(x.DEADLINE_S), b""
        while len(written) < 2**18:  # one block
            expect(deadline.tick() > 0, f"{len(written)} bytes in the temporary file")
            for fd in pathlib.Path(f"/proc/{p.pid}/fd").iterdir():
                if "(deleted)" in os.readlink(fd):
                    written = fd.read_bytes()
        p.stdin.close()
    equal(p.returncode, 0, "status")
    expect(b"KTRGRAPH" in written, "no lines in it")
    expect(fill * 8 not in written, "the temporary file has what was in memory")


if __name__ == "__main__":
    x.main([each_stream(check), empty_trace_can_be_drawn, busy_trace_needs_no_help, clock_is_given_only_if_it_is_right,
                  points_alone_have_no_states, filter_keeps_the_rules, many_blocks_come_out_in_order,
                  temporary_file_has_nothing_but_what_was_written, two_boots_are_refused("schedgraph")])
