// Batches of a data set, epoch after epoch: in an order that a seed fixes, made ahead on a thread, from any place on.
//
//   neap::loader data(50'000, neap::rows_of(std::pair{images, labels}), {.batch = 64, .seed = 1});
//   while (auto const batch = data.next()) run(*batch);   // an epoch; the next call begins another one
//
// A run that was stopped goes on with the same batches: keep data.place(), and give it as loader_options::from. Not in the
// umbrella header: include it where it is used.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/parameters.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// The next batch of a loader.
struct loader_place {
  std::int64_t epoch = 0, batch = 0;
  friend bool operator==(loader_place const&, loader_place const&) = default;
};

/// What the last batch of an epoch is, where batches do not divide the data: smaller, filled with rows that do not count,
/// or left out.
enum class last_batch : std::uint8_t { smaller, padded, dropped };

struct loader_options {
  std::int64_t batch = 32;  // rows
  std::uint64_t seed = 0;   // of the orders: each epoch has its own
  bool shuffle = true;
  last_batch last = last_batch::smaller;
  std::size_t ahead = 2;  // batches that a thread makes beforehand; 0: none, each is made when it is wanted
  loader_place from{};
};

/// Picks rows of a sample's tensors, which are the whole data, along axis 0. A row of -1 pads: it has zeros, and -100 where
/// elements are i64 or i32, a target that cross_entropy leaves out. Another number is given by the tensor's path in the
/// sample, as tokens that a table is indexed by need it: rows_of(std::pair{tokens, targets}, {{"0", 0}}).
template <class Sample>
class rows_of {
 public:
  explicit rows_of(Sample all, std::map<std::string, double> const& padding = {},
                   std::source_location at = std::source_location::current())
      : all_(std::move(all)) {
    for_each_tensor(all_, [&](tensor& x, std::string const& path) {
      if (x.is_empty()) return;
      x = contiguous(x.detach());
      (void)x.ref();  // its memory is there before a thread reads it
      auto const p = padding.find(path);
      bool const is_target = x.element() == dtype::i64 || x.element() == dtype::i32;
      padding_[path] = tensor::full({1}, p != padding.end() ? p->second : is_target ? -100 : 0, x.element());
      (void)padding_[path].ref();
    });
    for (auto const& [path, number] : padding)
      if (!padding_.contains(path))
        throw_error(at, {"loader: the sample has no tensor \"", path, "\" to pad with ", number});
  }
  Sample operator()(std::span<std::int64_t const> rows) const {
    Sample picked = all_;
    for_each_tensor(picked, [&](tensor& x, std::string const& path) {
      if (!x.is_empty() && x.rank() > 0) x = pick(x, rows, padding_.at(path));
    });
    return picked;
  }

 private:
  static tensor pick(tensor const& all, std::span<std::int64_t const> rows, tensor const& padding) {
    auto type = all.type();
    auto const count = type.dims[0];
    type.dims[0] = static_cast<std::int64_t>(rows.size());
    tensor const made = tensor::lazy(type);
    auto* to = made.storage()->data();
    auto const from = all.ref();
    auto const bytes = count > 0 ? static_cast<std::size_t>(all.type().bytes() / count) : 0;
    auto const element = static_cast<std::size_t>(size_of(type.element));
    void const* const number = padding.ref().data;
    for (auto row : rows) {
      if (row >= count)
        throw_error(
            {"loader: row ", row, " of ", all.type(), ": the loader's number of rows is larger than the data's"});
      if (row >= 0)
        std::memcpy(to, static_cast<std::byte const*>(from.data) + static_cast<std::size_t>(row) * bytes, bytes);
      else
        for (std::size_t i = 0; i < bytes; i += element) std::memcpy(to + i, number, element);
      to += bytes;
    }
    return made;
  }

  Sample all_;
  std::map<std::string, tensor> padding_;  // an element for each tensor
};

/// `F` gives the batch of some rows, called with std::span<std::int64_t const>: rows_of, or a function that reads files. It
/// is called by one thread at a time, another one than the loader's user where batches are made ahead. What it throws,
/// next() throws in the place of that batch.
template <class F>
class loader {
 public:
  using batch_type = std::decay_t<std::invoke_result_t<F const&, std::span<std::int64_t const>>>;

  /// `rows`: of the data.
  loader(std::int64_t rows, F fetch, loader_options const& o = {},
         std::source_location at = std::source_location::current())
      : rows_(rows),
        fetch_(std::move(fetch)),
        o_(o),
        place_(o.from),
        made_(o.from) {
    if (rows < 1 || o.batch < 1)
      throw_error(at, {"loader: takes at least one row and batches of at least one, got ", rows, " and ", o.batch});
    if (batches() == 0)
      throw_error(at, {"loader: ", rows, " rows make no batch of ", o.batch, ", and smaller ones are dropped"});
    if (o.from.epoch < 0 || o.from.batch < 0 || o.from.batch > batches())
      throw_error(
          at, {"loader: there is no batch ", o.from.batch, " of epoch ", o.from.epoch, ": an epoch has ", batches()});
    if (o.ahead > 0) thread_ = std::thread([this] { work(); });
  }
  loader(loader const&) = delete;
  loader& operator=(loader const&) = delete;
  ~loader() {
    if (!thread_.joinable()) return;
    {
      std::scoped_lock const lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// The next batch; nothing at the end of an epoch, and then the first one of the next.
  std::optional<batch_type> next() {
    if (place_.batch == batches()) {
      place_ = {place_.epoch + 1, 0};
      return {};
    }
    auto const taken = o_.ahead > 0 ? take() : made(place_);
    ++place_.batch;
    if (taken.why) std::rethrow_exception(taken.why);
    return taken.batch;
  }
  /// Which batch next() gives: of a stopped run, loader_options::from of the one that goes on.
  loader_place place() const { return place_; }
  /// Of an epoch.
  std::int64_t batches() const {
    return o_.last == last_batch::dropped ? rows_ / o_.batch : (rows_ + o_.batch - 1) / o_.batch;
  }

 private:
  struct one {
    std::optional<batch_type> batch;
    std::exception_ptr why;
  };

  /// The rows of an epoch in its order.
  std::vector<std::int64_t> order(std::int64_t epoch) const {
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows_));
    random_stream draw(o_.seed, static_cast<std::uint64_t>(epoch) + 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const k = o_.shuffle ? static_cast<std::size_t>(draw.below(static_cast<std::uint32_t>(i + 1))) : i;
      all[i] = all[k], all[k] = static_cast<std::int64_t>(i);
    }
    return all;
  }
  /// Called by one thread.
  one made(loader_place const& p) {
    if (p.epoch != ordered_ || order_.empty()) order_ = order(p.epoch), ordered_ = p.epoch;
    auto const from = static_cast<std::size_t>(p.batch * o_.batch);
    auto const to = std::min(from + static_cast<std::size_t>(o_.batch), order_.size());
    std::vector<std::int64_t> rows(order_.begin() + static_cast<std::ptrdiff_t>(from),
                                   order_.begin() + static_cast<std::ptrdiff_t>(to));
    if (o_.last == last_batch::padded) rows.resize(static_cast<std::size_t>(o_.batch), -1);
    one x;
    try {
      x.batch = fetch_(std::span<std::int64_t const>(rows));
    } catch (...) { x.why = std::current_exception(); }
    return x;
  }
  one take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    one first = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return first;
  }
  void work() {
    for (;;) {
      if (made_.batch == batches()) made_ = {made_.epoch + 1, 0};
      one x = made(made_);
      ++made_.batch;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || ready_.size() < o_.ahead; });
      if (ends_) return;
      ready_.push_back(std::move(x));
      lock.unlock();
      changed_.notify_all();
    }
  }

  std::int64_t rows_;
  F fetch_;
  loader_options o_;
  loader_place place_, made_;  // of the user; of the thread
  std::vector<std::int64_t> order_;
  std::int64_t ordered_ = -1;  // the epoch that it is of
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<one> ready_;
  bool ends_ = false;
  std::thread thread_;
};
template <class F>
loader(std::int64_t, F) -> loader<F>;
template <class F>
loader(std::int64_t, F, loader_options) -> loader<F>;

}}  // namespace neap::v0
