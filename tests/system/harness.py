"""harness.py - shared by the system tests: boots guests, decodes traces, prints TAP.

A test file registers functions with @test("what it promises") and ends in main(). A test fails by raising an
exception; check() and check_eq() raise one that says what was found and what was expected. No test sleeps for a time
that it hopes to be enough: every guest has a deadline, every wait has a condition and a deadline.

The same tests run on every architecture. Differences come from qemu/boot's table, as MACHINE. A test for only
one architecture is registered by @test("…", arch=("x86_64", "why")), and skipped on others.

environment, set by tests/run: KESTREL_ARCH; default x86_64. Arguments of a test file: globs over the names of
its tests; --list prints them.
"""
import contextlib
import fnmatch
import gc
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

# Traces are lists of many small objects, none of which refers to itself: looking for cycles takes half of the time.
gc.disable()

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "qemu"))
from deadline import Child, Deadline  # noqa: E402

subprocess.Popen = Child  # so that the time-outs of all that tests start are deadlines
ARCHS = ("x86_64", "aarch64")
ARCH = os.environ.get("KESTREL_ARCH") or "x86_64"
BUILD = ROOT / "build" / ARCH
BOOT = ROOT / "qemu" / "boot"
KTRDUMP = ROOT / "build" / "host" / "ktrdump"
LINUX_TEST = ["--file", f"/bin/linux_test={BUILD}/linux_test"]
DEADLINE_S = 240  # for one step: it ends what hangs, and a slow machine must not reach it
SLACK_S = 120  # for what remains when a guest's deadline has passed


def host_busybox():
    """The guest's busybox for this machine, to compare with."""
    path = ROOT / "build" / "guest" / os.uname().machine / "busybox"
    if not path.exists():
        raise Skipped(f"no busybox for this machine: run qemu/fetch-guest {os.uname().machine}")
    return path


def host_linux_test(*words):
    """What linux_test says on this machine, which `make test` builds for it, too."""
    path = ROOT / "build" / os.uname().machine / "linux_test"
    if not path.exists():
        raise Skipped(f"no linux_test for this machine: run make {path.relative_to(ROOT)}")
    return subprocess.run([path, *words], capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout


def dynamic_program(place, linker="", arch=ARCH):
    """Options that put linux_test into the guest at `place`, as a program that Debian's dynamic linker starts, with its
    libraries; and a second time that linker, at another place."""
    at = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}[arch]
    compiler = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}[arch]
    files = ["--file", f"{place}={ROOT}/build/{arch}/linux_test_dynamic"]
    for name, where in ((at.split("/")[-1], at), (at.split("/")[-1], linker), ("libc.so.6", "/lib/libc.so.6"),
                        ("libm.so.6", "/lib/libm.so.6"), ("libgcc_s.so.1", "/lib/libgcc_s.so.1")):  # pthread_exit() loads it
        found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        files += ["--file", f"{where}={pathlib.Path(found).resolve(strict=True)}"] if where else []
    return files


def need_lwip():
    if not (ROOT / "build/guest/source/lwip/src").is_dir():
        raise Skipped("the kernel was built without lwIP: qemu/fetch-guest --source lwip gets it")


def free_ports(n):
    """Ports of this machine's loopback that nobody has."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def wait_for(condition, what):
    deadline = Deadline(DEADLINE_S)
    while not condition():
        check(deadline.tick() > 0, f"no {what} in {DEADLINE_S} s")
        time.sleep(0.05)


def host_listens(port):
    rows = (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:])
    return any(int(row[1].split(":")[1], 16) == port and row[3] == "0A" for row in rows)  # TCP_LISTEN


def need_package(name, arch=ARCH):
    """Gets a package of Debian's for guests. Without a network the test is skipped, if the package is not here."""
    run = subprocess.run([ROOT / "qemu" / "fetch-guest", "--package", name, arch], capture_output=True, text=True, check=False)
    if "no network?" in run.stderr:
        raise Skipped(f"no package {name}: there is no network")
    check_eq(run.returncode, 0, f"status of qemu/fetch-guest --package {name}, which says {run.stderr}")


def _load_boot():
    """Loads qemu/boot as a module, for its table of machines."""
    sys.dont_write_bytecode = True  # write no .pyc file
    loader = importlib.machinery.SourceFileLoader("qemu_boot", str(BOOT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("qemu_boot", loader))
    loader.exec_module(module)
    return module


_boot = _load_boot()
MACHINES = _boot.MACHINES
MACHINE = MACHINES[ARCH]
FIRMWARE = MACHINE.firmware  # what starts an image first
# What `user_test do hog` takes until its user has no more of it, long before all pages are taken.
HAS_A_LIMIT = ("names", "depth", "maps")
GRUB_ONLY = ("x86_64", "GRUB boots x86_64 only")
# `make soak` runs the tests whole.
WHOLE = bool(os.environ.get("KESTREL_WHOLE"))
# A run of all items on all ports (tests/run without names).
TURNS = bool(os.environ.get("KESTREL_TURNS")) and not WHOLE
_tests = []
_portable = set()  # names of tests
_running = ""  # the name of the test


def times(suite, whole):
    """How often a test repeats what may go wrong now and then: in the suite, and in `make soak`."""
    return whole if WHOLE else suite


def cpus(name=None, of=(1, 4)):
    """With how many CPUs a test boots: each of two numbers in `make soak`; in the suite one of them on one port, and the
    other on the other. The test's name decides which, so that each port has tests with both. A portable test that only
    one port makes has both there. Without a name it is the test that runs."""
    one = (zlib.crc32((name or _running).encode()) + ARCHS.index(ARCH)) % 2
    return of if WHOLE or (TURNS and not name and _running in _portable) else (of[one],)


class Failed(Exception):
    """A broken promise."""


class Skipped(Exception):
    """A test that cannot run on this machine; the message says why."""


def turn(name):
    """The port whose turn it is to run a test of portable code. Numbers in its name do not count: cpus() may differ. Another
    bit than that of cpus() decides."""
    return ARCHS[zlib.crc32(re.sub(r"\d", "", name).encode()) // 2 % len(ARCHS)]


def test(name, arch=None, portable=False, shared=None):
    """Registers a function under the promise that it tests. arch: (the only architecture to test, reason). portable: what it
    tests is the same code on each port, so that a run of everything makes it on one of them, by turns; tests of the same
    `shared`, which use one guest, on the same."""
    def elsewhere():
        raise Skipped(arch[1] if arch else "the other port makes this test; make soak makes it on both")

    def register(fn):
        here = arch[0] == ARCH if arch else not (portable and TURNS) or turn(shared or name) == ARCH
        _tests.append((name, fn if here else elsewhere))
        _portable.update([name] if portable else [])
        return fn
    return register


def portable_test(name, shared=None):
    return test(name, portable=True, shared=shared)


def check(condition, message):
    if not condition:
        raise Failed(message)


def check_eq(found, expected, what):
    if found != expected:
        raise Failed(f"{what}: found {found!r}, expected {expected!r}")


def tap(out, programs=1):
    """Checks that so many programs have printed TAP, one after the other: each ran the tests that it had planned, and
    none failed. Returns the number of tests."""
    out = out.replace("\r", "")
    failed = re.findall(r"(?:^#.*\n)*^not ok .*", out, re.M)  # with what it says of that
    check(not failed, "in the guest: " + "\n".join(failed))
    plans = list(map(int, re.findall(r"^1\.\.(\d+)$", out, re.M)))
    results = list(map(int, re.findall(r"^ok (\d+)\b", out, re.M)))
    expected = [n for plan in plans for n in range(1, plan + 1)]
    check_eq((len(plans), results), (programs, expected), f"in the guest: programs and results of\n{out}\n")
    return len(results)


def check_match(pattern, text, what):
    """Returns the match of a pattern that must occur in the text."""
    m = re.search(pattern, text, re.M)
    if m is None:
        raise Failed(f"{what}: expected /{pattern}/, found:\n{text}")
    return m


class Run:
    """A guest that ended: status, out (its console), err (qemu/boot's messages), trace (a path or None)."""

    def __init__(self, command, status, out, err, trace, seconds):
        self.command, self.status, self.out, self.err = command, status, out, err
        self.trace, self.seconds = trace, seconds
        self._decoded = None

    def expect(self, status=0):
        if self.status != status:
            command = " ".join(str(word)[:200] for word in self.command)
            raise Failed(f"exit status: found {self.status}, expected {status}\ncommand: {command}\n"
                         f"stderr: {self.err}\nconsole:\n{self.out}")
        return self

    @property
    def decoded(self):
        if self._decoded is None:
            self._decoded = decode(self.trace)
        return self._decoded

    @property
    def events(self):
        return [e for e in self.decoded if "seq" in e]

    @property
    def parts(self):
        """Entries that hold parts of the events' long data."""
        return [e for e in self.decoded if "part" in e]

    @property
    def gaps(self):
        return [e for e in self.decoded if "gap" in e]


_scratch = None


def scratch():
    """A folder that is removed when the program ends."""
    global _scratch
    if _scratch is None:
        _scratch = pathlib.Path(tempfile.mkdtemp(prefix="kestrel-test-"))
    return _scratch


_count = 0


def scratch_file(suffix):
    global _count
    _count += 1
    return scratch() / f"{_count}{suffix}"


def run_boot(words, data):
    """Runs qemu/boot in a child of this program, which has read it already: another Python would take as much time as the
    kernel takes to boot. Returns its (status, stdout, stderr)."""
    files = [open(os.memfd_create(name), "w+b", buffering=0) for name in ("stdin", "stdout", "stderr")]
    files[0].write(data)
    files[0].seek(0)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for fd, file in enumerate(files):
                os.dup2(file.fileno(), fd)
            sys.stdin, sys.stdout, sys.stderr = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8"), open(2, "w", encoding="utf-8")
            status = _boot.main(words)
        except SystemExit as e:
            status = e.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status or 0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    out = []
    for file in files:
        file.seek(0)
        out.append(file.read())
        file.close()
    return status, *out[1:]


def boot(script=None, *, firmware="none", smp=1, mem="256M", mask=None, sets=(), trace=False, timeout=DEADLINE_S,
         options=(), raw_script=None, arch=ARCH):
    """Runs a script in a guest and returns a Run. Without a script, options say what runs."""
    command = [str(BOOT), "--arch", arch, "--firmware", firmware, "--smp", str(smp), "--mem", mem,
               "--timeout", str(timeout)]
    if mask:
        command += ["--mask", mask]
    for word in sets:
        command += ["--set", word]
    path = None
    if trace:
        path = scratch_file(".ktr")
        command += ["--trace", str(path)]
    data = b""
    if script is not None or raw_script is not None:
        command += ["--script", "-"]
        data = raw_script if raw_script is not None else script.encode()
    command += options
    start = time.monotonic()
    status, out, err = run_boot([os.fspath(word) for word in command[1:]], data)
    return Run(command, status, out.decode(errors="replace"), err.decode(errors="replace"), path, time.monotonic() - start)


def listens(path):
    """Does a program wait for connections on this Unix socket? The file is there a moment before."""
    rows = (line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:])
    return any(int(row[3], 16) & 1 << 16 and row[-1] == str(path) for row in rows)  # __SO_ACCEPTCON


def ktrdump(*args, stdin=None):
    """Runs the host's ktrdump: (status, stdout, stderr)."""
    p = subprocess.run([str(KTRDUMP), *map(str, args)], input=stdin, capture_output=True, timeout=DEADLINE_S)
    return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")


def json_lines(text):
    """What the lines of a text say, each of which is JSON. Read as one list: one by one takes twice as long."""
    return json.loads("[" + ",".join(text.splitlines()) + "]")


def decode(path, status=0):
    """Events and gaps of a trace, as dictionaries, in the order of ktrdump."""
    found, out, err = ktrdump("--format", "jsonl", "-i", path)
    check_eq(found, status, f"ktrdump's exit status ({err.strip()})")
    return json_lines(out)


STAT_NAMES = ("recorded", "delivered", "resident", "overwritten", "suppressed", "lost")


def ktr_stats(out):
    """{cpu: {name: count}} of the last table of `sysctl debug.ktr.stats` in the text."""
    table = {}
    for line in out.splitlines():
        if line.startswith("cpu recorded"):
            table = {}
        elif re.fullmatch(r"\d+( \d+){6}", line):
            cpu, *counts = map(int, line.split())
            table[cpu] = dict(zip(STAT_NAMES, counts))
    check(table, f"no table of debug.ktr.stats in:\n{out}")
    return table


def cpu_seconds():
    """What this program and those that it waited for have used."""
    return sum(os.times()[:4])


def run_one(number, name, fn):
    global _running
    _running = name
    start, used = time.monotonic(), cpu_seconds()
    try:
        fn()
        verdict, note = "ok", f" # {time.monotonic() - start:.1f} s, CPU {cpu_seconds() - used:.1f} s"
    except Skipped as e:
        verdict, note = "ok", f" # SKIP {e}"
    except Failed as e:
        verdict, note = "not ok", ""
        print("".join(f"# {line}\n" for line in str(e).splitlines()), end="")
    except Exception as e:
        verdict, note = "not ok", ""
        text = traceback.format_exc()
        if type(e).__module__.startswith("pexpect"):  # its own text is long and repeats itself
            text = "\n".join(line for line in text.splitlines() if re.match(r"\s+File .*tests/system|before| +0: ", line))
        print("".join(f"# {line}\n" for line in text.splitlines()), end="")
    print(f"{verdict} {number} - {name}{note}", flush=True)
    return verdict == "ok"


def main():
    globs = sys.argv[1:]
    if globs == ["--list"]:
        print("\n".join(name for name, _ in _tests))
        return
    chosen = [t for t in _tests if not globs or any(fnmatch.fnmatch(t[0], g) for g in globs)]
    print(f"TAP version 13\n1..{len(chosen)}", flush=True)
    try:
        good = [run_one(n, name, fn) for n, (name, fn) in enumerate(chosen, 1)]
    finally:
        if _scratch is not None:
            shutil.rmtree(_scratch, ignore_errors=True)
    sys.exit(0 if all(good) and chosen else 1)
