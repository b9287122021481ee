// zip(a, b, ...): one mutation of each in turn, skipping those that have run dry, until all have (MAGIS's round robin,
// not a zip of tuples).
// Laws: zip(a) yields what a yields; zip yields each leaf's mutations in that leaf's order, and as many as all leaves do.
#pragma once

#include <neap/mutate/mutator.hpp>

#include <array>
#include <tuple>

namespace neap { inline namespace v0 {

namespace detail {

template <class... M>
class zip_stream {
 public:
  using mutation = sum_of_mutations<mutation_of<stream_of<M>>...>;
  constexpr zip_stream(std::tuple<M...> const& leaves, candidate const& c) : leaves_(leaves), candidate_(&c) {}

  constexpr std::optional<mutation> next() {
    for (std::size_t tries = 0; tries < sizeof...(M); ++tries) {
      std::size_t const turn = at_;
      at_ = (at_ + 1) % sizeof...(M);
      if (dry_[turn]) continue;
      if (auto m = draw<0>(turn)) return m;
      dry_[turn] = true;
    }
    return std::nullopt;
  }

 private:
  template <std::size_t I>
  constexpr std::optional<mutation> draw(std::size_t turn) {
    if constexpr (I < sizeof...(M)) {
      if (turn != I) return draw<I + 1>(turn);
      auto& stream = std::get<I>(streams_);
      if (!stream) stream.emplace(std::get<I>(leaves_)(*candidate_));
      if (auto m = stream->next()) return widen<mutation>(*std::move(m));
    }
    return std::nullopt;
  }
  std::tuple<M...> leaves_;
  candidate const* candidate_;
  std::tuple<std::optional<stream_of<M>>...> streams_;
  std::array<bool, sizeof...(M)> dry_{};
  std::size_t at_ = 0;
};

}  // namespace detail

template <class... M>
struct zipped {
  std::tuple<M...> leaves;
  constexpr permissions allows() const { return detail::allowed_by_all(leaves); }
  constexpr auto operator()(candidate const& c) const {
    if constexpr ((detail::check_leaf<M>() && ...)) return detail::zip_stream<M...>(leaves, c);
    else return detail::no_stream{};
  }
};

template <class... M>
  requires(sizeof...(M) > 0)
constexpr zipped<M...> zip(M... m) {
  return {std::tuple<M...>(std::move(m)...)};
}

}}  // namespace neap::v0
