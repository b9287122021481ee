// Mixed precision (Micikevicius et al. 2018): while a precision_scope lives, operators on this thread compute with bf16 or
// f16 where that is good enough. Weights, states and what is summed stay f32; casts are ops of the program like others, so
// that gradients arrive in f32, plans count them and recomputation may repeat them.
//
//   neap::precision_scope const low(neap::dtype::bf16);
//   auto const y = model(x);                            // eager, or in a trace
//   neap::evaluator eval(model, sample, backend);       // a program keeps the precision that it was traced in
//
// What becomes of an operator's inputs is one of its facets (precision_use in ir/operator.hpp):
//
//   matrix products, attention, convolutions       f32 is cast to the low type; sums inside are f32
//   elementwise functions of several tensors,      as given, if all are f32; f32 is cast to the low type beside inputs of
//   where, concat, norms, scatter_add, index_add     that type: arithmetic on losses and penalties of weights stays f32
//   elementwise functions of one tensor, softmax,  as given
//   dropout, pooling, interpolation, copies, views
//   embedding                                      the table stays f32, the rows are cast
//   sums, means, running sums, log_softmax, mse,   low inputs are cast to f32, and so is the result: also var, stddev, norm,
//   huber, binary cross-entropy, comparisons,        logsumexp, cosine_similarity, prod and the losses made of them
//   multinomial
//   cross_entropy                                  logits as given, the loss is f32
//   running statistics of batch_norm               f32
//   assign, accumulate                             cast to the type of what is written
//   casts, updates of weights                      as given
//   a program's own operators                      f32, unless they have the facet
//
// f64 and integers are never cast. The cast of a weight, or of a buffer that is not written, is made once in a scope.
#pragma once

#include <neap/model/trace.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {
/// Throws neap::error for what is no type of mixed precision: f32 turns it off.
void require_low(dtype t, std::string_view who, std::source_location at);
}  // namespace detail

/// While it lives, operators on this thread compute in `low`: bf16, f16, or f32 within another scope, where low inputs are
/// cast to f32. Throws neap::error for other types.
class precision_scope {
 public:
  explicit precision_scope(dtype low, std::source_location at = std::source_location::current());
  precision_scope(precision_scope const&) = delete;
  precision_scope& operator=(precision_scope const&) = delete;
  ~precision_scope() { context_access::set_precision(context_, before_); }

  dtype low() const { return low_; }
  /// The type of the scope that this thread is in; none: none.
  static std::optional<dtype> current();

  /// A cast of `t` to `to` that was made before, for the library's own use; empty if there is none.
  tensor find(tensor const& t, dtype to) const;
  void keep(tensor const& t, tensor const& cast);

 private:
  struct kept_cast {
    tensor of, cast;
    value_id value;         // of the trace
    std::uint32_t version;  // of the storage
    bool recording;
  };
  /// Whole weights, buffers and constants; others are cast where they are used.
  static bool is_kept(tensor const& t);
  static bool is_same(kept_cast const& c, tensor const& t);

  eager_context& context_;
  precision_scope* before_ = nullptr;
  dtype low_;
  std::vector<kept_cast> casts_;
};

namespace detail {
/// The precision that a program was traced in, for tracing it again.
class same_precision {
 public:
  same_precision() : low_(precision_scope::current()) {}
  /// A scope of it.
  void enter(std::optional<precision_scope>& scope) const;

 private:
  std::optional<dtype> low_;
};
}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/precision.ipp>
#endif
