"""instructions.py - rows that count instructions: one CPU under qemu/boot --icount, where a nanosecond is one
instruction.

The same build gives the same numbers on every host. Sources: tests/kernel/bench_*.c, tests/user/bench.c.
"""
import re
import shlex
import shutil
import subprocess
import sys

from rows import ROOT, BenchError, Row

sys.path.insert(0, str(ROOT / "tests" / "system"))
from harness import boot, scratch_file  # noqa: E402

KERNEL = "icount; difference of two loops of 4,096 rounds, a turn of the ring, the least of 40"
HOW = {
    "site_off": f"{KERNEL}: a trace point without parameters that is off",
    "site_off6": f"{KERNEL}: one with six parameters that is off",
    "ctr0": f"{KERNEL}: on, ring only, from the patched instruction to the one after the site",
    "ctr1": f"{KERNEL}: the same with one parameter",
    "ctr3": f"{KERNEL}: the same with three",
    "ctr6": f"{KERNEL}: the same with six, in registers",
    "ctr6_constants": f"{KERNEL}: the same with six, of which the two on the stack are constants",
    "fbt_entry": "icount; difference of two loops of 4,096 calls of a function with six parameters, the least of 40: with the"
                 " probe at its entry on, and off",
    "fbt_return": "the same with the probe at its return, which records offset and value",
    "kprobe": "the same with a probe at the instruction after the entry's no-op, which records two registers",
    "hook_fbt": "the same as fbt_entry with a hook that does nothing (ktr/hook.h), instead of the log",
    "hook_ctr": "the same for a trace point with two parameters",
    "dtrace_nothing": "icount; difference of two loops of 10,000 firings of a trace point without parameters: with a program"
                      " that does nothing (kernel/dtrace), and off",
    "dtrace_false": "the same with a program that compares the pid, which is another one",
    "dtrace_count": "the same with @ = count()",
    "dtrace_count_pid": "the same with @[pid] = count()",
    "dtrace_count_names": "the same with @[execname, probefunc] = count()",
    "dtrace_count_stack": "the same with @[stack()] = count() of 8 frames",
    "dtrace_count_two": "the same with @[execname, tid] = count()",
    "dtrace_count_stack16": "the same with @[stack()] = count() of 16 frames",
    "ftrace_false": "as dtrace_false, by a file `filter` of tracefs",
    "ftrace_true": "the same with a filter that is true: the event is recorded",
    "ftrace_two_keys": "as dtrace_count_two, by a trigger hist:keys=comm,common_pid",
    "ftrace_stack16": "as dtrace_count_stack16, by a trigger hist:keys=stacktrace",
    "dtrace_record64": "the same with 64 bytes of memory to the consumer's buffer",
    "dtrace_count_func": "the same with @[probefunc] = count()",
    "dtrace_printf": "the same with printf(\"%d %s\", pid, execname)",
    "switch_off": "icount; two kernel threads yield to each other 16,384 times, nothing traced",
    "switch_sched": "the same with SCHED on",
    "switch_delta": "switch_sched less switch_off",
    "syscall_off": "icount; getppid() in a loop of 1,000, the best of 64, nothing traced",
    "syscall_sysc": "the same with SYSC on: entry and return are recorded",
    "syscall_delta": "syscall_sysc less syscall_off",
    "clock_gettime": "icount; a program's clock_gettime(CLOCK_MONOTONIC), by the vDSO; Linux 6.1: 78",
    "readdir": "icount; an entry of a directory of 8,000, by getdents64() with 32 KiB; Linux 6.1: 348",
    "poll_64": "icount; poll() of 64 pipes of which none is ready, 100 times, the best of 64; Linux 6.1: 9397",
    "epoll_wait": "icount; epoll_wait() of a pipe that is ready, 1,000 times, the best of 64; Linux 6.1: 825",
    "fork": "icount; fork(), _exit() of the child, and wait4(), the best of 64; Linux 6.1: 135086",
    "fork_exec": "the same with a child that executes user_test, which ends at once; Linux 6.1: 322299",
    "proc_stat": "icount; open, read and close /proc/self/stat, 10 times, the best of 64; Linux 6.1: 20341",
    "proc_maps": "the same of /proc/self/maps; Linux 6.1: 24949",
    "dev_zero": "icount; pread() of 4 KiB of /dev/zero, 1,000 times, the best of 64; Linux 6.1: 1183",
    "shared_fault": "icount; a page of a file in /tmp that is mapped shared, read for the first time; with its parts"
                    " of mmap() and munmap() of 256 pages; Linux 6.1: 1126",
    "pipe_echo": "icount; a byte goes to another process and back, through two pipes, 100 times, the best of 64; Linux 6.1: 10128",
    "stream_echo": "the same through socketpair(AF_UNIX, SOCK_STREAM); Linux 6.1: 18118",
    "datagram_echo": "the same through socketpair(AF_UNIX, SOCK_DGRAM); Linux 6.1: 15858",
    "tcp_echo": "the same through a connection of TCP over 127.0.0.1; Linux 6.1: 30357",
    "stream_64k": "icount; 64 KiB go to another process through socketpair(AF_UNIX, SOCK_STREAM), which answers with a byte; Linux 6.1: 224343",
    "tcp_64k": "the same through a connection of TCP over 127.0.0.1; Linux 6.1: 212385",
    "pread_tmpfs": "icount; pread() of 4 KiB of a file in /tmp, in a loop of 1,000, the best of 64; Linux 6.1: 1809, and 5389 where the CPU has ERMS, since QEMU counts each byte of its copy",
    "pread_ext2": "the same of a file of ext2 on a disk, which is in the cache; Linux 6.1: 1917, and 5497",
    "doorbell": "icount; the best of 200 reads of 4 KiB of a disk: from the entry of bio_batch_wait() to that of virtio_notify(), with recording the first",
    "ktrace_off": "icount; getppid() in a loop of 1,000, the best of 64, no process traced by ktrace",
    "ktrace_on": "the same in loops of 100 by a process whose calls and returns go to a file",
    "ktrace_delta": "ktrace_on less ktrace_off: two records, with calling the hook for each; without writing them to the file",
    "enable_dtrace": "icount; all that the process of a one-liner of D takes until its probes are on, without a glob over functions",
    "mix_false": "icount; `load mix -n 100` with fbt::: and a predicate of D that compares the pid, which is another one,"
                 " beside the time with nothing traced",
    "mix_function": "icount; `load mix -n 100` with the tracer function, of all functions, beside the time without a tracer",
    "mix_graph": "the same with function_graph",
    "mix_function_off": "the same with function, while tracing_on is 0",
    "mix_graph_off": "the same with function_graph",
    "encode": "icount; one pass over /dev/ktr after `load mix -n 2 -j 2` with SCHED, SYSC, LOCK, PROC, VM, INTR on,"
              " for each event; the copy to the reader included",
}
if not (ROOT / "build/guest/source/lwip/src").is_dir():  # qemu/fetch-guest --source lwip gets it
    HOW = {name: how for name, how in HOW.items() if not name.startswith("tcp")}
MIX = "SCHED,SYSC,LOCK,PROC,VM,INTR"
SCRIPT = f"""
user_test bench syscall
user_test bench ktrace
sysctl debug.ktr.mask={MIX} > /dev/null
load mix -n 2 -j 2 > /dev/null
sysctl debug.ktr.mask=NONE > /dev/null
user_test bench encode
user_test bench echo
user_test bench kernel
dtrace -qn 'BEGIN {{ exit(0); }} syscall::read:entry {{ @[execname] = count(); }} END {{ printf("bench enable_dtrace %d.00 instructions\\n", vtimestamp); }}'
"""
# In this order, after the time without a tracer.
TRACERS = {"mix_function": "echo function > current_tracer", "mix_function_off": "echo 0 > tracing_on",
           "mix_graph_off": "echo function_graph > current_tracer", "mix_graph": "echo 1 > tracing_on"}
MIXES = ("mix_false", *TRACERS)
FALSE = "dtrace -qn 'fbt::: /pid == 99999/ {}' -c 'load mix -n 100'"
# While the machine is idle, its time is the host's: it would wait for a disk for seconds of its own time.
IDLE_AS_HOST = ("--", "-icount", "shift=0,sleep=on")
OF_DISKS = ("pread_tmpfs", "pread_ext2", "doorbell")
LINE = re.compile(r"^bench (\w+) (\d+\.\d\d) instructions\r?$", re.M)
QEMU_RISCV64 = "qemu-system-riscv64 -M virt -bios none -display none -monitor none -nodefaults -icount shift=0 -serial stdio -kernel"
DEADLINE_S = 600
DELTAS = {"switch_delta": ("switch_sched", "switch_off"), "syscall_delta": ("syscall_sysc", "syscall_off"),
          "ktrace_delta": ("ktrace_on", "ktrace_off")}


def guest_lines(run, expected):
    """{name: value} of the rows that a guest printed. They must be exactly the expected ones."""
    if run.status != 0:
        raise BenchError(f"status {run.status}, expected 0; {run.err}\n{run.out[-2000:]}")
    found = {name: float(value) for name, value in LINE.findall(run.out)}
    if missing := set(expected) - set(found):
        raise BenchError(f"no row {', '.join(sorted(missing))} in:\n{run.out[-2000:]}")
    return found


def in_kernel(arch, tests, cpus=1, expected=()):
    """{name: value} of the rows that tests in the kernel print."""
    run = boot(arch=arch, smp=cpus, sets=[f"kern.test={tests}"],
               options=["--kernel", str(ROOT / "build" / arch / "kestrel-test"), "--icount"], timeout=DEADLINE_S)
    return guest_lines(run, expected)


def tracers(arch):
    """{name: times} of the tracers of tracefs."""
    tracing = "".join(f"{how}\nload mix -n 100\n" for how in TRACERS.values())
    run = boot(f"load mix -n 100\n{FALSE}\ncd /sys/kernel/tracing\n{tracing}", arch=arch, options=["--icount"], timeout=DEADLINE_S)
    found = [int(ms) for ms in re.findall(r"^load mix: .* ok, (\d+) ms\r?$", run.out, re.M)]
    if run.status != 0 or len(found) != 1 + len(MIXES):
        raise BenchError(f"status {run.status}, expected 0 and {1 + len(MIXES)} times; {run.err}\n{run.out[-2000:]}")
    return {name: round(ms / found[0], 2) for name, ms in zip(MIXES, found[1:])}


def doorbell(arch, disk):
    """From a request to where the device is told."""
    run = boot("ktr on fbt:block:bio_batch_wait:entry > /dev/null; ktr on fbt:virtio:virtio_notify:entry > /dev/null\n"
               "dd if=/dev/vda of=/dev/null bs=4096 skip=1000 count=200 2> /dev/null; ktr off > /dev/null\n", arch=arch, trace=True,
               options=["--icount", "--disk", disk, *IDLE_AS_HOST])
    calls = [(e["func"], e["ns"]) for e in run.events if e.get("func") in ("bio_batch_wait", "virtio_notify")]
    took = [b[1] - a[1] for a, b in zip(calls, calls[1:]) if (a[0], b[0]) == ("bio_batch_wait", "virtio_notify")]
    if run.status != 0 or len(took) < 100:
        raise BenchError(f"status {run.status}, {len(took)} requests; {run.err}\n{run.out[-2000:]}")
    return {"doorbell": min(took)}


def files(arch):
    """{name: value} of the rows that need a disk."""
    disk = str(scratch_file(".img"))  # qemu/boot makes it
    run = boot("user_test bench file /tmp/file pread_tmpfs; user_test bench file /mnt/file pread_ext2\n", arch=arch,
               options=["--icount", "--disk", disk, "--file", f"/bin/user_test={ROOT}/build/{arch}/user_test", *IDLE_AS_HOST], timeout=DEADLINE_S)
    return guest_lines(run, ("pread_tmpfs", "pread_ext2")) | doorbell(arch, disk)


def measure(arch):
    """All rows of an architecture, counted by its kernel and its programs."""
    build = ROOT / "build" / arch
    user = boot(SCRIPT, arch=arch, sets=["debug.ktr.entries=262144"],
                options=["--icount", "--file", f"/bin/user_test={build}/user_test"], timeout=DEADLINE_S)
    of_kernel = [n for n in HOW if n.startswith(("site", "ctr", "fbt", "kprobe", "hook", "dtrace", "ftrace", "switch")) and n not in DELTAS]
    of_user = [n for n in HOW if n not in of_kernel and n not in DELTAS and n not in MIXES and n not in OF_DISKS]
    values = in_kernel(arch, "bench_*", expected=of_kernel) | guest_lines(user, of_user) | tracers(arch) | files(arch)
    for name, (on, off) in DELTAS.items():
        values[name] = round(values[on] - values[off], 2)
    return [Row(name, arch, values[name], "times" if name in MIXES else "instructions", how)
            for name, how in HOW.items()]


def riscv64():
    """The rows of the riscv64 port, on bare metal: tests/bench/riscv64.c."""
    loops = "icount; difference of two loops of 163,840 rounds: on and off; interrupts off"
    hows = {"ctr6": f"{loops}, six parameters, each one register's",
            "dtrace_count": f"{loops}; a trace point and dif.c: {{ @ = count(); }}"}
    command = shlex.split(QEMU_RISCV64)
    if shutil.which(command[0]) is None:
        return [Row(name, "riscv64", None, "", f"not measured: {command[0]} is not installed") for name in hows]
    p = subprocess.run([*command, ROOT / "build/ktr/riscv64-bench"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=DEADLINE_S)
    found = LINE.findall(p.stdout)
    if p.returncode != 0 or [name for name, _ in found] != list(hows):
        raise BenchError(f"{command[0]}: status {p.returncode}, expected 0 and rows {', '.join(hows)}: "
                         f"{p.stdout}{p.stderr}")
    return [Row(name, "riscv64", float(value), "instructions", hows[name]) for name, value in found]
