// Pinned host memory. The program and the device have mappings of their own of the same bytes: pages that a copy in flight
// uses are closed to the program.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace neap::testing {

struct pinned_block {
  std::byte* begin = nullptr;  // for the program
  std::byte* alias = nullptr;  // for the device; of memory that was pinned later the same as begin
  std::size_t bytes = 0;
  bool registered = false;  // by cudaHostRegister
};

class host_memory {
 public:
  /// Null if there is no memory.
  void* allocate(std::size_t bytes) {
    std::size_t const mapped = mapped_bytes(bytes);
    int const file = memfd_create("pinned", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    void *begin = MAP_FAILED, *alias = MAP_FAILED;
    if (ftruncate(file, static_cast<off_t>(mapped)) == 0) {
      begin = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      alias = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    if (begin == MAP_FAILED || alias == MAP_FAILED) {
      if (begin != MAP_FAILED) munmap(begin, mapped);
      return nullptr;
    }
    blocks_[address(begin)] = {static_cast<std::byte*>(begin), static_cast<std::byte*>(alias), bytes};
    return begin;
  }
  void pin(void* at, std::size_t bytes) {
    auto* const p = static_cast<std::byte*>(at);
    blocks_[address(at)] = {p, p, bytes, true};
  }
  /// The block that has this byte; null if it is not pinned.
  pinned_block* find(void const* at) {
    auto it = blocks_.upper_bound(address(at));
    if (it == blocks_.begin()) return nullptr;
    pinned_block& b = std::prev(it)->second;
    return address(at) < address(b.begin) + b.bytes ? &b : nullptr;
  }
  /// Whether some byte of these is pinned.
  bool overlaps(void const* at, std::size_t bytes) {
    auto const it = blocks_.lower_bound(address(at));
    return find(at) || (it != blocks_.end() && it->first < address(at) + bytes);
  }
  void release(void* begin) {
    auto const it = blocks_.find(address(begin));
    if (it == blocks_.end()) return;
    unmap(it->second);
    blocks_.erase(it);
  }
  /// Sets what the program may do with the pages of these bytes: PROT_NONE, PROT_READ or both. Memory that was pinned
  /// later remains open: the device has no other mapping of it.
  void protect(std::uintptr_t begin, std::uintptr_t end, int allowed) {
    pinned_block const* const b = find(reinterpret_cast<void const*>(begin));
    if (!b || b->registered) return;
    mprotect(reinterpret_cast<void*>(first_of_page(begin)), mapped_bytes(end - first_of_page(begin)), allowed);
  }
  static std::uintptr_t first_of_page(std::uintptr_t at) { return at / page() * page(); }
  static std::size_t page() {
    static std::size_t const bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
  }
  /// Where the device finds these bytes.
  std::byte* for_device(void const* at) {
    pinned_block const* const b = find(at);
    if (!b) return static_cast<std::byte*>(const_cast<void*>(at));
    return b->alias + (static_cast<std::byte const*>(at) - b->begin);
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (auto const& [at, b] : blocks_) sum += b.bytes;
    return sum;
  }
  std::map<std::uintptr_t, pinned_block> const& blocks() const { return blocks_; }

  ~host_memory() {
    for (auto& [at, b] : blocks_) unmap(b);
  }
  host_memory() = default;
  host_memory(host_memory const&) = delete;
  host_memory& operator=(host_memory const&) = delete;

 private:
  std::map<std::uintptr_t, pinned_block> blocks_;

  static std::uintptr_t address(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }
  static std::size_t mapped_bytes(std::size_t bytes) { return (bytes + page() - 1) / page() * page(); }
  static void unmap(pinned_block const& b) {
    if (b.registered) return;
    munmap(b.begin, mapped_bytes(b.bytes));
    munmap(b.alias, mapped_bytes(b.bytes));
  }
};

}  // namespace neap::testing
