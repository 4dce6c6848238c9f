#!/usr/bin/python3
"""fetch_guest_test.py - qemu/fetch-guest: two runs at once, and one that is interrupted; and when make runs it.

Prints TAP. apt-get, dpkg-deb and flock are replaced by programs that do what a test needs.
"""
import os
import shutil
import subprocess

from export_help import DEADLINE_S, ROOT, equal, expect, main

UNPACK = """for f in usr/lib/x-linux-musl/libc.a usr/include/x-linux-musl/stdio.h bin/busybox; do
    mkdir -p "$3/${f%/*}"
    echo new > "$3/$f"
    chmod 755 "$3/$f"
done"""
MUSL = ("musl/lib/libc.a", "musl/include/stdio.h")


def fetch(tmp, **fakes):
    """The folder of what a run gets, its status, and what it says."""
    shutil.rmtree(tmp / "build", ignore_errors=True)
    to = tmp / "build/guest/x86_64"
    (to / "apt/lists").mkdir(parents=True)
    (to / "apt/lists/a_Packages").write_text("")
    for folder in ("bin", "qemu"):
        (tmp / folder).mkdir(exist_ok=True)
    shutil.copy(ROOT / "qemu/fetch-guest", tmp / "qemu")
    programs = {"apt-get": "touch a.deb", "dpkg-deb": UNPACK, "flock": "", "cp": 'exec /bin/cp "$@"'}
    for name, body in (programs | fakes).items():
        (tmp / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp / "bin" / name).chmod(0o755)
    p = subprocess.run([tmp / "qemu/fetch-guest", "x86_64"], env={"PATH": f"{tmp}/bin:{os.environ['PATH']}"},
                       capture_output=True, timeout=DEADLINE_S, check=False)
    return to, p.returncode, p.stderr.decode()


def it_gets_the_userland(tmp):
    to, status, _ = fetch(tmp)
    equal((status, [(to / name).read_text() for name in ("busybox", *MUSL)]), (0, ["new\n"] * 3), "status and files")


def what_another_run_got_meanwhile_stays(tmp):
    other = "; ".join(f"mkdir -p $(dirname {name}); echo theirs > {name}" for name in ("busybox", *MUSL))
    to, status, _ = fetch(tmp, flock=f"cd build/guest/x86_64; {other}; chmod 755 busybox")
    equal((status, [(to / name).read_text() for name in ("busybox", *MUSL)]), (0, ["theirs\n"] * 3), "status and files")


def what_is_not_whole_is_not_there(tmp):
    to, _, _ = fetch(tmp, cp='/bin/cp "$@"; case $* in *busybox*) kill -KILL $PPID;; esac')
    expect(not (to / "busybox").exists(), "a busybox of which nobody knows whether it is whole")


def what_cannot_be_got_is_said_with_the_reason(tmp):
    """Without a network, apt-get update fails only if it is asked to; the lists may be there."""
    for update, why in (("exit 100", ": no network?"), ("", ": this machine's sources do not have it")):
        apt_get = f'case "$*" in *Error-Mode=any*) {update};; update*) ;; *) exit 100;; esac'
        _, status, said = fetch(tmp, **{"apt-get": apt_get})
        equal(status, 1, "status")
        expect(said.splitlines()[0].endswith(why), f"expected `{why}`: {said}")


def make_gets_what_is_not_there(tmp):
    """In a tree without build/guest; for help it gets nothing."""
    (tmp / "qemu").mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in ("build", "qemu", ".git"):
            (tmp / entry.name).symlink_to(entry)
    (tmp / "qemu/fetch-guest").write_text('#!/bin/sh\necho "$*" >> asked\n')
    (tmp / "qemu/fetch-guest").chmod(0o755)
    for goal, asked in (("help", ""), ("build/x86_64/user_test", "x86_64\n--source lwip\n")):
        (tmp / "asked").write_text("")
        words = ["env", "-u", "MAKEFLAGS", "-u", "MFLAGS", "-u", "MAKEOVERRIDES", "make", "-n", "-C", tmp, goal]
        p = subprocess.run(words, capture_output=True, timeout=DEADLINE_S, check=False)
        equal((p.returncode, (tmp / "asked").read_text()), (0, asked), f"make {goal}: {p.stderr.decode()}")


if __name__ == "__main__":
    main([it_gets_the_userland, what_another_run_got_meanwhile_stays, what_is_not_whole_is_not_there,
          what_cannot_be_got_is_said_with_the_reason, make_gets_what_is_not_there])
