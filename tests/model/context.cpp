#include <neap/model/context.hpp>

#include <neap/model/model.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/llama.hpp>

#include "../../examples/models/lstm.hpp"
#include "../../examples/models/mixtral.hpp"
#include "../../examples/models/mlp.hpp"
#include "../../examples/models/vit.hpp"
#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <vector>

using namespace neap;
using neap::testing::message_of;

namespace {

void check(std::string const& what, int line, std::string_view text) {
  CAPTURE(what);
  CHECK(what.starts_with("context.cpp:" + std::to_string(line) + ": "));
  CHECK(what.find(text) != std::string::npos);
}

// A module of the program, whose own line counts wherever it is called from.
struct inner {
  nn::linear l{5, 4};
  static constexpr int line = __LINE__ + 1;
  tensor operator()(tensor const& x) const { return l(x); }
};

tensor ones(shape const& s) { return tensor::ones(s); }

// The library by another name, as in a part of a program that was compiled from elsewhere; and a program near it.
std::source_location in_library_elsewhere();
std::source_location in_body_elsewhere();
std::source_location in_program_near();

}  // namespace

TEST_CASE("a place is in the program, or it is not one to name") {
  auto const here = std::source_location::current();
  CHECK(detail::is_in_program(here));
  CHECK_FALSE(detail::is_in_program(std::source_location{}));
  CHECK_FALSE(detail::is_in_program(in_library_elsewhere()));
  CHECK_FALSE(detail::is_in_program(in_body_elsewhere()));
  CHECK(detail::is_in_program(in_program_near()));
  struct at_default {
    std::source_location at;
    explicit at_default(int, std::source_location l = std::source_location::current()) : at(l) {}
  };
  std::vector<at_default> made;
  made.emplace_back(1);
  CHECK_FALSE(detail::is_in_program(made[0].at));  // of the standard library
  CHECK(context_access::place(here).line() == here.line());
  CHECK(context_access::place(made[0].at).line() == 0);
  {
    auto const outer = std::source_location::current();
    caller_scope const a(outer);
    CHECK(context_access::place(made[0].at).line() == outer.line());
    CHECK(context_access::place(here).line() == here.line());  // deeper
    {
      caller_scope const b(here), c(made[0].at);
      CHECK(context_access::place(made[0].at).line() == here.line());  // the innermost of the program
    }
    {
      place_scope const b(made[0].at), c(here), d(outer);
      CHECK(context_access::place(outer).line() == here.line());  // the outermost of the program
    }
    CHECK(context_access::place({}).line() == outer.line());
  }
  CHECK(context_access::place({}).line() == 0);
}

TEST_CASE("modules of the library name the line that made or called them") {
  check(message_of([] { nn::linear(-1, 3); }), __LINE__, "a tensor cannot have the shape [3,-1]");
  check(message_of([] { nn::embedding(-4, 3); }), __LINE__, "a tensor cannot have the shape [-4,3]");
  check(message_of([] { nn::layer_norm(-4); }), __LINE__, "a tensor cannot have the shape [-4]");
  check(message_of([] { nn::batch_norm2d(-4); }), __LINE__, "a tensor cannot have the shape [-4]");
  check(message_of([] { nn::transformer_block(8, 2, -1); }), __LINE__, "a tensor cannot have the shape [-1,8]");
  for (std::int64_t groups : {0, -1, 3})
    check(message_of([&] { nn::conv2d(4, 4, 3, {.groups = groups}); }), __LINE__, "do not divide into");
  check(message_of([] { nn::multi_head_attention(16, 3); }), __LINE__, "width 16 does not divide into 3 heads");
  nn::multi_head_attention const attention(16, 2);
  check(message_of([&] { attention(ones({4, 16})); }), __LINE__, "takes (batch, tokens, width), got");
  check(message_of([] { nn::linear(3, 4)(ones({2, 4})); }), __LINE__, "linear: inner extents differ");
  struct user {
    nn::linear a{4, -3};
    int line = __LINE__ - 1;
  };
  CHECK(message_of([] { user u; }).starts_with("context.cpp:"));
}

TEST_CASE("a sequence names the line of a module of the program in it, else that of the call") {
  nn::sequential const s{nn::linear(4, 4), nn::relu(), inner{}};
  check(message_of([&] { s(ones({2, 4})); }), inner::line, "linear: inner extents differ, [2,4] x [4,5] transposed");
  check(message_of([&] { s(ones({2, 3})); }), __LINE__, "linear: inner extents differ, [2,3] x [4,4] transposed");
  int line = 0;
  nn::sequential const f{[&](tensor const& x) {
    line = __LINE__ + 1;
    return reshape(x, {3});
  }};
  auto const what = message_of([&] { f(ones({2, 4})); });
  check(what, line, "reshape: from [2,4] to [3]");
}

TEST_CASE("models of the zoo name the line that made or called them") {
  auto llama = zoo::llama_config::toy();
  llama.heads = 0;
  check(message_of([&] { zoo::llama m(llama); }), __LINE__, "llama: width must divide into heads");
  llama.heads = 4, llama.key_heads = 0;
  check(message_of([&] { zoo::llama m(llama); }), __LINE__, "llama: width must divide into heads");
  check(message_of([&] { zoo::llama_block m(llama); }), __LINE__, "attention: width must divide into heads");
  llama.heads = llama.key_heads = 16;
  check(message_of([&] { zoo::llama m(llama); }), __LINE__, "the width of a head must be even, not 1");
  zoo::llama_config const toy = zoo::llama_config::toy();
  zoo::llama_block const block(toy);
  check(message_of([&] { nn::rotary turn(-1, 4, 10); }), __LINE__, "rotary: a context of -1 tokens");
  nn::rotary const turn(8, 4, 10);
  check(message_of([&] { block(ones({4, 16}), turn); }), __LINE__, "takes (batch, tokens, width), got f32[4,16]");
  auto mixtral = zoo::mixtral_config::toy();
  mixtral.chosen = 5;
  check(message_of([&] { zoo::mixtral m(mixtral); }), __LINE__, "cannot choose 5 of 4 experts");
  mixtral.layers = 0, mixtral.heads = 0;
  check(message_of([&] { zoo::mixtral m(mixtral); }), __LINE__, "the width of a head must be even, not 0");
  zoo::lstm const lstm(zoo::lstm_config::toy());
  check(message_of([&] { lstm(tensor::from({1, 2}, {2})); }), __LINE__, "numbers must be i64, got i32[2]");
  auto gpt = zoo::gpt_config::toy();
  gpt.heads = 3;
  check(message_of([&] { zoo::gpt m(gpt); }), __LINE__, "width 16 does not divide into 3 heads");
  auto vit = zoo::vit_config::toy();
  zoo::vit const v(vit);
  check(message_of([&] { v(ones({2, 16})); }), __LINE__, "vit: takes (batch, channels");
  for (std::int64_t patch : {0, 17}) {
    vit.patch = patch;
    check(message_of([&] { zoo::vit m(vit); }), __LINE__, "vit: an image of 16 has no patches of");
  }
  check(message_of([&] { zoo::mlp m({{3, -4}}); }), __LINE__, "a tensor cannot have the shape [-4,3]");
  zoo::mlp const m({{3, 4}});
  check(message_of([&] { m(ones({2, 4})); }), __LINE__, "linear: inner extents differ");
}

TEST_CASE("a trace of a module of the library names its own line") {
  nn::linear const m(3, 4);
  check(message_of([&] { (void)trace(m, ones({2, 4})); }), __LINE__, "linear: inner extents differ");
  std::function<tensor(tensor const&)> const f = m;  // called by the standard library
  check(message_of([&] { (void)trace(f, ones({2, 4})); }), __LINE__, "linear: inner extents differ");
  inner const i;
  check(message_of([&] { (void)trace(i, ones({2, 4})); }), inner::line, "linear: inner extents differ");
}

namespace {
#line 1 "../../there/include/neap/model/nn/linear.hpp"
std::source_location in_library_elsewhere() { return std::source_location::current(); }
#line 1 "../../there/include/neap/model/nn/impl/linear.ipp"
std::source_location in_body_elsewhere() { return std::source_location::current(); }
#line 1 "user/include/neap/user.cpp"
std::source_location in_program_near() { return std::source_location::current(); }
}  // namespace
