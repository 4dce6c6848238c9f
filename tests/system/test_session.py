#!/usr/bin/python3
"""test_session.py - ktr graph and ktr profile: whose calls they show, what they count, and that nothing stays on after them."""
import re

from harness import boot, check, check_eq, check_match, cpus, main, portable_test, test

ENTRIES = "debug.ktr.entries=65536"
NOISE = "while true; do cat /etc/motd >/dev/null; sleep 0.05; done &\nnoise=$!\n"
ROW = re.compile(r"^  ([\w.]+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)\r?$", re.M)
RAW = re.compile(r"^([\w.]+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)\r?$", re.M)


def threads_of(run, name):
    """The ids of the threads of that name, and of those that they make."""
    found = set()
    for e in run.events:
        if e["thread"] == name:
            found.add(e["tid"])
        if (m := re.match(r"fork: parent (\d+) child (\d+)", e["text"])) and int(m[1]) in found:
            found.add(int(m[2]))
    return found


@test("ktr graph records the calls of its command and of the command's children only")
def follows():
    for smp in cpus():
        follows_on(smp)


def follows_on(smp):
    run = boot(f"sysctl debug.ktr.mask=PROC >/dev/null\n{NOISE}"
               "ktr graph -d 1 -x '[!sr]*' ramfs_read -- load fork -n 3 -j 2 >/dev/null\nkill -9 $noise\n",
               trace=True, smp=smp, sets=[ENTRIES]).expect()
    calls = [e for e in run.events if e["text"].startswith(("-> ", "<- "))]
    children = {e["tid"] for e in calls if e["text"].startswith("-> sys_exit")}
    # The command has the name ktr until it is executed.
    expected = threads_of(run, "load") | {e["tid"] for e in run.events if e["thread"] == "ktr"}
    check(len(children) >= 3, f"the ends of {len(children)} processes, expected at least 3")
    check_eq({e["tid"] for e in calls} - expected, set(), "other threads whose calls are recorded")


@portable_test("a session's probes go off when its process is killed")
def killed():
    for smp in cpus():
        killed_on(smp)


def killed_on(smp):
    run = boot("sysctl -n debug.fbt.text\nktr graph sys_read -- sleep 1000 &\nsession=$!\n"
               "until ktr probes -c | grep '^fbt' | grep -v ' 0$' >/dev/null; do true; done\n"
               "sysctl -n debug.fbt.text\nktr probes fbt:fs:sys_read:entry\n"
               "sysctl -n debug.ktr.off=fbt:fs:sys_read:entry\nkill -9 $session\nwait\nktr graph sys_write -- sysctl -n debug.ktr.off\n"
               "ktr probes -c | grep '^fbt'\nsysctl -n debug.fbt.text\n", smp=smp).expect()
    before, during, after = re.findall(r"^[0-9a-f]{8}\r?$", run.out, re.M)
    check(before != during, "the code is the same although functions are traced")
    check_eq(after, before, "checksum of the code")
    check_match(r"^ *\d+ on +ktr/\d+ +fbt", run.out, "the owner's name")
    check_match(r"^fbt +\d+ +0\r?$", run.out, "probes that are on at the end")
    kept = re.findall(r"1 kept on by (ktr/\d+)", run.out)
    check(len(kept) == 2 and kept[0] == kept[1], f"who kept the probe on, then, and when another session has his number: {kept}")


@portable_test("ktr profile counts every call, and its times add up")
def profile():
    for smp in cpus():
        profile_on(smp)


def profile_on(smp):
    run = boot(f"{NOISE}ktr on 'fbt:fs:ramfs_*:entry'\n"
               "ktr profile 'ramfs_*' -- sh -c 'load file -n 20 -j 4; /bin/sysctl debug.fbt.profile'\n"
               "ktr off >/dev/null\nkill -9 $noise\n", trace=True, smp=smp, sets=[ENTRIES, "debug.ktr.mask=PROC"]).expect()
    raw = {}
    for name, _, *numbers in RAW.findall(run.out):
        hits, timed, ns, self_ns, high, low = map(int, numbers)
        have = raw.setdefault(name, [0, 0, 0, 0, 0])
        raw[name] = [a + b for a, b in zip(have, (hits, timed, ns, self_ns, (high << 64) + low))]
    rows = {name: numbers for name, *numbers in ROW.findall(run.out)}
    hits, timed, ns, self_ns, square = raw["ramfs_write"]
    check_eq(hits, timed, "calls of ramfs_write, and those that ended")
    check(0 < self_ns <= ns, f"own time {self_ns} ns of {ns} ns")
    variance = (square - ns * ns // hits) // (hits - 1)
    expected = [str(hits), *(f"{n // 1000}.{n % 1000:03}" for n in (ns, self_ns, ns // hits, variance // 1000))]
    check_eq(rows["ramfs_write"], expected, "the row of ramfs_write")
    times = [float(row[1]) for row in rows.values()]
    check_eq(times, sorted(times, reverse=True), "times, in the table's order")
    # The log, for the same threads.
    threads = threads_of(run, "load")
    logged = sum(e["text"].startswith("-> ramfs_write(") and e["tid"] in threads for e in run.events)
    check(hits > 100, f"{hits} calls of ramfs_write, expected more than 100")
    check_eq(hits, logged, "calls that were counted, and events")


@portable_test("-p: a process that runs already, and what it makes")
def attaches():
    run = boot(f"{NOISE}ktr profile -p $noise sys_execve sleep 0.3\nktr graph -p $noise -d 1 sys_execve sleep 0.3\n"
               "kill -9 $noise\n", sets=[ENTRIES], options=["--icount"]).expect()
    check_match(r"^  sys_execve +[1-9]\d* ", run.out, "calls of the process's children")
    check_match(r"\|  sys_execve\(\)", run.out, "a graph of the process's children")


@test("a function that ends with a jump to another one has returned")
def jumps():
    run = boot("ktr profile 'demo_*' sysctl debug.fbt.demo\n").expect()
    rows = {name: numbers for name, *numbers in ROW.findall(run.out)}
    check_eq([rows[name][0] for name in ("demo_even", "demo_odd")], ["2", "2"], "calls")
    for name in ("demo_even", "demo_odd"):
        check(float(rows[name][1]) > 0, f"{name}: no time: {rows[name]}")


@portable_test("-d: how deep; -x: not these")
def depth():
    run = boot("ktr graph -d 2 -x 'mutex_*' ramfs_read -- cat /etc/motd\n"
               "ktr graph -x 'uio_*' ramfs_read -- cat /etc/motd\n").expect()
    first, second = run.out.split("# CPU")[1:]
    check_match(r"\|    uio_put\(\);", first, "a leaf at the last depth")
    check(not re.search(r"\d\) .*\|      |mutex_", first), f"a call that is too deep, or excluded:\n{first}")
    check("mutex_lock" in second and "uio_put" not in second, f"expected mutex_lock, but not uio_put:\n{second}")


@portable_test("what a session cannot do, it says")
def refuses():
    run = boot("ktr profile ramfs_raed true\nktr profile nothing_such true\nktr profile -p 99999 sys_read true\nktr graph -p 0 sys_read true\n"
               "ktr graph sys_read\nktr profile -d 3 sys_read true\n"
               "ktr profile sys_read -- ktr profile -p 1 sys_write true\nktr graph sys_read sh -c 'ktr graph -p $$ sys_read true; true'\n"
               "ktr graph sys_read nothing_such_command 2>&1; echo status $?\n"
               "su 7 ktr profile sys_read true\ntrue\n").expect()
    for expected in (r'^ktr: nothing matches "fbt::ramfs_raed:"; did you mean fbt::ramfs_read:\?',
                     r'^ktr: nothing matches "fbt::nothing_such:"', r"^ktr: process 99999: No such process",
                     r"^ktr: .*PID", r"^usage: ktr graph .*", r"^usage: ktr profile .*", r"^ktr: somebody else is counting", r"^ktr: process \d+: Resource busy",
                     r"nothing_such_command: No such file or directory", r"^status 127\r?$",
                     r"^ktr: /dev/probe: (Operation not permitted|Permission denied)"):
        check_match(expected, run.out + run.err, expected)


if __name__ == "__main__":
    main()
