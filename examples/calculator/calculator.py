"""Works out arithmetic such as `2 * (3 + 4) - 1`. The grammar, from weak to strong binding:

expression  term, then any number of `+ term` or `- term`, from left to right
term        factor, then any number of `* factor` or `/ factor`, from left to right
factor      a number, `- factor`, or `( expression )`
"""
import re

TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([-+*/()]))")


class CalculatorError(ValueError):
    """The text is no expression, or it has no value."""


def tokenise(text):
    """List of numbers (float) and operators (str)."""
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise CalculatorError(f"cannot read {text[at:]!r}")
        number, operator = match.groups()
        tokens.append(float(number) if number else operator)
        at = match.end()
    return tokens


class Parser:
    """Reads tokens from left to right; each method takes what it describes and returns its value."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.at = 0

    def peek(self):
        """The next token; None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self):
        token = self.peek()
        self.at += 1
        return token

    def expression(self):
        value = self.term()
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                value += self.term()
            else:
                value -= self.term()
        return value

    def term(self):
        raise NotImplementedError("term")

    def factor(self):
        raise NotImplementedError("factor")


def evaluate(text):
    """The value as a float; CalculatorError if there is none, as for a division by zero."""
    parser = Parser(tokenise(text))
    value = parser.expression()
    if parser.peek() is not None:
        raise CalculatorError(f"unexpected {parser.peek()!r}")
    return value
