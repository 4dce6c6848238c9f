/*
 * image.c - puts the parts of an image together.
 */
#include <string.h>

#include "userland/bin/dtrace/gen/gen.h"

struct image gen_image;

uint32_t
image_text(const char *text, size_t size)
{
	struct buffer *b = &gen_image.strings;
	char *copy = dt_strndup(text, size);

	size = strlen(copy); /* bytes after a NUL in it are no part of a string */
	if (b->size == 0)
		buffer_add(b, "", 1);
	for (size_t at = 0; at < b->size; at += strlen((char *)b->data + at) + 1)
		if (strcmp((char *)b->data + at, copy) == 0)
			return (uint32_t)at;
	memcpy(buffer_add(b, NULL, size + 1), copy, size);
	return (uint32_t)(b->size - size - 1);
}

static void
add_section(struct buffer *all, struct dif_section *s, const struct buffer *part, size_t element)
{
	if (all->size % 8 != 0)
		buffer_add(all, NULL, 8 - all->size % 8);
	s->offset = (uint32_t)all->size;
	s->count = (uint32_t)(part->size / element);
	buffer_add(all, part->data, part->size);
}

void *
image_finish(const struct dif_options *options, const char *option_text, uint32_t flags)
{
	struct buffer all = {0}, consumer = {0};
	struct image *i = &gen_image;
	struct dif_header h = {.magic = DIF_MAGIC,
			       .version = DIF_VERSION,
			       .flags = flags,
			       .options = *options};
	struct rec_header r = {
	    .layouts = (uint32_t)(i->rec_layouts.size / sizeof(struct rec_layout)),
	    .actions = (uint32_t)(i->rec_actions.size / sizeof(struct rec_action)),
	    .fields = (uint32_t)(i->rec_fields.size / sizeof(struct rec_field)),
	    .aggs = (uint32_t)(i->rec_aggs.size / sizeof(struct rec_agg)),
	    .options = image_text(option_text, strlen(option_text)),
	};

	buffer_add(&consumer, &r, sizeof(r));
	buffer_add(&consumer, i->rec_layouts.data, i->rec_layouts.size);
	buffer_add(&consumer, i->rec_actions.data, i->rec_actions.size);
	buffer_add(&consumer, i->rec_fields.data, i->rec_fields.size);
	buffer_add(&consumer, i->rec_aggs.data, i->rec_aggs.size);
	buffer_add(&all, NULL, sizeof(h));
	add_section(&all, &h.clauses, &i->clauses, sizeof(struct dif_clause));
	add_section(&all, &h.code, &i->code, sizeof(struct dif_insn));
	add_section(&all, &h.actions, &i->actions, sizeof(uint16_t));
	add_section(&all, &h.layouts, &i->layouts, sizeof(uint32_t));
	add_section(&all, &h.vars, &i->vars, sizeof(struct dif_var));
	add_section(&all, &h.aggs, &i->aggs, sizeof(struct dif_agg));
	add_section(&all, &h.strings, &i->strings, 1);
	add_section(&all, &h.consumer, &consumer, 1);
	h.size = (uint32_t)all.size;
	memcpy(all.data, &h, sizeof(h));
	return all.data;
}
