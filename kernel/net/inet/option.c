/*
 * option.c - setsockopt and getsockopt of AF_INET: IPPROTO_IP and IPPROTO_TCP, and what lwIP needs
 * to know of SOL_SOCKET. Locking: inet_private.h.
 */
#include <lwip/ip.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/raw.h>
#include <lwip/udp.h>

#include "kernel/abi/errno.h"
#include "kernel/abi/poll.h"
#include "kernel/mm/uaccess.h"
#include "kernel/net/inet/inet_private.h"

#define TICK_US (TCP_SLOW_INTERVAL * 1000) /* lwIP's unit of times of retransmission */

/* The part with which all pcbs begin. NULL: the socket has no pcb. */
static struct ip_pcb *
common_pcb(struct inet_socket *s)
{
	return s->so.type == SOCK_STREAM ? (struct ip_pcb *)s->tcp.pcb
					 : (struct ip_pcb *)s->dgram.udp;
}

static void
apply_common(struct inet_socket *s)
{
	struct ip_pcb *pcb = common_pcb(s);

	if (pcb == NULL)
		return;
	pcb->so_options &= (uint8_t) ~(SOF_REUSEADDR | SOF_KEEPALIVE | SOF_BROADCAST);
	if (socket_has(&s->so, SO_REUSEADDR))
		ip_set_option(pcb, SOF_REUSEADDR);
	if (socket_has(&s->so, SO_KEEPALIVE))
		ip_set_option(pcb, SOF_KEEPALIVE);
	if (socket_has(&s->so, SO_BROADCAST))
		ip_set_option(pcb, SOF_BROADCAST);
}

void
inet_tcp_apply(struct inet_socket *s)
{
	struct tcp_pcb *pcb = s->tcp.pcb;

	apply_common(s);
	if (pcb == NULL)
		return;
	pcb->ttl = s->tcp.ttl != 0 ? s->tcp.ttl : IP_DEFAULT_TTL;
	pcb->tos = s->tcp.tos;
	if (s->tcp.listening)
		return;
	if (s->tcp.nodelay)
		tcp_nagle_disable(pcb);
	else
		tcp_nagle_enable(pcb);
	if (s->tcp.keep_idle != 0)
		pcb->keep_idle = s->tcp.keep_idle * 1000;
	if (s->tcp.keep_interval != 0)
		pcb->keep_intvl = s->tcp.keep_interval * 1000;
	if (s->tcp.keep_count != 0)
		pcb->keep_cnt = s->tcp.keep_count;
}

void
inet_option_changed(struct socket *so, int name)
{
	inet_lock();
	apply_common(inet_of(so));
	if (name == SO_SNDBUF || name == SO_SNDBUFFORCE)
		inet_changed(inet_of(so), POLLOUT);
	inet_unlock();
}

static int
set_tcp(struct inet_socket *s, int name, int32_t value)
{
	struct inet_tcp *t = &s->tcp;
	bool positive = value > 0 && value <= (name == TCP_KEEPCNT ? 127 : 32767);

	switch (name) {
	case TCP_NODELAY:
		t->nodelay = value != 0;
		break;
	case TCP_CORK:
		t->cork = value != 0;
		break;
	case TCP_KEEPIDLE:
	case TCP_KEEPINTVL:
	case TCP_KEEPCNT:
		if (!positive)
			return -EINVAL;
		*(name == TCP_KEEPIDLE    ? &t->keep_idle
		  : name == TCP_KEEPINTVL ? &t->keep_interval
					  : &t->keep_count) = (uint32_t)value;
		break;
	default:
		return -ENOPROTOOPT;
	}
	inet_tcp_apply(s);
	/* What waited for more goes now. */
	if (((name == TCP_CORK && !t->cork) || (name == TCP_NODELAY && t->nodelay)) &&
	    t->connected && t->pcb != NULL)
		tcp_output(t->pcb);
	return 0;
}

static int
set_ip(struct inet_socket *s, int name, int32_t value)
{
	bool stream = s->so.type == SOCK_STREAM;

	switch (name) {
	case IP_TTL:
		if (value != -1 && (value < 1 || value > 255))
			return -EINVAL;
		value = value == -1 ? IP_DEFAULT_TTL : value;
		*(stream ? &s->tcp.ttl : &s->dgram.udp->ttl) = (uint8_t)value;
		break;
	case IP_TOS:
		*(stream ? &s->tcp.tos : &s->dgram.udp->tos) = (uint8_t)value;
		break;
	case IP_HDRINCL:
		if (s->so.type != SOCK_RAW)
			return -ENOPROTOOPT;
		if (value != 0)
			raw_set_flags(s->dgram.raw, RAW_FLAGS_HDRINCL);
		else
			raw_clear_flags(s->dgram.raw, RAW_FLAGS_HDRINCL);
		return 0;
	default:
		return -ENOPROTOOPT;
	}
	if (stream)
		inet_tcp_apply(s);
	return 0;
}

int
inet_set_option(struct socket *so, int level, int name, uint64_t uvalue, uint32_t len)
{
	struct inet_socket *s = inet_of(so);
	int32_t value = 0;
	int error = -ENOPROTOOPT;

	if (len < sizeof(value) && (level != IPPROTO_IP || len < 1))
		return -EINVAL;
	if (copy_in(&value, uvalue, len < sizeof(value) ? 1 : sizeof(value)) != 0)
		return -EFAULT;
	inet_lock();
	if (level == IPPROTO_IP)
		error = set_ip(s, name, value);
	else if (level == IPPROTO_TCP && so->type == SOCK_STREAM)
		error = set_tcp(s, name, value);
	inet_unlock();
	return error;
}

/* The number that Linux gives a state (include/net/tcp_states.h). */
uint8_t
inet_tcp_state(const struct tcp_pcb *pcb)
{
	static const uint8_t of[] = {
	    [CLOSED] = 7,      [LISTEN] = 10,    [SYN_SENT] = 2,   [SYN_RCVD] = 3,
	    [ESTABLISHED] = 1, [FIN_WAIT_1] = 4, [FIN_WAIT_2] = 5, [CLOSE_WAIT] = 8,
	    [CLOSING] = 11,    [LAST_ACK] = 9,   [TIME_WAIT] = 6,
	};

	return of[pcb == NULL ? CLOSED : pcb->state];
}

static struct tcp_info
tcp_info_of(const struct inet_tcp *t)
{
	const struct tcp_pcb *pcb = t->pcb;
	struct tcp_info i = {.tcpi_state = inet_tcp_state(pcb)};

	if (pcb == NULL || t->listening)
		return i;
	i.tcpi_retransmits = pcb->nrtx;
	i.tcpi_rto = (uint32_t)pcb->rto * TICK_US;
	i.tcpi_rtt = (uint32_t)(pcb->sa >> 3) * TICK_US;
	i.tcpi_rttvar = (uint32_t)(pcb->sv >> 2) * TICK_US;
	i.tcpi_snd_mss = i.tcpi_rcv_mss = i.tcpi_advmss = pcb->mss;
	i.tcpi_unacked = pcb->snd_queuelen;
	i.tcpi_snd_ssthresh = pcb->ssthresh / (pcb->mss != 0 ? pcb->mss : 1);
	i.tcpi_snd_cwnd = pcb->cwnd / (pcb->mss != 0 ? pcb->mss : 1);
	i.tcpi_rcv_space = pcb->rcv_wnd;
	return i;
}

static int32_t
number_or(uint32_t set, uint32_t otherwise)
{
	return (int32_t)(set != 0 ? set : otherwise);
}

static int
get_tcp(struct inet_socket *s, int name, int32_t *value)
{
	const struct inet_tcp *t = &s->tcp;

	switch (name) {
	case TCP_NODELAY:
		*value = t->nodelay;
		return 0;
	case TCP_CORK:
		*value = t->cork;
		return 0;
	case TCP_MAXSEG:
		*value = t->pcb != NULL && !t->listening ? t->pcb->mss : TCP_MSS;
		return 0;
	case TCP_KEEPIDLE:
		*value = number_or(t->keep_idle, TCP_KEEPIDLE_DEFAULT / 1000);
		return 0;
	case TCP_KEEPINTVL:
		*value = number_or(t->keep_interval, TCP_KEEPINTVL_DEFAULT / 1000);
		return 0;
	case TCP_KEEPCNT:
		*value = number_or(t->keep_count, TCP_KEEPCNT_DEFAULT);
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int
get_ip(struct inet_socket *s, int name, int32_t *value)
{
	bool stream = s->so.type == SOCK_STREAM;

	switch (name) {
	case IP_TTL:
		*value = !stream           ? s->dgram.udp->ttl
			 : s->tcp.ttl != 0 ? s->tcp.ttl
					   : IP_DEFAULT_TTL;
		return 0;
	case IP_TOS:
		*value = stream ? s->tcp.tos : s->dgram.udp->tos;
		return 0;
	case IP_HDRINCL:
		if (s->so.type != SOCK_RAW)
			return -ENOPROTOOPT;
		*value = raw_is_flag_set(s->dgram.raw, RAW_FLAGS_HDRINCL) != 0;
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

int
inet_get_option(struct socket *so, int level, int name, uint64_t uvalue, uint64_t ulen)
{
	struct inet_socket *s = inet_of(so);
	bool stream = so->type == SOCK_STREAM;
	int32_t value = 0;
	struct tcp_info info;
	int error = -EOPNOTSUPP;

	inet_lock();
	if (level == IPPROTO_IP)
		error = get_ip(s, name, &value);
	else if (level == IPPROTO_TCP && stream && name == TCP_INFO)
		info = tcp_info_of(&s->tcp);
	else if (level == IPPROTO_TCP && stream)
		error = get_tcp(s, name, &value);
	else if (level == IPPROTO_UDP && so->type == SOCK_DGRAM && so->protocol == level)
		error = -ENOPROTOOPT;
	inet_unlock();
	if (level == IPPROTO_TCP && stream && name == TCP_INFO)
		return socket_put_option(uvalue, ulen, &info, sizeof(info));
	return error != 0 ? error : socket_put_option(uvalue, ulen, &value, sizeof(value));
}
