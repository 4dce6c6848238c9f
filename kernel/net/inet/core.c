/*
 * core.c - what lwIP stands on: its lock, its timers, random numbers.
 *
 * One mutex guards all of lwIP and all sockets over it. Whoever releases it first delivers what was
 * sent to this machine itself; what an interface answers through another one may wait for the next
 * who does, or for the timers. lwIP is never called in an interrupt.
 *
 * A thread calls lwIP's timers. It is made when they are first needed, and sleeps without an end
 * while no connection is open and the card has neither sent nor received for some time.
 */
#include "kernel/net/inet/core.h"

#include <lwip/etharp.h>
#include <lwip/init.h>
#include <lwip/ip4_frag.h>
#include <lwip/netif.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/sys.h>

#include "kernel/abi/errno.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/random.h"
#include "kernel/net/inet/probe.h"
#include "kernel/net/lwip/hooks.h"
#include "kernel/sched/mutex.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sched/thread.h"

#define TICK_NS    (TCP_TMR_INTERVAL * 1000000ul)
#define SLOW_TICKS (1000 / TCP_TMR_INTERVAL) /* of a second, for ARP and fragments */
#define USED_NS    (2 * IP_REASS_MAXAGE * 1000000000ul)
#define CLOSED_MAX 256 /* connections in the state TIME_WAIT; the oldest ones are forgotten */
#define CLOSED_FOR (10000 / TCP_SLOW_INTERVAL) /* each of them after 10 seconds */

static struct mutex inet_mutex = MUTEX_INIT("inet");

/* All guarded by inet_mutex. */
const struct netif *inet_loopback;
bool inet_delivering;
static bool started, have_thread, idle;
static bool (*card_poll)(void); /* takes what a card has received; NULL: there is no card */
static uint64_t used_until;     /* clock_ns() */
static uint32_t ticks;

static uint32_t wanted; /* atomic: the thread has something to do */

u32_t
sys_now(void)
{
	return (u32_t)(clock_ns() / 1000000);
}

void *
inet_calloc(size_t count, size_t size)
{
	return kzalloc(count * size); /* lwIP's counts are small */
}

uint32_t
inet_random(void)
{
	uint32_t n;

	random_bytes(&n, sizeof(n));
	return n;
}

void
inet_assert_locked(void)
{
	if (!mutex_held(&inet_mutex))
		panic("lwip is called without its lock");
}

static bool
timers_needed(void)
{
	return tcp_active_pcbs != NULL || tcp_tw_pcbs != NULL || clock_ns() < used_until;
}

/* Forgets the oldest connections: new ones are at the head of the list. */
static void
forget_closed(void)
{
	struct tcp_pcb *pcb = tcp_tw_pcbs, *next;

	for (unsigned n = 0; pcb != NULL; n++, pcb = next) {
		next = pcb->next;
		if (n >= CLOSED_MAX || tcp_ticks - pcb->tmr > CLOSED_FOR)
			tcp_abort(pcb);
	}
}

/*
 * lwIP 2.1.3 goes on probing the peer's window after the probe was acknowledged, and its
 * tcp_slowtmr() asserts that there is something to send. So this ends the probing by such
 * connections.
 */
static void
stop_probing(void)
{
	for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb != NULL; pcb = pcb->next)
		if (pcb->unsent == NULL || pcb->unacked != NULL)
			pcb->persist_backoff = 0;
}

static void
inet_tick(void)
{
	stop_probing();
	tcp_tmr();
	forget_closed();
	if (++ticks % SLOW_TICKS == 0) {
		etharp_tmr();
		ip_reass_tmr();
	}
}

static bool
nothing_wanted(void *arg)
{
	/* seq_cst: pairs with inet_wake(), which sets it and then looks for who sleeps */
	return __atomic_load_n(&wanted, __ATOMIC_SEQ_CST) == 0;
}

/* Does a turn: what a card has received, and the timers that are due. Returns when the next is. */
static uint64_t
inet_turn(uint64_t due)
{
	inet_lock();
	if (card_poll != NULL && card_poll())
		__atomic_store_n(&wanted, 1, __ATOMIC_SEQ_CST);
	if (idle)
		due = clock_ns() + TICK_NS;
	if (clock_ns() >= due) {
		inet_tick();
		due = clock_ns() + TICK_NS;
	}
	idle = !timers_needed();
	if (idle)
		due = DEADLINE_NEVER;
	inet_unlock();
	return due;
}

static void
inet_thread(void *arg)
{
	uint64_t due = clock_ns() + TICK_NS;

	for (;;) {
		due = inet_turn(due);
		sleepq_wait(&(struct sleep_request){.chan = &wanted,
						    .still = nothing_wanted,
						    .wmesg = "netidle",
						    .deadline_ns = due});
		__atomic_store_n(&wanted, 0, __ATOMIC_SEQ_CST);
	}
}

void
inet_wake(void)
{
	__atomic_store_n(&wanted, 1, __ATOMIC_SEQ_CST);
	wakeup(&wanted);
}

static void
timers_start(void)
{
	if (!have_thread)
		have_thread = thread_create("net", PRIO_KERN, inet_thread, NULL) != NULL;
	else if (idle)
		inet_wake();
}

void
inet_set_card(bool (*poll)(void))
{
	card_poll = poll;
	timers_start();
}

/* lwIP calls this for each connection that begins. */
void
tcp_timer_needed(void)
{
	timers_start();
}

void
inet_used(void)
{
	used_until = clock_ns() + USED_NS;
	timers_start();
}

/* Sends to the loopback's other addresses; ip4.c knows its first one itself (lwip/hooks.h). */
static err_t
loop_output(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
	return inet_loop_output(netif, p);
}

static void
inet_start(void)
{
	struct netif *lo;

	started = true;
	lwip_init();
	lo = netif_get_by_index(1);
	lo->output = loop_output;
	inet_loopback = lo;
	/* Packets that never left the machine need no checksum; ping and raw sockets see those of
	 * IP and ICMP. */
	NETIF_SET_CHECKSUM_CTRL(lo, NETIF_CHECKSUM_GEN_IP | NETIF_CHECKSUM_CHECK_IP |
					NETIF_CHECKSUM_GEN_ICMP | NETIF_CHECKSUM_CHECK_ICMP);
}

void
inet_lock(void)
{
	mutex_lock(&inet_mutex);
	if (!started)
		inet_start();
}

/* What was sent to this machine itself arrives. */
static void
deliver_loopback(void)
{
	inet_delivering = true;
	netif_poll_all();
	inet_delivering = false;
	inet_tcp_watch(NULL);
}

void
inet_unlock(void)
{
	deliver_loopback();
	mutex_unlock(&inet_mutex);
}

int
inet_wait(struct cond *c, const char *wmesg, uint64_t deadline_ns)
{
	uint32_t seq = __atomic_load_n(&c->seq, __ATOMIC_RELAXED);

	deliver_loopback();
	if (__atomic_load_n(&c->seq, __ATOMIC_RELAXED) != seq)
		return 0; /* what was delivered is what the caller waits for */
	return cond_wait(c, &inet_mutex, wmesg, SLEEP_INTR, deadline_ns);
}

int
inet_errno(int8_t err)
{
	static const uint8_t of[] = {
	    [-ERR_MEM] = ENOMEM,
	    [-ERR_BUF] = ENOBUFS,
	    [-ERR_TIMEOUT] = ETIMEDOUT,
	    [-ERR_RTE] = ENETUNREACH,
	    [-ERR_INPROGRESS] = EINPROGRESS,
	    [-ERR_VAL] = EINVAL,
	    [-ERR_WOULDBLOCK] = EAGAIN,
	    [-ERR_USE] = EADDRINUSE,
	    [-ERR_ALREADY] = EALREADY,
	    [-ERR_ISCONN] = EISCONN,
	    [-ERR_CONN] = ENOTCONN,
	    [-ERR_IF] = ENETDOWN,
	    [-ERR_ABRT] = ECONNABORTED,
	    [-ERR_RST] = ECONNRESET,
	    [-ERR_CLSD] = ENOTCONN,
	    [-ERR_ARG] = EINVAL,
	};

	return err < 0 && -err < (int)sizeof(of) ? -of[-err] : err < 0 ? -EIO : 0;
}
