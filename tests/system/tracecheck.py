"""tracecheck.py - checks that hold for every trace, whatever the workload: order, pairs, accounting.

After a gap nothing is known about the CPU's threads, so these checks also hold for traces with losses. A test
that must not lose events calls no_gaps().
"""
import re

from harness import Failed, check, check_eq, json_lines, ktrdump, scratch_file

GRAPH = re.compile(r'KTRGRAPH group:"(?P<group>[^"]*)", id:"(?P<id>[^"]*)", (?P<type>\w+):(?:"(?P<text>[^"]*)"|(?P<value>\S+)),')
IDENT = re.compile(r"[^ \"]+ tid (\d+)")  # with the name that the thread had when the event was written out
KEYS = ("cpu", "seq", "ns", "tid", "file", "line", "func", "class", "text")
# System calls that never return to their caller.
NO_RETURN = {"exit", "exit_group", "machine_shutdown"}


def by_number(decoded):
    """{(cpu, seq): event}, with those fields that do not depend on where the event was read, and the entries that hold
    parts of data. Threads are numbers, since they may be renamed."""
    return {(e["cpu"], e["seq"]): {k: IDENT.sub(r"tid \1", e[k]) if k == "text" else e[k] for k in KEYS}
            for e in decoded if "seq" in e} | {(e["cpu"], e["part"]): {"text": "(part)"} for e in decoded if "part" in e}


def read_lines(*args, status=(0,)):
    """json_lines() of what ktrdump reads. status: the permitted exit statuses."""
    found, out, err = ktrdump("--format", "jsonl", *args)
    check(found in status, f"ktrdump {' '.join(map(str, args))}: status {found}, expected {status}: {err}")
    return json_lines(out)


def read_events(*args, status=(0,)):
    """by_number() of read_lines()."""
    return by_number(read_lines(*args, status=status))


def overwritten(decoded):
    """{cpu: (events, from_ns, to_ns)} of the gaps before the oldest events of a log. Each must end where its CPU's events begin."""
    gaps = {e["cpu"]: (e["gap"], e["from_ns"], e["to_ns"]) for e in decoded if e.get("why") == "overwritten"}
    for cpu, (count, from_ns, to_ns) in gaps.items():
        first = min((e for e in decoded if e.get("cpu") == cpu and "seq" in e), key=lambda e: e["seq"])
        check(from_ns < to_ns <= first["ns"], f"cpu {cpu}: {count} events were overwritten from {from_ns} to {to_ns}; the next is {first}")
    return gaps


def read_boot(parts, status=(0, 1)):
    """by_number() of what a boot wrote to the serial line: one stream or two. A machine that stops while the flush
    makes frames makes them again, in a second stream. status: permitted statuses for the last stream."""
    check(len(parts) in (1, 2), f"{len(parts)} streams of a boot on the line, expected 1 or 2")
    return {key: e for part in parts
            for key, e in read_events("-i", part, status=status if part == parts[-1] else (0, 1)).items()}


def streams(path):
    """Splits a file into its streams and returns their paths. A stream begins with a header frame with the START
    flag."""
    data = path.read_bytes()
    starts = [data.rindex(b"\0", 0, m.start()) for m in re.finditer(rb"KTRW\x01[\x01\x03]", data)]
    parts = []
    for start, end in zip(starts, [*starts[1:], len(data)]):
        parts.append(scratch_file(".ktr"))
        parts[-1].write_bytes(data[start:end])
    return parts


def same_events(decoded, shown):
    """Compares ktrdump's events with those that the debugger shows (console.db_events())."""
    found = {(e["cpu"], e["seq"]): (e["tid"], e["ns"], e["file"], e["line"], e["text"]) for e in decoded
             if "seq" in e}
    check(len(shown) > 100, f"show ktr prints {len(shown)} events, expected more than 100")
    check_eq(found.keys() ^ shown.keys(), set(), "(cpu, number) of events that only one of the two has")
    for key in sorted(shown):
        check_eq(found[key], shown[key], f"event {key} as ktrdump found it, and as show ktr prints it")


def no_gaps(run):
    check_eq(run.gaps, [], "gaps in the trace")


def timestamps_ascend(run):
    """On each CPU times never fall, and sequence numbers increase by one, plus the events of gaps."""
    last, gap = {}, {}
    for e in run.decoded:
        cpu = e["cpu"]
        if "gap" in e:
            check(e["from_ns"] <= e["to_ns"], f"gap from after to: {e}")
            gap[cpu] = gap.get(cpu, 0) + e["gap"]
            continue
        if "part" in e:
            gap[cpu] = gap.get(cpu, 0) + 1
            continue
        if cpu in last:
            before = last[cpu]
            if e["ns"] < before["ns"]:  # a message is made only then: traces are long
                raise Failed(f"time falls on cpu {cpu}: {before['text']} at {before['ns']}, then {e['text']} at {e['ns']}")
            if e["seq"] != before["seq"] + 1 + gap[cpu]:
                raise Failed(f"sequence number on cpu {cpu} after {before['seq']} and {gap[cpu]} lost or parts of its data: "
                             f"found {e['seq']}")
        gap[cpu] = 0
        last[cpu] = e


def merged_by_time(run):
    """ktrdump merges all CPUs by time."""
    ns = 0
    for e in run.events:
        if e["ns"] < ns:
            raise Failed(f"output not in the order of time: {e['ns']} after {ns}: {e['text']}")
        ns = e["ns"]


def syscalls_pair(run):
    """Every system call returns on its thread before that thread's next call."""
    check_eq(run.gaps, [], "gaps, which would hide returns")
    open_call, pairs, known = {}, 0, set()
    for e in run.events:
        m = re.match(r"thread change: tid (\d+) to (\d+)$", e["text"])
        if m:  # execve() that begins in one thread ends in the first one
            old, new = int(m[1]), int(m[2])
            open_call.pop(new, None)
            known.add(new)
            if old in open_call:
                open_call[new] = open_call.pop(old)
        m = re.match(r"(syscall|sysret) (\w+):", e["text"])
        if not m or "SYSC" not in e["class"].split(","):
            continue
        what, name, tid = m.group(1), m.group(2), e["tid"]
        if what == "syscall":
            check(tid not in open_call, f"thread {tid} enters {name} at {e['ns']} ns while "
                                        f"{open_call.get(tid)} has not returned")
            open_call[tid] = name
            known.add(tid)
        elif tid in known:
            check_eq(open_call.pop(tid, None), name, f"call that returns on thread {tid} at {e['ns']} ns")
            pairs += 1
        known.add(tid)
    # Calls still open at the end never return, or sleep while the machine powers off.
    asleep = {"wait4", "read", "nanosleep", "clock_nanosleep", "pause"}
    for tid, name in open_call.items():
        check(name in NO_RETURN | asleep, f"{name} of thread {tid} never returned")
    return pairs


def with_whole_mask(run):
    """Events from the first exec on. Trace points are switched on one after the other; the program that does so ends
    before the next exec, so from there on all of them are on."""
    start = next((e["ns"] for e, _ in named(run, "exec: ")), 0)
    return [e for e in run.events if e["ns"] >= start]


def graph_states(run):
    """(event, thread id, state) of the scheduler's thread states, in the order of time."""
    for e in with_whole_mask(run):
        m = GRAPH.match(e["text"])
        if m and m.group("group") == "thread" and m.group("type") == "state":
            yield e, m.group("id"), m.group("text")


def runs_after_runq_add(run):
    """A thread runs only after it was put on a run queue. Idle threads are never queued."""
    check_eq(run.gaps, [], "gaps, which would hide queueing")
    state, since, switches, adds = {}, {}, 0, {}
    for e, ident, what in graph_states(run):
        if what == "runq add":
            adds.setdefault(ident, set()).add(e["ns"])
    for e, ident, what in graph_states(run):
        if ident.startswith("idle/"):
            check(what != "runq add", f"{ident} is put on a run queue at {e['ns']} ns")
            continue
        if what == "running":
            switches += 1
            # Two CPUs may record at the same nanosecond; then the order is unknown.
            same_time = e["ns"] in adds.get(ident, ())
            check(state.get(ident) in (None, "runq add") or same_time,
                  f"{ident} runs at {e['ns']} ns after state {state.get(ident)!r} at {since.get(ident)} ns, expected "
                  f"a runq add between")
        state[ident], since[ident] = what, e["ns"]
    return switches


def one_thread_runs_at_a_time(run):
    """Only the thread that a CPU switched to last records events there."""
    current = {}
    for e in with_whole_mask(run):
        m = GRAPH.match(e["text"])
        if m and m.group("group") == "thread" and m.group("type") == "state" and m.group("text") == "running":
            current[e["cpu"]] = int(m.group("id").rsplit(" ", 1)[1])
        elif e["cpu"] in current:
            # Nothing records between the change of the thread and the event of it.
            check_eq(e["tid"], current[e["cpu"]], f"thread of the event at {e['ns']} ns on cpu {e['cpu']} ({e['text']})")


def accounting_holds(stats):
    """recorded = delivered + resident + overwritten, on every CPU."""
    for cpu, s in stats.items():
        check_eq(s["delivered"] + s["resident"] + s["overwritten"], s["recorded"],
                 f"delivered + resident + overwritten of cpu {cpu} ({s})")


def named(run, pattern):
    """Ids of the processes that executed a program."""
    regex = re.compile(pattern)
    return [(e, m) for e in run.events if (m := regex.match(e["text"]))]


def processes(run, program):
    """Ids of the processes that executed a program."""
    return [int(m.group(1)) for _, m in named(run, rf"exec: pid (\d+) name {program} ")]
