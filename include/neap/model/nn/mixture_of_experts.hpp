// A mixture of experts (Shazeer et al. 2017; Jiang et al. 2024): a router chooses k of several perceptrons for each token,
// whose output is the sum of theirs, weighted by the softmax of the k numbers that the router gave them.
//
// The form is dense and exact: each expert computes all tokens, and a table of weights that is 0 for those not chosen joins
// their outputs. Shapes depend on no data, so it is traced and planned like everything else, and no token is dropped; it
// costs count / k times the products that only the chosen ones would. An expert whose output is not finite spoils tokens
// that did not choose it, too.
#pragma once

#include <neap/model/nn/transformer.hpp>

#include <vector>

namespace neap { inline namespace v0 { namespace nn {

/// Expert: a module of (width, hidden), such as gated_mlp or mlp_block.
template <class Expert = gated_mlp>
struct mixture_of_experts {
  linear router;
  std::vector<Expert> experts;
  std::int64_t chosen = 1;  // for each token

  mixture_of_experts() = default;
  mixture_of_experts(std::int64_t width, std::int64_t hidden, std::int64_t count, std::int64_t chosen_,
                     std::source_location at = std::source_location::current())
      : chosen(chosen_) {
    place_scope const here(at);
    if (chosen < 1 || chosen > count)
      throw_error(context_access::place(at), {"mixture_of_experts: cannot choose ", chosen, " of ", count, " experts"});
    router = linear(width, count, {.bias = false});
    for (std::int64_t i = 0; i < count; ++i) experts.emplace_back(width, hidden);
  }

  /// x (..., width) -> (..., width). Where `balance` is given, the load-balancing loss (Fedus et al. 2022) is added to it:
  /// count times the sum over experts of the share of choices that fell on each times its mean probability. It is 1 where
  /// the router prefers none, and grows with its preferences up to count; only the probabilities have a gradient.
  tensor operator()(tensor const& x, tensor* balance = nullptr,
                    std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    tensor const logits = router(x);
    auto const [numbers, places] = topk(logits, chosen);  // (..., chosen)
    if (balance) {
      tensor const loss = imbalance(logits, places);
      *balance = balance->is_empty() ? loss : *balance + loss;
    }
    // (..., count): each number at its expert's place, 0 at the others'
    tensor const table = apply(op::scatter_add{-1, count()}, {softmax(numbers), places});
    std::vector<tensor> const weights = split(table, count(), -1);
    tensor y = weights[0] * experts[0](x);
    for (std::size_t i = 1; i < experts.size(); ++i) y = y + weights[i] * experts[i](x);
    return y;
  }

  friend auto neap_fields(refers_as<mixture_of_experts> auto& self) {
    return std::tie(self.router, self.experts, self.chosen);
  }
  static constexpr std::array neap_names{"router", "experts", "chosen"};
  static constexpr bool neap_rest_is_derived = true;  // padding

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(experts.size()); }
  tensor imbalance(tensor const& logits, tensor const& places) const {
    auto const by_expert = [&](tensor const& x) { return mean(reshape(x, {x.count() / count(), count()}), {0}); };
    tensor const share = by_expert(one_hot(places, count(), logits.element())),
                 probability = by_expert(softmax(logits));
    return sum(share * probability) * count();
  }
};

}}}  // namespace neap::v0::nn
