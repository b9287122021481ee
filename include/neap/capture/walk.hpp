// The parts of an object that decide what a function of it computes, in the order of declaration: tensors, tracked
// scalars, plain values, and the structure between them (lengths, keys, what is there). It looks into what
// model/fields.hpp looks into, and refuses the same when compiling; and pointers, references and views, behind which
// something could change unseen. Of a class with neap_fields the bytes of other members count as plain values too: what
// such members point to does not. Where they follow from the listed ones, the class says so by a member
// static constexpr bool neap_rest_is_derived = true.
#pragma once

#include <neap/capture/state.hpp>
#include <neap/capture/tracked_base.hpp>
#include <neap/model/fields.hpp>
#include <neap/model/parameter.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

namespace neap { inline namespace v0 { namespace detail {

/// What a walk meets. A visitor passes over what it does not override.
class part_visitor {
 public:
  part_visitor() = default;
  part_visitor(part_visitor const&) = delete;
  part_visitor& operator=(part_visitor const&) = delete;
  virtual ~part_visitor() = default;
  virtual void visit(tensor&) {}
  /// A tracked scalar: its address, its value, and the symbol of a sym (of a state: null).
  virtual void scalar(void* /*address*/, void* /*value*/, std::size_t /*bytes*/, symbol_id*) {}
  virtual void plain(void* /*value*/, std::size_t /*bytes*/) {}
  virtual void text(std::string&) {}
  /// A number of the structure, and a key.
  virtual void structure(std::uint64_t) {}
  virtual void structure(std::string_view) {}
  /// Bytes of a class with neap_fields that lie in none of the listed parts.
  virtual void unlisted(unsigned char const* /*first*/, std::size_t) {}
  /// The parts until leave() are of the member of this name, or the element of this number.
  virtual void enter(std::string_view, std::size_t) {}
  virtual void leave() {}
  /// The parts that follow are of a container that may be changed: it may be that of another argument, even without parts.
  virtual void container(void const*) {}
  /// A tracked container: two tracked scalars, where it is and which content it has.
  virtual void tracked(tracked_base& x) {
    scalar(&x.self(), &x.self(), sizeof x.self(), nullptr);
    scalar(&x.version(), &x.version(), sizeof x.version(), nullptr);
  }
};

template <class T>
struct is_variant : std::false_type {};
template <class... T>
struct is_variant<std::variant<T...>> : std::true_type {};
template <class T>
struct is_state : std::false_type {};
template <class T>
struct is_state<state<T>> : std::true_type {};
template <class T>
struct is_sym : std::false_type {};
template <class T>
struct is_sym<sym<T>> : std::true_type {};
/// A duration or a point in time of the standard library: one number.
template <class T>
concept time_value = std::is_trivially_copyable_v<T> && requires {
  typename T::rep;
  typename T::period;
} && std::is_arithmetic_v<typename T::rep> && sizeof(T) == sizeof(typename T::rep);

// V is a part_visitor, or a class with its functions, for which the walk is compiled. Such a class may pass over parts,
// and compare where they are: passes(x) for each part, located(&x) for parts that lie outside of the object around them.

template <class T, class V>
void walk_parts(T& x, V& v);

template <class T, class Fields, class V>
void walk_remainder(T& x, Fields const& fields, V& v);

template <class T, class V>
void walk_part(T& x, V& v, std::string_view name, std::size_t number) {
  v.enter(name, number);
  walk_parts(x, v);
  v.leave();
}

template <class T, class V, std::size_t... I>
void walk_members(T& x, V& v, std::index_sequence<I...>) {
  auto members = tie_members(x);
  (walk_part(std::get<I>(members), v, member_name<std::remove_const_t<T>, I>(), I), ...);
}

/// A part_visitor in front of another class with its functions.
template <class V>
class visitor_of final : public part_visitor {
 public:
  explicit visitor_of(V& v) : to_(&v) {}
  void visit(tensor& x) override { to_->visit(x); }
  void scalar(void* address, void* value, std::size_t bytes, symbol_id* symbol) override {
    to_->scalar(address, value, bytes, symbol);
  }
  void plain(void* value, std::size_t bytes) override { to_->plain(value, bytes); }
  void text(std::string& x) override { to_->text(x); }
  void structure(std::uint64_t n) override { to_->structure(n); }
  void structure(std::string_view key) override { to_->structure(key); }
  void unlisted(unsigned char const* first, std::size_t n) override { to_->unlisted(first, n); }
  void enter(std::string_view name, std::size_t number) override { to_->enter(name, number); }
  void leave() override { to_->leave(); }

 private:
  V* to_;
};

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 {

/// Where a class with virtual functions lists its parts, so that a compiled function looks into what a pointer to its base
/// refers to:
///
///   struct layer { virtual ~layer() = default; virtual void neap_parts(neap::parts& list) = 0; };
///   struct dense : layer { void neap_parts(neap::parts& list) override { list(weight, bias); } ... };
class parts {
 public:
  explicit parts(detail::part_visitor& v) : to_(&v) {}
  template <class... T>
  void operator()(T&... part) {
    (detail::walk_part(part, *to_, {}, number_++), ...);
  }
  /// The same, and that the bytes of the object outside of these parts decide, too: list.whole(*this, weight, bias). Else
  /// members that are not listed are not seen.
  template <class Object, class... T>
  void whole(Object& object, T&... part) {
    (*this)(part...);
    detail::walk_remainder(object, std::tie(part...), *to_);
  }

 private:
  detail::part_visitor* to_;
  std::size_t number_ = 0;
};

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

template <class T>
concept lists_parts = requires(T& x, parts& p) { x.neap_parts(p); };

/// The class of an object, by where its description is: classes of two files may have one name.
template <class T>
std::uint64_t type_object(T const& x) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(static_cast<void const*>(&typeid(x))));
}

/// A part that lies outside of the object around it.
template <class T, class V>
void locate_part(T& x, V& v) {
  if constexpr (requires { v.located(x); }) v.located(x);
}

/// A part that is stored elsewhere than in the object that lists it.
template <class T, class Fields, class V>
void locate_parts(T& x, Fields const& fields, V& v) {
  std::apply(
      [&](auto&... part) {
        (
            [&] {
              auto const at = reinterpret_cast<std::uintptr_t>(&part) - reinterpret_cast<std::uintptr_t>(&x);
              if (at >= sizeof(T)) locate_part(part, v);
            }(),
            ...);
      },
      fields);
}

template <class T, class V>
void see_container(T& x, V& v) {
  if constexpr (requires { v.container(&x); }) v.container(&x);
}

/// Whether a class lists all of its members: what lies between them is padding.
template <class T, class Fields>
constexpr bool lists_all_members() {
  if constexpr (std::is_aggregate_v<T> && !has_base<T>() && !has_c_array<T>() && counts_members<T>())
    return initialiser_count<T>() == std::tuple_size_v<Fields>;
  else return false;
}

/// The bytes of an object outside of its listed parts.
template <class T, class Fields, class V>
void walk_remainder(T& x, Fields const& fields, V& v) {
  struct range {
    std::size_t first, last;
  };
  auto* const bytes = reinterpret_cast<unsigned char*>(&x);
  std::array<range, std::tuple_size_v<Fields>> listed{};
  std::size_t n = 0;
  std::apply(
      [&](auto&... part) {
        (
            [&] {
              auto const at = reinterpret_cast<std::uintptr_t>(&part) - reinterpret_cast<std::uintptr_t>(&x);
              if (at >= sizeof(T)) return;
              std::size_t k = n++;
              for (; k > 0 && listed[k - 1].first > at; --k) listed[k] = listed[k - 1];
              listed[k] = {at, at + sizeof part};
            }(),
            ...);
      },
      fields);
  std::size_t at = 0;
  for (std::size_t k = 0; k < n; ++k) {
    if (listed[k].first > at) v.unlisted(bytes + at, listed[k].first - at);
    at = std::max(at, listed[k].last);
  }
  if (at < sizeof(T)) v.unlisted(bytes + at, sizeof(T) - at);
}

// Called for what cannot be tracked: the compiler's first line has the type and the remedy, the lines after it the member's
// class; a sentence follows.
template <class Type>
constexpr void a_compiled_function_cannot_see_behind_this_pointer_reference_or_view() = delete;
template <class Type>
constexpr void a_compiled_function_tracks_vector_array_tracked_sequence_tracked_map_or_map_of_strings() = delete;
template <class Type>
constexpr void a_compiled_function_cannot_look_into_this_class_of_the_standard_library() = delete;
template <class Type>
constexpr void a_compiled_function_draws_numbers_from_a_tracked_generator() = delete;
template <class Type>
constexpr void a_compiled_function_cannot_look_into_this_class_add_neap_fields() = delete;

template <class T>
concept random_engine = requires(T& x) {
  x.discard(1ull);
  x();
};
/// Whether a class is of the standard library, to which no neap_fields can be added.
template <class T>
constexpr bool is_standard_class() {
#if defined(__clang__)
  constexpr std::string_view start = "T = std::";
#else
  constexpr std::string_view start = "with T = std::";
#endif
  return std::string_view(__PRETTY_FUNCTION__).find(start) != std::string_view::npos;
}
template <class T>
constexpr void refuse_untracked() {
  constexpr bool views = std::is_pointer_v<T> || std::is_same_v<T, std::string_view> ||
                         !std::is_void_v<typename refers_to<T>::type> || is_shared<T>::value;
  constexpr bool lists = !views && any_range<T>, engine = !views && !lists && random_engine<T>;
  constexpr bool standard = !views && !lists && !engine && is_standard_class<T>();
  if constexpr (views) a_compiled_function_cannot_see_behind_this_pointer_reference_or_view<T>();
  else if constexpr (lists) a_compiled_function_tracks_vector_array_tracked_sequence_tracked_map_or_map_of_strings<T>();
  else if constexpr (engine) a_compiled_function_draws_numbers_from_a_tracked_generator<T>();
  else if constexpr (standard) a_compiled_function_cannot_look_into_this_class_of_the_standard_library<T>();
  else a_compiled_function_cannot_look_into_this_class_add_neap_fields<T>();
  static_assert(!views,
                "neap: a compiled function cannot see what a pointer, a reference or a view refers to: give the object "
                "itself, by reference or in std::unique_ptr");
  static_assert(!lists,
                "neap: a compiled function cannot look into this container: hold its elements in std::vector, "
                "std::array, std::map<std::string, ...>, neap::tracked_sequence or neap::tracked_map");
  static_assert(!engine,
                "neap: a compiled function cannot go on with this random engine: hold a neap::tracked_generator, or "
                "draw in a function of neap::external");
  static_assert(!standard,
                "neap: a compiled function cannot look into this class of the standard library: hold what it has in "
                "members that can be tracked, or keep it outside and give its values as arguments");
  static_assert(views || lists || engine || standard,
                "neap: a compiled function cannot look into this class: make it a plain struct of at most 32 "
                "members without base class, reference or C array, or add friend auto neap_fields(my_class& "
                "self) { return std::tie(self.member, ...); }");
}

template <class T, class V>
void walk_parts(T& given, V& v) {
  using part = std::remove_const_t<T>;
  auto& x = const_cast<part&>(given);  // what is const is looked at only
  if constexpr (requires { v.passes(x); })
    if (v.passes(x)) return;
  if constexpr (std::is_base_of_v<tensor, part>) {
    static_assert(std::is_same_v<part, tensor> || std::is_same_v<part, parameter> || std::is_same_v<part, buffer>,
                  "neap: a class derived from tensor is no part of what a compiled function takes or gives: its other "
                  "members would not be seen. Give a neap::tensor");
    v.visit(x);
  } else if constexpr (std::is_base_of_v<tracked_base, part>) {
    v.tracked(x);
  } else if constexpr (is_state<part>::value) {
    v.scalar(&x, &x.place(), sizeof(typename part::value_type), nullptr);
  } else if constexpr (is_sym<part>::value) {
    v.scalar(&x, &x.place(), sizeof(typename part::value_type), &x.symbol());
  } else if constexpr (is_container<part>::value) {
    see_container(x, v);
    v.structure(x.size());
    std::size_t i = 0;
    for (auto& each : x) walk_part(each, v, {}, i++);
  } else if constexpr (is_bits<part>::value) {
    see_container(x, v);
    v.structure(x.size());
    for (bool const bit : x) v.structure(std::uint64_t{bit});
  } else if constexpr (is_nullable<part>::value) {
    see_container(x, v);
    v.structure(std::uint64_t{x ? 1u : 0u});
    if (x) walk_parts(*x, v);
  } else if constexpr (is_variant<part>::value) {
    see_container(x, v);
    v.structure(x.index());
    std::visit([&](auto& now) { walk_parts(now, v); }, x);
  } else if constexpr (string_map<part>) {
    see_container(x, v);
    v.structure(x.size());
    for (auto& [key, each] : x) {
      v.structure(std::string_view(key));
      locate_part(each, v);
      walk_part(each, v, key, 0);
    }
  } else if constexpr (is_tuple<part>::value) {
    std::apply(
        [&](auto&... each) {
          std::size_t i = 0;
          (walk_part(each, v, {}, i++), ...);
        },
        x);
  } else if constexpr (std::is_same_v<part, std::string>) {
    v.text(x);
  } else if constexpr (lists_parts<part>) {
    v.structure(type_object(x));
    if constexpr (std::is_base_of_v<part_visitor, V>) {
      parts list(v);
      x.neap_parts(list);
    } else {
      visitor_of<V> to(v);
      parts list(to);
      x.neap_parts(list);
    }
  } else if constexpr (tells_fields<part>) {
    static_assert(tells_references<part>(),
                  "neap: neap_fields must give references to the parts, not copies: return std::tie(self.member, ...)");
    auto fields = neap_fields(x);
    std::apply(
        [&](auto&... each) {
          std::size_t i = 0;
          auto const name = [](std::size_t k) -> std::string_view {
            if constexpr (tells_names<part>) return part::neap_names[k];
            else return (void)k, std::string_view();
          };
          ((walk_part(each, v, name(i), i), ++i), ...);
        },
        fields);
    locate_parts(x, fields, v);
    if constexpr (std::is_polymorphic_v<part> && !std::is_final_v<part>)
      if (typeid(x) != typeid(part))
        throw_error({"compile: an object of a class that is derived from ", typeid(part).name(),
                     " is given as its base, whose neap_fields do not list all of its members: list them in a virtual "
                     "neap_parts(neap::parts&)"});
    if constexpr (!requires { part::neap_rest_is_derived; } && !lists_all_members<part, decltype(fields)>())
      walk_remainder(x, fields, v);
  } else if constexpr (std::is_arithmetic_v<part> || std::is_enum_v<part> || time_value<part> ||
                       (std::is_pointer_v<part> && std::is_function_v<std::remove_pointer_t<part>>)) {
    v.plain(&x, sizeof x);
  } else if constexpr (std::is_empty_v<part>) {
    return;
  } else if constexpr (std::is_aggregate_v<part> && !has_base<part>() && !has_c_array<part>() &&
                       counts_members<part>() && initialiser_count<part>() <= max_fields) {
    walk_members(x, v, std::make_index_sequence<initialiser_count<part>()>{});
  } else {
    refuse_untracked<part>();
  }
}

}}}  // namespace neap::v0::detail
