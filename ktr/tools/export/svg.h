/*
 * svg.h - what the files of the svg format share. svg.c collects lanes while the
 * events pass, svg_thread.c chooses the threads that are kept and drawn, svg_draw.c
 * and svg_bar.c draw the lanes, and svg_page.c writes the page around them. Host
 * only.
 */
#pragma once

#include "ktr/tools/export/export.h"
#include "ktr/tools/export/lane.h"
#include "ktr/tools/ktrdump.h"
#include "ktr/tools/model/span.h"

#define SVG_LANES       24u /* threads that are drawn at most */
#define SVG_LANES_ASKED 64u /* the same when --thread chooses them */
#define SVG_CPUS        64u
#define SVG_COLOURS     24u /* colours of threads: 8, the same 8 lighter, and the same 8 darker */
#define SVG_NONE        UINT32_MAX
#define SVG_BYTES       4500000u /* of all lanes at most: a browser has to show them */

#define SVG_LEVELS 8u /* functions that call each other are drawn so deep */

/* Keys of a thread's lane. Those of its functions are LANE_KEY + a hash of the name. */
enum {
	SVG_STATE = LANE_KEY,                       /* + enum activity_state */
	SVG_CALLING = SVG_STATE + ACTIVITY_DEAD + 1 /* running, in the system call `why` */
};

struct svg_thread {
	bool used; /* false: this id is free */
	bool kept; /* used by threads_forget() alone */
	bool idle;
	uint32_t tid;
	char name[ACTIVITY_NAME];        /* the last name; set when it is gone, or at the end */
	const struct activity_thread *t; /* NULL: it is gone */
	uint64_t came;                   /* how many threads came before it */
	uint64_t ns[ACTIVITY_DEAD + 1];  /* in each state */
	struct lane lane;
	struct lane *calls; /* SVG_LEVELS lanes of functions, outermost first; NULL: it has none */
	unsigned levels;    /* how many of these are in use */
	uint32_t row;       /* SVG_NONE: it is not drawn */
	uint32_t rank;      /* 0 ran most */
};

/* Keys of runs are LANE_KEY + the thread's id; of irqs, LANE_KEY + the interrupt's number. */
struct svg_cpu {
	struct lane runs, irqs, lost;
	uint64_t busy_ns, idle_ns;
	uint64_t irq_count, irq_ns, lost_count;
};

struct svg_wake {
	uint64_t ns;
	uint32_t waker, woken, cpu; /* waker and woken are ids of threads */
};

struct svg {
	struct export_file file;
	const struct dump_filter *filter;
	const struct ktr_decode_header *header;
	const struct spans *spans;
	struct svg_cpu cpus[KTR_DECODE_CPUS];
	struct svg_thread *threads; /* by id; an id does not change */
	size_t thread_count, thread_room;
	size_t thread_free;    /* no id below this is free */
	size_t threads_used;   /* how many of the ids are not free */
	size_t threads_many;   /* when so many are used, some are forgotten */
	uint64_t threads_came; /* in all */
	uint64_t threads_gone; /* forgotten, though they could have had a lane */
	uint32_t *ids;         /* by activity_thread.number, + 1; 0: none */
	size_t id_room;
	size_t parts_max, parts; /* of one lane at most; of the lanes of all threads, about */
	struct svg_wake *wakes;
	size_t wake_count;
	uint64_t wakes_seen, wakes_every; /* one in wakes_every is kept */
	uint64_t events, lost, switches;

	/* the page */
	FILE *f;
	/* Pixels: the page's width, the first lane's left edge, the right margin, the first lane's
	 * top. */
	unsigned width, left, right, top;
	unsigned rows;         /* of threads */
	uint32_t *row_threads; /* the id of each row's thread */
	unsigned cpu_rows;
	uint64_t threads_left_out;
	uint64_t from_ns, to_ns;
	double px_per_ns;
	double bin_px; /* parts shorter than this are drawn together, in bins */
	unsigned wakes_drawn;
	bool binned;
	bool deeper; /* functions below the last level are not drawn */
};

#define SVG_CPU     30u /* pixels from the lane of a CPU to the next */
#define SVG_THREAD  20u /* the same of a thread's lane */
#define SVG_CALL    11u /* pixels of the lane of functions of one level */
#define SVG_SECTION 34u /* pixels between the CPUs and the threads */

/* svg_thread.c */
/** The entry of a thread that is not gone, valid until the next call. NULL: no memory. */
struct svg_thread *svg_thread_of(struct svg *x, const struct activity_thread *t);
static inline uint32_t
svg_thread_id(const struct svg *x, const struct svg_thread *t)
{
	return (uint32_t)(t - x->threads);
}
void svg_thread_gone(struct svg *x, const struct activity_thread *t);
/** Adds to the lanes of the functions that a thread is in. False: no memory. */
bool svg_calls_add(struct svg *x, struct svg_thread *t, const struct span *span);
/** Frees a thread's lanes. */
void svg_lanes_clear(struct svg *x, struct svg_thread *t);
/** If there are too many parts, frees the lanes of the threads that ran least. False: no memory. */
bool svg_threads_thin(struct svg *x);
/** Gives rows to the threads that ran most, in the order in which they came. False: no memory. */
bool svg_rows_choose(struct svg *x);

/* svg_page.c */
/** Computes the positions of lanes and columns. */
void svg_page_measure(struct svg *x);
/** Writes the whole page to f; `drawn` is what svg_draw() wrote. */
void svg_page(struct svg *x, FILE *f, const char *drawn, size_t size);
/** The headings of a kind of lanes, and of the column beside them. */
void svg_section(const struct svg *x, unsigned y, const char *what, const char *column);
/** Writes ns as a share of `of` into that column. */
void svg_share(const struct svg *x, unsigned y, uint64_t ns, uint64_t of);
/** Writes a text, escaped. If it has more than max characters (0: any), it is cut, and ends with ….
 */
void svg_text(FILE *f, const char *text, size_t max);
/** Writes `load (tid 12)`, or, if max is not 0, the name alone, cut like a text. */
void svg_thread_name(FILE *f, const struct svg_thread *t, size_t max);
/** `1.234 ms`: about four digits. */
const char *svg_duration(char buf[32], uint64_t ns);
/** `374.912910 ms`, to the nanosecond. */
const char *svg_time(char buf[32], uint64_t ns);
/** `11,994` */
const char *svg_count(char buf[32], uint64_t n);
double svg_x(const struct svg *x, uint64_t ns);
unsigned svg_threads_top(const struct svg *x);
/** y of a row, below svg_threads_top(). */
unsigned svg_row_y(const struct svg *x, uint32_t row);

/* svg_bar.c */
/* What is drawn as one: a part, or the parts of a group. */
struct svg_piece {
	const struct lane_part *parts;
	size_t count;
	uint64_t from_ns, ns;
	double x, width;
};

typedef void svg_piece_fn(struct svg *x, const struct svg_piece *p);
/** Calls fn for each piece of a lane, after neighbours shorter than bin_px have become bins. */
void svg_lane_draw(struct svg *x, struct lane *l, double bin_px, svg_piece_fn *fn);
void svg_bar(FILE *f, const char *class, double px, double y, double width, double height);
/** Draws a bar with a title, which browsers show at the pointer, up to svg_title_end(). */
void svg_bar_titled(FILE *f, const char *class, double px, double y, double width, double height);
void svg_title_end(struct svg *x, const struct svg_piece *p);
/** At least a pixel. */
double svg_visible(double width);
/** Begins the group of a bin, with a title that names its parts. The caller writes </g>. */
void svg_bin_open(struct svg *x, const struct svg_piece *p,
		  void (*name)(struct svg *x, const struct lane_part *part));
/** Piles up a bin's parts. class_of gives the class of a part's shape; NULL: it is not drawn. */
void svg_pile(struct svg *x, const struct svg_piece *p, double y, double height,
	      const char *(*class_of)(const struct svg *x, uint32_t key, char *buf));

/* svg_draw.c */
/** Draws all lanes and wakeups to x->f. If that becomes full, they are not complete. */
void svg_draw(struct svg *x);
static inline bool
svg_is_full(const struct svg *x)
{
	return ftell(x->f) > (long)SVG_BYTES;
}
