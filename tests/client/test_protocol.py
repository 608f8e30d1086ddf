"""The protocol below the SDKs: bytes over one kept-alive connection."""

import http.client
import json
import re
import urllib.parse

import pytest

TYPE = "application/x-amz-json-1.0"


class Connection:
    def __init__(self, endpoint):
        self.http = http.client.HTTPConnection(urllib.parse.urlsplit(endpoint).netloc, timeout=60)

    def post(self, operation, body, content_type=TYPE):
        headers = {"Content-Type": content_type, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        self.http.request("POST", "/", body, headers)
        answer = self.http.getresponse()
        text = answer.read()
        assert re.fullmatch("[A-Z0-9]{52}", answer.getheader("x-amzn-RequestId"))
        return answer.status, json.loads(text)


@pytest.fixture
def connection(endpoint):
    return Connection(endpoint)


def test_get_answers_healthy(connection):
    connection.http.request("GET", "/")
    answer = connection.http.getresponse()
    assert answer.status == 200
    assert answer.read().decode() == f"healthy: {connection.http.host}:{connection.http.port}"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b'""', b"1", b"{", b"\xff", b'{"TableName": 1}', b'{"TableName": "t', b"[" * 100000,
        b'{"TableName": "ttt", "Key": {"p": {"N": 3}}}', b'{"TableName": "ttt", "Key": {"p": {"B": "A"}}}',
        b'{"TableName": "ttt", "Key": []}', b'{"TableName": "ttt", "Key": {"p": "x"}}',
    ],
)  # fmt: skip
def test_wrong_shapes_are_serialization_errors_and_the_connection_lives(connection, body):
    status, answer = connection.post("GetItem", body)
    assert status == 400
    assert answer["__type"] == "com.amazon.coral.service#SerializationException"
    assert connection.post("ListTables", b"{}")[0] == 200


def test_unknown_operations_and_content_types(connection):
    for operation, content_type in [("Nope", TYPE), ("ListTables", "text/plain")]:
        status, answer = connection.post(operation, b"{}", content_type)
        assert status == 400
        assert answer["__type"] == "com.amazon.coral.service#UnknownOperationException"
    assert connection.post("ListTables", b"{}", "application/x-amz-json-1.1")[0] == 200


def test_namespaces_of_errors(connection):
    assert connection.post("GetItem", b"{}")[1]["__type"] == "com.amazon.coral.validate#ValidationException"
    missing = b'{"TableName": "missing", "Key": {"p": {"S": "x"}}}'
    assert connection.post("GetItem", missing)[1] == {
        "__type": "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
        "message": "Requested resource not found",
    }
