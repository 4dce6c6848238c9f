#!/usr/bin/python3
"""test_export.py - real traces in other tools' formats: what their readers see is what jsonl says, event by event.

In tests/unit/export_NAME_test.py, check(trace, folder) checks what a format's readers must see. There it gets small
streams. Here it gets those of guests: every workload of `load`, complete, with losses, and cut; of one port with 4
CPUs, of the other with 1, and by make soak of both with 1 and 4.
"""
import functools
import importlib
import pathlib
import sys
import tempfile

import tracecheck as tc
from harness import ARCH, BUILD, ROOT, boot, check, main, scratch_file, portable_test as test, times

UNIT = ROOT / "tests/unit"
sys.path.insert(0, str(UNIT))
MODULES = [importlib.import_module(p.stem) for p in sorted(UNIT.glob("export_*_test.py"))]
FORMATS = [module for module in MODULES if hasattr(module, "check")]  # export_name_test.py is of all formats
assert FORMATS, f"{UNIT}: no export_*_test.py with a check()"
WORKLOADS = ("switch -n 10", "lock -n 10", "fork -n 2", "pipe -n 10", "fault -n 10", "syscall -n 10", "malloc -n 20",
             "mix -n 1")
THREADS = ["--file", f"/bin/linux_test={BUILD}/linux_test"]
MASK = "SCHED,INTR,SYSC,PROC,TRAP,CALLOUT,SIG,LOCK,VM"
# Rings that hold everything, with functions of the kernel, their entries alone, or without, and rings that the last
# workload overwrites ten times.
RINGS = {"whole": 65536, "functions": 131072, "entries": 131072, "lossy": 64}
CPUS = {"x86_64": (4,), "aarch64": (1,)}
LONG = "syscall -n 400"
FUNCTIONS = "fbt:fs::,fbt:sched::,fbt:proc::"
CALLING = ("pipe -n 2", "fork -n 1", "syscall -n 5")


@functools.cache
def traces(smp, ring):
    """A guest's two streams: one with every workload, one with a single long one."""
    functions = ring in ("functions", "entries")
    script = f"sysctl debug.ktr.entries={RINGS[ring]}\nsysctl debug.ktr.mask={MASK}\n"
    if functions:
        script += f"ktr on '{FUNCTIONS if ring == 'functions' else FUNCTIONS.replace('::', '::entry')}'\n"
    for loads in (CALLING,) if functions else (WORKLOADS, (LONG,)):
        script += "\n".join(["sysctl debug.ktr.alq_enable=1", *(f"load {words}" for words in loads), *["linux_test workers"] * (loads is WORKLOADS),
                             "sysctl debug.ktr.alq_enable=0\n"])
    run = boot(script, smp=smp, trace=True, sets=["debug.ktr.alq_enable=0"], options=THREADS).expect()
    found = tc.streams(run.trace)
    check(len(found) == 2 - functions, f"{len(found)} streams, expected {2 - functions}")
    lost = [any("gap" in e for e in tc.json_lines(tc.ktrdump("--format", "jsonl", "-i", path)[1])) for path in found]
    check(any(lost) == (ring == "lossy"), f"{ring}: streams with losses: {lost}")
    return found


def cut(path):
    """The first half of a stream: a frame, and the stream, lack their ends."""
    half = scratch_file(".ktr")
    data = path.read_bytes()
    half.write_bytes(data[:len(data) // 2 + 3])
    return half


def all_of(module, paths):
    for path in paths:
        with tempfile.TemporaryDirectory(prefix="kestrel-export-") as folder:
            module.check(pathlib.Path(path), pathlib.Path(folder))


def register():
    for module in FORMATS:
        name = module.__name__.removeprefix("export_").removesuffix("_test")
        for smp in times(CPUS[ARCH], (1, 4)):
            for ring in RINGS:
                if ring == "entries" and name != "tracedat":  # to others they are calls that do not return
                    continue
                what = {"functions": "calls of functions", "entries": "entries of functions alone"}.get(ring, f"every workload, {ring}")
                test(f"{name}: {what}, on {smp} CPUs, as jsonl has it")(
                    lambda module=module, smp=smp, ring=ring: all_of(module, traces(smp, ring)))
        test(f"{name}: streams that are cut in the middle, as jsonl has them")(
            lambda module=module: all_of(module, [cut(traces(CPUS[ARCH][0], "whole")[-1]), cut(traces(CPUS[ARCH][0], "lossy")[-1])]))


register()
if __name__ == "__main__":
    main()
