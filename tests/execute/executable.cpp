#include <neap/execute/executable.hpp>

#include <neap/ir/verify.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/offload.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/message.hpp"
#include "../support/plain_run.hpp"
#include "../support/random_model.hpp"
#include "../support/random_order.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <csignal>

#include <sys/resource.h>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr std::uint64_t model_count = sanitized ? 12 : 200;

/// Source memory bound to the planned graph's sources; they stand in the same order as the original's.
std::vector<source_binding> bindings(graph const& g, std::vector<block> const& memory) {
  std::vector<source_binding> b;
  for (std::size_t i = 0; i < g.sources().size(); ++i) b.push_back({g.sources()[i], memory[i].data()});
  return b;
}

/// Numbers, not noise: what Adam keeps must not be negative.
std::vector<block> sources_of(graph const& g, std::uint64_t seed) {
  auto all = random_sources(g, seed);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (g.role(g.sources()[i]) == role::state) {
      std::memset(all[i].data(), 0, static_cast<std::size_t>(all[i].bytes()));
      if (g.type(g.sources()[i]).element == dtype::i64)
        *reinterpret_cast<std::int64_t*>(all[i].data()) = 1;  // the step
    }
  return all;
}

/// Runs the plan for some steps beside plain execution; everything must be equal to the last bit.
void compare(graph const& g, plan const& p, std::uint64_t seed, host_backend& backend) {
  auto const verdict = verify_plan(g, p);
  REQUIRE_MESSAGE(verdict.ok(), verdict.message());
  auto plain_memory = sources_of(g, seed);
  auto memory = sources_of(g, seed);
  executable<host_backend> run(p, bindings(p.graph, memory), backend);
  auto const order = reverse_post_order{}(g);
  for (int step = 0; step < 3; ++step) {
    auto plain = run_plainly(g, order, plain_memory, backend);
    run();
    for (std::size_t k = 0; k < g.kept().size(); ++k) {
      REQUIRE(run.value(p.graph.kept()[k]).data != nullptr);
      REQUIRE(dense_bytes(run.value(p.graph.kept()[k])) == plain.kept[k]);
    }
    for (std::size_t i = 0; i < memory.size(); ++i) REQUIRE(memory[i] == plain.sources[i]);
    plain_memory = std::move(plain.sources);
  }
  CHECK(run.high_water_bytes() == p.arena_bytes);
}

constexpr auto moves = zip(rematerialize{} | truncate(16), neap::swap{1e9} | truncate(6));

}  // namespace

TEST_CASE("planned execution equals unplanned execution bit for bit: reordered, recomputed, swapped") {
  host_backend backend(2);
  std::size_t copies = 0, stores = 0;
  for (std::uint64_t seed = 0; seed < model_count; ++seed) {
    CAPTURE(seed);
    auto const g = random_model(seed);
    auto const valid = verify(g);
    REQUIRE_MESSAGE(valid.ok(), valid.message());
    roofline const cost = roofline::host(2);
    // another order, nothing else
    auto const greedy = memory_greedy{}(g, memory_options{});
    compare(g, make_plan(candidate{g, greedy, simulate(g, greedy, cost)}, g), seed, backend);
    // recomputation and swapping, as far as the search gets in a few steps
    search_options o;
    o.memory_at_most = memory_limit::of_original(0.4);
    o.iterations = 200;
    auto const found = optimize(g, moves, o, cost);
    compare(g, found.placed, seed, backend);
    for (auto x : found.placed.graph.ops()) {
      copies += found.placed.graph.origin(x) != x && !found.placed.graph.as<op::load>(x);
      stores += found.placed.graph.as<op::store>(x) != nullptr;
    }
  }
  CHECK(copies > model_count);
  CHECK(stores > model_count / 4);
}

TEST_CASE("and where all that is needed last moves out, by a link so slow that computations wait for it") {
  host_backend backend(2);
  std::size_t waits = 0;
  for (std::uint64_t seed = 0; seed < model_count; ++seed) {
    CAPTURE(seed);
    auto const g = random_model(seed);
    roofline slow = roofline::host(2);
    slow.to_host_bytes_per_second = slow.to_device_bytes_per_second = 1e5;
    auto const order = memory_greedy{}(g, memory_options{});
    candidate const c{g, order, simulate(g, order, slow)};
    auto e = apply_mutation(offload{c.result.peak_bytes / 10 * 6, 1e5}, c);
    if (!e) continue;
    auto const s = simulate(e->graph, e->order, slow);
    for (auto x : e->graph.ops()) waits += e->graph.as<op::wait>(x) != nullptr;
    compare(g, make_plan(candidate{std::move(e->graph), std::move(e->order), s}, g), seed, backend);
  }
  CHECK(waits > model_count / 2);
}

TEST_CASE("the high water that is reported is where the arena was written, and no plan of other alignments is run") {
  host_backend backend(2);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    auto const g = random_model(seed);
    auto const order = memory_greedy{}(g, memory_options{});
    auto const p = make_plan(candidate{g, order, simulate(g, order, roofline::host(2))}, g);
    bytes_t written = 0;  // by a step, on whatever lay there before
    for (int paint : {0x00, 0x5b}) {
      auto memory = sources_of(g, seed);
      executable<host_backend> run(p, bindings(p.graph, memory), backend);
      CHECK(run.high_water_bytes() == 0);
      auto* const arena = const_cast<std::byte*>(run.arena_data());
      std::memset(arena, paint, static_cast<std::size_t>(run.arena_bytes()));
      run();
      for (bytes_t i = written; i < run.arena_bytes(); ++i)
        if (arena[i] != std::byte(paint)) written = i + 1;
      CHECK(run.high_water_bytes() == p.resident_bytes + run.arena_bytes());
    }
    bool is_workspace = false;  // which a kernel need not fill
    for (auto const& s : p.steps)
      is_workspace |= s.workspace_bytes > 0 && s.workspace_offset + s.workspace_bytes == p.arena_bytes;
    if (!is_workspace) CHECK(written > p.arena_bytes - p.resident_bytes - 64);  // but for rounding
  }
  auto const g = random_model(1);
  auto const order = reverse_post_order{}(g);
  memory_options const odd{.alignment = 3};
  auto const p = make_plan(candidate{g, order, simulate(g, order, roofline::host(2), odd)}, g, odd);
  auto memory = sources_of(g, 1);
  CHECK(message_of([&] { executable<host_backend>(p, bindings(p.graph, memory), backend); }) ==
        "executable: the plan aligns buffers to 3 bytes, kernels need a multiple of 64");
}

TEST_CASE("the arena holds all that is not resident, and nothing outside it is touched") {
  host_backend backend(2);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const g = random_model(seed);
    auto const order = memory_greedy{}(g, memory_options{});
    auto p = make_plan(candidate{g, order, simulate(g, order, roofline::host(2))}, g);
    bytes_t const needed = p.arena_bytes - p.resident_bytes;
    p.arena_bytes += 4096;  // a strip behind the arena that must stay as it is
    auto memory = sources_of(g, seed);
    executable<host_backend> run(p, bindings(p.graph, memory), backend);
    auto* const strip = const_cast<std::byte*>(run.arena_data()) + needed;
    std::memset(strip, 0x3c, 4096);
    run();
    bool whole = true;
    for (int i = 0; i < 4096; ++i) whole &= strip[i] == std::byte{0x3c};
    CHECK(whole);
  }
}

TEST_CASE("a failing disk ends the step with one line; the weights are those of the last finished step") {
  host_backend backend(1);
  struct rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  auto const handler = std::signal(SIGXFSZ, SIG_IGN);
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const g = random_model(seed, 32);
    search_options o;
    o.memory_at_most = memory_limit::of_original(0.3);
    o.iterations = 60;
    auto const found = optimize(g, neap::swap{1e9} | truncate(8), o, roofline::host(2));
    auto const& p = found.placed;
    auto memory = sources_of(g, seed);
    executable<host_backend> run(p, bindings(p.graph, memory), backend);
    if (!run.spill()) continue;
    run();
    std::vector<block> before;
    before.reserve(memory.size());
    for (auto const& m : memory) before.push_back(m.clone());
    for (rlim_t room : {rlim_t{0}, rlim_t{4096}, rlim_t{20000}}) {
      struct rlimit small = old;
      small.rlim_cur = room;
      setrlimit(RLIMIT_FSIZE, &small);
      bool thrown = false;
      try {
        run();
      } catch (error const& e) {
        thrown = true;
        CHECK(std::string(e.what()).find("spill file ") == 0);
        CHECK(std::string(e.what()).find("cannot be written") != std::string::npos);
      }
      setrlimit(RLIMIT_FSIZE, &old);
      if (!thrown) break;
      ++failed;
      for (std::size_t i = 0; i < memory.size(); ++i) CHECK(memory[i] == before[i]);
    }
    run();  // and goes on
  }
  std::signal(SIGXFSZ, handler);
  CHECK(failed > 10);
}

TEST_CASE("what cannot run is told when the executable is made") {
  host_backend backend(1);
  auto const g = random_model(1);
  auto const order = reverse_post_order{}(g);
  auto const p = make_plan(candidate{g, order, simulate(g, order, no_cost{})}, g);
  CHECK_THROWS_WITH_AS((executable<host_backend>(p, {}, backend)), doctest::Contains("is bound to no memory"), error);

  graph_editor e{operator_table(standard_operators::facets)};
  auto const x = e.add_source(role::input, {dtype::f32, {4}});
  output_rule const out[] = {{tensor_layout::dense({dtype::f32, {4}})}};
  value_id const in[] = {x};
  e.add_opaque("aten.mystery", {}, in, out);
  graph const h(std::move(e).finish());
  auto const q = make_plan(candidate{h, reverse_post_order{}(h), simulate(h, reverse_post_order{}(h), no_cost{})}, h);
  float data[4] = {};
  source_binding const b[] = {{h.sources()[0], data}};
  CHECK_THROWS_WITH_AS((executable<host_backend>(q, b, backend)), doctest::Contains("aten.mystery has no kernel"),
                       error);
}

TEST_CASE("an arena that the system has no memory for is refused in one line") {
  if (sanitized) return;  // they end a program that asks for so much
  CHECK(message_of([] { arena const a(bytes_t{1} << 60); }) ==
        "arena: the system does not give 1152921504606846976 bytes");
}
