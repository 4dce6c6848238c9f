#!/usr/bin/python3
"""test_linux.py - programs of Linux: a static one over glibc."""
from harness import BUILD, boot, check, main, test


def run(smp):
    guest = boot("linux_test\n", smp=smp, options=["--file", f"/bin/linux_test={BUILD}/linux_test"])
    lines = guest.out.splitlines()
    failed = [line for line in lines if line.startswith("not ok")]
    check(not failed, "in the guest: " + "; ".join(failed))
    passed = sum(1 for line in lines if line.startswith("ok "))
    check(f"1..{passed}" in lines and passed > 10, f"in the guest: {passed} tests and no plan\n{guest.out}")
    guest.expect(0)


@test("a static program over glibc gets what Linux promises, with 1 CPU")
def one_cpu():
    run(1)


@test("a static program over glibc gets what Linux promises, with 4 CPUs")
def four_cpus():
    run(4)


if __name__ == "__main__":
    main()
