// The bodies of <neap/import/aten_call.hpp>.
#pragma once

#include <neap/import/aten_call.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <string>

namespace neap { inline namespace v0 { namespace io { namespace detail {

NEAP_FUNC aten_call::aten_call(aten_node const& n) : n_(n) {
  if (n.args && !n.args->is_null()) {
    if (!n.args->is_array()) throw unsupported_argument{};
    for (std::size_t p = 0; p < n.args->size(); ++p) note((*n.args)[p], static_cast<int>(p), true);
  }
  if (n.kwargs) note(*n.kwargs, -1, false);
}

NEAP_FUNC bool aten_call::takes_inputs_in_turn() const {
  for (std::size_t k = 0; k < operands_.size(); ++k)
    if (operands_[k].input != static_cast<int>(k)) return false;
  return operands_.size() == n_.in.size();
}

NEAP_FUNC int aten_call::tensor(int p) const {
  if (is_null(p)) return -1;
  auto const all = tensors(p);
  if (all.size() != 1 || argument(p).is_array()) throw unsupported_argument{};
  return all[0];
}

NEAP_FUNC std::vector<int> aten_call::tensors(int p) const {
  std::vector<int> all;
  auto const& a = argument(p);
  for (int o = 0; o < operand_count(); ++o)
    if (operands_[static_cast<std::size_t>(o)].argument == p) all.push_back(o);
  if (!a.is_array()) return all;
  std::vector<int> row;
  std::size_t next = 0;
  for (auto const& x : a) {
    if (!x.is_null() && next == all.size()) throw unsupported_argument{};
    row.push_back(x.is_null() ? -1 : all[next++]);
  }
  if (next != all.size()) throw unsupported_argument{};
  return row;
}

NEAP_FUNC std::int64_t aten_call::integer(int p) const {
  auto const& a = argument(p);
  if (!a.is_number_integer() || (a.is_number_unsigned() && a.get<std::uint64_t>() > INT64_MAX))
    throw unsupported_argument{};
  return a.get<std::int64_t>();
}

NEAP_FUNC std::vector<std::int64_t> aten_call::integers(int p) const {
  auto const& a = argument(p);
  if (!a.is_array()) throw unsupported_argument{};
  std::vector<std::int64_t> all;
  for (auto const& x : a) {
    if (!x.is_number_integer() || (x.is_number_unsigned() && x.get<std::uint64_t>() > INT64_MAX))
      throw unsupported_argument{};
    all.push_back(x.get<std::int64_t>());
  }
  return all;
}

NEAP_FUNC void aten_call::loop(tensor_axes const& in, tensor_axes const& out, combine rest, bool in_pieces) {
  one_loop l{{}, {}, rest};
  std::int64_t extent = -1;
  auto const meet = [&](extents const& d, int axis) {
    if (axis < 0 || axis >= d.rank()) throw unsupported_argument{};
    if (extent >= 0 && extent != d[axis] && !in_pieces) throw unsupported_argument{};
    extent = in_pieces && extent >= 0 ? std::min(extent, d[axis]) : d[axis];
  };
  for (auto const& x : in)
    if (x.tensor >= 0) meet(dims(x.tensor), x.axis), l.in.push_back(x);
  for (auto const& x : out)
    if (gives(x.tensor)) meet(out_dims(x.tensor), x.axis), l.out.push_back(x);
  for (int j = 0; j < output_count(); ++j)
    l.has_rest |= gives(j) && std::none_of(l.out.begin(), l.out.end(), [&](auto const& x) { return x.tensor == j; });
  if (extent > 1 && !l.in.empty() && !(l.has_rest && rest == combine::concat)) loops_.push_back(std::move(l));
}

NEAP_FUNC void aten_call::everywhere(int k) {
  tensor_axes in, out;
  for (int o = 0; o < operand_count(); ++o) in.push_back({o, k});
  for (int j = 0; j < output_count(); ++j) out.push_back({j, k});
  loop(in, out);
}

NEAP_FUNC std::vector<dim_link> aten_call::dimension_relations() const {
  std::vector<dim_link> all;
  for (int k = 0; k < static_cast<int>(n_.in.size()); ++k)
    if (std::none_of(operands_.begin(), operands_.end(), [&](auto const& u) { return u.input == k; })) return all;
  int reduced = 0;
  for (auto const& l : loops_) {
    bool agrees = true;
    for (auto const& x : l.in)
      for (int o = 0; o < operand_count(); ++o)
        if (input_of(o) == input_of(x.tensor))
          agrees &=
              std::any_of(l.in.begin(), l.in.end(), [&](auto const& y) { return y.tensor == o && y.axis == x.axis; });
    if (!agrees) continue;
    for (std::size_t a = 0; a < l.in.size(); ++a) {
      int const input = input_of(l.in[a].tensor);
      bool said = false;
      for (std::size_t b = 0; b < a; ++b) said |= input_of(l.in[b].tensor) == input;
      if (said) continue;
      for (auto const& y : l.out)
        all.push_back(link(input, l.in[a].axis, n_.outputs[static_cast<std::size_t>(y.tensor)], y.axis));
      if (l.has_rest) all.push_back(link(input, l.in[a].axis, -1, reduced)), all.back().how = l.rest;
    }
    reduced += l.has_rest;
  }
  return all;
}

NEAP_FUNC void aten_call::note(nlohmann::json const& x, int argument, bool outermost) {
  if (x.is_array() || x.is_object())
    for (auto const& y : x) note(y, outermost ? argument : -1, false);
  if (!x.is_string()) return;
  auto const& text = x.get_ref<std::string const&>();
  if (text.size() < 2 || text.size() > 8 || text[0] != '%') return;
  int k = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') return;
    k = 10 * k + (text[i] - '0');
  }
  if (static_cast<std::size_t>(k) >= n_.in.size()) throw unsupported_argument{};
  operands_.push_back({k, argument});
}

}}}}  // namespace neap::v0::io::detail
