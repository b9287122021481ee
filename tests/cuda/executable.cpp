// Planned steps on a simulated device, by the host's kernels: the host's bits,
// whatever order the device takes.
#include <neap/cuda/executable.hpp>

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

#include "../support/device/simulated_device.hpp"
#include "../support/message.hpp"
#include "../support/plain_run.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr std::uint64_t model_count = 200;
using on_host = executable<host_backend>;
using on_device = executable<cuda_backend>;

std::vector<source_binding> bindings(graph const& g, std::vector<block> const& memory) {
  std::vector<source_binding> b;
  for (std::size_t i = 0; i < g.sources().size(); ++i) b.push_back({g.sources()[i], memory[i].data()});
  return b;
}
/// Numbers; what an optimizer keeps is 0 at first, the step 1.
std::vector<block> sources_of(graph const& g, std::uint64_t seed) {
  auto all = random_sources(g, seed);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (g.role(g.sources()[i]) == role::state) {
      std::memset(all[i].data(), 0, static_cast<std::size_t>(all[i].bytes()));
      if (g.type(g.sources()[i]).element == dtype::i64) *reinterpret_cast<std::int64_t*>(all[i].data()) = 1;
    }
  return all;
}

/// All kept values and sources after some steps.
template <class Backend>
std::vector<block> results(plan const& p, std::uint64_t seed, Backend& backend, bool captured = true) {
  auto memory = sources_of(p.graph, seed);
  executable<Backend> run(p, bindings(p.graph, memory), backend, {.graph = captured});
  std::vector<block> all;
  for (int step = 0; step < 2; ++step) {
    run();
    for (auto v : p.graph.kept()) all.push_back(dense_bytes(run.value(v)));
  }
  CHECK(run.high_water_bytes() == p.arena_bytes);
  if constexpr (std::is_same_v<Backend, cuda_backend>) {
    CHECK(run.device_bytes() == p.arena_bytes);
    CHECK(run.is_captured() == captured);
  }
  for (auto& m : memory) all.push_back(std::move(m));
  return all;
}

std::string problems() { return simulated_device::faults() + simulated_device::races(); }

void compare(plan const& p, std::uint64_t seed) {
  host_backend host(1);
  auto const expected = results(p, seed, host);
  for (bool const captured : {true, false}) {
    CAPTURE(captured);
    simulated_device::reset(2 * seed + captured);
    cuda_backend device;
    CHECK(results(p, seed, device, captured) == expected);
    CHECK(problems() == "");
  }
}

plan with_moves(graph const& g, double ratio) {
  search_options o;
  o.memory_at_most = memory_limit::of_original(ratio);
  o.iterations = 100;
  constexpr auto moves = zip(rematerialize{} | truncate(16), neap::swap{1e9} | truncate(6));
  return optimize(g, moves, o, roofline::host(2)).placed;
}
/// All that can be moves out, over a link so slow that computations wait for
/// it.
std::optional<plan> with_slow_link(graph const& g) {
  roofline slow = roofline::host(2);
  slow.to_host_bytes_per_second = slow.to_device_bytes_per_second = 1e5;
  auto const order = memory_greedy{}(g, memory_options{});
  candidate const c{g, order, simulate(g, order, slow)};
  auto e = apply_mutation(offload{c.result.peak_bytes / 10 * 6, 1e5}, c);
  if (!e) return std::nullopt;
  auto const s = simulate(e->graph, e->order, slow);
  return make_plan(candidate{std::move(e->graph), std::move(e->order), s}, g);
}

}  // namespace

TEST_CASE(
    "a planned step on a device has the host's bits: captured or not, "
    "recomputed, swapped") {
  std::size_t stores = 0, copies = 0;
  for (std::uint64_t seed = 0; seed < model_count; ++seed) {
    CAPTURE(seed);
    auto const g = random_model(seed, 16);
    auto const order = memory_greedy{}(g, memory_options{});
    compare(make_plan(candidate{g, order, simulate(g, order, roofline::host(2))}, g), seed);
    if (seed % 4 == 0) {
      auto const p = with_moves(g, 0.5);
      compare(p, seed);
      for (auto o : p.graph.ops()) {
        stores += p.graph.as<op::store>(o) != nullptr;
        copies += p.graph.origin(o) != o && !p.graph.as<op::load>(o);
      }
    }
    if (auto const p = with_slow_link(g)) {
      compare(*p, seed);
      stores += !p->waits.empty();
    }
  }
  CHECK(stores > model_count / 2);
  CHECK(copies > model_count / 8);
}

TEST_CASE("a wait that is left out is a race, or was needed by nothing") {
  std::size_t waits = 0, caught = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const whole = with_slow_link(random_model(seed, 12));
    if (!whole) continue;
    host_backend host(1);
    auto const expected = results(*whole, seed, host);
    for (std::size_t w = 0; w < whole->waits.size(); ++w) {
      CAPTURE(seed);
      CAPTURE(w);
      auto p = *whole;
      p.waits.erase(p.waits.begin() + static_cast<std::ptrdiff_t>(w));
      ++waits;
      for (bool const captured : {true, false}) {
        bool found = false;
        for (std::uint64_t order = 1; order <= 2 && !found; ++order) {
          simulated_device::reset(order);
          try {
            cuda_backend device;
            auto const got = results(p, seed, device, captured);
            found = problems() != "";
            if (!found) CHECK(got == expected);
          } catch (error const&) { found = true; }  // a capture that is not joined
        }
        caught += found;
      }
    }
  }
  MESSAGE(waits << " waits, " << caught << " of " << 2 * waits << " runs without one are caught");
  CHECK(waits > 40);
  CHECK(caught > waits);
}

TEST_CASE("nothing is allocated in a step, and a captured step is one launch") {
  simulated_device::reset(3);
  auto const p = *with_slow_link(random_model(3, 16));
  auto memory = sources_of(p.graph, 3);
  cuda_backend device;
  on_device run(p, bindings(p.graph, memory), device);
  run();
  auto const before = simulated_device::counts();
  auto const launches = simulated_device::calls("launch");
  for (int i = 0; i < 3; ++i) run();
  auto const after = simulated_device::counts();
  CHECK(after.graph_launches == before.graph_launches + 3);
  CHECK(simulated_device::calls("launch") == launches);
  CHECK(after.memory == before.memory);
  CHECK(after.peak_memory == before.peak_memory);
  CHECK(after.pinned == before.pinned);
  CHECK(after.executable_graphs == 1);
  CHECK(problems() == "");
}

TEST_CASE(
    "what the device refuses is one line that names the op, and "
    "residents are as before the step") {
  auto const p = *with_slow_link(random_model(2, 12));
  struct planted {
    char const* function;
    bool captured;
  };
  for (auto const [function, captured] : {planted{"cudaMemcpyAsync", true},
                                          {"cudaMemcpyAsync", false},
                                          {"cudaEventRecord", true},
                                          {"cudaEventRecord", false},
                                          {"cudaStreamWaitEvent", true},
                                          {"cudaStreamBeginCapture", true},
                                          {"cudaStreamEndCapture", true},
                                          {"cudaGraphInstantiate", true},
                                          {"cudaGraphLaunch", true}}) {
    CAPTURE(function);
    CAPTURE(captured);
    simulated_device::reset(5);
    auto memory = sources_of(p.graph, 2);
    auto const before = sources_of(p.graph, 2);
    host_backend host(1);
    cuda_backend device;
    on_device run(p, bindings(p.graph, memory), device, {.graph = captured});
    simulated_device::fail(function,
                           3 - 2 * std::string_view(function).starts_with("cudaGraph") -
                               2 * std::string_view(function).starts_with("cudaStreamB") -
                               2 * std::string_view(function).starts_with("cudaStreamE"),
                           cudaErrorInvalidValue);
    auto const line = message_of([&] { run(); });
    CAPTURE(line);
    CHECK(line.find("invalid argument") != std::string::npos);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(memory == before);
    // and the next step is the first
    auto again = sources_of(p.graph, 2);
    on_host beside(p, bindings(p.graph, again), host);
    beside(), run();
    CHECK(memory == again);
    CHECK(problems() == "");
  }
}

TEST_CASE("a device with too little memory is refused at once, with a limit to plan within") {
  auto const g = random_model(4, 16);
  auto const order = memory_greedy{}(g, memory_options{});
  auto const p = make_plan(candidate{g, order, simulate(g, order, roofline::host(2))}, g);
  auto memory = sources_of(g, 4);
  bytes_t scratch = 0;  // of products of matrices
  for (auto o : g.ops())
    if (g.as<op::matmul>(o)) scratch = std::max(scratch, g.type(g.output(o)).bytes());
  std::string const more = scratch > 0 ? ", and its kernels " + std::to_string(scratch) + " more," : "";
  device_options few;
  few.memory = static_cast<std::size_t>(p.arena_bytes + scratch - 64);
  simulated_device::reset(1, few);
  {
    cuda_backend device;
    auto const line = message_of([&] { on_device(p, bindings(p.graph, memory), device); });
    CAPTURE(line);
    CHECK(line.starts_with("executable: the plan needs " + std::to_string(p.arena_bytes) + " bytes" + more +
                           " on the device ("));
    CHECK(line.find(std::to_string(few.memory) + " are free: plan within memory_limit{" +
                    std::to_string(p.arena_bytes - 64) + "}") != std::string::npos);
  }
  few.memory = 64;
  simulated_device::reset(1, few);
  {
    cuda_backend device;
    auto const line = message_of([&] { on_device(p, bindings(p.graph, memory), device); });
    CAPTURE(line);
    CHECK(line.find("no plan of this step fits, the least is " + std::to_string(p.lower_bound_bytes)) !=
          std::string::npos);
  }
  few.devices = 0;
  simulated_device::reset(1, few);
  CHECK(message_of([] { cuda_backend device; }).find("no GPU to be used: the driver finds no device") !=
        std::string::npos);
  simulated_device::reset();
}

TEST_CASE("a fault of the device ends the step with one line") {
  auto const p = *with_slow_link(random_model(2, 12));
  for (bool const captured : {true, false}) {
    CAPTURE(captured);
    simulated_device::reset(5);
    auto memory = sources_of(p.graph, 2);
    auto const before = sources_of(p.graph, 2);
    cuda_backend device;
    {
      on_device run(p, bindings(p.graph, memory), device, {.graph = captured});
      simulated_device::fail_execution(device_work::copy_to_host, 1, cudaErrorIllegalAddress);
      auto const line = message_of([&] { run(); });
      CAPTURE(line);
      CHECK(line.find("an illegal memory access") != std::string::npos);
      CHECK(memory == before);
    }
  }
  simulated_device::reset();
}
