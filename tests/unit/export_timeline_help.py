"""export_timeline_help.py - shared by the tests of the timeline viewers' formats, in addition to export_help.py."""
import re

import export_help as x
from export_help import equal


def exported(form, path, out, *args):
    """Makes the export. Its status and messages must be those of jsonl, whose rows it returns."""
    status, _, complaints = x.ktrdump("--format", "jsonl", *args, "-i", path)
    equal(x.ktrdump("--format", form, "-o", out, *args, "-i", path), (status, "", complaints), f"{form} of {path}")
    return x.jsonl(path, *args)


def each_stream(check):
    """Makes a test that runs check(path, tmp) over all streams."""
    def test(tmp):
        x.every_stream(check, tmp)
    test.__name__ = "each_stream_is_as_jsonl_says"
    return test


def two_boots_are_refused(form):
    def test(tmp):
        path = x.gen(tmp, "boots")
        status, _, err = x.ktrdump("--format", form, "-o", tmp / "out", path)
        equal(status, 2, "status of two boots")
        x.expect("more than one boot" in err, err)
        equal(list(tmp.iterdir()), [path], "what is left")
    test.__name__ = "two_boots_are_refused"
    return test


def event_name(row):
    """The name of an event in timeline viewers, by the rule in ktr/tools/export/timeline.h."""
    if row["fmt"] is None:
        return None
    if row["fmt"].startswith("KTRGRAPH "):
        for word in row["names"]:
            if word in ("state", "point"):
                return value_text(row["args"][row["names"].index(word)]) or word
            if word in ("counter", "start", "stop"):
                return word
    name = "" if row["fmt"].startswith(("-> ", "<- ")) else re.split("[:%]", row["fmt"])[0]
    while name and not (name[-1].isascii() and name[-1].isalnum()):
        name = name[:-1]
    return name if 0 < len(name.encode()) < 64 else row["func"]


def value_text(value):
    """The expected value of a %s parameter, given that in jsonl."""
    if isinstance(value, int) and value != 0:
        return f"(bad {value:#x})"
    return value or "(null)" if not isinstance(value, str) else value


def same_value(found, said):
    """Does a parameter's value match jsonl's? An unknown string is a number there."""
    return found == (value_text(said) if isinstance(found, str) else said)


def same_thread(found, said):
    """Does a thread's name match jsonl's? Long names are cut."""
    if said is None:
        return True
    found, whole = found.rstrip("\ufffd"), said
    return found == whole.rstrip("\ufffd") or (len(found.encode()) > 20 and whole.startswith(found))


def ident_tid(ident):
    """The thread of a KTRGRAPH id, or None."""
    m = re.fullmatch(r".* tid (\d+)", ident, re.S) if isinstance(ident, str) else None
    return int(m[1]) if m else None
