"""listing.py - types the console listings of a Markdown page, and compares the output.

A listing is a fenced block whose info string begins with `console`. Markdown renderers ignore the rest of it:
  terminal=NAME   another terminal than the page's first
  exact           a count matches only itself: for what --icount repeats, and a new build should not change
  skip=REASON     do not type it: it needs a display, npm or apt
A line that begins with a prompt is typed at that prompt: `$ ` is the host's shell, `kestrel# ` the guest's,
`db> ` the kernel debugger, `(gdb) ` gdb, `(qemu) ` QEMU's monitor. A line `[Return ~ ^B]` names keys. They are
pressed at the prompt that follows the command before them; `[Return]`, and keys that begin with ^C, while that
command runs. All other lines are output. A terminal continues from one listing of the page to the next, so the
program that runs in it determines the prompt.

A fenced block whose info string is a language and a path (`sh demo.sh`) is a file, written before later listings
are typed. `diff` is a change of the sources. A page with a diff, or with a file in a folder, works on a copy of
the sources; other pages work on links.

Output is compared line by line, by `mask()`:
  - white space counts as one blank, runs of dashes as one; blank lines and prompts without a command do not count
  - any number but 0 matches any other, and 0 matches 0. Numbers with a unit of time or a decimal point, a CPU's
    number, and the index and CPU of an event's line match any number, too. A number alone on its line matches only
    itself
  - `...` as a line matches any lines; within a line, any text

With KESTREL_REFRESH=1 (`make docs-refresh`) the page gets what was printed. A line that agrees but for numbers gets the
new ones: all of them if the machine was booted with --icount, --record or --replay, and otherwise only if a count in
the command's output differs, or the address of a function, because times and other addresses differ each time. What
`...` stands for stays left out. Output without a line `...` may have other words and lines, too; with one, other words
are an error as ever. Output of `make test` is kept: here it runs one item.
"""
import contextlib
import os
import re
import shutil
import subprocess

import pexpect

from console import Patient, close
from harness import DEADLINE_S, ROOT, Failed, check, check_eq

PROMPTS = ("$ ", "kestrel# ", "db> ", "(gdb) ", "(qemu) ")
SKIPS = ("display", "npm", "apt")
HOST_PROMPT = "host-of-listings$ "  # the host's prompt, which stands for `$ `
MORE = r"(?<![^\r\n])--More--$"
BUILT = ("x86_64", "host")
KEYS = {"Return": "\r", "Space": " "}
# Commands in listings that must not run here: they are not for this machine, or would run this test again.
SHELL_SETUP = """
PS1='{prompt}' PS2= PROMPT_COMMAND= TERM=dumb COLUMNS=400; unset MAKEFLAGS MAKELEVEL MFLAGS DEBUGINFOD_URLS
qemu/install-tools() {{ :; }}
make() {{ {make}; }}
"""
# The compiler gets the folder in which all was built, so that nothing is built again; `make test` runs one other item.
# README.md's page boots the image. On the others QEMU boots the kernel itself: GRUB takes three times as long.
MAKE = """case " $* " in
*" test "*) command make CURDIR='{root}' TESTS=sanitize/asan/ktr_param_test "$@" ;;
*) command make CURDIR='{root}' {words} "$@" ;;
esac"""


class Step:
    """One line to type, or keys to press; and the output in the listing."""

    def __init__(self, line, terminal, prompt, text, keys=False, exact=False):
        self.line, self.terminal, self.prompt, self.text, self.keys, self.exact = line, terminal, prompt, text, keys, exact
        self.output = []
        self.repeats = False  # the machine of which the output tells was booted with --icount, --record or --replay
        self.next_prompt = None  # in the same terminal
        self.interrupted = False  # the next step presses keys while this command runs


class File:
    """A file on the page, or a change of the sources."""

    def __init__(self, line, path, text):
        self.line, self.path, self.text = line, path, text  # path None: a diff


def prompt_of(line):
    return next((p for p in PROMPTS if line.startswith(p) and line.strip() != p.strip()), None)


def fences(text):
    """(line number, info string, lines) of each fenced block. Indented blocks and paragraphs have info None."""
    block, info, start = [], None, 0
    for number, line in enumerate(text.splitlines(), 1):
        m = re.match(r" {0,3}(`{3,}|~{3,})\s*(.*)$", line)
        if m and (info is None or not m[2]):
            if block or info is not None:
                yield start, info, block
            block, info, start = [], m[2] if info is None else None, number
        else:
            block.append(line)
    check(info is None, f"line {start}: a fenced block without an end")
    yield start, None, block


def parse_console(number, info, lines):
    """The steps of a listing; none if it is skipped."""
    words = dict(word.partition("=")[::2] for word in info.split()[1:])
    check(set(words) <= {"terminal", "exact", "skip"}, f"line {number}: `{info}`: expected terminal=, exact or skip=")
    if "skip" in words:
        check(words["skip"] in SKIPS, f"line {number}: skip={words['skip']}: expected {' or '.join(SKIPS)}")
        return []
    steps = []
    for n, line in enumerate(lines, number + 1):
        prompt, keys = prompt_of(line), re.fullmatch(r"\[([^\[\]]+)\]", line)
        if prompt:
            steps.append(Step(n, words.get("terminal", ""), prompt, line[len(prompt):], exact="exact" in words))
        elif keys and all(key_bytes(k) for k in keys[1].split()):
            steps.append(Step(n, words.get("terminal", ""), None, keys[1], keys=True))
        else:
            check(steps, f"line {n}: a listing begins with a prompt or keys, found: {line}")
            steps[-1].output.append(line)
    check(steps, f"line {number}: a listing in which nothing is typed")
    return steps


def key_bytes(name):
    if re.fullmatch(r"\^[A-Z\]\\]", name):
        return chr(ord(name[1]) - 64)
    return KEYS.get(name, name if len(name) == 1 else None)


def parse(path):
    """Steps and files of a page, in order. A prompt outside of a listing is an error."""
    found = []
    for number, info, lines in fences(path.read_text(encoding="utf-8")):
        words = (info or "").split()
        if words[:1] == ["console"]:
            found += parse_console(number, info, lines)
            continue
        if words == ["diff"]:
            found.append(File(number, None, "\n".join(lines) + "\n"))
        elif len(words) == 2 and path.parent.name != "ktr":  # test_embed checks the files of ktr/README.md
            found.append(File(number, words[1], "\n".join(lines) + "\n"))
        shown = next(((n, line) for n, line in enumerate(lines, number + 1) if prompt_of(line.lstrip(" >"))), None)
        check(shown is None or found and isinstance(found[-1], File) and found[-1].line == number,
              f"{path.name}: line {shown and shown[0]}: a prompt that no listing shows: {shown and shown[1]}")
    steps = [s for s in found if isinstance(s, Step)]
    repeats = False
    for i, step in enumerate(steps):
        if re.search(r"\bqemu/boot |\bmake (run|debug)\b", step.text):
            repeats = re.search(r" --(icount|record|replay)\b", step.text) is not None
        step.repeats = repeats
        later = [s for s in steps[i + 1:] if s.terminal == step.terminal]
        step.next_prompt = next((s.prompt for s in later if not s.keys), None)
        step.interrupted = bool(later) and later[0].keys and (later[0].text == "Return" or later[0].text.startswith("^C"))
        if not step.interrupted and later and later[0].keys:
            step.next_prompt = None
    return found


def mask(line, exact=False, text=False):
    """The part of a line that is compared. text: addresses of the kernel's text are, too."""
    line = line.strip()
    if re.fullmatch(r"\d+", line):
        return line
    line = re.sub(r"^(\d+|-)( +\d+)? +(?=\d+\.\d{9} )", "", line)
    line = re.sub(r'"(seq|cpu|ns|tid)":\d+', r'"\1":#', line)
    line = re.sub(r"(\bcpu ?|\bCPU ?|\b(?:idle|swapper)/|^\S+ +\[)\d+", r"\1#", line)
    line = re.sub(r"(?<![\w.])(\d[\d,]*)(?= ?(?:ns|us|ms|s|min|minutes|seconds|%)(?!\w))|\d+\.\d+", "#", line)
    of_text = "(?!ffffffff8[0-9a-f]{7}\\b)" if text else ""
    line = re.sub(rf"0x{of_text}0*[1-9a-f][0-9a-f]*", "0x#", line)
    line = re.sub(rf"\b{of_text}[0-9a-f]{{12,}}\b", "#", line)
    if not exact:
        line = re.sub(r"\d[\d,]*", lambda m: "0" if not m[0].strip("0,") else "#", line)
    return re.sub(r"-{3,}", "---", re.sub(r"\s+", " ", line))


def line_pattern(line, exact=False, text=False):
    return re.compile(".*".join(re.escape(part) for part in mask(line.replace("...", "\0"), exact, text).split("\0")))


NOTHING = {"", *(prompt.strip() for prompt in PROMPTS)}  # lines that do not count


def difference(expected, found, exact=False):
    """None, or a message about the first line of the listing that matches nothing."""
    expected = [line for line in expected if line.strip() not in NOTHING]
    found = [mask(line, exact) for line in found if line.strip() not in NOTHING]
    at, best = {0}, 0  # at: how many lines of output the lines of the listing up to here may match
    for line in expected:
        if line.strip() == "...":
            at = set(range(min(at), len(found) + 1))
            continue
        pattern = line_pattern(line, exact)
        best = min(at)
        at = {i + 1 for i in at if i < len(found) and pattern.fullmatch(found[i])}
        if not at:
            return f"the page has\n  {line}\nfound there, masked:\n  " + ("\n  ".join(found[best:best + 12]) or "(nothing)")
    if len(found) not in at:
        return "the page ends, and more is printed, masked:\n  " + "\n  ".join(found[max(at):max(at) + 12])
    return None


def renewed_line(line, found, repeats):
    """A line of a listing with the numbers of the line that was found, if they are to be renewed."""
    if "...." in line or not repeats and line_pattern(line, True, True).fullmatch(mask(found, True, True)):
        return line
    number = r"0x[0-9a-f]+|\b[0-9a-f]{12,}\b|\d[\d.,]*"
    parts = [re.sub(rf"({number})|(\s+)|(-{{3,}})|(.)", lambda m: rf"(?:{number})" if m[1] else r"\s*" if m[2] else "-+" if m[3] else
                    re.escape(m[4]), part) for part in line.split("...")]
    m = re.fullmatch(".*?".join(f"({part})" for part in parts), found.rstrip())
    new = "...".join(m.groups()) if m else line
    return line if "".join(new.split()) == "".join(line.split()) else new


def renewed(expected, found, repeats):
    """The lines of a listing as they are now, or None if somebody has to look: its words differ, and it leaves out lines."""
    found = [line.rstrip() for line in found if line.strip() not in NOTHING]
    if difference(expected, found) is not None:
        return None if "..." in map(str.strip, expected) else found
    ways = {0: []}  # by how many lines of output were matched: the lines of the listing up to here, renewed
    for line in expected:
        if line.strip() == "...":
            least = min(ways)
            ways = {n: ways.get(n, ways[least]) + [line] for n in range(least, len(found) + 1)}
        elif line.strip() in NOTHING:
            ways = {n: lines + [line] for n, lines in ways.items()}
        else:
            pattern = line_pattern(line)
            ways = {n + 1: lines + [renewed_line(line, found[n], repeats)] for n, lines in ways.items()
                    if n < len(found) and pattern.fullmatch(mask(found[n]))}
    new = ways[len(found)]
    # All numbers of a command's output are of one run.
    return new if repeats or new == expected else renewed(expected, found, True)


def plain(text):
    """Terminal output as lines, without control sequences and what was erased: a program's progress on a slow host."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|(?:\r[^\r\n]+)*\r {8,}\r", "", text)
    return text.replace("\r", "")


def after(typed, text):
    """The lines after the echo of what was typed, which the line editor breaks where the screen ends; or None."""
    echo = 0
    for i, c in enumerate(text):
        if c == "\n" and echo == len(typed):
            return text[i + 1:]
        echo += echo < len(typed) and c == typed[echo]
    return None


class Terminal:
    """A pseudo-terminal with the host's shell, in which commands may start a guest or gdb."""

    def __init__(self, folder, make):
        env = dict(os.environ, LC_ALL="C.UTF-8", TERM="dumb")
        setup = folder / ".listing-setup"
        setup.write_text(SHELL_SETUP.format(prompt=HOST_PROMPT, make=make))
        self.child = Patient("/bin/bash", ["--rcfile", str(setup), "--noediting", "-i"], cwd=folder, env=env,
                             encoding="utf-8", codec_errors="replace", timeout=4 * DEADLINE_S, dimensions=(1000, 400))
        self.child.delaybeforesend = None
        # A line editor draws its prompt again: only at the end of the output it waits for a line; busybox's asks for the
        # cursor's place then. QEMU's monitor draws it once, and the guest may print after it.
        ends = r"(?:\x1b\[6n)?$"
        self.patterns = [rf"(?<![^\r\n]){re.escape(HOST_PROMPT if p == '$ ' else p)}{'' if p == '(qemu) ' else ends}" for p in PROMPTS]
        self.prompt = None
        self.wait("$ ")

    def wait(self, wanted):
        """Waits for the next prompt, or the wanted one, and returns the output before it."""
        text = ""
        while True:
            try:
                found = self.child.expect([*self.patterns, MORE, pexpect.EOF])
            except pexpect.TIMEOUT:
                raise Failed(f"no prompt {wanted or ''} came; found:\n{plain(text + self.child.before)}") from None
            text += self.child.before
            check(found <= len(PROMPTS), f"the terminal closed; found:\n{plain(text)}")
            if found == len(PROMPTS):
                self.child.send(" ")
                continue
            self.prompt = PROMPTS[found]
            if wanted in (None, self.prompt):
                return plain(text)
            # The shell on the host writes it once, when the command has ended.
            check(self.prompt != "$ ", f"the command has ended, and no prompt {wanted} came; found:\n{plain(text)}")
            text += self.prompt + "\n"

    def type(self, step):
        if step.keys:
            keys = step.text.split()
            if keys[0] == "Return" and len(keys) > 1:  # after an empty line the prompt comes again
                self.child.send(key_bytes(keys.pop(0)))
                self.wait(self.prompt)
            self.child.send("".join(map(key_bytes, keys)))
            return self.wait(step.next_prompt)
        check_eq(self.prompt, step.prompt, "the prompt in this terminal")
        self.child.sendline(step.text)
        if step.interrupted:  # press the keys when the output of the listing has come
            self.child.expect_exact([line for line in [step.text, *step.output] if line.strip()][-1])
            return "\n".join(step.output)
        output = None
        while output is None:  # the line editor may draw the line again, with its prompt, before it reads Return
            output = after(step.text, self.wait(step.next_prompt))
        return output

    def close(self):
        close(self.child)


def link_tree(folder):
    """Links to the repository, for a page that does not change it; with a build folder in which new files can be
    made."""
    for entry in ROOT.iterdir():
        if entry.name not in ("build", ".git"):
            (folder / entry.name).symlink_to(entry)
    for build in (ROOT / "build").iterdir():
        if build.is_dir():
            (folder / "build" / build.name).mkdir(parents=True)
            for entry in build.iterdir():
                (folder / "build" / build.name / entry.name).symlink_to(entry)
    for made in [*(folder / "build").glob("*/run.ktr"), *(folder / "build").glob("*/debug.*")]:
        made.unlink()  # by others who run here: a page makes its own


def copy_tree(folder):
    """A copy of the sources and of what was built, for a page that changes them; only the changes are built."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    (folder / "build").mkdir()
    for name in BUILT:
        subprocess.run(["cp", "-a", ROOT / "build" / name, folder / "build" / name], check=True, timeout=DEADLINE_S)
    # Else qemu/fetch-guest gets it again. What it makes itself it makes in the copy.
    for path in [*(ROOT / "build/guest").glob("*/*"), *(ROOT / "build/guest").glob("*/packages/*")]:
        if path.name not in ("apt", "packages"):
            link = folder / path.relative_to(ROOT)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def write(file, folder):
    if file.path is None:
        p = subprocess.run(["git", "apply"], cwd=folder, input=file.text, capture_output=True, text=True, timeout=DEADLINE_S,
                           env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)})
        check_eq(p.returncode, 0, f"line {file.line}: the change does not apply: {p.stdout}{p.stderr}")
    else:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).write_text(file.text)


@contextlib.contextmanager
def page(path, folder):
    """Types a page in a folder, in which its files remain."""
    found = parse(path)
    changes = any(isinstance(f, File) and (f.path is None or "/" in f.path) for f in found)
    (copy_tree if changes else link_tree)(folder)
    make = MAKE.format(root=ROOT, words="" if path == ROOT / "README.md" else "GRUB_BOOTS=")
    refresh = bool(os.environ.get("KESTREL_REFRESH"))
    text, left = path.read_text(encoding="utf-8").splitlines(), []
    terminals = {}
    try:
        for item in found:
            if isinstance(item, File):
                write(item, folder)
                continue
            if item.terminal not in terminals:
                terminals[item.terminal] = Terminal(folder, make)
            try:
                out = terminals[item.terminal].type(item)
            except Failed as e:
                raise Failed(f"{path.name}: line {item.line}: {item.text}\n{e}") from None
            wrong = difference(item.output, out.splitlines(), item.exact)
            new = renewed(item.output, out.splitlines(), item.repeats) if refresh and " test" not in item.text else None
            if new is not None:
                text[item.line - 1] = "\n".join([text[item.line - 1], *new])
                text[item.line:item.line + len(item.output)] = [None] * len(item.output)
            elif wrong is not None:
                left.append(f"{path.name}: line {item.line}: {item.text}\n{wrong}\nall that was printed:\n{out}")
                check(refresh, left[0])
        check(not left, "\n".join(left))
        yield found
    finally:
        for terminal in terminals.values():
            terminal.close()
        if refresh:
            path.write_text("".join(line + "\n" for line in text if line is not None), encoding="utf-8")
