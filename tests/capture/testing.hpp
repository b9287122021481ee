// A compiled function beside the plain one on a copy of its state: outputs and all state are bit-equal after every call.
#pragma once

#include <neap/execute/compile.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>

namespace neap::testing {

/// n rows of 4 numbers, other ones for each i; alone, as the arguments of call i.
inline tensor sample(int i, std::int64_t n = 3) { return tensor::randn({n, 4}, static_cast<std::uint64_t>(i) + 1); }
inline auto one_sample(int i) { return std::tuple{sample(i)}; }

/// The bytes of everything that a walk of an object meets.
class content final : public detail::part_visitor {
 public:
  std::string bytes;
  void visit(tensor& x) override {
    if (x.is_empty()) return structure(std::uint64_t{0});
    structure(std::uint64_t{1} + static_cast<std::uint64_t>(x.element()));
    for (auto d : x.shape()) structure(static_cast<std::uint64_t>(d));
    tensor const dense = contiguous(x.detach());
    auto const r = dense.ref();
    bytes.append(static_cast<char const*>(r.data), static_cast<std::size_t>(dense.type().bytes()));
  }
  void cell(void*, void* value, std::size_t n, detail::symbol_mark*) override { plain(value, n); }
  void plain(void* value, std::size_t n) override { bytes.append(static_cast<char const*>(value), n); }
  void text(std::string& x) override { bytes += x; }
  void structure(std::uint64_t n) override { bytes.append(reinterpret_cast<char const*>(&n), sizeof n); }
  void structure(std::string_view key) override { bytes += key; }
  void tracked(detail::tracked_base& x) override { x.show(*this); }
  void unlisted(unsigned char const*, std::size_t) override {}  // may be padding
};
template <class T>
std::string content_of(T& x) {
  content c;
  detail::walk_parts(x, c);
  return c.bytes;
}

/// Call number i on both: f(model, arguments(i)...) for a tuple of arguments. Returns the compiled object's graphs.
template <class F, class Model, class Arguments>
std::size_t compare(F f, Model& model, int calls, Arguments arguments, compile_options const& options = {}) {
  Model plain = model;
  auto compiled = compile(f, options);
  for (int i = 0; i < calls; ++i) {
    auto mine = arguments(i), its = arguments(i);
    auto a = std::apply([&](auto&... x) { return compiled(model, x...); }, mine);
    auto b = std::apply([&](auto&... x) { return f(plain, x...); }, its);
    CAPTURE(i);
    CAPTURE(compiled.why_missed());
    REQUIRE(content_of(a) == content_of(b));
    REQUIRE(content_of(model) == content_of(plain));
    REQUIRE(content_of(mine) == content_of(its));
  }
  return compiled.graphs();
}

}  // namespace neap::testing
