/* strings.h - where POSIX keeps strcasecmp. */
#pragma once

#include <string.h>
