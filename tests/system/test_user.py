#!/usr/bin/python3
"""test_user.py - programs that do what they must not: system calls with bad pointers and numbers, faults of all
kinds."""
import pathlib
import re
import subprocess
import tempfile

from harness import BUILD, ROOT, boot, check, cpus, main, test


def run(smp):
    guest = boot("user_test\nktr probes syscall::getppid:\n", smp=smp, options=["--file", f"/bin/user_test={BUILD}/user_test"])
    lines = guest.out.splitlines()
    failed = [line for line in lines if line.startswith("not ok")]
    check(not failed, "in the guest: " + "; ".join(failed))
    passed = sum(1 for line in lines if line.startswith("ok "))
    check(re.search(r"^\d+ off +- +syscall +\S+ +getppid ", guest.out, re.M) is not None,
          "a consumer of /dev/dtrace that has ended left a probe on")
    check(passed > 100, f"in the guest: found {passed} tests, expected more than 100")
    check(f"1..{passed}" in lines, "in the guest: no plan at the end")
    guest.expect(0)


for _smp in cpus("bad system calls"):
    test(f"bad system calls get their errno and bad programs their signal, CPUs: {_smp}")(lambda smp=_smp: run(smp))


@test("tracing by /boot/dtrace.dif begins with the first program, until somebody claims it")
def anonymous():
    with tempfile.TemporaryDirectory() as folder:
        image = pathlib.Path(folder) / "dtrace.dif"
        gen = subprocess.run([ROOT / "build/host/unit/dif_gen"], check=True, capture_output=True).stdout
        image.write_bytes(gen)
        options = ["--file", f"/bin/user_test={BUILD}/user_test", "--file", f"/boot/dtrace.dif={image}"]
        guest = boot("/bin/nproc\nuser_test claim\nuser_test claim\n", options=options)
        lines = guest.expect(1).out.splitlines()
        check(not any(line.startswith("not ok") for line in lines), guest.out)
        for line in ("again: -16", "started: nproc", "started: user_test", "calls: many",
                     "nothing to claim: No such file or directory"):
            check(line in lines, f"found no line \"{line}\"")
        image.write_bytes(gen[:-8])
        guest = boot("user_test claim\n", options=options)
        check("dtrace: /boot/dtrace.dif: not loaded: the image has not the size that it says" in guest.out,
              "no message at the boot")


if __name__ == "__main__":
    main()
