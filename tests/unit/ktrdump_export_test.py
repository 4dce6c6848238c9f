#!/usr/bin/python3
"""ktrdump_export_test.py - common to all formats of ktrdump: progress, memory, failing output, refusals.

Prints TAP. The programs are build/host/ktrdump and build/host/unit/ktr_gen, or $KTRDUMP and $KTR_GEN.
"""
import os
import pty
import select
import subprocess
import tempfile

from export_help import DEADLINE_S, KTR_GEN, KTRDUMP, equal, expect, export_formats, main, part

MEMORY_KB = 1024  # by which memory may differ
DEAD = 60_000  # threads, one after the other
DEAD_BYTES = {"text": 48, "jsonl": 48, "chrome": 48, "ctf": 48, "folded": 48, "fxt": 64, "schedgraph": 48,
              "tracedat": 64, "svg": 256, "html": 256}  # that each may leave; a picture keeps some thousands for their names
MIX = subprocess.run([KTR_GEN, "mix", "60000"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout


def ktrdump(*args, data=MIX, **options):
    p = subprocess.run([KTRDUMP, *map(str, args)], input=data, capture_output=True, timeout=DEADLINE_S, check=False, **options)
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def there_are_formats(_):
    names = [name for name, _ in export_formats()]
    expect({"ctf", "tracedat"} <= set(names), f"formats of --help: {names}")
    equal(len(set(names)), len(names), "different names")
    status, _, err = ktrdump("--format", "no-such", "-")
    equal(status, 2, "status of an unknown format")
    expect("no-such" in err and "--help" in err, err)


def output_that_cannot_be_written_is_reported(tmp):
    for name, needs_path in export_formats():
        status, _, err = ktrdump("--format", name, "-o", tmp / "no" / "such", "-")
        equal(status, 2, f"{name}: status when the directory is missing")
        expect("No such file or directory" in err, f"{name}: {err!r}")
        if needs_path:
            status, _, err = ktrdump("--format", name, "-")
            equal(status, 2, f"{name}: status without a name")
            expect("expected -o" in err, f"{name}: {err!r}")
        else:
            with open("/dev/full", "wb") as full:
                p = subprocess.run([KTRDUMP, "--format", name, "-"], input=MIX, stdout=full, stderr=subprocess.PIPE,
                                   timeout=DEADLINE_S, check=False)
            equal(p.returncode, 2, f"{name}: status when standard output is full")
            expect(b"No space left" in p.stderr, f"{name}: {p.stderr!r}")
    equal(list(tmp.iterdir()), [], "what is left")


def pipe_gets_what_a_file_gets(tmp):
    for name, needs_path in export_formats():
        if needs_path:
            continue
        equal(ktrdump("--format", name, "-o", tmp / "out", "-")[0], 0, f"{name}: status")
        status, out, err = ktrdump("--format", name, "-")
        equal((status, err), (0, ""), f"{name}: status and standard error")
        expect(out == (tmp / "out").read_bytes(), f"{name}: standard output differs from a file")
        (tmp / "out").unlink()


def peak_kb(command, data):
    """The most memory that a command uses at a time."""
    with tempfile.TemporaryFile() as source:
        source.write(data)
        source.seek(0)
        p = subprocess.Popen(list(map(str, command)), stdin=source, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        equal(p.returncode, 0, f"{command}: status")
    return usage.ru_maxrss


def long_stream_takes_no_more_memory(tmp):
    """Ten times as many events need the same memory, so a gigabyte of stream would, too. In a run of everything for a
    third of the formats."""
    long = subprocess.run([KTR_GEN, "mix", "600000"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout
    for name, _ in part(export_formats(), 3, "long stream"):
        small, big = (peak_kb([KTRDUMP, "--format", name, "-o", tmp / f"{name}{len(data)}", "-"], data) for data in (MIX, long))
        expect(big < small + MEMORY_KB, f"{name}: {small} KB for {len(MIX):,} bytes, {big} KB for {len(long):,}")


def dead_threads_leave_little_memory_in_use(tmp):
    few, many = (subprocess.run([KTR_GEN, "forks", str(n)], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout
                 for n in (DEAD // 10, DEAD))
    for name, most in part(DEAD_BYTES.items(), 3, "dead threads"):
        kb = [peak_kb([KTRDUMP, "--format", name, *([] if name in ("text", "jsonl") else ["-o", tmp / f"{name}{len(data)}"]), "-"],
                      data) for data in (few, many)]
        each = (kb[1] - kb[0] - MEMORY_KB) * 1024 / (DEAD * 9 // 10)
        expect(each < most, f"{name}: {each:.0f} bytes a thread that is dead, at most {most}: {kb[0]} KB, then {kb[1]} KB")


def terminal_sees_how_far_a_long_export_is(tmp):
    ours, theirs = pty.openpty()
    with subprocess.Popen([KTRDUMP, "--format", "ctf", "-o", tmp / "out", "-"], stdin=subprocess.PIPE, stdout=theirs,
                          stderr=theirs) as p:
        os.close(theirs)
        shown = b""
        for at in range(0, len(MIX), 256):
            p.stdin.write(MIX[at:at + 256])
            p.stdin.flush()
            if select.select([ours], [], [], 0.01)[0]:
                shown += os.read(ours, 1000)
            if b" MB" in shown:
                break
        expect(b"\rktrdump: 0 MB" in shown, f"a terminal saw {shown!r}")
        p.stdin.write(MIX[at + 256:])
        p.stdin.close()
        equal(p.wait(timeout=DEADLINE_S), 0, "status")
    os.close(ours)


def clock_that_is_not_known_at_first_is_refused(tmp):
    data = subprocess.run([KTR_GEN, "clock"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout
    for name, _ in export_formats():
        status, _, err = ktrdump("--format", name, "-o", tmp / "out", "-", data=data)
        equal(status, 2, f"{name}: status")
        expect("clock has 1000000000 Hz, and had 0" in err, f"{name}: {err}")
        equal(list(tmp.iterdir()), [], f"{name}: what is left")


def filter_that_a_format_does_not_support_is_refused(_):
    refused = set()
    for name, _ in export_formats():
        for words in (["--class", "SCHED"], ["--grep", "fork"]):
            status, _, err = ktrdump("--format", name, "-o", "/dev/null", *words, "-")
            if "shows times, not events" in err:
                equal(status, 2, f"{name}: status of {words}")
                refused.add(name)
    equal(refused, {"svg", "folded", "html"}, "formats that refuse filters of events")
    for words in (["--thread", "1"], ["--cpu", "0"]):
        status, _, err = ktrdump("--format", "html", "-o", "/dev/null", *words, "-")
        equal(status, 2, f"html: status of {words}")
        expect("has all threads and CPUs" in err, err)


def width_of_a_picture_is_checked(_):
    for width in ("0", "299", "20001", "x", "500x", "-1", ""):
        status, _, err = ktrdump("--format", "ctf", "-o", "/nonexistent/x", "--width", width, "-")
        equal(status, 2, f"status of --width {width!r}")
        expect("expected 300 to 20000" in err, err)


if __name__ == "__main__":
    main([there_are_formats, output_that_cannot_be_written_is_reported, pipe_gets_what_a_file_gets,
          long_stream_takes_no_more_memory, dead_threads_leave_little_memory_in_use, terminal_sees_how_far_a_long_export_is,
          clock_that_is_not_known_at_first_is_refused, filter_that_a_format_does_not_support_is_refused,
          width_of_a_picture_is_checked])
