"""Prints a line for each test, as pytest does with -rA: a sandbox without pytest runs it."""
import sys

from temperatures import celsius


def test_celsius():
    assert celsius("21.5 C") == 21.5


def test_fahrenheit():
    assert celsius("212 F") == 100


def main() -> int:
    failed = 0
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                print(f"PASSED test_temperatures.py::{name}")
            except Exception as error:
                failed += 1
                print(f"FAILED test_temperatures.py::{name} - {error!r}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
