#!/usr/bin/python3
"""run_test.py - tests/run takes the items that are asked for, and refuses a name that none has. Prints TAP."""
import json
import os
import random
import re
import subprocess
import sys

import export_help as x
from export_help import equal, expect

sys.path[:0] = [str(x.ROOT / "tests"), str(x.ROOT / "tests/soak")]
import guest  # noqa: E402
import items as suite  # noqa: E402
import part  # noqa: E402

for name in ("KESTREL_WHOLE", "KESTREL_SEED", "KESTREL_TURNS"):  # of the run that runs this
    os.environ.pop(name, None)
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
    status, out, err = x.run(RUN, "--list", "lint:format", "unit/run_test:*", "x86_64/attack:*")
    equal((status, out, err), (2, "", "tests/run: unit/run_test:* x86_64/attack:*: its tests cannot be chosen\n"), "of items that run whole")


def each_glob_over_tests_reaches_the_program(_):
    """All of several; none if the item is named as a whole, too."""
    def chosen(*globs):
        items = suite.choose(suite.find_items(["x86_64"]), globs)
        return [[word for word in item.command[1:] if word.startswith(("kern.test=", "a", "b"))] for item in items]
    equal(chosen("kernel/smp2:a*", "kernel/smp2:b"), [["kern.test=a*,b"]], "two globs over the kernel's tests")
    equal(chosen("kernel/smp2:a*", "kernel/smp2"), [["kern.test=*"]], "a glob, and the whole")
    equal(chosen("model:a", "model:b"), [["a", "b"]], "two globs over the model's checks")
    items = suite.choose(suite.find_items(["x86_64"]), ["x86_64/*:*uefi*", "model:a"])
    found = {item.name: item.may_be_empty for item in items if item.name.endswith(("attack", "model", "boot"))}
    equal(found, {"model": False, "x86_64/system/test_boot": True}, "what runs whole is left out; whether there may be none")


def failures_keep_the_beginning_of_what_was_found(_):
    """A message that shows only the end of an output hides what went wrong first."""
    sources = [*(x.ROOT / "tests/system").glob("*.py"), x.ROOT / "tests/model/run", x.ROOT / "tests/mutants/run"]
    expect(len(sources) > 30, f"{sources}")
    equal([f"{p.name}: {cut}" for p in sources for cut in re.findall(r".*\[-\d{3,}:\].*", p.read_text())], [], "outputs that are cut")


def kernel_is_tested_with_each_number_of_cpus(_):
    """In a run of everything, on some port; with WHOLE on both."""
    waits = [i.name for i in suite.find_items(suite.ARCHS) if suite.waits_for_soak(i)]
    equal(sorted(n for port in suite.KERNEL_TURNS.values() for n in port), sorted(suite.KERNEL_SMP), "numbers of CPUs")
    equal(sorted(waits), ["aarch64/kernel/smp2", "aarch64/kernel/smp8", "x86_64/kernel/smp1", "x86_64/kernel/smp4"], "items that wait for make soak")
    whole = lambda: [i.name for i in suite.find_items(suite.ARCHS) if suite.waits_for_soak(i)]
    equal(with_seed("", whole, KESTREL_WHOLE="1"), [], "with KESTREL_WHOLE")


def check_takes_what_is_short(_):
    items = listed("--check")
    expect({"lint", "x86_64/system/test_check", "aarch64/system/test_check"} < set(items), f"{items}")
    expect(not any("/kernel/" in item or "system/test_boot" in item or item == "fuzz" for item in items), f"{items}")


def check_takes_a_script_by_what_it_takes_over_plain_programs(_):
    item, times = next(i for i in suite.find_items(suite.ARCHS) if i.plain), suite.times
    try:
        for plain in (suite.CHECK_S - 1, suite.CHECK_S + 1):
            suite.times = lambda of=plain: {item.name: suite.CHECK_S * 2 - of, item.figures_name(True): of}
            equal(item in suite.quick([item]), plain < suite.CHECK_S, f"in make check, by {suite.times()}")
    finally:
        suite.times = times
    equal(item.figures_name(True), f"{item.name}/plain", "the name of its figures over plain programs")
    suite.spare_sanitizers([item], True)
    equal(item.figures_name(), f"{item.name}/plain", "and of those of such a run")


# Changes one file after the other, and prints a line of the items that each concerns.
CHANGES = """
import pathlib, sys
sys.path[:0] = ["tests", "qemu"]
import changed
for path in map(pathlib.Path, sys.argv[1:]):
    before = path.read_bytes()
    path.write_bytes(before + b"\\n")
    print(*(item.name for item in changed.concerned(changed.find_items(changed.ARCHS), "HEAD")))
    path.write_bytes(before)
"""


def since_takes_what_a_change_concerns(tmp):
    """In a copy, by one program, which reads the dependency files once; the first also by tests/run."""
    copy = tmp / "copy"
    equal(x.run("git", "clone", "-q", x.ROOT, copy)[0], 0, "git clone")
    (copy / "build").mkdir()
    for name in (x.ROOT / "build").iterdir():
        (copy / "build" / name.name).symlink_to(name)
    run = copy / "tests/run"
    rows = (("tests/system/test_boot.py", "aarch64/system/test_boot", "aarch64/system/test_exit"),
            ("tests/system/console.py", "x86_64/system/test_debugger", "x86_64/system/test_exit"),
            ("tests/system/harness.py", "x86_64/attack", "fuzz"),
            ("doc/labs.md", "system/test_labs", "fuzz"),
            ("doc/running.md", "system/test_docs", "aarch64/system/test_exit"),
            ("doc/reports.md", "sanitize/asan/export_report_test", "fuzz"),
            ("ktr/README.md", "sanitize/asan/export_vocabulary_test", "fuzz"),
            ("arch/aarch64/insn.c", "unit/insn_test", "x86_64/kernel/smp1"),
            ("arch/x86_64/mmu.c", "system/test_cross", "aarch64/kernel/smp1"),
            ("kernel/proc/vdso/vdso.c", "system/test_cross", "fuzz"),
            ("tests/unit/ktr_gen.c", "fuzz", None),
            ("tests/linux/ptys.c", "aarch64/system/test_linux", "fuzz"),
            ("tests/linux/x86_64/registers.c", "aarch64/system/test_linux", "fuzz"),
            ("arch/aarch64/mmu.c", "aarch64/kernel/smp1", "x86_64/kernel/smp1"),
            ("tests/unit/ktr_ring_test.c", "sanitize/asan/ktr_ring_test", "sanitize/asan/ktr_wire_test"),
            ("tests/kernel/fs_test.c", "x86_64/kernel/smp4", "x86_64/system/test_exit"),
            ("Makefile", "fuzz", None))
    words = ["env", "-C", copy, sys.executable, "-B", "-c", CHANGES, *(path for path, _, _ in rows)]
    status, out, err = x.run(*words)
    equal((status, err, len(out.splitlines())), (0, "", len(rows)), "items of changes")
    for (path, has, lacks), line in zip(rows, out.splitlines()):
        expect(has in line.split() and lacks not in line.split(), f"{path}: expected {has}, and not {lacks}: {line}")
    with open(copy / rows[0][0], "a", encoding="utf-8") as file:
        file.write("\n")
    equal(x.run(run, "--list", "--since", "HEAD"), (0, "\n".join(out.splitlines()[0].split()) + "\n", ""), rows[0][0])
    equal(x.run("git", "-C", copy, "checkout", "-q", rows[0][0])[0], 0, "git checkout")
    equal(x.run(run, "--list", "--since", "HEAD")[:2], (0, "\n"), "no change")
    status, out, err = x.run(run, "--list", "--since", "nosuch")
    equal((status, out), (2, ""), "a commit that is none")
    expect(err.startswith("tests/run: --since nosuch: fatal: "), err)


def a_soak_counts_what_is_in_its_files(tmp):
    """The shell's loop, with the host's ktrdump, twice."""
    x.gen(tmp, "data 254").rename(tmp / "stream")
    rows = x.ktrdump("--format", "jsonl", "-i", tmp / "stream")[1].splitlines()
    there = sum("gap" not in row for row in map(json.loads, rows))
    text = guest.files(random.Random(1)).replace("/tmp/", f"{tmp}/")
    fakes = f"sysctl() {{ cp {tmp}/stream {tmp}/soak.ktr; }}; sleep() {{ :; }}; ktrdump() {{ {x.KTRDUMP} \"$@\"; }}; n=0 sum=0\n"
    equal(x.run("sh", "-c", f"{fakes}{text}{text}echo $n $sum"), (0, f"2 {2 * there}\n", ""), "files and events")
    expect(there > len(x.events_of(map(json.loads, rows))) > 0, f"{there} events and parts")


def suite_of(tmp, **programs):
    """A program that is tests/run with other items: scripts of sh."""
    (tmp / "suite.py").write_text(f"""
import sys
sys.path[:0] = [{str(x.ROOT / "tests")!r}, {str(x.ROOT / "qemu")!r}]
import importlib.machinery, importlib.util, pathlib
import items
loader = importlib.machinery.SourceFileLoader("runner", {str(RUN)!r})
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
loader.exec_module(runner)
items.BUILD = pathlib.Path({str(tmp)!r})
items.FIGURES = items.BUILD / "tests.json"
suite = [items.Item(name, "sh", "-c", text, deadline_s=60) for name, text in {programs!r}.items()]
items.find_items = lambda archs: suite
sys.exit(runner.main(sys.argv[1:]))
""")
    return tmp / "suite.py"


def an_item_does_not_run_beside_itself(tmp):
    program = suite_of(tmp, alone=f"echo 1..1; mkdir {tmp}/busy || exit; i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; rmdir {tmp}/busy; echo ok 1 - it")
    status, out, err = x.run("/usr/bin/python3", program, "--jobs", "2", "--repeat", "2")
    equal((status, err), (0, ""), f"status and errors; {out}")


def a_run_that_is_interrupted_leaves_no_files(tmp):
    os.mkfifo(tmp / "told")
    (tmp / "tmp").mkdir()
    program = suite_of(tmp, waits=f"echo > $TMPDIR/file; echo $TMPDIR > {tmp}/told; read line < {tmp}/told")
    env = {**os.environ, "TMPDIR": str(tmp / "tmp")}
    with subprocess.Popen(["/usr/bin/python3", program], env=env, stdout=subprocess.DEVNULL) as p:
        home = (tmp / "told").read_text().strip()
        there = os.listdir(tmp / "tmp")
        p.terminate()
    equal((p.returncode, [f"{tmp}/tmp/{name}" for name in there]), (130, [home]), "status, and files before")
    equal(os.listdir(tmp / "tmp"), [], "files after it")


def an_item_is_a_line_and_failures_say_what_they_found(tmp):
    """Of programs of which one is killed, one has a test that fails, one prints no plan, and one plans no test."""
    program = suite_of(tmp, killed="echo 1..1; echo ok 1 - fine; kill -INT $$; exit 0",
                       bad="echo 1..2; echo '# found 1'; echo not ok 1 - wrong; echo ok 2 - right; exit 1", planless="echo text; umask; exit 3", none="echo 1..0")
    status, out, err = x.run("env", "-i", f"PATH={os.environ['PATH']}", "sh", "-c", f"umask 077; trap '' INT; exec /usr/bin/python3 {program} --jobs 1")
    equal((status, err), (1, ""), f"status and errors; {out}")
    lines = out.splitlines()
    expect(any(re.fullmatch(r"not ok \d - bad: 2 tests, 1 failed, [\d.]+ s, CPU [\d.]+ s", line) for line in lines), out)
    expect("# found 1" in lines and "# failed: bad: wrong" in lines, f"what was found, and the list at the end: {out}")
    expect("# 0022" in lines, f"the umask is the suite's, not the caller's: {out}")
    expect(any("planless: the run as a whole: printed no plan; exit status 3, though no test failed" in line for line in lines), out)
    expect(any("killed: the run as a whole: exit status -2" in line for line in lines), f"SIGINT is not ignored, though the caller ignores it: {out}")
    expect(any("none: the run as a whole: ran no test" in line for line in lines), out)
    equal(lines[-1], "2 passed, 4 failed, 0 skipped", "the last line")
    expect(any(re.fullmatch(r"# +[\d.]+ +[\d.]+ +0  all of 4 items", line) for line in lines), f"the table: {out}")
    expect("bad: right" in (tmp / "tests.tap").read_text() and '"cpu_s"' in (tmp / "tests.json").read_text(), "build/tests.tap and tests.json")


def with_seed(text, call, **more):
    """What call() returns with KESTREL_SEED=text."""
    before = dict(os.environ)
    os.environ |= {"KESTREL_SEED": text} | more
    try:
        return call()
    finally:
        os.environ.clear()
        os.environ.update(before)


def a_seed_chooses_a_part(_):
    """The same seed always the same; all parts together have each case."""
    cases = [f"case {n}" for n in range(23)]
    parts = [with_seed(f"{n:012x}", lambda: part.part(cases, 3, "numbers")) for n in range(40)]
    equal({len(p) for p in parts}, {8}, "cases of a part")
    equal(sorted({case for p in parts for case in p}), sorted(cases), "cases of all parts")
    expect(len({tuple(p) for p in parts}) > 35, "many parts are the same")
    expect(all(p == sorted(p, key=cases.index) for p in parts), "the order of the cases")
    equal(with_seed(f"{7:012x}", lambda: part.part(cases, 3, "numbers")), parts[7], "a part again")
    expect(with_seed(f"{7:012x}", lambda: part.part(cases, 3, "others")) != parts[7], "parts of two lists are the same")
    equal(with_seed("", lambda: part.part(cases, 3, "numbers")), cases, "without a seed")
    equal(with_seed("7", lambda: part.part(cases, 3, "numbers"), KESTREL_WHOLE="1"), cases, "in make soak")
    head = x.run("git", "-C", x.ROOT, "rev-parse", "HEAD")[1].strip()
    equal(with_seed("", lambda: part.seed_of(x.ROOT)), head[:12] or "none", "the seed of a commit")


def each_script_runs_with_sanitizers_now_and_then(_):
    def left_out(check):
        items = suite.find_items(suite.ARCHS)
        suite.spare_sanitizers(items, check)
        spared = {i.name for i in items if i.left_out}
        equal(spared, {i.name for i in items if i.command == i.plain}, "scripts over plain programs")
        return spared
    scripts = {i.name for i in suite.find_items(suite.ARCHS) if i.plain}
    expect(len(scripts) > 12 and all(name.startswith("sanitize/asan/") for name in scripts), f"{scripts}")
    parts = [with_seed(str(n), lambda: left_out(False)) for n in range(40)]
    equal({len(p) for p in parts}, {len(scripts) * 2 // 3}, "scripts of a part without sanitizers")
    equal(set.intersection(*parts), set(), "scripts that never run with sanitizers")
    equal(with_seed("1", lambda: left_out(True)), scripts, "scripts without sanitizers in make check")
    for item in [i for i in suite.find_items(suite.ARCHS) if i.plain]:
        with_seed("1", lambda of=item: suite.spare_sanitizers([of], False))
        equal(bool(item.left_out), item.name in parts[1], f"whether {item.name} alone, with the seed, is plain")
    equal(with_seed("1", lambda: left_out(False), KESTREL_WHOLE="1"), set(), "and in make soak")


def a_run_of_everything_says_its_seed(tmp):
    """Only such a run has one, and with it the part that failed can be made again."""
    program = suite_of(tmp, one="echo 1..1; echo not ok 1 - $KESTREL_SEED; exit 1", two="echo 1..1; echo ok 1 - fine")
    for before, words, expected in (("", (), "[0-9a-f]{12}|none"), ("abc", (), "abc"), ("", ("one",), None)):
        status, out, err = x.run("env", f"KESTREL_SEED={before}", "/usr/bin/python3", program, *words)
        equal((status, err), (1, ""), f"status and errors; {out}")
        said = re.findall(r"^# (?:seed |the same part again: KESTREL_SEED=|failed: one: \b)(.*)$", out, re.M)
        equal(len(said), 3 if expected else 0, f"seeds said, {said}, in {out}")
        expect(all(re.fullmatch(expected, text) for text in said), f"{words}: {said}")


if __name__ == "__main__":
    x.main([a_seed_chooses_a_part, each_script_runs_with_sanitizers_now_and_then, a_run_of_everything_says_its_seed,
            a_soak_counts_what_is_in_its_files, globs_choose_items, glob_without_an_item_is_refused,
            kernel_is_tested_with_each_number_of_cpus, check_takes_what_is_short,
            check_takes_a_script_by_what_it_takes_over_plain_programs, since_takes_what_a_change_concerns,
            each_glob_over_tests_reaches_the_program, an_item_does_not_run_beside_itself, a_run_that_is_interrupted_leaves_no_files, an_item_is_a_line_and_failures_say_what_they_found, failures_keep_the_beginning_of_what_was_found])
