// The bodies of <neap/import/neap_graph.hpp>.
#pragma once

#include <neap/import/neap_graph.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/import/file.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>
#include <vector>

namespace neap { inline namespace v0 { namespace io {

namespace detail {

NEAP_FUNC dtype dtype_of(json_place const& j) {
  auto const type = element_type(j.text());
  if (!type) j.fail(type.message());
  return *type;
}

NEAP_FUNC tensor_layout layout_in(json_place const& j) {
  tensor_layout l;
  l.type = {dtype_of(j["dtype"]), j["shape"].axes(0)};
  try {
    (void)l.type.bytes();
    l.strides = dense_strides(l.type.dims);
  } catch (error const& e) { j["shape"].fail(e.what()); }
  if (j.has("stride")) l.strides = j["stride"].axes(0);
  if (l.strides.rank() != l.type.rank()) j["stride"].fail("must have one stride an axis");
  l.offset = j.has("offset") ? j["offset"].integer(0) : 0;
  return l;
}

NEAP_FUNC pin_set pins_in(json_place const& j) {
  pin_set all;
  if (!j.has("pins")) return all;
  auto const list = j["pins"];
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto const p = pin_of(list[i].text());
    if (!p)
      list[i].fail("unknown pin \"" + list[i].text() + "\": keep, run_again, run_once, never_in_parts, never_out");
    all |= *p;
  }
  return all;
}

class neap_graph_reader {
 public:
  neap_graph_reader(json_place root, neap_graph_options options)
      : root_(std::move(root)),
        options_(options),
        edit_(operator_table(standard_operators::facets)) {}

  imported_graph read() {
    root_["format"].require(root_["format"].text() == "neap-graph", "must be \"neap-graph\"");
    root_["version"].require(root_["version"].integer() == 1, "only version 1 is known");
    read_buffers(root_["buffers"]);
    read_tensors(root_["tensors"]);
    bool const updates = reads_updates();
    if (updates) {
      read_buffers(root_["optimizer"]["buffers"]);
      read_tensors(root_["optimizer"]["tensors"]);
    }
    auto const nodes = root_["nodes"];
    note_made(nodes);
    if (updates) note_made(root_["optimizer"]["nodes"]);
    make_sources();
    for (std::size_t i = 0; i < nodes.size(); ++i) read_node(nodes[i]);
    read_outputs(root_["outputs"]);
    if (updates) {
      auto const more = root_["optimizer"]["nodes"];
      for (std::size_t i = 0; i < more.size(); ++i) read_node(more[i]);
    }
    add_tensor_pins(root_["tensors"], 0);
    if (updates) add_tensor_pins(root_["optimizer"]["tensors"], root_["tensors"].size());
    auto out = imported(std::move(edit_), "neap-graph");
    out.name = root_.text_or("name", "");
    return out;
  }

 private:
  struct buffer {
    bytes_t bytes;
    bool temporary;
    role kind;
    std::string name;
    bool made = false;
    bool donated = false;
    std::uint32_t makers = 0;             // nodes that make a tensor on it and read none
    std::uint32_t writes = 0;             // in place, so far
    value_id newest = nothing<value_id>;  // of a buffer that may go: what the last node has written
    byte_runs parts{};                    // of a buffer that several nodes make: what is written so far
    byte_runs zeros{};                    // bytes that hold zeros: made so, and not written since
    std::size_t output = SIZE_MAX;        // the row of outputs that keeps a value of it
  };
  struct tensor {
    std::size_t buffer;
    tensor_layout layout;
    std::size_t by_node = SIZE_MAX;      // the node that gives it
    bool given = false;                  // it holds integers or truth values that are made of such inputs alone
    value_id value = nothing<value_id>;  // once it is there
    std::uint32_t seen = 0;              // writes of the buffer that the value shows
    pin_set pins{};
  };

  void read_buffers(json_place const& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      auto const j = list[i];
      auto const& kind = j["kind"].text();
      buffer b{j["bytes"].bytes(total_), kind == "temp", role::activation, j.text_or("name", ""), false};
      if (kind == "param") b.kind = role::weight;
      else if (kind == "buffer") b.kind = role::buffer;
      else if (kind == "input" || kind == "tangent") b.kind = role::input;
      else if (kind == "const") b.kind = role::constant;
      else if (kind == "state") b.kind = role::state;
      else if (!b.temporary) j["kind"].fail("unknown kind \"" + kind + "\"");
      if (j.has("donated") && j["donated"].boolean()) {
        if (b.kind != role::input)
          j["donated"].fail("only an input can be donated, not a buffer of kind \"" + kind + "\"");
        b.kind = role::donated, b.donated = true;
      }
      if (j.has("pins")) j["pins"].fail("pins stand at nodes and tensors, not at buffers");
      buffers_.push_back(std::move(b));
    }
  }
  void read_tensors(json_place const& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      auto const j = list[i];
      tensor t;
      t.buffer = static_cast<std::size_t>(j["buf"].integer(0, static_cast<std::int64_t>(buffers_.size()) - 1));
      t.layout = layout_in(j);
      t.pins = pins_in(j);
      if (j.has("donated")) j["donated"].fail("stands at a buffer, not at a tensor");
      check_inside(j, t);
      tensors_.push_back(t);
    }
  }
  /// The last element must lie in the buffer.
  void check_inside(json_place const& j, tensor const& t) {
    auto const& l = t.layout;
    bool empty = false, fits = true;
    std::int64_t last = l.offset;
    for (int a = 0; a < l.type.rank(); ++a) {
      empty |= l.type.dims[a] == 0;
      std::int64_t step;
      if (l.type.dims[a] > 0)
        fits &= !__builtin_mul_overflow(l.type.dims[a] - 1, l.strides[a], &step) &&
                !__builtin_add_overflow(last, step, &last);
    }
    if (!empty && (!fits || last >= INT64_MAX / 16 || bytes_of(l.type.element, last + 1) > buffers_[t.buffer].bytes))
      j.fail("reaches beyond its buffer of " + std::to_string(buffers_[t.buffer].bytes) + " bytes");
  }

  void note_made(json_place const& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      auto const out = nodes[i]["out"];
      for (std::size_t k = 0; k < out.size(); ++k) {
        auto const t = out[k].integer(-1, static_cast<std::int64_t>(tensors_.size()) - 1);
        if (t < 0) continue;
        auto& x = tensors_[static_cast<std::size_t>(t)];
        if (x.by_node != SIZE_MAX) out[k].fail("tensor " + std::to_string(t) + " is made twice");
        x.by_node = node_count_ + i;
        auto& b = buffers_[x.buffer];
        if (b.temporary && !reads_buffer(nodes[i]["in"], x.buffer) && !makes_buffer(out, k, x.buffer)) ++b.makers;
      }
    }
    node_count_ += nodes.size();
  }
  bool reads_buffer(json_place const& in, std::size_t which) const {
    for (std::size_t i = 0; i < in.size(); ++i)
      if (tensors_[static_cast<std::size_t>(in[i].integer(0, static_cast<std::int64_t>(tensors_.size()) - 1))].buffer ==
          which)
        return true;
    return false;
  }
  /// Whether one of the first k outputs lies in a buffer.
  bool makes_buffer(json_place const& out, std::size_t k, std::size_t which) const {
    for (std::size_t i = 0; i < k; ++i)
      if (auto const t = out[i].integer(-1); t >= 0 && tensors_[static_cast<std::size_t>(t)].buffer == which)
        return true;
    return false;
  }
  /// Buffers that exist before the step, with a value for each tensor that looks at them and that no node makes.
  void make_sources() {
    std::vector<value_id> base(buffers_.size(), nothing<value_id>);
    for (auto& t : tensors_) {
      if (t.by_node != SIZE_MAX || buffers_[t.buffer].temporary) continue;
      auto const& b = buffers_[t.buffer];
      auto& first = base[t.buffer];
      t.value = first == nothing<value_id> ? edit_.add_source_at(b.kind, t.layout, b.name, b.bytes)
                                           : edit_.add_source_view(first, t.layout);
      if (first == nothing<value_id>) first = t.value;
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      auto& b = buffers_[i];
      b.made = !b.temporary;
      if (!b.temporary && base[i] == nothing<value_id>)  // unused, but it is there
        edit_.add_source_at(b.kind, tensor_layout::dense({dtype::u8, {b.bytes}}), b.name, b.bytes);
    }
  }

  struct known_relations {
    std::vector<dim_link> links;
    bool zeros = false;  // it makes zeros alone
    bool given = false;  // they are as tensor::given says
    std::optional<known_operator> known;
  };
  /// What is read of a node before it is added.
  struct node_parts {
    op::opaque what;
    bool is_view = false;
    std::vector<value_id> inputs;
    std::vector<std::size_t> input_tensors;
    std::vector<output_rule> rules;    // new values of what is mutated, then what is made
    std::vector<std::size_t> tensors;  // the tensor of each rule
    std::size_t updates = 0;           // rules of what is mutated
  };

  void read_node(json_place const& j) {
    auto const& name = j["name"].text();
    auto const& target = j["op"].text();
    if (!names_.insert(name).second) j["name"].fail("\"" + name + "\" is the name of two nodes");
    node_parts n;
    auto const in = j["in"];
    for (std::size_t i = 0; i < in.size(); ++i) {
      auto const id = static_cast<std::size_t>(in[i].integer(0, last_tensor()));
      require_stated_write(in[i], id, name);
      n.inputs.push_back(current(in[i], id, "node \"" + name + "\" reads a tensor"));
      n.input_tensors.push_back(id);
    }
    read_work(j, n);
    if (j.has("mutates")) read_mutations(j["mutates"], name, n);
    n.updates = n.tensors.size();
    read_results(j["out"], name, n);

    auto& [what, is_view, inputs, input_tensors, rules, tensors, updates] = n;
    // Whatever else is said of a node is a part of what it computes: args, kwargs, and what this reader does not know.
    auto details = j.other_members({"name", "op", "phase", "scope", "in", "out", "flags", "mutates", "flops", "read",
                                    "write", "latency_us", "pins"});
    auto const pins = pins_in(j);
    bool const adds_to_whole = std::any_of(
        rules.begin(), rules.end(), [](output_rule const& r) { return r.alias == alias_kind::fresh && r.of >= 0; });
    if (options_.for_parts && updates == 0 && !adds_to_whole && pins.empty() && !is_pinned(tensors) &&
        add_loss_apart(j, target, what, inputs, rules, tensors, name, details))
      return;
    auto said = updates == 0 ? relations(j, target, input_tensors, rules, what.pointwise, is_view) : known_relations{};
    if (options_.for_parts && updates == 0) {
      give_divisor(j, target, inputs, said.links, details);
      said.given = is_given(input_tensors, rules);
      if (said.given) said.links.clear();
      if (target == "aten.new_zeros.default" && rules.size() == 1 && rules[0].alias == alias_kind::fresh)
        inputs.clear();
    }
    op_id const o = edit_.add_opaque(target, what, inputs, rules, name, details, said.links);
    if (said.known && !adds_to_whole) edit_.set_meaning(o, said.known->view());
    add_pins_at(j, edit_, o, pins);
    note_results(o, n, said);
  }
  std::int64_t last_tensor() const { return static_cast<std::int64_t>(tensors_.size()) - 1; }
  void read_work(json_place const& j, node_parts& n) const {
    if (j.has("flags")) {
      auto const flags = j["flags"];
      for (std::size_t i = 0; i < flags.size(); ++i) {
        auto const& f = flags[i].text();
        if (f == "pointwise") n.what.pointwise = true;
        else if (f == "rng") n.what.rng = true;
        else if (f == "view") n.is_view = true;
        else flags[i].fail("unknown flag \"" + f + "\"");
      }
    }
    if (n.what.rng) n.what.key = static_cast<std::int64_t>(names_.size());
    n.what.flops = j.work("flops");
    n.what.read = j.work("read");
    n.what.written = j.work("write");
    n.what.seconds = j.has("latency_us") ? j["latency_us"].microseconds() : -1;
  }
  void read_mutations(json_place const& mutates, std::string const& name, node_parts& n) const {
    for (std::size_t k = 0; k < mutates.size(); ++k) {
      auto const i = static_cast<std::size_t>(mutates[k].integer(0, static_cast<std::int64_t>(n.inputs.size()) - 1));
      auto const written = tensors_[n.input_tensors[i]].buffer;
      for (auto t : n.tensors)
        if (tensors_[t].buffer == written) mutates[k].fail("node \"" + name + "\" writes this buffer twice");
      if (auto const kept = buffers_[written].output; kept != SIZE_MAX)
        root_["outputs"][kept]["tensor"].fail("node \"" + name + "\" of the optimizer overwrites it");
      auto const& b = buffers_[written];
      bool const goes = b.temporary || b.donated;
      n.rules.push_back({edit_.layout_of(n.inputs[i]), goes ? alias_kind::fresh : alias_kind::update,
                         static_cast<int>(i), goes ? b.bytes : -1});
      n.tensors.push_back(n.input_tensors[i]);
    }
  }
  void read_results(json_place const& out, std::string const& name, node_parts& n) {
    for (std::size_t k = 0; k < out.size(); ++k) {
      auto const id = out[k].integer(-1, last_tensor());
      if (id < 0) continue;
      auto const& t = tensors_[static_cast<std::size_t>(id)];
      if (adds_part(t, n.input_tensors, n.tensors)) {
        add_part(out[k], name, t, n.inputs, n.rules);
        n.tensors.push_back(static_cast<std::size_t>(id));
        continue;
      }
      n.rules.push_back(rule_for(out[k], t, n.input_tensors, n.tensors, n.updates));
      auto const& r = n.rules.back();
      if (n.is_view && r.alias == alias_kind::fresh)
        out[k].fail("node \"" + name + "\" is flagged \"view\", and makes a buffer");
      if (!n.is_view && r.alias == alias_kind::view && r.of >= 0)
        out[k].fail("node \"" + name + "\" makes a tensor in the buffer of its input " + std::to_string(r.of) +
                    ", and is neither flagged \"view\" nor says by \"mutates\" that it writes it in place");
      n.tensors.push_back(static_cast<std::size_t>(id));
    }
  }
  /// What tensors and buffers are after a node.
  void note_results(op_id o, node_parts const& n, known_relations const& said) {
    for (std::size_t k = 0; k < n.tensors.size(); ++k) {
      auto& t = tensors_[n.tensors[k]];
      auto& b = buffers_[t.buffer];
      t.value = edit_.output(o, static_cast<int>(k));
      bool const part = b.makers > 1 && k >= n.updates && edit_.graph().overwrites(t.value) != nothing<value_id>;
      b.writes += k < n.updates || part;
      t.seen = b.writes;
      if (b.temporary || b.donated)
        if (b.newest == nothing<value_id> || k < n.updates || part) b.newest = t.value;
      if (k < n.updates) b.zeros = {};
      else if (said.zeros && !is_packed(t.layout.type.element)) b.zeros.add(byte_runs(t.layout));
      t.given = said.given;
      b.made = true;
    }
  }
  bool is_pinned(std::vector<std::size_t> const& tensors) const {
    return std::any_of(tensors.begin(), tensors.end(), [&](auto t) { return !tensors_[t].pins.empty(); });
  }
  /// Of rows of tensors, whose numbers begin with `first`. A row that a node mutates has several values: the last one.
  void add_tensor_pins(json_place const& list, std::size_t first) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (auto const& t = tensors_[first + i]; !t.pins.empty()) {
        if (t.value == nothing<value_id>) list[i]["pins"].fail("no node makes this tensor");
        add_pins_at(list[i], edit_, t.value, t.pins);
      }
  }
  /// Adds a node that is a mean nll_loss_forward(x, target, w, reduction, ignore_index) -> loss, total weight as two ops.
  /// False if it is not, or is one of another form.
  bool add_loss_apart(json_place const& j, std::string const& target, op::opaque const& what,
                      std::vector<value_id> const& inputs, std::vector<output_rule> const& rules,
                      std::vector<std::size_t> const& tensors, std::string const& name, std::string const& details) {
    if (target != "aten.nll_loss_forward.default" || !j.has("args") || j["out"].size() != 2) return false;
    auto const& args = j.raw()["args"];
    bool const weighted = inputs.size() == 3;
    nlohmann::json const as_known = {"%0", "%1", weighted ? nlohmann::json("%2") : nlohmann::json(), 1};
    if (!args.is_array() || args.size() != 5 || (inputs.size() != 2 && !weighted) || !args[4].is_number_integer() ||
        !std::equal(as_known.begin(), as_known.end(), args.begin()))
      return false;
    if (rules.size() != 2 || rules[0].alias != alias_kind::fresh || rules[1].alias != alias_kind::fresh) return false;
    auto const& x = edit_.layout_of(inputs[0]).type;
    auto const& targets = edit_.layout_of(inputs[1]).type;
    if (x.rank() != 2 || targets.rank() != 1 || x.dims[0] != targets.dims[0]) return false;

    op::opaque total;
    for (std::size_t i = 1; i < inputs.size(); ++i)
      total.read += static_cast<double>(edit_.layout_of(inputs[i]).type.bytes());
    total.written = static_cast<double>(rules[1].layout.type.bytes());
    // Together they take what the file gives the one, in the ratio of the bytes that they move.
    double const bytes = what.read + what.written;
    if (what.seconds >= 0 && bytes > 0)
      total.seconds = what.seconds * std::min(1.0, (total.read + total.written) / bytes);
    std::span<value_id const> const in(inputs);
    auto const weight = edit_.output(edit_.add_opaque("neap.nll_total_weight", total, in.subspan(1), {&rules[1], 1},
                                                      name + ".total_weight", details));
    auto with_weight = inputs;
    with_weight.push_back(weight);
    auto loss = what;
    loss.read += total.written, loss.written = std::max(0.0, loss.written - total.written);
    if (total.seconds > 0) loss.seconds -= total.seconds;
    std::array<dim_link, 2> rows{};
    for (std::size_t i : {0u, 1u}) rows[i] = {static_cast<std::int16_t>(i), 0, -1, 0, combine::sum};
    auto const y = edit_.output(
        edit_.add_opaque("neap.nll_loss_by_weight", loss, with_weight, {&rules[0], 1}, name, details, rows));
    for (std::size_t k : {0u, 1u}) {
      auto& t = tensors_[tensors[k]];
      t.value = k == 0 ? y : weight;
      buffers_[t.buffer].made = true;
    }
    return true;
  }
  bool is_given(std::vector<std::size_t> const& input_tensors, std::vector<output_rule> const& rules) const {
    auto const is_real = [](tensor_layout const& l) { return !is_integer(l.type.element); };
    for (auto id : input_tensors) {
      auto const& t = tensors_[id];
      if (t.by_node != SIZE_MAX ? !t.given : is_real(t.layout)) return false;
    }
    return std::none_of(rules.begin(), rules.end(), [&](auto const& r) { return is_real(r.layout); });
  }
  /// Where a node is a mean mse_loss_backward(g, x, y, reduction): the divisor as one of its details, with which its axes
  /// are those of x and y.
  void give_divisor(json_place const& j, std::string const& target, std::vector<value_id> const& inputs,
                    std::vector<dim_link>& links, std::string& details) const {
    nlohmann::json const as_known = {"%0", "%1", "%2", 1};
    if (target != "aten.mse_loss_backward.default" || !j.has("args") || j.raw()["args"] != as_known) return;
    if (inputs.size() != 3 || out_layouts_.size() != 1) return;
    auto const& dims = out_layouts_[0].type.dims;
    for (std::size_t i : {1u, 2u})
      if (edit_.layout_of(inputs[i]).type.dims != dims) return;
    if (edit_.layout_of(inputs[0]).type.rank() != 0) return;
    for (int k = 0; k < dims.rank(); ++k)
      for (int i : {1, 2})
        links.push_back({static_cast<std::int16_t>(i), static_cast<std::int16_t>(k), 0, static_cast<std::int16_t>(k)});
    auto all = nlohmann::json::parse(details);
    all["divisor"] = out_layouts_[0].type.count();
    details = all.dump();
  }
  /// Whether a tensor shows zeros alone, whatever view of its buffer it is.
  bool holds_zeros(tensor const& t) const {
    auto const& zeros = buffers_[t.buffer].zeros;
    return !zeros.empty() && !is_packed(t.layout.type.element) && zeros.covers(byte_runs(t.layout));
  }
  known_relations relations(json_place const& j, std::string const& target,
                            std::vector<std::size_t> const& input_tensors, std::vector<output_rule> const& rules,
                            bool pointwise, bool is_view) {
    in_layouts_.clear(), out_layouts_.clear(), zeros_.clear(), places_.clear();
    for (auto id : input_tensors) {
      in_layouts_.push_back(tensors_[id].layout);
      zeros_.push_back(holds_zeros(tensors_[id]));
    }
    auto const& out = j["out"].raw();
    for (auto const& id : out) {
      bool const given = id.get<std::int64_t>() >= 0;
      places_.push_back(given ? static_cast<int>(out_layouts_.size()) : -1);
      if (given) out_layouts_.push_back(rules[out_layouts_.size()].layout);
    }
    aten_node n{target, nullptr, nullptr, in_layouts_, out_layouts_, places_, zeros_, pointwise};
    if (j.has("args")) n.args = &j.raw()["args"];
    if (j.has("kwargs")) n.kwargs = &j.raw()["kwargs"];
    known_relations said{{}, aten_makes_zeros(n), false, {}};
    auto const any_type = [&](auto holds) {
      auto const is = [&](tensor_layout const& l) { return holds(l.type.element); };
      return std::ranges::any_of(in_layouts_, is) || std::ranges::any_of(out_layouts_, is);
    };
    if (!any_type(is_packed)) said.links = aten_links(n);  // a part may begin within a byte
    if (!any_type([](dtype t) { return t > dtype::u64; })) said.known = known_aten(n);
    if (is_view && !shows_what_is_linked(said.links)) said.links.clear(), said.known.reset();
    return said;
  }
  /// Whether equal parts of linked axes are the same bytes: those of a view whose strides are not what its operator makes
  /// of its input's are not.
  bool shows_what_is_linked(std::vector<dim_link> const& links) const {
    auto const bytes = [](tensor_layout const& l, int axis) {
      return l.type.dims[axis] * l.strides[axis] * size_of(l.type.element);
    };
    return std::ranges::all_of(links, [&](dim_link const& link) {
      if (link.output < 0) return true;
      auto const& in = in_layouts_[static_cast<std::size_t>(link.input)];
      auto const& out = out_layouts_[static_cast<std::size_t>(link.output)];
      return in.type.dims[link.in_axis] == 1 || out.type.dims[link.out_axis] == 1 ||
             bytes(in, link.in_axis) == bytes(out, link.out_axis);
    });
  }
  /// Refuses to read a tensor of which the file says only that this node or a later one makes it, and that is there before.
  void require_stated_write(json_place const& j, std::size_t id, std::string const& name) const {
    auto const& t = tensors_[id];
    if (t.value != nothing<value_id>) return;
    auto const number = std::to_string(id);
    if (t.by_node == names_.size() - 1)
      j.fail(
          "node \"" + name + "\" has tensor " + number +
          " among its inputs and its outputs: a write in place is said by \"mutates\" (places in \"in\"), not by \"out\"");
    if (!buffers_[t.buffer].temporary && t.by_node != SIZE_MAX)
      j.fail("node \"" + name + "\" reads tensor " + number +
             " of a buffer that exists before the step, and a later "
             "node has it among its outputs: a write in place is said by \"mutates\", and not by \"out\"");
  }
  /// Whether a tensor that no node makes shows what several nodes have made.
  bool is_whole_of_parts(tensor const& t) const {
    auto const& b = buffers_[t.buffer];
    return b.makers > 1 && b.newest != nothing<value_id> && t.by_node == SIZE_MAX;
  }
  /// The value of a tensor at this point of the file: of one on a buffer that was written since through another tensor, a
  /// view of what was written last.
  value_id current(json_place const& j, std::size_t id, std::string const& who) {
    auto& t = tensors_[id];
    auto const& b = buffers_[t.buffer];
    bool const of_parts = b.makers > 1 && b.newest != nothing<value_id>;
    if (of_parts && !b.parts.covers(byte_runs(t.layout))) j.fail(who + ", of which no node has written all bytes yet");
    if (t.value == nothing<value_id> && !is_whole_of_parts(t)) j.fail(who + " before it is made");
    if (t.value != nothing<value_id> && t.seen == b.writes) return t.value;
    if (!b.temporary && !b.donated) j.fail(who + " whose buffer was overwritten through another one");
    auto const newest = b.newest;
    if (newest == nothing<value_id>) j.fail(who + " before it is made");
    output_rule const rule{t.layout, alias_kind::view, 0, -1};
    op::opaque what;
    what.seconds = 0;
    t.value = edit_.output(edit_.add_opaque("neap.view", what, {&newest, 1}, {&rule, 1}), 0);
    t.seen = b.writes;
    return t.value;
  }
  /// Whether a node's output is one more part of a buffer that others have begun.
  bool adds_part(tensor const& t, std::vector<std::size_t> const& input_tensors,
                 std::vector<std::size_t> const& tensors) const {
    auto const& b = buffers_[t.buffer];
    auto const lies_there = [&](std::size_t x) { return tensors_[x].buffer == t.buffer; };
    return b.makers > 1 && std::none_of(input_tensors.begin(), input_tensors.end(), lies_there) &&
           std::none_of(tensors.begin(), tensors.end(), lies_there);
  }
  /// The first part makes the buffer, each other one is written over what is there.
  void add_part(json_place const& j, std::string const& name, tensor const& t, std::vector<value_id>& inputs,
                std::vector<output_rule>& rules) {
    auto& b = buffers_[t.buffer];
    byte_runs const part(t.layout);
    if (auto const at = b.parts.first_shared(part); at >= 0)
      j.fail("node \"" + name + "\" writes byte " + std::to_string(at) +
             " of a buffer, which an earlier node made, without reading it");
    b.parts.add(part);
    int over = -1;
    if (b.newest != nothing<value_id>) over = static_cast<int>(inputs.size()), inputs.push_back(b.newest);
    rules.push_back({t.layout, alias_kind::fresh, over, b.bytes});
  }
  /// `tensors` are those of the node's outputs so far, of which the first ones are updates.
  output_rule rule_for(json_place const& j, tensor const& t, std::vector<std::size_t> const& input_tensors,
                       std::vector<std::size_t> const& tensors, std::size_t updates) {
    auto const& b = buffers_[t.buffer];
    for (std::size_t k = 0; k < tensors.size(); ++k)  // the node writes the buffer, or a sibling made it
      if (tensors_[tensors[k]].buffer == t.buffer && (k < updates || !b.made))
        return {t.layout, alias_kind::view, -2 - static_cast<int>(k), -1};
    if (!b.made) return {t.layout, alias_kind::fresh, -1, b.bytes};
    for (std::size_t i = 0; i < input_tensors.size(); ++i)
      if (tensors_[input_tensors[i]].buffer == t.buffer) return {t.layout, alias_kind::view, static_cast<int>(i), -1};
    j.fail(b.temporary
               ? "lies in a buffer that an earlier node made and this one does not read"
               : "lies in a buffer that exists before the step: a node that writes it has it among its inputs and "
                 "says so by \"mutates\"");
  }

  void read_outputs(json_place const& list) {
    std::unordered_set<std::uint32_t> kept;
    auto const used_up = used_up_by_updates();
    for (std::size_t i = 0; i < list.size(); ++i) {
      auto const j = list[i];
      auto const id = j["tensor"].integer(0, static_cast<std::int64_t>(tensors_.size()) - 1);
      auto const& t = tensors_[static_cast<std::size_t>(id)];
      if (t.value == nothing<value_id> && !is_whole_of_parts(t)) j["tensor"].fail("no node makes this tensor");
      auto const v = current(j["tensor"], static_cast<std::size_t>(id), "is a tensor");
      auto const& kind = j["kind"].text();
      role r = role::output;
      if (kind == "loss") r = role::loss;
      else if (kind == "grad") r = role::gradient;
      else if (kind != "mutation" && kind != "output") j["kind"].fail("unknown kind \"" + kind + "\"");
      if (edit_.graph().producer(v) == nothing<op_id> && edit_.graph().role(v) != role::donated) continue;
      if (r == role::gradient && used_up[t.buffer]) continue;
      buffers_[t.buffer].output = i;
      if (kept.insert(static_cast<std::uint32_t>(index(v))).second) edit_.keep(v, r);
    }
  }

  bool reads_updates() const { return options_.optimizer && root_.has("optimizer"); }
  /// By buffer: whether a gradient in it is for a node of the optimizer alone.
  std::vector<bool> used_up_by_updates() const {
    std::vector<bool> read(buffers_.size());
    if (!options_.gradients_used_up || !reads_updates()) return read;
    auto const nodes = root_["optimizer"]["nodes"];
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      auto const in = nodes[i]["in"];
      for (std::size_t k = 0; k < in.size(); ++k)
        read[tensors_[static_cast<std::size_t>(in[k].integer(0, static_cast<std::int64_t>(tensors_.size()) - 1))]
                 .buffer] = true;
    }
    return read;
  }

  json_place root_;
  neap_graph_options options_;
  graph_editor edit_;
  std::vector<buffer> buffers_;
  std::vector<tensor> tensors_;
  std::unordered_set<std::string> names_;
  std::size_t node_count_ = 0;  // whose outputs are noted
  bytes_t total_ = 0;
  std::vector<tensor_layout> in_layouts_, out_layouts_;  // of the node at hand
  std::vector<unsigned char> zeros_;
  std::vector<int> places_;
};

}  // namespace detail

NEAP_FUNC result<imported_graph> read_neap_graph(nlohmann::json const& document, std::string const& file,
                                                 neap_graph_options options) {
  try {
    return detail::neap_graph_reader(json_place(document, file), options).read();
  } catch (std::exception const& e) { return refusal(file, e); }
}

}}}  // namespace neap::v0::io
