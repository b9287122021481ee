// expect: neap: this operator lacks  void relate(neap::dim_context&) const
#include <neap/ir/standard_operators.hpp>

namespace user {
struct mine {
  static constexpr std::string_view name = "mine";
  void infer(neap::shape_context& c) const { c.fresh(c.in(0)); }
};
}  // namespace user

neap::operator_view const v = neap::view_of(user::mine{});
