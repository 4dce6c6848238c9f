"""record.py - what qemu/boot's --record keeps, so that --replay can run the same again: QEMU's record and replay.

A recording is a folder:
  log        what came from outside, and after how many instructions (QEMU's rrfile)
  machines   the machine at some instants, which QEMU goes back to (a qcow2 image; the first is from the start)
  kernel     the kernel; kernel.img is its image, if QEMU loads that
  initrd     the initial RAM disk
  disk       the disk of --disk as it was at the start
  disk.now   what has been written to it since (a qcow2 image over it, with its state at each of the machines)
  run.json   the machine, the kernel's command line, the digests of these files, and how the run ended
  trace      what --trace wrote
  events.json  what gdb has found of where events are (qemu/gdb/kestrel_replay.py)
"""
import json
import os
import pathlib
import shlex
import shutil
import struct
import subprocess

CLUSTER = 65536
FILES = ("log", "machines", "kernel", "kernel.img", "initrd", "disk", "disk.now", "run.json", "trace", "events.json")
# What a recording does not have. QEMU records the input of serial lines, the clock and a disk. Of a network card, too, but QEMU 7.2
# gives packets to a replayed machine some instructions earlier or later, or waits for them without end.
# Nor what a folder of the host has.
NOT_RECORDED = {"net": "--net", "share": "--share", "root": "--root", "iso": "--iso", "reboot": "--reboot", "console_socket": "--console-socket", "gdb": "--gdb",
                "qmp": "--qmp", "machine": "--machine", "qemu_args": "--"}
AT_REPLAY = ("gdb", "qmp", "qemu_args")  # of these, what a replay may have
SAVED = {"arch": str, "cpu": (str, type(None)), "mem": str, "timeout": (int, float, type(None))}
# QEMU's options that make the machine. The others are about files and sockets of one run.
MACHINE = ("-machine", "-bios", "-cpu", "-smp", "-m", "-accel", "-seed", "-rtc", "-serial", "-device", "-semihosting-config", "-global")


class Refused(Exception):
    """Why a run is not recorded, or not replayed."""


def given(args, name):
    """--net may be given without a word."""
    value = getattr(args, name)
    return value is not None if name == "net" else bool(value)


def read(folder):
    """What run.json says. None: it is not one that --record has made."""
    try:
        run = json.loads((folder / "run.json").read_text())
        types = {"words": str, "qemu": str, "trace": bool, "digests": dict, "machine": list, "options": dict}
        good = all(isinstance(run[name], kind) for name, kind in types.items()) and {"kernel", "initrd"} <= set(run["digests"]) <= set(FILES)
        good = good and all(isinstance(run["options"][name], kind) for name, kind in SAVED.items())
    except (ValueError, KeyError, TypeError):
        return None
    return run if good else None


def is_free(folder):
    """May a recording be made there? It is missing or empty, or there is a recording and nothing else."""
    if not os.path.lexists(folder):
        return True
    try:
        names = os.listdir(folder)
        return not names or (all(name in FILES and (folder / name).is_file() for name in names) and read(folder) is not None)
    except OSError:
        return False


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
    if args.trace_line == "virtio":
        raise Refused("--record: found --trace-line virtio, expected serial: QEMU 7.2 does not replay a port of virtio-serial")
    if (args.trace or "").startswith("tcp:"):
        raise Refused(f"--record: found --trace {args.trace}, expected a file")
    folder = pathlib.Path(args.record)
    if not is_free(folder):
        raise Refused(f"--record {folder}: it is there, and is no recording")
    if args.trace and folder.resolve() in pathlib.Path(args.trace).resolve().parents:
        raise Refused(f"--record {folder}: found --trace {args.trace}, expected a file outside: a copy of the trace is kept there")


def check_replay(args):
    """Only what a replay can choose is given."""
    for name, word in (*NOT_RECORDED.items(), ("disk", "--disk"), ("record", "--record"), ("script", "--script"), ("mask", "--mask"), ("set", "--set"),
                       ("append", "--append"), ("smp", "--smp"), ("cpu", "--cpu"), ("mem", "--mem"), ("arch", "--arch"), ("firmware", "--firmware"),
                       ("lenient", "--lenient"), ("file", "--file"), ("program", "--program"), ("loader_conf", "--loader-conf"), ("kernel", "--kernel"),
                       ("initrd", "--initrd"), ("trace_line", "--trace-line")):
        if name not in AT_REPLAY and given(args, name):
            raise Refused(f"--replay: found {word}: the recording says it")
    if args.at is not None and (args.at < 0 or args.gdb or args.qmp or args.trace or args.qemu_args):
        raise Refused("--at: expected the number of an event (ktrdump -n), and none of --gdb, --qmp, --trace and --")
    if args.trace and pathlib.Path(args.replay).resolve() in pathlib.Path(args.trace).resolve().parents:
        raise Refused(f"--replay {args.replay}: found --trace {args.trace}, expected a file outside")


def path_value(path):
    """A path as the value of a QEMU option, where a comma is doubled."""
    return str(path).replace(",", ",,")


def digest(path):
    import hashlib  # it loads a library of megabytes, which a boot without a recording does not need
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError as e:
        raise Refused(f"{path}: {e.strerror}") from e


def machine(qemu):
    """Of QEMU's command line, what makes the machine."""
    return [f"{word} {value}" for word, value in zip(qemu, qemu[1:]) if word in MACHINE]


def version(binary):
    try:
        return subprocess.run([binary, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout.split("\n")[0]
    except OSError as e:
        raise Refused(f"{binary}: {e.strerror}; run qemu/install-tools") from e


def empty_image(size=1 << 20, over=""):
    """A qcow2 image, version 2, without contents: header, table of reference counts, the counts, L1 table. over: the name of a
    raw image in its folder that has what is not in it."""
    kind = struct.pack(">II8sII", 0xe2792aca, 3, b"raw", 0, 0) if over else b""  # an extension of the header: the format of the other
    tables = -(-size // (CLUSTER * CLUSTER // 8))
    if tables > CLUSTER // 8:
        raise Refused(f"--record: found a disk of {size} bytes, expected at most 4 TiB")
    head = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", 2, 72 + len(kind) if over else 0, len(over), 16, size, 0, tables, 3 * CLUSTER, CLUSTER, 1, 0, 0)
    head += kind + over.encode()
    counts = struct.pack(">4H", 1, 1, 1, 1)
    return b"".join(part.ljust(CLUSTER, b"\0") for part in (head, struct.pack(">Q", 2 * CLUSTER), counts, b""))


def begin(args, medium, binary, suffix, disk):
    """Makes the folder of a recording. medium: QEMU's options for what is booted. suffix: of the kernel's image. disk: the file
    of --disk."""
    folder = pathlib.Path(args.record)
    words = dict(zip(medium[::2], medium[1::2]))
    copies = {"initrd": words["-initrd"], "kernel": words["-kernel"].removesuffix(suffix)}
    if suffix:
        copies["kernel.img"] = words["-kernel"]
    if args.disk is not None:
        copies["disk"] = disk
    for source in copies.values():
        if pathlib.Path(source).resolve().parent == folder.resolve():
            raise Refused(f"--record {folder}: {source} is in it, and would be replaced: expected another folder")
    qemu = version(binary)
    try:
        changes = empty_image(pathlib.Path(disk).stat().st_size, "disk") if args.disk is not None else None
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in copies.items():
            shutil.copy(source, folder / name)
        if args.disk is not None:
            (folder / "disk").chmod(0o644)
            (folder / "disk.now").write_bytes(changes)
        (folder / "machines").write_bytes(empty_image())
        run = {"words": words["-append"], "trace": bool(args.trace), "qemu": qemu, "digests": {name: digest(folder / name) for name in copies},
               "machine": [], "options": {name: getattr(args, name) for name in SAVED}}
        keep(folder, run)
    except OSError as e:
        raise Refused(f"--record {folder}: {e.filename or ''}: {e.strerror or e}") from e


def keep(folder, run):
    (folder / "run.json").write_text(json.dumps(run, indent=1) + "\n")


def is_finished(log):
    """Has QEMU ended the log? It writes its version at the start then."""
    try:
        with open(log, "rb") as f:
            return any(f.read(4))
    except OSError:
        return False


def end(args, qemu, status):
    """After the recorded run: how QEMU's command line was, and what status qemu/boot has when it is replayed. The trace stays
    with it, by which events are known by what they say."""
    folder = pathlib.Path(args.record)
    if not is_finished(folder / "log"):
        return
    try:
        run = read(folder)
        run["digests"]["log"] = digest(folder / "log")
        if args.trace:
            shutil.copy(args.trace, folder / "trace")
        keep(folder, {**run, "machine": machine(qemu), "status": status})
    except (OSError, TypeError) as e:
        raise Refused(f"--record {folder}: {e}") from e


def load(args, binaries):
    """What a recording says, put into the options; {name: value} of run.json. binaries: QEMU by architecture."""
    folder = pathlib.Path(args.replay)
    try:
        run = read(folder)
    except OSError as e:
        raise Refused(f"--replay {folder}: {e.filename}: {e.strerror}: expected a folder that --record has made") from e
    if run is None or run["options"]["arch"] not in binaries:
        raise Refused(f"--replay {folder}: run.json is damaged: expected a folder that --record has made")
    if not is_finished(folder / "log") or not isinstance(run.get("status"), int) or "log" not in run["digests"]:
        raise Refused(f"--replay {folder}: the recording has no end: expected one whose run has ended")
    changed = next((name for name in run["digests"] if digest(folder / name) != run["digests"][name]), None)
    if changed:
        raise Refused(f"--replay {folder}: {changed} is not the recorded one: record again")
    if not (folder / "machines").is_file():
        raise Refused(f"--replay {folder}: no file machines in it: record again")
    found = version(binaries[run["options"]["arch"]])
    if found != run["qemu"]:
        raise Refused(f"--replay {folder}: found {found}, expected {run['qemu']}, which has recorded it")
    if args.trace and not run["trace"]:
        raise Refused(f"--replay {folder}: --trace: the recorded run had none")
    if "disk" in run["digests"] and not (folder / "disk.now").is_file():
        raise Refused(f"--replay {folder}: no file disk.now in it: record again")
    for name in SAVED:
        if name != "timeout" or args.timeout is None:
            setattr(args, name, run["options"][name])
    return run


def check_machine(folder, qemu, run):
    """Is the machine the one that was recorded?"""
    found, expected = machine(qemu), run["machine"]
    if found != expected:
        raise Refused(f"--replay {folder}: found a machine with {', '.join(w for w in found if w not in expected) or 'less'}, "
                      f"expected {', '.join(w for w in expected if w not in found) or 'nothing more'}: record again")


def debug(args):
    """Becomes gdb, in the recorded run."""
    gdb = shutil.which("gdb-multiarch") or shutil.which("gdb")
    if gdb is None:
        raise Refused("--at: no gdb; run qemu/install-tools test")
    here = pathlib.Path(__file__).resolve().parent
    folder = pathlib.Path(args.replay).resolve()
    os.chdir(here.parent)  # the files of the sources have names from there
    words = ["set pagination off", "set confirm off", f"kestrel replay {shlex.quote(str(folder))}", f"kestrel at {args.at}"]
    os.execv(gdb, [gdb, "-q", "-nx", "-x", here / "gdb" / "kestrel.py", *(part for word in words for part in ("-ex", word)), folder / "kernel"])


def medium(args, run):
    """QEMU's options for what is booted again."""
    return ["-kernel", f"{args.replay}/{'kernel.img' if 'kernel.img' in run['digests'] else 'kernel'}", "-initrd", f"{args.replay}/initrd", "-append", run["words"]]


def disk(folder):
    """QEMU's options for the disk of a recording."""
    return ["-drive", f"file={path_value(folder)}/disk.now,format=qcow2,if=none,id=changes", "-drive", "driver=blkreplay,if=none,image=changes,id=disk"]


def icount(asks_host):
    """A value of QEMU's -icount. The time of an idle guest leaps to its next timer. Of a guest that asks the host for a disk's
    block, say, it goes as the host's does: otherwise the answer would take seconds of it, and come too late."""
    return f"shift=0,sleep={'on' if asks_host else 'off'}"


def options(folder, mode, arch, disk):
    """QEMU's options for a recording (mode record), or a replay. disk: the machine has one. QEMU 7.2 cannot go back to a machine whose vapic is on:
    loading it waits for the CPU, which waits for the load."""
    name = path_value(folder)
    return ["-icount", f"{icount(disk)},rr={mode},rrfile={name}/log,rrsnapshot=init", "-drive", f"file={name}/machines,if=none,id=rr",
            *(["-global", "apic.vapic=off"] if arch == "x86_64" else [])]
