// tracked_vector<T>: a vector of tensors or of scalars that a model keeps from call to call, and that a compiled function
// sees as such. Appending depends on nothing; a length that decides, and elements that are read, become guards; what a
// call has changed is changed in each call.
//
//   struct model {
//     neap::tracked_vector<neap::tensor> history;
//     neap::tensor operator()(neap::tensor const& x) {
//       history.push_back(x * 2);                                    // one graph, whatever the length
//       if (history.size() > 4) history.erase(history.begin());      // two
//       return history.front() + history.back();
//     }
//   };
//
// Elements are read as values: tensors, or neap::sym of scalars. set(i, x) writes one. Iterators are those of a list of
// values, and depend on the length.
//
// A container of another kind is tracked by its rules, in one place:
//
//   template <>
//   struct neap::sequence_rules<ring> {
//     using value_type = neap::tensor;
//     static std::size_t size(ring const& r);
//     static value_type const& at(ring const& r, std::size_t i);
//     static void insert(ring& r, std::size_t i, value_type x);   // i == size(r): at the end
//     static void erase(ring& r, std::size_t i);
//   };
//   neap::tracked_sequence<ring> recent;
#pragma once

#include <neap/capture/sym.hpp>
#include <neap/capture/tracked_base.hpp>
#include <neap/capture/walk.hpp>

#include <concepts>
#include <cstddef>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// How a container is a sequence. `set`, `reserve` and `clear` are optional.
template <class C>
struct sequence_rules;

namespace detail {
template <class C>
struct rules_of_standard_sequence {
  using value_type = typename C::value_type;
  static std::size_t size(C const& c) { return c.size(); }
  static value_type const& at(C const& c, std::size_t i) { return c[i]; }
  static void insert(C& c, std::size_t i, value_type x) {
    c.insert(c.begin() + static_cast<std::ptrdiff_t>(i), std::move(x));
  }
  static void erase(C& c, std::size_t i) { c.erase(c.begin() + static_cast<std::ptrdiff_t>(i)); }
  static void set(C& c, std::size_t i, value_type x) { c[i] = std::move(x); }
};
}  // namespace detail
template <class T, class A>
struct sequence_rules<std::vector<T, A>> : detail::rules_of_standard_sequence<std::vector<T, A>> {
  static void reserve(std::vector<T, A>& c, std::size_t n) {
    if (n > c.capacity()) c.reserve(n > 2 * c.capacity() ? n : 2 * c.capacity());
  }
};
template <class T, class A>
struct sequence_rules<std::deque<T, A>> : detail::rules_of_standard_sequence<std::deque<T, A>> {};

template <class C>
class tracked_sequence final : public detail::tracked_base {
  using rules = sequence_rules<C>;
  using element = typename rules::value_type;
  using record = detail::container_record;
  static constexpr bool of_tensors = std::is_same_v<element, tensor>;
  static_assert(of_tensors || detail::tracked_scalar<element>,
                "neap: the elements of a tracked sequence are tensors, numbers, bools or enums: hold other modules in "
                "std::vector");
  static_assert(!std::is_same_v<element, bool> || !std::is_same_v<C, std::vector<bool>>,
                "neap: std::vector<bool> has no elements: hold std::uint8_t");

 public:
  /// What an element is read as: a tensor, or a neap::sym.
  using value_type = std::conditional_t<of_tensors, tensor, sym<element>>;
  using place = std::source_location;

  tracked_sequence() { begin_life(); }
  tracked_sequence(std::initializer_list<value_type> all) {
    begin_life();
    for (auto const& x : all) push_back(x);
  }
  tracked_sequence(tracked_sequence const& other) : tracked_base() {
    begin_life();
    append(other);
  }
  tracked_sequence& operator=(tracked_sequence const& other) {
    if (this == &other) return *this;
    clear();
    append(other);
    return *this;
  }
  ~tracked_sequence() override = default;

  // ------------------------------------------------------------------ what it has

  sym<std::size_t> size(place at = place::current()) const {
    auto* r = known(at);
    return r ? sym<std::size_t>(count(), symbol_of(size_of(*r))) : sym<std::size_t>(count());
  }
  sym<bool> empty(place at = place::current()) const { return size(at) == std::size_t{0}; }
  /// Element i; i is below size().
  value_type operator[](std::size_t i) const { return get(i, {}); }
  value_type at(std::size_t i, place where = place::current()) const {
    if (auto* r = known(where)) {
      bool const there = ask(*r, less(constant(i), size_of(*r)), i < count(), where);
      if (!there) out_of_range(i, where);
    } else if (i >= count()) {
      out_of_range(i, where);
    }
    return get(i, where);
  }
  value_type front(place at = place::current()) const { return get(0, at); }
  value_type back(place at = place::current()) const {
    auto* r = known(at);
    if (!r || r->is_whole) return get(count() - 1, at);
    if (!r->items.empty()) return fresh(count() - 1, r->items.back());
    if (!r->replaced.empty()) return make_whole(*r, at), get(count() - 1, at);
    require_some(*r, at);
    // With what was dropped in front: its place at the beginning.
    auto const last = of_sizes<std::minus<>>(length(*r), constant(r->from_back + 1));
    return entry(*r, count() - 1, count() - 1 + r->from_front, last, at);
  }

  class iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = typename tracked_sequence::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;
    iterator() = default;
    iterator(tracked_sequence const* in, std::ptrdiff_t i) : in_(in), at_(i) {}
    value_type operator*() const { return in_->get(static_cast<std::size_t>(at_), {}); }
    value_type operator[](difference_type n) const { return *(*this + n); }
    iterator& operator++() { return ++at_, *this; }
    iterator& operator--() { return --at_, *this; }
    iterator operator++(int) { return {in_, at_++}; }
    iterator operator--(int) { return {in_, at_--}; }
    iterator& operator+=(difference_type n) { return at_ += n, *this; }
    iterator& operator-=(difference_type n) { return at_ -= n, *this; }
    friend iterator operator+(iterator i, difference_type n) { return i += n; }
    friend iterator operator+(difference_type n, iterator i) { return i += n; }
    friend iterator operator-(iterator i, difference_type n) { return i -= n; }
    friend difference_type operator-(iterator const& a, iterator const& b) { return a.at_ - b.at_; }
    friend bool operator==(iterator const& a, iterator const& b) { return a.at_ == b.at_; }
    friend auto operator<=>(iterator const& a, iterator const& b) { return a.at_ <=> b.at_; }

   private:
    tracked_sequence const* in_ = nullptr;
    std::ptrdiff_t at_ = 0;
  };
  using const_iterator = iterator;
  iterator begin() const { return {this, 0}; }
  /// The graph depends on the length.
  iterator end(place at = place::current()) const {
    if (auto* r = known(at)) make_whole(*r, at);
    return {this, static_cast<std::ptrdiff_t>(count())};
  }

  // ------------------------------------------------------------------ what is written

  void push_back(value_type const& x, place at = place::current()) {
    if (auto* r = known(at)) r->items.push_back(item_of(x)), r->is_written = true;
    rules::insert(content_, count(), plain(x));
    written();
  }
  value_type emplace_back(value_type const& x, place at = place::current()) {
    push_back(x, at);
    return back(at);
  }
  void pop_back(place at = place::current()) {
    if (auto* r = known(at)) {
      r->is_written = true;
      if (!r->items.empty() || r->is_whole) r->items.pop_back();
      else if (require_some(*r, at); r->replaced.empty()) ++r->from_back;
      else make_whole(*r, at), r->items.pop_back();
    }
    rules::erase(content_, count() - 1);
    written();
  }
  /// Removes element i.
  void erase(std::size_t i, place at = place::current()) {
    if (auto* r = known(at)) {
      r->is_written = true;
      if (i == 0 && !r->is_whole && r->replaced.empty() && has_entries(*r, at)) {
        ++r->from_front;
      } else {
        make_whole(*r, at);
        r->items.erase(r->items.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    rules::erase(content_, i);
    written();
  }
  iterator erase(iterator const& i, place at = place::current()) {
    erase(static_cast<std::size_t>(i - iterator(this, 0)), at);
    return i;
  }
  void insert(std::size_t i, value_type const& x, place at = place::current()) {
    if (auto* r = known(at)) {
      make_whole(*r, at);
      r->items.insert(r->items.begin() + static_cast<std::ptrdiff_t>(i), item_of(x));
      r->is_written = true;
    }
    rules::insert(content_, i, plain(x));
    written();
  }
  iterator insert(iterator const& i, value_type const& x, place at = place::current()) {
    insert(static_cast<std::size_t>(i - iterator(this, 0)), x, at);
    return i;
  }
  /// Element i is x from now on; i is below size().
  void set(std::size_t i, value_type const& x, place at = place::current()) {
    if (auto* r = known(at)) {
      r->is_written = true;
      if (!r->is_whole && is_entry(*r, i, at)) replace(*r, i, item_of(x));
      else make_whole(*r, at), r->items[i] = item_of(x);
    }
    replace(i, plain(x));
    written();
  }
  void clear(place at = place::current()) {
    if (auto* r = known(at)) {
      r->is_whole = r->is_written = true;
      r->items.clear(), r->replaced.clear(), r->from_front = r->from_back = 0;
    }
    while (count() > 0) rules::erase(content_, count() - 1);
    written();
  }

  // ------------------------------------------------------------------ for the library

  std::size_t element_count() const override { return count(); }
  tensor const* tensor_at(std::uint64_t k) const override {
    if constexpr (of_tensors) return k < count() ? &rules::at(content_, k) : nullptr;
    else return nullptr;
  }
  std::uint64_t bits_at(std::uint64_t k) const override {
    if constexpr (of_tensors) return 0;
    else return k < count() ? detail::to_bits(rules::at(content_, k)) : 0;
  }
  bool has_place(std::uint64_t k) const override { return k < count(); }
  std::uint64_t places() const override { return count(); }
  void prepare(detail::container_change& c) override {
    if constexpr (requires(C& x) { rules::reserve(x, std::size_t{}); })
      rules::reserve(content_, c.is_whole ? c.elements.size() : count() + c.elements.size());
    if (c.is_whole)
      for (auto& e : c.elements)
        if (e.is_kept) e.made = handle(e.from), e.bits = bits_at(e.from);
  }
  void commit(detail::container_change& c) override {
    if (c.is_whole) {
      while (count() > 0) rules::erase(content_, count() - 1);
      for (auto& e : c.elements) rules::insert(content_, count(), element_of<element>(e));
    } else {
      for (std::size_t k = 0; k < c.replaced; ++k) replace(c.elements[k].place, element_of<element>(c.elements[k]));
      for (std::size_t k = 0; k < c.from_back; ++k) rules::erase(content_, count() - 1);
      for (std::size_t k = 0; k < c.from_front; ++k) rules::erase(content_, 0);
      for (auto k = c.replaced; k < c.elements.size(); ++k)
        rules::insert(content_, count(), element_of<element>(c.elements[k]));
    }
    written();
  }
  void show(detail::part_visitor& v) override {
    v.structure(count());
    for (std::size_t k = 0; k < count(); ++k) {
      auto x = rules::at(content_, k);
      if constexpr (of_tensors) v.visit(x);
      else v.plain(&x, sizeof x);
    }
  }
  std::function<void()> restorer() override {
    std::vector<element> before;
    for (std::size_t k = 0; k < count(); ++k) before.push_back(rules::at(content_, k));
    return [this, before = std::move(before)] {
      while (count() > 0) rules::erase(content_, count() - 1);
      for (auto const& x : before) rules::insert(content_, count(), x);
      written();
    };
  }
  friend auto neap_fields(tracked_sequence&) { return std::tuple<>{}; }  // no weights

 private:
  std::size_t count() const { return rules::size(content_); }
  record* known(place at) const { return record_here(at); }
  void append(tracked_sequence const& other) {
    for (auto const& x : other) push_back(x);
  }
  tensor handle(std::uint64_t k) const {
    auto const* t = tensor_at(k);
    return t ? *t : tensor();
  }
  static element plain(value_type const& x) {
    if constexpr (of_tensors) return x;
    else return x.plain();
  }
  void replace(std::size_t i, element x) {
    if constexpr (requires(C& c) { rules::set(c, i, x); }) rules::set(content_, i, std::move(x));
    else rules::insert(content_, i, std::move(x)), rules::erase(content_, i + 1);
  }
  [[noreturn]] void out_of_range(std::size_t i, place at) const {
    throw_error(context_access::place(at), {"at: no element ", i, " in a tracked sequence of ", count()});
  }

  // In a capture.

  static detail::symbol_id symbol_of(std::uint32_t expression) { return scalars().symbol_of(expression); }
  template <class F>
  static std::uint32_t of_sizes(std::uint32_t a, std::uint32_t b) {
    return scalars().call(&detail::call_scalar<F, std::size_t, std::size_t>, a, b);
  }
  static std::uint32_t less(std::uint32_t a, std::uint32_t b) { return of_sizes<std::less<>>(a, b); }
  static std::uint32_t length(record const& r) { return scalars().call(&detail::count_of, r.self, r.version); }
  /// How many entries are left between the ends.
  static std::uint32_t entries_of(record const& r) {
    auto const dropped = r.from_front + r.from_back;
    return dropped == 0 ? length(r) : of_sizes<std::minus<>>(length(r), constant(dropped));
  }
  std::uint32_t size_of(record const& r) const {
    if (r.is_whole) return constant(r.items.size());
    return r.items.empty() ? entries_of(r) : of_sizes<std::plus<>>(entries_of(r), constant(r.items.size()));
  }
  static bool ask(record const&, std::uint32_t expression, bool value, place at) {
    scalars().add_guard(expression, detail::to_bits(value), at);
    return value;
  }
  void require_some(record& r, place at) const { (void)has_entries(r, at); }
  bool has_entries(record& r, place at) const {
    return ask(r, less(constant(0), entries_of(r)), count() > r.items.size(), at);
  }
  /// Whether element i is one of the beginning.
  bool is_entry(record& r, std::size_t i, place at) const {
    return ask(r, less(constant(i), entries_of(r)), i < count() - r.items.size(), at);
  }
  /// The path depends on the length from now on.
  void make_whole(record& r, place at) const {
    if (r.is_whole) return;
    auto const entries = count() - r.items.size();
    scalars().add_guard(length(r), entries + r.from_front + r.from_back, at);
    std::vector<record::item> all;
    for (std::size_t k = 0; k < entries; ++k) {
      auto& x = all.emplace_back();
      x.is_entry = true, x.place = k + r.from_front;
    }
    for (auto const& [where, x] : r.replaced) all[where - r.from_front] = x;
    all.insert(all.end(), r.items.begin(), r.items.end());
    r.items = std::move(all), r.replaced.clear(), r.is_whole = true;
  }
  static void replace(record& r, std::size_t i, record::item x) {
    for (auto& [where, was] : r.replaced)
      if (where == i + r.from_front) return void(was = x);
    r.replaced.emplace_back(i + r.from_front, x);
  }
  static record::item item_of(value_type const& x) {
    record::item i;
    if constexpr (!of_tensors) i.expression = x.number(scalars());
    return i;
  }
  /// Element i, whose place at the beginning was `now`, as the expression `where`.
  value_type entry(record& r, std::size_t i, std::uint64_t now, std::uint32_t where, place at) const {
    auto& l = scalars();
    auto const k = l.call(&detail::first_of, where, r.version);
    if constexpr (of_tensors) {
      tensor const& t = rules::at(content_, i);
      l.add_guard(l.call(&detail::digest_of_element, r.self, k), detail::digest_of_tensor(&t), at);
      detail::container_listener::listening()->reads_element(r, k, now, t, at);
      return t;
    } else {
      return value_type(rules::at(content_, i), symbol_of(l.call(&detail::bits_of_element, r.self, k)));
    }
  }
  value_type get(std::size_t i, place at) const {
    auto* r = known(at);
    if (!r) return value_type(rules::at(content_, i));
    if (!r->is_whole) {
      if (is_entry(*r, i, at)) {
        for (auto const& [where, x] : r->replaced)
          if (where == i + r->from_front) return fresh(i, x);
        return entry(*r, i, i + r->from_front, constant(i + r->from_front), at);
      }
      make_whole(*r, at);
    }
    auto const x = r->items.at(i);
    return x.is_entry ? entry(*r, i, x.place, constant(x.place), at) : fresh(i, x);
  }
  value_type fresh(std::size_t i, record::item const& x) const {
    if constexpr (of_tensors) return (void)x, rules::at(content_, i);
    else return value_type(rules::at(content_, i), symbol_of(x.expression));
  }

  C content_;
};

template <class T>
using tracked_vector = tracked_sequence<std::vector<T>>;

/// A value that may be there or not, kept from call to call.
template <class T>
class tracked_optional {
 public:
  using value_type = typename tracked_vector<T>::value_type;
  using place = std::source_location;
  tracked_optional() = default;
  tracked_optional(value_type const& x) { content.push_back(x); }
  tracked_optional& operator=(value_type const& x) {
    emplace(x);
    return *this;
  }
  sym<bool> has_value(place at = place::current()) const { return content.size(at) > std::size_t{0}; }
  explicit operator bool() const { return static_cast<bool>(has_value()); }
  value_type value(place at = place::current()) const { return content.at(0, at); }
  value_type operator*() const { return content.front(); }
  void emplace(value_type const& x, place at = place::current()) { content.clear(at), content.push_back(x, at); }
  void reset(place at = place::current()) { content.clear(at); }

  tracked_vector<T> content;
  friend auto neap_fields(tracked_optional& self) { return std::tie(self.content); }
};

}}  // namespace neap::v0
