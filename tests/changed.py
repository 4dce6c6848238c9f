"""changed.py - the items that a change of the sources may concern (tests/run --since).

What a compiled file was made from stands in the dependency files of the last build; what a test file imports, in its
text. A file of which neither is known concerns all items.
"""
import fnmatch
import re
import subprocess

from items import BUILD, ROOT, TESTS

# Files that nothing is compiled from: (path, items). The first that matches holds.
BY_PATH = (
    ("doc/labs.md", ("system/test_labs", "system/test_docs", "lint")),
    ("*.md", ("system/test_docs", "system/test_embed", "lint")),
    ("doc/*.svg", ()),
    ("LICENSE", ("system/test_embed",)),
    ("tests/bench/*", ("*/test_budgets", "lint")),
    ("tests/attack/*", ("*/attack", "lint")),
    ("tests/system/embed/*", ("system/test_embed", "lint")),
    ("tests/system/dtrace.cases", ("*/test_dtrace", "*/test_dtrace_hard", "unit/dtrace*", "sanitize/asan/dtrace*")),
    ("tests/system/never_called", ("*/test_fbt_all",)),
    ("tests/linux/busybox.sh", ("*/test_busybox", "*/test_linux")),
    *((f"tests/{name}", ("unit/run_test", "lint")) for name in ("run", "items.py", "changed.py", "times")),
    *((f"tests/{name}/*", (name, "lint")) for name in ("model", "mutants", "lint")),
    ("tests/fuzz/[rs]*", ("fuzz", "lint")),
    *((f"tests/{name}/*", ("lint",)) for name in ("viewers", "soak", "bare", "xv6")),
)
# Objects below build/, by their folder: the items that run what is linked from them.
BY_OBJECT = (
    (r"(x86_64|aarch64)/obj/tests/kernel/", r"\1/kernel/*"),
    (r"(x86_64|aarch64)/(obj|user)/", r"\1/*"),
    (r"host-asan/obj/tests/unit/(\w+)\.c", r"sanitize/*/\1"),
    (r"host(-\w+)?/obj/tests/unit/(\w+)\.c", r"*/\2"),
    (r"fuzz/", r"fuzz"),
    (r"host(-\w+)?/obj/(ktr|userland|kernel)/", r"*"),
)


class Unknown(Exception):
    """What has changed cannot be told."""


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unknown(done.stderr.strip().splitlines()[0] if done.stderr else "git failed")
    return done.stdout.splitlines()


def imports(path, seen):
    """The Python files of tests/ that a file imports, and those that they import."""
    for name in re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.M):
        for found in TESTS.glob(f"*/{name}.py"):
            if found not in seen:
                seen.add(found)
                imports(found, seen)
    return seen


def python_items(path):
    """Globs of the items whose test files are this file, or import it."""
    file = ROOT / path
    users = [p for folder in ("system", "unit") for p in (TESTS / folder).glob("*test*.py") if p == file or file in imports(p, set())]
    return [f"*{p.stem}" for p in users] + ["lint"] if users else None


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
    if path.endswith(".py") and path.startswith(("tests/system/", "tests/unit/")):
        return python_items(path)
    if path not in made:
        return None
    found = {"lint"}
    for target in made[path]:
        for pattern, items in BY_OBJECT:
            if m := re.match(pattern, target):
                found.add(m.expand(items))
                break
        else:
            return None
    return sorted(found)


def concerned(items, commit):
    """Of these items, those that a change since the commit, committed or not, may concern."""
    paths = git("diff", "--name-only", commit, "--") + git("ls-files", "--others", "--exclude-standard")
    made, wanted = objects(), set()
    for path in paths:
        found = globs(path, made)
        if found is None:
            return items
        wanted |= set(found)
    return [item for item in items if any(fnmatch.fnmatch(item.name, glob) for glob in wanted)]
