// Places of tensors by the box: a cell is a box of index variables, and a coordinate of a place is a number plus a
// linear form of them. What moves elements (slices, permutations, reshapes) moves all places of a cell at once while
// each coordinate stays on one side of the bounds that it meets; where it does not, the frame says how the cell must
// be cut.
//
//   concat(a[0:3], b[0:5])[t], t < 8     is cut at 3:    a[t], t < 3    and    b[t], t < 5
//   reshape [12] -> [3, 4], t < 12       by radix 4:     t = 4 u + v, u < 3, v < 4: place (u, v)
//
// Two linear forms that differ have different tags but for a chance of 2^-60: a tag is the form at a secret point.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sip_hash.hpp>
#include <neap/core/tensor_type.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace neap { inline namespace v0 {

/// How a cell must be cut so that what could not be said of all its places can be said of all places of each piece.
struct cell_cut {
  enum kind_type : std::uint8_t { none, at, radix };
  kind_type kind = none;
  std::uint32_t variable = 0;
  std::int64_t where =
      0;  // at: the second piece begins there; radix: variable = where * (a new one) + (another, < where)
};

/// A box of variables, and a place that is a linear form of them.
struct index_cell {
  struct term {
    int axis;
    std::uint32_t variable;
    std::int64_t factor;
  };
  extents at;                            // of each axis, where all variables are 0
  plain_vector<std::int64_t> variables;  // how many values each takes, from 0 on
  plain_vector<term> terms;

  /// All places of a shape.
  static index_cell all_of(extents const& dims) {
    index_cell c;
    c.at = extents::filled(dims.rank(), 0);
    for (int a = 0; a < dims.rank(); ++a)
      if (dims[a] > 1) {
        c.terms.push_back({a, static_cast<std::uint32_t>(c.variables.size()), 1});
        c.variables.push_back(dims[a]);
      }
    return c;
  }
  /// The pieces of a cell. Of a cut by radix some variable is longer than the radix.
  template <class F>
  void cut(cell_cut const& how, F const& piece) const {
    auto const n = variables[how.variable];
    auto const first = how.kind == cell_cut::at ? how.where : n / how.where * how.where;
    if (how.kind == cell_cut::radix && first == n) return piece(split(how.variable, how.where));
    index_cell a = *this, b = *this;
    a.variables[how.variable] = first, b.variables[how.variable] = n - first;
    for (auto const& t : terms)
      if (t.variable == how.variable) b.at[t.axis] += t.factor * first;
    piece(how.kind == cell_cut::radix ? a.split(how.variable, how.where) : a);
    piece(b);
  }

 private:
  index_cell split(std::uint32_t v, std::int64_t radix) const {
    index_cell c = *this;
    auto const low = static_cast<std::uint32_t>(c.variables.size());
    c.variables.push_back(radix);
    c.variables[v] /= radix;
    for (std::size_t i = 0, n = c.terms.size(); i < n; ++i)
      if (c.terms[i].variable == v) {
        auto const t = c.terms[i];
        c.terms[i].factor *= radix;
        c.terms.push_back({t.axis, low, t.factor});
      }
    return c;
  }
};

/// One coordinate of the places of a cell. Form 0: the same at all of them.
struct coordinate {
  std::int64_t at = 0;  // where all variables are 0: the least, for no factor is negative
  std::uint32_t form = 0;
};
struct index_place {
  int count = 0;
  coordinate axis[max_rank];

  index_place() = default;
  explicit index_place(int rank) : count(rank) {}
  explicit index_place(extents const& place) : count(place.rank()) {
    for (int a = 0; a < count; ++a) axis[a].at = place[a];
  }
  int rank() const { return count; }
  coordinate operator[](int a) const { return axis[a]; }
  coordinate& operator[](int a) { return axis[a]; }
};

/// The linear forms that come up in a cell. The first question that a cell cannot answer decides how it is cut; answers
/// after it mean nothing.
class index_frame {
 public:
  /// `number` is not that of another frame.
  index_frame(index_cell const& c, hash_key key, std::uint32_t number) : key_(key), number_(number) {
    forms_.push_back({});
    for (auto n : c.variables) extent_.push_back(n);
    start_ = index_place(c.at);
    for (int a = 0; a < start_.count; ++a) {
      scratch_.clear();
      for (auto const& t : c.terms)
        if (t.axis == a) add_term(t.variable, t.factor);
      start_[a].form = interned();
    }
  }

  index_place const& start() const { return start_; }
  std::uint32_t number() const { return number_; }
  cell_cut const& cut() const { return cut_; }
  bool is_cut() const { return cut_.kind != cell_cut::none; }
  /// The form's number at the secret point.
  std::uint64_t tag(coordinate x) const { return forms_[x.form].tag; }

  /// -1: less than the bound at all places, 1: at none. 0: the cell must be cut.
  int side(coordinate x, std::int64_t bound) {
    if (x.at >= bound) return 1;
    if (x.at + forms_[x.form].reach < bound) return -1;
    auto const& t = largest(x.form);
    cut_at(t.variable, (bound - x.at + t.factor - 1) / t.factor);
    return 0;
  }
  coordinate scaled(coordinate x, std::int64_t by) {
    scratch_.clear();
    if (by != 0) for_terms(x.form, [&](term const& t) { add_term(t.variable, t.factor * by); });
    return {x.at * by, interned()};
  }
  /// x / by, where that is whole at all places: 1. At none: -1. 0: the cell must be cut. x is not negative.
  int divided(coordinate x, std::int64_t by, coordinate& quotient) {
    scratch_.clear();
    bool whole = true;
    for_terms(x.form, [&](term const& t) {
      if (t.factor % by == 0) return add_term(t.variable, t.factor / by);
      whole = false;
      cut_into(t.variable, by / std::gcd(by, t.factor));
    });
    if (!whole) return 0;
    if (x.at % by != 0) return -1;
    quotient = {x.at / by, interned()};
    return 1;
  }
  /// x = radix * (new x) + digit. False if the cell must be cut.
  bool apart(coordinate& x, std::int64_t radix, coordinate& digit) {
    auto const low = x.at % radix;
    std::int64_t reach = 0, most = 0;
    term crossing{};
    for_terms(x.form, [&](term const& t) {
      if (t.factor % radix == 0) return;
      reach += t.factor * (extent_[t.variable] - 1);
      if (t.factor > most) most = t.factor, crossing = t;
    });
    if (low + reach >= radix) {
      auto const period = radix / std::gcd(radix, crossing.factor);
      if (extent_[crossing.variable] > period) cut_into(crossing.variable, period);
      else cut_at(crossing.variable, (radix - low + crossing.factor - 1) / crossing.factor);
      return false;
    }
    scratch_.clear();
    for_terms(x.form, [&](term const& t) {
      if (t.factor % radix != 0) add_term(t.variable, t.factor);
    });
    digit = {low, interned()};
    scratch_.clear();
    for_terms(x.form, [&](term const& t) {
      if (t.factor % radix == 0) add_term(t.variable, t.factor / radix);
    });
    x = {x.at / radix, interned()};
    return true;
  }

  /// The digits of a number for radices from the left, the last one the fastest: the place in a shape of so many
  /// elements before it. False if the cell must be cut.
  bool digits(coordinate x, std::int64_t const* radices, int n, coordinate* digit) {
    for (int a = n - 1; a > 0; --a) {
      auto const radix = radices[a];
      if (forms_[x.form].count == 0) {
        digit[a] = {x.at % radix, 0}, x.at /= radix;
        continue;
      }
      if (!apart(x, radix, digit[a])) return false;
    }
    if (n > 0) digit[0] = x;
    return true;
  }
  /// The sum of factor * coordinate over axes.
  coordinate combined(index_place const& p, std::int64_t const* factors, std::int64_t at = 0) {
    bool constant = true;
    for (int a = 0; a < p.count; ++a) at += p[a].at * factors[a], constant = constant && p[a].form == 0;
    if (constant) return {at, 0};
    scratch_.clear();
    for (int a = 0; a < p.count; ++a)
      if (factors[a] != 0) for_terms(p[a].form, [&](term const& t) { add_term(t.variable, t.factor * factors[a]); });
    return {at, interned()};
  }
  /// The tag of the sum, without the sum.
  std::uint64_t combined_tag(index_place const& p, std::int64_t const* factors) const {
    std::uint64_t tag = 0;
    for (int a = 0; a < p.count; ++a)
      if (p[a].form != 0) tag = plus(tag, times(forms_[p[a].form].tag, factors[a]));
    return tag;
  }
  static std::uint64_t difference(std::uint64_t a, std::uint64_t b) { return a >= b ? a - b : a + modulus - b; }

 private:
  struct term {
    std::uint32_t variable;
    std::int64_t factor;
  };
  struct form {
    std::uint32_t first = 0, count = 0;
    std::int64_t reach = 0;  // where all variables are at their last values
    std::uint64_t tag = 0;
  };
  static constexpr std::uint64_t modulus = (std::uint64_t{1} << 61) - 1;
  static std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
    auto const s = a + b;
    return s >= modulus ? s - modulus : s;
  }
  static std::uint64_t times(std::uint64_t a, std::int64_t by) {
    return static_cast<std::uint64_t>(static_cast<uint128>(a) * (static_cast<std::uint64_t>(by) % modulus) % modulus);
  }
  std::uint64_t secret(std::uint32_t variable) {
    while (secrets_.size() <= variable)
      secrets_.push_back(sip_hash(key_).mix(0x696e646578).mix(secrets_.size()).word() % modulus);
    return secrets_[variable];
  }
  template <class F>
  void for_terms(std::uint32_t f, F const& each) const {
    auto const x = forms_[f];
    for (std::uint32_t i = x.first; i < x.first + x.count; ++i) each(term{terms_[i]});
  }
  void add_term(std::uint32_t variable, std::int64_t factor) {
    if (extent_[variable] <= 1) return;
    for (auto& t : scratch_)
      if (t.variable == variable) {
        t.factor += factor;
        return;
      }
    scratch_.push_back({variable, factor});
  }
  std::uint32_t interned() {
    if (scratch_.empty()) return 0;
    form f{static_cast<std::uint32_t>(terms_.size()), static_cast<std::uint32_t>(scratch_.size()), 0, 0};
    for (auto const& t : scratch_) {
      f.tag = plus(f.tag, times(secret(t.variable), t.factor));
      f.reach += t.factor * (extent_[t.variable] - 1);
    }
    if (auto const have = by_tag_.find(f.tag); have != number_map::none) return have;
    for (auto const& t : scratch_) terms_.push_back(t);
    auto const id = static_cast<std::uint32_t>(forms_.size());
    forms_.push_back(f);
    by_tag_.add(f.tag, id);
    return id;
  }
  term const& largest(std::uint32_t f) const {
    auto const& x = forms_[f];
    auto best = x.first;
    for (auto i = x.first; i < x.first + x.count; ++i)
      if (terms_[i].factor > terms_[best].factor) best = i;
    return terms_[best];
  }
  void cut_at(std::uint32_t variable, std::int64_t where) {
    if (!is_cut()) cut_ = {cell_cut::at, variable, std::clamp<std::int64_t>(where, 1, extent_[variable] - 1)};
  }
  void cut_into(std::uint32_t variable, std::int64_t radix) {
    if (is_cut()) return;
    if (extent_[variable] > radix) cut_ = {cell_cut::radix, variable, radix};
    else cut_at(variable, extent_[variable] / 2);
  }
  hash_key key_;
  std::uint32_t number_;
  cell_cut cut_;
  plain_vector<std::int64_t> extent_;
  plain_vector<std::uint64_t> secrets_;
  plain_vector<form> forms_;
  plain_vector<term> terms_, scratch_;
  number_map by_tag_;
  index_place start_;
};

}}  // namespace neap::v0
