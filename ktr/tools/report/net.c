/*
 * net.c - the report net: connections of TCP, from the events of class INET.
 *
 * A round trip is from a segment's first sending until the peer acknowledges its last byte. One at
 * a time is measured, and none of a segment that was sent again (RFC 6298, 3 and 4).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ktr/param.h"
#include "ktr/tools/memory.h"
#include "ktr/tools/report/report.h"

#define CONNECTIONS_MAX 4096u /* when there are so many, all are forgotten */
#define NAME_BYTES      32u
#define TH_FIN          1u
#define TH_SYN          2u
#define TH_ACK          16u

/* What has happened, and the parameters that tell it. */
enum { NET_SEND, NET_RECEIVE, NET_STATE, NET_KINDS };
static const struct {
	const char *begins;
	const char *params[6];
} kinds[NET_KINDS] = {
    [NET_SEND] = {"tcp send: ", {"pcb", "seq", "ack", "flags", "bytes", "again"}},
    [NET_RECEIVE] = {"tcp receive: ", {"pcb", "seq", "ack", "flags", "bytes", "window"}},
    [NET_STATE] = {"tcp state: ", {"pcb", "state", "local", "lport", "remote", "rport"}},
};
enum { PCB, SEQ, ACK, FLAGS, BYTES, AGAIN, STATE = SEQ, LOCAL = ACK, LPORT, REMOTE, RPORT };

/* One end of a connection. */
struct net_end {
	uint64_t pcb;
	char local[NAME_BYTES], remote[NAME_BYTES];
	bool measured;
	uint32_t end; /* the number after the segment's */
	uint64_t sent_ns;
};

static struct ktr_map by_pcb;
static const struct ktr_decode_site *other; /* the last site that is none of these kinds */

static void
ends_forget(void)
{
	for (size_t i = 0; i < by_pcb.size; i++)
		free(by_pcb.pairs[i].value);
	ktr_map_free(&by_pcb);
}

/* NULL: no memory. */
static struct net_end *
end_of(struct report *r, uint64_t pcb)
{
	struct net_end *n = ktr_map_get(&by_pcb, pcb);
	if (n != NULL)
		return n;
	if (by_pcb.used >= CONNECTIONS_MAX)
		ends_forget();
	if (by_pcb.realloc == NULL)
		by_pcb = memory_map();
	n = calloc(1, sizeof(*n));
	if (n == NULL || !ktr_map_put(&by_pcb, pcb, n)) {
		free(n);
		report_no_memory(r);
		return NULL;
	}
	n->pcb = pcb;
	if (pcb == 0)
		snprintf(n->local, sizeof(n->local), "(no connection)");
	else
		snprintf(n->local, sizeof(n->local), "(pcb 0x%" PRIx64 ")", pcb);
	return n;
}

static void
name_make(char name[NAME_BYTES], uint64_t ip, uint64_t port)
{
	snprintf(name, NAME_BYTES, "%u.%u.%u.%u:%u", (unsigned)(ip & 255),
		 (unsigned)(ip >> 8 & 255), (unsigned)(ip >> 16 & 255), (unsigned)(ip >> 24 & 255),
		 (unsigned)port);
}

static void
net_sample(struct report *r, const struct export_event *ev, const struct net_end *n,
	   enum report_kind kind, uint64_t value, bool again)
{
	struct report_sample s = {.kind = kind,
				  .from_ns = kind == SAMPLE_ROUND_TRIP ? n->sent_ns : ev->ns,
				  .to_ns = ev->ns,
				  .untimed = kind != SAMPLE_ROUND_TRIP,
				  .text = n->local,
				  .more = n->remote,
				  .value = value,
				  .moved = again};
	if (ev->passes && report_cut(r, &s.from_ns, ev->ns))
		report_add(r, &s);
}

static void
net_sent(struct report *r, const struct export_event *ev, struct net_end *n, const uint64_t v[6])
{
	uint32_t length =
	    (uint32_t)(v[BYTES] + (v[FLAGS] & TH_SYN ? 1 : 0) + (v[FLAGS] & TH_FIN ? 1 : 0));
	net_sample(r, ev, n, SAMPLE_SENT, v[BYTES], v[AGAIN] != 0);
	if (v[AGAIN] != 0) {
		n->measured = false;
	} else if (length > 0 && !n->measured) {
		n->measured = true;
		n->end = (uint32_t)v[SEQ] + length;
		n->sent_ns = ev->ns;
	}
}

static void
net_received(struct report *r, const struct export_event *ev, struct net_end *n,
	     const uint64_t v[6])
{
	net_sample(r, ev, n, SAMPLE_RECEIVED, v[BYTES], false);
	if (n->measured && (v[FLAGS] & TH_ACK) && (int32_t)((uint32_t)v[ACK] - n->end) >= 0) {
		net_sample(r, ev, n, SAMPLE_ROUND_TRIP, 0, false);
		n->measured = false;
	}
}

static void
net_changed(struct net_end *n, const char *state, const uint64_t v[6])
{
	if (state != NULL && strcmp(state, "CLOSE") == 0) {
		ktr_map_remove(&by_pcb, n->pcb);
		free(n);
		return;
	}
	name_make(n->local, v[LOCAL], v[LPORT]);
	name_make(n->remote, v[REMOTE], v[RPORT]);
}

/* The kind of an event, with its parameters in our order. NET_KINDS: none. */
static unsigned
kind_of(const struct ktr_decode_event *e, uint64_t v[6])
{
	struct ktr_param params[KTR_PARAM_MAX];
	unsigned kind = 0;
	while (kind < NET_KINDS &&
	       strncmp(e->site->fmt, kinds[kind].begins, strlen(kinds[kind].begins)) != 0)
		kind++;
	if (kind == NET_KINDS)
		return kind;
	ktr_params_scan(e->site->fmt, params, e->nargs);
	for (unsigned i = 0; i < 6; i++) {
		unsigned at = 0;
		while (at < e->nargs && strcmp(params[at].name, kinds[kind].params[i]) != 0)
			at++;
		if (at == e->nargs)
			return NET_KINDS;
		v[i] = ktr_param_value(&params[at], e->args[at]);
	}
	return kind;
}

void
report_net_event(struct report *r, const struct export_event *ev)
{
	const struct ktr_decode_event *e = ev->e;
	uint64_t v[6];
	if (e->site == NULL || e->site == other || e->nargs > 6)
		return;
	unsigned kind = kind_of(e, v);
	if (kind == NET_KINDS) {
		other = e->site;
		return;
	}
	struct net_end *n = end_of(r, v[PCB]);
	if (n == NULL)
		return;
	if (kind == NET_SEND)
		net_sent(r, ev, n, v);
	else if (kind == NET_RECEIVE)
		net_received(r, ev, n, v);
	else
		net_changed(n, e->strings[STATE], v);
}

/* An acknowledgement may be among what was lost. */
void
report_net_lost(void)
{
	for (size_t i = 0; i < by_pcb.size; i++) {
		struct net_end *n = by_pcb.pairs[i].value;
		if (n != NULL)
			n->measured = false;
	}
}

void
report_net_end(void)
{
	ends_forget();
	other = NULL;
}
