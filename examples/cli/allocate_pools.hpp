// neap allocate --pool and --largest-piece: records in several memories, or in one that comes in pieces.
#pragma once

#include "common.hpp"

#include <neap/core/readable.hpp>
#include <neap/memory/bounds.hpp>
#include <neap/memory/check/check.hpp>
#include <neap/memory/csv.hpp>
#include <neap/memory/forms/pools.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cli {

/// What the command line says of the memories; nothing: one memory in one piece, which is not the business of this header.
struct pool_options {
  std::vector<std::string> pools;  // NAME[=CAPACITY[@BYTES_PER_SECOND]]
  std::string largest_piece;

  bool any() const { return !pools.empty() || !largest_piece.empty(); }
  void add_to(CLI::App& command) {
    command.add_option(
        "--pool", pools,
        "NAME[=CAPACITY[@BYTES_PER_SECOND]], once for each memory: records go into the fastest that has "
        "room, or into the one that the CSV's column pool names; without rates the first is the fastest");
    command.add_option(
        "--largest-piece", largest_piece,
        "bytes of one allocation at most: a memory becomes several pieces, a record lies in one of them");
  }
};

struct named_pool {
  std::string name;
  neap::memory_pool pool;
};

inline std::vector<named_pool> named_pools(pool_options const& o, std::string const& capacity) {
  std::vector<named_pool> all;
  std::int64_t piece = INT64_MAX;
  if (!o.largest_piece.empty()) {
    piece = parse_bytes("--largest-piece", o.largest_piece);
    if (piece < 1) throw refused{"--largest-piece: must be at least one byte"};
  }
  std::size_t rates = 0;
  for (auto const& text : o.pools) {
    auto const equals = text.find('='), at = text.find('@', std::min(equals, text.size()));
    named_pool p{text.substr(0, std::min(equals, text.find('@'))), {}};
    if (p.name.empty() || p.name.find_first_of(", \t\n\"") != p.name.npos)
      throw refused{"--pool: \"" + text + "\" is not NAME[=CAPACITY[@BYTES_PER_SECOND]], with a name without blanks"};
    if (equals == text.npos && text.find('@') != text.npos)
      throw refused{"--pool: \"" + text + "\" has a rate and no capacity: NAME=CAPACITY@BYTES_PER_SECOND"};
    if (equals != text.npos)
      p.pool.capacity =
          parse_bytes("--pool " + p.name, text.substr(equals + 1, at == text.npos ? at : at - equals - 1));
    if (at != text.npos) {
      auto rate = text.substr(at + 1);
      if (rate.ends_with("/s")) rate.resize(rate.size() - 2);
      p.pool.bytes_per_second = static_cast<double>(parse_bytes("--pool " + p.name, rate));
      if (p.pool.bytes_per_second <= 0) throw refused{"--pool " + p.name + ": its rate must be above 0"};
      ++rates;
    }
    for (auto const& other : all)
      if (other.name == p.name) throw refused{"--pool: two pools have the name \"" + p.name + "\""};
    all.push_back(std::move(p));
  }
  if (rates != 0 && rates != all.size()) throw refused{"--pool: either all pools have a rate, or none"};
  if (!all.empty() && !capacity.empty()) throw refused{"--capacity: with --pool each pool has its own: NAME=CAPACITY"};
  if (all.empty()) {
    all.push_back({"memory", {}});
    if (!capacity.empty()) all[0].pool.capacity = parse_bytes("--capacity", capacity);
  }
  if (all.size() > 64) throw refused{"--pool: at most 64 pools"};
  for (std::size_t j = 0; j < all.size(); ++j) {
    all[j].pool.largest_piece = piece;
    if (rates == 0) all[j].pool.bytes_per_second = std::ldexp(1.0, -static_cast<int>(j));
  }
  return all;
}

/// The records' pools in the order of the command line's.
inline void use_names(neap::allocation_file& file, std::vector<named_pool> const& pools, std::string const& path) {
  for (std::size_t i = 0; i < file.records.size(); ++i) {
    auto& pool = file.records[i].pool;
    if (pool < 0) continue;
    auto const& name = file.pools[static_cast<std::size_t>(pool)];
    auto const known = std::ranges::find(pools, name, &named_pool::name);
    if (known == pools.end())
      throw refused{path + ": " + record_name(file, i) + " asks for the pool '" + name.substr(0, 80) +
                    "', which --pool does not name"};
    pool = static_cast<std::int32_t>(known - pools.begin());
  }
  file.pools.clear();
  for (auto const& p : pools) file.pools.push_back(p.name);
}

/// Every pool's pieces hold what lies in them: by a check that knows no pools.
inline void check_pieces(neap::allocation_file const& file, std::vector<named_pool> const& pools,
                         neap::pooled_plan const& plan) {
  for (std::size_t j = 0; j < pools.size(); ++j)
    for (std::size_t k = 0; k < plan.piece_bytes[j].size(); ++k) {
      std::vector<neap::usage_record> in;
      neap::memory_plan part;
      for (std::size_t i = 0; i < file.records.size(); ++i)
        if (plan.pool_of[i] == static_cast<std::int32_t>(j) && plan.piece_of[i] == static_cast<std::int32_t>(k))
          in.push_back(file.records[i]), part.offsets.push_back(plan.offsets[i]);
      part.arena_bytes = plan.piece_bytes[j][k];
      or_refuse(neap::verify(in, part));
      if (part.arena_bytes > pools[j].pool.largest_piece) throw refused{"internal: a piece is too large"};
    }
  for (std::size_t j = 0; j < pools.size(); ++j)
    if (plan.arena_bytes[j] > pools[j].pool.capacity) throw refused{"internal: a pool is too full"};
}

/// The problem with pool, piece and offset of each record, as CSV.
inline std::string pooled_csv(neap::allocation_file file, neap::pooled_plan const& plan, bool in_pieces) {
  for (std::size_t i = 0; i < file.records.size(); ++i) file.records[i].pool = plan.pool_of[i];
  file.pieces.clear();
  if (in_pieces) file.pieces = plan.piece_of;
  neap::memory_plan offsets;
  offsets.offsets = plan.offsets;
  return write_minimalloc_csv(file, &offsets);
}

/// Plans, writes and prints; the exit code.
inline int allocate_in_pools(neap::allocation_file file, std::vector<named_pool> const& pools, std::string const& path,
                             std::string const& out, bool json, neap::bytes_t resident_bytes) {
  use_names(file, pools, path);
  std::vector<neap::memory_pool> plain;
  for (auto const& p : pools) plain.push_back(p.pool);
  auto const begin = std::chrono::steady_clock::now();
  auto const plan = neap::plan_pools(file.records, plain, 12, file.pieces);
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  bool const placed = has_offsets(plan.status), optimal = plan.status == neap::plan_status::optimal;
  bool const in_pieces = plain[0].largest_piece != INT64_MAX;
  if (placed) {
    check_pieces(file, pools, plan);
    if (!out.empty()) or_refuse(neap::write_file(out, pooled_csv(file, plan, in_pieces)));
  }
  auto const load = neap::load_lower_bound(neap::memory_problem(file.records)).bytes;
  neap::bytes_t total = 0;
  for (auto const bytes : plan.arena_bytes) total += bytes;
  auto const records_in = [&](std::size_t j) { return std::ranges::count(plan.pool_of, static_cast<std::int32_t>(j)); };
  if (json) {
    nlohmann::ordered_json j;
    j["name"] = path;
    j["records"] = file.records.size();
    if (resident_bytes > 0) j["resident_bytes"] = resident_bytes;
    if (placed) j["arena_bytes"] = total;
    else j["arena_bytes"] = nullptr;
    j["lower_bound_bytes"] = load;
    j["optimal"] = optimal;
    j["fits"] = placed;
    j["status"] = optimal                                          ? "optimal"
                  : placed                                         ? "feasible"
                  : plan.status == neap::plan_status::budget_spent ? "budget spent"
                                                                   : "infeasible";
    j["pools"] = nlohmann::ordered_json::array();
    for (std::size_t k = 0; k < pools.size(); ++k) {
      nlohmann::ordered_json one{{"name", pools[k].name}};
      if (pools[k].pool.capacity == INT64_MAX) one["capacity_bytes"] = nullptr;
      else one["capacity_bytes"] = pools[k].pool.capacity;
      if (placed) {
        one["arena_bytes"] = plan.arena_bytes[k];
        one["records"] = records_in(k);
        one["piece_bytes"] = plan.piece_bytes[k];
      }
      j["pools"].push_back(std::move(one));
    }
    j["work"] = plan.work;
    j["seconds"] = seconds;
    print_json(j);
  } else if (placed) {
    std::printf("%s: %s in %s, %s, %lld bytes in all, %.3f s\n", printable(path).c_str(),
                neap::detail::counted(file.records.size(), "record").c_str(),
                neap::detail::counted(pools.size(), "pool").c_str(), optimal ? "proved optimal" : "not proved optimal",
                static_cast<long long>(total), seconds);
    for (std::size_t k = 0; k < pools.size(); ++k) {
      std::printf("  %-12s %14lld bytes, %s", pools[k].name.c_str(), static_cast<long long>(plan.arena_bytes[k]),
                  neap::detail::counted(static_cast<std::size_t>(records_in(k)), "record").c_str());
      if (pools[k].pool.capacity != INT64_MAX)
        std::printf(", capacity %lld", static_cast<long long>(pools[k].pool.capacity));
      if (in_pieces) std::printf(", %s", neap::detail::counted(plan.piece_bytes[k].size(), "piece").c_str());
      std::printf("\n");
    }
  }
  if (!placed) complain(path + ": no plan fits: " + message_of(plan.why, file));
  return placed ? fine : no_plan_fits;
}

}  // namespace cli
