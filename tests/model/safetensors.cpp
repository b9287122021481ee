#include <neap/model/safetensors.hpp>

#include <neap/model/model.hpp>

#include "../support/files.hpp"

#include <doctest/doctest.h>

#include <cstring>

using namespace neap;
using namespace neap::testing;

namespace {

bool equal_bits(tensor const& a, tensor const& b) {
  return a.type() == b.type() &&
         std::memcmp(a.ref().data, b.ref().data, static_cast<std::size_t>(a.type().bytes())) == 0;
}
tensor find(std::vector<named_tensor> const& all, std::string const& name) {
  for (auto const& n : all)
    if (n.name == name) return n.tensor;
  FAIL("no tensor ", name);
  return {};
}
/// A file with one tensor "w".
std::string file_of(std::string const& info, std::string const& data) {
  auto const json = "{\"w\":{" + info + "}}";
  std::string head(8, '\0');
  head[0] = static_cast<char>(json.size());
  return head + json + data;
}

}  // namespace

TEST_CASE("tensors of every type read back to the bit") {
  scratch const at;
  std::vector<named_tensor> all;
  for (auto t : {dtype::boolean, dtype::u8, dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    tensor const x = is_floating(t) ? tensor::randn({3, 5}, 1, t) : tensor::full({3, 5}, 1, t);
    all.push_back({std::string(name_of(t)), x});
  }
  all.push_back({"i64", tensor::from<std::int64_t>({INT64_MIN, -1, INT64_MAX}, {3})});
  all.push_back({"i32", tensor::from<std::int32_t>({INT32_MIN, -1, INT32_MAX}, {1, 3, 1})});
  all.push_back({"scalar", tensor::from({-0.0}, {})});
  all.push_back({"none", tensor::zeros({2, 0})});
  all.push_back({"rank 8", tensor::randn({1, 2, 1, 2, 1, 2, 1, 2}, 4)});
  all.push_back({"", tensor::from({std::nanf("7"), INFINITY, -0.f}, {3})});
  all.push_back({"part", slice(tensor::randn({6, 4}, 9), 0, 2, 4)});
  auto const path = at / "f";
  REQUIRE(write_safetensors(path, all, {{"key", "text"}}).ok());
  auto const back = read_safetensors(path);
  REQUIRE_MESSAGE(back, back.message());
  CHECK(back->size() == all.size());
  for (auto const& [name, t] : all) CHECK_MESSAGE(equal_bits(find(*back, name), t), name);
  auto const file = safetensors_file::open(path);
  REQUIRE(file);
  CHECK(file->header().metadata == safetensors_metadata{{"key", "text"}});
  for (auto const& e : file->header().tensors)  // aligned for whoever maps the file
    CHECK(e.begin % static_cast<std::uint64_t>(e.element.bits / 8) == 0);
  CHECK(at.file_count() == 1);
}

TEST_CASE("a file that the format's own library wrote") {
  auto const path = NEAP_SOURCE_DIR "/tests/model/numpy.safetensors";
  auto const all = read_safetensors(path);
  CHECK(all.message().empty());
  REQUIRE(all);
  CHECK(all->size() == 13);
  for (auto t : {dtype::f64, dtype::f16}) {
    auto const name = "float" + std::to_string(8 * size_of(t));
    CHECK(find(*all, name).values<double>() == std::vector<double>{-2, -1, 0, 1, 2, 3});
    CHECK(find(*all, name).type() == tensor_type{t, {2, 3}});
  }
  std::vector<float> thirds;
  for (float x : {-2.f, -1.f, 0.f, 1.f, 2.f, 3.f}) thirds.push_back(x / 3);
  CHECK(find(*all, "float32").values<float>() == thirds);
  for (auto const* name : {"int64", "int32"})
    CHECK(find(*all, name).values<std::int64_t>() == std::vector<std::int64_t>{-2, -1, 0, 1, 2, 3});
  CHECK(find(*all, "int8").element() == dtype::i8);
  CHECK(find(*all, "int16").element() == dtype::i16);
  CHECK(find(*all, "uint64").element() == dtype::u64);
  CHECK(find(*all, "uint8").values<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(find(*all, "bool").values<bool>() == std::vector<bool>{false, true, false, true, false, true});
  CHECK(find(*all, "scalar").item<float>() == 7);
  CHECK(find(*all, "empty").shape() == shape{0, 4});
  CHECK(find(*all, "größe.重み").values<float>() == std::vector<float>{1, 1, 1});
  auto const file = safetensors_file::open(path);
  CHECK(file->header().metadata.size() == 2);
}

TEST_CASE("what cannot be written is told by name, and nothing is written") {
  scratch const at;
  auto const path = at / "f";
  tensor const x = tensor::ones({2, 3});
  auto const message = [&](std::vector<named_tensor> const& all, safetensors_metadata const& m = {}) {
    return write_safetensors(path, all, m).message();
  };
  CHECK(message({{"a", x}, {"b", {}}}) == path + ": cannot be written: tensor \"b\" has no value");
  CHECK(message({{"a", transpose(x)}}) ==
        path + ": cannot be written: tensor \"a\" is a view that is not dense: neap::contiguous makes one that is");
  CHECK(message({{"a", x}, {"a", x}}) == path + ": cannot be written: two tensors are named \"a\"");
  CHECK(message({{"__metadata__", x}}).ends_with("has a name that the format cannot have"));
  CHECK(message({{"\xff", x}}).ends_with("has a name that the format cannot have"));
  CHECK(message({}, {{"k", "\xff"}}) == path + ": cannot be written: the metadata \"k\" are not UTF-8");
  CHECK(message({}, {{"k", ""}, {"k", ""}}) == path + ": cannot be written: the metadata have two texts \"k\"");
  CHECK(write_safetensors(at / "no/f", {{"a", x}}).message() ==
        at / "no/f" + ": cannot be written: No such file or directory");
  CHECK(write_safetensors("/dev/full", {{"a", x}}).message() ==
        "/dev/full: cannot be written: No space left on device");
  tracer t{operator_table(standard_operators::facets)};
  CHECK(message({{"a", t.input(x)}}) == path + ": cannot be written: tensor \"a\" belongs to a trace, and has no data");
  CHECK(at.file_count() == 0);
}

TEST_CASE("what nobody has touched is written as it would be, and takes no memory") {
  scratch const at;
  auto const x = tensor::randn({100}, 3), y = tensor::randn({100}, 3);
  tensor const z = tensor::lazy({dtype::f32, {4}});
  REQUIRE(write_safetensors(at / "f", {{"x", x}, {"z", z}}).ok());
  CHECK_FALSE(x.has_data());
  CHECK_FALSE(z.has_data());
  auto const back = read_safetensors(at / "f").value();
  CHECK(equal_bits(find(back, "x"), y));
  CHECK(find(back, "z").values<float>() == std::vector<float>(4));
}

TEST_CASE("damaged files: each fault one line with the file, and the tensor where it is one's") {
  scratch const at;
  auto const path = at / "f";
  auto const message = [&](std::string const& bytes) {
    write_bytes(path, bytes);
    auto const r = read_safetensors(path);
    return r.message();
  };
  std::string const info = "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]";
  CHECK(message(file_of(info, "12345678")) == "");
  CHECK(message("") == path + ": no safetensors file: it has 0 bytes");
  CHECK(message("1234567") == path + ": no safetensors file: it has 7 bytes");
  CHECK(message("PK\x03\x04 some other file") == path +
                                                     ": no safetensors file: its header would have "
                                                     "7885648053892500304 bytes");
  CHECK(message(std::string("\x20\0\0\0\0\0\0\0{}", 10)) ==
        path + ": the header has 32 bytes, the file 10: it is cut off, or no safetensors file");
  CHECK(message(file_of(info, "1234567")) ==
        path + ": tensor \"w\": data_offsets: [0,8] end behind the file's 7 bytes of data: it is cut off");
  CHECK(message(file_of(info, "123456789")) == path + ": the last 1 of 9 bytes of data are no tensor's");
  CHECK(message(file_of(info + ",", "12345678")) == path + ": header, byte 53: tensor \"w\": must be \"");
  CHECK(message(file_of("\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,2]", "12")) ==
        path + ": tensor \"w\" is F8_E4M3[2], which neap has not");
  CHECK(message(file_of("\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,2]", "12")) ==
        path + ": tensor \"w\" is u8[1,1,1,1,1,1,1,1,2], which neap has not");
  CHECK(message(file_of("\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]", std::string("\1\2"))) ==
        path + ": tensor \"w\" has truth values other than 0 and 1");
  CHECK(message(file_of("\"dtype\":\"BOOL\",\"shape\":[2],\"data_offsets\":[0,2]", std::string("\1\0", 2))) == "");
  CHECK(message(file_of("\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]", "")) ==
        path + ": tensor \"w\": no tensor can be u8[4294967296,4294967296,0]: its size overflows 64 bits");
  CHECK(read_safetensors(at / "none").message() == at / "none" + ": cannot be read: No such file or directory");
  CHECK(read_safetensors(at.folder.string()).message() == at.folder.string() + ": cannot be read: it is a folder");
  CHECK(read_safetensors("/dev/zero").message() == "/dev/zero: cannot be read: it is no regular file");
  REQUIRE(::mkfifo((at / "pipe").c_str(), 0600) == 0);
  CHECK(read_safetensors(at / "pipe").message() == at / "pipe" + ": cannot be read: it is no regular file");
}

TEST_CASE("a file that becomes shorter while it is read is told") {
  scratch const at;
  REQUIRE(write_safetensors(at / "f", {{"w", tensor::ones({100})}}).ok());
  auto const file = safetensors_file::open(at / "f");
  REQUIRE(file);
  auto const& w = *file->header().find("w");
  std::vector<float> to(100);
  CHECK(file->read(w, to.data()).ok());
  CHECK(to == std::vector<float>(100, 1));
  std::filesystem::resize_file(at / "f", std::filesystem::file_size(at / "f") - 4);
  CHECK(file->read(w, to.data()).message() == at / "f" + ": ends at byte " +
                                                  std::to_string(std::filesystem::file_size(at / "f")) +
                                                  ", and was longer when it was opened, in tensor \"w\"");
}
