"""export.py - how fast ktrdump writes other tools' formats, compared with babeltrace2, which copies CTF.

Each round writes every format once, from the same events. A rate is of the least CPU time of all rounds:
fetching a file's pages can only add to it. The budgets are ratios to babeltrace2's rate, since a slow moment is
slow for both.
"""
import os
import shutil
import subprocess

from growth import GENERATOR, KTRDUMP, cpu_time
from rows import HOST, Row

EVENTS = 2_000_000
ROUNDS = 5
MANY = 10_000_000  # for the picture
PEER = "babeltrace2"


def formats():
    """The formats that `ktrdump --help` lists."""
    text = subprocess.run([KTRDUMP, "--help"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in text[text.index("Formats for --format"):].splitlines()[1:] if line.strip()]


def generate(path, events):
    with open(path, "wb") as out:
        cpu_time([GENERATOR, "mix", str(events)], stdout=out)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def size(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files)


def timed(command, out):
    remove(out)
    os.sync()  # otherwise a program would pay for what the one before it wrote
    return cpu_time(command)


def measure(folder):
    trace, many = folder / "export.ktr", folder / "many.ktr"
    generate(trace, EVENTS)
    generate(many, MANY)
    outs = {name: folder / f"export.{name}" for name in formats()}
    commands = {name: [KTRDUMP, "--format", name, "-o", out, "-i", trace] for name, out in outs.items()}
    if shutil.which(PEER):
        outs[PEER] = folder / PEER
        commands[PEER] = [PEER, "--output-format", "ctf", "--output", outs[PEER], outs["ctf"]]
    rounds = [{name: timed(command, outs[name]) for name, command in commands.items()} for _ in range(ROUNDS)]
    rate = {name: EVENTS / min(r[name] for r in rounds) / 1e6 for name in commands}
    rows = []
    for name in commands:
        how = "`babeltrace2`, CTF to CTF," if name == PEER else f"`ktrdump --format {name}`"
        rows.append(Row(f"export_{name}", HOST, rate[name], "M events/s",
                        f"{how} of CPU time, {EVENTS:,} events of the mix of ktr_gen; {size(outs[name]) / EVENTS:.1f} bytes "
                        f"an event; the least of {ROUNDS} rounds"))
    picture = folder / "many.svg"
    seconds = cpu_time([KTRDUMP, "--format", "svg", "-o", picture, "-i", many])
    rate["svg_10m"] = MANY / seconds / 1e6
    rows.append(Row("export_svg_10m", HOST, seconds, "s", f"CPU time of a picture of {MANY:,} events"))
    rows.append(Row("export_svg_10m_bytes", HOST, picture.stat().st_size / 1e6, "MB", "its size"))
    for name in [*outs, "svg_10m"]:
        if name == PEER:
            continue
        if PEER in rate:
            rows.append(Row(f"{name}_to_{PEER}", HOST, rate[name] / rate[PEER], "times", "of the two rates"))
        else:
            rows.append(Row(f"{name}_to_{PEER}", HOST, None, "times", f"not measured: {PEER} is not installed"))
    return rows
