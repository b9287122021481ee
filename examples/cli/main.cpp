// neap: the planner for people and for engines in other languages. Errors go to standard error as one line, exit 2 for bad
// input; exit 1: no plan fits.
#include "common.hpp"

#include <neap/core/version.hpp>

#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace cli {

/// How many characters are to be changed, put in or taken out to make one word of another.
std::size_t edits(std::string const& a, std::string const& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto corner = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      auto const above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, corner + (a[i] == b[j] ? 0 : 1)});
      corner = above;
    }
  }
  return row.back();
}

/// What is said of arguments that a command does not take: the first unknown option, and the one that may be meant.
std::string unexpected(CLI::App const& command, int argc, char** argv, std::string otherwise) {
  for (int i = 1; i < argc; ++i) {
    std::string const name = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (name.size() < 3 || !name.starts_with("--") || command.get_option_no_throw(name)) continue;
    std::string nearest;
    std::size_t least = 4;
    for (auto const* o : command.get_options())
      for (auto const& known : o->get_lnames())
        if (auto const n = edits(name, "--" + known); n < least) least = n, nearest = "--" + known;
    return "unknown option " + name + (nearest.empty() ? "; --help lists them" : "; did you mean " + nearest + "?");
  }
  return otherwise;
}

}  // namespace cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);
  CLI::App app{"Plans the memory of neural-network training: order, recomputation, swapping, addresses."};
  app.name("neap");
  app.set_version_flag("--version", std::to_string(NEAP_VERSION_MAJOR) + "." + std::to_string(NEAP_VERSION_MINOR) +
                                        "." + std::to_string(NEAP_VERSION_PATCH));
  app.require_subcommand(1);
  int exit = cli::fine;
  cli::add_plan(app, exit);
  cli::add_verify(app, exit);
  cli::add_allocate(app, exit);
  cli::add_checkpoint(app, exit);
  cli::add_show(app, exit);
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& e) {  // --help, --version
    return app.exit(e);
  } catch (CLI::RequiredError const& e) {
    auto const parsed = app.get_subcommands();
    std::string commands;
    for (auto const* s : app.get_subcommands(nullptr)) commands += (commands.empty() ? ": " : ", ") + s->get_name();
    if (!parsed.empty()) cli::complain(cli::unexpected(*parsed[0], argc, argv, e.what()));
    else if (argc < 2 || argv[1][0] == '-') cli::complain("a command is required" + commands);
    else cli::complain("unknown command '" + std::string(argv[1]) + "'; neap --help lists them");
    return cli::bad_input;
  } catch (CLI::ExtrasError const& e) {
    auto const parsed = app.get_subcommands();
    cli::complain(cli::unexpected(parsed.empty() ? app : *parsed[0], argc, argv, e.what()));
    return cli::bad_input;
  } catch (CLI::ParseError const& e) {
    cli::complain(e.what());
    return cli::bad_input;
  } catch (cli::refused const& e) {
    cli::complain(e.message);
    return cli::bad_input;
  } catch (std::bad_alloc const&) {
    cli::complain("not enough memory");
    return cli::bad_input;
  } catch (std::exception const& e) {
    cli::complain(e.what());
    return cli::bad_input;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    cli::complain("standard output cannot be written");
    return cli::bad_input;
  }
  return exit;
}
