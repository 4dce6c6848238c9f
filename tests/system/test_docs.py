#!/usr/bin/python3
"""test_docs.py - types each listing of README.md, doc/ and ktr/README.md on the machine that it names, and compares
the output (listing.py). Each page is one test."""
import os
import platform
import re
import subprocess
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from harness import ROOT, Failed, Skipped, check, check_eq, main, need_package, scratch_file, test  # noqa: E402
from listing import difference, page, parse  # noqa: E402

LABS = ROOT / "doc" / "labs.md"  # for test_labs.py
PAGES = [ROOT / "README.md", ROOT / "ktr" / "README.md", *sorted((ROOT / "doc").glob("*.md"))]
README_WORDS = 1000


def host_header(name):
    """A header of Linux, with all that it defines, as the compiler of this machine finds it."""
    command = ["gcc", "-E", "-dM", "-m64", "-include", name, "-x", "c", "/dev/null"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def typed(path):
    folder = scratch_file("")
    folder.mkdir()
    for words in re.findall(r'PROGRAMS="([^"]*)"', path.read_text(encoding="utf-8")):
        for package in (word for word in words.split() if "/" not in word):
            need_package(package, "x86_64")
    with page(path, folder):
        pass


for _path in PAGES:
    if _path != LABS and any(True for _ in parse(_path)):
        test(f"{_path.relative_to(ROOT)}: what each listing shows is what happens")(lambda path=_path: typed(path))


# Numbers of x86_64 for which Linux 6.1 itself has no call.
NUMBERS_ONLY = {"_sysctl", "afs_syscall", "create_module", "epoll_ctl_old", "epoll_wait_old", "get_kernel_syms",
                "get_thread_area", "getpmsg", "lookup_dcookie", "nfsservctl", "putpmsg", "query_module", "security",
                "set_thread_area", "tuxcall", "vserver"}


LAST_NUMBER = 450  # of Linux 6.1: later headers have more


def constant(name, path):
    found = re.search(rf"^#define {name} +(\d+)", (ROOT / path).read_text(encoding="utf-8"), re.M)
    check(found is not None, f"{path} has no {name}")
    return int(found[1])


@test("doc/missing.md names the calls of Linux that the table lacks, and no others; its limits are the sources'")
def missing():
    text = (ROOT / "doc" / "missing.md").read_text(encoding="utf-8")
    calls = re.search(r"^## Calls\n.*?^(- .*?)\n\n", text, re.M | re.S)
    check(calls is not None, "found no bullets of calls")
    named = set(re.findall(r"`(\w+)`", calls[1]))
    table = (ROOT / "kernel/abi/syscalls.def").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\w+\((?:BOTH\(\d+, \d+\)|\d+), (\w+),", table, re.M))
    if platform.machine() != "x86_64":
        raise Skipped("the host's headers have no numbers of x86_64")
    numbers = re.findall(r"#define __NR_(\w+) (\d+)", host_header("asm/unistd_64.h"))
    linux = {name for name, number in numbers if int(number) <= LAST_NUMBER} - NUMBERS_ONLY
    check_eq(sorted(named & rows), [], "calls that are there, though the page says that they are not")
    check_eq(sorted(linux - rows - named), [], "calls that are not there, and not on the page")
    for what, found in (("characters of a path", f"{constant('PATH_MAX', 'kernel/abi/fcntl.h') - 1:,}"),
                        ("supplementary groups", f"{constant('GROUPS_MAX', 'kernel/proc/proc.h'):,}"),
                        ("timers of a process", f"{constant('TIMERS_MAX', 'kernel/proc/posix_timers.c'):,}")):
        row = re.search(rf"^\| {what} \| ([^|]*) \|", text, re.M)
        check_eq(row and row[1], found, what)


def written(text):
    path = scratch_file(".md")
    path.write_text(text)
    return path


@test("a wrong listing is found: a line more or less, another word, 0 for a number, another prompt")
def found_out():
    shown = ["recorded 12 at 0x1f", "...", "done: 3 of 3"]
    others = ["recorded 7 at 0xffe0", "a", "b", "done: 1 of 1"]
    check_eq(difference(shown, others), None, "what differs in numbers only")
    check(difference(shown, others, exact=True) is not None, "exact: another count is taken for the same")
    check_eq(difference(["3 at 0x1f, 5 ms, 0.25"], ["3 at 0xff, 6 ms, 1.5"], exact=True), None, "exact: times and addresses differ")
    for wrong in (["recorded 12 at 0x1f", "done: 3 of 3", "more"], ["recorded 12 at 0x1f"], ["recorded 12 at 0x1f", "done: 3 in 3"],
                  ["recorded 0 at 0x1f", "done: 3 of 3"]):
        check(difference(shown, wrong) is not None, f"taken for the same: {wrong}")
    typed(written("```console\n$ echo a; echo 12\na\n12\n```\n"))
    typed(written("```console\n$ printf 'a\\n\\rslow: 1 MB\\r%40s\\rb\\n' ''\na\nb\n```\n"))
    for text, why in (("$ echo a\nb", "the page has"), ("$ echo a; echo b\na", "more is printed"), ("$ echo 12\n13", "the page has"),
                      ("kestrel# echo a\na", "the prompt in this terminal"), ("$ echo a\na\nkestrel# ls", "the command has ended")):
        try:
            typed(written(f"```console\n{text}\n```\n"))
        except Failed as e:
            check(why in str(e), f"{text}: found {e}, expected {why}")
        else:
            raise Failed(f"taken for true: {text}")


@test("a refresh renews the numbers of lines that differ, and what leaves nothing out; words beside `...` are an error")
def refreshed():
    os.environ["KESTREL_REFRESH"] = "1"
    try:
        page_of = "```console\n$ qemu/boot() {{ :; }}; qemu/boot {}; printf '%s\\n' 'a 3 0.5' 'b 3 0x1f of 7' 'c 1'\n{}\n```\nText, a 1.\n"
        for option, before, now in (
                ("--icount", "a 3 0.4\n...\n\nc 1", "a 3 0.5\n...\n\nc 1"), ("--smp 1", "a 3 0.4\n...\nc 1", "a 3 0.4\n...\nc 1"),
                ("--smp 1", "a 2 0.4\n...\nc 2", "a 3 0.5\n...\nc 1"),
                ("--smp 1", "a 3 0.4\n...\nc 2", "a 3 0.5\n...\nc 1"), ("--icount", "a 3 0.4\nb ... of 6\nc 1", "a 3 0.5\nb ... of 7\nc 1"),
                ("--icount", "d 3 0.4", "a 3 0.5\nb 3 0x1f of 7\nc 1")):
            path = written(page_of.format(option, before))
            typed(path)
            check_eq(path.read_text(), page_of.format(option, now), f"the page with {option}")
        page_of = "```console\n$ qemu/boot() {{ :; }}; qemu/boot {}; echo 'f at ffffffff80187842, 0x1f'\n{}\n```\n"
        for option, before, now in (
                ("--smp 1", "f at ffffffff80187000, 0x20", "f at ffffffff80187842, 0x1f"),
                ("--smp 1", "f at ffffffff80187842, 0x20", "f at ffffffff80187842, 0x20"),
                ("--record r", "f at ffffffff80187842, 0x20", "f at ffffffff80187842, 0x1f"),
                ("--replay r", "f at ffffffff80187842, 0x20", "f at ffffffff80187842, 0x1f")):
            path = written(page_of.format(option, before))
            typed(path)
            check_eq(path.read_text(), page_of.format(option, now), f"the page with {option}")
        path = written(page_of.format("--icount", "d 3 0.4\n..."))
        try:
            typed(path)
        except Failed as e:
            check("the page has" in str(e), f"found {e}")
        else:
            raise Failed("other words beside ... were taken")
    finally:
        del os.environ["KESTREL_REFRESH"]


@test("a prompt outside of a listing is an error, and so is a listing that is skipped without need")
def outside():
    for text in ("```\n$ make\n```\n", "    $ make\n", "```sh\nkestrel# ps\n```\n", "```console skip=slow\n$ make\n```\n",
                 "```console\nps\n```\n", "```console\n```\n"):
        try:
            parse(written(text))
        except Failed:
            continue
        raise Failed(f"taken for good: {text!r}")


@test("README.md has fewer than 1,000 words, and the pages link to what exists")
def links():
    words = len((ROOT / "README.md").read_text(encoding="utf-8").split())
    check(words < README_WORDS, f"README.md: {words} words, expected fewer than {README_WORDS}")
    for path in PAGES:
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target:
                check((path.parent / target).exists(), f"{path.relative_to(ROOT)}: link to {target}, which does not exist")


@test("each page of doc/ is linked from README.md or from another page")
def reached():
    text = "\n".join(p.read_text(encoding="utf-8") for p in PAGES)
    for path in (ROOT / "doc").glob("*.md"):
        check(path.name in re.findall(r"\]\((?:doc/|\.\./doc/)?([\w-]+\.md)", text), f"doc/{path.name}: no page links to it")


@test("doc/map.md has a line for each file of ftrace, of the compiler of D and of ktrdump; and each table that it names is there")
def mapped():
    text = (ROOT / "doc" / "map.md").read_text(encoding="utf-8")
    folders = [ROOT / name for name in re.findall(r"^In `(.*)/`:$", text, re.M)]
    files = {f for folder in folders for f in folder.iterdir() if f.suffix in (".c", ".h")}
    lines = [target for line in re.findall(r"^- (.*?): ", text, re.M) for target in re.findall(r"\]\(\.\./(.*?)\)", line)]
    check_eq(sorted(lines), sorted(str(f.relative_to(ROOT)) for f in files), "files with a line")
    for part in text.split("\n## ")[1:]:
        root = ROOT / re.search(r"^In `(.*)/`:$", part, re.M)[1]
        check_eq({f.parent for f in root.glob("**/*.c")} - set(folders), set(), "folders of sources that are not listed")
        for row in re.findall(r"^\| .* \| (.*) \|$", part, re.M):
            sources = "".join((root / name).read_text() for name in re.findall(r"`([\w/]+\.c)`", row))
            for table in re.findall(r"`(\w+\[\])`", row):
                check(f" {table} = {{" in sources, f"{table} is in no file of the row: {row}")


if __name__ == "__main__":
    main()
