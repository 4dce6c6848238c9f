/*
 * btf.h - reads BTF, the kernel's types as pahole writes them (Linux, Documentation/bpf/btf.rst).
 *
 * btf_open() checks all of it, so that what follows need not: numbers of types and offsets of
 * names are in range, and a chain of typedefs, qualifiers and arrays ends. Type 0 is void.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum btf_kind {
	BTF_VOID,
	BTF_INT,
	BTF_PTR,
	BTF_ARRAY,
	BTF_STRUCT,
	BTF_UNION,
	BTF_ENUM,
	BTF_FWD,
	BTF_TYPEDEF,
	BTF_VOLATILE,
	BTF_CONST,
	BTF_RESTRICT,
	BTF_FUNC,
	BTF_FUNC_PROTO,
	BTF_VAR,
	BTF_DATASEC,
	BTF_FLOAT,
	BTF_DECL_TAG,
	BTF_TYPE_TAG,
	BTF_ENUM64,
	BTF_KINDS,
};

#define BTF_HASHES 1024u

struct btf {
	const uint8_t *types;
	const char *names;
	uint32_t names_size;
	uint32_t count;  /* numbers run from 0 to count - 1 */
	uint32_t *start; /* of type n, in types */
	/* Types of names with the same hash: the first, and the next one after type n. 0: none. */
	uint32_t first[BTF_HASHES], *next;
};

struct btf_type {
	const char *name; /* "": none */
	enum btf_kind kind;
	bool flag;      /* structs: members may be bit-fields; BTF_ENUM: signed; BTF_FWD: a union */
	uint32_t size;  /* BTF_INT, BTF_STRUCT, BTF_UNION, BTF_ENUM, BTF_ENUM64, BTF_FLOAT: bytes */
	uint32_t to;    /* all others: the type meant. BTF_ARRAY: of the elements */
	uint32_t count; /* members, enumerators, parameters; BTF_ARRAY: elements */
	bool is_signed; /* BTF_INT */
};

/* A member of a struct, an enumerator, or a parameter. */
struct btf_part {
	const char *name;
	uint32_t type;   /* members, parameters. 0 at the end of parameters: more may follow */
	uint32_t offset; /* members: in bits */
	uint8_t bits;    /* members: width of a bit-field, else 0 */
	int64_t value;   /* enumerators */
};

/* Reads BTF, which stays in use. NULL: it is good. Otherwise what is wrong, in a static text. */
const char *btf_open(struct btf *btf, const void *data, size_t size);
void btf_close(struct btf *btf);
/* The type of that number, below btf->count. */
struct btf_type btf_get(const struct btf *btf, uint32_t number);
/* Part n of the type, below its count; of a function's prototype, too. */
struct btf_part btf_get_part(const struct btf *btf, uint32_t number, uint32_t n);
/* The number of the type of this kind and name; 0: none. */
uint32_t btf_find(const struct btf *btf, enum btf_kind kind, const char *name);
