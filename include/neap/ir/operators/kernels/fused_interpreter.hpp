// The interpreter of programs of elementwise steps (ir/element_program.hpp) on the host: the loops that the steps' operators
// have alone, in chunks that stay in the first cache.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/element.hpp>
#include <neap/ir/operators/element_steps.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace neap { inline namespace v0 { namespace op::detail {

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
class fused_interpreter {
 public:
  /// `rounds`: the result is rounded to its type, too, where values() gives it.
  fused_interpreter(element_program const& p, kernel_arguments const& a, bool rounds = false)
      : inputs_(p.inputs),
        steps_(p.step_count) {
    auto const& to = a.out[0];
    out_ = neap::detail::view_through(to.dims, to);
    for (int i = 0; i < inputs_; ++i) in_[i] = neap::detail::view_through(to.dims, a.in[static_cast<std::size_t>(i)]);
    int last_read[max_values]{}, stands_for[max_values];
    for (int v = 0; v < inputs_ + steps_; ++v) stands_for[v] = v;
    for (int k = 0, constant = 0; k < steps_; ++k) {
      auto& s = step_[k];
      constant += p.attributes_of(k, constant, s.functor);
      auto const& made = p.step(k);
      s.loop = step_loops<C, step_list>::of[step_place(made.row)](s.functor);
      s.arguments = step_at(made.row)->arguments;
      for (int i = 0; i < s.arguments; ++i) s.operand[i] = stands_for[made.operands[static_cast<std::size_t>(i)]];
      bool const narrows = (rounds || k + 1 < steps_) && made.element != dtype_of<C>;
      s.narrow = narrows ? neap::detail::conversion_to<C>(made.element) : nullptr;
      s.widen = narrows ? neap::detail::conversion_from<C>(made.element) : nullptr;
      // A cast that changes no number is its operand.
      if (!s.loop && !s.narrow) stands_for[inputs_ + k] = s.operand[0];
      for (int i = 0; i < s.arguments; ++i) last_read[s.operand[i]] = k;
    }
    result_ = stands_for[inputs_ + steps_ - 1];
    last_read[result_] = steps_;
    // A value that has been read for the last time leaves its register to a later one.
    std::uint32_t taken = (1u << inputs_) - 1;
    for (int i = 0; i < inputs_; ++i) register_[i] = i;
    for (int k = 0; k < steps_; ++k) {
      auto const& s = step_[k];
      for (int i = 0; i < s.arguments; ++i)
        if (last_read[s.operand[i]] == k) taken &= ~(1u << register_[s.operand[i]]);
      if (stands_for[inputs_ + k] != inputs_ + k) continue;
      register_[inputs_ + k] = std::countr_one(taken);
      taken |= 1u << register_[inputs_ + k];
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
    alignas(64) C registers[max_registers][map_chunk];
    alignas(64) std::byte low[map_chunk * 2];
    C const* at[max_values];
    for (std::int64_t i = begin; i < end;) {
      // Whole lanes where they lie; the rest in lanes filled up with copies of its last element (as maps do).
      std::int64_t const left = end - i, lanes = host_block::lanes;
      std::int64_t const n = left >= map_chunk ? map_chunk : left >= lanes ? left / lanes * lanes : left;
      bool const whole = n >= lanes;
      std::int64_t const length = whole ? n : lanes;
      for (int x = 0; x < inputs_; ++x) {
        at[x] = whole ? neap::detail::direct<C>(in_[x], i, n) : nullptr;
        if (at[x]) continue;
        C* const to = registers[register_[x]];
        neap::detail::gather(in_[x], i, n, to);
        for (std::int64_t j = n; j < length; ++j) to[j] = to[n - 1];
        at[x] = to;
      }
      C* const out = whole ? place(i, n) : nullptr;
      for (int k = 0; k < steps_; ++k) {
        auto const& s = step_[k];
        int const v = inputs_ + k;
        if (!s.loop && !s.narrow) continue;
        C* const to = out && v == result_ ? out : registers[register_[v]];
        C const* from = at[s.operand[0]];
        if (s.loop) {
          C const* in[element_step::max_operands];
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

  static constexpr int max_values = element_program::max_inputs + element_program::max_steps;
  // Inputs, results that wait, and the step's own.
  static constexpr int max_registers = element_program::max_inputs + element_program::max_registers + 1;
  struct one_step {
    neap::detail::map_loop_type<C> loop;           // none: a cast
    neap::detail::convert_run_type narrow, widen;  // rounds to the step's type; none: it is C
    int arguments, operand[element_step::max_operands];
    alignas(8) std::byte functor[max_step_bytes];
  };
  int inputs_, steps_, result_ = 0;  // which value the result is: the last step, or what that one changes no number of
  int register_[max_values];
  neap::detail::strided in_[element_program::max_inputs], out_;
  one_step step_[element_program::max_steps];
};

}}}  // namespace neap::v0::op::detail
