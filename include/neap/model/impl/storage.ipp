// The bodies of <neap/model/storage.hpp>.
#pragma once

#include <neap/model/storage.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void recording_watch::report(tensor_storage const& s) { report(&s, s.recorded().capture, false); }

NEAP_FUNC bytes_t tensor_storage::bytes_of(tensor_type const& t) {
  try {
    return t.bytes();
  } catch (error const& e) { throw_error({"no tensor can be ", t, ": its ", e.what()}); }
}

NEAP_FUNC void tensor_storage::keep_for_reader() {
  std::scoped_lock const alone(readers_);
  auto const r = reader_.lock();
  reader_.reset();
  has_reader_.store(false, std::memory_order_release);
  if (!r || r->version != version_ || r->kept) return;
  r->kept = std::make_shared<tensor_storage>(type_, initialiser{}, role::activation);
  if (computation_listener::computes())
    std::memcpy(r->kept->data_to_overwrite(), data(), static_cast<std::size_t>(bytes_));
  if (auto* l = computation_listener::active()) l->copied(*this, r->kept);
}

NEAP_FUNC void tensor_storage::provide() {
  if (!is_elsewhere()) return allocate(first_);
  auto const there = elsewhere_.lock();
  if (!there) throw_error({"the data of a tensor of ", type_, " were on a device, and could not be copied back"});
  there->fetch(kept_);
  come_back();
}

NEAP_FUNC void tensor_storage::allocate(initialiser const& first) {
  try {
    owned_ = byte_block(static_cast<std::size_t>(bytes_ > 0 ? bytes_ : 1), 64);
  } catch (std::bad_alloc const&) { throw_error({"no memory for a tensor of ", bytes_, " bytes, ", type_}); }
  data_ = owned_.data();
  write_initial(data_, type_.element, type_.count(), first);
}

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor_storage::tensor_storage(tensor_type const& type, initialiser const& first, neap::role r)
    : type_(type),
      bytes_(bytes_of(type)),
      first_(first),
      role_(r) {}

NEAP_FUNC tensor_storage::tensor_storage(tensor_type const& type, void* data, neap::role r)
    : type_(type),
      bytes_(bytes_of(type)),
      data_(static_cast<std::byte*>(data)),
      role_(r) {}

NEAP_FUNC tensor_storage::~tensor_storage() {
  if (is_elsewhere()) storages_elsewhere.fetch_sub(1, std::memory_order_relaxed);
}

NEAP_FUNC std::byte* tensor_storage::data() {
  if (!data_) provide();
  return data_;
}

NEAP_FUNC std::byte* tensor_storage::data_to_overwrite() {
  if (is_elsewhere()) come_back();
  if (!data_) allocate({});
  return data_;
}

NEAP_FUNC void tensor_storage::move_elsewhere(std::weak_ptr<storage_elsewhere> there) {
  elsewhere_ = std::move(there);
  if (is_elsewhere()) return;
  kept_ = std::exchange(data_, nullptr);
  storages_elsewhere.fetch_add(1, std::memory_order_relaxed);
}

NEAP_FUNC void tensor_storage::come_back() {
  if (!is_elsewhere()) return;
  data_ = std::exchange(kept_, nullptr);
  storages_elsewhere.fetch_sub(1, std::memory_order_relaxed);
}

NEAP_FUNC bool tensor_storage::is_as_made() const {
  if (is_elsewhere()) const_cast<tensor_storage*>(this)->data();
  if (!data_ || first_.how == initialiser::kind::none) return !data_;
  byte_block made(static_cast<std::size_t>(bytes_ > 0 ? bytes_ : 1), 64);
  write_initial(made.data(), type_.element, type_.count(), first_);
  return std::memcmp(made.data(), data_, static_cast<std::size_t>(bytes_)) == 0;
}

NEAP_FUNC std::shared_ptr<read_data> tensor_storage::reader() {
  std::scoped_lock const alone(readers_);  // several threads may record with one model
  auto r = reader_.lock();
  if (!r || r->version != version_) reader_ = r = std::make_shared<read_data>(read_data{version_, nullptr});
  has_reader_.store(true, std::memory_order_release);
  return r;
}

NEAP_FUNC void tensor_storage::keep_for_readers() {
  if (has_reader_.load(std::memory_order_acquire)) keep_for_reader();
}

NEAP_FUNC void tensor_storage::restart(initialiser const& first) {
  if (auto* l = computation_listener::active()) l->writes_data(*this);
  keep_for_readers();
  first_ = first;
  come_back();
  if (data_) write_initial(data_, type_.element, type_.count(), first_);
  training_waits_ = false;
  ++version_;
}

NEAP_FUNC void tensor_storage::take(tensor_storage const& other) {
  if (other.is_elsewhere()) const_cast<tensor_storage&>(other).data();
  if (!other.data_) return restart(other.first_);
  if (auto* l = computation_listener::active()) l->writes_data(*this);
  keep_for_readers();
  first_ = other.first_;
  std::memcpy(data_to_overwrite(), other.data_, static_cast<std::size_t>(bytes_));
  ++version_;
}

NEAP_FUNC void tensor_storage::take_back(writing_state const& s) {
  version_ = s.version;
  if (!s.reader) return;
  s.reader->kept.reset();
  reader_ = s.reader;
  has_reader_.store(true, std::memory_order_release);
}

}}}  // namespace neap::v0::detail
