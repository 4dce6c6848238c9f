/* string.h - for lwIP: the kernel's own. */
#pragma once

#include "kernel/lib/string.h"
