/* recorded_input.h - what `dtrace -r` reads. Each function ends the program if it cannot. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Returns a name by which the input can be opened twice: that of the file, or, if the input is a
 * pipe, that of a copy. path "-" means the standard input. */
const char *recorded_input_path(const char *path);
/* Is it a memory dump? */
bool recorded_is_core(const char *path);
/* Finds the times of -x since and until, for a trace from first_ns to last_ns. Without these
 * options they are 0 and UINT64_MAX. */
void recorded_stretch(uint64_t first_ns, uint64_t last_ns, uint64_t *since_ns, uint64_t *until_ns);
