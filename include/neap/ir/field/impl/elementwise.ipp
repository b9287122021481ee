// The bodies of <neap/ir/field/elementwise.hpp>.
#pragma once

#include <neap/ir/field/elementwise.hpp>

#include <neap/core/plain_vector.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/operators/update.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace neap { inline namespace v0 { namespace detail {

using arithmetic_rule = field_element (*)(field_arithmetic&, void const*, field_element const*);
template <class Op>
constexpr field_rule field_arithmetic_rule(arithmetic_rule f, std::uint8_t flags = 0) {
  return {standard_row<Op>, static_cast<std::uint8_t>(flags | field_rule::by_place), nullptr, f};
}

inline constexpr field_rule arithmetic_rules[]{
    field_arithmetic_rule<op::add>(
        [](field_arithmetic& f, void const*, field_element const* x) { return f.sum(x[0], x[1]); },
        field_rule::keeps_kernels),
    field_arithmetic_rule<op::sub>(
        [](field_arithmetic& f, void const*, field_element const* x) { return f.sum(x[0], f.negative(x[1])); },
        field_rule::keeps_kernels),
    field_arithmetic_rule<op::mul>(
        [](field_arithmetic& f, void const*, field_element const* x) { return f.product(x[0], x[1]); }),
    field_arithmetic_rule<op::div>(
        [](field_arithmetic& f, void const*, field_element const* x) { return f.product(x[0], f.reciprocal(x[1])); }),
    field_arithmetic_rule<op::neg>(
        [](field_arithmetic& f, void const*, field_element const* x) { return f.negative(x[0]); },
        field_rule::keeps_kernels),
    field_arithmetic_rule<op::reciprocal>(
        [](field_arithmetic& f, void const*, field_element const* x) { return f.reciprocal(x[0]); }),
    field_arithmetic_rule<op::square>(
        [](field_arithmetic& f, void const*, field_element const* x) { return f.product(x[0], x[0]); }),
    field_arithmetic_rule<op::add_scalar>([](field_arithmetic& f, void const* bytes, field_element const* x) {
      return f.sum(x[0], f.constant(operator_at<op::add_scalar>(bytes).value));
    }),
    field_arithmetic_rule<op::mul_scalar>(
        [](field_arithmetic& f, void const* bytes, field_element const* x) {
          return f.scaled(x[0], operator_at<op::mul_scalar>(bytes).value);
        },
        field_rule::keeps_kernels),
};

/// A value's element in another type; p: the place in the value. Casts that changed nothing are passed over.
NEAP_FUNC field_element field_cast(field_evaluator& e, value_id in, dtype to, index_place const& p) {
  auto const& g = e.graph();
  auto const element = [&](value_id v) { return g.type(v).element; };
  for (auto made = g.producer(in);
       made != nothing<op_id> && !e.is_given(in) && is_floating(element(in)) && e.means<op::cast>(made);
       made = g.producer(in)) {
    auto const before = g.inputs(made)[0];
    if (!field_arithmetic::has_all_of(element(in), element(before))) break;
    in = before;
  }
  return e.in_type(element(in), to, e.at(in, p));
}

NEAP_FUNC std::span<field_rule const> elementwise_field_rules() {
  static constexpr auto added = [](field_evaluator& e, field_request const& r) {
    return e.sum(e.argument(r.op, 0, r.place), e.argument(r.op, 1, r.place));
  };
  static constexpr auto rules = [] {
    std::array<field_rule, std::size(arithmetic_rules) + 5> all{};
    auto* to = std::copy(std::begin(arithmetic_rules), std::end(arithmetic_rules), all.data());
    *to++ = {standard_row<op::cast>, field_rule::keeps_kernels | field_rule::by_place,
             [](field_evaluator& e, field_request const& r) {
               return field_cast(e, e.inputs(r.op)[0], e.graph().type(r.result).element, r.place);
             }};
    *to++ = {standard_row<op::store>, field_rule::any_type, by_place_rule.of};
    *to++ = {standard_row<op::wait>, field_rule::any_type, by_place_rule.of};
    *to++ = {standard_row<op::accumulate>, 0, added};
    *to++ = {standard_row<op::combine_into>, 0, [](field_evaluator& e, field_request const& r) {
               return r.as<op::combine_into>().how == combine::sum ? added(e, r) : e.hashed_by_place(r);
             }};
    return all;
  }();
  return rules;
}

NEAP_FUNC field_element field_steps(field_evaluator& e, element_program const& program, std::span<value_id const> in,
                                    field_element const* first, index_place const& p, int wanted) {
  auto const& g = e.graph();
  int const inputs = static_cast<int>(in.size());
  field_element made[element_program::max_steps];
  auto const type_of = [&](int x) {
    return x < inputs ? g.type(in[static_cast<std::size_t>(x)]).element : program.step(x - inputs).element;
  };
  auto const cast = [&](int from, dtype to) {
    auto const is_cast = [&](int x) {
      return x >= inputs && program.step(x - inputs).row == standard_row<op::cast> && is_floating(type_of(x));
    };
    for (; is_cast(from); from = program.step(from - inputs).operands[0])  // casts that changed nothing
      if (!field_arithmetic::has_all_of(type_of(from), type_of(program.step(from - inputs).operands[0]))) break;
    if (from >= inputs) return e.in_type(type_of(from), to, made[from - inputs]);
    auto const v = in[static_cast<std::size_t>(from)];
    return field_cast(e, v, to, field_evaluator::in_broadcast(g.type(v).dims, p));
  };
  field_element result;
  program.for_each_step([&](int k, element_step const& s, op::detail::step_operator const& f, void const* bytes) {
    auto& y = made[k];
    if (s.row == standard_row<op::cast> && is_floating(s.element)) {
      y = cast(s.operands[0], s.element);
    } else {
      plain_vector<field_element> x;
      for (int i = 0; i < f.arguments; ++i) {
        auto const operand = s.operands[static_cast<std::size_t>(i)];
        x.push_back(first && operand == 0 ? *first
                    : operand < inputs    ? e.broadcast(in[static_cast<std::size_t>(operand)], p)
                                          : made[operand - inputs]);
      }
      auto const* rule = std::begin(arithmetic_rules);
      while (rule != std::end(arithmetic_rules) && rule->row != s.row) ++rule;
      if (rule != std::end(arithmetic_rules) && is_floating(s.element)) {
        y = rule->arithmetic(e, bytes, x.data());
      } else {
        auto key = e.operator_key(f.name, 0, f.attributes, bytes);
        for (int i = 0; i < f.arguments; ++i)
          key.mix(static_cast<std::uint64_t>(type_of(s.operands[static_cast<std::size_t>(i)])));
        y = e.function_of(key.mix(static_cast<std::uint64_t>(s.element)).finish(), span_of(x));
      }
    }
    if (y.degree > field_arithmetic::max_degree) y = e.give_up();
    e.see(s.element, y);
    if (k == wanted) result = y;
  });
  return result;
}

}}}  // namespace neap::v0::detail
