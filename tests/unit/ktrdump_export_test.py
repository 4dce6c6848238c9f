#!/usr/bin/python3
"""ktrdump_export_test.py - what every format of ktrdump keeps: progress, interrupts, output that fails.

Prints TAP. The programs are build/host/ktrdump and build/host/unit/ktr_gen, or $KTRDUMP and $KTR_GEN.
"""
import os
import pty
import resource
import select
import signal
import subprocess
import tempfile
import time

from export_help import DEADLINE_S, KTR_GEN, KTRDUMP, equal, expect, main

FILE_MAX = 8192  # bytes that a full disk takes
MEMORY_KB = 1024  # that may come and go
DEAD = 100_000  # threads, one after the other
DEAD_BYTES = {"text": 48, "jsonl": 48}  # that each may leave behind
MIX = subprocess.run([KTR_GEN, "mix", "200000"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout


def formats():
    """[(name, does it need a name to write to?)] of --help."""
    text = subprocess.run([KTRDUMP, "--help"], capture_output=True, text=True, check=True).stdout
    rows = text[text.index("Formats for --format"):].splitlines()[1:]
    return [(row.split()[0], "needs -o" in row) for row in rows if row.strip()]


def ktrdump(*args, data=MIX, **options):
    p = subprocess.run([KTRDUMP, *map(str, args)], input=data, capture_output=True, timeout=DEADLINE_S, check=False, **options)
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def wait_for(what, look):
    deadline = time.monotonic() + DEADLINE_S
    while not look():
        expect(time.monotonic() < deadline, f"{what}: not in {DEADLINE_S} s")
        select.select([], [], [], 0.01)


def there_are_formats(_):
    names = [name for name, _ in formats()]
    expect({"ctf", "tracedat"} <= set(names), f"formats of --help: {names}")
    equal(len(set(names)), len(names), "different names")
    status, _, err = ktrdump("--format", "no-such", "-")
    equal(status, 2, "status of an unknown format")
    expect("no-such" in err and "--help" in err, err)


def interrupted_export_leaves_nothing(tmp):
    for name, _ in formats():
        for sig in (signal.SIGTERM, signal.SIGINT):
            with subprocess.Popen([KTRDUMP, "--format", name, "-o", tmp / "out", "-"], stdin=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as p:
                p.stdin.write(MIX[:len(MIX) // 2])
                p.stdin.flush()
                wait_for(f"{name}: something to be written", lambda: list(tmp.iterdir()))
                p.send_signal(sig)
                err = p.stderr.read().decode()
                equal(p.wait(timeout=DEADLINE_S), -sig, f"{name}: status after {sig.name} ({err})")
                expect("interrupted" in err, f"{name}: {err!r}")
                p.stdin.close()
            equal([f.name for f in tmp.iterdir()], [], f"{name}: what {sig.name} left")


def full_disk_is_told_and_leaves_nothing(tmp):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX))
    for name, _ in formats():
        # Python ignores SIGXFSZ, and so do its children unless it restores signals: the write fails.
        status, _, err = ktrdump("--format", name, "-o", tmp / "out", "-", preexec_fn=limit, restore_signals=False)
        left = sorted(f.name for f in tmp.iterdir())
        if status == 0 and sum(f.stat().st_size for f in tmp.rglob("*")) <= FILE_MAX:
            (tmp / "out").unlink()  # it is so small that it had room
            continue
        equal(status, 2, f"{name}: status on a full disk ({err})")
        expect("File too large" in err, f"{name}: {err!r}")
        equal(left, [], f"{name}: what is left on a full disk")


def output_that_cannot_be_written_is_told(tmp):
    for name, needs_path in formats():
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
    for name, needs_path in formats():
        if needs_path:
            continue
        equal(ktrdump("--format", name, "-o", tmp / "out", "-")[0], 0, f"{name}: status")
        status, out, err = ktrdump("--format", name, "-")
        equal((status, err), (0, ""), f"{name}: status and standard error")
        expect(out == (tmp / "out").read_bytes(), f"{name}: standard output differs from a file")
        (tmp / "out").unlink()


def peak_kb(command, data):
    """The most memory that a command has at a time."""
    with tempfile.TemporaryFile() as source:
        source.write(data)
        source.seek(0)
        p = subprocess.Popen(list(map(str, command)), stdin=source, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        equal(p.returncode, 0, f"{command}: status")
    return usage.ru_maxrss


def long_stream_takes_no_more_memory(tmp):
    """Ten times the events, the same memory: a gigabyte of stream would have it too."""
    long = subprocess.run([KTR_GEN, "mix", "2000000"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout
    for name, _ in formats():
        small, big = (peak_kb([KTRDUMP, "--format", name, "-o", tmp / f"{name}{len(data)}", "-"], data) for data in (MIX, long))
        expect(big < small + MEMORY_KB, f"{name}: {small} KB for {len(MIX):,} bytes, {big} KB for {len(long):,}")


def dead_threads_leave_little_behind(tmp):
    few, many = (subprocess.run([KTR_GEN, "forks", str(n)], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout
                 for n in (DEAD // 10, DEAD))
    for name, most in DEAD_BYTES.items():
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


def filter_that_a_format_cannot_heed_is_refused(_):
    refused = set()
    for name, _ in formats():
        for words in (["--class", "SCHED"], ["--grep", "fork"]):
            status, _, err = ktrdump("--format", name, "-o", "/dev/null", *words, "-")
            if "shows times, not events" in err:
                equal(status, 2, f"{name}: status of {words}")
                refused.add(name)
    equal(refused, {"svg", "folded"}, "formats that refuse filters of events")


def width_of_a_picture_is_checked(_):
    for width in ("0", "299", "20001", "x", "500x", "-1", ""):
        status, _, err = ktrdump("--format", "ctf", "-o", "/nonexistent/x", "--width", width, "-")
        equal(status, 2, f"status of --width {width!r}")
        expect("expected 300 to 20000" in err, err)


if __name__ == "__main__":
    main([there_are_formats, interrupted_export_leaves_nothing, full_disk_is_told_and_leaves_nothing,
          output_that_cannot_be_written_is_told, pipe_gets_what_a_file_gets, long_stream_takes_no_more_memory,
          dead_threads_leave_little_behind, terminal_sees_how_far_a_long_export_is, width_of_a_picture_is_checked])
