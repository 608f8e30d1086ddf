"""The AWS CLI against the API: what a person would type."""

import json
import os
import subprocess

import pytest

AWS = "/usr/bin/aws"


@pytest.fixture
def aws(endpoint, tmp_path):
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_PAGER": "",
        "AWS_MAX_ATTEMPTS": "1",
    }

    def run(*arguments, fails=False):
        done = subprocess.run(
            [AWS, "dynamodb", "--endpoint-url", endpoint, "--output", "json", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stderr if fails else json.loads(done.stdout or "null")

    return run


def test_a_session(aws):
    made = aws(
        "create-table",
        "--table-name", "cli-readings",
        "--attribute-definitions", "AttributeName=vehicleId,AttributeType=S", "AttributeName=recordedAt,AttributeType=S",
        "--key-schema", "AttributeName=vehicleId,KeyType=HASH", "AttributeName=recordedAt,KeyType=RANGE",
        "--billing-mode", "PAY_PER_REQUEST",
    )  # fmt: skip
    assert made["TableDescription"]["TableStatus"] == "ACTIVE"
    assert "cli-readings" in aws("list-tables")["TableNames"]
    for second in range(3):
        item = {
            "vehicleId": {"S": "VEH#V-7741"},
            "recordedAt": {"S": f"TS#2026-06-23T09:00:0{second}Z"},
            "speedKph": {"N": str(60 + second)},
        }
        aws("put-item", "--table-name", "cli-readings", "--item", json.dumps(item))
    found = aws(
        "query",
        "--table-name", "cli-readings",
        "--key-condition-expression", "vehicleId = :v",
        "--expression-attribute-values", '{":v": {"S": "VEH#V-7741"}}',
        "--no-scan-index-forward",
        "--max-items", "2",
    )  # fmt: skip
    assert [item["speedKph"]["N"] for item in found["Items"]] == ["62", "61"]
    updated = aws(
        "update-item",
        "--table-name", "cli-readings",
        "--key", '{"vehicleId": {"S": "VEH#V-7741"}, "recordedAt": {"S": "TS#2026-06-23T09:00:00Z"}}',
        "--update-expression", "SET speedKph = speedKph + :one",
        "--expression-attribute-values", '{":one": {"N": "1"}}',
        "--return-values", "ALL_NEW",
    )  # fmt: skip
    assert updated["Attributes"]["speedKph"] == {"N": "61"}
    assert aws("scan", "--table-name", "cli-readings", "--select", "COUNT")["Count"] == 3
    refused = aws(
        "query",
        "--table-name", "cli-readings",
        "--key-condition-expression", "recordedAt = :v",
        "--expression-attribute-values", '{":v": {"S": "META"}}',
        fails=True,
    )  # fmt: skip
    assert "(ValidationException)" in refused
    assert "Query condition missed key schema element: vehicleId" in refused
    aws("delete-table", "--table-name", "cli-readings")
    assert "(ResourceNotFoundException)" in aws("describe-table", "--table-name", "cli-readings", fails=True)
