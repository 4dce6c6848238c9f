#!/usr/bin/python3
"""test_badinput.py - bad input is reported with what was expected, and the machine goes on."""
import contextlib
import io
import random
import socket
import threading

from console import DB, db, ended, guest, prompt, shell, stopped_by_request
import harness
from harness import (DEADLINE_S, FIRMWARE, MACHINE, WHOLE, Deadline, check, check_eq, check_match, ktr_stats, ktrdump, main,
                     portable_test as test, scratch_file, times, wait_for)


def boot(script, options=(), **how):
    """The machine goes on: so does its script here."""
    return harness.boot(script, options=["--lenient", *options], **how)


SENTENCES = [
    (r'debug.ktr.mask="SCHD"', r'^loader\.conf:1: debug\.ktr\.mask: no class "SCHD"; did you mean SCHED\?'),
    (r'debug.ktr.mask="PROC', r'^loader\.conf:1: .*expected a closing "'),
    (r'nonsense', r'^loader\.conf:1: found "nonsense", expected name="value"'),
    (r'foo.bar="1"', r'^loader\.conf:1: foo\.bar: no such parameter'),
    (r'debug.ktr.maks="PROC"', r'^loader\.conf:1: debug\.ktr\.maks: no such parameter; did you mean debug\.ktr\.mask\?'),
    (r'debug.ktr.entries="zz"', r'^loader\.conf:1: debug\.ktr\.entries: found "zz", expected a number from 4 to \d+'),
    (r'debug.ktr.entries="2"', r'^loader\.conf:1: debug\.ktr\.entries: .*4 to \d+'),
    (r'debug.ktr.entries="99999999999999999999"', r'^loader\.conf:1: debug\.ktr\.entries: .*expected 4 to \d+'),
    (r'debug.ktr.verbose="-1"', r'^loader\.conf:1: debug\.ktr\.verbose: .*0 to 2'),
    (r'debug.ktr.cpumask="3-1"', r'^loader\.conf:1: debug\.ktr\.cpumask: .*expected'),
    (r'kern.hz="1000"', r'^loader\.conf:1: kern\.hz: .*read-only'),
    (r'debug.ktr.mask="PROC" trailing', r'^loader\.conf:1: .*expected nothing but a # comment'),
    (r'="value"', r'^loader\.conf:1: .*expected name="value"'),
]


def still_works(run):
    """After the bad input, the boot went on as usual."""
    run.expect(5)
    check_match(r"^alive NONE$", run.out, "the script's output")


SCRIPT = "echo alive $(sysctl -n debug.ktr.mask)\nexit 5\n"


@test("each bad line of loader.conf gets a message with file and line, and the boot goes on")
def loader_conf_sentences():
    conf = scratch_file(".conf")
    for line, pattern in SENTENCES:
        conf.write_text(line + "\n")
        run = boot(SCRIPT, options=["--loader-conf", str(conf)])
        still_works(run)
        check_match(pattern, run.out, f"message for {line}")


@test("the same for bad words on the command line")
def command_line():
    for words, pattern in (
            ("debug.ktr.mask=SCHD", r'^command line: debug\.ktr\.mask: no class "SCHD"; did you mean SCHED\?'),
            ("noequals", r"^command line: noequals: no such parameter"),
            ("debug.ktr.entries=1e3", r'^command line: debug\.ktr\.entries: found "1e3", expected a number'),
            ('debug.ktr.mask="PROC', r"^command line: .*expected a closing quote"),
            ("=5", r"^command line: .*expected name=value"),
            ("debug.ktr.mask", r"^command line: debug\.ktr\.mask: no value, expected debug\.ktr\.mask=value")):
        run = boot(SCRIPT, options=["--append", words])
        still_works(run)
        check_match(pattern, run.out, f"message for {words}")


@test("line numbers count every line, and about ten complaints are printed at most")
def line_numbers():
    conf = scratch_file(".conf")
    conf.write_text("# one\n\n" + "bad line\n" * 30 + 'debug.ktr.entries="512"\n')
    run = boot("sysctl -n debug.ktr.entries\n", options=["--loader-conf", str(conf)]).expect()
    lines = [int(line.split(":")[1]) for line in run.out.splitlines() if line.startswith("loader.conf:") and "found" in line]
    check(3 <= len(lines) <= 12, f"{len(lines)} complaints printed, expected about 10")
    check_eq(lines, list(range(3, 3 + len(lines))), "line numbers")
    check_match(r"^loader\.conf: \d+ more complaints$", run.out, "the count of the others")
    check_eq(run.out.splitlines()[-1], "512", "the good line after the bad ones")


@test("the boot survives ten files loader.conf of random bytes")
def random_conf():
    rng = random.Random(1)
    conf = scratch_file(".conf")
    for n in range(10):
        conf.write_bytes(rng.randbytes(rng.choice((1, 100, 4096, 100000))))
        still_works(boot(SCRIPT, options=["--loader-conf", str(conf)], firmware=FIRMWARE[0] if n == 9 else "none"))


@test("a command line as long as the loader permits is read completely: its last word counts")
def long_command_line():
    for firmware in FIRMWARE:
        if firmware == "uefi" and not WHOLE:
            continue  # GRUB passes on as many characters, by the same lines of grub.cfg
        length = MACHINE.words_max[firmware] - 200
        words = " ".join(f"word{i}=x" for i in range(length // 8))[:length].rpartition(" ")[0]
        run = boot("sysctl -n debug.ktr.entries\n", firmware=firmware,
                   options=["--append", words + " debug.ktr.entries=256"]).expect()
        check_match(r"^command line: word0: no such parameter", run.out, "the first complaint")
        check_match(r"^command line: \d+ more complaints$", run.out, "the count of the others")
        check_eq(run.out.splitlines()[-1], "256", f"debug.ktr.entries ({firmware})")


@test("qemu/boot refuses a longer command line, on which loaders fail, and says what to do instead")
def too_long_command_line():
    run = boot("true\n", options=["--append", "x" * 100000]).expect(2)
    check_match(r"expected at most \d+ .*--loader-conf FILE", run.err, "the message")


@test("a loader.conf of a megabyte is read completely")
def long_loader_conf():
    conf = scratch_file(".conf")
    lines = [f'word{i}="x"' for i in range(90000)]
    conf.write_text("\n".join(lines) + '\ndebug.ktr.entries="256"\n')
    check(conf.stat().st_size > 1 << 20, f"only {conf.stat().st_size} bytes")
    run = boot("sysctl -n debug.ktr.entries\n", options=["--loader-conf", str(conf)]).expect()
    check_match(r"^loader\.conf: 8\d{4} more complaints$", run.out, "the count of the complaints not printed")
    check_eq(run.out.splitlines()[-1], "256", "debug.ktr.entries")


@test("settings that loader.conf repeats thousands of times leave room for the command line's")
def repeated_settings():
    conf = scratch_file(".conf")
    conf.write_text('debug.ktr.entries="64"\n' * 3000 + f'init.script="{"x" * 1000}"\n' * 30)
    run = boot("sysctl -n debug.ktr.entries\n", sets=["debug.ktr.entries=512"],
               options=["--loader-conf", str(conf)]).expect()
    check_eq(run.out.split(), ["512"], "debug.ktr.entries, and nothing said")


@test("sysctl: unknown, read-only, ill-typed and forbidden settings get status 1 and a message each")
def sysctl_errors():
    cases = [
        ("sysctl no.such.name", "no such sysctl"),
        ("sysctl no.such.name=1", r"no such|No such"),
        ("sysctl kern.hz=50", "read-only"),
        ("sysctl debug.ktr.mask=SCHD", 'no class "SCHD"; did you mean SCHED'),
        ("sysctl debug.ktr.entries=many", 'found "many", expected a number'),
        ("sysctl debug.ktr.entries=3", r"4 to \d+"),
        ("sysctl debug.ktr.verbose=3", r"0 to 2"),
        ("sysctl debug.ktr.cpumask=x", "expected"),
        ("sysctl debug.ktr.on=nosuchthing_*", "nothing matches \"nosuchthing_"),
        ("su 7 sysctl debug.ktr.mask=SCHED", "user 7 may not set it, expected CAP_SYS_ADMIN"),
        ("su 7 sysctl no.such.name", "no such sysctl"),
        ("su 7 cat /dev/ktr", "not permitted"),
        ("su 7 poweroff 1", "not permitted"),
        ("su 7 reboot", "not permitted"),
    ]
    script = "".join(f"echo case {n}\n{command}\necho status $?\n" for n, (command, _) in enumerate(cases))
    run = boot(script + "su 7 sysctl -n hw.ncpu\necho status $?\n").expect()
    parts = run.out.split("case ")[1:]
    check_eq(len(parts), len(cases), "cases that ran")
    for (command, pattern), part in zip(cases, parts):
        check_match(pattern, part, f"message of `{command}`")
        check_match(r"^status 1$", part, f"status of `{command}`")
    check_match(r"^1\nstatus 0$", parts[-1], "reading as another user")


@test("debug.ktr.entries beyond memory: ENOMEM, the old ring stays and nothing is lost")
def entries_beyond_memory():
    script = """
sysctl debug.ktr.mask=PROC
load fork -n 5
sysctl -n debug.ktr.entries
sysctl debug.ktr.entries=16777216
echo status $?
sysctl -n debug.ktr.entries
sysctl debug.ktr.mask=NONE
sysctl debug.ktr.stats
ktrdump -c | grep -c 'fork: '
"""
    run = boot(script, smp=4, mem="128M").expect()
    check_match(r"entries: no memory for 4 CPUs times 16777216 entries", run.out, "the message")
    check_match(r"^status 1$", run.out, "status")
    sizes = [line for line in run.out.splitlines() if line.isdigit()]
    check_eq(sizes[0], sizes[1], "debug.ktr.entries before and after")
    for cpu, s in ktr_stats(run.out).items():
        check_eq((s["resident"], s["overwritten"]), (s["recorded"], 0), f"resident and overwritten of cpu {cpu}")
    check(int(sizes[2]) >= 5, f"{sizes[2]} forks in the ring, expected 5 of load at least")


@test("an alq_file that cannot be opened: an error, and tracing goes on in the ring")
def alq_file():
    script = """
sysctl debug.ktr.mask=PROC
sysctl debug.ktr.alq_file=/no/such/file
echo status $?
sysctl debug.ktr.alq_enable=1
echo status $?
load fork -n 3
ktrdump -c | grep -c 'fork: '
"""
    run = boot(script).expect()
    check_match(r"alq_file: cannot open /no/such/file", run.out, "message of alq_file")
    check_match(r"alq_enable: /dev/ttyS1: this machine has no second serial line", run.out, "message of alq_enable")
    check_eq([line for line in run.out.splitlines() if line.startswith("status")], ["status 1"] * 2, "statuses")
    check(int(run.out.splitlines()[-1]) >= 3, "the ring does not hold the forks")


@test("tracing to a missing second serial port is refused at boot too, once, and goes on in the rings")
def no_second_port():
    run = boot("load fork -n 3\nktrdump -q | grep -c 'fork: '\nsysctl debug.ktr.mask=NONE\n" + SCRIPT,
               sets=["debug.ktr.alq_enable=1"], mask="PROC")
    still_works(run)
    message = "alq_enable: /dev/ttyS1: this machine has no second serial line"
    check_eq(run.out.count(message), 1, f"times that the console says `{message}`")
    check_eq(run.out.count("/dev/ttyS1"), 1, "times that the console mentions the line at all")
    check(int(check_match(r"^(\d+)$", run.out, "a count of forks").group(1)) >= 3, "the forks are not in the ring")


# The lines: the function that tries one, and how many system calls fill a socket at its other end, which holds 200 KiB, but not
# many pieces of a byte each.
TRIES = {"virtio": ("vport_send", 60000), "serial": ("uart_write_some", 3000)}


@contextlib.contextmanager
def slow_line(line):
    """A listening socket for the trace's line, virtio or serial, and the options for QEMU. Nobody reads, so it fills up soon."""
    path = str(scratch_file(".sock"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        yield listener, ["--", "-chardev", f"socket,id=trace,path={path}", *MACHINE.trace_device[line]]


@test("a reader of the line that is slow or gone never stops the guest; loss is counted")
def slow_reader():
    for line in TRIES:
        slow_reader_of(line)


def slow_reader_of(line):
    with slow_line(line) as (_, words):
        run = boot(f"load syscall -n {TRIES[line][1]}\nload mix -n 5\nsysctl debug.ktr.stats\nexit 5\n", smp=2,
                   sets=["debug.ktr.entries=256", "debug.ktr.alq_enable=1"], mask="SYSC,SCHED", options=words)
    run.expect(5)
    check_match(r"^load mix: n=5 jobs=1 ok", run.out, "the workload")
    stats = ktr_stats(run.out)
    check(sum(s["overwritten"] for s in stats.values()) > 0, f"nothing was lost, though nobody read: {stats}")
    for cpu, s in stats.items():
        check_eq(s["delivered"] + s["resident"] + s["overwritten"], s["recorded"], f"the sum of cpu {cpu}")


def stopped_at(c, function):
    """Waits for the breakpoint at a function. Returns the CPU that hit it."""
    c.expect(rf"on cpu (\d), at {function}\+0 ")
    cpu = int(c.match.group(1))
    c.expect(DB)
    return cpu


def line_is_tried(c, cpu, function):
    """Continues until the CPU has tried the line without success, and is about to try again."""
    db(c, "delete all")
    db(c, f"break {function}")
    for _ in range(2):
        c.sendline("continue")
        check_eq(stopped_at(c, function), cpu, "the CPU that tries the line")
    db(c, "delete all")


def other_cpus_stop(c, cpu, times):
    """Continues until CPUs other than the one that ends the flush have entered the debugger so many times."""
    db(c, "break flush_tick")
    deadline = Deadline(DEADLINE_S)
    while times > 0:
        check(deadline.tick() > 0, f"{times} stops by other CPUs than {cpu} are missing")
        c.sendline("continue")
        times -= stopped_at(c, "flush_tick") != cpu
        check_match(r"flush_thread\+", db(c, f"bt cpu {cpu}"), f"bt of cpu {cpu}, which ends the flush")


@test("the debugger, entered by other CPUs while one ends the flush on a slow line, costs the stream nothing")
def stopped_flush():
    for line in times(("virtio",), tuple(TRIES)):
        stopped_flush_on(line)


def stopped_flush_on(name):
    read = bytearray()
    function, calls = TRIES[name]

    def reader(line):
        while data := line.recv(65536):
            read.extend(data)

    with slow_line(name) as (listener, words), guest("--set", "debug.ktr.alq_enable=1", "--mask", "SYSC,SCHED", *words) as c:
        line, _ = listener.accept()
        shell(c, f"load syscall -n {calls}")
        shell(c, "sysctl debug.ktr.mask=NONE")
        stopped_by_request(c)
        db(c, "break flush_end_step")
        c.sendline("continue")
        prompt(c)
        c.logfile_read = io.StringIO()
        c.sendline("sysctl debug.ktr.alq_enable=0")
        ends = stopped_at(c, "flush_end_step")
        line_is_tried(c, ends, function)
        other_cpus_stop(c, ends, 4)
        db(c, "call clock_delay_ns 2000000000")  # twice as long as the line may be silent
        line_is_tried(c, ends, function)
        thread = threading.Thread(target=reader, args=(line,), daemon=True)
        thread.start()
        wait_for(lambda: read, "byte over the line")  # QEMU still holds some
        c.sendline("continue")
        prompt(c)
        check("did not take" not in c.logfile_read.getvalue(), f"the line was given up:\n{c.before}")
        c.sendline("poweroff 5")
        check_eq(ended(c), 5, "exit status")
        thread.join(60)
    path = scratch_file(".ktr")
    path.write_bytes(read)
    status, out, err = ktrdump("report", "events", "-i", path)
    check_eq((status, err), (0, ""), "status and messages of ktrdump")
    events, lost = check_match(r"^trace .* events (\d+), lost (\d+) ", out, "ktrdump report events").groups()
    check(int(events) + int(lost) >= 6000, f"{events} events and {lost} lost, expected 6000 of load at least")


if __name__ == "__main__":
    main()
