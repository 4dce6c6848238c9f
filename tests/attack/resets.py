"""resets.py - resets of machines with damage and forgeries in the memory that survives."""
import os

import test_reset as tr

COPIES = 3


def forge(ram, rng):
    """Puts headers of the region at other whole MiB, with some words changed."""
    regions = ram.regions()
    if not regions:  # the damage has spared no header
        return
    with open(ram.path, "r+b") as f:
        for _ in range(rng.randint(1, 12)):
            at, _ = rng.choice(regions)
            f.seek(at)
            head = bytearray(f.read(4096))
            for _ in range(rng.randint(0, 4)):
                word = 8 * rng.randrange(1, 64)
                head[word:word + 8] = rng.choice((rng.randbytes(8), b"\xff" * 8, (1 << 60).to_bytes(8, "little"), bytes(8)))
            f.seek(rng.randrange(1, ram.SIZE // tr.MIB) * tr.MIB)
            f.write(head)


def round_of(rng):
    """Boots with damaged memory: each must come up, read what is sound, and run its programs."""
    ram = tr.Ram()
    ram.boot(tr.RECORD + "reboot\n").expect(125)
    for _ in range(COPIES):
        copy = ram.copy()
        if rng.random() < 0.6:
            copy.damage(rng, rng.choice((1, 100, 3000)), rng.choice((1, 8, 4096)), rng.choice((0, 512)))
        if rng.random() < 0.6:
            forge(copy, rng)
        copy.boot(tr.LOOK).expect(0)
        os.unlink(copy.path)
    os.unlink(ram.path)
    return COPIES + 1
