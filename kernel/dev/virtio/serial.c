/* serial.c - a console of virtio: the device, its control queues, its ports (serial.h). */
#include "kernel/dev/virtio/serial.h"

#include "arch/mmu.h"
#include "kernel/abi/errno.h"
#include "kernel/abi/poll.h"
#include "kernel/dev/virtio/virtio.h"
#include "kernel/lib/clock.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/page.h"
#include "kernel/sched/sleepq.h"
#include "kernel/sync/stop.h"

#define F_MULTIPORT     (1ul << 1)
#define MAX_PORTS       4 /* of the device's registers (5.3.4) */
#define REGISTERS       8
#define CONTROL_RX      2
#define CONTROL_TX      3
#define CONTROL_BUFFERS 16
#define CONTROL_BYTES   (PAGE_SIZE / CONTROL_BUFFERS)
#define WAIT_NS         20000000ull /* for the first port, at boot; QEMU may need a moment */

static struct {
	struct virtio dev;
	struct spinlock lock;        /* [s] */
	struct virtio_ring rx, tx;   /* [s] of control */
	char *rx_buffer, *tx_buffer; /* [s] a page each, CONTROL_BYTES a buffer */
	unsigned tx_used;            /* [s] buffers of tx that the driver has used once at least */
	bool broken;                 /* atomic: it is not used any more */
	bool told;                   /* atomic: … and its users know */
	bool complained;             /* [s] of a wrong message */
	unsigned added;              /* [s] atomic: bit n: port n, which is not made yet */
	unsigned ports;              /* constant */
	struct vport port[VPORT_MAX];
} serial = {.lock = SPINLOCK_INIT("virtio-serial")};

/* The ring of what comes at a port; that of what is sent is the next one (5.3.2). */
static unsigned
rx_ring(unsigned port)
{
	return port == 0 ? 0 : 2 + 2 * port;
}

_Static_assert(2 + 2 * VPORT_MAX <= VIRTIO_RINGS, "all rings have a place for notifications");

/* Who waits for the port looks again. */
static void
tell_users(struct vport *p)
{
	__atomic_fetch_add(&p->events, 1, __ATOMIC_SEQ_CST);
	if (stop_inside())
		return; /* nobody else runs */
	wakeup(p);
	poll_notify(&p->news, POLLIN | POLLOUT);
}

/*
 * Sets the device aside, and tells its users. If the machine is stopped (the device broke a ring in
 * a step of the debugger), the first caller of is_lost() afterwards tells them; until then, those
 * who sleep go on sleeping.
 */
static void
serial_break(void)
{
	__atomic_store_n(&serial.broken, true, __ATOMIC_SEQ_CST);
	if (stop_inside() || __atomic_exchange_n(&serial.told, true, __ATOMIC_SEQ_CST))
		return;
	virtio_stop(&serial.dev, "it broke a ring");
	for (unsigned i = 0; i < serial.ports; i++)
		tell_users(&serial.port[i]);
}

static bool
is_lost(const struct vport *p)
{
	bool broken = __atomic_load_n(&serial.broken, __ATOMIC_RELAXED);

	if (broken)
		serial_break();
	return broken || !__atomic_load_n(&p->there, __ATOMIC_ACQUIRE);
}

bool
vport_is_open(const struct vport *p)
{
	return __atomic_load_n(&p->host_open, __ATOMIC_ACQUIRE);
}

/* ---- control ---- */

/* Says once what is wrong, however often it is. The spin lock held. */
static void
serial_complain(const char *what)
{
	if (!serial.complained)
		pr_warn("virtio-serial: %s\n", what);
	serial.complained = true;
}

/*
 * Sends a message. False: the device has all buffers. It will interrupt when it returns one, and
 * take_messages() tries again. The spin lock held.
 */
static bool
send_control(uint32_t port, enum virtio_control_event event, uint16_t value)
{
	const struct virtio_control m = {port, (uint16_t)event, value};
	unsigned most = serial.tx.size < CONTROL_BUFFERS ? serial.tx.size : CONTROL_BUFFERS;
	uint32_t length;
	int i = virtio_ring_take(&serial.tx, &length);

	if (i == -1 && serial.tx_used < most)
		i = (int)serial.tx_used++;
	if (i == -1) {
		virtio_ring_listen(&serial.tx, true);
		i = virtio_ring_take(&serial.tx, &length);
	}
	if (i == -2)
		serial_break();
	if (i < 0)
		return false;
	memcpy(serial.tx_buffer + (unsigned)i * CONTROL_BYTES, &m, sizeof(m));
	virtio_ring_describe(&serial.tx, (unsigned)i,
			     virt_to_phys(serial.tx_buffer + (unsigned)i * CONTROL_BYTES),
			     sizeof(m), false);
	virtio_ring_give(&serial.tx, (unsigned)i, sizeof(m));
	virtio_notify(&serial.dev, CONTROL_TX);
	return true;
}

/* Tells the host whether somebody in the guest has the port open, if it does not know. The spin
 * lock held. */
static void
tell_host(struct vport *p)
{
	bool open = __atomic_load_n(&p->opens, __ATOMIC_RELAXED) > 0;

	if (!is_lost(p) && p->told != open &&
	    send_control(p->number, VIRTIO_CONSOLE_PORT_OPEN, open))
		p->told = open;
}

/* Allocates the port's memory. False: there is none left. */
static bool
make_port_buffers(struct vport *p)
{
	for (unsigned i = 0; i < VPORT_TX_BUFFERS; i++) {
		if (p->tx_buffer[i] == NULL)
			p->tx_buffer[i] = page_alloc_zero(PAGE_OTHER);
		if (p->tx_buffer[i] == NULL)
			return false;
		if (i < p->tx.size)
			virtio_ring_describe(&p->tx, i, virt_to_phys(p->tx_buffer[i]), PAGE_SIZE,
					     false);
	}
	for (unsigned i = 0; i < VPORT_RX_BUFFERS; i++) {
		bool made = p->rx_buffer[i] != NULL;

		if (!made)
			p->rx_buffer[i] = page_alloc_zero(PAGE_OTHER);
		if (p->rx_buffer[i] == NULL)
			return false;
		if (made || i >= p->rx.size)
			continue;
		virtio_ring_describe(&p->rx, i, virt_to_phys(p->rx_buffer[i]), PAGE_SIZE, true);
		virtio_ring_give(&p->rx, i, PAGE_SIZE);
	}
	return true;
}

/* The device has added a port. The spin lock held, and not inside a stop. */
static void
add_port(struct vport *p)
{
	bool good = make_port_buffers(p);

	if (!good)
		serial_complain("no memory for a port");
	if (!send_control(p->number, VIRTIO_CONSOLE_PORT_READY, good))
		return;
	__atomic_fetch_and(&serial.added, ~(1u << p->number), __ATOMIC_RELAXED);
	if (!good)
		return;
	p->told = false;
	__atomic_store_n(&p->there, true, __ATOMIC_RELEASE);
	virtio_notify(&serial.dev, rx_ring(p->number));
	tell_users(p);
}

/* The spin lock held. */
static void
handle_message(const struct virtio_control *m, const char *name)
{
	struct vport *p = m->port < serial.ports ? &serial.port[m->port] : NULL;

	if (p == NULL) {
		serial_complain("the number of a port is too high");
		return;
	}
	switch (m->event) {
	case VIRTIO_CONSOLE_DEVICE_ADD:
		if (p->there)
			serial_complain("a port is there already");
		else
			__atomic_fetch_or(&serial.added, 1u << m->port, __ATOMIC_RELAXED);
		break;
	case VIRTIO_CONSOLE_DEVICE_REMOVE:
		__atomic_fetch_and(&serial.added, ~(1u << m->port), __ATOMIC_RELAXED);
		p->name[0] = '\0';
		__atomic_store_n(&p->host_open, false, __ATOMIC_RELEASE);
		__atomic_store_n(&p->there, false, __ATOMIC_RELEASE);
		__atomic_fetch_add(&p->closings, 1, __ATOMIC_RELEASE);
		break;
	case VIRTIO_CONSOLE_PORT_OPEN:
		if (m->value == 0)
			__atomic_fetch_add(&p->closings, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&p->host_open, m->value != 0, __ATOMIC_RELEASE);
		break;
	case VIRTIO_CONSOLE_PORT_NAME:
		strlcpy(p->name, name, sizeof(p->name));
		break;
	default: /* consoles and their sizes */
		break;
	}
	tell_users(p);
}

/* Takes the messages that have come, a ring of them at most, and sends those that are due. */
static void
take_messages(void)
{
	bool broken = false;

	if (!stop_inside())
		spin_lock(&serial.lock);
	else if (!spin_trylock(&serial.lock))
		return; /* its holder has stopped */
	for (unsigned n = 0; n < CONTROL_BUFFERS && !serial.broken; n++) {
		struct virtio_control m;
		char name[VIRTIO_PORT_NAME];
		uint32_t length;
		int i = virtio_ring_take(&serial.rx, &length);

		broken = i == -2;
		if (i < 0)
			break;
		if (virtio_control_read(serial.rx_buffer + (unsigned)i * CONTROL_BYTES, length,
					serial.ports, &m, name))
			handle_message(&m, name);
		else
			serial_complain("a message is too short, or of no port");
		virtio_ring_give(&serial.rx, (unsigned)i, CONTROL_BYTES);
		virtio_notify(&serial.dev, CONTROL_RX);
	}
	virtio_ring_listen(&serial.tx, false);
	for (unsigned i = 0; i < serial.ports; i++) {
		if ((serial.added & 1u << i) && !stop_inside())
			add_port(&serial.port[i]);
		tell_host(&serial.port[i]);
	}
	spin_unlock(&serial.lock);
	if (broken)
		serial_break();
}

static void
serial_interrupt(void *arg)
{
	take_messages();
	for (unsigned i = 0; i < serial.ports; i++) {
		struct vport *p = &serial.port[i];

		if (!__atomic_load_n(&p->there, __ATOMIC_ACQUIRE))
			continue;
		virtio_ring_listen(&p->tx, false); /* who still waits for room asks again */
		tell_users(p);
	}
}

/* ---- ports ---- */

struct vport *
vport_get(unsigned n)
{
	return n < serial.ports ? &serial.port[n] : NULL;
}

struct vport *
vport_find(const char *file, const char *name)
{
	for (struct vport *p = serial.port; p < serial.port + serial.ports; p++)
		if (p->there &&
		    strcmp(file != NULL ? p->file : p->name, file != NULL ? file : name) == 0)
			return p;
	return NULL;
}

void
vport_count_openers(struct vport *p, int more)
{
	__atomic_store_n(&p->opens, p->opens + (unsigned)more, __ATOMIC_RELAXED);
	spin_lock(&serial.lock);
	tell_host(p);
	spin_unlock(&serial.lock);
}

/* The kernel takes or gives the sending side; who waits for it looks again. */
static void
count_takers(struct vport *p, int more)
{
	mutex_lock(&p->lock);
	if (p->taken == 0 || more < 0)
		p->tx_batch = 0; /* the buffers that the device still has are another's */
	p->taken += (unsigned)more;
	vport_count_openers(p, more);
	mutex_unlock(&p->lock);
	tell_users(p);
}

void
vport_take(struct vport *p)
{
	count_takers(p, 1);
}

void
vport_give(struct vport *p)
{
	count_takers(p, -1);
}

/* Takes back the buffers that the device has returned. False: it broke the ring. */
static bool
take_buffers(struct vport *p)
{
	uint32_t length;
	int i;

	while ((i = virtio_ring_take(&p->tx, &length)) >= 0) {
		bool ours = (unsigned)i < VPORT_TX_BUFFERS && !p->tx_old[i];

		if ((unsigned)i < VPORT_TX_BUFFERS)
			p->tx_old[i] = false;
		p->tx_out -= ours;
	}
	return i != -2;
}

/* The device has gone on to later buffers than the old ones that it has not returned. */
static void
forget_old(struct vport *p)
{
	for (unsigned i = 0; i < VPORT_TX_BUFFERS; i++) {
		if (p->tx_old[i])
			virtio_ring_forget(&p->tx, i);
		p->tx_old[i] = false;
	}
}

/*
 * The other end was closed: the batch counts as not sent, though the device has returned most of
 * its buffers. Either the device has forgotten the others; or it returns them later, if the end was
 * opened again and got the batch before we saw that it had been closed. So these buffers are not
 * used for now.
 */
static void
end_batch(struct vport *p)
{
	if (p->tx_out > 0) {
		forget_old(p);
		for (unsigned i = 0; i < VPORT_TX_BUFFERS && i < p->tx.size; i++)
			p->tx_old[i] = p->tx.device_has[i];
	}
	p->tx_out = 0;
	p->tx_batch = 0;
}

/* Takes messages that have come. A look without the lock, since mostly there are none. */
static void
look_at_control(void)
{
	if (__atomic_load_n(&serial.added, __ATOMIC_RELAXED) != 0 ||
	    __atomic_load_n(&serial.rx.used->index, __ATOMIC_ACQUIRE) !=
		__atomic_load_n(&serial.rx.seen, __ATOMIC_RELAXED))
		take_messages();
}

/*
 * Takes back the buffers that the device has returned, and looks whether it has sent them or was
 * closed. False: it broke the ring.
 */
static bool
take_back(struct vport *p)
{
	unsigned out = p->tx_out, closings;
	bool good = take_buffers(p);

	if (out > 0 && p->tx_out == 0) /* answered when the closing port's message is there */
		(void)*(const volatile uint32_t *)(serial.dev.cfg[VIRTIO_DEVICE] + MAX_PORTS);
	look_at_control();
	closings = __atomic_load_n(&p->closings, __ATOMIC_ACQUIRE);
	if (good && closings != p->tx_closings) {
		good = take_buffers(p); /* the device had returned the buffers before */
		end_batch(p);
		p->tx_closings = closings;
	} else if (good && out > 0 && p->tx_out == 0) {
		forget_old(p);
	}
	return good;
}

/* Gives the device the first of the bytes. Returns how many. */
static size_t
give_bytes(struct vport *p, const char *bytes, size_t len)
{
	unsigned most = p->tx.size < VPORT_TX_BUFFERS ? p->tx.size : VPORT_TX_BUFFERS;
	size_t done = 0;

	for (unsigned i = 0; i < most && done < len; i++) {
		size_t n = len - done < PAGE_SIZE ? len - done : PAGE_SIZE;

		if (p->tx_old[i])
			continue;
		memcpy(p->tx_buffer[i], bytes + done, n);
		virtio_ring_give(&p->tx, i, (uint32_t)n);
		done += n;
		p->tx_out++;
	}
	virtio_notify(&serial.dev, rx_ring(p->number) + 1);
	return done;
}

int64_t
vport_send(struct vport *p, const void *bytes, size_t len)
{
	size_t sent;
	bool good;

	if (is_lost(p))
		return -EIO;
	good = take_back(p);
	if (good && p->tx_out == 0 && p->tx_batch == 0 && len > 0 && vport_is_open(p)) {
		p->tx_batch = give_bytes(p, bytes, len);
		good = take_back(p);
	}
	if (!good) {
		serial_break();
		return -EIO;
	}
	if (p->tx_out > 0)
		return 0;
	sent = p->tx_batch;
	p->tx_batch = 0;
	return (int64_t)(sent < len ? sent : len);
}

size_t
vport_let_go(struct vport *p)
{
	size_t n;

	if (!is_lost(p) && !take_back(p))
		serial_break();
	n = is_lost(p) ? 0 : p->tx_batch;
	p->tx_batch = 0;
	return n;
}

bool
vport_await_room(struct vport *p)
{
	virtio_ring_listen(&p->tx, true);
	if (is_lost(p) || !take_back(p))
		return true; /* vport_send() will say it */
	return p->tx_out == 0 && vport_is_open(p);
}

int64_t
vport_peek(struct vport *p, const char **bytes)
{
	uint32_t length;

	while (p->rx_at < 0) {
		int i = is_lost(p) ? -2 : virtio_ring_take(&p->rx, &length);

		if (i == -2 && !is_lost(p))
			serial_break();
		if (i < 0)
			return i == -2 ? -EIO : 0;
		p->rx_at = i;
		p->rx_pos = 0;
		p->rx_end = length;
		if (length == 0)
			vport_received(p, 0);
	}
	*bytes = p->rx_buffer[p->rx_at] + p->rx_pos;
	return p->rx_end - p->rx_pos;
}

void
vport_received(struct vport *p, size_t n)
{
	p->rx_pos += (uint32_t)n;
	if (p->rx_pos < p->rx_end)
		return;
	if (!__atomic_load_n(&serial.broken, __ATOMIC_RELAXED)) { /* it may be there again */
		virtio_ring_give(&p->rx, (unsigned)p->rx_at, PAGE_SIZE);
		virtio_notify(&serial.dev, rx_ring(p->number));
	}
	p->rx_at = -1;
}

/* ---- boot ---- */

static bool
make_control(void)
{
	serial.rx_buffer = page_alloc_zero(PAGE_OTHER);
	serial.tx_buffer = page_alloc_zero(PAGE_OTHER);
	if (serial.rx_buffer == NULL || serial.tx_buffer == NULL)
		return virtio_stop(&serial.dev, "no memory for its buffers");
	for (unsigned i = 0; i < CONTROL_BUFFERS && i < serial.rx.size; i++) {
		virtio_ring_describe(&serial.rx, i,
				     virt_to_phys(serial.rx_buffer + i * CONTROL_BYTES),
				     CONTROL_BYTES, true);
		virtio_ring_give(&serial.rx, i, CONTROL_BYTES);
	}
	return true;
}

static bool
make_port(struct vport *p, unsigned number)
{
	struct virtio *v = &serial.dev;

	p->number = number;
	p->rx_at = -1;
	mutex_init(&p->lock, "vport");
	snprintf(p->file, sizeof(p->file), "vport0p%u", number);
	if (!virtio_ring_open(v, rx_ring(number), &p->rx, true) ||
	    !virtio_ring_open(v, rx_ring(number) + 1, &p->tx, true))
		return false;
	virtio_ring_listen(&p->tx, false);
	return true;
}

static bool
find_console(struct virtio *v)
{
	uint32_t ports;

	if (!virtio_open(v, VIRTIO_CONSOLE, "virtio-serial", F_MULTIPORT))
		return false;
	if (!(v->features & F_MULTIPORT) || v->device_length < REGISTERS)
		return virtio_stop(v, "it has no ports");
	ports = *(const volatile uint32_t *)(v->cfg[VIRTIO_DEVICE] + MAX_PORTS);
	ports = ports < VPORT_MAX ? ports : VPORT_MAX;
	if (!virtio_ring_open(v, CONTROL_RX, &serial.rx, true) ||
	    !virtio_ring_open(v, CONTROL_TX, &serial.tx, true) || !make_control())
		return false;
	for (unsigned i = 0; i < ports; i++)
		if (!make_port(&serial.port[i], i))
			return false;
	serial.ports = ports;
	return virtio_interrupt(v, serial_interrupt, NULL); /* it looks at the rings */
}

/* Is there a port at whose other end somebody is? */
static bool
has_open_port(void)
{
	for (unsigned i = 0; i < serial.ports; i++)
		if (vport_is_open(&serial.port[i]))
			return true;
	return false;
}

static void
serial_boot(void)
{
	uint64_t start_ns;

	if (!find_console(&serial.dev))
		return;
	virtio_start(&serial.dev);
	virtio_notify(&serial.dev, CONTROL_RX);
	spin_lock(&serial.lock);
	send_control(0, VIRTIO_CONSOLE_DEVICE_READY, 1);
	spin_unlock(&serial.lock);
	start_ns = clock_ns();
	do
		take_messages();
	while (!has_open_port() && clock_ns() - start_ns < WAIT_NS);
	printk("virtio-serial: %u ports, line %d\n", serial.ports, serial.dev.line);
	vport_make_files(serial.ports);
}

HOOK(unpacked, serial_boot);
