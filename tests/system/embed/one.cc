/* one.cc - with two.cc, records in C++, and prints the texts of CPU 0's events. */
#include "traced.hh"

#include <cstdio>

extern "C" void trace_early(void);

int
main()
{
	trace_early();
	CTR6(KTR_PROC, "main %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6);
	CTR1(KTR_VM, "off %d", 0);
	traced_inline(1);
	traced_template("int", 1);
	traced_template("char", 'c');
	traced{7}.member();
	two();
	CTR1(KTR_SCHED, "state of %s", "main");

	uint64_t tail, head;
	if (!ktr_ring_window(0, &tail, &head))
		return 1;
	for (uint64_t seq = tail; seq < head; seq++) {
		struct ktr_entry e;
		char text[256];
		if (ktr_ring_read(0, seq, &e) != KTR_READ_OK)
			return 1;
		ktr_entry_text(text, sizeof(text), ktr_site_get(e.site), &e, 0, seq);
		std::puts(text);
	}
	return 0;
}
