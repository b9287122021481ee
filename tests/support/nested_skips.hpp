// Random training steps whose blocks are no chain: nested skips as in a U-Net, a memory that all later layers read as in
// a decoder, and both; with gradients that are summed where a value has several readers. For solvers that must decide what
// is held across many blocks.
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace neap::testing {

struct nested_options {
  std::size_t depth = 3;    // of skips within skips
  std::size_t layers = 2;   // at each depth, on the way down and up, at most
  std::size_t readers = 0;  // layers behind all that which read the first layers' result, too
  bool told = true;         // gradients have their role; else they are outputs, and all is forward
  bool plain = false;       // no views, second results, draws, ops that must not run again, updates
  std::uint64_t seed = 1;
};

class nested_maker {
 public:
  explicit nested_maker(nested_options const& o) : o_(o), state_(o.seed * 0x9e3779b97f4a7c15u + 1) {}

  /// Ids are a valid order: forward, backward, each update behind its gradient.
  graph make() {
    value_id x = edit_.add_source_at(role::input, layout(1024), "x");
    x = layer(x, 512);
    auto const memory = x;
    x = level(x, 0);
    for (std::size_t k = 0; k < o_.readers; ++k) x = layer(join({x, memory}, rows(x)), rows(x));
    edit_.keep(x, role::output);
    backward(x);
    return graph(std::move(edit_).finish());
  }

 private:
  struct step {
    std::vector<value_id> in, reads;  // what has gradients; what they read besides
    value_id out, weight = nothing<value_id>;
  };

  std::int64_t below(std::uint64_t n) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<std::int64_t>((state_ >> 11) % n);
  }
  role of_gradient() const { return o_.told ? role::gradient : role::output; }
  bool chance(std::uint64_t one_in) { return !o_.plain && below(one_in) == 0; }
  static tensor_layout layout(std::int64_t rows) { return tensor_layout::dense({dtype::f32, {rows, 16}}); }
  std::int64_t rows(value_id v) const { return edit_.layout_of(v).type.dims[0]; }
  op_id add(std::string const& target, std::vector<value_id> const& in, std::int64_t rows, op::opaque what,
            bool two = false) {
    what.seconds = 1e-6 * static_cast<double>(1 + below(20));
    std::vector<output_rule> out{{layout(rows), alias_kind::fresh, -1, -1}};
    if (two) out.push_back({layout(1 + rows / 4), alias_kind::fresh, -1, -1});
    return edit_.add_opaque(target, what, in, out);
  }
  value_id layer(value_id x, std::int64_t wide) {
    auto const w = edit_.add_source_at(role::weight, layout(16), "w");
    op::opaque what;
    if (chance(12)) what.pure = false;
    if (chance(10)) what.rng = true, what.key = below(1000);
    auto const o = add("linear", {x, w}, wide, what, chance(6));
    value_id y = edit_.output(o);
    std::vector<value_id> reads{x};
    if (edit_.outputs_of(o).size() > 1) reads.push_back(edit_.outputs_of(o)[1]);
    tape_.push_back({{x}, reads, y, w});
    if (chance(5)) {
      output_rule const view[] = {{edit_.layout_of(y), alias_kind::view, 0, -1}};
      op::opaque free;
      free.seconds = 0;
      auto const seen = edit_.output(edit_.add_opaque("view", free, std::vector{y}, view));
      tape_.push_back({{y}, {}, seen});
      y = seen;
    }
    auto const z = edit_.output(add("activation", {y}, wide, {}));
    tape_.push_back({{y}, {below(2) ? y : z}, z});
    return z;
  }
  value_id join(std::vector<value_id> const& in, std::int64_t wide) {
    auto const y = edit_.output(add("join", in, wide, {}));
    tape_.push_back({in, {}, y});
    return y;
  }
  value_id level(value_id x, std::size_t depth) {
    auto const layers = [&] {
      for (auto n = 1 + below(o_.layers); n > 0; --n) x = layer(x, rows(x));
    };
    layers();
    if (depth == o_.depth) return x;
    auto const skip = x;
    auto const wide = rows(x);
    x = layer(x, below(3) ? wide / 2 : wide);
    x = level(x, depth + 1);
    if (below(4) == 0) x = level(x, depth + 1);
    x = join({skip, layer(x, wide)}, wide);
    layers();
    return x;
  }
  void backward(value_id loss) {
    std::vector<value_id> gradient(10'000, nothing<value_id>);
    gradient[index(loss)] = edit_.output(add("loss", {loss}, rows(loss), {}));
    for (std::size_t i = tape_.size(); i-- > 0;) {
      auto const& s = tape_[i];
      auto const from = gradient[index(s.out)];
      value_id update = nothing<value_id>;
      std::vector<value_id> in{from};
      in.insert(in.end(), s.reads.begin(), s.reads.end());
      if (s.weight != nothing<value_id>) {
        auto const dw = edit_.output(add("weight_gradient", in, 16, {}));
        if (chance(2)) update = dw;
        else edit_.keep(dw, of_gradient());
        in.push_back(s.weight);
      }
      for (auto v : s.in) {
        auto g = edit_.output(add("gradient", in, rows(v), {}));
        auto& sum = gradient[index(v)];
        if (sum != nothing<value_id>) g = edit_.output(add("sum", {sum, g}, rows(v), {}));
        sum = g;
      }
      if (update == nothing<value_id>) continue;
      output_rule const in_place[] = {{edit_.layout_of(s.weight), alias_kind::update, 0, -1}};
      op::opaque what;
      what.pure = false, what.seconds = 1e-6;
      edit_.add_opaque("update", what, std::vector{s.weight, update}, in_place);
    }
    edit_.keep(gradient[index(tape_.front().in[0])], of_gradient());
  }

  nested_options o_;
  std::uint64_t state_;
  graph_editor edit_{operator_table(standard_operators::facets)};
  std::vector<step> tape_;
};

inline graph nested_skips(nested_options const& o) { return nested_maker(o).make(); }

}  // namespace neap::testing
