// Faults planted in copies of the library's kernels and of the device block (planted.hpp), compiled by nvcc and run by the
// interpreter of PTX: each is caught by a fault in the report, by an element that was not written, or by a result that is
// not the host's.
#include "planted.hpp"
#include "../support/interpreted_backend.hpp"
#include "../support/kernel_cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

// Launches of the planted kernels; without a fault on the host.
using layout_list = std::vector<interpreted_layout>;
layout_list const either{interpreted_layout::warps, interpreted_layout::blocks};
constexpr std::int64_t rows = 6, columns = 301;

struct run_softmax {
  static auto operands(case_memory& m) {
    auto const x = m.random(dtype::f32, {rows, columns}), y = m.unwritten(dtype::f32, {rows, columns});
    return planted_softmax<softmax_fault::none>{x.as<float const>(), y.as<float>(), columns};
  }
  template <softmax_fault F>
  static void launch(auto& b, case_memory& m) {
    auto const k = operands(m);
    b.launch(rows, planted_softmax<F>{k.x, k.y, columns}, columns);
  }
};
struct run_norm {
  static auto operands(case_memory& m) {
    auto const x = m.random(dtype::f32, {rows, columns}), y = m.unwritten(dtype::f32, {rows, columns}),
               means = m.zeros(dtype::f32, {rows});
    return planted_norm<norm_fault::none>{x.as<float const>(), y.as<float>(), means.as<float>(), columns};
  }
  template <norm_fault F>
  static void launch(auto& b, case_memory& m) {
    auto const k = operands(m);
    b.launch(rows, planted_norm<F>{k.x, k.y, k.means, columns}, columns);
  }
};
struct run_cross_entropy {
  template <cross_entropy_fault F>
  static void launch(auto& b, case_memory& m) {
    auto const x = m.random(dtype::f32, {rows, columns}), target = m.numbers({rows}, columns),
               lse = m.random(dtype::f32, {rows});
    target.as<std::int64_t>()[0] = -100;
    b.launch(rows,
             planted_cross_entropy<F>{x.as<float>(), target.as<std::int64_t const>(), lse.as<float const>(), columns},
             columns);
  }
};
struct run_groups {
  template <groups_fault F>
  static void launch(auto& b, case_memory& m) {
    auto const x = m.random(dtype::f32, {rows, columns}), sums = m.unwritten(dtype::f32, {2, columns});
    b.launch(2, planted_groups<F>{x.as<float const>(), sums.as<float>(), rows, columns}, columns);
  }
};
struct run_positions {
  template <positions_fault F>
  static void launch(auto& b, case_memory& m) {
    auto const index = m.numbers({50}, 70), counts = m.unwritten(dtype::i64, {71});
    b.launch(1, planted_positions<F>{index.as<std::int64_t const>(), 50, 70, counts.as<std::int64_t>()}, 70);
  }
};
struct run_scatter {
  template <scatter_fault F>
  static void launch(auto& b, case_memory& m) {
    auto const x = m.random(dtype::f32, {rows, columns}), index = m.numbers({rows, columns}, columns),
               y = m.zeros(dtype::f32, {rows, columns});
    b.launch(rows, planted_scatter<F>{x.as<float const>(), index.as<std::int64_t const>(), y.as<float>(), columns},
             columns);
  }
};
struct run_parts {
  template <parts_fault F>
  static void launch(auto& b, case_memory& m) {
    auto const x = m.random(dtype::f32, {2, 700}), y = m.zeros(dtype::f32, {2, 700});
    b.launch(2, planted_parts<F>{x.as<float const>(), y.as<float>(), 700}, 700);
  }
};
// Rows that begin at a multiple of 16 bytes in the output only.
template <template <block_fault> class Kernel>
struct run_softmax_on_block {
  template <block_fault F>
  static void launch(auto& b, case_memory& m) {
    constexpr std::int64_t stride = 304;
    auto const x = m.random(dtype::f32, {rows * stride}), y = m.random(dtype::f32, {rows * stride});
    tensor_ref const from{x.as<float>() + 1, dtype::f32, {rows, columns}, {stride, 1}},
        to{y.data, dtype::f32, {rows, columns}, {stride, 1}};
    b.launch(
        rows,
        Kernel<F>{{detail::rows_of(from, dtype::f32, "planted"), detail::rows_of(to, dtype::f32, "planted"), columns}},
        columns);
  }
};
struct run_norm_on_block {
  template <block_fault F>
  static void launch(auto& b, case_memory& m) {
    b.launch(rows, norm_on_planted_block<F>{run_norm::operands(m)}, columns);
  }
};
struct run_softmax_on_warp {
  template <warp_fault F>
  static void launch(auto& b, case_memory& m) {
    b.launch(rows, softmax_on_planted_warp<F>{run_softmax::operands(m)}, columns);
  }
};

/// Whether the interpreter, for one of a few seeds, finds a fault in Run::launch<F> or another result than the host's.
template <class Run, auto F>
bool caught(interpreted_module& kernels, interpreted_layout layout) {
  using fault = std::remove_cv_t<decltype(F)>;
  host_backend host(1);
  case_memory expected({rows, columns}, random_stream{3});
  Run::template launch<fault::none>(host, expected);
  for (std::uint64_t seed : {0, 1}) {
    case_memory got({rows, columns}, random_stream{3});
    interpreted_backend b(kernels, got, seed, layout);
    Run::template launch<F>(b, got);
    bool const bad = b.faults != "" || b.badly_written() != "" || first_difference(got, expected, 1e-5) != -1;
    if (bad) return true;
  }
  return false;
}

int planted = 0;
template <class Fault, class... Run>
void check(interpreted_module& kernels, layout_list const& layouts) {
  for_each_fault<Fault>([&](auto number) {
    constexpr Fault f = decltype(number)::value;
    CAPTURE(demangled(typeid(Fault).name()));
    CAPTURE(static_cast<int>(f));
    planted += f != Fault::none;
    for (auto layout : layouts) {
      CAPTURE(static_cast<int>(layout));
      bool const found = (caught<Run, f>(kernels, layout) || ...);
      CHECK(found == (f != Fault::none));
    }
  });
}

}  // namespace

TEST_CASE("planted faults are caught in interpreted kernels, and nothing in those without a fault") {
  auto kernels = interpreted_kernels("planted");
  if (!kernels) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  CHECK(kernels->not_launched().find("cuda_rows_by_warp<neap::testing::planted_softmax") != std::string::npos);
  check<softmax_fault, run_softmax>(*kernels, either);
  check<norm_fault, run_norm>(*kernels, either);
  check<cross_entropy_fault, run_cross_entropy>(*kernels, either);
  check<groups_fault, run_groups>(*kernels, either);
  check<positions_fault, run_positions>(*kernels, either);
  check<scatter_fault, run_scatter>(*kernels, either);
  check<parts_fault, run_parts>(*kernels, {interpreted_layout::parts});
  check<block_fault, run_softmax_on_block<softmax_on_planted_block>, run_softmax_on_block<log_softmax_on_planted_block>,
        run_norm_on_block>(*kernels, {interpreted_layout::blocks});
  check<warp_fault, run_softmax_on_warp>(*kernels, {interpreted_layout::warps});
  CHECK(kernels->not_launched().find("cuda_rows_by_warp<neap::testing::planted_softmax") == std::string::npos);
  CHECK(planted >= 20);
}
