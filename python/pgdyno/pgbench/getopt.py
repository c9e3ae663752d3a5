"""Command-line parser that behaves like GNU getopt_long.

It accepts joined short options, unambiguous abbreviations of long options, and options after operands, and it prints
getopt's error messages. Python's own getopt words these differently and supports no optional arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pgdyno.pgbench.messages import HELP_HINT, PROGRAM, Exit, log, plain


class Option(NamedTuple):
    """One option: its long name, its letter if it has one, and whether it takes an argument."""

    name: str
    letter: str = ""
    #: "no", "required" or "optional" (then only joined: --name=VALUE).
    argument: str = "no"
    #: Not pgbench's: never what an abbreviation means that is unambiguous in pgbench.
    ours: bool = False


def complain(text: str) -> Exit:
    """Print an error message of getopt and the hint that follows it; return the exception to raise."""
    plain(f"{PROGRAM}: {text}\n")
    log("hint", HELP_HINT)
    return Exit(1)


def scan(arguments: list[str], options: tuple[Option, ...]) -> Iterator[tuple[Option | None, str]]:
    """Yield the options with their arguments in order, then the operands (as `(None, operand)`).

    Each option is yielded before the next one is parsed, so that its effects come first. Raise Exit if an option is
    invalid.
    """
    letters = {o.letter: o for o in options if o.letter}
    operands: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            operands += waiting
            break
        if word.startswith("--"):
            name, given, value = word[2:].partition("=")
            option = _long(name, word, options)
            if option.argument == "no" and given:
                raise complain(f"option '--{option.name}' doesn't allow an argument")
            if option.argument == "required" and not given:
                if not waiting:
                    raise complain(f"option '--{option.name}' requires an argument")
                value = waiting.pop(0)
            yield option, value
        elif word.startswith("-") and word != "-":
            rest = word[1:]
            while rest:
                letter, rest = rest[0], rest[1:]
                if letter not in letters:
                    raise complain(f"invalid option -- '{letter}'")
                option, value = letters[letter], ""
                if option.argument == "required":
                    if not rest and not waiting:
                        raise complain(f"option requires an argument -- '{letter}'")
                    value, rest = (rest, "") if rest else (waiting.pop(0), "")
                yield option, value
        else:
            operands.append(word)
    for operand in operands:
        yield None, operand


def _long(name: str, word: str, options: tuple[Option, ...]) -> Option:
    for option in options:
        if option.name == name:
            return option
    theirs = [o for o in options if o.name.startswith(name) and not o.ours]
    found = theirs or [o for o in options if o.name.startswith(name)]
    if not name or not found:
        raise complain(f"unrecognized option '{word}'")
    if len(found) > 1:
        possible = " ".join(f"'--{o.name}'" for o in found)
        raise complain(f"option '{word}' is ambiguous; possibilities: {possible}")
    return found[0]
