// The bodies of <neap/blocks/checkmate_milp.hpp>.
#pragma once

#include <neap/blocks/checkmate_milp.hpp>

#include <neap/core/separate_compilation.hpp>

#include <cstddef>
#include <utility>

namespace neap { inline namespace v0 {

NEAP_FUNC std::vector<std::uint32_t> checkmate_program::sequence(std::vector<double> const& values) const {
  std::vector<std::uint32_t> out;
  for (std::size_t t = 0, at = 0; at < runs.size(); ++t)
    for (std::uint32_t i = 0; i <= t; ++i, ++at)
      if (values[runs[at]] > 0.5) out.push_back(i);
  return out;
}

namespace detail {

/// Writes the program: columns R and S with the rows between them, then limits, the one of the peak with its columns N.
class checkmate_writer {
 public:
  checkmate_writer(remat_problem const& p, bool whole)
      : p_(p),
        n_(p.ops.size()),
        made_by_(producers(p)),
        readers_(p.values.size()),
        alive_(n_ + 1, std::vector<std::uint32_t>(p.values.size(), none)) {
    for (std::uint32_t i = 0; i < n_; ++i)
      for (auto v : p.ops[i].inputs) readers_[v].push_back(i);
    add_columns(whole);
    add_rows();
  }
  void limit_peak(std::int64_t limit) {
    double const unit = std::max<double>(1, static_cast<double>(limit));
    for (std::size_t t = 0; t < n_; ++t) {
      auto const needed = columns_needed(t);
      for (std::size_t k = 0; k <= t; ++k) {
        add_bytes(run(t, k), p_.ops[k].workspace_bytes, unit);
        for (std::size_t v = 0; v < p_.values.size(); ++v) {
          if (!from_start(v) && made_by_[v] > t) continue;
          bool const made = from_start(v) || made_by_[v] <= k;
          auto const j = made ? first_need(v, k) : 0;
          add_bytes(!made                  ? alive_[t][v]
                    : j < needed[v].size() ? needed[v][j]
                                           : alive_[t + 1][v],
                    p_.values[v].bytes, unit);
        }
        m_.end_row(-much, static_cast<double>(limit) / unit);
      }
    }
  }
  void limit_saved(std::int64_t limit) {
    double const unit = std::max<double>(1, static_cast<double>(limit));
    for (std::size_t v = 0; v < p_.values.size(); ++v)
      if (!p_.values[v].outside)
        add_bytes(alive_[static_cast<std::size_t>(p_.pause_after) + 1][v], p_.values[v].bytes, unit);
    m_.end_row(-much, static_cast<double>(limit) / unit);
  }
  checkmate_program take() { return std::move(out_); }

 private:
  static constexpr double much = linear_problem::unbounded;
  static constexpr std::uint32_t none = 0xffffffffu;

  bool from_start(std::size_t v) const { return made_by_[v] == no_producer; }
  std::uint32_t run(std::size_t t, std::size_t i) const { return out_.runs[t * (t + 1) / 2 + i]; }

  void add_columns(bool whole) {
    for (std::uint32_t t = 0; t < n_; ++t)
      for (std::uint32_t i = 0; i <= t; ++i)
        out_.runs.push_back(m_.add_column(i == t ? 1 : 0, i == t || p_.ops[i].again ? 1 : 0, p_.ops[i].time, whole));
    for (std::size_t t = 0; t <= n_; ++t)
      for (std::size_t v = 0; v < p_.values.size(); ++v) {
        if (!from_start(v) && made_by_[v] >= t) continue;
        bool const always = from_start(v) && (t == 0 || p_.values[v].kept), end = t == n_;
        double const least = always || (end && p_.values[v].kept) ? 1 : 0;
        alive_[t][v] = m_.add_column(least, end ? least : 1, 0, whole);
      }
  }
  /// What runs finds its inputs; what is alive later is alive now or made.
  void add_rows() {
    auto const add_row = [&](std::uint32_t column, std::size_t t, std::size_t v) {
      m_.add_entry(column, 1);
      if (alive_[t][v] != none) m_.add_entry(alive_[t][v], -1);
      if (!from_start(v)) m_.add_entry(run(t, made_by_[v]), -1);
      m_.end_row(-much, 0);
    };
    for (std::size_t t = 0; t < n_; ++t) {
      for (std::size_t i = 0; i <= t; ++i)
        for (auto v : p_.ops[i].inputs) add_row(run(t, i), t, v);
      for (std::size_t v = 0; v < p_.values.size(); ++v)
        if (alive_[t + 1][v] != none) add_row(alive_[t + 1][v], t, v);
    }
  }
  /// N in phase t, by value: first the column for the maker, then one for each reader.
  std::vector<std::vector<std::uint32_t>> columns_needed(std::size_t t) {
    std::vector<std::vector<std::uint32_t>> needed(p_.values.size());
    for (std::size_t v = 0; v < p_.values.size(); ++v) {
      if (!from_start(v) && made_by_[v] > t) continue;
      std::vector<std::uint32_t> ops;
      if (!from_start(v)) ops.push_back(made_by_[v]);
      for (auto r : readers_[v])
        if (r <= t) ops.push_back(r);
      std::uint32_t next = alive_[t + 1][v];
      needed[v].resize(ops.size());
      for (std::size_t k = ops.size(); k-- > 0;) {
        auto const now = m_.add_column(0, 1, 0, false);
        m_.add_row(0, {{now, 1}, {run(t, ops[k]), -1}}, much);
        if (next != none) m_.add_row(0, {{now, 1}, {next, -1}}, much);
        needed[v][k] = next = now;
      }
    }
    return needed;
  }
  /// Where in columns_needed() the maker is, if that is op k, or else the first reader at or after k.
  std::size_t first_need(std::size_t v, std::size_t k) const {
    if (!from_start(v) && made_by_[v] == k) return 0;
    std::size_t j = 0;
    while (j < readers_[v].size() && readers_[v][j] < k) ++j;
    return from_start(v) ? j : j + 1;
  }
  void add_bytes(std::uint32_t column, std::int64_t bytes, double unit) {
    if (column != none && bytes > 0) m_.add_entry(column, static_cast<double>(bytes) / unit);
  }

  remat_problem const& p_;
  std::size_t n_;
  std::vector<std::uint32_t> made_by_;
  std::vector<std::vector<std::uint32_t>> readers_;
  checkmate_program out_;
  linear_problem& m_ = out_.program;
  std::vector<std::vector<std::uint32_t>> alive_;  // [t][v]: S, where v can be alive when phase t begins; n: the end
};

}  // namespace detail

NEAP_FUNC checkmate_program make_checkmate_program(remat_problem const& p, remat_limits const& limits, bool whole) {
  detail::checkmate_writer program(p, whole);
  if (limits.peak_bytes != remat_limits::none) program.limit_peak(limits.peak_bytes);
  if (limits.saved_bytes != remat_limits::none && p.pause_after >= 0) program.limit_saved(limits.saved_bytes);
  return program.take();
}

}}  // namespace neap::v0
