// The foundation under a search: copy a graph, edit it (recompute one op for its late readers, digest included), order
// it, simulate the order from scratch. One CSV row a case: microseconds each, the median over edits
// all over the graph (and the best of all). The first graph has the
// size and shape of a BERT training step (804 ops); the others grow it to 100,000 ops.
//
//   bench_foundation [--check]
#include <neap/ir/editor.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/traversal.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

using namespace neap;

namespace {

struct operators : operator_set<op::opaque, op::store, op::load, op::wait> {};

/// A transformer's training step as an importer gives it: opaque ops with latencies, views, weights updated in place.
/// 67 ops a layer, 12 layers make 804 ops.
class transformer {
 public:
  explicit transformer(int layers) : edit_(operators::facets) {
    x_ = edit_.add_source(role::input, wide(), "tokens");
    for (int i = 0; i < layers; ++i) forward(i);
    gradient_ = edit_.add_source(role::input, wide(), "loss_gradient");
    for (int i = layers; i-- > 0;) backward(i);
    edit_.keep(gradient_, role::gradient);
  }
  op_graph finish() && { return std::move(edit_).finish(); }

 private:
  struct layer {
    value_id norm_in, norm, mean, q, k, v, scores, weights, mixed, proj_in, mid, norm2, mean2, up, act;
    value_id w[6];
  };
  static tensor_type wide() { return {dtype::f32, {32, 512, 768}}; }
  static tensor_type tall() { return {dtype::f32, {32, 512, 3072}}; }
  static tensor_type square() { return {dtype::f32, {32, 12, 512, 512}}; }

  value_id op(char const* what, std::vector<value_id> const& in, tensor_type const& t,
              alias_kind alias = alias_kind::fresh) {
    op::opaque x;
    x.seconds = alias == alias_kind::view ? 1e-8 : 1e-4;
    x.pointwise = what[0] == '.';
    output_rule const out{tensor_layout::dense(t), alias, alias == alias_kind::fresh ? -1 : 0, -1};
    auto const o = edit_.add_opaque(what, x, in, std::span(&out, 1), std::string(what) + std::to_string(count_++));
    return edit_.output(o);
  }
  void norm(value_id x, value_id& y, value_id& mean) {
    op::opaque what;
    what.seconds = 1e-4;
    output_rule const out[] = {{tensor_layout::dense(wide()), alias_kind::fresh, -1, -1},
                               {tensor_layout::dense({dtype::f32, {32, 512, 2}}), alias_kind::fresh, -1, -1}};
    auto const o = edit_.add_opaque("layer_norm", what, std::span(&x, 1), out);
    y = edit_.output(o), mean = edit_.output(o, 1);
  }
  value_id view(value_id x, tensor_type const& t) { return op("view", {x}, t, alias_kind::view); }

  void forward(int) {
    layer l;
    for (int i = 0; i < 6; ++i)
      l.w[i] = edit_.add_source(role::weight, {dtype::f32, {768, i < 4 ? 768 : 3072}}, "w" + std::to_string(i));
    tensor_type const heads{dtype::f32, {32, 12, 512, 64}};
    l.norm_in = x_;
    norm(x_, l.norm, l.mean);
    l.q = view(op(".bias", {op("matmul", {l.norm, l.w[0]}, wide())}, wide()), heads);
    l.k = view(op(".bias", {op("matmul", {l.norm, l.w[1]}, wide())}, wide()), heads);
    l.v = view(op(".bias", {op("matmul", {l.norm, l.w[2]}, wide())}, wide()), heads);
    l.scores = op(".scale", {op("matmul", {l.q, l.k}, square())}, square());
    l.weights = op(".dropout", {op("softmax", {op(".mask", {l.scores}, square())}, square())}, square());
    l.mixed = op("matmul", {l.weights, l.v}, heads);
    l.proj_in = op("copy", {view(l.mixed, wide())}, wide());
    l.mid = op(".add", {x_, op(".bias", {op("matmul", {l.proj_in, l.w[3]}, wide())}, wide())}, wide());
    norm(l.mid, l.norm2, l.mean2);
    l.up = op(".bias", {op("matmul", {l.norm2, l.w[4]}, tall())}, tall());
    l.act = op(".gelu", {l.up}, tall());
    x_ = op(".add", {l.mid, op(".bias", {op("matmul", {l.act, l.w[5]}, wide())}, wide())}, wide());
    layers_.push_back(l);
  }
  value_id matmul_backward(value_id x, value_id& w, value_id dy) {
    tensor_type const t = edit_.layout_of(w).type;
    auto const dx = op("matmul", {dy, w}, edit_.layout_of(x).type);
    auto const dw = op("matmul", {x, dy}, t);
    op::opaque update;
    update.seconds = 1e-5;
    value_id const in[] = {w, dw};
    output_rule const out{edit_.layout_of(w), alias_kind::update, 0, -1};
    edit_.add_opaque("add_", update, in, std::span(&out, 1));
    return dx;
  }
  void backward(int i) {
    layer l = layers_[static_cast<std::size_t>(i)];
    tensor_type const heads{dtype::f32, {32, 12, 512, 64}};
    auto const d_act = matmul_backward(l.act, l.w[5], gradient_);
    auto const d_up = op("gelu_backward", {d_act, l.up}, tall());
    auto const d_norm2 = matmul_backward(l.norm2, l.w[4], d_up);
    auto const d_mid = op(".add", {gradient_, op("norm_backward", {d_norm2, l.mid, l.mean2}, wide())}, wide());
    auto const d_proj = matmul_backward(l.proj_in, l.w[3], d_mid);
    auto const d_mixed = view(op("copy", {d_proj}, wide()), heads);
    auto const d_weights = op("matmul", {d_mixed, l.v}, square());
    auto const d_v = op("matmul", {l.weights, d_mixed}, heads);
    auto const d_scores = op(".scale", {op("softmax_backward", {d_weights, l.weights}, square())}, square());
    auto const d_q = op("matmul", {d_scores, l.k}, heads), d_k = op("matmul", {d_scores, l.q}, heads);
    auto const a = matmul_backward(l.norm, l.w[0], view(op("copy", {d_q}, wide()), wide()));
    auto const b = matmul_backward(l.norm, l.w[1], view(op("copy", {d_k}, wide()), wide()));
    auto const c = matmul_backward(l.norm, l.w[2], view(op("copy", {d_v}, wide()), wide()));
    auto const d_norm = op(".add", {op(".add", {a, b}, wide()), c}, wide());
    gradient_ = op(".add", {d_mid, op("norm_backward", {d_norm, l.norm_in, l.mean}, wide())}, wide());
  }

  graph_editor edit_;
  value_id x_{}, gradient_{};
  std::vector<layer> layers_;
  int count_ = 0;
};

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct edit_site {
  value_id value;
  std::vector<op_id> late;
};

/// Values whose op may be computed again for their last reader, spread over the graph.
std::vector<edit_site> sites(op_graph const& g) {
  std::vector<edit_site> all;
  for (auto v : g.values()) {
    auto const p = g.producer(v);
    if (p == nothing<op_id> || g.uses(v).size() < 2 || g.record(v).alias != alias_kind::fresh) continue;
    if (graph_traits<op_graph>::is_recomputable(g, p)) all.push_back({v, {g.uses(v).back().op}});
  }
  return all;
}

op_graph edited(op_graph g, edit_site const& s) {
  graph_editor edit(std::move(g));
  auto const p = edit.graph().producer(s.value);
  int j = 0;
  while (edit.output(p, j) != s.value) ++j;
  edit.replace_uses(s.value, edit.output(edit.clone(p), j), s.late);
  return std::move(edit).finish();
}

/// The digest of an edited graph is what the whole graph built anew has.
bool check(op_graph const& g) {
  graph_editor all(g);
  for (auto o : g.ops()) all.set_part(o, g.record(o).part);  // touches every op
  return std::move(all).finish().digest() == g.digest();
}

bool report(int layers) {
  op_graph const g = transformer(layers).finish();
  auto const where = sites(g);
  if (!check(edited(g, where[where.size() / 2]))) {
    std::fprintf(stderr, "the digest of an edited graph is wrong\n");
    return false;
  }
  int const rounds = static_cast<int>(std::max<std::size_t>(60, 2'000'000 / g.op_count()));
  std::vector<double> times[6];
  simulator sim;
  flow_facts facts;
  simulation out;
  op_graph h;  // its memory is used again and again, as a search does
  for (int i = 0; i < rounds; ++i) {
    auto const& site = where[static_cast<std::size_t>(i) * 7919 % where.size()];
    double const t0 = now();
    h = g;
    double const t1 = now();
    h = edited(std::move(h), site);
    double const t2 = now();
    facts.assign(h, given_latencies{});
    double const t3 = now();
    auto const order = reverse_post_order{}(facts);
    double const t4 = now();
    sim(facts, order, out);
    double const t5 = now();
    double const spent[6] = {t1 - t0, t2 - t1, t3 - t2, t4 - t3, t5 - t4, t5 - t0};
    for (int k = 0; k < 6; ++k) times[k].push_back(spent[k]);
  }
  std::size_t edges = 0;
  for (auto o : g.ops()) edges += g.inputs(o).size();
  std::printf("%d,%zu,%zu,%zu", layers, g.op_count(), g.value_count(), edges);
  double median = 0;
  for (auto& t : times) {
    std::sort(t.begin(), t.end());
    std::printf(",%.2f", median = t[t.size() / 2]);
  }
  std::printf(",%.2f,%.2f\n", times[5].front(), median / static_cast<double>(g.op_count()) * 1000);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  bool const only_check = count > 1 && std::string(arguments[1]) == "--check";
  std::puts("layers,ops,values,edges,copy_us,edit_us,facts_us,order_us,simulate_us,all_us,best_us,ns_per_op");
  bool good = true;
  for (int layers : {12, 48, 192, 1492}) {
    good = report(layers) && good;
    if (only_check) break;
  }
  return good ? 0 : 1;
}
