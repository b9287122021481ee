// An imported operator: types, aliasing and cost, no kernel. Its outputs are given when it is added
// (graph_editor::add_opaque), so it has no shape rule to speak of. Where its file's reader can say which operator of neap's
// computes the same (graph_editor::set_meaning), rewrite rules and the verifier look at that one.
#pragma once

#include <neap/ir/operator.hpp>

namespace neap { inline namespace v0 { namespace op {

struct opaque {
  static constexpr std::string_view name = "opaque";

  std::uint32_t target = 0;   // what it is called: number of a text of the graph
  std::uint32_t details = 0;  // its other attributes as one text, in the same way: equal ones are equal texts; 0: none
  bool pointwise = false;     // may overwrite a dying input of equal size and layout
  bool rng = false;           // draws random numbers: a copy must draw the same ones
  bool pure = true;           // may be computed again
  bool placeholder = false;   // stands for a tensor that is given at its place in the order; never computed again
  std::uint32_t links = 0;    // its dimension relations, which a file may know, as a text (ir/dim_links.hpp); 0: none
  std::uint32_t known_kind = 0,
                known = 0;  // what it means: kind of operator + 1, place of its attributes; 0: not known
  std::int64_t key = 0;     // of the random draws
  double flops = 0, read = 0, written = 0;    // operations; bytes
  double seconds = -1;                        // the time the file gives; negative: not given
  std::uint64_t text_low = 0, text_high = 0;  // digest of target and details; the editor's
  double whole_flops = 0, whole_bytes = 0;    // of a part: what the op that was cut has to do; `seconds` are that op's

  static constexpr auto attributes() {
    return std::array{field<&opaque::pointwise>("pointwise"),
                      field<&opaque::rng>("rng"),
                      field<&opaque::pure>("pure"),
                      field<&opaque::placeholder>("placeholder"),
                      field<&opaque::key>("key"),
                      field<&opaque::flops>("flops"),
                      field<&opaque::read>("read"),
                      field<&opaque::written>("written"),
                      field<&opaque::seconds>("seconds"),
                      field<&opaque::whole_flops>("whole_flops"),
                      field<&opaque::whole_bytes>("whole_bytes")};
  }
  /// A part of another op (op_graph::part): what came with that one has to be shared out.
  bool is_part() const { return whole_flops > 0 || whole_bytes > 0; }
  void infer(shape_context& c) const { c.require(false, "an opaque operator's outputs must be given"); }
  void relate(dim_context&) const {}
  work cost(work_context const&) const { return {flops, read, written}; }
};

}}}  // namespace neap::v0::op
