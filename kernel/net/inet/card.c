/*
 * card.c - the network card as lwIP's interface `eth0`. There is one if the loader's parameter
 * net.address says which address it gets. Locking: core.h; the card's is the same lock.
 */
#include <lwip/etharp.h>
#include <lwip/netif.h>
#include <lwip/snmp.h>

#include "kernel/dev/virtio/net.h"
#include "kernel/lib/decimal.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/net/inet/core.h"
#include "kernel/net/inet/probe.h"
#include "kernel/sysctl/tunable.h"

TUNABLE(net_address, "net.address", "the network card's ADDRESS/BITS, or ADDRESS/BITS,GATEWAY");

static struct netif card;

static err_t
card_output(struct netif *netif, struct pbuf *p)
{
	char *room = p->tot_len <= VIRTIO_NET_FRAME ? virtio_net_room() : NULL;

	inet_dev_queue(netif, p);
	if (room == NULL) {
		MIB2_STATS_NETIF_INC(netif, ifoutdiscards);
		inet_dev_xmit(netif, p, NETDEV_TX_BUSY);
		return ERR_MEM; /* TCP tries again */
	}
	pbuf_copy_partial(p, room, p->tot_len, 0);
	virtio_net_send(p->tot_len);
	MIB2_STATS_NETIF_ADD(netif, ifoutoctets, p->tot_len);
	MIB2_STATS_NETIF_INC(netif, ifoutucastpkts);
	inet_dev_xmit(netif, p, 0);
	return ERR_OK;
}

static err_t
card_ip_output(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
	inet_used();
	inet_ip_sent(p, netif);
	return etharp_output(netif, p, to);
}

static void
card_take(void *arg, const void *frame, uint32_t length)
{
	struct pbuf *p = pbuf_alloc(PBUF_RAW, (uint16_t)length, PBUF_RAM);

	inet_used();
	MIB2_STATS_NETIF_ADD(&card, ifinoctets, length);
	if (p == NULL) {
		MIB2_STATS_NETIF_INC(&card, ifindiscards);
		return;
	}
	MIB2_STATS_NETIF_INC(&card, ifinucastpkts);
	pbuf_take(p, frame, (uint16_t)length);
	inet_dev_receive(&card, p, length > SIZEOF_ETH_HDR ? length - SIZEOF_ETH_HDR : 0);
	if (card.input(p, &card) != ERR_OK)
		pbuf_free(p);
}

static bool
card_poll(void)
{
	return virtio_net_receive(card_take, NULL);
}

static void
card_arrived(void *arg)
{
	inet_wake();
}

static err_t
card_init(struct netif *netif)
{
	netif->name[0] = 'e';
	netif->name[1] = 'n';
	netif->output = card_ip_output;
	netif->linkoutput = card_output;
	netif->hwaddr_len = ETH_HWADDR_LEN;
	netif->mtu = VIRTIO_NET_FRAME - SIZEOF_ETH_HDR;
	netif->flags =
	    NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
	return ERR_OK;
}

/* Reads ADDRESS/BITS and perhaps ,GATEWAY. False: the text is something else. */
static bool
parse_address(const char *text, ip4_addr_t *ip, ip4_addr_t *mask, ip4_addr_t *gateway)
{
	char part[3][16] = {"", "", "0.0.0.0"};
	const char *digits = part[1];
	unsigned n = 0, at = 0;
	uint64_t bits;

	for (; *text != '\0'; text++) {
		if ((n == 0 && *text == '/') || (n == 1 && *text == ',')) {
			n++;
			at = 0;
		} else if (at < sizeof(part[0]) - 1) {
			part[n][at++] = *text;
			part[n][at] = '\0';
		} else {
			return false;
		}
	}
	if (!take_decimal(&digits, 32, &bits) || *digits != '\0' || bits < 1 ||
	    !ip4addr_aton(part[0], ip) || !ip4addr_aton(part[2], gateway))
		return false;
	ip4_addr_set_u32(mask, lwip_htonl(~0u << (32 - bits)));
	return true;
}

static void
card_boot(void)
{
	const char *text = tunable_get("net.address");
	ip4_addr_t ip, mask, gateway;

	if (text == NULL)
		return;
	if (!parse_address(text, &ip, &mask, &gateway)) {
		tunable_refuse("net.address", "expected ADDRESS/BITS or ADDRESS/BITS,GATEWAY");
		return;
	}
	inet_lock();
	if (!virtio_net_open(card.hwaddr, card_arrived)) {
		pr_warn("net.address is set, but there is no network card of virtio\n");
	} else {
		netif_add(&card, &ip, &mask, &gateway, NULL, card_init, netif_input);
		if (!ip4_addr_isany_val(gateway))
			netif_set_default(&card);
		netif_set_up(&card);
		inet_set_card(card_poll);
	}
	inet_unlock();
}

HOOK(unpacked, card_boot);
