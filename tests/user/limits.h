/* limits.h - limits of a process. */
#pragma once

/* Tries each; is() compares what was found with what was expected. */
void limits_try(void (*is)(const char *what, long found, long expected));
