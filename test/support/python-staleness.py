"""A slow trainer with a staleness bound of 1; prints what it is given, and what is dropped, one JSON object a line.

usage: python-staleness.py URL CONSUMER COUNT STEP_S
"""

import json
import sys
import time

from polar_mesh import Batch, Client, Filter
from polar_mesh.errors import DeadlineExceeded


def tell(batch: Batch, current: int) -> None:
    line = {
        "batch_id": batch.batch_id,
        "sent_under": batch.policy_version,
        "current": current,
        "dropped": batch.dropped_reason,
        "nacked": batch.nack_reason,
        "sessions": [
            {"min": one.policy_version_min, "traces": len(one.traces), "dropped": one.dropped_reason, "reward": one.reward}
            for one in batch.trajectories
        ],
    }
    print(json.dumps(line), flush=True)


url, consumer, count, step_s = sys.argv[1:]
with Client(trajectory_url=url) as client:
    told = 0

    def dropped(batch: Batch) -> None:
        global told
        told += 1
        tell(batch, stream.policy_version)

    stream = client.stream(consumer, max_unacked=8, filter=Filter(staleness_max=1), on_dropped=dropped)
    while told < int(count):
        try:
            batch = stream.next(timeout_s=1)
        except DeadlineExceeded:
            continue
        tell(batch, stream.policy_version)
        time.sleep(float(step_s))
        batch.ack()
        told += 1
