#include <neap/blocks/block_facts.hpp>

#include "../support/message.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"
#include "checks.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace neap;
using namespace neap::testing;

TEST_CASE("facts are the block's: ops, times, bytes, readers; they can run in their order") {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    CAPTURE(seed);
    auto const g = seed % 2 ? opaque_graph(seed, 30) : random_model(seed, 30);
    auto const a = make_all_graphs(g, {.kind = static_cast<cut_kind>(seed % 4)});
    std::vector<seconds_t> seconds;
    for (auto o : g.ops()) seconds.push_back(1e-6 * static_cast<double>(index(o) + 1));
    for (std::uint32_t k = 0; k < a.blocks.blocks.size(); ++k) {
      auto const& b = a.blocks.blocks[k];
      auto const f = facts_of(g, a.blocks, k, span_of(seconds));
      std::size_t views = 0;
      for (auto const* list : {&b.forward, &b.backward, &b.updates})
        for (auto o : *list) views += flow::is_view(g, o);
      CHECK(f.ops.size() + views == b.forward.size() + b.backward.size() + b.updates.size());
      std::map<storage_id, std::uint32_t> of;
      for (std::uint32_t d = 0; d < f.data.size(); ++d) {
        CHECK(of.emplace(f.data[d].storage, d).second);
        CHECK(f.data[d].bytes == g.bytes(f.data[d].storage));
        CHECK((f.data[d].origin == data_origin::source) == g.is_resident(f.data[d].storage));
      }
      std::vector<unsigned char> made(f.data.size());
      for (std::uint32_t d = 0; d < f.data.size(); ++d) made[d] = f.data[d].origin != data_origin::inside;
      for (std::uint32_t i = 0; i < f.ops.size(); ++i) {
        auto const& x = f.ops[i];
        CHECK(x.seconds == seconds[index(x.op)]);
        CHECK(x.part == a.basic.part[x.op]);
        CHECK((i < f.forward_ops) == (x.part == step_part::forward));
        CHECK((i >= f.forward_ops + f.backward_ops) == (x.part == step_part::update));
        for (auto n : x.after) CHECK(n < i);
        for (auto d : x.reads) CHECK(made[d]);
        for (auto d : x.makes) {
          CHECK(!made[d]);
          made[d] = 1;
        }
        std::set<std::uint32_t> reads, makes;
        for (auto v : g.inputs(x.op)) reads.insert(of.at(g.storage(v)));
        for (auto v : g.outputs(x.op))
          if (g.record(v).alias == alias_kind::fresh) makes.insert(of.at(g.storage(v)));
        CHECK(reads == std::set<std::uint32_t>(x.reads.begin(), x.reads.end()));
        CHECK(makes == std::set<std::uint32_t>(x.makes.begin(), x.makes.end()));
      }
      for (auto m : made) CHECK(m);
      for (auto d : f.saved)
        CHECK((f.data[d].origin == data_origin::inside || f.data[d].origin == data_origin::input ||
               f.data[d].origin == data_origin::global));
    }
  }
}

TEST_CASE("one time an op") {
  auto const g = random_model(1);
  auto const a = make_all_graphs(g);
  std::vector<seconds_t> const few(3);
  CHECK(message_of([&] { (void)facts_of(g, a.blocks, 0, span_of(few)); }) == "blocks: one time an op is needed");
}
