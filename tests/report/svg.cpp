#include <neap/report/svg.hpp>

#include "../support/svg.hpp"

#include <doctest/doctest.h>

using namespace neap;

TEST_CASE("texts fit for XML: marks escaped, control characters blank, broken UTF-8 told") {
  CHECK(detail::xml_text("a<b>&\"c\"\n\x01") == "a&lt;b&gt;&amp;&quot;c&quot;  ");
  CHECK(detail::xml_text("gr\xc3\xb6\xc3\x9f") == "gr\xc3\xb6\xc3\x9f");
  CHECK(detail::xml_text("\xff\xc3") == "??");
  CHECK(detail::xml_text("\xe2\x82") == "??");
}

TEST_CASE("what does not fit is cut between characters, and says so") {
  for (std::string const& text :
       {std::string("convolution_backward_17"), std::string(40, 'x'),
        std::string("\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6")})
    for (double width = 0; width < 300; width += 3) {
      auto const t = detail::fitted(text, width, 11);
      CHECK(detail::text_width(t, 11) <= width);
      if (t != text && !t.empty()) CHECK(t.ends_with(".."));
      CHECK(detail::xml_text(t).find('?') == std::string::npos);
    }
}

TEST_CASE("a legend goes on in the next row, never past the edge") {
  for (int n = 1; n < 20; ++n) {
    detail::svg_legend legend(92, 800, 90);
    for (int i = 0; i < n; ++i) legend.add("fill=\"#000000\"", "512 KiB to 4 MiB");
    double lowest = 0;
    for (auto const& t : testing::texts(legend.text())) {
      CHECK(t.right() <= 800);
      lowest = std::max(lowest, t.y);
    }
    CHECK(lowest < legend.bottom());
  }
}
