// expect: neap: this operator lacks  static constexpr std::string_view name
#include <neap/ir/standard_operators.hpp>

namespace user {
struct mine {
  void infer(neap::shape_context& c) const { c.fresh(c.in(0)); }
  void relate(neap::dim_context& c) const { c.aligned(0, 0); }
};
}  // namespace user

neap::operator_view const v = neap::view_of(user::mine{});
