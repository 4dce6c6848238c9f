/*
 * tcp_guard.c - what lwIP must not see of a segment: it answers some without end, and asserts that
 * others do not come. lwIP calls it after inet_tcp_heard() (lwip/hooks.h). Locking: core.h.
 */
#include <lwip/priv/tcp_priv.h>

#include "kernel/lib/string.h"
#include "kernel/net/inet/inet_private.h"
#include "kernel/net/lwip/hooks.h"

#define STRAYS_MAX 32 /* that a pcb answers in one slow tick */

/*
 * lwIP answers each empty segment outside of its window. Two ends which disagree about their
 * numbers would answer each other for ever, and on the loopback nothing else would go on meanwhile.
 */
static bool
is_one_stray_more(struct tcp_pcb *pcb, const struct tcp_hdr *h)
{
	uintptr_t tick = (uintptr_t)tcp_ticks << 8;
	uintptr_t strays = (uintptr_t)pcb->ext_args[EXT_STRAYS].data; /* the tick, and how many */

	if ((TCPH_FLAGS(h) & TCP_RST) ||
	    TCP_SEQ_BETWEEN(h->seqno, pcb->rcv_nxt, pcb->rcv_nxt + pcb->rcv_wnd - 1))
		return false;
	if ((strays ^ tick) >> 8 != 0)
		strays = tick;
	if ((strays & 0xff) == STRAYS_MAX)
		return true;
	pcb->ext_args[EXT_STRAYS].data = (void *)(strays + 1);
	return false;
}

err_t
inet_tcp_admit(struct tcp_pcb *pcb, const struct tcp_hdr *h, const struct pbuf *p)
{
	bool counts = (TCPH_FLAGS(h) & (TCP_SYN | TCP_FIN)) != 0;
	uint32_t length = p->tot_len + counts;

	if (pcb->state < SYN_RCVD || pcb->state == TIME_WAIT)
		return ERR_OK; /* it has no window yet, or none any more */
	return length == 0 && is_one_stray_more(pcb, h) ? ERR_VAL : ERR_OK;
}
