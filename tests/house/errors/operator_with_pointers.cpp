// expect: neap: an operator must be trivially copyable and default constructible
#include <neap/ir/standard_operators.hpp>

namespace user {
struct mine {
  static constexpr std::string_view name = "mine";
  std::vector<int> sizes;
  void infer(neap::shape_context& c) const { c.fresh(c.in(0)); }
  void relate(neap::dim_context& c) const { c.aligned(0, 0); }
};
}  // namespace user

neap::operator_view const v = neap::view_of(user::mine{});
