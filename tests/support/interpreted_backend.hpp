// A backend that runs kernels as nvcc compiled them: by the interpreter of PTX, on the operands of a case, laid out as
// cuda/launch.cuh lays them out. Host memory and the interpreter's are kept equal around each launch.
#pragma once

#include "kernel_cases.hpp"
#include "ptx/device.hpp"

#include <neap/backend/host.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/kernels/standard.cuh>

#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

namespace neap::testing {

inline std::string demangled(char const* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 ? text : name;
  std::free(text);
  return out;
}

/// The kernels of a PTX text, and which of them were launched.
struct interpreted_module {
  ptx::module module;
  std::map<std::string, std::string> symbol_of;  // "cuda_rows_by_warp<functor>" to the symbol
  std::set<std::string> launched;                // of the keys

  explicit interpreted_module(std::string text) : module(ptx::parse(std::move(text))) {
    for (std::string const& symbol : module.kernels()) {
      std::string const name =
          demangled(symbol.c_str());  // void neap::v0::detail::cuda_rows_by_warp<functor>(parameters)
      auto const begin = std::min(name.find("cuda_rows_by_"), name.find("cuda_blocks<"));
      if (begin == name.npos && name.find("cub::") != name.npos) continue;  // for launches of CUB's own
      if (begin == name.npos) throw ptx::error("no layout of the library's launches: " + name);
      symbol_of[without_spaces(before_parameters(name.substr(begin)))] = symbol;
    }
  }
  static std::string key(std::string const& layout, std::type_info const& functor) {
    return without_spaces("cuda_" + layout + "<" + demangled(functor.name()) + ">");
  }
  /// Of kernels that no case has launched: a line each.
  std::string not_launched() const {
    std::string out;
    for (auto const& [name, symbol] : symbol_of)
      if (!launched.contains(name)) out += name + '\n';
    return out;
  }

 private:
  static std::string before_parameters(std::string const& s) {
    int depth = 0;  // of <>
    std::size_t at = 0;
    for (; at < s.size() && (depth > 0 || s[at] != '('); ++at) depth += (s[at] == '<') - (s[at] == '>');
    return s.substr(0, at);
  }
  static std::string without_spaces(std::string s) {
    std::erase(s, ' ');
    return s;
  }
};

#ifdef NEAP_KERNELS_PTX_DIR
/// The PTX that nvcc made of tests/cuda/NAME.cu.
inline std::optional<interpreted_module> interpreted_kernels(std::string const& name) {
  std::string const path = NEAP_KERNELS_PTX_DIR "/" + name + ".ptx";
  std::ifstream in(path);
  if (!in) throw ptx::error("no file " + path);
  return std::optional<interpreted_module>(std::in_place, std::string(std::istreambuf_iterator<char>(in), {}));
}
#else
/// Nothing: there is no nvcc.
inline std::optional<interpreted_module> interpreted_kernels(std::string const&) { return std::nullopt; }
#endif

/// How rows are laid out: as the rule of cuda/grid.hpp says, or a way that it would take for other extents or for more
/// rows: one_at_once has a thread block (or its warps) do row after row.
enum class interpreted_layout { by_rule, warps, blocks, parts, warps_one_at_once, blocks_one_at_once };

class interpreted_backend {
 public:
  static constexpr std::string_view name = "interpreted";
  static constexpr bool addresses_host_memory = false, runs_on_device = true;
  using block = host_block;

  /// Faults of all launches, a line each; empty if there is none.
  std::string faults;
  int launches = 0;
  std::uint64_t instructions = 0;
  std::uint64_t bank_conflicts = 0;

  interpreted_backend(interpreted_module& module, case_memory& memory, std::uint64_t seed,
                      interpreted_layout layout = interpreted_layout::by_rule)
      : module_(&module),
        memory_(&memory),
        layout_(layout) {
    device_.options.seed = seed;
    device_.options.instructions = 50'000'000;
  }

  template <class K>
  void launch(std::int64_t blocks, K const& kernel, std::int64_t block_work = 0) {
    static_assert(std::is_trivially_copyable_v<K>, "a kernel is passed by value");
    if constexpr (on_host<K>()) host_.launch(blocks, kernel, block_work);
    else run(typeid(K), bytes_of(kernel), blocks, block_work, detail::rows_split<K>, detail::rows_fill_blocks<K>);
  }
  template <class K>
  void launch_blocks(std::int64_t blocks, K const& kernel) {
    static_assert(std::is_trivially_copyable_v<K>, "a kernel is passed by value");
    if (blocks <= 0) return;
    run_on_device(module_->key("blocks", typeid(K)), static_cast<std::uint32_t>(blocks), K::threads, K::shared_bytes,
                  {bytes_of(kernel)});
  }
  /// As cuda_backend::scratch: one place, of unwritten memory at first, that launches share.
  void* scratch(bytes_t bytes) {
    if (static_cast<std::size_t>(bytes) > scratch_.size()) {
      scratch_ = window_memory(static_cast<std::size_t>(bytes));
      scratch_buffer_ = device_.buffer<std::byte>(scratch_.size());
    }
    return scratch_.data();
  }
  /// What is no kernel runs on the host.
  template <class F>
  void parallel_for(std::int64_t n, std::int64_t grain, F const& f) {
    host_.parallel_for(n, grain, f);
  }
  int threads() const { return 1; }

  /// Tensors with elements that were not written, or with bytes before them that were: a line each.
  std::string badly_written() {
    to_device();
    std::string out;
    for (std::size_t k = 0; k < buffers_.size(); ++k) {
      auto const& p = memory_->places[k];
      if (p.is_work || device_.unwritten(buffers_[k]) == p.prefix) continue;
      out += "operand " + std::to_string(k) + ": " + std::to_string(device_.unwritten(buffers_[k])) +
             " bytes unwritten, not " + std::to_string(p.prefix) + '\n';
    }
    return out;
  }

 private:
  interpreted_module* module_;
  case_memory* memory_;
  interpreted_layout layout_;
  ptx::device device_;
  std::vector<ptx::buffer> buffers_;  // of the memory's places
  window_memory scratch_;             // addresses only
  ptx::buffer scratch_buffer_;
  host_backend host_{1};

  template <class K>
  static std::vector<std::uint8_t> bytes_of(K const& kernel) {
    std::vector<std::uint8_t> bytes(sizeof(K));
    std::memcpy(bytes.data(), &kernel, sizeof(K));
    return bytes;
  }

  // Functors for the host only: arg_max of types that it converts, its sort of positions, and a closure that converts. Known
  // when this is compiled, so that the host's code of the others is not.
  template <class K>
  static constexpr bool on_host() {
    std::string_view const text = __PRETTY_FUNCTION__;
    for (std::string_view part : {"arg_max_converted_lines", "number_positions", "segment_starts", "clip_scale"})
      if (text.find(part) != text.npos) return true;
    return false;
  }

  void run(std::type_info const& functor, std::vector<std::uint8_t> bytes, std::int64_t rows, std::int64_t work,
           bool splits, bool whole_blocks) {
    using enum interpreted_layout;
    if (layout_ == warps || layout_ == warps_one_at_once) work = 1;
    if (layout_ == blocks || layout_ == blocks_one_at_once) work = 0;
    if (layout_ == parts) work = 3 * 8 * cuda_block_threads;
    if (whole_blocks) work = 0;
    cuda_grid g = cuda_grid_of(rows, work, splits);
    if (g.blocks == 0) return;
    if (layout_ == warps_one_at_once || layout_ == blocks_one_at_once) {
      g.blocks = static_cast<std::uint32_t>(g.parts);
      g.rows_at_once = g.warp_rows ? cuda_block_threads / cuda_warp_threads : 1;
    }
    std::string const key = module_->key(g.warp_rows ? "rows_by_warp"
                                         : splits    ? "rows_by_parts"
                                                     : "rows_by_block",
                                         functor);
    std::vector<std::vector<std::uint8_t>> arguments{std::move(bytes), number(rows), number(g.rows_at_once)};
    if (splits && !g.warp_rows) arguments.push_back(number(g.parts));
    run_on_device(key, g.blocks, cuda_block_threads, 0, std::move(arguments));
  }

  // The first argument is the functor.
  void run_on_device(std::string const& key, std::uint32_t blocks, int threads, int shared,
                     std::vector<std::vector<std::uint8_t>> arguments) {
    auto const symbol = module_->symbol_of.find(key);
    if (symbol == module_->symbol_of.end()) throw ptx::error("the PTX has no " + key);
    module_->launched.insert(key);
    ++launches;
    to_device();
    translate(arguments.front());
    ptx::report const r =
        device_.launch_bytes(module_->module, symbol->second, {blocks}, {static_cast<std::uint32_t>(threads)},
                             static_cast<std::uint32_t>(shared), arguments);
    instructions += r.counts.instructions;
    bank_conflicts += r.counts.bank_conflicts;
    if (!r.clean()) faults += key + ": " + r.text();
    for (std::size_t k = 0; k < buffers_.size(); ++k) {
      auto const now = device_.read<std::byte>(buffers_[k]);
      std::copy(now.begin(), now.end(), memory_->places[k].data());
    }
  }

  // Copies what the host has written since the last launch, and nothing else: the rest stays unwritten.
  void to_device() {
    for (std::size_t k = 0; k < memory_->places.size(); ++k) {
      auto const& p = memory_->places[k];
      if (k == buffers_.size()) {
        buffers_.push_back(device_.buffer<std::byte>(p.bytes));
        if (p.written) device_.write(buffers_[k] + p.prefix, std::span(p.data() + p.prefix, p.bytes - p.prefix));
      }
      auto const before = device_.read<std::byte>(buffers_[k]);
      // By elements: some of its bytes may be those of unwritten memory.
      std::size_t const element = p.is_work ? 4 : static_cast<std::size_t>(size_of(p.tensor.element));
      for (std::size_t i = 0; i < p.bytes; i += element) {
        auto const now = std::span(p.data() + i, std::min(element, p.bytes - i));
        if (!std::ranges::equal(now, std::span(before).subspan(i, now.size()))) device_.write(buffers_[k] + i, now);
      }
    }
  }

  // Addresses of operands become the device's. A functor's padding may look like one: the lower half, where a flag may
  // be, stays as it is (window_memory).
  void translate(std::vector<std::uint8_t>& bytes) const {
    for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= bytes.size(); at += sizeof(std::uintptr_t)) {
      std::uintptr_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      auto const move = [&](std::byte const* data, std::size_t size, ptx::buffer const& to) {
        auto const begin = reinterpret_cast<std::uintptr_t>(data);
        if (!data || word < begin || word > begin + size) return;
        std::uint64_t const address = (to + (word - begin)).address();
        if (static_cast<std::uint32_t>(address) != static_cast<std::uint32_t>(word))
          throw ptx::error("an operand's address differs from the device's in its lower half");
        std::memcpy(bytes.data() + at, &address, sizeof address);
      };
      for (std::size_t k = 0; k < buffers_.size(); ++k)
        move(memory_->places[k].data(), memory_->places[k].bytes, buffers_[k]);
      move(scratch_.data(), scratch_.size(), scratch_buffer_);
    }
  }
  static std::vector<std::uint8_t> number(std::int64_t n) {
    std::vector<std::uint8_t> out(sizeof n);
    std::memcpy(out.data(), &n, sizeof n);
    return out;
  }
};

}  // namespace neap::testing
