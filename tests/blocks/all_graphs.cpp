#include <neap/blocks/all_graphs.hpp>

#include "../../examples/models/unet.hpp"
#include "checks.hpp"

#include <doctest/doctest.h>

#include <neap/import/file.hpp>
#include <neap/import/graph_file.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/train/training_step.hpp>

#include <algorithm>

using namespace neap;
using namespace neap::testing;

namespace {

std::vector<std::uint32_t> classes_of(all_graphs const& a) {
  std::vector<std::uint32_t> all;
  for (auto const& b : a.blocks.blocks) all.push_back(b.block_class);
  return all;
}

tensor tokens(std::int64_t batch, std::int64_t length) {
  return tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(batch * length), 1), {batch, length});
}

/// A decoder's layer: it looks at itself and at what the encoder gave.
struct decoder_layer {
  nn::layer_norm norm1{32}, norm2{32}, norm3{32};
  nn::multi_head_attention self{32, 4, {.causal = true}};
  nn::linear query{32, 32}, key{32, 32}, value{32, 32}, out{32, 32};
  nn::mlp_block mlp{32, 128};

  tensor operator()(tensor x, tensor const& memory) const {
    x = x + self(norm1(x));
    auto const heads = [](tensor const& t) { return permute(reshape(t, {t.size(0), t.size(1), 4, 8}), {0, 2, 1, 3}); };
    auto const y = attention(heads(query(norm2(x))), heads(key(memory)), heads(value(memory)));
    x = x + out(reshape(permute(y, {0, 2, 1, 3}), {x.size(0), x.size(1), 32}));
    return x + mlp(norm3(x));
  }
  friend auto neap_fields(decoder_layer& s) {
    return std::tie(s.norm1, s.norm2, s.norm3, s.self, s.query, s.key, s.value, s.out, s.mlp);
  }
};

struct encoder_decoder {
  nn::embedding words{100, 32};
  std::vector<nn::transformer_block> encoder;
  std::vector<decoder_layer> decoder;
  nn::layer_norm norm{32}, last{32};
  nn::linear head{32, 100};

  explicit encoder_decoder(std::int64_t layers) : decoder(static_cast<std::size_t>(layers)) {
    for (std::int64_t i = 0; i < layers; ++i) encoder.emplace_back(32, 4, 128, nn::transformer_options{});
  }
  tensor operator()(tensor const& ids) const {
    tensor memory = words(ids);
    for (auto const& l : encoder) memory = l(memory);
    memory = norm(memory);
    tensor x = words(ids);
    for (auto const& l : decoder) x = l(x, memory);
    return head(last(x));
  }
  friend auto neap_fields(encoder_decoder& s) {
    return std::tie(s.words, s.encoder, s.decoder, s.norm, s.last, s.head);
  }
};

}  // namespace

TEST_CASE("a GPT has as many classes of blocks as it has kinds of them, however many layers") {
  for (bool fused : {true, false})
    for (std::int64_t layers : {2, 4, 9}) {
      zoo::gpt_config c = zoo::gpt_config::toy();
      c.vocabulary = 100, c.layers = layers, c.fused_attention = fused, c.tied_head = false;
      zoo::gpt model(c);
      auto const step = training_step(model, std::pair{tokens(8, 8), tokens(8, 8)}, cross_entropy{}, adamw{});
      auto const a = make_all_graphs(step.program);
      check_all(step.program, a);
      CHECK(a.blocks.is_chain);
      CHECK(a.blocks.epilogue.empty());
      std::vector<std::uint32_t> expected{0, 1};                                               // tokens; and positions
      for (std::int64_t i = 0; i < layers; ++i) expected.push_back(2), expected.push_back(3);  // attention, perceptron
      for (std::uint32_t k : {4u, 5u, 6u}) expected.push_back(k);                              // norm, head, loss
      CHECK(classes_of(a) == expected);
      // What a solver is told of equal blocks is equal.
      std::vector<seconds_t> const seconds(step.program.op_count(), 1e-6);
      auto const one = facts_of(step.program, a.blocks, 2, span_of(seconds)),
                 two = facts_of(step.program, a.blocks, 4, span_of(seconds));
      REQUIRE(one.ops.size() == two.ops.size());
      CHECK(one.inputs == two.inputs);
      CHECK(one.saved == two.saved);
      CHECK(one.gradient_outputs == two.gradient_outputs);
      for (std::size_t i = 0; i < one.ops.size(); ++i) CHECK(one.ops[i].reads == two.ops[i].reads);
      for (std::size_t d = 0; d < one.data.size(); ++d) CHECK(one.data[d].bytes == two.data[d].bytes);
    }
}

TEST_CASE("dropout is drawn by other keys in each layer, and the layers are equal; clipping joins all blocks") {
  zoo::gpt_config c = zoo::gpt_config::toy();
  c.vocabulary = 100, c.layers = 4, c.dropout = 0.1, c.fused_attention = false;
  zoo::gpt model(c);
  auto const step =
      training_step(model, std::pair{tokens(8, 8), tokens(8, 8)}, cross_entropy{}, adamw{}, {.clip_norm = 1});
  auto const a = make_all_graphs(step.program);
  check_all(step.program, a);
  std::size_t updates = 0;
  for (auto const& b : a.blocks.blocks) updates += b.updates.size();
  CHECK(updates == 0);
  CHECK(a.blocks.epilogue.size() > a.basic.count(step_part::update));
  std::size_t most = 0;
  for (auto const& k : a.classes) most = std::max(most, k.blocks.size());
  CHECK(most == 4);
}

TEST_CASE("a U-Net is cut before and behind the U; bottom up it is cut inside") {
  zoo::unet model(zoo::unet_config::toy());
  auto const x = tensor::randn({2, 3, 16, 16}, 1);
  auto const step = training_step(model, std::pair{x, tensor::randn({2, 2, 16, 16}, 2)}, mse{}, sgd{});
  auto const a = make_all_graphs(step.program);
  check_all(step.program, a);
  CHECK(a.blocks.blocks.size() > 5);
  auto const b = make_all_graphs(step.program, {.cut = {.max_blocks = 8}, .kind = cut_kind::bottom_up});
  check_all(step.program, b);
  CHECK(b.blocks.blocks.size() == 8);
}

TEST_CASE("an encoder and a decoder: layers of both are blocks, and inner ones are equal") {
  encoder_decoder model(5);
  auto const step = training_step(model, std::pair{tokens(8, 8), tokens(8, 8)}, cross_entropy{}, sgd{});
  auto const a = make_all_graphs(step.program);
  check_all(step.program, a);
  CHECK(!a.blocks.is_chain);  // the decoder's layers read the encoder
  // The encoder is a chain of two kinds; the decoder has one block or more a layer, of which those inside are equal.
  std::vector<std::size_t> sizes;
  for (auto const& k : a.classes) sizes.push_back(k.blocks.size());
  std::sort(sizes.rbegin(), sizes.rend());
  REQUIRE(sizes.size() > 3);
  CHECK(sizes[0] >= 4);
  CHECK(sizes[1] >= 4);
  CHECK(sizes[2] >= 3);
  for (auto const& b : a.blocks.blocks) CHECK(b.nodes.size() <= 45);
  for (auto kind : {cut_kind::separators, cut_kind::repeats, cut_kind::bottom_up})
    check_all(step.program, make_all_graphs(step.program, {.kind = kind}));
}

TEST_CASE("imported graphs are cut and classed as traced ones") {
  for (std::string const name : {"gpt-d256-l4-b8-t128", "cnn-small-b64", "mlp4-1024-b256"}) {
    CAPTURE(name);
    auto const path = std::string(NEAP_SOURCE_DIR) + "/examples/graphs/" + name + ".json.gz";
    auto const text = io::read_file(path);
    REQUIRE(text);
    for (bool optimizer : {false, true}) {
      io::graph_file_options o;
      o.neap_graph.optimizer = optimizer;
      auto const g = io::parse_graph(*text, path, o);
      REQUIRE(g);
      auto const a = make_all_graphs(g->program, g->order);
      check_all(g->program, a);
      CHECK(a.blocks.is_chain);
      CHECK(a.blocks.epilogue.empty());
      auto const classes = classes_of(a);
      if (name == "gpt-d256-l4-b8-t128")
        CHECK(classes == std::vector<std::uint32_t>{0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 6, 7});
      if (name == "mlp4-1024-b256") CHECK(classes == std::vector<std::uint32_t>{0, 1, 2, 1, 2, 1, 2, 3, 4});
    }
  }
}

TEST_CASE("a forward program alone has blocks, too, and nothing backward") {
  zoo::gpt_config c = zoo::gpt_config::toy();
  c.layers = 3;
  zoo::gpt model(c);
  auto const p = trace([&](tensor x) { return model(x); }, tokens(2, 8));
  auto const a = make_all_graphs(p.program);
  check_all(p.program, a);
  for (auto const& b : a.blocks.blocks) CHECK(b.backward.empty());
  for (auto const& k : a.kernels.computations) CHECK(k.kind == kernel_kind::forward);
  CHECK(a.classes.size() < a.blocks.blocks.size());
  CHECK(to_text(p.program, a.blocks).find("block 0 of class 0") != std::string::npos);
}

TEST_CASE("what reads updated weights belongs to no forward block") {
  for (bool metric : {false, true})
    for (std::int64_t elements : {64, 1 << 20}) {
      CAPTURE(metric);
      CAPTURE(elements);
      graph_editor edit{operator_table(standard_operators::facets)};
      auto const t = tensor_layout::dense({dtype::f32, {elements}});
      auto const add = [&](char const* name, std::vector<value_id> in, alias_kind alias) {
        output_rule const rule[] = {{t, alias, alias == alias_kind::update ? 0 : -1}};
        return edit.output(edit.add_opaque(name, {}, in, rule));
      };
      auto const w = edit.add_source_at(role::weight, t), x = edit.add_source_at(role::input, t),
                 average = edit.add_source_at(role::buffer, t);
      auto const y = add("y", {w, x}, alias_kind::fresh), loss = add("loss", {y}, alias_kind::fresh);
      auto const g = add("g", {add("loss.g", {y}, alias_kind::fresh), x}, alias_kind::fresh);
      auto const updated = add("update", {w, g}, alias_kind::update);
      edit.keep(loss, role::loss);
      if (metric) edit.keep(add("norm", {updated}, alias_kind::fresh), role::output);
      else add("average", {average, updated}, alias_kind::update);
      graph const made(std::move(edit).finish());
      auto const a = make_all_graphs(made);
      check_all(made, a);
      CHECK(a.simplified.prologue.empty());
      CHECK(a.basic.count(step_part::update) == 2);
    }
}
