// Runs a training program op by op, in the order of its graph, each storage in memory of its own: the plainest executor.
// (An op that reads what a storage was, and comes after the op that writes it, runs before that.)
#pragma once

#include <neap/ir/traversal.hpp>
#include <neap/train/training_step.hpp>

#include <map>
#include <memory>
#include <vector>

namespace support {

class program_runner {
 public:
  explicit program_runner(neap::training_program const& p) : p_(p) {
    auto const& g = p.program;
    for (auto s : g.storages())
      own_.emplace_back(std::make_unique<neap::detail::tensor_storage>(neap::tensor_type{neap::dtype::u8, {g.bytes(s)}},
                                                                       neap::initialiser{}, neap::role::activation));
    for (auto const& r : p.residents) bound_[neap::index(g.storage(r.value))] = r.memory();
    order_ = neap::topological_order(g);
  }
  /// One step; inputs in the program's order. The loss.
  double operator()(std::vector<neap::tensor> const& inputs) {
    auto const& g = p_.program;
    for (std::size_t i = 0; i < inputs.size(); ++i) bound_[neap::index(g.storage(p_.inputs[i]))] = inputs[i].ref().data;
    for (auto o : order_) {
      std::vector<neap::tensor_ref> refs;
      std::vector<neap::tensor_layout> layouts;
      bool computes = false;
      for (auto v : g.inputs(o)) refs.push_back(ref(v)), layouts.push_back(g.layout(v));
      auto const arity = refs.size();
      for (auto v : g.outputs(o)) {
        refs.push_back(ref(v)), layouts.push_back(g.layout(v));
        computes |= g.record(v).alias != neap::alias_kind::view;
      }
      if (!computes) continue;
      std::span<neap::tensor_ref const> const r(refs);
      std::span<neap::tensor_layout const> const l(layouts);
      void* scratch = nullptr;
      if (auto const& f = g.facets(o); f.workspace)
        scratch =
            neap::eager_context::current().workspace(f.workspace(g.attributes(o), {l.first(arity), l.subspan(arity)}));
      host_kernel(g.facets(o))(neap::eager_context::current().backend(), g.attributes(o),
                               {r.first(arity), r.subspan(arity), scratch});
    }
    return value(p_.loss)[0];
  }
  std::vector<double> value(neap::value_id v) {
    auto const t = ref(v);
    std::vector<double> all;
    neap::extents i = neap::extents::filled(t.rank(), 0);
    for (std::int64_t n = t.count(); n > 0; --n) {
      std::int64_t at = 0;
      for (int k = 0; k < t.rank(); ++k) at += i[k] * t.strides[k];
      all.push_back(neap::detail::element_as<double>(t.data, t.element, at));
      for (int k = t.rank() - 1; k >= 0 && ++i[k] == t.dims[k]; --k) i[k] = 0;
    }
    return all;
  }

  neap::tensor_ref ref(neap::value_id v) {
    auto const s = neap::index(p_.program.storage(v));
    auto const it = bound_.find(s);
    return neap::tensor_ref::place(it != bound_.end() ? it->second : own_[s]->data(), p_.program.layout(v));
  }

 private:
  neap::training_program const& p_;
  std::vector<std::unique_ptr<neap::detail::tensor_storage>> own_;
  std::map<std::size_t, void*> bound_;
  std::vector<neap::op_id> order_;
};

}  // namespace support
