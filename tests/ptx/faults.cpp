// Planted faults, each found as what it is; and right kernels that look like them, in which nothing is found.
#include "../support/ptx/compiled.hpp"
#include "../support/ptx/device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

namespace ptx = neap::testing::ptx;
using kind = ptx::fault_kind;

std::vector<int> numbers(std::size_t n) {
  std::vector<int> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<int>(i * 7 % 23);
  return v;
}
std::vector<std::uint8_t> bytes(std::size_t n) {
  std::vector<std::uint8_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::uint8_t>(i * 7 % 23);
  return v;
}

/// Every architecture and some seeds: `f` gives the report of a launch on a fresh device.
template <class F>
void expect(std::string const& kernel, std::vector<kind> const& expected, F f) {
  for (int const architecture : {80, 90}) {
    auto const m = ptx::compiled("faults", architecture);
    if (!m) {
      MESSAGE("this test is skipped: no nvcc");
      return;
    }
    for (std::uint64_t const seed : {0, 1, 2, 3}) {
      CAPTURE(kernel);
      CAPTURE(architecture);
      CAPTURE(seed);
      ptx::device d;
      d.options.seed = seed;
      d.options.instructions = 200'000;
      ptx::report const r = f(d, *m, kernel.c_str());
      CAPTURE(r.text());
      if (expected.empty()) {
        CHECK(r.clean());
        continue;
      }
      for (auto const k : expected) CHECK(r.has(k));
      for (auto const& found : r.faults) {
        // Where a race is expected the reader may come before the writer.
        bool const follows = found.kind == kind::uninitialised && expected.front() == kind::race;
        CHECK((follows || std::ranges::find(expected, found.kind) != expected.end()));
        CHECK(found.line > 0);
        CHECK(found.message.find("line " + std::to_string(found.line)) != std::string::npos);
      }
    }
  }
}

/// Kernels of x (64 ints) and o (written, as long as any of them needs).
ptx::report simple(ptx::device& d, ptx::module const& m, char const* name) {
  auto const x = d.buffer(numbers(64)), o = d.buffer(std::vector<int>(256));
  return d.launch(m, name, {1}, {64}, 0, x, o);
}
ptx::report of_bytes(ptx::device& d, ptx::module const& m, char const* name) {
  auto const x = d.buffer(bytes(64)), o = d.buffer<std::uint8_t>(64);
  return d.launch(m, name, {1}, {64}, 0, x, o);
}

TEST_CASE("ptx faults: races within a block") {
  for (auto const* name :
       {"missing_barrier", "missing_second_barrier", "missing_warp_barrier", "shuffle_is_no_barrier",
        "warp_barrier_of_halves", "same_place", "same_place_global", "lost_update", "plain_read_beside_atomics"})
    expect(name, {kind::race}, simple);
  expect("one_byte_overlaps", {kind::race}, of_bytes);
}

TEST_CASE("ptx faults: races between blocks") {
  auto const blocks = [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(512)), o = d.buffer<int>(512);
    return d.launch(m, name, {4}, {64}, 0, x, o);
  };
  expect("blocks_write_one_place", {kind::race}, blocks);
  auto const neighbours = [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(512)), o = d.buffer(std::vector<int>(512));
    return d.launch(m, name, {4}, {64}, 0, x, o);
  };
  expect("block_reads_its_neighbour", {kind::race}, neighbours);
  auto const last = [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(64)), parts = d.buffer(std::vector<int>(8)),
               arrived = d.buffer(std::vector<unsigned>(1)), sum = d.buffer<int>(1);
    return d.launch(m, name, {8}, {64}, 0, x, parts, arrived, sum);
  };
  expect("last_block_without_fence", {kind::race}, last);
  expect("fence_of_the_block_only", {kind::race}, last);
}

TEST_CASE("ptx faults: barriers that not all threads reach") {
  for (auto const* name :
       {"barrier_of_some", "two_barriers_that_differ", "barriers_that_wait_for_each_other", "barrier_within_a_loop"})
    expect(name, {kind::barrier}, simple);
  expect("barrier_after_early_exit", {kind::barrier}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(64)), o = d.buffer<int>(128);
    return d.launch(m, name, {1}, {64}, 0, x, o, 40);
  });
}

TEST_CASE("ptx faults: addresses out of bounds and misaligned") {
  expect("one_past_the_end", {kind::bounds}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(std::vector<float>(100)), o = d.buffer<float>(100);
    return d.launch(m, name, {1}, {64}, 0, x, o, 100);
  });
  expect("one_before_the_start", {kind::bounds}, simple);
  expect("past_by_one_byte", {kind::bounds}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(bytes(77)), o = d.buffer<std::uint8_t>(1);
    auto const r = d.launch(m, name, {1}, {64}, 0, x, o, 77);
    REQUIRE(r.faults.size() == 1);
    CHECK(r.faults[0].message.ends_with("1 byte at offset 77 of buffer 0, which has 77"));
    return r;
  });
  expect("vector_past_the_end", {kind::bounds}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(std::vector<float>(37)), o = d.buffer<float>(40);
    return d.launch(m, name, {1}, {64}, 0, x, o, 37);
  });
  expect("shared_past_the_end", {kind::bounds}, simple);
  expect("too_little_dynamic_shared", {kind::bounds}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(64)), o = d.buffer<int>(64);
    return d.launch(m, name, {1}, {64}, 63 * sizeof(int), x, o);
  });
  expect("null_pointer", {kind::bounds}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(64)), o = d.buffer<int>(64);
    return d.launch(m, name, {1}, {64}, 0, x, o, std::uint64_t{0});
  });
  expect("misaligned_vector", {kind::alignment}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(std::vector<float>(80)), o = d.buffer<float>(256);
    return d.launch(m, name, {1}, {64}, 0, x, o);
  });
  expect("misaligned_int", {kind::alignment}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(bytes(80)), o = d.buffer<int>(64);
    return d.launch(m, name, {1}, {64}, 0, x, o);
  });
  expect("misaligned_vector", {kind::alignment},
         [](ptx::device& d, ptx::module const& m, char const* name) {  // by the host's pointer
           auto const x = d.buffer(std::vector<float>(80)), o = d.buffer<float>(260);
           return d.launch(m, name, {1}, {1}, 0, x, o + 4);
         });
}

TEST_CASE("ptx faults: memory that was never written") {
  expect("uninitialised_shared", {kind::uninitialised}, simple);
  expect("uninitialised_global", {kind::uninitialised}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(64)), o = d.buffer<int>(64);
    return d.launch(m, name, {1}, {64}, 0, x, o);
  });
}

TEST_CASE("ptx faults: cp.async without its wait or its barrier") {
  expect("copy_without_wait", {kind::in_flight}, simple);
  expect("copy_waits_for_the_wrong_group", {kind::in_flight}, simple);
  expect("copy_without_barrier", {kind::race}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto r = simple(d, m, name);
    // A thread may come before the copy of another one is over.
    std::erase_if(r.faults, [](auto const& f) { return f.kind == kind::in_flight; });
    return r;
  });
  expect("copy_over_what_is_read", {kind::race}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto r = simple(d, m, name);
    std::erase_if(r.faults, [](auto const& f) { return f.kind == kind::in_flight; });
    return r;
  });
}

TEST_CASE("ptx faults: warp-wide instructions without the lanes they name; loops without end") {
  expect("mask_names_lanes_that_left", {kind::warp}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(64)), o = d.buffer<int>(64);
    return d.launch(m, name, {1}, {64}, 0, x, o, 50);
  });
  expect("lanes_that_do_not_come", {kind::warp}, simple);
  expect("source_takes_no_part", {kind::warp}, simple);
  expect("waits_for_ever", {kind::deadlock}, simple);
}

TEST_CASE("ptx faults: none in right kernels that look like those above") {
  expect("right_last_block", {}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(64)), parts = d.buffer<int>(8 * 64), arrived = d.buffer(std::vector<unsigned>(1)),
               sum = d.buffer(std::vector<int>(1));
    auto const r = d.launch(m, name, {8}, {64}, 0, x, parts, arrived, sum);
    int expected = 0;
    for (int const v : numbers(64)) expected += 8 * v;
    CHECK(d.read<int>(sum)[0] == expected);
    return r;
  });
  expect("right_waiting_blocks", {}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(12)), o = d.buffer(std::vector<int>(1)), flag = d.buffer(std::vector<unsigned>(1));
    auto const r = d.launch(m, name, {12}, {64}, 0, x, o, flag);
    int expected = 0;
    for (int const v : numbers(12)) expected += v;
    CHECK(d.read<int>(o)[0] == expected);
    return r;
  });
  for (auto const* name : {"right_named_barriers", "right_halves", "right_same_value"}) expect(name, {}, simple);
  expect("right_bytes", {}, of_bytes);
  expect("right_partial_warp", {}, [](ptx::device& d, ptx::module const& m, char const* name) {
    auto const x = d.buffer(numbers(64)), o = d.buffer(std::vector<int>(64));
    auto const r = d.launch(m, name, {1}, {64}, 0, x, o, 45);
    int expected = 0;
    for (std::size_t i = 32; i < 45; ++i) expected += numbers(64)[i];
    CHECK(d.read<int>(o)[40] == expected);
    return r;
  });
}

}  // namespace
