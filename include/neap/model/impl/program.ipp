// The bodies of <neap/model/program.hpp>.
#pragma once

#include <neap/model/program.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/model/apply.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool is_owned(tensor const& x) {
  if (x.is_traced()) return false;
  auto const r = x.storage()->role();
  return r == role::weight || r == role::buffer || r == role::state;
}

NEAP_FUNC void make_inputs(tracer* t, model_ref sample) {
  sample.each_tensor([&](tensor& x, std::string const& path) {
    if (x.is_empty()) return;
    if (t) x = t->input(x, path.empty() ? "input" : "input." + path);
    else x = is_owned(x) ? apply(op::copy{}, {x.detach()}) : x.detach();
  });
}

NEAP_FUNC void name_tensors(tracer& t, model_ref model) {
  auto const name = [](void* to, tensor& x, std::string const& path) {
    if (!x.is_empty() && !x.is_traced()) static_cast<tracer*>(to)->set_name(x, path);
  };
  auto const enter = [](void* to, void const* object, void const* type, std::string const& path) {
    static_cast<tracer*>(to)->set_module(object, type, path);
  };
  model.visit({&t, name, enter});
}

}}}  // namespace neap::v0::detail
