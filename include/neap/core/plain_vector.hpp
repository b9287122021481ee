// A growing array of plain data, for tables and working memory. std::vector serves every type of element: each one that
// a program uses makes the compiler write forty functions, even in programs that never call them. This one has what
// loops over plain structs need, its iterators are pointers, and it costs a fifth.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <new>
#include <type_traits>

namespace neap { inline namespace v0 {

namespace detail {

// What serves every type of element, in code of its own: a loop that appends has one call for when there is no room left.

/// Where plain data lies, and how many elements have room there.
struct plain_place {
  void* data;
  std::size_t capacity;
};
/// Uninitialised memory for n elements of so many bytes: plain data exists as soon as it is copied there.
[[gnu::noinline]] inline void* plain_room(std::size_t n, std::size_t bytes) {
  if (n > static_cast<std::size_t>(-1) / 2 / bytes) throw std::bad_array_new_length();
  return ::operator new(n* bytes);
}
/// Moves `used` of them to where `least` and twice as many as before have room, and frees the memory where they were.
[[gnu::noinline]] inline plain_place plain_growth(plain_place from, std::size_t used, std::size_t least,
                                                  std::size_t bytes) {
  std::size_t const n = least > 2 * from.capacity ? least : 2 * from.capacity;
  void* const to = plain_room(n, bytes);
  if (used > 0) __builtin_memcpy(to, from.data, used * bytes);
  ::operator delete(from.data);
  return {to, n};
}
/// Copies n more, which may be some of theirs, behind the `used` ones; moves these where there is no room.
[[gnu::noinline]] inline plain_place plain_append(plain_place to, std::size_t used, void const* first, std::size_t n,
                                                  std::size_t bytes) {
  void* left = nullptr;
  if (used + n > to.capacity) {
    plain_place const bigger = plain_growth({nullptr, to.capacity}, 0, used + n, bytes);
    if (used > 0) __builtin_memcpy(bigger.data, to.data, used * bytes);
    left = to.data, to = bigger;
  }
  if (n > 0) __builtin_memmove(static_cast<char*>(to.data) + used * bytes, first, n * bytes);
  ::operator delete(left);
  return to;
}

}  // namespace detail

/// New elements that are not given are T{}. As with std::vector, growing moves the elements to another place; it never
/// shrinks, and an object that was moved from is empty or has what the other one had.
template <class T>
class plain_vector {
 public:
  static_assert(__is_trivially_copyable(T), "neap: a plain_vector holds trivially copyable elements");
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  using value_type = T;

  constexpr plain_vector() = default;
  constexpr explicit plain_vector(std::size_t n) : plain_vector(n, T{}) {}
  constexpr plain_vector(std::size_t n, T value) : data_(n ? allocate(n) : nullptr), size_(n), capacity_(n) {
    fill(data_, data_ + n, value);
  }
  constexpr plain_vector(std::initializer_list<T> list) { append(list.begin(), list.size()); }
  constexpr plain_vector(plain_vector const& x) { append(x.data_, x.size_); }
  constexpr plain_vector(plain_vector&& x) noexcept { swap(x); }
  constexpr plain_vector& operator=(plain_vector const& x) {
    if (this != &x) clear(), append(x.data_, x.size_);
    return *this;
  }
  constexpr plain_vector& operator=(plain_vector&& x) noexcept {
    swap(x);
    return *this;
  }
  constexpr ~plain_vector() { release(data_); }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr T const* data() const { return data_; }
  constexpr T* begin() { return data_; }
  constexpr T const* begin() const { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr T const* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) { return data_[i]; }
  constexpr T const& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& front() { return data_[0]; }
  constexpr T const& front() const { return data_[0]; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr T const& back() const { return data_[size_ - 1]; }

  constexpr void clear() { size_ = 0; }
  constexpr void reserve(std::size_t n) {
    if (n > capacity_) grow(n);
  }
  constexpr void push_back(T const& value) {
    T const x = value;  // may be one of ours
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = x;
  }
  constexpr void pop_back() { --size_; }
  constexpr void resize(std::size_t n) { resize(n, T{}); }
  constexpr void resize(std::size_t n, T value) {
    reserve(n);
    if (n > size_) fill(data_ + size_, data_ + n, value);
    size_ = n;
  }
  /// New elements have any values, for who writes them all.
  constexpr void resize_for_overwrite(std::size_t n) {
    reserve(n);
    size_ = n;
  }
  constexpr void assign(std::size_t n, T value) {
    size_ = 0;
    resize(n, value);
  }
  constexpr void append(T const* first, std::size_t n) {
    if (std::is_constant_evaluated()) {
      plain_vector more;  // first: they may be ours
      for (std::size_t i = 0; i < n; ++i) more.push_back(first[i]);
      for (T const& x : more) push_back(x);
    } else {
      take(detail::plain_append({data_, capacity_}, size_, first, n, sizeof(T)));
      size_ += n;
    }
  }
  /// Inserts a value before `at`.
  constexpr void insert(T const* at, T const& value) {
    T const x = value;
    auto const i = static_cast<std::size_t>(at - data_);
    if (size_ == capacity_) grow(size_ + 1);
    move(data_ + i + 1, data_ + i, size_++ - i, true);
    data_[i] = x;
  }
  constexpr void erase(T const* first, T const* last) {
    move(data_ + (first - data_), last, static_cast<std::size_t>(end() - last));
    size_ -= static_cast<std::size_t>(last - first);
  }
  /// Drops the elements for which drop(element) holds; the others keep their order.
  template <class Drop>
  constexpr void erase_if(Drop&& drop) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i)
      if (!drop(data_[i])) data_[kept++] = data_[i];
    size_ = kept;
  }
  constexpr void swap(plain_vector& x) noexcept {
    T* const d = data_;
    std::size_t const s = size_, c = capacity_;
    data_ = x.data_, size_ = x.size_, capacity_ = x.capacity_;
    x.data_ = d, x.size_ = s, x.capacity_ = c;
  }
  friend constexpr bool operator==(plain_vector const& a, plain_vector const& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  /// Copies n elements to a place that overlaps theirs below, if at all, or above if `up`.
  static constexpr void move(T* to, T const* from, std::size_t n, bool up = false) {
    if (n == 0) return;
    if (to == nullptr || from == nullptr) __builtin_unreachable();  // something is there
    if (!std::is_constant_evaluated()) __builtin_memmove(static_cast<void*>(to), from, n * sizeof(T));
    else if (up)
      while (n-- > 0) to[n] = from[n];
    else
      for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
  }
  static constexpr void fill(T* first, T* last, T value) {
    for (; first != last; ++first) *first = value;
  }
  static constexpr T* allocate(std::size_t n) {
    if (std::is_constant_evaluated()) return new T[n];
    return static_cast<T*>(detail::plain_room(n, sizeof(T)));
  }
  static constexpr void release(T* data) {
    if (std::is_constant_evaluated()) delete[] data;
    else if (!(__builtin_constant_p(data == nullptr) && data == nullptr))
      ::operator delete(data);  // known to be none: no call
  }
  constexpr void take(detail::plain_place at) { data_ = static_cast<T*>(at.data), capacity_ = at.capacity; }
  constexpr void grow(std::size_t least) {
    if (!std::is_constant_evaluated()) return take(detail::plain_growth({data_, capacity_}, size_, least, sizeof(T)));
    std::size_t const capacity = least > 2 * capacity_ ? least : 2 * capacity_;
    T* const bigger = allocate(capacity);
    move(bigger, data_, size_);
    release(data_);
    data_ = bigger, capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}}  // namespace neap::v0
