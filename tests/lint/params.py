#!/usr/bin/python3
"""params.py - checks that the parameters of every trace point have names, and different ones (ktr/param.h has the
rule), and that a probe of SDT has as many arguments where it fires as where it is defined.

usage: params.py FILE...

The KTR_STATE family is not checked: its attributes have names of their own, and FreeBSD's vocabulary has a point
with two of them, `prio` and `new prio`.
"""
import re
import sys

STRING = r'"(?:[^"\\]|\\.)*"'
# A trace point, its classes and its format, which may consist of several literals and a macro's #name.
SITE = re.compile(rf'\bC?TR[1-6]\((?:[^"(),]+,)?(?:\s|\\\n)*(?P<format>{STRING}(?:\s|\\\n|{STRING}|#\w+)*)')
CONVERSION = re.compile(r"%(?:%|(?:\{(?P<called>\w+)\})?[-+ #0]*(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?(?:hh|h|ll|l|j|z|t)?(?:pD|[a-zA-Z]))")


def names(fmt):
    """The names of the parameters; "" for one without a name, and for a '*'."""
    found, begin = [], 0
    for m in CONVERSION.finditer(fmt):
        if m[0] == "%%":
            continue
        words = [word.lstrip("0123456789") for word in [*re.findall(r"\w+", fmt[begin:m.start()], re.A), *([m["called"]] if m["called"] else [])]]
        found += [""] * [m["width"], m["precision"]].count("*") + [words[-1] if words else ""]
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


SDT = re.compile(r"^\t* *(SDT_\w+)\(", re.M)


def arguments(text, begin):
    """The arguments of a call, from the character after its parenthesis on."""
    found, depth, at = [""], 1, begin
    while depth > 0:
        m = re.compile(rf"{STRING}|.", re.S).match(text, at)
        at = m.end()
        depth += {"(": 1, ")": -1}.get(m[0], 0)
        if depth == 1 and m[0] == ",":
            found.append("")
        elif depth > 0:
            found[-1] += m[0]
    return [" ".join(arg.split()) for arg in found]


def literal(arg):
    return "".join(s[1:-1] for s in re.findall(STRING, arg))


def probes(text):
    """(line, macro, probe, arguments after the probe's name) of each use of a macro of SDT that names a probe."""
    for m in SDT.finditer(text):
        args = arguments(text, m.end())
        if len(args) >= 4 and m[1] != "SDT_PROVIDER_DEFINE":
            yield text.count("\n", 0, m.start()) + 1, m[1], ":".join(args[:4]), args[4:]


def defined(macro, args):
    """How many arguments a definition says that the probe has, and a problem, or None."""
    if macro == "SDT_PROBE_DEFINE_DATA":
        called = names(literal(args[1]))
        return 1, None if len(called) == 1 and called[0] else f"{args[1]}: expected one argument with a name"
    if macro == "SDT_PROBE_DEFINE_TEXT_XLATE":
        return int(args[2]) if args[2].isdigit() else None, None
    if macro not in ("SDT_PROBE_DEFINE_TEXT", "SDT_PROBE_DEFINE_TEXT7"):
        n = int((re.search(r"DEFINE(\d)", macro) or "00")[1])
        return n, None
    fmt, n = literal(args[1]), int(args[2]) if args[2].isdigit() else 7
    if n == 7:  # SDT_PROBE_DEFINE_TEXT7
        fmt = fmt.removesuffix("%s") + literal(args[2])
    types = [t for t in args[3:] if t not in ("", "NULL")]
    called = names(fmt)
    good = n == len(types) == len(called) and "" not in called and len(set(called)) == n
    return n, None if good else f'"{fmt}": {n} arguments, but {len(types)} types and the names {called}'


def fired(macro, args):
    """How many arguments a probe gets where it fires; None: a function there gives them."""
    call = args[0] if macro == "SDT_FIRE" or macro.startswith("SDT_CTR") else None
    if call is None:
        return len(args)
    m = re.match(r"SDT_ARGS(?:(\d)|_DATA(\d))\(", call)
    if m is None and macro == "SDT_FIRE":
        return None
    return int(m[1]) if m[1] else int(m[2]) + 1


def sdt_problems(texts):
    """(path, line, message) of each problem of a probe."""
    uses = [(path, *use) for path, text in texts.items() for use in probes(text)]
    count = {}
    for path, line, macro, probe, args in uses:
        if macro.startswith("SDT_PROBE_DEFINE"):
            count[probe], problem = defined(macro, args)
            if problem:
                yield path, line, problem
    for path, line, macro, probe, args in uses:
        if not re.match(r"SDT_(PROBE\d?$|CTR|FIRE$)", macro):
            continue
        n = fired(macro, args)
        if n is not None and count.get(probe) != n:
            yield path, line, f"{macro}: {n} arguments, but the definition of {probe} has {count.get(probe)}"
        fmt = args[2] if macro.startswith("SDT_CTR") else ""
        called = names(literal(fmt)) if fmt.startswith('"') else []
        if "" in called or len(set(called)) < len(called):
            yield path, line, f"{fmt}: parameters are called {called}"


def main(paths):
    texts, count = {}, 0
    for path in paths:
        with open(path, encoding="utf-8") as f:
            texts[path] = f.read()
    found = [(path, *problem) for path, text in texts.items() for problem in problems(text)]
    for path, line, what in found + list(sdt_problems(texts)):
        print(f"{path}:{line}: {what}")
        count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
