// A chain of elementwise operators as one operator: a small program of steps over values of one shape, none of which but
// the last takes memory. Each step is a standard scalar operator; its result is rounded to its element type before the
// next step reads it. So the bits are those of the operators one after another.
//
//   t0 = add(x0, x1); t1 = gelu(t0)
//
// The host runs a program in chunks that stay in the first cache, one compiled loop a step: the loop that the operator
// alone has, which is why the bits are equal. ir/fuse.hpp makes such operators of a graph's.
//
// Operands that are smaller are broadcast, as in the steps' operators. Steps compute either in f64 (f64 and booleans) or
// in f32 (f32, bf16, f16 and booleans).
#pragma once

#include <neap/core/span_of.hpp>
#include <neap/core/text_part.hpp>
#include <neap/ir/operators/binary.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace neap::inline v0::op {

namespace detail {

/// The operators that can be steps. Their rows in the standard set are their numbers in programs.
using step_list =
    type_list<cast, neg, exp, log, sqrt, rsqrt, reciprocal, abs, square, tanh, sigmoid, relu, gelu, silu, erf, softplus,
              leaky_relu, add_scalar, mul_scalar, pow_scalar, exp_grad, log_grad, sqrt_grad, rsqrt_grad,
              reciprocal_grad, abs_grad, square_grad, tanh_grad, sigmoid_grad, relu_grad, gelu_grad, silu_grad,
              erf_grad, softplus_grad, leaky_relu_grad, pow_scalar_grad, sin, cos, sign, floor, round, clamp, sin_grad,
              cos_grad, clamp_grad, elu, elu_grad, add, sub, mul, div, maximum, minimum, pow_op, greater, greater_equal,
              less, less_equal, equal, not_equal, where, scalar_over, scalar_over_grad, rsqrt_grad_at,
              reciprocal_grad_at, tanh_grad_at, sigmoid_grad_at, elu_grad_at, clamp_grad_at, exp_grad_at, sqrt_grad_at>;

/// What programs know of an operator that can be a step. (Its facets would bring its kernel along.)
struct step_operator {
  std::string_view name;
  int row = -1, arguments = 0;
  std::uint32_t size = 0;  // bytes of its attributes
  double flops = 0;
  void (*construct)(void*) = nullptr;
  void (*infer)(void const*, shape_context&) = nullptr;
  std::span<attribute_field const> attributes;
};
inline constexpr std::size_t most_step_bytes = 16;

/// What programs know of the standard operator in this row; nullptr if it can be no step.
step_operator const* step_at(int row);
/// Its place in step_list; -1: it can be no step.
int step_place(int row);

}  // namespace detail

/// One step of a program: operands below the number of inputs are inputs, the others are earlier steps.
struct fused_step {
  static constexpr int most_operands = 3;
  int row = -1;  // of the operator in the standard set
  dtype element = dtype::f32;
  std::array<int, most_operands> operands{};

  constexpr bool operator==(fused_step const&) const = default;
};

/// x... -> the last step's result, of the shape that the inputs broadcast to. No gradient: programs are made of graphs
/// that have their gradients.
struct fused {
  static constexpr std::string_view name = "fused";
  static constexpr bool elementwise = true;
  static constexpr layouts takes = layouts::any;
  static constexpr int most_inputs = 8, most_steps = 2 * max_rank, most_constants = max_rank;
  static constexpr int most_rooms = 4;  // results that wait for later steps at once: a GPU has them in registers

  std::int64_t inputs = 0;
  extents steps, more_steps;  // a number each (packed); beyond the first eight in more_steps
  extents constants;          // the steps' attributes in order, as bits: of all but casts, whose type is the step's

  static constexpr auto attributes() {
    return std::array{field<&fused::inputs>("inputs"), field<&fused::steps>("steps"),
                      field<&fused::more_steps>("more_steps"), field<&fused::constants>("constants")};
  }

  int step_count() const { return steps.rank() + more_steps.rank(); }
  fused_step step(int k) const;
  /// The operator of step k, its attributes written to `to` (of detail::most_step_bytes, aligned to 8). The number of
  /// constants that it takes, from `constant` on.
  int attributes_of(int k, int constant, void* to) const;
  /// Calls f(k, step, its operator, its attributes' bytes) for all steps in order. The program must be a right one.
  template <class F>
  void for_each_step(F const& f) const {
    for (int k = 0, constant = 0; k < step_count(); ++k) {
      alignas(8) std::byte bytes[detail::most_step_bytes];
      constant += attributes_of(k, constant, bytes);
      auto const s = step(k);
      f(k, s, *detail::step_at(s.row), static_cast<void const*>(bytes));
    }
  }

  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  work cost(work_context const& c) const;

  /// Gives each step but the last a room for its result until the last step that reads it, the lowest that is free then.
  /// How many rooms there are. The steps' operands must be there.
  int rooms(std::array<int, most_steps>& of_step) const;

  /// What is wrong with the program, for that many inputs: an operator that can be no step, an operand that is not there,
  /// a constant too few or too many, a step or an input that is not read, too many rooms. Empty if it is right.
  std::string fault(std::size_t arity) const;

 private:
  std::int64_t packed(int k) const { return k < steps.rank() ? steps[k] : more_steps[k - steps.rank()]; }
};

/// Makes programs step by step. What does not fit into a program is refused without a change.
class fused_maker {
 public:
  /// A program of that many inputs.
  explicit fused_maker(int inputs) { made_.inputs = inputs; }

  /// Adds a step, `element` being its result's type; its number as an operand. None if the operator can be no step, or the
  /// program is full.
  std::optional<int> add(operator_view op, dtype element, std::span<int const> operands);
  template <class Op>
  std::optional<int> add(Op const& op, dtype element, std::initializer_list<int> operands) {
    return add_step(neap::detail::standard_row<Op>, &op, element, span_of(operands.begin(), operands.size()));
  }
  /// Adds the steps of a right program on these values; its result as an operand. None if they do not fit: then some of
  /// them may be there.
  std::optional<int> add_all(fused const& p, std::span<int const> inputs);
  fused const& made() const { return made_; }

 private:
  /// By the operator's row. (Not by its facets, which would bring its kernel along.)
  std::optional<int> add_step(int row, void const* attributes, dtype element, std::span<int const> operands);
  static std::int64_t bits_of(attribute_value const& v);
  fused made_;
};

/// The program as text: "t0 = add(x0, x1); t1 = mul_scalar(t0) {value 2}". The program must be a right one.
std::string to_string(fused const& p);

namespace detail {

/// The compiled loop of an operator with these attributes, and the functor's bytes, which are the operator's.
template <class C, class Op>
neap::detail::map_loop_type<C> step_loop(void const* op) {
  using neap::detail::map_loop;
  if constexpr (std::is_same_v<Op, gelu>) {
    return static_cast<gelu const*>(op)->tanh_form ? &map_loop<C, gelu_function<true>, 1, 1>
                                                   : &map_loop<C, gelu_function<false>, 1, 1>;
  } else if constexpr (std::is_same_v<Op, gelu_grad>) {
    return static_cast<gelu_grad const*>(op)->tanh_form ? &map_loop<C, gelu_function<true>, 2, 1>
                                                        : &map_loop<C, gelu_function<false>, 2, 1>;
  } else if constexpr (std::is_same_v<Op, where>) {
    return &map_loop<C, neap::detail::choice_of, 3, 1>;
  } else if constexpr (std::is_same_v<Op, cast>) {
    return nullptr;
  } else {
    return &map_loop<C, Op, Op::map_inputs, 1>;
  }
}
template <class C, class List>
struct step_loops;
template <class C, class... Op>
struct step_loops<C, type_list<Op...>> {
  static constexpr neap::detail::map_loop_type<C> (*of[])(void const*){&step_loop<C, Op>...};
};

/// A program on operands, ready to run over ranges of elements: chunk by chunk, step by step.
template <class C>
class fused_run {
 public:
  /// `rounds`: the result is rounded to its type, too, where values() gives it.
  fused_run(fused const& p, kernel_arguments const& a, bool rounds = false)
      : inputs_(static_cast<int>(p.inputs)),
        steps_(p.step_count()) {
    auto const& to = a.out[0];
    out_ = neap::detail::view_through(to.dims, to);
    for (int i = 0; i < inputs_; ++i) in_[i] = neap::detail::view_through(to.dims, a.in[static_cast<std::size_t>(i)]);
    int last_read[most_values]{}, stands_for[most_values];
    for (int v = 0; v < inputs_ + steps_; ++v) stands_for[v] = v;
    for (int k = 0, constant = 0; k < steps_; ++k) {
      auto& s = step_[k];
      constant += p.attributes_of(k, constant, s.functor);
      auto const made = p.step(k);
      auto const& f = *step_at(made.row);
      s.loop = step_loops<C, step_list>::of[step_place(made.row)](s.functor);
      s.arguments = f.arguments;
      for (int i = 0; i < s.arguments; ++i) s.operand[i] = stands_for[made.operands[static_cast<std::size_t>(i)]];
      if ((rounds || k + 1 < steps_) && made.element != dtype_of<C>) {
        s.narrow = neap::detail::conversion_to<C>(made.element);
        s.widen = neap::detail::conversion_from<C>(made.element);
      }
      // A cast that changes no number is its operand.
      if (!s.loop && !s.narrow) stands_for[inputs_ + k] = s.operand[0];
      for (int i = 0; i < s.arguments; ++i) last_read[s.operand[i]] = k;
    }
    result_ = stands_for[inputs_ + steps_ - 1];
    last_read[result_] = steps_;
    // Rooms for values: one that has been read for the last time gives its own to the next.
    int room[most_values], count = 0;
    plain_vector<int> open;
    for (int i = 0; i < inputs_; ++i) room[i] = room_[i] = count++;
    for (int k = 0; k < steps_; ++k) {
      int const v = inputs_ + k;
      auto& s = step_[k];
      for (int i = 0; i < s.arguments; ++i) {
        int const x = s.operand[i];
        if (last_read[x] != k) continue;
        last_read[x] = -1;
        open.push_back(room[x]);
      }
      if (stands_for[v] != v) continue;
      if (open.empty()) room[v] = count++;
      else room[v] = open.back(), open.pop_back();
      room_[v] = room[v];
    }
  }

  /// Writes the results of elements [begin, end).
  void operator()(std::int64_t begin, std::int64_t end) const {
    run(
        begin, end, [this](std::int64_t i, std::int64_t n) { return neap::detail::direct<C>(out_, i, n); },
        [this](std::int64_t i, std::int64_t n, C const* made) { neap::detail::scatter(out_, i, n, made); });
  }
  /// The results of elements [begin, end), to to[0] on. The run must have been made to round them.
  void values(std::int64_t begin, std::int64_t end, C* to) const {
    run(
        begin, end, [=](std::int64_t i, std::int64_t) { return to + (i - begin); },
        [=](std::int64_t i, std::int64_t n, C const* made) { std::copy_n(made, n, to + (i - begin)); });
  }

 private:
  /// `place(i, n)`: where elements [i, i + n) may be written in C, or nullptr; `put(i, n, made)` writes what was made
  /// elsewhere.
  template <class Place, class Put>
  void run(std::int64_t begin, std::int64_t end, Place const& place, Put const& put) const {
    using neap::detail::map_chunk;
    alignas(64) C room[most_values][map_chunk];
    alignas(64) std::byte low[map_chunk * 2];
    C const* at[most_values];
    for (std::int64_t i = begin; i < end;) {
      // Whole lanes where they lie; the rest in lanes filled up with copies of its last element (as maps do).
      std::int64_t const left = end - i, lanes = host_block::lanes;
      std::int64_t const n = left >= map_chunk ? map_chunk : left >= lanes ? left / lanes * lanes : left;
      bool const whole = n >= lanes;
      std::int64_t const length = whole ? n : lanes;
      for (int x = 0; x < inputs_; ++x) {
        at[x] = whole ? neap::detail::direct<C>(in_[x], i, n) : nullptr;
        if (at[x]) continue;
        C* const to = room[room_[x]];
        neap::detail::gather(in_[x], i, n, to);
        for (std::int64_t j = n; j < length; ++j) to[j] = to[n - 1];
        at[x] = to;
      }
      C* const out = whole ? place(i, n) : nullptr;
      for (int k = 0; k < steps_; ++k) {
        auto const& s = step_[k];
        int const v = inputs_ + k;
        if (!s.loop && !s.narrow) continue;
        C* const to = out && v == result_ ? out : room[room_[v]];
        C const* from = at[s.operand[0]];
        if (s.loop) {
          C const* in[fused_step::most_operands];
          for (int x = 0; x < s.arguments; ++x) in[x] = at[s.operand[x]];
          s.loop(s.functor, length, in, &to);
          from = to;
        }
        if (s.narrow) {
          s.narrow(low, 1, from, 1, length);
          s.widen(to, 1, low, 1, length);
        }
        at[v] = to;
      }
      if (at[result_] != out) put(i, n, at[result_]);
      i += n;
    }
  }

  static constexpr int most_values = fused::most_inputs + fused::most_steps;
  struct one_step {
    neap::detail::map_loop_type<C> loop = nullptr;                     // none: a cast
    neap::detail::convert_run_type narrow = nullptr, widen = nullptr;  // rounds to the step's type; none: it is C
    int arguments = 0, operand[fused_step::most_operands]{};
    alignas(8) std::byte functor[most_step_bytes]{};
  };
  int inputs_, steps_, result_ = 0;  // which value the result is: the last step, or what that one changes no number of
  int room_[most_values]{};
  neap::detail::strided in_[fused::most_inputs], out_;
  one_step step_[fused::most_steps];
};

}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, fused const& op, kernel_arguments const& a) {
  bool wide = a.out[0].element == dtype::f64;
  for (auto const& x : a.in) wide = wide || x.element == dtype::f64;
  auto const start = [&](auto tag) {
    detail::fused_run<typename decltype(tag)::type> const all(op, a);
    b.parallel_for(a.out[0].count(), neap::detail::map_grain, all);
  };
  if (wide) start(type_tag<double>{});
  else start(type_tag<float>{});
}

}  // namespace neap::inline v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/fused.ipp>
#endif
