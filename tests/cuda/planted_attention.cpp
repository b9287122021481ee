// Faults planted in copies of attention's kernels (planted_attention.cmake), compiled by nvcc and run by the interpreter of
// PTX: each is caught by a fault in the report, by an element that was not written, or by a result that is not the host's.
#include "attention.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>

namespace {

using namespace neap;
using namespace neap::testing;

/// What is wrong with attention on these kernels, for one of a few problems and orders of threads.
std::string found(interpreted_module& kernels) {
  attention_case const causal{
      .heads = 2, .key_heads = 1, .queries = 150, .keys = 150, .depth = 32, .value_depth = 32, .causal = true},
      whole{.heads = 4, .key_heads = 2, .queries = 21, .keys = 135, .depth = 32, .value_depth = 32},
      low_scores{
          .heads = 1, .key_heads = 1, .queries = 70, .keys = 1, .depth = 32, .value_depth = 32, .scale = 1, .range = 8},
      few_keys{.heads = 1, .key_heads = 1, .queries = 70, .keys = 5, .depth = 32, .value_depth = 32};
  for (auto const& c : {whole, few_keys, low_scores, causal})
    for (std::uint64_t seed : {1, 0}) {
      auto const got = attention_on_device(kernels, c, dtype::bf16, seed, 1.0 / 64);
      if (got.wrong != "") return got.wrong;
    }
  return "";
}

}  // namespace

TEST_CASE("planted faults are caught in interpreted kernels of attention, and nothing in those without a fault") {
  auto kernels = interpreted_kernels("planted_attention");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  CHECK(found(*kernels) == "");
  // "cuda_blocks<neap::v0::detail::planted::NAME::attention_forward<...>>" takes the place of the kernel without a fault.
  auto const all = kernels->symbol_of;
  std::map<std::string, std::map<std::string, std::string>> planted;
  std::string const mark = "planted::";
  for (auto const& [key, symbol] : all) {
    auto const at = key.find(mark);
    if (at == key.npos) continue;
    auto const name = at + mark.size(), end = key.find("::attention_", name);
    REQUIRE(end != key.npos);
    std::string const header = key.substr(end + 2, key.find('<', end) - end - 2);
    planted[header + ": " + key.substr(name, end - name)][std::string(key).erase(at, end + 2 - at)] = symbol;
  }
  CHECK(planted.size() >= 20);
  for (auto const& [name, symbols] : planted) {
    CAPTURE(name);
    kernels->symbol_of = all;
    for (auto const& [key, symbol] : symbols) {
      REQUIRE(all.contains(key));
      kernels->symbol_of[key] = symbol;
    }
    CHECK(found(*kernels) != "");
  }
}
