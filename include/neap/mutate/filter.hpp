// m | filter(keep): the mutations of m for which keep(mutation, candidate) holds.
// Laws: filter(always true) yields the same mutations; two filters in a row keep what both keep.
// Seeds of a search know nothing of the predicate: they recompute and swap what another leaf allows, or nothing.
#pragma once

#include <neap/mutate/mutator.hpp>

namespace neap { inline namespace v0 {

namespace detail {
template <class S, class Keep>
class filter_stream {
 public:
  constexpr filter_stream(S stream, Keep keep, candidate const& c)
      : stream_(std::move(stream)),
        keep_(std::move(keep)),
        candidate_(&c) {}
  constexpr std::optional<mutation_of<S>> next() {
    while (auto m = stream_.next())
      if (keep_(*m, *candidate_)) return m;
    return std::nullopt;
  }

 private:
  S stream_;
  Keep keep_;
  candidate const* candidate_;
};
}  // namespace detail

template <class M, class Keep>
struct filtered {
  M leaf;
  Keep keep;
  constexpr permissions allows() const { return {.filtered = true}; }
  constexpr auto operator()(candidate const& c) const {
    if constexpr (detail::check_leaf<M>()) {
      using mutation = mutation_of<stream_of<M>>;
      constexpr bool asks = std::is_invocable_r_v<bool, Keep&, mutation&, candidate const&>;
      static_assert(asks,
                    "neap: filter takes a predicate  bool(Mutation const&, neap::candidate const&)  of what "
                    "the mutator before it yields");
      if constexpr (asks) return detail::filter_stream<stream_of<M>, Keep>(leaf(c), keep, c);
      else return detail::no_stream{};
    } else {
      return detail::no_stream{};
    }
  }
};

template <class Keep>
constexpr auto filter(Keep keep) {
  return pipe_closure{[keep](auto m) { return filtered<decltype(m), Keep>{std::move(m), keep}; }};
}

}}  // namespace neap::v0
