"""report_model.py - the numbers of `ktrdump report`, computed a second time: from the rows of jsonl, by simpler means.

tables(rows, …) is {(report, table): {labels: {name: number}}}. Rows of threads of the same id are added up: of a thread that
took the id of another, ktrdump makes a row of its own. found(rows) has what ktrdump's own jsonl says, in the same form.
"""
import re

import span_model

DECADES = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
LABELS = ("thread", "tid", "cpu", "state", "why", "call", "known_as", "name", "lock", "kind", "function", "place", "fmt", "class")
MOST = ("longest_ns",)
NOT_SUMS = ("when_ns", "mean_ns", "p50_ns", "p99_ns", "histogram")


def bucket_end(ns):
    """The longest time that falls into the same bucket: eight for each power of two."""
    if ns < 8:
        return ns
    step = 1 << (ns.bit_length() - 4)
    return ns // step * step + step - 1


def quantile(samples, percent):
    ordered = sorted(samples)
    return min(bucket_end(ordered[(len(ordered) * percent + 99) // 100 - 1]), ordered[-1])


def sampled(samples):
    """What a row says of its samples, [(from, to)]."""
    times = [end - begin for begin, end in samples]
    longest = max(times)
    return {"count": len(times), "total_ns": sum(times), "longest_ns": longest, "mean_ns": sum(times) // len(times),
            "p50_ns": quantile(times, 50), "p99_ns": quantile(times, 99),
            "when_ns": {begin for begin, end in samples if end - begin == longest},
            "histogram": [sum(low <= t < high for t in times) for low, high in zip((0, *DECADES), (*DECADES, 1 << 64))]}


class Run(span_model.Spans):
    """What happened, as lists: switches (ns, cpu, tid, was preempted the one before, came from another CPU), calls, wakeups,
    faults (… , begin, end), samples of the profile, timers."""

    def __init__(self, rows, **options):
        self.switches, self.calls, self.wakeups, self.faults, self.traps, self.profile, self.timers = [], [], [], [], [], [], []
        self.last_cpu, self.open_calls, self.woken, self.open_faults, self.due = {}, {}, {}, {}, {}
        self.waits, self.open_waits, self.takes, self.row = [], {}, {}, None
        super().__init__(rows, **options)
        for (tid, _), (name, kind, addr, begin) in self.open_waits.items():
            self.waits.append((name, kind, addr, tid, begin, self.last))

    def switch(self, cpu, t):
        prev = self.all.get(self.running.get(cpu, (None, 0))[0])
        if t.state == "dead":
            self.forget(t.tid)
        if prev is not t:
            self.switches.append((self.now, cpu, t.tid, prev is not None and prev.state == "runnable" and not prev.is_idle(),
                                  self.last_cpu.get(t.tid, cpu) != cpu))
            self.last_cpu[t.tid] = cpu
            if t.tid in self.woken:
                self.wakeups.append((t.tid, cpu, self.woken.pop(t.tid), self.now))
        return super().switch(cpu, t)

    def forget(self, tid):
        for what in (self.last_cpu, self.open_calls, self.woken, self.open_faults):
            what.pop(tid, None)

    def gap(self, row):
        elsewhere = {tid for cpu, (tid, _) in self.running.items() if cpu != row["cpu"]}
        begin = max(row["from_ns"], self.now)
        for tid in self.all.keys() - elsewhere:
            for what in (self.open_calls, self.woken, self.open_faults):
                what.pop(tid, None)
            self.waits_end(tid, begin)
        for addr in self.takes:
            self.takes[addr].append((begin, None))
        self.due.clear()
        super().gap(row)

    def waits_end(self, tid, ns):
        for slot in ("mutex", "spin"):
            if (tid, slot) in self.open_waits:
                name, kind, addr, since = self.open_waits.pop((tid, slot))
                self.waits.append((name, kind, addr, tid, since, ns))

    def change(self, t, state, why=None):
        if state == "dead":
            self.waits_end(t.tid, self.now)
        if state not in ("runnable", "running"):
            self.woken.pop(t.tid, None)
        super().change(t, state, why)

    def graph(self, cpu, t, arg):
        if arg.get("point") == "wokeup" and t is not None:
            other = self.ident(arg.get("linkedto"))
            if other is not None and other.state != "running":
                self.woken.setdefault(other.tid, self.now)
        if arg.get("state") == "thread exit" and t is not None and t.tid in self.open_calls:
            name, begin = self.open_calls.pop(t.tid)  # as exit_group, which does not return
            self.calls.append((name, t.tid, cpu, begin, self.now, False))
        return super().graph(cpu, t, arg)

    def means(self, cpu, t, fmt, arg, graph):
        said = super().means(cpu, t, fmt, arg, graph)
        tid = t.tid
        call = re.match(r"(syscall|sysret) (\w+):", fmt)
        if call and call[1] == "syscall":
            self.open_calls[tid] = (call[2], self.now)
        elif call:
            name, begin = self.open_calls.pop(tid, (None, 0))
            if name == call[2]:
                self.calls.append((name, tid, cpu, begin, self.now, -4096 < arg["ret"] < 0))
        elif fmt.startswith("page fault: "):
            self.open_faults[tid] = [{1: "read", 2: "write", 4: "execute"}.get(arg["access"], "other"), arg["user"], arg["pc"], self.now]
        elif fmt.startswith(("zero fill", "cow copy", "cow reuse")) and tid in self.open_faults:
            self.open_faults[tid][0] = re.match("zero fill|cow copy|cow reuse", fmt)[0]
        elif fmt.startswith("page fault exit: ") and tid in self.open_faults:
            kind, user, pc, begin = self.open_faults.pop(tid)
            self.faults.append((kind if arg["served"] else "nothing", tid, cpu, None if user else pc, begin, self.now))
        elif fmt.startswith("trap: what "):
            self.traps.append((arg["what"], tid, cpu, self.now))
        elif fmt.startswith("interrupt enter: ") and arg.get("name") == "timer" and arg.get("pc"):
            self.profile.append((self.now, cpu, t.tid, t.name, arg["pc"] if not arg["user"] else None))
        elif fmt.startswith("callout set: "):
            self.due[arg["func"], arg["arg"]] = arg["deadline"]
        elif fmt.startswith("callout stop: "):
            self.due.pop((arg["func"], arg["arg"]), None)
        elif fmt.startswith('KTRGRAPH group:"callout"') and arg.get("state") == "running":
            due = self.due.pop((arg["func"], arg["arg"]), None)
            if due is not None:
                self.timers.append((cpu, min(due, self.now), self.now))
        self.lock(t, re.match(r"(mutex|spin) (contended|acquire|release): ", fmt), arg)
        return said

    def lock(self, t, event, arg):
        if event is None:
            return
        kind, what, addr, slot = event[1], event[2], arg["addr"], (t.tid, event[1])
        holder = self.takes.setdefault(addr, [])
        if what == "contended":
            if slot in self.open_waits:
                name, _, where, begin = self.open_waits.pop(slot)
                self.waits.append((name, kind, where, t.tid, begin, self.now))
            self.open_waits[slot] = (arg["lock"], kind, addr, self.now)
            if kind == "spin" and arg["owner"] >= 0 and not (holder and isinstance(holder[-1][1], tuple)):
                runs = self.running.get(arg["owner"], (None, 0))[0]
                holder.append((self.now, None if runs is None else (runs, 0)))
        elif what == "acquire":
            if slot in self.open_waits and self.open_waits[slot][2] == addr:
                name, _, _, begin = self.open_waits.pop(slot)
                self.waits.append((name, kind, addr, t.tid, begin, self.now))
            holder.append((self.now, (t.tid, arg.get("caller", 0))))
        else:
            holder.append((self.now, "nobody"))

    def blame(self, low, high, wanted):
        """{(lock, tid or None or "nobody", pc): ns} of who had the locks while others waited, piece by piece."""
        sums = {}
        for name, _, addr, tid, begin, end in self.waits:
            if not wanted(tid):
                continue
            holders = [(0, None), *self.takes[addr], (1 << 64, None)]
            for (since, who), (until, _) in zip(holders, holders[1:]):
                ns = min(end, until, high) - max(begin, since, low)
                if ns > 0:
                    key = (name, *(who if isinstance(who, tuple) else (who, 0)))
                    sums[key] = sums.get(key, 0) + ns
        return sums


def grouped(samples, key):
    """{key(sample): what sampled() says of those}; the last two of a sample are its begin and end."""
    groups = {}
    for s in sorted(samples, key=lambda s: s[-1]):
        groups.setdefault(key(s), []).append(s[-2:])
    return {k: sampled(v) for k, v in groups.items()}


def tables(rows, since=0, until=1 << 63, tids=None, cpus=None):
    """tids, cpus: those that are wanted; None: all."""
    run = Run(rows, since=since, until=until)

    def wants(tid, cpu):
        return (tids is None or tid in tids) and (cpus is None or cpu in cpus)

    def within(samples, tid, cpu):
        """Those that are wanted and end between since and until, from since on."""
        return [(*s[:-2], max(s[-2], since), s[-1]) for s in samples if wants(s[tid], s[cpu]) and since <= s[-1] <= until]
    made = {}
    idle = {tid for tid, t in run.all.items() if t.is_idle()}
    busy = made["cpu", "cpus"] = {}
    for cpu, tid, begin, end in run.cpus:
        row = busy.setdefault((cpu,), dict.fromkeys(("busy_ns", "idle_ns", "unknown_ns", "switches", "preempted", "migrated"), 0))
        what = "unknown_ns" if tid is None else "idle_ns" if tid in idle else "busy_ns"
        row[what] += end - begin if tid is None or wants(tid, cpu) else 0
    for ns, cpu, tid, preempted, moved in run.switches:
        if since <= ns <= until and wants(tid, cpu):
            for name, value in (("switches", 1), ("preempted", preempted), ("migrated", moved)):
                row = busy.setdefault((cpu,), dict.fromkeys(("busy_ns", "idle_ns", "unknown_ns", "switches", "preempted", "migrated"), 0))
                row[name] += value
    if cpus is not None:
        made["cpu", "cpus"] = busy = {k: v for k, v in busy.items() if k[0] in cpus}
    runs = [(tid, cpu, begin, end) for cpu, tid, begin, end in run.cpus if tid is not None and tid not in idle and wants(tid, cpu)]
    made["cpu", "runs"] = grouped(runs, lambda s: (s[1], s[0]))
    threads, states = made["thread", "threads"], waits = {}, []
    made["thread", "threads"] = threads
    for tid, state, why, call, _, cpu, begin, end in run.threads:
        on_cpu = state in ("running", "spinning")
        if state == "dead" or tid in idle or (tids is not None and tid not in tids) or (cpus is not None and not (on_cpu and cpu in cpus)):
            continue
        row = threads.setdefault((tid,), {s + "_ns": 0 for s in ("running", "in_calls", "runnable", "blocked", "spinning", "sleeping", "unknown")})
        row[state + "_ns"] += end - begin
        row["in_calls_ns"] += end - begin if state == "running" and call is not None else 0
        if state not in ("unknown", "running"):
            waits.append((tid, state, why, begin, end))
    del states
    made["thread", "states"] = grouped(waits, lambda s: s[:3])
    calls = within([(n, tid, cpu, error, b, e) for n, tid, cpu, b, e, error in run.calls], 1, 2)
    for table, key in (("calls", lambda s: s[:1]), ("callers", lambda s: (s[0], s[1]))):
        made["syscall", table] = grouped(calls, key)
        for k, row in made["syscall", table].items():
            row["errors"] = sum(s[3] for s in calls if key(s) == k)
    if tids is None:
        irqs = [(cpu, name, b, e) for cpu, name, b, e in run.irqs if cpus is None or cpu in cpus]
        made["irq", "interrupts"] = grouped(irqs, lambda s: s[:2])
        made["irq", "timer"] = grouped([(c, max(b, since), e) for c, b, e in run.timers if (cpus is None or c in cpus) and
                                        since <= e <= until], lambda s: s[:1])
    wakeups = within(run.wakeups, 0, 1)
    made["wakeup", "threads"] = grouped(wakeups, lambda s: s[:1])
    faults = within(run.faults, 1, 2)
    made["fault", "faults"] = grouped(faults, lambda s: (s[0], s[1]))
    traps = made["fault", "traps"] = {}
    for what, tid, cpu, ns in run.traps:
        if since <= ns <= until and wants(tid, cpu):
            traps[what, tid] = {"count": traps.get((what, tid), {"count": 0})["count"] + 1}
    if cpus is None:
        clamp = [(name, kind, max(b, since), min(e, until)) for name, kind, _, tid, b, e in run.waits
                 if (tids is None or tid in tids) and e >= since and b <= until]
        made["lock", "locks"] = grouped(clamp, lambda s: s[:2])
        made["lock", "holders"] = {}
        for (name, tid, _), ns in run.blame(since, until, lambda tid: tids is None or tid in tids).items():
            row = made["lock", "holders"].setdefault((name, tid if isinstance(tid, int) else 0), {"total_ns": 0})
            row["total_ns"] += ns
    made["profile", "samples"] = [(name, pc) for ns, cpu, tid, name, pc in run.profile if since <= ns <= until and wants(tid, cpu)]
    return made, run


RENAMED = {"ran_ns": "total_ns"}
KEYS = {
    ("cpu", "cpus"): ("cpu",), ("cpu", "runs"): ("cpu", "tid"), ("thread", "threads"): ("tid",), ("thread", "states"): ("tid", "state", "why"),
    ("syscall", "calls"): ("call",), ("syscall", "callers"): ("call", "tid"), ("irq", "interrupts"): ("cpu", "name"), ("irq", "timer"): ("cpu",),
    ("wakeup", "threads"): ("tid",), ("fault", "faults"): ("kind", "tid"), ("fault", "traps"): ("kind", "tid"), ("lock", "locks"): ("lock", "kind"),
    ("lock", "holders"): ("lock", "tid"),
}


def found(rows):
    """What `ktrdump report --format jsonl` says: the same form, with rows of equal labels added up, and the total rows apart."""
    made, totals = {key: {} for key in KEYS}, {}
    for row in rows:
        table = (row["report"], row.get("table"))
        row = {RENAMED.get(name, name): value for name, value in row.items()}
        if row.get("row") == "total":
            totals[table] = row
        if table not in KEYS or "row" in row:
            continue
        labels = tuple(row[name] for name in KEYS[table])
        numbers = {name: value for name, value in row.items() if name not in LABELS and name not in ("report", "table")}
        before = made[table].get(labels)
        if before is None:
            made[table][labels] = numbers
            continue
        for name, value in numbers.items():
            if name in MOST:
                before[name] = max(before[name], value)
            elif name in NOT_SUMS:
                before[name] = None  # of two rows there is none
            else:
                before[name] += value
    return made, totals
