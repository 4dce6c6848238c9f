#!/usr/bin/python3
"""test_root.py - a machine that starts from a disk: the loader parameter root=, and qemu/boot --root."""
import os
import subprocess

from console import guest, shell
from disks import contents, fsck, make, partition_table, tool
from harness import ARCH, ROOT, boot, check, check_eq, check_match, main, portable_test, scratch_file, test


@test("--root makes a disk with the programs that are built, and starts from it; files that the guest makes stay over boots")
def stays():
    disk, mine = scratch_file(".img"), scratch_file(".txt")
    mine.write_text("put there\n")
    root = ["--root", str(disk)]
    run = boot("grep ' / ' /proc/mounts; for d in dev proc sys tmp; do stat -f -c '%T' /$d; done; echo kept > /etc/kept; echo gone > /tmp/gone\n"
               "cat /mine /dev/null; ls -1d /dev/shm /dev/pts /sys/kernel/tracing /proc/1; cd /dev/..; pwd; stat -c '%u %g' /bin/busybox /\n"
               "umount /proc 2> /dev/null || echo busy; umount / 2> /dev/null || echo busy\n", options=[*root, "--file", f"/mine={mine}"]).expect()
    check_match(rf"^boot: {disk} is made, of ", run.err, "the message")
    check_eq(run.out.replace("\r", "").split("\n")[:-1], ["/dev/vda / ext2 rw 0 0", "tmpfs", "proc", "sysfs", "tmpfs", "put there", "/dev/pts",
                                                            "/dev/shm", "/proc/1", "/sys/kernel/tracing", "/", "0 0", "0 0", "busy", "busy"], "the first boot")
    fsck(disk)
    check_match(r"^Filesystem state: +clean$", tool("dumpe2fs", "-h", disk), "the state after a power-off")
    check_eq(contents(disk, "/etc/kept"), b"kept\n", "the file, for the host")
    tool("debugfs", "-w", "-R", f"write {mine} /etc/given", disk)
    run = boot("cat /etc/kept /mine /etc/given; ls /tmp | wc -l; ls / | tr '\\n' ' '; mount -o remount,ro /; echo x > /x; mount -o remount,rw /; rm /mine\n", options=root).expect()
    out = run.out.replace("\r", "").split("\n")
    check_eq(out[:4], ["kept", "put there", "put there", "0"], "the second boot")
    check_match(r"^bin boot dev etc lost\+found mine proc sys tmp usr var .*/x: Read-only file system$", out[4], "the root directory, and a file on it")
    check_eq(run.err, "", "messages of qemu/boot")
    fsck(disk)


@portable_test("a root that is missing or broken is a panic that says so, as on Linux")
def broken():
    run = boot("true\n", sets=["root=/dev/vda"]).expect(101)
    check_match(r"panic: root=/dev/vda: there is no such device, error 2$", run.out.replace("\r", ""), "no disk")
    run = boot("true\n", sets=["root=/dev/null"]).expect(101)
    check_match(r"panic: root=/dev/null: it cannot be mounted, error 15$", run.out.replace("\r", ""), "no disk's file")
    disk = scratch_file(".img")
    disk.write_bytes(bytes(1 << 20))
    run = boot("true\n", options=["--root", str(disk)]).expect(101)
    check_match(r"ext2: vda: it has no magic number of ext2$", run.out.replace("\r", ""), "an empty disk")
    check_match(r"panic: root=/dev/vda: it cannot be mounted, error 22$", run.out.replace("\r", ""), "an empty disk")
    run = boot("true\n", options=["--root", str(make("8M"))]).expect(101)
    check_match(r"panic: /bin/init: cannot execute, error 2$", run.out.replace("\r", ""), "a disk without programs")


@portable_test("with ro the root is not written to; a root whose /sys is no directory goes without, with a message")
def read_only():
    disk = scratch_file(".img")
    boot("true\n", options=["--root", str(disk)]).expect()
    before = disk.read_bytes()
    with guest("--root", str(disk), "--append", "ro", smp=1) as c:
        check_match(r"/dev/vda / ext2 ro 0 0", shell(c, "grep ' / ' /proc/mounts"), "the root")
        check_match(r"Read-only file system", shell(c, "touch /x"), "a file")
        check_match(r"\nfine", shell(c, "echo fine > /tmp/x; cat /tmp/x"), "a file in /tmp")
        shell(c, "sync")
    run = boot("echo new\n", options=["--root", str(disk), "--append", "ro"]).expect(2)
    check_match(r"boot: the root is read-only: /boot/script.sh is not unpacked, and not run$", run.out.replace("\r", ""), "a script")
    check(disk.read_bytes() == before, "the disk has changed")
    tool("debugfs", "-w", "-f", "-", disk, text="rmdir /sys\nsymlink /sys bin\n")
    with guest("--root", str(disk), smp=1) as c:
        check_match(r"root: it has no directory /sys, and that cannot be made", shell(c, "dmesg | grep root:"), "the message")
        check_match(r"busybox", shell(c, "ls /sys/"), "what the link leads to")


@portable_test("a trace file that loader parameters name is of the disk; what traces from the boot on, of the boot image")
def trace_file():
    disk, image = scratch_file(".img"), scratch_file(".dif")
    program = "fbt::vfs_mount_root_device:entry { @ = count(); }"
    subprocess.run([ROOT / "build/host/dtrace", "-A", "-o", image, "-n", program], check=True,
                   env={**os.environ, "KESTREL_ARCH": ARCH})
    out = boot("dtrace -qae\n", options=["--root", str(disk), "--file", f"/boot/dtrace.dif={image}"],
               sets=["debug.ktr.mask=PROC", "debug.ktr.alq_file=/t.ktr", "debug.ktr.alq_enable=1"]).expect().out
    check_match(r"^ +1$", out, "what was traced")
    check(contents(disk, "/t.ktr")[:4] != b"", "the file of the trace is empty")


@portable_test("a partition can be the root, and what the loader has is unpacked there")
def partition():
    disk, part = scratch_file(".img"), make("24M")
    disk.write_bytes(partition_table("dos", (2048, 49152)).ljust(2048 * 512, b"\0") + part.read_bytes())
    run = boot("grep ' / ' /proc/mounts; touch /made; ls -l /bin/busybox | wc -l\n", sets=["root=/dev/vda1"],
               options=["--", "-drive", f"file={disk},format=raw,if=none,id=d", "-device", "virtio-blk-pci,drive=d,disable-legacy=on"]).expect()
    check_eq(run.out.replace("\r", "").split("\n")[:-1], ["/dev/vda1 / ext2 rw 0 0", "1"], "the root")
    part.write_bytes(disk.read_bytes()[2048 * 512:])
    fsck(part)
    check_match(r"Inode: \d+", tool("debugfs", "-R", "stat /made", part), "the file")


@portable_test("--root says what it expected")
def refused():
    for options, why in ((["--disk", "x"], "expected neither --disk"), (["--firmware", "bios"], "expected"), (["--record", "/tmp/none"], "--root is not recorded")):
        run = boot("true\n", options=["--root", "/no/such/folder/disk", *options]).expect(2)
        check(why in run.err, run.err)
    check_match(r"--root /no/such/folder/disk: ", boot("true\n", options=["--root", "/no/such/folder/disk"]).expect(2).err, "a folder that is missing")


if __name__ == "__main__":
    main()
