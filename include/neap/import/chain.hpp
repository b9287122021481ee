// A chain of blocks with options, in the JSON form that follows Rockmate's RK_Chain: `ln` blocks and the loss behind them,
// sizes in slots, times in a unit of one's own. Members that the solver does not need (name, description, what others
// answered) may be there.
//
//   ln                        number of blocks
//   nb_sol[i]                 options of block i, i = 0..ln; the loss, entry ln, has one
//   cw[i]                     size of x_i, i = 0..ln, and 0
//   ff_fw[i], ff_fwd_tmp[i]   time and temporary memory of the forward that saves nothing
//   fw[i][k], bw[i][k]        times of forward and backward with option k
//   fwd_tmp[i][k], bwd_tmp[i][k]   their temporary memory
//   cbw[i+1][k]               what the forward saves, output included (not that of the last block); cbw[0] is empty
#pragma once

#include <neap/core/error.hpp>
#include <neap/import/json.hpp>
#include <neap/plan/chain_profile.hpp>

#include <string>

namespace neap { inline namespace v0 { namespace io {

struct imported_chain {
  chain_profile profile;
  std::string name;  // as the file has it, or empty
};

namespace detail {

imported_chain read_chain(json_place const& root);

}  // namespace detail

/// A chain from the text of a file. Fails with one line that says what is wrong and where; `path` is what the file is
/// called there.
result<imported_chain> parse_chain(std::string const& text, std::string const& path);

/// Reads a chain file, gzip or not.
result<imported_chain> read_chain(std::string const& path);

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/chain.ipp>
#endif
