#!/usr/bin/python3
"""dtrace_test.py - the D compiler on the host: what it compiles, and what it says of wrong programs.

Prints TAP. The program is build/host/dtrace, or $DTRACE; the kernel's types are those of the x86_64 build.
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import wire

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "qemu"))
from deadline import Child  # noqa: E402

subprocess.Popen = Child  # its time-outs are deadlines
DTRACE = os.environ.get("DTRACE", str(ROOT / "build/host/dtrace"))
DEADLINE_S = 60

# A program, and the tag of its error; a third text is part of the message.
ERRORS = [
    ("BEGIN", None),
    ("", "D_EMPTY"),
    ("/* nothing */", "D_EMPTY"),
    ("BEGIN {", "D_SYNTAX", "found the end of the program"),
    ("BEGIN { trace(; }", "D_SYNTAX", 'near ";"'),
    ("BEGIN / 1 { }", "D_SYNTAX", "'/'"),
    ("a:b:c:d:e { }", "D_PDESC_INVAL", "too many colons"),
    ("BEGIN { for (;;) ; }", "D_SYNTAX", "no loops"),
    ("BEGIN { while (1) { } }", "D_SYNTAX", "no loops"),
    ("BEGIN { trace(1.5); }", "D_SYNTAX", "no floating point"),
    ("BEGIN { this->x = (float)1; }", "D_DECL_FLOAT"),
    ("BEGIN { trace(099); }", "D_INT_DIGIT"),
    ("BEGIN { trace(12abc); }", "D_SYNTAX"),
    ("BEGIN { trace(0xfffffffffffffffff); }", "D_INT_OFLOW"),
    ('BEGIN { trace("a\nb"); }', "D_STR_NL"),
    ("BEGIN { trace('a\n'); }", "D_CHR_NL"),
    ("BEGIN { trace(''); }", "D_CHR_NULL"),
    ("BEGIN { trace('123456789'); }", "D_CHR_OFLOW"),
    ("/* /* */ BEGIN", "D_SYNTAX", "comment"),
    ("/* BEGIN", "D_SYNTAX", "comment"),
    ("BEGIN { trace($1); }", "D_MACRO_UNDEF"),
    ("BEGIN { trace($nothing); }", "D_MACRO_UNDEF"),
    ("#pragma D nothing\nBEGIN", "D_PRAGMA_INVAL"),
    ("#pragma D option\nBEGIN", "D_PRAGMA_MALFORM"),
    ("#pragma D option nothing\nBEGIN", "D_PRAGMA_OPTSET"),
    ("#pragma D option bufsize=x\nBEGIN", "D_PRAGMA_OPTSET", "k, m, g"),
    ("#include <a.h>\nBEGIN", "D_PRAGCTL_INVAL", "-C"),
    ("#error no\nBEGIN", "D_PRAGERR"),
    ("BEGIN { trace(nothing); }", "D_IDENT_UNDEF"),
    ("BEGIN { trace(self->nothing); }", "D_VAR_UNDEF"),
    ("BEGIN { trace(this->nothing); }", "D_VAR_UNDEF"),
    ("BEGIN { trace(`no_such_symbol); }", "D_IDENT_UNDEF"),
    ("BEGIN { nothing(); }", "D_FUNC_UNDEF"),
    ("BEGIN { x[1] = 1; trace(x); }", "D_IDENT_BADREF"),
    ("BEGIN { trace(printf); }", "D_IDENT_BADREF"),
    ("BEGIN { exit(); }", "D_PROTO_LEN"),
    ("BEGIN { exit(1, 2); }", "D_PROTO_LEN"),
    ('BEGIN { exit("x"); }', "D_PROTO_ARG", "argument #1"),
    ("BEGIN { trace(strlen(1)); }", "D_PROTO_ARG"),
    ("inline int f[int *p] = p != NULL; BEGIN { trace(f(trace(1))); }", "D_PROTO_ARG", "void"),
    ("BEGIN { stack(pid); }", "D_STACK_SIZE", "constant"),
    ("BEGIN { printf(execname); }", "D_PRINTF_ARG_FMT", "a string constant"),
    ('BEGIN { printf("%d"); }', "D_PRINTF_ARG_PROTO"),
    ('BEGIN { printf("x", 1); }', "D_PRINTF_ARG_EXTRA"),
    ('BEGIN { printf("%s", 1); }', "D_PRINTF_ARG_TYPE"),
    ('BEGIN { printf("%d", "x"); }', "D_PRINTF_ARG_TYPE"),
    ('BEGIN { printf("%s", curthread); }', "D_PRINTF_ARG_TYPE", "stringof"),
    ('BEGIN { printf("%*d", "x", 1); }', "D_PRINTF_DYN_TYPE"),
    ('BEGIN { printf("%f", 1); }', "D_SYNTAX", "no floating point"),
    ('BEGIN { printf("%q", 1); }', "D_SYNTAX"),
    ('BEGIN { printf("%@d", 1); }', "D_PRINTF_AGG_CONV"),
    ("BEGIN { printa(); }", "D_PROTO_LEN"),
    ('BEGIN { printa("x"); }', "D_PRINTA_PROTO"),
    ("BEGIN { printa(1); }", "D_PRINTA_AGGARG"),
    ("BEGIN { @a[1] = count(); @b = count(); printa(@a, @b); }", "D_PRINTA_AGGKEY"),
    ("BEGIN { printa(@a); }", "D_AGG_UNDEF"),
    ('BEGIN { @a[1] = count(); @b["x"] = count(); printa(@a, @b); }', "D_PRINTA_AGGPROTO"),
    ('BEGIN { @a["x"] = count(); printa("%d %@d", @a); }', "D_PRINTF_ARG_TYPE"),
    ('BEGIN { @a["x"] = count(); printa("%s %s %@d", @a); }', "D_PRINTF_ARG_PROTO"),
    ("BEGIN { @ = lquantize(1, 0, 10, 20); }", "D_LQUANT_STEPLARGE"),
    ("BEGIN { clear(@a); }", "D_AGG_UNDEF"),
    ("BEGIN { clear(1); }", "D_CLEAR_AGGARG", "an aggregation"),
    ("BEGIN { @a = 1; }", "D_AGG_FUNC"),
    ("BEGIN { x = count(); }", "D_AGG_FUNC"),
    ("BEGIN { @a += count(); }", "D_AGG_OP"),
    ("BEGIN { @a = count(); @a = sum(1); }", "D_AGG_REDEF"),
    ("BEGIN { @a = lquantize(1, 0, 10); @a = lquantize(1, 0, 20); }", "D_LQUANT_MATCHLIM"),
    ("BEGIN { @a = count(); x = @a; }", "D_AGG_REF"),
    ("BEGIN { @a[1] = count(); clear(@a[1]); }", "D_AGG_REF"),
    ('BEGIN { @a[1] = count(); @a["x"] = count(); }', "D_KEY_TYPE"),
    ("BEGIN { @a[1] = count(); @a[1, 2] = count(); }", "D_KEY_TYPE"),
    ("BEGIN { @ = lquantize(1, 10, 5); }", "D_LQUANT_MISMATCH"),
    ("BEGIN { @ = lquantize(1, 0, 10, 0); }", "D_LQUANT_STEPTYPE"),
    ("BEGIN { @ = lquantize(1, 0, 100000); }", "D_LQUANT_STEPSMALL"),
    ("BEGIN { @ = llquantize(1, 1, 0, 3, 10); }", "D_LLQUANT_FACTORVAL"),
    ("BEGIN { @ = llquantize(1, 10, 3, 0, 10); }", "D_LLQUANT_HMAGVAL"),
    ("BEGIN { @ = llquantize(1, 10, 0, 3, 15); }", "D_LLQUANT_STEPVAL"),
    ('BEGIN { x[1] = 1; x["a"] = 2; }', "D_PROTO_ARG"),
    ("BEGIN { x[1] = 1; x[1, 2] = 2; }", "D_PROTO_LEN"),
    ("BEGIN { this->x[1] = 1; }", "D_ARR_LOCAL"),
    ('BEGIN { x = 1; x = "a"; }', "D_OP_INCOMPAT"),
    ('BEGIN { s = "ab"; trace(s[1]); trace(*s); trace(stringof(s + 1)); trace(strlen(NULL)); }', None),
    ("BEGIN /x++ == 0/ { exit(x); }", None),
    ('BEGIN { trace("a" == 1); }', "D_OP_INCOMPAT"),
    ('BEGIN { trace("a" * 2); }', "D_OP_INT"),
    ("BEGIN { trace(~curthread); }", "D_OP_INT"),
    ("BEGIN { trace(1 && execname); }", "D_OP_SCALAR"),
    ('BEGIN { trace("a" ? 1 : 2); }', "D_OP_SCALAR"),
    ("BEGIN { trace(*1); }", "D_DEREF_NONPTR"),
    ("BEGIN { trace(*(void *)0); }", "D_DEREF_VOID"),
    ("BEGIN { x = (void *)0 + 1; }", "D_OP_INCOMPAT"),
    ("BEGIN { x = (boolean_t)1; trace(*curpsinfo); print((*curlwpsinfo).pr_pri); }", None),
    ("BEGIN { trace(curpsinfo); }", "D_TRACE_DYN"),
    ("BEGIN { print(curpsinfo); }", "D_PRINT_DYN"),
    ("BEGIN { trace(pid->x); }", "D_OP_PTR"),
    ("BEGIN { trace(pid.x); }", "D_OP_SOU"),
    ("BEGIN { trace(curthread->nothing); }", "D_TYPE_MEMBER"),
    ("BEGIN { trace(((struct nothing *)0)->x); }", "D_OP_INCOMPLETE"),
    ("BEGIN { pid = 1; }", "D_OP_WRITE"),
    ("BEGIN { *(int *)0xffff = 1; }", "D_OP_WRITE", "kernel's memory"),
    ("BEGIN { curthread->tid = 1; }", "D_OP_WRITE"),
    ("BEGIN { `pcpus[0] = NULL; }", "D_OP_WRITE"),
    ("BEGIN { 1 = 2; }", "D_OP_LVAL"),
    ("BEGIN { 1++; }", "D_OP_LVAL"),
    ("BEGIN { trace(&1); }", "D_ADDROF_LVAL"),
    ("BEGIN { x = 1; trace(&x); }", "D_ADDROF_VAR"),
    ("BEGIN { trace((struct proc)1); }", "D_CAST_INVAL"),
    ('BEGIN { trace((int)"a"); }', "D_CAST_INVAL"),
    ("BEGIN { trace(stringof(*curthread)); }", "D_STRINGOF_TYPE"),
    ("BEGIN { trace(sizeof(void)); }", "D_SIZEOF_TYPE"),
    ("struct s { int a:3; }; this struct s x; BEGIN { trace(sizeof(this->x.a)); }", "D_SIZEOF_BITFIELD"),
    ("struct s { int a:3; }; this struct s x; BEGIN { trace(&this->x.a); }", "D_ADDROF_BITFIELD"),
    ("struct s { int a:3; }; BEGIN { trace(offsetof(struct s, a)); }", "D_OFFSETOF_BITFIELD"),
    ("BEGIN { trace(offsetof(int, a)); }", "D_OFFSETOF_TYPE"),
    ("struct s { int a; int b; }; BEGIN { x = offsetof(struct D`s, b); y = (D`uint8_t)1; z = (struct kernel`proc *)0; }", None),
    ("union u { int a; }; BEGIN { x = sizeof(union C`u); }", None),
    ("struct D`s { int a; };", "D_SYNTAX", "expected a tag"),
    ("BEGIN { x = sizeof(struct nothing`s); }", "D_DECL_SCOPE", "expected D, C or kernel"),
    ("struct s { int a:33; };", "D_DECL_BFSIZE"),
    ("struct s { int a; }; struct s { int a; };", "D_DECL_TYPERED"),
    ("typedef int t; typedef long t;", "D_DECL_IDRED"),
    ("int x; long x;", "D_DECL_IDRED"),
    ("int pid;", "D_DECL_IDRED"),
    ("void x;", "D_DECL_VOIDOBJ"),
    ("struct nothing x;", "D_DECL_INCOMPLETE"),
    ("this int x[int];", "D_DECL_LOCASSC"),
    ("short char x;", "D_DECL_CHARATTR"),
    ("int x[-1];", "D_DECL_ARRSUB"),
    ('BEGIN / "x" / { }', "D_PRED_SCALAR"),
    ("BEGIN { 1 + 1; }", "D_EXPR_NULL"),
    ("BEGIN { trace(1 / 0); }", "D_DIV_ZERO"),
    ("BEGIN { trace(1 % 0); }", "D_DIV_ZERO"),
    ('BEGIN { x = printf("x"); }', "D_OP_INCOMPAT"),
    ("BEGIN { 2, stack(), 8; }", "D_OP_INCOMPAT"),
    ("BEGIN { 1 ? stack() : ustack(); }", "D_OP_ACT"),
    ('BEGIN { trace((printf("x"), 1)); }', "D_ACT_VALUE"),
    ("BEGIN { commit(1); commit(1); }", "D_COMM_COMM"),
    ("BEGIN { trace(1); commit(1); }", "D_COMM_DREC"),
    ("BEGIN { commit(1); trace(1); }", "D_DREC_COMM"),
    ("BEGIN { trace(1); speculate(1); }", "D_SPEC_DREC"),
    ("BEGIN { commit(1); speculate(1); }", "D_SPEC_COMM"),
    ("BEGIN { commit(1); exit(0); }", "D_DREC_COMM"),
    ("BEGIN { @ = count(); commit(1); }", "D_COMM_DREC"),
    ("BEGIN { discard(1); discard(2); trace(1); }", None),
    ("BEGIN /!x/ { x = 1; }", None),
    ("BEGIN /!x/ { y = 1; }", "D_IDENT_UNDEF"),
    ("BEGIN { s[1] = 5; } BEGIN /this->start = s[1]/ { trace(this->start); }", None),
    ("BEGIN /pid && (this->c = stringof(execname)) != NULL/ { trace(this->c); }", None),
    ("BEGIN /x = y/ { }", "D_IDENT_UNDEF"),
    ("fbt::f:return /self->last == 0/ { self->last = timestamp; }", None),
    ("BEGIN { speculate(1); speculate(1); }", "D_SPEC_SPEC"),
    ("BEGIN { speculate(1); exit(0); }", "D_EXIT_SPEC"),
    ("BEGIN { speculate(1); @ = count(); }", "D_AGG_SPEC"),
    ("BEGIN { commit(1); @ = count(); }", "D_AGG_COMM"),
    ("BEGIN { @ = count(); } END { speculate(1); printa(@); }", "D_PRINTA_SPEC"),
    ("BEGIN { tracemem(curthread, 0); }", "D_TRACEMEM_SIZE"),
    ("translator int < struct proc *p > { };", "D_XLATE_SOU"),
    ("struct o { int a; }; translator struct o < struct proc *p > { b = 1; };", "D_XLATE_MEMB"),
    ("struct o { int a; }; BEGIN { trace(xlate <struct o *> (curproc)->a); }", "D_XLATE_NONE"),
    ("BEGIN { x = curpsinfo; }", "D_XLATE_DYN"),
    ("inline int x = x; BEGIN { trace(x); }", "D_IDENT_UNDEF"),
    ("BEGIN { trace(args[0]); }", "D_ARGS_IDX", "dtrace:::BEGIN"),
    ("BEGIN { trace(" + "(" * 1000 + "1" + ")" * 1000 + "); }", "D_SYNTAX", "nested"),
    ("struct {" * 300 + "int x; " + "} y; " * 300, "D_SYNTAX", "nested"),
    ("int x" + "[1]" * 300 + ";", "D_SYNTAX", "nested"),
    ("int " + "*" * 300 + "x;", "D_SYNTAX", "nested"),
    ("BEGIN { trace(" + "(" * 60 + "pid" + (")" + "+ pid" * 20) * 60 + "); }", "D_SYNTAX", "nested"),
    ("inline int a0 = pid; " + "".join(f"inline int a{i} = a{i - 1}{' + pid' * 900}; " for i in range(1, 9)) + "BEGIN { trace(a8); }", "D_SYNTAX", "nested"),
    ("BEGIN { if (pid) { trace(1); } else { speculate(1); trace(2); } }", None),
    ("BEGIN { if (pid) { commit(1); } else { trace(1); } trace(2); }", "D_DREC_COMM"),
    ("BEGIN { if (pid) { trace(1); } else { x = 1; } speculate(1); }", "D_SPEC_DREC"),
    ("int a[int]; int a[string];", "D_DECL_IDRED"),
    ("int a[int]; int a[int, int];", "D_DECL_IDRED"),
    ("int a[int, string]; int a[int, string]; BEGIN", None),
    ("struct s { char c[136]; }; int a[struct s];", "D_KEY_TYPE"),
    ("struct s { char c[128]; }; int a[struct s]; BEGIN", None),
    ("BEGIN { @[" + ", ".join(["usym(1)"] * 9) + "] = count(); }", "D_KEY_TYPE", "too large"),
    ("BEGIN { 1 ? 1 : 2; }", "D_EXPR_NULL"),
    ("BEGIN { trace(0 && 1 / 0); }", "D_DIV_ZERO"),
    ("BEGIN { trace(" + "".join(f"arg{i % 10} + (" for i in range(40)) + "1" + ")" * 40 + "); }", "D_NOREG"),
    ('BEGIN { printf("%?d", 1, 2); }', "D_PRINTF_ARG_EXTRA"),
    ('BEGIN { printf("%*d"); }', "D_PRINTF_DYN_PROTO"),
    ('BEGIN { printf("%**d", 1, 2); }', "D_SYNTAX"),
    ('BEGIN { printf("%-%"); }', "D_SYNTAX"),
    ('BEGIN { printf(""); }', "D_PRINTF_FMT_EMPTY"),
    ('BEGIN { freopen("."); }', "D_FREOPEN_INVALID"),
    ("BEGIN { trace(trace(1)); }", "D_TRACE_VOID"),
    ("BEGIN { @a = count(); trace(@a); }", "D_TRACE_DYN"),
    ("BEGIN { @[0][1] = count(); }", "D_AGG_MDIM"),
    ("BEGIN { @a = count(); @a; }", "D_AGG_NULL"),
    ("BEGIN { @a; }", "D_IDENT_UNDEF"),
    ('BEGIN { @ = sum(""); }', "D_AGG_SCALAR"),
    ("BEGIN { avg(1); }", "D_CG_EXPR"),
    ("BEGIN { clear(count()); }", "D_CLEAR_AGGARG"),
    ("BEGIN { @ = f(); }", "D_FUNC_UNDEF"),
    ("BEGIN { @ = tick-1(); }", "D_FUNC_IDENT"),
    ("BEGIN { @a = count(); @[@a] = count(); }", "D_KEY_TYPE"),
    ("BEGIN { @a = count(); trace(@a + 3); }", "D_OP_INCOMPAT"),
    ("BEGIN { @a = count(); trace(&@a); }", "D_ADDROF_VAR"),
    ("BEGIN { x = 1; @ = lquantize(1, x, 10); }", "D_LQUANT_BASETYPE"),
    ("BEGIN { @ = lquantize(1, 100, 2147483657); }", "D_LQUANT_LIMVAL"),
    ("BEGIN { @ = lquantize(1, 0, 65533); }", None),
    ("BEGIN { @ = llquantize(1, 10, 0, 30, 20); }", "D_LLQUANT_HMAGVAL"),
    ("BEGIN { @ = llquantize(1, 10, 2, 6, 80); }", "D_LLQUANT_STEPVAL"),
    ("BEGIN { @ = llquantize(1, 2, 0, 60, 32768); }", "D_LLQUANT_STEPVAL", "levels"),
    ("BEGIN { @ = llquantize(0, 10, 0, 6, 20); @ = llquantize(0, 10, 1, 6, 20); }", "D_LLQUANT_MATCHLMAG"),
    ("int x[5]; BEGIN { x[1, 2] = 1; }", "D_ARR_BADREF"),
    ("int x[5]; BEGIN { x[5] = 1; }", "D_ARR_BOUNDS"),
    ("int x[];", "D_DECL_ARRNULL"),
    ("extern int x[];", None),
    ("int x[88294967295];", "D_DECL_ARRBIG"),
    ("int x[1025]; BEGIN { x[1] = 1; }", "D_DECL_ARRBIG"),
    ("extern int x[1025]; BEGIN", None),
    ("struct big { int a[1025]; }; BEGIN { x = *(struct big *)alloca(8); }", "D_DECL_ARRBIG"),
    ("int x[void, char];", "D_DECL_PROTO_TYPE"),
    ("int f(int, void);", "D_DECL_PROTO_VOID"),
    ("int f(void v);", "D_DECL_PROTO_NAME"),
    ("int f(static int);", "D_DECL_PARMCLASS"),
    ("int x[...];", "D_DECL_PROTO_VARARGS"),
    ("void f(int, ...); int g(void); BEGIN", None),
    ("self x; this y; BEGIN { self->x = 1; this->y = self->x; }", None),
    ("self x; BEGIN { self->x = execname; }", "D_OP_INCOMPAT"),
    ("self this int x;", "D_DECL_CLASS"),
    ("register x;", "D_DECL_BADCLASS"),
    ("extern int;", "D_DECL_USELESS"),
    ("int `xyz;", "D_DECL_SCOPE"),
    ("enum foo`bar { };", "D_SYNTAX"),
    ("long struct s { int a; };", "D_DECL_LONGINT"),
    ("unsigned struct s { int a; };", "D_DECL_SIGNINT"),
    ("short void x;", "D_DECL_VOIDATTR"),
    ("BEGIN { x = (char int)0; }", "D_DECL_COMBO"),
    ("struct s { int a; } struct t { int b; };", "D_DECL_COMBO"),
    ("struct s { int a, a; };", "D_UNKNOWN"),
    ("struct s { int f(); };", "D_DECL_VOIDOBJ"),
    ("struct s { int a:0; };", "D_DECL_BFCONST"),
    ("struct s { string a:1; };", "D_DECL_BFTYPE"),
    ("enum e { A, A };", "D_UNKNOWN"),
    ("enum e { A }; enum f { A };", "D_DECL_IDRED"),
    ("enum e { A = 2147483648 };", "D_DECL_ENOFLOW"),
    ('enum e { A = "a" };', "D_DECL_ENCONST"),
    ("inline int x = 1; inline int x = 2;", "D_DECL_IDRED"),
    ("inline int rand = 7;", "D_DECL_IDRED"),
    ('inline int x = "a";', "D_OP_INCOMPAT"),
    ("inline int f[struct thread *t] = t->tid; BEGIN { trace(f[pid]); }", "D_PROTO_ARG", "struct thread *"),
    ("inline int f[struct thread *t] = t->tid; BEGIN { trace(f[pid + 1]); }", "D_PROTO_ARG", "struct thread *"),
    ("inline int f[struct thread *t] = t->tid; BEGIN { trace(f[curproc]); }", "D_PROTO_ARG", "struct thread *"),
    ("inline int f[int a] = a; BEGIN { trace(f[curthread]); }", "D_PROTO_ARG", "expected int"),
    ("inline int f[struct thread *t] = t == NULL; BEGIN { trace(f[0]); trace(f[NULL]); trace(f[curthread]); trace(f[(void *)pid]); }", None),
    ("inline int f[psinfo_t *p] = p->pr_pid; BEGIN { trace(f[curpsinfo]); }", None),
    ("inline int f[psinfo_t *p] = p->pr_pid; inline int g[psinfo_t *p] = f[p]; BEGIN { trace(g[curpsinfo]); }", None),
    ("BEGIN { trace(((psinfo_t *)curpsinfo)->pr_pid); }", None),
    ('BEGIN { copyin("1", 2); }', "D_PROTO_ARG"),
    ("BEGIN { copyinto(1, 2, 3); }", "D_PROTO_ARG"),
    ("BEGIN { stack(0); }", "D_STACK_SIZE"),
    ('BEGIN { stack("a"); }', "D_PROTO_ARG"),
    ("BEGIN { ustack(1, -1); }", "D_USTACK_STRSIZE"),
    ("BEGIN { speculate(1); panic(); }", "D_ACT_SPEC"),
    ("BEGIN { speculate(1); trace(1); speculate(2); }", "D_SPEC_SPEC"),
    ("void *p; BEGIN { trace((int)(p + 1)); }", "D_OP_INCOMPAT"),
    ("int a[2], b[2]; BEGIN { a = b; }", "D_OP_ARRFUN"),
    ("struct s { int a; } x; BEGIN { trace(&x); }", "D_ADDROF_VAR"),
    ("int a[4]; BEGIN /a/ { }", "D_PRED_SCALAR"),
    ("BEGIN { trace(args); }", "D_IDENT_BADREF"),
    ('BEGIN { trace(args["a"]); }', "D_PROTO_ARG"),
    ("BEGIN { trace(1 - -trace(0)); }", "D_OP_ARITH"),
    ("BEGIN { trace(curpsinfo->pr_size); }", "D_XLATE_NOCONV"),
    ("struct o { int a; }; translator struct o < struct no *p > { a = p->x; };", "D_OP_INCOMPLETE"),
    ("struct o { char *a; }; translator struct o < struct proc *p > { a = p->pid; };", "D_XLATE_INCOMPAT"),
    ("struct o { int a; }; translator struct o < int p > { a = p; }; translator struct o < int p > { a = p; };", "D_XLATE_REDECL"),
    ("struct o { int a; }; translator struct o (int p) { a = p; };", "D_SYNTAX"),
    ("struct o { int a; }; translator struct o < int p > { a = p; }; BEGIN { trace((int)xlate <struct o *> (1)); }", "D_CAST_INVAL"),
    ("#pragma D error \"no\"\nBEGIN", "D_PRAGERR"),
    ("#pragma D depends_on library net.d\nBEGIN", "D_PRAGMA_DEPEND"),
    ("#pragma D depends_on provider fbt\n#pragma D depends_on provider io\n#pragma D depends_on module mm\nBEGIN", None),
    ("#pragma D depends_on provider nosuch\nBEGIN", "D_PRAGMA_DEPEND"),
    ("#pragma D \nBEGIN", "D_PRAGMA_INVAL"),
    ("#pragma D option nspec=2 * 2\nBEGIN", "D_PRAGMA_MALFORM"),
    ("#pragma D attributes wrong x\nBEGIN", "D_PRAGMA_INVAL"),
    ("#pragma D attributes Stable/Stable/Common nothing\nBEGIN", "D_PRAGMA_UNUSED", "named nothing"),
    ("#pragma D attributes Stable/Stable/Common x\nBEGIN { x = 1; }", None),
    ("#pragma D option ldpath=/tmp\nBEGIN", "D_PRAGMA_OPTSET", "-x ldpath"),
    ("BEGIN { x = 1; }\n#pragma D option quiet", "D_SYNTAX", "no end of the line of #"),
    ("#pragma D option version=1.1\nint strtok; BEGIN", "D_DECL_IDRED", "strtok is built into D"),
    ("#pragma D option version=1.0\nint strtok, freopen, ucaller; BEGIN { strtok = 1; }", None),
    ("#pragma D option version=1\nBEGIN { trace(strtok(\"a\", \"b\")); }", "D_FUNC_UNDEF"),
    ("int strlen; BEGIN", "D_DECL_IDRED"),
]

# A constant expression, and its value.
VALUES = [
    ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("7 / 2", 3), ("-7 / 2", -3), ("-7 % 3", -1), ("1 << 4 | 1", 17), ("0x10 + 010", 24),
    ("'a'", 97), ("'\\n'", 10), ("'ab'", 0x6162), ("1 < 2", 1), ("-1 < 0u", 0), ("-1 < 1", 1), ("~0", -1),
    ("!5", 0), ("5 && 0", 0), ("5 || 0", 1), ("5 ^^ 3", 0), ("5 ^ 3", 6), ("6 & 3", 2), ("0xffffffff + 1", 1 << 32), ("0xffffffffL + 1", 1 << 32),
    ("sizeof ((struct list *)0)->next", 8), ("sizeof (1) + 1", 5), ("sizeof ((1), 2ll)", 8),
    ("sizeof(int)", 4), ("sizeof(struct list)", 16), ("sizeof(char *)", 8), ("sizeof(\"abc\")", 4), ("(char)257", 1), ("(unsigned char)-1", 255),
    ("offsetof(struct list, prev)", 8), ("THREAD_SLEEPING", 2), ("EIO", 5), ("SIGKILL", 9), ("1 == 1 != 0", 1), ("2147483647 + 1", 1 << 31), ("5 * 1000000000", 5000000000), ("-(1 << 40) / 2", -(1 << 39)), ("0x80000000", 0x80000000),
    ("O_NDELAY", 0o4000), ("O_RSYNC & ~O_DSYNC", 0o4000000), ("O_LARGEFILE | O_XATTR", 0), ("IPPROTO_ICMPV6", 58),
    ("IPPROTO_MAX", 256), ("IPH_DF", 4), ("SI_LWP", -6), ("ILL_BADSTK", 8), ("FPE_FLTSUB", 8), ("SEGV_ACCERR", 2),
    ("BUS_OBJERR", 3), ("TRAP_TRACE", 2), ("POLL_HUP", 6),
    ("0 ? 5 : 0xffffffff", 0xffffffff), ("1 ? -1 : 2u", 0xffffffff), ("(char *)-1 < (char *)1", 0), ("(void *)-1 >= NULL", 1),
    ("1 - 2 - 3", -4), ("100 / 10 / 5", 2), ("1 << 2 + 1", 8), ("3 > 2 == 1", 1), ("1 | 6 ^ 2 & 3", 5),
]

# A program; parts of its code that must come in this order.
CODE = [
    ("syscall::*:entry /pid == 1234/ { printf(\"%s\", probefunc); }", ["builtin   %r1 4", "jne       %r1 %r2 7", "rec       0", "recstr", "ret       0", "ret       1"]),
    ("fbt::f:entry { self->t = timestamp; } fbt::f:return /self->t/ { @[\"x\"] = quantize(timestamp - self->t); self->t = 0; }",
     ["stv       %r1 self->t", "ldv       %r1 self->t", "jeq       %r1 %r0", "sub", "keystr", "agg", "stv"]),
    ("BEGIN { a[pid, execname] = 1; trace(a[1, \"x\"]); }", ["key ", "keystr", "stv ", "key ", "keystr", "ldv "]),
    ("BEGIN { trace(curthread->proc->parent->pid); }", ["builtin   %r1 22", "ld8", "ld8", "ld4", "rec4"]),
    ("BEGIN { trace(curpsinfo->pr_psargs); trace(curlwpsinfo->pr_pri); }", ["recstr", "ld1", "rec4"]),
    ("syscall::write:entry { @[fds[arg0].fi_pathname] = sum(arg2); }", ["arg       %r1 2", "STRJOIN", "keystr", "agg"]),
    ("BEGIN { if (pid == 1) { trace(1); } else if (pid == 2) trace(2); else { trace(3); } }", ["jne", "rec       0", "ja", "jne", "rec       1", "ja", "rec       2"]),
    ("BEGIN { if (pid == 1) { trace(1); } else if (pid == 2) trace(2); trace(3); }", ["rec       0", "rec1      %r0 0", "rec1      %r0 1", "jne", "ja"]),
    ("BEGIN { trace(`pcpus[1]->ticks); trace(sizeof(`pcpus)); }", ["ld8", "ld8", "rec8", "or        %r1 %r0 512"]),
    ("BEGIN { @[stack(5), ustack()] = count(); }", ["keystack  5", "keyustack 20", "agg"]),
    ("BEGIN { self->s = speculation(); } fbt::: /self->s/ { speculate(self->s); }", ["SPECULATION", "speculate", "rec       0"]),
    ("BEGIN { x++; --x; x += 2; x <<= 1; }", ["add ", "stv ", "sub ", "stv ", "add ", "stv ", "shl ", "stv "]),
    ("BEGIN { this->p = (char *)alloca(8); this->p[1] = 'x'; *this->p = 'y'; }", ["ALLOCA", "st1 ", "st1 "]),
    ("proc:::create { trace(args[0]->pr_pid); } proc:::exit { trace(args[0]); } sched:sched::enqueue { trace(args[2]->cpu_id); }",
     ["ld4", "rec4", "ld4"]),
    ("profile-97 { trace(args[0]); } profile:::tick-1s { trace(args[1]); }", ["arg       %r1 0", "arg       %r1 1"]),
    ("BEGIN { trace(pid ? \"a\" : \"b\"); trace(execname < \"b\"); }", ["string", "string", "recstr", "scmp"]),
    ("BEGIN { trace(timestamp); }", ["builtin   %r1 0", "rec8"]),
    ("BEGIN { x = timestamp; } END { trace(timestamp - x); }", ["builtin   %r1 0", "builtin   %r1 0"]),
    ("BEGIN { x = timestamp; } BEGIN { } BEGIN { y = timestamp; }", ["stv       %r1 this-> time", "ldv       %r1 this-> time", "stv", "ldv       %r1 this-> time"]),
    ("BEGIN { x = pid * 1000000000; }", ["mul", "ext", "stv"]),
    ("BEGIN { trace(timestamp > pid * 1000000000); }", ["builtin   %r1 0", "mul", "jul"]),
    ("syscall::read:entry, syscall::write:entry /arg0 > 2 && arg2 != 0/ { @[probefunc] = count(); }", ["arg       %r1 0", "jle", "arg       %r1 2", "jeq", "agg"]),
]


def dtrace(*arguments, env=None, stdin=None):
    p = subprocess.run([DTRACE, *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False, input=stdin,
                       env={**os.environ, "KESTREL_ARCH": "x86_64", **(env or {})})
    return p.returncode, p.stdout, p.stderr


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def wrong_programs_are_refused_by_their_tag():
    for program, tag, *part in ERRORS:
        status, _, errors = dtrace("-e", "-n", program)
        found = re.search(r"\[(D_\w+)\]", errors)
        check((found.group(1) if found else None) == tag and status == (0 if tag is None else 1),
              f"{program[:200]!r}: expected {tag}, found status {status}: {errors[-300:]}")
        check(not part or part[0] in errors, f"{program[:200]!r}: expected {part}, found {errors[-300:]}")


def constants_are_computed_as_in_c():
    for text, value in VALUES:
        status, out, errors = dtrace("-eSn", f"BEGIN {{ x = (int64_t)({text}); }}")
        check(status == 0, f"{text}: {errors}")
        low = re.search(r"or +%r1 %r0 (-?\d+)", out)
        high = re.search(r"high +%r1 (-?\d+)", out)
        found = int(low.group(1)) if high is None else int(low.group(1)) & 0xffffffff | int(high.group(1)) << 32
        check(found == value, f"{text}: found {found}, expected {value}")


def programs_compile_to_their_code():
    for program, parts in CODE:
        status, out, errors = dtrace("-eSn", program)
        check(status == 0, f"{program}: {errors}")
        at = 0
        for part in parts:
            found = out.find(part, at)
            check(found >= 0, f"{program}: no {part!r} in its place:\n{out}")
            at = found + len(part)


def errors_name_file_and_line():
    with tempfile.TemporaryDirectory() as tmp:
        script = pathlib.Path(tmp) / "x.d"
        script.write_text("#!/usr/sbin/dtrace -s\n#pragma D option quiet\n\nBEGIN\n{\n\ttrace(nothing);\n}\n")
        status, _, errors = dtrace("-e", "-s", str(script))
        check(status == 1 and errors == f"dtrace: failed to compile script {script}: [D_IDENT_UNDEF] {script}, line 6: "
              "failed to resolve nothing: unknown variable name\n", errors)
        script.write_text('BEGIN\n{\n\tprintf("%d", cwd);\n}\n')
        check(f"{script}, line 3:" in dtrace("-e", "-s", str(script))[2], "an inline of a library, where it is used")
        script.write_text('# 10 "other.d"\nBEGIN { trace(nothing); }\n')
        check("other.d, line 10:" in dtrace("-e", "-s", str(script))[2], "the line marker of a preprocessor")


def arguments_are_macros():
    check(dtrace("-en", "BEGIN { trace($1); trace($$2); trace($$0); }", "5", "a b")[0] == 0, "$1 $$2 $0")
    check("D_MACRO_UNUSED" in dtrace("-en", "BEGIN", "5")[2], "an argument too much")
    check(dtrace("-x", "defaultargs", "-en", "BEGIN { trace($1); }")[0] == 0, "defaultargs")
    check("D_PDESC_INVAL" in dtrace("-e", "-P", "x,a:b")[2] and dtrace("-e", "-m", "a,b:c")[0] == 0, "-P and -m of several names")
    check(dtrace("-en", "BEGIN { trace($$1); trace($$2); }", "--", "-e", "-e")[0] == 0, "what follows -- are arguments")
    check("stv       %r1 zero" in dtrace("-eSn", "BEGIN { $1 = 3; }", "zero")[1], "a name")


# Lines of a script; parts of its code that must come in this order, or the tag and the place of its error.
CPP = [
    (["#define N 5", "#ifdef M", "BEGIN { trace(M + N); }", "#endif"], ["or        %r1 %r0 8"]),
    (["#!/usr/sbin/dtrace -Cs", "#include \"a.h\"", "#include <a.h>", "BEGIN { trace(SQUARE(2 + 1)); }"], ["or        %r1 %r0 9"]),
    (["#include \"a.h\"", "BEGIN { CAT(tra, ce)(XSTR(SQUARE(2))); trace(STR(a  \"b\\n\")); }"], ['string    %r1 "((2) * (2))"', 'string    %r1 "a  "b\\n""']),
    (["#define LOG(format, ...) printf(format, __VA_ARGS__)", "BEGIN { LOG(\"%d %d\", (1, 2), 3); }"], ["%r0 1", "%r0 2", "%r0 3"]),
    (["#define MAX(a, b) ((a) > (b) ? (a) : (b))", "BEGIN { trace(MAX(1,", "MAX(2, 3))); }"], ["or        %r1 %r0 3"]),
    (["#define one_x two_x", "#define two_x one_x", "BEGIN { one_x = 1; trace(one_x); }"], ["stv       %r1 one_x"]),
    (["#if 0", "#if 1", "bad", "#else", "bad", "#endif", "#elif 2 > 1 && !defined(X)", "BEGIN { trace(1); }", "#elif 1", "bad", "#else", "bad", "#endif"], ["%r0 1"]),
    (["#define N 3 /* three", "*/ + 4 // and four", "#define LONG 1 + \\", " 2", "BEGIN { trace(N); trace(LONG); }"], ["%r0 7", "%r0 3"]),
    (["#if 1 << 40 == 1099511627776 && -1 < 0 && NOTHING == 0", "BEGIN { trace(__SUNW_D); }", "#endif"], ["%r0 1"]),
    (["#define N 1", "#undef N", "#ifndef N", "#pragma D option strsize=16", "BEGIN { trace(sizeof(execname)); trace(__LINE__); }", "#endif"], ["%r0 16", "%r0 5"]),
    (["#if 0 && 1 / 0 || 1 ? 1 : 1 / 0", "#if 1 || 1 / 0", "BEGIN { trace(7); }", "#endif", "#endif"], ["%r0 7"]),
    (["#if 1 && 1 / 0", "#endif"], "D_DIV_ZERO", "line 1"),
    (["int* p;", "int*", "/pid/", "{}", "char*b;", "int* /* of: { it */ c;", "BEGIN { p = NULL; b = NULL; trace(7); }"], ["%r0 7"]),
    (["", "#if 1", "BEGIN"], "D_CPP_ERR", "line 4: found the end of the file, expected #endif"),
    (["#else"], "D_CPP_ERR", "line 1: found no #if before #else"),
    (["#if 1", "#else", "#else", "#endif"], "D_CPP_ERR", "found #else before #else"),
    (["#if 1 +", "#endif"], "D_SYNTAX", "line 1"),
    (["#if 1 / 0", "#endif"], "D_DIV_ZERO", "line 1"),
    (["#include \"nothing.h\""], "D_CPP_ERR", "there is no such file: nothing.h"),
    (["#include \"x.d\""], "D_CPP_ERR", "include each other"),
    (["#define F(a, b) a", "BEGIN { F(1) }"], "D_CPP_ERR", "line 2: F: found 1 arguments, expected 2"),
    (["#define F(a) a", "BEGIN { F(1 }"], "D_CPP_ERR", "found no end of a macro's arguments"),
    (["#define 5"], "D_CPP_ERR", "expected a name"),
    (["#define E(x) x x", "E(" * 40 + "a" + ")" * 40], "D_CPP_ERR", "too"),
    (["#define NEG(x) -x", "#define SUB(a, b) a-b", "BEGIN { y = 5; trace(NEG(-y)); trace(SUB(y,-1)); }"],
     ["stv       %r1 y", "sub       %r1 %r0 %r1", "sub       %r1 %r0 %r1", "sub       %r1 %r1 -1"]),
    (["#define GT >", "BEGIN { p = curthread; trace(p-GT tid); }"], "D_SYNTAX", "line 2"),
    (["#define DIV(a, b) a/b", "#define P +1", "#define E",
      "BEGIN { p = (int *)&`ticks; x = 8; trace(DIV(x,*p)); trace(x+P); trace(x-E-x); }"],
     ["sdiv", "add       %r1 %r1 1", "sub       %r2 %r0 %r2", "sub       %r1 %r1 %r2"]),
    (["#define N total", "#define PROV syscall", "#define S entry", "#define CAT(a, b) a ## b",
      "PROV::read:S,profile-97 { @N = count(); CAT(a, 1)CAT(+, =)2; }"], ["syscall::read:entry", "stv       %r1 a1"]),
    (["#define f(x) (x+1)", "#define g f", "#define h(a) f", "#define two g(2) + g",
      "BEGIN { trace(g(2)); trace(h(1)(3)); trace(two (5)); trace(g", "  (7)); }"],
     ["%r0 3", "%r0 4", "%r0 9", "%r0 8"]),
    (["#define A B(", "#define B(x) (x A x)", "BEGIN { trace(A 1)); }"], "D_SYNTAX", 'near "B"'),
    (["BEGIN { /* "], "D_CPP_ERR", "found no end of this comment"),
    (["#define X", "", "BEGIN", "{", "\ttrace(nothing);", "}"], "D_IDENT_UNDEF", "x.d, line 5"),
    (["#error no", "BEGIN"], "D_PRAGERR", "line 1"),
    (["#if 0", "#error no", "#endif", "BEGIN { trace(7); }"], ["%r0 7"]),
]


def a_script_goes_through_the_preprocessor():
    with tempfile.TemporaryDirectory() as tmp:
        script = pathlib.Path(tmp) / "x.d"
        (pathlib.Path(tmp) / "a.h").write_text("#ifndef A_H\n#define A_H\n#define SQUARE(x) ((x) * (x))\n#define CAT(a, b) a ## b\n"
                                               "#define STR(x) #x\n#define XSTR(x) STR(x)\n#endif\n")
        for lines, expected, *place in CPP:
            script.write_text("\n".join(lines) + "\n")
            status, out, errors = dtrace("-eSCH", "-D", "M=3", "-I", tmp, "-s", str(script))
            if place:
                check(status == 1 and f"[{expected}]" in errors and place[0] in errors, f"{lines}: {errors}")
                continue
            check(status == 0, f"{lines}: {errors}")
            check(("a.h\n" in errors) == ("a.h" in "".join(lines)), f"{lines}: -H prints {errors!r}")
            at = 0
            for part in expected:
                found = out.find(part, at)
                check(found >= 0, f"{lines}: no {part!r} in its place:\n{out}")
                at = found + len(part)
        script.write_text("BEGIN { trace(N); }\n")
        check(dtrace("-eC", "-D", "N=1", "-s", str(script))[0] == 0, "-D")
        check(dtrace("-eC", "-D", "N=1", "-U", "N", "-s", str(script))[0] == 1, "-U")


def options_have_values():
    for option in ("evaltime=exec", "version=1.6", "bufresize=auto", "quiet=0", "quiet=YES", "quiet=Unset", "droptags", "switchrate=10hz", "strsize=64", "strsize=7", "stdc=c", "bufsize=59", "cleanrate=1s",
                   "scratch=4g", "bufsize=18446744073709551615", "aggsize=3g", "dynvarsize=1t", "specsize=2147483649"):
        check(dtrace("-x", option, "-en", "BEGIN")[0] == 0, option)
    for option in ("nothing", "version=2.0", "strsize=1", "nspec=65", "bufpolicy=x", "switchrate=1x", "define=", "quiet=x", "stdc=x", "stdc=", "bufsize=-1", "aggsize=99999999t"):
        check(dtrace("-x", option, "-en", "BEGIN")[0] == 1, option)
    check("D_MACRO_UNUSED" in dtrace("-en", "BEGIN", "5")[2] and dtrace("-x", "argref", "-en", "BEGIN", "5")[0] == 0, "argref")
    check(dtrace("-x", "empty", "-en", "")[0] == 0, "empty")
    check("D_ARGS_XLATOR" in dtrace("-x", "nolibs", "-en", "proc:::create { trace(args[0]); }")[2], "nolibs: a translated argument")


def both_architectures_compile():
    for arch in ("x86_64", "aarch64"):
        if (ROOT / f"build/{arch}/kestrel.btf").exists():
            status, out, errors = dtrace("-eSn", "BEGIN { trace(curthread->proc->pid); }", env={"KESTREL_ARCH": arch})
            check(status == 0 and "ld8" in out and errors == "", f"{arch}: {errors}")


def large_and_strange_programs_end_in_an_error_or_an_image():
    check(dtrace("-e", "-s", "-", stdin="BEGIN { trace(1); }\n" * 4000)[0] == 0, "4000 clauses")
    check("D_CLAUSES" in dtrace("-e", "-s", "-", stdin="BEGIN\n{}\n" * 5000)[2], "5000 clauses")
    big = "BEGIN {" + "x = 1;" * 170000 + "}"
    check("D_CODE_SIZE" in dtrace("-e", "-s", "-", stdin=big)[2], "a clause of 1 MB")
    check("D_SYNTAX" in dtrace("-e", "-s", "-", stdin="BEGIN { trace(" + "+".join(["1"] * 300000) + "); }")[2], "a sum of 600 KB")
    check("D_SYNTAX" in dtrace("-e", "-s", "-", stdin="BEGIN { trace(x" + "[1]" * 300000 + "); }")[2], "many indices")


def names_of_probes_take_little_memory():
    """Per name, with what the compiler takes without: 80 bytes and the name, several times; not all names before it."""
    def kilobytes(count):
        names = ",".join(f"fbt::function_with_a_name_{n}:entry" for n in range(count))
        with tempfile.TemporaryFile("w+") as text:
            text.write(names + " { @[probefunc] = count(); trace(arg0); }")
            text.seek(0)
            child = subprocess.Popen([DTRACE, "-e", "-s", "-"], stdin=text, env={**os.environ, "KESTREL_ARCH": "x86_64"})
            _, child.returncode, used = os.wait4(child.pid, 0)
        check(child.returncode == 0, f"{count} names")
        return used.ru_maxrss
    each = (kilobytes(5000) - kilobytes(1)) / 5000
    check(each < 1, f"{each:.1f} KB for each name of a probe")


def threads_that_make_each_other_are_one_process():
    """As many as there are, on a small stack. The first event is of the last one."""
    many = 20000
    call = (2, 0, (5,))
    batches = [wire.batch(0, 0, 1, many, [call])]
    batches += [wire.batch(0, 2 * n - 1, 2 * n, n, [(1, 0, (n + 1, 1)), call]) for n in range(1, many)]
    with tempfile.NamedTemporaryFile() as f:
        f.write(wire.stream(wire.site(1, "thread create: tid %u name %s", 2), wire.site(2, "syscall %u", 1),
                            wire.string(1, "x"), *batches))
        f.flush()
        p = subprocess.run([DTRACE, "-r", f.name, "-qn", "ktr::: { @[pid] = count(); }"], capture_output=True,
                           text=True, timeout=DEADLINE_S, check=False, env={**os.environ, "KESTREL_ARCH": "x86_64"},
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 18, 1 << 18)))
    check(p.returncode == 0 and p.stdout.split() == ["1", str(2 * many - 1)], f"found {p}")


TESTS = [wrong_programs_are_refused_by_their_tag, constants_are_computed_as_in_c, programs_compile_to_their_code,
         errors_name_file_and_line, arguments_are_macros, a_script_goes_through_the_preprocessor, options_have_values, both_architectures_compile,
         large_and_strange_programs_end_in_an_error_or_an_image, names_of_probes_take_little_memory,
         threads_that_make_each_other_are_one_process]


def main():
    print(f"1..{len(TESTS)}")
    failed = False
    for number, test in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}", flush=True)
        except AssertionError as e:
            failed = True
            print("\n".join(f"# {line}" for line in str(e).splitlines()))
            print(f"not ok {number} - {test.__name__}", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
