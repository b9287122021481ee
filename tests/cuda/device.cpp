#include <neap/cuda/device.hpp>

#include <neap/cuda.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

TEST_CASE("without a GPU there is one line that says why; with one it is described") {
  auto const all = neap::cuda_devices();
  if (!all) {
    CAPTURE(all.message());
    CHECK(all.message().starts_with("cuda: no GPU to be used: "));
    CHECK(all.message().find('\n') == std::string::npos);
    CHECK(neap::find_cuda_device().message() == all.message());
    CHECK(neap::cuda_devices().message() == all.message());  // a second look is no other
    return;
  }
  CHECK(!all->empty());
  for (auto const& d : *all) {
    CAPTURE(d.name);
    CHECK((d.memory > 0 && d.multiprocessors > 0 && d.shared_per_block >= 48 * 1024 && d.driver >= 13000));
    auto const found = neap::find_cuda_device(d.number);
    CHECK(found.ok() == (d.major >= 8));
    if (found) CHECK(*found == d);
  }
  int const behind = static_cast<int>(all->size());
  CHECK(neap::find_cuda_device(behind).message() ==
        "cuda: no device " + std::to_string(behind) + ": the driver finds " + std::to_string(behind));
  CHECK(!neap::find_cuda_device(-1));
}

TEST_CASE("what is said of every way in which a GPU can be missing") {
  using neap::detail::no_cuda_device;
  std::string const start = "cuda: no GPU to be used: ";
  CHECK(no_cuda_device(cudaErrorInsufficientDriver, 0, 13000) ==
        start + "no NVIDIA driver is installed (libcuda.so.1)");
  CHECK(no_cuda_device(cudaErrorInsufficientDriver, 12080, 13010) ==
        start + "the driver supports CUDA 12.8, this program needs 13.1");
  CHECK(no_cuda_device(cudaErrorNoDevice, 13000, 13000) == start + "the driver finds no device");
  CHECK(no_cuda_device(cudaSuccess, 13000, 13000) == start + "the driver finds no device");
  CHECK(no_cuda_device(cudaErrorSystemDriverMismatch, 13000, 13000).starts_with(start + "system has unsupported"));
}

TEST_CASE("a failed call is an error with its place") {
  neap::check_cuda(cudaSuccess, "a copy");
  try {
    neap::check_cuda(cudaErrorMemoryAllocation, "a copy");
    FAIL("no error");
  } catch (neap::error const& e) {
    std::string const what = e.what();
    CAPTURE(what);
    CHECK(what.starts_with("device.cpp:"));
    CHECK(what.ends_with(": cuda: a copy: out of memory"));
  }
}
