/* port.c - the program engine's port to the host (host.h). */
#include <stdlib.h>
#include <string.h>

#include "kernel/dtrace/engine.h"
#include "kernel/dtrace/host/host.h"

_Thread_local struct dif_host dif_host = {.alloc_left = -1};
struct dif_port_range dif_port_direct[DIF_PORT_DIRECT], dif_port_quick_range;

void *
dif_port_alloc(size_t size)
{
	size = (size + 63) & ~63ul;
	if (dif_host.alloc_left == 0 ||
	    size > (dif_host.alloc_most != 0 ? dif_host.alloc_most : 64ul << 20))
		return NULL;
	if (dif_host.alloc_left > 0)
		dif_host.alloc_left--;
	void *p = aligned_alloc(64, size);
	return p != NULL ? memset(p, 0, size) : NULL;
}

void
dif_port_free_all(void *const *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		free(p[i]);
}

/* Where these bytes of the area are; NULL: not within it. */
static uint8_t *
find(const struct dif_host_area *a, uint64_t addr, size_t n)
{
	uint64_t off = addr - a->address;

	return off <= a->size && n <= a->size - off ? a->bytes + off : NULL;
}

bool
dif_port_load(void *dst, uint64_t addr, size_t n)
{
	const uint8_t *from = find(&dif_host.kernel, addr, n);

	dif_host.loads++;
	if (from != NULL)
		memcpy(dst, from, n);
	return from != NULL;
}

bool
dif_port_user_load(void *dst, uint64_t addr, size_t n)
{
	const uint8_t *from = find(&dif_host.user, addr, n);

	if (from != NULL)
		memcpy(dst, from, n);
	return from != NULL;
}

bool
dif_port_user_store(uint64_t addr, const void *src, size_t n)
{
	uint8_t *to = find(&dif_host.user, addr, n);

	if (to != NULL)
		memcpy(to, src, n);
	return to != NULL;
}

uint64_t
dif_port_secret(void)
{
	return 0x9e3779b97f4a7c15 * ++dif_host.secrets;
}

uint64_t
dif_port_thread(void)
{
	return dif_host.thread;
}

uint64_t
dif_port_builtin(const struct dif_at *at, const struct ktr_firing *f, enum dif_builtin what)
{
	switch (what) {
	case DIF_B_TIMESTAMP:
		return dif_host.time += dif_host.step;
	case DIF_B_TID:
		return (uint32_t)dif_host.thread;
	case DIF_B_CURTHREAD:
		return dif_host.curthread;
	case DIF_B_PID:
		return dif_host.pid;
	default:
		return dif_host.builtin[what];
	}
}

uint64_t
dif_port_argument(const struct ktr_firing *f, unsigned n)
{
	return 0;
}

bool
dif_port_uregister(uint64_t n, uint64_t *v)
{
	*v = n * 10;
	return n < 32;
}

unsigned
dif_port_stack(const struct ktr_firing *f, uint64_t *pcs, unsigned max)
{
	unsigned n = dif_host.frames < max ? dif_host.frames : max;

	memcpy(pcs, dif_host.stack, n * sizeof(*pcs));
	return n;
}

unsigned
dif_port_ustack(const struct ktr_firing *f, uint64_t *pid, uint64_t *pcs, unsigned max)
{
	unsigned n = dif_host.uframes < max ? dif_host.uframes : max;

	*pid = dif_host.pid;
	memcpy(pcs, dif_host.ustack, n * sizeof(*pcs));
	return n;
}

bool
dif_port_mutex_owner(uint64_t addr, uint64_t *thread)
{
	*thread = dif_host.owner;
	return addr == dif_host.mutex;
}

bool
dif_port_progenyof(uint64_t pid)
{
	return pid == dif_host.pid || pid == 1;
}

uint64_t
dif_port_rand(void)
{
	/* Knuth's linear congruential generator, of which the upper bits are the good ones. */
	if (dif_host.random_changes)
		dif_host.random = dif_host.random * 6364136223846793005u + 1442695040888963407u;
	return dif_host.random_changes ? dif_host.random ^ dif_host.random >> 32 : dif_host.random;
}

bool
dif_port_act(const struct dif_at *at, enum dif_op op, uint64_t a)
{
	dif_host.acts++;
	dif_host.act = op;
	dif_host.act_arg = a;
	return op != DIF_CHILL || a <= dif_host.chill_max;
}

void
dif_port_fault(const struct dif_at *at, struct dif_cpu *c, const struct ktr_firing *f)
{
	if (dif_host.fault != NULL)
		dif_host.fault(at, c, f);
}

uint64_t
dif_port_time(void)
{
	return dif_host.time;
}

uint64_t
dif_port_quick(const struct dif_at *at, enum dif_builtin what)
{
	return dif_port_builtin(at, NULL, what);
}

/* Here a text is a string in the kernel's memory. */
bool
dif_port_text(const struct ktr_firing *f, unsigned n, char *to, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!dif_port_load(to + i, f->args[n] + i, 1))
			return false;
		if (to[i] == '\0')
			return true;
	}
	to[size - 1] = '\0';
	return true;
}

void
dif_port_upcall(const struct dif_at *at, const struct ktr_firing *f, int32_t imm,
		const uint64_t *args)
{
	(void)at, (void)f;
	dif_host.upcalls++;
	dif_host.upcall = imm;
	dif_host.upcall_arg = *args;
}

void
dif_port_log(const struct ktr_firing *f)
{
	dif_host.logged++;
	if (dif_host.log != NULL)
		dif_host.log();
}
