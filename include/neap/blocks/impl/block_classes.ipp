// The bodies of <neap/blocks/block_classes.hpp>.
#pragma once

#include <neap/blocks/block_classes.hpp>

#include <neap/core/number_map.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/ir/attribute_numbers.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

namespace detail {

class block_writer {
 public:
  block_writer(op_graph const& g, block_chain const& c, std::uint32_t k) : g_(g), c_(c), k_(k) {}

  /// The block as words; appends to `names`.
  std::vector<std::uint64_t> write(block_names& names) {
    auto const& b = c_.blocks[k_];
    names_ = &names;
    for (auto const* list : {&b.forward, &b.backward, &b.updates}) {
      put(list->size());
      for (auto o : *list) write_op(o);
    }
    // How what leaves the block is used is known only now; that an op outside must run first is not a matter of it.
    for (auto v : names.values) {
      put(g_.is_kept(v));
      bool outside = false;
      for (auto const& u : g_.uses(v)) outside |= c_.block_of[u.op] != k_;
      auto const from = g_.producer(v);
      put(outside && from != nothing<op_id> && c_.block_of[from] == k_);
    }
    return std::move(words_);
  }

 private:
  void put(std::uint64_t x) { words_.push_back(x); }
  void put_text(std::string_view s) {
    put(s.size());
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
      word = word << 8 | static_cast<unsigned char>(s[i]);
      if (i % 8 == 7 || i + 1 == s.size()) put(word), word = 0;
    }
  }
  void put_extents(extents const& e) {
    put(static_cast<std::uint64_t>(e.rank()));
    for (int a = 0; a < e.rank(); ++a) put(static_cast<std::uint64_t>(e[a]));
  }
  /// The number of a key, given at its first appearance.
  static std::uint32_t number(number_map& all, std::uint64_t key) {
    all.add(key, static_cast<std::uint32_t>(all.size()));
    return all.find(key);
  }

  void write_attribute(attribute_value const& a) {
    put(a.index());
    each_number(a, [this](std::uint64_t n) { put(n); });
  }
  void write_op(op_id o) {
    names_->ops.push_back(o);
    ops_.add(index(o), static_cast<std::uint32_t>(ops_.size()));
    auto const& f = g_.facets(o);
    put(static_cast<std::uint64_t>(g_.record(o).kind));
    put_text(g_.target(o));
    put_text(g_.details(o));
    bool const random = is_random(g_, o);
    for (auto const& field : f.attributes) {
      auto const a = field.get(g_.attributes(o));
      if (random && field.name == "key" && std::holds_alternative<std::int64_t>(a))
        put(number(keys_, static_cast<std::uint64_t>(std::get<std::int64_t>(a))));
      else write_attribute(a);
    }
    put(g_.inputs(o).size());
    for (auto v : g_.inputs(o)) write_value(v);
    put(g_.outputs(o).size());
    for (auto v : g_.outputs(o)) write_value(v);
    std::vector<std::uint32_t> after;  // inside the block
    for (auto from : g_.order_after(o))
      if (auto const n = ops_.find(index(from)); n != number_map::none) after.push_back(n);
    std::sort(after.begin(), after.end());
    put(after.size());
    for (auto n : after) put(n);
  }
  enum class place : std::uint64_t { inside, source, prologue, forward, backward };
  void write_value(value_id v) {
    auto const known = values_.find(index(v));
    put(known == number_map::none ? values_.size() : known);
    if (known != number_map::none) return;
    values_.add(index(v), static_cast<std::uint32_t>(values_.size()));
    names_->values.push_back(v);
    auto const& r = g_.record(v);
    auto const s = r.storage;
    auto const maker = r.producer;
    auto at = place::inside;
    if (maker == nothing<op_id>) at = place::source;
    else if (c_.block_of[maker] == block_chain::prologue_block) at = place::prologue;
    else if (c_.block_of[maker] != k_) at = c_.part[maker] == step_part::forward ? place::forward : place::backward;
    put(static_cast<std::uint64_t>(at));
    put(number(storages_, index(s)));
    put(static_cast<std::uint64_t>(g_.bytes(s)));
    put(g_.is_resident(s));
    put(static_cast<std::uint64_t>(g_.role(g_.record(s).first)));
    put(static_cast<std::uint64_t>(r.role));
    auto const& l = g_.layout(v);
    put(static_cast<std::uint64_t>(l.type.element));
    put_extents(l.type.dims);
    put_extents(l.strides);
    put(static_cast<std::uint64_t>(l.offset));
    if (at == place::inside) {
      put(static_cast<std::uint64_t>(r.alias));
      put(static_cast<std::uint64_t>(r.of + 0x8000));
    }
  }
  op_graph const& g_;
  block_chain const& c_;
  std::uint32_t k_;
  block_names* names_ = nullptr;
  number_map values_, storages_, keys_, ops_;
  std::vector<std::uint64_t> words_;
};

}  // namespace detail

NEAP_FUNC block_names names_of(op_graph const& g, block_chain const& c, std::uint32_t block) {
  block_names n;
  (void)detail::block_writer(g, c, block).write(n);
  return n;
}

NEAP_FUNC std::vector<std::uint64_t> written_block(op_graph const& g, block_chain const& c, std::uint32_t block) {
  block_names n;
  return detail::block_writer(g, c, block).write(n);
}

NEAP_FUNC std::vector<block_class> classify(op_graph const& g, block_chain& c) {
  std::vector<block_class> classes;
  std::vector<std::vector<std::uint64_t>> written;  // of the representatives
  number_map first;                                 // by hash: a class; others with the hash follow by `next`
  std::vector<std::uint32_t> next;
  for (std::uint32_t k = 0; k < c.blocks.size(); ++k) {
    auto words = written_block(g, c, k);
    digest d;
    for (auto w : words) d = d.mix(w);
    auto at = first.find(d.low);
    while (at != number_map::none && written[at] != words) at = next[at];
    if (at == number_map::none) {
      at = static_cast<std::uint32_t>(classes.size());
      next.push_back(first.find(d.low));
      first.set(d.low, at);
      classes.push_back({k, {}});
      written.push_back(std::move(words));
    }
    classes[at].blocks.push_back(k);
    c.blocks[k].block_class = at;
  }
  return classes;
}

NEAP_FUNC block_renaming renaming(op_graph const& g, block_chain const& c, std::uint32_t from, std::uint32_t to) {
  if (c.blocks[from].block_class != c.blocks[to].block_class) throw error("blocks: these two are not equal");
  auto const a = names_of(g, c, from), b = names_of(g, c, to);
  block_renaming r;
  r.op.assign(g.op_count(), nothing<op_id>);
  r.value.assign(g.value_count(), nothing<value_id>);
  for (std::size_t i = 0; i < a.ops.size(); ++i) r.op[a.ops[i]] = b.ops[i];
  for (std::size_t i = 0; i < a.values.size(); ++i) r.value[a.values[i]] = b.values[i];
  return r;
}

}}  // namespace neap::v0
