/*
 * sdt.h - for cppcheck in place of ktr/sdt.h, whose macros it cannot expand: what they evaluate.
 */
#pragma once

#include "tests/lint/cppcheck/ktr/ktr.h"

#define SDT_PROVIDER_DEFINE(prov)  extern const char sdt_provider_##prov[]
#define SDT_PROVIDER_DECLARE(prov) extern const char sdt_provider_##prov[]

#define SDT_PROBE_DEFINE(prov, mod, func, name, sname) \
	extern struct ktr_site sdt_##prov##_##mod##_##func##_##name
#define SDT_PROBE_DEFINE_TEXT(prov, mod, func, name, ...) \
	extern struct ktr_site sdt_##prov##_##mod##_##func##_##name
#define SDT_PROBE_DEFINE_DATA(prov, mod, func, name, ...) \
	extern struct ktr_site sdt_##prov##_##mod##_##func##_##name
#define SDT_PROBE_DECLARE(prov, mod, func, name) \
	extern struct ktr_site sdt_##prov##_##mod##_##func##_##name

#define SDT_PROBE_ENABLED(prov, mod, func, name) (sdt_##prov##_##mod##_##func##_##name.owners != 0)

void sdt_use(const char *format, ...);

#define SDT_FIRE(prov, mod, func, name, sdt)   sdt
#define SDT_ARGS_DATA0(...)                    sdt_use("", __VA_ARGS__)
#define SDT_ARGS0()                            sdt_use("")
#define SDT_ARGS1(...)                         sdt_use("", __VA_ARGS__)
#define SDT_ARGS2(...)                         sdt_use("", __VA_ARGS__)
#define SDT_ARGS3(...)                         sdt_use("", __VA_ARGS__)
#define SDT_ARGS4(...)                         sdt_use("", __VA_ARGS__)
#define SDT_ARGS5(...)                         sdt_use("", __VA_ARGS__)
#define SDT_ARGS6(...)                         sdt_use("", __VA_ARGS__)
#define SDT_PROBE0(prov, mod, func, name)      sdt_use("")
#define SDT_PROBE1(prov, mod, func, name, ...) sdt_use("", __VA_ARGS__)
#define SDT_PROBE2(prov, mod, func, name, ...) sdt_use("", __VA_ARGS__)
#define SDT_PROBE3(prov, mod, func, name, ...) sdt_use("", __VA_ARGS__)
#define SDT_PROBE4(prov, mod, func, name, ...) sdt_use("", __VA_ARGS__)
#define SDT_BOTH(sdt, ...)            \
	do {                          \
		sdt;                  \
		sdt_use(__VA_ARGS__); \
	} while (0)
#define SDT_CTR0(prov, mod, func, name, sdt, m, ...)      SDT_BOTH(sdt, __VA_ARGS__)
#define SDT_CTR1(prov, mod, func, name, sdt, m, ...)      SDT_BOTH(sdt, __VA_ARGS__)
#define SDT_CTR2(prov, mod, func, name, sdt, m, ...)      SDT_BOTH(sdt, __VA_ARGS__)
#define SDT_CTR3(prov, mod, func, name, sdt, m, ...)      SDT_BOTH(sdt, __VA_ARGS__)
#define SDT_CTR4(prov, mod, func, name, sdt, m, ...)      SDT_BOTH(sdt, __VA_ARGS__)
#define SDT_CTR5(prov, mod, func, name, sdt, m, ...)      SDT_BOTH(sdt, __VA_ARGS__)
#define SDT_CTR6(prov, mod, func, name, sdt, m, ...)      SDT_BOTH(sdt, __VA_ARGS__)
#define SDT_CTR_DATA4(prov, mod, func, name, sdt, m, ...) SDT_BOTH(sdt, __VA_ARGS__)
