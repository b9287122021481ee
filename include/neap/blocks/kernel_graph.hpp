// The fifth graph of rkgb: what runs and what lies in memory, as two kinds of nodes that alternate. For each node n of the
// simplified program there are
//
//   forward n, backward n    computations; backward n only where gradients flow. The node of the loss is marked
//   data n                   memory that forward n makes and other forward nodes read, or the step keeps
//   phantoms n               memory that forward n makes and only the backward part reads
//   gradient n               memory made backward that backward n reads first, of all backward nodes
//
// An edge from data to a computation is real if its bytes are read, and fake if the computation knows of it only what
// kind of tensor it is: forward n reads it, and backward n does not. rkgb runs each operator and looks into autograd for
// what it saved; here the program itself says what its backward ops read.
#pragma once

#include <neap/blocks/backward_of.hpp>

#include <string>
#include <vector>

namespace neap { inline namespace v0 {

enum class kernel_kind : std::uint8_t { forward, backward };
enum class kernel_data_kind : std::uint8_t { data, phantoms, gradient };
constexpr std::string_view name_of(kernel_kind k) { return k == kernel_kind::forward ? "forward" : "backward"; }
constexpr std::string_view name_of(kernel_data_kind k) {
  constexpr std::string_view names[] = {"data", "phantoms", "gradient"};
  return names[static_cast<std::size_t>(k)];
}

struct kernel_computation {
  kernel_kind kind;
  std::uint32_t node;                       // of the simplified program
  std::vector<op_id> ops;                   // in the order of the program
  bool is_loss = false;                     // forward: it makes the loss
  std::vector<std::uint32_t> reads, fakes;  // data nodes, ascending
  std::vector<std::uint32_t> makes;
  friend bool operator==(kernel_computation const&, kernel_computation const&) = default;
};

struct kernel_data {
  kernel_data_kind kind;
  std::uint32_t node;
  std::vector<storage_id> storages;  // ascending
  bytes_t bytes = 0;
  friend bool operator==(kernel_data const&, kernel_data const&) = default;
};

struct kernel_graph {
  std::vector<kernel_computation> computations;  // forward by node, then backward by node, falling
  std::vector<kernel_data> data;
  std::vector<op_id> rest;  // updates, constants, what joins gradients of weights; in the order of the program
  friend bool operator==(kernel_graph const&, kernel_graph const&) = default;
};

/// O(ops + edges).
kernel_graph make_kernels(op_graph const& g, basic_program const& b, simplified_program const& p,
                          backward_nodes const& back);

std::string to_text(op_graph const& g, kernel_graph const& k);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/kernel_graph.ipp>
#endif
