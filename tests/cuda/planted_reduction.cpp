// Faults planted in a copy of the kernel of reductions of programs (planted_reduction.cmake), compiled by nvcc and run by the
// interpreter of PTX: each is caught by a fault in the report, by an element that was not written, or by a result that is
// not the host's.
#include "../support/faulty_program.hpp"
#include "../support/interpreted_backend.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

/// A sum of squares along an axis of a matrix.
struct reduced_matrix {
  shape dims;
  int axis;
  bool keeps_x;

  template <class B>
  void operator()(B& b, case_memory& m, reduction_fault planted) const {
    auto const a = m.random(dtype::f32, dims), y = m.unwritten(dtype::f32, {dims[1 - axis]});
    tensor_ref x{nullptr, dtype::f32, dims, dense_strides(dims)};
    if (keeps_x) x = m.unwritten(dtype::f32, dims);
    if constexpr (device_backend<B>) {
      bool reduces[max_rank]{};
      reduces[axis] = true;
      neap::detail::device_reduction const d(dims, reduces);
      neap::detail::reduced_operands const operands({&a, 1}, x, reduces);
      void* const scratch = d.splits > 1 ? b.scratch(d.scratch(dtype::f32)) : nullptr;
      neap::detail::reduction_sums<float> const sums(reduction::sum, d, y, scratch);
      auto const run_on = [&]<bool Across>(std::bool_constant<Across>) {
        neap::detail::fused_reduce_kernel<float, Across, faulty_program> const kernel(operands, 1, d, dtype::f32,
                                                                                      keeps_x, sums, {planted});
        neap::detail::launch_reduction(b, d, kernel.length, kernel, sums);
      };
      if (d.across) run_on(std::true_type{});
      else run_on(std::false_type{});
    } else {
      element_program make(1);
      make.add(op::square{}, dtype::f32, {0});
      auto op = op::fused::of(op::sum{{axis}, false});
      op.prologue = make;
      op.keeps_x = keeps_x;
      auto const from = tensor_layout::dense({dtype::f32, dims}), to = tensor_layout::dense({dtype::f32, y.dims});
      std::vector<std::byte> work(static_cast<std::size_t>(op.workspace({{&from, 1}, {&to, 1}})));
      tensor_ref const out[] = {y, x};
      run(b, op, {{&a, 1}, std::span(out, keeps_x ? 2 : 1), work.data()});
    }
  }
};

/// What is wrong with the kernel with this fault, for one of a few matrices and orders of threads.
std::string found_in_reductions(interpreted_module& kernels, reduction_fault planted) {
  for (auto const& run :
       {reduced_matrix{{3, 37}, 1, true}, {{5, 7}, 0, true}, {{70, 300}, 0, false}, {{1, 8196}, 1, false}}) {
    host_backend host(1);
    case_memory expected({1, 1}, random_stream{5});
    run(host, expected, planted);
    for (std::uint64_t seed : {0, 1}) {
      case_memory got({1, 1}, random_stream{5});
      interpreted_backend b(kernels, got, seed);
      run(b, got, planted);
      if (b.faults != "") return b.faults;
      if (auto const unwritten = b.badly_written(); unwritten != "") return unwritten;
      if (int const k = first_difference(got, expected, 1e-5); k != -1) return "operand " + std::to_string(k);
    }
  }
  return "";
}

}  // namespace

TEST_CASE("planted faults are caught in interpreted reductions of programs, and nothing without one") {
  auto kernels = interpreted_kernels("planted");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  // The copy takes the place of the kernel.
  std::string const mark = "planted::fused_reduce_kernel";
  for (auto const& [key, symbol] : std::map(kernels->symbol_of))
    if (auto const at = key.find(mark); at != key.npos)
      kernels->symbol_of[std::string(key).erase(at, sizeof "planted::" - 1)] = symbol;
  for (int k = 0; k < static_cast<int>(reduction_fault::end); ++k) {
    auto const planted = static_cast<reduction_fault>(k);
    CAPTURE(k);
    auto const found = found_in_reductions(*kernels, planted);
    CAPTURE(found);
    CHECK((found != "") == (planted != reduction_fault::none));
  }
}
