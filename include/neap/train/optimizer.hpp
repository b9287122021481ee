// Optimizers as values: sgd{.rate = 0.1}, momentum{}, nesterov{}, adam{}, adamw{.rate = 3e-4}, lion{}, muon{}, adafactor{}.
// An optimizer names the states that it keeps of each weight, gives its numbers, which may be schedules
// (train/scheduled.hpp), and says how it updates one weight in place; a training_state holds the states and the counter of
// steps. One's own optimizer is a struct of the same form; one without numbers needs neither `numbers` nor `values()`, and
// one whose states are as large as their weights, one for each name, no `state_types()`. One that leaves all as it is where
// the last of `in.numbers()`, which comes after its own, is infinite or a NaN says  static constexpr bool skips_steps = true:
// then it can be used with f16 (train/mixed.hpp). Those of the library can, as can what hands the numbers on to their
// operators.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operators/update.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/parameter.hpp>
#include <neap/model/parameters.hpp>
#include <neap/train/path_pattern.hpp>
#include <neap/train/scheduled.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace neap { inline namespace v0 {

/// What an update reads besides weight, gradient and states: the number of the step, and the optimizer's numbers for the
/// weight's group.
class update_inputs : public step_clock {
 public:
  using step_clock::step_clock;
  /// The optimizer's values(), f64, as they are in this step.
  tensor const& numbers() const { return numbers_; }
  /// Where the weight is in the model: "layers.3.up.weight".
  std::string const& path() const { return path_; }
  void set_weight(std::string const& path, tensor const& numbers) { path_ = path, numbers_ = numbers; }

 private:
  tensor numbers_;
  std::string path_;
};

/// w -= rate * (g + weight_decay * w)
struct sgd {
  scheduled rate = 1e-2, weight_decay = 0;
  static constexpr bool skips_steps = true;
  static constexpr std::array<std::string_view, 0> states{};
  static constexpr std::array<std::string_view, 2> numbers{"rate", "weight_decay"};
  std::array<scheduled, 2> values() const { return {rate, weight_decay}; }
  void update(tensor const& w, tensor const& g, std::span<tensor const>, update_inputs& in) const;
};

/// m = beta * m + (1 - damping) * (g + weight_decay * w); w -= rate * m, or Nesterov's form: w -= rate * (g + beta * m).
struct momentum {
  scheduled rate = 1e-2, beta = 0.9, damping = 0, weight_decay = 0;
  bool nesterov = false;
  static constexpr bool skips_steps = true;
  static constexpr std::array<std::string_view, 1> states{"velocity"};
  static constexpr std::array<std::string_view, 4> numbers{"rate", "momentum", "damping", "weight_decay"};
  std::array<scheduled, 4> values() const { return {rate, beta, damping, weight_decay}; }
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const;
};

/// momentum in Nesterov's form (Sutskever et al. 2013).
struct nesterov {
  scheduled rate = 1e-2, beta = 0.9, weight_decay = 0;
  static constexpr bool skips_steps = true;
  static constexpr auto states = momentum::states;
  static constexpr auto numbers = momentum::numbers;
  std::array<scheduled, 4> values() const { return {rate, beta, 0, weight_decay}; }
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const;
};

/// Kingma and Ba 2015; the decay is added to the gradient.
struct adam {
  scheduled rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  static constexpr bool skips_steps = true;
  static constexpr std::array<std::string_view, 2> states{"first_moment", "second_moment"};
  static constexpr std::array<std::string_view, 5> numbers{"rate", "beta1", "beta2", "epsilon", "weight_decay"};
  std::array<scheduled, 5> values() const { return {rate, beta1, beta2, epsilon, weight_decay}; }
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const;
};

/// Loshchilov and Hutter 2019; the weight itself decays, by rate * weight_decay.
struct adamw {
  scheduled rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
  static constexpr bool skips_steps = true;
  static constexpr auto states = adam::states;
  static constexpr auto numbers = adam::numbers;
  std::array<scheduled, 5> values() const { return {rate, beta1, beta2, epsilon, weight_decay}; }
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const;
};

/// Chen et al. 2023: the sign of a blend of momentum and gradient, and decoupled decay. One state, and no weight moves by
/// more than the rate and its decay.
struct lion {
  scheduled rate = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  static constexpr bool skips_steps = true;
  static constexpr std::array<std::string_view, 1> states{"momentum"};
  static constexpr std::array<std::string_view, 4> numbers{"rate", "beta1", "beta2", "weight_decay"};
  std::array<scheduled, 4> values() const { return {rate, beta1, beta2, weight_decay}; }
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const;
};

/// What a state of the weight's shape is: f64 for f64 weights, f32 for all others.
inline tensor_type state_like(tensor const& weight) { return {computed_in(weight.element()), weight.shape()}; }

/// Shazeer and Stern 2018, without a first moment: of a matrix (the first axis of a weight by all others) the second moment
/// is kept as means of rows and columns, next to nothing beside what adam keeps; of weights of one axis as it is. Steps are
/// the rate times the weight's own size, of at least `epsilon`; their mean square is at most `threshold`. The paper's rate
/// is [](std::int64_t step) { return std::min(0.01, 1 / std::sqrt(step)); }.
struct adafactor {
  scheduled rate = 1e-2, power = 0.8, epsilon = 1e-3, threshold = 1, weight_decay = 0;
  static constexpr bool skips_steps = true;
  static constexpr std::array<std::string_view, 2> states{"mean_square", "mean_square_of_rows"};
  static constexpr std::array<std::string_view, 5> numbers{"rate", "power", "epsilon", "threshold", "weight_decay"};
  std::array<scheduled, 5> values() const { return {rate, power, epsilon, threshold, weight_decay}; }
  /// Of the columns; of the rows, where there are any.
  std::vector<tensor_type> state_types(tensor const& w, std::string_view) const;
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const;
};

/// Jordan et al. 2024: weights of two axes or more, as matrices of their first axis by all others, take steps along their
/// momentum made nearly orthogonal by a Newton-Schulz iteration; all others are updated by an adamw with numbers of its
/// own. It is meant for the matrices within a model: name embeddings and the last layer in `use_adamw_for`.
///
///   muon{.rate = 0.02, .others = {.rate = 3e-4}, .use_adamw_for = {"tokens.*", "head.*"}}
///
/// A group of weights changes the numbers of whichever way its weights are updated; a rate said for one step is muon's,
/// and the others' goes along in proportion.
struct muon {
  scheduled rate = 2e-2, beta = 0.95, weight_decay = 0;
  bool nesterov = true;
  std::int64_t iterations = 5;
  double rms = 0;  // above 0: of a step's elements at a rate of 1; 0.2 suits adamw's rates and decays (Liu et al. 2025)
  adamw others{.rate = 3e-4};
  std::vector<std::string> use_adamw_for{};  // paths of matrices; * stands for any characters

  static constexpr bool skips_steps = true;
  static constexpr std::array<std::string_view, 2> states{"momentum", "second_moment"};
  static constexpr std::array<std::string_view, 8> numbers{"rate",           "momentum",           "weight_decay",
                                                           "others.rate",    "others.beta1",       "others.beta2",
                                                           "others.epsilon", "others.weight_decay"};
  std::array<scheduled, 8> values() const;
  /// Patterns of paths, each of which must match a weight.
  std::span<std::string const> patterns() const { return span_of(use_adamw_for); }
  /// A matrix has the first of the states alone.
  std::vector<tensor_type> state_types(tensor const& w, std::string_view path) const;
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const;

 private:
  bool is_matrix(tensor const& w, std::string_view path) const;
};

/// What a training keeps between steps besides the model: each weight's states, zeros at first, and the number of steps
/// taken. They take memory once they are used. A copy is another handle to the same states.
class training_state {
 public:
  training_state();

  /// An i64 scalar, for step_clock.
  tensor const& counter() const { return steps_; }
  /// The scale of the loss in the next step of f16 (train/mixed.hpp); 0 before the first.
  double loss_scale() const { return *reinterpret_cast<double const*>(loss_scale_.storage()->data()); }
  /// How many steps have passed since the scale moved.
  std::int64_t good_steps() const { return std::max<std::int64_t>(steps_at_scale(), 0); }
  /// How many of the last steps, one after another, had gradients with an infinity or a NaN and were left out.
  std::int64_t skipped_steps() const { return std::max<std::int64_t>(-steps_at_scale(), 0); }
  /// The tensors that hold them: an f64 and an i64 scalar, which is below 0 after steps that were left out.
  tensor const& loss_scale_source() const { return loss_scale_; }
  tensor const& good_steps_source() const { return good_steps_; }
  /// The states of a weight, valid until the next call; those of `types` that are not there yet are made.
  std::vector<tensor> const& of(tensor const& weight, std::span<tensor_type const> types = {});
  /// Whether a step was made that goes on with the weight's states: their number is its optimizer's.
  bool is_used_for(tensor const& weight) const {
    auto const row = rows_.find(weight.storage().get());
    return row != number_map::none && used_[row];
  }
  void set_used_for(tensor const& weight);

  /// A part of what a compiled function takes.
  friend auto neap_fields(training_state& self) {
    return std::tie(self.steps_, self.loss_scale_, self.good_steps_, self.weights_, self.states_);
  }
  static constexpr bool neap_rest_is_derived = true;

 private:
  std::int64_t steps_at_scale() const { return *reinterpret_cast<std::int64_t const*>(good_steps_.storage()->data()); }
  tensor steps_, loss_scale_, good_steps_;
  number_map rows_;              // weights' storages to rows of what follows
  std::vector<tensor> weights_;  // keeps the storages' addresses their own
  std::vector<std::vector<tensor>> states_;
  std::vector<bool> used_;  // by a step
};

namespace detail {
/// Of a step of these weights that goes on with this training, before it is taken. Throws neap::error if they were loaded
/// from a file together with another training_state, whose counts and optimizer states the step would leave behind.
void begin_training(std::span<named_tensor const> weights, training_state const& state, std::string_view who,
                    std::source_location at);

/// While it lives a step is taken; one that ends without finish() was none, and is not counted.
class step_attempt {
 public:
  explicit step_attempt(training_state const& s);
  step_attempt(step_attempt const&) = delete;
  step_attempt& operator=(step_attempt const&) = delete;
  ~step_attempt();
  void finish() { finished_ = true; }

 private:
  std::int64_t* count_;
  std::int64_t before_;
  bool finished_ = false;
};
}  // namespace detail

/// Something that updates weights.
/// Promise: update writes w and the states in place by operators, and nothing else.
template <class O>
concept optimizer = requires(O const& o, tensor const& t, std::span<tensor const> s, update_inputs& in) {
  { O::states.size() } -> std::convertible_to<std::size_t>;
  o.update(t, t, s, in);
};

namespace detail {
/// Checked where a user's optimizer enters.
template <class O>
constexpr bool check_optimizer() {
  static_assert(
      optimizer<O>,
      "neap: this is no optimizer: it needs  static constexpr std::array<std::string_view, n> states{...}, the names of "
      "what it keeps of a weight, and  void update(neap::tensor const& weight, neap::tensor const& gradient, "
      "std::span<neap::tensor const> states, neap::update_inputs& in) const");
  return true;
}

template <class Optimizer>
concept has_numbers = requires(Optimizer const& o) {
  Optimizer::numbers.size();
  o.values();
};

/// A list of names as views.
template <std::size_t N, class List>
constexpr std::array<std::string_view, N> name_views(List const& list) {
  std::array<std::string_view, N> views{};
  std::size_t i = 0;
  for (auto const& name : list) views[i++] = name;
  return views;
}
template <class Optimizer>
inline constexpr auto state_names = name_views<Optimizer::states.size()>(Optimizer::states);
template <class Optimizer>
inline constexpr auto number_names = name_views<Optimizer::numbers.size()>(Optimizer::numbers);

/// Throws neap::error if there are more types of a weight's states than an optimizer has names for.
void require_names(std::span<tensor_type const> types, std::size_t names, std::string_view path);
/// The types of so many states of the weight's shape.
std::vector<tensor_type> types_like(tensor const& weight, std::size_t states);
std::vector<scheduled> list_of(std::span<scheduled const> values);

/// The types of the states that an optimizer keeps of a weight. Throws neap::error if it has no names for so many.
template <class Optimizer>
std::vector<tensor_type> state_types(Optimizer const& o, tensor const& weight, std::string_view path) {
  constexpr std::size_t named = Optimizer::states.size();
  if constexpr (requires { o.state_types(weight, path); }) {
    std::vector<tensor_type> types = o.state_types(weight, path);
    require_names(types, named, path);
    return types;
  } else {
    return types_like(weight, named);
  }
}
/// The optimizer's values().
template <class Optimizer>
std::vector<scheduled> values_of(Optimizer const& o) {
  static_assert(Optimizer::numbers.size() == std::tuple_size_v<decltype(o.values())>,
                "neap: an optimizer's values() must give one number for each of its `numbers`, in the same order, as "
                "std::array<neap::scheduled, N>");
  auto const values = o.values();
  if constexpr (std::is_convertible_v<decltype(values) const&, std::span<scheduled const>>) return list_of(values);
  else return {values.begin(), values.end()};
}

/// Refers to an optimizer as a step uses it, erased, so that a step is compiled once for all of them. It outlives this.
class optimizer_ref {
 public:
  template <class Optimizer>
    requires(!std::is_same_v<Optimizer, optimizer_ref>)
  explicit optimizer_ref(Optimizer const& o)
      : optimizer_(&o),
        states_(state_names<Optimizer>),
        state_types_([](void const* at, tensor const& weight, std::string_view path) {
          return detail::state_types(*static_cast<Optimizer const*>(at), weight, path);
        }),
        update_([](void const* at, tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) {
          static_cast<Optimizer const*>(at)->update(w, g, s, in);
        }) {
    if constexpr (has_numbers<Optimizer>) {
      numbers_ = number_names<Optimizer>;
      values_ = [](void const* at) { return values_of(*static_cast<Optimizer const*>(at)); };
    }
    if constexpr (requires { o.patterns(); })
      patterns_ = [](void const* at) -> std::span<std::string const> {
        return static_cast<Optimizer const*>(at)->patterns();
      };
    if constexpr (requires { requires Optimizer::skips_steps; }) skips_steps_ = true;
  }
  /// The same of another optimizer of the type.
  optimizer_ref of(void const* other) const {
    auto made = *this;
    made.optimizer_ = other;
    return made;
  }

  std::span<std::string_view const> states() const { return states_; }
  std::span<std::string_view const> numbers() const { return numbers_; }
  bool skips_steps() const { return skips_steps_; }
  std::vector<scheduled> values() const { return values_ ? values_(optimizer_) : std::vector<scheduled>(); }
  /// Of paths of weights that it treats apart; none where it has no such member.
  std::span<std::string const> patterns() const {
    return patterns_ ? patterns_(optimizer_) : std::span<std::string const>();
  }
  std::vector<tensor_type> state_types(tensor const& weight, std::string_view path) const {
    return state_types_(optimizer_, weight, path);
  }
  void update(tensor const& w, tensor const& g, std::span<tensor const> states, update_inputs& in) const {
    update_(optimizer_, w, g, states, in);
  }

 private:
  void const* optimizer_;
  std::span<std::string_view const> states_, numbers_;
  bool skips_steps_ = false;
  std::vector<scheduled> (*values_)(void const*) = nullptr;
  std::span<std::string const> (*patterns_)(void const*) = nullptr;
  std::vector<tensor_type> (*state_types_)(void const*, tensor const& weight, std::string_view path);
  void (*update_)(void const*, tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in);
};
}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/optimizer.ipp>
#endif
