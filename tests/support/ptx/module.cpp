#include "module.hpp"

#include "lexer.hpp"
#include "reader.hpp"

namespace neap::testing::ptx {

module parse(std::string text) {
  module m;
  m.text = std::make_shared<std::string const>(std::move(text));
  m.tokens = tokens_of(*m.text);
  detail::reader r{m.tokens};
  while (r.look().is != token::kind::end) {
    token const& t = r.next();
    if (t == ".version" || t == ".address_size") {
      r.next();
    } else if (t == ".target") {
      do {
        auto const& name = r.next();
        if (name.text.starts_with("sm_")) m.target = std::atoi(std::string(name.text.substr(3)).c_str());
      } while (r.take(","));
    } else if (t == ".visible" || t == ".extern" || t == ".weak" || t == ".common" || t == ";") {
    } else if (t == ".pragma" || t == ".alias") {
      r.skip_to(";");
    } else if (t == ".section") {
      r.skip_to("{");
      r.skip_braces();
    } else if (t == ".global" || t == ".const" || t == ".shared") {
      module_variable v;
      v.where = t == ".shared" ? space::shared : t == ".const" ? space::constant : space::global;
      std::size_t const start = r.at;
      v.d = detail::declaration(r);
      unsigned element = 1;
      for (std::size_t k = start; k < r.at; ++k)
        if (auto const found = type_named(m.tokens[k].text.substr(std::min<std::size_t>(1, m.tokens[k].text.size())));
            found != type::none)
          element = bytes_of(found);
      if (r.take("=")) detail::initial_values(r, v, element);
      r.expect(";");
      m.variables.push_back(std::move(v));
    } else if (t == ".entry" || t == ".func") {
      function_text f;
      f.is_kernel = t == ".entry";
      f.line = t.line;
      if (!f.is_kernel) {
        r.take(".noreturn");
        f.results = detail::parameters(r);
      }
      f.name = std::string(r.next().text);
      f.parameters = detail::parameters(r);
      while (!(r.look() == "{") && !(r.look() == ";")) {  // .minnctapersm and the like
        if (!(r.next() == ".maxntid")) continue;
        f.max_threads = 1;
        do f.max_threads *= static_cast<std::uint32_t>(literal(r.next(), false));
        while (r.take(","));
      }
      if (r.take("{")) {
        f.from = r.at;
        r.skip_braces();
        f.to = r.at - 1;
      }
      auto& known = m.functions[f.name];
      if (!known.to) known = std::move(f);
    } else {
      throw error(t.line, "'" + std::string(t.text) + "' begins no declaration");
    }
  }
  return m;
}

}  // namespace neap::testing::ptx
