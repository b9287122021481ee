// trainer: a planned training step bound to a model's own memory. Each call runs one step on a batch; weights,
// optimizer states and running statistics are updated where the model has them, so that the model can be used at any
// time between.
//
//   auto step  = training_step(model, sample, cross_entropy{}, adamw{});
//   auto found = optimize(step, moves, memory_limit{2_GiB});
//   trainer run(step, found.placed, backend);
//   for (auto const& batch : data) loss = run(batch);
//
// A batch of other extents than the sample's (the last one of an epoch, a shorter sequence) is traced and planned when
// it first comes, in the same arena: by the order of the plan that was given or of another size; where no order that is
// known fits, by a search, whose time is an option (execution_options::sizes). prepare() does it beforehand.
#pragma once

#include <neap/core/is_instance.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/execute/batch_runner.hpp>
#include <neap/train/training_step.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

template <class Backend = host_backend>
class trainer {
 public:
  /// `p` is a plan of the step's program. Throws neap::error as executable does. Memory of weights and states comes
  /// into being here, if it has not before. The model stays where it is, and lives as long as this.
  trainer(training_program const& step, plan const& p, Backend& backend, execution_options const& options = {},
          std::source_location at = std::source_location::current())
      : runner_(step, p, backend, options, "trainer", at),
        last_(&runner_.first()) {
    for (auto const& r : step.residents)
      if (std::find(step.weights.begin(), step.weights.end(), r.value) != step.weights.end())
        trained_.push_back({r.name, r.holder});
  }

  /// Runs one step on a batch of the sample's form and element types, with the same numbers, flags and texts beside its
  /// tensors; the loss before the update. `settings` stand for the optimizer's numbers in this step. Takes no memory
  /// but for batches of new sizes, which are planned first (see prepare). Throws neap::error if the batch is of another
  /// form or does not fit, before anything has changed; if the spill file fails; and if a whole number of it is no
  /// place of what it picks from: weights may then have been updated in part. A step that throws is not counted. One
  /// thread at a time: a call during another one is refused.
  template <class Sample>
  double operator()(Sample const& batch, step_settings const& settings = {},
                    std::source_location at = std::source_location::current()) {
    return run_step(detail::sample_ref(batch), settings, at);
  }

  /// Copies weights, states and statistics to the model's memory. On the host they are there already. On a device they stay
  /// there from step to step: a tensor that is read (or saved) is copied back by itself, all of them at the trainer's end;
  /// addresses of elements that were taken before a step are up to date after sync() alone. Throws neap::error if a copy
  /// fails.
  void sync(std::source_location at = std::source_location::current());

  /// Plans the step for samples of these extents now, not when such a batch comes. Throws neap::error, as a run does,
  /// if no plan is found within the arena; weights and states are as they were. Complexity: a trace and a simulation;
  /// where a search is needed, up to execution_options::sizes.search.
  template <class Sample>
  void prepare(Sample const& sample, std::source_location at = std::source_location::current()) {
    auto const alone = runner_.begin_call(at);
    runner_.prepare(detail::sample_ref(sample), at);
  }
  /// While what it gives lives, no call is taken, and none is under way: for what reads or writes the weights. Throws
  /// neap::error if one is.
  [[nodiscard]] auto begin_call(std::source_location at = std::source_location::current()) {
    return runner_.begin_call(at);
  }
  /// Takes a plan for another size. Throws neap::error if the step is not one of the same model and states
  /// (training_options::state).
  void add(training_program const& step, plan const& p, std::source_location at = std::source_location::current());

  /// The last step's outputs beside the loss. The tensor looks at the step's own memory: the next step overwrites it.
  /// (It may be a part of the next batch.)
  /// Throws neap::error if no step has run, or the step has no such output.
  tensor output(std::string_view name, std::source_location at = std::source_location::current()) const;

  /// The gradient of a weight, by its path, as the last step has used it: after clipping. Needs
  /// training_options::keep_gradients; what output() says of its memory is so of this one's.
  /// Throws neap::error if no step has run, gradients are not kept, or none of the trained weights has this path.
  tensor gradient(std::string_view weight, std::source_location at = std::source_location::current()) const;

  /// What the steps go on with: counts, states of the optimizer, the scale of the loss in f16 (train/mixed.hpp).
  training_state& state() { return runner_.first().step.state; }
  training_state const& state() const { return runner_.first().step.state; }
  /// The training step that it was made of, as it was made.
  training_program const& step() const { return runner_.first().step; }
  executable<Backend> const& program() const { return *runner_.first().run; }
  /// How many sizes of batches are planned and kept, the first included: at most execution_options::sizes.kept beside
  /// it and those that were given by add().
  std::size_t size_count() const { return runner_.sizes().size(); }
  /// The program that ran last.
  executable<Backend> const& last_program() const { return *last_->run; }

 private:
  using runner = detail::batch_runner<training_program, Backend>;

  double run_step(detail::sample_ref batch, step_settings const& settings, std::source_location at);

  runner runner_;
  typename runner::bound const* last_;
  std::vector<named_tensor> trained_;
  bool has_run_ = false;
};

template <class Backend>
double trainer<Backend>::run_step(detail::sample_ref batch, step_settings const& settings, std::source_location at) {
  auto const alone = runner_.begin_call(at);
  runner_.first().step.freezing.require_unchanged("trainer", at);
  detail::begin_training(trained_, state(), "trainer", at);
  auto& b = runner_.bind(batch, at);
  b.step.set(settings, at);
  detail::step_attempt attempt(b.step.state);
  detail::with_place(at, [&] { (*b.run)(); });
  attempt.finish();
  runner_.has_run(b);
  last_ = &b, has_run_ = true;
  if (b.step.numbers) detail::require_not_skipping(*b.step.numbers, state(), "trainer", at);
  auto const l = b.value(b.step.loss);
  return detail::element_as<double>(l.data, l.element, 0);
}

template <class Backend>
void trainer<Backend>::add(training_program const& step, plan const& p, std::source_location at) {
  auto const alone = runner_.begin_call(at);
  auto const& first = runner_.first().step;
  bool same = step.state.counter().storage() == first.state.counter().storage();
  for (auto const& r : step.residents) {
    bool const is_trained = std::find(step.weights.begin(), step.weights.end(), r.value) != step.weights.end();
    same = same && (!is_trained || std::any_of(first.residents.begin(), first.residents.end(), [&](auto const& own) {
             return own.holder.storage() == r.holder.storage();
           }));
  }
  if (!same)
    throw_error(context_access::place(at),
                {"trainer: add() takes a step of the model and the states that it trains: make both steps with "
                 "training_options{.state = &state}"});
  runner_.add(step, p, at);
}

template <class Backend>
tensor trainer<Backend>::output(std::string_view name, std::source_location at) const {
  std::string known;
  for (auto const& o : last_->step.outputs) {
    if (o.name == name && !has_run_)
      throw_error(context_access::place(at),
                  {"trainer: no step has run, \"", o.name, "\" is not known before: run a batch first"});
    if (o.name == name) return detail::borrowed(last_->value(o.value));
    known += (known.empty() ? "" : ", ") + o.name;
  }
  throw_error(context_access::place(at), {"trainer: the step has no output \"", name, "\"",
                                          (known.empty() ? std::string() : "; it has " + known)});
}

template <class Backend>
tensor trainer<Backend>::gradient(std::string_view weight, std::source_location at) const {
  auto const& s = last_->step;
  auto const refuse = [&](std::string const& why) {
    throw_error(context_access::place(at), {"trainer: the gradient of \"", weight, "\" is not known: ", why});
  };
  if (s.gradients.empty()) refuse("make the step with training_options{.keep_gradients = true}");
  std::vector<named_tensor> trained;
  for (std::size_t i = 0; i < s.weights.size(); ++i)
    for (auto const& r : s.residents) {
      if (r.value != s.weights[i]) continue;
      if (r.name == weight && !has_run_) refuse("no step has run, run a batch first");
      if (r.name == weight) return detail::borrowed(last_->value(s.gradients[i]));
      trained.push_back({r.name, r.holder});
    }
  refuse("no weight that the loss depends on has this path" + detail::names_of(trained));
  return {};
}

template <class Backend>
void trainer<Backend>::sync(std::source_location at) {
  auto const alone = runner_.begin_call(at);
  detail::with_place(at, [&] { runner_.sync(); });
}

template <class Backend>
trainer(training_program const&, plan const&, Backend&) -> trainer<Backend>;
template <class Backend>
trainer(training_program const&, plan const&, Backend&, execution_options) -> trainer<Backend>;

namespace detail {
template <class Step, class... More>
constexpr bool refuse_trainer() {
  using step_t = std::remove_cvref_t<Step>;
  static_assert(std::is_same_v<step_t, training_program> || is_instance<step_t, trainer>,
                "neap: a trainer is made of a training step, a plan of it and a backend: "
                "trainer run(step, found.placed, backend)");
  if constexpr (std::is_same_v<step_t, training_program>) return refuse_run<More...>();
  return false;
}
NEAP_INSTANTIATE_ONCE(class bound_program<training_program, host_backend>);
NEAP_INSTANTIATE_ONCE(class batch_runner<training_program, host_backend>);
}  // namespace detail
NEAP_INSTANTIATE_ONCE(class trainer<host_backend>);

/// The compile-time error for arguments that make no trainer.
template <class... Other>
  requires(detail::refuse_trainer<Other...>())
trainer(Other&&...) -> trainer<host_backend>;

}}  // namespace neap::v0
