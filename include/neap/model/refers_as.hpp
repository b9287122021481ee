// How the library's modules name their parts without a tuple of them in every program that only includes their headers.
#pragma once

#include <type_traits>

namespace neap { inline namespace v0 {

/// What a Module& can refer to. A friend that names a module's parts (model/fields.hpp) takes it, as a template,
///     friend auto neap_fields(refers_as<my_module> auto& self) { return std::tie(self.up, self.down); }
/// so that the tuple is compiled where such a module is looked into.
template <class T, class Module>
concept refers_as = !std::is_const_v<T> && std::is_base_of_v<Module, T>;

}}  // namespace neap::v0
