// Looking into models when compiling: a model is a plain struct, and its parts are found by structured bindings, so that
// a user registers nothing. What is found, in the order it is declared:
//   - members of aggregates, at most 32 each, recursively; their names by what the compiler calls them
//   - members that a class with constructors or private parts names through a friend:
//         friend auto neap_fields(my_module& self) { return std::tie(self.up, self.down); }
//     with names, if it likes:  static constexpr std::array neap_names{"up", "down"};
//   - elements of vectors, arrays, tuples, pairs, optionals, maps by string, and unique_ptrs
// Plain values (numbers, strings, std::vector<bool>, trivially copyable classes, functions) hold no tensors and are
// passed over; they may be const. What cannot be looked into, because it could hide a weight, is refused when compiling:
// C arrays, base classes, references, std::function...
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

// ---------------------------------------------------------------------------------------------- counting members

struct any_value {
  template <class T>
  operator T() const {  // never called; clang wants a body where a converting constructor of T mentions it
    __builtin_unreachable();
  }
};
/// Converts to proper bases of T only.
template <class T>
struct any_base {
  template <class B>
    requires(std::is_base_of_v<B, T> && !std::is_same_v<B, T>)
  operator B() const;
};

/// Converts to references, which any_value does not.
struct any_object {
  template <class T>
  operator T&() const;
};

template <std::size_t>
using any_at = any_value;

template <class T, std::size_t... Before, std::size_t... After>
constexpr bool takes(std::index_sequence<Before...>, std::index_sequence<After...>) {
  return requires { T{any_at<Before>{}..., {}, any_at<After>{}...}; };
}
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{any_at<I>{}...}; };
}

inline constexpr std::size_t max_fields = 32;

template <class T, std::size_t N>
inline constexpr bool takes_initialisers = takes<T>(std::make_index_sequence<N>{});

/// The most initialisers that T takes, where it takes `Known`: the members behind those need none, so the numbers that it
/// takes have no gaps. Steps double, and are halved after the first that is too long.
template <class T, std::size_t Known, std::size_t Step = 1, bool Doubles = true>
constexpr std::size_t max_initialisers() {
  if constexpr (Known + Step <= max_fields + 1 && takes_initialisers<T, Known + Step>)
    return max_initialisers < T, Known + Step, Doubles ? 2 * Step : Step, Doubles > ();
  else if constexpr (Step > 1) return max_initialisers<T, Known, Step / 2, false>();
  else return Known;
}
/// How many initialisers an aggregate takes; more than max_fields: max_fields + 1. Members without a default need one:
/// the least number that is taken is looked for from 0 on.
template <class T, std::size_t N = 0>
constexpr std::size_t initialiser_count() {
  if constexpr (N > max_fields + 1) return 0;
  else if constexpr (takes_initialisers<T, N>) return max_initialisers<T, N>();
  else return initialiser_count<T, N + 1>();
}

template <class T, std::size_t... I>
constexpr bool takes_object_after(std::index_sequence<I...>) {
  return requires { T{any_at<I>{}..., any_object{}}; };
}
/// Whether a member is a reference (not to const).
template <class T>
constexpr bool has_reference() {
  if constexpr (!std::is_aggregate_v<T> || std::is_empty_v<T>) {
    return false;
  } else {
    constexpr std::make_index_sequence<initialiser_count<T>()> counted;
    return !takes<T>(counted) || takes_object_after<T>(counted);
  }
}
/// Whether initialiser_count has counted all members: it stops before a reference, and before what cannot be moved.
template <class T>
constexpr bool counts_members() {
  constexpr auto count = initialiser_count<T>();
  if constexpr (count > max_fields) return true;
  else
    return count > 0 && !has_reference<T>() &&
           !takes<T>(std::make_index_sequence<count>{}, std::make_index_sequence<0>{});
}

template <class T>
constexpr bool has_base() {
  return requires { T{any_base<T>{}}; };
}

/// Whether member `At`, counted in initialisers, is a C array: one pair of braces takes the place of several.
template <class T, std::size_t Count, std::size_t At, std::size_t Fewer = 0>
constexpr bool is_c_array() {
  if constexpr (At + 1 + Fewer > Count) return false;
  else if constexpr (takes<T>(std::make_index_sequence<At>{}, std::make_index_sequence<Count - At - 1 - Fewer>{}))
    return Fewer > 0;
  else return is_c_array<T, Count, At, Fewer + 1>();
}
template <class T, std::size_t... I>
constexpr bool any_c_array(std::index_sequence<I...>) {
  return (is_c_array<T, sizeof...(I), I>() || ...);
}
template <class T>
constexpr bool has_c_array() {
  return any_c_array<T>(std::make_index_sequence<initialiser_count<T>()>{});
}

// ---------------------------------------------------------------------------------------------- reaching members

// clang-format off
#define NEAP_BIND(n, ...) else if constexpr (count == n) { auto& [__VA_ARGS__] = object; return std::tie(__VA_ARGS__); }
/// References to the members of an aggregate, in order.
template <class T>
constexpr auto tie_members(T& object) {
  constexpr std::size_t count = initialiser_count<std::remove_const_t<T>>();
  if constexpr (count == 0) return std::tuple<>{};
  NEAP_BIND(1, a) NEAP_BIND(2, a, b) NEAP_BIND(3, a, b, c) NEAP_BIND(4, a, b, c, d) NEAP_BIND(5, a, b, c, d, e)
  NEAP_BIND(6, a, b, c, d, e, f) NEAP_BIND(7, a, b, c, d, e, f, g) NEAP_BIND(8, a, b, c, d, e, f, g, h)
  NEAP_BIND(9, a, b, c, d, e, f, g, h, i) NEAP_BIND(10, a, b, c, d, e, f, g, h, i, j)
  NEAP_BIND(11, a, b, c, d, e, f, g, h, i, j, k) NEAP_BIND(12, a, b, c, d, e, f, g, h, i, j, k, l)
  NEAP_BIND(13, a, b, c, d, e, f, g, h, i, j, k, l, m) NEAP_BIND(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  NEAP_BIND(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  NEAP_BIND(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  NEAP_BIND(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  NEAP_BIND(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  NEAP_BIND(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  NEAP_BIND(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  NEAP_BIND(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  NEAP_BIND(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  NEAP_BIND(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  NEAP_BIND(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  NEAP_BIND(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  NEAP_BIND(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
  NEAP_BIND(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A)
  NEAP_BIND(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B)
  NEAP_BIND(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C)
  NEAP_BIND(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D)
  NEAP_BIND(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E)
  NEAP_BIND(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F)
}
#undef NEAP_BIND
// clang-format on

// ---------------------------------------------------------------------------------------------- their names

/// An object that is never made: the addresses of its members are constants all the same.
template <class T>
struct never_made {
  T value;
};
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
template <class T>
extern never_made<T> const phantom;

template <class P>
struct member_pointer {  // clang takes pointers to members of objects as template arguments only inside of a class
  P pointer;
};

template <class T, auto P>
constexpr std::string_view member_name_text() {
  return __PRETTY_FUNCTION__;
}
/// "up" for the member up: what stands last in the pointer's description, between the last '.' or ':' and the end.
constexpr std::string_view last_word(std::string_view text) {
  std::size_t to = text.size();
  auto const is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  while (to > 0 && !is_word(text[to - 1])) --to;
  std::size_t from = to;
  while (from > 0 && is_word(text[from - 1])) --from;
  return text.substr(from, to - from);
}
template <class T, std::size_t I>
consteval std::string_view member_name() {
  constexpr auto* p = std::addressof(std::get<I>(tie_members(phantom<T>.value)));  // nvcc refuses the operator &
  constexpr auto text = member_name_text<T, member_pointer<decltype(p)>{p}>();
  // g++: "... P = member_pointer<...>{(& phantom<T>.never_made<T>::value.T::up)}; std::string_view = ..."
  constexpr auto end = text.rfind(")}");
  return last_word(end == text.npos ? text : text.substr(0, end));
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// ---------------------------------------------------------------------------------------------- kinds of members

template <class T>
concept tells_fields = requires(T& x) { neap_fields(x); };
template <class T>
constexpr bool tells_references() {
  using fields = decltype(neap_fields(std::declval<T&>()));
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (std::is_reference_v<std::tuple_element_t<I, fields>> && ...);
  }(std::make_index_sequence<std::tuple_size_v<fields>>{});
}
template <class T>
concept tells_names = requires { T::neap_names.size(); };

template <class T>
struct is_container : std::false_type {};
template <class T, class A>
struct is_container<std::vector<T, A>> : std::bool_constant<!std::is_same_v<T, bool>> {};
template <class T, std::size_t N>
struct is_container<std::array<T, N>> : std::true_type {};
template <class T>
struct is_bits : std::false_type {};
template <class A>
struct is_bits<std::vector<bool, A>> : std::true_type {};
template <class T>
struct is_nullable : std::false_type {};
template <class T>
struct is_nullable<std::optional<T>> : std::true_type {};
template <class T, class D>
struct is_nullable<std::unique_ptr<T, D>> : std::true_type {};
template <class T>
struct is_tuple : std::false_type {};
template <class... T>
struct is_tuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct is_tuple<std::pair<A, B>> : std::true_type {};
/// std::map<std::string, T>, or another map that has its keys in order.
template <class T>
concept string_map = std::is_same_v<typename T::key_type, std::string> &&
                     requires(T& map, std::string const& key, typename T::key_compare less) {
                       { map[key] } -> std::same_as<typename T::mapped_type&>;
                     };

/// Holds no tensor and nothing that could: numbers, strings, functions, trivially copyable classes.
template <class T>
concept plain_value = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                      std::is_same_v<T, std::string_view> || std::is_empty_v<T> || is_bits<T>::value ||
                      (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) ||
                      (std::is_class_v<T> && std::is_trivially_copyable_v<T> && !has_reference<T>());

// ---------------------------------------------------------------------------------------------- what is refused

template <class T>
struct is_shared : std::false_type {};
template <class T>
struct is_shared<std::shared_ptr<T>> : std::true_type {};
template <class T>
struct is_shared<std::weak_ptr<T>> : std::true_type {};
template <class T>
struct refers_to {
  using type = void;
};
template <class T>
struct refers_to<T*> {
  using type = T;
};
template <class T>
struct refers_to<std::reference_wrapper<T>> {
  using type = T;
};
template <class T, std::size_t N>
struct refers_to<std::span<T, N>> {
  using type = T;
};

/// Whether a plain value refers to objects that could hold weights: a pointer, a span or a reference to them, or a struct
/// with such a member. What is only declared so far counts.
template <class T>
constexpr bool hides_modules() {
  using to = std::remove_const_t<typename refers_to<T>::type>;
  if constexpr (std::is_class_v<to>) {
    if constexpr (requires { sizeof(to); }) return !plain_value<to> || hides_modules<to>();
    else return true;
  } else if constexpr (std::is_void_v<to> && std::is_class_v<T> && std::is_aggregate_v<T> && !std::is_empty_v<T>) {
    if constexpr (!has_base<T>() && !has_c_array<T>() && counts_members<T>() && initialiser_count<T>() <= max_fields)
      return []<class... Member>(std::tuple<Member...> const*) {
        return (hides_modules<std::remove_cvref_t<Member>>() || ...);
      }(static_cast<decltype(tie_members(std::declval<T&>()))*>(nullptr));
    else return false;
  } else {
    return false;
  }
}

// Called for what is refused, so that the compiler's first line has the type and the remedy in a few words; a sentence
// follows.
template <class Type>
constexpr void a_model_holds_no_pointers_to_modules_so_hold_them_by_value_or_in_unique_ptr() = delete;
template <class Type>
constexpr void a_model_holds_modules_in_vector_array_tuple_optional_unique_ptr_or_map_of_strings() = delete;
template <class Type>
constexpr void a_function_hides_what_it_captures_so_hold_the_module_itself() = delete;
template <class Type>
constexpr void this_class_is_no_aggregate_drop_its_constructor_or_add_neap_fields() = delete;

template <class T>
concept any_range = requires(T& x) {
  x.begin();
  x.end();
} || requires { typename T::container_type; };  // std::queue, std::stack
template <class T>
concept erased_function = requires(T& x) { x.target_type(); };  // std::function
template <class T>
constexpr bool is_pointer_like = std::is_pointer_v<T> || is_shared<T>::value || hides_modules<T>();

/// The compile-time error for a T whose members cannot be enumerated.
template <class T>
constexpr void refuse_part() {
  if constexpr (is_pointer_like<T>) a_model_holds_no_pointers_to_modules_so_hold_them_by_value_or_in_unique_ptr<T>();
  else if constexpr (any_range<T>)
    a_model_holds_modules_in_vector_array_tuple_optional_unique_ptr_or_map_of_strings<T>();
  else if constexpr (erased_function<T>) a_function_hides_what_it_captures_so_hold_the_module_itself<T>();
  else this_class_is_no_aggregate_drop_its_constructor_or_add_neap_fields<T>();
  static_assert(
      !is_pointer_like<T>,
      "neap: a model owns its modules: a pointer, reference or span to a module cannot be looked into. Hold the "
      "module by value, in std::optional or in std::unique_ptr; weights are tied by parameter::share()");
  static_assert(is_pointer_like<T> || !any_range<T>,
                "neap: this container cannot be looked into: hold modules in std::vector, std::array, std::tuple, "
                "std::optional, std::unique_ptr or std::map<std::string, ...>");
  static_assert(!erased_function<T>,
                "neap: a std::function cannot be looked into, and could hide a weight: hold the module itself, and "
                "write functions without weights into operator()");
  static_assert(
      is_pointer_like<T> || any_range<T> || erased_function<T> || std::is_aggregate_v<T>,
      "neap: this member cannot be looked into, and could hide a weight: make it a plain struct (no constructor "
      "of its own, no private or virtual members: give members their values where they are declared), or add "
      "friend auto neap_fields(my_module& self) { return std::tie(self.member, ...); }");
}

std::string join_path(std::string const& path, std::string_view name);
std::string join_path(std::string const& path, std::size_t number);

}  // namespace detail

namespace detail {
/// An address for each type: two objects at one address (a struct and its first member) differ in it.
template <class T>
inline constexpr char type_address = 0;
}  // namespace detail

/// Calls visit(leaf, path) for each part of `object` whose type meets Leaf<T>::value, in the order of declaration, with
/// its path ("layers.3.up.weight"); and before it visit.enter(address, type, path), if the visitor has that, for each object
/// on the way, and visit.lack(path, what) where a pointer is null or a container empty. Fails to compile, with a
/// sentence, where a type cannot be looked into.
template <template <class> class Leaf, class T, class F>
void for_each_leaf(T& object, F& visit, std::string const& path = {}) {
  using part = std::remove_const_t<T>;
  static_assert(
      !std::is_const_v<T> || detail::plain_value<part> || !(Leaf<part>::value || detail::tells_fields<part>),
      "neap: a model is looked into to be trained: pass it as a non-const object, without const members but plain values");
  if constexpr (!Leaf<part>::value && std::is_class_v<part> && requires { visit.enter(&object, &object, path); })
    visit.enter(static_cast<void const*>(&object), static_cast<void const*>(&detail::type_address<part>), path);
  if constexpr (Leaf<part>::value) {
    visit(object, path);
  } else if constexpr (detail::is_container<part>::value) {
    std::size_t i = 0;
    for (auto& x : object) for_each_leaf<Leaf>(x, visit, detail::join_path(path, i++));
    if constexpr (requires { visit.lack(path, ""); })
      if (i == 0) visit.lack(path, " is empty");
  } else if constexpr (detail::is_nullable<part>::value) {
    if (object) for_each_leaf<Leaf>(*object, visit, path);
    else if constexpr (requires { visit.lack(path, ""); }) visit.lack(path, " is null");
  } else if constexpr (detail::string_map<part>) {
    for (auto& [name, x] : object) for_each_leaf<Leaf>(x, visit, detail::join_path(path, name));
  } else if constexpr (detail::is_tuple<part>::value) {
    std::apply(
        [&](auto&... x) {
          std::size_t i = 0;
          (for_each_leaf<Leaf>(x, visit, detail::join_path(path, i++)), ...);
        },
        object);
  } else if constexpr (detail::tells_fields<part>) {
    static_assert(detail::tells_references<T>(),
                  "neap: neap_fields must give references to the parts, not copies: return std::tie(self.member, ...)");
    if constexpr (detail::tells_names<T>)
      static_assert(T::neap_names.size() == std::tuple_size_v<decltype(neap_fields(object))>,
                    "neap: neap_names must have one name for each part that neap_fields lists, in the same order");
    std::apply(
        [&](auto&... x) {
          std::size_t i = 0;
          [[maybe_unused]] auto const name = [&i]() -> std::string {
            if constexpr (detail::tells_names<T>) return std::string(T::neap_names[i++]);
            else return std::to_string(i++);
          };
          (for_each_leaf<Leaf>(x, visit, detail::join_path(path, name())), ...);
        },
        neap_fields(object));
  } else if constexpr (std::is_array_v<T>) {
    static_assert(!std::is_array_v<T>, "neap: a model cannot hold a C array: use std::array");
  } else if constexpr (detail::plain_value<part> && !detail::hides_modules<part>()) {
    return;
  } else if constexpr (std::is_aggregate_v<T>) {
    static_assert(!detail::has_base<part>(),
                  "neap: a model that is a struct with a base class cannot be looked into: add "
                  "friend auto neap_fields(my_module& self) { return std::tie(self.member, ...); }");
    static_assert(detail::has_base<part>() || !detail::has_c_array<part>(),
                  "neap: a model cannot hold a C array: use std::array");
    static_assert(detail::initialiser_count<part>() <= detail::max_fields,
                  "neap: a struct of more than 32 members cannot be looked into: group them, or add "
                  "friend auto neap_fields(my_module& self) { return std::tie(self.member, ...); }");
    static_assert(detail::has_base<part>() || detail::has_c_array<part>() || detail::counts_members<part>(),
                  "neap: a struct with a member that is a reference, or that cannot be moved, cannot be looked into: "
                  "hold it by value, or add "
                  "friend auto neap_fields(my_module& self) { return std::tie(self.member, ...); }");
    if constexpr (!detail::has_base<part>() && !detail::has_c_array<part>() && detail::counts_members<part>() &&
                  detail::initialiser_count<part>() <= detail::max_fields) {
      auto members = detail::tie_members(object);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (for_each_leaf<Leaf>(std::get<I>(members), visit, detail::join_path(path, detail::member_name<part, I>())),
         ...);
      }(std::make_index_sequence<std::tuple_size_v<decltype(members)>>{});
    }
  } else {
    detail::refuse_part<part>();
  }
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/fields.ipp>
#endif
