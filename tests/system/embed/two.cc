/* two.cc - the same inline functions as in one.cc, and a template for another type. */
#include "traced.hh"

void
two(void)
{
	traced_inline(2);
	traced_template("int", 2);
	traced_template("long", 2L);
}
