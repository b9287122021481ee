// The bodies of <neap/model/storage.hpp>.
#pragma once

#include <neap/model/storage.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::detail {

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

}  // namespace neap::inline v0::detail
