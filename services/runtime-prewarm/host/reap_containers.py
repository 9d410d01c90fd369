#!/usr/bin/env python3
"""reap_containers.py SOCKET INSTANCE: deletes the containers of a manager that has ended, by their label.

For what its lifeline does not end: containers that were made and not yet started. Standard library only; Python >= 3.9.
"""
import http.client
import json
import socket
import sys
import urllib.parse

TIMEOUT_S = 5


class Engine(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("docker", timeout=TIMEOUT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self.path)

    def call(self, method, path):
        self.request(method, path)
        return self.getresponse().read()


def main(path, instance):
    engine = Engine(path)
    filters = urllib.parse.quote(json.dumps({"label": [f"polar.instance={instance}"]}))
    for container in json.loads(engine.call("GET", f"/containers/json?all=true&filters={filters}")):
        engine.call("DELETE", f"/containers/{container['Id']}?force=true&v=true")


try:
    main(*sys.argv[1:])
except (OSError, http.client.HTTPException, ValueError) as error:
    sys.exit(str(error))
