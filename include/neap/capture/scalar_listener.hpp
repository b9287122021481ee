// What a capture learns of tracked scalars; null while none is under way on the thread.
#pragma once

#include <neap/capture/expression.hpp>
#include <neap/model/listener.hpp>

#include <cstdint>
#include <source_location>
#include <string_view>

namespace neap { inline namespace v0 {

class tensor;

namespace detail {

/// Which expression of which capture a sym stands for.
struct symbol_id {
  std::uint64_t capture = 0;  // 0: of none, the value is a constant
  std::uint32_t number = 0;
};

/// What tracked values report to.
class value_listener {
 public:
  value_listener() = default;
  value_listener(value_listener const&) = delete;
  value_listener& operator=(value_listener const&) = delete;
  virtual ~value_listener() = default;
};

class scalar_listener : public value_listener {
 public:
  virtual std::uint32_t constant(std::uint64_t bits) = 0;
  /// The address of a text that is equal, as long as the graphs of the capture live.
  virtual std::uint64_t text(std::string_view x) = 0;
  virtual std::uint32_t call(scalar_function f, std::uint32_t a, std::uint32_t b) = 0;
  /// The expression of a symbol. Throws neap::error if the symbol is another capture's.
  virtual std::uint32_t expression_of(symbol_id m, std::uint64_t bits) = 0;
  virtual symbol_id symbol_of(std::uint32_t number) = 0;
  /// The program branches on an expression, or uses it as a plain value: these are the bits that it had.
  virtual void add_guard(std::uint32_t number, std::uint64_t value, std::source_location at) = 0;
  /// Reads and writes of a tracked scalar by its address. Throw neap::error if no argument contains it.
  virtual std::uint32_t read(void const* scalar) = 0;
  virtual void write(void const* scalar, std::uint32_t number) = 0;
  /// A tracked scalar was constructed here; an earlier one at this address is gone.
  virtual void constructed(void const* scalar, std::uint32_t number) = 0;
  /// The tracked scalar here is gone.
  virtual void destroyed(void const* scalar) = 0;
  /// The scalar tensor holds the expression, whose bits are already those of its element type.
  virtual void filled(tensor const& t, std::uint32_t number) = 0;

  static scalar_listener*& active() { return capture_context::here().scalars; }
};

}  // namespace detail

}}  // namespace neap::v0
