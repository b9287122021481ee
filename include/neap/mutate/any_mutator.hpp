// any_mutator: a pipeline chosen at run time (a command line's --moves), erased. One virtual call and one allocation a
// mutation; everywhere else the type is known.
#pragma once

#include <neap/mutate/mutator.hpp>

#include <memory>

namespace neap { inline namespace v0 {

/// Any mutation, erased; equal only to itself.
class any_mutation {
 public:
  any_mutation() = default;
  template <class M>
    requires(!std::same_as<std::remove_cvref_t<M>, any_mutation>)
  explicit any_mutation(M m) : it_(std::make_shared<model<M>>(std::move(m))) {}
  std::optional<edited> apply(candidate const& c) const { return it_ ? it_->apply(c) : std::nullopt; }
  std::string describe(candidate const& c) const { return it_ ? it_->describe(c) : std::string("nothing"); }
  edit_answer edit_of(candidate const& c, replay_facts const& facts, graph_edit& out) const {
    return it_ ? it_->edit_of(c, facts, out) : edit_answer::impossible;
  }
  friend bool operator==(any_mutation const&, any_mutation const&) = default;

 private:
  struct base {
    virtual ~base() = default;
    virtual std::optional<edited> apply(candidate const&) const = 0;
    virtual std::string describe(candidate const&) const = 0;
    virtual edit_answer edit_of(candidate const&, replay_facts const&, graph_edit&) const = 0;
  };
  template <class M>
  struct model final : base {
    explicit model(M x) : m(std::move(x)) {}
    std::optional<edited> apply(candidate const& c) const override { return neap::apply_mutation(m, c); }
    std::string describe(candidate const& c) const override { return neap::describe(m, c); }
    edit_answer edit_of(candidate const& c, replay_facts const& facts, graph_edit& out) const override {
      return neap::edit_of(m, c, facts, out);
    }
    M m;
  };
  std::shared_ptr<base const> it_;
};

class any_mutator {
  struct stream_base {
    virtual ~stream_base() = default;
    virtual std::optional<any_mutation> next() = 0;
  };
  template <class S>
  struct stream_model final : stream_base {
    explicit stream_model(S x) : s(std::move(x)) {}
    std::optional<any_mutation> next() override {
      auto m = s.next();
      if (!m) return std::nullopt;
      return any_mutation(*std::move(m));
    }
    S s;
  };

 public:
  class stream {
   public:
    explicit stream(std::unique_ptr<stream_base> s) : s_(std::move(s)) {}
    std::optional<any_mutation> next() { return s_->next(); }

   private:
    std::unique_ptr<stream_base> s_;
  };

  template <class M>
    requires(!std::same_as<std::remove_cvref_t<M>, any_mutator>)
  any_mutator(M m) : make_(erased(std::move(m))) {}
  stream operator()(candidate const& c) const { return stream(make_->streams(c)); }
  permissions allows() const { return make_->allows(); }

 private:
  struct base {
    virtual ~base() = default;
    virtual std::unique_ptr<stream_base> streams(candidate const&) const = 0;
    virtual permissions allows() const = 0;
  };
  template <class M>
  struct model final : base {
    explicit model(M x) : m(std::move(x)) {}
    std::unique_ptr<stream_base> streams(candidate const& c) const override {
      return std::make_unique<stream_model<stream_of<M>>>(m(c));
    }
    permissions allows() const override { return allowed_by(m); }
    M m;
  };
  template <class M>
  static std::shared_ptr<base const> erased(M m);
  std::shared_ptr<base const> make_;
};

// Apart from the class, so that a program may have it once for a pipeline (optimize/planned_once.hpp).
template <class M>
auto any_mutator::erased(M m) -> std::shared_ptr<base const> {
  detail::check_leaf<M>();
  return std::make_shared<model<M>>(std::move(m));
}

}}  // namespace neap::v0
