#!/usr/bin/python3
"""params.py - checks that the parameters of every trace point have names, and different ones (ktr/param.h has the
rule).

usage: params.py FILE...

The KTR_STATE family is not checked: its attributes have names of their own, and FreeBSD's vocabulary has a point
with two of them, `prio` and `new prio`.
"""
import re
import sys

STRING = r'"(?:[^"\\]|\\.)*"'
# A trace point, its classes and its format, which may consist of several literals and a macro's #name.
SITE = re.compile(rf'\bC?TR[1-6]\((?:[^"(),]+,)?(?:\s|\\\n)*(?P<format>{STRING}(?:\s|\\\n|{STRING}|#\w+)*)')
CONVERSION = re.compile(r"%(?:%|[-+ #0]*(\*|\d*)(?:\.(\*|\d*))?(?:hh|h|ll|l|j|z|t)?[a-zA-Z])")


def names(fmt):
    """The names of the parameters; "" for one without a name, and for a '*'."""
    found, begin = [], 0
    for m in CONVERSION.finditer(fmt):
        if m[0] == "%%":
            continue
        words = [word.lstrip("0123456789") for word in re.findall(r"\w+", fmt[begin:m.start()], re.A)]
        found += [""] * [m[1], m[2]].count("*") + [words[-1] if words else ""]
        begin = m.end()
    return found


def problems(text):
    """(line, message) of each problem."""
    for m in SITE.finditer(text):
        if text[text.rfind("\n", 0, m.start()) + 1:m.start()].lstrip().startswith(("#", "*", "/")):
            continue  # a definition, or an example in a comment
        fmt = "".join(s[1:-1] if s[0] == '"' else "name" for s in re.findall(rf"{STRING}|#\w+", m["format"]))
        line, called = text.count("\n", 0, m.start()) + 1, names(fmt)
        for n, name in enumerate(called):
            if not name:
                yield line, f'"{fmt}": parameter {n + 1} has no word before its conversion, and would be called p{n + 1}'
            elif name in called[:n]:
                yield line, f'"{fmt}": two parameters are called {name}: expected different words before their conversions'


def main(paths):
    count = 0
    for path in paths:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for line, what in problems(text):
            print(f"{path}:{line}: {what}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
