/*
 * type.h - what type.c needs of the kernel's types.
 */
#pragma once

#include "userland/bin/dtrace/dt.h"

void type_btf_init(const struct btf *btf);
/* Finds a T_TYPEDEF, T_STRUCT, T_UNION or T_ENUM. NULL: there is none. */
struct type *type_btf_by_name(enum type_kind kind, const char *name);
/* Reads the members of a type that has a number of BTF, which it then has no more. */
void type_btf_read_members(struct type *type);
bool type_btf_enumerator(const char *name, struct type **type, int64_t *value);
