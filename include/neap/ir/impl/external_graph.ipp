// The bodies of <neap/ir/external_graph.hpp>.
#pragma once

#include <neap/ir/external_graph.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/traversal.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace neap { inline namespace v0 {

/// Traversals of the owner's graph.
template <>
struct graph_traits<detail::traits_reader> {
  using reader = detail::traits_reader;
  static std::size_t op_count(reader const& g) { return g.op_count(); }
  static std::size_t value_count(reader const& g) { return g.value_count(); }
  static std::size_t storage_count(reader const& g) { return g.storage_count(); }
  static plain_vector<value_id> inputs(reader const& g, op_id o) { return g.inputs(o); }
  static plain_vector<value_id> outputs(reader const& g, op_id o) { return g.outputs(o); }
  static plain_vector<op_id> order_after(reader const& g, op_id o) { return g.order_after(o); }
  static storage_id storage(reader const& g, value_id v) { return g.storage(v); }
  static bytes_t bytes(reader const& g, storage_id s) { return g.bytes(s); }
};

namespace detail {

/// Reads a graph through its traits once; refuses what makes no sense with neap::error.
class external_reader {
 public:
  explicit external_reader(traits_reader const& g)
      : g_(g),
        op_count_(g.op_count()),
        value_count_(g.value_count()),
        storage_count_(g.storage_count()) {}

  external_image read() {
    read_storages();
    read_ops();
    for (auto o : topological_order(g_)) place_outputs(o);
    check_parts();
    find_edges();
    add_sources();
    number_values();
    for (auto o : id_range<op_id>(op_count_)) add_op(o);
    keep();
    add_pins();
    image_.program = std::move(edit_).finish();
    if (auto const cycle = find_cycle(image_.program); !cycle.empty())
      refuse(say_cycle(cycle) + ": a reader of a value runs before the op that overwrites it");
    return std::move(image_);
  }

 private:
  enum class way : std::uint8_t { fresh, view, write, sibling };
  struct value {
    op_id producer = nothing<op_id>;
    way how = way::fresh;
    std::int32_t of = -1;       // the argument that is viewed or written; of a sibling: the earlier output
    std::uint32_t version = 0;  // of its storage
    value_id image = nothing<value_id>;
  };
  struct part {
    bytes_t begin, end;
    op_id by;
  };
  struct storage_facts {
    bytes_t bytes = 0;
    bool resident = false, used = false;
    value_id source = nothing<value_id>;                    // the first one of the owner's
    op_id maker = nothing<op_id>, writer = nothing<op_id>;  // the op that puts the first value on it; the last version
    std::uint32_t versions = 0;
    std::vector<part> parts;  // of a temporary that ops fill in parts
    value_id last_part = nothing<value_id>;
    value_id image = nothing<value_id>;   // of the first source
    value_id newest = nothing<value_id>;  // of the first value of the newest version
  };
  struct hidden {
    storage_id storage;
    value_id part = nothing<value_id>;  // the one written before; nothing: what a source has put there
  };
  struct op_facts {
    std::vector<hidden> unread;   // storages written without being read: hidden arguments
    std::vector<value_id> reads;  // where it reads parts: of each argument, the value that is read for it
    std::vector<op_id> follows;   // ops that it must follow, by no value: hidden arguments too
    bool followed = false;        // a `follows` has it: a hidden output
    value_id token = nothing<value_id>;
  };

  [[noreturn]] static void refuse(std::string const& what) { throw_error({"external graph: ", what}); }
  static std::string say(op_id o) { return "op " + std::to_string(index(o)); }
  static std::string say(value_id v) { return "value " + std::to_string(index(v)); }
  static std::string say(storage_id s) { return "storage " + std::to_string(index(s)); }
  static std::string say_cycle(std::vector<op_id> const& ops) {
    constexpr std::size_t most = 8;
    std::string text = say(ops.front()) + " waits for itself";
    for (std::size_t i = 1; i < ops.size() && i < most; ++i) text += (i == 1 ? ", by way of " : ", ") + say(ops[i]);
    return ops.size() > most ? text + "..." : text;
  }

  value& of(value_id v) { return values_[v]; }
  storage_facts& under(value_id v) { return storages_[g_.storage(v)]; }

  void read_storages() {
    values_.resize(value_count_), storages_.resize(storage_count_), ops_.resize(op_count_);
    bytes_t total = 0;
    for (auto s : id_range<storage_id>(storage_count_)) {
      auto const bytes = g_.bytes(s);
      if (bytes < 0 || __builtin_add_overflow(total, bytes, &total) || total > INT64_MAX / 4)
        refuse(say(s) + " has " + std::to_string(bytes) + " bytes");
      storages_[s].bytes = bytes;
    }
    for (auto v : id_range<value_id>(value_count_))
      if (auto const s = g_.storage(v); index(s) >= storage_count_)
        refuse(say(v) + " lies in " + say(s) + ", and there are " + std::to_string(storage_count_));
    for (std::size_t s = 0; auto r : g_.residents()) storages_[id_at<storage_id>(s++)].resident = r;
  }
  void check(op_id o, value_id v, char const* does) const {
    if (index(v) >= value_count_) refuse(say(o) + does + say(v) + ", and there are " + std::to_string(value_count_));
  }
  void read_ops() {
    for (auto o : id_range<op_id>(op_count_)) {
      for (value_id v : g_.inputs(o)) check(o, v, " reads ");
      for (value_id v : g_.outputs(o)) {
        check(o, v, " makes ");
        if (auto& by = of(v).producer; by != nothing<op_id>)
          refuse(say(v) + " is made by " + say(by) + (by == o ? ", twice" : " and by " + say(o)));
        of(v).producer = o;
      }
      for (op_id b : g_.order_after(o))
        if (index(b) >= op_count_ || b == o)
          refuse(say(o) + " must run after " + (b == o ? "itself" : say(b) + ", which is none of the graph"));
    }
    for (auto v : id_range<value_id>(value_count_))
      if (of(v).producer == nothing<op_id>) {
        auto& s = under(v);
        if (s.source == nothing<value_id>) s.source = v;
      }
    if (auto const cycle = find_cycle(g_); !cycle.empty()) refuse(say_cycle(cycle));
  }

  /// What each output of an op is on its storage. Ops come in a valid order.
  void place_outputs(op_id o) {
    bool const is_view = g_.is_view(o);
    read_parts(o);
    std::int32_t j = 0;
    auto const outs = g_.outputs(o);
    for (value_id v : outs) {
      auto const id = g_.storage(v);
      auto& s = storages_[id];
      auto& me = of(v);
      std::int32_t k = 0;
      for (value_id earlier : outs) {
        if (k == j) break;
        if (g_.storage(earlier) == id) {
          me.how = way::sibling, me.of = k, me.version = of(earlier).version;
          if (!s.parts.empty() && !is_view) add_part(o, v, id, s);
          break;
        }
        ++k;
      }
      if (me.how != way::sibling) place(o, v, id, s, me, is_view);
      ++j;
    }
  }
  void place(op_id o, value_id v, storage_id id, storage_facts& s, value& me, bool is_view) {
    std::int32_t i = 0, from = -1;
    for (value_id in : g_.inputs(o)) {
      if (g_.storage(in) == id && (from < 0 || of(in).version > me.version)) from = i, me.version = of(in).version;
      ++i;
    }
    if (from >= 0 && !s.parts.empty()) me.version = s.versions;
    if (from < 0) {
      if (s.source == nothing<value_id> && !s.resident) {
        bool const is_first = s.maker == nothing<op_id>;
        if (is_part(v) && (is_first || !s.parts.empty())) {
          add_part(o, v, id, s);
          if (!is_first) {
            me.of = i + static_cast<std::int32_t>(ops_[o].unread.size());
            me.how = way::write, me.version = ++s.versions;
            ops_[o].unread.push_back({id, s.last_part});
          }
          s.maker = s.writer = o, s.last_part = v;
          return;
        }
        if (!is_first)
          refuse(say(o) + " puts " + say(v) + " on " + say(id) + ", which " + say(s.maker) + " makes and " + say(o) +
                 " does not read");
        s.maker = o;
        return;
      }
      from = i + static_cast<std::int32_t>(ops_[o].unread.size());
      ops_[o].unread.push_back({id});
    }
    me.of = from;
    me.how = is_view ? way::view : way::write;
    if (is_view) return;
    if (me.version != s.versions)
      refuse(say(s.writer) + " and " + say(o) + " both overwrite one version of " + say(id));
    me.version = ++s.versions;
    s.writer = o;
    if (!s.parts.empty()) s.last_part = v;
  }

  std::pair<bytes_t, bytes_t> part_of(value_id v) const { return g_.part(v, {0, storages_[g_.storage(v)].bytes}); }
  bool is_part(value_id v) const {
    return part_of(v) != std::pair<bytes_t, bytes_t>{0, storages_[g_.storage(v)].bytes};
  }
  static std::string say(bytes_t begin, bytes_t end) {
    return "bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  }
  void add_part(op_id o, value_id v, storage_id id, storage_facts& s) {
    auto const [begin, end] = part_of(v);
    if (begin < 0 || begin > end || end > s.bytes)
      refuse(say(v) + " covers " + say(begin, end) + " of " + say(id) + ", which has " + std::to_string(s.bytes));
    for (auto const& p : s.parts)
      if (auto const from = std::max(begin, p.begin), to = std::min(end, p.end); from < to)
        refuse(say(p.by) + " and " + say(o) + " both write " + say(from, to) + " of " + say(id));
    s.parts.push_back({begin, end, o});
  }
  /// Where an op reads a storage that ops fill in parts, it reads what is there then.
  void read_parts(op_id o) {
    std::size_t i = 0;
    for (value_id v : g_.inputs(o)) {
      auto const& s = under(v);
      if (!s.parts.empty()) {
        auto& reads = ops_[o].reads;
        reads.resize(std::max(reads.size(), i + 1), nothing<value_id>);
        reads[i] = of(v).version == s.versions ? v : s.last_part;
        part_reads_.push_back({o, v, s.parts.size()});
      }
      ++i;
    }
  }
  /// What is read of a whole is written before.
  void check_parts() const {
    for (auto const& r : part_reads_) {
      auto const& s = storages_[g_.storage(r.value)];
      auto const [begin, end] = part_of(r.value);
      for (auto k = r.parts; k < s.parts.size(); ++k)
        if (std::max(begin, s.parts[k].begin) < std::min(end, s.parts[k].end))
          refuse(say(r.op) + " reads " + say(r.value) + " before " + say(s.parts[k].by) + " writes " +
                 say(s.parts[k].begin, s.parts[k].end) + " of it");
    }
  }
  struct part_read {
    op_id op;
    value_id value;
    std::size_t parts;  // that were written then
  };

  /// Ops that an op must follow beyond what its values say.
  void find_edges() {
    std::vector<storage_id> written;
    for (auto o : id_range<op_id>(op_count_)) {
      written.clear();
      for (value_id v : g_.outputs(o))
        if (of(v).how == way::write) written.push_back(g_.storage(v));
      for (op_id b : g_.order_after(o)) {
        bool known = false;
        for (value_id v : g_.inputs(o)) known = known || of(v).producer == b;
        for (value_id v : g_.inputs(b))
          for (auto s : written) known = known || g_.storage(v) == s;
        for (auto f : ops_[o].follows) known = known || f == b;
        if (known) continue;
        ops_[o].follows.push_back(b);
        ops_[b].followed = true;
      }
    }
  }

  static tensor_layout layout(bytes_t n) { return tensor_layout::dense({dtype::u8, {n}}); }

  void add_sources() {
    auto const add = [&](storage_id id, value_id v) {
      auto& s = storages_[id];
      auto const r = s.resident ? role::buffer : role::donated;
      auto const image = s.image == nothing<value_id> ? edit_.add_source_at(r, layout(s.bytes), {}, s.bytes)
                                                      : edit_.add_source_view(s.image, layout(s.bytes));
      if (s.image == nothing<value_id>) s.image = image;
      image_.sources.push_back({id, v});
      return image;
    };
    for (auto v : id_range<value_id>(value_count_))
      if (of(v).producer == nothing<op_id>) of(v).image = add(g_.storage(v), v);
    for (auto id : id_range<storage_id>(storage_count_))
      if (storages_[id].resident && storages_[id].image == nothing<value_id>) add(id, nothing<value_id>);
  }
  /// Ops are added in the order of their ids, and may read what comes later.
  void number_values() {
    std::size_t next = image_.sources.size();
    for (auto o : id_range<op_id>(op_count_)) {
      for (value_id v : g_.outputs(o)) of(v).image = id_at<value_id>(next++);
      if (ops_[o].followed) ops_[o].token = id_at<value_id>(next++);
    }
    for (auto v : id_range<value_id>(value_count_))
      if (auto& s = under(v); s.newest == nothing<value_id> && of(v).version == s.versions) s.newest = of(v).image;
  }

  void add_op(op_id o) {
    auto const& me = ops_[o];
    arguments_.clear(), rules_.clear();
    for (value_id v : g_.inputs(o)) {
      auto const i = arguments_.size();
      bool const other = i < me.reads.size() && me.reads[i] != nothing<value_id>;
      arguments_.push_back(of(other ? me.reads[i] : v).image);
    }
    op::external x;
    x.inputs = static_cast<std::int64_t>(arguments_.size());
    for (auto const& h : me.unread)
      arguments_.push_back(h.part == nothing<value_id> ? storages_[h.storage].image : of(h.part).image);
    for (auto b : me.follows) arguments_.push_back(ops_[b].token);
    for (value_id v : g_.outputs(o)) {
      auto const& it = of(v);
      bool const shares = it.how != way::fresh;
      bool const writes = it.how == way::write, overwrites = writes && !under(v).resident;
      auto const kind = !shares || overwrites ? alias_kind::fresh : writes ? alias_kind::update : alias_kind::view;
      auto const bytes = under(v).bytes;
      rules_.push_back({layout(bytes), kind, it.how == way::sibling ? -2 - it.of : it.of, bytes});
    }
    x.outputs = static_cast<std::int64_t>(rules_.size());
    if (me.followed) rules_.push_back({layout(0), alias_kind::fresh, -1, 0});
    describe(o, x);
    edit_.add_given(view_of(x), span_of(arguments_), span_of(rules_));
    if (auto const name = g_.name(o); !name.empty()) edit_.set_name(o, name);
  }
  /// Every output on the storage that is put there must allow it; the image checks the first one alone.
  bool may_take_over(op_id o, std::size_t i, std::size_t j) const {
    std::size_t k = 0;
    auto const outs = g_.outputs(o);
    storage_id to = nothing<storage_id>;
    for (value_id v : outs)
      if (k++ == j) to = g_.storage(v);
    bool all = true;
    k = 0;
    for (value_id v : outs) {
      if (g_.storage(v) == to) all = all && g_.may_take_over(o, i, k);
      ++k;
    }
    return all;
  }
  void describe(op_id o, op::external& x) {
    x.id = static_cast<std::int64_t>(index(o));
    x.view = g_.is_view(o);
    x.stream = static_cast<std::int64_t>(g_.stream(o));
    if (g_.is_recomputable(o) && ops_[o].followed) x.once = op::external::followed;
    x.recomputable = (g_.is_recomputable(o) || g_.pins(o).has(pin::run_again)) && g_.stream(o) == op_stream::compute &&
                     !ops_[o].followed;
    x.workspace_bytes = g_.workspace(o);
    if (x.workspace_bytes < 0 || x.workspace_bytes > INT64_MAX / 4)
      refuse(say(o) + " needs a workspace of " + std::to_string(x.workspace_bytes) + " bytes");
    x.seconds = g_.seconds(o);
    if (!(x.seconds >= 0) || std::isinf(x.seconds) || std::isnan(g_.given_seconds(o)))
      refuse(say(o) + " takes " + std::to_string(std::isnan(g_.given_seconds(o)) ? NAN : x.seconds) + " seconds");
    auto const n = static_cast<std::size_t>(x.inputs), m = static_cast<std::size_t>(x.outputs);
    if (g_.takes_over(o))
      for (std::size_t i = 0; i < n && m > 0 && x.pair(i, 0) < op::external::bits; ++i)
        for (std::size_t j = 0; j < m && x.pair(i, j) < op::external::bits; ++j)
          if (may_take_over(o, i, j)) x.takes_over |= std::int64_t{1} << x.pair(i, j);
    std::size_t j = 0;
    for (value_id v : g_.outputs(o)) {
      if (j < op::external::bits && !g_.is_swappable(g_.storage(v))) x.stays |= std::int64_t{1} << j;
      ++j;
    }
  }

  void add_pins() {
    auto const pinned = [&](auto const& who, auto image, pin_set p) {
      if (p.empty()) return;
      try {
        edit_.add_pins(image, p);
      } catch (error const&) {
        refuse(say(who) + " cannot be pinned " + to_string(p) + ": they exclude each other, or it writes in place");
      }
    };
    for (auto o : id_range<op_id>(op_count_)) pinned(o, o, g_.pins(o));
    for (auto v : id_range<value_id>(value_count_)) pinned(v, of(v).image, g_.pins(v));
    // An op says of its results which ones stay; a donated input has a pin for it.
    for (auto v : id_range<value_id>(value_count_))
      if (of(v).producer == nothing<op_id> && !under(v).resident && !g_.is_swappable(g_.storage(v)))
        pinned(v, of(v).image, pin::never_out);
  }

  /// A storage that is kept lives to the end with its newest value.
  void keep() {
    for (value_id v : g_.kept()) {
      if (index(v) >= value_count_) refuse(say(v) + " is kept, and there are " + std::to_string(value_count_));
      auto const& s = under(v);
      if (s.resident) continue;
      auto const image = of(v).version == s.versions ? of(v).image : s.newest;
      if (!edit_.graph().is_kept(image)) edit_.keep(image, role::output);
    }
  }

  traits_reader const& g_;
  std::size_t op_count_, value_count_, storage_count_;
  table<value_id, value> values_;
  table<storage_id, storage_facts> storages_;
  table<op_id, op_facts> ops_;
  std::vector<part_read> part_reads_;
  graph_editor edit_{operator_table()};
  external_image image_;
  plain_vector<value_id> arguments_;
  std::vector<output_rule> rules_;
};

NEAP_FUNC external_image image_of(traits_reader const& owner) { return external_reader(owner).read(); }

}  // namespace detail

}}  // namespace neap::v0
