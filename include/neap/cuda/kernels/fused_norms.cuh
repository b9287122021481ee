// Functions of rows and channels between programs (op::fused) on a GPU. Norms and their gradients between short chains are
// one launch: a block runs the chain before the norm on its own elements, then the norm's kernel, then the chain after it,
// while the elements are in the cache. Chains are those of training steps: a sum, an activation, a sum and an activation, or
// the activation's gradient. A chain is one loop of at most three operands, not a program of steps (fused.cuh): so a norm's
// kernel keeps its registers. Anything else is launched one after the other. Both give the same bits, and which of them it
// is depends on types, extents and layouts alone.
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/cuda/kernels/fused.cuh>
#include <neap/ir/operators/kernels/fused_blocks.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace neap { inline namespace v0 { namespace detail {

/// to = a, a + b, then relu of it, or the gradient of a relu whose result is `gate`; `to` is null where there is no
/// chain. The sum is rounded to its type, as the operator's is.
struct element_chain {
  void const *a = nullptr, *b = nullptr, *gate = nullptr;
  void* to = nullptr;
  bool relu = false;

  /// The chain's elements [first, last).
  template <class T, class Block>
  NEAP_HD NEAP_INLINE void run(Block& block, std::int64_t first, std::int64_t last) const {
    using C = compute_t<T>;
    bool const adds = b, gates = gate, bends = relu;
    T const* const x = static_cast<T const*>(a) + first;
    T const* const y = adds ? static_cast<T const*>(b) + first : x;
    T const* const z = gates ? static_cast<T const*>(gate) + first : x;
    block.transform(
        last - first, static_cast<T*>(to) + first,
        [adds, gates, bends](T p, T q, T r) {
          T const sum = adds ? convert<T>(static_cast<C>(p) + static_cast<C>(q)) : p;
          C const v = static_cast<C>(sum);
          return gates ? convert<T>(op::relu_grad{}(v, static_cast<C>(r))) : bends ? convert<T>(op::relu{}(v)) : sum;
        },
        x, y, z);
  }
};

/// A kernel of norms between two chains.
template <class K>
struct norm_between_chains {
  using element = typename K::element;
  K kernel;
  element_chain before, after;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    if (before.to) {
      run(b, before);
      b.sync();
    }
    kernel(b);
    if (after.to) {
      b.sync();
      run(b, after);
    }
  }

 private:
  template <class Block>
  NEAP_HD NEAP_INLINE void run(Block& b, element_chain const& chain) const {
    op::detail::each_range_of_blocks(
        kernel, b.id, b.id + 1, [&](std::int64_t first, std::int64_t last) { chain.run<element>(b, first, last); });
  }
};

/// A backend for the kernels of norms: puts their chains around them.
template <device_backend B>
class device_between_chains {
 public:
  static constexpr bool runs_on_device = true;
  device_between_chains(B& b, element_chain const& before, element_chain const& after)
      : b_(b),
        before_(before),
        after_(after) {}
  template <class K>
  void launch(std::int64_t blocks, K const& kernel, std::int64_t work) {
    if constexpr (op::detail::has_element_ranges<K>)
      b_.launch(blocks, norm_between_chains<K>{kernel, before_, after_}, work);
    else b_.launch(blocks, kernel, work);
  }

 private:
  B& b_;
  element_chain before_, after_;
};

/// A program as one such chain, if it is one and its operands are dense and of the result's type.
inline std::optional<element_chain> chain_of(element_program const& p, kernel_arguments const& a) {
  auto const& to = a.out[0];
  for (auto const& x : a.in)
    if (x.element != to.element || x.dims != to.dims || x.strides != to.strides) return {};
  auto const data = [&](std::size_t v) { return a.in[v].data; };
  int const inputs = p.inputs, steps = p.step_count;
  element_chain made;
  made.to = to.data;
  int k = 0;
  if (p.is<op::add>(0)) {
    made.a = data(p.step(0).operands[0]), made.b = data(p.step(0).operands[1]);
    k = 1;
  }
  for (int i = 0; i < steps; ++i)
    if (p.step(i).element != to.element) return {};
  if (k < steps) {
    auto const& last = p.step(k);
    auto const first = last.operands[0];
    if (k == 0 && first < inputs) made.a = data(first);
    else if (first != inputs) return {};
    if (p.is<op::relu>(k)) made.relu = true;
    else if (p.is<op::relu_grad>(k) && last.operands[1] < inputs) made.gate = data(last.operands[1]);
    else return {};
    ++k;
  }
  if (k != steps) return {};
  return made;
}

/// The chains around a norm that is one launch on a device; none: it is not.
struct chains_beside {
  element_chain before, after;
};
inline std::optional<chains_beside> chains_beside_norm(op::fused const& op, op::detail::fused_operands const& all,
                                                       kernel_arguments const& a) {
  chains_beside made;
  auto const is_chain = [](element_program const& p, kernel_arguments const& of, element_chain& to) {
    auto const chain = p.empty() ? element_chain{} : chain_of(p, of);
    if (chain) to = *chain;
    return chain.has_value();
  };
  if (op.statistics() == 0 || !is_chain(op.prologue, all.prologue(), made.before) ||
      !is_chain(op.epilogue, all.epilogue(op, a), made.after))
    return {};
  return made;
}
/// Runs a function of rows or channels with steps beside it.
template <device_backend B>
void run_norm_between(B& b, op::fused const& op, kernel_arguments const& a) {
  op::detail::fused_operands const all(op, a);
  auto const middle = all.middle(a.workspace);
  if (auto const chains = chains_beside_norm(op, all, a)) {
    device_between_chains<B> between(b, chains->before, chains->after);
    auto const run_norm = [&](auto const& norm) { run(between, norm, middle); };
    op.with_anchor<anchor::layer_norm, anchor::softmax>(run_norm);
    op.with_anchor<anchor::layer_norm_grad, anchor::softmax_grad>(run_norm);
    return op.with_anchor<anchor::batch_norm, anchor::matmul>(run_norm);
  }
  if (!op.prologue.empty()) run_program(b, op.prologue, all.prologue());
  op.with_anchor<anchor::layer_norm, anchor::matmul>([&](auto const& f) { run(b, f, middle); });
  if (!op.epilogue.empty()) run_program(b, op.epilogue, all.epilogue(op, a));
}

}}}  // namespace neap::v0::detail
