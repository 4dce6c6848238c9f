#!/usr/bin/python3
"""test_user.py - programs that do what they must not: system calls with bad pointers and numbers, faults of all
kinds."""
import re

from harness import BUILD, boot, check, main, test


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


@test("bad system calls get their errno and bad programs their signal, with 1 CPU")
def one_cpu():
    run(1)


@test("bad system calls get their errno and bad programs their signal, with 4 CPUs")
def four_cpus():
    run(4)


if __name__ == "__main__":
    main()
