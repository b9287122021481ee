// The bodies of <neap/import/file.hpp>.
#pragma once

#include <neap/import/file.hpp>

#include <neap/core/separate_compilation.hpp>

#include <cerrno>

#include <zlib.h>

namespace neap { inline namespace v0 { namespace io {

NEAP_FUNC result<std::string> read_file(std::string const& path, bytes_t most) {
  errno = 0;
  gzFile file = ::gzopen(path.c_str(), "rb");
  if (!file) return failure{path + ": cannot be opened: " + std::strerror(errno ? errno : ENOMEM)};
  ::gzbuffer(file, 1 << 18);
  std::string text;
  std::string block(1 << 18, '\0');
  for (;;) {
    int const n = ::gzread(file, block.data(), static_cast<unsigned>(block.size()));
    if (n < 0) {
      int code = 0;
      std::string why = ::gzerror(file, &code);
      if (code == Z_ERRNO) why = std::strerror(errno);
      ::gzclose(file);
      return failure{path + ": cannot be read: " + why};
    }
    if (n == 0) break;
    text.append(block.data(), static_cast<std::size_t>(n));
    if (static_cast<bytes_t>(text.size()) > most) {
      ::gzclose(file);
      return failure{path + ": larger than " + std::to_string(most) + " bytes"};
    }
  }
  if (::gzclose(file) != Z_OK) return failure{path + ": the compressed data ends too early"};
  return text;
}

}}}  // namespace neap::v0::io
