// The table of what a kind of operator is: flags, attributes and functions of its bytes.
#pragma once

#include <neap/core/tensor_ref.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>
#include <neap/ir/attributes.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace neap { inline namespace v0 {

class shape_context;
class dim_context;
class gradient_context;
struct cut_context;
struct work;
struct work_context;

class host_backend;

/// A backend has a kernel for an operator: run(backend, op, arguments) is found by argument-dependent lookup.
template <class Backend, class Op>
concept has_kernel = requires(Backend& b, Op const& op, kernel_arguments const& a) { run(b, op, a); };

/// Runs an operator's kernel: run(backend, operator struct, arguments).
template <class Backend>
using kernel_function = void (*)(Backend&, void const*, kernel_arguments const&);

/// Layouts of inputs that a kernel can read.
enum class layouts : std::uint8_t {
  dense,  // elements follow one another in row-major order
  rows,   // those of each row of the last axis do
  any,    // any strides, 0 (broadcast) included
};

/// Whether a kernel that takes `t` can read an input of this layout.
inline bool fits(layouts t, tensor_layout const& l) {
  return t == layouts::any || (t == layouts::rows ? l.has_dense_rows() : l.is_dense());
}

/// What mixed precision (model/precision.hpp) does to an operator's floating inputs. "Low" is bf16 or f16.
enum class precision_use : std::uint8_t {
  as_given,  // nothing: views, copies, casts, updates in place
  common,    // where one input is low, those of f32 are cast to it
  reduced,   // those of f32 are cast to the low type
  full,      // low ones are cast to f32
  rows,      // nothing; f32 outputs are cast to the low type: what is picked from a table, not the table
  of_first,  // f32 and low ones are cast to the type of the first input, which the operator writes
};
struct precision_rule {
  precision_use use = precision_use::as_given;
  std::uint32_t kept = 0;  // bits: inputs that stay as they are all the same
  constexpr precision_rule(precision_use u = precision_use::as_given, std::uint32_t kept_inputs = 0)
      : use(u),
        kept(kept_inputs) {}
};

struct operator_facets {
  std::string_view name;
  std::uint64_t name_digest = 0;  // digests have it: a graph's is the same over all sets
  std::uint32_t size = 0;         // bytes of attributes in a graph
  bool elementwise = false, random = false, f32_or_f64 = false, checks_numbers = false;
  bool (*elementwise_if)(void const*) = nullptr;  // null: `elementwise`, whatever the attributes
  layouts takes = layouts::any;
  precision_rule precision;
  int standard_row = -1;                                // in the table of standard operators; -1: it is none
  kernel_function<host_backend> (*kernel)() = nullptr;  // on the host; null for standard operators (model/kernels.hpp)
  void (*construct)(void* at) = nullptr;                // default attributes
  void (*infer)(void const*, shape_context&) = nullptr;
  void (*relate)(void const*, dim_context&) = nullptr;
  void (*cut)(void*, cut_context const&) = nullptr;  // null: a part has the attributes of the whole
  void (*gradient)(void const*, gradient_context&) = nullptr;
  work (*cost)(void const*, work_context const&) = nullptr;
  bytes_t (*workspace)(void const*, work_context const&) = nullptr;
  operator_facets const& (*joined)() = nullptr;  // Op::joined: does this one's work and a neighbour's; null: none
  std::span<attribute_field const> attributes;

  bool is_elementwise(void const* op) const { return elementwise_if ? elementwise_if(op) : elementwise; }
};

}}  // namespace neap::v0
