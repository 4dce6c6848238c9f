/*
 * ktrace_file.h - reads a file of ktrace (kernel/abi/ktrace.h), and tells its records as a decoder
 * tells events. So all reports and formats apply to them.
 */
#pragma once

#include "ktr/decode.h"

/** Are so many first bytes enough to tell the kind of file? A stream begins with a zero. */
bool ktrace_decided(const uint8_t *bytes, size_t n);
/** Are these the first bytes of a file of ktrace? */
bool ktrace_is(const uint8_t *bytes, size_t n);

/**
 * Tells all records in the order of their times, and what is wrong with the file. Seconds count
 * from the first record. bytes: a file for which ktrace_is(). What the functions of ops get is
 * valid as long as the bytes, or for ever. One thread. 0, or -ENOMEM.
 */
int ktrace_read(const struct ktr_decoder_ops *ops, void *arg, const uint8_t *bytes, size_t n);
