#!/usr/bin/python3
"""test_report.py - `ktrdump report` in the guest and on the host, and the names of the functions in it.

That its numbers are right, tests/unit/export_report_test.py says of small streams, and test_export.py of those of guests.
"""
import json
import os
import subprocess

from harness import ARCH, ROOT, boot, check, check_eq, check_match, json_lines, ktrdump, main, portable_test, test

# What a script runs may be over between two clock ticks. A sleep ends by a timer interrupt, which comes to an idle CPU: a sample
# of the kernel, however fast the machine is.
MASK = "SCHED,INTR,SYSC,PROC,TRAP,VM,LOCK,CALLOUT"


def report(path, *args):
    status, out, err = ktrdump("report", *args, "--format", "jsonl", "-i", path)
    check_eq((status, err), (0, ""), f"ktrdump report {args}")
    return json_lines(out)


@portable_test("in the guest a report of the rings is what the host makes of the same events, with the names of functions")
def guest_report():
    run = boot(f"""
sysctl debug.ktr.entries=32768 > /dev/null
sysctl debug.ktr.mask={MASK} > /dev/null
load mix -n 3 -j 2 > /dev/null
sleep 0.1
sysctl debug.ktr.mask=NONE > /dev/null
ktrdump report cpu,thread,syscall,lock,fault,irq,wakeup,profile --format jsonl
sysctl debug.ktr.alq_enable=1 > /dev/null
""", smp=2, trace=True, sets=["debug.ktr.alq_enable=0"]).expect()
    guest = [line for line in run.out.splitlines() if line.startswith("{")]
    _, host, _ = ktrdump("report", "cpu,thread,syscall,lock,fault,irq,wakeup,profile", "--format", "jsonl", "-i", run.trace)
    check(len(guest) > 100, f"{len(guest)} rows")
    check_eq(guest, host.splitlines(), "rows")
    named = [row for row in map(json.loads, guest) if row.get("table") == "functions" and "row" not in row]
    check(named and all(row["function"] and not row["function"].startswith("0x") for row in named),
          f"functions without names in the profile: {named}")


@test("a profile names the functions and lines that nm and addr2line name, and all samples are in it")
def profile():
    run = boot(f"sysctl debug.ktr.mask={MASK}\nload fork -n 60\nload fault -n 40\nload syscall -n 20000\n", smp=2, trace=True,
               sets=["debug.ktr.entries=65536"]).expect()
    kernel = ROOT / f"build/{ARCH}/kestrel"
    pcs = [e["args"][e["names"].index("pc")] for e in run.events if e["fmt"].startswith("interrupt enter") and "timer" in e["args"]
           and not e["args"][e["names"].index("user")]]
    symbols = sorted((int(words[0], 16), words[2]) for words in map(str.split, subprocess.run(
        ["nm", str(kernel)], capture_output=True, text=True, check=True).stdout.splitlines()) if len(words) == 3 and words[1] in "tTwW")
    rows = report(run.trace, "profile")
    functions = {row["function"]: row["count"] for row in rows if row.get("table") == "functions" and "row" not in row}
    expected = {}
    for pc in pcs:
        best = max(a for a, _ in symbols if a <= pc)
        names = [n for a, n in symbols if a == best]
        name = next((n for n in names if n in functions), names[0])
        expected[name] = expected.get(name, 0) + 1
    check_eq({k: v for k, v in functions.items() if not k.startswith("(program")}, expected, "samples by function")
    places = {row["place"] for row in rows if row.get("table") == "places" and "row" not in row}
    lines = subprocess.run(["addr2line", "-e", str(kernel), *map(hex, pcs)], capture_output=True, text=True, check=True).stdout
    right = {os.path.normpath(line.split(" (")[0].split(str(ROOT) + "/")[-1]) for line in lines.splitlines()}
    wrong = {p for p in places if p and p not in right}
    check_eq(sorted(wrong), [], f"lines that addr2line does not name; it names {sorted(right)}")
    total = next(row for row in rows if row.get("table") == "functions" and row.get("row") == "total")
    check_eq(total["count"], sum(functions.values()), "total")


@portable_test("a kernel that did not make the trace gives no names: the message says so, and addresses are shown")
def other_kernel():
    run = boot(f"sysctl debug.ktr.mask={MASK}\nload mix -n 2\nsleep 0.1\n", trace=True).expect()
    status, out, err = ktrdump("report", "profile", "-N", ROOT / f"build/{ARCH}/kestrel-test", "-i", run.trace)
    check_eq(status, 0, "status")
    check_match("not the kernel that made the trace", err, "message")
    check_match(r"^0x[0-9a-f]{16} ", out, "addresses")
    status, _, err = ktrdump("report", "profile", "-N", "/nonexistent", "-i", run.trace)
    check_match("No such file", err, "message about a file that is not there")


@portable_test("a report of a lock names who had it and where, and of a page fault what served it")
def places():
    run = boot("""
sysctl debug.ktr.mask=LOCK,TRAP,VM,SCHED
load fault -n 20
until ktrdump report lock --format jsonl -i /dev/ktr | grep -q '"holders".*"place":"'; do
    sysctl debug.ktr.mask=LOCK,TRAP,VM,SCHED > /dev/null
    load lock -n 50 -j 4
    sysctl debug.ktr.mask=NONE > /dev/null
done
""", smp=4, trace=True, sets=["debug.ktr.entries=65536"]).expect()
    rows = report(run.trace, "lock,fault")
    holders = [row for row in rows if row.get("table") == "holders" and row.get("place")]
    check(holders, "nobody who had a lock while another waited")
    for row in holders:
        check_match(r"^[a-z]+/[\w/]+\.[chS]:\d+$", row["place"], "place")
    kinds = {row["kind"] for row in rows if row.get("table") == "faults" and "row" not in row}
    check({"zero fill", "cow copy"} <= kinds, f"what served page faults: {kinds}")


# Each begins a trace of SCHED; the CPUs but one have nothing to do then.
BEGINNINGS = ["sysctl debug.ktr.mask=SCHED", "sysctl debug.ktr.clear=1", "ktr on SCHED", "sysctl debug.ktr.cpumask=all"]


@portable_test("a trace says from its beginning on what each CPU runs: with the class, after a clear, with more CPUs, and at the boot")
def beginnings():
    script = "sleep 0.01\n" + "".join(
        f"sysctl debug.ktr.mask={'SCHED' if 'mask=SCHED' not in way and 'ktr on' not in way else 'NONE'} debug.ktr.cpumask=all\n"
        f"{'sysctl debug.ktr.cpumask=none' if 'cpumask' in way else 'true'}\nsysctl debug.ktr.clear=1\n{way}\n"
        "sysctl debug.ktr.mask=NONE\nktr off SCHED\necho =====\nktrdump --format jsonl\n" for way in BEGINNINGS)
    run = boot(script, smp=4, mask="SCHED", trace=True).expect()
    first = {}
    for e in run.events:
        first.setdefault(e["cpu"], e["text"])
    for cpu in range(4):
        check_match(rf'id:"idle/{cpu} tid \d+", state:"running", attributes: prio:\d+, starts:{cpu}$', first.get(cpu, ""),
                    f"the first event of cpu {cpu} since the boot")
    # Up to the first clear: what that drops may reach back to the last event of an idle CPU that was delivered.
    booted = min([gap["from_ns"] - 1 for gap in run.gaps], default=run.events[-1]["ns"])
    rows = report(run.trace, "cpu", "--until", f"{booted}ns")
    check_eq({row["unknown_ns"] for row in rows if row.get("table") == "cpus" and "cpu" in row}, {0}, "unknown time of the boot")
    check_eq(rows[0]["known_ns"], rows[0]["all_ns"], "what is known of the boot")
    for way, part in zip(BEGINNINGS, run.out.split("=====\n")[1:]):
        told = {e["cpu"] for e in map(json.loads, (line for line in part.splitlines() if line.startswith("{")))
                if 'state:"running"' in e.get("text", "")}
        check_eq(told, set(range(4)), f"CPUs that say what they run after {way}")


if __name__ == "__main__":
    main()
