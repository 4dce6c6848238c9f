"""deadline.py - deadlines that tell a program that is slow from one that is dead.

Time in which the host let one of the program's threads wait for a CPU does not count: beside other work a program
gets as much done before its deadline as alone. What waits for nothing but an event, or runs for ever, is ended.
"""
import contextlib
import os
import subprocess
import threading
import time

TICK_S = 1.0  # how often to look; time that a thread waited since then is subtracted


def _threads(pid):
    """The threads of a process and of all that it started."""
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for tid in tids:
        yield pid, tid
        try:
            with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as f:
                children = f.read().split()
        except OSError:
            continue
        for child in children:
            yield from _threads(child)


def _waited(pid):
    """{thread: seconds that it waited for a CPU} (schedstat, Documentation/scheduler/sched-stats.rst)."""
    found = {}
    for process, tid in _threads(pid):
        try:
            with open(f"/proc/{process}/task/{tid}/schedstat", encoding="ascii") as f:
                found[tid] = int(f.read().split()[1]) / 1e9
        except (OSError, IndexError):
            continue
    return found


class Deadline:
    """So many seconds from now, as the process `pid` and what it starts live through them; without `pid`, this process."""

    def __init__(self, seconds, pid=None):
        self.left_s, self.pid = seconds, pid or os.getpid()
        self.last, self.before = time.monotonic(), _waited(self.pid)

    def tick(self):
        """Looks how the time passed, at most every TICK_S; to be called that often, or more. Returns the seconds that are left."""
        now = time.monotonic()
        if now - self.last < TICK_S:
            return self.left_s
        waits = _waited(self.pid)
        longest = max((s - self.before.get(tid, 0.0) for tid, s in waits.items()), default=0.0)
        self.left_s -= max(now - self.last - longest, 0.0)
        self.last, self.before = now, waits
        return self.left_s


def _feed(pipe, words):
    with contextlib.suppress(BrokenPipeError), pipe:
        if words:
            pipe.write(words)


class Child(subprocess.Popen):
    """A program: what wait() and communicate() take as a time-out is a deadline of this process and all that it has started."""

    def wait(self, timeout=None):
        return self._within(timeout, super().wait)

    def communicate(self, input=None, timeout=None):
        if timeout is not None and self.stdin is not None:  # Python forgets the rest of it when it is called again
            threading.Thread(target=_feed, args=(self.stdin, input), daemon=True).start()
            self.stdin = input = None
        plain = super().communicate
        return self._within(timeout, lambda seconds: plain(input, seconds))

    @staticmethod
    def _within(timeout, once):
        if timeout is None or timeout <= TICK_S:
            return once(timeout)
        deadline = Deadline(timeout)
        while True:
            try:
                return once(TICK_S)
            except subprocess.TimeoutExpired as e:
                if deadline.tick() <= 0:
                    e.timeout = timeout
                    raise
