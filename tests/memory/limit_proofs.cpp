#include <neap/memory/exact/limit_proofs.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace neap;

TEST_CASE("of the proofs of a record the weakest that tells enough is blamed") {
  detail::limit_proofs<std::int64_t> proofs(100);
  proofs.start(100, [](std::uint32_t i) { return i == 7 ? 5 : 0; });
  proofs.clear_blame();
  proofs.blame(70);
  proofs.prove(100, 10, 7);
  proofs.blame(3);
  proofs.prove(101, 20, 100);

  auto const blames = [&](std::int64_t least, bool low, bool high) {
    proofs.clear_blame();
    proofs.blame_proof(101, least);
    return proofs.blamed(70) == low && proofs.blamed(3) == high && !proofs.blamed(7);
  };
  CHECK(blames(20, true, true));
  CHECK(blames(11, true, true));
  CHECK(blames(10, true, false));
  CHECK(blames(6, true, false));
  CHECK(blames(5, false, false));  // whatever is placed
  CHECK(blames(-1, false, false));

  proofs.clear_blame();
  proofs.blame_proof(101, 20);
  proofs.forgive(3);
  CHECK(!proofs.blamed(3));
  CHECK(proofs.blamed(70));
}

TEST_CASE("proofs behind those that a search keeps are written over") {
  detail::limit_proofs<int> proofs(2);
  proofs.start(2, [](std::uint32_t) { return 0; });
  for (std::uint32_t by : {0u, 1u}) {
    proofs.clear_blame();
    proofs.blame(by);
    proofs.prove(2, 4, 0);
    proofs.clear_blame();
    proofs.blame_proof(2, 4);
    CHECK(proofs.blamed(by));
    CHECK(!proofs.blamed(1 - by));
  }
}

TEST_CASE("without proofs every record is to blame") {
  detail::limit_proofs<int> const none(0);
  CHECK(!none.kept());
  CHECK(none.blamed(5));
}
