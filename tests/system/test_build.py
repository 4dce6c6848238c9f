#!/usr/bin/python3
"""test_build.py - the build: nothing is done twice, a header rebuilds only its users, classes can be left out."""
import json
import re
import subprocess

from harness import (ARCH, BUILD, MACHINE, ROOT, WHOLE, Skipped, boot, check, check_eq, check_match, main, portable_test,
                     scratch_file, test)

DEADLINE_S = 1200  # a build takes long on a slow host


def make(*args):
    return subprocess.run(["make", "--no-print-directory", f"ARCH={ARCH}", *args], cwd=ROOT, capture_output=True,
                          text=True, timeout=DEADLINE_S)


@portable_test("a second make does nothing")
def second():
    check_eq(make("-q", "all").returncode, 0, "make -q all")


@test("what each object depends on is known to make, so that no object stays as it was")
def dependencies():
    known = set(check_match(r"^MAKEFILE_LIST := (.*)$", make("-pnq", "all").stdout, "make -p").group(1).split())
    built = {str(p.relative_to(ROOT)) for folder in (BUILD, *(ROOT / "build").glob("host*"), ROOT / "build" / "fuzz") for p in folder.rglob("*.c.d")}
    check_eq(sorted(built - known), [], "files of dependencies that make does not read")
    plan = make("-nB", "V=1", "all", "test-guests", "unit-tests").stdout.replace("\\\n", " ").splitlines()
    compiled = [line for line in plan if re.match(r"\S*gcc .*\.c( |$)", line)]
    check(len(compiled) > 100, f"{len(compiled)} files are compiled")
    check_eq([line for line in compiled if " -MMD " not in line], [], "commands that do not tell what they read")


@portable_test("touching a header rebuilds its users only")
def header():
    plan = make("-n", "V=1", "-W", "kernel/fs/pipe/pipe.h", f"build/{ARCH}/kestrel").stdout
    built = {word for line in plan.splitlines() for word in line.split() if word.endswith(".c.o") and " -c " in line}
    names = {b.split("/obj/")[1] for b in built}
    check("kernel/fs/pipe/pipe.c.o" in names, f"pipe.c is not rebuilt, but {sorted(names)}")
    check("kernel/lib/string.c.o" not in names and "kernel/mm/page.c.o" not in names,
          f"files that do not include it are rebuilt: {sorted(names)}")


@test("the code of records calls only two functions outside: one of the slow path, and the printing")
def record_text():
    objdump = {"x86_64": "objdump", "aarch64": "aarch64-linux-gnu-objdump"}[ARCH]
    kernel = BUILD / "kestrel"
    symbols = subprocess.run(["nm", str(kernel)], capture_output=True, text=True, check=True).stdout
    at = {name: int(addr, 16) for addr, _, name in (line.split() for line in symbols.splitlines() if line[0] != " ")}
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", f"--start-address={at['__ktr_record_start']}",
                           f"--stop-address={at['__ktr_record_end']}", str(kernel)],
                          capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"\t(?:call|jmp|j\w+|bl?|b\.\w+|cbn?z|tbn?z)\s.*?\b([0-9a-f]{8,16}) <([\w.]+)", text)
    outside = {name for addr, name in targets if not at["__ktr_record_start"] <= int(addr, 16) < at["__ktr_record_end"]}
    check_eq(outside, {"ktr_port_suppressed", "ktr_record_print"}, "functions that are called")


@portable_test("make help lists every target, one line each")
def helps():
    text = make("help").stdout
    files = [ROOT / "Makefile", ROOT / "ktr/rules.mk", *(ROOT / "tests").glob("*/rules.mk")]
    targets = [target for file in files for target in re.findall(r"^([^\s:]+):.*## ", file.read_text(), re.M)]
    check(len(targets) > 20, f"targets: {targets}")
    for target in targets:
        lines = [line for line in text.splitlines() if line.split(None, 1)[0] == target]
        check_eq(len(lines), 1, f"lines of make help for {target}")


@portable_test("make compile_commands.json gives a command for each kernel source")
def commands():
    (ROOT / "compile_commands.json").write_text("[]")  # as of another day
    p = make("compile_commands.json")
    check_eq(p.returncode, 0, f"make compile_commands.json: {p.stderr}")
    entries = json.loads((ROOT / "compile_commands.json").read_text())
    files = {e["file"] for e in entries}
    check(any(f.endswith("kernel/main.c") for f in files), "kernel/main.c has no entry")
    check(all("command" in e or "arguments" in e for e in entries), "an entry has no command")


def built_with_two_classes(*targets):
    """A copy of the sources in which make has built targets with the classes SCHED and PROC alone."""
    tree = scratch_file("")
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
    (tree / "build").mkdir()
    (tree / "build/guest").symlink_to(ROOT / "build/guest")  # without it, make would get it from the network
    p = subprocess.run(["make", "-j2", f"ARCH={ARCH}", "KTR_COMPILE=SCHED,PROC", *targets], cwd=tree, capture_output=True, text=True)
    check_eq(p.returncode, 0, f"make KTR_COMPILE=SCHED,PROC: {p.stderr}")
    return tree


def sites_size(objects, source):
    out = subprocess.run(["readelf", "-SW", objects / "obj" / f"{source}.o"], capture_output=True, text=True, check=True).stdout
    return sum(int(size, 16) for size in re.findall(r" ktr_sites +PROGBITS +\w+ \w+ (\w+) ", out))


@portable_test("KTR_COMPILE leaves the sites of other classes out of objects, and keeps those of its own")
def compile_mask_of_objects():
    kept, left_out = "kernel/sched/sched.c", "kernel/vm/vm.c"
    sources = [kept, left_out, *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "arch" / ARCH).glob("*.c")))]
    tree = built_with_two_classes(*(f"build/{ARCH}/obj/{source}.o" for source in sources))
    found = [(sites_size(BUILD, source), sites_size(tree / "build" / ARCH, source)) for source in (kept, left_out)]
    check(found[0][0] >= found[0][1] > 0 and found[1][0] > found[1][1] == 0, f"sizes of the sites of {kept} and {left_out}: {found}")


@test("KTR_COMPILE leaves all other classes out: no site, no code, and ktrdump says so", arch=("x86_64", "only the port's files are built so"))
def compile_mask():
    if not WHOLE:
        raise Skipped("a whole kernel is built for it; make soak does")
    tree = built_with_two_classes(f"build/{ARCH}/kestrel{MACHINE.image}")
    run = boot("sysctl debug.ktr.compile\nsysctl debug.ktr.mask=ALL\nload fork -n 3\nsysctl -n debug.ktr.sites\n"
               "ktrdump --class SYSC; echo status $?\n",
               options=["--kernel", str(tree / "build" / ARCH / "kestrel"), "--initrd", str(BUILD / "initrd.cpio")])
    run.expect(0)
    check("debug.ktr.compile: PROC,SCHED" in run.out, f"debug.ktr.compile: {run.out}")
    check_match(r"^ktrdump: /dev/ktr: no events: SYSC is not compiled in$", run.out, "ktrdump --class SYSC")
    check_match(r"^status 1$", run.out, "its status")
    classes = {line.split()[3] for line in run.out.splitlines() if line[:1].isdigit() and '"' in line}
    classes.discard("NONE")  # of the parts of long data, and of each probe of a function
    check(classes and all(set(c.split(",")) & {"SCHED", "PROC"} for c in classes), f"classes of the sites: {classes}")


if __name__ == "__main__":
    main()
