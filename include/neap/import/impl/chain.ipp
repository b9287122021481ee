// The bodies of <neap/import/chain.hpp>.
#pragma once

#include <neap/import/chain.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/import/file.hpp>
#include <neap/import/file_kind.hpp>

#include <exception>

namespace neap { inline namespace v0 { namespace io {

namespace detail {

NEAP_FUNC imported_chain read_chain(json_place const& root) {
  // No file that read_file takes has room for more.
  auto const n = static_cast<std::size_t>(root["ln"].integer(1, 10'000'000));
  auto const rows = [](json_place const& list, std::size_t count) {
    if (list.size() != count) list.fail("must have " + std::to_string(count) + " rows");
    return list;
  };
  auto const size = [](json_place const& j) { return j.integer(0, max_slots); };
  auto const time = [](json_place const& j) {
    auto const t = j.number(0);
    if (t > max_block_time) j.fail("must be at most 1e30");
    return t;
  };
  auto const options = rows(root["nb_sol"], n + 1);
  auto const inputs = rows(root["cw"], n + 2), pass_times = rows(root["ff_fw"], n + 1),
             pass_temporary = rows(root["ff_fwd_tmp"], n + 1), forwards = rows(root["fw"], n + 1),
             backwards = rows(root["bw"], n + 1), forward_temporary = rows(root["fwd_tmp"], n + 1),
             backward_temporary = rows(root["bwd_tmp"], n + 1), saved = rows(root["cbw"], n + 2);
  (void)rows(saved[0], 0);
  imported_chain out;
  for (std::size_t i = 0; i <= n; ++i) {
    chain_block b;
    b.input = size(inputs[i]);
    b.pass_time = time(pass_times[i]);
    b.pass_temporary = size(pass_temporary[i]);
    auto const count = static_cast<std::size_t>(options[i].integer(1, 1'000'000));
    auto const f = rows(forwards[i], count), g = rows(backwards[i], count), ft = rows(forward_temporary[i], count),
               gt = rows(backward_temporary[i], count), s = rows(saved[i + 1], count);
    for (std::size_t k = 0; k < count; ++k)
      b.options.push_back({time(f[k]), time(g[k]), size(s[k]), size(ft[k]), size(gt[k])});
    if (i < n) {
      out.profile.blocks.push_back(std::move(b));
      continue;
    }
    out.profile.output = b.input;
    b.input = 0;
    if (b != chain_block{.options = {{}}}) root.fail("entry " + std::to_string(n) + ", the loss, must cost nothing");
  }
  inputs[n + 1].require(size(inputs[n + 1]) == 0, "must be 0: nothing follows the loss");
  out.name = root.text_or("name", "");
  return out;
}

}  // namespace detail

NEAP_FUNC result<imported_chain> parse_chain(std::string const& text, std::string const& path) {
  auto document = parse_document(text, path, wanted_file::chain);
  if (!document) return failure{document.message()};
  if (!document->contains("ln") && document_kind(*document) != "a JSON object of no known kind")
    return failure{path + ": " + document_kind(*document) + "; " + std::string(wanted_file::chain)};
  try {
    auto chain = detail::read_chain({*document, path});
    if (auto const good = check(chain.profile); !good) return failure{path + ": " + good.message()};
    return chain;
  } catch (std::exception const& e) { return refusal(path, e); }
}

NEAP_FUNC result<imported_chain> read_chain(std::string const& path) {
  auto text = read_file(path);
  if (!text) return failure{text.message()};
  return parse_chain(*text, path);
}

}}}  // namespace neap::v0::io
