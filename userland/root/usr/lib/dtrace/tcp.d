/*
 * tcp.d - the arguments of the provider tcp, as the guide has them. The numbers of states are lwIP's, which are FreeBSD's
 * but for their order.
 */
inline int TH_FIN = 0x01;
inline int TH_SYN = 0x02;
inline int TH_RST = 0x04;
inline int TH_PUSH = 0x08;
inline int TH_ACK = 0x10;
inline int TH_URG = 0x20;
inline int TH_ECE = 0x40;
inline int TH_CWR = 0x80;

enum tcp_states {
	TCP_STATE_CLOSED, TCP_STATE_LISTEN, TCP_STATE_SYN_SENT, TCP_STATE_SYN_RECEIVED, TCP_STATE_ESTABLISHED,
	TCP_STATE_FIN_WAIT_1, TCP_STATE_FIN_WAIT_2, TCP_STATE_CLOSE_WAIT, TCP_STATE_CLOSING, TCP_STATE_LAST_ACK,
	TCP_STATE_TIME_WAIT, TCP_STATE_BOUND = 11, TCP_STATE_IDLE = 12
};

inline string tcp_state_string[int32_t state] = state == TCP_STATE_CLOSED ? "state-closed" :
	state == TCP_STATE_LISTEN ? "state-listen" : state == TCP_STATE_SYN_SENT ? "state-syn-sent" :
	state == TCP_STATE_SYN_RECEIVED ? "state-syn-received" : state == TCP_STATE_ESTABLISHED ? "state-established" :
	state == TCP_STATE_FIN_WAIT_1 ? "state-fin-wait-1" : state == TCP_STATE_FIN_WAIT_2 ? "state-fin-wait-2" :
	state == TCP_STATE_CLOSE_WAIT ? "state-close-wait" : state == TCP_STATE_CLOSING ? "state-closing" :
	state == TCP_STATE_LAST_ACK ? "state-last-ack" : state == TCP_STATE_TIME_WAIT ? "state-time-wait" : "<unknown>";

typedef struct tcpinfo {
	uint16_t tcp_sport, tcp_dport;
	uint32_t tcp_seq, tcp_ack;
	uint8_t tcp_offset; /* bytes of the header */
	uint8_t tcp_flags;
	uint16_t tcp_window, tcp_checksum, tcp_urgent;
	struct tcp_hdr *tcp_hdr;
} tcpinfo_t;

translator tcpinfo_t < struct inet_segment *S > {
	tcp_sport = S->sport;
	tcp_dport = S->dport;
	tcp_seq = S->seq;
	tcp_ack = S->ack;
	tcp_offset = S->offset;
	tcp_flags = S->flags;
	tcp_window = S->window;
	tcp_checksum = S->checksum;
	tcp_urgent = S->urgent;
	tcp_hdr = (struct tcp_hdr *)S->header;
};

typedef struct tcpsinfo {
	uintptr_t tcps_addr; /* 0: no connection */
	int tcps_local;      /* 1: the peer is this machine */
	int tcps_active;     /* 1: this end has begun it */
	uint16_t tcps_lport, tcps_rport;
	string tcps_laddr, tcps_raddr;
	int32_t tcps_state;
	uint32_t tcps_suna, tcps_snxt, tcps_rack, tcps_rnxt, tcps_swnd, tcps_rwnd, tcps_cwnd, tcps_cwnd_ssthresh;
	int32_t tcps_snd_ws, tcps_rcv_ws; /* windows are not scaled */
	uint32_t tcps_rto, tcps_mss;      /* rto: milliseconds */
	int tcps_retransmit;              /* 1: tcp:::send of a segment that was sent before */
	uint32_t tcps_iss, tcps_irs, tcps_sack_fack, tcps_sack_snxt; /* and what lwIP does not keep */
} tcpsinfo_t;

translator tcpsinfo_t < struct inet_tcp_info *T > {
	tcps_addr = (uintptr_t)T->pcb;
	tcps_local = T->local;
	tcps_active = T->active;
	tcps_lport = T->lport;
	tcps_rport = T->rport;
	tcps_laddr = inet_ntoa((ipaddr_t *)&T->laddr);
	tcps_raddr = inet_ntoa((ipaddr_t *)&T->raddr);
	tcps_state = T->state;
	tcps_suna = T->suna;
	tcps_snxt = T->snxt;
	tcps_rack = T->rack;
	tcps_rnxt = T->rnxt;
	tcps_swnd = T->swnd;
	tcps_rwnd = T->rwnd;
	tcps_cwnd = T->cwnd;
	tcps_cwnd_ssthresh = T->ssthresh;
	tcps_snd_ws = 0;
	tcps_rcv_ws = 0;
	tcps_rto = T->rto_ms;
	tcps_mss = T->mss;
	tcps_retransmit = T->retransmit;
};

typedef struct tcplsinfo {
	int32_t tcps_state; /* the state before */
} tcplsinfo_t;

translator tcplsinfo_t < int S > {
	tcps_state = S;
};
