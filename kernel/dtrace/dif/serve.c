/*
 * serve.c - answers dtrace(1) over a line (ktr/DIF-WIRE.md). Nothing that comes is trusted: lengths
 * and numbers are checked here, the image by the verifier. The answer to the last request is kept,
 * for a host that asks again because it did not get it. Locking: dif.h.
 */
#include "kernel/abi/errno.h"
#include "kernel/dtrace/dif/line.h"
#include "kernel/dtrace/dif/session.h"
#include "kernel/dtrace/port.h"
#include "kernel/lib/string.h"

static struct {
	uint8_t raw[DIF_LINE_CODED]; /* of the frame that comes in */
	size_t raw_len;
	bool inside; /* a zero byte came: what follows may be a frame */
	uint8_t frame[DIF_LINE_FRAME];
	uint8_t coded[DIF_LINE_CODED]; /* the last answer */
	size_t coded_len;
	uint32_t number; /* the request that `coded` answers; valid if there is one */
	uint8_t *image;  /* as far as it came */
	uint32_t image_size, image_have;
	struct dif_taken taken;
} serve;

/* A request's fields, and then the answer's. */
struct serve_fields {
	const uint8_t *in;
	size_t left;
	uint8_t *out;
	size_t len, room;
	bool bad; /* the request has too few fields, or too many */
};

static uint32_t
serve_get(struct serve_fields *f)
{
	uint32_t v = 0;

	if (f->left < 4) {
		f->bad = true;
		return 0;
	}
	v = ktr_little_u32(f->in);
	f->in += 4;
	f->left -= 4;
	return v;
}

static void
serve_put(struct serve_fields *f, const void *data, size_t n)
{
	n = n < f->room - f->len ? n : f->room - f->len;
	memcpy(f->out + f->len, data, n);
	f->len += n;
}

static void
serve_put_u32(struct serve_fields *f, uint32_t v)
{
	uint8_t bytes[4];

	dif_line_put(bytes, v);
	serve_put(f, bytes, sizeof(bytes));
}

static int
serve_refuse(struct serve_fields *f, int error, const char *why)
{
	f->len = 0;
	serve_put(f, why, ktr_strlen(why));
	return error;
}

static void
serve_free_image(void)
{
	dif_port_free(serve.image);
	serve.image = NULL;
	serve.image_size = serve.image_have = 0;
}

static void
serve_end(void)
{
	serve_free_image();
	serve.taken = (struct dif_taken){{NULL, NULL}, {0, 0}};
	dif_session_end();
}

static int
serve_hello(struct serve_fields *f)
{
	uint32_t magic = serve_get(f), version = serve_get(f), sum = 0;

	if (f->bad || magic != DIF_LINE_MAGIC || version != DIF_LINE_VERSION)
		return serve_refuse(f, -EINVAL, "expected version 1 of the line");
	serve_end();
	dif_rates_count = 0;
	for (unsigned n = 0; n < ktr_site_count(); n++)
		sum = dif_line_sum(sum, ktr_site_get(n));
	serve_put_u32(f, DIF_LINE_VERSION);
	serve_put_u32(f, DIF_VERSION);
	serve_put_u32(f, DIF_LINE_FRAME);
	serve_put_u32(f, dif_session_cpus());
	serve_put_u32(f, ktr_site_count());
	serve_put_u32(f, sum);
	return 0;
}

/* A probe at a rate. The name is the rest. */
static int
serve_rate(struct serve_fields *f)
{
	uint64_t ns = serve_get(f);
	int id;

	ns |= (uint64_t)serve_get(f) << 32;
	id = f->bad ? -EINVAL : dif_session_rate(f->in, f->left, ns);
	return id >= 0         ? id
	       : id == -ENOSYS ? serve_refuse(f, id,
					      "the kernel does not call dif_tick(): "
					      "expected a probe that fires often")
	       : id == -ENOSPC ? serve_refuse(f, id, "the kernel has 8 rates: expected fewer")
			       : serve_refuse(f, id, "no such rate");
}

/* A piece of the image, in order. */
static int
serve_image(struct serve_fields *f)
{
	uint32_t size = serve_get(f), at = serve_get(f);

	if (f->bad || size > DIF_MAX_IMAGE ||
	    (at != 0 && (size != serve.image_size || at != serve.image_have)) ||
	    f->left > size - at)
		return serve_refuse(f, -EINVAL, "a piece of the image is not the next one");
	if (at == 0) {
		serve_end();
		serve.image = dif_port_alloc(size + 1);
		if (serve.image == NULL)
			return serve_refuse(f, -ENOMEM, "the kernel has no memory for the program");
		serve.image_size = size;
	}
	memcpy(serve.image + at, f->in, f->left);
	serve.image_have = at + (uint32_t)f->left;
	f->left = 0;
	return 0;
}

static int
serve_load(struct serve_fields *f)
{
	const char *why;
	uint32_t matched;
	int error;

	if (serve.image == NULL || serve.image_have != serve.image_size)
		return serve_refuse(f, -EINVAL, "the image has not come whole");
	error = dif_session_load(serve.image, serve.image_size, &matched, &why);
	serve_free_image();
	if (error == -ENOMEM)
		why =
		    "the kernel has too little memory: expected a smaller bufsize, aggsize, dynvarsize or nspec";
	if (error != 0)
		return serve_refuse(f, error,
				    why != NULL ? why : "the kernel does not take the program");
	return (int)matched;
}

static int
serve_start(struct serve_fields *f)
{
	int error = dif_session_start();

	return error == 0 ? 0
			  : serve_refuse(f, error, "there is no program, or it was started before");
}

static int
serve_status(struct serve_fields *f)
{
	struct dif_status s;

	dif_session_status(&s);
	serve_put(f, &s, sizeof(s));
	return 0;
}

static int
serve_drops(struct serve_fields *f)
{
	struct dif_drops drops = {.cpu = serve_get(f)};
	int error = f->bad ? -EINVAL : dif_session_drops(&drops);

	if (error != 0)
		return serve_refuse(f, error, "no such CPU");
	serve_put(f, &drops, sizeof(drops));
	return 0;
}

/* At offset 0 takes anew what is asked for; else goes on with what was taken. */
static int
serve_take(struct serve_fields *f)
{
	uint32_t what = serve_get(f), cpu = serve_get(f), at = serve_get(f);
	const struct dif_taken *t = &serve.taken;
	int error = f->bad || what > DIF_TAKE_AGGS ? -EINVAL : 0;

	if (error == 0 && at == 0)
		error = dif_session_take((enum dif_take)what, cpu, &serve.taken);
	if (error != 0 || at > t->size[0] + t->size[1])
		return serve_refuse(f, -EINVAL, "there is nothing to take");
	serve_put_u32(f, t->size[0] + t->size[1]);
	for (unsigned i = 0; i < 2; i++) {
		if (at < t->size[i])
			serve_put(f, (const uint8_t *)t->piece[i] + at, t->size[i] - at);
		at = at < t->size[i] ? 0 : at - t->size[i];
	}
	return 0;
}

static int
serve_what(uint8_t what, struct serve_fields *f)
{
	switch (what) {
	case DIF_LINE_HELLO:
		return serve_hello(f);
	case DIF_LINE_IMAGE:
		return serve_image(f);
	case DIF_LINE_LOAD:
		return serve_load(f);
	case DIF_LINE_START:
		return serve_start(f);
	case DIF_LINE_STATUS:
		return serve_status(f);
	case DIF_LINE_TAKE:
		return serve_take(f);
	case DIF_LINE_DROPS:
		return serve_drops(f);
	case DIF_LINE_STOP:
		dif_session_stop();
		return 0;
	case DIF_LINE_END:
		serve_end();
		return 0;
	case DIF_LINE_RATE:
		return serve_rate(f);
	default:
		return serve_refuse(f, -EINVAL, "no such request");
	}
}

/* Answers a request. The answer is made in `coded`, and from there coded into `raw`, which
 * nobody uses at that time. */
static void
serve_answer(const uint8_t *body, size_t len)
{
	uint8_t what = body[4], *to = serve.coded;
	struct serve_fields f = {.in = body + 5,
				 .left = len - 5,
				 .out = to + DIF_LINE_ANSWER - KTR_FRAME_TAIL,
				 .room = DIF_LINE_FRAME - DIF_LINE_ANSWER};
	int result;

	dif_session_hear(); /* a slow line has much to take between two DIF_LINE_STATUS */
	serve.number = ktr_little_u32(body);
	result = serve_what(what, &f);
	to[0] = DIF_LINE_REPLY;
	memcpy(to + KTR_FRAME_HEAD, body, 5);
	dif_line_put(to + KTR_FRAME_HEAD + 5, (uint32_t)result);
	serve.raw[0] = 0; /* ends what others have written */
	serve.coded_len =
	    1 + ktr_frame_write(serve.raw + 1, to, DIF_LINE_ANSWER - KTR_FRAME_TAIL + f.len);
	memcpy(serve.coded, serve.raw, serve.coded_len);
}

/* The bytes between two zero bytes. What is no sound request gets no answer, and false. */
static bool
serve_frame(void)
{
	size_t len = ktr_frame_decode(serve.frame, sizeof(serve.frame), serve.raw, serve.raw_len),
	       body;
	const uint8_t *p = serve.frame;

	if (ktr_frame_check(p, len, &body) != KTR_FRAME_SOUND || p[0] != DIF_LINE_REQUEST ||
	    body < 5)
		return false;
	if (serve.coded_len == 0 || ktr_little_u32(p + KTR_FRAME_HEAD) != serve.number)
		serve_answer(p + KTR_FRAME_HEAD, body);
	dif_port_send(serve.coded, serve.coded_len);
	return true;
}

bool
dif_serve_byte(uint8_t byte)
{
	if (byte == 0) { /* it ends a frame, or one begins */
		serve.inside = serve.raw_len == 0 || !serve_frame();
		serve.raw_len = 0;
		return true;
	}
	/* A stray zero byte costs the console two bytes. COBS has one before the type. */
	if (serve.raw_len == sizeof(serve.raw) || (serve.raw_len == 1 && byte != DIF_LINE_REQUEST))
		serve.inside = false;
	if (serve.inside)
		serve.raw[serve.raw_len++] = byte;
	return serve.inside;
}

void
dif_serve(const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dif_serve_byte(((const uint8_t *)bytes)[i]);
}
