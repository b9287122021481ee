// What neap needs is found: its own headers, and headers and libraries of a BLAS, Thrust, JSON and zlib.
#include <neap/backend/thrust_policy.hpp>
#include <neap/import/file.hpp>
#include <neap/import/json.hpp>

#include <cblas.h>

#include <cstdio>

int main(int, char** arguments) {  // this program is no JSON, and is refused
  auto const text = neap::io::read_file(arguments[0]);
  if (!text) return 1;
  auto const document = neap::io::parse_json(*text, arguments[0]);
  std::puts(document ? "JSON?" : document.message().c_str());
  float const x[] = {3, 4};
  return document || cblas_sdot(2, x, 1, x, 1) != 25;
}
