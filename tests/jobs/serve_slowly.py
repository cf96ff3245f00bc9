"""Not a job: a server on loopback whose file comes slowly, with a long pause in the middle."""

import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class Slow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "40000")
        self.end_headers()
        for number in range(40):
            time.sleep(7.0 if number == 20 else 0.1)
            self.wfile.write(b"x" * 1000)

    def log_message(self, *words: object) -> None:
        pass


server = HTTPServer(("127.0.0.1", 0), Slow)
print(server.server_port)
sys.stdout.flush()
server.serve_forever()
