"""Runs beside a job: tells who asks that the data is ready, from the thirtieth time on."""

import http.server

asked = 0


class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        global asked
        asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ready" if asked >= 30 else b"not yet")

    def log_message(self, *_: object) -> None:
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Service)
print(server.server_port, flush=True)
server.serve_forever()
