// Parts: what fission makes of ops. A part of an op computes the same on a piece of its inputs, cut into equal pieces along
// an axis (mutate/fission.hpp). The graph holds the parts as ops of their own, with the origin of the op they are parts of;
// which part of how many is a row of a small table, so that reports can tell it and copies of one part know each other.
#pragma once

#include <neap/core/id.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

struct op_part {
  std::int64_t number = 0, count = 1;  // number is in [0, count)
  part_id of = nothing<part_id>;       // the part that was cut into these; nothing: the whole
  friend bool operator==(op_part const&, op_part const&) = default;
};

}}  // namespace neap::v0
