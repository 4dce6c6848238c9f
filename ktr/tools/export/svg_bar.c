/*
 * svg_bar.c - draws a lane as bars. A group of a lane (lane.h) is drawn as a bin: its parts
 * are piled up, each as high as its share of the bin's time, and at least a pixel high.
 */
#include "ktr/tools/export/svg.h"

void
svg_lane_draw(struct svg *x, struct lane *l, double bin_px, svg_piece_fn *fn)
{
	uint64_t at = l->from_ns;
	struct svg_piece p;
	lane_merge(l, (uint64_t)(bin_px / x->px_per_ns));
	for (size_t i = 0; i < l->count && !svg_is_full(x); i += p.count) {
		p.parts = &l->parts[i];
		p.count = lane_group(l, i, &p.ns);
		p.from_ns = at;
		p.x = svg_x(x, at);
		p.width = (double)p.ns * x->px_per_ns;
		at += p.ns;
		x->binned |= p.count > 1 && bin_px >= x->bin_px;
		fn(x, &p);
	}
}

/* Rounds to tenths of a pixel. */
static double
tenths(double px)
{
	return (double)(int64_t)(px * 10 + 0.5) / 10;
}

static void
bar_open(FILE *f, const char *class, double px, double y, double width, double height)
{
	width = tenths(width);
	fprintf(f, "<path class=\"%s\" d=\"M%.7g %gh%.7gv%gh-%.7gz\"", class, tenths(px), tenths(y),
		width, tenths(height), width);
}

void
svg_bar(FILE *f, const char *class, double px, double y, double width, double height)
{
	bar_open(f, class, px, y, width, height);
	fputs("/>", f);
}

void
svg_bar_titled(FILE *f, const char *class, double px, double y, double width, double height)
{
	bar_open(f, class, px, y, width, height);
	fputs("><title>", f);
}

void
svg_title_end(struct svg *x, const struct svg_piece *p)
{
	char a[32], b[32];
	fprintf(x->f, " %s at %s</title></path>\n", svg_duration(a, p->ns),
		svg_time(b, p->from_ns));
}

double
svg_visible(double width)
{
	return width < 1 ? 1 : width;
}

void
svg_pile(struct svg *x, const struct svg_piece *p, double y, double height,
	 const char *(*class_of)(const struct svg *x, uint32_t key, char *buf))
{
	double base = y + height, width = svg_visible(p->width);
	char buf[16];
	for (size_t i = 0; i < p->count; i++) {
		const char *class = class_of(x, p->parts[i].key, buf);
		double share = p->ns > 0 ? height * (double)p->parts[i].ns / (double)p->ns : height;
		if (class == NULL || p->parts[i].count == 0)
			continue;
		share = share < 1 ? 1 : share;
		share = share < base - y ? share : base - y;
		if (share <= 0)
			break;
		base -= share;
		svg_bar(x->f, class, p->x, base, width, share);
	}
}

void
svg_bin_open(struct svg *x, const struct svg_piece *p,
	     void (*name)(struct svg *x, const struct lane_part *part))
{
	char buf[32];
	fprintf(x->f, "<g><title>%s at ", svg_duration(buf, p->ns));
	fputs(svg_time(buf, p->from_ns), x->f);
	for (size_t i = 0; i < p->count; i++) {
		fputs(i == 0 ? ": " : ", ", x->f);
		name(x, &p->parts[i]);
		fprintf(x->f, " %s", svg_duration(buf, p->parts[i].ns));
	}
	fputs("</title>", x->f);
}
