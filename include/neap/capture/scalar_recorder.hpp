// What a recording learns of tracked scalars: their expressions, and those on which the program branches.
#pragma once

#include <neap/capture/scalar_listener.hpp>
#include <neap/capture/stage_list.hpp>

#include <unordered_set>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class scalar_recorder final : public scalar_listener {
 public:
  scalar_recorder(recording_state& state, storage_table& storages, stage_list& stages);

  std::uint32_t constant(std::uint64_t bits) override { return state_.tape.constant(bits); }
  std::uint64_t text(std::string_view x) override { return state_.tape.text(x); }
  std::uint32_t call(scalar_function f, std::uint32_t a, std::uint32_t b) override { return state_.tape.call(f, a, b); }
  symbol_id symbol_of(std::uint32_t number) override { return {state_.serial, number}; }
  std::uint32_t expression_of(symbol_id m, std::uint64_t bits) override;
  void add_guard(std::uint32_t number, std::uint64_t value, std::source_location at) override {
    stages_.add_guard(number, value, at);
  }
  std::uint32_t read(void const* scalar) override { return written_[number_of(scalar)]; }
  void write(void const* scalar, std::uint32_t number) override;
  void constructed(void const* scalar, std::uint32_t number) override;
  void destroyed(void const* scalar) override { own_.erase(scalar); }
  void filled(tensor const& t, std::uint32_t number) override;

  /// How many there are so far.
  std::uint32_t count() const { return static_cast<std::uint32_t>(written_.size()); }
  /// The number of the one that was here at the beginning; number_map::none: there was none.
  std::uint32_t find(void const* scalar) const { return scalars_.find(scalar); }
  /// Scalars and containers that the call has made and that live.
  std::unordered_set<void const*>& own() { return own_; }
  /// The expression of an argument's scalar at the end, where it is then.
  std::uint32_t at_end(argument_state::scalar_place const& end);
  /// The expression of a sym; number_map::none for a state, which no result has.
  std::uint32_t of_result(argument_state::scalar_place const& c);
  void take_back(argument_state const& end, std::size_t count) const;

 private:
  std::uint32_t number_of(void const* scalar) const;

  recording_state& state_;
  storage_table& storages_;
  stage_list& stages_;
  number_map scalars_;                  // addresses to numbers
  std::vector<std::uint32_t> written_;  // their expressions now
  std::vector<std::uint64_t> begun_bits_;
  std::unordered_set<void const*> own_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/scalar_recorder.ipp>
#endif
