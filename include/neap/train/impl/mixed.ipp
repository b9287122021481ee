// The bodies of <neap/train/mixed.hpp>.
#pragma once

#include <neap/train/mixed.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void require_mixed(mixed const& m, std::source_location at) {
  auto const refuse = [&](auto const&... what) {
    throw_error(context_access::place(at), {"training_step: ", what...});
  };
  if (!is_low(m.element)) refuse("mixed precision computes in bf16 or f16, not in ", name_of(m.element));
  if (!(m.loss_scale > 0 && m.loss_scale < std::numeric_limits<double>::infinity()))
    refuse("the loss scale must be a finite number above 0, got ", m.loss_scale);
  if (m.growth_steps < 1) refuse("the loss scale grows after at least 1 step, got ", m.growth_steps);
  if (!(m.growth >= 1 && m.growth < std::numeric_limits<double>::infinity()))
    refuse("the loss scale grows by a factor of at least 1, got ", m.growth);
  if (!(m.backoff > 0 && m.backoff <= 1))
    refuse("the loss scale shrinks by a factor above 0 and at most 1, got ", m.backoff);
  if (!(m.min_loss_scale > 0 && m.min_loss_scale <= m.max_loss_scale && m.max_loss_scale <= 0x1p126))
    refuse("the loss scale moves between numbers above 0 and at most 2^126, got ", m.min_loss_scale, " and ",
           m.max_loss_scale);
  if (m.max_skipped < 0) refuse("max_skipped must not be negative, got ", m.max_skipped, "; 0 is any number");
}

}  // namespace detail
}}  // namespace neap::v0
