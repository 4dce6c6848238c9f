#!/usr/bin/python3
"""kdump_test.py - kdump prints records in FreeBSD's columns and words, and takes damage for what it is. Prints TAP.

The program is build/host/kdump, or $KDUMP.
"""
import json
import os
import re
import resource
import signal
import struct
import subprocess
import time

import ktrace_records as k
from export_help import DEADLINE_S, KTRDUMP, ROOT, equal, expect, export_formats, ktrdump, main

KDUMP = os.environ.get("KDUMP", str(ROOT / "build/host/kdump"))


def kdump(data, *args):
    """(status, output, errors)"""
    p = subprocess.run([KDUMP, "-f", "-", *args], input=data, capture_output=True, timeout=DEADLINE_S, check=False)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def lines(records, *args):
    status, out, err = kdump(b"".join(records), *args)
    equal((status, err), (0, ""), "status and errors")
    return out.splitlines()


def text(record, *args):
    """What follows the first columns."""
    return "\n".join(lines([record], *args)).removeprefix("    12 ls       ")


def first_columns_are_number_name_and_type(_tmp):
    equal(lines([k.record(k.NAMEI, b"/etc/motd")]), ['    12 ls       NAMI  "/etc/motd"'])
    equal(lines([k.ret(0, 5, pid=1234567, tid=7, comm=b"a-longer-name")], "-H"), ["1234567      7 a-longer-name RET   read 5"])
    at = [k.ret(0, 0, time=t) for t in ((5, 999999999), (6, 1), (8, 0))]
    equal([l.split()[2] for l in lines(at, "-T")], ["5.999999999", "6.000000001", "8.000000000"])
    equal([l.split()[2] for l in lines(at, "-E")], ["0.000000000", "0.000000002", "2.000000001"])
    equal([l.split()[2] for l in lines(at, "-R")], ["0.000000000", "0.000000002", "1.999999999"])
    back = [at[1], at[0], at[2], k.ret(0, 0, time=(3, 0))]  # of several processes
    equal([l.split()[2] for l in lines(back, "-R")], ["0.000000000", "-0.000000002", "2.000000001", "-5.000000000"])
    equal([l.split()[2] for l in lines(back, "-E")], ["0.000000000", "-0.000000002", "1.999999999", "-3.000000001"])


def calls_have_names_and_flags_of_their_machine(_tmp):
    flags = 0o2000000 | 0o200000  # O_CLOEXEC, and O_DIRECTORY of one, O_LARGEFILE of the other
    equal(text(k.call(257, -100, 0x7fff, flags, 0)), "CALL  openat(AT_FDCWD,0x7fff,0x90000<O_RDONLY|O_DIRECTORY|O_CLOEXEC>,0)")
    equal(text(k.call(56, -100, 0x7fff, 0o2040000, 0, machine="aarch64")),
          "CALL  openat(AT_FDCWD,0x7fff,0x84000<O_RDONLY|O_DIRECTORY|O_CLOEXEC>,0)")
    equal(text(k.call(2, 16, 0o1101, 0o644)), "CALL  open(0x10,0x241<O_WRONLY|O_CREAT|O_TRUNC>,0x1a4<S_IRUSR|S_IWUSR|S_IRGRP|S_IROTH>)")
    equal(text(k.call(1, 1, 0x5000, 28)), "CALL  write(0x1,0x5000,0x1c)")
    equal(text(k.call(1, 1, 0x5000, 28), "-d"), "CALL  write(1,20480,28)")
    # an int, in whose upper half a compiler has left something
    equal(text(k.call(16, 1, 0xffffffff80045430, 0x5000)), "CALL  ioctl(0x1,TIOCGPTN,0x5000)")
    equal(text(k.call(16, 1, 0xffffffff12345678, 0x5000)), "CALL  ioctl(0x1,0xffffffff12345678,0x5000)")
    equal(text(k.call(62, -5, 9)), "CALL  kill(-5,SIGKILL)")
    equal(text(k.call(62, 5, 9), "-n", "-S"), "CALL  kill[62](0x5,0x9)")
    equal(text(k.call(9, 0, 4096, 3, 0x22, -1, 0)), "CALL  mmap(0,0x1000,0x3<PROT_READ|PROT_WRITE>,0x22<MAP_PRIVATE|MAP_ANONYMOUS>,-1,0)")
    equal(text(k.call(10, 0, 1, 0)), "CALL  mprotect(0,0x1,PROT_NONE)")
    equal(text(k.call(8, 3, -1, 2)), "CALL  lseek(0x3,-1,SEEK_END)")
    equal(text(k.call(61, -1, 0, 3, 0)), "CALL  wait4(-1,0,0x3<WNOHANG|WUNTRACED>,0)")
    equal(text(k.call(61, -1, 0, 0x60000000, 0)), "CALL  wait4(-1,0,0x60000000<__WNOTHREAD|__WALL>,0)")
    equal(text(k.call(247, 1, 7, 0, 0x1000006, 0)), "CALL  waitid(P_PID,0x7,0,0x1000006<WSTOPPED|WEXITED|WNOWAIT>,0)")
    equal(text(k.call(262, -100, 1, 2, 0x1d00)), "CALL  newfstatat(AT_FDCWD,0x1,0x2,0x1d00<AT_SYMLINK_NOFOLLOW|AT_SYMLINK_FOLLOW|AT_NO_AUTOMOUNT|AT_EMPTY_PATH>)")
    equal(text(k.call(144, 0, 1, 0)), "CALL  sched_setscheduler(0,SCHED_FIFO,0)")
    equal(text(k.call(41, 1, 0o2004005, 0)), "CALL  socket(AF_UNIX,0x80805<SOCK_SEQPACKET|SOCK_NONBLOCK|SOCK_CLOEXEC>,0)")
    equal(text(k.call(41, 2, 1, 6)), "CALL  socket(AF_INET,0x1<SOCK_STREAM>,0x6)")
    equal(text(k.call(288, 3, 0, 0, 0o4000)), "CALL  accept4(0x3,0,0,0x800<SOCK_NONBLOCK>)")
    equal(text(k.call(45, 3, 0x7000, 8, 0x42, 0, 0)), "CALL  recvfrom(0x3,0x7000,0x8,0x42<MSG_PEEK|MSG_DONTWAIT>,0,0)")
    equal(text(k.call(54, 3, 1, 16, 0x7000, 4)), "CALL  setsockopt(0x3,SOL_SOCKET,SO_PASSCRED,0x7000,0x4)")
    equal(text(k.call(48, 3, 1)), "CALL  shutdown(0x3,SHUT_WR)")
    equal(text(k.call(1025, 0, 3)), "CALL  machine_shutdown(SHUTDOWN_POWEROFF,0x3)")
    equal(text(k.call(999, 1, 2)), "CALL  [999](0x1,0x2)")
    equal(text(k.call(110)), "CALL  getppid()")
    for mode, words in ((0, "0<F_OK>"), (4, "0x4<R_OK>"), (7, "0x7<R_OK|W_OK|X_OK>"), (9, "0x9<X_OK|0x8>")):
        equal(text(k.call(21, 0x7000, mode)), f"CALL  access(0x7000,{words})")
        equal(text(k.call(48, -100, 0x7000, mode, machine="aarch64")), f"CALL  faccessat(AT_FDCWD,0x7000,{words})")
    equal(text(k.call(110), "-A"), "CALL  L64  getppid()")


def system_calls(machine):
    """(number, name, names of the arguments) of each row that the machine has in the table of system calls."""
    rows = []
    for row in (ROOT / "kernel/abi/syscalls.def").read_text().split("#endif\n")[-1].split("\n#undef", 1)[0].splitlines():
        found = re.fullmatch(r"(\w+)\((?:BOTH\()?(\d+)(?:, (\d+)\))?, (\w+), [A-Z]+, [A-Z]+(?:, (A\(.*\)))?\)", row)
        expect(found, f"no row of a system call: {row}")
        kind, first, second, name, args = found.groups()
        machines = {"SYSCALL": ("x86_64", "aarch64"), "LINUX_X86_64": ("x86_64",), "LINUX_AARCH64": ("aarch64",), "KESTREL": k.MACHINES}[kind]
        equal(second is not None, kind == "SYSCALL", f"two numbers: {row}")
        names = []
        for arg in (args or "").removesuffix(")").split(") ") if args else ():
            linux = r", , " if kind == "KESTREL" else r", (INT|LONG|ULONG|STRING), \w+"
            expect(re.fullmatch(r"A\(\w+, [A-Z]+" + linux, arg), f"no name, kind, type and field: {arg}) in {row}")
            names.append(arg[2:].split(",")[0])
        expect(len(set(names)) == len(names) <= 6, f"arguments: {row}")
        equal(int(first) >= 1024, kind == "KESTREL", f"Kestrel's numbers are from 1024 on: {row}")
        if machine in machines:
            rows.append((int(second if machine == "aarch64" and second else first), name, names))
    equal([name for _, name, _ in rows], sorted({name for _, name, _ in rows}), f"{machine}: order of the names")
    equal(len({number for number, _, _ in rows}), len(rows), f"{machine}: numbers")
    return rows


def every_call_of_every_machine_has_a_name_and_arguments(_tmp):
    for machine in k.MACHINES:
        rows = system_calls(machine)
        expect(len(rows) > 45, f"{machine}: {len(rows)} system calls")
        said = lines([k.call(number, *range(len(names)), machine=machine) for number, _, names in rows], "--jsonl")
        equal(len(said), len(rows), f"{machine}: lines")
        for (number, name, names), line in zip(rows, said):
            row = json.loads(line)
            equal(row["call"], name, f"{machine} {number}")
            equal(row["args"], dict(zip(names, range(len(names)))), f"{machine} {name}")


def returns_are_as_in_freebsd(_tmp):
    equal(text(k.ret(257, 3)), "RET   openat 3")
    equal(text(k.ret(0, 28)), "RET   read 28/0x1c")
    equal(text(k.ret(0, -5)), "RET   read -5/0xfffffffffffffffb")
    equal(text(k.ret(257, -1, 2)), "RET   openat -1 errno 2 No such file or directory")
    equal(text(k.ret(257, -1, 2), "-n"), "RET   openat -1 errno 2")
    equal(text(k.ret(0, 28), "-n"), "RET   read 0x1c")


def data_is_text_or_hexadecimal(_tmp):
    equal(text(k.io(1, 1, b"-rw-r--r--  1 root  motd\n")),
          'GIO   fd 1 wrote 25 bytes\n       "-rw-r--r--  1 root  motd\n       "')
    equal(text(k.io(0, 0, b"")), 'GIO   fd 0 read 0 bytes\n       ""')
    equal(text(k.io(0, 0, b"x", 10)), 'GIO   fd 0 read 10 bytes, 1 recorded\n       "x"')
    equal(text(k.io(0, 0, b"abc"), "-m", "2"), 'GIO   fd 0 read 3 bytes\n       "ab"')
    equal(text(k.io(0, 0, b"abc"), "-s"), "GIO   fd 0 read 3 bytes")
    # As FreeBSD's kdump: bytes of ASCII that print, and line feed, return, tab and NUL are text. All else is hexadecimal.
    equal(text(k.io(0, 0, b"abc\0def\n")), 'GIO   fd 0 read 8 bytes\n       "abc\\0def\n       "')
    equal(text(k.io(0, 0, b"a\tb\r\0007\0\n\nc\\")), 'GIO   fd 0 read 11 bytes\n       "a\tb\\r\\0007\\0\n\t\n\tc\\\\"')
    for data, shown in ((b"na\303\257ve text", "6e61 c3af 7665 2074 6578 74              |na..ve text|"),
                        (b"\1\2bin", "0102 6269 6e                             |..bin|"), (b"\x1b[2J", "1b5b 324a                                |.[2J|"),
                        (b"\x7f", "7f                                       |.|")):
        equal(text(k.io(0, 0, data)).splitlines()[1], "       0x0000 " + shown, repr(data))
    equal(text(k.io(0, 0, b"ab\xff"), "-m", "2").splitlines()[1], '       "ab"')
    equal(text(k.io(0, 0, b"a" * 100)).splitlines()[1:], ['       "' + "a" * 70 + "\\", "\t" + "a" * 30 + '"'])
    equal(text(k.io(3, 0, b"\0\1ABC" + b"z" * 14)).splitlines()[1:],
          ["       0x0000 0001 4142 437a 7a7a 7a7a 7a7a 7a7a 7a7a  |..ABCzzzzzzzzzzz|", "       0x0010 7a7a 7a" + " " * 33 + " |zzz|"])
    equal(text(k.record(k.USER, b"mark")), 'USER  4 bytes\n       "mark"')
    expect("\x1b" not in kdump(k.record(k.NAMEI, b"\x1b]0;x\a", comm=b"\x1b[H"))[1], "a terminal's escapes are printed as they are")


def signals_switches_and_faults(_tmp):
    equal(text(k.psig(2)), "PSIG  SIGINT SIG_DFL code=SI_KERNEL")
    equal(text(k.psig(15, code=0)), "PSIG  SIGTERM SIG_DFL code=SI_USER")
    equal(text(k.psig(60, code=5, action=0x400, mask=3)), "PSIG  SIG 60 caught handler=0x400 mask=0x3 code=0x5")
    for sig, code, name in ((4, 8, "ILL_BADSTK"), (5, 1, "TRAP_BRKPT"), (7, 1, "BUS_ADRALN"), (8, 1, "FPE_INTDIV"), (11, 1, "SEGV_MAPERR"), (11, 2, "SEGV_ACCERR"),
                            (17, 6, "CLD_CONTINUED"), (17, 0, "SI_USER"), (17, 7, "0x7"), (17, 9, "0x9"), (17, 0x80, "SI_KERNEL"), (1, 1, "0x1"), (10, -6, "SI_TKILL"), (14, -2, "SI_TIMER"), (14, -9, "0xfffffff7")):
        equal(text(k.psig(sig, code)).split("code=")[1], name, f"signal {sig}, code {code}")
    equal(text(k.csw(1, 0, b"pipe")), 'CSW   stop kernel "pipe"')
    equal(text(k.csw(0, 1, b"")), 'CSW   resume user ""')
    equal([text(r) for r in k.one_of_each()[14:16]], ["PFLT  0x400000 VM_PROT_WRITE", "PRET  KERN_SUCCESS"])
    equal(text(k.record(k.FAULT, struct.pack("<QII", 0, 1, 0)), "-d"), "PFLT  0x0 VM_PROT_READ", "addresses are as in FreeBSD")
    equal(text(k.record(k.SYSCTL, b"kern.version")), 'SCTL  "kern.version"')
    equal(lines([k.ret(0, 0, dropped=0), k.record(k.SYSRET | k.DROP, k.ret(39, 7)[64:], dropped=3)])[1:],
          ["    12 ls       DROP  3 events dropped", "    12 ls       RET   getpid 7"])


def structs_are_those_of_the_machine(_tmp):
    x86 = struct.pack("<QQQIIIIQqqqQQQQQQ24x", 1, 42, 1, 0o100644, 1000, 100, 0, 0, 92, 4096, 1, 1700000000, 0, 1700000001, 0, 1700000002, 0)
    arm = struct.pack("<QQIIIIQQqiiqqQqQqQ8x", 1, 42, 0o100644, 1, 1000, 100, 0, 0, 92, 4096, 0, 1, 1700000000, 0, 1700000001, 0, 1700000002, 0)
    for machine, data in (("x86_64", x86), ("aarch64", arm)):
        r = k.record(k.STRUCT, b"stat\0" + data, machine=machine)
        equal(text(r), "STRU  struct stat {dev=1, ino=42, mode=0100644, nlink=1, uid=1000, gid=100, rdev=0, atime=1700000000, "
              "mtime=1700000001, ctime=1700000002, size=92, blksize=4096, blocks=1}", machine)
        expect('mode=-rw-r--r--, nlink=1, uid=1000, gid=100,' in text(k.record(k.STRUCT, b"stat\0" + data, machine=machine)).replace("0100644", "-rw-r--r--"), machine)
        root = text(k.record(k.STRUCT, b"stat\0" + data.replace(struct.pack("<II", 1000, 100), bytes(8)), machine=machine), "-r")
        expect('uid="root", gid="root", rdev' in root, root)
        expect('mode=-rw-r--r--, nlink=1' in text(r, "-r") and 'atime="2023-11-14 22:13:20"' in text(r, "-r"), text(r, "-r"))
        equal(json.loads(lines([r], "--jsonl")[0])["size"], 92)
        data = data.replace(struct.pack("<Q", 1700000001) + bytes(8), struct.pack("<QQ", 1700000001, 5))
        expect(", mtime=1700000001.000000005, ctime=1700000002, " in text(k.record(k.STRUCT, b"stat\0" + data, machine=machine)), machine)
        for mode, shown in ((0o41777, "drwxrwxrwt"), (0o41000, "d--------T"), (0o104755, "-rwsr-xr-x"), (0o106644, "-rwSr-Sr--"), (0o102111, "---x--s--x")):
            data = data.replace(struct.pack("<I", 0o100644), struct.pack("<I", mode))
            expect(f"mode={shown}, " in text(k.record(k.STRUCT, b"stat\0" + data, machine=machine), "-r"), shown)
            data = data.replace(struct.pack("<I", mode), struct.pack("<I", 0o100644))
    equal(text(k.record(k.STRUCT, b"timespec\0" + struct.pack("<qq", 5, 6))), "STRU  struct timespec {sec=5, nsec=6}")


def dates_are_those_of_the_calendar(_tmp):
    for when in (-1, 0, 951782399, 951782400, 4107542400, 1709164800, 1709251199, 253402300799):
        data = struct.pack("<QQQIIIIQqqqQQQQQQ24x", 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, when & 2**64 - 1, 0, 0, 0, 0, 0)
        expect(time.strftime('atime="%Y-%m-%d %H:%M:%S"', time.gmtime(when)) in text(k.record(k.STRUCT, b"stat\0" + data), "-r"), f"{when}")


def options_choose_records(_tmp):
    records = k.one_of_each()
    kinds = [l.split()[2] for l in lines(records) if l.startswith("    12")]
    equal(kinds, "CALL NAMI RET CALL GIO RET GIO PSIG CSW USER STRU STRU SCTL PFLT PRET 30 RET".split())
    for letter, some in zip("cfinstuwy", (["CALL", "RET", "CALL", "RET", "RET"], ["PFLT", "PRET"], ["GIO", "GIO"], ["NAMI"], ["PSIG"],
                                          ["STRU", "STRU"], ["USER"], ["CSW"], ["SCTL"])):
        equal([w for w in (l.split()[2] for l in lines(records, "-t", letter) if l.startswith("    12")) if w != "30"], some, letter)
    equal(lines([k.ret(0, n, pid=n, tid=n + 10) for n in range(4)], "-p", "2"), ["     2 ls       RET   read 2"])
    equal(lines([k.ret(0, n, pid=n, tid=n + 10) for n in range(4)], "-p", "13"), ["     3 ls       RET   read 3"])


def jsonl_says_all_of_a_record(_tmp):
    for machine in k.MACHINES:
        rows = [json.loads(line) for line in lines(k.one_of_each(machine), "--jsonl")]
        equal([r["type"] for r in rows], "CTOR CALL NAMI RET CALL GIO RET GIO PSIG CSW USER STRU STRU SCTL PFLT PRET 30 RET DTOR".split())
        equal(rows[1]["args"], {"dirfd": 2**64 - 100, "path": 0x7000, "flags": 0o2000000, "mode": 0})
        equal((rows[7]["fd"], rows[7]["write"], rows[7]["bytes"], rows[7]["data"]), (1, True, 100, bytes(range(40)).hex()))
        equal((rows[2]["name"], rows[8]["signal"], rows[9]["wmesg"]), ("/etc", 2, "pipe"))
        equal((rows[0]["time"], rows[0]["comm"]), ("1000.000000000", "ls"))


def a_long_file_needs_no_temporary_one(tmp):
    def no_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    path = tmp / "ktrace.out"
    path.write_bytes(b"".join(k.ret(39, 7, time=(1000, n)) for n in range(80000)))
    p = subprocess.run([KTRDUMP, "-q", path], capture_output=True, preexec_fn=no_files, timeout=DEADLINE_S, check=False)
    equal((p.returncode, p.stderr, p.stdout.count(b"\n")), (0, b"", 80000), "status, errors and lines")


def damage_is_told_and_the_rest_is_printed(_tmp):
    good = k.ret(39, 7)
    for damaged, why in (
            (k.record(k.SYSCALL, b"1234"), "offset 80: a damaged record of type 1: 4 bytes, expected 8 or more"),
            (k.record(k.SYSCALL, b"\1\0\0\0\2\0\0\0" + bytes(8)), "offset 80: a damaged record of type 1: 2 arguments in 16 bytes"),
            (k.record(k.STRUCT, b"stat"), "offset 80: a damaged record of type 8: a struct's name without an end"),
            (k.record(k.NAMEI, b"/", machine=3), "offset 80: a damaged record of type 3: machine 3, expected 62 or 183")):
        status, out, err = kdump(good + damaged + good)
        equal((status, out.count("getpid 7"), err), (1, 2, f"kdump: {why}\n"))
    for damaged, why in (
            (k.record(k.NAMEI, b"/", version=2), "no record: version 2, expected 1"),
            (k.record(k.NAMEI, length=2**20 + 1), "no record: a record of 1048577 bytes, expected at most 1048576"),
            (k.record(k.NAMEI, time=(0, 10**9)), "no record: 1000000000 ns, expected less than a second"),
            (good[:70], "the last record is cut: 70 bytes"), (good[:3], "the last record is cut: 3 bytes"), (good[:64], "the last record is cut: 64 bytes")):
        status, out, err = kdump(good + damaged)
        equal((status, out.count("getpid 7"), err), (1, 1, f"kdump: offset 80: {why}\n"))
    equal(kdump(b""), (0, "", ""))


def ktrdump_makes_a_timeline_of_it(tmp):
    """Two processes on two CPUs, whose records are in the file one process after the other."""
    how = {"cpu": 1, "comm": b"wc", "pid": 13}
    records = [k.record(k.PROCCTOR, struct.pack("<II", 1, 6), time=(999, 0)), k.call(0, 3, 0x7000, 10, time=(1000, 0)),
               k.csw(1, 0, b"pipe", time=(1000, 2000)), k.csw(0, 0, b"pipe", time=(1000, 9000)), k.ret(0, 5, time=(1000, 10000)),
               k.record(k.SYSRET | k.DROP, k.ret(39, 7)[64:], dropped=3, time=(1000, 11000)),
               k.record(k.PROCDTOR, struct.pack("<II", 1, 0), time=(1000, 12000)),
               k.call(1, 1, 0x8000, 5, time=(1000, 3000), **how), k.ret(1, -1, 9, time=(1000, 4000), **how)]
    path = tmp / "ktrace.out"
    path.write_bytes(b"".join(records))
    status, out, err = ktrdump("--format", "jsonl", "-i", path)
    events = [json.loads(line) for line in out.splitlines()]
    equal((status, err), (0, ""), "status and errors")
    equal([(e["tid"], e["text"].split(":")[0]) for e in events if "text" in e and "KTRGRAPH" not in e["text"]],
          [(12, "ktrace begin"), (12, "syscall read"), (13, "syscall write"), (13, "sysret write"), (12, "sysret read"), (12, "sysret getpid")])
    equal([e["gap"] for e in events if "gap" in e], [3], "losses")
    status, out, err = ktrdump("--format", "chrome", "-i", path)
    equal((status, err), (0, ""), "status and errors")
    rows = [r for r in json.loads(out) if r.get("cat") in ("syscall", "state", "cpu") and r["ph"] in "BE"]
    found = [(r["ph"], r["name"], r["ts"] - 1e6) for r in rows if r["tid"] == 12 and r["name"] != "running"]
    equal(found, [("B", "read", 0), ("B", "sleeping: pipe", 2), ("E", "sleeping: pipe", 9), ("E", "read", 10)], "slices of a thread")
    found = [(r["ph"], r["name"].split()[0], r["ts"] - 1e6) for r in rows if r.get("cat") == "cpu"][1:7]
    equal(found, [("E", "ls", 2), ("B", "untraced", 2), ("B", "wc", 3), ("E", "untraced", 9), ("B", "ls", 9), ("E", "ls", 11)], "slices of CPUs")
    for form, _ in export_formats():
        equal(ktrdump("--format", form, "-o", tmp / form, "-i", path)[::2], (0, ""), form)
    equal(ktrdump("--format", "stream", "-i", path), (2, "", f"ktrdump: {path}: found a file of ktrace, expected a stream\n"))
    for name, data in (("cut", records[:5] + [records[5][:70]]), ("short", [*records[:5], k.record(k.CSW, b"1234")]),
                       ("mixed", [*records[:5], k.ret(56, 0, machine="aarch64")]), ("bad", [*records[:5], b"x" * 100])):
        path.write_bytes(b"".join(data))
        status, out, err = ktrdump("-q", "-i", path)
        equal((status, len(out.splitlines()), err.count("offset ")), (1, 6, 1), f"{name}: {err}")
    for machine in k.MACHINES:
        path.write_bytes(b"".join(k.one_of_each(machine)))
        equal(ktrdump("-q", "-i", path)[1].count(": "), 20, machine)


def bad_options_are_told(tmp):
    for args, why in ((["-t", "cx"], 'kdump: -t: found "cx", expected some of cfinpstuwy+\n'), (["-m", "x"], 'kdump: -m: found "x", expected a number\n'),
                      (["-p", "-1"], 'kdump: -p: found "-1", expected a number\n')):
        equal(kdump(b"", *args), (2, "", why))
    equal(kdump(b"", "-x")[0], 2)
    equal(kdump(b"", "more")[0], 2)
    for help_option in ("-h", "--help"):
        status, out, _ = kdump(b"", help_option)
        expect(status == 0 and out.startswith("usage: kdump"), out)
    p = subprocess.run([KDUMP, "-f", tmp / "none"], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    equal((p.returncode, p.stderr), (1, f"kdump: {tmp / 'none'}: No such file or directory\n"))


def a_file_for_freebsd_is_not_the_input(tmp):
    path = tmp / "ktrace.out"
    path.write_bytes(b"".join(k.one_of_each()))
    before = path.read_bytes()
    for args in ((), ("-f", path)):
        p = subprocess.run([KDUMP, "--freebsd", path, *args], cwd=tmp, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        equal((p.returncode, p.stderr), (2, f"kdump: --freebsd {path}: it is the input: expected another file\n"))
    equal(path.read_bytes(), before, "the input")


def a_live_dump_ends_with_the_last_process(tmp):
    path = tmp / "live"
    path.write_bytes(b"")
    with subprocess.Popen([KDUMP, "-l", "-f", path], stdout=subprocess.PIPE, text=True) as p, path.open("ab", buffering=0) as f:
        ctor, *rest, dtor = k.one_of_each()
        f.write(ctor + ctor)
        for r in (k.ret(39, 1), k.ret(39, 2)):
            f.write(r[:70])
            f.write(r[70:])
            expect("getpid" in p.stdout.readline(), "the record that came is not printed")
        f.write(dtor)
        f.write(rest[1])
        expect("NAMI" in p.stdout.readline(), "one process lives, but nothing is printed")
        f.write(dtor)
        equal(p.wait(DEADLINE_S), 0)


def a_live_dump_of_a_child_ends_with_it(tmp):
    """The end of a process may be missing: the child's, or that of its own child. Who is gone is not awaited."""
    path, gone = tmp / "cut", 0x7fffffff  # more than any process of Linux has
    mine = "$!"
    begun, ended = (k.PROCCTOR, mine), (k.PROCDTOR, mine)
    other = (k.PROCCTOR, gone), (k.PROCDTOR, gone)
    command = f"true & echo $!; read line; exec {KDUMP} -l --child $! -f {path}"
    for records, who in (([], mine), ([begun], mine), ([other[0], begun, ended], gone), ([begun, *other, ended], None)):
        with subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as p:
            child = p.stdout.readline().strip()
            path.write_bytes(b"".join(k.record(kind, struct.pack("<II", 1, 6), pid=int(child) if pid == mine else pid)
                                      for kind, pid in records))
            _out, err = p.communicate("go\n", timeout=DEADLINE_S)
            said = f"kdump: process {child if who == mine else who} has ended, but its last records are missing: "
            equal((p.returncode, err), (0, "") if who is None else (1, said + "dmesg says why\n"), records)


FREEBSD = struct.Struct("<iHhi20sqqqii")  # sys/ktrace.h: struct ktr_header, on machines of 64 bits


def freebsd(tmp, records, *args):
    """[(type, header, data)] of what --freebsd writes."""
    out, at, found = tmp / "freebsd.out", 0, []
    equal(lines(records, "--freebsd", str(out), *args), [], "what is printed")
    data = out.read_bytes()
    while at < len(data):
        h = FREEBSD.unpack_from(data, at)
        at += FREEBSD.size
        found.append((h[1], h, data[at:at + h[0]]))
        at += h[0]
    equal(at, len(data), "the end of the last record")
    return found


def a_file_for_freebsds_kdump(tmp):
    equal(FREEBSD.size, 64)
    for machine in k.MACHINES:
        types, headers, data = zip(*freebsd(tmp, k.one_of_each(machine)))
        equal([t & 0x3fff for t in types], [k.PROCCTOR, k.SYSCALL, k.NAMEI, k.SYSRET, k.SYSCALL, k.GENIO, k.SYSRET, k.GENIO, k.PSIG, k.CSW, k.USER, k.STRUCT,
                                            k.STRUCT, k.SYSCTL, k.FAULT, k.FAULTEND, k.SYSRET, k.PROCDTOR], machine)
        equal({t & 0xc000 for t in types}, {0x4000}, "each has a version")
        code, read, _write = {"x86_64": (257, 0, 1), "aarch64": (56, 63, 64)}[machine]
        equal(data[0], struct.pack("<I", 0x203), "Linux's programs of 64 bits")
        equal(data[1], struct.pack("<hhi5q", code, 4, 0, -100, 0x7000, 0o2000000, 0, 0), "arguments, and a 0")
        equal(data[2], b"/etc")
        equal(data[3], struct.pack("<hhiq", code, 0, 0, 3))
        equal(data[5], struct.pack("<ii", 3, 0) + b"some\ttext\n")
        equal(data[6], struct.pack("<hhiq", read, 0, 0, 10))
        equal(data[7], struct.pack("<ii", 1, 1) + bytes(range(40)))
        equal(data[8], struct.pack("<iiQi4Ii", 2, 0, 0, 0x10006, 0, 0, 0, 0, 0))
        equal(data[9], struct.pack("<ii8s", 1, 0, b"pipe"))
        equal(data[10], b"marker")
        equal((data[11][:5], len(data[11])), (b"stat\0", 5 + 224))
        equal(data[11][5 + 48:5 + 112], bytes(range(72, 72 + 48)) + struct.pack("<qq", -1, 0), "times")
        equal(data[12], b"timespec\0" + struct.pack("<qq", 5, 6))
        equal(data[13], b"kern.version")
        equal(data[14], struct.pack("<Qii", 0x400000, 2, 0))
        equal(data[15], struct.pack("<i", 0))
        equal(data[-1], b"")
    drop = k.ret(1, 5, time=(7, 8), pid=9, tid=10, comm=b"a" * 19, cpu=3, dropped=3)
    drop = drop[:4] + struct.pack("<H", k.SYSRET | k.DROP) + drop[6:]
    [(_, header, _)] = freebsd(tmp, [drop])
    equal(header, (16, k.SYSRET | 0xc000, 1, 9, b"a" * 19 + b"\0", 7, 8, 10, 3, 0))
    equal(freebsd(tmp, [k.record(k.FAULTEND, struct.pack("<QII", 1, 0, 0))])[0][2], struct.pack("<i", 2), "KERN_PROTECTION_FAILURE")
    equal(freebsd(tmp, [k.call(269, *range(9))])[0][2], struct.pack("<hhi7q", 269, 6, 0, 0, 1, 2, 3, 4, 5, 0), "no call has more than six")
    equal([t & 0x3fff for t, _, _ in freebsd(tmp, k.one_of_each(), "-t", "n")], [k.PROCCTOR, k.NAMEI, k.PROCDTOR], "-t n")


def freebsds_numbers_of_errors_and_signals(tmp):
    errors = {"EAGAIN": 35, "EDEADLK": 11, "ENOLCK": 77, "ENAMETOOLONG": 63, "ENOSYS": 78, "ENOTEMPTY": 66, "ELOOP": 62, "ENODATA": 87, "EOVERFLOW": 84, "EPROTO": 92, "EOPNOTSUPP": 45, "ETIMEDOUT": 60, "ECANCELED": 85,
              "ENOTSOCK": 38, "EDESTADDRREQ": 39, "EMSGSIZE": 40, "EPROTOTYPE": 41, "ENOPROTOOPT": 42, "EPROTONOSUPPORT": 43, "ESOCKTNOSUPPORT": 44, "EAFNOSUPPORT": 47, "EADDRINUSE": 48, "EADDRNOTAVAIL": 49, "ENETDOWN": 50, "ENETUNREACH": 51, "ECONNABORTED": 53, "ECONNRESET": 54, "ENOBUFS": 55, "EISCONN": 56, "ENOTCONN": 57, "ETOOMANYREFS": 59, "ECONNREFUSED": 61, "EHOSTUNREACH": 65, "EALREADY": 37, "EINPROGRESS": 36, "EUCLEAN": 97, "EIDRM": 82, "ENOMSG": 83}
    rows = re.findall(r"^#define (E\w+) +(\d+)$", (ROOT / "kernel/abi/errno.h").read_text(), re.M)
    expect(len(rows) > 30 and set(errors) <= {name for name, _ in rows}, f"errno.h: {rows}")
    said = freebsd(tmp, [k.ret(0, -1, int(number)) for _, number in rows])
    for (name, number), (_, _, data) in zip(rows, said):
        expect(int(number) < 35 or name in errors, f"{name}: which number has it in FreeBSD?")
        equal(struct.unpack("<hhiq", data)[2], errors.get(name, int(number)), name)
    # HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM, none, CHLD CONT STOP TSTP TTIN TTOU URG XCPU …
    signals = [1, 2, 3, 4, 5, 6, 10, 8, 9, 30, 11, 31, 13, 14, 15, 0, 20, 19, 17, 18, 21, 22, 16, 24, 25, 26, 27, 28, 23, 0, 12] + list(range(65, 98))
    for sig, theirs in enumerate(signals, 1):
        [(_, _, data)] = freebsd(tmp, [k.psig(sig, 0, 0x5000, 1 << sig - 1)])
        signo, _, action, code, *mask, _ = struct.unpack("<iiQi4Ii", data)
        equal((signo, action, code), (theirs, 0x5000, 0x10001), f"signal {sig}")
        equal(sum(word << 32 * i for i, word in enumerate(mask)), 1 << theirs - 1 if theirs else 0, f"mask of signal {sig}")
    for sig, code, theirs in ((8, 1, 2), (8, 2, 1), (8, 3, 3), (11, 1, 1), (1, -1, 0x10002), (1, -2, 0x10003), (1, -6, 0x10007)):
        equal(struct.unpack_from("<i", freebsd(tmp, [k.psig(sig, code)])[0][2], 16)[0], theirs, f"signal {sig}, code {code}")


if __name__ == "__main__":
    main([first_columns_are_number_name_and_type, calls_have_names_and_flags_of_their_machine,
          every_call_of_every_machine_has_a_name_and_arguments, returns_are_as_in_freebsd, data_is_text_or_hexadecimal,
          signals_switches_and_faults, structs_are_those_of_the_machine, dates_are_those_of_the_calendar, options_choose_records,
          jsonl_says_all_of_a_record, ktrdump_makes_a_timeline_of_it, a_long_file_needs_no_temporary_one, damage_is_told_and_the_rest_is_printed, a_file_for_freebsds_kdump,
          freebsds_numbers_of_errors_and_signals, bad_options_are_told, a_file_for_freebsd_is_not_the_input,
          a_live_dump_ends_with_the_last_process, a_live_dump_of_a_child_ends_with_it])
