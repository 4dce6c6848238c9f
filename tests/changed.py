"""changed.py - the items that a change of the sources may concern (tests/run --since).

What a compiled file was made from stands in the dependency files of the last build; what a test file imports, in its
text. A file of which neither is known concerns all items, and so does one of a test that is no item.
"""
import fnmatch
import functools
import pathlib
import re
import subprocess

from items import ARCHS, BUILD, ROOT, TESTS, find_items

ALWAYS = ("lint", "unit/run_test")  # they look at files of all kinds
# Files that nothing is compiled from: (path, items). The first that matches holds.
BY_PATH = (
    ("doc/*.svg", ()),
    ("LICENSE", ("system/test_embed",)),
    ("tests/bench/*", ("*/test_budgets", "system/test_embed")),
    ("tests/attack/*", ("*/attack",)),
    ("tests/system/embed/*", ("system/test_embed",)),
    ("tests/system/dtrace.cases", ("*/test_dtrace", "*/test_dtrace_hard", "sanitize/asan/dtrace*")),
    ("tests/system/never_called", ("*/test_fbt_all",)),
    ("tests/linux/busybox.sh", ("*/test_busybox", "*/test_linux")),
    *((f"tests/{name}", ()) for name in ("run", "items.py", "changed.py", "times")),
    *((f"tests/{name}/*", (name,)) for name in ("model", "mutants", "lint")),
    ("tests/fuzz/[rs]*", ("fuzz",)),
    *((f"tests/{name}/*", ()) for name in ("viewers", "soak", "bare", "xv6")),
)
# Objects below build/, by their folder: the items that run, or look at, what is linked from them.
BY_OBJECT = (
    (r"(x86_64|aarch64)/obj/tests/kernel/", r"\1/kernel/*"),
    (r"(x86_64|aarch64)/(obj/|user/|vdso)", r"\1/* system/* unit/*"),
    (r"(x86_64|aarch64)/linux/", r"\1/* system/* unit/* */test_linux */test_disk"),  # they run this machine's, too
    (r"host-plain/", r"mutants"),
    (r"host-asan/obj/tests/unit/(\w+)\.c", r"sanitize/*/\1"),
    (r"host(-\w+)?/obj/tests/unit/(\w+)\.c", r"*/\2"),
    (r"fuzz/", r"fuzz"),
    (r"host/unit/insn_", r"unit/insn_test"),
    (r"host(-\w+)?/obj/(ktr|userland|kernel)/|host/mk", r"*"),
)


class Unknown(Exception):
    """What has changed cannot be told."""


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unknown(done.stderr.strip().splitlines()[0] if done.stderr else "git failed")
    return done.stdout.splitlines()


@functools.cache
def imports(path):
    """A file and the Python files of tests/ that it imports, and those that they import."""
    seen, new = set(), {path}
    while new:
        seen |= new
        names = {name for p in new for name in re.findall(r"^\s*(?:import|from) (\w+)", p.read_text(encoding="utf-8"), re.M)}
        new = {p for name in names for p in TESTS.glob(f"*/{name}.py")} - seen
    return seen


def items_whose(property_of):
    """The names of the items of which a script, or what it imports, has a property."""
    return [item.name for item in find_items(ARCHS) for word in item.command
            if word.startswith(f"{TESTS}/") and any(map(property_of, imports(pathlib.Path(word))))]


@functools.cache
def objects():
    """{source: objects below build/}."""
    made = {}
    for path in (path for folder in BUILD.iterdir() for path in folder.resolve().glob("**/*.[cS].d")):
        target, _, sources = re.split(r"(?<!\\)\n", path.read_text(encoding="utf-8"))[0].partition(":")
        for source in re.findall(r"[^\s\\]+", sources):
            made.setdefault(source, set()).add(target.removeprefix("build/"))
    return made


def globs(path, made):
    """Globs of the items that a changed file concerns; None: it may be any."""
    for pattern, items in BY_PATH:
        if fnmatch.fnmatch(path, pattern):
            return list(items)
    if path.endswith(".md"):  # which test reads which page is in no list
        return items_whose(lambda file: re.search(r"\.md\b", file.read_text(encoding="utf-8")))
    if path.endswith(".py") and path.startswith(("tests/system/", "tests/unit/")):
        return items_whose(lambda file: file == ROOT / path) or None
    if path not in made:
        return None
    found = set()
    if path.startswith("tests/kernel/"):  # tests that boot this kernel, too
        found.update(items_whose(lambda file: re.search(r"\bkestrel-test\b(?!-)", file.read_text(encoding="utf-8"))))
    for target in made[path]:
        for pattern, items in BY_OBJECT:
            if m := re.match(pattern, target):
                found.update(m.expand(items).split())
                break
        else:
            return None
    return sorted(found)


def concerned(items, commit):
    """Of these items, those that a change since the commit, committed or not, may concern."""
    paths = git("diff", "--name-only", commit, "--") + git("ls-files", "--others", "--exclude-standard")
    made, wanted, names = objects(), set(), [item.name for item in find_items(ARCHS)]
    for path in paths:
        found = globs(path, made)
        if found is None or not all(fnmatch.filter(names, glob) for glob in found):
            return items
        wanted.update(found, ALWAYS)
    return [item for item in items if any(fnmatch.fnmatch(item.name, glob) for glob in wanted)]
