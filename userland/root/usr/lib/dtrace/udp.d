/*
 * udp.d - the arguments of the provider udp, as the guide has them.
 */
typedef struct udpinfo {
	uint16_t udp_sport, udp_dport, udp_length, udp_checksum;
	struct udp_hdr *udp_hdr;
} udpinfo_t;

translator udpinfo_t < struct udp_hdr *H > {
	udp_sport = ntohs(H->src);
	udp_dport = ntohs(H->dest);
	udp_length = ntohs(H->len);
	udp_checksum = ntohs(H->chksum);
	udp_hdr = H;
};

typedef struct udpsinfo {
	uintptr_t udps_addr; /* 0: no socket */
	uint16_t udps_lport, udps_rport;
	string udps_laddr, udps_raddr;
} udpsinfo_t;

translator udpsinfo_t < struct inet_udp_info *U > {
	udps_addr = (uintptr_t)U->pcb;
	udps_lport = U->lport;
	udps_rport = U->rport;
	udps_laddr = inet_ntoa((ipaddr_t *)&U->laddr);
	udps_raddr = inet_ntoa((ipaddr_t *)&U->raddr);
};
