#!/usr/bin/python3
"""test_diff.py - `ktrdump diff` of runs: nothing has changed between two equal ones, and what was changed comes first."""
import re

from harness import boot, check, check_eq, json_lines, ktrdump, main, portable_test


def traced(script, **options):
    return boot(script, trace=True, mask="SCHED,SYSC,PROC,TRAP,VM,LOCK", options=["--icount"], **options).expect().trace


SCRIPT = "ktr on 'fbt::vfs_*:' > /dev/null\nload fork -n 3\nload syscall -n 100\nls /bin > /dev/null\nls {} > /dev/null\n"


@portable_test("two equal runs that count instructions differ in nothing, and of a run with a change that change comes first")
def runs():
    a, b, c = traced(SCRIPT.format("/")), traced(SCRIPT.format("/")), traced(SCRIPT.format("/").replace("100", "120"))
    status, out, err = ktrdump("diff", a, b, "--fail-above", "0", "--format", "jsonl")
    check_eq((status, err), (0, ""), "status and messages for two equal runs")
    rows = json_lines(out)[2:]
    check_eq([r for r in rows if (r["change"], r["percent"]) != ("none", 0) or any(v[0] != v[1] for v in r.values() if isinstance(v, list))], [], "rows that differ")
    tables = {(r["report"], r["table"]) for r in rows}
    check(tables >= {("thread", "threads"), ("syscall", "calls"), ("fault", "faults"), ("function", "functions")}, f"tables: {tables}")
    status, out, err = ktrdump("diff", a, c, "--fail-above", "5%", "--format", "jsonl")
    check_eq(status, 3, f"status when a call is made more often; {err}")
    first = {}
    for r in json_lines(out)[2:]:
        first.setdefault((r["report"], r["table"]), r)
    call, caller, thread = (first[table] for table in (("syscall", "calls"), ("syscall", "callers"), ("thread", "threads")))
    check_eq((call["call"], call["count"][1] - call["count"][0]), ("getppid", 20), "the call that changed most")
    check_eq((caller["call"], caller["thread"], caller["count"][1] - caller["count"][0]), ("getppid", "load", 20), "and by thread")
    check_eq((thread["thread"], thread["running_ns"][0] < thread["running_ns"][1]), ("load", True), "the thread that changed most")
    status, _, _ = ktrdump("diff", "syscall", a, c, "--grep", "clone", "--fail-above", "5%")
    check_eq(status, 0, "status of a call that has not changed")


@portable_test("a diff is made in the guest, too, also of the log before a reset and now")
def guest():
    out = boot("ktr on SYSC\nls / > /dev/null\nktrdump --format stream -o /tmp/a\nls / /bin > /dev/null\nktrdump --format stream -o /tmp/b\n"
               "ktrdump diff syscall /tmp/a /tmp/a --fail-above 0; echo same $?\nktrdump diff syscall --grep ls /tmp/a /tmp/b --format jsonl; echo more $?\n"
               "ktrdump diff /tmp/a; echo one $?\nktrdump diff -M /tmp/a -M /tmp/b; echo dump $?\n").expect().out.replace("\r", "")
    same, more, one, dump = re.split(r"^(?:same 0|more 0|one 2|dump 2)\n", out, flags=re.M)[:4]
    check(re.search(r"^syscall: .*: 0 of \d+ rows changed \(known A", same, re.M), same)
    check('"change":"new"' in more and '"thread":"ls","order":1' in more, more)
    check("found 1 input, expected two" in one, one)
    check("no kernel image or core is needed" in dump, dump)


if __name__ == "__main__":
    main()
