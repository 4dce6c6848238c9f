"""guest.py - the shell loops that the guest of a soak runs, made at random from a seed.

Each loop runs until /tmp/over exists, and then reports in /tmp/NAME.over.
"""
CLASSES = "GEN LOCK SMP PMAP MALLOC TRAP INTR SIG PROC SYSC INIT EVH VFS VM RUNQ CALLOUT SCHED".split()
SITES = ("fork: *", "*: *", "s*", "switch_out", "entry_*", "kernel/fs/*", "kernel/sched/sched.c:*", "KTRGRAPH*", "*:1*", "*")
COMMANDS = 60  # of one loop, until it starts again
SERIAL = "/dev/vport0p1"

LOOP = """
while [ ! -e /tmp/over ]; do
{body}
done
echo {result} > /tmp/{name}.over
"""
# For a short time, sends the stream to a file; the file must be whole, and is counted.
FILES = """
n=$((n + 1))
sysctl debug.ktr.alq_file=/tmp/soak.ktr > /dev/null || exit 1
sleep {pause}
sysctl debug.ktr.alq_file=%s > /dev/null || exit 1
ktrdump report events -i /tmp/soak.ktr > /tmp/soak.out || {{ echo file $n: ktrdump: status $?; }}
sum=$((sum + $(sed -n 's/^trace .* events \\([0-9]*\\), .* parts \\([0-9]*\\)$/\\1 + \\2/p' /tmp/soak.out)))
rm /tmp/soak.ktr
sleep {rest}
""" % SERIAL


def mask(rng):
    kind = rng.random()
    if kind < 0.4:
        return "ALL"
    return "NONE" if kind < 0.5 else ",".join(rng.sample(CLASSES, rng.randint(1, 8)))


def flip(rng):
    """One change of what is recorded."""
    what = rng.random()
    if what < 0.4:
        command = f"sysctl debug.ktr.mask={mask(rng)}"
    elif what < 0.8:
        command = f"ktr {rng.choice(('on', 'off'))} '{rng.choice(SITES)}'"
    elif what < 0.9:
        command = f"sysctl debug.ktr.cpumask={rng.choice(('all', '0-3,5', '1', 'all'))}"
    else:
        command = "sysctl debug.ktr.clear=1"
    return f"{command} > /dev/null || exit 1\nn=$((n + 1))\nsleep {rng.choice((0, 0.01, 0.03, 0.1))}"


def resize(rng):
    return f"sysctl debug.ktr.entries={2 ** rng.randint(2, 15)} > /dev/null || exit 1\nn=$((n + 1))\n" \
           f"sleep {rng.choice((0.05, 0.2, 0.5))}"


def files(rng):
    return FILES.format(pause=rng.choice((0.1, 0.3, 0.6)), rest=rng.choice((0.2, 0.5, 1)))


def work(rng):
    return f"load mix -n {rng.randint(2, 20)} -j {rng.randint(1, 8)} > /tmp/load.out || {{ cat /tmp/load.out; exit 1; }}\n" \
           "n=$((n + 1))"


LOOPS = {"flip1": flip, "flip2": flip, "resize": resize, "files": files, "work": work}


def scripts(rng):
    """{name: text} of the loops."""
    return {name: "n=0\nsum=0\n" + LOOP.format(name=name, result="$n $sum",
                                               body="\n[ -e /tmp/over ] && break\n".join(make(rng) for _ in range(COMMANDS)))
            for name, make in LOOPS.items()}
