#include <neap/import/graph_file.hpp>

#include <cstdio>

int main(int, char** arguments) {  // this program is no graph, and is refused
  auto const g = neap::io::read_graph(arguments[0]);
  std::puts(g ? "a graph?" : g.message().c_str());
  return g ? 1 : 0;
}
