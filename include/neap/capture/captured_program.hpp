// One path of a compiled function, captured: the graph of its operators, and what a call leaves behind, all in terms of
// what it began with (numbers of argument_state, expressions of tracked scalars), so that it serves any arguments of the
// same signature.
#pragma once

#include <neap/capture/guard_trie.hpp>
#include <neap/ir/graph.hpp>
#include <neap/model/tensor.hpp>

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace neap::inline v0::detail {

/// Where a tensor that a call leaves behind comes from.
struct tensor_origin {
  enum class kind : std::uint8_t { none, argument, memory_of_argument, made };
  kind what = kind::none;
  std::uint32_t number = 0;  // of the argument's tensor, or in captured_program::made
  tensor_layout layout{};    // in that memory
  bool wants_gradient = false, though_frozen = false, of_gradient = false;

  friend bool operator==(tensor_origin const&, tensor_origin const&) = default;
};

struct captured_program {
  struct source {
    enum class kind : std::uint8_t { argument, scalar, constant };
    value_id value;
    kind what;
    std::uint32_t number;  // of the argument's tensor, the expression, or in `constants`
  };
  struct tensor_write {
    std::uint32_t to;
    tensor_origin from;
    friend bool operator==(tensor_write const&, tensor_write const&) = default;
  };
  struct cell_write {
    std::uint32_t cell, expression;
    friend bool operator==(cell_write const&, cell_write const&) = default;
  };
  struct plain_write {
    std::uint32_t to;
    std::string bytes;
    friend bool operator==(plain_write const&, plain_write const&) = default;
  };

  op_graph program;
  std::vector<source> sources;
  std::vector<tensor> constants;       // data of the program, copied
  std::vector<value_id> made;          // kept: whole storages that the call leaves behind
  std::vector<std::uint32_t> updated;  // tensors of arguments whose memory operators write
  std::vector<tensor_write> tensors;
  std::vector<cell_write> cells;
  std::vector<plain_write> plains;
  std::vector<tensor_origin> result;
  std::vector<std::uint32_t> result_cells;  // expressions
  std::string result_bytes;                 // plain values and structure
  std::vector<guard> path;
  std::vector<std::source_location> places;  // of ops
  bool may_throw = false;                    // an operator checks numbers that it reads
};

}  // namespace neap::inline v0::detail
