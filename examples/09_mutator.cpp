// Lesson 9: a mutator of one's own is a function object from a candidate to a stream of mutations; combinators compose it
// with the library's when compiling.
#include <neap/neap.hpp>

#include <cstdio>

// A mutation is a small value that describes one edit. This one runs an op one position later.
struct later {
  std::uint32_t position = 0;
  friend bool operator==(later const&, later const&) = default;

  std::optional<neap::edited> apply(neap::candidate const& c) const {
    neap::schedule order = c.order;
    std::swap(order.order[position], order.order[position + 1]);
    if (!neap::check_order(c.graph, order)) return std::nullopt;  // one needs the other
    return neap::edited{c.graph, order};
  }
  std::string describe(neap::candidate const&) const {
    return "the op at position " + std::to_string(position) + " runs one later";
  }
};

// The mutator: a lazy stream of such edits near the peak.
struct shuffle {
  std::uint32_t reach = 8;
  auto operator()(neap::candidate const& c) const {
    struct stream {
      std::uint32_t at, end;
      std::optional<later> next() { return at < end ? std::optional(later{at++}) : std::nullopt; }
    };
    auto const peak = c.result.peak_position, last = static_cast<std::uint32_t>(c.order.size()) - 1;
    return stream{peak > reach ? peak - reach : 0, std::min(peak + reach, last)};
  }
};

struct network {
  std::vector<neap::nn::linear> layers{{64, 64}, {64, 64}, {64, 64}, {64, 64}, {64, 64}, {64, 8}};
  neap::tensor operator()(neap::tensor x) const {
    for (auto const& l : layers) x = neap::gelu(l(x));
    return x;
  }
};

int main() {
  network model;
  auto const x = neap::tensor::randn({512, 64}, 1);
  auto const step = neap::training_step(model, std::pair{x, neap::tensor::zeros({512, 8})}, neap::mse{}, neap::sgd{});

  constexpr auto moves = neap::zip(shuffle{} | neap::truncate(16), neap::rematerialize{} | neap::truncate(16));
  neap::search_options few;
  few.iterations = 300;
  auto const found = neap::optimize(step, moves, few, neap::memory_limit::of_original(0.7));
  int mine = 0;
  for (auto const& s : found.steps) mine += s.how.find("runs one later") != std::string::npos;
  std::printf("peak %.2f of the original after %zu edits, %d of them ours\n",
              static_cast<double>(found.best.result.peak_bytes) / static_cast<double>(found.original.peak_bytes),
              found.steps.size(), mine);
  return found.fits ? 0 : 1;
}
