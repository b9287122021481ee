#include <neap/train/loader.hpp>

#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace neap;
using neap::testing::message_of;

namespace {
using rows = std::vector<std::int64_t>;
constexpr auto numbers = [](std::span<std::int64_t const> r) { return rows(r.begin(), r.end()); };

/// The batches of so many epochs.
template <class Loader>
std::vector<std::vector<rows>> epochs_of(Loader& data, int count) {
  std::vector<std::vector<rows>> all(static_cast<std::size_t>(count));
  for (auto& epoch : all)
    while (auto const b = data.next()) epoch.push_back(*b);
  return all;
}
}  // namespace

TEST_CASE("each epoch has each row once, in an order of its own, the same ahead or not") {
  for (auto last : {last_batch::smaller, last_batch::padded, last_batch::dropped})
    for (bool shuffle : {true, false}) {
      loader_options o{.batch = 4, .seed = 3, .shuffle = shuffle, .last = last, .ahead = 0};
      loader at_once(11, numbers, o);
      auto const all = epochs_of(at_once, 3);
      for (std::size_t ahead : {1, 5}) {
        o.ahead = ahead;
        loader before(11, numbers, o);
        CHECK(epochs_of(before, 3) == all);
      }
      for (auto const& epoch : all) {
        rows seen;
        for (auto const& b : epoch) seen.insert(seen.end(), b.begin(), b.end());
        CHECK(epoch.size() == (last == last_batch::dropped ? 2 : 3));
        CHECK(epoch.back().size() == (last == last_batch::smaller ? 3 : 4));
        std::erase(seen, -1);
        CHECK(seen.size() == (last == last_batch::dropped ? 8 : 11));
        CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == seen.size());
        CHECK(std::is_sorted(seen.begin(), seen.end()) == !shuffle);
      }
      CHECK((all[0] != all[1]) == shuffle);
      // From any place on.
      for (std::int64_t e = 0; e < 3; ++e)
        for (std::int64_t b = 0; b <= at_once.batches(); ++b) {
          o.from = {e, b};
          loader resumed(11, numbers, o);
          CHECK(resumed.place() == o.from);
          auto const left = epochs_of(resumed, 1)[0];
          auto const& whole = all[static_cast<std::size_t>(e)];
          CHECK(left == std::vector<rows>(whole.begin() + static_cast<std::ptrdiff_t>(b), whole.end()));
          CHECK(resumed.place() == loader_place{e + 1, 0});
        }
    }
}

TEST_CASE("rows of tensors: padding leaves a loss as it is, and one size of batches is enough") {
  auto const x = tensor::randn({10, 6}, 1);
  std::pair const all{transpose(copy(transpose(x))), arg_max(slice(x, 1, 0, 3), 1)};
  loader smaller(10, rows_of(all), {.batch = 4, .seed = 1});
  loader padded(10, rows_of(all), {.batch = 4, .seed = 1, .last = last_batch::padded});
  nn::linear model(6, 3);
  initialise(model, 1);
  for (int i = 0; i < 3; ++i) {
    auto const a = smaller.next(), b = padded.next();
    REQUIRE((a && b));
    CHECK(b->first.shape() == shape{4, 6});
    CHECK(a->first.shape() == shape{i == 2 ? 2 : 4, 6});
    CHECK(cross_entropy{}(model(a->first), a->second).item<double>() ==
          doctest::Approx(cross_entropy{}(model(b->first), b->second).item<double>()).epsilon(1e-6));
    if (i == 2) CHECK(b->second.values<std::int64_t>()[3] == -100);
  }
  CHECK_FALSE(smaller.next());
  CHECK(smaller.next()->first.size(0) == 4);
}

TEST_CASE("a batch is padded with numbers of the user's") {
  std::pair const all{arg_max(tensor::randn({5, 2, 7}, 1), 2), arg_max(tensor::randn({5, 2, 7}, 2), 2)};
  loader data(5, rows_of(all, {{"0", 6}}), {.batch = 4, .shuffle = false, .last = last_batch::padded});
  (void)data.next();
  auto const b = data.next();
  auto tokens = slice(all.first, 0, 4, 5).values<std::int64_t>(),
       targets = slice(all.second, 0, 4, 5).values<std::int64_t>();
  tokens.resize(8, 6), targets.resize(8, -100);
  CHECK(b->first.values<std::int64_t>() == tokens);
  CHECK(b->second.values<std::int64_t>() == targets);
  CHECK(message_of([&] {
          rows_of(all, {{"tokens", 0}});
        }).find("no tensor \"tokens\" to pad with 0") != std::string::npos);
}

TEST_CASE("what a batch's function throws, next() throws, and the loader goes on") {
  for (std::size_t ahead : {0, 3}) {
    loader data(6,
                [](std::span<std::int64_t const> r) {
                  if (r[0] == 2) throw_error({"row 2 cannot be read"});
                  return r[0];
                },
                {.batch = 1, .shuffle = false, .ahead = ahead});
    rows seen;
    for (int i = 0; i < 6; ++i)
      if (auto const what = message_of([&] { seen.push_back(*data.next()); }); i == 2)
        CHECK(what.find("row 2 cannot be read") != what.npos);
    CHECK(seen == rows{0, 1, 3, 4, 5});
    CHECK_FALSE(data.next());
  }
  auto const said = [](std::int64_t n, loader_options const& o) { return message_of([&] { loader(n, numbers, o); }); };
  CHECK(said(0, {}).find("got 0 and 32") != std::string::npos);
  CHECK(said(3, {.batch = -1}).find("got 3 and -1") != std::string::npos);
  CHECK(said(3, {.batch = 4, .last = last_batch::dropped}).find("3 rows make no batch of 4") != std::string::npos);
  CHECK(said(8, {.batch = 4, .from = {0, 3}}).find("no batch 3 of epoch 0: an epoch has 2") != std::string::npos);
}
