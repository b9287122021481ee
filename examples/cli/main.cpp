// neap: the planner for people and for engines in other languages. Errors go to standard error as one line, exit 2 for bad
// input; exit 1: no plan fits.
#include "common.hpp"

#include <neap/core/version.hpp>

#include <csignal>
#include <exception>
#include <new>
#include <string>

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
    bool const names_none = argc < 2 || argv[1][0] == '-' || !app.get_subcommands().empty();
    cli::complain(names_none ? std::string(e.what())
                             : "unknown command '" + std::string(argv[1]) + "'; neap --help lists them");
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
