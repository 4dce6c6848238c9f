/*
 * tcp_guard.c - what lwIP must not see of a segment: it answers some without end, and asserts that
 * others do not come. lwIP calls it after inet_tcp_heard() (lwip/hooks.h). Locking: core.h.
 */
#include <lwip/priv/tcp_priv.h>

#include "kernel/lib/string.h"
#include "kernel/net/inet/inet_private.h"
#include "kernel/net/lwip/hooks.h"

#define STRAYS_MAX 32 /* stray segments that a pcb answers in one slow tick */

/*
 * lwIP answers each empty segment outside of its window. Two ends that disagree about their numbers
 * would answer each other for ever, and on the loopback nothing else would go on meanwhile. Each of
 * those answers acknowledges the same bytes as the last. A segment that acknowledges more is not
 * such an answer: an honest peer that has used up the window sends one, with a number after the
 * window, and lwIP takes that.
 */
static bool
is_one_stray_more(struct tcp_pcb *pcb, const struct tcp_hdr *h)
{
	uintptr_t tick = (uintptr_t)tcp_ticks << 8;
	uintptr_t strays = (uintptr_t)pcb->ext_args[EXT_STRAYS].data; /* the tick, and how many */

	if ((TCPH_FLAGS(h) & TCP_RST) ||
	    TCP_SEQ_BETWEEN(h->ackno, pcb->lastack + 1, pcb->snd_nxt) ||
	    TCP_SEQ_BETWEEN(h->seqno, pcb->rcv_nxt, pcb->rcv_nxt + pcb->rcv_wnd - 1))
		return false;
	if ((strays ^ tick) >> 8 != 0)
		strays = tick;
	if ((strays & 0xff) == STRAYS_MAX)
		return true;
	pcb->ext_args[EXT_STRAYS].data = (void *)(strays + 1);
	return false;
}

/*
 * Would lwIP keep more out of order than it may? It asserts that this fits into the window when the
 * hole before it is filled, but checks only a part when a segment comes. No honest peer sends more
 * than fits; an end of the stream may be one number beyond.
 */
static bool
is_kept_too_long(const struct tcp_pcb *pcb, const struct tcp_hdr *h, uint32_t length)
{
	uint32_t edge = pcb->rcv_nxt + pcb->rcv_wnd;

	return TCP_SEQ_BETWEEN(h->seqno, pcb->rcv_nxt + 1, edge - 1) &&
	       TCP_SEQ_GT(h->seqno + length, edge);
}

/*
 * Does the segment have bytes after the end of the stream, while that end waits out of order? lwIP
 * would put the end after these bytes, perhaps outside of the window. Nothing is kept after an
 * end.
 */
static bool
is_past_the_end(const struct tcp_pcb *pcb, const struct tcp_hdr *h, uint32_t bytes)
{
	const struct tcp_seg *last = pcb->ooseq;

	if (last == NULL)
		return false;
	while (last->next != NULL)
		last = last->next;
	return (TCPH_FLAGS(last->tcphdr) & TCP_FIN) &&
	       TCP_SEQ_GT(h->seqno + bytes, last->tcphdr->seqno + last->len);
}

err_t
inet_tcp_admit(struct tcp_pcb *pcb, struct tcp_hdr *h, const struct tcp_options *o,
	       const struct pbuf *p)
{
	uint32_t length = p->tot_len + ((TCPH_FLAGS(h) & (TCP_SYN | TCP_FIN)) != 0);

	/*
	 * lwIP would take a largest segment size from any segment, and asserts that no segment that
	 * waits to be sent is larger. It knows no other option. So only a SYN keeps its options.
	 */
	if (!(TCPH_FLAGS(h) & TCP_SYN)) {
		memset(h + 1, LWIP_TCP_OPT_NOP, o->first);
		if (o->rest != NULL)
			memset(o->rest, LWIP_TCP_OPT_NOP, o->all - o->first);
	}
	if (pcb->state < SYN_RCVD || pcb->state == TIME_WAIT)
		return ERR_OK; /* the pcb has no window yet, or none any more */
	if (length == 0)
		return is_one_stray_more(pcb, h) ? ERR_VAL : ERR_OK;
	return is_kept_too_long(pcb, h, length) || is_past_the_end(pcb, h, p->tot_len) ? ERR_VAL
										       : ERR_OK;
}
