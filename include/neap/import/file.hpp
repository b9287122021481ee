// Files in: the bytes of a file, gzip or not.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <cstring>
#include <string>

namespace neap { inline namespace v0 { namespace io {

/// The contents of a file, decompressed if it is gzip. Fails with one line that names the file: missing, unreadable,
/// damaged, cut off, or larger than `most` bytes when decompressed.
result<std::string> read_file(std::string const& path, bytes_t most = bytes_t{1} << 30);

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/file.ipp>
#endif
