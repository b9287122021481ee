// m | sample(n, seed): n of m's mutations, each subset equally likely, in the order m yields them. All of m is drawn at
// the first call (algorithm R, Vitter 1985: n places of memory, not all of m).
// Laws: the same seed gives the same sample; a sample of at least as many as there are is all of them.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/core/sort.hpp>
#include <neap/mutate/mutator.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {
template <class S>
class sample_stream {
 public:
  sample_stream(S stream, std::size_t n, std::uint64_t seed) : stream_(std::move(stream)), count_(n), random_(seed) {}
  std::optional<mutation_of<S>> next() {
    if (!drawn_) draw();
    return at_ < kept_.size() ? std::optional(kept_[at_++].second) : std::nullopt;
  }

 private:
  void draw() {
    drawn_ = true;
    if (count_ == 0) return;
    std::size_t seen = 0;
    while (auto m = stream_.next()) {
      if (kept_.size() < count_) {
        kept_.emplace_back(seen, *std::move(m));
      } else if (auto const k = random_.below(static_cast<std::uint32_t>(seen + 1)); k < count_) {
        kept_[k] = {seen, *std::move(m)};
      }
      ++seen;
    }
    detail::sort_list(kept_, [](auto const& a, auto const& b) { return a.first < b.first; });
  }
  S stream_;
  std::size_t count_, at_ = 0;
  random_stream random_;
  bool drawn_ = false;
  std::vector<std::pair<std::size_t, mutation_of<S>>> kept_;
};
}  // namespace detail

template <class M>
struct sampled {
  M leaf;
  std::size_t count;
  std::uint64_t seed;
  constexpr permissions allows() const { return {.filtered = allowed_by(leaf).filtered}; }
  auto operator()(candidate const& c) const {
    if constexpr (detail::check_leaf<M>()) return detail::sample_stream<stream_of<M>>(leaf(c), count, seed);
    else return detail::no_stream{};
  }
};

constexpr auto sample(std::size_t n, std::uint64_t seed) {
  return pipe_closure{[n, seed](auto m) { return sampled<decltype(m)>{std::move(m), n, seed}; }};
}

}}  // namespace neap::v0
