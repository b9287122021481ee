// Files of tensors in the safetensors format (core/safetensors_header.hpp): written and read one tensor after another, so
// that a file may be larger than what memory is left.
//
//   write_safetensors("table.safetensors", {{"left", a}, {"right", b}}).value();
//   auto const tensors = read_safetensors("table.safetensors").value();   // named_tensors
#pragma once

#include <neap/core/file_writer.hpp>
#include <neap/core/safetensors_header.hpp>
#include <neap/model/parameters.hpp>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace neap { inline namespace v0 {

static_assert(std::endian::native == std::endian::little, "neap: safetensors are read and written as memory has them");

/// An open file whose header was read and found right.
class safetensors_file {
 public:
  static result<safetensors_file> open(std::string path) {
    safetensors_file f;
    f.path_ = std::move(path);
    struct ::stat is {};
    bool const is_there = ::stat(f.path_.c_str(), &is) == 0;
    // A pipe without a writer must not be waited for.
    if (is_there && S_ISREG(is.st_mode)) f.file_ = std::fopen(f.path_.c_str(), "rbe");
    if (!is_there || (S_ISREG(is.st_mode) && (!f.file_ || ::fstat(::fileno(f.file_), &is) != 0)))
      return detail::file_failure(f.path_, "cannot be read", errno);
    if (!S_ISREG(is.st_mode))
      return failure{f.path_ + ": cannot be read: it is " + (S_ISDIR(is.st_mode) ? "a folder" : "no regular file")};
    auto const size = static_cast<std::uint64_t>(is.st_size);
    unsigned char length[8];
    if (size < 8) return f.refuse("no safetensors file: it has " + std::to_string(size) + " bytes");
    if (auto s = f.read_at(0, length, 8); !s) return failure{s.message()};
    std::uint64_t n = 0;
    for (int i = 7; i >= 0; --i) n = n << 8 | length[i];
    if (n > max_header_bytes)
      return f.refuse("no safetensors file: its header would have " + std::to_string(n) + " bytes");
    if (n > size - 8)
      return f.refuse("the header has " + std::to_string(n) + " bytes, the file " + std::to_string(size) +
                      ": it is cut off, or no safetensors file");
    std::string json(static_cast<std::size_t>(n), '\0');
    if (auto s = f.read_at(8, json.data(), json.size()); !s) return failure{s.message()};
    auto parsed = parse_safetensors_header(json, size - 8 - n);
    if (!parsed) return f.refuse(parsed.message());
    f.header_ = std::move(parsed).value();
    f.data_ = 8 + n;
    return f;
  }
  safetensors_file(safetensors_file&& f) noexcept
      : path_(std::move(f.path_)),
        header_(std::move(f.header_)),
        data_(f.data_),
        file_(std::exchange(f.file_, nullptr)) {}
  safetensors_file& operator=(safetensors_file&&) = delete;
  ~safetensors_file() {
    if (file_) std::fclose(file_);
  }

  std::string const& path() const { return path_; }
  safetensors_header const& header() const { return header_; }
  /// Bytes [first, first + bytes) of one of the header's tensors.
  status read(safetensors_entry const& e, std::uint64_t first, void* to, std::size_t bytes) const {
    auto done = read_at(data_ + e.begin + first, to, bytes);
    return done ? done : failure{done.message() + ", in tensor " + detail::in_quotes(e.name)};
  }
  status read(safetensors_entry const& e, void* to) const {
    return read(e, 0, to, static_cast<std::size_t>(e.bytes()));
  }
  /// f(bytes of a part of the tensor's elements): the parts one after another, until f says false.
  template <class F>
  status read_in_parts(safetensors_entry const& e, F f) const {
    byte_block const part(std::size_t{1} << 16, 64);
    for (std::uint64_t at = 0; at < e.bytes(); at += part.bytes()) {
      auto const n = static_cast<std::size_t>(std::min<std::uint64_t>(part.bytes(), e.bytes() - at));
      if (auto s = read(e, at, part.data(), n); !s) return s;
      if (!f(std::span<std::byte const>(part.data(), n))) break;
    }
    return {};
  }
  failure refuse(std::string const& what) const { return {path_ + ": " + what}; }

 private:
  safetensors_file() = default;

  status read_at(std::uint64_t at, void* to, std::size_t bytes) const {
    auto* p = static_cast<char*>(to);
    while (bytes > 0) {
      auto const n = ::pread(::fileno(file_), p, bytes, static_cast<::off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return detail::file_failure(path_, "cannot be read", errno);
      if (n == 0) return refuse("ends at byte " + std::to_string(at) + ", and was longer when it was opened");
      p += n, at += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
    }
    return {};
  }

  std::string path_;
  safetensors_header header_;
  std::uint64_t data_ = 0;  // where the data begin
  std::FILE* file_ = nullptr;
};

namespace detail {

/// Truth values must be 0 or 1: any other byte in their place would be no bool of C++.
inline status check_elements(safetensors_file const& file, safetensors_entry const& e) {
  bool right = true;
  if (e.element.type != dtype::boolean) return {};
  auto s = file.read_in_parts(e, [&](std::span<std::byte const> part) {
    for (auto b : part) right = right && b <= std::byte{1};
    return right;
  });
  return s && !right ? file.refuse("tensor " + in_quotes(e.name) + " has truth values other than 0 and 1") : s;
}

/// What a dense tensor holds, or would hold: one without data stays without.
inline void write_elements(file_writer& out, tensor const& t) {
  auto const bytes = static_cast<std::size_t>(t.type().bytes());
  if (t.has_data() || t.layout() != tensor_layout::dense(t.storage()->type())) return out.write(t.ref().data, bytes);
  byte_block const made(bytes > 0 ? bytes : 1, 64);
  std::memset(made.data(), 0, bytes);  // what has no initial values says nothing of this program's memory
  write_initial(made.data(), t.element(), t.count(), t.storage()->first_values());
  out.write(made.data(), bytes);
}

}  // namespace detail

/// Writes dense tensors to a file: beside its place, synced, then renamed, so that the old one stands until the new one is
/// whole. Larger elements come first, as the format's own library has it, which keeps them aligned. Refused are names that
/// come twice or are not UTF-8, views that are not dense, and tensors of a trace.
[[nodiscard]] inline status write_safetensors(std::string const& path, std::vector<named_tensor> const& tensors,
                                              safetensors_metadata const& metadata = {}) {
  using detail::in_quotes;
  std::vector<named_tensor> all;  // by size of their elements
  for (bytes_t size : {8, 4, 2, 1, 0})
    for (auto const& n : tensors)
      if (size == (n.tensor.is_empty() ? 0 : size_of(n.tensor.element()))) all.push_back(n);
  std::vector<safetensors_entry> entries;
  detail::name_rows names, keys;
  std::uint64_t end = 0;
  for (auto const& [name, t] : all) {
    auto const refuse = [&](char const* why) {
      return failure{path + ": cannot be written: tensor " + in_quotes(name) + " " + why};
    };
    if (t.is_empty()) return refuse("has no value");
    if (t.is_traced()) return refuse("belongs to a trace, and has no data");
    if (!t.layout().is_dense()) return refuse("is a view that is not dense: neap::contiguous makes one that is");
    if (name == "__metadata__" || !detail::is_utf8(name)) return refuse("has a name that the format cannot have");
    if (!names.add(name)) return failure{path + ": cannot be written: two tensors are named " + in_quotes(name)};
    safetensors_element element;
    for (auto const& known : safetensors_elements)
      if (known.type == t.element()) element = known;
    auto const dims = t.shape();
    auto const bytes = static_cast<std::uint64_t>(t.type().bytes());
    entries.push_back({name, element, {dims.begin(), dims.end()}, end, end + bytes});
    end += bytes;
  }
  for (auto const& [key, text] : metadata) {
    if (!detail::is_utf8(key) || !detail::is_utf8(text))
      return failure{path + ": cannot be written: the metadata " + in_quotes(key) + " are not UTF-8"};
    if (!keys.add(key)) return failure{path + ": cannot be written: the metadata have two texts " + in_quotes(key)};
  }
  auto const head = safetensors_head(entries, metadata);
  if (head.size() - 8 > max_header_bytes)
    return failure{path + ": cannot be written: the names and metadata take more than " +
                   std::to_string(max_header_bytes) + " bytes"};
  file_writer out(path);
  out.write(head);
  try {
    for (auto const& [name, t] : all)
      if (out.ok()) detail::write_elements(out, t);
  } catch (std::bad_alloc const&) { return failure{path + ": cannot be written: no memory for one tensor"}; }
  return out.finish();
}

/// All tensors of a file, in memory of their own, as their bytes follow one another.
[[nodiscard]] inline result<std::vector<named_tensor>> read_safetensors(std::string const& path) {
  auto const file = safetensors_file::open(path);
  if (!file) return failure{file.message()};
  std::vector<named_tensor> all;
  for (auto const& e : file->header().tensors) {
    if (!e.element.type || e.dims.size() > max_rank)
      return file->refuse("tensor " + detail::in_quotes(e.name) + " is " + to_string(e) + ", which neap has not");
    if (auto s = detail::check_elements(*file, e); !s) return failure{s.message()};
    try {
      tensor_type const type{*e.element.type, extents(std::span(e.dims))};
      auto storage = detail::make_storage(type, {}, role::activation, {});
      if (auto s = file->read(e, storage->data()); !s) return failure{s.message()};
      all.push_back({e.name, detail::make_leaf(std::move(storage), tensor_layout::dense(type))});
    } catch (error const& why) { return file->refuse("tensor " + detail::in_quotes(e.name) + ": " + why.what()); }
  }
  return all;
}

}}  // namespace neap::v0
