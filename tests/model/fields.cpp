#include <neap/model/fields.hpp>

#include <neap/model/model.hpp>

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

using namespace neap;

namespace {

struct pair_of {
  parameter weight{{2}}, bias{{1}};
  int width = 2;
};
class hidden {  // constructors and private parts: a friend tells
 public:
  explicit hidden(int) {}
  friend auto neap_fields(hidden& self) { return std::tie(self.first_, self.rest_); }

 private:
  parameter first_{{3}};
  std::vector<pair_of> rest_{1};
};
class named {
 public:
  friend auto neap_fields(named& self) { return std::tie(self.a_); }
  static constexpr std::array neap_names{"alpha"};

 private:
  parameter a_{{1}};
};
enum class mode { a, b };
struct everything {
  pair_of up, down;
  std::vector<pair_of> layers{2};
  std::array<parameter, 2> fixed{parameter({1}), parameter({1})};
  std::optional<pair_of> maybe, nothing;
  std::unique_ptr<parameter> owned = std::make_unique<parameter>(shape{1});
  std::map<std::string, parameter> by_name;
  std::tuple<parameter, int> tuple{parameter({1}), 3};
  hidden secret{1};
  named with_names;
  buffer statistic{{1}};
  tensor table;
  std::string text = "plain";
  double number = 1;
  mode how = mode::a;
  int (*function)(int) = nullptr;
  struct nothing_inside {
  } empty;
};

}  // namespace

TEST_CASE("a model's parts are found in order, with their paths") {
  everything e;
  e.maybe.emplace();
  e.by_name["x"] = parameter({1});
  std::vector<std::string> paths;
  for (auto const& n : named_tensors(e, role::weight)) paths.push_back(n.name);
  CHECK(paths == std::vector<std::string>{"up.weight", "up.bias", "down.weight", "down.bias", "layers.0.weight",
                                          "layers.0.bias", "layers.1.weight", "layers.1.bias", "fixed.0", "fixed.1",
                                          "maybe.weight", "maybe.bias", "owned", "by_name.x", "tuple.0", "secret.0",
                                          "secret.1.0.weight", "secret.1.0.bias", "with_names.alpha"});
  CHECK(named_tensors(e, role::buffer).size() == 1);
  CHECK(named_tensors(e, role::constant).empty());
  e.table = constant(tensor::ones({2}));
  CHECK(named_tensors(e, role::constant)[0].name == "table");
}

TEST_CASE("members are counted, C arrays and bases noticed") {
  struct with_array {
    parameter a;
    parameter b[3];
  };
  struct with_numbers {
    float b[2];
    pair_of c;
  };
  struct base {
    parameter a;
  };
  struct derived : base {
    parameter b;
  };
  static_assert(detail::has_c_array<with_array>());
  static_assert(detail::has_c_array<with_numbers>());
  static_assert(!detail::has_c_array<everything>());
  static_assert(!detail::has_c_array<pair_of>());
  static_assert(detail::has_base<derived>());
  static_assert(!detail::has_base<everything>());
  static_assert(detail::initialiser_count<pair_of>() == 3);
  static_assert(detail::initialiser_count<everything>() == 18);
  struct with_reference {
    int& first;
    parameter b;
  };
  struct ends_in_reference {
    parameter a;
    int& last;
  };
  struct plain_reference {
    parameter& a;
  };
  struct immovable {
    parameter a;
    std::mutex m;
    parameter b;
  };
  struct plain_numbers {
    int const a;
    float b[3];
  };
  static_assert(!detail::counts_members<with_reference>() && !detail::counts_members<ends_in_reference>());
  static_assert(detail::counts_members<everything>() && detail::counts_members<pair_of>());
  static_assert(detail::has_reference<plain_reference>() && !detail::plain_value<plain_reference>);
  static_assert(!detail::has_reference<plain_numbers>() && detail::plain_value<plain_numbers>);
  static_assert(detail::initialiser_count<immovable>() == 3 || !detail::counts_members<immovable>());
  static_assert(detail::member_name<pair_of, 1>() == "bias");
}

TEST_CASE("plain members may be const, and std::vector<bool>") {
  struct net {
    std::int64_t const heads = 2;
    std::vector<bool> skip{true, false};
    std::string const name = "net";
    std::vector<int> const widths{4, 4};
    std::vector<bool> const never;
    pair_of a;
  } m;
  std::vector<std::string> paths;
  for (auto const& n : named_tensors(m, role::weight)) paths.push_back(n.name);
  CHECK(paths == std::vector<std::string>{"a.weight", "a.bias"});
}

TEST_CASE("a lambda without captures has no parts; tied weights count once") {
  auto const f = [](tensor const& x) { return x; };
  auto g = f;
  CHECK(parameters(g).empty());
  struct tied {
    parameter a{{4}}, b;
  } t;
  t.b = t.a.share();
  CHECK(parameters(t).size() == 1);
  CHECK(parameter_count(t) == 4);
  set_element(t, dtype::f64);
  CHECK(parameters(t).size() == 1);
  CHECK(t.a.data<double>() == t.b.data<double>());
}

TEST_CASE("another element type keeps data, and is drawn where there are none") {
  struct net {
    nn::linear a{3, 2};
    buffer mean{{2}};
    parameter tied = a.weight.share();
  } trained, fresh;
  std::vector<double> const values{1, -2, 0.5, 1 + 0x1p-7, 1 + 0x1p-9, 3e38};
  for (std::size_t i = 0; i < 6; ++i) trained.a.weight.data<float>()[i] = static_cast<float>(values[i]);
  trained.mean.data<float>()[1] = 7;
  for (dtype t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f32}) {
    set_element(trained, t);
    CHECK(trained.a.weight.element() == t);
    CHECK(trained.tied.storage() == trained.a.weight.storage());
    CHECK(trained.mean.values<double>() == std::vector<double>{0, 7});
    auto const now = trained.a.weight.values<double>();
    for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(now[i] - values[i]) <= 0x1p-8 * std::abs(values[i]));
    CHECK(now[3] == values[3]);  // exact in bf16
  }
  CHECK(trained.a.weight.values<double>()[4] == 1);  // 1 + 2^-9 rounded to bf16
  trained.a.weight.requires_gradient(false);
  set_element(trained, dtype::f16);
  CHECK(trained.tied.is_frozen());
  CHECK(trained.a.weight.values<double>()[1] == -2);
  auto const before = fresh.a.weight.first_values();
  set_element(fresh, dtype::f64);
  CHECK_FALSE(fresh.a.weight.storage()->is_allocated());
  CHECK(fresh.a.weight.first_values().seed == before.seed);
}

TEST_CASE("copies of a model are tied as it is, however they are made") {
  struct inner {
    nn::embedding table{4, 3};
    std::vector<nn::linear> layers{nn::linear(3, 3), nn::linear(3, 3), nn::linear(3, 3)};
  };
  struct net {
    inner in;
    nn::linear head{3, 4};
    net() { head.weight = in.table.weight.share(), in.layers[2].weight = in.layers[0].weight.share(); }
  };
  auto const is_tied = [](net const& n) {
    return n.in.table.weight.storage() == n.head.weight.storage() &&
           n.in.layers[0].weight.storage() == n.in.layers[2].weight.storage() &&
           n.in.layers[0].weight.storage() != n.in.layers[1].weight.storage();
  };
  net const first;
  std::vector<net> all;
  for (int i = 0; i < 3; ++i) {
    net const again = first;  // at one place each time
    CHECK(is_tied(again));
    all.push_back(again);  // a copy of a copy
  }
  parameter const lone = first.head.weight;  // a copy of one member is no part of the next copy
  all.push_back(first);
  all.insert(all.end(), 2, first);
  std::optional<net> maybe = all[0];
  all.push_back(*maybe), all.push_back(std::move(*maybe));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(is_tied(all[i]));
    for (std::size_t k = 0; k < i; ++k)
      for (parameter const* w : std::initializer_list<parameter const*>{&first.head.weight, &lone, &all[k].head.weight})
        CHECK(w->storage() != all[i].head.weight.storage());
  }
  net target;
  target = first;
  CHECK(is_tied(target));
  struct given {
    parameter a, b;
  } const tied{first.in.table.weight.share(), first.head.weight.share()};
  given empty;
  empty = tied;
  CHECK(empty.a.storage() == empty.b.storage());
}

TEST_CASE("initialise makes equal models of equal seeds") {
  struct net {
    nn::linear a{4, 3}, b{3, 4};
    nn::batch_norm2d n{2};
    buffer table{{5}, initialiser::uniform(-1, 1)};
  } x, y;
  CHECK(x.a.weight.values<float>() != y.a.weight.values<float>());
  CHECK(x.table.values<float>() != y.table.values<float>());
  initialise(x, 9);
  initialise(y, 9);
  CHECK(x.a.weight.values<float>() == y.a.weight.values<float>());
  CHECK(x.b.bias.values<float>() == y.b.bias.values<float>());
  CHECK(x.table.values<float>() == y.table.values<float>());
  CHECK(x.a.weight.values<float>() != x.b.weight.values<float>());
  initialise(y, 10);
  CHECK(x.a.weight.values<float>() != y.a.weight.values<float>());
  for (auto v : x.a.weight.values<float>()) CHECK(std::abs(v) <= 0.5f);
  CHECK(x.n.running_variance.values<float>() == std::vector<float>{1, 1});
  set_element(x, dtype::f64);
  CHECK(x.a.weight.element() == dtype::f64);
  CHECK(x.n.running_mean.element() == dtype::f64);
}

TEST_CASE("more than 32 parts are reached in groups") {
  struct group {
    parameter a{{1}}, b{{1}}, c{{1}}, d{{1}}, e{{1}}, f{{1}}, g{{1}}, h{{1}}, i{{1}}, j{{1}}, k{{1}}, l{{1}}, m{{1}},
        n{{1}}, o{{1}}, p{{1}}, q{{1}}, r{{1}}, s{{1}}, t{{1}}, u{{1}}, v{{1}}, w{{1}}, x{{1}}, y{{1}}, z{{1}}, A{{1}},
        B{{1}}, C{{1}}, D{{1}}, E{{1}}, F{{1}};
  };
  struct {
    group first, second;
  } two;
  CHECK(parameters(two).size() == 64);
  CHECK(named_tensors(two, role::weight)[63].name == "second.F");
}
