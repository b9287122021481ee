// The bodies of <neap/train/loss.hpp>.
#pragma once

#include <neap/train/loss.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC part_kinds kinds_of(std::initializer_list<model_ref> parts) {
  part_kinds k;
  for (auto const& part : parts)
    part.each_tensor([&](tensor& t, std::string const&) {
      if (t.is_empty()) return;
      if (k.first.empty()) k.first = to_string(t.type());
      (is_floating(t.element()) ? k.floats : k.whole) = true;
    });
  return k;
}

NEAP_FUNC void refuse_parts(error const& e, part_kinds const& inputs, part_kinds const& target) {
  std::string what = e.what();
  auto const names = [&](char const* text) { return what.find(text) != what.npos; };
  bool const wants_floats = names("element types differ") || names("needs f") || names("floating");
  bool const wants_whole = names("i64");
  bool const swapped = (inputs.whole && !inputs.floats && target.floats && !target.whole && wants_floats) ||
                       (inputs.floats && !inputs.whole && target.whole && !target.floats && wants_whole);
  if (!swapped) throw;
  if (auto const behind = what.find(": are whole numbers"); behind != what.npos) what.resize(behind);
  if (auto const behind = what.find(": cast"); behind != what.npos) what.resize(behind);
  throw_error(context_access::place({}),
              {"the parts of the batch seem to be swapped: the model got ", inputs.first, ", the target is ",
               target.first, ", and the target comes last (", what, ")"});
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor cross_entropy::operator()(tensor const& logits, tensor const& targets, std::source_location at) const {
  return cross_entropy_loss(logits, targets, ignored, label_smoothing, at);
}

NEAP_FUNC tensor mse::operator()(tensor const& prediction, tensor const& target, std::source_location at) const {
  return mse_loss(prediction, target, at);
}

NEAP_FUNC tensor binary_cross_entropy_with_logits::operator()(tensor const& logits, tensor const& targets,
                                                              std::source_location at) const {
  return binary_cross_entropy_with_logits_loss(logits, targets, loss_reduction::mean, at);
}

NEAP_FUNC tensor binary_cross_entropy::operator()(tensor const& probabilities, tensor const& targets,
                                                  std::source_location at) const {
  return binary_cross_entropy_loss(probabilities, targets, loss_reduction::mean, at);
}

NEAP_FUNC tensor kl_divergence::operator()(tensor const& log_probabilities, tensor const& targets,
                                           std::source_location at) const {
  return kl_divergence_loss(log_probabilities, targets, {.log_target = log_target}, at);
}

NEAP_FUNC tensor huber::operator()(tensor const& prediction, tensor const& target, std::source_location at) const {
  return huber_loss(prediction, target, delta, loss_reduction::mean, at);
}

NEAP_FUNC tensor smooth_l1::operator()(tensor const& prediction, tensor const& target, std::source_location at) const {
  return smooth_l1_loss(prediction, target, beta, loss_reduction::mean, at);
}

}}  // namespace neap::v0
