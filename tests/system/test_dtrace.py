#!/usr/bin/python3
"""test_dtrace.py - dtrace in the guest: programs of dtrace.cases, each with its exact output; scripts."""
import pathlib
import re
import sys

from harness import boot, check_eq, main, scratch_file, test

CASES = pathlib.Path(__file__).parent / "dtrace.cases"
MARK = "== case =="


def cases():
    """[(command, expected output)] of the file: a command begins with `$ `."""
    parts = re.split(r"^\$ (.*)\n", CASES.read_text(), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def run_cases(commands):
    """The output of each command, standard error included."""
    script = "".join(f"echo {MARK}\n{{ {command}; }} 2>&1\n" for command in commands)
    out = boot(script, options=["--icount"]).expect().out
    return [part.removeprefix("\n") for part in out.split(MARK)[1:]]


@test("programs of dtrace.cases print what stands there")
def table():
    wanted = cases()
    found = run_cases([command for command, _ in wanted])
    check_eq(len(found), len(wanted), "cases")
    for (command, expected), output in zip(wanted, found):
        check_eq(output, expected, command)


def write_cases():
    """Rewrites dtrace.cases with what the guest prints: look at the difference before it is kept."""
    commands = [command for command, _ in cases()]
    CASES.write_text("".join(f"$ {c}\n{out}" for c, out in zip(commands, run_cases(commands))))


@test("a script is executed by its first line, with arguments; the same text by -s and by standard input")
def script():
    text = '#!/usr/sbin/dtrace -qs\nBEGIN { printf("script %d %s\\n", $1, $$2); exit(0); }\n'
    path = scratch_file(".d")
    pathlib.Path(path).write_text(text)
    pathlib.Path(path).chmod(0o755)
    out = boot("/tmp/s.d 5 abc\ndtrace -qs /tmp/s.d 6 def\ncat /tmp/s.d | dtrace -qs - 7 ghi\n",
               options=["--file", f"/tmp/s.d={path}"]).expect().out
    check_eq(out, "script 5 abc\n\nscript 6 def\n\nscript 7 ghi\n\n", "output")


@test("chmod makes a script executable")
def executable():
    out = boot("cat > /tmp/s.d << 'END'\n#!/usr/sbin/dtrace -qs\nBEGIN { trace(5); exit(0); }\nEND\n"
               "/tmp/s.d\nchmod u+x /tmp/s.d\n/tmp/s.d\necho\nchmod 644 /tmp/s.d\n/tmp/s.d\necho $?\n").expect().out
    check_eq(out, "sh: /boot/script.sh:5: /tmp/s.d: Permission denied\n5\n\n"
             "sh: /boot/script.sh:10: /tmp/s.d: Permission denied\n126\n", "output")


if __name__ == "__main__":
    sys.exit(write_cases() if sys.argv[1:] == ["--write"] else main())
