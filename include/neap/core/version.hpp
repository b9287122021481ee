// The version of the library, for programs and for the package's version file.
#pragma once

#define NEAP_VERSION_MAJOR 0
#define NEAP_VERSION_MINOR 1
#define NEAP_VERSION_PATCH 0
/// One comparable number: 10000 * major + 100 * minor + patch.
#define NEAP_VERSION (NEAP_VERSION_MAJOR * 10000 + NEAP_VERSION_MINOR * 100 + NEAP_VERSION_PATCH)
