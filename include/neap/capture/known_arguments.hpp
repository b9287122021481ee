// The parts of arguments that a call has met before: where they are, and what they were. A later call with the same
// objects compares them in one pass without taking memory, and learns which tracked scalars have changed. Tracked scalars
// are passed over while none of the process has been written (write_epoch). Whatever differs otherwise sends the call to
// the full look-up, which is always right.
#pragma once

#include <neap/capture/argument_state.hpp>
#include <neap/capture/guard_program.hpp>
#include <neap/capture/walk.hpp>
#include <neap/capture/write_epoch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Tracked scalars alone, of a number that the type says; 0: not so.
template <class T>
constexpr std::size_t tracked_scalars() {
  if constexpr (is_state<T>::value) return 1;
  else return 0;
}
/// Tensors alone: it does not matter where they are.
template <class T>
struct only_tensors : std::is_base_of<tensor, T> {};
template <class T, class A>
struct only_tensors<std::vector<T, A>> : only_tensors<T> {};
template <class T, std::size_t N>
struct only_tensors<std::array<T, N>> : only_tensors<T> {};
template <class T>
struct only_tensors<std::optional<T>> : only_tensors<T> {};

class known_arguments final {
 public:
  struct scalar_place {
    void* value;
    std::uint32_t at, bytes;  // in tracked_
  };
  struct tensor_place {
    tensor* now;  // in this call
    void const* address;
    std::weak_ptr<tensor_node> keeps;  // its address stays its own
    tensor_node const* node;
    std::uint32_t output, first;  // the first with its storage
    tensor_layout layout;
    tensor_type storage_type;
    bool is_empty, is_frozen, wants_gradient, though_frozen, of_gradient, has_history;
    bool is_part;  // of its storage: another part is as good
    neap::role role;
  };
  struct plain_place {
    void* value;  // the bytes, or the string
    bool is_text;
  };

  /// The arguments of a walk are met for the first time.
  void begin_first(std::uint64_t mode, bool takes_windows = false) {
    tensors_.clear(), scalars_.clear(), plains_.clear(), structure_.clear(), plain_.clear(), tracked_.clear();
    changed_tensors_.clear();
    writes_ = true, failed_ = false, takes_windows_ = takes_windows;
    mode_ = mode;
    reset();
    moment_ = write_epoch::moment();
    storages_.clear(), addresses_.clear(), aliases_.clear(), same_variables_.clear(), changed_.clear();
    has_borrowed_ = false, graph = guard_program::none;
  }
  void end_first() {
    writes_ = false;
    for (std::uint32_t k = 0; k < tensors_.size(); ++k) {
      auto& t = tensors_[k];
      if (!addresses_.add(t.address, k)) same_variables_.push_back({k, addresses_.find(t.address)});
      if (t.is_empty) continue;
      auto const* s = t.now->storage().get();
      storages_.add(s, k);
      t.first = storages_.find(s);
      if (t.first == k) continue;
      aliases_.push_back(k);
      t.is_part = tensors_[t.first].is_part = false;  // where they are to one another counts
    }
  }
  /// False: the arguments cannot be these.
  bool begin_comparison(std::uint64_t mode) {
    if (mode != mode_) return false;
    failed_ = false;
    reset();
    clean_ = write_epoch::unchanged_since(moment_);
    if (!clean_) compared_at_ = write_epoch::moment(), moment_ = 0;
    return true;
  }
  /// Whether all was equal but for tracked scalars and other tensors of equal types.
  bool end_comparison() {
    if (failed_ || tensor_ != tensors_.size() || scalar_ != scalars_.size() || plain_at_ != plain_.size() ||
        structure_at_ != structure_.size())
      return false;
    if (!clean_) moment_ = compared_at_;
    return changed_tensors_.empty() || (!has_borrowed_ && aliases_hold());
  }

  // ------------------------------------------------------------------ parts, as walk_parts() meets them

  /// An argument that the function has by reference.
  template <class T>
  void refers_to(T const& x) {
    by_value_ = false;
    if constexpr (!std::is_base_of_v<tensor, T>) address(&x);
  }
  void by_value() { by_value_ = true; }
  template <class T>
  void located(T const& x) {
    if constexpr (!only_tensors<T>::value)
      if (!by_value_) address(&x);
  }
  /// Whether the walk passes over a part.
  template <class T>
  bool passes(T& x) {
    if (failed_) return true;
    if constexpr (tracked_scalars<T>() > 0) {
      if (writes_ || by_value_ || !clean_) return false;
      scalar_ += tracked_scalars<T>();
      return true;
    } else if constexpr (is_container<T>::value) {
      using each = typename T::value_type;
      if constexpr (!only_tensors<T>::value)
        if (!by_value_) address(x.data());
      if constexpr (is_state<each>::value) {
        static_assert(sizeof(each) == sizeof(typename each::value_type));
        if (writes_ || by_value_) return false;
        structure(x.size());
        if (!failed_) many_scalars(x.data(), x.size(), sizeof(each));
        return true;
      }
      return false;
    } else if constexpr (is_pointer_to_part<T>::value) {
      if (!by_value_) address(x.get());
      return false;
    } else {
      return false;
    }
  }
  void visit(tensor& x) {
    if (writes_) return add(x);
    if (tensor_ == tensors_.size()) return fail();
    auto& t = tensors_[tensor_++];
    t.now = &x;
    if (x.node().get() != t.node || x.output() != t.output || &x != t.address) return other(x, t);
    if (t.is_empty) return;
    auto const& s = *x.storage();
    if (s.is_frozen() != t.is_frozen || s.role() != t.role) fail();
  }
  void scalar(void*, void* value, std::size_t bytes, symbol_id* symbol) {
    if (writes_) {
      scalars_.push_back({value, static_cast<std::uint32_t>(tracked_.size()), static_cast<std::uint32_t>(bytes)});
      tracked_.insert(tracked_.end(), static_cast<std::byte*>(value), static_cast<std::byte*>(value) + bytes);
      return;
    }
    if (scalar_ == scalars_.size()) return fail();
    auto& c = scalars_[scalar_];
    bool const is_moved = std::exchange(c.value, value) != value;  // it may be another one, without a write
    if (!clean_ || by_value_ || symbol || is_moved) compare(scalar_);
    ++scalar_;
  }
  void tracked(tracked_base& x) {
    scalar(nullptr, &x.self(), sizeof x.self(), nullptr);
    scalar(nullptr, &x.version(), sizeof x.version(), nullptr);
  }
  void plain(void* value, std::size_t bytes) {
    if (writes_) {
      plains_.push_back({value, false});
      plain_.append(static_cast<char const*>(value), bytes);
      return;
    }
    if (plain_number_ == plains_.size() || plain_.size() - plain_at_ < bytes ||
        std::memcmp(plain_.data() + plain_at_, value, bytes) != 0)
      return fail();
    plains_[plain_number_++].value = value;
    plain_at_ += bytes;
  }
  void text(std::string& x) {
    structure(x.size());
    if (writes_) {
      plains_.push_back({&x, true});
      plain_ += x;
      return;
    }
    if (plain_number_ == plains_.size() || plain_.compare(plain_at_, x.size(), x) != 0) return fail();
    plains_[plain_number_++].value = &x;
    plain_at_ += x.size();
  }
  void structure(std::uint64_t n) {
    if (writes_) return structure_.push_back(n);
    if (structure_at_ == structure_.size() || structure_[structure_at_] != n) return fail();
    ++structure_at_;
  }
  void structure(std::string_view key) {
    structure(key.size());
    bytes(key.data(), key.size());
  }
  void unlisted(unsigned char const* first, std::size_t n) { bytes(reinterpret_cast<char const*>(first), n); }
  void enter(std::string_view, std::size_t) {}
  void leave() {}

  // ------------------------------------------------------------------ after a comparison

  /// The graph for these arguments; guard_program::none: none.
  std::uint32_t find(guard_program const& p) {
    guard_program::found found;
    if (graph == guard_program::none) {
      values_ = p.first_values();
      for (std::uint32_t k = 0; k < scalars_.size(); ++k) load(p, k);
      found = p.find(values_.data());
    } else {
      for (auto k : changed_) load(p, k);
      found = p.find_again(graph, changed_, values_.data(), scratch_);
    }
    changed_.clear();
    graph = found.graph, node = found.at;
    return graph;
  }
  /// A tracked scalar that the last call has written: it may have changed.
  void compare(std::uint32_t k) {
    auto const& c = scalars_[k];
    if (is_equal(c)) return;
    std::memcpy(tracked_.data() + c.at, c.value, c.bytes);
    changed_.push_back(k);
  }
  std::uint64_t value(std::uint32_t expression) const { return values_[expression]; }
  std::span<tensor_place const> tensors() const { return tensors_; }
  scalar_place const& place(std::uint32_t scalar) const { return scalars_[scalar]; }
  std::span<scalar_place const> places() const { return scalars_; }
  plain_place const& plain(std::uint32_t k) const { return plains_[k]; }
  /// The call has written tracked scalars, which compare() sees in the next one.
  void has_written() {
    bool const clean = write_epoch::unchanged_since(moment_);
    write_epoch::mark();
    if (clean) moment_ = write_epoch::moment();
  }

  std::uint32_t graph = guard_program::none;  // of the last call
  std::uint32_t node = 0;                     // where the last look-up ended
  std::uint64_t last_used = 0;

 private:
  template <class T>
  struct is_pointer_to_part : std::false_type {};
  template <class T, class D>
  struct is_pointer_to_part<std::unique_ptr<T, D>> : std::true_type {};

  void reset() {
    tensor_ = scalar_ = 0;
    plain_number_ = plain_at_ = structure_at_ = 0;
    by_value_ = false;
    changed_tensors_.clear();
  }
  void fail() { failed_ = true; }
  void address(void const* p) { structure(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p))); }
  void bytes(char const* first, std::size_t n) {
    if (writes_) {
      plain_.append(first, n);
    } else if (plain_.size() - plain_at_ < n || std::memcmp(plain_.data() + plain_at_, first, n) != 0) {
      fail();
    } else {
      plain_at_ += n;
    }
  }
  bool is_equal(scalar_place const& c) const {
    auto const* before = tracked_.data() + c.at;
    if (c.bytes == 4) return std::memcmp(before, c.value, 4) == 0;
    if (c.bytes == 8) return std::memcmp(before, c.value, 8) == 0;
    return std::memcmp(before, c.value, c.bytes) == 0;
  }
  /// States that lie one after another.
  void many_scalars(void const* first, std::size_t n, std::size_t each) {
    if (scalars_.size() - scalar_ < n) return fail();
    if (!clean_ && n > 0 && std::memcmp(tracked_.data() + scalars_[scalar_].at, first, n * each) != 0)
      for (std::size_t k = 0; k < n; ++k) compare(scalar_ + static_cast<std::uint32_t>(k));
    scalar_ += static_cast<std::uint32_t>(n);
  }
  void load(guard_program const& p, std::uint32_t k) {
    if (p.scalar(k) == guard_program::none) return;
    std::uint64_t bits = 0;
    std::memcpy(&bits, tracked_.data() + scalars_[k].at, scalars_[k].bytes);
    values_[p.scalar(k)] = bits;
  }
  void add(tensor& x) {
    auto& t = tensors_.emplace_back();
    t.now = &x, t.address = &x, t.node = x.node().get(), t.output = x.output(), t.keeps = x.node();
    t.first = static_cast<std::uint32_t>(tensors_.size() - 1);
    t.is_empty = x.is_empty();
    if (t.is_empty) return;
    auto const& s = *x.storage();
    t.layout = x.layout(), t.storage_type = s.type();
    t.is_frozen = s.is_frozen(), t.role = s.role();
    has_borrowed_ = has_borrowed_ || s.is_borrowed();
    t.wants_gradient = t.node->wants_gradient, t.though_frozen = t.node->though_frozen;
    t.of_gradient = t.node->of_gradient, t.has_history = t.node->facets != nullptr;
    t.is_part = takes_windows_ && is_part(x);
  }
  void other(tensor& x, tensor_place const& t) {
    if (x.is_empty() || t.is_empty) return x.is_empty() == t.is_empty && &x == t.address ? void() : fail();
    if (x.is_traced()) return fail();
    auto const& s = *x.storage();
    auto const& n = *x.node();
    if (!(t.is_part ? is_part(x) && is_like(x, t) : x.layout() == t.layout && s.type() == t.storage_type) ||
        s.is_frozen() != t.is_frozen || s.role() != t.role || n.wants_gradient != t.wants_gradient ||
        n.though_frozen != t.though_frozen || n.of_gradient != t.of_gradient ||
        (n.facets != nullptr) != t.has_history || s.is_borrowed())
      return fail();
    changed_tensors_.push_back(tensor_ - 1);
  }
  static bool is_part(tensor const& x) {
    auto const& s = *x.storage();
    return may_be_window(s) && !s.is_borrowed() && x.layout().is_dense() && x.layout().type.count() > 0 &&
           x.layout().type.count() < s.type().count();
  }
  static bool is_like(tensor const& x, tensor_place const& t) {
    auto const &a = x.layout(), &b = t.layout;
    return a.type == b.type && a.strides == b.strides;
  }
  /// Whether tensors share variables and storages as they did at the first time.
  bool aliases_hold() {
    auto const storage = [&](std::uint32_t k) {
      return tensors_[k].is_empty ? nullptr : tensors_[k].now->storage().get();
    };
    for (auto k : aliases_)
      if (storage(k) != storage(tensors_[k].first)) return false;
    for (auto const& [k, first] : same_variables_)
      if (tensors_[k].now != tensors_[first].now) return false;
    bool const many = changed_tensors_.size() > 8;
    if (many) seen_.clear(), seen_variables_.clear();
    for (std::size_t i = 0; i < changed_tensors_.size(); ++i) {
      auto const k = changed_tensors_[i];
      auto const& t = tensors_[k];
      if (t.now != t.address) {
        if (auto const j = addresses_.find(t.now); j != number_map::none && tensors_[j].now == t.now) return false;
        if (many && !seen_variables_.add(t.now, k)) return false;
        for (std::size_t before = 0; !many && before < i; ++before)
          if (tensors_[changed_tensors_[before]].now == t.now) return false;
      }
      if (t.first != k) continue;
      if (auto const j = storages_.find(storage(k)); j != number_map::none && j != k && storage(j) == storage(k))
        return false;
      if (many && !seen_.add(storage(k), k)) return false;
      for (std::size_t before = 0; !many && before < i; ++before)
        if (auto const b = changed_tensors_[before]; tensors_[b].first == b && storage(b) == storage(k)) return false;
    }
    return true;
  }

  bool takes_windows_ = false, writes_ = true, failed_ = false, clean_ = false, by_value_ = false,
       has_borrowed_ = false;
  std::uint64_t mode_ = 0, moment_ = 0, compared_at_ = 0;  // 0: nothing was compared
  std::uint32_t tensor_ = 0, scalar_ = 0;
  std::size_t plain_number_ = 0, plain_at_ = 0, structure_at_ = 0;
  std::vector<tensor_place> tensors_;
  std::vector<scalar_place> scalars_;
  std::vector<plain_place> plains_;
  std::vector<std::uint64_t> structure_;
  std::string plain_;
  std::vector<std::byte> tracked_;
  std::vector<std::uint64_t> values_;
  std::vector<std::uint32_t> changed_, changed_tensors_, aliases_, scratch_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> same_variables_;
  number_map storages_, addresses_, seen_, seen_variables_;
};

}}}  // namespace neap::v0::detail
