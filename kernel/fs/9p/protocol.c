/* protocol.c - messages of 9P2000.L (9p.h). */
#include "kernel/abi/errno.h"
#include "kernel/fs/9p/9p.h"
#include "kernel/lib/string.h"

#define ERRNO_MAX 133 /* Linux's */

static bool
p9pdu_put_number(struct p9_fcall *pdu, uint64_t v, unsigned bytes)
{
	if (bytes > pdu->capacity - pdu->size)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		pdu->sdata[pdu->size++] = (uint8_t)(v >> 8 * i);
	return true;
}

static bool
p9pdu_put_text(struct p9_fcall *pdu, const char *s)
{
	size_t n = strlen(s);

	if (n > UINT16_MAX || !p9pdu_put_number(pdu, n, 2) || n > pdu->capacity - pdu->size)
		return false;
	memcpy(pdu->sdata + pdu->size, s, n);
	pdu->size += (uint32_t)n;
	return true;
}

bool
p9pdu_vwritef(struct p9_fcall *pdu, const char *fmt, va_list ap)
{
	bool good = true;

	for (; *fmt != '\0' && good; fmt++) {
		if (*fmt == 's')
			good = p9pdu_put_text(pdu, va_arg(ap, const char *));
		else if (*fmt == 'q')
			good = p9pdu_put_number(pdu, va_arg(ap, uint64_t), 8);
		else
			good = p9pdu_put_number(pdu, va_arg(ap, uint32_t),
						*fmt == 'b'   ? 1
						: *fmt == 'w' ? 2
							      : 4);
	}
	return good;
}

bool
p9pdu_writef(struct p9_fcall *pdu, const char *fmt, ...)
{
	va_list ap;
	bool good;

	va_start(ap, fmt);
	good = p9pdu_vwritef(pdu, fmt, ap);
	va_end(ap);
	return good;
}

void
p9pdu_prepare(struct p9_fcall *pdu, uint8_t type, uint16_t tag)
{
	pdu->size = pdu->offset = 0;
	p9pdu_writef(pdu, "dbw", 0u, (uint32_t)type, (uint32_t)tag);
}

void
p9pdu_finalize(struct p9_fcall *pdu)
{
	uint32_t size = pdu->size;

	pdu->size = 0;
	p9pdu_put_number(pdu, size, 4);
	pdu->size = size;
}

static bool
p9pdu_get_number(struct p9_fcall *pdu, uint64_t *v, unsigned bytes)
{
	*v = 0;
	if (bytes > pdu->size - pdu->offset)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		*v |= (uint64_t)pdu->sdata[pdu->offset++] << 8 * i;
	return true;
}

static bool
p9pdu_get_text(struct p9_fcall *pdu, char *to, size_t room)
{
	uint64_t n;

	if (!p9pdu_get_number(pdu, &n, 2) || n > pdu->size - pdu->offset || n >= room)
		return false;
	memcpy(to, pdu->sdata + pdu->offset, n);
	to[n] = '\0';
	pdu->offset += (uint32_t)n;
	return strlen(to) == n;
}

static bool
p9pdu_get_stat(struct p9_fcall *pdu, struct p9_stat_dotl *st)
{
	uint64_t valid;

	return p9pdu_readf(pdu, "qQdddqqqqqqqqqqq", &valid, &st->qid, &st->mode, &st->uid, &st->gid,
			   &st->nlink, &st->rdev, &st->size, &st->blksize, &st->blocks,
			   &st->atime_sec, &st->atime_nsec, &st->mtime_sec, &st->mtime_nsec,
			   &st->ctime_sec, &st->ctime_nsec) &&
	       (valid & P9_STATS_BASIC) == P9_STATS_BASIC;
}

bool
p9pdu_readf(struct p9_fcall *pdu, const char *fmt, ...)
{
	uint64_t v = 0;
	bool good = true;
	va_list ap;

	va_start(ap, fmt);
	for (; *fmt != '\0' && good; fmt++) {
		void *to = va_arg(ap, void *);
		struct p9_qid *qid = to;

		switch (*fmt) {
		case 'b':
			good = p9pdu_get_number(pdu, &v, 1);
			*(uint8_t *)to = (uint8_t)v;
			break;
		case 'w':
			good = p9pdu_get_number(pdu, &v, 2);
			*(uint16_t *)to = (uint16_t)v;
			break;
		case 'd':
			good = p9pdu_get_number(pdu, &v, 4);
			*(uint32_t *)to = (uint32_t)v;
			break;
		case 'q':
			good = p9pdu_get_number(pdu, (uint64_t *)to, 8);
			break;
		case 's':
			good = p9pdu_get_text(pdu, to, va_arg(ap, size_t));
			break;
		case 'Q':
			good = p9pdu_readf(pdu, "bdq", &qid->type, &qid->version, &qid->path);
			break;
		case 'A':
			good = p9pdu_get_stat(pdu, to);
			break;
		default: /* r */
			good = v <= pdu->size - pdu->offset;
			*(const uint8_t **)to = pdu->sdata + pdu->offset;
			break;
		}
	}
	va_end(ap);
	return good;
}

int
p9_check_reply(struct p9_fcall *pdu, uint32_t length, uint8_t type, uint16_t tag)
{
	uint64_t size, found_type, found_tag, error;

	pdu->offset = 0;
	pdu->size = length < pdu->capacity ? length : pdu->capacity;
	if (!p9pdu_get_number(pdu, &size, 4) || !p9pdu_get_number(pdu, &found_type, 1) ||
	    !p9pdu_get_number(pdu, &found_tag, 2) || size < P9_HDRSZ || size > pdu->size ||
	    found_tag != tag)
		return -EPROTO;
	pdu->size = (uint32_t)size;
	if (found_type == P9_RLERROR && p9pdu_get_number(pdu, &error, 4))
		return error > 0 && error <= ERRNO_MAX ? -(int)error : -EIO;
	return found_type == type + 1u ? 0 : -EPROTO;
}

bool
p9_good_name(const char *name)
{
	return *name != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

bool
p9dirent_read(struct p9_fcall *pdu, struct p9_dirent *d)
{
	return p9pdu_readf(pdu, "Qqbs", &d->qid, &d->off, &d->type, d->name, sizeof(d->name));
}
