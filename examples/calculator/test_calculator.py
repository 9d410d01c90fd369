"""Prints one line a case: PASSED name, or FAILED name and why."""
import sys

from calculator import CalculatorError, evaluate

VALUES = {
    "number": ("42", 42),
    "decimal": (" 2.5 ", 2.5),
    "addition": ("1 + 2 + 3", 6),
    "subtraction_left_to_right": ("10 - 4 - 3", 3),
    "multiplication": ("6 * 7", 42),
    "division_left_to_right": ("100 / 10 / 5", 2),
    "precedence": ("2 + 3 * 4", 14),
    "parentheses": ("(2 + 3) * 4", 20),
    "nested_parentheses": ("2 * ((1 + 2) * (3 + 4))", 42),
    "unary_minus": ("-3 + 5", 2),
    "double_minus": ("2 - -(-3)", -1),
}
ERRORS = {
    "division_by_zero": "1 / (2 - 2)",
    "missing_parenthesis": "(1 + 2",
    "missing_operand": "1 +",
    "unknown_character": "2 % 3",
}


def check_value(text, expected):
    value = evaluate(text)
    return "" if abs(value - expected) < 1e-9 else f"{text} is {value}, not {expected}"


def check_error(text):
    try:
        return f"{text} is {evaluate(text)}, not an error"
    except CalculatorError:
        return ""


def outcome(check, *arguments):
    try:
        return check(*arguments)
    except Exception as error:  # a broken calculator is a failed case, not the end of the program
        return f"{type(error).__name__}: {error}"


def main():
    results = {name: outcome(check_value, *case) for name, case in VALUES.items()}
    results.update({name: outcome(check_error, text) for name, text in ERRORS.items()})
    for name, fault in results.items():
        print(f"FAILED {name} - {fault}" if fault else f"PASSED {name}")
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
