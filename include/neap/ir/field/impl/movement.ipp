// The bodies of <neap/ir/field/movement.hpp>.
#pragma once

#include <neap/ir/field/movement.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/split.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/stored.hpp>

namespace neap { inline namespace v0 { namespace detail {

/// A view along one axis, of which the result's place 0 is the argument's place `start`.
NEAP_FUNC field_element field_shifted(field_evaluator& e, field_request const& r, std::int64_t axis,
                                      std::int64_t start) {
  index_place q = r.place;
  q[op::detail::plain_axis(axis, q.rank())].at += start;
  return e.at(e.inputs(r.op)[0], q);
}

NEAP_FUNC field_element field_split(field_evaluator& e, field_request const& r) {
  auto const axis = r.as<op::split>().axis;
  auto const part = static_cast<std::int64_t>(index(r.result) - index(e.graph().output(r.op)));
  return field_shifted(e, r, axis, part * e.dims(r.result)[op::detail::plain_axis(axis, r.place.rank())]);
}

NEAP_FUNC field_element field_permuted(field_evaluator& e, field_request const& r) {
  auto const& axes = r.as<op::permute>().axes;
  index_place q = r.place;
  for (int k = 0; k < axes.rank(); ++k) q[static_cast<int>(axes[k])] = r.place[k];
  return e.at(e.inputs(r.op)[0], q);
}

NEAP_FUNC field_element field_reshaped(field_evaluator& e, field_request const& r) {
  auto const x = e.inputs(r.op)[0];
  auto const q = e.unlinear(e.dims(x), e.dims(r.result), r.place);
  return e.goes_on() ? e.at(x, q) : field_element{};
}

NEAP_FUNC field_element field_padded(field_evaluator& e, field_request const& r) {
  auto const& pad = r.as<op::pad>();
  auto const x = e.inputs(r.op)[0];
  int const rank = r.place.rank(), k = op::detail::plain_axis(pad.axis, rank);
  index_place q = r.place;
  q[k].at -= pad.before;
  switch (e.in_range(q[k], e.dims(x)[k])) {
    case coordinate_range::inside: return e.at(x, q);
    case coordinate_range::varies: return {};
    case coordinate_range::outside: break;
  }
  if (pad.value != 0) return e.constant(pad.value);
  return rank == 4 && k >= 2 && pad.before == pad.after ? e.kernel_zero() : e.zero();
}

NEAP_FUNC field_element field_joined(field_evaluator& e, field_request const& r) {
  int const k = op::detail::plain_axis(r.as<op::concat>().axis, r.place.rank());
  index_place q = r.place;
  for (auto x : e.inputs(r.op)) {
    auto const n = e.dims(x)[k];
    auto const is = e.side(q[k], n);
    if (is <= 0) return is < 0 ? e.at(x, q) : field_element{};
    q[k].at -= n;
  }
  return e.give_up();
}

NEAP_FUNC field_element field_placed(field_evaluator& e, field_request const& r) {
  auto const& x = r.as<op::place>();
  auto const whole = e.inputs(r.op)[0], piece = e.inputs(r.op)[1];
  int const k = op::detail::plain_axis(x.axis, r.place.rank());
  index_place q = r.place;
  q[k].at -= x.start;
  switch (e.in_range(q[k], e.dims(piece)[k])) {
    case coordinate_range::inside: return e.at(piece, q);
    case coordinate_range::outside: return e.at(whole, r.place);
    case coordinate_range::varies: break;
  }
  return {};
}

NEAP_FUNC field_element field_triangle(field_evaluator& e, field_request const& r) {
  auto const& t = r.as<op::triangle>();
  auto const& p = r.place;
  auto const x = e.at(e.inputs(r.op)[0], p);
  auto const row = p[p.rank() - 2], column = p[p.rank() - 1];
  auto const& dims = e.dims(e.graph().output(r.op));
  auto const lowest = 1 - dims[p.rank() - 2], highest = dims[p.rank() - 1] - 1;  // places right of the diagonal
  if (t.upper ? t.diagonal > highest : t.diagonal < lowest) return e.zero();
  if (t.upper ? t.diagonal <= lowest : t.diagonal >= highest) return x;
  auto const d = column.at - row.at;
  if (row.form == 0 && column.form == 0) return (t.upper ? d >= t.diagonal : d <= t.diagonal) ? x : e.zero();
  if (row.form == 0 || column.form == 0) {  // what is kept begins or ends at some place of the axis that varies
    auto const edge =
        row.form == 0 ? e.side(column, row.at + t.diagonal + !t.upper) : e.side(row, column.at - t.diagonal + t.upper);
    bool const late = row.form == 0 ? edge > 0 : edge < 0;
    return late == t.upper ? x : e.zero();
  }
  // Which places are kept is a free variable of the distance from the diagonal: 1 where one is, else 0.
  auto const tag = index_frame::difference(e.frame()->tag(column), e.frame()->tag(row));
  auto key = e.hash().mix(0x747269616e676c65 + t.upper).mix(static_cast<std::uint64_t>(d - t.diagonal)).mix(tag);
  return e.masked(x, e.variable(key.finish()));
}

/// What was stored: a stored tensor itself has no elements.
NEAP_FUNC field_element field_loaded(field_evaluator& e, field_request const& r) {
  auto const made = store_of(e.graph(), e.inputs(r.op)[0]);
  return made == nothing<op_id> ? e.give_up() : e.at(e.inputs(made)[0], r.place);
}

NEAP_FUNC std::span<field_rule const> movement_field_rules() {
  static constexpr std::uint8_t exact = field_rule::any_type, moves = exact | field_rule::moves,
                                copies = moves | field_rule::keeps_kernels;
  static constexpr field_rule rules[]{
      {standard_row<op::copy>, copies,
       [](field_evaluator& e, field_request const& r) { return e.at(e.inputs(r.op)[0], r.place); }},
      {standard_row<op::load>, copies, &field_loaded},
      {standard_row<op::pad>, copies, &field_padded},
      {standard_row<op::concat>, copies, &field_joined},
      {standard_row<op::reshape>, moves, &field_reshaped},
      {standard_row<op::permute>, moves, &field_permuted},
      {standard_row<op::slice>, moves,
       [](field_evaluator& e, field_request const& r) {
         auto const& x = r.as<op::slice>();
         return field_shifted(e, r, x.axis, x.start);
       }},
      {standard_row<op::split>, moves, &field_split},
      {standard_row<op::broadcast_to>, moves,
       [](field_evaluator& e, field_request const& r) { return e.argument(r.op, 0, r.place); }},
      {standard_row<op::fill>, moves,
       [](field_evaluator& e, field_request const& r) { return e.factor(r.as<op::fill>().value); }},
      {standard_row<op::triangle>, exact, &field_triangle},
      {standard_row<op::place>, exact, &field_placed},
  };
  return rules;
}

}}}  // namespace neap::v0::detail
