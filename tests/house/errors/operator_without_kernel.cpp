// expect: neap: the backend has no kernel for this operator
#include <neap/ir/standard_operators.hpp>
#include <neap/model/kernels.hpp>

namespace user {
struct mine {
  static constexpr std::string_view name = "mine";
  void infer(neap::shape_context& c) const { c.fresh(c.in(0)); }
  void relate(neap::dim_context& c) const { c.aligned(0, 0); }
};
}  // namespace user

auto const kernel = neap::kernel_of<neap::host_backend, user::mine>();
