#!/usr/bin/python3
"""test_uprobe.py - probes of programs: what they record, and that the programs do what they do without them."""
import re
import subprocess
import sys

from harness import ARCH, BUILD, boot, check, check_eq, check_match, main, test

sys.path.insert(0, str(BUILD.parent.parent / "tests" / "unit"))
import insn_test as insns  # noqa: E402

X86 = ARCH == "x86_64"
PROGRAM = BUILD / "linux_test"
FILE = ["--file", f"/bin/linux_test={PROGRAM}"]
CD = "cd /sys/kernel/tracing\n"
BASE = 0x400000
SITES = 480


def disassembly(*names):
    """{function: [offset in the file]} of the instructions of functions."""
    found = {}
    for name in names:
        out = subprocess.run([insns.TOOLS[ARCH] + "objdump", "-d", f"--disassemble={name}", "-w", PROGRAM], capture_output=True, text=True,
                             check=True).stdout
        found[name] = [int(m, 16) - BASE for m in re.findall(r"^ +([0-9a-f]+):\t(?!.*\.(?:inst|word))", out, re.M)]
        check(found[name], f"no function {name}")
    return found


def counts(text):
    """{probe: hits} of uprobe_profile."""
    return {name: int(n) for name, n in re.findall(r"^  /bin/linux_test (\S+) +(\d+)\r?$", text, re.M)}


FUNCTIONS = ["probed_leaf", "probed_alone", "probed_tail", "probed_sum", "probed_recurse", "probed_jump", "probed_fault", "probed_handler"]


def everywhere(smp):
    """Probes at every instruction and at every return of the functions, during the whole run."""
    code = disassembly(*FUNCTIONS)
    lines = [f"p:{name}_{i} /bin/linux_test:{at:#x}" for name, body in code.items() for i, at in enumerate(body)]
    lines += [f"r:{name}_r /bin/linux_test:{body[0]:#x} $retval" for name, body in code.items()]
    check(len(lines) < SITES, f"{len(lines)} probes")
    script = CD + "".join(f"echo '{line}' >> uprobe_events\n" for line in lines)
    script += "echo 1 > events/uprobes/enable\nlinux_test probed 30\necho 0 > events/uprobes/enable\ncat uprobe_profile error_log\necho > uprobe_events\n"
    run = boot(script, smp=smp, options=FILE).expect()
    m = check_match(r"^probed: good leaf (\d+) handler (\d+) alone (\d+) tail (\d+) sum (\d+)\r?$", run.out, "the program")
    hits = counts(run.out)
    refused = set(re.findall(r"^  Command: p:(\w+) ", run.out, re.M))
    check(len(refused) <= (0 if X86 else 60), f"refused: {refused}")
    for name, n in zip(("leaf", "handler", "alone", "tail", "sum"), m.groups()):
        check_eq(hits.get(f"probed_{name}_0"), int(n), f"calls of probed_{name}")
        check_eq(hits.get(f"probed_{name}_r"), int(n), f"returns of probed_{name}")


for _smp in (1, 4):
    test(f"every instruction of functions is probed, and their returns, with {_smp} CPUs: they do what they do; each call counts once")(
        lambda smp=_smp: everywhere(smp))


if __name__ == "__main__":
    main()
