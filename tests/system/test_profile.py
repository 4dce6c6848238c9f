#!/usr/bin/python3
"""test_profile.py - profile-N fires on every CPU and tick-N on one, at the rate of its name, and says what it interrupted."""
import re

import tracecheck as tc
from harness import ARCH, BUILD, boot, check, check_eq, check_match, main, portable_test, test

RING = "debug.ktr.entries=65536"
ARGS = re.compile(r"^profile:::([\w-]+): pc (0|0xf\w+) user (0|0x\w+)$")


def fired(run, probe):
    """(event, pc, user pc) of each event of a probe."""
    found = [(e, ARGS.match(e["text"])) for e in run.events if e["text"].startswith(f"profile:::{probe}:")]
    check(all(m for _, m in found), f"{probe} has an event with other arguments: {found[:3]}")
    return [(e, int(m.group(2), 16 if len(m.group(2)) > 1 else 10), int(m.group(3), 16 if len(m.group(3)) > 1 else 10))
            for e, m in found]


@test("a rate is kept without drift, an event tells either a kernel's or a program's pc, and what is off does not fire")
def rate():
    run = boot("ktr on 'profile:::profile-997,profile:::tick-5ms,profile:::profile-2500usec'\nload mix -n 300 -j 2\nload mix -n 2\n"
               "ktr off\nload mix -n 20\n", trace=True, sets=[RING], options=["--icount"]).expect()
    tc.no_gaps(run)
    ends = [e["ns"] for e, _ in tc.named(run, r"exit: pid \d+ ")]
    for probe, period in (("profile-997", 1e9 // 997), ("tick-5ms", 5e6), ("profile-2500usec", 2.5e6)):
        found = fired(run, probe)
        times = [e["ns"] for e, _, _ in found]
        check(len(times) > 20, f"{probe} fired {len(times)} times, expected more")
        # Interrupts may be off for a while: but the times stay on their grid.
        late = [(t - times[0]) % period for t in times]
        late = [min(n, period - n) for n in late]
        check(sorted(late)[len(late) // 2] < 50_000, f"{probe} drifts: {late[:10]} ... {late[-10:]} ns from a multiple of {period}")
        check(abs((times[-1] - times[0]) / period - (len(times) - 1)) < 2, f"{probe} fired {len(times)} times in {times[-1] - times[0]} ns")
        for e, pc, user in found:
            check((pc == 0) != (user == 0), f"{e['text']}: expected one pc")
        check(ends == [] or times[-1] < ends[-1] + period, "it fires after it was switched off")
    check(any(user for _, _, user in fired(run, "profile-997")), "no program was interrupted")
    check(any(pc for _, pc, _ in fired(run, "profile-997")), "the kernel was never interrupted")


@portable_test("profile-N fires on every CPU and tick-N on one, from the boot on")
def cpus():
    run = boot("load mix -n 40 -j 4\n", smp=4, trace=True,
               sets=[RING, "debug.ktr.on=profile:::profile-500,profile:::tick-2ms"]).expect()
    check_eq({e["cpu"] for e, _, _ in fired(run, "profile-500")}, {0, 1, 2, 3}, "CPUs of profile-500")
    check_eq({e["cpu"] for e, _, _ in fired(run, "tick-2ms")}, {0}, "CPUs of tick-2ms")


@portable_test("a rate that cannot be is refused with a reason; probes that are off make room for others")
def names():
    bad = {"tick-199us": "expected 1 to 5000 Hz", "tick-1001d": "200us to 1000d", "profile-0": "expected 1 to 5000 Hz",
           "profile-5001": "expected 1 to 5000 Hz", "profile-": "expected a rate in Hz", "tick-5x": "expected a rate in Hz",
           "tick-99999999999999999999s": "expected a rate in Hz", "profile-5001hz": "expected 1 to 5000 Hz"}
    good = ["profile-5000", "profile-1hz", "tick-200us", "tick-1000d", "tick-3min", "tick-2h", "tick-1hour", "tick-250000ns"]
    script = [f"ktr on 'profile:::{name}'" for name in bad] + [f"ktr on 'profile:::{name}' && ktr off" for name in good]
    script += ["i=1; while [ $i -le 100 ]; do ktr on profile:::profile-$i >/dev/null && ktr off >/dev/null; i=$((i + 1)); done",
               "ktr on 'profile:::tick-41s,profile:::profile-43'", "ktr off > /dev/null",
               "dtrace -qn 'tick-1ms { a++; } profile-89 { b++; } tick-91ms /a > 5 && b > 1/ { printf(\"all\\n\"); exit(0); } tick-20s { exit(0); }'",
               "ktr probes -c profile:::", "i=1", "while [ $i -le 31 ]; do ktr on profile:::tick-${i}s >/dev/null; i=$((i + 1)); done",
               "ktr on 'profile:::tick-32s,profile:::tick-34s'", "ktr on profile:::tick-32s > /dev/null", "ktr on profile:::tick-33s", "ktr probes -c profile:::", "ktr on 'profile:::tick-[1-3]s'", ""]
    run = boot("\n".join(script)).expect()
    for name, why in bad.items():
        text = name.split("-", 1)[1]
        check_match(rf'^ktr: "{text}": .*{re.escape(why)}', run.out, name)
    check_eq(run.out.count("1 trace point switched on\n"), len(good), "rates that were taken")
    check_eq(re.findall(r"^profile +(\d+ +\d+)$", run.out, re.M), ["32  0", "32 32"], "probes of profile")
    check_eq(len(re.findall(r"^ktr: 32 probes of profile are on", run.out, re.M)), 2, "one too many, alone or with another one")
    check_match(r"^2 trace points switched on$", run.out, "what a request names makes no room for the rest of it")
    check_match(r"^all$", run.out, "the same in D")
    check_match(r"^0 trace points switched on; 3 were on$", run.out, "a glob names those that are there")


ENTRY = {"x86_64": "x86_syscall", "aarch64": "aarch64_trap"}[ARCH]
# What calls chain_inner() (tests/kernel/chain.c), outwards.
CALLERS = ["chain_outer", "chain_run", "sysctl_value_set", "sysctl_apply", "sysctl_set_text", "sys_sysctl", "entry_syscall", ENTRY]
CHAIN = "sysctl debug.ktest.chain=3000000"
# With one rate alone all samples may fall on the same instruction of the loop, since time is counted in instructions.
STACKS = f"""
dtrace -qn 'profile-4999, profile-4987 /execname == "sysctl" && arg0 != 0/ {{ @[stack()] = count(); }}' -c '{CHAIN}'
echo =====
dtrace -qn 'irq:::irq_handler_entry /execname == "sysctl"/ {{ @[stack(), stackdepth] = count(); @c[func(caller)] = count(); }}' -c '{CHAIN}'
echo =====
cd /sys/kernel/tracing
echo 'stacktrace if irq >= 0' > events/irq/irq_handler_entry/trigger
echo > trace
{CHAIN}
echo '!stacktrace' > events/irq/irq_handler_entry/trigger
cat trace
echo =====
echo scheduler_tick > stack_trace_filter
echo 0 > stack_max_size
sysctl kernel.stack_tracer_enabled=1
{CHAIN}
sysctl kernel.stack_tracer_enabled=0
cat stack_trace
"""


def chains(stacks, inside):
    """Of those stacks that have chain_inner, all must be whole; `inside`: below a handler, whose frames are returned."""
    found = [stack for stack in stacks if "chain_inner" in stack]
    heads = [stack[:stack.index("chain_inner")] for stack in found]
    for stack, head in zip(found, heads):
        check_eq(stack[len(head) + 1:], CALLERS, f"what calls chain_inner in {stack}")
        while head[-1:] == ["chain_leaf"]:
            head.pop()
        check(bool(head) == inside, f"functions that chain_inner calls: {stack}")
    check(found, f"no stack with chain_inner: {stacks}")
    return heads


@test("a stack has all functions of interrupted code, at any instruction: of profile-N, in an interrupt, of ftrace's trigger and deepest stack")
def stacks():
    out = boot(STACKS, options=["--kernel", str(BUILD / "kestrel-test"), "--icount"]).expect().out.replace("\r", "")
    sampled, handler, trigger, deepest = out.split("=====\n")

    def of_d(text):
        check("0x" not in re.sub(r"\+0x", "", text), f"what is not a function: {text}")
        return [re.findall(r"kernel`(\w+)(?:\+0x\w+)?$", part, re.M) for part in text.split("\n\n")]
    chains(of_d(sampled), False)
    check({"chain_leaf", "chain_inner"} <= {stack[0] for stack in of_d(sampled) if stack}, f"where chain_leaf and chain_inner were interrupted: {sampled}")
    trap = {"x86_64": "x86_trap", "aarch64": "aarch64_trap"}[ARCH]
    for head in chains(of_d(handler), True):
        check_eq(head, ["entry_interrupt", trap], "functions of the handler")
    for part in handler.split("\n\n"):
        if m := re.search(r"\n +(\d+) +\d+\n?", part):
            check_eq(int(m[1]), part[:m.start()].count("kernel`"), "stackdepth")
    check_match(rf"^ +kernel`{trap} +\d+$", handler, "the handler's caller")
    for head in chains([re.findall(r"^ => (\w+)$", part, re.M) for part in trigger.split("<stack trace>\n")], True):
        check_eq(head, ["entry_interrupt", trap], "functions of the handler, by ftrace")
    rows = re.findall(r"^ *\d+\) +(\d+) +(\d+) +(\w+)\+", deepest, re.M)
    check_eq(chains([[name for *_, name in rows]], True)[0][0], "scheduler_tick", "the innermost function")
    check_eq([int(depth) for depth, *_ in rows], [sum(int(size) for _, size, _ in rows[i:]) for i in range(len(rows))], "depths")


if __name__ == "__main__":
    main()
