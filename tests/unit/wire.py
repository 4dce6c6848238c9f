"""wire.py - makes streams as ktr/WIRE.md specifies, frame by frame; also ones that no correct writer makes."""

HEADER, SITE, STRING, THREAD, BATCH, LOSS, STATS, MARK, TRUNCATED, END, FAULT, MASK = range(1, 13)
START = 1
OVERWRITTEN, CORRUPT, CLEARED = range(3)


def crc32c_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


CRC = crc32c_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 0xff]
    return (crc ^ 0xffffffff).to_bytes(4, "little")


def cobs(data):
    out = bytearray()
    blocks = data.split(b"\0")
    for n, block in enumerate(blocks):
        while len(block) >= 254:
            out += b"\xff" + block[:254]
            block = block[254:]
            if not block and n == len(blocks) - 1:
                return bytes(out)
        out.append(len(block) + 1)
        out += block
    return bytes(out)


def varint(n):
    out = bytearray()
    n &= 2**64 - 1
    while n >= 0x80:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def varints(*numbers):
    return b"".join(map(varint, numbers))


def text(what):
    data = what.encode() if isinstance(what, str) else what
    return varint(len(data)) + data


def frame(kind, body):
    data = bytes([kind]) + len(body).to_bytes(2, "little") + body
    return cobs(data + crc32c(data)) + b"\0"


def header(flags=START, boot=0, hz=10**9, boot_ticks=0, cpus=(), classes=(), build="wire.py"):
    """cpus: (cpu, next) each. classes: (bit, name) each."""
    body = b"KTRW" + varints(1, flags) + bytes([boot]) * 16 + text("x86_64") + text(build) + varints(hz, boot_ticks, 2)
    body += varint(len(cpus)) + b"".join(varints(*row) for row in cpus)
    body += varint(len(classes)) + b"".join(varint(bit) + text(name) for bit, name in classes)
    return frame(HEADER, body)


def site(number, fmt, nargs, file="wire.py", line=1, func="f", classes=1):
    return frame(SITE, varints(number, line, classes, nargs) + text(file) + text(func) + text(fmt))


def string(value, what):
    return frame(STRING, varint(value) + text(what))


def thread(tid, name):
    return frame(THREAD, varint(tid) + text(name))


def batch(cpu, first, ticks, tid, events):
    """events: (site, ticks later, parameters) each. Every event names its site and all parameters."""
    body = varints(cpu, first, len(events), ticks, tid)
    last = {}
    for number, later, args in events:
        args = list(args) + [0] * (6 - len(args))
        if number not in last:  # a slot of the 64 that another site has used is empty again
            last = {n: a for n, a in last.items() if n % 64 != number % 64}
        before = last.get(number, [0] * 6)
        changed = [n for n in range(6) if args[n] != before[n]]
        body += bytes([0x80 | sum(1 << n for n in changed)]) + varints(number, later)
        for n in changed:
            d = (args[n] - before[n]) % 2**64
            body += varint(d << 1 if d < 2**63 else d << 1 ^ (2**64 - 1))
        last[number] = args
    return frame(BATCH, body)


def loss(cpu, first, count, from_ticks, to_ticks, reason=OVERWRITTEN):
    return frame(LOSS, varints(cpu, first, count, from_ticks, to_ticks - from_ticks) + bytes([reason]))


def mark(ticks):
    return frame(MARK, varint(ticks))


def mask(classes):
    return frame(MASK, varint(classes))


def end():
    return frame(END, varint(0))


def stream(*frames, **options):
    return b"\0" + header(**options) + b"".join(frames) + end()
