#!/usr/bin/python3
"""test_labs.py - doc/labs.md: types each lab's listings, and computes its answer from the trace that they leave.

An answer consists of its words in backquotes and its numbers in bold, in order. A function here computes the
same from the events, independent of the page and of ktrdump's text. The two must be equal.
"""
import re
import sys
from collections import Counter

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from harness import ROOT, check, check_eq, decode, main, need_package, scratch_file, test  # noqa: E402
from listing import page, parse  # noqa: E402

LABS = ROOT / "doc" / "labs.md"
COUNT = 13
_solvers = {}


def lab(number):
    def register(fn):
        _solvers[number] = fn
        return fn
    return register


class Trace:
    """A trace's events, selected by format."""

    def __init__(self, path):
        self.events = [e for e in decode(path) if "seq" in e]
        check(self.events, f"{path.name}: no events")

    def of(self, *words):
        """Events whose format begins with one of the words."""
        return [e for e in self.events if e["fmt"].startswith(words)]

    def states(self):
        """(time, thread, state, event) of all changes of a thread's state."""
        found = []
        for e in self.events:
            m = re.match(r'KTRGRAPH group:"thread", id:"(.*?)", state:"(.*?)"', e["text"])
            if m:
                found.append((e["ns"], m[1], m[2], e))
        return found


def attribute(event, name):
    return re.search(rf'{name}:"?([^",]*)', event["text"])[1]


@lab(1)
def switch(folder):
    """The first turn of a thread `load` that another thread `load` followed."""
    states = [s for s in Trace(folder / "switch.ktr").states() if s[1].startswith("load ")]
    for first, second, third in zip(states, states[1:], states[2:]):
        if first[2] == "runq add" and second[2] == "sleep" and second[1] != first[1]:
            check_eq(third[1], first[1], "who runs then")
            return [first[2], second[2], attribute(second[3], "wmesg"), third[2]]
    return []


@lab(2)
def contended(folder):
    locks = Counter(e["args"][e["names"].index("lock")] for e in Trace(folder / "contended.ktr").of("spin contended", "mutex contended"))
    return [locks.most_common(1)[0][0]]


@lab(3)
def hog(folder):
    """Who ran longest while seq was queued; and that this was a slice, up to its last tick."""
    states = Trace(folder / "hog.ktr").states()
    start = next(t for t, who, state, _ in states if who.startswith("seq ") and state == "runq add")
    end = next(t for t, who, state, _ in states if who.startswith("seq ") and state == "running")
    ran, since, runner = Counter(), start, None
    for t, who, state, _ in states:
        if state == "running" and t <= end:
            if t > start:
                ran[runner] += t - max(since, start)
            since, runner = t, who
    longest = ran.most_common(1)[0][0]
    check(10 * 10**6 <= ran[longest] <= 20 * 10**6 + 10**5, f"{longest} ran {ran[longest]} ns, expected a slice of 20 ms, and at most a tick less")
    return [longest.split(" ")[0], "seq", "runq add", "seq"]


@lab(4)
def late(folder):
    """How long it slept, who ran when it was woken, and with which priority; and that nobody else ran before it."""
    states = Trace(folder / "late.ktr").states()
    slept = next(t for t, who, state, _ in states if who.startswith("sleep ") and state == "sleep")
    woken, event = next((t, e) for t, who, state, e in states if who.startswith("sleep ") and state == "runq add" and t > slept)
    ran = next(t for t, who, state, _ in states if who.startswith("sleep ") and state == "running" and t > woken)
    runner, its = [(who, e) for t, who, state, e in states if state == "running" and t < woken][-1]
    check_eq(attribute(event, "prio"), attribute(its, "prio"), "priorities of who was woken and who ran")
    others = [who for t, who, state, _ in states if state == "running" and woken < t < ran]
    check_eq(others, [], f"who ran in the {ran - woken} ns between")
    check(ran - woken < 1000000, f"it ran {ran - woken} ns after the wakeup, which is not at once")
    name = runner.split(" ")[0]
    return [str(round((woken - slept) / 10**6)), name, attribute(its, "prio"), "sleep", name]


@lab(5)
def fork(folder):
    trace = Trace(folder / "fork.ktr")
    start = next(i for i, e in enumerate(trace.events) if e["thread"] == "load" and e["fmt"].startswith("syscall clone"))
    end = next(i for i, e in enumerate(trace.events) if i > start and e["fmt"].startswith("sysret clone"))
    parent, inside = trace.events[start]["tid"], trace.events[start:end]
    exit_at = next(i for i, e in enumerate(trace.events) if i > end and e["fmt"].startswith("sysret wait4"))
    later = [e for e in trace.events[end:exit_at] if e["fmt"].startswith("cow copy")]
    check_eq({e["tid"] for e in later}, {parent}, "who copies")
    copied = [e for e in inside if e["fmt"].startswith("cow copy")]
    check_eq(copied, [], "pages that are copied while the system call runs")
    steps = [(b["ns"] - a["ns"], a["fmt"].split(":")[0], b["fmt"].split(":")[0]) for a, b in zip(inside, inside[1:])]
    check_eq(max(steps)[1:], ("page_alloc", "page_alloc"), "what the longest step is between")
    whole = inside[-1]["ns"] - inside[0]["ns"]
    check(whole / 4 < max(steps)[0] < whole / 2, f"the longest step is not a third of {whole} ns: {max(steps)}")
    count = Counter(e["fmt"].split(":")[0] for e in inside if "failed" not in e["fmt"])
    return [str(count["page_alloc"]), str(count["malloc"]), str(len(later))]


@lab(6)
def fault(folder):
    kinds = Counter((e["tid"], e["fmt"].split(":")[0]) for e in Trace(folder / "fault.ktr").of("zero fill", "cow ", "fault:")
                    if e["thread"] == "load")
    first, second = sorted({tid for tid, _ in kinds})
    more = {kind: kinds[second, kind] - kinds[first, kind] for _, kind in kinds}
    grown = [kind for kind, n in more.items() if n != 0]
    return [*grown, str(more[grown[0]]), "cow copy"] if len(grown) == 1 else grown


@lab(7)
def death(folder):
    trace = Trace(folder / "death.ktr")
    panic = trace.of("panic: ")[-1]
    calls = [e for e in trace.of("syscall ", "sysret ") if e["tid"] == panic["tid"] and e["ns"] < panic["ns"]]
    check(calls[-1]["fmt"].startswith("syscall "), f"the last system call returned: {calls[-1]['text']}")
    return [calls[-1]["fmt"].split(" ")[1].rstrip(":"), panic["thread"]]


@lab(8)
def pipeline(folder):
    """The shell's calls about processes and pipes, from pipe2 on; and the first calls, the same in both children."""
    calls = [(e["tid"], e["thread"], e["fmt"].split(" ")[1].rstrip(":")) for e in Trace(folder / "pipeline.ktr").of("syscall ")]
    start = next(i for i, (_, _, name) in enumerate(calls) if name == "pipe2")
    shell = calls[start][0]
    made = [name for tid, _, name in calls[start:] if tid == shell and name in ("pipe2", "clone", "wait4", "execve")]
    children = {thread: [name for _, t, name in calls[start:] if t == thread and name in ("dup2", "pipe2", "execve")]
                for thread in ("seq", "wc")}
    check_eq(children["seq"], children["wc"], "what the two children do")
    waits = made.index("wait4")
    check_eq(set(made[waits:]), {"wait4"}, "what the shell does until both children have ended")
    return made[:waits + 1] + children["seq"]


@lab(9)
def noise(folder):
    """The noise of a period alone, the last one before `load`; and that the noise beside it is the time of other threads."""
    trace = Trace(folder / "noise.ktr")
    lines = [dict(zip(e["names"], e["args"])) | {"ns": e["ns"]} for e in trace.of("ftrace osnoise: ")]
    states = trace.states()
    began = next(t for t, who, state, _ in states if who.startswith("load ") and state == "running")
    alone, beside = [n for n in lines if n["ns"] < began][-1], [n for n in lines if n["ns"] > began][1:]
    for n in beside:
        since, until = n["ns"] - n["runtime"] * 1000, n["ns"]
        runs = [(t, who) for t, who, state, _ in states if state == "running"]
        away = sum(min(b[0], until) - max(a[0], since) for a, b in zip(runs, runs[1:])
                   if not a[1].startswith("osnoise") and a[0] < until and b[0] > since)
        check(abs(away - n["noise"] * 1000) < 10**6, f"noise of {n['noise']} us, while other threads ran for {away} ns")
    check_eq({who.split(" ")[0] for t, who, state, _ in states if state == "running" and beside[0]["ns"] < t < beside[-1]["ns"]},
             {"load", "osnoise/0"}, "who ran")
    check(all(0.3 < n["noise"] / n["runtime"] < 0.7 for n in beside), f"beside load it loses another part than half: {beside}")
    check_eq({n["hw"] for n in lines}, {0}, "what the host took")
    check(all(10000 < n["max"] < 70000 for n in beside), f"away for another time than a turn, or two: {beside}")
    return [str(alone["irq"]), str(alone["max"]), "load", "load", "hw", str(alone["hw"]), "--icount"]


@lab(10)
def deadlock(folder):
    """Who has which lock at the end, and wants which; from the events alone."""
    held, wanted = {}, {}
    for e in Trace(folder / "deadlock.ktr").of("spin "):
        lock = str(e["args"][e["names"].index("lock")])
        if lock.startswith("deadlock "):
            check(not e["fmt"].startswith("spin release"), f"{lock} was released")
            (wanted if e["fmt"].startswith("spin contended") else held)[e["thread"]] = lock
    check_eq({wanted[t]: t for t in wanted}, {held[t]: other for t in held for other in held if other != t}, "who wants what")
    first, second = sorted(held, key=held.get)
    return [first, held[first], second, held[second], "spin contended", first, wanted[first], second, wanted[second]]


@lab(11)
def turns(folder):
    """Each thread that was chosen had the earliest deadline of those that waited."""
    waiting, chosen, moved, ahead = {}, {}, Counter(), []
    for line in (folder / "turns.txt").read_text().splitlines():
        m = re.match(r"\d+ us runq_(insert|remove) (\w+ tid \d+): time (\d+) deadline (\d+)", line)
        if not m:
            continue
        who, time, deadline = m[2], int(m[3]), int(m[4])
        if m[1] == "insert":
            waiting[who] = deadline
            ahead.append(deadline - time)
            turn = time - chosen.pop(who, time)
            if deadline - time > 19900:  # a new one: its slice is used up; else another thread has come
                moved[who] = max(moved[who], turn)
        else:
            waiting.setdefault(who, deadline)  # since before the first line
            check_eq(deadline, min(waiting.values()), f"the earliest deadline of those that waited, at: {line}")
            del waiting[who]
            if any(other.startswith(("load ", "yes ")) for other in waiting):
                chosen[who] = time  # a turn: somebody else wants the CPU
    turn = {who.split(" ")[0]: us for who, us in moved.items() if who.startswith(("load ", "yes "))}
    check(all(9900 < us < 40000 for us in (turn["load"], turn["yes"])), f"turns of the programs that compute: {moved}")
    return ["deadline", str(round(max(ahead) / 1000)), "dtrace"]


@lab(12)
def word(folder):
    """The statement is in the source; who executed it, and who made that thread, is in the trace."""
    lines = (ROOT / "kernel/debug/deaths.c").read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.endswith("= (volatile uint32_t *)16;"))
    function = next(line for line in reversed(lines[:at]) if line.endswith("(void)"))
    events = Trace(folder / "word.ktr")
    panic = events.of("panic: ")[0]
    fork = next(e for e in reversed(events.of("fork: ")) if e["args"][1] == panic["tid"])
    return [re.search(r"(\w+) =", lines[at])[1], str(at + 1), function.removesuffix("(void)"), "reverse-continue", str(panic["tid"]), panic["thread"],
            str(fork["args"][0])]


@lab(13)
def job(folder):
    """What a run that worked calls, and the one that failed does not; and what had been written when the file was not there."""
    good, bad = (Trace(folder / f"{n}.ktr") for n in (2000, 50000))
    calls = [Counter(e["text"].split()[1].rstrip(":") for e in trace.of("syscall ")) for trace in (good, bad)]
    [gone] = set(calls[0]) - set(calls[1])
    who = next(e["thread"] for e in good.of("syscall ") if e["text"].startswith(f"syscall {gone}:"))
    looked = max(e["ns"] for e in bad.of("sysret ") if e["thread"] == "sh" and e["text"].startswith("sysret newfstatat: ret -2"))
    wrote = sum(e["ns"] < looked and e["thread"] == "seq" and e["text"].startswith("sysret write:") for e in bad.events)
    return ["write", gone, who, "seq", "write", str(wrote)]


_page = []


def solved():
    """Types the page once. Returns the folder and the page's answers."""
    need_package("strace", "x86_64")
    need_package("gdb-minimal", "x86_64")
    if not _page:
        folder = scratch_file("")
        folder.mkdir()
        _page.append(folder)
        with page(LABS, folder):
            pass
        answers = re.findall(r"^## (\d+)\. .*?^\*\*Answer\.\*\* (.*?)(?=^## |\Z)", LABS.read_text(encoding="utf-8"), re.M | re.S)
        _page.append({int(n): [code or bold for code, bold in re.findall(r"`([^`]+)`|\*\*([\d,]+)\*\*", text)] for n, text in answers})
    check(len(_page) == 2, "the page's listings failed")
    return _page


@test("doc/labs.md: what each listing shows is what happens; each of thirteen labs has a question, commands, and an answer")
def listings():
    _, answers = solved()
    check_eq(sorted(answers), list(range(1, COUNT + 1)), "labs with an answer")
    check_eq(sorted(_solvers), sorted(answers), "labs whose answer is computed")
    needs = re.findall(r"^## (\d+)\. .*\n\n\*\d+ minutes; (?:one CPU|four CPUs); .*\*$", LABS.read_text(encoding="utf-8"), re.M)
    check_eq([int(n) for n in needs], sorted(answers), "labs that say how long they take, and what they need")
    check(len([s for s in parse(LABS) if getattr(s, "prompt", None) == "$ "]) >= 2 * COUNT, "each lab has commands")


def is_answer(number):
    folder, answers = solved()
    check_eq(answers[number], _solvers[number](folder), f"the answer of lab {number} on the page, and what the trace says")


for _number in sorted(_solvers):
    test(f"the answer of lab {_number} is what its trace says")(lambda number=_number: is_answer(number))


if __name__ == "__main__":
    main()
