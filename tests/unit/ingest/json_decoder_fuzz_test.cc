#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "decoding.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace drover::ingest::test {
namespace {

const std::vector<std::string>& real_records() {
  static const std::vector<std::string> records = {
      R"({"vehicleId":"V-7741","recordedAt":"2026-06-23T09:00:01.000Z","speedKph":61.5,"coolantC":88.2,"fuelPct":54.1})",
      R"({"vehicleId": "V-7741", "recordedAt": "2026-06-23T09:00:01Z", "speedKph": -61, "tags": ["a", null]})",
      R"({"kind":"META","vehicleId":"V-7741","plate":"LK23 ABC","model":"eSprinter","depotCode":"DEP-LON-3"})",
      R"({"vehicleId":7741,"recordedAt":1782205201.5,"kind":"reading","location":{"lat":51.507351,"lon":-0.127758}})",
      R"({"vehicleId":"V-1","vehicle":{"plate":"AB","year":2024},"active":true,"sold":false,"owner":null})",
      R"({"asset":{"id":"281474","name":"Truck \"7\""},"recordedAt":"2024-03-31T01:30:00+01:00","note":"caf\u00e9 ä"})",
      R"({ "asset" : { "id" : "281474" } , "recordedAt" : "2026-06-23T09:00:01.123456789Z" , "n" : 123456789012 } )",
      R"({"vehicleId":"V-2","recordedAt":"2026-06-23T09:00:01.5Z","a":1.50,"b":0,"c":-0.0,"d":1e3,"e":{"z":1,"a":[]}})"};
  return records;
}

/// A few changes of the kinds that happen: bytes flipped, cut, doubled, and pieces of JSON put in.
std::string mutate(std::string record, std::mt19937& random) {
  static const std::vector<std::string> pieces = {"\"",
                                                  "\\",
                                                  ",",
                                                  ":",
                                                  "{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  "0",
                                                  "9",
                                                  ".",
                                                  "-",
                                                  "e5",
                                                  "null",
                                                  "true",
                                                  " ",
                                                  "\n",
                                                  "\x80",
                                                  "\xc3\xa4",
                                                  "\\u00e4",
                                                  "NaN",
                                                  "META",
                                                  "\"vehicleId\":",
                                                  "1e400",
                                                  "\"kind\":\"META\",",
                                                  "{\"id\":1}",
                                                  "12345678901234567890",
                                                  "Z",
                                                  "\x01"};
  for (auto changes = random() % 4; changes > 0; --changes) {
    const std::size_t at = record.empty() ? 0 : random() % record.size();
    switch (random() % 5) {
      case 0:
        if (!record.empty()) record[at] = static_cast<char>(random());
        break;
      case 1:
        record.erase(at, 1 + random() % 8);
        break;
      case 2:
        record.insert(at, record.substr(random() % (record.size() + 1), random() % 30));
        break;
      case 3:
        record.insert(at, pieces[random() % pieces.size()]);
        break;
      default:
        if (!record.empty() && record[at] >= '0' && record[at] <= '9')
          record[at] = static_cast<char>('0' + random() % 10);
    }
  }
  return record;
}

// See json_decoder_fuzz.cc.
TEST(JsonDecoderFuzz, BothWaysGiveTheSameRows) {
  std::mt19937 random(20260623);
  for (int i = 0; i < 4000; ++i) {
    std::string input;
    for (auto records = 1 + random() % 4; records > 0; --records) {
      if (!input.empty()) input += '\0';
      input += mutate(real_records()[random() % real_records().size()], random);
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

// Goal: no text is taken for JSON, or refused as none, wrongly.
// Method: Boost.JSON, another strict parser, must agree; but for numbers beyond what it holds.
TEST(JsonDecoderFuzz, AnotherParserAgreesOnWhatIsJson) {
  std::mt19937 random(7741);
  Decoding decoding;
  int good = 0;
  for (int i = 0; i < 60'000; ++i) {
    const std::string record = mutate(real_records()[random() % real_records().size()], random);
    const RejectReason reason = decoding.reason_for(record);
    boost::json::error_code error;
    boost::json::parse(record, error);
    if (reason == RejectReason::kNotJson) {
      ASSERT_TRUE(error) << record;
    } else if (reason != RejectReason::kEmptyValue && error != boost::json::error::exponent_overflow) {
      ASSERT_FALSE(error) << record << ": " << error.message();
      ++good;
    }
  }
  EXPECT_GT(good, 20'000);
}

}  // namespace
}  // namespace drover::ingest::test
