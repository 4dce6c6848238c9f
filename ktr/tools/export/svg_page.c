/*
 * svg_page.c - the page around the lanes of a picture: style, title, legend, time axis and
 * notes. It also formats numbers and names for all of the picture.
 *
 * The threads' colours are Paul Tol's, which colour-blind people can tell apart. States differ by
 * shape as well as by colour. The file fetches nothing and has no script.
 */
#include <inttypes.h>
#include <string.h>

#include "ktr/tools/export/svg.h"
#include "ktr/tools/utf8.h"

#define CHAR_PX   6.6 /* width of a character of 12 px, about: fonts differ */
#define LEGEND_Y  73u
#define LEGEND_PX 20u
#define TOP       128u /* y of the first lane, if the legend has one row */
#define NOTE_PX   18u
#define BIN_PX    3.0 /* width of a bin with up to BIN_LANES lanes; with more, bins are wider */
#define BIN_LANES 32u
#define TICK_ROOM 34.0 /* pixels between two labels */

static const char style[] =
    "<style>"
    "svg{font:12px system-ui,-apple-system,'Segoe UI','Noto Sans','DejaVu Sans',sans-serif;"
    "font-variant-numeric:tabular-nums}"
    "path{shape-rendering:crispEdges}path:hover{filter:brightness(1.15)}"
    ".bg{fill:#fff}.ink{fill:#1f2328}.dim{fill:#656d76}.title{font-size:17px;font-weight:600}"
    ".head{font-size:11px;font-weight:600;letter-spacing:.06em}"
    ".e{text-anchor:end}.m{text-anchor:middle}.grid{stroke:#d8dee4;stroke-opacity:.8}"
    ".z{fill:#eff2f5}.zz{fill:transparent}"
    ".r{fill:currentColor}.q{fill:currentColor;fill-opacity:.28}.s{fill:#afb8c1}"
    ".k{fill:#1f2328;fill-opacity:.5}.x{fill:#cc3311}.bl{fill:url(#bl)}.lo{fill:url(#lo)}"
    ".blh{fill:#cc3311;fill-opacity:.2}.bls{fill:#cc3311}"
    ".loh{fill:#8c959f;fill-opacity:.18}.los{fill:#57606a}"
    ".i{fill:#57606a}.im{fill:#57606a;fill-opacity:.5}"
    ".w{stroke:#1f2328;stroke-opacity:.5;fill:none;shape-rendering:auto}"
    ".l{font-size:11px;pointer-events:none;fill:#fff}.l.y{fill:#1f2328}.to{color:#9aa3ad}"
    ".t0{color:#4477aa}.t1{color:#ddaa33}.t2{color:#228833}.t3{color:#aa3377}"
    ".t4{color:#55bbdd}.t5{color:#997755}.t6{color:#44aa99}.t7{color:#7766cc}"
    ".t8{color:#98b4d0}.t9{color:#ecd08f}.t10{color:#85be8f}.t11{color:#d08fb4}"
    ".t12{color:#a2daec}.t13{color:#c7b4a2}.t14{color:#98d0c7}.t15{color:#b4abe3}"
    ".t16{color:#2a4a69}.t17{color:#896920}.t18{color:#155420}.t19{color:#69204a}"
    ".t20{color:#357489}.t21{color:#5f4a35}.t22{color:#2a695f}.t23{color:#4a3f7e}"
    "@media(prefers-color-scheme:dark){"
    ".bg{fill:#0d1117}.ink{fill:#e6edf3}.dim{fill:#8b949e}.grid{stroke:#30363d}"
    ".z{fill:#1b2028}.s{fill:#4b535d}.k{fill:#0d1117;fill-opacity:.55}.x{fill:#ee6650}"
    ".blh{fill:#ee6650;fill-opacity:.25}.bls{fill:#ee6650}.los{fill:#9198a1}"
    ".i,.im{fill:#9198a1}.w{stroke:#e6edf3}.l,.l.y{fill:#0d1117}.l.n{fill:#e6edf3}"
    ".to{color:#6e7681}"
    ".t0{color:#6699cc}.t1{color:#ddaa33}.t2{color:#4daf62}.t3{color:#cc6699}"
    ".t4{color:#55bbdd}.t5{color:#b8977a}.t6{color:#44aa99}.t7{color:#9b8cf0}"
    ".t8{color:#abc7e3}.t9{color:#ecd08f}.t10{color:#9dd3a9}.t11{color:#e3abc7}"
    ".t12{color:#a2daec}.t13{color:#d8c6b6}.t14{color:#98d0c7}.t15{color:#c8c0f7}"
    ".t16{color:#3f5f7e}.t17{color:#896920}.t18{color:#306c3d}.t19{color:#7e3f5f}"
    ".t20{color:#357489}.t21{color:#725e4c}.t22{color:#2a695f}.t23{color:#605795}"
    "}</style>\n"
    "<defs>"
    "<pattern id=\"lo\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><path class=\"loh\" d=\"M0 0h6v6h-6z\"/>"
    "<path class=\"los\" d=\"M0 0h1.3v6h-1.3z\"/></pattern>"
    "<pattern id=\"bl\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(-45)\"><path class=\"blh\" d=\"M0 0h4v4h-4z\"/>"
    "<path class=\"bls\" d=\"M0 0h1.4v4h-1.4z\"/></pattern>"
    "</defs>\n";

/* ---- text ---- */

static size_t
text_length(const char *text)
{
	size_t n = 0;
	for (; *text != '\0'; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

void
svg_text(FILE *f, const char *text, size_t max)
{
	const unsigned char *p = (const unsigned char *)text;
	bool cut = max != 0 && text_length(text) > max;
	for (size_t left = cut ? max - 1 : SIZE_MAX; *p != '\0' && left > 0; left--) {
		size_t n = utf8_length(p);
		bool noncharacter = n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe;
		if (n == 0 || *p < ' ' || *p == 0x7f || noncharacter)
			fputs("\xef\xbf\xbd", f);
		else if (*p == '&')
			fputs("&amp;", f);
		else if (*p == '<')
			fputs("&lt;", f);
		else if (*p == '>')
			fputs("&gt;", f);
		else
			fwrite(p, 1, n, f);
		p += n > 0 ? n : 1;
	}
	if (cut)
		fputs("…", f);
}

void
svg_thread_name(FILE *f, const struct svg_thread *t, size_t max)
{
	if (t->name[0] == '\0') {
		fprintf(f, "tid %" PRIu32, t->tid);
		return;
	}
	svg_text(f, t->name, max);
	if (max == 0)
		fprintf(f, " (tid %" PRIu32 ")", t->tid);
}

static const struct {
	const char *name;
	uint64_t ns;
	int decimals; /* of a time that is exact to the nanosecond */
} units[] = {{"s", 1000000000, 9}, {"ms", 1000000, 6}, {"µs", 1000, 3}, {"ns", 1, 0}};

static unsigned
unit_of(uint64_t ns)
{
	unsigned u = 0;
	while (u < 3 && ns < units[u].ns)
		u++;
	return u;
}

const char *
svg_duration(char buf[32], uint64_t ns)
{
	unsigned u = unit_of(ns);
	double v = (double)ns / (double)units[u].ns;
	int decimals = v < 10 ? 3 : v < 100 ? 2 : v < 1000 ? 1 : 0;
	decimals = decimals < units[u].decimals ? decimals : units[u].decimals;
	snprintf(buf, 32, "%.*f %s", decimals, v, units[u].name);
	return buf;
}

/* A time with so many decimals, not rounded. Not a double: times have more digits than that. */
static const char *
time_text(char buf[32], uint64_t ns, unsigned u, int decimals)
{
	char fraction[24];
	uint64_t unit = units[u].ns;
	snprintf(fraction, sizeof(fraction), "%09" PRIu64, ns % unit * (units[0].ns / unit));
	snprintf(buf, 32, "%" PRIu64 "%s%.*s %s", ns / unit, decimals > 0 ? "." : "",
		 decimals > 9 ? 9 : decimals, fraction, units[u].name);
	return buf;
}

const char *
svg_time(char buf[32], uint64_t ns)
{
	unsigned u = unit_of(ns);
	return time_text(buf, ns, u, units[u].decimals);
}

const char *
svg_count(char buf[32], uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *p = buf;
	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = '\0';
	return buf;
}

/* ---- legend ---- */

/* The shapes are 22 x 12 pixels, at 0 0. */
static const struct {
	const char *what, *shape;
} legend_rows[] = {
    {"running", "<path class=\"r\" d=\"M0 0h22v12h-22z\"/>"},
    {"… in a system call",
     "<path class=\"r\" d=\"M0 0h22v12h-22z\"/><path class=\"k\" d=\"M0 10h22v2h-22z\"/>"},
    {"runnable", "<path class=\"q\" d=\"M0 0h22v12h-22z\"/>"},
    {"sleeping", "<path class=\"s\" d=\"M0 5h22v2h-22z\"/>"},
    {"blocked on a lock", "<path class=\"bl\" d=\"M0 0h22v12h-22z\"/>"},
    {"spinning", "<path class=\"x\" d=\"M0 0h22v12h-22z\"/>"},
    {"interrupt", "<path class=\"z\" d=\"M0 0h22v12h-22z\"/>"
		  "<path class=\"i\" d=\"M4 0h1.5v4h-1.5zM14 0h3v4h-3z\"/>"},
    {"wakeup", "<path class=\"w\" d=\"M11 0v12m-3-4l3 4l3-4\"/>"},
    {"idle", "<path class=\"z\" d=\"M0 0h22v12h-22z\"/>"},
    {"events lost", "<path class=\"lo\" d=\"M0 0h22v12h-22z\"/>"},
    {"function", "<path class=\"r\" d=\"M0 2h22v10h-22z\"/>"}, /* the last: if there is one */
};

/* Returns how many rows the legend has, and writes it if `put` is true. */
static unsigned
legend(struct svg *x, bool put)
{
	double at = 20;
	unsigned rows = 1, n = sizeof(legend_rows) / sizeof(legend_rows[0]);
	n -= svg_row_y(x, x->rows) == x->rows * SVG_THREAD; /* no function is drawn */
	for (unsigned i = 0; i < n; i++) {
		double px = 28 + (double)text_length(legend_rows[i].what) * CHAR_PX;
		if (at + px > x->width - 12.0 && i > 0) {
			at = 20;
			rows++;
		}
		if (put)
			fprintf(x->f,
				"<g class=\"t0\" transform=\"translate(%.0f %u)\">%s"
				"<text class=\"dim\" x=\"28\" y=\"10\">%s</text></g>\n",
				at, LEGEND_Y + LEGEND_PX * (rows - 1), legend_rows[i].shape,
				legend_rows[i].what);
		at += px + 18;
	}
	return rows;
}

/* ---- geometry ---- */

static unsigned
svg_plot_width(const struct svg *x)
{
	return x->width - x->left - x->right;
}

double
svg_x(const struct svg *x, uint64_t ns)
{
	return (double)(ns - x->from_ns) * x->px_per_ns;
}

unsigned
svg_threads_top(const struct svg *x)
{
	return x->top + x->cpu_rows * SVG_CPU + (x->rows > 0 ? SVG_SECTION : 0);
}

static unsigned
svg_bottom(const struct svg *x)
{
	return svg_threads_top(x) + svg_row_y(x, x->rows);
}

unsigned
svg_row_y(const struct svg *x, uint32_t row)
{
	unsigned y = row * SVG_THREAD;
	for (uint32_t i = 0; i < row; i++)
		y += x->threads[x->row_threads[i]].levels * SVG_CALL;
	return y;
}

void
svg_page_measure(struct svg *x)
{
	x->left = x->width >= 700 ? 150 : 92;
	x->right = x->width >= 700 ? 72 : 20;
	spans_range(x->spans, &x->from_ns, &x->to_ns);
	uint64_t ns = x->to_ns > x->from_ns ? x->to_ns - x->from_ns : 1000;
	x->px_per_ns = (double)svg_plot_width(x) / (double)ns;
	for (unsigned cpu = 0; cpu < spans_cpus(x->spans) && x->cpu_rows < SVG_CPUS; cpu++)
		x->cpu_rows += dump_match_cpu(x->filter, cpu);
	unsigned lanes = x->cpu_rows + x->rows;
	x->bin_px = lanes > BIN_LANES ? BIN_PX * lanes / BIN_LANES : BIN_PX;
	x->top = TOP + LEGEND_PX * (legend(x, false) - 1);
}

/* ---- axis ---- */

/* The smallest step, 1, 2 or 5 times a power of ten, at which labels of that width fit. */
static uint64_t
tick_step(const struct svg *x, double label_px)
{
	static const unsigned parts[] = {1, 2, 5};
	for (uint64_t power = 1; power < UINT64_MAX / 100; power *= 10)
		for (unsigned i = 0; i < 3; i++)
			if ((double)(power * parts[i]) * x->px_per_ns >= label_px + TICK_ROOM)
				return power * parts[i];
	return UINT64_MAX;
}

static void
axis(struct svg *x)
{
	uint64_t to = x->to_ns > x->from_ns ? x->to_ns : x->from_ns + 1000, step = 1;
	unsigned u = unit_of(to);
	double label_px = 0;
	int decimals = 0;
	char buf[32];
	/* A smaller step needs labels with more digits, and these need a larger step. */
	for (int digits = 0; digits <= units[u].decimals; digits++) {
		label_px = (double)strlen(time_text(buf, to, u, digits)) * CHAR_PX;
		step = tick_step(x, label_px);
		uint64_t unit = units[u].ns;
		for (decimals = 0; decimals < units[u].decimals && step % unit != 0; decimals++)
			unit /= 10;
		if (decimals <= digits)
			break;
	}
	for (uint64_t ns = (x->from_ns + step - 1) / step * step; ns <= to; ns += step) {
		double px = svg_x(x, ns);
		fprintf(x->f, "<path class=\"grid\" d=\"M%.1f %uV%u\"/>", px + x->left, x->top - 8,
			svg_bottom(x));
		/* Labels must not touch the headings of the columns on both sides. */
		double beside = x->right > 40 ? 12 : 4;
		if (px >= label_px / 2 - 70 && px + label_px / 2 <= svg_plot_width(x) + beside)
			fprintf(x->f, "<text class=\"dim m\" x=\"%.1f\" y=\"%u\">%s</text>\n",
				px + x->left, x->top - 14, time_text(buf, ns, u, decimals));
		if (step > to - ns)
			break;
	}
}

/* ---- columns beside the lanes ---- */

void
svg_section(const struct svg *x, unsigned y, const char *what, const char *column)
{
	fprintf(x->f, "<text class=\"dim head\" x=\"20\" y=\"%u\">%s</text>", y, what);
	if (x->right > 40)
		fprintf(x->f, "<text class=\"dim head e\" x=\"%u\" y=\"%u\">%s</text>\n",
			x->width - 20, y, column);
}

void
svg_share(const struct svg *x, unsigned y, uint64_t ns, uint64_t of)
{
	if (x->right <= 40 || of == 0)
		return;
	double share = 100.0 * (double)ns / (double)of;
	bool tiny = share < 0.05 && ns > 0;
	fprintf(x->f, "<text class=\"dim e\" x=\"%u\" y=\"%u\">%s%.*f %%</text>\n", x->width - 20,
		y, tiny ? "&lt; " : "", share < 9.95 && ns > 0 ? 1 : 0, tiny ? 0.1 : share);
}

/* ---- title and notes ---- */

/* A line of text across the page, squeezed if it is too long. */
static void
line(struct svg *x, unsigned y, const char *text)
{
	unsigned room = x->width - 40;
	fprintf(x->f, "<text class=\"dim\" x=\"20\" y=\"%u\"", y);
	if ((double)text_length(text) * CHAR_PX > room)
		fprintf(x->f, " textLength=\"%u\" lengthAdjust=\"spacingAndGlyphs\"", room);
	fprintf(x->f, ">%s</text>\n", text);
}

static void
title(struct svg *x)
{
	const struct ktr_decode_header *h = x->header;
	char a[32], b[32], c[32], d[32], said[160] = "no events";
	unsigned cpus = spans_cpus(x->spans);
	fprintf(x->f, "<text class=\"ink title\" x=\"20\" y=\"34\">");
	svg_text(x->f, h->arch, 20);
	fprintf(x->f, ", %u CPU%s</text>\n", cpus, cpus == 1 ? "" : "s");
	if (x->events > 0 || x->lost > 0)
		snprintf(said, sizeof(said), "%s from %s after boot · %s event%s · %s lost",
			 svg_duration(a, x->to_ns - x->from_ns), svg_duration(b, x->from_ns),
			 svg_count(c, x->events), x->events == 1 ? "" : "s", svg_count(d, x->lost));
	line(x, 56, said);
}

#define NOTES 6u

/* Makes the notes, which say what the picture leaves out. Returns how many there are. */
static unsigned
notes(const struct svg *x, char notes[NOTES][160])
{
	char a[32], b[32];
	unsigned n = 0;
	if (x->binned)
		snprintf(notes[n++], sizeof(notes[0]),
			 "What is shorter than %.0f px, %s, stands in bins: heights are shares of "
			 "their time.",
			 x->bin_px, svg_duration(a, (uint64_t)(x->bin_px / x->px_per_ns)));
	if (x->threads_left_out > 0)
		snprintf(notes[n++], sizeof(notes[0]),
			 "The %u threads that ran most; %s more: --thread NAME.", x->rows,
			 svg_count(a, x->threads_left_out));
	if (x->wakes_drawn < x->wakes_seen)
		snprintf(notes[n++], sizeof(notes[0]),
			 "%s of %s wakeups, where they are not too many: --since, --until.",
			 svg_count(a, x->wakes_drawn), svg_count(b, x->wakes_seen));
	if (x->deeper)
		snprintf(notes[n++], sizeof(notes[0]),
			 "Functions that %u others have called in turn are left out.", SVG_LEVELS);
	if (x->cpu_rows == SVG_CPUS && spans_cpus(x->spans) > SVG_CPUS)
		snprintf(notes[n++], sizeof(notes[0]), "The first %u CPUs of %u: --cpu CPUS.",
			 SVG_CPUS, spans_cpus(x->spans));
	if (x->events > 0 && x->rows == 0)
		snprintf(notes[n++], sizeof(notes[0]), "No thread that was asked for has run.");
	return n;
}

void
svg_page(struct svg *x, FILE *f, const char *drawn, size_t size)
{
	char said[NOTES][160];
	unsigned count = notes(x, said), y = svg_bottom(x) + 28;
	unsigned height = y + (count > 0 ? count * NOTE_PX : 0);
	x->f = f;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"viewBox=\"0 0 %u %u\">\n%s<path class=\"bg\" d=\"M0 0h%uv%uh-%uz\"/>\n",
		x->width, height, x->width, height, style, x->width, height, x->width);
	title(x);
	legend(x, true);
	axis(x);
	fwrite(drawn, 1, size, f);
	for (unsigned i = 0; i < count; i++)
		line(x, y + i * NOTE_PX, said[i]);
	fputs("</svg>\n", f);
}
