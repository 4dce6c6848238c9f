#!/usr/bin/python3
"""test_linux.py - programs of Linux: a static one over glibc."""
import fcntl
import json
import os
import platform
import re
import tempfile

import tracecheck as tc
from harness import (ARCH, BUILD, DEADLINE_S, ROOT, TURNS, WHOLE, Skipped, boot, check, check_eq, check_match, dynamic_program,
                     host_linux_test, main, need_package, portable_test, tap, test, times, turn)

FILE = ["--file", f"/bin/linux_test={BUILD}/linux_test"]


# As of test_stress, where the static program computes.
SECONDS = float(os.environ.get("KESTREL_STRESS_SECONDS") or times(0.5, 1))


def run(smp, options, word="", also=""):
    guest = boot(f"linux_test {word}\n{also}", smp=smp, options=options, timeout=DEADLINE_S + 4 * SECONDS)
    check(tap(guest.out) > 10, f"few tests\n{guest.out}")
    guest.expect(0)
    return guest


WITH_ONE_CPU = "a static program over glibc gets what Linux promises, with 1 CPU"


@portable_test(WITH_ONE_CPU)
def one_cpu():
    run(1, FILE, "" if WHOLE else "brief")


@test("a static program over glibc gets what Linux promises, with 4 CPUs")
def four_cpus():
    if not WHOLE:
        raise Skipped("the dynamic program does the same; make soak runs both")
    run(4, FILE)


@test("the same program is started by Debian's dynamic linker, with 4 CPUs")
def dynamic():
    """In a run of everything each port makes all parts once: where the static program does, this one makes what the linker
    has a part in."""
    parts = "calls threads signals" if TURNS and turn(WITH_ONE_CPU) == ARCH else ""
    guest = run(4, dynamic_program("/bin/linux_test"), f"brief {parts}", f"linux_test compute {SECONDS}\n")
    check_match(r"^workers: rounds \d+, signals \d+, alarms \d+, exact$", guest.out.replace("\r", ""), "8 threads compute")


@portable_test("who goes on as its own child leaves others their share of the CPU, where only instructions count")
def hoppers():
    guest = boot("linux_test brief clones\n", smp=1, options=[*FILE, "--icount"])
    check(tap(guest.out) > 5, f"few tests\n{guest.out}")
    guest.expect(0)


@portable_test("SETALL does not write to another set that has got the number while values are copied")
def renumbered():
    guest = boot("dtrace -wqn 'fbt::copy_in:entry/arg2 == 64000/ { chill(200000000); }' -c '/bin/linux_test sysv-renumbered'\n",
                 smp=2, options=FILE).expect()
    check_match("^the set went, no value was written$", guest.out.replace("\r", ""), "SETALL")


@portable_test("a process that one of its threads ends after another has taken SIGKILL was killed")
def killed_among_threads():
    guest = boot("dtrace -wqn 'fbt::proc_signal_die:entry { chill(100000000); }' -c '/bin/linux_test killed-among'\n",
                 smp=4, options=FILE).expect()
    check_match("^killed 8 of 8$", guest.out.replace("\r", ""), "processes that were killed")


AT_ONCE = r"""dtrace -wqn 'syscall::exit_group:entry, syscall::exit:entry
/execname == "linux_test" && (arg0 == 3 || arg0 == 5)/
{ this->in = (int *)alloca(4); *this->in = 1; copyout(this->in, arg1, 4); }
syscall::exit_group:entry, syscall::exit:entry
/execname == "linux_test" && (arg0 == 3 || arg0 == 5)/ { chill(10000000); }
fbt::copy_in:entry /execname == "linux_test" && arg2 == 32 && tid != pid/ { chill(10000000); }
' -c '/bin/linux_test at-once'
"""


@portable_test("who is ended by exec ends no other; who exits tells its own status; sigaction() tells what it replaces")
def at_once():
    guest = boot(AT_ONCE, smp=2, options=[*FILE, "--icount"]).expect()
    check_match("^exec: 0, message: 0x500, actions: 1$", guest.out.replace("\r", ""), "what two threads do at once")


@test("maps of files and shared memory do in the guest what they do on the host, in a static program and in a dynamic one")
def maps():
    with tempfile.TemporaryDirectory() as folder:
        expected = host_linux_test("maps", f"{folder}/m")
    check(len(expected.splitlines()) > 60, expected)
    for options in (FILE, dynamic_program("/bin/linux_test")):
        found = boot("linux_test maps /tmp/maps\n", smp=4, options=options).expect().out.replace("\r", "")
        check_eq(found.splitlines(), expected.splitlines(), "what maps do")


def on_the_host(word):
    """The program's output there. Its files have fixed names: another run of the tests waits until this one has ended."""
    tmp = os.open("/tmp", os.O_RDONLY)
    try:
        fcntl.flock(tmp, fcntl.LOCK_EX)
        return host_linux_test(word)
    finally:
        os.close(tmp)


@test("record locks, far descriptors, pseudo-terminals, queued signals, sockets and so on do on the host what they must do in the guest")
def as_on_the_host():
    if ARCH != platform.machine():
        raise Skipped("a program of the other port does not run on this host")
    for word in ("locks", "ptys", "devs", "ptrace", "queue", "caps", "vdso", "memory", "edges", "inotify", "mounts", "xattrs", "pidfds", "misc", "looks", "names", "bytes", "sockets", "inet", "streams", "datagrams", "fasync", "ttys", "ways", "usage", "seals", "events", "files", "links", "moves", "texts", "waits", "stops", "stacks", "cputime"):
        check(tap(on_the_host(word)) > 0, f"no test of {word}")  # an ordinary user's may be few


MOST = r"""dtrace -qn '
fbt::send_all:entry { self->n = 0; } fbt::task_signal_owner:entry { self->n++; }
fbt::send_all:return /self->n > most/ { most = self->n; } END { printf("most %d\n", most); }' -c '/bin/linux_test fasync'
"""


@portable_test("who watches a file is told while no lock of it, of another file's contents or of the tree of names is held; one interrupt tells 16 owners of O_ASYNC files at most")
def told_without_locks():
    out = boot("dtrace -qn 'fbt::fsnotify_parent:entry { @[curthread->mutexes > 0 ? stringof(curthread->held->name) : \"none\"] = count(); }' "
               "-c '/bin/linux_test brief inotify'\n" + MOST, smp=2, options=FILE).expect().out
    check_eq(set(re.findall(r"^ +(\w+) +\d+\r?$", out, re.M)), {"none", "file"}, "the innermost lock")  # the lock of an open directory's offset
    check_match(r"^most 16\r?$", out, "the owners that one interrupt tells")


WALKS = """dtrace -qn 'fbt::vnode_lookup:entry, fbt::vnode_mknod:entry /execname == "linux_test"/ { n++; }
fbt::vnode_lookup:entry, fbt::vnode_mknod:entry /(uintptr_t)`unix_lock.owner == (uintptr_t)curthread/ { held++; }
END { printf("walks %d held %d\\n", n, held); }' -c '/bin/linux_test brief sockets'
"""


# Its owner may wait for a disk, and who polls a set holds the lock of all sets.
POLLS = """dtrace -qn 'fbt::unix_poll:entry { self->polls = 1; n++; }
fbt::mutex_lock:entry /self->polls/ { locks++; }
fbt::unix_poll:return { self->polls = 0; }
END { printf("polls %d locks %d\\n", n, locks); }' -c '/bin/linux_test brief sockets'
"""


@portable_test("no path is walked with the lock of AF_UNIX, which a disk would stop; poll() takes no mutex")
def unix_walks():
    out = boot(WALKS + POLLS, smp=2, options=FILE).expect().out.replace("\r", "")
    check("not ok" not in out, out)
    check_match(r"^polls [1-9]\d+ locks 0$", out, "calls of poll")
    check_match(r"^walks [1-9]\d+ held 0$", out, "calls that look for a path")


ROOM = """dtrace -qn 'fbt::unix_queue_has_room:entry /pid == $target/ { self->t = timestamp; }
fbt::unix_queue_has_room:return /self->t/ { printf("ns %d\\n", timestamp - self->t); }
' -c '/bin/linux_test sockets-among NUMBER'
"""


@portable_test("who reads from a full queue tells those who send there, and walks no other sockets")
def room_is_told():
    script = ROOM.replace("NUMBER", "0") + ROOM.replace("NUMBER", "2000")
    out = boot(script, smp=1, options=["--icount", *FILE]).expect().out
    ns = [int(n) for n in re.findall(r"^ns (\d+)\r?$", out, re.M)]
    check_eq(len(ns), 4, f"calls, two without other sockets and two among 2000: {ns}")
    few, many = min(ns[:2]), min(ns[2:])  # an interrupt may come in one of them
    check(many < 2 * few, f"nanoseconds without other sockets, and among 2000: {ns}")


IN_SET = """dtrace -qn '
syscall::epoll_ctl:entry /pid == $target && arg1 == 3/ { self->t = timestamp; }
syscall::epoll_ctl:return /self->t/ { printf("ns %d\\n", timestamp - self->t); self->t = 0; }
fbt::epoll_tell:entry /pid == $target/ { self->w = timestamp; }
fbt::epoll_tell:return /self->w/ { printf("told %d\\n", timestamp - self->w); }' -c '/bin/linux_test epoll-among NUMBER'
"""


@portable_test("a descriptor in a set of epoll is found among many; who has the events that it wants looks no further")
def large_sets():
    script = IN_SET.replace("NUMBER", "20") + IN_SET.replace("NUMBER", "2000")
    out = boot(script, smp=1, options=["--icount", *FILE]).expect().out
    for word in ("ns", "told"):
        ns = [int(n) for n in re.findall(rf"^{word} (\d+)\r?$", out, re.M)]
        check_eq(len(ns), 16, f"{word}: calls, 8 among 20 and 8 among 2000: {ns}")
        few, many = min(ns[:8]), min(ns[8:])  # an interrupt may come in one of them
        check(many < 2 * few, f"{word}: nanoseconds among 20, and among 2000: {ns}")


SIGNALS = r"""for part in signals pidfds timers; do dtrace -qn 'proc:::signal-send { sent++; } proc:::exit { ended++; }
fbt::poll_notify:entry /(uintptr_t)arg0 == (uintptr_t)&`proc_signal_news/ { told++; }
fbt::poll_notify:entry /(uintptr_t)arg0 == (uintptr_t)&`proc_end_news/ { told_end++; }
END { printf("sent %d told %d ended %d told %d\n", sent, told, ended, told_end); }' -c "/bin/linux_test brief $part"; done
dtrace -qn 'syscall::membarrier:entry { self->in = 1; calls++; } fbt::smp_call_all:entry /self->in/ { all++; }
fbt::smp_call_users:entry /self->in/ { own++; } syscall::membarrier:return { self->in = 0; }
END { printf("calls %d all %d own %d\n", calls, all, own); }' -c '/bin/linux_test waits'
"""


@portable_test("while there is no signalfd or pidfd, a signal or an end wakes nobody who waits for files; membarrier() asks no more CPUs than it must")
def signals_wake_few():
    out = boot(SIGNALS, smp=2, options=FILE).expect().out
    found = [tuple(map(int, m)) for m in re.findall(r"^sent (\d+) told (\d+) ended (\d+) told (\d+)\r?$", out, re.M)]
    check_eq([tuple(n > 0 for n in row) for row in found], [(True, False, True, False), (True, False, True, True), (True, True, True, False)],
             f"without such files, with pidfds, and with signalfds: {found}")
    check_match(r"^calls 3 all 1 own 1\r?$", out, "membarrier: registered, of the program, and of all")


ENDS = r"""linux_test answers 20
dtrace -qn 'fbt::do_exit:entry /pid == $target/ { self->ends = 1; } fbt::proc_next:entry /self->ends/ { n++; } END { printf("looked at %d\n", n); }' -c '/bin/linux_test orphans 150'
linux_test shortage
"""


@portable_test("signals reach a program that computes on another CPU at once; the groups of a process that ends are looked at once; a read waits for memory though signals come")
def ends():
    run = boot(ENDS, smp=2, mem="96M", mask="SIG,SMP", trace=True, options=[*FILE, "--icount"]).expect()
    tc.no_gaps(run)
    steps = "".join(m[1][7] for _, m in tc.named(run, r"(signal (?:post|handle): pid \d+ sig 10\b|ipi send: kick cpu 1$)"))
    signals = re.findall(r"p(d*)h", steps)
    check(len(signals) == steps.count("p") == 20, f"each signal is handled before the next one: {steps}")
    kicks = sum(map(bool, signals))  # none if an interrupt came just then
    check(kicks >= 15, f"of 20 signals, those that kicked the other CPU: {kicks}")
    looked = int(check_match(r"^looked at (\d+)\r?$", run.out, "the end of a parent")[1])
    check(150 <= looked < 2000, f"processes that were looked at when a parent of 150 ended: {looked}")
    check_match(r"^read 8388608 of 8388608\r?$", run.out, "a read while signals are pending")


@portable_test("8,000 queued signals are forgotten in not much more than four times what 2,000 take")
def forgotten():
    script = "for n in 2000 8000; do linux_test forgotten $n; done\n"
    out = boot(script, options=[*FILE, "--icount"]).expect().out
    few, many = map(int, re.findall(r"signals forgotten in (\d+) ns", out))
    check(many < 8 * few, f"2,000 in {few} ns, 8,000 in {many} ns")


@portable_test("threads that sleep by their process's CPU time wake in the order of their times")
def sleepers():
    boot("linux_test sleepers\n", options=[*FILE, "--icount"]).expect()


TICKS = r"""dtrace -qn '
fbt::cpu_timers_tick:entry { self->in = 1; n++; } fbt::cpu_timers_tick:return { self->in = 0; }
fbt::thread_usage:entry, fbt::lwp_next:entry /self->in/ { looked++; }
END { printf("ticks %d looked %d\n", n, looked); }' -c '/bin/linux_test beside 100'
"""


@portable_test("a tick of a process with a limit on CPU time looks at none of its other threads")
def ticks():
    out = boot(TICKS, options=FILE).expect().out
    n, looked = map(int, check_match(r"^ticks (\d+) looked (\d+)\r?$", out, "ticks").groups())
    check(n > 50 and looked < n, f"{n} ticks, which looked at {looked} threads")


@portable_test("who wakes nobody looks at few threads that wait for words 1,024 bytes apart, or of chosen files")
def far():
    for how in ("far", "far-shared"):
        script = f"for n in 20 400; do linux_test {how} $n || echo not $?; done\n"
        out = boot(script, options=[*FILE, "--icount"]).expect().out
        few, many = map(int, re.findall(r"beside \d+ waiters (\d+) ns", out))
        check("not" not in out and many < 3 * few, f"{how}: beside 20 waiters {few} ns, beside 400 {many} ns\n{out}")


PAUSES = r"""dtrace -qn '
fbt::futex_clock_set:entry { self->in = "the clock"; }
fbt::futex_wake:entry { self->in = arg2 == 2 ? "nobody" : arg2 == 4 ? "one" : "many"; }
fbt::futex_walk_pause:entry /self->in != ""/ { @[self->in] = count(); }
fbt::futex_wake:return, fbt::futex_clock_set:return { self->in = ""; }
END { printa("%s: %@d pauses\n", @); }' -c '/bin/linux_test far 400'
"""


@portable_test("who looks at 400 waiters, also when it sets the clock, gives the lock up; who has found its one ends")
def pauses():
    out = boot(PAUSES, options=FILE).expect().out
    found = {what: int(n) for what, n in re.findall(r"^([a-z ]+): (\d+) pauses", out, re.M)}
    check(all(found.get(what, 0) >= 5 for what in ("nobody", "the clock", "many")), f"pauses: {found}\n{out}")
    check("one" not in found, f"pauses: {found}")


AWAITED = r"""dtrace -qn '
fbt::sys_rt_sigtimedwait:entry { self->in = 1; self->n = 0; } fbt::lwp_next:entry /self->in/ { self->n++; }
fbt::sys_rt_sigtimedwait:return /self->n > most/ { most = self->n; } fbt::sys_rt_sigtimedwait:return { self->in = 0; }
END { printf("most %d\n", most); }' -c '/bin/linux_test awaited 50'
"""


@portable_test("who takes one of 20 pending signals looks at each thread of its process at most three times")
def awaited():
    out = boot(AWAITED, options=FILE).expect().out
    most = int(check_match(r"^most (\d+)\r?$", out, "threads")[1])
    check(50 <= most <= 160, f"threads that one call looked at, of 51: {most}")


@portable_test("user 0 gets a pseudo-terminal though a user has as many as users get")
def reserved():
    script = "sysctl kern.maxkmemperuid=200000 kern.maxfilesperuid=4000\nlinux_test ptys-reserved && echo one more\n"
    out = boot(script, options=FILE, mem="512M").expect().out
    check_match(r"^a user has 1536 pseudo-terminals, errno 28\r?$", out, "the user's")
    check_match(r"^one more\r?$", out, "user 0's")


FOUND = r"""dtrace -qn 'fbt::proc_next:entry /pid == $target/ { n++; } END { printf("looked at %d\n", n); }' \
-c '/bin/linux_test found 50'
"""


@portable_test("a thread, a process or a group is found by its number without a look at all others")
def found():
    out = boot(FOUND + "cat /proc/4/stat\n", options=FILE).expect().out
    check_match(r"^4 \(.*\) \S( \S+){34} 17 ", out, "a thread of the kernel's signal, as on Linux")
    check_match(r"^found: 1\r?$", out, "what is asked for")
    looked = int(check_match(r"^looked at (\d+)\r?$", out, "processes")[1])
    check(looked < 50, f"processes that were looked at, of 50: {looked}")


@portable_test("Debian's script records what a program does in a terminal of its own")
def script():
    need_package("bsdutils")
    out = boot("script -qc 'tty; stty size; echo typed | cat' /tmp/record\ncat /tmp/record\n", options=["--program", "bsdutils"]).expect().out
    check_eq(out.replace("\r", "").count("/dev/pts/0\n24 80\ntyped\n"), 2, f"times that it is shown: {out}")


@test("--program puts a program of this machine into the guest with its libraries, and a package with what it depends on")
def programs():
    for word in ("./nosuch", "no-such-package-of-debian"):
        run = boot("true\n", options=["--program", word])
        check(run.status == 2 and word in run.err, f"{run.status}: {run.err}")
    need_package("hello")
    guest = boot("hello\nls -l /usr/bin/hello\n", options=["--program", "hello"]).expect().out
    check_match(r"^Hello, world!\r?$", guest, "GNU hello")
    if ARCH == platform.machine():
        guest = boot("/bin/sort --version\n", options=["--program", "/usr/bin/sort"]).expect().out
        check_match(r"^sort \(GNU coreutils\)", guest, "a dynamic program of this machine")
    else:
        run = boot("true\n", options=["--program", "/usr/bin/sort"])
        check(run.status == 2 and "its libraries are not known" in run.err, f"{run.status}: {run.err}")


@portable_test("Debian's socat, hackbench and tmux talk over sockets of AF_UNIX")
def unix_programs():
    for package in ("socat", "rt-tests", "tmux", "libc-bin", "ncurses-base"):
        need_package(package)
    out = boot("""
socat UNIX-LISTEN:/tmp/s,fork EXEC:/bin/cat &
until socat -u OPEN:/dev/null UNIX-CONNECT:/tmp/s 2> /dev/null; do :; done
echo through a socket | socat - UNIX-CONNECT:/tmp/s
socat -u ABSTRACT-RECV:abstract CREATE:/tmp/got &
until grep -q @abstract /proc/net/unix; do :; done
echo a datagram | socat -u - ABSTRACT-SENDTO:abstract
until grep datagram /tmp/got; do :; done
hackbench -l 2 -g 1 | tail -1
hackbench -l 2 -g 1 -T | tail -1
export TERM=screen LANG=C.UTF-8 SHELL=/bin/sh
tmux -f /dev/null new-session -d -s one 'echo in a window; cat'
until tmux capture-pane -p -t one | grep -q '^in a window'; do :; done
tmux send-keys -t one typed Enter
until tmux capture-pane -p -t one | grep -q ^typed; do :; done
tmux capture-pane -p -t one | head -2
exit 0
""", smp=4, options=["--mem", "512M", *(f"--program={p}" for p in ("socat", "rt-tests", "tmux", "libc-bin", "ncurses-base"))]).expect().out
    out = out.replace("\r", "")
    for line in ("through a socket", "a datagram", "in a window", "typed"):
        check_match(f"^{line}$", out, line)
    check_eq(len(re.findall(r"^Time: [0-9.]+$", out, re.M)), 2, "runs of hackbench")


@test("Debian's strace shows the system calls of a program and its children, and leaves one to which it has attached")
def strace():
    need_package("strace")
    out = boot("strace -f -o /tmp/calls sh -c 'echo one | cat'\ncat /tmp/calls\nsleep 1000 &\n"
               "strace -o /tmp/calls -p $! & until grep -q TracerPid:.[1-9] /proc/$!/status /proc/*/status; do :; done\nkill %1; wait; cat /tmp/calls\n",
               smp=4, options=["--program", "strace"]).expect().out.replace("\r", "")
    check_match(r'^one\n(.*\n)*\d+ +execve\(.*"echo one \| cat"\].*= 0\n', out, "the first call")
    check_match(r'^\d+ +write\(1, "one\\n", 4(\) += 4| <unfinished)', out, "a child's call")
    check_eq(len(re.findall(r"^\d+ +\+\+\+ exited with 0 \+\+\+$", out, re.M)), 3, f"ends that are told: {out}")
    check_match(r"^--- SIGTERM \{si_signo=SIGTERM, si_code=SI_USER, .*\n\+\+\+ killed by SIGTERM \+\+\+$", out, "the end of the program that is attached to")


@portable_test("/sys tells which CPUs there are, and /proc in which namespaces a process is")
def cpus_and_namespaces():
    out = boot("cd /sys/devices/system/cpu; cat online possible present offline kernel_max\nls -d cpu[0-9]*\ncat cpu2/topology/*\n"
               "ls /proc/self/ns | wc -l\nreadlink /proc/self/ns/mnt\nreadlink /proc/1/ns/pid_for_children\ncat /proc/sys/kernel/ngroups_max\n", smp=4).expect().out.replace("\r", "")
    cores = ["4", "2", "2", "f", "0-3", "f", "0-3", "0", "4", "2"]
    check_eq(out.split(), ["0-3", "0-3", "0-3", "63", "cpu0", "cpu1", "cpu2", "cpu3", *cores, "10", "mnt:[4026531841]", "pid:[4026531836]", "16"], "what is told")


@portable_test("Debian's chrt sets and tells policies and priorities")
def chrt():
    need_package("util-linux")
    out = boot("chrt -m | tail -n 5\nchrt -f -p 10 $$\nchrt -p $$\nchrt -r -R 20 sh -c 'chrt -p $$; sleep 0 & chrt -p $!'\nchrt -b 0 chrt -p 0\nchrt -o -p 0 $$\nchrt -p $$\n"
               "chrt -f -p 100 $$\nchrt -p 99999\nexit 0\n", options=["--program", "util-linux"]).expect().out.replace("\r", "")
    check_match(r"^SCHED_FIFO min/max priority\t: 1/99\nSCHED_RR min/max priority\t: 1/99\nSCHED_BATCH min/max priority\t: 0/0\nSCHED_IDLE min/max priority\t: 0/0\nSCHED_DEADLINE", out, "the list")
    check_eq(re.findall(r"^pid \d+'s current scheduling p\w+: (\S+)$", out, re.M),
             ["SCHED_FIFO", "10", "SCHED_RR|SCHED_RESET_ON_FORK", "20", "SCHED_OTHER", "0", "SCHED_BATCH", "0", "SCHED_OTHER", "0"], "what is told")
    check("unsupported priority value" in out and "No such process" in out, f"what is refused: {out}")


WORKERS = """ktrace -f /tmp/k linux_test workers
kdump --jsonl -f /tmp/k
echo ====
kdump -f /tmp/k
"""


@portable_test("a thread that moves or unmaps 512 pages interrupts the other CPUs a few times, and not for each page")
def unmaps():
    run = boot("linux_test unmap\n", smp=4, trace=True, mask="SYSC,SMP", options=FILE).expect()
    tc.no_gaps(run)
    for call in ("mremap", "munmap"):
        begins = rf"syscall {call}: arg0 \w+ arg1 0x200000 "
        tid = [e["tid"] for e, _ in tc.named(run, begins)]
        check_eq(len(tid), 1, f"calls of {call}")
        inside, sent = False, 0
        for e in run.events:
            if e["tid"] != tid[0]:
                continue
            text = e["text"]
            inside = (inside or re.match(begins, text) is not None) and not text.startswith(f"sysret {call}")
            sent += inside and text.startswith("ipi send: call")
        check(1 <= sent <= 60, f"found {sent} interrupts to other CPUs in {call}, expected 3 for all, or for each 64 pages")


@test("threads of a program have their own names, calls and results in the log and in a trace by ktrace")
def workers():
    run = boot(WORKERS, smp=4, trace=True, mask="SYSC,SCHED,PROC", options=FILE).expect()
    tc.no_gaps(run)
    tc.timestamps_ascend(run)
    tc.syscalls_pair(run)
    tc.one_thread_runs_at_a_time(run)
    records = [json.loads(line) for line in run.out.partition("====")[0].splitlines() if line.startswith('{"pid":')]
    pid = records[0]["pid"]
    # A C library makes threads by clone3, if it has that, and by clone otherwise; processes by clone.
    tids = [int(r["value"]) for r in records if r["type"] == "RET" and r.get("call") in ("clone", "clone3")]
    tids = [tid for tid in tids if tid in {r["tid"] for r in records}]
    check(len(tids) == 3 and {r["pid"] for r in records} == {pid}, f"threads {tids} of process {pid}")
    for n, tid in enumerate(tids, 1):
        name, mine = f"worker-{n}", [r for r in records if r["tid"] == tid]
        own = ["prctl", "openat", "read", "close", "nanosleep", "exit"]
        check_eq([r["call"] for r in mine if r["type"] == "CALL" and r.get("call") in own], own, f"calls of {name}")
        check_eq([len(r["data"]) / 2 for r in mine if r["type"] == "GIO"], [n], f"bytes that {name} reads")
        begun = next(i for i, r in enumerate(mine) if r.get("call") == "prctl" and r["type"] == "RET")
        check_eq({r["comm"] for r in mine[begun:]}, {name}, f"the name in records of {name}")
        check_eq(len([m for e, m in tc.named(run, r"syscall openat: ") if e["tid"] == tid and e["thread"] == name]), 1,
                 f"openat of {name} in the log")
    made = re.findall(r"CALL  clone\(0x\w+<CLONE_PARENT_SETTID\|CLONE_CHILD_SETTID\|SIGCHLD>,0,(0x\w+),(0x\w+),(0x\w+)\)", run.out)
    check(len(made) == 1 and len(set(made[0])) == 2, f"the call of clone in words: {made}")
    clone = next(r for r in records if r["type"] == "CALL" and r.get("call") == "clone")["args"]
    check_eq(clone["child_tid"], clone["parent_tid"] + 4, "where clone stores the number")


@test("execve of a thread that is not the first: the log, ps and /proc have the process's number from then on")
def thread_executes():
    script = "".join(f"linux_test execute {how}; echo status $?\n" for how in range(4))
    run = boot(script, smp=4, trace=True, mask="SYSC,SCHED,PROC", options=FILE).expect()
    check_eq(re.findall(r"^status (\d+)", run.out, re.M), ["0"] * 4, "exit statuses")
    tc.no_gaps(run)
    tc.timestamps_ascend(run)
    tc.syscalls_pair(run)
    tc.runs_after_runq_add(run)
    tc.one_thread_runs_at_a_time(run)
    changes = tc.named(run, r"thread change: tid (\d+) to (\d+)$")
    check_eq(len(changes), 4, "changes of a thread's number")
    for e, m in changes:
        old, pid = int(m[1]), int(m[2])
        later = [x for x in run.events if x["ns"] > e["ns"]]
        check(old != pid and all(x["tid"] != old for x in later if not x["text"].startswith("KTRGRAPH ")), f"thread {old} has events after it became {pid}")
        check_eq(len([x for x in later if x["tid"] == pid and x["text"].startswith("sysret execve: ret 0")]), 1, "returns of execve")
        first = next(x for x in later if x["tid"] == pid and x["text"].startswith("exec: "))
        check(first["text"].startswith(f"exec: pid {pid} name linux_test "), first["text"])
    for e, m in changes:
        check_eq(re.findall(r"^ *(\d+) root +/bin/linux_test alone (\d+)\r?$", run.out, re.M).count((m[2], m[2])), 1, f"rows of process {m[2]} in ps")


if __name__ == "__main__":
    main()
