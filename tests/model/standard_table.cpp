// The table of standard operators (ir/standard_set.hpp): what its columns say of kernels is so.
#include <neap/ir/standard_operators.hpp>
#include <neap/model/kernels.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>

using namespace neap;

TEST_CASE("the kernels of the standard operators are where the table says") {
  std::string without, host_only;
  std::size_t steps = 0;
  for (std::size_t k = 0; k < op::standard_list::size; ++k) {
    auto const& f = *standard_operators::facets[k];
    CAPTURE(f.name);
    CHECK(f.standard_row == static_cast<int>(k));
    auto const column = detail::kernel_columns[k];
    CHECK((host_kernel(f) != nullptr) == (column != detail::kernel_column::none));
    if (column == detail::kernel_column::none) without += std::string(f.name) + " ";
    if (column == detail::kernel_column::host) host_only += std::string(f.name) + " ";
    auto const* step = op::detail::step_at(static_cast<int>(k));
    CHECK((step != nullptr) == (column == detail::kernel_column::step));
    if (step) CHECK(step->name == f.name);
    steps += step != nullptr;
  }
  CHECK(without == "opaque store load wait ");
  CHECK(host_only == "");  // all others run on GPUs, too
  CHECK(steps == op::detail::step_list::size);
}

TEST_CASE("names of standard operators, and what digests have for them, are their own") {
  std::set<std::string_view> names;
  std::set<std::uint64_t> digests;
  for (auto const* f : standard_operators::facets) {
    CHECK(names.insert(f->name).second);
    CHECK(digests.insert(f->name_digest).second);
  }
}
