#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

/// The files below RocksDB as a failing device and a power cut leave them.
namespace drover::test {

/// What goes wrong.
struct Faults {
  /// Appends go on for so many bytes; the one that goes beyond them is written in part and fails.
  std::optional<std::uint64_t> room_bytes = {};
  bool no_space = false;      ///< Those appends fail with ENOSPC, otherwise with EIO.
  bool syncs_fail = false;    ///< With EIO, of files and directories; what was not synced then never is.
  bool changes_fail = false;  ///< Files can't be made, renamed or removed.
  bool reads_fail = false;    ///< Of tables and blob files, with EIO.
  /// Of files whose name ends so, one byte is read wrong: that behind so many thousandths of the file.
  std::string flipped = {};
  std::uint32_t flipped_at = 0;
};

/// Passes everything on to the system's files until told to fail. Knows what a power cut may take: of each file what
/// was written behind its last sync, and names made or changed behind the last sync of their directory. Removing a file
/// counts as durable at once, since that is the worse case.
///
/// Compactions are spared: RocksDB 7.8 as Debian builds it, with assertions, aborts in
/// CompactionJob::UpdateCompactionJobStats() when one that leaves no item over fails.
/// One directory; no folders in it.
/// Threads: all members from any thread.
class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  /// `seed`: of what a power cut takes.
  explicit FaultyFileSystem(std::uint32_t seed);
  const char* Name() const override { return "FaultyFileSystem"; }

  void set(const Faults& faults);
  void mend() { set({}); }

  /// Notes in a directory beside it what a power cut leaves of a directory at this moment. What is written from here on
  /// until power_on(), when nothing of it may be open, is gone.
  void cut_power(const std::string& directory);
  void power_on(const std::string& directory);

  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  friend class FaultyWritableFile;
  friend class FaultyReadFile;
  friend class FaultyDirectory;
  struct Length {
    std::uint64_t written = 0;
    std::uint64_t synced = 0;
    bool sync_failed = false;
  };
  /// A name that is not durable yet.
  struct Change {
    std::string path;
    std::string from = {};                   ///< Of a rename.
    std::optional<std::string> former = {};  ///< What the name stood for before, by content.
  };
  Faults present_faults() const;
  rocksdb::IOStatus wrap(const std::string& path, std::uint64_t size, std::unique_ptr<rocksdb::FSWritableFile>* file);

  std::mutex mutex_;
  std::mt19937 random_;  // under mutex_, as all below
  Faults faults_;
  std::map<std::string, Length> files_;  // by path
  std::vector<Change> changes_;          // in their order
};

}  // namespace drover::test
