// The language of rules, the check of what they do, and the order of what they make.
#include <neap/mutate/rewrite.hpp>

#include <neap/ir/verify.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/taso_rules.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/undo_moves.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/graph_maker.hpp"
#include "../support/message.hpp"
#include "../support/plain_run.hpp"

#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

using namespace neap;
using namespace neap::testing;

/// Rules that a user writes, all of them wrong.
namespace wrong {
using neap::match, neap::rule;
using neap::pattern::a, neap::pattern::b, neap::pattern::c, neap::pattern::d, neap::pattern::x, neap::pattern::s,
    neap::pattern::t;
using neap::pattern::add_scalar, neap::pattern::both, neap::pattern::broadcast_to, neap::pattern::cast,
    neap::pattern::concat, neap::pattern::conv2d, neap::pattern::made, neap::pattern::matmul, neap::pattern::mul_scalar,
    neap::pattern::neg, neap::pattern::pad, neap::pattern::permute, neap::pattern::slice, neap::pattern::sum,
    neap::pattern::sum_to, neap::pattern::unary;
namespace op = neap::op;

constexpr auto along = [](match const& m) { return m.as<op::concat>(t); };
constexpr auto along_columns = [](match const&) { return op::concat{1}; };
constexpr auto along_channels = [](match const&) { return op::concat{0}; };
constexpr auto turned = [](match const& m) {
  return op::matmul{!m.as<op::matmul>(s).transpose_a, !m.as<op::matmul>(s).transpose_b};
};
constexpr auto first_columns = [](match const& m) { return op::slice{1, 0, m.dims(a)[1]}; };
constexpr auto last_columns = [](match const& m) { return op::slice{1, m.dims(a)[1], 2 * m.dims(a)[1]}; };
constexpr auto shifted_columns = [](match const& m) { return op::slice{1, m.dims(a)[1] - 1, 2 * m.dims(a)[1] - 1}; };
constexpr auto sum_of_scales = [](match const& m) {
  return op::mul_scalar{m.as<op::mul_scalar>(s).value + m.as<op::mul_scalar>(t).value};
};
constexpr auto rounded_scale = [](match const& m) {
  return op::mul_scalar{m.as<op::mul_scalar>(s).value * m.as<op::mul_scalar>(t).value};
};
template <int Axis>
constexpr auto pad_behind = [](match const&) {
  return op::pad{Axis, 0, 2, 0};
};
constexpr auto swapped_kernel = [](match const&) { return op::permute{{0, 1, 3, 2}}; };
constexpr auto same_slice = [](match const& m) { return m.as<op::slice>(s); };
constexpr auto with_shift = [](match const& m) { return op::conv2d{m.as<op::conv2d>(s)}; };

constexpr rule turned_difference("turned difference", (a - b) >> (b - a));
constexpr rule half_distributed("half distributed", (c * (a + b)) >> (c * a + b));
constexpr rule one_term("one term", (c * (a + b)) >> (c * a + c * a));
constexpr rule wrong_factor("wrong factor", (c * a + c * b) >> ((c + a) * b));
constexpr rule lost_sign("lost sign", (c * (a - b)) >> (c * a + c * b));
constexpr rule forgotten_negative("forgotten negative", (a + neg(b)) >> (a + b));
constexpr rule unturned("unturned", neg(a - b) >> (a - b));
constexpr rule no_negative("no negative", neg(a) >> a);
constexpr rule product_of_difference("product of difference",
                                     (matmul[s](x, a) + matmul[s](x, b)) >> matmul[s](x, a - b));
constexpr rule lost_product("lost product", (matmul[s](x, a) + matmul[s](x, b)) >> matmul[s](x, a));
constexpr rule other_flags("other flags", (matmul[s](x, a) + matmul[t](x, b)) >> matmul[s](x, a + b));
constexpr rule commuted_factors("commuted factors", matmul[s](matmul[s](a, b), c) >> matmul[s](matmul[s](a, c), b));
constexpr rule commuted_product("commuted product", matmul[s](a, b) >> matmul[s](b, a));
constexpr rule transposed_factors("transposed factors", permute(matmul[s](a, b)) >> made<turned>(a, b));
constexpr rule added_scales("added scales", mul_scalar[s](mul_scalar[t](x)) >> made<sum_of_scales>(x));
constexpr rule rounded_scales("rounded scales", mul_scalar[s](mul_scalar[t](x)) >> made<rounded_scale>(x));
constexpr rule one_scale("one scale", (mul_scalar[s](a) + mul_scalar[t](b)) >> mul_scalar[s](a + b));
constexpr rule shift_outside("shift outside", (add_scalar[s](a) * b) >> add_scalar[s](a * b));
constexpr rule shift_after("shift after", matmul[t](add_scalar[s](a), b) >> add_scalar[s](matmul[t](a, b)));
constexpr rule linear_function("linear function", (unary[s](a) + unary[s](b)) >> unary[s](a + b));
constexpr rule function_of_product("function of product", (unary[s](a) * b) >> unary[s](a * b));
constexpr rule scale_inside("scale inside", mul_scalar[t](unary[s](a)) >> unary[s](mul_scalar[t](a)));
constexpr rule turned_concat("turned concat", concat[t](a, b) >> concat[t](b, a));
constexpr rule magis_concat("MAGIS's ConcatMatmul",
                            concat[t](matmul[s](x, a), matmul[s](x, b)) >> matmul[s](x, made<along_columns>(a, b)));
constexpr rule concat_of_factors("concat of factors",
                                 concat[t](matmul[s](a, x), matmul[s](b, x)) >> matmul[s](made<along>(b, a), x));
constexpr rule turned_slices("turned slices", both(matmul[s](x, a), matmul[s](x, b)) >>
                                                  both(made<last_columns>(matmul[s](x, made<along_columns>(a, b))),
                                                       made<first_columns>(matmul[s](x, made<along_columns>(a, b)))));
constexpr rule moved_slice("moved slice", both(matmul[s](x, a), matmul[s](x, b)) >>
                                              both(made<first_columns>(matmul[s](x, made<along_columns>(a, b))),
                                                   made<shifted_columns>(matmul[s](x, made<along_columns>(a, b)))));
constexpr rule turned_kernels("turned kernels",
                              concat[t](conv2d[s](x, a), conv2d[s](x, b)) >> conv2d[s](x, made<along_channels>(b, a)));
constexpr rule padded_behind("padded behind",
                             concat(conv2d[s](x, a), conv2d[t](x, b)) >>
                                 conv2d[t](x, made<along_channels>(made<pad_behind<3>>(made<pad_behind<2>>(a)), b)));
constexpr rule transposed_kernel("transposed kernel", conv2d[s](x, a) >> conv2d[s](x, made<swapped_kernel>(a)));
constexpr rule lost_shift("lost shift", conv2d[s](x, a, b) >> made<with_shift>(x, a));
constexpr rule no_permute("no permute", permute(x) >> x);
constexpr rule one_permute("one permute", permute[s](permute[t](x)) >> permute[s](x));
constexpr rule one_slice("one slice", slice[s](slice[t](x)) >> slice[s](x));
constexpr rule unshifted_slice("unshifted slice", slice[s](pad[t](x)) >> made<same_slice>(x));
constexpr rule sum_of_product("sum of product", sum[s](a* b) >> (sum[s](a) * sum[s](b)));
constexpr rule broadcast_summed_once("broadcast summed once", sum[s](a + b) >> (sum[s](a) + sum[s](b)));
constexpr rule sum_of_broadcast("sum of broadcast", sum_to[s](broadcast_to[t](x)) >> x);
constexpr rule rounded_back("rounded back", cast[s](cast[t](x)) >> x);
constexpr rule square_of_one("square of one", (a * b) >> (a * a));
constexpr rule crossed_concats("crossed concats", (matmul[s](a, b) + matmul[s](c, d)) >>
                                                      matmul[s](made<along_columns>(a, c), made<along_channels>(d, b)));
}  // namespace wrong

namespace {

candidate made_of(graph g) {
  auto order = reverse_post_order{}(g);
  auto r = simulate(g, order, roofline::h100_like());
  return {std::move(g), std::move(order), std::move(r)};
}

struct example {
  rule const* what;
  void (*make)(maker&);
};
#define WRONG(name, ...)                       \
  example {                                    \
    &wrong::name, [](maker& m) { __VA_ARGS__ } \
  }
#define ABC [[maybe_unused]] auto a = m.in({3, 3}), b = m.in({3, 3}), c = m.in({3, 3}), d = m.in({3, 3});
#define IMAGES [[maybe_unused]] auto x = m.in({2, 3, 5, 5}), k = m.in({2, 3, 3, 3}), l = m.in({2, 3, 3, 3});
example const examples[] = {
    WRONG(turned_difference, ABC m.keep(a - b);),
    WRONG(half_distributed, ABC m.keep(c*(a + b));),
    WRONG(one_term, ABC m.keep(c*(a + b));),
    WRONG(wrong_factor, ABC m.keep(c* a + c * b);),
    WRONG(lost_sign, ABC m.keep(c*(a - b));),
    WRONG(forgotten_negative, ABC m.keep(a + (-b));),
    WRONG(unturned, ABC m.keep(-(a - b));),
    WRONG(no_negative, ABC m.keep(tanh(-a));),
    WRONG(product_of_difference, ABC m.keep(mm(a, b) + mm(a, c));),
    WRONG(lost_product, ABC m.keep(mm(a, b) + mm(a, c));),
    WRONG(other_flags, ABC m.keep(mm(a, b) + mm(a, c, false, true));),
    WRONG(commuted_factors, ABC m.keep(mm(mm(a, b), c));),
    WRONG(commuted_product, ABC m.keep(mm(a, b));),
    WRONG(transposed_factors, ABC m.keep(tanh(permuted(mm(a, b), {1, 0})));),
    WRONG(added_scales, ABC m.keep(0.5 * (3.0 * a));),
    WRONG(rounded_scales, ABC m.keep(0.1 * (0.3 * a));),
    WRONG(one_scale, ABC m.keep(0.5 * a + 0.25 * b);),
    WRONG(shift_outside, ABC m.keep((0.5 + a) * b);),
    WRONG(shift_after, ABC m.keep(mm(0.5 + a, b));),
    WRONG(linear_function, ABC m.keep(tanh(a) + tanh(b));),
    WRONG(function_of_product, ABC m.keep(tanh(a) * b);),
    WRONG(scale_inside, ABC m.keep(0.5 * tanh(a));),
    WRONG(turned_concat, ABC m.keep(cat(1, {a, b}));),
    WRONG(magis_concat, ABC m.keep(cat(0, {mm(a, b), mm(a, c)}));),
    WRONG(concat_of_factors, ABC m.keep(cat(0, {mm(a, b), mm(c, b)}));),
    WRONG(turned_slices, ABC m.keep(tanh(mm(a, b))); m.keep(tanh(mm(a, c)));),
    WRONG(moved_slice, ABC m.keep(tanh(mm(a, b))); m.keep(tanh(mm(a, c)));),
    WRONG(turned_kernels, IMAGES m.keep(cat(1, {conv(x, k), conv(x, l)}));),
    WRONG(padded_behind, IMAGES m.keep(cat(1, {conv(x, m.in({2, 3, 1, 1})), conv(x, k, 1)}));),
    WRONG(transposed_kernel, IMAGES m.keep(conv(x, k));),
    WRONG(lost_shift, IMAGES m.keep(conv(x, k, m.in({2})));),
    WRONG(no_permute, ABC m.keep(tanh(permuted(a, {1, 0})));),
    WRONG(one_permute, auto x = m.in({2, 2, 2}); m.keep(tanh(permuted(permuted(x, {1, 2, 0}), {0, 2, 1})));),
    WRONG(one_slice, ABC m.keep(tanh(cut(cut(a, 0, 1, 3), 0, 0, 1)));),
    WRONG(unshifted_slice, ABC m.keep(tanh(cut(padded(a, 1, 1, 0), 1, 1, 2)));),
    WRONG(sum_of_product, ABC m.keep(summed(a* b, {1}));),
    WRONG(broadcast_summed_once, ABC m.keep(summed(a + m.in({3}), {0}));),
    WRONG(sum_of_broadcast, auto x = m.in({3}); m.keep(tanh(summed_to(broadcast(x, {2, 3}), {3})));),
    WRONG(rounded_back, ABC m.keep(tanh(cast_to(cast_to(a, dtype::f32), dtype::f64)));),
    WRONG(square_of_one, ABC m.keep(a* b);),
    WRONG(crossed_concats, ABC m.keep(mm(a, b) + mm(c, d));),
};
#undef WRONG
#undef ABC
#undef IMAGES

rewriter only(rule const* const& r) { return {{&r, 1}}; }

}  // namespace

TEST_CASE("wrong rewrites are caught, every one") {
  static_assert(std::size(examples) >= 30);
  for (auto const& e : examples) {
    CAPTURE(e.what->name);
    maker m;
    e.make(m);
    auto const c = made_of(m.done());
    std::size_t found = 0, caught = 0, unchecked = 0;
    auto stream = checked(only(e.what))(c);
    while (auto r = stream.next()) {
      ++found;
      std::string const what = message_of([&] { caught += !r->apply(c); });
      caught += what.find("changes what is computed") != std::string::npos;
      auto without = *r;
      without.check = false;
      unchecked += without.apply(c).has_value();
    }
    CHECK(found > 0);
    CHECK(caught == found);
    // MAGIS's rule is refused by its type; the others only by their numbers.
    if (e.what != &wrong::magis_concat) CHECK(unchecked > 0);
  }
}

TEST_CASE("an update never runs before another reader of its storage") {
  // y = x p, then p is updated, then z = x q. One product of both reads p before the update.
  maker m;
  auto const x = m.in({3, 4}), p = m.weight({4, 5}), q = m.weight({4, 5}), g = m.in({4, 5});
  auto const y = mm(x, p);
  auto const next = descended(p, g);
  auto const z = mm(x, q);
  m.keep(tanh(y));
  m.keep(tanh(z));
  m.keep(summed(next, {0}));
  auto c = made_of(m.done());
  std::sort(c.order.order.begin(), c.order.order.end());  // as written: the update between the products
  REQUIRE(check_order(c.graph, c.order));
  auto stream = checked(using_rules<rules::merge_columns>)(c);
  auto const found = stream.next();
  REQUIRE(found);
  auto const e = found->apply(c);
  REQUIRE(e);
  CHECK(check_order(e->graph, e->order));
  auto const at = positions(e->order);
  op_id update = nothing<op_id>, joined = nothing<op_id>;
  for (auto o : e->graph.ops()) {
    if (e->graph.as<op::sgd>(o)) update = o;
    if (e->graph.as<op::concat>(o)) joined = o;
  }
  CHECK(at[joined] < at[update]);
  host_backend backend;
  auto const sources = random_sources(c.graph, 3);
  auto const a = run_plainly(c.graph, c.order, sources, backend), b = run_plainly(e->graph, e->order, sources, backend);
  CHECK(a.sources == b.sources);
}
TEST_CASE("a rewrite that no order allows is not made") {
  // q is made from the updated p: the products cannot be one, as it would read p before the update and q after it.
  maker m;
  auto const x = m.in({3, 4}), p = m.weight({4, 5}), g = m.in({4, 5});
  auto const y = mm(x, p);
  auto const q = tanh(descended(p, g));
  m.keep(tanh(y));
  m.keep(tanh(mm(x, q)));
  auto const c = made_of(m.done());
  auto stream = using_rules<rules::merge_columns>(c);
  std::size_t found = 0;
  while (auto r = stream.next()) {
    ++found;
    CHECK(!r->apply(c));
  }
  CHECK(found > 0);
}
TEST_CASE("storing an updated weight would have to write it back: no swap moves one") {
  maker m;
  auto const x = m.in({3, 4}), w = m.weight({4, 4}), g = m.in({4, 4});
  auto y = tanh(mm(x, w));
  for (int i = 0; i < 4; ++i) y = tanh(mm(y, w));
  m.keep(y);
  m.keep(summed(descended(w, g), {0}));
  auto const c = made_of(m.done());
  auto const s = c.graph.storage(c.graph.sources()[1]);
  REQUIRE(c.graph.role(c.graph.sources()[1]) == role::weight);
  for (std::uint32_t resume = 1; resume < c.order.size(); ++resume) CHECK(!apply_mutation(swap_out{s, 0, resume}, c));
  auto stream = neap::swap{}(c);
  while (auto r = stream.next())
    if (auto const* swapped = std::get_if<swap_out>(&*r)) CHECK(swapped->storage != s);
}

TEST_CASE("rules leave opaque ops, parts and whole numbers alone") {
  maker m;
  m.element = dtype::i64;
  auto const a = m.in({2, 3}), b = m.in({2, 3}), c = m.in({2, 3});
  m.keep(c * (a + b));
  auto const whole = made_of(m.done());
  CHECK(!taso_rules{}(whole).next());

  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f64, {2, 3}});
  auto const y = edit.add(op::add{}, {x, x})[0];
  auto const z = edit.add(op::mul{}, {x, y})[0];
  edit.keep(z, role::output);
  auto const part = edit.part_row({0, 2});
  edit.set_part(edit.graph().producer(y), part);
  auto const parts = made_of(graph(std::move(edit).finish()));
  CHECK(!using_rules<rules::distribute>(parts).next());
}
TEST_CASE("rules are mutators like others") {
  static_assert(mutator<taso_rules> && mutator<rewriter>);
  static_assert(mutation<rewrite> && mutation<share_results> && mutation<keep_in_memory>);
  constexpr auto pipeline = chain(taso_rules{} | truncate(3), de_rematerialize{}, de_swap{}, neap::swap{});
  maker m;
  auto const a = m.in({2, 3}), b = m.in({2, 3}), c = m.in({2, 3}), d = m.in({2, 3});
  m.keep(d * (c * (a + b)));
  auto const from = made_of(m.done());
  std::size_t n = 0;
  auto stream = pipeline(from);
  while (auto x = stream.next()) {
    n += apply_mutation(*x, from).has_value();
    CHECK(describe(*x, from).starts_with("rewrite "));
  }
  CHECK(n == 3);
  any_mutator const erased = using_rules<rules::distribute, rules::regroup_product>;
  auto again = erased(from);
  auto const first = again.next();
  REQUIRE(first);
  CHECK(describe(*first, from) == "rewrite distribute at mul #1");
}
