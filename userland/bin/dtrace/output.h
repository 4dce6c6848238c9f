/*
 * output.h - prints records: the row's beginning, and what each action does.
 */
#pragma once

#include "kernel/abi/dif.h"

/* The probe of this id. */
const struct dif_probe *output_probe(uint32_t id);
/* next: what the CPU recorded after it; NULL: nothing yet. */
void output_record(uint32_t cpu, const struct dif_record *r, const struct dif_record *next);
/* The file of -o or freopen(); "": standard output. */
extern const char *output_path;
