"""polar-mesh as the agent loop of verl (tested with verl 0.9.1).

An agent loop is named in a file that ``actor_rollout_ref.rollout.agent.agent_loop_config_path`` points to::

    - name: polar
      _target_: polar_mesh.bridges.verl.PolarAgentLoop
      task: my_tasks:task_of_row            # makes the task of a row of the dataset
      rollout_url: http://127.0.0.1:8080
      trajectory_url: http://127.0.0.1:8070
      engine_port: 8100                     # verl's rollout servers, as the mesh's engine

and chosen by ``actor_rollout_ref.rollout.agent.default_agent_loop=polar``, or by each row's ``agent_name``.
"""

from .agent_loop import PolarAgentLoop, SessionLost

__all__ = ["PolarAgentLoop", "SessionLost"]
