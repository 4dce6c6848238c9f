#!/usr/bin/python3
"""test_debug.py - the machine from outside: gdb by the script of `make debug`, and QMP."""
import os
import subprocess

from console import Patient, ended, prompt
from harness import (ARCH, BOOT, BUILD, DEADLINE_S, FIRMWARE, ROOT, check, check_eq, check_match, listens, main,
                     portable_test, scratch_file, test, wait_for)
from qmp import Qmp


def gdb(commands, *options):
    """Runs gdb commands in a machine that is stopped at the kernel's first C function. Returns the output."""
    path = scratch_file(".gdb")
    path.write_text(commands)
    p = subprocess.run([str(ROOT / "qemu/gdb/debug"), str(BUILD / "kestrel"), "--arch", ARCH, *options],
                       env=dict(os.environ, GDBFLAGS=f"-batch -x {path}"), stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S, cwd=ROOT)
    return p.stdout


@test("gdb stops at the kernel's first function, with source lines, by firmware that starts an image, and by none")
def first_function():
    for firmware in sorted({FIRMWARE[0], "none"}):
        out = gdb("bt\nnext\n", "--firmware", firmware, "--smp", "2", "--", "-name", "debugged")
        check_match(r"breakpoint 1(\.\d)?, kernel_main \(\) at kernel/main\.c:\d+", out, f"the stop ({firmware})")
        check_match(r"^#1 .*\w+_start .*arch/.+\.c:\d+", out, "the caller")


@test("gdb breaks in the running kernel, and sees arguments and callers up to the system call")
def system_call():
    out = gdb("thbreak sys_openat\ncontinue\nbt\nprint a[1] != 0\n", "--firmware", "none", "--smp", "4")
    check_match(r"^#0 .*sys_openat \(a=.*\) at kernel/fs/.+\.c:\d+", out, "the stop")
    check_match(r"^#\d .*entry_syscall \(tf=", out, "the caller")
    check_match(r"^\$1 = 1$", out, "the argument")


@portable_test("^C goes to gdb, and meanwhile the guest's console accepts commands")
def console_beside():
    gdb = Patient(str(ROOT / "qemu/gdb/debug"), [str(BUILD / "kestrel"), "--arch", ARCH, "--firmware", "none", "--smp", "2"],
                  cwd=ROOT, encoding="utf-8", timeout=DEADLINE_S)
    gdb.expect(r"\(gdb\) ")
    console = Patient(str(ROOT / "qemu/gdb/console"), [str(BUILD / "debug.socket")], encoding="utf-8", timeout=DEADLINE_S)
    console.expect("leave with")
    gdb.sendline("continue")
    prompt(console)
    for n in range(2):
        console.sendline(f"echo alive{n}")
        console.expect(f"\nalive{n}")
        gdb.sendintr()
        gdb.expect("received signal SIGINT")
        gdb.expect(r"\(gdb\) ")
        gdb.sendline("continue")
    console.send("\x1d")
    console.expect("left; the guest continues")
    gdb.sendintr()
    gdb.expect(r"\(gdb\) ")
    gdb.sendline("kill")
    gdb.sendline("quit")
    check_eq(ended(gdb), 0, "exit status")
    check_match(r"^alive1\s*$", (BUILD / "debug.console").read_text(), "what the console said")


@test("a call to another CPU whose interrupt is lost is sent again")
def lost_call():
    script = scratch_file(".sh")
    script.write_text("sysctl debug.ktr.mask=SCHED\necho went on\n")
    # gdb returns from the function at its first instruction, so that it sends nothing.
    out = gdb("thbreak *arch_ipi_send if ipi == IPI_CALL\ncontinue\nbt 1\nreturn\ncontinue\n", "--firmware", "none", "--smp", "2",
              "--script", str(script), "--timeout", "600")
    check_match(r"^#0 .*arch_ipi_send ", out, "the stop")
    check_match(r"^went on$", (BUILD / "debug.console").read_text().replace("\r", ""), f"console, after gdb said\n{out}")


@portable_test("QMP answers on its socket, and quits the machine")
def qmp():
    path = scratch_file(".qmp")
    p = subprocess.Popen([str(BOOT), "--arch", ARCH, "--firmware", "none", "--smp", "1", "--timeout", "600", "--qmp",
                          str(path), "--console", str(scratch_file(".txt"))], stdin=subprocess.DEVNULL,
                         stderr=subprocess.PIPE)
    try:
        wait_for(lambda: listens(path) or p.poll() is not None, "socket of QMP")
        machine = Qmp(path)
        check("QMP" in machine.greeting, f"greeting: found {machine.greeting}")
        for command in ("query-status", "quit"):
            machine.command(command)
        check_eq(p.wait(DEADLINE_S), 0, "exit status")
    finally:
        p.kill()
        p.wait()


if __name__ == "__main__":
    main()
