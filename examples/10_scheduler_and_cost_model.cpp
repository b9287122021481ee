// Lesson 10: a scheduler orders every graph that the search looks at, a cost model gives the time of an op. Both are
// function objects, handed to optimize in any order.
#include <neap/neap.hpp>

#include <cstdio>

// Depth first from the ops whose results are kept: an op's inputs just before it.
struct depth_first {
  template <class G>
  neap::schedule operator()(G const& g) const {
    neap::schedule s;
    std::vector<bool> done(g.op_count());
    auto const visit = [&](auto const& self, neap::op_id o) -> void {
      if (done[neap::index(o)]) return;
      done[neap::index(o)] = true;
      for (auto v : g.inputs(o))
        if (g.producer(v) != neap::nothing<neap::op_id>) self(self, g.producer(v));
      for (auto before : g.order_after(o)) self(self, before);  // readers of what o overwrites
      s.order.push_back(o);
    };
    for (auto o : g.ops()) visit(visit, o);
    return s;
  }
};

// Time by what is computed alone, at 50 Gflop/s: memory is free on this machine.
struct flops_only {
  template <class G>
  neap::seconds_t operator()(G const& g, neap::op_id o) const {
    return neap::flow::cost(g, o).flops / 50e9;
  }
};

struct network {
  std::vector<neap::nn::linear> layers{{64, 64}, {64, 64}, {64, 64}, {64, 8}};
  neap::tensor operator()(neap::tensor x) const {
    for (auto const& l : layers) x = neap::gelu(l(x));
    return x;
  }
};

int main() {
  network model;
  auto const x = neap::tensor::randn({512, 64}, 1);
  auto const step = neap::training_step(model, std::pair{x, neap::tensor::zeros({512, 8})}, neap::mse{}, neap::sgd{});
  neap::search_options few;
  few.iterations = 100;
  auto const found = neap::optimize(step, neap::rematerialize{}, few, depth_first{}, flops_only{},
                                    neap::memory_limit::of_original(0.9));
  bool const is_ours = depth_first{}(found.best.graph).order == found.best.order.order;
  std::printf("peak %.2f of the original in %.2f of its time, in %s order\n",
              static_cast<double>(found.best.result.peak_bytes) / static_cast<double>(found.original.peak_bytes),
              found.best.result.latency / found.original.latency, is_ours ? "our" : "another");
  return found.fits ? 0 : 1;
}
