/*
 * arena.c - memory that lives as long as a command line.
 *
 * Arenas form a stack, since `eval`, `.` and functions run lines within lines. A function keeps its
 * arena alive, because its body lies in it.
 */
#include <err.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userland/bin/sh/sh.h"

#define CHUNK_SIZE (8 * 1024 - 64)

struct chunk {
	struct chunk *before;
	size_t used, room;
	_Alignas(16) char data[];
};

struct arena {
	struct arena *below;
	struct chunk *last;
	bool keep;
};

static struct arena *current;

void *
sh_realloc(void *p, size_t size)
{
	p = realloc(p, size);
	if (p == NULL)
		err(2, "memory");
	return p;
}

void *
sh_malloc(size_t size)
{
	return sh_realloc(NULL, size);
}

char *
sh_strdup(const char *s)
{
	size_t len = strlen(s) + 1;

	return memcpy(sh_malloc(len), s, len);
}

static void
free_chunks_after(struct arena *a, struct chunk *stop)
{
	while (a->last != stop) {
		struct chunk *c = a->last;

		a->last = c->before;
		free(c);
	}
}

struct arena *
arena_push(void)
{
	struct arena *a = sh_malloc(sizeof(*a));

	*a = (struct arena){.below = current};
	current = a;
	return a;
}

void
arena_pop(struct arena *a)
{
	current = a->below;
	if (a->keep)
		return;
	free_chunks_after(a, NULL);
	free(a);
}

void
arena_keep(void)
{
	current->keep = true;
}

struct arena_mark
arena_mark(void)
{
	struct chunk *c = current->last;

	return (struct arena_mark){.chunk = c, .used = c != NULL ? c->used : 0};
}

void
arena_release(struct arena_mark m)
{
	free_chunks_after(current, m.chunk);
	if (current->last != NULL)
		current->last->used = m.used;
}

void *
arena_alloc(size_t size)
{
	struct chunk *c = current->last;

	size = (size + 15) & ~(size_t)15;
	if (c == NULL || c->room - c->used < size) {
		size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;

		c = sh_malloc(sizeof(*c) + room);
		*c = (struct chunk){.before = current->last, .room = room};
		current->last = c;
	}
	c->used += size;
	return c->data + c->used - size;
}

char *
arena_strndup(const char *s, size_t len)
{
	char *copy = arena_alloc(len + 1);

	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

char *
arena_printf(const char *fmt, ...)
{
	va_list ap;
	int len;
	char *s;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	s = arena_alloc((size_t)len + 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)len + 1, fmt, ap);
	va_end(ap);
	return s;
}

void
text_putc(struct text *t, char c)
{
	if (t->len + 2 > t->room) {
		size_t room = t->room == 0 ? 32 : t->room * 2;
		char *s = arena_alloc(room);

		if (t->len > 0)
			memcpy(s, t->s, t->len);
		t->s = s;
		t->room = room;
	}
	t->s[t->len++] = c;
	t->s[t->len] = '\0';
}

void
text_puts(struct text *t, const char *s)
{
	while (*s != '\0')
		text_putc(t, *s++);
}

void
argv_add(struct argv *a, char *s)
{
	if (a->count + 2 > a->room) {
		int room = a->room == 0 ? 8 : a->room * 2;
		char **v = arena_alloc((size_t)room * sizeof(*v));

		if (a->count > 0)
			memcpy(v, a->v, (size_t)a->count * sizeof(*v));
		a->v = v;
		a->room = room;
	}
	a->v[a->count++] = s;
	a->v[a->count] = NULL;
}
