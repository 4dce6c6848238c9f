#!/usr/bin/python3
"""test_disk.py - a disk of virtio in the guest: its file in /dev and its partitions, ext2 on it, what is left after a hard
reset, on full disks, broken ones and such with errors. e2fsck finds nothing after each test."""
import hashlib
import os
import pathlib
import re
import select
import signal
import subprocess

from console import close, gdb, guest, shell
from disks import blkdebug, contents, fsck, make, partition_table, plain, silent, throttled, tool
from harness import (ARCH, BOOT, LINUX_TEST, WHOLE, boot, check, check_eq, check_match, cpus, host_linux_test, ktrdump,
                     main, portable_test, scratch, scratch_file, tap, test, times,
                     wait_for)
from qmp import Qmp

PC = ("x86_64", "the machine is a PC")
ARM = ("aarch64", "it is Arm's")


def sums(out):
    return re.findall(r"^([0-9a-f]{32})  ", out, re.M)


def on_disk(script, disk, *options, **how):
    run = boot(script, options=["--disk", str(disk), *options], **how).expect()
    return run.out.replace("\r", "")


FILES = """cd /mnt
mkdir -p a/b/c; echo one > a/one; seq 100000 > a/b/seq; md5sum a/b/seq; seq 100000 | md5sum
ln a/one a/b/two; ln -s ../one a/b/link; ln -s {long} a/longlink; cat a/b/two a/b/link; readlink a/longlink | wc -c
mv a/b/c d; mv d/../a/b/seq d/seq2; md5sum d/seq2; ls -1 a/b; rm a/one; cat a/b/two
chown 7:8 a/b/two; chmod 2751 a/b/two; touch -d '2001-02-03 04:05:06' a/b/two; stat -c '%a %u %g %h %s' a/b/two
echo tail >> d/seq2; truncate -s 1000 d/seq2; truncate -s 5000 d/seq2; tail -c 4000 d/seq2 | tr -d '\\0' | wc -c
for i in $(seq 120); do echo $i > d/name-that-is-long-enough-to-need-several-blocks-$i; done; ls d | wc -l
for i in $(seq 1 2 120); do rm d/name-that-is-long-enough-to-need-several-blocks-$i; done; ls d | wc -l
rmdir a/b 2> /dev/null || echo full; mkdir e; rmdir e; mkdir f; mv -T f d 2> /dev/null || echo full2
dd if=/dev/zero of=sparse bs=1 count=1 seek=80000000 2> /dev/null; echo x >> sparse; ls -s sparse | awk '{{print ($1 < 40)}}'
cd /; umount /mnt; mount -t ext2 /dev/vda /mnt; cd /mnt
stat -c '%a %u %g %h %s %Y' a/b/two; cat a/b/link 2> /dev/null || echo gone; readlink a/longlink | wc -c; ls d | wc -l
tail -c 2 sparse; rm -r sparse d; df /mnt | awk 'NR == 2 {{print ($3 < 800)}}'
"""


def files(smp, block):
    disk = make("32M", "-b", str(block))
    run = on_disk(FILES.format(long="x" * 200), disk, smp=smp)
    found = [line for line in run.splitlines() if not re.fullmatch(r"[0-9a-f]{32}  .*", line)]
    check_eq(found, ["one", "one", "201", "link", "two", "one", "2751 7 8 1 4", "0", "121", "61", "full", "full2", "1",
                     "2751 7 8 1 4 981173106", "gone", "201", "61", "x", "1"], "what the commands print")
    check_eq(len(set(sums(run))), 1, "sums of the same file")
    fsck(disk)
    check_eq(contents(disk, "/a/b/two"), b"one\n", "a file, for the host")


for _smp in cpus("files of a disk"):
    for _block in (1024, 4096) if WHOLE else (1024,) if _smp == 1 else (4096,):
        test(f"files, directories and links on a disk are made, moved and removed, blocks of {_block} bytes, {_smp} CPUs")(
            lambda smp=_smp, block=_block: files(smp, block))


@portable_test("a tree that mke2fs has made is read; what the guest changes, debugfs reads")
def tree():
    folder = scratch() / "tree"
    (folder / "deep/er").mkdir(parents=True)
    data = os.urandom(3_000_000)
    (folder / "deep/er/data").write_bytes(data)
    (folder / "empty").touch()
    (folder / "link").symlink_to("deep/er/data")
    for n in range(400):
        (folder / f"deep/{n:04}-{'n' * 60}").write_text(str(n))
    disk = make("16M", "-b", "1024", folder=folder)
    out = on_disk("md5sum < /mnt/link; ls /mnt/deep | wc -l; cat /mnt/deep/0399-*; echo; cp /mnt/link /mnt/deep/copy\n"
                  "printf hello | dd of=/mnt/deep/er/data bs=1 seek=1500000 conv=notrunc 2> /dev/null\n", disk)
    check_eq(sums(out), [hashlib.md5(data).hexdigest()], "sum of the file")
    check_match(r"^401\n399$", out, "the directory")
    fsck(disk)
    check_eq(contents(disk, "/deep/copy") == data, True, "the copy")
    check_eq(contents(disk, "/deep/er/data") == data[:1500000] + b"hello" + data[1500005:], True, "the file that was changed")


@portable_test("what stands on a disk after the end of a file is never read, also when the file grows")
def tail():
    folder = scratch() / "tail"
    folder.mkdir()
    for name in ("cut", "written", "mapped"):
        (folder / name).write_bytes(b"ab" + b"garbage" * 500)
    for block in (1024, 4096):
        disk = make("8M", "-b", block, folder=folder)
        tool("debugfs", "-w", "-f", "-", disk, text="".join(f"sif /{name} size 2\n" for name in ("cut", "written", "mapped")))
        out = on_disk("cd /mnt; truncate -s 3000 cut; tr -d '\\0' < cut; echo; echo x | dd of=written bs=1 seek=2000 2> /dev/null; tr -d '\\0' < written\n"
                      "cd /; umount /mnt; mount -t ext2 /dev/vda /mnt; cd /mnt; tr -d '\\0' < cut; echo; tr -d '\\0' < written; cat mapped; echo; rm mapped\n", disk)
        check_eq(out.split(), ["ab", "abx", "ab", "abx", "ab"], f"files that have grown, blocks of {block} bytes")
        fsck(disk)


@portable_test("/proc tells the disk and its partitions, and the pages of its files that can be given up")
def told():
    disk = make("32M")
    out = on_disk("cat /proc/partitions\ngrep devpts /proc/filesystems\ndd if=/dev/zero of=/mnt/f bs=1M count=8 2> /dev/null; sync\n"
                  "awk '{m[$1] = $2} END {print m[\"Cached:\"], m[\"MemAvailable:\"], m[\"MemFree:\"], m[\"Dirty:\"]}' /proc/meminfo\n", disk)
    check_match(r"^ 254        0      32768 vda$", out, "the disk")
    check_match(r"^nodev\tdevpts$", out, "the file system of terminals")
    cached, available, free, _ = map(int, re.search(r"^(\d+) (\d+) (\d+) (\d+)$", out, re.M).groups())
    check(cached >= 8192 and available >= free + 8000, f"Cached {cached}, MemAvailable {available}, MemFree {free}, with 8 MB of a file in memory")


COUNTED = """cd /sys/kernel/tracing; mkdir /mnt; echo 8192 > buffer_size_kb
echo 1 > events/block/enable; mount -t ext2 /dev/vda1 /mnt; seq 200000 > /mnt/f; cp /mnt/f /mnt/g; sync
head -c 1000000 /dev/vda > /dev/null; umount /mnt; mount -t ext2 /dev/vda1 /mnt; cat /mnt/f > /dev/null; sync
cat /proc/diskstats; grep pgpg /proc/vmstat; echo 0 > events/block/enable; grep -E 'rq_complete|backmerge' trace
"""


@portable_test("/proc/diskstats and /proc/vmstat count what the events of the system block tell, of a disk and its partition")
def counted():
    disk = scratch_file(".img")
    head = partition_table("dos", (2048, 30720)).ljust(2048 * 512, b"\0")
    disk.write_bytes(head + make("15M").read_bytes())
    out = boot(COUNTED, options=plain(disk)).expect().out.replace("\r", "")
    told = re.findall(r"block_(rq_complete|bio_backmerge): 254,\d (\w+) (?:\(\) )?(\d+) \+ (\d+)", out)
    of = lambda letter, wanted: [int(size) for what, rwbs, _, size in told if what == wanted and rwbs[0] == letter]
    done, merged = (lambda letter: of(letter, "rq_complete")), (lambda letter: len(of(letter, "bio_backmerge")))
    row = lambda name: [int(n) for n in re.search(rf"^ 254 +\d+ {name} (.*)$", out, re.M)[1].split()]
    whole, part = row("vda"), row("vda1")
    boot_reads = 1  # a sector, for the table of partitions
    reads = (whole[0] - boot_reads, whole[1], whole[2] - boot_reads)
    check_eq(reads, (len(done("R")), merged("R"), sum(done("R"))), f"reads in\n{out}")
    check_eq(tuple(whole[4:7]), (len(done("W")), merged("W"), sum(done("W"))), "writes")
    check_eq((whole[8], whole[15]), (0, len(done("F"))), "requests in flight, and flushes")
    check(0 < whole[9] <= whole[10] + 1 and len(whole) == 17, f"times {whole}")
    check(0 < part[0] < whole[0] and part[4:7] == whole[4:7] and part[15] == 0, f"partition {part}, disk {whole}")
    check_eq(re.findall(r"^pgpg\w+ (\d+)", out, re.M), [str(whole[2] // 2), str(whole[6] // 2)], "KiB in and out")


@portable_test("a file's room and its holes are zeroes, whatever was on the disk before, also when a write fails")
def zeroes():
    disk = make("16M", "-b", 1024)
    out = on_disk("cd /mnt; yes garbage | head -c 12500000 > old; sync; rm old; sync; linux_test holes 6000000; cd /; umount /mnt\n"
                  "mount -t ext2 /dev/vda /mnt; cd /mnt; wc -c < room; for f in room holes; do tr -d '\\0' < $f | wc -c; done\n",
                  disk, *LINUX_TEST, "--mem", "48M")
    check_eq(out.split(), ["ok", "6000000", "0", "0"], "bytes of garbage")
    fsck(disk)


@portable_test("readahead() reads the pages of a disk's file that it names, and no others")
def read_ahead():
    disk = make("8M", "-b", 4096)
    out = on_disk("head -c 32768 /dev/urandom > /mnt/f; umount /mnt; mount -t ext2 /dev/vda /mnt; ls -l /mnt/f > /dev/null; grep pgpgin /proc/vmstat\n"
                  "linux_test read-ahead /mnt/f && grep pgpgin /proc/vmstat; cat /mnt/f > /dev/null; grep pgpgin /proc/vmstat\n", disk, *LINUX_TEST)
    kib = [int(n) for n in re.findall(r"^pgpgin (\d+)", out, re.M)]
    check_eq([b - a for a, b in zip(kib, kib[1:])], [28, 4], "KiB that readahead() has read, and that were left to read()")


@portable_test("double and triple indirect blocks are written, read and freed, and a file has holes")
def indirect():
    disk = make("16M", "-b", "1024")
    at = (1, 12, 13, 268, 269, 65803, 65804, 65805, 200000, 1000000)  # blocks: 65804 is the first behind three levels
    script = "".join(f"echo block{n} | dd of=/mnt/f bs=1024 seek={n} conv=notrunc 2> /dev/null\n" for n in at)
    script += "umount /mnt; mount -t ext2 /dev/vda /mnt\n"
    script += "".join(f"dd if=/mnt/f bs=1024 skip={n} count=1 2> /dev/null | head -n 1\n" for n in at)
    script += "dd if=/mnt/f bs=1024 skip=5000 count=1 2> /dev/null | tr -d '\\0' | wc -c\nsync\n"
    check_eq(on_disk(script, disk).split(), [f"block{n}" for n in at] + ["0"], "what was written, and a hole")
    fsck(disk)
    out = on_disk("df /mnt | awk 'NR == 2 {print $3}'; truncate -s 300000 /mnt/f; df /mnt | awk 'NR == 2 {print $3}'; rm /mnt/f\n"
                  "df /mnt | awk 'NR == 2 {print $3}'\n", disk)
    full, cut, empty = map(int, out.split())
    check(full > cut > empty, f"kilobytes in use: {full}, {cut}, {empty}")
    fsck(disk)


@test("a program runs from a disk, maps of its files do what they do on the host, and what is in use is not unmounted")
def maps():
    disk = make()
    expected = host_linux_test("maps", scratch() / "maps")
    run = boot("cp /bin/linux_test /mnt/t; cd /mnt; umount /mnt 2> /dev/null || echo busy; cd /; umount /mnt && mount -t ext2 /dev/vda /mnt\n"
               "md5sum /mnt/t /bin/linux_test; /mnt/t maps /mnt/maps; umount /mnt\n", smp=4, options=["--disk", str(disk), *LINUX_TEST])
    out = run.expect().out.replace("\r", "").splitlines()
    check_eq(out[0], "busy", "umount from inside")
    check_eq(len(set(sums("\n".join(out)))), 1, "sums of the same file")
    check_eq(out[3:], expected.splitlines(), "what maps do")
    fsck(disk)


@portable_test("a static program over glibc gets what Linux promises, with /tmp on a disk")
def linux():
    disk = make("64M")
    out = boot("chmod 1777 /tmp\nlinux_test brief calls misc files links names bytes events moves locks pipes texts nodes ids\n", smp=4, options=["--disk", f"{disk}:/tmp", *LINUX_TEST]).expect().out
    check(tap(out) > 60, out)
    fsck(disk)


def killed(c):
    """The machine is reset: its memory is gone."""
    c.kill(signal.SIGKILL)
    close(c)


def synced(smp, how):
    disk = make("32M")
    with guest("--disk", str(disk), smp=smp) as c:
        shell(c, "mkdir /mnt/d; seq 200000 > /mnt/d/seq; mv /mnt/d /mnt/e; echo end > /mnt/last")
        out = shell(c, how)
        check("rror" not in out, out)
        # What comes after it may be lost.
        c.sendline("while true; do seq 3000 > /mnt/e/n; done & until [ -s /mnt/e/n ]; do :; done; echo wri''ting")
        c.expect("writing")
        killed(c)
    fsck(disk)
    check(contents(disk, "/e/seq") == "".join(f"{n}\n" for n in range(1, 200001)).encode(), "the file is not there, or another, after the reset")
    check_eq(contents(disk, "/last"), b"end\n", "the last file")
    out = on_disk("ls /mnt /mnt/e; tail -n 1 /mnt/e/seq; dmesg | grep ext2\n", disk)
    check_match(r"^200000$", out, "the file, in the next boot")
    check_match(r"^\S* *ext2: vda: it was not clean: e2fsck should check it$", out, "the next boot's messages")
    check_match(r"^Filesystem state: +not clean$", tool("dumpe2fs", "-h", disk), "the state after a power-off of what was not clean")


for _smp in cpus("what was synced"):
    test(f"what sync or fsync have written is there after a reset in the middle of writing, {_smp} CPUs")(
        lambda smp=_smp: [synced(smp, how) for how in ("sync", "dd if=/dev/null of=/mnt/last conv=fsync,notrunc 2> /dev/null")])


@portable_test("a reset while a large file is being cut leaves it its old length, and no blocks after its end")
def cut_off():
    disk = make("64M", "-b", "1024")
    with guest("--disk", str(disk), smp=2) as c:
        shell(c, "dd if=/dev/zero of=/mnt/big bs=64k count=640 2> /dev/null; sync; all=$(stat -c %b /mnt/big)")
        # Each of its forty parts takes long, so that sync comes in between.
        shell(c, "dtrace -wqn 'fbt::ext2_free_from:return { chill(100000000); }' -c 'truncate -s 0 /mnt/big' &")
        out = shell(c, "until [ $(stat -c %b /mnt/big) -lt $all ]; do :; done; sync; stat -c 'left %b' /mnt/big")
        killed(c)
    left = int(check_match(r"left (\d+)\r*$", out, "what is left of the file after sync")[1])
    check(left > 0, "all of the file was cut before sync was done")
    found = tool("e2fsck", "-fn", disk, status=range(8))
    check("i_size" not in found, found)  # what i_blocks says may be of another moment
    tool("e2fsck", "-fy", disk, status=(1,))
    check(contents(disk, "/big") == bytes(640 << 16), "the file is not what it was")


# Which thread looks for names to forget, for which it takes the lock of names.
TRIMS = """fbt::vfs_trim:entry { @[execname] = count(); }
fbt::vfs_trim:entry /execname == "trimmer"/ { exit(0); }
"""


@portable_test("the thread that writes after some seconds puts files on the disk without sync; another one, for which nobody waits, takes the lock of names")
def later():
    disk, program, script = make(), scratch() / "trims.d", scratch() / "later.sh"
    program.write_text(TRIMS)
    script.write_text("echo later > /mnt/later; sleep 1000")
    with guest("--disk", str(disk), "--file", f"/trims.d={program}", "--file", f"/later={script}", smp=2) as c:
        out = shell(c, "dtrace -qs /trims.d -c 'sh /later'")
        check_eq(set(re.findall(r"(\w+) +\d+\r*$", out, re.M)), {"trimmer"}, f"who takes it, in {out!r}")
        wait_for(lambda: contents(disk, "/later") == b"later\n", "the file on the disk")
        killed(c)
    fsck(disk)


@test("power-off and reboot leave a disk that is clean, whatever is open, with the ends of the log and of a ktrace that go there")
def clean():
    for last in ("poweroff", "reboot"):
        disk = make()
        boot("seq 100000 > /mnt/f; exec 5> /mnt/open; echo some >&5; ktrace -f /mnt/ktrace -p $$\n"
             f"sysctl -q debug.ktr.mask=INIT debug.ktr.alq_file=/mnt/log debug.ktr.alq_enable=1; {last}\n", options=["--disk", str(disk)])
        fsck(disk)
        check_eq(ktrdump("-i", "-", stdin=contents(disk, "/log"))[::2], (0, ""), f"the log's end, {last}")
        check_eq(contents(disk, "/ktrace")[-68:-66], b"\x0b\0", f"the type of the ktrace's last record, {last}: KTR_PROCDTOR")
        check_match(r"^Filesystem state: +clean$", tool("dumpe2fs", "-h", disk), f"the state after {last}")
        check_eq(contents(disk, "/open"), b"some\n", f"a file that was open at {last}")


@portable_test("what was found broken stays so until it is checked; a file of 3 GiB that is a hole tells its feature; a directory does not lose its name")
def kept():
    disk = make("8M", "-b", "1024", "-O", "^large_file")
    tool("debugfs", "-w", "-R", "set_super_value state 3", disk)
    with guest("--disk", str(disk), smp=1) as c:
        check_match(r"it was not clean", shell(c, "dmesg | grep ext2"), "the message")
        check_match(r"^2147483647\r*$", shell(c, "touch -d @9000000000 /mnt/far; stat -c %Y /mnt/far"), "the time at once")
        shell(c, "touch /mnt/f; sync; truncate -s 3G /mnt/f; sync")
        killed(c)
    fsck(disk)
    check_match(r"mtime: 0x7fffffff", tool("debugfs", "-R", "stat /far", disk), "a time that is too late for the disk")
    on_disk("true\n", disk)
    check_match(r"^Filesystem state: .*with errors$", tool("dumpe2fs", "-h", disk), "the state")
    disk = make("8M", "-b", "1024")
    on_disk("mkdir -p /mnt/d/sub\n", disk)
    tool("debugfs", "-w", "-R", "set_inode_field /d links_count 2", disk)
    out = on_disk("rmdir /mnt/d/sub; dmesg | grep ext2:; ls /mnt\n", disk)
    check_match(r"ext2: vda: a directory with more directories than it counts is wrong: \d+; it is read-only now", out, "the message")
    check_match(r"^d\b", out, "the directory")
    check_match(r"Links: [12] ", tool("debugfs", "-R", "stat /d", disk), "its links")


@portable_test("a time before 1970 that a disk has is read as 1970, and stays on it until it is changed")
def early_times():
    folder = scratch() / "early"
    folder.mkdir()
    for name in "ab":
        (folder / name).touch()
        os.utime(folder / name, (-86400, -86400))
    disk = make("8M", folder=folder)
    out = on_disk("cd /mnt; chmod 600 *; touch -m -d @5 b; stat -c '%X %Y' a b\n", disk)
    check_eq(out.split(), ["0", "0", "0", "5"], "times")
    for name, mtime in (("a", "fffeae80"), ("b", "00000005")):
        told = tool("debugfs", "-R", f"stat /{name}", disk)
        check_eq(re.findall(r"[am]time: 0x(\w{8})", told), ["fffeae80", mtime], f"times of {name} on the disk")
    fsck(disk)


@portable_test("files without names that are open at power-off are freed; until they are closed, their disk is neither unmounted nor read-only")
def nameless():
    # Of the last file, nobody has looked for the other name.
    for last in ("poweroff", "mount -o remount,ro /mnt 2> /dev/null || echo busy; umount /mnt 2> /dev/null || echo used; exec 6<&-; mount -o remount,ro /mnt\n"
                 "mount -o remount,rw /mnt; mkdir /mnt/d; echo > /mnt/g; ln /mnt/g /mnt/d/g; umount /mnt; mount -t ext2 /dev/vda /mnt; exec 6< /mnt/g; rm /mnt/g; linux_test linked 6 /mnt/h && rm /mnt/h\n"
                 "umount /mnt 2> /dev/null || echo open; exec 6<&-; umount /mnt; reboot"):
        disk = make()
        out = boot(f"seq 100000 > /mnt/f; exec 6< /mnt/f; rm /mnt/f; {last}\n", options=["--disk", str(disk), *LINUX_TEST]).out.replace("\r", "")
        check_eq(out.split(), ["busy", "used", "linked", "open"] if "busy" in last else [], "what remount and umount say")
        fsck(disk)
        check_match(r"^Filesystem state: +clean$", tool("dumpe2fs", "-h", disk), f"the state after {last}")


@portable_test("the inode of an open file is not made anew, though the bitmap says that it is free")
def taken():
    folder = scratch() / "taken"
    folder.mkdir()
    (folder / "f").write_text("old")
    disk = make("8M", "-b", "1024", folder=folder)
    tool("debugfs", "-w", "-R", "freei /f", disk)
    out = boot("exec 5< /mnt/f; echo new > /mnt/g; cat <&5; echo; dmesg | grep ext2:\n", options=["--disk", str(disk)]).out.replace("\r", "")
    check_match(r"Structure needs cleaning\nold\n.*ext2: vda: an inode in use that is said to be free is wrong: 12; it is read-only now$", out, "a new file")


@portable_test("a file system that is found broken while it is remounted does not become writable")
def broken_meanwhile():
    folder, socket = scratch() / "meanwhile", scratch_file(".qmp")
    (folder / "d").mkdir(parents=True)
    (folder / "d/bad").write_text("bad")
    disk = make("8M", "-b", "1024", folder=folder)
    tool("debugfs", "-w", "-R", "sif /d/bad mode 0170000", disk)
    with guest("--qmp", str(socket), "--", "-drive", f"file={disk},format=raw,if=none,id=d", "-device", "virtio-blk-pci,drive=d,disable-legacy=on", smp=1) as c:
        qmp = Qmp(socket)
        throttle = lambda bps: qmp.command("block_set_io_throttle", device="d", bps=0, bps_rd=0, bps_wr=bps, iops=0, iops_rd=0, iops_wr=0)
        throttle(1)
        shell(c, "mkdir /mnt; head -c 512 /dev/vda > /tmp/b; dd if=/tmp/b of=/dev/vda conv=notrunc,fsync 2> /dev/null; mount -o ro -t ext2 /dev/vda /mnt")
        # What comes after the first write waits.
        shell(c, "(mount -o remount,rw /mnt; echo status $? > /tmp/s) 2> /dev/null & until grep -q biowait /proc/[0-9]*/wchan 2> /dev/null; do :; done")
        check_match(r"is wrong", shell(c, "ls /mnt/d; dmesg | grep ext2:"), "the error")
        throttle(0)
        check_match(r"(?s)status [1-9].*Read-only file system", shell(c, "wait; cat /tmp/s; touch /mnt/x"), "the remount, and a new file")
        qmp.close()


@portable_test("a file system that is mounted to be read stays as it is, also when it is found broken")
def untouched():
    folder = scratch() / "untouched"
    folder.mkdir()
    (folder / "f").write_text("f")
    disk = make("8M", "-b", "1024", "-O", "huge_file", folder=folder)
    table = re.search(r"located at block (\d+), offset (0x[0-9a-f]+)", tool("debugfs", "-R", "imap /f", disk))
    with open(disk, "r+b") as f:
        f.seek(int(table[1]) * 1024 + int(table[2], 16))
        f.write(b"\xff\xff")
    before = disk.read_bytes()
    out = boot("mkdir /mnt; mount -o ro -t ext2 /dev/vda /mnt; ls /mnt > /dev/null; dmesg | grep ext2:; sync; umount /mnt\n",
               options=plain(disk)).expect().out
    check_match(r"is wrong", out, "the inode")
    check(disk.read_bytes() == before, "the disk has changed")


@portable_test("a full disk says so, keeps what was written before, and has room again when files are removed")
def full():
    disk = make("2M", "-b", "1024", "-m", "0", "-N", "64")
    out = on_disk("dd if=/dev/zero of=/mnt/big bs=4096 2>&1; ls -l /mnt/big | awk '{print ($5 > 1500000)}'\n"
                  "echo more > /mnt/more; df /mnt | awk 'NR == 2 {print $4}'; rm /mnt/big /mnt/more\n"
                  "n=0; while echo > /mnt/f$n; do n=$((n + 1)); done 2>&1; ls /mnt | wc -l; rm /mnt/f*; echo fine > /mnt/fine\n"
                  "cat /mnt/fine\n", disk)
    check_match(r"No space left on device", out, "dd")
    check_match(r"^1\n(.*No space left on device\n)?0$", out, "the file, and what is left")
    check_match(r"^5\d\nfine$", out, "files until no inode is left")
    fsck(disk)


@portable_test("the last blocks are root's, also in traces of ktrace; who opens a FIFO pays for what is in it")
def reserve():
    disk = make("2M", "-b", "1024", "-m", "20")
    out = on_disk("mkfifo -m 666 /mnt/p; for p in /dev/null /mnt/p; do su 1000 sh -c \"exec 5<>$p; sysctl -n kern.uidinfo | grep ^1000\"; done\n"
                  "chmod 777 /mnt; su 1000 sh -c 'dd if=/dev/zero of=/mnt/u bs=1024' 2>&1\n"
                  "su 1000 ktrace -t i -f /mnt/k dd if=/dev/zero of=/dev/null bs=4096 count=200 2> /dev/null\n"
                  "dd if=/dev/zero of=/mnt/r bs=1024 count=100 2>&1\n", disk)
    check_match(r"No space left", out, "the user's")
    check_match(r"^100\+0 records out$", out, "root's")
    without, kib = (int(n) for n in re.findall(r"^1000 .* (\d+)$", out, re.M))
    check(kib - without > 50, f"the user's KiB of the kernel's without a pipe and with one:\n{out}")
    fsck(disk)


@portable_test("a disk that is read-only is mounted so; remount changes it where it can; writers keep it from becoming read-only")
def read_only():
    disk = make()
    ro = ["--", "-drive", f"file={disk},format=raw,if=none,id=d,readonly=on", "-device",
          "virtio-blk-pci,drive=d,disable-legacy=on"]
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt && ls /mnt; echo x > /mnt/x\n"
               "mount -o remount,rw /mnt; echo x > /dev/vda; mount | grep ext2; blockdev --getro /dev/vda\n", options=ro).expect().out
    for text in ("lost+found", "can't create /mnt/x: Read-only file system", "can't create /dev/vda: Read-only file system",
                 "/dev/vda on /mnt type ext2 (ro)"):
        check(text in out, f"no {text!r} in:\n{out}")
    out = on_disk("exec 5> /mnt/x; mount -o remount,ro /mnt || echo busy; exec 5>&-; mount -o remount,ro /mnt; echo y > /mnt/y\n"
                  "chmod 777 /mnt; mkdir /mnt/d; rm -f /mnt/x; mount -o remount,rw /mnt; echo y > /mnt/y; cat /mnt/y\n", disk)
    check_match(r"busy$", out, "remount with a writer")
    check_eq(out.count("Read-only file system"), 4, f"changes that are refused:\n{out}")
    check_match(r"^y$", out, "a file after the second remount")
    fsck(disk)


FREEZES = """mkdir /mnt; mount -t ext2 /dev/vda /mnt; cd /
(i=0; until test -e /tmp/end -o $i = 300; do mkdir /mnt/d$i; linux_test fill /mnt/f$i 65536 && ok="$ok $i"
i=$((i + 1)); touch /tmp/first; done > /dev/null 2>&1
echo $ok > /tmp/ok) &
until test -e /tmp/first; do :; done
n=0; until test $n = 3; do mount -o remount,ro /mnt && n=$((n + 1)) && mount -o remount,rw /mnt; done 2> /dev/null
touch /tmp/end; wait; umount /mnt; mount -t ext2 /dev/vda /mnt; linux_test fill /tmp/good 65536; wc -w < /tmp/ok
for i in $(cat /tmp/ok); do cmp /mnt/f$i /tmp/good; done 2>&1
"""


@portable_test("what is written through a map into a hole is on the disk before the disk becomes read-only")
def freezes():
    disk = make("32M", "-b", "1024")
    out = boot(FREEZES, options=[*LINUX_TEST, *throttled(disk, "iops-write=100")], smp=2).expect().out.replace("\r", "")
    check_match(r"\A0 wrong\n[1-9]\d*\n\Z", out, "what is compared")
    fsck(disk)


@portable_test("a disk that cannot read or write a sector gives EIO for its file, and for it alone, which a rename leaves where it was")
def bad_sector():
    folder = scratch() / "bad"
    (folder / "a/d").mkdir(parents=True)
    (folder / "b").mkdir()
    (folder / "bad").write_bytes(b"b" * 20000)
    (folder / "good").write_bytes(b"g" * 20000)
    disk = make("8M", "-b", "1024", folder=folder)
    blocks = lambda name: [int(n) for n in re.findall(r"\d+", tool("debugfs", "-R", f"blocks {name}", disk))]
    rule = lambda event, block: f'event = "{event}_aio"\nerrno = "5"\nsector = "{block * 2}"'
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt; cat /mnt/bad | wc -c; cat /mnt/bad > /dev/null; md5sum < /mnt/good\n"
               "head -c 4096 /mnt/bad | wc -c; echo written > /mnt/new && sync; cat /mnt/new\n"
               "mv /mnt/a/d /mnt/b/d; ls /mnt/a /mnt/b; sync; linux_test dsync /mnt/good; echo x | dd of=/mnt/good conv=notrunc 2> /dev/null; sync\n"
               "umount /mnt; dmesg | grep ext2:; mount -t ext2 /dev/vda /mnt; ls /mnt/a /mnt/b\n",
               options=[*LINUX_TEST, *blkdebug(disk, rule("read", blocks("/bad")[6]), rule("read", blocks("/a/d")[0]), rule("write", blocks("/good")[0]))]).expect().out.replace("\r", "")
    check_match(r"Input/output error", out, "the file with the bad sector")
    check_match(r"^4096\ncat.*Input|^4096$", out, "the part before it")
    check_eq(sums(out), [hashlib.md5(b"g" * 20000).hexdigest()], "the other file")
    check_match(r"^written\nmv: .*Input/output error\n/mnt/a:\nd\n\n/mnt/b:\nok\n", out, "a new file, a directory that cannot be moved, and RWF_DSYNC")
    check_match(r"^.*ext2: vda: error 5, what was written to a file is lost: \d+\n/mnt/a:\nd\n\n/mnt/b:\n", out, "the end of the file, and the next mount")
    fsck(disk)


@portable_test("a disk that cannot write any more makes fsync fail, and its file system read-only; the machine goes on")
def bad_writes():
    disk = make("8M")
    conf = '[set-state]\nevent = "write_aio"\nstate = "1"\nnew_state = "2"\n'  # the first one is of mount
    rules = blkdebug(disk, 'event = "write_aio"\nerrno = "5"\nstate = "2"\niotype = "write"', more=conf)
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt && echo mounted; echo x > /mnt/x; dd if=/dev/null of=/mnt/x conv=fsync,notrunc 2>&1 || echo failed; echo y > /mnt/y 2>&1\n"
               "ls /mnt; umount /mnt || echo not all; echo on; dmesg | grep ext2:\n", options=rules).expect().out.replace("\r", "")
    check_match(r"^mounted\n(.*\n)*dd: .*Input/output error\n(.*\n)*failed\n(.*\n)*.*/mnt/y: Read-only file system$", out, "writing")
    check_match(r"not all\non\n(.*\n)*.*ext2: vda: a write failed; it is read-only now$", out, "the end")
    check_match(r"^Filesystem state: +not clean", tool("dumpe2fs", "-h", disk), "the state")
    rules = blkdebug(make("8M"), 'event = "write_aio"\nerrno = "5"\nstate = "2"\niotype = "write"', more=conf)
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt; mkdir /mnt/x; dd if=/dev/null of=/dev/vda conv=fsync,notrunc 2>&1; sync; mkdir /mnt/y 2>&1; true\n",
               options=rules).expect().out.replace("\r", "")
    check_match(r"^dd: .*Input/output error\n(.*\n)*mkdir: .*Read-only file system$", out, "after the device's own fsync")


BUSY = '/execname == "busybox"/'
BREADS = "dtrace -qn 'fbt::ext2_bread:entry %s { n++; } END { printf(\"%%d\\n\", n); }' -c '/bin/busybox %s'\n"
FREES = f"""fbt::ext2_free_from:entry {BUSY} {{ n = 0; }}
fbt::ext2_free_block:entry {BUSY} {{ n++; all++; }}
fbt::ext2_free_from:return /n > most/ {{ most = n; }}
END {{ printf("%d of %d\\n", most, all); }}"""


@portable_test("a name is added to a large directory, and removed, near the last one; a large file goes in pieces")
def large():
    folder = pathlib.Path(scratch_file(".d"))
    (folder / "d").mkdir(parents=True)
    for i in range(1000):
        (folder / "d" / f"{i:0200}").touch()
    disk = make("16M", "-b", "1024", folder=folder)
    a, b = "/mnt/d/" + "a" * 200, "/mnt/d/" + "b" * 200  # no room for them is left in the first blocks
    out = boot(f"mkdir /mnt; mount -t ext2 /dev/vda /mnt; touch {a}\n" + BREADS % (BUSY, f"touch {b}") +
               f"rm {a}\n" + BREADS % (BUSY, f"rm {b}") +
               "for how in rm 'truncate -s 0'; do dd if=/dev/zero of=/mnt/big bs=64k count=80 2> /dev/null; sync\n"
               f"dtrace -qn '{FREES}' -c \"/bin/busybox $how /mnt/big\"; done\numount /mnt && echo end\n",
               options=plain(disk)).expect().out.replace("\r", "")
    found = check_match(r"^(\d+)\n+(\d+)\n+(\d+) of (\d+)\n+(\d+) of (\d+)\n+end$", out, "counts")
    added, removed, *freed = map(int, found.groups())
    check(0 < added < 40 and 0 < removed < 40, f"blocks that are looked at: {added}, {removed}")
    for most, blocks in zip(freed[::2], freed[1::2]):
        check(5120 <= blocks <= 5200 and most < 1200, f"blocks freed at a time: {most} of {blocks}")
    fsck(disk)


FLUSH_FAILS = 'event = "flush_to_disk"\nerrno = "5"\niotype = "flush"\nonce = "on"'


@portable_test("a flush that failed is tried again by the next fsync, and told if nobody has heard of it")
def bad_flush():
    disk = scratch_file(".img")
    disk.write_bytes(bytes(1 << 20))
    out = boot("cd /sys/kernel/tracing; echo 1 > events/block/block_rq_issue/enable\n"
               "dd if=/dev/zero of=/dev/vda bs=4096 count=1 conv=fsync 2>&1; echo status $?\n"
               "dd if=/dev/null of=/dev/vda conv=fsync,notrunc 2>&1; echo status $?; dd if=/dev/null of=/dev/vda conv=fsync,notrunc 2>&1; echo status $?\n"
               "grep -o 'block_rq_issue: .*' trace | cut -d' ' -f 2,3\n",
               options=blkdebug(disk, FLUSH_FAILS)).expect().out.replace("\r", "")
    check_eq(re.findall(r"^status (.*)$", out, re.M), ["1", "0", "0"], "what fsync says")
    check_eq(re.findall(r"^254,0 (W|F)", out, re.M), ["W", "F", "F"], "requests")
    out = boot("cd /sys/kernel/tracing; echo 1 > events/block/block_rq_complete/enable\n"
               "dd if=/dev/zero of=/dev/vda bs=4096 count=1 2> /dev/null; until grep -q 'block_rq_complete: 254,0 F' trace; do :; done\n"
               "for n in 1 2; do dd if=/dev/null of=/dev/vda conv=fsync,notrunc 2>&1; echo status $?; done\n",
               options=blkdebug(disk, FLUSH_FAILS)).expect().out.replace("\r", "")
    check_eq(re.findall(r"^status (.*)$", out, re.M), ["1", "0"], "what fsync says after a pass that nobody waited for")


@portable_test("a disk that does not answer any more is set aside: what waits for it gets EIO, and others the tree of names")
def no_answer():
    disk = make("8M")
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt && echo mounted; sysctl kern.geom.timeout=1; echo x > /mnt/x; cat /proc/uptime; (sync; echo synced) & ls /mnt; wait\n"
               "sync /mnt/x 2>&1 || echo failed; echo y > /mnt/y 2>&1; cat /dev/vda 2>&1 > /dev/null | head -n 1\n"
               "umount /mnt 2> /dev/null || echo not all; dmesg | grep virtio-blk; echo on; sysctl kern.geom.timeout=0 2>&1; sysctl kern.geom.timeout=9\n",
               options=silent(disk, "write"), smp=2).expect().out.replace("\r", "")
    check_match(r"^mounted\n(.*\n)*synced\n(.*\n)*sync: .*Input/output error\n(.*\n)*failed\n(.*\n)*.*/mnt/y: Read-only file system\n.*Input/output error$", out, "the end of waiting")
    since = float(check_match(r"^(\d+\.\d\d) \d", out, "the time before")[1])
    told = float(check_match(r"^\[ *(\d+\.\d+)\] virtio-blk: it has not done a request in time; it is no longer used$", out, "the message")[1])
    check(1 <= told - since + 0.01 < 30, f"seconds until the message: {told - since}")
    check_match(r"^on\n.*kern.geom.timeout.*\n.*9$", out, "the end")
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt 2>&1; ls /mnt; dd if=/dev/vda of=/dev/null bs=1M count=1 2>&1; echo on\n",
               options=silent(disk, "read"), sets=["kern.geom.timeout=1"]).expect().out.replace("\r", "")
    check_match(r"^mount: .*Input/output error\n(.*\n)*dd: .*Input/output error\n(.*\n)*on$", out, "a disk that is not read")


@portable_test("with --icount, a slow disk by QEMU's own options answers in time: that does not leap ahead in an idle guest")
def slow_disk():
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt && echo mounted\n", options=["--icount", *throttled(make("8M"), "iops-read=2")], smp=1).expect().out
    check_eq(out.replace("\r", ""), "mounted\n", "of a request that takes a half second")
    dry = [BOOT, "--arch", ARCH, "--icount", "--dry-run", "--script", os.devnull, "--"]
    for words, sleep in (["--drive", "if=none"], "on"), (["-hda", "disk"], "on"), (["-name", "drive"], "off"):
        said = subprocess.run([*dry, *words], capture_output=True, text=True, check=True)
        check(f"sleep={sleep}" in said.stdout, f"{words}: expected sleep={sleep}, found {said.stdout}")


@portable_test("requests of a disk that cannot be reset fail: who waits for one, or for the page of one, goes on")
def no_reset():
    path, socket = scratch_file(".gdb"), scratch_file(".qmp")
    with guest("--set", "kern.geom.timeout=1", "--qmp", str(socket), *plain(make("8M")), "-gdb",
               f"unix:{path},server=on,wait=off", smp=2) as c:
        qmp = Qmp(socket)
        qmp.command("block_set_io_throttle", device="d", bps=0, bps_rd=1, bps_wr=0, iops=0, iops_rd=0, iops_wr=0)
        shell(c, "dd if=/dev/vda of=/dev/null bs=4096 count=1 skip=9 2>&1")
        # its status is read where the number of its queues is, which is never 0
        gdb("set var 'kernel/dev/virtio/blk.c'::blk.dev.cfg[1] -= 2", "detach", socket=path)
        shell(c, "read_at() { dd if=/dev/vda of=/dev/null bs=4096 count=1 skip=$1 2>&1; echo status $?; }")
        out = shell(c, "read_at 100 & read_at 101 & read_at 101 & wait")
        check_eq(len(re.findall(r"^status [01]\r*$", out, re.M)), 3, f"readers that ended in:\n{out}")
        check("Input/output error" in out, out)
        check_match(r"vda: it may still use the memory of its requests", shell(c, "dmesg"), "the message")
        qmp.close()
        close(c)


@portable_test("a disk that does not interrupt is read nevertheless, and a line says so")
def no_interrupt():
    path = scratch_file(".gdb")
    with guest("--set", "kern.geom.timeout=5", *plain(make("8M")), "-gdb", f"unix:{path},server=on,wait=off") as c:
        gdb("set var 'virtio/blk.c'::blk.ring.avail->flags = 1", "detach", socket=path)  # which asks for none
        out = shell(c, "dd if=/dev/vda of=/dev/null bs=4096 count=1 skip=9 2>&1; dmesg")
        check_match(r"(?s)1\+0 records out.*vda: a request was done without an interrupt", out, "what is said")
        close(c)


@portable_test("when memory is out, and the disk does not answer, a process is killed before the disk is given up")
def out_of_memory():
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt; sysctl -q kern.geom.timeout=20\n"
               "dd if=/dev/zero of=/mnt/x bs=64k count=80 2> /dev/null & until grep -q dirty /proc/$!/wchan; do :; done\n"
               "awk 'BEGIN { s = \"x\"; while (1) s = s s }'; echo status $?; kill -9 $!; wait; echo end; dmesg\n",
               options=silent(make("16M"), "write"), mem="48M", smp=2).expect().out.replace("\r", "")
    check_match(r"status 137\n(.*\n)*end\n(.*\n)*.*out of memory: awk", out, "what is killed")
    check("] virtio-blk: it has not done" not in out, f"the disk was waited for: {out}")


@portable_test("while a remount waits for its disk, paths are walked")
def remount_waits():
    out = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt; sysctl -q kern.geom.timeout=2; echo x > /mnt/x; mount -o remount,ro /mnt 2> /dev/null & p=$!\n"
               "while :; do s=$(cat /proc/$p/wchan); case $s in biowait) echo walks; break;; esac; grep -q ') Z' /proc/$p/stat && break; done; wait; echo end\n",
               options=silent(make("8M"), "write"), smp=2).expect().out.replace("\r", "")
    check_match(r"walks\n(.*\n)*end$", out, "while it waits")


@portable_test("a machine that stood longer than a disk may need does not lose the disk, whose requests have their time again")
def stood():
    disk, socket = make("8M"), scratch_file(".qmp")
    with guest("--set", "kern.geom.timeout=3", "--qmp", str(socket), "--", "-drive", f"file={disk},format=raw,if=none,id=d", "-device",
               "virtio-blk-pci,drive=d,disable-legacy=on", smp=1) as c:
        qmp = Qmp(socket)
        throttle = lambda bps: qmp.command("block_set_io_throttle", device="d", bps=0, bps_rd=bps, bps_wr=0, iops=0, iops_rd=0, iops_wr=0)
        qemu = int(pathlib.Path(f"/proc/{c.pid}/task/{c.pid}/children").read_text())
        throttle(1)
        shell(c, "dd if=/dev/vda of=/dev/null bs=4096 count=1 skip=9 2>&1")
        shell(c, "(dd if=/dev/vda bs=4096 skip=20 count=1 2> /tmp/err | wc -c) & until grep -q biowait /proc/[0-9]*/wchan 2> /dev/null; do :; done")
        os.kill(qemu, signal.SIGSTOP)
        select.select([], [], [], 4.5)  # more than the timeout, and what a callout may be late
        os.kill(qemu, signal.SIGCONT)
        shell(c, "true")  # its timer has fired
        throttle(0)
        check_match(r"1\+0 records out", shell(c, "wait; cat /tmp/err"), "what is read")
        check("no longer used" not in shell(c, "dmesg | grep virtio-blk"), "the disk is lost")
        qmp.close()


@portable_test("an ext2 with features that are not known is not mounted, or only to be read; what is none says so")
def features():
    script = "mkdir /mnt; mount -t ext2 /dev/vda /mnt && mount | grep vda; mount -o ro -t ext2 /dev/vda /mnt && mount | grep vda; true\n"
    ext4 = scratch_file(".img")
    tool("mke2fs", "-q", "-t", "ext4", ext4, "16M")
    out = boot(script, options=plain(ext4)).expect().out
    check("type ext2" not in out and "Invalid argument" in out, out)
    huge = make("16M", "-O", "huge_file")
    out = boot(script, options=plain(huge)).expect().out
    check("type ext2 (ro)" in out and "type ext2 (rw)" not in out, out)
    none = scratch_file(".img")
    none.write_bytes(bytes(1 << 20))
    out = boot(script + "dmesg | grep ext2\n", options=plain(none)).expect().out
    check_match(r"ext2: vda: it has no magic number of ext2", out, "an empty disk")


@portable_test("a corrupt image makes the file system read-only, with a message, and nothing else")
def corrupt():
    def patch(disk, at, data):
        with open(disk, "r+b") as f:
            f.seek(at)
            f.write(data)
    folder = scratch() / "corrupt"
    (folder / "d").mkdir(parents=True)
    (folder / "d/f").write_bytes(b"f" * 100000)
    touched = 0
    for what in ("block", "dir", "inode", "group"):
        disk = make("8M", "-b", "1024", folder=folder)
        where = lambda name: int(re.search(r"\d+", tool("debugfs", "-R", f"blocks {name}", disk))[0])
        table = re.search(r"located at block (\d+), offset (0x[0-9a-f]+)", tool("debugfs", "-R", "imap /d/f", disk))
        inode = int(table[1]) * 1024 + int(table[2], 16)
        patch(disk, *{"block": (inode + 40 + 8, b"\xff\xff\xff\x7f"), "dir": (where("/d") * 1024 + 4, b"\x03\x00"),
                      "inode": (inode, b"\xff\xff"), "group": (2 * 1024, b"\xff\xff\xff\xff")}[what])
        run = boot("mkdir /mnt; mount -t ext2 /dev/vda /mnt; ls -l /mnt/d; cat /mnt/d/f | wc -c; rm -f /mnt/d/f; echo x > /mnt/x; dmesg | grep ext2:; echo end\n",
                   options=plain(disk))
        out = run.expect().out
        check_match(r"ext2: vda: .* is wrong: \d+; it is read-only now", out, what)
        check_match(r"Structure needs cleaning|Read-only file system|No such file", out, what)
        touched += "Read-only file system" in out
    check(touched >= 2, f"{touched} of the file systems became read-only")


@portable_test("partitions of an MBR and of a GPT are devices, whose sizes BLKGETSIZE64 tells; one has a file system")
def partitions():
    part = make("4M")
    for table in ("dos", "gpt"):
        disk = scratch_file(".img")
        head = partition_table(table, (2048, 8192), (12288, 2048)).ljust(2048 * 512, b"\0")
        disk.write_bytes((head + part.read_bytes()).ljust(16 << 20, b"\0"))
        device = plain(disk)
        out = boot("blockdev --getsize64 /dev/vda; blockdev --getsize64 /dev/vda1; blockdev --getsz /dev/vda2; blockdev --getss /dev/vda\n"
                   "ls /dev/vda*; mkdir /mnt; mount -t ext2 /dev/vda1 /mnt; echo in a partition > /mnt/f; mount -t ext2 /dev/vda1 /tmp || echo busy\n"
                   "echo x | dd of=/dev/vda conv=notrunc 2>&1; echo x | dd of=/dev/vda2 conv=notrunc 2> /dev/null && echo other\n"
                   "tr -d '\\0' < /dev/vda | grep -c partition; echo newer > /mnt/f; umount /mnt; tr -d '\\0' < /dev/vda | grep -c newer; dd if=/dev/vda1 of=/dev/null bs=1M 2>&1; echo x | dd of=/dev/vda2 bs=512 seek=2048 2>&1; true\n",
                   options=device).expect().out.replace("\r", "")
        files = boot("cd /sys/block; echo *; cd vda; echo *\n"
                     "for f in dev removable ro size */partition */dev */ro */start */size; do echo $f $(cat $f); done\n"
                     "for b in vda vda1; do echo $(cat /sys/block/vda/${b#vda}/stat /sys/block/vda/$b/stat 2> /dev/null); echo $(grep -w $b /proc/diskstats); done\n"
                     "echo 1 > size\n",
                     options=device).out.replace("\r", "")
        values = {"partition": (1, 2), "dev": ("254:1", "254:2"), "ro": (0, 0),
                  "start": (2048, 12288), "size": (8192, 2048)}
        lines, stats = files.splitlines()[:-5], files.splitlines()[-5:-1]
        check_eq(stats[::2], [" ".join(line.split()[3:]) for line in stats[1::2]], f"{table}: stat")
        check_eq(len(stats[0].split()), 17, f"{table}: numbers of stat")
        check_eq(lines,
                 ["vda", "dev removable ro size stat trace vda1 vda2", "dev 254:0", "removable 0", "ro 0", "size 32768"] +
                 [f"vda{n}/{name} {value[n - 1]}" for name, value in values.items() for n in (1, 2)],
                 f"{table}: /sys/block")
        check_match(r"can't create size: ", files, "what is only read")
        check_match(rf"^{16 << 20}\n{8192 * 512}\n2048\n512\n/dev/vda +/dev/vda1 +/dev/vda2$", out, f"{table}: devices")
        check_match(r"busy$", out, "a second mount")
        check_match(r"^dd: .*busy(\n.*)*\nother\n\d+\n[1-9]\d*$", out, "the disk, while a partition of it is mounted, and after it")
        check_match(r"^4\+0 records in$", out, "bytes of a partition")
        check_match(r"No space left", out, "after its end")
        part.write_bytes(disk.read_bytes()[2048 * 512:2048 * 512 + (4 << 20)])
        fsck(part)
        check_eq(contents(part, "/f"), b"newer\n", "the file")


@portable_test("a GPT beside an MBR with partitions of its own is what counts; a disk with blocks of 4096 bytes is refused with a message")
def odd_disks():
    disk = scratch_file(".img")
    disk.write_bytes(partition_table("hybrid", (2048, 8192), (12288, 2048)).ljust(16 << 20, b"\0"))
    device = plain(disk)
    check_eq(boot("echo /dev/vda*\n", options=device).expect().out.split(), ["/dev/vda", "/dev/vda2"], "the devices")
    device[-1] += ",logical_block_size=4096,physical_block_size=4096"
    out = boot("echo /dev/vda*; dmesg | grep virtio-blk\n", options=device).expect().out
    check_match(r"its blocks are not of 512 bytes", out, "4096 bytes")
    check_match(r"^/dev/vda\*", out, "4096 bytes")


@portable_test("a transitional disk or card of virtio is not used, and a line says what is expected")
def transitional():
    disk = make("8M")
    out = boot("ls /dev/vda; dmesg | grep virtio\n", options=["--", "-drive", f"file={disk},format=raw,if=none,id=d", "-device", "virtio-blk-pci,drive=d,disable-legacy=off",
                                                              "-device", "virtio-net-pci,disable-legacy=off,romfile="], sets=["net.address=10.0.2.15/24"]).expect().out.replace("\r", "")
    for name in ("blk", "net"):
        check_match(rf"virtio-{name}: found a transitional device, expected a modern one: QEMU's option disable-legacy=on$", out, "the message")
    check_match(r"^ls: /dev/vda: No such file or directory$", out, "the disk")


@portable_test("--disk makes a disk, mounts it at another place, and says what it expected")
def option():
    disk = scratch_file(".img")
    theirs = disk.with_suffix(".img.new")
    theirs.write_text("theirs")
    out = boot("mount | grep vda; echo kept > /srv/data/f\n", options=["--disk", f"{disk}:/srv/data"]).expect().out
    check_match(r"/dev/vda on /srv/data type ext2 \(rw\)", out, "the mount")
    check_eq(theirs.read_text(), "theirs", "another file beside it")
    fsck(disk)
    check_eq(contents(disk, "/f"), b"kept\n", "the file")
    run = boot("true\n", options=["--disk", f"{disk}:relative"])
    check_match(r"--disk .*: expected FILE or FILE:/PATH/IN/GUEST", run.expect(2).err, "a bad PATH")
    run = boot("true\n", options=["--disk", "/no/such/folder/disk"])
    check_match(r"--disk /no/such/folder/disk: ", run.expect(2).err, "a folder that is missing")
    run = boot("dmesg | grep vfs.mountfrom\n", sets=["vfs.mountfrom=ext2:/dev/vda:/mnt"])
    check_match(r"vfs.mountfrom=ext2:/dev/vda:/mnt: error 2", run.expect().out + run.err, "no disk")


@portable_test("of more names than memory has room for, those that nobody uses are forgotten, and found again")
def names():
    folder = scratch() / "names"
    for d in range(250):
        (folder / f"{d % 10}/{d}").mkdir(parents=True)
        for n in range(60):
            (folder / f"{d % 10}/{d}/{n}").touch()
    for d in [folder, *folder.glob("*"), *folder.glob("*/*")]:
        os.utime(d, (10**9, 10**9))
    disk = make("64M", "-N", "20000", folder=folder)
    total = 1 + 1 + 10 + 250 * 61  # the root and lost+found, too
    out = on_disk("cd /mnt/3/13; " + "for d in 0 1 2 3 4 5 6 7 8 9; do find /mnt/$d | wc -l; sleep 0.2; done\n" * times(2, 3) + "stat -c t%Y /mnt/[0-9] /mnt/[0-9]/* | sort -u; ls | wc -l; rm 59; ls | wc -l\n",
                  disk, mem="64M", smp=2)
    check_eq(sum(map(int, out.split()[:-3])), times(2, 3) * (total - 2), f"names that are found:\n{out}")
    check_eq(out.split()[-3:], ["t1000000000", "60", "59"], "times of directories, and the names of the current one")
    fsck(disk)


def machine(name):
    """All devices at once; on pc there is no ECAM."""
    disk, shared = make("16M"), scratch() / name
    shared.mkdir()
    (shared / "given").write_text("by the host\n")
    run = boot("seq 20000 > /mnt/f; sync; md5sum < /mnt/f; seq 20000 | md5sum; cat /host/given\n"
               "md5sum < /mnt/f > /host/sum; dmesg | grep -c '^[^a-z]*virtio-[a-z0-9]*: '\n",
               options=["--machine", name, "--disk", str(disk), "--share", str(shared), "--trace-line", "virtio"],
               smp=2, mask="PROC", trace=True).expect()
    out = run.out.replace("\r", "")
    check_eq((len(sums(out)), len(set(sums(out)))), (2, 1), "sums")
    check_match(r"^by the host$", out, "the host's file")
    check_match(r"^3$", out, "devices of virtio that say their line")
    check_eq(sums((shared / "sum").read_text()), sums(out)[:1], "a file that the guest has made")
    check("name md5sum" in "".join(e["text"] for e in run.events), "the trace lacks a program")
    fsck(disk)


for _machine, _arch in (("q35", PC), ("pc", PC), ("virt,gic-version=2", ARM), ("virt,gic-version=3", ARM)):
    test(f"a disk, a folder of the host and a port for the trace on the machine {_machine}", arch=_arch)(
        lambda name=_machine: machine(name))


@portable_test("several programs write, read, make and remove files at a time, for seconds")
def stress():
    for smp in cpus():
        disk = make("48M", "-b", "1024")
        out = on_disk(f"step={times(1500, 9000)}\n"
                      "work() { mkdir /mnt/w$1; cd /mnt/w$1; for i in 1 2 3 4 5 6 7 8; do seq $((i * step)) > f$i; md5sum < f$i > s$i; mv f$i g$i;\n"
                      "md5sum < g$i | cmp - s$i || echo BAD; ln g$i h$i; rm g$i; [ $i = 4 ] && sync; done; cat h* | md5sum; cd /; rm -r /mnt/w$1/h[1-6]; }\n"
                      "for n in 1 2 3 4 5; do work $n & done; wait; sync; echo done\n", disk, smp=smp)
        check("BAD" not in out and out.rstrip().endswith("done"), out)
        check_eq((len(sums(out)), len(set(sums(out)))), (5, 1), "sums of all files")
        fsck(disk)


@portable_test("who reads a disk goes on while a file in a thousand pieces is written")
def pieces():
    folder = scratch() / "pieces"
    for d in range(60):
        (folder / f"d{d}").mkdir(parents=True)
        for n in range(100):
            (folder / f"d{d}/{n}").write_bytes(b"x" * 1024)
    disk = make("8M", "-b", "1024", "-N", "8000", folder=folder)
    tool("debugfs", "-w", "-f", "-", disk, text="".join(f"rm /d{d}/{n}\n" for d in range(60) for n in range(0, 100, 2)))
    out = on_disk("(while true; do seq 400000 | dd of=/mnt/w bs=64k conv=notrunc 2> /dev/null; sync; done) &\n"
                  "cat /mnt/d[0-2]*/* | wc -c & cat /mnt/d[3-5]*/* | wc -c; find /mnt/d* | wc -l; wait %2; kill %1; sync\n", disk)
    check_eq(sorted(map(int, out.split())), [3060, 23 * 51200, 33 * 51200], "what is read")
    fsck(disk)


@portable_test("a file larger than the cache is read and written, and memory comes back")
def larger():
    disk = make("64M", "-b", "4096")
    out = on_disk("dd if=/dev/zero bs=1M count=24 2> /dev/null | tr '\\0' k > /mnt/big\n"
                  "cat /mnt/big | tr -d k | wc -c; ls -l /mnt/big | awk '{print $5}'; grep MemFree /proc/meminfo\n",
                  disk, smp=2, mem="48M")
    check_match(rf"^0\n{24 << 20}\nMemFree: +(\d+)", out, "the file")
    check(int(re.search(r"MemFree: +(\d+)", out)[1]) > 16000, out)
    fsck(disk)


@portable_test("when memory is short, who writes gets a page of the cache, though all of them were used just now")
def used():
    folder = scratch() / "used"
    folder.mkdir()
    (folder / "file").write_bytes(b"x" * 9000000)
    disk = make("32M", "-b", "4096", folder=folder)
    out = on_disk("cat /mnt/file > /dev/null; dd if=/dev/zero of=/x bs=64k 2> /dev/null; cat /mnt/file | wc -c\n"
                  "dd if=/dev/zero of=/mnt/new bs=4k count=64 2> /dev/null && rm /x && wc -c < /mnt/new\n", disk, mem="48M")
    check_eq(out.split(), ["9000000", "262144"], "bytes that are read, and written")
    fsck(disk)


@portable_test("a file larger than memory is written through a shared map, and nobody is killed")
def mapped():
    disk = make("48M", "-b", "4096")
    out = on_disk("linux_test fill /mnt/f 41943040; dmesg | grep -e killed -e 'no memory' || true\n", disk, *LINUX_TEST, mem="32M", smp=2)
    check(out.endswith("\n0 wrong\n") or out == "0 wrong\n", f"the words that are wrong, and messages:\n{out}")
    fsck(disk)


@portable_test("programs that write a lot wait: no more than a sixteenth of memory is dirty, whether they write or map")
def bound():
    disk = make("64M", "-b", "4096")
    out = on_disk("awk '/MemTotal/ {print $2}' /proc/meminfo\n"
                  "watch() { while [ -d /proc/$1 ]; do awk '/^Dirty/ {print $2}' /proc/meminfo; done | sort -n | tail -n 1; }\n"
                  "dd if=/dev/zero of=/mnt/a bs=64k count=200 2> /dev/null & watch $!; wait; linux_test fill /mnt/b 12582912 > /dev/null & watch $!; wait\n"
                  "linux_test fill-code /mnt/c 6291456 > /dev/null & watch $!; wait\n", disk, *LINUX_TEST, mem="64M", smp=2)
    total, *each = (int(n) for n in out.split())
    check_eq(len(each), 3, f"programs in {out!r}")
    for most in each:
        check(1000 < most < int(total) / 16 + 400, f"dirty: {most} kB of {total} kB")
    fsck(disk)


@portable_test("a page that is only read through a map is not written, and one that was written through it twice at most, however often it is synced, until it is written anew")
def resting():
    disk = make("16M", "-b", "4096")
    out = on_disk("seq 9000 > /mnt/f; sync\n"
                  "dtrace -q -n 'io:::start /args[2]->fi_name == \"f\" && args[0]->b_flags & B_WRITE/ { @[args[2]->fi_offset / 4096] = count(); } END { printa(\"page %d: %@d\\n\", @); }'"
                  " -c 'linux_test resting /mnt/f 6'\ncut -c 1 /mnt/f | grep -c '[xy]'\n", disk, *LINUX_TEST, smp=2)
    check_eq([line for line in out.splitlines() if line], ["ok", "page 3: 2", "page 0: 4", "2"], "how often pages are written")
    fsck(disk)
    check_eq(contents(disk, "/f")[:1], b"y", "what was written last")


@portable_test("a file that is unlinked while it is mapped goes with its last map, and stays if it has a name that nobody has looked for")
def unlinked():
    disk = make("16M", "-b", "1024")
    out = on_disk("cd /mnt; mkdir a b; seq 9000 > a/x; ln a/x b/y; seq 9 > a/z; cd /; umount /mnt; mount -t ext2 /dev/vda /mnt\n"
                  "linux_test unlinked /mnt/a/x; linux_test unlinked /mnt/a/z; ls /mnt/a | wc -l; md5sum < /mnt/b/y; seq 9000 | md5sum\n",
                  disk, *LINUX_TEST, smp=2)
    check_eq((out.split()[:3], len(set(re.findall(r"^[0-9a-f]{32}", out, re.M)))), (["ok", "ok", "0"], 1), f"what is printed: {out}")
    fsck(disk)


@portable_test("a directory gets no more subdirectories than ext2 allows, however they come")
def subdirectories():
    tree = scratch_file("")
    for path in ("full/e", "full/other", "d/s", "d/t"):
        (tree / path).mkdir(parents=True)
    (tree / "full/f").write_text("f")
    disk = make("4M", "-b", "1024", folder=tree)
    tool("debugfs", "-w", "-R", "sif /full links_count 32000", disk)
    out = on_disk("cd /mnt; for i in 'd/s full/f' 'full/f d/s' 'd/s full/e'; do linux_test exchange $i; done; mv d/t full 2>&1 | grep -o 'Too many links'; mv -T d/t full/other; ls -1 d full\n",
                  disk, *LINUX_TEST)
    check_eq(out.split("\n"), ["EMLINK", "EMLINK", "exchanged", "Too many links", "d:", "s", "", "full:", "e", "f", "other", ""], "what is said")
    tool("debugfs", "-w", "-R", "sif /full links_count 4", disk)
    fsck(disk)


@portable_test("a directory of more names than memory has room for is refused, and takes no memory from others; programs come before the cache")
def crowd():
    tree = scratch_file("")
    for name in [f"large/{i}" for i in range(12000)] + [f"other/{i}" for i in range(5)]:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tree / "file").write_bytes(b"x" * 20000000)
    disk = make("64M", "-N", "14000", folder=tree)
    out = on_disk("su 1000 ls /mnt/large > /dev/null 2>&1; cd /mnt\n"
                  "until touch new 2> /dev/null; do sleep 0.1; done; cat other/3 && ls other | wc -l; cat file > /dev/null\n"
                  "dd if=/dev/zero of=/dev/null bs=26M count=1 2>&1; dmesg | grep killed; exit 0\n", disk, "--mem", "48M", smp=2)
    check("5" in out.split() and "killed" not in out, out)
    fsck(disk)


if __name__ == "__main__":
    main()
