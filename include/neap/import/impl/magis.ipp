// The bodies of <neap/import/magis.hpp>.
#pragma once

#include <neap/import/magis.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/import/known_operators.hpp>
#include <neap/ir/editor.hpp>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

namespace neap { inline namespace v0 { namespace io {

namespace detail {

/// The dimension relations of a node: for each argument pairs of an axis and the result's axis, or -k for the k-th reduced
/// one. Two errors of MAGIS's are mended. None, if the axes do not have the extents that they would have to.
NEAP_FUNC std::vector<dim_link> magis_links(json_place const& node, std::string const& tag,
                                            std::vector<extents> const& in, extents const& out) {
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

class magis_reader {
 public:
  magis_reader(json_place const& root, magis_memory memory)
      : root_(root),
        nodes_(root["nodes"]),
        memory_(memory),
        edit_(operator_table(standard_operators::facets)),
        value_(nodes_.size(), nothing<value_id>),
        is_read_(nodes_.size()),
        seen_(nodes_.size()) {}

  imported_graph operator()() {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!row_of_.emplace(nodes_[i]["id"].integer(0), i).second) nodes_[i]["id"].fail("is the id of two nodes");
    auto const schedule_list = root_["schedule"];
    std::vector<bool> placed(nodes_.size());
    for (std::size_t k = 0; k < schedule_list.size(); ++k) {
      auto const id = schedule_list[k].integer(0);
      auto const found = row_of_.find(id);
      if (found == row_of_.end()) schedule_list[k].fail("there is no node " + std::to_string(id));
      std::size_t const i = found->second;
      if (placed[i]) schedule_list[k].fail("node " + std::to_string(id) + " is scheduled twice");
      placed[i] = true;
      read_node(i);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!placed[i]) nodes_[i]["id"].fail("is not in the schedule");
    for (auto const& [i, v] : stays_)
      if (!is_read_[i] && !(v == value_[i] && is_overwritten(i))) edit_.keep(v, role::output);

    auto out = imported(std::move(edit_), "magis");
    out.name = root_.text_or("name", "");
    return out;
  }

 private:
  bool is_overwritten(std::size_t i) const {
    auto const w = writes_.find(static_cast<std::uint32_t>(index(edit_.graph().storage(value_[i]))));
    return w != writes_.end() && w->second != seen_[i];
  }
  static tensor_layout layout_in(json_place const& j) {
    if (j.has("dtype")) j["dtype"].require(j["dtype"].text() == "float32", "only float32 is known");
    tensor_layout layout;
    try {
      layout = tensor_layout::dense({dtype::f32, j["shape"].axes(0)});
      (void)layout.type.bytes();
    } catch (error const& e) { j["shape"].fail(e.what()); }
    return layout;
  }
  static op::opaque work_in(json_place const& j, bytes_t bytes) {
    op::opaque what;
    what.pointwise = j["op"].text().starts_with("ewise.");
    what.flops = j.work("flops");
    double const moved = j.work("bytes");  // read and written together
    what.written = std::min(moved, static_cast<double>(bytes));
    what.read = moved - what.written;
    what.seconds = j["latency_us"].microseconds();
    return what;
  }
  std::vector<value_id> read_inputs(json_place const& in) {
    std::vector<value_id> inputs;
    for (std::size_t a = 0; a < in.size(); ++a) {
      auto const from = row_of_.find(in[a].integer(0));
      if (from == row_of_.end()) in[a].fail("there is no node " + std::to_string(in[a].integer()));
      if (value_[from->second] == nothing<value_id>) in[a].fail("the schedule has its reader first");
      if (is_overwritten(from->second))
        in[a].fail("node " + std::to_string(in[a].integer()) +
                   " was updated in place before; the update's output is what there is of it");
      inputs.push_back(value_[from->second]);
      is_read_[from->second] = true;
    }
    return inputs;
  }
  void read_node(std::size_t i) {
    auto const j = nodes_[i];
    auto const& kind = j["kind"].text();
    auto const& tag = j["op"].text();
    j["kind"].require(kind == "weight" || kind == "input" || kind == "op", "must be weight, input or op");
    bytes_t const bytes = j["out_bytes"].bytes(total_);
    auto const layout = layout_in(j);
    std::string const name = j.has("attrs") ? j["attrs"].text_or("name", "") : std::string();
    auto what = work_in(j, bytes);
    auto const inputs = read_inputs(j["inputs"]);
    int const update_of =
        j.has("inplace_of_arg") && !j["inplace_of_arg"].is_null()
            ? static_cast<int>(j["inplace_of_arg"].integer(0, static_cast<std::int64_t>(inputs.size()) - 1))
            : -1;
    bool const view = j.has("view") && j["view"].boolean() && !inputs.empty();
    if (kind != "op") {
      if (!inputs.empty()) j["inputs"].fail("a " + kind + " has no inputs");
      if (memory_ == magis_memory::aliased) {
        value_[i] = edit_.add_source_at(kind == "weight" ? role::weight : role::input, layout, name, bytes);
        return;
      }
      what.placeholder = true;
    }
    std::vector<output_rule> rules;
    if (update_of >= 0)
      rules.push_back(
          {edit_.layout_of(inputs[static_cast<std::size_t>(update_of)]), alias_kind::update, update_of, -1});
    if (update_of < 0 && memory_ == magis_memory::aliased && view) rules.push_back({layout, alias_kind::view, 0, -1});
    else if (update_of < 0 || memory_ == magis_memory::as_magis)
      rules.push_back({layout, alias_kind::fresh, -1, bytes});
    bool const has_attributes = j.has("attrs") && !j["attrs"].is_null();
    auto const details = has_attributes ? j["attrs"].other_members({"name"}) : std::string();
    std::vector<extents> shapes;
    for (auto v : inputs) shapes.push_back(edit_.layout_of(v).type.dims);
    auto const links = magis_links(j, tag, shapes, layout.type.dims);
    op_id const o = edit_.add_opaque(tag, what, inputs, rules, name, details,
                                     update_of < 0 ? std::span(links) : std::span<dim_link const>());
    if (update_of < 0 && kind == "op")
      if (auto const known =
              known_magis(tag, has_attributes ? j["attrs"].raw() : nlohmann::json(), shapes, layout.type.dims))
        edit_.set_meaning(o, known->view());
    value_[i] = edit_.output(o);
    auto const in_storage = static_cast<std::uint32_t>(index(edit_.graph().storage(value_[i])));
    if (update_of >= 0) ++writes_[in_storage];
    if (auto const w = writes_.find(in_storage); w != writes_.end()) seen_[i] = w->second;
    if (update_of < 0 || memory_ == magis_memory::as_magis)
      stays_.emplace_back(i, edit_.output(o, static_cast<int>(rules.size()) - 1));
  }

  json_place root_, nodes_;
  magis_memory memory_;
  graph_editor edit_;
  std::unordered_map<std::int64_t, std::size_t> row_of_;
  std::vector<value_id> value_;
  std::vector<bool> is_read_;
  std::unordered_map<std::uint32_t, std::uint32_t> writes_;  // by storage: in place, so far
  std::vector<std::uint32_t> seen_;                          // writes of its storage that a value shows
  std::vector<std::pair<std::size_t, value_id>> stays_;      // values without readers
  bytes_t total_ = 0;
};

}  // namespace detail

NEAP_FUNC result<imported_graph> read_magis(nlohmann::json const& document, std::string const& file,
                                            magis_memory memory) {
  try {
    return detail::magis_reader(json_place(document, file), memory)();
  } catch (std::exception const& e) { return refusal(file, e); }
}

}}}  // namespace neap::v0::io
