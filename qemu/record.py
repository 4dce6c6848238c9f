"""record.py - what qemu/boot's --record keeps, so that --replay can run the same again: QEMU's record and replay.

A recording is a folder:
  log        what came from outside, and after how many instructions (QEMU's rrfile)
  machines   the machine at some instants, which QEMU goes back to (a qcow2 image; the first is from the start)
  initrd     the initial RAM disk
  run.json   the machine, the kernel and its command line
  trace      what --trace wrote
  events.json  what gdb has found of where events are (qemu/gdb/kestrel_replay.py)
"""
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import struct
import subprocess

CLUSTER = 65536
# What a recording does not have. QEMU records no other input than the serial lines' and the clock's.
NOT_RECORDED = {"net": "--net", "disk": "--disk", "iso": "--iso", "reboot": "--reboot", "console_socket": "--console-socket", "gdb": "--gdb",
                "machine": "--machine", "qemu_args": "--"}
SAVED = ("arch", "cpu", "mem", "kernel", "timeout")


class Refused(Exception):
    """Why a run is not recorded, or not replayed."""


def given(args, name):
    """--net may be given without a word."""
    value = getattr(args, name)
    return value is not None if name == "net" else bool(value)


def check_record(args):
    """Can QEMU record what the options ask for?"""
    found = next((word for name, word in NOT_RECORDED.items() if given(args, name)), None)
    if found:
        raise Refused(f"--record: {found} is not recorded: expected a run without it")
    if args.smp not in (None, 1):
        raise Refused(f"--record: found --smp {args.smp}, expected 1: QEMU records one CPU")
    if args.firmware != "none":
        raise Refused(f"--record: found --firmware {args.firmware}, expected none")
    if args.script is None:
        raise Refused("--record: expected --script, or commands from a pipe: a terminal is not recorded")
    if (args.trace or "").startswith("tcp:"):
        raise Refused(f"--record: found --trace {args.trace}, expected a file")
    folder = pathlib.Path(args.record)
    if folder.exists() and not (folder / "run.json").is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        raise Refused(f"--record {folder}: it is there, and is no recording")


def check_replay(args):
    """Only what a replay can choose is given."""
    for name, word in (*NOT_RECORDED.items(), ("record", "--record"), ("script", "--script"), ("mask", "--mask"), ("set", "--set"),
                       ("append", "--append"), ("smp", "--smp"), ("cpu", "--cpu"), ("file", "--file"), ("program", "--program"),
                       ("loader_conf", "--loader-conf"), ("kernel", "--kernel"), ("initrd", "--initrd")):
        if name not in ("gdb", "qemu_args") and given(args, name):
            raise Refused(f"--replay: found {word}: the recording says it")
    if args.at is not None and (args.at < 0 or args.gdb or args.qmp):
        raise Refused("--at: expected the number of an event (ktrdump -n), and neither --gdb nor --qmp")


def digest(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError as e:
        raise Refused(f"{path}: {e.strerror}") from e


def version(binary):
    try:
        return subprocess.run([binary, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.split("\n")[0]
    except OSError as e:
        raise Refused(f"{binary}: {e.strerror}; run qemu/install-tools") from e


def empty_image():
    """A qcow2 image, version 2, of 1 MiB without contents: header, table of reference counts, the counts, L1 table."""
    head = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 0, 0, 16, 1 << 20, 0, 1, 3 * CLUSTER, CLUSTER, 1, 0, 0)
    counts = struct.pack(">4H", 1, 1, 1, 1)
    return b"".join(part.ljust(CLUSTER, b"\0") for part in (head, struct.pack(">Q", 2 * CLUSTER), counts, b""))


def begin(args, medium, binary):
    """Makes the folder of a recording. medium: QEMU's options for what is booted; returns those that name the copies."""
    folder = pathlib.Path(args.record)
    try:
        if folder.is_dir():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        words = dict(zip(medium[::2], medium[1::2]))
        shutil.copy(words["-initrd"], folder / "initrd")
        (folder / "machines").write_bytes(empty_image())
        run = {"image": str(pathlib.Path(words["-kernel"]).resolve()), "sha256": digest(words["-kernel"]), "words": words["-append"],
               "trace": bool(args.trace), "qemu": version(binary), "options": {name: getattr(args, name) for name in SAVED}}
        (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n")
    except OSError as e:
        raise Refused(f"--record {folder}: {e.strerror or e}") from e


def load(args, binaries):
    """What a recording says, put into the options; {name: value} of run.json. binaries: QEMU by architecture."""
    folder = pathlib.Path(args.replay)
    try:
        run = json.loads((folder / "run.json").read_text())
        options = dict(run["options"])
        whole = all((folder / name).stat().st_size for name in ("log", "machines", "initrd"))
    except OSError as e:
        raise Refused(f"--replay {folder}: {e.filename}: {e.strerror}: expected a folder that --record has made") from e
    except (ValueError, KeyError, TypeError) as e:
        raise Refused(f"--replay {folder}: run.json is damaged: expected a folder that --record has made") from e
    if not whole:
        raise Refused(f"--replay {folder}: the recording is empty: expected one that has ended")
    if digest(run["image"]) != run["sha256"]:
        raise Refused(f"--replay {folder}: {run['image']} is another kernel than the recorded one: build that again, or record again")
    found = version(binaries[options["arch"]])
    if found != run["qemu"]:
        raise Refused(f"--replay {folder}: found {found}, expected {run['qemu']}, which has recorded it")
    if args.trace and not run["trace"]:
        raise Refused(f"--replay {folder}: --trace: the recorded run had none")
    for name, value in options.items():
        if name != "timeout" or args.timeout is None:
            setattr(args, name, value)
    return run


def end(args):
    """After the recorded run: its trace stays with it, by which events are known by what they say."""
    if args.trace:
        shutil.copy(args.trace, pathlib.Path(args.record) / "trace")


def debug(args, run):
    """Becomes gdb, in the recorded run."""
    gdb = shutil.which("gdb-multiarch") or shutil.which("gdb")
    if gdb is None:
        raise Refused("--at: no gdb; run qemu/install-tools test")
    here = pathlib.Path(__file__).resolve().parent
    kernel = run["image"].removesuffix(".img")
    folder = pathlib.Path(args.replay).resolve()
    os.chdir(here.parent)  # the files of the sources have names from there
    words = ["set pagination off", "set confirm off", f"kestrel replay {shlex.quote(str(folder))}", f"kestrel at {args.at}"]
    os.execv(gdb, [gdb, "-q", "-nx", "-x", here / "gdb" / "kestrel.py", *(part for word in words for part in ("-ex", word)), kernel])


def medium(args, run):
    """QEMU's options for what is booted again."""
    return ["-kernel", run["image"], "-initrd", f"{args.replay}/initrd", "-append", run["words"]]


def options(folder, mode, arch):
    """QEMU's options for a recording (mode record), or a replay. QEMU 7.2 cannot go back to a machine whose vapic is on:
    loading it waits for the CPU, which waits for the load."""
    name = str(folder).replace(",", ",,")
    return ["-icount", f"shift=0,sleep=off,rr={mode},rrfile={name}/log,rrsnapshot=init", "-drive", f"file={name}/machines,if=none,id=rr",
            *(["-global", "apic.vapic=off"] if arch == "x86_64" else [])]
