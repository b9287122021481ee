// A model's weights and buffers in a file, by their paths ("layers.3.up.weight"): safetensors, which other tools read.
//
//   neap::save(model, "model.safetensors").value();   // value() throws neap::error where it did not go well
//   neap::load(model, "model.safetensors").value();
//
// A neap::state is saved as well; a file without it leaves it as it is.
//
// Tied weights are one tensor of the file, under the first of their paths; a file that has them under another one of them
// is read all the same. Plain tensors and views that a model holds are not saved: they are made from something else. What
// a training keeps beside the model is in train/training_file.hpp; its files are files of the model as well.
#pragma once

#include <neap/model/parameters.hpp>
#include <neap/model/safetensors.hpp>

#include <concepts>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct load_options {
  bool allow_missing = false;  // what the file lacks stays as it is
  bool allow_extra = false;    // what the model lacks is passed over
  bool cast = false;           // floating elements become those of the model, rounded to nearest (f64 by way of f32)

  bool drop_states = false;  // of a training's file: states of the optimizer are passed over, and begin at zero

  // Names of the file become the model's in this order:
  std::string strip_prefix{};                                    // taken away where a name begins with it
  std::string add_prefix{};                                      // put before each
  std::function<std::string(std::string const& name)> rename{};  // an empty text: the tensor is passed over
};

/// What was in the file, besides what was loaded.
struct load_report {
  std::vector<std::string> missing, extra;  // where they are allowed
  safetensors_metadata metadata;
};

namespace detail {

/// Where the names of what a training keeps begin: no path of a model has a slash, unless a map's key has.
inline constexpr std::string_view training_prefix = "training_state/";

/// One tensor of a program and the names that it may have in a file, the first one in files that we write.
struct load_target {
  std::vector<std::string> names;
  tensor holder;
  bool may_be_missing = false;
};

/// A model's weights and buffers, and the numbers that it keeps: a file without these fits as well.
inline std::vector<load_target> load_targets(model_ref model) {
  std::vector<load_target> all;
  for (auto r : {role::weight, role::buffer})
    for (auto& n : named_tensors_of(model, r)) all.push_back({{std::move(n.name)}, std::move(n.tensor)});
  model.each_tensor([&](tensor& t, std::string const& path) {  // other names of tied ones
    if (t.is_empty() || t.is_traced() || t.layout() != tensor_layout::dense(t.storage()->type())) return;
    for (auto& x : all)
      if (x.holder.storage() == t.storage() && x.names.front() != path) x.names.push_back(path);
  });
  tensor_visitor numbers{&all, [](void*, tensor&, std::string const&) {}};
  numbers.number = [](void* to, tensor memory, std::string const& path) {
    static_cast<std::vector<load_target>*>(to)->push_back({{path}, std::move(memory), true});
  };
  model.visit(numbers);
  return all;
}

/// "missing "a" f32[2], "b" f32[3] and 7 more".
class name_list {
 public:
  explicit name_list(char const* what) : text_(what) {}
  void add(std::string const& name, std::string const& more) {
    if (++count_ <= shown) text_ += (count_ > 1 ? ", " : " ") + in_quotes(name) + more;
  }
  void append_to(std::string& all) const {
    if (count_ == 0) return;
    all += (all.empty() ? "" : "; ") + text_;
    if (count_ > shown) all += " and " + std::to_string(count_ - shown) + " more";
  }

 private:
  static constexpr std::size_t shown = 4;
  std::string text_;
  std::size_t count_ = 0;
};

/// A file's tensors by the names that the model has for them. Of what a training keeps of a weight, the weight's name
/// changes.
class file_names {
 public:
  /// Fails if two tensors get one name, or the prefix is none of the file's.
  static result<file_names> of(safetensors_file const& file, load_options const& o) {
    file_names n;
    bool stripped = o.strip_prefix.empty();
    for (auto const& e : file.header().tensors) {
      std::string front, name = e.name;
      if (name.starts_with(training_prefix)) {  // training_state/0/PATH
        auto const path = name.find('/', training_prefix.size());
        if (path == name.npos) {
          n.entries_.emplace(std::move(name), &e);
          continue;
        }
        front = name.substr(0, path + 1), name.erase(0, path + 1);
      }
      if (!o.strip_prefix.empty() && name.starts_with(o.strip_prefix))
        name.erase(0, o.strip_prefix.size()), stripped = true;
      name = o.add_prefix + name;
      if (o.rename && (name = o.rename(name)).empty()) {
        n.passed_.insert(&e);
        continue;
      }
      if (auto const [there, is_new] = n.entries_.emplace(front + name, &e); !is_new)
        return file.refuse("does not fit the model: " + in_quotes(there->second->name) + " and " + in_quotes(e.name) +
                           " both become " + in_quotes(front + name));
    }
    if (!stripped)
      return file.refuse(
          "does not fit the model: no name begins with " + in_quotes(o.strip_prefix) +
          (file.header().tensors.empty() ? std::string() : ", as in " + in_quotes(file.header().tensors[0].name)));
    return n;
  }
  safetensors_entry const* find(std::string const& name) const {
    auto const found = entries_.find(name);
    return found == entries_.end() ? nullptr : found->second;
  }
  /// Whether the renaming function has passed over a tensor.
  bool is_passed(safetensors_entry const& e) const { return passed_.contains(&e); }
  /// The model's name of a tensor.
  std::string of(safetensors_entry const& e) const {
    for (auto const& [name, entry] : entries_)
      if (entry == &e) return name;
    return e.name;
  }
  /// ": the names in the file begin with "module.", which load_options::strip_prefix takes away", where that would make
  /// one of the missing names, and likewise the other way round.
  std::string advice(std::vector<std::string> const& missing) const {
    for (auto const& wanted : missing)
      for (auto const& [name, e] : entries_) {
        if (name.size() > wanted.size() + 1 && name.ends_with("." + wanted))
          return "; the names in the file begin with " + in_quotes(name.substr(0, name.size() - wanted.size())) +
                 ": load_options{.strip_prefix = ...} takes that away";
        if (wanted.size() > name.size() + 1 && wanted.ends_with("." + name))
          return "; the names in the model begin with " + in_quotes(wanted.substr(0, wanted.size() - name.size())) +
                 ": load_options{.add_prefix = ...} puts that before the file's";
      }
    return {};
  }

 private:
  std::map<std::string, safetensors_entry const*> entries_;
  std::set<safetensors_entry const*> passed_;
};

/// Which of a file's tensors goes where.
struct load_plan {
  std::vector<std::pair<std::size_t, safetensors_entry const*>> moves;  // row of the targets, tensor of the file
  load_report report;
};

/// Compares a file's names and types with the targets'; passed over is what begins with `passed_over`, if that is
/// something, and what is in `dropped`. One message names all that does not fit.
inline status plan_load(safetensors_file const& file, file_names const& known, std::vector<load_target> const& targets,
                        load_options const& options, std::string_view passed_over, load_plan& p,
                        std::set<std::string> const& dropped = {}) {
  p.report.metadata = file.header().metadata;
  name_list missing("missing"), extra("not in the model"), other("of another type");
  auto const& all = file.header().tensors;
  std::vector<char> used(all.size());
  bool casts = false;                                     // would help
  std::vector<std::pair<std::string, std::string>> tied;  // a name that was not needed, the one that was
  for (std::size_t i = 0; i < targets.size(); ++i) {
    auto const& [names, holder, may_be_missing] = targets[i];
    safetensors_entry const* e = nullptr;
    for (auto const& name : names)
      if (auto const* found = known.find(name)) {
        if (e) tied.emplace_back(found->name, e->name);
        else e = found;
      }
    if (!e) {
      if (!may_be_missing) missing.add(names.front(), " " + to_string(holder.type()));
      p.report.missing.push_back(names.front());
      continue;
    }
    used[static_cast<std::size_t>(e - all.data())] = 1;
    auto const type = holder.type();
    bool const are_floating = e->element.type && is_floating(*e->element.type) && is_floating(type.element);
    bool const may_cast = options.cast && are_floating, wants_cast = are_floating && e->has_shape(type.dims);
    if (e->has_shape(type.dims) && (e->element.type == type.element || may_cast)) p.moves.emplace_back(i, e);
    else {
      other.add(e->name, " is " + to_string(*e) + " in the file, " + to_string(type) + " in the model");
      casts |= wants_cast;
    }
  }
  for (auto const& e : all) {
    if (used[static_cast<std::size_t>(&e - all.data())]) continue;
    if (known.is_passed(e) || dropped.contains(e.name) || (!passed_over.empty() && e.name.starts_with(passed_over)))
      continue;
    std::string what = " " + to_string(e);
    if (auto const here = known.of(e); here != e.name) what += ", " + in_quotes(here) + " here";
    for (auto const& [name, first] : tied)
      if (name == e.name) what += ", which is tied to " + in_quotes(first) + " here";
    extra.add(e.name, what);
    p.report.extra.push_back(e.name);
  }
  std::string wrong;
  if (!options.allow_missing) missing.append_to(wrong);
  if (!options.allow_extra) extra.append_to(wrong);
  other.append_to(wrong);
  if (casts) wrong += "; load_options{.cast = true} casts";
  if (!wrong.empty()) {
    if (!options.allow_missing) wrong += known.advice(p.report.missing);
    return file.refuse("does not fit the model: " + wrong);
  }
  for (auto const& [row, e] : p.moves)
    if (auto s = check_elements(file, *e); !s) return s;
  return {};
}

/// Reads what was planned into the targets' own memory. Only a disk that fails here leaves a part of them loaded, and
/// then the message says so.
inline status run_load(safetensors_file const& file, std::vector<load_target> const& targets, load_plan const& p) {
  std::vector<std::shared_ptr<tensor_storage>> fresh;  // without data so far
  auto const give_back = [&](std::size_t from) {
    for (std::size_t i = from; i < fresh.size(); ++i) fresh[i]->restart(initialiser(fresh[i]->first_values()));
  };
  try {  // memory for all comes first
    for (auto const& [row, e] : p.moves) {
      auto const& s = targets[row].holder.storage();
      if (s->is_allocated()) continue;
      (void)s->data_to_overwrite();
      fresh.push_back(s);
    }
  } catch (error const& why) {
    give_back(0);
    return file.refuse(why.what());
  }
  std::size_t loaded = 0, filled = 0;
  for (auto const& [row, e] : p.moves) {
    auto& s = *targets[row].holder.storage();
    auto const to = s.type().element;
    status done;
    if (e->element.type == to) {
      done = file.read(*e, s.data());
    } else {
      auto const from = *e->element.type;
      auto* at = s.data();
      done = file.read_in_parts(*e, [&](std::span<std::byte const> part) {
        auto const n = part.size() / static_cast<std::size_t>(size_of(from));
        cast_elements(part.data(), from, at, to, n);
        at += n * static_cast<std::size_t>(size_of(to));
        return true;
      });
    }
    s.written();
    s.set_training(nullptr, false);
    if (!done) {
      give_back(filled);
      return failure{done.message() + "; " + std::to_string(loaded) + " of " + std::to_string(p.moves.size()) +
                     " tensors were loaded before it"};
    }
    ++loaded;
    if (filled < fresh.size() && fresh[filled].get() == &s) ++filled;
  }
  return {};
}

}  // namespace detail

/// Writes a model's weights and buffers, and texts of your own beside them ({{"epoch", "3"}}). The old file stands until
/// the new one is whole; nothing in the model changes, and what was never touched takes no memory.
template <class Model>
[[nodiscard]] status save(Model& model, std::string const& path, safetensors_metadata const& metadata = {}) {
  std::vector<named_tensor> all;
  for (auto& t : detail::load_targets(detail::model_ref(model)))
    all.push_back({std::move(t.names.front()), std::move(t.holder)});
  return write_safetensors(path, std::move(all), metadata);
}

/// Reads a model's weights and buffers into their own memory, so that trainers bound to it go on with them. Names and
/// types must be the model's: the error names what is missing, extra or of another type, and then nothing has changed. A
/// training file is read too; its optimizer states are ignored.
template <class Model>
[[nodiscard]] result<load_report> load(Model& model, std::string const& path, load_options const& options = {}) {
  auto const file = safetensors_file::open(path);
  if (!file) return failure{file.message()};
  auto targets = detail::load_targets(detail::model_ref(model));
  detail::load_plan p;
  auto const names = detail::file_names::of(*file, options);
  if (!names) return failure{names.message()};
  auto done = detail::plan_load(*file, *names, targets, options, detail::training_prefix, p);
  if (done) done = detail::run_load(*file, targets, p);
  if (!done) return failure{done.message()};
  return std::move(p.report);
}

}}  // namespace neap::v0
