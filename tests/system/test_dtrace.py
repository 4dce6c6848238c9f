#!/usr/bin/python3
"""test_dtrace.py - dtrace in the guest: programs of dtrace.cases, each with its exact output; scripts."""
import os
import pathlib
import re
import subprocess
import sys

from harness import ARCH, ARCHS, LINUX_TEST, ROOT, TURNS, boot, check, check_eq, check_match, main, portable_test, scratch_file, test, times

CASES = pathlib.Path(__file__).parent / "dtrace.cases"
MARK = "== case =="
# Other probes, the kernel's and the process's own things, files, and what waits for the clock.
KERNEL = re.compile(r"\w*:\w*:\w*:(?!BEGIN|END|ERROR)|tick-|profile-|\b(pid|uid|execname|cur\w+|stack|ustack|chill|uregs|fds|timestamp|raise)\b|"
                    r"`| -[clpCDHIL]\b|/proc|/etc|/tmp|\|(?!\|)[^']*$|<<|\w+_t\b.*->|exec")


def needs_no_kernel(command):
    return command.startswith("dtrace ") and "BEGIN" in command and KERNEL.search(command) is None


def cases():
    """[(command, expected output)] of the file: a command begins with `$ `."""
    parts = re.split(r"^\$ (.*)\n", CASES.read_text(), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def run_cases(commands):
    """The output of each command, standard error included."""
    script = "".join(f"echo {MARK}\n{{ {command}; }} 2>&1\n" for command in commands)
    out = boot(script + "true\n", options=["--icount"]).expect().out
    return [part.removeprefix("\n") for part in out.split(MARK)[1:]]


@test("programs of dtrace.cases print what stands there")
def table():
    """What needs no kernel is tested on the host (unit/dtrace_hosted_test.py): of that, one in eight here. In a run of
    everything each port has every other case."""
    wanted = [case for n, case in enumerate(cases()) if n % times(8, 1) == 0 or not needs_no_kernel(case[0])]
    wanted = wanted[ARCHS.index(ARCH)::2] if TURNS else wanted
    found = run_cases([command for command, _ in wanted])
    check_eq(len(found), len(wanted), "cases")
    for (command, expected), output in zip(wanted, found):
        check_eq(output, expected, command)


def write_cases():
    """Rewrites dtrace.cases with what the guest prints: look at the difference before it is kept."""
    commands = [command for command, _ in cases()]
    CASES.write_text("".join(f"$ {c}\n{out}" for c, out in zip(commands, run_cases(commands))))


@portable_test("a script is executed by its first line, with arguments; the same text by -s and by standard input")
def script():
    text = '#!/usr/sbin/dtrace -qs\nBEGIN { printf("script %d %s\\n", $1, $$2); exit(0); }\n'
    path = scratch_file(".d")
    pathlib.Path(path).write_text(text)
    pathlib.Path(path).chmod(0o755)
    out = boot("/tmp/s.d 5 abc\ndtrace -qs /tmp/s.d 6 def\ncat /tmp/s.d | dtrace -qs - 7 ghi\n",
               options=["--file", f"/tmp/s.d={path}"]).expect().out
    check_eq(out, "script 5 abc\n\nscript 6 def\n\nscript 7 ghi\n\n", "output")


@portable_test("chmod makes a script executable")
def executable():
    out = boot("cat > /tmp/s.d << 'END'\n#!/usr/sbin/dtrace -qs\nBEGIN { trace(5); exit(0); }\nEND\n"
               "/tmp/s.d\nchmod u+x /tmp/s.d\n/tmp/s.d\necho\nchmod 644 /tmp/s.d\n/tmp/s.d\necho $?\n").expect().out
    check_eq(out, "/boot/script.sh: line 5: /tmp/s.d: Permission denied\n5\n\n"
             "/boot/script.sh: line 10: /tmp/s.d: Permission denied\n126\n", "output")


def host(*arguments):
    """What build/host/dtrace prints, errors included; its status."""
    done = subprocess.run([ROOT / "build/host/dtrace", *arguments], env={**os.environ, "KESTREL_ARCH": ARCH}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.stdout, done.returncode


SAME = [
    'BEGIN { @[execname, pid] = quantize(arg0); printf("%s %d", execname, uid); x[pid] = timestamp; } END { printa(@); }',
    "syscall::openat:entry /pid != $target/ { trace(copyinstr((uintptr_t)args[1])); ustack(5); }",
    "fbt::ramfs_read:entry { print(*args[0]); @[stack(), stringof(args[0]->name->text)] = llquantize(args[3] != NULL, 10, 0, 3, 10); }",
    "BEGIN { if (pid > 1) { self->s = strjoin(execname, json(\"{}\", \"a\")); } else trace(uregs[R_PC]); trace(curpsinfo->pr_psargs); }",
    "BEGIN { trace(nothing); }",
    'BEGIN { printf("%d", execname); }',
    "BEGIN { stack(pid) }",
]


@portable_test("the guest and the host compile to the same code, and say the same of errors")
def same():
    script = "".join(f"echo {MARK}\ndtrace -Se -n '{text}' 2>&1\necho $?\n" for text in SAME)
    found = boot(script).expect().out.split(MARK + "\n")[1:]
    for text, output in zip(SAME, found):
        expected, status = host("-Se", "-n", text)
        check(len(expected) > 50, f"{text}: the host prints {expected!r}")
        check_eq(output, f"{expected}{status}\n", text)


@test("functions of a program without symbols are those that it exports", arch=("x86_64", "the program is this machine's"))
def exported():
    out = boot("dtrace -qn 'pid$target::parse_and_execute:entry { printf(\"%s\", probefunc); ufunc(uregs[R_PC]); ustack(1); exit(0); }' "
               "-c 'bash -c true'\n", options=["--program", "/bin/bash"]).expect().out
    check_match(r"parse_and_execute +bash`parse_and_execute +\n +bash`parse_and_execute\n", out.lstrip(), "names")


@portable_test("-A writes a program for a boot, which begins before the other CPUs start; -ae fetches what it traced")
def anonymous():
    image = scratch_file(".dif")
    out, status = host("-A", "-o", str(image), "-n", "fbt::arch_cpu_start:entry { self->in = timestamp; } fbt::arch_cpu_start:return /self->in/ "
                       "{ @snoozers[stack()] = quantize(timestamp - self->in); self->in = 0; } proc:::exec-success { @[\"pid\", pid] = count(); }")
    check_eq((out, status), (f"dtrace: saved anonymous enabling in {image}\ndtrace: boot with `qemu/boot --file /boot/dtrace.dif=FILE` "
                             "to enable it\n", 0), "on the host")
    out = boot("dtrace -ae\necho $?\ndtrace -ae 2>&1\n"
               "dtrace -x cpu=1 -qn 'profile-997 { @[\"cpu\", cpu] = count(); } profile-997 /n++ == 9/ { exit(0); } END { printf(\"end\\n\"); }'\n", smp=2, options=["--file", f"/boot/dtrace.dif={image}"]).out
    check(re.match(r"\n\n +kernel`arch_cpu_start(\+0x[0-9a-f]+)?\n +kernel`cpu_start_all\+0x[0-9a-f]+\n +kernel`boot_thread\+0x", out) is not None,
          f"found no stack of the boot in {out!r}")
    check(re.search(r"\n +value  -+ Distribution -+ count +\n( +\d+ \|@* +\d+ +\n){3}", out) is not None, f"found no distribution in {out!r}")
    check(re.search(r"\n  pid +1 +1\n(  pid +\d+ +1\n)+0\n", out) is not None, f"found not the programs that were executed in {out!r}")
    check("no anonymous tracing to claim" in out, "it can be claimed twice")
    check(re.search(r"\nend\n\n  cpu +1 +\d+\n$", out) is not None, f"-x cpu=1 traces other CPUs, too, or nothing: {out!r}")
    host("-A", "-o", str(image), "-x", "aggsortrev=0", "-n",
         'int n; BEGIN { s = speculation(); @n[1] = sum(1); @n[2] = sum(2); } profile-997 /n < 50/ { speculate(s); trace(cpu); } '
         'tick-1ms /++n == 50/ { commit(s); } tick-400ms { @[speculation() != 0 ? "there is one again" : "none"] = count(); }')
    out = boot("sleep 0.5\ndtrace -qae -x aggsortrev\n", smp=2,
               options=["--icount", "--file", f"/boot/dtrace.dif={image}"]).out
    check("there is one again" in out, f"nobody cleans speculations until the tracing is claimed: {out!r}")
    check_match(r"^ +2 +2\n +1 +1$", out, "in the order that the command line says")
    host("-A", "-o", str(image), "-n", 'tick-10ms { trace("tick\\n"); }')
    out = boot("dtrace -qa > /tmp/a 2>&1 & p=$!\nuntil grep -q tick /tmp/a; do :; done\nkill -STOP $p\nsleep 3\nkill -CONT $p; wait $p; tail -n 1 /tmp/a\n", smp=1,
               sets=["kern.dtrace.deadman_s=1"], options=["--icount", "--file", f"/boot/dtrace.dif={image}"]).out
    check("abort due to systemic unresponsiveness" in out.lower(), f"who claimed it and was stopped keeps its probes: {out!r}")
    host("-A", "-o", str(image), "-b", "8t", "-x", "scratchsize=1t", "-x", "dynvarsize=1t", "-n", "proc:::exec-success { n++; } END { trace(n); }")
    out = boot("dmesg | grep 'dtrace: '\ndtrace -qae\n", options=["--file", f"/boot/dtrace.dif={image}"]).expect().out
    sizes = check_match(r"^.*dtrace: sizes lowered to bufsize=(\d+) aggsize=1048576 dynvarsize=(\d+) specsize=32768 scratchsize=(\d+)\n\d+\n+$", out, "sizes that are too large")
    check(all(65536 < int(n) < 1 << 31 for n in sizes.groups()), f"sizes: {sizes[0]}")
    out = boot("dtrace -A -n BEGIN 2>&1\nls /boot/dtrace.dif\ndtrace -A 2>&1\nls /boot | grep -c dif\n").out
    check_eq(out.splitlines()[2:], ["/boot/dtrace.dif", "dtrace: cleaned up old anonymous enabling in /boot/dtrace.dif", "0"], "in the guest")


# Two programs, on the CPUs that are read first and last, count in turn. CPU 1 has much to be read between them, of which
# nothing is printed.
PING = """
mkfifo /tmp/a /tmp/b
busybox taskset 1 sh -c 'while read n && [ $n -lt 3000 ]; do echo $((n + 1)); done < /tmp/a > /tmp/b' &
busybox taskset 4 sh -c 'while read n; do echo $((n + 1)); done < /tmp/b > /tmp/a' &
exec 5<> /tmp/a
echo 0 >&5
wait %1 %2
"""
IN_ORDER = ("int no; syscall::write:entry /progenyof($target) && arg0 == 1/ "
            "{ printf(\"%s\\n\", copyinstr(arg1, arg2)); } "
            "profile-997 /cpu == 1/ { if (no) { tracemem(&`boot_info, 60000); } trace(\"\"); }")


@portable_test("what several CPUs record is printed in the order of time, whenever each is read")
def in_order():
    path = scratch_file(".sh")
    path.write_text(PING)
    out = boot(f"dtrace -x bufsize=8m -x switchrate=10ms -qn '{IN_ORDER}' -c 'sh /tmp/ping.sh'\n", smp=3, mem="512M",
               options=["--file", f"/tmp/ping.sh={path}"]).expect().out
    found = [int(n) for n in out.split()]
    check(len(found) >= 3000, f"found {len(found)} numbers")
    check_eq([n for n, following in zip(found, found[1:]) if following < n], [], "numbers before a lesser one")


@portable_test("-x aggpercpu: each CPU has its value of a key, and loses it when the key goes")
def by_cpu():
    out = boot("printf 'for cpu in 2 1 2; do busybox taskset $cpu cat /dev/null; done\\n' > /tmp/w.sh\n"
               "dtrace -x aggpercpu -qn 'proc:::exit /execname == \"cat\"/ { @[\"both\"] = count(); @[cpu == 1 ? \"one\" : \"none\"] = count(); } "
               "END { printa(@); trunc(@, 1); printa(@); clear(@); printa(@); }' -c 'sh /tmp/w.sh'\n", smp=2).expect().out
    found = [(key, int(n)) for key, n in re.findall(r"^ +(\w+|\[CPU \d\]) +(\d+)$", out, re.M)]
    check_eq(found, [("none", 1), ("[CPU 0]", 1), ("[CPU 1]", 0), ("one", 2), ("[CPU 0]", 0), ("[CPU 1]", 2),
                     ("both", 3), ("[CPU 0]", 1), ("[CPU 1]", 2), ("both", 3), ("[CPU 0]", 1), ("[CPU 1]", 2),
                     ("both", 0), ("[CPU 0]", 0), ("[CPU 1]", 0)], "keys and CPUs")


@portable_test("a thread keeps its variables when it executes, and gets its process's number")
def executes():
    program = ("syscall::execve:entry /progenyof($target)/ { self->in = tid; } "
               "syscall::execve:return /self->in/ { kept++; moved += tid != self->in; self->in = 0; } "
               'END { printf("kept %d, moved %d\\n", kept, moved); }')
    out = boot(f"dtrace -qn '{program}' -c 'linux_test execute 2'\n", options=LINUX_TEST).expect().out
    check_match(r"^kept \d+, moved 1$", out, "programs that were executed, and those of them by a second thread")


if __name__ == "__main__":
    sys.exit(write_cases() if sys.argv[1:] == ["--write"] else main())
