#include <neap/ir/verify.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::random_graph;
using neap::testing::toy_operators;
namespace toy = neap::testing::toy;

namespace neap { inline namespace v0 {
/// The graph's own tables, to break them.
struct graph_test_access {
  explicit graph_test_access(op_graph& broken) : g(broken) {
    g.begin_edit();
    g.end_edit();
  }
  op_graph& g;
  auto& ops() { return g.t_->ops; }
  auto& values() { return g.t_->values; }
  auto& storages() { return g.t_->storages; }
  auto& arguments() { return g.t_->arguments; }
  auto& kept() { return g.t_->kept; }
  auto& sources() { return g.t_->sources; }
  auto& parts() { return g.t_->parts; }
  auto& layouts() { return g.t_->layouts; }
  auto& uses() { return g.t_->uses; }
  auto& after() { return g.t_->after; }
  auto& down() { return g.t_->op_down; }
  auto& up() { return g.t_->op_up; }
  auto& digest() { return g.t_->digest; }
  auto& attributes() { return g.t_->attributes; }
};
}}  // namespace neap::v0

namespace {

/// Two copies of a random op, a view, an update with other readers, an op with two outputs, a part of a part.
struct sample {
  op_graph g;
  value_id x, w, view, y, mask, updated, loss;
  op_id drop, copy, update, reader;
  sample() {
    graph_editor edit(toy_operators::facets);
    x = edit.add_source(role::input, {dtype::f32, {4, 4}}, "x");
    w = edit.add_source(role::weight, {dtype::f32, {4, 4}}, "w");
    view = edit.add(toy::transpose{}, {w})[0];           // op 0
    auto const out = edit.add(toy::drop{77, 0.5}, {x});  // op 1
    y = out[0], mask = out[1];
    auto const m = edit.add(toy::matmul{}, {y, view})[0];  // op 2
    auto const n = edit.add(toy::binary{}, {m, y})[0];     // op 3
    updated = edit.add(toy::descend{0.5}, {w, n})[0];      // op 4
    drop = edit.graph().producer(y), update = edit.graph().producer(updated), reader = edit.graph().producer(m);
    copy = edit.clone(drop);                                     // op 5
    loss = edit.add(toy::binary{1}, {n, edit.output(copy)})[0];  // op 6
    edit.set_name(reader, "product");
    edit.keep(loss, role::loss);
    edit.set_part(reader, edit.part_row({1, 2, edit.part_row({0, 4})}));
    g = std::move(edit).finish();
  }
};

}  // namespace

TEST_CASE("random graphs hold every invariant") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto const g = random_graph(seed, {.parts = seed % 2 == 0, .copies = 3, .swaps = 2});
    CAPTURE(seed);
    auto const s = verify(g);
    CHECK_MESSAGE(s, s.message());
  }
  CHECK(verify(testing::toy_graph{}));
}

TEST_CASE("each planted fault is seen and told in one line") {
  using access = graph_test_access;
  struct fault {
    char const* says;
    std::function<void(sample&, access)> plant;
  };
  std::vector<fault> const faults{
      {"its kind is not in the operator table", [](sample& s, access a) { a.ops()[s.reader].kind = 99; }},
      {"its arguments are out of range", [](sample& s, access a) { a.ops()[s.reader].first_input = 1000; }},
      {"its attributes are out of range", [](sample& s, access a) { a.ops()[s.drop].attributes = 1 << 20; }},
      {"its name is out of range", [](sample& s, access a) { a.ops()[s.reader].name = 5000; }},
      {"its name is out of range", [](sample& s, access a) { a.values()[s.x].name = 5000; }},
      {"its origin is out of range", [](sample& s, access a) { a.ops()[s.reader].origin = 5000; }},
      {"its part does not exist", [](sample& s, access a) { a.ops()[s.reader].part = part_id{9}; }},
      {"which does not exist", [](sample&, access a) { a.arguments()[0] = value_id{999}; }},
      {"do not come after", [](sample& s, access a) { a.ops()[s.update].first_output = 0; }},
      {"its outputs are out of range", [](sample& s, access a) { a.ops()[a.g.producer(s.loss)].output_count = 5; }},
      {"does not know that op", [](sample& s, access a) { a.values()[s.mask].producer = s.reader; }},
      {"its layout is out of range", [](sample& s, access a) { a.values()[s.y].layout = layout_id{999}; }},
      {"its storage is out of range", [](sample& s, access a) { a.values()[s.y].storage = storage_id{999}; }},
      {"its producer does not exist", [](sample& s, access a) { a.values()[s.x].producer = op_id{999}; }},
      {"is no output of op", [](sample& s, access a) { a.values()[s.x].producer = s.reader; }},
      {"an extent is negative", [](sample&, access a) { a.layouts()[0].type.dims[0] = -4; }},
      {"negative bytes", [](sample& s, access a) { a.storages()[a.g.storage(s.x)].bytes = -1; }},
      {"did not make it", [](sample& s, access a) { a.storages()[a.g.storage(s.w)].first = s.view; }},
      {"its first value does not exist",
       [](sample& s, access a) { a.storages()[a.g.storage(s.w)].first = value_id{99}; }},
      {"resident, but an op makes it", [](sample& s, access a) { a.storages()[a.g.storage(s.y)].resident = true; }},
      {"not resident, but a source", [](sample& s, access a) { a.storages()[a.g.storage(s.x)].resident = false; }},
      {"its updates are miscounted", [](sample& s, access a) { a.storages()[a.g.storage(s.w)].updates = 0; }},
      {"not in the order of the first values",
       [](sample& s, access a) {
         auto const p = a.g.storage(s.x), q = a.g.storage(s.w);
         std::swap(a.storages()[p], a.storages()[q]);
         for (auto& v : a.values())
           if (v.storage == p) v.storage = q;
           else if (v.storage == q) v.storage = p;
       }},
      {"is not the first value of its own", [](sample& s, access a) { a.values()[s.view].alias = alias_kind::fresh; }},
      {"but a base or a version", [](sample& s, access a) { a.values()[s.y].version = 1; }},
      {"no input and no earlier output", [](sample& s, access a) { a.values()[s.view].of = 4; }},
      {"no input and no earlier output", [](sample& s, access a) { a.values()[s.view].of = -2; }},
      {"does not lie in the storage", [](sample& s, access a) { a.values()[s.view].storage = a.g.storage(s.x); }},
      {"its version is not that of", [](sample& s, access a) { a.values()[s.view].version = 1; }},
      {"plus one", [](sample& s, access a) { a.values()[s.updated].version = 7; }},
      {"is made by no op, but is no source", [](sample& s, access a) { a.values()[s.x].role = role::gradient; }},
      {"is made by an op, but its role is", [](sample& s, access a) { a.values()[s.y].role = role::weight; }},
      {"the list of sources", [](sample&, access a) { a.sources().pop_back(); }},
      {"the list of sources", [](sample&, access a) { std::swap(a.sources()[0], a.sources()[1]); }},
      {"is kept twice", [](sample& s, access a) { a.kept().push_back(s.loss); }},
      {"does not know that it is kept", [](sample& s, access a) { a.kept().push_back(s.y); }},
      {"not in the list", [](sample&, access a) { a.kept().clear(); }},
      {"does not exist", [](sample&, access a) { a.kept().push_back(value_id{500}); }},
      {"its readers are not those that read it",
       [](sample& s, access a) {
         auto const changed = s.y;
         a.uses().patch(a.g.value_count(), std::span(&changed, 1), [](auto, auto, auto&&) {});
       }},
      {"its readers are not those that read it",
       [](sample& s, access a) { a.arguments()[a.ops()[s.reader].first_input] = s.x; }},
      {"table of order constraints is there without updates, or missing", [](sample&, access a) { a.after() = {}; }},
      {"exactly the readers of what it overwrites",
       [](sample&, access a) { a.after().build(a.g.op_count(), [](auto&&) {}); }},
      {"should be f32[4,4], is f32[4,8]",
       [](sample& s, access a) {
         a.layouts().push_back(tensor_layout::dense({dtype::f32, {4, 8}}));
         a.values()[s.loss].layout = id_at<layout_id>(a.layouts().size() - 1);
       }},
      {"at other strides", [](sample& s, access a) { a.values()[s.view].layout = a.values()[s.w].layout; }},
      {"has a storage of another size", [](sample& s, access a) { a.storages()[a.g.storage(s.loss)].bytes = 1; }},
      {"its shape rule refuses its inputs",  // a function of one number is given two
       [](sample& s, access a) { a.ops()[a.g.producer(s.loss)].kind = 0; }},
      {"4 of 4", [](sample&, access a) { a.parts()[0].number = 4; }},
      {"-1 of 2", [](sample&, access a) { a.parts()[1].number = -1; }},
      {"does not come before it", [](sample&, access a) { a.parts()[1].of = part_id{1}; }},
      {"its digest is stale", [](sample&, access a) { a.parts()[0].number = 3; }},
      {"but draws with another key",
       [](sample& s, access a) {
         toy::drop const other{78, 0.5};
         a.ops()[s.copy].attributes = static_cast<std::uint32_t>(a.attributes().size());
         auto const* from = reinterpret_cast<std::byte const*>(&other);
         a.attributes().append(from, sizeof other);
       }},
      {"its digest is stale", [](sample& s, access a) { a.down()[s.reader].low ^= 1; }},
      {"its digest is stale", [](sample& s, access a) { a.up()[s.reader].high ^= 1; }},
      {"its digest is stale", [](sample&, access a) { a.values()[value_id{0}].role = role::constant; }},
      {"not the sum of its parts", [](sample&, access a) { a.digest().low ^= 1; }},
  };
  for (auto const& f : faults) {
    sample s;
    REQUIRE_MESSAGE(verify(s.g), verify(s.g).message());
    f.plant(s, access{s.g});
    auto const told = verify(s.g);
    CAPTURE(f.says);
    CHECK_FALSE(told);
    CHECK_MESSAGE(told.message().find(f.says) != std::string::npos, told.message());
    CHECK(told.message().starts_with("graph: "));
    CHECK(told.message().find('\n') == std::string::npos);
  }
}

TEST_CASE("two updates of one version, and a reader that must run before and after") {
  {
    graph_editor edit(toy_operators::facets);
    auto const w = edit.add_source(role::weight, {dtype::f32, {4}}),
               d = edit.add_source(role::input, {dtype::f32, {4}});
    edit.add(toy::descend{}, {w, d}), edit.add(toy::descend{}, {w, d});
    CHECK(verify(std::move(edit).finish()).message().find("is updated twice") != std::string::npos);
  }
  {
    graph_editor edit(toy_operators::facets);
    auto const w = edit.add_source(role::weight, {dtype::f32, {4}}),
               d = edit.add_source(role::input, {dtype::f32, {4}});
    auto const next = edit.add(toy::descend{}, {w, d})[0];
    edit.add(toy::binary{}, {w, next});  // reads the old version and needs the new one
    auto const told = verify(std::move(edit).finish()).message();
    CHECK(told == "graph: ops wait for each other: op 1 (binary) -> op 0 (descend) -> op 1 (binary)");
  }
}
