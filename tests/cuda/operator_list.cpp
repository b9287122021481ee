// The list of operators that have a kernel on a GPU (neap/cuda/operators.hpp) leaves out none of the standard set but those
// that are marked here. (The library neap_compiled_cuda compiles the kernels of the list.)
#include <neap/cuda/operators.hpp>
#include <neap/ir/standard_operators.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace neap;

template <class Op>
constexpr bool is_listed = false;
#define NEAP_LISTED(OP) \
  template <>           \
  constexpr bool is_listed<op::OP> = true;
NEAP_CUDA_OPERATORS(NEAP_LISTED)
#undef NEAP_LISTED

template <class Op>
constexpr bool is_left_out = false;
#define NEAP_LEFT_OUT(OP) \
  template <>             \
  constexpr bool is_left_out<op::OP> = true;
// Transfers, which an executable does itself, and operators of unknown meaning.
NEAP_LEFT_OUT(store)
NEAP_LEFT_OUT(load)
NEAP_LEFT_OUT(wait)
NEAP_LEFT_OUT(opaque)
#undef NEAP_LEFT_OUT

template <class... Op>
std::string missing(type_list<Op...>) {
  std::string names;
  ((names += is_listed<Op> || is_left_out<Op> ? std::string() : std::string(Op::name) + " "), ...);
  return names;
}

}  // namespace

TEST_CASE("all standard operators have a kernel on a GPU, but for those that are marked") {
  CHECK(missing(op::standard_list{}) == "");
}
