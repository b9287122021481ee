// A function that is compiled for a simulated device beside the same one on the host and the plain one.
#pragma once

#include <neap/cuda/compile.hpp>
#include <neap/model/model.hpp>

#include "../support/content.hpp"
#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <tuple>

namespace neap::testing {

/// What the device has seen go wrong; empty: nothing.
inline std::string problems() { return simulated_device::faults() + simulated_device::races(); }

inline tensor sample(int i, std::int64_t n = 3) { return tensor::randn({n, 16}, static_cast<std::uint64_t>(i) + 1); }

/// A function on the device beside it on the host and the plain one, each with its own copy of the model: outputs, state
/// and arguments have equal bits after each call. Returns the device's graphs.
template <class F, class Model, class Arguments, class... How>
std::size_t compare_on_device(F f, Model const& first, int calls, Arguments arguments, How const&... how) {
  std::size_t graphs = 0;
  for (bool const captured : {true, false}) {
    CAPTURE(captured);
    simulated_device::reset(3 + captured);
    Model there = first, here = first, plain = first;
    cuda_backend backend;
    compile_options options;
    options.run.graph = captured;
    {
      auto on_device = compile(f, how..., backend, options);
      auto on_host = compile(f, how...);
      for (int i = 0; i < calls; ++i) {
        CAPTURE(i);
        auto mine = arguments(i), its = arguments(i), hosts = arguments(i);
        auto const a = std::apply([&](auto&... x) { return on_device(there, x...); }, mine);
        auto const b = std::apply([&](auto&... x) { return f(plain, x...); }, its);
        auto const c = std::apply([&](auto&... x) { return on_host(here, x...); }, hosts);
        REQUIRE(content_of(a) == content_of(b));
        REQUIRE(content_of(a) == content_of(c));
        if (i % 3 == 2 || i + 1 == calls) {  // reads all that is on the device
          REQUIRE(content_of(there) == content_of(plain));
          REQUIRE(content_of(here) == content_of(plain));
        }
        REQUIRE(content_of(mine) == content_of(its));
      }
      CHECK(on_device.graphs() == on_host.graphs());
      graphs = on_device.graphs();
    }
    CHECK(content_of(there) == content_of(plain));
    CHECK(detail::storages_elsewhere == 0);
    CHECK(problems() == "");
  }
  return graphs;
}

}  // namespace neap::testing
