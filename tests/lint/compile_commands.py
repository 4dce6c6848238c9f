#!/usr/bin/python3
"""compile_commands.py - a compilation database for editors, on stdout.

usage: compile_commands.py COMMAND FILE... [-- COMMAND FILE...]...   (make compile_commands.json)
"""
import itertools
import json
import os
import sys


def main(argv):
    entries = []
    for is_bar, group in itertools.groupby(argv, lambda word: word == "--"):
        if is_bar:
            continue
        command, *files = group
        entries += [{"directory": os.getcwd(), "file": f, "command": f"{command} -c {f}"} for f in files]
    if not entries:
        sys.exit(__doc__)
    json.dump(entries, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
