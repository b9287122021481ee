// Programs of elementwise steps (ir/element_program.hpp) on a device: an interpreter, of which each thread does a pack of 8
// elements (2 in f64) at a time. So a step is chosen once for 8 elements, by branches that all threads take alike, and
// what waits for later steps is in registers. Operands are read from memory when a step needs them.
//
// Each step computes as the operator's own kernel does (elementwise.cuh), and its result is rounded to its type: the bits
// are those of the operators one after another.
#pragma once

#include <neap/cuda/kernels/elementwise.cuh>
#include <neap/ir/operators/kernels/fused.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// x as it is once it has been stored in a type of which kernels know the conversion, and read again.
template <class C>
NEAP_HD NEAP_INLINE void round_to(dtype t, C* x, int n) {
  auto const to = [&](auto tag) {
    using T = typename decltype(tag)::type;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int j = 0; j < n; ++j) x[j] = convert<C>(convert<T>(x[j]));
  };
  if (t == dtype::boolean) to(type_tag<bool>{});
  if constexpr (std::is_same_v<C, float>) {
    if (t == dtype::bf16) to(type_tag<bf16>{});
    if (t == dtype::f16) to(type_tag<f16>{});
  }
}

template <class Op>
constexpr std::size_t arguments_of_step() {
  if constexpr (op::scalar_operator<Op>) return Op::map_inputs;
  else return std::is_same_v<Op, op::where> ? 3 : 1;
}

/// A program that computes in C: its interpreter, which does a pack of elements.
template <class C>
struct fused_program {
  static constexpr int length = computed_pack<C>::length;
  static constexpr int inputs = element_program::max_inputs;

  struct one_step {
    std::int8_t place = 0, arguments = 0;               // the operator's, among those that can be steps
    std::int8_t operand[element_step::max_operands]{};  // an input; from `inputs` on: a register
    std::int8_t register_ = 0;                          // for the result
    dtype element = dtype::f32;
    alignas(8) std::byte functor[op::detail::max_step_bytes]{};
  };
  struct values {
    C at[length];
  };
  int steps;
  one_step step[element_program::max_steps];

  explicit fused_program(element_program const& p) : steps(p.step_count) {
    std::array<int, element_program::max_steps> registers{};
    p.registers(registers);
    for (int k = 0, constant = 0; k < steps; ++k) {
      auto const& made = p.step(k);
      auto& s = step[k];
      constant += p.attributes_of(k, constant, s.functor);
      s.place = static_cast<std::int8_t>(op::detail::step_place(made.row));
      s.arguments = static_cast<std::int8_t>(op::detail::step_at(made.row)->arguments);
      for (int i = 0; i < s.arguments; ++i) {
        int const v = made.operands[static_cast<std::size_t>(i)], inner = v - p.inputs;
        s.operand[i] = static_cast<std::int8_t>(inner < 0 ? v : inputs + registers[static_cast<std::size_t>(inner)]);
      }
      s.register_ = static_cast<std::int8_t>(k + 1 < steps ? registers[static_cast<std::size_t>(k)] : -1);
      s.element = made.element;
    }
  }

  /// The results, not rounded, of inputs that load(values, number of the input) reads.
  template <class Load>
  NEAP_HD NEAP_INLINE void interpret(values& y, Load const& load) const {
    values registers[element_program::max_registers];
    for (int k = 0; k < steps; ++k) {
      one_step const& s = step[k];
      values in[element_step::max_operands];
      fetch(in[0], s.operand[0], registers, load);
      if (s.arguments > 1) fetch(in[1], s.operand[1], registers, load);
      if (s.arguments > 2) fetch(in[2], s.operand[2], registers, load);
      choose<0, static_cast<int>(op::detail::step_list::size)>(op::detail::step_list{}, s, y, in);
      if (k + 1 == steps) break;
      round_to(s.element, y.at, length);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int r = 0; r < element_program::max_registers; ++r)
        if (s.register_ == r) registers[r] = y;
    }
  }

 private:
  /// An operand of a step: an input or a register.
  template <class Load>
  NEAP_HD NEAP_INLINE static void fetch(values& y, int operand,
                                        values const (&registers)[element_program::max_registers], Load const& load) {
    if (operand < inputs) return load(y, operand);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int r = 0; r < element_program::max_registers; ++r)
      if (operand == inputs + r) y = registers[r];
  }

  template <class F, std::size_t... I>
  NEAP_HD NEAP_INLINE static void apply(F const& f, values& y, values const (&in)[element_step::max_operands],
                                        std::index_sequence<I...>) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int j = 0; j < length; ++j) y.at[j] = opaque(static_cast<C>(f(opaque(in[I].at[j])...)));
  }
  template <class Op>
  static constexpr std::size_t arguments_of = arguments_of_step<Op>();
  /// Step `s`, an operator of this type.
  template <class Op>
  NEAP_HD NEAP_INLINE static void compute(one_step const& s, values& y,
                                          values const (&in)[element_step::max_operands]) {
    constexpr std::make_index_sequence<arguments_of<Op>> arguments{};
    if constexpr (std::is_same_v<Op, op::cast>) {
      y = in[0];
    } else if constexpr (std::is_same_v<Op, op::where>) {
      apply(choice_of{}, y, in, arguments);
    } else if constexpr (std::is_same_v<Op, op::gelu> || std::is_same_v<Op, op::gelu_grad>) {
      if (s.functor[0] != std::byte{0}) apply(op::detail::gelu_function<true>{}, y, in, arguments);
      else apply(op::detail::gelu_function<false>{}, y, in, arguments);
    } else if constexpr (std::is_empty_v<Op>) {
      apply(Op{}, y, in, arguments);
    } else {
      Op f;
      std::memcpy(static_cast<void*>(&f), s.functor, sizeof f);
      apply(f, y, in, arguments);
    }
  }
  /// Finds the operator among those of places [First, Last) by halves.
  template <int First, int Last, class... Op>
  NEAP_HD NEAP_INLINE static void choose(type_list<Op...> list, one_step const& s, values& y,
                                         values const (&in)[element_step::max_operands]) {
    if constexpr (Last - First == 1) {
      compute<std::tuple_element_t<First, std::tuple<Op...>>>(s, y, in);
    } else {
      constexpr int middle = (First + Last) / 2;
      if (s.place < middle) choose<First, middle>(list, s, y, in);
      else choose<middle, Last>(list, s, y, in);
    }
  }
};

/// A program, by packs. A block does a chunk.
template <class C>
struct fused_kernel {
  static constexpr bool whole_blocks = true;
  static constexpr int length = computed_pack<C>::length;
  static constexpr std::int64_t chunk = 2 * cuda_block_threads * length;
  static constexpr int operands = element_program::max_inputs + 1;

  index_space<operands> x;  // the inputs, the result again for those that are not there, the result
  bool by_packs = true;
  fused_program<C> program;

  fused_kernel(element_program const& p, index_space<operands> const& space) : x(space), program(p) {
    for (int k = 0; k < operands; ++k)
      by_packs = by_packs && x.size[k] <= computed_pack<C>::largest &&
                 (x.has_packs(k, length) || (k + 1 < operands && x.repeats_packs(k, length)));
  }

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = x.count - first, n = left < chunk ? left : chunk;
    fused_kernel const* const self = this;
    b.each((n + length - 1) / length, [self, first, n](std::int64_t i) {
      std::int64_t const rest = n - i * length;
      self->pack(first + i * length, rest < length ? static_cast<int>(rest) : length);
    });
  }

 private:
  using values = typename fused_program<C>::values;
  struct places {
    std::byte* at[operands];
  };

  /// An input's elements [index, index + n); what is behind them is anything.
  NEAP_HD NEAP_INLINE void load(values& y, int k, std::int64_t index, int n, places const& p) const {
    if (by_packs && n == length) {
      if (x.repeats(k)) {
        C const value = load_element<C>(p.at[k], x.element[k]);
        for (int j = 0; j < length; ++j) y.at[j] = value;
      } else {
        typename computed_pack<C>::bits bits;
        computed_pack<C> pack;
        bits.load(p.at[k], x.size[k]);
        pack.from(bits, x.element[k]);
        for (int j = 0; j < length; ++j) y.at[j] = pack.at[j];
      }
      return;
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int j = 0; j < length; ++j) y.at[j] = load_element<C>(element_at(k, index + (j < n ? j : 0)), x.element[k]);
  }
  NEAP_HD NEAP_INLINE std::byte* element_at(int k, std::int64_t index) const {
    return x.data[k] + x.offset_of(k, index);
  }

  NEAP_HD NEAP_INLINE void pack(std::int64_t index, int n) const {
    places p;
    x.place(index, p.at);
    values y;
    fused_kernel const* const self = this;
    places const* const all = &p;
    program.interpret(y, [self, index, n, all](values& to, int k) { self->load(to, k, index, n, *all); });
    constexpr int out = operands - 1;
    if (by_packs && n == length) {
      computed_pack<C> result;
      for (int j = 0; j < length; ++j) result.at[j] = y.at[j];
      result.to(x.element[out]).store(p.at[out], x.size[out]);
      return;
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int j = 0; j < length; ++j)
      if (j < n) store_element(element_at(out, index + j), x.element[out], y.at[j]);
  }
};

/// Runs a program.
template <device_backend B>
void run_program(B& b, element_program const& p, kernel_arguments const& a) {
  constexpr int operands = element_program::max_inputs + 1;
  tensor_ref const* x[operands];
  for (std::size_t k = 0; k < operands; ++k) x[k] = k < a.in.size() ? &a.in[k] : &a.out[0];
  index_space<operands> const space(a.out[0].dims, x);
  if (op::detail::is_wide(a)) launch_in_chunks(b, space.count, fused_kernel<double>(p, space));
  else launch_in_chunks(b, space.count, fused_kernel<float>(p, space));
}

}  // namespace detail

}}  // namespace neap::v0
