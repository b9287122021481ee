// Parts of ops, for the verifier: what a value of a planned graph is where it is no value of the original but a piece of
// one, a partial result of one, or one that is being put together.
//
//   piece(v, axis, k, n)     the k-th of n equal pieces of the original's value v: a slice of v, or an output of part k of
//                            the op that makes v
//   partial(v, how, k, n)    what part k of v's maker makes where the cut axis is reduced
//   joint(v, ..., m, n)      pieces 0 to m - 1 placed, or partial results 0 to m - 1 combined; v itself once m is n
//
// Where a part is cut once more, v is a piece or a partial result of the original's value itself. The part that was cut runs
// nowhere: what it would be is worked out from the original op, as is what its own parts must be.
//
// That an op is a part of an original one is shown by the original's dimension relations alone: its inputs are the
// original's arguments, whole or the k-th of n pieces, and whatever hangs on the loop that is cut is cut.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/verify/rewritten.hpp>
#include <neap/verify/value_numbers.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::plan_check {

struct meaning {
  enum kind_type : std::uint8_t { piece, partial, blank, filled, combined, sum_of_means };
  kind_type kind = piece;
  digest of{};             // the number of the original's value, or of what is cut once more
  std::int32_t axis = -1;  // of pieces
  combine how = combine::concat;
  std::int64_t number = 0, count = 1;   // which piece of how many; of joints: how many are there, of how many
  value_id sliced = nothing<value_id>;  // of a slice: the planned value
  int depth = 1;                        // 2: a piece or a partial result is what is cut

  digest number_of_it() const;
  bool has_number_of(op_part const& p) const { return number == p.number && count == p.count; }
};

class pieces {
 public:
  pieces(op_graph const& original, value_numbering const& was, op_graph const& g, value_numbering& now,
         rewritten& rewrites)
      : original_(original),
        was_(was),
        g_(g),
        now_(now),
        rewrites_(rewrites) {}

  /// An op that the original has not: a slice into pieces, a copy, or what puts wholes together. Sets the numbers of its
  /// outputs; false if it is none of these, or not right.
  bool add_helper(op_id o);

  /// Whether op o is a part of op x of the original; sets the numbers of its outputs if it is. Otherwise `why` says one
  /// reason.
  bool add_part(op_id x, op_id o, std::string& why);

 private:
  meaning const* find(digest d) const {
    auto const at = known_.find(d);
    return at == known_.end() ? nullptr : &at->second;
  }
  /// Helpers by operator, of what their arguments mean.
  bool add_slice(op_id o, op::slice const& x, meaning const* a);
  bool add_place(op_id o, op::place const& x, meaning const& a, meaning const& b);
  bool add_combination(op_id o, op::combine_into const& x, meaning const& a, meaning const& b);
  bool set(value_id v, meaning const& m);
  bool is_original(digest d) { return find_original(d) != nothing<value_id>; }
  value_id find_original(digest d);
  /// The whole is there: it must be what the original has, byte for byte.
  bool complete(op_id o, meaning const& m);

  /// An op that is cut: one of the original, or a part of one, which runs nowhere.
  struct cut_op {
    op_id original = nothing<op_id>;
    bool can_be = true;
    operator_facets const* facets = nullptr;
    std::vector<std::max_align_t> attributes;
    std::vector<tensor_layout> in, out;
    std::vector<tensor_layout> in_of_part;  // of a part of it that would run whole
    std::vector<bytes_t> bytes;             // of the storages of its outputs
    plain_vector<dim_link> links;
    op::opaque const* as_opaque() const {
      return facets == &facets_of<op::opaque> ? reinterpret_cast<op::opaque const*>(attributes.data()) : nullptr;
    }
    op::opaque* as_opaque() {
      return facets == &facets_of<op::opaque> ? reinterpret_cast<op::opaque*>(attributes.data()) : nullptr;
    }
  };
  /// A planned op, and the original's op that it may be a part of.
  struct part_claim {
    op_id x, o;  // the original's, the planned one
    std::string& why;
    op_part const* row = nullptr;         // the part that o says it is
    op_part const* outer = nullptr;       // the part that it is cut from; nullptr: x itself
    cut_op whole{};                       // what it is cut from
    bool cut = false, cut_again = false;  // whether some input is a piece, of the first cut and of the second

    op_part const& first_cut() const { return outer ? *outer : *row; }
    bool no(std::string text) const {
      why = std::move(text);
      return false;
    }
  };
  /// Along which axes the inputs are cut. An input is whole, or the same piece of as many; and that, where the part is
  /// cut once more, the same piece of it.
  bool find_cut_inputs(part_claim& c);
  bool find_cut_input(part_claim& c, std::size_t i);
  /// Along which axes the outputs are cut, as the links say; c.whole is then what the last cut is made of.
  bool find_cut_outputs(part_claim& c);
  /// Sets the number of output j, which must be its part's.
  bool set_output(part_claim const& c, std::size_t j);

  cut_op original_op(op_id x) const;
  /// The part of an op that planned op o is a part of; in_axis_ and out_axis_ tell how it is cut.
  cut_op part_of(cut_op const& whole, op_part const& which, op_id o) const;
  /// What a part of an opaque op has to do, from its inputs and outputs.
  static void share_of_work(cut_op const& whole, std::vector<tensor_layout> const& in,
                            std::vector<tensor_layout> const& out, std::int64_t count, op::opaque& x);

  /// From the axes along which inputs are cut to those of the outputs. False if the relations do not carry it.
  static bool follow_links(plain_vector<dim_link> const& links, std::vector<std::int32_t> const& in_axis,
                           std::vector<std::int32_t>& out_axis, combine& how, std::size_t outputs);

  bool same_attributes(cut_op const& whole, op_id o, op_part const& which) const;

  /// Type, aliasing, bytes and layout of a part's output. Of operators of neap's, verify() of the graph has inferred the
  /// layout from the inputs' already.
  bool same_output(cut_op const& whole, std::size_t j, value_id v, std::int32_t axis, op_part const& which) const;
  /// Whether a view of a part shows the piece that the part makes of what the whole view shows. The axes of the part
  /// are in_axis_ and out_axis_; those of the part that it is cut from, if any, again_axis_ and outer_axis_.
  bool shows_its_piece(part_claim const& c, std::size_t j) const;
  /// Whether an output of planned op o, a part of a part, would be a view of a storage that is not cut if the part that it
  /// is cut from ran.
  bool lies_in_whole(op_id o, std::size_t j) const;
  /// The layout of a piece. In a storage that is whole it begins further on; one of a piece's size is the whole's drawn
  /// together. False if there is none.
  static bool layout_of_part(tensor_layout const& a, std::int32_t axis, op_part const& which, bool in_whole,
                             tensor_layout& l);

  struct digest_key {
    std::size_t operator()(digest const& d) const { return static_cast<std::size_t>(d.low); }
  };
  op_graph const& original_;
  value_numbering const& was_;
  op_graph const& g_;
  value_numbering& now_;
  rewritten& rewrites_;
  std::unordered_map<digest, meaning, digest_key> known_;
  struct shape {
    tensor_layout layout;
    bytes_t bytes;
    bool fresh;
  };
  std::unordered_map<digest, shape, digest_key> shapes_;  // of outputs of parts that are cut once more
  std::unordered_map<storage_id, digest> holds_;          // pieces that were put together of pieces
  std::vector<std::pair<digest, value_id>> originals_;    // by number
  // of the op at hand; in_axis_ and again_axis_ change places once the outer part's outputs are known
  std::vector<std::int32_t> in_axis_, again_axis_, out_axis_, outer_axis_;
  combine how_ = combine::concat, outer_how_ = combine::concat;
};

}}}  // namespace neap::v0::detail::plan_check

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/verify/impl/partition.ipp>
#endif
