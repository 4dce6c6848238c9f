/*
 * ipc.c - tables of System V IPC's objects, and who may use them. Locking: the lock of each kind.
 */
#include "kernel/ipc/ipc.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/random.h"
#include "kernel/proc/task.h"

#define INDEX_BITS 15 /* of an object's number, as in Linux */
#define INDEX_MASK ((1 << INDEX_BITS) - 1)
#define SEQ_MASK   (INT32_MAX >> INDEX_BITS)

_Static_assert(IPC_MAX <= INDEX_MASK + 1, "each slot has a number");
_Static_assert(IPC_MAX % 64 == 0, "whole words of `taken`");

int64_t
ipc_now(void)
{
	return (int64_t)(clock_real_now_ns() / 1000000000);
}

static unsigned
ipc_head(const struct ipc_table *t, int32_t key)
{
	_Static_assert(IPC_HEADS == 1 << 8, "the upper bits, which depend on all of the key's");
	return (uint32_t)key * t->seed >> 24;
}

struct ipc_object *
ipc_find_key(const struct ipc_table *t, int32_t key)
{
	struct ipc_object *o = t->keys[ipc_head(t, key)];

	while (o != NULL && o->perm.key != key)
		o = o->next_key;
	return o;
}

static void
ipc_set_key(struct ipc_table *t, struct ipc_object *o)
{
	struct ipc_object **head;

	while (t->seed % 2 == 0)
		random_bytes(&t->seed, sizeof(t->seed));
	head = &t->keys[ipc_head(t, o->perm.key)];
	o->next_key = *head;
	*head = o;
}

void
ipc_forget_key(struct ipc_table *t, struct ipc_object *o)
{
	struct ipc_object **at = &t->keys[ipc_head(t, o->perm.key)];

	while (*at != NULL && *at != o)
		at = &(*at)->next_key;
	if (*at != NULL)
		*at = o->next_key;
	o->perm.key = IPC_PRIVATE;
}

static struct ipc_object *
ipc_at(const struct ipc_table *t, int32_t id)
{
	unsigned index = (uint32_t)id & INDEX_MASK;

	return id >= 0 && index < t->end ? t->slots[index] : NULL;
}

struct ipc_object *
ipc_find(const struct ipc_table *t, int32_t id)
{
	struct ipc_object *o = ipc_at(t, id);

	return o != NULL && o->id == id ? o : NULL;
}

/* The slot of the next object, and its seq. There is a free one. */
static unsigned
ipc_next_slot(struct ipc_table *t, uint16_t *seq)
{
	int32_t wanted = t->next_id;
	unsigned i = (unsigned)wanted & INDEX_MASK;

	t->next_id = -1;
	if (wanted >= 0 && i < IPC_MAX && t->slots[i] == NULL) {
		*seq = (uint16_t)(wanted >> INDEX_BITS);
		return i;
	}
	for (i = 0; t->taken[i / 64] == UINT64_MAX;)
		i += 64;
	i += (unsigned)__builtin_ctzll(~t->taken[i / 64]);
	*seq = t->seq;
	t->seq = (t->seq + 1) & SEQ_MASK;
	return i;
}

unsigned
ipc_next_taken(const struct ipc_table *t, unsigned i)
{
	for (; i < t->end; i = i / 64 * 64 + 64) {
		uint64_t rest = t->taken[i / 64] >> i % 64;

		if (rest != 0)
			return i + (unsigned)__builtin_ctzll(rest);
	}
	return t->end;
}

int
ipc_add(struct ipc_table *t, struct ipc_object *o, int32_t key, uint64_t flags)
{
	unsigned i;
	uint16_t seq;

	if (t->used >= (unsigned)t->max)
		return -ENOSPC;
	i = ipc_next_slot(t, &seq);
	o->perm = (struct ipc_perm){.key = key,
				    .uid = proc_effective_user(),
				    .gid = proc_effective_group(),
				    .cuid = proc_effective_user(),
				    .cgid = proc_effective_group(),
				    .mode = (uint32_t)flags & 0777,
				    .seq = seq};
	o->id = (int32_t)((uint32_t)seq << INDEX_BITS | i);
	o->changed = ipc_now();
	o->serial = ++t->serial;
	t->slots[i] = o;
	t->taken[i / 64] |= 1ul << i % 64;
	if (key != IPC_PRIVATE)
		ipc_set_key(t, o);
	t->used++;
	if (i >= t->end)
		t->end = i + 1;
	return o->id;
}

void
ipc_remove(struct ipc_table *t, struct ipc_object *o)
{
	unsigned i = (unsigned)o->id & INDEX_MASK;

	ipc_forget_key(t, o);
	t->slots[i] = NULL;
	t->taken[i / 64] &= ~(1ul << i % 64);
	t->used--;
	while (t->end > 0 && t->slots[t->end - 1] == NULL)
		t->end--;
}

int
ipc_may(const struct ipc_object *o, uint32_t access)
{
	uint32_t wanted = access >> 6 | access >> 3 | access, granted = o->perm.mode;

	if (proc_effective_user() == o->perm.cuid || proc_effective_user() == o->perm.uid)
		granted >>= 6;
	else if (proc_in_group(o->perm.cgid) || proc_in_group(o->perm.gid))
		granted >>= 3;
	return (wanted & ~granted & 7) && !capable(CAP_IPC_OWNER) ? -EACCES : 0;
}

struct ipc_object *
ipc_find_allowed(const struct ipc_table *t, int32_t id, uint32_t access, int *error)
{
	struct ipc_object *o = ipc_find(t, id);

	*error = o == NULL ? -EINVAL : ipc_may(o, access);
	return *error == 0 ? o : NULL;
}

struct ipc_object *
ipc_find_status(const struct ipc_table *t, int32_t id, int command, bool any, int *result)
{
	struct ipc_object *o = command == IPC_STAT ? ipc_find(t, id) : ipc_at(t, id);

	*result = o == NULL ? -EINVAL : any ? 0 : ipc_may(o, IPC_READ);
	if (*result == 0 && command != IPC_STAT)
		*result = o->id;
	return *result >= 0 ? o : NULL;
}

int
ipc_get(const struct ipc_object *o, uint64_t flags)
{
	int error;

	if (o == NULL)
		return flags & IPC_CREAT ? IPC_MAKE : -ENOENT;
	if ((flags & IPC_CREAT) && (flags & IPC_EXCL))
		return -EEXIST;
	error = ipc_may(o, (uint32_t)flags);
	return error != 0 ? error : o->id;
}

int
ipc_may_change(const struct ipc_object *o)
{
	return proc_effective_user() == o->perm.cuid || proc_effective_user() == o->perm.uid ||
		       capable(CAP_SYS_ADMIN)
		   ? 0
		   : -EPERM;
}

int
ipc_set(struct ipc_object *o, const struct ipc_perm *perm)
{
	if (perm->uid == UINT32_MAX || perm->gid == UINT32_MAX)
		return -EINVAL;
	o->perm.uid = perm->uid;
	o->perm.gid = perm->gid;
	o->perm.mode = (o->perm.mode & ~0777u) | (perm->mode & 0777);
	o->changed = ipc_now();
	return 0;
}

int
ipc_last(const struct ipc_table *t)
{
	return t->end > 0 ? (int)t->end - 1 : 0;
}
