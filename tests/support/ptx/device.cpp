#include "device.hpp"

#include "assembler.hpp"
#include "scheduler.hpp"

namespace neap::testing::ptx {

std::shared_ptr<kernel_code const> link(module const& m, std::string_view kernel) {
  function_text const& f = m.kernel(kernel);
  if (auto const it = m.linked.find(f.name); it != m.linked.end()) return it->second;
  detail::assembler a{m};
  a.sink = a.new_row();
  a.k.carry_row = a.new_row();
  a.k.name = f.name;
  a.decode_function(f.name, f.line);
  for (auto const& name : a.order) {
    auto& d = a.done.at(name);
    d.base = static_cast<int>(a.k.code.size());
    for (auto i : d.code) {
      if (i.kind == flow::branch) i.target += d.base;
      if (i.kind == flow::call) i.target = a.done.at(a.callees[static_cast<std::size_t>(i.target)]).base;
      a.k.code.push_back(i);
    }
    for (int const t : a.table_numbers[name])
      for (int& target : a.k.tables[static_cast<std::size_t>(t)]) target += d.base;
  }
  auto const& d = a.done.at(f.name);
  a.k.entry = d.base;
  a.k.parameters = d.parameters;
  a.k.shared_end = a.aligned(a.packed_shared, std::max(16u, a.k.dynamic_align)) +
                   256 * static_cast<std::uint32_t>(a.k.shared.size());
  for (auto const r : a.k.rows_of_dynamic_shared) a.k.row_values[r] += a.k.shared_end;
  auto out = std::make_shared<kernel_code const>(std::move(a.k));
  m.linked[f.name] = out;
  return out;
}

report device::launch_bytes(module const& m, std::string_view name, dim3 grid, dim3 block, std::uint32_t dynamic_shared,
                            std::vector<std::vector<std::uint8_t>> const& values) {
  kernel_code const& code = bound(m, name);
  if (values.size() != code.parameters.size())
    throw error(code.name + " has " + std::to_string(code.parameters.size()) + " parameters, not " +
                std::to_string(values.size()));
  if (block.count() == 0 || block.count() > 1024)
    throw error("a block of " + std::to_string(block.count()) + " threads");
  std::vector<std::uint8_t> arguments;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const& p = code.parameters[i];
    if (values[i].size() != p.bytes)
      throw error(code.name + ": parameter " + std::to_string(i) + " has " + std::to_string(p.bytes) + " bytes, not " +
                  std::to_string(values[i].size()));
    arguments.resize(std::max<std::size_t>(arguments.size(), p.offset + p.bytes));
    std::ranges::copy(values[i], arguments.begin() + p.offset);
  }
  if (time_ > 3'000'000'000) forget_accesses();

  report out;
  machine s;
  s.code = &code;
  s.regions = &regions_;
  s.out = &out;
  s.options = options;
  s.grid = grid;
  s.block_size = block;
  s.dynamic_shared = dynamic_shared;
  s.threads_of_block = static_cast<std::uint32_t>(block.count());
  s.warps_of_block = (s.threads_of_block + warp_size - 1) / warp_size;
  s.time = s.start_time = time_;
  s.random.seed(options.seed);
  s.shared_variables = code.shared;
  if (!code.rows_of_dynamic_shared.empty())
    s.shared_variables.push_back({"dynamic", code.shared_end, dynamic_shared, 16});
  for (auto const& v : s.shared_variables) s.shared_names.push_back("shared variable '" + v.name + "'");
  if (s.shared_variables.size() > 250) throw error(code.name + " has too many shared variables");
  scheduler run{s, code, arguments, options.instructions ? options.instructions : std::uint64_t{1} << 31};
  run.run_grid();
  time_ = s.time;
  collect_accesses(s.start_time);
  return out;
}
kernel_code const& device::bound(module const& m, std::string_view name) {
  auto const linked = link(m, name);
  auto& known = bound_[linked.get()];
  if (known.first) return *known.second;
  auto code = std::make_unique<kernel_code>(*linked);
  for (auto const& [row, place] : code->rows_of_globals)
    code->row_values[row] = variable_of(m, place.first).address() + static_cast<std::uint64_t>(place.second);
  known = {linked, std::move(code)};
  return *known.second;
}

ptx::buffer device::variable_of(module const& m, std::string const& name) {
  auto const key = std::pair{m.text.get(), name};
  if (auto const it = variables_.find(key); it != variables_.end()) return it->second;
  for (auto const& v : m.variables) {
    if (v.d.name != name || v.where == space::shared) continue;
    auto const b = add((v.where == space::constant ? "constant '" : "variable '") + name + "'", v.d.bytes, true);
    variables_[key] = b;
    modules_.push_back(m.text);
    auto& r = regions_[b.index];
    r.constant = v.where == space::constant;
    std::ranges::fill(r.bytes, std::uint8_t{0});
    std::ranges::copy(v.initial, r.bytes.begin());
    for (auto const& [at, other] : v.addresses) {
      std::uint64_t const a = variable_of(m, other).address();
      std::memcpy(regions_[b.index].bytes.data() + at, &a, sizeof a);
    }
    return b;
  }
  throw error("the module has no variable '" + name + "'");
}

// The shadow has the time of each byte's last accesses: those after `start` are the launch's.
void device::collect_accesses(std::uint32_t start) {
  accessed_ = {};
  auto const extend = [](std::vector<access_range>& list, std::uint64_t at) {
    if (list.empty() || list.back().end != at) list.push_back({at, at});
    ++list.back().end;
  };
  for (std::size_t index = 0; index < regions_.size(); ++index) {
    region& r = regions_[index];
    for (std::size_t p = 0; p < r.touched.size(); ++p) {
      if (!r.touched[p]) continue;
      r.touched[p] = 0;
      std::size_t const end = std::min(r.bytes.size(), (p + 1) * region::page);
      for (std::size_t k = p * region::page; k < end; ++k) {
        shadow_cell const& c = r.shadow[k];
        if (c.write.time > start) extend(accessed_.writes, address_of_region(index) + k);
        else if (std::max(c.reads[0].time, c.reads[1].time) > start)
          extend(accessed_.reads, address_of_region(index) + k);
      }
    }
  }
}
void device::forget_accesses() {
  for (region& r : regions_) r.shadow = zeros<shadow_cell>(r.bytes.size());
  time_ = 0;
}

}  // namespace neap::testing::ptx
