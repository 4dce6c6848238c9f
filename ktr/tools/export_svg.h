/*
 * export_svg.h - what the picture's files share: export_svg.c collects, export_svg_thread.c says of
 * which threads, export_svg_page.c writes the page around the lanes, export_svg_draw.c the lanes.
 * Host only.
 */
#pragma once

#include "ktr/tools/export.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/lane.h"
#include "ktr/tools/span.h"

#define SVG_LANES       24u /* threads that are drawn; with a filter on threads: */
#define SVG_LANES_ASKED 64u
#define SVG_CPUS        64u
#define SVG_COLOURS     24u /* of threads: 8, then lighter ones, then darker */
#define SVG_NONE        UINT32_MAX
#define SVG_BYTES       4500000u /* of what is drawn: a browser has to show it */

/* Keys of a thread's lane. */
enum {
	SVG_STATE = LANE_KEY,                       /* + enum activity_state */
	SVG_CALLING = SVG_STATE + ACTIVITY_DEAD + 1 /* running, in the system call `why` */
};

struct svg_thread {
	bool used; /* else there is none */
	bool kept; /* while it is decided which are */
	bool idle;
	uint32_t tid;
	char name[ACTIVITY_NAME];        /* as it was when it was gone, or at the end */
	const struct activity_thread *t; /* NULL: it is gone */
	uint64_t came;                   /* after so many others */
	uint64_t ns[ACTIVITY_DEAD + 1];  /* in each state */
	struct lane lane;
	uint32_t row;  /* SVG_NONE: it is not drawn */
	uint32_t rank; /* 0 ran most */
};

/* Keys of runs are LANE_KEY + the thread's id; of irqs, LANE_KEY + the interrupt's number. */
struct svg_cpu {
	struct lane runs, irqs, lost;
	uint64_t busy_ns, idle_ns;
	uint64_t irq_count, irq_ns, lost_count;
};

struct svg_wake {
	uint64_t ns;
	uint32_t waker, woken, cpu; /* ids of threads */
};

struct svg {
	struct export_file file;
	const struct dump_filter *filter;
	const struct ktr_decode_header *header;
	struct spans *spans;
	struct svg_cpu cpus[KTR_DECODE_CPUS];
	struct svg_thread *threads; /* by their ids, which stay */
	size_t thread_count, thread_room;
	size_t thread_free;    /* no id below this is free */
	size_t threads_used;   /* those that are there */
	size_t threads_many;   /* so many make it look for those that can go */
	uint64_t threads_came; /* in all */
	uint64_t threads_gone; /* that had a time, and are not there any more */
	uint32_t *ids;         /* by activity_thread.number, + 1; 0: none */
	size_t id_room;
	size_t parts_max, parts; /* of a lane; of all threads' lanes, about */
	struct svg_wake *wakes;
	size_t wake_count;
	uint64_t wakes_seen, wakes_every; /* one of so many is kept */
	uint64_t events, lost, switches;

	/* the page */
	FILE *f;
	unsigned width, left, right, top; /* pixels; of the first lane */
	unsigned rows;                    /* of threads */
	uint32_t *row_threads;            /* their ids */
	unsigned cpu_rows;
	uint64_t threads_left_out;
	uint64_t from_ns, to_ns;
	double px_per_ns;
	double bin_px; /* what is shorter is drawn together */
	unsigned wakes_drawn;
	bool binned;
};

#define SVG_CPU     30u /* of a CPU's lane to the next */
#define SVG_THREAD  20u
#define SVG_SECTION 34u /* between the two kinds of lanes */

/* export_svg_thread.c */
/** The picture's own of a thread that is not gone, valid until the next call; NULL: no memory. */
struct svg_thread *svg_thread_of(struct svg *x, const struct activity_thread *t);
static inline uint32_t
svg_thread_id(const struct svg *x, const struct svg_thread *t)
{
	return (uint32_t)(t - x->threads);
}
void svg_thread_gone(struct svg *x, const struct activity_thread *t);
/** Gives up lanes of the least active threads, if there are too many parts. False: no memory. */
bool svg_threads_thin(struct svg *x);
/** Which threads have a row: those that ran most, in the order in which they came. Likewise. */
bool svg_rows_choose(struct svg *x);

/* export_svg_page.c: the measures, then the whole page to f around what was drawn. */
void svg_page_measure(struct svg *x);
void svg_page(struct svg *x, FILE *f, const char *drawn, size_t size);
/** What a kind of lanes and the column beside them are called. */
void svg_section(const struct svg *x, unsigned y, const char *what, const char *column);
/** In that column: ns as a share. */
void svg_share(const struct svg *x, unsigned y, uint64_t ns, uint64_t of);
/** Escaped; at most max characters, with … for the rest; 0: all. */
void svg_text(FILE *f, const char *text, size_t max);
/** `load (tid 12)`. */
void svg_thread_name(FILE *f, const struct svg_thread *t, size_t max);
/** `1.234 ms` */
const char *svg_duration(char buf[32], uint64_t ns);
/** `374.912910 ms`, to the nanosecond. */
const char *svg_time(char buf[32], uint64_t ns);
/** `11,994` */
const char *svg_count(char buf[32], uint64_t n);
double svg_x(const struct svg *x, uint64_t ns);
unsigned svg_plot_width(const struct svg *x);
unsigned svg_threads_top(const struct svg *x);
unsigned svg_bottom(const struct svg *x);

/* export_svg_draw.c: what it draws is of no use once it is full. */
void svg_draw(struct svg *x);
static inline bool
svg_is_full(const struct svg *x)
{
	return ftell(x->f) > (long)SVG_BYTES;
}
