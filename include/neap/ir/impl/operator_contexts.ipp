// The bodies of <neap/ir/operator_contexts.hpp>.
#pragma once

#include <neap/ir/operator_contexts.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/operator_facets.hpp>

namespace neap { inline namespace v0 {

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

NEAP_FUNC void dim_context::aligned(int input, int output) {
  auto const& a = in(input).dims;
  auto const& b = out(output).dims;
  for (int i = a.rank() - 1, j = b.rank() - 1; i >= 0 && j >= 0; --i, --j)
    if (a[i] == b[j]) same(input, i, output, j);
}

NEAP_FUNC tensor_layout const& dim_context::at(std::span<tensor_layout const> all, int i, char const* what) {
  if (i < 0 || static_cast<std::size_t>(i) >= all.size())
    throw_error({"its relate() asks for ", what, i, ", which it has not"});
  return all[static_cast<std::size_t>(i)];
}

NEAP_FUNC void dim_context::add(int i, int a, int o, int b, combine how) {
  links_.push_back({static_cast<std::int16_t>(i), static_cast<std::int16_t>(a), static_cast<std::int16_t>(o),
                    static_cast<std::int16_t>(b), how});
}

NEAP_FUNC gradient_context::gradient_context(op_emitter& to, std::span<value_id const> in,
                                             std::span<value_id const> out, std::span<value_id const> out_gradient,
                                             std::span<bool const> wanted)
    : to_(to),
      in_(in),
      out_(out),
      out_gradient_(out_gradient),
      wanted_(wanted),
      gradient_(in.size(), nothing<value_id>),
      read_(out.size()) {}

NEAP_FUNC value_id gradient_context::grad(int j) {
  read_[checked(j, out_.size(), "output ")] = true;
  return out_gradient_[static_cast<std::size_t>(j)];
}

NEAP_FUNC int gradient_context::unused_gradient() const {
  for (std::size_t j = 0; j < read_.size(); ++j)
    if (!read_[j] && out_gradient_[j] != nothing<value_id>) return static_cast<int>(j);
  return -1;
}

NEAP_FUNC std::size_t gradient_context::checked(int i, std::size_t count, char const* what) {
  if (i < 0 || static_cast<std::size_t>(i) >= count)
    throw_error({"its gradient rule speaks of ", what, i, ", which it has not"});
  return static_cast<std::size_t>(i);
}

NEAP_FUNC std::vector<value_id> gradient_context::add(operator_view op, std::span<value_id const> in) {
  for (auto v : in)
    if (v == nothing<value_id>)
      throw_error(
          {"its gradient rule gives ", op.facets->name,
           " a value that is not there: grad(j) is nothing<value_id> where the loss does not depend on output j"});
  return to_.emit(op, in);
}

namespace detail {

NEAP_FUNC double touched_bytes(tensor_layout const& l) {
  double n = static_cast<double>(size_of(l.type.element));
  for (int i = 0; i < l.type.rank(); ++i)
    if (l.strides[i] != 0) n *= static_cast<double>(l.type.dims[i]);
  return n;
}

NEAP_FUNC work streaming_work(work_context const& c, double flops_per_element) {
  work w;
  for (auto const& l : c.in) w.read += touched_bytes(l);
  for (auto const& l : c.out) w.written += touched_bytes(l);
  if (!c.out.empty()) w.flops = flops_per_element * static_cast<double>(c.out[0].type.count());
  return w;
}

}  // namespace detail

}}  // namespace neap::v0
