#!/usr/bin/python3
"""dtrace_hosted_test.py - programs of tests/system/dtrace.cases that need no kernel, by the compiler, the engine and the
consumer on the host (tests/unit/dtrace_hosted.c): they print what they print in the guest.

Prints TAP. The program is build/host/dtrace-hosted, or $DTRACE_HOSTED.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/system"))
from test_dtrace import cases, needs_no_kernel  # noqa: E402
HOSTED = os.environ.get("DTRACE_HOSTED", str(ROOT / "build/host/dtrace-hosted"))
DEADLINE_S = 60
AT_LEAST = 30  # so many cases need no kernel


def found(command):
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    env = {**env, "BASH_FUNC_dtrace%%": f'() {{ timeout {DEADLINE_S} "{HOSTED}" "$@"; }}'}
    done = subprocess.run(["bash", "-c", f"{{ {command}; }} 2>&1"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    return done.stdout.decode("utf-8", "replace")


def main():
    chosen = [(command, expected) for command, expected in cases() if needs_no_kernel(command)]
    print(f"1..{len(chosen) + 1}")
    enough = len(chosen) >= AT_LEAST
    print(f"{'ok' if enough else 'not ok'} 1 - {AT_LEAST} programs or more need no kernel", flush=True)
    failed = not enough
    for n, (command, expected) in enumerate(chosen, 2):
        output = found(command)
        failed |= output != expected
        print(f"{'ok' if output == expected else 'not ok'} {n} - {command[:100]}")
        if output != expected:
            print(f"# found    {output!r}\n# expected {expected!r}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
