// Random chains of blocks for tests: sizes small enough that limits bite, ties and nothings among them.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/plan/chain_profile.hpp>

#include <algorithm>
#include <vector>

namespace neap::testing {

struct random_chain_shape {
  std::uint32_t blocks = 5, options = 2, kinds = 1000;  // at most; kinds of blocks, repeated at random
  std::uint32_t size = 6;                               // inputs are below, what is saved is below some times that
  std::uint32_t left = 0;                               // what backwards leave is below that; 0: nothing
  std::uint32_t pass_temporary = 0;                     // that of half of the plain forwards is below; 0: size
  bool wild = true;  // sizes and times of nothing, forwards that take more to save nothing than to save
};

inline chain_profile random_chain(random_stream& draw, random_chain_shape shape) {
  auto const slots = [&](std::uint32_t below) { return static_cast<slots_t>(draw.below(below)); };
  auto const time = [&] {
    if (shape.wild && draw.below(8) == 0) return 0.0;
    return draw.below(2) == 0 ? 1.0 + draw.below(4) : 0.1 + 5 * static_cast<double>(draw.uniform());
  };
  auto const n = 1 + draw.below(shape.blocks);
  std::vector<chain_block> kinds(std::min(n, 1 + draw.below(shape.kinds)));
  for (auto& b : kinds) {
    b.input = (shape.wild ? 0 : 1) + slots(shape.size);
    b.pass_time = time();
    b.pass_temporary = shape.pass_temporary > 0 && draw.below(2) == 0 ? slots(shape.pass_temporary) : slots(shape.size);
    if (shape.left > 0) b.left = slots(shape.left);
    auto const options = 1 + draw.below(shape.options);
    for (std::uint32_t k = 0; k < options; ++k) {
      block_option o{b.pass_time, time() * 2, slots(4 * shape.size), slots(shape.size), slots(2 * shape.size)};
      if (shape.wild && draw.below(3) == 0) o.forward_time = time();
      b.options.push_back(o);
    }
  }
  chain_profile chain;
  for (std::uint32_t i = 0; i < n; ++i)
    chain.blocks.push_back(kinds[draw.below(static_cast<std::uint32_t>(kinds.size()))]);
  chain.output = slots(shape.size);
  // What a block saves has its output in it; the last one's is not counted.
  for (std::size_t i = 0; i + 1 < chain.size(); ++i)
    for (auto& o : chain.blocks[i].options) o.saved += chain.input(i + 1);
  return chain;
}

}  // namespace neap::testing
