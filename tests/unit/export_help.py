"""export_help.py - shared by the tests of ktrdump's exports: streams, their jsonl, and what can be derived from it.
"""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "qemu")]
from deadline import Child, Deadline  # noqa: E402
from part import part  # noqa: E402

subprocess.Popen = Child  # so that the time-outs of all that tests start are deadlines

KTRDUMP = os.environ.get("KTRDUMP", str(ROOT / "build/host/ktrdump"))
KTR_GEN = os.environ.get("KTR_GEN", str(ROOT / "build/host/unit/ktr_gen"))
DEADLINE_S = 120
# Arguments of ktr_gen, and one damaged stream: with and without losses, without events and with one, cut off,
# wrapped, with odd bytes in names.
STREAMS = ("sample", "mix 4000", "guest 200", "odd", "data 254", "empty", "one", "loss", "wrapped", "corrupt", "truncated", "live",
           "damaged", "enters 60", "calls 60", "entries 60")


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def equal(found, expected, what="value"):
    if found != expected:  # the text of it may be long
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def run(*command):
    """(status, output, errors) of a program. Bytes that are not UTF-8 are escaped as Python does."""
    p = subprocess.run([str(c) for c in command], capture_output=True, timeout=DEADLINE_S, check=False)
    return p.returncode, p.stdout.decode("utf-8", "surrogateescape"), p.stderr.decode("utf-8", "surrogateescape")


def apart():
    """The words before trace-cmd if root runs it: it mounts tracefs, which a mount namespace keeps local."""
    words = ["unshare", "--mount"]
    return words if os.geteuid() == 0 and run(*words, "true")[0] == 0 else []  # a user who cannot unshare cannot mount either


def trace_cmd(*args):
    return run(*apart(), "trace-cmd", *args)


def run_bytes(*command):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, timeout=DEADLINE_S, check=True).stdout


def ktrdump(*args):
    return run(KTRDUMP, *args)


def export_formats():
    """[(name, whether it needs an output name)] from --help."""
    text = run(KTRDUMP, "--help")[1]
    rows = text[text.index("Formats for --format"):].splitlines()[1:]
    return [(row.split()[0], "needs -o" in row) for row in rows if row.strip()]


@functools.cache
def stream(kind):
    """The bytes that ktr_gen makes, which are always the same."""
    if kind != "damaged":
        return run_bytes(KTR_GEN, *kind.split())
    data = bytearray(stream("guest 400"))
    for at in (700, len(data) // 2, len(data) * 3 // 4):  # damages some SITE frames and events
        data[at:at + 8] = bytes(8)
    return bytes(data)


def gen(tmp, kind):
    """Makes a stream with ktr_gen, and returns its path."""
    path = tmp / f"{kind.replace(' ', '-')}.ktr"
    path.write_bytes(stream(kind))
    return path


@functools.lru_cache(8)
def file_as_jsonl(path, _crc, args):
    return ktrdump("--format", "jsonl", *args, "-i", path)


def as_jsonl(path, *args):
    """(status, output, errors) of ktrdump; of a file that has not changed it is asked once."""
    return file_as_jsonl(path, zlib.crc32(pathlib.Path(path).read_bytes()), args)


def export(form, path, out, *args):
    """Makes the export. Its status must be that of jsonl."""
    status, _, err = ktrdump("--format", form, "-o", out, *args, "-i", path)
    equal(status, as_jsonl(path, *args)[0], f"{form} of {path}: status, as for jsonl; {err}")


def jsonl(path, *args):
    """Events and gaps in order, as dictionaries."""
    return [json.loads(line, strict=False) for line in as_jsonl(path, *args)[1].split("\n") if line and not line.startswith('{"part"')]


def events_of(rows):
    return [row for row in rows if row.get("fmt") is not None]


def lost_of(rows):
    lost = {}
    for row in rows:
        if row.get("fmt") is None and "part" not in row:  # an event whose site was lost counts as lost
            lost[row["cpu"]] = lost.get(row["cpu"], 0) + row.get("gap", 1)
    return lost


def is_idle(thread):
    return re.match(r"idle/\d", thread or "") is not None


def linux_tid(tid, thread):
    return 0 if is_idle(thread) else tid


def comm(row):
    """The first 15 bytes of a thread's name, without a part of a character."""
    if is_idle(row["thread"]):
        return "swapper/" + row["thread"][5:12]
    name = (row["thread"] or "<...>").encode("utf-8", "surrogateescape")[:15]
    while True:
        try:
            return name.decode()
        except UnicodeDecodeError as e:
            if e.reason == "unexpected end of data":
                name = name[:e.start]
            else:
                return name.decode("utf-8", "surrogateescape")


def same_text(found, expected):
    """Is it that text? Readers show bytes that are not UTF-8 in different ways, and cut in different places."""
    odd = any(c == "\ufffd" or "\udc80" <= c <= "\udcff" for c in found + expected)

    def plain(text):
        return "".join(c for c in text if c.isascii())
    return found == expected or (odd and plain(found).startswith(plain(expected)))


class Model:
    """Derives Linux's events from the rows of jsonl: (name, fields) each."""

    def __init__(self):
        self.running, self.state, self.names, self.woken, self.calls = {}, {}, {}, set(), {}
        self.returned = False  # a function has returned, whose entry is known
        self.prios = {}  # as last told; a thread that has waited for a spin lock runs on without a word about its own
        self.consistent = True  # nothing is lost, and each thread that runs was switched to

    def tid(self, tid):
        return linux_tid(tid, self.names.get(tid))

    def ident(self, text):
        m = re.fullmatch(r"(.*) tid (\d+)", text, re.S) if isinstance(text, str) else None
        if m is None:
            return None  # the frame with its text is damaged
        if m[1] and not self.names.get(int(m[2])):
            self.names[int(m[2])] = m[1]
        return int(m[2])

    def switch(self, cpu, tid):
        prev = self.running.get(cpu)
        if prev is not None and prev != tid and self.state.get(prev) == "running":
            self.state[prev] = "runnable" if is_idle(self.names.get(prev)) else None
        for other in [c for c in self.running if c != cpu and self.running[c] == tid]:
            del self.running[other]
            self.consistent = False
        self.running[cpu] = tid
        self.state[tid] = "running"
        return prev

    def of(self, row):
        """Linux's events before this row; None for a gap."""
        if "gap" in row:
            self.consistent = False
            self.running.pop(row["cpu"], None)
            for tid in self.state.keys() - set(self.running.values()):  # the lost events may have been about it
                self.state[tid] = self.state[tid] if self.state[tid] == "thread exit" else None
            self.calls = {tid: calls for tid, calls in self.calls.items() if tid in self.running.values()}
            self.woken.clear()
            return None
        cpu, tid, fmt = row["cpu"], row["tid"], row.get("fmt")
        strings = re.findall(r"%[^a-zA-Z%]*[hlzj]*([a-zA-Z])", fmt or "")
        arg = {name: None if conversion == "s" and not isinstance(value, str) else value for name, value, conversion
               in zip(row.get("names") or [], row.get("args") or [], strings)}
        if row["thread"] is not None:
            self.names[tid] = row["thread"]
        graph = re.match(r'KTRGRAPH group:"thread", id:"%s", (state|point):"%s",', fmt or "")
        what = arg.get("state") if graph else None
        if self.running.get(cpu) != tid and what != "running":
            self.consistent &= cpu not in self.running
            self.switch(cpu, tid)
        if graph:
            return self.thread(cpu, arg)
        if fmt is None:
            return []
        if fmt.startswith("-> "):
            parent = self.calls[tid][-1][0] if self.returned and self.calls.get(tid) else 0
            self.calls.setdefault(tid, []).append((row["func"], row["ns"]))
            args = [*row["args"], *[0] * 6]
            return [("funcgraph_entry", {"func": row["func"], "retaddr": parent, "depth": len(self.calls[tid]) - 1, **{f"arg{i}": args[i] for i in range(6)}})]
        if fmt.startswith("<- "):
            calls = self.calls.setdefault(tid, [])
            if row["func"] not in [name for name, _ in calls]:
                return []
            while calls[-1][0] != row["func"]:
                calls.pop()
            self.returned = True
            return [("funcgraph_exit", {"func": row["func"], "depth": len(calls) - 1, "calltime": calls.pop()[1], "rettime": row["ns"], "overrun": 0,
                                        "retval": row["args"][1] if len(row["args"]) > 1 else 0})]
        if fmt.startswith("interrupt enter: "):
            name = arg.get("name")
            return [("irq_handler_entry", {"irq": arg["vector"], "name": "interrupt" if name is None else name})]
        if fmt.startswith("interrupt exit: "):
            return [("irq_handler_exit", {"irq": arg["vector"], "ret": 1})]
        call = re.match(r"(syscall|sysret) (\w+):", fmt)
        if call and call[1] == "syscall":
            return [("enter_" + call[2], {})]
        if call:
            return [("exit_" + call[2], {"ret": arg["ret"]})]
        named = re.match(r"(thread create|fork|exec|exit): ", fmt)
        if named and arg.get("name") is not None:
            self.names[arg[{"thread create": "tid", "fork": "child"}.get(named[1], "pid")]] = arg["name"]
        if fmt.startswith("fork: "):
            return [("sched_process_fork", {"parent_tid": self.tid(arg["parent"]), "child_tid": arg["child"]})]
        if fmt.startswith("exec: ") and arg["name"] is not None:
            return [("sched_process_exec", {"filename": arg["name"], "tid": arg["pid"]})]
        if fmt.startswith("exit: "):
            return [("sched_process_exit", {"tid": arg["pid"]})]
        return []

    def thread(self, cpu, arg):
        tid = self.ident(arg["id"])
        other = self.ident(arg["linkedto"]) if "linkedto" in arg else None
        if tid is None or (arg.get("point") == "wokeup" and other is None):
            return []
        if "state" in arg and "prio" in arg:
            self.prios[tid] = arg["prio"]
        if arg.get("point") == "prio" and "prio_2" in arg:
            self.prios[tid] = arg["prio_2"]
        if arg.get("point") == "wokeup":
            self.woken.add(other)
            return [("sched_waking", {"tid": self.tid(other)})]
        before, state = self.state.get(tid), arg.get("state")
        if state == "running":
            prev = self.running.get(cpu)
            prev_state = {"sleep": 1, "blocked": 2, "thread exit": 16}.get(self.state.get(prev), 0)
            self.switch(cpu, tid)
            if prev == tid:
                return []
            known = 0 if prev is None else self.tid(prev)  # Linux's tools treat it as idle
            return [("sched_switch", {"prev_tid": known, "prev_state": prev_state, "next_tid": self.tid(tid),
                                      "next_prio": self.prios.get(tid, 0)})]
        if state not in ("runq add", "sleep", "blocked", "spinning", "thread exit"):
            return []
        fresh = tid not in self.state and tid not in self.woken
        if state == "thread exit":
            self.calls.pop(tid, None)
        self.state[tid] = {"runq add": "runnable", "spinning": "running"}.get(state, state)
        self.woken.discard(tid)
        if state == "runq add" and other is not None and before not in ("runnable", "running"):
            return [("sched_wakeup_new" if fresh else "sched_wakeup", {"tid": self.tid(tid), "prio": arg["prio"]})]
        return []


def consistent(rows):
    model = Model()
    for row in rows:
        model.of(row)
    return model.consistent


def named_events(rows):
    """The events, each with the thread's name after it: an exec changes the name."""
    model, found = Model(), []
    for row in rows:
        model.of(row)
        if row.get("fmt") is not None:
            found.append({**row, "thread": model.names.get(row["tid"])})
    return found


def linux_events(rows, functions=False):
    """[(cpu, ns, name, fields)] in the order of the rows; functions: those of the function graph tracer, too, or,
    if no function returns, of the function tracer."""
    model, found = Model(), []
    for row in rows:
        found += [(row["cpu"], row["ns"], name, fields) for name, fields in model.of(row) or []
                  if functions or not name.startswith("funcgraph_")]
    if model.returned:
        return found
    return [(cpu, ns, "function", {"ip" if key == "func" else "parent_ip" if key == "retaddr" else key: value
                                   for key, value in fields.items() if key != "depth"})
            if name == "funcgraph_entry" else (cpu, ns, name, fields) for cpu, ns, name, fields in found]


def functions_told(rows):
    """{(cpu, seq)} of the entries and returns that are events of the function graph tracer."""
    model = Model()
    return {(row["cpu"], row["seq"]) for row in rows
            if any(name.startswith("funcgraph_") for name, _ in model.of(row) or [])}


def every_stream(check, tmp):
    """Calls check(path, folder) for each of STREAMS; names the stream in a failure. In a run of everything for a third of
    them, of which each file of tests has another."""
    for kind in part(STREAMS, 3, pathlib.Path(sys.argv[0]).name):
        sub = tmp / kind.replace(" ", "-")
        sub.mkdir()
        try:
            check(gen(sub, kind), sub)
        except Exception as e:
            raise AssertionError(f"{kind}: {type(e).__name__}: {e}") from e


def bad_outputs_are_reported(form, tmp):
    """A full device and a missing folder give status 2 and an error with the name and the reason."""
    path = gen(tmp, "mix 8000")
    for out, why in (("/dev/full", "No space left on device"), (tmp / "no/such", "No such file or directory")):
        status, _, err = ktrdump("--format", form, "-o", out, "-i", path)
        equal(status, 2, f"status of {out}")
        expect(why in err and str(out) in err, f"{out}: {err}")


def main(tests):
    print(f"TAP version 13\n1..{len(tests)}")
    failed = 0
    for n, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as tmp:
            try:
                test(pathlib.Path(tmp))
                print(f"ok {n} - {test.__name__}", flush=True)
            except Exception as e:  # pylint: disable=broad-except
                failed += 1
                text = "\n# ".join(f"{type(e).__name__}: {e}".splitlines())
                print(f"# {text}\nnot ok {n} - {test.__name__}", flush=True)
    sys.exit(1 if failed else 0)
