// Operations that have been issued, executed in a random order among those that their dependences allow.
#pragma once

#include "access_history.hpp"
#include "simulated_device.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing {

/// What an operation has touched, and how it went.
struct outcome {
  std::vector<access_range> reads, writes;
  cudaError_t error = cudaSuccess;
  double seconds = 1e-6;  // simulated
};

/// What an operation does: the same for each launch of a graph.
struct work {
  device_work kind{};
  std::string name;
  std::size_t bytes = 0;
  std::function<outcome()> run = {};
  std::vector<access_range> pinned_reads = {}, pinned_writes = {};  // host memory, until the operation has finished
};

struct operation {
  std::shared_ptr<work const> what;  // null: it only orders others
  std::size_t number = 0;            // in the list of operations, if it does something
  point when;
  vector_clock known;  // itself included
  std::size_t waits_for = 0;
  std::vector<std::shared_ptr<operation>> followers;
  double finished = 0;  // simulated time in seconds, the dependences' first
  bool done = false;
};
using operation_ptr = std::shared_ptr<operation>;

class work_queue {
 public:
  /// Called for each operation that does something, when its turn has come.
  std::function<void(operation&)> execute;

  void seed(std::uint64_t s) {
    shuffled_ = s != 0;
    random_.seed(s);
  }
  bool shuffled() const { return shuffled_; }
  std::mt19937_64& random() { return random_; }

  /// An operation on a chain, after others (null ones are left out).
  operation_ptr add(std::shared_ptr<work const> what, std::uint32_t chain, std::span<operation_ptr const> after,
                    vector_clock const& host) {
    auto made = std::make_shared<operation>();
    made->what = std::move(what);
    made->known = host;
    if (last_.size() <= chain) last_.resize(chain + 1, 0);
    made->when = {chain, ++last_[chain], 0};
    for (auto const& p : after) {
      if (!p) continue;
      made->known.join(p->known);
      if (p->done) {
        made->finished = std::max(made->finished, p->finished);
        continue;
      }
      p->followers.push_back(made);
      ++made->waits_for;
    }
    made->known.join(made->when);
    ++pending_;
    if (made->waits_for == 0) ready_.push_back(made);
    return made;
  }
  std::uint32_t new_chain() {
    last_.push_back(0);
    return static_cast<std::uint32_t>(last_.size() - 1);
  }
  /// The point behind the last one of a chain, for what happens at once.
  point next_point(std::uint32_t chain) {
    if (last_.size() <= chain) last_.resize(chain + 1, 0);
    return {chain, ++last_[chain], 0};
  }
  void run_until(operation const& o) {
    while (!o.done) step();
  }
  void run_all() {
    while (pending_) step();
  }
  /// The device goes on by itself: chance executes some operations, or none.
  void progress() {
    if (!shuffled_ || random_() % 4) return;
    for (auto n = random_() % 8; n && pending_; --n) step();
  }
  /// The same while the program polls: it makes progress in the end.
  void poll() {
    if (shuffled_) progress();
    else if (pending_) step();
  }

 private:
  bool shuffled_ = false;
  std::mt19937_64 random_;
  std::vector<operation_ptr> ready_;  // in the order in which they became so
  std::vector<std::uint32_t> last_;   // point of each chain
  std::size_t pending_ = 0;

  void step() {
    std::size_t k = 0;
    if (shuffled_) {
      k = random_() % ready_.size();
    } else {  // in the order of issue
      for (std::size_t i = 1; i < ready_.size(); ++i)
        if (ready_[i]->number < ready_[k]->number) k = i;
    }
    operation_ptr const o = std::move(ready_[k]);
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(k));
    if (o->what) execute(*o);
    o->done = true;
    o->what.reset();
    --pending_;
    for (auto const& f : o->followers) {
      f->finished = std::max(f->finished, o->finished);
      if (--f->waits_for == 0) ready_.push_back(f);
    }
    o->followers.clear();
  }
};

}  // namespace neap::testing
