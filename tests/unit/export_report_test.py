#!/usr/bin/python3
"""export_report_test.py - every number of ktrdump's reports is that of a second computation (report_model.py). Prints TAP."""
import json
import pathlib
import random
import re

import export_ctf_test as ctf
import export_help as x
import report_model
import wire
from export_help import equal, expect


def report(path, *args):
    status, out, err = x.ktrdump("report", *args, "--format", "jsonl", "-i", path)
    expect(status in (0, 1), f"status {status}: {err}")
    return [json.loads(line) for line in out.splitlines()]


def compare(rows, said, **options):
    """The rows of jsonl, and what a report says of them."""
    expected, _ = report_model.tables(rows, **options)
    found, totals = report_model.found(said)
    if options.get("cpus") is None:
        for cpu in range(said[0]["cpus"]):  # also those without any event
            nothing = dict.fromkeys(("busy_ns", "idle_ns", "switches", "preempted", "migrated"), 0)
            expected["cpu", "cpus"].setdefault((cpu,), {**nothing, "unknown_ns": said[0]["to_ns"] - said[0]["from_ns"]})
    for table, numbers in found.items():
        if table not in expected:
            continue
        want = expected[table]
        for labels in numbers.keys() | want.keys():
            row, right = numbers.get(labels, {}), want.get(labels, {})
            if not (row and right):  # of what took no time that is known there may be a row, or not
                known = {k: v for k, v in {**row, **right}.items() if k.endswith("_ns") and k not in ("when_ns", "unknown_ns")}
                equal({k: v for k, v in known.items() if v}, {},
                      f"{table} {labels}: only in {'ktrdump' if row else 'the model'}")
            for name in row.keys() & right.keys():
                if name == "when_ns":
                    expect(row[name] is None or row[name] in right[name], f"{table} {labels}: when: {row[name]}, expected {right[name]}")
                elif row[name] is not None:
                    equal(row[name], right[name], f"{table} {labels}: {name}")
        total = totals.get(table, {})
        known, whole = total.pop("known_ns", 0), total.pop("all_ns", 0)
        if total and table[0] == "thread":  # of the threads' time, not of the CPUs'
            states = [s for s in report_model.found(said)[1]["thread", "threads"].items() if s[0].endswith("_ns")]
            states = {name: ns for name, ns in states if name not in ("known_ns", "all_ns", "in_calls_ns")}
            equal((known, whole), (sum(states.values()) - states["unknown_ns"], sum(states.values())), f"{table}: what is known")
        elif total:
            equal((known, whole), (said[0]["known_ns"], said[0]["all_ns"]), f"{table}: what is known")
        for name in total:
            if name.endswith("_ns") and name not in (*report_model.MOST, *report_model.NOT_SUMS):
                equal(total[name], sum(row.get(name, 0) for row in {**numbers, **want}.values()),
                      f"{table}: total of {name}")
    return found


def of_stream(path, *args, **options):
    return compare(x.jsonl(path), report(path, *args), **options)


def check(path, _):
    """A stream of any kind: its reports are those of the model."""
    of_stream(path)


def every_stream_is_as_the_model_says(tmp):
    x.every_stream(check, tmp)


def filters_choose(tmp):
    path = x.gen(tmp, "guest 400")
    rows = x.jsonl(path)
    first, last = rows[0]["ns"], rows[-1]["ns"]
    since, until = first + (last - first) // 3, first + (last - first) * 2 // 3
    of_stream(path, "--since", f"{since}ns", "--until", f"{until}ns", since=since, until=until)
    of_stream(path, "--thread", "7", tids=(7,))
    of_stream(path, "--cpu", "1", cpus=(1,))
    expect(of_stream(path, "--thread", "7", tids=(7,))["syscall", "calls"], "thread 7 makes no calls")


def random_run(seed):
    """A stream of locks, faults, timers, wakeups and calls that may be in any order, on two CPUs, with losses."""
    rng = random.Random(seed)
    formats = ['KTRGRAPH group:"thread", id:"%s", state:"%s", attributes: prio:%d',
               'KTRGRAPH group:"thread", id:"%s", state:"%s", attributes: prio:%d, wmesg:"%s"',
               'KTRGRAPH group:"thread", id:"%s", point:"%s", attributes: linkedto:"%s"',
               "mutex contended: lock %s addr %p", "mutex acquire: lock %s addr %p caller %p", "mutex release: lock %s addr %p",
               "spin contended: lock %s addr %p owner %d", "spin acquire: lock %s addr %p caller %p", "spin release: lock %s addr %p",
               "page fault: va %#lx access %u pc %#lx user %d", "page fault exit: va %#lx served %d", "cow copy: va %#lx",
               "callout set: func %p arg %p deadline %lu", "callout stop: func %p arg %p pending %d",
               'KTRGRAPH group:"callout", id:"%s", state:"%s", attributes: func:%p, arg:%p',
               "syscall read: arg0 %#lx", "sysret read: ret %ld", "trap: what %s sig %d va %#lx pc %#lx user %d",
               "interrupt enter: vector %#x name %s pc %#lx user %d", "interrupt exit: vector %#x",
               'KTRGRAPH group:"thread", id:"%s", state:"%s", attributes: prio:%d, starts:%u']
    texts = {0x1000 + n: t for n, t in enumerate(("running", "sleep", "runq add", "wokeup", "disk", "page", "proc", "timer", "divide", "q"))}
    number = {t: n for n, t in texts.items()}
    tids = range(1, 7)
    frames = [wire.site(n, f, len(x.re.findall("%", f))) for n, f in enumerate(formats)]
    frames += [wire.string(n, t) for n, t in texts.items()]
    frames += [wire.string(0x7a5c << 48 | t, f"t{t} tid {t}") for t in tids] + [wire.thread(t, f"t{t}") for t in tids]
    take = [(4, 1, (number["proc"], 0x300, 0x8000)), (5, 1, (number["proc"], 0x300))]  # else waits have no ends
    frames.append(wire.batch(0, 0, 900, 1, take))
    clock, seq = 1000, [2, 0]
    for _ in range(60):
        for cpu in (0, 1):
            tid, events = rng.choice(tids), []
            if rng.random() < 0.05:
                frames.append(wire.loss(cpu, seq[cpu], 3, clock, clock + 500))
                seq[cpu] += 3
                clock += 1000
            for _ in range(rng.randrange(1, 12)):
                ident = 0x7a5c << 48 | rng.choice(tids)
                lock, addr = rng.choice(((number["page"], 0x100), (number["proc"], 0x200)))
                what = rng.randrange(len(formats))
                addr += 0x1000 if 6 <= what <= 8 else 0
                args = {0: (0x7a5c << 48 | tid, number["running"], 20), 1: (ident, number["sleep"], 20, number["disk"]),
                        2: (0x7a5c << 48 | tid, number["wokeup"], ident), 4: (lock, addr, 0x8000), 6: (lock, addr, rng.choice((0, 1, (1 << 64) - 1))),
                        7: (lock, addr, 0x9000), 9: (1, rng.choice((1, 2, 4)), 0xffff, rng.randrange(2)), 10: (1, rng.randrange(2)), 11: (1,),
                        12: (1, rng.randrange(3), clock + rng.randrange(4000)), 13: (1, rng.randrange(3), 1),
                        14: (number["q"], number["running"], 1, rng.randrange(3)), 15: (3,), 16: ((1 << 64) - rng.randrange(3),),
                        17: (number["divide"], 8, 0, 1, 1), 18: (32, number["timer"], 0xffff, 0), 19: (32,),
                        20: (0x7a5c << 48 | tid, number["running"], 20, cpu)}.get(what, (lock, addr))
                step = rng.randrange(1, 900)
                clock += step
                events.append((what, step, args))
            frames.append(wire.batch(cpu, seq[cpu], clock - sum(e[1] for e in events), tid, events))
            seq[cpu] += len(events)
            clock += 1
    return wire.stream(*frames)


def any_order_of_events_adds_up(tmp):
    for seed in range(20):
        path = tmp / f"{seed}.ktr"
        path.write_bytes(random_run(seed))
        try:
            of_stream(path)
            rows = x.jsonl(path)
            middle = rows[len(rows) // 2]["ns"] if "ns" in rows[len(rows) // 2] else 50000
            of_stream(path, "--since", f"{middle // 2}ns", "--until", f"{middle}ns", since=middle // 2, until=middle)
            of_stream(path, "--thread", "3", tids=(3,))
        except AssertionError as e:
            raise AssertionError(f"seed {seed}: {e}") from e


def a_cpu_has_no_time_before_it_starts(tmp):
    """CPU 1 starts 2,000 ns after CPU 0's first event. Where its start is not told, this is unknown time."""
    ident = [0x7a5c << 48 | tid for tid in (1, 2)]
    running = 'KTRGRAPH group:"thread", id:"%s", state:"%s", attributes: prio:%d'
    for starts, unknown in ((", starts:%u", 0), (", other:%u", 2000)):
        path = tmp / f"{unknown}.ktr"
        path.write_bytes(wire.stream(
            wire.site(0, running + starts, 4), wire.site(1, "other", 0), wire.string(0x1002, "running"), wire.string(ident[0], "t1 tid 1"),
            wire.string(ident[1], "t2 tid 2"), wire.batch(0, 0, 1000, 1, [(0, 0, (ident[0], 0x1002, 20, 0)), (1, 3000, ())]),
            wire.batch(1, 0, 3000, 2, [(0, 0, (ident[1], 0x1002, 20, 1))])))
        found = of_stream(path)
        equal([found["cpu", "cpus"][cpu,]["unknown_ns"] for cpu in (0, 1)], [0, unknown], "unknown time of CPU 0 and 1")
        head = report(path, "cpu")[0]
        equal((head["known_ns"], head["all_ns"]), (4000, 4000 + unknown), "what is known, of what")
        equal(report(path, "cpu", "--since", "3500ns")[0]["all_ns"], 1000, "all time since 3500 ns")


def a_wait_ends_with_its_thread(tmp):
    """A thread waits for a lock, and ends; when it got the lock is lost. And a thread that was only made has no time before a loss."""
    ident = [0x7a5c << 48 | tid for tid in range(4)]
    frames = [wire.site(0, "mutex contended: lock %s addr %p", 2), wire.site(1, "mutex acquire: lock %s addr %p caller %p", 3),
              wire.site(2, 'KTRGRAPH group:"thread", id:"%s", state:"%s", attributes: prio:%d', 3),
              wire.site(3, "thread create: tid %u name %s", 2), wire.site(4, "other", 0)]
    frames += [wire.string(0x1000, "page"), wire.string(0x1001, "thread exit"), wire.string(0x1002, "running")]
    frames += [wire.string(ident[tid], f"t{tid} tid {tid}") for tid in (1, 2, 3)] + [wire.thread(tid, f"t{tid}") for tid in (1, 2)]
    frames += [wire.batch(0, 0, 1000, 1, [(1, 0, (0x1000, 0x300, 0x8000)), (0, 100, (0x1000, 0x100)), (2, 400, (ident[1], 0x1001, 20))]),
               wire.batch(0, 3, 1600, 2, [(2, 0, (ident[2], 0x1002, 20)), (3, 100, (3, 0x1000)), (4, 200, ())]),
               wire.loss(0, 6, 2, 2000, 3000), wire.batch(0, 8, 3000, 3, [(2, 0, (ident[3], 0x1002, 20)), (4, 500, ())])]
    path = tmp / "ends.ktr"
    path.write_bytes(wire.stream(*frames))
    found = of_stream(path)
    equal(found["lock", "locks"]["page", "mutex"]["total_ns"], 400, "how long it waited")
    equal(found["thread", "threads"][3,]["unknown_ns"], 0, "time of which it is not known what thread 3 did")


def a_request_of_a_thread_that_has_gone_is_still_its_own(tmp):
    """Its end is lost, and another thread's request for the same sector is done."""
    sites = ('KTRGRAPH group:"thread", id:"%s", state:"%s", attributes: prio:%d', "bio start: device %s rwbs %s sector %lu bytes %u file %s",
             "request start: device %s tag %u rwbs %s sector %lu bytes %u", "request done: device %s tag %u sector %lu error %d")
    texts = {1: "vda", 2: "R", 3: "/bin/sh", 4: "thread exit", 5: "running", 0x7a5c << 48 | 5: "t5 tid 5", 0x7a5c << 48 | 6: "t6 tid 6"}
    first = [(1, 0, (1, 2, 8, 512, 3)), (0, 10, (0x7a5c << 48 | 5, 4, 0)), (0, 10, (0x7a5c << 48 | 6, 5, 0))]
    second = [(1, 10, (1, 2, 8, 512, 3)), (2, 10, (1, 7, 2, 8, 512)), (3, 10, (1, 7, 8, 0))]
    path = tmp / "gone.ktr"
    path.write_bytes(wire.stream(*(wire.site(n, fmt, fmt.count("%")) for n, fmt in enumerate(sites)), *(wire.string(n, t) for n, t in texts.items()),
                                 wire.thread(5, "t5"), wire.thread(6, "t6"), wire.batch(0, 0, 1000, 5, first), wire.batch(0, 3, 2000, 6, second)))
    rows = [row for row in report(path, "io") if row.get("table") == "threads" and "row" not in row]
    equal({row["thread"]: row["count"] for row in rows}, {"t5": 1, "t6": 1}, "pieces of each thread")


def a_wait_lasts_until_the_trace_ends(tmp):
    """A thread spins on CPU 0 for a lock that thread 2 has, and the last of the trace is a loss on CPU 1."""
    path = tmp / "lasts.ktr"
    path.write_bytes(wire.stream(
        wire.site(0, "spin contended: lock %s addr %p owner %d", 3), wire.site(1, "spin acquire: lock %s addr %p caller %p", 3),
        wire.string(0x1000, "runq"), wire.batch(1, 0, 1000, 2, [(1, 0, (0x1000, 0x100, 0x8000))]),
        wire.batch(0, 0, 1500, 1, [(0, 0, (0x1000, 0x100, 1))]), wire.loss(1, 1, 2, 2000, 2600)))
    found = of_stream(path)
    equal(found["lock", "locks"]["runq", "spin"]["total_ns"], 1100, "how long it waited")
    equal({k: row["total_ns"] for k, row in found["lock", "holders"].items()}, {("runq", 2): 500, ("runq", 0): 600}, "because of whom")
    of_stream(path, "--until", "1700ns", until=1700)
    of_stream(path, "--since", "2100ns", since=2100)


def rows_say_whom_they_are_about(tmp):
    """Thread 1 wakes thread 2 twice; it runs 300 ns later, and 500 ns later."""
    ident = [0x7a5c << 48 | tid for tid in (1, 2)]
    state = 'KTRGRAPH group:"thread", id:"%s", state:"%s", attributes: prio:%d'
    events = []
    for ns in (300, 500):
        events += [(0, 100, (ident[0], 0x1000, 20)), (1, 100, (ident[0], 0x1002, ident[1])), (0, 0, (ident[1], 0x1001, 20)),
                   (0, 0, (ident[0], 0x1003, 20)), (0, ns, (ident[1], 0x1000, 20)), (0, 50, (ident[1], 0x1003, 20))]
    path = tmp / "whom.ktr"
    path.write_bytes(wire.stream(
        wire.site(0, state, 3), wire.site(1, 'KTRGRAPH group:"thread", id:"%s", point:"%s", attributes: linkedto:"%s"', 3),
        wire.string(0x1000, "running"), wire.string(0x1001, "runq add"), wire.string(0x1002, "wokeup"), wire.string(0x1003, "sleep"),
        wire.string(ident[0], "ann tid 1"), wire.string(ident[1], "bob tid 2"), wire.batch(0, 0, 1000, 1, events)))
    of_stream(path)
    rows = report(path, "wakeup,thread,cpu")
    equal({(row["table"], row["tid"], row["thread"]) for row in rows if "tid" in row and row["tid"]},
          {(table, tid, name) for table in ("threads", "runs", "states", "worst") for tid, name in ((1, "ann"), (2, "bob"))} -
          {("worst", 1, "ann")}, "tables, threads and their names")
    worst = [(row["took_ns"], row["thread"], row["waker"], row["before"], row["cpu"], row["index"]) for row in rows if row.get("table") == "worst"]
    equal(worst, [(500, "bob", "ann", "ann", 0, 10), (300, "bob", "ann", "ann", 0, 4)], "the wakeups that took longest")


def a_kernel_of_another_build_is_not_read(tmp):
    """Its build id is in a note; what a kernel has for debuggers is 9 MB."""
    kernel = pathlib.Path(x.KTRDUMP).resolve().parent.parent / "x86_64/kestrel"
    if not kernel.exists():
        print(f"# SKIP: no {kernel}")
        return
    expect(kernel.stat().st_size > 4 << 20, "the kernel is small")
    for build in ("Kestrel " + "0a" * 20, "not known"):
        path = tmp / "build.ktr"
        path.write_bytes(wire.stream(wire.site(0, "thread create: tid %u name %s", 2), wire.batch(0, 0, 1000, 1, [(0, 0, (3, 0x1000))]), build=build))
        said = x.run("sh", "-c", '"$0" report -i "$1" > /dev/null; cat /proc/$$/io', x.KTRDUMP, path)[1]
        read = re.search(r"^rchar: (\d+)", said, re.M)
        expect(read and int(read[1]) < 1 << 20, f"what was read for a trace of build {build}: {said or 'no task I/O accounting'}")


def threads_that_come_and_go_take_bounded_memory(tmp):
    path = x.gen(tmp, "forks 20000")
    rows = report(path, "cpu,thread")
    table = [row for row in rows if row.get("table") == "runs"]
    expect(2000 <= len(table) <= 4098, f"{len(table)} rows, expected those that there is room for")
    others, total = (next(row for row in table if row.get("row") == name) for name in ("others", "total"))
    equal(sum(row["ran_ns"] for row in table if "row" not in row) + others["ran_ns"], total["ran_ns"], "time that ran")


def text_has_what_jsonl_has(tmp):
    path = x.gen(tmp, "guest 200")
    rows = [row for row in report(path, "syscall") if row.get("table") == "calls"]
    _, text, _ = x.ktrdump("report", "syscall", "--rows", "0", "-i", path)
    for row in rows:
        name = row.get("call", "total")
        line = next(line for line in text.splitlines() if line.startswith(name + " "))
        expect(f" {row['total_ns'] // 10**6}.{row['total_ns'] % 10**6:06} " in line, f"{row} is not in {line!r}")
        expect(f" {row['mean_ns'] // 10**3}.{row['mean_ns'] % 10**3:03} " in line, f"{row} is not in {line!r}")
    x.ktrdump("report", "syscall", "--rows", "0", "-o", tmp / "out", "-i", path)
    equal((tmp / "out").read_text(), text, "with -o")
    _, two, _ = x.ktrdump("report", "syscall", "--rows", "2", "-i", path)
    cut = two[:two.index("\ncall  ", two.index("\ncall ") + 5)].splitlines()
    expect(any(line.startswith("(others)") for line in cut), cut)
    equal(cut[-1].split(), next(line for line in text.splitlines() if line.startswith("total")).split(), "the total of two rows and the others")


def shares_are_of_the_total(tmp):
    path = x.gen(tmp, "guest 200")
    _, text, _ = x.ktrdump("report", "cpu", "--rows", "0", "-i", path)
    table = text[text.index("cpu: which thread"):].splitlines()[2:]
    shares = [float(line.split()[-4]) for line in table if line and not line.startswith("total")]
    expect(abs(sum(shares) - 100) < 0.01 * len(shares), f"shares {shares}")
    known = float(text.split("what each CPU did (")[1].split(" %")[0])
    head = report(path, "cpu")[0]
    expect(abs(known - 100 * head["known_ns"] / head["all_ns"]) < 0.01, f"known: {known}, and {head}")


def nothing_to_show_says_why(tmp):
    path = x.gen(tmp, "guest 200")
    status, _, err = x.ktrdump("report", "lock,syscall", "-i", path)
    equal(status, 1, "status of a report that has nothing to show")
    expect("report lock: nothing to show" in err and "LOCK, in the formats of ktr/README.md" in err and "syscall" not in err, err)
    status, _, err = x.ktrdump("report", "-i", path)
    equal((status, err), (0, ""), "all reports, some of which have nothing to show")
    status, _, err = x.ktrdump("report", "-i", x.gen(tmp, "empty"))
    equal(status, 1, "status of an empty trace")
    expect("no events" in err and "debug.ktr.mask was ALL" in err, err)


def page_has_a_question_for_each_report(_):
    listed = x.run(x.KTRDUMP, "--help")[1].split("\nReports;")[1].split("\n\n")[0]
    page = (x.ROOT / "doc/reports.md").read_text()
    equal(re.findall(r"^\| .*\? \| `ktrdump report (\w+)", page, re.M), re.findall(r"^  (\w+) ", listed, re.M), "reports of doc/reports.md")


def lttngs_analyses_agree(tmp):
    path = x.gen(tmp, "guest 400")
    x.export("ctf", path, tmp / "ctf")
    rows = report(path, "cpu,syscall,irq")
    head = rows[0]

    def table(name):
        return [row for row in rows if row.get("table") == name and "row" not in row]
    irqs = {}
    for row in table("interrupts"):
        before = irqs.get(row["name"], (0, 0))
        irqs[row["name"]] = (before[0] + row["count"], max(before[1], row["longest_ns"]))
    found = ctf.analysis("lttng-irqstats-mi", tmp / "ctf")
    equal(sorted((row[1]["value"], row[4]["value"]) for t in found.get("hard-stats", []) for row in t["data"] if row[1]["value"] > 0),
          sorted(irqs.values()), "interrupts: count, longest")
    calls = {}
    for t in ctf.analysis("lttng-syscallstats-mi", tmp / "ctf").get("per-tid", []):
        for row in t["data"]:
            name = row[0]["name"].replace("kestrel_", "")
            calls[name] = calls.get(name, 0) + row[1]["value"]
    equal({row["call"]: row["count"] for row in table("calls") if row["call"] in calls}, calls, "system calls")
    ran = {}
    for row in table("runs"):
        ran[row["tid"]] = ran.get(row["tid"], 0) + row["ran_ns"]
    for t in ctf.analysis("lttng-cputop-mi", tmp / "ctf").get("per-process", []):
        for row in t["data"]:
            if row[0]["tid"] > 0:
                share = ran[row[0]["tid"]] / (head["to_ns"] - head["from_ns"])
                expect(abs(share - row[3]["value"]) < 0.01, f"thread {row[0]['tid']}: {share}, and LTTng says {row[3]['value']}")


if __name__ == "__main__":
    x.main([every_stream_is_as_the_model_says, filters_choose, any_order_of_events_adds_up, a_cpu_has_no_time_before_it_starts, a_wait_ends_with_its_thread,
            a_request_of_a_thread_that_has_gone_is_still_its_own, a_wait_lasts_until_the_trace_ends,
            rows_say_whom_they_are_about, threads_that_come_and_go_take_bounded_memory, a_kernel_of_another_build_is_not_read,
            text_has_what_jsonl_has, shares_are_of_the_total, nothing_to_show_says_why, page_has_a_question_for_each_report,
            lttngs_analyses_agree])
