"""Goal: what `drover store` promises holds for a real directory: nothing is lost on the way out and in again, damage is
named and all else is served, a copy of a running store starts, rebuilt indexes are complete.

Method: the real program; items go in through `import` or the API of a serving one, and are compared by `export`.
"""

import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

DROVER = pathlib.Path(sys.argv.pop(1)).resolve()
README = pathlib.Path(__file__).resolve().parents[3] / "README.md"

TABLE = """
tables:
  - name: telemetry
    keys: {partition_key: {name: vehicleId}, sort_key: {name: recordedAt}}
    time_sort_key: {prefix: "TS#"}
    inherit: [depotCode]
    indexes: [{name: depot, partition_key: {name: depotCode}, sort_key: {name: recordedAt}}]
"""
PORTS = "api: {port: 0}\nadmin: {port: 0}\n"


def item(vehicle, at, **attributes):
    return {"vehicleId": {"S": f"VEH#{vehicle}"}, "recordedAt": {"S": at}, **attributes}


def reading(vehicle, number, **attributes):
    return item(vehicle, f"TS#2026-06-{1 + number // 86400:02}T{number // 3600 % 24:02}:{number // 60 % 60:02}:"
                f"{number % 60:02}.000Z", speedKph={"N": str(number % 90)}, **attributes)


# One of each type, with what a form of text may lose.
EVERY_TYPE = [
    item("ä€🚚", "META", depotCode={"S": "DEP-1"}, empty={"S": ""}, text={"S": 'quote " \\ line\nend \u0001 ü 🚚'}),
    item("ä€🚚", "TS#2026-06-23T09:00:00.000Z",
         n38={"N": "12345678901234567890123456789012345678"}, small={"N": "-0.00000000000000000000000000000000000001"},
         huge={"N": "9.9999999999999999999999999999999999999E+125"}, tiny={"N": "1E-130"}, zero={"N": "0"},
         yes={"BOOL": True}, no={"BOOL": False}, nothing={"NULL": True},
         binary={"B": "AAH/gA=="}, no_bytes={"B": ""}),
    item("2", "TS#2026-06-23T09:00:00.000Z",
         ss={"SS": ["a", "", "ü"]}, ns={"NS": ["1", "-2.5", "12345678901234567890123456789012345678"]},
         bs={"BS": ["AA==", ""]},
         list={"L": [{"N": "1"}, {"L": []}, {"M": {}}, {"NULL": True}, {"SS": ["x"]}]},
         map={"M": {"inner": {"M": {"B": {"S": "not binary"}}}, "M": {"M": {"M": {"M": {}}}}, "": {"N": "1"}}},
         SS={"M": {"SS": {"L": [{"S": "a list"}]}}}, B={"M": {"B": {"B": "AA=="}}}, Item={"M": {"Item": {"S": "x"}}}),
    # Of another depot than its META: an import adds nothing.
    item("3", "META", depotCode={"S": "DEP-1"}),
    item("3", "TS#2026-06-23T09:00:00.000Z", speedKph={"N": "50"}),
]


class Store(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.directory = self.scratch / "store"
        self.config = self.write("drover.yaml", PORTS + TABLE)

    def write(self, name, text):
        path = self.scratch / name
        path.write_text(text, encoding="utf-8")
        return path

    def store(self, command, directory, *arguments, exit_code=0, text=None):
        ended = subprocess.run([DROVER, "store", command, directory, *arguments], input=text, encoding="utf-8",
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=240)
        self.assertEqual(ended.returncode, exit_code, f"{command}: {ended.stdout}{ended.stderr}")
        return ended

    def import_items(self, items, directory=None, *arguments, **more):
        lines = "".join(json.dumps({"Item": each}, ensure_ascii=False) + "\n" for each in items)
        return self.store("import", directory or self.directory, "--config", self.config, *arguments, text=lines, **more)

    def export(self, directory=None, *arguments):
        return self.store("export", directory or self.directory, *arguments).stdout

    @contextlib.contextmanager
    def serving(self, directory):
        """Runs on the directory, and is killed in the end; gives the two addresses."""
        with subprocess.Popen([DROVER, "serve", "--config", self.config, "--set", f"store.directory={directory}"],
                              encoding="utf-8", stderr=subprocess.PIPE) as program:
            try:
                for line in program.stderr:
                    found = re.search(r"answers at (\S+) \(DynamoDB\) and (\S+) \(", line)
                    if found:
                        break
                self.assertTrue(found, line)
                yield found.groups()
            finally:
                program.send_signal(signal.SIGKILL)
                program.stderr.read()

    def call(self, endpoint, operation, **request):
        headers = {"X-Amz-Target": f"DynamoDB_20120810.{operation}", "Content-Type": "application/x-amz-json-1.0"}
        with urllib.request.urlopen(urllib.request.Request(endpoint, json.dumps(request).encode(), headers)) as answer:
            return json.load(answer)

    def test_every_type_comes_back_as_it_was_in_both_forms(self):
        self.import_items(EVERY_TYPE)
        for form in "dynamodb", "json":
            first = self.export(None, "--format", form)
            self.assertEqual(len(first.splitlines()), len(EVERY_TYPE))
            again = self.scratch / form
            told = self.store("import", again, "--config", self.config, "--format", form, text=first)
            self.assertEqual(told.stdout, f"{len(EVERY_TYPE)} items imported into telemetry\n")
            self.assertEqual(self.export(again, "--format", form), first)
            self.assertEqual(self.export(again), self.export())

        def key(each):
            return each["vehicleId"]["S"], each["recordedAt"]["S"]

        def plain(value):
            """Sets and numbers have one value, but several texts."""
            (kind, content), = value.items()
            if kind in ("SS", "BS"):
                return kind, sorted(content)
            if kind == "NS":
                return kind, sorted(float(each) for each in content)
            if kind == "N":
                return kind, float(content) if "E" in content or len(content) > 40 else content
            if kind == "L":
                return kind, [plain(each) for each in content]
            if kind == "M":
                return kind, {name: plain(each) for name, each in content.items()}
            return kind, content

        exported = {key(each): plain({"M": each}) for each in (json.loads(line)["Item"]
                                                              for line in self.export().splitlines())}
        self.assertEqual(exported, {key(each): plain({"M": each}) for each in EVERY_TYPE})

    def test_plain_lines_are_json_that_other_tools_read(self):
        self.import_items([item("1", "META", n={"N": "1.50"}, s={"SS": ["a"]}, l={"L": [{"S": "x"}]})])
        self.assertEqual(self.export(None, "--format", "json"),
                         '{"l":["x"],"n":1.5,"recordedAt":"META","s":{"SS":["a"]},"vehicleId":"VEH#1"}\n')

    def test_import_names_the_line_that_is_wrong_and_keeps_what_is_in_front(self):
        good = json.dumps({"Item": item("1", "META")})
        for bad, why in (('{"Item":{}}', "Missing the key vehicleId"), ("{", "line 2"), ('{"vehicleId":"V"}', "--format json"),
                         (json.dumps({"Item": item("1", "TS#1", depotCode={"N": "1"})}), "Type mismatch for Index Key")):
            ended = self.store("import", self.directory, "--config", self.config, exit_code=1, text=f"{good}\n{bad}\n")
            self.assertIn("drover store: line 2: ", ended.stderr)
            self.assertIn(why, ended.stderr)
            self.assertEqual(len(self.export().splitlines()), 1)

    def test_import_without_a_store_or_a_table_says_what_to_give(self):
        self.assertIn("holds no store", self.store("import", self.directory, exit_code=69, text="").stderr)
        self.assertFalse(self.directory.exists())

    def test_info_tells_items_and_bytes_of_table_and_index_and_the_largest_collection(self):
        self.import_items([reading("1", n, depotCode={"S": "DEP-1"}) for n in range(50)] + [reading("2", 0)])
        lines = [line.split() for line in self.store("info", self.directory).stdout.splitlines()]
        self.assertIn(["telemetry", "2", "51"], [line[:3] for line in lines])
        self.assertIn(["50", "VEH#1"], [line[-2:] for line in lines])
        index = next(line for line in lines if line[:2] == ["telemetry", "depot"])
        self.assertEqual(index[2:4] + index[5:], ["1", "50", "50", "DEP-1"])
        self.assertGreater(int(index[4]), 50 * 20)

    def test_compact_keeps_everything(self):
        self.import_items([reading(str(n % 7), n) for n in range(3000)])
        before = self.export()
        self.store("compact", self.directory)
        self.assertEqual(self.export(), before)
        self.assertIn("good", self.store("verify", self.directory).stdout)

    def test_verify_names_a_damaged_block_and_the_others_are_served(self):
        self.import_items([reading(str(vehicle), n, note={"S": os.urandom(40).hex()})
                           for vehicle in range(8) for n in range(600)])
        self.assertIn("4800 items read", self.store("verify", self.directory).stdout)
        damaged = max(self.directory.glob("*.blob"), key=lambda path: path.stat().st_size, default=None)
        if damaged is None:  # not flushed by the start yet
            self.store("compact", self.directory)
            damaged = max(self.directory.glob("*.blob"), key=lambda path: path.stat().st_size)
        content = bytearray(damaged.read_bytes())
        content[len(content) // 2] ^= 0x55
        damaged.write_bytes(content)
        told = self.store("verify", self.directory, exit_code=1)
        self.assertRegex(told.stdout + told.stderr, r"collection VEH#\d")
        self.assertNotIn("good", told.stdout)
        left = subprocess.run([DROVER, "store", "export", self.directory], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False).stdout
        self.assertGreater(len(left.splitlines()), 3000)
        self.assertLess(len(left.splitlines()), 4800)
        with self.serving(self.directory) as (api, _):
            answer = self.call(api, "Scan", TableName="telemetry", Select="COUNT")
            self.assertGreater(answer["Count"], 0)

    def test_a_copy_of_a_running_store_has_what_was_acknowledged_and_starts(self):
        copy = self.scratch / "copy"
        with self.serving(self.directory) as (api, admin):
            self.call(api, "PutItem", TableName="telemetry", Item=item("1", "META", plate={"S": "LA21 LLT"}))
            locked = self.store("backup", self.directory, copy, exit_code=69)
            self.assertIn("--admin", locked.stderr)
            self.store("backup", self.directory, copy, "--admin", admin)
            self.call(api, "PutItem", TableName="telemetry", Item=item("2", "META"))
            self.assertIn("exists", self.store("backup", self.directory, copy, "--admin", admin, exit_code=1).stderr)
            with self.assertRaises(urllib.error.HTTPError) as refused:  # what a web page could send
                urllib.request.urlopen(f"{admin}/backup", json.dumps({"to": str(copy) + "-2"}).encode())
            self.assertEqual(refused.exception.code, 415)
            refused.exception.close()
        with self.serving(copy) as (api, _):
            keys = [self.call(api, "GetItem", TableName="telemetry", Key=item(vehicle, "META")) for vehicle in "12"]
        self.assertEqual(keys[0]["Item"]["plate"], {"S": "LA21 LLT"})
        self.assertNotIn("Item", keys[1])

    def test_erase_removes_a_vehicle_of_a_running_drover_from_table_and_index(self):
        self.import_items([reading(vehicle, n, depotCode={"S": "DEP-1"}) for vehicle in "12" for n in range(10_000)])

        def erase(*arguments):
            return subprocess.run([DROVER, "erase", *arguments, "--admin", admin], encoding="utf-8",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120)

        with self.serving(self.directory) as (api, admin):
            ended = erase("VEH#1", "--table", "telemetry")
            self.assertEqual((ended.returncode, ended.stdout), (0, "erased: VEH#1\n"), ended.stderr)
            self.assertEqual(erase("VEH#3#{%Y-%m}", "--since", "2026-01").returncode, 0)
            self.assertIn("no table", erase("VEH#1", "--table", "other").stderr)
            self.assertIn("--since", erase("VEH#1#{%Y}").stderr)
            self.call(api, "PutItem", TableName="telemetry", Item=item("1", "META"))
        lines = self.export().splitlines()  # killed: what was acknowledged is there, and what was erased is not
        self.assertEqual(len(lines), 10_001)
        self.assertEqual([line for line in lines if '"VEH#1"' in line],
                         ['{"Item":{"recordedAt":{"S":"META"},"vehicleId":{"S":"VEH#1"}}}'])
        self.assertIn("index depot: 10000 of 10001 items", self.store("rebuild", self.directory).stdout)

    def test_backup_of_a_stopped_store_is_the_same_store(self):
        self.import_items(EVERY_TYPE)
        copy = self.scratch / "copy"
        self.store("backup", self.directory, copy)
        self.assertEqual(self.export(copy), self.export())

    def test_rebuild_gives_the_index_that_was_there_and_the_one_that_the_config_adds(self):
        self.import_items([reading(str(n % 5), n, depotCode={"S": f"DEP-{n % 3}"}) for n in range(900)] +
                          [reading("9", 0, speed={"S": "no number"})])

        def depot(api, name, **more):
            return self.call(api, "Query", TableName="telemetry", KeyConditionExpression="#k = :v",
                             ExpressionAttributeNames={"#k": name}, **more)

        with self.serving(self.directory) as (api, _):
            before = depot(api, "depotCode", IndexName="depot", ExpressionAttributeValues={":v": {"S": "DEP-1"}})
        self.assertEqual(before["Count"], 300)
        self.write("drover.yaml", PORTS + TABLE.replace("indexes: [", "indexes: [{name: speed, partition_key: "
                                                        "{name: speedKph, type: N}, sort_key: {name: recordedAt}}, "))
        refused = subprocess.run([DROVER, "serve", "--config", self.config, "--set", f"store.directory={self.directory}"],
                                 stderr=subprocess.PIPE, encoding="utf-8", check=False, timeout=60)
        self.assertEqual(refused.returncode, 78, refused.stderr)
        self.assertIn("drover store rebuild", refused.stderr)
        told = self.store("rebuild", self.directory, "--config", self.config).stdout
        self.assertIn("telemetry, index speed: 901 of 901 items", told)
        self.assertIn("telemetry, index depot: 900 of 901 items", told)
        with self.serving(self.directory) as (api, _):
            after = depot(api, "depotCode", IndexName="depot", ExpressionAttributeValues={":v": {"S": "DEP-1"}})
            fast = depot(api, "speedKph", IndexName="speed", ExpressionAttributeValues={":v": {"N": "7"}})
            # The new index is kept up as the old one.
            self.call(api, "DeleteItem", TableName="telemetry", Key={
                name: fast["Items"][0][name] for name in ("vehicleId", "recordedAt")})
            fewer = depot(api, "speedKph", IndexName="speed", ExpressionAttributeValues={":v": {"N": "7"}})
        self.assertEqual(after, before)
        self.assertEqual(fast["Count"], 10)
        self.assertEqual(fewer["Count"], 9)
        self.assertIn("index depot: 899 of 900 items", self.store("rebuild", self.directory).stdout)

    def test_the_readmes_commands_do_what_they_say(self):
        self.import_items(EVERY_TYPE)
        text = README.read_text(encoding="utf-8")
        script = "".join(line[4:] + "\n" for line in text.splitlines() if line.startswith("    drover store "))
        self.assertEqual(script.count("\n"), 7)
        script = script.replace("/var/lib/drover", str(self.directory)).replace("my.yaml", str(self.config))
        script = f'drover() {{ "{DROVER}" "$@"; }}\ncd "{self.scratch}"\n{script}'
        ended = subprocess.run(["bash", "-euc", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               encoding="utf-8", check=False, timeout=240)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertEqual(self.export(f"{self.directory}-2"), self.export(f"{self.directory}-copy"))

    def test_rebuild_refuses_another_key_and_changes_nothing(self):
        self.import_items(EVERY_TYPE)
        before = self.export()
        self.write("drover.yaml", PORTS + TABLE.replace("name: vehicleId", "name: vin"))
        told = self.store("rebuild", self.directory, "--config", self.config, exit_code=1)
        self.assertIn("has another key", told.stderr)
        self.assertEqual(self.export(), before)

    def test_a_long_command_shows_on_a_terminal_how_far_it_is(self):
        lines = "".join(json.dumps({"Item": reading(str(n % 3), n)}) + "\n" for n in range(2000))
        terminal, end = pty.openpty()
        with subprocess.Popen([DROVER, "store", "import", self.directory, "--config", self.config],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=end) as program:
            os.close(end)
            program.stdin.write(lines.encode())
            program.stdin.flush()
            shown = b""
            while not re.search(rb"\rimporting: [0-9,]+ items, \d+ s", shown):  # its input is still open
                shown += os.read(terminal, 4096)
            program.stdin.close()
            with contextlib.suppress(OSError):  # EIO: the program has closed its end
                while True:
                    shown += os.read(terminal, 4096)
            self.assertEqual(program.wait(timeout=60), 0, shown)
        os.close(terminal)


if __name__ == "__main__":
    unittest.main()
