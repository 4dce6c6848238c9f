"""host.py - the cost of recording on this machine: tests/bench/record.c, compared with LTTng if that is installed.

Other programs may use the machine meanwhile: results are medians of the ratios within a round.
"""
import collections
import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from rows import HOST, ROOT, BenchError, Row

PROGRAMS = ROOT / "build" / "host" / "bench"
ROUNDS = 501
DEADLINE_S = 600
SESSION = "kestrel-bench"
# As large as our rings: 4096 entries of 64 bytes, which six integers nearly fill.
LTTNG_SUBBUFFERS = ("--num-subbuf", "4", "--subbuf-size", "65536")

SETTING = f"{ROUNDS} interleaved rounds of 10,000 events, threads pinned; "
NAMES = {
    "floor": "RDTSC and a 64-byte store, in line: the floor",
    "floor_called": "the same as a function with six parameters",
    "record": "CTR6 on, the core with an x86_64 port (tests/bench/port): RDTSC, a restartable sequence, sites patched",
    "shared_index": "one shared index and 88-byte entries, FreeBSD's algorithm written anew",
    "lttng": "an LTTng-UST tracepoint with six integers, a session in overwrite mode",
}
RATIOS = {
    "record_to_floor": ("record", "floor"), "record_to_floor_called": ("record", "floor_called"),
    "shared_index_to_record": ("shared_index", "record"), "lttng_to_record": ("lttng", "record"),
}


def command(*words, **options):
    try:
        p = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=DEADLINE_S, **options)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{words[0]}: still running after {DEADLINE_S} s") from None
    if p.returncode != 0:
        raise BenchError(f"{words[0]}: status {p.returncode}, expected 0: {p.stderr.strip()}")
    return p.stdout


def end_daemon(pid):
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise BenchError(f"lttng-sessiond: process {pid} still there {DEADLINE_S} s after SIGTERM")


@contextlib.contextmanager
def lttng_session():
    """A session that records every event of record_lttng.so. Yields the environment in which a program joins it."""
    with tempfile.TemporaryDirectory(prefix="kestrel-lttng-") as home:
        env = dict(os.environ, LTTNG_HOME=home, LTTNG_UST_REGISTER_TIMEOUT="-1")
        pids = pathlib.Path(home) / "sessiond.pid"
        command("lttng-sessiond", "--daemonize", "--no-kernel", "--pidfile", pids, env=env)
        try:
            command("lttng", "create", "--snapshot", SESSION, "-o", home + "/trace", env=env)
            command("lttng", "enable-channel", "-u", "c", "-s", SESSION, "--overwrite", *LTTNG_SUBBUFFERS, env=env)
            command("lttng", "enable-event", "-u", "kestrel_bench:six", "-s", SESSION, "-c", "c", env=env)
            command("lttng", "start", SESSION, env=env)
            yield env
            command("lttng", "destroy", SESSION, env=env)
        finally:
            end_daemon(int(pids.read_text()))


def run_record():
    """(output of record, why LTTng is missing or None)."""
    missing = next((f"{name} is not installed" for name in ("lttng", "lttng-sessiond") if not shutil.which(name)), None)
    if not (PROGRAMS / "record_lttng.so").exists():
        missing = "liblttng-ust-dev was not installed when this was built"
    if missing:
        return command(PROGRAMS / "record", ROUNDS), missing
    with lttng_session() as env:
        return command(PROGRAMS / "record", ROUNDS, PROGRAMS / "record_lttng.so", env=env), None


def measure():
    """The host's rows. If the benchmark's port does not support this machine, rows that say so."""
    if not (PROGRAMS / "record").exists():
        return [Row("record", HOST, None, "", "not measured: needs an x86_64 machine, and `make bench-programs`")]
    out, missing = run_record()
    *lines, loops, hz = out.splitlines()
    loops, hz = int(loops.removeprefix("loops ")), int(hz.removeprefix("hz "))
    ticks = collections.defaultdict(list)  # {(subject, threads): [one for each round]}
    for line in lines:
        _, threads, name, value = line.split()
        ticks[name, int(threads)].append(int(value))

    def ratio(a, b, n):
        return statistics.median(x / y for x, y in zip(ticks[a, n], ticks[b, n], strict=True))

    rows = []
    for n in (1, 2):
        on = SETTING + ("one thread" if n == 1 else "two threads at once")
        for name, what in NAMES.items():
            if name == "lttng" and missing:
                continue
            ns = statistics.median(ticks[name, n]) / loops / hz * 1e9
            rows.append(Row(f"{name}_{n}", HOST, ns, "ns", f"{what}; {on}"))
        for name, (a, b) in RATIOS.items():
            if "lttng" in (a, b) and missing:
                rows.append(Row(f"{name}_{n}", HOST, None, "times", f"not measured: {missing}"))
            else:
                rows.append(Row(f"{name}_{n}", HOST, ratio(a, b, n), "times", "median of the ratios within a round"))
    rows.append(Row("site_off_to_none", HOST, ratio("site_off", "no_site", 1), "times",
                    "a loop of one multiplication with a site that is off, to the same without a site"))
    rows.append(Row("none_to_none", HOST, ratio("no_site_again", "no_site", 1), "times",
                    "the loop without a site to itself: the noise of the row above"))
    return rows
