"""pytest-httpserver with two canned replies, on the port that it is told; runs with the peers' own Python."""

import sys
import threading

from pytest_httpserver import HTTPServer

POLL = {"result": {"status": "queued", "request_id": "00000000-0000-4000-8000-000000000000"}, "success": True}
VECTOR = [0.0625 * (place % 31) for place in range(1024)]
DATA = [{"object": "embedding", "index": index, "embedding": VECTOR} for index in range(100)]

server = HTTPServer(port=int(sys.argv[1]))
server.expect_request("/poll").respond_with_json(POLL)
server.expect_request("/v1/embeddings").respond_with_json({"object": "list", "data": DATA})
server.start()
threading.Event().wait()
