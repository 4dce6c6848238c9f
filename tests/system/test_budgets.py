#!/usr/bin/python3
"""test_budgets.py - the cost of the log in instructions is within its budgets (tests/bench/budgets.json)."""
import functools
import sys

from harness import ARCH, ROOT, check, main, test

sys.path.insert(0, str(ROOT / "tests" / "bench"))
import instructions  # noqa: E402
from rows import BUDGETS  # noqa: E402


@functools.cache
def rows():
    return {r.name: r for r in instructions.measure(ARCH)}


def within(name):
    row = rows()[name]
    check(row.good, f"found {row.value_text}, expected {row.budget_text}: {row.how}")


for row_name, budgets in BUDGETS.items():
    if ARCH in budgets and row_name in instructions.HOW:
        test(f"{row_name} takes no more than {budgets[ARCH]} instructions")(lambda row_name=row_name: within(row_name))

if __name__ == "__main__":
    main()
