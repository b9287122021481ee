// How captured paths become planned ones: each stage's graph is planned and placed where paths run; where a path is
// known already, it must be the same.
#pragma once

#include <neap/execute/compiled_paths.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The stages of a path that are known, from the first on.
struct known_stages {
  std::shared_ptr<planned_path> path;
  std::vector<planned_stage*> stages;
};

class path_planner {
 public:
  /// Of a graph, the memory in its order of the largest graph of its path (0: it is the only one), and the plan of a
  /// graph that it equals but for lengths (null: none).
  using planner = std::function<plan(graph const&, bytes_t, planned_before const*)>;
  /// What is thrown where a path has no plan.
  struct no_plan {
    std::string why;
    bool for_now = false;  // another call is under way, or no more stages may be kept
  };
  static constexpr char const* in_host_code =
      "another call of the function is captured, or calls a function of the host";

  path_planner(planner how, compile_options const& options, path_arena& on)
      : planner_(std::move(how)),
        options_(options),
        backend_(on.device ? 1 : options.threads),
        on_(on) {}

  /// As many stages of a captured path as its guards lead to.
  static known_stages known(compiled_paths const& in, std::vector<captured_stage> const& stages);
  /// Plans a captured path, or the beginning of one that has no end yet. `form`: of its result. `full`: why a known
  /// path gets no more stages; empty: it may. False: it was known. Throws no_plan, and neap::error where the path
  /// contradicts those that are known; nothing has changed then.
  bool add(compiled_paths& to, captured_path p, known_stages const& known, bool is_beginning,
           std::shared_ptr<void> form, std::string const& full);
  [[noreturn]] void untracked(std::source_location at) const;

 private:
  struct stage_plan {
    captured_stage captured;
    std::optional<plan> planned;  // none: no operators
    std::vector<digest> ops;
  };
  /// Throws neap::error if a call took another path than the one that is kept for its guards.
  void require_same(planned_stage const& kept, captured_stage const& s, bool ends) const;
  /// Plans of the stages that are not known, and of known ones that keep more from now on.
  std::vector<std::optional<stage_plan>> plans_of(std::vector<captured_stage>& stages, known_stages const& known,
                                                  bool is_simple, length_family* family) const;
  /// `original`: 0, or the memory in its order of the largest graph of the path.
  stage_plan plan_of(captured_stage s, bytes_t original, length_family* family) const;
  /// A plan, after one of the same graph with other lengths where there is one. Throws what the planner throws.
  plan planned(graph const& g, bytes_t original, length_family* family) const;
  /// Places a stage, or again one that keeps more. Graphs do not run meanwhile.
  void place(planned_stage& to, stage_plan from);
  /// A plan on the device.
  std::unique_ptr<device_graph> on_device(plan p, std::vector<source_binding> const& bindings,
                                          captured_stage const& s) const;

  planner planner_;
  compile_options const& options_;
  host_backend backend_;
  path_arena& on_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/path_planner.ipp>
#endif
