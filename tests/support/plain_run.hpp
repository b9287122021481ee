// Unplanned execution: every storage has memory of its own, filled with noise first, nothing is reused, ops run in the
// given order. What planned executions are compared with, bit for bit.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/core/philox.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/model/kernels.hpp>
#include <neap/plan/schedule.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace neap::testing {

/// Bytes aligned to 64, owned.
class block {
 public:
  block() = default;
  explicit block(bytes_t n)
      : bytes_(n),
        data_(std::aligned_alloc(64, static_cast<std::size_t>(align_up(n > 0 ? n : 1, 64)))) {}
  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  bytes_t bytes() const { return bytes_; }
  friend bool operator==(block const& a, block const& b) {
    return a.bytes_ == b.bytes_ && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes_)) == 0;
  }
  block clone() const {
    block b(bytes_);
    std::memcpy(b.data(), data(), static_cast<std::size_t>(bytes_));
    return b;
  }

 private:
  struct release {
    void operator()(void* p) const { std::free(p); }
  };
  bytes_t bytes_ = 0;
  std::unique_ptr<void, release> data_;
};

/// Memory for each source's storage, with numbers in it: floats uniform in [-1, 1), integers in [0, below).
inline std::vector<block> random_sources(op_graph const& g, std::uint64_t seed, std::uint32_t below = 2) {
  random_stream draw(seed);
  std::vector<block> all;
  for (auto v : g.sources()) {
    auto const s = g.storage(v);
    block b(g.bytes(s));
    auto const t = g.type(v).element;
    auto const n = static_cast<std::size_t>(g.bytes(s) / size_of(t));
    std::memset(b.data(), 0, static_cast<std::size_t>(b.bytes()));
    for (std::size_t i = 0; i < n; ++i) {
      double const x = 2 * static_cast<double>(draw.uniform()) - 1;
      if (t == dtype::f32) reinterpret_cast<float*>(b.data())[i] = static_cast<float>(x);
      else if (t == dtype::f64) reinterpret_cast<double*>(b.data())[i] = x;
      else if (t == dtype::i64) reinterpret_cast<std::int64_t*>(b.data())[i] = draw.below(below);
      else if (t == dtype::boolean || t == dtype::u8) b.data()[i] = static_cast<std::byte>(draw.below(2));
    }
    all.push_back(std::move(b));
  }
  return all;
}

struct plain_result {
  std::vector<block> kept;     // the elements of kept values, dense, in order
  std::vector<block> sources;  // the storages of source values afterwards, in order
};

/// The elements of a tensor in row-major order.
inline block dense_bytes(tensor_ref const& t) {
  auto const size = static_cast<std::size_t>(size_of(t.element));
  block b(t.count() * size_of(t.element));
  auto* to = b.data();
  std::int64_t at[max_rank] = {};
  for (std::int64_t i = 0, n = t.count(); i < n; ++i, to += size) {
    std::int64_t offset = 0;
    for (int a = 0; a < t.rank(); ++a) offset += at[a] * t.strides[a];
    std::memcpy(to, static_cast<std::byte const*>(t.data) + offset * static_cast<std::int64_t>(size), size);
    for (int a = t.rank() - 1; a >= 0 && ++at[a] == t.dims[a]; --a) at[a] = 0;
  }
  return b;
}

/// Runs the ops of a graph in an order, on copies of the sources.
inline plain_result run_plainly(op_graph const& g, schedule const& order, std::vector<block> const& sources,
                                host_backend& backend) {
  std::vector<block> memory;
  std::vector<std::byte*> address(g.storage_count(), nullptr);
  plain_result out;
  std::size_t i = 0;
  for (auto v : g.sources()) {
    auto const s = index(g.storage(v));
    if (!address[s]) {
      memory.push_back(sources[i].clone());
      address[s] = memory.back().data();
    }
    ++i;
  }
  for (auto s : g.storages())
    if (!address[index(s)]) {
      memory.emplace_back(g.bytes(s));
      std::memset(memory.back().data(), 0x5e, static_cast<std::size_t>(g.bytes(s)));
      address[index(s)] = memory.back().data();
    }
  auto const place = [&](value_id v) { return tensor_ref::place(address[index(g.storage(v))], g.layout(v)); };
  for (auto o : order) {
    if (flow::is_view(g, o)) continue;
    std::vector<tensor_ref> in, results;
    for (auto v : g.inputs(o)) in.push_back(place(v));
    for (auto v : g.outputs(o)) results.push_back(place(v));
    block const workspace(flow::workspace(g, o));
    if (!host_kernel(g.facets(o))) throw error("no kernel for " + std::string(g.facets(o).name));
    host_kernel(g.facets(o))(backend, g.attributes(o), {in, results, workspace.data()});
  }
  for (auto v : g.kept()) out.kept.push_back(dense_bytes(place(v)));
  for (auto v : g.sources()) {
    block b(g.bytes(g.storage(v)));
    std::memcpy(b.data(), address[index(g.storage(v))], static_cast<std::size_t>(b.bytes()));
    out.sources.push_back(std::move(b));
  }
  return out;
}

}  // namespace neap::testing
