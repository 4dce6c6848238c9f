#!/usr/bin/python3
"""test_dtrace_hard.py - dtrace and its engine under what is too much: variables and aggregations beyond their memory, large
scripts, consumers that are stopped, killed or starve, users without privileges, actions that stop the machine.

Whenever a consumer ends, the kernel panics if its firings do not add up (dtrace_unload()): each test here checks that, too.
"""
import functools
import re
import sys

from console import DB, guest, prompt, shell
from harness import boot, check, check_eq, check_match, main, scratch_file, portable_test as test, test as arch_test, times

STATEMENTS = 500
LINE = "/* " + "x" * 990 + " */ BEGIN { n++; }\n"
SCRIPTS = {
    # Each CPU counts by itself: a number that all count would be taken twice, and make one element of two.
    # A CPU's element of n is there before the memory is full: without it each statement would lose two.
    "vars": "BEGIN { n[0] = 1; n[1] = 1; n[2] = 1; n[3] = 1; }\n"
            "syscall:::entry {\n" + "x[cpu, n[cpu]++] = 1;\n" * STATEMENTS + f"@ = sum({STATEMENTS}); }}\n",
    "aggs": "syscall:::entry {\n" + "@x[n++] = count();\n" * STATEMENTS + f"@ = sum({STATEMENTS}); }}\n"
            "END { printa(\"%@d\\n\", @); trunc(@); trunc(@x); }\n",
    "clauses": "".join(f"BEGIN {{ n += {i}; }}\nsyscall::getppid:entry /pid == {i}/ {{ @[{i}] = count(); }}\n" for i in range(500)) +
               'BEGIN { printf("%d\\n", n); exit(0); }\n',
    "large": LINE * (2**20 // len(LINE) + 1) + 'BEGIN { printf("%d\\n", n); exit(0); }\n',
    "too_many": "BEGIN { n++; }\n" * 4097,
    "setopt": ("BEGIN { " + 'setopt("quiet", "1"); ' * 60 + "}\n") * 100 + 'BEGIN { printf("set\\n"); exit(0); }\n',
    "missing": "BEGIN { " + "".join(f"@a[{i}] = count(); " for i in range(400)) + "@q[1] = lquantize(1, 0, 60000, 1); }\n"
               'BEGIN { printa(@a, @q); printf("shown\\n"); exit(0); }\n',
    "too_long": "BEGIN { " + "n++;\n" * 6000 + " }\n",
}
NAMES = 1000
BEYOND = """
dtrace -qn 'BEGIN { exit(0); }' > /dev/null
sysctl -n vm.pages.free
dtrace -x dynvarsize=1m -qs /tmp/vars.d -c 'load mix -n ROUNDS -j 4' 2>&1; echo status $?
sysctl -n vm.pages.free
echo ==
dtrace -x aggsize=64k -qs /tmp/aggs.d -c 'load mix -n 2 -j 4' 2>&1; echo status $?
echo ==
for s in clauses large too_many too_long; do dtrace -qs /tmp/$s.d 2>&1; echo status $?; done
echo ==
chmod 666 /dev/dtrace /dev/probe
su 1000 dtrace -qn BEGIN 2>&1; echo status $?
su 1000 ktr profile '*' -- true 2>&1
echo ==
sysctl kern.dtrace.deadman_s=1 > /dev/null
dtrace -qn 'syscall:::entry { @ = count(); } END { printa("counted %@d\\n", @); }' > /tmp/other &
other=$!
dtrace -qn 'tick-10ms { trace("tick\\n"); }' > /tmp/stopped 2>&1 &
p=$!
until grep -q tick /tmp/stopped; do :; done
kill -STOP $p
dtrace -qn 'tick-1s /++n == 3/ { exit(0); }'
kill -CONT $p; wait $p; echo status $?; tail -n 1 /tmp/stopped
dtrace -qn 'tick-10ms { trace("tick\\n"); }' > /tmp/killed 2>&1 &
p=$!
until grep -q tick /tmp/killed; do :; done
kill -KILL $p; wait $p; echo status $?
dtrace -x bufsize=4k -x switchrate=100s -qn 'syscall:::entry { trace(arg0); @ = count(); } END { printa("seen %@d\\n", @); trunc(@); }' \
    -c 'load mix -n 20 -j 4' > /tmp/starved 2>&1
grep -c 'drops on CPU' /tmp/starved
load syscall -n 100000000 > /dev/null &
load=$!
dtrace -x aggsize=4m -qn 'syscall:::entry /n < 1000/ { @[n++] = count(); } tick-10ms /n == 1000/ { printa(@); m++; }
    tick-10ms /m == 90/ { exit(0); }' > /tmp/busy 2>&1
echo busy $?; tail -n 1 /tmp/busy; kill -KILL $load; wait $load
kill -TERM $other; wait $other; echo status $?; cat /tmp/other
sysctl -n kern.dtrace.consumers
echo ==
until grep -q mutex_lock /tmp/locks; do dtrace -qn 'lockstat:::adaptive-block { @[stack()] = sum(arg1); }' -c 'load file -n 400 -j 4' > /tmp/locks; done 2>/dev/null
cat /tmp/locks
echo ==
dtrace -ln fbt:::entry | awk 'NR > 1 && NR <= 1 + NAMES {printf "%s%s:%s:%s:%s", sep, $2, $3, $4, $5; sep = ",\\n"} END {print " {n++;}"}' > /tmp/names.d
(ulimit -v 48000; dtrace -s /tmp/names.d -n 'BEGIN { exit(0); }' 2>&1 | grep matched)
echo ==
dtrace -wqn 'BEGIN { chill(100000000); began = 1; } profile-997 /!began/ { early++; } profile-997 /began/ { printf("early %d\\n", early); exit(0); }'
dtrace -wqn 'proc:::signal-send /args[2] == 18/ { raise(18); n++; } proc:::exit /pid == $target/ { printf("sent %d\\n", n); exit(0); }' -c 'busybox kill -18 1'
echo ==
(ulimit -v 80000; dtrace -x bufsize=4m -qs /tmp/setopt.d; dtrace -x aggsize=4m -qs /tmp/missing.d | tail -n 2) 2>&1
"""


@functools.cache
def parts():
    """What the steps of BEYOND print."""
    options = []
    for name, text in SCRIPTS.items():
        path = scratch_file(".d")
        path.write_text(text)
        options += ["--file", f"/tmp/{name}.d={path}"]
    script = BEYOND.replace("ROUNDS", str(times(4, 40))).replace("NAMES", str(NAMES))
    return boot(script, smp=4, options=options).expect().out.split("==\n")


def drops(text, kind):
    return sum(int(n) for n in re.findall(rf"^dtrace: (\d+) {kind}", text, re.M))


@test("a hundred thousand elements in memory for few: what has no room is counted, and the memory comes back", shared="parts")
def variables():
    out = parts()[0]
    free, after = (int(n) for n in re.findall(r"^(\d+)$", out, re.M))
    check_match(r"^status 0$", out, "exit status")
    stored = int(re.search(r"^ +(\d{6,7})$", out, re.M)[1])
    check(stored >= times(100000, 1000000), f"{stored} elements were stored")
    lost = drops(out, "dynamic variable drop")
    check(0 < stored - lost < 2**20 // 32, f"of {stored} elements {lost} were dropped")
    check(free - after < 1500, f"{free} pages were free before, {after} after it")


@test("aggregations beyond their memory: what has no room is counted", shared="parts")
def aggregations():
    out = parts()[1]
    check_match(r"^status 0$", out, "exit status")
    stored = int(re.search(r"^(\d{5,})$", out, re.M)[1])
    lost = drops(out, "aggregation drop")
    check(0 < lost < stored, f"of {stored} elements {lost} were dropped")


@test("scripts of 1,000 clauses and of 1 MB run; what is too many or too long is an error that says so", shared="parts")
def scripts():
    check_eq(parts()[2], f"{499 * 500 // 2}\n\nstatus 0\n{2**20 // len(LINE) + 1}\n\nstatus 0\n"
             "dtrace: failed to compile script /tmp/too_many.d: [D_CLAUSES] /tmp/too_many.d, line 1: found 4097 clauses, expected at most 4095\n"
             "status 1\ndtrace: failed to compile script /tmp/too_long.d: [D_CODE_SIZE] /tmp/too_long.d, line 1: the clause has 18001 "
             "instructions, expected at most 16384\nstatus 1\n", "output")


@test("no probe fires before BEGIN has ended, on whatever CPU", shared="parts")
def begin():
    check_match(r"^early 0$", parts()[7], "probes that fired earlier")


@test("raise() at a probe that its own signal fires sends one", shared="parts")
def raised():
    check_match(r"^sent 2$", parts()[7], "signals: the program's, and the action's")


RAISED = """cat > /tmp/s <<'END'
trap 'echo signal; exit' USR2
: < /etc/motd
: < /etc/motd
echo none
END
dtrace -wqn 'syscall::openat:entry /pid == $target && copyinstr(arg1) == "/etc/motd"/ { raise(12); }' -c 'sh /tmp/s'
"""


@arch_test("raise() reaches the process with one CPU and the interrupt controller GICv2", arch=("aarch64", "it is Arm's"))
def raised_on_gicv2():
    out = boot(RAISED, options=["--machine", "virt,gic-version=2"]).expect().out.split()
    check_eq(out, ["signal"], "what the program says")


@test("a clause that names 1,000 probes takes 48 MB at most to compile", shared="parts")
def names():
    check_match(rf"matched {NAMES} probes$", parts()[6], "what dtrace says")


@test("6,000 calls of setopt(), and 400 rows without a distribution of 60,000 levels, take 80 MB at most", shared="parts")
def memory():
    check_eq(parts()[8].split(), ["set", "shown"], "output")


@test("a user without privileges gets an error that says so, whatever the devices' modes say", shared="parts")
def unprivileged():
    check_eq(parts()[3], "dtrace: failed to initialize dtrace: DTrace requires additional privileges\nstatus 1\n"
             "ktr: /dev/probe: Operation not permitted\n", "output")


@test("consumers that are stopped or killed lose their probes, one that does not read loses records; another one goes on", shared="parts")
def consumers():
    out = parts()[4]
    check_match(r"^status 1\ndtrace: processing aborted: (?i:abort due to systemic unresponsiveness)$", out, "the stopped one")
    check_match(r"^status 137$", out, "the killed one")
    check_match(r"^[1-9]$", out, "CPUs on which the one that does not read lost records")
    check_match(r"^busy 0\n(?!dtrace)", out, "the one that prints for longer than the dead-man waits")
    check_match(r"^status 0\n\ncounted [1-9]\d{3,}\n", out, "the other one")
    check_match(r"^0$", out, "consumers afterwards")


@test("lockstat:::adaptive-block shows who waited for a mutex", shared="parts")
def contended():
    check_match(r"kernel`mutex_contended\+0x\w+\n +kernel`mutex_lock\+0x\w+\n(?: +kernel`.*\n)+ +\d+$", parts()[5], "stacks")


@test("breakpoint() and panic() only with -w; breakpoint() enters the debugger, and panic() says at which probe")
def stop_machine():
    with guest(smp=2) as c:
        for action in ("breakpoint", "panic"):
            out = shell(c, f"dtrace -qn 'BEGIN {{ {action}(); }}'")
            check("Destructive actions not allowed" in out, f"{action}() without -w: {out!r}")
        c.sendline("dtrace -wqn 'BEGIN { breakpoint(); printf(\"went on\\n\"); exit(0); }'")
        c.expect_exact("dtrace: breakpoint action")
        c.expect(DB)
        c.sendline("continue")
        c.expect("\nwent on")
        prompt(c)
        c.sendline("dtrace -wqn 'syscall::openat:entry /execname == \"cat\"/ { panic(); }' -c 'cat /etc/motd'")
        c.expect(r"panic: dtrace: panic action at probe syscall:\w+:openat:entry")
        c.expect(DB)


if __name__ == "__main__":
    sys.exit(main())
