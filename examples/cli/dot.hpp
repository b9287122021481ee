// A graph for Graphviz, for a person who knows nothing of the program: forward, backward and update each in a frame of
// its own, ops as boxes in the colour of what they do, values as edges with their types and bytes, weights and other
// sources as ellipses in the colour of their role, order constraints dotted; a legend names what occurs. With a schedule,
// boxes carry their positions, and ops that compute again what an earlier one has computed are marked.
//
// A graph of thousands of ops cannot be read box by box, and Graphviz would need hours: beyond `max_boxes` ops that
// follow one another within a part of the step are drawn as one box, with what goes from box to box in one edge and the
// sources listed in the boxes, and the title says so. Recomputed ops and transfers keep own boxes as long as there
// is room; then boxes that have some get a red or violet frame.
#pragma once

#include <neap/core/readable.hpp>
#include <neap/core/sort_once.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/report/labels.hpp>
#include <neap/report/svg.hpp>

#include "dot_text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct dot_options {
  std::string title = "One training step";
  std::size_t max_boxes = 120;  // with more ops, neighbours share a box
};

namespace detail {

class dot_writer {
 public:
  dot_writer(op_graph const& g, schedule const* order, dot_options const& options)
      : g_(g),
        options_(options),
        scheduled_(order != nullptr) {
    if (order) order_ = *order;
    else
      for (auto o : g.ops()) order_.order.push_back(o);
    parts_ = parts_of(g, order_);
    again_ = recomputed_ops(g, order_);
    kinds_.assign(g.op_count(), box_kind::forward);
    for (auto o : order_) kinds_[o] = kind_of(o);
    group();
  }

  std::string text() {
    s_ = "digraph neap {\n  graph [fontname=\"sans-serif\", labelloc=t, fontsize=20, label=" + quoted(title()) +
         "];\n  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=11];\n"
         "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#6b7482\"];\n";
    legend();
    if (is_merged()) merged();
    else plain();
    return s_ + "}\n";
  }

 private:
  enum class box_kind : std::uint8_t { forward, backward, update, view, recomputed, store, load, wait };
  struct look {
    char const* name;
    char const* style;
  };
  static constexpr std::array<look, 8> box_looks{
      {{"forward", "fillcolor=\"#dbe7f5\""},
       {"backward", "fillcolor=\"#f7e3c4\""},
       {"update in place", "fillcolor=\"#d5ead0\", color=\"#2e7d32\""},
       {"view: costs nothing", "fillcolor=\"#ffffff\", style=\"filled,dashed\""},
       {"computed again", "fillcolor=\"#f2b5a7\", color=\"#c8553d\""},
       {"store: moved out", "fillcolor=\"#d3c8e8\", shape=cds"},
       {"load: brought in", "fillcolor=\"#b8d2ee\", shape=cds"},
       {"wait: for a store to end", "fillcolor=\"#ece7f5\", shape=octagon"}}};
  static constexpr std::array role_fill{"#fff2b3", "#e6d0a8", "#e9e9e9", "#c9efe6", "#f3f3f3",
                                        "#ffffff", "#f9d0de", "#dff5c8", "#ff9d8a", "#a5d9cb"};
  static_assert(role_fill.size() == static_cast<std::size_t>(role::donated) + 1, "a colour for each role");

  static std::string quoted(std::string_view s) { return dot_quoted(s); }
  bytes_t bytes_of(value_id v) const { return g_.type(v).bytes(); }
  std::string type_of(value_id v) const { return to_string(g_.type(v)) + "\n" + readable_bytes(bytes_of(v)); }

  box_kind kind_of(op_id o) const {
    if (g_.as<op::store>(o)) return box_kind::store;
    if (g_.as<op::load>(o)) return box_kind::load;
    if (g_.as<op::wait>(o)) return box_kind::wait;
    if (again_[o]) return box_kind::recomputed;
    if (flow::is_view(g_, o)) return box_kind::view;
    for (auto v : g_.outputs(o))
      if (g_.record(v).alias == alias_kind::update) return box_kind::update;
    return static_cast<box_kind>(parts_[o]);
  }
  static bool stands_out(box_kind k) { return k >= box_kind::recomputed; }

  /// Which box each op lies in: its own, or one with others of its part of the step that are near it in the schedule.
  /// Boxes hold 1, 2, 4... ops until they are few enough; if what stands out is too much alone, it is merged, too.
  void group() {
    std::size_t const n = order_.size(), most = std::max<std::size_t>(options_.max_boxes, step_part_count);
    box_of_.assign(g_.op_count(), 0);
    for (bool own : {true, false})
      for (std::size_t size = 1; size < 2 * n || size == 1; size *= 2) {
        boxes_ = 0;
        std::array<std::size_t, step_part_count> room{}, open{};  // of the last box of each part
        for (auto o : order_) {
          auto const part = static_cast<std::size_t>(parts_[o]);
          bool const alone = own && stands_out(kinds_[o]);
          if (alone || room[part] == 0) open[part] = boxes_++, room[part] = size;
          box_of_[o] = open[part];
          room[part] = alone ? 0 : room[part] - 1;
        }
        if (boxes_ <= most) return;
      }
  }
  bool is_merged() const { return boxes_ < order_.size(); }

  std::string title() const {
    std::string t = options_.title;
    if (is_merged())
      t += "\n" + counted(order_.size(), "op") + " in " + std::to_string(boxes_) +
           " boxes: ops that follow one another in a part of the step are drawn as one";
    return t;
  }

  void legend() {
    std::array<bool, box_looks.size()> there{};
    for (auto o : order_) there[static_cast<std::size_t>(kinds_[o])] = true;
    std::array<bool, role_fill.size()> roles{};
    for (auto v : g_.sources()) roles[static_cast<std::size_t>(g_.role(v))] = !is_merged();
    for (auto v : g_.kept()) roles[static_cast<std::size_t>(g_.role(v))] = !is_merged();
    s_ += "  subgraph cluster_legend {\n    label=\"Legend\"; fontsize=13; color=\"#b9c0ca\";\n";
    std::string before;
    auto const entry = [&](std::string const& name, std::string const& label, std::string const& style) {
      s_ += "    " + name + " [" + style + ", fontsize=10, height=0.3, label=" + quoted(label) + "];\n";
      if (!before.empty()) s_ += "    " + before + " -> " + name + " [style=invis];\n";
      before = name;
    };
    for (std::size_t k = 0; k < there.size(); ++k)
      if (there[k]) entry("legend_" + std::to_string(k), box_looks[k].name, box_looks[k].style);
    for (std::size_t r = 0; r < roles.size(); ++r)
      if (roles[r])
        entry("legend_role_" + std::to_string(r), std::string(name_of(static_cast<role>(r))),
              "shape=egg, fillcolor=\"" + std::string(role_fill[r]) + "\"");
    s_ += "  }\n";
  }

  /// The boxes of each part of the step in a frame, by `write(part)`.
  template <class Write>
  void frames(Write const& write) {
    std::array<std::size_t, step_part_count> count{};
    for (auto o : order_) ++count[static_cast<std::size_t>(parts_[o])];
    for (std::size_t k = 0; k < step_part_count; ++k) {
      if (count[k] == 0) continue;
      constexpr char const* color[] = {"#7d9cc4", "#c99a52", "#6fa565"};
      s_ += "  subgraph cluster_" + std::string(name_of(static_cast<step_part>(k))) + " {\n    label=" +
            quoted(std::string(name_of(static_cast<step_part>(k))) + ": " + counted(count[k], "op")) +
            "; fontsize=16; penwidth=2; color=\"" + color[k] + "\";\n";
      write(static_cast<step_part>(k));
      s_ += "  }\n";
    }
  }

  void plain() {
    table<op_id, std::uint32_t> at;
    if (scheduled_) at = positions(order_);
    for (auto v : g_.sources()) {
      std::string label(name_of(g_.role(v)));
      if (!g_.name(v).empty()) label += " " + std::string(g_.name(v));
      s_ += "  v" + std::to_string(index(v)) + " [shape=ellipse, label=" + quoted(label + "\n" + type_of(v)) +
            ", fillcolor=\"" + role_fill[static_cast<std::size_t>(g_.role(v))] + "\"];\n";
    }
    frames([&](step_part part) {
      for (auto o : g_.ops()) {
        if (parts_[o] != part) continue;
        std::string label = operator_label(g_, o);
        if (scheduled_) label = std::to_string(at[o]) + ": " + label;
        if (!g_.name(o).empty()) label += "\n" + std::string(g_.name(o));
        if (again_[o]) label += "\ncomputed again";
        s_ += "    o" + std::to_string(index(o)) + " [label=" + quoted(label) + ", " +
              box_looks[static_cast<std::size_t>(kinds_[o])].style + "];\n";
      }
    });
    for (auto o : g_.ops()) {
      for (auto v : g_.inputs(o)) {
        auto const p = g_.producer(v);
        s_ += "  " + (p == nothing<op_id> ? "v" + std::to_string(index(v)) : "o" + std::to_string(index(p))) + " -> o" +
              std::to_string(index(o)) + " [label=" + quoted(type_of(v)) + "];\n";
      }
      for (auto before : g_.order_after(o))
        s_ += "  o" + std::to_string(index(before)) + " -> o" + std::to_string(index(o)) +
              " [style=dotted, constraint=false];\n";
    }
    for (auto v : g_.kept()) {
      auto const p = g_.producer(v);
      std::string const name = "k" + std::to_string(index(v));
      s_ += "  " + name +
            " [shape=ellipse, penwidth=2, label=" + quoted(std::string(name_of(g_.role(v))) + "\n" + type_of(v)) +
            ", fillcolor=\"" + role_fill[static_cast<std::size_t>(g_.role(v))] + "\"];\n";
      if (p != nothing<op_id>) s_ += "  o" + std::to_string(index(p)) + " -> " + name + ";\n";
    }
  }

  /// What several values between two boxes come to.
  struct bundle {
    std::size_t from, to;  // boxes
    std::size_t values = 0;
    bytes_t bytes = 0;
  };
  struct box {
    op_id first = nothing<op_id>;
    std::size_t from = 0, to = 0;  // positions of the first and the last op
    std::vector<op_id> ops;
  };

  void merged() {
    std::vector<box> boxes(boxes_);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      auto& b = boxes[box_of_[order_[i]]];
      if (b.ops.empty()) b.first = order_[i], b.from = i;
      b.to = i;
      b.ops.push_back(order_[i]);
    }
    frames([&](step_part part) {
      for (std::size_t k = 0; k < boxes_; ++k) {
        auto const& b = boxes[k];
        if (parts_[b.first] != part) continue;
        bool again = false, moved = false;
        for (auto o : b.ops) {
          again |= kinds_[o] == box_kind::recomputed;
          moved |= kinds_[o] == box_kind::store || kinds_[o] == box_kind::load;
        }
        bool const many = b.ops.size() > 1;  // then the frame shows it
        s_ += "    b" + std::to_string(k) + " [label=" + quoted(label_of(b)) + ", " +
              box_looks[static_cast<std::size_t>(look_of(b))].style +
              (many && again   ? ", penwidth=3, color=\"#c8553d\""
               : many && moved ? ", penwidth=3, color=\"#6a51a3\""
                               : "") +
              "];\n";
      }
    });
    // What goes from box to box; sources and kept values are listed in the boxes, or their edges would hide all others.
    std::vector<bundle> edges;
    std::vector<std::uint8_t> seen(g_.value_count());  // a value counts once a box that reads it
    for (std::size_t k = 0; k < boxes_; ++k) {
      std::vector<value_id> read;
      for (auto o : boxes[k].ops)
        for (auto v : g_.inputs(o))
          if (auto const p = g_.producer(v); p != nothing<op_id> && box_of_[p] != k && !seen[index(v)])
            seen[index(v)] = 1, read.push_back(v);
      auto const begin = static_cast<std::ptrdiff_t>(edges.size());
      for (auto v : read) {
        seen[index(v)] = 0;
        auto const from = box_of_[g_.producer(v)];
        auto it = std::find_if(edges.begin() + begin, edges.end(), [&](bundle const& e) { return e.from == from; });
        if (it == edges.end()) it = edges.insert(it, bundle{from, k});
        ++it->values, it->bytes += bytes_of(v);
      }
    }
    for (auto const& e : edges)
      s_ += "  b" + std::to_string(e.from) + " -> b" + std::to_string(e.to) +
            " [label=" + quoted(counted(e.values, "value") + "\n" + readable_bytes(e.bytes)) + "];\n";
  }

  /// "reads 12 weights, 1.50 MiB" and "keeps 2 gradients, 8.00 MiB".
  std::string outside_of(box const& b) const {
    std::array<std::size_t, role_fill.size()> count{};
    std::array<bytes_t, role_fill.size()> bytes{};
    std::vector<value_id> read;
    auto const add = [&](value_id v) {
      ++count[static_cast<std::size_t>(g_.role(v))], bytes[static_cast<std::size_t>(g_.role(v))] += bytes_of(v);
    };
    for (auto o : b.ops) {
      for (auto v : g_.inputs(o))
        if (g_.producer(v) == nothing<op_id>) read.push_back(v);
      for (auto v : g_.outputs(o))
        if (g_.is_kept(v)) add(v);
    }
    sort_once(read);
    for (auto v : read) add(v);
    std::string t;
    for (std::size_t r = 0; r < count.size(); ++r)
      if (count[r] > 0)
        t += std::string("\n") + (is_source(static_cast<role>(r)) ? "reads " : "keeps ") +
             counted(count[r], name_of(static_cast<role>(r))) + ", " + readable_bytes(bytes[r]);
    return t;
  }

  box_kind look_of(box const& b) const {
    bool same = true;
    for (auto o : b.ops) same &= kinds_[o] == kinds_[b.first];
    return same ? kinds_[b.first] : static_cast<box_kind>(parts_[b.first]);
  }
  /// Positions, the operators that occur most, what is computed again or moved.
  std::string label_of(box const& b) const {
    std::string const where =
        scheduled_ ? std::to_string(b.from) + (b.ops.size() > 1 ? ".." + std::to_string(b.to) : "") + ": "
                   : std::string();
    if (b.ops.size() == 1)
      return where + operator_label(g_, b.first) +
             (g_.name(b.first).empty() ? "" : "\n" + std::string(g_.name(b.first))) +
             (again_[b.first] ? "\ncomputed again" : "") + outside_of(b);
    std::vector<std::pair<std::string, std::size_t>> what;
    std::size_t again = 0, moved = 0, views = 0;
    for (auto o : b.ops) {
      again += again_[o] != 0, moved += kinds_[o] == box_kind::store || kinds_[o] == box_kind::load;
      if (kinds_[o] == box_kind::view) {
        ++views;
        continue;
      }
      auto const name = operator_label(g_, o);
      auto it = std::find_if(what.begin(), what.end(), [&](auto const& x) { return x.first == name; });
      if (it == what.end()) it = what.insert(it, {name, 0});
      ++it->second;
    }
    std::stable_sort(what.begin(), what.end(), [](auto const& x, auto const& y) { return x.second > y.second; });
    std::string t = where + counted(b.ops.size(), "op");
    std::size_t others = 0;
    for (std::size_t i = 0; i < what.size(); ++i) {
      if (i < 3) t += "\n" + std::to_string(what[i].second) + " " + what[i].first;
      else others += what[i].second;
    }
    if (others) t += "\n" + counted(others, "other");
    if (views) t += "\n" + counted(views, "view");
    if (again) t += "\n" + std::to_string(again) + " computed again";
    if (moved) t += "\n" + std::to_string(moved) + " moved";
    return t + outside_of(b);
  }

  op_graph const& g_;
  dot_options const& options_;
  schedule order_;
  bool scheduled_;
  table<op_id, step_part> parts_;
  table<op_id, std::uint8_t> again_;
  table<op_id, box_kind> kinds_;
  table<op_id, std::size_t> box_of_;
  std::size_t boxes_ = 0;
  std::string s_;
};

}  // namespace detail

/// `order`: a schedule of the graph, or none. O(ops + edges), or a little more where neighbours share a box; about 200
/// bytes an op and an edge.
inline std::string to_dot(op_graph const& g, schedule const* order = nullptr, dot_options const& options = {}) {
  return detail::dot_writer(g, order, options).text();
}

}}  // namespace neap::v0
