// Measured costs, keyed by what an op is: operator name, attributes and the layouts of its inputs and outputs. The table
// is plain data with a text form, one line a cost, so that what was measured once on a machine is a small file.
//
//   neap-costs 1
//   9f86d081884c7d659a2feaa0c55ad015 1.25e-05 matmul
#pragma once

#include <neap/core/digest.hpp>
#include <neap/ir/digests.hpp>
#include <neap/simulate/roofline.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// What decides how long an op takes: its operator's name, attributes (but for a random key), and the types and strides
/// of its values. Equal in any graph over any operator set; an imported operator is never one of neap's, whatever it is
/// called.
inline digest cost_key(op_graph const& g, op_id o) {
  digest d = digest{}.mix(detail::operator_name(g, o));
  if (g.as<op::opaque>(o)) d = d.mix(op::opaque::name).mix(g.details(o));
  else
    for (auto const& a : g.facets(o).attributes)
      if (a.name != "key") d = detail::mix_attribute(d, a.get(g.attributes(o)));
  for (auto v : g.inputs(o)) d = detail::mix_strides(d, g.layout(v));
  for (auto v : g.outputs(o)) d = detail::mix_strides(d, g.layout(v));
  return d;
}

/// Seconds by cost key. A model only with something to fall back on: `measured_or`.
class cost_table {
 public:
  struct row {
    neap::digest key;
    seconds_t seconds = 0;
    std::string name;  // of the operator, for readers of the file
    friend bool operator==(row const&, row const&) = default;
  };

  std::size_t size() const { return rows_.size(); }
  std::vector<row> const& rows() const { return rows_; }  // ascending by key
  /// The measured seconds, or nullptr. O(log size).
  seconds_t const* find(neap::digest key) const {
    auto const it =
        std::lower_bound(rows_.begin(), rows_.end(), key, [](row const& r, neap::digest k) { return r.key < k; });
    return it != rows_.end() && it->key == key ? &it->seconds : nullptr;
  }
  /// Adds a cost, or replaces what was there. O(size).
  void set(neap::digest key, seconds_t seconds, std::string_view name) {
    auto it = std::lower_bound(rows_.begin(), rows_.end(), key, [](row const& r, neap::digest k) { return r.key < k; });
    if (it == rows_.end() || it->key != key) it = rows_.insert(it, row{key, 0, {}});
    it->seconds = seconds;
    it->name = name.empty() ? "-" : std::string(name);
    for (auto& c : it->name)
      if (static_cast<unsigned char>(c) <= ' ') c = '_';
  }
  void set(op_graph const& g, op_id o, seconds_t seconds) { set(cost_key(g, o), seconds, detail::operator_name(g, o)); }

  /// Of the text form: what a plan file says of the table that its times come from.
  neap::digest digest() const { return neap::digest{}.mix(std::string_view(to_text())); }

  std::string to_text() const {
    std::string text = "neap-costs 1\n";
    char line[80];
    for (auto const& r : rows_) {
      std::snprintf(line, sizeof line, " %.17g ", r.seconds);
      text += to_hex(r.key) + line + r.name + '\n';
    }
    return text;
  }
  /// Reads what to_text wrote; a failure names the line.
  static result<cost_table> from_text(std::string_view text) {
    cost_table t;
    std::size_t number = 0;
    auto const bad = [&](char const* what) {
      return failure{"cost table, line " + std::to_string(number) + ": " + what};
    };
    while (!text.empty()) {
      auto const end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      if (number == 1) {
        if (line != "neap-costs 1") return bad("not a table of costs of version 1 (\"neap-costs 1\")");
        continue;
      }
      if (line.empty()) continue;
      row r;
      if (line.size() < 34 || line[32] != ' ') return bad("expected 32 hexadecimal digits, seconds, a name");
      auto const key = from_hex(line.substr(0, 32));
      if (!key) return bad("expected 32 hexadecimal digits");
      r.key = *key;
      line.remove_prefix(33);
      auto const [rest, code] = std::from_chars(line.data(), line.data() + line.size(), r.seconds);
      if (code != std::errc{} || !std::isfinite(r.seconds) || r.seconds < 0)
        return bad("seconds are not a number from 0");
      line.remove_prefix(static_cast<std::size_t>(rest - line.data()));
      if (line.size() < 2 || line[0] != ' ') return bad("the operator's name is missing");
      r.name = line.substr(1);
      if (!t.rows_.empty() && !(t.rows_.back().key < r.key)) return bad("keys are not ascending");
      t.rows_.push_back(std::move(r));
    }
    if (number == 0) return failure{"cost table: empty"};
    return t;
  }

  status save(std::string const& path) const {
    std::FILE* f = std::fopen(path.c_str(), "wb");
    if (!f) return failure{path + ": cannot be opened for writing: " + std::strerror(errno)};
    auto const text = to_text();
    bool ok = std::fwrite(text.data(), 1, text.size(), f) == text.size();
    ok &= std::fclose(f) == 0;
    if (!ok) return failure{path + ": writing failed"};
    return {};
  }
  static result<cost_table> load(std::string const& path) {
    std::FILE* f = std::fopen(path.c_str(), "rb");
    if (!f) return failure{path + ": " + std::strerror(errno)};
    std::string text;
    char block[4096];
    for (std::size_t n; (n = std::fread(block, 1, sizeof block, f)) > 0;) text.append(block, n);
    bool const ok = std::ferror(f) == 0;
    std::fclose(f);
    if (!ok) return failure{path + ": reading failed"};
    auto t = from_text(text);
    if (!t) return failure{path + ": " + t.message()};
    return t;
  }
  friend bool operator==(cost_table const&, cost_table const&) = default;

 private:
  std::vector<row> rows_;
};

/// Measured costs where there are any, another model elsewhere. Views cost nothing.
template <class Model>
struct measured_or {
  cost_table measured;
  Model other;
  template <class G>
    requires cost_model_for<Model, G>
  seconds_t operator()(G const& g, op_id o) const {
    if constexpr (std::derived_from<G, op_graph>)
      if (!flow::is_view(g, o))
        if (auto const* t = measured.find(cost_key(g, o))) return *t;
    return other(g, o);
  }
};
template <class Model>
measured_or(cost_table, Model) -> measured_or<Model>;

}}  // namespace neap::v0
