"""disks.py - what the tests of disks share: e2fsprogs, and disks with partitions or errors."""
import os
import struct
import subprocess

from harness import check, scratch_file

os.environ["PATH"] += ":/usr/sbin:/sbin"


def tool(*command, status=(0,), text=None):
    """What a program of e2fsprogs prints."""
    p = subprocess.run([str(word) for word in command], capture_output=True, text=True, input=text, errors="replace")
    check(p.returncode in status, f"{' '.join(map(str, command))}: status {p.returncode}\n{p.stdout}{p.stderr}")
    return p.stdout


def make(size="16M", *options, folder=None):
    """A disk with an ext2 of so many bytes, of what is in a folder."""
    disk = scratch_file(".img")
    tool("mke2fs", "-q", "-t", "ext2", *options, *(("-d", folder) if folder else ()), disk, size)
    return disk


def fsck(disk):
    tool("e2fsck", "-fn", disk)


def contents(disk, path):
    """A file of a disk that no guest has."""
    out = scratch_file(".out")
    tool("debugfs", "-R", f"dump {path} {out}", disk)
    return out.read_bytes() if out.exists() else b""


def blkdebug(disk, *rules, more=""):
    """Options for a disk that has errors."""
    conf = scratch_file(".conf")
    conf.write_text("".join(f'[inject-error]\n{rule}\n' for rule in rules) + more)
    return ["--", "-drive", f"file=blkdebug:{conf}:{disk},format=raw,if=none,id=d,werror=report,rerror=report", "-device",
            "virtio-blk-pci,drive=d,disable-legacy=on"]


def plain(disk):
    """Options for a disk that is mounted by nobody at boot."""
    return ["--", "-drive", f"file={disk},format=raw,if=none,id=d", "-device", "virtio-blk-pci,drive=d,disable-legacy=on"]


def throttled(disk, rule):
    """Options for a disk that QEMU slows down: rule is an option throttling.* of -drive, without this word."""
    return ["--", "-drive", f"file={disk},format=raw,if=none,id=d,throttling.{rule}", "-device", "virtio-blk-pci,drive=d,disable-legacy=on"]


def silent(disk, way):
    """Options for a disk that does its first request of a kind, and then, for an hour, none."""
    return throttled(disk, f"bps-{way}=1")


def partition_table(kind, *parts):
    """The first sectors of a disk with partitions: pairs of their first sector and their size. hybrid: the MBR has the first,
    the GPT the others."""
    entry = lambda kind, start, sectors: struct.pack("<8BII", 0, 0, 0, 0, kind, 0, 0, 0, start, sectors)
    entries = [entry(0x83, *part) for part in parts[:1 if kind == "hybrid" else 0 if kind == "gpt" else None]]
    entries += [entry(0xee, 1, 0xffffffff)] if kind != "dos" else []
    mbr = bytes(446) + b"".join(entries).ljust(64, b"\0") + b"\x55\xaa"
    gpt = b"EFI PART".ljust(72, b"\0") + struct.pack("<QII", 2, 128, 128)
    linux = bytes.fromhex("af3dc60f838472478e793d69d8477de4")
    table = bytes(128 if kind == "hybrid" else 0)
    table += b"".join((linux + os.urandom(16) + struct.pack("<QQ", start, start + size - 1)).ljust(128, b"\0") for start, size in parts[kind == "hybrid":])
    return mbr + (gpt.ljust(512, b"\0") + table if kind != "dos" else b"")
