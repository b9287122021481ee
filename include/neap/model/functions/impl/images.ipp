// The bodies of <neap/model/functions/images.hpp>.
#pragma once

#include <neap/model/functions/images.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC tensor max_pool2d(tensor const& x, op::max_pool2d how, std::source_location at) {
  place_scope const here(at, "max_pool2d");
  return apply(how, {contiguous(x)});
}

NEAP_FUNC tensor avg_pool2d(tensor const& x, op::avg_pool2d how, std::source_location at) {
  place_scope const here(at, "avg_pool2d");
  return apply(how, {contiguous(x)});
}

namespace detail {
/// A pool of images with one row.
template <class Op>
tensor pool_of_rows(char const* who, tensor const& x, pool1d_form how, std::source_location at) {
  place_scope const here(at, who);
  if (x.is_empty() || x.rank() != 3)
    throw_error(context_access::place(at),
                {who, ": takes (n, c, l), got ", x.is_empty() ? std::string("an empty tensor") : to_string(x.type())});
  Op o;
  o.window = {1, how.window}, o.stride = {1, how.stride == 0 ? how.window : how.stride}, o.padding = {0, how.padding};
  return squeeze(apply(o, {contiguous(unsqueeze(x, 2))}), 2);
}
}  // namespace detail

NEAP_FUNC tensor max_pool1d(tensor const& x, pool1d_form how, std::source_location at) {
  return detail::pool_of_rows<op::max_pool2d>("max_pool1d", x, how, at);
}

NEAP_FUNC tensor avg_pool1d(tensor const& x, pool1d_form how, std::source_location at) {
  return detail::pool_of_rows<op::avg_pool2d>("avg_pool1d", x, how, at);
}

NEAP_FUNC tensor adaptive_avg_pool2d(tensor const& x, std::int64_t rows, std::int64_t columns,
                                     std::source_location at) {
  place_scope const here(at, "adaptive_avg_pool2d");
  return apply(op::adaptive_avg_pool2d{rows, columns}, {contiguous(x)});
}

NEAP_FUNC tensor interpolate(tensor const& x, std::int64_t rows, std::int64_t columns, op::interpolate how,
                             std::source_location at) {
  place_scope const here(at, "interpolate");
  how.out_h = rows, how.out_w = columns;
  return apply(how, {contiguous(x)});
}

NEAP_FUNC tensor batch_norm(tensor const& x, tensor const& weight, tensor const& bias, tensor const& running_mean,
                            tensor const& running_variance, batch_norm_form how, std::source_location at) {
  place_scope const here(at, "batch_norm");
  tensor const dense = contiguous(x);
  if (how.fixed_statistics || !context_access::is_training()) {
    auto const used = [&](tensor const& statistic) { return cast(statistic, computed_in(x.element())); };
    return apply(op::batch_norm_inference{how.epsilon},
                 {dense, used(running_mean), used(running_variance), weight, bias});
  }
  auto const out = apply_all(op::batch_norm{how.epsilon}, {dense, weight, bias});
  if (x.count() == 0)
    throw_error(context_access::place(at), {"batch_norm: there are no elements to take statistics of, got ", x.type(),
                                            ": leave out empty batches"});
  auto const count = x.count() / x.size(1);
  apply_all(op::batch_norm_update{how.momentum, how.epsilon, count}, {running_mean, running_variance, out[1], out[2]});
  return out[0];
}

NEAP_FUNC tensor group_norm(tensor const& x, tensor const& weight, tensor const& bias, std::int64_t groups,
                            double epsilon, std::source_location at) {
  place_scope const here(at, "group_norm");
  return apply(op::group_norm{groups, epsilon}, {contiguous(x), weight, bias});
}

}}  // namespace neap::v0
