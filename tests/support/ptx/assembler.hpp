// Decodes a kernel and the functions it reaches: opcodes to executors, names to rows and addresses, labels to
// instructions.
#pragma once

#include "arithmetic.hpp"
#include "memory_operations.hpp"
#include "module.hpp"
#include "program.hpp"
#include "reader.hpp"
#include "warp_operations.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace neap::testing::ptx::detail {

namespace ar = arithmetic;

struct operand {
  enum class kind { row, list, address, name, pair } is = kind::row;
  std::uint32_t row = 0, second = 0;  // second: of a pair d|p
  std::int64_t offset = 0;            // of an address; of a number: its value
  bool number = false;
  std::vector<std::uint32_t> rows;  // of a list
  std::vector<std::string> names;   // of a list of names in a call
  std::string name;
};

struct opcode {
  std::string_view text;
  std::vector<std::string_view> parts;
  std::vector<type> types;
  int line = 0;

  bool has(std::string_view s) const { return std::ranges::find(parts, s) != parts.end(); }
  type last() const { return types.empty() ? type::none : types.back(); }
  type first() const { return types.empty() ? type::none : types.front(); }
  std::string_view part(std::size_t k) const { return k < parts.size() ? parts[k] : std::string_view{}; }
};

// ---- an executor by type; null where the type does not fit
template <class F>
executor by_unsigned(type t, F f) {
  switch (t) {
    case type::b16:
    case type::u16:
    case type::s16: return f.template operator()<std::uint16_t>();
    case type::b32:
    case type::u32:
    case type::s32: return f.template operator()<std::uint32_t>();
    case type::b64:
    case type::u64:
    case type::s64: return f.template operator()<std::uint64_t>();
    default: return nullptr;
  }
}
template <class F>
executor by_integer(type t, F f) {
  switch (t) {
    case type::s16: return f.template operator()<std::int16_t>();
    case type::s32: return f.template operator()<std::int32_t>();
    case type::s64: return f.template operator()<std::int64_t>();
    default: return by_unsigned(t, f);
  }
}
template <class F>
executor by_float(type t, F f) {
  switch (t) {
    case type::f16: return f.template operator()<half>();
    case type::bf16: return f.template operator()<bfloat>();
    case type::f32: return f.template operator()<float>();
    case type::f64: return f.template operator()<double>();
    default: return nullptr;
  }
}
template <class Op>
executor float_unary(type t) {
  if (t == type::f16x2) return &ar::packed_unary<half, Op>;
  if (t == type::bf16x2) return &ar::packed_unary<bfloat, Op>;
  return by_float(t, []<class T>() -> executor { return &ar::unary<T, Op>; });
}
template <class Op>
executor float_binary(type t) {
  if (t == type::f16x2) return &ar::packed_binary<half, Op>;
  if (t == type::bf16x2) return &ar::packed_binary<bfloat, Op>;
  return by_float(t, []<class T>() -> executor { return &ar::binary<T, Op>; });
}
template <class Op>
executor integer_binary(type t) {
  return by_integer(t, []<class T>() -> executor { return &ar::binary<T, Op>; });
}
template <class Op>
executor unsigned_binary(type t) {
  return t == type::pred ? &ar::binary<std::uint32_t, Op>
                         : by_unsigned(t, []<class T>() -> executor { return &ar::binary<T, Op>; });
}
template <ar::relation R, bool Set>
executor compare_of(type t) {
  auto const pick = []<class T>() -> executor { return Set ? &ar::set<T, R> : &ar::compare<T, R>; };
  if (t == type::f16x2) return Set ? &ar::set<half, R> : &ar::compare_packed<half, R>;
  if (t == type::bf16x2) return Set ? &ar::set<bfloat, R> : &ar::compare_packed<bfloat, R>;
  if (auto const f = by_float(t, pick)) return f;
  return by_integer(t, pick);
}
template <bool Set>
executor comparison(std::string_view name, type t) {
  using enum ar::relation;
  if (name == "eq") return compare_of<eq, Set>(t);
  if (name == "ne") return compare_of<ne, Set>(t);
  if (name == "lt" || name == "lo") return compare_of<lt, Set>(t);
  if (name == "le" || name == "ls") return compare_of<le, Set>(t);
  if (name == "gt" || name == "hi") return compare_of<gt, Set>(t);
  if (name == "ge" || name == "hs") return compare_of<ge, Set>(t);
  if (name == "equ") return compare_of<equ, Set>(t);
  if (name == "neu") return compare_of<neu, Set>(t);
  if (name == "ltu") return compare_of<ltu, Set>(t);
  if (name == "leu") return compare_of<leu, Set>(t);
  if (name == "gtu") return compare_of<gtu, Set>(t);
  if (name == "geu") return compare_of<geu, Set>(t);
  if (name == "num") return compare_of<num, Set>(t);
  if (name == "nan") return compare_of<nan, Set>(t);
  return nullptr;
}
template <class S>
executor convert_from(type d) {
  switch (d) {
    case type::u8: return &ar::convert<std::uint8_t, S>;
    case type::s8: return &ar::convert<std::int8_t, S>;
    case type::u16: return &ar::convert<std::uint16_t, S>;
    case type::s16: return &ar::convert<std::int16_t, S>;
    case type::u32: return &ar::convert<std::uint32_t, S>;
    case type::s32: return &ar::convert<std::int32_t, S>;
    case type::u64: return &ar::convert<std::uint64_t, S>;
    case type::s64: return &ar::convert<std::int64_t, S>;
    case type::f16: return &ar::convert<half, S>;
    case type::bf16: return &ar::convert<bfloat, S>;
    case type::f32: return &ar::convert<float, S>;
    case type::f64: return &ar::convert<double, S>;
    default: return nullptr;
  }
}
inline executor conversion(type d, type s) {
  switch (s) {
    case type::u8: return convert_from<std::uint8_t>(d);
    case type::s8: return convert_from<std::int8_t>(d);
    case type::u16: return convert_from<std::uint16_t>(d);
    case type::s16: return convert_from<std::int16_t>(d);
    case type::u32: return convert_from<std::uint32_t>(d);
    case type::s32: return convert_from<std::int32_t>(d);
    case type::u64: return convert_from<std::uint64_t>(d);
    case type::s64: return convert_from<std::int64_t>(d);
    case type::f16: return convert_from<half>(d);
    case type::bf16: return convert_from<bfloat>(d);
    case type::f32: return convert_from<float>(d);
    case type::f64: return convert_from<double>(d);
    default: return nullptr;
  }
}
template <class Op>
executor atomic_of(type t) {
  switch (t) {
    case type::u32:
    case type::b32: return &memory::atomic<std::uint32_t, Op>;
    case type::s32: return &memory::atomic<std::int32_t, Op>;
    case type::u64:
    case type::b64: return &memory::atomic<std::uint64_t, Op>;
    case type::s64: return &memory::atomic<std::int64_t, Op>;
    case type::u16:
    case type::b16: return &memory::atomic<std::uint16_t, Op>;
    default: return nullptr;
  }
}
inline executor atomic_add(type t) {
  switch (t) {
    case type::f32: return &memory::atomic<float, memory::a_add>;
    case type::f64: return &memory::atomic<double, memory::a_add>;
    case type::f16: return &memory::atomic<half, memory::a_add>;
    case type::bf16: return &memory::atomic<bfloat, memory::a_add>;
    case type::f16x2: return &memory::atomic<std::uint32_t, memory::a_add_halves>;
    case type::bf16x2: return &memory::atomic<std::uint32_t, memory::a_add_bfloats>;
    default: return atomic_of<memory::a_add>(t);
  }
}

inline void nothing(warp&, instruction const&, lanes) {}
inline void active_mask(warp& w, instruction const& i, lanes m) {
  auto* const d = w.operand(i, 0);
  for_lanes(m, [&](int l) { d[l] = m; });
}
inline void trap(warp& w, instruction const& i, lanes m) {
  w.m->fault_at(w, std::countr_zero(m), i.line, fault_kind::assertion, i.mode ? "an assertion does not hold" : "trap");
}

struct symbol {
  enum class kind { row, shared, local, param, dynamic } is = kind::row;
  std::uint32_t row = 0, offset = 0, bytes = 0;
};

struct decoded_function {
  std::vector<instruction> code;
  int base = 0;
  std::vector<variable> results, parameters;
};

struct assembler {
  module const& m;
  kernel_code k;
  std::map<std::string, decoded_function, std::less<>> done;
  std::vector<std::string> order;  // callees first
  std::vector<std::string> open;   // being decoded
  std::map<std::uint64_t, std::uint32_t> constants;
  std::map<std::string, std::uint32_t> global_rows;
  std::vector<std::string> callees;  // by instruction.target of a call
  std::uint32_t sink = 0, packed_shared = 1024, static_shared = 0;
  std::map<std::string, symbol> module_shared;

  // of the function being decoded
  struct scope {
    std::map<std::string, symbol, std::less<>> names;
    std::map<std::string, int, std::less<>> labels;
    int parent = -1;
  };
  struct frame {
    std::vector<scope> scopes;
    int now = 0;
    decoded_function f;
    struct jump {
      std::size_t at;
      int scope;
      std::string label;
    };
    std::vector<jump> jumps;
    struct table {
      int number, scope;
      std::vector<std::string> labels;
      std::string name;
    };
    std::vector<table> tables;
    std::vector<jump> table_uses;
  };
  frame* fr = nullptr;

  explicit assembler(module const& mod) : m(mod) {}

  std::uint32_t new_row(std::uint64_t v = 0) {
    k.row_values.push_back(v);
    return k.rows() - 1;
  }
  std::uint32_t constant(std::uint64_t v) {
    auto const [it, fresh] = constants.try_emplace(v, 0);
    if (fresh) it->second = new_row(v);
    return it->second;
  }
  std::uint32_t aligned(std::uint32_t x, unsigned a) { return (x + a - 1) / a * a; }
  std::uint32_t new_parameter(declared const& d) {
    std::uint32_t const at = aligned(k.param_end, std::max(d.align, 16u));
    k.param_end = at + d.bytes;
    return at;
  }
  symbol new_shared(declared const& d) {
    symbol s{symbol::kind::shared, 0, 0, d.bytes};
    if (d.open) {
      s.is = symbol::kind::dynamic;
      k.dynamic_align = std::max(k.dynamic_align, d.align);
      return s;
    }
    // As the linker packs them, modulo 256 bytes (so banks are the same), with a gap behind each.
    packed_shared = aligned(packed_shared, d.align);
    s.offset = packed_shared + 256 * static_cast<std::uint32_t>(k.shared.size());
    packed_shared += d.bytes;
    k.shared.push_back({d.name, s.offset, d.bytes, d.align});
    return s;
  }

  symbol const* find(std::string_view name) const {
    for (int s = fr->now; s >= 0; s = fr->scopes[static_cast<std::size_t>(s)].parent) {
      auto const& names = fr->scopes[static_cast<std::size_t>(s)].names;
      if (auto const it = names.find(name); it != names.end()) return &it->second;
    }
    return nullptr;
  }

  /// The row that holds a name's value or address, plus `offset`.
  std::uint32_t row_of_name(token const& t, std::int64_t offset = 0) {
    std::string const name{t.text};
    if (name == "_") return sink;
    if (name == "WARP_SZ") return constant(32);
    if (auto const* s = find(name)) {
      if (s->is == symbol::kind::row) return s->row;
      if (s->is == symbol::kind::dynamic) return row_of_dynamic(offset);
      return constant(static_cast<std::uint64_t>(s->offset + offset));
    }
    if (name[0] == '%') {
      static std::set<std::string> const known{"%tid.x",          "%tid.y",       "%tid.z",
                                               "%ntid.x",         "%ntid.y",      "%ntid.z",
                                               "%ctaid.x",        "%ctaid.y",     "%ctaid.z",
                                               "%nctaid.x",       "%nctaid.y",    "%nctaid.z",
                                               "%laneid",         "%warpid",      "%nwarpid",
                                               "%smid",           "%nsmid",       "%gridid",
                                               "%lanemask_eq",    "%lanemask_le", "%lanemask_lt",
                                               "%lanemask_ge",    "%lanemask_gt", "%clock",
                                               "%clock64",        "%globaltimer", "%dynamic_smem_size",
                                               "%total_smem_size"};
      if (!known.contains(name)) throw error(t.line, "unknown register '" + name + "'");
      auto const [it, fresh] = k.specials.try_emplace(name, 0);
      if (fresh) it->second = new_row();
      return it->second;
    }
    for (auto const& v : m.variables)
      if (v.d.name == name) {
        if (v.where == space::shared) {
          auto const [it, fresh] = module_shared.try_emplace(name);
          if (fresh) it->second = new_shared(v.d);
          return it->second.is == symbol::kind::dynamic
                     ? row_of_dynamic(offset)
                     : constant(static_cast<std::uint64_t>(it->second.offset + offset));
        }
        std::string const key = name + "+" + std::to_string(offset);
        auto const [it, fresh] = global_rows.try_emplace(key, 0);
        if (fresh) {
          it->second = new_row();
          k.rows_of_globals.push_back({it->second, {name, offset}});
        }
        return it->second;
      }
    throw error(t.line, "unknown name '" + name + "'");
  }
  std::uint32_t row_of_dynamic(std::int64_t offset) {
    std::uint32_t const r = new_row(static_cast<std::uint64_t>(offset));
    k.rows_of_dynamic_shared.push_back(r);
    return r;
  }

  // ---- operands
  std::uint32_t value(reader& r, opcode const& op, std::int64_t* number = nullptr) {
    bool const negated = r.take("!"), minus = r.take("-");
    token const& t = r.next();
    std::uint32_t row = 0;
    if (t.is == token::kind::number) {
      std::uint64_t v = literal(t, op.last() == type::f32);
      if (minus)
        v = t.text.find('.') != t.text.npos && !t.text.starts_with("0x")
                ? v ^ (op.last() == type::f32 ? 0x80000000u : std::uint64_t{1} << 63)
                : 0 - v;
      if (number) *number = static_cast<std::int64_t>(v);
      return constant(v);
    }
    if (minus) throw error(t.line, "'-' before '" + std::string(t.text) + "'");
    row = row_of_name(t);
    if (negated) {
      instruction i;
      i.run = &ar::unary<std::uint32_t, ar::logical_not>;
      i.line = t.line;
      i.operand_count = 2;
      i.operands[0] = new_row();
      i.operands[1] = row;
      fr->f.code.push_back(i);
      row = i.operands[0];
    }
    return row;
  }
  operand parse_operand(reader& r, opcode const& op) {
    operand o;
    if (r.take("{")) {
      o.is = operand::kind::list;
      while (!r.take("}")) {
        o.rows.push_back(value(r, op));
        r.take(",");
      }
      return o;
    }
    if (r.take("[")) {
      o.is = operand::kind::address;
      bool minus = r.take("-");
      if (r.look().is == token::kind::number) {
        auto const v = static_cast<std::int64_t>(literal(r.next(), false));
        o.row = constant(static_cast<std::uint64_t>(minus ? -v : v));
      } else {
        o.row = row_of_name(r.next());
      }
      while (!r.take("]")) {
        bool const plus = r.take("+");
        minus = r.take("-");
        if (!plus && !minus) throw error(r.look().line, "'" + std::string(r.look().text) + "' in an address");
        auto const v = static_cast<std::int64_t>(literal(r.next(), false));
        o.offset += minus ? -v : v;
      }
      return o;
    }
    if (r.take("(")) {
      o.is = operand::kind::list;
      while (!r.take(")")) {
        o.names.emplace_back(r.next().text);
        r.take(",");
      }
      return o;
    }
    token const& t = r.look();
    std::string_view const base = op.part(0);
    if (base == "bra" || base == "call" || base == "brx") {
      bool const is_name = t.is == token::kind::word && (base != "brx" || !find(t.text));
      if (is_name) {
        o.is = operand::kind::name;
        o.name = std::string(r.next().text);
        return o;
      }
    }
    std::int64_t n = 0;
    o.number = t.is == token::kind::number || t == "-";
    o.row = value(r, op, &n);
    o.offset = n;
    if (t.is == token::kind::word && r.look() == "+" &&
        r.look(1).is == token::kind::number) {  // the address of a variable, moved
      r.next();
      o.row = row_of_name(t, static_cast<std::int64_t>(literal(r.next(), false)));
    }
    if (r.take("|")) {
      o.is = operand::kind::pair;
      o.second = value(r, op);
    }
    return o;
  }

  // ---- statements
  void decode_function(std::string const& name, int line) {
    auto const it = m.functions.find(name);
    if (it == m.functions.end() || !it->second.to) throw error(line, "the function '" + name + "' has no body");
    function_text const& text = it->second;
    open.push_back(name);
    frame mine;
    frame* const before = fr;
    fr = &mine;
    mine.scopes.emplace_back();
    auto const declare = [&](std::vector<declared> const& list, std::vector<variable>& out) {
      for (auto const& d : list) {
        std::uint32_t const at = new_parameter(d);
        mine.scopes[0].names[d.name] = {symbol::kind::param, 0, at, d.bytes};
        out.push_back({d.name, at, d.bytes, d.align});
      }
    };
    declare(text.results, mine.f.results);
    declare(text.parameters, mine.f.parameters);
    reader r{m.tokens, text.from};
    while (r.at < text.to) statement(r);
    instruction end;
    end.kind = flow::ret;
    end.line = m.tokens[text.to].line;
    mine.f.code.push_back(end);
    auto const label = [&](int s, std::string const& l, int at_line) {
      for (; s >= 0; s = mine.scopes[static_cast<std::size_t>(s)].parent) {
        auto const& labels = mine.scopes[static_cast<std::size_t>(s)].labels;
        if (auto const found = labels.find(l); found != labels.end()) return found->second;
      }
      throw error(at_line, "unknown label '" + l + "'");
    };
    for (auto const& j : mine.jumps) mine.f.code[j.at].target = label(j.scope, j.label, mine.f.code[j.at].line);
    for (auto const& u : mine.table_uses) {
      auto& i = mine.f.code[u.at];
      auto const t = std::ranges::find(mine.tables, u.label, &frame::table::name);
      if (t == mine.tables.end()) throw error(i.line, "unknown label '" + u.label + "'");
      i.target = t->number;
    }
    for (auto const& t : mine.tables)
      for (auto const& l : t.labels)
        k.tables[static_cast<std::size_t>(t.number)].push_back(label(t.scope, l, text.line));
    fr = before;
    open.pop_back();
    table_numbers[name].clear();
    for (auto const& t : mine.tables) table_numbers[name].push_back(t.number);
    done[name] = std::move(mine.f);
    order.push_back(name);
  }
  std::map<std::string, std::vector<int>> table_numbers;

  void statement(reader& r) {
    token const& t = r.look();
    if (r.take(";")) return;
    if (r.take("{")) {
      fr->scopes.push_back({});
      fr->scopes.back().parent = fr->now;
      fr->now = static_cast<int>(fr->scopes.size()) - 1;
      return;
    }
    if (r.take("}")) {
      fr->now = fr->scopes[static_cast<std::size_t>(fr->now)].parent;
      return;
    }
    auto& here = fr->scopes[static_cast<std::size_t>(fr->now)];
    if (t == ".reg") {
      r.next();
      while (r.look().text.starts_with('.')) {
        if (type_named(r.look().text.substr(1)) == type::none)
          throw error(t.line, "unknown type '" + std::string(r.look().text) + "'");
        r.next();
      }
      do {
        std::string const name{r.next().text};
        if (r.take("<")) {
          auto const n = literal(r.next(), false);
          r.expect(">");
          for (std::uint64_t j = 0; j < n; ++j)
            here.names[name + std::to_string(j)] = {symbol::kind::row, new_row(), 0, 0};
        } else {
          here.names[name] = {symbol::kind::row, new_row(), 0, 0};
        }
      } while (r.take(","));
      r.expect(";");
      return;
    }
    if (t == ".local" || t == ".shared" || t == ".param") {
      r.next();
      declared const d = declaration(r);
      r.expect(";");
      if (t == ".shared") {
        here.names[d.name] = new_shared(d);
      } else if (t == ".local") {
        std::uint32_t const at = aligned(k.local_end + 64, std::max(d.align, 16u));
        k.local_end = at + d.bytes;
        k.local.push_back({d.name, at, d.bytes, d.align});
        here.names[d.name] = {symbol::kind::local, 0, at, d.bytes};
      } else {
        here.names[d.name] = {symbol::kind::param, 0, new_parameter(d), d.bytes};
      }
      return;
    }
    if (t == ".pragma") return r.skip_to(";");
    if (t.is == token::kind::word && r.look(1) == ":") {
      std::string const name{r.next().text};
      r.next();
      if (r.take(".branchtargets")) {
        frame::table table{static_cast<int>(k.tables.size()), fr->now, {}, name};
        do table.labels.emplace_back(r.next().text);
        while (r.take(","));
        r.expect(";");
        k.tables.emplace_back();
        fr->tables.push_back(std::move(table));
      } else if (r.look() == ".callprototype" || r.look() == ".calltargets") {
        r.skip_to(";");
      } else if (!here.labels.emplace(name, static_cast<int>(fr->f.code.size())).second) {
        throw error(t.line, "the label '" + name + "' stands twice");
      }
      return;
    }
    command(r);
  }

  void command(reader& r) {
    int guard = -1;
    bool guard_not = false;
    if (r.take("@")) {
      guard_not = r.take("!");
      guard = static_cast<int>(row_of_name(r.next()));
    }
    token const& t = r.next();
    opcode op;
    op.text = t.text;
    op.line = t.line;
    if (t.is != token::kind::word) throw error(t.line, "an opcode expected before '" + std::string(t.text) + "'");
    for (std::string_view rest = t.text; !rest.empty();) {
      auto const dot = std::min(rest.find('.'), rest.size());
      op.parts.push_back(rest.substr(0, dot));
      if (op.parts.size() > 1)
        if (auto const ty = type_named(op.parts.back()); ty != type::none) op.types.push_back(ty);
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
    std::vector<operand> o;
    while (!r.take(";")) {
      o.push_back(parse_operand(r, op));
      if (!r.take(",") && !(r.look() == ";"))
        throw error(t.line, "',' or ';' expected before '" + std::string(r.look().text) + "'");
    }
    instruction i;
    i.line = op.line;
    i.guard = guard;
    i.guard_not = guard_not;
    if (!encode(op, o, i)) throw error(op.line, "unknown opcode '" + std::string(op.text) + "'");
    fr->f.code.push_back(i);
  }

  [[noreturn]] static void wrong(opcode const& op) {
    throw error(op.line, "operands do not fit '" + std::string(op.text) + "'");
  }
  static std::uint32_t row(opcode const& op, std::vector<operand> const& o, std::size_t at) {
    if (at >= o.size() || o[at].is == operand::kind::name || o[at].is == operand::kind::list) wrong(op);
    return o[at].row;
  }
  static void rows(opcode const& op, std::vector<operand> const& o, instruction& i, std::size_t n) {
    if (o.size() != n) wrong(op);
    for (std::size_t j = 0; j < n; ++j) i.operands[j] = row(op, o, j);
    i.operand_count = static_cast<std::uint8_t>(n);
  }
  static rounding rounding_in(opcode const& op, rounding otherwise = rounding::nearest) {
    for (auto const p : op.parts) {
      if (p == "rn" || p == "rni") return rounding::nearest;
      if (p == "rz" || p == "rzi") return rounding::zero;
      if (p == "rm" || p == "rmi") return rounding::down;
      if (p == "rp" || p == "rpi") return rounding::up;
      if (p == "rna") return rounding::nearest_away;
    }
    return otherwise;
  }
  static bool is_float(type t) { return t >= type::f16; }
  static void float_flags(opcode const& op, instruction& i) {
    i.mode = static_cast<std::uint8_t>(rounding_in(op));
    if (op.has("ftz")) i.flags |= flag_ftz;
    if (op.has("sat")) i.flags |= flag_sat;
    if (op.has("relu")) i.mode |= ar::mode_relu;
    if (op.has("NaN")) i.mode |= ar::mode_nan;
    if (op.has("xorsign")) i.mode |= ar::mode_absolute;
  }
  static bool is_plain(instruction const& i, type t) {
    return i.flags == 0 && i.mode == 0 && (t == type::f32 || t == type::f64);
  }
  static space space_in(opcode const& op) {
    for (auto const p : op.parts) {
      auto const s = p.substr(0, p.find("::"));
      if (s == "global") return space::global;
      if (s == "shared") return space::shared;
      if (s == "local") return space::local;
      if (s == "param") return space::param;
      if (s == "const") return space::constant;
    }
    return space::generic;
  }
  static void strength(opcode const& op, instruction& i) {
    if (op.has("volatile") || op.has("relaxed") || op.has("mmio")) i.flags |= flag_strong;
    if (op.has("acquire") || op.has("acq_rel")) i.flags |= flag_strong | flag_acquire;
    if (op.has("release") || op.has("acq_rel")) i.flags |= flag_strong | flag_release;
  }

  /// False if the opcode is unknown.
  bool encode(opcode const& op, std::vector<operand> const& o, instruction& i) {
    std::string_view const b = op.part(0);
    type const t = op.last();
    auto const three = [&](executor e) { return rows(op, o, i, 3), (i.run = e) != nullptr; };
    auto const two = [&](executor e) { return rows(op, o, i, 2), (i.run = e) != nullptr; };
    auto const four = [&](executor e) { return rows(op, o, i, 4), (i.run = e) != nullptr; };

    // ---- flow
    if (b == "bra") {
      if (o.size() != 1 || o[0].is != operand::kind::name) wrong(op);
      i.kind = flow::branch;
      fr->jumps.push_back({fr->f.code.size(), fr->now, o[0].name});
      return true;
    }
    if (b == "brx") {
      if (o.size() != 2 || o[1].is != operand::kind::name) wrong(op);
      i.kind = flow::table;
      i.operands[0] = row(op, o, 0);
      fr->table_uses.push_back({fr->f.code.size(), fr->now, o[1].name});
      return true;
    }
    if (b == "call") return encode_call(op, o, i);
    if (b == "ret") return i.kind = flow::ret, true;
    if (b == "exit") return i.kind = flow::exit, true;
    if (b == "trap") return stop(i, 0), true;
    if (b == "brkpt") return i.run = &nothing, true;
    if (b == "bar" || b == "barrier") return encode_barrier(op, o, i);
    if (b == "nanosleep" || b == "prefetch" || b == "prefetchu" || b == "applypriority" || b == "discard" ||
        b == "griddepcontrol" || b == "setmaxnreg" || b == "pmevent")
      return i.run = &nothing, true;
    if (b == "createpolicy") return i.run = &nothing, true;

    // ---- memory
    if (b == "ld" || b == "ldu" || b == "st") return encode_access(op, o, i);
    if (b == "atom" || b == "red") return encode_atomic(op, o, i);
    if (b == "membar" || b == "fence") {
      i.run = &memory::fence;
      i.mode = op.has("cta");
      if (b == "fence" && op.has("proxy")) i.run = &nothing;
      return true;
    }
    if (b == "cp" && op.has("async") && !op.has("bulk") && !op.has("mbarrier")) {
      if (op.has("commit_group")) return i.run = &memory::commit_copies, true;
      if (op.has("wait_all")) return i.run = &memory::wait_copies, i.immediate = -1, true;
      if (op.has("wait_group")) {
        if (o.size() != 1 || !o[0].number) wrong(op);
        return i.run = &memory::wait_copies, i.immediate = o[0].offset, true;
      }
      if (o.size() < 3 || !o[2].number) wrong(op);
      i.run = &memory::copy_async;
      i.width = static_cast<std::uint8_t>(o[2].offset);
      i.operands[0] = row(op, o, 0);
      i.operands[1] = row(op, o, 1);
      i.operands[2] = o.size() > 3 && !op.has("L2::cache_hint") ? row(op, o, 3) : o[2].row;
      i.immediate = o[0].offset;
      i.target = static_cast<int>(o[1].offset);
      if (i.width != 4 && i.width != 8 && i.width != 16) wrong(op);
      return true;
    }
    if (b == "cvta") {
      rows(op, o, i, 2);
      i.run = &memory::to_address;
      space const s = space_in(op);
      i.width = op.has("to");
      i.immediate = static_cast<std::int64_t>(s == space::shared  ? shared_window
                                              : s == space::local ? local_window
                                                                  : param_window);
      if (s == space::global || s == space::constant) i.run = &ar::move;
      return s != space::generic;
    }
    if (b == "isspacep") {
      i.mode = static_cast<std::uint8_t>(space_in(op));
      return two(&memory::is_space);
    }
    if (b == "ldmatrix" || b == "stmatrix") {
      i.kind = flow::warp;
      i.flags |= flag_aligned;
      i.where = space_in(op);
      i.mode = op.has("trans");
      i.vector = op.has("x4") ? 4 : op.has("x2") ? 2 : 1;
      std::size_t const list = b == "ldmatrix" ? 0 : 1;
      if (o.size() != 2 || !op.has("m8n8")) return false;
      auto regs = o[list].is == operand::kind::list ? o[list].rows : std::vector{o[list].row};
      if (regs.size() != i.vector || o[1 - list].is != operand::kind::address) wrong(op);
      i.operands[0] = o[1 - list].row;
      i.immediate = o[1 - list].offset;
      std::ranges::copy(regs, i.operands.begin() + 1);
      i.run = list ? &together::store_matrix : &together::load_matrix;
      return true;
    }

    // ---- warps
    if (b == "shfl") {
      static std::map<std::string_view, together::shuffle_mode> const modes{{"up", together::shuffle_mode::up},
                                                                            {"down", together::shuffle_mode::down},
                                                                            {"bfly", together::shuffle_mode::butterfly},
                                                                            {"idx", together::shuffle_mode::index}};
      auto const mode = modes.find(op.part(2));
      if (op.part(1) != "sync" || mode == modes.end()) return false;
      if (o.size() != 5) wrong(op);
      i.mode = static_cast<std::uint8_t>(mode->second);
      pair_of(op, o, i);
      for (std::size_t j = 1; j < 4; ++j) i.operands[j + 1] = row(op, o, j);
      return together_with(i, row(op, o, 4), &together::shuffle);
    }
    if (b == "vote") {
      if (!op.has("sync")) return false;
      if (o.size() != 3) wrong(op);
      i.mode = op.has("ballot") ? 0 : op.has("any") ? 1 : op.has("all") ? 2 : 3;
      i.operands[0] = row(op, o, 0);
      i.operands[1] = row(op, o, 1);
      return together_with(i, row(op, o, 2), &together::vote);
    }
    if (b == "match") {
      if (o.size() != 3) wrong(op);
      i.mode = op.part(1) == "all";
      pair_of(op, o, i);
      i.operands[2] = row(op, o, 1);
      return together_with(i, row(op, o, 2),
                           bytes_of(t) == 8 ? &together::match<std::uint64_t> : &together::match<std::uint32_t>);
    }
    if (b == "redux") {
      static std::map<std::string_view, together::reduction> const ops{
          {"add", together::reduction::add},   {"min", together::reduction::min},
          {"max", together::reduction::max},   {"and", together::reduction::bit_and},
          {"or", together::reduction::bit_or}, {"xor", together::reduction::bit_xor}};
      auto const found = ops.find(op.part(2));
      if (found == ops.end() || is_float(t)) return false;
      if (o.size() != 3) wrong(op);
      i.mode = static_cast<std::uint8_t>(found->second);
      i.operands[0] = row(op, o, 0);
      i.operands[1] = row(op, o, 1);
      return together_with(i, row(op, o, 2),
                           t == type::s32 ? &together::reduce<std::int32_t> : &together::reduce<std::uint32_t>);
    }
    if (b == "elect") {
      if (o.size() != 2 || o[0].is != operand::kind::pair) wrong(op);
      pair_of(op, o, i);
      return together_with(i, row(op, o, 1), &together::elect);
    }
    if (b == "activemask") return i.operands[0] = row(op, o, 0), i.run = &active_mask, true;
    if (b == "mma") return encode_mma(op, o, i);

    // ---- moves
    if (b == "mov") return encode_move(op, o, i);
    if (b == "selp") return four(&ar::select);
    if (b == "slct")
      return four(t == type::f32 ? executor{&ar::select_by_sign<float>} : executor{&ar::select_by_sign<std::int32_t>});
    if (b == "setp" || b == "set") return encode_comparison(op, o, i);
    if (b == "cvt") return encode_conversion(op, o, i);

    // ---- arithmetic
    if (b == "add" || b == "sub" || b == "addc" || b == "subc") {
      if (is_float(t)) {
        float_flags(op, i);
        if (is_plain(i, t)) return three(b == "add" ? by_plain<ar::plain::add>(t) : by_plain<ar::plain::subtract>(t));
        return three(b == "add" ? float_binary<ar::add>(t) : float_binary<ar::subtract>(t));
      }
      if (b.size() == 4 || op.has("cc")) {
        rows(op, o, i, 3);
        i.operands[3] = k.carry_row;
        i.mode = static_cast<std::uint8_t>((b.size() == 4 ? 1 : 0) | (op.has("cc") ? 2 : 0) | (b[0] == 's' ? 4 : 0));
        i.run = by_carry(t);
        return i.run != nullptr;
      }
      if (op.has("sat")) i.flags |= flag_sat;
      return three(b == "add" ? integer_binary<ar::add>(t) : integer_binary<ar::subtract>(t));
    }
    if (b == "mul") {
      if (is_float(t)) {
        float_flags(op, i);
        return three(is_plain(i, t) ? by_plain<ar::plain::multiply>(t) : float_binary<ar::multiply>(t));
      }
      if (op.has("wide")) return three(by_wide<false>(t));
      if (op.has("hi")) return three(integer_binary<ar::high>(t));
      return three(integer_binary<ar::multiply>(t));
    }
    if (b == "mul24") return three(by_integer(t, []<class T>() -> executor { return &ar::binary<T, ar::multiply24>; }));
    if (b == "mad24") return four(by_integer(t, []<class T>() -> executor { return &ar::ternary<T, ar::add24>; }));
    if (b == "sad") return four(by_integer(t, []<class T>() -> executor { return &ar::ternary<T, ar::distance>; }));
    if (b == "mad" || b == "madc" || b == "fma") {
      if (is_float(t)) {
        float_flags(op, i);
        if (is_plain(i, t))
          return four(t == type::f32 ? executor{&ar::ternary<float, ar::plain::fuse>}
                                     : executor{&ar::ternary<double, ar::plain::fuse>});
        if (t == type::f64 && i.mode) return false;
        if (t == type::f16x2) return four(&ar::packed_ternary<half, ar::fuse>);
        if (t == type::bf16x2) return four(&ar::packed_ternary<bfloat, ar::fuse>);
        return four(by_float(t, []<class T>() -> executor { return &ar::ternary<T, ar::fuse>; }));
      }
      if (b == "madc" || op.has("cc")) {
        rows(op, o, i, 4);
        i.operands[4] = k.carry_row;
        i.mode = static_cast<std::uint8_t>((b == "madc" ? 1 : 0) | (op.has("cc") ? 2 : 0) | (op.has("hi") ? 16 : 8));
        i.run = by_carry(t);
        return i.run != nullptr;
      }
      if (op.has("wide")) return four(by_wide<true>(t));
      if (op.has("hi")) return four(by_integer(t, []<class T>() -> executor { return &ar::ternary<T, ar::add_high>; }));
      return four(by_integer(t, []<class T>() -> executor { return &ar::ternary<T, ar::add_low>; }));
    }
    if (b == "div") {
      if (!is_float(t)) return three(integer_binary<ar::divide>(t));
      float_flags(op, i);
      return three(t == type::f64 && i.mode ? nullptr : float_binary<ar::divide>(t));
    }
    if (b == "rem") return three(integer_binary<ar::remainder>(t));
    if (b == "min" || b == "max") {
      if (is_float(t)) {
        float_flags(op, i);
        return three(b == "max" ? float_binary<ar::extreme<true>>(t) : float_binary<ar::extreme<false>>(t));
      }
      if (op.has("relu")) i.mode |= ar::mode_relu;
      return three(b == "max" ? integer_binary<ar::extreme<true>>(t) : integer_binary<ar::extreme<false>>(t));
    }
    if (b == "neg" || b == "abs") {
      if (is_float(t)) {
        float_flags(op, i);
        return two(b == "neg" ? float_unary<ar::negate>(t) : float_unary<ar::absolute>(t));
      }
      return two(b == "neg" ? by_integer(t, []<class T>() -> executor { return &ar::unary<T, ar::negate>; })
                            : by_integer(t, []<class T>() -> executor { return &ar::unary<T, ar::absolute>; }));
    }
    if (b == "copysign")
      return three(t == type::f32 ? executor{&ar::binary<float, ar::copy_sign>}
                                  : executor{&ar::binary<double, ar::copy_sign>});
    if (b == "testp") {
      static std::map<std::string_view, int> const kinds{{"finite", 0},     {"infinite", 1}, {"number", 2},
                                                         {"notanumber", 3}, {"normal", 4},   {"subnormal", 5}};
      auto const found = kinds.find(op.part(1));
      if (found == kinds.end()) return false;
      i.mode = static_cast<std::uint8_t>(found->second);
      return two(t == type::f32 ? executor{&ar::unary<float, ar::test_property>}
                                : executor{&ar::unary<double, ar::test_property>});
    }

    // ---- functions
    float_flags(op, i);
    if (t == type::f64 && op.has("approx") && b == "rcp") return two(&ar::unary<double, ar::coarse<ar::f_rcp>>);
    if (t == type::f64 && op.has("approx") && b == "rsqrt") return two(&ar::unary<double, ar::coarse<ar::f_rsqrt>>);
    if ((b == "rcp" || b == "sqrt") && t == type::f64 && i.mode) return false;
    if (b == "rcp")
      return two(t == type::f64 ? &ar::unary<double, ar::function<rcp_double>>
                                : float_unary<ar::function<ar::f_rcp>>(t));
    if (b == "sqrt")
      return two(t == type::f64 ? &ar::unary<double, ar::function<sqrt_double>>
                                : float_unary<ar::function<ar::f_sqrt>>(t));
    if (b == "rsqrt") return two(float_unary<ar::function<ar::f_rsqrt>>(t));
    if (b == "sin") return two(float_unary<ar::function<ar::f_sin>>(t));
    if (b == "cos") return two(float_unary<ar::function<ar::f_cos>>(t));
    if (b == "ex2") return two(float_unary<ar::function<ar::f_ex2>>(t));
    if (b == "lg2") return two(float_unary<ar::function<ar::f_lg2>>(t));
    if (b == "tanh") return two(float_unary<ar::function<ar::f_tanh>>(t));
    i.mode = 0;
    i.flags = 0;

    // ---- bits
    if (b == "and") return three(unsigned_binary<ar::bit_and>(t));
    if (b == "or") return three(unsigned_binary<ar::bit_or>(t));
    if (b == "xor") return three(unsigned_binary<ar::bit_xor>(t));
    if (b == "not")
      return two(t == type::pred ? &ar::unary<std::uint32_t, ar::logical_not>
                                 : by_unsigned(t, []<class T>() -> executor { return &ar::unary<T, ar::bit_not>; }));
    if (b == "cnot") return two(by_unsigned(t, []<class T>() -> executor { return &ar::unary<T, ar::logical_not>; }));
    if (b == "shl") return three(by_unsigned(t, []<class T>() -> executor { return &ar::shift<T, true>; }));
    if (b == "shr") return three(by_integer(t, []<class T>() -> executor { return &ar::shift<T, false>; }));
    if (b == "shf") {
      i.mode = op.has("clamp");
      return four(op.has("l") ? &ar::ternary<std::uint32_t, ar::funnel<true>>
                              : &ar::ternary<std::uint32_t, ar::funnel<false>>);
    }
    if (b == "prmt") {
      static std::vector<std::string_view> const modes{"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
      for (std::size_t j = 0; j < modes.size(); ++j)
        if (op.has(modes[j])) i.mode = static_cast<std::uint8_t>(j + 1);
      return four(&ar::ternary<std::uint32_t, ar::permute>);
    }
    if (b == "lop3") {
      if (o.size() != 5 || !o[4].number || t != type::b32) return false;
      for (std::size_t j = 0; j < 4; ++j) i.operands[j] = row(op, o, j);
      i.immediate = o[4].offset;
      return i.run = &ar::ternary<std::uint32_t, ar::lookup3>, true;
    }
    if (b == "bfe") return four(by_integer(t, []<class T>() -> executor { return &ar::extract_field<T>; }));
    if (b == "bfi")
      return rows(op, o, i, 5),
             (i.run = by_unsigned(t, []<class T>() -> executor { return &ar::insert_field<T>; })) != nullptr;
    if (b == "bfind") {
      i.mode = op.has("shiftamt");
      return two(by_integer(t, []<class T>() -> executor { return &ar::find_bit<T>; }));
    }
    if (b == "brev") return two(by_unsigned(t, []<class T>() -> executor { return &ar::unary<T, ar::reverse_bits>; }));
    if (b == "popc") return two(by_unsigned(t, []<class T>() -> executor { return &ar::unary<T, ar::count_ones>; }));
    if (b == "clz") return two(by_unsigned(t, []<class T>() -> executor { return &ar::unary<T, ar::count_zeros>; }));
    if (b == "bmsk") {
      i.mode = op.has("clamp");
      return three(&ar::binary<std::uint32_t, ar::mask_bits>);
    }
    if (b == "dp4a") {
      if (op.types.size() != 2) return false;
      bool const x = op.types[0] == type::s32, y = op.types[1] == type::s32;
      return four(x && y ? &ar::ternary<std::uint32_t, ar::dot4<true, true>>
                  : x    ? &ar::ternary<std::uint32_t, ar::dot4<true, false>>
                  : y    ? &ar::ternary<std::uint32_t, ar::dot4<false, true>>
                         : &ar::ternary<std::uint32_t, ar::dot4<false, false>>);
    }
    return false;
  }

  static double rcp_double(double x) { return 1 / x; }
  static double sqrt_double(double x) { return std::sqrt(x); }
  template <class Op>
  static executor by_plain(type t) {
    return t == type::f32 ? executor{&ar::binary<float, Op>} : executor{&ar::binary<double, Op>};
  }
  template <bool Add>
  static executor by_wide(type t) {
    switch (t) {
      case type::u16: return &ar::multiply_wide<std::uint16_t, Add>;
      case type::s16: return &ar::multiply_wide<std::int16_t, Add>;
      case type::u32: return &ar::multiply_wide<std::uint32_t, Add>;
      case type::s32: return &ar::multiply_wide<std::int32_t, Add>;
      default: return nullptr;
    }
  }
  static executor by_carry(type t) {
    switch (t) {
      case type::u32:
      case type::b32: return &ar::with_carry<std::uint32_t>;
      case type::s32: return &ar::with_carry<std::int32_t>;
      case type::u64:
      case type::b64: return &ar::with_carry<std::uint64_t>;
      case type::s64: return &ar::with_carry<std::int64_t>;
      default: return nullptr;
    }
  }
  static void pair_of(opcode const& op, std::vector<operand> const& o, instruction& i) {
    i.operands[0] = row(op, o, 0);
    i.operands[1] = o[0].is == operand::kind::pair ? o[0].second : o[0].row;
    if (o[0].is != operand::kind::pair) i.flags |= flag_no_result;
  }
  /// A warp-wide instruction with the row of its mask, kept in the last operand.
  static bool together_with(instruction& i, std::uint32_t mask, executor e) {
    i.kind = flow::warp;
    i.operands[15] = mask;
    i.run = e;
    return true;
  }

  /// A fault, and the thread ends.
  void stop(instruction& i, std::uint8_t mode) {
    instruction fault = i;
    fault.run = &trap;
    fault.mode = mode;
    fr->f.code.push_back(fault);
    i.kind = flow::exit;
  }

  bool encode_call(opcode const& op, std::vector<operand> const& o, instruction& i) {
    std::vector<std::string> results, arguments;
    std::string name;
    for (auto const& x : o) {
      if (x.is == operand::kind::list) (name.empty() ? results : arguments) = x.names;
      else if (x.is == operand::kind::name) name = name.empty() ? x.name : name;
      else wrong(op);
    }
    if (find(name)) throw error(op.line, "a call by a register: not supported");
    if (name == "__assertfail") return stop(i, 1), true;
    if (std::ranges::find(open, name) != open.end())
      throw error(op.line, "'" + name + "' calls itself: recursion is not supported");
    if (!done.contains(name)) decode_function(name, op.line);
    auto const& f = done.at(name);
    if (results.size() != f.results.size() || arguments.size() != f.parameters.size()) wrong(op);
    call_site site;
    auto const slot = [&](std::string const& n) {
      auto const* s = find(n);
      if (!s || s->is != symbol::kind::param) throw error(op.line, "'" + n + "' is no parameter");
      return s->offset;
    };
    for (std::size_t j = 0; j < arguments.size(); ++j)
      site.in.push_back({slot(arguments[j]), f.parameters[j].offset, f.parameters[j].bytes});
    for (std::size_t j = 0; j < results.size(); ++j)
      site.out.push_back({f.results[j].offset, slot(results[j]), f.results[j].bytes});
    i.kind = flow::call;
    i.target = static_cast<int>(callees.size());
    i.immediate = static_cast<std::int64_t>(k.calls.size());
    callees.push_back(name);
    k.calls.push_back(std::move(site));
    return true;
  }

  bool encode_barrier(opcode const& op, std::vector<operand> const& o, instruction& i) {
    if (op.part(1) == "warp") {
      if (o.size() != 1) wrong(op);
      return together_with(i, row(op, o, 0), &together::barrier);
    }
    std::size_t const at = op.part(1) == "cta" ? 2 : 1;
    if (op.part(1) == "cluster") return false;
    i.kind = flow::barrier;
    std::string_view const what = op.part(at);
    std::size_t first = 0;
    if (what == "sync") {
      i.mode = 0;
    } else if (what == "arrive") {
      i.mode = 1;
    } else if (what == "red") {
      i.mode = op.has("popc") ? 2 : op.has("and") ? 3 : 4;
      first = 1;
      i.operands[2] = row(op, o, 0);
      i.operands[3] = o.empty() ? 0 : row(op, o, o.size() - 1);
    } else {
      return false;
    }
    std::size_t const last = o.size() - (first ? 1 : 0);
    if (last <= first) wrong(op);
    i.operands[0] = row(op, o, first);
    i.operand_count = last - first > 1 ? 2 : 1;
    if (i.operand_count == 2) i.operands[1] = row(op, o, first + 1);
    if (i.mode == 1 && i.operand_count != 2) wrong(op);
    return true;
  }

  bool encode_access(opcode const& op, std::vector<operand> const& o, instruction& i) {
    bool const is_store = op.part(0) == "st";
    type const t = op.last();
    if (t == type::none || o.size() < 2) return false;
    operand const &address = o[is_store ? 0 : 1], &data = o[is_store ? 1 : 0];
    if (address.is != operand::kind::address) wrong(op);
    auto const regs = data.is == operand::kind::list ? data.rows : std::vector{data.row};
    i.vector = op.has("v8") ? 8 : op.has("v4") ? 4 : op.has("v2") ? 2 : 1;
    if (regs.size() != i.vector) wrong(op);
    i.width = static_cast<std::uint8_t>(bytes_of(t));
    if (i.width > 8 || i.width * i.vector > 32) return false;
    i.where = space_in(op);
    if (t == type::s8 || t == type::s16 || t == type::s32) i.flags |= flag_signed;
    strength(op, i);
    i.mode = !is_store && op.has("nc");
    i.operands[0] = address.row;
    i.immediate = address.offset;
    std::ranges::copy(regs, i.operands.begin() + 1);
    i.run = is_store ? &memory::store : &memory::load;
    return true;
  }

  bool encode_atomic(opcode const& op, std::vector<operand> const& o, instruction& i) {
    bool const has_result = op.part(0) == "atom";
    type const t = op.last();
    i.where = space_in(op);
    strength(op, i);
    executor e = nullptr;
    for (auto const p : op.parts) {
      if (p == "add") e = atomic_add(t);
      else if (p == "min") e = atomic_of<memory::a_min>(t);
      else if (p == "max") e = atomic_of<memory::a_max>(t);
      else if (p == "and") e = atomic_of<memory::a_and>(t);
      else if (p == "or") e = atomic_of<memory::a_or>(t);
      else if (p == "xor") e = atomic_of<memory::a_xor>(t);
      else if (p == "exch") e = atomic_of<memory::a_exchange>(t);
      else if (p == "cas") e = atomic_of<memory::a_swap_if>(t);
      else if (p == "inc") e = atomic_of<memory::a_inc>(t);
      else if (p == "dec") e = atomic_of<memory::a_dec>(t);
    }
    if (!e || op.has("v2") || op.has("v4")) return false;
    std::size_t const first = has_result ? 1 : 0;
    if (o.size() < first + 2 || o[first].is != operand::kind::address) wrong(op);
    i.operands[0] = has_result ? row(op, o, 0) : sink;
    if (!has_result) i.flags |= flag_no_result;
    i.operands[1] = o[first].row;
    i.immediate = o[first].offset;
    i.operands[2] = row(op, o, first + 1);
    i.operands[3] = o.size() > first + 2 ? row(op, o, first + 2) : i.operands[2];
    i.run = e;
    return true;
  }

  bool encode_move(opcode const& op, std::vector<operand> const& o, instruction& i) {
    if (o.size() != 2) wrong(op);
    auto const &d = o[0], &s = o[1];
    unsigned const bytes = bytes_of(op.last());
    if (d.is == operand::kind::list) {
      i.vector = static_cast<std::uint8_t>(d.rows.size());
      i.width = static_cast<std::uint8_t>(bytes / d.rows.size());
      std::ranges::copy(d.rows, i.operands.begin());
      i.operands[d.rows.size()] = row(op, o, 1);
      return i.run = &ar::unpack, bytes <= 8;
    }
    if (s.is == operand::kind::list) {
      i.vector = static_cast<std::uint8_t>(s.rows.size());
      i.width = static_cast<std::uint8_t>(bytes / s.rows.size());
      i.operands[0] = row(op, o, 0);
      std::ranges::copy(s.rows, i.operands.begin() + 1);
      return i.run = &ar::pack, bytes <= 8;
    }
    rows(op, o, i, 2);
    i.run = &ar::move;
    return op.last() != type::none && bytes <= 8;
  }

  bool encode_comparison(opcode const& op, std::vector<operand> const& o, instruction& i) {
    bool const is_set = op.part(0) == "set";
    if (op.has("ftz")) i.flags |= flag_ftz;
    i.mode = op.part(2) == "and" ? 1 : op.part(2) == "or" ? 2 : op.part(2) == "xor" ? 3 : 0;
    if (o.size() != (i.mode ? 4u : 3u)) wrong(op);
    pair_of(op, o, i);
    i.operands[2] = row(op, o, 1);
    i.operands[3] = row(op, o, 2);
    i.operands[4] = i.mode ? row(op, o, 3) : i.operands[2];
    if (is_set) {
      if (op.types.size() != 2) return false;
      type const d = op.types[0];
      i.width = d == type::f16x2 || d == type::bf16x2 ? 2 : 0;
      if (op.last() == type::f16x2 || op.last() == type::bf16x2) i.width = 2;
      i.immediate = d == type::f32                         ? 0x3f800000
                    : d == type::f16 || d == type::f16x2   ? 0x3c00
                    : d == type::bf16 || d == type::bf16x2 ? 0x3f80
                    : i.width == 2 || bytes_of(d) == 2     ? 0xffff
                                                           : 0xffffffff;
    }
    i.run = is_set ? comparison<true>(op.part(1), op.last()) : comparison<false>(op.part(1), op.last());
    return i.run != nullptr;
  }

  bool encode_conversion(opcode const& op, std::vector<operand> const& o, instruction& i) {
    if (op.types.size() != 2) return false;
    type const d = op.types[0], s = op.types[1];
    float_flags(op, i);
    i.mode &= static_cast<std::uint8_t>(~ar::mode_nan);
    if (d == type::tf32) {
      rows(op, o, i, 2);
      return i.run = &ar::convert_tf32, s == type::f32;
    }
    if ((d == type::f16x2 || d == type::bf16x2) && s == type::f32) {
      rows(op, o, i, 3);
      i.run = d == type::f16x2 ? &ar::convert_two<half> : &ar::convert_two<bfloat>;
      return true;
    }
    rows(op, o, i, 2);
    for (auto const p : op.parts)
      if (is_float(d) && is_float(s) && (p == "rni" || p == "rzi" || p == "rmi" || p == "rpi")) i.mode |= ar::mode_nan;
    i.run = conversion(d, s);
    return i.run != nullptr;
  }

  bool encode_mma(opcode const& op, std::vector<operand> const& o, instruction& i) {
    std::string shape;
    for (auto const p : op.parts)
      if (p.size() > 3 && p[0] == 'm' && p.find('n') != p.npos && p.find('k') != p.npos) shape = std::string(p);
    if (op.types.size() != 4 || o.size() != 4 || shape.empty() || op.part(1) != "sync" || op.has("sp")) return false;
    auto const kind = [&](type t) -> std::optional<together::element> {
      switch (t) {
        case type::f16: return together::element::f16;
        case type::bf16: return together::element::bf16;
        case type::tf32: return together::element::tf32;
        case type::f32: return together::element::f32;
        case type::s8: return together::element::s8;
        case type::u8: return together::element::u8;
        case type::s32: return together::element::s32;
        case type::f64: return together::element::f64;
        default: return std::nullopt;
      }
    };
    auto const a = kind(op.types[1]), bb = kind(op.types[2]), d = kind(op.types[0]), c = kind(op.types[3]);
    int const depth = std::atoi(shape.c_str() + shape.find('k') + 1), height = std::atoi(shape.c_str() + 1);
    if (!a || !bb || !d || d != c || !op.has("row") || !op.has("col") || shape.find("n8") == shape.npos) return false;
    if (height != 16 && !(height == 8 && *a == together::element::f64)) return false;
    int const per = together::elements_in(*a), in_result = *d == together::element::f16 ? 2 : 1;
    std::size_t const na = static_cast<std::size_t>(height * depth / 32 / per),
                      nb = static_cast<std::size_t>(8 * depth / 32 / per),
                      nd = static_cast<std::size_t>(height * 8 / 32 / in_result);
    std::size_t const expected[] = {nd, na, nb, nd};
    std::size_t at = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      auto const regs = o[j].is == operand::kind::list ? o[j].rows : std::vector{o[j].row};
      if (regs.size() != expected[j] || at + regs.size() > 15) wrong(op);
      std::ranges::copy(regs, i.operands.begin() + static_cast<std::ptrdiff_t>(at));
      at += regs.size();
      i.immediate |= static_cast<std::int64_t>(regs.size()) << (8 * j);
    }
    i.immediate |= static_cast<std::int64_t>(height) << 32;
    i.mode = static_cast<std::uint8_t>(static_cast<int>(*a) | static_cast<int>(*bb) << 4);
    i.width = static_cast<std::uint8_t>(*d);
    i.vector = static_cast<std::uint8_t>(depth);
    i.kind = flow::warp;
    i.flags |= flag_aligned;
    i.run = &together::multiply_matrices;
    return true;
  }
};

}  // namespace neap::testing::ptx::detail
