// The bodies of <neap/model/program.hpp>.
#pragma once

#include <neap/model/program.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::detail {

NEAP_FUNC void make_inputs(tracer& t, model_ref sample) {
  sample.each_tensor([&](tensor& x, std::string const& path) {
    if (!x.is_empty()) x = t.input(x, path.empty() ? "input" : "input." + path);
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

}  // namespace neap::inline v0::detail
