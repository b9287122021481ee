// The bodies of <neap/model/sample_form.hpp>.
#pragma once

#include <neap/model/sample_form.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::detail {

NEAP_FUNC std::string sample_form::sentence(std::size_t k, std::string const& path, std::string const& text,
                                            bool given) const {
  auto const quoted = [](std::string const& name) { return '"' + name + '"'; };
  if (k >= parts_.size()) return detail::text_of({"the batch has a part ", quoted(path), ", the sample had none"});
  auto const& s = parts_[k];
  if (s.path != path)
    return detail::text_of({"the batch has a part ", quoted(path), " where the sample had ", quoted(s.path)});
  if (text.empty())
    return detail::text_of({"the batch's tensor ", (path.empty() ? std::string() : quoted(path) + " "),
                            (given ? "has a value, the sample's is empty" : "is empty, the sample's has a value")});
  return detail::text_of(
      {"the batch's ", quoted(path), " is ", text, ", the sample's was ", s.text,
       ", and the program was made with that: what changes from batch to batch is a tensor, or no part of the batch"});
}

}  // namespace neap::inline v0::detail
