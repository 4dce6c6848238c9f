/*
 * output.h - prints records: the row's beginning, and what each action does.
 */
#pragma once

#include "kernel/abi/dif.h"

#define MAX_CPUS 64

/* next: what the CPU recorded after it; NULL: nothing yet. */
void output_record(uint32_t cpu, const struct dif_record *r, const struct dif_record *next);
/* The file of -o or freopen(); "": standard output. */
extern const char *output_path;
