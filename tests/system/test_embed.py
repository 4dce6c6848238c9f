#!/usr/bin/python3
"""test_embed.py - the log in other kernels: the two files of `make ktr-amalgamation`, what ktr/README.md says to add
to them, and the bare-metal example. Every piece of code of that README is compiled here, and run.
"""
import itertools
import os
import re
import shlex
import shutil
import subprocess

from harness import DEADLINE_S, ROOT, Run, Skipped, check, check_eq, check_match, ktrdump, main, scratch, test
from tracecheck import merged_by_time, timestamps_ascend

KTR = ROOT / "build" / "ktr"
EXAMPLE = ROOT / "ktr" / "examples" / "riscv64-virt"
README = ROOT / "ktr" / "README.md"
HERE = ROOT / "tests" / "system" / "embed"
STRICT = "-std=gnu11 -g -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wundef -Wvla"
# A kernel's flags: no vector registers, not position independent, nothing of a C library.
COMPILERS = {
    "x86_64": "gcc -mgeneral-regs-only -mno-red-zone -mcmodel=kernel -fno-pic -fno-stack-protector",
    "aarch64": "aarch64-linux-gnu-gcc -mgeneral-regs-only -mno-outline-atomics -fno-pic -fno-stack-protector",
    "riscv64": "riscv64-unknown-elf-gcc -march=rv64imac -mabi=lp64 -mcmodel=medany",
}
# Debian's package clang-14 has no program `clang`.
CLANG = next((name for name in ("clang", "clang-14") if shutil.which(name)), "clang-14")
HOSTED = ("gcc", CLANG)  # what compiles the README's code for this machine
REFUSED = {
    "gcc -m32": "64-bit",
    "riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32": "64-bit",
    "aarch64-linux-gnu-gcc -mbig-endian": "little-endian",
}
LIBRARY = {"memcpy", "memset"}  # ktr/README.md says so
LIBGCC = re.compile(r"__(clz|ctz|popcount)[ds]i2")
KERNEL = {"cpus", "cpu_now", "clock_read"}  # embed/kernel.h, by way of the port header
LINKER = re.compile(r"__(start|stop)_ktr_(sites|patch)")
QEMU = "qemu-system-riscv64 -M virt -bios none -display none -monitor none -nodefaults"


def run(command, status=0, data=None, env=None):
    """A program's (stdout, stderr) in bytes; it must end with that status."""
    words = shlex.split(command) if isinstance(command, str) else [str(w) for w in command]
    p = subprocess.run(words, cwd=ROOT, input=data, capture_output=True, timeout=DEADLINE_S, env=env)
    check_eq(p.returncode, status, f"{' '.join(words)}: exit status (stderr: {p.stderr.decode(errors='replace')[-2000:]})")
    return p.stdout, p.stderr


def make(*targets):
    """By the same makefile, but not in the jobs of a make that may have started this."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    run(["make", "-s", *targets], env=env)


_readme = None


def readme():
    """A folder with the README's pieces of code under their names, once."""
    global _readme
    if _readme is None:
        make("ktr-amalgamation")
        found = dict(re.findall(r"^```(?:c|ld) (\S+)\n(.*?)^```$", README.read_text(), re.M | re.S))
        check_eq(set(found), {"ktr_port.h", "port.c", "sections.ld", "trace.c", "patch.h"}, "pieces of code of ktr/README.md")
        found["ktr_port.h"] += "#if KTR_PORT_PATCH\n" + found.pop("patch.h") + "#endif\n"
        # Joins the sections of a host's program, which keep their places.
        found["sections.ld"] = "SECTIONS {\n" + found["sections.ld"] + "} INSERT AFTER .data;\n"
        _readme = scratch() / "readme"
        _readme.mkdir()
        for name, text in found.items():
            (_readme / name).write_text(text)
    return _readme


def freestanding(compiler):
    """A command that has no header but the compiler's, the two files, the README's and embed/kernel.h."""
    include = run(f"{compiler.split()[0]} -print-file-name=include")[0].decode().strip()
    return f"{compiler} {STRICT} -ffreestanding -nostdinc -isystem {include} -I{KTR} -I{readme()} -I{HERE}"


def undefined(nm, path):
    return set(run(f"{nm} -u {path}")[0].decode().split()) - {"U", "w", "v"}


def compiles(arch):
    command = freestanding(COMPILERS[arch])
    nm = COMPILERS[arch].split()[0].removesuffix("gcc") + "nm"
    asked = set(re.findall(r"^\w.*?\b(ktr_port_\w+)\(", (ROOT / "ktr/port.h").read_text(), re.M))
    check(len(asked) > 9, f"hardly any function in ktr/port.h: {asked}")
    for patch, level in itertools.product((0, 1), "02s"):
        what = f"{arch}, KTR_PORT_PATCH {patch}, -O{level}"
        objects = {}
        for source in (KTR / "ktr.c", readme() / "port.c", readme() / "trace.c"):
            objects[source.name] = scratch() / f"{arch}-{patch}-{level}-{source.name}.o"
            run(f"{command} -O{level} -DKTR_PORT_PATCH={patch} -c {source} -o {objects[source.name]}")
        missing = {s for s in undefined(nm, objects["ktr.c"]) - LIBRARY - KERNEL
                   if not LIBGCC.fullmatch(s) and not LINKER.fullmatch(s)}
        expected = asked if patch else asked - {"ktr_port_patch"}
        check_eq(missing, expected, f"{what}: undefined in ktr.o")
        defined = {line.split()[-1] for line in run(f"{nm} -g --defined-only {objects['ktr.c']}")[0].decode().splitlines()}
        check_eq({s for s in defined if not s.startswith("ktr_")}, set(), f"{what}: names without ktr_")
        sections = run(f"{nm.removesuffix('nm')}objdump -h {objects['trace.c']}")[0].decode()
        check_match(r" ktr_sites ", sections, f"{what}: trace points")
        check_eq(" ktr_patch " in sections, bool(patch), f"{what}: a section of places to patch")


for _arch in COMPILERS:
    test(f"the two files compile alone and ask for nothing but the port ({_arch})")(lambda arch=_arch: compiles(arch))


@test("32-bit and big-endian machines are refused, with the reason")
def refused():
    readme()
    for compiler, reason in REFUSED.items():
        _, err = run(f"{freestanding(compiler)} -fsyntax-only {KTR}/ktr.c", status=1)
        first = re.findall(r"error: (.*)", err.decode())[0]
        check_match(rf'static assertion failed: "ktr needs a {reason} machine: ', first, f"{compiler}: the first error")


@test("C++ may include ktr.h and record")
def cxx():
    source = scratch() / "record.cc"
    source.write_text("""#include <ktr.h>
void record(int x);
void record(int x)
{
	CTR2(KTR_PROC | KTR_SCHED, "x %d %s", x, "text");
	CTR6(KTR_PROC, "%d %d %d %d %d %d", x, 1, 2, 3, 4, 5);
	KTR_STATE1(KTR_SCHED, "thread", "ident", "running", "prio:%d", x);
}
""")
    run(f"g++ -std=gnu++17 -Wall -Wextra -Werror -Wno-missing-field-initializers -I{KTR} -I{readme()} -I{HERE} "
        f"-c {source} -o {source}.o")
    check("ktr_record2" in undefined("nm", f"{source}.o"), "ktr_record2 is not called by its C name")


def decoded(trace, err=b""):
    """A Run of a stream that must be whole: decoded without damage, in order, with its end."""
    r = Run([], 0, "", err.decode(), trace, 0)
    status, out, complaints = ktrdump("--stats", "-i", trace)
    check_eq((status, complaints), (0, ""), "ktrdump --stats")
    for row in re.findall(r"^\d+(?: +\d+){6} .*$", out.split("\ncpu ")[1], re.M):
        cpu, _, _, torn, cleared, damaged, left = map(int, row.split()[:7])
        check_eq((torn, cleared, damaged, left), (0, 0, 0, 0), f"torn, cleared, damaged and left on cpu {cpu}")
    timestamps_ascend(r)
    merged_by_time(r)
    return r


def check_list(found, expected, what):
    """As check_eq(), of long lists."""
    for n, (a, b) in enumerate(itertools.zip_longest(found, expected)):
        check_eq(a, b, f"{what}, the one at {n} of {len(found)}")


def lost(r, cpu):
    return sum(e["gap"] for e in r.gaps if e["cpu"] == cpu)


def port_header(restartable):
    """A folder with the README's port header, or with that and embed/claim.inc."""
    if not restartable:
        return readme()
    folder = scratch() / "restartable"
    folder.mkdir(exist_ok=True)
    (folder / "ktr_port.h").write_text((readme() / "ktr_port.h").read_text() + (HERE / "claim.inc").read_text())
    return folder


def claims_listed(obj, restartable):
    """Restartable: seven claims and the turn, three words each, which the linker script keeps."""
    size = re.search(r" ktr_restart +([0-9a-f]+) ", run(f"objdump -h {obj}")[0].decode())
    check_eq(int(size.group(1), 16) if size else 0, 8 * 24 if restartable else 0, "bytes of section ktr_restart")


def hosted(compiler, patch, restartable):
    name = f"{compiler}-{patch}-{restartable}"
    header = port_header(restartable)
    objects = []
    for source in (KTR / "ktr.c", readme() / "port.c", readme() / "trace.c"):
        objects.append(scratch() / f"{name}-{source.name}.o")
        code = freestanding(f"{compiler} -mgeneral-regs-only -fno-pic").replace(f"-I{readme()}", f"-I{header}")
        run(f"{code} -O2 -DKTR_PORT_PATCH={patch} -c {source} -o {objects[-1]}")
    claims_listed(objects[0], restartable)
    program, trace = scratch() / name, scratch() / f"{name}.ktr"
    # What a kernel's linker script says of its read-only data.
    symbols = "-Wl,--defsym=__rodata_start=__executable_start,--defsym=__rodata_end=__data_start"
    steps = [HERE / "steps.c"] if os.uname().machine == "x86_64" else []
    run([compiler, *STRICT.split(), "-O2", "-fno-pic", "-no-pie", f"-DKTR_PORT_PATCH={patch}", f"-I{KTR}", f"-I{header}",
         f"-I{HERE}", HERE / "kernel.c", *steps, *objects, "-T", readme() / "sections.ld", symbols, "-o", program])
    out, err = run([program])
    trace.write_bytes(out)
    kernel_events(decoded(trace, err))
    console, *rest = err.decode().splitlines()
    check_eq(console, "cpu0  printed", "console")
    if steps:
        stepped(rest, restartable)


def stepped(lines, restartable):
    """What embed/steps.c says at its end: an interrupt came at each instruction, and claims began again."""
    check_eq(len(lines), 1, f"lines behind the console's: {lines}")
    places, came, restarted = map(int, re.fullmatch(r"steps: (\d+) places, (\d+) interrupts, (\d+) restarted", lines[0]).groups())
    check(places >= 100, f"{places} instructions of record calls, expected 100 and more")
    # Each is reached in some phases of the ring at least: a slow path from its beginning once in a turn of four.
    check(came >= places * 64 // 4, f"{came} interrupts at {places} instructions, expected {places * 64 // 4} and more")
    check_eq(restarted >= 64 * 7, restartable, f"claims and turns that began again: {restarted} of {came}; {64 * 7} and more")


def kernel_events(r):
    """The events of embed/kernel.c."""
    texts = {cpu: [e["text"] for e in r.events if e["cpu"] == cpu] for cpu in (0, 1)}
    loop = [[text for n in range(cpu, 1000, 2)
             for text in (f"event {n} of {'third' if n % 3 == 0 else 'all'}", f"six {n} -1 0xffffffffffffffff x text 0x0")]
            for cpu in (0, 1)]
    check_list(texts[0], ["early", *loop[0], "printed", *(f"refusal {n}" for n in range(1, 16, 2))], "events of cpu 0")
    everything = loop[1] + [f"burst {n}" for n in range(4596)]
    # What the passes took is here, then comes one gap, then as much as a ring holds.
    before = texts[1][:-4096]
    check_list(before, everything[:len(before)], "the first events of cpu 1")
    check_list(texts[1][-4096:], everything[-4096:], "the last events of cpu 1")
    check_eq([e["gap"] for e in r.gaps], [len(everything) - len(before) - 4096], "events lost")
    check(lost(r, 1) >= 500, f"cpu 1 lost {lost(r, 1)}, expected what its ring does not hold of the burst, 500 and more")
    check_eq({e["thread"] for e in r.events if e["tid"] == 1}, {"init"}, "the name of thread 1")
    check_eq({e["tid"] for e in r.events if e["text"].startswith("event")}, {1, 2}, "threads")


def hosted_or_skip(compiler, patch, restartable):
    if (patch or restartable) and os.uname().machine != "x86_64":
        raise Skipped("embed/kernel.c patches the no-ops of x86_64, and embed/claim.inc is x86_64's")
    hosted(compiler, patch, restartable)


for _compiler, (_patch, _restartable, _what) in itertools.product(HOSTED, (
        (0, False, "without text patching"), (1, False, "with text patching"), (1, True, "with restartable claims"))):
    test(f"the README's code runs, by {_compiler}, {_what}, and an interrupt at each instruction of a record call does it "
         "no harm")(lambda *args, of=(_compiler, _patch, _restartable): hosted_or_skip(*of))


def example(harts, patch, options=""):
    """Runs the example; its stream, checked."""
    make("ktr-example")
    trace = scratch() / f"riscv64-{harts}-{patch}-{len(options)}.ktr"
    run(f"{QEMU} -smp {harts} {options} -serial file:{trace} -kernel {KTR}/riscv64-virt-{harts}-{patch}")
    r = decoded(trace)
    check_eq({e["cpu"] for e in r.events}, set(range(harts)), "CPUs with events")
    check_eq(r.events[0]["text"], "boot: riscv64, no ring yet", "the first event, which the boot ring held")
    for cpu in range(harts):
        mine = [e for e in r.events if e["cpu"] == cpu]
        check_match(r"^done: loops \d+ ticks \d+$", mine[-1]["text"], f"the last event of hart {cpu}")
        hart(cpu, mine, lost(r, cpu), *mine[-1]["args"])
    return r


def hart(cpu, mine, missing, loops, ticks):
    """One hart's events, by kind: all that it counted, none twice, each in its turn."""
    kinds = {word: [e["args"][0] for e in mine if e["text"].startswith(word + " ")]
             for word in ("loop", "tick", "half", "burst")}
    check(loops >= 1000 and ticks >= 20, f"hart {cpu}: {loops} loops, {ticks} ticks")
    for kind, numbers in kinds.items():
        check_list(numbers, sorted(set(numbers)), f"{kind}s of hart {cpu}")
    # What the hart counted itself, and its first and last event. Others than hart 0 are not told when the half came on.
    known = loops + ticks + (1 if cpu else loops - 501 + 5096 + 2)
    if cpu == 0:
        check_list(kinds["loop"], range(loops), "loops of hart 0")
        check_list(kinds["half"], range(501, loops), "halves of hart 0")
        check_list(kinds["burst"], range(5096 - len(kinds["burst"]), 5096), "the burst of hart 0, but for what was lost")
        check_eq(len(mine) + missing, known, "events of hart 0, delivered and lost")
        check(missing >= 1000, f"hart 0 lost {missing}, expected what a ring does not hold of the burst, 1000 and more")
    elif missing == 0:
        check_list(kinds["loop"], range(loops), f"loops of hart {cpu}")
        check_list(kinds["tick"], range(1, ticks + 1), f"ticks of hart {cpu}")
        check_list(kinds["half"], range(loops - len(kinds["half"]), loops), f"halves of hart {cpu}")
        check_eq(len(mine), known + len(kinds["half"]), f"events of hart {cpu}")
    else:  # hart 0 came too late for it
        check(known <= len(mine) + missing <= known + loops,
              f"events of hart {cpu}: found {len(mine) + missing}, expected {known} and up to {loops} halves")
    places = [e["func"] for e in mine]
    between = [places[n:n + 3] for n in range(len(places))].count(["record_loop", "trap", "record_loop"])
    check(between >= 5 or (cpu and missing),
          f"hart {cpu}: found {between} timer interrupts between events of its loop, expected 5")


for _harts, _patch in itertools.product((1, 4), (0, 1)):
    test(f"a bare-metal riscv64 program records from its loop and from the timer interrupt: {_harts} harts, "
         f"{'with' if _patch else 'without'} text patching")(lambda harts=_harts, patch=_patch: example(harts, patch) and None)


@test("counted instructions give the example's stream twice, with interrupts in the middle of recording")
def counted():
    # The boot id is the time of day.
    options = "-icount shift=4,sleep=off -rtc clock=vm,base=2026-01-01"
    runs = [example(1, 1, options + " " * n) for n in (0, 1)]
    check_eq(runs[0].trace.read_bytes(), runs[1].trace.read_bytes(), "the stream")
    ticks = [e["args"] for e in runs[0].events if e["func"] == "trap"]
    check(any(in_record for _, _, in_record in ticks), f"none of {len(ticks)} timer interrupts came into the record text")


if __name__ == "__main__":
    main()
