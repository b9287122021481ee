// What a traced program was made from besides the types of the sample's tensors: which tensors are given, under which
// names, and the numbers, flags and texts beside them, which the trace has read as they were. A batch must have the same.
#pragma once

#include <neap/model/parameters.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

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

/// A function of a part of a sample, borrowed: its path, its bits and where it lies.
struct sample_visitor {
  void* f;
  void (*call)(void* f, std::string const& path, plain_bits bits, void const* part);
  void operator()(std::string const& path, plain_bits bits, void const* part) const { call(f, path, bits, part); }
};

/// Calls visit(path, bits, text of the value, the value) for each part of a sample; a tensor is there or not, and has no
/// text.
struct sample_walk {
  sample_visitor const& visit;

  template <class T>
  void operator()(T& x, std::string const& path) {
    if constexpr (std::is_base_of_v<tensor, T>) {
      visit(path, plain_bits{!x.is_empty(), nullptr}, &x);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                         std::is_convertible_v<T const&, std::string_view>) {
      visit(path, bits_of(x), &x);
    } else if constexpr (is_bits<T>::value) {
      std::size_t i = 0;
      for (bool const bit : x) visit(join_path(path, i++), bits_of(bit), &bit);
    } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && !std::is_empty_v<T>) {
      if constexpr (!has_base<T>() && !has_c_array<T>() && counts_members<T>() &&
                    initialiser_count<T>() <= max_fields) {
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

/// Refers to a sample, erased. The sample outlives it.
class sample_ref {
 public:
  template <class Sample>
    requires(!std::is_same_v<Sample, sample_ref>)
  explicit sample_ref(Sample const& sample)
      : sample_(std::addressof(sample)),
        type_(&sample_type<Sample>),
        tensors_(const_cast<Sample&>(sample)),  // looks only
        walk_([](void const* at, sample_visitor const& visit) {
          sample_walk walk{visit};
          for_each_leaf<is_sample_leaf>(const_cast<Sample&>(*static_cast<Sample const*>(at)), walk);  // looks only
        }) {}

  void const* get() const { return sample_; }
  /// The same of another sample of the type.
  sample_ref of(void const* other) const {
    auto made = *this;
    made.sample_ = other;
    made.tensors_ = tensors_.of(const_cast<void*>(other));
    return made;
  }
  /// The address that stands for its type (sample_type).
  void const* type() const { return type_; }
  /// To look into; not to write.
  model_ref tensors() const { return tensors_; }
  /// f(path, bits, the part) for each part.
  template <class F>
  void each_part(F f) const {
    walk_(sample_, {&f, [](void* to, std::string const& path, plain_bits b, void const* x) {
                      (*static_cast<F*>(to))(path, b, x);
                    }});
  }

 private:
  void const* sample_;
  void const* type_;
  model_ref tensors_;
  void (*walk_)(void const* sample, sample_visitor const& visit);
};

class sample_form {
 public:
  sample_form() = default;
  explicit sample_form(sample_ref sample);
  template <class Sample>
    requires(!std::is_same_v<Sample, sample_form>)
  explicit sample_form(Sample const& sample) : sample_form(sample_ref(sample)) {}

  /// What a batch has otherwise than the sample, as a sentence; empty if nothing, or if its C++ type is another one. Takes
  /// no memory where nothing differs.
  std::string difference(sample_ref batch) const;
  template <class Sample>
  std::string difference(Sample const& batch) const {
    return difference(sample_ref(batch));
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

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/sample_form.ipp>
#endif
