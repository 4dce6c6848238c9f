/*
 * ip.d - addresses, for inet_ntoa() and inet_ntoa6().
 */
typedef struct in6_addr {
	uint8_t s6_addr[16];
} in6_addr_t;
