#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drover/server/config.h"

/// Reading YAML strictly: every setting knows its path and line, and what isn't understood is a problem.
namespace drover::server {

/// The tree of one config file with its overrides, and the problems found in it so far.
class SettingsTree {
 public:
  explicit SettingsTree(std::string file) : file_(std::move(file)) {}

  /// Whether the file could be read as YAML; if not, the problem has been added.
  bool load();
  /// Applies "a.b[0].c=value", the value being YAML. What can't be applied becomes a problem.
  void override_with(const std::string& assignment);

  const YAML::Node& root() const { return root_; }
  const std::vector<ConfigProblem>& problems() const { return problems_; }

  void add_problem(const std::string& path, const YAML::Node& node, std::string found, std::string accepted) {
    problems_.push_back(problem_at(path, node, std::move(found), std::move(accepted)));
  }
  /// A problem with its place filled in, for whoever keeps it elsewhere.
  ConfigProblem problem_at(const std::string& path, const YAML::Node& node, std::string found,
                           std::string accepted) const;

 private:
  bool overridden(std::string_view path) const;

  std::string file_;
  YAML::Node root_;
  std::set<std::string> overrides_;  // their paths
  std::vector<ConfigProblem> problems_;
};

class Section;

/// One setting: a value, and where it stands. Every reader adds a problem and returns nothing if the value is not what
/// it reads.
class Setting {
 public:
  Setting(SettingsTree& tree, std::string path, const YAML::Node& node)
      : tree_(&tree), path_(std::move(path)), node_(node) {}

  /// Text, given as it is or as `{env: NAME}` or `{file: PATH}` (secrets; a file's last line break is dropped).
  std::optional<std::string> text() const;
  std::optional<std::uint64_t> number(std::uint64_t min, std::uint64_t max) const;
  std::optional<bool> boolean() const;
  /// A time with its unit: `10s`, `500ms`, `2m`, `12h`, `30d`.
  std::optional<std::int64_t> duration_ms(std::int64_t min, std::int64_t max) const;
  /// A size with its unit: `512MiB`, `8GiB`.
  std::optional<std::uint64_t> size_bytes(std::uint64_t min, std::uint64_t max) const;
  /// One of a closed list of words; gives its place in the list.
  std::optional<std::size_t> choice(std::initializer_list<std::string_view> words) const;
  /// The elements of a list.
  std::optional<std::vector<Setting>> list(std::string_view accepted) const;
  std::optional<std::vector<std::string>> texts(std::string_view accepted) const;
  /// An empty value is an empty section.
  std::optional<Section> section() const;

  /// The setting of that name inside this section; where it is missing, its name at the section's place.
  Setting inside(const std::string& name) const;

  bool is_list() const { return node_.IsSequence(); }
  bool is_section() const { return node_.IsMap(); }
  bool is_text(std::string_view text) const { return node_.IsScalar() && node_.Scalar() == text; }
  const std::string& path() const { return path_; }

  /// Adds the problem that what is found here isn't `accepted`.
  void wrong(std::string accepted) const;
  /// Adds a problem that one sentence tells.
  void problem(std::string sentence) const { tree_->add_problem(path_, node_, "", std::move(sentence)); }
  ConfigProblem warning(std::string sentence) const { return tree_->problem_at(path_, node_, "", std::move(sentence)); }

 private:
  std::string found() const;

  SettingsTree* tree_;
  std::string path_;
  YAML::Node node_;
};

/// A setting with named settings in it. Whoever reads one asks for all that it knows, then calls finish().
class Section {
 public:
  Section(SettingsTree& tree, Setting self, const YAML::Node& node);

  /// The setting of that name, if it is there.
  std::optional<Setting> find(std::string_view name);
  /// The same; its absence is a problem. `accepted` is what should stand there.
  std::optional<Setting> require(std::string_view name, std::string_view accepted);
  /// All settings, for a section whose names are free.
  std::vector<std::pair<std::string, Setting>> all();

  /// Adds a problem for each setting that nobody has asked for.
  void finish();

  const Setting& self() const { return self_; }

  void read(std::string_view name, std::string& out);
  template <typename Number>
  void read(std::string_view name, Number& out, std::uint64_t min, std::uint64_t max) {
    if (auto setting = find(name)) {
      if (auto number = setting->number(min, max)) out = static_cast<Number>(*number);
    }
  }

 private:
  std::string path_of(std::string_view name) const;

  SettingsTree* tree_;
  Setting self_;
  YAML::Node node_;
  std::vector<std::string> known_;  // what has been asked for
};

/// `, did you mean "x"?` for the candidate that `text` is most likely a misspelling of, or nothing.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& candidates);

/// `a, b or c`
std::string either(const std::vector<std::string>& words);

std::string quoted(std::string_view text);

}  // namespace drover::server
