"""The smallest coding agent: one tool, bash, until the model calls no more. Standard library only.

The task comes from the file $POLAR_INSTRUCTION_FILE, or from the command line; the endpoint is
$OPENAI_BASE_URL/chat/completions with the key $OPENAI_API_KEY, and the model $MODEL.
"""
import json
import os
import subprocess
import sys
import urllib.request

TURNS_MAX = 40
OUTPUT_CHARS_MAX = 20_000
COMMAND_SECONDS_MAX = 120
CALL_SECONDS_MAX = 900

SYSTEM = "You are a coding agent. Work in the current folder with the bash tool; say in one sentence when you are done."
BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Runs a command with bash; gives its output and, if it is not 0, its exit code.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}
# What a server expects back of an assistant message; other fields are its own.
KEPT = ("role", "content", "reasoning_content", "reasoning", "tool_calls")


def read_task():
    if len(sys.argv) > 1:
        return " ".join(sys.argv[1:])
    with open(os.environ["POLAR_INSTRUCTION_FILE"], encoding="utf-8") as file:
        return file.read()


def ask(messages):
    """The model's next message. An HTTP error ends the agent."""
    body = {"model": os.environ.get("MODEL", "policy"), "messages": messages, "tools": [BASH]}
    request = urllib.request.Request(
        f"{os.environ['OPENAI_BASE_URL']}/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    with urllib.request.urlopen(request, timeout=CALL_SECONDS_MAX) as response:
        message = json.load(response)["choices"][0]["message"]
    return {name: message[name] for name in KEPT if message.get(name) is not None}


def run(call):
    """The output of one tool call, as the model gets it."""
    try:
        command = json.loads(call["function"]["arguments"])["command"]
    except (ValueError, KeyError, TypeError) as error:
        return f"the arguments are not {{\"command\": …}}: {error!r}"
    print(f"$ {command}", flush=True)
    try:
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {COMMAND_SECONDS_MAX} s"
    output = done.stdout.decode(errors="replace")[-OUTPUT_CHARS_MAX:]
    print(output, end="", flush=True)
    return output if done.returncode == 0 else f"{output}\nexit code {done.returncode}"


def main():
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": read_task()}]
    for _ in range(TURNS_MAX):
        message = ask(messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            print(message.get("content", ""))
            return 0
        for call in calls:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": run(call)})
    print(f"not done after {TURNS_MAX} turns", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
