#!/usr/bin/python3
"""test_line.py - the line on which a trace leaves the guest: a port of virtio-serial, or the second serial line; and the
ports as files. How each kind of death leaves it, test_exit, test_reset and test_routes say."""
import contextlib
import hashlib
import json
import socket
import subprocess
import threading

from console import close, ended, gdb, guest, shell, wait_for_flush
from harness import (ARCH, BOOT, DEADLINE_S, MACHINE, boot, check, check_eq, check_match, decode, ktr_stats, ktrdump, main,
                     portable_test, scratch_file, wait_for)
from qmp import Qmp

VIRTIO = MACHINE.trace_device["virtio"]


def lost_by_load():
    """How many events four CPUs lose under load. The accounts of the kernel and of the file are exact, whatever was lost."""
    run = boot("load mix -j 4\nsysctl debug.ktr.stats\n", smp=4, mask="ALL", trace=True).expect()
    check_match(r"^load mix: n=100 jobs=4 ok", run.out, "the workload")
    stats = ktr_stats(run.out)
    for cpu, s in stats.items():
        check_eq(s["delivered"] + s["resident"] + s["overwritten"], s["recorded"], f"cpu {cpu}: the account")
    status, out, err = ktrdump("report", "events", "--format", "jsonl", "--rows", "0", run.trace)
    check_eq((status, err), (0, ""), "ktrdump report")
    rows = {r["cpu"]: r for r in map(json.loads, out.splitlines()) if r.get("table") == "cpus" and "cpu" in r}
    check(sum(r["count"] for r in rows.values()) >= 100_000, f"few events: {rows}")
    for cpu, s in stats.items():
        there = rows[cpu]["count"] + rows[cpu]["overwritten"]
        check(there + 4 >= s["recorded"], f"cpu {cpu}: {rows[cpu]} in the file, {s} in the kernel")  # 4: parts of long data
    return sum(r["overwritten"] for r in rows.values())


@portable_test("`load mix -j 4` with all classes and the rings as they are loses nothing, and each event is in the file")
def nothing_lost():
    # Real time: a host that does not run the CPU of the flush for tens of milliseconds lets the others fill their rings. Over the
    # serial line more than half of the events are lost each time.
    lost = []
    while not lost or (lost[-1] != 0 and len(lost) < 5):
        lost.append(lost_by_load())
    check_eq(lost[-1], 0, f"events lost, of {lost}")


@portable_test("--trace-line serial is the second serial line, as is a machine without a port; then there is no port, and the other way round")
def either():
    script = "sysctl -n debug.ktr.alq_file\necho /dev/vport*\ncat /dev/null > /dev/ttyS1\nsysctl debug.ktr.alq_file=/dev/vport0p3\nload fork -n 3\n"
    for line, file, ports, other in (("virtio", "/dev/vport0p1", "/dev/vport0p0 /dev/vport0p1 /dev/vport0p2 /dev/vport0p3", "can't create /dev/ttyS1"),
                                     ("serial", "/dev/ttyS1", "/dev/vport*", "alq_file: /dev/vport0p3: this machine has no such port of virtio-serial")):
        run = boot(script, mask="PROC", trace=True, options=["--trace-line", line]).expect()
        check_eq(run.out.splitlines()[:2], [file, ports], f"the file of the flush, and the ports, with {line}")
        check(other in run.out, f"no `{other}` in\n{run.out}")
        check(sum(e["text"].startswith("fork: ") for e in run.events) >= 3, f"forks in the trace by {line}")


@portable_test("--trace-line says what cannot be; without it, a machine without PCI has the serial line")
def usage():
    def dry(*options):
        return subprocess.run([BOOT, "--arch", "x86_64", "--dry-run", "--script", "/dev/null", *options], capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)

    for options, words in ((["--trace-line", "virtio"], "--trace-line virtio: expected --trace"),
                           (["--trace", "x", "--trace-line", "parallel"], "invalid choice"),
                           (["--trace", "x", "--trace-line", "virtio", "--machine", "microvm,rtc=on"], "found --machine microvm,rtc=on, expected one with PCI, or serial"),
                           (["--trace", "x", "--trace-line", "virtio", "--record", "/nonexistent/r"], "found --trace-line virtio, expected serial")):
        p = dry(*options)
        check_eq(p.returncode, 2, f"status with {options}")
        check(words in p.stderr, f"{options}: {p.stderr}")
    for options, device in (([], "virtserialport"), (["--machine", "microvm"], "-serial chardev:trace"), (["--record", "/nonexistent/r"], "-serial chardev:trace")):
        check(device in dry("--trace", "x", *options).stdout, f"no {device} with {options}")


@portable_test("with --icount the trace by virtio-serial repeats, byte by byte")
def repeats():
    traces = [boot("load mix -n 2 -j 2\n", smp=2, mask="SCHED,PROC,SYSC", trace=True, options=["--icount"]).expect().trace.read_bytes() for _ in range(2)]
    check(len(traces[0]) > 10_000 and traces[0] == traces[1], f"traces of {len(traces[0])} and {len(traces[1])} bytes")


class Reader(threading.Thread):
    """Reads what comes from a socket until its end."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.socket, self.data = socket.socket(socket.AF_UNIX), bytearray()
        self.socket.connect(str(path))
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while data := self.socket.recv(65536):
                self.data.extend(data)

    def hang_up(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.join(DEADLINE_S)
        self.socket.close()


def to_socket(path, name):
    """QEMU's options for a character device that anybody may connect to, now or later."""
    return ["-chardev", f"socket,id={name},path={path},server=on,wait=off"]


def delivered(c):
    return sum(s["delivered"] for s in ktr_stats(shell(c, "sysctl debug.ktr.stats")).values())


@portable_test("while nobody is at the other end, nothing is sent, and nothing is lost in silence; power-off says what was not taken")
def nobody_there():
    path = scratch_file(".sock")
    with guest("--set", "debug.ktr.alq_enable=1", "--mask", "SYSC", "--", *to_socket(path, "trace"), *VIRTIO, smp=2) as c:
        shell(c, "load syscall -n 300")
        check_eq(delivered(c), 0, "events that count as delivered, with nobody there")
        reader = Reader(path)
        wait_for_flush(c, 600)
        shell(c, "sysctl debug.ktr.alq_enable=0")
        file = scratch_file(".ktr")
        wait_for(lambda: file.write_bytes(bytes(reader.data)) and ktrdump("-i", file)[0] == 0, "whole stream")
        calls = [e for e in decode(file) if e.get("text", "").startswith("syscall ")]
        check(len(calls) >= 300, f"{len(calls)} system calls came, expected 300 or more")
        reader.hang_up()
        shell(c, "sysctl debug.ktr.alq_enable=1")
        before = delivered(c)
        shell(c, "load syscall -n 300")
        check_eq(delivered(c), before, "events that count as delivered, with nobody there any more")
        c.sendline("poweroff")
        c.expect(r"ktr: /dev/vport0p1 did not take (\d+) events")
        check(int(c.match[1]) >= 600, f"only {c.match[1]} events are said to be lost")
        ended(c)


@portable_test("whoever switches the flush off may be one who writes no large files: the stream is whole")
def small_limit():
    run = boot("sysctl debug.ktr.alq_file=/tmp/t debug.ktr.alq_enable=1 >/dev/null\n"
               "load syscall -n 300\n(ulimit -f 0; sysctl debug.ktr.alq_enable=0; echo status $?)\n"
               "ktrdump -i /tmp/t > /tmp/text; echo ktrdump $?\n"
               "grep -c 'syscall ' /tmp/text\n", mask="SYSC").expect()
    check_match(r"^debug.ktr.alq_enable: .*\nstatus 0\nktrdump 0\n", run.out.replace("\r", ""), "what the commands say")
    check(int(run.out.split()[-1]) >= 300, f"few system calls in\n{run.out}")
    check_eq(run.err, "", "what is said of the trace")


@portable_test("a port is a file: what one end writes the other reads; who waits for the other end can be interrupted")
def port_file():
    path = scratch_file(".sock")
    with guest("--trace", str(scratch_file(".ktr")), "--", *to_socket(path, "other"), "-device", "virtserialport,nr=2,chardev=other,name=other", smp=2) as c:
        check_match(r"^0\r*$", shell(c, "wc -c < /dev/vport0p2"), "what is read with nobody there")
        shell(c, "echo early > /dev/vport0p2 &")
        shell(c, "kill $!; wait $!")
        check_match(r"No such device", shell(c, "cat /dev/vport0p3"), "a port that is not there")
        check_match(r"esource busy", shell(c, "echo x > /dev/vport0p1"), "the port of the trace")
        reader = Reader(path)
        # QEMU hears of a close later, and drops what it reads from the socket just then: 3 keeps the port open.
        shell(c, "exec 3< /dev/vport0p2")
        shell(c, "seq 20000 > /dev/vport0p2")
        numbers = b"".join(b"%d\n" % n for n in range(1, 20001))
        wait_for(lambda: len(reader.data) >= len(numbers), "108894 bytes")
        check(bytes(reader.data) == numbers, f"{len(reader.data)} bytes, others than were written")
        c.sendline(f"head -c {len(numbers)} <&3 | md5sum; cat /dev/vport0p2; echo at the end")
        reader.socket.sendall(numbers)
        c.expect("([0-9a-f]{32}) ")
        check_eq(c.match[1], hashlib.md5(numbers).hexdigest(), "the sum of what the guest has read")
        reader.hang_up()
        c.expect("at the end")
        c.sendline("poweroff 3")
        ended(c)


@portable_test("the other end of a full port hangs up, and comes again: who writes goes on")
def hang_up():
    path = scratch_file(".sock")
    with guest("--", "-device", "virtio-serial-pci,disable-legacy=on,ioeventfd=off,max_ports=4", *to_socket(path, "other"), "-device", "virtserialport,nr=2,chardev=other,name=other", smp=2) as c:
        silent = socket.socket(socket.AF_UNIX)
        silent.connect(str(path))
        shell(c, "(head -c 600000 /dev/zero > /dev/vport0p2; echo all is written) & until grep -q vportout /proc/[0-9]*/wchan 2> /dev/null; do :; done")
        silent.close()
        reader = Reader(path)
        c.expect("all is written")
        reader.hang_up()
        check("broke a ring" not in shell(c, "dmesg"), "the device counts as broken")
        c.sendline("poweroff")
        ended(c)


@portable_test("a port that comes again while it is open is open for the host; writers hear of a taking")
def taken():
    first, second, socket_ = (scratch_file(".sock") for _ in range(3))
    with guest("--qmp", str(socket_), "--", *to_socket(scratch_file(".sock"), "trace"), *VIRTIO, *to_socket(first, "a"),
               *to_socket(second, "b"), "-device", "virtserialport,id=p,nr=2,chardev=a", smp=2) as c:
        shell(c, "(echo x > /dev/vport0p1) 2> /tmp/err &")
        shell(c, "until grep -q vportout /proc/[0-9]*/wchan; do :; done 2> /dev/null")
        check_match("esource busy", shell(c, "sysctl -q debug.ktr.alq_enable=1; wait; cat /tmp/err"), "a write")
        qmp, reader = Qmp(socket_), Reader(second)
        shell(c, "exec 3< /dev/vport0p2")
        qmp.command("device_del", id="p")
        shell(c, "until ! true < /dev/vport0p2; do :; done 2> /dev/null")
        qmp.command("device_add", driver="virtserialport", id="q", nr=2, chardev="b")
        reader.socket.sendall(b"what came\n")  # the port is there before its other end is
        out = shell(c, "until head -n 1 < /dev/vport0p2 | grep what; do :; done 2> /dev/null")
        check_match("^what came", out, "what is read")
        close(c)


@portable_test("a device that breaks a ring is set aside: the flush ends with a message, and the machine goes on")
def broken_ring():
    path = scratch_file(".gdb")
    with guest("--trace", str(scratch_file(".ktr")), "--", "-gdb", f"unix:{path},server=on,wait=off", smp=1) as c:
        # QEMU would write a good index over a bad one: instead, the driver takes a good one for bad.
        gdb("set var 'serial.c'::serial.port[1].tx.seen -= 200", "detach", socket=path)
        shell(c, "sysctl debug.ktr.mask=SYSC")
        out = shell(c, "until dmesg | grep 'the flush ends'; do :; done; dmesg | grep 'virtio-serial:'; sysctl -n debug.ktr.alq_enable")
        check_match(r"ktr: /dev/vport0p1 does not take the stream any more; the flush ends", out, "the message of the flush")
        check_match(r"virtio-serial: it broke a ring; it is no longer used", out, "the message of the driver")
        check_match(r"^0\r*$", out, "debug.ktr.alq_enable")
        check_match(r"No such device|Input/output error", shell(c, "echo x > /dev/vport0p1"), "a write")
        c.sendline("poweroff")
        ended(c)


@portable_test("a device that broke a ring while the machine was stopped is set aside later; who waits is told")
def broken_while_stopped():
    path = scratch_file(".gdb")
    with guest("--trace", str(scratch_file(".ktr")), "--", *to_socket(scratch_file(".sock"), "other"), "-device",
               "virtserialport,nr=2,chardev=other,name=other", "-gdb", f"unix:{path},server=on,wait=off", smp=1) as c:
        shell(c, "(echo x > /dev/vport0p2; echo status $?) > /tmp/out 2>&1 &")
        shell(c, "until grep -q vportout /proc/[0-9]*/wchan 2> /dev/null; do :; done")
        gdb("set var 'serial.c'::serial.broken = 1", "detach", socket=path)  # all that a stop leaves
        shell(c, "sysctl debug.ktr.mask=SYSC; wait")
        check_match(r"(?s)(Input/output error|No such device).*status 1", shell(c, "cat /tmp/out"), "a write")
        check_match(r"virtio-serial: it broke a ring; it is no longer used", shell(c, "dmesg"), "the driver's message")
        c.sendline("poweroff")
        ended(c)


if __name__ == "__main__":
    main()
