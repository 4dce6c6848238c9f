/*
 * ip.d - addresses, for inet_ntoa(), inet_ntoa6() and inet_ntop().
 */
typedef struct in6_addr {
	union {
		uint8_t s6_addr[16];
		union {
			uint8_t u6_addr8[16];
			uint16_t u6_addr16[8];
			uint32_t u6_addr32[4];
		} in6_u;
	};
} in6_addr_t;

inline int AF_INET = 2;
inline int AF_INET6 = 10;
inline string inet_ntop[int family, void *address] =
	family == AF_INET ? inet_ntoa((ipaddr_t *)address) : inet_ntoa6((in6_addr_t *)address);
