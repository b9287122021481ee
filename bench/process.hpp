// What this process has taken so far.
#pragma once

#include <ctime>
#include <fstream>
#include <string>

inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

inline long peak_kb() {  // not getrusage: its peak outlives exec, so it would be that of the shell or script before us
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (long kb = 0; word == "VmHWM:" && status >> kb) return kb;
  return 0;
}
