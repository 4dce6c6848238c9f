#!/usr/bin/python3
"""export_svg_test.py - the picture of ktrdump --format svg is well-formed and complete. The times of each lane
equal those of an independent model over jsonl's rows. Prints TAP."""
import decimal
import os
import re
import subprocess
import xml.etree.ElementTree as xml

import export_help as x
import span_model
from export_help import equal, expect

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}
STATES = ("running", "spinning", "runnable", "sleeping", "blocked")
DURATION = r"([\d.]+) (s|ms|µs|ns)"
SIZE_MAX, MEMORY_MAX, LANES, ASKED = 5 * 10**6, 300 << 20, 24, 64
BIN_PX, BIN_LANES = 3, 32


def ns_of(text):
    number, unit = re.fullmatch(DURATION, text).groups()
    return int(decimal.Decimal(number) * UNITS[unit])


def shown(text):
    """A name as XML can represent it."""
    return re.sub("[\x00-\x1f\x7f]", "\ufffd", text)


class Picture:
    """The contents of a picture: cpus {number: title}, threads {tid: title}, and each lane."""

    def __init__(self, text):
        expect("<script" not in text.lower() and "<!" not in text, "a script, or a document type")
        links = set(re.findall(r"https?://[^\"' <]*|href|@import|src=", text))
        equal(links, {"http://www.w3.org/2000/svg"}, "what it refers to")
        equal(set(re.findall(r"url\(([^)]*)\)", text)), {"#bl", "#lo"}, "what its style refers to")
        self.root = xml.fromstring(text)
        equal(self.root.tag, SVG + "svg", "root")
        equal({e.tag for e in self.root.iter()} - {SVG + t for t in
              ("svg", "style", "defs", "pattern", "path", "text", "tspan", "g", "title")}, set(), "other elements")
        expect("prefers-color-scheme:dark" in text, "no dark mode")
        self.width, self.height = int(self.root.get("width")), int(self.root.get("height"))
        equal(self.root.get("viewBox"), f"0 0 {self.width} {self.height}", "viewBox")
        self.lanes = {g.get("id"): g for g in self.root.iter(SVG + "g") if g.get("id")}
        self.text = ["".join(t.itertext()) for t in self.root.findall(SVG + "text")]

    def title(self, lane):
        return self.lanes[lane].find(SVG + "text").find(SVG + "title").text

    def sums(self, lane):
        """{word: ns} of the lane's title."""
        rest = self.title(lane).rsplit(": ", 1)[1]
        return {word: ns_of(text) for word, text in re.findall(rf"(\w+) ({DURATION.replace('(', '(?:')})", rest)}

    def pieces(self, lane, level=0):
        """The titles of the lane's bars; level 1 and more: of the functions of a thread, outermost first."""
        return [t.text for e in self.lanes[lane].findall(SVG + "g")[level] for t in e.findall(SVG + "title")]

    def levels(self, lane):
        return len(self.lanes[lane].findall(SVG + "g")) - 1

    def fits(self):
        """Every bar is inside the picture. Bins are narrow: longer times have bars of their own."""
        for name, g in ((name, g) for name, lane in self.lanes.items() for g in lane.findall(SVG + "g")):
            left, top = map(float, re.match(r"translate\(([\d.]+) ([\d.]+)", g.get("transform")).groups())
            for path in g.iterfind(f"{SVG}g/{SVG}path"):
                width = float(re.search(r"h([\d.]+)v", path.get("d"))[1])
                expect(width < 2.1 * BIN_PX or len(self.lanes) > BIN_LANES, f"{name}: a bin {width} pixels wide")
            for path in g.iter(SVG + "path"):
                m = re.match(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-([\d.]+)z$", path.get("d"))
                expect(m, f"{name}: a bar of another form: {path.get('d')}")
                at, y, width, height, back = map(float, m.groups())
                expect(width == back and left + at + width <= self.width and y + height <= 23, f"{name}: {path.get('d')}")
                expect(top + y + height <= self.height, f"{name}: {path.get('d')} below the picture")


def state_of(text):
    return re.match(r"(not known|\w+)", text)[1]


def near(found, right, pieces, what):
    """Bars show four digits."""
    expect(abs(found - right) <= right / 500 + pieces * 2, f"{what}: bars of {found} ns, expected {right}")


def lane_tells(picture, lane, right):
    """The bars of a thread's lane add up to its states."""
    sums, pieces = {}, picture.pieces(lane)
    for text in pieces:
        binned = re.match(rf"{DURATION} at {DURATION}: (.*)$", text, re.S)
        for part in binned[5].split(", ") if binned else [text.rsplit(" at ", 1)[0]]:
            m = re.search(rf"{DURATION}$", part)
            sums[state_of(part)] = sums.get(state_of(part), 0) + ns_of(m[0])
    for state in STATES:
        near(sums.get(state, 0), right.get(state, 0), len(pieces), f"{lane}: {state}")


def draw(path, out, *args):
    x.export("svg", path, out, *args)
    expect(out.stat().st_size < SIZE_MAX, f"{out.stat().st_size} bytes")
    picture = Picture(out.read_text(encoding="utf-8"))
    picture.fits()
    return picture


LEVELS = 8


def functions_tell(picture, spans, tids):
    """At each level, the bars of a thread's functions add up to the times that it was in them."""
    right = {}
    living = [span for span in spans.threads if span[1] != "dead"]
    for tid, *_, functions, begin, end in living:
        for level, name in enumerate(functions[:LEVELS], 1):
            sums = right.setdefault((tid, level), {})
            sums[name] = sums.get(name, 0) + end - begin
    deeper = any(len(span[-3]) > LEVELS for span in living if not spans.all[span[0]].is_idle())
    equal(any("in turn are left out" in text for text in picture.text), deeper, "the note on functions of deeper levels")
    legend = "function" in ["".join(t.itertext()) for t in picture.root.iter(SVG + "text")]
    equal(legend, any(tid in tids for tid, _ in right), "functions in the legend")
    for tid in tids:
        lane = f"tid{tid}"
        equal(picture.levels(lane), max((level for t, level in right if t == tid), default=0), f"{lane}: levels")
        for level in range(1, picture.levels(lane) + 1):
            found, pieces = {}, picture.pieces(lane, level)
            for text in pieces:
                binned = re.match(rf"{DURATION} at {DURATION}: (.*)$", text, re.S)
                for part in binned[5].split(", ") if binned else [text.rsplit(" at ", 1)[0]]:
                    name, number, unit = re.fullmatch(rf"(.*) {DURATION}", part).groups()
                    if name != "none":
                        found[name] = found.get(name, 0) + ns_of(f"{number} {unit}")
            expected, others = dict(right[tid, level]), found.pop("others", 0)
            expect(set(found) <= set(expected), f"{lane}, level {level}: functions: found {found}, expected {expected}")
            near(sum(found.values()) + others, sum(expected.values()), len(pieces), f"{lane}, level {level}: all functions")
            for name, ns in expected.items():
                expect(others > 0 or name in found, f"{lane}, level {level}: no {name} in {found}")
                if others == 0:
                    near(found[name], ns, len(pieces), f"{lane}, level {level}: {name}")


def model_sums(spans):
    threads = {}
    for span in spans.threads:
        sums = threads.setdefault(span[0], {})
        sums[span[1]] = sums.get(span[1], 0) + span[-1] - span[-2]
    return {tid: sums for tid, sums in threads.items() if not spans.all[tid].is_idle() and set(sums) & set(STATES)}


def cpus_tell(picture, spans, cpus):
    for cpu in cpus:
        busy = idle = 0
        for c, tid, begin, end in spans.cpus:
            if c == cpu and tid is not None and spans.all[tid].is_idle():
                idle += end - begin
            elif c == cpu and tid is not None:
                busy += end - begin
        irqs = [s for s in spans.irqs if s[0] == cpu]
        lost = sum(s[1] for s in spans.lost if s[0] == cpu)
        m = re.fullmatch(rf"cpu {cpu}: busy ({DURATION}), idle ({DURATION}), ([\d,]+) interrupts in ({DURATION}), "
                         r"([\d,]+) events lost", picture.title(f"cpu{cpu}"))
        expect(m, picture.title(f"cpu{cpu}"))
        found = (ns_of(m[1]), ns_of(m[4]), int(m[7].replace(",", "")), ns_of(m[8]), int(m[11].replace(",", "")))
        equal(found, (busy, idle, len(irqs), sum(s[-1] - s[-2] for s in irqs), lost), f"cpu {cpu}: busy, idle, irqs, lost")
        told = [int(m[1].replace(",", "")) for m in (re.match(r"([\d,]+) events? lost", t)
                                                     for t in picture.pieces(f"cpu{cpu}")) if m]
        equal(sum(told), lost, f"cpu {cpu}: events lost by what is hatched")


def same(picture, spans, asked=None):
    """The picture's times must be those of the model."""
    sums = model_sums(spans)
    if asked is not None:
        sums = {tid: s for tid, s in sums.items() if asked(tid)}
    most = LANES if asked is None else ASKED

    def active(tid):
        return sums[tid].get("running", 0) + sums[tid].get("spinning", 0)
    drawn = [int(lane[3:]) for lane in picture.lanes if lane.startswith("tid")]
    equal(len(drawn), min(len(sums), most), "lanes of threads")
    expect(set(drawn) <= set(sums), f"lanes of {set(drawn) - set(sums)}")
    left = [active(tid) for tid in sums if tid not in drawn]
    expect(not left or max(left) <= min(active(tid) for tid in drawn), "a thread left out that ran more")
    equal(any(f"{len(left):,} more: --thread" in t for t in picture.text), bool(left), "the note on those left out")
    for tid in drawn:
        found = picture.sums(f"tid{tid}")
        equal(found, {s: sums[tid].get(s, 0) for s in STATES}, f"tid {tid}: ns by state")
        lane_tells(picture, f"tid{tid}", sums[tid])
        name = spans.all[tid].name
        expect(picture.title(f"tid{tid}").startswith(f"{shown(name)} (tid {tid}): " if name else f"tid {tid}: "),
               picture.title(f"tid{tid}"))
    said = re.search(r"([\d,]+) events? · ([\d,]+) lost$", picture.text[1])
    found = tuple(int(n.replace(",", "")) for n in said.groups()) if said else (0, 0)
    equal(found, (spans.events, sum(s[1] for s in spans.lost)), "events and losses")


def check(path, tmp):
    """For a stream of any kind."""
    picture, rows = draw(path, tmp / "picture.svg"), x.jsonl(path)
    spans = span_model.Spans(rows, functions=True)
    same(picture, spans)
    functions_tell(picture, spans, [int(lane[3:]) for lane in picture.lanes if lane.startswith("tid")])
    cpus_tell(picture, spans, [int(lane[3:]) for lane in picture.lanes if lane.startswith("cpu")])
    expect({row["cpu"] for row in rows} <= {int(lane[3:]) for lane in picture.lanes if lane.startswith("cpu")}, "a CPU's lane")


def every_stream_tells_what_the_model_does(tmp):
    x.every_stream(check, tmp)


def functions_have_lanes(tmp):
    for kind in ("calls 20", "calls 400", "guest 100"):
        path = x.gen(tmp, kind)
        check(path, tmp)
        levels = [Picture((tmp / "picture.svg").read_text()).levels(f"tid{tid}") for tid in (7, 8)]
        expect(("calls" in kind) == (max(levels) > 2), f"{kind}: {levels} levels of functions")


def thread_has_one_colour_in_all_pictures(tmp):
    """Whatever time and threads a picture shows."""
    path = x.gen(tmp, "guest 400")
    rows = x.jsonl(path)
    middle = (rows[0]["ns"] + rows[-1]["ns"]) // 2
    found = {}
    for n, args in enumerate(((), ("--until", f"{middle}ns"), ("--since", f"{middle}ns"), ("--thread", "load"), ("--cpu", "1"))):
        draw(path, tmp / f"{n}.svg", *args)
        lanes = re.findall(r'id="(tid\d+)".*?<g class="(t\w+)"', (tmp / f"{n}.svg").read_text(), re.S)
        for tid, colour in lanes:
            found.setdefault(tid, set()).add(colour)
    expect(len(found) >= 2, f"threads with colours: {found}")
    equal({tid: colours for tid, colours in found.items() if len(colours) > 1}, {}, "threads of several colours")
    expect(len({c for colours in found.values() for c in colours}) > 1, f"all threads have one colour: {found}")


def filters_choose_times_and_lanes(tmp):
    path = x.gen(tmp, "guest 200")
    rows = x.jsonl(path)
    first, last = rows[0]["ns"], rows[-1]["ns"]
    since, until = first + (last - first) // 3 + 1, last - (last - first) // 3 - 1
    picture = draw(path, tmp / "times.svg", "--since", f"{since}ns", "--until", f"{until}ns")
    spans = span_model.Spans(rows, since, until)
    same(picture, spans)
    cpus_tell(picture, spans, (0, 1))
    spans = span_model.Spans(rows)
    same(draw(path, tmp / "thread.svg", "--thread", "7"), spans, asked=lambda tid: tid == 7)
    picture = draw(path, tmp / "cpu.svg", "--cpu", "1")
    equal([lane for lane in picture.lanes if lane.startswith("cpu")], ["cpu1"], "lanes of --cpu 1")
    cpus_tell(picture, spans, (1,))
    nothing = draw(path, tmp / "none.svg", "--thread", "no such")
    expect("No thread that was asked for has run." in nothing.text, f"{nothing.text}")


def widths_are_kept(tmp):
    path = x.gen(tmp, "guest 200")
    for width in (300, 640, 5000):
        equal(draw(path, tmp / "w.svg", "--width", str(width)).width, width, "width")
    for width in ("299", "20001", "wide"):
        equal(x.ktrdump("--format", "svg", "--width", width, "-i", path)[0], 2, f"status of --width {width}")


def names_have_the_room_that_there_is(tmp):
    path = x.gen(tmp, "odd")
    for width, tid, text in ((1200, 987654321, "a numb… 987654321"), (300, 987654321, "a number…"), (300, 25, "a;b c… 25"),
                             (1200, 25, "a;b c|d $e `f` 25")):
        label = draw(path, tmp / "odd.svg", "--width", str(width)).lanes[f"tid{tid}"].find(SVG + "text")
        tspan = label.find(SVG + "tspan")
        equal(label.text + ("" if tspan is None else tspan.text), text, f"what stands beside the lane, width {width}")


def widest_picture_is_not_too_large(tmp):
    path = x.gen(tmp, "mix 400000")
    for args in ([], ["--cpu", "0"]):
        equal(x.ktrdump("--format", "svg", "--width", "20000", *args, "-o", tmp / "wide.svg", path), (0, "", ""), f"{args}")
        size = (tmp / "wide.svg").stat().st_size
        expect(SIZE_MAX // 4 < size < SIZE_MAX, f"{args}: {size:,} bytes, expected {SIZE_MAX // 4:,} to {SIZE_MAX:,}")
        picture = Picture((tmp / "wide.svg").read_text(encoding="utf-8"))
        for tid in range(100, 108):
            lane_tells(picture, f"tid{tid}", picture.sums(f"tid{tid}"))
    expect((tmp / "wide.svg").read_text().count("stands in bins") == 1, "no note on bins")


def used(form, out, path):
    """The resources that an export takes."""
    p = subprocess.Popen([x.KTRDUMP, "--format", form, "-o", out, "-i", path])
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = status
    equal(status, 0, f"{form}: status")
    return usage


def dense_parts_are_binned_and_reported(tmp):
    path = x.gen(tmp, "mix 400000")
    usage, jsonl = (used(form, tmp / f"dense.{form}", path) for form in ("svg", "jsonl"))
    expect(usage.ru_maxrss * 1024 < MEMORY_MAX, f"{usage.ru_maxrss} KiB of memory")
    svg_s, jsonl_s = (u.ru_utime + u.ru_stime for u in (usage, jsonl))
    expect(svg_s < 4 * jsonl_s, f"{svg_s} s of CPU time, and {jsonl_s} s to print the same events")
    expect((tmp / "dense.svg").stat().st_size < SIZE_MAX, "too large")
    picture = Picture((tmp / "dense.svg").read_text(encoding="utf-8"))
    expect(any("stands in bins" in t for t in picture.text), f"no note on bins: {picture.text}")
    expect(any(re.match(r"0 of 50,000 wakeups", t) for t in picture.text), f"no note on wakeups: {picture.text}")
    for tid in range(100, 108):
        lane_tells(picture, f"tid{tid}", picture.sums(f"tid{tid}"))
    few = Picture(x.ktrdump("--format", "svg", "-i", x.gen(tmp, "sample"))[1])
    expect(not any("bins" in t for t in few.text), f"bins of ten events: {few.text}")


def wakeups_are_drawn_where_they_are_few(tmp):
    path = x.gen(tmp, "guest 12")
    rows = x.jsonl(path)
    arrows = [p.find(SVG + "title").text for p in draw(path, tmp / "few.svg").root.findall(SVG + "path")
              if p.get("class") == "w"]
    wakes = [row for row in rows if "point" in row.get("names", []) and row["args"][row["names"].index("point")] == "wokeup"]
    equal(len(arrows), len(wakes), "arrows")
    for text, row in zip(arrows, wakes):
        expect(text.endswith(f" on cpu {row['cpu']} at {row['ns'] // 1000}.{row['ns'] % 1000:03d} µs") or
               ns_of(text.rsplit(" at ", 1)[1]) == row["ns"], f"{text}: expected {row['ns']} ns")


def output_that_fails_is_reported(tmp):
    x.bad_outputs_are_reported("svg", tmp)
    path = x.gen(tmp, "mix 8000")
    equal(x.ktrdump("--format", "svg", "-i", path)[1], x.ktrdump("--format", "svg", "-o", "-", "-i", path)[1], "to a pipe")


if __name__ == "__main__":
    x.main([every_stream_tells_what_the_model_does, functions_have_lanes, filters_choose_times_and_lanes,
            thread_has_one_colour_in_all_pictures, widths_are_kept,
            names_have_the_room_that_there_is, widest_picture_is_not_too_large, dense_parts_are_binned_and_reported, wakeups_are_drawn_where_they_are_few, output_that_fails_is_reported])
