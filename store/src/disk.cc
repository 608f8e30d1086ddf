#include "disk.h"

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "drover/model/sync.h"

namespace drover::store {
namespace {

constexpr std::array<const char*, kFamilies> kFamilyNames{"meta", "blocks", "tails", "log"};
constexpr std::size_t kMiB = std::size_t{1} << 20;

rocksdb::Slice slice(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}
std::string_view view(const rocksdb::Slice& bytes) {
  return {bytes.data(), bytes.size()};
}

model::Status to_status(const rocksdb::Status& status) {
  if (status.ok()) return {};
  const model::StatusCode code = status.IsCorruption() ? model::StatusCode::kInvalid
                                 : status.IsNotFound() ? model::StatusCode::kNotFound
                                                       : model::StatusCode::kUnavailable;
  return {code, status.ToString()};
}

rocksdb::DBOptions database_options() {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.max_background_jobs = 2;
  options.keep_log_file_num = 4;
  options.max_log_file_size = 4 * kMiB;
  options.max_total_wal_size = 256 * kMiB;
  options.bytes_per_sync = 1 * kMiB;  // no burst of writes when a file is closed
  options.wal_bytes_per_sync = 1 * kMiB;
  // A write that was not finished when the process died is left out; damage in front of the end is an error.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  return options;
}

rocksdb::ColumnFamilyOptions family_options(Family family) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = nullptr;
  table.no_block_cache = true;  // what is read, is read once, at the start
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kNoCompression;  // the columns are dense
  options.write_buffer_size = 32 * kMiB;
  if (family == Family::kBlocks) {
    options.enable_blob_files = true;  // a block is written once and never moved by a compaction
    options.min_blob_size = 256;
    options.blob_file_size = 256 * kMiB;
    options.enable_blob_garbage_collection = true;
  }
  return options;
}

}  // namespace

struct Disk::Database {
  model::Mutex write_mutex;
  std::unique_ptr<rocksdb::DB> db;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilies> families{};

  ~Database() {
    for (rocksdb::ColumnFamilyHandle* family : families) {
      if (family != nullptr) db->DestroyColumnFamilyHandle(family);
    }
  }
  rocksdb::ColumnFamilyHandle* of(Family family) const { return families[static_cast<std::size_t>(family)]; }
};

struct DiskBatch::Operations {
  rocksdb::WriteBatch batch;
};

DiskBatch::DiskBatch(const Disk& disk) : disk_(&disk), operations_(std::make_unique<Operations>()) {}
DiskBatch::~DiskBatch() = default;
DiskBatch::DiskBatch(DiskBatch&&) noexcept = default;

// RocksDB's own status of these says only that a key is too large, which ours are not.
void DiskBatch::put(Family family, std::string_view key, std::string_view value) {
  (void)operations_->batch.Put(disk_->database_->of(family), slice(key), slice(value));
}
void DiskBatch::remove(Family family, std::string_view key) {
  (void)operations_->batch.Delete(disk_->database_->of(family), slice(key));
}
void DiskBatch::remove_range(Family family, std::string_view begin, std::string_view end) {
  (void)operations_->batch.DeleteRange(disk_->database_->of(family), slice(begin), slice(end));
}
std::size_t DiskBatch::size_bytes() const {
  return operations_->batch.GetDataSize();
}
bool DiskBatch::empty() const {
  return operations_->batch.Count() == 0;
}

Disk::Disk(std::string directory, std::unique_ptr<Database> database)
    : directory_(std::move(directory)), database_(std::move(database)) {}
Disk::~Disk() = default;

model::Result<std::unique_ptr<Disk>> Disk::open(const std::string& directory) {
  const auto unavailable = [&](const std::string& why) {
    return model::Status{model::StatusCode::kUnavailable, "store.directory " + directory + ": " + why};
  };
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return unavailable(error.message() + "; create it, or let this user write there");
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors{{rocksdb::kDefaultColumnFamilyName, {}}};
  for (std::size_t i = 0; i < kFamilies; ++i) {
    descriptors.emplace_back(kFamilyNames[i], family_options(static_cast<Family>(i)));
  }
  rocksdb::DB* opened = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const rocksdb::Status status = rocksdb::DB::Open(database_options(), directory, descriptors, &handles, &opened);
  if (!status.ok()) {
    const bool locked = status.ToString().find("lock") != std::string::npos;
    return unavailable(locked ? "another Drover has it open: stop it, or give this one a directory of its own (" +
                                    status.ToString() + ")"
                              : status.ToString());
  }
  auto database = std::make_unique<Database>();
  database->db.reset(opened);
  database->db->DestroyColumnFamilyHandle(handles[0]);
  std::copy(handles.begin() + 1, handles.end(), database->families.begin());
  return std::unique_ptr<Disk>(new Disk(directory, std::move(database)));
}

model::Status Disk::write(DiskBatch& batch) {
  rocksdb::WriteOptions options;
  options.sync = true;
  // One at a time, as RocksDB would have it too; there ThreadSanitizer can't see it.
  const model::LockGuard lock(database_->write_mutex);
  rocksdb::Status status = database_->db->Write(options, &batch.operations_->batch);
  if (!status.ok() && database_->db->Resume().ok()) {
    // What has failed before (a full device) may be mended by now.
    status = database_->db->Write(options, &batch.operations_->batch);
  }
  return to_status(status);
}

model::Status Disk::visit(Family family, std::string_view begin, std::string_view end, const Use& use) const {
  rocksdb::ReadOptions options;
  const rocksdb::Slice bound = slice(end);
  if (!end.empty()) options.iterate_upper_bound = &bound;
  options.readahead_size = 2 * kMiB;
  const std::unique_ptr<rocksdb::Iterator> it(database_->db->NewIterator(options, database_->of(family)));
  for (it->Seek(slice(begin)); it->Valid(); it->Next()) {
    if (!use(view(it->key()), view(it->value()))) return {};
  }
  return to_status(it->status());
}

model::Status Disk::read(Family family, std::string_view key, model::Bytes& value) const {
  return to_status(database_->db->Get({}, database_->of(family), slice(key), &value));
}

model::Status Disk::copy_to(const std::string& directory) {
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(database_->db.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  if (status.ok()) status = checkpoint->CreateCheckpoint(directory);
  return to_status(status);
}

Disk::Room Disk::room() const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory_, error);
  return error ? Room{} : Room{space.available, space.capacity};
}

}  // namespace drover::store
