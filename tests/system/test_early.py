#!/usr/bin/python3
"""test_early.py - what ends the boot before there is a console is reported: exceptions, and what the CPU lacks."""
import contextlib
import subprocess

from harness import (ARCH, BOOT, BUILD, DEADLINE_S, SLACK_S, boot, check, check_eq, check_match, listens, main,
                     scratch_file, test, wait_for)

LOADED = 0x40200000  # aarch64: where QEMU loads the image, which is linked at KERNEL_BASE
KERNEL_BASE = 0xffffffff80000000
UD2 = 0x80000  # x86_64: where gdb writes one
# Where gdb stops the boot CPU, where it makes it continue, what is printed then, and further options.
PLACES = {
    "x86_64": [
        # In 32-bit mode, then in 64-bit mode: an invalid instruction.
        ("boot_long_mode", UD2, "exception 0x0*6, error 0x0{8}, at 0x00080000, address 0x0{8}$"),
        ("long_entry", UD2, "exception 0x0*6, error 0x0{16}, at 0x0*80000, address 0x0{16}$"),
        # In the first C function: a page fault by an instruction fetch.
        ("x86_start", 0xffffa00000000000, "exception 0x0*e, error 0x0*10, at 0xffffa0{11}, address 0xffffa0{11}$")],
    "aarch64": [
        # An instruction abort at the same level (EC 0x21): external (IFSC 0x10) without MMU, otherwise a translation
        # fault.
        ("no_icc_sre", 0xdead0000, "exception at EL2: ESR 0x0*86000010, at 0x0{8}dead0000, address 0x0{8}dead0000$",
         "--machine", "virt,gic-version=3,virtualization=on"),
        ("mmu_on", 0xdead0000, "exception at EL1: ESR 0x0*86000010, at 0x0{8}dead0000, address 0x0{8}dead0000$"),
        ("aarch64_start", 0xffffa00000000000, "exception at EL1: ESR 0x0*8600000[4-7], at 0xffffa0{11}, address 0xffffa0{11}$"),
        ("devtree_init", 0xffffa00000000000, "exception at EL1: ESR 0x0*8600000[4-7], at 0xffffa0{11}, address 0xffffa0{11}$")],
}[ARCH]


def symbol(name):
    text = subprocess.run(["nm", BUILD / "kestrel"], capture_output=True, text=True, check=True).stdout
    return int(check_match(rf"^([0-9a-f]+) \w {name}$", text, "nm")[1], 16)


@test("an exception before the kernel's own vectors is reported with its place, and ends with a panic's status")
def first_instructions():
    script = scratch_file(".sh")
    script.write_text("echo not reached\n")
    for place, nowhere, expected, *options in PLACES:
        address = symbol(place)
        if ARCH == "aarch64" and place in ("no_icc_sre", "mmu_on"):
            address += LOADED - KERNEL_BASE
        socket = scratch_file(".gdb")
        command = [BOOT, "--arch", ARCH, "--firmware", "none", "--smp", "1", "--gdb", socket, "--script", script, *options]
        words = ["-ex", f"set remotetimeout {DEADLINE_S}", "-ex", f"target remote {socket}", "-ex", f"thbreak *{address:#x}",
                 "-ex", "continue", "-ex", f"set {{short}}{UD2:#x} = 0x0b0f", "-ex", f"set $pc = {nowhere:#x}", "-ex", "detach"]
        with subprocess.Popen([*command, "--timeout", str(DEADLINE_S)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as p, contextlib.ExitStack() as stack:
            stack.callback(p.kill)  # if gdb never comes, or says nothing
            wait_for(lambda: listens(socket) or p.poll() is not None, "socket for gdb")
            gdb = subprocess.run(["gdb-multiarch", "-nx", "-q", "-batch", *words, BUILD / "kestrel"], stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=DEADLINE_S + SLACK_S)
            out = p.communicate()[0]
        check_match(f"^boot: {expected}", out.replace("\r", ""), f"{place}, with gdb's\n{gdb.stdout}{gdb.stderr}\n")
        check_eq(p.returncode, 101, f"exit status ({place})")


@test("a CPU that lacks what the kernel needs is named in a sentence, and ends with a panic's status",
      arch=("x86_64", "CPUID is of x86; each 64-bit Arm CPU has what the kernel needs"))
def lacking():
    for cpu, name in (("n270", r"long mode \(64 bits\)"), ("pentium", r"long mode \(64 bits\)"), ("max,-nx", "NX"), ("max,-sse2", "SSE2")):
        guest = boot("echo not reached\n", smp=1, options=["--cpu", cpu])
        check_match(rf"\A\s*boot: this CPU lacks {name}, which the kernel needs\s*\Z", guest.out, f"--cpu {cpu}")
        check_eq(guest.status, 101, f"exit status (--cpu {cpu})")


if __name__ == "__main__":
    main()
