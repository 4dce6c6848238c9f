#!/usr/bin/python3
"""test_replay.py - a recorded run runs again, exactly; gdb stands where an event is recorded, and goes back from there."""
import argparse
import json
import re
import signal
import subprocess
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import disks  # noqa: E402
from console import gdb  # noqa: E402
from harness import ARCH, BOOT, DEADLINE_S, BUILD, ROOT, boot, check, check_eq, check_match, main, portable_test, scratch_file, test  # noqa: E402

sys.path.insert(0, str(ROOT / "qemu"))
import record  # noqa: E402

SCRIPT = "load fork -n 2\nls /bin\nload syscall -n 1000\n"


def recorded(script=SCRIPT, mask="SCHED,SYSC,PROC", status=0, options=()):
    """The folder of a recording, and its run."""
    folder = scratch_file(".rr")
    return folder, boot(script, smp=1, mask=mask, trace=True, options=["--record", folder, *options]).expect(status)


def replay(folder, *options):
    return subprocess.run([BOOT, "--replay", folder, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", check=False)


# What gdb says of where it stands: the event's number, and its trace point.
STANDS = """python
import gdb
head = "pcpus[0]->md.ktr_ring->head / 64"
before, site = int(gdb.parse_and_eval(head)), gdb.newest_frame()
while not any(s.name == "site" for s in site.block()):
    site = site.older()
site = site.read_var("site").dereference()
said = int(site["line"]), site["fmt"].string()
print("stands", before, *said)
""".strip()


# How many instructions QEMU executes, and how often it loads a saved machine, for each command from now on.
COUNTS = """python
import kestrel_replay
run, seek, go, told = kestrel_replay.RUN, kestrel_replay.RUN.seek, kestrel_replay.RUN.go, [0, 0]
def counted(instruction):
    saved = run.loads(instruction)
    told[0] += instruction - (run.now() if saved is None else saved)
    told[1] += saved is not None
    seek(instruction)
def tell(n, near=None):
    told[:] = [0, 0]
    go(n, near)
    print("step" if near else "jump", *told)
run.seek, run.go = counted, tell
""".strip()
STEP_INSTRUCTIONS, STEP_LOADS = 10_000_000, 12  # at most, to a neighbour: one or two seconds


# The next command to QEMU is interrupted, as by ^C.
INTERRUPTS = """python
import kestrel_replay
def interrupt():
    raise KeyboardInterrupt
kestrel_replay.RUN.monitor.answer = interrupt
""".strip()


# Goes to the first of some events at which the machine is not saved; from there on, back, and on again.
NOT_SAVED = """python
import kestrel_replay
run = kestrel_replay.RUN
for n in {}:
    run.leave()
    run.seek(run.find(n))
    at = run.now()
    run.save(at)
    if at not in run.saved:
        print("not saved at", n)
        break
for there in (at + 20000, at + 1, at + 20000):
    run.seek(there)
    print("stands after", run.now() - at)
""".strip()


def stands(path):
    path.write_text(STANDS + "\nend\n")
    return f"source {path}"


@test("a run is replayed exactly, and gdb goes to events of it, to their neighbours and to the last write of a word")
def replayed():
    folder, run = recorded()
    again = scratch_file(".ktr")
    done = replay(folder, "--trace", again)
    check_eq((done.returncode, done.stdout, done.stderr), (0, run.out, ""), "status, console and messages of the replay")
    check(again.read_bytes() == run.trace.read_bytes(), f"the trace of the replay, {again}, is not that of the run, {run.trace}")
    events, here = {e["seq"]: e for e in run.events}, stands(scratch_file(".gdb"))
    interrupts = scratch_file(".gdb")
    interrupts.write_text(INTERRUPTS + "\nend\n")
    counts = scratch_file(".gdb")
    counts.write_text(COUNTS + "\nend\n")
    numbers = sorted(events)
    first, last, middle = numbers[0], numbers[-1], numbers[len(numbers) * 2 // 3]  # among calls that have no parts
    fork = max(n for n, e in events.items() if n < middle and e["text"].startswith("fork: "))
    call = min(n for n, e in events.items() if n > fork and e["text"].startswith("syscall wait4:"))
    tour = [(f"kestrel at {middle}", middle), ("kestrel previous-event", middle - 1), ("kestrel previous-event", middle - 2),
            ("kestrel next-event", middle - 1), (f"kestrel at {last}", last), (f"kestrel at {first}", first), (f"kestrel at {middle}", middle),
            ("kestrel previous-event fork", fork), ("kestrel next-event 'syscall wait4:*'", call)]
    out = gdb(f"kestrel replay {folder}", f"source {counts}", *(word for command, n in tour for word in (command, here, *(["kestrel next-event"] if n == last else []))), "stepi", "printf \"then %d\\n\", pcpus[0]->md.ktr_ring->head / 64", "reverse-stepi", "watch pcpus[0]->md.ktr_ring->head",
              "reverse-continue", "delete", "kestrel next-event", here, "kestrel previous-event nosuch",
              f"python kestrel_replay.RUN.texts.pop({first + 1})", f"kestrel at {first + 1}", "kestrel at x", f"source {interrupts}", f"kestrel at {first}",
              f"python kestrel_replay.RUN.rows[{first}]['line'] += 1", f"kestrel at {first}", f"python kestrel_replay.RUN.texts = {{{first}: 'the last one'}}",
              f"kestrel at {fork}", here)
    found = re.findall(r"^stands (\d+) (\d+) (.*)$", out, re.M)
    # The last write of the head before event `call` made the event before; the next one is `call` again.
    check_eq([(int(n), int(line), fmt) for n, line, fmt in found][:-2],
             [(n, events[n]["line"], events[n]["fmt"]) for _, n in tour], f"where gdb stands in:\n{out}")
    steps = [(int(n), int(loads)) for n, loads in re.findall(r"^step (\d+) (\d+)$", out, re.M)]
    check_eq((len(steps), [s for s in steps if s[0] > STEP_INSTRUCTIONS or s[1] > STEP_LOADS]), (4, []), "steps to neighbours, and those that execute too much")
    check_match(rf"^then {call + 1}$", out, "the number of events after the next instruction")
    check_eq(int(found[-1][0]), fork, "where gdb stands at an event that came too late for the trace")
    check_eq(int(found[-2][0]), call, "where gdb stands after it has gone back to the last write, and on to the next event")
    check_match(rf"^event {fork} at instruction \d+: {re.escape(events[fork]['text'])}$", out, "what gdb says of the event")
    check_match(r"^no earlier event that matches nosuch$", out, "a glob that matches nothing")
    check_match(r"^no later event$", out, "after the last event")
    check_match(rf"^event {first + 1} is not in the trace, which has {first} to {last} ", out, "an event that is not there")
    check_match(rf"^event {fork} at instruction \d+$", out, "an event whose text is not known")
    check_match(r"^kestrel at: expected the number of an event", out, "no number")
    check_match(rf"(?s)Quit.*event {first} at instruction", out, "after an interrupted command")
    check_match(rf"^event {first} is .* of line {events[first]['line']} here, and .* of line {events[first]['line'] + 1} in the trace: it is not the recorded run$",
                out, "a trace that is another")


# QEMU is killed when it is told to go to an instruction.
KILLS = """python
import os, signal, kestrel_replay
run = kestrel_replay.RUN
ask = run.monitor.command
def kill(line):
    if line.startswith("replay_seek"):
        os.kill(run.child.pid, signal.SIGKILL)
    return ask(line)
run.monitor.command = kill
""".strip()


def at(folder):
    """gdb starts at an event, whose trace nobody asked for. That QEMU dies is not the end of the run."""
    (folder / "trace").unlink()
    kills = scratch_file(".gdb")
    kills.write_text(KILLS + "\nend\n")
    done = subprocess.run([BOOT, "--replay", folder, "--at", "3"], input=f"bt\nsource {kills}\nkestrel at 1000000\nkestrel at 1000000\nkestrel next-event x\n",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check_match(r"^event 3 at instruction \d+$", done.stdout, "--at")
    check_match(r"#0 .*ktr_record", done.stdout, "the innermost frame")
    check_match(r"QEMU has failed: qemu/boot has ended with status -9", done.stdout, "QEMU is killed")
    check_match(r"event 1000000 is not recorded: the run has events 0 to \d+", done.stdout, "an event after the end")
    check_match(r"the run was recorded without --trace", done.stdout, "a glob without a trace")
    machines = (folder / "machines").stat().st_size
    check(machines < 300 << 20, f"the saved machines take {machines} bytes")


def refusal(folder, trace=None):
    """Why a folder is not replayed."""
    try:
        record.load(argparse.Namespace(replay=folder, trace=trace, timeout=None), {arch: f"qemu-system-{arch}" for arch in ("x86_64", "aarch64")})
    except record.Refused as e:
        return str(e)
    return "it is replayed"


def damaged(folder):
    """What is another kernel, or no recording, is refused."""
    said = json.loads((folder / "run.json").read_text())
    changes = [({"digests": {**said["digests"], name: "0"}}, f"{name} is not the recorded one") for name in said["digests"]]
    changes += [({"qemu": "QEMU 1"}, "expected QEMU 1, which has recorded it"), ({"status": None}, "the recording has no end")]
    changes += [({"options": options}, "run.json is damaged") for options in (None, {}, {**said["options"], "arch": "pdp11"})]
    for change, why in changes:
        (folder / "run.json").write_text(json.dumps({**said, **change}))
        check_match(f"^--replay {folder}: .*{why}", refusal(folder), f"message with {change}")
    (folder / "run.json").write_text(json.dumps({**said, "machine": ["-m 1G"]}))
    done = replay(folder)
    check_eq((done.returncode, done.stdout), (2, ""), "status and output with another machine")
    check_match("found a machine with .*, expected -m 1G", done.stderr, "message with another machine")
    (folder / "run.json").write_text(json.dumps({**said, "trace": False}))
    check_match("--trace: the recorded run had none", refusal(folder, "x"), "--trace")
    (folder / "log").write_bytes(bytes(4) + (folder / "log").read_bytes()[4:])
    check_match("the recording has no end: expected one whose run has ended", refusal(folder), "a log that QEMU has not completed")
    (folder / "log").unlink()
    check_match("the recording has no end", refusal(folder), "without a log")
    before = (folder / "kernel").read_bytes()
    done = subprocess.run([BOOT, "--arch", ARCH, "--record", folder, "--kernel", folder / "kernel", "--script", "/dev/null"], capture_output=True, text=True,
                          timeout=DEADLINE_S, check=False)
    check_eq(done.returncode, 2, "status of a recording over its own kernel")
    check_match("is in it, and would be replaced: expected another folder", done.stderr, "message")
    check_eq((folder / "kernel").read_bytes(), before, "the kernel of the recording")


@portable_test("a run that is stopped from outside is replayed until then")
def stopped():
    folder, script = scratch_file(".rr"), scratch_file("")
    script.write_text("echo here; while :; do :; done\n")
    with subprocess.Popen([BOOT, "--arch", ARCH, "--record", folder, "--script", script], stdout=subprocess.PIPE, text=True) as p:
        check_eq(p.stdout.readline(), "here\n", "console")
        p.send_signal(signal.SIGTERM)
    done = replay(folder)
    check_eq((done.returncode, done.stdout), (125, "here\n"), f"status and console of the replay; {done.stderr}")


def death(name, *words):
    """Back from the panic to who asked for it."""
    folder, run = recorded(f"sysctl debug.kdb.{name}=1\n", status=101)
    panic = next(e for e in run.events if e["text"].startswith("panic: "))
    out = gdb(f"kestrel replay {folder}", f"kestrel at {panic['seq']}", *words, *([f"kestrel at {panic['seq']}"] if words else []), f"break death_{name}",
              "reverse-continue", "delete", "break sysctl_set_text", "reverse-continue", "printf \"asked for %s\\n\", name")
    check_match(rf"^event {panic['seq']} at instruction \d+: {re.escape(panic['text'])}$", out, f"{name}: the panic")
    check_match(rf"^Breakpoint \d+(\.\d+)?, death_{name} ", out, f"{name}: back to where it dies")
    check_match(rf"^asked for debug\.kdb\.{name}$", out, f"{name}: who asked for it")
    return folder, out


@test("a page fault is walked back from the panic to who asked for it, and to who wrote the wrong address")
def trap():
    _, out = death("trap", "frame function death_trap", "print nowhere", "watch -l nowhere", "reverse-continue", "reverse-step", "delete")
    check_match(r"^\$1 = .* 0x10$", out, "the wrong address")
    check_match(r"^\d+\s+volatile .*nowhere = ", out, "who wrote it")


@portable_test("the other deaths on request are walked back to who asked for them; a QEMU that dies is not the end of a run; what has changed is refused")
def deaths():
    death("panic")
    folder, _ = death("stack_overflow")
    at(folder)
    damaged(folder)


DISK = """cat /mnt/before; sort -n /mnt/lines > /mnt/sorted; sync; md5sum < /mnt/sorted
umount /mnt; mount -t ext2 /dev/vda /mnt; cat /mnt/sorted | md5sum
"""


@portable_test("a run with a disk is replayed exactly when the disk is gone, and gdb goes back in it; recording leaves the disk as it is")
def disk():
    files, folder, again = scratch_file(""), scratch_file(".rr"), scratch_file(".ktr")
    files.mkdir()
    (files / "before").write_text("from the disk\n")
    (files / "lines").write_text("".join(f"{n}\n" for n in range(5000, 0, -1)))
    image = disks.make(folder=files)
    kept = image.read_bytes()
    run = boot(DISK, smp=1, mask="SYSC,PROC", trace=True, options=["--record", str(folder), "--disk", str(image)]).expect()
    said = run.out.splitlines()
    check_eq((said[0], said[1] == said[2]), ("from the disk", True), f"a file of the disk, and two readings of another, in {said}")
    check(image.read_bytes() == kept, "the disk has changed")
    image.unlink()
    done = replay(folder, "--trace", again)
    check_eq((done.returncode, done.stdout, done.stderr), (0, run.out, ""), "status, console and messages of the replay")
    check(again.read_bytes() == run.trace.read_bytes(), f"the trace of the replay, {again}, is not that of the run, {run.trace}")
    events = {e["seq"]: e["text"] for e in run.events}
    last = max(n for n, text in events.items() if text.startswith("syscall mount"))
    before = max(n for n, text in events.items() if n < last and text.startswith("syscall sync"))
    for _ in range(2):  # the second time there are saved machines, and the disk as it was then
        out = gdb(f"kestrel replay {folder}", f"kestrel at {last}", "kestrel previous-event 'syscall sync*'", f"kestrel at {last}")
        check_eq([int(n) for n in re.findall(r"^event (\d+) at instruction \d+: syscall", out, re.M)], [last, before, last], f"events in:\n{out}")
    (folder / "disk").write_bytes(kept[:-1] + b"x")
    check_match("disk is not the recorded one", refusal(folder), "another disk")
    (folder / "disk").write_bytes(kept)
    (folder / "disk.now").unlink()
    check_match("no file disk.now in it: record again", refusal(folder), "without what was written")


@portable_test("a machine that asks its disk is not saved: one that is loaded goes on to the end")
def asks_disk():
    folder, image, script = scratch_file(".rr"), disks.make("1M"), scratch_file(".gdb")
    run = boot("for n in 1 2 3 4; do echo $n > /mnt/f$n; sync; done\n", smp=1, mask="PROC,SCHED,GEOM", trace=True,
               options=["--record", folder, "--disk", image]).expect()
    waits = [e["seq"] for e in run.events if 'state:"sleep"' in e["text"] and 'wmesg:"biowait"' in e["text"]]
    check(len(waits) >= 4, f"expected a wait for each sync at least, found {len(waits)} of {len(run.events)} events")
    script.write_text(NOT_SAVED.format(waits[-4:]) + "\nend\n")
    out = gdb(f"kestrel replay {folder}", f"source {script}")
    check_match(r"^not saved at \d+", out, "a machine that waits for a request")
    stood = re.findall(r"^stands after (\d+)", out, re.M)
    check_eq(stood, ["20000", "1", "20000"], f"instructions after it, in:\n{out}")


@portable_test("what QEMU does not record is refused by name")
def refused():
    script = scratch_file("")
    script.write_text("true\n")
    given = ["--arch", ARCH, "--record", scratch_file(""), "--script", script]
    for options, why in ((["--smp", "2"], "found --smp 2, expected 1"), (["--net"], "--net is not recorded"),
                         (["--reboot"], "--reboot is not recorded"), (["--gdb"], "--gdb is not recorded"), (["--qmp", "q"], "--qmp is not recorded"), (["--trace", "tcp::5555"], "expected a file"),
                         (["--machine", "pc"], "--machine is not recorded"), (["--", "-device", "x"], "-- is not recorded")):
        done = subprocess.run([BOOT, *given, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        check_eq((done.returncode, done.stdout), (2, ""), f"status and output with {options}")
        check(why in done.stderr, f"{options}: found {done.stderr!r}, expected {why!r}")
    foreign = scratch_file("")
    foreign.mkdir()
    (foreign / "run.json").write_text("{}")
    for options, why in ((["--record", ROOT / "doc", "--script", script], "it is there, and is no recording"),
                         (["--record", foreign, "--script", script], "it is there, and is no recording"), (["--replay", foreign], "run.json is damaged"),
                         (["--record", "r", "--script", script, "--trace", "r/trace"], "expected a file outside"), (["--replay", "/nosuch"], "/nosuch/run.json: No such file"),
                         (["--replay", foreign, "--trace", foreign / "log"], "expected a file outside"),
                         *((["--replay", "x", *words], f"found {words[0]}: the recording says it")
                           for words in (["--mem", "64M"], ["--arch", ARCH], ["--firmware", "none"], ["--lenient"])),
                         (["--replay", "x", "--at", "3", "--trace", "t"], "--at: expected the number of an event"), (["--record", "r", "--timeout", "9"], "expected --script"),
                         (["--at", "3"], "expected --replay"), (["--replay", "x", "--mask", "PROC"], "found --mask: the recording says it"),
                         (["--replay", "x", "--record", "y"], "found --record"), (["--replay", "x", "--at", "-1"], "expected the number of an event")):
        done = subprocess.run([BOOT, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        check_eq((done.returncode, done.stdout), (2, ""), f"status and output with {options}")
        check(why in done.stderr, f"{options}: found {done.stderr!r}, expected {why!r}")
    check((foreign / "run.json").exists(), "a file that is not of a recording is gone")
    out = gdb("kestrel at 3", "kestrel replay /nosuch", "kestrel next-event", kernel=BUILD / "kestrel")
    check_eq(len(re.findall("no recorded run: kestrel replay FOLDER", out)), 2, f"commands without a run in {out}")
    check_match("/nosuch/run.json: No such file", out, "no folder, in gdb")


if __name__ == "__main__":
    main()
