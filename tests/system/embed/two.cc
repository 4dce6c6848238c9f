/* two.cc - the same inline functions as in one.cc, and a template for another type,
 * and a namespace without a name. */
#include "traced.hh"

namespace
{
void
nameless(int n)
{
	CTR1(KTR_PROC, "nameless %d", n);
}
} // namespace

void
two(void)
{
	traced_inline(2);
	traced_template("int", 2);
	traced_template("long", 2L);
	nameless(3);
}
