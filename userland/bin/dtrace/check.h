/*
 * check.h - what the files that check expressions share.
 */
#pragma once

#include "userland/bin/dtrace/dt.h"

/* Counts expansions from 0. */
void expand_init(void);
/* Puts another node in the place of n, which keeps its place in lists. */
void check_replace(struct node *n, const struct node *by);
/* The inline of that name, with parameters or without; NULL: there is none. */
struct inline_def *expand_find(const char *name, bool is_array);
/* Puts what the inline stands for in the place of n. */
void expand_inline(struct node *n, struct inline_def *def, const struct node *given);
/* xlate <type> (value) */
void expand_xlate(struct node *n);
/* A member of what a translator makes: the translator's expression for it. */
void expand_member(struct node *n);

/* The operator as it is written. */
const char *check_op_text(uint32_t op);
bool check_is_pointer(struct node *n); /* or an array */
bool check_is_scalar(struct node *n);  /* or an array, whose address it is */
struct type *check_promoted(struct type *type);
/* A variable or memory; may it be written? */
bool check_is_place(struct node *n);
bool check_is_writable(struct node *n);
/* ++ and --, before or after a variable. */
void check_step(struct node *n);
/* Any operator with one operand. */
void check_unary(struct node *n);
