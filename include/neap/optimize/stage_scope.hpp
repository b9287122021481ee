// Records one run of a stage while it lives (search_profile.hpp): a stage inside another one has a record of its own.
#pragma once

#include <neap/core/work_meter.hpp>
#include <neap/optimize/search_profile.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

template <class State>
class stage_scope {
 public:
  stage_scope(State& state, char const* name) : state_(state), outer_(std::exchange(state.stage, this)), name_(name) {
    before_ = best();
    if (outer_) outer_->count();
    begin();
  }
  stage_scope(stage_scope const&) = delete;
  stage_scope& operator=(stage_scope const&) = delete;
  ~stage_scope() {
    count();
    record_.stage = name_, record_.epoch = state_.epoch, record_.before = before_, record_.after = best();
    if (outer_) record_.within = outer_->name_, outer_->begin();
    state_.out.stages.push_back(std::move(record_));
    state_.stage = outer_;
  }
  char const* name() const { return name_; }

 private:
  plan_cost best() const { return state_.best ? plan_cost(state_.best->state.result) : plan_cost{}; }
  void begin() { work_ = work_meter::now(), seconds_ = state_.budget.elapsed(), candidates_ = state_.out.candidates; }
  void count() {
    record_.work += 1e-9 * static_cast<double>(work_meter::now() - work_);
    record_.seconds += state_.budget.elapsed() - seconds_;
    record_.candidates += state_.out.candidates - candidates_;
  }

  State& state_;
  stage_scope* outer_;
  char const* name_;
  stage_record record_;
  plan_cost before_;
  std::uint64_t work_ = 0;
  double seconds_ = 0;
  std::size_t candidates_ = 0;
};

}}}  // namespace neap::v0::detail
