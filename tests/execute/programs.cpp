// Whatever runs eagerly runs traced and planned, to the last bit: random programs of the DSL (tests/support/random_program.hpp)
// train a few steps eagerly, op by op in the traced order, and by plans under several limits, with takeover and without, on
// one thread and two, half of them with elementwise operators fused, half with products and their epilogues, a third with
// functions of rows, a quarter by plans that were written to a file and read. Losses, gradients, what the step tells besides, weights, buffers, optimizer states and the batch itself are the same each time.
// Some come with a smaller batch in the middle.
//
//   NEAP_PROGRAMS=20000 test_execute --source-file='*programs.cpp'     more of them
//   NEAP_PROGRAM=1234 test_execute --source-file='*programs.cpp'       that one
#include <neap/execute/trainer.hpp>

#include "../support/random_program.hpp"

#include <neap/import/plan_reader.hpp>
#include <neap/ir/verify.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/train/fuse.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/sanitized.hpp"
#include "../train/run_program.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace neap;
using namespace neap::testing;

namespace {

using bytes = std::vector<std::byte>;

constexpr int steps = 3;

bytes bytes_of(tensor_ref const& t) {
  bytes b;
  auto const size = static_cast<std::size_t>(size_of(t.element));
  extents i = extents::filled(t.rank(), 0);
  for (std::int64_t n = t.count(); n > 0; --n) {
    std::int64_t at = 0;
    for (int k = 0; k < t.rank(); ++k) at += i[k] * t.strides[k];
    auto const* from = static_cast<std::byte const*>(t.data) + at * static_cast<std::int64_t>(size);
    b.insert(b.end(), from, from + size);
    for (int k = t.rank() - 1; k >= 0 && ++i[k] == t.dims[k]; --k) i[k] = 0;
  }
  return b;
}

/// An optimizer that hands out the gradients it is given when steps are taken at once.
template <class Optimizer>
struct watched : Optimizer {
  std::vector<bytes>* seen = nullptr;
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const {
    if (!g.is_traced()) seen->push_back(bytes_of(g.ref()));
    Optimizer::update(w, g, s, in);
  }
};

/// What is compared, after each step.
struct outcome {
  bytes loss;
  std::vector<bytes> gradients;                       // where they are kept
  std::vector<std::pair<std::string, bytes>> told;    // outputs, by their names
  std::vector<std::pair<std::string, bytes>> memory;  // weights, buffers, states, the batch
};
using trail = std::vector<outcome>;

template <class Optimizer>
void note_memory(outcome& o, random_program& model, training_state& state, Optimizer const& how,
                 std::vector<tensor> const& batch) {
  for_each_tensor(model, [&](tensor const& t, std::string const& path) {
    if (!t.is_empty()) o.memory.emplace_back(path, bytes_of(t.ref()));
  });
  for (auto const& [name, w] : named_tensors(model, role::weight)) {
    auto const types = neap::detail::state_types(how, w, name);
    auto const& states = state.of(w, types);
    for (std::size_t k = 0; k < types.size(); ++k)
      o.memory.emplace_back(name + "." + std::string(Optimizer::states[k]), bytes_of(states[k].ref()));
  }
  o.memory.emplace_back("step", bytes_of(state.counter().ref()));
  o.memory.emplace_back("loss scale", bytes_of(state.loss_scale_source().ref()));
  o.memory.emplace_back("good steps", bytes_of(state.good_steps_source().ref()));
  for (auto const& x : batch) o.memory.emplace_back("batch", bytes_of(x.ref()));
}

/// Where two runs part; empty if nowhere.
std::string difference(trail const& a, trail const& b, bool gradients) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto const where = " of step " + std::to_string(i);
    if (a[i].loss != b[i].loss) return "the loss" + where;
    if (gradients && a[i].gradients.size() != b[i].gradients.size()) return "the number of gradients" + where;
    for (std::size_t k = 0; gradients && k < a[i].gradients.size(); ++k)
      if (a[i].gradients[k] != b[i].gradients[k]) return "gradient " + std::to_string(k) + where;
    if (a[i].told.size() != b[i].told.size()) return "the number of outputs" + where;
    for (std::size_t k = 0; k < a[i].told.size(); ++k)
      if (a[i].told[k] != b[i].told[k]) return "the output " + a[i].told[k].first + where;
    if (a[i].memory.size() != b[i].memory.size()) return "the number of tensors" + where;
    for (std::size_t k = 0; k < a[i].memory.size(); ++k)
      if (a[i].memory[k].second != b[i].memory[k].second) return a[i].memory[k].first + where;
  }
  return {};
}

template <class Sample>
Sample sample_of(std::vector<tensor> const& x) {
  if constexpr (std::is_same_v<Sample, std::pair<tensor, tensor>>) return {x[0], x[1]};
  else if constexpr (std::is_same_v<Sample, std::tuple<tensor, tensor, tensor>>) return {x[0], x[1], x[2]};
  else if constexpr (std::is_same_v<Sample, record_sample>) return {x[0], x[1], {x.begin() + 2, x.end()}};
  else return x;
}
constexpr auto run_model = [](random_program& model, auto const& sample) {
  auto copy = sample;
  std::vector<tensor> all;
  for_each_tensor(copy, [&](tensor const& t, std::string const&) { all.push_back(t); });
  return model.tell(all);
};

constexpr auto moves = zip(rematerialize{} | truncate(16), neap::swap{1e9} | truncate(6));

struct planning {
  double limit;
  bool takeover;
  int threads;
};
constexpr planning plannings[] = {{0.8, true, 1},  {0.6, false, 2},  {0.4, true, 2}, {0.05, true, 1},
                                  {0.4, false, 1}, {0.05, false, 2}, {0.6, true, 2}, {0.8, false, 1}};

struct tally {
  std::size_t programs = 0, refused_at_once = 0, copies = 0, transfers = 0, finite = 0, outputs = 0, grouped = 0,
              smaller = 0, in_parts = 0, no_sums = 0, fused = 0, epilogues = 0, rows = 0, reductions = 0, files = 0;
  double first_loss = 0;  // of the last program, taken eagerly
};

/// The plan as a file holds it.
plan from_file(plan const& p) {
  auto const back = io::parse_plan(plan_json(p, {}), "plan");
  if (!back.ok()) throw error(back.message());
  return back->planned;
}

template <class Sample, class Optimizer>
std::string run_one(program_form const& f, Optimizer const& how, std::size_t plans, tally& seen) {
  auto const batches = [&] {
    std::vector<std::vector<tensor>> all;
    for (int i = 0; i < steps; ++i) all.push_back(random_batch(f, static_cast<std::uint64_t>(i)));
    return all;
  };
  host_backend one(1), two(2);

  trail eager;
  try {
    std::vector<bytes> gradients;
    watched<Optimizer> const optimizer{how, &gradients};
    random_program model(f);
    training_state state;
    auto options = f.options;
    options.groups = random_groups(model, f.seed, f.groups);
    seen.grouped += options.groups.size();
    for (auto const& b : batches()) {
      gradients.clear();
      // eager_step, and what it was told
      auto const at = std::source_location::current();
      auto numbers = neap::detail::numbers_of(neap::detail::optimizer_ref(optimizer), options, state, at);
      numbers.set({}, at);
      auto const batch = sample_of<Sample>(b);
      auto const made = neap::detail::take_step(
          {neap::detail::model_ref(model), {run_model, model, batch}, neap::detail::optimizer_ref(optimizer)}, state,
          options, numbers, at);
      if (eager.empty()) seen.first_loss = made.loss.template item<double>();
      if (std::isfinite(made.loss.template item<double>())) ++seen.finite;
      eager.push_back({bytes_of(made.loss.ref()), gradients, {}, {}});
      for (auto const& o : made.outputs) eager.back().told.emplace_back(o.name, bytes_of(o.tensor.ref()));
      seen.outputs += made.outputs.size();
      seen.smaller += b[0].size(0) < f.inputs[0].dims[0];
      note_memory(eager.back(), model, state, how, b);
    }
  } catch (error const& e) {
    ++seen.refused_at_once;
    return std::string("eagerly: ") + e.what();
  }

  digest traced{};
  auto const with_program = [&](auto const& run) -> trail {
    random_program model(f);
    training_state state;
    auto options = f.options;
    options.state = &state;
    options.groups = random_groups(model, f.seed, f.groups);
    auto const program =
        training_step(model, sample_of<Sample>(random_batch(f, 0)), run_model, watched<Optimizer>{how}, options);
    if (auto const valid = verify(program.program); !valid.ok()) throw error("verify: " + valid.message());
    if (traced == digest{}) traced = program.program.digest();
    if (!(traced == program.program.digest())) throw error("traced again, the program is another");
    trail t;
    run(program, [&](auto const& step, auto const& gradient, auto const& output) {
      for (auto const& b : batches()) {
        bytes const l = step(b);
        t.push_back({l, {}, {}, {}});
        for (std::size_t k = 0; k < program.gradients.size(); ++k) t.back().gradients.push_back(gradient(k));
        for (auto const& o : program.outputs) t.back().told.emplace_back(o.name, output(o));
        note_memory(t.back(), model, state, how, b);
      }
    });
    return t;
  };
  try {
    if (f.batches.empty()) {
      trail const in_order = with_program([&](auto const& program, auto const& each) {
        support::program_runner run(program);
        each([&](auto const& b) { return program.set(), run(b), bytes_of(run.ref(program.loss)); },
             [&](std::size_t k) { return bytes_of(run.ref(program.gradients[k])); },
             [&](named_value const& o) { return bytes_of(run.ref(o.value)); });
      });
      if (auto const d = difference(eager, in_order, f.options.keep_gradients); !d.empty()) return "traced: " + d;
    }
    for (std::size_t i = 0; i < plans; ++i) {
      auto const& how_planned = plannings[(f.seed + 3 * i) % std::size(plannings)];
      auto const name = "planned at " + std::to_string(how_planned.limit) +
                        (how_planned.takeover ? "" : " without takeover") + " on " +
                        std::to_string(how_planned.threads) + ": ";
      std::string wrong;
      try {
        trail const planned = with_program([&](auto const& traced_step, auto const& each) {
          auto const program = fuse(
              traced_step,
              {.products = (f.seed / 2 + i) % 2 == 0, .rows = (f.seed + i) % 3 == 0, .chains = (f.seed + i) % 2 == 0});
          for (auto x : program.program.ops())
            if (auto const* p = program.program.template as<op::fused>(x)) {
              seen.fused += !p->has_anchor();
              seen.epilogues += p->is_product();
              seen.rows += p->is_of_rows() || p->is_of_channels();
              seen.reductions += p->is_reduction();
            }
          search_options o;
          o.memory_at_most = memory_limit::of_original(how_planned.limit);
          o.memory.takeover = how_planned.takeover;
          o.iterations = 24;
          auto const found = optimize(program, moves, o);
          bool const by_file = (f.seed / 3 + i) % 4 == 0;
          auto const placed = by_file ? from_file(found.placed) : found.placed;
          seen.files += by_file;
          auto const verdict = verify_plan(program.program, placed);
          if (!verdict.ok()) throw error(verdict.message());
          auto const& g = placed.graph;
          std::vector<bool> met(g.origin_count());
          for (auto x : g.ops()) {
            bool const store = g.template as<op::store>(x), load = g.template as<op::load>(x);
            seen.transfers += store;
            seen.copies += met[index(g.origin(x))] && !store && !load;
            met[index(g.origin(x))] = true;
          }
          trainer run(program, placed, how_planned.threads == 1 ? one : two);
          // Kept values stand in one order in a program and in its plans, of other sizes too.
          auto const kept = [&](value_id v) {
            auto const from = program.program.kept();
            auto const& last = run.last_program();
            for (std::size_t k = 0; k < from.size(); ++k)
              if (from[k] == v) return bytes_of(last.value(last.planned().graph.kept()[k]));
            throw error("a value is not kept");
          };
          each([&](auto const& b) { return (void)run(sample_of<Sample>(b)), kept(program.loss); },
               [&](std::size_t k) { return kept(program.gradients[k]); },
               [&](named_value const& told) { return bytes_of(run.output(told.name).ref()); });
          if (run.program().high_water_bytes() != placed.arena_bytes) throw error("the high water is not the arena");
        });
        wrong = difference(eager, planned, f.options.keep_gradients);
      } catch (error const& e) { wrong = e.what(); }
      if (!wrong.empty()) return name + wrong;
    }
  } catch (error const& e) { return std::string("traced: ") + e.what(); }
  return {};
}

template <class Sample>
std::string run_sample(program_form const& f, std::size_t plans, tally& seen) {
  switch (f.optimizer) {
    case 0: return run_one<Sample>(f, sgd{.rate = 0.05, .weight_decay = 0.01}, plans, seen);
    case 1: return run_one<Sample>(f, momentum{.rate = 0.02, .damping = 0.1}, plans, seen);
    case 2: return run_one<Sample>(f, nesterov{.rate = scheduled(0.02).warm_up(3), .weight_decay = 0.01}, plans, seen);
    case 3:
      return run_one<Sample>(f, adam{.rate = scheduled::cosine(0.02, 0.001, 3), .weight_decay = 0.01}, plans, seen);
    case 4: return run_one<Sample>(f, lion{.rate = 0.003, .weight_decay = 0.01}, plans, seen);
    case 5: return run_one<Sample>(f, muon{.rate = 0.02, .weight_decay = 0.01, .others = {.rate = 0.01}}, plans, seen);
    case 6: return run_one<Sample>(f, adafactor{.rate = 0.02, .weight_decay = 0.01}, plans, seen);
    default: return run_one<Sample>(f, adamw{.rate = 0.01}, plans, seen);
  }
}

std::string run_form(program_form const& f, std::size_t plans, tally& seen) {
  switch (f.sample) {
    case program_form::sample_kind::pair: return run_sample<std::pair<tensor, tensor>>(f, plans, seen);
    case program_form::sample_kind::tuple: return run_sample<std::tuple<tensor, tensor, tensor>>(f, plans, seen);
    case program_form::sample_kind::record: return run_sample<record_sample>(f, plans, seen);
    default: return run_sample<std::vector<tensor>>(f, plans, seen);
  }
}

/// A program whose loss is no sum over parts of the batch is refused over parts, and then runs on the whole batch.
std::string run_program(program_form f, std::size_t plans, tally& seen) {
  ++seen.programs;
  auto wrong = run_form(f, plans, seen);
  if (f.options.micro_batches == 1) return wrong;
  bool const refused = wrong.find("micro_batches = ") != std::string::npos;
  double const in_parts = seen.first_loss;
  f.options.micro_batches = 1;
  if (refused) {
    --seen.refused_at_once, ++seen.no_sums;
    return run_form(f, plans, seen);
  }
  ++seen.in_parts;
  if (wrong.empty()) wrong = run_form(f, 0, seen);
  if (double const whole = seen.first_loss;
      wrong.empty() && !f.options.precision && !(std::abs(in_parts - whole) <= 1e-4 * (1 + std::abs(whole))))
    wrong = "the loss in parts is " + std::to_string(in_parts) + ", of the whole batch " + std::to_string(whole);
  return wrong;
}

std::uint64_t number_from(char const* name, std::uint64_t otherwise) {
  char const* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// A share of the programs, by the remainder of their seeds: cases run at once by ctest.
void run_programs(std::uint64_t first, std::uint64_t count) {
  eager_context const context{{.seed = 1, .threads = 2}};
  tally seen;
  auto const check = [&](std::uint64_t seed, std::size_t plans) {
    CAPTURE(seed);
    auto const wrong = run_program(random_form(seed), plans, seen);
    CHECK_MESSAGE(wrong.empty(), wrong);
  };
  if (auto const one = number_from("NEAP_PROGRAM", 0)) return check(one, std::size(plannings));
  for (std::uint64_t seed = first; seed < first + count; ++seed) check(seed, 2);
  MESSAGE(seen.programs, " programs, ", seen.copies, " copies, ", seen.transfers, " transfers, ", seen.finite,
          " finite steps, ", seen.outputs, " outputs, ", seen.grouped, " groups, ", seen.smaller, " smaller batches, ",
          seen.in_parts, " in parts, ", seen.no_sums, " refused in parts, ", seen.fused, " fused, ", seen.epilogues,
          " epilogues, ", seen.rows, " fused rows, ", seen.reductions, " fused reductions, ", seen.files,
          " plans from files");
  CHECK(seen.files > seen.programs / 4);
  CHECK(seen.fused > seen.programs);
  CHECK(seen.epilogues > seen.programs / 4);
  CHECK(seen.rows > seen.programs / 8);
  CHECK(seen.copies > seen.programs / 4);
  CHECK(seen.transfers > seen.programs / 5);
  CHECK(seen.outputs > seen.programs);
  CHECK(seen.grouped > seen.programs / 2);
  CHECK(seen.smaller > seen.programs / 8);
  CHECK(seen.in_parts > seen.programs / 32);
  CHECK(seen.finite * 1000 >= 999 * steps * seen.programs);  // a few diverge
}

/// The same programs in mixed precision, some with a scale that makes steps overflow.
void run_mixed_programs(std::uint64_t first, std::uint64_t count) {
  eager_context const context{{.seed = 1, .threads = 2}};
  tally seen;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    auto f = random_form(number_from("NEAP_PROGRAM", seed));
    f.options.precision = mixed{.element = f.seed % 2 ? dtype::bf16 : dtype::f16,
                                .loss_scale = f.seed % 3 ? 256 : 0x1p40,
                                .growth_steps = 2,
                                .backoff = 0x1p-16};
    auto const wrong = run_program(f, 2, seen);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
  MESSAGE(seen.programs, " programs, ", seen.copies, " copies, ", seen.transfers, " transfers, ", seen.finite,
          " finite steps, ", seen.in_parts, " in parts, ", seen.no_sums, " refused in parts, ", seen.fused, " fused, ",
          seen.epilogues, " epilogues, ", seen.rows, " fused rows, ", seen.reductions, " fused reductions");
  CHECK(seen.fused > seen.programs);
  CHECK(seen.epilogues > seen.programs / 4);
  CHECK(seen.rows > seen.programs / 8);
  CHECK(seen.copies > seen.programs / 4);
  CHECK(seen.transfers > seen.programs / 5);
}

/// Models that are trained eagerly and by a plan that recomputes and swaps: the same bits.
template <class Model, class Sample, class Optimizer = adamw>
void check_planned(Sample const& sample, training_options const& options = {}, Optimizer const& how = {}) {
  Model eager, planned;
  initialise(eager, 5), initialise(planned, 5);
  training_state state;
  auto const step = training_step(planned, sample, mse{}, how, options);
  if (auto const valid = verify(step.program); !valid.ok()) FAIL(valid.message());
  search_options o;
  o.memory_at_most = memory_limit::of_original(0.6);
  o.iterations = 60;
  auto const found = optimize(step, moves, o);
  auto const verdict = verify_plan(step.program, found.placed);
  REQUIRE_MESSAGE(verdict.ok(), verdict.message());
  host_backend backend(2);
  trainer run(step, found.placed, backend);
  for (int i = 0; i < 3; ++i) {
    double const loss = run(sample);
    CHECK(loss == eager_step(eager, sample, mse{}, how, state, options).template item<double>());
  }
  for (auto r : {role::weight, role::buffer}) {
    auto const a = named_tensors(eager, r), b = named_tensors(planned, r);
    REQUIRE(a.size() == b.size());
    for (std::size_t k = 0; k < a.size(); ++k)
      CHECK_MESSAGE(bytes_of(a[k].tensor.ref()) == bytes_of(b[k].tensor.ref()), a[k].name);
  }
}

/// One's own optimizer, which looks at a part of its state.
struct looking {
  static constexpr std::array<std::string_view, 1> states{"sums"};
  void update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs&) const {
    apply(op::accumulate{}, {slice(s[0], 0, 0, 1), slice(square(g), 0, 0, 1)});
    apply(op::sgd{.rate = 0.1}, {w, g / (1 + sqrt(sum(s[0])))});
  }
};

}  // namespace

TEST_CASE("programs in mixed precision") { run_mixed_programs(1, number_from("NEAP_PROGRAMS", sanitized ? 20 : 150)); }

TEST_CASE("programs that begin with a view of their input") {
  std::pair const sample{tensor::randn({6, 3, 4}, 1), tensor::randn({6, 5}, 2)};
  SUBCASE("flatten") {
    struct model {
      nn::linear a{12, 5};
      tensor operator()(tensor const& x) const { return a(flatten(x, 1)); }
    };
    for (int parts : {1, 2, 3}) check_planned<model>(sample, {.micro_batches = parts});
  }
  SUBCASE("reshape") {
    struct model {
      nn::linear a{6, 5};
      tensor operator()(tensor const& x) const { return mean(a(reshape(x, {x.size(0), 2, 6})), {1}); }
    };
    for (int parts : {1, 2, 3}) check_planned<model>(sample, {.micro_batches = parts});
  }
  SUBCASE("select") {
    struct model {
      nn::linear a{4, 5};
      tensor operator()(tensor const& x) const {
        tensor h;
        for (std::int64_t i = 0; i < x.size(1); ++i) h = i == 0 ? a(select(x, 1, i)) : tanh(h) + a(select(x, 1, i));
        return h;
      }
    };
    for (int parts : {1, 2, 3}) check_planned<model>(sample, {.micro_batches = parts});
  }
  SUBCASE("transpose, permute, slice, split") {
    struct model {
      nn::linear a{3, 5}, b{6, 5};
      tensor operator()(tensor const& x) const {
        tensor const y = select(a(transpose(x)), 1, 0), z = reshape(permute(x, {2, 0, 1}), {x.size(0), -1});
        return y + b(slice(z, 1, 2, 8)) * mean(split(x, 2, 2)[1], {1, 2}, true);
      }
    };
    struct squeezed {
      model m;
      tensor operator()(tensor const& x) const { return reshape(m(x), {-1, 5}); }
    };
    std::pair const other{sample.first, tensor::randn({6 * 6, 5}, 2)};
    check_planned<squeezed>(other);
    check_planned<squeezed>(std::pair{slice(tensor::randn({9, 3, 4}, 1), 0, 2, 8), other.second});
  }
}

TEST_CASE("programs that begin with a view of a weight, a constant, a buffer, a state") {
  std::pair const sample{tensor::randn({6, 4}, 1), tensor::randn({6, 3}, 2)};
  struct model {
    parameter w{{2, 3, 4}, initialiser::uniform(-1, 1)};
    buffer b{{4, 2}, initialiser::constant(0.5)};
    tensor c = constant(tensor::randn({3, 2}, 7));
    tensor t = select(w, 0, 1);
    tensor operator()(tensor const& x) const {
      tensor const y = matmul(x * select(b, 1, 0), transpose(select(w, 0, 0))) + select(c, 1, 1);
      apply(op::accumulate{}, {slice(b, 0, 1, 3), slice(transpose(c), 1, 0, 2)});
      return y + matmul(x * select(b, 1, 1), transpose(t)) * mean(b);
    }
  };
  for (int parts : {1, 2, 3}) check_planned<model>(sample, {.micro_batches = parts});
  check_planned<model>(sample, {}, looking{});
}

TEST_CASE("random programs of the DSL: eager, traced and planned to the last bit") {
  run_programs(number_from("NEAP_FIRST_PROGRAM", 1), number_from("NEAP_PROGRAMS", sanitized ? 60 : 800));
}
