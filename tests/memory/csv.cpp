#include <neap/memory/csv.hpp>

#include <neap/memory/check/check.hpp>
#include <neap/memory/planner.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace neap;

TEST_CASE("every column, in any order") {
  auto const file = read_minimalloc_csv(
      "size,id,upper,lower,gaps,offset,alignment,hint\n"
      "8,b1,9,-3,-2-1 4-5@2:6,16,8,3\r\n"
      "\n"
      "4,b2,5,0,,,,\n");
  REQUIRE_MESSAGE(file.ok(), file.message());
  CHECK(file->ids == std::vector<std::string>{"b1", "b2"});
  CHECK(file->records[0] ==
        usage_record{
            .lower = -3, .upper = 9, .size = 8, .alignment = 8, .offset = 16, .gaps = {{-2, 1, 0, 0}, {4, 5, 2, 6}}});
  CHECK(file->records[1] == usage_record{.lower = 0, .upper = 5, .size = 4});
  CHECK(file->hints == std::vector<std::int64_t>{3, -1});
  auto const again = read_minimalloc_csv(write_minimalloc_csv(*file));
  REQUIRE_MESSAGE(again.ok(), again.message());
  CHECK(again->records == file->records);
  CHECK(again->ids == file->ids);
  CHECK(again->hints == file->hints);
}

TEST_CASE("a column named end is inclusive") {
  auto const file = read_minimalloc_csv("buffer_id,start,end,size,gaps\nx,0,3,4,1-2\n");
  REQUIRE(file.ok());
  CHECK(file->records[0].upper == 4);
  CHECK(file->records[0].gaps == std::vector<live_gap>{{1, 3, 0, 0}});
}

TEST_CASE("a solution has the offsets") {
  auto const file = read_minimalloc_csv("id,lower,upper,size\na,0,2,4\nb,1,3,6\n");
  auto const plan = naive{}(file->records);
  CHECK(write_minimalloc_csv(*file, &plan) == "id,lower,upper,size,offset\na,0,2,4,0\nb,1,3,6,4\n");
}

TEST_CASE("what is written is read back, or refused") {
  auto const told = [](usage_record const& r, std::string id) {
    allocation_file const file{{"first", std::move(id)}, {usage_record{.lower = 0, .upper = 9, .size = 8}, r}, {}};
    try {
      auto const again = read_minimalloc_csv(write_minimalloc_csv(file));
      REQUIRE_MESSAGE(again.ok(), again.message());
      CHECK(again->records == file.records);
      CHECK(again->ids == file.ids);
    } catch (error const& e) { return std::string(e.what()); }
    return std::string();
  };
  usage_record const plain{.lower = 1, .upper = 4, .size = 8};
  for (auto const* id : {"a", "", "a b", "a;b", "\"a\"", "id"}) CHECK(told(plain, id) == "");
  for (auto const* id : {"a,b", "a\nb", " a", "a\t", "a\r"})
    CHECK(told(plain, id) == "csv: record 1 has a name with a comma, an end of a line, or blanks around it");
  auto other = plain;
  other.gaps = {{1, 2, 5, 5}, {2, 3, 0, 0}, {3, 4, 0, 8}};
  CHECK(told(other, "a") == "");
  other = plain, other.group = 1;
  CHECK(told(other, "a") == "csv: record 1 is of a group or a pool, for which the form has no column");
  other = plain, other.pool = 0;
  CHECK(told(other, "a") == "csv: record 1 is of a group or a pool, for which the form has no column");
}

TEST_CASE("what is wrong is told with its line") {
  auto const told = [](char const* text) { return read_minimalloc_csv(text).message(); };
  CHECK(told("") == "line 0: no header");
  CHECK(told("id,lower,upper\n") == "line 1: the header lacks lower, upper or size");
  CHECK(told("id,lower,upper,size,size\n") == "line 1: column 'size' is named twice");
  CHECK(told("id,lower,upper,size,colour\n") == "line 1: unknown column 'colour'");
  CHECK(told("id,lower,upper,size\na,1,2\n") == "line 2: it has 3 fields, the header 4");
  CHECK(told("id,lower,upper,size\na,1,2,3,4\n") == "line 2: it has more fields than the header");
  CHECK(told("id,lower,upper,size\na,1,2,3,\n") == "line 2: it has more fields than the header");
  CHECK(told("id,lower,upper,size,offset\na,1,2,3,\n") == "");
  CHECK(told("id,lower,upper,size,offset\na,1,2,3\n") == "line 2: it has 4 fields, the header 5");
  CHECK(told("id,lower,upper,size,offset\na,1,2,3,,\n") == "line 2: it has more fields than the header");
  CHECK(told("id,lower,upper,size\na,1,2,3x\n") == "line 2: field 4 is not what its column holds: '3x'");
  CHECK(told("id,lower,upper,size\na,1,2,99999999999999999999\n") ==
        "line 2: field 4 is not what its column holds: '99999999999999999999'");
  CHECK(told("id,lower,upper,size\na,1,2,-3\n") == "line 2: its size is negative");
  CHECK(told("id,lower,upper,size\na,3,2,1\n") == "line 2: its life ends before it begins");
  CHECK(told("id,lower,upper,size,gaps\na,1,9,4,2:3\n") == "line 2: field 5 is not what its column holds: '2:3'");
  CHECK(told("id,lower,end,size\na,1,9223372036854775807,4\n").find("line 2: ") == 0);
}

TEST_CASE("a gap that is wrong is told by record and gap") {
  auto const told = [](std::string const& gaps, char const* end = "upper") {
    return read_minimalloc_csv("id,lower," + std::string(end) + ",size,gaps\nfirst,0,9,4,\nb,1,9,4," + gaps + "\n")
        .message();
  };
  CHECK(told("5-2") == "line 3: record 'b': gap 5-2 ends before it begins");
  CHECK(told("5-5") == "line 3: record 'b': gap 5-5 is empty");
  CHECK(told("5-5", "end") == "");
  CHECK(told("5-4", "end") == "line 3: record 'b': gap 5-4 ends before it begins");
  CHECK(told("2-3 8-12") == "line 3: record 'b': gap 8-12 is outside the life, 1-9");
  CHECK(told("0-3") == "line 3: record 'b': gap 0-3 is outside the life, 1-9");
  CHECK(told("4-6 2-3") == "line 3: record 'b': gap 2-3 overlaps an earlier one, or comes before it: gaps ascend");
  CHECK(told("4-6 5-8") == "line 3: record 'b': gap 5-8 overlaps an earlier one, or comes before it: gaps ascend");
  CHECK(told("4-6@3:1") == "line 3: record 'b': gap 4-6@3:1 has a window that ends before it begins");
  CHECK(told("4-6@1:5") == "line 3: record 'b': gap 4-6@1:5 has a window outside the record, 0:4");
}

TEST_CASE("a file without a header is told as one") {
  auto const message = read_minimalloc_csv("b1,0,3,4\nb2,3,9,4\n").message();
  CHECK(message.find("line 1: no header: the columns id,lower,upper,size") == 0);
}

TEST_CASE("pools and pieces by name, there and back") {
  auto const file =
      read_minimalloc_csv("id,lower,upper,size,pool,piece\na,0,2,4,fast,1\nb,0,2,4,,\nc,1,3,4,slow,\nd,1,3,4,fast,0\n");
  REQUIRE_MESSAGE(file.ok(), file.message());
  CHECK(file->pools == std::vector<std::string>{"fast", "slow"});
  CHECK(file->records[0].pool == 0);
  CHECK(file->records[1].pool == -1);
  CHECK(file->records[2].pool == 1);
  CHECK(file->pieces == std::vector<std::int32_t>{1, -1, -1, 0});
  CHECK(file->lines == std::vector<std::size_t>{2, 3, 4, 5});
  auto const again = read_minimalloc_csv(write_minimalloc_csv(*file));
  REQUIRE_MESSAGE(again.ok(), again.message());
  CHECK(again->records == file->records);
  CHECK(again->pools == file->pools);
  CHECK(again->pieces == file->pieces);
  CHECK(read_minimalloc_csv("lower,upper,size,piece\n0,2,4,1\n").message() == "line 2: a piece without a pool");
  CHECK(read_minimalloc_csv("lower,upper,size,pool,piece\n0,2,4,x,-1\n").message().find("field 5 is not") !=
        std::string::npos);
}

TEST_CASE("faults name records by id and line") {
  auto const file = read_minimalloc_csv("id,lower,upper,size\na,0,2,4\n\nb,0,2,4\n");
  REQUIRE(file.ok());
  CHECK(message_of({"they collide", 0, 1}, *file) == "record 'a' (line 2) and record 'b' (line 4): they collide");
  CHECK(message_of({"too large", 1}, *file) == "record 'b' (line 4): too large");
  CHECK(message_of({"no pools"}, *file) == "no pools");
}
