// The graphs of the block layer for Graphviz, to be read by a person. Thousands of boxes are unreadable: where a program has
// more than `max_boxes`, one block of each class is drawn, in a frame of its own, with what enters it as ellipses; `block`
// picks another one. The chain of blocks is drawn whole, classes in colours; with `block`, that one and what it shares data
// with.
#pragma once

#include <neap/blocks/all_graphs.hpp>
#include <neap/core/readable.hpp>
#include <neap/report/labels.hpp>
#include <neap/report/svg.hpp>

#include "dot_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

enum class block_drawing : std::uint8_t { basic, dataflow, simplified, blocks, kernels };
constexpr std::string_view name_of(block_drawing d) {
  constexpr std::string_view names[] = {"basic", "dataflow", "simplified", "blocks", "kernels"};
  return names[static_cast<std::size_t>(d)];
}

struct block_dot_options {
  std::string title = "One training step";
  std::size_t max_boxes = 120;  // of ops or nodes; with more, one block of each class is drawn
  std::uint32_t block = no_id;  // this one alone; no_id: all
};

namespace detail {

class block_dot_writer {
 public:
  block_dot_writer(op_graph const& g, all_graphs const& a, block_dot_options const& o) : g_(g), a_(a), o_(o) {}

  std::string text(block_drawing what) {
    if (o_.block != no_id && o_.block >= a_.blocks.blocks.size())
      throw_error({"there is no block ", o_.block, ": the program has ", counted(a_.blocks.blocks.size(), "block"),
                   ", from 0 on"});
    if (what != block_drawing::blocks) select(what);
    switch (what) {
      case block_drawing::basic: basic(); break;
      case block_drawing::dataflow: dataflow(); break;
      case block_drawing::simplified: simplified(); break;
      case block_drawing::blocks: blocks(); break;
      case block_drawing::kernels: kernels(); break;
    }
    std::string s = "digraph neap {\n  graph [newrank=true, fontname=\"sans-serif\", labelloc=t, fontsize=20, label=" +
                    dot_quoted(o_.title + "\n" + subtitle_) +
                    "];\n  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=11];\n"
                    "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#6b7482\"];\n";
    for (auto const& [frame, body] : frames_) s += frame.empty() ? body : frame + body + "  }\n";
    return s + edges_ + "}\n";
  }

 private:
  static constexpr char const* forward_look = "fillcolor=\"#dbe7f5\"";
  static constexpr char const* backward_look = "fillcolor=\"#f7e3c4\"";
  static constexpr char const* update_look = "fillcolor=\"#d5ead0\", color=\"#2e7d32\"";
  static constexpr char const* view_look = "fillcolor=\"#ffffff\", style=\"filled,dashed\"";
  static constexpr std::array<char const*, 12> class_colors{"#cfe2f3", "#f9d5b5", "#d5ead0", "#e3d4ee",
                                                            "#fff2b3", "#f6cfd6", "#c9efe6", "#e6d0a8",
                                                            "#dcdcdc", "#c3d3ff", "#dff5c8", "#ffd9c9"};

  static std::string number(std::size_t i) { return std::to_string(i); }
  std::string type_of(value_id v) const { return to_string(g_.type(v)) + "\n" + readable_bytes(g_.type(v).bytes()); }
  static std::string cut(std::string s, std::size_t most = 72) {
    if (s.size() <= most) return s;
    while (most > 0 && (static_cast<unsigned char>(s[most]) & 0xC0) == 0x80) --most;  // not inside a character
    return s.substr(0, most) + "...";
  }
  bytes_t bytes_of(std::vector<value_id> const& values) const {
    std::set<storage_id> seen;
    bytes_t n = 0;
    for (auto v : values)
      if (seen.insert(g_.storage(v)).second) n += g_.bytes(g_.storage(v));
    return n;
  }

  // ------------------------------------------------------------------ which blocks

  void select(block_drawing what) {
    auto const& c = a_.blocks;
    shown_.assign(c.blocks.size(), 1);
    auto const boxes = what == block_drawing::basic      ? g_.op_count()
                       : what == block_drawing::dataflow ? a_.dataflow.nodes.size()
                       : what == block_drawing::kernels  ? a_.kernels.computations.size() + a_.kernels.data.size()
                                                         : a_.simplified.nodes.size();
    if (o_.block != no_id) {
      shown_.assign(c.blocks.size(), 0);
      shown_[o_.block] = 1;
      outside_ = false;
    } else if (boxes > o_.max_boxes) {
      shown_.assign(c.blocks.size(), 0);
      for (auto const& x : a_.classes) shown_[x.representative] = 1;
      outside_ = false;
    }
    std::string const all = counted(c.blocks.size(), "block") + " of " + classes();
    subtitle_ = std::string(name_of(what)) + ": ";
    if (o_.block != no_id) subtitle_ += "block " + number(o_.block) + " of " + all;
    else if (outside_) subtitle_ += all;
    else subtitle_ += "one block of each class (" + all + ")";
    for (std::uint32_t k = 0; k < c.blocks.size(); ++k)
      if (shown_[k])
        frame_of_[k] =
            add_frame("block_" + number(k), "block " + number(k) + ", class " + number(c.blocks[k].block_class) +
                                                times(c.blocks[k].block_class));
    if (outside_) {
      frame_of_[block_chain::prologue_block] = add_frame("prologue", "prologue");
      frame_of_[block_chain::epilogue_block] = add_frame("epilogue", "epilogue: joins gradients of several blocks");
    }
  }
  std::string classes() const { return number(a_.classes.size()) + (a_.classes.size() == 1 ? " class" : " classes"); }
  std::string times(std::uint32_t of_class) const {
    auto const n = a_.classes[of_class].blocks.size();
    return n > 1 ? " (" + number(n) + " times)" : "";
  }
  std::size_t add_frame(std::string const& name, std::string const& label) {
    frames_.emplace_back("  subgraph cluster_" + name + " {\n    label=" + dot_quoted(label) +
                             "; fontsize=14; penwidth=2; color=\"#9aa3b0\";\n",
                         "");
    return frames_.size() - 1;
  }
  bool is_shown(std::uint32_t block) const { return frame_of_.contains(block); }
  bool is_shown(op_id o) const { return is_shown(a_.blocks.block_of[o]); }
  void box(std::uint32_t block, std::string const& name, std::string const& label, std::string const& style) {
    frames_[frame_of_.at(block)].second += "    " + name + " [label=" + dot_quoted(label) + ", " + style + "];\n";
  }
  void edge(std::string const& from, std::string const& to, std::string const& label, std::string const& style = {}) {
    edges_ += "  " + from + " -> " + to + " [label=" + dot_quoted(label) + (style.empty() ? "" : ", " + style) + "];\n";
  }
  /// A value that comes from outside what is drawn, in front of those who read it.
  std::string entry(value_id v) {
    auto const name = "v" + number(index(v));
    if (entered_.insert(v).second) {
      auto const p = g_.producer(v);
      std::string label = p == nothing<op_id> ? std::string(name_of(g_.role(v))) + " " : std::string();
      label += p == nothing<op_id> && g_.name(v).empty() ? number(index(v)) : value_text(g_, v);
      edges_ += "  " + name + " [shape=ellipse, fontsize=9, fillcolor=\"" +
                (p == nothing<op_id> ? "#fff2b3" : "#ffffff") + "\", label=" + dot_quoted(label + "\n" + type_of(v)) +
                "];\n";
    }
    return name;
  }

  // ------------------------------------------------------------------ the drawings

  char const* look_of(op_id o) const {
    if (flow::is_view(g_, o)) return view_look;
    auto const part = a_.basic.part[o];
    return part == step_part::forward ? forward_look : part == step_part::backward ? backward_look : update_look;
  }
  void basic() {
    for (auto o : a_.basic.order) {
      if (!is_shown(o)) continue;
      box(a_.blocks.block_of[o], "o" + number(index(o)), cut(assignment_text(g_, o)), look_of(o));
      for (auto v : g_.inputs(o)) arrow(v, "o" + number(index(o)), value_text(g_, v), {});
    }
  }
  void dataflow() {
    for (auto const& n : a_.dataflow.nodes) {
      if (!is_shown(n.op)) continue;
      auto const name = "o" + number(index(n.op));
      std::string label = operator_label(g_, n.op);
      for (auto v : g_.outputs(n.op)) {
        auto const& r = g_.record(v);
        label += "\n" + value_text(g_, v) + ": " + to_string(g_.type(v));
        if (r.alias == alias_kind::fresh) label += ", " + readable_bytes(g_.bytes(r.storage));
        if (r.alias == alias_kind::view) label += ", view of " + value_text(g_, a_.dataflow.parent[v]);
        if (r.alias == alias_kind::update) label += ", update of " + value_text(g_, a_.dataflow.parent[v]);
      }
      if (n.is_random) label += "\nrandom";
      box(a_.blocks.block_of[n.op], name, label,
          std::string(n.is_update && n.bytes == 0 ? update_look : look_of(n.op)) + (n.trained ? ", penwidth=2" : ""));
      for (auto v : g_.inputs(n.op)) arrow(v, name, type_of(v), n.is_view ? "style=dashed" : "");
      for (auto o : n.order)
        if (is_shown(o)) edge("o" + number(index(o)), name, "", "style=dotted, constraint=false");
    }
  }
  void arrow(value_id v, std::string const& to, std::string const& label, std::string const& style) {
    auto const p = g_.producer(v);
    if (p != nothing<op_id> && is_shown(p)) edge("o" + number(index(p)), to, label, style);
    else edge(entry(v), to, "", style);
  }

  void simplified() {
    auto const& p = a_.simplified;
    std::vector<unsigned char> drawn(p.nodes.size());
    for (std::uint32_t n = 0; n < p.nodes.size(); ++n) {
      if (!is_shown(p.nodes[n].main)) continue;
      drawn[n] = 1;
      std::string label = operator_label(g_, p.nodes[n].main);
      bytes_t bytes = 0;
      for (auto o : p.nodes[n].ops) bytes += a_.dataflow[o].bytes;
      label += "\nmakes " + readable_bytes(bytes);
      for (auto o : p.nodes[n].ops)
        if (o != p.nodes[n].main) label += "\n+ " + operator_label(g_, o);
      box(a_.blocks.block_of[p.nodes[n].main], "n" + number(n), label,
          std::string(forward_look) + (p.nodes[n].trained ? ", penwidth=2" : ""));
      std::set<value_id> sources;
      for (auto o : p.nodes[n].ops)
        for (auto v : g_.inputs(o)) {
          auto const from = g_.producer(v);
          auto const m = from == nothing<op_id> ? no_id : p.node_of[from];
          if (m == n || (m < p.nodes.size() && is_shown(p.nodes[m].main)) || !sources.insert(v).second) continue;
          edge(entry(v), "n" + number(n), "");
        }
    }
    for (auto const& e : p.edges) {
      if (!drawn[e.from] || !drawn[e.to]) continue;
      if (e.values.empty()) {
        edge("n" + number(e.from), "n" + number(e.to), "", "style=dotted");
        continue;
      }
      std::string label = e.values.size() == 1 ? to_string(g_.type(e.values[0])) : counted(e.values.size(), "value");
      edge("n" + number(e.from), "n" + number(e.to), label + "\n" + readable_bytes(bytes_of(e.values)));
    }
  }

  using data_of_pairs = std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<storage_id>>;
  bool touches(std::pair<std::uint32_t, std::uint32_t> const& pair) const {
    return pair.first == o_.block || pair.second == o_.block;
  }
  /// What goes from block to block, forward and behind.
  std::pair<data_of_pairs, data_of_pairs> shared_data() const {
    auto const& c = a_.blocks;
    data_of_pairs forward, behind;
    for (auto o : g_.ops())
      for (auto v : g_.inputs(o)) {
        auto const from = g_.producer(v);
        if (from == nothing<op_id> || c.block_of[from] == c.block_of[o]) continue;
        bool const late = c.part[from] != step_part::forward;
        if (!late && c.part[o] != step_part::forward && c.block_of[from] != block_chain::prologue_block) {
          if (c.block_of[o] != block_chain::epilogue_block && c.block_of[from] < c.block_of[o]) {
            forward[{c.block_of[from], c.block_of[o]}].insert(g_.storage(v));
            continue;
          }
        }
        (late ? behind : forward)[{c.block_of[from], c.block_of[o]}].insert(g_.storage(v));
      }
    return {std::move(forward), std::move(behind)};
  }
  void blocks() {
    auto const& c = a_.blocks;
    subtitle_ = counted(c.blocks.size(), "block") + " of " + classes() + "; forward blue, gradients orange";
    bool const whole = o_.block == no_id;
    if (!whole) subtitle_ = "block " + number(o_.block) + " and what it shares data with, of " + subtitle_;
    auto const [forward, behind] = shared_data();
    std::set<std::uint32_t> shown{o_.block};
    for (auto const* all : {&forward, &behind})
      for (auto const& [pair, storages] : *all)
        if (touches(pair)) shown.insert({pair.first, pair.second});
    std::string body;
    auto const put = [&](std::string const& name, std::string const& label, std::string const& style) {
      body += "  " + name + " [label=" + dot_quoted(label) + ", " + style + "];\n";
    };
    for (std::uint32_t k = 0; k < c.blocks.size(); ++k) {
      if (!whole && !shown.contains(k)) continue;
      auto const& b = c.blocks[k];
      std::vector<value_id> inside;
      for (auto v : b.saved)
        if (auto const p = g_.producer(g_.record(g_.storage(v)).first); p != nothing<op_id> && c.block_of[p] == k)
          inside.push_back(v);
      std::string label = "block " + number(k) + ", class " + number(b.block_class) + "\n" + words_of(b) + "\n" +
                          number(b.forward.size()) + " ops forward, " + number(b.backward.size()) + " backward, " +
                          number(b.updates.size()) + " updates\nsaves " + readable_bytes(bytes_of(inside));
      put("b" + number(k), label,
          std::string("fillcolor=\"") + class_colors[b.block_class % class_colors.size()] + "\"" +
              (o_.block == k ? ", penwidth=3" : ""));
    }
    if (whole ? !c.prologue.empty() : shown.contains(block_chain::prologue_block))
      put("prologue", "prologue\n" + counted(c.prologue.size(), "op"),
          "fillcolor=\"#ffffff\", style=\"filled,dashed\"");
    if (whole ? !c.epilogue.empty() : shown.contains(block_chain::epilogue_block))
      put("epilogue", "epilogue\n" + counted(c.epilogue.size(), "op"),
          "fillcolor=\"#ffffff\", style=\"filled,dashed\"");
    frames_.emplace_back("", body);
    auto const name = [](std::uint32_t k) {
      return k == block_chain::prologue_block   ? std::string("prologue")
             : k == block_chain::epilogue_block ? std::string("epilogue")
                                                : "b" + number(k);
    };
    for (auto const* all : {&forward, &behind})
      for (auto const& [pair, storages] : *all) {
        if (whole ? pair.first == block_chain::prologue_block : !touches(pair))
          continue;  // that goes nearly everywhere
        bytes_t bytes = 0;
        for (auto s : storages) bytes += g_.bytes(s);
        bool const back = all == &behind;
        bool const tail = pair.second == block_chain::epilogue_block;
        edge(name(pair.first), name(pair.second),
             (storages.size() > 1 ? counted(storages.size(), "value") + "\n" : "") + readable_bytes(bytes),
             std::string(back ? "color=\"#c77f1d\", fontcolor=\"#a3650f\""
                              : "color=\"#2f6db5\", fontcolor=\"#2f6db5\"") +
                 (back || tail ? ", constraint=false" : ""));
      }
    if (!whole) return;
    if (!c.prologue.empty() && !c.blocks.empty()) edge("prologue", "b0", "", "style=dashed");
    if (!c.epilogue.empty() && !c.blocks.empty()) edge("b0", "epilogue", "", "style=invis, constraint=false");
  }
  /// The operators of a block that occur most, views left out.
  std::string words_of(program_block const& b) const {
    std::vector<std::pair<std::string, std::size_t>> what;
    for (auto o : b.forward) {
      if (flow::is_view(g_, o)) continue;
      auto const name = operator_label(g_, o);
      auto it = std::find_if(what.begin(), what.end(), [&](auto const& x) { return x.first == name; });
      if (it == what.end()) it = what.insert(it, {name, 0});
      ++it->second;
    }
    std::stable_sort(what.begin(), what.end(), [](auto const& x, auto const& y) { return x.second > y.second; });
    std::string s;
    for (std::size_t i = 0; i < what.size() && i < 5; ++i)
      s += (i ? ", " : "") + (what[i].second > 1 ? number(what[i].second) + " " : std::string()) + what[i].first;
    return s + (what.size() > 5 ? ", ..." : "");
  }

  void kernels() {
    auto const& k = a_.kernels;
    auto const block_of_node = [&](std::uint32_t n) { return a_.blocks.block_of[a_.simplified.nodes[n].main]; };
    std::vector<unsigned char> named(k.data.size());
    auto const data_name = [&](std::uint32_t d) {
      auto const& x = k.data[d];
      auto const name = "d" + number(d);
      if (named[d]) return name;
      named[d] = 1;
      char const* const look = x.kind == kernel_data_kind::gradient   ? "fillcolor=\"#fbeedb\", color=\"#c77f1d\""
                               : x.kind == kernel_data_kind::phantoms ? "fillcolor=\"#ececec\", style=\"filled,dashed\""
                                                                      : "fillcolor=\"#ffffff\"";
      std::string const line =
          name + " [shape=ellipse, fontsize=10, " + look + ", label=" +
          dot_quoted(std::string(name_of(x.kind)) + " " + number(x.node) + "\n" + readable_bytes(x.bytes)) + "];\n";
      if (is_shown(block_of_node(x.node))) frames_[frame_of_.at(block_of_node(x.node))].second += "    " + line;
      else edges_ += "  " + line;
      return name;
    };
    for (std::uint32_t c = 0; c < k.computations.size(); ++c) {
      auto const& x = k.computations[c];
      if (!is_shown(block_of_node(x.node))) continue;
      std::string label = std::string(name_of(x.kind)) + " " + number(x.node) + (x.is_loss ? " (loss)" : "");
      std::size_t views = 0, others = 0;
      for (auto o : x.ops) {
        if (flow::is_view(g_, o)) ++views;
        else if (++others <= 6) label += "\n" + operator_label(g_, o);
      }
      if (others > 6) label += "\n" + counted(others - 6, "other");
      if (views) label += "\n" + counted(views, "view");
      auto const name = "c" + number(c);
      box(block_of_node(x.node), name, label, x.kind == kernel_kind::forward ? forward_look : backward_look);
      for (auto d : x.reads) edge(data_name(d), name, "");
      for (auto d : x.fakes) edge(data_name(d), name, "", "style=dashed, color=\"#b9c0ca\"");
      for (auto d : x.makes) edge(name, data_name(d), "");
    }
    subtitle_ += "\ndashed arrows: only the kind of tensor is known, no bytes are read";
  }

  op_graph const& g_;
  all_graphs const& a_;
  block_dot_options const& o_;
  std::vector<unsigned char> shown_;
  bool outside_ = true;  // the prologue and the epilogue are drawn, too
  std::string subtitle_, edges_;
  std::vector<std::pair<std::string, std::string>> frames_;  // opening line; boxes
  std::map<std::uint32_t, std::size_t> frame_of_;
  std::set<value_id> entered_;
};

}  // namespace detail

/// Throws neap::error for a block that is not there.
inline std::string to_dot(op_graph const& g, all_graphs const& a, block_drawing what,
                          block_dot_options const& options = {}) {
  return detail::block_dot_writer(g, a, options).text(what);
}

}}  // namespace neap::v0
