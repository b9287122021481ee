#include <neap/execute/spill_file.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <vector>

#include <sys/resource.h>

using namespace neap;

TEST_CASE("what is stored comes back, in any order, many times") {
  random_stream draw(7);
  std::vector<bytes_t> sizes(20);
  for (auto& s : sizes) s = draw.below(100000);
  spill_file file("/tmp", sizes, 4);
  for (int round = 0; round < 5; ++round) {
    std::vector<std::vector<unsigned char>> data;
    std::vector<spill_file::ticket> tickets;
    for (auto n : sizes) {
      data.emplace_back(static_cast<std::size_t>(n));
      for (auto& b : data.back()) b = static_cast<unsigned char>(draw());
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) tickets.push_back(file.store(i, data[i].data()));
    for (auto t : tickets) file.wait(t);
    for (std::size_t i = sizes.size(); i-- > 0;) {
      std::vector<unsigned char> back(data[i].size());
      file.wait(file.load(i, back.data()));
      CHECK(back == data[i]);
    }
  }
  bytes_t all = 0;
  for (auto n : sizes) all += n;
  CHECK(file.bytes_written() == 5 * all);
  CHECK(file.bytes_read() == 5 * all);
}

TEST_CASE("a folder that cannot be written is refused at once, with its name") {
  CHECK_THROWS_WITH_AS(spill_file("/nowhere/at/all", {100}, 1), doctest::Contains("/nowhere/at/all/neap-spill-"),
                       error);
}

TEST_CASE("a disk that fills up: one line that names the file, and the file can be used again") {
  struct rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  auto const handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = 8192;
  setrlimit(RLIMIT_FSIZE, &small);
  CHECK_THROWS_WITH_AS(spill_file("/tmp", {100000}, 1), doctest::Contains("no room for"), error);
  setrlimit(RLIMIT_FSIZE, &old);
  {
    spill_file file("/tmp", {100000, 100000}, 2, 1);
    std::vector<unsigned char> data(100000, 3);
    setrlimit(RLIMIT_FSIZE, &small);
    auto const t = file.store(1, data.data());
    CHECK_THROWS_WITH_AS(file.wait(t), doctest::Contains("cannot be written"), error);
    setrlimit(RLIMIT_FSIZE, &old);
    file.settle();
    setrlimit(RLIMIT_FSIZE, &small);
    CHECK_THROWS_WITH_AS(file.wait_saved(file.save(1, data.data())), doctest::Contains("cannot be written"), error);
    setrlimit(RLIMIT_FSIZE, &old);
    file.settle();
    file.wait(file.store(1, data.data()));
    std::vector<unsigned char> back(100000);
    file.wait(file.load(1, back.data()));
    CHECK(back == data);
  }
  std::signal(SIGXFSZ, handler);
}

TEST_CASE("a block that was never written is told apart") {
  spill_file file("/tmp", {10}, 1);
  char b[10];
  CHECK_THROWS_WITH_AS(file.wait(file.load(0, b)), doctest::Contains("never written"), error);
}

TEST_CASE("saves come back, whether they are waited for first or last") {
  random_stream draw(11);
  constexpr std::size_t n = 16;
  spill_file file("/tmp", std::vector<bytes_t>(n, 50000), 3, n / 2);
  std::vector<std::vector<unsigned char>> data(n, std::vector<unsigned char>(50000));
  for (int round = 0; round < 20; ++round) {
    std::vector<spill_file::ticket> tickets(n);
    for (auto& d : data)
      for (std::size_t i = 0; i < d.size(); i += 97) d[i] = static_cast<unsigned char>(draw());
    for (std::size_t i = 0; i < n / 2; ++i) tickets[i] = file.save(i, data[i].data());
    for (std::size_t i = n / 2; i < n; ++i) tickets[i] = file.store(i, data[i].data());
    for (int k = 0; k < 2 * static_cast<int>(n); ++k)
      if (auto const i = draw.below(n); i < n / 2) file.wait_saved(tickets[i]);
      else file.wait(tickets[i]);
    for (std::size_t i = 0; i < n; ++i) {
      if (i < n / 2) file.wait_saved(tickets[i]);
      std::vector<unsigned char> back(50000);
      file.wait(file.load(i, back.data()));
      CHECK(back == data[i]);
    }
  }
}
