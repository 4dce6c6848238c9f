"""span_model.py - computes from the rows of jsonl who did what, and from when to when. ktr/tools/model/span.c must agree.
"""
import re

STATES = {"runq add": ("runnable", None), "sleep": ("sleeping", "wmesg"), "blocked": ("blocked", "lockname"),
          "spinning": ("spinning", "lockname"), "thread exit": ("dead", None)}
NEST_MAX = 8
NAMED = {"thread create": "tid", "fork": "child", "exec": "pid", "exit": "pid"}


class Thread:
    """A thread's state after its last event."""

    def __init__(self, tid):
        self.tid, self.state, self.why, self.call, self.name, self.cpu = tid, "unknown", None, None, "", 0
        self.open, self.since, self.functions = None, 0, ()

    def is_idle(self):
        return re.match(r"idle/\d", self.name) is not None



class Spans:
    """threads: (tid, state, why, call, name, cpu, from, to), with functions cut where those change, too, and with a tuple of
    them before the times; cpus: (cpu, tid or None, from, to); irqs: (cpu, name, from,
    to); lost: (cpu, count, from, to). All times are ns, cut to since and until."""

    def __init__(self, rows, since=0, until=1 << 63, functions=False):
        self.since, self.until, self.functions = since, until, functions
        self.threads, self.cpus, self.irqs, self.lost = [], [], [], []
        self.all, self.running, self.nested, self.now = {}, {}, {}, 0
        self.first, self.last, self.events = None, 0, 0
        for row in (row for row in rows if "part" not in row):
            (self.gap if "gap" in row else self.event)(row)
        for t in self.all.values():
            self.end(t, self.last)
        for cpu in list(self.running):
            self.irqs_end(cpu, self.last)
            self.run(cpu, None, self.last)

    def told(self, t):
        return (t.state, t.why, t.call, t.name, t.cpu) + ((t.functions,) if self.functions else ())

    def cut(self, begin, end):
        return max(begin, self.since), min(end, self.until)

    def put(self, where, what, begin, end, empty=False):
        begin, end = self.cut(begin, end)
        if begin < end or (empty and begin == end):
            where.append((*what, begin, end))

    def thread(self, tid):
        return self.all.setdefault(tid, Thread(tid))

    def end(self, t, ns):
        if t.open is not None:
            self.put(self.threads, (t.tid, *t.open), t.since, ns)
        t.open, t.since = self.told(t), ns

    def seen(self, *threads):
        for t in threads:
            if t is not None and t.open != self.told(t):
                self.end(t, self.now)

    def run(self, cpu, t, ns):
        tid, since = self.running.get(cpu, (None, self.first))
        self.put(self.cpus, (cpu, tid), since, ns)
        self.running[cpu] = (t.tid if t else None, ns)

    def irqs_end(self, cpu, ns):
        for name, since in reversed(self.nested.pop(cpu, [])):
            self.put(self.irqs, (cpu, name), since, ns, empty=True)

    def ident(self, text):
        m = re.fullmatch(r"(.*) tid (\d+)", text, re.S) if isinstance(text, str) else None
        if m and m[1] and not self.thread(int(m[2])).name:
            self.thread(int(m[2])).name = m[1]
        return self.thread(int(m[2])) if m else None

    def switch(self, cpu, t):
        """The threads that this changes."""
        prev = self.all.get(self.running.get(cpu, (None, 0))[0])
        if prev is not None and prev is not t and prev.state in ("running", "spinning"):
            self.change(prev, "runnable" if prev.is_idle() else "unknown")
        if t.cpu != cpu and self.running.get(t.cpu, (None, 0))[0] == t.tid:
            self.run(t.cpu, None, self.now)
        self.change(t, "running")
        t.cpu = cpu
        if prev is not t:
            self.run(cpu, t, self.now)
            self.nested.pop(cpu, None)  # the ends of these are not recorded
        return t, prev

    def change(self, t, state, why=None):
        if state == "dead":
            t.call, t.functions = None, ()
        t.state, t.why = state, why

    def gap(self, row):
        cpu, begin, end = row["cpu"], max(row["from_ns"], self.now), max(row["to_ns"], self.now)
        self.times(begin, end)
        elsewhere = {tid for other, (tid, _) in self.running.items() if other != cpu}
        for t in self.all.values():
            if t.tid not in elsewhere:  # the lost events may have been about it
                t.call, t.functions = None, ()
                self.change(t, t.state if t.state == "dead" else "unknown")
                if t.open is not None and t.open != self.told(t):
                    self.end(t, begin)
        self.run(cpu, None, begin)
        self.irqs_end(cpu, begin)
        self.put(self.lost, (cpu, row["gap"]), begin, end, empty=True)

    def times(self, begin, end):
        self.first = begin if self.first is None else min(self.first, begin)
        self.last = max(self.last, end)

    def event(self, row):
        self.now = max(self.now, row["ns"])
        self.times(self.now, self.now)
        self.events += self.since <= self.now <= self.until
        cpu, fmt, t, self.func = row["cpu"], row["fmt"] or "", self.thread(row["tid"]), row["func"]
        arg = dict(zip(row.get("names") or [], row["args"]))
        if row["thread"] is not None:
            t.name = row["thread"]
        graph = re.match(r'KTRGRAPH group:"thread", id:"%s", (state|point):"%s",', fmt)
        changed = []
        if self.running.get(cpu, (None, 0))[0] != t.tid and not (graph and arg.get("state") == "running"):
            changed += self.switch(cpu, t)
        changed += self.means(cpu, t, fmt, arg, graph)
        self.seen(*changed)

    def means(self, cpu, t, fmt, arg, graph):
        """The meaning of the event itself, with the threads that it names."""
        if graph:
            return self.graph(cpu, self.ident(arg["id"]), arg)
        irq, call = re.match("interrupt (enter|exit): ", fmt), re.match(r"(syscall|sysret) ([^:%]*)(:|$)", fmt)
        named = re.match(r"(thread create|fork|exec|exit): ", fmt)
        if irq and irq[1] == "enter":
            if len(self.nested.get(cpu, [])) == NEST_MAX:
                del self.nested[cpu]
            self.nested.setdefault(cpu, []).append((arg.get("name", "interrupt"), self.now))
        elif irq and self.nested.get(cpu):
            name, since = self.nested[cpu].pop()
            self.put(self.irqs, (cpu, name), since, self.now, empty=True)
        elif call:
            t.call = call[2] if call[1] == "syscall" else None
        elif named:
            other = self.thread(arg[NAMED[named[1]]])
            parent = self.thread(arg["parent"]) if named[1] == "fork" else None
            other.name = arg["name"] if isinstance(arg.get("name"), str) else other.name
            if named[1] == "exit" and other is not t and other.state == "unknown":
                self.change(other, "dead")  # the last thread tells of the process
            return [other, parent] if named[1] != "thread create" else []
        elif fmt.startswith("-> "):
            t.functions += (self.func,)
        elif fmt.startswith("<- ") and self.func in t.functions:
            t.functions = t.functions[:len(t.functions) - 1 - t.functions[::-1].index(self.func)]
        return [t] if irq or call or fmt.startswith(("-> ", "<- ")) else []

    def graph(self, cpu, t, arg):
        other = self.ident(arg.get("linkedto"))
        if t is None:
            return []
        if arg.get("point") == "wokeup":
            return [other, t]
        if arg.get("state") == "running":
            if "starts" in arg:
                self.running.setdefault(cpu, (None, self.now))
            return list(self.switch(cpu, t))
        if arg.get("state") not in STATES:
            return []
        state, why = STATES[arg["state"]]
        self.change(t, state, arg.get(why) if isinstance(arg.get(why), str) else None)
        return [t, other]

    def sums(self, what, key):
        """{key(span): ns} of threads, cpus, irqs or lost."""
        sums = {}
        for span in what:
            sums[key(span)] = sums.get(key(span), 0) + span[-1] - span[-2]
        return sums
