"""Mistakes in the command line that the parser finds, as pgdyno's own errors."""

from __future__ import annotations

from typing import Any

from pgdyno.errors import UsageError, msg
from pgdyno.message import Message, Name, Text, listed


def is_usage(error: BaseException) -> bool:
    """Tell whether an exception is a mistake that the parser has found."""
    return hasattr(error, "format_message") and type(error).__name__ != "NoArgsIsHelpError"


def see_help(ctx: Any) -> Message:
    """Return the advice to read the help of a command."""
    return msg("remedy-see-help", command=ctx.command_path)


def explained(error: Any, ctx: Any) -> UsageError:
    """Return an exception of the parser, known by its class and attributes, as an error of pgdyno."""
    remedy = see_help(ctx)
    option = getattr(error, "option_name", None)
    param = getattr(error, "param", None)
    match type(error).__name__:
        case "NoSuchOption":
            near = [Name(x) for x in sorted(error.possibilities or ())]
            guess = msg("remedy-did-mean", names=listed(near, "list")) if near else remedy
            return UsageError(msg("usage-no-option", option=option), guess)
        case "MissingParameter" if param is not None:
            return UsageError(msg("usage-missing", name=_shown(param)), remedy)
        case "BadOptionUsage":
            flags = {name for p in ctx.command.params if getattr(p, "is_flag", False) for name in p.opts}
            if option in flags:
                return UsageError(msg("usage-takes-none", option=option), remedy)
            return UsageError(msg("usage-needs-value", option=option), remedy)
        case "BadParameter" if param is not None and (wanted := _wanted(param)) is not None:
            return UsageError(msg("usage-value", name=_shown(param), wanted=wanted), remedy)
        case "UsageError":
            taken = [_shown(p) for p in ctx.command.params if p.param_type_name == "argument"]
            names = listed(taken, "list") if taken else msg("usage-nothing")
            return UsageError(msg("usage-too-many", command=ctx.command_path, names=names), remedy)
    return UsageError(Name(error.format_message()), remedy)


def _shown(param: Any) -> Name:
    """Return the name of an option or argument as it is typed."""
    is_option = param.param_type_name == "option"
    return Name(max(param.opts, key=len) if is_option else param.metavar or param.name.upper())


def _wanted(param: Any) -> Text | None:
    """Return what a number must be like; None: no number is expected."""
    kind = {int: "usage-whole-number", float: "usage-number"}.get(param.type_descriptor.annotation)
    if kind is None:
        return None
    low, high = (None if x is None else Name(f"{x:,g}") for x in (param.min, param.max))
    if low is not None and high is not None:
        return msg("usage-between", number=msg(kind), low=low, high=high)
    if low is not None:
        return msg("usage-at-least", number=msg(kind), low=low)
    return msg(kind)
