// Zeros that operators put in: 0 times an infinity is no number, so that a plan may add them and not multiply with them.
// Plans that do are refused, wherever the zeros come from, though they compute the original over the reals.
#include <neap/verify/plan_verifier.hpp>

#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace neap;

namespace {

roofline const machine = roofline::h100_like();
constexpr std::int64_t side = 6, channels = 3;

/// Writes formulas of the sources x, y, z [6, 6], image [2, 3, 5, 5], small [3, 3, 1, 1] and large [3, 3, 3, 3].
struct formulas {
  graph_editor& edit;
  value_id x{0}, y{1}, z{2}, image{3}, small{4}, large{5};

  template <class Op>
  value_id put(Op const& what, std::vector<value_id> in) {
    if constexpr (!std::is_same_v<Op, op::copy>)  // reshapes take what is dense
      for (auto& v : in)
        if (!(edit.layout_of(v) == tensor_layout::dense(edit.layout_of(v).type))) v = put(op::copy{}, {v});
    return edit.emit(view_of(what), span_of(in)).front();
  }
  value_id sum(value_id a, value_id b) { return put(op::add{}, {a, b}); }
  value_id product(value_id a, value_id b) { return put(op::mul{}, {a, b}); }
  value_id matrices(value_id a, value_id b) { return put(op::matmul{}, {a, b}); }
  value_id twice(value_id a) { return put(op::mul_scalar{2}, {a}); }
  value_id rows(value_id a, std::int64_t from, std::int64_t to, int axis = 0) {
    return put(op::slice{axis, from, to}, {a});
  }
  value_id pad(value_id a, int axis, std::int64_t before, std::int64_t after) {
    return put(op::pad{axis, before, after, 0}, {a});
  }
  value_id lower(value_id a, std::int64_t diagonal = 0) { return put(op::triangle{diagonal, false}, {a}); }
  value_id upper(value_id a, std::int64_t diagonal = 0) { return put(op::triangle{diagonal, true}, {a}); }
  value_id ones(extents const& dims) { return put(op::fill{dims, dtype::f64, 1}, {}); }
  value_id convolution(value_id a, value_id w, std::int64_t padding = 0) {
    return put(op::conv2d{{1, 1}, {padding, padding}, {1, 1}, 1}, {a, w});
  }
  value_id identity(std::int64_t n = side) { return upper(lower(ones({n, n}))); }
  /// The identity matrix by way of a row that is one element longer.
  value_id identity_of_padding() {
    auto const line = put(op::reshape{{side * (side + 1)}}, {pad(ones({side, 1}), 1, 0, side)});
    return put(op::reshape{{side, side}}, {rows(line, 0, side * side)});
  }
  value_id identity_of_rows() {
    std::vector<value_id> all;
    for (std::int64_t k = 0; k < side; ++k) all.push_back(pad(ones({1, 1}), 1, k, side - 1 - k));
    return put(op::concat{0}, all);
  }
  /// 1 where a channel meets itself; `other` elsewhere.
  value_id identity_kernel(value_id one, value_id other) {
    std::vector<value_id> all;
    for (std::int64_t k = 0; k < channels; ++k) {
      std::vector<value_id> row(channels, other);
      row[static_cast<std::size_t>(k)] = one;
      all.push_back(put(op::concat{1}, row));
    }
    return put(op::concat{0}, all);
  }
};

using formula = std::function<value_id(formulas&)>;
struct rewriting {
  char const* what;
  bool right;
  formula original, planned;
};

formula const only_x = [](formulas& f) { return f.x; };
formula const only_image = [](formulas& f) { return f.image; };
/// x and what is 0 for finite numbers.
rewriting adds_nothing(char const* what, formula const& nothing_for_finite) {
  return {what, false, [](formulas& f) { return f.twice(f.x); },
          [=](formulas& f) { return f.sum(f.twice(f.x), nothing_for_finite(f)); }};
}

std::vector<rewriting> const rewritings{
    // ---- an identity matrix
    {"by two triangles, right", false, [](formulas& f) { return f.twice(f.x); },
     [](formulas& f) { return f.matrices(f.twice(f.x), f.identity()); }},
    {"by two triangles, left", false, [](formulas& f) { return f.twice(f.x); },
     [](formulas& f) { return f.matrices(f.identity(), f.twice(f.x)); }},
    {"by padding and a reshape", false, [](formulas& f) { return f.twice(f.x); },
     [](formulas& f) { return f.matrices(f.twice(f.x), f.identity_of_padding()); }},
    {"by rows of padding", false, [](formulas& f) { return f.twice(f.x); },
     [](formulas& f) { return f.matrices(f.identity_of_rows(), f.twice(f.x)); }},
    {"half of it", false, [](formulas& f) { return f.x; },
     [](formulas& f) { return f.matrices(f.twice(f.x), f.put(op::mul_scalar{0.5}, {f.identity()})); }},
    {"below a function of rows", false, [](formulas& f) { return f.put(op::softmax{}, {f.twice(f.x)}); },
     [](formulas& f) { return f.put(op::softmax{}, {f.matrices(f.twice(f.x), f.identity())}); }},
    {"below a function of elements", false, [](formulas& f) { return f.put(op::exp{}, {f.twice(f.x)}); },
     [](formulas& f) { return f.put(op::exp{}, {f.matrices(f.twice(f.x), f.identity())}); }},
    {"of channels", false, only_image,
     [](formulas& f) {
       auto const kernel = f.put(op::reshape{{channels, channels, 1, 1}}, {f.identity(channels)});
       return f.convolution(f.image, kernel);
     }},
    {"of channels, the zeros cut out of an enlarged kernel", false, only_image,
     [](formulas& f) {
       auto const one = f.ones({1, 1, 1, 1});
       return f.convolution(f.image, f.identity_kernel(one, f.rows(f.pad(one, 2, 1, 1), 0, 1, 2)));
     }},
    {"of channels, kernels enlarged on one side", false, only_image,
     [](formulas& f) {
       auto const one = f.ones({1, 1, 1, 1});
       auto const first = f.pad(one, 2, 0, 2), last = f.pad(one, 2, 2, 0);
       auto const wide = f.put(op::conv2d{{1, 1}, {2, 0}, {1, 1}, 1}, {f.image, f.identity_kernel(first, last)});
       return f.rows(wide, 2, 2 + 5, 2);
     }},
    // ---- what is masked
    {"a product of what is masked", false, [](formulas& f) { return f.product(f.lower(f.x), f.y); },
     [](formulas& f) { return f.lower(f.product(f.x, f.y)); }},
    {"a masked product", false, [](formulas& f) { return f.upper(f.product(f.x, f.y), 1); },
     [](formulas& f) { return f.product(f.upper(f.x, 1), f.y); }},
    {"a product of what is padded", false,
     [](formulas& f) { return f.product(f.pad(f.rows(f.x, 0, 4), 0, 0, 2), f.y); },
     [](formulas& f) { return f.pad(f.product(f.rows(f.x, 0, 4), f.rows(f.y, 0, 4)), 0, 0, 2); }},
    {"rows of zeros left out of a product", false,
     [](formulas& f) { return f.matrices(f.pad(f.rows(f.x, 0, 4, 1), 1, 1, 1), f.y); },
     [](formulas& f) { return f.matrices(f.rows(f.x, 0, 4, 1), f.rows(f.y, 1, 5)); }},
    {"divided behind the mask", false,
     [](formulas& f) {
       return f.lower(f.put(op::div{}, {f.x, f.y}));
     },
     [](formulas& f) {
       return f.put(op::div{}, {f.lower(f.x), f.y});
     }},
    // ---- zeros times something
    adds_nothing("a triangle without elements", [](formulas& f) { return f.product(f.lower(f.z, -side), f.y); }),
    adds_nothing("what a triangle left out, summed",
                 [](formulas& f) {
                   auto const none = f.put(op::sum{{1}, true}, {f.rows(f.lower(f.z, -1), 0, 1)});
                   return f.product(none, f.y);
                 }),
    adds_nothing("zeros of a padding",
                 [](formulas& f) { return f.product(f.rows(f.pad(f.z, 0, side, 0), 0, side), f.y); }),
    adds_nothing("zeros of a padding, by a matrix",
                 [](formulas& f) { return f.matrices(f.rows(f.pad(f.z, 0, side, 0), 0, side), f.y); }),
    adds_nothing("zeros over something",
                 [](formulas& f) {
                   return f.put(op::div{}, {f.rows(f.pad(f.z, 1, 0, side), side, 2 * side, 1), f.y});
                 }),
    adds_nothing("many zeros, squared",
                 [](formulas& f) {
                   auto const none = f.twice(f.lower(f.z, -side));
                   return f.product(f.product(none, none), f.y);
                 }),
    adds_nothing("images that no kernel meets",
                 [](formulas& f) {
                   auto const around = f.convolution(f.image, f.small, 2);
                   auto const corner = f.rows(f.rows(f.rows(f.rows(around, 0, 1, 0), 0, 1, 1), 0, 1, 2), 0, 1, 3);
                   return f.product(f.put(op::reshape{{1, 1}}, {corner}), f.y);
                 }),
    adds_nothing("sums without terms",
                 [](formulas& f) { return f.product(f.matrices(f.rows(f.x, 0, 0, 1), f.rows(f.z, 0, 0)), f.y); }),
    adds_nothing("relu of negatives",
                 [](formulas& f) {
                   auto const none = f.put(op::relu{}, {f.put(op::neg{}, {f.ones({side, side})})});
                   return f.product(none, f.y);
                 }),
    adds_nothing("ones less ones",
                 [](formulas& f) {
                   auto const one = f.ones({side, side});
                   return f.product(f.put(op::sub{}, {one, one}), f.y);
                 }),
    adds_nothing("a difference of sums of ones",
                 [](formulas& f) {
                   auto const all = f.put(op::cumsum{0}, {f.ones({side, side})});
                   return f.product(f.put(op::sub{}, {all, all}), f.y);
                 }),
    {"where a comparison holds", false, [](formulas& f) { return f.twice(f.x); },
     [](formulas& f) {
       auto const holds = f.put(op::equal{}, {f.y, f.y});
       return f.put(op::where{}, {holds, f.twice(f.x), f.z});
     }},
    // ---- signs of zeros
    {"0 added", false, [](formulas& f) { return f.put(op::neg{}, {f.x}); },
     [](formulas& f) { return f.put(op::add_scalar{0}, {f.put(op::neg{}, {f.x})}); }},
    {"0 added in an argument", false, [](formulas& f) { return f.put(op::tanh{}, {f.x}); },
     [](formulas& f) { return f.put(op::tanh{}, {f.put(op::add_scalar{0}, {f.x})}); }},
    {"zeros of a padding added", false, [](formulas& f) { return f.put(op::neg{}, {f.x}); },
     [](formulas& f) { return f.sum(f.put(op::neg{}, {f.x}), f.rows(f.pad(f.y, 0, side, 0), 0, side)); }},
    {"a difference turned", false,
     [](formulas& f) {
       return f.put(op::neg{}, {f.put(op::sub{}, {f.x, f.y})});
     },
     [](formulas& f) {
       return f.put(op::sub{}, {f.y, f.x});
     }},
    {"-0 added", true, [](formulas& f) { return f.put(op::neg{}, {f.x}); },
     [](formulas& f) { return f.put(op::add_scalar{-0.0}, {f.put(op::neg{}, {f.x})}); }},
    {"1 times", true,
     [](formulas& f) {
       return f.put(op::sub{}, {f.x, f.y});
     },
     [](formulas& f) {
       return f.put(op::mul_scalar{1}, {f.put(op::sub{}, {f.x, f.y})});
     }},
    {"a negative added", true,
     [](formulas& f) {
       return f.put(op::sub{}, {f.sum(f.x, f.z), f.y});
     },
     [](formulas& f) { return f.sum(f.put(op::neg{}, {f.y}), f.sum(f.z, f.x)); }},
    // ---- right ones
    {"pieces of padding added", true, [](formulas& f) { return f.twice(f.x); },
     [](formulas& f) {
       auto const v = f.twice(f.x);
       return f.sum(f.pad(f.rows(v, 0, 2), 0, 0, 4), f.pad(f.rows(v, 2, 6), 0, 2, 0));
     }},
    {"zeros added", true, [](formulas& f) { return f.twice(f.x); },
     [](formulas& f) { return f.sum(f.twice(f.x), f.twice(f.lower(f.z, -side))); }},
    {"what is masked, distributed", true, [](formulas& f) { return f.product(f.lower(f.x), f.sum(f.y, f.z)); },
     [](formulas& f) {
       auto const m = f.lower(f.x);
       return f.sum(f.product(m, f.y), f.product(m, f.z));
     }},
    {"a masked matrix, distributed", true, [](formulas& f) { return f.matrices(f.y, f.sum(f.lower(f.x), f.z)); },
     [](formulas& f) { return f.sum(f.matrices(f.y, f.lower(f.x)), f.matrices(f.y, f.z)); }},
    {"a masked matrix, scaled", true, [](formulas& f) { return f.twice(f.matrices(f.lower(f.x), f.y)); },
     [](formulas& f) { return f.matrices(f.twice(f.lower(f.x)), f.y); }},
    {"a padded factor, taken out", true,
     [](formulas& f) {
       auto const p = f.pad(f.rows(f.x, 0, 4), 0, 1, 1);
       return f.sum(f.product(p, f.y), f.product(p, f.z));
     },
     [](formulas& f) { return f.product(f.pad(f.rows(f.x, 0, 4), 0, 1, 1), f.sum(f.y, f.z)); }},
    {"kernels enlarged and joined", true,
     [](formulas& f) {
       return f.put(op::concat{1}, {f.convolution(f.image, f.small), f.convolution(f.image, f.large, 1)});
     },
     [](formulas& f) {
       auto const enlarged = f.pad(f.pad(f.small, 2, 1, 1), 3, 1, 1);
       return f.convolution(f.image, f.put(op::concat{0}, {enlarged, f.large}), 1);
     }},
    {"enlarged kernels, scaled", true,
     [](formulas& f) {
       auto const all = f.put(op::concat{1}, {f.convolution(f.image, f.small), f.convolution(f.image, f.large, 1)});
       return f.twice(all);
     },
     [](formulas& f) {
       auto const enlarged = f.pad(f.pad(f.small, 2, 1, 1), 3, 1, 1);
       return f.convolution(f.image, f.twice(f.put(op::concat{0}, {enlarged, f.large})), 1);
     }},
    {"enlarged kernels, added", true,
     [](formulas& f) { return f.sum(f.convolution(f.image, f.small), f.convolution(f.image, f.large, 1)); },
     [](formulas& f) {
       auto const enlarged = f.pad(f.pad(f.small, 2, 1, 1), 3, 1, 1);
       return f.convolution(f.image, f.sum(enlarged, f.large), 1);
     }},
};

graph original_of(formula const& v) {
  graph_editor edit{operator_table(standard_operators::facets)};
  for (auto const& dims : std::vector<shape>{{side, side}, {side, side}, {side, side}})
    edit.add_source(role::input, {dtype::f64, dims}, "");
  edit.add_source(role::input, {dtype::f64, {2, channels, 5, 5}}, "image");
  edit.add_source(role::weight, {dtype::f64, {channels, channels, 1, 1}}, "small");
  edit.add_source(role::weight, {dtype::f64, {channels, channels, 3, 3}}, "large");
  formulas f{edit};
  auto const read = f.put(op::tanh{}, {v(f)});
  edit.set_name(id_at<op_id>(edit.graph().op_count() - 1), "reader");
  edit.keep(read, role::output);
  return graph(std::move(edit).finish());
}
op_id reader_of(graph const& g) {
  for (auto o : g.ops())
    if (g.name(o) == "reader") return o;
  FAIL("no reader");
  return {};
}
graph planned_of(graph const& original, formula const& v) {
  graph_editor edit(original);
  formulas f{edit};
  auto to = v(f);
  if (!(edit.layout_of(to) == tensor_layout::dense(edit.layout_of(to).type))) to = f.put(op::copy{}, {to});
  edit.set_input(reader_of(original), 0, to);
  return graph(std::move(edit).finish());
}
verification verdict_of(graph const& original, graph const& g, std::uint64_t seed) {
  auto order = reverse_post_order{}(g);
  auto r = simulate(g, order, machine);
  candidate const c{g, std::move(order), std::move(r)};
  return verify_plan(original, make_plan(c, original, memory_options{}), INT64_MAX, hash_key::of(seed));
}

}  // namespace

TEST_CASE("zeros that operators put in may be added; as factors they are refused") {
  for (auto const& r : rewritings) {
    CAPTURE(std::string(r.what));
    auto const original = original_of(r.original);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      CHECK(verdict_of(original, planned_of(original, r.original), seed).ok());
      auto const verdict = verdict_of(original, planned_of(original, r.planned), seed);
      CHECK_MESSAGE(verdict.ok() == r.right, verdict.message());
    }
  }
}
