// Runs an order of a graph symbolically: a storage's content is a digest, an op's outputs are digests of what the op is
// and of the contents it reads. Two graphs compute the same if the contents of their kept values and of their resident
// storages agree in the end. An op that reads a version of a storage that is not there any more (or not yet) is an error:
// contents are looked up in storages, not in values. Operators are hashed whole, so no algebra is assumed of them;
// load(store(x)) is x.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/plan/schedule.hpp>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace neap::testing {

struct symbolic_result {
  std::string error;            // empty: ran through
  std::vector<digest> kept;     // contents of kept values, in order
  std::vector<digest> sources;  // contents of the storages of source values in the end, in order
  friend bool operator==(symbolic_result const&, symbolic_result const&) = default;
};

inline symbolic_result run_symbolically(op_graph const& g, schedule const& order) {
  struct content {
    digest value;
    std::uint16_t version = 0;
    bool there = false;
  };
  std::vector<content> storage(g.storage_count());
  std::vector<std::optional<digest>> seen(g.value_count());
  symbolic_result out;
  std::uint64_t ordinal = 0;
  for (auto v : g.sources()) {
    auto& s = storage[index(g.storage(v))];
    if (!s.there) s = {digest{}.mix(0xabcdu).mix(++ordinal), 0, true};
  }
  auto const layout_digest = [&](digest d, tensor_layout const& l) {
    for (auto x : l.type.dims) d = d.mix(static_cast<std::uint64_t>(x));
    for (auto x : l.strides) d = d.mix(static_cast<std::uint64_t>(x));
    return d.mix(static_cast<std::uint64_t>(l.offset)).mix(static_cast<std::uint64_t>(l.type.element));
  };
  auto const read = [&](op_id o, value_id v) -> digest {
    auto const& s = storage[index(g.storage(v))];
    if (!s.there || s.version != g.record(v).version) {
      if (out.error.empty())
        out.error = "op " + std::to_string(index(o)) + " reads value " + std::to_string(index(v)) +
                    (s.there ? " of another version" : " that is not there");
    }
    return layout_digest(s.value, g.layout(v));  // what a view shows is its storage, and how it looks at it
  };
  std::vector<bool> ran(g.op_count());
  for (auto o : order) {
    if (ran[index(o)]) out.error = "op " + std::to_string(index(o)) + " runs twice";
    ran[index(o)] = true;
    digest d = digest{}.mix(std::string_view(g.facets(o).name));
    if (auto const* x = g.as<op::opaque>(o)) d = d.mix(g.text(x->target));
    for (auto const& a : g.facets(o).attributes) {
      auto const value = a.get(g.attributes(o));
      if (auto const* i = std::get_if<std::int64_t>(&value)) d = d.mix(static_cast<std::uint64_t>(*i));
      if (auto const* b = std::get_if<bool>(&value)) d = d.mix(static_cast<std::uint64_t>(*b));
      if (auto const* f = std::get_if<double>(&value)) {
        std::uint64_t bits;
        std::memcpy(&bits, f, 8);
        d = d.mix(bits);
      }
    }
    bool const transfer = g.as<op::store>(o) || g.as<op::load>(o);
    digest moved;
    for (auto v : g.inputs(o)) {
      if (transfer) (void)read(o, v), moved = storage[index(g.storage(v))].value;
      else d = d.mix(read(o, v));
    }
    std::uint64_t j = 0;
    for (auto v : g.outputs(o)) {
      auto const& r = g.record(v);
      auto& s = storage[index(r.storage)];
      digest const made = transfer ? moved : d.mix(++j);
      if (r.alias == alias_kind::fresh) s = {made, 0, true};
      else if (r.alias == alias_kind::update) s = {made, r.version, true};
      // a view writes nothing
    }
  }
  for (auto o : g.ops())
    if (!ran[index(o)] && out.error.empty()) out.error = "op " + std::to_string(index(o)) + " does not run";
  for (auto v : g.kept()) out.kept.push_back(read(op_id{no_id}, v));
  for (auto v : g.sources()) out.sources.push_back(storage[index(g.storage(v))].value);
  return out;
}

}  // namespace neap::testing
