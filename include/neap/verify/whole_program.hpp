// A program whose parts are whole again, for the verifier of plans in which ops that rules have made run in parts. Such an op
// is not in the original, so no dimension relations of an original op show what its parts are; and its parts are no values
// of the original, so no evaluation shows these to be right. With the whole program between, both can be shown:
//
//   original   c * (a + b)       whole   c * a + c * b       planned   (c * a)0 + (c * b)0, (c * a)1 + (c * b)1, joined
//
// that its rewritten values are the original's, and that the planned parts are its parts. Nothing is believed of it: both
// are judged like an external one. It is built from the first part of each op, without a look at where cuts were
// made; ops of the original are as they are there.
#pragma once

#include <neap/ir/editor.hpp>

#include <optional>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::plan_check {

/// Whether parts of ops run that the original has not.
bool runs_parts_of_others(op_graph const& original, op_graph const& g);

/// The whole program, and whether the next choice would give another one.
struct whole_program {
  std::optional<op_graph> program;  // nothing if it cannot be made of these parts
  bool has_more_choices = false;
};
/// Makes it. `order`: each op of g after those that make its inputs. `choice`: where parts leave open which of several axes
/// of a reshape was cut, for extents of 1 stand beside it, which of these to take, the last where there are fewer; above 2,
/// combinations of them.
whole_program whole_program_of(op_graph const& original, op_graph const& g, std::vector<op_id> const& order,
                               int choice);

}}}  // namespace neap::v0::detail::plan_check

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/verify/impl/whole_program.ipp>
#endif
