// A policy of the search as text, and its numbers by name: "segments.share" is policy.segments.share, "dives.on" a switch,
// "offloads.leads.0" the first of several.
//
//   search_policy policy;
//   set_number(policy, "segments.share", 0.5);
//   std::cout << to_string(policy);
#pragma once

#include <neap/optimize/search_policy.hpp>

#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct policy_number {
  std::string name;
  double value = 0;  // of a switch 0 or 1
};

/// All numbers and switches of a policy, in the order of the struct.
std::vector<policy_number> numbers_of(search_policy const& policy);

/// A line for each: "segments.share = 0.25".
std::string to_string(search_policy const& policy);

/// Sets a number, or a switch with 0 and 1. Throws neap::error if no number has that name, or if it does not take the value.
void set_number(search_policy& policy, std::string_view name, double value);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/policy_text.ipp>
#endif
