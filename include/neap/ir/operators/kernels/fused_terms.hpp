// The terms of a reduction whose elements a program makes (op::fused), on the host.
#pragma once

#include <neap/backend/kernels/reduce.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/ir/operators/kernels/fused_interpreter.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 { namespace op::detail {

/// The terms of a reduction as a program makes them (as neap::detail::tensor_terms, with the same bits): x is dense
/// where it has memory, so an offset into it is its element's index.
template <class C>
class program_terms {
 public:
  /// `p`: of a dense x without data.
  program_terms(fused const& op, kernel_arguments const& a, neap::detail::reduce_plan const& p, tensor_ref const& x)
      : plan_(p),
        kept_(neap::detail::view_through(x.dims, op.keeps_x ? a.out[1] : x)),
        keeps_(op.keeps_x),
        run_(op.prologue, {a.in, {&x, 1}}, true) {}

  C along(std::int64_t base, std::int64_t first, std::int64_t last, neap::detail::reduce_loops<C> const& op) const {
    constexpr std::int64_t most = neap::detail::reduce_buffer;
    alignas(64) C buffer[most];
    auto total = static_cast<sum_t<C>>(op.neutral);
    auto const& terms = plan_.inner;
    if (plan_.element == dtype_of<C>) {  // run by run
      neap::detail::for_each_run(terms, first, last - first, [&](std::int64_t offset, std::int64_t n, std::int64_t) {
        auto const make = [&](std::int64_t at, std::int64_t some) { return made(base + offset + at, some, buffer); };
        C const part = op.made(
            &make,
            [](void const* context, std::int64_t at, std::int64_t some) {
              return (*static_cast<decltype(make)*>(context))(at, some);
            },
            n);
        op.join(&total, &part, 1);
      });
      return static_cast<C>(total);
    }
    for (std::int64_t at = first; at < last; at += most) {
      std::int64_t const n = std::min(most, last - at);
      C* to = buffer;
      neap::detail::for_each_run(terms, at, n, [&](std::int64_t offset, std::int64_t length, std::int64_t) {
        made(base + offset, length, to);
        to += length;
      });
      C const part = op.along(buffer, n);
      op.join(&total, &part, 1);
    }
    return static_cast<C>(total);
  }

  void across(std::int64_t base, std::int64_t column, std::int64_t n, std::int64_t first, std::int64_t last,
              neap::detail::reduced_columns<C>& sums) const {
    constexpr std::int64_t most = neap::detail::map_chunk;
    alignas(64) C buffer[most];
    neap::detail::for_each_run(
        plan_.inner, first, last - first, [&](std::int64_t offset, std::int64_t length, std::int64_t stride) {
          // Short rows that follow one another are made together.
          std::int64_t const together = stride == n && n > 0 ? std::max<std::int64_t>(1, most / n) : 1;
          for (std::int64_t k = 0; k < length; k += together) {
            std::int64_t const rows = std::min(together, length - k);
            sums.add(made(base + offset + k * stride + column, rows * n, buffer), n, rows);
          }
        });
  }

 private:
  /// Elements [at, at + n) of x, rounded to its type: at most a chunk, in `buffer` or where x lies.
  C const* made(std::int64_t at, std::int64_t n, C* buffer) const {
    if (C* const place = keeps_ ? neap::detail::direct<C>(kept_, at, n) : nullptr) {
      run_.values(at, at + n, place);
      return place;
    }
    run_.values(at, at + n, buffer);
    if (keeps_) neap::detail::scatter(kept_, at, n, static_cast<C const*>(buffer));
    return buffer;
  }

  neap::detail::reduce_plan const& plan_;
  neap::detail::strided kept_;  // x
  bool keeps_;
  fused_interpreter<C> run_;
};

}}}  // namespace neap::v0::op::detail
