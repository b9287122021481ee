// The bodies of <neap/train/old_values.hpp>.
#pragma once

#include <neap/train/old_values.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {
namespace detail {

/// A read that can only run behind the update, and must see what the storage was before it.
struct old_read {
  op_id reader, update;
  storage_id storage;
  std::uint16_t version;  // that is read, and that the update overwrites
  value_id copy = nothing<value_id>;

  bool is_of(op_graph const& g, value_id v) const { return g.storage(v) == storage && g.record(v).version == version; }
};

/// Those that keep a graph from running; of weights none.
NEAP_FUNC std::vector<old_read> old_reads_of(op_graph const& g) {
  std::vector<old_read> reads;
  if (!g.has_updates()) return reads;
  auto const edges = all_edges(g);
  if (kahn_order(edges).size() == g.op_count()) return reads;
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
  return reads;
}

/// x, of layout `is`, seen in another layout.
NEAP_FUNC value_id seen_as(tensor_layout const& should, value_id x, tensor_layout const& is, graph_editor& edit) {
  return is == should ? x : edit.add(op::as_strided{should.type.dims, should.strides, should.offset}, {x})[0];
}

/// A copy of what is read: the whole storage, so that views of it keep their layouts.
NEAP_FUNC value_id copy_for(old_read const& read, op_graph const& g, program_copy& to) {
  value_id seen = nothing<value_id>;
  for (auto v : g.values())
    if (read.is_of(g, v) && to.value[v] != nothing<value_id>) {
      seen = v;
      break;
    }
  auto const whole = seen_as(g.layout(g.record(read.storage).first), to.value[seen], g.layout(seen), to.edit);
  return to.edit.add(op::copy{}, {whole})[0];
}

}  // namespace detail

NEAP_FUNC with_old_values keep_old_values(op_graph const& g) {
  with_old_values made;
  auto reads = detail::old_reads_of(g);
  if (reads.empty()) return made;
  detail::program_copy to(g);
  for (auto o : g.ops()) {
    for (std::size_t i = 0; i < reads.size(); ++i) {
      auto& read = reads[i];
      if (read.update != o) continue;
      for (std::size_t k = 0; k < i; ++k)  // one copy for all
        if (reads[k].update == o && reads[k].storage == read.storage) read.copy = reads[k].copy;
      if (read.copy != nothing<value_id>) continue;
      read.copy = detail::copy_for(read, g, to);
      ++made.copies;
    }
    std::vector<value_id> in;
    for (auto v : g.inputs(o)) {
      auto const read = std::find_if(reads.begin(), reads.end(),
                                     [&](detail::old_read const& r) { return r.reader == o && r.is_of(g, v); });
      in.push_back(read == reads.end()
                       ? to.value[v]
                       : detail::seen_as(g.layout(v), read->copy, to.edit.layout_of(read->copy), to.edit));
    }
    to.put(o, g.view(o), span_of(in));
  }
  made.program = to.finish();
  made.value = std::move(to.value);
  return made;
}

}}  // namespace neap::v0
