// Plans of random graphs in the files' own form, executed in f64 over one array of bytes at the plan's offsets, beside the
// graph's nodes in the file's order with an array for each buffer. The graphs have donated inputs, views that are written
// in place, buffers that several nodes fill, and accumulating index_put. Right plans compute what the file does; what the
// verifier accepts of plans that were made wrong does, too.
#include "../support/drawn_edit.hpp"
#include "../support/sanitized.hpp"

#include <neap/verify/plan_verifier.hpp>

#include <neap/import/graph_file.hpp>
#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/offload.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using json = nlohmann::json;

namespace {

// ------------------------------------------------------------------------------------------ what nodes compute

/// A tensor in memory: f64, or i64 for indices.
struct array {
  std::byte* memory;
  tensor_layout layout;
  template <class T = double>
  T& at(std::vector<std::int64_t> const& place) const {
    std::int64_t n = layout.offset;
    for (int a = 0; a < layout.type.rank(); ++a) n += place[static_cast<std::size_t>(a)] * layout.strides[a];
    return reinterpret_cast<T*>(memory)[n];
  }
};
template <class F>
void each_place(extents const& dims, F const& f) {
  std::vector<std::int64_t> p(static_cast<std::size_t>(dims.rank()), 0);
  for (std::int64_t n = tensor_type{dtype::f64, dims}.count(); n-- > 0;) {
    f(p);
    for (int a = dims.rank(); a-- > 0;)
      if (++p[static_cast<std::size_t>(a)] < dims[a]) break;
      else p[static_cast<std::size_t>(a)] = 0;
  }
}
/// One node, or a part of one. The output of a node that writes in place lies where its first argument does.
void compute(std::string const& op, json const& args, std::vector<array> const& in, array const& out) {
  auto const map = [&](auto f) { each_place(out.layout.type.dims, [&](auto const& p) { out.at(p) = f(p); }); };
  if (op == "sin") map([&](auto const& p) { return std::sin(in[0].at(p)); });
  else if (op == "neg" || op == "neg_") map([&](auto const& p) { return -in[0].at(p); });
  else if (op == "add" || op == "add_") map([&](auto const& p) { return in[0].at(p) + in[1].at(p); });
  else if (op == "mul" || op == "mul_") map([&](auto const& p) { return in[0].at(p) * in[1].at(p); });
  else if (op == "copy_") map([&](auto const& p) { return in[1].at(p); });
  else if (op == "zeros" || op == "full") map([&](auto const&) { return op == "full" ? args[1].get<double>() : 0; });
  else if (op == "mm") {
    map([&](auto const& p) {
      double s = 0;
      for (std::int64_t k = 0; k < in[0].layout.type.dims[1]; ++k) s += in[0].at({p[0], k}) * in[1].at({k, p[1]});
      return s;
    });
  } else if (op == "sum") {
    map([](auto const&) { return 0; });
    each_place(in[0].layout.type.dims, [&](auto const& p) { out.at({p[1]}) += in[0].at(p); });
  } else if (op == "index_put" || op == "index_put_") {
    map([&](auto const& p) { return in[0].at(p); });
    each_place(in[1].layout.type.dims, [&](auto const& p) {
      auto& to = out.at({in[1].template at<std::int64_t>(p)});
      to = (args[3] == true ? to : 0) + in[2].at(p);
    });
  } else {
    FAIL(op);
  }
}
std::string kind_of(std::string const& target) {  // "aten.add_.Tensor" -> "add_"
  auto const from = target.find('.') + 1;
  return target.substr(from, target.find('.', from) - from);
}
void fill_source(std::byte* to, std::size_t number, tensor_layout const& l) {
  random_stream draw(number + 1, 5);
  for (std::int64_t i = 0; i < l.type.count(); ++i)
    if (l.type.element == dtype::i64) reinterpret_cast<std::int64_t*>(to)[i] = draw.below(8);
    else reinterpret_cast<double*>(to)[i] = draw.uniform() - 0.5;
}

// ------------------------------------------------------------------------------------------ random files

class file_maker {
 public:
  explicit file_maker(std::uint64_t seed) : draw_(seed, 11) {
    for (int i = 0; i < 3; ++i) input(dtype::f64, {8, 4}, i == 0);
    weight_ = input(dtype::f64, {4, 4}, false);
    index_ = input(dtype::i64, {32}, false);
    input(dtype::f64, {8}, true);
    for (int i = 0; i < 12; ++i) node();
    for (auto const& [id, b] : newest_)
      if (draw_.below(3) == 0 || file["outputs"].empty())
        if (file["buffers"][b]["kind"] == "temp") file["outputs"].push_back({{"tensor", id}, {"kind", "output"}});
    if (file["outputs"].empty()) add("sin", {any({8, 4})}), keep(last_);
  }
  json file{{"format", "neap-graph"},   {"version", 1},           {"buffers", json::array()},
            {"tensors", json::array()}, {"nodes", json::array()}, {"outputs", json::array()}};

 private:
  using shape = std::vector<std::int64_t>;
  static std::int64_t count(shape const& s) {
    std::int64_t n = 1;
    for (auto e : s) n *= e;
    return n;
  }
  static shape dense(shape const& s) {
    shape strides(s.size(), 1);
    for (auto a = s.size(); a-- > 1;) strides[a - 1] = strides[a] * s[a];
    return strides;
  }
  std::size_t buffer(std::int64_t bytes, char const* kind, bool donated = false) {
    json b{{"bytes", bytes}, {"kind", kind}};
    if (donated) b["donated"] = true;
    file["buffers"].push_back(b);
    return file["buffers"].size() - 1;
  }
  std::size_t tensor(std::size_t b, shape const& s, shape const& strides, std::int64_t offset = 0,
                     char const* type = "f64") {
    file["tensors"].push_back({{"buf", b}, {"dtype", type}, {"shape", s}, {"stride", strides}, {"offset", offset}});
    return last_ = file["tensors"].size() - 1;
  }
  std::size_t input(dtype type, shape const& s, bool donated) {
    auto const t = tensor(buffer(8 * count(s), "input", donated), s, dense(s), 0, type == dtype::i64 ? "i64" : "f64");
    if (type == dtype::f64) there_.push_back(t), newest_.emplace_back(t, file["buffers"].size() - 1);
    return t;
  }
  shape shape_of(std::size_t t) const { return file["tensors"][t]["shape"]; }
  void keep(std::size_t t) { file["outputs"].push_back({{"tensor", t}, {"kind", "output"}}); }
  json& add(std::string const& op, std::vector<std::size_t> const& in, json args = json::array()) {
    static std::map<std::string, char const*> const overloads{{"add", ".Tensor"},      {"add_", ".Tensor"},
                                                              {"mul", ".Tensor"},      {"mul_", ".Tensor"},
                                                              {"sum", ".dim_IntList"}, {"slice", ".Tensor"}};
    if (args.empty())
      for (std::size_t i = 0; i < in.size(); ++i) args.push_back("%" + std::to_string(i));
    auto const over = overloads.find(op);
    file["nodes"].push_back({{"name", "n" + std::to_string(file["nodes"].size())},
                             {"op", "aten." + op + (over == overloads.end() ? ".default" : over->second)},
                             {"in", in},
                             {"out", json::array()},
                             {"args", args},
                             {"flags", json::array()},
                             {"latency_us", 1 + draw_.below(5)}});
    auto& n = file["nodes"].back();
    if (op == "sin" || op == "neg" || op == "add" || op == "mul") n["flags"].push_back("pointwise");
    return n;
  }
  std::size_t fresh(json& node, shape const& s) {
    auto const t = tensor(buffer(8 * count(s), "temp"), s, dense(s));
    node["out"].push_back(t);
    there_.push_back(t), newest_.emplace_back(t, file["buffers"].size() - 1);
    return t;
  }
  std::size_t any(shape const& s) {
    std::vector<std::size_t> fit;
    for (auto t : there_)
      if (shape_of(t) == s) fit.push_back(t);
    if (fit.empty()) {
      auto& n = add(draw_.below(2) ? "zeros" : "full", {}, json::array({s, draw_.below(2) ? 0 : 1.5}));
      if (n["op"] == "aten.zeros.default") n["args"] = json::array({s});
      return fresh(n, s);
    }
    return fit[std::max(draw_.below(static_cast<std::uint32_t>(fit.size())),
                        draw_.below(static_cast<std::uint32_t>(fit.size())))];
  }
  bool may_be_written(std::size_t t) const {
    auto const& b = file["buffers"][file["tensors"][t]["buf"].get<std::size_t>()];
    return b["kind"] == "temp" || b.contains("donated");
  }
  void view() {
    auto const t = there_[draw_.below(static_cast<std::uint32_t>(there_.size()))];
    auto const& from = file["tensors"][t];
    shape s = from["shape"], strides = from["stride"];
    std::int64_t const offset = from["offset"];
    std::size_t const b = from["buf"];
    json args{"%0"};
    if (s.size() == 2 && draw_.below(3) == 0) {
      add("t", {t})["out"].push_back(tensor(b, {s[1], s[0]}, {strides[1], strides[0]}, offset));
    } else if (s == shape{8, 4} && strides == shape{4, 1} && draw_.below(2)) {
      args.push_back(json::array({32}));
      add("view", {t}, args)["out"].push_back(tensor(b, {32}, {1}, offset));
    } else if (s[0] % 2 == 0) {
      std::int64_t const begin = draw_.below(2) ? s[0] / 2 : 0;
      args.push_back(0), args.push_back(begin), args.push_back(begin + s[0] / 2);
      auto half = s;
      half[0] /= 2;
      add("slice", {t}, args)["out"].push_back(tensor(b, half, strides, offset + begin * strides[0]));
    } else {
      return;
    }
    file["nodes"].back()["flags"].push_back("view");
    there_.push_back(last_);
  }
  void in_place() {
    std::vector<std::size_t> may;
    for (auto t : there_)
      if (may_be_written(t)) may.push_back(t);
    if (may.empty()) return;
    auto const t = may[draw_.below(static_cast<std::uint32_t>(may.size()))];
    static constexpr char const* names[] = {"add_", "mul_", "copy_", "neg_"};
    std::string const op = names[draw_.below(4)];
    std::vector<std::size_t> in{t};
    if (op != "neg_") {
      auto const other = any(shape_of(t));
      auto const& tensors = file["tensors"];
      if (tensors[other]["buf"] == tensors[t]["buf"] && other != t) return;  // it would read what it writes
      in.push_back(other);
    }
    add(op, in)["mutates"] = {0};
  }
  void parts() {
    auto const b = buffer(8 * 32, "temp");
    std::vector<std::size_t> parts;
    for (std::int64_t k : {0, 1}) {
      auto& n = add(draw_.below(2) ? "sin" : "neg", {any({4, 4})});
      parts.push_back(tensor(b, {4, 4}, {4, 1}, 16 * k));
      file["nodes"].back()["out"].push_back(last_);
      static_cast<void>(n);
    }
    auto const whole = tensor(b, {8, 4}, {4, 1});
    newest_.emplace_back(whole, b), there_.push_back(whole);
    if (draw_.below(2)) there_.push_back(parts[draw_.below(2)]);
  }
  void node() {
    switch (draw_.below(10)) {
      case 0:
      case 1: return view();
      case 2:
      case 3: return in_place();
      case 4: return parts();
      case 5: {
        bool const accumulate = draw_.below(4) > 0;
        auto const base = any({8}), values = any({32});
        auto& n = add("index_put", {base, index_, values}, json::array({"%0", json::array({"%1"}), "%2", accumulate}));
        if (draw_.below(3) == 0 && may_be_written(base)) n["op"] = "aten.index_put_.default", n["mutates"] = {0};
        else fresh(n, {8});
        return;
      }
      case 6: {
        auto const a = any({8, 4});
        fresh(add("mm", {a, weight_}), {8, 4});
        return;
      }
      case 7: {
        auto const a = any({8, 4});
        fresh(add("sum", {a}, json::array({"%0", json::array({0})})), {4});
        return;
      }
      case 8: {
        auto const a = any({32});
        fresh(add("sin", {a}), {32});
        return;
      }
      default: {
        auto const a = any({8, 4}), b = any({8, 4});
        fresh(add(draw_.below(2) ? "add" : "mul", {a, b}), {8, 4});
      }
    }
  }

  random_stream draw_;
  std::size_t weight_ = 0, index_ = 0, last_ = 0;
  std::vector<std::size_t> there_;                           // tensors of f64 that can be read
  std::vector<std::pair<std::size_t, std::size_t>> newest_;  // one that shows all of each buffer, and the buffer
};

/// The outputs of a file, by nothing but its nodes in their order.
std::vector<std::vector<double>> outputs_of(json const& file) {
  std::vector<std::vector<std::byte>> memory;
  for (auto const& b : file["buffers"]) memory.emplace_back(b["bytes"].get<std::size_t>());
  auto const at = [&](json const& id) -> array {
    auto const& t = file["tensors"][id.get<std::size_t>()];
    tensor_layout l;
    l.type.element = t["dtype"] == "i64" ? dtype::i64 : dtype::f64;
    for (std::int64_t n : t["shape"]) l.type.dims.push_back(n);
    for (std::int64_t n : t["stride"]) l.strides.push_back(n);
    l.offset = t["offset"];
    return {memory[t["buf"].get<std::size_t>()].data(), l};
  };
  for (std::size_t i = 0; i < 6; ++i) {
    auto const a = at(i);
    fill_source(a.memory, i, a.layout);
  }
  for (auto const& n : file["nodes"]) {
    if (n["flags"] == json::array({"view"})) continue;
    std::vector<array> in;
    for (auto const& id : n["in"]) in.push_back(at(id));
    compute(kind_of(n["op"]), n["args"], in, n.contains("mutates") ? in[0] : at(n["out"][0]));
  }
  std::vector<std::vector<double>> all;
  for (auto const& o : file["outputs"]) {
    auto const a = at(o["tensor"]);
    auto& values = all.emplace_back();
    each_place(a.layout.type.dims, [&](auto const& p) { values.push_back(a.at(p)); });
  }
  return all;
}

/// The same of a plan, in one array of bytes at its offsets. Bytes that begin to live are no numbers.
std::vector<std::vector<double>> outputs_of(plan const& p) {
  auto const& g = p.graph;
  auto const words = static_cast<std::size_t>(p.arena_bytes) / 8 + 1;
  std::vector<double> arena(words, std::numeric_limits<double>::quiet_NaN());
  auto* const bytes = reinterpret_cast<std::byte*>(arena.data());
  table<storage_id, std::byte*> place(g.storage_count(), nullptr);
  for (auto const& b : p.buffers) place[b.storage] = bytes + b.offset;
  auto const at = [&](value_id v) -> array { return {place[g.storage(v)], g.layout(v)}; };
  for (std::size_t i = 0; i < g.sources().size(); ++i)
    if (auto const a = at(g.sources()[i]); a.memory) fill_source(a.memory, i, a.layout);
  std::map<value_id, std::vector<double>> outside;  // by what a store makes
  for (std::uint32_t step = 0; step < p.steps.size(); ++step) {
    for (auto const& b : p.buffers)
      if (b.first == step && !g.is_source(b.storage) && b.takes_over == nothing<storage_id>)
        std::fill_n(reinterpret_cast<double*>(bytes + b.offset), b.bytes / 8, arena.back());
    auto const o = p.steps[step].op;
    std::vector<array> in;
    for (auto v : g.inputs(o)) in.push_back(at(v));
    auto const y = g.output(o);
    auto const out = at(y);
    auto const copy = [&](array const& from, array const& to) {
      each_place(from.layout.type.dims, [&](auto const& q) { to.at(q) = from.at(q); });
    };
    if (g.as<op::store>(o)) {
      each_place(in[0].layout.type.dims, [&](auto const& q) { outside[y].push_back(in[0].at(q)); });
    } else if (g.as<op::wait>(o)) {
      outside[y] = outside[g.inputs(o)[0]];
    } else if (g.as<op::load>(o)) {
      std::size_t n = 0;
      each_place(out.layout.type.dims, [&](auto const& q) { out.at(q) = outside[g.inputs(o)[0]].at(n++); });
    } else if (g.as<op::blank>(o)) {
    } else if (auto const* x = g.as<op::place>(o)) {
      each_place(in[1].layout.type.dims, [&](auto q) {
        auto const v = in[1].at(q);
        q[static_cast<std::size_t>(x->axis)] += x->start;
        out.at(q) = v;
      });
    } else if (g.as<op::combine_into>(o)) {
      each_place(out.layout.type.dims, [&](auto const& q) { out.at(q) = in[0].at(q) + in[1].at(q); });
    } else if (g.as<op::copy>(o)) {
      copy(in[0], out);
    } else if (flow::is_view(g, o)) {
    } else {
      compute(kind_of(std::string(g.target(o))), json::parse(std::string(g.details(o)))["args"], in, out);
    }
  }
  std::vector<std::vector<double>> all;
  for (auto v : g.kept()) {
    auto const a = at(v);
    auto& values = all.emplace_back();
    each_place(a.layout.type.dims, [&](auto const& q) { values.push_back(a.at(q)); });
  }
  return all;
}

bool are_same(std::vector<std::vector<double>> const& a, std::vector<std::vector<double>> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    for (std::size_t k = 0; k < a[i].size(); ++k)  // sums of parts are added in another order
      if (!(std::abs(a[i][k] - b[i][k]) <= 1e-9 * (1 + std::abs(b[i][k])))) return false;
  }
  return true;
}

constexpr memory_options packed{.alignment = 8};

candidate judged(graph g, schedule order) {
  auto result = simulate(g, order, given_latencies{}, packed);
  return {std::move(g), std::move(order), std::move(result)};
}

/// The candidate with one argument of an op changed: a copy of it, or another value of its type that is there.
std::optional<candidate> made_wrong(candidate const& c, random_stream& draw) {
  auto const n = static_cast<std::uint32_t>(c.order.size());
  auto const at = draw.below(n);
  auto const o = c.order[at];
  auto const& g = c.graph;
  if (g.inputs(o).empty() || g.as<op::wait>(o) || g.as<op::load>(o)) return std::nullopt;
  auto const i = draw.below(static_cast<std::uint32_t>(g.inputs(o).size()));
  auto const v = g.inputs(o)[i];
  graph_editor edit(g);
  schedule order = c.order;
  if (draw.below(2) && is_floating(g.type(v).element)) {
    edit.set_input(o, i, edit.emit(view_of(op::copy{}), {&v, 1}).front());
    order.order.insert(order.order.begin() + at, id_at<op_id>(g.op_count()));
  } else {
    auto const positions_of = positions(c.order);
    std::vector<value_id> like;
    for (auto x : g.values())
      if (auto const p = g.producer(x);
          x != v && g.type(x) == g.type(v) && (p == nothing<op_id> || positions_of[p] < at))
        like.push_back(x);
    if (like.empty()) return std::nullopt;
    edit.set_input(o, i, like[draw.below(static_cast<std::uint32_t>(like.size()))]);
  }
  try {
    auto wrong = graph(std::move(edit).finish());
    if (!verify(wrong).ok() || !check_order(wrong, order).ok()) return std::nullopt;
    return judged(std::move(wrong), std::move(order));
  } catch (error const&) { return std::nullopt; }
}

}  // namespace

TEST_CASE("plans compute what the file's nodes do, executed at their offsets") {
  auto const moves = chain(neap::fission{} | truncate(6), default_moves | truncate(12), reorder{} | truncate(4));
  std::size_t plans = 0, parts = 0, stores = 0, accepted = 0, refused = 0;
  for (std::uint64_t seed = 0; plans < neap::testing::cases(2000u); ++seed) {
    CAPTURE(seed);
    auto const file = file_maker(seed).file;
    io::graph_file_options options;
    options.neap_graph.for_parts = true;
    auto const read = io::parse_graph(file.dump(), "random", options);
    if (!read && read.message().find("writes this buffer twice") != std::string::npos) continue;
    CAPTURE(file.dump());
    REQUIRE_MESSAGE(read, read.message());
    auto const& original = read->program;
    auto const right = outputs_of(file);
    random_stream draw(seed, 13);
    auto c = judged(original, read->order);
    for (int k = 0; k < 8; ++k) {
      auto const p = make_plan(c, original, packed);
      ++plans;
      auto const verdict = verify_plan(original, p);
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      REQUIRE(are_same(outputs_of(p), right));
      for (auto o : p.graph.ops()) {
        parts += p.graph.record(o).part != nothing<part_id>;
        stores += p.graph.as<op::store>(o) != nullptr;
      }
      if (auto const wrong = made_wrong(c, draw)) {
        auto const q = make_plan(*wrong, original, packed);
        bool const ok = verify_plan(original, q).ok();
        ++(ok ? accepted : refused);
        if (ok) REQUIRE(are_same(outputs_of(q), right));
      }
      auto next = draw.below(6) ? testing::drawn_edit(moves, c, draw, 12)
                                : apply_mutation(offload{.target = c.result.peak_bytes * 3 / 4}, c);
      if (!next) break;
      c = judged(std::move(next->graph), std::move(next->order));
    }
  }
  CHECK(parts > neap::testing::cases(1000u));
  CHECK(stores > neap::testing::cases(100u));
  CHECK(refused > neap::testing::cases(500u));
  CHECK(accepted > neap::testing::cases(10u));
  MESSAGE(plans << " plans, " << parts << " parts, " << stores << " stores, " << accepted << " accepted, " << refused
                << " refused");
}
