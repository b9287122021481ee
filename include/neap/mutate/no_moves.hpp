// The pipeline that changes nothing: a search with it judges what it starts from, and that is all.
#pragma once

#include <neap/mutate/mutator.hpp>

namespace neap { inline namespace v0 {

/// Law: chain(no_moves{}, a) yields what a yields.
struct no_moves {
  detail::no_stream operator()(candidate const&) const { return {}; }
};

}}  // namespace neap::v0
