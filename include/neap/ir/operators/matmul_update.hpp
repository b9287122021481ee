// An update in place by a gradient that is a product of matrices: both in one operator, so that the gradient never takes
// more memory than a part of it does. It is what splitting the product and its update along the weight's longer axis and
// running the parts one after another comes to (fission, MAGIS, ASPLOS'24), with the bits of the two operators it stands
// for. train/fuse_updates.hpp puts it into training programs.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/operators/matmul.hpp>
#include <neap/ir/operators/update.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace neap { inline namespace v0 {
struct gemm_parts;
struct gemm_shape;
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace op {

template <class Update>
struct matmul_update;

namespace detail {

/// "sgd" -> "matmul_sgd", when compiling.
template <class Update>
struct matmul_update_name {
  static constexpr auto text = [] {
    constexpr std::string_view prefix = "matmul_", base = Update::name;
    std::array<char, prefix.size() + base.size()> t{};
    std::copy(prefix.begin(), prefix.end(), t.begin());
    std::copy(base.begin(), base.end(), t.begin() + prefix.size());
    return t;
  }();
};

/// The attributes of the update, and those of the product.
template <class Op>
struct matmul_update_fields {
  using update = decltype(Op::update);
  static constexpr auto own = update::attributes();
  template <std::size_t I>
  static constexpr attribute_field field_of() {
    return {own[I].name, [](void* op) { return own[I].at(&static_cast<Op*>(op)->update); }, own[I].form};
  }
  template <std::size_t... I>
  static constexpr auto all(std::index_sequence<I...>) {
    return std::array{field_of<I>()..., field<&Op::transpose_a>("transpose_a"), field<&Op::transpose_b>("transpose_b"),
                      field<&Op::parts>("parts")};
  }
};

/// What does not depend on the update's type: a product of two matrices that has the weight's shape.
struct weight_product {
  static constexpr int max_inputs = 8;
  bool transpose_a, transpose_b;
  std::int64_t parts;

  gemm_shape shape_of(tensor_layout const& a, tensor_layout const& b) const;
  tensor_layout infer(shape_context& c) const;
  /// The gradient's part, and what the product needs for it.
  bytes_t workspace(work_context const& c) const;
  /// For each part of the gradient in turn: make(product, parts, i) writes part i to the workspace, its rows
  /// product.ldc elements apart; then update(arguments) is run with the update's operands, as far as that part goes.
  template <class Make, class Update>
  void for_each_part(kernel_arguments const& a, Make const& make, Update const& update) const;
  /// Part i by the host, for for_each_part.
  void make_on_host(host_backend& backend, kernel_arguments const& a, gemm_shape const& s, gemm_parts const& cut,
                    std::int64_t i) const;

 private:
  gemm_parts cut_of(gemm_shape const& s, dtype element) const;
  static bytes_t part_bytes(gemm_shape const& s, gemm_parts const& cut, dtype element);
  static tensor_ref dense_gradient(kernel_arguments const& a);
  template <class Update>
  static void update_part(kernel_arguments const& a, tensor_ref const& gradient, int axis, std::int64_t begin,
                          Update const& update);
};

}  // namespace detail

/// w, a, b, states... -> what Update makes of w, the gradient op(a) op(b) [m, n] and the states: w [m, n] and states,
/// updated in place. Inputs of the weight's shape are updated part by part, others (the step) are given to each part.
/// Promise of Update: it updates each element by that element of its inputs alone.
template <class Update>
struct matmul_update {
  static constexpr std::string_view name{detail::matmul_update_name<Update>::text.data(),
                                         detail::matmul_update_name<Update>::text.size()};
  static constexpr int max_inputs = detail::weight_product::max_inputs;
  Update update{};
  bool transpose_a = false, transpose_b = false;
  std::int64_t parts = 1;  // the gradient is made in about this many (gemm_parts)

  static constexpr auto attributes() {
    using fields = detail::matmul_update_fields<matmul_update>;
    return fields::all(std::make_index_sequence<fields::own.size()>{});
  }
  void infer(shape_context& c) const {
    c.require_arity(3, max_inputs);
    plain_vector<tensor_layout> in{c.layout(0), product().infer(c)};
    for (int i = 3; i < c.arity(); ++i) in.push_back(c.layout(i));
    shape_context inner(Update::name, in);
    update.infer(inner);
    for (auto const& o : inner.outputs()) c.update(o.of > 1 ? o.of + 1 : o.of);
  }
  void relate(dim_context& c) const {
    for (int j = 0; j < c.output_count(); ++j) {
      c.same(1, transpose_a ? 1 : 0, j, 0);
      c.same(2, transpose_b ? 0 : 1, j, 1);
      for (int i = 0; i < c.arity(); ++i)
        if (i == 0 || i > 2) c.aligned(i, j);
    }
  }
  work cost(work_context const& c) const {
    auto w = detail::streaming_work(c, neap::detail::flops_v<Update>);
    w.flops += 2.0 * static_cast<double>(c.out[0].type.count()) *
               static_cast<double>(c.in[1].type.extent(transpose_a ? -2 : -1));
    return w;
  }
  bytes_t workspace(work_context const& c) const { return product().workspace(c); }

  detail::weight_product product() const { return {transpose_a, transpose_b, parts}; }
};

template <std::same_as<host_backend> Backend, class Update>
void run(Backend& b, matmul_update<Update> const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/matmul_update.ipp>
#endif
