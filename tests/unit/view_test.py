#!/usr/bin/python3
"""view_test.py - ktr/tools/view makes the file for a viewer, and starts it; the viewers here only report.

Prints TAP. The programs are build/host/ktrdump and build/host/unit/ktr_gen, or $KTR_GEN.
"""
import os
import pathlib
import subprocess
import sys

from export_help import DEADLINE_S, KTR_GEN, ROOT, equal, expect, main

VIEW = ROOT / "ktr/tools/view"
BEGINS = {"browser": b"<!doctype html>", "picture": b"<svg", "kernelshark": b"\x17\x08\x44tracing", "perfetto": b"\x10\x00\x04\x46\x78\x54\x16\x00"}


def stub(folder, name, status=0):
    """A program that writes down its last argument."""
    path = folder / name
    path.write_text(f'#!/bin/sh\nfor last; do :; done\necho "$last" > {folder}/called\nexit {status}\n')
    path.chmod(0o755)


def view(*args, path):
    env = {**os.environ, "PATH": str(path)}
    env.pop("BROWSER", None)
    p = subprocess.run([sys.executable, VIEW, *map(str, args)], capture_output=True, text=True, timeout=DEADLINE_S, env=env,
                       check=False)
    return p.returncode, p.stdout, p.stderr


def trace(tmp):
    path = tmp / "some.ktr"
    path.write_bytes(subprocess.run([KTR_GEN, "mix", "1000"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE_S).stdout)
    return path


def each_viewer_gets_the_file_that_it_reads(tmp):
    for viewer, program in (("browser", "xdg-open"), ("picture", "xdg-open"), ("kernelshark", "kernelshark")):
        stub(tmp, program)
        status, _, err = view("--viewer", viewer, trace(tmp), path=tmp)
        equal(status, 0, f"{viewer}: status ({err})")
        opened = pathlib.Path((tmp / "called").read_text().strip())
        expect(opened.read_bytes().startswith(BEGINS[viewer]), f"{viewer}: {opened} is something else")
        expect(str(opened) in err, f"{viewer}: the file is not named: {err}")
    # A web page on which the file can be dropped.
    equal(view("--viewer", "perfetto", trace(tmp), path=tmp)[0], 0, "perfetto: status")
    equal((tmp / "called").read_text().strip(), "https://ui.perfetto.dev", "perfetto: page")
    made = ROOT / "build/view/some.fxt"
    expect(made.read_bytes().startswith(BEGINS["perfetto"]), f"{made} is something else")


def options_for_ktrdump_go_there(tmp):
    status, _, err = view("--keep", "--viewer", "kernelshark", trace(tmp), "--", "--cpu", "99", path=tmp)
    equal(status, 1, "status of a CPU that cannot be")
    expect("--cpu" in err, err)
    equal(view("--keep", "--viewer", "kernelshark", trace(tmp), "--", "--cpu", "1", path=tmp)[0], 0, "status")


def what_goes_wrong_is_reported(tmp):
    stub(tmp, "kernelshark", status=3)
    for args, status, text in ((["--viewer", "vi", "x"], 2, "expected one of browser picture kernelshark"), ([], 2, "TRACE=FILE"),
                               ([tmp / "no-such.ktr"], 1, "No such file"),
                               (["--viewer", "kernelshark", trace(tmp)], 1, "status 3, expected 0"),
                               (["--viewer", "browser", trace(tmp)], 1, "not installed")):
        found, _, err = view(*args, path=tmp)
        equal(found, status, f"status of {args} ({err})")
        expect(text in err, f"{args}: {err!r}")
        if status == 1 and "no-such" not in str(args):
            last = err.splitlines()[-1].split()
            expect(last[2:] == "is there to be opened elsewhere".split() and pathlib.Path(last[1]).stat().st_size > 0,
                   f"{args}: the last line does not name what was written: {err!r}")


APT = """#!/bin/sh
case "$*" in
    *--print-uris*) echo "'http://a/b.deb' b.deb 1200000 SHA256:0"; echo "'http://a/c.deb' c.deb 300000 SHA256:0"; exit 0 ;;
esac
echo "$*" > {folder}/installed
printf '#!/bin/sh\n' > {folder}/kernelshark
/bin/chmod +x {folder}/kernelshark
"""


def a_viewer_is_installed_only_if_somebody_says_yes(tmp):
    for name in ("apt-get", "sudo"):
        (tmp / name).write_text(APT.format(folder=tmp) if name == "apt-get" else '#!/bin/sh\nexec "$@"\n')
        (tmp / name).chmod(0o755)
    made = trace(tmp)
    status, _, err = view("--viewer", "kernelshark", made, path=tmp)
    equal(status, 1, f"status without a terminal ({err})")
    expect("apt-get install kernelshark` installs it" in err and not (tmp / "installed").exists(), f"without a terminal: {err!r}")
    for answer, status, installed in (("n", 1, False), ("", 1, False), ("y", 0, True)):
        with subprocess.Popen([sys.executable, VIEW, "--viewer", "kernelshark", made], stdin=(ends := os.openpty())[1], text=True,
                              stderr=subprocess.PIPE, env={**os.environ, "PATH": str(tmp)}) as p:
            os.write(ends[0], f"{answer}\n".encode())
            err = p.communicate(timeout=DEADLINE_S)[1]
        for fd in ends:
            os.close(fd)
        equal(p.returncode, status, f"status of the answer {answer!r} ({err})")
        expect("fetches 2 packages, 1.5 MB. Run it? [y/N]" in err, f"the question is {err!r}")
        equal((tmp / "installed").exists(), installed, f"installed after the answer {answer!r}")
    (tmp / "installed").unlink()
    (tmp / "kernelshark").unlink()
    equal(view("--viewer", "kernelshark", "--yes", made, path=tmp)[0], 0, "status with --yes")
    expect((tmp / "installed").exists(), "--yes installed nothing")


if __name__ == "__main__":
    main([each_viewer_gets_the_file_that_it_reads, options_for_ktrdump_go_there, what_goes_wrong_is_reported,
          a_viewer_is_installed_only_if_somebody_says_yes])
