// Mixed precision of a training step: the model computes in bf16 or f16 (model/precision.hpp), weights and the optimizer's
// states stay f32, gradients arrive in f32.
//
//   auto const step = neap::training_step(model, batch, loss, neap::adamw{}, {.precision = neap::mixed{neap::dtype::bf16}});
//
// f16 has few exponents, so its loss is scaled: it is differentiated times a number, and gradients are divided by it. The
// number is found while training goes on. A step whose gradients have an infinity or a NaN changes nothing: no weight, no
// state, no buffer of the model, and it is not counted; its scale was too large, and the next one is smaller. All of that is
// in the step's program. Scale and count are states of the training, saved and loaded with it: training_state::loss_scale()
// and skipped_steps(), of a trainer run.state().
#pragma once

#include <neap/core/element.hpp>
#include <neap/model/context.hpp>

#include <cstdint>
#include <limits>
#include <source_location>

namespace neap { inline namespace v0 {

struct mixed {
  dtype element = dtype::bf16;  // or f16
  // Of f16, unless training_options::loss_scale gives a scale that stays.
  double loss_scale = 65536;         // at first
  std::int64_t growth_steps = 2000;  // without an overflow, until it grows
  double growth = 2;                 // times the scale
  double backoff = 0.5;              // times the scale, after an overflow
  double min_loss_scale = 1;         // it shrinks no further
  double max_loss_scale = 0x1p32;    // nor grows beyond
  std::int64_t max_skipped = 0;      // steps one after another that may overflow: the last one throws; 0: any number
};

namespace detail {
/// Throws neap::error for a precision that is none.
void require_mixed(mixed const& m, std::source_location at);
}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/mixed.ipp>
#endif
