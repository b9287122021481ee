// Sampling by weights, a function of (key, step, place), as dropout is: a part or a recomputed copy draws what the whole
// drew. Only the first axis is cut (of those that are longer than 1), as a part's rows must follow one another.
#pragma once

#include <neap/ir/operators/update.hpp>

namespace neap { inline namespace v0 { namespace op {

/// weights [..., k], step -> `count` places of the last axis, drawn by the weights: [..., count] of i64.
struct multinomial {
  static constexpr std::string_view name = "multinomial";
  static constexpr bool checks_numbers = true;
  static constexpr precision_rule precision = precision_use::full;
  static constexpr bool random = true;
  std::int64_t count = 1;
  bool replacement = false;
  std::int64_t key = 0;    // of the draws
  std::int64_t first = 0;  // the number of the first row in the whole
  static constexpr auto attributes() {
    return std::array{field<&multinomial::count>("count"), field<&multinomial::replacement>("replacement"),
                      field<&multinomial::key>("key"), field<&multinomial::first>("first")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void cut(cut_context const& c) { first += c.before(c.out[0].type.count() / count); }
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context&) const {}  // a place has no slope
};
template <class Backend>
void run(Backend& b, multinomial const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/multinomial.ipp>
#endif
