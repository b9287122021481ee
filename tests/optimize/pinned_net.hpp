// An external graph whose operators and values are pinned, by its graph_traits.
#pragma once

#include "../support/engine_net.hpp"

#include <neap/optimize/external.hpp>

#include <utility>
#include <vector>

namespace neap::testing {

struct pinned_net : engine::net {
  explicit pinned_net(engine::net n) : engine::net(std::move(n)), of_op(ops.size()), of_value(lies_in.size()) {}
  std::vector<pin_set> of_op, of_value;
};

}  // namespace neap::testing

template <>
struct neap::graph_traits<neap::testing::pinned_net> : neap::graph_traits<engine::net> {
  static pin_set op_pins(testing::pinned_net const& g, op_id o) { return g.of_op[index(o)]; }
  static pin_set value_pins(testing::pinned_net const& g, value_id v) { return g.of_value[index(v)]; }
};
