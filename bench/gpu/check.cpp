// What a GPU is checked for; bench/gpu/check.sh runs the parts one after another. One CSV row a case on stdout; exit status 0
// if every row is right, 1 if one is not, 2 if there is no GPU to be used.
//
//   gpu_check record FILE       on the host: results of all operators, written to FILE
//   gpu_check operators FILE    the same operators on the GPU, compared with FILE: f32 to 1e-5 of the largest element,
//                               16 bits to their rounding
//   gpu_check memory [SIZE]     planned bytes against measured ones, of trainers at limits 1.0, 0.6 and 0.4
//   gpu_check bits [SIZE]       a step twice, captured and not, recomputed, swapped: the same losses and weights to the bit
//   gpu_check toys              a step of each toy model, captured and not, with swaps: for a sanitizer
//   gpu_check swaps [SIZE]      simulated and measured times of steps, and the share of swaps that is hidden
//   gpu_check bandwidth [SIZE]  kernels that memory bounds, beside the copy bandwidth
//   gpu_check steps [SIZE]      times of steps without a limit and at 0.5, plain and with fused rows
//   gpu_check compiled [SIZE]   a compiled training loop beside the trainer: the same bits, times of calls
//   gpu_check properties        what the runtime states of the device
//   gpu_check library_properties FILE    what cuDNN states of it, written to FILE
//
// SIZE: models of check_models.hpp, toys, small or full. With libgpu_libraries.so (libraries.hpp), cuBLASLt's products and
// cuDNN's convolutions and attention take the place of our own.
#include "check_measures.hpp"
#include "check_models.hpp"
#include "libraries.hpp"
#include "operator_cases.hpp"

#include <neap/cuda.hpp>
#include <neap/neap.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace neap;

namespace {

// ---- operators -------------------------------------------------------------------------------------------------------

using bench::bytes_list, bench::run_case, bench::difference, bench::model_size;

bool write_all(std::FILE* f, void const* p, std::size_t n) { return std::fwrite(p, 1, n, f) == n; }
bool read_all(std::FILE* f, void* p, std::size_t n) { return std::fread(p, 1, n, f) == n; }

int record(char const* path) {
  std::FILE* const f = std::fopen(path, "wb");
  if (!f) throw_error({path, ": cannot be written"});
  host_backend host(1);
  bool right = true;
  for (auto const& c : bench::operator_cases()) {
    auto const out = run_case(c, host);
    for (auto const& bytes : out) {
      std::uint64_t const n = bytes.size();
      right = right && write_all(f, &n, sizeof n) && write_all(f, bytes.data(), bytes.size());
    }
  }
  if (std::fclose(f) != 0 || !right) throw_error({path, ": cannot be written"});
  return 0;
}

int operators(char const* path) {
  cuda_backend device;
  bench::use_libraries(device);
  std::FILE* const f = std::fopen(path, "rb");
  if (!f) throw_error({path, ": cannot be read"});
  bench::csv_header("operator,result,difference");
  int wrong = 0;
  for (auto const& c : bench::operator_cases()) {
    bytes_list expected;
    for (std::size_t k = 0; k < c.program.kept().size(); ++k) {
      std::uint64_t n = 0;
      if (!read_all(f, &n, sizeof n) || n > 1u << 28) throw_error({path, ": not a record of these operators"});
      expected.emplace_back(n);
      if (!read_all(f, expected.back().data(), n)) throw_error({path, ": not a record of these operators"});
    }
    std::string result = "ok";
    double worst = 0;
    try {
      auto const out = run_case(c, device);
      for (std::size_t k = 0; k < out.size(); ++k) {
        auto const t = c.program.type(c.program.kept()[k]).element;
        double const apart = difference(expected[k], out[k], t);
        worst = std::max(worst, apart);
        if (!(apart <= bench::tolerance(t))) result = "differs";
      }
    } catch (error const& e) {
      result = std::string(e.what()).find("has no kernel") != std::string::npos ? "no kernel" : e.what();
    }
    wrong += result != "ok" && result != "no kernel";
    std::printf("%s,\"%s\",%.2e\n", c.name.c_str(), result.c_str(), worst);
  }
  std::fclose(f);
  return wrong > 0;
}

// ---- models ----------------------------------------------------------------------------------------------------------

bytes_t free_bytes() {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "free memory");
  return static_cast<bytes_t>(free);
}

template <class Step, class Moves>
auto planned(Step const& step, Moves const& moves, double ratio) {
  return bench::planned(step, moves, ratio, roofline::h100());
}

int memory(model_size size) {
  cuda_backend device;
  bench::use_libraries(device);
  bench::csv_header("model,limit,planned_bytes,allocated_bytes,measured_bytes,result");
  int wrong = 0;
  bench::each_model(size, [&](char const* name, auto const& model, auto const& batch, auto const& options) {
    for (double const ratio : {1.0, 0.6, 0.4}) {
      auto copy = model;
      auto const step = training_step(copy, batch(0), cross_entropy{}, adamw{.rate = 1e-3}, options);
      auto const found = planned(step, chain(rematerialize{}, neap::swap{}), ratio);
      std::string result = "ok";
      bytes_t allocated = 0, measured = 0;
      try {
        auto const before = free_bytes();
        trainer run(step, found.placed, device);
        run(batch(0));
        measured = before - free_bytes();
        allocated = run.program().device_bytes();
        run(batch(1));
        if (free_bytes() != before - measured) result = "a step has allocated";
        else if (allocated != found.placed.arena_bytes) result = "differs";
      } catch (error const& e) { result = e.what(); }
      wrong += result != "ok";
      std::printf("%s,%g,%lld,%lld,%lld,\"%s\"\n", name, ratio, static_cast<long long>(found.placed.arena_bytes),
                  static_cast<long long>(allocated), static_cast<long long>(measured), result.c_str());
    }
  });
  return wrong > 0;
}

int bits(model_size size) {
  cuda_backend device;
  bench::use_libraries(device);
  host_backend host;
  bench::csv_header("model,way,steps,last_loss,result");
  int wrong = 0;
  constexpr int steps = 10;
  bench::each_model(size, [&](char const* name, auto const& model, auto const& batch, auto const& options) {
    struct outcome {
      std::vector<double> losses;
      std::vector<std::vector<float>> weights;
      bool operator==(outcome const&) const = default;
    };
    auto const trained = [&](auto& backend, bool captured, auto const& plan_of) {
      auto copy = model;
      auto const step = training_step(copy, batch(0), cross_entropy{}, adamw{.rate = 1e-3}, options);
      outcome o;
      {
        trainer run(step, plan_of(step), backend, {.graph = captured});
        for (int i = 0; i < steps; ++i) o.losses.push_back(run(batch(static_cast<std::uint64_t>(i))));
      }
      for (auto const& w : named_tensors(copy, role::weight)) o.weights.push_back(w.tensor.template values<float>());
      return o;
    };
    auto const in_order = [](auto const& step) { return plan_in_order(step.program); };
    auto const recomputed = [](auto const& step) { return planned(step, rematerialize{}, 0.6).placed; };
    auto const swapped = [](auto const& step) { return planned(step, neap::swap{}, 0.6).placed; };
    auto const row = [&](char const* way, outcome const& o, bool right) {
      wrong += !right;
      std::printf("%s,%s,%d,%.9g,%s\n", name, way, steps, o.losses.back(), right ? "ok" : "differs");
    };
    try {
      auto const first = trained(device, true, in_order);
      row("again", first, trained(device, true, in_order) == first);
      row("without a graph", first, trained(device, false, in_order) == first);
      auto const again = trained(device, true, recomputed), out = trained(device, true, swapped);
      row("recomputed", again, again == first);
      row("swapped", out, out == first);
      auto const beside = trained(host, true, in_order);
      bool close = true;
      for (int i = 0; i < steps; ++i)
        close =
            close && std::abs(beside.losses[static_cast<std::size_t>(i)] - first.losses[static_cast<std::size_t>(i)]) <
                         1e-3 * std::abs(beside.losses[static_cast<std::size_t>(i)]);
      row("host within 0.1 %", beside, close);
    } catch (error const& e) {
      ++wrong;
      std::printf("%s,,0,0,\"%s\"\n", name, e.what());
    }
  });
  return wrong > 0;
}

int toys() {
  cuda_backend device;
  bench::use_libraries(device);
  bench::csv_header("model,way,loss,result");
  int wrong = 0;
  bench::each_model(model_size::toys, [&](char const* name, auto const& model, auto const& batch, auto const& options) {
    for (bool const captured : {true, false}) {
      char const* const way = captured ? "captured" : "op by op";
      try {
        auto copy = model;
        auto const step = training_step(copy, batch(0), cross_entropy{}, adamw{.rate = 1e-3}, options);
        trainer run(step, planned(step, chain(rematerialize{}, neap::swap{}), 0.7).placed, device, {.graph = captured});
        double const loss = run(batch(0));
        bool const right = std::isfinite(loss);
        wrong += !right;
        std::printf("%s,%s,%.9g,%s\n", name, way, loss, right ? "ok" : "not finite");
      } catch (error const& e) {
        ++wrong;
        std::printf("%s,%s,,\"%s\"\n", name, way, e.what());
      }
    }
  });
  return wrong > 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);  // a part that is stopped leaves its rows
  std::string_view const part = count > 1 ? arguments[1] : "";
  try {
    if (part == "record" && count == 3) return record(arguments[2]);
    if (auto const found = find_cuda_device(); !found) {
      std::fprintf(stderr, "%s\n", found.message().c_str());
      return 2;
    }
    if (part == "operators" && count == 3) return operators(arguments[2]);
    if (part == "toys" && count == 2) return toys();
    if (part == "properties" && count == 2) return bench::list_properties();
    if (part == "library_properties" && count == 3) return bench::save_library_properties(arguments[2]);
    auto const size = count == 3 ? bench::model_size_of(arguments[2]) : std::optional(model_size::small);
    auto const both = [&](auto const& run) {  // small models first, if none were named
      int const small = run(*size);
      return count == 3 ? small : std::max(small, run(model_size::full));
    };
    if (size && count <= 3) {
      if (part == "memory") return both(memory);
      if (part == "bits") return bits(*size);
      if (part == "swaps") return both(bench::measure_swaps) > 0;
      if (part == "compiled") return bench::measure_compiled(*size) > 0;
      if (part == "steps") return bench::measure_steps(*size) > 0;
      if (part == "bandwidth") return bench::measure_bandwidth(*size) > 0;
    }
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::fputs(
      "gpu_check record FILE | operators FILE | toys | properties | library_properties FILE | "
      "(memory | bits | steps | compiled | swaps | bandwidth) [SIZE]\n",
      stderr);
  return 1;
}
