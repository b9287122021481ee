// The bodies of <neap/model/functions/movement.hpp>.
#pragma once

#include <neap/model/functions/movement.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC tensor contiguous(tensor const& x, std::source_location at) {
  place_scope const here(at, "contiguous");
  return x.layout().is_dense() ? x : apply(op::copy{}, {x});
}

NEAP_FUNC tensor slice(tensor const& x, std::int64_t axis, std::int64_t start, std::int64_t stop,
                       std::source_location at) {
  place_scope const here(at, "slice");
  int const k = detail::axis_of(x, axis, "slice", at);
  auto const from_end = [&](std::int64_t i) { return i < 0 ? i + x.size(k) : i; };
  return apply(op::slice{k, from_end(start), from_end(stop)}, {x});
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor cast(tensor const& x, dtype to, std::source_location at) {
  place_scope const here(at, "cast");
  return x.element() == to ? x : apply(op::cast{to}, {x});
}

NEAP_FUNC tensor copy(tensor const& x, std::source_location at) { return apply(op::copy{}, {x}, at); }

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool share_memory(tensor const& a, tensor const& b, std::source_location at) {
  if (auto* t = tracer::active()) {
    auto const x = t->value(a, at), y = t->value(b, at);
    return t->editor().graph().storage(x) == t->editor().graph().storage(y);
  }
  return a.storage() && a.storage() == b.storage();
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC void assign(tensor const& to, tensor const& x, std::source_location at) {
  bool const same = !to.is_empty() && !x.is_empty() && detail::share_memory(to, x, at);
  (void)apply(op::assign{}, {to, same ? copy(x, at) : x}, at);
}

NEAP_FUNC tensor reshape(tensor const& x, shape dims, std::source_location at) {
  place_scope const here(at, "reshape");
  std::int64_t rest = 1;
  int open = -1;
  for (int i = 0; i < dims.rank(); ++i) {
    if (dims[i] >= 0) {
      detail::with_place(at, [&] { rest = checked_mul(rest, dims[i]); });
    } else {
      if (open >= 0 || dims[i] != -1)
        throw_error(context_access::place(at), {"reshape: one extent may be -1, got ", dims});
      open = i;
    }
  }
  if (open >= 0) {
    if (rest == 0 || x.count() % rest != 0)
      throw_error(context_access::place(at),
                  {"reshape: from ", x.shape(), " to ", dims, ": element counts do not divide"});
    dims[open] = x.count() / rest;
  }
  if (dims == x.shape()) return x;
  return apply(op::reshape{dims}, {contiguous(x)});
}

NEAP_FUNC tensor flatten(tensor const& x, std::int64_t first, std::source_location at) {
  place_scope const here(at, "flatten");
  int const from = detail::axis_of(x, first, "flatten", at);
  shape dims;
  std::int64_t rest = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (i < from) dims.push_back(x.size(i));
    else rest *= x.size(i);
  dims.push_back(rest);
  return reshape(x, dims);
}

NEAP_FUNC tensor permute(tensor const& x, extents axes, std::source_location at) {
  place_scope const here(at, "permute");
  for (int i = 0; i < axes.rank(); ++i) axes[i] = detail::axis_of(x, axes[i], "permute", at);
  return apply(op::permute{axes}, {x});
}

NEAP_FUNC tensor transpose(tensor const& x, std::int64_t a, std::int64_t b, std::source_location at) {
  place_scope const here(at, "transpose");
  int const i = detail::axis_of(x, a, "transpose", at), j = detail::axis_of(x, b, "transpose", at);
  extents axes;
  for (int k = 0; k < x.rank(); ++k) axes.push_back(k == i ? j : k == j ? i : k);
  return apply(op::permute{axes}, {x});
}

NEAP_FUNC tensor select(tensor const& x, std::int64_t axis, std::int64_t i, std::source_location at) {
  place_scope const here(at, "select");
  int const k = detail::axis_of(x, axis, "select", at);
  if (i < -x.size(k) || i >= x.size(k))
    throw_error(context_access::place(at), {"select: no place ", i, " on axis ", axis, " of ", x.type()});
  if (i < 0) i += x.size(k);
  shape dims = x.shape();
  dims.erase(k);
  return reshape(apply(op::slice{k, i, i + 1}, {x}), dims);
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor first_place(tensor const& x, std::int64_t i, std::source_location at) {
  if (x.rank(at) == 0)
    throw_error(context_access::place(at), {"x[", i, "]: the tensor has no axis to pick from, ", x.type()});
  if (i < -x.size(0) || i >= x.size(0))
    throw_error(context_access::place(at), {"x[", i, "]: there is no such place in ", x.type()});
  return select(x, 0, i, at);
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC std::vector<tensor> split(tensor const& x, std::int64_t parts, std::int64_t axis, std::source_location at) {
  return apply_all(op::split{axis, parts}, {x}, at);
}

NEAP_FUNC tensor unsqueeze(tensor const& x, std::int64_t axis, std::source_location at) {
  place_scope const here(at, "unsqueeze");
  shape dims = x.shape();
  auto const place = axis < 0 ? axis + dims.rank() + 1 : axis;
  if (place < 0 || place > dims.rank())
    throw_error(context_access::place(at), {"unsqueeze: no place ", axis, " in ", x.type()});
  detail::with_place(at, [&] { dims.insert(static_cast<int>(place), 1); });
  return reshape(x, dims);
}

NEAP_FUNC tensor squeeze(tensor const& x, std::int64_t axis, std::source_location at) {
  place_scope const here(at, "squeeze");
  shape dims = x.shape();
  int const k = detail::axis_of(x, axis, "squeeze", at);
  if (dims[k] != 1)
    throw_error(context_access::place(at), {"squeeze: the extent of axis ", axis, " of ", x.type(), " is not 1"});
  dims.erase(k);
  return reshape(x, dims);
}

NEAP_FUNC tensor broadcast_to(tensor const& x, shape const& dims, std::source_location at) {
  place_scope const here(at, "broadcast_to");
  return dims == x.shape() ? x : apply(op::broadcast_to{dims}, {x});
}

NEAP_FUNC tensor concat(std::vector<tensor> const& parts, std::int64_t axis, std::source_location at) {
  return apply_all(op::concat{axis}, std::span<tensor const>(parts), at).front();
}

NEAP_FUNC tensor stack(std::vector<tensor> const& parts, std::int64_t axis, std::source_location at) {
  place_scope const here(at, "stack");
  if (parts.empty()) throw_error(context_access::place(at), {"stack: needs at least one tensor"});
  tensor const& first = parts[0];
  int const rank = first.rank(), k = static_cast<int>(axis < 0 ? axis + rank + 1 : axis);
  if (k < 0 || k > rank)
    throw_error(context_access::place(at), {"stack: no place ", axis, " for a new axis in ", first.type()});
  for (auto const& part : parts)
    if (part.shape() != first.shape())
      throw_error(context_access::place(at), {"stack: shapes differ, ", first.shape(), " and ", part.shape()});
  shape dims = first.shape();
  detail::with_place(at, [&] { dims.insert(k, static_cast<std::int64_t>(parts.size())); });
  if (k < rank) return reshape(concat(parts, k), dims);  // without a copy of parts that are views
  std::vector<tensor> columns;
  for (auto const& part : parts) columns.push_back(unsqueeze(part, -1));
  return concat(columns, -1);
}

NEAP_FUNC tensor pad(tensor const& x, std::int64_t axis, std::int64_t before, std::int64_t after, double value,
                     std::source_location at) {
  if (!x.is_empty()) detail::require_number("pad", x.element(), value, at);
  return apply(op::pad{axis, before, after, value}, {x}, at);
}

NEAP_FUNC tensor tril(tensor const& x, std::int64_t diagonal, std::source_location at) {
  function_scope const named("tril");
  return apply(op::triangle{diagonal, false}, {x}, at);
}

NEAP_FUNC tensor triu(tensor const& x, std::int64_t diagonal, std::source_location at) {
  function_scope const named("triu");
  return apply(op::triangle{diagonal, true}, {x}, at);
}

namespace detail {
/// Numbers as elements of a type, as a tensor that is the same in every step.
NEAP_FUNC tensor constants(std::vector<double> const& all, dtype element, std::source_location at) {
  tensor numbers = detail::make_copy(all, {static_cast<std::int64_t>(all.size())}, at);
  if (element == dtype::f64) return numbers;
  if (!context_access::trace()) return apply(op::cast{element}, {numbers});
  return with_type(element, [&](auto tag) {  // one constant of the trace
    using T = typename decltype(tag)::type;
    std::vector<T> converted;
    for (auto x : all) converted.push_back(detail::convert<T>(x));
    return detail::make_copy(converted, {static_cast<std::int64_t>(all.size())}, at);
  });
}
}  // namespace detail

NEAP_FUNC tensor arange(double start, double stop, double step, dtype element, std::source_location at) {
  place_scope const here(at, "arange");
  auto const refuse = [&](auto const& why) {
    throw_error(context_access::place(at), {"arange: ", why, ", got ", start, ", ", stop, ", ", step});
  };
  double const count = std::ceil((stop - start) / step);
  if (!(count >= 0 && count < 0x1p53)) refuse("the step must lead from start to stop");
  bool const whole = start == std::floor(start) && step == std::floor(step);
  if (!is_floating(element) && !whole) refuse("whole numbers need a whole start and step: name a floating type");
  std::vector<double> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = start + step * static_cast<double>(i);
  return detail::constants(all, element, at);
}

NEAP_FUNC tensor linspace(double start, double stop, std::int64_t count, dtype element, std::source_location at) {
  place_scope const here(at, "linspace");
  if (count < 0 || !is_floating(element))
    throw_error(context_access::place(at),
                {"linspace: a number of floating elements, got ", count, " of ", name_of(element)});
  std::vector<double> all(static_cast<std::size_t>(count), start);
  double const last = static_cast<double>(count - 1);
  for (std::size_t i = 1; i < all.size(); ++i) {  // from either end, so that both are exact
    double const k = static_cast<double>(i);
    all[i] = 2 * k < last ? start + k * ((stop - start) / last) : stop - (last - k) * ((stop - start) / last);
  }
  return detail::constants(all, element, at);
}

NEAP_FUNC tensor repeat(tensor const& x, extents const& times, std::source_location at) {
  place_scope const here(at, "repeat");
  int const added = times.rank() - x.rank();
  if (added < 0) throw_error(context_access::place(at), {"repeat: ", x.type(), " has more axes than ", times});
  shape each;
  int repeated = 0;
  for (int i = 0; i < times.rank(); ++i) {
    if (times[i] < 0)
      throw_error(context_access::place(at),
                  {"repeat: takes a number of at least 0 for each axis of ", x.type(), ", got ", times});
    each.push_back(i < added ? 1 : x.size(i - added));
    repeated += times[i] != 1;
  }
  if (times.rank() + repeated > max_rank) {  // one axis after another
    tensor y = reshape(contiguous(x), each);
    for (int i = times.rank(); i-- > 0;) {
      if (times[i] == 1) continue;
      shape to = y.shape();
      std::int64_t before = 1, row = 1;
      for (int j = 0; j < to.rank(); ++j) (j < i ? before : row) *= to[j];
      to[i] *= times[i];
      y = reshape(broadcast_to(reshape(y, {before, 1, row}), {before, times[i], row}), to);
    }
    return y;
  }
  shape apart, wide, all;  // each axis behind its own number of times
  for (int i = 0; i < times.rank(); ++i) {
    auto const n = each[i];
    if (times[i] != 1) apart.push_back(1), wide.push_back(times[i]);
    apart.push_back(n), wide.push_back(n), all.push_back(n * times[i]);
  }
  return reshape(broadcast_to(reshape(contiguous(x), apart), wide), all);
}

NEAP_FUNC tensor arange(std::int64_t stop, dtype element, std::source_location at) {
  return arange(0, static_cast<double>(stop), 1, element, at);
}

NEAP_FUNC tensor eye(std::int64_t rows, std::int64_t columns, dtype element, std::source_location at) {
  place_scope const here(at, "eye");
  if (rows < 0 || columns < -1)
    throw_error(context_access::place(at), {"eye: numbers of rows and columns, got ", rows, " and ", columns});
  tensor const ones = apply(op::fill{{rows, columns < 0 ? rows : columns}, element, 1}, {});
  return triu(tril(ones));
}

NEAP_FUNC tensor fill(shape const& dims, double value, dtype element, std::source_location at) {
  detail::require_number("fill", element, value, at);
  return apply(op::fill{dims, element, value}, {}, at);
}

}}  // namespace neap::v0
