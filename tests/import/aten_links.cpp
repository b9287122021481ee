// What is said of how PyTorch's operators may be cut, against plain loops: each operator is computed on the whole and, along
// every loop that its node's relations state, on equal parts.
#include <neap/import/aten_links.hpp>

#include <neap/core/philox.hpp>
#include <neap/import/graph_file.hpp>
#include <neap/ir/dimension_graph.hpp>
#include <neap/ir/verify.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace neap;
using nlohmann::json;

namespace {

/// A tensor of numbers.
struct array {
  shape dims;
  std::vector<double> v;
  explicit array(shape d = {}) : dims(d), v(static_cast<std::size_t>(elements(d))) {}
  std::size_t place(extents const& at) const {
    if (at.rank() != dims.rank()) throw error("another rank");
    std::int64_t p = 0;
    for (int k = 0; k < dims.rank(); ++k) {
      if (at[k] < 0 || at[k] >= dims[k]) throw error("no such place");
      p = p * dims[k] + at[k];
    }
    return static_cast<std::size_t>(p);
  }
  double& operator[](extents const& at) { return v[place(at)]; }
  double operator[](extents const& at) const { return v[place(at)]; }
};
using arrays = std::vector<array>;
using shapes = std::vector<std::optional<shape>>;

/// Calls f with every place of a tensor, in row-major order.
template <class F>
void each(shape const& dims, F const& f) {
  extents at = extents::filled(dims.rank(), 0);
  for (std::int64_t n = elements(dims); n > 0; --n) {
    f(std::as_const(at));
    for (int k = dims.rank() - 1; k >= 0 && ++at[k] == dims[k]; --k) at[k] = 0;
  }
}
extents with(extents e, int axis, std::int64_t x) {
  e[axis] = x;
  return e;
}
extents without(extents const& e, int axis) {
  extents r;
  for (int k = 0; k < e.rank(); ++k)
    if (k != axis) r.push_back(e[k]);
  return r;
}
extents inserted(extents const& e, int axis, std::int64_t x) {
  extents r;
  for (int k = 0; k <= e.rank(); ++k) {
    if (k == axis) r.push_back(x);
    if (k < e.rank()) r.push_back(e[k]);
  }
  return r;
}
/// The place of a tensor of extents `dims` that a place of what it broadcasts to reads.
extents broadcast_place(shape const& dims, extents const& at) {
  extents r;
  for (int k = 0; k < dims.rank(); ++k) r.push_back(dims[k] == 1 ? 0 : at[at.rank() - dims.rank() + k]);
  return r;
}
array slice_of(array const& x, int axis, std::int64_t from, std::int64_t count) {
  array y(with(x.dims, axis, count));
  each(y.dims, [&](extents const& at) { y[at] = x[with(at, axis, at[axis] + from)]; });
  return y;
}

/// An argument of a case: real numbers, indices below `below`, or zeros.
struct operand {
  shape dims;
  int below = 0;
  bool zeros = false;
};

/// A node, and its operator by plain loops: of inputs and the extents of the outputs (those of a part, where the shape is
/// an argument), all outputs of the schema; those that the node does not give are left out by the caller.
struct known_call {
  std::string op;
  std::string args;
  std::vector<operand> in;
  shapes out;
  std::function<arrays(arrays const&, std::vector<shape> const&)> run;
  std::string kwargs = "{}";
};

struct node_text {
  json args, kwargs;
  std::vector<tensor_layout> in, out;
  std::vector<int> outputs;
  std::vector<unsigned char> zeros;
  explicit node_text(known_call const& c) : args(json::parse(c.args)), kwargs(json::parse(c.kwargs)) {
    for (auto const& x : c.in) {
      in.push_back(tensor_layout::dense({x.below ? dtype::i64 : dtype::f32, x.dims}));
      zeros.push_back(x.zeros);
    }
    for (auto const& x : c.out) {
      outputs.push_back(x ? static_cast<int>(out.size()) : -1);
      if (x) out.push_back(tensor_layout::dense({dtype::f32, *x}));
    }
  }
  io::aten_node node(std::string const& op, bool pointwise = false) const {
    return {op, &args, &kwargs, in, out, outputs, zeros, pointwise};
  }
};

std::set<std::string> checked;  // operators that a case has cut

/// How many loops the node's relations have; each was cut into every number of parts that it can be.
int cut_everywhere(known_call const& c, std::uint64_t seed = 1) {
  INFO(c.op << " " << c.args);
  node_text const text(c);
  auto const links = io::aten_links(text.node("aten." + c.op));
  INFO("links: " << to_text(links));
  random_stream draw(seed);
  arrays in;
  for (auto const& x : c.in) {
    in.emplace_back(x.dims);
    for (auto& e : in.back().v)
      e = x.zeros   ? 0
          : x.below ? static_cast<double>(draw.below(static_cast<std::uint32_t>(x.below)))
                    : 0.25 + static_cast<double>(draw.uniform());
  }
  std::vector<shape> out_dims;
  for (auto const& l : text.out) out_dims.push_back(l.type.dims);
  auto const run = [&](arrays const& arguments, std::vector<shape> const& dims) {
    auto all = c.run(arguments, dims);
    REQUIRE(all.size() == c.out.size());
    arrays given;
    for (std::size_t j = 0; j < all.size(); ++j)
      if (c.out[j]) given.push_back(std::move(all[j]));
    return given;
  };
  auto const whole = run(in, out_dims);
  for (std::size_t j = 0; j < whole.size(); ++j) REQUIRE(whole[j].dims == out_dims[j]);

  int loops = 0;
  std::set<std::pair<int, int>> met;  // axes of inputs
  for (auto const& start : links) {
    if (met.contains({start.input, start.in_axis})) continue;
    ++loops;
    checked.insert(c.op);
    std::map<int, int> in_axis{{start.input, start.in_axis}}, out_axis;
    std::map<int, combine> reduced;
    for (bool grew = true; grew;) {
      grew = false;
      for (auto const& l : links) {
        bool const is_in = in_axis.contains(l.input) && in_axis[l.input] == l.in_axis;
        bool const is_out = l.output >= 0 ? out_axis.contains(l.output) && out_axis[l.output] == l.out_axis
                                          : reduced.contains(l.out_axis);
        if (is_in == is_out) continue;
        grew = true;
        if (is_out) REQUIRE(in_axis.emplace(l.input, l.in_axis).second);
        else if (l.output >= 0) REQUIRE(out_axis.emplace(l.output, l.out_axis).second);
        else reduced.emplace(l.out_axis, l.how);
      }
    }
    REQUIRE(reduced.size() <= 1);
    std::int64_t extent = 0;
    for (auto [i, a] : in_axis) {
      extent = std::gcd(extent, text.in[static_cast<std::size_t>(i)].type.dims[a]);
      met.insert({i, a});
    }
    for (auto [j, a] : out_axis) extent = std::gcd(extent, out_dims[static_cast<std::size_t>(j)][a]);
    CHECK(extent > 1);
    for (std::int64_t n = 2; n <= extent; ++n) {
      if (extent % n != 0) continue;
      INFO(n << " parts along axis " << start.in_axis << " of input " << start.input);
      std::vector<arrays> parts;
      for (std::int64_t p = 0; p < n; ++p) {
        arrays cut = in;
        auto dims = out_dims;
        for (auto [i, a] : in_axis) {
          auto& x = cut[static_cast<std::size_t>(i)];
          x = slice_of(x, a, p * (x.dims[a] / n), x.dims[a] / n);
        }
        for (auto [j, a] : out_axis) dims[static_cast<std::size_t>(j)][a] /= n;
        parts.push_back(run(cut, dims));
        for (std::size_t j = 0; j < dims.size(); ++j) REQUIRE(parts.back()[j].dims == dims[j]);
      }
      for (std::size_t j = 0; j < whole.size(); ++j)
        if (auto const a = out_axis.find(static_cast<int>(j)); a != out_axis.end()) {
          auto const each_part = whole[j].dims[a->second] / n;
          for (std::int64_t p = 0; p < n; ++p) {
            auto const expected = slice_of(whole[j], a->second, p * each_part, each_part);
            auto const& got = parts[static_cast<std::size_t>(p)][j];
            for (std::size_t e = 0; e < expected.v.size(); ++e)
              REQUIRE(got.v[e] == doctest::Approx(expected.v[e]).epsilon(1e-9));
          }
        } else {
          REQUIRE_MESSAGE(!reduced.empty(), "output ", j, " is neither cut nor combined");
          auto const how = reduced.begin()->second;
          for (std::size_t e = 0; e < whole[j].v.size(); ++e) {
            double got = parts[0][j].v[e];
            for (std::size_t p = 1; p < parts.size(); ++p) {
              double const x = parts[p][j].v[e];
              if (how == combine::same) REQUIRE(x == got);
              else got = how == combine::max ? std::max(got, x) : how == combine::min ? std::min(got, x) : got + x;
            }
            if (how == combine::mean) got /= static_cast<double>(n);
            REQUIRE(got == doctest::Approx(whole[j].v[e]).epsilon(1e-9));
          }
        }
    }
  }
  return loops;
}

std::string links_text(known_call const& c) { return to_text(io::aten_links(node_text(c).node("aten." + c.op))); }

// ---------------------------------------------------------------------------------------------- references

/// A map of elements at equal places, of broadcast inputs.
auto elementwise(double (*f)(double, double)) {
  return [f](arrays const& in, std::vector<shape> const& out) {
    array y(out[0]);
    each(y.dims, [&](extents const& at) {
      double a = in[0][broadcast_place(in[0].dims, at)];
      for (std::size_t k = 1; k < in.size(); ++k) a = f(a, in[k][broadcast_place(in[k].dims, at)]);
      y[at] = a;
    });
    return arrays{y};
  };
}
double plus(double a, double b) { return a + 2 * b; }

/// The same elements in the same order.
arrays reshaped(arrays const& in, std::vector<shape> const& out) {
  array y(out[0]);
  REQUIRE(y.v.size() == in[0].v.size());
  y.v = in[0].v;
  return {y};
}

/// Out of place `from` of the result comes what lies at `place(at)` of the input.
template <class F>
auto moved(F place) {
  return [place](arrays const& in, std::vector<shape> const& out) {
    arrays all;
    for (std::size_t j = 0; j < out.size(); ++j) {
      all.emplace_back(out[j]);
      each(out[j], [&](extents const& at) { all[j][at] = in[0][place(at, static_cast<int>(j))]; });
    }
    return all;
  };
}

arrays product(arrays const& in, int a, int b, int bias) {
  auto const &x = in[static_cast<std::size_t>(a)], &y = in[static_cast<std::size_t>(b)];
  int const r = x.dims.rank();
  array z(with(x.dims, r - 1, y.dims[r - 1]));
  each(z.dims, [&](extents const& at) {
    double sum =
        bias < 0 ? 0 : in[static_cast<std::size_t>(bias)][broadcast_place(in[static_cast<std::size_t>(bias)].dims, at)];
    for (std::int64_t k = 0; k < x.dims[r - 1]; ++k) sum += x[with(at, r - 1, k)] * y[with(at, r - 2, k)];
    z[at] = sum;
  });
  return {z};
}

struct conv_form {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool transposed = false;
  std::string text(std::string const& head) const {
    auto const two = [](std::int64_t x) { return "[" + std::to_string(x) + "," + std::to_string(x) + "],"; };
    return head + two(stride) + two(padding) + two(dilation) + (transposed ? "true," : "false,") + two(0) +
           std::to_string(groups);
  }
  /// Every product of a convolution: f(place in x, place in w, place in the result).
  template <class F>
  void taps(shape const& x, shape const& w, shape const& y, F const& f) const {
    auto const& small = transposed ? x : y;
    auto const& large = transposed ? y : x;
    auto const in_group = x[1] / groups, out_group = y[1] / groups;
    each({small[0], groups, in_group, out_group, small[2], small[3], w[2], w[3]}, [&](extents const& k) {
      auto const row = k[4] * stride + k[6] * dilation - padding, column = k[5] * stride + k[7] * dilation - padding;
      if (row < 0 || row >= large[2] || column < 0 || column >= large[3]) return;
      auto const ci = k[1] * in_group + k[2], co = k[1] * out_group + k[3];
      extents const at_small{k[0], transposed ? ci : co, k[4], k[5]}, at_large{k[0], transposed ? co : ci, row, column};
      extents const at_w = transposed ? extents{ci, k[3], k[6], k[7]} : extents{co, k[2], k[6], k[7]};
      f(transposed ? at_small : at_large, at_w, transposed ? at_large : at_small);
    });
  }
};

/// Rows of `count` elements: mean and 1 / standard deviation.
std::pair<double, double> statistics(std::vector<double> const& row) {
  double const n = static_cast<double>(row.size());
  double const mean = std::accumulate(row.begin(), row.end(), 0.0) / n;
  double square = 0;
  for (double x : row) square += (x - mean) * (x - mean);
  return {mean, 1 / std::sqrt(square / n + 1e-5)};
}

/// Normalisation of groups of elements: group_of(place) gives the place of the statistics, weight_of(place) that of the
/// weight and bias. Forward: x, w, b -> y, mean, rstd. Backward: g, x, mean, rstd, w -> dx, dw, db.
template <class G, class W>
arrays normalised(array const& x, array const& w, array const& b, shape const& of_statistics, G const& group_of,
                  W const& weight_of) {
  array y(x.dims), mean(of_statistics), rstd(of_statistics);
  std::map<std::size_t, std::vector<double>> groups;
  each(x.dims, [&](extents const& at) { groups[mean.place(group_of(at))].push_back(x[at]); });
  for (auto const& [k, row] : groups) std::tie(mean.v[k], rstd.v[k]) = statistics(row);
  each(x.dims, [&](extents const& at) {
    auto const s = group_of(at), c = weight_of(at);
    y[at] = (x[at] - mean[s]) * rstd[s] * w[c] + b[c];
  });
  return {y, mean, rstd};
}
template <class G, class W>
arrays normalised_backward(array const& g, array const& x, array const& mean, array const& rstd, array const& w,
                           G const& group_of, W const& weight_of) {
  array dx(x.dims), dw(w.dims), db(w.dims), sum(mean.dims), dot(mean.dims), count(mean.dims);
  auto const hat = [&](extents const& at) { return (x[at] - mean[group_of(at)]) * rstd[group_of(at)]; };
  each(x.dims, [&](extents const& at) {
    auto const s = group_of(at), c = weight_of(at);
    sum[s] += g[at] * w[c], dot[s] += g[at] * w[c] * hat(at), count[s] += 1;
    dw[c] += g[at] * hat(at), db[c] += g[at];
  });
  each(x.dims, [&](extents const& at) {
    auto const s = group_of(at);
    dx[at] = rstd[s] * (g[at] * w[weight_of(at)] - sum[s] / count[s] - hat(at) * dot[s] / count[s]);
  });
  return {dx, dw, db};
}

/// f(row, result's row) for each row along an axis.
template <class F>
array along(array const& x, int axis, F const& f) {
  array y(x.dims);
  each(with(x.dims, axis, 1), [&](extents const& at) {
    std::vector<double> row, result;
    for (std::int64_t k = 0; k < x.dims[axis]; ++k) row.push_back(x[with(at, axis, k)]);
    result = f(row, at);
    for (std::int64_t k = 0; k < x.dims[axis]; ++k) y[with(at, axis, k)] = result[static_cast<std::size_t>(k)];
  });
  return y;
}
array softmax_of(array const& x, int axis, bool log) {
  return along(x, axis, [&](std::vector<double> row, extents const&) {
    double sum = 0;
    for (double e : row) sum += std::exp(e);
    for (double& e : row) e = log ? e - std::log(sum) : std::exp(e) / sum;
    return row;
  });
}
array softmax_gradient(array const& g, array const& y, int axis, bool log) {
  return along(g, axis, [&](std::vector<double> row, extents const& at) {
    double sum = 0;
    for (std::size_t k = 0; k < row.size(); ++k)
      sum += row[k] * (log ? 1 : y[with(at, axis, static_cast<std::int64_t>(k))]);
    for (std::size_t k = 0; k < row.size(); ++k) {
      double const p = y[with(at, axis, static_cast<std::int64_t>(k))];
      row[k] = log ? row[k] - std::exp(p) * sum : p * (row[k] - sum);
    }
    return row;
  });
}

auto reduced_over(std::vector<int> axes, bool keep, bool mean) {
  return [=](arrays const& in, std::vector<shape> const& out) {
    array y(out[0]);
    double const n = static_cast<double>(in[0].v.size()) / static_cast<double>(y.v.size());
    each(in[0].dims, [&](extents const& at) {
      extents to;
      for (int k = 0; k < at.rank(); ++k) {
        bool const gone = std::find(axes.begin(), axes.end(), k) != axes.end();
        if (!gone || keep) to.push_back(gone ? 0 : at[k]);
      }
      y[to] += in[0][at] / (mean ? n : 1);
    });
    return arrays{y};
  };
}

/// Where x[indices] comes from: by[k] indexes axis axes[k]; their broadcast block of `rank` axes begins at axis `first`.
extents indexed_place(arrays const& in, extents const& at, int x_rank, std::vector<std::pair<int, int>> const& by,
                      int first, int rank) {
  extents block;
  for (int b = 0; b < rank; ++b) block.push_back(at[first + b]);
  extents from;
  for (int k = 0, next = 0; k < x_rank; ++k) {
    auto const i = std::find_if(by.begin(), by.end(), [&](auto const& p) { return p.second == k; });
    if (i != by.end()) {
      auto const& index = in[static_cast<std::size_t>(i->first)];
      from.push_back(static_cast<std::int64_t>(index[broadcast_place(index.dims, block)]));
    } else {
      if (next == first) next += rank;
      from.push_back(at[next++]);
    }
  }
  return from;
}

arrays attention_of(arrays const& in, bool causal, double scale) {
  auto const &q = in[0], &k = in[1], &v = in[2];
  array y(with(q.dims, 3, v.dims[3])), lse(without(q.dims, 3));
  each(lse.dims, [&](extents const& at) {
    std::vector<double> p;
    double sum = 0;
    for (std::int64_t s = 0; s < k.dims[2] && (!causal || s <= at[2]); ++s) {
      double dot = 0;
      for (std::int64_t d = 0; d < q.dims[3]; ++d) dot += q[{at[0], at[1], at[2], d}] * k[{at[0], at[1], s, d}];
      p.push_back(std::exp(scale * dot)), sum += p.back();
    }
    lse[at] = std::log(sum);
    for (std::int64_t e = 0; e < v.dims[3]; ++e)
      for (std::size_t s = 0; s < p.size(); ++s)
        y[{at[0], at[1], at[2], e}] += p[s] / sum * v[{at[0], at[1], static_cast<std::int64_t>(s), e}];
  });
  array state(shape{2}), unused, none(shape{0});
  state.v = {7, 11};
  return {y, lse, array(), array(), array(), array(), state, unused, none};
}
arrays attention_gradient(arrays const& in, bool causal, double scale) {
  auto const &g = in[0], &q = in[1], &k = in[2], &v = in[3], &y = in[4], &lse = in[5];
  array dq(q.dims), dk(k.dims), dv(v.dims);
  each(lse.dims, [&](extents const& at) {
    auto const b = at[0], h = at[1], t = at[2];
    double delta = 0;
    for (std::int64_t e = 0; e < v.dims[3]; ++e) delta += g[{b, h, t, e}] * y[{b, h, t, e}];
    for (std::int64_t s = 0; s < k.dims[2] && (!causal || s <= t); ++s) {
      double dot = 0, dp = 0;
      for (std::int64_t d = 0; d < q.dims[3]; ++d) dot += q[{b, h, t, d}] * k[{b, h, s, d}];
      for (std::int64_t e = 0; e < v.dims[3]; ++e) dp += g[{b, h, t, e}] * v[{b, h, s, e}];
      double const p = std::exp(scale * dot - lse[at]), ds = p * (dp - delta) * scale;
      for (std::int64_t e = 0; e < v.dims[3]; ++e) dv[{b, h, s, e}] += p * g[{b, h, t, e}];
      for (std::int64_t d = 0; d < q.dims[3]; ++d)
        dq[{b, h, t, d}] += ds * k[{b, h, s, d}], dk[{b, h, s, d}] += ds * q[{b, h, t, d}];
    }
  });
  return {dq, dk, dv};
}

}  // namespace

// ---------------------------------------------------------------------------------------------- by family

TEST_CASE("elementwise after broadcasting: an axis of extent 1 is whole in every part") {
  CHECK(cut_everywhere({"add.Tensor", R"(["%0","%1"])", {{{4, 6, 2}}, {{6, 1}}}, {{{4, 6, 2}}}, elementwise(plus)}) ==
        3);
  CHECK(cut_everywhere({"mul.Tensor", R"(["%0","%0"])", {{{4, 6}}}, {{{4, 6}}}, elementwise(plus)}) == 2);
  CHECK(cut_everywhere(
            {"where.self", R"(["%0","%1","%2"])", {{{4, 1}}, {{}}, {{1, 6}}}, {{{4, 6}}}, elementwise(plus)}) == 2);
  CHECK(cut_everywhere({"expand.default", R"(["%0",[4,3,-1]])", {{{3, 6}}}, {{{4, 3, 6}}}, elementwise(plus)}) == 2);
  CHECK(cut_everywhere({"expand.default", R"(["%0",[4,6]])", {{{1, 6}}}, {{{4, 6}}}, elementwise(plus)}) == 1);
  CHECK(cut_everywhere({"copy.default", R"(["%0","%1"])", {{{4, 6}}, {{6}}}, {{{4, 6}}}, elementwise(plus)}) == 2);
  CHECK(links_text({"native_dropout.default", R"(["%0",0.1,true])", {{{4, 6}}}, {{{4, 6}}, {{4, 6}}}, {}}) ==
        "0.0=0.0 0.0=1.0 0.1=0.1 0.1=1.1");
  // Flagged by the file, with a name that is in no table, and no arguments; not flagged: nothing is known.
  known_call const odd{"made_up.default", "[]", {{{4, 6}}, {{6}}}, {{{4, 6}}}, {}};
  node_text const text(odd);
  CHECK(to_text(io::aten_links(text.node("aten.made_up.default", true))) == "0.0=0.0 0.1=0.1 1.0=0.1");
  CHECK(io::aten_links(text.node("aten.made_up.default")).empty());
  CHECK(io::aten_links(text.node("made_up", true)).size() == 3);
  // Shapes that do not broadcast to the result.
  CHECK(links_text({"add.Tensor", R"(["%0","%1"])", {{{4, 6}}, {{3}}}, {{{4, 6}}}, {}}) == "");
  CHECK(links_text({"add.Tensor", R"(["%0","%1"])", {{{4, 6}}, {{2, 4, 6}}}, {{{4, 6}}}, {}}) == "");
}

TEST_CASE("views of other extents: axes that stay, and the leading ones of groups") {
  auto const of = [](char const* op, char const* args, shape from, shape to) {
    return cut_everywhere({op, args, {{from}}, {{to}}, reshaped});
  };
  CHECK(of("view.default", R"(["%0",[24,5]])", {4, 6, 5}, {24, 5}) == 2);
  CHECK(of("view.default", R"(["%0",[4,6,-1,2]])", {4, 6, 6}, {4, 6, 3, 2}) == 3);
  CHECK(of("_unsafe_view.default", R"(["%0",[4,6,5]])", {24, 5}, {4, 6, 5}) == 2);
  CHECK(of("_unsafe_view.default", R"(["%0",[12,6]])", {4, 3, 6, 1}, {12, 6}) == 2);
  CHECK(of("reshape.default", R"(["%0",[64]])", {4, 4, 4}, {64}) == 1);
  CHECK(of("unsqueeze.default", R"(["%0",1])", {4, 6}, {4, 1, 6}) == 2);
  CHECK(of("as_strided.default", R"(["%0",[4,6,1,1],[6,1,6,6]])", {4, 6, 1, 1}, {4, 6, 1, 1}) == 1);
  CHECK(of("as_strided.default", R"(["%0",[4,6],[6,1],0])", {24}, {4, 6}) == 1);
  CHECK(links_text({"view.default", R"(["%0",[4,6]])", {{{6, 4}}}, {{{4, 6}}}, {}}) == "");
  CHECK(links_text({"view.default", R"(["%0",[4,6]])", {{{6, 5}}}, {{{4, 6}}}, {}}) == "");
  // Squeezed: an axis that is named must not become 1.
  CHECK(of("squeeze.dim", R"(["%0",1])", {4, 1, 6}, {4, 6}) == 2);
  CHECK(of("squeeze.dims", R"(["%0",[0,-1]])", {1, 4, 6, 1}, {4, 6}) == 2);
  CHECK(links_text({"squeeze.dim", R"(["%0",0])", {{{4, 6}}}, {{{4, 6}}}, {}}) == "0.1=0.1");
  auto const scattered = [](arrays const& in, std::vector<shape> const& out) {
    array y(out[0]);
    y.v = in[1].v;
    return arrays{y};
  };
  CHECK(cut_everywhere(
            {"as_strided_scatter.default", R"(["%0","%1",[4,6],[6,1],0])", {{{24}}, {{4, 6}}}, {{{24}}}, scattered}) ==
        1);
  CHECK(links_text({"as_strided_scatter.default", R"(["%0","%1",[4,6],[1,4],0])", {{{24}}, {{4, 6}}}, {{{24}}}, {}}) ==
        "");
}

TEST_CASE("axes in another order, picked, joined, put apart") {
  auto const swapped = [](int a, int b) {
    return moved([=](extents at, int) {
      std::swap(at[a], at[b]);
      return at;
    });
  };
  CHECK(cut_everywhere({"t.default", R"(["%0"])", {{{4, 6}}}, {{{6, 4}}}, swapped(0, 1)}) == 2);
  CHECK(cut_everywhere({"transpose.int", R"(["%0",0,-2])", {{{4, 6, 2}}}, {{{6, 4, 2}}}, swapped(0, 1)}) == 3);
  CHECK(cut_everywhere(
            {"permute.default", R"(["%0",[2,0,-2]])", {{{4, 6, 2}}}, {{{2, 4, 6}}}, moved([](extents const& at, int) {
               return extents{at[1], at[2], at[0]};
             })}) == 3);
  CHECK(cut_everywhere({"select.int", R"(["%0",1,2])", {{{4, 3, 6}}}, {{{4, 6}}}, moved([](extents const& at, int) {
                          return inserted(at, 1, 2);
                        })}) == 2);
  CHECK(cut_everywhere(
            {"unbind.int", R"(["%0"])", {{{2, 4, 6}}}, {{{4, 6}}, {{4, 6}}}, moved([](extents const& at, int j) {
               return inserted(at, 0, j);
             })}) == 2);
  CHECK(cut_everywhere(
            {"split.Tensor", R"(["%0",3,-1])", {{{4, 6}}}, {{{4, 3}}, {{4, 3}}}, moved([](extents const& at, int j) {
               return with(at, 1, at[1] + 3 * j);
             })}) == 1);
  CHECK(cut_everywhere({"split_with_sizes.default",
                        R"(["%0",[4,2],1])",
                        {{{4, 6}}},
                        {{{4, 4}}, {{4, 2}}},
                        moved([](extents const& at, int j) { return with(at, 1, at[1] + 4 * j); })}) == 1);
  CHECK(cut_everywhere({"slice.Tensor", R"(["%0",1,2,5])", {{{4, 6}}}, {{{4, 3}}}, moved([](extents const& at, int) {
                          return with(at, 1, at[1] + 2);
                        })}) == 1);
  CHECK(cut_everywhere({"slice.Tensor", R"(["%0",0,0,-2])", {{{4, 6}}}, {{{2, 6}}}, moved([](extents const& at, int) {
                          return at;
                        })}) == 1);
  CHECK(cut_everywhere({"slice.Tensor",
                        R"(["%0",0,0,9223372036854775807])",
                        {{{4, 6}}},
                        {{{4, 6}}},
                        moved([](extents const& at, int) { return at; })}) == 2);
  CHECK(links_text({"slice.Tensor", R"(["%0",0,0,4,2])", {{{4, 6}}}, {{{2, 6}}}, {}}) == "0.1=0.1");
  CHECK(cut_everywhere({"select_backward.default",
                        R"(["%0",[4,3,6],1,2])",
                        {{{4, 6}}},
                        {{{4, 3, 6}}},
                        [](arrays const& in, std::vector<shape> const& out) {
                          array y(out[0]);
                          each(in[0].dims, [&](extents const& at) { y[inserted(at, 1, 2)] = in[0][at]; });
                          return arrays{y};
                        }}) == 2);
  auto const into = [](std::int64_t from, int axis, std::size_t src) {
    return [=](arrays const& in, std::vector<shape> const& out) {
      array y(out[0]);
      if (src == 1) y = in[0];
      each(in[src].dims, [&](extents const& at) { y[with(at, axis, at[axis] + from)] = in[src][at]; });
      return arrays{y};
    };
  };
  CHECK(cut_everywhere({"slice_backward.default",
                        R"(["%0",[4,6],1,3,9223372036854775807,1])",
                        {{{4, 3}}},
                        {{{4, 6}}},
                        into(3, 1, 0)}) == 1);
  CHECK(cut_everywhere({"slice_backward.default", R"(["%0",[4,6],1,0,6,1])", {{{4, 6}}}, {{{4, 6}}}, into(0, 1, 0)}) ==
        2);
  CHECK(cut_everywhere(
            {"slice_scatter.default", R"(["%0","%1",0,0,-2])", {{{4, 6}}, {{2, 6}}}, {{{4, 6}}}, into(0, 0, 1)}) == 1);
  CHECK(cut_everywhere({"slice_scatter.default",
                        R"(["%0","%1",1,0,9223372036854775807])",
                        {{{4, 6}}, {{4, 6}}},
                        {{{4, 6}}},
                        into(0, 1, 1)}) == 2);
  auto const joined = [](arrays const& in, std::vector<shape> const& out) {
    array y(out[0]);
    std::int64_t from = 0;
    for (auto const& x : in) {
      each(x.dims, [&](extents const& at) { y[with(at, 1, at[1] + from)] = x[at]; });
      from += x.dims[1];
    }
    return arrays{y};
  };
  CHECK(cut_everywhere({"cat.default", R"([["%0","%1"],1])", {{{4, 3, 2}}, {{4, 1, 2}}}, {{{4, 4, 2}}}, joined}) == 2);
  CHECK(links_text({"cat.default", R"([["%0","%0"],-1])", {{{4, 6}}}, {{{4, 12}}}, {}}) == "0.0=0.0");
  CHECK(links_text({"cat.default", R"([["%0","%1"]])", {{{4, 6}}, {{2, 6}}}, {{{6, 6}}}, {}}) == "0.1=0.1 1.1=0.1");
  CHECK(links_text({"cat.default", R"([["%0","%1"]])", {{{0}}, {{2, 6}}}, {{{2, 6}}}, {}}) == "");
  CHECK(cut_everywhere({"stack.default",
                        R"([["%0","%1"],1])",
                        {{{4, 6}}, {{4, 6}}},
                        {{{4, 2, 6}}},
                        [](arrays const& in, std::vector<shape> const& out) {
                          array y(out[0]);
                          each(out[0],
                               [&](extents const& at) { y[at] = in[static_cast<std::size_t>(at[1])][without(at, 1)]; });
                          return arrays{y};
                        }}) == 2);
  CHECK(cut_everywhere(
            {"repeat.default", R"(["%0",[3,1,2]])", {{{4, 6}}}, {{{3, 4, 12}}}, moved([](extents const& at, int) {
               return extents{at[1], at[2] % 6};
             })}) == 1);
  CHECK(cut_everywhere({"roll.default", R"(["%0",[-1],[1]])", {{{4, 6}}}, {{{4, 6}}}, moved([](extents const& at, int) {
                          return with(at, 1, (at[1] + 1) % 6);
                        })}) == 1);
  CHECK(links_text({"roll.default", R"(["%0",[-1]])", {{{4, 6}}}, {{{4, 6}}}, {}}) == "");
  CHECK(links_text({"roll.default", R"(["%0",[-1],[]])", {{{4, 6}}}, {{{4, 6}}}, {}}) == "");
  CHECK(cut_everywhere({"constant_pad_nd.default",
                        R"(["%0",[0,0,1,1,0,0],0.0])",
                        {{{4, 6, 2}}},
                        {{{4, 8, 2}}},
                        [](arrays const& in, std::vector<shape> const& out) {
                          array y(out[0]);
                          each(in[0].dims, [&](extents const& at) { y[with(at, 1, at[1] + 1)] = in[0][at]; });
                          return arrays{y};
                        }}) == 2);
  CHECK(
      cut_everywhere(
          {"tril.default", R"(["%0"])", {{{4, 6, 6}}}, {{{4, 6, 6}}}, [](arrays const& in, std::vector<shape> const&) {
             array y = in[0];
             each(y.dims, [&](extents const& at) { y[at] *= at[2] <= at[1]; });
             return arrays{y};
           }}) == 1);
  CHECK(links_text({"triu.default", R"(["%0"])", {{{4, 6, 6}}}, {{{4, 6, 6}}}, {}}) == "0.0=0.0");
}

TEST_CASE("products: rows, columns, and the inner axis, of which the parts are summed where nothing is added") {
  auto const of = [](int a, int b, int bias) {
    return [=](arrays const& in, std::vector<shape> const&) { return product(in, a, b, bias); };
  };
  CHECK(cut_everywhere({"mm.default", R"(["%0","%1"])", {{{4, 6}}, {{6, 8}}}, {{{4, 8}}}, of(0, 1, -1)}) == 3);
  CHECK(cut_everywhere({"bmm.default", R"(["%0","%1"])", {{{2, 4, 6}}, {{2, 6, 8}}}, {{{2, 4, 8}}}, of(0, 1, -1)}) ==
        4);
  CHECK(cut_everywhere(
            {"addmm.default", R"(["%0","%1","%2"])", {{{8}}, {{4, 6}}, {{6, 8}}}, {{{4, 8}}}, of(1, 2, 0)}) == 2);
  CHECK(cut_everywhere(
            {"addmm.default", R"(["%0","%1","%2"])", {{{4, 1}}, {{4, 6}}, {{6, 8}}}, {{{4, 8}}}, of(1, 2, 0)}) == 2);
  CHECK(cut_everywhere({"baddbmm.default",
                        R"(["%0","%1","%2"])",
                        {{{2, 1, 8}}, {{2, 4, 6}}, {{2, 6, 8}}},
                        {{{2, 4, 8}}},
                        of(1, 2, 0)}) == 3);
  // One tensor as both factors: only what both uses agree on.
  CHECK(links_text({"mm.default", R"(["%0","%0"])", {{{6, 6}}}, {{{6, 6}}}, {}}) == "");
  CHECK(cut_everywhere({"bmm.default", R"(["%0","%0"])", {{{2, 6, 6}}}, {{{2, 6, 6}}}, of(0, 0, -1)}) == 1);
}

TEST_CASE("convolutions: batches; channels, where there is one group") {
  for (auto const& f : {conv_form{}, conv_form{2, 1, 1, 1, false}, conv_form{1, 2, 2, 1, false},
                        conv_form{1, 1, 1, 2, false}, conv_form{2, 1, 1, 1, true}, conv_form{1, 0, 1, 2, true}})
    for (bool const bias : {false, true}) {
      CAPTURE(f.transposed);
      CAPTURE(f.groups);
      shape const x{2, 4, 5, 5};
      shape const w = f.transposed ? shape{4, 6 / f.groups, 3, 3} : shape{6, 4 / f.groups, 3, 3};
      auto const reach = f.dilation * 2 + 1;
      auto const side =
          f.transposed ? (5 - 1) * f.stride - 2 * f.padding + reach : (5 + 2 * f.padding - reach) / f.stride + 1;
      shape const y{2, 6, side, side};
      std::vector<operand> in{{x}, {w}};
      if (bias) in.push_back({{6}});
      int const loops =
          cut_everywhere({"convolution.default",
                          f.text(bias ? R"(["%0","%1","%2",)" : R"(["%0","%1",null,)") + "]",
                          in,
                          {{y}},
                          [&](arrays const& a, std::vector<shape> const& out) {
                            array r(out[0]);
                            f.taps(a[0].dims, a[1].dims, out[0],
                                   [&](auto const& i, auto const& k, auto const& o) { r[o] += a[0][i] * a[1][k]; });
                            if (bias) each(out[0], [&](extents const& at) { r[at] += a[2][{at[1]}]; });
                            return arrays{r};
                          }});
      CHECK(loops == (f.groups > 1 ? 1 : bias ? 2 : 3));
      for (int mask : {7, 6, 5, 3, 2}) {  // bit 0: x's gradient, 1: w's, 2: the bias's
        shapes out{x, w, shape{6}};
        for (int j = 0; j < 3; ++j)
          if (!(mask >> j & 1)) out[static_cast<std::size_t>(j)].reset();
        int const cuts =
            cut_everywhere({"convolution_backward.default",
                            f.text(R"(["%0","%1","%2",[6],)") + ",[true,true,true]]",
                            {{y}, {x}, {w}},
                            out,
                            [&](arrays const& a, std::vector<shape> const&) {
                              array dx(a[1].dims), dw(a[2].dims), db({a[0].dims[1]});
                              f.taps(a[1].dims, a[2].dims, a[0].dims, [&](auto const& i, auto const& k, auto const& o) {
                                dx[i] += a[0][o] * a[2][k], dw[k] += a[0][o] * a[1][i];
                              });
                              each(a[0].dims, [&](extents const& at) { db[{at[1]}] += a[0][at]; });
                              return arrays{dx, dw, db};
                            }});
        CAPTURE(mask);
        CHECK(cuts == (f.groups > 1 ? 1 : mask & 4 ? 2 : 3));
      }
    }
  CHECK(links_text({"convolution_backward.default",
                    conv_form{}.text(R"(["%0","%1","%2",[6],)") + ",[true,true,true]]",
                    {{{2, 6, 3, 3}}, {{2, 4, 5, 5}}, {{6, 4, 3, 3}}},
                    {{{2, 4, 5, 5}}, {{6, 4, 3, 3}}, {{6}}},
                    {}}) == "0.0=0.0 0.0+0 1.0=0.0 1.0+0 0.1=1.0 0.1=2.0 0.1+1 2.0=1.0 2.0=2.0 2.0+1");
}

TEST_CASE("normalisations: rows, samples or channels; the gradients of weights are summed") {
  for (int over : {1, 2}) {
    shape const x{4, 6, 8}, w = over == 1 ? shape{8} : shape{6, 8};
    shape const s = over == 1 ? shape{4, 6, 1} : shape{4, 1, 1};
    auto const row = [over](extents at) {
      for (int k = 3 - over; k < 3; ++k) at[k] = 0;
      return at;
    };
    auto const column = [over](extents const& at) { return over == 1 ? extents{at[2]} : extents{at[1], at[2]}; };
    std::string const dims = over == 1 ? "[8]" : "[6,8]";
    CHECK(cut_everywhere({"native_layer_norm.default",
                          R"(["%0",)" + dims + R"(,"%1","%2",1e-5])",
                          {{x}, {w}, {w}},
                          {x, s, s},
                          [&](arrays const& a, std::vector<shape> const& out) {
                            return normalised(a[0], a[1], a[2], out[1], row, column);
                          }}) == 3 - over);
    for (bool const weights : {true, false}) {
      shapes out{x, w, w};
      if (!weights) out[1].reset(), out[2].reset();
      CHECK(cut_everywhere({"native_layer_norm_backward.default",
                            R"(["%0","%1",)" + dims + R"(,"%2","%3","%4","%5",[true,true,true]])",
                            {{x}, {x}, {s}, {s}, {w}, {w}},
                            out,
                            [&](arrays const& a, std::vector<shape> const&) {
                              return normalised_backward(a[0], a[1], a[2], a[3], a[4], row, column);
                            }}) == 3 - over);
    }
  }
  shape const x{4, 6, 2, 3}, c{6};
  auto const channel = [](extents const& at) { return extents{at[1]}; };
  CHECK(cut_everywhere({"_native_batch_norm_legit_functional.default",
                        R"(["%0","%1","%2","%3","%4",true,0.1,1e-05])",
                        {{x}, {c}, {c}, {c}, {c}},
                        {x, c, c, c, c},
                        [&](arrays const& a, std::vector<shape> const& out) {
                          auto r = normalised(a[0], a[1], a[2], out[1], channel, channel);
                          for (std::size_t k : {3u, 4u}) {
                            r.push_back(a[k]);
                            for (std::size_t e = 0; e < a[k].v.size(); ++e)
                              r[k].v[e] = 0.9 * a[k].v[e] + 0.1 * r[k - 2].v[e];
                          }
                          return r;
                        }}) == 1);
  for (bool const training : {true, false})
    CHECK(cut_everywhere({"native_batch_norm_backward.default",
                          std::string(R"(["%0","%1","%2","%3","%4","%5","%6",)") + (training ? "true" : "false") +
                              R"(,1e-05,[true,true,true]])",
                          {{x}, {x}, {c}, {c}, {c}, {c}, {c}},
                          {x, c, c},
                          [&](arrays const& a, std::vector<shape> const&) {
                            if (training) return normalised_backward(a[0], a[1], a[5], a[6], a[2], channel, channel);
                            array dx(a[1].dims), dw(a[2].dims), db(a[2].dims);
                            each(dx.dims, [&](extents const& at) {
                              auto const k = channel(at);
                              double const r = 1 / std::sqrt(a[4][k] + 1e-5);
                              dx[at] = a[0][at] * a[2][k] * r;
                              dw[k] += a[0][at] * (a[1][at] - a[3][k]) * r, db[k] += a[0][at];
                            });
                            return arrays{dx, dw, db};
                          }}) == (training ? 1 : 2));
  shape const s{4, 3};
  auto const group = [](extents const& at) { return extents{at[0], at[1] / 2}; };
  CHECK(cut_everywhere({"native_group_norm.default",
                        R"(["%0","%1","%2",4,6,6,3,1e-05])",
                        {{x}, {c}, {c}},
                        {x, s, s},
                        [&](arrays const& a, std::vector<shape> const& out) {
                          return normalised(a[0], a[1], a[2], out[1], group, channel);
                        }}) == 1);
  CHECK(cut_everywhere({"native_group_norm_backward.default",
                        R"(["%0","%1","%2","%3","%4",4,6,6,3,[true,true,true]])",
                        {{x}, {x}, {s}, {s}, {c}},
                        {x, c, c},
                        [&](arrays const& a, std::vector<shape> const&) {
                          return normalised_backward(a[0], a[1], a[2], a[3], a[4], group, channel);
                        }}) == 1);
}

TEST_CASE("along one axis, and reductions") {
  for (bool const log : {false, true}) {
    std::string const name = log ? "_log_softmax" : "_softmax";
    CHECK(cut_everywhere(
              {name + ".default",
               R"(["%0",-1,false])",
               {{{4, 2, 6}}},
               {{{4, 2, 6}}},
               [&](arrays const& a, std::vector<shape> const&) { return arrays{softmax_of(a[0], 2, log)}; }}) == 2);
    CHECK(cut_everywhere({name + "_backward_data.default",
                          R"(["%0","%1",1,"torch.float32"])",
                          {{{4, 6, 2}}, {{4, 6, 2}}},
                          {{{4, 6, 2}}},
                          [&](arrays const& a, std::vector<shape> const&) {
                            return arrays{softmax_gradient(a[0], a[1], 1, log)};
                          }}) == 2);
  }
  CHECK(cut_everywhere(
            {"sum.dim_IntList", R"(["%0",[0],true])", {{{4, 6}}}, {{{1, 6}}}, reduced_over({0}, true, false)}) == 2);
  CHECK(cut_everywhere(
            {"sum.dim_IntList", R"(["%0",[0,-1]])", {{{4, 6, 2}}}, {{{6}}}, reduced_over({0, 2}, false, false)}) == 3);
  CHECK(cut_everywhere({"sum.dim_IntList", R"(["%0",[]])", {{{4, 6}}}, {{{}}}, reduced_over({0, 1}, false, false)}) ==
        2);
  CHECK(cut_everywhere({"sum.dim_IntList", R"(["%0",null])", {{{4, 6}}}, {{{}}}, reduced_over({0, 1}, false, false)}) ==
        2);
  CHECK(cut_everywhere({"sum.default", R"(["%0"])", {{{4, 6}}}, {{{}}}, reduced_over({0, 1}, false, false)}) == 2);
  CHECK(cut_everywhere(
            {"mean.dim", R"(["%0",[-1,-2],true])", {{{4, 6, 2}}}, {{{4, 1, 1}}}, reduced_over({1, 2}, true, true)}) ==
        3);
  CHECK(cut_everywhere({"mean.default", R"(["%0"])", {{{4, 6}}}, {{{}}}, reduced_over({0, 1}, false, true)}) == 2);
  CHECK(cut_everywhere({"topk.default",
                        R"(["%0",2])",
                        {{{4, 6}}},
                        {{{4, 2}}, {{4, 2}}},
                        [](arrays const& a, std::vector<shape> const& out) {
                          array best(out[0]), where(out[0]);
                          for (std::int64_t r = 0; r < out[0][0]; ++r) {
                            std::vector<std::int64_t> order{0, 1, 2, 3, 4, 5};
                            std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) {
                              return a[0][{r, i}] > a[0][{r, j}];
                            });
                            for (std::int64_t k = 0; k < 2; ++k) {
                              where[{r, k}] = static_cast<double>(order[static_cast<std::size_t>(k)]);
                              best[{r, k}] = a[0][{r, order[static_cast<std::size_t>(k)]}];
                            }
                          }
                          return arrays{best, where};
                        }}) == 1);
}

TEST_CASE("picking: tables are whole where indices are cut; what is added to zeros is summed") {
  auto const row = [](array const& index, extents const& at) {
    extents i;
    for (int k = 0; k < index.dims.rank(); ++k) i.push_back(at[k]);
    return static_cast<std::int64_t>(index[i]);
  };
  CHECK(cut_everywhere({"embedding.default",
                        R"(["%0","%1",0])",
                        {{{5, 6}}, {{4, 2}, 5}},
                        {{{4, 2, 6}}},
                        [&](arrays const& a, std::vector<shape> const& out) {
                          array y(out[0]);
                          each(out[0], [&](extents const& at) { y[at] = a[0][{row(a[1], at), at[2]}]; });
                          return arrays{y};
                        }}) == 3);
  auto const gradient = [&](arrays const& a, std::vector<shape> const& out) {
    array y(out[0]);
    each(a[0].dims, [&](extents const& at) { y[{row(a[1], at), at[at.rank() - 1]}] += a[0][at]; });
    return arrays{y};
  };
  CHECK(cut_everywhere({"embedding_dense_backward.default",
                        R"(["%0","%1",5,-1,false])",
                        {{{4, 2, 6}}, {{4, 2}, 5}},
                        {{{5, 6}}},
                        gradient}) == 3);
  CHECK(links_text({"embedding_dense_backward.default",
                    R"(["%0","%1",5,-1,true])",
                    {{{4, 2, 6}}, {{4, 2}, 5}},
                    {{{5, 6}}},
                    {}}) == "0.2=0.1");

  struct form {
    char const* list;
    shape x, result;
    std::vector<operand> index;
    std::vector<std::pair<int, int>> by;  // which input indexes which axis
    int first, rank;                      // of the block
    int loops;
  };
  for (auto const& f :
       {form{R"(["%1"])", {5, 6}, {4, 6}, {{{4}, 5}}, {{1, 0}}, 0, 1, 2},
        form{R"(["%1"])", {5, 6}, {4, 2, 6}, {{{4, 2}, 5}}, {{1, 0}}, 0, 2, 3},
        form{
            R"([null,null,"%1","%2"])", {2, 4, 5, 5}, {2, 4, 8, 6}, {{{8, 1}, 5}, {{6}, 5}}, {{1, 2}, {2, 3}}, 2, 2, 4},
        form{R"([null,"%1"])", {4, 5, 6}, {4, 2, 6}, {{{2}, 5}}, {{1, 1}}, 1, 1, 3},
        form{R"(["%1",null,"%2"])", {5, 6, 5}, {4, 6}, {{{4}, 5}, {{1}, 5}}, {{1, 0}, {2, 2}}, 0, 1, 2}}) {
    std::vector<operand> in{{f.x}};
    for (auto const& i : f.index) in.push_back(i);
    for (char const* op : {"index.Tensor", "_unsafe_index.Tensor"})
      CHECK(cut_everywhere({op,
                            R"(["%0",)" + std::string(f.list) + "]",
                            in,
                            {{f.result}},
                            [&](arrays const& a, std::vector<shape> const& out) {
                              array y(out[0]);
                              each(out[0], [&](extents const& at) {
                                y[at] = a[0][indexed_place(a, at, f.x.rank(), f.by, f.first, f.rank)];
                              });
                              return arrays{y};
                            }}) == f.loops);
    auto const put = [&](arrays const& a, std::vector<shape> const& out) {
      array y = a[0];
      REQUIRE(y.dims == out[0]);
      each(a.back().dims,
           [&](extents const& at) { y[indexed_place(a, at, f.x.rank(), f.by, f.first, f.rank)] += a.back()[at]; });
      return arrays{y};
    };
    in.push_back({f.result});
    auto const args = [&](char const* more) {
      return R"(["%0",)" + std::string(f.list) + R"(,"%)" + std::to_string(in.size() - 1) + "\"" + more + "]";
    };
    int const plain = f.x.rank() - static_cast<int>(f.by.size());
    for (char const* op : {"index_put.default", "_unsafe_index_put.default"}) {
      CHECK(cut_everywhere({op, args(",true"), in, {{f.x}}, put}) == plain);
      auto from_zeros = in;
      from_zeros[0].zeros = true;
      CHECK(cut_everywhere({op, args(",true"), from_zeros, {{f.x}}, put}) == f.loops);
      CHECK(
          io::aten_links(node_text({op, args(""), from_zeros, {{f.x}}, put}).node(std::string("aten.") + op)).size() ==
          io::aten_links(node_text({op, args(",true"), in, {{f.x}}, put}).node(std::string("aten.") + op)).size());
    }
  }
  // A mask picks as many as it holds.
  known_call const masked{"index.Tensor", R"(["%0",["%1"]])", {{{5, 6}}, {{5}, 2}}, {{{5, 6}}}, {}};
  node_text text(masked);
  text.in[1].type.element = dtype::boolean;
  CHECK(io::aten_links(text.node("aten.index.Tensor")).empty());

  CHECK(cut_everywhere({"gather.default",
                        R"(["%0",1,"%1"])",
                        {{{4, 5}}, {{4, 2}, 5}},
                        {{{4, 2}}},
                        [](arrays const& a, std::vector<shape> const& out) {
                          array y(out[0]);
                          each(out[0], [&](extents const& at) {
                            y[at] = a[0][{at[0], static_cast<std::int64_t>(a[1][at])}];
                          });
                          return arrays{y};
                        }}) == 2);
  CHECK(links_text({"gather.default", R"(["%0",1,"%1"])", {{{4, 5}}, {{2, 2}, 5}}, {{{2, 2}}}, {}}) == "1.1=0.1");
  auto const scattered = [](arrays const& a, std::vector<shape> const&) {
    array y = a[0];
    each(a[1].dims, [&](extents const& at) {
      y[{at[0], static_cast<std::int64_t>(a[1][at])}] = a.size() > 2 ? a[2][at] : -1;
    });
    return arrays{y};
  };
  CHECK(cut_everywhere({"scatter.value", R"(["%0",1,"%1",-1.0])", {{{4, 6}}, {{4, 1}, 6}}, {{{4, 6}}}, scattered}) ==
        1);
  CHECK(cut_everywhere(
            {"scatter.src", R"(["%0",-1,"%1","%2"])", {{{4, 6}}, {{4, 2}, 6}, {{4, 2}}}, {{{4, 6}}}, scattered}) == 1);
  CHECK(links_text({"scatter.src", R"(["%0",-1,"%1","%2"])", {{{4, 6}}, {{2, 2}, 6}, {{4, 2}}}, {{{4, 6}}}, {}}) == "");
  CHECK(links_text({"scatter.value", R"(["%0",1,"%1",-1.0])", {{{4, 6}}, {{4, 6}, 6}}, {{{4, 6}}}, {}}) ==
        "0.0=0.0 1.0=0.0");
}

TEST_CASE("images: planes") {
  shape const x{2, 4, 4, 4}, y{2, 4, 2, 2};
  auto const window = [](extents const& at, auto const& f) {
    for (std::int64_t r = 0; r < 2; ++r)
      for (std::int64_t s = 0; s < 2; ++s) f(extents{at[0], at[1], 2 * at[2] + r, 2 * at[3] + s});
  };
  CHECK(cut_everywhere({"max_pool2d_with_indices.default",
                        R"(["%0",[2,2],[2,2]])",
                        {{x}},
                        {y, y},
                        [&](arrays const& a, std::vector<shape> const& out) {
                          array best(out[0]), where(out[0]);
                          each(out[0], [&](extents const& at) {
                            best[at] = -1;
                            window(at, [&](extents const& p) {
                              if (a[0][p] > best[at])
                                best[at] = a[0][p], where[at] = static_cast<double>(4 * p[2] + p[3]);
                            });
                          });
                          return arrays{best, where};
                        }}) == 2);
  CHECK(cut_everywhere({"max_pool2d_with_indices_backward.default",
                        R"(["%0","%1",[2,2],[2,2],[0,0],[1,1],false,"%2"])",
                        {{y}, {x}, {y, 16}},
                        {x},
                        [&](arrays const& a, std::vector<shape> const& out) {
                          array dx(out[0]);
                          each(a[0].dims, [&](extents const& at) {
                            auto const p = static_cast<std::int64_t>(a[2][at]);
                            dx[{at[0], at[1], p / 4, p % 4}] += a[0][at];
                          });
                          return arrays{dx};
                        }}) == 2);
  CHECK(cut_everywhere({"_adaptive_avg_pool2d.default",
                        R"(["%0",[2,2]])",
                        {{x}},
                        {y},
                        [&](arrays const& a, std::vector<shape> const& out) {
                          array r(out[0]);
                          each(out[0],
                               [&](extents const& at) { window(at, [&](extents const& p) { r[at] += a[0][p] / 4; }); });
                          return arrays{r};
                        }}) == 2);
  CHECK(cut_everywhere({"_adaptive_avg_pool2d_backward.default",
                        R"(["%0","%1"])",
                        {{y}, {x}},
                        {x},
                        [&](arrays const& a, std::vector<shape> const& out) {
                          array r(out[0]);
                          each(a[0].dims,
                               [&](extents const& at) { window(at, [&](extents const& p) { r[p] += a[0][at] / 4; }); });
                          return arrays{r};
                        }}) == 2);
}

TEST_CASE("attention: batches and heads; the random state is every part's") {
  shape const q{2, 4, 3, 5}, s{2, 4, 3};
  for (bool const causal : {true, false}) {
    std::string const flag = causal ? "true" : "false";
    CHECK(cut_everywhere({"_scaled_dot_product_flash_attention.default",
                          R"(["%0","%1","%2",0.0,)" + flag + "]",
                          {{q}, {q}, {q}},
                          {q, s, {}, {}, {}, {}, shape{2}, shape{}, shape{0}},
                          [&](arrays const& a, std::vector<shape> const&) { return attention_of(a, causal, 0.5); },
                          R"({"scale":0.5})"}) == 2);
    CHECK(cut_everywhere(
              {"_scaled_dot_product_flash_attention_backward.default",
               R"(["%0","%1","%2","%3","%4","%5",null,null,3,3,0.0,)" + flag + R"(,"%6","%7"])",
               {{q}, {q}, {q}, {q}, {q}, {s}, {{2}}, {{}}},
               {q, q, q},
               [&](arrays const& a, std::vector<shape> const&) { return attention_gradient(a, causal, 0.5); }}) == 2);
  }
  // Fewer heads of keys than of queries: batches alone.
  shape const k{2, 2, 3, 5};
  CHECK(links_text({"_scaled_dot_product_flash_attention.default",
                    R"(["%0","%1","%2",0.0,true])",
                    {{q}, {k}, {k}},
                    {q, s},
                    {}}) == "0.0=0.0 0.0=1.0 1.0=0.0 1.0=1.0 2.0=0.0 2.0=1.0");
}

TEST_CASE("losses: a mean over rows that may not count is no sum of parts") {
  shape const x{4, 6}, t{4};
  auto const forward = [](char reduction) { return std::string(R"(["%0","%1",null,)") + reduction + ",-100]"; };
  auto const backward = [](char reduction) {
    return std::string(R"(["%0","%1","%2",null,)") + reduction + R"(,-100,"%3"])";
  };
  CHECK(links_text({"nll_loss_forward.default", forward('1'), {{x}, {t, 6}}, {shape{}, shape{}}, {}}) == "");
  CHECK(cut_everywhere({"nll_loss_forward.default",
                        forward('2'),
                        {{x}, {t, 6}},
                        {shape{}, shape{}},
                        [](arrays const& a, std::vector<shape> const&) {
                          array loss, weight;
                          for (std::int64_t r = 0; r < a[1].dims[0]; ++r)
                            loss.v[0] -= a[0][{r, static_cast<std::int64_t>(a[1][{r}])}], weight.v[0] += 1;
                          return arrays{loss, weight};
                        }}) == 1);
  for (char const reduction : {'0', '1', '2'})
    CHECK(cut_everywhere({"nll_loss_backward.default",
                          backward(reduction),
                          {{reduction == '0' ? t : shape{}}, {x}, {t, 6}, {{}}},
                          {x},
                          [&](arrays const& a, std::vector<shape> const& out) {
                            array dx(out[0]);
                            for (std::int64_t r = 0; r < out[0][0]; ++r)
                              dx[{r, static_cast<std::int64_t>(a[2][{r}])}] =
                                  -(reduction == '0' ? a[0][{r}] : a[0].v[0]) / (reduction == '1' ? a[3].v[0] : 1);
                            return arrays{dx};
                          }}) == 1);
  for (char const* more : {"", ",1", ",2"}) {
    bool const mean = more != std::string(",2");
    CHECK(cut_everywhere({"mse_loss.default",
                          R"(["%0","%1")" + std::string(more) + "]",
                          {{x}, {x}},
                          {shape{}},
                          [&](arrays const& a, std::vector<shape> const&) {
                            array loss;
                            for (std::size_t e = 0; e < a[0].v.size(); ++e)
                              loss.v[0] +=
                                  std::pow(a[0].v[e] - a[1].v[e], 2) / (mean ? static_cast<double>(a[0].v.size()) : 1);
                            return arrays{loss};
                          }}) == 2);
  }
  CHECK(links_text({"mse_loss.default", R"(["%0","%1",0])", {{x}, {x}}, {x}, {}}) == "0.0=0.0 1.0=0.0 0.1=0.1 1.1=0.1");
  CHECK(cut_everywhere({"mse_loss_backward.default",
                        R"(["%0","%1","%2",2])",
                        {{{}}, {x}, {x}},
                        {x},
                        [](arrays const& a, std::vector<shape> const& out) {
                          array dx(out[0]);
                          for (std::size_t e = 0; e < dx.v.size(); ++e)
                            dx.v[e] = 2 * a[0].v[0] * (a[1].v[e] - a[2].v[e]);
                          return arrays{dx};
                        }}) == 2);
  CHECK(links_text({"mse_loss_backward.default", R"(["%0","%1","%2",1])", {{{}}, {x}, {x}}, {x}, {}}) == "");
}

TEST_CASE("every row of the table that says something has been cut, or is elementwise") {
  for (auto const& row : io::detail::aten::rows()) {
    CAPTURE(row.op);
    bool const plain = row.relate == io::detail::aten::pointwise || row.relate == io::detail::aten::no_relations;
    CHECK((plain || checked.contains(std::string(row.op)) || row.op == "triu.default"));
  }
}

// ---------------------------------------------------------------------------------------------- odd nodes

TEST_CASE(
    "whatever the arguments are, the relations are of axes that are there, and parts of one are parts of the other") {
  std::vector<json> const pool{nullptr,
                               true,
                               false,
                               0,
                               1,
                               2,
                               -1,
                               -7,
                               1e300,
                               "%0",
                               "%1",
                               "%2",
                               "%9",
                               "%",
                               "x",
                               json::array(),
                               {1, 0},
                               {0, 1, 2},
                               {-1, 4},
                               {nullptr, "%0"},
                               {"%0", "%1"},
                               {{"%0"}},
                               INT64_MAX,
                               json::object()};
  std::vector<shape> const dims{{}, {4}, {1, 4}, {4, 6}, {6, 4}, {24}, {4, 6, 1}, {2, 4, 6}, {2, 4, 6, 6}, {0, 4}};
  random_stream draw(5);
  std::size_t said = 0;
  for (auto const& row : io::detail::aten::rows())
    for (int tries = 0; tries < 300; ++tries) {
      known_call c{std::string(row.op), "[]", {}, {}, {}};
      auto const some = [&](std::uint32_t least, std::uint32_t most) { return least + draw.below(most - least + 1); };
      for (auto k = some(0, 3); k > 0; --k)
        c.in.push_back(
            {dims[draw.below(static_cast<std::uint32_t>(dims.size()))], draw.below(2) ? 3 : 0, draw.below(2) == 0});
      for (auto k = some(0, 3); k > 0; --k) {
        c.out.emplace_back(dims[draw.below(static_cast<std::uint32_t>(dims.size()))]);
        if (draw.below(4) == 0) c.out.back().reset();
      }
      json args = json::array();
      for (std::size_t k = 0; k < c.in.size(); ++k) args.push_back("%" + std::to_string(k));
      for (auto k = some(0, 9); k > 0; --k)
        args.insert(args.begin() + draw.below(static_cast<std::uint32_t>(args.size() + 1)),
                    pool[draw.below(static_cast<std::uint32_t>(pool.size()))]);
      c.args = args.dump();
      CAPTURE(c.op);
      CAPTURE(c.args);
      node_text const text(c);
      for (auto const& l : io::aten_links(text.node("aten." + c.op))) {
        ++said;
        REQUIRE((l.input >= 0 && static_cast<std::size_t>(l.input) < text.in.size()));
        auto const& a = text.in[static_cast<std::size_t>(l.input)].type.dims;
        REQUIRE((l.in_axis >= 0 && l.in_axis < a.rank()));
        auto const n = a[l.in_axis];
        CHECK(n > 1);
        if (l.output < 0) {
          CHECK(l.how != combine::concat);
          continue;
        }
        REQUIRE(static_cast<std::size_t>(l.output) < text.out.size());
        auto const& b = text.out[static_cast<std::size_t>(l.output)].type.dims;
        REQUIRE((l.out_axis >= 0 && l.out_axis < b.rank()));
        auto const m = b[l.out_axis];
        CHECK((n % m == 0 || m % n == 0));
      }
    }
  CHECK(said > 500);
}

TEST_CASE("arguments of other forms than the table knows: no relations") {
  known_call c{"mm.default", R"(["%0","%1"])", {{{4, 6}}, {{6, 8}}}, {{{4, 8}}}, {}};
  CHECK(links_text(c) == "0.0=0.0 1.1=0.1 0.1+0 1.0+0");
  for (char const* args : {R"(["%0","%2"])", R"(["%0"])", R"(["%0",3])", R"(["%0",["%1"]])", R"({"a":"%0"})", "[]"}) {
    c.args = args;
    CHECK(links_text(c) == "");
  }
  c.args = R"(["%0","%1"])";
  c.op = "mm.out";
  CHECK(links_text(c) == "");
  // An input that only a keyword names, or nothing.
  c = {"sum.dim_IntList", R"(["%0",[0]])", {{{4, 6}}, {{4, 6}}}, {{{6}}}, {}, R"({"out":"%1"})"};
  CHECK(links_text(c) == "0.0+0 0.1=0.0");
  c.kwargs = R"({"out":"%0"})";
  CHECK(links_text(c) == "");
}

// ---------------------------------------------------------------------------------------------- from files

TEST_CASE("nodes of files have relations; those that write in place have none") {
  auto j = json::parse(R"({
    "format": "neap-graph", "version": 1, "name": "links",
    "buffers": [{"bytes": 96, "kind": "param"}, {"bytes": 64, "kind": "input"}, {"bytes": 96, "kind": "temp"}, {"bytes": 96, "kind": "temp"},
                {"bytes": 96, "kind": "temp"}, {"bytes": 96, "kind": "temp"}],
    "tensors": [{"buf": 0, "dtype": "f32", "shape": [4, 6]}, {"buf": 1, "dtype": "i64", "shape": [8]},
                {"buf": 2, "dtype": "f32", "shape": [24]}, {"buf": 2, "dtype": "f32", "shape": [4, 6]},
                {"buf": 3, "dtype": "f32", "shape": [4, 6]}, {"buf": 4, "dtype": "f32", "shape": [4, 6]}, {"buf": 5, "dtype": "f32", "shape": [24]}],
    "nodes": [
      {"name": "z", "op": "aten.zeros.default", "in": [], "out": [2], "args": [[24]], "latency_us": 1},
      {"name": "v", "op": "aten.view.default", "in": [2], "out": [3], "args": ["%0", [4, 6]], "flags": ["view"], "latency_us": 0},
      {"name": "p", "op": "aten.index_put.default", "in": [3, 1, 0], "out": [4], "args": ["%0", ["%1"], "%2", true], "latency_us": 1},
      {"name": "q", "op": "aten.index_put.default", "in": [4, 1, 0], "out": [5], "args": ["%0", ["%1"], "%2", true], "latency_us": 1},
      {"name": "w", "op": "aten.relu.default", "in": [5], "out": [-1, 6], "args": ["%0"], "mutates": [0], "flags": ["pointwise"], "latency_us": 1}],
    "outputs": []
  })");
  j["nodes"][2]["in"] = {3, 1, 0};
  auto const read = [&] {
    auto r = io::read_neap_graph(j, "f.json");
    REQUIRE_MESSAGE(r.ok(), r.message());
    CHECK(verify(r->program).ok());
    std::vector<std::string> links;
    for (auto o : r->program.ops()) links.emplace_back(r->program.text(r->program.as<op::opaque>(o)->links));
    return links;
  };
  // The values [4, 6] do not broadcast to [8, 6]: only the columns can be said.
  j["tensors"][1]["shape"] = {4};
  CHECK(read() == std::vector<std::string>{"", "0.0=0.0", "0.1=0.1 2.1=0.1 1.0+0 2.0+0", "0.1=0.1 2.1=0.1", ""});
  j["nodes"][0]["op"] = "aten.empty.memory_format";  // who knows what is in it
  CHECK(read()[2] == "0.1=0.1 2.1=0.1");
  for (auto const& odd : {json("x"), json(3), json(nullptr), json::object({{"a", 1}})}) {
    j["nodes"][2]["args"] = odd;
    CHECK(read()[2] == "");
  }
}

TEST_CASE("a view whose strides are not its operator's has no relations") {
  auto j = json::parse(R"({
    "format": "neap-graph", "version": 1, "name": "views",
    "buffers": [{"bytes": 96, "kind": "param"}],
    "tensors": [{"buf": 0, "dtype": "f32", "shape": [4, 6]}, {"buf": 0, "dtype": "f32", "shape": [6, 4], "stride": [1, 6]},
                {"buf": 0, "dtype": "f32", "shape": [2, 2, 6]}],
    "nodes": [
      {"name": "t", "op": "aten.t.default", "in": [0], "out": [1], "args": ["%0"], "flags": ["view"], "latency_us": 0},
      {"name": "v", "op": "aten.view.default", "in": [0], "out": [2], "args": ["%0", [2, 2, 6]], "flags": ["view"], "latency_us": 0}],
    "outputs": []
  })");
  auto const links = [&] {
    auto r = io::read_neap_graph(j, "f.json");
    REQUIRE_MESSAGE(r.ok(), r.message());
    std::vector<std::string> all;
    for (auto o : r->program.ops()) all.emplace_back(r->program.text(r->program.as<op::opaque>(o)->links));
    return all;
  };
  CHECK(links() == std::vector<std::string>{"0.0=0.1 0.1=0.0", "0.0=0.0 0.1=0.2"});
  j["tensors"][1].erase("stride");  // rows of four, one after the other: not what a transposition shows
  CHECK(links() == std::vector<std::string>{"", "0.0=0.0 0.1=0.2"});
}

TEST_CASE("a mean loss apart from its weight: the whole step runs in parts") {
  for (char const* name : {"mlp4-1024-b256", "gpt-d256-l4-b8-t128", "cnn-small-b64"}) {
    CAPTURE(name);
    auto const path = std::string(NEAP_SOURCE_DIR) + "/examples/graphs/" + name + ".json.gz";
    auto const plain = io::read_graph(path), apart = io::read_graph(path, {.neap_graph = {.for_parts = true}});
    REQUIRE_MESSAGE((plain.ok() && apart.ok()), apart.message());
    auto const &p = plain->program, &g = apart->program;
    CHECK(verify(g).ok());
    CHECK(g.op_count() == p.op_count() + 1);
    CHECK(g.kept().size() == p.kept().size());
    double read = 0, written = 0, seconds = 0;  // beyond what the file's node has
    for (auto o : g.ops()) {
      auto const* x = g.as<op::opaque>(o);
      read += x->read, written += x->written, seconds += x->seconds;
      if (g.target(o) == "neap.nll_total_weight") {
        CHECK(g.inputs(o).size() == 1);
        CHECK(g.type(g.inputs(o)[0]).rank() == 1);
        CHECK(x->read == static_cast<double>(g.type(g.inputs(o)[0]).bytes()));
        CHECK(x->seconds > 0);
        read -= x->read;
      }
      if (g.target(o) == "neap.nll_loss_by_weight") {
        CHECK(g.text(x->links) == "0.0+0 1.0+0");
        CHECK(g.inputs(o).size() == 3);
        read -= 4;
      }
      CHECK(g.target(o) != "aten.nll_loss_forward.default");
    }
    for (auto o : p.ops()) {
      auto const* x = p.as<op::opaque>(o);
      read -= x->read, written -= x->written, seconds -= x->seconds;
    }
    CHECK(read == 0);
    CHECK(written == 0);
    CHECK(seconds == doctest::Approx(0).epsilon(1e-12));
  }
}

TEST_CASE("for parts: targets are whole, and zeros read nothing") {
  auto const j = json::parse(R"({
    "format": "neap-graph", "version": 1, "name": "whole",
    "buffers": [{"bytes": 64, "kind": "input"}, {"bytes": 32, "kind": "input"}, {"bytes": 64, "kind": "temp"}, {"bytes": 8, "kind": "temp"},
                {"bytes": 64, "kind": "temp"}, {"bytes": 32, "kind": "temp"}, {"bytes": 64, "kind": "temp"}, {"bytes": 64, "kind": "temp"}],
    "tensors": [{"buf": 0, "dtype": "i64", "shape": [8]}, {"buf": 1, "dtype": "f32", "shape": [8]}, {"buf": 2, "dtype": "i64", "shape": [8]},
                {"buf": 3, "dtype": "b8", "shape": [8]}, {"buf": 4, "dtype": "i64", "shape": [8]}, {"buf": 5, "dtype": "f32", "shape": [8]},
                {"buf": 6, "dtype": "i64", "shape": [8]}, {"buf": 7, "dtype": "i64", "shape": [8]}],
    "nodes": [{"name": "a", "op": "aten.clone.default", "in": [0], "out": [2], "args": ["%0"], "latency_us": 1},
              {"name": "b", "op": "aten.ne.Scalar", "in": [2], "out": [3], "args": ["%0", -100], "latency_us": 1},
              {"name": "c", "op": "aten._to_copy.default", "in": [1], "out": [4], "args": ["%0"], "latency_us": 1},
              {"name": "d", "op": "aten.new_zeros.default", "in": [1], "out": [5], "args": ["%0", [8]], "latency_us": 1},
              {"name": "e", "op": "aten.where.self", "in": [3, 4, 2], "out": [6], "args": ["%0", "%1", "%2"], "latency_us": 1},
              {"name": "f", "op": "aten.clone.default", "in": [6], "out": [7], "args": ["%0"], "latency_us": 1}],
    "outputs": []
  })");
  auto const read = [&](bool for_parts) {
    auto const r = io::read_neap_graph(j, "f.json", {.for_parts = for_parts});
    REQUIRE_MESSAGE(r.ok(), r.message());
    CHECK(verify(r->program).ok());
    std::vector<std::string> links;
    for (auto o : r->program.ops()) links.emplace_back(r->program.text(r->program.as<op::opaque>(o)->links));
    CHECK(r->program.inputs(op_id{3}).size() == (for_parts ? 0 : 1));
    return links;
  };
  std::string const one = "0.0=0.0", three = "0.0=0.0 1.0=0.0 2.0=0.0";
  CHECK(read(false) == std::vector<std::string>{one, one, one, "", three, one});
  CHECK(read(true) == std::vector<std::string>{"", "", one, "", three, one});  // c's result is made of real numbers
}

TEST_CASE("a mean squared error's gradient has its divisor as an attribute") {
  auto j = json::parse(R"({
    "format": "neap-graph", "version": 1, "name": "loss",
    "buffers": [{"bytes": 4, "kind": "tangent"}, {"bytes": 96, "kind": "input"}, {"bytes": 96, "kind": "input"}, {"bytes": 96, "kind": "temp"}],
    "tensors": [{"buf": 0, "dtype": "f32", "shape": []}, {"buf": 1, "dtype": "f32", "shape": [4, 6]}, {"buf": 2, "dtype": "f32", "shape": [4, 6]},
                {"buf": 3, "dtype": "f32", "shape": [4, 6]}],
    "nodes": [{"name": "n", "op": "aten.mse_loss_backward.default", "in": [0, 1, 2], "out": [3], "args": ["%0", "%1", "%2", 1], "latency_us": 1}],
    "outputs": [{"tensor": 3, "kind": "output"}]
  })");
  auto const read = [&](bool apart) {
    auto const r = io::read_neap_graph(j, "f.json", {.for_parts = apart});
    REQUIRE_MESSAGE(r.ok(), r.message());
    CHECK(verify(r->program).ok());
    return std::string(r->program.text(r->program.as<op::opaque>(op_id{0})->links)) + "; " +
           std::string(r->program.details(op_id{0}));
  };
  CHECK(read(false) == R"(; {"args":["%0","%1","%2",1]})");
  CHECK(read(true) == R"(1.0=0.0 2.0=0.0 1.1=0.1 2.1=0.1; {"args":["%0","%1","%2",1],"divisor":24})");
  j["nodes"][0]["args"][3] = 2;  // a sum
  CHECK(read(true) == R"(1.0=0.0 2.0=0.0 1.1=0.1 2.1=0.1; {"args":["%0","%1","%2",2]})");
  j["nodes"][0]["args"][3] = 7;
  CHECK(read(true) == R"(; {"args":["%0","%1","%2",7]})");
}

TEST_CASE("a mean loss of another form stays one op") {
  auto const document = [](char const* args) {
    auto j = json::parse(R"({
      "format": "neap-graph", "version": 1, "name": "loss",
      "buffers": [{"bytes": 96, "kind": "input"}, {"bytes": 32, "kind": "input"}, {"bytes": 24, "kind": "input"}, {"bytes": 4, "kind": "temp"}, {"bytes": 4, "kind": "temp"}],
      "tensors": [{"buf": 0, "dtype": "f32", "shape": [4, 6]}, {"buf": 1, "dtype": "i64", "shape": [4]}, {"buf": 2, "dtype": "f32", "shape": [6]},
                  {"buf": 3, "dtype": "f32", "shape": []}, {"buf": 4, "dtype": "f32", "shape": []}],
      "nodes": [{"name": "n", "op": "aten.nll_loss_forward.default", "in": [0, 1, 2], "out": [3, 4], "read": 152, "write": 8, "latency_us": 16}],
      "outputs": [{"tensor": 3, "kind": "loss"}, {"tensor": 4, "kind": "output"}]
    })");
    j["nodes"][0]["args"] = json::parse(args);
    return j;
  };
  auto const count = [&](json const& j) {
    auto const r = io::read_neap_graph(j, "f.json", {.for_parts = true});
    REQUIRE_MESSAGE(r.ok(), r.message());
    CHECK(verify(r->program).ok());
    double seconds = 0;
    for (auto o : r->program.ops()) seconds += r->program.as<op::opaque>(o)->seconds;
    CHECK(seconds == doctest::Approx(16e-6));  // together what the file gives the one
    return r->program.op_count();
  };
  auto const known = document(R"(["%0", "%1", "%2", 1, -100])");
  CHECK(count(known) == 2);
  for (char const* args : {R"(["%0", "%1", "%2", 2, -100])", R"(["%0", "%1", null, 1, -100])",
                           R"(["%1", "%0", "%2", 1, -100])", R"(["%0", "%1", "%2", 1])", R"({"a": 1})", "3"})
    CHECK(count(document(args)) == 1);
  auto j = known;
  j["nodes"][0]["out"] = {3, -1};
  j["outputs"].erase(1);
  CHECK(count(j) == 1);
  j = known;
  j["nodes"][0]["op"] = "aten.nll_loss2d_forward.default";
  CHECK(count(j) == 1);
}

TEST_CASE("the batch runs through whole training steps") {
  struct known {
    char const* name;
    std::int64_t batch;
    std::set<std::string> outside;  // what cannot be cut along it
  };
  for (auto const& k : {known{"mlp4-1024-b256", 256, {"nll_loss_forward.default"}},
                        known{"gpt-d256-l4-b8-t128",
                              8,
                              {"nll_loss_forward.default", "ones.default", "tril.default", "logical_not.default"}}}) {
    CAPTURE(k.name);
    auto const g = io::read_graph(std::string(NEAP_SOURCE_DIR) + "/examples/graphs/" + k.name + ".json.gz");
    REQUIRE_MESSAGE(g.ok(), g.message());
    dimension_graph const dims(g->program);
    auto largest = component_id{0};
    for (auto c : dims.components())
      if (dims.extent(c) == k.batch && dims.members(c).size() > dims.members(largest).size()) largest = c;
    CHECK(dims.extent(largest) == k.batch);
    CHECK(dims.is_cuttable(largest));
    std::set<op_id> in;
    for (auto const& m : dims.members(largest)) in.insert(m.op);
    for (auto o : g->program.ops()) {
      bool const view = g->program.record(g->program.output(o)).alias == alias_kind::view;
      std::string const target(g->program.text(g->program.as<op::opaque>(o)->target));
      CAPTURE(target);
      if (!view) CHECK((in.contains(o) || k.outside.contains(target.substr(5))));
    }
  }
}
