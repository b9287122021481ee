// The bodies of <neap/model/functions/einsum.hpp>.
#pragma once

#include <neap/model/functions/einsum.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC einsum_run::einsum_run(std::string_view equation, std::vector<tensor> const& in, std::source_location at)
    : equation_(equation),
      at_(at) {
  parse(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) terms_.push_back(term_of(in[i], inputs_[i], i));
  require_output();
  for (auto& t : terms_) drop_stretched(t);
}

NEAP_FUNC tensor einsum_run::run() {
  term all = summed(std::move(terms_.front()), 1);
  for (std::size_t i = 1; i < terms_.size(); ++i) all = product(all, summed(std::move(terms_[i]), i + 1, &all), i + 1);
  all = summed(std::move(all), terms_.size());
  extents order;
  for (int label : output_) order.push_back(place(all.labels, label));
  return permute(all.x, order);
}

NEAP_FUNC void einsum_run::refuse(std::string const& why) const {
  throw_error(context_access::place(at_), {"einsum: ", why, ", in \"", equation_, "\""});
}

NEAP_FUNC einsum_run::labels einsum_run::parsed(std::string_view text) const {
  labels l;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (c == ' ') continue;
    if (text.substr(i, 3) == "...") {
      if (has(l, dots)) refuse("... stands twice in \"" + std::string(text) + '"');
      l.push_back(dots), i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      l.push_back(c);
    } else {
      refuse("axes are letters or ..., not '" + std::string(1, c) + "'");
    }
  }
  return l;
}

NEAP_FUNC void einsum_run::parse(std::size_t operands) {
  if (operands == 0) refuse("there are no operands");
  auto const arrow = equation_.find("->");
  auto left = equation_.substr(0, arrow);
  while (true) {
    auto const comma = left.find(',');
    inputs_.push_back(parsed(left.substr(0, comma)));
    if (comma == left.npos) break;
    left.remove_prefix(comma + 1);
  }
  if (inputs_.size() != operands)
    refuse("there are " + std::to_string(inputs_.size()) + " operands in the equation, and " +
           std::to_string(operands) + " tensors");
  is_explicit_ = arrow != equation_.npos;
  if (is_explicit_) output_ = parsed(equation_.substr(arrow + 2));
}

NEAP_FUNC einsum_run::term einsum_run::term_of(tensor x, labels const& given, std::size_t i) {
  int const more = x.rank(at_) - static_cast<int>(given.size()) + (has(given, dots) ? 1 : 0);
  if (more < 0 || (more > 0 && !has(given, dots)))
    refuse("operand " + std::to_string(i) + " has " + std::to_string(x.rank()) + " axes, " + to_string(x.type()) +
           ", and the equation names " + std::to_string(given.size()));
  labels l;
  for (int label : given)
    if (label != dots) l.push_back(label);
    else
      for (int k = more; k-- > 0;) l.push_back(-1 - k);
  max_dots_ = std::max(max_dots_, has(given, dots) ? more : 0);
  if (!detail::may_meet(x.element(), (terms_.empty() ? x : terms_.front().x).element()))
    refuse("element types differ, " + to_string(terms_.front().x.type()) + " and " + to_string(x.type()));
  for (int k = 0; k < x.rank(); ++k) {
    auto const found = std::find_if(sizes_.begin(), sizes_.end(),
                                    [&](auto const& s) { return s.first == l[static_cast<std::size_t>(k)]; });
    if (found == sizes_.end()) {
      sizes_.emplace_back(l[static_cast<std::size_t>(k)], x.size(k));
      continue;
    }
    if (found->second != x.size(k) && found->second != 1 && x.size(k) != 1)
      refuse("axis " + name(found->first) + " is " + std::to_string(found->second) + " and, in operand " +
             std::to_string(i) + ", " + std::to_string(x.size(k)));
    if (found->second == 1) found->second = x.size(k);
  }
  for (std::size_t k = 0; k < l.size(); ++k)
    for (std::size_t j = l.size(); --j > k;)
      if (l[j] == l[k]) {
        x = diagonal(x, static_cast<int>(k), static_cast<int>(j), i);
        l.erase(l.begin() + static_cast<std::ptrdiff_t>(j));
      }
  return {std::move(x), std::move(l)};
}

NEAP_FUNC tensor einsum_run::diagonal(tensor const& x, int k, int j, std::size_t i) const {
  auto const n = x.size(k);
  if (x.size(j) != n)
    refuse("the diagonal of " + std::to_string(n) + " x " + std::to_string(x.size(j)) + " in operand " +
           std::to_string(i) + " is none");
  extents last, back;
  for (int a = 0; a < x.rank(); ++a)
    if (a != k && a != j) last.push_back(a);
  int const others = last.rank();
  last.push_back(k), last.push_back(j);
  shape flat = permute(x, last).shape(), table = flat;
  flat.erase(others + 1), flat[others] = n * n;
  table[others + 1] = n + 1;
  // (n, n) and n more elements are n rows of n + 1, whose first elements are the diagonal
  tensor d = select(reshape(pad(reshape(permute(x, last), flat), others, 0, n), table), others + 1, 0);
  for (int a = 0; a < others; ++a) back.push_back(a);
  back.insert(k, others);
  return permute(d, back);
}

NEAP_FUNC void einsum_run::require_output() {
  labels spelt;
  auto const all_dots = [&] {
    for (int k = max_dots_; k-- > 0;) spelt.push_back(-1 - k);
  };
  if (is_explicit_) {
    for (int label : output_) {
      if (label == dots) {
        all_dots();
        continue;
      }
      if (std::none_of(inputs_.begin(), inputs_.end(), [&](labels const& l) { return has(l, label); }))
        refuse("no operand has the result's axis " + name(label));
      if (has(spelt, label)) refuse("the result has axis " + name(label) + " twice");
      spelt.push_back(label);
    }
  } else {  // what stands once, in the order of the alphabet
    all_dots();
    for (int label = 'A'; label <= 'z'; ++label) {
      std::ptrdiff_t times = 0;
      for (auto const& l : inputs_) times += std::count(l.begin(), l.end(), label);
      if (times == 1) spelt.push_back(label);
    }
  }
  output_ = std::move(spelt);
  if (output_.size() > static_cast<std::size_t>(max_rank)) refuse("the result has too many axes");
}

NEAP_FUNC void einsum_run::drop_stretched(term& t) const {
  for (std::size_t k = t.labels.size(); k-- > 0;)
    if (t.x.size(static_cast<std::int64_t>(k)) == 1 && size_of(t.labels[k]) != 1) {
      t.x = squeeze(t.x, static_cast<std::int64_t>(k));
      t.labels.erase(t.labels.begin() + static_cast<std::ptrdiff_t>(k));
    }
}

NEAP_FUNC einsum_run::term einsum_run::summed(term t, std::size_t next, term const* other) const {
  extents axes;
  labels left;
  for (std::size_t k = 0; k < t.labels.size(); ++k)
    if (is_needed(t.labels[k], next) || (other && has(other->labels, t.labels[k]))) left.push_back(t.labels[k]);
    else axes.push_back(static_cast<std::int64_t>(k));
  if (axes.rank() == 0) return t;
  return {sum(t.x, axes), std::move(left)};
}

NEAP_FUNC tensor einsum_run::grouped(term const& t, std::initializer_list<labels const*> groups) const {
  extents order;
  shape dims;
  for (auto const* g : groups) {
    std::int64_t n = 1;
    for (int label : *g)
      if (has(t.labels, label)) order.push_back(place(t.labels, label)), n *= size_of(label);
    dims.push_back(n);
  }
  return reshape(permute(t.x, order), dims);
}

NEAP_FUNC einsum_run::term einsum_run::product(term a, term const& b, std::size_t next) const {
  a = summed(std::move(a), next, &b);
  labels both, shared, left, right;
  for (int label : a.labels) (!has(b.labels, label) ? left : is_needed(label, next) ? both : shared).push_back(label);
  for (int label : b.labels)
    if (!has(a.labels, label)) right.push_back(label);
  labels all = both;
  all.insert(all.end(), left.begin(), left.end());
  all.insert(all.end(), right.begin(), right.end());
  if (all.size() > static_cast<std::size_t>(max_rank))
    refuse("a product on the way has more than " + std::to_string(max_rank) + " axes: write it in steps");
  shape dims;
  for (int label : all) dims.push_back(size_of(label));
  tensor y;
  labels const none;
  if (shared.empty() || !is_floating(a.x.element()) || (left.empty() && right.empty())) {
    // (both, left, 1, shared) * (both, 1, right, shared)
    y = grouped(a, {&both, &left, &none, &shared}) * grouped(b, {&both, &none, &right, &shared});
    y = shared.empty() ? y : sum(y, {3});
  } else {
    // A transpose that lies there already is no copy.
    bool const ta = !is_dense(a, {&both, &left, &shared}) && is_dense(a, {&both, &shared, &left}),
               tb = !is_dense(b, {&both, &shared, &right}) && is_dense(b, {&both, &right, &shared});
    y = matmul(ta ? grouped(a, {&both, &shared, &left}) : grouped(a, {&both, &left, &shared}),
               tb ? grouped(b, {&both, &right, &shared}) : grouped(b, {&both, &shared, &right}),
               {.transpose_a = ta, .transpose_b = tb});
  }
  return {reshape(y, dims), std::move(all)};
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC int einsum_run::place(labels const& l, int label) {
  return static_cast<int>(std::find(l.begin(), l.end(), label) - l.begin());
}

NEAP_FUNC std::int64_t einsum_run::size_of(int label) const {
  for (auto const& [l, n] : sizes_)
    if (l == label) return n;
  return 1;
}

NEAP_FUNC bool einsum_run::is_needed(int label, std::size_t next) const {
  bool needed = has(output_, label);
  for (std::size_t i = next; i < terms_.size(); ++i) needed = needed || has(terms_[i].labels, label);
  return needed;
}

NEAP_FUNC bool einsum_run::is_dense(term const& t, std::initializer_list<labels const*> groups) const {
  extents order;
  for (auto const* g : groups)
    for (int label : *g) order.push_back(place(t.labels, label));
  return permute(t.x, order).layout().is_dense();
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor einsum(std::string_view equation, std::vector<tensor> const& operands, std::source_location at) {
  place_scope const here(at, "einsum");
  return detail::einsum_run(equation, operands, at).run();
}

}}  // namespace neap::v0
