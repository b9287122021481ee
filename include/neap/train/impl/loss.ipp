// The bodies of <neap/train/loss.hpp>.
#pragma once

#include <neap/train/loss.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC void refuse_parts(error const& e, part_kinds const& inputs, part_kinds const& target) {
  std::string what = e.what();
  bool const of_types = what.find("element types differ") != what.npos || what.find("needs f") != what.npos ||
                        what.find("floating") != what.npos || what.find("i64") != what.npos;
  bool const swapped = (inputs.whole && !inputs.floats && target.floats && !target.whole) ||
                       (inputs.floats && !inputs.whole && target.whole && !target.floats);
  if (!swapped || !of_types) throw;
  if (auto const behind = what.find(": are whole numbers"); behind != what.npos) what.resize(behind);
  if (auto const behind = what.find(": cast"); behind != what.npos) what.resize(behind);
  throw_error(context_access::place({}),
              {"the parts of the batch seem to be swapped: the model was given ", inputs.first, ", the target is ",
               target.first, ", and the target comes last (", what, ")"});
}

}  // namespace detail
}  // namespace neap::inline v0
