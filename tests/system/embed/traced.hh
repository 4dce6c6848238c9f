/* traced.hh - trace points that the compiler copies: of an inline function, a template, a member, a
 * lambda. */
#pragma once

#include <ktr.h>

void two(void);

inline void
traced_inline(int file)
{
	CTR1(KTR_PROC, "inline %d", file);
}

template <class T>
void
traced_template(const char *type, T)
{
	CTR2(KTR_PROC, "template %s %d", type, (int)sizeof(T));
}

struct traced {
	int x;
	void
	member()
	{
		CTR2(KTR_SCHED, "member %d %s", x, "text");
		auto lambda = [](int y) { CTR1(KTR_PROC, "lambda %d", y); };
		lambda(x + 1);
	}
};
