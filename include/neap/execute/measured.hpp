// measured: a cost model that times ops on this machine. What it does not know yet, it measures; what it has measured
// it keeps, in a file of the machine's own if it is given a folder.
//
//   measured cost(backend, "costs");                 // a folder; knows at once what was measured there before
//   cost.whole(training_step(copy, ...), batch);     // every op of a step where it stands, in a few runs of the whole
//   auto found = optimize(step, moves, cost, memory_limit{...});
//   if (auto saved = cost.save(); !saved) ...
//
// Ops run by themselves find their inputs in the caches, and in a step they do not: whole() sees them as they are. What it
// has not seen, an op in parts for instance, is measured by itself.
//
// Not in the umbrella header: include it where it is used.
#pragma once

#include <neap/core/digest.hpp>
#include <neap/core/file_writer.hpp>
#include <neap/execute/measure.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_table.hpp>
#include <neap/simulate/roofline.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>

namespace neap { inline namespace v0 {

/// What times depend on beside the op: the processor's name by the system, and what the compiler was allowed to
/// use of it.
inline std::string machine_description() {
  std::string text;
  if (std::FILE* f = std::fopen("/proc/cpuinfo", "rb")) {
    char line[512];
    while (text.empty() && std::fgets(line, sizeof line, f)) {
      std::string_view const l(line);
      if (auto const colon = l.find(':'); l.starts_with("model name") && colon != l.npos)
        text = l.substr(colon + 1, l.find('\n') - colon - 1);
    }
    std::fclose(f);
  }
#if defined(__AVX512F__)
  text += " avx512";
#elif defined(__AVX2__)
  text += " avx2";
#endif
  return text;
}

namespace detail {
/// Makes the folders of a file that are not there. Throws neap::error if the file could not be written.
inline void make_folders(std::string const& file) {
  auto const last = file.rfind('/');
  for (auto end = file.find('/', 1); end <= last; end = file.find('/', end + 1))
    (void)::mkdir(file.substr(0, end).c_str(), 0777);
  if (auto const s = can_write_file(file); !s) throw_error({"measured: ", s.message()});
}
/// Of the machine that a backend computes on: a backend on a device has a description() of it.
template <class Backend>
digest machine_digest(Backend const& backend) {
  if constexpr (requires { backend.description(); }) return digest{}.mix(std::string_view(backend.description()));
  else return digest{}.mix(std::string_view(machine_description())).mix(static_cast<std::uint64_t>(backend.threads()));
}
/// Figures for what is not measured: figures_of(backend), where a device has them.
template <class Backend>
roofline unmeasured_figures(Backend const& backend) {
  if constexpr (requires { figures_of(backend); }) return figures_of(backend);
  else return roofline::host(backend.threads());
}
}  // namespace detail

/// Copies share what they know. Not for use by two threads at once.
template <class Backend>
class measured {
 public:
  struct options {
    std::string folder{};       // of the file; none: nothing is kept
    measure_options alone{};    // for ops measured by themselves
    int rounds = 5;             // of a whole step, after one that does not count
    double whole_seconds = 60;  // no further round is begun after so long
  };

  /// The backend outlives the model. `other` answers for what has no kernel: transfers, imported ops. Makes the folder. Throws
  /// neap::error if that fails, the folder cannot be written to, or a file of this machine's in it cannot be read.
  measured(Backend& backend, roofline const& other, options how) : state_(std::make_shared<state>()) {
    state_->backend = &backend, state_->other = other, state_->how = std::move(how);
    if (state_->how.folder.empty()) return;
    state_->file = state_->how.folder + "/costs-" + to_hex(detail::machine_digest(backend)) + ".txt";
    detail::make_folders(state_->file);
    if (std::FILE* f = std::fopen(state_->file.c_str(), "rb")) {
      std::fclose(f);
      auto read = cost_table::load(state_->file);
      if (!read) throw_error({"measured: ", read.message()});
      state_->table = std::move(read).value();
    }
  }
  explicit measured(Backend& backend, std::string folder = {})
      : measured(backend, detail::unmeasured_figures(backend), options{std::move(folder), {}}) {}

  seconds_t operator()(op_graph const& g, op_id o) const {
    if (flow::is_view(g, o)) return 0;
    auto const key = cost_key(g, o);
    if (auto const* t = state_->table.find(key)) return *t;
    if (auto const t = measure_op(g, o, *state_->backend, state_->how.alone)) {
      state_->table.set(g, o, *t);
      ++state_->alone;
      return *t;
    }
    return state_->other(g, o);
  }

  /// Measures the ops of a training step where they stand: the whole step runs some times in its own order, each op gets
  /// the median of all times of its kind. Trains the step's model: give it one for that. Nothing runs if every op is known,
  /// unless `again`. Whether it ran. Throws neap::error as a trainer does.
  template <class Sample>
  bool whole(training_program const& step, Sample const& batch, bool again = false) {
    auto const& g = step.program;
    bool known = true;
    for (auto o : g.ops()) known &= flow::is_view(g, o) || state_->table.find(cost_key(g, o)) != nullptr;
    if (known && !again) return false;
    memory_options const plainly{.alignment = 64, .takeover = false};
    schedule const order = given_order{}(g);
    std::vector<seconds_t> seconds;
    trainer<Backend> run(step, make_plan({g, order, simulate(g, order, no_cost{}, plainly)}, g, plainly),
                         *state_->backend, {.step_seconds = &seconds});
    std::vector<std::pair<digest, seconds_t>> all;
    auto const begin = std::chrono::steady_clock::now();
    for (int round = 0; round <= state_->how.rounds; ++round) {
      run(batch);
      if (round == 0) continue;
      for (std::uint32_t p = 0; p < order.size(); ++p)
        if (!flow::is_view(g, order[p])) all.emplace_back(cost_key(g, order[p]), seconds[p]);
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > state_->how.whole_seconds)
        break;
    }
    std::sort(all.begin(), all.end());
    for (auto o : g.ops()) {
      if (flow::is_view(g, o)) continue;
      auto const key = cost_key(g, o);
      auto const less = [](auto const& a, auto const& b) { return a.first < b.first; };
      auto const [from, to] = std::equal_range(all.begin(), all.end(), std::pair{key, seconds_t{}}, less);
      if (from != to) state_->table.set(g, o, from[(to - from) / 2].second);
    }
    return true;
  }

  /// All that is known. A plan file names its digest, and the verifier checks it.
  cost_table const& table() const { return state_->table; }
  /// How many ops were measured by themselves.
  std::size_t measured_alone() const { return state_->alone; }
  /// Where it is kept; empty: nowhere.
  std::string const& file() const { return state_->file; }
  /// Writes the file, if there is one; whole, or not at all.
  status save() const {
    if (state_->file.empty()) return {};
    file_writer out(state_->file);
    out.write(state_->table.to_text());
    return out.finish();
  }

 private:
  struct state {
    Backend* backend = nullptr;
    roofline other;
    options how;
    std::string file;
    cost_table table;
    std::size_t alone = 0;
  };
  std::shared_ptr<state> state_;
};
template <class Backend>
measured(Backend&) -> measured<Backend>;
template <class Backend>
measured(Backend&, std::string) -> measured<Backend>;
template <class Backend>
measured(Backend&, char const*) -> measured<Backend>;

}}  // namespace neap::v0
