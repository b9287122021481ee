// Graphs as text, for people, tests and files: to_text(g) and parse_graph(operators, text) are inverse, ids, names,
// origins, layouts and storages included.
//
//   neap graph 1
//   origins 3                                      # origins taken so far
//   source v0 input f32[32,64] "x"                 # id, role, type, name
//   source v1 weight f32[64,64]
//   op o0 matmul {transpose_b=true} (v0,v1) "up"   # id, operator, attributes that are not the default, arguments, name
//     v2 f32[32,64]                                # its outputs; fresh unless said otherwise
//   op o1 permute {axes=[1,0]} (v2) origin o7 part 0/2
//                                                  #   the first half of o7; `part 0/2 3/4`: a part of that
//     v3 view 0 f32[64,32] strides [1,64]          # a view of argument 0; `update 0`: its next version; `over 0`: written
//                                                  #   in its place, a storage of its own; `view own 0`: of
//   op o2 opaque "aten::foo" {pure=false} (v3)     #   the op's own output 0; details: a text after the first
//     v4 f32[8] bytes 64 gradient "g"              # storage of other than dense size; role; name
//     v5 f32[8] pins keep, never_out               # pins of a value (ir/pins.hpp), after its name; of an op, after its part
//   keep v4
//
// White space separates, lines mean nothing, # starts a comment.
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/verify.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

// ---------------------------------------------------------------------------------------------- printing

inline void print_quoted(std::string& to, std::string_view text) {
  constexpr char hex[] = "0123456789abcdef";
  to += '"';
  for (char c : text) {
    auto const u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') (to += '\\') += c;
    else if (u < 0x20 || u == 0x7f) ((to += "\\x") += hex[u / 16]) += hex[u % 16];
    else to += c;
  }
  to += '"';
}
inline void print_number(std::string& to, double x) {
  char text[32];
  // What is not a number or not finite: its bits.
  auto const end = std::isfinite(x) ? std::to_chars(text, text + sizeof text, x).ptr
                                    : std::to_chars(text, text + sizeof text, std::bit_cast<std::uint64_t>(x), 16).ptr;
  if (!std::isfinite(x)) to += "bits:";
  to.append(text, end);
}
inline void print_attribute(std::string& to, attribute_value const& v) {
  std::visit(
      [&](auto const& x) {
        using type = std::remove_cvref_t<decltype(x)>;
        if constexpr (std::is_same_v<type, bool>) to += x ? "true" : "false";
        else if constexpr (std::is_same_v<type, double>) print_number(to, x);
        else if constexpr (std::is_same_v<type, std::int64_t>) to += std::to_string(x);
        else if constexpr (std::is_same_v<type, dtype>) to += name_of(x);
        else if constexpr (std::is_same_v<type, element_program>) {
          to += '[';
          for (auto n : x.numbers()) to += (to.back() == '[' ? "" : ",") + std::to_string(n);
          to += ']';
        } else to += to_string(x);
      },
      v);
}

class graph_printer {
 public:
  explicit graph_printer(op_graph const& g) : g_(g) {}
  std::string run() {
    text_ = "neap graph 1\norigins " + std::to_string(g_.origin_count()) + "\n";
    std::size_t source = 0;  // values come by ascending id, sources and results alike
    auto const sources_before = [&](value_id v) {
      for (; source < g_.sources().size() && g_.sources()[source] < v; ++source) print_source(g_.sources()[source]);
    };
    for (auto o : g_.ops()) {
      if (!g_.outputs(o).empty()) sources_before(g_.outputs(o)[0]);
      print_op(o);
    }
    sources_before(nothing<value_id>);
    if (!g_.kept().empty()) {
      text_ += "keep";
      for (auto v : g_.kept()) text_ += " " + id('v', v);
      text_ += "\n";
    }
    return std::move(text_);
  }

 private:
  template <class Id>
  static std::string id(char letter, Id x) {
    return letter + std::to_string(index(x));
  }
  void print_name(std::string_view name) {
    if (name.empty()) return;
    text_ += ' ';
    print_quoted(text_, name);
  }
  void print_pins(pin_set pins) {
    if (!pins.empty()) text_ += " pins " + to_string(pins);
  }
  /// " f32[2,3] strides [3,1] offset 4 bytes 100", the last three where they are not those of a dense tensor.
  void print_layout(value_id v, bool with_bytes) {
    auto const& l = g_.layout(v);
    text_ += ' ' + to_string(l.type);
    extents dense;
    bytes_t bytes = -1;
    try {
      dense = dense_strides(l.type.dims);
      bytes = l.type.bytes();
    } catch (error const&) {  // too large to be dense
    }
    if (!(l.strides == dense)) text_ += " strides " + to_string(l.strides);
    if (l.offset) text_ += " offset " + std::to_string(l.offset);
    if (with_bytes && g_.bytes(g_.storage(v)) != bytes) text_ += " bytes " + std::to_string(g_.bytes(g_.storage(v)));
  }
  void print_source(value_id v) {
    bool const view = g_.record(v).alias == alias_kind::view;
    text_ += "source " + id('v', v) + (view ? " view " + id('v', g_.record(g_.storage(v)).first) : "");
    text_ += ' ';
    text_ += name_of(g_.role(v));
    print_layout(v, !view);
    print_name(g_.name(v));
    print_pins(g_.pins(v));
    text_ += '\n';
  }
  void print_op(op_id o) {
    auto const& f = g_.facets(o);
    text_ += "op " + id('o', o) + ' ';
    text_ += f.name;
    if (g_.as<op::opaque>(o)) {
      text_ += ' ';
      print_quoted(text_, g_.target(o));
      print_name(g_.details(o));
    }
    std::vector<std::max_align_t> room(f.size / sizeof(std::max_align_t) + 1);
    f.construct(room.data());
    bool first = true;
    for (auto const& a : f.attributes) {
      auto const value = a.get(g_.attributes(o));
      if (same_attribute(value, a.get(room.data()))) continue;
      text_ += first ? " {" : " ";
      first = false;
      text_ += a.name;
      text_ += '=';
      print_attribute(text_, value);
    }
    if (!first) text_ += '}';
    text_ += " (";
    for (std::size_t i = 0; i < g_.inputs(o).size(); ++i) text_ += (i ? "," : "") + id('v', g_.inputs(o)[i]);
    text_ += ')';
    print_name(g_.name(o));
    if (g_.origin(o) != o) text_ += " origin " + id('o', g_.origin(o));
    if (auto const p = g_.record(o).part; p != nothing<part_id>) text_ += " part" + numbers(p);
    print_pins(g_.pins(o).of_op());
    text_ += '\n';
    for (auto v : g_.outputs(o)) {
      auto const& r = g_.record(v);
      text_ += "  " + id('v', v);
      if (r.alias != alias_kind::fresh) {
        text_ += r.alias == alias_kind::view ? " view " : " update ";
        text_ += r.of >= 0 ? std::to_string(r.of) : "own " + std::to_string(-2 - r.of);
      } else if (r.of >= 0) {
        text_ += " over " + std::to_string(r.of);
      }
      print_layout(v, r.alias == alias_kind::fresh);
      if (r.role != role::activation) (text_ += ' ') += name_of(r.role);
      print_name(g_.name(v));
      print_pins(g_.pins(v));
      text_ += '\n';
    }
  }
  /// " 0/2 3/4", the outermost first.
  std::string numbers(part_id p) const {
    auto const& x = g_.part(p);
    return (x.of == nothing<part_id> ? std::string() : numbers(x.of)) + " " + std::to_string(x.number) + "/" +
           std::to_string(x.count);
  }
  op_graph const& g_;
  std::string text_;
};

// ---------------------------------------------------------------------------------------------- parsing

class graph_parser {
 public:
  graph_parser(operator_table ops, std::string_view text) : ops_(ops), text_(text), edit_(ops) {}

  result<op_graph> run() {
    try {
      statements();
      auto g = std::move(edit_).finish();
      if (auto const sound = verify(g); !sound) return failure{"graph text: " + sound.message()};
      return g;
    } catch (failure& f) {
      return std::move(f);
    } catch (error const& e) {  // a size that overflows, a rank above 8, a view of nothing
      return failure{place(start_) + e.what()};
    }
  }

 private:
  // Characters and words.

  std::string place(std::size_t at) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at && i < text_.size(); ++i) {
      ++column;
      if (text_[i] == '\n') ++line, column = 1;
    }
    return "graph text:" + std::to_string(line) + ":" + std::to_string(column) + ": ";
  }
  [[noreturn]] void fail(std::string const& what) const { throw failure{place(at_) + what}; }
  [[noreturn]] void fail_at(std::size_t at, std::string const& what) const { throw failure{place(at) + what}; }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  void skip() {
    for (; at_ < text_.size(); ++at_) {
      char const c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        if (at_ == text_.size()) return;
      } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
        return;
      }
    }
  }
  bool at_end() { return skip(), at_ == text_.size(); }
  bool accept(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    return ++at_, true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }
  std::string_view peek_word() {
    skip();
    auto end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  std::string_view word(char const* what) {
    auto const w = peek_word();
    if (w.empty()) fail(std::string("expected ") + what);
    start_ = at_;
    at_ += w.size();
    return w;
  }
  bool accept(std::string_view w) {
    if (peek_word() != w) return false;
    start_ = at_;
    at_ += w.size();
    return true;
  }
  void expect(std::string_view w) {
    if (!accept(w)) fail("expected '" + std::string(w) + "'");
  }
  template <class T>
  T number(char const* what) {
    skip();
    T x{};
    auto const [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), x);
    if (bad == std::errc::result_out_of_range) fail(std::string(what) + " is out of range");
    if (bad != std::errc{}) fail(std::string("expected ") + what);
    start_ = at_;
    at_ = static_cast<std::size_t>(end - text_.data());
    return x;
  }
  double real() {
    skip();
    if (text_.substr(at_).starts_with("bits:")) {
      at_ += 5;
      std::uint64_t bits = 0;
      auto const [end, bad] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), bits, 16);
      if (bad != std::errc{}) fail("expected the bits of a number");
      at_ = static_cast<std::size_t>(end - text_.data());
      return std::bit_cast<double>(bits);
    }
    return number<double>("a number");
  }
  std::string quoted() {
    expect('"');
    std::string s;
    for (;; ++at_) {
      if (at_ == text_.size()) fail("the text is not closed");
      char c = text_[at_];
      if (c == '"') return ++at_, s;
      if (c == '\0' || c == '\n') fail("a text with a line end or a zero in it");
      if (c == '\\') {
        if (++at_ == text_.size()) fail("the text is not closed");
        c = text_[at_];
        if (c == 'x') {
          unsigned byte = 0;
          auto const* from = text_.data() + at_ + 1;
          if (text_.size() - at_ < 3 || std::from_chars(from, from + 2, byte, 16).ptr != from + 2 || byte == 0)
            fail("expected two hexadecimal digits, not 00");
          c = static_cast<char>(byte);
          at_ += 2;
        } else if (c != '"' && c != '\\') {
          fail("an escape is \\\", \\\\ or \\xHH");
        }
      }
      s += c;
    }
  }
  bool at_quote() { return skip(), at_ < text_.size() && text_[at_] == '"'; }
  bool at_digit() { return skip(), at_ < text_.size() && is_digit(text_[at_]); }
  bool at_id(char letter) {
    auto const w = peek_word();
    return w.size() > 1 && w[0] == letter && is_digit(w[1]);
  }
  /// v12 or o3.
  std::uint32_t id(char letter, char const* what) {
    if (!at_id(letter)) fail(std::string("expected ") + what + ", such as " + letter + "0");
    auto const w = peek_word();
    std::uint32_t x = 0;
    auto const [end, bad] = std::from_chars(w.data() + 1, w.data() + w.size(), x);
    if (bad != std::errc{} || end != w.data() + w.size() || x == no_id)
      fail(std::string(what) + "'s number is out of range");
    start_ = at_;
    at_ += w.size();
    return x;
  }
  /// The id of something new: the next one.
  void next_id(char letter, char const* what, std::size_t expected) {
    if (id(letter, what) != expected)
      fail_at(start_, std::string(what) + " out of order, expected " + letter + std::to_string(expected));
  }

  // Pieces.

  extents list() {
    extents e;
    expect('[');
    if (accept(']')) return e;
    do e.push_back(number<std::int64_t>("an integer"));
    while (accept(','));
    expect(']');
    return e;
  }
  element_program program() {
    std::vector<std::int64_t> numbers;
    expect('[');
    do numbers.push_back(number<std::int64_t>("an integer"));
    while (accept(','));
    expect(']');
    auto const made = element_program::of_numbers(numbers);
    if (!made) fail_at(start_, "no program");
    return *made;
  }
  template <class Names>
  std::size_t one_of(Names const& names, char const* what) {
    auto const w = word(what);
    std::size_t i = 0;
    for (auto const& n : names) {
      if (w == n) return i;
      ++i;
    }
    fail_at(start_, "unknown " + std::string(what).substr(2) + " '" + std::string(w) + "'");
  }
  dtype element() { return static_cast<dtype>(one_of(dtype_names, "a element type")); }
  static constexpr role all_roles[] = {role::weight,     role::state,    role::buffer, role::input, role::constant,
                                       role::activation, role::gradient, role::output, role::loss,  role::donated};
  bool accept_role(role& r) {
    for (auto x : all_roles)
      if (accept(name_of(x))) return r = x, true;
    return false;
  }
  void layout(tensor_layout& l, bytes_t& bytes) {
    l.type.element = element();
    l.type.dims = list();
    std::int64_t most = size_of(l.type.element);  // as if no extent were 0, so that strides can be multiplied too
    for (auto x : l.type.dims) {
      if (x < 0) fail_at(start_, "an extent is negative");
      most = checked_mul(most, x ? x : 1);
    }
    l.strides = dense_strides(l.type.dims);
    if (accept("strides")) {
      l.strides = list();
      if (l.strides.rank() != l.type.rank()) fail("as many strides as axes are needed");
    }
    if (accept("offset")) l.offset = number<std::int64_t>("an offset");
    if (accept("bytes")) {
      bytes = number<std::int64_t>("a number of bytes");
      if (bytes < 0) fail_at(start_, "a storage of negative bytes");
    }
  }
  attribute_value attribute(attribute_value const& like) {
    if (std::holds_alternative<bool>(like)) {
      constexpr std::string_view names[] = {"false", "true"};
      return one_of(names, "a truth value") == 1;
    }
    if (std::holds_alternative<std::int64_t>(like)) return number<std::int64_t>("an integer");
    if (std::holds_alternative<double>(like)) return real();
    if (std::holds_alternative<dtype>(like)) return element();
    if (std::holds_alternative<element_program>(like)) return program();
    return list();
  }

  // Statements.

  void statements() {
    expect("neap"), expect("graph");
    if (number<int>("a version") != 1) fail_at(start_, "only version 1 can be read");
    std::int64_t origins = -1;
    while (!at_end()) {
      if (accept("source")) source();
      else if (accept("op")) op();
      else if (accept("origins")) origins = number<std::uint32_t>("a number of origins");
      else if (accept("keep")) do
          kept_.push_back({at_, value_id{id('v', "a value")}});
        while (at_id('v'));
      else fail("expected source, op, keep or origins");
    }
    auto const n = edit_.graph().value_count();
    for (auto const& [at, v] : reads_)
      if (index(v) >= n) fail_at(at, "v" + std::to_string(index(v)) + " does not exist");
    for (auto const& [at, v] : kept_) {
      if (index(v) >= n) fail_at(at, "v" + std::to_string(index(v)) + " does not exist");
      if (edit_.graph().is_kept(v)) fail_at(at, "v" + std::to_string(index(v)) + " is kept twice");
      edit_.keep(v, edit_.graph().role(v));
    }
    for (auto const& [o, p] : parts_) edit_.set_part(o, p);
    auto const pin = [&](auto const& list) {
      for (auto const& x : list) {
        start_ = x.at;
        edit_.add_pins(x.of, x.pins);
      }
    };
    pin(op_pins_), pin(value_pins_);
    for (auto const& [at, o, origin] : origins_) {
      if (origins >= 0 && index(origin) >= static_cast<std::uint64_t>(origins))
        fail_at(at, "this origin is not among the origins");
      edit_.set_origin(o, origin);
    }
    start_ = text_.size();
    if (origins >= 0) edit_.set_origin_count(static_cast<std::uint32_t>(origins));
  }

  void source() {
    next_id('v', "a value", edit_.graph().value_count());
    value_id base = nothing<value_id>;
    if (accept("view")) {
      base = value_id{id('v', "a value")};
      if (index(base) >= edit_.graph().value_count()) fail_at(start_, "a view of a value that comes later");
    }
    role r{};
    if (!accept_role(r) || !is_source(r)) fail("expected weight, state, buffer, input, donated or constant");
    tensor_layout l;
    bytes_t bytes = -1;
    layout(l, bytes);
    auto const name = at_quote() ? quoted() : std::string();
    auto const v =
        base == nothing<value_id> ? edit_.add_source_at(r, l, name, bytes) : edit_.add_source_view(base, l, name);
    if (base != nothing<value_id>) edit_.set_role(v, r);
    if (auto const p = pins(); !p.empty()) value_pins_.push_back({at_, v, p});
  }

  void op() {
    next_id('o', "an op", edit_.graph().op_count());
    auto const op = id_at<op_id>(edit_.graph().op_count());
    auto const called = word("an operator");
    operator_facets const* f = nullptr;
    for (auto const* x : ops_)
      if (x->name == called) f = x;
    if (!f) fail_at(start_, "unknown operator '" + std::string(called) + "'");
    std::string const target = f == &facets_of<op::opaque> ? quoted() : std::string();
    std::string const details = f == &facets_of<op::opaque> && at_quote() ? quoted() : std::string();
    std::vector<std::max_align_t> room(f->size / sizeof(std::max_align_t) + 1);
    f->construct(room.data());
    if (accept('{'))
      while (!accept('}')) attribute_of(*f, room.data());
    std::vector<value_id> inputs;
    expect('(');
    if (!accept(')')) {
      do {
        inputs.push_back(value_id{id('v', "a value")});
        reads_.push_back({start_, inputs.back()});
      } while (accept(','));
      expect(')');
    }
    auto const name = at_quote() ? quoted() : std::string();
    if (accept("origin")) {
      auto const at = at_;
      origins_.push_back({at, op, op_id{id('o', "an op")}});
    } else {
      origins_.push_back({at_, op, op});
    }
    if (accept("part")) {
      auto row = nothing<part_id>;
      do {
        op_part p;
        p.of = row;
        auto const at = at_;
        p.number = number<std::int64_t>("the number of a part");
        expect('/');
        p.count = number<std::int64_t>("a number of parts");
        if (p.number < 0 || p.number >= p.count) fail_at(at, "there is no such part");
        row = edit_.part_row(p);
      } while (at_digit());
      parts_.push_back({op, row});
    }
    if (auto const p = pins(); !p.empty()) op_pins_.push_back({at_, op, p});
    struct output {
      role r = role::activation;
      std::string name;
      pin_set pins;
      std::size_t at = 0;
    };
    std::vector<output_rule> rules;
    std::vector<output> outputs;
    while (at_id('v')) {
      next_id('v', "a value", edit_.graph().value_count() + rules.size());
      output_rule rule;
      bool over = false;
      if (accept("view")) rule.alias = alias_kind::view;
      else if (accept("update")) rule.alias = alias_kind::update;
      else over = accept("over");
      if (over || rule.alias != alias_kind::fresh) {
        bool const own = !over && accept("own");
        auto const of = number<std::int64_t>("the number of an argument");
        if (of < 0 || of >= static_cast<std::int64_t>(own ? rules.size() : inputs.size()))
          fail_at(start_, own ? "no such output yet" : "no such argument");
        rule.of = own ? -2 - static_cast<int>(of) : static_cast<int>(of);
      }
      layout(rule.layout, rule.bytes);
      output o;
      accept_role(o.r);
      if (at_quote()) o.name = quoted();
      o.pins = pins(), o.at = at_;
      rules.push_back(rule);
      outputs.push_back(std::move(o));
    }
    edit_.add_given({f, room.data()}, inputs, rules, target, details);
    edit_.set_name(op, name);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      auto const v = edit_.output(op, static_cast<int>(j));
      if (outputs[j].r != role::activation) edit_.set_role(v, outputs[j].r);
      edit_.set_name(v, outputs[j].name);
      if (!outputs[j].pins.empty()) value_pins_.push_back({outputs[j].at, v, outputs[j].pins});
    }
  }
  /// What "pins" is followed by, if it is there.
  pin_set pins() {
    pin_set all;
    if (!accept("pins")) return all;
    do {
      auto const w = word("a pin");
      auto const p = pin_of(w);
      if (!p) fail_at(start_, "unknown pin '" + std::string(w) + "'");
      all |= *p;
    } while (accept(','));
    return all;
  }
  void attribute_of(operator_facets const& f, void* bytes) {
    auto const called = word("an attribute or '}'");
    attribute_field const* field = nullptr;
    for (auto const& a : f.attributes)
      if (a.name == called) field = &a;
    if (!field) fail_at(start_, "'" + std::string(f.name) + "' has no attribute '" + std::string(called) + "'");
    expect('=');
    auto const at = at_;
    auto const value = attribute(field->get(bytes));
    field->set(bytes, value);
    if (!same_attribute(field->get(bytes), value)) fail_at(at, "the attribute cannot have this value");
  }

  struct read_at {
    std::size_t at;
    value_id v;
  };
  struct part_of {
    op_id o;
    part_id p;
  };
  struct origin_at {
    std::size_t at;
    op_id o, origin;
  };
  template <class Id>
  struct pinned {
    std::size_t at;
    Id of;
    pin_set pins;
  };
  operator_table ops_;
  std::string_view text_;
  std::size_t at_ = 0, start_ = 0;  // the next character; where the last word or number began
  graph_editor edit_;
  std::vector<read_at> reads_, kept_;
  std::vector<part_of> parts_;
  std::vector<pinned<op_id>> op_pins_;
  std::vector<pinned<value_id>> value_pins_;
  std::vector<origin_at> origins_;
};

}  // namespace detail

/// The graph as text. O(size of the text).
inline std::string to_text(op_graph const& g) { return detail::graph_printer(g).run(); }

/// The graph of a text, over the given operators; it has passed verify(). A failure says line and column, or which op
/// or value breaks an invariant. O(size of the text), whatever the text says.
inline result<op_graph> parse_graph(operator_table ops, std::string_view text) {
  return detail::graph_parser(ops, text).run();
}

}}  // namespace neap::v0
