#!/usr/bin/python3
"""test_ktrace.py - ktrace and kdump: what a process did is in the file, all of it and in order, and nobody else is hurt."""
import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import console
import tracecheck as tc
from harness import BUILD, ROOT, boot, check, check_eq, check_match, main, portable_test as test, times

sys.path.insert(0, str(ROOT / "tests/unit"))
import ktrace_records  # noqa: E402

USER_TEST = ["--file", f"/bin/user_test={BUILD}/user_test"]
KEPT = "kern.ktrace.request_pool=2048"  # queues in which nothing is dropped


def rows(out, pid=None):
    """The objects of `kdump --jsonl` in a console's text."""
    found = [json.loads(line) for line in out.replace("\r", "").splitlines() if line.startswith('{"pid":')]
    return [r for r in found if pid is None or r["pid"] == pid]


def whole(records):
    """Each process's records are in the order of their times, between one beginning and one end, and none is missing."""
    by_pid = collections.defaultdict(list)
    for r in records:
        by_pid[r["pid"]].append(r)
    for pid, mine in by_pid.items():
        times = [tuple(map(int, r["time"].split("."))) for r in mine]
        check_eq(times, sorted(times), f"times of process {pid}")
        check_eq([r["type"] for r in (mine[0], mine[-1])], ["CTOR", "DTOR"], f"first and last record of process {pid}")
        check_eq([r for r in mine if "dropped" in r], [], f"process {pid} lost records")
    return by_pid


def in_order(records, what):
    times = [tuple(map(int, r["time"].split("."))) for r in records]
    check_eq([pair for pair in zip(times, times[1:]) if pair[0] > pair[1]][:3], [], f"times that go back in {what}")


def calls(records):
    """[call, result, arguments] of each system call that begins and ends in the records."""
    found, begun = [], None
    for r in records:
        if r["type"] == "CALL":
            begun = r
        elif r["type"] == "RET" and begun is not None:
            check_eq(r["code"], begun["code"], "the call that returns")
            value = -r["error"] if r["error"] else r["value"]
            found.append([begun.get("call", "unknown"), value, *begun["args"].values()])
            begun = None
    return found


def marks(records):
    return [bytes.fromhex(r["data"]).decode() for r in records if r["type"] == "USER"]


def between(records, first, last):
    """The records from the return of the call that made one mark to the mark `last`."""
    at = {bytes.fromhex(r["data"]): i for i, r in enumerate(records) if r["type"] == "USER"}
    return records[at[first] + 2:at[last] - 1]


@test("the trace has the calls, arguments, results, names, structs and data that a program has logged itself")
def logged():
    run = boot("ktrace -f /tmp/k user_test ktrace calls\nkdump --jsonl -f /tmp/k\necho ====\n"
               "ktrace -t c -f /tmp/k user_test ktrace calls > /tmp/log\nkdump --jsonl -f /tmp/k\n", options=USER_TEST).expect()
    records, only_calls = (rows(part) for part in run.out.split("===="))
    whole(records)
    log = [[w if i == 0 else int(w) for i, w in enumerate(m.split())] for m in re.findall(r"^call (.*?)\r?$", run.out, re.M)]
    check(len(log) > 25, f"{len(log)} calls in the log")
    mine = between(records, b"begin", b"end")
    check_eq(calls(mine), log, "calls")
    io = [(r["write"], bytes.fromhex(r["data"])) for r in mine if r["type"] == "GIO"]
    text = b"first contents of the buffer\n"
    check_eq(io, [(True, text), (True, b"one\0three"), (False, b"contents"), (False, text[14:] + b"one\0three"), (False, b""),
                  (True, b"through a pipe"), (False, b"through a pipe")], "input and output")
    names = ["/tmp/ktraced", "/etc/motd", "/nothing", "/tmp/dir", "/tmp/dir", "/tmp/other", "/tmp/other", "/tmp"]
    check_eq([r["name"] for r in mine if r["type"] == "NAMI"], names, "names")
    size = (ROOT / "userland/root/etc/motd").stat().st_size
    structs = [r for r in mine if r["type"] == "STRU"]
    check_eq([r["struct"] for r in structs], ["stat", "stat", "timespec", "timespec", "rlimit"], "structs")
    check_eq([(oct(r["mode"]), r["size"]) for r in structs[:2]], [("0o100640", 38), ("0o100644", size)], "files")
    check_eq(struct.unpack("<qq", bytes.fromhex(structs[3]["data"])), (0, 1001), "the nap")
    check_eq(struct.unpack("<qq", bytes.fromhex(structs[4]["data"]))[0], 1024, "open files")
    check_eq({r["type"] for r in only_calls}, {"CTOR", "CALL", "RET", "DTOR"}, "records with -t c")


TOOLS = """ls -l /
cat /etc/motd
cp /etc/motd /tmp/copy
grep -n Kestrel /etc/motd
head -1 /etc/motd
hexdump /etc/motd
mkdir /tmp/a
mv /tmp/copy /tmp/a
ps
rm -r /tmp/a
seq 3
sysctl kern.hz
tail -1 /etc/motd
test -e /etc/motd
touch /tmp/b
chmod 600 /tmp/b
echo hello there
true
false
nproc
dmesg
kill -0 1
sleep 0.01
su 1000 ls /tmp
uptime
wc /etc/motd
sh -c 'echo $(seq 3) | tee /tmp/c; cat < /nothing'
load switch -n 3
load lock -n 3
load fork -n 3
load pipe -n 3
load fault -n 3
load syscall -n 30
load malloc -n 30
load file -n 3 -j 2
load mix -n 2 -j 2
ktr probes -c
dtrace -q -n 'BEGIN { exit(0); }'
kdump -f /tmp/first
ktrdump -i /tmp/first"""


def signature(machine_rows):
    """{pid: [call, arguments or result]…} of records. Calls that do not exist have no name: they are left out."""
    found = collections.defaultdict(list)
    for r in (r for r in machine_rows if "call" in r or "code" not in r):
        if r["type"] == "CALL":
            found[r["pid"]].append(("call", r["call"], tuple(r["args"].values())))
        elif r["type"] == "RET":
            found[r["pid"]].append(("ret", r["call"], -r["error"] if r["error"] else r["value"]))
    return found


def moved(machine_rows):
    """{pid: [[fd, written, bytes]…]} that the calls and results of records say, and what the I/O of records says."""
    said, found, begun = collections.defaultdict(list), collections.defaultdict(list), {}
    for r in (r for r in machine_rows if "call" in r or "code" not in r):
        if r["type"] == "CALL":
            begun[r["pid"]] = r
        elif r["type"] == "RET" and r["value"] >= 0 and r["call"] in ("read", "readv", "write", "writev"):
            said[r["pid"]].append([begun[r["pid"]]["args"]["fd"], r["call"].startswith("write"), r["value"]])
        elif r["type"] == "GIO":
            found[r["pid"]].append([r["fd"], r["write"], r["bytes"]])
            check_eq(len(r["data"]) // 2, min(r["bytes"], 64), "bytes of data")
    return said, found


@test("for each tool and each workload, the trace has the calls that the event log has, and their I/O, on two CPUs")
def tools():
    script = "sysctl kern.ktrace.genio_size=64 > /dev/null\nktrace -i -f /tmp/first ls -l /\n"
    script += "".join(f"ktrace -a -i -t ci -f /tmp/k {line} > /dev/null 2> /dev/null\n" for line in TOOLS.splitlines())
    run = boot(script + "kdump --jsonl -f /tmp/k\n", smp=2, trace=True, mask="SYSC", sets=[KEPT, "debug.ktr.entries=1048576"],
               mem="1G").expect()
    tc.no_gaps(run)
    records = rows(run.out)
    traced = signature(records)
    check_eq(len(whole(records)), len(traced), "processes")
    check(len(traced) >= len(TOOLS.splitlines()) + 20, f"{len(traced)} processes")
    said, found = moved(records)
    check_eq(found, said, "I/O")
    check(len(found) > 40, f"{len(found)} processes with I/O")
    logged_calls = collections.defaultdict(list)
    for e in run.events:
        if m := re.match(r"syscall (\w+): " + " ".join(rf"arg{n} (\S+)" for n in range(6)), e["text"]):
            logged_calls[e["tid"]].append(("call", m[1], tuple(int(a, 16) for a in m.groups()[1:])))
        elif m := re.match(r"sysret (?!unknown)(\w+): ret (-?\d+)", e["text"]):
            logged_calls[e["tid"]].append(("ret", m[1], int(m[2])))
    for pid, mine in traced.items():
        said = [(kind, name, what[:len(mine[i][2])] if kind == "call" and i < len(mine) and mine[i][0] == "call" else what)
                for i, (kind, name, what) in enumerate(logged_calls[pid][-len(mine):])]
        check_eq(mine, said, f"process {pid}")


@test("children inherit: a tree of 50 processes, and what each did; without -i only the first")
def tree():
    run = boot("ktrace -i -t u -f /tmp/k user_test ktrace tree 50\nkdump --jsonl -f /tmp/k\necho ====\n"
               "ktrace -t u -f /tmp/k user_test ktrace tree 50\nkdump --jsonl -f /tmp/k\n", smp=4, options=USER_TEST).expect()
    with_i, without = (rows(part) for part in run.out.split("===="))
    by_pid = whole(with_i)
    check_eq(len(by_pid), 50, "processes")
    found = {int(marks(mine)[0].split()[1]): mine for mine in by_pid.values()}
    check_eq(sorted(found), list(range(1, 51)), "nodes")
    for node, mine in found.items():
        check_eq(marks(mine), [f"node {node}", f"leaf {node}"], f"marks of node {node}")
        if node > 1:
            check_eq(mine[0]["parent"], found[node // 2][0]["pid"], f"parent of node {node}")
    check_eq([marks(mine) for mine in whole(without).values()], [["node 1", "leaf 1"]], "without -i")


@test("children of a process with several threads are traced, all of them: while another thread waits in vfork, and at the same time")
def threads():
    run = boot("ktrace -i -t u -f /tmp/k user_test ktrace threads 4 20\nkdump --jsonl -f /tmp/k\n", smp=4, options=USER_TEST).expect()
    found = collections.Counter(mark for mine in whole(rows(run.out)).values() for mark in marks(mine))
    check_eq(found, {"of fork": 1, "of vfork": 1, "of thread": 80}, "marks of children")


@test("16 processes on four CPUs into one file: every record of each is there, in order")
def many():
    run = boot("ktrace -i -t u -f /tmp/k user_test ktrace many 16 400\nkdump --jsonl -f /tmp/k\n", smp=4, sets=[KEPT], mem="1G",
               options=USER_TEST).expect()
    by_pid = whole(rows(run.out))
    check_eq(len(by_pid), 17, "processes")
    counted = [marks(mine) for mine in by_pid.values() if len(mine) > 2]
    check_eq(counted, [[str(n) for n in range(400)]] * 16, "marks")
    in_order(rows(run.out), "the file")


ALL_ARE = "until test $(ps | grep -c '[u]ser_test ktrace many') = 7; do :; done\n"
MOVES = "".join(f"ktrace -a -d -t u -f /tmp/{f} -p $pid\n" for f in "ab" * times(2, 4))


def moved_between(program, moves, beginnings, of):
    """A program runs on four CPUs while it is moved between two files: each is in the order of times."""
    with tempfile.TemporaryDirectory() as folder:
        run = boot(f"{program} &\npid=$!\n{moves}ktrace -C\nkill -9 $pid\ncp /tmp/a /tmp/b /host\n", smp=4, mem="1G",
                   options=[*USER_TEST, "--share", folder]).expect()
        for f in "ab":
            out = subprocess.check_output([ROOT / "build/host/kdump", "--jsonl", "-f", f"{folder}/{f}"], text=True)
            check(out.count("CTOR") >= beginnings and out.count(of) > 100, f"file {f}: {run.out}\n{out[:2000]}")
            in_order(rows(out), f"file {f}")


@test("six processes that are moved between two files while they run on four CPUs: each file is in the order of times")
def moved_order():
    moved_between("user_test ktrace many 6 0", ALL_ARE + MOVES, 6 * times(2, 4), "USER")


MOVES_THREADS = """until test $(ls /proc/$pid/task | wc -l) -ge 4; do :; done
for n in 30 30 60 60 90 90 120 120; do
f=$(test "$f" = a && echo b || echo a)
ktrace -a -t c -f /tmp/$f -p $pid
until test $(kdump -f /tmp/$f | grep -c CALL) -gt $n; do :; done
done
"""


@test("the same with a process whose four threads make records at the same time")
def moved_threads():
    moved_between("user_test ktrace threads 4 1000000", MOVES_THREADS, 4, "CALL")


LEFT = """cp /bin/user_test /tmp/program
chmod 4755 /tmp/program
mkdir /tmp/m
mount -t tmpfs t /tmp/m
chmod 777 /tmp/m
touch /tmp/m/k
ktrace -f /tmp/m/k -p $$
ktrace -C
umount /tmp/m && echo unmounted
mount -t tmpfs t /tmp/m
chmod 777 /tmp/m
su 1000 ktrace -f /tmp/m/k /tmp/program ktrace count 0 &
until kdump -f /tmp/m/k | grep -q execve; do :; done
until umount /tmp/m 2> /dev/null; do :; done
echo unmounted
"""


@test("a process that is not traced any more leaves its file, as soon as ktrace(2) returns, or after it has executed a set-id program")
def left():
    run = boot(LEFT, options=USER_TEST).expect()
    check_eq(re.findall(r"^unmounted", run.out, re.M), ["unmounted"] * 2, "file systems without a user")


EXITS = """user_test ktrace crowd 1 > /dev/null &
until test -s /tmp/crowd; do :; done
echo 'for i in 1 2 3 4 5 6 7 8 9 10; do ktrace -a -t s -f /tmp/crowd /bin/true; done' > /tmp/ten
dtrace -qn 'fbt::ktrace_sync:entry /execname == "true"/ { @ = count(); } END { printa("waits %@d\\n", @); }' -c 'sh /tmp/ten'
"""


@test("a process that ends waits for one pass of its file, though others make records all the time")
def exits():
    run = boot(EXITS, smp=2, options=USER_TEST).expect()
    check_match(r"^waits 10\r?$", run.out, "waits of ten processes")


HELD = """dtrace -qn 'lockstat:::adaptive-acquire /stringof(arg1) == "ktrace"/ { self->held = 1; }
lockstat:::adaptive-release /stringof(arg1) == "ktrace"/ { self->held = 0; }
fbt::file_write:entry /execname == "ktrace"/ { @[self->held] = count(); }
END { printa("writes with %d %@d\\n", @); }' -c 'ktrace -t u -f /tmp/k user_test ktrace count 2000'
"""


@test("no lock of ktrace is held while it writes: processes of others fork and exit")
def unlocked():
    run = boot(HELD, smp=2, options=USER_TEST).expect()
    found = dict(re.findall(r"^writes with (\d) (\d+)\r?$", run.out, re.M))
    check_eq(list(found), ["0"], f"writes by whether the lock is held: {run.out}")


def slow(folder):
    """Options: the folder is /host, does its first write, and then, for hours, none."""
    return ["--", "-fsdev", f"local,id=slow,path={folder},security_model=none,throttling.bps-write=1", "-device",
            "virtio-9p-pci,fsdev=slow,mount_tag=host,disable-legacy=on"]


WAITS = "c=$!\nuntil grep -q ktrwait /proc/$c/wchan; do :; done\nkill -9 $c\nwait $c\necho status $?\n"


@test("a file that stalls holds up who is traced to it, but not others, nor the end of the machine; who waits for it can be killed")
def stalls():
    with tempfile.TemporaryDirectory() as folder:
        run = boot("user_test ktrace count 0 &\npid=$!\nktrace -t u -f /host/slow -p $pid &\nuntil test -s /host/slow; do :; done\n"
                   "ktrace -t u -f /tmp/k user_test ktrace count 20000\nkdump -f /tmp/k | grep -c USER\n"
                   f"ktrace -C & {WAITS}ktrace -f /tmp/l -p $pid & {WAITS}", smp=2, mem="512M", sets=["vfs.share=host:/host"],
                   options=[*USER_TEST, *slow(folder)]).expect()
        size = pathlib.Path(folder, "slow").stat().st_size
    check_match(r"^20000\r?$", run.out, "marks in the other file")
    check_eq(re.findall(r"status (\d+)", run.out), ["137"] * 2, "who waits, and is killed")
    check(0 < size < 70000, f"{size} bytes in the file that stalls")


TAKEN = """cp /bin/user_test /tmp/program
chmod 4755 /tmp/program
su 1000 ktrace -t i -f /host/slow sh -c 'echo $$ > /tmp/pid; until test -e /tmp/go; do :; done; exec /tmp/program ktrace calls' &
until test -s /tmp/pid; do :; done
ktrace -t i -f /tmp/k -p $(cat /tmp/pid) &
until kdump --jsonl -f /tmp/k | grep -q CTOR; do :; done
touch /tmp/go
until kdump -f /tmp/k | grep -q 'through a pipe'; do :; done
"""


@test("a process that user 0 traces on is traced to the new file at once, though the old one stalls: the old one has nothing of a set-id program")
def taken():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        boot(TAKEN, smp=2, mem="512M", sets=["vfs.share=host:/host"], options=[*USER_TEST, *slow(folder)]).expect()
        check(b"through a pipe" not in pathlib.Path(folder, "slow").read_bytes(), "the old file has what the program wrote")


USERS = """for u in 1000 1001; do
su $u ktrace -i -t u -f /tmp/$u user_test ktrace many 3 0 &
until test -s /tmp/$u; do :; done
done
sysctl kern.uidinfo
for f in a b a; do
for p in $(ps | grep '[u]ser_test ktrace many' | sed 's/^ *//; s/ .*//'); do ktrace -a -t u -f /tmp/$f -p $p; done
done
killall -9 user_test
wait
until ! ps | grep -q '[[]ktrace]'; do :; done
sysctl kern.uidinfo
cp /tmp/1000 /tmp/1001 /tmp/a /tmp/b /host
"""


@test("two users trace at the same time, and user 0 moves their processes to one file: each file is in order; no thread and no memory is left")
def users():
    with tempfile.TemporaryDirectory() as folder:
        run = boot(USERS, smp=4, mem="1G", options=[*USER_TEST, "--share", folder]).expect()
        found = {}
        for f in ("1000", "1001", "a", "b"):
            found[f] = rows(subprocess.check_output([ROOT / "build/host/kdump", "--jsonl", "-f", f"{folder}/{f}"], text=True))
            in_order(found[f], f"file {f}")
    lives = {f: collections.Counter(r["type"] for r in records if r["type"] in ("CTOR", "DTOR")) for f, records in found.items()}
    check_eq(lives, {f: {"CTOR": n, "DTOR": n} for f, n in (("1000", 4), ("1001", 4), ("a", 16), ("b", 8))}, "beginnings and ends")
    kib = [int(n) for n in re.findall(r"^100[01] .* (\d+)\r?$", run.out, re.M)]
    check(len(kib) == 4 and min(kib[:2]) > 86 > 20 > max(kib[2:]), f"KiB of the kernel that each user holds: {kib}")


@test("a program that makes records faster than they are written waits, and none is lost")
def waits():
    run = boot("dtrace -qn 'fbt::ktrace_sync:entry /execname == \"user_test\"/ { @ = count(); } END { printa(\"waits %@d\\n\", @); }'"
               " -c 'ktrace -t u -f /tmp/k user_test ktrace count 6000'\nkdump -f /tmp/k > /tmp/j\ngrep -c USER /tmp/j\ngrep -c DROP /tmp/j\ntrue\n",
               sets=["kern.ktrace.request_pool=64"], smp=2, options=USER_TEST).expect()
    check_eq(re.findall(r"^\d+", run.out, re.M), ["6000", "0"], "marks and drops")
    check_match(r"^waits [1-9]", run.out, "how often it waited")


@test("on one CPU, the records of several processes are in the file in the order of their times")
def order():
    run = boot("ktrace -i -t u -f /tmp/k user_test ktrace many 5 300\nkdump --jsonl -f /tmp/k\n", options=USER_TEST).expect()
    found = [r for r in rows(run.out) if r["type"] == "USER"]
    check_eq(len(found), 1500, "marks")
    check(sum(a["pid"] != b["pid"] for a, b in zip(found, found[1:])) > 5, "no two processes took turns")
    times = [tuple(map(int, r["time"].split("."))) for r in found]
    check_eq(times, sorted(times), "times")


@test("when nobody is traced any more, a system call takes as many instructions as before")
def off():
    run = boot("user_test bench ktrace\n", options=[*USER_TEST, "--icount"]).expect()
    took = dict(re.findall(r"bench ktrace_(\w+) (\S+) instructions", run.out))
    off, on, after = (float(took[name]) for name in ("off", "on", "after"))
    check(abs(off - after) < 0.1 and on > off, f"{took}")


@test("attached and detached 20 times while it runs, on four CPUs: between the two, nothing is missing")
def attach():
    with tempfile.TemporaryDirectory() as folder:
        run = boot("user_test ktrace count 0 &\npid=$!\nfor n in $(seq 10); do ktrace -a -t u -f /tmp/k -p $pid; ktrace -c -p $pid\n"
                   "ktrace -a -t u -f /tmp/k -p $pid; ktrace -C; done\nkill -9 $pid\nwait\nktr probes -c | grep syscall\ncp /tmp/k /host\n",
                   smp=4, sets=[KEPT], mem="1G", options=[*USER_TEST, "--share", folder]).expect()
        out = subprocess.check_output([ROOT / "build/host/kdump", "--jsonl", "-f", f"{folder}/k"], text=True)
    check_eq(out.count("TOR"), 40, "beginnings and ends")
    check_match(r"^syscall +\d+ +0\r?$", run.out, "probes that stay on")
    last, inside, marks = None, False, 0
    for r in rows(out):
        if r["type"] in ("CTOR", "DTOR"):
            check_eq(r["type"] == "CTOR", not inside, "beginning and end alternate")
            last, inside = None, r["type"] == "CTOR"
            continue
        check("dropped" not in r, f"lost: {r}")
        if inside:
            number = int(bytes.fromhex(r["data"]))
            check(last is None or number == last + 1, f"{number} follows {last}")
            last, marks = number, marks + 1
    check(marks > 1000, f"{marks} marks between a beginning and an end")


@test("traced to another file, what a process does ends in the one file and begins in the other; no link is followed to it")
def moved_on():
    files = "abab"
    run = boot("user_test ktrace count 0 &\npid=$!\n" + "".join(f"ktrace -a -t u -f /tmp/{f} -p $pid\nuntil [ $(wc -c < /tmp/{f}) -gt {n + 1}0000 ]; do :; done\n" for n, f in enumerate(files)) +
               "kill -9 $pid\nwait\nfor f in a b; do kdump --jsonl -f /tmp/$f > /tmp/j; echo status $?; kdump -l -f /tmp/$f > /dev/null\n"
               "grep -B1 -A1 TOR /tmp/j | grep -v ^--; done\nln -s a /tmp/link; ktrace -f /tmp/link true || echo refused; kdump --jsonl -f /tmp/a | grep -c CTOR\n",
               smp=2, sets=[KEPT], mem="1G", options=USER_TEST).expect()
    records = rows(run.out)
    found = sorted(records, key=lambda r: (r["time"], r["type"] == "CTOR"))  # an end has the same time
    second = next(i for i, r in enumerate(records) if i > 0 and r["type"] == "CTOR" and records[i - 1]["type"] == "DTOR" and r["time"] < records[i - 1]["time"])
    check_eq(records, sorted(records[:second], key=lambda r: r["time"]) + sorted(records[second:], key=lambda r: r["time"]), "the order in each file")
    check_eq([r["type"] for r in found if r["type"] != "USER"], ["CTOR", "DTOR"] * len(files), "beginnings and ends")
    numbers = [int(bytes.fromhex(r["data"])) for r in found if r["type"] == "USER"]
    check_eq(numbers[2:-1:2], [n + 1 for n in numbers[1:-2:2]], f"what follows in the other file: {numbers}")
    check_eq(run.out.count("status 0"), 2, "files that are whole")
    check_match(r"^ktrace: /tmp/link: Symbolic link loop\r?\nrefused\r?\n2", run.out, "a link, and the file that it leads to")


@test("tracing of a whole tree begins and ends while its processes fork and exit, on four CPUs")
def storm():
    run = boot("load fork -n 1500 -j 4 &\npid=$!\nfor n in $(seq 8); do ktrace -a -i -d -t c -f /tmp/k -p $pid; ktrace -C; done 2> /dev/null\n"
               "kill -9 $pid\nwait\nkdump --jsonl -f /tmp/k > /tmp/j\necho status $?\ngrep TOR /tmp/j\nktr probes -c | grep syscall\n",
               smp=4, mem="1G", sets=[KEPT]).expect()
    check_match(r"^status 0\r?$", run.out, "kdump's status")
    check_match(r"^syscall +\d+ +0\r?$", run.out, "probes that stay on")
    lives = collections.defaultdict(list)
    for r in rows(run.out):
        lives[r["pid"]].append(r["type"])
    check(len(lives) > 4, f"{len(lives)} processes")
    for pid, mine in lives.items():
        check_eq(mine, ["CTOR", "DTOR"] * (len(mine) // 2), f"beginnings and ends of process {pid}")


@test("-g traces a group, -p one process, and -d its children, too; -c ends it for those whom it names")
def groups():
    with console.guest(*USER_TEST, smp=2) as c:
        console.shell(c, "user_test ktrace many 3 0 &")
        pid = console.shell(c, "echo =$!=").split("=")[3]
        console.shell(c, f"user_test ktrace count 0 & other=$!; until ps | grep -q '{pid} .*user_test'; do :; done")
        for how, traced in ((f"-p {pid}", 1), (f"-d -p {pid}", 4), (f"-g {pid}", 4)):
            console.shell(c, f"ktrace -t u -f /tmp/k {how}")
            console.shell(c, "until test -s /tmp/k; do :; done; ktrace -c " + how)
            out = console.shell(c, "kdump --jsonl -f /tmp/k | grep TOR > /tmp/j; grep -c CTOR /tmp/j; grep -c DTOR /tmp/j")
            check_eq([int(w) for w in out.split()[-2:]], [traced] * 2, f"beginnings and ends with {how}")
        console.shell(c, f"kill -9 -{pid}; kill -9 $other; wait")


@test("who set the tracing may die; a traced process may be killed in any call: its file is whole")
def deaths():
    run = boot("user_test ktrace count 0 &\npid=$!\nsh -c \"ktrace -t u -f /tmp/k -p $pid; kill -9 \\$\\$\"\nuntil test -s /tmp/k; do :; done\n"
               "kill -9 $pid\nwait\nkdump --jsonl -f /tmp/k | head -1\nkdump --jsonl -f /tmp/k | tail -1\n"
               "ktrace -t csw -f /tmp/l sleep 1000 &\npid=$!\nuntil kdump -f /tmp/l | grep -q nanslp; do :; done\nkill $pid\nwait\n"
               "kdump -f /tmp/l | tail -20\necho status $?\n", smp=2, options=USER_TEST).expect()
    first, last = rows(run.out)
    check_eq((first["type"], last["type"], last["exited"], last["status"]), ("CTOR", "DTOR", True, 9), "of the one that was killed")
    preempted = r"(?:.*CSW   (?:stop|resume) kernel \"\"\r?\n)*"
    check_match(r"CALL  clock_nanosleep\(CLOCK_REALTIME,0,0x[0-9a-f]+,0x[0-9a-f]+\)\r?\n" + preempted + r".*CSW   stop kernel \"nanslp\"\r?\n"
                r".*CSW   resume kernel \"nanslp\"\r?\n" + preempted + r".*RET   clock_nanosleep -1 errno 4 Interrupted system call\r?\n.*PSIG  SIGTERM SIG_DFL code=SI_USER", run.out, "a call that a signal ends")


@test("a signal that a program catches has its handler in the trace, and one that ends it has none")
def signals():
    run = boot("ktrace -t su -f /tmp/k user_test ktrace caught\nkdump --jsonl -f /tmp/k\n", options=USER_TEST).expect()
    found = [r for r in rows(run.out) if r["type"] == "PSIG"]
    check_eq([r["action"] != 0 for r in found], [True, False], "handlers")  # the libc of the guest has no return from a handler
    check_eq(found[0]["signal"], 10, "the signal that is caught")


@test("a file that cannot grow: a line on the console, the rest goes on, and what is in the file can be read")
def full():
    run = boot("sysctl kern.maxdatapagesperuid=40 > /dev/null\nmkdir /tmp/d\n"
               "su 1000 ktrace -i -t u -f /tmp/k user_test ktrace many 4 2000\necho command $?\n"
               "dmesg | grep ktrace\nkdump --jsonl -f /tmp/k > /tmp/j\necho status $?\ntail -1 /tmp/j\nls -l /tmp/k\n"
               "sysctl -q kern.maxdatapagesperuid=1000\nsu 1000 ktrace -a -t u -f /tmp/k user_test ktrace count 3\n"
               "kdump -f /tmp/k > /tmp/j\necho appended $?\ntail -1 /tmp/j\nsysctl kern.uidinfo\n"
               "(ulimit -f 64; ktrace -t u -f /tmp/l user_test ktrace count 2000)\nkdump -f /tmp/l > /tmp/j\n"
               "echo limited $? $(wc -c < /tmp/l)\n", smp=2, options=USER_TEST).expect()
    check_match(r"^command 0\r?$", run.out, "the command's status")
    check_eq(len(re.findall(r"ktrace: /tmp/k: error 28, tracing to it ends", run.out)), 1, "lines")
    check_match(r"^status 0\r?$", run.out, "kdump's status")
    size = int(check_match(r"^-\S+ +1 +user +user +(\d+) ", run.out, "the file")[1])
    check(100000 < size <= 40 * 4096, f"{size} bytes")
    check_match(r'^ +"2"\r?$', run.out, "tracing to the file, later")
    check_match(r"^appended 0\r?$", run.out, "kdump of both")
    size = int(check_match(r"^limited 0 (\d+)\r?$", run.out, "a file that has reached its limit")[1])
    check(32768 - 100 < size <= 32768, f"{size} bytes")
    check_match(r"^1000 0 0 0 4\d ", run.out, "what the user holds: pages of a file, and no open file")


FLOOD = r"""cat > /tmp/flood << 'END'
ulimit -f 0
f=$(printf '/tmp/x\n[ 9.9] oops\033[2J\302\2332J')
for i in $(seq 100); do ktrace -f "$f" true; done
END
su 1000 sh /tmp/flood; echo ====; dmesg
"""


@test("files that cannot be written do not fill the console, and their names cannot forge its lines")
def flood():
    out = boot(FLOOD, smp=2).expect().out
    told = re.findall(r"^\[ *([\d.]+)\] ktrace: /tmp/x\?\[ 9\.9\] oops\?\[2J\?\?2J: error 27", out.split("====")[1], re.M)
    check(len(told) >= 10, f"{len(told)} lines of 100 traces in\n{out}")
    seconds = float(told[-1]) - float(told[0])
    check(len(told) <= 10 * (seconds // 5 + 2), f"{len(told)} lines in {seconds} s, expected 10 in 5 s:\n{out}")
    check(all(text not in out for text in ("\033[2J", "\x9b", "\n[ 9.9]")), f"a line that a name has forged in {out!r}")


@test("a program whose set-id bits give it rights is traced on only if user 0 has begun it")
def gains():
    run = boot("cp /bin/true /tmp/true\nchmod 4755 /tmp/true\nsu 1000 ktrace -t c -f /tmp/u /tmp/true\n"
               "ktrace -t c -f /tmp/r /bin/su 1000 /tmp/true\n"
               "kdump -f /tmp/u | grep -c execve\nfor f in u r; do kdump -f /tmp/$f | grep -c exit_group; done\n").expect()
    check_eq([int(n) for n in re.findall(r"^(\d+)\r?$", run.out, re.M)], [1, 0, 1], "calls in the traces")


@test("what a user traces to a file, or allocates of it, takes its set-id bits; what root traces does not")
def disowned():
    run = boot("touch /tmp/s; chmod 6777 /tmp/s; ktrace -a -t c -f /tmp/s true; stat -c 'mode %a' /tmp/s\n"
               "su 1000 ktrace -a -t c -f /tmp/s true; stat -c 'mode %a' /tmp/s\n"
               "kdump -f /tmp/s | grep -c exit_group; chmod 6777 /tmp/s\n"
               "su 1000 busybox fallocate -l 9999 /tmp/s; stat -c '%a' /tmp/s\n")
    found = re.findall(r"^(?:mode )?(\d+)\r?$", run.expect().out, re.M)
    check_eq(found, ["6777", "777", "2", "777"], "modes, and calls")


@test("only user 0 and the owner may trace, and only to a file that they may write")
def rights():
    run = boot("user_test ktrace refused\nuser_test ktrace dropped\nkdump -f /tmp/dropped\nsu 1000 ktrace -f /tmp/u -p 1\necho\n"
               "su 1000 ktrace -f /etc/motd true\nsu 1000 touch /tmp/theirs\nsu 1001 ktrace -a -f /tmp/theirs true\n"
               "su 1000 ktrace -C\nsu 1000 ktrace -t c -f /tmp/own true\nkdump -f /tmp/own | tail -1\n"
               "touch /tmp/groups\nchown 0:1000 /tmp/groups\nchmod 664 /tmp/groups\nsu 1000 ktrace -a -t c -f /tmp/groups true\n"
               "kdump -f /tmp/groups | grep -c exit_group\nktrace -t y -f /tmp/y sysctl kern.hz\nkdump -f /tmp/y\n"
               "/bin/su 1000 user_test ktrace count 0 &\npid=$!\nsu 1001 ktrace -f /tmp/p -p $pid\n"
               "until su 1000 ktrace -t u -f /tmp/taken -p $pid 2> /dev/null; do :; done\nsu 1000 chmod 400 /tmp/taken\nuntil dmesg | grep taken; do :; done\n"
               "kdump --jsonl -f /tmp/taken > /tmp/j\necho taken $?\nktrace -f /tmp/r -p $pid\n"
               "su 1000 ktrace -c -p $pid\nkill -9 $pid\nktrace -f /tmp/x -p 99999\nktrace -t q true\nktrace\necho status $?\n"
               "ktrace -f /tmp/x nosuch\necho status $?\n"
               "for o in '-c -C' '-c -c' '-p 1 -g 1' '-p 1 -p 2' '-C -p 1' '-g 1 -C'; do ktrace $o; echo status $?; done\n", smp=2, options=USER_TEST).expect()
    check_match(r"^refused: ok\r?$", run.out, "what is refused")
    check_match(r"^dropped: ok\r?$", run.out, "a process that drops its rights")
    check_match(r'^ +"still traced"\r?$', run.out, "its trace")
    check_match(r"ktrace: /tmp/taken: error 13, tracing to it ends", run.out, "a file that its owner may not write any more")
    check_match(r"^taken 0\r?$", run.out, "its records")
    refusals = [line.strip() for line in run.out.splitlines() if re.match(r"ktrace: (?!/tmp/taken)", line)]
    check_eq(refusals, ["ktrace: /tmp/u: Operation not permitted", "ktrace: /etc/motd: Permission denied", "ktrace: /tmp/theirs: Permission denied",
                        "ktrace: /tmp/p: Operation not permitted",
                        "ktrace: ktrace: Operation not permitted", "ktrace: process 99999: No such process",
                        'ktrace: -t: found "q", expected some of cfinpstuwy+', "ktrace: nosuch: No such file or directory"] +
             ["ktrace: only one of -c and -C, expected once"] * 2 + ["ktrace: only one of -p and -g, expected once"] * 2 +
             ["ktrace: -C ends all tracing: expected neither -p nor -g"] * 2, "refusals")
    check_match(r"CALL  exit_group\(0\)", run.out, "a user's own trace")
    check_match(r"^1\r?$", run.out, "the trace in a file of the user's group")
    check_match(r'sysctl +SCTL  "kern.hz"', run.out, "a sysctl's name")
    check_match(r"^usage: ktrace", run.out, "usage")
    check_eq(re.findall(r"^status (\d+)", run.out, re.M), ["2", "127"] + ["2"] * 6, "statuses")


@test("records that find no room are counted: recorded and dropped faults are as many as the kernel served")
def drops():
    run = boot("ktrace -t f -f /tmp/k user_test ktrace faults 1500\nkdump --jsonl -f /tmp/k\n", sets=["kern.ktrace.request_pool=64",
               "debug.ktr.entries=262144", "debug.ktr.on=ktr::fault_serve:"], trace=True, options=USER_TEST).expect()
    tc.no_gaps(run)
    records = rows(run.out)
    pid = records[0]["pid"]
    served = [e for e in run.events if e["tid"] == pid and e["text"].startswith("page fault")]
    begun = next(i for i, e in enumerate(served) if len(served) - i <= sum(r.get("dropped", 0) + (r["type"] in ("PFLT", "PRET")) for r in records))
    dropped = sum(r.get("dropped", 0) for r in records)
    check(dropped > 0, "no record was dropped")
    check_eq(sum(r["type"] in ("PFLT", "PRET") for r in records) + dropped, len(served) - begun, "records and drops")
    check(len(served) - begun >= 3000, f"{len(served) - begun} faults and returns")


@test("kern.ktrace.genio_size limits the data of a record, and kern.ktrace.* take only what makes sense")
def sizes():
    run = boot("sysctl kern.ktrace.genio_size=10 > /dev/null\nktrace -t i -f /tmp/k head -n 1 /etc/motd > /dev/null\nkdump -f /tmp/k | head -2\n"
               "sysctl kern.ktrace.genio_size=70000\nsysctl kern.ktrace.request_pool=1\ntrue\n").expect()
    size = (ROOT / "userland/root/etc/motd").stat().st_size
    check_match(rf'GIO   fd 3 read {size} bytes, 10 recorded\r?\n       "Welcome to"', run.out, "a cut record")
    check_match(r"genio_size.*70000", run.out + run.err, "too large")
    check_match(r"request_pool.*1", run.out + run.err, "too small")


@test("ktrace -o - prints what a command does while it runs, and ends with it")
def live():
    with console.guest(*USER_TEST, smp=2) as c:
        c.sendline("ktrace -o - -t nc cat")
        c.expect(r'NAMI  "/bin/cat"')
        c.expect(r"CALL  read\(0,")  # it waits for a line
        c.sendline("hello")
        c.expect(r"RET   read 6")
        c.expect(r"CALL  read\(0,")
        c.send("\x04")
        c.expect(r"CALL  exit_group\(0\)")
        console.prompt(c)
        check("/tmp/ktrace" not in console.shell(c, "ls /tmp").replace("ls /tmp", ""), "the temporary file stays")
        console.shell(c, "su 1000 sh -c 'for i in $(seq 300); do : > /tmp/ktrace.$i; done'")
        out = console.shell(c, "ktrace -o - true")
        check_match(r"CALL  exit_group\(0\)", out, "another user's files with the names of process numbers")


@test("ktrace -o - ends with what it traces, and says that records are missing, if the kernel could write no more")
def live_cut():
    command = "ktrace -i -o - -t c sh -c 'ls -lR /proc/self > /dev/null; true'"
    run = boot(f"for n in 0 8; do\n(ulimit -f $n; {command}; echo status $?) 2>&1 | tail -2\ndone\n", smp=2).expect()
    said = r"kdump: process \d+ has ended, but its last records are missing: dmesg says why\nstatus 1\n"
    check_match(rf"\A({said}){{2}}\Z", run.out.replace("\r", ""), "both")


@test("a damaged file in the guest: kdump tells where, and prints the rest")
def damaged():
    arch = BUILD.name
    good = b"".join(ktrace_records.one_of_each(arch))
    paths = {}
    from harness import scratch_file
    for name, data in (("good", good), ("cut", good[:-5]), ("bad", good[:1000] + b"\xff" * 50 + good[1050:]), ("garbage", bytes(range(256)) * 20)):
        paths[name] = scratch_file(".kt")
        paths[name].write_bytes(data)
    files = [f"--file=/tmp/{name}={path}" for name, path in paths.items()]
    run = boot("".join(f"kdump -f /tmp/{name} > /tmp/out\necho {name} $? $(wc -l < /tmp/out)\n" for name in paths), options=files).expect()
    found = dict(re.findall(r"^(\w+) (\d) \d+", run.out, re.M))
    check_eq(found, {"good": "0", "cut": "1", "bad": "1", "garbage": "1"}, "statuses")
    check_match(r"kdump: offset \d+: the last record is cut: \d+ bytes", run.out, "a cut file")


if __name__ == "__main__":
    main()
