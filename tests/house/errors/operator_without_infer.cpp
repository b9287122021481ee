// expect: neap: this operator lacks  void infer(neap::shape_context&) const
#include <neap/ir/standard_operators.hpp>

namespace user {
struct mine {
  static constexpr std::string_view name = "mine";
  void relate(neap::dim_context& c) const { c.aligned(0, 0); }
};
}  // namespace user

neap::operator_view const v = neap::view_of(user::mine{});
