#!/usr/bin/python3
"""test_busybox.py - Debian's busybox, unchanged: what its tools and its shell print in the guest, they print on the host
(tests/linux/busybox.sh).
"""
import functools
import subprocess
import tempfile

from console import guest
from harness import ROOT, boot, check, check_eq, check_match, cpus, host_busybox, main, test

SCRIPT = ROOT / "tests" / "linux" / "busybox.sh"
GUEST_DIR = "/tmp/dir"


@functools.cache
def on_host():
    program = host_busybox()
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run([program, "sh", SCRIPT], env={"BB": str(program), "DIR": folder, "PATH": "", "HOME": "/"},
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120, check=False).stdout.replace(folder, GUEST_DIR)
    check(out.count("\n") > 150, f"on the host: {out}")
    return out


def compare(smp):
    run = boot(f"BB=/bin/busybox DIR={GUEST_DIR} /bin/busybox sh /busybox.sh 2>/dev/null", smp=smp, options=["--file", f"/busybox.sh={SCRIPT}"]).expect(0)
    for found, expected in zip(run.out.splitlines(), on_host().splitlines()):
        check_eq(found, expected, "busybox in the guest")
    check_eq(run.out.count("\n"), on_host().count("\n"), "lines")


for _smp in cpus("busybox"):
    test(f"busybox prints in the guest what it prints on the host, CPUs: {_smp}")(lambda smp=_smp: compare(smp))


@test("poweroff, reboot and halt end the machine, by init and with -f at once; user 7 may not; dmesg and mount say what the kernel did")
def ends():
    run = boot("su 7 reboot; echo $?\ndmesg\nmount\nbusybox poweroff -f\nexit 3\n", smp=4).expect(0)
    for line in (r"\[ +\d+\.\d+\] up after \d+ ms", "proc on /proc type proc \\(rw\\)"):
        check_match(rf"^{line}$", run.out, "what the guest prints")
    check_match(r"^reboot: .*not permitted\n1$", run.out, "a user who reboots")
    boot("busybox poweroff\nexit 3\n").expect(0)
    for how in ("", " -f"):
        boot(f"reboot{how}\n").expect(125)
        with guest(smp=4) as c:
            c.sendline(f"halt{how}")
            c.expect(r"system halted\r+\n")


if __name__ == "__main__":
    main()
