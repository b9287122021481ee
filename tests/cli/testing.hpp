// Runs the built command line as a user does, and looks at what comes back.
#pragma once

#include "../support/files.hpp"
#include "../support/svg.hpp"

#include <neap/core/digest.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

namespace neap_cli_test {

using json = nlohmann::json;

using neap::testing::is_xml;
using neap::testing::read_bytes;
using neap::testing::scratch;
using neap::testing::write_bytes;

inline std::string unzipped(std::string const& path) {
  std::string text, block(1 << 16, '\0');
  gzFile file = ::gzopen(path.c_str(), "rb");
  for (int n; file && (n = ::gzread(file, block.data(), 1 << 16)) > 0;)
    text.append(block.data(), static_cast<std::size_t>(n));
  ::gzclose(file);
  return text;
}

struct answer {
  int code = -1;  // the exit status; 1000 + the signal that ended it
  std::string out, err;

  /// What is said of bad input: exit 2, nothing on standard output, one line.
  std::string refusal() const {
    CHECK(code == 2);
    CHECK(out == "");
    check_line();
    return err;
  }
  void check_line() const {
    CAPTURE(err);
    CHECK(err.starts_with("neap: "));
    CHECK(err.size() < 1000);
    CHECK(err.find('\n') == err.size() - 1);
  }
  json object() const {
    CAPTURE(err);
    REQUIRE(!out.empty());
    CHECK(out.find('\n') == out.size() - 1);
    return json::parse(out);
  }
};

/// Runs `neap` with arguments; `out_to` and `err_to` stand in for standard output and error, which then are not read.
/// `meanwhile(process)` is called while it runs.
template <class Meanwhile>
answer run_neap(std::vector<std::string> const& arguments, char const* out_to, char const* err_to,
                Meanwhile&& meanwhile) {
  scratch const at;
  std::string const out = out_to ? out_to : at / "out", err = err_to ? err_to : at / "err", program = NEAP_CLI;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, 0600);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (auto const& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  ::pid_t child = 0;
  REQUIRE(::posix_spawn(&child, program.c_str(), &files, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&files);
  meanwhile(child);
  int how = 0;
  while (::waitpid(child, &how, 0) < 0 && errno == EINTR) {}
  answer a;
  a.code = WIFEXITED(how) ? WEXITSTATUS(how) : 1000 + WTERMSIG(how);
  if (!out_to) a.out = read_bytes(out);
  if (!err_to) a.err = read_bytes(err);
  return a;
}
inline answer run_neap(std::vector<std::string> const& arguments, char const* out_to = nullptr) {
  return run_neap(arguments, out_to, nullptr, [](::pid_t) {});
}

/// The same with standard error on a terminal of `columns`.
inline answer run_neap_on_terminal(std::vector<std::string> const& arguments, unsigned short columns) {
  int const terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  std::string const name = ::ptsname(terminal);
  int const kept_open =
      ::open(name.c_str(), O_RDWR | O_NOCTTY);  // else what is written is lost when the last one closes
  ::winsize const size{25, columns, 0, 0};
  REQUIRE(::ioctl(kept_open, TIOCSWINSZ, &size) == 0);
  std::string seen;
  auto const read_some = [&](int max_ms) {
    ::pollfd p{terminal, POLLIN, 0};
    char block[4096];
    while (::poll(&p, 1, max_ms) > 0 && (p.revents & POLLIN)) {
      auto const n = ::read(terminal, block, sizeof block);
      if (n <= 0) break;
      seen.append(block, static_cast<std::size_t>(n));
    }
  };
  auto a = run_neap(arguments, nullptr, name.c_str(), [&](::pid_t child) {
    for (::siginfo_t ended{}; ended.si_pid == 0; read_some(10))
      if (::waitid(P_PID, static_cast<::id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 && errno != EINTR)
        break;
  });
  read_some(0);
  ::close(kept_open);
  ::close(terminal);
  a.err = seen;
  return a;
}

inline std::string graph_file(std::string const& name) {
  return std::string(NEAP_SOURCE_DIR) + "/examples/graphs/" + name + ".json.gz";
}

/// A plan file whose text was changed, with a checksum that fits again.
inline std::string sealed(std::string text) {
  text.resize(text.rfind("\"checksum\":\""));
  return text + "\"checksum\":\"" + neap::to_hex(neap::digest{}.mix(std::string_view(text))) + "\"}\n";
}

}  // namespace neap_cli_test
