#include <neap/backend/host.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace neap;

namespace {

struct row_sum {
  float const* x;
  float* y;
  std::int64_t n;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    float const* row = x + b.id * n;
    y[b.id] = b.reduce_each(
        n, 0.f, [&](std::int64_t i) { return row[i]; }, sum_op{});
  }
};

}  // namespace

TEST_CASE("launch runs every block once, whatever the number of threads") {
  for (int threads : {1, 2, 3, 5}) {
    host_backend b{threads};
    CHECK(b.threads() == threads);
    for (std::int64_t blocks : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<int> seen(static_cast<std::size_t>(blocks));
      bool workers_in_range = true;
      b.launch(blocks, [&](host_block& block) {
        ++seen[static_cast<std::size_t>(block.id)];
        if (block.worker < 0 || block.worker >= threads) workers_in_range = false;
      });
      CHECK(workers_in_range);
      CHECK(std::accumulate(seen.begin(), seen.end(), std::int64_t{0}) == blocks);
      for (int s : seen) CHECK(s == 1);
    }
  }
}

TEST_CASE("parallel_for covers the range in fixed pieces of a grain") {
  for (int threads : {1, 4}) {
    host_backend b{threads};
    for (std::int64_t n : {0, 1, 99, 100, 101, 12345}) {
      std::vector<int> seen(static_cast<std::size_t>(n));
      std::atomic<bool> aligned{true};
      b.parallel_for(n, 100, [&](std::int64_t begin, std::int64_t end) {
        if (begin % 100 != 0 || (end != n && end != begin + 100)) aligned = false;
        for (auto i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      CHECK(aligned);
      for (int s : seen) CHECK(s == 1);
    }
  }
}

TEST_CASE("reductions have the same bits on any number of threads, and follow NaN") {
  std::int64_t const rows = 37, n = 1003;
  std::vector<float> x(static_cast<std::size_t>(rows * n)), one(rows), many(rows);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 100;
  host_backend a{1}, b{4};
  a.launch(rows, row_sum{x.data(), one.data(), n});
  for (int repeat = 0; repeat < 20; ++repeat) {
    b.launch(rows, row_sum{x.data(), many.data(), n});
    CHECK(one == many);
  }
  host_block block;
  float const nan = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t at : {0, 5, 40}) {
    auto f = [&](std::int64_t i) { return i == at ? nan : static_cast<float>(i); };
    CHECK(std::isnan(block.reduce_each(41, -1e30f, f, max_op{})));
    CHECK(std::isnan(block.reduce_each(41, 1e30f, f, min_op{})));
  }
  CHECK(block.reduce_each(
            41, 1e30f, [](std::int64_t i) { return static_cast<float>(i - 7); }, min_op{}) == -7);
  CHECK(block.reduce_each(
            6, 1.0, [](std::int64_t i) { return static_cast<double>(i + 1); }, product_op{}) == 720);
}

TEST_CASE("launches may nest and may come from several threads") {
  host_backend b{3};
  std::atomic<int> count{0};
  b.launch(10, [&](host_block&) { b.launch(10, [&](host_block&) { ++count; }); });
  CHECK(count == 100);
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) b.launch(8, [&](host_block&) { ++count; });
    });
  for (auto& c : callers) c.join();
  CHECK(count == 100 + 3 * 200 * 8);
  host_backend moved = std::move(b);
  moved.elementwise(20000, [&](std::int64_t) { count.fetch_add(1, std::memory_order_relaxed); });
  CHECK(count == 24900);
}

TEST_CASE("a number of threads that makes no sense is refused in one line, with the caller's") {
  for (int threads : {-1, -3, INT_MIN, host_backend::max_threads + 1, INT_MAX}) {
    std::string message;
    try {
      host_backend b{threads};
    } catch (error const& e) { message = e.what(); }
    CHECK(message.find("host.cpp:" + std::to_string(__LINE__ - 2)) != message.npos);
    CHECK(message.find("host_backend: " + std::to_string(threads) +
                       " threads: a number from 1 to 4096, or 0 for one on "
                       "each core") != message.npos);
    CHECK(message.find('\n') == message.npos);
  }
  CHECK(host_backend{0}.threads() >= 1);
  CHECK(host_backend{1}.threads() == 1);
}

// A sanitizer's own memory is beyond the limit that is set here.
TEST_CASE("threads that the system does not start are an error, and those started are ended" *
          doctest::skip(testing::sanitized)) {
  ::pid_t const child = ::fork();
  if (child == 0) {
    struct ::rlimit const none{200 << 20, 200 << 20};  // no room for the stacks of so many
    ::setrlimit(RLIMIT_AS, &none);
    try {
      host_backend b{4000};
    } catch (error const& e) {
      std::string_view const what = e.what();
      ::_exit(what.find("host_backend: the system started ") != what.npos &&
                      what.find(" of 4000 threads: ") != what.npos
                  ? 7
                  : 8);
    } catch (...) { ::_exit(9); }
    ::_exit(10);
  }
  int how = 0;
  ::waitpid(child, &how, 0);
  CHECK(WIFEXITED(how));
  CHECK(WEXITSTATUS(how) == 7);
}
