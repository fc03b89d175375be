"""Requests that are made up from the OpenAPI description: none brings the server to a fault."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from serving import served

from tampl.studio.app import make_app

schemathesis = pytest.importorskip(
    "schemathesis", reason="schemathesis is not installed: no requests are made up"
)
pytestmark = pytest.mark.slow

EXAMPLES = 30


def test_no_request_brings_the_server_to_a_fault(exhibit):
    with served(make_app(exhibit)) as port:
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations()]
        assert len(operations) == 10
        for operation in operations:
            assert try_out(operation) <= {200, 401, 403, 404, 413, 422}


def try_out(operation):
    """Sends made-up requests; returns the status codes of the answers."""
    seen = set()

    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    def send(case):
        answer = case.call()
        seen.add(answer.status_code)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert "\n" not in answer.json()["detail"]

    send()
    return seen
