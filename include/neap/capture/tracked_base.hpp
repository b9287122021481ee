// What captures know of a tracked container: its elements by places (indices, numbers of keys), and what a call has left
// of them. Containers themselves are in tracked_sequence.hpp and tracked_map.hpp.
//
// To guards a container is two scalars: where it is, and its version, which no other content of any container has. What a
// program reads of it is an expression of both, which look-ups evaluate only where the version has changed.
#pragma once

#include <neap/capture/expression.hpp>
#include <neap/capture/scalar_listener.hpp>
#include <neap/capture/write_epoch.hpp>
#include <neap/core/digest.hpp>
#include <neap/model/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class part_visitor;
struct container_record;

/// One element that a call leaves in a container.
struct left_element {
  std::uint64_t place = 0;  // where it belongs: the index, or the number of the key
  bool is_kept = false;     // it is the element that was at `from` in the beginning
  bool is_erased = false;   // of a map: there is none
  std::uint64_t from = 0;
  tensor made{};           // a new one
  std::uint64_t bits = 0;  // or its bits
};
/// What a call does to a sequence: drops elements from both ends, replaces some, appends; or replaces all of it.
struct container_change {
  bool is_whole = false;
  std::size_t from_front = 0, from_back = 0;
  std::vector<left_element> elements;  // whole: all; else those of places that are replaced, and then those appended
  std::size_t replaced = 0;
  std::shared_ptr<void> room{};  // what prepare() has made for commit()
};

class tracked_base {
 public:
  tracked_base() { written(); }
  tracked_base(tracked_base const&) : tracked_base() {}
  tracked_base& operator=(tracked_base const&) { return *this; }
  virtual ~tracked_base();

  /// Elements as they are now. A tensor's is null where there is none, or where elements are scalars.
  virtual std::size_t element_count() const = 0;
  virtual tensor const* tensor_at(std::uint64_t place) const = 0;
  virtual std::uint64_t bits_at(std::uint64_t place) const = 0;
  virtual bool has_place(std::uint64_t place) const = 0;
  /// Of a map, a number of all its keys in order; of a sequence, its length.
  virtual std::uint64_t places() const = 0;
  /// Takes the memory that commit() needs; may throw.
  virtual void prepare(container_change& change) = 0;
  virtual void commit(container_change& change) = 0;
  /// Shows all elements.
  virtual void show(part_visitor& v) = 0;
  /// Gives it its present content again.
  virtual std::function<void()> restorer() = 0;

  tracked_base*& self() { return self_; }
  std::uint64_t& version() { return version_; }

 protected:
  /// To be called where a container comes to be: a capture counts it to the function's own.
  void begin_life();
  /// What a capture knows of the container; null: none is under way, or it is the function's own.
  container_record* record_here(std::source_location at) const;
  static scalar_listener& scalars() { return *scalar_listener::active(); }
  static std::uint32_t constant(std::uint64_t bits) { return scalars().constant(bits); }
  /// The element of type T that a change leaves.
  template <class T>
  static T element_of(left_element& e) {
    if constexpr (std::is_same_v<T, tensor>) return std::move(e.made);
    else return from_bits<T>(e.bits);
  }
  void written() {
    static std::atomic<std::uint64_t> last = 0;
    version_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
    write_epoch::mark();
  }

 private:
  tracked_base* self_ = this;
  std::uint64_t version_ = 0;
};

inline tracked_base const& container_of(std::uint64_t self) {
  tracked_base* p = nullptr;
  std::memcpy(&p, &self, sizeof p);
  return *p;
}
// Expressions of containers: their first operand is where the container is; the second depends on the version.
inline std::uint64_t first_of(std::uint64_t a, std::uint64_t) { return a; }
inline std::uint64_t are_equal(std::uint64_t a, std::uint64_t b) { return a == b; }
inline std::uint64_t count_of(std::uint64_t self, std::uint64_t) { return container_of(self).element_count(); }
inline std::uint64_t places_of(std::uint64_t self, std::uint64_t) { return container_of(self).places(); }
inline std::uint64_t has_place(std::uint64_t self, std::uint64_t place) { return container_of(self).has_place(place); }
inline std::uint64_t bits_of_element(std::uint64_t self, std::uint64_t place) {
  return container_of(self).bits_at(place);
}
/// The rank comes before the lengths, so that the numbers of no type begin those of another.
inline digest mix_type(digest d, tensor_type const& t) {
  d = d.mix(static_cast<std::uint64_t>(t.element) | static_cast<std::uint64_t>(t.rank()) << 8);
  for (auto n : t.dims) d = d.mix(static_cast<std::uint64_t>(n));
  return d;
}
/// What a guard compares of a tensor in a container: all but its elements.
inline std::uint64_t digest_of_tensor(tensor const* t) {
  if (!t || t->is_empty()) return t ? 1 : 0;
  if (t->is_traced()) return 2;
  auto const& l = t->layout();
  auto const& s = *t->storage();
  auto const& n = *t->node();
  digest d = mix_type(mix_type({}, l.type), s.type());
  for (auto k : l.strides) d = d.mix(static_cast<std::uint64_t>(k));
  d = d.mix(static_cast<std::uint64_t>(l.offset));
  return d
      .mix(std::uint64_t{n.wants_gradient} | std::uint64_t{n.though_frozen} << 1 | std::uint64_t{n.of_gradient} << 2 |
           std::uint64_t{n.facets != nullptr} << 3 | std::uint64_t{s.is_frozen()} << 4 |
           std::uint64_t{s.is_borrowed()} << 5 | static_cast<std::uint64_t>(s.role()) << 6)
      .low;
}
inline std::uint64_t digest_of_element(std::uint64_t self, std::uint64_t place) {
  return digest_of_tensor(container_of(self).tensor_at(place));
}

/// What of a container is known in a capture: which of its elements are those of the beginning.
struct container_record {
  struct item {
    bool is_entry = false, is_erased = false;
    bool was_there = false;        // of a map: at the beginning
    std::uint64_t place = 0;       // of an entry, at the beginning
    std::uint32_t expression = 0;  // of a new scalar
  };
  tracked_base* container = nullptr;
  std::uint32_t scalar = 0;             // its number among the tracked scalars; the version is the next one
  std::uint32_t self = 0, version = 0;  // expressions
  bool is_written = false;
  bool is_keyed = false;      // a map: `replaced` has what is known; whole: it was cleared
  bool knows_places = false;  // a map: all keys are known
  bool is_whole = false;      // all elements are in `items`; else those between the ends are entries
  std::size_t from_front = 0, from_back = 0;
  std::vector<item> items;                               // whole: all; else those appended
  std::vector<std::pair<std::uint64_t, item>> replaced;  // by the place at the beginning; of a map: by key
};

/// A capture, to containers. Null while none is under way on the thread.
class container_listener : public value_listener {
 public:
  /// A container was constructed in the call: it is the function's own.
  virtual void constructed(tracked_base& c) = 0;
  virtual void destroyed(tracked_base& c) = 0;
  /// What is known of an argument's container; null: it is the function's own. Throws neap::error for others.
  virtual container_record* record_of(tracked_base& c, std::source_location at) = 0;
  /// The program has an element of the beginning; `place` is the expression of its place there, `now` the value.
  virtual void reads_element(container_record& r, std::uint32_t place, std::uint64_t now, tensor const& t,
                             std::source_location at) = 0;

  /// The one that listens to tracked values on this thread.
  static container_listener* listening() { return scalar_listener::active() ? active() : nullptr; }
  static container_listener*& active() { return capture_context::here().containers; }
};

inline void tracked_base::begin_life() {
  if (auto* l = container_listener::listening()) l->constructed(*this);
}
inline tracked_base::~tracked_base() {
  if (auto* l = container_listener::listening()) l->destroyed(*this);
}
inline container_record* tracked_base::record_here(std::source_location at) const {
  if (auto* l = container_listener::listening()) return l->record_of(const_cast<tracked_base&>(*this), at);
  recording_watch::uses(&self_);
  return nullptr;
}

}}}  // namespace neap::v0::detail
