// m | later: the mutations of m, but only of candidates that a search has come back to. For moves that take long to find:
// a search that has looked at all quick ones, and has time left, takes them.
// Laws: later twice is later once; of candidates that were looked at before, it changes nothing.
#pragma once

#include <neap/mutate/mutator.hpp>

#include <optional>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {
template <class S>
class later_stream {
 public:
  constexpr explicit later_stream(std::optional<S> stream) : stream_(std::move(stream)) {}
  constexpr std::optional<mutation_of<S>> next() { return stream_ ? stream_->next() : std::nullopt; }

 private:
  std::optional<S> stream_;
};
}  // namespace detail

template <class M>
struct looked_at_later {
  M leaf;
  constexpr permissions allows() const { return allowed_by(leaf); }
  constexpr auto operator()(candidate const& c) const {
    if constexpr (detail::check_leaf<M>()) {
      using stream = stream_of<M>;
      return detail::later_stream<stream>(c.visits > 0 ? std::optional<stream>(leaf(c)) : std::nullopt);
    } else {
      return detail::no_stream{};
    }
  }
};

inline constexpr auto later = pipe_closure{[](auto m) { return looked_at_later<decltype(m)>{std::move(m)}; }};

}}  // namespace neap::v0
