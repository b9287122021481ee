// The bodies of <neap/ir/operators/fused.hpp>.
#pragma once

#include <neap/ir/operators/fused.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <bit>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC std::string fused::fault(std::size_t arity) const {
  using neap::detail::text_of;
  if (arity < 1 || arity > max_inputs || static_cast<std::size_t>(inputs) != arity)
    return text_of({"its program is of ", inputs, " inputs, 1 to ", max_inputs, " are possible, got ", arity});
  if (step_count() == 0 || (more_steps.rank() > 0 && steps.rank() < max_rank))
    return "its program has no steps, or a gap";
  std::uint32_t used = 0;
  int constant = 0;
  for (int k = 0; k < step_count(); ++k) {
    auto const s = step(k);
    auto const* f = detail::step_at(s.row);
    if (!f || packed(k) >> 48 != 0) return text_of({"step ", k, " is no elementwise operator"});
    for (int i = 0; i < fused_step::max_operands; ++i) {
      auto const x = s.operands[static_cast<std::size_t>(i)];
      if (i < f->arguments ? x >= inputs + k : x != 0)
        return text_of({"step ", k, " (", f->name, ") reads what is not there: operand ", x});
      if (i < f->arguments) used |= 1u << x;
    }
    if (s.row == neap::detail::standard_row<cast>) continue;
    for (auto const& a : f->attributes) {
      if (constant == constants.rank()) return text_of({"step ", k, " (", f->name, ") lacks a constant"});
      auto const x = constants[constant++];
      if (a.form == neap::detail::member_form::boolean && x != 0 && x != 1)
        return text_of({"step ", k, " (", f->name, "): ", a.name, " is neither 0 nor 1"});
    }
  }
  if (constant != constants.rank())
    return text_of({"its program has ", constants.rank(), " constants, its steps take ", constant});
  for (int x = 0; x + 1 < static_cast<int>(inputs) + step_count(); ++x)
    if ((used >> x & 1) == 0)
      return text_of({x < inputs ? "input " : "step ", x < inputs ? x : x - static_cast<int>(inputs), " is not read"});
  std::array<int, max_steps> of_step{};
  if (auto const needed = rooms(of_step); needed > max_rooms)
    return text_of({needed, " results wait at once, at most ", max_rooms, " may"});
  return {};
}

NEAP_FUNC int fused::rooms(std::array<int, max_steps>& of_step) const {
  int last_read[max_steps]{}, most = 0;
  for (int k = 0; k < step_count(); ++k)
    for (int x : step(k).operands)
      if (x >= inputs) last_read[x - inputs] = k;
  for (int k = 0; k + 1 < step_count(); ++k) {
    std::uint32_t taken = 0;  // by results that are read after this step
    for (int x = 0; x < k; ++x)
      if (last_read[x] > k) taken |= 1u << of_step[static_cast<std::size_t>(x)];
    int const room = std::countr_one(taken);
    of_step[static_cast<std::size_t>(k)] = room;
    most = std::max(most, room + 1);
  }
  return most;
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op { namespace detail {

template <class Op>
constexpr int step_arguments() {
  if constexpr (scalar_operator<Op>) return Op::map_inputs;
  else return std::is_same_v<Op, where> ? 3 : 1;
}

template <class Op>
constexpr step_operator step_of() {
  static_assert(sizeof(Op) <= max_step_bytes);
  using functions = neap::detail::facet_functions<Op>;
  step_operator s{Op::name,
                  neap::detail::standard_row<Op>,
                  step_arguments<Op>(),
                  __is_empty(Op) ? 0 : static_cast<std::uint32_t>(sizeof(Op)),
                  neap::detail::flops_v<Op>,
                  &functions::construct,
                  &functions::infer,
                  {}};
  if constexpr (neap::detail::has_attributes<Op>)
    s.attributes = {neap::detail::attribute_table<Op>::fields.data(), neap::detail::attribute_table<Op>::fields.size()};
  return s;
}
template <class... Op>
constexpr std::array<step_operator, sizeof...(Op)> steps_of(type_list<Op...>) {
  return {step_of<Op>()...};
}
inline constexpr auto step_operators = steps_of(step_list{});

/// The place in step_list of each standard operator, by its row; -1: it can be no step.
inline constexpr auto step_places = [] {
  std::array<std::int16_t, standard_list::size> places{};
  places.fill(-1);
  for (std::size_t k = 0; k < step_operators.size(); ++k)
    places[static_cast<std::size_t>(step_operators[k].row)] = static_cast<std::int16_t>(k);
  return places;
}();

NEAP_FUNC int step_place(int row) {
  return row < 0 || static_cast<std::size_t>(row) >= step_places.size() ? -1
                                                                        : step_places[static_cast<std::size_t>(row)];
}
NEAP_FUNC step_operator const* step_at(int row) {
  auto const place = step_place(row);
  return place < 0 ? nullptr : &step_operators[static_cast<std::size_t>(place)];
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC fused_step fused::step(int k) const {
  auto const bits = packed(k);
  auto const byte = [bits](int i) { return static_cast<int>(bits >> 8 * i & 0xff); };
  return {byte(0) | byte(1) << 8, static_cast<dtype>(byte(2)), {byte(3), byte(4), byte(5)}};
}

NEAP_FUNC int fused::attributes_of(int k, int constant, void* to) const {
  auto const s = step(k);
  auto const& f = *detail::step_at(s.row);
  f.construct(to);
  if (s.row == neap::detail::standard_row<cast>) {
    static_cast<cast*>(to)->to = s.element;
    return 0;
  }
  for (std::size_t i = 0; i < f.attributes.size(); ++i) {
    auto const bits = constants[constant + static_cast<int>(i)];
    auto const& a = f.attributes[i];
    auto const like = a.get(to);
    if (std::holds_alternative<double>(like)) a.set(to, std::bit_cast<double>(bits));
    else if (std::holds_alternative<bool>(like)) a.set(to, bits != 0);
    else a.set(to, bits);
  }
  return static_cast<int>(f.attributes.size());
}

NEAP_FUNC work fused::cost(work_context const& c) const {
  double flops = 0;
  for (int k = 0; k < step_count(); ++k) flops += detail::step_at(step(k).row)->flops;
  return detail::streaming_work(c, flops);
}

NEAP_FUNC void fused::infer(shape_context& c) const {
  auto const wrong = fault(static_cast<std::size_t>(c.arity()));
  c.require(wrong.empty(), wrong);
  plain_vector<tensor_layout> values;
  bool wide = false, narrow = false;
  auto const see = [&](tensor_layout const& l) {
    auto const t = l.type.element;
    c.require(t <= dtype::f16 || t == dtype::boolean, "computes with floating numbers and booleans, not with ", l.type);
    wide = wide || t == dtype::f64, narrow = narrow || (t != dtype::f64 && t != dtype::boolean);
    values.push_back(l);
  };
  for (auto const& l : c.inputs()) see(l);
  for_each_step([&](int k, fused_step const& s, detail::step_operator const& f, void const* bytes) {
    plain_vector<tensor_layout> in;
    for (int i = 0; i < f.arguments; ++i)
      in.push_back(values[static_cast<std::size_t>(s.operands[static_cast<std::size_t>(i)])]);
    std::string const who = "fused: step " + std::to_string(k) + ": " + std::string(f.name);
    shape_context inner(who, {in.data(), in.size()});
    f.infer(bytes, inner);
    auto const& made = inner.outputs()[0].layout;
    c.require(made.type.element == s.element, "step ", k, " (", f.name, ") makes ", made.type, ", not ", s.element);
    see(made);
  });
  c.require(!wide || !narrow, "computes in f64 or in f32, not in both");
  auto const& last = values.back().type;
  for (std::size_t i = static_cast<std::size_t>(inputs); i < values.size(); ++i)
    c.require(values[i].type.dims == last.dims, "its steps make different shapes, ", values[i].type.dims, " and ",
              last.dims);
  c.fresh(last);
}

NEAP_FUNC std::optional<int> fused_maker::add(operator_view op, dtype element, std::span<int const> operands) {
  return add_step(op.facets->standard_row, op.bytes, element, operands);
}

NEAP_FUNC std::optional<int> fused_maker::add_all(fused const& p, std::span<int const> inputs) {
  std::array<int, fused::max_inputs + fused::max_steps> now{};
  std::copy(inputs.begin(), inputs.end(), now.begin());
  std::optional<int> last;
  p.for_each_step([&](int k, fused_step const& s, detail::step_operator const& f, void const* bytes) {
    std::array<int, fused_step::max_operands> operands{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(f.arguments); ++i)
      operands[i] = now[static_cast<std::size_t>(s.operands[i])];
    if (k > 0 && !last) return;
    last = add_step(s.row, bytes, s.element, std::span(operands).first(static_cast<std::size_t>(f.arguments)));
    if (last) now[inputs.size() + static_cast<std::size_t>(k)] = *last;
  });
  return last;
}

NEAP_FUNC std::optional<int> fused_maker::add_step(int row, void const* attributes, dtype element,
                                                   std::span<int const> operands) {
  int const k = made_.step_count();
  auto const* f = detail::step_at(row);
  bool const is_cast = row == neap::detail::standard_row<cast>;
  if (!f || k == fused::max_steps || operands.size() != static_cast<std::size_t>(f->arguments)) return {};
  if (!is_cast && made_.constants.rank() + static_cast<int>(f->attributes.size()) > fused::max_constants) return {};
  auto bits = static_cast<std::int64_t>(row) | static_cast<std::int64_t>(element) << 16;
  for (std::size_t i = 0; i < operands.size(); ++i)
    bits |= static_cast<std::int64_t>(operands[i]) << (24 + 8 * static_cast<int>(i));
  (k < max_rank ? made_.steps : made_.more_steps).push_back(bits);
  if (!is_cast)
    for (auto const& a : f->attributes) made_.constants.push_back(bits_of(a.get(attributes)));
  return static_cast<int>(made_.inputs) + k;
}

NEAP_FUNC std::int64_t fused_maker::bits_of(attribute_value const& v) {
  if (auto const* real = std::get_if<double>(&v)) return std::bit_cast<std::int64_t>(*real);
  if (auto const* truth = std::get_if<bool>(&v)) return *truth ? 1 : 0;
  return std::get<std::int64_t>(v);
}

NEAP_FUNC std::string to_string(fused const& p) {
  std::string s;
  auto const value = [&](int x) {
    return x < p.inputs ? "x" + std::to_string(x) : "t" + std::to_string(x - static_cast<int>(p.inputs));
  };
  p.for_each_step([&](int k, fused_step const& step, detail::step_operator const& f, void const* bytes) {
    s += (k ? "; t" : "t") + std::to_string(k) + " = " + std::string(f.name) + "(";
    for (int i = 0; i < f.arguments; ++i) s += (i ? ", " : "") + value(step.operands[static_cast<std::size_t>(i)]);
    s += ")";
    for (auto const& a : f.attributes) {
      auto const v = a.get(bytes);
      s += " {" + std::string(a.name) + " ";
      if (auto const* real = std::get_if<double>(&v)) s += neap::detail::text_of({*real});
      else if (auto const* truth = std::get_if<bool>(&v)) s += *truth ? "true" : "false";
      else if (auto const* element = std::get_if<dtype>(&v)) s += name_of(*element);
      else s += std::to_string(std::get<std::int64_t>(v));
      s += "}";
    }
  });
  return s;
}

}}}  // namespace neap::v0::op
