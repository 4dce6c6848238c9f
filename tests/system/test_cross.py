#!/usr/bin/python3
"""test_cross.py - the same script on every architecture gives the same events, thread by thread.

It compares the process and file events of each thread of the script, in order. Left out are times, ids (processes,
threads, inodes), addresses, and documented differences: the bits of O_DIRECTORY and O_NOFOLLOW, and sizes of program
files. System calls differ, since libraries make other ones on each architecture (dup2 and dup3, open and openat).
"""
import os
import pathlib
import re
import subprocess
import sys

from harness import ARCHS, MACHINES, ROOT, Failed, Skipped, boot, check, check_eq, check_match, ktrdump, main, test

SCRIPT = """
mkdir /tmp/d
echo hello world > /tmp/d/a
sysctl debug.ktr.mask=PROC,VFS > /dev/null
/bin/cp /tmp/d/a /tmp/d/b
sh -c '/bin/cat /tmp/d/b | /bin/wc -c; /bin/cat /nosuch 2> /dev/null; /bin/ls /tmp/d; (exit 7); echo $?; kill -TERM $$'
/bin/grep -n world /tmp/d/b | /bin/tee /tmp/d/c | /bin/cat
/bin/mv /tmp/d/b /tmp/d/e; /bin/head -n 1 /tmp/d/e; /bin/touch /tmp/d/e/f 2> /dev/null; /bin/rm -r /tmp/d
load fork -n 3 > /dev/null
load pipe -n 20 > /dev/null
load malloc -n 200 > /dev/null
load fault -n 64 > /dev/null
sysctl debug.ktr.mask=NONE > /dev/null
"""
ADDRESSES = range(0x400000, 1 << 47)  # of user programs, from where they are linked to
IDS = {"pid", "parent", "child", "tid", "by"}
_runs = {}


def need(arch):
    image = ROOT / "build" / arch / ("kestrel" + MACHINES[arch].image)
    for path in (image, ROOT / "build" / arch / "initrd.cpio"):
        if not path.exists():
            raise Skipped(f"{path.relative_to(ROOT)} is not built; make ARCH={arch}")


def run(arch, smp):
    """The script's run on an architecture, once."""
    need(arch)
    if (arch, smp) not in _runs:
        # One CPU counts instructions: when processes take turns depends on nothing outside.
        _runs[arch, smp] = boot(SCRIPT, smp=smp, trace=True, sets=["debug.ktr.entries=65536"], arch=arch,
                                options=["--icount"] if smp == 1 else []).expect()
        check_eq(_runs[arch, smp].gaps, [], f"gaps in the trace of {arch}")
    return _runs[arch, smp]


class Names:
    """Ids in the order in which they are seen: the same on all machines, whatever the numbers are."""

    def __init__(self, seen=()):
        self.seen = dict(seen)

    def __call__(self, kind, number):
        if number <= 0:
            return number  # none, any, or an error
        return self.seen.setdefault((kind, number), f"{kind}{sum(k == kind for k, _ in self.seen)}")


class Plain:
    """Events of one architecture, without what may differ."""

    def __init__(self, arch):
        self.names = Names()
        abi = (ROOT / "kernel/abi" / arch / "abi_md.h").read_text()
        self.own = {name: int(value, 8) for name, value in re.findall(r"#define (O_\w+) +(0\d+)", abi)}

    def flags(self, value):
        """Flags whose bits are the architecture's by name, and the rest."""
        names = tuple(sorted(name for name, bit in self.own.items() if value & bit))
        return names + (value & ~sum(self.own.values()),) if names else value

    def value(self, word, value):
        """A parameter by the word before it in the format."""
        if word in IDS:
            return self.names("process", value)
        if word == "ino":
            return self.names("inode", value)
        if word == "flags":
            return self.flags(value)
        if isinstance(value, int) and value in ADDRESSES:
            return "address"
        return value

    def __call__(self, e):
        """The event as a list of strings and numbers."""
        what, _, rest = e["fmt"].partition(": ")
        args = e["args"]
        words = re.findall(r"(\S+) %", rest)
        check_eq(len(words), len(args), f"parameters of {e['fmt']!r}")
        plain = [self.value(word, value) for word, value in zip(words, args)]
        if what == "stat" and args[1] & 0o111 and args[1] & 0o170000 == 0o100000:
            plain[2] = "size of a program"
        return [what] + plain


def threads(arch, smp):
    """[(name, [plain event])] of the script's threads in the order of birth."""
    plain, found, order = Plain(arch), {}, []
    events = [e for e in run(arch, smp).events if set(e["class"].split(",")) & {"PROC", "VFS"}]
    for e in events:
        if m := re.match(r"fork: parent (\d+) child (\d+) ", e["text"]):
            order.append(int(m.group(2)))
            plain.names("process", order[-1])
    born = plain.names.seen
    for tid in order:
        plain.names = Names(born)  # what a thread saw first does not depend on the others
        found[tid] = [plain(e) for e in events if e["tid"] == tid]
    last_name = {}
    for e in events:
        if m := re.match(r"exec: pid (\d+) name (\S+) ", e["text"]):
            last_name[int(m.group(1))] = m.group(2)
    return [(last_name.get(tid, "sh"), found[tid]) for tid in order]


def same(arch, smp, only=None):
    """Compares an architecture with the first one."""
    here, there = threads(arch, smp), threads(ARCHS[0], smp)
    if only is not None:
        here, there = [t for t in here if t[0] == only], [t for t in there if t[0] == only]
        check_eq(len(here), 1, f"threads that execute {only}")
    check_eq([name for name, _ in here], [name for name, _ in there], f"programs, in the order of birth ({arch})")
    check(sum(len(events) for _, events in here) > (10 if only else 200), "hardly any events")
    for n, ((name, mine), (_, theirs)) in enumerate(zip(here, there)):
        for at, (a, b) in enumerate(zip(mine + [None], theirs + [None])):
            if a != b:
                raise Failed(f"{name}, thread {n}, event {at}: found {a} on {arch}, expected {b} as on {ARCHS[0]}\n"
                             f"before it: {mine[max(0, at - 5):at]}\nafter it, {arch}: {mine[at + 1:at + 4]}\n"
                             f"after it, {ARCHS[0]}: {theirs[at + 1:at + 4]}")


def on_each_other(name):
    def register(fn):
        for arch in ARCHS[1:]:
            test(f"{name} ({arch} and {ARCHS[0]})")(lambda arch=arch: fn(arch))
        return fn
    return register


@on_each_other("the events of every thread of a script are the same, on one CPU")
def every_thread(arch):
    check_eq(run(arch, 1).out, run(ARCHS[0], 1).out, f"output on {arch}")
    same(arch, 1)


@on_each_other("the events of one thread are the same, on four CPUs")
def one_thread(arch):
    check_eq(run(arch, 4).out, run(ARCHS[0], 4).out, f"output on {arch}")
    for program in ("cp", "ls", "rm"):
        same(arch, 4, program)


@on_each_other("a stream says which architecture wrote it, and one ktrdump reads all")
def says_which(arch):
    for a in (arch, ARCHS[0]):
        status, out, err = ktrdump("report", "events", "-i", run(a, 1).trace)
        check_eq((status, err), (0, ""), f"ktrdump of a stream of {a}")
        check_match(rf"^trace .* events {len(run(a, 1).events)}\b", out, "ktrdump report events")
        # ktr/WIRE.md: a text of the header, which comes first; its length in front.
        head = run(a, 1).trace.read_bytes()[:256]
        check(bytes([len(a)]) + a.encode() in head, f"no text {a} in the stream's header: {head}")


def listing(arch, command):
    need(arch)
    return set(boot(command + "\n", arch=arch).expect().out.splitlines())


@on_each_other("sysctls have the same names and descriptions")
def sysctls(arch):
    check_eq(listing(arch, "sysctl -da") ^ listing(ARCHS[0], "sysctl -da"), set(), "lines of sysctl -d on one of them only")


@on_each_other("the portable kernel has the same trace points")
def sites(arch):
    def portable(a):
        rows = [line.split(None, 6) for line in listing(a, "sysctl -n debug.ktr.sites") if not line.startswith("id ")]
        return {(row[4], row[-1]) for row in rows if row[4].startswith(("kernel/", "ktr/")) and "/abi/" not in row[4]}

    check(len(portable(arch)) > 100, "hardly any trace points")
    check_eq(portable(arch) ^ portable(ARCHS[0]), set(), "trace points of one of them only")


def names(path, arch):
    """The names of a file's tests on a port, without numbers (harness.turn())."""
    out = subprocess.run([path, "--list"], env=dict(os.environ, KESTREL_ARCH=arch), capture_output=True, text=True, check=True).stdout
    return {re.sub(r"\d", "", line) for line in out.splitlines()}


@test("a test that one of the ports makes, by turns, is a test of each of them")
def turns():
    files = [p for p in pathlib.Path(__file__).parent.glob("test_*.py") if re.search(r"\bportable_test\b", p.read_text())]
    check(len(files) > 5, f"{len(files)} files have tests of portable code, expected more")
    for path in files:
        check_eq(names(path, ARCHS[1]), names(path, ARCHS[0]), f"{path.name}: tests of {ARCHS[1]}")


NUMBERS = """
import sys
sys.path.insert(0, sys.argv[1])
import harness
for portable in (False, True):
    harness.test(str(portable), portable=portable)(None)
    harness._running = str(portable)
    print(*harness.cpus())
"""


@test("a run of everything makes a test with 1 CPU and with 4: one on each port, or both where only one port makes it")
def numbers_of_cpus():
    def found(arch, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("KESTREL_TURNS", "KESTREL_WHOLE")}
        command = [sys.executable, "-c", NUMBERS, str(pathlib.Path(__file__).parent)]
        env |= {"KESTREL_ARCH": arch} | more
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.splitlines()

    for more, shared in (({}, ["1", "4"]), ({"KESTREL_TURNS": "1"}, ["1 4", "1 4"])):
        both, portable = zip(*(found(arch, **more) for arch in ARCHS))
        check_eq((sorted(both), sorted(portable)), (["1", "4"], shared), f"numbers of CPUs, with {more}")
    check_eq(found(ARCHS[0], KESTREL_WHOLE="1"), ["1 4", "1 4"], "numbers of CPUs in make soak")


if __name__ == "__main__":
    main()
