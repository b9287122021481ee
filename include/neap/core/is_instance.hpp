// Whether a type is made of a template: is_instance<std::vector<int>, std::vector>.
#pragma once

namespace neap { inline namespace v0 { namespace detail {

template <class T, template <class...> class Of>
inline constexpr bool is_instance = false;
template <template <class...> class Of, class... Arguments>
inline constexpr bool is_instance<Of<Arguments...>, Of> = true;

}}}  // namespace neap::v0::detail
