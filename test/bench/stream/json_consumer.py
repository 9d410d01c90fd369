"""Reads groups as JSON over HTTP, makes arrays of them and touches each; tells what it saw as JSON lines.

usage: json_consumer.py PORT WARM_GROUPS GROUPS
"""

import http.client
import json
import sys
import time

import numpy as np

#: The columns of a trace, and what a trainer makes of them.
COLUMNS = {"prompt_ids": np.int32, "response_ids": np.int32, "loss_mask": np.uint8, "logprobs": np.float32}


def touch(group: dict) -> tuple[int, int]:
    """Tokens of the group, and a sum over all its arrays."""
    tokens = total = 0
    for trajectory in group["trajectories"]:
        for trace in trajectory["traces"]:
            tokens += len(trace["prompt_ids"]) + len(trace["response_ids"])
            for name, dtype in COLUMNS.items():
                total += int(np.add.reduce(np.array(trace[name], dtype)))
    return tokens, total


def main() -> None:
    port, warm, groups = map(int, sys.argv[1:])
    connection = http.client.HTTPConnection("127.0.0.1", port)
    tokens = total = 0
    for number in range(warm + groups):
        if number == warm:
            print(json.dumps({"event": "begin"}), flush=True)
            began, tokens, total = time.monotonic(), 0, 0
        connection.request("GET", "/next")
        of_group, sum_of_group = touch(json.loads(connection.getresponse().read()))
        tokens += of_group
        total += sum_of_group
    seconds = time.monotonic() - began
    print(json.dumps({"event": "end", "tokens": tokens, "total": total, "seconds": seconds}), flush=True)
    sys.stdin.read()


main()
