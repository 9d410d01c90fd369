"""A failure goes from one process to another with all that it says."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from polar_mesh import errors
from polar_mesh.errors import FieldFault, PolarError


class Refused(errors.InvalidArgument):
    """A caller's own, made otherwise."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"no {task_id}", code="INVALID_ARGUMENT")
        self.task_id = task_id


SAID = {
    "code": "RESOURCE_EXHAUSTED",
    "reason": "QUEUE_FULL",
    "boundary": "mesh",
    "fields": (FieldFault("task.num_samples", "too many"),),
    "retryable": True,
    "retry_after_s": 2.5,
}
CLASSES = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, PolarError)]


@pytest.mark.parametrize("made", [*(kind("full", **SAID) for kind in CLASSES), Refused("t")], ids=repr)
def test_a_copy_is_the_same(made):
    copies = [pickle.loads(pickle.dumps(made, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for one in (*copies, copy.copy(made), copy.deepcopy(made)):
        assert type(one) is type(made)
        assert (str(one), vars(one)) == (str(made), vars(made))


def fail() -> None:
    raise errors.NotFound("no task t", code="NOT_FOUND", boundary="task")


def test_what_a_worker_raises_is_raised_by_its_pool():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(errors.NotFound) as caught:
        pool.submit(fail).result(timeout=60)
    assert (caught.value.message, caught.value.boundary) == ("no task t", "task")
