#!/usr/bin/python3
"""test_recorded_pages.py - each program in D of the pages: what it finds live, `dtrace -r` finds in a trace of the same run; or it
is refused, and the message says what a trace does not know.

The programs are found by their commands in the listings (listing.py). One machine runs those that a trace can answer, each with
the command of its listing while its probes are recorded. Their times in the trace are those between the events BEGIN and END.
"""
import json
import re
import shlex
import subprocess
import sys
from collections import namedtuple

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import disks  # noqa: E402
from harness import ARCH, ROOT, Failed, boot, check, check_eq, ktrdump, main, scratch_file, test  # noqa: E402
from listing import File, parse  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/unit"))
import ktrace_records  # noqa: E402

DTRACE = ROOT / "build/host/dtrace"
PAGES = [ROOT / "README.md", *sorted((ROOT / "doc").glob("*.md"))]
TAKES_WORD = "bcDILoprsUxXPmfniB"
NO_PROGRAM = set("aehlV")  # options of dtrace with which no program runs
REFUSED = r"\[D_RECORDED\].* in a recorded trace"
UNKNOWN = "[D_ARGS_NONE]"  # about args[] of a probe that the trace does not have

# where: page and line. options: words. sources: (option, text). command: what runs meanwhile, for the guest's shell; None: nothing.
Program = namedtuple("Program", "where options sources command")


def commands(line):
    """The words of each command of a shell's line, without redirections."""
    words = shlex.shlex(line, posix=True, punctuation_chars=";|&<>()")
    words.whitespace_split, words.commenters = True, ""
    found, skip = [[]], False
    for word in words:
        if re.fullmatch(r"[;|&<>()]+", word):
            skip = word[0] in "<>"
            found += [] if skip else [[]]
        elif not skip:
            found[-1].append(word)
        else:
            skip = False
    return [c for c in found if c]


def arguments(words):
    """(option, word) of each option, as getopt() finds them."""
    words, found = list(words), []
    while words:
        word = words.pop(0)
        if not re.match(r"-\w", word):
            continue  # $1 and so on
        for i, letter in enumerate(word[1:], 2):
            if letter in TAKES_WORD:
                found.append((letter, word[i:] or words.pop(0)))
                break
            found.append((letter, None))
    return found


def program_of(words, where, files, run_of):
    """The program that a command runs; None: it runs none. files: texts by name. run_of: what ran while a trace was recorded."""
    at = next((i for i, word in enumerate(words) if word.split("/")[-1] == "dtrace"), None)
    if at is not None:
        words = words[at + 1:]
    elif words[0].endswith(".d"):  # a script that can be executed
        words = ["-s", *words]
    else:
        return None
    given = arguments(words)
    letters = {letter for letter, _ in given}
    sources = tuple((letter, files[word.split("/")[-1]] if letter == "s" else word) for letter, word in given if letter in "snPmfi")
    if letters & NO_PROGRAM or not sources:
        return None
    values = dict(given)
    command = values.get("c")
    if "r" in values:
        command = run_of(values["r"])
    options = tuple(f"-{letter}{word or ''}" for letter, word in given if letter in "CDFUXxZw")
    return Program(where, options, sources, command)


def programs_of(path):
    """The programs of a page."""
    files, boots, found = {}, [], []

    def run_of(trace):
        """What ran while a trace was recorded. $n in its name stands for what is in the files that the page does not show."""
        for name, script, others in reversed(boots):
            m = re.fullmatch(re.sub(r"\\\$\w+", "(.*)", re.escape(name)), trace)
            if m:
                return "".join(f"echo {value} > {file}\n" for value in m.groups() for file in others) + script
        raise Failed(f"{path.name}: no listing makes {trace}, which dtrace -r reads")

    def look(line, number):
        for words in commands(line):
            found.append(program_of(words, f"{path.name}: line {number}", files, run_of))
            if any(word.endswith("qemu/boot") for word in words):
                given = list(zip(words, words[1:]))
                others = [after.split("=")[0] for word, after in given if word == "--file" and after.split("=")[1] not in files]
                boots.append([dict(given).get("--trace", ""), files.get(dict(given).get("--script"), ""), others])

    for item in parse(path):
        if isinstance(item, File):
            if item.path is not None:
                files[item.path.split("/")[-1]] = item.text
            for n, line in enumerate(item.text.splitlines() if (item.path or "").endswith(".sh") else [], 1):
                look(line, item.line + n)
        elif item.prompt in ("$ ", "kestrel# "):
            look(item.text, item.line)
            if item.prompt == "kestrel# " and boots and item.text != "poweroff":
                boots[-1][1] += item.text + "\n"
    return [p for p in found if p]


def probes_of(text):
    """The names of probes in a program that have a colon: the others are of no event."""
    text = re.sub(r'/\*.*?\*/|^#.*?$|"(?:\\.|[^"\\])*"', "", text, flags=re.M | re.S)
    while re.search(r"\{[^{}]*\}", text):
        text = re.sub(r"\{[^{}]*\}", ";", text)
    clauses = [re.sub(r"/.*", "", part, flags=re.S) for part in text.split(";")]
    return sorted({name.strip() for part in clauses for name in part.split(",") if ":" in name} - {""})


def after(trace, program, *options):
    """What the host's dtrace prints of a trace, and what it says: "" if the program compiles."""
    words = []
    for letter, text in program.sources:
        if letter == "s":
            path = scratch_file(".d")
            path.write_text(text)
            text = path
        words += [f"-{letter}", text]
    done = subprocess.run([DTRACE, "-q", "-r", trace, *program.options, *options, *words], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "KESTREL_ARCH": ARCH})
    check_eq(done.returncode != 0, done.stderr != "", f"{program.where}: status {done.returncode} of dtrace -r, which says {done.stderr}")
    return done.stdout, done.stderr


def rows(text):
    return sorted(" ".join(line.split()) for line in text.replace("\r", "").splitlines() if line.strip())


def folder_of_disk():
    """A folder with the file that doc/disk.md makes."""
    folder = scratch_file("")
    folder.mkdir()
    (folder / "words").write_text("".join(f"{n}\n" for n in range(1, 30001)))
    return folder


def run(live, seen, entries):
    """Of the programs `seen` runs the commands only, while no file has been read yet; then runs programs live. What these print; the
    trace; and the times between which each ran."""
    options, lines = [], ["mkdir -p /d /mnt; mount -t ext2 /dev/vda /mnt; ktr on dtrace:::BEGIN,dtrace:::END > /dev/null"]
    # As slow as the page's: a reader waits, however fast the host is.
    disk = disks.throttled(disks.make(folder=folder_of_disk()), "iops-read=100")

    def put(text):
        """A file of the guest."""
        path = scratch_file("")
        path.write_text(text)
        options.extend(["--file", f"/d/{path.name}={path}"])
        return f"/d/{path.name}"

    for program in [*seen, *live]:
        command = "sh " + put(program.command) if "\n" in (program.command or "") else program.command or "true"
        words = [f"-{letter} {put(text) if letter == 's' else shlex.quote(text)}" for letter, text in program.sources]
        lines += ["rm -rf /tmp/*"]
        specs = ",".join(name for _, text in program.sources for name in probes_of(text))
        lines += [f"ktr on {shlex.quote(specs)} > /dev/null || echo bad"] if specs else []
        if program in live:
            lines += [f"dtrace -q {' '.join(program.options)} -o /d/out {' '.join(words)} -c {shlex.quote(command)} > /dev/null 2>&1"]
        else:
            lines += [f"{command} > /dev/null 2>&1"]
        lines += [f"ktr off {shlex.quote(specs)} > /dev/null"] if specs and program != [*seen, *live][-1] else []
        lines += ["echo begins; cat /d/out; rm /d/out; echo ends"] if program in live else []
    done = boot("\n".join([*lines, "true"]) + "\n", smp=1, mask="PROC", trace=True, sets=[f"debug.ktr.entries={entries}"], options=["--icount", *options, *disk]).expect()
    shown = re.findall(r"^begins\n(.*?)^ends$", done.out.replace("\r", ""), re.M | re.S)
    told = [json.loads(line) for line in ktrdump("--format", "jsonl", "--grep", "dtrace:::*", "-i", done.trace)[1].splitlines()]
    times = [row["ns"] for row in told if row.get("text", "").startswith("dtrace:::")]
    check_eq(("bad" in done.out.split(), len(shown), len(times), [row for row in told if "gap" in row]), (False, len(live), 2 * len(live), []),
             f"probes that cannot be recorded; outputs, times and losses in:\n{done.out}")
    return shown, done.trace, list(zip(times[::2], times[1::2]))


def compare(programs, seen=(), entries=1 << 16):
    shown, trace, times = run(programs, seen, entries)
    wrong = []
    for program, live, (since, until) in zip(programs, shown, times):
        found, said = after(trace, program, "-x", f"since={since}ns", "-x", f"until={until}ns")
        if said or rows(found) != rows(live):
            wrong.append(f"{program.where}: {program.sources}\nlive:\n{live}\nafter the fact:\n{found}{said}")
    check(not wrong, "\n".join(wrong))
    empty = [p.where for p, live in zip(programs, shown) if not rows(live)]  # as of one that waits for a time
    check(len(empty) <= len(programs) // 10, f"programs that find nothing live: {empty}")
    return trace


@test("each program of the pages finds after the fact what it finds live, or is refused and told why",
      arch=("x86_64", "the listings of the pages are of x86_64, whose system calls they name"))
def pages():
    programs = {p[1:]: p for path in PAGES for p in programs_of(path)}.values()
    check(len(programs) > 20, f"{len(programs)} programs: {programs}")
    seed = scratch_file("")
    seed.write_bytes(b"".join(ktrace_records.one_of_each(ARCH)))
    said = {p: after(seed, p, "-Z", "-e")[1] for p in programs}
    unknown = [p for p in programs if UNKNOWN in said[p]]
    live = [p for p in programs if not said[p]]
    every_function = [p for p in live if any("fbt:::" in probes_of(text) for _, text in p.sources)]  # their trace is long
    trace = compare([p for p in live if p not in every_function], unknown)
    compare(every_function, entries=1 << 19)
    said.update((p, after(trace, p, "-e")[1]) for p in unknown)
    more = [p for p in unknown if not said[p]]
    if more:
        compare(more)
    wrong = [f"{p.where}: {p.sources}: {said[p]}" for p in programs if said[p] and not re.search(REFUSED, said[p])]
    check(not wrong, "\n".join(["refused without a reason:", *wrong]))


if __name__ == "__main__":
    main()
