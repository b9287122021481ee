// Plans that fuse products and what follows them: right ones are accepted, those that compute something else are refused,
// and so is a pinned operator inside.
#include <neap/verify/plan_verifier.hpp>

#include <neap/train/fuse.hpp>

#include "../support/fused_products.hpp"
#include "../support/fusing_pass.hpp"
#include "../support/random_products.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {
bool is_product(op::fused const& op) { return op.is_product(); }
}  // namespace

TEST_CASE("plans that fuse epilogues of the original are right, and recomputed and swapped ones") {
  std::size_t fused = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(200u); ++seed) {
    CAPTURE(seed);
    auto const original = random_products(seed, 6 + static_cast<std::uint32_t>(seed % 24));
    auto const c = judged_in_order(planned_from(original, fuse(original)), fusing_device);
    fused += fused_ops(c.graph, is_product).size();
    auto const right = verdict_on(original, moved(c, seed));
    REQUIRE_MESSAGE(right.ok(), right.message());
  }
  CHECK(fused > testing::cases(60));
}

TEST_CASE("operators that differ from those they replace are refused") {
  refusals seen;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    auto const original = random_products(seed, 6 + static_cast<std::uint32_t>(seed % 24), {true, false});
    check_other_operators(
        original, fuse(original), seed, 8, is_product,
        [](op::fused other, auto const& in, random_stream& draw) -> std::optional<op::fused> {
          switch (draw.below(3)) {
            case 0: other.transpose_a = !other.transpose_a; break;
            case 1: other.transpose_b = !other.transpose_b; break;
            default:
              auto const kind = static_cast<product_kind>(draw.below(static_cast<std::uint32_t>(product_kind::count)));
              if (kind == kind_of_product(other)) return {};
              other =
                  product_of_kind({other.transpose_a, other.transpose_b}, kind, in[0].type.element, other.keeps_step);
          }
          return other;
        },
        seen);
  }
  CHECK(seen.refused > testing::cases(60));
  CHECK(seen.alike < seen.refused / 4);
}

TEST_CASE("a pinned operator is not inside another one") {
  for (auto const pins : {pin_set(), pin_set(pin::run_once), pin_set(pin::keep)}) {
    graph_editor edit{operator_table(standard_operators::facets)}, other = edit;
    auto const sources = [](graph_editor& e) {
      return std::vector{e.add_source(role::input, {dtype::f32, {4, 4}}),
                         e.add_source(role::weight, {dtype::f32, {4, 4}}),
                         e.add_source(role::weight, {dtype::f32, {4}})};
    };
    auto const in = sources(edit);
    auto const y = edit.add(op::matmul{}, {in[0], in[1]})[0];
    auto const result = edit.add(op::add{}, {y, in[2]})[0];
    if (pins.has(pin::keep)) edit.add_pins(y, pins);
    else if (!pins.empty()) edit.add_pins(edit.graph().producer(y), pins);
    edit.keep(result, role::output);
    auto const original = graph(std::move(edit).finish());

    auto const made =
        other.add(product_of_kind({}, product_kind::bias, dtype::f32), std::span<value_id const>(sources(other)))[0];
    other.set_origin(other.graph().producer(made), op_id{2});
    other.set_origin_count(3);
    other.set_rewritten(other.graph().producer(made));
    other.keep(made, role::output);
    auto const v = verdict_on(original, judged_in_order(graph(std::move(other).finish()), fusing_device));
    if (pins.empty()) {
      CHECK_MESSAGE(v.ok(), v.message());
      continue;
    }
    CHECK(!v.ok());
    CHECK(tells_of_pinned_step(v));
  }
}

TEST_CASE("products with an epilogue run in parts, and the plans are right") {
  std::size_t parts = 0;
  for (std::uint64_t seed = 0; seed < (testing::sanitized ? 90u : 240u); ++seed) {
    CAPTURE(seed);
    parts += check_fused_parts(fuse(random_products(seed, 8 + static_cast<std::uint32_t>(seed % 16))).program, seed,
                               is_product);
  }
  CHECK(parts > (testing::sanitized ? 4 : 20));
}
