#include <neap/model/tensor.hpp>

#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/images.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/functions/picking.hpp>
#include <neap/model/parameter.hpp>

#include "../support/message.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <new>
#include <vector>

using namespace neap;
using neap::testing::message_of;

namespace {
int line_of(std::string const& what) {  // "file.cpp:LINE: ..."
  auto const from = what.find(':') + 1;
  return std::stoi(what.substr(from));
}
}  // namespace

static_assert(!std::is_convertible_v<tensor, bool>);
static_assert(sizeof(tensor) <= 24);

TEST_CASE("tensors are made from data, numbers and seeds") {
  auto const x = tensor::from({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3});
  CHECK(to_string(x.type()) == "f32[2,3]");
  CHECK(x.values<float>() == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(x.size(-1) == 3);
  CHECK(x.has_data());
  CHECK(tensor::from({1, 2}, {2}).element() == dtype::i32);
  CHECK(tensor::from(std::vector<bool>{true, false}, {2}).values<int>() == std::vector<int>{1, 0});

  CHECK(tensor::zeros({3}).values<float>() == std::vector<float>(3, 0));
  CHECK(tensor::full({2}, 1.5, dtype::f64).values<double>() == std::vector<double>(2, 1.5));
  CHECK(tensor::full({2}, 1.5, dtype::bf16).values<float>() == std::vector<float>(2, 1.5));
  CHECK(tensor::full({}, 7, dtype::i64).item<int>() == 7);

  auto const r = tensor::randn({1000}, 3);
  CHECK_FALSE(r.has_data());  // nobody has asked for it
  auto const v = r.values<double>();
  CHECK(v == tensor::randn({1000}, 3).values<double>());
  CHECK(v != tensor::randn({1000}, 4).values<double>());
  double mean = 0, square = 0;
  for (auto e : v) mean += e / 1000, square += e * e / 1000;
  CHECK(std::abs(mean) < 0.1);
  CHECK(std::abs(square - 1) < 0.15);
  for (auto e : tensor::rand({1000}, 1).values<double>()) CHECK((e >= 0 && e < 1));
  // A shorter tensor has the same first elements: element i depends on seed and i alone.
  auto const shorter = tensor::randn({13}, 3).values<double>();
  CHECK(std::equal(shorter.begin(), shorter.end(), v.begin()));
}

TEST_CASE("uniform numbers stay in their interval in every element type") {
  for (dtype t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16})
    for (auto [low, high] :
         {std::pair(0., 1.), std::pair(-0.3, 0.3), std::pair(1e4, 1e4 + 300), std::pair(-1e-3, 0.)}) {
      auto const v = parameter({40000}, initialiser::uniform(low, high).with_seed(7, 0), t).values<double>();
      double mean = 0, least = high, most = low;
      for (auto x : v) mean += x / 40000, least = std::min(least, x), most = std::max(most, x);
      CAPTURE(t);
      CAPTURE(low);
      CHECK(least >= low);
      CHECK(most < high);
      CHECK(std::abs(mean - (low + high) / 2) < 0.01 * (high - low));
    }
  std::size_t fine = 0;  // more digits than f32 has
  for (auto normal : {false, true})
    for (auto x :
         (normal ? tensor::randn({1000}, 3, dtype::f64) : tensor::rand({1000}, 3, dtype::f64)).values<double>())
      fine += x != static_cast<double>(static_cast<float>(x)) && std::fmod(std::abs(x), 0x1p-48) != 0;
  CHECK(fine > 1800);
  auto const f = tensor::rand({1000}, 3).values<double>(), d = tensor::rand({1000}, 3, dtype::f64).values<double>();
  for (std::size_t i = 0; i < f.size(); ++i) CHECK(std::abs(f[i] - d[i]) < 0x1p-24);  // the same draws
}

TEST_CASE("data are aligned, and borrowed data are the lender's") {
  auto const x = tensor::zeros({5});
  CHECK(reinterpret_cast<std::uintptr_t>(x.data<float>()) % 64 == 0);
  std::vector<float> mine{1, 2, 3};
  auto const y = tensor::borrow(mine.data(), {3});
  mine[1] = 5;
  CHECK((y + 1).values<float>() == std::vector<float>{2, 6, 4});
  CHECK(y.data<float>() == mine.data());
}

TEST_CASE("arithmetic between tensors and numbers") {
  auto const x = tensor::from({1.f, 2.f, 4.f}, {3});
  auto const y = tensor::from({2.f, 2.f, 2.f}, {3});
  using v = std::vector<float>;
  CHECK((x + y).values<float>() == v{3, 4, 6});
  CHECK((x - y).values<float>() == v{-1, 0, 2});
  CHECK((x * y).values<float>() == v{2, 4, 8});
  CHECK((x / y).values<float>() == v{0.5, 1, 2});
  CHECK((x + 1).values<float>() == v{2, 3, 5});
  CHECK((1 + x).values<float>() == v{2, 3, 5});
  CHECK((x - 1).values<float>() == v{0, 1, 3});
  CHECK((1 - x).values<float>() == v{0, -1, -3});
  CHECK((2.f * x).values<float>() == v{2, 4, 8});
  CHECK((x / 2).values<float>() == v{0.5, 1, 2});
  CHECK((2 / x).values<float>() == v{2, 1, 0.5});
  CHECK((-x).values<float>() == v{-1, -2, -4});
  CHECK((-cast(x, dtype::i64)).element() == dtype::i64);
  CHECK((-cast(x, dtype::i64)).values<int>() == std::vector<int>{-1, -2, -4});
  CHECK(relu(x - 2).values<float>() == v{0, 0, 2});
  CHECK(maximum(x, y).values<float>() == v{2, 2, 4});
  // broadcast
  auto const m = tensor::from({1.f, 2.f}, {2, 1});
  CHECK((m * x).values<float>() == v{1, 2, 4, 2, 4, 8});
  CHECK(cast(x, dtype::i64).values<int>() == std::vector<int>{1, 2, 4});
}

TEST_CASE("views share data") {
  auto const x = tensor::from({0, 1, 2, 3, 4, 5}, {2, 3});
  auto const t = transpose(x);
  CHECK(t.values<int>() == std::vector<int>{0, 3, 1, 4, 2, 5});
  CHECK(t.storage() == x.storage());
  CHECK(reshape(x, {3, -1}).storage() == x.storage());
  CHECK(reshape(t, {6}).storage() != x.storage());  // needs a copy
  CHECK(reshape(t, {6}).values<int>() == std::vector<int>{0, 3, 1, 4, 2, 5});
  CHECK(slice(x, 1, 1, -1).values<int>() == std::vector<int>{1, 4});
  CHECK(select(x, 0, -1).values<int>() == std::vector<int>{3, 4, 5});
  CHECK(split(x, 3, 1)[2].values<int>() == std::vector<int>{2, 5});
  auto const rows = tensor::from(std::vector<std::int64_t>{2, 0}, {2});
  CHECK(embedding(transpose(cast(x, dtype::f32)), rows).values<int>() == std::vector<int>{2, 5, 0, 3});
  CHECK(broadcast_to(slice(x, 0, 0, 1), {2, 3}).values<int>() == std::vector<int>{0, 1, 2, 0, 1, 2});
  CHECK(concat({x, x}, 1).values<int>() == std::vector<int>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(unsqueeze(x, 1).shape() == shape{2, 1, 3});
  CHECK(squeeze(unsqueeze(x, -1), -1).shape() == shape{2, 3});
  CHECK(flatten(tensor::zeros({2, 3, 4}), 1).shape() == shape{2, 12});
  CHECK(contiguous(x).storage() == x.storage());
  CHECK(pad(x, 1, 1, 0, 9).values<int>() == std::vector<int>{9, 0, 1, 2, 9, 3, 4, 5});
  x.data<int>()[0] = 7;
  CHECK(t.values<int>()[0] == 7);
}

TEST_CASE("mistakes are told with the user's file and line") {
  auto const x = tensor::zeros({2, 3}), y = tensor::zeros({2, 4});
  parameter const w({5});
  auto check = [](std::string const& what, int line, std::string_view text) {
    CAPTURE(what);
    CHECK(what.starts_with("tensor.cpp:"));
    CHECK(line_of(what) == line);
    CHECK(what.find(text) != std::string::npos);
  };
  check(message_of([&] { x + y; }), __LINE__, "add: shapes do not broadcast, [2,3] and [2,4]");
  check(message_of([&] { w* y; }), __LINE__, "mul: shapes do not broadcast, [5] and [2,4]");
  check(message_of([&] { 1 - tensor(); }), __LINE__, "empty");
  check(message_of([&] { maximum(x, y); }), __LINE__, "maximum: shapes do not broadcast");
  check(message_of([&] { reshape(x, {4, -1}); }), __LINE__, "reshape: from [2,3] to [4,-1]");
  check(message_of([&] { reshape(x, {7}); }), __LINE__, "element counts differ");
  check(message_of([&] { permute(x, {0, 2}); }), __LINE__, "permute: no axis 2 in f32[2,3]");
  check(message_of([&] { split(x, 2, 1); }), __LINE__, "split: axis 1 of f32[2,3] does not divide into 2 parts");
  check(message_of([&] { (void)x.item<float>(); }), __LINE__,
        "item: a tensor of one element is needed, this is f32[2,3]");
  check(message_of([&] { (void)x.data<double>(); }), __LINE__,
        "data: the tensor is f32[2,3], its elements are asked as f64");
  check(message_of([&] { (void)transpose(x).data<float>(); }), __LINE__, "not in row-major order");
  check(message_of([&] { (void)tensor::from({1.f}, {2}); }), __LINE__, "needs 2 elements, got 1");
  check(message_of([&] { exp(tensor::zeros({1}, dtype::i64)); }), __LINE__, "exp: needs a floating type, got i64[1]");

  check(message_of([&] { (void)tensor::zeros({2, -1}); }), __LINE__, "a tensor cannot have the shape [2,-1]");
  check(message_of([&] { (void)tensor::rand({-1}, 1); }), __LINE__, "a tensor cannot have the shape [-1]");
  float one = 1;
  check(message_of([&] { (void)tensor::borrow(&one, {-1}); }), __LINE__, "a tensor cannot have the shape [-1]");
  float* const nowhere = nullptr;
  check(message_of([&] { (void)tensor::borrow(nowhere, {3}); }), __LINE__, "borrow: there is no memory for f32[3]");
  CHECK(tensor::borrow(nowhere, {0, 3}).values<float>().empty());
  auto const huge = std::int64_t{1} << 40;
  std::string const no_number = "no tensor can be f32[1099511627776,1099511627776]: its size overflows 64 bits";
  check(message_of([&] { (void)tensor::ones({huge, huge}); }), __LINE__, no_number);
  check(message_of([&] { (void)tensor::from({1.f}, {huge, huge}); }), __LINE__, no_number);
  check(message_of([&] { fill({huge, huge}, 1); }), __LINE__, no_number);
  check(message_of([&] { reshape(x, {huge, huge}); }), __LINE__, "overflow");
  check(message_of([&] { parameter({-1}); }), __LINE__, "a tensor cannot have the shape [-1]");
  auto const deep = tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1});
  check(message_of([&] { unsqueeze(deep, 0); }), __LINE__, "more than 8 axes");
  check(message_of([&] { (void)tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}); }), __LINE__, "more than 8 axes");
  check(message_of([&] { reshape(deep, {1, 1, 1, 1, 1, 1, 1, 1, 1}); }), __LINE__, "more than 8 axes");
  check(message_of([&] { squeeze(x, -1); }), __LINE__, "squeeze: the extent of axis -1 of f32[2,3] is not 1");
  tensor const per_channel = tensor::ones({3}), none = tensor::zeros({0, 3, 2, 2});
  check(message_of([&] { batch_norm(none, per_channel, per_channel, per_channel, per_channel); }), __LINE__,
        "batch_norm: there are no elements to take statistics of, got f32[0,3,2,2]: leave out empty batches");
  for (std::int64_t axis : {3, 4, 8, 9, -4})
    check(message_of([&] { unsqueeze(x, axis); }), __LINE__, "unsqueeze: no place " + std::to_string(axis));
  for (std::int64_t axis : {2, 3, 8, -3, -9})
    check(message_of([&] { (void)x.size(axis); }), __LINE__, "size: no axis " + std::to_string(axis) + " in f32[2,3]");
}

TEST_CASE("an empty tensor is an error with the user's file and line") {
  tensor const none;
  parameter never;
  auto check = [](std::string const& what, int line, std::string const& function = "") {
    CAPTURE(what);
    CHECK(what == "tensor.cpp:" + std::to_string(line) + ": " + function + "this tensor is empty: it has no value");
  };
  auto check_input = [](std::string const& what, int line) {
    CAPTURE(what);
    CHECK(what == "tensor.cpp:" + std::to_string(line) +
                      ": neg: input 0: this tensor is empty: it has no value (a module made without its sizes "
                      "has empty weights)");
  };
  check(message_of([&] { (void)none.size(0); }), __LINE__);
  check(message_of([&] { (void)none.rank(); }), __LINE__);
  check(message_of([&] { (void)none.shape(); }), __LINE__);
  check(message_of([&] { (void)none.element(); }), __LINE__);
  check(message_of([&] { (void)none.count(); }), __LINE__);
  check(message_of([&] { (void)none.type(); }), __LINE__);
  check(message_of([&] { (void)none.item<float>(); }), __LINE__);
  check(message_of([&] { (void)none.values<float>(); }), __LINE__);
  check(message_of([&] { none.with_gradient(); }), __LINE__);
  check(message_of([&] { none.detach(); }), __LINE__);
  check_input(message_of([&] { -none; }), __LINE__);
  check(message_of([&] { reshape(none, {1}); }), __LINE__, "reshape: ");
  check(message_of([&] { transpose(none); }), __LINE__, "transpose: ");
  check(message_of([&] { contiguous(none); }), __LINE__, "contiguous: ");
  check(message_of([&] { cast(none, dtype::f64); }), __LINE__, "cast: ");
  check(message_of([&] { unsqueeze(none, 0); }), __LINE__, "unsqueeze: ");
  check(message_of([&] { never.restart(initialiser::constant(0)); }), __LINE__);
  check(message_of([&] { never.set_element(dtype::f64); }), __LINE__);
  check(message_of([&] { (void)never.first_values(); }), __LINE__);
  check(message_of([&] { (void)parameter::holding(none); }), __LINE__);
}

TEST_CASE("a weight that starts anew draws other numbers of its own seed, unless it is given one") {
  parameter a({4}, initialiser::uniform(-1, 1)), b({4}, initialiser::uniform(-1, 1));
  auto const seed = a.first_values().seed;
  CHECK(seed != b.first_values().seed);
  for (auto* w : {&a, &b}) w->restart(initialiser::normal(0, 1));
  CHECK(a.first_values() == initialiser::normal(0, 1).with_seed(seed, 0));
  CHECK(a.values<float>() != b.values<float>());
  a.restart(initialiser::normal(0, 2).with_seed(5, 3));
  CHECK(a.first_values() == initialiser::normal(0, 2).with_seed(5, 3));
  a.restart(initialiser::constant(7));
  CHECK(a.values<float>() == std::vector<float>(4, 7));
}

TEST_CASE("parameters are values: a copy has data of its own, a handle has not") {
  parameter w({3}, initialiser::uniform(-1, 1));
  tensor const handle = w;
  parameter copy = w;
  CHECK_FALSE(w.has_data());
  CHECK(copy.values<float>() == w.values<float>());
  w.data<float>()[0] = 5;
  CHECK(handle.data<float>()[0] == 5);
  CHECK(copy.data<float>()[0] != 5);
  tensor const of_copy = copy;
  copy = w;
  CHECK(copy.data<float>()[0] == 5);
  CHECK(copy.storage() != w.storage());
  CHECK(copy.storage() == of_copy.storage());  // what holds it sees the new data
  parameter lazy({3}, initialiser::constant(1));
  lazy = w;
  CHECK(lazy.values<float>() == w.values<float>());
  parameter other({3}, initialiser::constant(2));
  copy = other, other.data<float>()[0] = 9;
  CHECK(copy.values<float>() == std::vector<float>{2, 2, 2});
  copy = parameter({2}, initialiser::constant(1)).share(), other = copy;
  CHECK(other.values<float>() == std::vector<float>{1, 1});
  CHECK(other.storage() != copy.storage());
  parameter const shared = w.share(), copied = shared;
  CHECK(shared.storage() == w.storage());
  CHECK(copied.storage() != w.storage());  // a copy is tied no longer
  parameter one = w.share(), same = w.share();
  one = same;  // one memory already
  CHECK(one.storage() == w.storage());
  CHECK(w.wants_gradient());
  CHECK_FALSE(buffer({3}).wants_gradient());
  CHECK(parameter({3}, initialiser::uniform(-1, 1)).values<float>() !=
        parameter({3}, initialiser::uniform(-1, 1)).values<float>());
  CHECK(parameter::holding(tensor::from({1.f, 2.f}, {2})).values<float>() == std::vector<float>{1, 2});
}

TEST_CASE("what is assigned goes into the memory that is there: a model's ties stay its own") {
  struct pair_of {
    parameter a, b;
    pair_of(shape const& s, double x, double y) : a(s, initialiser::constant(x)), b(s, initialiser::constant(y)) {}
    pair_of& tie() { return b = a.share(), *this; }
    bool is_tied() const { return a.storage() == b.storage(); }
  };
  auto const all = [](double x) { return std::vector<double>{x, x}; };
  for (shape const& s : {shape{2}, shape{1, 2}}) {
    bool const fits = s == shape{2};
    for (bool const tied : {false, true})
      for (bool const other_tied : {false, true}) {
        CAPTURE(fits);
        CAPTURE(tied);
        CAPTURE(other_tied);
        pair_of to({2}, 1, 2), from(s, 3, 4);
        if (tied) to.tie();
        if (other_tied) from.tie();
        auto const before = to.a.storage();
        to = from;
        CHECK(to.is_tied() == tied);
        CHECK((to.a.storage() == before) == fits);
        CHECK(to.b.values<double>() == all(other_tied ? 3 : 4));
        CHECK(to.a.values<double>() == (tied ? to.b.values<double>() : all(3)));  // the last one counts
        CHECK(to.a.storage() != from.a.storage());
        CHECK(from.is_tied() == other_tied);
        to = from;
        CHECK(to.is_tied() == tied);
      }
  }
  pair_of x({2}, 1, 2), y({2}, 3, 4);
  x.b = y.b.share();  // across models
  x = y;
  CHECK(x.b.storage() == y.b.storage());
  CHECK(x.a.storage() != y.a.storage());
  CHECK(x.a.values<double>() == all(3));
}

TEST_CASE("what is computed from a weight is recorded, unless nobody may ask") {
  parameter w({3}, initialiser::constant(2));
  auto const x = tensor::ones({3});
  CHECK((w * x).wants_gradient());
  CHECK_FALSE((x * x).wants_gradient());
  CHECK((x.with_gradient() * x).wants_gradient());
  CHECK_FALSE((w * x).detach().wants_gradient());
  {
    no_gradient const here;
    CHECK_FALSE((w * x).wants_gradient());
  }
  {
    evaluation const here;
    CHECK_FALSE((w * x).wants_gradient());
  }
  CHECK((w * x).wants_gradient());
}

TEST_CASE("a long chain of operators is released without recursion") {
  parameter w({1}, initialiser::constant(1));
  tensor x = w;
  for (int i = 0; i < 200'000; ++i) x = x + 1;
  CHECK(x.item<float>() == 200'001);
}

TEST_CASE("contexts nest, and give each its own numbers") {
  auto const draw_two = [] { return std::pair{eager_context::current().draw(), eager_context::current().draw()}; };
  std::pair<std::uint64_t, std::uint64_t> first, again, other;
  {
    eager_context const a{{.seed = 1, .threads = 1}};
    first = draw_two();
    {
      eager_context const b{{.seed = 2, .threads = 1}};
      other = draw_two();
    }
  }
  {
    eager_context const a{{.seed = 1, .threads = 1}};
    again = draw_two();
  }
  CHECK(first == again);
  CHECK(first != other);
  CHECK(first.first != first.second);
}

TEST_CASE("memory that the system does not have is told, and nothing is lost") {
  if (neap::testing::sanitized) return;  // they end a program that asks for so much
  auto const large = tensor::randn({std::int64_t{1} << 58}, 1);
  auto const text = "no memory for a tensor of 1152921504606846976 bytes";
  auto const line = __LINE__ + 1;
  auto const what = message_of([&] { return large.ref(); }), sum = message_of([&] { return large + large; });
  CHECK(what.starts_with("tensor.cpp:" + std::to_string(line) + ": " + text));
  CHECK(sum.starts_with("tensor.cpp:" + std::to_string(line) + ": " + text));
  eager_context context{{.threads = 1}};
  CHECK(context.workspace(100) != nullptr);
  CHECK_THROWS_AS(context.workspace(std::int64_t{1} << 60), std::bad_alloc);
  CHECK(context.workspace(10) != nullptr);
}

TEST_CASE("an update does not read another view of what it overwrites") {
  tensor const b = tensor::randn({64, 64}, 3);
  auto const told = message_of([&] { (void)apply(op::accumulate{}, {b, permute(b, {1, 0})}); });
  CHECK(told.find("tensor.cpp:") != std::string::npos);
  CHECK(told.find("accumulate: input 1 is another view of what is overwritten") != std::string::npos);
  tensor const before = apply(op::copy{}, {b});
  (void)apply(op::accumulate{}, {b, b});
  CHECK(b.values<float>() == (before + before).values<float>());
}
