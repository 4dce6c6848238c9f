"""streams.py - hostile streams for ktrdump: damaged ones for the build with sanitizers, expensive ones under
limits.
"""
import os
import resource
import subprocess

from harness import BUILD, KTRDUMP, ROOT, check

GEN = ROOT / "build/host/unit/ktr_gen"
ASAN = ROOT / "build/host-asan/ktrdump"
SAMPLES = (("sample",), ("mix", "2000"), ("guest", "500"), ("forks", "50"), ("odd",), ("loss",), ("wrapped",), ("boots",))
FORMATS = ("text", "jsonl", "schedgraph", "chrome", "folded", "html")
CPU_S = 300           # far more than any input of this size may need
MEMORY = 512 << 20    # of address space, without sanitizers


def samples():
    return [subprocess.run([GEN, *words], check=True, capture_output=True).stdout for words in SAMPLES]


def damage(rng, data):
    """Flips bits, sets bytes, removes, duplicates and swaps pieces."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 12)):
        at, n = rng.randrange(len(data)), rng.choice((1, 2, 8, 64, 500))
        what = rng.randrange(5)
        if what == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            data[at:at + n] = bytes(rng.choice((0, 1, 0x7f, 0x80, 0xff)) for _ in range(len(data[at:at + n])))
        elif what == 2 and len(data) > 2 * n:
            del data[at:at + n]
        elif what == 3 and len(data) < 1 << 20:
            data[at:at] = data[at:at + n]
        else:
            data[at:at + n] = rng.randbytes(n)
    return bytes(data)


def limits(memory):
    def apply():
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return apply


def decode(program, data, form, memory):
    """A damaged stream must be reported (status 1) or refused (2), without a crash, a sanitizer's report, or a
    limit reached."""
    p = subprocess.run([program, "--format", form, "-i", "-"], input=data, capture_output=True, preexec_fn=limits(memory),
                       env={**os.environ, "ASAN_OPTIONS": "exitcode=99"})
    if p.returncode not in (0, 1, 2):
        keep = BUILD / "attack-stream.ktr"
        keep.write_bytes(data)
        check(False, f"{program.name} --format {form} -i {keep}: status {p.returncode}:\n{p.stderr.decode(errors='replace')[-3000:]}")


def round_of(rng, corpus, n):
    for _ in range(n):
        data = damage(rng, rng.choice(corpus))
        decode(ASAN, data, rng.choice(FORMATS), None)
        decode(KTRDUMP, data * rng.choice((1, 1, 20)), rng.choice(FORMATS), MEMORY)
