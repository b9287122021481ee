// Values that are not worth dropping and making again (remat_branch_and_bound.hpp).
//
// It is not worth while to drop a value, make it again from another one, and then drop that one, if it has not been read
// meanwhile and it is no smaller: the value could have stayed in its place. `idle` values were dropped beside such a
// partner; `doomed` ones were made again from it, and so the partner may not go before it is read.
#pragma once

#include <neap/blocks/remat_facts.hpp>
#include <neap/plan/remat_problem.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

template <std::size_t Words>
class value_partners {
 public:
  using set = value_set<Words>;

  explicit value_partners(remat_facts<Words> const& f) : f_(f) {
    no_smaller.resize(f_.values);
    for (std::size_t v = 0; v < f_.values; ++v)
      for (std::size_t u = 0; u < f_.values; ++u)
        if (f_.bytes[u] >= f_.bytes[v]) no_smaller[v].set(u);
    partner_.assign(f_.values, no_producer);
    touched_.resize(f_.ops), touched_first_.resize(f_.ops), beside_.resize(f_.values), behind_.resize(f_.values);
    std::vector<std::size_t> readers(f_.values, 0), first(f_.values, f_.ops);
    for (std::size_t k = f_.ops; k-- > 0;)
      f_.inputs[k].for_each([&](std::size_t u) {
        ++readers[u];
        first[u] = k;
        behind_[u] |= f_.outputs[k];
      });
    for (std::size_t k = 0; k < f_.ops; ++k) {
      if (f_.outputs[k].count() != 1 || !(f_.time[k] > 0) || !f_.again[k]) continue;
      auto const v = f_.outputs[k].highest();
      auto& best = partner_[v];
      f_.inputs[k].for_each([&](std::size_t u) {
        bool const alone = f_.maker[u] < 0 || f_.outputs[static_cast<std::size_t>(f_.maker[u])].count() == 1;
        if (!alone || f_.bytes[u] < f_.bytes[v] || f_.saved[u] < f_.saved[v]) return;
        if (best == no_producer || readers[u] < readers[best]) best = static_cast<std::uint32_t>(u);
      });
      if (best == no_producer) continue;
      beside_[best].set(v);
      if (f_.inputs[k].count() == 1 && first[best] == k && f_.workspace[k] == 0) lone.set(v);
    }
    for (std::size_t k = 0; k < f_.ops; ++k) {
      f_.inputs[k].for_each([&](std::size_t u) { touched_[k] |= beside_[u]; });
      f_.reads[k].for_each([&](std::size_t u) { touched_first_[k] |= beside_[u]; });
    }
  }

  /// Whether a value may be dropped while those are doomed.
  bool may_drop(std::size_t v, set const& doomed) const { return !doomed.meets(beside_[v]); }
  /// A value is dropped with those alive.
  void note_drop(std::size_t v, set const& alive, set& idle, set& doomed) const {
    idle -= beside_[v];
    doomed.reset(v);
    if (partner_[v] != no_producer && alive.test(partner_[v])) idle.set(v);
  }
  /// Op k has run and made `fresh`; `first`: for the first time.
  void note_run(std::size_t k, bool first, set const& fresh, set& idle, set& doomed) const {
    set const made_of_partner = idle & fresh;
    set const& touched = first ? touched_first_[k] : touched_[k];
    idle -= touched;
    doomed -= touched;
    doomed |= made_of_partner;
  }
  /// Whether op k, which nothing needs in phase t, would make a value from its partner that cannot be read before the next
  /// phase, where it could run as well.
  bool in_vain(std::size_t k, std::size_t t, set const& alive, set const& idle) const {
    set const it = f_.outputs[k] & idle & lone;
    if (it.empty()) return false;
    auto const v = it.highest(), u = std::size_t{partner_[v]};
    set open = (behind_[v] | behind_[u]) - alive - f_.outputs[k];
    bool read = f_.reads[t].test(u);
    open.for_each([&](std::size_t w) { read = read || f_.maker[w] < static_cast<std::int32_t>(t); });
    return !read;
  }

  std::vector<set> no_smaller;  ///< by value: those of as many bytes or more
  set lone;  ///< values with a partner that are made of nothing else, and first of all that is made of it

 private:
  remat_facts<Words> const& f_;
  std::vector<std::uint32_t> partner_;        // of each value: an input of its op that is no smaller, or no_producer
  std::vector<set> beside_;                   // by value: those whose partner it is
  std::vector<set> behind_;                   // by value: what is made of it
  std::vector<set> touched_, touched_first_;  // by op: those whose partner it reads; the same of its first run
};

}}}  // namespace neap::v0::detail
