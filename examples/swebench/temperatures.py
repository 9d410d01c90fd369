"""Temperatures as people write them: 21.5 C, 70 F."""


def celsius(text: str) -> float:
    """The temperature in degrees Celsius."""
    value, unit = text.split()
    number = float(value)
    if unit == "C":
        return number
    if unit == "F":
        return (number - 32) / 1.8
    raise ValueError(f"unknown unit: {unit}")
