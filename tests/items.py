"""items.py - the items of tests/run: what there is to run, which of them are chosen, and which start first."""
import fnmatch
import json
import os
import pathlib
import re
import threading

from part import part

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS, BUILD = ROOT / "tests", ROOT / "build"
ARCHS = ("x86_64", "aarch64")
KERNEL_SMP = (1, 2, 4, 8)
KERNEL_TURNS = {"x86_64": (2, 8), "aarch64": (1, 4)}  # with how many CPUs a port's kernel is tested in a run of everything
ONCE = ("test_cross", "test_docs", "test_embed", "test_labs")  # of tests/system: files that cover all architectures
DEADLINE_S = 1800  # of qemu/deadline.py; it ends what hangs
STRESS_TIMES = 6  # times KESTREL_STRESS_SECONDS, for test_stress
FIGURES = BUILD / "tests.json"  # of the last run of each item on this machine
TIMES = TESTS / "times"  # lines `ITEM SECONDS` of a whole run, for a checkout in which nothing has run
CHECK_S = 2.0  # make check runs lint, one guest, and what on the host takes no longer than this


class Item:
    """A program that prints TAP."""

    def __init__(self, name, *command, deadline_s=DEADLINE_S, arch=None):
        self.name, self.command, self.deadline_s = name, [str(word) for word in command], deadline_s
        self.arch = arch  # None: independent of the architecture
        self.alone = threading.Lock()  # of what runs it
        self.may_be_empty = False  # may it have none of the tests that are wanted?
        self.plain, self.left_out = None, []  # its command over programs without sanitizers; what a run leaves out then
        # Can some of its tests be chosen?
        self.takes_globs = not name.startswith(("unit/", "sanitize/", "restart/")) and not name.endswith("attack")

    def figures_name(self, plain=False):
        """The name of its figures: those over a plain program are others."""
        return self.name + "/plain" * (plain or bool(self.left_out))

    def seconds(self, known, otherwise, plain=False):
        """What it took, of times(); or what is taken for it otherwise."""
        return known.get(self.figures_name(plain), known.get(self.name, otherwise))

    def matches(self, glob):
        return fnmatch.fnmatch(self.name, glob) or (
            self.arch is not None and fnmatch.fnmatch(self.name.removeprefix(self.arch + "/"), glob))


def find_unit():
    """What runs on the host. A program in C runs with sanitizers, which find all that a plain run finds; those with threads also
    with TSan, and those that are of both kinds with restartable records."""
    items, asan = [], BUILD / "host-asan"
    for path in sorted((TESTS / "unit").glob("*_test.c")):
        text = path.read_text(encoding="utf-8")
        kinds = ["host-asan"] + ["host-tsan"] * ("pthread_create" in text) + ["host-restart"] * ("KTR_HOST_RESTART" in text)
        names = {"host-asan": "sanitize/asan/", "host-tsan": "sanitize/tsan/", "host-restart": "restart/"}
        items += [Item(names[kind] + path.stem, BUILD / kind / "unit" / path.stem) for kind in kinds]
    sanitized = [path for name in ("dtrace_hosted", "kdump", "ktrdump", "ktrdump_hostile", "export_*")
                 for path in (TESTS / "unit").glob(f"{name}_test.py")]
    programs = ["env", f"KTRDUMP={asan}/ktrdump", f"KTR_GEN={asan}/unit/ktr_gen", f"KDUMP={asan}/kdump",
                f"DTRACE_HOSTED={asan}/dtrace-hosted"]
    for path in sorted((TESTS / "unit").glob("*_test.*")):
        if path in sanitized:
            items.append(Item(f"sanitize/asan/{path.stem}", *programs, path))
            if "hostile" not in path.stem:
                items[-1].plain = [str(path)]
        elif path.suffix in (".py", ".sh") and os.access(path, os.X_OK):
            items.append(Item(f"unit/{path.stem}", path))
    return items


def find_items(archs):
    items = find_unit()
    items += [Item(name, TESTS / name / "run") for name in ("model", "mutants", "lint")]
    items.append(Item("fuzz", TESTS / "fuzz/run", "--seconds", "1"))
    systems = sorted((TESTS / "system").glob("test_*.py"))
    items += [Item(f"system/{p.stem}", p) for p in systems if p.stem in ONCE and set(archs) == set(ARCHS)]
    stress_s = os.environ.get("KESTREL_STRESS_SECONDS", "")
    whole = ["--set", "kern.test.whole=1"] if os.environ.get("KESTREL_WHOLE") else []
    for arch in archs:
        items += [Item(f"{arch}/kernel/smp{n}", ROOT / "qemu/boot", "--arch", arch, "--firmware", "none", "--kernel",
                       BUILD / arch / "kestrel-test", "--smp", n, "--set", "kern.test=*", *whole, "--timeout", DEADLINE_S - 60, arch=arch)
                  for n in KERNEL_SMP]
        items.append(Item(f"{arch}/attack", TESTS / "attack/run", "--arch", arch, "--minutes", "0", arch=arch))
        for path in systems:
            longer = STRESS_TIMES * int(stress_s) if path.stem == "test_stress" and stress_s.isdigit() else 0
            if path.stem not in ONCE:
                items.append(Item(f"{arch}/system/{path.stem}", path, deadline_s=DEADLINE_S + longer, arch=arch))
    return items


def choose(items, globs):
    """The items that a glob names; of `item:tests`, the tests' glob goes to the program, if none names the whole item."""
    chosen = []
    for item in items:
        tests = [tail for head, _, tail in (glob.partition(":") for glob in globs or ["*"]) if item.matches(head)]
        if not tests or (all(tests) and not item.takes_globs):
            continue
        heads = [head for head, _, _ in (glob.partition(":") for glob in globs or ["*"]) if item.matches(head)]
        item.may_be_empty = all(tests) and not any(item.name.endswith(head) for head in heads)
        if all(tests) and "/kernel/" in item.name:
            item.command = [w if w != "kern.test=*" else f"kern.test={','.join(tests)}" for w in item.command]
        elif all(tests):
            item.command = item.command + tests
        chosen.append(item)
    return chosen


def lacks_userland(item):
    """The first architecture whose guests the item needs, though they have no programs (qemu/fetch-guest); or None."""
    once = ARCHS if item.name.removeprefix("system/") in ONCE and item.name != "system/test_embed" else ()
    return next((arch for arch in ([item.arch] if item.arch else once)
                 if not all((BUILD / "guest" / arch / name).exists() for name in ("busybox", "musl/lib/libc.a"))), None)


def waits_for_soak(item):
    """Is it a test of the kernel that in a run of everything the other port makes? make soak makes it on both."""
    number = re.fullmatch(rf"{item.arch}/kernel/smp(\d+)", item.name)
    return number is not None and int(number[1]) not in KERNEL_TURNS[item.arch] and not os.environ.get("KESTREL_WHOLE")


def spare_sanitizers(items, check):
    """Most scripts run over programs without sanitizers, whose answers are the same: in a run of everything two of
    three, in make check all. A plain program starts many times as fast."""
    kept = [] if check else part([item.name for item in find_unit() if item.plain], 3, "sanitizers")
    for item in items:
        if item.plain and item.name not in kept:
            item.command, item.left_out = item.plain, ["with AddressSanitizer"]


def figures():
    """{figures_name(): {wall_s, cpu_s, guests}} of its last run here."""
    try:
        return json.loads(FIGURES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def times():
    """{figures_name(): CPU seconds} of its last run here, or of the run that TIMES is from."""
    rows = (line.split() for line in TIMES.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    return {name: float(seconds) for name, seconds in rows} | {name: row["cpu_s"] for name, row in figures().items()}


def quick(items):
    """Each part of the project once, in less than a minute (make check). Scripts run over plain programs then."""
    known = times()
    return [item for item in items if item.name == "lint" or item.name.endswith("/test_check") or
            item.name.startswith(("unit/", "sanitize/", "restart/")) and
            item.seconds(known, CHECK_S + 1, bool(item.plain)) <= CHECK_S]


def longest_first(items):
    """So all jobs end at about the same time. What has never run starts first."""
    known = times()
    return sorted(items, key=lambda item: -item.seconds(known, float("inf")))
