#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace drover::test {

/// A directory of its own that goes with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "drover-store-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  /// Of a store, which is not there yet.
  std::string path() const { return path_ + "/store"; }

 private:
  std::string path_;
};

}  // namespace drover::test
