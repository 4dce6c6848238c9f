/* interface.h - interfaces as Linux names and describes them. The lock of core.h is held. */
#pragma once

#include "kernel/abi/inet.h"

struct netif;

void inet_interface_name(const struct netif *netif, char name[IFNAMSIZ]);
/* IFF_…. */
unsigned inet_interface_flags(const struct netif *netif);
