// One path of a compiled function, captured: the graphs of its operators, and what a call leaves behind, all in terms
// of what it began with (numbers of argument_state, expressions of tracked scalars), so that it serves any arguments of
// the same signature.
//
// A path is a list of stages. A stage ends where the host needs what the operators so far have computed, or a result of
// a function of the program, before the path is known:
//
//   guards | graph, reads of elements, effects, external function | guards | graph, ... | guards | graph, effects, end
//
// Most paths have one stage, and nothing for the host to do.
#pragma once

#include <neap/capture/guard_trie.hpp>
#include <neap/capture/host_function.hpp>
#include <neap/capture/tracked_base.hpp>
#include <neap/ir/graph.hpp>
#include <neap/model/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Where a tensor that a call leaves behind comes from.
struct tensor_origin {
  enum class kind : std::uint8_t { none, argument, memory_of_argument, made };
  kind what = kind::none;
  std::uint32_t number = 0;  // of the argument's tensor, or in captured_end::made
  tensor_layout layout{};    // in that memory; of an argument's, its offset is from the argument's
  bool wants_gradient = false, though_frozen = false, of_gradient = false, of_compiled = false;

  friend bool operator==(tensor_origin const&, tensor_origin const&) = default;
};

/// The tensor of an origin. `argument(k)` is an argument's, `made` has the storages that the call made.
template <class Argument>
tensor tensor_of_origin(tensor_origin const& o, Argument const& argument,
                        std::vector<std::shared_ptr<tensor_storage>> const& made) {
  using kind = tensor_origin::kind;
  if (o.what == kind::none) return {};
  if (o.what == kind::argument) return argument(o.number);
  auto layout = o.layout;
  if (o.what == kind::memory_of_argument) layout.offset += argument(o.number).layout().offset;
  tensor t = make_leaf(o.what == kind::made ? made[o.number] : argument(o.number).storage(), layout, o.wants_gradient);
  t.node()->though_frozen = o.though_frozen, t.node()->of_gradient = o.of_gradient;
  t.node()->of_compiled = o.of_compiled;
  return t;
}
/// What a storage that a call makes is beside its elements: a weight or a buffer, perhaps, with its first values.
struct made_as {
  neap::role role = role::activation;
  bool is_frozen = false;
  initialiser first{};
  friend bool operator==(made_as const&, made_as const&) = default;
};
/// Memory for a dense tensor, whose elements are not written yet.
inline std::shared_ptr<tensor_storage> unwritten_storage(tensor_type const& type, made_as const& as = {}) {
  auto made = std::make_shared<tensor_storage>(type, as.first, as.role);
  made->set_frozen(as.is_frozen);
  (void)made->data_to_overwrite();
  return made;
}
/// A dense tensor in such memory.
inline tensor unwritten_tensor(tensor_type const& type) {
  return make_leaf(unwritten_storage(type), tensor_layout::dense(type));
}
/// Where the memory of a source is that is an argument's.
template <class Source>
std::byte* memory_of(Source const& s, tensor const& argument) {
  auto* const data = argument.storage()->data();
  return s.is_part ? data + (argument.layout().offset - s.within) * size_of(argument.element()) : data;
}
/// Whether operators that update `updated` among these sources would read what they write as another source, too.
/// `storage(k)` is an argument's.
template <class Sources, class Storage>
bool is_shared_element(Sources const& sources, std::vector<std::uint32_t> const& updated, Storage const& storage) {
  using kind = std::remove_cvref_t<decltype(sources.front().what)>;
  for (auto const u : updated)
    for (auto const& s : sources)
      if (s.what == kind::argument && s.number != u && &storage(s.number) == &storage(u)) return true;
  return false;
}
inline constexpr char const* shared_element =
    "an element of a tracked container has the memory of another tensor of the call";
/// Writes the bytes of a plain value or a text of an argument.
template <class Place>
void write_plain(Place const& to, std::string const& bytes) {
  if (to.is_text) *static_cast<std::string*>(to.value) = bytes;
  else std::memcpy(to.value, bytes.data(), bytes.size());
}

/// Storages that a call makes are numbered in the order of the program; a number stands for one.
struct captured_stage {
  struct source {
    /// argument: an argument's tensor. scalar: an expression. constant: data of the program. storage: made by an
    /// earlier stage. external: a tensor of an external function.
    enum class kind : std::uint8_t { argument, scalar, constant, storage, external };
    value_id value;
    kind what;
    std::uint32_t number;
    // Of an argument that sees a part of its storage: that is the source.
    bool is_part = false;
    std::int64_t within = 0;  // where the argument is in that part
  };
  struct kept_storage {
    std::uint32_t storage;
    value_id value;
    tensor_type type;
  };
  struct element_read {
    std::uint32_t storage;
    std::int64_t element;  // in the storage's order
    std::int64_t bytes;    // of one
    std::uint32_t scalar;  // whose value it is from then on
    friend bool operator==(element_read const&, element_read const&) = default;
  };
  struct host_call {
    std::shared_ptr<host_function const> function;
    std::vector<std::uint32_t> storages;  // tensors
    std::vector<tensor_type> types;       // theirs
    std::vector<std::uint32_t> scalars;   // expressions
    std::uint32_t result = 0;             // of an external function: the scalar that is its result, or its type
    bool gives_tensor = false;
    std::uint32_t storage = 0;  // of that tensor
  };

  /// A tensor of a tracked container, which operators read: numbered after the arguments' tensors.
  struct element {
    std::uint32_t container, place;  // expressions
    friend bool operator==(element const&, element const&) = default;
  };

  std::vector<guard> path;  // evaluated after the stage before
  bool computes = false;    // has a graph; else its operators are in that of a later stage
  op_graph program;
  std::size_t op_count = 0;  // as recorded; those after them copy what is kept
  std::vector<source> sources;
  std::vector<element> elements;  // that the program has read first in this stage
  std::vector<tensor> constants;
  std::vector<kept_storage> kept;            // of what it made: for later stages, and for the end
  std::vector<std::uint32_t> updated;        // tensors of arguments whose memory operators write
  std::vector<std::source_location> places;  // of ops
  bool may_throw = false;                    // an operator checks numbers that it reads
  std::vector<element_read> reads;
  std::vector<host_call> effects;
  std::vector<host_call> external;  // none or one

  /// Whether the host has something to do at its end.
  bool needs_host() const { return !reads.empty() || !effects.empty() || !external.empty(); }
};

/// What a call leaves behind at the end of its path.
struct captured_end {
  struct tensor_write {
    std::uint32_t to;
    tensor_origin from;
    friend bool operator==(tensor_write const&, tensor_write const&) = default;
  };
  struct scalar_write {
    std::uint32_t scalar, expression;
    friend bool operator==(scalar_write const&, scalar_write const&) = default;
  };
  struct plain_write {
    std::uint32_t to;
    std::string bytes;
    friend bool operator==(plain_write const&, plain_write const&) = default;
  };
  struct container_write {
    struct item {
      std::uint64_t place = 0, from = 0;
      bool is_kept = false, is_erased = false;
      tensor_origin made{};
      std::uint32_t expression = 0;
      friend bool operator==(item const&, item const&) = default;
    };
    std::uint32_t scalar = 0;
    bool is_whole = false;
    std::size_t from_front = 0, from_back = 0, replaced = 0;
    std::vector<item> items;  // as container_change has them
    friend bool operator==(container_write const&, container_write const&) = default;
  };
  struct made_storage {
    std::uint32_t storage;
    tensor_type type;
    made_as as{};
    friend bool operator==(made_storage const&, made_storage const&) = default;
  };
  /// Memory of an exception's tensor, which the call fills.
  struct thrown_storage {
    std::shared_ptr<tensor_storage> to;
    std::uint32_t made;
  };

  std::vector<tensor_write> tensors;
  std::vector<scalar_write> scalars;
  std::vector<plain_write> plains;
  std::vector<container_write> containers;
  std::vector<tensor_origin> result;
  std::vector<std::uint32_t> result_scalars;    // expressions
  std::string result_bytes;                     // plain values and structure
  std::vector<made_storage> made;               // whole storages
  std::exception_ptr thrown;                    // on a device: what the call ends by in place of a result
  std::vector<thrown_storage> thrown_storages;  // by that

  /// Whether arguments change, beside what operators write.
  bool has_effects() const { return !tensors.empty() || !scalars.empty() || !plains.empty() || !containers.empty(); }
  friend bool operator==(captured_end const& a, captured_end const& b) {
    return a.tensors == b.tensors && a.scalars == b.scalars && a.plains == b.plains && a.containers == b.containers &&
           a.result == b.result && a.result_scalars == b.result_scalars && a.result_bytes == b.result_bytes &&
           a.made == b.made && !a.thrown == !b.thrown;
  }
};

/// What the host has read of tensors in a call, and what its functions returned: the tracked scalars after those of the
/// beginning, in their order.
using known_reads = std::vector<std::uint64_t>;

struct captured_path {
  std::vector<captured_stage> stages;
  captured_end end;  // unless the path is the beginning of one
};

/// Gives what an exception carries its data; `made` has the storages that the call made.
inline void fill_thrown(captured_end const& c, std::vector<std::shared_ptr<tensor_storage>> const& made) {
  for (auto const& x : c.thrown_storages)
    if (auto const bytes = static_cast<std::size_t>(x.to->bytes()); bytes > 0)
      std::memcpy(x.to->data_to_overwrite(), made[x.made]->data(), bytes);
}

/// What a path does to a container. `tensor_of(origin)` and `value_of(expression)` give what the call has made.
template <class TensorOf, class ValueOf>
container_change change_of(captured_end::container_write const& w, TensorOf const& tensor_of, ValueOf const& value_of) {
  container_change change;
  change.is_whole = w.is_whole, change.replaced = w.replaced;
  change.from_front = w.from_front, change.from_back = w.from_back;
  for (auto const& x : w.items) {
    auto& to = change.elements.emplace_back();
    to.place = x.place, to.is_kept = x.is_kept, to.is_erased = x.is_erased, to.from = x.from;
    if (!x.is_kept && !x.is_erased) to.made = tensor_of(x.made), to.bits = value_of(x.expression);
  }
  return change;
}

}}}  // namespace neap::v0::detail
