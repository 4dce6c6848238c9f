#!/usr/bin/python3
"""export_html_test.py - the page of ktrdump --format html has each event and loss of jsonl; its script prints them as jsonl
does, and its tables for a stretch are those of `ktrdump report --since --until`. Prints TAP.

The script runs in node (export_html.js). What a browser shows of it, tests/viewers tries."""
import base64
import json
import re
import zlib

import export_help as x
import export_report_test
import wire
from export_help import ROOT, equal, expect

SCRIPT = ROOT / "tests/unit/export_html.js"
SCRIPT_BYTES, EVENT_BYTES = 100_000, 12  # the page without a trace; of each event, at most
COLUMN = re.compile(r'<script type="text/plain" id="([^"]*)">([^<]*)</script>')


def numbers(column):
    """The numbers of a column: seven bits a byte, the lowest first."""
    found, value, shift = [], 0, 0
    for byte in column:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


def signed(column):
    return [-(v + 1) // 2 if v & 1 else v // 2 for v in numbers(column)]


class Page:
    """What a page says, decoded a second time."""

    def __init__(self, path):
        text = path.read_text(encoding="utf-8")
        links = set(re.findall(r"https?://[^\"'` <]*|@import|src=|href=", text))
        equal(links, set(), "what the page refers to")
        self.columns = {name: zlib.decompress(base64.b64decode(data)) for name, data in COLUMN.findall(text)}
        self.sites, self.who, self.strings = ([json.loads(line) for line in self.columns[name].decode().splitlines() if line]
                                              for name in ("site", "who", "string"))
        self.size = len(text)
        holders = [tuple(who) for who in self.who if who[3] == 2]
        equal(len(set(holders)), len(holders), f"names of lock holders, each once: {holders}")

    def events(self):
        """(cpu, seq, ns, tid, thread, class, file, line, func, fmt, args, names) of each."""
        cpus, sites, args = (iter(numbers(self.columns[f"event.{name}"])) for name in ("cpu", "site", "args"))
        ns, seqs, whos, found = 0, {}, {}, []
        for cpu, delta, seq, who, site in zip(cpus, signed(self.columns["event.ns"]), signed(self.columns["event.seq"]),
                                              numbers(self.columns["event.who"]), sites):
            ns += delta
            seqs[cpu] = (seqs.get(cpu, 0) + seq + 1) % (1 << 64)
            whos[cpu] = who or whos[cpu]
            said = self.sites[site]
            _, tid, name, _ = self.who[whos[cpu] - 1]
            values = [self.value(args, bits) for _, bits in said.get("params", [("", 64)] * said.get("count", 0))]
            found.append((cpu, seqs[cpu], ns, tid, name, ",".join(said["classes"]) if "classes" in said else None, *map(said.get, ("file", "line", "func", "fmt")),
                          values, [name for name, _ in said["params"]] if "params" in said else None))
        equal(list(args), [], "parameters that no event has")
        return found

    def value(self, args, bits):
        v = next(args)
        if bits == 0:
            return self.strings[v - 1] if v else next(args) or None
        v &= (1 << abs(bits)) - 1
        return v - (1 << -bits) if bits < 0 and v >> (-bits - 1) else v

    def gaps(self):
        cpus, reasons, counts = (numbers(self.columns[f"gap.{name}"]) for name in ("cpu", "reason", "count"))
        reasons = [json.loads(self.columns["head"])["reasons"][r] for r in reasons]
        return [(cpu, why, n, start, start + ns) for cpu, why, n, start, ns in
                zip(cpus, reasons, counts, signed(self.columns["gap.from"]), signed(self.columns["gap.ns"]))]


def page_of(path, folder, *args):
    out = folder / "page.html"
    x.export("html", path, out, *args)
    return out


def script_says(page, stretches):
    status, out, err = x.run("node", SCRIPT, page, *(f"{since}-{until}" for since, until in stretches))
    equal((status, err), (0, ""), "status and errors of the page's script")
    return json.loads(out)


def same_events(page, rows):
    """Each event is there, with all that jsonl says of it. A thread's name is that, or the program's that it has become."""
    programs = {}
    found, wanted = page.events(), [row for row in rows if "seq" in row]
    equal(len(found), len(wanted), "events")
    for event, row in zip(found, wanted):
        names = row["names"] if row["fmt"] is not None else None
        if (row["fmt"] or "").startswith("exec: pid"):
            programs[row["tid"]] = (row["args"][1], row["args"][1].rsplit("/", 1)[-1])
        name = event[4] if event[4] in programs.get(row["tid"], ()) else row["thread"] or ""
        want = (row["cpu"], row["seq"], row["ns"], row["tid"], name, row["class"], row["file"], row["line"], row["func"], row["fmt"], row["args"], names)
        equal(event, want, f"event {row['seq']} of CPU {row['cpu']}")
    equal(page.gaps(), [(row["cpu"], row["why"], row["gap"], row["from_ns"], row["to_ns"]) for row in rows if "gap" in row], "losses")


def stretches_of(rows):
    """All, and stretches whose ends are times of events: where a program has got another name, and thirds; also of no length."""
    times = sorted(row["ns"] for row in rows if "ns" in row)
    if not times:
        return [(0, 1000)]
    n = len(times)
    ends = [(times[0], times[-1]), (times[n // 3], times[2 * n // 3] - 1), (times[n // 2], times[n // 2])]
    returns = [row["ns"] for row in rows if (row.get("fmt") or "").startswith("<- ")]
    if returns:  # of a call whose own time is cut off
        ends.append((returns[len(returns) // 2] - 1, times[-1]))
    execs = [row["ns"] for row in rows if (row.get("fmt") or "").startswith("exec: ")]
    if execs:
        at = execs[len(execs) // 2]
        ends += [(times[0], at), (at, times[-1])]
    return [(max(0, since), until) for since, until in ends if since <= until]


def same_reports(path, stretches, said):
    for n, ((since, until), found) in enumerate(zip(stretches, said["reports"])):
        head, *rows = export_report_test.report(path, "--since", f"{since}ns", "--until", f"{until}ns")
        what = f"from {since} to {until} ns"
        for name in ("events", "lost", "gaps", "known_ns", "all_ns"):
            equal(found[name], head[name], f"{what}: {name}")
        if n == 0:  # each wakeup has its arrow
            equal(said["wakeups"], sum(row["count"] for row in rows if (row["report"], row["table"]) == ("wakeup", "threads") and "row" not in row), "arrows")
        tables = {}
        for side, some in (("page", found["rows"]), ("report", rows)):
            for row in some:
                key = (row["report"], row["table"])
                expect(row.get("row") != "others", f"{what}: {key} has too many rows to compare")
                tables.setdefault(key, {"page": [], "report": []})[side].append(row)
        for key, sides in tables.items():
            for at, (one, other) in enumerate(zip(sides["page"], sides["report"])):
                equal({name: int(v) if name.endswith("_ns") else v for name, v in one.items()}, other, f"{what}: {key}: row {at}")
            equal(len(sides["page"]), len(sides["report"]), f"{what}: {key}: rows")


def same_cells(path, stretch, lines):
    """What the page's tables show is in the report as text, with as many digits. That shows odd characters otherwise."""
    text = x.ktrdump("report", "--since", f"{stretch[0]}ns", "--until", f"{stretch[1]}ns", "-i", path)[1]
    there = {" ".join(line.split()) for line in text.splitlines()}
    for line in lines:
        plain = line.isascii() and line.isprintable() and "\\" not in line
        expect(not plain or " ".join(line.split()) in there, f"{stretch}: the page has {line!r}, which the report has not")


def check(path, folder):
    """A stream of any kind."""
    page, rows = page_of(path, folder), x.jsonl(path)
    read = Page(page)
    expect(read.size <= SCRIPT_BYTES + EVENT_BYTES * len(rows), f"{read.size} bytes for {len(rows)} events")
    same_events(read, rows)
    stretches = stretches_of(rows)
    said = script_says(page, stretches)
    wanted = [row["text"] for row in rows if "seq" in row]
    equal(len(said["texts"]), len(wanted), "texts")
    for n, (found, text) in enumerate(zip(said["texts"], wanted)):
        equal(found, text, f"text of event {n}")
    same_reports(path, stretches, said)
    same_cells(path, stretches[0], said["reports"][0]["text"])
    return said


def every_stream_is_as_jsonl_and_the_reports_have_it(tmp):
    x.every_stream(check, tmp)


def events_in_any_order_are_as_the_reports_have_them(tmp):
    for seed in range(4):
        path = tmp / f"{seed}.ktr"
        path.write_bytes(export_report_test.random_run(seed))
        try:
            check(path, tmp)
        except AssertionError as e:
            raise AssertionError(f"seed {seed}: {e}") from e


def each_bit_of_large_numbers_counts(tmp):
    """Of times and of events; and texts are padded and cut by bytes."""
    path, ns, seq = tmp / "large.ktr", 2**58 + 1, 2**60 + 3
    formats = ("[%5s|%.1s|%-4s]", "%c%c|", "%s %s", "%c", "%3c|%.2s")
    path.write_bytes(wire.stream(wire.string(1, "é"), wire.string(2, "\ufeffa"), wire.thread(7, "t"),
                                 *(wire.site(n, fmt, 3 if n == 0 else 1 if n == 2 else 2) for n, fmt in enumerate(formats)),
                                 wire.batch(0, seq, ns, 7, [(0, 1, (1, 1, 1)), (1, 1, (0xc3, 0xa9)), (2, 1, (1,)), (3, 1, (0, 0)), (4, 1, (0xe9, 2))]),
                                 wire.loss(0, seq + 5, 2, ns + 10, ns + 13)))
    said = check(path, tmp)
    equal(said["tip"][-1], f"{(ns + 5) // 10**9}.{(ns + 5) % 10**9:09} s, CPU 0, event {seq + 4} of it, t 7", "what is shown of the event")


def more_bios_than_lanes_are_counted(tmp):
    sites = (("bio start: device %s rwbs %s sector %lu bytes %u file %s", 5), ("bio done: device %s rwbs %s sector %lu error %d", 4))
    path, at_once = tmp / "bios.ktr", range(8, 8 * 15, 8)
    told = [(0, 1, (1, 2, sector, 512, 0)) for sector in at_once] + [(1, 1, (1, 2, sector, 0)) for sector in at_once]
    path.write_bytes(wire.stream(*(wire.site(n, *site) for n, site in enumerate(sites)), wire.string(1, "vda"), wire.string(2, "R"),
                                 wire.thread(5, "t5"), wire.batch(0, 0, 1000, 5, told)))
    equal(script_says(page_of(path, tmp), [])["drawn"], [[12, 2]], "lanes of the disk, and bios without one")


def what_began_before_a_stretch_counts_from_there_on(tmp):
    """A request to a disk, and a round trip."""
    texts = {1: "vda", 2: "R", 3: "/bin/sh"}
    sites = ("bio start: device %s rwbs %s sector %lu bytes %u file %s", "request start: device %s tag %u rwbs %s sector %lu bytes %u",
             "request done: device %s tag %u sector %lu error %d", "tcp send: pcb %p seq %u ack %u flags %#x bytes %u again %u",
             "tcp receive: pcb %p seq %u ack %u flags %#x bytes %u window %u")
    told = [(0, 0, (1, 2, 8, 512, 3)), (1, 100, (1, 7, 2, 8, 512)), (3, 100, (9, 1, 1, 0x10, 100, 0)), (2, 100, (1, 7, 8, 0)),
            (4, 100, (9, 1, 101, 0x10, 0, 0))]
    path = tmp / "began.ktr"
    path.write_bytes(wire.stream(*(wire.site(n, fmt, fmt.count("%")) for n, fmt in enumerate(sites)), *(wire.string(n, t) for n, t in texts.items()),
                                 wire.thread(5, "t5"), wire.batch(0, 0, 1000, 5, told)))
    rows = export_report_test.report(path, "--since", "1250ns", "--until", "2000ns")
    took = {row["table"]: row["total_ns"] for row in rows if row["report"] == "io"}
    equal(took, {"devices": 50, "files": 50, "threads": 50}, "nanoseconds of the request since 1250")
    trips = [row for row in rows if row["report"] == "net" and "row" not in row]
    equal([(row["round_trips"], row["longest_ns"]) for row in trips], [(1, 150)], "round trips, and how long they took since 1250")
    same_reports(path, [(1250, 2000)], {**script_says(page_of(path, tmp), [(1250, 2000)]), "wakeups": 0})


if __name__ == "__main__":
    x.main([each_bit_of_large_numbers_counts, every_stream_is_as_jsonl_and_the_reports_have_it, events_in_any_order_are_as_the_reports_have_them,
            what_began_before_a_stretch_counts_from_there_on, more_bios_than_lanes_are_counted])
