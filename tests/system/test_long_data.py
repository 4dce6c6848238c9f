#!/usr/bin/python3
"""test_long_data.py - events with long data: a program's arguments, wherever the log is read."""
import re

import tracecheck as tc
from console import db, ended, guest, shell, stopped_by_request
from harness import boot, check_eq, check_match, cpus, main, scratch_file, test

WORDS = [f"word{n}" for n in range(200)]  # 1490 bytes with their blanks
LINES = {"short": "/bin/echo a", "parts": "/bin/echo " + " ".join(WORDS[:20]), "long": "/bin/echo " + " ".join(WORDS),
         "quotes": "/bin/echo 'two words' '\"'"}
SAID = {**LINES, "quotes": '/bin/echo two words "'}
EXEC = r"exec: pid \d+ name echo entry 0x[0-9a-f]+ argc \d+ args (.*)"


def arguments(texts):
    return [m[1] for text in texts if (m := re.fullmatch(EXEC, text))]


@test("exec's arguments, of any length, stand in the trace of 1 and of 4 CPUs, and in what the guest reads of /dev/ktr")
def trace():
    for smp in cpus():
        script = "\n".join(["sysctl debug.ktr.mask=PROC", *LINES.values(), "ktrdump -q --grep 'name echo' -i /dev/ktr", ""])
        run = boot(script, smp=smp, trace=True).expect()
        check_eq(arguments(e["text"] for e in run.events), list(SAID.values()), f"arguments in the trace, {smp} CPUs")
        check_eq([e["args"][4] for e in run.events if re.fullmatch(EXEC, e["text"])], list(SAID.values()), "as a parameter")
        tc.timestamps_ascend(run)
        tc.no_gaps(run)
        check_eq(arguments(re.findall(r"exec: pid .* name echo .*", run.out.replace("\r", ""))), list(SAID.values()),
                 f"arguments as the guest's ktrdump says, {smp} CPUs")


@test("the debugger shows them too, as much as its line holds, and says what is cut")
def debugger():
    lines = scratch_file(".sh")  # the shell's editor takes lines of at most 1,022 characters
    lines.write_text("".join(f"{line}\n" for line in LINES.values()))
    with guest("--mask", "PROC", "--file", f"/tmp/lines={lines}", smp=1) as c:
        shell(c, "sh /tmp/lines")
        stopped_by_request(c)
        db(c, "lines 0")
        out = db(c, "show ktr/a")
        long = SAID["long"]
        expected = [SAID["short"], SAID["parts"], f"{long[:232]}(cut at 232 of {len(long)})", SAID["quotes"]]
        found = [m[1] for m in re.finditer(EXEC + "$", out, re.M)]
        check_eq(found[::-1], expected, "arguments in show ktr")
        check_match(r"^--- End of trace buffer ---$", out, "show ktr/a")
        c.sendline("poweroff 3")
        check_eq(ended(c), 3, "exit status")


if __name__ == "__main__":
    main()
