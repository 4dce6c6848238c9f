#!/usr/bin/python3
"""ktrdump_hostile_test.py - whatever the stream, ktrdump's time is proportional to its bytes, and its memory is
below 64 MB.

The time is compared with that for a realistic stream of the same size: CPU time, independent of other load.
Prints TAP. The program is build/host/ktrdump, and, if there is one, also a sanitized $KTRDUMP.
"""
import os
import resource
import signal
import subprocess
import tempfile

import export_help as x
import wire
from export_help import equal, expect

BYTES = 2 << 20
MEMORY = 64 << 20
TIMES = 25  # of a sound stream of the same size: files and short frames cost more, a bad case would cost hundreds
TEXT_TIMES = 100  # where an event of ten bytes is printed as two thousand characters
GOLDEN = 0x9e3779b97f4a7c15
IDENT = 0x7a5c << 48
# A sanitizer needs memory and time itself: a sanitized program has no limits, and shorter streams.
PLAIN = str(x.ROOT / "build/host/ktrdump")
SANITIZED_BYTES = BYTES // 16


def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # all writable memory except the stack


def usage(program, path, *args):
    """(status, messages, CPU seconds) of a run, with limited memory if the program is the plain one."""
    with open(os.devnull, "wb") as null, tempfile.TemporaryFile() as err:
        p = subprocess.Popen([program, *args, "-i", str(path)], stdout=null, stderr=err,
                             preexec_fn=limit_memory if program == PLAIN else None)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        return p.returncode, err.read(300).decode(), used.ru_utime + used.ru_stime


def whole(frames, size=BYTES):
    """As many frames as make a stream of that size."""
    out, n = [b"\0", wire.header()], 0
    for f in frames:
        out.append(f)
        n += len(f)
        if n >= size:
            break
    return b"".join(out)


def colliding_strings():
    """Values that collide in a table which uses the high half of a product with 2^64 / φ, as most tables do."""
    inverse = pow(GOLDEN, -1, 2**64)
    n = 0
    while True:
        n += 1
        yield wire.string(n * inverse, f"{n:x}")


def texts():
    """A new text for the same value, again and again."""
    n = 0
    while True:
        n += 1
        yield wire.string(7, f"text {n}")


def idents():
    n = 0
    while True:
        n += 1
        yield wire.string(IDENT | n, f"thread tid {n}")


def threads():
    n = 0
    while True:
        n += 1
        yield wire.thread(n * pow(2654435761, -1, 2**32) % 2**32, f"t{n}")


def sites():
    n = 0
    while True:
        n += 1
        yield wire.site(n % 65536, f"format number {n} %d", 1)


def headers():
    n = 0
    while True:
        n += 1
        yield wire.header(n & 1, hz=n)


def headers_over_a_table():
    """A table that grows, and is then cleared again and again."""
    for n in range(60000):
        yield wire.string(n, "x")
    two = wire.header(0) + wire.string(1, "y")
    while True:
        yield two


def short_events(count, later):
    """The events of a BATCH, most of which take two bytes."""
    explicit = bytes([0x80]) + wire.varints(1, later)
    return explicit * 2 + bytes([0, later]) * (count - 2)


def no_mark(cpus=1):
    """Events of two bytes, without a MARK. Sequence numbers decrease, which is reported."""
    ready = [wire.frame(wire.BATCH, wire.varints(cpu, 0, 2000, 5, 1) + short_events(2000, 1)) for cpu in range(cpus)]
    while True:
        yield from ready


def many_texts():
    """Events of sixty bytes and six strings each."""
    yield wire.site(1, "%s %s %s %s %s %s", 6)
    for n in range(6):
        yield wire.string(IDENT | n, "long name " * 25 + f" tid {n}")
    batch = wire.batch(3, 0, 5, 1, [(1, 1, [(IDENT | (n + i) % 6) for n in range(6)]) for i in range(60)])
    while True:
        yield batch


def tiny_batches():
    frame = wire.frame(wire.BATCH, wire.varints(0, 0, 1, 5, 1) + bytes([0x80]) + wire.varints(1, 1))
    while True:
        yield frame


def bad_frames():
    while True:
        yield b"\x02\x01\0"


STREAMS = {
    "values that collide": colliding_strings, "texts": texts, "idents of threads": idents, "threads": threads,
    "sites": sites, "headers": headers, "headers over a large table": headers_over_a_table,
    "events without MARK": no_mark, "events without MARK on every CPU": lambda: no_mark(256), "events of many texts": many_texts,
    "batches of one event": tiny_batches, "what is no frame": bad_frames,
}


def some(what):
    """The streams, by name; in a run of everything a third of them."""
    return x.part(STREAMS.items(), 3, f"hostile {what}", lambda row: row[0])


def sound_seconds(tmp):
    """CPU time for a sound stream of the same size."""
    path = tmp / "sound.ktr"
    with open(path, "wb") as f:
        subprocess.run([x.KTR_GEN, "mix", "425000"], stdout=f, check=True, timeout=x.DEADLINE_S)
    expect(path.stat().st_size < BYTES * 1.1, f"{path.stat().st_size} bytes")
    return min(usage(PLAIN, path, "-qcs")[2] for _ in range(3))


def time_and_memory_are_bounded_whatever_the_stream(tmp):
    sound = sound_seconds(tmp)
    for name, frames in some("time"):
        path = tmp / "hostile.ktr"
        path.write_bytes(whole(frames()))
        for args in (("-qcs",), ("--format", "jsonl"), ("report",)):
            status, err, seconds = usage(PLAIN, path, *args)
            print(f"# {name}, {args[-1]}: {seconds:.2f} s, sound {sound:.2f} s")
            equal(status, 1, f"status of {name}; {err}")
            most = sound * (TEXT_TIMES if frames is many_texts else TIMES)
            expect(seconds < most, f"{name}: {seconds} s, a sound stream of as many bytes {sound} s")


def any_of_these_streams_is_read_without_an_error_of_memory(tmp):
    for name, frames in some("memory"):
        path = tmp / "hostile.ktr"
        path.write_bytes(whole(frames(), SANITIZED_BYTES))
        for args in (("-qcs",), ("--format", "jsonl"), ("report",)):
            status, err, _ = usage(x.KTRDUMP, path, *args)
            equal(status, 1, f"status of {name}; {err}")


def without_mark(path, count, cpus):
    """Makes a stream without a MARK, of more events than fit into memory. Returns how many each CPU has."""
    frames, seq = [], [0] * cpus
    for n in range(300):
        cpu = n % cpus
        body = wire.varints(cpu, seq[cpu], count, seq[cpu] * 10 + cpu, 1) + short_events(count, 10)
        frames.append(wire.frame(wire.BATCH, body))
        seq[cpu] += count
    path.write_bytes(wire.stream(*frames, cpus=[(n, 0) for n in range(cpus)]))
    return seq


def what_waits_for_a_mark_comes_in_order(tmp):
    """Events that do not fit into memory wait in a file. Their order must be the same."""
    count, cpus = 2001, 3
    path = tmp / "wait.ktr"
    seq = without_mark(path, count, cpus)
    p = x.run(x.KTRDUMP, "-qct", path)
    equal((p[0], p[2][:300]), (0, ""), "status and messages")
    found = [tuple(map(int, line.split()[1:3])) for line in p[1].splitlines()][::-1]
    equal(len(found), count * 300, "events")
    expect(all(a[1] <= b[1] for a, b in zip(found, found[1:])), "times go back")
    for cpu in range(cpus):
        equal([t for c, t in found if c == cpu], [n * 10 + cpu + 10 for n in range(seq[cpu])], f"times of CPU {cpu}")


def no_room_for_what_waits_is_an_error(tmp):
    def little_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    path = tmp / "wait.ktr"
    without_mark(path, 2001, 3)
    p = subprocess.run([x.KTRDUMP, "-q", path], capture_output=True, preexec_fn=little_disk, timeout=x.DEADLINE_S, check=False)
    equal((p.returncode, p.stderr), (2, b"ktrdump: cannot keep the events that wait in a temporary file\n"), "status and message")


def names_that_are_not_kept_are_reported(tmp):
    """Names that fit are printed, the others are damage. After the next HEADER there is room again."""
    path = tmp / "names.ktr"
    frames = [wire.string(IDENT | n, f"t tid {n}") for n in range(140000)]
    batch = wire.batch(0, 0, 5, 1, [(1, 1, [IDENT | 1]), (1, 1, [IDENT | 139999])])
    again = [wire.header(0), wire.header(0), wire.string(IDENT | 139999, "t tid 139999"), wire.batch(0, 2, 9, 1, [(1, 1, [IDENT | 139999])])]
    path.write_bytes(wire.stream(wire.site(1, "who %s", 1), *frames, batch, *again))
    status, out, err = x.run(x.KTRDUMP, "-q", path)
    equal(status, 1, "status")
    expect("more texts and names than are kept" in err, err[:300])
    equal([line.split(None, 1)[1] for line in out.splitlines()],
          ["who t tid 1", f"who (bad {IDENT | 139999:#x})", "who t tid 139999"], "texts")


if __name__ == "__main__":
    x.main([time_and_memory_are_bounded_whatever_the_stream, any_of_these_streams_is_read_without_an_error_of_memory, what_waits_for_a_mark_comes_in_order,
            no_room_for_what_waits_is_an_error, names_that_are_not_kept_are_reported])
