// expect: neap: the backend has no kernel for an operator of its set
// also: my_square
#include <neap/execute/executable.hpp>

struct my_square {
  static constexpr std::string_view name = "my_square";
  void infer(neap::shape_context& c) const { c.fresh(c.in(0)); }
  void relate(neap::dim_context& c) const { c.aligned(0, 0); }
};
struct my_backend {
  using operators = neap::operator_set<neap::op::opaque, neap::op::store, neap::op::load, neap::op::wait, my_square>;
};

int main() {
  my_backend backend;
  neap::executable<my_backend> run({}, {}, backend);
}
