/*
 * ktr.h - replaces ktr/ktr.h when cppcheck reads the kernel: its preprocessor fails on the macros'
 * nested parentheses, and its parser on asm goto. Without them CTRn(…) is an ordinary call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ktr_port.h>

#include "ktr/class.h"
#include "ktr/site.h"
