// The bodies of <neap/optimize/policy_text.hpp>.
#pragma once

#include <neap/optimize/policy_text.hpp>

#include <neap/core/error.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/model/fields.hpp>

namespace neap { inline namespace v0 {

namespace detail {

/// Calls visit(name, number) for each number of a group.
template <class Group, class Visit>
void visit_numbers(std::string const& prefix, Group& group, Visit&& visit) {
  using type = std::remove_const_t<Group>;
  auto const one = [&](std::string const& name, auto& x) {
    using field = std::remove_cvref_t<decltype(x)>;
    if constexpr (std::is_arithmetic_v<field>) {
      visit(name, x);
    } else if constexpr (is_container<field>::value) {
      for (std::size_t k = 0; k < x.size(); ++k) visit(name + '.' + std::to_string(k), x[k]);
    } else {
      visit_numbers(name + '.', x, visit);
    }
  };
  auto const members = tie_members(group);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (one(prefix + std::string(member_name<type, I>()), std::get<I>(members)), ...);
  }(std::make_index_sequence<std::tuple_size_v<decltype(members)>>{});
}

inline std::string policy_number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  double rounded = 0;
  char shorter[40];
  std::snprintf(shorter, sizeof shorter, "%g", value);
  std::sscanf(shorter, "%lf", &rounded);
  return rounded == value ? shorter : text;
}

}  // namespace detail

NEAP_FUNC std::vector<policy_number> numbers_of(search_policy const& policy) {
  std::vector<policy_number> all;
  detail::visit_numbers("", policy, [&](std::string const& name, auto const& x) {
    all.push_back({name, static_cast<double>(x)});
  });
  return all;
}

NEAP_FUNC std::string to_string(search_policy const& policy) {
  std::string text;
  for (auto const& n : numbers_of(policy)) text += n.name + " = " + detail::policy_number_text(n.value) + '\n';
  return text;
}

NEAP_FUNC void set_number(search_policy& policy, std::string_view name, double value) {
  bool found = false;
  detail::visit_numbers("", policy, [&](std::string const& n, auto& x) {
    if (n != name) return;
    found = true;
    using type = std::remove_cvref_t<decltype(x)>;
    constexpr double exact = 9007199254740992.0;  // up to here doubles hold all whole numbers
    bool takes = value >= 0 && value <= exact;
    if constexpr (std::is_same_v<type, bool>) takes = value == 0 || value == 1;
    else if constexpr (std::is_integral_v<type>)
      takes = takes && value <= static_cast<double>(std::numeric_limits<type>::max()) &&
              value == static_cast<double>(static_cast<type>(value));
    if (!takes) throw_error({"search_policy: ", name, " does not take ", detail::policy_number_text(value)});
    x = static_cast<type>(value);
  });
  if (!found) throw_error({"search_policy: there is no number ", name});
}

}}  // namespace neap::v0
