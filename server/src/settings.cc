#include "settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <sstream>

namespace drover::server {
namespace {

/// One step of a path: a name, or a place in a list.
struct Step {
  std::string name;
  std::optional<std::size_t> place;
};

/// librdkafka's property names have dots in them, so what stands behind this section's name is one name.
constexpr std::string_view kDottedSection = "kafka.librdkafka.";

/// Splits `a.b[0].c`; nothing if it isn't of that form.
std::optional<std::vector<Step>> parse_path(std::string_view path) {
  if (path.starts_with(kDottedSection)) {
    return std::vector<Step>{{"kafka", {}}, {"librdkafka", {}}, {std::string(path.substr(kDottedSection.size())), {}}};
  }
  std::vector<Step> steps;
  while (true) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    if (end == 0) return std::nullopt;
    steps.push_back({std::string(path.substr(0, end)), {}});
    path.remove_prefix(end);
    while (path.starts_with('[')) {
      std::size_t place = 0;
      const auto [stop, error] = std::from_chars(path.data() + 1, path.data() + path.size(), place);
      if (error != std::errc() || stop == path.data() + path.size() || *stop != ']') return std::nullopt;
      steps.push_back({"", place});
      path.remove_prefix(static_cast<std::size_t>(stop + 1 - path.data()));
    }
    if (path.empty()) return steps;
    if (!path.starts_with('.')) return std::nullopt;
    path.remove_prefix(1);
  }
}

/// Sets the node at the end of the path, making sections and list elements on its way. Whether the path fits the tree.
bool set_node(YAML::Node node, const std::vector<Step>& steps, std::size_t at, const YAML::Node& value) {
  if (at == steps.size()) {
    node = value;
    return true;
  }
  const Step& step = steps[at];
  if (!step.place) {
    if (!node.IsNull() && node.IsDefined() && !node.IsMap()) return false;
    return set_node(node[step.name], steps, at + 1, value);
  }
  if (!node.IsNull() && node.IsDefined() && !node.IsSequence()) return false;
  if (*step.place > node.size()) return false;
  if (*step.place == node.size()) node.push_back(YAML::Node());
  return set_node(node[*step.place], steps, at + 1, value);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string format_size(std::uint64_t bytes) {
  if (bytes % (std::uint64_t{1} << 30) == 0) return std::to_string(bytes >> 30) + "GiB";
  return std::to_string(bytes >> 20) + "MiB";
}

std::string format_duration(std::int64_t ms) {
  if (ms % 86'400'000 == 0) return std::to_string(ms / 86'400'000) + "d";
  if (ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
  if (ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";
  if (ms % 1'000 == 0) return std::to_string(ms / 1'000) + "s";
  return std::to_string(ms) + "ms";
}

/// Nothing: it is not there, may not be read, or is a directory, which opens but does not read.
std::optional<std::string> read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  std::ostringstream text;
  in.peek();  // sets badbit on a directory
  if (!in.is_open() || in.bad()) return std::nullopt;
  text << in.rdbuf();
  return std::move(text).str();
}

}  // namespace

bool SettingsTree::load() {
  const std::optional<std::string> text = read_file(file_);
  if (!text) {
    problems_.push_back({file_, 0, "--config", "", "the file can't be read: check its name and its permissions"});
    return false;
  }
  try {
    root_ = YAML::Load(*text);
  } catch (const YAML::Exception& error) {
    problems_.push_back({file_, error.mark.line + 1, "(syntax)", "", "not YAML: " + error.msg});
    return false;
  }
  return true;
}

void SettingsTree::override_with(const std::string& assignment) {
  const auto refuse = [&](std::string reason) { problems_.push_back({"--set", 0, assignment, "", std::move(reason)}); };
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos) return refuse("an override is written SETTING=VALUE, as in --set api.port=8001");
  const std::string path = assignment.substr(0, equals);
  const auto steps = parse_path(path);
  if (!steps) return refuse("a setting is written as in kafka.brokers or tables[0].name");
  try {
    if (!set_node(root_, *steps, 0, YAML::Load(assignment.substr(equals + 1)))) {
      return refuse("there is no such place in the config: a list is extended one element at a time, [" +
                    std::string("0] first, and a value has no settings in it"));
    }
  } catch (const YAML::Exception& error) {
    return refuse("the value is not YAML: " + error.msg);
  }
  overrides_.insert(path);
}

bool SettingsTree::overridden(std::string_view path) const {
  return std::any_of(overrides_.begin(), overrides_.end(), [path](const std::string& override_path) {
    if (!path.starts_with(override_path)) return false;
    return path.size() == override_path.size() || path[override_path.size()] == '.' ||
           path[override_path.size()] == '[';
  });
}

ConfigProblem SettingsTree::problem_at(const std::string& path, const YAML::Node& node, std::string found,
                                       std::string accepted) const {
  if (overridden(path)) return {"--set", 0, path, std::move(found), std::move(accepted)};
  const int line = node.IsDefined() ? node.Mark().line + 1 : 0;
  return {file_, line, path, std::move(found), std::move(accepted)};
}

std::string Setting::found() const {
  switch (node_.Type()) {
    case YAML::NodeType::Scalar:
      return quoted(node_.Scalar());
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a section";
    default:
      return "nothing";
  }
}

void Setting::wrong(std::string accepted) const {
  tree_->add_problem(path_, node_, found(), std::move(accepted));
}

std::optional<std::string> Setting::text() const {
  if (node_.IsScalar()) return node_.Scalar();
  if (!node_.IsMap() || node_.size() != 1 || !node_.begin()->second.IsScalar()) {
    wrong("a text, {env: NAME} or {file: PATH}");
    return std::nullopt;
  }
  const std::string kind = node_.begin()->first.Scalar();
  const std::string name = node_.begin()->second.Scalar();
  if (kind == "env") {
    if (const char* value = std::getenv(name.c_str())) return value;
    problem("the environment has no variable " + name);
    return std::nullopt;
  }
  if (kind == "file") {
    if (std::optional<std::string> value = read_file(name)) {
      if (value->ends_with('\n')) value->pop_back();
      if (value->ends_with('\r')) value->pop_back();
      return value;
    }
    problem("the file " + name + " can't be read");
    return std::nullopt;
  }
  wrong("a text, {env: NAME} or {file: PATH}");
  return std::nullopt;
}

std::optional<std::uint64_t> Setting::number(std::uint64_t min, std::uint64_t max) const {
  const std::string accepted = "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  if (node_.IsMap() || node_.IsScalar()) {
    const auto written = text();
    if (!written) return std::nullopt;
    const auto number = parse_number<std::uint64_t>(*written);
    if (number && *number >= min && *number <= max) return number;
  }
  wrong(accepted);
  return std::nullopt;
}

std::optional<bool> Setting::boolean() const {
  if (is_text("true")) return true;
  if (is_text("false")) return false;
  wrong("true or false");
  return std::nullopt;
}

std::optional<std::int64_t> Setting::duration_ms(std::int64_t min, std::int64_t max) const {
  if (node_.IsScalar()) {
    const std::string_view written = node_.Scalar();
    const std::size_t digits = std::min(written.find_first_not_of("0123456789"), written.size());
    const std::string_view unit = written.substr(digits);
    const std::int64_t unit_ms = unit == "ms"  ? 1
                                 : unit == "s" ? 1'000
                                 : unit == "m" ? 60'000
                                 : unit == "h" ? 3'600'000
                                 : unit == "d" ? 86'400'000
                                               : 0;
    const auto count = parse_number<std::uint32_t>(written.substr(0, digits));
    if (count && unit_ms != 0) {
      const std::int64_t ms = std::int64_t{*count} * unit_ms;
      if (ms >= min && ms <= max) return ms;
    }
  }
  wrong("a time from " + format_duration(min) + " to " + format_duration(max) + ", with its unit (ms, s, m, h or d)");
  return std::nullopt;
}

std::optional<std::uint64_t> Setting::size_bytes(std::uint64_t min, std::uint64_t max) const {
  if (node_.IsScalar()) {
    const std::string_view written = node_.Scalar();
    const std::size_t digits = std::min(written.find_first_not_of("0123456789"), written.size());
    const std::string_view unit = written.substr(digits);
    const unsigned shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : 0;
    const auto count = parse_number<std::uint32_t>(written.substr(0, digits));
    if (count && shift != 0) {
      const std::uint64_t bytes = std::uint64_t{*count} << shift;
      if (bytes >= min && bytes <= max) return bytes;
    }
  }
  wrong("a size from " + format_size(min) + " to " + format_size(max) + ", with its unit (KiB, MiB or GiB)");
  return std::nullopt;
}

std::optional<std::size_t> Setting::choice(std::initializer_list<std::string_view> words) const {
  const std::vector<std::string> accepted(words.begin(), words.end());
  if (node_.IsScalar()) {
    const auto found = std::find(accepted.begin(), accepted.end(), node_.Scalar());
    if (found != accepted.end()) return static_cast<std::size_t>(found - accepted.begin());
  }
  wrong(either(accepted));
  return std::nullopt;
}

std::optional<std::vector<Setting>> Setting::list(std::string_view accepted) const {
  if (!node_.IsSequence()) {
    wrong(std::string(accepted));
    return std::nullopt;
  }
  std::vector<Setting> elements;
  for (std::size_t i = 0; i < node_.size(); ++i) {
    elements.emplace_back(*tree_, path_ + "[" + std::to_string(i) + "]", node_[i]);
  }
  return elements;
}

std::optional<std::vector<std::string>> Setting::texts(std::string_view accepted) const {
  const auto elements = list(accepted);
  if (!elements) return std::nullopt;
  std::vector<std::string> texts;
  for (const Setting& element : *elements) {
    if (auto text = element.text()) texts.push_back(std::move(*text));
  }
  return texts;
}

Setting Setting::inside(const std::string& name) const {
  const YAML::Node child = node_.IsMap() ? node_[name] : YAML::Node(YAML::NodeType::Undefined);
  return {*tree_, path_ + "." + name, child.IsDefined() ? child : node_};
}

std::optional<Section> Setting::section() const {
  if (!node_.IsMap() && !node_.IsNull()) {
    wrong("a section: names and their values, indented below it");
    return std::nullopt;
  }
  return Section(*tree_, *this, node_);
}

Section::Section(SettingsTree& tree, Setting self, const YAML::Node& node)
    : tree_(&tree), self_(std::move(self)), node_(node) {
  std::set<std::string> names;
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && !names.insert(entry.first.Scalar()).second) {
      tree_->add_problem(path_of(entry.first.Scalar()), entry.first, "", "the setting stands here twice: take one out");
    }
  }
}

std::string Section::path_of(std::string_view name) const {
  return self_.path().empty() ? std::string(name) : self_.path() + "." + std::string(name);
}

std::optional<Setting> Section::find(std::string_view name) {
  known_.emplace_back(name);
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == name) return Setting(*tree_, path_of(name), entry.second);
  }
  return std::nullopt;
}

std::optional<Setting> Section::require(std::string_view name, std::string_view accepted) {
  auto setting = find(name);
  if (!setting) tree_->add_problem(path_of(name), node_, "nothing", std::string(accepted));
  return setting;
}

std::vector<std::pair<std::string, Setting>> Section::all() {
  std::vector<std::pair<std::string, Setting>> settings;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) continue;
    const std::string& name = entry.first.Scalar();
    known_.push_back(name);
    settings.emplace_back(name, Setting(*tree_, path_of(name), entry.second));
  }
  return settings;
}

void Section::finish() {
  for (const auto& entry : node_) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    tree_->add_problem(path_of(name), entry.first, "",
                       "there is no such setting" + did_you_mean(name, known_) + "; accepted here: " + either(known_));
  }
}

void Section::read(std::string_view name, std::string& out) {
  if (auto setting = find(name)) {
    if (auto text = setting->text()) out = std::move(*text);
  }
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? "" : ", did you mean " + quoted(*best) + "?";
}

std::string either(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

}  // namespace drover::server
