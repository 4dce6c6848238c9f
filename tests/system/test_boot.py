#!/usr/bin/python3
"""test_boot.py - the kernel boots by every firmware, machine, CPU model, memory size and number of CPUs.

Not the full product but a set in which every value meets several of the others.
"""
from harness import boot, check, check_eq, check_match, main, scratch_file, test

MIB = 1 << 20
# firmware, machine, memory in MiB, CPU model, CPUs
BOOTS = [
    ("none", "q35", 64, "qemu64", 1),
    ("none", "pc", 64, "max", 8),
    ("none", "q35", 4096, "max", 8),
    ("none", "pc", 1024, "qemu64", 2),
    ("none", "q35", 128, "qemu64", 3),
    ("none", "pc", 512, "max", 5),
    ("none", "q35", 3072, "qemu64", 6),
    ("none", "pc", 4096, "max", 7),
    ("bios", "q35", 256, "max", 4),
    ("bios", "pc", 64, "qemu64", 1),
    ("bios", "q35", 4096, "qemu64", 8),
    ("bios", "pc", 2048, "max", 2),
    ("uefi", "q35", 256, "max", 4),
    ("uefi", "pc", 128, "qemu64", 1),
    ("uefi", "q35", 4096, "qemu64", 8),
]
LOADER = {"none": "by PVH", "bios": "by GRUB", "uefi": "by GRUB"}

SCRIPT = """
nproc
sysctl hw.physmem
dmesg | head -1
load fork -n 3
load mix -n 2 -j 2
exit 5
"""


def boots(firmware, machine, mib, cpu, smp):
    run = boot(SCRIPT, firmware=firmware, smp=smp, mem=f"{mib}M", options=["--machine", machine, "--cpu", cpu],
               trace=True, mask="PROC", timeout=120).expect(5)
    check_eq(run.out.splitlines()[0], str(smp), "CPUs that run")
    physmem = int(check_match(r"^hw\.physmem: (\d+)$", run.out, "memory").group(1))
    # Firmware, the image and the page tables' own array take a share, UEFI more than the others.
    least = mib * MIB * (7 if firmware == "uefi" else 8) // 10
    check(least <= physmem <= mib * MIB, f"memory: found {physmem} bytes, expected {least} to {mib * MIB}")
    check_match(LOADER[firmware], run.out, "the loader in the kernel's first message")
    check_match(r"^load fork: n=3 jobs=1 ok", run.out, "load fork")
    check_match(r"^load mix: n=2 jobs=2 ok", run.out, "load mix")
    check_eq({e["cpu"] for e in run.events} - set(range(smp)), set(), "CPUs in the trace that do not exist")
    check_eq(run.events[0]["seq"], 0, "sequence number of the first event")


for values in BOOTS:
    fw, mach, mem, model, cpus = values
    test(f"boots by {fw} on {mach}, {mem} MiB, -cpu {model}, {cpus} CPUs")(lambda values=values: boots(*values))


@test("hw.maxcpus limits the CPUs that are started")
def maxcpus():
    run = boot("nproc", smp=4, sets=["hw.maxcpus=2"]).expect()
    check_eq(run.out.strip(), "2", "CPUs that run")


@test("the mask on the command line is in force before the first thread exists")
def early_mask():
    run = boot("true", smp=2, mask="INIT,SMP", trace=True).expect()
    check(run.events[0]["text"].startswith(("tunable", "boot")), f"first event: {run.events[0]['text']}")
    check_eq(run.events[0]["seq"], 0, "its sequence number")
    texts = [e["text"] for e in run.events]
    check("boot: kernel is up" in texts, "no event at the end of the boot")


@test("the image's loader.conf gives way to qemu/boot's, and the command line wins over both")
def loader_conf():
    conf = scratch_file(".conf")
    conf.write_text('# a comment\ndebug.ktr.mask="SCHED,PROC"\ndebug.ktr.entries = 8192 # another\n')
    for firmware in ("none", "bios", "uefi"):
        run = boot("sysctl -n debug.ktr.mask debug.ktr.entries", firmware=firmware, mask="SYSC",
                   options=["--loader-conf", str(conf)]).expect()
        check_eq(run.out.split(), ["SYSC", "8192"], f"mask and entries ({firmware})")


@test("--icount: the same guest counts the same instructions twice")
def icount():
    script = "load syscall -n 50\nsysctl -n debug.ktr.stats"
    runs = [boot(script, mask="SYSC", options=["--icount"]).expect() for _ in range(2)]
    check_eq(runs[0].out, runs[1].out, "output of the second run")


if __name__ == "__main__":
    main()
