#!/usr/bin/python3
"""test_user.py - programs that do what they must not: system calls with bad pointers and numbers, faults of all
kinds."""
import pathlib
import re
import subprocess
import tempfile

from harness import BUILD, ROOT, boot, check, check_eq, cpus, main, tap, test


PROGRAM = ["--file", f"/bin/user_test={BUILD}/user_test"]


def run(smp):
    guest = boot("user_test\nktr probes syscall::getppid:\n", smp=smp, options=PROGRAM)
    passed = tap(guest.out)
    check(re.search(r"^\d+ off +- +syscall +\S+ +getppid ", guest.out, re.M) is not None,
          "a consumer of /dev/dtrace that has ended left a probe on")
    check(passed > 100, f"in the guest: found {passed} tests, expected more than 100")
    guest.expect(0)


for _smp in cpus("bad system calls"):
    test(f"bad system calls get their errno and bad programs their signal, CPUs: {_smp}")(lambda smp=_smp: run(smp))


@test("of programs that crash again and again, ten in 5 s are told, and then how many were not")
def crashes():
    out = boot("for i in $(seq 30); do user_test do crash; done 2> /dev/null; dmesg | grep -c 'user_test.*signal 11'\n"
               "sleep 5; user_test do crash; dmesg | grep -c 'user_test.*signal 11'; dmesg | grep -o '[0-9]* more faults.*'\n",
               options=["--icount", *PROGRAM]).out.replace("\r", "")
    check_eq(re.findall(r"^\d+$", out, re.M), ["10", "11"], "lines")
    check_eq(re.findall(r"^(\d+) more faults of programs were not told$", out, re.M)[-1:], ["20"], "the others")


@test("tracing by /boot/dtrace.dif begins with the first program, until somebody claims it")
def anonymous():
    with tempfile.TemporaryDirectory() as folder:
        image = pathlib.Path(folder) / "dtrace.dif"
        gen = subprocess.run([ROOT / "build/host/unit/dif_gen"], check=True, capture_output=True).stdout
        image.write_bytes(gen)
        options = [*PROGRAM, "--file", f"/boot/dtrace.dif={image}"]
        guest = boot("/bin/nproc\nuser_test claim\nuser_test claim\n", options=options)
        lines = guest.expect(1).out.splitlines()
        check(not any(line.startswith("not ok") for line in lines), guest.out)
        for line in ("again: -16", "started: nproc", "started: user_test", "calls: many",
                     "nothing to claim: No such file or directory"):
            check(line in lines, f"found no line \"{line}\"")
        guest = boot("dtrace -qn 'fbt::uprobe_in_free:entry { @[`dtrace_lock.owner == curthread] = count(); } "
                     "END { printa(\"locked %d %@d\\n\", @); }' -c 'user_test claim'\n", options=options)
        check_eq(re.findall(r"^locked .*?(?=\r?$)", guest.out, re.M), ["locked 0 2"], "who claims frees probes without the lock")
        image.write_bytes(gen[:-8])
        guest = boot("user_test claim\n", options=options)
        check("dtrace: /boot/dtrace.dif: not loaded: the image has not the size that it says" in guest.out,
              "no message at the boot")
        subprocess.run([ROOT / "build/host/dtrace", "-A", "-o", image, "-b", "8t", "-n", "BEGIN"], check=True, capture_output=True)
        guest = boot("user_test claim\n", options=options)
        check("dtrace: sizes lowered to bufsize=" in guest.out and "not loaded" not in guest.out, guest.out)


if __name__ == "__main__":
    main()
