/* ctf.h - what ctf.c and ctf_head.c share. Host only. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "ktr/tools/export/export.h"

/** Writes the metadata up to the first event class. Write errors set f's error flag. */
void ctf_put_head(FILE *f, const struct ktr_decode_header *h);
/** An event class, whose events have this id. */
void ctf_put_class(FILE *f, size_t id, const struct export_class *c);
