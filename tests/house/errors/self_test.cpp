// expect: neap: this is what a file of this folder looks like
// Each file here must not compile: the compiler's first error or static_assert must contain the text above. A line
// `also: TEXT` of the same form asks for TEXT anywhere in what the compiler prints.
#include <neap/core/version.hpp>

static_assert(NEAP_VERSION < 0, "neap: this is what a file of this folder looks like");
