#include <neap/backend/thrust_policy.hpp>

#include <doctest/doctest.h>

#include <neap/core/philox.hpp>

#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/system/tbb/execution_policy.h>

#include <algorithm>
#include <numeric>
#include <vector>

using namespace neap;

TEST_CASE("a workspace is handed out in aligned parts and refuses what does not fit") {
  random_stream r{1};
  for (int round = 0; round < 200; ++round) {
    std::vector<char> memory(4096 + r.below(64));
    std::size_t const shift = r.below(64);
    workspace_allocator a(memory.data() + shift, static_cast<bytes_t>(memory.size() - shift));
    std::vector<std::pair<char*, std::size_t>> parts;
    for (;;) {
      std::size_t const n = r.below(900);
      char* p = nullptr;
      try {
        p = a.allocate(static_cast<std::ptrdiff_t>(n));
      } catch (error const&) {
        // What is left cannot hold n bytes at an aligned place.
        char* const used = parts.empty() ? memory.data() + shift : parts.back().first + parts.back().second;
        CHECK(memory.data() + memory.size() - used < static_cast<std::ptrdiff_t>(n + workspace_allocator::alignment));
        break;
      }
      CHECK(reinterpret_cast<std::uintptr_t>(p) % workspace_allocator::alignment == 0);
      CHECK(p >= memory.data() + shift);
      CHECK(p + n <= memory.data() + memory.size());
      for (auto const& [q, m] : parts) CHECK((p >= q + m || q >= p + n));
      if (n > 0 && r.below(4) == 0) {  // the last part can be given back and got again
        a.deallocate(p, n);
        CHECK(a.allocate(static_cast<std::ptrdiff_t>(n)) == p);
      }
      parts.push_back({p, n});
      CHECK(a.max_bytes() >= static_cast<bytes_t>(p + n - (memory.data() + shift)));
    }
  }
}

namespace {

// A sort and a scan on a policy, with nothing but the workspace to take memory from.
template <class Policy>
void sort_and_scan(Policy const& policy, std::vector<std::int32_t>& key, std::vector<std::int64_t>& value,
                   std::vector<std::int64_t>& sum) {
  auto const n = static_cast<std::ptrdiff_t>(key.size());
  std::vector<char> memory(static_cast<std::size_t>(12 * n + 4096));
  {
    workspace_allocator a(memory.data(), static_cast<bytes_t>(memory.size()));
    thrust::stable_sort_by_key(policy(a), key.data(), key.data() + n, value.data());
    if (n > 1000) CHECK(a.max_bytes() >= 12 * n);  // the second copies of keys and values came from there
  }
  workspace_allocator a(memory.data(), static_cast<bytes_t>(memory.size()));
  thrust::inclusive_scan(policy(a), value.data(), value.data() + n, sum.data());
}

}  // namespace

TEST_CASE("policies take their memory from the workspace and give the same results") {
  random_stream r{2};
  for (int round = 0; round < 40; ++round) {
    std::size_t const n = round == 0 ? 0 : 1 + r.below(round % 4 == 1 ? 50000 : 300);
    std::vector<std::int32_t> keys(n);
    for (auto& k : keys) k = static_cast<std::int32_t>(r.below(1 + static_cast<std::uint32_t>(n) / 3));
    std::vector<std::int64_t> places(n), sums(n);
    std::iota(places.begin(), places.end(), 0);
    auto expected = places;
    std::ranges::stable_sort(expected, {}, [&](std::int64_t i) { return keys[static_cast<std::size_t>(i)]; });
    auto const run = [&](auto const& policy) {
      auto k = keys;
      auto v = places;
      auto s = sums;
      sort_and_scan(policy, k, v, s);
      CHECK(v == expected);
      CHECK(std::ranges::is_sorted(k));
      std::vector<std::int64_t> running(n);
      std::partial_sum(expected.begin(), expected.end(), running.begin());
      CHECK(s == running);
    };
    host_backend b{1};
    run(thrust_policy(b));
    run(thrust::cpp::par);
    run(thrust::tbb::par);
  }
}

TEST_CASE("a policy without memory says so") {
  std::vector<std::int32_t> key(1000, 1);
  std::vector<std::int64_t> value(1000);
  std::vector<char> memory(1000);
  workspace_allocator a(memory.data(), 1000);
  CHECK_THROWS_AS(thrust::stable_sort_by_key(thrust::cpp::par(a), key.data(), key.data() + 1000, value.data()), error);
  CHECK_THROWS_WITH_AS(a.allocate(2000), doctest::Contains("workspace of 1000 bytes used up: 2000 more are asked for"),
                       error);
}
