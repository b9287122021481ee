// What a batch must have as the sample had it.
#include <neap/model/sample_form.hpp>

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

using namespace neap;
using neap::detail::sample_form;

namespace {
enum class task { words, pictures };
struct times {
  int epoch = 0;
  std::array<double, 2> scales{1, 2};
};
struct sample_type_of_all {
  tensor x, mask, weights;
  double beta = 0.5;
  bool last = false;
  task what = task::words;
  std::string name = "a";
  times when{};
  std::vector<std::int64_t> lengths{3, 2};
  std::array<bool, 2> flags{true, false};
  std::vector<bool> bits{true, false};
  std::string const unit = "m";
  std::optional<float> share{};
  std::map<std::string, tensor> more{};
  static double identity(double x) { return x; }
  double (*f)(double) = identity;
};

sample_type_of_all sample() {
  sample_type_of_all s;
  s.x = tensor::ones({2}), s.mask = tensor::ones({2});
  s.more["a"] = tensor::ones({2});
  return s;
}
}  // namespace

TEST_CASE("a batch of the sample's form, whatever its tensors hold and measure") {
  sample_form const form(sample());
  auto b = sample();
  CHECK(form.difference(b).empty());
  b.x = tensor::zeros({5, 3});
  CHECK(form.difference(b).empty());
  CHECK(form.difference(std::pair{b.x, b.x}).empty());  // another type: its tensors alone count
  CHECK(sample_form().difference(b).empty());
}

TEST_CASE("what a batch has otherwise than the sample is told by its path") {
  sample_form const form(sample());
  auto const told = [&](auto const& change) {
    auto b = sample();
    change(b);
    return form.difference(b);
  };
  std::string const trace =
      ", and the program was made with that: what changes from batch to batch is a tensor, or no part of the batch";
  CHECK(told([](auto& b) { std::swap(b.mask, b.weights); }) ==
        "the batch's tensor \"mask\" is empty, the sample's has a value");
  CHECK(told([](auto& b) { b.weights = b.x; }) == "the batch's tensor \"weights\" has a value, the sample's is empty");
  CHECK(told([](auto& b) { b.beta = 1; }) == "the batch's \"beta\" is 1, the sample's was 0.5" + trace);
  CHECK(told([](auto& b) { b.last = true; }) == "the batch's \"last\" is 1, the sample's was 0" + trace);
  CHECK(told([](auto& b) { b.what = task::pictures; }) == "the batch's \"what\" is 1, the sample's was 0" + trace);
  CHECK(told([](auto& b) { b.bits[1] = true; }) == "the batch's \"bits.1\" is 1, the sample's was 0" + trace);
  CHECK(told([](auto& b) { b.name = "b"; }) == "the batch's \"name\" is \"b\", the sample's was \"a\"" + trace);
  CHECK(told([](auto& b) { b.when.epoch = 3; }) == "the batch's \"when.epoch\" is 3, the sample's was 0" + trace);
  CHECK(told([](auto& b) { b.lengths[1] = 4; }) == "the batch's \"lengths.1\" is 4, the sample's was 2" + trace);
  CHECK(told([](auto& b) { b.when.scales[1] = 3; }).starts_with("the batch's \"when.scales.1\" is 3"));
  CHECK(told([](auto& b) { b.flags[1] = true; }) == "the batch's \"flags.1\" is 1, the sample's was 0" + trace);
  CHECK(told([](auto& b) { b.share = 0.5f; }) == "the batch has a part \"share\" where the sample had \"more.a\"");
  CHECK(told([](auto& b) { b.lengths.push_back(1); }) ==
        "the batch has a part \"lengths.2\" where the sample had \"flags.0\"");
  CHECK(told([](auto& b) {
          b.more = {{"b", b.x}};
        }) == "the batch has a part \"more.b\" where the sample had \"more.a\"");
  CHECK(told([](auto& b) { b.more["b"] = b.x; }) == "the batch has a part \"more.b\", the sample had none");
  CHECK(told([](auto& b) { b.more.clear(); }) == "the batch has no part \"more.a\", the sample had one");
  CHECK(sample_form(tensor::ones({2})).difference(tensor()) == "the batch's tensor is empty, the sample's has a value");
}
