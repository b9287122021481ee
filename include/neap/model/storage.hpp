// The memory behind eager tensors: 64-byte aligned bytes that come into being when their address is first read, filled by
// their initialiser. A model without data takes no memory: it can be traced and planned.
//
// While a model is trained on a device, the newest data of its weights are there, and the host's memory is kept for them.
// The first read of the address copies them back.
#pragma once

#include <neap/core/byte_block.hpp>
#include <neap/core/error.hpp>
#include <neap/ir/graph.hpp>
#include <neap/model/initialise.hpp>
#include <neap/model/listener.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

class tensor_storage;

/// What a recorded operator has read of a buffer: a gradient may need it when the buffer has been written again.
struct read_data {
  std::uint32_t version = 0;             // of the storage
  std::shared_ptr<tensor_storage> kept;  // a copy, once the storage has been written; else none
};

/// Memory outside the host, with the newest data of a storage.
class storage_elsewhere {
 public:
  virtual ~storage_elsewhere() = default;
  /// Copies the data to the host. Throws neap::error where that fails.
  virtual void fetch(std::byte* to) = 0;
};

/// How many storages of the program have their newest data elsewhere.
inline std::atomic<std::int64_t> storages_elsewhere = 0;

/// Shared by the tensors that look at it. Not safe to touch for the first time from two threads.
class tensor_storage {
 public:
  /// `r`: what it is for: a weight, a buffer, a state or a constant where a model owns it; else an activation.
  tensor_storage(tensor_type const& type, initialiser const& first, neap::role r);
  /// Refers to memory that its owner keeps alive.
  tensor_storage(tensor_type const& type, void* data, neap::role r);
  tensor_storage(tensor_storage const&) = delete;
  tensor_storage& operator=(tensor_storage const&) = delete;
  ~tensor_storage();

  /// How many bytes its elements take. Throws neap::error, with the type, if that is no number of 64 bits.
  static bytes_t bytes_of(tensor_type const& t);

  /// The first byte; allocates and fills at the first access, and copies newer data from elsewhere. Throws neap::error if
  /// there is no memory, or the copy fails.
  std::byte* data();
  /// The same where all of it is overwritten before it is read: nothing is filled or copied.
  std::byte* data_to_overwrite();
  bool is_allocated() const { return data_ || kept_; }
  /// Whether the memory is another owner's.
  bool is_borrowed() const { return is_allocated() && (data_ ? data_ : kept_) != owned_.data(); }

  /// The newest data are elsewhere from now on, until data() is called. The host's memory, which must exist, stays.
  void move_elsewhere(std::weak_ptr<storage_elsewhere> there);
  /// The host's data are the newest again, as they were before they moved.
  void come_back();
  bool is_elsewhere() const { return kept_ != nullptr; }
  /// There is a place for the data elsewhere, whether they are there or not.
  void place_elsewhere(std::weak_ptr<storage_elsewhere> there) { elsewhere_ = std::move(there); }
  /// The last such place that still exists; null: there is none.
  std::shared_ptr<storage_elsewhere> elsewhere() const { return elsewhere_.lock(); }
  /// The dense tensor it was made for.
  tensor_type const& type() const { return type_; }
  bytes_t bytes() const { return bytes_; }
  neap::role role() const { return role_; }
  void set_role(neap::role r) { role_ = r; }
  /// Whether it is a copy of a weight or buffer that was made while a trace was active.
  bool is_copied_in_trace() const { return copied_in_trace_; }
  void set_copied_in_trace() { copied_in_trace_ = true; }
  initialiser const& first_values() const { return first_; }
  /// Whether the data are what `first_values` says. O(elements), if they were accessed.
  bool is_as_made() const;
  /// Its data as they are now, for as long as the result lives.
  std::shared_ptr<read_data> reader();
  /// The data are about to be overwritten: copies them, if a reader of them lives.
  void keep_for_readers();
  /// Forgets the data; the next access finds the initial ones of `first`.
  void restart(initialiser const& first);
  /// The data of another of the same type, now or at the first access.
  void take(tensor_storage const& other);
  /// The memory that a weight was given in place of this one, by an assignment of another type or of what was moved;
  /// none, or gone: null.
  std::shared_ptr<tensor_storage> replaced_by() const { return replaced_by_.lock(); }
  void set_replaced_by(std::shared_ptr<tensor_storage> const& s) noexcept { replaced_by_ = s, ++replacements_; }
  /// Whether both are the memory of one weight, now and before it was converted, however often.
  bool is_conversion_of(tensor_storage const& other) const { return weight_ && weight_ == other.weight_; }
  void set_converted_from(tensor_storage& before) {
    if (!before.weight_) before.weight_ = std::make_shared<char>();
    weight_ = before.weight_, converted_ = true;
  }
  /// How often a weight or buffer that had this memory was given another one's: what is bound to it here trains on
  /// alone.
  std::uint32_t replacements() const { return replacements_; }
  /// Whether a weight stays as it is in training: no gradient is computed for it (parameter::requires_gradient).
  bool is_frozen() const { return frozen_; }
  void set_frozen(bool f) { frozen_ = f; }
  /// Whether several members of a model are this one (parameter::share).
  bool is_tied() const { return tied_; }
  void set_tied() { tied_ = true; }
  /// Whether it has another one's data in another element type (parameter::set_element).
  bool is_converted() const { return converted_; }
  /// A number that it shares with another copy of a tied one, if both may be of one copy of a model; 0: with none.
  std::uint64_t lost_tie() const { return lost_tie_; }
  void set_lost_tie(std::uint64_t t) { lost_tie_ = t; }
  /// The counter of the training that a weight belongs to: that it was loaded with, or trained by last. `waits`, of a weight
  /// or a counter: it was loaded, and no step has gone on with that training.
  std::shared_ptr<tensor_storage> const& training() const { return training_; }
  bool training_waits() const { return training_waits_; }
  void set_training(std::shared_ptr<tensor_storage> counter, bool waits) {
    training_ = std::move(counter), training_waits_ = waits;
  }
  /// How often it was written in place since it was made.
  std::uint32_t version() const { return version_; }
  void written() { ++version_; }
  /// The capture that records the call in which it was made, by its number, and its own number there. 0: none.
  struct recorded_as {
    std::uint64_t capture = 0;
    std::uint32_t id = 0;
  };
  recorded_as recorded() const { return {capture_, capture_id_}; }
  void set_recorded(recorded_as const& r) { capture_ = r.capture, capture_id_ = r.id; }
  /// What updates that compute nothing change, and back to that.
  struct writing_state {
    std::uint32_t version;
    std::shared_ptr<read_data> reader;
  };
  writing_state writes() const { return {version_, reader_.lock()}; }
  void take_back(writing_state const& s);

 private:
  void keep_for_reader();
  void provide();
  void allocate(initialiser const& first);

  tensor_type type_;
  bytes_t bytes_;
  byte_block owned_;
  std::byte* data_ = nullptr;
  std::byte* kept_ = nullptr;  // the host's memory while the newest data are elsewhere; data_ is null then
  std::weak_ptr<storage_elsewhere> elsewhere_;
  initialiser first_;
  std::weak_ptr<tensor_storage> replaced_by_;
  std::shared_ptr<void> weight_;  // the same for all memory of a converted weight
  std::atomic<bool> has_reader_ = false;
  std::mutex readers_;
  std::weak_ptr<read_data> reader_;
  std::shared_ptr<tensor_storage> training_;
  std::uint64_t capture_ = 0, lost_tie_ = 0;
  std::uint32_t version_ = 0, replacements_ = 0, capture_id_ = 0;
  neap::role role_;
  bool copied_in_trace_ = false, frozen_ = false, tied_ = false, converted_ = false, training_waits_ = false;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/storage.ipp>
#endif
