// The bodies of <neap/train/old_values.hpp>.
#pragma once

#include <neap/train/old_values.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {
namespace detail {

NEAP_FUNC with_old_values copies_of_old_values(op_graph const& g) {
  with_old_values made;
  if (!g.has_updates()) return made;
  auto const edges = all_edges(g);
  if (kahn_order(edges).size() == g.op_count()) return made;

  struct old_read {
    op_id reader, update;
    storage_id storage;
    std::uint16_t version;  // that is read, and that the update overwrites
    value_id copy = nothing<value_id>;
  };
  std::vector<old_read> reads;
  for (auto update : g.ops()) {
    auto const readers = g.order_after(update);
    if (readers.empty()) continue;
    auto const after = descendants(edges, update);
    for (auto u : g.outputs(update)) {
      auto const& r = g.record(u);
      if (r.alias != alias_kind::update || g.role(g.record(r.storage).first) == role::weight) continue;
      for (auto const reader : readers)
        if (reader > update && after.test(index(reader)))  // ids go up but for reads that come after the write
          for (auto v : g.inputs(reader))
            if (g.storage(v) == r.storage && g.record(v).version + 1 == r.version) {
              reads.push_back({reader, update, r.storage, g.record(v).version});
              break;
            }
    }
  }
  if (reads.empty()) return made;

  program_copy to(g);
  for (auto o : g.ops()) {
    for (std::size_t i = 0; i < reads.size(); ++i) {
      auto& read = reads[i];
      if (read.update != o) continue;
      for (std::size_t k = 0; k < i; ++k)  // one copy for all
        if (reads[k].update == o && reads[k].storage == read.storage) read.copy = reads[k].copy;
      if (read.copy != nothing<value_id>) continue;
      // The whole storage, so that views of it keep their layouts.
      value_id seen = nothing<value_id>;
      for (auto v : g.values())
        if (g.storage(v) == read.storage && g.record(v).version == read.version && to.value[v] != nothing<value_id>) {
          seen = v;
          break;
        }
      auto const& whole = g.layout(g.record(read.storage).first);
      value_id x = to.value[seen];
      if (!(g.layout(seen) == whole))
        x = to.edit.add(op::as_strided{whole.type.dims, whole.strides, whole.offset}, {x})[0];
      read.copy = to.edit.add(op::copy{}, {x})[0];
      ++made.copies;
    }
    std::vector<value_id> in;
    for (auto v : g.inputs(o)) {
      value_id x = to.value[v];
      for (auto const& read : reads)
        if (read.reader == o && g.storage(v) == read.storage && g.record(v).version == read.version) {
          auto const& l = g.layout(v);
          x = l == to.edit.layout_of(read.copy)
                  ? read.copy
                  : to.edit.add(op::as_strided{l.type.dims, l.strides, l.offset}, {read.copy})[0];
          break;
        }
      in.push_back(x);
    }
    to.put(o, g.view(o), span_of(in));
  }
  made.program = to.finish();
  made.value = std::move(to.value);
  return made;
}

}  // namespace detail
NEAP_FUNC with_old_values keep_old_values(op_graph const& g) {
  auto made = detail::copies_of_old_values(g);
  if (made.copies == 0) return {};
  return {std::move(made.program), std::move(made.value), made.copies};
}

}}  // namespace neap::v0
