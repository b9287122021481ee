// expect: neap: this operator has data members but lacks  static constexpr auto attributes()
#include <neap/ir/standard_operators.hpp>

namespace user {
struct mine {
  static constexpr std::string_view name = "mine";
  int size = 0;
  void infer(neap::shape_context& c) const { c.fresh(c.in(0)); }
  void relate(neap::dim_context& c) const { c.aligned(0, 0); }
};
struct my_ops : neap::extend<neap::standard_operators, mine> {};
}  // namespace user

neap::basic_graph<user::my_ops> g;
