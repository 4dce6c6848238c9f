/*
 * uart16550.c - the 16550 serial port with its eight I/O ports (National Semiconductor PC16550D
 * data sheet).
 *
 * The transmit FIFO is filled completely whenever it is empty, since the chip reports "empty" but
 * not "room". Locking: the line's (uart.c).
 */
#include "arch/irq.h"
#include "arch/pio.h"
#include "kernel/dev/uart.h"

/* Register offsets, and the bits used. */
enum {
	UART_DATA = 0,
	UART_IER = 1, /* interrupt enable */
	UART_IIR = 2, /* interrupt identification (read) */
	UART_FCR = 2, /* FIFO control (write) */
	UART_LCR = 3, /* line control */
	UART_MCR = 4, /* modem control */
	UART_LSR = 5, /* line status */
	UART_SCR = 7, /* scratch */
};

#define IER_RECEIVED 0x01
#define IER_LINE     0x04
#define IIR_FIFO     0xc0
#define FCR_ON_CLEAR 0x07 /* enable, clear both FIFOs, interrupt with the first character */
#define LCR_8N1      0x03
#define LCR_DLAB     0x80
#define MCR_READY    0x0b /* DTR, RTS, OUT2; OUT2 connects the interrupt line on PCs */
#define MCR_LOOP     0x1b
#define LSR_RECEIVED 0x01
#define LSR_BREAK    0x10
#define LSR_EMPTY    0x20 /* transmitter takes more */

static uint8_t
uart_in(const struct uart *u, unsigned reg)
{
	return arch_pio_in8((uint16_t)(u->at.port + reg));
}

static void
uart_out(const struct uart *u, unsigned reg, uint8_t v)
{
	arch_pio_out8((uint16_t)(u->at.port + reg), v);
}

/* An absent chip reads as all ones: scratch keeps nothing, loopback returns nothing. */
static bool
uart_detect(const struct uart *u)
{
	uint8_t back = 0;

	uart_out(u, UART_SCR, 0x5a);
	if (uart_in(u, UART_SCR) != 0x5a)
		return false;
	uart_out(u, UART_SCR, 0xa5);
	if (uart_in(u, UART_SCR) != 0xa5)
		return false;
	uart_out(u, UART_FCR, 0);
	uart_out(u, UART_MCR, MCR_LOOP);
	uart_out(u, UART_DATA, 0xae);
	for (unsigned i = 0; i < UART_PUT_SPINS && !(uart_in(u, UART_LSR) & LSR_RECEIVED); i++)
		arch_relax();
	back = uart_in(u, UART_DATA);
	uart_out(u, UART_MCR, MCR_READY);
	return back == 0xae;
}

static bool
uart_16550_init(struct uart *u)
{
	uart_out(u, UART_IER, 0);
	uart_out(u, UART_LCR, LCR_DLAB);
	uart_out(u, UART_DATA, 1); /* divisor 1: 115200 baud */
	uart_out(u, UART_IER, 0);
	uart_out(u, UART_LCR, LCR_8N1);
	if (!uart_detect(u))
		return false;
	uart_out(u, UART_FCR, FCR_ON_CLEAR);
	u->fifo = (uart_in(u, UART_IIR) & IIR_FIFO) == IIR_FIFO ? 16 : 1;
	return true;
}

/*
 * The chip reports a BREAK once, to whoever reads the status. So a writer stores it for the reader.
 */
static uint8_t
uart_status(struct uart *u)
{
	uint8_t status = uart_in(u, UART_LSR);

	if (status & LSR_BREAK)
		__atomic_store_n(&u->got_break, true, __ATOMIC_RELAXED);
	return status;
}

static unsigned
uart_16550_room(struct uart *u)
{
	return uart_status(u) & LSR_EMPTY ? u->fifo : 0;
}

static void
uart_16550_put(struct uart *u, uint8_t c)
{
	uart_out(u, UART_DATA, c);
}

static int
uart_16550_get(struct uart *u)
{
	bool received = uart_status(u) & LSR_RECEIVED;
	uint8_t c;

	if (!received)
		return -1;
	c = uart_in(u, UART_DATA);
	/* A BREAK arrives as a zero byte. */
	if (c == 0 && __atomic_exchange_n(&u->got_break, false, __ATOMIC_RELAXED))
		return UART_BREAK;
	return c;
}

static void
uart_16550_listen(struct uart *u)
{
	uart_out(u, UART_IER, 0); /* the interrupt line falls here, so that it can rise again */
	uart_out(u, UART_IER, IER_RECEIVED | IER_LINE);
}

static unsigned
uart_16550_acknowledge(struct uart *u)
{
	return uart_in(u, UART_IIR);
}

const struct uart_chip uart_16550 = {
    .name = "16550",
    .init = uart_16550_init,
    .room = uart_16550_room,
    .put = uart_16550_put,
    .get = uart_16550_get,
    .listen = uart_16550_listen,
    .acknowledge = uart_16550_acknowledge,
};
