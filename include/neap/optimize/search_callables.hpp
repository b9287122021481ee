// A user's cost model and scheduler as a search takes them: erased, so that it is compiled once for all of them.
#pragma once

#include <neap/plan/limits.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/simulate/cost_model.hpp>

#include <concepts>

namespace neap { inline namespace v0 {

/// In place of a scheduler: mutated graphs run in the order that their mutation gives them.
struct as_mutated {};

namespace detail {

/// Refers to a cost model, which outlives it. A cost model itself.
class cost_model_ref {
 public:
  template <class Cost>
    requires(!std::same_as<Cost, cost_model_ref>)
  explicit cost_model_ref(Cost const& model)
      : model_(&model),
        call_([](void const* at, op_graph const& g, op_id o) -> seconds_t {
          return (*static_cast<Cost const*>(at))(g, o);
        }) {}
  seconds_t operator()(op_graph const& g, op_id o) const { return call_(model_, g, o); }

 private:
  void const* model_;
  seconds_t (*call_)(void const*, op_graph const&, op_id);
};

/// Refers to a scheduler, which outlives it, or to none (as_mutated).
class scheduler_ref {
 public:
  explicit scheduler_ref(as_mutated const&) {}
  template <class Scheduler>
    requires(!std::same_as<Scheduler, scheduler_ref>)
  explicit scheduler_ref(Scheduler const& scheduler)
      : scheduler_(&scheduler),
        call_([](void const* at, op_graph const& g) -> schedule { return (*static_cast<Scheduler const*>(at))(g); }) {}
  explicit operator bool() const { return call_ != nullptr; }
  schedule operator()(op_graph const& g) const { return call_(scheduler_, g); }

 private:
  void const* scheduler_ = nullptr;
  schedule (*call_)(void const*, op_graph const&) = nullptr;
};

}  // namespace detail

}}  // namespace neap::v0
