"""ktrace_records.py - makes and reads records of ktrace as kernel/abi/ktrace.h says, independently of kdump."""
import struct

SYSCALL, SYSRET, NAMEI, GENIO, PSIG, CSW, USER, STRUCT, SYSCTL, PROCCTOR, PROCDTOR = range(1, 12)
FAULT, FAULTEND = 13, 14
DROP = 0x8000
MACHINES = {"x86_64": 62, "aarch64": 183}
HEADER = struct.Struct("<IHHHHIII20sIqq")


def record(kind, data=b"", pid=12, comm=b"ls", machine="x86_64", time=(1000, 0), tid=None, cpu=0, dropped=0, version=1, length=None):
    return HEADER.pack(len(data) if length is None else length, kind, version, MACHINES.get(machine, machine), cpu, dropped, pid,
                       pid if tid is None else tid, comm, 0, *time) + data


def call(code, *args, **how):
    return record(SYSCALL, struct.pack(f"<II{len(args)}Q", code, len(args), *(a & 2**64 - 1 for a in args)), **how)


def ret(code, value, error=0, **how):
    return record(SYSRET, struct.pack("<Iiq", code, error, value), **how)


def io(fd, write, data, total=None, **how):
    return record(GENIO, struct.pack("<iiQ", fd, write, len(data) if total is None else total) + data, **how)


def csw(out, user, wmesg, **how):
    return record(CSW, struct.pack("<II16s", out, user, wmesg), **how)


def psig(sig, code=0x80, action=0, mask=0, **how):
    return record(PSIG, struct.pack("<iiQQ", sig, code, action, mask), **how)


def one_of_each(machine="x86_64"):
    """A file with a record of every type, and one of an unknown type."""
    numbers = {"x86_64": (257, 0, 1), "aarch64": (56, 63, 64)}[machine]
    stat = bytes(range(144 if machine == "x86_64" else 128))
    how = {"machine": machine}
    return [record(PROCCTOR, struct.pack("<II", 1, 6), **how), call(numbers[0], -100, 0x7000, 0o2000000, 0, **how),
            record(NAMEI, b"/etc", **how), ret(numbers[0], 3, **how), call(numbers[1], 3, 0x7000, 10, **how),
            io(3, 0, b"some\ttext\n", **how), ret(numbers[1], 10, **how), io(1, 1, bytes(range(40)), 100, **how),
            psig(2, **how), csw(1, 0, b"pipe", **how), record(USER, b"marker", **how), record(STRUCT, b"stat\0" + stat, **how),
            record(STRUCT, b"timespec\0" + struct.pack("<qq", 5, 6), **how), record(SYSCTL, b"kern.version", **how),
            record(FAULT, struct.pack("<QII", 0x400000, 2, 0), **how), record(FAULTEND, struct.pack("<QII", 0x400000, 1, 0), **how),
            record(30, b"?", **how), ret(numbers[1], 0, dropped=3, **how), record(PROCDTOR, struct.pack("<II", 1, 0), **how)]
