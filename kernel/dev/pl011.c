/*
 * pl011.c - the PrimeCell UART PL011 (Arm DDI 0183).
 *
 * The rate depends on the board's reference clock, which is not known here: the rate that firmware
 * or the emulator set is kept. Locking: the line's (uart.c).
 */
#include "kernel/dev/uart.h"

enum { /* registers, byte offsets (3.2) */
       PL011_DR = 0x00,
       PL011_FR = 0x18,
       PL011_LCR_H = 0x2c,
       PL011_CR = 0x30,
       PL011_IMSC = 0x38, /* interrupt mask: 1 enables */
       PL011_MIS = 0x40,  /* masked interrupt status */
       PL011_ICR = 0x44,  /* interrupt clear */
       PL011_PERIPH_ID0 = 0xfe0,
       PL011_PERIPH_ID1 = 0xfe4,
};

#define DR_BREAK   (1u << 10)
#define FR_RXFE    (1u << 4) /* nothing received */
#define FR_TXFF    (1u << 5) /* no room */
#define FR_TXFE    (1u << 7) /* nothing left to send */
#define LCR_8N1    (3u << 5)
#define LCR_FIFO   (1u << 4)
#define CR_ENABLE  (1u << 0 | 1u << 8 | 1u << 9) /* UART, transmitter, receiver */
#define INT_RX     (1u << 4)
#define INT_RT     (1u << 6) /* something was received, and nothing followed */
#define INT_BREAK  (1u << 9)
#define INT_ALL    0x7ffu
#define FIFO_DEPTH 16   /* 32 from revision 3 on */
#define EMPTY_MOST 1000 /* characters; a line that never stops sending must not hold the CPU */

static uint32_t
pl011_read(const struct uart *u, unsigned reg)
{
	return *(volatile uint32_t *)((volatile char *)u->at.regs + reg);
}

static void
pl011_write(const struct uart *u, unsigned reg, uint32_t v)
{
	*(volatile uint32_t *)((volatile char *)u->at.regs + reg) = v;
}

static unsigned
pl011_room(struct uart *u)
{
	uint32_t flags = pl011_read(u, PL011_FR);

	return flags & FR_TXFE ? u->fifo : flags & FR_TXFF ? 0 : 1;
}

static void
pl011_put(struct uart *u, uint8_t c)
{
	pl011_write(u, PL011_DR, c);
}

static int
pl011_get(struct uart *u)
{
	uint32_t data;

	if (pl011_read(u, PL011_FR) & FR_RXFE)
		return -1;
	data = pl011_read(u, PL011_DR);
	return data & DR_BREAK ? UART_BREAK : (int)(data & 0xff);
}

static bool
pl011_init(struct uart *u)
{
	/* Part number 0x011 (3.3.14). */
	if ((pl011_read(u, PL011_PERIPH_ID0) & 0xff) != 0x11 ||
	    (pl011_read(u, PL011_PERIPH_ID1) & 0x0f) != 0)
		return false;
	pl011_write(u, PL011_IMSC, 0);
	pl011_write(u, PL011_ICR, INT_ALL);
	pl011_write(u, PL011_LCR_H, LCR_8N1 | LCR_FIFO);
	pl011_write(u, PL011_CR, CR_ENABLE);
	/*
	 * What was received before a reset was for the kernel that ran then. It would also keep
	 * QEMU's UART from ever interrupting: that does so for the first character in the FIFO.
	 */
	for (unsigned i = 0; i < EMPTY_MOST && pl011_get(u) >= 0; i++)
		continue;
	u->fifo = FIFO_DEPTH;
	return true;
}

static void
pl011_listen(struct uart *u)
{
	pl011_write(u, PL011_IMSC, INT_RX | INT_RT | INT_BREAK);
}

/*
 * Reading the received characters clears INT_RX and INT_RT (3.4.2, 3.4.4). If this function cleared
 * them, characters that the handler leaves in the FIFO would raise no interrupt.
 */
static unsigned
pl011_acknowledge(struct uart *u)
{
	uint32_t why = pl011_read(u, PL011_MIS);

	pl011_write(u, PL011_ICR, why & INT_BREAK);
	return why;
}

const struct uart_chip uart_pl011 = {
    .name = "PL011",
    .init = pl011_init,
    .room = pl011_room,
    .put = pl011_put,
    .get = pl011_get,
    .listen = pl011_listen,
    .acknowledge = pl011_acknowledge,
};
