// What a call of a compiled function begins with or leaves behind: the parts of its arguments, in one order, and their
// signature, a string of bytes that is equal where tensors' types and aliasing, plain values and structure are.
#pragma once

#include <neap/capture/any_length.hpp>
#include <neap/capture/shared_elements.hpp>
#include <neap/capture/walk.hpp>
#include <neap/core/number_map.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The nodes of the tensors that it is shown.
class node_list final : public part_visitor {
 public:
  explicit node_list(std::vector<tensor_node const*>& to) : to_(&to) {}
  void visit(tensor& x) override {
    if (!x.is_empty()) to_->push_back(x.node().get());
  }

 private:
  std::vector<tensor_node const*>* to_;
};

/// One after the last element of its storage that a layout has.
inline std::int64_t reach(tensor_layout const& l) {
  std::int64_t last = l.offset;
  for (int k = 0; k < l.type.rank(); ++k) {
    if (l.type.dims[k] == 0) return 0;
    last += (l.type.dims[k] - 1) * l.strides[k];
  }
  return last + 1;
}
/// Whether graphs may take a part of this memory for all of it: no other part of the call's arguments has a use for it.
inline bool may_be_window(tensor_storage const& s) { return s.role() == role::activation || s.role() == role::input; }

class argument_state final : public part_visitor {
 public:
  struct scalar_place {
    void* address;
    void* value;
    std::size_t bytes;
    symbol_id* symbol;
  };
  struct plain_place {
    void* value;  // the bytes, or the string
    bool is_text;
    std::size_t at, bytes;  // in plain_bytes
  };
  struct memory_state {
    bool frozen;
    neap::role role;
    std::uint32_t replacements;
    friend bool operator==(memory_state const&, memory_state const&) = default;
  };
  struct name_end {
    std::size_t end;  // in the signature
    std::string name;
  };

  /// `named`: the paths of parts are kept. `lengths`: those that may change have no part in the signature.
  explicit argument_state(bool named = false, std::vector<any_length> const* lengths = nullptr)
      : named_(named),
        any_lengths_(lengths) {}

  void visit(tensor& x) override {
    if (named_) note();
    auto const number = static_cast<std::uint32_t>(tensors.size());
    objects_.add(&x, number);
    put(std::uint64_t{number - objects_.find(&x)});  // the same variable twice: what writes one writes the other
    tensors.push_back(&x);
    handles.push_back(x);
    if (named_) tensor_names.push_back(path_);
    if (x.is_empty()) {
      memory.push_back({});
      return put(std::uint64_t{0});
    }
    if (x.is_traced()) {
      memory.push_back({});
      unusable = "an argument belongs to a trace";
      return put(std::uint64_t{1});
    }
    auto const& s = x.storage();
    bool const first = storages_.add(s.get(), number);
    put(std::uint64_t{2} + storages_.find(s.get()));
    auto const& l = x.layout();
    bool const changes = put_type_of(x);
    if (!l.is_dense() && !changes)
      for (auto k : l.strides) put(static_cast<std::uint64_t>(k));
    put(std::uint64_t{l.is_dense()});
    auto const* n = x.node().get();
    memory.push_back(memory_of(x));
    put(std::uint64_t{n->wants_gradient} | std::uint64_t{n->though_frozen} << 1 | std::uint64_t{n->of_gradient} << 2 |
        std::uint64_t{n->facets != nullptr} << 3 | std::uint64_t{s->is_frozen()} << 4 |
        static_cast<std::uint64_t>(s->role()) << 5);
    if (first && s->is_borrowed()) borrowed_.push_back(number);
    if (reach(l) > s->type().count()) unusable = "an argument looks at memory with strides of its own";
  }
  void scalar(void* address, void* value, std::size_t bytes, symbol_id* symbol) override {
    put_address(address);
    scalars.push_back({address, value, bytes, symbol});
    if (named_) scalar_names.push_back(path_);
  }
  void plain(void* value, std::size_t bytes) override {
    if (named_) note();
    put_address(value);
    plains.push_back({value, false, plain_bytes.size(), bytes});
    plain_bytes.append(static_cast<char const*>(value), bytes);
    signature.append(static_cast<char const*>(value), bytes);
  }
  void text(std::string& x) override {
    if (named_) note();
    put_address(&x);
    plains.push_back({&x, true, plain_bytes.size(), x.size()});
    plain_bytes += x;
    put(x.size());
    signature += x;
  }
  void structure(std::uint64_t n) override {
    if (named_) note();
    put(n), put_shape(n);
  }
  void structure(std::string_view key) override {
    if (named_) note();
    put(key.size()), put_shape(key.size());
    signature += key, form += key;
  }
  void unlisted(unsigned char const* first, std::size_t n) override {
    if (named_)
      names.push_back({signature.size(), "a byte of " + path_ +
                                             " that its neap_fields does not list (padding, or a member: list all, or "
                                             "promise by neap_rest_is_derived that the rest does not matter)"});
    std::string_view const bytes(reinterpret_cast<char const*>(first), n);
    signature += bytes, form += bytes;
  }
  void container(void const* x) override {
    auto const number = static_cast<std::uint32_t>(containers_.size());
    containers_.add(x, number);
    put(std::uint64_t{number - containers_.find(x)});
  }
  void tracked(tracked_base& x) override {
    part_visitor::tracked(x);
    if (std::ranges::find(tracked_, &x) == tracked_.end()) tracked_.push_back(&x);
  }
  void enter(std::string_view name, std::size_t number) override {
    if (depth_++ == 0) argument_ = number;
    if (!named_) return;
    lengths_.push_back(path_.size());
    if (!path_.empty()) path_ += '.';
    path_ += name.empty() ? std::to_string(number) : std::string(name);
  }
  void leave() override {
    --depth_;
    if (!named_) return;
    path_.resize(lengths_.back());
    lengths_.pop_back();
  }
  /// Bytes before the parts, or between them.
  void put(std::uint64_t n) { signature.append(reinterpret_cast<char const*>(&n), sizeof n); }

  /// Call after the walk: whether two storages overlap, at least one of which looks at another owner's memory.
  void check_overlap() {
    for (auto const b : borrowed_)
      for (std::size_t i = 0; i < handles.size(); ++i) {
        if (handles[i].is_empty() || handles[i].is_traced() || handles[i].storage() == handles[b].storage()) continue;
        auto& s = *handles[b].storage();
        auto& other = *handles[i].storage();
        if (!other.is_allocated()) continue;
        if (s.data() < other.data() + other.bytes() && other.data() < s.data() + s.bytes())
          unusable = "two arguments overlap in borrowed memory";
      }
  }
  /// Call after the walk: where tensors are in their storages is a part of the signature. `takes_windows`: of a storage of
  /// which they see a part alone, where they are to one another.
  void ask_places(bool takes_windows) {
    windows.resize(handles.size());
    for (std::uint32_t k = 0; k < handles.size(); ++k) {
      if (handles[k].is_empty() || handles[k].is_traced()) continue;
      auto const first = storages_.find(handles[k].storage().get());
      if (first == k && takes_windows) find_window(k);
      auto const& w = windows[k] = windows[first];
      if (named_) names.push_back({signature.size(), tensor_names[k]});
      if (any_lengths_ && changing_.contains(k)) continue;
      put(static_cast<std::uint64_t>(handles[k].layout().offset - w.base));
      put(std::uint64_t{w.is_part});
      if (!w.is_part) put_type(handles[k].storage()->type());
    }
  }
  /// Call after the walk: which elements of tracked containers share memory is a part of the signature.
  void ask_sharing() {
    if (named_) names.push_back({signature.size(), "which elements of tracked containers share memory"});
    signature += shared_elements(tracked_, storages_, handles.size());
    knows_sharing = true;
  }
  /// Its tracked containers.
  std::vector<tracked_base*> const& tracked() const { return tracked_; }
  /// The nodes of all tensors, those of tracked containers among them; the same variable counts once.
  void add_owners(std::vector<tensor_node const*>& to) const {
    number_map seen;
    for (auto const* t : tensors)
      if (!t->is_empty() && seen.add(t, 0)) to.push_back(t->node().get());
    node_list of_containers(to);
    for (auto* c : tracked_) c->show(of_containers);
  }
  /// What a call could change of a tensor's memory besides its elements.
  static memory_state memory_of(tensor const& t) {
    auto const& s = *t.storage();
    return {s.is_frozen(), s.role(), s.replacements()};
  }
  /// The name of the part whose bytes are at this place of the signature.
  std::string name_at(std::size_t place) const {
    std::string found = "the arguments";
    for (auto const& n : names) {
      if (n.end > place) break;
      found = n.name;
    }
    return found;
  }

  /// The part of a storage that arguments see.
  struct window {
    bool is_part = false;   // else all of it is a graph's
    std::int64_t base = 0;  // its first element
    tensor_type type{};     // as one tensor
  };

  std::vector<tensor*> tensors;
  std::vector<tensor> handles;       // the tensors themselves, as they were at the walk
  std::vector<memory_state> memory;  // of handles
  std::vector<window> windows;       // of handles, after ask_places()
  std::vector<scalar_place> scalars;
  std::vector<plain_place> plains;
  std::string plain_bytes, signature;
  std::string form;  // the structure alone
  std::vector<name_end> names;
  std::vector<std::string> scalar_names, tensor_names;  // of scalars, of tensors
  bool knows_sharing = false;
  char const* unusable = nullptr;  // why a graph cannot take these arguments

 private:
  void note() { names.push_back({signature.size(), path_}); }
  /// Whether an earlier scalar or plain value is the same object, and which.
  void put_address(void const* p) {
    auto const number = static_cast<std::uint32_t>(scalars.size() + plains.size());
    addresses_.add(p, number);
    put(std::uint64_t{number - addresses_.find(p)});
  }
  void find_window(std::uint32_t first) {
    auto const& s = *handles[first].storage();
    if (!may_be_window(s)) return;
    auto base = s.type().count();
    std::int64_t end = 0;
    bool is_one = true;
    for (std::uint32_t k = first; k < handles.size(); ++k) {
      auto const& h = handles[k];
      if (h.is_empty() || h.is_traced() || h.storage() != handles[first].storage()) continue;
      auto const& l = h.layout();
      if (l.type.count() == 0) return;
      is_one = is_one && l.is_dense() && l == handles[first].layout();
      base = std::min(base, l.offset), end = std::max(end, reach(l));
    }
    if (base == 0 && end == s.type().count()) return;
    windows[first] = {true, base,
                      is_one ? handles[first].layout().type : tensor_type{s.type().element, shape{end - base}}};
  }
  void put_shape(std::uint64_t n) { form.append(reinterpret_cast<char const*>(&n), sizeof n); }
  /// The type of a tensor, but for lengths that may change; whether there are such.
  bool put_type_of(tensor const& x) {
    auto type = x.type();
    if (any_lengths_ && (x.storage()->role() == role::activation || x.storage()->role() == role::input))
      for (int k = 0; k < type.rank(); ++k)
        if (may_change(*any_lengths_, argument_, x.type(), k)) type.dims[k] = -1;
    put_type(type);
    bool const changes = type != x.type();
    if (changes) changing_.add(static_cast<std::uint32_t>(handles.size() - 1), 0);
    return changes;
  }
  void put_type(tensor_type const& t) {
    put(static_cast<std::uint64_t>(t.element) | static_cast<std::uint64_t>(t.rank()) << 8);
    for (auto d : t.dims) put(static_cast<std::uint64_t>(d));
  }
  bool named_;
  std::vector<any_length> const* any_lengths_;
  std::size_t depth_ = 0, argument_ = 0;
  number_map changing_;  // tensors with such lengths
  number_map storages_, addresses_, objects_, containers_;
  std::vector<std::uint32_t> borrowed_;
  std::vector<tracked_base*> tracked_;
  std::string path_;
  std::vector<std::size_t> lengths_;
};

/// How often each node is among these, each standing for one owner.
class owner_counts {
 public:
  explicit owner_counts(std::vector<tensor_node const*> const& owners) {
    for (auto const* n : owners) {
      if (rows_.add(n, static_cast<std::uint32_t>(counts_.size()))) counts_.push_back(0);
      ++counts_[rows_.find(n)];
    }
  }
  long of(tensor_node const* n) const {
    auto const row = rows_.find(n);
    return row == number_map::none ? 0 : counts_[row];
  }

 private:
  number_map rows_;
  std::vector<long> counts_;
};

/// Owners of the inputs among the arguments beside those that are counted. (Weights are shared by threads.)
inline std::vector<long> other_owners(argument_state const& begin, owner_counts const& counted) {
  std::vector<long> others;
  for (auto const& h : begin.handles)
    if (!h.is_empty() && may_be_window(*h.storage()))
      others.push_back(h.node().use_count() - counted.of(h.node().get()));
  return others;
}

/// Of several walks.
inline std::vector<tensor_node const*> owners_in(std::initializer_list<argument_state const*> walks) {
  std::vector<tensor_node const*> all;
  for (auto const* w : walks) w->add_owners(all);
  return all;
}

}}}  // namespace neap::v0::detail
