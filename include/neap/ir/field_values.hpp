// What the elements of values are, in a prime field instead of in floating-point numbers: so that two ways to compute
// something can be compared without a tolerance. Sums, products and whatever only moves elements are computed as they
// are; every other function, 1 / x too, is a keyed hash of what it reads, so that two results agree where the
// arguments do. Given values are free variables: their elements are keyed hashes of a name and a place.
//
// Two values are compared at all places. They are cut into cells (ir/index_cells.hpp) at whose places they are one
// formula of elements whose places are linear forms, and a cell is evaluated once, its free variables being hashes of
// the forms. Equal formulas are equal at each place of the cell. Nothing is computed but what is compared, and what
// that needs.
//
// The prime and the key are drawn. Formulas of degree d that differ agree with a chance of at most 1.2 d / 2^60 over
// the key (Schwartz 1980; TASO, SOSP'19, verifies its rules so). Constants that differ agree modulo at most 35 d of
// the 2.7e16 primes that are drawn from. d counts constants as factors too and is at most 1024, else the comparison
// gives up: two values that differ are found to be equal with a chance below 2^-38. This holds against an author who knows this
// code and not the key, if SipHash under a secret key is a random function.
//
// Beside its value each element has four more figures, for rewrites that are right over the reals and wrong in floating
// point:
//
// - its strict value: the same without signs, and 0 as a factor a free variable. Two formulas that are equal so have
//   the same products with the same factors: neither adds what it subtracts later, (y + m) - m for y. They differ by
//   rounding alone, relative to the sum of the products' magnitudes, which is one and the same (Higham, Accuracy and
//   Stability of Numerical Algorithms, 3.1).
// - its zeros: the terms of the strict value in which a 0 that an operator puts in is a factor of a free variable. Such
//   a 0 is what triangle and pad write, and a sum without terms. As an addend it changes nothing; times an infinity it
//   is no number, so that neither x times an identity matrix is x, nor is a masked product that of what is masked. One
//   exception: zeros by which the kernel of a convolution is enlarged on all sides (a rule of the library does it) are
//   no factors of the image there, and a plan with them may have NaN where the original has none.
// - the signs of its zeros: the sign of the 0 that it is where all free variables are 0, and where all are -0. Sums,
//   differences and negations of elements keep it: x + 0 is not x, and b - a not -(a - b). A product has no such sign: a
//   rewrite that takes products apart may change that of a zero.
// - its magnitude, where all free variables are 1: no intermediate result may lie far above or below the range of the
//   other formula's (within_magnitudes).
//
// A cast to a type that has all numbers of the old one and back changes nothing; one to another type is a hash. What
// was computed in a narrow type and then widened is not what was computed in the wide one.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/prime_field.hpp>
#include <neap/core/sip_hash.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/index_cells.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/ir/stored.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// Which values of a graph are given, and by what names.
class given_values {
 public:
  virtual ~given_values() = default;
  /// Whether v is given; its name then.
  virtual bool given(value_id v, digest& name) const = 0;
  /// What an op of the graph computes.
  virtual operator_view meaning(op_graph const& g, op_id o) const { return g.meaning(o); }
};

/// What is drawn: a key, and a prime by it.
struct field_secret {
  hash_key key;
  prime_field field;
  explicit field_secret(hash_key k = hash_key::drawn()) : key(k), field(k) {}
};

class field_values;
enum class field_answer : std::uint8_t { same, different, too_large };

/// What the evaluators of a comparison share: the secret, the cell at hand, and which arguments of hashed functions are
/// equal.
class field_comparison {
 public:
  explicit field_comparison(field_secret const& secret) : secret_(secret) {}
  field_secret const& secret() const { return secret_; }

 private:
  friend class field_values;
  struct argument {
    field_values* of;
    value_id v;
    digest sample;
  };
  field_secret const& secret_;
  index_frame* frame_ = nullptr;
  std::uint32_t frames_ = 0;
  plain_vector<argument> arguments_;  // one of each class of equal values
};

/// Elements of a graph's values. Every source that is read must be given.
class field_values {
 public:
  /// `most`: how many elements are worked out in all before it gives up.
  field_values(op_graph const& g, given_values const& given, field_comparison& shared, std::int64_t most = 4'000'000)
      : g_(g),
        given_(given),
        shared_(shared),
        f_(shared.secret().field),
        left_(most),
        known_(g.value_count(), 0),
        names_(g.value_count()) {}

  /// Whether all requested values could be computed: there was no source without a name, and not too much to do.
  explicit operator bool() const { return left_ > 0; }

  /// The element of v at a place, an index an axis.
  field_number at(value_id v, extents const& place) {
    auto* const outer = std::exchange(shared_.frame_, nullptr);
    auto const x = at(v, index_place(place));
    shared_.frame_ = outer;
    return x.value;
  }

  /// Whether value x of one graph and y of another, or the same, have the same elements at every place, whatever the
  /// given values are, for all but an unlucky draw of the secret (see above). a and b share a comparison. Takes what
  /// evaluating one element of each cell takes.
  static field_answer compare(field_values& a, value_id x, field_values& b, value_id y) {
    if (!(a.g_.type(x) == b.g_.type(y))) return field_answer::different;
    auto const& dims = a.g_.type(x).dims;
    if (elements(dims) == 0) return field_answer::same;
    auto& shared = a.shared_;
    auto* const outer = shared.frame_;
    std::vector<index_cell> open{index_cell::all_of(dims)};
    auto answer = field_answer::same;
    for (std::size_t cells = 0; !open.empty() && answer == field_answer::same; ++cells) {
      auto const c = std::move(open.back());
      open.pop_back();
      index_frame frame(c, shared.secret().key, ++shared.frames_);
      shared.frame_ = &frame;
      auto const p = a.at(x, frame.start());
      auto const q = frame.is_cut() || !a ? p : b.at(y, frame.start());
      if (!a || !b || cells == max_cells) answer = field_answer::too_large;
      else if (frame.is_cut()) c.cut(frame.cut(), [&](index_cell piece) { open.push_back(std::move(piece)); });
      else if (!a.are_same(p, q)) answer = field_answer::different;
    }
    shared.frame_ = outer;
    return answer;
  }
  /// Whether no result that a worked out lies 1024 times above or below those of b, given values being 1; of type f16,
  /// whose range is small, 16 times.
  static bool within_magnitudes(field_values const& a, field_values const& b) {
    auto const within = [](range const& x, range const& y, double factor) {
      return x.most <= factor * y.most && x.least * factor >= y.least;
    };
    return within(a.range_, b.range_, 1024) && within(a.half_range_, b.half_range_, 16);
  }

 private:
  static constexpr std::size_t max_cells = 20'000;
  static constexpr float max_degree = 1024;
  static constexpr int max_depth = 1000;  // ops behind one another, for the machine's stack is finite

  /// A formula without signs: what it is, and that of its terms without free variables.
  struct unsigned_formula {
    field_number all, constant;
    friend bool operator==(unsigned_formula const&, unsigned_formula const&) = default;
  };
  /// Of what sign a zero is; unknown: that is not said, or it is none.
  enum class zero_sign : std::uint8_t { unknown, plus, minus };
  struct zero_signs {                                                   // where all free variables are 0, and -0
    zero_sign of_plus = zero_sign::minus, of_minus = zero_sign::minus;  // -0, to which a sum adds its terms
    friend bool operator==(zero_signs const&, zero_signs const&) = default;
  };
  static constexpr zero_signs no_signs{zero_sign::unknown, zero_sign::unknown};
  static constexpr zero_signs plus_zero{zero_sign::plus, zero_sign::plus};
  static constexpr zero_signs of_variable{zero_sign::plus, zero_sign::minus};
  struct element {
    field_number value;
    unsigned_formula strict;
    unsigned_formula masked;  // the strict value where zeros that an operator puts in are 1
    unsigned_formula kernel;  // the same where those that enlarge a convolution's kernel are still 0
    double magnitude = 0;     // where all free variables are 1 and nothing has a sign
    float degree = 0;
    zero_signs signs{};
  };

  enum class kind : std::uint8_t {
    unknown,
    hashed,
    scalar,
    add,
    sub,
    mul,
    div,
    neg,
    square,
    reciprocal,
    add_scalar,
    mul_scalar,
    copy,
    load,
    cast,
    reshape,
    permute,
    slice,
    split,
    pad,
    concat,
    broadcast_to,
    fill,
    sum,
    mean,
    sum_to,
    triangle,
    matmul,
    conv2d,
    conv2d_grad_input,
    conv2d_grad_weight,
    place,
    combine_into,
    accumulate,
    fused,
    epilogue
  };
  /// Operators whose results are functions of the elements at one place.
  template <class... Op>
  static constexpr auto scalar_rows(type_list<Op...>) {
    return std::array{
        (op::scalar_operator<Op> || std::is_same_v<Op, op::where> || requires { typename Op::gradient_op; })...};
  }
  operator_view meaning(op_id o) const {
    auto const& f = g_.facets(o);
    return &f == &facets_of<op::opaque> ? given_.meaning(g_, o) : g_.view(o);
  }
  template <class Op>
  Op const* means(op_id o) const {
    return detail::as_operator<Op>(meaning(o));
  }
  kind kind_of(op_id o) {
    auto& k = known_kinds_.empty() ? (known_kinds_.assign(g_.op_count(), kind::unknown), known_kinds_[index(o)])
                                   : known_kinds_[index(o)];
    if (k != kind::unknown) return k;
    static constexpr auto scalars = scalar_rows(op::standard_list{});
    auto const& f = *meaning(o).facets;
    k = f.standard_row >= 0 && scalars[static_cast<std::size_t>(f.standard_row)] && !f.random ? kind::scalar
                                                                                              : kind::hashed;
    struct row {
      operator_facets const* facets;
      kind is;
    };
    static row const rows[] = {{&facets_of<op::add>, kind::add},
                               {&facets_of<op::sub>, kind::sub},
                               {&facets_of<op::mul>, kind::mul},
                               {&facets_of<op::div>, kind::div},
                               {&facets_of<op::neg>, kind::neg},
                               {&facets_of<op::square>, kind::square},
                               {&facets_of<op::reciprocal>, kind::reciprocal},
                               {&facets_of<op::add_scalar>, kind::add_scalar},
                               {&facets_of<op::mul_scalar>, kind::mul_scalar},
                               {&facets_of<op::copy>, kind::copy},
                               {&facets_of<op::store>, kind::scalar},
                               {&facets_of<op::wait>, kind::scalar},
                               {&facets_of<op::load>, kind::load},
                               {&facets_of<op::cast>, kind::cast},
                               {&facets_of<op::reshape>, kind::reshape},
                               {&facets_of<op::permute>, kind::permute},
                               {&facets_of<op::slice>, kind::slice},
                               {&facets_of<op::split>, kind::split},
                               {&facets_of<op::pad>, kind::pad},
                               {&facets_of<op::concat>, kind::concat},
                               {&facets_of<op::broadcast_to>, kind::broadcast_to},
                               {&facets_of<op::fill>, kind::fill},
                               {&facets_of<op::sum>, kind::sum},
                               {&facets_of<op::mean>, kind::mean},
                               {&facets_of<op::sum_to>, kind::sum_to},
                               {&facets_of<op::triangle>, kind::triangle},
                               {&facets_of<op::matmul>, kind::matmul},
                               {&facets_of<op::conv2d>, kind::conv2d},
                               {&facets_of<op::conv2d_grad_input>, kind::conv2d_grad_input},
                               {&facets_of<op::conv2d_grad_weight>, kind::conv2d_grad_weight},
                               {&facets_of<op::place>, kind::place},
                               {&facets_of<op::combine_into>, kind::combine_into},
                               {&facets_of<op::accumulate>, kind::accumulate}};
    if (auto const* several = means<op::fused>(o)) {
      if (!several->has_anchor()) k = kind::fused;
      else if (several->is_product()) k = kind::epilogue;
    }
    for (auto const& r : rows)
      if (r.facets == &f) k = r.is;
    // What floating-point operators do to whole numbers and truths is another matter.
    bool const exact = k == kind::copy || k == kind::load || (k >= kind::reshape && k <= kind::fill) ||
                       k == kind::place || k == kind::triangle;
    if (!exact && k != kind::scalar && k != kind::hashed && k != kind::fused && k != kind::epilogue &&
        !is_floating(g_.type(g_.output(o)).element)) {
      bool const elementwise = k <= kind::cast;
      k = elementwise ? kind::scalar : kind::hashed;
    }
    return k;
  }
  bool moves_only(op_id o) {
    auto const k = kind_of(o);
    return k == kind::copy || k == kind::load || k == kind::fill || k == kind::concat || k == kind::pad ||
           (k >= kind::reshape && k <= kind::split) || k == kind::broadcast_to;
  }

  bool is_given(value_id v) {
    if (!known_[v]) known_[v] = given_.given(v, names_[v]) ? 2 : 1;
    return known_[v] == 2;
  }
  element give_up() {
    left_ = 0;
    return {};
  }
  index_frame* frame() const { return shared_.frame_; }
  /// Whether answers still mean something.
  bool goes_on() const { return left_ > 0 && !(frame() && frame()->is_cut()); }

  sip_hash hash() const { return sip_hash(shared_.secret().key); }
  element with(field_number value, unsigned_formula const& strict, double magnitude, float degree) const {
    return {value, strict, strict, strict, magnitude, degree, of_variable};
  }
  element variable(digest d) const {
    auto const x = f_.from_bits(d.low);
    return with(x, {x, {}}, 1, 1);
  }
  /// An operator's 0.
  element zero() const {
    unsigned_formula const one{f_.one(), f_.one()};
    return {{}, {}, one, one, 0, 0, plus_zero};
  }
  /// One that enlarges the kernel of a convolution.
  element kernel_zero() const {
    auto x = zero();
    x.kernel = {};
    return x;
  }
  /// The terms of the strict value that have an operator's 0 and a free variable as factors.
  field_number zeros(element const& x) const {
    if (x.masked == x.strict) return {};
    return f_.sub(f_.sub(x.masked.all, x.masked.constant), f_.sub(x.strict.all, x.strict.constant));
  }
  bool are_same(element const& x, element const& y) const {
    auto const differ = [](zero_sign a, zero_sign b) {
      return a != b && a != zero_sign::unknown && b != zero_sign::unknown;
    };
    return x.value == y.value && x.strict.all == y.strict.all && zeros(x) == zeros(y) &&
           !differ(x.signs.of_plus, y.signs.of_plus) && !differ(x.signs.of_minus, y.signs.of_minus);
  }
  static zero_sign sum(zero_sign a, zero_sign b) {
    if (a == zero_sign::unknown || b == zero_sign::unknown) return zero_sign::unknown;
    return a == b ? a : zero_sign::plus;
  }
  static zero_sign negative(zero_sign a) {
    return a == zero_sign::unknown ? a : a == zero_sign::plus ? zero_sign::minus : zero_sign::plus;
  }
  element constant(double x) const {
    if (!std::isfinite(x)) {
      auto const sign = hash().mix(0x636f6e7374).mix(std::bit_cast<std::uint64_t>(x)).finish();
      auto const plain = hash().mix(0x636f6e7374).mix(std::bit_cast<std::uint64_t>(std::abs(x))).finish();
      return with(f_.from_bits(sign.low), {f_.from_bits(plain.low), {}}, 1, 1);
    }
    auto const size = f_.of(std::abs(x));
    auto y = with(f_.of(x), {size, size}, std::abs(x), x == 0 ? 0.0f : 1.0f);
    y.signs = x != 0 ? no_signs : std::signbit(x) ? zero_signs{} : plus_zero;
    return y;
  }
  /// A constant that elements are multiplied with: 0 times what is infinite is not 0.
  element factor(double x) const {
    if (x != 0) return constant(x);
    auto y = with({}, {f_.from_bits(hash().mix(0x7a65726f).word()), {}}, 0, 1);
    y.signs = std::signbit(x) ? zero_signs{} : plus_zero;
    return y;
  }
  unsigned_formula sum(unsigned_formula const& a, unsigned_formula const& b) const {
    return {f_.add(a.all, b.all), f_.add(a.constant, b.constant)};
  }
  unsigned_formula product(unsigned_formula const& a, unsigned_formula const& b) const {
    return {f_.mul(a.all, b.all), f_.mul(a.constant, b.constant)};
  }
  element sum(element const& a, element const& b) const {
    return {f_.add(a.value, b.value),
            sum(a.strict, b.strict),
            sum(a.masked, b.masked),
            sum(a.kernel, b.kernel),
            a.magnitude + b.magnitude,
            std::max(a.degree, b.degree),
            {sum(a.signs.of_plus, b.signs.of_plus), sum(a.signs.of_minus, b.signs.of_minus)}};
  }
  element negative(element a) const {
    a.value = f_.neg(a.value), a.signs = {negative(a.signs.of_plus), negative(a.signs.of_minus)};
    return a;
  }
  element product(element const& a, element const& b) {
    auto x =
        with(f_.mul(a.value, b.value), product(a.strict, b.strict), a.magnitude * b.magnitude, a.degree + b.degree);
    x.signs = no_signs;
    if (!(a.masked == a.strict && b.masked == b.strict)) x.masked = x.kernel = product(a.masked, b.masked);
    if (x.magnitude == 0 && a.magnitude != 0 && b.magnitude != 0) range_.least = half_range_.least = 0;
    return x;
  }
  /// The same where the second one is a number.
  element scaled(element const& a, double by) {
    auto const b = factor(by);
    auto x = product(a, b);
    x.kernel = product(a.kernel, b.kernel);
    if (by == 1) x.signs = a.signs;
    return x;
  }
  /// As a factor of an image, in a convolution.
  static element in_kernel(element x) {
    x.masked = x.kernel;
    return x;
  }
  /// What a function makes of one element: a hash of it, `h` being one of the function.
  element function(sip_hash h, element const& x) const {
    mix_signs(h, x);
    auto y = variable(h.mix(x.value.n).finish());
    return is_as_strict(x) ? y : with_strict(y, h.mix(x.strict.all.n).mix(zeros(x).n));
  }
  static void mix_signs(sip_hash& h, element const& x) {
    if (x.signs != of_variable && x.signs != no_signs)
      h.mix(0x7a65726f + 4 * static_cast<std::uint64_t>(x.signs.of_plus) +
            static_cast<std::uint64_t>(x.signs.of_minus));
  }
  bool is_as_strict(element const& x) const { return x.value == x.strict.all && zeros(x) == field_number{}; }
  element with_strict(element const& x, sip_hash h) const {
    return with(x.value, {f_.from_bits(h.word()), {}}, x.magnitude, x.degree);
  }
  /// What a function makes of several, `key` being one of the function.
  element function_of(digest key, std::span<element const> arguments) const {
    auto value = hash().mix(key), strict = value;
    bool differ = false;
    for (auto const& x : arguments) {
      mix_signs(value, x), mix_signs(strict, x);
      value.mix(x.value.n), strict.mix(x.value.n).mix(x.strict.all.n).mix(zeros(x).n);
      differ = differ || !is_as_strict(x);
    }
    auto const x = variable(value.finish());
    return differ ? with_strict(x, strict) : x;
  }
  element reciprocal(element const& x) const {
    auto y = function(hash().mix(0x696e7665727365), x);
    y.magnitude = x.magnitude == 0 ? 1 : 1 / x.magnitude;
    return y;
  }

  /// The element of v at a place of the cell at hand.
  element at(value_id v, index_place const& place) {
    if (--left_ <= 0 || !goes_on()) return {};
    if (is_given(v)) {
      auto const [n, tag] = linear(v, place);
      return variable(hash().mix(names_[v]).mix(static_cast<std::uint64_t>(n)).mix(tag).finish());
    }
    auto const o = g_.producer(v);
    if (o == nothing<op_id>) return give_up();
    if (moves_only(o)) return computed(o, v, place);
    auto const [n, tag] = linear(v, place);
    // A coordinate that varies means another thing in another cell.
    auto const key = digest{shared_.secret().key.low, shared_.secret().key.high}
                         .mix(index(v))
                         .mix(static_cast<std::uint64_t>(n))
                         .mix(tag)
                         .mix(tag == 0 ? 0 : frame()->number());
    if (auto const row = rows_.find(key.low); row != number_map::none && memory_[row].check == key.high)
      return memory_[row].is;
    auto const x = computed(o, v, place);
    if (!goes_on()) return {};
    if (x.degree > max_degree) return give_up();
    see(g_.type(v).element, x);
    if (rows_.add(key.low, static_cast<std::uint32_t>(memory_.size()))) memory_.push_back({key.high, x});
    return x;
  }

  /// Which of the values requested before an argument equals, or a new number. Two places distinguish most;
  /// what agrees there is compared whole.
  std::uint64_t class_of(value_id v) {
    if (classes_.empty()) classes_.assign(g_.value_count(), 0);
    if (classes_[v] != 0) return classes_[v];
    auto* const outer = std::exchange(shared_.frame_, nullptr);
    auto const& type = g_.type(v);
    auto d = hash().mix(static_cast<std::uint64_t>(type.element));
    index_place first(type.rank()), other(type.rank());
    for (int a = 0; a < type.rank(); ++a) {
      d.mix(static_cast<std::uint64_t>(type.dims[a]));
      if (type.dims[a] > 0)
        other[a].at = static_cast<std::int64_t>(d.word() % static_cast<std::uint64_t>(type.dims[a]));
    }
    if (type.count() > 0) {
      auto const x = at(v, first), y = at(v, other);
      for (auto const& e : {x, y}) d.mix(e.value.n).mix(e.strict.all.n).mix(zeros(e).n), mix_signs(d, e);
    }
    auto const sample = d.finish();
    auto& all = shared_.arguments_;
    std::size_t k = 0;
    for (; k < all.size() && left_ > 0; ++k) {
      if (all[k].sample != sample) continue;
      auto const answer = compare(*this, v, *all[k].of, all[k].v);
      if (answer == field_answer::too_large) left_ = 0;
      if (answer == field_answer::same) break;
    }
    if (k == all.size()) all.push_back({this, v, sample});
    shared_.frame_ = outer;
    return classes_[v] = k + 1;
  }

  struct linear_place {
    std::int64_t n;
    std::uint64_t tag;
  };
  linear_place linear(value_id v, index_place const& place) const {
    auto const& dims = g_.type(v).dims;
    std::int64_t factors[max_rank], n = 0, stride = 1;
    bool varies = false;
    for (int a = dims.rank() - 1; a >= 0; stride *= dims[a--]) {
      factors[a] = stride, n += place[a].at * stride;
      varies = varies || place[a].form != 0;
    }
    return {n, varies ? frame()->combined_tag(place, factors) : 0};
  }
  /// The place of a reshape's argument.
  index_place unlinear(extents const& to, extents const& from, index_place const& place) {
    index_place q(to.rank());
    std::int64_t factors[max_rank], n = 0, stride = 1;
    bool varies = false;
    for (int a = from.rank() - 1; a >= 0; stride *= from[a--]) {
      factors[a] = stride, n += place[a].at * stride;
      varies = varies || place[a].form != 0;
    }
    if (varies) {
      frame()->digits(frame()->combined(place, factors), to.begin(), to.rank(), q.axis);
      return q;
    }
    for (int a = to.rank() - 1; a >= 0 && n > 0; n /= to[a--]) q[a].at = n % to[a];
    return q;
  }
  /// -1: below the bound, 1: not below, 0: that depends on the place.
  int side(coordinate x, std::int64_t bound) const {
    return x.form == 0 ? (x.at < bound ? -1 : 1) : frame()->side(x, bound);
  }
  enum class where : std::uint8_t { inside, outside, varies };
  where in_range(coordinate x, std::int64_t n) const {
    auto const low = side(x, 0);
    if (low <= 0) return low == 0 ? where::varies : where::outside;
    auto const high = side(x, n);
    return high == 0 ? where::varies : high < 0 ? where::inside : where::outside;
  }
  coordinate scaled(coordinate x, std::int64_t by) const {
    return x.form == 0 ? coordinate{x.at * by, 0} : frame()->scaled(x, by);
  }

  /// The place of a broadcast argument.
  static index_place in_broadcast(extents const& dims, index_place const& place) {
    index_place p(dims.rank());
    for (int a = 0, missing = place.rank() - dims.rank(); a < dims.rank(); ++a)
      if (dims[a] != 1) p[a] = place[missing + a];
    return p;
  }
  element arg(op_id o, std::size_t i, index_place const& place) { return broadcast_element(g_.inputs(o)[i], place); }
  element broadcast_element(value_id v, index_place const& place) {
    return at(v, in_broadcast(g_.type(v).dims, place));
  }
  static int axis_of(std::int64_t axis, int rank) { return op::detail::plain_axis(axis, rank); }

  /// A hash of an operator, its attributes, and which of its outputs is meant.
  sip_hash operator_key(std::string_view name, std::size_t output, std::span<attribute_field const> attributes,
                        void const* bytes) const {
    auto d = hash().mix(name).mix(output);
    for (auto const& a : attributes) {
      auto const value = a.get(bytes);
      if (auto const* e = std::get_if<extents>(&value)) {
        d.mix(static_cast<std::uint64_t>(e->rank()));
        for (auto i : *e) d.mix(static_cast<std::uint64_t>(i));
      } else if (auto const* steps = std::get_if<element_program>(&value)) {
        for (auto i : steps->numbers()) d.mix(static_cast<std::uint64_t>(i));
      } else if (auto const* real = std::get_if<double>(&value)) d.mix(std::bit_cast<std::uint64_t>(*real));
      else if (auto const* whole = std::get_if<std::int64_t>(&value)) d.mix(static_cast<std::uint64_t>(*whole));
      else if (auto const* truth = std::get_if<bool>(&value)) d.mix(*truth ? 1u : 0u);
      else d.mix(static_cast<std::uint64_t>(std::get<dtype>(value)));
    }
    return d;
  }
  digest key_of(op_id o, value_id v) {
    if (keys_.empty()) keys_.assign(g_.value_count(), digest{0, 0});
    auto& known = keys_[v];
    if (known != digest{0, 0}) return known;
    auto const& f = *meaning(o).facets;
    auto d = operator_key(f.name, index(v) - index(g_.output(o)), f.attributes, meaning(o).bytes);
    if (auto const* x = g_.as<op::opaque>(o); x && &f == &facets_of<op::opaque>) {
      d.mix(g_.target(o)).mix(g_.details(o));
      if (x->rng || !x->pure || x->placeholder) d.mix(index(g_.origin(o)));  // each draws numbers of its own
    }
    for (auto x : g_.inputs(o)) d.mix(static_cast<std::uint64_t>(g_.type(x).element));
    return known = d.mix(static_cast<std::uint64_t>(g_.type(v).element)).finish();
  }
  /// A type that has all the numbers of another one.
  static bool has_all_of(dtype to, dtype from) {
    if (to == from || to == dtype::f64) return is_floating(from) || to == from;
    return to == dtype::f32 && (from == dtype::f16 || from == dtype::bf16);
  }

  /// The sum of f(place) over the places of some axes, the others standing.
  template <class F>
  element sum_over(extents const& dims, index_place place, bool const* reduced, F const& f) {
    std::int64_t n = 1;
    for (int a = 0; a < dims.rank(); ++a)
      if (reduced[a]) place[a] = {}, n *= dims[a];
    if (n == 0) return zero();
    element s;
    for (std::int64_t i = 0; i < n && goes_on(); ++i) {
      s = sum(s, f(place));
      for (int a = dims.rank() - 1; a >= 0; --a) {
        if (!reduced[a]) continue;
        if (++place[a].at < dims[a]) break;
        place[a] = {};
      }
    }
    return s;
  }

  element reduce(op_id o, extents const& axes, bool keepdim, index_place const& place) {
    auto const v = g_.inputs(o)[0];
    auto const& dims = g_.type(v).dims;
    op::detail::reduced_axes const r(axes, dims.rank());
    index_place p(dims.rank());
    for (int a = 0, b = 0; a < dims.rank(); ++a) {
      if (!r.at[a]) p[a] = place[b];
      b += !r.at[a] || keepdim;
    }
    return sum_over(dims, p, r.at, [&](index_place const& q) { return at(v, q); });
  }

  element matrix_product(op_id o, op::matmul const& m, index_place const& place) {
    auto const a = g_.inputs(o)[0], b = g_.inputs(o)[1];
    auto const &da = g_.type(a).dims, &db = g_.type(b).dims;
    int const ra = da.rank(), rb = db.rank(), r = place.rank();
    index_place pa(ra), pb(rb);
    for (int k = 0; k < ra - 2; ++k)
      if (da[k] != 1) pa[k] = place[r - ra + k];
    for (int k = 0; k < rb - 2; ++k)
      if (db[k] != 1) pb[k] = place[r - rb + k];
    pa[m.transpose_a ? ra - 1 : ra - 2] = place[r - 2];
    pb[m.transpose_b ? rb - 2 : rb - 1] = place[r - 1];
    int const ka = m.transpose_a ? ra - 2 : ra - 1, kb = m.transpose_b ? rb - 1 : rb - 2;
    element s = da[ka] == 0 ? zero() : element{};
    for (std::int64_t i = 0; i < da[ka] && goes_on(); ++i) {
      pa[ka] = pb[kb] = {i, 0};
      s = sum(s, product(at(a, pa), at(b, pb)));
    }
    return s;
  }

  static index_place place_of(coordinate a, coordinate b, coordinate c, coordinate d) {
    index_place p(4);
    p[0] = a, p[1] = b, p[2] = c, p[3] = d;
    return p;
  }
  static coordinate fixed(std::int64_t n) { return {n, 0}; }
  static coordinate plus(coordinate x, std::int64_t n) { return {x.at + n, x.form}; }
  /// The group of a channel, and the channel in it, where each group has n.
  bool in_group(coordinate channel, std::int64_t n, coordinate& group, coordinate& rest) {
    std::int64_t const radices[] = {0, n};
    coordinate digit[2];
    if (channel.form == 0) digit[0] = fixed(channel.at / n), digit[1] = fixed(channel.at % n);
    else if (!frame()->digits(channel, radices, 2, digit)) return false;
    group = digit[0], rest = digit[1];
    return true;
  }
  /// Which output row or column a tap and an input row or column belong to.
  template <class Op>
  where output_index(Op const& c, int axis, coordinate in, std::int64_t tap, std::int64_t outputs, coordinate& out) {
    auto const x = plus(in, c.padding[axis] - tap * c.dilation[axis]);
    if (auto const low = side(x, 0); low <= 0) return low == 0 ? where::varies : where::outside;
    auto const stride = c.stride[axis];
    if (x.form == 0) {
      if (x.at % stride != 0) return where::outside;
      out = fixed(x.at / stride);
    } else if (auto const whole = frame()->divided(x, stride, out); whole <= 0) {
      return whole == 0 ? where::varies : where::outside;
    }
    return in_range(out, outputs);
  }
  element convolution(op_id o, index_place const& p) {
    auto const& c = *means<op::conv2d>(o);
    auto const x = g_.inputs(o)[0], w = g_.inputs(o)[1];
    auto const &dx = g_.type(x).dims, &dw = g_.type(w).dims;
    element s;
    bool has_terms = g_.inputs(o).size() > 2;
    if (has_terms) {
      index_place bias(1);
      bias[0] = p[1];
      s = at(g_.inputs(o)[2], bias);
    }
    coordinate group, rest;
    if (!in_group(p[1], dw[0] / c.groups, group, rest)) return s;
    auto const first = scaled(group, dw[1]);
    auto const down = scaled(p[2], c.stride[0]), across = scaled(p[3], c.stride[1]);
    for (std::int64_t k = 0; k < dw[2]; ++k)
      for (std::int64_t l = 0; l < dw[3]; ++l) {
        auto const row = plus(down, k * c.dilation[0] - c.padding[0]);
        auto const column = plus(across, l * c.dilation[1] - c.padding[1]);
        if (in_range(row, dx[2]) != where::inside || in_range(column, dx[3]) != where::inside) continue;
        has_terms = has_terms || dw[1] > 0;
        for (std::int64_t i = 0; i < dw[1] && goes_on(); ++i)
          s = sum(s, product(at(x, place_of(p[0], plus(first, i), row, column)),
                             in_kernel(at(w, place_of(p[1], fixed(i), fixed(k), fixed(l))))));
      }
    return has_terms ? s : zero();
  }
  element convolution_to_input(op_id o, index_place const& p) {
    auto const& c = *means<op::conv2d_grad_input>(o);
    auto const dy = g_.inputs(o)[0], w = g_.inputs(o)[1];
    auto const &d = g_.type(dy).dims, &dw = g_.type(w).dims;
    auto const per_group = dw[0] / c.groups;
    element s;
    bool has_terms = false;
    coordinate group, channel;
    if (!in_group(p[1], dw[1], group, channel)) return s;
    auto const first = scaled(group, per_group);
    for (std::int64_t k = 0; k < dw[2]; ++k)
      for (std::int64_t l = 0; l < dw[3]; ++l) {
        coordinate row, column;
        if (output_index(c, 0, p[2], k, d[2], row) != where::inside ||
            output_index(c, 1, p[3], l, d[3], column) != where::inside)
          continue;
        has_terms = has_terms || per_group > 0;
        for (std::int64_t i = 0; i < per_group && goes_on(); ++i)
          s = sum(s, product(at(dy, place_of(p[0], plus(first, i), row, column)),
                             at(w, place_of(plus(first, i), channel, fixed(k), fixed(l)))));
      }
    return has_terms ? s : zero();
  }
  element convolution_to_weight(op_id o, index_place const& p) {
    auto const& c = *means<op::conv2d_grad_weight>(o);
    auto const x = g_.inputs(o)[0], dy = g_.inputs(o)[1];
    auto const &dx = g_.type(x).dims, &d = g_.type(dy).dims, &dw = g_.type(g_.output(o)).dims;
    element s;
    bool has_terms = false;
    coordinate group, rest;
    if (!in_group(p[0], dw[0] / c.groups, group, rest)) return s;
    auto channel = scaled(group, dw[1]);
    if (group.form == 0) channel = plus(p[1], channel.at);
    else if (p[1].form == 0) channel.at += p[1].at;
    else channel = sum_of(channel, p[1]);
    auto const down = scaled(p[2], c.dilation[0]), across = scaled(p[3], c.dilation[1]);
    for (std::int64_t i = 0; i < d[2]; ++i)
      for (std::int64_t j = 0; j < d[3]; ++j) {
        auto const row = plus(down, i * c.stride[0] - c.padding[0]);
        auto const column = plus(across, j * c.stride[1] - c.padding[1]);
        if (in_range(row, dx[2]) != where::inside || in_range(column, dx[3]) != where::inside) continue;
        has_terms = has_terms || d[0] > 0;
        for (std::int64_t n = 0; n < d[0] && goes_on(); ++n)
          s = sum(s, product(at(x, place_of(fixed(n), channel, row, column)),
                             at(dy, place_of(fixed(n), p[0], fixed(i), fixed(j)))));
      }
    return has_terms ? s : zero();
  }
  coordinate sum_of(coordinate a, coordinate b) const {
    index_place p(2);
    p[0] = a, p[1] = b;
    std::int64_t const ones[] = {1, 1};
    return frame()->combined(p, ones);
  }
  element triangle(op_id o, index_place const& p) {
    auto const& t = *means<op::triangle>(o);
    auto const x = at(g_.inputs(o)[0], p);
    auto const row = p[p.rank() - 2], column = p[p.rank() - 1];
    auto const& dims = g_.type(g_.output(o)).dims;
    auto const lowest = 1 - dims[p.rank() - 2], highest = dims[p.rank() - 1] - 1;  // places right of the diagonal
    if (t.upper ? t.diagonal > highest : t.diagonal < lowest) return zero();
    if (t.upper ? t.diagonal <= lowest : t.diagonal >= highest) return x;
    auto const d = column.at - row.at;
    if (row.form == 0 && column.form == 0) return (t.upper ? d >= t.diagonal : d <= t.diagonal) ? x : zero();
    if (row.form == 0 || column.form == 0) {  // what is kept begins or ends at some place of the axis that varies
      auto const edge =
          row.form == 0 ? side(column, row.at + t.diagonal + !t.upper) : side(row, column.at - t.diagonal + t.upper);
      bool const late = row.form == 0 ? edge > 0 : edge < 0;
      return late == t.upper ? x : zero();
    }
    // Which places are kept is a free variable of the distance from the diagonal: 1 where one is, else 0.
    auto const tag = index_frame::difference(frame()->tag(column), frame()->tag(row));
    auto const key = hash().mix(0x747269616e676c65 + t.upper).mix(static_cast<std::uint64_t>(d - t.diagonal)).mix(tag);
    auto const mask = variable(key.finish());
    auto y = product(x, mask);
    auto const kept = mask.value, left_out = f_.sub(f_.one(), kept);
    auto const masked = [&](field_number n) { return f_.add(f_.mul(n, kept), left_out); };
    y.strict.constant = f_.mul(x.strict.constant, kept);
    y.masked = y.kernel = {masked(x.masked.all), masked(x.masked.constant)};
    return y;
  }

  /// What pad writes beside its argument.
  element padding(op::pad const& x, int axis, int rank) const {
    if (x.value != 0) return constant(x.value);
    bool const enlarges_kernel = rank == 4 && axis >= 2 && x.before == x.after;
    return enlarges_kernel ? kernel_zero() : zero();
  }

  element computed(op_id o, value_id v, index_place const& p) {
    if (++depth_ > max_depth) return give_up();
    auto x = compute(o, v, p);
    --depth_;
    if (!keeps_kernels(kind_of(o))) x.kernel = x.masked;
    return x;
  }
  /// Whether what was a kernel's element is one of the result, at the same place in the kernel.
  static bool keeps_kernels(kind k) {
    return k == kind::add || k == kind::sub || k == kind::neg || k == kind::mul_scalar || k == kind::copy ||
           k == kind::load || k == kind::cast || k == kind::pad || k == kind::concat || k == kind::fused;
  }
  element compute(op_id o, value_id v, index_place const& p) {
    auto const in = g_.inputs(o);
    auto const type_of = [&](std::size_t i) -> tensor_type const& { return g_.type(in[i]); };
    switch (kind_of(o)) {
      case kind::add:
      case kind::accumulate: return sum(arg(o, 0, p), arg(o, 1, p));
      case kind::sub: return sum(arg(o, 0, p), negative(arg(o, 1, p)));
      case kind::mul: return product(arg(o, 0, p), arg(o, 1, p));
      case kind::div: return product(arg(o, 0, p), reciprocal(arg(o, 1, p)));
      case kind::neg: return negative(arg(o, 0, p));
      case kind::reciprocal: return reciprocal(arg(o, 0, p));
      case kind::square: {
        auto const x = arg(o, 0, p);
        return product(x, x);
      }
      case kind::add_scalar: return sum(arg(o, 0, p), constant(means<op::add_scalar>(o)->value));
      case kind::mul_scalar: return scaled(arg(o, 0, p), means<op::mul_scalar>(o)->value);
      case kind::copy: return at(in[0], p);
      case kind::load: return loaded(in[0], p);
      case kind::cast: return cast(o, v, p);
      case kind::reshape: {
        auto const q = unlinear(type_of(0).dims, g_.type(v).dims, p);
        return goes_on() ? at(in[0], q) : element{};
      }
      case kind::permute:
      case kind::slice:
      case kind::split: return at(in[0], place_in(o, v, p));
      case kind::pad: {
        auto const& x = *means<op::pad>(o);
        int const k = axis_of(x.axis, p.rank());
        index_place q = p;
        q[k].at -= x.before;
        switch (in_range(q[k], type_of(0).dims[k])) {
          case where::inside: return at(in[0], q);
          case where::outside: return padding(x, k, p.rank());
          case where::varies: return {};
        }
        return {};
      }
      case kind::concat: return joined(o, p);
      case kind::broadcast_to: return arg(o, 0, p);
      case kind::fill: return factor(means<op::fill>(o)->value);
      case kind::sum: return reduce(o, means<op::sum>(o)->axes, means<op::sum>(o)->keepdim, p);
      case kind::mean: return averaged(o, v, p);
      case kind::sum_to: return summed_to(o, v, p);
      case kind::triangle: return triangle(o, p);
      case kind::matmul: return matrix_product(o, *means<op::matmul>(o), p);
      case kind::conv2d: return convolution(o, p);
      case kind::conv2d_grad_input: return convolution_to_input(o, p);
      case kind::conv2d_grad_weight: return convolution_to_weight(o, p);
      case kind::place: {
        auto const& x = *means<op::place>(o);
        int const k = axis_of(x.axis, p.rank());
        index_place q = p;
        q[k].at -= x.start;
        switch (in_range(q[k], type_of(1).dims[k])) {
          case where::inside: return at(in[1], q);
          case where::outside: return at(in[0], p);
          case where::varies: break;
        }
        return {};
      }
      case kind::combine_into:
        if (means<op::combine_into>(o)->how == combine::sum) return sum(arg(o, 0, p), arg(o, 1, p));
        [[fallthrough]];
      case kind::scalar: {
        plain_vector<element> x;
        for (std::size_t i = 0; i < in.size(); ++i) x.push_back(arg(o, i, p));
        return function_of(key_of(o, v), span_of(x));
      }
      case kind::fused: return fused_program(o, p);
      case kind::epilogue: return product_with_epilogue(o, v, p);
      case kind::hashed:
      case kind::unknown: break;
    }
    return hashed(o, v, p);
  }
  /// An element of an operator of which nothing more is known: a variable of its arguments.
  element hashed(op_id o, value_id v, index_place const& p) {
    auto const in = g_.inputs(o);
    auto const [n, tag] = linear(v, p);
    auto d = hash().mix(key_of(o, v)).mix(static_cast<std::uint64_t>(n)).mix(tag);
    for (auto e : g_.type(v).dims) d.mix(static_cast<std::uint64_t>(e));
    if (g_.record(v).alias != alias_kind::fresh) {  // what it shows may depend on where things lie
      mix_layout(d, g_.layout(v));
      for (auto x : in) mix_layout(d, g_.layout(x));
    }
    for (auto x : in) {
      for (auto e : g_.type(x).dims) d.mix(static_cast<std::uint64_t>(e));
      d.mix(class_of(x));
    }
    return variable(d.finish());
  }
  /// What was stored; a stored tensor itself has no elements.
  element loaded(value_id stored, index_place const& p) {
    auto const made = store_of(g_, stored);
    return made == nothing<op_id> ? give_up() : at(g_.inputs(made)[0], p);
  }
  /// Where an element of a permutation, a slice or a part of a split is in the argument.
  index_place place_in(op_id o, value_id v, index_place const& p) const {
    index_place q = p;
    if (auto const* turned = means<op::permute>(o)) {
      for (int k = 0; k < turned->axes.rank(); ++k) q[static_cast<int>(turned->axes[k])] = p[k];
    } else if (auto const* part = means<op::slice>(o)) {
      q[axis_of(part->axis, p.rank())].at += part->start;
    } else {
      int const k = axis_of(means<op::split>(o)->axis, p.rank());
      q[k].at += static_cast<std::int64_t>(index(v) - index(g_.output(o))) * g_.type(v).dims[k];
    }
    return q;
  }
  element joined(op_id o, index_place const& p) {
    int const k = axis_of(means<op::concat>(o)->axis, p.rank());
    index_place q = p;
    for (auto x : g_.inputs(o)) {
      auto const n = g_.type(x).dims[k];
      auto const is = side(q[k], n);
      if (is <= 0) return is < 0 ? at(x, q) : element{};
      q[k].at -= n;
    }
    return give_up();
  }
  element averaged(op_id o, value_id v, index_place const& p) {
    auto const& m = *means<op::mean>(o);
    auto const terms = g_.type(g_.inputs(o)[0]).count() / std::max<std::int64_t>(g_.type(v).count(), 1);
    auto s = reduce(o, m.axes, m.keepdim, p);
    auto const share = f_.inverse(f_.of(static_cast<std::uint64_t>(terms)));
    s.value = f_.mul(s.value, share);
    for (auto* f : {&s.strict, &s.masked, &s.kernel})
      f->all = f_.mul(f->all, share), f->constant = f_.mul(f->constant, share);
    s.magnitude /= static_cast<double>(std::max<std::int64_t>(terms, 1)), s.degree += 1;
    return s;
  }
  element summed_to(op_id o, value_id v, index_place const& p) {
    auto const from = g_.inputs(o)[0];
    auto const &x = g_.type(from).dims, &y = g_.type(v).dims;
    bool reduced[max_rank]{};
    index_place q(x.rank());
    for (int a = 0, missing = x.rank() - y.rank(); a < x.rank(); ++a) {
      reduced[a] = a < missing || y[a - missing] != x[a];
      if (!reduced[a]) q[a] = p[a - missing];
    }
    return sum_over(x, q, reduced, [&](index_place const& r) { return at(from, r); });
  }
  static void mix_layout(sip_hash& h, tensor_layout const& l) {
    for (auto n : l.strides) h.mix(static_cast<std::uint64_t>(n));
    h.mix(static_cast<std::uint64_t>(l.offset));
  }
  /// What an element of a type is in a type with all its numbers. It comes back as it was, and through other such
  /// types.
  element widened(dtype from, element const& x) const {
    auto wide = function(hash().mix(0x776964656e).mix(static_cast<std::uint64_t>(from)), x);
    wide.magnitude = x.magnitude, wide.signs = x.signs;
    return wide;
  }
  element cast(op_id o, value_id v, index_place const& p) { return cast_of(g_.inputs(o)[0], g_.type(v).element, p); }
  /// A value's element in another type; p: the place in the value.
  element cast_of(value_id in, dtype to, index_place const& p) {
    for (auto made = g_.producer(in); made != nothing<op_id> && !is_given(in) && kind_of(made) == kind::cast;
         made = g_.producer(in)) {
      auto const before = g_.inputs(made)[0];
      if (!has_all_of(g_.type(in).element, g_.type(before).element)) break;
      in = before;
    }
    return in_type(g_.type(in).element, to, at(in, p));
  }
  element in_type(dtype from, dtype to, element const& x) const {
    if (to == from) return x;
    if (has_all_of(to, from)) return widened(from, x);
    auto const cast_to =
        hash().mix(0x63617374).mix(static_cast<std::uint64_t>(from)).mix(static_cast<std::uint64_t>(to));
    auto narrow = function(cast_to, x);
    narrow.magnitude = x.magnitude, narrow.signs = x.signs;
    return narrow;
  }

  /// The result of a fused op.
  element fused_program(op_id o, index_place const& p) {
    auto const& program = means<op::fused>(o)->prologue;
    auto const in = g_.inputs(o);
    if (!program.fault(in.size()).empty()) return give_up();
    return steps(program, in, nullptr, p, program.step_count - 1);
  }
  /// A result of a product with an epilogue.
  element product_with_epilogue(op_id o, value_id v, index_place const& p) {
    auto const& e = *means<op::fused>(o);
    if (!e.fault(g_.inputs(o).size()).empty()) return give_up();
    auto const z = g_.outputs(o)[0];
    if (e.sums != product_sums::none && v == g_.outputs(o).back()) {
      auto const x = e.summed() >= 0 ? g_.inputs(o)[static_cast<std::size_t>(e.summed())] : z;
      auto const& dims = g_.type(x).dims;
      bool reduced[max_rank]{};
      std::fill_n(reduced, dims.rank() - 1, true);
      index_place from(dims.rank());
      from[dims.rank() - 1] = p[0];
      return sum_over(dims, from, reduced, [&](index_place const& place) { return at(x, place); });
    }
    auto product = matrix_product(o, e.anchor_as<op::matmul>(), p);
    if (e.epilogue.empty()) return product;
    if (product.degree > max_degree) product = give_up();
    see(g_.type(z).element, product);
    plain_vector<value_id> in{z};
    for (auto x : g_.inputs(o).subspan(2)) in.push_back(x);
    return steps(e.epilogue, span_of(in), &product, p, v == z ? e.epilogue.step_count - 1 : 0);
  }
  /// The result of step `wanted` of a program on these values, computed as the operators that the steps stand for. Given
  /// `first`, it is the element of the first value.
  element steps(element_program const& program, std::span<value_id const> in, element const* first,
                index_place const& p, int wanted) {
    int const inputs = static_cast<int>(in.size());
    element made[element_program::max_steps];
    auto const type_of = [&](int x) {
      return x < inputs ? g_.type(in[static_cast<std::size_t>(x)]).element : program.step(x - inputs).element;
    };
    element result;
    program.for_each_step([&](int k, element_step const& s, op::detail::step_operator const& f, void const* bytes) {
      auto const x = [&](int i) {
        auto const operand = s.operands[static_cast<std::size_t>(i)];
        if (first && operand == 0) return *first;
        return operand < inputs ? broadcast_element(in[static_cast<std::size_t>(operand)], p) : made[operand - inputs];
      };
      auto const is = [&](int row) { return s.row == row && is_floating(s.element); };
      auto& y = made[k];
      if (is(detail::standard_row<op::add>)) y = sum(x(0), x(1));
      else if (is(detail::standard_row<op::sub>)) y = sum(x(0), negative(x(1)));
      else if (is(detail::standard_row<op::mul>)) y = product(x(0), x(1));
      else if (is(detail::standard_row<op::div>)) y = product(x(0), reciprocal(x(1)));
      else if (is(detail::standard_row<op::neg>)) y = negative(x(0));
      else if (is(detail::standard_row<op::reciprocal>)) y = reciprocal(x(0));
      else if (is(detail::standard_row<op::square>)) y = product(x(0), x(0));
      else if (is(detail::standard_row<op::add_scalar>))
        y = sum(x(0), constant(static_cast<op::add_scalar const*>(bytes)->value));
      else if (is(detail::standard_row<op::mul_scalar>))
        y = scaled(x(0), static_cast<op::mul_scalar const*>(bytes)->value);
      else if (is(detail::standard_row<op::cast>)) {
        int from = s.operands[0];  // what it was before casts that changed nothing
        while (from >= inputs && program.step(from - inputs).row == detail::standard_row<op::cast> &&
               is_floating(type_of(from)) &&
               has_all_of(type_of(from), type_of(program.step(from - inputs).operands[0])))
          from = program.step(from - inputs).operands[0];
        if (from >= inputs) {
          y = in_type(type_of(from), s.element, made[from - inputs]);
        } else {
          auto const v = in[static_cast<std::size_t>(from)];
          y = cast_of(v, s.element, in_broadcast(g_.type(v).dims, p));
        }
      } else {
        plain_vector<element> arguments;
        auto d = operator_key(f.name, 0, f.attributes, bytes);
        for (int i = 0; i < f.arguments; ++i) {
          arguments.push_back(x(i));
          d.mix(static_cast<std::uint64_t>(type_of(s.operands[static_cast<std::size_t>(i)])));
        }
        y = function_of(d.mix(static_cast<std::uint64_t>(s.element)).finish(), span_of(arguments));
      }
      if (y.degree > max_degree) y = give_up();
      see(s.element, y);
      if (k == wanted) result = y;
    });
    return result;
  }
  /// Keeps the range of what was worked out.
  void see(dtype element_type, element const& x) {
    auto& r = element_type == dtype::f16 ? half_range_ : range_;
    r.most = std::max(r.most, x.magnitude);
    if (x.magnitude > 0) r.least = std::min(r.least, x.magnitude);
  }

  struct known_element {
    std::uint64_t check;  // the other half of the key
    element is;
  };
  op_graph const& g_;
  given_values const& given_;
  field_comparison& shared_;
  prime_field const& f_;
  std::int64_t left_;
  int depth_ = 0;
  struct range {
    double most = 1, least = 1;
  };
  range range_, half_range_;             // magnitudes of what was worked out; of type f16
  table<value_id, std::uint8_t> known_;  // 0: unknown, 1: made by an op, 2: given
  table<value_id, digest> names_;
  table<value_id, digest> keys_;
  table<value_id, std::uint64_t> classes_;
  plain_vector<kind> known_kinds_;
  number_map rows_;  // elements worked out, by value and place
  plain_vector<known_element> memory_;
};

}}  // namespace neap::v0
