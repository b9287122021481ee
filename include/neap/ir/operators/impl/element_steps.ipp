// The bodies of <neap/ir/operators/element_steps.hpp> and <neap/ir/element_program.hpp>.
#pragma once

#include <neap/ir/operators/element_steps.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/text_part.hpp>

#include <algorithm>
#include <bit>

namespace neap { inline namespace v0 {

NEAP_FUNC std::string element_program::fault(std::size_t arity) const {
  using detail::text_of;
  if (arity < 1 || arity > max_inputs || inputs != arity)
    return text_of({"its program is of ", inputs, " inputs, 1 to ", max_inputs, " are possible, got ", arity});
  if (empty() || step_count > max_steps || constant_count > max_constants)
    return "its program has no steps, or too many";
  std::uint64_t used[2]{};  // of inputs, of steps
  int constant = 0;
  for (int k = 0; k < step_count; ++k) {
    auto const& s = step(k);
    auto const* f = op::detail::step_at(s.row);
    if (!f || s.element > dtype::boolean) return text_of({"step ", k, " is no elementwise operator"});
    for (int i = 0; i < element_step::max_operands; ++i) {
      auto const x = s.operands[static_cast<std::size_t>(i)];
      if (i < f->arguments ? x >= inputs + k : x != 0)
        return text_of({"step ", k, " (", f->name, ") reads what is not there: operand ", x});
      if (i < f->arguments) used[x >= inputs] |= std::uint64_t{1} << (x >= inputs ? x - inputs : x);
    }
    if (is<op::cast>(k)) continue;
    for (auto const& a : f->attributes) {
      if (constant == constant_count) return text_of({"step ", k, " (", f->name, ") lacks a constant"});
      auto const x = constants[static_cast<std::size_t>(constant++)];
      if (a.form == detail::member_form::boolean && x != 0 && x != 1)
        return text_of({"step ", k, " (", f->name, "): ", a.name, " is neither 0 nor 1"});
    }
  }
  if (constant != constant_count)
    return text_of({"its program has ", constant_count, " constants, its steps take ", constant});
  if (int const x = std::countr_one(used[0]); x < inputs) return text_of({"input ", x, " is not read"});
  if (int const x = std::countr_one(used[1]); x + 1 < step_count) return text_of({"step ", x, " is not read"});
  std::array<int, max_steps> of_step{};
  if (auto const needed = registers(of_step); needed > max_registers)
    return text_of({needed, " results wait at once, at most ", max_registers, " may"});
  return {};
}

NEAP_FUNC int element_program::registers(std::array<int, max_steps>& of_step) const {
  int last_read[max_steps]{}, most = 0;
  for (int k = 0; k < step_count; ++k)
    for (int x : step(k).operands)
      if (x >= inputs) last_read[x - inputs] = k;
  for (int k = 0; k + 1 < step_count; ++k) {
    std::uint64_t taken = 0;  // by results that are read after this step
    for (int x = 0; x < k; ++x)
      if (last_read[x] > k) taken |= std::uint64_t{1} << of_step[static_cast<std::size_t>(x)];
    int const lowest = std::countr_one(taken);
    of_step[static_cast<std::size_t>(k)] = lowest;
    most = std::max(most, lowest + 1);
  }
  return most;
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace op::detail {

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
                  static_cast<std::uint32_t>(neap::detail::name_digest(Op::name) >> 33),
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

/// A hash table of the steps' codes, probed linearly: the place in step_list, or -1. Codes are unique.
inline constexpr auto step_codes = [] {
  static_assert(step_operators.size() <= 128);
  std::array<std::int8_t, 256> places{};
  places.fill(-1);
  for (std::size_t k = 0; k < step_operators.size(); ++k) {
    auto at = step_operators[k].code % places.size();
    while (places[at] >= 0) {
      if (step_operators[static_cast<std::size_t>(places[at])].code == step_operators[k].code)
        throw "neap: two steps have one code: name one of them otherwise";
      at = (at + 1) % places.size();
    }
    places[at] = static_cast<std::int8_t>(k);
  }
  return places;
}();
/// The row of the step with this code; -1: there is none.
inline int row_of_code(std::uint32_t code) {
  for (auto at = code % step_codes.size(); step_codes[at] >= 0; at = (at + 1) % step_codes.size())
    if (auto const& s = step_operators[static_cast<std::size_t>(step_codes[at])]; s.code == code) return s.row;
  return -1;
}

NEAP_FUNC int step_place(int row) {
  return row < 0 || static_cast<std::size_t>(row) >= step_places.size() ? -1
                                                                        : step_places[static_cast<std::size_t>(row)];
}

}}}  // namespace neap::v0::op::detail

namespace neap { inline namespace v0 {

namespace detail {
NEAP_FUNC step_operator const* step_at(int row) {
  auto const place = op::detail::step_place(row);
  return place < 0 ? nullptr : &op::detail::step_operators[static_cast<std::size_t>(place)];
}
}  // namespace detail

NEAP_FUNC int element_program::attributes_of(int k, int constant, void* to) const {
  auto const& f = *op::detail::step_at(step(k).row);
  f.construct(to);
  if (is<op::cast>(k)) {
    static_cast<op::cast*>(to)->to = step(k).element;
    return 0;
  }
  for (auto const& a : f.attributes) {
    auto const bits = constants[static_cast<std::size_t>(constant++)];
    if (a.form == detail::member_form::f64) a.set(to, std::bit_cast<double>(bits));
    else if (a.form == detail::member_form::boolean) a.set(to, bits != 0);
    else a.set(to, bits);
  }
  return static_cast<int>(f.attributes.size());
}

NEAP_FUNC double element_program::flops() const {
  double all = 0;
  for (int k = 0; k < step_count; ++k) all += op::detail::step_at(step(k).row)->flops;
  return all;
}

NEAP_FUNC void element_program::infer(shape_context& c) const {
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
  for_each_step([&](int k, element_step const& s, op::detail::step_operator const& f, void const* bytes) {
    plain_vector<tensor_layout> in;
    for (int i = 0; i < f.arguments; ++i) in.push_back(values[s.operands[static_cast<std::size_t>(i)]]);
    std::string const who = "fused: step " + std::to_string(k) + ": " + std::string(f.name);
    shape_context inner(who, {in.data(), in.size()});
    f.infer(bytes, inner);
    auto const& made = inner.outputs()[0].layout;
    c.require(made.type.element == s.element, "step ", k, " (", f.name, ") makes ", made.type, ", not ", s.element);
    see(made);
  });
  c.require(!wide || !narrow, "computes in f64 or in f32, not in both");
  auto const& result = values.back().type;
  for (std::size_t i = inputs; i < values.size(); ++i)
    c.require(values[i].type.dims == result.dims, "its steps make different shapes, ", values[i].type.dims, " and ",
              result.dims);
  c.fresh(result);
}

NEAP_FUNC std::optional<int> element_program::add(operator_view op, dtype element, std::span<int const> operands) {
  return add(op.facets->standard_row, op.bytes, element, operands);
}

NEAP_FUNC std::optional<int> element_program::add_all(element_program const& p, std::span<int const> values) {
  std::array<int, max_inputs + max_steps> now{};
  std::copy(values.begin(), values.end(), now.begin());
  std::optional<int> made;
  p.for_each_step([&](int k, element_step const& s, op::detail::step_operator const& f, void const* bytes) {
    std::array<int, element_step::max_operands> operands{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(f.arguments); ++i) operands[i] = now[s.operands[i]];
    if (k > 0 && !made) return;
    made = add(s.row, bytes, s.element, std::span(operands).first(static_cast<std::size_t>(f.arguments)));
    if (made) now[values.size() + static_cast<std::size_t>(k)] = *made;
  });
  return made;
}

NEAP_FUNC std::optional<int> element_program::add(int row, void const* attributes, dtype element,
                                                  std::span<int const> operands) {
  auto const* f = op::detail::step_at(row);
  bool const is_cast = row == detail::standard_row<op::cast>;
  if (!f || step_count == max_steps || operands.size() != static_cast<std::size_t>(f->arguments)) return {};
  if (!is_cast && constant_count + f->attributes.size() > max_constants) return {};
  auto& s = steps[step_count];
  s.row = static_cast<std::uint8_t>(row), s.element = element;
  for (std::size_t i = 0; i < operands.size(); ++i) s.operands[i] = static_cast<std::uint8_t>(operands[i]);
  if (!is_cast)
    for (auto const& a : f->attributes) {
      auto const v = a.get(attributes);
      auto& bits = constants[constant_count++];
      if (auto const* real = std::get_if<double>(&v)) bits = std::bit_cast<std::int64_t>(*real);
      else if (auto const* truth = std::get_if<bool>(&v)) bits = *truth ? 1 : 0;
      else bits = std::get<std::int64_t>(v);
    }
  return inputs + step_count++;
}

NEAP_FUNC plain_vector<std::int64_t> element_program::numbers() const {
  plain_vector<std::int64_t> all{inputs, step_count, constant_count};
  for (int k = 0; k < step_count; ++k) {
    auto const& s = step(k);
    auto const* f = op::detail::step_at(s.row);
    auto bits = std::int64_t{f ? f->code : 0} << 32 | static_cast<std::int64_t>(s.element);
    for (std::size_t i = 0; i < s.operands.size(); ++i) bits |= std::int64_t{s.operands[i]} << (8 + 8 * i);
    all.push_back(bits);
  }
  for (std::size_t i = 0; i < constant_count; ++i) all.push_back(constants[i]);
  return all;
}

NEAP_FUNC std::optional<element_program> element_program::of_numbers(std::span<std::int64_t const> numbers) {
  auto const is_count = [&](std::size_t i, int most) { return numbers[i] >= 0 && numbers[i] <= most; };
  if (numbers.size() < 3 || !is_count(0, max_inputs) || !is_count(1, max_steps) || !is_count(2, max_constants) ||
      numbers.size() != static_cast<std::size_t>(3 + numbers[1] + numbers[2]))
    return {};
  element_program p(static_cast<std::size_t>(numbers[0]));
  p.step_count = static_cast<std::uint8_t>(numbers[1]), p.constant_count = static_cast<std::uint8_t>(numbers[2]);
  for (std::size_t k = 0; k < p.step_count; ++k) {
    auto const bits = numbers[3 + k];
    auto const byte = [bits](std::size_t i) { return static_cast<std::uint8_t>(bits >> 8 * i & 0xff); };
    int const row = op::detail::row_of_code(static_cast<std::uint32_t>(bits >> 32));
    if (bits < 0 || row < 0) return {};
    p.steps[k] = {static_cast<std::uint8_t>(row), static_cast<dtype>(byte(0)), {byte(1), byte(2), byte(3)}};
  }
  std::copy_n(numbers.data() + 3 + p.step_count, p.constant_count, p.constants.begin());
  return p;
}

NEAP_FUNC std::string to_string(element_program const& p) {
  std::string s;
  auto const value = [&](int x) { return x < p.inputs ? "x" + std::to_string(x) : "t" + std::to_string(x - p.inputs); };
  p.for_each_step([&](int k, element_step const& step, op::detail::step_operator const& f, void const* bytes) {
    s += (k ? "; t" : "t") + std::to_string(k) + " = " + std::string(f.name) + "(";
    for (int i = 0; i < f.arguments; ++i) s += (i ? ", " : "") + value(step.operands[static_cast<std::size_t>(i)]);
    s += ")";
    for (auto const& a : f.attributes) {
      auto const v = a.get(bytes);
      s += " {" + std::string(a.name) + " ";
      if (auto const* real = std::get_if<double>(&v)) s += detail::text_of({*real});
      else if (auto const* truth = std::get_if<bool>(&v)) s += *truth ? "true" : "false";
      else if (auto const* element = std::get_if<dtype>(&v)) s += name_of(*element);
      else s += std::to_string(std::get<std::int64_t>(v));
      s += "}";
    }
  });
  return s;
}

}}  // namespace neap::v0
