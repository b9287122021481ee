// Strong ids that cost nothing, and tables indexed by them. An id is a position in the tables of one graph; ids of
// different graphs must not be mixed.
#pragma once

#include <neap/core/plain_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

enum class op_id : std::uint32_t {};
enum class value_id : std::uint32_t {};
enum class storage_id : std::uint32_t {};
enum class layout_id : std::uint32_t {};
enum class part_id : std::uint32_t {};

/// "None" for every id type: `op_id{no_id}`, or `id == nothing<op_id>`.
inline constexpr std::uint32_t no_id = 0xffffffffu;
template <class Id>
inline constexpr Id nothing = Id{no_id};

template <class Id>
constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}
template <class Id>
constexpr Id id_at(std::size_t i) {
  return static_cast<Id>(static_cast<std::uint32_t>(i));
}

/// A vector that only its own id type can index; of plain data nearly always.
template <class Id, class T>
class table {
 public:
  table() = default;
  explicit table(std::size_t n, T const& value = T{}) : rows_(n, value) {}
  T& operator[](Id id) { return rows_[index(id)]; }
  T const& operator[](Id id) const { return rows_[index(id)]; }
  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  void clear() { rows_.clear(); }
  void reserve(std::size_t n) { rows_.reserve(n); }
  void resize(std::size_t n) { rows_.resize(n); }
  void resize(std::size_t n, T const& value) { rows_.resize(n, value); }
  void assign(std::size_t n, T const& value) { rows_.assign(n, value); }
  Id push_back(T value) {
    rows_.push_back(std::move(value));
    return id_at<Id>(rows_.size() - 1);
  }
  T* data() { return rows_.data(); }
  T const* data() const { return rows_.data(); }
  auto begin() { return rows_.begin(); }
  auto begin() const { return rows_.begin(); }
  auto end() { return rows_.end(); }
  auto end() const { return rows_.end(); }
  friend bool operator==(table const&, table const&) = default;

 private:
  std::conditional_t<__is_trivially_copyable(T), plain_vector<T>, std::vector<T>> rows_;
};

/// Ids that follow each other: all from 0 to n - 1, or n of them from `first` on.
template <class Id>
class id_range {
 public:
  explicit constexpr id_range(std::size_t n) : n_(static_cast<std::uint32_t>(n)) {}
  constexpr id_range(Id first, std::size_t n)
      : first_(static_cast<std::uint32_t>(first)),
        n_(static_cast<std::uint32_t>(n)) {}
  struct iterator {
    using value_type = Id;
    using difference_type = std::ptrdiff_t;
    std::uint32_t i;
    constexpr Id operator*() const { return Id{i}; }
    constexpr iterator& operator++() { return ++i, *this; }
    constexpr iterator operator++(int) { return {i++}; }
    friend constexpr bool operator==(iterator, iterator) = default;
  };
  constexpr iterator begin() const { return {first_}; }
  constexpr iterator end() const { return {first_ + n_}; }
  constexpr std::size_t size() const { return n_; }
  constexpr bool empty() const { return n_ == 0; }
  constexpr Id operator[](std::size_t i) const { return Id{first_ + static_cast<std::uint32_t>(i)}; }
  constexpr Id front() const { return Id{first_}; }
  constexpr Id back() const { return Id{first_ + n_ - 1}; }

 private:
  std::uint32_t first_ = 0, n_;
};

}}  // namespace neap::v0
