// How long the verifier takes for a plan of a large imported graph: opaque ops with details, views, updates, and given
// latencies, with one value in twenty stored and loaded again. One CSV row a size, after the plan was judged right.
//
//   ops,steps,milliseconds          (of the processor, median of 9)
#include "../tests/support/opaque_graph.hpp"

#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

using namespace neap;

int main() {
  std::puts("ops,steps,milliseconds");
  for (std::size_t ops : {1'000, 10'000, 100'000}) {
    auto const g = testing::opaque_graph(7, ops * 4 / 9);
    graph_editor edit(g);
    std::size_t nth = 0;
    for (auto v : g.values())
      if (g.record(v).alias == alias_kind::fresh && g.producer(v) != nothing<op_id> && g.uses(v).size() > 1 &&
          !g.is_kept(v) && nth++ % 10 == 0) {
        auto const last = g.uses(v).back().op;
        edit.replace_uses(v, edit.add(op::load{}, {edit.add(op::store{}, {v})[0]})[0], std::span(&last, 1));
      }
    graph planned(std::move(edit).finish());
    given_or const cost{roofline::h100_like()};
    auto const order = reverse_post_order{}(planned);
    auto const p = make_plan(candidate{planned, order, simulate(planned, order, cost)}, g);
    stated_durations const said({{}, true, roofline::h100_like()});
    if (auto const v = verify_plan(g, p, said); !v) return std::fprintf(stderr, "%s\n", v.message().c_str()), 1;
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) {
      auto const begin = std::clock();
      bool const right = verify_plan(g, p, said).ok();
      times.push_back(static_cast<double>(std::clock() - begin) * 1e3 / CLOCKS_PER_SEC);
      if (!right) return 1;
    }
    std::nth_element(times.begin(), times.begin() + 4, times.end());
    std::printf("%zu,%zu,%.2f\n", g.op_count(), p.steps.size(), times[4]);
  }
}
