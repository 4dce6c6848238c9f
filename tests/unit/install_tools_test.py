#!/usr/bin/python3
"""install_tools_test.py - qemu/install-tools: the packages of each tier, and that services stay disabled.

Prints TAP. dpkg-query, apt-get and others are replaced by programs that only log their calls.
"""
import os
import subprocess

from export_help import DEADLINE_S, ROOT, equal, expect, main, run

TOOL = ROOT / "qemu/install-tools"
TIERS = ("run", "aarch64", "test", "bench", "view")


def listed(*tiers):
    status, out, err = run(TOOL, "--list", *tiers)
    equal((status, err), (0, ""), f"--list {tiers}: status and errors")
    return out.split()


def installs(tmp, installed, *tiers, apt_get=""):
    """(status, logged calls) of an installation on a machine that has these packages."""
    (tmp / "log").write_text("")
    for name, body in (("dpkg-query", "".join(f"echo '{p} install ok installed'\n" for p in installed)),
                       ("id", "echo 0"), ("apt-get", apt_get), ("tee", "cat > /dev/null"), ("chmod", ""), ("rm", ""), ("update-rc.d", "")):
        (tmp / name).write_text(f'#!/bin/sh\n[ "${{0##*/}}" = dpkg-query ] || echo "${{0##*/}} $*" >> {tmp}/log\n{body}\n')
        (tmp / name).chmod(0o755)
    # Whoever runs the tests may ignore signals; a shell keeps that, and has no trap then.
    p = subprocess.run(["env", "--default-signal=HUP,INT,TERM", TOOL, *tiers], env={"PATH": f"{tmp}:{os.environ['PATH']}"}, capture_output=True, text=True,
                       timeout=DEADLINE_S, check=False)
    return p.returncode, (tmp / "log").read_text()


def a_tier_has_what_it_needs_once(_):
    equal(listed(), listed("run"), "no tier")
    for tier in TIERS:
        packages = listed(tier)
        equal(len(packages), len(set(packages)), f"{tier}: packages, each once")
        expect(set(listed("run")) <= set(packages), f"{tier} lacks what run has")
    expect(set(listed("aarch64")) < set(listed("test")) < set(listed("bench")), "test has aarch64, and bench has test")
    equal(set(listed("aarch64", "view")), set(listed("aarch64")) | set(listed("view")), "two tiers")


def what_only_some_need_is_in_their_tier(_):
    for package, tier in (("qemu-system-arm", "aarch64"), ("gcc-aarch64-linux-gnu", "aarch64"), ("ovmf", "test"), ("spin", "test"),
                          ("lttng-tools", "bench"), ("liblttng-ust-dev", "bench"), ("chromium", "view")):
        expect(package in listed(tier), f"{package} is not in {tier}")
        for other in {"run": (), "aarch64": ("run",), "test": ("run", "aarch64"), "bench": ("run", "aarch64", "test"),
                      "view": ("run", "aarch64", "test", "bench")}[tier]:
            expect(package not in listed(other), f"{package} is in {other}, expected in {tier} only")


def nothing_is_done_when_all_is_there(tmp):
    equal(installs(tmp, listed("aarch64"), "aarch64"), (0, ""), "status and calls")


def no_service_is_started_or_stays_enabled(tmp):
    status, calls = installs(tmp, [], "bench")
    equal(status, 1, "status, as they are still missing")
    lines = calls.splitlines()
    install = next(i for i, line in enumerate(lines) if line.startswith("apt-get install"))
    expect("--no-install-recommends" in lines[install] and " lttng-tools" in lines[install], lines[install])
    expect("update-rc.d lttng-sessiond disable" in lines[install + 1:], f"the daemon is not disabled in\n{calls}")
    if not os.path.exists("/usr/sbin/policy-rc.d"):
        expect("tee /usr/sbin/policy-rc.d" in lines[:install], f"services may start in\n{calls}")
        equal(lines[-1], "rm -f /usr/sbin/policy-rc.d", "the end")


def what_it_changed_is_undone_when_it_is_interrupted(tmp):
    for signal, expected in (("INT", 130), ("TERM", 143), ("HUP", 129)):
        status, calls = installs(tmp, [], "run", apt_get=f"kill -{signal} $PPID")
        equal(status, expected, f"status after SIG{signal}")
        if not os.path.exists("/usr/sbin/policy-rc.d"):
            equal(calls.splitlines()[-1], "rm -f /usr/sbin/policy-rc.d", f"the end after SIG{signal}")


def what_is_wrong_is_reported(_):
    equal(run(TOOL, "nope")[::2], (2, "install-tools: nope: no such tier\n"
                                      f"install-tools: expected one of these tiers: {' '.join(TIERS)} \n"), "a tier that is none")
    equal(run(TOOL, "--nope")[0], 2, "status of an option that is none")


if __name__ == "__main__":
    main([a_tier_has_what_it_needs_once, what_only_some_need_is_in_their_tier, nothing_is_done_when_all_is_there,
          no_service_is_started_or_stays_enabled, what_it_changed_is_undone_when_it_is_interrupted, what_is_wrong_is_reported])
