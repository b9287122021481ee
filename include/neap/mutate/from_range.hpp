// from_range(f): any function from a candidate to an input range of mutations, as a mutator: a vector, a std view, a
// range-v3 view, a coroutine's generator. The range is walked lazily, one element a draw.
#pragma once

#include <neap/mutate/mutator.hpp>

namespace neap { inline namespace v0 {

namespace detail {
template <class R>
class range_stream {
 public:
  explicit range_stream(R range) : range_(std::move(range)) {}
  range_stream(range_stream&& o) noexcept(std::is_nothrow_move_constructible_v<R>)
      : range_(std::move(o.range_)) {}  // only before the first draw

  auto next() -> std::optional<std::remove_cvref_t<decltype(*std::declval<R&>().begin())>> {
    if (!at_) at_.emplace(range_.begin());
    else if (!(*at_ == range_.end())) ++*at_;
    if (*at_ == range_.end()) return std::nullopt;
    return **at_;
  }

 private:
  R range_;
  std::optional<decltype(std::declval<R&>().begin())> at_;
};
template <class F>
concept makes_range = requires(F const& make, candidate const& c, std::remove_cvref_t<decltype(make(c))>& range) {
  *range.begin();
  { range.begin() == range.end() } -> std::convertible_to<bool>;
};
}  // namespace detail

template <class F>
struct ranged {
  F make;
  auto operator()(candidate const& c) const {
    static_assert(detail::makes_range<F>,
                  "neap: from_range takes a function of a  neap::candidate const&  that gives a range of mutations, "
                  "with begin() and end()");
    if constexpr (detail::makes_range<F>) return detail::range_stream<std::remove_cvref_t<decltype(make(c))>>(make(c));
    else return detail::no_stream{};
  }
};

template <class F>
constexpr ranged<F> from_range(F make) {
  return {std::move(make)};
}

}}  // namespace neap::v0
