#!/usr/bin/env python3
"""reap_containers.py SOCKETS INSTANCE [BUDGET_S]: deletes containers and layer images of a manager that has ended.

They have its label. For what its lifeline does not end: containers that were made and not yet started. SOCKETS is a JSON list
of where engines listen. All are asked at once, as the next manager waits for the end of this: what one does not delete in
BUDGET_S (default: 6) stays for that manager. Standard library only; Python >= 3.9.
"""
import http.client
import json
import socket
import sys
import threading
import time
import urllib.parse

BUDGET_S = float(sys.argv[3]) if len(sys.argv) > 3 else 6
LOOK_S = 0.5
# Of a manager that was killed, the engine may still be making containers, or refuse to delete what it is at work on.
QUIET_LOOKS = 2


class Engine(http.client.HTTPConnection):
    def __init__(self, path, until):
        super().__init__("docker")
        self.path = path
        self.until = until

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.limit()
        self.sock.connect(self.path)

    def limit(self):
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self.path}: no time is left")
        if self.sock is not None:
            self.sock.settimeout(left)

    def call(self, method, path):
        self.limit()
        self.request(method, path)
        return self.getresponse().read()


def reap_containers(engine, filters):
    listed = json.loads(engine.call("GET", f"/containers/json?all=true&filters={filters}"))
    # One that somebody runs of an image that was made of a sandbox has its labels, and another name.
    found = [one for one in listed if not one["Names"] or f"/{one['Labels'].get('polar.runtime')}" in one["Names"]]
    for container in found:
        engine.call("DELETE", f"/containers/{container['Id']}?force=true&v=true")
    return len(found)


def reap(engine, instance):
    filters = urllib.parse.quote(json.dumps({"label": [f"polar.instance={instance}"]}))
    quiet = 0 if reap_containers(engine, filters) else QUIET_LOOKS
    while quiet < QUIET_LOOKS:
        time.sleep(LOOK_S)
        quiet = 0 if reap_containers(engine, filters) else quiet + 1
    # Podman 4.3 finds no image by two labels.
    for image in json.loads(engine.call("GET", f"/images/json?filters={filters}")):
        # Empty in images that somebody made of a sandbox.
        if image["Labels"].get("polar.layer"):
            engine.call("DELETE", f"/images/{image['Id']}")


def attempt(path, instance, until):
    try:
        reap(Engine(path, until), instance)
    except (OSError, http.client.HTTPException, ValueError) as error:
        print(error, file=sys.stderr)


until = time.monotonic() + BUDGET_S
reaping = [
    threading.Thread(target=attempt, args=(path, sys.argv[2], until), daemon=True)
    for path in json.loads(sys.argv[1])
]
for one in reaping:
    one.start()
for one in reaping:
    one.join(max(0, until - time.monotonic()))
