/*
 * ktr.pml - a model of ktr/ring.c and ktr/stream.c: a CPU whose record calls are interrupted, its memory, and a stream on
 * another CPU. tests/model/run says what of it is checked, and which steps it takes out to see the checks fail.
 *
 * Labels and names are those of the code's functions. An entry is the word `publish`, which has its lap, and its site and
 * thread, here `whose`: one store invalidates or publishes all of it. And it is one other word, which stands for any of those
 * that are filled: a reader that is given a wrong word has one that is wrong, and the others do not matter to it. For the
 * same reason it looks at `whose` or at the word, never at both. What is stored in either is the number of the event that
 * stores it. A claim is one step, by a compare-and-swap or because it would have begun again (ktr/restart.h).
 *
 * Memory is weak: the CPU's stores wait in `buf`, and reach others in any order that the code's barriers leave
 * open. The CPU itself sees its own stores. A record call is interrupted at any step; an interrupt is over before what it
 * interrupted goes on.
 *
 * Two kinds of reader: a stream, which waits for record calls to finish (ktr_port_quiesce()), and with BARE one that does
 * not. It may be given a mixed entry, if a writer is late by a turn in the middle of its fill, and goes on; and only then.
 *
 * ENTRIES slots; EVENTS record calls; DEPTH of calls in each other; LAPS turns until a lap comes again (32768 in the code;
 * so many here that none does, but where that is the question); BREAK_x takes out or moves step x.
 */
#ifndef ENTRIES
#define ENTRIES 2
#endif
#ifndef EVENTS
#define EVENTS 5
#endif
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef LAPS
#define LAPS EVENTS
#endif

#define SLOT(seq)  ((seq) % ENTRIES)
#define LAP(seq)   (((seq) / ENTRIES) % LAPS + 1) /* 0: not published */
#define TAIL(head) ((head) > ENTRIES -> (head) - ENTRIES : 0)
#define NOTHING    255

#ifdef BREAK_LAP
#define PUBLISHED_LAP(seq) ((((seq) + 1) / ENTRIES) % LAPS + 1)
#else
#define PUBLISHED_LAP(seq) LAP(seq)
#endif

/* ---- memory, as other CPUs see it, and the stores that have not reached it -------------------- */

byte head;
typedef publish_word {
	byte lap;
	byte whose; /* site and thread */
}
publish_word publish[ENTRIES];
byte word[ENTRIES] = NOTHING;

#define NONE       0
#define HEAD       1
#define WORD       2
#define INVALIDATE 3
#define PUBLISH    4
#define BARRIER    5

#define BUFFER 4
typedef store {
	byte kind;
	byte seq; /* whose; of HEAD the new value */
}
store buf[BUFFER];
byte stores;

#ifdef BREAK_RELEASE_PUBLISH
#define RELEASES(i) (buf[i].kind == INVALIDATE)
#else
#ifdef BREAK_RELEASE_INVALIDATE
#define RELEASES(i) (buf[i].kind == PUBLISH)
#else
#define RELEASES(i) (buf[i].kind == INVALIDATE || buf[i].kind == PUBLISH)
#endif
#endif

#define AT_PUBLISH(i) (buf[i].kind == INVALIDATE || buf[i].kind == PUBLISH)
#define SAME_PLACE(i, j)                                               \
	((buf[i].kind == buf[j].kind || (AT_PUBLISH(i) && AT_PUBLISH(j))) &&   \
	 (buf[i].kind == HEAD || SLOT(buf[i].seq) == SLOT(buf[j].seq)))
/* Store i may overtake store j, which is older. */
#define OVERTAKES(i, j)                                                                       \
	(i < stores && !RELEASES(i) && buf[i].kind != BARRIER && buf[j].kind != BARRIER &&   \
	 !SAME_PLACE(i, j))

inline put(what, event)
{
	d_step {
		buf[stores].kind = what;
		buf[stores].seq = event;
		stores++
	}
}

/* Store i becomes visible, and leaves the buffer. */
inline reach(i)
{
	d_step {
		if
		:: buf[i].kind == HEAD -> head = buf[i].seq
		:: buf[i].kind == WORD -> word[SLOT(buf[i].seq)] = buf[i].seq
		:: buf[i].kind == INVALIDATE ->
#ifndef BREAK_INVALIDATE
			publish[SLOT(buf[i].seq)].lap = 0;
			publish[SLOT(buf[i].seq)].whose = buf[i].seq
#else
			skip
#endif
		:: buf[i].kind == PUBLISH ->
			publish[SLOT(buf[i].seq)].lap = PUBLISHED_LAP(buf[i].seq);
			publish[SLOT(buf[i].seq)].whose = buf[i].seq
		:: buf[i].kind == BARRIER
		fi;
		at = i;
		do
		:: at + 1 < stores ->
			buf[at].kind = buf[at + 1].kind;
			buf[at].seq = buf[at + 1].seq;
			at++
		:: else -> break
		od;
		buf[at].kind = NONE;
		buf[at].seq = 0;
		at = 0;
		stores--
	}
}

/* ---- the CPU that records ---------------------------------------------------------------------- */

byte own_head;       /* the head word as this CPU sees it */
byte begun;          /* record calls */
byte depth;          /* record calls in progress, one inside the other */
byte running;        /* the context that goes on: 0 the thread, 1 an interrupt, 2 one in that */
bit spoiled[EVENTS]; /* by a writer that was late by a turn or more */
#ifdef BARE
byte filling[DEPTH] = NOTHING; /* the event whose slot a context has invalidated, and will yet write to */
bit mixed[EVENTS];             /* published where a late writer had begun to fill */
#endif

inline ktr_record()
{
	atomic {
		begun < EVENTS && depth == _pid && (_pid == 0 || running == _pid - 1) ->
		begun++;
		depth++;
		running = _pid
#ifdef BREAK_CLOCK
		;
		time = own_head
#endif
	};
claim:
	ktr_ring_claim();
invalidate:
	ktr_ring_fill()
}

inline ktr_ring_claim()
{
	old = own_head; /* ktr_port_head() */
#ifndef BREAK_CLOCK
ktr_port_time:
	time = own_head; /* how many events have an earlier clock */
#endif
ktr_port_claim:
	atomic {
		stores < BUFFER;
		if
		:: own_head == old ->
			assert(time == own_head); /* slot order is time order */
			seq = own_head;
			own_head++;
			put(HEAD, own_head);
			old = 0;
			time = 0
		:: else -> goto claim
		fi
	}
}

inline ktr_ring_fill()
{
	atomic {
		stores < BUFFER;
		put(INVALIDATE, seq)
#ifdef BARE
		;
		filling[_pid] = seq
#endif
	};
#ifndef BREAK_BARRIER
ktr_port_wmb:
	atomic { stores < BUFFER; put(BARRIER, seq) };
#endif
#ifdef BREAK_FILL
	atomic { stores < BUFFER; put(PUBLISH, seq) };
#endif
fill:
	atomic { stores < BUFFER; put(WORD, seq) };
done:
	atomic {
#ifndef BREAK_FILL
		stores < BUFFER;
		put(PUBLISH, seq);
#endif
		if
		:: own_head - seq > ENTRIES ->
			spoiled[seq + (own_head - 1 - seq) / ENTRIES * ENTRIES] = 1
		:: else
		fi;
#ifdef BARE
		filling[_pid] = NOTHING;
		do
		:: level < _pid ->
			mixed[seq] = mixed[seq] || (filling[level] != NOTHING && SLOT(filling[level]) == SLOT(seq));
			level++
		:: else -> level = 0; break
		od;
#endif
		seq = 0;
		depth--;
		running = (_pid == 0 -> 0 : _pid - 1)
	}
}

/* The thread is context 0, and context n strikes while context n - 1 is in a record call. */
active [DEPTH] proctype context() provided (running <= _pid)
{
	byte old, time, seq, level;
end:	do
	:: ktr_record()
	od
}

active proctype memory()
{
	byte at;
end:	do
	:: stores > 0 -> reach(0)
	:: OVERTAKES(1, 0) -> reach(1)
	:: OVERTAKES(2, 0) && OVERTAKES(2, 1) -> reach(2)
	:: OVERTAKES(3, 0) && OVERTAKES(3, 1) && OVERTAKES(3, 2) -> reach(3)
	od
}

/* ---- the stream --------------------------------------------------------------------------------- */

#define OK          1
#define UNPUBLISHED 2
#define GONE        3

byte cursor, end, delivered, overwritten, torn; /* of struct ktr_ring and ktr_stream_cpu */
bit was_delivered[EVENTS];
bool quiesced, drained;

/* recorded = delivered + resident + overwritten + torn, as stats_read() counts */
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define ACCOUNTED \
	(head == delivered + (head - MAX(TAIL(head), cursor)) + overwritten + (MAX(TAIL(head), cursor) - cursor) + torn)

inline ktr_entry_copy()
{
	entry = word[SLOT(cursor)]
}

/* One load. */
inline look(look_lap, look_whose)
{
	atomic {
		look_lap = publish[SLOT(cursor)].lap;
		look_whose = publish[SLOT(cursor)].whose
	}
}

/* Of the event at the cursor. */
inline ktr_ring_read()
{
	atomic { status = (cursor < TAIL(head) -> GONE : 0) };
	if
	:: status == GONE
	:: else ->
#ifdef BREAK_ACQUIRE
		ktr_entry_copy();
		look(before, whose);
		look(after, whose_after);
#else
#ifdef BREAK_FENCE
		look(before, whose);
		look(after, whose_after);
		ktr_entry_copy();
#else
		look(before, whose);
		ktr_entry_copy();
		look(after, whose_after);
#endif
#endif
		atomic {
#ifdef BREAK_RECHECK
			after = before;
			whose_after = whose;
#endif
			status = (before == LAP(cursor) && after == before && whose_after == whose -> OK : UNPUBLISHED);
#ifndef BREAK_HEAD
			status = (cursor < TAIL(head) -> GONE : status);
#endif
			if
			:: entry = whose
			:: skip
			fi;
			entry = (status == OK -> entry : 0);
			before = 0;
			after = 0;
			whose = 0;
			whose_after = 0
		}
	fi
}

/* ktr_encode_event() */
inline deliver()
{
#ifdef BARE
	assert(entry == cursor || mixed[cursor]);
#else
	assert(entry == cursor); /* whole */
#endif
	assert(!was_delivered[cursor]);
	was_delivered[cursor] = 1;
	delivered++;
#ifndef BREAK_CURSOR
	cursor++;
#endif
	entry = 0
}

inline stream_gone()
{
	atomic {
		assert(own_head - cursor > ENTRIES);
#ifndef BREAK_LOSS
		overwritten = overwritten + TAIL(head) - cursor;
#endif
		cursor = TAIL(head)
	}
}

/* Looks again. */
inline stream_torn()
{
	ktr_ring_read();
	atomic {
		if
		:: status == UNPUBLISHED ->
			assert(spoiled[cursor]); /* a whole event is not called torn */
			torn++;
			cursor++
		:: else
		fi;
		entry = 0
	}
}

inline stream_cpu_batch()
{
	ktr_ring_read();
	if
	:: atomic { status == OK -> deliver() }
	:: status == GONE -> stream_gone()
#ifndef BREAK_TORN
	:: status == UNPUBLISHED && quiesced -> stream_torn()
#else
	:: status == UNPUBLISHED && quiesced -> end = cursor
#endif
	:: status == UNPUBLISHED && !quiesced -> end = cursor
	fi
}

active proctype stream()
{
	byte before, after, whose, whose_after, status, entry;
	do
	:: head > cursor ->
stream_pass_begin:
		end = head;
#if !defined(BREAK_QUIESCE) && !defined(BARE)
ktr_port_quiesce: /* no record call is in progress, and the stores of those that were have been seen */
		atomic {
			depth == 0 && stores == 0 ->
			quiesced = true;
			assert(ACCOUNTED)
		};
#endif
		do
		:: cursor < end -> stream_cpu_batch()
		:: else -> break
		od;
		atomic { status = 0; quiesced = false; end = 0 }
	:: begun == EVENTS && depth == 0 && stores == 0 && cursor == head -> break
	od;
	assert(ACCOUNTED && head == EVENTS);
	drained = true
}

ltl drains { <> drained }
