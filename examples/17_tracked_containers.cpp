// Lesson 17: containers that a compiled function keeps from call to call. A bounded history and a table of features are
// tracked: appending depends on nothing, and what decides (a length, a key) is part of the path. A container of another
// kind is tracked by its rules, in one place.
#include <neap/execute/compile.hpp>
#include <neap/neap.hpp>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

// A stack whose element 0 is the newest: not what std::vector has.
struct newest_first {
  std::deque<neap::tensor> all;
};
template <>
struct neap::sequence_rules<newest_first> {
  using value_type = neap::tensor;
  static std::size_t size(newest_first const& c) { return c.all.size(); }
  static neap::tensor const& at(newest_first const& c, std::size_t i) { return c.all[c.all.size() - 1 - i]; }
  static void insert(newest_first& c, std::size_t i, neap::tensor x) {
    c.all.insert(c.all.end() - static_cast<std::ptrdiff_t>(i), std::move(x));
  }
  static void erase(newest_first& c, std::size_t i) { c.all.erase(c.all.end() - 1 - static_cast<std::ptrdiff_t>(i)); }
};

struct model {
  neap::nn::linear layer{8, 8};
  neap::tracked_vector<neap::tensor> history;
  neap::tracked_map<std::string, neap::tensor> features;
  neap::tracked_sequence<newest_first> recent;
};

neap::tensor forward(model& m, neap::tensor const& x) {
  neap::tensor y = neap::tanh(m.layer(x));
  m.history.push_back(y);
  if (m.history.size() > 3) m.history.erase(m.history.begin());
  for (auto const& past : m.history) y = y + past;
  if (m.features.contains("mean")) y = y - m.features.at("mean");
  m.features["mean"] = neap::mean(y, {0});
  m.recent.insert(std::size_t{0}, x);
  if (m.recent.size() > 2) m.recent.pop_back();
  return y + m.recent.front();
}

int main() {
  model compiled, eager;
  neap::initialise(compiled.layer, 1), neap::initialise(eager.layer, 1);
  auto step = neap::compile(forward);
  bool same = true;
  for (std::uint64_t i = 0; i < 40; ++i) {
    auto const x = neap::tensor::randn({4, 8}, i + 1);
    same = same && step(compiled, x).values<float>() == forward(eager, x).values<float>();
  }
  // Four lengths of the history at the beginning of a call; the later ones are hits.
  std::printf("%zu entries in %zu graphs, %s the plain function\n", compiled.history.size().plain(), step.graphs(),
              same ? "the bits of" : "NOT THE BITS OF");
  return same && step.graphs() == 4 && compiled.history.size().plain() == 3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
