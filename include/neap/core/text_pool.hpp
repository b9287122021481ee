// Texts of a graph, by number. Copies of a pool share what it had when it was last shared, which never changes: a search
// copies graphs by the thousand, and a graph file may have megabytes of text.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace neap { inline namespace v0 {

class text_pool {
 public:
  /// The text of a number that append() gave, of this pool or one that it is a copy of; 0: the empty text. O(1).
  std::string_view operator[](std::uint32_t at) const {
    if (at == 0) return {};
    auto const* const text =
        at < shared_size() ? shared_->data() + at : own_.data() + (static_cast<std::size_t>(at) - shared_size());
    std::uint32_t length;
    std::memcpy(&length, text - sizeof length, sizeof length);
    return {text, length};
  }
  /// Whether a text may have this number: it lies inside the pool.
  bool contains(std::uint32_t at) const {
    auto const end = shared_size() + own_.size();
    auto const from = at < shared_size() ? 0 : shared_size();
    return at == 0 || (at >= from + sizeof at && at < end && (*this)[at].size() <= end - at);
  }
  /// The number of a new text, which is not empty.
  std::uint32_t append(std::string_view text) {
    auto const length = static_cast<std::uint32_t>(text.size());
    char bytes[sizeof length];
    std::memcpy(bytes, &length, sizeof length);
    own_.append(bytes, sizeof length);
    auto const at = static_cast<std::uint32_t>(shared_size() + own_.size());
    own_.append(text.data(), text.size());
    return at;
  }
  /// Shares with later copies what there is, if it is much: copying this pool costs less than a quarter of its bytes.
  void share();
  /// Bytes that a copy does not share.
  std::size_t own_bytes() const { return own_.size(); }

 private:
  std::size_t shared_size() const { return shared_ ? shared_->size() : 0; }
  std::shared_ptr<plain_vector<char> const> shared_;
  plain_vector<char> own_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/text_pool.ipp>
#endif
