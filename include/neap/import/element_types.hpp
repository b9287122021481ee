// Element types as files spell them: neap's own names, PyTorch's, NumPy's, safetensors' and ONNX's, in any case, with "_"
// or without: "f8e4m3", "F8_E4M3", "torch.float8_e4m3fn", "FLOAT8E4M3FN".
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/tensor_type.hpp>

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace neap { inline namespace v0 { namespace io {

namespace detail {

/// Other spellings, in lower case, without prefix and "_".
inline constexpr auto element_spellings = std::to_array<std::pair<std::string_view, dtype>>({
    {"float64", dtype::f64},
    {"double", dtype::f64},
    {"fp64", dtype::f64},
    {"float32", dtype::f32},
    {"float", dtype::f32},
    {"fp32", dtype::f32},
    {"bfloat16", dtype::bf16},
    {"float16", dtype::f16},
    {"half", dtype::f16},
    {"fp16", dtype::f16},
    {"int64", dtype::i64},
    {"long", dtype::i64},
    {"s64", dtype::i64},
    {"int32", dtype::i32},
    {"int", dtype::i32},
    {"s32", dtype::i32},
    {"qint32", dtype::i32},
    {"uint8", dtype::u8},
    {"byte", dtype::u8},
    {"quint8", dtype::u8},
    {"boolean", dtype::boolean},
    {"b8", dtype::boolean},
    {"pred", dtype::boolean},
    {"int16", dtype::i16},
    {"short", dtype::i16},
    {"s16", dtype::i16},
    {"int8", dtype::i8},
    {"char", dtype::i8},
    {"s8", dtype::i8},
    {"qint8", dtype::i8},
    {"uint64", dtype::u64},
    {"uint32", dtype::u32},
    {"uint16", dtype::u16},
    {"complex64", dtype::c64},
    {"cfloat", dtype::c64},
    {"complex128", dtype::c128},
    {"cdouble", dtype::c128},
    {"complex32", dtype::c32},
    {"chalf", dtype::c32},
    {"f8e4m3fn", dtype::f8e4m3},
    {"float8e4m3fn", dtype::f8e4m3},
    {"float8e4m3", dtype::f8e4m3},
    {"fp8e4m3", dtype::f8e4m3},
    {"fp8e4m3fn", dtype::f8e4m3},
    {"float8e5m2", dtype::f8e5m2},
    {"fp8e5m2", dtype::f8e5m2},
    {"float8e4m3fnuz", dtype::f8e4m3fnuz},
    {"float8e5m2fnuz", dtype::f8e5m2fnuz},
    {"float8e8m0fnu", dtype::f8e8m0},
    {"float8e8m0", dtype::f8e8m0},
    {"f8e8m0fnu", dtype::f8e8m0},
    {"float6e2m3", dtype::f6e2m3},
    {"float6e2m3fn", dtype::f6e2m3},
    {"f6e2m3fn", dtype::f6e2m3},
    {"float6e3m2", dtype::f6e3m2},
    {"float6e3m2fn", dtype::f6e3m2},
    {"f6e3m2fn", dtype::f6e3m2},
    {"f4", dtype::f4e2m1},
    {"float4e2m1", dtype::f4e2m1},
    {"float4e2m1fn", dtype::f4e2m1},
    {"f4e2m1fn", dtype::f4e2m1},
    {"int4", dtype::i4},
    {"s4", dtype::i4},
    {"uint4", dtype::u4},
    {"int2", dtype::i2},
    {"s2", dtype::i2},
    {"uint2", dtype::u2},
    // of PyTorch, two elements in each of its own: a byte
    {"float4e2m1fnx2", dtype::u8},
});

}  // namespace detail

/// The element type of that name; fails with one line that lists the names. O(names).
inline result<dtype> element_type(std::string_view name) {
  std::string plain;
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (char const c : name)
    if (c != '_') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (std::size_t i = 0; i < dtype_names.size(); ++i)
    if (plain == dtype_names[i]) return static_cast<dtype>(i);
  for (auto const& [spelling, type] : detail::element_spellings)
    if (plain == spelling) return type;
  std::string known;
  for (auto const own : dtype_names) (known += known.empty() ? "" : ", ") += own;
  std::string shown(name.substr(0, 40));
  if (name.size() > 40) shown += "...";
  return failure{"unknown element type \"" + shown + "\"; known are " + known + ", and PyTorch's names for them"};
}

}}}  // namespace neap::v0::io
