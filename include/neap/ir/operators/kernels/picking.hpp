// The kernels of <neap/ir/operators/picking.hpp>.
#pragma once

#include <neap/ir/operators/picking.hpp>

#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/kernels/gather.hpp>
#include <neap/backend/kernels/indexed.hpp>
#include <neap/backend/kernels/topk.hpp>
#include <neap/core/element.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend& b, embedding const&, kernel_arguments const& a) {
  neap::embedding(b, a.out[0], a.in[0], a.in[1]);
}

template <class Backend>
void run(Backend& b, embedding_grad const&, kernel_arguments const& a) {
  neap::embedding_backward(b, a.out[0], a.in[0], a.in[1], a.workspace, position_sort<Backend>{});
}

template <class Backend>
void run(Backend& b, gather const& op, kernel_arguments const& a) {
  neap::gather(b, a.out[0], a.in[0], a.in[1], static_cast<int>(op.axis));
}

template <class Backend>
numbered_sums scatter_add::cleared_sums(Backend& b, kernel_arguments const& a) const {
  numbered_sums const to = neap::numbered_sums_of(b, a.out[0], terms(a.in[1].dims), a.workspace);
  neap::fill(b, to.sums, 0);
  return to;
}

template <class Backend>
void run(Backend& b, scatter_add const& op, kernel_arguments const& a) {
  numbered_sums const to = op.cleared_sums(b, a);
  neap::scatter_add(b, to, a.in[0], a.in[1], static_cast<int>(op.axis));
  if (is_low(a.out[0].element)) neap::cast(b, a.out[0], to.sums);
}

template <class Backend>
void run(Backend& b, index_select const& op, kernel_arguments const& a) {
  neap::index_select(b, a.out[0], a.in[0], a.in[1], detail::plain_axis(op.axis, a.in[0].rank()));
}

template <class Backend>
void run(Backend& b, index_add const& op, kernel_arguments const& a) {
  neap::index_add(b, add{}, a.out[0], a.in[0], a.in[1], a.in[2], detail::plain_axis(op.axis, a.in[0].rank()),
                  a.workspace);
}

template <class Backend>
void run(Backend& b, one_hot const&, kernel_arguments const& a) {
  neap::one_hot(b, a.out[0], a.in[0]);
}

template <class Backend>
void run(Backend& b, topk const& op, kernel_arguments const& a) {
  neap::topk(b, a.out[0], a.out[1], a.in[0], op.k, detail::plain_axis(op.axis, a.in[0].rank()), op.largest,
             a.workspace);
}

}}}  // namespace neap::v0::op
