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
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TZ": "UTC0"}
    env = {**env, "BASH_FUNC_dtrace%%": f'() {{ timeout {DEADLINE_S} "{HOSTED}" "$@"; }}'}
    done = subprocess.run(["bash", "-c", f"{{ {command}; }} 2>&1"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    return done.stdout.decode("utf-8", "replace")


def named_addresses():
    """What is expected and printed for addresses of a program that is loaded at a base of its own: the test's program."""
    base = 0x555555554000
    symbols = subprocess.run(["nm", "-S", "--defined-only", HOSTED], stdout=subprocess.PIPE, text=True, check=True).stdout
    functions = {name: (int(start, 16), int(size, 16)) for start, size, kind, name in
                 (line.split() for line in symbols.splitlines() if len(line.split()) == 4) if kind in "tT"}
    start, size = functions["gen_clause"]
    at, name = base + start, os.path.basename(HOSTED)
    os.environ["DTRACE_PROGRAM"] = HOSTED
    program = " ".join(f"{f}({address}ul);" for f, address in
                       [("ufunc", at + 4), ("usym", at + size - 1), ("uaddr", at + 4), ("umod", at), ("uaddr", start), ("ufunc", 0x7f0000001234),
                        ("umod", 0x7f0000001234), ("ufunc", base + 0x10)])
    names = [f"{name}`gen_clause", f"{name}`gen_clause", f"{name}`gen_clause+0x4", name,
             f"{start:#x}", "0x7f0000001234", "0x7f0000001234", f"{base + 0x10:#x}"]
    return ("".join(f"  {text:<50}" for text in names) + "\n",
            found(f"dtrace -qn 'BEGIN {{ {program} exit(0); }}'"))


def main():
    chosen = [(command, expected) for command, expected in cases() if needs_no_kernel(command)]
    print(f"1..{len(chosen) + 4}")
    enough = len(chosen) >= AT_LEAST
    print(f"{'ok' if enough else 'not ok'} 1 - {AT_LEAST} programs or more need no kernel", flush=True)
    failed = not enough
    runs = [("the names of addresses of a program", *named_addresses())]
    zone = 80 * "A"
    runs += [("a time in a zone with a long name", f"Thu, 01 Jan 1970 00:00:00 {zone}\n",
              found(f"""TZ='<{zone}>0' dtrace -qn 'BEGIN {{ printf("%T", 0); exit(0); }}'"""))]
    runs += [("ERROR's clauses leave the time of the firing that has failed", "1 1\n\n",
              found("""dtrace -qn 'ERROR { t = timestamp; u = timestamp; } BEGIN { x = timestamp; *(int *)16; }'"""
                    """ -n 'BEGIN { printf("%d %d\\n", x == timestamp, t == u); exit(0); }' 2> /dev/null"""))]
    runs += [(command, expected, found(command)) for command, expected in chosen]
    for n, (command, expected, output) in enumerate(runs, 2):
        failed |= output != expected
        print(f"{'ok' if output == expected else 'not ok'} {n} - {command[:100]}")
        if output != expected:
            print(f"# found    {output!r}\n# expected {expected!r}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
