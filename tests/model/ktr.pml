/*
 * ktr.pml - a model of ktr/ring.c and ktr/stream.c: a CPU whose records are interrupted, its
 * memory, and a stream on another CPU. tests/model/run lists the checks, and the steps that it
 * removes to see the checks fail.
 *
 * Labels and names are those of the code's functions. A record is a restartable sequence: after an
 * exception it begins again. An entry is one word, which stands for any of its eight words: if a
 * reader gets a wrong entry, some word is wrong. The value of the word is the number of the record
 * call that stored it.
 *
 * Memory is weak. The CPU's stores wait in `buf`, and other CPUs see them in any order that the
 * barrier permits; with TSO, in program order. The CPU itself sees its own stores at once. limit,
 * refuse and cursor bypass the buffer, since a full barrier or a release follows each store to
 * them.
 *
 * There are ENTRIES slots, of which SPARE are never readable; EVENTS record calls; and record calls
 * nested up to DEPTH. FILL selects the policy that refuses events when the ring is full. CLOSE adds
 * another CPU, which closes the ring. SYNC adds the streams' marks. BREAK_x removes or moves step
 * x.
 */
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef SPARE
#define SPARE 2
#endif
#ifdef BREAK_FULL
#define SPARE_FULL 0
#else
#define SPARE_FULL SPARE
#endif

#define SLOT(seq)  ((seq) % ENTRIES)
#define TAIL(head) ((head) + SPARE > ENTRIES -> (head) + SPARE - ENTRIES : 0)
#define MAX(a, b)  ((a) > (b) -> (a) : (b))
#define MIN(a, b)  ((a) < (b) -> (a) : (b))
#define NOTHING    255

/* ---- memory, as other CPUs see it, and the stores that have not reached it -------------------- */

byte head;
byte word[ENTRIES] = NOTHING;
byte limit, cursor;
bit refuse;

#define NONE    0
#define HEAD    1
#define WORD    2
#define BARRIER 3

#define BUFFER 4
typedef store {
	byte kind;
	byte seq;   /* for HEAD, the new value */
	byte value; /* for WORD */
}
store buf[BUFFER];
byte stores;

/* May store i become visible before the older store j? */
#define SAME_PLACE(i, j) \
	(buf[i].kind == buf[j].kind && (buf[i].kind == HEAD || SLOT(buf[i].seq) == SLOT(buf[j].seq)))
#define OVERTAKES(i, j) (buf[i].kind != BARRIER && buf[j].kind != BARRIER && !SAME_PLACE(i, j))

inline put(what, event, by)
{
	d_step {
		buf[stores].kind = what;
		buf[stores].seq = event;
		buf[stores].value = by;
		stores++
	}
}

/* Store i becomes visible and leaves the buffer. */
inline reach(i)
{
	d_step {
		if
		:: buf[i].kind == HEAD -> head = buf[i].seq
		:: buf[i].kind == WORD -> word[SLOT(buf[i].seq)] = buf[i].value
		:: buf[i].kind == BARRIER
		fi;
		at = i;
		do
		:: at + 1 < stores ->
			buf[at].kind = buf[at + 1].kind;
			buf[at].seq = buf[at + 1].seq;
			buf[at].value = buf[at + 1].value;
			at++
		:: else -> break
		od;
		buf[at].kind = NONE;
		buf[at].seq = 0;
		buf[at].value = 0;
		at = 0;
		stores--
	}
}

/* ---- the CPU that records ---------------------------------------------------------------------- */

byte own_head;       /* the head as this CPU sees it */
byte begun;          /* record calls */
byte depth;          /* record calls in progress, nested */
byte running;        /* the context that runs: 0 the thread, 1 an exception, 2 an exception in that */
bit again[DEPTH];    /* an exception came: the sequence begins again */
byte whose[EVENTS];  /* the record call of each event */
byte suppressed, dropped;
bit closed;          /* ktr_ring_close() has returned */
byte epoch, settled; /* SYNC: the clock; and the time before which no more events come */

#ifdef BREAK_RESTART
#define INTERRUPTED (false)
#else
#define INTERRUPTED again[_pid]
#endif

/* One instruction of a sequence that begins at `from`. */
#define INSTRUCTION(from) \
	if \
	:: INTERRUPTED -> goto from \
	:: else \
	fi

#define TURN_END(seq) (((seq) / ENTRIES + 1) * ENTRIES)
#ifdef FILL
#define RING_LIMIT(seq) MIN(cursor + ENTRIES - SPARE_FULL, TURN_END(seq))
#else
#define RING_LIMIT(seq) TURN_END(seq)
#endif

inline fill_slot()
{
	atomic { stores < BUFFER; INSTRUCTION(restart); put(WORD, seq, id) }
}

inline write_barrier()
{
	atomic { stores < BUFFER; INSTRUCTION(restart); put(BARRIER, 0, 0) }
}

/* The last instruction: it claims the number and publishes the event. */
inline store_head()
{
	atomic {
		stores < BUFFER;
		INSTRUCTION(restart);
		assert(own_head == seq);  /* no event is lost */
		assert(time == seq);      /* slot order is time order */
		assert(stamp >= settled); /* marks hold */
		assert(!late);            /* a closed ring suppresses */
		own_head = seq + 1;
		whose[seq] = id;
		put(HEAD, own_head, 0)
	}
}

inline ktr_record()
{
	atomic {
		begun < EVENTS && depth == _pid && (_pid == 0 || running == _pid - 1) ->
		late = closed && depth == 0; /* a call in progress may finish, with those that interrupt it */
		id = begun;
		begun++;
		depth++;
		running = _pid;
		if
		:: _pid > 0 -> again[_pid - 1] = 1
		:: else
		fi
#ifdef BREAK_CLOCK
		;
		time = own_head;
		stamp = epoch
#endif
	};
restart:
	atomic { again[_pid] = 0; seq = own_head };
	atomic {
		INSTRUCTION(restart);
		if
		:: seq >= limit -> goto slow
		:: else
		fi
	};
#ifndef BREAK_CLOCK
	/* A smaller value means an earlier clock. */
	atomic { INSTRUCTION(restart); time = own_head; stamp = epoch };
#endif
#ifdef BREAK_ORDER
	store_head();
	write_barrier();
	fill_slot();
#else
	fill_slot();
#ifndef BREAK_BARRIER
	write_barrier();
#endif
	store_head();
#endif
	goto done;
slow: /* ring_open() */
	atomic {
		if
		:: refuse -> suppressed++; goto done
		:: else
		fi
	};
	atomic {
		seq = own_head;
		upto = RING_LIMIT(seq);
		if
		:: upto <= seq -> dropped++; goto done
		:: else
		fi
	};
turn: /* ring_set_turn() */
	atomic {
		again[_pid] = 0;
		if
		:: own_head != seq -> goto look_again
		:: else
		fi
	};
	atomic { INSTRUCTION(turn); limit = upto };
look_again:
#ifndef BREAK_LIMIT
	atomic {
		if
		:: refuse -> goto close
		:: else
		fi
	};
#endif
	goto restart;
close:
	limit = 0;
	goto restart;
done:
	atomic {
		id = 0;
		seq = 0;
		time = 0;
		stamp = 0;
		upto = 0;
		late = 0;
		again[_pid] = 0;
		depth--;
		running = (_pid == 0 -> 0 : _pid - 1)
	}
}

/* The thread is context 0. Context n may run while context n - 1 is in a record call. */
active [DEPTH] proctype context() provided (running <= _pid)
{
	byte id, seq, time, stamp, upto;
	bit late;
end:	do
	:: ktr_record()
	od
}

active proctype memory()
{
	byte at;
end:	do
	:: stores > 0 -> reach(0)
#ifndef TSO
	:: stores > 1 && OVERTAKES(1, 0) -> reach(1)
	:: stores > 2 && OVERTAKES(2, 0) && OVERTAKES(2, 1) -> reach(2)
	:: stores > 3 && OVERTAKES(3, 0) && OVERTAKES(3, 1) && OVERTAKES(3, 2) -> reach(3)
#endif
	od
}

#ifdef CLOSE
active proctype ktr_ring_close()
{
	refuse = 1;
	limit = 0;
	closed = 1
}
#endif

/* ---- the stream --------------------------------------------------------------------------------- */

#define OK     1
#define GONE   2
#define FUTURE 3

byte delivered, overwritten;
bool drained;

/* recorded = delivered + resident + overwritten, as stats_read() counts */
#define ACCOUNTED \
	(head == delivered + (head - MAX(TAIL(head), cursor)) + overwritten + (MAX(TAIL(head), cursor) - cursor))

inline entry_copy()
{
	entry = word[SLOT(cursor)]
}

inline look()
{
	atomic { status = (cursor >= head -> FUTURE : (cursor < TAIL(head) -> GONE : OK)) }
}

/* Reads the event at the cursor. */
inline ktr_log_read()
{
#ifdef BREAK_ACQUIRE
	entry_copy();
	look();
#else
	look();
#ifdef BREAK_FENCE
	look();
#endif
	entry_copy();
#endif
#if !defined(BREAK_RECHECK) && !defined(BREAK_FENCE)
	if
	:: status == OK -> look()
	:: else
	fi
#endif
}

/* ktr_encode_event(), stream_advance() */
inline deliver()
{
	atomic {
		assert(entry == whose[cursor]); /* whole */
		delivered++;
#ifndef BREAK_CURSOR
		cursor++
#endif
	}
}

inline stream_gone()
{
	atomic {
#ifdef FILL
		assert(cursor >= TAIL(head)); /* what was skipped is counted */
#endif
#ifdef BREAK_GONE
		skip
#else
#ifndef BREAK_LOSS
		overwritten = overwritten + TAIL(head) - cursor;
#endif
		cursor = TAIL(head)
#endif
	}
}

/* Every CPU takes an interrupt: its earlier stores become visible, and a record begins again. */
inline ktr_port_sync()
{
	atomic { epoch == 0 -> epoch = 1 };
#ifndef BREAK_SYNC
	atomic { again[0] = 1; again[DEPTH - 1] = 1 };
#endif
	atomic { stores == 0 -> settled = 1 }
}

active proctype stream()
{
	byte status, entry;
	do
#ifdef BREAK_ACQUIRE
	:: cursor != EVENTS ->
#else
	:: head > cursor ->
#endif
		ktr_log_read();
		if
		:: status == OK -> deliver()
		:: status == GONE -> stream_gone()
		:: else
		fi;
		atomic { assert(ACCOUNTED); status = 0; entry = 0 }
#ifdef SYNC
	:: ktr_port_sync()
#endif
	:: begun == EVENTS && depth == 0 && stores == 0 && cursor == head -> break
	od;
	assert(ACCOUNTED && head + suppressed + dropped == EVENTS);
	drained = true
}

ltl drains { <> drained }
