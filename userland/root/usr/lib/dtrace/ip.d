/*
 * ip.d - addresses, for inet_ntoa(), inet_ntoa6() and inet_ntop(); the arguments of the provider ip, as the guide has
 * them.
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

/* What programs give to connect() and its kin, beside struct sockaddr_in and sockaddr_un. */
struct sockaddr {
	uint16_t sa_family;
	char sa_data[14];
};
struct sockaddr_in6 {
	uint16_t sin6_family, sin6_port;
	uint32_t sin6_flowinfo;
	in6_addr_t sin6_addr;
	uint32_t sin6_scope_id;
};

inline int AF_INET = 2;
inline int AF_INET6 = 10;
inline string inet_ntop[int family, void *address] =
	family == AF_INET ? inet_ntoa((ipaddr_t *)address) : inet_ntoa6((in6_addr_t *)address);

enum ip_protocols {
	IPPROTO_IP = 0, IPPROTO_HOPOPTS = 0, IPPROTO_ICMP = 1, IPPROTO_IGMP = 2, IPPROTO_GGP = 3, IPPROTO_ENCAP = 4,
	IPPROTO_TCP = 6, IPPROTO_EGP = 8, IPPROTO_PUP = 12, IPPROTO_UDP = 17, IPPROTO_IDP = 22, IPPROTO_IPV6 = 41,
	IPPROTO_ROUTING = 43, IPPROTO_FRAGMENT = 44, IPPROTO_RSVP = 46, IPPROTO_ESP = 50, IPPROTO_AH = 51,
	IPPROTO_ICMPV6 = 58, IPPROTO_NONE = 59, IPPROTO_DSTOPTS = 60, IPPROTO_HELLO = 63, IPPROTO_ND = 77,
	IPPROTO_EON = 80, IPPROTO_OSPF = 89, IPPROTO_PIM = 103, IPPROTO_SCTP = 132, IPPROTO_RAW = 255,
	IPPROTO_MAX = 256
};
enum ip_flags { IPH_MF = 2, IPH_DF = 4 }; /* of ipv4_flags */

typedef struct pktinfo {
	uintptr_t pkt_addr; /* of lwIP's struct pbuf */
} pktinfo_t;

translator pktinfo_t < struct pbuf *P > {
	pkt_addr = (uintptr_t)P;
};

typedef struct csinfo {
	uintptr_t cs_addr; /* of lwIP's pcb */
	uint64_t cs_cid;   /* the same number */
	pid_t cs_pid;      /* the process that made the socket */
	int cs_zoneid;     /* there are no zones */
} csinfo_t;

translator csinfo_t < struct inet_tcp_info *T > {
	cs_addr = (uintptr_t)T->pcb;
	cs_cid = (uint64_t)T->pcb;
	cs_pid = T->pid;
	cs_zoneid = 0;
};

translator csinfo_t < struct inet_udp_info *U > {
	cs_addr = (uintptr_t)U->pcb;
	cs_cid = (uint64_t)U->pcb;
	cs_pid = U->pid;
	cs_zoneid = 0;
};

translator csinfo_t < void *V > { /* the provider ip knows no connections */
	cs_addr = (uintptr_t)V;
	cs_cid = 0;
	cs_pid = 0;
	cs_zoneid = 0;
};

typedef struct ipinfo {
	uint8_t ip_ver;
	uint16_t ip_plength; /* bytes after IP's header */
	string ip_saddr, ip_daddr;
} ipinfo_t;

translator ipinfo_t < struct ip_hdr *I > {
	ip_ver = I->_v_hl >> 4;
	ip_plength = ntohs(I->_len) - ((I->_v_hl & 15) << 2);
	ip_saddr = inet_ntoa((ipaddr_t *)&I->src);
	ip_daddr = inet_ntoa((ipaddr_t *)&I->dest);
};

typedef struct ifinfo {
	string if_name;
	int8_t if_local; /* 1: the loopback */
	int if_ipstack;  /* there is one */
	uintptr_t if_addr;
} ifinfo_t;

translator ifinfo_t < struct netif *N > {
	if_name = N->name[0] == 'l' ? "lo" : strjoin("eth", lltostr(N->num - 1));
	if_local = N->name[0] == 'l';
	if_ipstack = 0;
	if_addr = (uintptr_t)N;
};

typedef struct ipv4info {
	uint8_t ipv4_ver, ipv4_ihl, ipv4_tos; /* ihl: bytes of the header */
	uint16_t ipv4_length, ipv4_ident;
	uint8_t ipv4_flags;
	uint16_t ipv4_offset; /* bytes */
	uint8_t ipv4_ttl, ipv4_protocol;
	string ipv4_protostr;
	uint16_t ipv4_checksum;
	ipaddr_t ipv4_src, ipv4_dst;
	string ipv4_saddr, ipv4_daddr;
	struct ip_hdr *ipv4_hdr;
} ipv4info_t;

translator ipv4info_t < struct ip_hdr *I > {
	ipv4_ver = I->_v_hl >> 4;
	ipv4_ihl = (I->_v_hl & 15) << 2;
	ipv4_tos = I->_tos;
	ipv4_length = ntohs(I->_len);
	ipv4_ident = ntohs(I->_id);
	ipv4_flags = (ntohs(I->_offset) >> 12) & 0xe; /* as in the byte of the header */
	ipv4_offset = (ntohs(I->_offset) & 0x1fff) << 3;
	ipv4_ttl = I->_ttl;
	ipv4_protocol = I->_proto;
	ipv4_protostr = I->_proto == IPPROTO_TCP ? "TCP" : I->_proto == IPPROTO_UDP ? "UDP" : I->_proto == IPPROTO_ICMP ? "ICMP" :
		lltostr(I->_proto);
	ipv4_checksum = ntohs(I->_chksum);
	ipv4_src = I->src.addr;
	ipv4_dst = I->dest.addr;
	ipv4_saddr = inet_ntoa((ipaddr_t *)&I->src);
	ipv4_daddr = inet_ntoa((ipaddr_t *)&I->dest);
	ipv4_hdr = I;
};

typedef struct ipv6info { /* all 0: there is no IPv6 */
	uint8_t ipv6_ver, ipv6_tclass;
	uint32_t ipv6_flow;
	uint16_t ipv6_plen;
	uint8_t ipv6_nexthdr;
	string ipv6_nextstr;
	uint8_t ipv6_hlim;
	in6_addr_t *ipv6_src, *ipv6_dst;
	string ipv6_saddr, ipv6_daddr;
	void *ipv6_hdr;
} ipv6info_t;

translator ipv6info_t < void *V > {
	ipv6_ver = 0;
	ipv6_tclass = 0;
	ipv6_flow = 0;
	ipv6_plen = 0;
	ipv6_nexthdr = 0;
	ipv6_nextstr = "";
	ipv6_hlim = 0;
	ipv6_src = NULL;
	ipv6_dst = NULL;
	ipv6_saddr = "";
	ipv6_daddr = "";
	ipv6_hdr = V;
};
