// The bytes of all that a compiled function can see of an object: equal objects have equal ones.
#pragma once

#include <neap/capture/known_arguments.hpp>
#include <neap/capture/tracked_base.hpp>
#include <neap/capture/walk.hpp>
#include <neap/model/model.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace neap::testing {

/// The bytes of everything that a walk of an object meets.
class content final : public detail::part_visitor {
 public:
  std::string bytes;
  void visit(tensor& x) override {
    if (x.is_empty()) return structure(std::uint64_t{0});
    structure(std::uint64_t{1} + static_cast<std::uint64_t>(x.element()));
    for (auto d : x.shape()) structure(static_cast<std::uint64_t>(d));
    tensor const dense = contiguous(x.detach());
    auto const r = dense.ref();
    bytes.append(static_cast<char const*>(r.data), static_cast<std::size_t>(dense.type().bytes()));
  }
  void scalar(void*, void* value, std::size_t n, detail::symbol_id*) override { plain(value, n); }
  void plain(void* value, std::size_t n) override { bytes.append(static_cast<char const*>(value), n); }
  void text(std::string& x) override { bytes += x; }
  void structure(std::uint64_t n) override { bytes.append(reinterpret_cast<char const*>(&n), sizeof n); }
  void structure(std::string_view key) override { bytes += key; }
  void tracked(detail::tracked_base& x) override { x.show(*this); }
  void unlisted(unsigned char const*, std::size_t) override {}  // may be padding
};
template <class T>
std::string content_of(T& x) {
  content c;
  detail::walk_parts(x, c);
  return c.bytes;
}

}  // namespace neap::testing
