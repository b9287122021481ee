// Recurrent networks over sequences (batch, steps, width), one or several layers: the LSTM (Hochreiter and Schmidhuber 1997,
// with forget gates) and the GRU (Cho et al. 2014, in the form whose reset gate comes after the product). A layer's products
// with its inputs are one for all steps; those with the state are one a step. The cells are modules too, for programs that
// go step by step.
//
//   neap::nn::lstm net(64, 128, {.layers = 2});
//   auto const [y, last] = net(x);           // x (b, t, 64), y (b, t, 128)
//   auto const [z, after] = net(next, last); // goes on from there
#pragma once

#include <neap/model/nn/linear.hpp>

#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace nn {

/// What a layer of an LSTM remembers: (batch, width) each.
struct lstm_state {
  tensor hidden, cell;
};

namespace detail {
void require_state(char const* who, tensor const& s, std::int64_t batch, std::int64_t width);
}  // namespace detail

/// One step: c' = f c + i g, h' = o tanh(c') with i, f, o = sigmoid(...), g = tanh(...) of input(x) + state(h); the four in
/// this order, i f g o, are the rows of both weights.
struct lstm_cell {
  static constexpr char const* name = "lstm";
  linear input, state;

  lstm_cell() = default;
  lstm_cell(std::int64_t in, std::int64_t width, dtype element = dtype::f32,
            std::source_location at = std::source_location::current());

  /// x (b, in), s of (b, width)
  lstm_state operator()(tensor const& x, lstm_state const& s,
                        std::source_location at = std::source_location::current()) const;
  /// The same of a product that is already there: seen = input(x).
  lstm_state step(tensor const& seen, lstm_state const& s,
                  std::source_location at = std::source_location::current()) const;
  /// What it remembers before the first step: zeros.
  lstm_state start(std::int64_t batch, std::source_location at = std::source_location::current()) const;
  std::int64_t width() const { return state.weight.size(1); }

  friend auto neap_fields(refers_as<lstm_cell> auto& self) { return std::tie(self.input, self.state); }
  static constexpr std::array neap_names{"input", "state"};
};

/// One step: h' = (1 - z) n + z h with r, z = sigmoid(input(x) + state(h)), n = tanh(input(x) + r state(h)); the three in
/// this order, r z n, are the rows of both weights.
struct gru_cell {
  static constexpr char const* name = "gru";
  linear input, state;

  gru_cell() = default;
  gru_cell(std::int64_t in, std::int64_t width, dtype element = dtype::f32,
           std::source_location at = std::source_location::current());

  /// x (b, in), h (b, width) -> (b, width)
  tensor operator()(tensor const& x, tensor const& h, std::source_location at = std::source_location::current()) const;
  /// The same of a product that is already there: seen = input(x).
  tensor step(tensor const& seen, tensor const& h, std::source_location at = std::source_location::current()) const;
  /// What it remembers before the first step: zeros.
  tensor start(std::int64_t batch, std::source_location at = std::source_location::current()) const;
  std::int64_t width() const { return state.weight.size(1); }

  friend auto neap_fields(refers_as<gru_cell> auto& self) { return std::tie(self.input, self.state); }
  static constexpr std::array neap_names{"input", "state"};
};

struct recurrent_options {
  std::int64_t layers = 1;
  double dropout = 0;  // of what goes from one layer to the next
  dtype element = dtype::f32;
};

/// Layers of cells, each reading the outputs of the one before it at all steps.
template <class Cell>
struct recurrent {
  using states = std::vector<decltype(std::declval<Cell const&>().start(1))>;  // of each layer
  struct result {
    tensor output;  // (batch, steps, width): the last layer's, at every step
    states last;    // after the last step
  };

  std::vector<Cell> layers;
  double dropout = 0;

  recurrent() = default;
  recurrent(std::int64_t in, std::int64_t width, recurrent_options o = {},
            std::source_location at = std::source_location::current())
      : dropout(o.dropout) {
    place_scope const here(at);
    if (o.layers < 1) throw_error(context_access::place(at), {Cell::name, ": needs at least one layer"});
    for (std::int64_t i = 0; i < o.layers; ++i) layers.emplace_back(i == 0 ? in : width, width, o.element);
  }

  /// x (b, t, in), at least one step, and the states to start from: none are zeros.
  result operator()(tensor const& x, states const& first = {},
                    std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    if (x.rank() != 3 || x.size(1) < 1)
      throw_error(context_access::place(at), {Cell::name, ": takes (batch, at least one step, width), got ", x.type()});
    if (layers.empty())
      throw_error(context_access::place(at), {Cell::name, ": this module was never made: it has no widths"});
    detail::require_width(Cell::name, x, layers.front().input.weight);
    if (!first.empty() && first.size() != layers.size())
      throw_error(context_access::place(at),
                  {Cell::name, ": has ", layers.size(), " layers, got states of ", first.size()});
    auto const batch = x.size(0), steps = x.size(1);
    result r{contiguous(transpose(x, 0, 1)), {}};  // (t, b, in): the inputs of one step lie together
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (i > 0) r.output = neap::dropout(r.output, dropout);
      auto s = first.empty() ? layers[i].start(batch) : first[i];
      std::vector<tensor> all;
      for (auto const& seen : split(layers[i].input(r.output), steps)) {
        s = layers[i].step(squeeze(seen, 0), s);
        all.push_back(output_of(s));
      }
      r.output = stack(all);
      r.last.push_back(s);
    }
    r.output = transpose(r.output, 0, 1);
    return r;
  }

  friend auto neap_fields(refers_as<recurrent> auto& self) { return std::tie(self.layers, self.dropout); }
  static constexpr std::array neap_names{"layers", "dropout"};
  static constexpr bool neap_rest_is_derived = true;  // padding

 private:
  static tensor const& output_of(tensor const& s) { return s; }
  static tensor const& output_of(lstm_state const& s) { return s.hidden; }
};

using lstm = recurrent<lstm_cell>;
using gru = recurrent<gru_cell>;

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/recurrent.ipp>
#endif
