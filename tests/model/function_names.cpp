// Errors begin with the user's line and the name of the public function that was called, whatever operators it is made
// of.
#include <neap/model/model.hpp>

#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::message_of;

namespace {

struct call {
  std::string function;
  std::function<void()> run;
};

void check(std::vector<call> const& calls) {
  std::string const file = "function_names.cpp:";
  for (auto const& c : calls) {
    auto const text = message_of(c.run);
    CAPTURE(c.function);
    CAPTURE(text);
    CHECK(text.starts_with(file));
    CHECK(text.find(": " + c.function + ":") == text.find(": "));  // what is behind file and line
    CHECK(text.find(file, 1) == text.npos);
  }
}

tensor const& x() {
  static tensor const t = tensor::ones({2, 3});
  return t;
}
tensor const y = tensor::ones({4, 5}), v = tensor::ones({5}), none;
tensor const masks = greater(x(), 0), whole = cast(x(), dtype::i64), ids = reshape(whole, {6});

}  // namespace

TEST_CASE("functions whose operator has another name") {
  check({
      {"max", [] { max(x(), 7); }},
      {"max", [] { max(none); }},
      {"max",
       [] {
         max(x(), {0, 0});
       }},
      {"min", [] { min(x(), -8); }},
      {"min", [] { min(none); }},
      {"any", [] { any(masks, 7); }},
      {"any", [] { any(x()); }},
      {"all", [] { all(masks, 7); }},
      {"all", [] { all(none); }},
      {"tril", [] { tril(v); }},
      {"tril", [] { tril(none); }},
      {"triu", [] { triu(v); }},
      {"triu", [] { triu(none); }},
      {"pow", [] { pow(whole, .5); }},
      {"pow", [] { pow(none, 2); }},
      {"add", [] { (void)(masks + 1); }},
      {"add", [] { (void)(1 + masks); }},
      {"add", [] { (void)(none + 1); }},
      {"sub", [] { (void)(masks - 1); }},
      {"sub", [] { (void)(1 - masks); }},
      {"sub", [] { (void)(none - 1); }},
      {"mul", [] { (void)(masks * 2); }},
      {"mul", [] { (void)(whole * .5); }},
      {"mul", [] { (void)(2 * none); }},
      {"div", [] { (void)(masks / 2); }},
      {"div", [] { (void)(1 / masks); }},
      {"div", [] { (void)(none / 2); }},
      {"batch_norm",
       [] {
         evaluation const e;
         batch_norm(tensor::ones({1, 2, 8, 8}), v, v, v, v);
       }},
      {"batch_norm",
       [] {
         batch_norm(tensor::ones({1, 2, 8, 8}), v, v, v, v);
       }},
  });
}

TEST_CASE("functions made of several operators") {
  tensor const seq = tensor::ones({1, 2, 8}), volume = tensor::ones({1, 2, 8, 8, 8});
  tensor const q = tensor::ones({2, 2, 3, 4}), k = tensor::ones({2, 2, 5, 4}), wide = tensor::ones({2, 2, 5, 8});
  check({
      {"ceil", [] { ceil(whole); }},
      {"ceil", [] { ceil(none); }},
      {"var", [] { var(whole); }},
      {"var", [] { var(none); }},
      {"stddev", [] { stddev(masks); }},
      {"logsumexp", [] { logsumexp(whole); }},
      {"norm", [] { norm(none); }},
      {"prod", [] { prod(none); }},
      {"cosine_similarity", [] { cosine_similarity(whole, whole); }},
      {"cosine_similarity", [] { cosine_similarity(x(), whole); }},
      {"cosine_similarity", [] { cosine_similarity(x(), none); }},
      {"softmax", [] { softmax(none); }},
      {"layer_norm", [] { layer_norm(none, v, v); }},
      {"linear", [] { linear(x(), y, {}); }},
      {"linear", [] { linear(x(), v, {}); }},
      {"linear", [] { linear(x(), whole, {}); }},
      {"linear", [] { linear(none, y, {}); }},
      {"matmul", [] { matmul(x(), none); }},
      {"cast", [] { cast(none, dtype::f64); }},
      {"reshape", [] { reshape(none, {1}); }},
      {"flatten", [] { flatten(none); }},
      {"transpose", [] { transpose(none); }},
      {"stack",
       [] {
         stack({x(), whole});
       }},
      {"stack",
       [] {
         stack({x(), none});
       }},
      {"squeeze", [] { squeeze(none, 0); }},
      {"masked_fill", [] { masked_fill(none, masks, 1); }},
      {"masked_fill", [] { masked_fill(x(), none, 1); }},
      {"masked_fill", [] { masked_fill(whole, masks, .5); }},
      {"logical_not", [] { logical_not(none); }},
      {"logical_and", [] { logical_and(masks, none); }},
      {"flip", [] { flip(none); }},
      {"roll", [] { roll(none, 1); }},
      {"sort", [] { sort(x(), 7); }},
      {"arg_sort", [] { arg_sort(x(), 7); }},
      {"arg_sort", [] { arg_sort(none); }},
      {"conv1d",
       [&] {
         conv1d(seq, tensor::ones({4, 2, 3}), v);
       }},
      {"conv1d", [&] { conv1d(seq, none, {}); }},
      {"conv3d",
       [&] {
         conv3d(volume, tensor::ones({4, 2, 3, 3, 3}), v);
       }},
      {"conv_transpose2d", [] { conv_transpose2d(none, y, {}); }},
      {"attention", [&] { attention(q, none, k); }},
      {"plain_attention", [&] { plain_attention(q, wide, wide); }},
      {"plain_attention", [&] { plain_attention(q, k, q); }},
      {"plain_attention", [&] { plain_attention(q, k, k, {}, 2); }},
      {"masked_attention", [&] { masked_attention(q, k, k, none); }},
      {"einsum", [] { einsum("ij->i", none); }},
      {"binary_cross_entropy_with_logits", [] { binary_cross_entropy_with_logits_loss(x(), y); }},
      {"binary_cross_entropy_with_logits", [] { binary_cross_entropy_with_logits_loss(whole, whole); }},
      {"kl_divergence", [] { kl_divergence_loss(whole, whole); }},
      {"smooth_l1", [] { smooth_l1_loss(whole, whole); }},
      {"smooth_l1", [] { smooth_l1_loss(x(), x(), -1); }},
  });
}

TEST_CASE("the same in a trace, and of functions within functions") {
  check({
      {"max", [] { trace([](tensor const& a) { return max(a, 7); }, x()); }},
      {"tril", [] { trace([](tensor const& a) { return tril(a[0]); }, x()); }},
      {"var", [] { trace([](tensor const& a) { return var(cast(a, dtype::i64)); }, x()); }},
      {"max", [] { trace([](tensor const&) { return max(none); }, x()); }},
  });
  CHECK_THROWS(max(x(), 7));  // and the name is gone behind an error
  auto const text = message_of([] { matmul(x(), x()); });
  CHECK(text.find(": matmul: ") != text.npos);
}

TEST_CASE("numbers that an element type does not have") {
  check({
      {"full", [] { tensor::full({2}, .5, dtype::i64); }},
      {"fill", [] { fill({2}, .5, dtype::i64); }},
      {"fill", [] { fill({2}, -1, dtype::u8); }},
      {"pad", [] { pad(whole, 0, 1, 1, .5); }},
      {"div", [] { (void)(whole / 2); }},
      {"div", [] { (void)(whole / 0); }},
  });
  auto const text = message_of([] { (void)(whole / 2); });
  CHECK(text.ends_with(": div: by 2, which i64[2,3] has no quotients for: cast it to a floating type first"));
  CHECK((whole / 0.5).values<std::int64_t>() == std::vector<std::int64_t>(6, 2));
}
