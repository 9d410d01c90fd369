"""The harness: an agent with one tool, which plays the game of doors.py until it is over. Standard library only.

Its endpoint is $OPENAI_BASE_URL/chat/completions, its task $POLAR_INSTRUCTION. The keys of the house are in keys.json in
its folder; the doors that it tried are left in tried.json, from which they are judged.
"""

import http.client
import json
import os
import urllib.parse

import doors

CALL_SECONDS_MAX = 300


def ask(connection, path, messages):
    """The model's next message."""
    body = {"model": "policy", "messages": messages, "tools": [doors.TOOL]}
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    connection.request("POST", f"{path}/chat/completions", json.dumps(body), headers)
    with connection.getresponse() as response:
        reply = json.load(response)
    if response.status != 200:
        raise SystemExit(f"the endpoint answers {response.status}: {reply}")
    return reply["choices"][0]["message"]


def door_of(call):
    """The door that a call names; 0, which is none, where it names none."""
    try:
        door = json.loads(call["function"]["arguments"])["door"]
    except (ValueError, KeyError, TypeError):
        return 0
    return door if isinstance(door, int) else 0


def play(keys, instruction, next_message):
    """The doors that were tried, in order. It is over, too, when the model calls no tool."""
    tried, messages = [], [{"role": "user", "content": instruction}]
    while not doors.is_over(keys, tried):
        message = next_message(messages)
        calls = message.get("tool_calls") or []
        if not calls:
            break
        tried.append(door_of(calls[0]))
        messages.append({"role": "assistant", "content": message.get("content"), "tool_calls": calls[:1]})
        messages.append(
            {"role": "tool", "tool_call_id": calls[0]["id"], "content": doors.answer(keys, tried)}
        )
    return tried


def main():
    url = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=CALL_SECONDS_MAX)
    with open("keys.json", encoding="utf-8") as file:
        keys = json.load(file)
    tried = play(keys, os.environ["POLAR_INSTRUCTION"], lambda messages: ask(connection, url.path, messages))
    with open("tried.json", "w", encoding="utf-8") as file:
        json.dump(tried, file)


if __name__ == "__main__":
    main()
