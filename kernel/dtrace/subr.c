/* subr.c - the subroutines that are not over strings: memory, user memory, network, the kernel. */
#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"

const uint8_t dif_sub_args[DIF_SUB_COUNT] = {
#define NARGS(name, nargs) [DIF_SUB_##name] = (nargs),
    DIF_SUBS(NARGS)
#undef NARGS
};

static bool
user_fault(struct dif_run *r, uint64_t addr)
{
	return dif_fail(r, DIF_FAULT_BADADDR, addr);
}

static bool
subr_copyin(struct dif_run *r, uint64_t addr, uint64_t size, uint64_t *v)
{
	void *to = dif_scratch(r, size);

	*v = (uintptr_t)to;
	if (to == NULL)
		return false;
	return dif_port_user_load(to, addr, size) || user_fault(r, addr);
}

/* Copies piece by piece, none of which goes beyond a page: the string may end before a page that
 * is absent. */
static bool
subr_copyinstr(struct dif_run *r, uint64_t addr, uint64_t size, uint64_t *v)
{
	uint32_t strsize = r->d->h.options.strsize;
	char *to;
	uint64_t n = 0;

	if (size == 0 || size > strsize)
		size = strsize;
	to = dif_scratch(r, size);
	*v = (uintptr_t)to;
	if (to == NULL)
		return false;
	while (n < size - 1) {
		uint64_t part = 64 - (addr + n) % 64;

		part = part < size - 1 - n ? part : size - 1 - n;
		if (!dif_port_user_load(to + n, addr + n, part))
			return user_fault(r, addr + n);
		if (strnlen(to + n, part) < part)
			break;
		n += part;
	}
	if (n >= size - 1)
		to[size - 1] = '\0';
	n = strlen(to) + 1;
	r->top = (uint8_t *)to + ((n + 7) & ~7ul); /* what is over is free again */
	return true;
}

static bool
subr_copyinto(struct dif_run *r, uint64_t addr, uint64_t size, uint64_t to)
{
	if (!dif_writable(r, to, size))
		return dif_fail(r, DIF_FAULT_BADADDR, to);
	return dif_port_user_load((void *)to, addr, size) || user_fault(r, addr);
}

static bool
copy_bytes(struct dif_run *r, uint64_t from, uint64_t to, uint64_t size)
{
	if (!dif_writable(r, to, size))
		return dif_fail(r, DIF_FAULT_BADADDR, to);
	return dif_copy(r, (void *)to, from, size);
}

static bool
subr_copyout(struct dif_run *r, uint64_t from, uint64_t addr, uint64_t size)
{
	if (size > DIF_MAX_RECORD)
		return dif_fail(r, DIF_FAULT_ILLOP, size);
	while (size > 0) {
		uint64_t part = size < DIF_MAX_STRSIZE ? size : DIF_MAX_STRSIZE;

		if (!dif_copy(r, r->c->text[0], from, part))
			return false;
		if (!dif_port_user_store(addr, r->c->text[0], part))
			return user_fault(r, addr);
		from += part;
		addr += part;
		size -= part;
	}
	return true;
}

static bool
subr_copyoutstr(struct dif_run *r, uint64_t from, uint64_t addr, uint64_t most)
{
	uint32_t strsize = r->d->h.options.strsize;
	long n = 0;

	if (most == 0)
		return true;
	n = dif_copy_str(r, r->c->text[0], from, most < strsize ? most + 1 : strsize);
	if (n < 0)
		return false;
	/* Like the original, without a NUL if there is no room for it. */
	most = most < (uint64_t)n + 1 ? most : (uint64_t)n + 1;
	return dif_port_user_store(addr, r->c->text[0], most) || user_fault(r, addr);
}

static char *
dif_put_number(char *to, unsigned v, unsigned base)
{
	if (v >= base)
		to = dif_put_number(to, v / base, base);
	*to++ = "0123456789abcdef"[v % base];
	return to;
}

static char *
put_ipv4(char *to, const uint8_t *a)
{
	for (unsigned i = 0; i < 4; i++) {
		to = dif_put_number(to, a[i], 10);
		*to++ = '.';
	}
	to[-1] = '\0';
	return to - 1;
}

/* As RFC 5952 has it: the longest run of at least two zero groups is "::". */
static void
put_ipv6(char *to, const uint8_t *a)
{
	unsigned group[8], from = 8, longest = 1;

	for (unsigned i = 0; i < 8; i++)
		group[i] = (unsigned)a[2 * i] << 8 | a[2 * i + 1];
	for (unsigned i = 0, n = 0; i < 8; i++) {
		n = group[i] == 0 ? n + 1 : 0;
		if (n > longest) {
			longest = n;
			from = i + 1 - n;
		}
	}
	for (unsigned i = 0; i < 8;) {
		if (i == from) {
			*to++ = ':';
			i += longest;
			if (i == 8)
				*to++ = ':';
			continue;
		}
		if (i > 0)
			*to++ = ':';
		if (i == 6 && from == 0 && (longest == 6 || (longest == 5 && group[5] == 0xffff))) {
			put_ipv4(to, a + 12);
			return;
		}
		to = dif_put_number(to, group[i++], 16);
	}
	*to = '\0';
}

static bool
inet_text(struct dif_run *r, uint64_t addr, bool six, uint64_t *v)
{
	uint8_t a[16];
	char *to = dif_scratch(r, 48);

	*v = (uintptr_t)to;
	if (to == NULL || !dif_copy(r, a, addr, six ? 16 : 4))
		return false;
	if (six)
		put_ipv6(to, a);
	else
		put_ipv4(to, a);
	return true;
}

static bool
subr_mutex_owner(struct dif_run *r, uint64_t addr, bool owned, uint64_t *v)
{
	if (!dif_port_mutex_owner(addr, v))
		return dif_fail(r, DIF_FAULT_BADADDR, addr);
	if (owned)
		*v = *v != 0 && *v == dif_port_builtin(r->at, r->f, DIF_B_CURTHREAD);
	return true;
}

bool
dif_subroutine(struct dif_run *r, unsigned sub, const uint64_t *args, uint64_t *v)
{
	switch (sub) {
	case DIF_SUB_RAND:
		*v = dif_port_rand();
		return true;
	case DIF_SUB_COPYIN:
		return subr_copyin(r, args[0], args[1], v);
	case DIF_SUB_COPYINSTR:
		return subr_copyinstr(r, args[0], args[1], v);
	case DIF_SUB_COPYINTO:
		return subr_copyinto(r, args[0], args[1], args[2]);
	case DIF_SUB_COPYOUT:
		return subr_copyout(r, args[0], args[1], args[2]);
	case DIF_SUB_COPYOUTSTR:
		return subr_copyoutstr(r, args[0], args[1], args[2]);
	case DIF_SUB_ALLOCA:
		*v = (uintptr_t)dif_scratch(r, args[0]);
		return *v != 0;
	case DIF_SUB_BCOPY:
		return copy_bytes(r, args[0], args[1], args[2]);
	case DIF_SUB_MUTEX_OWNED:
		return subr_mutex_owner(r, args[0], true, v);
	case DIF_SUB_MUTEX_OWNER:
		return subr_mutex_owner(r, args[0], false, v);
	case DIF_SUB_PROGENYOF:
		*v = dif_port_progenyof(args[0]);
		return true;
	case DIF_SUB_HTONS:
		*v = __builtin_bswap16((uint16_t)args[0]);
		return true;
	case DIF_SUB_HTONL:
		*v = __builtin_bswap32((uint32_t)args[0]);
		return true;
	case DIF_SUB_HTONLL:
		*v = __builtin_bswap64(args[0]);
		return true;
	case DIF_SUB_INET_NTOA:
		return inet_text(r, args[0], false, v);
	case DIF_SUB_INET_NTOA6:
		return inet_text(r, args[0], true, v);
	case DIF_SUB_SPECULATION:
		*v = dif_speculation(r);
		return true;
	default:
		return dif_string_subroutine(r, sub, args, v);
	}
}
