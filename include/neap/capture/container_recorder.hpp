// What a recording learns of tracked containers: which elements of the beginning the program has used, and what it
// leaves.
#pragma once

#include <neap/capture/scalar_recorder.hpp>
#include <neap/capture/stage_list.hpp>
#include <neap/capture/tracked_base.hpp>

#include <memory>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class container_recorder final : public container_listener {
 public:
  container_recorder(recording_state& state, storage_table& storages, stage_list& stages, scalar_recorder& scalars)
      : state_(state),
        storages_(storages),
        stages_(stages),
        scalars_(scalars) {}

  void constructed(tracked_base& c) override;
  void destroyed(tracked_base& c) override { scalars_.destroyed(&c.self()); }
  container_record* record_of(tracked_base& c, std::source_location at) override;
  void reads_element(container_record& r, std::uint32_t place, std::uint64_t now, tensor const& t,
                     std::source_location at) override;

  std::vector<std::unique_ptr<container_record>> const& records() const { return records_; }

 private:
  struct element {
    captured_stage::element what;
    std::uint64_t place;
  };
  /// An element has the memory of another tensor of the call: that is a id for both, where the signature has which ones
  /// do. Else the call is to be recorded again.
  void shares_memory();
  /// Whether a place is one of which an element was read already: a guard, where places depend on lengths.
  bool is_known(container_record const& r, std::uint32_t place, std::uint64_t now, std::source_location at);

  recording_state& state_;
  storage_table& storages_;
  stage_list& stages_;
  scalar_recorder& scalars_;
  std::vector<std::unique_ptr<container_record>> records_;
  std::vector<element> elements_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/container_recorder.ipp>
#endif
