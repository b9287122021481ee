// evaluator: a model's forward pass under a plan, beside a trainer and on the same weights. It is traced as in evaluation:
// dropout does nothing, batch norm uses its running statistics, nothing is kept for gradients.
//
//   evaluator eval(model, sample, backend);                 // in the best order, nothing computed again
//   tensor const logits = eval(batch);                      // what model(batch) gives, with the weights as they are now
//
//   auto step  = evaluation_step(model, sample, f);         // or f(model, sample), for metrics or several outputs
//   auto found = optimize(step, moves, memory_limit{64_MiB});
//   evaluator eval(step, found.placed, backend);
#pragma once

#include <neap/core/is_instance.hpp>
#include <neap/execute/batch_runner.hpp>
#include <neap/model/precision.hpp>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

template <class Result>
struct evaluation_program;

namespace detail {

template <class Result>
class evaluation_recipe {
 public:
  virtual ~evaluation_recipe() = default;
  virtual evaluation_program<Result> for_sample(void const* sample, void const* type,
                                                evaluation_program<Result> const& like,
                                                std::source_location at) const = 0;
};

/// model(x) of one tensor, model(a, b...) of a pair or tuple.
struct plain_call {
  template <class Model, class Sample>
  auto operator()(Model& model, Sample const& sample) const {
    if constexpr (std::is_invocable_v<Model&, Sample const&>) {
      return model(sample);
    } else {
      constexpr bool has_parts = requires { std::tuple_size<Sample>::value; };
      static_assert(
          has_parts,
          "neap: a model is evaluated as model(sample), or model(parts...) of a pair or tuple; for another one "
          "give a function of (model, sample): evaluation_step(model, sample, f)");
      if constexpr (has_parts)
        return std::apply(
            [&](auto const&... parts) {
              static_assert(
                  std::is_invocable_v<Model&, decltype(parts)...>,
                  "neap: the model does not take the parts of the sample: give a function of (model, sample): "
                  "evaluation_step(model, sample, f)");
              return model(parts...);
            },
            sample);
    }
  }
};

}  // namespace detail

/// The program of one evaluation. `result` has the form of what the function gave; its tensors are filled in by runs.
template <class Result>
struct evaluation_program {
  using result_type = Result;
  op_graph program;
  std::vector<resident> residents;
  std::vector<value_id> inputs, outputs;  // an output is nothing<value_id> where the function gave an empty tensor
  detail::sample_form form;               // what the sample was besides its tensors' types
  Result result;
  std::shared_ptr<detail::evaluation_recipe<Result> const> recipe;
};

namespace detail {

template <class Model, class Sample, class F>
auto traced_evaluation(Model& model, Sample const& sample, F const& f, std::source_location at) {
  using result_type = std::remove_cvref_t<decltype(f(model, sample))>;
  caller_scope const here(at);
  evaluation const off;
  evaluation_program<result_type> p;
  tracer t(table_of<standard_operators>(), at);
  name_tensors(t, model_ref(model));
  auto const run = [&](tracer& in) -> result_type { return f(model, as_inputs(&in, sample)); };
  p.result = run(t);
  for_each_tensor(p.result, [&](tensor& x, std::string const&) {
    p.outputs.push_back(x.is_empty() ? nothing<value_id> : t.keep(x, role::output));
    x = tensor();
  });
  p.inputs = t.inputs();
  p.form = sample_form(sample);
  p.residents = t.residents();
  p.program = t.finish();
  require_no_memory(t, table_of<standard_operators>(), run, at);
  return p;
}

template <class Result, class Model, class Sample, class F>
class evaluation_recipe_of final : public evaluation_recipe<Result> {
 public:
  evaluation_recipe_of(Model& model, F const& f) : model_(&model), f_(f) {}
  evaluation_program<Result> for_sample(void const* sample, void const* type, evaluation_program<Result> const&,
                                        std::source_location at) const override {
    if (type != &sample_type<Sample>)
      throw_error(context_access::place(at), {"evaluator: the batch is of another C++ type than the sample"});
    std::optional<precision_scope> scope;
    precision_.enter(scope);
    return traced_evaluation(*model_, *static_cast<Sample const*>(sample), f_, at);
  }

 private:
  Model* model_;
  F f_;
  same_precision precision_;
};

}  // namespace detail

/// The program of f(model, sample), or of model(sample...), as in evaluation. The sample's types count, not its data. The
/// model outlives the program and its evaluators. Throws neap::error with the user's place for mistakes in the model.
template <class Model, class Sample, class F = detail::plain_call>
auto evaluation_step(Model& model, Sample const& sample, F const& f = {},
                     std::source_location at = std::source_location::current()) {
  auto p = detail::traced_evaluation(model, sample, f, at);
  using result_type = typename decltype(p)::result_type;
  using recipe = detail::evaluation_recipe_of<result_type, Model, Sample, std::decay_t<F>>;  // a function's address
  p.recipe = std::make_shared<recipe>(model, f);
  return p;
}

namespace detail {
/// What a model gives for a sample; no type where a program is given in place of a model.
template <class Model, class Sample>
struct call_result {
  using type = std::remove_cvref_t<decltype(plain_call{}(std::declval<Model&>(), std::declval<Sample const&>()))>;
};
template <class Result, class Sample>
struct call_result<evaluation_program<Result>, Sample> {};
template <class Result, class Sample>
struct call_result<evaluation_program<Result> const, Sample> {};
}  // namespace detail

template <class Result, class Backend>
class evaluator {
  using program_type = evaluation_program<Result>;

 public:
  /// `p` is a plan of the step's program. Throws neap::error as executable does.
  evaluator(program_type const& step, plan const& p, Backend& backend, execution_options const& options = {},
            std::source_location at = std::source_location::current())
      : runner_(step, p, backend, options, "evaluator", at) {}
  /// Traces the model's forward pass and plans it in the best order, without a search.
  template <class Model, class Sample>
    requires(!std::is_same_v<std::remove_cvref_t<Model>, program_type>)
  evaluator(Model& model, Sample const& sample, Backend& backend, execution_options const& options = {},
            std::source_location at = std::source_location::current())
      : evaluator(evaluation_step(model, sample, detail::plain_call{}, at), backend, options, at) {}

  /// What the function gives for a batch. Its tensors look at the evaluator's own memory: the next run overwrites them.
  template <class Sample>
  Result operator()(Sample const& batch, std::source_location at = std::source_location::current()) & {
    auto const alone = runner_.begin_call(at);
    auto& b = runner_.bind(detail::sample_ref(batch), at);
    detail::with_place(at, [&] { (*b.run)(); });
    runner_.has_run(b);
    Result r = b.step.result;
    auto next = b.step.outputs.begin();
    for_each_tensor(r, [&](tensor& x, std::string const&) {
      if (auto const v = *next++; v != nothing<value_id>) x = detail::borrowed(b.value(v));
    });
    return r;
  }
  template <class Sample>
  Result operator()(Sample const&, std::source_location = std::source_location::current()) && {
    static_assert(detail::never<Sample>,
                  "neap: what an evaluator gives looks at its memory, and this one is gone: give it a name");
    return {};
  }
  /// Plans samples of these extents now, not when such a batch comes: as trainer::prepare.
  template <class Sample>
  void prepare(Sample const& sample, std::source_location at = std::source_location::current()) {
    auto const alone = runner_.begin_call(at);
    runner_.prepare(detail::sample_ref(sample), at);
  }
  executable<Backend> const& program() const { return *runner_.first().run; }
  /// How many sizes of batches are planned and kept: as trainer::size_count.
  std::size_t size_count() const { return runner_.sizes().size(); }

 private:
  evaluator(program_type const& step, Backend& backend, execution_options const& options, std::source_location at)
      : evaluator(step, plan_in_order(step.program), backend, options, at) {}

  detail::batch_runner<program_type, Backend> runner_;
};

template <class Result, class Backend>
evaluator(evaluation_program<Result> const&, plan const&, Backend&) -> evaluator<Result, Backend>;
template <class Result, class Backend>
evaluator(evaluation_program<Result> const&, plan const&, Backend&, execution_options) -> evaluator<Result, Backend>;
template <class Model, class Sample, class Backend>
evaluator(Model&, Sample const&, Backend&) -> evaluator<typename detail::call_result<Model, Sample>::type, Backend>;
template <class Model, class Sample, class Backend>
evaluator(Model&, Sample const&, Backend&, execution_options)
    -> evaluator<typename detail::call_result<Model, Sample>::type, Backend>;

namespace detail {
template <class Step, class... More>
constexpr bool refuse_evaluator() {
  if constexpr (is_instance<std::remove_cvref_t<Step>, evaluation_program>) return refuse_run<More...>();
  return false;
}
}  // namespace detail

/// The compile-time error for a program with arguments that cannot run it.
template <class... Other>
  requires(detail::refuse_evaluator<Other...>())
evaluator(Other&&...) -> evaluator<tensor, host_backend>;

}}  // namespace neap::v0
