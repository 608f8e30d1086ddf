#include "tests/support/faulty_file_system.h"

#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace drover::test {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

std::string plain(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

IOStatus failed(const std::string& what) {
  return IOStatus::IOError("injected: " + what);
}

bool is_table(const std::string& path) {
  return path.ends_with(".sst") || path.ends_with(".blob");
}

std::string copy_of(const std::string& directory) {
  return directory + ".after-power-cut";
}

bool in_compaction() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::string(name).starts_with("rocksdb:low");
}

}  // namespace

/// None for a compaction.
Faults FaultyFileSystem::present_faults() const {
  return in_compaction() ? Faults{} : faults_;
}

class FaultyWritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyWritableFile(FaultyFileSystem& system, std::string path, std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const std::lock_guard lock(system_.mutex_);
    const std::optional<std::uint64_t> room = system_.present_faults().room_bytes;
    const std::size_t taken = std::min<std::uint64_t>(data.size(), room.value_or(data.size()));
    const IOStatus status = target()->Append(Slice(data.data(), taken), options, debug);
    if (!status.ok()) return status;
    if (room) *system_.faults_.room_bytes -= taken;
    system_.files_[path_].written += taken;
    if (taken == data.size()) return status;
    return system_.faults_.no_space ? IOStatus::NoSpace("injected: no space") : failed("write");
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override { return sync(options, debug); }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override { return sync(options, debug); }

 private:
  /// The system's own sync is left out: what it is good for is counted here, and the tests are faster.
  IOStatus sync(const IOOptions& options, IODebugContext* debug) {
    const std::lock_guard lock(system_.mutex_);
    FaultyFileSystem::Length& length = system_.files_[path_];
    if (system_.present_faults().syncs_fail) {
      length.sync_failed = true;
      return failed("sync");
    }
    if (!length.sync_failed) length.synced = length.written;
    return target()->Flush(options, debug);
  }

  FaultyFileSystem& system_;
  const std::string path_;
};

class FaultyReadFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyReadFile(FaultyFileSystem& system, std::string path, std::unique_ptr<rocksdb::FSRandomAccessFile> file)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

  IOStatus Read(std::uint64_t offset, std::size_t size, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) const override {
    const std::lock_guard lock(system_.mutex_);
    const Faults faults = system_.present_faults();
    if (faults.reads_fail && is_table(path_)) return failed("read");
    const IOStatus status = target()->Read(offset, size, options, result, scratch, debug);
    if (!status.ok() || faults.flipped.empty() || !path_.ends_with(faults.flipped)) return status;
    const std::uint64_t at = std::filesystem::file_size(path_) * faults.flipped_at / 1000;
    if (at < offset || at >= offset + result->size()) return status;
    std::copy(result->data(), result->data() + result->size(), scratch);
    scratch[at - offset] = static_cast<char>(scratch[at - offset] ^ 0x55);
    *result = Slice(scratch, result->size());
    return status;
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    return FSRandomAccessFile::MultiRead(requests, count, options, debug);  // by Read()
  }

 private:
  FaultyFileSystem& system_;
  const std::string path_;
};

class FaultyDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  FaultyDirectory(FaultyFileSystem& system, std::string path, std::unique_ptr<rocksdb::FSDirectory> directory)
      : FSDirectoryWrapper(std::move(directory)), system_(system), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    const std::lock_guard lock(system_.mutex_);
    if (system_.present_faults().syncs_fail) return failed("sync of the directory");
    std::erase_if(system_.changes_, [this](const FaultyFileSystem::Change& change) {
      return std::filesystem::path(change.path).parent_path() == path_;
    });
    return IOStatus::OK();
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  FaultyFileSystem& system_;
  const std::filesystem::path path_;
};

FaultyFileSystem::FaultyFileSystem(std::uint32_t seed)
    : FileSystemWrapper(rocksdb::FileSystem::Default()), random_(seed) {}

void FaultyFileSystem::set(const Faults& faults) {
  const std::lock_guard lock(mutex_);
  faults_ = faults;
}

void FaultyFileSystem::cut_power(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  std::filesystem::copy(directory, copy_of(directory));
  const auto in_copy = [&](const std::string& path) {
    return std::filesystem::path(copy_of(directory)) / std::filesystem::path(path).filename();
  };
  for (const auto& [path, length] : files_) {
    if (length.written == length.synced) continue;
    std::filesystem::resize_file(in_copy(path), length.synced + random_() % (length.written - length.synced + 1));
  }
  // From the end on: a name that stands behind another one does not outlive it.
  const std::size_t lost = random_() % (changes_.size() + 1);
  for (auto change = changes_.rbegin(); change != changes_.rbegin() + static_cast<std::ptrdiff_t>(lost); ++change) {
    if (change->from.empty()) {
      std::filesystem::remove(in_copy(change->path));
    } else {
      std::filesystem::rename(in_copy(change->path), in_copy(change->from));
    }
    if (change->former) std::ofstream(in_copy(change->path), std::ios::binary) << *change->former;
  }
}

void FaultyFileSystem::power_on(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  std::filesystem::remove_all(directory);
  std::filesystem::rename(copy_of(directory), directory);
  files_.clear();
  changes_.clear();
}

IOStatus FaultyFileSystem::NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                               IODebugContext* debug) {
  const IOStatus status = target()->NewRandomAccessFile(path, options, file, debug);
  if (status.ok()) *file = std::make_unique<FaultyReadFile>(*this, plain(path), std::move(*file));
  return status;
}

/// Of `size` bytes that count as synced if nothing else is known.
IOStatus FaultyFileSystem::wrap(const std::string& path, std::uint64_t size,
                                std::unique_ptr<rocksdb::FSWritableFile>* file) {
  files_.try_emplace(path, Length{size, size});
  *file = std::make_unique<FaultyWritableFile>(*this, path, std::move(*file));
  return IOStatus::OK();
}

IOStatus FaultyFileSystem::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) {
  const std::lock_guard lock(mutex_);
  if (present_faults().changes_fail) return failed("making a file");
  const std::string made = plain(path);
  Change change{made};
  if (std::filesystem::exists(made)) change.former = content_of(made);
  const IOStatus status = target()->NewWritableFile(path, options, file, debug);
  if (!status.ok()) return status;
  changes_.push_back(std::move(change));
  files_.erase(made);
  return wrap(made, 0, file);
}

IOStatus FaultyFileSystem::ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* debug) {
  const std::lock_guard lock(mutex_);
  if (present_faults().changes_fail) return failed("opening a file");
  const IOStatus status = target()->ReopenWritableFile(path, options, file, debug);
  return status.ok() ? wrap(plain(path), std::filesystem::file_size(path), file) : status;
}

IOStatus FaultyFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                        std::unique_ptr<rocksdb::FSDirectory>* directory, IODebugContext* debug) {
  const IOStatus status = target()->NewDirectory(path, options, directory, debug);
  if (status.ok()) *directory = std::make_unique<FaultyDirectory>(*this, plain(path), std::move(*directory));
  return status;
}

IOStatus FaultyFileSystem::DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* debug) {
  const std::lock_guard lock(mutex_);
  if (present_faults().changes_fail) return failed("removing a file");
  const IOStatus status = target()->DeleteFile(path, options, debug);
  if (!status.ok()) return status;
  const std::string gone = plain(path);
  files_.erase(gone);
  std::erase_if(changes_, [&](const Change& change) { return change.path == gone; });
  return status;
}

IOStatus FaultyFileSystem::RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                                      IODebugContext* debug) {
  const std::lock_guard lock(mutex_);
  if (present_faults().changes_fail) return failed("renaming a file");
  Change change{plain(to), plain(from)};
  if (std::filesystem::exists(change.path)) change.former = content_of(change.path);
  const IOStatus status = target()->RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  files_.erase(change.path);
  if (auto moved = files_.extract(change.from)) {
    moved.key() = change.path;
    files_.insert(std::move(moved));
  }
  changes_.push_back(std::move(change));
  return status;
}

}  // namespace drover::test
