// Graph files of MAGIS's testing nets: nodes with producer ids, placeholders in the schedule, plain SGD updates in place.
// How ops may be cut, the files say themselves (dim_links).
//
// `as_magis` reproduces MAGIS's own memory rule to the byte: weights and inputs are taken at their place in the schedule
// and freed like the rest; views and updates count as fresh memory; values without readers stay to the end. The order
// constraint that MAGIS lacks (an update runs after every other reader of its weight) is there all the same: an update is
// one, and has an output of its own that stands for the bytes.
// `aliased` counts as neap does: weights resident, views and updates in the storage of what they see.
#pragma once

#include <neap/import/imported.hpp>
#include <neap/import/json.hpp>
#include <neap/import/known_operators.hpp>
#include <neap/ir/editor.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace neap { inline namespace v0 { namespace io {

enum class magis_memory { as_magis, aliased };

namespace detail {

/// The dimension relations of a node: for each argument pairs of an axis and the result's axis, or -k for the k-th reduced
/// one. Two errors of MAGIS's are mended. None, if the axes do not have the extents that they would have to.
inline std::vector<dim_link> magis_links(json_place const& node, std::string const& tag, std::vector<extents> const& in,
                                         extents const& out) {
  std::vector<dim_link> links;
  if (!node.has("dim_links") || node["dim_links"].is_null()) return links;
  auto const lists = node["dim_links"];
  if (lists.size() > in.size())
    lists.fail("must be a list of at most " + std::to_string(in.size()) + " lists, one an argument");
  auto how = combine::sum;
  if (tag == "reduce.max") how = combine::max;
  if (tag == "reduce.min") how = combine::min;
  if (tag == "reduce.mean") how = combine::mean;
  // Each row of a layer norm's gradient needs the whole row, which MAGIS's links cut.
  int normalised = 0;
  if (tag == "layer_norm_bwd") {
    if (!node.has("attrs") || !node["attrs"].has("norm_shape")) return links;
    normalised = static_cast<int>(node["attrs"]["norm_shape"].size());
  }
  // Of the gradients of softmax and of poolings, MAGIS relates the first argument alone; the second lies beside it.
  bool const as_first = lists.size() == 1 && in.size() == 2 && (tag == "softmax_bwd" || tag.starts_with("pool2d_bwd"));
  std::int64_t reduced[max_rank + 1] = {};  // extents, by number
  bool fits = true;
  for (std::size_t a = 0; a < lists.size() + as_first; ++a) {
    auto const pairs = lists[as_first ? 0 : a];
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      auto const pair = pairs[k];
      pair.require(pair.size() == 2, "must be a pair of axes");
      auto const of_first = in[as_first ? 0 : a].rank();
      int const from = static_cast<int>(pair[0].integer(0, of_first - 1));
      int const to = static_cast<int>(pair[1].integer(-max_rank, out.rank() - 1));
      fits = fits && from < in[a].rank();
      if (!fits || from >= in[a].rank() - normalised) continue;
      auto const extent = in[a][from];
      dim_link l{static_cast<std::int16_t>(a), static_cast<std::int16_t>(from), 0, static_cast<std::int16_t>(to)};
      if (to >= 0) {
        fits = fits && out[to] == extent;
      } else {
        l.output = -1, l.out_axis = static_cast<std::int16_t>(-1 - to), l.how = how;
        auto& other = reduced[-to];
        fits = fits && (other == 0 || other == extent);
        other = extent;
      }
      links.push_back(l);
    }
  }
  if (!fits) links.clear();
  return links;
}

inline imported_graph read_magis_nodes(json_place const& root, magis_memory memory) {
  auto const nodes = root["nodes"];
  std::unordered_map<std::int64_t, std::size_t> row_of;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!row_of.emplace(nodes[i]["id"].integer(0), i).second) nodes[i]["id"].fail("is the id of two nodes");

  auto const schedule_list = root["schedule"];
  std::vector<bool> placed(nodes.size());
  graph_editor edit{operator_table(standard_operators::facets)};
  std::vector<value_id> value(nodes.size(), nothing<value_id>);
  std::vector<bool> is_read(nodes.size());
  std::unordered_map<std::uint32_t, std::uint32_t> writes;  // by storage: in place, so far
  std::vector<std::uint32_t> seen(nodes.size());            // writes of its storage that a value shows
  auto const is_overwritten = [&](std::size_t i) {
    auto const w = writes.find(static_cast<std::uint32_t>(index(edit.graph().storage(value[i]))));
    return w != writes.end() && w->second != seen[i];
  };
  std::vector<std::pair<std::size_t, value_id>> stays;  // values without readers
  imported_graph out;
  bytes_t total = 0;

  for (std::size_t k = 0; k < schedule_list.size(); ++k) {
    auto const id = schedule_list[k].integer(0);
    auto const found = row_of.find(id);
    if (found == row_of.end()) schedule_list[k].fail("there is no node " + std::to_string(id));
    std::size_t const i = found->second;
    if (placed[i]) schedule_list[k].fail("node " + std::to_string(id) + " is scheduled twice");
    placed[i] = true;

    auto const j = nodes[i];
    auto const& kind = j["kind"].text();
    auto const& tag = j["op"].text();
    j["kind"].require(kind == "weight" || kind == "input" || kind == "op", "must be weight, input or op");
    bytes_t const bytes = j["out_bytes"].bytes(total);
    if (j.has("dtype")) j["dtype"].require(j["dtype"].text() == "float32", "only float32 is known");
    tensor_layout layout;
    try {
      layout = tensor_layout::dense({dtype::f32, j["shape"].axes(0)});
      (void)layout.type.bytes();
    } catch (error const& e) { j["shape"].fail(e.what()); }
    std::string const name = j.has("attrs") ? j["attrs"].text_or("name", "") : std::string();

    op::opaque what;
    what.pointwise = tag.starts_with("ewise.");
    what.flops = j.work("flops");
    double const moved = j.work("bytes");  // read and written together
    what.written = std::min(moved, static_cast<double>(bytes));
    what.read = moved - what.written;
    what.seconds = j["latency_us"].microseconds();
    std::vector<value_id> inputs;
    auto const in = j["inputs"];
    for (std::size_t a = 0; a < in.size(); ++a) {
      auto const from = row_of.find(in[a].integer(0));
      if (from == row_of.end()) in[a].fail("there is no node " + std::to_string(in[a].integer()));
      if (value[from->second] == nothing<value_id>) in[a].fail("the schedule has its reader first");
      if (is_overwritten(from->second))
        in[a].fail("node " + std::to_string(in[a].integer()) +
                   " was updated in place before; the update's output is what there is of it");
      inputs.push_back(value[from->second]);
      is_read[from->second] = true;
    }
    int const update_of =
        j.has("inplace_of_arg") && !j["inplace_of_arg"].is_null()
            ? static_cast<int>(j["inplace_of_arg"].integer(0, static_cast<std::int64_t>(inputs.size()) - 1))
            : -1;
    bool const view = j.has("view") && j["view"].boolean() && !inputs.empty();

    if (kind != "op") {
      if (!inputs.empty()) in.fail("a " + kind + " has no inputs");
      if (memory == magis_memory::aliased) {
        value[i] = edit.add_source_at(kind == "weight" ? role::weight : role::input, layout, name, bytes);
        continue;
      }
      what.placeholder = true;
    }
    std::vector<output_rule> rules;
    if (update_of >= 0)
      rules.push_back({edit.layout_of(inputs[static_cast<std::size_t>(update_of)]), alias_kind::update, update_of, -1});
    if (update_of < 0 && memory == magis_memory::aliased && view) rules.push_back({layout, alias_kind::view, 0, -1});
    else if (update_of < 0 || memory == magis_memory::as_magis) rules.push_back({layout, alias_kind::fresh, -1, bytes});
    bool const has_attributes = j.has("attrs") && !j["attrs"].is_null();
    auto const details = has_attributes ? j["attrs"].other_members({"name"}) : std::string();
    std::vector<extents> shapes;
    for (auto v : inputs) shapes.push_back(edit.layout_of(v).type.dims);
    auto const links = magis_links(j, tag, shapes, layout.type.dims);
    op_id const o = edit.add_opaque(tag, what, inputs, rules, name, details,
                                    update_of < 0 ? std::span(links) : std::span<dim_link const>());
    if (update_of < 0 && kind == "op")
      if (auto const known =
              known_magis(tag, has_attributes ? j["attrs"].raw() : nlohmann::json(), shapes, layout.type.dims))
        edit.set_meaning(o, known->view());
    value[i] = edit.output(o);
    auto const in_storage = static_cast<std::uint32_t>(index(edit.graph().storage(value[i])));
    if (update_of >= 0) ++writes[in_storage];
    if (auto const w = writes.find(in_storage); w != writes.end()) seen[i] = w->second;
    if (update_of < 0 || memory == magis_memory::as_magis)
      stays.emplace_back(i, edit.output(o, static_cast<int>(rules.size()) - 1));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!placed[i]) nodes[i]["id"].fail("is not in the schedule");
  for (auto const& [i, v] : stays)
    if (!is_read[i] && !(v == value[i] && is_overwritten(i))) edit.keep(v, role::output);

  out.program = graph(std::move(edit).finish());
  for (auto o : out.program.ops()) out.order.order.push_back(o);
  out.name = root.text_or("name", "");
  out.format = "magis";
  return out;
}

}  // namespace detail

/// Reads a document in the form of MAGIS's testing nets; `file` names it in messages.
inline result<imported_graph> read_magis(nlohmann::json const& document, std::string const& file,
                                         magis_memory memory = magis_memory::as_magis) {
  try {
    return detail::read_magis_nodes(json_place(document, file), memory);
  } catch (std::exception const& e) { return refusal(file, e); }
}

}}}  // namespace neap::v0::io
