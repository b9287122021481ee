// What a recording learns of functions of the host: they are called as without a recording, in the order of the
// program.
#pragma once

#include <neap/capture/scalar_recorder.hpp>
#include <neap/capture/stage_list.hpp>

namespace neap { inline namespace v0 { namespace detail {

class host_recorder final : public host_listener {
 public:
  host_recorder(recording_state& state, storage_table& storages, stage_list& stages, scalar_recorder& scalars)
      : state_(state),
        storages_(storages),
        stages_(stages),
        scalars_(scalars) {}

  void effect(std::shared_ptr<host_function const> f, arguments const& passed, std::source_location at) override;
  std::pair<host_result, std::uint32_t> external(std::shared_ptr<host_function const> f, arguments const& passed,
                                                 std::source_location at) override;
  std::uint32_t element(tensor const& t, std::int64_t i, std::source_location at) override {
    return stages_.element_of(storages_.copy_for_host(t, at), i, at);
  }
  std::optional<std::uint64_t> known(std::uint32_t element) const override { return stages_.known(element); }
  void begins_branch(std::source_location at) override {
    state_.branches.push_back({storages_.size(), scalars_.count(), at});
  }
  void ends_branch() override { state_.branches.pop_back(); }

 private:
  host_result perform(std::shared_ptr<host_function const> const& f, arguments const& passed, std::source_location at);
  /// Without data: what the next function has returned in this call; null: it has not been called. Throws what it has
  /// thrown.
  host_result const* known_result();

  recording_state& state_;
  storage_table& storages_;
  stage_list& stages_;
  scalar_recorder& scalars_;
  std::size_t calls_ = 0;  // without data
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/host_recorder.ipp>
#endif
