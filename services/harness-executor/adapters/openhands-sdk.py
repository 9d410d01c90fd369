"""Works on an instruction with OpenHands' SDK and its default agent: `run.py CONFIG.json INSTRUCTION`.

Exits with 0 when the agent says that it has finished, with 1 otherwise; then the last line of standard error says why.
"""

import json
import sys
from pathlib import Path
from typing import Any

from openhands.sdk import LLM
from openhands.sdk.context import AgentContext
from openhands.sdk.conversation.impl.local_conversation import LocalConversation
from openhands.sdk.conversation.state import ConversationExecutionStatus
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from openhands.sdk.mcp.config import MCPServer
from openhands.sdk.mcp.utils import DefaultMCPToolProvider
from openhands.sdk.skills import load_skills_from_dir
from openhands.tools.preset.default import get_default_agent


class PatientToolProvider(DefaultMCPToolProvider):
    """Gives servers more time to start than the SDK does."""

    def __init__(self, start_seconds: float) -> None:
        self._start_seconds = start_seconds

    def create_tools(
        self, mcp_config, timeout=None, *, on_tools_changed=None, on_tools_reconciled=None
    ):
        return super().create_tools(
            mcp_config,
            self._start_seconds,
            on_tools_changed=on_tools_changed,
            on_tools_reconciled=on_tools_reconciled,
        )


def agent_of(config: dict[str, Any]):
    folder = config["skills"]
    kinds = load_skills_from_dir(folder) if Path(folder).is_dir() else ()
    context = AgentContext(skills=[skill for kind in kinds for skill in kind.values()])
    # Values are what the task says, whatever they look like.
    servers = {name: MCPServer(**server).as_literal() for name, server in config["mcp"].items()}
    agent = get_default_agent(LLM(**config["llm"]), cli_mode=True)
    return agent.model_copy(update={"agent_context": context, "mcp_config": servers})


def work(config: dict[str, Any], instruction: str) -> str:
    """Why the agent has not finished; empty where it has."""
    conversation = LocalConversation(
        agent_of(config),
        workspace=str(Path.cwd()),
        persistence_dir=config["conversations"],
        visualizer=None,
        delete_on_close=False,
        mcp_tool_provider=PatientToolProvider(config["mcp_start_seconds"]),
        **config["limits"],
    )
    try:
        conversation.send_message(instruction)
        conversation.run()
        return why_not_finished(conversation.state)
    finally:
        conversation.close()


def why_not_finished(state) -> str:
    if state.execution_status == ConversationExecutionStatus.FINISHED:
        return ""
    errors = [event for event in state.events if isinstance(event, ConversationErrorEvent)]
    return f"{errors[-1].code}: {errors[-1].detail}" if errors else state.execution_status.value


if __name__ == "__main__":
    config_file, instruction_file = map(Path, sys.argv[1:])
    problem = work(json.loads(config_file.read_text()), instruction_file.read_text())
    if problem:
        sys.exit(f"openhands: {problem}")
