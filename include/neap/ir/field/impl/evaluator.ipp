// The bodies of <neap/ir/field/evaluator.hpp>.
#pragma once

#include <neap/ir/field/evaluator.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/attribute_numbers.hpp>
#include <neap/ir/opaque.hpp>

#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

inline void mix_layout(sip_hash& h, tensor_layout const& l) {
  for (auto n : l.strides) h.mix(static_cast<std::uint64_t>(n));
  h.mix(static_cast<std::uint64_t>(l.offset));
}

NEAP_FUNC field_element field_evaluator::give_up() {
  left_ = 0;
  return {};
}

NEAP_FUNC bool field_evaluator::is_given(value_id v) {
  if (!known_[v]) known_[v] = given_.given(v, names_[v]) ? 2 : 1;
  return known_[v] == 2;
}

NEAP_FUNC operator_view field_evaluator::meaning(op_id o) const {
  auto const& f = g_.facets(o);
  return &f == &facets_of<op::opaque> ? given_.meaning(g_, o) : g_.view(o);
}

NEAP_FUNC field_rule const& field_evaluator::rule_of(op_id o) {
  if (rules_.empty()) rules_.assign(g_.op_count(), nullptr);
  if (!rules_[o]) rules_[o] = &rule_for(*meaning(o).facets, is_floating(g_.type(g_.output(o)).element));
  return *rules_[o];
}

NEAP_FUNC field_element field_evaluator::at_alone(value_id v, extents const& place) {
  auto* const outer = std::exchange(shared_.frame_, nullptr);
  auto const x = at(v, index_place(place));
  shared_.frame_ = outer;
  return x;
}

NEAP_FUNC field_answer field_evaluator::compare_values(field_evaluator& a, value_id x, field_evaluator& b, value_id y) {
  if (!(a.g_.type(x) == b.g_.type(y))) return field_answer::different;
  auto const& dims = a.dims(x);
  if (elements(dims) == 0) return field_answer::same;
  auto& shared = a.shared_;
  auto* const outer = shared.frame_;
  std::vector<index_cell> open{index_cell::all_of(dims)};
  auto answer = field_answer::same;
  for (std::size_t cells = 0; !open.empty() && answer == field_answer::same; ++cells) {
    auto const c = std::move(open.back());
    open.pop_back();
    index_frame frame(c, shared.secret().key, ++shared.frames_);
    shared.frame_ = &frame;
    auto const p = a.at(x, frame.start());
    auto const q = frame.is_cut() || !a.is_good() ? p : b.at(y, frame.start());
    if (!a.is_good() || !b.is_good() || cells == max_cells) answer = field_answer::too_large;
    else if (frame.is_cut()) c.cut(frame.cut(), [&](index_cell piece) { open.push_back(std::move(piece)); });
    else if (!a.are_same(p, q)) answer = field_answer::different;
  }
  shared.frame_ = outer;
  return answer;
}

NEAP_FUNC field_element field_evaluator::at(value_id v, index_place const& place) {
  if (--left_ <= 0 || !goes_on()) return {};
  if (is_given(v)) {
    auto const [n, tag] = linear(v, place);
    return variable(hash().mix(names_[v]).mix(static_cast<std::uint64_t>(n)).mix(tag).finish());
  }
  auto const o = g_.producer(v);
  if (o == nothing<op_id>) return give_up();
  if (rule_of(o).has(field_rule::moves)) return computed(o, v, place);
  auto const [n, tag] = linear(v, place);
  // A coordinate that varies means another thing in another cell.
  auto const key = digest{shared_.secret().key.low, shared_.secret().key.high}
                       .mix(index(v))
                       .mix(static_cast<std::uint64_t>(n))
                       .mix(tag)
                       .mix(tag == 0 ? 0 : frame()->number());
  if (auto const row = rows_.find(key.low); row != number_map::none && memory_[row].check == key.high)
    return memory_[row].is;
  auto const x = computed(o, v, place);
  if (!goes_on()) return {};
  if (x.degree > max_degree) return give_up();
  see(g_.type(v).element, x);
  if (rows_.add(key.low, static_cast<std::uint32_t>(memory_.size()))) memory_.push_back({key.high, x});
  return x;
}

NEAP_FUNC field_element field_evaluator::computed(op_id o, value_id v, index_place const& p) {
  if (++depth_ > max_depth) return give_up();
  auto const& rule = rule_of(o);
  field_element x;
  if (rule.arithmetic) {
    field_element in[2];
    for (std::size_t i = 0; i < g_.inputs(o).size(); ++i) in[i] = argument(o, i, p);
    x = rule.arithmetic(*this, meaning(o).bytes, in);
  } else {
    x = rule.of(*this, {o, v, p, meaning(o).bytes});
  }
  --depth_;
  if (!rule.has(field_rule::keeps_kernels)) x.kernel = x.masked;
  return x;
}

NEAP_FUNC field_element field_evaluator::hashed_by_place(field_request const& r) {
  plain_vector<field_element> x;
  for (auto in : g_.inputs(r.op)) x.push_back(broadcast(in, r.place));
  return function_of(key_of(r), span_of(x));
}

NEAP_FUNC field_element field_evaluator::hashed(field_request const& r) {
  auto const in = g_.inputs(r.op);
  auto const [n, tag] = linear(r.result, r.place);
  auto d = hash().mix(key_of(r)).mix(static_cast<std::uint64_t>(n)).mix(tag);
  for (auto e : dims(r.result)) d.mix(static_cast<std::uint64_t>(e));
  if (g_.record(r.result).alias != alias_kind::fresh) {  // its elements may depend on where things lie
    mix_layout(d, g_.layout(r.result));
    for (auto x : in) mix_layout(d, g_.layout(x));
  }
  for (auto x : in) {
    for (auto e : dims(x)) d.mix(static_cast<std::uint64_t>(e));
    d.mix(class_of(x));
  }
  return variable(d.finish());
}

NEAP_FUNC std::uint64_t field_evaluator::class_of(value_id v) {
  if (classes_.empty()) classes_.assign(g_.value_count(), 0);
  if (classes_[v] != 0) return classes_[v];
  auto* const outer = std::exchange(shared_.frame_, nullptr);
  auto const& type = g_.type(v);
  auto d = hash().mix(static_cast<std::uint64_t>(type.element));
  index_place first(type.rank()), other(type.rank());
  for (int a = 0; a < type.rank(); ++a) {
    d.mix(static_cast<std::uint64_t>(type.dims[a]));
    if (type.dims[a] > 0) other[a].at = static_cast<std::int64_t>(d.word() % static_cast<std::uint64_t>(type.dims[a]));
  }
  if (type.count() > 0) {
    auto const x = at(v, first), y = at(v, other);
    mix_figures(d, x), mix_figures(d, y);
  }
  auto const sample = d.finish();
  auto& all = shared_.arguments_;
  std::size_t k = 0;
  for (; k < all.size() && left_ > 0; ++k) {
    if (all[k].sample != sample) continue;
    auto const answer = compare_values(*this, v, *all[k].of, all[k].v);
    if (answer == field_answer::too_large) left_ = 0;
    if (answer == field_answer::same) break;
  }
  if (k == all.size()) all.push_back({this, v, sample});
  shared_.frame_ = outer;
  return classes_[v] = k + 1;
}

NEAP_FUNC field_evaluator::linear_place field_evaluator::linear(value_id v, index_place const& place) const {
  auto const& d = dims(v);
  std::int64_t factors[max_rank], n = 0, stride = 1;
  bool varies = false;
  for (int a = d.rank() - 1; a >= 0; stride *= d[a--]) {
    factors[a] = stride, n += place[a].at * stride;
    varies = varies || place[a].form != 0;
  }
  return {n, varies ? frame()->combined_tag(place, factors) : 0};
}

NEAP_FUNC index_place field_evaluator::unlinear(extents const& to, extents const& from, index_place const& place) {
  index_place q(to.rank());
  std::int64_t factors[max_rank], n = 0, stride = 1;
  bool varies = false;
  for (int a = from.rank() - 1; a >= 0; stride *= from[a--]) {
    factors[a] = stride, n += place[a].at * stride;
    varies = varies || place[a].form != 0;
  }
  if (varies) {
    frame()->digits(frame()->combined(place, factors), to.begin(), to.rank(), q.axis);
    return q;
  }
  for (int a = to.rank() - 1; a >= 0 && n > 0; n /= to[a--]) q[a].at = n % to[a];
  return q;
}

NEAP_FUNC coordinate_range field_evaluator::in_range(coordinate x, std::int64_t n) const {
  auto const low = side(x, 0);
  if (low <= 0) return low == 0 ? coordinate_range::varies : coordinate_range::outside;
  auto const high = side(x, n);
  return high == 0 ? coordinate_range::varies : high < 0 ? coordinate_range::inside : coordinate_range::outside;
}

NEAP_FUNC index_place field_evaluator::in_broadcast(extents const& dims, index_place const& place) {
  index_place p(dims.rank());
  for (int a = 0, missing = place.rank() - dims.rank(); a < dims.rank(); ++a)
    if (dims[a] != 1) p[a] = place[missing + a];
  return p;
}

NEAP_FUNC sip_hash field_evaluator::operator_key(std::string_view name, std::size_t output,
                                                 std::span<attribute_field const> attributes, void const* bytes) const {
  auto d = hash().mix(name).mix(output);
  for (auto const& a : attributes) each_number(a.get(bytes), [&](std::uint64_t n) { d.mix(n); });
  return d;
}

NEAP_FUNC digest field_evaluator::key_of(field_request const& r) {
  if (keys_.empty()) keys_.assign(g_.value_count(), digest{0, 0});
  auto& known = keys_[r.result];
  if (known != digest{0, 0}) return known;
  auto const& f = *meaning(r.op).facets;
  auto d = operator_key(f.name, index(r.result) - index(g_.output(r.op)), f.attributes, r.bytes);
  if (auto const* x = g_.as<op::opaque>(r.op); x && &f == &facets_of<op::opaque>) {
    d.mix(g_.target(r.op)).mix(g_.details(r.op));
    if (x->rng || !x->pure || x->placeholder) d.mix(index(g_.origin(r.op)));  // each draws numbers of its own
  }
  for (auto x : g_.inputs(r.op)) d.mix(static_cast<std::uint64_t>(g_.type(x).element));
  return known = d.mix(static_cast<std::uint64_t>(g_.type(r.result).element)).finish();
}

}  // namespace detail
}}  // namespace neap::v0
