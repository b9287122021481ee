// Mutations, streams and mutators.
//
// A mutation is a small value that describes one edit of a candidate (graph, order, simulation). A stream yields
// mutations one at a time: next() gives an optional, empty when the stream is dry. A mutator is a function object from a
// candidate to a lazy stream: drawing one mutation costs what that one costs, and nothing is built before it is drawn.
//
//   constexpr auto moves = chain(rematerialize{} | truncate(64), zip(rematerialize{}, swap{}) | truncate(256));
//   auto stream = moves(candidate);
//   while (auto m = stream.next()) ...
//
// Combinators (chain, zip, truncate, sample, filter) are compile-time: the mutation types of a pipeline are summed
// without duplicates in a std::variant, without heap. MAGIS (ASPLOS'24) has the same combinators as Python generators.
#pragma once

#include <neap/core/error.hpp>
#include <neap/mutate/build_edit.hpp>
#include <neap/mutate/replay_facts.hpp>
#include <neap/plan/candidate.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace neap { inline namespace v0 {

/// A mutation that writes what it does as data (plan/graph_edit.hpp); edit() writes the whole edit, whatever was there
/// before, or gives false where it is impossible. `facts` are the candidate's. A search judges such an edit without building
/// it, unless the mutation has  static constexpr bool judged_when_built = true: simulate/outlined_facts.hpp is not exact
/// where an op that reads another value makes a view of it, for the view's readers keep their rows.
template <class M>
concept writes_edit = requires(M const& m, candidate const& c, replay_facts const& facts, graph_edit& out) {
  { m.edit(c, facts, out) } -> std::same_as<bool>;
};

/// A mutation: it writes its edit as data, or builds the edited graph in  apply().
/// Promise: equal mutations of equal candidates give equal graphs and orders; the edited graph computes the same kept
/// values and updates. apply() gives nothing where the edit turns out to be impossible, and never throws for that.
template <class M>
concept mutation = std::regular<M> && requires(M const& m, candidate const& c) {
  { m.describe(c) } -> std::convertible_to<std::string>;
} && (writes_edit<M> || requires(M const& m, candidate const& c) {
                     { m.apply(c) } -> std::same_as<std::optional<edited>>;
                   });

/// A stream of mutations.
/// Promise: once next() was empty it stays empty; the candidate outlives the stream.
template <class S>
concept mutation_stream = requires(S& s) {
  { s.next().has_value() } -> std::convertible_to<bool>;
  *s.next();
};

template <mutation_stream S>
using mutation_of = typename std::remove_cvref_t<decltype(std::declval<S&>().next())>::value_type;

namespace detail {
/// A mutation, or a variant of mutations.
template <class M>
constexpr bool is_mutation = mutation<M>;
template <class... M>
constexpr bool is_mutation<std::variant<M...>> = (mutation<M> && ...);

template <class M>
concept gives_stream = std::copy_constructible<std::decay_t<M>> && requires(M const& m, candidate const& c) {
  { m(c) } -> mutation_stream;
};
template <class M>
concept yields_mutations =
    requires(M const& m, candidate const& c) { requires is_mutation<mutation_of<decltype(m(c))>>; };
}  // namespace detail

/// A mutator: from a candidate to a stream of mutations.
/// Promise: equal candidates give equal streams; making the stream is cheap.
template <class M>
concept mutator = detail::gives_stream<M> && detail::yields_mutations<M>;

/// The stream a mutator gives.
template <class M>
using stream_of = decltype(std::declval<M const&>()(std::declval<candidate const&>()));

namespace detail {

// The sum of mutation types: one type stays itself, several become a variant without duplicates, variants are flattened.
template <class... M>
struct bag {};
template <class List, class M>
struct bag_add;
template <class... Have, class M>
struct bag_add<bag<Have...>, M> {
  using type = std::conditional_t<(std::is_same_v<Have, M> || ...), bag<Have...>, bag<Have..., M>>;
};
template <class... Have, class... M>
struct bag_add<bag<Have...>, std::variant<M...>> {
  template <class L, class... R>
  struct fold {
    using type = L;
  };
  template <class L, class F, class... R>
  struct fold<L, F, R...> : fold<typename bag_add<L, F>::type, R...> {};
  using type = typename fold<bag<Have...>, M...>::type;
};
template <class List, class... M>
struct bag_all {
  using type = List;
};
template <class List, class M, class... Rest>
struct bag_all<List, M, Rest...> : bag_all<typename bag_add<List, M>::type, Rest...> {};
template <class List>
struct bag_sum;
template <class M>
struct bag_sum<bag<M>> {
  using type = M;
};
template <class... M>
struct bag_sum<bag<M...>> {
  using type = std::variant<M...>;
};

template <class... M>
using sum_of_mutations = typename bag_sum<typename bag_all<bag<>, M...>::type>::type;

/// A mutation of one leaf as the pipeline's sum type.
template <class Sum, class M>
constexpr Sum widen(M&& m) {
  using type = std::remove_cvref_t<M>;
  if constexpr (std::is_same_v<type, Sum> || !requires { std::variant_size<type>::value; }) {
    return Sum(std::forward<M>(m));
  } else {
    return std::visit([](auto&& x) { return Sum(std::forward<decltype(x)>(x)); }, std::forward<M>(m));
  }
}

/// Checked for every leaf of a combinator, so that the error names a bad one; whether it is a mutator.
template <class M>
constexpr bool check_leaf() {
  static_assert(gives_stream<M>,
                "neap: this leaf of a pipeline is not a mutator: it lacks  auto operator()(neap::candidate const&) "
                "const  returning a stream with  std::optional<Mutation> next()");
  static_assert(!gives_stream<M> || yields_mutations<M>,
                "neap: what this leaf of a pipeline yields is no mutation, a regular type with  "
                "std::optional<neap::edited> apply(neap::candidate const&) const  and  std::string "
                "describe(neap::candidate const&) const");
  return mutator<M>;
}
/// In place of the stream of a pipeline with a bad leaf: the leaf's message is the first then, and the only one.
struct no_stream {
  struct no_mutation {
    friend bool operator==(no_mutation const&, no_mutation const&) = default;
    std::optional<edited> apply(candidate const&) const { return std::nullopt; }
    std::string describe(candidate const&) const { return {}; }
  };
  std::optional<no_mutation> next() { return std::nullopt; }
};

}  // namespace detail

/// Applies a mutation, or the one a variant of mutations holds.
template <class M>
std::optional<edited> apply_mutation(M const& m, candidate const& c) {
  if constexpr (writes_edit<M>) {
    graph_edit what;
    if (!m.edit(c, replay_facts(c.graph, c.order), what)) return std::nullopt;
    return build(c.graph, c.order, what);
  } else if constexpr (requires { m.apply(c); }) {
    return m.apply(c);
  } else {
    return std::visit([&](auto const& x) { return apply_mutation(x, c); }, m);
  }
}

/// What is known of a mutation before it is built: nothing, that it is impossible, or its edit.
enum class edit_answer : std::uint8_t { unknown, impossible, known };

/// The edit of a mutation, or of the one that a variant holds, where it is judged before it is built.
template <class M>
edit_answer edit_of(M const& m, candidate const& c, replay_facts const& facts, graph_edit& out) {
  if constexpr (requires { std::variant_size<M>::value; }) {
    return std::visit([&](auto const& x) { return edit_of(x, c, facts, out); }, m);
  } else if constexpr (requires { m.edit_of(c, facts, out); }) {  // an erased one
    return m.edit_of(c, facts, out);
  } else if constexpr (writes_edit<M> && !requires { requires M::judged_when_built; }) {
    return m.edit(c, facts, out) ? edit_answer::known : edit_answer::impossible;
  } else {
    return edit_answer::unknown;
  }
}

/// One line on what a mutation does to this candidate.
template <class M>
std::string describe(M const& m, candidate const& c) {
  if constexpr (requires { m.describe(c); }) return m.describe(c);
  else return std::visit([&](auto const& x) { return std::string(x.describe(c)); }, m);
}

/// What a pipeline lets a search do beside the mutations that it yields. A leaf that yields every mutation of a kind says
/// so in a member `permissions allows`; combinators that leave none out hand it on.
struct permissions {
  bool recompute = false;  // any op that may run again, as often as the search likes
  bool cut = false;        // any op that may run in parts
  bool rewrite = false;    // ops may be replaced by others, so that no bound of single ops holds
  double swap = 0;         // any value may be stored and loaded, by a link of so many bytes a second; 0: it may not
  bool filtered = false;   // a predicate leaves out some mutations: what is not allowed above may be forbidden by it
  friend constexpr permissions operator|(permissions a, permissions b) {
    return {a.recompute || b.recompute, a.cut || b.cut, a.rewrite || b.rewrite, a.swap > b.swap ? a.swap : b.swap,
            a.filtered || b.filtered};
  }
  friend bool operator==(permissions, permissions) = default;
};
/// What a mutator allows; nothing if it does not say.
template <class M>
constexpr permissions allowed_by(M const& m) {
  if constexpr (requires { permissions(m.allows()); }) return m.allows();
  else if constexpr (requires { permissions(m.allows); }) return m.allows;
  else return {};
}

namespace detail {
/// What the leaves of a combinator allow together.
template <class... M>
constexpr permissions allowed_by_all(std::tuple<M...> const& leaves) {
  return std::apply([](auto const&... m) { return (permissions{} | ... | allowed_by(m)); }, leaves);
}
}  // namespace detail

/// A function of mutators: what stands right of `|`. `mutator | truncate(8)` is `truncate(8)(mutator)`.
template <class F>
struct pipe_closure {
  F f;
  template <class M>
  constexpr auto operator()(M m) const {
    return f(std::move(m));
  }
};
template <class F>
pipe_closure(F) -> pipe_closure<F>;

template <class M, class F>
constexpr auto operator|(M m, pipe_closure<F> const& closure) {
  return closure(std::move(m));
}

}}  // namespace neap::v0
