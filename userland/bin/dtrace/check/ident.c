/*
 * ident.c - what names mean: variables, aggregations, functions, and those that D has built in.
 */
#include <string.h>

#include "kernel/abi/dif.h"
#include "userland/bin/dtrace/check/check.h"

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

#define SUB(name, code, args, result, missing)                            \
	{                                                                 \
		name, F_SUB, DIF_SUB_##code, args, result, false, missing \
	}
#define ACT(name, code, args)                                    \
	{                                                        \
		name, F_ACTION, ACT_##code, args, NULL, false, 0 \
	}
#define WILD(name, code, args)                                  \
	{                                                       \
		name, F_ACTION, ACT_##code, args, NULL, true, 0 \
	}
#define SYMBOL(name)                                                   \
	{                                                              \
		name, F_ACTION, ACT_SYMBOL, "p", "uintptr_t", false, 0 \
	}
#define AGG(name, code, args)                                 \
	{                                                     \
		name, F_AGG, DIF_##code, args, NULL, false, 0 \
	}

/* clang-format off */
static const struct function functions[] = {
    SUB("alloca", ALLOCA, "i", "void *", 0),
    SUB("basename", BASENAME, "s", "string", 0),
    SUB("bcopy", BCOPY, "ppi", "void", 0),
    SUB("cleanpath", CLEANPATH, "s", "string", 0),
    SUB("copyin", COPYIN, "pi", "void *", 0),
    SUB("copyinstr", COPYINSTR, "p?i", "string", 0),
    SUB("copyinto", COPYINTO, "pip", "void", 0),
    {"copyout", F_SUB, DIF_SUB_COPYOUT, "ppi", "void", true, 0},
    {"copyoutstr", F_SUB, DIF_SUB_COPYOUTSTR, "spi", "void", true, 0},
    SUB("dirname", DIRNAME, "s", "string", 0),
    SUB("htonl", HTONL, "i", "uint32_t", 0),
    SUB("htonll", HTONLL, "i", "uint64_t", 0),
    SUB("htons", HTONS, "i", "uint16_t", 0),
    SUB("index", INDEX, "ss?i", "int", 0),
    SUB("inet_ntoa", INET_NTOA, "p", "string", 0),
    SUB("inet_ntoa6", INET_NTOA6, "p", "string", 0),
    SUB("json", JSON, "ss", "string", 0),
    SUB("lltostr", LLTOSTR, "i?i", "string", 10),
    SUB("mutex_owned", MUTEX_OWNED, "p", "int", 0),
    SUB("mutex_owner", MUTEX_OWNER, "p", "struct thread *", 0),
    SUB("ntohl", HTONL, "i", "uint32_t", 0),
    SUB("ntohll", HTONLL, "i", "uint64_t", 0),
    SUB("ntohs", HTONS, "i", "uint16_t", 0),
    SUB("progenyof", PROGENYOF, "i", "int", 0),
    SUB("rand", RAND, "", "int", 0),
    SUB("rindex", RINDEX, "ss?i", "int", INT64_MAX),
    SUB("speculation", SPECULATION, "", "int", 0),
    SUB("strchr", STRCHR, "si", "string", 0),
    SUB("strjoin", STRJOIN, "ss", "string", 0),
    SUB("strlen", STRLEN, "s", "size_t", 0),
    SUB("strrchr", STRRCHR, "si", "string", 0),
    SUB("strstr", STRSTR, "ss", "string", 0),
    SUB("strtok", STRTOK, "ns", "string", 0),
    SUB("strtoll", STRTOLL, "s?i", "int64_t", 10),
    SUB("substr", SUBSTR, "si?i", "string", INT64_MAX),
    SUB("tolower", TOLOWER, "s", "string", 0),
    SUB("toupper", TOUPPER, "s", "string", 0),

    WILD("breakpoint", BREAKPOINT, ""),
    WILD("chill", CHILL, "i"),
    ACT("clear", CLEAR, "@"),
    ACT("commit", COMMIT, "i"),
    ACT("denormalize", DENORMALIZE, "@"),
    ACT("discard", DISCARD, "i"),
    ACT(" error", ERROR, "iiiii"),
    ACT("exit", EXIT, "i"),
    ACT("freopen", FREOPEN, "f*"),
    ACT("ftruncate", FTRUNCATE, ""),
    SYMBOL("func"),
    SYMBOL("mod"),
    ACT("normalize", NORMALIZE, "@i"),
    WILD("panic", PANIC, ""),
    ACT("print", PRINT, "x"),
    ACT("printa", PRINTA, "*"),
    ACT("printf", PRINTF, "f*"),
    WILD("raise", RAISE, "i"),
    ACT("setopt", SETOPT, "s?s"),
    ACT("speculate", SPECULATE, "i"),
    {"stack", F_ACTION, ACT_STACK, "?l", "stack", false, 0},
    WILD("stop", STOP, ""),
    SYMBOL("sym"),
    WILD("system", SYSTEM, "f*"),
    ACT("trace", TRACE, "x"),
    ACT("tracemem", TRACEMEM, "pl?i"),
    ACT("trunc", TRUNC, "@?i"),
    SYMBOL("uaddr"),
    SYMBOL("ufunc"),
    SYMBOL("umod"),
    {"ustack", F_ACTION, ACT_USTACK, "?ll", "stack", false, 0},
    {"jstack", F_ACTION, ACT_USTACK, "?ll", "stack", false, 0},
    SYMBOL("usym"),

    AGG("avg", AVG, "i"),
    AGG("count", COUNT, ""),
    AGG("llquantize", LLQUANTIZE, "illll?i"),
    AGG("lquantize", LQUANTIZE, "ill?li"),
    AGG("max", MAX, "i"),
    AGG("min", MIN, "i"),
    AGG("quantize", QUANTIZE, "i?i"),
    AGG("stddev", STDDEV, "i"),
    AGG("sum", SUM, "i"),
};
/* clang-format on */

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

/* A variable of D itself, which is added when it is first named. */
static struct variable *
find_builtin(const char *name)
{
	struct variable *v = NULL;

	if (strncmp(name, "arg", 3) == 0 && name[3] >= '0' && name[3] <= '9' && name[4] == '\0') {
		v = ident_add(SCOPE_GLOBAL, name, type_by_name("int64_t"));
		v->arg = (uint8_t)(1 + name[3] - '0');
	}
	for (size_t i = 0; v == NULL && i < sizeof(builtins) / sizeof(builtins[0]); i++) {
		if (strcmp(builtins[i].name, name) == 0) {
			struct type *type = type_by_text(builtins[i].type);

			v = ident_add(SCOPE_GLOBAL, name, type);
			v->code = builtins[i].code;
		}
	}
	if (v != NULL)
		v->builtin = true;
	return v;
}

struct variable *
ident_find(enum scope scope, const char *name)
{
	for (struct variable *v = dt_variables; v != NULL; v = v->next) {
		if (v->scope == scope && strcmp(v->name, name) == 0)
			return v;
	}
	return scope == SCOPE_GLOBAL ? find_builtin(name) : NULL;
}

struct aggregation *
ident_aggregation(const char *name, struct place at)
{
	struct aggregation **last = &dt_aggregations;
	uint32_t number = 0;

	for (; *last != NULL; last = &(*last)->next, number++) {
		if (strcmp((*last)->name, name) == 0)
			return *last;
	}
	*last = dt_alloc(sizeof(**last));
	(*last)->name = name;
	(*last)->number = number;
	(*last)->at = at;
	return *last;
}

const struct function *
ident_function(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	}
	return NULL;
}

const char *
ident_text(const struct variable *v)
{
	static const char *const scopes[] = {"", "self->", "this->"};

	return dt_format("%s%s", scopes[v->scope], v->name);
}
