// The bodies of <neap/model/sample_form.hpp>.
#pragma once

#include <neap/model/sample_form.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC sample_form::sample_form(sample_ref sample) : type_(sample.type()) {
  sample.each_part([&](std::string const& path, plain_bits b, void const* x) {
    parts_.push_back({path, b.bits, b.text ? b.text(x) : std::string()});
  });
}

NEAP_FUNC std::string sample_form::difference(sample_ref batch) const {
  std::string what;
  if (type_ != batch.type()) return what;
  std::size_t k = 0;
  batch.each_part([&](std::string const& path, plain_bits b, void const* x) {
    if (what.empty() && (k >= parts_.size() || parts_[k].bits != b.bits || parts_[k].path != path))
      what = sentence(k, path, b.text ? b.text(x) : std::string(), b.bits != 0);
    ++k;
  });
  if (what.empty() && k < parts_.size()) what = "the batch has no part \"" + parts_[k].path + "\", the sample had one";
  return what;
}

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

}}}  // namespace neap::v0::detail
