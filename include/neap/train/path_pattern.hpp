// Patterns of weights' paths in a model: globs (core/glob.hpp).
#pragma once

#include <neap/core/glob.hpp>
