// neap::scope: names the running module in a trace, so that its ops carry that name ("blocks.3.up.matmul").
//
//   struct block {
//     neap::nn::linear up, down;
//     neap::tensor operator()(neap::tensor const& x) const {
//       neap::scope const here(*this);   // optional
//       return x + down(neap::gelu(up(x)));
//     }
//   };
//
// The library's modules have one. For others a trace infers the module of an op from the weights that it reads, or from
// the modules whose results it reads (model/op_names.hpp).
#pragma once

#include <neap/model/fields.hpp>
#include <neap/model/trace.hpp>

#include <string>

namespace neap { inline namespace v0 {

/// While it lives, ops that are traced on this thread belong to that module. A module that is no part of the model has the
/// path of the one around it. Costs nothing beyond a look at the thread's context where nothing is traced.
class scope {
 public:
  template <class Module>
  explicit scope(Module const& module) : trace_(context_access::trace()) {
    if (trace_) detail::enter_module(*trace_, &module, &detail::type_address<Module>);
  }
  scope(scope const&) = delete;
  scope& operator=(scope const&) = delete;
  ~scope();

 private:
  tracer* trace_;
};

namespace detail {
/// While it lives, ops that are traced on this thread are named after `name` alone: what belongs to a weight, or to the
/// step.
class name_scope {
 public:
  explicit name_scope(std::string const& name);
  name_scope(name_scope const&) = delete;
  name_scope& operator=(name_scope const&) = delete;
  ~name_scope();

 private:
  tracer* trace_;
};
}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/scope.ipp>
#endif
