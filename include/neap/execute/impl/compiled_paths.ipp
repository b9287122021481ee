// The bodies of <neap/execute/compiled_paths.hpp>.
#pragma once

#include <neap/execute/compiled_paths.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void compiled_paths::publish() {
  std::vector<std::vector<std::uint32_t>> effects;
  for (auto const& p : paths) {
    auto& needed = effects.emplace_back();
    auto const& s = p->first;
    if (!p->is_simple || !s.end) continue;  // others evaluate what they need
    for (auto const& from : s.captured.sources)
      if (from.what == captured_stage::source::kind::scalar) needed.push_back(from.number);
    for (auto const& e : s.captured.elements) needed.push_back(e.container), needed.push_back(e.place);
    for (auto const& w : s.end->scalars) needed.push_back(w.expression);
    for (auto const& w : s.end->containers)
      for (auto const& x : w.items) needed.push_back(x.expression);
    needed.insert(needed.end(), s.end->result_scalars.begin(), s.end->result_scalars.end());
  }
  published = std::make_shared<published_paths const>(
      published_paths{guard_program(tape, guards, effects, scalar_count), paths, tape});
}

NEAP_FUNC std::shared_ptr<compiled_paths> path_store::find(std::string const& signature) {
  for (auto key = std::hash<std::string>{}(signature);; ++key) {
    auto const row = by_signature_.find(key);
    if (row == number_map::none) return nullptr;
    if (all_[row]->signature == signature) return all_[row];
  }
}

NEAP_FUNC void path_store::add(std::shared_ptr<compiled_paths> fresh) {
  auto key = std::hash<std::string>{}(fresh->signature);
  while (by_signature_.contains(key)) ++key;
  by_signature_.add(key, static_cast<std::uint32_t>(all_.size()));
  last_ = fresh;
  all_.push_back(std::move(fresh));
}

NEAP_FUNC std::shared_ptr<compiled_paths> path_store::fresh(argument_state const& begin, std::string family) const {
  auto made = std::make_shared<compiled_paths>();
  made->signature = begin.signature;
  made->scalar_count = begin.scalars.size();
  if (options_.lengths.empty()) return made;
  for (auto const& p : all_)
    if (p->family && p->family->signature == family) made->family = p->family;
  if (!made->family) made->family = std::make_shared<length_family>(length_family{std::move(family), {}});
  return made;
}

NEAP_FUNC void path_store::recount() {
  std::size_t n = 0;
  std::unordered_map<length_family const*, std::size_t> most;
  for (auto const& p : all_) {
    auto const count = p->count();
    auto* before = p->family ? &most[p->family.get()] : nullptr;
    if (!before) n += count;
    else if (count > *before) n += count - std::exchange(*before, count);
  }
  count_ = n;
}

NEAP_FUNC void path_store::drop(std::shared_ptr<compiled_paths> const& p) {
  auto others = std::exchange(all_, {});
  by_signature_.clear();
  for (auto& other : others)
    if (other != p) add(std::move(other));
  recount();
}

NEAP_FUNC bool path_store::drop_oldest() {
  std::shared_ptr<compiled_paths> in;
  std::size_t at = 0;
  for (auto& p : all_)
    for (std::size_t k = 0; k < p->paths.size(); ++k)
      if (!in || p->paths[k]->last_used < in->paths[at]->last_used) in = p, at = k;
  if (!in) return false;
  publications_.fetch_add(1, std::memory_order_release);
  if (in->paths.size() == 1 || ++in->dropped > 4 * options_.graphs + 64) return drop(in), true;
  in->paths.erase(in->paths.begin() + static_cast<std::ptrdiff_t>(at));
  in->guards = guard_trie();
  for (std::uint32_t k = 0; k < in->paths.size(); ++k) in->guards.add(in->paths[k]->first.captured.path, k);
  in->publish();
  recount();
  return true;
}

NEAP_FUNC bool path_store::has_room(compiled_paths const& of) const {
  if (count_ < options_.graphs) return true;
  if (!of.family || options_.graphs == 0) return false;
  std::size_t most = 0;  // that this graph has with another length
  for (auto const& p : all_)
    if (p->family == of.family) most = std::max(most, p->count());
  return of.count() < most;
}

NEAP_FUNC bool path_store::make_room(compiled_paths const& of) {
  while (!has_room(of) && options_.full == when_full::drop_oldest && drop_oldest()) {}
  return has_room(of);
}

NEAP_FUNC void path_store::publish(std::shared_ptr<compiled_paths> const& to, bool is_fresh) {
  to->publish();
  publications_.fetch_add(1, std::memory_order_release);
  if (is_fresh && to->family) {
    std::size_t lengths = 0;
    std::shared_ptr<compiled_paths> oldest;
    for (auto const& p : all_)
      if (p->family == to->family && (++lengths, !oldest || p->last_used() < oldest->last_used())) oldest = p;
    if (lengths >= std::max<std::size_t>(options_.max_lengths, 1)) drop(oldest);
  }
  if (is_fresh) add(to);
  recount();
}

NEAP_FUNC std::string path_store::other_signature(argument_state const& named) const {
  if (all_.empty()) return "it is the first call";
  auto const& before = last_ ? last_->signature : all_.back()->signature;
  auto const n = std::min(before.size(), named.signature.size());
  std::size_t k = 0;
  while (k < n && before[k] == named.signature[k]) ++k;
  return named.name_at(k) + " differs from earlier calls";
}

}}}  // namespace neap::v0::detail
