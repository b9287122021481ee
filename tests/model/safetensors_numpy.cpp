// Ours beside the format's own library: where python3 has safetensors and numpy, it reads what we write, and we read what
// it writes of that.
#include <neap/model/model.hpp>
#include <neap/model/safetensors.hpp>

#include "../support/files.hpp"

#include <doctest/doctest.h>

#include <cstring>

using namespace neap;
using namespace neap::testing;

TEST_CASE("the format's own library reads our files, and we read its copies") {
  scratch const at;
  std::vector<named_tensor> written;
  tensor const six = tensor::from({-2.0, -1.0, 0.0, 1.0, 2.5, 1e300}, {2, 3});
  auto const whole = tensor::from<std::int64_t>({-2, -1, 0, 1, 2, INT64_MAX}, {2, 3});
  for (auto t : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16})
    written.push_back({"floating." + std::string(name_of(t)), tensor::randn({2, 3}, 5, t)});
  written.push_back({"six", six});
  written.push_back({"whole", whole});
  written.push_back({"i32", tensor::from<std::int32_t>({INT32_MIN, 7}, {2})});
  written.push_back({"u8", tensor::from<std::uint8_t>({0, 1, 255}, {3, 1})});
  written.push_back({"bool", tensor::from(std::vector<bool>{true, false}, {2})});
  written.push_back({"scalar", tensor::from({7.f}, {})});
  written.push_back({"empty", tensor::zeros({0, 4})});
  written.push_back({"größe \"重み\"\n", tensor::ones({1})});
  auto const ours = at / "ours.safetensors", theirs = at / "theirs.safetensors", log = at / "log";
  REQUIRE_MESSAGE(write_safetensors(ours, written, {{"who", "ne\"ap\n"}}).ok(), "written");

  std::string const command = "python3 " NEAP_SOURCE_DIR "/tests/support/safetensors_numpy.py copy " + ours + " " +
                              theirs + " >" + log + " 2>&1";
  int const status = std::system(command.c_str());
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) {
    MESSAGE("this test is skipped: python3 has no safetensors and numpy (pip install safetensors numpy)");
    return;
  }
  auto const said = read_bytes(log);
  REQUIRE_MESSAGE(WEXITSTATUS(status) == 0, said);
  CHECK(said.find("metadata 'who' 'ne\"ap\\n'\n") != std::string::npos);
  CHECK(said.find("u8 U8 [3, 1] 0001ff\n") != std::string::npos);
  CHECK(said.find("bool BOOL [2] 0100\n") != std::string::npos);
  CHECK(said.find("scalar F32 [] 0000e040\n") != std::string::npos);
  CHECK(said.find("empty F32 [0, 4] \n") != std::string::npos);
  CHECK(said.find("floating.bf16 BF16 [2, 3] ") != std::string::npos);

  auto const back = read_safetensors(theirs);
  REQUIRE_MESSAGE(back, back.message());
  CHECK(back->size() == written.size() - 1);
  for (auto const& [name, t] : *back) {
    auto const first = std::find_if(written.begin(), written.end(), [&](auto const& w) { return w.name == name; });
    REQUIRE(first != written.end());
    CHECK(first->tensor.type() == t.type());
    CHECK(std::memcmp(first->tensor.ref().data, t.ref().data, static_cast<std::size_t>(t.type().bytes())) == 0);
  }
}
