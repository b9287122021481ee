// m | truncate(n): the first n mutations of m; draws no more than n from it.
// Law: m | truncate(a) | truncate(b) yields what m | truncate(min(a, b)) yields.
#pragma once

#include <neap/mutate/mutator.hpp>

#include <cstddef>

namespace neap { inline namespace v0 {

namespace detail {
template <class S>
class truncate_stream {
 public:
  constexpr truncate_stream(S stream, std::size_t n) : stream_(std::move(stream)), left_(n) {}
  constexpr std::optional<mutation_of<S>> next() {
    if (left_ == 0) return std::nullopt;
    --left_;
    return stream_.next();
  }

 private:
  S stream_;
  std::size_t left_;
};
}  // namespace detail

template <class M>
struct truncated {
  M leaf;
  std::size_t count;
  constexpr permissions allows() const { return count > 0 ? allowed_by(leaf) : permissions{}; }
  constexpr auto operator()(candidate const& c) const {
    if constexpr (detail::check_leaf<M>()) return detail::truncate_stream<stream_of<M>>(leaf(c), count);
    else return detail::no_stream{};
  }
};

constexpr auto truncate(std::size_t n) {
  return pipe_closure{[n](auto m) { return truncated<decltype(m)>{std::move(m), n}; }};
}

}}  // namespace neap::v0
