// Trains a small GPT on the bytes of a text in a fraction of the memory that training takes without a plan, and shows
// that nothing else changes: the same losses and weights to the last bit.
//
//   train_gpt [--text FILE] [--memory-limit 0.5|90MiB] [--steps N] [--sample N] [--out FOLDER] [--threads N]
#include <neap/execute/measured.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/neap.hpp>
#include <neap/report/memory_svg.hpp>
#include <neap/report/results_csv.hpp>
#include <neap/report/text_file.hpp>
#include <neap/verify/plan_verifier.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace neap;
using namespace neap::literals;

namespace {

struct options {
  std::string text, memory_limit = "0.5", out = ".", spill = "/tmp", costs;
  int steps = 40, sample = 120, threads = 0, compare = 12, search_seconds = 8;
  std::int64_t batch = 8, context = 256, width = 256, layers = 6, heads = 8;
  double rate = 1e-3;
};

[[noreturn]] void refuse(std::string const& why) {
  std::fprintf(stderr, "train_gpt: %s\n", why.c_str());
  std::exit(2);
}

long number(std::string const& option, std::string const& value, long least, long most) {
  char* end = nullptr;
  long const n = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end || n < least || n > most)
    refuse(option + ": \"" + value + "\" is not a number from " + std::to_string(least) + " to " +
           std::to_string(most));
  return n;
}

double rate(std::string const& value) {
  char* end = nullptr;
  double const x = std::strtod(value.c_str(), &end);
  if (value.empty() || *end || !(x >= 0 && x <= 1e6)) refuse("--rate: \"" + value + "\" is not a number from 0 to 1e6");
  return x;
}

options read_options(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    std::string const name = argv[i];
    if (name == "--help" || name == "-h") {
      std::puts(
          "train_gpt [--text FILE] [--memory-limit RATIO|BYTES] [--steps N] [--sample N] [--out FOLDER] [--threads N]\n"
          "          [--batch N] [--context N] [--width N] [--layers N] [--heads N] [--rate X] [--search-seconds N]\n"
          "          [--compare N] [--spill FOLDER] [--costs FOLDER]\n"
          "The ratio is of what training takes without a plan beyond weights and optimizer states; bytes (90MiB,\n"
          "1GB) are of all memory. What ops cost is measured in a few steps first, and kept in a file of this machine's\n"
          "in the folder of --costs (that of --out, if it is not given).");
      std::exit(0);
    }
    if (i + 1 >= argc) refuse(name + ": a value is missing");
    std::string const value = argv[++i];
    if (name == "--text") o.text = value;
    else if (name == "--memory-limit") o.memory_limit = value;
    else if (name == "--out") o.out = value;
    else if (name == "--spill") o.spill = value;
    else if (name == "--costs") o.costs = value;
    else if (name == "--steps") o.steps = static_cast<int>(number(name, value, 1, 1000000));
    else if (name == "--sample") o.sample = static_cast<int>(number(name, value, 0, 1000000));
    else if (name == "--compare") o.compare = static_cast<int>(number(name, value, 1, 1000000));
    else if (name == "--threads") o.threads = static_cast<int>(number(name, value, 1, 1024));
    else if (name == "--search-seconds") o.search_seconds = static_cast<int>(number(name, value, 0, 100000));
    else if (name == "--batch") o.batch = number(name, value, 1, 65536);
    else if (name == "--context") o.context = number(name, value, 2, 65536);
    else if (name == "--width") o.width = number(name, value, 8, 65536);
    else if (name == "--layers") o.layers = number(name, value, 1, 1000);
    else if (name == "--heads") o.heads = number(name, value, 1, 1000);
    else if (name == "--rate") o.rate = rate(value);
    else refuse(name + ": not an option; see --help");
  }
  if (o.width % o.heads) refuse("--width: must be a multiple of --heads");
  return o;
}

/// The bytes of a file, or of the licences that every Debian system has.
std::string read_text(options const& o) {
  auto const read = [](std::filesystem::path const& path) {
    if (std::filesystem::is_directory(path)) refuse(path.string() + ": cannot be read: it is a folder");
    std::ifstream file(path, std::ios::binary);
    if (!file) refuse(path.string() + ": cannot be read: " + std::strerror(errno));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::string text;
  if (!o.text.empty()) {
    text = read(o.text);
  } else {
    std::filesystem::path const folder = "/usr/share/common-licenses";
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (auto const& entry : std::filesystem::directory_iterator(folder, none))
      if (!entry.is_symlink() && entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (auto const& f : files) text += read(f);
    if (text.empty()) refuse(folder.string() + ": there is no text here; give one with --text FILE");
  }
  if (static_cast<std::int64_t>(text.size()) < o.context + 2)
    refuse((o.text.empty() ? "the text" : o.text) + ": needs at least " + std::to_string(o.context + 2) + " bytes");
  return text;
}

/// Random windows of a text, the same ones for the same step: ids and the ids that follow them.
class batches {
 public:
  batches(std::string const& text, options const& o) : text_(text), batch_(o.batch), context_(o.context) {
    for (auto* t : {&ids_, &next_}) *t = tensor::zeros({batch_, context_}, dtype::i64);
  }
  std::pair<tensor, tensor> const& operator()(int step) {
    random_stream draw(1234, static_cast<std::uint64_t>(step));
    auto* const ids = ids_.data<std::int64_t>();
    auto* const next = next_.data<std::int64_t>();
    for (std::int64_t b = 0; b < batch_; ++b) {
      auto const at = draw.below(static_cast<std::uint32_t>(text_.size() - static_cast<std::size_t>(context_) - 1));
      for (std::int64_t t = 0; t < context_; ++t) {
        ids[b * context_ + t] = static_cast<unsigned char>(text_[at + static_cast<std::size_t>(t)]);
        next[b * context_ + t] = static_cast<unsigned char>(text_[at + static_cast<std::size_t>(t) + 1]);
      }
    }
    pair_ = {ids_, next_};
    return pair_;
  }

 private:
  std::string const& text_;
  std::int64_t batch_, context_;
  tensor ids_, next_;
  std::pair<tensor, tensor> pair_;
};

zoo::gpt make_model(options const& o) {
  eager_context const fresh({.seed = 42, .threads = 1});  // the same first weights each time
  zoo::gpt_config c;
  c.vocabulary = 256, c.context = o.context, c.width = o.width, c.heads = o.heads, c.layers = o.layers;
  return zoo::gpt(c);
}

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}
std::string mib(bytes_t b) { return readable_bytes(static_cast<double>(b)); }

/// What a person writes as --memory-limit, in bytes of all memory.
bytes_t limit_of(options const& o, bytes_t resident, bytes_t unplanned_peak) {
  char* end = nullptr;
  double const x = std::strtod(o.memory_limit.c_str(), &end);
  std::string const unit = end;
  if (end == o.memory_limit.c_str() || !(x > 0))
    refuse("--memory-limit: \"" + o.memory_limit + "\" is neither a ratio nor bytes");
  if (unit.empty() && (x <= 1 || (x <= 100 && o.memory_limit.find('.') != std::string::npos)))
    return resident + static_cast<bytes_t>(x * static_cast<double>(unplanned_peak - resident));
  for (auto [name, scale] : {std::pair{"", 1.0},
                             {"B", 1.0},
                             {"KiB", 1024.0},
                             {"MiB", 1048576.0},
                             {"GiB", 1073741824.0},
                             {"kB", 1e3},
                             {"MB", 1e6},
                             {"GB", 1e9}})
    if (unit == name) {
      if (x * scale > 1e18) refuse("--memory-limit: \"" + o.memory_limit + "\" is more than any machine has");
      return static_cast<bytes_t>(x * scale);
    }
  refuse("--memory-limit: \"" + unit + "\" is not a unit that is known (MiB, GiB, MB, GB)");
}

/// Continues a prompt from the model, the likeliest bytes more often.
void write_sample(zoo::gpt const& model, std::string const& prompt, options const& o) {
  no_gradient const off;
  std::vector<std::int64_t> ids;
  for (char c : prompt) ids.push_back(static_cast<unsigned char>(c));
  random_stream draw(7);
  std::string written;
  for (int i = 0; i < o.sample; ++i) {
    auto const n = std::min<std::int64_t>(static_cast<std::int64_t>(ids.size()), std::min<std::int64_t>(o.context, 64));
    std::vector<std::int64_t> const window(ids.end() - n, ids.end());
    tensor const logits = model(tensor::from(window, {1, n}));
    float const* const last = logits.data<float>() + (n - 1) * 256;
    float const most = *std::max_element(last, last + 256);
    double weight[256], sum = 0;
    for (int k = 0; k < 256; ++k) sum += weight[k] = std::exp((last[k] - most) / 0.6);
    double left = static_cast<double>(draw.uniform()) * sum;
    int next = 255;
    for (int k = 0; k < 256; ++k)
      if ((left -= weight[k]) <= 0) {
        next = k;
        break;
      }
    ids.push_back(next);
    written += next == '\n' || (next >= 32 && next < 127) ? static_cast<char>(next) : '?';
  }
  std::printf("\n---- written by the model after \"%s\"\n%s\n----\n", prompt.c_str(), written.c_str());
}

/// How often each operator is computed again, as one line.
std::string recomputed(graph const& planned, graph const& original) {
  std::map<std::string, int> count;
  std::vector<int> seen(original.op_count());
  for (auto x : planned.ops()) {
    if (planned.as<op::store>(x) || planned.as<op::load>(x) || flow::is_view(planned, x)) continue;
    if (++seen[index(planned.origin(x))] > 1) ++count[std::string(planned.facets(x).name)];
  }
  std::string line;
  for (auto const& [name, n] : count) line += (line.empty() ? "" : ", ") + std::to_string(n) + " " + name;
  return line.empty() ? "nothing" : line;
}

int train(options const& o) {
  std::string const text = read_text(o);
  for (auto const& can : {can_append_results(o.out + "/results.csv"), can_write_file(o.out + "/memory.svg")})
    if (!can) refuse(can.message());  // now, not after the training
  int const threads = o.threads > 0 ? o.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  host_backend backend(threads);
  eager_context const computing({.seed = 1, .threads = threads});
  batches data(text, o);

  zoo::gpt model = make_model(o);
  auto const step = training_step(model, data(0), cross_entropy{}, adamw{.rate = o.rate});
  auto const& program = step.program;
  bytes_t weights = 0;
  for (auto v : program.sources())
    if (program.role(v) == role::weight) weights += program.bytes(program.storage(v));
  std::printf(
      "GPT: %lld layers, width %lld, %.1f million parameters; batch %lld of %lld bytes; text of %zu bytes; %d threads\n",
      static_cast<long long>(o.layers), static_cast<long long>(o.width), static_cast<double>(weights) / 4e6,
      static_cast<long long>(o.batch), static_cast<long long>(o.context), text.size(), threads);

  // Without a plan: the program's own order, every result in memory of its own, freed after its last reader.
  // What an op costs is measured where it stands, in steps of a model of its own.
  roofline links = roofline::host(threads);
  links.to_host_bytes_per_second = links.to_device_bytes_per_second = 2e8;
  measured cost(backend, links, {.folder = o.costs.empty() ? o.out : o.costs});
  {
    zoo::gpt trial = make_model(o);
    bool const ran = cost.whole(training_step(trial, data(0), cross_entropy{}, adamw{.rate = o.rate}), data(0));
    std::printf("costs of %zu kinds of ops %s %s\n", cost.table().size(), ran ? "measured, kept in" : "from",
                cost.file().c_str());
    if (auto const saved = cost.save(); !saved) refuse(saved.message());
  }
  memory_options const plainly{.alignment = 64, .takeover = false};
  schedule const order = given_order{}(program);
  simulation const plain = simulate(program, order, cost, plainly);
  auto const unplanned = make_plan(candidate<graph>{program, order, plain}, program, plainly);

  bytes_t const limit = limit_of(o, plain.resident_bytes, plain.peak_bytes);
  // Swapping takes processor time, which training needs where it has all cores: it comes where recomputation does not do.
  constexpr auto recompute = rematerialize{} | truncate(32);
  time_budget const budget(std::chrono::seconds(o.search_seconds));
  auto found = optimize(step, recompute, memory_limit{limit}, cost, budget);
  if (!found.fits)
    found = optimize(step, chain(recompute, neap::swap{2e8} | truncate(4)), memory_limit{limit}, cost, budget);
  auto const verdict = verify_plan(program, found.placed);
  if (!verdict.ok()) throw error("the plan is not right: " + verdict.message());
  auto const activations = [&](bytes_t peak) { return peak - plain.resident_bytes; };
  std::size_t stores = 0;
  for (auto x : found.placed.graph.ops()) stores += found.placed.graph.as<op::store>(x) != nullptr;
  std::printf("\nplan (%zu candidates in %.1f s, verified):\n", found.candidates, found.seconds);
  std::printf("  weights, states, batch    %s, always there\n", mib(plain.resident_bytes).c_str());
  std::printf(
      "  peak beyond them          %s without a plan, %s planned: %.3f of it\n",
      mib(activations(plain.peak_bytes)).c_str(), mib(activations(found.placed.peak_bytes)).c_str(),
      static_cast<double>(activations(found.placed.peak_bytes)) / static_cast<double>(activations(plain.peak_bytes)));
  std::printf("  computed again            %s\n", recomputed(found.placed.graph, program).c_str());
  std::printf("  swapped                   %zu tensors\n", stores);
  std::printf("  predicted slowdown        %.3f\n", found.best.result.latency / plain.latency);
  if (!found.fits) std::printf("  %s\n", found.why_not().c_str());

  // Training, planned.
  execution_options const execution{.spill_folder = o.spill};
  trainer run(step, found.placed, backend, execution);
  std::vector<double> losses;
  std::printf("\ntraining under %s:\n", mib(limit).c_str());
  double const tokens = static_cast<double>(o.batch * o.context);
  for (int i = 0; i < o.steps; ++i) {
    auto const begin = std::chrono::steady_clock::now();
    losses.push_back(run(data(i)));
    double const t = seconds_since(begin);
    if (i < 3 || (i + 1) % 5 == 0 || i + 1 == o.steps)
      std::printf("  step %4d  loss %.4f  %6.0f tokens/s  memory in use at most %s\n", i + 1, losses.back(), tokens / t,
                  mib(run.program().high_water_bytes()).c_str());
    std::fflush(stdout);
  }

  // The same again beside unplanned training, step by step in turn, so that both see the same machine.
  int const compared = std::min(o.compare, o.steps);
  zoo::gpt model_a = make_model(o), model_b = make_model(o);
  auto const step_a = training_step(model_a, data(0), cross_entropy{}, adamw{.rate = o.rate});
  auto const step_b = training_step(model_b, data(0), cross_entropy{}, adamw{.rate = o.rate});
  trainer planned(step_a, found.placed, backend, execution);
  trainer plainly_run(step_b, unplanned, backend, execution);
  bool equal = true;
  std::vector<double> ratios, planned_s, plain_s;
  for (int i = 0; i < compared; ++i) {
    auto t = std::chrono::steady_clock::now();
    double const a = planned(data(i));
    planned_s.push_back(seconds_since(t));
    t = std::chrono::steady_clock::now();
    double const b = plainly_run(data(i));
    plain_s.push_back(seconds_since(t));
    for (double const other : {b, losses[static_cast<std::size_t>(i)]})  // bits: a training that diverges counts, too
      equal &= std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(other);
    if (i > 0) ratios.push_back(planned_s.back() / plain_s.back());
  }
  auto const weights_a = parameters(model_a), weights_b = parameters(model_b);
  bool same_weights = weights_a.size() == weights_b.size();
  for (std::size_t i = 0; same_weights && i < weights_a.size(); ++i)
    same_weights = std::memcmp(weights_a[i].ref().data, weights_b[i].ref().data,
                               static_cast<std::size_t>(weights_a[i].type().bytes())) == 0;
  bytes_t const used = planned.program().high_water_bytes(), used_plainly = plainly_run.program().high_water_bytes();
  double const slowdown = ratios.empty() ? planned_s[0] / plain_s[0] : median(ratios);
  std::printf("\nbeside training without a plan, %d steps in turn:\n", compared);
  std::printf("  losses                    %s\n", equal ? "equal to the last bit" : "DIFFERENT");
  std::printf("  weights afterwards        %s\n", same_weights ? "equal to the last bit" : "DIFFERENT");
  std::printf("  memory measured           %s planned, %s without; beyond weights and states %s and %s: %.3f\n",
              mib(used).c_str(), mib(used_plainly).c_str(), mib(activations(used)).c_str(),
              mib(activations(used_plainly)).c_str(),
              static_cast<double>(activations(used)) / static_cast<double>(activations(used_plainly)));
  std::printf("  time of a step            %.0f ms planned, %.0f ms without; slowdown measured %.3f\n",
              1e3 * median(planned_s), 1e3 * median(plain_s), slowdown);

  results_row row;
  row.name = "train_gpt";
  row.memory_limit = limit;
  row.weight_bytes = weights;
  row.optimized = results_row::measured{median(planned_s), used};
  row.original = results_row::measured{median(plain_s), used_plainly};
  row.simulated_optimized = {found.best.result.latency, found.best.result.peak_bytes};
  row.simulated_original = {plain.latency, plain.peak_bytes};
  for (auto const& s :
       {append_results(o.out + "/results.csv", row),
        write_file(o.out + "/memory.svg", memory_svg("Memory of one training step of a small GPT",
                                                     {curve_of("without a plan", program, order, plain, plainly),
                                                      curve_of("planned", found.best.graph, found.best.order,
                                                               found.best.result, found.placed.options)},
                                                     limit))})
    if (!s) refuse(s.message());
  std::printf("  written                   %s/results.csv, %s/memory.svg\n", o.out.c_str(), o.out.c_str());

  if (o.sample > 0) write_sample(model, "The licence", o);
  return equal && same_weights ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return train(read_options(argc, argv));
  } catch (std::exception const& e) { refuse(e.what()); }
}
