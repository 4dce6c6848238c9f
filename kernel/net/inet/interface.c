/*
 * interface.c - what ifconfig and route ask: requests on interfaces and routes. lwIP's names have a
 * number; Linux calls the loopback `lo`. Locking: inet_private.h.
 *
 * lwIP has no table of routes: a packet goes to the interface whose network has its address, and
 * otherwise to the gateway of the default interface.
 */
#include <lwip/ip.h>
#include <lwip/netif.h>

#include "kernel/abi/capability.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/mm/uaccess.h"
#include "kernel/net/inet/inet_private.h"
#include "kernel/net/inet/interface.h"
#include "kernel/proc/task.h"

#define LOOPBACK_MTU 65535

void
inet_interface_name(const struct netif *netif, char name[IFNAMSIZ])
{
	if (netif->name[0] == 'l')
		strlcpy(name, "lo", IFNAMSIZ);
	else
		snprintf(name, IFNAMSIZ, "eth%u", netif->num - 1u); /* lo is 0 */
}

static struct netif *
find_interface(const char name[IFNAMSIZ])
{
	char its[IFNAMSIZ];
	struct netif *netif;

	NETIF_FOREACH(netif)
	{
		inet_interface_name(netif, its);
		if (strncmp(its, name, IFNAMSIZ) == 0)
			return netif;
	}
	return NULL;
}

unsigned
inet_interface_flags(const struct netif *netif)
{
	return (netif_is_up(netif) ? IFF_UP : 0) | (netif_is_link_up(netif) ? IFF_RUNNING : 0) |
	       (netif->name[0] == 'l' ? IFF_LOOPBACK : 0) |
	       (netif->flags & NETIF_FLAG_BROADCAST ? IFF_BROADCAST | IFF_MULTICAST : 0);
}

static void
put_address(struct ifreq *r, uint32_t address)
{
	r->addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = address};
}

static uint32_t
broadcast_of(const struct netif *netif)
{
	uint32_t ip = ip_addr_get_ip4_u32(netif_ip_addr4(netif));

	return inet_interface_flags(netif) & IFF_BROADCAST
		   ? ip | ~ip_addr_get_ip4_u32(netif_ip_netmask4(netif))
		   : 0;
}

/* Puts an interface's answer to an ioctl into *r. 0, or -ENOTTY: no such request. */
static int
interface_get(const struct netif *netif, unsigned request, struct ifreq *r)
{
	switch (request) {
	case SIOCGIFFLAGS:
		r->flags = (int16_t)inet_interface_flags(netif);
		return 0;
	case SIOCGIFADDR:
	case SIOCGIFDSTADDR:
		put_address(r, ip_addr_get_ip4_u32(netif_ip_addr4(netif)));
		return 0;
	case SIOCGIFBRDADDR:
		put_address(r, broadcast_of(netif));
		return 0;
	case SIOCGIFNETMASK:
		put_address(r, ip_addr_get_ip4_u32(netif_ip_netmask4(netif)));
		return 0;
	case SIOCGIFMETRIC:
	case SIOCGIFTXQLEN:
		r->value = request == SIOCGIFTXQLEN && netif->name[0] != 'l' ? 1000 : 0;
		return 0;
	case SIOCGIFMTU:
		r->value = netif->mtu != 0 ? netif->mtu : LOOPBACK_MTU;
		return 0;
	case SIOCGIFINDEX:
		r->value = netif_get_index(netif);
		return 0;
	case SIOCGIFMAP:
		memset(r->bytes, 0, sizeof(r->bytes));
		return 0;
	case SIOCGIFHWADDR:
		memset(r->bytes, 0, sizeof(r->bytes));
		r->sa_family = netif->name[0] == 'l' ? ARPHRD_LOOPBACK : ARPHRD_ETHER;
		memcpy(r->bytes + 2, netif->hwaddr, netif->hwaddr_len);
		return 0;
	default:
		return -ENOTTY;
	}
}

/* 0, -EINVAL, -ENOTTY. */
static int
interface_set(struct netif *netif, unsigned request, const struct ifreq *r)
{
	ip_addr_t ip;

	if (request == SIOCSIFFLAGS) {
		if (r->flags & IFF_UP)
			netif_set_up(netif);
		else
			netif_set_down(netif);
		return 0;
	}
	if (request == SIOCSIFBRDADDR)
		return 0; /* it follows from the address */
	if (r->addr.sin_family != AF_INET)
		return -EINVAL;
	ip_addr_set_ip4_u32_val(ip, r->addr.sin_addr);
	if (request == SIOCSIFADDR)
		netif_set_ipaddr(netif, &ip);
	else
		netif_set_netmask(netif, &ip);
	/* As on Linux, an interface that has an address is up. */
	if (request == SIOCSIFADDR)
		netif_set_up(netif);
	return 0;
}

static bool
is_setting(unsigned request)
{
	return request == SIOCSIFFLAGS || request == SIOCSIFADDR || request == SIOCSIFBRDADDR ||
	       request == SIOCSIFNETMASK;
}

static int
one_interface(unsigned request, uint64_t arg)
{
	struct netif *netif;
	struct ifreq r;
	int error;

	if (copy_in(&r, arg, sizeof(r)) != 0)
		return -EFAULT;
	r.ifr_name[IFNAMSIZ - 1] = '\0';
	inet_lock();
	netif = request == SIOCGIFNAME
		    ? (r.value > 0 && r.value < 256 ? netif_get_by_index((uint8_t)r.value) : NULL)
		    : find_interface(r.ifr_name);
	if (netif == NULL) {
		error = -ENODEV;
	} else if (request == SIOCGIFNAME) {
		inet_interface_name(netif, r.ifr_name);
		error = 0;
	} else {
		error = is_setting(request) ? interface_set(netif, request, &r)
					    : interface_get(netif, request, &r);
	}
	inet_unlock();
	if (error != 0 || is_setting(request))
		return error;
	return copy_out(arg, &r, sizeof(r));
}

/* All interfaces that have an address. */
static int
list_interfaces(uint64_t arg)
{
	struct ifconf c;
	struct ifreq r;
	struct netif *netif;
	int32_t done = 0;
	int error;

	if (copy_in(&c, arg, sizeof(c)) != 0)
		return -EFAULT;
	for (unsigned i = 1; i < 256; i++) {
		memset(&r, 0, sizeof(r));
		inet_lock();
		netif = netif_get_by_index((uint8_t)i);
		if (netif != NULL) {
			inet_interface_name(netif, r.ifr_name);
			put_address(&r, ip_addr_get_ip4_u32(netif_ip_addr4(netif)));
		}
		inet_unlock();
		if (netif == NULL)
			break;
		if (c.ifc_req != 0) {
			if (c.ifc_len - done < (int32_t)sizeof(r))
				break;
			error = copy_out(c.ifc_req + (uint32_t)done, &r, sizeof(r));
			if (error != 0)
				return error;
		}
		done += (int32_t)sizeof(r);
	}
	c.ifc_len = done;
	return copy_out(arg, &c, sizeof(c));
}

/* The interface in whose network an address is. NULL: there is none. */
static struct netif *
netif_near(const ip_addr_t *ip)
{
	struct netif *netif;

	NETIF_FOREACH(netif)
	{
		if (ip_addr_netcmp(ip, netif_ip_addr4(netif), netif_ip_netmask4(netif)))
			return netif;
	}
	return NULL;
}

/* Only the default route can be set: the others follow from the interfaces. */
static int
set_route(const struct rtentry *e, bool add)
{
	struct netif *netif;
	ip_addr_t gateway;

	ip_addr_set_ip4_u32_val(gateway, e->rt_gateway.sin_addr);
	if (e->rt_dst.sin_addr != 0 || e->rt_genmask.sin_addr != 0)
		return -EOPNOTSUPP;
	if (!add) {
		if (netif_default == NULL)
			return -ESRCH;
		netif_set_gw(netif_default, IP4_ADDR_ANY);
		netif_set_default(NULL);
		return 0;
	}
	netif = netif_near(&gateway);
	if (!(e->rt_flags & RTF_GATEWAY) || netif == NULL)
		return -ENETUNREACH;
	if (netif_default != NULL)
		return -EEXIST;
	netif_set_gw(netif, &gateway);
	netif_set_default(netif);
	return 0;
}

int64_t
inet_interface_ioctl(unsigned request, uint64_t arg)
{
	struct rtentry e;
	int error;

	if ((is_setting(request) || request == SIOCADDRT || request == SIOCDELRT) &&
	    !capable(CAP_NET_ADMIN))
		return -EPERM;
	if (request == SIOCGIFCONF)
		return list_interfaces(arg);
	if (request == SIOCADDRT || request == SIOCDELRT) {
		if (copy_in(&e, arg, sizeof(e)) != 0)
			return -EFAULT;
		inet_lock();
		error = set_route(&e, request == SIOCADDRT);
		inet_unlock();
		return error;
	}
	if (request >> 8 != 0x89 || request < SIOCGIFNAME)
		return -ENOTTY;
	return one_interface(request, arg);
}
