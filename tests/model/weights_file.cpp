#include <neap/model/weights_file.hpp>

#include <neap/model/model.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/llama.hpp>
#include <neap/model/zoo/resnet.hpp>

#include "../../examples/models/bert.hpp"
#include "../../examples/models/densenet.hpp"
#include "../../examples/models/mlp.hpp"
#include "../../examples/models/unet.hpp"
#include "../../examples/models/vgg.hpp"
#include "../../examples/models/vit.hpp"
#include "../support/files.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <map>

using namespace neap;
using namespace neap::testing;

namespace {

template <class Model>
std::vector<named_tensor> all_tensors(Model& model) {
  auto all = named_tensors(model, role::weight);
  for (auto& b : named_tensors(model, role::buffer)) all.push_back(std::move(b));
  return all;
}
template <class Model>
std::vector<std::string> bytes_of(Model& model) {
  std::vector<std::string> all;
  for (auto const& [name, t] : all_tensors(model))
    all.emplace_back(static_cast<char const*>(t.ref().data), static_cast<std::size_t>(t.type().bytes()));
  return all;
}

/// Equal bits after save and load, into other values, for each of the model's tensors.
template <class Model>
void check_round_trip(Model model) {
  scratch const at;
  initialise(model, 5);
  for (auto& b : buffers(model))  // running statistics are something else than their first values
    b.storage()->restart(initialiser::uniform(1, 2).with_seed(3, 4));
  auto other = model;
  initialise(other, 6);
  CHECK(bytes_of(other) != bytes_of(model));
  REQUIRE(save(model, at / "f").ok());
  auto const addresses = [&] {
    std::vector<void*> list;
    for (auto const& n : all_tensors(other)) list.push_back(n.tensor.ref().data);
    return list;
  };
  auto const before = addresses();
  auto const loaded = load(other, at / "f");
  REQUIRE_MESSAGE(loaded, loaded.message());
  CHECK(bytes_of(other) == bytes_of(model));
  CHECK(addresses() == before);  // trainers are bound to them
  auto const file = safetensors_file::open(at / "f");
  CHECK(file->header().tensors.size() == all_tensors(model).size());
}

struct net {
  nn::linear in{3, 4};
  std::vector<nn::linear> layers{nn::linear(4, 4), nn::linear(4, 4)};
  nn::batch_norm2d norm{4};
};
struct wider {
  nn::linear in{3, 5};
  std::vector<nn::linear> layers{nn::linear(4, 4)};
  nn::linear out{4, 2};
};
struct tied {
  parameter table{{5, 3}, initialiser::normal(0, 1)};
  parameter head = table.share();
  parameter bias{{5}};
};
struct typed {
  parameter w;
  buffer b;
  explicit typed(dtype t) : w({2, 3}, initialiser::normal(0, 1), t), b({4}, initialiser::constant(2), t) {}
  friend auto neap_fields(typed& self) { return std::tie(self.w, self.b); }
  static constexpr std::array neap_names{"w", "b"};
};

}  // namespace

TEST_CASE("models of the zoo come back to the bit") {
  check_round_trip(zoo::mlp(zoo::mlp_config::toy()));
  check_round_trip(zoo::vgg(zoo::vgg_config::toy()));
  check_round_trip(zoo::resnet(zoo::resnet_config::toy()));
  check_round_trip(zoo::resnet(zoo::resnet_config::resnet50().narrow()));
  check_round_trip(zoo::densenet(zoo::densenet_config::toy()));
  check_round_trip(zoo::unet(zoo::unet_config::toy()));
  check_round_trip(zoo::bert(zoo::bert_config::toy()));
  check_round_trip(zoo::gpt(zoo::gpt_config::toy()));
  check_round_trip(zoo::vit(zoo::vit_config::toy()));
  check_round_trip(zoo::llama(zoo::llama_config::toy()));
}

TEST_CASE("every element type that a model can have") {
  for (auto t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16, dtype::i64, dtype::i32, dtype::u8, dtype::boolean}) {
    scratch const at;
    typed a(t), b(t);
    b.w.restart(initialiser::constant(1));
    REQUIRE(save(a, at / "f").ok());
    auto const r = load(b, at / "f");
    REQUIRE_MESSAGE(r, r.message());
    CHECK(bytes_of(a) == bytes_of(b));
    CHECK(read_safetensors(at / "f").value()[0].tensor.element() == t);
  }
}

TEST_CASE("names are the paths, and texts of one's own come along") {
  scratch const at;
  net a;
  REQUIRE(save(a, at / "f", {{"epoch", "3"}, {"note", "\"x\""}}).ok());
  std::vector<std::string> names;
  for (auto const& n : read_safetensors(at / "f").value()) names.push_back(n.name);
  CHECK(names == std::vector<std::string>{"in.weight", "in.bias", "layers.0.weight", "layers.0.bias", "layers.1.weight",
                                          "layers.1.bias", "norm.weight", "norm.bias", "norm.running_mean",
                                          "norm.running_variance"});
  auto const r = load(a, at / "f");
  REQUIRE(r);
  CHECK(r->metadata == safetensors_metadata{{"epoch", "3"}, {"note", "\"x\""}});
  CHECK((r->missing.empty() && r->extra.empty()));
}

TEST_CASE("what does not fit is told by name, all of it in one line, and nothing has changed") {
  scratch const at;
  auto const path = at / "f";
  wider saved;
  REQUIRE(save(saved, path).ok());
  net model;
  initialise(model, 1);
  auto const before = bytes_of(model);
  CHECK(load(model, path).message() ==
        path +
            ": does not fit the model: missing \"layers.1.weight\" f32[4,4], \"layers.1.bias\" f32[4], "
            "\"norm.weight\" f32[4], \"norm.bias\" f32[4] and 2 more; not in the model \"out.weight\" f32[2,4], "
            "\"out.bias\" f32[2]; of another type \"in.weight\" is f32[5,3] in the file, f32[4,3] in the model, "
            "\"in.bias\" is f32[5] in the file, f32[4] in the model");
  CHECK(bytes_of(model) == before);
  // Of another type is never allowed.
  auto const partly = load(model, path, {.allow_missing = true, .allow_extra = true});
  CHECK(partly.message() ==
        path +
            ": does not fit the model: of another type \"in.weight\" is f32[5,3] in the file, f32[4,3] in the model, "
            "\"in.bias\" is f32[5] in the file, f32[4] in the model");
  CHECK(bytes_of(model) == before);
  CHECK(load(model, at / "none").message() == at / "none" + ": cannot be read: No such file or directory");
  write_bytes(at / "cut", read_bytes(path).substr(0, read_bytes(path).size() - 1));
  CHECK(load(model, at / "cut").message().ends_with("it is cut off"));
  CHECK(bytes_of(model) == before);
  CHECK_THROWS_WITH_AS(load(model, at / "none").value(), doctest::Contains("No such file"), error);
}

TEST_CASE("a part of a model is loaded where that is asked for") {
  scratch const at;
  net a, b;
  initialise(a, 1), initialise(b, 2);
  auto const own = b.in.weight.values<float>();
  auto list = named_tensors(a.norm, role::weight);
  for (auto& n : list) n.name = "norm." + n.name;
  list.push_back({"head", tensor::ones({7})});
  list.push_back({"layers.0.weight", tensor::ones({4, 4})});
  REQUIRE(write_safetensors(at / "f", list).ok());
  CHECK_FALSE(load(b, at / "f", {.allow_missing = true}));
  CHECK_FALSE(load(b, at / "f", {.allow_extra = true}));
  auto const r = load(b, at / "f", {.allow_missing = true, .allow_extra = true});
  REQUIRE_MESSAGE(r, r.message());
  CHECK(r->extra == std::vector<std::string>{"head"});
  CHECK(r->missing == std::vector<std::string>{"in.weight", "in.bias", "layers.0.bias", "layers.1.weight",
                                               "layers.1.bias", "norm.running_mean", "norm.running_variance"});
  CHECK(b.in.weight.values<float>() == own);
  CHECK(b.layers[0].weight.values<float>() == std::vector<float>(16, 1));
}

TEST_CASE("element types are the model's, or are cast where that is asked for") {
  scratch const at;
  typed wide(dtype::f64), narrow(dtype::bf16), whole(dtype::i64);
  initialise(wide, 1);
  REQUIRE(save(wide, at / "f").ok());
  CHECK(load(narrow, at / "f").message() ==
        at / "f" +
            ": does not fit the model: of another type \"w\" is f64[2,3] in the file, bf16[2,3] in the model, "
            "\"b\" is f64[4] in the file, bf16[4] in the model; load_options{.cast = true} casts");
  CHECK_FALSE(load(whole, at / "f", {.cast = true}));
  for (auto t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16}) {
    typed to(t);
    REQUIRE(load(to, at / "f", {.cast = true}));
    auto const x = wide.w.values<double>();
    auto const y = to.w.values<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      double const rounded = t == dtype::f64   ? x[i]
                             : t == dtype::f32 ? static_cast<double>(static_cast<float>(x[i]))
                             : t == dtype::bf16
                                 ? static_cast<double>(static_cast<float>(bf16(static_cast<float>(x[i]))))
                                 : static_cast<double>(static_cast<float>(f16(static_cast<float>(x[i]))));
      CHECK(y[i] == rounded);
    }
    REQUIRE(save(to, at / "g").ok());
    typed back(dtype::f64);
    REQUIRE(load(back, at / "g", {.cast = true}));
    CHECK(back.w.values<double>() == y);
  }
  // in parts that are larger than the buffer between
  parameter large({50000}, initialiser::normal(0, 1).with_seed(1, 1), dtype::f32);
  parameter small({50000}, initialiser::constant(0), dtype::bf16);
  REQUIRE(save(large, at / "l").ok());
  REQUIRE(load(small, at / "l", {.cast = true}));
  auto const x = large.values<float>(), y = small.values<float>();
  bool equal = true;
  for (std::size_t i = 0; i < x.size(); ++i) equal = equal && y[i] == static_cast<float>(bf16(x[i]));
  CHECK(equal);
}

TEST_CASE("tied weights are one tensor of the file, whichever of their names it has") {
  scratch const at;
  tied a, b;
  initialise(a, 1), initialise(b, 2);
  REQUIRE(save(a, at / "f").ok());
  auto all = read_safetensors(at / "f").value();
  CHECK(all.size() == 2);
  CHECK(all[0].name == "table");
  REQUIRE(load(b, at / "f"));
  CHECK(bytes_of(a) == bytes_of(b));
  CHECK(b.head.values<float>() == a.table.values<float>());

  initialise(b, 2);
  all[0].name = "head";
  REQUIRE(write_safetensors(at / "f", all).ok());
  auto const r = load(b, at / "f");
  REQUIRE_MESSAGE(r, r.message());
  CHECK(bytes_of(a) == bytes_of(b));

  all.push_back({"table", tensor::ones({5, 3})});  // both, and different
  REQUIRE(write_safetensors(at / "f", all).ok());
  CHECK(load(b, at / "f").message() == at / "f" +
                                           ": does not fit the model: not in the model \"head\" f32[5,3], which "
                                           "is tied to \"table\" here");
  CHECK(bytes_of(a) == bytes_of(b));
}

TEST_CASE("a model that nobody has touched takes no memory when it is saved, and is not filled before it is loaded") {
  scratch const at;
  net a, b;
  initialise(a, 1), initialise(b, 1);
  REQUIRE(save(a, at / "f").ok());
  for (auto const& n : all_tensors(a)) CHECK_FALSE(n.tensor.has_data());
  (void)bytes_of(b);
  REQUIRE(load(a, at / "f"));
  CHECK(bytes_of(a) == bytes_of(b));
  // Its first values are what they were: initialise draws them again.
  initialise(a, 1);
  CHECK(bytes_of(a) == bytes_of(b));
}

TEST_CASE("a disk that fails halfway is told with what was loaded; the rest has its first values") {
  scratch const at;
  net a, b, c;
  initialise(a, 1), initialise(b, 2), initialise(c, 2);
  REQUIRE(save(a, at / "f").ok());
  auto const file = safetensors_file::open(at / "f");
  auto const targets = detail::load_targets(detail::model_ref(b));
  detail::load_plan planned;
  REQUIRE(detail::plan_load(*file, detail::file_names::of(*file, {}).value(), targets, {}, {}, planned).ok());
  auto const& e = *file->header().find("layers.1.weight");
  std::filesystem::resize_file(at / "f",
                               std::filesystem::file_size(at / "f") - (file->header().tensors.back().end - e.begin));
  auto const s = detail::run_load(*file, targets, planned);
  CHECK(s.message().ends_with(", in tensor \"layers.1.weight\"; 4 of 10 tensors were loaded before it"));
  CHECK(b.layers[0].bias.values<float>() == a.layers[0].bias.values<float>());
  CHECK(b.layers[1].weight.values<float>() == c.layers[1].weight.values<float>());
  CHECK(b.norm.running_variance.values<float>() == std::vector<float>(4, 1));
}

TEST_CASE("two paths with one name, by a map's key with a point in it, are told") {
  scratch const at;
  struct {
    std::map<std::string, parameter> a;
    struct {
      std::map<std::string, parameter> b;
    } c;
  } model;
  model.a.emplace("x", parameter({1}));
  model.a.emplace("y", parameter({1}));
  REQUIRE(save(model, at / "f").ok());
  std::map<std::string, std::map<std::string, parameter>> maps;
  maps["p.q"].emplace("r", parameter({1}));
  maps["p"].emplace("q.r", parameter({1}));
  CHECK(save(maps, at / "g").message() == at / "g" + ": cannot be written: two tensors are named \"p.q.r\"");
}

TEST_CASE("in-place loading is seen by what was recorded before it") {
  scratch const at;
  nn::linear m(2, 2);
  REQUIRE(save(m, at / "f").ok());
  auto const version = m.weight.storage()->version();
  REQUIRE(load(m, at / "f"));
  CHECK(m.weight.storage()->version() > version);
}

namespace {
struct wrapped {
  nn::linear module;
};
struct inner {
  nn::linear up{2, 3}, down{3, 2};
};
struct outer {
  inner body;
  nn::linear head{2, 1};
};
}  // namespace

TEST_CASE("names of a file become those of the model: prefixes, a function, and what does not fit") {
  scratch const at;
  outer from;
  initialise(from, 1);
  REQUIRE(save(from, at / "outer").ok());
  inner to;
  initialise(to, 2);
  auto const told = [&](load_options const& o) { return load(to, at / "outer", o).message(); };
  auto const has = [](std::string const& text, std::string_view part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  };
  // a part of a larger model
  has(told({}), "missing \"up.weight\" f32[3,2]");
  has(told({}), "the names in the file begin with \"body.\": load_options{.strip_prefix = ...} takes that away");
  has(told({.strip_prefix = "body."}), "not in the model \"head.");
  auto const loaded = load(to, at / "outer", {.allow_extra = true, .strip_prefix = "body."});
  REQUIRE_MESSAGE(loaded, loaded.message());
  CHECK(loaded->extra.size() == 2);
  CHECK(bytes_of(to) == bytes_of(from.body));
  initialise(to, 2);
  auto const body_alone = [](std::string const& name) { return name.starts_with("head.") ? "" : name; };
  REQUIRE(load(to, at / "outer", {.strip_prefix = "body.", .rename = body_alone}).ok());
  CHECK(bytes_of(to) == bytes_of(from.body));
  // and back
  initialise(to, 3);
  REQUIRE(save(to, at / "inner").ok());
  has(load(from, at / "inner").message(),
      "the names in the model begin with \"body.\": load_options{.add_prefix = ...}");
  REQUIRE(load(from, at / "inner", {.allow_missing = true, .add_prefix = "body."}).ok());
  CHECK(bytes_of(to) == bytes_of(from.body));
  // one prefix for another: what a wrapper of another library saves as module.weight
  wrapped w{nn::linear(2, 3)};
  REQUIRE(save(w, at / "wrapped").ok());
  struct {
    nn::linear layer{2, 3};
  } other;
  REQUIRE(load(other, at / "wrapped", {.strip_prefix = "module.", .add_prefix = "layer."}).ok());
  CHECK(bytes_of(other) == bytes_of(w));

  has(told({.strip_prefix = "trunk."}), "no name begins with \"trunk.\", as in \"body.");
  has(told({.rename = [](std::string const&) { return std::string("up.bias"); }}), "both become \"up.bias\"");
  has(told({.rename = [](std::string const& n) { return "x." + n; }}), ", \"x.body.up.weight\" here");
}
