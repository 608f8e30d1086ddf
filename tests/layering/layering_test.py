"""Goal: a folder that reaches for what it must not know is caught, whichever way it reaches; and a promise without its
test.

Method: the rules run over the project, where they must find nothing, and over small trees with one violation each, where
they must find just that.
"""

import pathlib
import re
import sys
import tempfile
import unittest

import layering

ROOT = sys.argv.pop(1) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]


class Layering(unittest.TestCase):
    def check(self, files, expected):
        """Writes `files` over a clean tree and compares what the rules find."""
        clean = {
            "model/include/drover/model/key.h": "// A comment.\n#pragma once\n#include <string>\n",
            "model/src/key.cc": '#include "drover/model/key.h"\n#include <xxhash.h>\n',
            "store/include/drover/store/store.h": '#pragma once\n#include "drover/model/key.h"\n',
            "store/include/drover/store/stats.h": "#pragma once\n",
            "store/src/shard.h": "#pragma once\n",
            "store/src/shard.cc": '#include "shard.h"\n#include <sys/mman.h>\n',
        }
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**clean, **files}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            self.assertEqual(layering.problems(root), expected)

    def test_project_keeps_the_rules(self):
        self.assertEqual(layering.problems(ROOT), [])

    def test_project_was_found(self):
        self.assertTrue(pathlib.Path(ROOT, "model/include/drover/model/key.h").exists())

    def test_clean_tree_has_no_problem(self):
        self.check({}, [])

    def test_lower_folder_may_not_include_a_higher_one(self):
        self.check({"model/src/a.cc": '#include "drover/store/store.h"\n'},
                   ["model/src/a.cc: includes drover/store/store.h: model may not see store"])

    def test_tests_are_never_included(self):
        self.check({"store/src/a.cc": '#include "tests/support/kafka_broker.h"\n'},
                   ["store/src/a.cc: includes tests/support/kafka_broker.h: not a header of store"])

    def test_private_header_of_another_folder_is_out_of_reach(self):
        self.check({"server/src/a.cc": '#include "shard.h"\n'}, ["server/src/a.cc: includes shard.h: not a header of server"])
        self.check({"server/src/a.cc": '#include "../../store/src/shard.h"\n'},
                   ["server/src/a.cc: includes ../../store/src/shard.h: no way up"])

    def test_metrics_sees_only_statistics(self):
        self.check({"metrics/src/a.cc": '#include "drover/store/stats.h"\n'}, [])
        self.check({"metrics/src/a.cc": '#include "drover/store/store.h"\n'},
                   ["metrics/src/a.cc: includes drover/store/store.h: metrics sees statistics only"])

    def test_public_header_has_no_third_party_include(self):
        self.check({"ingest/include/drover/ingest/a.h": "#pragma once\n#include <librdkafka/rdkafka.h>\n"},
                   ["ingest/include/drover/ingest/a.h: includes <librdkafka/rdkafka.h>: a public header includes only ours and "
                    "the standard library's"])

    def test_public_header_includes_no_private_one(self):
        self.check({"store/include/drover/store/a.h": '#pragma once\n#include "shard.h"\n'},
                   ["store/include/drover/store/a.h: includes shard.h: a public header includes no private one"])

    def test_third_party_stays_in_its_folder(self):
        self.check({"store/src/a.cc": "#include <boost/json.hpp>\n"},
                   ["store/src/a.cc: includes <boost/json.hpp>: not among store's third parties"])

    def test_header_begins_with_pragma_once(self):
        self.check({"store/src/a.h": "#include <string>\n#pragma once\n"},
                   ["store/src/a.h: a header begins with #pragma once"])
        self.check({"tests/support/a.h": ""}, ["tests/support/a.h: a header begins with #pragma once"])

    def test_links_follow_the_same_rules(self):
        self.check({"ingest/CMakeLists.txt": "drover_library(ingest PUBLIC drover::model PRIVATE drover::store)\n"},
                   ["ingest/CMakeLists.txt: links drover::store: ingest may not see it"])


class Contract(unittest.TestCase):
    """A promise is held by a test: one that ARCHITECTURE.md names and that is not there holds nothing."""

    def test_tests_that_the_architecture_names_exist(self):
        named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", pathlib.Path(ROOT, "ARCHITECTURE.md").read_text("utf-8")))
        self.assertTrue(named)
        tests = "".join(file.read_text("utf-8") for file in pathlib.Path(ROOT, "tests").rglob("*_test.cc"))
        found = {".".join(test) for test in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", tests, re.MULTILINE)}
        self.assertEqual(named - found, set())


if __name__ == "__main__":
    unittest.main()
