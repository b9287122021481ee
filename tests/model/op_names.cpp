#include <neap/model/op_names.hpp>

#include <neap/model/model.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/report/labels.hpp>
#include <neap/train/training_step.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace neap;

namespace {

struct block {  // without a scope
  nn::layer_norm norm{8};
  nn::linear up{8, 16}, down{16, 8};
  tensor operator()(tensor const& x) const { return x + down(gelu(up(norm(x)))); }
};
struct net {
  nn::embedding table{10, 8};
  std::vector<block> blocks = std::vector<block>(3);
  nn::linear head{8, 10};
  tensor operator()(tensor const& ids) const {
    auto x = table(ids);
    for (auto const& b : blocks) x = b(x);
    return head(x);
  }
};

/// The names of all ops, none empty and none twice.
template <class Program>
std::vector<std::string> names_of(Program const& p) {
  std::vector<std::string> all;
  for (auto o : p.program.ops()) {
    all.emplace_back(p.program.name(o));
    CHECK(!all.back().empty());
  }
  CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
  return all;
}
bool has(std::vector<std::string> const& names, std::string const& name) {
  bool const found = std::find(names.begin(), names.end(), name) != names.end();
  if (!found)
    for (auto const& n : names) MESSAGE(n);
  return found;
}

template <class Model>
training_program step_of(Model& m, training_options options = {}) {
  std::pair const sample{tensor::zeros({2, 4}, dtype::i64), tensor::zeros({2, 4}, dtype::i64)};
  return training_step(m, sample, cross_entropy{}, adamw{.rate = 1e-3}, options);
}

}  // namespace

TEST_CASE("traced ops are named after the module that made them") {
  net m;
  auto const names = names_of(step_of(m));
  for (std::string const i : {"0", "1", "2"})
    for (auto const* op : {"norm.layer_norm", "up.matmul", "up.add", "gelu", "down.matmul", "down.add", "add"})
      CHECK_MESSAGE(has(names, "blocks." + i + "." + op), i << op);
  CHECK(has(names, "head.matmul"));
  CHECK(has(names, "cross_entropy"));
  CHECK(has(names, "cross_entropy.grad"));
  CHECK(std::any_of(names.begin(), names.end(), [](auto const& n) { return n.starts_with("table."); }));
  // Gradients are named after their op, updates after their weight.
  CHECK(has(names, "blocks.1.gelu.grad"));
  CHECK(has(names, "blocks.1.up.matmul.grad"));
  CHECK(
      std::any_of(names.begin(), names.end(), [](auto const& n) { return n.starts_with("blocks.1.up.weight.adamw"); }));
  CHECK(std::any_of(names.begin(), names.end(), [](auto const& n) { return n.starts_with("blocks.1.up.bias.adamw"); }));
}

TEST_CASE("names change neither digests nor what is computed") {
  net m;
  auto const named = step_of(m);
  graph_editor edit(op_graph(named.program));
  for (auto o : named.program.ops()) edit.set_name(o, "");
  CHECK(std::move(edit).finish().digest() == named.program.digest());
}

namespace {

struct scale {  // weights of its own, and ops that read none
  parameter factor{{8}};
  tensor operator()(tensor const& x) const {
    neap::scope const here(*this);
    return tanh(sigmoid(x) * factor);
  }
};
struct first_member {  // at the address of its first member
  scale inner;
  scale other;
  tensor operator()(tensor const& x) const {
    neap::scope const here(*this);
    return other(relu(inner(exp(x))));
  }
};
struct plain {
  std::vector<first_member> parts = std::vector<first_member>(2);
  nn::sequential<nn::linear, nn::relu, nn::dropout, scale> tail{nn::linear(8, 8), nn::relu{}, nn::dropout{0.1},
                                                                scale{}};
  nn::multi_head_attention attention{8, 2};
  nn::linear head{8, 10};
  tensor operator()(tensor const& ids) const {
    tensor x = cast(unsqueeze(ids, 2), dtype::f32) * tensor::ones({8});
    for (auto const& p : parts) x = p(x);
    x = x + attention(x);
    return head(tail(x));
  }
};

}  // namespace

TEST_CASE("a scope names what reads no weight exactly, of whatever is in the model") {
  plain m;
  auto const names = names_of(step_of(m));
  for (std::string const part : {"parts.0", "parts.1"})
    for (auto const* op :
         {".exp", ".relu", ".inner.sigmoid", ".inner.mul", ".inner.tanh", ".other.sigmoid", ".other.tanh"})
      CHECK(has(names, part + op));
  for (auto const* name : {"tail.0.matmul", "tail.1.relu", "tail.2.dropout", "tail.3.sigmoid", "tail.3.tanh",
                           "attention.qkv.matmul", "attention.attention", "attention.out.matmul", "add", "head.matmul"})
    CHECK(has(names, name));
}

TEST_CASE("a module that runs several times numbers its ops; micro-batches and clipping have names") {
  struct twice {
    nn::embedding table{10, 8};
    nn::linear both{8, 8}, head{8, 10};
    tensor operator()(tensor const& ids) const { return head(relu(both(relu(both(table(ids)))))); }
  } m;
  auto const names = names_of(step_of(m));
  for (auto const* name : {"both.matmul", "both.matmul_1", "both.matmul.grad", "both.matmul_1.grad", "relu", "relu_1"})
    CHECK(has(names, name));
  auto const parts = names_of(step_of(m, {.clip_norm = 1, .micro_batches = 2}));
  CHECK(has(parts, "both.matmul_3"));
  CHECK(std::any_of(parts.begin(), parts.end(), [](auto const& n) { return n.starts_with("clip."); }));
}

TEST_CASE("the library's modules name their ops: a GPT") {
  zoo::gpt m({.vocabulary = 20, .context = 8, .width = 16, .heads = 2, .layers = 2});
  auto const names = names_of(step_of(m));
  for (std::string const i : {"0", "1"})
    for (auto const* op : {"attention.qkv.matmul", "attention.out.matmul", "mlp.up.matmul", "mlp.gelu",
                           "mlp.down.matmul", "add", "add_1", "norm1.layer_norm"})
      CHECK(has(names, "blocks." + i + "." + op));
}

TEST_CASE("a function without a model has no names: ops are numbered") {
  auto const p = trace([](tensor const& x) { return exp(x) + x; }, tensor::zeros({3}));
  for (auto o : p.program.ops()) {
    CHECK(p.program.name(o).empty());
    CHECK(op_label(p.program, o).find('#') != std::string::npos);
  }
}
