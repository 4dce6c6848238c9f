/* recorded_input.h - what `dtrace -r` reads. Each function ends the program if it cannot. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The input is read twice: by a name of its file, or, of a pipe, by that of a copy. "-": standard
 * input. */
const char *recorded_input_path(const char *path);
/* Is it a memory dump? */
bool recorded_is_core(const char *path);
/* The times of -x since and until, of a trace from first_ns to last_ns; without them, 0 and
 * UINT64_MAX. */
void recorded_stretch(uint64_t first_ns, uint64_t last_ns, uint64_t *since_ns, uint64_t *until_ns);
