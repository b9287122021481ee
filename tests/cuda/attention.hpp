// Attention, forward and backward, on the interpreter of PTX, and what the host computes from the same operands.
#pragma once

#include "../support/interpreted_device.hpp"

#include <neap/backend/kernels/attention.hpp>
#include <neap/cuda/kernels/attention.cuh>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace neap::testing {

struct attention_case {
  std::int64_t batch = 1, heads = 2, key_heads = 2, queries = 1, keys = 1, depth = 64, value_depth = 64;
  bool causal = false;
  double scale = 0;
  bool gradient_of_sums = false;  // dlse
  bool packed = false;            // q, k, v are slices of one tensor, of rows that heads share: aligned or not
  double range = 1;               // of the operands
};

/// Operands and results; in f64 too, for comparisons.
struct attention_data {
  case_memory memory;
  tensor_ref q, k, v, dy, y, lse, dlse, dq, dk, dv;

  // What is [B, H, T, D] lies in [B, T, H, D] order, as the operator's results do, with `rest` more elements a row.
  tensor_ref rows(dtype t, std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d, bool written, double range) {
    shape const s{b, n, h * d};
    return view(written ? memory.random(t, s, -range, range) : memory.unwritten(t, s), 0, h, n, d);
  }
  static tensor_ref view(tensor_ref const& x, std::int64_t offset, std::int64_t h, std::int64_t n, std::int64_t d) {
    std::int64_t const width = x.dims[2];
    return {static_cast<std::byte*>(x.data) + offset * size_of(x.element),
            x.element,
            {x.dims[0], h, n, d},
            {n * width, d, width, 1}};
  }
  attention_data(attention_case const& c, dtype t, std::uint64_t seed) : memory({0, 0}, random_stream{seed}) {
    if (c.packed && c.heads == c.key_heads && c.depth == c.value_depth && c.queries == c.keys) {
      std::int64_t const width = c.heads * c.depth;
      auto const all = memory.random(t, {c.batch, c.queries, 3 * width}, -c.range, c.range);
      q = view(all, 0, c.heads, c.queries, c.depth);
      k = view(all, width, c.heads, c.queries, c.depth);
      v = view(all, 2 * width, c.heads, c.queries, c.depth);
    } else {
      q = rows(t, c.batch, c.heads, c.queries, c.depth, true, c.range);
      k = rows(t, c.batch, c.key_heads, c.keys, c.depth, true, c.range);
      v = rows(t, c.batch, c.key_heads, c.keys, c.value_depth, true, c.range);
    }
    dy = rows(t, c.batch, c.heads, c.queries, c.value_depth, true, 1);
    y = rows(t, c.batch, c.heads, c.queries, c.value_depth, false, 0);
    shape const numbers{c.batch, c.heads, c.queries};
    lse = memory.unwritten(computed_in(t), numbers);
    if (c.gradient_of_sums) dlse = memory.random(computed_in(t), numbers, -1, 1);
    dq = rows(t, c.batch, c.heads, c.queries, c.depth, false, 0);
    dk = rows(t, c.batch, c.key_heads, c.keys, c.depth, false, 0);
    dv = rows(t, c.batch, c.key_heads, c.keys, c.value_depth, false, 0);
  }
  template <class F>
  void for_each_result(F const& f) const {
    f("y", y), f("lse", lse), f("dq", dq), f("dk", dk), f("dv", dv);
  }
};

/// The host's results, in f64, for operands of any type.
inline std::vector<std::vector<double>> attention_on_host(attention_case const& c, attention_data const& d) {
  auto const wide = [](tensor_ref const& x) {
    neap_test::owned o(dtype::f64, x.data ? x.dims : shape{0});
    if (x.data) neap_test::assign(o, neap_test::values(x));
    return o;
  };
  auto const q = wide(d.q), k = wide(d.k), v = wide(d.v), dy = wide(d.dy), dlse = wide(d.dlse), y = wide(d.y),
             lse = wide(d.lse), dq = wide(d.dq), dk = wide(d.dk), dv = wide(d.dv);
  host_backend host(1);
  attention_options const o{c.causal, c.scale};
  std::vector<std::byte> work(
      static_cast<std::size_t>(std::max(attention_workspace(d.q.dims, d.k.dims, d.v.dims, o, dtype::f64, 1),
                                        attention_gradient_workspace(d.q.dims, d.k.dims, d.v.dims, o, dtype::f64, 1))));
  attention(host, q, k, v, y, lse, o, work.data());
  attention_gradient(host, q, k, v, y, lse, dy, dq, dk, dv, o, work.data(), d.dlse.data ? dlse.ref : tensor_ref{});
  std::vector<std::vector<double>> out;
  for (auto const* x : {&y, &lse, &dq, &dk, &dv}) out.push_back(neap_test::values(*x));
  return out;
}

struct attention_outcome {
  std::string wrong;  // faults, elements that were not written, and results that are not the host's: a line each
  std::uint64_t bank_conflicts = 0;
  std::vector<std::byte> bits;  // of all operands and results
};

/// Runs the case. A result may differ from the host's by `within` of the largest magnitude in its tensor, and at least of 1.
inline attention_outcome attention_on_device(interpreted_module& kernels, attention_case const& c, dtype t,
                                             std::uint64_t seed, double within, bool by_operators = false) {
  attention_data d(c, t, 11);
  auto const expected = attention_on_host(c, d);
  interpreted_device device(kernels, d.memory, seed);
  attention_outcome out;
  attention_options const o{c.causal, c.scale};
  if (by_operators) {
    std::vector<tensor_ref> const in{d.q, d.k, d.v}, results{d.y, d.lse};
    run(device, op::attention{c.causal, c.scale}, kernel_arguments{in, results, nullptr});
    std::vector<tensor_ref> back{d.dy, d.q, d.k, d.v, d.y, d.lse}, slopes{d.dq, d.dk, d.dv};
    if (d.dlse.data) back.push_back(d.dlse);
    run(device, op::attention_grad{c.causal, c.scale}, kernel_arguments{back, slopes, nullptr});
  } else {
    attention(device, d.q, d.k, d.v, d.y, d.lse, o);
    attention_gradient(device, d.q, d.k, d.v, d.y, d.lse, d.dy, d.dq, d.dk, d.dv, o, d.dlse);
  }
  out.wrong = device.faults + device.badly_written();
  std::size_t n = 0;
  d.for_each_result([&](char const* name, tensor_ref const& x) {
    auto const got = neap_test::values(x), &want = expected[n++];
    double most = 1, off = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      most = std::max(most, std::abs(want[i]));
      double const by = std::abs(got[i] - want[i]);
      if (!(by <= off) && off == off) off = by;  // a NaN stays
    }
    if (!(off <= within * most)) out.wrong += std::string(name) + " is off by " + std::to_string(off) + '\n';
  });
  out.bank_conflicts = device.bank_conflicts;
  for (auto const& p : d.memory.places) out.bits.insert(out.bits.end(), p.data(), p.data() + p.bytes);
  return out;
}

}  // namespace neap::testing
