// Choices and loops by values that are not known when a function is captured, in one graph.
//
//   neap::tensor y = neap::cond(mean(x) > 0, [&] { return block(x); }, [&] { return x; });
//   h = neap::loop(length, x.size(0), [&](std::int64_t t, neap::tensor h) { return cell(x[t], h); }, h);
//
// An if by neap::item reads the condition in the middle, runs one branch, and has a graph for each; these compute both,
// read nothing, and have one. Eager calls compute the same.
#pragma once

#include <neap/capture/host_function.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/model/fields.hpp>
#include <neap/model/functions/comparison.hpp>

#include <array>
#include <cstdint>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// a where p holds, else b, part by part.
template <class P, class T>
T chosen(P const& p, T const& a, T const& b, std::source_location at) {
  if constexpr (tensor_argument<T>) {
    if (a.is_empty() && b.is_empty()) return a;
    if (a.is_empty() || b.is_empty() || !(a.type() == b.type()))
      throw_error(context_access::place(at),
                  {"cond: both branches give tensors of one type; one gives ",
                   a.is_empty() ? text_part("an empty tensor") : text_part(a.type()), ", the other ",
                   b.is_empty() ? text_part("an empty tensor") : text_part(b.type())});
    if constexpr (tensor_argument<P>) return where(p, a, b, at);
    else return where(scalar_tensor(p, dtype::boolean, at), a, b, at);
  } else if constexpr (symbolic<T>) {
    static_assert(!tensor_argument<P>,
                  "neap: cond by a tensor chooses among tensors: a scalar that depends on it is read by neap::item");
    return select(p, a, b);
  } else if constexpr (is_container<T>::value) {
    if (a.size() != b.size()) throw_error(context_access::place(at), {"cond: both branches give lists of one length"});
    T all = a;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = chosen(p, a[i], b[i], at);
    return all;
  } else if constexpr (is_tuple<T>::value) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return T(chosen(p, std::get<I>(a), std::get<I>(b), at)...);
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  } else {
    static_assert(never<T>,
                  "neap: a branch of cond gives a tensor, a neap::sym, or a vector, array, pair or tuple of them");
  }
}

/// A condition as a mask of one element, or a sym<bool>.
template <class P>
auto condition(P const& p, std::source_location at) {
  if constexpr (tensor_argument<P>) {
    if (p.count() != 1)
      throw_error(context_access::place(at), {"cond: the condition has one element, this is ", p.type(),
                                              ": by elements chooses neap::where(condition, a, b)"});
    tensor const one = p.rank() == 0 ? tensor(p) : reshape(p, {}, at);
    return one.element() == dtype::boolean ? one : not_equal(one, 0, at);
  } else {
    (void)at;
    return converted<bool>(as_sym(p));
  }
}

}  // namespace detail

/// f() where p holds, else g(), both computed: a tensor of one element, a sym or a state decides; a plain bool chooses as
/// ?: does. Branches give the same: tensors of equal types, syms, or lists and tuples of them. They change nothing: a
/// compiled function refuses branches that write a state or memory of an argument, or have effects. A gradient goes through
/// both: a branch that is not chosen contributes zeros, which become NaN where its own slope is infinite.
template <class P, class F, class G>
auto cond(P const& p, F const& f, G const& g, std::source_location at = std::source_location::current()) {
  using R = std::remove_cvref_t<std::invoke_result_t<F const&>>;
  static_assert(std::is_same_v<R, std::remove_cvref_t<std::invoke_result_t<G const&>>>,
                "neap: both branches of cond give the same type");
  if constexpr (std::is_same_v<P, bool>) {
    return p ? R(f()) : R(g());
  } else {
    auto const decides = detail::condition(p, at);
    detail::branch_scope const pure(at);
    R const a = f(), b = g();
    return detail::chosen(decides, a, b, at);
  }
}

/// carry = body(i, carry) for i = 0, 1, ..., n - 1. A sym as n is one graph for each number of turns.
template <class N, class Body, class Carry>
  requires(std::is_integral_v<N> || detail::symbolic<N>)
Carry loop(N const& n, Body const& body, Carry carry, std::source_location at = std::source_location::current()) {
  std::int64_t turns = 0;
  if constexpr (detail::symbolic<N>) turns = static_cast<std::int64_t>(detail::as_sym(n).value(at));
  else turns = static_cast<std::int64_t>(n);
  for (std::int64_t i = 0; i < turns; ++i) carry = body(i, std::move(carry));
  return carry;
}
/// The same for n <= most, in one graph for all n: each of `most` turns is computed, and kept where it is one of the n (a
/// tensor of one element, a sym or a state). What holds of the branches of cond holds of the body.
template <class N, class Body, class Carry>
  requires(detail::tensor_argument<N> || detail::symbolic<N>)
Carry loop(N const& n, std::int64_t most, Body const& body, Carry carry,
           std::source_location at = std::source_location::current()) {
  for (std::int64_t i = 0; i < most; ++i) {
    auto const turns = [&] {
      if constexpr (detail::tensor_argument<N>) return detail::condition(greater(n, static_cast<double>(i), at), at);
      else return detail::converted<bool>(detail::as_sym(n) > i);
    }();
    detail::branch_scope const pure(at);
    Carry const next = body(i, carry);
    carry = detail::chosen(turns, next, carry, at);
  }
  return carry;
}

}}  // namespace neap::v0
