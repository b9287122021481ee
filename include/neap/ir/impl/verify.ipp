// The bodies of <neap/ir/verify.hpp>.
#pragma once

#include <neap/ir/verify.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// What verify() does, one member function a group of invariants; the groups before make the later ones safe to ask.
class graph_checker {
 public:
  explicit graph_checker(op_graph const& g) : g_(g) {}

  status run() {
    try {
      ops(), values(), storages(), aliases(), sources(), kept(), uses(), order(), types(), parts(), copies(), digests();
    } catch (failure& f) { return std::move(f); }
    return {};
  }

 private:
  /// What a message names, written out only where one is made: most graphs have no fault.
  template <class Id>
  struct named {
    graph_checker const& in;
    Id id;
  };
  named<op_id> say(op_id o) const { return {*this, o}; }
  named<value_id> say(value_id v) const { return {*this, v}; }
  named<storage_id> say(storage_id s) const { return {*this, s}; }

  template <class... Part>
  static void require(bool condition, Part const&... part) {
    if (condition) return;
    std::string line = "graph: ";
    (write(line, part), ...);
    throw failure{line};
  }
  static void write(std::string& line, std::string_view part) { line += part; }
  template <std::integral Number>
  static void write(std::string& line, Number n) {
    line += std::to_string(n);
  }
  /// op 3 "name" (matmul); a broken name is left out.
  static void write(std::string& line, named<op_id> o) {
    auto const& g = o.in.g_;
    line += "op " + std::to_string(index(o.id));
    if (index(o.id) >= g.op_count()) return;
    o.in.write_name(line, g.t_->ops[o.id].name);
    if (g.t_->ops[o.id].kind < g.kind_count()) line += " (" + std::string(g.facets(o.id).name) + ")";
  }
  static void write(std::string& line, named<value_id> v) {
    line += "value " + std::to_string(index(v.id));
    if (index(v.id) < v.in.g_.value_count()) v.in.write_name(line, v.in.g_.t_->values[v.id].name);
  }
  static void write(std::string& line, named<storage_id> s) { line += "storage " + std::to_string(index(s.id)); }
  void write_name(std::string& line, std::uint32_t at) const {
    if (at && g_.t_->texts.contains(at)) line += " \"" + std::string(g_.text(at)) + "\"";
  }

  /// Ids in range; outputs consecutive, in the order of the ops, and theirs.
  void ops() const {
    std::size_t next = 0;
    for (auto o : g_.ops()) {
      auto const& r = g_.t_->ops[o];
      require(r.kind < g_.kind_count(), say(o), ": its kind is not in the operator table");
      require(r.first_input + std::size_t{r.input_count} <= g_.t_->arguments.size(), say(o),
              ": its arguments are out of range");
      require(r.attributes + std::size_t{g_.facets(o).size} <= g_.t_->attributes.size(), say(o),
              ": its attributes are out of range");
      require(g_.t_->texts.contains(r.name), say(o), ": its name is out of range");
      require(r.origin < g_.t_->origin_count, say(o), ": its origin is out of range");
      require(r.part == nothing<part_id> || index(r.part) < g_.t_->parts.size(), say(o), ": its part does not exist");
      if (auto const* x = g_.as<op::opaque>(o)) {
        require(g_.t_->texts.contains(x->target), say(o), ": what it is called is out of range");
        require(g_.t_->texts.contains(x->details), say(o), ": its details are out of range");
      }
      for (auto v : g_.inputs(o))
        require(index(v) < g_.value_count(), say(o), " reads ", say(v), ", which does not exist");
      if (r.output_count == 0) continue;
      require(r.first_output >= next, say(o), ": its outputs do not come after those of the ops before it");
      next = r.first_output + std::size_t{r.output_count};
      require(next <= g_.value_count(), say(o), ": its outputs are out of range");
      for (auto v : g_.outputs(o))
        require(g_.t_->values[v].producer == o, say(v), " does not know that ", say(o), " makes it");
    }
  }

  void values() const {
    for (auto v : g_.values()) {
      auto const& r = g_.t_->values[v];
      require(index(r.layout) < g_.t_->layouts.size(), say(v), ": its layout is out of range");
      require(index(r.storage) < g_.storage_count(), say(v), ": its storage is out of range");
      require(g_.t_->texts.contains(r.name), say(v), ": its name is out of range");
      require(r.role <= role::donated, say(v), ": its role is none");
      for (auto x : g_.type(v).dims) require(x >= 0, say(v), ": an extent is negative");
      if (r.producer == nothing<op_id>) continue;
      require(index(r.producer) < g_.op_count(), say(v), ": its producer does not exist");
      auto const& p = g_.t_->ops[r.producer];
      require(index(v) >= p.first_output && index(v) < p.first_output + std::size_t{p.output_count}, say(v),
              " is no output of ", say(r.producer), ", which is said to make it");
    }
  }

  /// Numbered in the order of their first values; resident if a source made them.
  void storages() const {
    std::vector<std::uint32_t> updates(g_.storage_count());
    for (auto v : g_.values()) updates[index(g_.storage(v))] += g_.t_->values[v].alias == alias_kind::update;
    for (auto s : g_.storages()) {
      auto const& r = g_.t_->storages[s];
      require(r.bytes >= 0, say(s), ": negative bytes");
      require(index(r.first) < g_.value_count(), say(s), ": its first value does not exist");
      auto const& first = g_.t_->values[r.first];
      require(first.storage == s && first.alias == alias_kind::fresh, say(s), ": ", say(r.first), " did not make it");
      require(index(s) == 0 || g_.t_->storages[id_at<storage_id>(index(s) - 1)].first < r.first, say(s),
              ": not in the order of the first values");
      require(r.resident == (first.producer == nothing<op_id> && first.role != role::donated), say(s),
              r.resident ? ": resident, but an op makes it" : ": not resident, but a source lies in it");
      require(r.updates == updates[index(s)], say(s), ": its updates are miscounted");
    }
  }

  /// An op may overwrite the last version of a storage of as many bytes that does not outlast the step.
  void overwrite(value_id v) const {
    auto const& r = g_.t_->values[v];
    require(r.producer != nothing<op_id> && static_cast<std::size_t>(r.of) < g_.inputs(r.producer).size(), say(v),
            " overwrites something that is no input of its op");
    auto const base = g_.overwrites(v);
    auto const& s = g_.t_->storages[g_.storage(base)];
    require(s.bytes == g_.bytes(r.storage), say(v), " overwrites ", say(base), ", whose storage has another size");
    require(!s.resident, say(v), " overwrites ", say(base), ", which must outlast the step");
    require(g_.t_->values[base].version == s.updates, say(v), " overwrites an earlier version of ",
            say(g_.storage(base)));
    for (auto kept : g_.t_->kept)
      require(index(kept) >= g_.value_count() || g_.storage(kept) != g_.storage(base), say(v), " overwrites ",
              say(base), ", which is kept");
  }

  /// Views and updates lie in the storage of what they look at, at its version or the next one.
  void aliases() const {
    std::vector<std::pair<storage_id, std::uint32_t>> updates;
    std::vector<storage_id> overwritten;
    for (auto v : g_.values()) {
      auto const& r = g_.t_->values[v];
      require(r.alias <= alias_kind::update, say(v), ": how it shares its storage is out of range");
      if (r.alias == alias_kind::fresh) {
        require(g_.t_->storages[r.storage].first == v, say(v), " is not the first value of its own ", say(r.storage));
        require(r.of >= -1 && r.version == 0, say(v), " has a storage of its own, but a base or a version");
        if (r.of >= 0) overwrite(v), overwritten.push_back(g_.storage(g_.overwrites(v)));
        continue;
      }
      value_id base = g_.t_->storages[r.storage].first;  // of a source view
      if (r.producer != nothing<op_id>) {
        auto const in = g_.inputs(r.producer);
        auto const& p = g_.t_->ops[r.producer];
        bool const input = r.of >= 0 && static_cast<std::size_t>(r.of) < in.size();
        bool const output = r.of <= -2 && p.first_output + static_cast<std::size_t>(-2 - r.of) < index(v);
        require(input || output, say(v), " shares with something that is no input and no earlier output of its op");
        base = input ? in[static_cast<std::size_t>(r.of)]
                     : id_at<value_id>(p.first_output + static_cast<std::size_t>(-2 - r.of));
      } else {
        require(r.alias == alias_kind::view && r.of == -1, say(v),
                " is a source, but an update or a view of an argument");
        require(g_.producer(g_.t_->storages[r.storage].first) == nothing<op_id>, say(v),
                " is a source in a storage that an op makes");
      }
      auto const& b = g_.t_->values[base];
      require(r.storage == b.storage, say(v), " does not lie in the storage of ", say(base));
      require(r.version == b.version + (r.alias == alias_kind::update), say(v), ": its version is not that of ",
              say(base), r.alias == alias_kind::update ? " plus one" : "");
      if (r.alias == alias_kind::update) updates.emplace_back(r.storage, r.version);
    }
    std::sort(overwritten.begin(), overwritten.end());
    auto const again = std::adjacent_find(overwritten.begin(), overwritten.end());
    if (again != overwritten.end()) require(false, say(*again), " is overwritten twice");
    for (auto s : g_.storages())
      require(g_.is_overwritten(s) == std::binary_search(overwritten.begin(), overwritten.end(), s), say(s),
              ": whether it is overwritten is not marked rightly");
    std::sort(updates.begin(), updates.end());
    auto const twice = std::adjacent_find(updates.begin(), updates.end());
    if (twice != updates.end()) require(false, say(twice->first), ": version ", twice->second - 1, " is updated twice");
  }

  void sources() const {
    std::vector<value_id> all;
    for (auto v : g_.values()) {
      auto const& r = g_.t_->values[v];
      if (r.producer == nothing<op_id>) {
        all.push_back(v);
        require(is_source(r.role), say(v), " is made by no op, but is no source: ", name_of(r.role));
      } else {
        require(!is_source(r.role) || g_.is_source(r.storage), say(v), " is made by an op, but its role is ",
                name_of(r.role));
      }
    }
    require(std::equal(all.begin(), all.end(), g_.t_->sources.begin(), g_.t_->sources.end()),
            "the list of sources is not that of the values made by no op");
  }

  void kept() const {
    std::vector<bool> met(g_.value_count());
    for (auto v : g_.t_->kept) {
      require(index(v) < g_.value_count(), "kept ", say(v), " does not exist");
      require(!met[index(v)], say(v), " is kept twice");
      met[index(v)] = true;
    }
    for (auto v : g_.values())
      require(g_.t_->values[v].kept == met[index(v)], say(v),
              met[index(v)] ? " does not know that it is kept" : " is said to be kept, but is not in the list");
  }

  /// Readers, by op id and argument.
  void uses() const {
    std::vector<std::vector<use>> readers(g_.value_count());
    for (auto o : g_.ops())
      for (std::uint32_t i = 0; i < g_.t_->ops[o].input_count; ++i) readers[index(g_.inputs(o)[i])].push_back({o, i});
    require(g_.t_->uses.row_count() == g_.value_count(), "the table of readers has another length than the values");
    for (auto v : g_.values())
      require(std::equal(readers[index(v)].begin(), readers[index(v)].end(), g_.uses(v).begin(), g_.uses(v).end()),
              say(v), ": its readers are not those that read it");
  }

  /// Who overwrites a version waits for all its other readers; and everything can be put in order.
  void order() const {
    bool const any = std::any_of(g_.t_->values.begin(), g_.t_->values.end(), [](value_record const& r) {
      return r.alias == alias_kind::update || (r.alias == alias_kind::fresh && r.of >= 0);
    });
    require(g_.has_updates() == any, "the table of order constraints is there without updates, or missing");
    require(!any || g_.t_->after.row_count() == g_.op_count(),
            "the table of order constraints has another length than the ops");
    // The values of each storage, by version: the reading of one update looks at one version alone.
    using place = std::pair<storage_id, std::uint32_t>;
    std::vector<std::pair<place, value_id>> lie;
    if (any)
      for (auto v : g_.values()) lie.emplace_back(place{g_.storage(v), g_.t_->values[v].version}, v);
    std::sort(lie.begin(), lie.end());
    auto const from = [&](place at) {
      return std::lower_bound(lie.begin(), lie.end(), at, [](auto const& x, place const& y) { return x.first < y; });
    };
    for (auto o : g_.ops()) {
      std::vector<op_id> expected;
      auto const wait_for_readers = [&](place first, place end) {
        for (auto x = from(first), last = from(end); x != last; ++x)
          for (auto const& u : g_.uses(x->second))
            if (u.op != o) expected.push_back(u.op);
      };
      for (auto v : g_.outputs(o)) {
        auto const& r = g_.t_->values[v];
        if (auto const base = g_.overwrites(v); base != nothing<value_id>) {
          auto const s = g_.storage(base);
          wait_for_readers({s, 0}, {id_at<storage_id>(index(s) + 1), 0});
        } else if (r.alias == alias_kind::update) {
          wait_for_readers({r.storage, r.version - 1u}, {r.storage, r.version});
        }
      }
      std::sort(expected.begin(), expected.end());
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      auto const have = g_.order_after(o);
      require(std::equal(expected.begin(), expected.end(), have.begin(), have.end()), say(o),
              ": it does not wait for exactly the readers of what it overwrites");
    }
    if (auto const cycle = find_cycle(g_); !cycle.empty()) {
      std::string line;
      for (auto o : cycle) write(line, say(o)), line += " -> ";
      require(false, "ops wait for each other: ", line, say(cycle.front()));
    }
  }

  /// Shape rules give what the graph has; updates read nothing else of what they overwrite. (Opaque and external ops have none.)
  void types() const {
    std::vector<tensor_layout> layouts;
    for (auto o : g_.ops()) {
      if (g_.as<op::opaque>(o) || g_.as<op::external>(o)) continue;
      layouts.clear();
      for (auto v : g_.inputs(o)) layouts.push_back(g_.layout(v));
      shape_context shapes(g_.facets(o).name, layouts);
      std::string refused;
      try {
        g_.facets(o).infer(g_.attributes(o), shapes);
        shapes.require_updates_apart([&](int i, int j) {
          auto const in = g_.inputs(o);
          return g_.storage(in[static_cast<std::size_t>(i)]) == g_.storage(in[static_cast<std::size_t>(j)]);
        });
      } catch (error const& e) { refused = e.what(); }
      require(refused.empty(), say(o), ": its shape rule refuses its inputs: ", refused);
      require(shapes.outputs().size() == g_.outputs(o).size(), say(o),
              ": its shape rule gives another number of outputs");
      for (std::size_t j = 0; j < shapes.outputs().size(); ++j) {
        auto const& rule = shapes.outputs()[j];
        auto const v = g_.outputs(o)[j];
        auto const& r = g_.t_->values[v];
        require(rule.layout == g_.layout(v), say(o), ": output ", j, " should be ", to_string(rule.layout.type),
                ", is ", to_string(g_.type(v)), rule.layout.type == g_.type(v) ? " at other strides" : "");
        require(rule.alias == r.alias && (rule.alias == alias_kind::fresh || rule.of == r.of), say(o), ": output ", j,
                " shares its storage otherwise than its shape rule says");
        if (r.alias == alias_kind::fresh)
          require(g_.bytes(r.storage) == (rule.bytes >= 0 ? rule.bytes : rule.layout.type.bytes()), say(o), ": output ",
                  j, " has a storage of another size than its shape rule says");
      }
    }
  }

  /// Parts are numbered from 0, and a part of a part stands after it.
  void parts() const {
    for (std::size_t i = 0; i < g_.t_->parts.size(); ++i) {
      auto const& p = g_.t_->parts[i];
      require(p.number >= 0 && p.number < p.count, "part row ", i, ": ", p.number, " of ", p.count);
      require(p.of == nothing<part_id> || index(p.of) < i, "part row ", i,
              ": what it is cut from does not come before it");
    }
  }

  /// Copies of a random op draw the same numbers.
  std::optional<attribute_value> key(op_id o) const {
    auto const* x = g_.as<op::opaque>(o);
    if (x ? !x->rng : !g_.facets(o).random) return {};
    for (auto const& a : g_.facets(o).attributes)
      if (a.name == "key") return a.get(g_.attributes(o));
    return {};
  }
  void copies() const {
    std::vector<op_id> first(g_.t_->origin_count, nothing<op_id>);
    for (auto o : g_.ops()) {
      auto const k = key(o);
      if (!k) continue;
      auto& f = first[g_.t_->ops[o].origin];
      if (f == nothing<op_id>) f = o;
      else require(*key(f) == *k, say(o), " is a copy of ", say(f), " but draws with another key");
    }
  }

  void digests() const {
    require(g_.t_->op_down.size() == g_.op_count() && g_.t_->op_up.size() == g_.op_count() &&
                g_.t_->source_down.size() == g_.t_->sources.size() && g_.t_->source_up.size() == g_.t_->sources.size(),
            "the tables of digests have other lengths than the ops and sources");
    graph_editor again{op_graph(g_)};
    again.derive_all();
    op_graph const fresh = std::move(again).finish();
    for (auto o : g_.ops())
      require(fresh.t_->op_down[o] == g_.t_->op_down[o] && fresh.t_->op_up[o] == g_.t_->op_up[o], say(o),
              ": its digest is stale");
    for (std::size_t i = 0; i < g_.t_->sources.size(); ++i)
      require(fresh.t_->source_down[i] == g_.t_->source_down[i] && fresh.t_->source_up[i] == g_.t_->source_up[i],
              say(g_.t_->sources[i]), ": its digest is stale");
    require(fresh.t_->digest == g_.t_->digest, "the digest is not the sum of its parts");
  }

  op_graph const& g_;
};

NEAP_FUNC status verify(op_graph const& g) { return graph_checker(g).run(); }

}}  // namespace neap::v0
