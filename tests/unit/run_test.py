#!/usr/bin/python3
"""run_test.py - tests/run takes the items that are asked for, and refuses a name that none has. Prints TAP."""
import re

import export_help as x
from export_help import equal, expect

RUN = x.ROOT / "tests/run"


def listed(*args):
    status, out, err = x.run(RUN, "--list", *args)
    equal((status, err), (0, ""), f"--list {args}")
    return out.split()


def globs_choose_items(_):
    items = listed()
    equal(len(set(items)), len(items), "items that differ")
    equal(listed("unit/*"), [item for item in items if item.startswith("unit/")], "unit/*")
    equal(listed("system/test_boot"), ["x86_64/system/test_boot", "aarch64/system/test_boot"], "an item of each architecture")
    equal(listed("--arch", "x86_64", "kernel/*"), [f"x86_64/kernel/smp{n}" for n in (1, 2, 4, 8)], "--arch x86_64")
    equal(listed("x86_64/system/test_boot:*uefi*", "lint"), ["lint", "x86_64/system/test_boot"], "with a glob over tests")


def glob_without_an_item_is_refused(_):
    for args in (["unit/nothing"], ["lint", "x86_64/system/test_docs", "unit/run_test"], ["--arch", "x86_64", "aarch64/*"]):
        status, out, err = x.run(RUN, "--list", *args)
        wrong = args[1] if len(args) == 3 and args[0] == "lint" else args[-1]
        equal((status, out), (2, ""), f"{args}")
        expect(err == f"tests/run: no item matches {wrong}; --list prints them\n", err)


def failures_keep_the_beginning_of_what_was_found(_):
    """A message that shows only the end of an output hides what went wrong first."""
    sources = [*(x.ROOT / "tests/system").glob("*.py"), x.ROOT / "tests/model/run", x.ROOT / "tests/mutants/run"]
    expect(len(sources) > 30, f"{sources}")
    equal([f"{p.name}: {cut}" for p in sources for cut in re.findall(r".*\[-\d{3,}:\].*", p.read_text())], [], "outputs that are cut")


if __name__ == "__main__":
    x.main([globs_choose_items, glob_without_an_item_is_refused, failures_keep_the_beginning_of_what_was_found])
