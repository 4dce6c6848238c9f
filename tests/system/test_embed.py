#!/usr/bin/python3
"""test_embed.py - the log in other kernels: the two files of `make ktr-amalgamation`, the additions that
ktr/README.md shows, and the bare-metal example. All code in that README is compiled here, and run. A run of everything
has each compiler, each architecture, each way to compile and each piece of code once, by turns with one another.
"""
import contextlib
import functools
import itertools
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import termios
import zlib

from harness import (ROOT, Run, Skipped, check, check_eq, check_match, json_lines, ktrdump, main, scratch, test,
                     wait_for)
from tracecheck import merged_by_time, timestamps_ascend

sys.path[:0] = [str(ROOT / "tests" / "bench"), str(ROOT / "tests")]
import instructions  # noqa: E402
from part import LEFT_OUT, part, seed, shuffled  # noqa: E402

KTR = ROOT / "build" / "ktr"
EXAMPLE = ROOT / "ktr" / "examples" / "riscv64-virt"
README = ROOT / "ktr" / "README.md"
HERE = ROOT / "tests" / "system" / "embed"
WARNINGS = "-Wall -Wextra -Wpedantic -Werror"
STRICT = f"-std=gnu11 {WARNINGS} -Wmissing-prototypes -Wstrict-prototypes -Wundef -Wvla"
# Flags for a kernel: no vector registers, no C library. Debian's compilers make position-independent code of it.
COMPILERS = {
    "x86_64": "gcc -mgeneral-regs-only -mno-red-zone -fno-stack-protector",
    "aarch64": "aarch64-linux-gnu-gcc -mgeneral-regs-only -fno-stack-protector",
    "riscv64": "riscv64-unknown-elf-gcc -march=rv64imac -mabi=lp64 -mcmodel=medany",
}
# The same for Clang.
CLANG = {
    "x86_64": "clang -mgeneral-regs-only -mno-red-zone -fno-stack-protector",
    "aarch64": "clang --target=aarch64-linux-gnu -mgeneral-regs-only -moutline-atomics -fno-stack-protector",
    "riscv64": "clang --target=riscv64-unknown-elf -march=rv64imac -mabi=lp64 -mcmodel=medany",
}
FIXED = {"x86_64": "-fno-pic -mcmodel=kernel", "aarch64": "-fno-pic", "riscv64": ""}  # and for one that is not
BINUTILS = {"x86_64": "", "aarch64": "aarch64-linux-gnu-", "riscv64": "riscv64-unknown-elf-"}
# Memory barriers of a record: the head is stored after the entry. x86_64 keeps the order of stores itself.
BARRIERS = {"x86_64": 0, "aarch64": 1, "riscv64": 1}
HOSTED = ("gcc", "clang")  # compilers of the README's code for this machine
REFUSED = {
    "gcc -m32": "64-bit",
    "riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32": "64-bit",
    "aarch64-linux-gnu-gcc -mbig-endian": "little-endian",
}
LIBRARY = {"memcpy", "memset"}  # needed from a C library, as ktr/README.md says
KERNEL = {"cpus", "cpu_now", "irq_off", "clock_read"}  # from embed/kernel.h, through the port header
LINKER = re.compile(r"__(start|stop)_(ktr_(sites|patch|restart))|__rodata_(start|end)")
QEMU = "qemu-system-riscv64 -M virt -bios none -display none -monitor none -nodefaults"


def run(command, status=0, data=None, env=None):
    """A program's (stdout, stderr) as bytes. It must end with this status."""
    words = shlex.split(command) if isinstance(command, str) else [str(w) for w in command]
    p = subprocess.run(words, cwd=ROOT, input=data, capture_output=True, timeout=600, env=env)  # a build takes long on a slow host
    check_eq(p.returncode, status, f"{' '.join(words)}: exit status (stderr: {p.stderr.decode(errors='replace')})")
    return p.stdout, p.stderr


def make(*targets):
    """Runs make, independent of the jobs of a make that may have started this test."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    run(["make", "-s", *targets], env=env)


# With -Og GCC compiles sanitized code in a third of the time that Clang takes. It warns of fences, which TSan takes for
# nothing: here all that they order is atomic by itself.
THREAD_SANITIZER = "gcc -Og -g1 -fsanitize=thread -Wno-tsan"

DEFAULTS = '#include "ktr_port_default.h"\n'


@functools.cache
def readme():
    """The README's pieces of code, by name."""
    make("dif-amalgamation")
    found = dict(re.findall(r"^```(?:c|ld|diff|sh|text) (\S+)\n(.*?)^```$", README.read_text(), re.M | re.S))
    check_eq(set(found), set("ktr_port.h port.c sections.ld trace.c patch.h d.c d.sh d.out xv6.h xv6.c xv6.patch "
                             "xv6-d.c xv6-d.patch user.h user.c freertos.h freertos-trace.h "
                             "freertos.c".split()), "pieces of code of ktr/README.md")
    # INSERT keeps the other sections of a host's program in place.
    return found | {"sections.ld": "SECTIONS {\n" + found["sections.ld"] + "} INSERT AFTER .data;\n"}


@functools.cache
def port(patch, restartable=False, small=False):
    """A folder with the README's code in files; with patch.h, embed/record.inc and KTR_SMALL in the port header if
    asked."""
    folder = scratch() / f"readme-{patch}-{restartable}-{small}"
    folder.mkdir(exist_ok=True)
    for name in ("port.c", "trace.c", "d.c", "sections.ld"):
        (folder / name).write_text(readme()[name])
    before, after = readme()["ktr_port.h"].split(DEFAULTS)
    before += "#define KTR_SMALL\n" if small else ""
    header = before + (readme()["patch.h"] if patch else "") + DEFAULTS + after
    (folder / "ktr_port.h").write_text(header + ((HERE / "record.inc").read_text() if restartable else ""))
    return folder


def clang(compiler):
    """The name under which this Clang is installed."""
    name, _, rest = compiler.partition(" ")
    if not name.startswith("clang"):
        return compiler
    found = next((n for n in (name, name + "-14") if shutil.which(n)), None)
    if found is None:
        raise Skipped(f"{name}: not installed; run qemu/install-tools")
    return f"{found} {rest}"


def freestanding(compiler, folder, options=STRICT):
    """A compiler command with no headers but the compiler's own, the two files, the README's, and embed/kernel.h."""
    include = run(f"{compiler.split()[0]} -print-file-name=include")[0].decode().strip()
    return f"{compiler} {options} -ffreestanding -nostdinc -isystem {include} -I{KTR} -I{folder} -I{HERE}"


@functools.cache
def compiled(command, source):
    """The object of a source. The same command of several tests compiles once."""
    path = scratch() / f"{zlib.crc32(command.encode()):08x}-{source.name}.o"
    run(f"{command} -c {source} -o {path}")
    return path


def undefined(arch, path):
    return set(run(f"{BINUTILS[arch]}nm -u {path}")[0].decode().split()) - {"U", "w", "v"}


def defined(arch, path):
    return {line.split()[-1] for line in run(f"{BINUTILS[arch]}nm -g --defined-only {path}")[0].decode().splitlines()}


def left_out():
    raise Skipped(LEFT_OUT)


def ways_of(arch, compiler_of):
    """How an architecture's compiler compiles the two files: with text patching, optimised, by the compiler's defaults;
    and without, without optimisation or for size, and not position independent. A run of everything has each
    architecture once, and both compilers and both ways."""
    ways = ((1, "2"), (0, "0s"[(*COMPILERS.values(), *CLANG.values()).index(compiler_of) // 2 % 2]))
    if not seed():
        return ways
    turn = shuffled(COMPILERS, "architectures").index(arch)
    table = shuffled((COMPILERS, CLANG), "compilers", lambda table: table["x86_64"])[turn % 2]
    return shuffled(ways, "ways", lambda way: way[0])[turn // 2:][:1] if table[arch] == compiler_of else ()


def compiles(arch, compiler_of):
    compiler = clang(compiler_of)
    asked = set(re.findall(r"^\w.*?\b(ktr_port_\w+)\(", (ROOT / "ktr/port.h").read_text(), re.M))
    check(len(asked) > 9, f"hardly any function in ktr/port.h: {asked}")
    for patch, level in ways_of(arch, compiler_of):
        what = f"{arch}, {'' if patch else 'no '}text patching, -O{level}"
        command = freestanding(compiler if patch else f"{compiler} {FIXED[arch]}", port(patch))
        sources = (KTR / "ktr.c", KTR / "dif.c", *(port(patch) / name for name in ("port.c", "trace.c", "d.c")))
        objects = {source.name: compiled(f"{command} -O{level}", source) for source in sources}
        log = objects["ktr.c"]
        missing = {s for s in undefined(arch, log) - LIBRARY - KERNEL - {"_GLOBAL_OFFSET_TABLE_"} if not LINKER.fullmatch(s)}
        check_eq(missing, {"ktr_port_patch"} if patch else set(), f"{what}: undefined in ktr.o")
        check_eq(asked - defined(arch, log), {"ktr_port_patch"}, f"{what}: functions of the port without a default body")
        check_eq({s for s in defined(arch, log) if not s.startswith("ktr_")}, set(), f"{what}: names without ktr_")
        missing = undefined(arch, objects["dif.c"]) - LIBRARY - KERNEL - {"_GLOBAL_OFFSET_TABLE_"} - defined(arch, log)
        missing = {s for s in missing if not LINKER.fullmatch(s)}
        check_eq(missing, set(), f"{what}: undefined in dif.o, and not in ktr.o")
        others = {s for s in defined(arch, objects["dif.c"]) if not re.match("dif_|dtrace_|sdt_(provider_)?dtrace", s)}
        check_eq(others, set(), f"{what}: names without dif_")
        sections = run(f"{BINUTILS[arch]}objdump -h {objects['trace.c']}")[0].decode()
        check_match(r" ktr_sites ", sections, f"{what}: trace points")
        check_eq(" ktr_patch " in sections, bool(patch), f"{what}: a section of places to patch")
        code = run(f"{BINUTILS[arch]}objdump -d -j .text.ktr_record {log}")[0].decode()
        # objdump shows RISC-V's local labels as functions.
        record = re.search(r"<ktr_record6>:\n(.*?)(?=\n[0-9a-f]+ <[^.]|\Z)", code, re.S).group(1)
        check_eq(re.findall(r"\t((?:amo|lr\.|sc\.|ldx|stx|cas|swp|lock|xchg)\S*)", record), [],
                 f"{what}: atomic instructions in ktr_record6()")
        if level != "0":
            # Older Clangs make one for riscv64 of what orders a thread and its own interrupts, too, and needs none.
            most = BARRIERS[arch] + (arch == "riscv64" and "clang" in compiler)
            found = len(re.findall(r"\t(?:dmb|fence)\b", record))
            check(BARRIERS[arch] <= found <= most, f"{what}: {found} barriers in ktr_record6(), expected {most}")
        links(arch, command, level, objects)


def links(arch, command, level, objects):
    """Links these objects with all that embed/kernel.h declares, without libgcc."""
    kernel = scratch() / "link.c"
    kernel.write_text("""#include <ktr.h>
struct cpu cpus[MAX_CPUS];
unsigned cpu_now, irq_off;
uint64_t clock_read(void) { return 0; }
void mutex_lock(struct mutex *m) { (void)m; }
void mutex_unlock(struct mutex *m) { (void)m; }
void *memory_alloc(size_t size) { (void)size; return 0; }
void memory_free(void *p, size_t size) { (void)p, (void)size; }
void cpus_interrupt(void) { }
void cpus_stop_run(void (*fn)(void *), void *arg) { fn(arg); }
void console_print(unsigned cpu, const char *file, const char *text) { (void)cpu, (void)file, (void)text; }
void line_write(const void *data, size_t len) { (void)data, (void)len; }
bool memory_read(void *to, uint64_t address, size_t n) { (void)to, (void)address, (void)n; return false; }
void console_input(uint8_t byte) { (void)byte; }
void *memcpy(void *to, const void *from, size_t n);
void *memcpy(void *to, const void *from, size_t n) { (void)from, (void)n; return to; }
void *memset(void *to, int byte, size_t n);
void *memset(void *to, int byte, size_t n) { (void)byte, (void)n; return to; }
#if KTR_PORT_PATCH
void ktr_port_patch(void) { }
#endif
""")
    run(f"{command} -O{level} -c {kernel} -o {kernel}.o")
    run([f"{BINUTILS[arch]}ld", "-static", "-e", "trace_early", "-Ttext=0x400000", "--defsym=__rodata_start=0x400000",
         "--defsym=__rodata_end=0x400000", *objects.values(), f"{kernel}.o", "-o", scratch() / "linked"])


for _arch in COMPILERS:
    for _compiler in (COMPILERS[_arch], CLANG[_arch]):
        test(f"the two files compile alone, link without libgcc, and ask for nothing but the port ({_arch}, "
             f"{_compiler.split()[0]})")(
                 lambda *args, of=(_arch, _compiler): compiles(*of) if ways_of(*of) else left_out())


@test("no warning by -Wpedantic, from C11 to C23, strict and GNU")
def pedantic():
    """What needs the optimizer is warned of where the two files are compiled alone. A run of everything has each year
    once, and three pairs of a mode and a compiler."""
    years, pairs = ("11", "17", "2x"), [*itertools.product(("c", "gnu"), HOSTED)]
    rows = itertools.product(years, pairs, (0, 1))
    if seed():
        rows = zip(shuffled(years, "years"), shuffled(pairs, "modes"), (0, 1, 0))
    for year, (mode, compiler), patch in rows:
        command = freestanding(clang(compiler) + " -mgeneral-regs-only", port(patch), f"-std={mode}{year} {WARNINGS}")
        for source in (KTR / "ktr.c", port(patch) / "trace.c", KTR / "dif.c", port(patch) / "d.c"):
            run(f"{command} -fsyntax-only {source}")


def memory(folder, options=""):
    """Bytes of .data and .bss of the log on riscv64, and of a stream."""
    (scratch() / "stream.c").write_text("#include <ktr.h>\nextern struct ktr_stream a_stream;\nstruct ktr_stream a_stream;\n")
    sizes = []
    for source in (KTR / "ktr.c", scratch() / "stream.c"):
        run(f"{freestanding(COMPILERS['riscv64'], folder)} {options} -O0 -c {source} -o {scratch()}/memory.o")
        sizes += [int(n) for n in run(f"{BINUTILS['riscv64']}size {scratch()}/memory.o")[0].decode().splitlines()[1].split()[1:3]]
    return sizes[0], sizes[1], sizes[3]


@test("the README's instructions of an event are those of the budgets of make bench")
def cost():
    budgets = json.loads((ROOT / "tests/bench/budgets.json").read_text())["ctr6"]
    said = check_match(r"takes (\d+) instructions on x86_64 and (\d+) on aarch64[^.]*?and (\d+) on riscv64", README.read_text(), "the costs")
    check_eq([int(n) for n in said.groups()], [int(budgets[arch]) for arch in ("x86_64", "aarch64", "riscv64")], "instructions")
    said = check_match(r"a trace point takes (\d+) instructions on riscv64", README.read_text(), "of a program")
    budgets = json.loads((ROOT / "tests/bench/budgets.json").read_text())["dtrace_count"]
    check_eq(int(said[1]), int(budgets["riscv64"]), "instructions of a firing")


@test("dif.c takes as much code and memory on riscv64 as the README says")
def size_of_d():
    said = check_match(r"On riscv64 it takes (\d+) KB of code\s+with `-O2`, and (\d+) KB of memory",
                       README.read_text(), "sizes")
    program = compiled(f"{freestanding(COMPILERS['riscv64'], port(1))} -O2", KTR / "dif.c")
    row = run(f"{BINUTILS['riscv64']}size {program}")[0].decode().splitlines()[1]
    text, data, bss = (int(n) for n in row.split()[:3])
    check_eq([-(-text // 1000), -(-(data + bss) // 1000)], [int(n) for n in said.groups()],
             f"KB of {text} and {data + bss} bytes")


@test("the log takes as much memory as the README says, nearly all of it zeroes; with KTR_SMALL less than 16 KiB in all")
def small():
    data, bss, stream = memory(port(0))
    check(data < 2048, f"{data} bytes in .data, expected less than 2048")
    check_eq(-(-stream // 1024), int(re.search(r"/\* (\d+) KiB for 2 CPUs, or 5 KiB \*/", readme()["trace.c"])[1]), "KiB of a stream")
    one, less, _ = memory(port(0), "-DKTR_BOOT_SHIFT=9 -DKTR_INTERN_BYTES=32768 -DKTR_DYNAMIC_SITES=7")
    check_eq((data + bss) - (one + less), 64 * 512 + 32768 * 10 // 8 + 576, "what half of the memory for texts, and for events, takes, and a site")
    names = bss - 64 * 1025 - 65536
    check(56 << 10 <= names < 66 << 10, f"names, and what is left: {names}")
    data, bss, stream = memory(port(0, False, True))
    everything = data + bss + 64 * 65 + stream  # CPU 0's is the boot ring
    check(stream <= 5 << 10, f"a stream of {stream} bytes")
    check(everything <= 16 << 10, f"{everything} bytes in all: {data} of data, {bss} of bss, a ring of 64 slots, {stream} of a stream")


@test("KTR_SMALL: eight CPUs take no more memory than the README says, and a stream has all of their events, of 600 trace points")
def small_log():
    """Its sources are compiled one by one: the headers must agree in any order."""
    folder, program, trace = HERE / "small", scratch() / "small", scratch() / "small.ktr"
    sources = re.search(r"^KTR_KERNEL_SRCS := \\\n((?:\t.*\n)+)", (ROOT / "ktr/sources.mk").read_text(), re.M)[1].replace("\\", "").split()
    run(f"gcc -std=gnu11 -O0 -g1 {WARNINGS} -fsanitize=address,undefined -fno-sanitize-recover=all -I{ROOT} -I{folder} "
        f"{folder}/small.c {' '.join(sources)} ktr/port/ktr_port_default.c {' '.join(SYMBOLS)} -o {program}")
    trace.write_bytes(run([program])[0])
    events = decoded(trace).events
    texts = [f"{n} is the number of a text that has more than forty-seven characters"[:47] for n in range(10, 30)]
    check_list([e["text"] for e in events], [*(f"site {n}: number {n} text {texts[n % 20]}" for _ in range(2) for n in range(100, 700)), " ".join(texts[:6])], "events")
    for n, e in enumerate(events[:-1]):
        check_eq((e["cpu"], e["tid"]), (n % 8, 1 + n % 20), f"CPU and thread of event {n}")
        # Four threads of each remainder modulo 4 have names; the fifth has taken the first one's place.
        check_eq(e.get("thread") or None, f"t{e['tid']}" if e["tid"] > 4 else None, f"name of thread {e['tid']}")


@test("the README's port header for xv6-riscv compiles; make test-xv6 runs it")
def xv6():
    folder = scratch() / "xv6"
    folder.mkdir()
    (folder / "ktr_port.h").write_text(readme()["xv6.h"])
    # The kernel's declarations that it uses, under that kernel's names.
    (folder / "types.h").write_text("typedef unsigned long uint64;\n")
    (folder / "param.h").write_text("#define NCPU 8\n")
    (folder / "riscv.h").write_text("#define SSTATUS_SIE 2ul\nuint64 r_tp(void);\nuint64 r_time(void);\n")
    run(f"{freestanding(COMPILERS['riscv64'], folder)} -misa-spec=2.2 -O0 -c {KTR}/ktr.c -o {folder}/ktr.o")
    check_eq({s for s in undefined("riscv64", folder / "ktr.o") if not LINKER.fullmatch(s)} - LIBRARY,
             {"r_tp", "r_time", "xv6_cpu"}, "undefined in ktr.o")


@test("the README's code for FreeRTOS compiles; make test-freertos runs it")
def freertos():
    make("ktr-amalgamation")
    folder = scratch() / "freertos"
    folder.mkdir()
    for name, text in {"ktr_port.h": readme()["freertos.h"], "trace.h": readme()["freertos-trace.h"],
                       "freertos.c": readme()["freertos.c"], "task.h": "",
                       "FreeRTOS.h": (HERE / "freertos.inc").read_text()}.items():
        (folder / name).write_text(text)
    # Some warnings need the optimizer; ktr.c has them where it is compiled alone.
    for level, path in (("2", f"{folder}/freertos.c"), ("g", f"{KTR}/ktr.c")):
        run(f"gcc -O{level} -Wall -Werror -no-pie -pthread -I{folder} -I{KTR} -c {path} -o {folder}/freertos.o")


@test("32-bit and big-endian machines, and more than 64 CPUs, are refused, with the reason")
def refused():
    for compiler, reason in REFUSED.items():
        _, err = run(f"{freestanding(compiler, port(0))} -fsyntax-only {KTR}/ktr.c", status=1)
        first = re.findall(r"error: (.*)", err.decode())[0]
        check_match(rf'static assertion failed: "ktr needs a {reason} machine: ', first, f"{compiler}: the first error")

    header = (port(0) / "ktr_port.h").read_text()
    folder = scratch() / "many"
    folder.mkdir()
    (folder / "ktr_port.h").write_text(re.sub(r"(KTR_PORT_MAXCPU +)MAX_CPUS", r"\g<1>65", header))
    _, err = run(f"{freestanding(COMPILERS['riscv64'], folder)} -fsyntax-only {KTR}/ktr.c", status=1)
    first = re.findall(r"error: (.*)", err.decode())[0]
    check_match("^static assertion failed: \"KTR_PORT_MAXCPU must be 1 to 64: ", first, "65 CPUs: the first error")


@test("the two files, ktrdump and xv6-riscv with the log are made without what only a guest needs")
def no_guest():
    # In a folder of its own: other flags would make all programs of the guest anew.
    goals = "ktr-amalgamation ktr-example test-xv6 build/host/ktrdump"
    out = "".join(t.decode() for t in run(f"make -n {goals} GUEST=build/none LWIP=build/none B={scratch()}"))
    check("getting" not in out, f"gets something: {out}")


@functools.cache
def for_this_machine(compiler, patch, restartable):
    """The log, and the README's code, as objects of this compiler. embed/record.inc has absolute addresses."""
    folder = port(patch, restartable)
    on_x86_64 = (COMPILERS if compiler == "gcc" else CLANG)["x86_64"]
    words = on_x86_64 if os.uname().machine == "x86_64" else f"{compiler} -mgeneral-regs-only"
    command = freestanding(clang(f"{words} -fno-pic" if restartable else words), folder)
    return [compiled(f"{command} -O2", source) for source in (KTR / "ktr.c", folder / "port.c", folder / "trace.c")]


def cxx(compiler, patch):
    """Trace points in functions that the compiler copies, in two files, are all registered, and their events
    recorded."""
    c = "gcc" if compiler == "g++" else "clang"
    objects, compiler, c = for_this_machine(c, patch, False), clang(compiler), clang(c)
    include, kernel = f"-I{KTR} -I{port(patch)} -I{HERE}", scratch() / "cxx-kernel.o"
    run(f"{c} -std=gnu11 -O2 {include} -Dmain=kernel_main -c {HERE}/kernel.c -o {kernel}")
    for standard, level in (("c++11", 2), ("c++20", 0)) if patch else (("c++11", 0), ("gnu++17", 2)):
        program = scratch() / f"cxx-{standard}-{level}"
        pic = "-fPIC -fvisibility=hidden" if level else ""
        for name in ("one", "two"):
            run(f"{compiler} -std={standard} {WARNINGS} -O{level} {pic} {include} -c {HERE}/{name}.cc -o {program}-{name}.o")
        run([*compiler.split(), f"{program}-one.o", f"{program}-two.o", kernel, *objects, *SYMBOLS,
             "-T", port(patch) / "sections.ld", "-Wl,--defsym=steps=0", "-o", program])
        out = run([program])[0].decode()
        check_eq(out.splitlines(), CXX_EVENTS, f"{compiler} -std={standard} -O{level}: events")


def hosted_turn(compiler, patch):
    """Is it the turn of GCC and C++, or of Clang, to have the log with text patching, or without?"""
    return not seed() or shuffled((0, 1), "text patching")["clang" in compiler] == patch


CXX_EVENTS = ["early", "main 1 2 3 4 5 6", "inline 1", "template int 4", "template char 1", "member 7 text", "lambda 8",
              "inline 2", "template int 4", "template long 8", "nameless 3", "state of main"]
for _compiler, _patch in itertools.product(("g++", "clang++"), (0, 1)):
    test(f"C++: trace points in inline and template functions, lambdas and members, by {_compiler}, "
         f"{'with' if _patch else 'without'} text patching")(
             lambda *args, of=(_compiler, _patch): cxx(*of) if hosted_turn(*of) else left_out())


@test("aarch64's GCC compiles trace points in C and C++ in its default, position-independent code")
def independent():
    for compiler, source, patch in (("gcc", port(1) / "trace.c", 1), ("g++", HERE / "two.cc", 0), ("g++", HERE / "two.cc", 1)):
        options = STRICT if compiler == "gcc" else f"-std=c++17 {WARNINGS}"
        run(f"{freestanding(f'aarch64-linux-gnu-{compiler}', port(patch), options)} -fPIE -O1 -c {source} -o {scratch()}/independent.o")


def decoded(trace, err=b""):
    """A Run of a stream that must be complete: no damage, in order, with its end."""
    r = Run([], 0, "", err.decode(), trace, 0)
    status, out, complaints = ktrdump("report", "events", "--rows", "0", "--format", "jsonl", "-i", trace)
    check_eq((status, complaints), (0, ""), "ktrdump report events")
    rows = [row for row in json_lines(out) if row.get("table") == "cpus" and "cpu" in row]
    check(rows, f"no CPU in:\n{out}")
    for row in rows:
        check_eq({name: row[name] for name in ("corrupt", "cleared", "damaged", "left")},
                 {"corrupt": 0, "cleared": 0, "damaged": 0, "left": 0}, f"what cpu {row['cpu']} has lost")
    timestamps_ascend(r)
    merged_by_time(r)
    return r


def check_list(found, expected, what):
    """As check_eq(), of long lists."""
    for n, (a, b) in enumerate(itertools.zip_longest(found, expected)):
        check_eq(a, b, f"{what}, the one at {n} of {len(found)}")


def lost(r, cpu):
    return sum(e["gap"] for e in r.gaps if e["cpu"] == cpu)


def records_listed(obj, restartable):
    """Number of restartable sequences: records of 0 to 6 parameters, those of the slow path, and turns; three words
    each."""
    size = re.search(r" ktr_restart +([0-9a-f]+) ", run(f"objdump -h {obj}")[0].decode())
    sequences = int(size.group(1), 16) // 24 if size else 0
    check(9 <= sequences <= 12 if restartable else sequences == 0, f"{sequences} sequences in section ktr_restart")


# Marks the read-only data, as a kernel's linker script does.
SYMBOLS = ("-Wl,--defsym=__rodata_start=__executable_start,--defsym=__rodata_end=__data_start",)


def hosted(compiler, patch, restartable):
    name, folder = f"{compiler}-{patch}-{restartable}", port(patch, restartable)
    objects = for_this_machine(compiler, patch, restartable)
    records_listed(objects[0], restartable)
    program, trace = scratch() / name, scratch() / f"{name}.ktr"
    steps = [HERE / "steps.c"] if os.uname().machine == "x86_64" else []
    fixed = ["-fno-pic", "-no-pie"] if restartable else []
    run([clang(compiler).strip(), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", *fixed, f"-I{KTR}", f"-I{folder}",
         f"-I{HERE}", HERE / "kernel.c", *steps, *objects, "-T", folder / "sections.ld", *SYMBOLS, "-o", program])
    out, err = run([program])
    trace.write_bytes(out)
    kernel_events(decoded(trace, err))
    console, *rest = err.decode().splitlines()
    check_eq(console, "cpu0  printed", "console")
    if steps:
        stepped(rest, restartable)


def stepped(lines, restartable):
    """Checks the output of embed/steps.c: an NMI came at each instruction, and sequences were restarted."""
    check_eq(len(lines), 1, f"lines after the console's: {lines}")
    places, came, restarted = map(int, re.fullmatch(r"steps: (\d+) places, (\d+) NMIs, (\d+) restarted", lines[0]).groups())
    check(places >= 100, f"{places} instructions of record calls, expected 100 and more")
    # Each place is reached in some phase of the ring; the slow path once in a turn of eight.
    check(came >= places * 128 // 8, f"{came} NMIs at {places} instructions, expected {places * 128 // 8} and more")
    check_eq(restarted >= 128 * 7, restartable, f"sequences that began again: {restarted} of {came}; {128 * 7} and more")


RING = 2048  # as trace.c sets it; two slots are never readable
RESIDENT = RING - 2


def kernel_events(r):
    """Checks the events of embed/kernel.c."""
    texts = {cpu: [e["text"] for e in r.events if e["cpu"] == cpu] for cpu in (0, 1)}
    loop = [[text for n in range(cpu, 1000, 2)
             for text in (f"event {n} of {'third' if n % 3 == 0 else 'all'}", f"six {n} -1 0xffffffffffffffff x text 0x0")]
            for cpu in (0, 1)]
    check_list(texts[0], ["early", *loop[0], "printed", *(f"refusal {n}" for n in range(1, 16, 2))], "events of cpu 0")
    everything = loop[1] + [f"burst {n}" for n in range(RING + 500)]
    # First the events that the passes took, then one gap, then as many as a ring holds.
    before = texts[1][:-RESIDENT]
    check_list(before, everything[:len(before)], "the first events of cpu 1")
    check_list(texts[1][-RESIDENT:], everything[-RESIDENT:], "the last events of cpu 1")
    check_eq([e["gap"] for e in r.gaps], [len(everything) - len(before) - RESIDENT], "events lost")
    check(lost(r, 1) >= 500, f"cpu 1 lost {lost(r, 1)}, expected what its ring does not hold of the burst, 500 and more")
    check_eq({e["thread"] for e in r.events if e["tid"] == 1}, {"init"}, "the name of thread 1")
    check_eq({e["tid"] for e in r.events if e["text"].startswith("event")}, {1, 2}, "threads")


def hosted_or_skip(compiler, patch, restartable):
    if (patch or restartable) and os.uname().machine != "x86_64":
        raise Skipped("embed/kernel.c patches the no-ops of x86_64, and embed/record.inc is x86_64's")
    if compiler not in part(HOSTED, 2, "restartable") if restartable else not hosted_turn(compiler, patch):
        left_out()
    hosted(compiler, patch, restartable)


for _compiler, (_patch, _restartable, _what) in itertools.product(HOSTED, (
        (0, False, "without text patching"), (1, False, "with text patching"), (1, True, "with restartable records"))):
    test(f"the README's code runs, by {_compiler}, {_what}, and an NMI at each instruction of a record call does it "
         "no harm")(lambda *args, of=(_compiler, _patch, _restartable): hosted_or_skip(*of))


@test("the README's user-space port: threads and signal handlers record, each event once, and ThreadSanitizer sees no race")
def threads():
    """All of a thread's events are there, in order, and those of its handlers but for what was refused. Where a run of
    everything has no ThreadSanitizer here, a process that dtrace traces has it."""
    folder, trace = scratch() / "threads", scratch() / "threads.ktr"
    folder.mkdir(exist_ok=True)
    (folder / "ktr_port.h").write_text(readme()["user.h"])
    (folder / "user.c").write_text(readme()["user.c"])
    # ThreadSanitizer runs a signal handler between a thread's calls; without it, anywhere.
    for options in part((THREAD_SANITIZER, "clang -O2"), 2, "threads"):
        run(f"{clang(options)} -std=gnu11 {WARNINGS} -pthread -Wl,--wrap=ktr_cpu_init -I{KTR} -I{folder} {folder}/user.c {HERE}/threads.c "
            f"{KTR}/ktr.c {' '.join(SYMBOLS)} -o {folder}/program")
        trace.write_bytes(run([folder / "program"])[0])
        r = decoded(trace)
        for name in ("t0", "t1", "t2"):
            mine = [e["text"] for e in r.events if e["thread"] == name]
            check_list([t for t in mine if not t.startswith("signal")], [f"event {n} of a thread" for n in range(4000)], f"{options}: events of {name}")
            check_eq(mine.count("signal 10"), 40, f"{options}: signals that {name} has raised between its events")
        check_eq([(e["cpu"], e["text"]) for e in r.events if e["thread"] == "main"][:1], [(0, "begin")], f"{options}: the main thread's first event")


def example(harts, patch, options=""):
    """Runs the example, and checks its stream."""
    program = f"build/ktr/riscv64-virt-{harts}-{patch}"
    make(program)
    trace = scratch() / f"riscv64-{harts}-{patch}-{len(options)}.ktr"
    run(f"{QEMU} -smp {harts} {options} -serial file:{trace} -kernel {program}")
    r = decoded(trace)
    check_eq({e["cpu"] for e in r.events}, set(range(harts)), "CPUs with events")
    check_eq(r.events[0]["text"], "boot: riscv64, no ring yet", "the first event, which the boot ring held")
    for cpu in range(harts):
        mine = [e for e in r.events if e["cpu"] == cpu]
        check_match(r"^done: loops \d+ ticks \d+$", mine[-1]["text"], f"the last event of hart {cpu}")
        hart(cpu, mine, lost(r, cpu), *mine[-1]["args"])
    return r


def hart(cpu, mine, missing, loops, ticks):
    """Checks one hart's events, by kind: all that it counted, each once, in order."""
    kinds = {word: [e["args"][0] for e in mine if e["text"].startswith(word + " ")]
             for word in ("loop", "tick", "half", "burst")}
    check(loops >= 1000 and ticks >= 20, f"hart {cpu}: {loops} loops, {ticks} ticks")
    for kind, numbers in kinds.items():
        check_list(numbers, sorted(set(numbers)), f"{kind}s of hart {cpu}")
    # The events that the hart counted itself, and its first and last. Only hart 0 knows when `half` was switched on.
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
    else:  # hart 0 had switched it off before
        check(known <= len(mine) + missing <= known + loops,
              f"events of hart {cpu}: found {len(mine) + missing}, expected {known} and up to {loops} halves")
    places = [func for func, _ in itertools.groupby(e["func"] for e in mine)]
    between = [places[n:n + 3] for n in range(len(places))].count(["record_loop", "trap", "record_loop"])
    # A host that is busy lets a hart run now and then: then many interrupts come one after the other.
    check(between >= 1 or (cpu and missing), f"hart {cpu}: found no timer interrupt between events of its loop")


# On one hart with text patching, on four without: each has the log compiled for it, which takes longer than the test.
for _harts, _patch in ((1, 1), (4, 0)) if seed() else itertools.product((1, 4), (0, 1)):
    test(f"a bare-metal riscv64 program records from its loop and from the timer interrupt: {_harts} harts, "
         f"{'with' if _patch else 'without'} text patching")(lambda harts=_harts, patch=_patch: example(harts, patch) and None)


TRACED = ("clang -O2 -g", "gcc -Og -g")  # of which a run of everything has one


def traced(compiler=shuffled(TRACED, "traced")[0]):
    return traced_by(compiler)


@functools.cache
def traced_by(compiler):
    """A process as a kernel with D, whose memory is what the README says for its eight CPUs. The clock of all threads
    but the one that answers dtrace may be ahead (embed/traced.c)."""
    folder = scratch() / f"traced-{len(compiler)}"
    folder.mkdir(exist_ok=True)
    header = readme()["user.h"].replace(DEFAULTS, f"#define DIF_PORT_ARENA_BYTES ((24 + 8 * 90) * 1024)\n{DEFAULTS}")
    header = header.replace(" user_clock()\n", " (user_clock() + (user_cpu != 0) * user_ahead)\nextern uint64_t user_ahead;\n")
    (folder / "ktr_port.h").write_text(header)
    (folder / "user.c").write_text(readme()["user.c"])
    other = folder / "other.cc"  # a kernel may have C++, too, which pahole does not know
    other.write_text("template <class T> struct one { T &x; };\nint i;\none<int> o = {i};\n")
    run(f"g++ -g -O0 -c {other} -o {other}.o")
    run(f"{clang(compiler)} -std=gnu11 {WARNINGS} -Wshadow -no-pie -pthread -I{KTR} -I{folder} "
        f"{folder}/user.c {HERE}/traced.c {KTR}/ktr.c {KTR}/dif.c {other}.o {' '.join(SYMBOLS)} -o {folder}/traced")
    return folder / "traced"


DTRACE = ROOT / "build/host/dtrace"
EXAMPLES = ("riscv64-dif-4-0", "riscv64-dif-1-1")  # on four harts without text patching, and on one with it
ENDS = "app:::begin { } app:::done { exit(0); }"  # of the process


def traced_cases():
    """(options, program, what it prints, what it says, status) of embed/traced.cases."""
    lines = [line for line in (HERE / "traced.cases").read_text().splitlines() if not line.startswith("#")]
    for command, *rest in re.findall(r"^(-.*)((?:\n[>!=] .*)+)", "\n".join(lines), re.M):
        options, program = command.replace("ENDS", ENDS).split("-n ", 1)
        found = dict(re.findall(r"^([>!=]) (.*)$", rest[0], re.M))
        yield options.split(), program, found.get(">", ""), found.get("!", ""), int(found.get("=", 0))


@contextlib.contextmanager
def serving(program, *arguments):
    """A process that listens at the socket which its last argument names, until the end of the block."""
    env = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
    with subprocess.Popen([str(a) for a in (program, *arguments)], cwd=ROOT, stdin=subprocess.DEVNULL, env=env) as p:
        try:
            path = re.sub("^.*unix:|,.*$", "", str(arguments[-1]))
            wait_for(lambda: p.poll() is not None or os.path.exists(path), "the socket")
            yield p
        finally:
            p.kill()


def dtrace(at, kernel, *arguments, status=0, data=None):
    command = [DTRACE, "--target", f"unix:{at}", "--kernel", kernel, *arguments]
    return [b.decode() for b in run(command, status, data)]


@test("dtrace --target traces a process that has the engine, in as much memory as the README says")
def process():
    make("build/host/dtrace")
    for compiler in part(TRACED, 2, "traced"):
        check_process(traced(compiler))


def check_process(program_of):
    at = scratch() / f"{program_of.parent.name}.socket"
    with serving(program_of, at) as p:
        listed = dtrace(at, program_of, "-l")[0].splitlines()
        check_eq(sorted(" ".join(line.split()[1:]) for line in listed[1:]),
                 [*(f"app embed {name}" for name in ("again", "begin", "done", "sent")),
                  *(f"dtrace {name}" for name in ("BEGIN", "END", "ERROR")),
                  "ktr embed work call", "syscall embed read entry", "syscall embed read return"], "dtrace -l")
        cases = [*traced_cases()]
        check(len(cases) >= 14, f"{len(cases)} cases")
        for options, program, expected, said, status in cases:
            out, err = dtrace(at, program_of, "-q", *options, "-n", program, status=status)
            check_match(rf"\A{expected}\n*\Z", out, program)
            check_match(said, err, program)
        script = scratch() / "traced.d"
        script.write_text("#pragma D option quiet\n" + ENDS + "END { printf(\"%s\", $$1); }\n")
        check_eq(dtrace(at, program_of, "-s", script, "ended")[0], "ended\n", "dtrace -s")
        interrupted(at, program_of)
        check_eq(p.poll(), None, "the process ended")


@test("dtrace --target says what is wrong with the line, or with the ELF")
def wrong_target():
    other = KTR / part(EXAMPLES, 2, "examples")[0]  # either has other trace points
    make("build/host/dtrace", f"build/ktr/{other.name}")
    process, path = traced(), scratch() / "wrong.socket"
    with serving(process, path):
        for line, kernel, said in (
                (f"unix:{path}", other, r"the kernel has \d+ trace points, and the ELF \d+, which are not the same"),
                (f"unix:{path}", "/bin/sh", "/bin/sh: expected a kernel that is linked for fixed addresses"),
                (f"unix:{path}", DTRACE.parent / "nothing", "nothing: No such file or directory"),
                (f"unix:{path}", README, "README.md: expected the ELF of a 64-bit little-endian kernel"),
                (f"unix:{path}.no", process, "no: No such file or directory"),
                ("tcp:1", process, "tcp:1: expected tcp:HOST:PORT"),
                ("/dev/null", process, "found no terminal, expected unix:PATH, tcp:HOST:PORT or a terminal")):
            _, err = run([DTRACE, "--target", line, "--kernel", kernel, "-n", "BEGIN"], 1)
            check_match(said, err.decode(), f"dtrace --target {line} --kernel {kernel}")
        (scratch() / "pahole").write_text("#!/bin/sh\necho more >&2\necho unknown option >&2\nexit 64\n")
        (scratch() / "pahole").chmod(0o755)
        _, err = run([DTRACE, "--target", f"unix:{path}", "--kernel", process, "-n", "BEGIN { exit(0); }"],
                     env=os.environ | {"PATH": f"{scratch()}:{os.environ['PATH']}"})
        check_match(r"\A\S*dtrace: unknown option\n.*pahole made no types of it", err.decode(), "a pahole that fails")
        _, err = run([DTRACE, "--target", f"unix:{path}", "-n", "BEGIN"], 2)
        check_match("expected --kernel FILE", err.decode(), "without --kernel")


def relayed(target, ours, theirs):
    """Runs dtrace at a line whose other end is ours(), which is relayed to theirs; what it prints. Each third piece
    that comes back has something of a console in its middle."""
    program = "syscall::read:entry /arg0 == 1/ { @[execname] = count(); }" + ENDS
    command = [DTRACE, "--target", target, "--kernel", traced(), "-q", "-n", program]
    p = subprocess.Popen([str(w) for w in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    line, pieces = ours(), 0
    while p.poll() is None:
        ready, _, _ = select.select([line, theirs], [], [], 0.1)
        if line in ready:
            theirs.sendall(os.read(line, 4096))
        if theirs in ready:
            data, pieces = theirs.recv(4096), pieces + 1
            os.write(line, data[:9] + b"$ echo" + data[9:] if pieces % 3 == 0 else data)
    return p.stdout.read().decode()


@test("a terminal and a TCP connection are lines, too, and what is damaged on them is asked for again")
def lines():
    make("build/host/dtrace")
    path = scratch() / "lines.socket"
    master, slave = os.openpty()
    listener = socket.create_server(("127.0.0.1", 0))
    connections = []

    def accept():
        connections.append(listener.accept()[0])
        return connections[0].fileno()
    before = termios.tcgetattr(slave)
    with serving(traced(), path):
        tcp = f"tcp:127.0.0.1:{listener.getsockname()[1]}"
        for target, ours in ((os.ttyname(slave), lambda: master), (tcp, accept)):
            with socket.socket(socket.AF_UNIX) as theirs:
                theirs.connect(str(path))
                check_match(r"\A\n +worker-1 +1000\n\Z", relayed(target, ours, theirs), target)
        check_eq(termios.tcgetattr(slave), before, "the terminal's settings after dtrace")


def interrupted(at, program_of):
    """^C ends it with END and the aggregations. The line is free for the next one, whatever became of this one."""
    program = ('app:::begin { printf("begun\\n"); } syscall::read:entry { @[execname] = count(); } '
               'app:::done { printf("done\\n"); } END { printf("end\\n"); }')
    command = [DTRACE, "--target", f"unix:{at}", "--kernel", program_of, "-q", "-n", program]
    at_end = r"begun\ndone\n+end\n+ +worker-. +1000\n +worker-. +1000\n"
    for how, expected in ((signal.SIGKILL, None), (signal.SIGINT, at_end)):
        path = scratch() / f"interrupted-{how}"
        with open(path, "wb") as out:
            p = subprocess.Popen([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out)
        wait_for(lambda: p.poll() is not None or b"done" in path.read_bytes(), "the probe app:::done")
        p.send_signal(how)
        check_eq(p.wait(), 0 if expected else -how, f"dtrace after {how}")
        if expected:
            check_match(rf"\A{expected}\Z", path.read_text(), "dtrace after ^C")


@test("dtrace prints records of a later time than the kernel's clock when they are too many to wait, and says so")
def late():
    """Else what dtrace keeps of a kernel whose clocks differ grows without an end."""
    make("build/host/dtrace")
    at, kernel, said = scratch() / "late.socket", traced(), scratch() / "late.err"
    with serving(kernel, 10, at):
        command = [DTRACE, "--target", f"unix:{at}", "--kernel", kernel, "-q", "-x", "bufsize=1k", "-n",
                   'syscall::read:entry { printf("%d", arg1); } app:::begin, app:::again { }']
        with open(said, "wb") as err:
            traces = subprocess.Popen([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stderr=err,
                                      stdout=subprocess.DEVNULL)
        wait_for(lambda: b"printed out of order" in said.read_bytes(), "that dtrace says what it printed early")
        traces.send_signal(signal.SIGINT)
        check_eq(traces.wait(), 0, "dtrace after ^C")
        check_match(r"dtrace: \d+ records printed out of order: later than the clock of the kernel\n", said.read_text(),
                    "dtrace")


@test("ThreadSanitizer and others see nothing wrong in a process that dtrace traces")
def process_sanitized():
    """Without types: pahole does not know what the sanitizers' own language is."""
    make("build/host/dtrace")
    kinds = (THREAD_SANITIZER, "gcc -Og -g1 -fsanitize=address,undefined -fno-sanitize-recover=all")
    threads_have = THREAD_SANITIZER in part((THREAD_SANITIZER, "clang -O2"), 2, "threads")
    for kind in (kinds[threads_have],) if seed() else kinds:
        at = scratch() / f"{len(kind)}.socket"
        with serving(traced(kind), at) as p:
            for program in ("syscall:::entry { @[execname] = count(); self->t = arg1; } "
                            "syscall:::return /self->t/ { @t = max(self->t); n[arg1]++; }",
                            'app:::begin { self->s = speculation(); } syscall:::entry { printf("%d", arg1); }'):
                out, _ = dtrace(at, traced(kind), "-q", "-n", program + ENDS)
                check_match("999" if "max" in program else "", out, program)
            check_eq(p.poll(), None, f"{kind}: the process ended")


@test("the README's dtrace of the bare-metal riscv64 program prints what the README shows, with text patching too")
def traced_example():
    listing, expected = readme()["d.sh"], readme()["d.out"]
    build, start, command = re.fullmatch(r"make (.*?)\n(qemu.*?) &\n(.*)", listing, re.S).groups()
    for kernel in part(EXAMPLES, 2, "examples"):
        at = scratch() / f"{kernel}.socket"
        change = {"riscv64-dif-4-0": kernel, "unix:line": f"unix:{at}", "-smp 4": f"-smp {kernel[12]}"}
        here = functools.partial(re.sub, "|".join(change), lambda m: change[m[0]])
        make(*here(build).split())
        with serving(*shlex.split(here(start).replace("\\\n", ""))):
            check_eq(run(here(command))[0].decode(), expected, here(command))


@test("a record of six parameters, and a firing of a program, take no more instructions on riscv64 than their budgets")
def budget():
    make("build/ktr/riscv64-bench")
    for row in instructions.riscv64():
        check(row.budget != (None, None) and row.good,
              f"{row.name}: found {row.value_text}, expected {row.budget_text}")


@test("with counted instructions and interrupts, two runs of the example give the same stream")
def counted():
    # The boot id is the time of day, so fix it.
    options = "-icount shift=4,sleep=off -rtc clock=vm,base=2026-01-01"
    runs = [example(1, 1, options + " " * n) for n in (0, 1)]
    check_eq(runs[0].trace.read_bytes(), runs[1].trace.read_bytes(), "the stream")
    ticks = sum(e["func"] == "trap" for e in runs[0].events)
    check(ticks >= 20, f"{ticks} timer interrupts, expected 20 and more")


if __name__ == "__main__":
    main()
