#!/usr/bin/python3
"""test_fbt_all.py - with every function's probes on: what the trace says holds together, nothing breaks, and afterwards the
code is as it was built."""
import collections
import fnmatch
import pathlib
import re
import subprocess
import tempfile

import tracecheck as tc
from fbtcheck import calls_of, disassembly, pairs_match, symbols
from harness import (ARCH, ARCHS, BUILD, WHOLE, Skipped, boot, check, check_eq, check_match, cpus, ktr_stats, main, scratch_file,
                     test, times)

ENTRIES = "debug.ktr.entries=262144"


def law(smp):
    """The masks and the functions are off when the stream ends, so that the accounting stays as it was then."""
    run = boot("ktr on 'fbt:::'\nload mix -n 1 -j 2\nktr off\nsysctl debug.ktr.alq_enable=0\nsysctl debug.ktr.stats\n",
               smp=smp, sets=[ENTRIES], trace=True, mask="SCHED,PROC").expect()
    check_match(r"^load mix: n=1 jobs=2 ok, \d+ ms$", run.out, "load's summary")
    tc.timestamps_ascend(run)
    stats = ktr_stats(run.out)
    tc.accounting_holds(stats)
    events, gaps = collections.Counter(e["cpu"] for e in run.events + run.parts), collections.Counter()
    for g in run.gaps:
        gaps[g["cpu"]] += g["gap"]
    for cpu, s in stats.items():
        check_eq((events[cpu], gaps[cpu]), (s["delivered"], s["lost"]), f"events and losses of cpu {cpu} in the stream")
    # Places are switched on and off at once, but not at one moment: the calls that count are between load and `ktr off`.
    since, until = (tc.named(run, rf"exec: pid \d+ name {name} ")[-1][0]["ns"] for name in ("load", "ktr"))
    check(pairs_match(run, since, until) > 3000, "hardly any function returned")


for _smp in cpus("load mix with every function on"):
    test(f"load mix with every function on, {_smp} CPUs: what is lost is counted, each entry has its return on its thread in order, "
         "and time does not fall")(lambda smp=_smp: law(smp))


@test("all functions are switched on, or off, by at most three rounds of interrupts on 4 CPUs")
def rounds():
    run = boot("ktr on 'fbt:::'\nktr off 'fbt:::'\n", smp=4, sets=[ENTRIES], trace=True, mask="SMP,PROC").expect()
    changed = re.findall(r"^(\d+) trace points switched (on|off)$", run.out, re.M)
    check(len(changed) == 2 and int(changed[0][0]) > 1500 and changed[0][0] == changed[1][0], f"switched: {changed}")
    on, off = tc.processes(run, "ktr")
    for pid in (on, off):
        asked = [(int(m[1]), int(m[2])) for e, m in tc.named(run, r"ipi send: call cpu (\d+) generation (\d+)$") if e["tid"] == pid]
        rounds_of = {generation for _, generation in asked}
        check(2 <= len(rounds_of) <= 3, f"rounds of process {pid}: {sorted(rounds_of)}, expected 2 or 3")
        check_eq(len(asked), 3 * len(rounds_of), "interrupts that three CPUs got")


@test("the room for probes makes the code of functions at most five percent larger")
def room():
    (starts, places), at = disassembly(), symbols()
    size = at["__fbt_stubs"] - at["__ktr_record_start"]
    no_op = {"x86_64": ("nopl", "0x0(%rax,%rax,1)"), "aarch64": ("nop", "")}[ARCH]
    entries = sum(places.get(addr) == no_op for addrs in starts.values() for addr in addrs)
    inside = sorted(a for a in places if at["__ktr_record_start"] <= a < at["__fbt_stubs"])
    after = {"x86_64": ("int3", ""), "aarch64": ("ret", "")}[ARCH]
    returns = sum(places[b] == after and places[a] == {"x86_64": ("ret", ""), "aarch64": ("nop", "")}[ARCH]
                  for a, b in zip(inside, inside[1:]))
    check(entries > 800 and returns > 1000, f"{entries} entries and {returns} returns, expected more")
    added = entries * {"x86_64": 5, "aarch64": 4}[ARCH] + returns * 4
    check(added <= 0.05 * (size - added), f"{added} bytes of {size - added}: {100 * added / (size - added):.1f} %, expected at most 5 %")


TOUR = """exec > /dev/null 2>&1
for i in switch lock fork pipe fault syscall malloc mix file; do load $i -n 3 -j 2; done
mkdir /tmp/d; echo a b > /tmp/d/f; cp /tmp/d/f /tmp/d/g; mv /tmp/d/g /tmp/d/h; chmod 600 /tmp/d/h; touch /tmp/d/t
cat /tmp/d/f | grep a | head -1 | tail -1 | tee /tmp/d/u | wc; ls -l /tmp/d /dev; rm -r /tmp/d
ps -T; sysctl kern.proc; stty rows 30; stty rows 24; dmesg; sysctl -a; uptime; sleep 0.1; hexdump /etc/motd
ktrace -f /tmp/kt ls /; kdump -f /tmp/kt
ktr on SCHED,PROC; ktr probes; ktr probe add 'p:x sys_read $arg1'; ktr on kprobe:::x; cat /etc/motd; ktr probe list
ktr off kprobe:::x; ktr probe del x; ktr on profile:::tick-1s; ktr off profile:::tick-1s; ktr off SCHED,PROC; sysctl debug.ktr.clear=1
ktr profile 'sys_*' -- ls /; ktr graph sys_read -- cat /etc/motd; ktrdump | tail -1
nosuch; cat /nothing; sh -c 'kill -9 $$'; sh -c 'kill -STOP $$' & until grep -q 'State:.T' /proc/$!/status; do :; done; kill -CONT $!; wait
/bin/su 1000 user_test do calls
cd /mnt; mkdir d e; seq 30000 > d/f; ln d/f g; ln -s d/f s; ln -s {long} l; cat s g | tail -1; mv g e/h; echo >> e/h; mv d e; cp /bin/busybox b; ./b true; truncate -s 5 e/h
chmod 600 e/h; chown 1 e/h; mkfifo p; mknod n c 1 3; ls -lR; sync; dd if=/dev/null of=e/h conv=fsync; df /mnt; head -c 9 /dev/vda; blockdev --getsize64 /dev/vda; seq 5000 | dd of=big seek=80000; rm -r e b p n l big; linux_test maps /mnt/maps
fallocate -l 9000 a; mount -o remount,ro /mnt; mount -o remount,rw /mnt; cd /; umount /mnt; mount -t ext2 /dev/vda /mnt; ls /mnt/lost+found; mount -t ext2 /dev/null /tmp/d
linux_test maps /tmp/maps; cat /sys/devices/system/cpu/o* /sys/devices/system/cpu/kernel_max /sys/devices/system/cpu/cpu0/topology/*; ls -l /proc/self/ns; ifconfig; ifconfig lo up; httpd -p 8080; netstat -an; route
cat /proc/[a-z]* /proc/$$/* /proc/$$/task/$$/* /proc/$$/fdinfo/* /proc/sys/kernel/* /proc/sys/kernel/random/* | tail -1; ls -l /proc /proc/$$/fd; cat /proc/4/stat | wc
for f in hostname domainname; do echo name > /proc/sys/kernel/$f; sysctl kernel.$f=0123456789012345678901234567890123456789012345678901234567890123456789; done; cat /proc/sys/kernel/sem > /tmp/sem; cat /tmp/sem > /proc/sys/kernel/sem
cd /sys/kernel/tracing
for f in *; do test $f = trace_pipe || test $f = events || cat $f; done 2>/dev/null | wc; for f in options/* events/enable events/VFS/* events/kprobes/* per_cpu/cpu0/*s; do cat $f; done
echo 'sys_r*' > set_ftrace_filter; echo sys_read > set_graph_function; echo $$ > set_ftrace_pid; echo function > current_tracer; cat /etc/motd
head -20 trace; cat set_ftrace_pid; echo > set_ftrace_pid; echo function_graph > current_tracer; cat /etc/motd; head -20 trace; echo 1 > options/funcgraph-proc; head -30 trace; echo nop > current_tracer
echo 'sys_*' > set_ftrace_filter; echo 1 > function_profile_enabled; cat /etc/motd; cat trace_stat/function*; echo 0 > function_profile_enabled; cat trace_stat/function0
echo 'p:y sys_openat $arg1 name=+0(+8($arg1)):string' > kprobe_events; echo 1 > events/kprobes/y/enable; cat events/kprobes/y/*; cat kprobe_events kprobe_profile error_log /sys/kernel/debug/kprobes/list; cat /etc/motd; tail -3 trace; echo 0 > events/kprobes/enable; echo > kprobe_events; ls events/kprobes
echo 'p:g/e sys_openat b=+0(+8($arg1)):char[2] c=\\"text" d=\\-1 $stack0:b4@4/8 s=@ncpus:symbol[1]' > kprobe_events; echo 'p:g/e sys_read b=+0(+8($arg1)):char[2] c=\\"text" d=\\-1 $stack0:b4@4/8 s=@ncpus:symbol[1]' >> kprobe_events
echo 'r:g/e sys_read' >> kprobe_events; echo 'p:g/e sys_read x=%sp' >> kprobe_events; echo 1 > events/g/enable; cat /etc/motd; tail -3 trace; echo '-:g/e sys_read' >> kprobe_events; echo 0 > events/g/enable; echo '!p:g/' >> dynamic_events; ls events events/g
echo 'p:u /bin/linux_test:@probed_sum $comm f=@+0' > uprobe_events; echo 'r /bin/linux_test:@probed_recurse $retval' >> uprobe_events; echo 'p:v /bin/no:1' >> uprobe_events
echo 1 > events/uprobes/enable; linux_test probed 2; linux_test probed & cat uprobe_events uprobe_profile error_log; tail -3 trace; echo 0 > events/uprobes/enable; kill -9 $!; echo > uprobe_events; ls events/uprobes
echo 'e:g/t sched.sched_switch p=$next_pid c=$next_comm:string if next_pid > 1' > dynamic_events; echo 'e:g/no sched.no x=$no' >> dynamic_events; echo 'e:g/no sched.sched_switch x=$next_pid if no == 1' >> dynamic_events; echo 'p:g/k sys_read $arg1' >> dynamic_events; echo 'e:g/u g.k' >> dynamic_events
cat dynamic_events error_log; echo > trace; echo 1 > events/g/enable; echo 1 > events/sched/sched_switch/enable; cat /etc/motd; tail -3 trace; for c in 0 1 2 3; do timeout 1 head -c 4096 per_cpu/cpu$c/trace_pipe_raw | tail -c 1; done; echo 0 > events/enable; echo > dynamic_events; ls events/g
echo vfs:lookup > set_event; echo 1 > events/VOP/enable; echo 0 > events/enable; echo 'x =' > events/vfs/lookup/filter
echo 'error == 0' > events/vfs/lookup/filter; echo 0 > events/vfs/lookup/filter; echo 'name ~ "m*" && comm == cat' > events/vfs/lookup/filter; echo 1 > events/vfs/lookup/enable; echo 'error == 0' > events/VOP/filter; cat /etc/motd; echo > set_event
echo text > trace_marker; head -1 trace_pipe; echo 1 > options/irq-info; echo noirq-info > trace_options; echo irq-info > trace_options; echo > error_log
echo 3 > max_graph_depth; echo 0 > max_graph_depth; echo 0 > tracing_thresh; echo f > tracing_cpumask; echo 1 > tracing_on; echo mono > trace_clock; echo 0 > buffer_size_kb
echo 'lat u64 us char what[16]; long arg2' > synthetic_events; echo 'hist:keys=common_pid:ts0=common_timestamp.usecs:who=comm:clock=mono' > events/raw_syscalls/sys_enter/trigger; cat events/raw_syscalls/sys_enter/trigger
echo 'hist:keys=common_pid:us=common_timestamp.usecs-$ts0,n=-(6*7),m=ret/$n:vals=ret.percent,$n+id.log2:onmatch(raw_syscalls.sys_enter).trace(lat,$us,$who,arg2)' > events/raw_syscalls/sys_exit/trigger
echo 'hist:keys=us.log2,what:sort=what.descending:size=200:name=x' > events/synthetic/lat/trigger; echo 'hist:keys=stacktrace:pause' > events/kmem/kmalloc/trigger
echo 'hist:keys=call_site.sym-offset,bytes_req.buckets=8:vals=bytes_alloc.graph if bytes_req > 1' >> events/kmem/kmalloc/trigger
echo 'hist:keys=id.syscall,common_pid.execname:vals=arg0.hex' >> events/raw_syscalls/sys_enter/trigger
echo 'enable_hist:kmem:kmalloc:5' > events/sched/sched_process_exec/trigger; echo 'enable_event:kmem:kfree' >> events/sched/sched_process_exec/trigger
echo 'stacktrace:3 if pid > 1' >> events/sched/sched_process_exec/trigger; echo 'sys_get*:traceon:4' >> set_ftrace_filter; cat set_ftrace_filter /etc/motd
cat events/kmem/*/trigger events/kmem/*/hist synthetic_events dynamic_events trace | tail -3; echo 'hist:keys=nosuch' > events/raw_syscalls/sys_exit/trigger; echo 'hist:keys=id:x=nosuch' > events/raw_syscalls/sys_exit/trigger
echo 'hist:keys=stacktrace:clear' >> events/kmem/kmalloc/trigger; echo 'hist:keys=stacktrace:cont' >> events/kmem/kmalloc/trigger; echo 'hist:keys=id:onmatch(no.no).trace(lat,$x,comm)' >> events/raw_syscalls/sys_exit/trigger; echo '!sys_getppid:traceon' >> set_ftrace_filter; echo '!sys_get*:traceon' >> set_ftrace_filter; cat set_ftrace_filter
for f in synthetic/lat raw_syscalls/sys_exit raw_syscalls/sys_enter kmem/kmalloc; do echo 0 > events/$f/trigger; done
for t in enable_hist:kmem:kmalloc enable_event:kmem:kfree stacktrace; do echo "!$t" >> events/sched/sched_process_exec/trigger; done
echo '!lat' >> synthetic_events; echo 's:b s32 x' > dynamic_events; echo '-:b' >> dynamic_events
echo 1 > events/sched/sched_switch/enable; echo 1 > events/syscalls/sys_enter_openat/enable; cat /etc/motd; for c in 0 1; do timeout 1 head -c 4096 per_cpu/cpu$c/trace_pipe_raw | tail -c 1; done; echo > set_event
cat events/header_page hwlat_detector/*; echo 1000 > hwlat_detector/width; echo 20000 > hwlat_detector/window; echo per-cpu > hwlat_detector/mode; echo 1 > tracing_thresh
echo hwlat > current_tracer; until grep '#[0-9]' trace; do sleep 0.05; done; echo nop > current_tracer; echo 0 > tracing_thresh
echo 0-1 > osnoise/cpus; echo 10000 > osnoise/runtime_us; echo 20000 > osnoise/period_us; cat osnoise/*; echo osnoise > current_tracer; until grep -q osnoise/ trace; do sleep 0.05; done; head -12 trace
echo nop > current_tracer; echo 1 > osnoise/print_stack; echo timerlat > current_tracer; until grep -q stack trace; do sleep 0.05; done; head -20 trace; echo nop > current_tracer
B=/sys/block/vda/trace; for f in pid start_lba; do echo 0 > $B/$f; done; echo 99999999 > $B/end_lba; echo queue,issue > $B/act_mask; cat $B/* /sys/block/vda/[ders]*; echo blk > current_tracer; echo 1 > events/block/enable; echo > /mnt/q; sync; head -5 trace
echo 1 > options/blk_classic; head -5 trace; echo 0 > options/blk_classic; echo nop > current_tracer; echo 0 > $B/enable; echo > set_event
echo 1 > events/sched/sched_process_fork/enable; echo snapshot > events/sched/sched_process_exec/trigger; echo sys_kill:dump >> set_ftrace_filter; kill -0 $$; cat snapshot; sleep 0.1
echo '!snapshot' > events/sched/sched_process_exec/trigger; echo '!sys_kill:dump' >> set_ftrace_filter; echo 1 > tracing_on; echo 1 > snapshot; echo 2 > per_cpu/cpu0/snapshot; cat snapshot; echo 0 > snapshot; echo > set_event
mkdir instances/i; echo 1 > instances/i/events/sched/enable; echo 'error == 0' > instances/i/events/vfs/lookup/filter; echo 1 > instances/i/events/vfs/lookup/enable; echo 128 > instances/i/buffer_size_kb
ls instances instances/i instances/i/events instances/i/events/sched; echo 0 > instances/i/tracing_on; echo 1 > instances/i/tracing_on; echo text > instances/i/trace_marker; cat instances/i/trace; rmdir instances/i
echo sys_kill > stack_trace_filter; sysctl kernel.stack_tracer_enabled=1; echo 0 > stack_max_size; kill -0 $$; sysctl kernel.stack_tracer_enabled=0; cat stack_trace stack_max_size; echo > stack_trace_filter
echo sys_kill > set_ftrace_filter; echo irqsoff > current_tracer; load mix -n 1; cat trace; echo 0 > tracing_max_latency; echo wakeup > current_tracer; sleep 0.1; echo wakeup_rt > current_tracer; cat trace tracing_max_latency; echo nop > current_tracer; echo > set_ftrace_filter
echo 'hist:keys=id:r=ret:onmax($r).save(comm):onchange($r).snapshot()' > events/raw_syscalls/sys_exit/trigger; cat events/raw_syscalls/sys_exit/hist; echo > events/raw_syscalls/sys_exit/trigger
echo 1 > events/sched/sched_switch/enable; echo $$ > set_event_pid; echo 7 > set_event_notrace_pid; cat set_event_pid; echo > set_event_pid; echo > set_event_notrace_pid; echo > set_event; echo abcdef > trace_marker_raw; cat trace
echo 5 > saved_cmdlines_size; cat saved_cmdlines_size saved_cmdlines saved_tgids printk_formats timestamp_mode events/ftrace/*/*; sysctl kernel.ftrace_enabled=0; sysctl kernel.ftrace_enabled=1
echo > trace; ktr on fbt::sys_getpid:entry; echo mark > trace_marker; echo abcdef > trace_marker_raw; echo 'stacktrace:1' > events/sched/sched_process_exec/trigger; sh -c /bin/true; ktr off; for c in 0 1 2 3; do timeout 1 head -c 4096 per_cpu/cpu$c/trace_pipe_raw | tail -c 1; done; echo '!stacktrace' > events/sched/sched_process_exec/trigger
for o in event-fork stacktrace sym-offset latency-format; do echo 1 > options/$o; done; echo $$ > set_event_pid; echo 1 > events/sched/sched_process_exec/enable; sh -c /bin/true; tail -n 3 trace
for o in event-fork stacktrace sym-offset latency-format; do echo 0 > options/$o; done; echo > set_event_pid; echo > set_event
echo 0 > buffer_percent; echo 1 > options/record-tgid; tail -n 1 trace; echo 0 > options/record-tgid
echo > trace; ls /sys/kernel/debug/tracing; cd /; mkdir /tmp/t; mount -t tracefs nodev /tmp/t; ls /tmp/t; umount /tmp/t; mount -t debugfs nodev /tmp/t; umount /tmp/t
"""


def told(row):
    """A row of dtrace -l as never_called has it."""
    provider, module, function, name = row
    return f"{module}/{function.split('.')[0]}" if provider == "fbt" else f"{module}/{function}:{name}"


def never_called():
    """The globs of tests/system/never_called, with reasons."""
    reasons, reason = {}, None
    for line in (pathlib.Path(__file__).parent / "never_called").read_text().splitlines():
        if line and line[0] not in "# ":
            reason = line
        for glob in line.split() if line.startswith(" ") else ():
            check(glob not in reasons, f"never_called has {glob} twice")
            reasons[glob] = reason
    return reasons


ALL = ("fbt:::entry", "ktr:::")
STATIC = "exec > /dev/null 2>&1\nlinux_test brief\n"


def fired(probes, tour=TOUR + STATIC, smp=2):
    """Boots for a tour. Returns the rows of all probes, and those of `probes` that fired. By number: names take as long."""
    with tempfile.NamedTemporaryFile("w") as f, tempfile.NamedTemporaryFile("w") as d:
        d.write(f"{', '.join(probes)} {{ @[id] = count(); }}")
        d.flush()
        nm = subprocess.run(["nm", BUILD / "linux_test"], capture_output=True, text=True, check=True).stdout
        at = {name: int(value, 16) - 0x400000 for value, name in re.findall(r"^(\w+) t (probed_\w+)$", nm, re.M)}
        f.write(re.sub(r"@(probed_\w+)", lambda m: hex(at[m[1]]), tour).replace("{long}", "l" * 100))
        f.flush()
        names = {"tour": f.name, "count.d": d.name, **{name: BUILD / name for name in ("user_test", "linux_test")}}
        files = [word for name, path in names.items() for word in ("--file", f"/bin/{name}={path}")]
        run = boot(f"dtrace -ln fbt:::entry\ndtrace -ln ktr:::\necho begins\ndtrace -q -x aggsize=8m -s /bin/count.d -c 'sh /bin/tour'\n",
                   smp=smp, options=[*files, "--disk", str(scratch_file(".img"))], timeout=1500).expect()
    check_eq(re.findall(r"^dtrace: .*", run.out + run.err, re.M), [], "what dtrace says")
    listed, told = run.out.split("\nbegins\n")
    rows = [line.split() for line in listed.splitlines() if re.match(r" *\d+ ", line)]
    fired = set(re.findall(r"^ +(\d+) +\d+$", told, re.M))
    return [row[1:] for row in rows], [row[1:] for row in rows if row[0] in fired]


@test("with all functions and trace points on, a tour of the system calls each of them, but those that a list names with a reason")
def tour():
    """The static program calls most functions often: in the suite, what the rest has called is not counted there. Some are
    called only when two threads meet: up to two more tours, while they find more, count what is missed."""
    if not WHOLE and ARCH != ARCHS[0]:
        raise Skipped("the other port makes the tour; make soak makes both")
    globs, before, (rows, more) = never_called(), None, fired(ALL, TOUR + STATIC if WHOLE else TOUR)

    def unlisted(rows):
        return [row for row in rows for p in (told(row),)
                if not any(fnmatch.fnmatchcase(p, g) and (":" in g) == (":" in p) for g in globs)]

    if not WHOLE:  # each name takes 5 ms to compile; another CPU computes only while it waits
        more += fired([":".join(row) for row in unlisted(row for row in rows if row not in more)], STATIC, smp=1)[1]
    never = set(map(told, rows)) - set(map(told, more))
    check(len(rows) > 1100 and len(never) < len(rows) / 2, f"{len(never)} of {len(rows)} probes never fired")
    silent = set(map(told, unlisted(rows))) & never
    for _ in range(2):
        if silent and silent != before:
            before, (_, more) = silent, fired([":".join(row) for row in rows if told(row) in silent])
            silent = silent - set(map(told, more))
    check(not silent, f"never fired, and not listed in never_called: {' '.join(sorted(silent))}")


@test("with every function on, switched on and off in turns on a busy machine, the code is afterwards as it was built")
def storm():
    script = ["sysctl -n debug.fbt.text", "load mix -n 20 -j 4 &"]
    for module in ("fs", "mm", "sched", "proc", "*", "sync", "lib", "dev") * times(1, 3):
        script += [f"ktr on 'fbt:{module}::' >/dev/null", f"ktr off 'fbt:{module}::' >/dev/null"]
    run = boot("\n".join([*script, "wait", "ktr off", "sysctl -n debug.fbt.text", "ktr probes -c", ""]), smp=4).expect()
    check_match(r"^load mix: n=20 jobs=4 ok, \d+ ms$", run.out, "load's summary")
    before, after = re.findall(r"^([0-9a-f]{8})$", run.out, re.M)
    check_eq(after, before, "checksum of the kernel's code")
    check_match(r"^fbt +\d+ +0$", run.out, "probes that are on")


@test("a panic with every function on is told like any other: its place, the way to it, and the last events")
def panics():
    run = boot("ktr on fbt:::\nload mix -n 2\nsysctl debug.kdb.panic=1\n", smp=4)
    check_eq(run.status, 101, "exit status")
    check_match(r"^panic: requested by debug.kdb.panic", run.out, "the panic")
    check_match(r"^#0 .* death_panic\+0x[0-9a-f]+ .*\n(?:#\d .*\n)*#\d .* sys_sysctl\+", run.out, "the backtrace")
    check_match(r"^\d+ \(\d+:cpu\d\) [\d.]+: -> \w+\(", run.out, "an entry among the last events")


if __name__ == "__main__":
    main()
