#!/usr/bin/python3
"""test_net.py - AF_INET in the guest, over its loopback: busybox's programs, floods, and what is left when all is closed."""
import hashlib
import re
import socket
import struct
import urllib.request

import pexpect
from console import guest, prompt
from harness import (BUILD, LINUX_TEST, boot, check, check_eq, check_match, cpus, free_ports, main, need_lwip, portable_test,
                     tap, test, times)

ICOUNT = ["--icount"]


PROGRAMS = """ping -c 2 127.0.0.1
ifconfig
mkdir /tmp/w; seq 400000 > /tmp/w/f; md5sum < /tmp/w/f
httpd -p 8080 -h /tmp/w
for i in 1 2 3; do wget -q -O - http://127.0.0.1:8080/f | md5sum & done; wait
wget -q -O - http://127.0.0.1:8080/none; echo "wget $?"
mkfifo /tmp/open; nc -l -p 9000 > /tmp/got < /tmp/open & exec 3> /tmp/open
until netstat -ltn 2> /dev/null | grep -q :9000; do sleep 0.01; done
nc 127.0.0.1 9000 < /tmp/w/f; wait $!; md5sum < /tmp/got
nc 127.0.0.1 9001; echo "nc $?"
nc 192.0.2.1 9
telnetd -l /bin/sh -p 2323
until netstat -ltn 2> /dev/null | grep -q :2323; do sleep 0.01; done
mkfifo /tmp/keys; telnet 127.0.0.1 2323 < /tmp/keys > /tmp/screen & exec 4> /tmp/keys
until grep -q '# ' /tmp/screen; do sleep 0.01; done; echo 'echo by telnet $((6 * 7)); exit' >&4
wait $!; cat /tmp/screen
netstat -tn 2> /dev/null | grep -c TIME_WAIT
route -n; cat /proc/net/dev
"""


def programs(smp):
    need_lwip()
    run = boot(PROGRAMS, smp=smp).expect(0)
    out = run.out.replace("\r", "")
    check_match(r"^2 packets transmitted, 2 packets received, 0% packet loss$", out, "ping")
    check_match(r"^lo +Link encap:Local Loopback *\n +inet addr:127.0.0.1  Mask:255.0.0.0$", out, "ifconfig")
    sums = re.findall(r"^([0-9a-f]{32})  -$", out, re.M)
    check_eq((len(sums), len(set(sums))), (5, 1), f"files that are the same, and their sums {sums}")
    check_match(r"^wget: server returned error: HTTP/1.1 404 Not Found\nwget 1$", out, "a page that is not there")
    check_match(r"^nc: can't connect to remote host \(127.0.0.1\): Connection refused\nnc 1$", out, "a port where nobody listens")
    check_match(r"^nc: can't connect to remote host \(192.0.2.1\): Network is unreachable$", out, "a network that is not there")
    check_match(r"^by telnet 42$", out, "telnet")
    check_match(r"^ +lo: +[1-9]\d{5,} ", out, "bytes of the loopback")


for _smp in cpus("busybox's network programs"):
    test(f"ping, ifconfig, httpd, wget, nc, telnet and netstat of busybox work over the loopback, {_smp} CPUs")(
        lambda smp=_smp: programs(smp))


@portable_test("each user's memory comes back when its sockets are closed, and all of the kernel's")
def memory():
    need_lwip()
    # A closed connection is remembered for ten seconds; one that was never complete for twenty.
    step = "for w in inet streams datagrams; do su 1000 linux_test $w; done; linux_test floods; linux_test forged\nsleep 40; sysctl vm.heap.used kern.uidinfo\n"
    run = boot(step * 3, smp=1, options=ICOUNT + LINUX_TEST).expect()
    check(tap(run.out, 3 * 5) > 60, run.out)
    heap = [int(n) for n in re.findall(r"^vm.heap.used: (\d+)$", run.out, re.M)]
    check(len(heap) == 3 and abs(heap[2] - heap[1]) <= 4096, f"bytes of the heap after each turn: {heap}")
    check(not re.search(r"^1000 ", run.out, re.M), f"user 1000 still holds something: {run.out}")


LOOKS = """dtrace -wqn '
fbt::uio_put:entry /execname == "linux_test" && arg2 > 1000 && !reads/ { reads = tid; chill(300000000); }
fbt::uio_put:return /tid == reads/ { reads = 1; }
fbt::inet_tcp_receive:return /reads > 1 && tid != reads/ { looks++; }
END { printf("looks %d\\n", looks); }' -c '/bin/linux_test streams-looked-at'
"""


@portable_test("who does not wait is told that there is nothing while another thread copies from a stream")
def looks():
    need_lwip()
    out = boot(LOOKS, smp=2, options=LINUX_TEST).expect().out
    check_match(r"^looks [1-9]\d*\r?$", out, "calls that end meanwhile")


PEEKS = """dtrace -wqn '
fbt::uio_put:entry /execname == "linux_test" && arg2 > 1000 && tid != $target && !n++/ { chill(300000000); }
syscall::exit_group:entry /pid == $target/ { printf("status %d\\n", arg0); }' -c '/bin/linux_test streams-peeked-at'
"""


@portable_test("who finds nothing while another thread peeks is told of it as of news; connect() says EISCONN")
def peeks():
    need_lwip()
    check_match(r"^status 0\r?$", boot(PEEKS, smp=2, options=LINUX_TEST).expect().out, "what the program says")


@portable_test("while no connection is open, the network's thread does not run")
def idle():
    need_lwip()
    run = boot("httpd -p 80\nwget -q -O - http://127.0.0.1/ > /dev/null 2>&1\nsleep 30\nktr on SCHED\nsleep 20\nktr off SCHED\n",
               smp=1, options=ICOUNT, mask="PROC", trace=True).expect()
    check(any(e["text"].startswith("thread create: tid") and e["text"].endswith(" name net") for e in run.events), "no thread `net` was made")
    since = max(e["ns"] for e in run.events if e["text"].startswith("exec:") and " name ktr" in e["text"]) - 15 * 10 ** 9
    seen = [e["text"] for e in run.events if e["ns"] > since and e["thread"] == "net"]
    check_eq(seen, [], "events of the thread `net`")
    check(any(e["ns"] > since and e["class"] == "SCHED" for e in run.events), "no thread was switched to meanwhile")


def card(smp, *options, lines=times(300000, 700000)):
    """The host's programs reach those of the guest, by forwarded ports of the loopback: several at a time, both ways."""
    need_lwip()
    web, sink = free_ports(2)
    with guest("--net", f"tcp:{web}-:80,tcp:{sink}-:9000", *options, smp=smp) as c:
        # Nobody has this address: after its own, ARP asks for it, and again.
        c.sendline("ping 10.0.2.99 > /dev/null & until [ $(awk '/eth0/ { print $11 }' /proc/net/dev) -gt 2 ]; do sleep 0.1; done; kill $!; echo a''gain")
        c.expect("again")
        prompt(c)
        c.sendline("ifconfig eth0; cat /etc/resolv.conf")
        c.expect(r"inet addr:10\.0\.2\.15  Bcast:10\.0\.2\.255  Mask:255\.255\.255\.0")
        c.expect(r"nameserver 10\.0\.2\.3\r+\n")
        prompt(c)
        c.sendline(f"mkdir /tmp/w; seq {lines} > /tmp/w/f; httpd -h /tmp/w; md5sum < /tmp/w/f")
        c.expect(r"([0-9a-f]{32})  -\r+\n")
        expected = c.match.group(1)
        prompt(c)
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/f") as page:
                check_eq(hashlib.md5(page.read()).hexdigest(), expected, "sum of the guest's file on the host")
        mine = b"from the host\n" * (lines // 3)
        c.sendline("mkfifo /tmp/open; nc -l -p 9000 < /tmp/open > /tmp/got & exec 3> /tmp/open; until netstat -ltn 2> /dev/null | grep -q :9000; do sleep 0.01; done; echo list''ens")
        c.expect("listens")
        prompt(c)
        with socket.create_connection(("127.0.0.1", sink)) as s:
            s.sendall(mine)
        c.sendline("wait; md5sum < /tmp/got; ifconfig eth0 | grep RX")
        c.expect(r"([0-9a-f]{32})  -\r+\n")
        check_eq(c.match.group(1), hashlib.md5(mine).hexdigest(), "sum of the host's bytes in the guest")
        c.expect(r"RX packets:[1-9]\d+ errors:0 dropped:0")
        prompt(c)
        c.sendline("poweroff")
        c.expect(pexpect.EOF)


for _smp in cpus("a network card"):
    test(f"the host gets a file of megabytes from the guest's httpd, and sends as much, by a card, {_smp} CPUs")(lambda smp=_smp: card(smp))


@test("the same on the machine pc, which has no ECAM", arch=("x86_64", "the machine is a PC"))
def card_pc():
    card(2, "--machine", "pc", lines=100000)


@test("the same with the interrupt controller GICv2", arch=("aarch64", "it is Arm's"))
def card_gicv2():
    card(2, "--machine", "virt,gic-version=2", lines=100000)


def frame(source, dest, port, data):
    """A datagram of UDP in a frame for everybody. Its checksum is 0: there is none."""
    udp = struct.pack(">HHHH", port, port, 8 + len(data), 0) + data
    ends = socket.inet_aton(source) + socket.inet_aton(dest)
    ip = struct.pack(">BBHHHBBH8s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, ends)
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xffff) + ip[12:]
    return b"\xff" * 6 + b"\x02" + b"\0" * 4 + b"\1" + b"\x08\0" + ip + udp


@portable_test("what comes by a card, and says that it is from this machine or for its loopback, is not received")
def false_addresses():
    need_lwip()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.bind(("127.0.0.1", 0))
        own, (guests,) = wire.getsockname()[1], free_ports(1)
        card = ["-netdev", f"socket,id=net,udp=127.0.0.1:{own},localaddr=127.0.0.1:{guests}",
                "-device", "virtio-net-pci,netdev=net,disable-legacy=on,romfile="]
        with guest(*LINUX_TEST, "--set", "net.address=10.0.2.15/24,10.0.2.2", "--", *card, smp=1) as c:
            c.sendline("linux_test datagrams-heard true")
            c.expect(r"\nlistens\r")
            for source in ("127.0.0.1", "127.1.2.3", "10.0.2.15"):
                wire.sendto(frame(source, "10.0.2.15", 514, b"false"), ("127.0.0.1", guests))
            wire.sendto(frame("10.0.2.2", "127.0.0.1", 514, b"false"), ("127.0.0.1", guests))
            wire.sendto(frame("10.0.2.2", "10.0.2.15", 514, b"true"), ("127.0.0.1", guests))
            c.expect(r"\nheard (\w+)\r")
            check_eq(c.match.group(1), "true", "the first datagram that is received")
            prompt(c)
            c.sendline("ifconfig eth0 | grep RX")
            c.expect("RX packets:5 errors:4 dropped:0")
            prompt(c)
            # With a way to other machines.
            c.sendline("linux_test brief inet | grep -v ^ok")
            c.expect(r"\^ok\r+\n1\.\.\d+\r")
            prompt(c)
            c.sendline("poweroff")
            c.expect(pexpect.EOF)


@portable_test("a machine without a card looks for none; one that should have it, or has a bad address, says so")
def no_card():
    need_lwip()
    for value, message in (("10.0.2.15/24", "net.address is set, but there is no network card of virtio"),
                           ("10.0.2.15", "net.address=10.0.2.15: expected ADDRESS/BITS or ADDRESS/BITS,GATEWAY"),
                           ("1.2.3.4/24x", "net.address=1.2.3.4/24x: expected ADDRESS/BITS or ADDRESS/BITS,GATEWAY"),
                           ("1.2.3.4/33", "net.address=1.2.3.4/33: expected ADDRESS/BITS or ADDRESS/BITS,GATEWAY")):
        out = boot("dmesg\nifconfig eth0\nping -c 1 127.0.0.1\n", sets=[f"net.address={value}"], options=["--lenient"]).expect().out.replace("\r", "")
        check_match(rf"^\[ +\d+\.\d+\] {re.escape(message)}(; it is .*)?$", out, "the message")
        check_match(r"^ifconfig: eth0: error fetching interface information: Device not found$", out, "ifconfig")
        check_match(r"^1 packets transmitted, 1 packets received", out, "ping")


@portable_test("a kernel that was built without lwIP has no AF_INET, and all else")
def without():
    run = boot("ping -c 1 127.0.0.1; echo $?\ncat /proc/net/tcp; echo $?; load mix -n 1\n", options=["--kernel", str(BUILD / "kestrel-without-inet")]).expect()
    check_match(r"^ping: .*Address family not supported by protocol\n1\n0$", run.out.replace("\r", ""), "ping")
    check_match(r"^load mix: n=1 jobs=1 ok", run.out, "load's summary")


if __name__ == "__main__":
    main()
