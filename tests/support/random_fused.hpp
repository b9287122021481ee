// Random programs of elementwise steps (ir/element_program.hpp): any operators that can be steps, on values of any types that go
// together, broadcast inputs among them.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/ir/standard_operators.hpp>

#include "fused_steps.hpp"

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace neap::testing {

/// The facets of the operator that a step is of.
inline operator_facets const& facets_of_step(element_step const& s) {
  return *standard_operators::facets[static_cast<std::size_t>(s.row)];
}

struct random_fused {
  element_program program;
  shape dims;                       // of its result
  std::vector<tensor_type> inputs;  // in order

  /// A program of at most `most` steps in f64 (`wide`) or f32; of all operators, or of those that need no functions (sums,
  /// products, choices) only. `rows`: sometimes so many elements along the first axis that a run takes several chunks.
  static random_fused draw(random_stream& draw, bool wide, int most = element_program::max_steps, bool plain = false) {
    for (;;)
      if (auto made = attempt(draw, wide, most, plain)) return *made;
  }

  /// Whether an operator is more than sums, products and choices.
  static bool needs_functions(std::string_view name) {
    for (std::string_view part : {"exp", "log", "tanh", "sigmoid", "gelu", "silu", "erf", "soft", "sin", "cos", "pow",
                                  "elu", "sqrt", "div", "recip"})
      if (name.find(part) != name.npos && !name.starts_with("relu") && !name.starts_with("leaky")) return true;
    return false;
  }

 private:
  struct value {
    tensor_type type;
    int row = -1;  // an input
    std::vector<int> operands{};
    std::vector<std::byte> bytes{};
  };
  static std::optional<random_fused> attempt(random_stream& draw, bool wide, int most, bool plain) {
    shape dims;
    for (auto k = draw.below(4); k > 0; --k) dims.push_back(1 + draw.below(7));
    if (dims.rank() > 0 && draw.below(4) == 0) dims[0] = 200 + draw.below(400);
    if (dims.rank() > 0 && draw.below(12) == 0) dims[dims.rank() - 1] = 0;
    auto const some_type = [&] {
      if (draw.below(5) == 0) return dtype::boolean;
      constexpr dtype narrow[] = {dtype::f32, dtype::f32, dtype::bf16, dtype::f16};
      return wide ? dtype::f64 : narrow[draw.below(4)];
    };
    std::vector<value> values;
    int const inputs = 1 + static_cast<int>(draw.below(element_program::max_inputs));
    for (int i = 0; i < inputs; ++i) {
      shape s = dims;
      if (i > 0 && draw.below(3) == 0) {
        s = {};
        for (int k = static_cast<int>(draw.below(static_cast<std::uint32_t>(dims.rank() + 1))); k < dims.rank(); ++k)
          s.push_back(draw.below(3) ? dims[k] : 1);
      }
      values.push_back({{some_type(), s}});
    }
    int const steps = 1 + static_cast<int>(draw.below(static_cast<std::uint32_t>(most)));
    for (int tries = 0; tries < 4000 && static_cast<int>(values.size()) < inputs + steps; ++tries) {
      auto const& f = *fused_steps()[draw.below(static_cast<std::uint32_t>(fused_steps().size()))];
      if (plain && needs_functions(f.name)) continue;
      value made{{}, f.row};
      made.bytes.resize(op::detail::max_step_bytes);
      f.construct(made.bytes.data());
      for (auto const& a : f.attributes) {
        auto const like = a.get(made.bytes.data());
        if (std::holds_alternative<double>(like))
          a.set(made.bytes.data(),
                draw.below(3) ? static_cast<double>(draw.uniform()) * 4 - 2 : static_cast<double>(draw.below(5)) - 2);
        else if (std::holds_alternative<bool>(like)) a.set(made.bytes.data(), draw.below(2) == 1);
        else if (std::holds_alternative<dtype>(like)) a.set(made.bytes.data(), some_type());
      }
      std::vector<tensor_layout> in;
      for (int i = 0; i < f.arguments; ++i) {
        auto const n = static_cast<std::uint32_t>(values.size());
        auto const x = draw.below(2) ? draw.below(n) : n - 1 - draw.below(std::min<std::uint32_t>(n, 3));
        made.operands.push_back(static_cast<int>(x));
        in.push_back(tensor_layout::dense(values[x].type));
      }
      try {
        shape_context c(f.name, in);
        f.infer(made.bytes.data(), c);
        made.type = c.outputs()[0].layout.type;
      } catch (error const&) { continue; }
      if (made.type.dims != dims) continue;
      values.push_back(std::move(made));
    }
    // What the last one reads, directly or not.
    std::vector<bool> read(values.size());
    read.back() = true;
    for (std::size_t v = values.size(); v-- > 0;)
      if (read[v])
        for (int x : values[v].operands) read[static_cast<std::size_t>(x)] = true;
    if (values.back().row < 0) return {};
    std::vector<int> now(values.size());
    random_fused r;
    r.dims = dims;
    for (std::size_t v = 0; v < values.size(); ++v)
      if (read[v] && values[v].row < 0) {
        now[v] = static_cast<int>(r.inputs.size());
        r.inputs.push_back(values[v].type);
      }
    element_program make(r.inputs.size());
    for (std::size_t v = 0; v < values.size(); ++v) {
      auto const& x = values[v];
      if (!read[v] || x.row < 0) continue;
      std::vector<int> operands;
      for (int y : x.operands) operands.push_back(now[static_cast<std::size_t>(y)]);
      auto const at = make.add({standard_operators::facets[static_cast<std::size_t>(x.row)], x.bytes.data()},
                               x.type.element, operands);
      if (!at) return {};  // more constants than a program has
      now[v] = *at;
    }
    r.program = make;
    if (!r.program.fault(r.inputs.size()).empty()) return {};  // too many results wait at once
    return r;
  }
};

}  // namespace neap::testing
