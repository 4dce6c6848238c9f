#!/usr/bin/python3
"""test_share.py - a folder of this machine in the guest (qemu/boot --share): 9P over virtio."""
import hashlib
import os
import re
import signal
import subprocess
import time

from console import close, gdb, guest, shell
from disks import make, silent
from harness import (ARCH, BOOT, BUILD, Skipped, boot, check, check_eq, check_match, cpus, ktrdump, main, portable_test,
                     scratch, test)

LINUX_TEST = ["--file", f"/bin/linux_test={BUILD}/linux_test"]
_folders = 0


def folder():
    global _folders
    _folders += 1
    path = scratch() / f"share{_folders}"
    path.mkdir()
    return path


def shared(script, path, *options, end="", **how):
    """What a script prints. end: of the option."""
    return boot(script, options=["--share", f"{path}{end}", *options], **how).expect().out.replace("\r", "")


def lines(n):
    return "".join(f"{i}\n" for i in range(1, n + 1)).encode()


FILES = """cd /host
cat given/one link; readlink out; readlink given/dangling; cat given/dangling 2> /dev/null || echo nothing; ls -1 given
mkdir -p a/b/c; echo one > a/one; ln a/one a/b/two; ln -s ../one a/b/link; cat a/b/link; stat -c '%h %s' a/one
mv a/b/c d; mv d/../a/b/two d/three; ls -1 a/b; ls -1 d; rm a/one; cat d/three; echo more >> d/three; cat d/three
truncate -s 3 d/three; truncate -s 5 d/three; tr '\\0' 0 < d/three; echo
chmod 2751 d/three; touch -d '2001-02-03 04:05:06' d/three; stat -c '%a %s %Y' d/three; chmod 700 a; stat -c %a a
rmdir a/b 2> /dev/null || echo full; rm -r a; ls a 2> /dev/null || echo gone
exec 5> open 6< given/one; rm open given/one; echo kept >&5; stat -L -c '%h %s' /proc/self/fd/5; cat <&6; ls open 2> /dev/null || echo unlinked; exec 5>&- 6<&-
for i in $(seq 300); do echo > many-$i; done; ls | grep -c many; rm many-1?; ls | grep -c many
mv -T given d 2> /dev/null || echo full2; ls d/../d/./three; (cd d; pwd; readlink ../link); test -e d/nothing/../three || echo not
cp -r d e; diff -r d e && echo equal; find . -name three | sort; df . | awk 'NR == 2 {print ($2 > 1000)}'; sync; stat -f -c %t .
"""


def files(smp):
    path = folder()
    (path / "given").mkdir()
    (path / "given/one").write_text("1\n")
    (path / "link").symlink_to("given/one")
    (path / "out").symlink_to("../../../../etc/shadow")
    (path / "given/dangling").symlink_to("/no/where")
    out = shared(FILES, path, smp=smp)
    check_eq(out.split("\n")[:-1],
             ["1", "1", "../../../../etc/shadow", "/no/where", "nothing", "dangling", "one", "one", "2 4", "link", "three", "one", "one", "more",
              "one00", "2751 5 981173106", "700", "full", "gone", "0 5", "1", "unlinked", "300", "290", "full2", "d/../d/./three", "/host/d", "given/one", "not",
              "equal", "./d/three", "./e/three", "1", "1021997"], "what the commands print")
    check_eq((path / "d/three").read_bytes(), b"one\0\0", "a file, for the host")
    check_eq((path / "d/three").stat().st_mtime, 981173106, "its time")
    check_eq(sorted(p.name for p in path.iterdir() if not p.name.startswith("many")), ["d", "e", "given", "link", "out"], "names, for the host")


for _smp in cpus("files of a share"):
    test(f"files, directories and links of the host are read, made, moved and removed, {_smp} CPUs")(lambda smp=_smp: files(smp))


MAPS = """map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0): Invalid argument
mprotect(p, PAGE, PROT_READ | PROT_WRITE): Permission denied
pages: a a b b
after the end: c 00
file: a a a a a a a a a a a a a a a a
what was written: a w r i t t e n b
its own page: ! a
ftruncate(fd, PAGE + 2): good
cut off: 114
the last page: t t 00 00
unlink("maps"): good
map(PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE): good
file: w r i t t
appended: 3
file: e n d
ftruncate(old, 0): No such file or directory
fchmod(old, 0600): No such file or directory
futimens(old, NULL): No such file or directory
fsync(old): good
its page: o l d
file: n e w
the other one: 644 3
"""


@portable_test("ten megabytes go both ways byte for byte, read, written, mapped and executed, by two CPUs at once")
def big():
    path = folder()
    data = os.urandom(10_000_000)
    (path / "in").write_bytes(data)
    out = shared("cd /host; md5sum in; cp in out1 & cp in out2; wait; cmp out1 out2 && echo equal; dd if=in bs=77777 skip=3 count=2 2> /dev/null | md5sum\n"
                 "cp /bin/linux_test t; ./t maps-of-host /host; rm t\n", path, *LINUX_TEST, smp=2)
    sum_ = hashlib.md5(data).hexdigest()
    check_match(f"^{sum_}  in\nequal\n", out, "the file")
    check_match(f"^{hashlib.md5(data[3 * 77777:5 * 77777]).hexdigest()}  -$", out, "a part of it")
    check_eq(out.split("-\n")[1], MAPS, "maps of a file")
    check_eq(sorted(os.listdir(path)), ["in", "out1", "out2"], "names, for the host")
    for name in ("out1", "out2"):
        check((path / name).read_bytes() == data, f"{name} is another")


@portable_test("what the host changes is seen at the next look: contents, sizes, names, kinds, scripts that are executed")
def host_changes():
    path = folder()
    (path / "run").write_text("#!/bin/sh\necho old\n")
    (path / "run").chmod(0o755)
    (path / "d").mkdir()
    (path / "d/f").write_text("f")
    with guest("--share", str(path), smp=2) as c:
        check_match("old", shell(c, "/host/run; cd /host/d; cat f; exec 7< /host/run"), "before")
        (path / "run").write_text("#!/bin/sh\necho new and longer\n")
        check_match("new and longer", shell(c, "/host/run"), "a program that was edited")
        check_match("new and longer", shell(c, "cat <&7"), "an open file")
        (path / "d").rename(path / "e")
        check_match(r"(?s)d: No such.*\bf\b", shell(c, "ls /host/d; ls /host/e"), "a directory that was renamed")
        (path / "d").write_text("a file now")
        check_match("a file now", shell(c, "cat /host/d; cd /host/e; cat f"), "a file instead of it")
        (path / "d").unlink()
        (path / "d").symlink_to("e/f")
        (path / "e/f").write_text("12345")
        check_match(r"(?s)12345\b.*\b5\b", shell(c, "cat /host/d; echo; stat -L -c %s /host/d"), "a link instead of it")
        (path / "e/f").unlink()
        (path / "e").rmdir()
        check_match(r"(?s)No such.*run", shell(c, "ls /host/e; ls /host; cd /"), "a directory that is gone")
        shell(c, "mkfifo /tmp/p; (dd of=/host/synced conv=fsync < /tmp/p 2> /tmp/err; echo status $? >> /tmp/err) &")
        shell(c, "exec 9> /tmp/p; until test -e /host/synced; do :; done")
        (path / "synced").unlink()
        out = shell(c, "echo data >&9; exec 9>&-; wait; cat /tmp/err")
        check_match("status 0", out, "fsync() of an open file that the host has removed")
        close(c)


@portable_test("names that are gone are given up by a thread of the kernel, and not by who looks for another")
def forgotten():
    path = folder()
    (path / "d").mkdir()
    for i in range(100):
        (path / f"d/f{i}").touch()
    with guest("--share", str(path), smp=2) as c:
        shell(c, "ls -l /host/d > /dev/null; sysctl -q debug.ktr.mask=VOP")
        (path / "d").rename(path / "e")
        shell(c, "given() { ktrdump -qH | grep '9p: type 120 '; }; ls /host/d 2> /dev/null")
        shell(c, "until test $(given | grep -c trimmer) -ge 100; do :; done; sysctl -q debug.ktr.mask=NONE")
        check_match(r"^\d?\r*$", shell(c, "given | grep -vc trimmer"), "how many others gave up")
        out = shell(c, "umount /host && mount -t 9p host /host && grep 9p /proc/mounts")
        check_match("host /host 9p", out, "unmounted at once")
        close(c)


@portable_test("with --icount, time does not leap ahead while the guest waits for the host's answers")
def waits():
    path = folder()
    (path / "f").write_bytes(bytes(3_000_000))
    began = time.monotonic()
    idle = float(shared("for i in $(seq 20); do cat /host/f > /dev/null; done; cut -d' ' -f2 /proc/uptime\n", path, "--icount", smp=1))
    took = time.monotonic() - began
    check(idle <= took, f"the guest was idle for {idle} s, in a run of {took:.2f} s")


@portable_test("a trace, a D output and a copy of the log go to the host's folder, and ktrdump reads them there")
def traces():
    path = folder()
    shared("ktr on PROC,SYSC > /dev/null; load fork -n 3; ktr off > /dev/null; cat /dev/ktr > /host/x.ktr\n"
           "dtrace -q -o /host/out -n 'syscall::getppid:entry { @ = count(); } END { printa(\"%@d\\n\", @); }' -c 'load syscall -n 50'\n", path, smp=2)
    status, out, err = ktrdump("-i", path / "x.ktr", "--grep", "fork: *name load")
    check_eq((status, len(re.findall("fork: ", out))), (0, 3), f"forks in the log ({err})")
    check(int((path / "out").read_text().split()[-1]) >= 50, (path / "out").read_text())


@portable_test("errors have the numbers of Linux: EACCES by the guest's own check, EROFS, EXDEV, EFBIG, ENOTEMPTY, names that are too long; ,ro is read only")
def errors():
    path = folder()
    (path / "f").write_text("f\n")
    (path / "d").mkdir()
    (path / "d/g").write_text("g\n")
    out = shared("mount | grep 9p; cat /host/f; echo x > /host/f; rm -f /host/f; mkdir /host/e; mv /host/f /host/h; chmod 1 /host/f; ln -s a /host/b\n"
                 "umount /host; mount -t 9p host /host; echo x > /host/f; rm -rf /host/d; cat /host/d/g\n"
                 "mount -t 9p host /tmp; mount -t 9p none /tmp; mount -t 9p -o trans=fd host /tmp; umount /host; mount -t 9p -o trans=virtio,version=9p2000.L,ro host /host\n"
                 "grep 9p /proc/mounts; exec 5< /host/f; umount /host; exec 5<&-; umount /host; grep -c 9p /proc/mounts; grep 9p /proc/filesystems\n 2>&1", path, end=",ro")
    check_eq(out.count("Read-only file system"), 8, f"refusals in:\n{out}")
    for text in ("host on /host type 9p (ro)", "f\n", "g\n", "mounting host on /tmp failed: Device or resource busy", "mounting none on /tmp failed: No such file",
                 "mounting host on /tmp failed: Invalid argument", "host /host 9p ro 0 0", "can't unmount /host: Device or resource busy", "\n0\nnodev\t9p"):
        check(text in out, f"no {text!r} in:\n{out}")
    out = shared("cd /host; mv f /tmp/f && ls f; mv /tmp/f f; rmdir d; rmdir f; ls f/x; n=$(printf %0256d 0); touch $n; n=$(printf %0255d 0); touch $n && ls | grep -c 0000\n"
                 "ln f /tmp/f; dd if=/dev/zero of=f bs=1 count=1 seek=9000000000000000000 2>&1; su 60001 sh -c 'echo x > d/g'; chmod 777 d; su 60001 touch d/mine && stat -c %u d/mine\n", path)
    for text in ("ls: f: No such file", "rmdir: 'd': Directory not empty", "rmdir: 'f': Not a directory", "ls: f/x: Not a directory", "File name too long", "\n1\n", "cross-device link",
                 "File too large", "d/g: Permission denied"):
        check(text in out, f"no {text!r} in:\n{out}")


@portable_test("a folder of the host that is full says so, keeps what fits, and has room when a file is removed")
def full():
    path, script = folder(), scratch() / "full.sh"
    script.write_text("cd /host; dd if=/dev/zero of=big bs=3000 count=200 conv=fsync 2>&1; stat -c 'big %s' big\n"
                      "(echo more > more) 2>&1; stat -c 'more %s' more; mkdir d && rmdir d && echo made; rm big\n"
                      "echo room > more; cat more; rm more; ls | wc -l\n")
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("this machine lets nobody mount a folder of his own")
    small = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=256k none "$0" && exec "$@"', path]
    run = subprocess.run([*small, BOOT, "--arch", ARCH, "--firmware", "none", "--smp", "1", "--share", path,
                          "--script", script],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    out = run.stdout.replace("\r", "")
    check_eq(run.returncode, 0, f"qemu/boot's status; it says: {run.stderr}")
    check_eq(out.count("No space left on device"), 2, f"what does not fit, in:\n{out}")
    check_eq(re.findall(r"^(?:big|more) \d+$|^made$|^room$|^0$", out, re.M),
             [f"big {256 << 10}", "more 0", "made", "room", "0"], f"what is there, in:\n{out}")


@portable_test("several programs use the folder at once, and each gets its own files; a signal ends one that waits")
def at_once():
    path = folder()
    out = shared("for i in 1 2 3 4 5 6; do (mkdir /host/d$i; for j in 1 2 3 4 5; do seq $((i * j * 1000)) > /host/d$i/f$j; done; cat /host/d$i/* | wc -l) & done; wait\n"
                 "(while true; do cat /host/d6/* > /dev/null; done) & load fork -n 20 > /dev/null; kill -9 $!; wait; echo ended; cat /host/d1/f1 | tail -1\n", path, smp=4)
    check_eq(sorted(map(int, out.split("ended")[0].split()[:6])), [15000 * i for i in range(1, 7)], "lines of the files")
    check_match(r"ended\n1000$", out, "after a signal")
    for i in range(1, 7):
        for j in range(1, 6):
            check((path / f"d{i}/f{j}").read_bytes() == lines(i * j * 1000), f"d{i}/f{j} is another")


@portable_test("a signal that ends a program ends its wait for a slow host, which gives up the request; nobody else waits for it, and another mount by hand goes on")
def flushed():
    path = folder()
    (path / "big").write_bytes(bytes(200_000))
    (path / "f").write_text("fine\n")
    slow = ["--", "-fsdev", f"local,id=s,path={path},security_model=mapped-xattr,throttling.bps-read=20000,throttling.bps-write=20000", "-device", "virtio-9p-pci,fsdev=s,mount_tag=slow,disable-legacy=on"]
    run = boot("mkdir /mnt; mount -t 9p slow /mnt; sysctl -q debug.ktr.mask=VOP; (exec dd if=/mnt/big of=/dev/null bs=50000 2> /dev/null) & p=$!\n"
               "until grep -q '[^0-9]50000$' /proc/$p/fdinfo/0 && grep -q '^9p' /proc/$p/wchan; do :; done; kill -USR2 $p; wait $p; echo status $?\n"
               "(exec dd if=/mnt/big of=/dev/null bs=200000 2> /dev/null) & p=$!\n"
               "until grep -q '^9p' /proc/$p/wchan; do :; done; kill -KILL $p; wait $p 2> /dev/null; echo status $?; sysctl -q debug.ktr.mask=NONE; ktrdump -q | grep -c '9p flush: tag'\n"
               "(exec dd if=/dev/zero of=/mnt/w bs=2000000 count=1 2> /dev/null) & p=$!\n"
               "until echo /mnt/* | grep -q /mnt/w && grep -q '^9p' /proc/$p/wchan; do :; done; ls -l /mnt/w > /dev/null & cat /mnt/f; kill -0 $p && echo still; kill -KILL $p; wait 2> /dev/null\n"
               "cat /mnt/f; umount /mnt; mount -t 9p slow /mnt; ln -s a /mnt/l; readlink /mnt/l\n", options=slow).expect()
    check_match(r"status 140\n(Killed\n)?status 137\n[12]\nfine\nstill\n(Killed\n)?fine\na\n$", run.out.replace("\r", ""), "what the commands print")
    check(not (path / "l").is_symlink(), "mapped: the host has a link")


@portable_test("a device that breaks its ring, and cannot be reset, is set aside: its requests fail")
def broken_ring():
    path, socket = folder(), scratch() / "ring.gdb"
    with guest("--share", str(path), "--", "-gdb", f"unix:{socket},server=on,wait=off", smp=2) as c:
        # A good index is taken for bad. The status is read where the number of queues is, which is never 0.
        gdb("set var 'virtio/9p.c'::chan.ring.seen -= 200", "set var 'virtio/9p.c'::chan.dev.cfg[1] -= 2", "detach",
            socket=socket)
        out = shell(c, "for i in 1 2 3; do cat /host/f & done; wait; ls /host/f")
        check_eq(out.count("Input/output error"), 4, "errors")
        check_match("(?s)virtio-9p: it broke its ring; .*it may still use", shell(c, "dmesg"), "the messages")
        close(c)


@portable_test("a device that does not interrupt is asked by who waits")
def no_interrupt():
    path, socket = folder(), scratch() / "look.gdb"
    (path / "f").write_text("what is read")
    with guest("--share", str(path), "--", "-gdb", f"unix:{socket},server=on,wait=off", smp=1) as c:
        gdb("set var 'virtio/9p.c'::chan.ring.avail->flags = 1", "detach", socket=socket)  # which asks for none
        check_match("what is read", shell(c, "cat /host/f"), "a file")
        close(c)


@portable_test("fsync() of a file of the host neither waits for a disk, nor fails as that does")
def synced_alone():
    out = shared("mkdir /mnt; mount -t ext2 /dev/vda /mnt; sysctl -q kern.geom.timeout=1; echo x > /mnt/x; sync\n"
                 "dd if=/dev/zero of=/host/f count=1 conv=fsync 2> /dev/null; echo $?; dmesg\n",
                 folder(), *silent(make("8M"), "write"))
    check_match(r"^0\n(.*\n)*.*virtio-blk: it has not done a request in time", out, "what fsync() says")


@portable_test("with --icount and two CPUs, and beside a disk, the folder is there; a recording refuses it, and a folder that is missing, too")
def options():
    path, disk = folder(), scratch() / "share.img"
    check_eq(shared("echo text > /host/f; cat /host/f\n", path, "--icount", smp=2), "text\n", "with --icount")
    check_eq(shared("ls -d /mnt/lost+found; cat /host/f\n", path, "--disk", str(disk)), "/mnt/lost+found\ntext\n", "beside a disk")
    run = subprocess.run([str(BOOT), "--arch", ARCH, "--record", str(scratch() / "rec"), "--share", str(path), "--script", "/dev/null"], capture_output=True, text=True, check=False)
    check(run.returncode == 2 and "--share" in run.stderr, f"status {run.returncode}: {run.stderr}")
    run = subprocess.run([str(BOOT), "--arch", ARCH, "--share", "/no/such", "--script", "/dev/null"], capture_output=True, text=True, check=False)
    check(run.returncode == 2 and "--share /no/such: no such folder" in run.stderr, f"status {run.returncode}: {run.stderr}")


if __name__ == "__main__":
    main()
