"""Goal: the README's commands do what it says.

Method: its sections' indented lines are taken as they stand and run by one shell, while the quickstart that it starts with
runs on the ports that it names.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICKSTART = sys.argv.pop(1) if len(sys.argv) > 1 else "deploy/quickstart"


def commands(section):
    """The indented lines of a section, without their comments."""
    text = re.search(rf"^## {section}\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S).group(1)
    return "\n".join(re.sub(r" +# .*", "", line[4:]) for line in text.splitlines() if line.startswith("    "))


def run(script):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Readme(unittest.TestCase):
    def test_the_session_with_the_aws_cli_answers(self):
        with subprocess.Popen([QUICKSTART, "--no-install", "--seconds", "120", "--admin-port", "0"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as quickstart:
            printed = []
            for line in quickstart.stdout:
                printed.append(line)
                if line.startswith("Heat "):
                    break
            else:
                self.fail("the quickstart told no addresses:\n" + "".join(printed))
            done = run(commands("Ask it"))
            quickstart.terminate()
            quickstart.stdout.read()
        self.assertEqual(done.returncode, 0, done.stdout)
        for told in ['"telemetry"', '"VEH#V-7741"', '"plate"', '"TS#2026-06-23T', "5 items, 5 read"]:
            self.assertIn(told, done.stdout)

    def test_the_annotated_config_is_good(self):
        copy, check, _ = commands("Point it at a real Kafka").splitlines()
        with tempfile.TemporaryDirectory() as folder:
            done = run(f"{copy}\n{check}".replace("my.yaml", folder + "/my.yaml"))
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
