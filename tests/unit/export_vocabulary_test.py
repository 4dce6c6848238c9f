#!/usr/bin/python3
"""export_vocabulary_test.py - the table of ktr/README.md lists exactly what exporters understand, and its formats
work.

Prints TAP.
"""
import re

import export_help as x
import wire
from export_help import equal, expect

CODE = (x.ROOT / "ktr/tools/model/activity_meaning.c").read_text()
GRAPH = {"KTR_STATE": "state", "KTR_POINT": "point", "KTR_COUNTER": "counter"}


def section():
    text = (x.ROOT / "ktr/README.md").read_text()
    start = text.index("## What exporters understand")
    return text[start:text.index("\n## ", start)]


def table_of_code(name):
    """The quoted texts at the beginning of the rows of a table."""
    text = CODE[CODE.index(f"}} {name}[] = {{"):]
    text = text[:text.index("\n};")]
    return [m.replace('\\"', '"') for m in re.findall(r'\{"((?:[^"\\]|\\.)*)"', text)]


def formats():
    """The formats of the document's table, complete."""
    rows = [row.split(" | ")[0] for row in section().splitlines() if row.startswith("| `")]
    found = []
    for row in rows:
        for code in re.findall("`([^`]*)`", row):
            call = re.match(r'(KTR_STATE|KTR_POINT|KTR_COUNTER)\d\(KTR_\w+, "(\w+)", \w+, (?:"([^"]*)"|\w+)(.*)\)$', code)
            if call:
                kind, value = GRAPH[call[1]], "%d" if call[3] is None else '"%s"'
                attributes = call[4].replace("KTR_ATTR_LINKED", '"linkedto:\\"%s\\""')
                attributes = [a.replace('\\"', '"') for a in re.findall(r'"((?:[^"\\]|\\.)*)"', attributes)]
                found.append((f'KTRGRAPH group:"{call[2]}", id:"%s", {kind}:{value}, attributes: ' + (", ".join(attributes) or "none"),
                              call[3]))
            elif code.startswith('"'):
                found.append((code.strip('"').replace("NAME: …", "read: arg0 %ld arg1 %#lx").replace("NAME", "read"), None))
            else:
                equal(code, 'ktr_thread_name(tid, "idle/N")', "what is no format")
    return found


def document_has_what_the_code_has(_):
    begins = table_of_code("meanings")
    expect(len(begins) >= 12, f"meanings: {begins}")
    said = formats()
    for b in begins:
        expect(any(f.startswith(b) for f, _ in said), f"the document has no format that begins with {b!r}")
    for f, _ in said:
        expect(any(f.startswith(b) for b in begins), f"no format is known that begins as {f!r}")
    states = {"running", *table_of_code("states")}
    points = set(re.findall(r'strcmp\(text, "(\w+)"\)', CODE)) - {"running"}
    equal({v for f, v in said if ", state:" in f}, states, "states")
    equal({v for f, v in said if ", point:" in f}, points, "points")


def what_the_document_says_works(tmp):
    """A stream with only the document's formats: exporters find who runs, why not, interrupts, calls and processes."""
    ident, running = {7: 0x7a5c << 48 | 7, 8: 0x7a5c << 48 | 8}, 'state:"%s", attributes: prio:%d'
    said, strings = formats(), {}

    def text(what):
        return strings.setdefault(what, 0x1000 + len(strings))

    events, sites = [], []
    for number, (fmt, value) in enumerate(said):
        args = []
        for name, conversion in re.findall(r'(\w+)[^\w%]*%#?l?([a-z])', fmt):
            args.append({"id": ident[8] if value != "running" else ident[7], "linkedto": ident[7]}.get(name, text(value or name))
                        if conversion == "s" else 20 if name == "prio" else 8)
        sites.append(wire.site(number, fmt, len(args)))
        events.append((number, args))
    order = [n for n, (f, v) in enumerate(said) if running in f and v == "running"] + list(range(len(said)))
    batch = [(n, 1000, dict(events)[n]) for n in order]
    names = [wire.string(value, what) for what, value in strings.items()]
    names += [wire.string(ident[7], "one tid 7"), wire.string(ident[8], "two tid 8"), wire.thread(7, "one"), wire.thread(8, "two")]
    path = tmp / "said.ktr"
    path.write_bytes(wire.stream(*sites, *names, wire.batch(0, 0, 1000, 7, batch)))
    out = {}
    for form in ("folded", "chrome", "svg"):
        out[form] = tmp / form
        x.export(form, path, out[form])
    status, events, err = x.run("trace-cmd", "report", "-i", tracedat(path, tmp))
    equal(status, 0, err)
    for word in ("sched_switch", "sched_waking", "sched_wakeup", "irq_handler_entry", "irq_handler_exit", "sys_enter_read",
                 "sys_exit_read", "sched_process_fork", "sched_process_exec", "sched_process_exit"):
        expect(word in events, f"Linux's {word} is not in: {events}")
    folded = out["folded"].read_text()
    for word in ("sleeping;wmesg", "blocked;lockname", "spinning;lockname"):
        expect(word.split(";", maxsplit=1)[0] in folded, f"{word} is not in: {folded}")


def tracedat(path, tmp):
    x.export("tracedat", path, tmp / "trace.dat")
    return tmp / "trace.dat"


if __name__ == "__main__":
    x.main([document_has_what_the_code_has, what_the_document_says_works])
