// Blocks and warps while they run, and every access to memory with its checks.
//
// Two accesses are ordered if they are of one thread, or a barrier, a warp's barrier or a release and an acquire lies
// between them. Shuffles and votes order nothing.
#pragma once

#include "memory.hpp"
#include "numbers.hpp"
#include "program.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace neap::testing::ptx {

struct machine;
struct block_state;

/// A copy of cp.async that has been issued: the bytes as they were read, to be written when it is waited for.
struct pending_copy {
  std::uint32_t to = 0, bytes = 0, group = 0;
  int line = 0;
  std::array<std::uint8_t, 16> data{};
};

enum class lane_state : std::uint8_t { runs, at_warp, at_barrier };

struct warp {
  machine* m = nullptr;
  block_state* block = nullptr;
  std::uint32_t index = 0;         // in its block
  std::uint32_t first_thread = 0;  // of the grid
  lanes exist = 0, alive = 0;
  lanes late = 0;  // lanes that run after the others until the next synchronisation
  std::array<int, warp_size> pc{};
  std::array<lane_state, warp_size> state{};
  std::vector<std::uint64_t> registers;                           // [row][lane]
  std::vector<std::uint8_t> local, parameters;                    // [lane][byte]
  std::array<std::vector<std::pair<int, int>>, warp_size> stack;  // return address, call site
  std::array<std::vector<pending_copy>, warp_size> copies;
  std::array<std::uint32_t, warp_size> groups{};  // committed groups of cp.async
  std::uint32_t sync_time = 0;                    // of the last barrier of all lanes
  std::vector<std::uint32_t> seen;                // [lane][other]: barriers of some lanes; empty if there was none
  lanes has_acquired = 0;
  std::array<knowledge, warp_size> acquired, heard;  // heard: by a strong read that no fence has followed
  std::array<std::unique_ptr<knowledge>, warp_size> released, released_in_block;

  std::uint64_t* row(std::uint32_t r) { return registers.data() + std::size_t{r} * warp_size; }
  std::uint64_t* operand(instruction const& i, int k) { return row(i.operands[static_cast<std::size_t>(k)]); }
};

struct named_barrier {
  std::uint32_t expected = 0, arrived = 0;  // 0 expected: all threads
  std::uint32_t line = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arrivals;  // warp, time
};

struct block_state {
  std::uint32_t index = 0;
  dim3 id;
  std::vector<warp> warps;
  std::vector<std::uint8_t> shared_bytes, shared_state, shared_owner;  // owner: 1 + variable, 0 between them
  std::vector<shadow_cell> shared_shadow;
  std::uint32_t barrier_time = 0;
  std::vector<std::uint32_t> seen;  // [warp][other]: barriers of some warps; empty if there was none
  knowledge acquired;               // by threads before the last barrier
  std::array<named_barrier, 16> barriers;
  std::uint32_t exited = 0;
  bool done = false;
};

template <class F>
inline void for_lanes(lanes m, F f) {
  if (m == 0xffffffffu) {
    for (int l = 0; l < warp_size; ++l) f(l);
  } else {
    for (; m; m &= m - 1) f(std::countr_zero(m));
  }
}

enum class access_kind : std::uint8_t { read, write, atomic };

struct strong_variable {
  knowledge gpu;
  std::map<std::uint32_t, knowledge> in_block;
};

struct launch_options {
  std::uint64_t seed = 0;             // 0: warps in order, lanes together; else both shuffled
  std::uint64_t instructions = 0;     // at most, of warps; 0: 2^31
  std::uint32_t resident_blocks = 8;  // blocks that run interleaved
};

struct machine {
  kernel_code const* code = nullptr;
  std::vector<region>* regions = nullptr;
  report* out = nullptr;
  launch_options options;
  dim3 grid, block_size;
  std::uint32_t dynamic_shared = 0;
  std::uint32_t threads_of_block = 0, warps_of_block = 0;
  std::uint32_t time = 0, start_time = 0;
  std::mt19937_64 random;
  std::map<std::pair<int, int>, std::size_t> known_faults;
  std::map<std::uint64_t, strong_variable> strong_variables;

  // ---- faults
  dim3 thread_of(std::uint32_t in_block) const {
    return {in_block % block_size.x, in_block / block_size.x % block_size.y, in_block / block_size.x / block_size.y};
  }
  static std::string text_of(dim3 d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  }
  dim3 block_of(std::uint32_t index) const {
    return {index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y};
  }
  std::string name_of_thread(std::uint32_t thread, block_state const* here) const {
    std::uint32_t const per = warps_of_block * warp_size;
    std::string s = "thread " + text_of(thread_of(thread % per));
    if (!here || thread / per != here->index) s += " of block " + text_of(block_of(thread / per));
    return s;
  }
  void fault_at(warp const& w, int lane, int line, fault_kind kind, std::string const& what) {
    ++reported_;
    auto const [it, fresh] = known_faults.try_emplace({line, static_cast<int>(kind)}, out->faults.size());
    if (!fresh) {
      ++out->faults[it->second].times;
      return;
    }
    fault f;
    f.kind = kind;
    f.line = line;
    f.block = w.block->id;
    f.thread = thread_of(w.index * warp_size + static_cast<std::uint32_t>(lane));
    f.message = std::string(name_of(kind)) + ": line " + std::to_string(line) + ", block " + text_of(f.block) +
                " thread " + text_of(f.thread) + ": " + what;
    out->faults.push_back(std::move(f));
  }

  // ---- order
  bool ordered(access_record const& r, warp const& w, int lane) const {
    if (r.time <= start_time) return true;
    if (r.thread == w.first_thread + static_cast<std::uint32_t>(lane)) return true;
    std::uint32_t const per = warps_of_block * warp_size, block = r.thread / per;
    if (block == w.block->index) {
      if (r.time <= w.block->barrier_time) return true;
      std::uint32_t const other = r.thread % per / warp_size;
      if (other == w.index) {
        if (r.time <= w.sync_time) return true;
        if (!w.seen.empty() && r.time <= w.seen[static_cast<std::size_t>(lane) * warp_size + r.thread % warp_size])
          return true;
      } else if (!w.block->seen.empty() && r.time <= w.block->seen[w.index * warps_of_block + other]) {
        return true;
      }
    }
    if (!w.block->acquired.empty() && w.block->acquired.covers(r.thread, block, r.time)) return true;
    return (w.has_acquired >> lane & 1) && w.acquired[static_cast<std::size_t>(lane)].covers(r.thread, block, r.time);
  }

  struct place {
    std::uint8_t* bytes = nullptr;
    std::uint8_t* state = nullptr;
    shadow_cell* shadow = nullptr;
    std::string const* name = nullptr;
    std::size_t offset = 0;
  };

  void race(warp const& w, int lane, int line, place const& p, unsigned k, char const* does, char const* did,
            access_record const& r) {
    fault_at(w, lane, line, fault_kind::race,
             std::string(does) + " byte " + std::to_string(p.offset + k) + " of " + *p.name + ", which " +
                 name_of_thread(r.thread, w.block) + " " + did + " at line " + std::to_string(r.line) +
                 "; nothing orders the two");
  }

  /// Checks an access of `size` bytes and records it. `value`: what a write is about to write.
  void check(warp& w, int lane, int line, place const& p, unsigned size, access_kind kind, bool strong,
             std::uint8_t const* value) {
    std::uint32_t const me = w.first_thread + static_cast<std::uint32_t>(lane);
    access_record mine;
    mine.thread = me;
    mine.time = time;
    mine.line = static_cast<std::uint32_t>(line) & 0x3fffffff;
    mine.strong = strong;
    shadow_cell before, after;  // of the last byte that was checked
    std::uint8_t state_before = 0, state_after = 0;
    bool plain = false;  // that byte had nothing to report
    for (unsigned k = 0; k < size; ++k) {
      shadow_cell& c = p.shadow[k];
      if (plain && p.state[k] == state_before && std::memcmp(&c, &before, sizeof c) == 0) {
        c = after;
        p.state[k] = state_after;
        continue;
      }
      before = c;
      state_before = p.state[k];
      auto const reports = reported_ + out->counts.same_value_writes;
      if (p.state[k] & byte_in_flight)
        fault_at(w, lane, line, fault_kind::in_flight,
                 "byte " + std::to_string(p.offset + k) + " of " + *p.name +
                     " is being copied by cp.async: no wait came before");
      if (kind != access_kind::write && !(p.state[k] & byte_written))
        fault_at(w, lane, line, fault_kind::uninitialised,
                 "reads byte " + std::to_string(p.offset + k) + " of " + *p.name + ", which was never written");
      bool const writes = kind != access_kind::read;
      if (!(strong && c.write.strong) && !ordered(c.write, w, lane)) {
        if (kind == access_kind::write && value && p.bytes[k] == value[k]) {
          ++out->counts.same_value_writes;
        } else {
          race(w, lane, line, p, k, writes ? "writes" : "reads", "wrote", c.write);
        }
      }
      if (writes) {
        for (auto& r : c.reads) {
          if (!(strong && r.strong) && !ordered(r, w, lane)) race(w, lane, line, p, k, "writes", "read", r);
          r = {};
        }
        c.write = mine;
        p.state[k] |= byte_written;
      } else {
        auto& [a, b] = c.reads;
        if (a.thread == me || ordered(a, w, lane)) {
          a = mine;
        } else if (b.thread == me || ordered(b, w, lane) || b.thread / warp_size == a.thread / warp_size) {
          b = mine;
        }
      }
      after = c;
      state_after = p.state[k];
      plain = reports == reported_ + out->counts.same_value_writes;
    }
  }

  static std::string bytes_at(unsigned size, std::int64_t offset) {
    return std::to_string(size) + (size == 1 ? " byte" : " bytes") + " at offset " + std::to_string(offset);
  }

  /// Where an address is; nothing, and a fault, if the access is misaligned or leaves its buffer.
  place find(warp& w, int lane, int line, space where, std::uint64_t address, unsigned size) {
    std::uint64_t const window = where == space::generic || where == space::global || where == space::constant
                                     ? address >> 32
                                 : where == space::shared ? shared_window
                                 : where == space::local  ? local_window
                                                          : param_window;
    if (address % size) {
      fault_at(w, lane, line, fault_kind::alignment,
               std::to_string(size) + " bytes at an address that is " + std::to_string(address % size) +
                   " beyond a multiple");
      return {};
    }
    auto const low = static_cast<std::uint32_t>(address);
    if (window >= first_buffer_window && window - first_buffer_window < regions->size() && where != space::shared) {
      region& r = (*regions)[window - first_buffer_window];
      std::int64_t const offset = static_cast<std::int64_t>(low) - static_cast<std::int64_t>(buffer_start);
      if (offset < 0 || offset + size > static_cast<std::int64_t>(r.bytes.size())) {
        fault_at(w, lane, line, fault_kind::bounds,
                 bytes_at(size, offset) + " of " + r.name + ", which has " + std::to_string(r.bytes.size()));
        return {};
      }
      auto const o = static_cast<std::size_t>(offset);
      r.touched[o / region::page] = 1;
      return {r.bytes.data() + o, r.state.data() + o, r.shadow.data() + o, &r.name, o};
    }
    if (window == shared_window) {
      block_state& b = *w.block;
      bool const inside = std::uint64_t{low} + size <= b.shared_owner.size();
      auto const owner = inside ? b.shared_owner[low] : 0;
      if (!owner || b.shared_owner[low + size - 1] != owner) {
        std::string where_is = "in no shared variable";
        for (auto const& v : shared_variables)
          if (low + size > v.offset && low < v.offset + v.bytes + 128)
            where_is = bytes_at(size, static_cast<std::int64_t>(low) - v.offset) + " of shared variable '" + v.name +
                       "', which has " + std::to_string(v.bytes);
        fault_at(w, lane, line, fault_kind::bounds, where_is);
        return {};
      }
      return {b.shared_bytes.data() + low, b.shared_state.data() + low, b.shared_shadow.data() + low,
              &shared_names[owner - 1u], low - shared_variables[owner - 1u].offset};
    }
    if (window == local_window || window == param_window) {
      bool const local = window == local_window;
      auto& bytes = local ? w.local : w.parameters;
      std::size_t const per = local ? code->local_end : code->param_end;
      if (std::size_t{low} + size > per) {
        fault_at(w, lane, line, fault_kind::bounds,
                 bytes_at(size, low) + (local ? " of local memory" : " of the parameters") + ", which has " +
                     std::to_string(per));
        return {};
      }
      return {bytes.data() + static_cast<std::size_t>(lane) * per + low, nullptr, nullptr, nullptr, low};
    }
    char hex[32];
    std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(address));
    fault_at(
        w, lane, line, fault_kind::bounds,
        bytes_at(size, 0).substr(0, bytes_at(size, 0).find(" at")) + " at address " + hex + ", which is in no buffer");
    return {};
  }

  /// The bytes of a checked access; null after a fault that leaves none.
  std::uint8_t* access(warp& w, int lane, instruction const& i, space where, std::uint64_t address, unsigned size,
                       access_kind kind, std::uint8_t const* value = nullptr) {
    place const p = find(w, lane, i.line, where, address, size);
    if (!p.bytes) return nullptr;
    if (p.shadow) {
      if (kind != access_kind::read && address >> 32 >= first_buffer_window &&
          (*regions)[(address >> 32) - first_buffer_window].constant) {
        fault_at(w, lane, i.line, fault_kind::bounds, "writes " + *p.name);
        return nullptr;
      }
      bool const strong = kind == access_kind::atomic || (i.flags & flag_strong);
      check(w, lane, i.line, p, size, kind, strong, value);
      if (strong) synchronise(w, lane, i, address, kind);
    }
    return p.bytes;
  }

  /// A load by ld.global.nc: what this launch wrote may not be seen, however it is ordered. The address was checked.
  void check_unchanged(warp& w, int lane, int line, std::uint64_t address, unsigned size) {
    place const p = find(w, lane, line, space::global, address, size);
    for (unsigned k = 0; p.shadow && k < size; ++k)
      if (p.shadow[k].write.time > start_time) {
        fault_at(w, lane, line, fault_kind::race,
                 "reads byte " + std::to_string(p.offset + k) + " of " + *p.name + " as constant data (.nc), which " +
                     name_of_thread(p.shadow[k].write.thread, w.block) + " wrote at line " +
                     std::to_string(p.shadow[k].write.line));
        return;
      }
  }

  // ---- release and acquire by fences and strong accesses
  knowledge known_to(warp const& w, int lane) const {
    knowledge k = w.block->acquired;
    auto const l = static_cast<std::size_t>(lane);
    if (w.has_acquired >> lane & 1) k.join(w.acquired[l]);
    if (w.block->barrier_time) k.blocks[w.block->index] = w.block->barrier_time;
    k.threads[w.first_thread + static_cast<std::uint32_t>(lane)] = time;
    if (w.sync_time > w.block->barrier_time)
      for (unsigned o = 0; o < warp_size; ++o)
        if (o != l) k.threads[w.first_thread + o] = w.sync_time;
    return k;
  }
  void fence(warp& w, int lane, bool of_block) {
    auto const l = static_cast<std::size_t>(lane);
    if (!w.heard[l].empty()) {
      w.acquired[l].join(w.heard[l]);
      w.has_acquired |= 1u << lane;
    }
    auto k = std::make_unique<knowledge>(known_to(w, lane));
    if (of_block) {
      w.released_in_block[l] = std::move(k);
    } else {
      w.released_in_block[l] = std::make_unique<knowledge>(*k);
      w.released[l] = std::move(k);
    }
  }
  void synchronise(warp& w, int lane, instruction const& i, std::uint64_t address, access_kind kind) {
    auto const l = static_cast<std::size_t>(lane);
    bool const shared = i.where == space::shared || address >> 32 == shared_window;
    std::uint64_t const key =
        shared ? (static_cast<std::uint64_t>(w.block->index) << 33 | 1ull << 63 | static_cast<std::uint32_t>(address))
               : address;
    if (i.flags & flag_release) fence(w, lane, false);
    strong_variable* v = nullptr;
    if (auto const it = strong_variables.find(key); it != strong_variables.end()) v = &it->second;
    if (kind != access_kind::write && v) {
      w.heard[l].join(v->gpu);
      if (auto const it = v->in_block.find(w.block->index); it != v->in_block.end()) w.heard[l].join(it->second);
      if (i.flags & flag_acquire) fence(w, lane, false);
    }
    if (kind != access_kind::read && (w.released[l] || w.released_in_block[l])) {
      if (!v) v = &strong_variables[key];
      if (kind == access_kind::write) *v = {};
      if (w.released[l]) v->gpu.join(*w.released[l]);
      if (w.released_in_block[l]) v->in_block[w.block->index].join(*w.released_in_block[l]);
    } else if (kind == access_kind::write && v) {
      *v = {};
    }
  }

  // ---- what lanes of a warp know after a barrier of some of them
  void warp_barrier(warp& w, lanes members) {
    ++time;
    lanes const others = w.exist & ~members;
    if (!others) {
      w.sync_time = time;
    } else {
      if (w.seen.empty()) w.seen.assign(warp_size * warp_size, 0);
      std::array<std::uint32_t, warp_size> known{};
      for_lanes(members, [&](int l) {
        for (unsigned o = 0; o < warp_size; ++o)
          known[o] = std::max(known[o], w.seen[static_cast<unsigned>(l) * warp_size + o]);
      });
      for_lanes(members, [&](int l) { known[static_cast<std::size_t>(l)] = time; });
      for_lanes(members, [&](int l) { std::copy(known.begin(), known.end(), w.seen.begin() + l * warp_size); });
    }
    if (lanes const h = w.has_acquired & members) {
      knowledge all;
      for_lanes(h, [&](int l) { all.join(w.acquired[static_cast<std::size_t>(l)]); });
      for_lanes(members, [&](int l) { w.acquired[static_cast<std::size_t>(l)] = all; });
      w.has_acquired |= members;
    }
  }

  // ---- cp.async
  void issue_copy(warp& w, int lane, instruction const& i, std::uint32_t to, std::uint64_t from, unsigned bytes,
                  unsigned from_bytes) {
    pending_copy c;
    c.to = to;
    c.bytes = bytes;
    c.line = i.line;
    c.group = w.groups[static_cast<std::size_t>(lane)];
    if (from_bytes > 0) {
      instruction source = i;
      source.where = space::global;
      if (from % bytes) {
        fault_at(w, lane, i.line, fault_kind::alignment,
                 std::to_string(bytes) + " bytes from an address that is " + std::to_string(from % bytes) +
                     " beyond a multiple");
        return;
      }
      for (unsigned k = 0; k < from_bytes;) {  // the part that is read may have any size
        unsigned const step = from_bytes - k >= 4 ? 4 : 1;
        if (auto const* p = access(w, lane, source, space::global, from + k, step, access_kind::read))
          std::memcpy(c.data.data() + k, p, step);
        k += step;
      }
    }
    place const p = find(w, lane, i.line, space::shared, to, bytes);
    if (!p.bytes) return;
    check(w, lane, i.line, p, bytes, access_kind::write, false, nullptr);
    for (unsigned k = 0; k < bytes; ++k) p.state[k] |= byte_in_flight;
    w.copies[static_cast<std::size_t>(lane)].push_back(c);
  }
  /// Finishes the copies of groups before `group`.
  void finish_copies(warp& w, int lane, std::uint32_t group) {
    auto& list = w.copies[static_cast<std::size_t>(lane)];
    if (list.empty()) return;
    ++time;
    std::erase_if(list, [&](pending_copy const& c) {
      if (c.group >= group) return false;
      block_state& b = *w.block;
      for (unsigned k = 0; k < c.bytes; ++k) {
        b.shared_bytes[c.to + k] = c.data[k];
        b.shared_state[c.to + k] = byte_written;
        access_record& r = b.shared_shadow[c.to + k].write;
        r.thread = w.first_thread + static_cast<std::uint32_t>(lane);
        r.time = time;
        r.line = static_cast<std::uint32_t>(c.line);
        r.strong = 0;
      }
      return true;
    });
  }

  // ---- counts
  void count_request(space where, std::uint64_t const* addresses, lanes m, unsigned size) {
    if (!m) return;
    if (where == space::generic) {
      auto const window = addresses[std::countr_zero(m)] >> 32;
      where = window == shared_window ? space::shared : window >= first_buffer_window ? space::global : space::local;
    }
    auto& c = out->counts;
    if (where == space::global) {
      ++c.global_requests;
      std::uint64_t sectors[2 * warp_size];
      unsigned n = 0;
      for_lanes(m, [&](int l) {
        c.global_bytes += size;
        for (auto s = addresses[l] >> 5; s <= (addresses[l] + size - 1) >> 5 && n < 2 * warp_size; ++s) {
          bool found = false;
          for (unsigned k = n; k-- > 0 && !found;) found = sectors[k] == s;
          if (!found) sectors[n++] = s;
        }
      });
      c.global_sectors += n;
    } else if (where == space::shared) {
      ++c.shared_requests;
      // 4 bytes a lane: all lanes at once; 8: half a warp; 16: a quarter of it.
      unsigned const step = size <= 4 ? 32 : size == 8 ? 16 : 8;
      unsigned passes = 0, parts = 0;
      for (unsigned from = 0; from < warp_size; from += step) {
        std::uint32_t words[warp_size];
        std::uint8_t in_bank[warp_size] = {};
        unsigned n = 0, most = 0;
        bool any = false;
        for (unsigned l = from; l < from + step; ++l) {
          if (!(m >> l & 1)) continue;
          any = true;
          for (unsigned k = 0; k < std::max(1u, size / 4); ++k) {
            auto const word = static_cast<std::uint32_t>(addresses[l] >> 2) + k;
            bool found = false;
            for (unsigned j = n; j-- > 0 && !found;) found = words[j] == word;
            if (found || n == warp_size) continue;
            words[n++] = word;
            most = std::max<unsigned>(most, ++in_bank[word % 32]);
          }
        }
        passes += most;
        parts += any;
      }
      c.shared_wavefronts += passes;
      c.bank_conflicts += passes - std::min(parts, passes);
    }
  }

  std::vector<variable> shared_variables;  // of the kernel, dynamic shared memory last
  std::vector<std::string> shared_names;

 private:
  std::uint64_t reported_ = 0;  // calls of fault_at
};

}  // namespace neap::testing::ptx
