"""Publishes a version, changes it in a pause, leaves a pause by an error, and outlasts one; prints what holds after each."""

import json
import sys
import time
import warnings

import polar_mesh
from polar_mesh import errors

told = []
warnings.simplefilter("error", RuntimeWarning)
with polar_mesh.PolicyClient(sys.argv[1]) as policy:
    told.append(policy.publish_version(21, "w-21").policy_version)
    with policy.paused("keep") as pause:
        told.append(policy.get_policy().policy.pause_id == pause.policy.pause_id)
        pause.publish(22, "w-22")
    told.append(policy.get_policy().policy.policy_version)
    try:
        with policy.paused("abort_and_retry") as pause:
            pause.publish(23)
            raise RuntimeError("no memory")
    except RuntimeError as error:
        told.append(str(error))
    told.append(policy.get_policy().policy.policy_version)
    try:
        policy.publish_version(1)
    except errors.InvalidArgument as error:
        told.append(error.reason)
    try:
        with policy.paused("keep", ttl_s=0.1):
            while policy.get_policy().policy.pause_id:
                time.sleep(0.05)
    except RuntimeWarning as warning:
        told.append(str(warning).split(",")[0])
print(json.dumps(told))
