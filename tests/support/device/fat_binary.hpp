// PTX of the program's own .cu files: nvcc puts it into fat binaries, which are registered before main.
#pragma once

#include "../ptx/device.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace neap::testing {

/// One registered fat binary: that of one .cu file.
class fat_binary {
 public:
  explicit fat_binary(void const* registered) : wrapper_(static_cast<wrapper const*>(registered)) {}

  /// The PTX for the newest architecture up to `most` (80), parsed once. Throws ptx::error if there is none.
  ptx::module const& module(int most) {
    if (!module_) module_.emplace(ptx::parse(text(most)));
    return *module_;
  }

 private:
  struct wrapper {
    std::uint32_t magic, version;
    unsigned char const* data;
    void* other;
  };
  struct header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;  // behind the header
  };
  struct entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
    std::uint32_t compressed_bytes, unknown;
    std::uint16_t minor, major;
    std::uint32_t architecture;
  };
  static constexpr std::uint32_t wrapper_magic = 0x466243b1, magic = 0xba55ed50;
  static constexpr std::uint16_t ptx_kind = 1;

  wrapper const* wrapper_;
  std::optional<ptx::module> module_;

  std::string text(int most) const {
    header h{};
    if (wrapper_->magic == wrapper_magic) std::memcpy(&h, wrapper_->data, sizeof h);
    if (h.magic != magic) throw ptx::error("the program's fat binary has a form that is unknown");
    unsigned char const* at = wrapper_->data + h.header_bytes;
    unsigned char const* const end = at + h.bytes;
    std::string_view best;
    std::uint32_t best_architecture = 0;
    while (at + sizeof(entry) <= end) {
      entry e{};
      std::memcpy(&e, at, sizeof e);
      if (e.kind == ptx_kind && e.architecture <= static_cast<std::uint32_t>(most) &&
          e.architecture > best_architecture) {
        best = {reinterpret_cast<char const*>(at + e.header_bytes), static_cast<std::size_t>(e.bytes)};
        best_architecture = e.architecture;
      }
      at += e.header_bytes + e.bytes;
    }
    if (best_architecture == 0)
      throw ptx::error(
          "the program has no PTX for this device: compile it by nvcc -gencode "
          "arch=compute_80,code=compute_80 --no-compress");
    best = best.substr(0, best.find('\0'));
    if (best.find(".version") == best.npos)
      throw ptx::error("the program's PTX is compressed: compile it by nvcc --no-compress");
    return std::string(best);
  }
};

}  // namespace neap::testing
