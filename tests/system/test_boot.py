#!/usr/bin/python3
"""test_boot.py - the kernel boots by every firmware, machine, CPU model, memory size and number of CPUs.

Not all combinations, but a set in which every value meets several values of the others.
"""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys

import tracecheck as tc
from harness import (ARCH, BOOT, BUILD, DEADLINE_S, FIRMWARE, GRUB_ONLY, ROOT, WHOLE, Deadline, boot, check, check_eq, check_match,
                     decode, ktr_stats, ktrdump, main, scratch_file, test)

sys.path.insert(0, str(ROOT / "qemu"))
import record  # noqa: E402

MIB = 1 << 20
# firmware, machine, memory in MiB, CPU model, CPUs
BOOTS_X86_64 = [
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
    ("uefi", "pc", 128, "qemu64", 1),
    ("uefi", "q35", 4096, "qemu64", 8),
] + [("uefi", "q35", 256, "max", 4)] * WHOLE  # test_reset boots so by UEFI, twice
VIRT2, VIRT3 = "virt,gic-version=2", "virt,gic-version=3"
EL2 = ",virtualization=on"  # the loader enters the kernel at EL2
BOOTS_AARCH64 = [
    ("none", VIRT3, 128, "cortex-a53", 1),
    ("none", VIRT2, 128, "max", 8),
    ("none", VIRT2 + EL2, 1024, "cortex-a53", 2),
    ("none", VIRT3 + EL2, 4096, "max", 4),
    ("none", VIRT3, 1024, "cortex-a72", 8),
    ("none", VIRT2, 4096, "cortex-a72", 1),
    ("none", VIRT3, 4096, "max", 2),
    ("none", VIRT2, 1024, "max", 4),
    ("none", VIRT3 + EL2, 128, "cortex-a72", 2),
    ("none", VIRT2 + EL2, 128, "cortex-a72", 4),
    ("none", VIRT3, 4096, "cortex-a53", 4),
    ("none", VIRT2, 1024, "cortex-a53", 8),
    ("none", VIRT3 + EL2, 1024, "max", 8),
    ("none", VIRT2 + EL2, 4096, "max", 1),
    ("none", VIRT3, 3000, "cortex-a72", 3),
    ("none", "virt", 64, "max", 5),
    ("none", VIRT2 + EL2, 256, "a64fx", 3),  # a CPU whose ID register claims a GICv3
]
BOOTS = {"x86_64": BOOTS_X86_64, "aarch64": BOOTS_AARCH64}[ARCH]
LOADER = {"x86_64": {"none": "by PVH", "bios": "by GRUB", "uefi": "by GRUB"},
          "aarch64": {"none": "by device tree"}}[ARCH]

SCRIPT = """
nproc
sysctl hw.physmem
dmesg | head -1
dmesg | grep -o "memory: .*"
load fork -n 3
load mix -n 2 -j 2
sysctl debug.ktr.stats
exit 5
"""


def boots(firmware, machine, mib, cpu, smp):
    line = "serial" if smp in (1, 8) else "virtio"
    run = boot(SCRIPT, firmware=firmware, smp=smp, mem=f"{mib}M", options=["--machine", machine, "--cpu", cpu, "--trace-line", line],
               trace=True, mask="PROC,SCHED", sets=["debug.ktr.entries=8192"], timeout=600).expect(5)
    check_eq(run.out.splitlines()[0], str(smp), "CPUs that run")
    physmem = int(check_match(r"^hw\.physmem: (\d+)$", run.out, "memory").group(1))
    # The image uses less than 9 MiB. Firmware and the array of page descriptors use a part; UEFI uses more than the others.
    least = mib * MIB * (7 if firmware == "uefi" else 9) // 10 - 9 * MIB
    check(least <= physmem <= mib * MIB, f"memory: found {physmem} bytes, expected {least} to {mib * MIB}")
    used = MIB * int(check_match(r"^memory: (\d+) MiB$", run.out, "memory while it boots")[1])
    check(physmem - used > 3 * MIB, f"found {physmem - used} bytes that came free, expected the initial RAM disk's 4 MiB")
    check_match(LOADER[firmware], run.out, "the loader in the kernel's first message")
    check_match(r"^load fork: n=3 jobs=1 ok", run.out, "load fork")
    check_match(r"^load mix: n=2 jobs=2 ok", run.out, "load mix")
    check_eq({e["cpu"] for e in run.events} - set(range(smp)), set(), "CPUs in the trace that do not exist")
    check_eq(run.events[0]["seq"], 0, "sequence number of the first event")
    stats = ktr_stats(run.out)
    check_eq(sorted(stats), list(range(smp)), "CPUs in debug.ktr.stats")
    tc.accounting_holds(stats)
    tc.timestamps_ascend(run)


for values in BOOTS:
    fw, mach, mem, model, cpus = values
    test(f"boots by {fw} on {mach}, {mem} MiB, -cpu {model}, {cpus} CPUs")(lambda values=values: boots(*values))


def stolen_until_output(p):
    """Lets QEMU run 4 ms of every 64, until its guest prints something."""
    deadline, ready, qemu = Deadline(DEADLINE_S), [], None
    while not ready:
        check(p.poll() is None and deadline.tick() > 0, "qemu/boot ended before its guest was up, or took too long")
        ready = select.select([p.stdout], [], [], 0.004)[0]
        qemu = qemu or pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()
        if not ready and qemu:
            os.kill(int(qemu[0]), signal.SIGSTOP)
            select.select([], [], [], 0.06)
            os.kill(int(qemu[0]), signal.SIGCONT)


def clock_rate(path):
    """Ticks in a nanosecond, as the trace's header has it."""
    ns = [e["ns"] for e in decode(path) if "seq" in e]
    ticks = [int(line.split()[1]) for line in ktrdump("-q", "-t", "-i", path)[1].splitlines()][::-1]
    return (ticks[-1] - ticks[0]) / (ns[-1] - ns[0])


@test("boots on a host that hardly runs it, and has measured the clock's rate nevertheless")
def stolen():
    rates = []
    for steal in (False, True):
        trace = scratch_file(".ktr")
        p = subprocess.Popen([str(BOOT), "--arch", ARCH, "--firmware", "none", "--smp", "1", "--mask", "PROC", "--trace", str(trace),
                              "--timeout", str(DEADLINE_S), "--script", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdin.write(b"echo up\nsleep 0.1\n")
        p.stdin.close()
        if steal:
            stolen_until_output(p)
        check_eq((p.stdout.read(), p.wait()), (b"up\n", 0), "what the guest prints, and the status")
        rates.append(clock_rate(trace))
    check(abs(rates[1] / rates[0] - 1) < 0.01, f"ticks in a nanosecond: {rates[1]}, expected {rates[0]}")


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


@test("qemu/boot's loader.conf replaces the image's, and the command line wins over both")
def loader_conf():
    conf = scratch_file(".conf")
    conf.write_text('# a comment\ndebug.ktr.mask="SCHED,PROC"\ndebug.ktr.entries = 8192 # another\n')
    for firmware in FIRMWARE:
        if firmware == "uefi" and not WHOLE:
            continue  # GRUB reads the file by the same lines of grub.cfg
        run = boot("sysctl -n debug.ktr.mask debug.ktr.entries", firmware=firmware, mask="SYSC",
                   options=["--loader-conf", str(conf)]).expect()
        check_eq(run.out.split(), ["SYSC", "8192"], f"mask and entries ({firmware})")


@test("GRUB passes on the command line's words as they are, of an image whose name has a comma", arch=GRUB_ONLY)
def grub_words():
    image = scratch_file(",a.iso")
    image.symlink_to(BUILD / "kestrel.iso")
    run = boot("sysctl -n debug.ktr.mask", firmware="bios", mask="SCHED|PROC", options=["--iso", str(image)]).expect()
    check_eq(sorted(run.out.strip().split(",")), ["PROC", "SCHED"], "classes")


@test("what is refused changes no file", arch=GRUB_ONLY)
def refused_before():
    folder = scratch_file("")
    folder.mkdir()
    (folder / "script").write_text("true\n")
    options = {name: (kind[0] if isinstance(kind, tuple) else kind)() for name, kind in record.SAVED.items()}
    run = {"words": "", "trace": False, "qemu": "", "digests": {"kernel": "", "initrd": ""}, "machine": [], "options": options}
    kept = {"old.ktr": "a trace", "rr/run.json": json.dumps(run), "rr/log": "a log"}
    (folder / "rr").mkdir()
    for name, text in kept.items():
        (folder / name).write_text(text)
    (folder / "link.ktr").symlink_to("nothing.ktr")
    no_kernel = "--kernel", "/nonexistent"
    for status, *options in ((2, "--disk", "new.img", *no_kernel), (2, "--trace", "link.ktr", *no_kernel), (2, "--root", "new.img", *no_kernel),
                             (3, "--disk", "new.img", "--trace", "old.ktr"), (3, "--record", "rr")):
        done = subprocess.run([sys.executable, BOOT, "--script", "script", *options], cwd=folder, check=False,
                              env={"PATH": "/usr/sbin:/sbin"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check_eq((done.returncode, done.stdout), (status, b""), f"status and output with {options}: {done.stderr}")
        check(not list(folder.glob("new.img*")), f"{options}: a disk is made")
        check_eq({name: (folder / name).read_text() for name in kept}, kept, f"files with {options}")
        check((folder / "link.ktr").is_symlink() and not (folder / "nothing.ktr").exists(), "a link to nothing is another")


@test("GRUB boots at once: it reads little but kernel and RAM disk, shows no menu, and no card has firmware",
      arch=GRUB_ONLY)
def grub_at_once():
    """GRUB forgets what it has read after two seconds of the guest's time, so this is that of its instructions."""
    log = scratch_file(".log")
    boot("true", firmware="bios", options=["--icount", "--", "-trace", "virtio_blk_handle_read", "-D", str(log)]).expect()
    reads = [int(n) for n in re.findall(r"^virtio_blk_handle_read .* nsectors (\d+)$", log.read_text(), re.M)]
    read = 512 * sum(reads)
    loaded = sum((BUILD / "iso/boot" / name).stat().st_size for name in ("kestrel", "initrd.cpio"))
    sections = subprocess.run(["objdump", "-h", BUILD / "iso/boot/kestrel"], capture_output=True, text=True, check=True).stdout
    check(".ksyms" in sections and ".debug" not in sections, f"the image's kernel has debuggers' sections:\n{sections}")
    check(loaded < read < loaded + 768 * 1024, f"{read} bytes are read for {loaded} of kernel and RAM disk")
    check(len(reads) < read // 8192, f"{len(reads)} reads of {read} bytes")
    check_match(r"^set timeout=0$", (ROOT / "qemu/grub/grub.cfg").read_text(), "grub.cfg")
    command = subprocess.run([BOOT, "--dry-run", "--firmware", "bios"], capture_output=True, text=True, check=True).stdout
    check_match("-nodefaults ", command, "QEMU's command line")
    check(re.search(r"-(net|nic|netdev|vga)\b|e1000|virtio-net|ide-", command) is None, f"a card or slow disk in\n{command}")


@test("an archive's hard and symbolic links are links in the guest; what is damaged is reported and left out")
def links_in_archive():
    room = scratch_file(".d")
    (room / "t").mkdir(parents=True)
    (room / "t/a").write_text("one\n")
    for name in ("b", "c"):
        os.link(room / "t/a", room / "t" / name)
    (room / "t/to_a").symlink_to("a")
    (room / "t/long").symlink_to("x" * 1024)
    os.mkfifo(room / "t/fifo")
    archive = scratch_file(".cpio")
    names = "\n".join(f"t/{name}" for name in ("a", "b", "c", "to_a", "long", "fifo"))
    more = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), cwd=room, capture_output=True, check=True)
    archive.write_bytes((BUILD / "initrd.cpio").read_bytes() + more.stdout)
    out = boot("echo two > /t/b\ncat /t/a /t/c /t/to_a\nls /t\n", options=["--initrd", str(archive)]).expect().out
    check_eq(out.split()[-7:], ["two"] * 3 + ["a", "b", "c", "to_a"], f"what the names hold, and the names, in\n{out}")
    check_match(r"^initrd(?:\.cpio)?: t/long: a symbolic link of 1024 bytes, expected 1 to 1023$", out, "a link that is too long")
    check_match(r"^initrd(?:\.cpio)?: t/fifo: mode 010644, expected a file, a directory or a symbolic link$", out, "a kind that is none")


if __name__ == "__main__":
    main()
