// PTX that nvcc made of tests/ptx/*.cu when the tests were built; nothing where there is no nvcc.
#pragma once

#include "module.hpp"

#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace neap::testing::ptx {

/// The module of NAME.cu for an architecture (80 or 90).
inline std::optional<module> compiled([[maybe_unused]] std::string const& name, [[maybe_unused]] int architecture) {
#ifdef NEAP_PTX_DIR
  std::string const path = std::string(NEAP_PTX_DIR "/") + name + "_" + std::to_string(architecture) + ".ptx";
  std::ifstream in(path);
  if (!in) throw error("no file " + path);
  return parse({std::istreambuf_iterator<char>(in), {}});
#else
  return std::nullopt;
#endif
}

}  // namespace neap::testing::ptx
