// Records one eager call of a compiled function: operators become a graph, questions guards, and what differs at the end
// from the beginning, effects. The call computes as it would without.
//
// Tensors are known by their storages; each has a value for its present content, and views of it. A storage that is no
// argument's, was not computed in the call and not made from numbers in it is refused with the place of its use.
#pragma once

#include <neap/capture/argument_state.hpp>
#include <neap/capture/captured_program.hpp>
#include <neap/capture/scalar_listener.hpp>
#include <neap/core/number_map.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/model/apply.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

class recorder final : public computation_listener, public scalar_listener {
 public:
  recorder(argument_state const& begin, expression_tape& tape)
      : begin_(&begin),
        tape_(&tape),
        edit_(table_of<standard_operators>()),
        serial_(next_serial()),
        clock_(context_access::clock()),
        first_order_(context_access::next_order()) {
    for (std::uint32_t k = 0; k < begin.handles.size(); ++k)
      if (!begin.handles[k].is_empty() && rows_.add(begin.handles[k].storage().get(), size()))
        entries_.push_back({begin.handles[k].storage(), origin::argument, k, {}, false});
    for (std::uint32_t k = 0; k < begin.cells.size(); ++k) {
      auto const& c = begin.cells[k];
      cells_.add(c.address, k);
      written_.push_back(tape.cell(k));
      if (c.mark) *c.mark = mark(written_.back());
    }
    before_ = std::exchange(computation_listener::active(), this);
    scalars_before_ = std::exchange(scalar_listener::active(), this);
  }
  ~recorder() override { stop(); }
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    computation_listener::active() = before_;
    scalar_listener::active() = scalars_before_;
  }

  // ------------------------------------------------------------------ tensors

  void ran(operator_view op, std::span<tensor const> in, std::span<tensor const> out,
           std::source_location at) override {
    if (!is_standard_name(op.facets->name))
      throw_error(context_access::place(at),
                  {"compile: ", op.facets->name, " is no standard operator: run it outside"});
    std::vector<value_id> ids;
    for (auto const& t : in) ids.push_back(value(*t.storage(), t.layout(), at));
    auto const made = edit_.emit(op, span_of(ids));
    may_throw_ = may_throw_ || checks_numbers(*op.facets);
    places_.resize(edit_.graph().op_count());
    places_.back() = context_access::place(at);
    for (std::size_t j = 0; j < made.size(); ++j) {
      auto const& g = edit_.graph();
      if (!(g.layout(made[j]) == out[j].layout()))
        throw_error(context_access::place(at), {"compile: ", op.facets->name, " has another layout in the graph"});
      auto const& s = out[j].storage();
      switch (g.record(made[j]).alias) {
        case alias_kind::fresh: know(s, origin::computed, 0).values = {made[j]}; break;
        case alias_kind::update: {
          auto& e = entry_of(*s, at);
          e.values = {made[j]};
          if (e.what == origin::number) e.what = origin::computed;  // its elements are numbers no more
          break;
        }
        default: entry_of(*s, at).values.push_back(made[j]);
      }
    }
  }
  void made(tensor const& t) override { know(t.storage(), origin::number, 0); }
  void copied(tensor_storage const& from, std::shared_ptr<tensor_storage> const& to) override {
    if (!rows_.contains(&from)) return;  // one of no concern: who reads the copy is refused
    auto const v = edit_.add(op::copy{}, {value(from, tensor_layout::dense(from.type()), {})}).front();
    places_.resize(edit_.graph().op_count());
    know(to, origin::computed, 0).values = {v};
  }
  void reads_data(tensor const& t, std::source_location at) override {
    auto const row = rows_.find(t.storage().get());
    if (row != number_map::none && entries_[row].what == origin::number) {
      auto& e = entries_[row];
      e.seen = true;
      if (!e.values.empty() && e.numbers.is_empty()) e.numbers = copy_of(e);
      return;
    }
    throw_error(context_access::place(at),
                {"compile: the function reads elements of a tensor, ", t.type(),
                 ": a graph has them only after it has run. Return the tensor and read it outside, or choose by "
                 "neap::where(condition, a, b)"});
  }
  void writes_data(tensor_storage const& s) override {
    if (rows_.contains(&s))
      throw_error(context_access::place({}), {"compile: the function gives a ", name_of(s.role()), ", ", s.type(),
                                              ", other data than by an operator: write it by neap::assign"});
  }
  void differentiates(std::uint64_t order, std::source_location at) override {
    if (order < first_order_)
      throw_error(context_access::place(at),
                  {"compile: grad goes through an operator that ran before the call: a later call's argument may have "
                   "another history. Compute it in the function, or detach() it"});
  }
  void draws() override {
    if (context_access::clock() == clock_)
      throw_error(context_access::place({}),
                  {"compile: the function draws from the random generator of its thread, which a graph does not go on "
                   "with: draw within a neap::random_scope that begins in the function"});
  }

  // ------------------------------------------------------------------ scalars

  std::uint32_t constant(std::uint64_t bits) override { return tape_->constant(bits); }
  std::uint32_t call(scalar_function f, std::uint32_t a, std::uint32_t b) override { return tape_->call(f, a, b); }
  symbol_mark mark(std::uint32_t number) override { return {serial_, number}; }
  std::uint32_t marked(symbol_mark m, std::uint64_t bits) override {
    if (m.capture == 0) return tape_->constant(bits);
    if (m.capture != serial_)
      throw_error(context_access::place({}), {"compile: the function reads a sym that another call has left behind "
                                              "outside of the arguments: keep it in a neap::state of an argument"});
    return m.number;
  }
  void question(std::uint32_t number, std::uint64_t answer, std::source_location at) override {
    if (tape_->operator[](number).what == expression::kind::constant) return;
    if (asked_.add(number, 0)) path_.push_back({number, answer, context_access::place(at)});
  }
  std::uint32_t read(void const* cell) override { return written_[cell_of(cell)]; }
  void constructed(void const* cell, std::uint32_t number) override {
    if (cells_.add(cell, static_cast<std::uint32_t>(written_.size()))) written_.push_back(number);
    else write(cell, number);
  }
  void write(void const* cell, std::uint32_t number) override { written_[cell_of(cell)] = number; }
  void filled(tensor const& t, std::uint32_t number) override {
    auto const v = edit_.add_source(role::input, t.type(), "scalar");
    sources_.push_back({v, captured_program::source::kind::scalar, number});
    know(t.storage(), origin::computed, 0).values = {v};
  }

  // ------------------------------------------------------------------ the end

  /// Where a tensor comes from that the call leaves behind; it is given a form without history where it has one, as a
  /// later run of the graph gives it.
  tensor_origin leave(tensor& t) {
    tensor_origin o;
    if (t.is_empty()) return o;
    for (std::uint32_t k = 0; k < begin_->handles.size(); ++k)
      if (auto const& h = begin_->handles[k]; h.node() == t.node() && h.output() == t.output()) {
        o.what = tensor_origin::kind::argument, o.number = k;
        return o;
      }
    auto const row = t.is_traced() ? number_map::none : rows_.find(t.storage().get());
    if (row == number_map::none) {
      unusable_ = "it leaves behind a tensor that is no argument's and was not computed in it";
      return o;
    }
    auto const* n = t.node().get();
    o.layout = t.layout();
    bool const history = n->facets != nullptr;
    o.of_gradient = n->of_gradient || (history && n->wants_gradient);
    o.wants_gradient = !history && n->wants_gradient, o.though_frozen = n->though_frozen;
    if (entries_[row].what == origin::argument) {
      o.what = tensor_origin::kind::memory_of_argument, o.number = entries_[row].number;
    } else {
      o.what = tensor_origin::kind::made;
      o.number = kept(row);
    }
    if (history) {
      t = make_leaf(t.storage(), t.layout());
      t.node()->of_gradient = o.of_gradient;
    }
    return o;
  }
  /// The expression of an argument's tracked scalar at the end, where it is then.
  std::uint32_t written(argument_state::cell_place const& end) { return end.mark ? left(end) : read(end.address); }
  std::uint32_t begun(std::uint32_t cell) { return tape_->cell(cell); }
  /// The expression of a sym; number_map::none for a state, which no result has.
  std::uint32_t left(argument_state::cell_place const& c) {
    if (!c.mark) return number_map::none;
    std::uint64_t bits = 0;
    std::memcpy(&bits, c.value, c.bytes);
    return marked(*c.mark, bits);
  }
  void set_unusable(char const* why) { unusable_ = why; }
  /// Why no graph can stand for the call; null: one can.
  char const* unusable() const { return unusable_; }

  /// The graph and its sources; what is left behind has been given to leave() before.
  void finish(captured_program& p) {
    for (auto const& e : entries_)
      if (e.seen && !e.numbers.is_empty() &&
          std::memcmp(e.storage->data(), e.numbers.storage()->data(), static_cast<std::size_t>(e.storage->bytes())) !=
              0)
        unusable_ = "elements of a tensor are written after its use, other than by an operator";
    for (auto const& s : sources_)
      if (s.what == captured_program::source::kind::argument) {
        auto const& g = edit_.graph();
        if (g.record(g.storage(s.value)).updates > 0) p.updated.push_back(s.number);
      }
    p.sources = std::move(sources_), p.constants = std::move(constants_), p.made = std::move(made_);
    p.path = std::move(path_), p.may_throw = may_throw_;
    p.program = std::move(edit_).finish();
    p.places = std::move(places_);
  }

 private:
  enum class origin : std::uint8_t { argument, number, computed };
  static constexpr std::uint32_t nothing_kept = number_map::none;
  struct entry {
    std::shared_ptr<tensor_storage> storage;
    origin what;
    std::uint32_t number;          // of an argument's tensor
    std::vector<value_id> values;  // of the present content; none: not read so far
    bool seen;                     // the program has had the address of its elements
    tensor numbers{};  // a number's elements at its first use, or when the program had their address after it
    std::uint32_t made = nothing_kept;
  };

  static std::uint64_t next_serial() {
    static std::atomic<std::uint64_t> last = 0;
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  entry& know(std::shared_ptr<tensor_storage> const& s, origin what, std::uint32_t number) {
    rows_.set(s.get(), size());
    return entries_.emplace_back(entry{s, what, number, {}, false});
  }
  entry& entry_of(tensor_storage const& s, std::source_location at) {
    auto const row = rows_.find(&s);
    if (row == number_map::none)
      throw_error(context_access::place(at),
                  {"compile: the function uses a tensor that is neither an argument nor a part of one, ", s.type(),
                   ": a later call would use it as it is now. Pass it, or the object that has it, to the function"});
    return entries_[row];
  }
  value_id value(tensor_storage const& s, tensor_layout const& l, std::source_location at) {
    auto& e = entry_of(s, at);
    if (e.values.empty()) begin(e);
    for (auto v : e.values)
      if (edit_.graph().layout(v) == l) return v;
    auto const v = edit_.add(op::as_strided{l.type.dims, l.strides, l.offset}, {e.values.back()}).front();
    places_.resize(edit_.graph().op_count());
    e.values.push_back(v);
    return v;
  }
  /// The content of a storage that no operator has read so far.
  void begin(entry& e) {
    auto const& type = e.storage->type();
    if (e.what == origin::argument) {
      auto const r = e.storage->role();
      e.values = {edit_.add_source(is_source(r) ? r : role::input, type, "argument")};
      sources_.push_back({e.values.front(), captured_program::source::kind::argument, e.number});
      return;
    }
    if (auto const& first = e.storage->first_values();
        first.how == initialiser::kind::constant && !e.seen && e.storage->is_as_made()) {
      e.values = {edit_.add(op::fill{type.dims, type.element, first.a}, {}).front()};
    } else {
      e.numbers = copy_of(e);
      auto const v = edit_.add_source(role::constant, type, "numbers");
      sources_.push_back({v, captured_program::source::kind::constant, static_cast<std::uint32_t>(constants_.size())});
      constants_.push_back(e.numbers);
      e.values = {edit_.add(op::copy{}, {v}).front()};  // an operator may write it
    }
    places_.resize(edit_.graph().op_count());
  }
  /// A copy of the numbers as they are now, with which finish() compares those at the end.
  static tensor copy_of(entry const& e) {
    auto const& type = e.storage->type();
    tensor const copy =
        make_leaf(std::make_shared<tensor_storage>(type, initialiser{}, role::constant), tensor_layout::dense(type));
    std::memcpy(copy.storage()->data_to_overwrite(), e.storage->data(), static_cast<std::size_t>(e.storage->bytes()));
    return copy;
  }
  std::uint32_t kept(std::uint32_t row) {
    if (entries_[row].made != nothing_kept) return entries_[row].made;
    auto const& s = *entries_[row].storage;
    auto v = value(s, tensor_layout::dense(s.type()), {});
    if (edit_.graph().producer(v) == nothing<op_id>) {
      v = edit_.add(op::copy{}, {v}).front();
      places_.resize(edit_.graph().op_count());
    }
    edit_.keep(v, role::output);
    made_.push_back(v);
    return entries_[row].made = static_cast<std::uint32_t>(made_.size() - 1);
  }
  std::uint32_t cell_of(void const* address) const {
    auto const k = cells_.find(address);
    if (k == number_map::none)
      throw_error(context_access::place({}),
                  {"compile: the function uses a neap::state that is no part of its arguments: a later call would not "
                   "find it. Pass the object that has it to the function"});
    return k;
  }
  /// Whether the kernel throws for numbers that it reads: places outside of what they pick from, weights of draws.
  static bool checks_numbers(operator_facets const& f) {
    for (std::string_view part :
         {"embedding", "gather", "scatter", "index", "one_hot", "entropy", "multinomial", "nll"})
      if (f.name.find(part) != f.name.npos) return true;
    return false;
  }

  argument_state const* begin_;
  expression_tape* tape_;
  graph_editor edit_;
  std::uint64_t serial_;
  void* clock_;
  std::uint64_t first_order_;  // of operators of this call
  computation_listener* before_;
  scalar_listener* scalars_before_;
  bool stopped_ = false, may_throw_ = false;
  number_map rows_;  // storages to entries
  std::vector<entry> entries_;
  number_map cells_;                    // addresses of tracked scalars to their numbers
  std::vector<std::uint32_t> written_;  // their expressions now
  std::vector<captured_program::source> sources_;
  std::vector<tensor> constants_;
  std::vector<value_id> made_;
  std::vector<guard> path_;
  number_map asked_;  // questions, as a set
  std::vector<std::source_location> places_;
  char const* unusable_ = nullptr;
};

}  // namespace neap::inline v0::detail
