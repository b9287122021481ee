// What fusing chains of elementwise operators saves on the host: time, and bytes that pass through memory.
//
//   bench_fused_chains [--threads 2] [--repeats 15]
//
// One CSV row a case. chain: operators on a tensor, one after another and as one program (op::fused). reduction: a
// chain as one program and a reduction of its result, and both at once. step: a training step, plain and with its chains
// fused, planned in the program's order; with "rows" in its name, one with its chains and one with its functions of rows
// and reductions fused beside them; with "all", plain and with all of fuse(). Columns: kind, name, elements (of the chain's tensor), ops (of
// the chain; of the step, those that run), ops_fused, bytes (read and written by the chain, or by the step), bytes_fused, ms (least), ms_fused,
// peak_bytes, peak_fused (of steps: weights, states, batch and arena). Before timing, both are checked to give the same
// bits.
#include <neap/backend/host.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/llama.hpp>
#include <neap/model/zoo/resnet.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/train/fuse.hpp>

#include "../tests/support/bytes_moved.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace neap;

namespace {

int repeats = 15;

[[noreturn]] void fail(std::string const& what) {
  std::fprintf(stderr, "bench_fused_chains: %s\n", what.c_str());
  std::exit(1);
}

/// The least times of two ways in turn, in milliseconds.
template <class A, class B>
std::pair<double, double> times(A const& a, B const& b) {
  using clock = std::chrono::steady_clock;
  auto const once = [](auto const& f) {
    auto const start = clock::now();
    f();
    return std::chrono::duration<double, std::milli>(clock::now() - start).count();
  };
  a(), b();
  double first = 1e30, second = 1e30;
  for (int i = 0; i < repeats; ++i) first = std::min(first, once(a)), second = std::min(second, once(b));
  return {first, second};
}

struct owned {
  std::vector<float> bytes;
  tensor_ref ref;
  owned(dtype t, shape const& dims, std::uint64_t seed)
      : bytes(static_cast<std::size_t>((elements(dims) * size_of(t) + 3) / 4)),
        ref{bytes.data(), t, dims, dense_strides(dims)} {
    random_stream draw(seed);
    with_type(t, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (std::int64_t i = 0; i < ref.count(); ++i) ref.as<T>()[i] = neap::detail::convert<T>(draw.uniform() * 4 - 2);
    });
  }
};

double bytes_of(operator_view op, std::span<tensor_layout const> in, std::span<tensor_layout const> out) {
  auto const w = op.facets->cost(op.bytes, {in, out});
  return w.read + w.written;
}
tensor_layout layout_of(tensor_ref const& t) { return tensor_layout::dense({t.element, t.dims}); }

void run_chain(host_backend& backend, std::string const& name, element_program const& p,
               std::vector<owned> const& inputs) {
  auto const& dims = inputs[0].ref.dims;
  std::vector<owned> results;
  std::vector<tensor_ref> values;
  for (auto const& x : inputs) values.push_back(x.ref);
  struct launch {
    operator_facets const* facets;
    alignas(8) std::byte bytes[op::detail::max_step_bytes];
    std::vector<tensor_ref> in;
    tensor_ref out;
  };
  std::vector<launch> launches;
  double bytes = 0;
  results.reserve(element_program::max_steps);
  p.for_each_step([&](int, element_step const& s, op::detail::step_operator const& f, void const* attributes) {
    auto& l = launches.emplace_back();
    l.facets = standard_operators::facets[static_cast<std::size_t>(s.row)];
    std::memcpy(l.bytes, attributes, sizeof l.bytes);
    std::vector<tensor_layout> in;
    for (int i = 0; i < f.arguments; ++i) {
      l.in.push_back(values[static_cast<std::size_t>(s.operands[static_cast<std::size_t>(i)])]);
      in.push_back(layout_of(l.in.back()));
    }
    l.out = results.emplace_back(s.element, dims, 1).ref;
    auto const out = layout_of(l.out);
    bytes += bytes_of({l.facets, l.bytes}, in, {&out, 1});
    values.push_back(l.out);
  });
  owned const fused(results.back().ref.element, dims, 2);
  std::vector<tensor_layout> in;
  for (auto const& x : inputs) in.push_back(layout_of(x.ref));
  auto const out = layout_of(fused.ref);
  auto const one_by_one = [&] {
    for (auto const& l : launches) host_kernel (*l.facets)(backend, l.bytes, {l.in, {&l.out, 1}});
  };
  op::fused const whole{p};
  auto const kernel = host_kernel(facets_of<op::fused>);
  auto const at_once = [&] {
    kernel(backend, &whole, {std::span<tensor_ref const>(values).first(inputs.size()), {&fused.ref, 1}});
  };
  one_by_one(), at_once();
  if (results.back().bytes != fused.bytes) fail(name + ": the bits differ");
  auto const [plain, together] = times(one_by_one, at_once);
  std::printf("chain,%s,%lld,%d,1,%.0f,%.0f,%.3f,%.3f,,\n", name.c_str(), static_cast<long long>(elements(dims)),
              p.step_count, bytes, bytes_of(view_of(whole), in, {&out, 1}), plain, together);
}

void chains(host_backend& backend) {
  shape const s{2048, 1024}, row{1024};
  auto const of = [&](dtype t, std::initializer_list<shape> const& dims) {
    std::vector<owned> all;
    for (auto const& d : dims) all.emplace_back(t, d, all.size() + 3);
    return all;
  };
  constexpr auto f32 = dtype::f32;
  {
    element_program m(3);
    m.add(op::relu{}, f32, {*m.add(op::add{}, f32, {*m.add(op::add{}, f32, {0, 1}), 2})});
    run_chain(backend, "bias residual relu", m, of(f32, {s, row, s}));
  }
  {
    element_program m(3);
    m.add(op::mul{}, f32, {*m.add(op::gelu{true}, f32, {*m.add(op::add{}, f32, {0, 1})}), 2});
    run_chain(backend, "bias gelu gate", m, of(f32, {s, row, s}));
  }
  {
    element_program m(3);
    auto const sum = *m.add(op::add{}, f32, {0, 1});
    auto const scaled = *m.add(op::mul_scalar{0.5}, f32, {sum});
    auto const bounded = *m.add(op::clamp{-1, 1}, f32, {scaled});
    auto const slope = *m.add(op::relu_grad{}, f32, {bounded, 2});
    m.add(op::neg{}, f32, {*m.add(op::add_scalar{0.1}, f32, {slope})});
    run_chain(backend, "six cheap ones", m, of(f32, {s, s, s}));
  }
  {
    element_program m(2);
    auto const wide = *m.add(op::cast{f32}, f32, {0});
    auto const bent = *m.add(op::silu{}, f32, {wide});
    auto const narrow = *m.add(op::cast{dtype::bf16}, dtype::bf16, {bent});
    m.add(op::mul{}, dtype::bf16, {narrow, 1});
    run_chain(backend, "bf16 cast silu cast gate", m, of(dtype::bf16, {s, s}));
  }
}

/// A chain and a reduction of its result: the chain as one program before it, and both as one operator.
template <class Op>
void run_reduction(host_backend& backend, std::string const& name, element_program const& p, Op const& reduction,
                   std::vector<owned> const& inputs) {
  op::fused const before{p};
  auto both = op::fused::of(reduction);
  both.prologue = p;
  std::vector<tensor_ref> in;
  std::vector<tensor_layout> layouts;
  for (auto const& x : inputs) in.push_back(x.ref), layouts.push_back(layout_of(x.ref));
  auto const type = both.x_type(std::span<tensor_layout const>(layouts));
  owned const x(type.element, type.dims, 1);
  auto const whole = tensor_layout::dense(type);
  shape_context c(name, {&whole, 1});
  reduction.infer(c);
  auto const result = c.outputs()[0].layout;
  owned const one(result.type.element, result.type.dims, 2), other(result.type.element, result.type.dims, 3);
  std::vector<std::byte> workspace(static_cast<std::size_t>(both.workspace({layouts, {&result, 1}})));
  auto const chain = host_kernel(facets_of<op::fused>), reduce = host_kernel(facets_of<Op>),
             kernel = host_kernel(facets_of<op::fused>);
  auto const one_by_one = [&] {
    chain(backend, &before, {in, {&x.ref, 1}});
    reduce(backend, &reduction, {{&x.ref, 1}, {&one.ref, 1}, workspace.data()});
  };
  auto const at_once = [&] { kernel(backend, &both, {in, {&other.ref, 1}, workspace.data()}); };
  one_by_one(), at_once();
  if (one.bytes != other.bytes) fail(name + ": the bits differ");
  auto const [plain, together] = times(one_by_one, at_once);
  std::printf("reduction,%s,%lld,%d,1,%.0f,%.0f,%.3f,%.3f,,\n", name.c_str(), static_cast<long long>(type.count()), 2,
              bytes_of(view_of(before), layouts, {&whole, 1}) + bytes_of(view_of(reduction), {&whole, 1}, {&result, 1}),
              bytes_of(view_of(both), layouts, {&result, 1}), plain, together);
}

void reductions(host_backend& backend) {
  shape const s{2048, 1024}, row{1024}, tall{262144, 8};
  for (auto const t : {dtype::f32, dtype::bf16}) {
    auto const of = [&](std::initializer_list<shape> const& dims) {
      std::vector<owned> all;
      for (auto const& d : dims) all.emplace_back(t, d, all.size() + 3);
      return all;
    };
    auto const named = [&](char const* what) { return std::string(what) + " " + std::string(name_of(t)); };
    element_program product(2), error(2), slope(2);
    product.add(op::mul{}, t, {0, 1});
    error.add(op::square{}, t, {*error.add(op::sub{}, t, {0, 1})});
    slope.add(op::relu_grad{}, t, {0, 1});
    run_reduction(backend, named("squared error"), error, op::mean{}, of({s, s}));
    run_reduction(backend, named("weighted sums of rows"), product, op::sum{{1}, false}, of({s, row}));
    run_reduction(backend, named("gradient of a scale"), product, op::sum_to{row}, of({s, s}));
    run_reduction(backend, named("gradient of a bias of 8"), slope, op::sum_to{{8}}, of({tall, tall}));
  }
}

plan in_order(graph const& g) {
  auto order = given_order{}(g);
  auto result = simulate(g, order, no_cost{});
  return make_plan(candidate{g, std::move(order), std::move(result)}, g);
}

/// What is fused in one step, and in the other one.
struct two_ways {
  char const* name;
  fuse_options one, other;
};
template <class Model, class Sample>
void run_step(host_backend& backend, std::string const& name, Model model, Sample const& sample,
              training_options options, two_ways const& ways) {
  initialise(model, 5);
  auto other = model;
  auto const step = [&](auto& of) { return training_step(of, sample, cross_entropy{}, adamw{.rate = 1e-3}, options); };
  auto const plain = fuse(step(model), ways.one), fused = fuse(step(other), ways.other);
  auto const ops = [](graph const& g) {
    std::size_t n = 0;
    for (auto o : g.ops()) n += !flow::is_view(g, o);
    return n;
  };
  auto const p = in_order(plain.program), q = in_order(fused.program);
  trainer one(plain, p, backend), two(fused, q, backend);
  for (int i = 0; i < 2; ++i)
    if (one(sample) != two(sample)) fail(name + ": the losses differ");
  auto const [ms, ms_fused] = times([&] { one(sample); }, [&] { two(sample); });
  std::printf("step,%s,,%zu,%zu,%.0f,%.0f,%.3f,%.3f,%lld,%lld\n", name.c_str(), ops(plain.program), ops(fused.program),
              testing::bytes_moved(plain.program), testing::bytes_moved(fused.program), ms, ms_fused,
              static_cast<long long>(p.arena_bytes), static_cast<long long>(q.arena_bytes));
}

tensor numbers(shape const& dims, std::int64_t below) {
  std::vector<std::int64_t> n;
  for (std::int64_t i = 0; i < elements(dims); ++i) n.push_back((i * 7919 + 3) % below);
  return tensor::from(n, dims);
}

void steps(host_backend& backend) {
  training_options low;
  low.precision = mixed{dtype::bf16};
  zoo::gpt_config small;
  small.vocabulary = 512, small.context = 128, small.width = 256, small.heads = 8, small.layers = 4;
  std::pair const text{numbers({8, 128}, 512), numbers({8, 128}, 512)};
  zoo::llama_config narrow;
  narrow.vocabulary = 512, narrow.context = 128, narrow.width = 256, narrow.heads = narrow.key_heads = 8;
  narrow.layers = 4, narrow.hidden = 688;
  std::pair const images{tensor::randn({8, 3, 64, 64}, 1), numbers({8}, 4)};
  constexpr fuse_options none{false, false, false}, chains{false, false, true}, rows{false, true, true};
  for (two_ways const& ways : {two_ways{"", none, chains}, {" rows", chains, rows}, {" all", none, {}}})
    for (auto const& [suffix, options] : {std::pair{"", training_options{}}, std::pair{" bf16", low}}) {
      auto const name = [&](char const* model) { return std::string(model) + suffix + ways.name; };
      run_step(backend, name("gpt"), zoo::gpt(small), text, options, ways);
      run_step(backend, name("llama"), zoo::llama(narrow), text, options, ways);
      run_step(backend, name("resnet"), zoo::resnet(zoo::resnet_config::toy()), images, options, ways);
    }
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 2;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string const flag = argv[i];
    if (flag == "--threads") threads = std::atoi(argv[i + 1]);
    else if (flag == "--repeats") repeats = std::atoi(argv[i + 1]);
    else fail("unknown flag " + flag);
  }
  host_backend backend(threads);
  std::puts("kind,name,elements,ops,ops_fused,bytes,bytes_fused,ms,ms_fused,peak_bytes,peak_fused");
  chains(backend);
  reductions(backend);
  steps(backend);
}
