#include <neap/optimize/external.hpp>

#include <neap/ir/verify.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/from_range.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/schedule/incremental.hpp>
#include <neap/schedule/memory_greedy.hpp>

#include "../support/engine_bytes.hpp"
#include "../support/engine_net.hpp"
#include "../support/message.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace neap;

namespace {

double seconds_of_transfer(std::int64_t bytes) { return 1e-5 + 2e-6 * static_cast<double>(bytes); }

/// The engine's own seconds; transfers by a link of its own.
struct engine_cost {
  double operator()(engine::net const& g, op_id o) const { return g.ops[index(o)].seconds; }
  double operator()(op_graph const& g, op_id o) const {
    auto const v = g.as<op::store>(o) ? g.inputs(o)[0] : g.output(o);
    return seconds_of_transfer(g.bytes(g.as<op::store>(o) ? g.storage(v) : g.storage(v)));
  }
};

constexpr auto moves = zip(rematerialize{} | truncate(16), neap::swap{5e5} | truncate(16));

search_options limited(double ratio, std::size_t iterations) {
  search_options o;
  o.memory_at_most = memory_limit::of_original(ratio);
  o.iterations = iterations;
  o.time = time_budget(std::chrono::seconds(60));
  return o;
}

std::string faults(engine::net const& g, engine::truth const& t, external_plan const& p,
                   double (*transfers)(std::int64_t) = nullptr) {
  return engine::plan_check{
      .g = g, .t = t, .p = p, .transfer_seconds = transfers, .fault = {}, .content = {}, .filled = {}}
      .run();
}

std::size_t count(external_plan const& p, external_step::kind_of_step kind) {
  std::size_t n = 0;
  for (auto const& s : p.steps) n += s.kind == kind;
  return n;
}
std::size_t repeats(external_plan const& p) {
  std::size_t n = 0;
  for (auto const& s : p.steps) n += s.copy > 0;
  return n;
}

}  // namespace

TEST_CASE("the image of a graph is a graph, with the same ops, peak and latency") {
  for (std::uint64_t seed = 0; seed < testing::cases(400u); ++seed) {
    CAPTURE(seed);
    engine::truth t;
    auto const g = engine::random_net(seed, t, {.streams = seed % 2 == 1});
    auto const image = image_of(g, [&](op_id o) { return g.ops[index(o)].seconds; });
    auto const valid = verify(image.program);
    REQUIRE_MESSAGE(valid.ok(), valid.message());
    REQUIRE(image.program.op_count() == g.ops.size());
    for (auto o : image.program.ops())
      CHECK(image.program.as<op::external>(o)->id == static_cast<std::int64_t>(index(o)));
    for (auto const& order : {given_order{}(image.program), memory_greedy{}(image.program)})
      for (bool takeover : {false, true}) {
        REQUIRE(check_order(g, order).ok());
        auto const here = simulate(image.program, order, given_latencies{}, {.alignment = 64, .takeover = takeover});
        auto const there = simulate(g, order, given_latencies{}, {.alignment = 64, .takeover = takeover});
        CHECK(here.peak_bytes == there.peak_bytes);
        CHECK(here.bytes_at == there.bytes_at);
        CHECK(here.resident_bytes == there.resident_bytes);
        CHECK(here.latency == there.latency);
      }
  }
}

TEST_CASE("every plan of an external graph is right, at several limits, with and without leave to run ops again") {
  std::size_t again = 0, stored = 0, fits = 0, smaller = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    engine::truth t;
    auto const g = engine::random_net(seed, t, {.least_ops = 10, .max_ops = 40, .may_repeat = seed % 4 != 0});
    for (double ratio : {0.9, 0.7, 0.5}) {
      CAPTURE(ratio);
      auto const found = optimize(g, moves, limited(ratio, 50), engine_cost{});
      auto const fault = faults(g, t, found.placed, seconds_of_transfer);
      REQUIRE_MESSAGE(fault.empty(), fault);
      CHECK(found.fits == (found.placed.arena_bytes <= found.memory_limit_bytes));
      CHECK(found.why_not().empty() == found.fits);
      CHECK(found.placed.peak_bytes <= found.original.peak_bytes);
      CHECK(found.lower_bound_bytes <= found.placed.peak_bytes);
      CHECK(found.memory_limit_bytes == memory_limit::of_original(ratio).resolve(found.original.peak_bytes));
      if (seed % 4 == 0) CHECK(repeats(found.placed) == 0);
      again += repeats(found.placed), stored += count(found.placed, external_step::store);
      fits += found.fits, smaller += found.placed.peak_bytes < found.original.peak_bytes;
    }
  }
  CHECK(again > testing::cases(30));
  CHECK(stored > testing::cases(100));
  CHECK(fits > testing::cases(100));
  CHECK(smaller > testing::cases(300));
}

TEST_CASE("ops that write in place run again with what they overwrite: every byte is that of the plain run") {
  std::size_t again = 0, writers = 0, moved = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    engine::truth t;
    auto const g = engine::random_net(
        seed + 1000, t, {.least_ops = 10, .max_ops = 40, .in_place = 15 + static_cast<engine::number>(seed % 40)});
    engine::byte_engine const engine(g, t);
    auto const plain = engine.plain();
    auto const check = [&](external_plan const& p) {
      auto const fault = faults(g, t, p, seconds_of_transfer);
      REQUIRE_MESSAGE(fault.empty(), fault);
      REQUIRE(engine.planned(p) == plain);
      again += repeats(p), moved += count(p, external_step::store);
      for (auto const& s : p.steps)
        for (auto const& v : s.outputs)
          writers += s.copy > 0 && !g.ops[index(s.op)].view && v.buffer != no_id &&
                     std::any_of(s.inputs.begin(), s.inputs.end(),
                                 [&](external_value const& in) { return in.buffer == v.buffer; });
    };
    for (double ratio : {0.85, 0.6, 0.4}) {
      CAPTURE(ratio);
      check(optimize(g, moves, limited(ratio, 60), engine_cost{}).placed);
      check(optimize(g, rematerialize{}, limited(ratio, 60), engine_cost{}).placed);
    }
    check(optimize(g, neap::swap{5e5}, limited(0.6, 60), engine_cost{}).placed);
  }
  if (testing::cases(300u) == 300u) {
    CHECK(again > 300);
    CHECK(writers > 20);
    CHECK(moved > 100);
  }
}

namespace {

/// Layers forward and back: what each made is read again in turn, the last one first.
engine::net ladder(engine::number depth, bool again) {
  engine::net g;
  auto const value = [&](std::int64_t bytes, bool resident) {
    g.lies_in.push_back(static_cast<engine::number>(g.bytes.size()));
    g.bytes.push_back(bytes), g.resident.push_back(resident), g.swappable.push_back(1);
    return static_cast<engine::number>(g.lies_in.size() - 1);
  };
  auto at = value(1024, true);
  std::vector<engine::number> made;
  auto const op = [&](std::vector<engine::number> in) {
    engine::net::op x;
    x.in = std::move(in), x.out = {value(1024, false)}, x.seconds = 1e-3, x.again = again;
    at = x.out[0];
    g.ops.push_back(std::move(x));
  };
  for (engine::number i = 0; i < depth; ++i) op({at}), made.push_back(at);
  for (auto i = depth; i-- > 0;) op({at, made[i]});
  g.kept = {at};
  return g;
}

}  // namespace

namespace {

/// A training step of an engine: layers of a producer and writes in place on what it makes, some through a view of a part,
/// some with a reader of what was there before; then backward, layer by layer, with an update of each weight.
engine::net in_place_step(std::uint64_t seed, engine::truth& t) {
  std::mt19937_64 draw(seed * 31 + 7);
  auto const chance = [&](int percent) { return static_cast<int>(draw() % 100) < percent; };
  engine::net g;
  auto const storage = [&](std::int64_t bytes, bool resident) {
    g.bytes.push_back(bytes), g.resident.push_back(resident), g.swappable.push_back(1);
    return static_cast<engine::number>(g.bytes.size() - 1);
  };
  auto const value = [&](engine::number s, bool is_new, engine::number root = 0) {
    auto const v = static_cast<engine::number>(g.lies_in.size());
    g.lies_in.push_back(s), t.root.push_back(is_new ? v : t.root[root]);
    return v;
  };
  auto const op = [&](std::vector<engine::number> in, engine::number out, bool view = false) {
    engine::net::op x;
    x.in = std::move(in), x.out = {out}, x.again = true, x.view = view, x.seconds = view ? 0 : 1e-3;
    g.ops.push_back(std::move(x));
    return out;
  };
  auto const fresh = [&](std::vector<engine::number> in, std::int64_t bytes) {
    return op(std::move(in), value(storage(bytes, false), true));
  };
  auto const write = [&](std::vector<engine::number> in) {
    auto const s = g.lies_in[in[0]];
    return op(std::move(in), value(s, true));
  };
  auto const view = [&](engine::number of) { return op({of}, value(g.lies_in[of], false, of), true); };

  std::size_t const layers = 6 + draw() % 8;
  std::vector<engine::number> weight, made, extra;
  auto x = value(storage(256, true), true);
  for (std::size_t i = 0; i < layers; ++i) weight.push_back(value(storage(16, true), true));
  for (std::size_t i = 0; i < layers; ++i) {
    auto y = fresh({x, weight[i]}, 1024);
    extra.push_back(engine::none);
    for (auto n = draw() % 4; n-- > 0;) {
      if (chance(30)) extra.back() = fresh({y}, 8);  // a reader of what is there before
      if (chance(40)) y = write({view(y), weight[i]}), y = chance(50) ? view(y) : y;
      else y = write({y});
    }
    made.push_back(x = y);
  }
  auto d = fresh({x}, 512);
  for (auto i = layers; i-- > 0;) {
    std::vector<engine::number> in{d, made[i]};
    if (extra[i] != engine::none) in.push_back(extra[i]);
    auto const slope = fresh(in, 16);
    d = fresh({d, made[i], weight[i]}, 512);
    if (chance(50)) d = write({d});
    g.kept.push_back(write({weight[i], slope}));
  }
  g.kept.push_back(d);
  return g;
}

}  // namespace

TEST_CASE("layers that write in place are recomputed in a training step with updates: less memory, the same bytes") {
  std::size_t writers = 0, fits = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) {
    CAPTURE(seed);
    engine::truth t;
    auto const g = in_place_step(seed, t);
    engine::byte_engine const engine(g, t);
    auto const plain = engine.plain();
    auto const check = [&](auto const& found) {
      auto const fault = faults(g, t, found.placed, seconds_of_transfer);
      REQUIRE_MESSAGE(fault.empty(), fault);
      REQUIRE(engine.planned(found.placed) == plain);
      for (auto const& s : found.placed.steps)
        writers += s.copy > 0 && s.inputs[0].buffer == s.outputs[0].buffer && !g.ops[index(s.op)].view;
    };
    for (double ratio : {0.75, 0.6, 0.5}) {
      CAPTURE(ratio);
      auto const found = optimize(g, rematerialize{}, limited(ratio, 150), engine_cost{});
      check(found), fits += found.fits;
    }
    check(optimize(g, moves, limited(0.5, 100), engine_cost{}));
    check(optimize(g, neap::swap{5e6}, limited(0.5, 100), engine_cost{}));
  }
  CHECK(writers > testing::cases(200));
  CHECK(fits > testing::cases(100));
}

namespace {

/// Layers that fill a buffer in parts and read it whole, or part by part; and back.
engine::net parts_step(std::uint64_t seed, engine::truth& t) {
  std::mt19937_64 draw(seed * 131 + 3);
  auto const chance = [&](int percent) { return static_cast<int>(draw() % 100) < percent; };
  engine::net g;
  auto const storage = [&](std::int64_t bytes, bool resident) {
    g.bytes.push_back(bytes), g.resident.push_back(resident), g.swappable.push_back(1);
    return static_cast<engine::number>(g.bytes.size() - 1);
  };
  auto const value = [&](engine::number s) {
    auto const v = static_cast<engine::number>(g.lies_in.size());
    g.lies_in.push_back(s), t.root.push_back(v);
    return v;
  };
  auto const op = [&](std::vector<engine::number> in, engine::number out, bool view = false) {
    engine::net::op x;
    x.in = std::move(in), x.out = {out}, x.again = true, x.view = view, x.seconds = view ? 0 : 1e-3;
    g.ops.push_back(std::move(x));
    return out;
  };
  auto x = value(storage(256, true));
  std::vector<std::vector<engine::number>> made;
  for (std::size_t layer = 5 + draw() % 6; layer-- > 0;) {
    auto const s = storage(1024, false);
    std::vector<engine::number> parts;
    std::int64_t const step = chance(50) ? 256 : 512;
    for (std::int64_t at = 0; at < 1024; at += step) {
      auto const v = value(s);
      g.part[v] = {at, at + step};
      parts.push_back(op(at > 0 && chance(30) ? std::vector{x, x} : std::vector{x}, v));
    }
    if (chance(40)) {  // in place on one part, once all are there
      auto& p = parts[draw() % parts.size()];
      auto const was = p;
      p = value(s);
      g.part[p] = g.part[was];
      op({was}, p);
    }
    auto const whole = value(s);
    t.root[whole] = parts.back(), g.part[whole] = {0, 1024};
    op(parts, whole, true);
    made.push_back(chance(50) ? std::vector{whole} : parts);
    x = op({whole}, value(storage(128, false)));
  }
  auto d = x;
  while (!made.empty()) {
    made.back().push_back(d);
    d = op(made.back(), value(storage(128, false)));
    made.pop_back();
  }
  g.kept = {d};
  return g;
}

}  // namespace

TEST_CASE("ops that fill parts of one buffer: no copy, recomputed together, the bytes of the plain run") {
  std::size_t again = 0, fits = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) {
    CAPTURE(seed);
    engine::truth t;
    auto const g = parts_step(seed, t);
    engine::byte_engine const engine(g, t);
    auto const plain = engine.plain();
    for (double ratio : {1.0, 0.7, 0.5}) {
      CAPTURE(ratio);
      auto const found = optimize(g, rematerialize{}, limited(ratio, 100), engine_cost{});
      REQUIRE(engine.planned(found.placed) == plain);
      again += repeats(found.placed), fits += found.fits;
      auto const moved = optimize(g, moves, limited(ratio, 60), engine_cost{});
      REQUIRE(engine.planned(moved.placed) == plain);
    }
  }
  CHECK(again > testing::cases(100));
  CHECK(fits > testing::cases(100));
}

TEST_CASE("parts of one buffer that overlap, or are read before they are there, are refused with the place") {
  auto const parts = [](std::int64_t second, bool early) {
    engine::net g;
    g.bytes = {64, 128, 64}, g.resident = {1, 0, 0}, g.swappable = {1, 1, 1};
    g.lies_in = {0, 1, 1, 1, 2};
    g.part[1] = {0, 64}, g.part[2] = {second, 128};
    g.ops.resize(4);
    g.ops[0].in = {0}, g.ops[0].out = {1};
    g.ops[1].in = {0}, g.ops[1].out = {2};
    g.ops[2].in = {1, 2}, g.ops[2].out = {3}, g.ops[2].view = true;
    g.ops[3].in = {3}, g.ops[3].out = {4};
    if (early) g.ops[2].in = {1}, std::rotate(g.ops.begin() + 1, g.ops.begin() + 2, g.ops.end());
    g.kept = {4};
    return testing::message_of([&] { optimize(g, rematerialize{}, limited(1, 1), engine_cost{}); });
  };
  CHECK(parts(64, false) == "no error");
  CHECK(parts(60, false) == "external graph: op 0 and op 1 both write bytes [60, 64) of storage 1");
  CHECK(parts(64, true) == "external graph: op 2 reads value 3 before op 3 writes bytes [64, 128) of it");
}

TEST_CASE("a producer and the op that writes on its result run again as if the result were fresh") {
  for (engine::number const writes : {0u, 1u, 3u}) {
    CAPTURE(writes);
    engine::net g = ladder(20, true);
    std::vector<engine::net::op> all;
    std::vector<engine::number> newest(g.lies_in.size());
    for (engine::number v = 0; v < newest.size(); ++v) newest[v] = v;
    for (std::size_t k = 0; k < g.ops.size(); ++k) {
      auto x = g.ops[k];
      for (auto& v : x.in) v = newest[v];
      auto const made = x.out[0];
      all.push_back(std::move(x));
      for (engine::number n = 0; k < 20 && n < writes; ++n) {  // bias_add_, relu_, dropout_
        engine::net::op w;
        w.in = {newest[made]}, w.seconds = 1e-3, w.again = true;
        w.out = {newest[made] = static_cast<engine::number>(g.lies_in.size())};
        g.lies_in.push_back(g.lies_in[made]);
        all.push_back(std::move(w));
      }
    }
    g.ops = std::move(all);
    engine::truth t;
    for (engine::number v = 0; v < g.lies_in.size(); ++v) t.root.push_back(v);
    auto const found = optimize(g, rematerialize{}, limited(0.45, 400), engine_cost{});
    CHECK(found.fits);
    CHECK(faults(g, t, found.placed) == "");
    engine::byte_engine const engine(g, t);
    CHECK(engine.planned(found.placed) == engine.plain());
    std::size_t rerun_writers = 0;
    for (auto const& s : found.placed.steps) rerun_writers += s.copy > 0 && s.inputs[0].buffer == s.outputs[0].buffer;
    CHECK((rerun_writers > 0) == (writes > 0));
  }
}

TEST_CASE("recomputation alone moves nothing; swapping alone repeats views only; memory is counted as asked") {
  for (std::uint64_t seed = 0; seed < testing::cases(100u); ++seed) {
    CAPTURE(seed);
    engine::truth t;
    auto const g = engine::random_net(seed, t);
    auto const only = optimize(g, rematerialize{}, limited(0.6, 40), engine_cost{});
    CHECK(faults(g, t, only.placed) == "");
    CHECK(count(only.placed, external_step::store) + count(only.placed, external_step::load) == 0);
    auto const swaps = optimize(g, neap::swap{5e5}, limited(0.6, 40), engine_cost{}, memory_options{16, false});
    CHECK(faults(g, t, swaps.placed, seconds_of_transfer) == "");
    CHECK(swaps.placed.options == memory_options{16, false});
    for (auto const& b : swaps.placed.buffers) CHECK(b.takes_over == no_id);
    for (auto const& s : swaps.placed.steps)
      if (s.copy > 0) CHECK(g.ops[index(s.op)].view);
    auto const quick = optimize(g, moves, latency_limit::of_original(1.2), engine_cost{}, limited(1, 60));
    CHECK(faults(g, t, quick.placed, seconds_of_transfer) == "");
    CHECK(quick.placed.latency <= 1.2 * quick.original.latency * (1 + 1e-9));
  }
}

TEST_CASE("a ladder fits where its ops may run again, and not where they may not; limits in bytes and in ratios") {
  auto const free = ladder(24, true), stiff = ladder(24, false);
  auto const few = limited(1, 800);
  auto const a = optimize(free, rematerialize{}, memory_limit::of_original(0.5), few);
  CHECK(a.fits);
  CHECK(a.placed.arena_bytes <= a.original.peak_bytes / 2);
  CHECK(repeats(a.placed) > 0);
  CHECK(!a.steps.empty());
  CHECK(a.steps.front().how.starts_with("recompute "));
  CHECK(a.original.latency == doctest::Approx(48e-3));  // the graph's own seconds
  auto const b = optimize(free, rematerialize{}, few, memory_limit(a.original.peak_bytes / 2));
  CHECK(b.placed == a.placed);
  auto const c = optimize(stiff, rematerialize{}, few, memory_limit::of_original(0.5));
  CHECK(!c.fits);
  CHECK(repeats(c.placed) == 0);
  CHECK(c.why_not().starts_with("no plan fits: the limit is 13312 bytes, the best plan found needs "));
  auto const d = optimize(stiff, neap::swap{}, few, memory_limit::of_original(0.5));
  CHECK(d.fits);
  CHECK(count(d.placed, external_step::load) > 0);
  auto const twice = [](engine::net const&, op_id) { return 2e-3; };
  CHECK(optimize(free, rematerialize{}, limited(0.9, 20), twice).original.latency == doctest::Approx(96e-3));
}

TEST_CASE("the check of plans finds what is wrong with them") {
  std::size_t found[8] = {}, tried[8] = {};
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) {
    engine::truth t;
    auto const g = engine::random_net(seed, t);
    auto const right = optimize(g, moves, limited(0.6, 30), engine_cost{}).placed;
    REQUIRE(faults(g, t, right) == "");
    auto const plant = [&](int kind, auto const& change) {
      auto p = right;
      if (!change(p) || p == right) return;
      ++tried[kind], found[kind] += faults(g, t, p, seconds_of_transfer) != "";
    };
    for (std::size_t i = 0; i < right.steps.size(); ++i) {
      plant(0, [&](auto& p) { return p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(i)), true; });
      plant(1, [&](auto& p) { return p.steps[i].end += 1e-3, true; });
      plant(2, [&](auto& p) { return ++p.steps[i].copy, p.steps[i].kind == external_step::compute; });
      plant(3, [&](auto& p) {  // reads another instance
        auto& in = p.steps[i].inputs;
        if (in.empty() || in[0].buffer == no_id || p.buffers.size() < 2) return false;
        in[0].buffer = (in[0].buffer + 1) % static_cast<std::uint32_t>(p.buffers.size());
        return true;
      });
    }
    for (std::size_t i = 0; i < right.buffers.size(); ++i) {
      plant(4, [&](auto& p) { return p.buffers[i].offset += 64, true; });
      plant(5, [&](auto& p) { return p.buffers[i].last > p.buffers[i].first && p.buffers[i].last--; });
      plant(6, [&](auto& p) { return p.buffers.erase(p.buffers.begin() + static_cast<std::ptrdiff_t>(i)), true; });
    }
    plant(7, [&](auto& p) { return p.arena_bytes += 64, true; });
    plant(7, [&](auto& p) { return p.peak_bytes -= 64, true; });
  }
  for (int kind = 0; kind < 8; ++kind) {
    CAPTURE(kind);
    CHECK(tried[kind] > testing::cases(50u));
    // A buffer may lie somewhere else, or end later than its last reader, without harm.
    CHECK(static_cast<double>(found[kind]) >= (kind == 4 || kind == 5 ? 0.5 : 1.0) * static_cast<double>(tried[kind]));
  }
}

TEST_CASE("costs of ops and of transfers may be said apart") {
  auto const g = ladder(16, false);
  auto const link = [](op_graph const&, op_id) { return 5e-4; };
  auto const op = [](engine::net const&, op_id) { return 2e-3; };
  for (bool own : {true, false}) {
    auto const found = own ? optimize(g, neap::swap{}, limited(0.6, 100), link)
                           : optimize(g, neap::swap{}, op, limited(0.6, 100), link);
    CHECK(count(found.placed, external_step::store) > 0);
    for (auto const& s : found.placed.steps) {
      bool const moves_bytes = s.kind != external_step::compute;
      CHECK(s.end - s.start == doctest::Approx(moves_bytes ? 5e-4 : own ? 1e-3 : 2e-3));
    }
  }
}

TEST_CASE("a graph without ops, and one of ops without values, are planned as they are") {
  engine::truth t;
  engine::net none;
  auto const a = optimize(none, rematerialize{}, memory_limit(0));
  CHECK(a.fits);
  CHECK(a.placed.steps.empty());
  engine::net bare;
  bare.ops.resize(3);
  bare.ops[0].after = {2};
  auto const b = optimize(bare, moves, memory_limit(0));
  CHECK(b.fits);
  CHECK(faults(bare, t, b.placed) == "");
}

TEST_CASE("schedules, schedulers and mutators of one's own go with external graphs") {
  auto const g = ladder(8, true);
  schedule order;
  for (engine::number i = 0; i < 16; ++i) order.order.push_back(op_id{i});
  int calls = 0;
  auto const mine = [&](op_graph const& x) {
    ++calls;
    return reverse_post_order{}(x);
  };
  auto const found = optimize(g, rematerialize{}, mine, limited(0.7, 100), order);
  CHECK(calls > 1);
  engine::truth t;
  for (engine::number v = 0; v < g.lies_in.size(); ++v) t.root.push_back(v);
  CHECK(faults(g, t, found.placed) == "");

  // The user's own: runs op 3 again before its last reader, whatever that costs.
  struct repeat_three {
    std::uint32_t resume = 0;
    bool operator==(repeat_three const&) const = default;
    std::optional<edited> apply(candidate const& c) const {
      for (auto o : c.graph.ops()) {
        auto const* x = c.graph.as<op::external>(o);
        if (!x || x->id != 3 || c.graph.uses(c.graph.output(o)).size() < 2) continue;
        graph_editor edit{c.graph};
        auto const copy = edit.clone(o);
        auto const late = c.graph.uses(c.graph.output(o)).back().op;
        op_id const readers[] = {late};
        edit.replace_uses(c.graph.output(o), edit.output(copy), readers);
        op_graph out(std::move(edit).finish());
        auto s = complete_order(out, c.order);
        return edited{std::move(out), std::move(s)};
      }
      return std::nullopt;
    }
    std::string describe(candidate const&) const { return "op 3 again"; }
  };
  auto const own = from_range([](candidate const&) { return std::vector<repeat_three>{{}}; });
  auto const with = optimize(g, chain(own, rematerialize{}), limited(0.4, 300));
  CHECK(faults(g, t, with.placed) == "");

  auto backwards = order;
  std::reverse(backwards.order.begin(), backwards.order.end());
  CHECK(testing::message_of([&] { optimize(g, rematerialize{}, backwards); }).starts_with("optimize: schedule: op "));
  auto const bad = [](op_graph const&) { return schedule{}; };
  CHECK(testing::message_of([&] { optimize(g, rematerialize{}, bad); }) ==
        "optimize: the scheduler's order is wrong: schedule: 0 positions for 16 ops");
}

TEST_CASE("graphs that make no sense are refused with the place") {
  auto const message = [](auto const& change) {
    auto g = ladder(2, true);  // ops 0 to 3; value 0 is given, op i makes value i + 1
    change(g);
    return testing::message_of([&] { optimize(g, rematerialize{}, memory_limit(1)); });
  };
  CHECK(message([](auto&) {}) == "no error");
  CHECK(message([](auto& g) { g.ops[1].in[0] = 9; }) == "external graph: op 1 reads value 9, and there are 5");
  CHECK(message([](auto& g) { g.ops[1].out[0] = 9; }) == "external graph: op 1 makes value 9, and there are 5");
  CHECK(message([](auto& g) { g.ops[1].out[0] = 1; }) == "external graph: value 1 is made by op 0 and by op 1");
  CHECK(message([](auto& g) { g.ops[1].out = {2, 2}; }) == "external graph: value 2 is made by op 1, twice");
  CHECK(message([](auto& g) { g.lies_in[2] = 7; }) == "external graph: value 2 lies in storage 7, and there are 5");
  CHECK(message([](auto& g) { g.bytes[2] = -5; }) == "external graph: storage 2 has -5 bytes");
  CHECK(
      message([](auto& g) { g.bytes[2] = g.bytes[3] = INT64_MAX / 5; }).starts_with("external graph: storage 3 has "));
  CHECK(message([](auto& g) { g.ops[2].workspace = -1; }) == "external graph: op 2 needs a workspace of -1 bytes");
  CHECK(message([](auto& g) { g.ops[2].seconds = std::nan(""); }) == "external graph: op 2 takes nan seconds");
  CHECK(message([](auto& g) { g.ops[2].after = {8}; }) ==
        "external graph: op 2 must run after op 8, which is none of the graph");
  CHECK(message([](auto& g) { g.ops[2].after = {2}; }) == "external graph: op 2 must run after itself");
  CHECK(message([](auto& g) { g.kept = {12}; }) == "external graph: value 12 is kept, and there are 5");
  CHECK(message([](auto& g) { g.ops[0].in = {4}; }).find(" waits for itself, by way of op ") != std::string::npos);
  CHECK(message([](auto& g) {
          g.lies_in[3] = 1;
          g.ops[2].in = {2};
        }) == "external graph: op 2 puts value 3 on storage 1, which op 0 makes and op 2 does not read");
  // op 2 overwrites what op 1 made; op 3 reads both: the old bytes after they are gone
  CHECK(message([](auto& g) {
          g.lies_in[3] = 2, g.ops[3].in[1] = 2;
        }).ends_with(": a reader of a value runs before the op that overwrites it"));
  CHECK(message([](auto& g) {
          g.lies_in[3] = g.lies_in[2] = 1;
          g.ops[2].in = {1};
        }) == "external graph: op 1 and op 2 both overwrite one version of storage 1");
}

TEST_CASE("what is given and overwritten unread counts from the beginning, for the owner's graph and for its image") {
  engine::net g;  // op 0 makes 1 from what is given; op 1 overwrites that with 2; op 2 reads both
  g.lies_in = {0, 1, 0, 2};
  g.bytes = {64, 64, 64};
  g.resident = {0, 0, 0};
  g.swappable = {1, 1, 1};
  g.ops.resize(3);
  g.ops[0].in = {0}, g.ops[0].out = {1};
  g.ops[1].out = {2}, g.ops[1].after = {0};
  g.ops[2].in = {1, 2}, g.ops[2].out = {3};
  g.kept = {3};
  auto const found = optimize(g, rematerialize{}, limited(1, 5), engine_cost{});
  auto const order = given_order{}(g);
  auto const s = simulate(g, order, engine_cost{});
  CHECK(s.peak_bytes == 192);
  CHECK(found.original.peak_bytes == 192);
  CHECK(found.placed.peak_bytes == 192);
  for (auto const& b : make_plan(g, order, s).buffers)
    if (b.storage == storage_id{0}) CHECK((b.first == 0 && b.last == 2));
}

TEST_CASE("an output whose sibling may not be put into an input's place is put there by nobody") {
  engine::net g;  // op 0 makes 1 and 2 on one storage
  g.lies_in = {0, 1, 1};
  g.bytes = {64, 64};
  g.resident = {0, 0};
  g.swappable = {1, 1};
  g.ops.emplace_back();
  g.ops[0].in = {0}, g.ops[0].out = {1, 2}, g.ops[0].takeovers = {{0, 1}};
  g.kept = {1, 2};
  auto const found = optimize(g, rematerialize{}, limited(1, 5), engine_cost{});
  CHECK(found.original.peak_bytes == 128);
  CHECK(found.fits);
}
