// Which elements of tracked containers share memory with one another or with tensors of the arguments, as a part of a
// call's signature. A path is recorded for one such pattern: a container with a shared element is of the same length or
// keys in all of its calls. Where nothing is shared, containers add nothing.
#pragma once

#include <neap/capture/tracked_base.hpp>
#include <neap/capture/walk.hpp>
#include <neap/core/number_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The places of a container, and the memory of its tensors.
class shown_container final : public part_visitor {
 public:
  void visit(tensor& x) override { storages.push_back(x.is_empty() || x.is_traced() ? nullptr : x.storage().get()); }
  void structure(std::uint64_t n) override { places.push_back(n); }
  void structure(std::string_view) override {}

  std::vector<tensor_storage const*> storages;  // null: an empty tensor
  std::vector<std::uint64_t> places;            // its length, or its keys
};

/// The pattern of these containers, each once; `first` has the memory of `tensor_count` tensors of arguments. Empty: no
/// element shares memory. O(elements).
inline std::string shared_elements(std::span<tracked_base* const> containers, number_map first,
                                   std::size_t tensor_count) {
  std::vector<shown_container> all(containers.size());
  std::vector<std::size_t> home;  // of each element, its container
  std::vector<bool> shares(containers.size(), false);
  for (std::size_t k = 0; k < containers.size(); ++k) {
    containers[k]->show(all[k]);
    for (auto const* s : all[k].storages) {
      if (!s) continue;
      auto const number = static_cast<std::uint32_t>(tensor_count + home.size());
      home.push_back(k);
      if (first.add(s, number)) continue;
      shares[k] = true;
      if (auto const other = first.find(s); other >= tensor_count) shares[home[other - tensor_count]] = true;
    }
  }
  std::string pattern;
  auto const put = [&](std::uint64_t n) { pattern.append(reinterpret_cast<char const*>(&n), sizeof n); };
  for (std::size_t k = 0; k < containers.size(); ++k) {
    if (!shares[k]) continue;
    put(k);
    for (auto const n : all[k].places) put(n);
    for (auto const* s : all[k].storages) put(s ? first.find(s) : number_map::none);
  }
  return pattern;
}

}}}  // namespace neap::v0::detail
