// A number that is likely to differ where arguments need other graphs: types of tensors, plain values, lengths and keys.
// Tracked scalars have no part in it.
#pragma once

#include <neap/capture/walk.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 { namespace detail {

class argument_key final : public part_visitor {
 public:
  explicit argument_key(std::uint64_t first) : key_(first) {}
  std::uint64_t value() const { return key_; }
  void put(std::uint64_t n) { key_ = (key_ ^ n) * 0x9e3779b97f4a7c15u, key_ ^= key_ >> 29; }

  void visit(tensor& x) override {
    if (x.is_empty() || x.is_traced()) return put(0);
    auto const& t = x.type();
    put(1 + static_cast<std::uint64_t>(t.element));
    for (auto d : t.dims) put(static_cast<std::uint64_t>(d));
  }
  void plain(void* value, std::size_t n) override { bytes(static_cast<char const*>(value), n); }
  void text(std::string& x) override { put(x.size()), bytes(x.data(), x.size()); }
  void structure(std::uint64_t n) override { put(n); }
  void structure(std::string_view key) override { put(key.size()), bytes(key.data(), key.size()); }
  void unlisted(unsigned char const* first, std::size_t n) override { bytes(reinterpret_cast<char const*>(first), n); }

 private:
  void bytes(char const* at, std::size_t n) {
    while (n > 0) {
      std::uint64_t word = 0;
      auto const part = n < sizeof word ? n : sizeof word;
      std::memcpy(&word, at, part);
      put(word), at += part, n -= part;
    }
  }
  std::uint64_t key_;
};

}}}  // namespace neap::v0::detail
