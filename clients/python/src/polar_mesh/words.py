"""Values of the API's enums by the words that the client takes for them."""

from __future__ import annotations

from typing import Any


def value_of(enum: Any, prefix: str, word: str) -> Any:
    """``oldest`` of ``SeekTarget``, whose names begin with ``SEEK_TARGET_``. Raises ValueError, naming those that there are."""
    words = {name.removeprefix(prefix).lower(): value for name, value in enum.items()}
    words.pop("unspecified", None)
    if word not in words:
        raise ValueError(f"{word!r} is none of {', '.join(words)}")
    return words[word]
