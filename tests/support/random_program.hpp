// Random programs of the DSL: models that own weights, buffers, constants and modules of the library, and compute a loss
// from a sample with the public functions and modules, as users write them: views of everything, broadcasts, reductions,
// products, images, norms, attention, lookups, dropout, choices, casts, updates of buffers in place, loops, tied and
// frozen weights. What a program does is a function of its seed and of its inputs' types: it draws its decisions anew,
// from the same stream, each time it is called. Values stay moderate, and the loss depends on a weight. Some programs do
// the same with any number of samples (`sized`): their steps come with several. Forms also draw the optimizer, groups of
// weights, and what the step tells besides its loss.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/operators/update.hpp>
#include <neap/model/model.hpp>
#include <neap/train/path_pattern.hpp>
#include <neap/train/training_step.hpp>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace neap::testing {

/// A sample that is a plain struct.
struct record_sample {
  tensor x, y;
  std::vector<tensor> more;
};

/// What a program of a seed takes, and how it is trained.
struct program_form {
  enum class sample_kind { pair, tuple, record, list };
  std::uint64_t seed = 0;
  dtype element = dtype::f32;
  sample_kind sample = sample_kind::pair;
  std::vector<tensor_type> inputs;  // along axis 0: the samples
  std::uint32_t size = 8;           // instructions
  int optimizer = 0;
  std::uint32_t outputs = 0;  // what the step tells besides its loss
  std::uint32_t groups = 0;   // of weights, at most
  bool sized = false;         // any number of samples will do
  std::vector<std::int64_t>
      batches{};  // samples of each step, at most those of the inputs; where none is said: as many
  training_options options;

  std::int64_t samples(std::uint64_t step) const {
    return step < batches.size() ? batches[static_cast<std::size_t>(step)] : inputs[0].dims[0];
  }
};

/// What a program's step tells: its loss, and tensors of every kind.
struct told_program {
  tensor loss;
  std::vector<tensor> more;
};

inline constexpr std::int64_t program_ids = 5;  // whole numbers among the inputs are below

inline constexpr std::uint32_t program_optimizers = 8;

inline program_form random_form(std::uint64_t seed, std::uint32_t size = 8) {
  random_stream draw(seed, 21);
  auto const below = [&](std::uint32_t n) { return draw.below(n); };
  program_form f;
  f.seed = seed;
  f.size = 1 + below(2 * size);
  f.element = below(6) == 0 ? dtype::f64 : dtype::f32;
  f.sample = static_cast<program_form::sample_kind>(below(4));
  f.optimizer = static_cast<int>(below(program_optimizers));
  f.options.micro_batches = below(3) == 0 ? 1 + below(3) : 1;
  f.options.clip_norm = below(3) == 0 ? 0.05 + below(20) * 0.05 : 0;
  f.options.keep_gradients = below(3) == 0;
  f.options.fuse_updates = below(4) != 0;
  f.options.seed = below(100);
  f.options.loss_scale = below(4) == 0 ? 64 : 0;
  std::size_t count = 2;
  if (f.sample == program_form::sample_kind::tuple) count = 3;
  else if (f.sample != program_form::sample_kind::pair) count = 2 + below(3);
  std::int64_t const n = f.options.micro_batches * (1 + below(4));
  for (std::size_t i = 0; i < count; ++i) {
    shape dims{n};
    auto const rank = below(4);
    for (std::uint32_t k = 0; k < rank; ++k) dims.push_back(1 + below(5));
    auto const kind = i == 0 ? 0 : below(9);
    f.inputs.push_back({kind < 4 ? f.element : kind < 7 ? dtype::i64 : kind == 7 ? dtype::boolean : dtype::f64, dims});
  }
  f.outputs = below(2) == 0 ? 1 + below(4) : 0;
  f.groups = below(2) == 0 ? 1 + below(3) : 0;
  f.sized = below(3) == 0;
  if (f.sized) {  // all of them, the rest of an epoch, and all again
    std::int64_t const parts = f.options.micro_batches, most = 2 + below(3);
    for (auto& t : f.inputs) t.dims[0] = parts * most;
    f.batches = {parts * most, parts * (1 + below(static_cast<std::uint32_t>(most))), parts * most};
  }
  return f;
}

/// Groups of a model's weights with numbers of their own, each with a weight that is in none before it.
template <class Model>
std::vector<parameter_group> random_groups(Model& model, std::uint64_t seed, std::uint32_t count) {
  random_stream draw(seed, 25);
  std::vector<std::string> left;
  for (auto const& w : named_tensors(model, role::weight)) left.push_back(w.name);
  std::vector<parameter_group> groups;
  for (; count > 0 && !left.empty(); --count) {
    auto const& path = left[draw.below(static_cast<std::uint32_t>(left.size()))];
    parameter_group g;
    switch (draw.below(4)) {
      case 0: g.match = path; break;
      case 1: g.match = "*" + path.substr(path.rfind('.')); break;
      case 2: g.match = path.substr(0, path.find('.')) + ".*"; break;
      default: g.match = path.substr(0, path.size() - 1) + "*"; break;
    }
    switch (draw.below(5)) {
      case 0: g.rate = 0.01; break;
      case 1: g.rate = scheduled::linear(0.02, 0.001, 3); break;
      case 2: g.rate = 0; break;  // frozen, but for its states
      case 3: g.rate_factor = 0.25; break;
      default: break;
    }
    if (draw.below(2) == 0) g.weight_decay = 0.1 * draw.below(3);
    std::erase_if(left, [&](auto const& p) { return neap::detail::matches(g.match, p); });
    groups.push_back(std::move(g));
  }
  return groups;
}

/// The tensors of batch `step` of a program: dense, and now and then the middle of something larger.
inline std::vector<tensor> random_batch(program_form const& f, std::uint64_t step) {
  std::vector<tensor> all;
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    auto t = f.inputs[i];
    t.dims[0] = f.samples(step);
    random_stream draw(f.seed * 64 + step, 100 + i);
    bool const part = draw.below(3) == 0;
    shape dims = t.dims;
    if (part) dims[0] += 2;
    auto const n = elements(dims);
    tensor x;
    if (t.element == dtype::boolean) {
      std::vector<bool> v;
      for (std::int64_t k = 0; k < n; ++k) v.push_back(draw.below(2) == 0);
      x = tensor::from(v, dims);
    } else if (t.element == dtype::i64) {
      std::vector<std::int64_t> v;
      for (std::int64_t k = 0; k < n; ++k) v.push_back(draw.below(program_ids));
      x = tensor::from(v, dims);
    } else {
      x = tensor::randn(dims, f.seed * 64 + step, t.element);
    }
    all.push_back(part ? slice(x, 0, 1, 1 + t.dims[0]) : x);
  }
  return all;
}

class random_program {
 public:
  /// The program of a form, its weights and buffers as at the beginning.
  explicit random_program(program_form const& f) : form_(f) {
    building_ = true;
    (void)(*this)(random_batch(f, 0));  // comes to have what it asks for
    building_ = false;
    initialise(*this, f.seed);
  }
  random_program(random_program const&) = delete;

  std::vector<parameter> weights;
  std::vector<buffer> buffers, counters;
  std::vector<tensor> looks;      // views of weights, made with the model
  std::vector<tensor> constants;  // numbers that do not change
  std::vector<nn::linear> linears;
  std::vector<nn::conv2d> convolutions;
  std::vector<nn::batch_norm2d> batch_norms;
  std::vector<nn::group_norm> group_norms;
  std::vector<nn::layer_norm> layer_norms;
  std::vector<nn::multi_head_attention> attentions;
  std::vector<nn::transformer_block> blocks;
  std::vector<nn::embedding> embeddings;
  std::vector<nn::sequential<nn::linear, nn::gelu, nn::dropout, nn::linear>> sequences;

  tensor operator()(std::vector<tensor> const& inputs) { return tell(inputs).loss; }
  told_program tell(std::vector<tensor> const& inputs) {
    draw_ = random_stream(form_.seed, 22);
    next_ = {};
    weights_seen_ = 0;
    pool_.clear(), ids_.clear(), truths_.clear();
    if (one_in(8)) change(inputs[0]);
    for (auto const& x : inputs) take_input(x);
    for (std::uint32_t i = 0; i < form_.size; ++i) {
      if (form_.sized) instruction_of_samples();
      else instruction();
    }
    told_program told{loss(inputs), {}};
    for (std::uint32_t i = 0; i < form_.outputs; ++i) told.more.push_back(output(told.loss, inputs));
    pool_.clear(), ids_.clear(), truths_.clear();
    return told;
  }

  friend auto neap_fields(random_program& s) {
    return std::tie(s.weights, s.buffers, s.counters, s.looks, s.constants, s.linears, s.convolutions, s.batch_norms,
                    s.group_norms, s.layer_norms, s.attentions, s.blocks, s.embeddings, s.sequences);
  }

 private:
  struct item {
    tensor t;
    bool trained = false;  // depends on weights
  };
  struct numbers {
    tensor t;
    std::int64_t below = program_ids;
  };

  // ------------------------------------------------------------------ choices

  std::uint32_t below(std::uint32_t n) { return draw_.below(n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  std::int64_t between(std::int64_t a, std::int64_t b) { return a + below(static_cast<std::uint32_t>(b - a + 1)); }
  item const& pick() {
    auto const n = static_cast<std::uint32_t>(pool_.size());
    return one_in(3) ? pool_[below(n)] : pool_[n - 1 - below(std::min(n, 3u))];
  }
  void push(tensor t, bool trained) {
    if (t.count() > 4096) t = mean(t, {0});
    if (t.count() > 4096) t = mean(t);
    pool_.push_back({std::move(t), trained});
  }
  int axis_of(tensor const& x) { return static_cast<int>(below(static_cast<std::uint32_t>(x.rank()))); }
  /// The same axis, sometimes counted from the end.
  std::int64_t spoken(int axis, int rank) { return one_in(3) ? axis - rank : axis; }
  /// A shape of as many elements.
  shape other_shape(std::int64_t count) {
    shape s;
    while (s.rank() < 4 && !one_in(4)) {
      std::vector<std::int64_t> divisors;
      for (std::int64_t d = 1; d <= std::min<std::int64_t>(count, 12); ++d)
        if (count > 0 && count % d == 0) divisors.push_back(d);
      auto const d = divisors.empty() ? 0 : divisors[below(static_cast<std::uint32_t>(divisors.size()))];
      if (d == 0) break;
      s.push_back(d);
      count /= d;
    }
    s.push_back(count);
    return s;
  }
  extents some_axes(tensor const& x) {
    extents axes;
    for (int k = 0; k < x.rank(); ++k)
      if (one_in(2)) axes.push_back(spoken(k, x.rank()));
    return axes;
  }

  // ------------------------------------------------------------------ what the program owns

  /// The next of its kind; made at the first call of the program.
  template <class T, class Make>
  T& own(std::vector<T>& all, Make const& make) {
    auto& k = next_[reinterpret_cast<char*>(&all) - reinterpret_cast<char*>(this)];
    if (building_ && k == all.size()) all.push_back(make());
    return all[k++];
  }

  tensor weight(shape const& s) {
    if (one_in(6)) {  // one that is there already
      for (std::size_t i = 0; i < weights_seen_; ++i)
        if (weights[i].shape() == s) return one_in(2) ? tensor(weights[i]) : tensor(tied(i));
    }
    auto const fan = s.rank() > 1 ? elements(s) / std::max<std::int64_t>(s[0], 1) : 4;
    tensor const w = own(weights, [&] {
      return parameter(s, one_in_shape(s) ? initialiser::constant(0.5) : initialiser::fan_in(fan), form_.element);
    });
    weights_seen_ = next_[reinterpret_cast<char*>(&weights) - reinterpret_cast<char*>(this)];
    return w;
  }
  static bool one_in_shape(shape const& s) { return s.rank() == 1 && s[0] % 3 == 0; }
  parameter& tied(std::size_t i) {
    auto& w = own(weights, [&] { return weights[i].share(); });
    weights_seen_ = next_[reinterpret_cast<char*>(&weights) - reinterpret_cast<char*>(this)];
    return w;
  }
  /// A weight of a shape: itself, a view of a larger one, or a view that was made with the model.
  tensor weight_seen(shape const& s) {
    switch (below(8)) {
      case 0:
        if (s.rank() >= 2) {
          shape t = s;
          std::swap(t[s.rank() - 1], t[s.rank() - 2]);
          return transpose(weight(t));
        }
        break;
      case 1:
        if (s.rank() >= 1) {
          shape t = s;
          t[0] += 2;
          return slice(weight(t), 0, 1, 1 + s[0]);
        }
        break;
      case 2: return reshape(weight({elements(s)}), s);
      case 3:
        if (s.rank() >= 1) {
          shape t = s;
          t.insert(0, 3);
          auto const w = weight(t);
          return own(looks, [&] { return select(w, 0, 1); });
        }
        break;
      case 4: {  // frozen
        auto const w = weight(s);
        return one_in(2) ? w.detach() : own(looks, [&] { return w.detach(); });
      }
      default: break;
    }
    return weight(s);
  }

  // ------------------------------------------------------------------ inputs

  /// Writes a part of the sample itself.
  void change(tensor const& x) {
    if (x.element() != form_.element) return;
    push(x * 0.5, false);
    tensor const part = slice(x, 0, 0, 1);
    apply(op::accumulate{}, {part, part * 0.25});
  }
  void take_input(tensor const& x) {
    if (x.element() == dtype::boolean) truths_.push_back(x);
    else if (x.element() == dtype::i64) ids_.push_back({x, program_ids});
    else push(cast(x, form_.element), false);
  }
  tensor truth() {
    if (!truths_.empty() && one_in(2)) return truths_[below(static_cast<std::uint32_t>(truths_.size()))];
    auto const& x = pick().t;
    tensor const y = one_in(2) ? x * 0.5 : fitting(x.shape());
    switch (below(4)) {
      case 0: return apply(op::greater{}, {x, y});
      case 1: return apply(op::less_equal{}, {x, y});
      case 2: return apply(op::not_equal{}, {x, y});
      default: return apply(op::greater_equal{}, {y, x});
    }
  }
  numbers some_ids() {
    if (!ids_.empty() && !one_in(3)) return ids_[below(static_cast<std::uint32_t>(ids_.size()))];
    tensor const& x = pick().t;
    if (x.rank() > 0) {
      int const k = axis_of(x);
      if (x.size(k) > 0) return {arg_max(x, spoken(k, x.rank())), x.size(k)};
    }
    auto v = std::vector<std::int64_t>{0, 2, 1, 1, 3, 4};
    return {constant(tensor::from(v, {2, 3})), program_ids};
  }

  // ------------------------------------------------------------------ forms of values

  bool last_trained_ = false;  // of what fitting() gave
  /// Something that broadcasts against a shape.
  tensor fitting(shape const& s) {
    for (int tries = 0; tries < 3; ++tries) {
      auto const& x = pick();
      auto const& d = x.t.shape();
      bool fits = d.rank() <= s.rank();
      for (int k = 0; fits && k < d.rank(); ++k) {
        auto const other = s[s.rank() - d.rank() + k];
        fits = d[k] == other || d[k] == 1 || (other == 1 && d[k] > 0 && d[k] < 6);
      }
      last_trained_ = x.trained;
      if (fits) return x.t;
    }
    auto const& x = pick();
    if (one_in(3) && s.rank() > 0) {
      last_trained_ = true;
      return weight_seen({s.back()});
    }
    last_trained_ = x.trained;
    return x.t.count() == 0 ? tensor::ones({}, form_.element) : mean(x.t);
  }
  /// x with exactly `rank` axes, of at least one element each.
  tensor of_rank(tensor x, int rank) {
    if (x.count() == 0) x = tensor::full({2}, 0.25, form_.element);
    while (x.rank() > rank) x = flatten(x, x.rank() - 2);
    while (x.rank() < rank) x = unsqueeze(x, between(0, x.rank()));
    return x;
  }
  tensor calm(tensor const& x) {
    switch (below(3)) {
      case 0: return tanh(x);
      case 1: return sigmoid(x);
      default: return x / (1 + abs(x));
    }
  }

  // ------------------------------------------------------------------ the instructions

  void instruction() {
    item const x = pick();
    switch (below(24)) {
      case 0:
      case 1:
      case 2:
      case 3: return view(x);
      case 4:
      case 5: return arithmetic(x);
      case 6:
      case 7: return function(x);
      case 8: return choice(x);
      case 9:
      case 10: return reduction(x);
      case 11:
      case 12: return product(x);
      case 13: return rows(x);
      case 14: return attention_of(x);
      case 15:
      case 16: return image(x);
      case 17: return lookup(x);
      case 18: return push(dropout(x.t, 0.1 * between(0, 7)), x.trained);
      case 19: return types(x);
      case 20:
      case 21: return update(x);
      case 22: return made_here(x);
      default: return structure(x);
    }
  }

  void view(item const& x) {
    auto const& t = x.t;
    int const rank = t.rank();
    switch (below(12)) {
      case 0: {
        auto s = other_shape(t.count());
        if (one_in(2) && t.count() > 0) s[static_cast<int>(below(static_cast<std::uint32_t>(s.rank())))] = -1;
        return push(reshape(t, s), x.trained);
      }
      case 1:
        if (rank == 0) return;
        return push(flatten(t, spoken(axis_of(t), rank)), x.trained);
      case 2: {
        extents axes;
        for (int k = 0; k < rank; ++k) axes.push_back(k);
        for (int k = rank - 1; k > 0; --k)
          std::swap(axes[k], axes[static_cast<int>(below(static_cast<std::uint32_t>(k + 1)))]);
        return push(permute(t, axes), x.trained);
      }
      case 3:
        if (rank >= 2) return push(transpose(t, spoken(axis_of(t), rank), spoken(axis_of(t), rank)), x.trained);
        return;
      case 4:
      case 5: {
        if (rank == 0) return;
        int const k = axis_of(t);
        auto const n = t.size(k);
        auto const start = between(0, std::max<std::int64_t>(n - 1, 0));
        auto stop = between(std::min(start + 1, n), n);
        if (one_in(12)) stop = start;  // nothing of it
        return push(slice(t, spoken(k, rank), start, stop < n || one_in(2) ? stop : n), x.trained);
      }
      case 6: {
        if (rank == 0) return;
        int const k = axis_of(t);
        if (t.size(k) == 0) return;
        auto const i = between(0, t.size(k) - 1);
        return push(select(t, spoken(k, rank), one_in(3) ? i - t.size(k) : i), x.trained);
      }
      case 7: {
        if (rank == 0) return;
        int const k = axis_of(t);
        for (std::int64_t parts : {2, 3, 5})
          if (t.size(k) > 0 && t.size(k) % parts == 0) {
            auto const all = split(t, parts, spoken(k, rank));
            if (one_in(2)) push(concat({all.back(), all.front()}, spoken(k, rank)), x.trained);
            else push(all[static_cast<std::size_t>(between(0, parts - 1))], x.trained);
            return;
          }
        return;
      }
      case 8:
        if (rank < 5) return push(unsqueeze(t, one_in(3) ? -1 : between(0, rank)), x.trained);
        return push(mean(t, {0}), x.trained);
      case 9: {
        if (rank >= 4) return;
        shape s = t.shape();
        for (int k = 0; k < rank; ++k)
          if (s[k] == 1 && one_in(2)) s[k] = between(2, 3);
        if (one_in(2)) s.insert(0, between(1, 3));
        return push(broadcast_to(t, s), x.trained);
      }
      case 10: {
        if (rank == 0) return;
        int const k = axis_of(t);
        if (one_in(2))
          return push(pad(t, spoken(k, rank), between(0, 2), between(0, 2), 0.5 * between(0, 1)), x.trained);
        return push(concat({t, t * 0.5, slice(t, k, 0, (t.size(k) + 1) / 2)}, spoken(k, rank)), x.trained);
      }
      default:
        for (int k = 0; k < rank; ++k)
          if (t.size(k) == 1) return push(squeeze(t, spoken(k, rank)), x.trained);
        return push(contiguous(t), x.trained);
    }
  }

  void arithmetic(item const& x) {
    if (one_in(3)) {
      switch (below(5)) {
        case 0: return push(1 - x.t, x.trained);
        case 1: return push(x.t / 3, x.trained);
        case 2: return push(-x.t + 0.25, x.trained);
        case 3: return push(2 / (1 + square(x.t)), x.trained);
        default: return push(0.5 * x.t - 1, x.trained);
      }
    }
    tensor const y = fitting(x.t.shape());
    bool const trained = x.trained || last_trained_;
    switch (below(6)) {
      case 0: return push(x.t + y, trained);
      case 1: return push(y - x.t, trained);
      case 2: return push(x.t * calm(y), trained);
      case 3: return push(x.t / (1 + square(y)), trained);
      case 4: return push(one_in(2) ? maximum(x.t, y) : minimum(y, x.t), trained);
      default: return push(calm(x.t) * y, trained);
    }
  }

  void function(item const& x) {
    auto const& t = x.t;
    switch (below(16)) {
      case 0: return push(exp(calm(t)), x.trained);
      case 1: return push(log(1.5 + square(t)), x.trained);
      case 2: return push(sqrt(0.5 + abs(t)), x.trained);
      case 3: return push(rsqrt(0.5 + square(t)), x.trained);
      case 4: return push(reciprocal(1 + square(t)), x.trained);
      case 5: return push(abs(t), x.trained);
      case 6: return push(square(calm(t)), x.trained);
      case 7: return push(tanh(t), x.trained);
      case 8: return push(sigmoid(t), x.trained);
      case 9: return push(relu(t), x.trained);
      case 10: return push(silu(t), x.trained);
      case 11: return push(erf(t), x.trained);
      case 12: return push(one_in(2) ? elu(t, 0.7) : softplus(t), x.trained);
      case 13: return push(gelu(t, one_in(2)), x.trained);
      case 14: return push(leaky_relu(t, 0.1), x.trained);
      default: return push(pow(1 + square(calm(t)), one_in(2) ? 1.5 : 2), x.trained);
    }
  }

  void choice(item const& x) {
    tensor const condition = truth();
    tensor const y = one_in(2) ? -x.t : x.t * 0.25;
    if (condition.shape() == x.t.shape()) return push(where(condition, x.t, y), x.trained);
    if (one_in(2)) return push(cast(condition, form_.element), false);
    tensor const small = x.t.count() == 0 ? tensor::zeros({}, form_.element) : mean(x.t);
    push(where(condition, small, small * 0.5), x.trained);
  }

  void reduction(item const& x) {
    if (x.t.count() == 0) return push(sum(x.t), x.trained);
    auto axes = some_axes(x.t);
    bool const keep = one_in(2);
    switch (below(5)) {
      case 0: return push(sum(x.t, axes, keep) * 0.2, x.trained);
      case 1: return push(max(x.t, axes, keep), x.trained);
      case 2: return push(min(x.t, axes, keep), x.trained);
      case 3: return push(cast(sum(truth(), {}, keep), form_.element) * 0.1, false);
      default: return push(mean(x.t, axes, keep), x.trained);
    }
  }

  void product(item const& x) {
    tensor const m = of_rank(x.t, static_cast<int>(between(2, 3)));
    auto const k = m.size(-1);
    switch (below(6)) {
      case 0: return push(neap::linear(m, weight_seen({between(1, 6), k}), tensor()), true);
      case 1:
        return push(
            own(linears, [&] { return nn::linear(k, 1 + k % 5, {.bias = k % 3 != 0, .element = form_.element}); })(m),
            true);
      case 2: {
        tensor const q = of_rank(m, 2);
        return push(matmul(q, weight_seen({q.size(1), between(1, 6)})), true);
      }
      case 3: {
        tensor const q = of_rank(m, 2);
        return push(matmul(weight_seen({between(1, 4), q.size(0)}), q), true);
      }
      case 4: {  // a value with itself
        tensor const q = of_rank(m, static_cast<int>(between(2, 3)));
        tensor const c = calm(q);
        if (one_in(2)) return push(matmul(c, c, {.transpose_b = true}) * 0.5, x.trained);
        return push(matmul(transpose(c), q) * 0.5, x.trained);
      }
      default: {
        auto const& y = pick();
        tensor const a = of_rank(m, 2), b = of_rank(y.t, 2);
        if (a.size(0) == b.size(0)) return push(matmul(calm(a), b, {.transpose_a = true}), x.trained || y.trained);
        if (a.size(1) == b.size(1)) return push(matmul(a, calm(b), {.transpose_b = true}), x.trained || y.trained);
        return push(matmul(a, weight_seen({b.size(0), a.size(1)}), {.transpose_b = true}), true);
      }
    }
  }

  void rows(item const& x) {
    tensor const m = of_rank(x.t, static_cast<int>(between(1, 3)));
    auto const k = m.size(-1);
    switch (below(7)) {
      case 0: return push(softmax(m, spoken(axis_of(m), m.rank())), x.trained);
      case 1: return push(log_softmax(m, spoken(axis_of(m), m.rank())) * 0.25, x.trained);
      case 2: return push(layer_norm(m, weight_seen({k}), weight_seen({k})), true);
      case 3: return push(rms_norm(m, weight_seen({k})), true);
      case 4: return push(own(layer_norms, [&] { return nn::layer_norm(k, 1e-5, form_.element); })(m), true);
      case 5: {
        tensor const q = of_rank(m, 2);
        auto const n = some_ids();
        if (n.t.count() == 0) return;
        tensor const flat = reshape(n.t, {-1});
        if (n.below > q.size(1) || flat.size(0) < q.size(0)) return;
        tensor const l = cross_entropy_loss(q, slice(flat, 0, 0, q.size(0)), one_in(3) ? program_ids : -100);
        return push(where(apply(op::greater{}, {l, l * 0.5}), l, l * 0), x.trained);
      }
      default: {
        tensor const c = calm(m);
        return push(mse_loss(m, c), x.trained);
      }
    }
  }

  void attention_of(item const& x) {
    tensor t = of_rank(x.t, 3);
    if (t.count() > 200) t = mean(t, {0}, true);
    auto const width = t.size(2);
    switch (below(3)) {
      case 0: {
        std::int64_t const heads = width % 2 == 0 ? 2 : 1;
        auto& module = own(attentions, [&] {
          nn::multi_head_attention m(width, heads, {.causal = width % 3 == 0, .fused = width % 4 != 0, .dropout = 0.2});
          set_element(m, form_.element);
          return m;
        });
        return push(module(t), true);
      }
      case 1: {
        tensor const q = unsqueeze(t, 1), k = unsqueeze(t * 0.5, 1);
        if (one_in(2)) return push(attention(q, k, q, {.causal = one_in(2)}), x.trained);
        return push(plain_attention(q, k, q, {.causal = one_in(2)}, one_in(2) ? 0.25 : 0), x.trained);
      }
      default: {
        auto& module = own(blocks, [&] {
          nn::transformer_options o;
          o.norm_first = width % 2 == 0, o.dropout = width % 3 ? 0 : 0.3;
          nn::transformer_block b(width, 1, width + 1, o);
          set_element(b, form_.element);
          return b;
        });
        return push(module(t), true);
      }
    }
  }

  void image(item const& x) {
    tensor t = of_rank(x.t, 4);
    if (t.count() > 600) t = mean(t, {0}, true);
    auto const c = t.size(1), h = t.size(2), w = t.size(3);
    switch (below(9)) {
      case 0:
      case 1: {
        auto& module = own(convolutions, [&] {
          nn::conv2d_options o;
          o.padding = 1, o.stride = 1 + c % 2, o.bias = h % 2 == 0, o.element = form_.element;
          o.groups = c % 2 == 0 ? 2 : 1;
          return nn::conv2d(c, 2 * o.groups, 1 + (h > 1 && w > 1), o);
        });
        return push(module(t), true);
      }
      case 2: {
        std::int64_t const size = between(1, std::min<std::int64_t>(3, std::min(h, w)));
        return push(conv2d(t, weight_seen({between(1, 4), c, size, size}), tensor(),
                           {.padding = {between(0, 1), between(0, 1)}}),
                    true);
      }
      case 3: {
        if (h < 2 || w < 2) return push(adaptive_avg_pool2d(t), x.trained);
        auto const p = between(0, 1);
        if (one_in(2))
          return push(max_pool2d(t, {.window = {2, 2}, .stride = {1 + p, 2}, .padding = {p, p}}), x.trained);
        return push(avg_pool2d(t, {.window = {2, 2}, .stride = {2, 1 + p}, .padding = {p, p}}), x.trained);
      }
      case 4: return push(adaptive_avg_pool2d(t, between(1, h), between(1, w)), x.trained);
      case 5: return push(interpolate(t, between(1, 4), between(1, 4), {.bilinear = one_in(2)}), x.trained);
      case 6:
        return push(own(group_norms, [&] { return nn::group_norm(c % 2 ? 1 : 2, c, 1e-3, form_.element); })(t), true);
      default: {
        auto& module = own(batch_norms, [&] { return nn::batch_norm2d(c, 1e-2, 0.1, form_.element); });
        if (one_in(5)) {  // with the statistics of the steps before
          tensor const plain = [&] {
            evaluation const fixed;
            return module(t);
          }();
          return push(plain, false);
        }
        return push(module(t), true);
      }
    }
  }

  void lookup(item const& x) {
    auto const n = some_ids();
    switch (below(4)) {
      case 0: return push(own(embeddings, [&] { return nn::embedding(n.below, 3, 0.5, form_.element); })(n.t), true);
      case 1: return push(neap::embedding(weight_seen({n.below, between(1, 4)}), n.t), true);
      case 2: {  // rows of a value
        tensor const table = of_rank(x.t, 2);
        if (table.size(0) >= n.below) return push(neap::embedding(table, n.t), x.trained);
        return push(cast(n.t, form_.element) * 0.2, false);
      }
      default: {
        if (x.t.rank() == 0 || x.t.count() == 0) return;
        int const k = axis_of(x.t);
        return push(gather(x.t, unsqueeze(arg_max(x.t, k), k), spoken(k, x.t.rank())), x.trained);
      }
    }
  }

  void types(item const& x) {
    dtype const other = form_.element == dtype::f32 ? dtype::f64 : dtype::f32;
    switch (below(4)) {
      case 0: return push(cast(cast(x.t, other) * 0.5, form_.element), x.trained);
      case 1: return push(cast(some_ids().t, form_.element) * 0.1, false);
      case 2: return push(cast(truth(), form_.element), false);
      default: return push(cast(sum(some_ids().t), form_.element) * 0.01, false);
    }
  }

  /// Updates in place, and reads before and after.
  void update(item const& x) {
    switch (below(8)) {
      case 0: {  // a counter
        tensor const n = own(counters, [&] { return buffer({}, initialiser::constant(0), dtype::i64); });
        if (one_in(2)) push(cast(n, form_.element) * 0.01, false);
        apply(op::increment{}, {n});
        return push(x.t + cast(n, form_.element) * 0.01, x.trained);
      }
      case 1: {  // a running mean of what the program computes
        if (x.t.count() == 0) return;
        tensor const m = mean(x.t);
        tensor const b = own(buffers, [&] { return buffer({}, initialiser::constant(0.5), form_.element); });
        apply(op::sgd{0.1, 0}, {b, b - m});
        if (one_in(2)) return push(x.t - b, x.trained);
        return;
      }
      case 2: {  // a running mean of rows, read before and after
        tensor const m = of_rank(x.t, 2);
        auto const k = m.size(1);
        tensor const b = own(buffers, [&] { return buffer({k}, initialiser::constant(0.25), form_.element); });
        if (one_in(2)) push(m + b, x.trained);
        {
          no_gradient const still;
          apply(op::momentum{0.1, 0.9, 0, 0, false}, {b, b - mean(m, {0}), own(buffers, [&] {
                                                        return buffer({k}, initialiser::constant(0), form_.element);
                                                      })});
        }
        return push(m - b, x.trained);
      }
      case 3: {  // a part of a table is written, all of it is read
        tensor const m = of_rank(x.t, 1);
        auto const k = m.size(0);
        tensor const b = own(buffers, [&] { return buffer({3, k}, initialiser::constant(0.1), form_.element); });
        {
          no_gradient const still;
          apply(op::accumulate{}, {select(b, 0, 1), calm(m) * 0.1});
          if (one_in(2)) apply(op::sgd{0.5, 0.5}, {slice(b, 0, 0, 2), slice(b, 0, 1, 3) * 0.1});
        }
        return push(m + select(b, 0, between(0, 2)) + mean(b), x.trained);
      }
      case 4: {  // starts anew
        tensor const b = own(buffers, [&] { return buffer({2}, initialiser::constant(0.75), form_.element); });
        push(b * 0.5, false);
        if (one_in(2)) apply(op::reset{}, {b});
        else assign(b, contiguous(broadcast_to(calm(mean(of_rank(x.t, 1))), {2})));
        return push(sum(b) + x.t, x.trained);
      }
      case 5: {  // an intermediate result
        tensor const y = contiguous(input_like());
        tensor const z = y * 2;
        apply(op::accumulate{}, {z, y});
        if (one_in(2)) apply(op::accumulate{}, {z, z * 0.5});
        return push(z * 0.25, false);
      }
      case 6: {  // an intermediate result, through a view
        tensor const z = of_rank(input_like(), 2) * 2;
        tensor const t = transpose(z);
        apply(op::accumulate{}, {select(z, 0, 0), select(z, 0, 0) * 0.5});
        if (one_in(2)) return push(t * 0.25, false);
        apply(op::reset{}, {slice(t, 0, 0, 1)});
        return push(z * 0.25, false);
      }
      default: {  // numbers that are only read
        tensor const b = own(buffers, [&] { return buffer({2, 3}, initialiser::uniform(-1, 1), form_.element); });
        return push((one_in(2) ? mean(b) : mean(transpose(b))) + x.t, x.trained);
      }
    }
  }
  /// Something that no gradient goes through.
  tensor input_like() {
    for (auto const& x : pool_)
      if (!x.trained && one_in(2)) return x.t.count() ? x.t : tensor::ones({2, 2}, form_.element);
    return tensor::full({2, 3}, 0.5, form_.element);
  }

  void made_here(item const& x) {
    auto const last = x.t.rank() ? x.t.size(-1) : 1;
    switch (below(7)) {
      case 0: return push(tensor::full({between(1, 3), 2}, 0.25 * between(0, 4), form_.element), false);
      case 1: return push(x.t + fill({last}, 0.5, form_.element), x.trained);
      case 2: {
        std::vector<float> v;
        for (std::int64_t i = 0; i < last; ++i) v.push_back(0.125f * static_cast<float>(i % 7));
        return push(x.t * cast(tensor::from(v, {last}), form_.element), x.trained);
      }
      case 3: {  // numbers that the program has kept
        tensor const c = own(constants, [&] { return constant(tensor::randn({3, last}, 7, form_.element)); });
        if (one_in(2)) return push(transpose(c), false);
        return push(x.t + select(c, 0, 1), x.trained);
      }
      case 4: {  // a view of it that was made with the model
        tensor const c = own(constants, [&] {
          return slice(constant(tensor::rand({last, 4}, 7, form_.element)), 1, 1, 3);
        });
        return push(select(c, 1, 0) - x.t, x.trained);
      }
      case 5: {  // zeros that the program has kept
        tensor const c = own(constants, [&] { return transpose(tensor::full({last, 2}, 0.5, form_.element)); });
        return push(select(c, 0, 1) * x.t, x.trained);
      }
      default: return push(x.t + tensor::randn({last}, 3, form_.element) * 0.5, x.trained);
    }
  }

  void structure(item const& x) {
    switch (below(6)) {
      case 0: {  // a recurrent loop over an axis, its layers shared
        tensor const m = of_rank(x.t, 3);
        auto const k = m.size(2);
        auto const w = weight_seen({3, k}), u = weight_seen({3, 3});
        tensor h = tensor::zeros({m.size(0), 3}, form_.element);
        for (std::int64_t i = 0; i < std::min<std::int64_t>(m.size(1), 4); ++i)
          h = tanh(neap::linear(select(m, 1, i), w, {}) + neap::linear(h, u, {}));
        return push(h, true);
      }
      case 1: {  // a residual block, used twice
        tensor const m = of_rank(x.t, 2);
        auto const k = m.size(1);
        auto& f = own(sequences, [&] {
          nn::sequential s(nn::linear(k, k + 1, {.element = form_.element}), nn::gelu{}, nn::dropout{0.25},
                           nn::linear(k + 1, k, {.element = form_.element}));
          return s;
        });
        tensor y = m + f(m);
        if (one_in(2)) y = y + f(y);
        return push(y, true);
      }
      case 2: {
        no_gradient const still;
        return push(calm(x.t) + 1, false);
      }
      case 3: return push(x.t.detach() * 0.5, false);
      case 4: {  // looked at in parts, put together otherwise
        tensor const m = of_rank(x.t, 2);
        std::vector<tensor> parts;
        for (std::int64_t i = 0; i < std::min<std::int64_t>(m.size(0), 4); ++i) parts.push_back(select(m, 0, i));
        std::reverse(parts.begin(), parts.end());
        tensor total = parts[0];
        for (auto const& p : parts) total = total + p * 0.5;
        return push(one_in(2) ? concat(parts) : total, x.trained);
      }
      default: {  // the smaller of weights, and a weight's norm
        tensor const w = weight_seen({between(1, 4), 2});
        return push(sqrt(sum(square(w)) + 1) + x.t * 0.5, true);
      }
    }
  }

  // ------------------------------------------------------------------ the instructions that leave samples apart

  // Of values whose axis 0 is the samples'. No decision depends on how many there are.

  /// The same with `rank` axes, of which the first stays.
  tensor samples_of_rank(tensor x, int rank) {
    while (x.rank() > rank) x = flatten(x, x.rank() - 2);
    while (x.rank() < rank) x = unsqueeze(x, between(1, x.rank()));
    return x;
  }
  void push_samples(tensor t, bool trained) {
    auto const each = [&] {
      std::int64_t n = 1;
      for (int k = 1; k < t.rank(); ++k) n *= t.size(k);
      return n;
    };
    while (each() > 200) t = mean(t, {-1});
    pool_.push_back({std::move(t), trained});
  }
  void instruction_of_samples() {
    item const x = pick();
    auto const& t = x.t;
    int const rank = t.rank();
    switch (below(16)) {
      case 0:
      case 1: return function(x);
      case 2: {
        item y = x;
        for (auto const& other : pool_)
          if (other.t.rank() == rank && one_in(2)) {
            bool same = true;
            for (int k = 1; k < rank; ++k) same = same && other.t.size(k) == t.size(k);
            if (same) y = other;
          }
        bool const trained = x.trained || y.trained;
        switch (below(4)) {
          case 0: return push_samples(t + y.t * 0.5, trained);
          case 1: return push_samples(calm(t) * y.t, trained);
          case 2: return push_samples(maximum(t, 0.25 - y.t), trained);
          default: return push_samples(where(apply(op::greater{}, {t, y.t * 0.5}), t, -y.t), trained);
        }
      }
      case 3:
      case 4: {
        tensor const m = samples_of_rank(t, std::max(rank, 2));
        auto const k = m.size(-1);
        if (one_in(2)) return push_samples(neap::linear(m, weight_seen({between(1, 6), k}), tensor()), true);
        return push_samples(
            own(linears, [&] { return nn::linear(k, 1 + k % 5, {.bias = k % 3 != 0, .element = form_.element}); })(m),
            true);
      }
      case 5: return push_samples(one_in(2) ? flatten(t, rank > 1 ? 1 : 0) : reshape(t, {t.size(0), -1}), x.trained);
      case 6: {  // axes in another order, a part, one of them
        if (rank < 2) return push_samples(unsqueeze(t, one_in(2) ? -1 : 1), x.trained);
        int const k = 1 + static_cast<int>(below(static_cast<std::uint32_t>(rank - 1)));
        switch (below(4)) {
          case 0: return push_samples(transpose(t, k, rank - 1), x.trained);
          case 1: return push_samples(slice(t, k, 0, (t.size(k) + 1) / 2), x.trained);
          case 2: return push_samples(select(t, k, between(0, t.size(k) - 1)), x.trained);
          default: return push_samples(concat({t, t * 0.5}, k), x.trained);
        }
      }
      case 7: {
        if (rank < 2) return push_samples(t - mean(t, {0}, true), x.trained);
        int const k = 1 + static_cast<int>(below(static_cast<std::uint32_t>(rank - 1)));
        bool const keep = one_in(2);
        return push_samples(one_in(2) ? max(t, {k}, keep) : sum(t, {k}, keep) * 0.25, x.trained);
      }
      case 8: {  // rows
        tensor const m = samples_of_rank(t, std::max(rank, 2));
        auto const k = m.size(-1);
        switch (below(3)) {
          case 0: return push_samples(softmax(m, -1), x.trained);
          case 1: return push_samples(rms_norm(m, weight_seen({k})), true);
          default:
            return push_samples(own(layer_norms, [&] { return nn::layer_norm(k, 1e-5, form_.element); })(m), true);
        }
      }
      case 9: return push_samples(one_in(2) ? softmax(t, 0) : t * sigmoid(mean(t, {0}, true)), x.trained);
      case 10: return push_samples(dropout(t, 0.1 * between(0, 7)), x.trained);
      case 11: {  // images
        tensor const m = samples_of_rank(t, 4);
        auto const c = m.size(1), h = m.size(2), w = m.size(3);
        switch (below(3)) {
          case 0: {
            auto& module = own(convolutions, [&] {
              nn::conv2d_options o;
              o.padding = 1, o.stride = 1 + c % 2, o.bias = h % 2 == 0, o.element = form_.element;
              return nn::conv2d(c, 2, 1 + (h > 1 && w > 1), o);
            });
            return push_samples(module(m), true);
          }
          case 1:
            return push_samples(own(batch_norms, [&] { return nn::batch_norm2d(c, 1e-2, 0.1, form_.element); })(m),
                                true);
          default:
            return push_samples(max_pool2d(m, {.window = {1, 2}, .stride = {1, 1}, .padding = {0, 1}}), x.trained);
        }
      }
      case 12: {
        tensor const m = samples_of_rank(t, 3);
        auto const width = m.size(2);
        auto& module = own(attentions, [&] {
          nn::multi_head_attention a(width, width % 2 == 0 ? 2 : 1,
                                     {.causal = width % 3 == 0, .fused = width % 4 != 0});
          set_element(a, form_.element);
          return a;
        });
        return push_samples(module(m), true);
      }
      case 13: {
        if (ids_.empty()) return;
        auto const& n = ids_[below(static_cast<std::uint32_t>(ids_.size()))];
        return push_samples(own(embeddings, [&] { return nn::embedding(n.below, 3, 0.5, form_.element); })(n.t), true);
      }
      case 14: {  // a loop over an axis, its layers shared
        tensor const m = samples_of_rank(t, 3);
        auto const w = weight_seen({3, m.size(2)}), u = weight_seen({3, 3});
        tensor h = tensor::zeros({m.size(0), 3}, form_.element);
        for (std::int64_t i = 0; i < std::min<std::int64_t>(m.size(1), 3); ++i)
          h = tanh(neap::linear(select(m, 1, i), w, {}) + neap::linear(h, u, {}));
        return push_samples(h, true);
      }
      default: {  // a running mean of what the program computes, read before or after; a counter
        tensor const b = own(buffers, [&] { return buffer({}, initialiser::constant(0.5), form_.element); });
        tensor const before = t - b;
        apply(op::sgd{0.1, 0}, {b, b - mean(t)});
        tensor const n = own(counters, [&] { return buffer({}, initialiser::constant(0), dtype::i64); });
        apply(op::increment{}, {n});
        return push_samples(one_in(2) ? before : t - b + cast(n, form_.element) * 0.01, x.trained);
      }
    }
  }

  // ------------------------------------------------------------------ what the step tells

  /// Something that the program has: an intermediate result or a view of one, a part of the loss, numbers, truth values,
  /// an input, a buffer.
  tensor output(tensor const& l, std::vector<tensor> const& inputs) {
    tensor const& x = pick().t;
    switch (below(10)) {
      case 0: return l * 0.5;
      case 1: return mean(square(calm(x)));  // another loss
      case 2: {
        no_gradient const still;
        return x.count() == 0 ? sum(x) : max(x);
      }
      case 3: return x.detach();
      case 4: return x.rank() >= 2 ? transpose(x) : x * 2;
      case 5: return x.rank() >= 1 && x.size(-1) > 0 ? arg_max(x, -1) : apply(op::greater{}, {x, x * 0.5});
      case 6: return truths_.empty() ? apply(op::less_equal{}, {x, calm(x)}) : truths_[0];
      case 7: return inputs[below(static_cast<std::uint32_t>(inputs.size()))];
      case 8: return buffers.empty() ? x : tensor(buffers[0]);
      default: return x;
    }
  }

  // ------------------------------------------------------------------ the loss

  tensor loss(std::vector<tensor> const& inputs) {
    tensor const x = reshape(cast(inputs[0], form_.element), {inputs[0].size(0), -1});
    tensor total = mean(square(neap::linear(x, weight({2, x.size(1)}), {}) - 0.5));
    std::size_t const first = pool_.size() - std::min<std::size_t>(pool_.size(), 1 + below(4));
    for (std::size_t i = first; i < pool_.size(); ++i) {
      tensor const& y = pool_[i].t;
      if (y.count() == 0) total = total + sum(y);
      else if (one_in(3)) total = total + mean(calm(y));
      else if (one_in(2)) total = total + 0.1 * mse_loss(calm(y), calm(0.5 * y + 0.25));
      else total = total + mean(square(calm(y))) * (0.25 + below(3));
    }
    switch (below(8)) {
      case 0: return reshape(total, {1});
      case 1: return unsqueeze(unsqueeze(total, 0), 0);
      case 2: return cast(total, form_.element == dtype::f32 ? dtype::f64 : dtype::f32);
      default: return total;
    }
  }

  struct counts {
    std::vector<std::pair<std::ptrdiff_t, std::size_t>> all;
    std::size_t& operator[](std::ptrdiff_t k) {
      for (auto& [key, n] : all)
        if (key == k) return n;
      return all.emplace_back(k, 0).second;
    }
  };

  program_form form_;
  random_stream draw_;
  bool building_ = false;
  counts next_;
  std::size_t weights_seen_ = 0;
  std::vector<item> pool_;
  std::vector<numbers> ids_;
  std::vector<tensor> truths_;
};

}  // namespace neap::testing
