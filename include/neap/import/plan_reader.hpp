// Reads a plan file (report/plan_writer.hpp says what is in it). Op ids of the plan that comes back are the file's node
// numbers, so it equals what was written up to numbering.
//
// An engine in another language takes the tables as they stand, so they must agree with the graph that the nodes make:
// tensors with storages, flags with aliases, kinds with roles and streams.
//
// Files of version 1 are read too. They say of an op's details only which op of the original it stands for: complete()
// takes them from there.
#pragma once

#include <neap/import/json.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/pin_rules.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/plan/durations.hpp>
#include <neap/plan/plan.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace neap { inline namespace v0 { namespace io {

/// A plan, how its graph file was read, and the limits of the search; negative: none.
struct plan_file {
  plan planned;
  int version = 4;
  std::string name;
  bool optimizer = false;
  std::string magis;
  bool losses_apart = false, gradients_used_up = false;
  bytes_t memory_limit_bytes = -1;
  seconds_t latency_limit_seconds = -1;
  std::optional<duration_source> durations;  // nothing: the file does not say
  std::vector<std::string> donated;          // patterns of inputs that were donated beside those of the graph's file
  pin_rules pins;                            // that the graph was given beside those in its file
};

namespace detail {

class plan_reader {
 public:
  plan_reader(json_place root) : root_(std::move(root)), edit_(operator_table(standard_operators::facets)) {}

  plan_file read();

 private:
  static std::uint32_t u32(json_place const& j, std::size_t below) {
    return static_cast<std::uint32_t>(j.integer(0, static_cast<std::int64_t>(below) - 1));
  }
  static duration_source durations_in(json_place const& j);
  /// A member in microseconds, or the one beside it that says the seconds to the bit.
  static seconds_t seconds(json_place const& j, std::string key);
  static digest fingerprint(json_place const& j);

  struct tensor {
    std::size_t storage;
    tensor_layout layout;
  };

  void read_graph();

  /// Tensors that no node makes.
  void read_sources(json_place const& storages, json_place const& nodes);

  void read_node(json_place const& j);

  void add_unknown(json_place const& j, std::string const& name, std::vector<value_id> const& in);
  static void read_alias(json_place const& a, std::size_t inputs, std::size_t outputs, output_rule& r);

  void read_outputs(json_place const& outputs);

  /// The role of a kept value that an op makes, where its kind does not say it.
  role role_of(json_place const& j, std::string const& kind, value_id v) const;

  /// The axes along which a part's inputs and outputs are cut, by each cut of `part`; kept as the extents of what was cut.
  void read_axes(json_place const& j, op_id o);

  /// What the tables say of tensors, storages and views is what the nodes make of them.
  void check_tables() const;

  static op::opaque opaque_of(json_place const& j);
  static element_program program_of(json_place const& j);
  void add_known(json_place const& j, std::string const& name, std::vector<value_id> const& in);

  void read_steps();
  void read_buffers();

  json_place root_;
  graph_editor edit_;
  std::vector<tensor> rows_;
  std::vector<bytes_t> bytes_;  // of storages
  std::vector<value_id> value_;
  plan_file out_;
};

/// The graph without its ops' details: what the fingerprint of a version 1 file is of.
graph without_details(graph const& g);

}  // namespace detail

/// What a file of version 1 leaves open is taken from the graph that it was made for: each op's details are those of its
/// origin, which is all that a reader of such a file had to go by. Does nothing to a plan of a later version, or of another
/// graph (planned.original has it).
void complete(plan_file& p, graph const& original);

/// A plan from the text of a file. Fails with one line where it is damaged (checksum), cut off, or not as the format says;
/// whether the plan is right is the verifier's question. `path` is what the file is called there.
result<plan_file> parse_plan(std::string const& text, std::string const& path);

/// Reads a plan file, gzip or not.
result<plan_file> read_plan(std::string const& path);

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/plan_reader.ipp>
#endif
