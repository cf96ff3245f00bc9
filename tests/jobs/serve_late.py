"""Not a job: a server on loopback that thinks for a while before it answers."""

import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class Late(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(5)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


server = HTTPServer(("127.0.0.1", 0), Late)
print(server.server_port)
sys.stdout.flush()
server.serve_forever()
