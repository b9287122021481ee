// Runs a grid: which block, warp and lanes go next, branches, calls, barriers. Deterministic for a seed.
//
// Lanes of a warp at one instruction run together; where they part, those at the lower address go first, so that they
// meet again. A seed other than 0 shuffles warps, and lets some lanes of a warp run behind the others between
// synchronisations.
#pragma once

#include "execution.hpp"
#include "warp_operations.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

namespace neap::testing::ptx {

struct scheduler {
  machine& m;
  kernel_code const& k;
  std::vector<std::uint8_t> const& arguments;  // the parameters' bytes, from 0 on
  std::uint64_t budget;
  bool stopped = false;

  std::unique_ptr<block_state> start_block(std::uint32_t index) {
    auto b = std::make_unique<block_state>();
    b->index = index;
    b->id = m.block_of(index);
    std::uint32_t end = k.shared_end;
    for (auto const& v : m.shared_variables) end = std::max(end, v.offset + v.bytes);
    b->shared_bytes.assign(end, 0xcd);
    b->shared_state.assign(end, 0);
    b->shared_owner.assign(end, 0);
    b->shared_shadow.assign(end, {});
    for (std::size_t v = 0; v < m.shared_variables.size(); ++v)
      std::fill_n(b->shared_owner.begin() + m.shared_variables[v].offset, m.shared_variables[v].bytes,
                  static_cast<std::uint8_t>(v + 1));
    b->warps.resize(m.warps_of_block);
    for (std::uint32_t n = 0; n < m.warps_of_block; ++n) start_warp(*b, n);
    return b;
  }

  void start_warp(block_state& b, std::uint32_t n) {
    warp& w = b.warps[n];
    w.m = &m;
    w.block = &b;
    w.index = n;
    w.first_thread = (b.index * m.warps_of_block + n) * warp_size;
    std::uint32_t const count = std::min<std::uint32_t>(warp_size, m.threads_of_block - n * warp_size);
    w.exist = w.alive = static_cast<lanes>((std::uint64_t{1} << count) - 1);
    w.pc.fill(k.entry);
    if (!spare_registers.empty()) {
      w.registers = std::move(spare_registers.back());
      spare_registers.pop_back();
    }
    w.registers.resize(std::size_t{k.rows()} * warp_size);
    for (std::uint32_t r = 0; r < k.rows(); ++r) std::fill_n(w.row(r), warp_size, k.row_values[r]);
    w.local.assign(std::size_t{k.local_end} * warp_size, 0xcd);
    w.parameters.assign(std::size_t{k.param_end} * warp_size, 0);
    for (std::size_t l = 0; l < warp_size; ++l)
      std::ranges::copy(arguments, w.parameters.begin() + static_cast<std::ptrdiff_t>(l * k.param_end));
    for (auto const& [name, row] : k.specials)
      for (std::uint32_t l = 0; l < warp_size; ++l) w.row(row)[l] = special(name, b, n, l);
    mix(w);
  }

  /// Of warps that have ended, of all grids: a kernel has thousands of rows, and the system is slow to give that memory.
  static inline thread_local std::vector<std::vector<std::uint64_t>> spare_registers;

  std::uint64_t special(std::string const& name, block_state const& b, std::uint32_t n, std::uint32_t l) const {
    dim3 const t = m.thread_of(n * warp_size + l);
    auto const part = [&](dim3 d) { return name.back() == 'x' ? d.x : name.back() == 'y' ? d.y : d.z; };
    if (name.starts_with("%tid")) return part(t);
    if (name.starts_with("%ntid")) return part(m.block_size);
    if (name.starts_with("%ctaid")) return part(b.id);
    if (name.starts_with("%nctaid")) return part(m.grid);
    if (name == "%laneid") return l;
    if (name == "%warpid") return n;
    if (name == "%nwarpid") return m.warps_of_block;
    if (name == "%nsmid") return 1;
    if (name == "%lanemask_eq") return 1u << l;
    if (name == "%lanemask_lt") return (1u << l) - 1;
    if (name == "%lanemask_le") return ((1u << l) - 1) | 1u << l;
    if (name == "%lanemask_gt") return ~(((1u << l) - 1) | 1u << l);
    if (name == "%lanemask_ge") return ~((1u << l) - 1);
    if (name == "%dynamic_smem_size") return m.dynamic_shared;
    if (name == "%total_smem_size") return m.dynamic_shared + k.shared_end;
    return 0;  // %smid, %gridid, clocks
  }

  void mix(warp& w) {
    if (m.options.seed) w.late = m.random() % 4 ? static_cast<lanes>(m.random()) : 0;
  }

  lanes in_state(warp const& w, lane_state s) const {
    lanes out = 0;
    for_lanes(w.alive, [&](int l) { out |= static_cast<lanes>(w.state[static_cast<std::size_t>(l)] == s) << l; });
    return out;
  }

  // ---- one warp
  /// Runs lanes of a warp for a while. False if none can run.
  bool run(warp& w, unsigned quantum) {
    lanes ready = in_state(w, lane_state::runs);
    if (!ready) return false;
    while (quantum && ready && !stopped) {
      lanes part = ready & ~w.late;
      if (!part) part = ready;
      int pc = 0x7fffffff, next = 0x7fffffff;
      for_lanes(part, [&](int l) { pc = std::min(pc, w.pc[static_cast<std::size_t>(l)]); });
      if (turn_ && ++turn_ % 8 == 0) {  // now and then others than the lowest, for loops that wait for them
        auto n = static_cast<int>(m.random() % static_cast<unsigned>(std::popcount(ready)));
        for_lanes(ready, [&](int l) {
          if (n-- == 0) pc = w.pc[static_cast<std::size_t>(l)];
        });
        part = ready;
      }
      lanes group = 0;
      for_lanes(part, [&](int l) {
        int const p = w.pc[static_cast<std::size_t>(l)];
        if (p == pc) group |= 1u << l;
        else if (p > pc) next = std::min(next, p);
      });
      quantum = run_group(w, group, pc, next, quantum);
      ready = in_state(w, lane_state::runs);
    }
    if (quantum == 0 && ready) turn_ = turn_ ? turn_ : 1;
    return true;
  }
  unsigned turn_ = 0;

  void set_pc(warp& w, lanes g, int pc) {
    for_lanes(g, [&](int l) { w.pc[static_cast<std::size_t>(l)] = pc; });
  }

  /// Runs lanes at one instruction until they part, wait, or meet others at `next`.
  unsigned run_group(warp& w, lanes group, int pc, int next, unsigned quantum) {
    auto& c = m.out->counts;
    for (; quantum; --quantum) {
      instruction const& i = k.code[static_cast<std::size_t>(pc)];
      lanes go = group;
      if (i.guard >= 0) {
        auto const* const p = w.row(static_cast<std::uint32_t>(i.guard));
        go = 0;
        for_lanes(group, [&](int l) { go |= static_cast<lanes>((p[l] != 0) != i.guard_not) << l; });
      }
      ++c.warp_instructions;
      c.instructions += static_cast<unsigned>(std::popcount(group));
      if (--budget == 0) {
        m.fault_at(w, std::countr_zero(group), i.line, fault_kind::deadlock,
                   "still running after the allowed number of instructions");
        stopped = true;
        return 0;
      }
      switch (i.kind) {
        case flow::compute:
          if (go) i.run(w, i, go);
          break;
        case flow::branch:
          if (go == group) {
            pc = i.target;
            if (pc >= next) return set_pc(w, group, pc), quantum - 1;
            continue;
          }
          if (go) {
            set_pc(w, go, i.target);
            set_pc(w, group & ~go, pc + 1);
            return quantum - 1;
          }
          break;
        case flow::table:
          set_pc(w, group, pc + 1);
          for_lanes(go, [&](int l) {
            auto const& t = k.tables[static_cast<std::size_t>(i.target)];
            auto const n = static_cast<std::uint32_t>(w.operand(i, 0)[l]);
            if (n < t.size()) {
              w.pc[static_cast<std::size_t>(l)] = t[n];
            } else {
              m.fault_at(w, l, i.line, fault_kind::bounds,
                         "a jump to entry " + std::to_string(n) + " of a table of " + std::to_string(t.size()));
            }
          });
          return quantum - 1;
        case flow::call:
          set_pc(w, group, pc + 1);
          for_lanes(go, [&](int l) {
            auto const u = static_cast<std::size_t>(l);
            for (auto const& x : k.calls[static_cast<std::size_t>(i.immediate)].in) copy(w, l, x);
            w.stack[u].emplace_back(pc + 1, static_cast<int>(i.immediate));
            w.pc[u] = i.target;
          });
          return quantum - 1;
        case flow::ret:
        case flow::exit:
          if (go) {
            set_pc(w, group & ~go, pc + 1);
            for_lanes(go, [&](int l) {
              auto& stack = w.stack[static_cast<std::size_t>(l)];
              if (i.kind == flow::exit || stack.empty()) {
                leave(w, l);
              } else {
                for (auto const& x : k.calls[static_cast<std::size_t>(stack.back().second)].out) copy(w, l, x);
                w.pc[static_cast<std::size_t>(l)] = stack.back().first;
                stack.pop_back();
              }
            });
            return quantum - 1;
          }
          break;
        case flow::warp:
          if (go) {
            lanes const members = members_of(w, i, go);
            if (members == go && go == group) {
              i.run(w, i, go);
              break;
            }
            set_pc(w, group & ~go, pc + 1);
            for_lanes(go, [&](int l) {
              w.state[static_cast<std::size_t>(l)] = lane_state::at_warp;
              w.pc[static_cast<std::size_t>(l)] = pc;
            });
            meet(w);
            return quantum - 1;
          }
          break;
        case flow::barrier:
          if (go) {
            set_pc(w, group & ~go, pc + 1);
            return arrive(w, i, go, pc), quantum - 1;
          }
          break;
      }
      ++pc;
      if (pc >= next) {
        set_pc(w, group, pc);
        return quantum - 1;
      }
    }
    set_pc(w, group, pc);
    return 0;
  }

  void copy(warp& w, int lane, copy_of_parameter const& x) {
    auto* const base = w.parameters.data() + static_cast<std::size_t>(lane) * k.param_end;
    std::copy_n(base + x.from, x.bytes, base + x.to);
  }

  void leave(warp& w, int l) {
    m.finish_copies(w, l, 0xffffffffu);
    w.alive &= ~(1u << l);
    ++w.block->exited;
  }

  /// The lanes that the instruction names, of those that exist.
  lanes members_of(warp& w, instruction const& i, lanes go) const {
    lanes const all =
        i.flags & flag_aligned ? w.exist : static_cast<lanes>(w.row(i.operands[15])[std::countr_zero(go)]) & w.exist;
    return all;
  }

  /// Lets warp-wide instructions run whose lanes have all arrived.
  bool meet(warp& w) {
    bool any = false;
    lanes waiting = in_state(w, lane_state::at_warp);
    for (lanes rest = waiting; rest;) {
      int const first = std::countr_zero(rest);
      int const pc = w.pc[static_cast<std::size_t>(first)];
      instruction const& i = k.code[static_cast<std::size_t>(pc)];
      bool const is_barrier = i.run == &together::barrier;
      lanes const members = members_of(w, i, 1u << first);
      lanes here = 0;
      for_lanes(waiting, [&](int l) {
        instruction const& other = k.code[static_cast<std::size_t>(w.pc[static_cast<std::size_t>(l)])];
        bool const same = &other == &i || (is_barrier && other.run == i.run);
        if (same && members_of(w, other, 1u << l) == members) here |= 1u << l;
      });
      rest &= ~here & ~(1u << first);
      if (!(members >> first & 1)) {
        m.fault_at(w, first, i.line, fault_kind::warp, "the mask does not name the thread itself");
        here = 1u << first;
      } else if (here & ~members) {
        here &= members;
      }
      lanes const gone = members & ~w.alive;
      if ((members & w.alive) & ~here && members >> first & 1) continue;
      if (gone && members >> first & 1)
        m.fault_at(w, first, i.line, fault_kind::warp,
                   "the mask names lane " + std::to_string(std::countr_zero(gone)) + ", which has left the kernel");
      i.run(w, i, here);
      for_lanes(here, [&](int l) {
        w.state[static_cast<std::size_t>(l)] = lane_state::runs;
        ++w.pc[static_cast<std::size_t>(l)];
      });
      waiting &= ~here;
      rest &= waiting;
      mix(w);
      any = true;
    }
    return any;
  }

  // ---- barriers of the block
  void arrive(warp& w, instruction const& i, lanes go, int pc) {
    int const first = std::countr_zero(go);
    auto const id = w.operand(i, 0)[first];
    if (id >= 16) {
      m.fault_at(w, first, i.line, fault_kind::barrier, "barrier " + std::to_string(id) + ", of 16");
      set_pc(w, go, pc + 1);
      return;
    }
    named_barrier& b = w.block->barriers[id];
    auto const expected = i.operand_count == 2 ? static_cast<std::uint32_t>(w.operand(i, 1)[first]) : 0;
    if (!b.arrivals.empty() && b.expected != expected)
      m.fault_at(w, first, i.line, fault_kind::barrier,
                 "expects " + std::to_string(expected) + " threads, where line " + std::to_string(b.line) +
                     " expects " + std::to_string(b.expected));
    if (expected % warp_size)
      m.fault_at(w, first, i.line, fault_kind::barrier,
                 std::to_string(expected) + " threads are no multiple of a warp");
    b.expected = expected;
    b.line = static_cast<std::uint32_t>(i.line);
    b.arrivals.emplace_back(w.index, m.time);
    b.arrived += static_cast<std::uint32_t>(std::popcount(go));
    for_lanes(go, [&](int l) {
      w.pc[static_cast<std::size_t>(l)] = i.mode == 1 ? pc + 1 : pc;
      if (i.mode != 1) w.state[static_cast<std::size_t>(l)] = lane_state::at_barrier;
    });
    release(*w.block, static_cast<std::uint32_t>(id), false);
  }

  /// Lets a barrier's threads go if all have arrived. `late`: no other thread can run, so those that left are counted.
  bool release(block_state& b, std::uint32_t id, bool late) {
    named_barrier& n = b.barriers[id];
    if (n.arrivals.empty()) return false;
    std::uint32_t const all = n.expected ? (n.expected + warp_size - 1) / warp_size * warp_size : m.threads_of_block;
    bool const by_all = n.expected == 0;
    std::uint32_t const needed = by_all ? m.threads_of_block : std::min(all, n.expected);
    // A warp that is not full counts as a full one where a number is given.
    std::uint32_t arrived = n.arrived;
    if (!by_all && m.threads_of_block % warp_size && needed > m.threads_of_block)
      arrived += needed - m.threads_of_block;
    if (arrived < needed && !(late && by_all && n.arrived + b.exited == m.threads_of_block)) return false;

    // Who waits there.
    std::vector<std::pair<warp*, lanes>> waiting;
    int pc = -1, other_pc = -1;
    for (auto& w : b.warps) {
      lanes here = 0;
      int own = -1;
      for_lanes(in_state(w, lane_state::at_barrier), [&](int l) {
        int const p = w.pc[static_cast<std::size_t>(l)];
        instruction const& i = k.code[static_cast<std::size_t>(p)];
        if (w.operand(i, 0)[l] != id) return;
        here |= 1u << l;
        if (own >= 0 && own != p && !by_all) other_pc = p;
        own = p;
        if (pc >= 0 && p != pc && by_all) other_pc = p;
        if (pc < 0) pc = p;
      });
      if (here) waiting.emplace_back(&w, here);
    }
    if (waiting.empty()) return false;
    warp& w0 = *waiting.front().first;
    int const l0 = std::countr_zero(waiting.front().second), line = k.code[static_cast<std::size_t>(pc)].line;
    if (other_pc >= 0)
      m.fault_at(w0, l0, line, fault_kind::barrier,
                 "threads of the block wait at different barriers: the other one is at line " +
                     std::to_string(k.code[static_cast<std::size_t>(other_pc)].line));
    if (arrived < needed)
      m.fault_at(w0, l0, line, fault_kind::barrier,
                 std::to_string(needed - arrived) + " of " + std::to_string(needed) +
                     " threads left the kernel without reaching the barrier");

    // bar.red
    unsigned ones = 0, voters = 0;
    for (auto [w, here] : waiting)
      for_lanes(here, [&](int l) {
        instruction const& i = k.code[static_cast<std::size_t>(w->pc[static_cast<std::size_t>(l)])];
        if (i.mode < 2) return;
        ++voters;
        ones += w->operand(i, 3)[l] != 0;
      });
    ++m.time;
    ++m.out->counts.block_barriers;
    if (by_all) {
      b.barrier_time = m.time;
      for (auto& w : b.warps)
        if (w.has_acquired) {
          for (auto& a : w.acquired) b.acquired.join(a);
          w.has_acquired = 0;
          for (auto& a : w.acquired) a = {};
        }
    } else {
      if (b.seen.empty()) b.seen.assign(std::size_t{m.warps_of_block} * m.warps_of_block, 0);
      auto const at = [&](std::uint32_t x, std::uint32_t y) -> std::uint32_t& {
        return b.seen[x * m.warps_of_block + y];
      };
      std::vector<std::uint32_t> known(m.warps_of_block, 0);
      for (auto [x, when] : n.arrivals)
        for (std::uint32_t y = 0; y < m.warps_of_block; ++y) known[y] = std::max(known[y], x == y ? when : at(x, y));
      for (auto [w, here] : waiting) {
        for (std::uint32_t y = 0; y < m.warps_of_block; ++y) at(w->index, y) = std::max(at(w->index, y), known[y]);
        if (here == w->exist) w->sync_time = m.time;
      }
    }
    n = {};
    for (auto [w, here] : waiting) {
      for_lanes(here, [&](int l) {
        auto const u = static_cast<std::size_t>(l);
        instruction const& i = k.code[static_cast<std::size_t>(w->pc[u])];
        if (i.mode >= 2) w->operand(i, 2)[l] = i.mode == 2 ? ones : i.mode == 3 ? ones == voters : ones > 0;
        ++w->pc[u];
        w->state[u] = lane_state::runs;
      });
      mix(*w);
    }
    return true;
  }

  // ---- blocks
  /// Runs a block for a while. False if it is done or stuck.
  bool run(block_state& b, unsigned quantum) {
    std::vector<std::uint32_t> order(b.warps.size());
    for (std::uint32_t n = 0; n < order.size(); ++n) order[n] = n;
    if (m.options.seed) std::ranges::shuffle(order, m.random);
    bool any = false;
    for (auto const n : order) any |= run(b.warps[n], quantum);
    if (any) return true;
    for (auto& w : b.warps) any |= meet(w);
    if (any) return true;
    for (std::uint32_t id = 0; id < 16 && !any; ++id) any |= release(b, id, true);
    if (any) return true;
    b.done = true;
    for (auto& w : b.warps)
      for_lanes(w.alive, [&](int l) {
        int const line = k.code[static_cast<std::size_t>(w.pc[static_cast<std::size_t>(l)])].line;
        if (w.state[static_cast<std::size_t>(l)] == lane_state::at_barrier) {
          m.fault_at(w, l, line, fault_kind::barrier, "waits at a barrier that not all threads reach");
        } else {
          m.fault_at(w, l, line, fault_kind::deadlock, "waits for lanes of its warp that do not come");
        }
      });
    return false;
  }

  void run_grid() {
    auto const blocks = static_cast<std::uint32_t>(m.grid.count());
    std::uint32_t next = 0;
    std::vector<std::unique_ptr<block_state>> resident;
    while (!stopped) {
      while (next < blocks && resident.size() < std::max(1u, m.options.resident_blocks))
        resident.push_back(start_block(next++));
      if (resident.empty()) return;
      std::size_t const n = m.options.seed ? m.random() % resident.size() : turn_of_blocks_++ % resident.size();
      if (!run(*resident[n], m.options.seed ? 64 + static_cast<unsigned>(m.random() % 512) : 4096)) {
        for (auto& w : resident[n]->warps) spare_registers.push_back(std::move(w.registers));
        resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(n));
      }
    }
  }
  std::size_t turn_of_blocks_ = 0;
};

}  // namespace neap::testing::ptx
