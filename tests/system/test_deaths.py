#!/usr/bin/python3
"""test_deaths.py - however the kernel dies, it reports: message, place, last events, a complete trace."""
import sys

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from harness import BUILD, boot, check, check_match, cpus, main, portable_test, test  # noqa: E402


def dies(sysctl, message, place):
    """The guest dies on request while it traces. Report and trace must be complete."""
    for smp in cpus():
        r = boot(f"load fork -n 3\nsysctl debug.kdb.{sysctl}=1\n", smp=smp, mask="PROC,SCHED", trace=True).expect(101)
        check_match(rf"^panic: .*{message}", r.out, f"{smp} CPUs, console")
        check_match(rf"^#\d+ +0x[0-9a-f]+ {place}\+", r.out, f"{smp} CPUs, backtrace")
        check_match(r"^last \d+ events:$", r.out, f"{smp} CPUs, events")
        check(any(e["text"].startswith("panic: ") for e in r.events), f"{smp} CPUs: no panic event in the trace")


@test("a bad pointer in the kernel: a page fault with its address, exit status 101")
def bad_pointer():
    dies("trap", "page fault, address 0x10$", "death_trap")


@test("a kernel stack overflow: a panic on another stack, exit status 101")
def stack_overflow():
    dies("stack_overflow", "(double fault|kernel stack overflow), address 0x[0-9a-f]+$", r"death_recurse[.\w]*")


NAMES = """
cat > /tmp/names << 'EOF'
n=0
while [ $n -lt {programs} ]; do
name=/tmp/a_program_with_a_name_that_is_longer_than_it_need_be_for_what_it_does_which_is_nothing_at_all_$n
cp /bin/true $name
$name
rm $name
n=$((n+1))
done
n=0
while [ $n -lt {files} ]; do
true 2> /dev/null < /tmp/no_such_file_number_$n
n=$((n+1))
done
EOF
su 1000 sh /tmp/names
cp /bin/true /tmp/last_program
/tmp/last_program
sysctl debug.kdb.trap=1
"""


@portable_test("a user's thousands of names of programs and files leave room for later names and for a panic's")
def names():
    r = boot(NAMES.format(programs=80, files=5000), smp=2, mask="PROC,VFS", trace=True, timeout=600).expect(101)
    texts = [e["text"] for e in r.events]
    check(any("no_such_file_number_4999" in t for t in texts), "the last name of a file is not in the trace")
    check(any(t.startswith("exec: ") and "name last_program" in t for t in texts), "no name of the last program")
    check(any("page fault, address 0x10" in t for t in texts if t.startswith("panic: ")), "the panic's own text is gone")
    check_match(r"panic: page fault, address 0x10$", r.out.split("events:")[1], "the panic's event on the console")


def panics(name, message, *sets):
    """Boots the test kernel with one death of tests/kernel/death_test.c."""
    r = boot(sets=[f"kern.test=death_{name}", *sets], options=["--kernel", str(BUILD / "kestrel-test")]).expect(101)
    check_match(rf"^panic: {message}", r.out, name)


@test("a thread that gives up its CPU while interrupts are off, or a spin lock is held, panics at once")
def no_sleep_with_interrupts_off():
    panics("sleep_with_interrupts_off", r"thread \d+ gives up its CPU with 0 spin locks held, interrupts off 1 deep")
    panics("yield_with_a_spin_lock", r"thread \d+ gives up its CPU with 1 spin locks held, interrupts off 1 deep")


@test("a panic of the CPU that has the machine, outside of a command, ends it, though another CPU waits to panic")
def inside_while_another_waits():
    r = boot(sets=["kern.test=death_inside_while_another_waits"], smp=2,
             options=["--kernel", str(BUILD / "kestrel-test")]).expect(101)
    said = r"panic inside a panic, at .*: the one that has the machine; the first: the one that waits$"
    check_match(said, r.out.replace("\r", ""), "both panics")


@test("a user copy fails for a bad user address; a bad kernel address panics")
def user_copy_with_a_bad_kernel_address():
    panics("user_copy_from_a_bad_kernel_address", r"page fault, address 0x[0-9a-f]+")
    panics("user_copy_to_null", r"user copy: \S+ is not a kernel address")


@portable_test("debug.mm.poison: who writes to memory that is free is found; and without that, all goes on")
def writes_to_free_memory():
    for name, place in (("page", r"0x120 has \S+; freed by ktest_fn_death_write_to_a_free_page\+0x[0-9a-f]+, CPU \d"),
                        ("object", "0x10 has 0x6b6b6b6b076b6b6b; freed by kfree")):
        panics(f"write_to_a_free_{name}", rf"\S+ was written to after it was freed: offset {place}", "debug.mm.poison=1")
    boot("load fork -n 20\nload pipe -n 20\n", smp=2, sets=["debug.mm.poison=1"]).expect(0)


if __name__ == "__main__":
    main()
