// The storages of a recorded call, numbered in the order of the program: their storages. Tensors are known by their
// storages; each has a value for its present content in the present graph, and views of it. Operators are written to a
// log, from which finish() builds the graphs.
//
// A storage that is no argument's, was not computed in the call and not made from numbers in it is refused with the
// place of its use.
#pragma once

#include <neap/capture/operator_log.hpp>
#include <neap/capture/recording_state.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>

#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class storage_table {
 public:
  static constexpr std::uint32_t none = number_map::none;
  enum class origin : std::uint8_t { argument, number, computed, external };
  /// Values are numbers of the log; those of one storage are a list, empty while no operator of the present graph has
  /// read it.
  struct entry {
    origin what;
    std::uint32_t number;  // of an argument's tensor, of an external function's
    std::uint32_t layout;  // that of the dense tensor it was made for, or another one of the same type
    std::uint32_t first_value = none, last_value = none;
    std::uint32_t numbers = none;  // one made from numbers of the program: its place among them
    std::uint32_t made = none;
    std::uint32_t home = none;                          // the graph that has made it, once that has ended
    std::uint32_t first_home = none, last_home = none;  // its values there
    std::uint32_t updates = 0;                          // in the present graph
  };
  /// What a recording needs in proportion to its operators: the next one of the thread takes it over.
  struct working_memory {
    operator_log log;
    plain_vector<entry> entries;
    plain_vector<std::uint32_t> next;  // of each value, the next one of its storage
    plain_vector<std::uint32_t> inputs;
    plain_vector<output_rule> rules;
  };

  explicit storage_table(recording_state& of);
  storage_table(storage_table const&) = delete;
  storage_table& operator=(storage_table const&) = delete;
  ~storage_table();

  std::uint32_t size() const { return static_cast<std::uint32_t>(memory_->entries.size()); }
  entry& operator[](std::uint32_t id) { return memory_->entries[id]; }
  entry const& operator[](std::uint32_t id) const { return memory_->entries[id]; }
  tensor_type const& type_of(std::uint32_t id) const { return log().layout((*this)[id].layout).type; }
  std::uint32_t find(tensor_storage const& s) const;
  bool is_argument(tensor_storage const& s) const { return arguments_.find(&s) != none; }

  /// An operator of the program.
  void ran(operator_view op, std::span<tensor const> in, std::span<tensor const> out,
           std::span<output_rule const> outputs, std::source_location where);
  /// A storage that the call has made from numbers of the program; by a function of the host; as a tensor of one
  /// scalar, an expression; as a copy of another one.
  void know_numbers(std::shared_ptr<tensor_storage> const& s);
  void know_external(std::shared_ptr<tensor_storage> const& s) {
    know(s, origin::external, none).number = externals_++;
  }
  void know_scalar(std::shared_ptr<tensor_storage> const& s, std::uint32_t expression);
  void know_copy(std::shared_ptr<tensor_storage> const& s, tensor_storage const& from);
  /// Whether it has numbers of the program. `is_seen`: the program has the address of its elements from now on.
  bool has_numbers(tensor_storage const& s, bool is_seen);
  /// A copy of a tensor, as it is now, for the host.
  std::uint32_t copy_for_host(tensor const& t, std::source_location at);

  /// An argument's tensor, or an element of a tracked container, numbered after them.
  tensor const& argument(std::uint32_t number) const;
  void add_element(tensor const& t);
  /// Its number; none: it is another one.
  std::uint32_t argument_of(tensor const& t);

  bool may_throw() const { return graphs_.back().may_throw; }
  void begin_graph();
  void end_graph();
  /// The storage is left behind: its number among those.
  std::uint32_t kept(std::uint32_t id);
  std::vector<captured_end::made_storage>& made() { return made_; }
  /// Makes the graphs of stages, which keep what is left behind, what later stages read, and these storages.
  void finish(std::vector<captured_stage>& stages, std::vector<std::uint32_t> const& also_kept);

  /// Without data: storages that the call has made and that live on where all else has let them go.
  std::vector<std::pair<std::shared_ptr<tensor_storage>, std::uint32_t>> held_outside() const;
  /// Storages of arguments are as at the beginning, but for their elements.
  void take_back() const;

 private:
  /// What belongs to a graph beside its operators.
  struct graph_record {
    std::vector<captured_stage::source> sources;  // `value`: of its graph
    std::vector<tensor> constants;
    bool may_throw = false;
  };
  /// Elements that the program has set in a tensor.
  struct numbers_record {
    std::shared_ptr<tensor_storage> storage;
    tensor copy;   // at their first use, or when the program had their address after it
    bool is_seen;  // the program has had the address of its elements
    bool is_unchanged() const;
  };

  operator_log& log() { return memory_->log; }
  operator_log const& log() const { return memory_->log; }
  std::uint32_t id_of(tensor_storage const& s, std::source_location at) const;
  entry& add_entry(origin what, std::uint32_t number, tensor_type const& type);
  entry& add_argument(std::shared_ptr<tensor_storage> const& s, std::uint32_t number, tensor_type const& type);
  entry& know(std::shared_ptr<tensor_storage> const& s, origin what, std::uint32_t value);
  void finish(captured_stage& s, std::uint32_t section, std::vector<std::uint32_t> const& kept);

  /// The value that is a view of a storage; made where there is none.
  std::uint32_t value(tensor_storage const& s, tensor_layout l, std::source_location at);
  /// The content of a storage that no operator of the present graph has read so far.
  void begin(entry& e);
  void begin_numbers(entry& e, tensor_type const& type);
  /// v is all that is known of the present content.
  void set_value(entry& e, std::uint32_t v);
  void add_value(entry& e, std::uint32_t v);
  std::uint32_t& next_of(std::uint32_t v);
  std::uint32_t add_source(role r, tensor_type const& type, char const* name, captured_stage::source::kind what,
                           std::uint32_t number);
  /// A dense copy of a value.
  std::uint32_t copy_of(std::uint32_t value, tensor_type const& type, std::source_location at);
  /// The part of an argument's storage that is a graph's; null: all of it.
  argument_state::window const* window_of(entry const& e) const;

  recording_state& state_;
  std::unique_ptr<working_memory> memory_;
  number_map arguments_;  // storages of arguments to entries; one that the call has made knows its own
  std::vector<graph_record> graphs_;
  std::vector<numbers_record> numbers_;
  std::uint32_t externals_ = 0;
  std::vector<tensor> elements_;
  number_map by_node_;
  std::uint32_t found_ = 0;  // arguments' tensors and elements in by_node_
  number_map needed_;        // storages, as a set
  std::vector<captured_end::made_storage> made_;
  std::vector<std::weak_ptr<tensor_storage>> storages_made_;  // without data
  std::vector<std::pair<std::shared_ptr<tensor_storage>, tensor_storage::writing_state>> storages_begun_;
};

/// A copy of the data of a storage as they are now, in a tensor that is no part of the recording.
tensor copy_of_data(tensor_storage& s);

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/storage_table.ipp>
#endif
