// What including and compiling costs: one CSV row a case with the seconds that the compiler computes (user) and that the
// system spends for it, and its peak memory. The compilers are the arguments (default: the one that built this program).
//
//   - the umbrellas in an empty program, that of range-v3 beside them, and every header of a layer, with -fsyntax-only
//     (best of three);
//   - README's program at -O2 -march=native, with the library compiled apart and header-only, and the same program with an
//     operator of its own, apart;
//   - the parts of neap/src.hpp, which compile the library for a program, once.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct cost {
  double user = 1e30;  // seconds; negative: it does not compile
  double system = 0;
  double megabytes = 0;
};

cost run(std::string const& command) {
  auto const child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage u{};
  if (child < 0 || wait4(child, &status, 0, &u) != child || status != 0) return {-1, 0, 0};
  auto const s = [](timeval t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return {s(u.ru_utime), s(u.ru_stime), static_cast<double>(u.ru_maxrss) / 1024};
}

/// What compiling this text costs; the least of so many rounds.
cost compile(std::string const& compiler, std::string const& text, std::string const& options, int rounds) {
  auto const file = fs::temp_directory_path() / ("neap_include_cost_" + std::to_string(getpid()) + ".cpp");
  std::ofstream(file) << text;
  auto const command =
      "CCACHE_DISABLE=1 exec " + compiler + " @" NEAP_COMPILER_OPTIONS " " + options + " '" + file.string() + "'";
  cost least;
  for (int k = 0; k < rounds && least.user > 0; ++k) {
    auto const c = run(command);
    if (c.user < least.user) least = c;
  }
  fs::remove(file);
  return least;
}

std::string including(std::vector<std::string> const& headers) {
  std::string text;
  for (auto const& h : headers) text += "#include <" + h + ">\n";
  return text + "int main() {}\n";
}

std::vector<std::string> headers_of(fs::path const& root, std::string const& layer) {
  std::vector<std::string> found;
  for (auto const& entry : fs::recursive_directory_iterator(root / "neap" / layer))
    if (entry.path().extension() == ".hpp") found.push_back(fs::relative(entry.path(), root).generic_string());
  std::ranges::sort(found);
  return found;
}

/// The program on README's first page; empty if there is none.
std::string readme_program(fs::path const& readme) {
  std::ifstream in(readme);
  std::string const text{std::istreambuf_iterator<char>(in), {}};
  auto const at = text.find("```cpp\n");
  auto const end = text.find("\n```", at + 1);
  return at == text.npos || end == text.npos ? std::string() : text.substr(at + 7, end - at - 6);
}

/// The same with an operator of one's own in place of gelu; empty if the program has changed.
std::string with_own_operator(std::string program) {
  std::string const used = "neap::gelu(up(norm(x)))", before = "struct block {";
  auto const from = program.find(before);
  if (from == program.npos) return {};
  program.insert(from, R"(struct swish : neap::op::unary<swish> {
  static constexpr std::string_view name = "swish";
  template <class T>
  NEAP_HD T operator()(T x) const { return x * neap::math::sigmoid(x); }
  template <class T>
  NEAP_HD T slope(T x) const {
    T const s = neap::math::sigmoid(x);
    return s + x * s * (T(1) - s);
  }
};

)");
  auto const at = program.find(used);
  if (at == program.npos) return {};
  return program.replace(at, used.size(), "neap::apply(swish{}, {up(norm(x))})");
}

}  // namespace

int main(int argc, char** argv) {
  fs::path const root = fs::path(NEAP_SOURCE_DIR) / "include";
  std::vector<std::string> compilers(argv + 1, argv + argc);
  if (compilers.empty()) compilers.emplace_back(NEAP_CXX);
  for (auto const& c : compilers)
    if (c.starts_with('-')) return std::fprintf(stderr, "usage: bench_include_cost [COMPILER...]\n"), 2;
  auto const program = readme_program(root / ".." / "README.md");
  auto const own = with_own_operator(program);
  if (own.empty()) return std::fprintf(stderr, "bench_include_cost: README's program is not the one known here\n"), 2;

  bool good = true;
  std::printf("compiler,case,user_s,system_s,peak_mb\n");
  for (auto const& compiler : compilers) {
    auto const row = [&](std::string const& what, cost const& c) {
      good = good && c.user > 0;
      std::printf("%s,%s,%.2f,%.2f,%.0f\n", compiler.c_str(), what.c_str(), c.user, c.system, c.megabytes);
      std::fflush(stdout);
    };
    std::string const look = "-fsyntax-only", make = "-O2 -march=native -c -o /dev/null ";
    std::string const apart = make + "-DNEAP_SEPARATE_COMPILATION";
    row("empty program", compile(compiler, including({}), look, 3));
    row("range/v3/all.hpp", compile(compiler, including({"range/v3/all.hpp"}), look, 3));
    row("neap.hpp", compile(compiler, including({"neap/neap.hpp"}), look, 3));
    row("neap.hpp apart", compile(compiler, including({"neap/neap.hpp"}), look + " -DNEAP_SEPARATE_COMPILATION", 3));
    row("planner.hpp", compile(compiler, including({"neap/planner.hpp"}), look, 3));
    row("planner.hpp apart",
        compile(compiler, including({"neap/planner.hpp"}), look + " -DNEAP_SEPARATE_COMPILATION", 3));
    row("README's program apart", compile(compiler, program, apart, 1));
    row("README's program with an own operator apart", compile(compiler, own, apart, 1));
    row("README's program header-only", compile(compiler, program, make, 1));
    for (auto const* part : {"src/model", "src/search", "src/execution", "src/verify", "src/blocks", "src/operators",
                             "src/kernels", "src/image_kernels", "src/import"})
      row(std::string("neap/") + part + ".hpp",
          compile(compiler, including({std::string("neap/") + part + ".hpp"}), apart, 1));
    for (auto const* layer : {"core", "backend", "ir", "plan", "model", "train", "import", "schedule", "simulate",
                              "memory", "mutate", "optimize", "execute", "report", "verify"})
      row(std::string("every header of ") + layer, compile(compiler, including(headers_of(root, layer)), look, 3));
  }
  return good ? 0 : 1;
}
