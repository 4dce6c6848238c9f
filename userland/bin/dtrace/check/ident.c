/*
 * ident.c - what names mean: variables, aggregations, functions, and those that D has built in.
 */
#include <string.h>

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/check/check.h"
#include "userland/bin/dtrace/record.h"

struct variable *dt_variables;
struct aggregation *dt_aggregations;

static const struct {
	const char *name, *type;
	uint8_t code;
} builtins[] = {
    {"timestamp", "uint64_t", DIF_B_TIMESTAMP},
    {"vtimestamp", "uint64_t", DIF_B_VTIMESTAMP},
    {"walltimestamp", "int64_t", DIF_B_WALLTIMESTAMP},
    {"cpu", "int", DIF_B_CPU},
    {"pid", "pid_t", DIF_B_PID},
    {"ppid", "pid_t", DIF_B_PPID},
    {"tid", "id_t", DIF_B_TID},
    {"uid", "uid_t", DIF_B_UID},
    {"gid", "gid_t", DIF_B_GID},
    {"execname", "string", DIF_B_EXECNAME},
    {"probeprov", "string", DIF_B_PROBEPROV},
    {"probemod", "string", DIF_B_PROBEMOD},
    {"probefunc", "string", DIF_B_PROBEFUNC},
    {"probename", "string", DIF_B_PROBENAME},
    {"id", "uint_t", DIF_B_ID},
    {"epid", "uint_t", DIF_B_EPID},
    {"errno", "int", DIF_B_ERRNO},
    {"caller", "uintptr_t", DIF_B_CALLER},
    {"ucaller", "uint64_t", DIF_B_UCALLER},
    {"stackdepth", "uint32_t", DIF_B_STACKDEPTH},
    {"ustackdepth", "uint32_t", DIF_B_USTACKDEPTH},
    {"ipl", "uint_t", DIF_B_IPL},
    {"curthread", "struct thread *", DIF_B_CURTHREAD},
    {"curproc", "struct proc *", DIF_B_CURPROC},
};

/* A row, and those of actions and aggregating functions. */
#define ROW(sort, text, number, letters, ...)                                                    \
	{                                                                                        \
		.kind = (sort), .name = (text), .code = (number), .args = (letters), __VA_ARGS__ \
	}
#define SUB(text, number, letters, type, ...) \
	ROW(F_SUB, text, DIF_SUB_##number, letters, .result = (type), __VA_ARGS__)
#define ACT(text, number, letters, ...)   ROW(F_ACTION, text, ACT_##number, letters, __VA_ARGS__)
#define INSN(text, number, letters, bits) ROW(F_INSN, text, DIF_##number, letters, .does = (bits))
#define SYMBOL(text, how) \
	ACT(text, TRACE, "p", .result = "uintptr_t", .show = SHOW_##how, .does = DO_RECORD)
#define AGG(text, number, letters, words) \
	ROW(F_AGG, text, DIF_##number, letters, .does = DO_AGGREGATE, .tags = "D_AGG_SCALAR" words)

/* clang-format off */
static const struct function functions[] = {
    SUB("alloca", ALLOCA, "i", "void *"),
    SUB("basename", BASENAME, "s", "string"),
    SUB("bcopy", BCOPY, "mpi", "void"),
    SUB("cleanpath", CLEANPATH, "s", "string"),
    SUB("copyin", COPYIN, "pi", "void *"),
    SUB("copyinstr", COPYINSTR, "p?i", "string"),
    SUB("copyinto", COPYINTO, "pia", "void"),
    SUB("copyout", COPYOUT, "mpi", "void", .does = DO_DESTROY),
    SUB("copyoutstr", COPYOUTSTR, "spi", "void", .does = DO_DESTROY),
    SUB("dirname", DIRNAME, "s", "string"),
    SUB("htonl", HTONL, "i", "uint32_t"),
    SUB("htonll", HTONLL, "i", "uint64_t"),
    SUB("htons", HTONS, "i", "uint16_t"),
    SUB("index", INDEX, "ss?i", "int"),
    SUB("inet_ntoa", INET_NTOA, "p", "string"),
    SUB("inet_ntoa6", INET_NTOA6, "p", "string"),
    SUB("json", JSON, "ss", "string"),
    SUB("lltostr", LLTOSTR, "i?i", "string", .missing = 10),
    SUB("mutex_owned", MUTEX_OWNED, "p", "int"),
    SUB("mutex_owner", MUTEX_OWNER, "p", "struct thread *"),
    SUB("ntohl", HTONL, "i", "uint32_t"),
    SUB("ntohll", HTONLL, "i", "uint64_t"),
    SUB("ntohs", HTONS, "i", "uint16_t"),
    SUB("progenyof", PROGENYOF, "i", "int"),
    SUB("rand", RAND, "", "int"),
    SUB("rindex", RINDEX, "ss?i", "int", .missing = INT64_MAX),
    SUB("speculation", SPECULATION, "", "int"),
    SUB("strchr", STRCHR, "si", "string"),
    SUB("strjoin", STRJOIN, "ss", "string"),
    SUB("strlen", STRLEN, "s", "size_t"),
    SUB("strrchr", STRRCHR, "si", "string"),
    SUB("strstr", STRSTR, "ss", "string"),
    SUB("strtok", STRTOK, "ss", "string"),
    SUB("strtoll", STRTOLL, "s?i", "int64_t", .missing = 10),
    SUB("substr", SUBSTR, "si?i", "string", .missing = INT64_MAX),
    SUB("tolower", TOLOWER, "s", "string"),
    SUB("toupper", TOUPPER, "s", "string"),

    INSN("breakpoint", BREAK, "", DO_DESTROY),
    INSN("chill", CHILL, "i", DO_DESTROY),
    INSN("commit", COMMIT, "i", DO_COMMIT),
    INSN("discard", DISCARD, "i", DO_DISCARD),
    INSN("exit", EXIT, "i", DO_EXIT | DO_RECORD),
    INSN("panic", PANIC, "", DO_DESTROY),
    INSN("raise", RAISE, "i", DO_DESTROY),
    INSN("speculate", SPECULATE, "i", DO_SPECULATE),
    INSN("stop", STOP, "", DO_DESTROY),

    ACT("clear", CLEAR, "@", .tags = "D_CLEAR_AGGARG", .does = DO_RECORD),
    ACT("denormalize", DENORMALIZE, "@", .tags = "D_NORMALIZE_AGGARG", .does = DO_RECORD),
    ACT(" error", ERROR, "iiiii", .does = DO_RECORD),
    ACT("freopen", FREOPEN, "f*", .tags = "D_PRINTF_ARG_FMT", .does = DO_RECORD),
    ACT("ftruncate", FTRUNCATE, "", .does = DO_RECORD),
    ACT("jstack", USTACK, "?cz", .tags = "D_USTACK_FRAMES D_USTACK_STRSIZE", .does = DO_RECORD,
	.result = "ustack"),
    ACT("normalize", NORMALIZE, "@i", .tags = "D_NORMALIZE_AGGARG", .does = DO_RECORD),
    ACT("print", PRINT, "x", .tags = "D_PRINT_VOID", .does = DO_RECORD),
    ACT("printa", PRINTA, "*", .does = DO_RECORD | DO_PRINTA),
    ACT("printf", PRINTF, "f*", .tags = "D_PRINTF_ARG_FMT", .does = DO_RECORD),
    ACT("setopt", SETOPT, "s?s", .does = DO_RECORD),
    ACT("stack", STACK, "?c", .tags = "D_STACK_SIZE", .does = DO_RECORD, .result = "stack"),
    ACT("system", SYSTEM, "f*", .tags = "D_PRINTF_ARG_FMT", .does = DO_RECORD | DO_DESTROY),
    ACT("trace", TRACE, "x", .tags = "D_TRACE_VOID", .does = DO_RECORD),
    ACT("tracemem", TRACEMEM, "pl?i", .tags = "D_TRACEMEM_ADDR D_TRACEMEM_SIZE", .does = DO_RECORD),
    ACT("trunc", TRUNC, "@?i", .tags = "D_TRUNC_AGGARG", .does = DO_RECORD),
    ACT("ustack", USTACK, "?cz", .tags = "D_USTACK_FRAMES D_USTACK_STRSIZE", .does = DO_RECORD,
	.result = "ustack"),

    SYMBOL("func", FUNC),
    SYMBOL("mod", MOD),
    SYMBOL("sym", SYM),
    SYMBOL("uaddr", UADDR),
    SYMBOL("ufunc", UFUNC),
    SYMBOL("umod", UMOD),
    SYMBOL("usym", USYM),

    AGG("avg", AVG, "i", ""),
    AGG("count", COUNT, "", ""),
    AGG("llquantize", LLQUANTIZE, "illll?i",
	" D_LLQUANT_FACTORTYPE D_LLQUANT_LMAGTYPE D_LLQUANT_HMAGTYPE D_LLQUANT_STEPTYPE"),
    AGG("lquantize", LQUANTIZE, "ill?li", " D_LQUANT_BASETYPE D_LQUANT_LIMTYPE D_LQUANT_STEPTYPE"),
    AGG("max", MAX, "i", ""),
    AGG("min", MIN, "i", ""),
    AGG("quantize", QUANTIZE, "i?i", ""),
    AGG("stddev", STDDEV, "i", ""),
    AGG("sum", SUM, "i", ""),
};
/* clang-format on */

/* What a recorded trace does not tell. */
static const char unrecorded[] =
    " vtimestamp walltimestamp ppid uid gid caller ucaller stackdepth ustackdepth ipl curthread "
    "curproc uregs copyin copyinstr copyinto copyout copyoutstr mutex_owned mutex_owner progenyof "
    "breakpoint chill panic raise stop stack ustack jstack func mod sym uaddr ufunc umod usym ";
bool dt_recorded;
/* What no kernel has that is not Kestrel (kernel/dtrace/dif/default.c). */
static const char unforeign[] =
    " vtimestamp walltimestamp ppid uid gid ucaller ustackdepth ipl curthread curproc uregs copyout "
    "copyoutstr mutex_owned mutex_owner progenyof breakpoint chill panic raise stop ustack jstack uaddr "
    "ufunc umod usym ";
bool dt_foreign;

void
ident_check_recorded(struct place at, const char *name)
{
	if (dt_foreign && strstr(unforeign, dt_format(" %s ", name)) != NULL)
		dt_error(at, "D_TARGET",
			 "%s: Kestrel has it, another kernel has not: expected what --target knows",
			 name);
	if (dt_recorded && strstr(unrecorded, dt_format(" %s ", name)) != NULL)
		dt_error(at, "D_RECORDED",
			 "%s is not in a recorded trace: expected what its events tell", name);
}

void
ident_init(void)
{
	dt_variables = NULL;
	dt_aggregations = NULL;
}

struct variable *
ident_add(enum scope scope, const char *name, struct type *type)
{
	struct variable *v = dt_alloc(sizeof(*v)), **last = &dt_variables;

	v->scope = scope;
	v->name = name;
	v->type = type;
	while (*last != NULL)
		last = &(*last)->next;
	*last = v;
	return v;
}

/* Names that D has had since 1.N, by N: before, they are the program's. */
static const char *const since[] = {
    [1] = " freopen index rindex strchr strrchr strstr strtok substr ",
    [2] = " func mod setopt sym uaddr ucaller ufunc umod ustackdepth usym ",
    [3] = " htonl htonll htons ntohl ntohll ntohs ",
    [5] = " inet_ntoa inet_ntoa6 ",
    [6] = " stddev ",
    [7] = " llquantize ",
    [8] = " tolower toupper ",
    [9] = " print ",
    [11] = " json strtoll ",
};
unsigned dt_version;

static bool
is_later(const char *name)
{
	for (size_t n = dt_version; ++n < sizeof(since) / sizeof(since[0]);)
		if (since[n] != NULL && strstr(since[n], dt_format(" %s ", name)) != NULL)
			return true;
	return false;
}

/* A variable of D itself, which is added when it is first named. */
static struct variable *
find_builtin(const char *name)
{
	struct variable *v = NULL;

	if (strncmp(name, "arg", 3) == 0 && name[3] >= '0' && name[3] <= '9' && name[4] == '\0') {
		v = ident_add(SCOPE_GLOBAL, name, type_by_name("int64_t"));
		v->arg = (uint8_t)(1 + name[3] - '0');
	}
	for (size_t i = 0; v == NULL && i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (strcmp(builtins[i].name, name) == 0 && !is_later(name)) {
			struct type *type = type_by_text(builtins[i].type);

			v = ident_add(SCOPE_GLOBAL, name, type);
			v->code = builtins[i].code;
		}
	if (v != NULL)
		v->builtin = true;
	return v;
}

struct variable *
ident_find(enum scope scope, const char *name)
{
	for (struct variable *v = dt_variables; v != NULL; v = v->next)
		if (v->scope == scope && strcmp(v->name, name) == 0)
			return v;
	return scope == SCOPE_GLOBAL ? find_builtin(name) : NULL;
}

struct aggregation *
ident_aggregation(const char *name, struct place at)
{
	struct aggregation **last = &dt_aggregations;
	uint32_t number = 0;

	for (; *last != NULL; last = &(*last)->next, number++)
		if (strcmp((*last)->name, name) == 0)
			return *last;
	*last = dt_alloc(sizeof(**last));
	(*last)->name = name;
	(*last)->number = number;
	(*last)->at = at;
	return *last;
}

const struct function *
ident_function(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].name, name) == 0)
			return is_later(name) ? NULL : &functions[i];
	return NULL;
}

static const char *
name_of_function(size_t i)
{
	if (i >= sizeof(functions) / sizeof(functions[0]))
		return NULL;
	return is_later(functions[i].name) ? "" : functions[i].name;
}

const char *
ident_suggest_function(const char *name)
{
	return suggest_name(name, name_of_function);
}

/* Names D's own variables, then those of the program that have a type. */
static const char *
name_of_global(size_t i)
{
	const size_t own = sizeof(builtins) / sizeof(builtins[0]);
	const struct variable *v = dt_variables;

	if (i < own)
		return builtins[i].name;
	for (i -= own; v != NULL; v = v->next)
		if (v->scope == SCOPE_GLOBAL && v->type != NULL && i-- == 0)
			return v->name;
	return NULL;
}

const char *
ident_suggest_variable(const char *name)
{
	return suggest_name(name, name_of_global);
}

const struct function *
ident_action(const struct node *n)
{
	const struct function *f = n->kind == N_CALL ? n->function : NULL;

	return f != NULL && (f->kind == F_ACTION || f->kind == F_INSN) ? f : NULL;
}

const char *
ident_text(const struct variable *v)
{
	static const char *const scopes[] = {"", "self->", "this->"};

	return dt_format("%s%s", scopes[v->scope], v->name);
}
