#!/usr/bin/python3
"""export_name_test.py - an export gets its name when it is complete. If it ends earlier, for whatever reason, all
names are unchanged.

Prints TAP. The programs are build/host/ktrdump and build/host/unit/ktr_gen, or $KTRDUMP and $KTR_GEN.
"""
import os
import resource
import select
import signal
import subprocess

from export_help import DEADLINE_S, Deadline, KTR_GEN, KTRDUMP, equal, expect, export_formats, main, run, run_bytes

# In the background these signals are ignored, and ktrdump keeps ignored signals ignored.
for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(_signal, signal.SIG_DFL)

FILE_MAX = 8192  # bytes until the disk is full
MIX = run_bytes(KTR_GEN, "mix", "80000")
SOME = run_bytes(KTR_GEN, "guest", "50")


def export(form, out, data=SOME, **options):
    """(status, error messages)."""
    p = subprocess.run([KTRDUMP, "--format", form, "-o", out, "-"], input=data, capture_output=True, timeout=DEADLINE_S,
                       check=False, **options)
    equal(p.stdout, b"", f"{form}: standard output")
    return p.returncode, p.stderr.decode("utf-8", "replace")


def names(tmp):
    return sorted(f.name for f in tmp.iterdir())


def written(folder):
    """Does the folder contain a file that is not empty? A file may vanish meanwhile."""
    try:
        return any(f.stat().st_size > 0 for f in folder.iterdir())
    except FileNotFoundError:
        return False


def wait_for(what, look):
    deadline = Deadline(DEADLINE_S)
    while not look():
        expect(deadline.tick() > 0, f"{what}: not in {DEADLINE_S} s")
        select.select([], [], [], 0.001)


def begun(form, out, **options):
    """Starts an export, and stops in the middle of its input."""
    before = names(out.parent)
    p = subprocess.Popen([KTRDUMP, "--format", form, "-o", out, "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    p.stdin.write(MIX[:len(MIX) // 2])
    p.stdin.flush()
    wait_for(f"{form}: something to be made", lambda: names(out.parent) != before)
    return p


def ended(p, what, signals):
    """Checks that the export was ended by one of the signals, and says so."""
    with p:
        err = p.stderr.read().decode()
        status = p.wait(timeout=DEADLINE_S)
        try:
            p.stdin.close()
        except BrokenPipeError:
            pass
    expect(-status in signals, f"{what}: status {status}, expected one of {[-s for s in signals]} ({err})")
    equal(err, "ktrdump: interrupted: nothing is left of the export\n", what)


def interrupt_leaves_nothing(tmp):
    for form, _ in export_formats():
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            p = begun(form, tmp / "out")
            p.send_signal(sig)
            ended(p, f"{form}, {sig.name}", [sig])
            equal(names(tmp), [], f"{form}: what {sig.name} left")


def many_signals_leave_nothing(tmp):
    for form, _ in export_formats():
        p = begun(form, tmp / "out")
        while p.poll() is None:
            p.send_signal(signal.SIGINT)
            p.send_signal(signal.SIGTERM)
        ended(p, form, [signal.SIGINT, signal.SIGTERM])
        equal(names(tmp), [], f"{form}: what is left")


def interrupt_of_the_last_phase_ends_the_export(tmp):
    """These formats write their file only after all events. On the CPU of this test, so that one does not end before the
    other has looked."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    source = tmp / "long.ktr"
    source.write_bytes(run_bytes(KTR_GEN, "mix", "700000"))
    (tmp / "there").mkdir()
    for form in ("schedgraph", "tracedat"):
        with open(source, "rb") as f:
            p = subprocess.Popen([KTRDUMP, "--format", form, "-o", tmp / "there/out", "-"], stdin=f, stderr=subprocess.PIPE)
        wait_for(f"{form}: something to be written", lambda: written(tmp / "there"))
        p.send_signal(signal.SIGINT)
        with p:
            equal((p.stderr.read(), p.wait(timeout=DEADLINE_S)),
                  (b"ktrdump: interrupted: nothing is left of the export\n", -signal.SIGINT), form)
        equal(names(tmp / "there"), [], f"{form}: what is left")
    os.sched_setaffinity(0, allowed)


def ignored_signal_stays_ignored(tmp):
    p = begun("chrome", tmp / "out", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    p.send_signal(signal.SIGHUP)
    err = p.communicate(MIX[len(MIX) // 2:], timeout=DEADLINE_S)[1]
    equal((p.returncode, err, names(tmp)), (0, b"", ["out"]), "status, errors, what is there after SIGHUP under nohup")


def kill_hinders_no_other_export(tmp):
    for form, _ in export_formats():
        p = begun(form, tmp / "out")
        p.kill()
        p.communicate(timeout=DEADLINE_S)
        left = names(tmp)
        expect(len(left) == 1 and left[0].startswith(".ktrdump."), f"{form}: SIGKILL left {left}")
        equal(export(form, tmp / "out"), (0, ""), f"{form}: after SIGKILL")
        equal(names(tmp), sorted(left + ["out"]), f"{form}: what is there then")
        subprocess.run(["rm", "-r", *tmp.iterdir()], check=True)


def full_disk_is_reported_and_leaves_nothing(tmp):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX))
    for form, _ in export_formats():
        status, err = export(form, tmp / "out", MIX, preexec_fn=limit)
        if form == "folded":  # its output is so small that it fits
            equal((status, err), (0, ""), form)
            (tmp / "out").unlink()
            continue
        equal((status, err), (2, f"ktrdump: {tmp / 'out'}: File too large\n"), f"{form}: on a full disk")
        equal(names(tmp), [], f"{form}: what is left on a full disk")


def other_names_are_left_alone(tmp):
    for form, _ in export_formats():
        for name in ("out.part", ".out", "out.XXXXXX"):
            (tmp / name).write_text("mine")
        equal(export(form, tmp / "out"), (0, ""), form)
        equal(names(tmp), [".out", "out", "out.XXXXXX", "out.part"], f"{form}: what is there")
        for name in ("out.part", ".out", "out.XXXXXX"):
            equal((tmp / name).read_text(), "mine", f"{form}: {name}")
        subprocess.run(["rm", "-r", *tmp.iterdir()], check=True)


def modes_are_those_of_new_files(tmp):
    for form, _ in export_formats():
        out = tmp / form
        equal(export(form, out, umask=0o027), (0, ""), form)
        for path in [out, *out.rglob("*")]:
            equal(oct(path.stat().st_mode & 0o7777), oct(0o750 if path.is_dir() else 0o640), f"{path.relative_to(tmp)}: mode")


def file_is_replaced_when_the_new_one_is_whole(tmp):
    out, link = tmp / "out", tmp / "link"
    link.symlink_to("out")
    for form, _ in export_formats():
        if form == "ctf":
            continue
        out.write_text("before")
        p = begun(form, out)
        p.terminate()
        ended(p, form, [signal.SIGTERM])
        equal((names(tmp), out.read_text()), (["link", "out"], "before"), f"{form}: what is there after an interrupt")
        expect(export(form, tmp / "no" / "out")[0] == 2 and out.read_text() == "before", f"{form}: another's failure")
        for path in (out, link):
            out.write_text("before")
            equal(export(form, path), (0, ""), f"{form} to {path.name}")
            expect(out.read_bytes() != b"before" and os.readlink(link) == "out", f"{form}: to {path.name}: not replaced")


def directory_is_made_under_a_new_name_only(tmp):
    (tmp / "empty").mkdir()
    (tmp / "full").mkdir()
    (tmp / "full/mine").write_text("mine")
    (tmp / "file").write_text("mine")
    (tmp / "dangling").symlink_to("nowhere")
    before = sorted(map(str, tmp.rglob("*")))
    for name, what in (("empty", "directory"), ("empty/", "directory"), ("full", "directory"), ("full//", "directory"),
                       ("file", "file"), ("dangling", "file"), (".", "directory")):
        out = f"{tmp}/{name}"
        equal(export("ctf", out), (2, f"ktrdump: {out.rstrip('/')}: there is a {what}; expected a new name, for a directory\n"),
              f"status and complaint of -o {name}")
    equal(sorted(map(str, tmp.rglob("*"))), before, "what is there")
    for name in ("a", "b/", "c//"):
        equal(export("ctf", f"{tmp}/{name}"), (0, ""), f"-o {name}")
        equal(names(tmp / name[0]), ["kernel"], f"what is in {name}")
    (tmp / "cwd").mkdir()
    equal(export("ctf", "bare", cwd=tmp / "cwd"), (0, ""), "a name without a slash")
    equal(names(tmp / "cwd"), ["bare"], "what is there")


def impossible_name_is_reported_at_once(tmp):
    (tmp / "dir").mkdir()
    (tmp / "file").write_text("")
    path = tmp / "some.ktr"
    path.write_bytes(SOME)
    longest = "n" * os.pathconf(tmp, "PC_NAME_MAX")
    for form, _ in export_formats():
        for name, why in (("file/out", "Not a directory"), ("no/out", "No such file or directory"),
                          (longest + "n", "File name too long"), ("x/" * 3000 + "out", "too long"), ("", "-o: expected a name")):
            out = f"{tmp}/{name}" if name else ""
            with subprocess.Popen([KTRDUMP, "--format", form, "-o", out, "-"], stdin=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as p:
                err = p.stderr.read().decode()  # before there is any input
                equal(p.wait(timeout=DEADLINE_S), 2, f"{form}: status of -o {name[:20]}")
            expect(why in err and out[:60] in err, f"{form} -o {name[:20]}: {err!r}, expected {why!r}")
        equal(run(KTRDUMP, "--format", form, "-o", tmp / longest, path), (0, "", ""), f"{form}: the longest name")
        subprocess.run(["rm", "-r", tmp / longest], check=True)
        if form != "ctf":
            for name in ("dir", "dir/", "new/"):
                equal(export(form, f"{tmp}/{name}"),
                      (2, f"ktrdump: {tmp}/{name}: expected a file's name, not a directory's\n"), f"{form} -o {name}")
    equal(names(tmp), ["dir", "file", "some.ktr"], "what is there")
    equal(names(tmp / "dir"), [], "what is in the directory")


def special_file_is_written_as_it_is(tmp):
    fifo = tmp / "fifo"
    os.mkfifo(fifo)
    for form, _ in export_formats():
        if form == "ctf":
            continue
        with open(tmp / "read", "wb") as read, subprocess.Popen(["cat", fifo], stdout=read) as reader:
            equal(export(form, fifo), (0, ""), f"{form} to a FIFO")
            equal(reader.wait(timeout=DEADLINE_S), 0, "cat")
        equal(export(form, tmp / "out"), (0, ""), form)
        expect((tmp / "read").read_bytes() == (tmp / "out").read_bytes(), f"{form}: a FIFO gets something else than a file")
        expect(fifo.is_fifo(), f"{form}: the FIFO was replaced")


if __name__ == "__main__":
    main([interrupt_leaves_nothing, many_signals_leave_nothing, interrupt_of_the_last_phase_ends_the_export,
          ignored_signal_stays_ignored, kill_hinders_no_other_export, full_disk_is_reported_and_leaves_nothing,
          other_names_are_left_alone, modes_are_those_of_new_files, file_is_replaced_when_the_new_one_is_whole,
          directory_is_made_under_a_new_name_only, impossible_name_is_reported_at_once, special_file_is_written_as_it_is])
