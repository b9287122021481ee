// Somebody else's graph, as plain vectors: views, updates in place, ops with several outputs, workspaces, order
// constraints, buffers that are given and freed. Random ones, and a plainly written check of plans for them.
#pragma once

#include <neap/ir/dataflow.hpp>
#include <neap/plan/external_plan.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace engine {

using number = std::uint32_t;

struct net {
  struct op {
    std::vector<number> in, out, after;
    std::vector<std::pair<number, number>> takeovers;  // (input, output)
    std::int64_t workspace = 0;
    double seconds = 0;
    bool view = false, again = false;
    neap::op_stream stream = neap::op_stream::compute;
  };
  std::vector<op> ops;
  std::vector<number> lies_in;  // of each value: its storage
  std::vector<std::int64_t> bytes;
  std::vector<char> resident, swappable;  // of each storage
  std::vector<number> kept;
  std::map<number, std::pair<std::int64_t, std::int64_t>> part;  // of values that cover a part of their storage

  net() = default;
  net(net const&) = delete;  // nobody copies it
  net& operator=(net const&) = delete;
  net(net&&) = default;
};

/// What the engine's own order of making knows: of each value, the value that last wrote its storage when it was made.
struct truth {
  std::vector<number> root;
};

struct options {
  int least_ops = 10, max_ops = 40;
  bool may_repeat = true;  // some ops may run again
  bool streams = false;    // some ops are transfers of the engine's own
  number in_place = 10;    // percent of the ops that overwrite what they read
};

inline constexpr number none = 0xffffffffu;

/// A random net; a third of them has ids in no order. `t` says which bytes each value is.
inline net random_net(std::uint64_t seed, truth& t, options o = {}) {
  std::mt19937_64 draw(seed * 7919 + 17);
  auto const below = [&](std::size_t n) { return static_cast<number>(draw() % n); };
  auto const chance = [&](int percent) { return static_cast<int>(draw() % 100) < percent; };
  net g;
  std::vector<std::vector<number>> live;     // of each storage: values of its newest version
  std::vector<std::vector<number>> readers;  // of each storage: ops that read its newest version
  std::vector<char> written, fixed;          // of each storage: it may not be written any more
  std::vector<number> maker;                 // of each value
  std::vector<char> unread;                  // of each value
  auto const new_storage = [&](std::int64_t bytes, bool resident) {
    g.bytes.push_back(bytes), g.resident.push_back(resident), g.swappable.push_back(chance(80));
    live.emplace_back(), readers.emplace_back(), written.push_back(0), fixed.push_back(0);
    return static_cast<number>(g.bytes.size() - 1);
  };
  auto const new_value = [&](number s, number root_or_none) {
    auto const v = static_cast<number>(g.lies_in.size());
    g.lies_in.push_back(s);
    t.root.push_back(root_or_none == none ? v : root_or_none);
    maker.push_back(none), unread.push_back(1);
    live[s].push_back(v);
    return v;
  };
  auto const size = [&] {
    return chance(4) ? 0 : std::int64_t{1} + static_cast<std::int64_t>(below(8)) * (chance(50) ? 64 : 50);
  };
  auto const n_sources = 1 + below(4);
  for (number i = 0; i < n_sources; ++i) {
    auto const s = new_storage(1 + below(300), chance(75));
    auto const v = new_value(s, none);
    if (chance(15)) new_value(s, v);
  }
  if (chance(30)) new_storage(1 + below(200), true);  // an output buffer that only ops put values on
  if (chance(10)) new_storage(1 + below(200), true);

  auto const any_value = [&] {
    for (;;) {  // among the last ones mostly
      auto const n = g.lies_in.size();
      auto const v = static_cast<number>(chance(60) && n > 6 ? n - 1 - below(6) : below(n));
      auto const& l = live[g.lies_in[v]];
      if (std::find(l.begin(), l.end(), v) != l.end()) return v;
    }
  };
  auto const n_ops = o.least_ops + static_cast<int>(below(static_cast<std::size_t>(o.max_ops - o.least_ops + 1)));
  for (int k = 0; k < n_ops; ++k) {
    auto const me = static_cast<number>(g.ops.size());
    net::op x;
    auto const read = [&](number v) {
      x.in.push_back(v);
      unread[v] = 0;
      readers[g.lies_in[v]].push_back(me);
    };
    auto const make = [&](number s, number root) {
      auto const v = new_value(s, root);
      maker[v] = me;
      x.out.push_back(v);
      return v;
    };
    auto const overwrite = [&](number s) {
      for (auto r : readers[s])
        if (r != me && std::find(x.after.begin(), x.after.end(), r) == x.after.end()) x.after.push_back(r);
      live[s].clear(), readers[s].clear(), written[s] = 1;
      make(s, none);
    };
    x.seconds = chance(10) ? 0 : 1e-4 * (1 + below(20));
    x.again = o.may_repeat && chance(80);
    auto const what = below(100);
    if (what < 18) {
      auto const v = any_value();
      read(v);
      x.view = true, x.seconds = 0;
      make(g.lies_in[v], t.root[v]);
    } else if (what < 18 + o.in_place) {
      auto const v = any_value();
      read(v);
      if (chance(50)) read(any_value());
      if (chance(20)) x.workspace = 1 + below(100);
      overwrite(g.lies_in[v]);
    } else if (what < 22 + o.in_place) {  // writes a resident buffer without reading it
      std::vector<number> free;
      for (number s = 0; s < g.bytes.size(); ++s)
        if (g.resident[s] && !written[s] && !fixed[s]) free.push_back(s);
      read(any_value());
      if (!free.empty()) {
        auto const s = free[below(free.size())];
        if (std::none_of(x.in.begin(), x.in.end(), [&](number v) { return g.lies_in[v] == s; })) overwrite(s);
      }
    } else {
      for (auto n = 1 + below(3); n-- > 0;) read(any_value());
      if (chance(5)) x.in.clear();
      for (auto n = 1 + (chance(25) ? 1 + below(2) : 0); n-- > 0;) {
        auto const s = new_storage(chance(50) && !x.in.empty() ? g.bytes[g.lies_in[x.in[0]]] : size(), false);
        auto const v = make(s, none);
        if (chance(6)) make(s, v);
      }
      if (o.streams && chance(20)) x.stream = chance(50) ? neap::op_stream::to_host : neap::op_stream::to_device;
      if (chance(25)) x.workspace = 1 + below(400);
      for (number i = 0; i < x.in.size(); ++i)
        for (number j = 0; j < x.out.size(); ++j)
          if (chance(40)) x.takeovers.emplace_back(i, j);
    }
    if (me > 0 && chance(5)) x.after.push_back(below(me));
    g.ops.push_back(std::move(x));
  }
  for (number v = 0; v < g.lies_in.size(); ++v) {
    auto const& l = live[g.lies_in[v]];
    bool const newest = std::find(l.begin(), l.end(), v) != l.end();
    if (maker[v] != none && newest && (unread[v] || chance(4))) g.kept.push_back(v);
  }
  if (seed % 3 == 0) {  // other numbers for everything
    auto const permutation = [&](std::size_t n) {
      std::vector<number> p(n);
      for (number i = 0; i < n; ++i) p[i] = i;
      std::shuffle(p.begin(), p.end(), draw);
      return p;
    };
    auto const op_to = permutation(g.ops.size()), value_to = permutation(g.lies_in.size()),
               storage_to = permutation(g.bytes.size());
    auto const map = [](std::vector<number>& list, std::vector<number> const& to) {
      for (auto& v : list) v = to[v];
    };
    auto const move_rows = []<class T>(std::vector<T>& rows, std::vector<number> const& to) {
      std::vector<T> moved(rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) moved[to[i]] = std::move(rows[i]);
      rows = std::move(moved);
    };
    for (auto& x : g.ops) map(x.in, value_to), map(x.out, value_to), map(x.after, op_to);
    map(g.kept, value_to), map(g.lies_in, storage_to), map(t.root, value_to);
    move_rows(g.ops, op_to), move_rows(g.lies_in, value_to), move_rows(t.root, value_to);
    move_rows(g.bytes, storage_to), move_rows(g.resident, storage_to), move_rows(g.swappable, storage_to);
  }
  return g;
}

/// All that is wrong with a plan, as one line; empty: nothing. Written from the meaning of a plan alone: who owns each
/// byte when, which bytes each step reads, what has run and ended before.
struct plan_check {
  net const& g;
  truth const& t;
  neap::external_plan const& p;
  double (*transfer_seconds)(std::int64_t bytes) = nullptr;  // nullptr: not looked at
  double const eps = 1e-12;

  std::string fault;
  void require(bool good, std::string const& what) {
    if (!good && fault.empty()) fault = what;
  }
  std::int64_t rounded(std::int64_t n) const {
    return (n + p.options.alignment - 1) / p.options.alignment * p.options.alignment;
  }
  static std::string at(std::size_t s) { return "step " + std::to_string(s) + ": "; }

  std::vector<number> content;  // of each buffer: the value whose bytes it has now
  std::vector<char> filled;

  std::string run() {
    auto const n = p.steps.size();
    buffers();
    if (!fault.empty()) return fault;
    content.assign(p.buffers.size(), none), filled.assign(p.buffers.size(), 0);
    sources();
    std::vector<number> runs(g.ops.size());
    std::vector<double> first_end(g.ops.size(), -1);
    double compute_free = 0, latency = 0;
    double link_free[2] = {0, 0};
    for (std::size_t s = 0; s < n && fault.empty(); ++s) {
      auto const& x = p.steps[s];
      require(x.end >= x.start - eps, at(s) + "ends before it begins");
      latency = std::max(latency, x.end);
      for (auto const* list : {&x.inputs, &x.outputs})
        for (auto const& v : *list) {
          require(index(v.value) < g.lies_in.size(), at(s) + "an unknown value");
          if (!fault.empty()) return fault;
          auto const bytes = g.bytes[g.lies_in[index(v.value)]];
          require((v.buffer == neap::no_id) == (bytes == 0), at(s) + "a value without its buffer");
          if (v.buffer == neap::no_id || !fault.empty()) continue;
          require(v.buffer < p.buffers.size(), at(s) + "an unknown buffer");
          if (!fault.empty()) return fault;
          auto const& b = p.buffers[v.buffer];
          require(b.first <= s && s <= b.last, at(s) + "touches a buffer outside its life");
          require(index(b.storage) == g.lies_in[index(v.value)], at(s) + "a buffer of another storage");
        }
      for (auto const& v : x.inputs) reads(s, v);
      if (!fault.empty()) return fault;
      if (x.kind == neap::external_step::compute) {
        require(index(x.op) < g.ops.size(), at(s) + "an unknown op");
        if (!fault.empty()) return fault;
        computes(s, runs[index(x.op)]);
        require(x.start >= compute_free - eps, at(s) + "begins before the one before it has ended");
        compute_free = x.end;
        for (auto b : g.ops[index(x.op)].after)
          require(overwrites_for(b, index(x.op)) || (runs[b] > 0 && first_end[b] <= x.start + eps),
                  at(s) + "runs before an op that it must follow");
        if (runs[index(x.op)]++ == 0) first_end[index(x.op)] = x.end;
      } else if (x.kind == neap::external_step::wait) {
        require(x.inputs.empty() && x.outputs.empty() && x.start == x.end, at(s) + "a wait does something");
        require(x.stored_by < s && p.steps[x.stored_by].kind == neap::external_step::store,
                at(s) + "waits for no store");
        if (!fault.empty()) return fault;
        require(x.start >= compute_free - eps && x.start >= p.steps[x.stored_by].end - eps, at(s) + "waits too little");
        compute_free = x.end;
      } else {
        require(x.start >= compute_free - eps, at(s) + "is issued later than it begins");
        auto& link = link_free[x.kind == neap::external_step::load];
        require(x.start >= link - eps, at(s) + "two transfers on one link");
        link = x.end;
        transfers(s);
      }
    }
    for (std::size_t o = 0; o < g.ops.size(); ++o) require(runs[o] > 0, "op " + std::to_string(o) + " does not run");
    require(latency == p.latency, "the latency is another one");
    for (auto v : g.kept) {
      if (g.bytes[g.lies_in[v]] == 0) continue;
      bool there = false;
      for (std::size_t b = 0; b < p.buffers.size(); ++b)
        there =
            there || (filled[b] && content[b] == t.root[v] && (p.buffers[b].resident || p.buffers[b].last + 1 == n));
      require(there, "value " + std::to_string(v) + " is not there at the end");
    }
    for (auto const& w : p.waits)
      require(w.step <= n && w.transfer < n && p.steps[w.transfer].stream != neap::op_stream::compute, "a bad wait");
    return fault;
  }

  /// Whether b precedes o because it reads a temporary that o overwrites: copies of it lift that.
  bool overwrites_for(number b, std::size_t o) const {
    for (auto v : g.ops[o].out)
      for (auto in : g.ops[b].in)
        if (t.root[v] == v && g.lies_in[in] == g.lies_in[v] && !g.resident[g.lies_in[v]]) return true;
    return false;
  }

  /// Addresses, lives and sums.
  void buffers() {
    auto const n = p.steps.size();
    std::int64_t top = 0, residents = 0;
    for (std::size_t i = 0; i < p.buffers.size(); ++i) {
      auto const& b = p.buffers[i];
      require(index(b.storage) < g.bytes.size(), "a buffer of an unknown storage");
      if (!fault.empty()) return;
      require(b.bytes == rounded(g.bytes[index(b.storage)]), "a buffer of another size");
      require(b.offset >= 0 && b.offset % p.options.alignment == 0, "a buffer that is not aligned");
      require(b.first <= b.last && (n == 0 || b.last < n), "a buffer without a life");
      require(b.resident == static_cast<bool>(g.resident[index(b.storage)]), "a resident that is none");
      if (b.resident)
        require(b.first == 0 && (n == 0 || b.last == n - 1), "a resident that comes or goes"), residents += b.bytes;
      top = std::max(top, b.offset + b.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        auto const& c = p.buffers[j];
        if (b.offset >= c.offset + c.bytes || c.offset >= b.offset + b.bytes) continue;
        if (b.first > c.last || c.first > b.last) continue;
        bool const handed = (b.takes_over == j && b.first == c.last) || (c.takes_over == i && c.first == b.last);
        require(handed && b.offset == c.offset && b.bytes == c.bytes, "two buffers share bytes");
      }
    }
    for (std::size_t s = 0; s < n; ++s) {
      auto const& x = p.steps[s];
      if (x.workspace_bytes == 0) continue;
      require(x.workspace_offset % p.options.alignment == 0, at(s) + "a workspace that is not aligned");
      top = std::max(top, x.workspace_offset + x.workspace_bytes);
      for (auto const& b : p.buffers)
        require(s < b.first || b.last < s || x.workspace_offset >= b.offset + b.bytes ||
                    b.offset >= x.workspace_offset + x.workspace_bytes,
                at(s) + "its workspace shares bytes with a buffer");
    }
    std::int64_t peak = n == 0 ? residents : 0;
    for (std::size_t s = 0; s < n; ++s) {
      std::int64_t sum = p.steps[s].workspace_bytes;
      for (auto const& b : p.buffers)
        if (b.first <= s && s <= b.last && (b.takes_over == neap::no_id || b.first != s)) sum += b.bytes;
      peak = std::max(peak, sum);
    }
    require(peak == p.peak_bytes, "the peak is " + std::to_string(peak) + ", not " + std::to_string(p.peak_bytes));
    require(residents == p.resident_bytes, "the residents have other bytes");
    require(top == p.arena_bytes, "the arena ends at " + std::to_string(top));
    require(p.peak_bytes <= p.arena_bytes, "an arena below the peak");
    require(p.lower_bound_bytes <= p.peak_bytes, "a peak below the bound");
  }

  void sources() {
    std::vector<char> made(g.lies_in.size());
    for (auto const& x : g.ops)
      for (auto v : x.out) made[v] = 1;
    std::vector<char> placed(g.bytes.size());
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      auto const s = index(p.buffers[b].storage);
      for (number v = 0; v < g.lies_in.size(); ++v)
        if (!made[v] && g.lies_in[v] == s && !placed[s]) {
          require(p.buffers[b].first == 0, "a given buffer that comes later");
          content[b] = t.root[v], filled[b] = 1;
        }
      if (g.resident[s]) require(!placed[s], "a resident is there twice"), filled[b] = 1;
      placed[s] = 1;
    }
  }

  void reads(std::size_t s, neap::external_value const& v) {
    auto const& x = p.steps[s];
    if (v.made_by != neap::no_id) {
      require(v.made_by < s, at(s) + "reads what is made later");
      if (!fault.empty()) return;
      auto const& by = p.steps[v.made_by];
      bool made = false;
      for (auto const& y : by.outputs)
        made = made || (y.value == v.value && y.buffer == v.buffer) ||
               (by.kind == neap::external_step::load && y.buffer == v.buffer &&
                t.root[index(y.value)] == t.root[index(v.value)]);
      require(made, at(s) + "reads an instance that its step did not make");
      require(by.end <= x.start + eps, at(s) + "reads before it is made");
    }
    if (v.buffer == neap::no_id) return;
    require(filled[v.buffer], at(s) + "reads a buffer that nobody has filled");
    require(content[v.buffer] == t.root[index(v.value)],
            at(s) + "reads other bytes than value " + std::to_string(index(v.value)));
  }

  void computes(std::size_t s, number runs_before) {
    auto const& x = p.steps[s];
    auto const& o = g.ops[index(x.op)];
    require(x.copy == runs_before, at(s) + "counts its runs wrongly");
    require(runs_before == 0 || o.again, at(s) + "runs again, and may not");
    require(x.inputs.size() == o.in.size() && x.outputs.size() == o.out.size(), at(s) + "has other arguments");
    require(x.workspace_bytes == rounded(o.workspace), at(s) + "has another workspace");
    require(std::abs(x.end - x.start - o.seconds) < 1e-9, at(s) + "takes another time");
    if (!fault.empty()) return;
    for (std::size_t i = 0; i < o.in.size(); ++i)
      require(index(x.inputs[i].value) == o.in[i], at(s) + "reads another value");
    std::vector<std::pair<number, number>> now;  // what the buffers have after it
    std::set<number> taken;
    for (number j = 0; j < o.out.size(); ++j) {
      require(index(x.outputs[j].value) == o.out[j] && x.outputs[j].made_by == s, at(s) + "makes another value");
      auto const b = x.outputs[j].buffer;
      if (b == neap::no_id || !fault.empty()) continue;
      auto const storage = g.lies_in[o.out[j]];
      number shares = none, sibling = none;
      for (number i = 0; i < o.in.size(); ++i)
        if (g.lies_in[o.in[i]] == storage) shares = x.inputs[i].buffer;
      for (number k = 0; k < j; ++k)
        if (g.lies_in[o.out[k]] == storage) sibling = x.outputs[k].buffer;
      bool const writes = t.root[o.out[j]] == o.out[j];
      if (sibling != none) {
        require(sibling == b, at(s) + "two outputs on one storage, in two buffers");
      } else if (shares != none || g.resident[storage]) {
        require(shares == none || shares == b, at(s) + "a view or update in another buffer");
        require(!writes || runs_before == 0 || !g.resident[storage], at(s) + "writes a resident in place, twice");
        if (writes)
          for (std::size_t q = 0; q < s; ++q)
            require(p.steps[q].kind != neap::external_step::store || p.steps[q].inputs[0].buffer != b ||
                        p.steps[q].end <= x.start + eps,
                    at(s) + "writes what is being stored");
      } else {
        require(p.buffers[b].first == s, at(s) + "a fresh value in a buffer that was there");
        if (auto const from = p.buffers[b].takes_over; from != neap::no_id) {
          require(p.buffers[from].last == s && taken.insert(from).second, at(s) + "takes over what lives on");
          bool reads_it = false;
          for (number i = 0; i < o.in.size(); ++i)
            if (x.inputs[i].buffer == from) {
              reads_it = true;
              require(std::find(o.takeovers.begin(), o.takeovers.end(), std::pair{i, j}) != o.takeovers.end(),
                      at(s) + "takes over what it may not");
            }
          require(reads_it, at(s) + "takes over what it does not read");
        }
      }
      now.emplace_back(b, t.root[o.out[j]]);
    }
    for (auto [b, root] : now) content[b] = root, filled[b] = 1;
  }

  void transfers(std::size_t s) {
    auto const& x = p.steps[s];
    bool const stores = x.kind == neap::external_step::store;
    require(stores ? x.inputs.size() == 1 && x.outputs.empty() : x.inputs.empty() && x.outputs.size() == 1,
            at(s) + "a transfer of more or less than one value");
    if (!fault.empty()) return;
    auto const& v = stores ? x.inputs[0] : x.outputs[0];
    auto const storage = g.lies_in[index(v.value)];
    require(g.swappable[storage] && !g.resident[storage], at(s) + "moves what may not be moved");
    if (transfer_seconds)
      require(std::abs(x.end - x.start - transfer_seconds(g.bytes[storage])) < 1e-9, at(s) + "takes another time");
    // Its device bytes are its own until it has ended: no step that begins before then stands after the buffer's life.
    require(v.buffer != neap::no_id, at(s) + "moves nothing");
    if (!fault.empty()) return;
    for (std::size_t q = s + 1; q < p.steps.size(); ++q)
      if (p.steps[q].kind == neap::external_step::compute && p.steps[q].start < x.end - eps)
        require(q <= p.buffers[v.buffer].last, at(s) + "its buffer is given away while it runs");
    if (stores) return;
    require(x.stored_by < s && p.steps[x.stored_by].kind == neap::external_step::store,
            at(s) + "loads what was not stored");
    if (!fault.empty()) return;
    require(p.steps[x.stored_by].end <= x.start + eps, at(s) + "loads before it is stored");
    require(p.steps[x.stored_by].inputs[0].value == v.value, at(s) + "loads another value than was stored");
    require(p.buffers[v.buffer].first == s, at(s) + "loads into a buffer that was there");
    content[v.buffer] = t.root[index(v.value)], filled[v.buffer] = 1;
  }
};

}  // namespace engine

template <>
struct neap::graph_traits<engine::net> {
  using G = engine::net;
  static std::size_t op_count(G const& g) { return g.ops.size(); }
  static std::size_t value_count(G const& g) { return g.lies_in.size(); }
  static std::size_t storage_count(G const& g) { return g.bytes.size(); }
  template <class Id>
  static std::vector<Id> ids(std::vector<engine::number> const& list) {
    std::vector<Id> out;
    for (auto i : list) out.push_back(Id{i});
    return out;
  }
  static auto inputs(G const& g, op_id o) { return ids<value_id>(g.ops[index(o)].in); }
  static auto outputs(G const& g, op_id o) { return ids<value_id>(g.ops[index(o)].out); }
  static auto order_after(G const& g, op_id o) { return ids<op_id>(g.ops[index(o)].after); }
  static auto kept(G const& g) { return ids<value_id>(g.kept); }
  static storage_id storage(G const& g, value_id v) { return storage_id{g.lies_in[index(v)]}; }
  static bytes_t bytes(G const& g, storage_id s) { return g.bytes[index(s)]; }
  static bool is_resident(G const& g, storage_id s) { return g.resident[index(s)]; }
  static std::pair<bytes_t, bytes_t> part(G const& g, value_id v) {
    auto const at = g.part.find(static_cast<engine::number>(index(v)));
    return at == g.part.end() ? std::pair{bytes_t{0}, g.bytes[g.lies_in[index(v)]]} : at->second;
  }
  static bool is_swappable(G const& g, storage_id s) { return g.swappable[index(s)]; }
  static bool is_view(G const& g, op_id o) { return g.ops[index(o)].view; }
  static bool is_recomputable(G const& g, op_id o) { return g.ops[index(o)].again; }
  static bytes_t workspace(G const& g, op_id o) { return g.ops[index(o)].workspace; }
  static double seconds(G const& g, op_id o) { return g.ops[index(o)].seconds; }
  static op_stream stream(G const& g, op_id o) { return g.ops[index(o)].stream; }
  static bool may_take_over(G const& g, op_id o, std::size_t input, std::size_t output) {
    std::pair const wanted{static_cast<engine::number>(input), static_cast<engine::number>(output)};
    auto const& all = g.ops[index(o)].takeovers;
    return std::find(all.begin(), all.end(), wanted) != all.end();
  }
};
