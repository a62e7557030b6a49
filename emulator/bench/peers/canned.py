"""pytest-httpserver with one canned reply, on the port that it is told; runs with the peers' own Python."""

import sys
import threading

from pytest_httpserver import HTTPServer

server = HTTPServer(port=int(sys.argv[1]))
server.expect_request("/v1/embeddings").respond_with_json({"object": "list", "data": []})
server.start()
threading.Event().wait()
