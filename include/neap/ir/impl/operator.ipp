// The bodies of <neap/ir/operator.hpp>.
#pragma once

#include <neap/ir/operator.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC gradient_context::gradient_context(op_emitter& to, std::span<value_id const> in,
                                             std::span<value_id const> out, std::span<value_id const> out_gradient,
                                             std::span<bool const> wanted)
    : to_(to),
      in_(in),
      out_(out),
      out_gradient_(out_gradient),
      wanted_(wanted),
      gradient_(in.size(), nothing<value_id>),
      asked_(out.size()) {}

NEAP_FUNC attribute_value attribute_field::get(void const* op) const {
  using enum detail::member_form;
  void const* const p = at(const_cast<void*>(op));
  auto const integer = [](auto x) { return static_cast<std::int64_t>(x); };
  switch (form) {
    case boolean: return *static_cast<bool const*>(p);
    case i8: return integer(detail::read_member<std::int8_t>(p));
    case u8: return integer(detail::read_member<std::uint8_t>(p));
    case i16: return integer(detail::read_member<std::int16_t>(p));
    case u16: return integer(detail::read_member<std::uint16_t>(p));
    case i32: return integer(detail::read_member<std::int32_t>(p));
    case u32: return integer(detail::read_member<std::uint32_t>(p));
    case i64: return integer(detail::read_member<std::int64_t>(p));
    case u64: return integer(detail::read_member<std::uint64_t>(p));
    case f32: return static_cast<double>(*static_cast<float const*>(p));
    case f64: return *static_cast<double const*>(p);
    case element: return *static_cast<dtype const*>(p);
    case dims: return *static_cast<extents const*>(p);
    case program: break;
  }
  return *static_cast<element_program const*>(p);
}

NEAP_FUNC void attribute_field::set(void* op, attribute_value const& v) const {
  using enum detail::member_form;
  void* const p = at(op);
  auto const integer = [&v] { return std::get<std::int64_t>(v); };
  switch (form) {
    case boolean: *static_cast<bool*>(p) = std::get<bool>(v); break;
    case i8: detail::write_member<std::int8_t>(p, integer()); break;
    case u8: detail::write_member<std::uint8_t>(p, integer()); break;
    case i16: detail::write_member<std::int16_t>(p, integer()); break;
    case u16: detail::write_member<std::uint16_t>(p, integer()); break;
    case i32: detail::write_member<std::int32_t>(p, integer()); break;
    case u32: detail::write_member<std::uint32_t>(p, integer()); break;
    case i64: detail::write_member<std::int64_t>(p, integer()); break;
    case u64: detail::write_member<std::uint64_t>(p, integer()); break;
    case f32: *static_cast<float*>(p) = static_cast<float>(std::get<double>(v)); break;
    case f64: *static_cast<double*>(p) = std::get<double>(v); break;
    case element: *static_cast<dtype*>(p) = std::get<dtype>(v); break;
    case dims: *static_cast<extents*>(p) = std::get<extents>(v); break;
    case program: *static_cast<element_program*>(p) = std::get<element_program>(v); break;
  }
}

NEAP_FUNC void shape_context::require_arity(int least, int most) const {
  require(arity() >= least && arity() <= most, "takes ", least, least == most ? "" : " to ",
          least == most ? std::string() : std::to_string(most), " inputs, got ", arity());
}

NEAP_FUNC void shape_context::no_input(int i) const {
  fail({"needs input ", i, ", got ", arity(), arity() == 1 ? " input" : " inputs"});
}

NEAP_FUNC void shape_context::fail(std::initializer_list<part> parts) const {
  throw_error({op_, ": ", detail::text_of(parts)});
}

NEAP_FUNC std::vector<value_id> gradient_context::add(operator_view op, std::span<value_id const> in) {
  for (auto v : in)
    if (v == nothing<value_id>)
      throw_error(
          {"its gradient rule gives ", op.facets->name,
           " a value that is not there: grad(j) is nothing<value_id> where the loss does not depend on output j"});
  return to_.emit(op, in);
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC work streaming_work(work_context const& c, double flops_per_element) {
  work w;
  for (auto const& l : c.in) w.read += touched_bytes(l);
  for (auto const& l : c.out) w.written += touched_bytes(l);
  if (!c.out.empty()) w.flops = flops_per_element * static_cast<double>(c.out[0].type.count());
  return w;
}

NEAP_FUNC void check_rules(shape_context const& c, void (*relate)(void const*, dim_context&), void const* op) {
  c.require(!c.outputs().empty(), "its infer() gives no output: c.fresh(type), c.view(input, layout), c.update(input)");
  plain_vector<tensor_layout> out;
  for (auto const& o : c.outputs()) {
    if (o.of >= 0) (void)c.layout(o.of);
    out.push_back(o.layout);
  }
  dim_context dims(c.inputs(), {out.data(), out.size()});
  try {
    relate(op, dims);
  } catch (error const& e) { c.require(false, e.what()); }
  auto const require = [&](int i, int axis, std::span<tensor_layout const> all, char const* what) {
    c.require(i >= 0 && static_cast<std::size_t>(i) < all.size(), "its relate() joins ", what, i, ", which it has not");
    auto const& t = all[static_cast<std::size_t>(i)].type;
    c.require(axis >= 0 && axis < t.rank(), "its relate() joins axis ", axis, " of ", what, i, ", which is ", t);
  };
  for (auto const& l : dims.links()) {
    require(l.input, l.in_axis, c.inputs(), "input ");
    if (l.output >= 0) require(l.output, l.out_axis, {out.data(), out.size()}, "output ");
  }
}

}  // namespace detail
}}  // namespace neap::v0
