// What #include costs: CPU seconds of `-fsyntax-only` for an empty program with neap.hpp, and for one with every header
// of a layer. One CSV row per compiler; the compilers are the arguments (default: the one that built this program).
// For comparison, the same with nothing included is the column `empty`. Best of three.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

double child_seconds() {
  rusage u{};
  getrusage(RUSAGE_CHILDREN, &u);
  auto const s = [](timeval t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return s(u.ru_utime) + s(u.ru_stime);
}

/// CPU seconds to parse a program with these includes; negative if it does not compile.
double cost(std::string const& compiler, std::vector<std::string> const& includes) {
  auto const file = fs::temp_directory_path() / ("neap_include_cost_" + std::to_string(std::rand()) + ".cpp");
  {
    std::ofstream out(file);
    for (auto const& i : includes) out << "#include <" << i << ">\n";
    out << "int main() {}\n";
  }
  auto const command = compiler + " @" NEAP_COMPILER_OPTIONS " -fsyntax-only " + file.string();
  double best = 1e30;
  for (int round = 0; round < 3 && best > 0; ++round) {
    auto const before = child_seconds();
    best = std::system(command.c_str()) == 0 ? std::min(best, child_seconds() - before) : -1;
  }
  fs::remove(file);
  return best;
}

std::vector<std::string> headers_of(fs::path const& root, std::string const& layer) {
  std::vector<std::string> found;
  for (auto const& entry : fs::recursive_directory_iterator(root / "neap" / layer))
    if (entry.path().extension() == ".hpp") found.push_back(fs::relative(entry.path(), root).generic_string());
  std::ranges::sort(found);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  fs::path const root = fs::path(NEAP_SOURCE_DIR) / "include";
  std::vector<std::string> compilers(argv + 1, argv + argc);
  if (compilers.empty()) compilers.emplace_back(NEAP_CXX);
  for (auto const& c : compilers)
    if (c.starts_with('-')) return std::fprintf(stderr, "usage: bench_include_cost [COMPILER...]\n"), 2;

  std::vector<std::string> layers;
  for (auto const* layer : {"core", "backend", "ir", "plan", "model", "capture", "train", "block", "import", "schedule",
                            "simulate", "memory", "solve", "mutate", "optimize", "execute", "report", "verify"})
    if (fs::exists(root / "neap" / layer)) layers.emplace_back(layer);

  bool good = true;
  std::printf("compiler,empty,neap.hpp");
  for (auto const& layer : layers) std::printf(",%s", layer.c_str());
  std::printf("\n");
  for (auto const& compiler : compilers) {
    auto const umbrella = cost(compiler, {"neap/neap.hpp"});
    good = good && umbrella > 0;
    std::printf("%s,%.2f,%.2f", compiler.c_str(), cost(compiler, {}), umbrella);
    for (auto const& layer : layers) std::printf(",%.2f", cost(compiler, headers_of(root, layer)));
    std::printf("\n");
  }
  return good ? 0 : 1;
}
