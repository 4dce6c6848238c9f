#!/usr/bin/python3
"""test_net_probes.py - the network's probes: DTrace's providers ip, tcp and udp, Linux's events, and the log's, of packets
whose figures are known."""
import re

from harness import (LINUX_TEST, boot, check, check_eq, check_match, cpus, json_lines, ktrdump, main, need_lwip, portable_test,
                     test)
from tracefs import CD

SERVE = """mkdir /tmp/w; seq 20000 > /tmp/w/f
httpd -p 8080 -h /tmp/w
"""
WGET = "wget -q -O /dev/null http://127.0.0.1:8080/f"
STATES = """tcp:::state-change { printf("state %d %d %d %d %s %s\\n", args[1]->cs_pid != 0, args[3]->tcps_active, args[3]->tcps_lport, args[3]->tcps_rport,
	tcp_state_string[args[5]->tcps_state], tcp_state_string[args[3]->tcps_state]); }
"""
SEGMENTS = """tcp:::send, tcp:::receive, tcp:::connect-*, tcp:::accept-* { printf("%s %s:%d %s:%d %u %u %x %d %d\\n", probename, args[2]->ip_saddr, args[4]->tcp_sport,
	args[2]->ip_daddr, args[4]->tcp_dport, args[4]->tcp_seq, args[4]->tcp_ack, args[4]->tcp_flags, args[2]->ip_plength - args[4]->tcp_offset, args[3]->tcps_lport); }
"""
BEGINS = {1: ["closed syn-sent", "syn-sent established"], 0: ["listen syn-received", "syn-received established"]}  # active, or not
# Who closes first, the one that the other tells, and both at the same time.
FIRST, SECOND = ["established fin-wait-1", "fin-wait-1 fin-wait-2", "fin-wait-2 time-wait"], ["established close-wait", "close-wait last-ack", "last-ack closed"]
BOTH = (["established fin-wait-1", "fin-wait-1 closing", "closing time-wait"], ["established fin-wait-1", "fin-wait-1 time-wait"])


# Until every connection has ended, but for those that wait for late segments.
ENDED = "while netstat -tn | grep -v TIME_WAIT | grep -q ^tcp; do sleep 0.02; done"


def out(script, **options):
    return boot(script, **options).expect(0).out.replace("\r", "")


def connection(smp):
    """One connection: what each end sends the other receives, with the numbers, flags and bytes; and the states of both."""
    need_lwip()
    text = out(f"cat > /tmp/x.d <<'EOF'\n#pragma D option quiet\n#pragma D option bufsize=4m\n{STATES}{SEGMENTS}EOF\n{SERVE}wc -c < /tmp/w/f\necho '{WGET}; {ENDED}' > /tmp/go.sh\ndtrace -s /tmp/x.d -c 'sh /tmp/go.sh'\n", smp=smp)
    size = int(re.search(r"^(\d+)$", text, re.M)[1])
    seen = [line.split() for line in re.findall(r"^(?:send|receive) .*", text, re.M)]
    sent, received = (sorted(s[1:7] for s in seen if s[0] == what) for what in ("send", "receive"))
    check_eq(sent, received, "what was sent and what was received")
    data = [tuple(s) for s in sent if s[5] != "0"]
    check_eq(len(data), len(set(data)), "segments with data that are the same")
    carried = sum(int(s[5]) for s in sent if s[0] == "127.0.0.1:8080")
    check(size < carried < size + 300, f"{carried} bytes from the server, whose file has {size}, and a header")
    for what, port, flags in (("connect-request", "dport", 2), ("connect-established", "sport", 0x12), ("accept-established", "dport", 0x10)):
        found = re.findall(rf"^{what} (\S+) (\S+) \d+ \d+ (\w+) 0 (\d+)$", text, re.M)
        check_eq([(int(f[2], 16), f[1 if port == "dport" else 0]) for f in found], [(flags, "127.0.0.1:8080")], what)
    states = [line.split() for line in re.findall(r"^state (.*)$", text, re.M)]
    check({s[0] for s in states} == {"1"}, f"a socket whose process is not known: {states}")
    ends = []
    for active, port in ((1, 3), (0, 2)):
        seen = [f"{s[4]} {s[5]}".replace("state-", "") for s in states if s[1] == str(active) and s[port] == "8080"]
        check_eq(seen[:2], BEGINS[active], f"states, active {active}")
        ends.append(seen[2:])
    check(ends in ([FIRST, SECOND], [SECOND, FIRST]) or all(end in BOTH for end in ends), f"states at the end: {ends}")
    # Each state comes before the segment that tells the peer of it.
    order = re.findall(r"^(?:state \d 1 .* (state-\S+)|(send) 127.0.0.1:(?!8080)\d+ 127.0.0.1:8080 \d+ \d+ (\w+))", text, re.M)
    check_eq([o[0] or o[2] for o in order[:4]], ["state-syn-sent", "2", "state-established", "10"], "the order of states and segments")


for _smp in cpus("one connection's probes"):
    test(f"tcp: each segment of a connection is sent and received once, with its figures and the states of both ends, {_smp} CPUs")(lambda smp=_smp: connection(smp))


@portable_test("tcp: a connection that is refused; Linux's events agree")
def refused():
    need_lwip()
    text = out(CD + f"""cat > /tmp/x.d <<'EOF'
#pragma D option quiet
{STATES}{SEGMENTS}EOF
echo 1 > events/sock/enable; echo 1 > events/tcp/enable
dtrace -s /tmp/x.d -c 'nc 127.0.0.1 9' 2>&1
echo 0 > events/enable
sed 's/^.*: \\([a-z_]*: \\)/\\1/' trace
cat events/sock/inet_sock_set_state/format events/net/net_dev_xmit/format
ls -1 events/tcp events/dtrace_tcp events/net events/sock
""", smp=1)
    port = re.search(r"^connect-request 127.0.0.1:(\d+) ", text, re.M)[1]
    told = [(m[1], m[2], m[3]) for m in re.finditer(r"^(\S+) 127.0.0.1:(\d+) 127.0.0.1:\d+ \d+ \d+ (\w+) ", text, re.M)]
    check_eq(told, [("connect-request", port, "2"), ("send", port, "2"), ("receive", port, "2"), ("accept-refused", "9", "14"), ("send", "9", "14"),
                    ("receive", "9", "14"), ("connect-refused", "9", "14")], "probes of a connection that is refused")
    check_eq(re.findall(r"^state 1 1 (\d+) 9 state-(\S+) state-(\S+)$", text, re.M), [(port, "closed", "syn-sent"), (port, "syn-sent", "closed")], "states")
    names = f"sport={port} dport=9 saddr=127.0.0.1 daddr=127.0.0.1"
    check_eq(re.findall(r"^(?:inet_sock|tcp)_\w+: .*", text, re.M), [
        f"inet_sock_set_state: family=AF_INET protocol=IPPROTO_TCP {names} oldstate=TCP_CLOSE newstate=TCP_SYN_SENT",
        f"tcp_receive_reset: family=AF_INET {names}",
        f"inet_sock_set_state: family=AF_INET protocol=IPPROTO_TCP {names} oldstate=TCP_SYN_SENT newstate=TCP_CLOSE",
        f"tcp_destroy_sock: family=AF_INET {names}"], "Linux's events")
    check_match(r"^\tfield:u64 saddr;.*\n(?:.*\n)*print fmt: \"family=AF_INET protocol=IPPROTO_TCP sport=%llu dport=%llu saddr=%llu.%llu.%llu.%llu", text, "a format")
    check_match(r"^print fmt: \"dev=%s skbaddr=0x%llx len=%llu rc=%lld\", __get_str\(dev\), REC->skbaddr, REC->len, REC->rc$", text, "a format")
    for line in (r"^tcp_destroy_sock$", r"^net_dev_queue$", r"^sock_rcvqueue_full$", r"^state_change$"):
        check_match(line, text, "events")


@portable_test("ip and net: each packet is told once, and as often as the interface counts it")
def packets():
    need_lwip()
    text = out(f"""{SERVE}cat > /tmp/x.d <<'EOF'
#pragma D option quiet
ip:::send, ip:::receive {{ @n[probename, args[3]->if_name, args[3]->if_local] = count(); @b[probename] = sum(args[4]->ipv4_length); }}
ip:::send {{ @p[args[4]->ipv4_protostr, args[2]->ip_daddr] = count(); }}
net:::net_dev_xmit /arg3 == 0/ {{ @l["xmit"] = count(); }}
EOF
grep lo: /proc/net/dev
echo 'ping -c 3 127.0.0.1 > /dev/null; {WGET}; ping -c 1 -W 1 -s 9000 127.0.0.2 > /dev/null' > /tmp/go.sh
dtrace -s /tmp/x.d -c 'sh /tmp/go.sh'
grep lo: /proc/net/dev
""", smp=1)
    before, after = (re.findall(r"\d+", line) for line in re.findall(r"^ +lo: (.*)$", text, re.M))
    packets, size = int(after[9]) - int(before[9]), int(after[8]) - int(before[8])
    check(packets > 40, f"{packets} packets of the loopback")
    for what in ("send", "receive"):
        check_match(rf"^ +{what} +lo +1 +{packets}$", text, what)
        check_match(rf"^ +{what} +{size}$", text, f"bytes, {what}")
    check_match(rf"^ +xmit +{packets}$", text, "net_dev_xmit")
    check_match(r"^ +ICMP +127.0.0.1 +\d+$", text, "protocol")
    check_match(r"^ +ICMP +127.0.0.2 +1$", text, "another address of the loopback")
    check_match(r"^ +TCP +127.0.0.1 +\d+$", text, "protocol")


@portable_test("udp: what one socket sends to another is received with the same ports and lengths; what nobody waits for is sent only")
def datagrams():
    need_lwip()
    text = out("""cat > /tmp/x.d <<'EOF'
#pragma D option quiet
#pragma D option bufsize=16m
udp:::send, udp:::receive { printf("%s %s:%d %s:%d %d %d %d-%d\\n", probename, args[2]->ip_saddr, args[4]->udp_sport, args[2]->ip_daddr, args[4]->udp_dport,
	args[4]->udp_length, args[2]->ip_plength, args[3]->udps_lport, args[3]->udps_rport); }
udp:::send { @s = count(); } udp:::receive { @r = count(); } END { printa("%@d sent\\n", @s); printa("%@d received\\n", @r); }
EOF
ktr on INET
dtrace -s /tmp/x.d -c 'linux_test brief datagrams' 2>&1
ktr off
ktrdump -q 2> /dev/null | grep -c 'udp send'; ktrdump -q 2> /dev/null | grep -c 'udp receive'
""", smp=1, sets=["debug.ktr.entries=262144"], options=LINUX_TEST, mem="512M")
    found = re.findall(r"^(send|receive) (\S+:\d+) (\S+:\d+) (\d+) (\d+) (\d+)-(\d+)$", text, re.M)
    found = found[:200]  # then D may drop some: a test sends thousands
    sent, received = ([f[1:4] for f in found if f[0] == what] for what in ("send", "receive"))
    check(len(sent) > 20 and len(received) > 20, f"{len(sent)} datagrams sent, {len(received)} received")
    for f in received:
        check(f in sent, f"{f} was received, but not sent")
        sent.remove(f)
    for what, source, to, length, plength, lport, rport in found:
        ports = [source.split(":")[1], to.split(":")[1]]
        check_eq([lport, rport], ports if what == "send" else ports[::-1], "the ports of the socket")
        check_eq(length, plength, "lengths of UDP and in IP")
    check_eq(re.findall(r"^(\d+)$", text, re.M), re.findall(r"^(\d+) (?:sent|received)$", text, re.M), "datagrams in the log, and counted by D")
    check(len([f for f in sent if f[2] == "9"]) >= 2, f"datagrams of a byte to a port where nobody listens: {sent}")


def addresses(f):
    return f"{f['local']}:{f['lport']}", f"{f['remote']}:{f['rport']}"


def connections(events):
    """(local, remote): figures of a connection, from the events: the report's, counted a second time."""
    ends, found = {}, {}
    for e in events:
        m = re.match(r"tcp (send|receive|state): (.*)$", e["text"])
        if not m:
            continue
        words = m[2].split()
        f = dict(zip(words[::2], words[1::2]))
        pcb = f["pcb"]
        if m[1] == "state":
            if f["state"] == "CLOSE":
                ends.pop(pcb, None)
            else:
                ends.setdefault(pcb, {"timed": None})["names"] = addresses(f)
            continue
        end = ends.setdefault(pcb, {"timed": None, "names": ("(no connection)", "") if int(pcb, 16) == 0 else (f"(pcb {pcb})", "")})
        row = found.setdefault(end["names"], dict(sent=0, segments=0, again=0, received=0, segments_received=0, trips=[]))
        seq, ack, flags, size = int(f["seq"]), int(f["ack"]), int(f["flags"], 16), int(f["bytes"])
        length = size + (flags & 1) + (flags >> 1 & 1)
        if m[1] == "send":
            row["sent"] += size
            row["segments"] += 1
            row["again"] += int(f["again"])
            if int(f["again"]):
                end["timed"] = None
            elif length and end["timed"] is None:
                end["timed"] = (seq + length) % 2 ** 32, e["ns"]
        else:
            row["received"] += size
            row["segments_received"] += 1
            if end["timed"] is not None and flags & 16 and (ack - end["timed"][0]) % 2 ** 32 < 2 ** 31:
                row["trips"].append(e["ns"] - end["timed"][1])
                end["timed"] = None
    return found


def tcp_log(run, what="send|receive"):
    """(what, {name: value}) of each segment in the log."""
    for e in run.events:
        m = re.match(rf"tcp ({what}): (.*)$", e["text"])
        if m:
            words = m[2].split()
            yield m[1], dict(zip(words[::2], words[1::2]))


@portable_test("tcp: the probes of a closed window, and the segment whose first byte was such a probe, are not sent again; the SYN to nobody is")
def window():
    need_lwip()
    run = boot(CD + """cat > /tmp/x.d <<'EOF'
#pragma D option quiet
tcp:::send /args[3]->tcps_retransmit/ { printf("again %d %x\\n", args[4]->tcp_dport, args[4]->tcp_flags); }
tcp:::receive, tcp:::connect-*, tcp:::accept-*, tcp:::state-change /args[3]->tcps_retransmit/ { printf("again in %s\\n", probename); }
EOF
echo 1 > events/tcp/tcp_retransmit_skb/enable
sleep 40 | nc -l -p 5000 | (sleep 20; wc -c) &
until netstat -ltn | grep -q :5000; do sleep 0.02; done
echo 'dd if=/dev/zero bs=1000 count=300 2> /dev/null | nc 127.0.0.1 5000; nc -w 8 10.0.2.99 9' > /tmp/go.sh
dtrace -s /tmp/x.d -c 'sh /tmp/go.sh'
wait
sed -n 's/^.*: tcp_retransmit_skb: /skb /p' trace
""", smp=1, mask="INET", trace=True, options=["--icount", "--net"]).expect()
    text = run.out.replace("\r", "")
    check_match(r"^300000$", text, "bytes that have arrived")
    sent = [f for _, f in tcp_log(run, "send")]
    probes = [f for f in sent if f["bytes"] == "1"]
    check(len(probes) > 2 and {f["again"] for f in probes} == {"0"}, f"probes of the window: {probes}")
    after = [f["again"] for f in sent if f["seq"] == probes[-1]["seq"] and int(f["bytes"]) > 1]
    check_eq(after, ["0"], "the segment that begins with the byte of the probe")
    again = [f["flags"] for f in sent if f["again"] != "0"]
    check(again and set(again) == {"0x2"}, f"flags of what is sent again: {again}")
    check_eq(re.findall(r"^again (.*)$", text, re.M), ["9 2"] * len(again), "tcps_retransmit")
    told = re.findall(r"^skb family=AF_INET sport=\d+ dport=9 saddr=10.0.2.15 daddr=10.0.2.99 state=TCP_SYN_SENT$", text, re.M)
    check_eq((len(told), text.count("skb family")), (len(again), len(again)), "tcp_retransmit_skb")


CARD = """
#pragma D option quiet
#pragma D option bufsize=4m
ip:::send { printf("%s %s %d %x %d %d\\n", args[3]->if_name, args[4]->ipv4_daddr, args[4]->ipv4_ident, args[4]->ipv4_flags, args[4]->ipv4_offset, args[2]->ip_plength); }
ip:::receive { printf("receive %s %s\\n", args[3]->if_name, args[4]->ipv4_daddr); }
udp:::send { printf("udp %s %d %x %d\\n", args[2]->ip_saddr, args[4]->udp_sport, args[3]->udps_addr, args[4]->udp_length); }
net:::net_dev_queue, net:::net_dev_xmit, net:::netif_rx, net:::netif_receive_skb { printf("net %s %s %d\\n", probename, stringof(args[0]), args[2]); }
"""


@portable_test("card: fragments with their flags and offsets; events and bytes are as many as eth0 counts; what goes to its own address is told of lo")
def card():
    need_lwip()
    run = boot(f"""cat > /tmp/x.d <<'EOF'{CARD}EOF
ping -c 1 -W 2 10.0.2.2 > /dev/null
grep eth0: /proc/net/dev
dtrace -s /tmp/x.d -c 'ping -q -c 1 -W 1 -s 40000 10.0.2.2'
grep eth0: /proc/net/dev
echo =====
dtrace -s /tmp/x.d -c 'ping -c 1 10.0.2.15'
echo =====
dtrace -s /tmp/x.d -c 'linux_test datagrams-told 10.0.2.15'
echo =====
""", smp=1, mask="INET", trace=True, options=["--net", *LINUX_TEST]).expect()
    fragments, own, ports, _ = run.out.replace("\r", "").split("=====\n")
    before, after = ([int(n) for n in re.findall(r"\d+", line)[1:]] for line in re.findall(r"^ +eth0: .*$", fragments, re.M))
    sent = [(int(m[1]), m[2], int(m[3]), int(m[4])) for m in re.finditer(r"^eth0 10.0.2.2 (\d+) (\w+) (\d+) (\d+)$", fragments, re.M)]
    check(len(sent) > 20 and len({s[0] for s in sent}) == 1, f"fragments of one packet: {sent}")
    at = 0
    for _, flags, offset, size in sent:
        check_eq((offset, flags), (at, "2" if at + size < 40008 else "0"), "a fragment's offset and flags")
        at += size
    check_eq(at, 40008, "bytes of all fragments")
    for what, packets, size, header in (("net_dev_xmit", 9, 8, 0), ("net_dev_queue", 9, 8, 0), ("netif_receive_skb", 1, 0, 14)):
        seen = [int(n) for n in re.findall(rf"^net {what} eth0 (\d+)$", fragments, re.M)]
        check_eq(len(seen), after[packets] - before[packets], what)
        check_eq(sum(seen) + header * len(seen), after[size] - before[size], f"bytes, {what}")
    check_eq(re.findall(r"^receive .*$", own, re.M), ["receive lo 10.0.2.15"] * 2, "request and answer")
    # As on Linux, whose frames of the loopback begin with a header of Ethernet.
    for what, size in (("net_dev_queue", 98), ("netif_rx", 84), ("net_dev_xmit", 98), ("netif_receive_skb", 84)):
        check_eq(re.findall(rf"^net {what} (.*)$", own, re.M), [f"lo {size}"] * 2, what)
    check("eth0" not in own, own)
    udp = re.findall(r"^udp (\S+) (\d+) (\w+) (\d+)$", ports, re.M)
    check_eq([(u[0], u[3]) for u in udp], [("127.0.0.1", "9"), ("10.0.2.15", "10")], "datagrams")
    check(udp[0][1] == udp[1][1] and udp[0][2] != udp[1][2] and "0" not in (udp[0][2], udp[1][2]), f"two sockets of one port: {udp}")
    check_eq([f["bytes"] for _, f in tcp_log(run, "send") if int(f["bytes"]) > 65535], [], "bytes of a segment whose header says that it is longer")


@portable_test("Linux's events: full queues of UDP and of raw sockets, resets, and sockets that are destroyed")
def events():
    need_lwip()
    text = out(CD + """cat > /tmp/x.d <<'EOF'
#pragma D option quiet
udp:::udp_fail_queue_rcv_skb { @["udp", args[0], args[1] != 0] = count(); }
sock:::sock_rcvqueue_full { @q[args[0] + args[1] > args[2] && args[1] > 1000 ? "raw" : "wrong"] = count(); }
EOF
dtrace -s /tmp/x.d -c 'linux_test datagrams'
echo 1 > events/tcp/enable
linux_test inet
echo 0 > events/tcp/enable
sed -n 's/^.*: \\(tcp_[a-z_]*: \\)/\\1/p' trace
echo =====
echo > trace
echo 1 > events/tcp/tcp_destroy_sock/enable
nc -l -p 4000 > /dev/null & p=$!
until netstat -ltn | grep -q :4000; do sleep 0.02; done
sed -n 's/^.*: \\(tcp_[a-z_]*: \\)/early \\1/p' trace
kill $p; wait $p
sed -n 's/^.*: \\(tcp_[a-z_]*: \\)/\\1/p' trace
echo =====
""", smp=1, options=LINUX_TEST)
    resets, listener, _ = text.split("=====\n")
    check_eq(re.findall("^not ok .*$", resets, re.M), [], "linux_test")
    check_match(r"^ +udp +-12 +1 +\d{4,}$", resets, "datagrams that found a full queue")
    check_match(r"^ +raw +\d{3,}$", resets, "packets that found a full queue of a raw socket")
    check("wrong" not in resets, "a queue that was told as full, but was not")
    names = r"family=AF_INET sport=(\d+) dport=(\d+) saddr=127.0.0.1 daddr=127.0.0.1"
    sent = re.findall(rf"^tcp_send_reset: {names} state=(\w+)$", resets, re.M)
    heard = re.findall(rf"^tcp_receive_reset: {names}$", resets, re.M)
    check(len(sent) >= 2 and all((s[1], s[0]) in heard for s in sent), f"resets: {sent} {heard}")
    check("TCP_CLOSE" in {s[2] for s in sent}, f"states: {sent}")
    check_eq(re.findall(r"^(?:early )?tcp_.*sport=4000.*$", listener, re.M), ["tcp_destroy_sock: family=AF_INET sport=4000 dport=0 saddr=0.0.0.0 daddr=0.0.0.0"], "a listener's end")


@portable_test("tcp: what is for nobody is heard, in the log too; a connection's end has its process")
def nobody():
    need_lwip()
    run = boot(f"""cat > /tmp/x.d <<'EOF'
#pragma D option quiet
ip:::receive {{ last = args[0]->pkt_addr; }}
tcp:::receive {{ printf("packet %d\\n", args[0]->pkt_addr == last); }}
EOF
cat > /tmp/y.d <<'EOF'
#pragma D option quiet
tcp:::state-change /args[3]->tcps_lport == 8080/ {{ printf("%d %s %s\\n", args[1]->cs_pid, tcp_state_string[args[5]->tcps_state], tcp_state_string[args[3]->tcps_state]); }}
EOF
dtrace -s /tmp/x.d -c 'nc 127.0.0.1 9'
{SERVE}echo '{WGET}; sleep 15' > /tmp/go.sh
dtrace -s /tmp/y.d -c 'sh /tmp/go.sh'
""", smp=1, mask="INET", trace=True, options=["--icount"]).expect()
    text = run.out.replace("\r", "")
    check_eq(re.findall(r"^packet (\d)$", text, re.M), ["1", "1"], "segments that are in the packet that has arrived last")
    check_eq([f["flags"] for w, f in tcp_log(run, "receive") if int(f["pcb"], 16) == 0], ["0x2"], "segments for nobody")
    states = re.findall(r"^(\d+) state-(\S+) state-(\S+)$", text, re.M)
    check(len({s[0] for s in states}) == 1 and states[0][0] != "0", f"states of httpd's connection: {states}")
    check_eq(states[-1][2], "closed", "the last state")


@portable_test("report net: bytes, segments, those sent again and round trips are those of the events")
def report():
    """Nobody has 10.0.2.99 in QEMU's network: its SYN is sent again."""
    need_lwip()
    run = boot(f"""{SERVE}{WGET} & {WGET}; wait
nc -w 8 10.0.2.99 9
nc 127.0.0.1 9
""", smp=1, mask="INET", trace=True, options=["--icount", "--net"])
    want = connections(run.events)
    status, told, err = ktrdump("report", "net", "--format", "jsonl", "-i", run.trace)
    check_eq((status, err), (0, ""), "ktrdump report net")
    rows = {(r["local"], r["remote"]): r for r in json_lines(told) if r.get("table") == "connections" and "row" not in r}
    check_eq(rows.keys(), want.keys(), "connections")
    check(len([names for names in want if names[0] == "127.0.0.1:8080"]) == 2, f"connections to httpd: {want}")
    for names, w in want.items():
        r = rows[names]
        check_eq({k: r[k] for k in w if k != "trips"}, {k: v for k, v in w.items() if k != "trips"}, f"{names}")
        trips = w["trips"]
        check_eq((r["round_trips"], r["mean_ns"], r["longest_ns"]), (len(trips), sum(trips) // max(1, len(trips)), max(trips, default=0)), f"{names}: round trips")
    again = [w["again"] for names, w in want.items() if names[1] == "10.0.2.99:9"]
    check(len(again) == 1 and again[0] >= 1, f"SYNs to nobody that were sent again: {again}")
    check(sum(w["again"] for w in want.values()) == again[0], f"no other segment is sent again: {want}")
    check(sum(len(w["trips"]) for w in want.values()) > 10, "round trips")


if __name__ == "__main__":
    main()
