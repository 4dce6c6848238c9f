#!/usr/bin/python3
"""test_failing.py - of what programs ask the kernel for, each allocation of memory fails in turn: an error says so, and nothing is lost."""
from harness import BUILD, boot, check, main, portable_test, tap, times


@portable_test("an allocation that fails is an error of the call that made it; afterwards the call succeeds, and no memory is missing")
def failing():
    run = boot("user_test failing\n", smp=times(1, 2), options=["--kernel", str(BUILD / "kestrel-test"), "--file", f"/bin/user_test={BUILD}/user_test"]).expect()
    check(tap(run.out) > 20, run.out)


if __name__ == "__main__":
    main()
