// The pages for readers: length, sentences, words, links, and the languages of their code. Each rule is tried on a planted
// fault as well. tests/house/snippets.cmake compiles the C++ of the same pages.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

fs::path const root = NEAP_SOURCE_DIR;
char const* const pages[] = {"README.md",
                             "examples/README.md",
                             "examples/cli/README.md",
                             "include/neap/README.md",
                             "include/neap/extending.md",
                             "include/neap/glossary.md",
                             "bench/README.md",
                             "tests/README.md",
                             "examples/graphs/README.md",
                             "tests/capture/README.md",
                             "examples/recipes.md"};

constexpr std::size_t max_readme_lines = 200, max_architecture_lines = 450, max_characters = 160, max_words = 25;

std::string read(fs::path const& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Text in which code is one word and a link is its text.
std::string plain(std::string const& line) {
  static std::regex const code("`[^`]*`"), link("!?\\[([^\\]]*)\\]\\([^)]*\\)");
  return std::regex_replace(std::regex_replace(line, code, "CODE"), link, "$1");
}

struct piece {
  std::size_t line;  // from 1
  std::string text;
};

/// Paragraphs, list items, headings and cells of tables, as plain text; no code blocks.
std::vector<piece> pieces_of(std::string const& text) {
  std::vector<piece> pieces;
  bool code = false, open = false;
  std::size_t number = 0;
  for (auto const& line : lines_of(text)) {
    ++number;
    if (line.rfind("```", 0) == 0) {
      code = !code, open = false;
      continue;
    }
    if (code || line.rfind("    ", 0) == 0) continue;
    std::string const p = plain(line);
    if (p.find_first_not_of(' ') == p.npos) {
      open = false;
    } else if (p[0] == '|') {
      std::istringstream cells(p);
      for (std::string cell; std::getline(cells, cell, '|');) pieces.push_back({number, cell});
      open = false;
    } else if (p[0] == '#') {
      pieces.push_back({number, p});
      open = false;
    } else if (!open || p.find_first_not_of(' ') == p.find("- ") || std::isdigit(static_cast<unsigned char>(p[0]))) {
      pieces.push_back({number, p});
      open = true;
    } else {
      pieces.back().text += " " + p;
    }
  }
  return pieces;
}

/// The sentences of a text: they end at a full stop, a question or an exclamation mark before a space or the end.
std::vector<std::string> sentences_of(std::string const& text) {
  std::vector<std::string> sentences(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    sentences.back() += text[i];
    bool const last = i + 1 == text.size() || text[i + 1] == ' ';
    if (last && (text[i] == '.' || text[i] == '?' || text[i] == '!')) sentences.emplace_back();
  }
  return sentences;
}

std::size_t count_words(std::string const& text) {
  std::istringstream in(text);
  std::size_t count = 0;
  for (std::string word; in >> word;)
    count += std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c); });
  return count;
}

/// The dialect: words and phrases for which the field has terms, or which make a conversation of code.
char const* const banned[] = {
    "somebody", "nobody",    "whoever",      "told",        "tell",         "tells",      "ground",
    "grounds",  "story",     "of one's own", "handed back", "hand back",    "hands back", "foreign",
    "is asked", "are asked", "comes by",     "in vain",     "dear",         "quicken",    "beside it stands",
    "by heart", "everybody", "people's",     "says so",     "what is there"};

std::vector<std::string> words_of(std::string const& text) {
  std::vector<std::string> words(1);
  for (unsigned char c : text)
    if (std::isalpha(c) || c == '\'') words.back() += static_cast<char>(std::tolower(c));
    else if (!words.back().empty()) words.emplace_back();
  return words;
}

/// Words for persons that comments of code need as little: an op is dead, a graph external, memory unused.
char const* const persons[] = {"somebody", "nobody", "whoever", "everybody", "anybody"};

/// What comments of a file in C++ have of these words.
std::vector<std::string> persons_in_comments(std::string const& code) {
  std::vector<std::string> found;
  for (auto const& line : lines_of(code)) {
    auto const begin = line.find("//");
    if (begin == line.npos) continue;
    for (auto const& word : words_of(line.substr(begin)))
      for (std::string const person : persons)
        if (word == person || word == person + "'s") found.push_back(line);
  }
  return found;
}

/// As GitHub names the anchor of a heading.
std::string anchor_of(std::string heading) {
  heading.erase(0, heading.find_first_not_of("# "));
  std::string a;
  for (unsigned char c : heading)
    if (std::isalnum(c) || c == '-' || c == '_') a += static_cast<char>(std::tolower(c));
    else if (c == ' ') a += '-';
  return a;
}

std::set<std::string> anchors_of(std::string const& text) {
  std::set<std::string> anchors;
  bool code = false;
  for (auto const& line : lines_of(text)) {
    if (line.rfind("```", 0) == 0) code = !code;
    else if (!code && line.rfind('#', 0) == 0) anchors.insert(anchor_of(line));
  }
  return anchors;
}

using complaints = std::vector<std::string>;

complaints on_prose(std::string const& text) {
  complaints out;
  std::set<std::string> const languages{"```cpp", "```sh", "```cmake", "```json", "```text"};
  bool code = false;
  std::size_t number = 0;
  for (auto const& line : lines_of(text)) {
    ++number;
    auto const at = "line " + std::to_string(number) + ": ";
    if (line.rfind("```", 0) == 0) {
      code = !code;
      if (code && !languages.count(line)) out.push_back(at + "code in an unknown language: " + line);
    } else if (line.size() > max_characters && line[0] != '|' && line.find("](") == line.npos) {
      out.push_back(at + std::to_string(line.size()) + " characters");
    }
  }
  if (code) out.push_back("a code block does not end");
  for (auto const& p : pieces_of(text)) {
    auto const at = "line " + std::to_string(p.line) + ": ";
    for (auto const& s : sentences_of(p.text))
      if (auto const n = count_words(s); n > max_words) out.push_back(at + std::to_string(n) + " words:" + s);
    auto const words = words_of(p.text);
    for (std::string const phrase : banned) {
      auto const wanted = words_of(phrase);
      if (std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end())
        out.push_back(at + "\"" + phrase + "\" is dialect");
    }
  }
  return out;
}

complaints on_links(fs::path const& page, std::string const& text) {
  complaints out;
  static std::regex const link("(\\]\\(|src=\")([^)\"]+)[)\"]");
  bool code = false;
  for (auto const& line : lines_of(text)) {
    if (line.rfind("```", 0) == 0) code = !code;
    if (code) continue;
    std::string const bare = std::regex_replace(line, std::regex("`[^`]*`"), "CODE");
    for (std::sregex_iterator i(bare.begin(), bare.end(), link), end; i != end; ++i) {
      std::string target = (*i)[2], anchor;
      if (target.find("://") != target.npos) continue;
      if (auto const at = target.find('#'); at != target.npos) anchor = target.substr(at + 1), target.erase(at);
      auto const file = target.empty() ? page : page.parent_path() / target;
      if (!fs::exists(file)) out.push_back("no such file: " + target);
      else if (!anchor.empty() && !anchors_of(fs::equivalent(file, page) ? text : read(file)).count(anchor))
        out.push_back("no heading #" + anchor + " in " + file.filename().string());
    }
  }
  return out;
}

}  // namespace

TEST_CASE("pages: sentences, lines, words, links") {
  for (std::string const page : pages) {
    CAPTURE(page);
    auto const text = read(root / page);
    CHECK(!text.empty());
    for (auto const& c : on_prose(text)) FAIL_CHECK(page << ": " << c);
    for (auto const& c : on_links(root / page, text)) FAIL_CHECK(page << ": " << c);
  }
  CHECK(lines_of(read(root / "README.md")).size() <= max_readme_lines);
  CHECK(lines_of(read(root / "include/neap/README.md")).size() <= max_architecture_lines);
}

TEST_CASE("pages: the first one leads to all others") {
  auto const text = read(root / "README.md");
  for (std::string const page : pages)
    if (page != "README.md") CHECK_MESSAGE(text.find("(" + page) != text.npos, page);
}

TEST_CASE("pages: the table of functions has all of them, and no others") {
  std::set<std::string> declared, listed;
  static std::regex const function("^(tensor|ordered|std::vector<tensor>|void) (\\w+)\\("),
      by_macro("^NEAP_\\w+\\(([a-z]\\w*)\\)$"), in_list("\\bF\\((\\w+)\\)"), name("`([a-z][a-z0-9_]*)`");
  for (auto const& entry : fs::directory_iterator(root / "include/neap/model/functions")) {
    if (entry.path().extension() != ".hpp") continue;
    bool detail = false;
    for (auto const& line : lines_of(read(entry.path()))) {
      if (line.ends_with("namespace detail {")) detail = true;
      else if (line == "}  // namespace detail") detail = false;
      std::smatch found;
      if (detail) continue;
      if (std::regex_search(line, found, function)) declared.insert(found[2]);
      else if (std::regex_search(line, found, by_macro)) declared.insert(found[1]);
      for (std::sregex_iterator i(line.begin(), line.end(), in_list), end; line.starts_with("  F(") && i != end; ++i)
        declared.insert((*i)[1]);
    }
  }
  auto const text = read(root / "examples/README.md");
  auto const begin = text.find("| functions | |");
  REQUIRE(begin != text.npos);
  auto const table = text.substr(begin, text.find("\n\n", begin) - begin);
  for (std::sregex_iterator i(table.begin(), table.end(), name), end; i != end; ++i) listed.insert((*i)[1]);
  for (auto const& f : declared) CHECK_MESSAGE(listed.count(f), "not in the table: ", f);
  for (auto const& f : listed) CHECK_MESSAGE(declared.count(f), "no such function: ", f);
  CHECK(declared.size() > 100);
}

TEST_CASE("pages: comments of headers and examples are about code") {
  std::size_t files = 0;
  for (auto const* folder : {"include", "examples"})
    for (auto const& entry : fs::recursive_directory_iterator(root / folder)) {
      auto const kind = entry.path().extension();
      if (kind != ".hpp" && kind != ".ipp" && kind != ".cpp" && kind != ".cuh" && kind != ".cu") continue;
      ++files;
      for (auto const& line : persons_in_comments(read(entry.path())))
        CHECK_MESSAGE(false, entry.path().string(), ": ", line);
    }
  CHECK(files > 400);
}

TEST_CASE("pages: planted faults are found") {
  CHECK(persons_in_comments("int i;  // nobody reads it\n").size() == 1);
  CHECK(persons_in_comments("int nobody;  // dead\n").empty());
  std::string const word25 = "w w w w w w w w w w w w w w w w w w w w w w w w w";
  CHECK(on_prose(word25 + ".\n").empty());
  CHECK(on_prose(word25 + " w.\n").size() == 1);
  CHECK(on_prose("w w w w w w w w w w w w w\nw w w w w w w w w w w w w.\n").size() == 1);  // over two lines
  CHECK(on_prose("- " + word25 + "\n- " + word25 + "\n").empty());
  CHECK(on_prose("| " + word25 + " | " + word25 + " w |\n").size() == 1);
  CHECK(on_prose("```cpp\n" + word25 + " w\n```\n").empty());
  CHECK(on_prose("```c++\nint i;\n```\n").size() == 1);
  CHECK(on_prose("```cpp\nint i;\n").size() == 1);
  CHECK(on_prose("Peak 0.49 of `a. b. c` is " + word25 + "\n").size() == 1);
  CHECK(on_prose(std::string(161, 'x') + "\n").size() == 1);
  CHECK(on_prose("|" + std::string(161, 'x') + "\n").empty());
  CHECK(on_prose("Nobody reads it.\n").size() == 1);
  CHECK(on_prose("A value is handed\nback.\n").size() == 1);
  CHECK(on_prose("A background, `nobody`.\n").empty());
  auto const page = root / "README.md";
  CHECK(on_links(page, "# A b\n[x](LICENSE) [y](#a-b) [z](https://example.org)\n").empty());
  CHECK(on_links(page, "[x](NOTHING)\n").size() == 1);
  CHECK(on_links(page, "# A b\n[x](#a-c)\n").size() == 1);
  CHECK(on_links(page, "<img src=\"nothing.svg\">\n").size() == 1);
}
