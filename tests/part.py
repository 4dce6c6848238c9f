"""part.py - of a long list of like cases, those that a run of everything makes; make soak makes all of them.

tests/run chooses by KESTREL_SEED, which is the commit: each commit has another part, and two runs of one have the same.
An item that is run by its name makes all cases, unless KESTREL_SEED is in the environment, as a failure has printed it.
"""
import hashlib
import os
import subprocess

LEFT_OUT = "another commit's part; make soak makes all"


def seed():
    """What chooses the part; "": all are made."""
    return "" if os.environ.get("KESTREL_WHOLE") else os.environ.get("KESTREL_SEED", "")


def seed_of(root):
    """The seed of a run of everything: what the environment says, or the commit."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return os.environ.get("KESTREL_SEED") or head.stdout.strip()[:12] or "none"


def shuffled(cases, what, name=str):
    """The cases in an order that depends on the seed, and on what they are cases of."""
    return sorted(cases, key=lambda case: hashlib.sha256(f"{seed()} {what} {name(case)}".encode()).digest())


def part(cases, of, what, name=str):
    """One of `of` of the cases, and no less, in their own order; all without a seed."""
    cases = list(cases)
    chosen = {name(case) for case in shuffled(cases, what, name)[:-(-len(cases) // of)]}
    return [case for case in cases if not seed() or name(case) in chosen]
