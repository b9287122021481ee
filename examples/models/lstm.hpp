// A language model of LSTM layers (Zaremba et al. 2014), with dropout between layers and on both sides of them.
#pragma once

#include <neap/model/nn/embedding.hpp>
#include <neap/model/nn/recurrent.hpp>

namespace neap { inline namespace v0 { namespace zoo {

struct lstm_config {
  std::int64_t vocabulary = 10000, width = 650, layers = 2;
  double dropout = 0.5;

  static lstm_config medium() { return {}; }
  static lstm_config large() {
    lstm_config c;
    c.width = 1500, c.dropout = 0.65;
    return c;
  }
  static lstm_config toy() {
    lstm_config c;
    c.vocabulary = 16, c.width = 16, c.dropout = 0.1;
    return c;
  }
};

struct lstm {
  nn::embedding tokens;
  nn::lstm recurrent;
  nn::linear head;
  lstm_config config;

  explicit lstm(lstm_config const& c = {}, std::source_location at = std::source_location::current()) : config(c) {
    place_scope const here(at);
    tokens = nn::embedding(c.vocabulary, c.width, 0.1);
    recurrent = nn::lstm(c.width, c.width, {.layers = c.layers, .dropout = c.dropout});
    head = nn::linear(c.width, c.vocabulary);
  }

  /// ids (b, t) -> (b, t, vocabulary)
  tensor operator()(tensor const& ids, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    tensor const x = recurrent(dropout(tokens(ids), config.dropout)).output;
    return head(dropout(x, config.dropout));
  }

  friend auto neap_fields(lstm& self) { return std::tie(self.tokens, self.recurrent, self.head); }
  static constexpr std::array neap_names{"tokens", "recurrent", "head"};
};

}}}  // namespace neap::v0::zoo
