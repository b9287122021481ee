// chain(a, b, ...): all of a's mutations, then all of b's... A stream is made when the one before it has run dry.
// Laws: chain is associative; chain(a) yields what a yields; chain() cannot be written.
#pragma once

#include <neap/mutate/mutator.hpp>

#include <tuple>

namespace neap { inline namespace v0 {

namespace detail {

template <class... M>
class chain_stream {
 public:
  using mutation = sum_of_mutations<mutation_of<stream_of<M>>...>;
  constexpr chain_stream(std::tuple<M...> const& leaves, candidate const& c) : leaves_(leaves), candidate_(&c) {}

  constexpr std::optional<mutation> next() { return next_from<0>(); }

 private:
  template <std::size_t I>
  constexpr std::optional<mutation> next_from() {
    if constexpr (I < sizeof...(M)) {
      if (at_ == I) {
        auto& stream = std::get<I>(streams_);
        if (!stream) stream.emplace(std::get<I>(leaves_)(*candidate_));
        if (auto m = stream->next()) return widen<mutation>(*std::move(m));
        ++at_;
      }
      return next_from<I + 1>();
    } else {
      return std::nullopt;
    }
  }
  std::tuple<M...> leaves_;
  candidate const* candidate_;
  std::tuple<std::optional<stream_of<M>>...> streams_;
  std::size_t at_ = 0;
};

}  // namespace detail

template <class... M>
struct chained {
  std::tuple<M...> leaves;
  constexpr permissions allows() const { return detail::allowed_by_all(leaves); }
  constexpr auto operator()(candidate const& c) const {
    if constexpr ((detail::check_leaf<M>() && ...)) return detail::chain_stream<M...>(leaves, c);
    else return detail::no_stream{};
  }
};

template <class... M>
  requires(sizeof...(M) > 0)
constexpr chained<M...> chain(M... m) {
  return {std::tuple<M...>(std::move(m)...)};
}

}}  // namespace neap::v0
