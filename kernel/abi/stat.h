/* stat.h - struct stat, in each architecture's Linux layout. */
#pragma once

#include <abi_md.h>
