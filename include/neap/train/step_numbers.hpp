// The numbers of a training step that may be others in each step: the optimizer's (rate, decay...), by groups of weights,
// the scale of the loss, a seed of dropout's draws. The program reads them as tensors; before each step they are written
// there, from schedules and from what the caller says of this one step:
//
//   run(batch, {.rate = 1e-4});
#pragma once

#include <neap/core/philox.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/parameter.hpp>
#include <neap/model/parameters.hpp>
#include <neap/train/mixed.hpp>
#include <neap/train/path_pattern.hpp>
#include <neap/train/scheduled.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// What one step shall use instead of what the optimizer and its schedules say. A rate stands for the base rate: groups
/// multiply it by their factors, and groups with a rate of their own keep it. An optimizer's further rates (muon's of
/// `others`) go along in proportion.
struct step_settings {
  std::optional<double> rate{}, momentum{}, weight_decay{}, loss_scale{};
  std::optional<std::uint64_t> seed{};  // of dropout's draws in this step: the same seed and step draw the same
};

/// Weights with numbers of their own.
struct parameter_group {
  std::string match;                        // of their paths; * stands for any characters: "*.bias", "head.*"
  std::optional<scheduled> rate{};          // instead of the optimizer's
  double rate_factor = 1;                   // times the optimizer's
  std::optional<scheduled> weight_decay{};  // instead of the optimizer's
};

namespace detail {

/// The scale of the loss that a training finds for itself (train/mixed.hpp).
struct found_scale {
  tensor scale, good_steps;  // the training's states; empty: there is none
  mixed how{};
};

/// Made once for a training step; the program's sources hold what set() writes.
class step_numbers {
 public:
  /// `names` and `values` are the optimizer's. `groups`: the first whose pattern matches a weight's path counts.
  /// `loss_scale` 0: the loss is not scaled.
  step_numbers(std::vector<std::string_view> names, std::vector<scheduled> const& values,
               std::span<parameter_group const> groups, double loss_scale, tensor counter, found_scale found = {});

  tensor const& counter() const { return counter_; }
  tensor const& seed() const { return seed_; }
  bool scales_loss() const { return loss_scale_ != 0 || finds_scale(); }
  bool finds_scale() const { return !found_.scale.is_empty(); }
  found_scale const& found() const { return found_; }
  /// What gradients are multiplied by in this step, where the scale is found; empty when the step has been taken.
  void set_unscale(tensor t) { unscale_ = std::move(t); }
  /// The loss's scale as a number of the loss's type, and what gradients are multiplied by.
  tensor const& scale(dtype t) const { return finds_scale() ? found_.scale : t == dtype::f64 ? scale64_ : scale32_; }
  tensor const& unscale() const { return unscale_; }
  /// The numbers of the group of a weight, in the optimizer's order.
  tensor const& of(std::string_view path);
  /// The pattern of a group that no weight has been found in; empty if there is none.
  std::string_view unused_group() const;
  /// The tensors that set() writes, and their names.
  std::vector<named_tensor> sources() const;

  /// Other tensors in place of sources(), in their order, of equal types.
  void replace_sources(std::span<tensor const> by);

  /// Writes the numbers of the next step, by the counter of those that were taken. Throws neap::error for settings that
  /// the step has no use for.
  void set(step_settings const& s, std::source_location at) const;
  /// The same for the step of this number.
  void set(step_settings const& s, std::int64_t step, std::source_location at) const;

 private:
  /// What a number must be, by its name; of names that are not the library's nothing is known.
  enum class demand : std::uint8_t { none, not_negative, below_one };
  demand demand_on(std::size_t k) const;
  static bool may_be(demand d, double x);
  /// Throws neap::error if a group changes a number that the optimizer has not.
  void require_number(parameter_group const& g, char const* what, bool changed) const;
  /// "rate", and "others.rate" of an optimizer that updates some weights in another way.
  bool is_named(std::size_t k, std::string_view what) const;

  struct group {
    std::string match;
    std::vector<scheduled> values;
    tensor numbers{};
    double rate_factor = 1;
    bool own_rate = false, own_decay = false, used = false;
  };
  static tensor number(dtype t, shape const& s = {});

  std::vector<std::string_view> names_;
  std::vector<group> groups_;  // the first is of all that are in no other
  tensor counter_, seed_, scale32_, scale64_, unscale_;
  found_scale found_;
  double loss_scale_;
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/step_numbers.ipp>
#endif
