#!/usr/bin/python3
"""test_exit.py - what qemu/boot's exit status says, and that nothing is lost on the way out."""
import os
import pathlib
import select
import shutil
import signal
import subprocess
import termios

from harness import (ARCH, BOOT, BUILD, DEADLINE_S, GRUB_ONLY, ROOT, WHOLE, Skipped, boot, check, check_eq, check_match, cpus, decode, ktr_stats,
                     main, portable_test, scratch_file, test, times)

# In the background SIGINT is ignored, and a program that starts so keeps it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


def status_of(script, expected, **more):
    return boot(script, **more).expect(expected)


for n in (0, 1, 7, 63):
    test(f"poweroff {n} ends with status {n}")(lambda n=n: status_of(f"poweroff {n}\n", n))
    portable_test(f"a script whose last status is {n} ends with it")(lambda n=n: status_of(f"exit {n}\n", n))


@portable_test("a script's last command gives the status, and a status above 63 becomes 63")
def last():
    status_of("true\nfalse\n", 1)
    status_of("false\ntrue\n", 0)
    status_of("exit 200\n", 63)


@portable_test("poweroff 64 is refused, and the machine stays up")
def too_high():
    run = status_of("poweroff 64\necho status $?\npoweroff 5\n", 5)
    check_match(r"^status [12]$", run.out, "status of poweroff 64")


@test("poweroff ends at once by BIOS and UEFI too", arch=GRUB_ONLY)
def firmware():
    if not WHOLE:
        raise Skipped("test_reset's guests end so; make soak makes both")
    for fw in ("bios", "uefi"):
        status_of("poweroff 9\n", 9, firmware=fw, smp=2)


@test("a panic ends with status 101, its message, a backtrace and the last events")
def panic():
    for smp in cpus():
        run = status_of("sysctl debug.kdb.panic=1\n", 101, smp=smp, mask="SYSC,PROC", trace=True)
        check_match(r"^panic: .+", run.out, "the panic's message")
        check_match(r"sysctl\w*\+0x[0-9a-f]+.*kernel/.+\.c:\d+", run.out, "a line of the backtrace with file and line")
        check_match(r"syscall sysctl: arg0", run.out, "the last events")
        # The trace ends cleanly all the same: decoding it would fail otherwise.
        check_match(r"panic: ", run.events[-1]["text"] + "\n" + "\n".join(e["text"] for e in run.events[-20:]),
                    "the panic in the trace")


@portable_test("a panic at any moment of the flush leaves a trace without damage")
def busy_panic():
    for smp, line in zip(times((1, 2, 4, 2), (1, 2, 4, 2, 4, 2, 4)), "vvvsvsv"):
        run = boot("load mix -n 3 -j 2 > /tmp/out &\nsysctl debug.kdb.panic=1\n", smp=smp, mask="SYSC,PROC,SCHED,LOCK",
                   trace=True, options=["--trace-line", "virtio" if line == "v" else "serial"]).expect(101)
        check(any(e["text"].startswith("panic: ") for e in run.events), "no panic in the trace")


@portable_test("a guest that does not end is stopped at the deadline with status 124")
def deadline():
    run = boot("while true; do sleep 1; done\n", timeout=3)
    run.expect(124)
    check_match(r"3 s", run.err, "the message")


@test("a guest that resets itself ends with status 125")
def reset():
    run = boot("reboot\n").expect(125)
    check_match(r"boot: .+", run.err, "the message")


@portable_test("bad usage ends with status 2 and says what was expected")
def usage():
    for options, pattern in (
            (["--smp", "0"], "expected 1 to"), (["--smp", "x"], "invalid int"), (["--set", "novalue"], "NAME=VALUE"),
            (["--firmware", "coreboot"], "invalid choice"), (["--nonsense"], "unrecognized arguments"),
            (["--script", "/nonexistent"], "no such file"), (["--script", "/"], "no such file"),
            (["--loader-conf", "/nonexistent"], "no such file"), (["--initrd", "/nonexistent", "--firmware", "none", "--timeout", "1"], "--initrd /nonexistent: No such file or directory"),
            (["--arch", "x86_64", "--firmware", "uefi", "--iso", "/nonexistent", "--timeout", "1"], "--iso /nonexistent: No such file or directory"),
            (["--trace", "/nonexistent/t", "--timeout", "1"], "--trace /nonexistent/t: No such file or directory"),
            (["--timeout", "-1"], "above 0"), (["--timeout", "nan"], "above 0"), (["--timeout", "inf"], "above 0"), (["--kernel", "/nonexistent/elf", "--timeout", "1"], "not built"),
            (["--firmware", "none", "--iso", "x"], "expected --firmware bios or uefi"), (["--arch", "vax"], "aarch64"),
            (["--arch", "aarch64", "--firmware", "uefi"], "--firmware uefi: expected none with --arch aarch64"),
            ([], "no terminal, and no commands on standard input"), (["--mem", "8M"], "--mem 8M: the kernel and its programs need at least 16M"),
            (["--mask", "SCHD,PROC", "--trace", "none.ktr"], '--mask SCHD,PROC: no class "SCHD"; did you mean SCHED?'),
            (["--mask", "SCHED,NOPE"], 'no class "NOPE"; expected names such as SCHED,PROC, a number, ALL or NONE'),
            (["--mem", "9Q"], r"\Ausage: .*\nqemu/boot: error: --mem 9Q: expected MiB, or a number with k, M, G or T$"),
            (["--arch", "x86_64", "--firmware", "uefi", "--mem", "48M"], "--mem 48M: UEFI firmware needs at least 64M"),
            (["--arch", "x86_64", "--firmware", "uefi", "--mem", "63"], "--mem 63: UEFI firmware needs at least 64M"),
            (["--kernel", f"/nonexistent/{ARCH}/kestrel", "--timeout", "1"], f"not built; run make ARCH={ARCH}$")):
        p = subprocess.run([str(BOOT), "--arch", ARCH, *options], capture_output=True, text=True, timeout=DEADLINE_S,
                           stdin=subprocess.DEVNULL)
        check_eq(p.returncode, 2, f"status with {options}")
        check_match(pattern, p.stderr, f"message for {options}")
        check(p.stdout == "", f"{options}: found output {p.stdout!r}")


@test("an image that GRUB has made for BIOS only is refused at once for UEFI, and what to type is said", arch=GRUB_ONLY)
def no_uefi_part():
    tree = scratch_file("")  # as it is where GRUB for UEFI was not there yet when the image was made
    shutil.copytree(ROOT / "qemu", tree / "qemu")
    build = tree / "build" / ARCH
    build.mkdir(parents=True)
    for name in ("kestrel", "initrd.cpio"):
        (build / name).symlink_to(BUILD / name)
    (build / "iso").mkdir()
    image = build / "kestrel.iso"
    subprocess.run(["grub-mkrescue", "-d", "/usr/lib/grub/i386-pc", "-o", image, "--modules=normal", "--install-modules=normal",
                    "--fonts=", "--locales=", "--themes=", build / "iso"], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True, timeout=DEADLINE_S)
    for options, told in (([], "run qemu/install-tools test, which installs GRUB for it, then make"),
                          (["--iso", image], "use --firmware bios")):
        p = subprocess.run([tree / "qemu/boot", "--firmware", "uefi", "--script", "-", *options], input="echo it runs\n",
                           capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        expected = 2, "", f"boot: {image}: no part for UEFI firmware; {told}\n"
        check_eq((p.returncode, p.stdout, p.stderr), expected, f"status and output with {options}")


@portable_test("--dry-run changes no file, and neither does a run that is refused")
def dry():
    trace = scratch_file(".ktr")
    trace.write_bytes(b"kept")
    for options, status in ((["--dry-run"], 0), (["--kernel", "/nonexistent/elf"], 2)):
        p = subprocess.run([BOOT, "--arch", ARCH, "--firmware", "none", "--trace", trace, *options], capture_output=True, text=True, timeout=DEADLINE_S,
                           stdin=subprocess.DEVNULL, check=False)
        check_eq((p.returncode, trace.read_bytes()), (status, b"kept"), f"status and trace with {options}; it says {p.stderr}")


@portable_test("output that cannot be written is an error that says so")
def full():
    script = scratch_file(".sh")
    script.write_text("echo something\n")
    with open("/dev/full", "wb") as sink:
        p = subprocess.run([BOOT, "--arch", ARCH, "--script", script], stdout=sink, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False)
    check_eq((p.returncode, p.stderr), (3, "boot: standard output: No space left on device\n"), "status and message")


@portable_test("a trace that is cut, as on a full disk, is told")
def cut_trace():
    run = boot("load mix -n 1\n", trace=True, mask="SYSC").expect()
    run.trace.write_bytes(run.trace.read_bytes()[:-100])
    told = "import sys; m = {'__name__': 'boot', '__file__': sys.argv[1]}; exec(open(sys.argv[1]).read(), m); m['say_losses'](sys.argv[2], True)"
    p = subprocess.run(["/usr/bin/python3", "-c", told, BOOT, run.trace], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    check_match(rf"^boot: --trace: {run.trace}: offset \d+: ", p.stderr, "what is said of a trace without its end")


@portable_test("a deadline on a terminal leaves the terminal as it was")
def terminal():
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    with subprocess.Popen([BOOT, "--arch", ARCH, "--firmware", "none", "--timeout", "2"], stdin=theirs, stdout=theirs, stderr=theirs) as p:
        while p.poll() is None:
            if select.select([ours], [], [], 0.1)[0]:
                os.read(ours, 65536)
    check_eq((p.returncode, termios.tcgetattr(theirs)), (124, before), "status and modes of the terminal")
    os.close(ours)
    os.close(theirs)


@portable_test("a script is not run if the kernel refuses a parameter: the status is 2; with --lenient it is run")
def strict():
    for options, why in ((["--mask", "NOPE"], 'no class "NOPE"'), (["--set", "debug.ktr.entriez=5"], "did you mean debug.ktr.entries?"),
                         (["--set", "debug.ktr.entries=zz"], "debug.ktr.entries: "), (["--append", "ftrace=zz"], "ftrace=zz: error 22; it is a tracer of available_tracers"),
                         (["--set", "vfs.mountfrom=garbage"], "vfs.mountfrom=garbage: expected ext2:")):
        run = boot("echo it runs\n", options=options).expect(2)
        check(why in run.out and "init.script is not run" in run.out and "it runs" not in run.out, run.out)
    for how in (["--lenient"], ["--set", "init.strict=0"]):
        run = boot("echo it runs\n", options=[*how, "--mask", "NOPE"]).expect(0)
        check('no class "NOPE"' in run.out and "it runs" in run.out, run.out)


@portable_test("commands from a pipe run as a script; a pipe that is empty is a console without input")
def piped():
    for commands, found in (("echo from a pipe\nexit 7\n", (7, "from a pipe\n")), ("", (124, ""))):
        source, sink = os.pipe()
        os.write(sink, commands.encode())  # before it starts: an empty pipe would be a console
        os.close(sink)
        with open(source, "rb") as pipe:
            p = subprocess.run([str(BOOT), "--arch", ARCH, "--firmware", "none", "--smp", "1", "--timeout",
                                str(DEADLINE_S) if commands else "5"], stdin=pipe, capture_output=True, text=True,
                               timeout=DEADLINE_S + 30)
        check_eq((p.returncode, p.stdout if commands else ""), found, f"status and output of {commands!r}")


@portable_test("if QEMU does not start, the status is 3 and QEMU's message is printed")
def no_start():
    run = boot("true\n", options=["--machine", "nosuchmachine"]).expect(3)
    check_match(r"unsupported machine type", run.err, "the message")


@portable_test("--console writes the console to a file, and nothing to stdout")
def console():
    path = scratch_file(".txt")
    run = boot("echo over there; exit 3\n", options=["--console", str(path)]).expect(3)
    check_eq(run.out, "", "stdout")
    check_match(r"^over there\r?$", path.read_text(), "the console file")


@portable_test("--script FILE, with blanks, quotes and no newline at the end, runs as it stands; FILE may be a pipe")
def script_file():
    path = scratch_file(" with 'blank.sh")
    path.write_text("x='a  b'\nif true; then\n\techo \"<$x>\"\nfi\nexit 4")
    for name, data in ((str(path), None), ("/dev/stdin", path.read_bytes())):
        p = subprocess.run([str(BOOT), "--arch", ARCH, "--smp", "1", "--script", name], capture_output=True, input=data,
                           timeout=DEADLINE_S)
        check_eq((p.returncode, p.stdout), (4, b"<a  b>\n"), f"status and output of {name}")


@portable_test("without --trace the flush is off; with it, it is on")
def second_port():
    run = boot("sysctl -n debug.ktr.alq_enable\n").expect()
    check_eq(run.out.strip(), "0", "debug.ktr.alq_enable without --trace")
    run = boot("sysctl -n debug.ktr.alq_enable\n", trace=True).expect()
    check_eq(run.out.strip(), "1", "debug.ktr.alq_enable with --trace")
    check(run.trace.stat().st_size > 0, "the trace file is empty, expected a header and an end")


@portable_test("a program's bytes never mix with the stream: /dev/vport0p1 is busy while the flush has the line")
def one_writer():
    run = boot("(for i in 1 2 3 4 5 6 7 8; do echo mixed > /dev/vport0p1 || echo refused $i; done) &\nload mix -n 2\nwait\n"
               "sysctl debug.ktr.alq_file=/dev/vport0p1 > /dev/null\necho mixed > /dev/vport0p1 || echo refused\nsysctl debug.ktr.alq_enable=0\necho alone > /dev/vport0p1 && echo taken\n", smp=2, mask="SCHED,SYSC",
               trace=True).expect()
    check_eq(run.out.count("refused"), 9, f"writes that were refused in:\n{run.out}")
    check_match("^taken$", run.out, "the console")
    data = run.trace.read_bytes()
    check(data.endswith(b"alone\n") and b"mixed" not in data, f"the line's end: {data[-20:]}")
    run.trace.write_bytes(data[:-len(b"alone\n")])
    check(len(decode(run.trace)) > 100, "events in the stream")


@test("power-off delivers what the rings hold: the last system call is in the file")
def clean_end():
    for smp in cpus():
        run = boot("load syscall -n 300\nsysctl debug.ktr.stats\npoweroff 11\n", smp=smp, mask="SYSC,PROC",
                   trace=True, sets=["debug.ktr.entries=16384"]).expect(11)
        check_eq(run.gaps, [], "gaps")
        calls = [e for e in run.events if e["text"].startswith("syscall machine_shutdown:")]
        check_eq([e["args"][1] for e in calls], [11], "status in the shutdown's arguments")
        for cpu, s in ktr_stats(run.out).items():
            check(sum(e["cpu"] == cpu for e in run.events + run.parts) >= s["recorded"],
                  f"cpu {cpu}: fewer events than recorded")


@portable_test("qemu/boot ends when the reader of its output has closed the pipe")
def closed_stdout():
    p = subprocess.Popen([str(BOOT), "--arch", ARCH, "--smp", "1", "--timeout", "600", "--script", "-"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(b"while true; do echo y; done\n")
    p.stdin.close()
    check_eq(p.stdout.readline(), b"y\n", "first line")
    p.stdout.close()
    status = p.wait(timeout=DEADLINE_S)
    check(status not in (0, 124), f"found status {status}, expected that of a broken pipe")


def children(pid):
    """Processes that a process has started."""
    return [int(n) for n in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@portable_test("whatever ends qemu/boot ends its guest, too")
def killed():
    for end in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        p = subprocess.Popen([str(BOOT), "--arch", ARCH, "--firmware", "none", "--smp", "1", "--timeout", "600", "--script", "-"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        p.stdin.write(b"echo up\nwhile true; do :; done\n")
        p.stdin.close()
        check_eq(p.stdout.readline(), b"up\n", "first line")
        guest, = children(p.pid)
        handle = os.pidfd_open(guest)
        p.send_signal(end)
        check(select.select([handle], [], [], DEADLINE_S)[0], f"QEMU still runs after {end.name} to qemu/boot")
        os.close(handle)
        p.wait(DEADLINE_S)
        p.stdout.close()


if __name__ == "__main__":
    main()
