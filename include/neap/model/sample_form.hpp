// What a traced program was made from besides the types of the sample's tensors: which tensors are given, under which
// names, and the numbers, flags and texts beside them, which the trace has read as they were. A batch must have the same.
#pragma once

#include <neap/model/parameters.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// Its address stands for a sample's type.
template <class Sample>
inline constexpr char sample_type = 0;

template <class T>
struct is_sample_leaf
    : std::bool_constant<std::is_base_of_v<tensor, T> ||
                         (plain_value<T> && !is_container<T>::value && !is_nullable<T>::value && !is_tuple<T>::value)> {
};

/// A plain value as bits that differ where values do (texts: almost surely), and as a text.
struct plain_bits {
  std::uint64_t bits;
  std::string (*text)(void const* value);
};
template <class T>
plain_bits bits_of(T const& x) {
  if constexpr (std::is_enum_v<T>) {
    return {static_cast<std::uint64_t>(x),
            [](void const* v) { return std::to_string(static_cast<std::int64_t>(*static_cast<T const*>(v))); }};
  } else if constexpr (std::is_arithmetic_v<T>) {
    auto const wide = static_cast<std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>>(x);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &wide, sizeof wide);
    return {bits, [](void const* v) { return text_of({*static_cast<T const*>(v)}); }};
  } else {
    std::uint64_t hash = 14695981039346656037u;  // Fowler, Noll and Vo
    for (char c : std::string_view(x)) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return {hash, [](void const* v) { return detail::text_of({'"', *static_cast<T const*>(v), '"'}); }};
  }
}

/// Calls visit(path, bits, text of the value, the value) for each part of a sample; a tensor is there or not, and has no
/// text.
template <class F>
struct sample_walk {
  F& visit;

  template <class T>
  void operator()(T& x, std::string const& path) {
    if constexpr (std::is_base_of_v<tensor, T>) {
      visit(path, plain_bits{!x.is_empty(), nullptr}, &x);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                         std::is_convertible_v<T const&, std::string_view>) {
      visit(path, bits_of(x), &x);
    } else if constexpr (is_bits<T>::value) {
      std::size_t i = 0;
      for (bool const bit : x) visit(join_path(path, std::to_string(i++)), bits_of(bit), &bit);
    } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && !std::is_empty_v<T>) {
      if constexpr (!has_base<T>() && !has_c_array<T>() && counts_members<T>() &&
                    initialiser_count<T>() <= most_fields) {
        auto members = tie_members(x);
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          (part(std::get<I>(members), join_path(path, member_name<T, I>())), ...);
        }(std::make_index_sequence<std::tuple_size_v<decltype(members)>>{});
      }
    }
  }

 private:
  template <class T>
  void part(T& x, std::string const& path) {
    if constexpr (!std::is_pointer_v<T>)
      for_each_leaf<is_sample_leaf>(const_cast<std::remove_const_t<T>&>(x), *this, path);
  }
};
template <class Sample, class F>
void walk_sample(Sample const& sample, F visit) {
  sample_walk<F> walk{visit};
  for_each_leaf<is_sample_leaf>(const_cast<Sample&>(sample), walk);  // looks only
}

class sample_form {
 public:
  sample_form() = default;
  template <class Sample>
  explicit sample_form(Sample const& sample) : type_(&sample_type<Sample>) {
    walk_sample(sample, [&](std::string const& path, plain_bits b, void const* x) {
      parts_.push_back({path, b.bits, b.text ? b.text(x) : std::string()});
    });
  }

  /// What a batch has otherwise than the sample, as a sentence; empty if nothing, or if its C++ type is another one. Takes
  /// no memory where nothing differs.
  template <class Sample>
  std::string difference(Sample const& batch) const {
    std::string told;
    if (type_ != &sample_type<Sample>) return told;
    std::size_t k = 0;
    walk_sample(batch, [&](std::string const& path, plain_bits b, void const* x) {
      if (told.empty() && (k >= parts_.size() || parts_[k].bits != b.bits || parts_[k].path != path))
        told = sentence(k, path, b.text ? b.text(x) : std::string(), b.bits != 0);
      ++k;
    });
    if (told.empty() && k < parts_.size())
      told = "the batch has no part \"" + parts_[k].path + "\", the sample had one";
    return told;
  }

 private:
  struct part {
    std::string path;
    std::uint64_t bits;  // of a tensor: whether it is there
    std::string text;    // of a plain value
  };

  std::string sentence(std::size_t k, std::string const& path, std::string const& text, bool given) const;

  void const* type_ = nullptr;
  std::vector<part> parts_;
};

}  // namespace neap::inline v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/sample_form.ipp>
#endif
