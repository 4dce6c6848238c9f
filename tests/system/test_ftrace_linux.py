#!/usr/bin/python3
"""test_ftrace_linux.py - /sys/kernel/tracing: what programs of Linux rely on beside the files' contents."""
import re

from harness import ARCH, LINUX_TEST, ROOT, check, check_eq, check_match, main, need_lwip, portable_test
from tracefs import ftrace, rows


def stats(text):
    return [tuple(map(int, m)) for m in re.findall(r"^entries: (\d+)\noverrun: (\d+)\n.*?read events: (\d+)$", text, re.M | re.S)]


@portable_test("stats: overrun counts what was overwritten unread since the buffer was cleared, and what was read is not lost")
def overrun():
    out = ftrace("for d in . instances/i; do\nmkdir -p $d\necho 64 > $d/buffer_size_kb\necho 1 > $d/events/vfs/enable\nload file -n 400 >/dev/null\necho 0 > $d/events/vfs/enable\n"
                 "cat $d/per_cpu/cpu0/stats\necho > $d/trace\ncat $d/per_cpu/cpu0/stats\necho one > $d/trace_marker\necho two > $d/trace_marker\nhead -n 1 $d/trace_pipe\n"
                 "cat $d/per_cpu/cpu0/stats\necho function > $d/current_tracer\nload mix -n 1 > /dev/null\n"
                 "cat $d/per_cpu/cpu0/stats\n"
                 "echo nop > $d/current_tracer\ndone\n")[0]
    for full, cleared, read, traced in (stats(out)[:4], stats(out)[4:]):
        check(traced[1] > 100 and traced[2] < 1 << 32, f"while functions are traced, also those that count: {traced}")
        check(full[0] > 100 and full[1] > 100 and full[2] == 0, f"a full buffer: {full}")
        check_eq(cleared, (0, 0, 0), "after it was cleared")
        check(read[0] + read[2] >= 2 and read[1] == 0, f"two marks, of which some were read: {read}")


@portable_test("trace_pipe, and trace_pipe_raw, say what was lost before they were opened, and it stays lost")
def lost_before():
    out, raw = ftrace("for d in . instances/i; do\nmkdir -p $d\necho 64 > $d/buffer_size_kb\necho > $d/trace\necho 1 > $d/events/vfs/enable\nload file -n 400 >/dev/null\necho 0 > $d/events/vfs/enable\n"
                      "cat $d/per_cpu/cpu0/stats\nhead -n 1 $d/trace_pipe\ncat $d/per_cpu/cpu0/stats\ndone\n"
                      "echo 1 > instances/i/events/vfs/enable\nload file -n 400 >/dev/null\necho 0 > instances/i/events/vfs/enable\necho =====\n"
                      "dd if=instances/i/per_cpu/cpu0/trace_pipe_raw bs=4096 count=1 2>/dev/null | od -v -A n -t x1 | head -n 1\n")
    told = [int(n) for n in re.findall(r"^CPU:0 \[LOST (\d+) EVENTS\]$", out, re.M)]
    for n, (before, after) in zip(told, (stats(out)[:2], stats(out)[2:])):
        check_eq((before[1] > 100, n, after[1]), (True, before[1], before[1]), "what was overwritten")
        check_eq(after[0] + after[2], before[0], "what was read, or not yet")
    check_eq(len(told), 2, f"lines that say so: {out}")
    check(int.from_bytes(bytes.fromhex(raw.replace(" ", ""))[8:16], "little") >> 31 & 1 == 1, f"the first page's flag: {raw}")


@portable_test("trace_pipe of an instance goes on after buffer_size_kb")
def resize():
    out = ftrace("mkdir instances/i\ncd instances/i\nfor n in 1 2 3 4 5; do echo before > trace_marker; done\nexec 3< trace_pipe\nhead -n 5 <&3\n"
                 "echo 256 > buffer_size_kb\necho after > trace_marker\nhead -n 1 <&3\n")[0]
    check_eq([what for *_, what in rows(out)], ["tracing_mark_write: before"] * 5 + ["tracing_mark_write: after"], "what was read")


@portable_test("trace_marker takes 1,024 bytes, and what comes after a NUL")
def marks():
    long = "".join(f"{n:04}" for n in range(300))
    out, raw = ftrace(f"printf '{long}' > trace_marker\nprintf 'a\\000b' > trace_marker\ncat trace\necho =====\ndd if=per_cpu/cpu0/trace_pipe_raw bs=4096 count=1 2>/dev/null | od -v -A n -t x1\n")
    got = [what for *_, what in rows(out)]
    check_eq(got[0], "tracing_mark_write: " + long[:1024], "a long text")
    data = bytes.fromhex("".join(raw.split()))
    check(long[:1024].encode() + b"\n\0" in data and b"a\0b\n" in data, f"the records for programs: {data}")


@portable_test("an event's number of a system call: __syscall_nr is its first field, and no text shows it")
def number():
    nr = {"x86_64": 257, "aarch64": 56}[ARCH]
    out, raw = ftrace("cat events/syscalls/sys_enter_openat/format events/syscalls/sys_exit_getppid/format events/syscalls/sys_enter_getppid/format\n"
                      "echo 1 > events/syscalls/sys_enter_openat/enable\nexec 3< per_cpu/cpu0/trace_pipe_raw\n: < /etc/motd\necho 0 > events/syscalls/enable\n"
                      "cat trace\necho =====\ncat events/syscalls/sys_enter_openat/id\ndd bs=4096 count=1 <&3 2>/dev/null | od -v -A n -t x1 | head -n 3\n")
    field = r"\n\tfield:s64 __syscall_nr;\toffset:8;\tsize:8;\tsigned:1;\n"
    check_match(r"name: sys_enter_openat\n(.*\n)*?.*common_pid.*\n" + field + r"\tfield:u64 dfd;\toffset:16;", out, "an entry")
    check_match(r"name: sys_exit_getppid\n(.*\n)*?.*common_pid.*\n" + field + r"\tfield:u64 ret;\toffset:16;", out, "a return")
    check_match(r"name: sys_enter_getppid\n(.*\n)*?.*common_pid.*\n" + field + r"\nprint fmt: \"sys_getppid\(\)\"", out, "a call without arguments")
    check_match(r" sys_openat\(dfd: ", out, "the text")
    number_, *lines = raw.split("\n")
    data = bytes.fromhex("".join(lines).replace(" ", ""))
    check_eq(int.from_bytes(data[20:22], "little"), int(number_), f"the first event's type in {data.hex()}")
    check_eq(int.from_bytes(data[28:32], "little"), nr, "its number")


@portable_test("a call that the kernel does not know is an event of raw_syscalls and of its class, and none of syscalls; a page of records has it")
def unknown_call():
    out, raw = ftrace("ls events/syscalls | grep -c unknown\nls events/SYSC\necho 1 > events/SYSC/enable\nuser_test > /dev/null\necho 0 > events/SYSC/enable\n"
                      "cat trace\necho =====\ndd if=per_cpu/cpu0/trace_pipe_raw bs=4096 count=1 2>/dev/null | od -v -A n -t x1\n",
                      options=["--file", f"/bin/user_test={ROOT}/build/{ARCH}/user_test"])
    call, back, shown = check_match(r"^0\nenable (syscall_dispatch_\d+)\nfilter (syscall_dispatch_\d+)\n((?:.*\n)*)", re.sub(r"(?<=\w)  +(?=\w)", " ", out), "the events").groups()
    for number in (999, 1023, 2 ** 64 - 1):
        check_match(rf" {call}: syscall unknown: number {number}\n.* {back}: sysret unknown: ret -38\n", shown, "the text")
    data = bytes.fromhex("".join(raw.split()))
    check((999).to_bytes(8, "little") in data and (-38 % 2 ** 64).to_bytes(8, "little") in data, f"the records: {data}")


@portable_test("when an event that was enabled is removed, the logs that may have it are cleared, and no others")
def removed():
    out = ftrace("mkdir instances/i instances/j\necho 'p:gone sys_getppid' > kprobe_events\necho 's1 u64 x' > synthetic_events\n"
                 "for d in . instances/i instances/j; do echo mark > $d/trace_marker; done\n"
                 "echo 1 > instances/i/events/kprobes/enable\necho 0 > instances/i/events/kprobes/enable\necho > kprobe_events\n"
                 "for d in . instances/i instances/j; do grep -c mark: $d/trace; done\ngrep -c write: trace instances/i/trace instances/j/trace\n"
                 "echo 1 > events/synthetic/enable\necho 0 > events/synthetic/enable\necho > synthetic_events\ngrep -c write: trace instances/j/trace\n")[0]
    check_match(r"^trace:1\ninstances/i/trace:0\ninstances/j/trace:1\ntrace:0\ninstances/j/trace:1\n", out, "marks that are left")


@portable_test("a second kprobe later in a function whose start, or return, has one that is enabled")
def second():
    out = ftrace("echo 'p:first sys_getppid $arg1' > kprobe_events\necho 'r:back sys_getppid $retval' >> kprobe_events\necho 1 > events/kprobes/enable\n"
                 "n=0\nfor at in 4 5 8 9; do echo \"p:later$at sys_getppid+$at\" >> kprobe_events && n=$((n+1)); done\necho made $n\n"
                 "echo 0 > events/kprobes/enable\nn=0\nfor at in 4 5 8 9; do echo \"p:again$at sys_getppid+$at\" >> kprobe_events && n=$((n+1)); done\necho made $n\n")[0]
    found = re.findall(r"^made (\d)$", out, re.M)
    check(len(found) == 2 and found[0] == found[1] != "0", f"as many when they are enabled as when not: {out}")


@portable_test("a text to which a bad pointer leads is (fault), among few arguments and among many")
def faults():
    text = "+0(+0(+0($arg1))):string"
    numbers = " ".join(f"a{n}=\\{n}" for n in range(1, 7))
    out = ftrace(f"echo 'p:few sys_close {text}' > kprobe_events\necho 'p:many sys_close {numbers} a7={text}' >> kprobe_events\n"
                 "echo 1 > events/kprobes/enable\nhead -n 1 /etc/motd > /dev/null\necho 0 > events/kprobes/enable\ncat trace error_log\n")[0]
    check_match(r" few: \(sys_close.*\) arg1=\(fault\)$", out, "few arguments")
    check_match(r" many: .* a5=0x5 a6=0x6 a7=\(fault\)$", out, "many arguments")


@portable_test("saved_cmdlines stays as it is while tracing is off; saved_cmdlines_size says how many it has")
def cmdlines():
    out = ftrace("echo 0 > tracing_on\ncat saved_cmdlines > /tmp/one\nfor n in 1 2 3; do /bin/true; cat /etc/motd >/dev/null; done\ncat saved_cmdlines > /tmp/two\n"
                 "test \"$(cat /tmp/one)\" = \"$(cat /tmp/two)\" && echo same\necho 1 > tracing_on\ncat saved_cmdlines > /tmp/three\n"
                 "test \"$(cat /tmp/one)\" = \"$(cat /tmp/three)\" || echo other\necho 2 > saved_cmdlines_size\ncat saved_cmdlines_size\ncat saved_cmdlines | wc -l\n")[0]
    check_match(r"^same\nother\n2\n *2\n", out, "the file")


@portable_test("set_event_pid, set_event_notrace_pid: sched_switch belongs to both threads, a wakeup to who is woken, too, in every log")
def second_threads():
    parts = ftrace("mkdir instances/i\nsh -c 'while true; do sleep 0.01; done' &\nfor d in . instances/i; do\necho $! > $d/set_event_pid\nfor e in switch waking wakeup; do echo 1 > $d/events/sched/sched_$e/enable; done\ndone\n"
                   "for d in . instances/i; do\nuntil test $(grep -c \"wakeup: .* pid=$! \" $d/trace) -ge 3; do true; done\ndone\necho 0 > events/enable\necho 0 > instances/i/events/enable\n"
                   "for d in . instances/i; do\necho $!\ncat $d/trace\necho =====\ndone\n"
                   "for d in . instances/i; do\necho > $d/set_event_pid\necho 0 $! > $d/set_event_notrace_pid\necho > $d/trace\necho 1 > $d/events/sched/sched_switch/enable\nuntil test $(grep -c \"=$! \" $d/trace) -ge 3; do true; done\n"
                   "echo 0 > $d/events/enable\necho $!\ncat $d/trace\necho =====\ndone\nkill $!\n", smp=1)
    for part in parts[:2]:
        pid = int(part.split("\n", 1)[0])
        found = [what for *_, what in rows(part)]
        check_eq([what for what in found if not re.search(rf" (prev_pid|next_pid)={pid} | pid=\d+ ", what)], [], "events of others")
        for event in (rf"sched_switch: .* next_pid={pid} ", rf"sched_switch: .* prev_pid={pid} ", rf"sched_waking: .* pid={pid} ", rf"sched_wakeup: .* pid={pid} "):
            check(any(re.match(event, what) for what in found), f"{event} in {found}")
    for part in parts[2:4]:
        pid = int(part.split("\n", 1)[0])
        both = [re.search(r" prev_pid=(\d+) .* next_pid=(\d+) ", what).groups() for *_, what in rows(part)]
        check(both and not any({a, b} <= {"0", str(pid)} for a, b in both), f"switches between two who are left out: {both}")


@portable_test("who reads trace_pipe is not traced, also as the second one of an open file, until that is closed, by whomever; but its trace_marker counts")
def silence():
    second, other = ftrace(
        "echo a > trace_marker\nexec 3< trace_pipe\nhead -n 1 <&3 >/dev/null\necho 1 > events/syscalls/sys_enter_read/enable\ncat <&3 > /tmp/out &\n"
        "until grep -q sys_read /tmp/out; do sleep 0.01; done\necho b > trace_marker\nuntil grep -q ': b$' /tmp/out; do sleep 0.01; done\nkill $!\nwait $! 2>/dev/null\necho 0 > events/enable\n"
        "exec 3<&-\necho $!\ncat /tmp/out\necho =====\n"
        "echo 1 > events/syscalls/sys_enter_kill/enable\necho c > trace_marker\nexec 3< trace_pipe\nread x <&3\nkill -0 $$\necho d > trace_marker\ngrep -c ': d$' trace\ngrep -c 'sys_kill(' trace\n"
        "sleep 1000 <&3 &\nexec 3<&-\nkill $!\nwait $! 2>/dev/null\nkill -0 $$\ngrep -c 'sys_kill(' trace\n", smp=1)
    pid, shown = second.split("\n", 1)
    check_eq([what.split("(")[0] for _, tid, _, _, what in rows(shown) if tid == int(pid)], ["sys_read"], "what the reader did itself, until it read")
    check_match(r"\A1\n0\n(?:Terminated\n)?1\n\Z", other, "a mark; no event; one after the file was closed by another process")


@portable_test("who waits in trace_pipe is not traced, whatever is closed; who reads two, until the last one is")
def silences():
    waits, two = ftrace(
        "mkdir instances/i instances/j\necho thread_sleep_ns > set_ftrace_filter\ncat instances/j/trace_pipe &\n"
        "reader=$!\nuntil grep -q tracepipe /proc/$reader/wchan; do true; done\n"
        "exec 3< instances/i/trace_pipe\n"
        "for n in 1 2; do echo a > instances/i/trace_marker; head -n 1 <&3 > /dev/null; done\n"
        "echo function > current_tracer\nexec 3<&-\nsleep 0.1\n"
        "echo 0 > tracing_on\ncat trace\nkill $reader\nwait $reader 2>/dev/null\necho nop > current_tracer\n"
        "echo 1 > tracing_on\necho =====\n"
        "echo 1 > events/syscalls/sys_enter_kill/enable\nexec 3< instances/i/trace_pipe 4< instances/j/trace_pipe\n"
        "for d in i j; do echo a > instances/$d/trace_marker; done\nread x <&3\nread x <&4\n"
        "exec 3<&-\nkill -0 $$\ngrep -c 'sys_kill(' trace\nexec 4<&-\nkill -0 $$\ngrep -c 'sys_kill(' trace\n")
    names = [name for name, *_ in rows(waits)]
    check("sleep" in names and "cat" not in names, f"who sleeps: {waits}")
    check_match(r"^0\n1\n\Z", two, "events of who reads two files")


@portable_test("events/SYSTEM/enable that fails switches on none of them")
def none_by_half():
    out = ftrace("for e in lookup name open create; do echo 'common_pid > 0' > events/vfs/$e/filter; done 2>/dev/null\nn=1\nwhile test $n -le 60; do\n"
                 "sysctl debug.ktest.fail_alloc=$n >/dev/null\nif echo 1 > events/vfs/enable; then test $n -gt 8 && break; echo 0 > events/vfs/enable; else read x < events/vfs/enable; echo failed $x; fi\n"
                 "n=$((n+1))\ndone 2>&1\n", smp=1, options=["--kernel", str(ROOT / "build" / ARCH / "kestrel-test")])[0]
    found = re.findall(r"^failed (\S+)$", out, re.M)
    check(len(found) > 3 and set(found) == {"0"}, f"what is on after errors: {out}")


@portable_test("set_event is emptied, and takes off what triggers have switched on, also where nothing was enabled by hand")
def soft_off():
    out = ftrace("mkdir instances/x\ncd instances/x\necho enable_event:vfs:lookup > events/sched/sched_process_exec/trigger\n/bin/cat /dev/null\nread x < events/vfs/lookup/enable\n"
                 "echo > set_event\nread y < events/vfs/lookup/enable\necho \"$x $y\"\n")[0]
    check_match(r"\A1\* 0\*\n\Z", out, "the event")


@portable_test("a probe may be in the group of synthetic events, and goes by that name; none may be where it would have no folder")
def groups():
    out = ftrace("echo 'p:synthetic/foo ramfs_read' >> dynamic_events\necho 's:bar u64 x' >> dynamic_events\ncat dynamic_events\necho '-:synthetic/foo' >> dynamic_events\necho '-:synthetic/bar' >> dynamic_events\n"
                 "echo '-:synthetic/foo' >> dynamic_events\ncat dynamic_events\nfor g in ftrace enable header_page header_event; do echo \"p:$g/foo ramfs_read\" >> kprobe_events\ndone\ncat kprobe_events\n"
                 "grep -c 'already used' error_log\n")[0]
    check_match(r"\Ap:synthetic/foo ramfs_read\ns:synthetic/bar u64 x\nsh: .*No such .*\n(?:sh: .*exists\n){4}4\n\Z", out, "the probes")


@portable_test("stats: the oldest event is one that is shown")
def oldest():
    out = ftrace("echo 0 > tracing_on\necho 1 > tracing_on\necho a > trace_marker\necho b > trace_marker\ncat trace\nexec 3< trace_pipe\nread x <&3\nexec 3<&-\ncat per_cpu/cpu0/stats\necho > trace\ncat per_cpu/cpu0/stats\n")[0]
    times = [int(s) * 10 ** 6 + int(us) for s, us in re.findall(r"^oldest event ts: +(\d+)\.(\d{6})$", out, re.M)]
    check_eq(times, [[time for *_, time, what in rows(out) if what.endswith(": b")][0], 0], "the oldest")


@portable_test("two histograms that differ after their first 512 characters are two")
def long_hists():
    same = " && ".join(f"common_pid != {10 ** 17 + n}" for n in range(20))
    keys, at = f"hist:keys=common_pid if {same} && common_pid != ", "events/sched/sched_process_"
    out = ftrace(f"echo '{keys}1' > {at}exit/trigger\necho '{keys}2' >> {at}exit/trigger && echo taken\n"
                 f"echo '{keys}1' >> {at}fork/trigger\necho '{keys}1' >> {at}fork/trigger || echo refused\n"
                 f"for e in exit fork; do grep -c keys=common_pid {at}$e/trigger; done\n")[0]
    check_match(r"^taken\n(?:.*\n)*refused\n2\n1$", out, "another one, and the same once more")


@portable_test("do_nanosleep has Linux's arguments: the second one is 1 for a time from now on, and 0 after a signal")
def nanosleep_mode():
    out = ftrace("echo 'p:nap do_nanosleep hrtimer_sleeper=$arg1 hrtimer_mode=$arg2' > kprobe_events\ncd events/kprobes/nap\n"
                 "echo 1 > enable\necho 'hrtimer_mode != 1' > filter\nsleep 0.01\ncd ../../..\ngrep -c nap: trace\n"
                 "echo 0 > events/kprobes/nap/filter\nsleep 30 &\nuntil grep -q nap: trace; do :; done\n"
                 "kill -STOP $!\nkill -CONT $!\nuntil grep -q 'hrtimer_mode=0x0' trace; do :; done\nkill $!\nwait $!\ngrep -o 'hrtimer_mode=.*' trace\n")[0]
    check_match(r"\A0\n(?:Terminated\n)?hrtimer_mode=0x1\nhrtimer_mode=0x0\n\Z", out, "the calls")


@portable_test("the functions that connect, take a connection, send and receive are called under Linux's names")
def network():
    need_lwip()
    names = ("icmp_rcv inet_csk_accept ip_rcv sock_recvmsg sock_sendmsg tcp_recvmsg tcp_sendmsg tcp_v4_connect "
             "tcp_v4_rcv udp_rcv udp_recvmsg udp_sendmsg").split()
    out = ftrace("echo 'r4:taken inet_csk_accept' > kprobe_events\ncat kprobe_events\n"
                 f"echo {' '.join(names)} > set_ftrace_filter\necho function > current_tracer\n"
                 "echo hello | nc -l -p 77 > /dev/null &\nuntil netstat -ltn | grep -q ':77 '; do :; done\n"
                 "echo hello | nc 127.0.0.1 77 > /dev/null\nwait\nlinux_test brief datagrams > /dev/null\n"
                 "echo 0 > tracing_on\ngrep -o ': [^ ]* <-' trace | sort -u\n", options=LINUX_TEST)[0]
    check_match(r"\Ar4:kprobes/taken inet_csk_accept\n", out, "a probe of that name")
    check_eq(re.findall(r"^: (\w+) <-$", out, re.M), names, "functions that were called")


@portable_test("a probe past a function's end is in the function that is there, and is shown there")
def past_the_end():
    out = ftrace("set -- $(grep -A 2 -w 'T sys_getppid' /proc/kallsyms)\nwhile test $1 = $4; do shift 3; done\n"
                 "echo \"p:next sys_getppid+$((0x$4 - 0x$1))\" > kprobe_events && echo $6 && cat kprobe_events\n")[0]
    check_match(r"\A(\w+)\np:kprobes/next \1\n\Z", out, "the probe")


@portable_test("tp_printk, kernel.tracepoint_printk: events on the console; ftrace_dump_on_oops: a panic shows all")
def printk():
    names = "kernel.tracepoint_printk debug.ktr.verbose kernel.ftrace_dump_on_oops debug.panic.events"
    out = ftrace(f"echo a mark > trace_marker\nsysctl kernel.tracepoint_printk=0\necho another > trace_marker\nsysctl {names}\n"
                 "sysctl kernel.ftrace_dump_on_oops=0\nsysctl debug.panic.events\nsysctl debug.panic.events=7\nsysctl kernel.ftrace_dump_on_oops=0\nsysctl debug.panic.events\n",
                 options=["--append", "tp_printk ftrace_dump_on_oops"])[0]
    check_match(r"^cpu0 .*a mark$", out, "an event on the console")
    check("another" not in out, f"no more: {out}")
    values = zip(names.split(), (0, 0, 1, 1000000))
    check("\n".join(f"{name}: {value}" for name, value in values) in out, f"the sysctls: {out}")
    check_match(r"^kernel.ftrace_dump_on_oops: 1 -> 0\ndebug.panic.events: 100\n", out, "as before")
    check_match(r"^kernel.ftrace_dump_on_oops: 0 -> 0\ndebug.panic.events: 7$", out, "0 once more")


@portable_test("kernel.ftrace_enabled=0: the tracers see no function until it is 1 again")
def enabled():
    out = ftrace("echo sys_getppid sys_kill > set_ftrace_filter\nfor t in function function_graph; do\n"
                 "echo $t > current_tracer\nfor on in 1 0 1; do\nsysctl kernel.ftrace_enabled=$on > /dev/null\n"
                 "echo > trace\nkill -0 $$\ngrep -c sys_kill trace\ndone\ndone\n")[0]
    check_match(r"\A1\n0\n1\n[12]\n0\n[12]\n\Z", out, "lines of the function that was called")


@portable_test("events/SYSTEM/filter shows what was written to it; a system without it says what it is for")
def system_filter():
    out = ftrace("cat events/sched/filter | head -n 1\necho 'prev_pid == 0' > events/sched/filter\ncat events/sched/filter\ncat events/sched/sched_switch/filter\n"
                 "echo 'nosuch == 0' > events/sched/filter\ncat events/sched/filter\necho 0 > events/sched/filter\ncat events/sched/filter | head -n 1\n")[0]
    check_match(r"\A### global filter ###\nprev_pid == 0\nprev_pid == 0\nsh: write error: Invalid argument\nprev_pid == 0\n### global filter ###\n", out, "the file")


@portable_test("mount -t tracefs shows the same files at another place, and can be taken away again")
def mounted():
    out = ftrace("mkdir /tmp/t\nmount -t tracefs nodev /tmp/t && echo mounted\necho 12 > /tmp/t/buffer_size_kb\ncat buffer_size_kb\nmkdir /tmp/t/instances/i && ls instances\n"
                 "echo 'p:x sys_read' > /tmp/t/kprobe_events\ncat kprobe_events events/kprobes/x/enable /tmp/t/events/kprobes/x/enable\nrmdir instances/i\n"
                 "umount /tmp/t && ls /tmp/t && echo empty\ncat buffer_size_kb\n"
                 "ls() { busybox ls -lnd /tmp/t /tmp/t/tracing_on . | tr -s ' ' | cut -d ' ' -f 1,3,4; }\n"
                 "mount -t tracefs -o gid=1000,uid=5,mode=750 nodev /tmp/t && ls\n"
                 "mount -o remount,gid=77 /tmp/t && ls\n"
                 "mount -t tracefs -o gid=x nodev /tmp/t || mount -t tmpfs -o gid=7 nodev /tmp/t || true\n")[0]
    check_match(r"^mounted\n(\d+)\ni\np:kprobes/x sys_read\n0\n0\nempty\n\1\ndrwx------ 0 0\ndrwxr-x--- 5 1000\n"
                r"-rw-r----- 5 1000\n"
                r"drwx------ 0 0\ndrwxr-x--- 5 77\n-rw-r----- 5 77\n(?:mount: .*Invalid argument\n){2}\Z", out, "what is seen at both places, and whose it is")


@portable_test("tracefs and debugfs are unmounted when nobody is in them, and mounted again with what was made there")
def unmounted():
    out = ftrace("mkdir instances/i\necho 1 > events/sched/sched_switch/enable\necho 'p:x sys_read' > kprobe_events\n"
                 "umount /sys/kernel/tracing 2> /dev/null || echo busy\ncd /sys/kernel\n"
                 "umount debug tracing && grep -c -e debugfs -e tracefs /proc/mounts\nls debug tracing\n"
                 "mkdir tracing/d 2> /dev/null || echo empty\n"
                 "mount -t tracefs nodev debug && ls -d debug/events && umount debug\n"
                 "mount -t debugfs nodev debug && mount -t tracefs nodev tracing && ls tracing/instances\n"
                 "cat tracing/events/sched/sched_switch/enable tracing/kprobe_events\n"
                 "ls debug debug/tracing/events/kprobes\ncat debug/kprobes/list | grep -c sys_read\n"
                 "for d in tracing /proc/sys . /dev/pts; do mount -t tmpfs none $d 2> /dev/null || echo busy; done\n")[0]
    check_match(r"\Abusy\n0\ndebug:\n\ntracing:\nempty\ndebug/events\ni\n1\np:kprobes/x sys_read\n"
                r"debug:\nkprobes +tracing\n\ndebug/tracing/events/kprobes:\nenable +filter +x\n1\n(?:busy\n){4}\Z",
                out, "what is where")


@portable_test("files of tracefs are root's, whoever looks first, until chgrp and chmod let others in, whatever events come after it")
def shared():
    write = "su 1000 sh -c 'echo 0 > tracing_on' && echo written\n"
    out = ftrace("chmod 755 .\nsu 1000 sh -c 'ls -ln' | grep -E ' (tracing_on|events)\\r?$'\n" +
                 write + "chgrp 1000 tracing_on events\nchmod 660 tracing_on\n"
                 "echo 'p:x sys_read' > kprobe_events\nls events/kprobes | grep x\n" + write + "cat tracing_on\nls -ln tracing_on\nls -lnd events\n")[0]
    check_match(r"^drwxr-x--- .* 0 +0 .*\n-rw-r----- .* 0 +0 .*\nsh: .*Permission denied\nx\nwritten\n0\n"
                r"-rw-rw---- .* 0 +1000 .*\ndrwxr-x--- .* 0 +1000 ", out, "the files")


@portable_test("buffer_size_kb that is too large is ENOMEM; that of one CPU is that of all; tracing_thresh is 10 while hwlat has no other, or what it was then; groups of tracing_cpumask")
def sizes():
    out = ftrace("echo 99999999999 > buffer_size_kb\necho 128 > buffer_size_kb\necho 64 > per_cpu/cpu0/buffer_size_kb\ncat buffer_size_kb\n"
                 "cat tracing_thresh\necho hwlat > current_tracer\ncat tracing_thresh\necho nop > current_tracer\ncat tracing_thresh\n"
                 "echo 77 > tracing_thresh\necho hwlat > current_tracer\ncat tracing_thresh\necho 60000000 > tracing_thresh\necho nop > current_tracer\ncat tracing_thresh\n"
                 "echo 0 > tracing_thresh\necho hwlat > current_tracer\ncat tracing_thresh\necho nop > current_tracer\n"
                 "for m in 1,0 123456789 1,0,1 7,00000003; do echo $m > tracing_cpumask; done\ncat tracing_cpumask\n", smp=5)[0]
    check_match(r"\Ash: write error: (Cannot allocate memory|Out of memory)\n64\n0\n10\n0\n77\n77\n60000000\n"
                r"sh: .*Invalid argument\n(?:sh: .*Value too large.*\n){2}3\n", out, "the answers")


@portable_test("a new instance has a mebibyte for each CPU, or a quarter where memory is little")
def new_sizes():
    for mem, kb in (("256M", 1024), ("64M", 256)):
        out = ftrace("mkdir instances/i\ncd instances/i\ncat buffer_size_kb per_cpu/cpu3/buffer_size_kb\n",
                     smp=4, mem=mem)[0]
        check_eq(out, f"{kb}\n{kb}\n", f"with {mem}")


@portable_test("sched_switch: idle has priority 120, states are letters")
def switches():
    out = ftrace("echo 1 > events/sched/sched_switch/enable\nload pipe -n 20 -j 2 >/dev/null\nsleep 0.05\nload lock -n 200 -j 4 >/dev/null\necho 0 > events/enable\ncat trace\n")[0]
    got = re.findall(r" sched_switch: prev_comm=(\S+) prev_pid=\d+ prev_prio=(\d+) prev_state=(\S+) ==> next_comm=(\S+) next_pid=\d+ next_prio=(\d+)$", out, re.M)
    check_eq(len(got), out.count(" sched_switch: "), "lines of that form")
    check_eq({p for prev, p, _, _, _ in got if prev.startswith("swapper/")} | {p for *_, following, p in got if following.startswith("swapper/")}, {"120"}, "idle's priority")
    check({"R", "S", "X"} <= {state for _, _, state, _, _ in got} <= {"R", "S", "D", "X"}, "states")


@portable_test("set_ftrace_filter takes numbers of available_filter_functions' lines, and words about modules that are not there, which wait")
def numbers():
    out = ftrace("n=$(grep -n -x do_exit available_filter_functions | cut -d: -f1)\nm=$(grep -n -x sys_read available_filter_functions | cut -d: -f1)\n"
                 "echo $n $m > set_ftrace_filter\ncat set_ftrace_filter\necho 0 > set_ftrace_filter\necho 999999 > set_ftrace_filter\necho 1x > set_ftrace_filter\n"
                 "echo > set_ftrace_filter\necho 'nosuch*:mod:nowhere' > set_ftrace_filter\necho 'some:mod:where' >> set_ftrace_notrace\ncat set_ftrace_filter set_ftrace_notrace\n"
                 "echo > set_ftrace_filter\ncat set_ftrace_filter\necho do_exit > set_ftrace_filter\n"
                 "echo function > current_tracer\n"
                 "exec 3> set_ftrace_filter\ncat set_ftrace_filter enabled_functions\necho sys_read sys_write >&3\n"
                 "echo sys_kill >&3\ncat set_ftrace_filter | wc -l\nexec 3>&-\nexec 3> set_ftrace_filter\nexec 3>&-\n"
                 "cat set_ftrace_filter\necho do_exit > set_ftrace_filter\necho mark > trace_marker\n"
                 "for f in set_ftrace_filter trace; do busybox truncate -s 0 $f; done\necho sys_read >> set_ftrace_filter\ncat set_ftrace_filter | wc -l\ngrep -c 'write: mark' trace\n")[0]
    check_eq(sorted(out.split("\n")[:2]), ["do_exit", "sys_read"], "the functions of these lines")
    check_match(r"(?:sh: .*Invalid argument\n){3}#### all functions enabled ####\nnosuch\*:mod:nowhere\n#### no functions disabled ####\nsome:mod:where\n"
                r"#### all functions enabled ####\n"
                r"do_exit\ndo_exit \(1\)\n3\n#### all functions enabled ####\n2\n1\n\Z", out,
                "what waits, is cleared, and counts until another word comes; truncate clears nothing")


@portable_test("options: pause-on-trace records nothing while trace is read, and tracing is on for all else; printk-msg-only shows marks alone, record-cmd takes the names away; enabled_functions")
def more_options():
    out = ftrace("echo 1 > options/pause-on-trace\necho one > trace_marker\nexec 5< trace_pipe\n"
                 "head -n 1 <&5 > /dev/null\nexec 3< trace\ncat tracing_on\nhead -n 1 <&5 > /tmp/got 3<&- &\n"
                 "until grep -q tracepipe /proc/$!/wchan 2> /dev/null || ! kill -0 $! 2> /dev/null; do :; done\n"
                 "echo 1 > tracing_on\necho two > trace_marker\nexec 3<&-\n"
                 "echo three > trace_marker\nwait\ngrep -o three /tmp/got\ncat tracing_on\n"
                 "exec 3< trace\necho 0 > tracing_on\nexec 3<&-\ncat tracing_on\necho 1 > tracing_on\nexec 3< trace\n"
                 "exec 4< trace\nexec 3<&-\necho four > trace_marker\nexec 4<&-\ncat tracing_on\n"
                 "echo 0 > options/pause-on-trace\n"
                 "exec 3< trace\ncat tracing_on\nexec 3<&-\necho a mark > trace_marker\necho printk-msg-only > trace_options\ntail -n 1 trace\n"
                 "echo noprintk-msg-only > trace_options\necho 0 > options/record-cmd\ntail -n 1 trace\necho do_exit sys_read > set_ftrace_filter\n"
                 "echo function > current_tracer\ncat enabled_functions\necho nop > current_tracer\ncat enabled_functions\n", smp=1)[0]
    check_match(r"\A1\nsh: .*Bad file descriptor\nthree\n1\n0\nsh: .*Bad file descriptor\n1\n1\na mark\n"
                r" +<\.\.\.>-\d+ .* tracing_mark_write: a mark\n(?:do_exit \(1\)\nsys_read \(1\)\n|sys_read \(1\)\n"
                r"do_exit \(1\)\n)\Z", out, "what is seen")


BOOT = ("ftrace=function ftrace_filter=do_exit,sys_read ftrace_notrace=sys_read ftrace_graph_filter=sys_open ftrace_graph_notrace=sys_close trace_event=sched:sched_switch,vfs:lookup "
        "kprobe_event=p:one,do_exit;r:two,sys_read,$retval trace_options=sym-addr,nomarkers trace_clock=global trace_buf_size=2M alloc_snapshot "
        "trace_instance=early,sched:sched_waking")


@portable_test("Linux's boot parameters about tracing are loader parameters; one that is wrong says so")
def parameters():
    from harness import boot
    words = [w.replace("trace_clock=", "ftrace_nosuch=1 trace_clock=") for w in BOOT.split()]
    result = boot("cd /sys/kernel/tracing\ncat current_tracer set_ftrace_filter set_ftrace_notrace set_graph_function set_graph_notrace set_event kprobe_events trace_clock buffer_size_kb\n"
                  "cat options/sym-addr options/markers\nhead -n 2 snapshot\nls instances\ncat instances/early/set_event instances/early/buffer_size_kb\n",
                  smp=1, options=["--lenient", "--append", " ".join(words)]).expect()
    out = result.out.replace("\r", "")
    check_match(r"^function\n(?:do_exit\nsys_read|sys_read\ndo_exit)\nsys_read\nsys_open\nsys_close\n(?:sched:sched_switch\nvfs:lookup|vfs:lookup\nsched:sched_switch)\n"
                r"p:kprobes/one do_exit\nr:kprobes/two sys_read arg1=\$retval\nlocal? ?\[global\] .*\n2048\n1\n0\n.*\n.*allocated.*\nearly\nsched:sched_waking\n2048\n", out, "the files")


@portable_test("a long filter, or line of kprobe_events, is taken whole in one write; 0 in set_event_pid means the idle threads; without an owner to be had a filter changes nothing, and another tracer takes the place of the one before")
def writes():
    fork = "events/sched/sched_process_fork"
    long, idle, owners = ftrace(
        f"printf 'common_pid !=%600s' 1 > {fork}/filter\ntr -s ' ' < {fork}/filter\nprintf 'p:one kernel_clone\\np:two kernel_clone%600s' 'a=$arg1' > kprobe_events\ncat kprobe_events\n"
        f"echo > kprobe_events\nf=/tmp/f; d='dd if=/tmp/f bs=32k conv=notrunc'\n"
        f"printf 'common_pid !=%20000s' 2 > $f\n$d of={fork}/filter 2>&1 | grep -o 'Inv.*'\n"
        f"tr -s ' ' < {fork}/filter\n"
        "printf 'p:one kernel_clone%20000s' 'a=$arg1' > $f\n$d of=kprobe_events 2>&1 | grep -o 'Inv.*'\n"
        "printf 'p:one kernel_clone\np:two kernel_clone%600s' 'a=$arg1' > $f\n$d of=kprobe_events 2> /dev/null\n"
        f"cat kprobe_events\necho > kprobe_events\necho 0 > {fork}/filter\necho =====\n"
        "echo 0 > set_event_pid\necho 1 > events/sched/sched_switch/enable\nsleep 0.01\necho 0 > events/enable\ncat set_event_pid trace\necho > set_event_pid\necho =====\n"
        f"mkdir instances/j\necho 'enable_event:sched:sched_switch' > instances/j/{fork}/trigger\n/bin/cat /dev/null\ncat instances/j/events/sched/sched_switch/enable\n"
        "n=0\nwhile test $n -lt 12; do\nmkdir instances/$n\ncd instances/$n\necho 64 > buffer_size_kb\necho sys_kill > set_ftrace_filter\necho function > current_tracer\necho 1 > options/event-fork\n"
        f"echo 1 > {fork}/enable\ncd ../..\nn=$((n+1))\ndone 2> /dev/null\n"
        "cat instances/0/current_tracer\necho function_graph > instances/0/current_tracer\n"
        "cat instances/0/current_tracer\ncd instances/j/events/sched/sched_switch\n"
        "echo 'prev_prio == 1' > filter\ncat filter enable\necho 0 > filter\ncat filter\n")
    both = r"p:kprobes/one kernel_clone\np:kprobes/two kernel_clone a=\$arg1\n"
    check_match(rf"\Acommon_pid != 1\n{both}Invalid argument\ncommon_pid != 1\nInvalid argument\n{both}\Z", long, "what is written at once, or too long")
    check_match(r"\A0\n", idle, "the file")
    others = [what for name, tid, _, _, what in rows(idle) if (name, tid) != ("<idle>", 0)]
    check(len(others) < len(rows(idle)) and all("next_pid=0 " in what for what in others), f"switches from and to: {idle}")
    check_match(r"\A1\*\nfunction\nfunction_graph\nsh: .*busy\nnone\n1\*\n(?:sh: .*busy\n)?none\n\Z", owners, "a filter that there is no owner for")


@portable_test("each thread that is made has sched_wakeup_new and sched_process_free, once, and sched_stat_runtime adds up to what it ran")
def lives():
    out = ftrace("echo 'hist:keys=pid:vals=runtime' > events/sched/sched_stat_runtime/trigger\nfor e in wakeup_new process_exit process_free process_fork; do echo 1 > events/sched/sched_$e/enable; done\n"
                 "load fork -n 3 >/dev/null\nuntil test $(grep -c 'sched_process_free: comm=load' trace) -eq 4; do true; done\necho 0 > events/enable\n"
                 "cat trace\necho =====\ncat events/sched/sched_stat_runtime/hist\n", smp=2)
    pids = {e: re.findall(rf" sched_{e}: comm=\S+ pid=(\d+) ", out[0]) for e in ("wakeup_new", "process_exit", "process_free")}
    children = re.findall(r" child_pid=(\d+)$", out[0], re.M)
    check(len(children) >= 4 and set(children) <= set(pids["wakeup_new"]), f"who is made: {children} {pids}")
    check_eq(len(pids["wakeup_new"]), len(set(pids["wakeup_new"])), "each once")
    mine = re.findall(r" sched_process_exit: comm=load pid=(\d+) ", out[0])
    check(set(mine) <= set(pids["process_free"]) and len(mine) == 4, f"who goes: {pids}")
    ran = dict(re.findall(r"^{ pid: +(\d+) } hitcount: +\d+ +runtime: +([1-9]\d*)$", out[1], re.M))
    check(set(mine) <= set(ran), f"who ran: {ran}")


@portable_test("irq_disable and irq_enable have Linux's fields: how far the caller and its caller are in the kernel")
def irq_events():
    places, trace = ftrace(
        "echo 1 > events/preemptirq/enable\nload pipe -n 10 > /dev/null\necho 0 > events/enable\n"
        "head -n 1 /proc/kallsyms\ngrep -A 1 -w 'T spin_lock' /proc/kallsyms\necho =====\ncat trace\n")
    first, begin, end = (int(a, 16) for a in re.findall(r"^([0-9a-f]{16}) ", places, re.M))
    got = re.findall(r": irq_(disable|enable): caller_offs=(\w+) parent_offs=(\w+)(?: was_on=[01])?$", trace, re.M)
    calls = [(kind, first + int(caller, 0), first + int(parent, 0)) for kind, caller, parent in got]
    check_eq({kind for kind, *_ in calls}, {"disable", "enable"}, "events")
    parents = {parent for _, caller, parent in calls if begin < caller < end}
    check(len(parents) > 3 and not any(begin <= at < end for at in parents), f"who calls spin_lock(): {parents}")


@portable_test("preemptoff and preemptirqsoff see what irqsoff sees, and say so, also while trace_pipe is open")
def preempt():
    *parts, functions = ftrace(
            "exec 3< trace_pipe\necho 0 > options/function-trace\nfor t in preemptoff preemptirqsoff; do\necho $t > current_tracer\nload mix -n 1 >/dev/null\ncat trace tracing_max_latency\n"
            "echo nop > current_tracer\necho 0 > tracing_max_latency\necho =====\ndone\n"
            "echo 1 > options/function-trace\nfor on in 0 1; do sysctl kernel.ftrace_enabled=$on >/dev/null; echo irqsoff > current_tracer\nload mix -n 1 >/dev/null\n"
            "grep -c ' <-' trace\necho nop > current_tracer\ndone\n", smp=1, options=["--icount"])
    check_match(r"^2\n[1-9]\d+\n\Z", functions, "lines in the trace of irqsoff, without and with kernel.ftrace_enabled: where they were off and on, and functions")
    for name, out in zip(("preemptoff", "preemptirqsoff"), parts):
        check_match(rf"^# tracer: {name}\n#\n# {name} latency trace v1.1.5 on Kestrel\n(?:#.*\n)*#  only where interrupts are off, no thread is preempted: see irqsoff\n#  => started at: \w+\n", out, name)
        check_match(r"^[1-9]\d*\n\Z", out, "the maximum")


@portable_test("events/sched has Linux's events alone; those of D's provider are in events/scheduler")
def systems():
    sched, scheduler = ftrace("ls events/sched\necho =====\nls events/scheduler\n", smp=1)
    check({name for name in sched.split() if not name.startswith("sched_")} == {"enable", "filter"}, f"events/sched: {sched}")
    check({"on_cpu", "off_cpu", "sleep", "wakeup", "enqueue"} <= set(scheduler.split()), f"events/scheduler: {scheduler}")


if __name__ == "__main__":
    main()
