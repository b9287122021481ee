// An engine that runs a net (engine_net.hpp) on bytes: each op writes a hash of all the bytes that it reads, views show a
// part of their storage, and an op in place writes the part that it was given. A plan is run in one arena that is full of
// noise at first; what it leaves is compared with a run in which each storage has memory of its own.
#pragma once

#include <neap/ir/traversal.hpp>

#include "engine_net.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace engine {

class byte_engine {
 public:
  using byte = unsigned char;

  byte_engine(net const& g, truth const& t)
      : g_(g),
        t_(t),
        window_(g.lies_in.size()),
        order_(neap::topological_order(g)) {
    std::vector<char> made(g.lies_in.size());
    for (auto const& x : g.ops)
      for (auto v : x.out) made[v] = 1;
    for (number v = 0; v < g.lies_in.size(); ++v) window_[v] = {0, g.bytes[g.lies_in[v]]};
    for (number v = 0; v < g.lies_in.size(); ++v)
      if (!made[v]) sources_.push_back(v);
    for (auto o : order_) {
      auto const& x = g.ops[index(o)];
      for (auto v : x.out)
        if (auto const at = g.part.find(v); at != g.part.end()) window_[v] = {at->second.first, at->second.second};
        else if (x.view) window_[v] = part(v);
        else
          for (auto in : x.in)  // in place: where the newest value that it reads of the storage lies
            if (g.lies_in[in] == g.lies_in[v]) window_[v] = window_[in];
    }
  }

  /// What lies in the kept values and the residents after a run with memory for each storage.
  std::vector<std::vector<byte>> plain() const {
    std::vector<std::vector<byte>> memory;
    for (auto n : g_.bytes) memory.emplace_back(static_cast<std::size_t>(n));
    for (number s = 0; s < memory.size(); ++s)
      if (g_.resident[s]) fill(memory[s].data(), s);
    for (auto v : sources_) fill(memory[g_.lies_in[v]].data(), g_.lies_in[v]);
    auto const at = [&](number v) { return memory[g_.lies_in[v]].data(); };
    for (auto o : order_) {
      auto const& x = g_.ops[index(o)];
      compute(
          static_cast<number>(index(o)), [&](std::size_t i) { return at(x.in[i]); },
          [&](std::size_t j) { return at(x.out[j]); });
    }
    std::vector<std::vector<byte>> found;
    for (auto v : g_.kept) found.push_back(cut(at(v), v));
    for (number s = 0; s < memory.size(); ++s)
      if (g_.resident[s]) found.push_back(memory[s]);
    return found;
  }

  /// The same of a plan, in one arena.
  std::vector<std::vector<byte>> planned(neap::external_plan const& p) const {
    std::vector<byte> arena(static_cast<std::size_t>(p.arena_bytes) + 1);
    for (std::size_t k = 0; k < arena.size(); ++k) arena[k] = static_cast<byte>(mix(k, 77));
    std::vector<byte> nowhere(1);
    auto const at = [&](neap::external_value const& v) {
      return v.buffer == neap::no_id ? nowhere.data() : arena.data() + p.buffers[v.buffer].offset;
    };
    std::vector<char> filled(g_.bytes.size());
    std::vector<std::uint32_t> resident(g_.bytes.size(), neap::no_id);
    for (std::uint32_t b = 0; b < p.buffers.size(); ++b) {
      auto const s = index(p.buffers[b].storage);
      bool const given = std::any_of(sources_.begin(), sources_.end(), [&](number v) { return g_.lies_in[v] == s; });
      if (g_.resident[s]) resident[s] = b;
      if ((g_.resident[s] || given) && !filled[s])
        fill(arena.data() + p.buffers[b].offset, static_cast<number>(s)), filled[s] = 1;
    }
    std::map<std::uint32_t, std::vector<byte>> outside;  // by the step that stored it
    std::vector<std::vector<byte>> found(g_.kept.size());
    for (std::uint32_t k = 0; k < p.steps.size(); ++k) {
      auto const& x = p.steps[k];
      if (x.kind == neap::external_step::compute) {
        for (neap::bytes_t w = 0; w < x.workspace_bytes; ++w)
          arena[static_cast<std::size_t>(x.workspace_offset + w)] =
              static_cast<byte>(mix(static_cast<std::size_t>(w), k));
        compute(
            static_cast<number>(index(x.op)), [&](std::size_t i) { return at(x.inputs[i]); },
            [&](std::size_t j) { return at(x.outputs[j]); });
      } else if (x.kind == neap::external_step::store) {
        auto const n = g_.bytes[g_.lies_in[index(x.inputs[0].value)]];
        outside[k].assign(at(x.inputs[0]), at(x.inputs[0]) + n);
      } else if (x.kind == neap::external_step::load) {
        auto const& from = outside[x.stored_by];
        std::copy(from.begin(), from.end(), at(x.outputs[0]));
      }
      for (std::size_t i = 0; i < g_.kept.size(); ++i)
        for (auto const& y : x.outputs)
          if (t_.root[index(y.value)] == t_.root[g_.kept[i]] && y.buffer != neap::no_id &&
              p.buffers[y.buffer].last + 1 == p.steps.size())
            last_place_[i] = p.buffers[y.buffer].offset;
    }
    for (std::size_t i = 0; i < g_.kept.size(); ++i)
      if (last_place_.count(i)) found[i] = cut(arena.data() + last_place_[i], g_.kept[i]);
    last_place_.clear();
    for (number s = 0; s < g_.bytes.size(); ++s)
      if (g_.resident[s]) {
        auto const* from = resident[s] == neap::no_id ? nowhere.data() : arena.data() + p.buffers[resident[s]].offset;
        found.emplace_back(from, from + g_.bytes[s]);
      }
    return found;
  }

 private:
  struct window {
    std::int64_t begin = 0, end = 0;
  };
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    auto x = (a + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9 ^ (b + 0x94d049bb133111eb) * 0x2545f4914f6cdd1d;
    x ^= x >> 29, x *= 0xff51afd7ed558ccd, x ^= x >> 32;
    return x;
  }
  window part(number v) const {
    auto const n = g_.bytes[g_.lies_in[v]];
    if (n == 0) return {0, 0};
    auto const a = static_cast<std::int64_t>(mix(v, 5) % static_cast<std::uint64_t>(n)),
               b = static_cast<std::int64_t>(mix(v, 6) % static_cast<std::uint64_t>(n));
    return {std::min(a, b), std::max(a, b) + 1};
  }
  void fill(byte* to, number s) const {
    for (std::int64_t k = 0; k < g_.bytes[s]; ++k) to[k] = static_cast<byte>(mix(s, static_cast<std::uint64_t>(k)));
  }
  std::vector<byte> cut(byte const* from, number v) const { return {from + window_[v].begin, from + window_[v].end}; }

  template <class In, class Out>
  void compute(number o, In in, Out out) const {
    auto const& x = g_.ops[o];
    if (x.view) return;
    std::uint64_t h = mix(o, 1234);
    for (std::size_t i = 0; i < x.in.size(); ++i) {
      auto const w = window_[x.in[i]];
      for (auto k = w.begin; k < w.end; ++k) h = mix(h, in(i)[k]);
    }
    for (std::size_t j = 0; j < x.out.size(); ++j) {
      auto const v = x.out[j];
      if (t_.root[v] != v) continue;  // on the storage of an output before it
      auto* to = out(j);
      for (auto k = window_[v].begin; k < window_[v].end; ++k)
        to[k] = static_cast<byte>(mix(h + j, static_cast<std::uint64_t>(k)));
    }
  }

  net const& g_;
  truth const& t_;
  std::vector<window> window_;  // of each value, in its storage
  std::vector<neap::op_id> order_;
  std::vector<number> sources_;
  mutable std::map<std::size_t, neap::bytes_t> last_place_;
};

}  // namespace engine
