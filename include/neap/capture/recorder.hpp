// Records one eager call of a compiled function: operators become graphs, questions guards, and what differs at the end
// from the beginning, effects. The call computes as it would without, and frees memory as it would. Operators are written
// to a log; finish() builds the graphs.
//
// Tensors are known by their storages; each has a value for its present content, and views of it. A storage that is no
// argument's, was not computed in the call and not made from numbers in it is refused with the place of its use.
//
// An element that the program reads is a copy in the graph at first, and a tracked scalar whose value is not known before
// the graph has run. Where the program decides by it, computes tensors with it or passes it to an external function, the
// graph ends, and another one begins with the storages made so far.
//
// A recording without data goes on with the elements that a device has read in this call so far (known_reads). Where the
// program needs another one, the recording ends: the stages before that are a path's beginning.
#pragma once

#include <neap/capture/argument_state.hpp>
#include <neap/capture/captured_path.hpp>
#include <neap/capture/host_function.hpp>
#include <neap/capture/operator_log.hpp>
#include <neap/capture/scalar_listener.hpp>
#include <neap/capture/tracked_base.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/model/apply.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Whether one tensor is as good as the other for all that follows: the same one, or the same memory looked at alike, both
/// without history.
inline bool are_alike(tensor const& a, tensor const& b) {
  if (a.node() == b.node() && a.output() == b.output()) return true;
  if (a.is_empty() || b.is_empty() || a.is_traced() || b.is_traced()) return false;
  auto const &m = *a.node(), &n = *b.node();
  return a.storage() == b.storage() && a.layout() == b.layout() && !m.facets && !n.facets &&
         m.wants_gradient == n.wants_gradient && m.though_frozen == n.though_frozen && m.of_gradient == n.of_gradient;
}

/// Ends a recording without data that needs an element which was not read yet, or an object that is not complete.
struct recording_ends {};

class recorder final : public computation_listener,
                       public scalar_listener,
                       public host_listener,
                       public container_listener,
                       private recording_watch {
 public:
  /// `log`: what the host has done in this call. Without data, nothing is computed, and take_back() is to follow; `known`:
  /// what has been read in this call, null: a path that depends on a read is refused.
  recorder(argument_state const& begin, expression_tape& tape, host_log& log, bool with_data = true,
           known_reads const* known = nullptr, std::uint64_t serial = next_serial())
      : computation_listener(with_data),
        recording_watch(serial),
        begin_(&begin),
        tape_(&tape),
        log_(&log),
        known_reads_(known),
        read_cells_(static_cast<std::uint32_t>(begin.cells.size())),
        serial_(serial),
        clock_(context_access::clock()),
        first_order_(context_access::next_order()),
        randomness_(context_access::enter(eager_context::current(), {})),
        memory_(taken_memory()) {
    context_access::enter(eager_context::current(), randomness_);
    for (std::uint32_t k = 0; k < begin.handles.size(); ++k)
      if (!begin.handles[k].is_empty() && rows_.add(begin.handles[k].storage().get(), size()))
        know_before(begin.handles[k].storage()),
            add_entry(origin::argument, k,
                      begin.windows[k].is_part ? begin.windows[k].type : begin.handles[k].storage()->type());
    for (std::uint32_t k = 0; k < begin.cells.size(); ++k) {
      auto const& c = begin.cells[k];
      cells_.add(c.address, k), watch(c.address);
      written_.push_back(tape.cell(k));
      std::memcpy(&begun_bits_.emplace_back(0), c.value, c.bytes);
      if (c.mark) *c.mark = mark(written_.back());
    }
    begin_graph();
    stages_.emplace_back();
    before_ = std::exchange(computation_listener::active(), this);
    scalars_before_ = std::exchange(scalar_listener::active(), this);
    host_before_ = std::exchange(host_listener::active(), this);
    containers_before_ = std::exchange(container_listener::active(), this);
  }
  ~recorder() override {
    stop();
    give_back(std::move(memory_));
  }
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    computation_listener::active() = before_;
    scalar_listener::active() = scalars_before_;
    host_listener::active() = host_before_;
    container_listener::active() = containers_before_;
    if (is_unheard_) log_->end_trial(), host_log::active() = log_before_;
  }

  // ------------------------------------------------------------------ tensors

  void ran(operator_view op, std::span<tensor const> in, std::span<tensor const> out,
           std::span<output_rule const> given, std::source_location where) override {
    if (is_unheard_) return;
    auto const at = place_of(where);
    auto& rules = memory_->rules;  // of views of a part of a storage, in terms of that part
    rules.clear(), rules.append(given.data(), given.size());
    for (std::size_t j = 0; j < rules.size(); ++j)
      if (rules[j].alias != alias_kind::fresh)
        if (auto const row = find_row(*out[j].storage()); row != none)
          if (auto const* w = window_of(entries()[row])) {
            rules[j].layout.offset -= w->base;
            if (op.facets->name == op::as_strided::name) set_needs_whole();
          }
    auto& ids = memory_->inputs;
    ids.clear();
    for (auto const& t : in) ids.push_back(value(*t.storage(), t.layout(), at));
    std::uint32_t made = 0;
    with_place(at, [&] { made = log().add(op, span_of(ids), span_of(rules), at); });
    graph().may_throw = graph().may_throw || op.facets->checks_numbers;
    if (!out.empty()) nodes_made_.push_back(out.front().node());
    for (std::size_t j = 0; j < rules.size(); ++j) {
      auto const v = made + static_cast<std::uint32_t>(j);
      auto const& s = out[j].storage();
      switch (rules[j].alias) {
        case alias_kind::fresh: know(s, origin::computed, v); break;
        case alias_kind::update: {
          auto const row = row_of(*s, at);
          if (!branches_.empty() && row < branches_.back().rows)
            refuse_in_branch("writes memory that was there before: assign after it what it gives");
          auto& e = entries()[row];
          if (++e.updates > 0xffff) refuse(at, {"graph: more than 65535 updates of one storage"});
          if (is_seen(e)) unusable_ = "an operator writes a tensor of whose elements the program has the address";
          set_value(e, v);
          if (e.what == origin::number) e.what = origin::computed;  // its elements are numbers no more
          break;
        }
        default: add_value(entries()[row_of(*s, at)], v);
      }
    }
  }
  void made(tensor const& t) override {
    if (is_unheard_) return;
    nodes_made_.push_back(t.node());
    know(t.storage(), origin::number, none).numbers = static_cast<std::uint32_t>(numbers_.size());
    numbers_.push_back({t.storage(), {}, false});
  }
  void detached(tensor const& t) override { nodes_made_.push_back(t.node()); }
  void copied(tensor_storage const& from, std::shared_ptr<tensor_storage> const& to) override {
    if (is_unheard_) return;
    auto const row = find_row(from);
    if (row == none) return;  // one of no concern: who reads the copy is refused
    if (window_of(entries()[row])) {
      set_needs_whole();
      know(to, origin::computed, none);
      return;
    }
    know(to, origin::computed, copy_of(value(from, tensor_layout::dense(from.type()), {}), from.type(), {}));
  }
  std::byte* reads_data(tensor const& t, std::source_location at) override {
    if (is_unheard_) return overwrites(*t.storage()), nullptr;
    auto const row = find_row(*t.storage());
    if (row != none && entries()[row].what == origin::number) {
      auto const& e = entries()[row];
      auto& n = numbers_[e.numbers];
      n.is_seen = true;
      if (e.first_value != none && n.copy.is_empty()) n.copy = copy_of(*n.storage);
      return nullptr;
    }
    refuse(context_access::place(at),
           {"compile: the function takes the address of a tensor's elements, ", t.type(),
            ": what is read and written there is not seen. Read numbers by item() or neap::item, hand tensors to "
            "neap::effect or neap::external, or choose by neap::where(condition, a, b)"});
  }
  std::byte* reads_elements(tensor const& t, std::source_location at) override {
    if (is_unheard_) return nullptr;
    if (auto const row = find_row(*t.storage()); row != none && entries()[row].what == origin::number) return nullptr;
    if (!has_data() && !known_reads_) refuse_value(at);
    if (t.count() > max_read)
      refuse(context_access::place(at),
             {"compile: the function reads the elements of a tensor, ", t.type(),
              ": a path would depend on each of them. Return the tensor and read it outside, hand it to "
              "neap::effect or neap::external, or choose by neap::where(condition, a, b)"});
    tensor const copy = has_data() ? apart(t, at) : unwritten_tensor(t.type());
    auto const bytes = static_cast<std::size_t>(size_of(t.element()));
    auto const row = copied_row(t, at);
    std::vector<std::uint32_t> leaves;
    for (std::int64_t i = 0; i < t.count(); ++i) leaves.push_back(element_of(row, i, at));
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      std::uint64_t bits = known(leaves[i]).value_or(0);
      auto* const element = copy.storage()->data() + i * bytes;
      if (has_data()) std::memcpy(&bits, element, bytes);
      question(leaves[i], bits, at);
      std::memcpy(element, &bits, bytes);
    }
    if (has_data()) return nullptr;
    read_elements_.push_back(copy);
    return copy.storage()->data();
  }
  void writes_data(tensor_storage const& s) override {
    if (is_unheard_) return overwrites(const_cast<tensor_storage&>(s));
    if (find_row(s) != none)
      refuse(context_access::place({}), {"compile: the function gives a ", name_of(s.role()), ", ", s.type(),
                                         ", other data than by an operator: write it by neap::assign"});
  }
  void differentiates(std::uint64_t order, std::source_location at) override {
    if (order < first_order_ && !is_unheard_)
      refuse(context_access::place(at),
             {"compile: grad goes through an operator that ran before the call: a later call's argument may have "
              "another history. Compute it in the function, or detach() it"});
  }
  void grows(tensor const& part, std::function<void()> grow) override {
    if (has_data() || std::ranges::find(begin_->tensors, &part) == begin_->tensors.end()) return;
    if (!grow_ && !is_beginning()) grow_ = std::move(grow);
    throw recording_ends{};
  }
  void draws() override {
    if (context_access::clock() != clock_ || is_unheard_) return;
    refuse(context_access::place({}),
           {"compile: the function draws from ",
            clock_ ? "a neap::random_scope that began before the call" : "the random generator of its thread",
            ", which a graph does not go on with: draw within a neap::random_scope that begins in the function"});
  }
  void overwrites(tensor_storage& s) override {
    if (rows_.find(&s) == none || std::ranges::find(saved_, &s, &saved::storage) != saved_.end()) return;
    if (has_data()) saved_.push_back({&s, copy_of(s)});
  }
  void failed() override { has_failed_ = true; }

  // ------------------------------------------------------------------ scalars

  std::uint32_t constant(std::uint64_t bits) override { return tape_->constant(bits); }
  std::uint64_t text(std::string_view x) override { return tape_->text(x); }
  std::uint32_t call(scalar_function f, std::uint32_t a, std::uint32_t b) override { return tape_->call(f, a, b); }
  symbol_mark mark(std::uint32_t number) override { return {serial_, number}; }
  std::uint32_t marked(symbol_mark m, std::uint64_t bits) override {
    if (m.capture == 0) return tape_->constant(bits);
    if (m.capture != serial_)
      refuse(context_access::place({}), {"compile: the function reads a sym that another call has left behind "
                                         "outside of the arguments: keep it in a neap::state of an argument"});
    return m.number;
  }
  void question(std::uint32_t number, std::uint64_t answer, std::source_location at) override {
    if (tape_->operator[](number).what == expression::kind::constant) return;
    know_value(number);
    if (!has_data() && latest_[number] > 0) require_known(latest_[number] - 1);
    if (asked_.add(number, 0)) now().path.push_back({number, answer, context_access::place(at)});
  }
  std::uint32_t read(void const* cell) override { return written_[cell_of(cell)]; }
  void constructed(void const* cell, std::uint32_t number) override {
    if (cells_.add(cell, static_cast<std::uint32_t>(written_.size()))) written_.push_back(number), watch(cell);
    else write(cell, number);
    own_.insert(cell);
  }
  void destroyed(void const* cell) override { own_.erase(cell); }
  void write(void const* cell, std::uint32_t number) override {
    auto const k = cell_of(cell);
    if (!branches_.empty() && k < branches_.back().cells)
      refuse_in_branch("writes a neap::state that was there before: give a neap::sym, and write it after");
    written_[k] = number;
  }
  void filled(tensor const& t, std::uint32_t number) override {
    know_value(number);
    nodes_made_.push_back(t.node());
    know(t.storage(), origin::computed,
         add_source(role::input, t.type(), "scalar", captured_stage::source::kind::scalar, number));
  }

  // ------------------------------------------------------------------ the host

  void effect(std::shared_ptr<host_function const> f, arguments const& given, std::source_location at) override {
    if (!branches_.empty()) refuse_in_branch("has an effect");
    if (!has_data()) reporting_failure([&] { (void)log_->known(host_calls_++); });  // throws what it has thrown
    now().effects.push_back(host_call(f, given, at));
    if (has_data()) (void)perform(f, given, at);
  }
  std::pair<host_result, std::uint32_t> external(std::shared_ptr<host_function const> f, arguments const& given,
                                                 std::source_location at) override {
    if (!branches_.empty()) refuse_in_branch("calls a function of the host");
    auto call = host_call(f, given, at);
    for (auto const e : given.scalars) know_value(e);
    host_result r;
    bool needs_call = false;  // its result's type is not known before
    if (has_data()) {
      r = perform(f, given, at);
    } else {
      host_result const* done = nullptr;
      reporting_failure([&] { done = log_->known(host_calls_++); });
      if (done) r.bits = done->bits;
      if (f->gives_tensor()) {
        auto type = done ? std::optional(done->made.type()) : f->type_given();
        if (!type && !known_reads_)
          refuse(context_access::place(at),
                 {"capture by shapes: a neap::external gives a tensor, whose type is not known before it is "
                  "called: pass the tensor to the function"});
        needs_call = !type;
        if (!type) type.emplace(dtype::f32, shape{});
        r.made = make_leaf(std::make_shared<tensor_storage>(*type, initialiser{}, role::activation),
                           tensor_layout::dense(*type));
      }
    }
    // What comes first: the effects before it, the elements that were read, operators that may throw.
    bool computes = !call.rows.empty() || known_ < read_cells_ - begin_->cells.size() || graph().may_throw;
    for (auto s = stages_.rbegin(); s != stages_.rend() && !s->computes; ++s)
      for (auto const& e : s->effects) computes = computes || !e.rows.empty();
    call.cell = read_cells_++, read_places_.push_back(at);
    call.gives_tensor = !r.made.is_empty();
    if (call.gives_tensor) {
      if (has_data()) r.made = apart(r.made, at);
      nodes_made_.push_back(r.made.node());
      call.row = size();
      know(r.made.storage(), origin::external, none).number = externals_++;
    }
    auto const answer = call.gives_tensor ? mix_type({}, r.made.type()).low : 0;
    auto const leaf = tape_->cell(call.cell);
    bool const asks = call.gives_tensor;
    now().external.push_back(std::move(call));
    end_stage(computes);
    known_ = read_cells_ - static_cast<std::uint32_t>(begin_->cells.size());
    if (needs_call) end_before_read();
    if (asks) ask_type(leaf, answer, at);
    return {std::move(r), leaf};
  }
  std::uint32_t element(tensor const& t, std::int64_t i, std::source_location at) override {
    return element_of(copied_row(t, at), i, at);
  }
  std::optional<std::uint64_t> known(std::uint32_t leaf) const override {
    auto const k = (*tape_)[leaf].a - begin_->cells.size();
    if (!known_reads_ || k >= known_reads_->size()) return std::nullopt;
    return (*known_reads_)[k];
  }
  void begins_branch(std::source_location at) override {
    branches_.push_back({size(), static_cast<std::uint32_t>(written_.size()), at});
  }
  void ends_branch() override { branches_.pop_back(); }

  // ------------------------------------------------------------------ tracked containers

  void constructed(tracked_base& c) override {
    if (cells_.contains(&c.self())) unusable_ = "it makes a tracked container of an argument anew";
    own_.insert(&c.self());
  }
  void destroyed(tracked_base& c) override { destroyed(static_cast<void const*>(&c.self())); }
  container_record* record_of(tracked_base& c, std::source_location at) override {
    auto const k = cells_.find(&c.self());
    if (own_.contains(&c.self())) return nullptr;
    if (k == number_map::none)
      refuse(context_access::place(at),
             {"compile: the function uses a tracked container that is no part of its arguments: a later call would "
              "not find it. Pass the object that has it to the function"});
    if (!branches_.empty()) refuse_in_branch("uses a tracked container");
    for (auto& r : containers_)
      if (r->cell == k) return r.get();
    auto& r = *containers_.emplace_back(std::make_unique<container_record>());
    r.container = &c, r.cell = k, r.self = tape_->cell(k), r.version = tape_->cell(k + 1);
    containers_begun_.push_back(c.restorer());
    return &r;
  }
  void reads_element(container_record& r, std::uint32_t place, std::uint64_t now, tensor const& t,
                     std::source_location at) override {
    if (t.is_empty()) return;
    for (auto const& e : elements_)
      if (e.container == r.self && e.place == place) return;
    // Places are given as expressions of constants and lengths: which are equal is a question, too.
    auto const where = (*tape_)[place].a;
    for (auto const& e : elements_) {
      auto const other = (*tape_)[e.place].a;
      auto const is_constant = [&](std::uint32_t k) { return (*tape_)[k].what == expression::kind::constant; };
      if (e.container != r.self || (is_constant(where) && is_constant(other))) continue;
      auto const k = static_cast<std::size_t>(&e - elements_.data());
      bool const same = element_places_[k] == now;
      question(tape_->call(&are_equal, other, where), same, at);
      if (same) return;
    }
    if (!t.is_traced() && find_row(*t.storage()) != none) return shares_memory();
    if (t.is_traced() || t.storage()->is_borrowed()) unusable_ = "it reads borrowed memory from a tracked container";
    auto const number = static_cast<std::uint32_t>(begin_->handles.size() + elements_.size());
    elements_.push_back({r.self, place}), element_handles_.push_back(t), element_places_.push_back(now);
    stages_.back().elements.push_back(elements_.back());
    rows_.add(t.storage().get(), size());
    know_before(t.storage()), add_entry(origin::argument, number, t.storage()->type());
  }
  /// What the call leaves in containers.
  void leave_containers(captured_end& p) {
    for (auto const& r : containers_) {
      if (!r->is_written) continue;
      captured_end::container_write w;
      w.cell = r->cell, w.is_whole = r->is_whole, w.from_front = r->from_front, w.from_back = r->from_back;
      auto const add = [&](container_record::item const& x, std::uint64_t now, std::uint64_t place) {
        captured_end::container_write::item to;
        to.place = place, to.is_kept = x.is_entry, to.is_erased = x.is_erased;
        if (x.is_entry) to.from = x.place;
        if (!x.is_entry && !x.is_erased) {
          if (auto const* t = r->container->tensor_at(now)) to.made = leave(const_cast<tensor&>(*t));
          else to.expression = x.expression;
        }
        w.items.push_back(to);
      };
      for (auto const& [place, x] : r->replaced) add(x, r->is_keyed ? place : place - r->from_front, place);
      w.replaced = w.items.size();
      auto const first = r->is_whole ? 0 : r->container->element_count() - (r->is_keyed ? 0 : r->items.size());
      for (std::size_t k = 0; k < r->items.size(); ++k) add(r->items[k], first + k, k);
      p.containers.push_back(std::move(w));
    }
  }

  // ------------------------------------------------------------------ the end

  /// What the function does that no graph stands for, as an error has it; empty: nothing so far. With data, the function went
  /// on unheard: it may have caught that error.
  std::string const& refusal() const { return refusal_; }
  /// Whether an operator or a function of the host has thrown an exception.
  bool has_failed() const { return has_failed_; }
  /// Whether another thread has used the arguments, or what was made of them.
  bool was_used_elsewhere() const { return was_used(); }

  /// Gives arguments what they began with; `end` is a walk of them now. False: their structure has changed, or memory of a
  /// weight; what has changed then stays so in part.
  bool take_back(argument_state const& end, std::size_t tensors, std::size_t cells, std::size_t plains,
                 std::string_view form) {
    for (auto const& s : saved_)
      std::memcpy(s.storage->data_to_overwrite(), s.before.storage()->data(),
                  static_cast<std::size_t>(s.storage->bytes()));
    for (auto const& [storage, writes] : storages_begun_) storage->take_back(writes);
    if (end.form != form || end.tensors.size() != tensors || end.cells.size() != cells || end.plains.size() != plains)
      return false;
    for (std::size_t k = 0; k < begin_->handles.size(); ++k)
      if (auto const& h = begin_->handles[k];
          has_data() && !h.is_empty() && argument_state::memory_of(h) != begin_->memory[k])
        return false;
    if (has_data()) context_access::enter(eager_context::current(), randomness_);
    for (auto const& restore : containers_begun_) restore();
    for (std::size_t k = 0; k < tensors; ++k)
      if (auto const& t = begin_->handles[k];
          t.node() != end.tensors[k]->node() || t.output() != end.tensors[k]->output())
        *end.tensors[k] = t;
    for (std::size_t k = 0; k < cells; ++k) std::memcpy(end.cells[k].value, &begun_bits_[k], end.cells[k].bytes);
    for (std::size_t k = 0; k < plains; ++k) {
      auto const& b = begin_->plains[k];
      write_plain(end.plains[k], begin_->plain_bytes.substr(b.at, b.bytes));
    }
    write_epoch::mark();
    return true;
  }
  /// After a capture with data: whether a tensor that the call has made has other owners than these, of which each stands for one.
  bool is_kept_outside(owner_counts const& owners) const {
    for (auto const& made : nodes_made_)
      if (auto const n = made.lock(); n && n.use_count() > 1 + owners.of(n.get())) return true;
    return false;
  }

  /// Whether tracked containers were used: then copies of what they had live.
  bool has_containers() const { return !containers_begun_.empty(); }
  /// Whether a tracked scalar or container that the call has made lives on elsewhere than in these.
  bool keeps_tracked(std::initializer_list<argument_state const*> parts) {
    for (auto const* p : parts)
      for (auto const& c : p->cells) destroyed(c.address);
    return !own_.empty();
  }

  /// Where a tensor comes from that the call leaves behind; it is given a form without history where it has one, as a
  /// later run of the graph gives it.
  tensor_origin leave(tensor& t) {
    tensor_origin o;
    if (t.is_empty()) return o;
    if (auto const k = argument_of(t); k != number_map::none) {
      o.what = tensor_origin::kind::argument, o.number = k;
      return o;
    }
    auto const row = t.is_traced() ? none : find_row(*t.storage());
    if (row == none) {
      unusable_ = "it leaves behind a tensor that is no argument's and was not computed in it";
      return o;
    }
    auto const* n = t.node().get();
    o.layout = t.layout();
    bool const history = n->facets != nullptr;
    o.of_compiled = n->of_compiled || (history && n->wants_gradient);
    o.of_gradient = n->of_gradient || o.of_compiled;
    o.wants_gradient = !history && n->wants_gradient, o.though_frozen = n->though_frozen;
    if (entries()[row].what == origin::argument) {
      o.what = tensor_origin::kind::memory_of_argument, o.number = entries()[row].number;
      o.layout.offset -= argument(o.number).layout().offset;
    } else {
      o.what = tensor_origin::kind::made;
      o.number = kept(row);
      auto const& s = *t.storage();
      made_[o.number].as = {s.role(), s.is_frozen(), s.first_values()};
    }
    if (history) {
      t = make_leaf(t.storage(), t.layout());
      t.node()->of_gradient = o.of_gradient, t.node()->of_compiled = o.of_compiled;
    }
    return o;
  }
  /// What the exception that ends a call without data carries of the tensors that it has made: storages that live on where
  /// all else has let them go. Their tensors have no history from then on.
  void keep_thrown(captured_end& p) {
    for (auto made = nodes_made_.rbegin(); made != nodes_made_.rend(); ++made) {
      auto const n = made->lock();
      if (!n || !n->facets) continue;
      n->of_compiled = n->of_compiled || n->wants_gradient;
      n->of_gradient = n->of_gradient || n->wants_gradient, n->wants_gradient = false;
      n->facets = nullptr;
      n->in.clear(), n->in_version.clear(), n->in_data.clear();
    }
    for (auto const& made : storages_made_)
      if (auto s = held_outside(made)) {
        auto const row = s->recorded().row;
        p.thrown_storages.push_back({std::move(s), kept(row)});
      }
  }
  /// After a capture without data that has given its result away: the type of a tensor that it has computed and that
  /// lives on; null: none.
  tensor_type const* kept_outside() const {
    for (auto const& made : storages_made_)
      if (auto const s = held_outside(made)) return &log().layout(entries()[s->recorded().row].layout).type;
    return nullptr;
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

  /// What is to be made before the call is recorded again; empty: nothing.
  std::function<void()> const& growth() const { return grow_; }
  /// Whether an element of a tracked container has the memory of another tensor of the call, by a signature that does not
  /// state it.
  bool finds_sharing() const { return finds_sharing_; }
  /// Whether graphs must have the whole of storages of which arguments see a part.
  bool needs_whole() const { return needs_whole_; }
  /// Whether it has ended before a read: stages() are those before it, and finish() makes no more.
  bool is_beginning() const { return beginning_ > 0; }

  /// The guards of each stage so far.
  std::vector<captured_stage> const& stages() const { return stages_; }

  /// The stages; what is left behind has been given to leave() before. `also_kept`: rows that stages keep besides.
  void finish(captured_path& p, std::vector<std::uint32_t> const& also_kept) {
    for (auto const& n : numbers_)
      if (n.is_seen && !n.copy.is_empty() && !is_equal(n)) unusable_ = written_elements;
    if (is_beginning()) stages_.resize(beginning_);
    else end_graph(), now().computes = true;
    for (auto const row : also_kept) needed_.add(row, 0);
    std::vector<std::vector<std::uint32_t>> kept_in(graphs_.size());
    for (std::uint32_t row = 0; row < size(); ++row)
      if (needed_.contains(std::uint64_t{row}) && entries()[row].home != none)
        kept_in[entries()[row].home].push_back(row);
    std::uint32_t k = 0;
    for (auto& s : stages_) {
      if (!s.computes) continue;
      finish(s, k, kept_in[k]);
      ++k;
    }
    p.end.made = std::move(made_);
    p.stages = std::move(stages_);
  }

 private:
  static constexpr std::int64_t max_read = 64;  // elements of one tensor, as plain values
  enum class origin : std::uint8_t { argument, number, computed, external };
  static constexpr std::uint32_t none = number_map::none;
  static_assert(none == operator_log::none);
  /// What belongs to a graph beside its operators.
  struct graph_record {
    std::vector<captured_stage::source> sources;  // `value`: of its graph
    std::vector<tensor> constants;
    bool may_throw = false;
  };
  /// A storage: a row. Values are numbers of the log; those of one storage are a list, its present content in the present
  /// graph and views of it, empty while no operator of that graph has read it.
  struct entry {
    origin what;
    std::uint32_t number;  // of an argument's tensor, of an external function's
    std::uint32_t layout;  // that of the dense tensor it was made for, or another one of the same type
    std::uint32_t first_value = none, last_value = none;
    std::uint32_t numbers = none;  // one made from numbers of the program: its place among them
    std::uint32_t made = none;
    std::uint32_t home = none;                          // the graph that has made it, once that has ended
    std::uint32_t first_home = none, last_home = none;  // its values there
    std::uint32_t updates = 0;                          // in the present graph
  };
  /// Elements that the program has given a tensor.
  struct numbers_record {
    std::shared_ptr<tensor_storage> storage;
    tensor copy;   // at their first use, or when the program had their address after it
    bool is_seen;  // the program has had the address of its elements
  };
  /// What a recording needs in proportion to its operators: the next one of the thread takes it over.
  struct working_memory {
    operator_log log;
    plain_vector<entry> entries;
    plain_vector<std::uint32_t> next;  // of each value, the next one of its storage
    plain_vector<std::uint32_t> inputs;
    plain_vector<output_rule> rules;
  };
  static std::unique_ptr<working_memory>& spare_memory() {
    thread_local std::unique_ptr<working_memory> spare;
    return spare;
  }
  static std::unique_ptr<working_memory> taken_memory() {
    auto m = std::move(spare_memory());
    return m ? std::move(m) : std::make_unique<working_memory>();
  }
  static void give_back(std::unique_ptr<working_memory> m) {
    constexpr std::size_t max_kept = std::size_t{4} << 20;
    if (m->log.bytes() + m->entries.size() * sizeof(entry) > max_kept) return;
    m->log.clear(), m->entries.clear(), m->next.clear(), m->inputs.clear();
    spare_memory() = std::move(m);
  }

  static std::uint64_t next_serial() {
    static std::atomic<std::uint64_t> last = 0;
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  struct branch {
    std::uint32_t rows, cells;  // that were there before
    std::source_location at;
  };
  [[noreturn]] void refuse_in_branch(char const* what) const {
    refuse(context_access::place(branches_.back().at),
           {"compile: a branch of neap::cond or neap::loop is computed whether it is chosen or not, and ", what});
  }
  [[noreturn]] void refuse_value(std::source_location at) const {
    refuse(context_access::place(at),
           {"capture by shapes: the path depends on the value of a tensor or of a neap::external, which is not "
            "computed: choose by neap::where or neap::cond, or let the first call of the compiled function "
            "capture it"});
  }
  /// Read number k decides.
  void require_known(std::uint32_t k) {
    if (!known_reads_) refuse_value(read_places_[k]);
    if (k >= known_reads_->size()) end_before_read();
  }
  /// The last stage has begun after a read, or a function of the host, that is not known.
  [[noreturn]] void end_before_read() {
    if (!is_beginning() && !grow_) beginning_ = stages_.size() - 1;
    throw recording_ends{};
  }
  void know_before(std::shared_ptr<tensor_storage> const& s) {
    storages_begun_.emplace_back(s, s->writes());
    watch(s.get());
  }
  /// With data, the function goes on as it would without a recording.
  [[noreturn]] void refuse(std::source_location at, std::initializer_list<text_part> parts) const {
    try {
      throw_error(at, parts);
    } catch (error const& e) {
      if (refusal_.empty()) refusal_ = e.what();
      if (has_data() && !is_unheard_) {
        is_unheard_ = true;
        for (auto* c : begin_->tracked())
          if (std::ranges::none_of(containers_, [&](auto const& r) { return r->container == c; }))
            containers_begun_.push_back(c->restorer());
        scalar_listener::active() = scalars_before_, host_listener::active() = host_before_;
        log_->begin_trial();
        log_before_ = std::exchange(host_log::active(), log_);
      }
      throw;
    }
  }
  host_result perform(std::shared_ptr<host_function const> const& f, arguments const& given, std::source_location at) {
    std::vector<tensor> copies;
    for (auto const& t : given.tensors) copies.push_back(apart(t, at));
    unseen_scope const unseen;
    try {
      return log_->perform(f, copies, given.bits);
    } catch (...) {
      has_failed_ = true;
      throw;
    }
  }
  plain_vector<entry>& entries() { return memory_->entries; }
  plain_vector<entry> const& entries() const { return memory_->entries; }
  operator_log& log() { return memory_->log; }
  operator_log const& log() const { return memory_->log; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(entries().size()); }
  graph_record& graph() { return graphs_.back(); }
  captured_stage& now() { return stages_.back(); }
  void begin_graph() {
    graphs_.emplace_back();
    log().begin_section();
  }
  /// context_access::place(at), which examines a file's name once for many operators in a row.
  std::source_location place_of(std::source_location at) {
    if (at.file_name() != last_file_) last_file_ = at.file_name(), is_in_program_ = is_in_program(at);
    return context_access::place(at, is_in_program_);
  }
  /// Memory that the call has made and computed, if another one than the recording holds it.
  std::shared_ptr<tensor_storage> held_outside(std::weak_ptr<tensor_storage> const& made) const {
    auto s = made.lock();
    if (!s) return s;
    auto const& e = entries()[s->recorded().row];
    auto const own = e.numbers == none ? 1 : 2;
    return e.what != origin::number && s.use_count() > own ? s : nullptr;
  }
  bool is_seen(entry const& e) const { return e.numbers != none && numbers_[e.numbers].is_seen; }
  tensor_type const& type_of(entry const& e) { return log().layout(e.layout).type; }

  /// An element of a tracked container has the memory of another tensor of the call: that is a row for both, where the
  /// signature has which ones do. Else the call is to be recorded again.
  void shares_memory() {
    if (begin_->knows_sharing) return;
    finds_sharing_ = true;
    unusable_ = shared_element;
    if (has_data()) return;
    if (!grow_ && !is_beginning()) grow_ = [] {};
    throw recording_ends{};
  }

  /// v is all that is known of the present content.
  void set_value(entry& e, std::uint32_t v) {
    next_of(v) = none;
    e.first_value = e.last_value = v;
  }
  void add_value(entry& e, std::uint32_t v) {
    next_of(v) = none;
    next_of(e.last_value) = v;
    e.last_value = v;
  }
  std::uint32_t& next_of(std::uint32_t v) {
    auto& next = memory_->next;
    if (v >= next.size()) next.resize(log().value_count(), none);
    return next[v];
  }

  /// The type of what a function of the host gave is a guard.
  void ask_type(std::uint32_t leaf, std::uint64_t answer, std::source_location at) {
    if (asked_.add(leaf, 0)) now().path.push_back({leaf, answer, context_access::place(at)});
  }
  /// Another stage begins. `computes`: all operators so far run before; what they have made lives on in memory.
  void end_stage(bool computes) {
    if (computes) {
      end_graph();
      begin_graph();
      now().computes = true;
      known_ = read_cells_ - static_cast<std::uint32_t>(begin_->cells.size());
    }
    stages_.emplace_back();
  }
  void end_graph() {
    auto const k = static_cast<std::uint32_t>(graphs_.size() - 1);
    for (auto& e : entries()) {
      if (e.first_value == none) continue;
      if (e.what == origin::computed && e.home == none)
        e.home = k, e.first_home = e.first_value, e.last_home = e.last_value;
      e.first_value = e.last_value = none;
      e.updates = 0;
    }
  }
  void finish(captured_stage& s, std::uint32_t section, std::vector<std::uint32_t> const& kept) {
    auto& g = graphs_[section];
    graph_editor edit{table_of<standard_operators>()};
    log().build(section, edit, s.places);
    s.op_count = edit.graph().op_count();
    for (auto const row : kept) {
      auto const& e = entries()[row];
      auto const type = type_of(e);
      auto const whole = tensor_layout::dense(type);
      auto v = nothing<value_id>;
      for (auto x = e.first_home; x != none; x = next_of(x))
        if (log().layout(log().layout_of(x)) == whole) v = log().in_section(section, x);
      if (v == nothing<value_id>)
        v = edit.add(op::as_strided{whole.type.dims, whole.strides, whole.offset},
                     {log().in_section(section, e.last_home)})
                .front();
      if (edit.graph().producer(v) == nothing<op_id>) v = edit.add(op::copy{}, {v}).front();
      edit.keep(v, role::output);
      s.kept.push_back({row, v, type});
    }
    for (auto const& from : g.sources)
      if (from.what == captured_stage::source::kind::argument) {
        auto const& made = edit.graph();
        if (made.record(made.storage(from.value)).updates > 0) s.updated.push_back(from.number);
      }
    s.places.resize(edit.graph().op_count());
    s.sources = std::move(g.sources), s.constants = std::move(g.constants);
    s.may_throw = g.may_throw, s.program = std::move(edit).finish();
  }
  /// The program needs the value of an expression.
  void know_value(std::uint32_t number) {
    for (auto k = static_cast<std::uint32_t>(latest_.size()); k <= number; ++k) {
      auto const& e = (*tape_)[k];
      auto const begun = static_cast<std::uint32_t>(begin_->cells.size());
      std::uint32_t latest = 0;  // one after the last element that it depends on
      if (e.what == expression::kind::cell && e.a >= begun) latest = e.a - begun + 1;
      if (e.what == expression::kind::call) latest = std::max(latest_[e.a], latest_[e.b]);
      latest_.push_back(latest);
    }
    if (latest_[number] > known_) end_stage(true);
  }
  /// A copy of a tensor, as it is now, for the host.
  std::uint32_t copied_row(tensor const& t, std::source_location at) {
    if (t.is_empty()) no_tensor(at);
    auto const v = copy_of(value(*t.storage(), t.layout(), at), t.type(), context_access::place(at));
    auto const row = size();
    set_value(add_entry(origin::computed, none, t.type()), v);
    needed_.add(row, 0);
    return row;
  }
  std::uint32_t element_of(std::uint32_t row, std::int64_t i, std::source_location at) {
    auto const cell = read_cells_++;
    read_places_.push_back(at);
    now().reads.push_back({row, i, size_of(type_of(entries()[row]).element), cell});
    return tape_->cell(cell);
  }
  captured_stage::host_call host_call(std::shared_ptr<host_function const> f, arguments const& given,
                                      std::source_location at) {
    captured_stage::host_call c;
    c.function = std::move(f), c.scalars = given.scalars;
    for (auto const& t : given.tensors) c.rows.push_back(copied_row(t, at)), c.types.push_back(t.type());
    return c;
  }
  entry& add_entry(origin what, std::uint32_t number, tensor_type const& type) {
    entries().push_back({what, number, log().layout_number(tensor_layout::dense(type))});
    return entries().back();
  }
  /// A storage that the call has made, with its first value, if there is one.
  entry& know(std::shared_ptr<tensor_storage> const& s, origin what, std::uint32_t value) {
    s->set_recorded({serial_, size()});
    if (!has_data()) storages_made_.push_back(s);
    if (value == none) return add_entry(what, none, s->type());
    entries().push_back({what, none, log().layout_of(value)});
    set_value(entries().back(), value);
    return entries().back();
  }
  std::uint32_t find_row(tensor_storage const& s) const {
    if (auto const& r = s.recorded(); r.capture == serial_) return r.row;
    return rows_.find(&s);
  }
  std::uint32_t row_of(tensor_storage const& s, std::source_location at) const {
    auto const row = find_row(s);
    if (row == none)
      refuse(context_access::place(at),
             {"compile: the function uses a tensor that is neither an argument nor a part of one, ", s.type(),
              ": a later call would use it as it is now. Pass it, or the object that has it, to the function"});
    return row;
  }
  std::uint32_t value(tensor_storage const& s, tensor_layout l, std::source_location at) {
    auto& e = entries()[row_of(s, at)];
    if (auto const* w = window_of(e)) {
      l.offset -= w->base;
      if (l.offset < 0 || reach(l) > w->type.count()) {
        set_needs_whole();
        if (e.first_value == none) begin(e);
        return e.first_value;  // the log is not used
      }
    }
    if (e.first_value == none) begin(e);
    for (auto v = e.first_value; v != none; v = next_of(v))
      if (log().layout(log().layout_of(v)) == l) return v;
    auto const last = e.last_value;
    auto const v =
        log().add(op::as_strided{l.type.dims, l.strides, l.offset}, span_of(&last, 1), {l, alias_kind::view, 0}, at);
    add_value(e, v);
    return v;
  }
  /// The part of an argument's storage that is a graph's; null: all of it.
  argument_state::window const* window_of(entry const& e) const {
    if (e.what != origin::argument || e.number >= begin_->windows.size()) return nullptr;
    auto const& w = begin_->windows[e.number];
    return w.is_part ? &w : nullptr;
  }
  void set_needs_whole() {
    needs_whole_ = true;
    unusable_ = "it uses more of a tensor than the part of it that is an argument";
  }
  /// A dense copy of a value.
  std::uint32_t copy_of(std::uint32_t value, tensor_type const& type, std::source_location at) {
    return log().add(op::copy{}, span_of(&value, 1), {tensor_layout::dense(type)}, at);
  }
  std::uint32_t add_source(role r, tensor_type const& type, char const* name, captured_stage::source::kind what,
                           std::uint32_t number) {
    auto const v = log().add_source(r, log().layout_number(tensor_layout::dense(type)), name);
    graph().sources.push_back({in_graph(v), what, number});
    return v;
  }
  /// A value of the present graph in that graph.
  value_id in_graph(std::uint32_t v) { return log().in_section(static_cast<std::uint32_t>(graphs_.size() - 1), v); }
  tensor const& argument(std::uint32_t number) const {
    auto const n = begin_->handles.size();
    return number < n ? begin_->handles[number] : element_handles_[number - n];
  }
  /// The content of a storage that no operator of the present graph has read so far.
  void begin(entry& e) {
    using kind = captured_stage::source::kind;
    auto const type = type_of(e);
    if (e.what == origin::argument) {
      auto const r = argument(e.number).storage()->role();
      set_value(e, add_source(is_source(r) ? r : role::input, type, "argument", kind::argument, e.number));
      if (auto const* w = window_of(e)) {
        auto& source = graph().sources.back();
        source.is_part = true, source.within = argument(e.number).layout().offset - w->base;
      }
      return;
    }
    if (e.what == origin::external)
      return set_value(e, add_source(role::input, type, "external", kind::external, e.number));
    if (e.what == origin::computed) {
      auto const row = static_cast<std::uint32_t>(&e - entries().data());
      needed_.add(row, 0);
      return set_value(e, add_source(role::input, type, "made before", kind::row, row));
    }
    // Unseen, its elements were as they were made until an operator wrote them: this one, perhaps.
    auto& n = numbers_[e.numbers];
    if (auto const& first = n.storage->first_values(); first.how == initialiser::kind::constant && !n.is_seen) {
      set_value(e, log().add(op::fill{type.dims, type.element, first.a}, {}, {tensor_layout::dense(type)}, {}));
    } else {
      if (!n.copy.is_empty() && !is_equal(n)) unusable_ = written_elements;
      n.copy = copy_of(*n.storage);
      auto& constants = graph().constants;
      auto const v =
          add_source(role::constant, type, "numbers", kind::constant, static_cast<std::uint32_t>(constants.size()));
      constants.push_back(n.copy);
      set_value(e, copy_of(v, type, {}));  // an operator may write it
    }
  }
  static constexpr char const* written_elements =
      "elements of a tensor are written after its use, other than by an operator";
  /// Whether numbers are as they were when an operator read them first.
  static bool is_equal(numbers_record const& n) {
    return std::memcmp(n.storage->data(), n.copy.storage()->data(), static_cast<std::size_t>(n.storage->bytes())) == 0;
  }
  /// A copy of numbers as they are now, with which finish() compares those at the end.
  static tensor copy_of(tensor_storage& s) {
    tensor copy = make_leaf(std::make_shared<tensor_storage>(s.type(), initialiser{}, role::constant),
                            tensor_layout::dense(s.type()));
    std::memcpy(copy.storage()->data_to_overwrite(), s.data(), static_cast<std::size_t>(s.bytes()));
    return copy;
  }
  std::uint32_t kept(std::uint32_t row) {
    auto& e = entries()[row];
    if (e.made != none) return e.made;
    if (e.what == origin::number) {  // an operator copies it
      if (e.first_value == none) begin(e);
      e.what = origin::computed;
    }
    needed_.add(row, 0);
    made_.push_back({row, type_of(e)});
    return e.made = static_cast<std::uint32_t>(made_.size() - 1);
  }
  /// The number of an argument's tensor, or of an element that was read; none: it is another one.
  std::uint32_t argument_of(tensor const& t) {
    auto const n = begin_->handles.size();
    auto const handle = [&](std::uint32_t k) -> tensor const& {
      return k < n ? begin_->handles[k] : element_handles_[k - n];
    };
    for (; found_ < n + elements_.size(); ++found_)
      if (auto const& h = handle(found_); !h.is_empty()) by_node_.add(h.node().get(), found_);
    for (auto k = by_node_.find(t.node().get()); k < n + elements_.size(); ++k)
      if (auto const& h = handle(k); h.node() == t.node() && h.output() == t.output()) return k;
    return number_map::none;
  }
  std::uint32_t cell_of(void const* address) const {
    auto const k = cells_.find(address);
    if (k == number_map::none)
      refuse(context_access::place({}),
             {"compile: the function uses a neap::state that is no part of its arguments: a later call would not "
              "find it. Pass the object that has it to the function"});
    return k;
  }
  argument_state const* begin_;
  expression_tape* tape_;
  host_log* log_;
  known_reads const* known_reads_;
  std::size_t beginning_ = 0;  // how many stages come before a read that is not known; 0: none is
  std::function<void()> grow_;
  std::size_t host_calls_ = 0;            // without data: how many effects and functions of the host so far
  std::vector<tensor> read_elements_;     // without data: what the program has copied
  std::uint32_t read_cells_, known_ = 0;  // tracked scalars so far; how many of the elements read have a value
  std::uint64_t serial_;
  void* clock_;
  std::uint64_t first_order_;              // of operators of this call
  context_access::randomness randomness_;  // of the thread, at the beginning
  computation_listener* before_;
  scalar_listener* scalars_before_;
  host_listener* host_before_;
  container_listener* containers_before_;
  bool stopped_ = false;
  std::unique_ptr<working_memory> memory_;
  number_map rows_;  // storages of arguments to entries; one that the call has made knows its own
  std::vector<numbers_record> numbers_;
  std::uint32_t externals_ = 0;
  number_map cells_;                    // addresses of tracked scalars to their numbers
  std::vector<std::uint32_t> written_;  // their expressions now
  std::vector<graph_record> graphs_;
  std::vector<captured_stage> stages_;
  std::vector<branch> branches_;  // under way
  std::vector<std::unique_ptr<container_record>> containers_;
  std::vector<captured_stage::element> elements_;
  std::vector<tensor> element_handles_;
  std::vector<std::uint64_t> element_places_;
  number_map by_node_;
  std::uint32_t found_ = 0;  // arguments' tensors and elements in by_node_
  number_map needed_;        // rows, as a set
  std::vector<captured_end::made_row> made_;
  number_map asked_;                   // questions, as a set
  std::vector<std::uint32_t> latest_;  // of each expression, one after the last element read that it depends on
  char const* unusable_ = nullptr;
  mutable std::string refusal_;
  mutable bool is_unheard_ = false;  // from the first refusal on
  mutable host_log* log_before_ = nullptr;
  bool finds_sharing_ = false, needs_whole_ = false, has_failed_ = false;
  char const* last_file_ = nullptr;
  bool is_in_program_ = false;
  // What take_back() needs.
  struct saved {
    tensor_storage* storage;
    tensor before;
  };
  std::vector<saved> saved_;  // memory of arguments that the call has written
  std::vector<std::pair<std::shared_ptr<tensor_storage>, tensor_storage::writing_state>> storages_begun_;
  std::vector<std::uint64_t> begun_bits_;
  std::vector<std::source_location>
      read_places_;  // of what the host reads: tracked scalars after those of the beginning
  mutable std::vector<std::function<void()>> containers_begun_;
  // What keep_thrown() and is_kept_outside() need.
  std::vector<std::weak_ptr<tensor_node>> nodes_made_;
  std::unordered_set<void const*> own_;  // tracked scalars and containers that the call has made and that live
  std::vector<std::weak_ptr<tensor_storage>> storages_made_;
};

}}}  // namespace neap::v0::detail
