#!/usr/bin/python3
"""test_posix.py - the guest's shell and tools against the host's: the same scripts print the same, line by line."""
import re
import subprocess

from harness import Failed, boot, check, main, scratch_file, test

# Each script runs in a folder of its own, on both sides. Error messages, names of signals and column widths differ,
# so the scripts keep them out of the output.
SCRIPTS = {
    "quoting": r'''
echo a   b "c   d" 'e   $f' \$g "h\"i" "j\\k" 'l\m' n\ o
x='1  2'; echo $x "$x" '$x' "${x}y"
echo "a'b" 'a"b' a\
b
''',
    "expansion": r'''
a=path/to/file.tar.gz
echo ${a##*/} ${a#*/} ${a%.gz} ${a%%.*} ${#a} ${b:-none} ${b:=set} $b ${a:+yes}
unset b; echo "[${b-x}]" "[${b+x}]"
echo $((1 + 2 * 3)) $(( (1 + 2) * 3 )) $((7 / 2)) $((7 % 3)) $((-5)) $((1 << 4)) $((0x1f)) $((3 > 2)) $((!3))
i=1; while [ $i -lt 6 ]; do i=$((i + i)); done; echo $i
echo "$(echo one; echo two)" $(echo three
echo four) `echo five`
echo "nested $(echo "in $(echo "deep $((2 * 3))")")"
''',
    "status": r'''
true; echo $?; false; echo $?; ! true; echo $?; ! false; echo $?
(exit 7); echo $?; sh -c 'exit 9'; echo $?
false || echo or; true && echo and; false && echo no; true || echo no; echo $?
nosuchcommand 2>/dev/null; echo $?
{ false; true; }; echo $?
true | false; echo $?
false | true; echo $?
''',
    "compound commands": r'''
if true; then echo a; fi
if false; then echo no; elif true; then echo b; else echo no; fi
if false; then echo no; else echo c; fi
for i in 1 2 3; do if [ $i = 2 ]; then continue; fi; echo $i; done
for i in a b c; do for j in 1 2; do [ $j = 2 ] && break 2; echo $i$j; done; done
n=0; until [ $n -ge 3 ]; do n=$((n + 1)); done; echo $n
case foo.c in *.h) echo h;; *.c|*.cc) echo c;; *) echo other;; esac
case x in [a-c]) echo no;; [!a-c]) echo yes;; esac
f() { echo "f $1 $# $*"; return 3; }
f x y; echo $?
( a=inner; echo $a ); a=outer; ( a=changed ); echo $a
while true; do break; done; echo done $?
set -- p "q r" s; echo $# $2; shift; echo $# "$1"; for x in "$@"; do echo "<$x>"; done
for x; do echo "[$x]"; done
''',
    "redirections": r'''
echo one > f; echo two >> f; cat f; cat < f
ls nosuchfile > out 2>&1 || echo failed; [ -s out ] && echo said
{ echo a; echo b; } > g; grep -c . < g
echo x | cat | cat | cat
echo hidden > /dev/null
cat << END
here $((1 + 1)) $NOT_SET.
END
cat << 'END'
here $((1 + 1))
END
echo three 3> h >&3; cat h
exec 4> k; echo four >&4; exec 4>&-; cat k
> empty; [ -s empty ] || echo empty
cat nosuch 2>/dev/null; echo $?
echo a > d1; cp d1 d2; mv d2 d3; cat d3; rm d1; [ -e d1 ] || echo gone
''',
    "wildcards": r'''
mkdir sub; > a.c; > b.c; > c.h; > sub/d.c; > .hidden
echo *.c; echo *; echo [ab].c; echo ?.h; echo nomatch*; echo "*.c" '*.c' \*.c; echo */*.c; echo .h*
x='*.h'; echo $x "$x"
''',
    "pipes and the background": r'''
seq 1 5 | while read n; do echo "n $n"; done
seq 1 1000 | tail -n 1
seq 1 10000 | head -n 2
seq 1 20 | grep 1 | grep -c .
(echo in; echo out) | cat
sh -c 'exit 5' & wait $!; echo $?
true & wait $!; echo $?
echo "a b  c" | { read x y; echo "$x/$y"; }
''',
    "errors": r'''
sh -c 'if true; then' 2>/dev/null; echo $?
sh -c 'echo "unclosed' 2>/dev/null; echo $?
sh -c 'done' 2>/dev/null; echo $?
sh -c 'set -u; echo $nosuch; echo no' 2>/dev/null; [ $? -ne 0 ] && echo stopped
sh -c 'set -e; false; echo no'; echo $?
sh -c 'cd /nosuch' 2>/dev/null; [ $? -ne 0 ] && echo no folder
''',
    "tools": r'''
seq 1 100 > n; head -n 3 n; tail -n 3 n; tail -n +99 n; set -- $(wc n); echo $*; set -- $(wc -l -w n); echo $*
grep -c 7 n; grep -n '^9.$' n; grep -v '[0-8]' n; grep -q 200 n; echo $?; echo ABC | grep -i b
echo -n no newline; echo
mkdir -p p/q/r; ls p; ls -1 p/q; rm -r p; ls p 2>/dev/null; [ $? -ne 0 ] && echo gone
test -d . && test ! -f . ; echo $?
test 3 -lt 5 -a 2 -ge 2; echo $?; [ abc = abc ] && [ abc != abd ] && [ -n x ] && [ -z "" ]; echo $?
cp n m; cat n m | grep -c .; mv m moved; tail -n 1 moved
echo one | tee t1 | cat; cat t1
seq 3 -1 1; seq 2
touch made; ls -a | grep made
''',
}
MARK = "@@@@"


def host_says():
    """{name: output and status} with the host's /bin/sh."""
    said = {}
    for name, body in SCRIPTS.items():
        folder = scratch_file(".d")
        folder.mkdir()
        p = subprocess.run(["/bin/sh", "-c", body], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           stdin=subprocess.DEVNULL, timeout=60, env={"PATH": "/bin:/usr/bin", "LC_ALL": "C"})
        said[name] = f"{p.stdout.decode()}{MARK} {p.returncode}\n"
    return said


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def guest_says():
    """The same with the guest's sh, all in one boot."""
    lines = [f"mkdir /tmp/t{n}; cd /tmp/t{n}; sh -c {quote(body)} 2>&1 < /dev/null; echo '{MARK}' $?; cd /"
             for n, body in enumerate(SCRIPTS.values())]
    run = boot("\n".join(lines) + "\n", smp=2).expect()
    parts = re.split(rf"(?<={MARK} )(\d+)\n", run.out)
    check(len(parts) == 2 * len(SCRIPTS) + 1, f"found {len(parts) // 2} ends of scripts, expected {len(SCRIPTS)}, "
                                              f"in:\n{run.out}")
    return {name: parts[2 * n] + parts[2 * n + 1] + "\n" for n, name in enumerate(SCRIPTS)}


_said = {}


def says_the_same(name):
    if not _said:
        _said["host"], _said["guest"] = host_says(), guest_says()
    found, expected = _said["guest"][name].splitlines(), _said["host"][name].splitlines()
    for n, (here, there) in enumerate(zip(found + [None], expected + [None]), 1):
        if here != there:
            raise Failed(f"line {n}: found {here!r}, expected {there!r} as the host says\nfound in all:\n" +
                         "\n".join(found))


for script in SCRIPTS:
    test(f"the host's shell and tools say the same: {script}")(lambda name=script: says_the_same(name))


if __name__ == "__main__":
    main()
