// tracked_map<K, T>: a map of tensors or scalars, by strings or whole numbers, that a model keeps from call to call, and
// that a compiled function sees as such. Whether a key is there, and the elements that are read, become guards; what a
// call inserts, replaces and erases is done in each call.
//
//   struct model {
//     neap::tracked_map<std::int64_t, neap::tensor> tables;   // made at first use, by length
//     neap::tensor operator()(neap::tensor const& x) {
//       if (!tables.contains(x.size(0))) tables[x.size(0)] = make_table(x);
//       return x + tables.at(x.size(0));
//     }
//   };
//
// Elements are read as values: tensors, or neap::sym of scalars. Keys are plain: a key that a call computes is part of
// its path. Iteration depends on all keys.
#pragma once

#include <neap/capture/sym.hpp>
#include <neap/capture/tracked_base.hpp>
#include <neap/capture/walk.hpp>
#include <neap/core/digest.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

template <class K, class T>
class tracked_map final : public detail::tracked_base {
  using record = detail::container_record;
  static constexpr bool of_tensors = std::is_same_v<T, tensor>;
  static constexpr bool by_name = std::is_same_v<K, std::string>;
  static_assert(of_tensors || detail::tracked_scalar<T>,
                "neap: the elements of a tracked map are tensors, numbers, bools or enums");
  static_assert(by_name || std::is_integral_v<K> || std::is_enum_v<K>,
                "neap: the keys of a tracked map are std::string, whole numbers or enums");
  using content = std::map<K, T>;

 public:
  using key_type = K;
  using mapped_type = std::conditional_t<of_tensors, tensor, sym<T>>;
  using value_type = std::pair<K const&, mapped_type>;
  using place = std::source_location;

  tracked_map() { begin_life(); }
  tracked_map(tracked_map const& other) : tracked_base() {
    begin_life();
    append(other);
  }
  tracked_map& operator=(tracked_map const& other) {
    if (this == &other) return *this;
    clear();
    append(other);
    return *this;
  }
  ~tracked_map() override = default;

  sym<std::size_t> size(place at = place::current()) const {
    auto* r = known(at);
    if (!r) return content_.size();
    auto e = r->is_whole ? constant(0) : scalars().call(&detail::count_of, r->self, r->version);
    for (auto const& [key, x] : r->replaced) {
      bool const was = x.was_there && !r->is_whole;
      if (was && x.is_erased) e = sum(e, constant(std::size_t{0} - 1));
      if (!was && !x.is_erased) e = sum(e, constant(1));
    }
    return {content_.size(), scalars().symbol_of(e)};
  }
  sym<bool> empty(place at = place::current()) const { return size(at) == std::size_t{0}; }
  bool contains(K const& key, place at = place::current()) const {
    if (auto* r = known(at)) return !item(*r, key, at).is_erased;
    return content_.contains(key);
  }
  std::size_t count(K const& key, place at = place::current()) const { return contains(key, at) ? 1 : 0; }
  /// Throws neap::error if there is none.
  mapped_type at(K const& key, place where = place::current()) const {
    if (!contains(key, where)) throw_error(context_access::place(where), {"at: a tracked map has no such key"});
    return get(key, where);
  }

  /// The value of map[key]: it is read as an element, and written by =.
  class reference {
   public:
    reference(tracked_map& in, K key, place at) : in_(&in), key_(std::move(key)), at_(at) {}
    reference& operator=(mapped_type const& x) {
      in_->insert_or_assign(key_, x, at_);
      return *this;
    }
    operator mapped_type() const {
      if (!in_->contains(key_, at_)) in_->insert_or_assign(key_, mapped_type{}, at_);
      return in_->get(key_, at_);
    }

   private:
    tracked_map* in_;
    K key_;
    place at_;
  };
  class key_place {  // a key, and where it was written
   public:
    template <class X>
      requires std::is_convertible_v<X, K>
    key_place(X const& x, place where = place::current()) : key(static_cast<K>(x)),
                                                            at(where) {}
    K key;
    place at;
  };
  reference operator[](key_place const& k) { return {*this, k.key, k.at}; }

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = typename tracked_map::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;
    iterator() = default;
    iterator(tracked_map const* in, typename content::const_iterator i) : in_(in), at_(i) {}
    value_type operator*() const { return {at_->first, in_->get(at_->first, {})}; }
    iterator& operator++() { return ++at_, *this; }
    iterator operator++(int) { return {in_, at_++}; }
    friend bool operator==(iterator const& a, iterator const& b) { return a.at_ == b.at_; }

   private:
    tracked_map const* in_ = nullptr;
    typename content::const_iterator at_{};
  };
  using const_iterator = iterator;
  /// The graph depends on all keys.
  iterator begin(place at = place::current()) const {
    if (auto* r = known(at)) know_keys(*r, at);
    return {this, content_.begin()};
  }
  iterator end() const { return {this, content_.end()}; }
  iterator find(K const& key, place at = place::current()) const {
    return {this, contains(key, at) ? content_.find(key) : content_.end()};
  }

  void insert_or_assign(K const& key, mapped_type const& x, place at = place::current()) {
    if (auto* r = known(at)) {
      auto& i = item(*r, key, at);
      i.is_entry = i.is_erased = false;
      if constexpr (!of_tensors) i.expression = x.number(scalars());
      r->is_written = true;
    }
    if constexpr (of_tensors) content_.insert_or_assign(key, x);
    else content_.insert_or_assign(key, x.plain());
    written();
  }
  /// How many elements were erased.
  std::size_t erase(K const& key, place at = place::current()) {
    if (auto* r = known(at)) {
      auto& i = item(*r, key, at);
      if (i.is_erased) return 0;
      i.is_entry = false, i.is_erased = true;
      r->is_written = true;
    }
    auto const n = content_.erase(key);
    written();
    return n;
  }
  void clear(place at = place::current()) {
    if (auto* r = known(at)) r->replaced.clear(), r->is_whole = r->knows_places = r->is_written = true;
    content_.clear();
    written();
  }

  // ------------------------------------------------------------------ for the library

  std::size_t element_count() const override { return content_.size(); }
  tensor const* tensor_at(std::uint64_t k) const override {
    if constexpr (of_tensors) {
      auto const i = content_.find(key_of(k));
      return i == content_.end() ? nullptr : &i->second;
    } else {
      return nullptr;
    }
  }
  std::uint64_t bits_at(std::uint64_t k) const override {
    if constexpr (of_tensors) {
      return 0;
    } else {
      auto const i = content_.find(key_of(k));
      return i == content_.end() ? 0 : detail::to_bits(i->second);
    }
  }
  bool has_place(std::uint64_t k) const override { return content_.contains(key_of(k)); }
  std::uint64_t places() const override {
    digest d = digest{}.mix(content_.size());
    for (auto const& each : content_) d = d.mix(number_alone(each.first));
    return d.low;
  }
  void prepare(detail::container_change& c) override {
    auto const made = std::make_shared<content>();
    for (auto& e : c.elements)
      if (!e.is_kept && !e.is_erased) made->insert_or_assign(key_of(e.place), element_of<T>(e));
    c.room = made;
  }
  void commit(detail::container_change& c) override {
    auto& made = *static_cast<content*>(c.room.get());
    if (c.is_whole) content_.clear();
    for (auto& e : c.elements)
      if (e.is_erased) content_.erase(key_of(e.place));
      else if (!e.is_kept) content_.erase(key_of(e.place)), content_.insert(made.extract(key_of(e.place)));
    written();
  }
  void show(detail::part_visitor& v) override {
    v.structure(content_.size());
    for (auto& [key, x] : content_) {
      v.structure(number_alone(key));
      if constexpr (of_tensors) v.visit(x);
      else v.plain(&x, sizeof x);
    }
  }
  std::function<void()> restorer() override {
    return [this, before = content_] { content_ = before, written(); };
  }
  friend auto neap_fields(tracked_map&) { return std::tuple<>{}; }  // no weights

 private:
  /// A key in a capture: its bits, or where its text is.
  static std::uint64_t number_of(K const& key) {
    if constexpr (by_name) return scalars().text(key);
    else return detail::to_bits(key);
  }
  static K const& key_of(std::uint64_t const& k)
    requires by_name
  {
    return *reinterpret_cast<std::string const*>(static_cast<std::uintptr_t>(k));
  }
  static K key_of(std::uint64_t const& k)
    requires(!by_name)
  {
    return detail::from_bits<K>(k);
  }
  /// Outside of one: its bits, or a number of its text.
  static std::uint64_t number_alone(K const& key) {
    if constexpr (by_name) return digest{}.mix(std::string_view(key)).low;
    else return detail::to_bits(key);
  }
  record* known(place at) const {
    auto* r = record_here(at);
    if (r) r->is_keyed = true;
    return r;
  }
  void append(tracked_map const& other) {
    for (auto const& [key, x] : other) insert_or_assign(key, x);
  }
  static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return scalars().call(&detail::call_scalar<std::plus<>, std::size_t, std::size_t>, a, b);
  }
  static std::uint32_t place_of_key(record const& r, std::uint64_t k) {
    return scalars().call(&detail::first_of, constant(k), r.version);
  }
  /// What is known of a key; whether it is there is a guard.
  record::item& item(record& r, K const& key, place at) const {
    auto const k = number_of(key);
    for (auto& [known_key, x] : r.replaced)
      if (known_key == k) return x;
    bool there = false;
    if (!r.knows_places) {
      there = content_.contains(key);
      scalars().add_guard(scalars().call(&detail::has_place, r.self, place_of_key(r, k)), detail::to_bits(there), at);
    }
    record::item x;
    x.is_entry = x.was_there = there, x.is_erased = !there, x.place = k;
    return r.replaced.emplace_back(k, x).second;
  }
  void know_keys(record& r, place at) const {
    if (r.knows_places) return;
    // All keys of the beginning: what is there now, but for what the call has changed.
    tracked_map all;
    auto& begun = all.content_ = content_;
    for (auto const& [k, x] : r.replaced) {
      if (x.was_there && x.is_erased) begun[key_of(k)];
      if (!x.was_there) begun.erase(key_of(k));
    }
    scalars().add_guard(scalars().call(&detail::places_of, r.self, r.version), all.places(), at);
    for (auto const& each : begun) {
      auto const k = number_of(each.first);
      bool known_key = false;
      for (auto const& x : r.replaced) known_key = known_key || x.first == k;
      if (known_key) continue;
      record::item x;
      x.is_entry = x.was_there = true, x.place = k;
      r.replaced.emplace_back(k, x);
    }
    r.knows_places = true;
  }
  mapped_type get(K const& key, place at) const {
    auto const i = content_.find(key);
    if constexpr (of_tensors) {
      if (auto* r = known(at)) {
        if (auto const& x = item(*r, key, at); x.is_entry) {
          auto& l = scalars();
          auto const k = place_of_key(*r, x.place);
          l.add_guard(l.call(&detail::digest_of_element, r->self, k), detail::digest_of_tensor(&i->second), at);
          detail::container_listener::listening()->reads_element(*r, k, x.place, i->second, at);
        }
      }
      return i->second;
    } else {
      auto* r = known(at);
      if (!r) return i->second;
      auto const& x = item(*r, key, at);
      auto& l = scalars();
      if (!x.is_entry) return {i->second, l.symbol_of(x.expression)};
      return {i->second, l.symbol_of(l.call(&detail::bits_of_element, r->self, place_of_key(*r, x.place)))};
    }
  }

  content content_;
};

}}  // namespace neap::v0
