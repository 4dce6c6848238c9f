#!/usr/bin/python3
"""test_nmi.py - an NMI between two instructions that belong together. The debugger's breakpoints take its place:
like an NMI they come whatever the interrupt flag says, return by the same code, and stop the other CPUs."""
import re
import subprocess

from console import Patient, DB, db, ended, guest, prompt, stopped_by_request
from harness import BUILD, DEADLINE_S, check_eq, check_match, main, scratch_file, test

X86 = ("x86_64", "its registers are x86_64's")


def instruction(function, pattern):
    """The address of the one instruction of a kernel function whose text matches."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", BUILD / "kestrel"],
                          capture_output=True, text=True, check=True).stdout
    found = re.findall(rf"^([0-9a-f]{{16}}):\s+{pattern}", text, re.M)
    check_eq(len(found), 1, f"instructions {pattern} in\n{text}")
    return int(found[0], 16)


def stops_at(c, address):
    c.expect(r"breakpoint \d+ on cpu \d, at .*\n")
    c.expect(DB)
    check_match(rf"^{address:#x} ", db(c, "print $pc"), "where it stopped")


@test("stopping the other CPUs between the two writes of the interrupt command register misdirects no interrupt", arch=X86)
def interrupt_command():
    low = instruction("lapic_send", r"mov +%e\w\w,0x300\(%r\w\w\)")  # SDM vol. 3A, 10.6.1: the write of the low half sends
    with guest(smp=4) as c:
        # Each change of the mask calls all other CPUs, one after the other, and waits for each. The line is typed
        # before: a key that wakes the shell on another CPU would stop the machine in the midst of it.
        c.sendline("sysctl debug.kdb.enter=1; sysctl debug.ktr.mask=SCHED")
        c.expect(DB)
        check_match(r"^breakpoint 1 at lapic_send\+", db(c, f"break {low:#x}"), "break")
        c.sendline("continue")
        for _ in range(6):
            stops_at(c, low)
            c.sendline("continue")
        stops_at(c, low)
        db(c, "delete all")
        c.sendline("continue")
        c.expect("-> SCHED")
        c.sendline("poweroff 3")
        check_eq(ended(c), 3, "exit status")


@test("a debugger command that faults, after a page fault but before its handler reads CR2, changes nothing", arch=X86)
def fault_address():
    read = instruction("x86_trap", r"mov +%cr2,")
    socket = scratch_file(".gdb")
    with guest("--", "-gdb", f"unix:{socket},server=on,wait=off", smp=1) as c:
        stopped_by_request(c)
        db(c, f"break {read:#x}")
        c.sendline("continue")
        c.sendline("cat /proc/none")
        for _ in range(5):
            stops_at(c, read)
            check_match("^0x0*10: not readable", db(c, "x 0x10"), "a command that faults")
            c.sendline("continue")
        stops_at(c, read)
        db(c, "delete all")
        c.sendline("continue")
        c.expect("cat: can't open '/proc/none': ")
        prompt(c)
        # The same in an NMI, which the operator of the machine sends at that instruction.
        gdb = Patient("gdb-multiarch", ["-nx", "-q", "-batch", "-ex", f"set remotetimeout {DEADLINE_S}", "-ex", f"target remote {socket}", "-ex",
                                        f"thbreak *{read:#x}", "-ex", "continue", "-ex", "monitor nmi",
                                        str(BUILD / "kestrel")], encoding="utf-8", timeout=DEADLINE_S)
        gdb.expect("breakpoint 1 at ")  # from here to gdb's continue the machine is stopped
        c.sendline("cat /proc/none")
        c.expect(r"\nNMI on cpu 0, at ")
        c.expect(DB)
        check_match(f"^{read:#x} ", db(c, "print $pc"), "where the NMI came")
        check_match("^0x0*10: not readable", db(c, "x 0x10"), "a command that faults")
        c.sendline("continue")
        c.expect("cat: can't open '/proc/none': ")
        prompt(c)
        check_eq(ended(gdb), 0, "gdb's exit status")
        c.sendline("poweroff 4")
        check_eq(ended(c), 4, "exit status")


if __name__ == "__main__":
    main()
