// The layers of include/neap, read from its #include lines: a header includes its own layer and those to the left.
//
//   core < backend < ir < plan < { model, capture, train, import } < { schedule, simulate, memory }
//        < mutate < { optimize, blocks } < execute < report
//
// Layers of one group may use each other, but not in a circle. `verify` stands apart: it knows core, ir and plan only.
// `cuda` stands apart, too: it may use all layers but report, and no layer uses it.
// Headers of `ir` declare kernels and include no backend; definitions are in ir/operators/kernels.
// The rules are a function of a tree of includes, so that faults can be planted in trees made for it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using tree = std::map<std::string, std::vector<std::string>>;  // "neap/ir/graph.hpp" -> what it includes

std::map<std::string, int> const rank_of{
    {"core", 0},     {"backend", 1}, {"ir", 2},       {"plan", 3},     {"model", 4},  {"capture", 4},
    {"train", 4},    {"import", 4},  {"schedule", 5}, {"simulate", 5}, {"memory", 5}, {"mutate", 6},
    {"optimize", 7}, {"blocks", 7},  {"execute", 8},  {"report", 9},   {"cuda", 9}};

/// "ir" of "neap/ir/operators/kernels/gelu.hpp"; empty for the umbrellas directly in neap/ and in neap/src/.
std::string layer_of(std::string const& header) {
  auto const from = header.find('/') + 1;
  auto const to = header.find('/', from);
  auto const folder = to == std::string::npos ? "" : header.substr(from, to - from);
  return folder == "src" ? "" : folder;
}

/// "neap/ir/graph.hpp" of "neap/ir/impl/graph.ipp", which defines what that header declares; other names as they are.
std::string header_of(std::string name) {
  auto const at = name.find("/impl/");
  if (at != std::string::npos && name.ends_with(".ipp")) name.replace(at, 6, "/").replace(name.size() - 4, 4, ".hpp");
  return name;
}

/// Whether a header of ir may use the backend: operators' kernels do, and bodies that are compiled once.
bool has_kernels(std::string const& header) {
  return header.starts_with("neap/ir/operators/kernels/") || header.ends_with(".ipp");
}

/// Everything that `start` reaches, itself included.
std::set<std::string> reach(tree const& t, std::string const& start) {
  std::set<std::string> seen;
  std::vector<std::string> open{start};
  while (!open.empty()) {
    auto const h = open.back();
    open.pop_back();
    if (!seen.insert(h).second) continue;
    if (auto const it = t.find(h); it != t.end()) open.insert(open.end(), it->second.begin(), it->second.end());
  }
  return seen;
}

/// One circle among `edges`, as "a > b > a"; empty if there is none.
std::string circle(std::map<std::string, std::set<std::string>> const& edges) {
  std::set<std::string> done;
  std::vector<std::string> path;
  std::string found;
  auto visit = [&](auto const& self, std::string const& at) -> bool {
    if (auto const it = std::ranges::find(path, at); it != path.end()) {
      for (auto p = it; p != path.end(); ++p) found += *p + " > ";
      found += at;
      return true;
    }
    if (!done.insert(at).second) return false;
    path.push_back(at);
    if (auto const it = edges.find(at); it != edges.end())
      for (auto const& next : it->second)
        if (self(self, next)) return true;
    path.pop_back();
    return false;
  };
  for (auto const& [from, to] : edges)
    if (visit(visit, from)) break;
  return found;
}

std::vector<std::string> faults(tree const& t) {
  std::vector<std::string> out;
  auto const arrow = [](std::string const& a, std::string const& b) { return a + " includes " + b + ": "; };

  std::map<std::string, std::set<std::string>> headers, layers;
  for (auto const& [header, includes] : t) {
    auto const layer = layer_of(header);
    bool const umbrella = layer.empty();
    if (!umbrella && layer != "verify" && !rank_of.contains(layer)) out.push_back(header + ": no such layer");
    for (auto const& to : includes) {
      if (to.starts_with("\"")) {
        out.push_back(arrow(header, to) + "write <neap/...>");
        continue;
      }
      if ((to.starts_with("nlohmann/") || to == "zlib.h") && layer != "import")
        out.push_back(arrow(header, to) + "for import only");
      if (to == "iostream") out.push_back(arrow(header, to) + "the library writes to no stream");
      if (!to.starts_with("neap/")) continue;
      bool const own = header.ends_with(".ipp") && header_of(header) == to;  // it and its .ipp include each other
      if (!own) headers[header].insert(to);
      if (!t.contains(to)) out.push_back(arrow(header, to) + "no such header");
      auto const target = layer_of(to);
      if (umbrella || target == layer) continue;
      if (layer == "ir" && target == "backend" && !has_kernels(header))
        out.push_back(arrow(header, to) + "kernels are in neap/ir/operators/kernels");
      if (target.empty()) {
        out.push_back(arrow(header, to) + "a layer does not include an umbrella");
      } else if (target == "cuda" || (layer == "cuda" && target == "report")) {
        out.push_back(arrow(header, to) + "cuda uses all layers but report, and no layer uses it");
      } else if (layer == "verify") {
        if (target != "core" && target != "ir" && target != "plan")
          out.push_back(arrow(header, to) + "verify knows core, ir and plan only");
      } else if (target == "verify") {
        if (rank_of.contains(layer) && rank_of.at(layer) <= rank_of.at("plan"))
          out.push_back(arrow(header, to) + "an arrow to the right");
      } else if (rank_of.contains(layer) && rank_of.contains(target)) {
        if (rank_of.at(target) > rank_of.at(layer)) out.push_back(arrow(header, to) + "an arrow to the right");
        if (rank_of.at(target) == rank_of.at(layer)) layers[layer].insert(target);
      }
    }
  }
  if (auto const c = circle(layers); !c.empty()) out.push_back("layers in a circle: " + c);
  if (auto const c = circle(headers); !c.empty()) out.push_back("headers in a circle: " + c);

  for (auto const& [header, includes] : t) {
    auto const all = reach(t, header);
    auto const reaches = [&](std::string const& prefix) {
      return std::ranges::any_of(all, [&](std::string const& h) { return h.starts_with(prefix); });
    };
    if (header == "neap/neap.hpp" && (reaches("neap/import/") || reaches("nlohmann/") || reaches("zlib.h")))
      out.push_back("neap/neap.hpp reaches the import layer");
    if (header == "neap/neap.hpp" && reaches("thrust/"))
      out.push_back("neap/neap.hpp reaches Thrust, whose headers are slow");
    if (header == "neap/neap.hpp" && (reaches("neap/cuda") || reaches("cuda_runtime")))
      out.push_back("neap/neap.hpp reaches CUDA's headers, which need a toolkit");
    bool const for_cuda = header == "neap/cuda.hpp" || header.ends_with(".cuh") || layer_of(header) == "backend" ||
                          layer_of(header) == "cuda" || header.starts_with("neap/ir/operators/kernels/");
    if (for_cuda && reaches("range/v3/")) out.push_back(header + " reaches range-v3, which nvcc does not compile");
  }
  return out;
}

/// The #include lines of every header under `root`/neap; what stands in quotes keeps its quotes.
tree read(fs::path const& root) {
  tree t;
  for (auto const& entry : fs::recursive_directory_iterator(root / "neap")) {
    if (!entry.is_regular_file()) continue;
    auto& includes = t[fs::relative(entry.path(), root).generic_string()];
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      auto at = line.find_first_not_of(" \t");
      if (at == std::string::npos || line[at] != '#') continue;
      at = line.find_first_not_of(" \t", at + 1);
      if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
      at = line.find_first_of("<\"", at);
      if (at == std::string::npos) continue;
      auto const end = line.find(line[at] == '<' ? '>' : '"', at + 1);
      if (end == std::string::npos) continue;
      includes.push_back(line[at] == '<' ? line.substr(at + 1, end - at - 1) : line.substr(at, end - at + 1));
    }
  }
  return t;
}

/// Those of `headers` that `start` does not reach.
std::vector<std::string> unreached(tree const& t, std::string const& start, std::vector<std::string> const& headers) {
  auto const all = reach(t, start);
  std::vector<std::string> out;
  for (auto const& h : headers)
    if (!all.contains(h)) out.push_back(h + ": not reached from " + start);
  return out;
}

std::string joined(std::vector<std::string> const& lines) {
  std::string all;
  for (auto const& line : lines) all += line + "\n";
  return all;
}

}  // namespace

TEST_CASE("the library keeps to its layers") {
  auto const t = read(fs::path(NEAP_SOURCE_DIR) / "include");
  CHECK(t.size() > 10);
  CHECK(t.contains("neap/core/version.hpp"));
  auto const found = faults(t);
  CHECK_MESSAGE(found.empty(), joined(found));
}

TEST_CASE("what is compiled once has a file that compiles it") {
  auto const t = read(fs::path(NEAP_SOURCE_DIR) / "include");
  std::vector<std::string> bodies;
  for (auto const& [header, includes] : t)
    if (header.ends_with(".ipp")) bodies.push_back(header);
  CHECK(bodies.size() > 10);
  // Graph files are a component, with a part of its own.
  std::vector<std::string> of_import;
  for (auto const& b : bodies)
    if (layer_of(b) == "import") of_import.push_back(b);
  std::erase_if(bodies, [](auto const& b) { return layer_of(b) == "import"; });
  auto found = unreached(t, "neap/src.hpp", bodies);
  CHECK_MESSAGE(found.empty(), joined(found));
  CHECK(of_import.size() > 5);
  found = unreached(t, "neap/src/import.hpp", of_import);
  CHECK_MESSAGE(found.empty(), joined(found));
  CHECK(unreached(t, "neap/src.hpp", {"neap/ir/graph.hpp", "neap/import/json.hpp"}).size() == 1);
  bodies.insert(bodies.end(), of_import.begin(), of_import.end());

  // Each belongs to a header, which includes it.
  for (auto const& b : bodies) {
    CAPTURE(b);
    auto const h = header_of(b);
    CHECK(t.contains(h));
    if (t.contains(h)) CHECK(std::ranges::count(t.at(h), b) == 1);
  }
}

TEST_CASE("planted faults are found, and nothing else is") {
  // A small library with every kind of arrow that is allowed.
  tree const good{
      {"neap/neap.hpp", {"neap/report/table.hpp", "neap/model/nn.hpp", "neap/verify/plan.hpp"}},
      {"neap/cuda.hpp", {"neap/backend/block.hpp", "neap/ir/operators/kernels/gelu.hpp", "neap/cuda/launch.cuh"}},
      {"neap/cuda/launch.cuh", {"neap/backend/block.hpp", "neap/plan/schedule.hpp", "cuda_runtime_api.h"}},
      {"neap/core/id.hpp", {"cstdint"}},
      {"neap/backend/block.hpp", {"neap/core/id.hpp"}},
      {"neap/ir/graph.hpp", {"neap/core/id.hpp"}},
      {"neap/ir/operators/kernels/gelu.hpp", {"neap/backend/block.hpp"}},
      {"neap/plan/schedule.hpp", {"neap/ir/graph.hpp"}},
      {"neap/verify/plan.hpp", {"neap/plan/schedule.hpp", "neap/core/id.hpp", "neap/ir/graph.hpp"}},
      {"neap/train/step.hpp", {"neap/model/nn.hpp"}},
      {"neap/model/nn.hpp", {"neap/ir/graph.hpp", "neap/backend/block.hpp"}},
      {"neap/import/json.hpp", {"nlohmann/json.hpp", "zlib.h", "neap/ir/graph.hpp"}},
      {"neap/simulate/peak.hpp", {"neap/memory/greedy.hpp", "neap/train/step.hpp"}},
      {"neap/memory/greedy.hpp", {"neap/plan/schedule.hpp"}},
      {"neap/execute/run.hpp", {"neap/simulate/peak.hpp", "neap/verify/plan.hpp"}},
      {"neap/report/table.hpp", {"neap/execute/run.hpp", "range/v3/view/zip.hpp"}},
  };
  CHECK_MESSAGE(faults(good).empty(), joined(faults(good)));

  auto const planted = [&](std::string const& header, std::string const& include, std::string const& message) {
    tree bad = good;
    bad[header].push_back(include);
    auto const found = faults(bad);
    CAPTURE(header);
    CAPTURE(include);
    CAPTURE(joined(found));
    CHECK(std::ranges::any_of(found, [&](auto const& f) { return f.find(message) != std::string::npos; }));
  };
  planted("neap/core/id.hpp", "neap/backend/block.hpp", "arrow to the right");
  planted("neap/ir/graph.hpp", "neap/plan/schedule.hpp", "arrow to the right");
  planted("neap/ir/graph.hpp", "neap/backend/block.hpp", "kernels are in neap/ir/operators/kernels");
  planted("neap/model/nn.hpp", "neap/memory/greedy.hpp", "arrow to the right");
  planted("neap/simulate/peak.hpp", "neap/report/table.hpp", "arrow to the right");
  planted("neap/plan/schedule.hpp", "neap/verify/plan.hpp", "arrow to the right");
  planted("neap/model/nn.hpp", "neap/train/step.hpp", "layers in a circle: model > train > model");
  planted("neap/memory/greedy.hpp", "neap/simulate/peak.hpp", "layers in a circle");
  planted("neap/ir/graph.hpp", "neap/ir/graph.hpp", "headers in a circle");
  planted("neap/verify/plan.hpp", "neap/backend/block.hpp", "verify knows core, ir and plan only");
  planted("neap/verify/plan.hpp", "neap/memory/greedy.hpp", "verify knows core, ir and plan only");
  planted("neap/ir/graph.hpp", "neap/neap.hpp", "does not include an umbrella");
  planted("neap/ir/graph.hpp", "neap/core/gone.hpp", "no such header");
  planted("neap/ir/graph.hpp", "\"id.hpp\"", "write <neap/...>");
  planted("neap/tools/misc.hpp", "vector", "no such layer");
  planted("neap/neap.hpp", "neap/import/json.hpp", "reaches the import layer");
  planted("neap/report/table.hpp", "neap/import/json.hpp", "reaches the import layer");
  planted("neap/report/table.hpp", "zlib.h", "for import only");
  planted("neap/backend/block.hpp", "thrust/sort.h", "neap/neap.hpp reaches Thrust");
  planted("neap/execute/run.hpp", "neap/cuda/launch.cuh", "no layer uses it");
  planted("neap/backend/block.hpp", "neap/cuda/launch.cuh", "no layer uses it");
  planted("neap/cuda/launch.cuh", "neap/report/table.hpp", "cuda uses all layers but report");
  planted("neap/cuda/launch.cuh", "neap/cuda.hpp", "does not include an umbrella");
  planted("neap/cuda/launch.cuh", "range/v3/core.hpp", "neap/cuda/launch.cuh reaches range-v3");
  planted("neap/core/id.hpp", "cuda_runtime_api.h", "neap/neap.hpp reaches CUDA's headers");
  planted("neap/core/id.hpp", "iostream", "writes to no stream");
  planted("neap/core/id.hpp", "range/v3/core.hpp", "neap/cuda.hpp reaches range-v3");
  planted("neap/backend/block.hpp", "range/v3/core.hpp", "neap/backend/block.hpp reaches range-v3");
  planted("neap/ir/operators/kernels/gelu.hpp", "range/v3/core.hpp",
          "neap/ir/operators/kernels/gelu.hpp reaches range-v3");
}
