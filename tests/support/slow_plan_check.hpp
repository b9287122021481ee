// A second judge of plan files, slow and plain: it reads the tables as an engine in another language would, and plays the
// step through byte by byte. Which buffer owns each byte at each step, what each byte holds, which version of a storage
// each reader therefore sees, and when each step can begin. It shares no code with the readers and the verifier of neap;
// of the library it uses the original graph, the digest that names it, and the planner's lower bound.
//
//   std::string const wrong = slow_plan_check(original, document);      // empty: the plan is right
//
// For graphs of opaque ops whose ids are a valid order, with dense layouts.
#pragma once

#include <neap/core/tensor_type.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/simulate/lower_bound.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace neap::testing {

class slow_plan_checker {
 public:
  using json = nlohmann::json;
  slow_plan_checker(graph const& original, json const& plan) : g_(original), j_(plan) {}

  /// A time that is told in seconds besides is the one in microseconds.
  static void same_times(json const& j) {
    if (j.is_array())
      for (auto const& x : j) same_times(x);
    if (!j.is_object()) return;
    for (auto const& [key, x] : j.items()) {
      same_times(x);
      if (!key.ends_with("_s") || !x.is_number()) continue;
      auto const base = key.substr(0, key.size() - 2);
      for (auto const& name : {base, base + "_us"})
        if (j.contains(name) && j.at(name).is_number()) {
          double const us = j.at(name).get<double>();
          if (!(std::abs(1e6 * x.get<double>() - us) <= 1e-12 * us)) throw wrong{key + ": another time"};
        }
    }
  }

  std::string run() {
    try {
      same_times(j_);
      run_original();
      header();
      tables();
      graph_of_plan();
      order();
      times();
      lives();
      owners();
      play();
    } catch (wrong const& w) { return w.what; } catch (std::exception const& e) {
      return std::string("not as the format says: ") + e.what();
    }
    return {};
  }

 private:
  struct wrong {
    std::string what;
  };
  static void need(bool ok, std::string const& what) {
    if (!ok) throw wrong{what};
  }
  static std::int64_t whole(json const& j) {
    need(j.is_number_integer(), "must be an integer");
    return j.get<std::int64_t>();
  }
  static double number(json const& j) {
    need(j.is_number(), "must be a number");
    return j.get<double>();
  }
  static std::size_t id(json const& j, std::size_t below) {
    auto const x = whole(j);
    need(x >= 0 && static_cast<std::size_t>(x) < below, "an id out of range");
    return static_cast<std::size_t>(x);
  }
  static bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-9; }

  // ---------------------------------------------------------------- tensors

  struct tensor {
    std::size_t storage = 0;
    std::string type;  // element, shape, strides
    std::int64_t first_byte = 0, end_byte = 0;
    bool made = false;
  };
  static std::string list(json const& j) { return j.dump(); }
  static std::string list(extents const& e) {
    json j = json::array();
    for (auto i : e) j.push_back(i);
    return j.dump();
  }
  static std::string element(dtype t) { return t == dtype::boolean ? "b8" : std::string(name_of(t)); }
  static std::int64_t size_of_element(std::string const& name) {
    if (name == "b8" || name == "u8") return 1;
    if (name == "f64" || name == "i64") return 8;
    if (name == "f16" || name == "bf16") return 2;
    need(name == "f32" || name == "i32", "an unknown element type");
    return 4;
  }
  static tensor describe(std::string const& element_name, json const& shape, json const& strides, std::int64_t offset) {
    tensor t;
    auto const size = size_of_element(element_name);
    std::int64_t last = offset;
    need(shape.is_array() && strides.is_array() && shape.size() == strides.size() && offset >= 0, "a wrong layout");
    for (std::size_t i = 0; i < shape.size(); ++i) {
      need(whole(shape[i]) > 0, "a wrong extent");
      last += (whole(shape[i]) - 1) * whole(strides[i]);
    }
    t.type = element_name + shape.dump() + strides.dump();
    t.first_byte = offset * size, t.end_byte = (last + 1) * size;
    return t;
  }
  static json dense(json const& shape) {
    json strides = json::array();
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) strides.insert(strides.begin(), step), step *= whole(shape[i]);
    return strides;
  }
  tensor original_tensor(value_id v) const {
    auto const& l = g_.layout(v);
    auto t = describe(element(l.type.element), json::parse(list(l.type.dims)), json::parse(list(l.strides)), l.offset);
    t.storage = index(g_.storage(v));
    return t;
  }

  // ---------------------------------------------------------------- the original, run in its own order
  // What a storage holds is a number; what a reader finds is that number, where in it, and how it is looked at.

  using content = std::uint32_t;
  content content_of(std::string const& what) {
    return contents_.emplace(what, static_cast<content>(contents_.size() + 1)).first->second;
  }
  static std::string seen(content c, std::int64_t at, std::string const& type) {
    return std::to_string(c) + "@" + std::to_string(at) + ":" + type;
  }
  /// All that a file says of what an op is.
  static std::string said_of(op_graph const& g, op_id o) {
    auto const& x = *g.as<op::opaque>(o);
    json j{{"op", g.target(o)}, {"details", g.details(o)},      {"pointwise", x.pointwise}, {"rng", x.rng},
           {"impure", !x.pure}, {"placeholder", x.placeholder}, {"key", x.rng ? x.key : 0}, {"flops", x.flops},
           {"read", x.read},    {"write", x.written},           {"seconds", x.seconds},     {"name", g.name(o)}};
    return j.dump();
  }
  void run_original() {
    std::vector<content> holds(g_.storage_count(), 0);
    std::size_t nth = 0;
    for (auto s : g_.storages())
      if (g_.is_resident(s)) holds[index(s)] = content_of("source " + std::to_string(nth++));
    for (auto o : g_.ops()) {
      ran r;
      r.said = said_of(g_, o);
      for (auto v : g_.inputs(o)) {
        auto const t = original_tensor(v);
        r.reads.push_back(seen(holds[t.storage], t.first_byte, t.type));
      }
      auto const* x = g_.as<op::opaque>(o);
      r.once = !x->pure && !x->placeholder;
      std::string what = r.said;
      for (auto const& s : r.reads) what += " " + s;
      for (auto v : g_.outputs(o)) {
        auto const& rec = g_.record(v);
        r.once |= rec.alias == alias_kind::update;
        what += " " + original_tensor(v).type + std::to_string(static_cast<int>(rec.alias)) + std::to_string(rec.of) +
                (rec.alias == alias_kind::fresh ? std::to_string(g_.bytes(g_.storage(v))) : "");
      }
      if (x->rng || r.once || x->placeholder) what += " only " + std::to_string(index(o));
      std::size_t k = 0;
      for (auto v : g_.outputs(o)) {
        auto const& rec = g_.record(v);
        output out{original_tensor(v), rec.alias, rec.of, g_.bytes(g_.storage(v)),
                   content_of(what + " -> " + std::to_string(k++))};
        if (rec.alias != alias_kind::view) holds[out.is.storage] = out.makes;
        r.outputs.push_back(out);
      }
      ops_.push_back(r);
    }
    for (auto v : g_.kept()) {
      auto const t = original_tensor(v);
      kept_.push_back(seen(holds[t.storage], t.first_byte, t.type));
      kept_kind_.push_back(g_.role(v) == role::loss ? "loss" : g_.role(v) == role::gradient ? "grad" : "output");
    }
    for (auto s : g_.storages())
      if (g_.is_resident(s)) final_.push_back(holds[index(s)]);
  }

  // ---------------------------------------------------------------- what the file says

  void header() {
    need(j_.at("format") == "neap.plan" && j_.at("version") >= 2 && j_.at("version") <= 4, "another format");
    need(j_.at("fingerprint") == to_hex(g_.digest()), "made for another graph");
    align_ = whole(j_.at("options").at("alignment"));
    need(align_ >= 1, "the alignment");
    takeover_ = j_.at("options").at("takeover").get<bool>();
    (void)j_.at("source").at("optimizer").get<bool>();
    auto const& magis = j_.at("source").at("magis");
    need(magis == "magis" || magis == "aliased", "how a graph is read");
    auto const numbers = j_.at("durations").at("device").flatten();
    for (auto const& [key, x] : numbers.items())
      if (key.find("free_ops") == key.npos) need(number(x) >= 0, "a device of negative numbers");
  }
  std::int64_t rounded(std::int64_t n) const { return (n + align_ - 1) / align_ * align_; }

  void tables() {
    for (auto const& s : j_.at("storages")) {
      bytes_.push_back(whole(s.at("bytes")));
      need(bytes_.back() >= 0, "negative bytes");
      resident_.push_back(s.at("kind") != "temp");
    }
    for (auto const& t : j_.at("tensors")) {
      auto const dims = t.at("shape");
      auto x = describe(t.at("dtype").get<std::string>(), dims, t.contains("stride") ? t.at("stride") : dense(dims),
                        t.contains("offset") ? whole(t.at("offset")) : 0);
      x.storage = id(t.at("buf"), bytes_.size());
      tensors_.push_back(x);
    }
    for (auto const& n : j_.at("nodes"))
      for (auto const& t : n.at("out")) {
        auto& x = tensors_[id(t, tensors_.size())];
        need(!x.made, "a tensor is made twice");
        x.made = true;
      }
    // What is there before the step is what the original has, in its order.
    std::vector<std::size_t> sources, storage_of_source(g_.storage_count(), SIZE_MAX);
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      if (!tensors_[t].made) sources.push_back(t);
    need(sources.size() == g_.sources().size(), "another number of sources");
    for (std::size_t i = 0; i < sources.size(); ++i) {
      auto const v = g_.sources()[i];
      auto const is = tensors_[sources[i]], was = original_tensor(v);
      need(is.type == was.type && is.first_byte == was.first_byte, "a source of another type");
      auto& same = storage_of_source[was.storage];
      if (same == SIZE_MAX) {
        same = is.storage;
        need(std::find(residents_.begin(), residents_.end(), is.storage) == residents_.end(),
             "two sources in one storage");
        residents_.push_back(same);
        auto const& row = j_.at("storages")[same];
        need(bytes_[same] == g_.bytes(g_.storage(v)), "a source's storage has other bytes");
        need(row.value("name", "") == std::string(g_.name(v)), "a source's storage has another name");
        char const* const kinds[] = {"param", "state", "buffer", "input", "const"};
        need(row.at("kind") == kinds[static_cast<int>(g_.role(v))], "a source's storage is of another kind");
      }
      need(same == is.storage, "sources of one storage lie in two");
    }
    for (std::size_t s = 0; s < bytes_.size(); ++s)
      need(resident_[s] == (std::find(residents_.begin(), residents_.end(), s) != residents_.end()),
           "a storage is there before the step, or is not");
  }

  struct node {
    std::vector<std::size_t> in, out;
    int kind = 0;  // compute, store, load, wait
    std::size_t origin = 0;
    double seconds = -1;
  };
  /// Nodes stand for ops of the original, or move one tensor.
  void graph_of_plan() {
    std::vector<bool> owned(resident_.begin(), resident_.end()), there(tensors_.size());
    for (std::size_t t = 0; t < tensors_.size(); ++t) there[t] = !tensors_[t].made;
    for (auto const& n : j_.at("nodes")) {
      node x;
      for (auto const& t : n.at("in")) x.in.push_back(id(t, tensors_.size()));
      for (auto const& t : n.at("out")) x.out.push_back(id(t, tensors_.size()));
      bool const ours = n.contains("attributes");
      need(!ours || n.at("attributes") == json::object(), "a transfer has no attributes");
      if (ours) {
        x.kind = n.at("op") == "neap.store" ? 1 : n.at("op") == "neap.load" ? 2 : n.at("op") == "neap.wait" ? 3 : 4;
        need(x.kind < 4, "an operator of neap's that the original does not have");
        need(x.in.size() == 1 && x.out.size() == 1, "a transfer moves one tensor");
        need(whole(n.at("origin")) == -1, "a transfer has no origin");
        auto const &a = tensors_[x.in[0]], &b = tensors_[x.out[0]];
        need(a.type == b.type, "a transfer changes a type");
        need(b.first_byte == (x.kind == 1 ? a.first_byte : 0) || b.first_byte == a.first_byte,
             "a transfer moves a tensor");
        if (x.kind == 3) {
          need(a.storage == b.storage && a.first_byte == b.first_byte, "a wait hands on another tensor");
          need(waited_for(x.in[0]), "a wait for what no store has made");
        } else {
          need(!owned[b.storage], "two nodes make one storage");
        }
        owned[b.storage] = true;
        need(x.kind != 1 || bytes_[b.storage] == 0, "what is stored lies outside");
      } else {
        compute_node(n, x, owned);
      }
      for (auto t : x.in) need(there[t], "a node stands before one that makes what it reads");
      for (auto t : x.out) there[t] = true;
      nodes_.push_back(x);
    }
    for (auto o : owned) need(o, "a storage that no node makes");
    for (auto const& t : tensors_)
      need(bytes_[t.storage] == 0 || (t.first_byte >= 0 && t.end_byte <= bytes_[t.storage]), "beyond its storage");
  }
  /// Whether a tensor is the handle of what a node before has stored.
  bool waited_for(std::size_t t) const {
    for (auto const& n : nodes_)
      if (n.kind == 1 && tensors_[n.out[0]].storage == tensors_[t].storage) return true;
    return false;
  }
  void compute_node(json const& n, node& x, std::vector<bool>& owned) {
    x.origin = id(n.at("origin"), ops_.size());
    auto const& was = ops_[x.origin];
    json said{{"op", n.at("op")},
              {"details", n.value("details", "")},
              {"pointwise", false},
              {"rng", false},
              {"impure", false},
              {"placeholder", false},
              {"key", 0},
              {"flops", number(n.at("flops"))},
              {"read", number(n.at("read"))},
              {"write", number(n.at("write"))},
              {"seconds", number(n.at("seconds"))},
              {"name", n.value("name", "")}};
    need(!n.contains("alias") || n.at("alias").size() == x.out.size(), "one alias an output");
    bool view = false;
    for (auto const& f : n.at("flags")) {
      if (f == "view") view = true;
      else need(said.contains(f.get<std::string>()), "an unknown flag"), said[f.get<std::string>()] = true;
    }
    if (said["rng"]) said["key"] = whole(n.at("key"));
    need(said.dump() == was.said, "another operator than that of its origin");
    x.seconds = number(n.at("seconds"));
    need(x.out.size() == was.outputs.size() && x.in.size() == was.reads.size(), "another number of tensors");
    bool all_views = !x.out.empty();
    std::size_t const arguments = x.in.size();
    for (std::size_t k = 0; k < x.out.size(); ++k) {
      auto const& is = tensors_[x.out[k]];
      auto const& out = was.outputs[k];
      std::string kind = "fresh";
      std::int64_t of = -1;
      if (n.contains("alias")) need(n.at("alias").at(k).size() == 2, "an alias is a kind and an input");
      if (n.contains("alias"))
        kind = n.at("alias").at(k).at(0).get<std::string>(), of = whole(n.at("alias").at(k).at(1));
      char const* const kinds[] = {"fresh", "view", "update"};
      need(kind == kinds[static_cast<int>(out.alias)], "an output shares its storage in another way");
      need(kind == "fresh" || of == out.of, "an output shares another storage");
      all_views &= kind == "view";
      need(is.type == out.is.type, "an output of another type");
      if (kind == "fresh") {
        need(!owned[is.storage], "two nodes make one storage");
        owned[is.storage] = true;
        need(bytes_[is.storage] == out.bytes && is.first_byte == out.is.first_byte, "an output of other bytes");
      } else {
        auto const base = of >= 0 ? x.in[id(json(of), arguments)] : x.out[static_cast<std::size_t>(-2 - of)];
        need(tensors_[base].storage == is.storage, "a view lies in another storage than its base");
        need(is.first_byte == out.is.first_byte, "a view of another place");
      }
    }
    need(view == all_views, "view");
  }

  // ---------------------------------------------------------------- when

  struct step {
    std::size_t node = 0;
    double start = 0, end = 0;
    int stream = 0;
  };
  /// Steps, and which of them surely end before which begin: streams run in order, a transfer begins after the last
  /// computation issued before it, and whoever waits waits. Row n is the end of it all.
  void order() {
    std::vector<bool> met(nodes_.size());
    for (auto const& s : j_.at("steps")) {
      step x{id(s.at("node"), nodes_.size()), number(s.at("start")), number(s.at("end")),
             static_cast<int>(id(s.at("stream"), 3))};
      need(!met[x.node], "a node in two steps");
      met[x.node] = true;
      char const* const kinds[] = {"compute", "store", "load"};
      need(nodes_[x.node].kind % 3 == x.stream && s.at("kind") == kinds[x.stream], "a step on another stream");
      need(!s.contains("workspace"), "no op of these has a workspace");
      need(near(number(j_.at("nodes")[x.node].at("latency_us")), x.end - x.start) ||
               std::abs(number(j_.at("nodes")[x.node].at("latency_us")) - (x.end - x.start)) <= 1e-9 * x.end,
           "a node takes another time than its step");
      steps_.push_back(x);
    }
    need(steps_.size() == nodes_.size(), "not each node in a step");
    auto const n = steps_.size();
    before_.assign(n + 1, std::vector<bool>(n + 1));
    waits_.assign(n + 1, {});
    for (auto const& w : j_.at("waits")) {
      need(w.size() == 2, "a wait is two steps");
      auto const at = id(w[0], n + 1), t = id(w[1], n);
      need(t < at && steps_[t].stream != 0, "a wait for no earlier transfer");
      waits_[at].push_back(t);
    }
    for (std::size_t i = 0; i <= n; ++i) {
      auto const after = [&](std::size_t a) {
        before_[a][i] = true;
        for (std::size_t k = 0; k < a; ++k)
          if (before_[k][a]) before_[k][i] = true;
      };
      int const stream = i < n ? steps_[i].stream : 0;
      for (std::size_t k = i; k-- > 0;)
        if (steps_[k].stream == stream) {
          after(k);
          break;
        }
      for (std::size_t k = i; k-- > 0;)
        if (steps_[k].stream == 0) {
          after(k);
          break;
        }
      for (auto t : waits_[i]) after(t);
    }
    for (std::size_t i = 0; i < n; ++i) need(before_[i][n], "nobody waits for the last transfer");
  }

  double duration(node const& x) const {
    auto const& d = j_.at("durations");
    need(!d.contains("table"), "there is no table");
    auto const& device = d.at("device");
    if (x.kind == 3) return 0;
    if (x.kind != 0) {
      auto const& t = tensors_[x.kind == 1 ? x.in[0] : x.out[0]];
      auto const link = number(device.at("link_bytes_per_s").at(x.kind == 1 ? "to_host" : "to_device"));
      auto const& free_ops = device.at("free_ops");
      if (std::find(free_ops.begin(), free_ops.end(), x.kind == 1 ? "store" : "load") != free_ops.end()) return 0;
      return number(device.at("link_latency_us")) +
             (link > 0 ? static_cast<double>(t.end_byte - t.first_byte) / link * 1e6 : 0);
    }
    need(d.at("given").get<bool>() && x.seconds >= 0, "times must come from the graph");
    return x.seconds * 1e6;
  }
  void times() {
    double latency = 0, free[3] = {0, 0, 0};
    std::vector<double> ended;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      auto const& s = steps_[i];
      double start = std::max(free[s.stream], s.stream ? free[0] : 0);
      for (auto t : waits_[i]) start = std::max(start, ended[t]);
      double const end = start + duration(nodes_[s.node]);
      need(near(start, s.start) && near(end, s.end), "step " + std::to_string(i) + " at another time");
      free[s.stream] = end;
      ended.push_back(end);
      latency = std::max(latency, end);
    }
    need(near(latency, number(j_.at("latency_us"))), "the latency");
  }

  // ---------------------------------------------------------------- where

  struct buffer {
    std::size_t storage = 0, first = 0, last = 0;
    std::int64_t offset = 0, bytes = 0;
    bool resident = false;
    std::size_t takes_over = SIZE_MAX;  // a storage
  };
  bool touches(std::size_t which, std::size_t storage) const {
    auto const lies = [&](std::size_t t) { return tensors_[t].storage == storage; };
    auto const& x = nodes_[which];
    return std::any_of(x.in.begin(), x.in.end(), lies) || std::any_of(x.out.begin(), x.out.end(), lies);
  }
  /// Each storage has one buffer for as long as a step touches it, or may: a transfer does until a computation begins that
  /// it surely ended before.
  void lives() {
    auto const n = steps_.size();
    std::vector<std::size_t> first_tensor(bytes_.size(), SIZE_MAX);
    for (std::size_t t = tensors_.size(); t-- > 0;) first_tensor[tensors_[t].storage] = t;
    buffer_of_.assign(bytes_.size(), SIZE_MAX);
    for (auto const& b : j_.at("buffers")) {
      buffer x;
      auto const t = id(b.at("value"), tensors_.size());
      x.storage = tensors_[t].storage;
      need(first_tensor[x.storage] == t, "value must be the first tensor of its storage");
      need(b.at("pool") == "device", "the pool");
      x.offset = whole(b.at("offset")), x.bytes = whole(b.at("bytes"));
      x.first = id(b.at("first"), n), x.last = id(b.at("last"), n);
      x.resident = b.at("resident").get<bool>();
      if (b.contains("takes_over")) x.takes_over = tensors_[id(b.at("takes_over"), tensors_.size())].storage;
      need(x.first <= x.last, "a life that ends before it begins");
      need(buffer_of_[x.storage] == SIZE_MAX, "two buffers for one storage");
      buffer_of_[x.storage] = buffers_.size();
      need(x.bytes == rounded(bytes_[x.storage]) && x.offset >= 0 && x.offset % align_ == 0, "bytes or offset");
      need(x.resident == resident_[x.storage], "resident");
      buffers_.push_back(x);
    }
    std::vector<bool> kept(bytes_.size());
    for (auto const& o : j_.at("outputs")) kept[tensors_[id(o.at("tensor"), tensors_.size())].storage] = true;
    for (std::size_t s = 0; s < bytes_.size(); ++s) {
      if (rounded(bytes_[s]) == 0) continue;
      need(buffer_of_[s] != SIZE_MAX, "a storage without a buffer");
      auto const& b = buffers_[buffer_of_[s]];
      if (resident_[s]) need(b.first == 0, "a resident comes late");
      if (resident_[s] || kept[s]) need(b.last + 1 == n, "what must stay is freed");
      for (std::size_t i = 0; i < n; ++i) {
        if (!touches(steps_[i].node, s)) continue;
        need(b.first <= i && i <= b.last, "a step touches what is not there");
        if (steps_[i].stream == 0) continue;
        std::size_t c = i + 1;
        while (c < n && !(steps_[c].stream == 0 && before_[i][c])) ++c;
        need(b.last + 1 >= c, "freed while a transfer may be under way");
      }
    }
    kept_storage_ = kept;
  }
  /// Who owns each byte at each step; how many are owned.
  void owners() {
    std::int64_t arena = 0, resident = 0, peak = 0;
    for (auto const& b : buffers_) {
      arena = std::max(arena, b.offset + b.bytes);
      if (b.resident) resident += b.bytes;
    }
    need(arena == whole(j_.at("arena_bytes")), "the arena");
    need(resident == whole(j_.at("resident_bytes")), "the residents");
    // Bytes that nothing ever tells apart are one cell: whole bytes where anything is odd.
    for (auto const& b : buffers_) grain_ = std::gcd(std::gcd(grain_, b.offset), b.bytes);
    for (auto const& t : tensors_) grain_ = std::gcd(std::gcd(grain_, t.first_byte), t.end_byte);
    for (auto b : bytes_) grain_ = std::gcd(grain_, b);
    grain_ = std::max<std::int64_t>(grain_, 1);
    need(arena / grain_ < 10'000'000, "too large for this check");
    std::vector<std::size_t> owner(static_cast<std::size_t>(arena / grain_));
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      std::fill(owner.begin(), owner.end(), SIZE_MAX);
      auto const take = [&](std::size_t k, std::size_t from) {
        for (auto at = buffers_[k].offset / grain_; at < (buffers_[k].offset + buffers_[k].bytes) / grain_; ++at) {
          auto& o = owner[static_cast<std::size_t>(at)];
          need(o == from, "a byte with two owners at step " + std::to_string(i));
          o = k;
        }
      };
      std::vector<bool> given(buffers_.size());
      for (std::size_t k = 0; k < buffers_.size(); ++k)
        if (buffers_[k].first <= i && i <= buffers_[k].last &&
            !(buffers_[k].takes_over != SIZE_MAX && buffers_[k].first == i))
          take(k, SIZE_MAX);
      for (std::size_t k = 0; k < buffers_.size(); ++k)
        if (buffers_[k].takes_over != SIZE_MAX && buffers_[k].first == i) {
          auto const from = taken_over(buffers_[k], i);
          need(!given[from], "taken over twice");
          given[from] = true;
          take(k, from);
        }
      peak = std::max(peak, static_cast<std::int64_t>(std::count_if(owner.begin(), owner.end(),
                                                                    [](std::size_t o) { return o != SIZE_MAX; })) *
                                grain_);
    }
    need(peak == whole(j_.at("peak_bytes")), "the peak");
    auto const bound = peak_lower_bound(g_, memory_options{align_, takeover_}).bytes;
    need(bound == whole(j_.at("lower_bound_bytes")), "the bound");
  }
  /// The buffer in whose place this one may be put at step i.
  std::size_t taken_over(buffer const& b, std::size_t i) const {
    need(takeover_, "takeover is not allowed");
    auto const from = buffer_of_[b.takes_over];
    need(from != SIZE_MAX, "takes over nothing");
    auto const& f = buffers_[from];
    auto const& x = nodes_[steps_[i].node];
    need(f.offset == b.offset && f.bytes == b.bytes && bytes_[f.storage] == bytes_[b.storage], "another place");
    need(f.last == i && !f.resident && !kept_storage_[f.storage] && touches(steps_[i].node, f.storage),
         "what is taken over does not die there");
    need(x.kind == 0, "a transfer takes nothing over");
    std::size_t made = SIZE_MAX;
    for (auto t : x.out) {
      need(tensors_[t].storage != f.storage, "the op writes what it gives away");
      if (tensors_[t].storage == b.storage && made == SIZE_MAX) made = t;
    }
    need(made != SIZE_MAX, "it is not made there");
    auto const& out =
        ops_[x.origin].outputs[static_cast<std::size_t>(std::find(x.out.begin(), x.out.end(), made) - x.out.begin())];
    need(out.alias == alias_kind::fresh, "it is not made there");
    need(json::parse(ops_[x.origin].said).at("pointwise").get<bool>(), "the operator does not work in place");
    bool reads = false;
    for (auto t : x.in)
      if (tensors_[t].storage == f.storage) {
        reads = true;
        need(tensors_[t].type == tensors_[made].type && tensors_[t].first_byte == tensors_[made].first_byte,
             "another layout");
      }
    need(reads, "the op does not read it");
    for (std::size_t k = 0; k < i; ++k)
      if (steps_[k].stream != 0 && touches(steps_[k].node, f.storage)) need(before_[k][i], "a transfer is under way");
    return from;
  }

  // ---------------------------------------------------------------- what

  struct cell {
    content what = 0;
    std::int64_t at = 0;  // which byte of it
    friend bool operator==(cell, cell) = default;
  };
  /// Plays the step: what each op finds in the bytes that it reads is what the original op found.
  void play() {
    no_races();
    std::vector<cell> memory(static_cast<std::size_t>(whole(j_.at("arena_bytes")) / grain_));
    std::vector<std::vector<cell>> outside(bytes_.size());
    auto const place = [&](std::size_t storage) {
      return memory.data() + buffers_[buffer_of_[storage]].offset / grain_;
    };
    auto const find = [&](std::size_t t) {
      auto const& x = tensors_[t];
      need(bytes_[x.storage] > 0, "an op reads what lies outside");
      auto const* at = place(x.storage);
      auto const first = at[x.first_byte / grain_];
      need(first.what != 0, "an op reads bytes that nobody wrote");
      for (auto k = x.first_byte; k < x.end_byte; k += grain_)
        need(at[k / grain_] == cell{first.what, first.at + k - x.first_byte}, "an op reads bytes of several contents");
      return seen(first.what, first.at, x.type);
    };
    auto const fill = [&](std::size_t storage, content c) {
      for (std::int64_t k = 0; k < bytes_[storage]; k += grain_) place(storage)[k / grain_] = {c, k};
    };
    for (std::size_t i = 0; i < residents_.size(); ++i) fill(residents_[i], content_of("source " + std::to_string(i)));
    std::vector<int> times(ops_.size());
    std::vector<bool> there(tensors_.size());
    for (std::size_t t = 0; t < tensors_.size(); ++t) there[t] = !tensors_[t].made;
    for (auto const& s : steps_) {
      auto const& x = nodes_[s.node];
      for (auto t : x.in)
        need(there[t], "an op reads a tensor that is not made yet");  // a view too, though its bytes are
      for (auto t : x.out) there[t] = true;
      if (x.kind == 1) {
        find(x.in[0]);
        auto const& t = tensors_[x.in[0]];
        outside[tensors_[x.out[0]].storage] = {place(t.storage) + t.first_byte / grain_,
                                               place(t.storage) + t.end_byte / grain_};
      } else if (x.kind == 2) {
        auto const& from = outside[tensors_[x.in[0]].storage];
        auto const& t = tensors_[x.out[0]];
        need(!from.empty() && static_cast<std::int64_t>(from.size()) == (t.end_byte - t.first_byte) / grain_,
             "nothing is stored");
        std::copy(from.begin(), from.end(), place(t.storage) + t.first_byte / grain_);
      } else if (x.kind == 0) {
        auto const& was = ops_[x.origin];
        ++times[x.origin];
        for (std::size_t k = 0; k < x.in.size(); ++k) need(find(x.in[k]) == was.reads[k], "an op reads another value");
        for (std::size_t k = 0; k < x.out.size(); ++k)
          if (was.outputs[k].alias != alias_kind::view) fill(tensors_[x.out[k]].storage, was.outputs[k].makes);
      }
    }
    for (std::size_t o = 0; o < ops_.size(); ++o) need(!ops_[o].once || times[o] == 1, "an update, not once");
    auto const& outputs = j_.at("outputs");
    need(outputs.size() == kept_.size(), "another number of outputs");
    for (std::size_t k = 0; k < kept_.size(); ++k) {
      need(find(id(outputs[k].at("tensor"), tensors_.size())) == kept_[k], "an output is another value");
      need(outputs[k].at("kind") == kept_kind_[k], "an output of another kind");
    }
    for (std::size_t i = 0; i < residents_.size(); ++i)
      if (bytes_[residents_[i]] > 0)
        need(place(residents_[i])->what == final_[i], "a resident ends with another content");
  }
  /// Steps that may run at once do not touch the same bytes, unless both only read. Those that cannot run at once run as
  /// they are listed.
  void no_races() const {
    struct access {
      std::size_t step;
      std::int64_t from, to;
      bool writes;
    };
    std::vector<access> all;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      auto const& x = nodes_[steps_[i].node];
      auto const add = [&](std::size_t t, bool writes) {
        auto const s = tensors_[t].storage;
        if (bytes_[s] == 0) return;
        auto const& b = buffers_[buffer_of_[s]];
        all.push_back({i, b.offset, b.offset + b.bytes, writes});
      };
      for (auto t : x.in) add(t, false);
      for (std::size_t k = 0; k < x.out.size(); ++k)
        add(x.out[k], x.kind == 2 || (x.kind == 0 && ops_[x.origin].outputs[k].alias != alias_kind::view));
      if (x.kind < 2) continue;
      for (std::size_t k = 0; k < i; ++k)  // outside there are storages too: what is loaded was stored before
        if (nodes_[steps_[k].node].kind == 1 &&
            tensors_[nodes_[steps_[k].node].out[0]].storage == tensors_[x.in[0]].storage)
          need(before_[k][i], "a load or a wait does not wait for its store");
    }
    for (auto const& a : all)
      for (auto const& b : all)
        if (a.step < b.step && (a.writes || b.writes) && a.from < b.to && b.from < a.to)
          need(before_[a.step][b.step], "two steps that may run at once touch the same bytes");
  }

  struct output {
    tensor is;
    alias_kind alias;
    int of;
    std::int64_t bytes;
    content makes;
  };
  struct ran {
    std::string said;
    std::vector<std::string> reads;
    std::vector<output> outputs;
    bool once = false;
  };
  graph const& g_;
  json const& j_;
  std::map<std::string, content> contents_;
  std::vector<ran> ops_;
  std::vector<std::string> kept_, kept_kind_;
  std::vector<content> final_;
  std::int64_t align_ = 1, grain_ = 0;
  bool takeover_ = false;
  std::vector<std::int64_t> bytes_;
  std::vector<bool> resident_, kept_storage_;
  std::vector<std::size_t> residents_, buffer_of_;
  std::vector<tensor> tensors_;
  std::vector<node> nodes_;
  std::vector<step> steps_;
  std::vector<std::vector<bool>> before_;
  std::vector<std::vector<std::size_t>> waits_;
  std::vector<buffer> buffers_;
};

/// What is wrong with a plan file for `original`; empty if it is right. The checksum is not looked at.
inline std::string slow_plan_check(graph const& original, nlohmann::json const& plan) {
  return slow_plan_checker(original, plan).run();
}

}  // namespace neap::testing
