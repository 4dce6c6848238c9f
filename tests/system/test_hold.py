#!/usr/bin/python3
"""test_hold.py - the machine holds against its own users: what one of them does ends with that user."""
import re
import time

from console import BREAK, DB, PROMPT, db, guest, prompt, shell
from harness import (BUILD, DEADLINE_S, HAS_A_LIMIT, Deadline, boot, check, check_eq, check_match, main, portable_test as test, tap,
                     times)

DEEDS = ("--file", f"/bin/user_test={BUILD}/user_test")


def alive(c):
    """Root's shell answers."""
    c.sendline("echo alive $((6 * 7))")
    c.expect(r"[\r\n]alive 42\r")
    prompt(c)


@test("a program that makes the console non-blocking neither ends the shell nor keeps it from reading")
def nonblock():
    with guest(*DEEDS, smp=1) as c:
        for _ in range(3):
            shell(c, "su 1000 user_test do nonblock")
            alive(c)
        c.sendline("sh")
        prompt(c)
        shell(c, "su 1000 user_test do nonblock")
        alive(c)
        c.sendline("exit 3")
        prompt(c)
        check("init:" not in c.before, f"init spoke:\n{c.before}")


@test("a shell that dies at once is started again with growing pauses, though its status is 0")
def shell_dies():
    with guest(smp=1) as c:
        c.sendline("rm /bin/sh; echo '#!/bin/busybox true' > /bin/sh; chmod 755 /bin/sh; exit")
        start = time.monotonic()
        for _ in range(6):
            c.expect_exact("init: the shell ended with status 0; starting it again")
        seconds = time.monotonic() - start
        # After the first four short lives 100, 200, 400 and 800 ms; the first shell may have lived long. A guest's time is
        # never ahead of the host's. A life that is not short, since the machine is slow, takes more than a second itself.
        check(seconds > 1.2, f"six shells within {seconds:.2f} s, expected pauses")
        check("panic" not in c.before, c.before)


@test("init goes on when the shell cannot be executed")
def no_shell():
    with guest(smp=1) as c:
        c.sendline("rm /bin/sh; exit")
        for _ in range(3):
            c.expect_exact("init: /bin/sh: No such file or directory")
            c.expect_exact("init: the shell ended with status 127; starting it again")
        check("panic" not in c.before, c.before)


@test("in the background user 1000 neither takes the console nor changes it nor reads what root types")
def steal():
    with guest(*DEEDS, smp=1) as c:
        c.sendline("su 1000 user_test do steal &")
        c.expect_exact("steal: foreground -1 settings -1 read -5")  # EPERM, EPERM, EIO
        alive(c)
        shell(c, "su 1000 user_test do read &")
        c.sendline("while ! ps -o stat,comm | grep '^T.*user_test' > /dev/null; do :; done; echo it stopped")
        c.expect_exact("\r\nit stopped")
        alive(c)


@test("foreground programs read the console: root's, and those of another user's shell")
def foreground():
    with guest(*DEEDS, smp=1) as c:
        for _ in range(2):
            c.sendline("user_test do read")
            c.sendline("typed")
            c.expect_exact("read: typed")
            c.expect(r"kestrel[#$] ")
            c.sendline("su 1000")
            c.expect_exact("kestrel$ ")
        c.sendline("exit")
        c.expect_exact("kestrel$ ")
        c.sendline("exit")
        prompt(c)
        # A shell whose group root's shell has chosen chooses one itself.
        c.sendline("su 1000 sh -c 'sh; echo it ended'")
        c.expect_exact("kestrel$ ")
        c.sendline("user_test do read")
        c.sendline("typed")
        c.expect_exact("read: typed")
        c.expect_exact("kestrel$ ")
        c.sendline("exit")
        c.expect_exact("\nit ended")
        prompt(c)
        alive(c)


@test("a process joins no group of another user")
def join():
    with guest(*DEEDS, smp=1) as c:
        out = shell(c, "ps -o pid,comm | grep ' sh$'")
        pgid = check_match(r"^\s*(\d+)\s", out.replace(PROMPT, ""), "the shell's process id").group(1)
        check_match(r"^join: -1\r*$", shell(c, f"su 1000 user_test do join {pgid}"), "joining root's shell")


HOGS = ("names", "depth", "file", "holes", "memory", "tables", "maps", "pipes", "sockets", "flight", "processes", "zombies")


def held(c, uid=1000):
    """What kern.uidinfo says of a user: [processes, open files, pages, pages of files, KiB of the kernel], or None."""
    m = re.search(rf"^{uid} (\d+) (\d+) (\d+) (\d+) (\d+)\r*$", shell(c, "sysctl -n kern.uidinfo"), re.M)
    return [int(n) for n in m.groups()] if m else None


def pages_free(c):
    return int(check_match(r"^(\d+)\r*$", shell(c, "sysctl -n vm.pages.free"), "free pages").group(1))


def hog(c, what):
    """User 1000 takes all of one thing; root goes on; afterwards nothing is held. Where a program of root's needs memory
    when none is left, the user's largest process is killed: where the hog takes pages, that may be the hog itself."""
    c.sendline(f"su 1000 user_test do hog {what} &")
    c.expect(rf"full: {what} \d+ errno \d+\r" + (r"|Killed\r" if what not in HAS_A_LIMIT else ""))
    alive(c)
    check(held(c) is not None, f"{what}: user 1000 holds nothing, expected something")
    check_match(r"^load mix: .* ok,", shell(c, "load mix -n 2 -j 2"), f"{what}: root's load")
    shell(c, "user_test do slay 1000")
    shell(c, "user_test do leave; rm -r /tmp/hog; wait")
    deadline = Deadline(DEADLINE_S)
    while (rest := held(c)) is not None:  # init reaps orphans by and by
        check(deadline.tick() > 0, f"{what}: user 1000 holds {rest} after its last process, expected nothing")


@test("when user 1000 takes all of any resource, root's shell and programs go on, and all is released")
def hogs():
    with guest(*DEEDS, "--mem", "64M", smp=2) as c:
        hog(c, "processes")  # also fills the kernel's caches
        free = 0
        for what in HOGS:
            free = max(free, pages_free(c))  # what came back late counts, too
            hog(c, what)
            lost, deadline = free - pages_free(c), Deadline(DEADLINE_S)
            while lost >= 200 and deadline.tick() > 0:  # a thread of the kernel's gives stacks back by and by
                lost = free - pages_free(c)
            check(lost < 200, f"{what}: {lost} pages are not back")


@test("what a user does with sockets leaves nothing: all that linux_test knows")
def sockets():
    out = boot(f"for i in $(seq {times(1, 3)}); do su 1000 linux_test sockets; done\nwhile sysctl -n kern.uidinfo | grep ^1000; do sleep 0.1; done\n"
               "grep -c . /proc/net/unix\n", smp=4, options=("--file", f"/bin/linux_test={BUILD}/linux_test")).expect().out
    check(tap(out, times(1, 3)) > 30, out)
    check_match(r"^1\r?$", out, "lines of /proc/net/unix, with its head")


@test("when user 0's files and programs take all memory, a large program is killed for it, not the one that needs a page")
def starve():
    with guest(*DEEDS, "--mem", "128M", smp=1) as c:
        shell(c, "sysctl kern.quiet=1 > /dev/null; cat /dev/zero > /tmp/file")
        c.sendline("user_test do starve")
        c.expect(r"out of memory: user_test\[\d+\], which has \d+ pages, is killed\r")
        c.expect_exact("starve: the child was ended by signal 9\r")
        prompt(c)
        alive(c)


GRIP = """
sysctl kern.maxpagesperuid=500 > /dev/null
for i in $(seq 30); do su 1000 user_test do grip; done
sleep 6
dtrace -qn 'proc:::signal-send /arg2 == 9/ { n++; } END { printf("sent %d\\n", n); }' \\
-c 'su 1000 user_test do grip'
dmesg | grep -o 'is killed$'
dmesg | grep -o '[0-9]* more processes.*'
"""


@test("who is killed for memory ends though a debugger keeps it in the stop before; of 30 such kills, 10 are told")
def grip():
    out = boot(GRIP, smp=1, options=[*DEEDS, "--icount"]).expect().out.replace("\r", "")
    check_eq(len(re.findall("^grip: the child was ended by signal 9$", out, re.M)), 31, f"ends: {out}")
    check_eq(len(re.findall("^is killed$", out, re.M)), 11, f"kills that were told: {out}")
    check_match(r"^sent 1$", out, "the signals for one of them")
    check_match(r"^20 more processes that were killed for memory were not told$", out, "the others")


@test("a system call of user 0 that finds no memory takes it from the user who holds most")
def reclaim():
    with guest(*DEEDS, "--mem", "128M", smp=1) as c:
        shell(c, "su 1000 sh -c 'cat /dev/zero > /tmp/file'")
        c.sendline("su 1000 user_test do hold 1200 &")
        c.expect(r"hold: 1[12]\d\d pages are free\r")
        alive(c)
        c.sendline("user_test do hog maps &")  # 65,000 areas need 2,000 pages
        c.expect(r"out of memory: user_test\[\d+\], which has \d{4,} pages, is killed\r")
        c.expect(r"full: maps (\d+) errno 12\r")
        check(int(c.match.group(1)) > 65000, f"{c.match.group(1)} areas, expected as many as vm.max_map_count allows")
        alive(c)


@test("a user who took all names does not keep init from starting root's shell again")
def init_forks():
    with guest(*DEEDS, "--mem", "64M", smp=1) as c:
        c.sendline("su 1000 user_test do hog depth &")
        c.expect("full: depth")
        alive(c)
        c.send("\x04")
        c.expect_exact("init: the shell ended")
        prompt(c)
        alive(c)


@test("init tries again until its fork succeeds")
def init_retries():
    with guest(smp=1) as c:
        c.sendline("exec /bin/sysctl kern.maxproc=1")
        c.expect_exact("init: fork")
        c.send(BREAK)
        c.expect(DB)
        db(c, "sysctl kern.maxproc=100")
        c.sendline("continue")
        prompt(c)
        alive(c)


@test("sysctls limit the numbers of processes and descriptors")
def limits():
    out = boot("""
sysctl kern.maxprocperuid=5 > /dev/null
su 1000 user_test do hog processes > /tmp/said &
until grep full /tmp/said; do :; done
su 1000 true; echo su as one more: $?
user_test do turn
sysctl kern.maxfilesperproc=8 > /dev/null
sh -c 'exec 3</dev/null 4</dev/null 5</dev/null 6</dev/null 7</dev/null && echo to 7'
sh -c 'exec 3</dev/null 4</dev/null 5</dev/null 6</dev/null 7</dev/null 8</dev/null && echo to 8'
user_test do slay 1000
exit 0
""", options=DEEDS).expect().out
    check_match(r"^full: processes 4 errno 11$", out, "processes of a user who may have 5")
    check_match(r"^su as one more: 126$", out, "setuid() succeeds, the next exec does not")
    check_match(r"^turn: -11$", out, "setreuid() without CAP_SETUID")
    check_match(r"^to 7$", out, "descriptors below kern.maxfilesperproc")
    check("to 8" not in out, "a descriptor beyond kern.maxfilesperproc")


ZOMBIES = """
su 1000 user_test do hog zombies &
while [ $(sysctl -n kern.proc | grep -c zombie) -lt 8000 ]; do sleep 0.2; done
sysctl debug.ktr.mask=INTR > /dev/null
sysctl kern.proc > /dev/null
sysctl debug.ktr.mask=NONE > /dev/null
user_test do slay 1000
exit 0
"""


def hog_until_full(what):
    return f"su 1000 user_test do hog {what} > /tmp/{what} &\nuntil grep full /tmp/{what}; do :; done\n"


@test("sysctls limit open files, pages, pages of files and kernel memory of a user")
def limits_of_a_user():
    out = boot(f"""
sysctl kern.maxfilesperuid=1 > /dev/null
su 1000 sh -c 'exec 3</dev/null && echo the user: one file'
su 1000 sh -c 'exec 3</dev/null 4</dev/null && echo the user: two files'
su 1000 sh -c 'exec 3</dev/null 4>/tmp/vain'
[ -e /tmp/vain ] && echo the user: a file that could not be opened
sysctl kern.maxfilesperuid=1000 kern.maxfiles=5 > /dev/null
su 1000 sh -c 'exec 3</dev/null && echo all users: one file'
su 1000 sh -c 'exec 3</dev/null 4</dev/null 5</dev/null 6</dev/null && echo all users: four files'
sh -c 'exec 3</dev/null 4</dev/null 5</dev/null 6</dev/null && echo user 0: four files'
sysctl kern.maxfiles=1000 kern.maxpagesperuid=500 kern.maxdatapagesperuid=50 kern.maxkmemperuid=100 > /dev/null
{hog_until_full("memory")}
{hog_until_full("file")}
{hog_until_full("mapped")}
{hog_until_full("names")}
sysctl kern.uidinfo
user_test do slay 1000
exit 0
""", smp=1, options=DEEDS).expect().out
    check_eq(re.findall(r"^(the user|all users|user 0): (.*)$", out, re.M),
             [("the user", "one file"), ("all users", "one file"), ("user 0", "four files")], "what may be open")
    pages = int(check_match(r"^out of memory: user_test\[\d+\], which has (\d+) pages, is killed$", out, "memory")[1])
    check(400 < pages <= 500, f"killed with {pages} pages, expected nearly 500")
    check_match(r"^full: memory 9 ", out, "the signal that ended the child")
    check_match(r"^full: file 3 ", out, "blocks of 16 pages")
    check_match(r"^full: mapped 7 ", out, "the signal that ended who maps a file: SIGBUS")
    check_eq(len(re.findall("is killed", out)), 1, "processes that were killed for memory")
    names = int(check_match(r"^full: names (\d+) ", out, "names")[1])
    check(50 < names < 500, f"{names} names of 180 bytes, expected about 200 in 100 KiB")
    check_match(r"^1000 4 1 \d+ 50 (9\d|100)$", out, "kern.uidinfo")


@test("a list of 8,000 zombies never keeps interrupts off for long")
def zombies():
    run = boot(ZOMBIES, options=[*DEEDS, "--icount"], sets=["kern.maxproc=9000", "kern.maxkmemperuid=100000"], trace=True, timeout=4 * DEADLINE_S).expect()
    ns = [e["ns"] for e in run.events if e["text"].startswith("interrupt enter")]
    check(len(ns) > 4, f"{len(ns)} interrupts while it was read, expected more")
    longest = max(b - a for a, b in zip(ns, ns[1:]))
    # A tick is 10 ms, and a nanosecond an instruction.
    check(longest < 12_000_000, f"{longest / 1e6:.1f} ms without a timer interrupt, expected ticks of 10 ms")


ALL = "crw-rw-rw-"
MODES = {"console": "crw-------", "dtrace": "crw-------", "full": ALL, "ksyms": "cr--------", "ktr": "cr--------",
         "ktr.prev": "cr--------", "null": ALL, "probe": "crw-------", "ptmx": ALL, "random": ALL, "tty": ALL, "ttyS1": "c-w-------",
         "urandom": ALL, "zero": ALL}
DEVICES = """
if test $(sysctl -n debug.ktr.prev.events) = 0; then
sysctl debug.ktr.mask=PROC > /dev/null
reboot
fi
echo
ls -l /dev
cd /dev
for d in *; do
test -c $d -a ! -L $d || continue # the rest are folders, and links to the reader's own files
su 1000 sh -c ": < $d" 2> /dev/null && echo read $d
su 1000 sh -c ": > $d" 2> /dev/null && echo write $d
done
exit 0
"""


@test("each device has the mode and owner that it should, and user 1000 opens no device of user 0")
def devices():
    out = boot(DEVICES, options=["--reboot"]).expect().out
    found = {m[3]: (m[1], m[2]) for m in re.finditer(r"^(c[rwx-]{9}) +\d+ (\w+) .* (\S+)$", out, re.M)}
    check_eq(found, {name: (mode, "root") for name, mode in MODES.items()}, "modes and owners of /dev")
    opened = re.findall(r"^(read|write) (\S+)$", out, re.M)
    public = [name for name, mode in MODES.items() if mode == ALL]
    check_eq(opened, [(how, name) for name in public for how in ("read", "write")], "what user 1000 opens")


if __name__ == "__main__":
    main()
