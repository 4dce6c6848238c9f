/*
 * ip.d - addresses, for inet_ntoa(), inet_ntoa6() and inet_ntop().
 */
typedef struct in6_addr {
	uint8_t s6_addr[16];
} in6_addr_t;

inline int AF_INET = 2;
inline int AF_INET6 = 10;
inline string inet_ntop[int family, void *address] =
	family == AF_INET ? inet_ntoa((ipaddr_t *)address) : inet_ntoa6((in6_addr_t *)address);
