#!/usr/bin/python3
"""ktrdump_core_test.py - ktrdump -M reads the log of any kernel, through each architecture's page tables or none;
and -N recognises the kernel.

Prints TAP. The kernel is tests/unit/ktr_core_gen.c.
"""
import re
import subprocess

import export_help as x
from export_help import equal, expect

CORE_GEN = x.ROOT / "build/host/unit/ktr_core_gen"
TEXT = "some kernel 2.0"


def dump(tmp, arch, told="told", build=TEXT):
    """(core, rows of the stream of the same log)."""
    core, stream = tmp / "core", tmp / "stream"
    with open(stream, "wb") as out:
        subprocess.run([CORE_GEN, arch, told, build, core], stdout=out, check=True, timeout=x.DEADLINE_S)
    return core, rows("-i", stream)


def rows(*args):
    status, out, err = x.ktrdump("--format", "jsonl", *args)
    equal((status, err), (0, ""), f"{args}: status and messages")
    return sorted(line for line in out.splitlines() if '"seq"' in line)


def log_is_found_by_page_tables_or_without(tmp):
    for arch in ("riscv64", "x86_64", "aarch64", "none"):
        core, stream = dump(tmp, arch)
        equal(len(stream), 200, f"{arch}: events of the stream")
        equal(rows("-M", core), stream, f"{arch}: events of the dump")
        equal(rows("-e", CORE_GEN, "-m", core), stream, f"{arch}: by FreeBSD's old letters")


def kernel_of_the_dump_is_known(tmp):
    """By the build id in the log's build text; without one, by the kernel's read-only data."""
    build_id = re.search(r"Build ID: ([0-9a-f]{40})", x.run("readelf", "-n", CORE_GEN)[1])[1]
    other = tmp / "other"
    other.write_bytes(CORE_GEN.read_bytes().replace(b"event: number", b"event: Number"))
    for build, kernel, same in ((TEXT, CORE_GEN, True), (TEXT, other, False), (f"k {build_id}", CORE_GEN, True),
                                (f"k {build_id[::-1]}", CORE_GEN, False), (f"k {build_id[::-1]}", other, False)):
        core, stream = dump(tmp, "riscv64", build=build)
        if same:
            equal(rows("-N", kernel, "-M", core), stream, f"{build}: events")
            continue
        status, out, err = x.ktrdump("-N", kernel, "-M", core)
        equal((status, out), (2, ""), f"{build}: status and output")
        expect(f'it is of "{build}", but {kernel} is another kernel, of build id {build_id}' in err, err)


def missing_texts_are_an_error_that_says_how_to_get_them(tmp):
    for arch in ("riscv64", "none"):
        status, out, err = x.ktrdump("-M", dump(tmp, arch, "untold")[0])
        equal((status, out), (2, ""), "status and output")
        expect("ktr_image_add_text(start, size) has to tell where its read-only data is" in err, err)


if __name__ == "__main__":
    x.main([log_is_found_by_page_tables_or_without, kernel_of_the_dump_is_known,
            missing_texts_are_an_error_that_says_how_to_get_them])
