"""crowds.py - a user's processes that spin, sleep briefly or fork, as many as the user may have: root's turn comes."""
import re

from harness import ARCH, BUILD, boot, check, check_eq

WORST_US = 500_000  # of root's fork, exec and wait, in time of the guest, which --icount counts
MOST = 200  # processes, which each have a child if they fork; a user may have 446 in the guest's memory


def round_of(rng):
    """One guest, and one crowd of each kind. Returns how many crowds."""
    crowds = [f"{kind}:{rng.randint(1, MOST)}" for kind in ("spin", "nap", "fork", "alarm")] + ["bomb:1"]
    rng.shuffle(crowds)
    found = boot("".join(f"user_test crowd {crowd}\n" for crowd in crowds), mem="128M",
                 options=["--icount", "--file", f"/bin/user_test={BUILD}/user_test"]).expect().out
    worst = dict(re.findall(r"^crowd (\S+) worst (\d+) us mean \d+ us$", found, re.M))
    check_eq(sorted(worst), sorted(crowds), f"crowds in:\n{found}")
    for crowd, us in worst.items():
        check(int(us) <= WORST_US, f"{ARCH}: beside {crowd} root's fork, exec and wait take {us} us, expected at most {WORST_US}")
    return len(crowds)
