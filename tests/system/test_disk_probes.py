#!/usr/bin/python3
"""test_disk_probes.py - what is told of requests to disks: DTrace's provider io, Linux's events of the system block, and the
log's, of files whose bytes are known."""
import collections
import re

from disks import blkdebug, make, partition_table, silent
from harness import Skipped, boot, check, check_eq, check_match, cpus, json_lines, ktrdump, main, portable_test, scratch_file, test
from tracefs import CD, READY

# The DTrace guide's iosnoop.d and iotime.d, and what bitesize.d asks.
SNOOP = """#pragma D option quiet
BEGIN { printf("%10s %58s %2s\\n", "DEVICE", "FILE", "RW"); }
io:::start { printf("%10s %58s %2s\\n", args[1]->dev_statname, args[2]->fi_pathname, args[0]->b_flags & B_READ ? "R" : "W"); }
"""
TIME = """#pragma D option quiet
BEGIN { printf("%10s %58s %2s %7s\\n", "DEVICE", "FILE", "RW", "MS"); }
io:::start { start[args[0]->b_edev, args[0]->b_blkno] = timestamp; }
io:::done
/start[args[0]->b_edev, args[0]->b_blkno]/
{
	this->elapsed = timestamp - start[args[0]->b_edev, args[0]->b_blkno];
	printf("%10s %58s %2s %3d.%03d\\n", args[1]->dev_statname, args[2]->fi_pathname, args[0]->b_flags & B_READ ? "R" : "W",
	    this->elapsed / 10000000, (this->elapsed / 1000) % 1000);
	start[args[0]->b_edev, args[0]->b_blkno] = 0;
}
"""
ALL = """#pragma D option quiet
#pragma D option bufsize=8m
io::: { printf("%s|%s|%s|%s|%s|%s|%s|%d|%x|%d|%d|%d|%d|%d,%d %d|%s %s|%d|%d %d\\n", probename, execname, args[2]->fi_pathname, args[2]->fi_name, args[2]->fi_dirname, args[2]->fi_fs,
	args[2]->fi_mount, args[2]->fi_offset, args[0]->b_flags, args[0]->b_bcount, args[0]->b_blkno, args[0]->b_lblkno, args[0]->b_resid,
	args[1]->dev_major, args[1]->dev_minor, args[1]->dev_instance, args[1]->dev_name, args[1]->dev_pathname, arg0, tid, args[0]->b_error); }
"""
FIELDS = "probe execname path name dirname fs mount offset flags bytes blkno lblkno resid device names buf rest"
Row = collections.namedtuple("Row", FIELDS)
B_DONE, B_ERROR, B_READ, B_WRITE, B_ASYNC = 2, 4, 0x40, 0x100, 0x2000


def io_rows(text):
    """What ALL has printed."""
    found = [line.split("|") for line in text.splitlines() if line.count("|") == FIELDS.count(" ")]
    return [Row(*(int(v, 16) if name == "flags" else int(v) if name in ("offset", "bytes", "blkno", "lblkno", "resid", "buf") else v
                  for name, v in zip(FIELDS.split(), row))) for row in found]


def again(path="/mnt"):
    """Commands after which nothing of the disk is in the cache."""
    return f"sync; umount {path}; mount -t ext2 /dev/vda {path}\n"


def pairs(rows):
    """Each start has one done, of the same buffer, and each wait a thread that ends it."""
    open_, waits = {}, {}
    for r in rows:
        thread = r.rest.split()[0]
        if r.probe == "start":
            check(r.buf not in open_ and not r.flags & B_DONE, f"a buffer starts twice: {r}")
            open_[r.buf] = r
        elif r.probe == "done":
            s = open_.pop(r.buf, None)
            check(s is not None and r.flags & B_DONE, f"a buffer is done that has not started: {r}")
            check_eq(r._replace(**{k: getattr(s, k) for k in ("probe", "execname", "flags", "rest", "resid")}), s, "a buffer, when it is done")
        elif r.probe == "wait-start":
            check(thread not in waits, f"a thread waits twice: {r}")
            waits[thread] = r
        else:
            check_eq(waits.pop(thread).buf, r.buf, "the buffer that was waited for")
    check_eq((open_, waits), ({}, {}), "what has not ended")


def provider(smp):
    disk = make("32M", "-b", "1024")
    text = boot(f"""mkdir /mnt/deep; seq 30000 > /mnt/deep/read; echo short > /mnt/written; wc -c < /mnt/deep/read
cat > /tmp/x.d <<'EOF'
{ALL}EOF
cat > /tmp/snoop.d <<'EOF'
{SNOOP}EOF
cat > /tmp/time.d <<'EOF'
{TIME}EOF
{again()}echo 'cat /mnt/deep/read > /dev/null; echo "new" > /mnt/written; sync' > /tmp/go.sh
dtrace -s /tmp/x.d -c 'sh /tmp/go.sh'
echo =====
echo 'echo later > /mnt/later; sleep 100' > /tmp/later.sh
dtrace -q -n 'io:::start /args[2]->fi_pathname == "/mnt/later"/ {{ printf("%s %d\\n", execname, (args[0]->b_flags & B_ASYNC) != 0); exit(0); }}' -c 'sh /tmp/later.sh'
echo 'while true; do echo again > /mnt/loop; sync; done' > /tmp/loop.sh
dtrace -q -n 'io:::wait-start {{ self->buf = arg0; }} io:::wait-done /self->buf == arg0 && args[2]->fi_name == "loop"/ {{ printf("%s waits for %s\\n", execname, args[2]->fi_pathname); exit(0); }}' -c 'sh /tmp/loop.sh'
echo =====
{again()}dtrace -s /tmp/snoop.d -c 'md5sum /mnt/deep/read'
{again()}dtrace -s /tmp/time.d -c 'md5sum /mnt/deep/read'
echo =====
{again()}dtrace -n 'io:::start {{ @size[execname] = quantize(args[0]->b_bcount); }}' -c 'md5sum /mnt/deep/read'
dtrace -q -n 'syscall::read:entry /execname == "wc" && fds[arg0].fi_name == "written"/ {{ printf("fds %s %s %s\\n", fds[arg0].fi_fs, fds[arg0].fi_mount, fds[arg0].fi_pathname); exit(0); }}' -c 'wc -c /mnt/written'
echo =====
""", smp=smp, options=["--disk", str(disk)]).expect().out.replace("\r", "")
    every, later, snoop, bite, _ = text.split("=====\n")
    size = int(re.search(r"^(\d+)$", every, re.M)[1])
    rows = io_rows(every)
    pairs(rows)
    starts = [r for r in rows if r.probe == "start"]
    read = [r for r in starts if r.path == "/mnt/deep/read"]
    check_eq(sorted(r.offset for r in read), list(range(0, size, 1024)), "offsets of the file that was read")
    check_eq({(r.name, r.dirname, r.fs, r.mount, r.execname, r.bytes, r.flags & (B_READ | B_WRITE)) for r in read},
             {("read", "/mnt/deep", "ext2", "/mnt", "cat", 1024, B_READ)}, "what reads it")
    written = [r for r in starts if r.path == "/mnt/written"]
    check_eq([(r.offset, r.bytes, r.execname, r.flags & (B_READ | B_WRITE | B_ASYNC)) for r in written], [(0, 1024, "sync", B_WRITE)], "the file that was written")
    check_eq({(r.path, r.name, r.dirname, r.fs, r.mount, r.offset) for r in starts if r.path not in ("/mnt/written", "/mnt/deep/read")},
             {("<unknown>",) * 5 + (-1,)}, "what is of no file")
    check_eq({(r.device, r.names) for r in rows}, {("254,0 0", "virtblk /dev/vda")}, "the device")
    check_eq(later.splitlines(), ["syncer 1", "", "sync waits for /mnt/loop", ""], "the thread that writes later, and one that waits")
    check_match(r"^ +DEVICE +FILE RW$", snoop, "iosnoop.d's head")
    check_match(r"^ +vda +/mnt/deep/read  R$", snoop, "iosnoop.d")
    check_match(r"^ +DEVICE +FILE RW +MS$", snoop, "iotime.d's head")
    check_match(r"^ +vda +/mnt/deep/read  R +\d+\.\d{3}$", snoop, "iotime.d")
    check_match(r"^  md5sum +\n +value  -+ Distribution -+ count +\n(.*\n)* +1024 \|@+ +\d+ +$", bite, "bitesize.d")
    check_match(r"^fds ext2 /mnt /mnt/written$", bite, "fds[]")


for _smp in cpus("the provider io"):
    test(f"io: each buffer starts and is done once, with its file, device and bytes; the guide's scripts run, {_smp} CPUs")(lambda smp=_smp: provider(smp))


LINE = re.compile(r"^ *(\S.*)-(\d+) +\[\d{3}\] \S+ +\d+\.\d{6}: (block_\w+): (.*)$", re.M)
BIO = re.compile(r"^(\d+,\d+) (\w+) (\d+) \+ (\d+) \[(.*)\]$")
REQUEST = re.compile(r"^(\d+,\d+) (\w+) (\d+) \(\) (\d+) \+ (\d+) \[(.*)\]$")
DONE = re.compile(r"^(\d+,\d+) (\w+) \(\) (\d+) \+ (\d+) \[(-?\d+)\]$")


@portable_test("block: Linux's events have its fields and texts; bios become requests, which are issued and complete; filters read their fields")
def events():
    disk = make("32M", "-b", "1024")
    text = boot(CD + f"""seq 30000 > /mnt/f; seq 3 > /mnt/g
{again()}echo 1 > events/block/enable
cat /mnt/f > /dev/null; echo new > /mnt/g; sync
echo 0 > events/block/enable
cat trace
echo =====
cat events/block/block_rq_issue/format events/block/block_rq_complete/format
ls -1 events/block
echo =====
echo > trace; echo 'bytes > 32768 && rwbs == "WS"' > events/block/block_rq_issue/filter; echo 1 > events/block/block_rq_issue/enable
dd if=/dev/zero of=/mnt/big bs=1M count=1 2> /dev/null; sync
sed -n 's/^.*block_rq_issue: //p' trace
echo =====
""", options=["--disk", str(disk)], sets=["debug.ktr.entries=65536"]).expect().out.replace("\r", "")
    trace, formats, large, _ = text.split("=====\n")
    found = [(m[1], m[3], m[4]) for m in LINE.finditer(trace)]
    bios = {what: [BIO.match(t).groups() for _, n, t in found if n == what] for what in ("block_bio_queue", "block_getrq", "block_bio_backmerge")}
    requests = {what: [REQUEST.match(t).groups() for _, n, t in found if n == what] for what in ("block_rq_insert", "block_rq_issue")}
    done = [DONE.match(t).groups() for _, n, t in found if n == "block_rq_complete"]
    parts = lambda rows: sorted((r[0], r[2], r[3]) for r in rows)
    check(len(bios["block_bio_queue"]) > 150, f"{len(bios['block_bio_queue'])} bios")
    check_eq(parts(bios["block_bio_queue"]), parts(bios["block_getrq"] + bios["block_bio_backmerge"]), "bios that are queued, and that begin or join a request")
    check_eq({(r[0], r[1][:1]) for r in bios["block_bio_queue"]}, {("254,0", "R"), ("254,0", "W"), ("254,0", "F")}, "devices and operations")
    check_eq(sorted(requests["block_rq_insert"]), sorted(requests["block_rq_issue"]), "requests that are inserted and issued")
    check_eq(sorted(r[:2] + r[3:5] + ("0",) for r in requests["block_rq_issue"]), sorted(done), "requests that are issued and complete")
    check_eq([int(r[2]) for r in requests["block_rq_issue"]], [int(r[4]) * 512 for r in requests["block_rq_issue"]], "bytes and sectors")
    check_eq(sum(int(r[3]) for r in bios["block_bio_queue"]), sum(int(r[4]) for r in requests["block_rq_issue"]), "sectors of bios and of requests")
    check_eq(len(bios["block_getrq"]), len(requests["block_rq_issue"]), "requests")
    check({r[1] for r in done} >= {"R", "RM", "WS", "WSM", "FF"}, f"what is done: { {r[1] for r in done} }")
    check({r[4] for r in bios["block_bio_queue"]} >= {"cat", "sync"}, "the names of threads")
    check_eq([t for _, n, t in found if n == "block_plug"][:1], ["[cat]"], "block_plug")
    letters = {"block_bio_queue": "Q", "block_getrq": "G", "block_bio_backmerge": "M", "block_plug": "P", "block_unplug": "U", "block_rq_insert": "I"}
    for tid in {m[2] for m in LINE.finditer(trace)}:
        mine = [(letters[m[3]], m[4]) for m in LINE.finditer(trace) if m[2] == tid and m[3] in letters]
        order = "".join(letter for letter, _ in mine)
        check_match(r"^(QGI|QGP(Q[GM])*UI+)*$", order, f"the order of what thread {tid} does")
        batches = [m[0] for m in re.finditer(r"QGP(?:Q[GM])*U(I+)", order)]
        check_eq([int(t.split()[1]) for letter, t in mine if letter == "U"], [b.count("I") for b in batches], "requests of block_unplug, and those inserted after it")
        check_eq([b.count("G") for b in batches], [b.count("I") for b in batches], "requests of a batch")
    for n, t in ((n, t) for _, n, t in found if n == "block_unplug"):
        check_match(r"^\[\w+\] \d+$", t, n)
    check_match(r'^print fmt: "%llu,%llu %s %llu \(\) %llu \+ %llu \[%s\]", REC->dev >> 20, REC->dev & 1048575, __get_str\(rwbs\), REC->bytes, REC->sector, REC->nr_sector, REC->comm$', formats, "block_rq_issue/format")
    check_match(r"^\tfield:s64 error;", formats, "block_rq_complete/format")
    for name in ("block_bio_remap", "block_rq_error", "block_unplug"):
        check_match(rf"^{name}$", formats, "events")
    sizes = [int(REQUEST.match(line)[3]) for line in large.splitlines()]
    check(sizes and min(sizes) > 32768 and {REQUEST.match(line)[2] for line in large.splitlines()} == {"WS"}, f"requests of more than 32768 bytes: {large}")


@portable_test("block: a partition's requests are remapped to the disk, and tell its number and places; what fails has its error")
def partitions():
    disk = scratch_file(".img")
    disk.write_bytes(partition_table("dos", (2048, 8192), (12288, 2048)).ljust(8 << 20, b"\0"))
    text = boot(CD + f"""cat > /tmp/x.d <<'EOF'
{ALL}EOF
echo 1 > events/block/enable
dtrace -s /tmp/x.d -c 'dd if=/dev/vda2 of=/dev/null bs=4096 skip=1 count=2' 2> /dev/null
echo 0 > events/block/enable
sed -n 's/^.*: \\(block_[a-z_]*: \\)/\\1/p' trace
""", options=blkdebug(disk, f'event = "read_aio"\nerrno = "5"\nsector = "{12288 + 17}"')).expect().out.replace("\r", "")
    rows = io_rows(text)
    pairs(rows)
    first = [r for r in rows if r.lblkno == 8]
    check_eq({(r.device, r.names, r.blkno, r.path, r.name, r.offset) for r in first}, {("254,2 0", "virtblk /dev/vda2", 12296, "/dev/vda2", "vda2", 4096)}, "a buffer of a partition")
    bad = [r for r in rows if r.probe == "done" and r.blkno == 12304]
    check_eq([(r.flags & (B_ERROR | B_DONE), r.resid, r.rest.split()[1]) for r in bad], [(B_ERROR | B_DONE, 4096, "5")], "a buffer that failed")
    for line in ("block_bio_remap: 254,2 R 12296 + 8 <- (254,2) 8", "block_bio_queue: 254,2 R 12296 + 8 [dd]", "block_rq_issue: 254,0 R 4096 () 12296 + 8 [dd]",
                 "block_rq_complete: 254,0 R () 12296 + 8 [0]", "block_rq_error: 254,0 R () 12304 + 8 [-5]", "block_rq_complete: 254,0 R () 12304 + 8 [-5]"):
        check(line in text.splitlines(), f"no {line!r} in:\n{text}")
    check_match(r"block_rq_complete: 254,0 R \(\) 12304 \+ 8 \[-5\]\n.*block_rq_error", text, "an error is told after the completion")


ACTION = re.compile(r"^ *(\S.*)-(\d+) +\[\d{3}\] \S+ +\d+\.\d{6}: +(\d+),(\d+) +([A-Z]+) +([A-Z]+) (.*)$", re.M)


@portable_test("blk: the tracer tells what the events of block do, of disks that are traced, by act_mask, pid and sectors; its files refuse nonsense")
def tracer():
    disk = scratch_file(".img")
    part = make("4M", "-b", "1024")
    disk.write_bytes((partition_table("dos", (2048, 8192)).ljust(2048 * 512, b"\0") + part.read_bytes()).ljust(8 << 20, b"\0"))
    parts = boot(CD + """S=/sys/block/vda/trace
mkdir /mnt; mount -t ext2 /dev/vda1 /mnt
cat $S/enable $S/act_mask $S/pid $S/start_lba $S/end_lba
echo blk > current_tracer; echo a > /mnt/a; sync; grep -c vda trace
echo =====
echo 1 > $S/enable; echo 1 > events/block/enable; seq 500 > /mnt/b; sync; dd if=/dev/vda of=/dev/null bs=4096 skip=4 count=1 2> /dev/null; echo 0 > $S/enable; echo 0 > events/block/enable
cat trace
echo =====
echo complete > $S/act_mask; echo > trace; echo c > /mnt/c; sync; cat $S/enable $S/act_mask; cat trace
echo =====
echo 0 > $S/enable; echo 11200 > $S/start_lba; echo 11207 > $S/end_lba; echo > trace
for page in 1300 1400 1500; do dd if=/dev/vda of=/dev/null bs=4096 skip=$page count=1 2> /dev/null; done; cat trace
echo =====
echo 0 > $S/enable; echo complete > $S/act_mask
for bad in never 'queue,never' -1 x; do echo $bad > $S/act_mask; echo $bad > $S/pid; done; echo x > $S/enable; cat $S/act_mask $S/pid
echo 0 > $S/enable; echo 2 > $S/end_lba; echo > trace; cat $S/enable $S/start_lba $S/end_lba; cat /dev/vda > /dev/null; cat trace
echo =====
echo 0 > $S/enable; echo 1 > $S/pid; echo > trace; echo d > /mnt/d; sync; cat trace
echo =====
echo > trace; echo 'echo $$ | tee /sys/block/vda/trace/pid; exec sync' > /tmp/own.sh; echo d > /mnt/d; sh /tmp/own.sh; echo dd > /mnt/d; sync; cat trace
echo =====
echo 0 > $S/enable; echo 0x40 > $S/act_mask; echo 1 > options/blk_classic; echo > trace; echo e > /mnt/e; sync; cat options/context-info trace; echo 0 > options/blk_classic
echo =====
echo nop > current_tracer; echo > trace; echo f > /mnt/f; sync; cat trace options/context-info
""", options=["--", "-drive", f"file={disk},format=raw,if=none,id=d", "-device", "virtio-blk-pci,drive=d,disable-legacy=on"],
                 sets=["debug.ktr.entries=65536"]).expect().out.replace("\r", "").split("=====\n")
    check_eq(parts[0].split(), ["0"] + ["disabled"] * 4 + ["0"], "before")
    found = [(m[1], f"{m[3]},{m[4]}", m[5], m[6], m[7]) for m in ACTION.finditer(parts[1])]
    told = {}
    for m in LINE.finditer(parts[1]):
        told.setdefault(m[3], []).append(m[4])
    for letter, name, pattern in (("Q", "block_bio_queue", BIO), ("G", "block_getrq", BIO), ("M", "block_bio_backmerge", BIO), ("I", "block_rq_insert", REQUEST),
                                  ("D", "block_rq_issue", REQUEST), ("C", "block_rq_complete", DONE), ("A", "block_bio_remap", re.compile(r"(\S+) (\w+) (\d+) \+ (\d+) <- (.*)"))):
        mine = [(dev, flags, rest) for _, dev, act, flags, rest in found if act == letter]
        want = [pattern.match(t).groups() for t in told[name]]
        check_eq([(dev, rest) for dev, flags, rest in mine],
                 [(w[0], (f"{w[-3]} + {w[-2]} " if w[-2] != "0" else f"{w[-3]} " if letter == "C" else "") + (f"<- {w[-1]}" if letter == "A" else f"[{w[-1]}]")) for w in want], letter)
        check_eq([flags for _, flags, _ in mine], [w[1].replace("FF", "FN") for w in want], f"{letter}: what is done")
    check({f[1] for f in found if f[2] == "A"} == {"254,1"} and {f[1] for f in found if f[2] == "D"} == {"254,0"}, "numbers of the partition and of the disk")
    check_eq([f[4] for f in found if f[2] == "P"], told["block_plug"], "plugs")
    check_eq([f[4] for f in found if f[2] == "U"], told["block_unplug"], "unplugs")
    check_match(r"^1\ncomplete$", parts[2], "act_mask sets enable")
    check_eq({m[5] for m in ACTION.finditer(parts[2])}, {"C"}, "actions of a mask")
    check_eq({(m[5], m[7]) for m in ACTION.finditer(parts[3]) if "+" in m[7]}, {(letter, f"11200 + 8 [{'0' if letter == 'C' else 'dd'}]") for letter in "QGIDC"}, "one of three places")
    check_eq(parts[4].count("Invalid argument"), 9, f"what is refused:\n{parts[4]}")
    check_match(r"^complete\n0\n1\n0\n2$", parts[4], "what is set, after it; and that end_lba sets enable")
    sectors = {int(m[7].split()[0]) for m in ACTION.finditer(parts[4]) if "+" in m[7]}
    check_eq(sectors, {0}, "sectors up to the second one, of pages")
    check_eq(ACTION.findall(parts[5]), [], "what another process does")
    own = check_match(r"^(\d+)$", parts[6], "the thread's number")[1]
    check_eq({(m[1], m[2]) for m in ACTION.finditer(parts[6])}, {("sync", own)}, "what this thread does, and no other")
    lines = re.sub(r"^[01]\n", "", parts[7]).splitlines()
    check_eq(lines[:4], ["# tracer: blk", "#", "# DEV   CPU TIMESTAMP     PID ACT FLG", "#  |     |     |           |   |   |"], "the head of blk_classic")
    check(len(lines) > 5, parts[7])
    for line in lines[4:]:
        check_match(r"^254,0    0 +\d+\.\d{9} +\d+  D +[A-Z]+ (\d+ \+ \d+ )?\[sync\]$", line, "a line of blk_classic")
    check_eq(ACTION.findall(parts[8]), [], "with the tracer nop")
    check_match(r"^1$", parts[8], "context-info, after it")


@portable_test("trace-cmd record -e block records requests, whose fields its report knows")
def trace_cmd():
    disk = make("8M", "-b", "1024")
    run = boot(CD + f"""seq 100 > /mnt/f
trace-cmd record -e block -o /tmp/a.dat sh -c '{READY}echo x > /mnt/f; exec sync' > /tmp/out 2>&1 || cat /tmp/out
trace-cmd report -i /tmp/a.dat
""", options=["--disk", str(disk), "--program", "trace-cmd"])
    if run.status == 2 and "trace-cmd" in run.err:
        raise Skipped("no trace-cmd: run qemu/fetch-guest")
    text = run.expect().out.replace("\r", "")
    for name, pattern in (("block_bio_queue", r"254,0 WS \d+ \+ 2 \[sync\]"), ("block_rq_issue", r"254,0 WS 1024 \(\) \d+ \+ 2 \[sync\]"), ("block_rq_complete", r"254,0 FF \(\) 0 \+ 0 \[0\]")):
        check_match(rf"^ *\S.*-\d+ +\[\d{{3}}\] .*\d+\.\d{{6}}: +{name}: +{pattern}$", text, name)


def words(text):
    """{name: value} of an event's text."""
    parts = text.split(": ", 1)[1].split()
    return dict(zip(parts[::2], parts[1::2]))


def pieces(run):
    """The bios of a trace: (device, rwbs, file, thread, bytes, time, time in the queue), counted a second time."""
    row = lambda b, start, e, queued: (b["device"], b["rwbs"], b["file"], start["tid"], int(b["bytes"]), e["ns"] - start["ns"], queued - start["ns"])
    waiting, issued = [], {}
    for e in run.events:
        kind = e["text"].split(":")[0]
        if kind == "bio start":
            waiting.append((words(e["text"]), e))
        elif kind == "request start":
            w = words(e["text"])
            first, size = int(w["sector"]), int(w["bytes"]) // 512
            mine = [b for b in waiting if first <= int(b[0]["sector"]) < first + max(size, 1) and b[0]["rwbs"][0] == w["rwbs"][0] and (b[0]["bytes"] == "0") == (size == 0)]
            waiting = [b for b in waiting if b not in mine]
            tag = w["tag"], w["sector"]  # on two CPUs a tag may be used again a moment before it is told that it was done
            check(tag not in issued and mine, f"a request of no bios, or whose tag is in use: {e}")
            issued[tag] = mine, e["ns"]
        elif kind == "request done":
            w = words(e["text"])
            mine, at = issued.pop((w["tag"], w["sector"]))
            for b, start in mine:
                yield row(b, start, e, at)
        elif kind == "bio done":
            w = words(e["text"])
            b, start = next(b for b in waiting if all(b[0][k] == w[k] for k in ("device", "rwbs", "sector")))
            waiting.remove((b, start))
            yield row(b, start, e, e["ns"])
    check_eq((waiting, issued), ([], {}), "what has not ended")


def told(run, rows):
    """ktrdump report io tells these bios."""
    status, out, err = ktrdump("report", "io", "--format", "jsonl", "-i", run.trace)
    check_eq((status, err), (0, ""), "ktrdump report io")
    tables = [r for r in json_lines(out) if r.get("report") == "io" and "row" not in r]
    for table, key in (("devices", lambda r: (r[0], r[1])), ("files", lambda r: (r[2], r[0])), ("threads", lambda r: r[3])):
        want = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
        for r in rows:
            w = want[key(r)]
            w[:] = w[0] + 1, w[1] + r[4], w[2] + r[5], w[3] + r[6], max(w[4], r[5])
        found = {}
        for r in tables:
            if r["table"] == table:
                name = {"devices": lambda: (r["device"], r["rwbs"]), "files": lambda: (r["file"], r["device"]), "threads": lambda: r["tid"]}[table]()
                found[name] = [r["count"], r["bytes"], r["total_ns"], r["queued_ns"], r["longest_ns"]]
        check_eq(found, dict(want), table)


@portable_test("report io: bytes, times and times in the queue, by device, file and thread, are those of the events")
def report():
    disk = make("32M", "-b", "1024")
    run = boot(f"""seq 9000 > /mnt/a; seq 3000 > /mnt/b
{again()}cat /mnt/a > /dev/null & cat /mnt/b > /mnt/c; wait; sync
""", smp=2, mask="GEOM", trace=True, options=["--disk", str(disk)])
    rows = list(pieces(run))
    check(len(rows) > 100, f"{len(rows)} bios")
    told(run, rows)
    check({"/mnt/a", "/mnt/b", "/mnt/c", "<unknown>"} <= {r[2] for r in rows}, f"files: { {r[2] for r in rows} }")


@portable_test("report io: what a disk that is set aside does not do any more is counted, until it failed")
def report_failed():
    disk = make("8M")
    run = boot("for i in 2 3 4; do dd if=/dev/vda of=/dev/null bs=4096 skip=$i count=1 2> /dev/null || echo failed; done; seq 9 > /tmp/x; sync\n",
               mask="GEOM", trace=True, sets=["kern.geom.timeout=1"], options=silent(disk, "read"))
    check_eq(run.expect().out.replace("\r", "").splitlines().count("failed"), 3, "what fails")
    rows = list(pieces(run))
    check(sum(e["text"].startswith("bio done: ") for e in run.events) >= 3, "bios that fail without a request")
    told(run, rows)


@portable_test("vminfo and sysinfo: pages that come from a disk, faults that wait for one, bytes of reads and writes, calls of other CPUs")
def counters():
    program = "vminfo:::maj_fault, vminfo:::pgin, vminfo:::pgpgin, sysinfo:::readch, sysinfo:::writech /progenyof($target)/ { @[probename] = sum(arg0); } "
    program += "sysinfo:::xcalls { @x = sum(arg0); } END { printa(\"%s %@d\\n\", @); printa(\"calls %@d\\n\", @x); }"
    once = f"dtrace -qn '{program}' -c 'sh /tmp/s' 2>&1\n"
    cold, warm = boot("head -c 40960 /dev/zero > /mnt/f\ncp /bin/load /mnt/load\n" + again() +
                      "echo 'cat /mnt/f > /dev/null; /mnt/load lock -n 10 -j 1 > /dev/null; true' > /tmp/s\n" + once + "echo =====\n" + once,
                      smp=2, options=["--disk", str(make("16M"))]).expect().out.replace("\r", "").split("=====\n")
    cold, warm = (dict(re.findall(r"^(\w+) (\d+)$", text, re.M)) for text in (cold, warm))
    check(int(cold["pgin"]) >= 10 and cold["pgin"] == cold["pgpgin"] and int(cold["maj_fault"]) > 0, f"pages from the disk: {cold}")
    check(int(cold["readch"]) >= 40960 and int(cold["writech"]) >= 40960 and int(cold["calls"]) > 0, f"bytes and calls: {cold}")
    check_eq([warm.get(name) for name in ("pgin", "pgpgin", "maj_fault")], [None] * 3, "nothing comes from the disk a second time")


if __name__ == "__main__":
    main()
