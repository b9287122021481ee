// The bodies of <neap/blocks/chain_solver.hpp>.
#pragma once

#include <neap/blocks/chain_solver.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC void chain_solver::swap_at(double part) {
  if (part == price_.part) return;
  price_.part = part;
  solve();
}

NEAP_FUNC std::size_t chain_solver::max_values() const {
  std::size_t most = 0;
  for (auto const& m : models_) most = std::max(most, m.posed.block.problem.values.size());
  return most;
}

NEAP_FUNC plain_vector<bool> chain_solver::staying() const {
  plain_vector<bool> stays(g_.storage_count(), false);
  for (auto v : g_.kept()) stays[index(g_.storage(v))] = true;
  for (auto o : chain_.epilogue)
    for (auto v : g_.inputs(o)) stays[index(g_.storage(v))] = true;
  return stays;
}

NEAP_FUNC bytes_t chain_solver::left_by(std::uint32_t k, plain_vector<bool> const& stays) const {
  bytes_t bytes = 0;
  for (auto const& o : rows_[k].facts.ops)
    for (auto d : o.makes)
      if (auto const& x = rows_[k].facts.data[d]; o.part != step_part::forward && stays[index(x.storage)])
        bytes += x.bytes;
  return bytes;
}

NEAP_FUNC void chain_solver::note_reach() {
  held_.assign(g_.storage_count(), false);
  for (auto s : g_.storages()) held_[index(s)] = !droppable_[index(s)];
  for (auto v : g_.values()) {
    auto const s = g_.storage(v);
    auto const maker = g_.producer(g_.record(s).first);
    if (maker == nothing<op_id> || chain_.part[maker] != step_part::forward) continue;
    auto const of = chain_.block_of[maker];
    for (auto const& u : g_.uses(v)) {
      auto const at = chain_.block_of[u.op];
      if (at != of && at != of + 1) held_[index(s)] = true;
    }
  }
}

NEAP_FUNC void chain_solver::solve() {
  for (std::uint32_t k = 0; k < rows_.size(); ++k) {
    auto const& prices = model(k).prices;
    auto& options = profile_.blocks[k].options;
    options = detail::options_at(prices, price_, [&](auto i) { return prices[i].option; });
    if (price_.lets_move()) std::reverse(options.begin(), options.end());
  }
  bytes_t all = profile_.output;
  for (auto const& b : profile_.blocks) {
    bytes_t most = 0;
    for (auto const& o : b.options)
      most = std::max(most, o.saved + std::max(o.forward_temporary, o.backward_temporary));
    all += most + b.left;
  }
  auto const n = static_cast<slots_t>(profile_.size());
  auto const slots = std::min(options_.slots, std::max(options_.least_slots, options_.max_cells / (n * n)));
  slot_ = std::max<bytes_t>(1, all / std::max<slots_t>(slots, 1));
  // What is left grows from block to block: rounded as a sum, not each for itself.
  auto in_whole = profile_;
  bytes_t left = 0, whole = 0;
  for (std::size_t k = in_whole.size(); k-- > 0;) {
    left += in_whole.blocks[k].left;
    auto const now = left / slot_ + (left % slot_ != 0);
    in_whole.blocks[k].left = (now - whole) * slot_;
    whole = now;
  }
  auto solved = rotor::solve(in_slots(in_whole, slot_), all / slot_ + static_cast<slots_t>(profile_.size()),
                             {.max_table_bytes = options_.max_table_bytes});
  rotor_.reset(), front_.clear();
  if (!solved) return;
  rotor_ = std::make_unique<rotor>(std::move(*solved));
  front_ = rotor_->front();
  if (front_.empty()) rotor_.reset();
}

}}  // namespace neap::v0
