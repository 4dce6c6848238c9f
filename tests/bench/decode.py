"""decode.py - how much ktrdump reads in a second, compared with the readers of other formats on the same events.

Each round runs every reader once, one after the other. Rates are of CPU time; ratios are medians of the ratios
within a round.
"""
import shutil
import statistics
import subprocess

from growth import GENERATOR, KTRDUMP, cpu_time
from rows import HOST, Row

EVENTS = 2_000_000
ROUNDS = 5
OUTPUTS = {
    "text": ("--format", "text"),
    "text_columns": ("-cs",),  # FreeBSD's usual columns, which the other readers print too
    "jsonl": ("--format", "jsonl"),
    "report_events": ("report", "events"),
}
# Other readers: the format of their input, and their command.
OTHERS = {
    "babeltrace2": ("ctf", lambda path: ["babeltrace2", path]),
    "trace_cmd": ("tracedat", lambda path: ["trace-cmd", "report", "-i", path]),
}


def missing(name, form):
    """Why a reader cannot be measured, or None."""
    program = name.replace("_", "-")
    if not shutil.which(program):
        return f"{program} is not installed"
    usage = subprocess.run([KTRDUMP, "--help"], capture_output=True, text=True).stdout
    return None if form in usage else f"ktrdump does not write {form}"


def output_bytes(command):
    p = subprocess.Popen(command, stdout=subprocess.PIPE)
    total = sum(len(data) for data in iter(lambda: p.stdout.read(1 << 20), b""))
    p.wait()
    return total


def measure(folder):
    trace = folder / "decode.ktr"
    with open(trace, "wb") as out:
        cpu_time([GENERATOR, "mix", str(EVENTS)], stdout=out)
    commands = {name: [KTRDUMP, *words, "-i", trace] for name, words in OUTPUTS.items()}
    why = {name: missing(name, form) for name, (form, _) in OTHERS.items()}
    for name, (form, command) in OTHERS.items():
        if why[name] is None:
            other = folder / form
            cpu_time([KTRDUMP, "--format", form, "-o", other, "-i", trace])
            commands[name] = command(other)
    rounds = [{name: cpu_time(command) for name, command in commands.items()} for _ in range(ROUNDS)]
    setting = f"of CPU time, to /dev/null; {EVENTS:,} events of the mix of ktr_gen, {trace.stat().st_size / EVENTS:.1f} bytes " \
              f"each; median of {ROUNDS} rounds"
    rows = []
    for name, command in commands.items():
        seconds = statistics.median(r[name] for r in rounds)
        shown = " ".join(w for w in map(str, command[:-2] if name in OUTPUTS else command[:-1])).replace(str(KTRDUMP), "ktrdump")
        rows.append(Row(f"decode_{name}", HOST, EVENTS / seconds / 1e6, "M events/s",
                        f"`{shown}` {setting}; {output_bytes(command) / seconds / 1e6:,.0f} MB/s of output"))
    for name in OTHERS:
        if why[name]:
            rows.append(Row(f"text_to_{name}", HOST, None, "times", f"not measured: {why[name]}"))
        else:
            rows.append(Row(f"text_to_{name}", HOST, statistics.median(r[name] / r["text_columns"] for r in rounds), "times",
                            "CPU time on the same events; ktrdump with -cs"))
    return rows
