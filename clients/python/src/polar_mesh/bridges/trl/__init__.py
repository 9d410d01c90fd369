"""polar-mesh as the rollouts of TRL's trainers (tested with trl 1.16.0).

``GRPOTrainer``, whose step waits for its rollouts::

    trainer = GRPOTrainer(..., reward_funcs=polar_reward, rollout_func=rollout_func(client, task, weights=weights))

Reward functions beside ``polar_reward`` are ``scored(other)``.

``AsyncGRPOTrainer``, which trains while sessions run::

    worker = RolloutWorker(client, tasks, policy=policy)
    trainer = AsyncGRPOTrainer(..., rollout_worker=worker, weight_transfer=weights)

with ``weights = WeightTransfer(policy, load)`` for both, where ``load`` hands parameters to the engines.
"""

from .reward_functions import polar_reward, scored
from .rollouts import Rollouts, rollout_func
from .weights import WeightTransfer
from .worker import RolloutWorker

__all__ = ["RolloutWorker", "Rollouts", "WeightTransfer", "polar_reward", "rollout_func", "scored"]
