// What a recording learns of tensors.
#pragma once

#include <neap/capture/stage_list.hpp>

#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class tensor_recorder final : public computation_listener {
 public:
  tensor_recorder(recording_state& state, storage_table& storages, stage_list& stages)
      : computation_listener(state.has_data),
        state_(state),
        storages_(storages),
        stages_(stages) {}

  void ran(operator_view op, std::span<tensor const> in, std::span<tensor const> out,
           std::span<output_rule const> rules, std::source_location at) override;
  void made(tensor const& t) override;
  void detached(tensor const& t) override { state_.nodes_made.push_back(t.node()); }
  void copied(tensor_storage const& from, std::shared_ptr<tensor_storage> const& to) override;
  std::byte* reads_data(tensor const& t, std::source_location at) override;
  std::byte* reads_elements(tensor const& t, std::source_location at) override;
  void writes_data(tensor_storage const& s) override;
  void differentiates(std::uint64_t order, std::source_location at) override;
  void grows(tensor const& part, std::function<void()> grow) override;
  void draws() override;
  void overwrites(tensor_storage& s) override;
  void failed() override { state_.has_failed = true; }

  /// Memory of arguments has its elements of the beginning.
  void take_back() const;

 private:
  static constexpr std::int64_t max_read = 64;  // elements of one tensor, as plain values
  struct saved {
    tensor_storage* storage;
    tensor before;
  };

  recording_state& state_;
  storage_table& storages_;
  stage_list& stages_;
  std::vector<saved> saved_;           // memory of arguments that the call has written
  std::vector<tensor> read_elements_;  // without data: what the program has copied
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/tensor_recorder.ipp>
#endif
